//! A table that outgrows memory: several clients fill it on a server that flushes each commit and takes checkpoints, until
//! its primary key is several times larger than `shared_buffers`. Then rows are read by ID and by time.

use crate::bench::contender::{Contender, ROOMY};
use crate::bench::pgbench::Outcome;
use crate::bench::plan::{Findings, Plan, scaled};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use pg_snowflake_harness::wait::wait_for;
use pg_snowflake_harness::{Cluster, installation};
use postgres::Client;
use std::time::{Duration, Instant};

/// The kinds of keys between which people choose.
const NAMES: [&str; 5] = ["core_identity", "ours_cache_1", "pgedge", "uuid_v7", "uuid_v4"];

/// At most so many rounds, since a turn takes most of a minute.
pub(super) const ROUNDS: usize = 3;

/// The size of everything depends on these three. They shrink together, so that a smaller run has the same proportions.
pub(super) const ROWS: i64 = 3_500_000;
const BUFFERS_KB: i64 = 16 << 10;
/// A checkpoint begins when about half of this has been written.
const MAX_WAL_KB: i64 = 256 << 10;

/// A server does not start with less than two WAL files of 16 MB, nor work with much less than 128 buffers.
const MIN_WAL_KB: i64 = 32 << 10;
const MIN_BUFFERS_KB: i64 = 1 << 10;

/// What makes the difference to a small table: its key by `shared_buffers`, and checkpoints while it is filled.
const MIN_KEY_BY_BUFFERS: f64 = 4.0;
const MIN_CHECKPOINTS: usize = 2;

const CLIENTS: u32 = 4;

/// The rows of an INSERT, which is a transaction. With fewer, the time would be that of flushes.
const ROWS_OF_AN_INSERT: i64 = 100;

/// Rows that are read by ID, and as many transactions.
const READS: i64 = 20_000;

/// Recent rows are the last one of so many equal parts.
const RECENT_PART: i64 = 100;

/// Spans of time whose rows are read, and how many of them would have all rows.
const SPANS: i64 = 20;
const PART_OF_A_SPAN: i64 = 1000;

/// The module of contrib that looks into an index.
const INSPECTOR: &str = "pgstattuple";

/// The sizes at a scale.
struct Sizes {
    rows: i64,
    buffers_kb: i64,
    max_wal_kb: i64,
    reads: i64,
}

/// A contender's table.
struct Table {
    contender: &'static Contender,
    client: Client,
    /// Whether the server has [`INSPECTOR`].
    is_inspected: bool,
}

/// What the server counts of the whole cluster and of the table `posts`.
struct Counted {
    wal_bytes: f64,
    full_page_images: f64,
    key_reads: f64,
    table_reads: f64,
    checkpoints: usize,
}

/// Milliseconds since 1970, the second one not included.
#[derive(Clone, Copy, Debug)]
struct Span {
    since: i64,
    until: i64,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let sizes = Sizes::at(plan.scale);
    let server = server::builder()
        .setting("shared_buffers", &format!("{}kB", sizes.buffers_kb))
        .setting("max_wal_size", &format!("{}kB", sizes.max_wal_kb))
        .setting("checkpoint_timeout", "5min")
        .setting("wal_buffers", "-1")
        .setting("log_checkpoints", "on")
        .setting("fsync", "on")
        .start();
    let is_inspected = installation::has_module(INSPECTOR);
    if !is_inspected {
        findings.note(format!(
            "The density of a large key is not measured: this PostgreSQL has no {INSPECTOR}."
        ));
    }
    let mut tables: Vec<Table> = contenders
        .iter()
        .filter(|contender| NAMES.contains(&contender.name))
        .map(|contender| Table::new(&server, contender, is_inspected))
        .collect();
    // Not recorded: it creates the WAL files, which the others reuse.
    if let Some(table) = tables.first_mut() {
        table.fill(&server, &sizes);
        table.empty();
    }
    interleaved(plan.rounds, &mut tables, |round, table| {
        if round >= ROUNDS {
            return;
        }
        table.measure_filling(&server, &sizes, round, findings);
        table.measure_reading(&server, &sizes, round, findings);
        // The disk has room for one of them at a time.
        table.empty();
    });
}

impl Sizes {
    fn at(scale: f64) -> Self {
        Sizes {
            rows: scaled(ROWS, scale),
            buffers_kb: scaled(BUFFERS_KB, scale).max(MIN_BUFFERS_KB),
            max_wal_kb: scaled(MAX_WAL_KB, scale).max(MIN_WAL_KB),
            reads: scaled(READS, scale),
        }
    }

    /// Whether the table outgrows memory, and that costs something.
    fn is_large(&self, key_bytes: f64, checkpoints: usize) -> bool {
        key_bytes >= MIN_KEY_BY_BUFFERS * (self.buffers_kb << 10) as f64
            && checkpoints >= MIN_CHECKPOINTS
    }
}

impl Table {
    fn new(server: &Cluster, contender: &'static Contender, is_inspected: bool) -> Self {
        let mut client = server::database_of(server, contender);
        if is_inspected {
            execute(&mut client, &format!("CREATE EXTENSION {INSPECTOR}"));
        }
        execute(&mut client, &contender.create_table());
        // Every table has it, since those without time in their IDs need it.
        execute(
            &mut client,
            "ALTER TABLE posts ADD COLUMN created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        );
        Table { contender, client, is_inspected }
    }

    /// pgbench's result for the transactions that fill the table.
    fn fill(&mut self, server: &Cluster, sizes: &Sizes) -> Outcome {
        let transactions = sizes.rows / ROWS_OF_AN_INSERT / i64::from(CLIENTS);
        let insert = self.contender.insert(ROWS_OF_AN_INSERT);
        Outcome::of(server, self.contender.name, CLIENTS, (transactions as u32).max(1), &insert)
    }

    fn empty(&mut self) {
        execute(&mut self.client, "TRUNCATE posts");
        execute(&mut self.client, "DROP INDEX IF EXISTS by_time");
        execute(&mut self.client, "DROP TABLE IF EXISTS any_rows, recent_rows");
        // Pages of one table that are still dirty must not count for the next, and its files must be gone.
        execute(&mut self.client, "CHECKPOINT");
    }

    fn measure_filling(
        &mut self,
        server: &Cluster,
        sizes: &Sizes,
        round: usize,
        findings: &mut Findings,
    ) {
        let before = self.counted(server);
        let filled = self.fill(server, sizes);
        let used = self.counted(server).since(&before);
        let rows = f64::from(filled.transactions) * ROWS_OF_AN_INSERT as f64;
        let key_bytes = self.bytes_of("posts_pkey");
        let name = self.contender.name;
        let mut add = |measure, value| findings.samples.add(round, name, measure, value);
        add(Measure::LargeRowsPerSecond, filled.tps * ROWS_OF_AN_INSERT as f64);
        add(Measure::LargeWalBytes, used.wal_bytes / rows);
        add(Measure::LargeFullPageImages, used.full_page_images / rows * 1000.0);
        add(Measure::LargeCheckpoints, used.checkpoints as f64);
        add(Measure::LargeKeyReads, used.key_reads / rows * 1000.0);
        add(Measure::LargeKeyBytes, key_bytes);
        if self.is_inspected {
            let density = "SELECT avg_leaf_density FROM pgstatindex('posts_pkey')";
            let density = self.client.query_one(density, &[]).expect("the key can be inspected");
            add(Measure::LargeLeafDensity, density.get(0));
        }
        if !sizes.is_large(key_bytes, used.checkpoints) {
            findings.note(format!(
                "The table of {} in the part `large` is not large: its key should have at least {MIN_KEY_BY_BUFFERS} times \
                 `shared_buffers`, and {MIN_CHECKPOINTS} checkpoints should begin.",
                self.contender.title
            ));
        }
    }

    fn measure_reading(
        &mut self,
        server: &Cluster,
        sizes: &Sizes,
        round: usize,
        findings: &mut Findings,
    ) {
        // As autovacuum would by now. It is off, since it could begin in the middle of any measurement.
        execute(&mut self.client, "VACUUM (ANALYZE) posts");
        self.choose_rows(sizes);
        // Else pages that are still dirty would be written while others are read.
        execute(&mut self.client, "CHECKPOINT");
        let name = self.contender.name;
        let mut add = |measure, value| findings.samples.add(round, name, measure, value);
        for (rows, time, pages) in [
            ("any_rows", Measure::LargeReadUs, Measure::LargeReadPages),
            ("recent_rows", Measure::LargeRecentReadUs, Measure::LargeRecentReadPages),
        ] {
            let (us, read) = self.read_by_id(server, sizes, rows);
            add(time, us);
            add(pages, read);
        }
        if of_span(name).is_none() {
            execute(&mut self.client, "CREATE INDEX by_time ON posts (created_at)");
            add(Measure::LargeTimeIndexBytes, self.bytes_of("by_time"));
        }
        // The first time is not recorded: a new index has to be cached as the key is by now.
        let spans = self.spans();
        self.read_by_time(&spans);
        let (time, rows) = self.read_by_time(&spans);
        if rows == 0 {
            findings.note("No rows are read by time: a span has none at this scale.".to_owned());
        } else {
            add(Measure::LargeSpanMs, time.as_secs_f64() * 1e3 / rows as f64 * 1e3);
        }
    }

    /// Creates tables of rows to read, in random order: of any rows, and of those inserted last.
    fn choose_rows(&mut self, sizes: &Sizes) {
        let percent = sizes.reads as f64 / sizes.rows as f64 * 100.0;
        let recent = format!(
            "created_at >= (SELECT percentile_disc(1 - 1.0 / {RECENT_PART}) WITHIN GROUP (ORDER BY created_at)
                            FROM any_rows)"
        );
        for (name, rows) in [
            ("any_rows", format!("posts TABLESAMPLE BERNOULLI ({percent})")),
            (
                "recent_rows",
                format!("posts WHERE {recent} ORDER BY random() LIMIT {}", sizes.reads),
            ),
        ] {
            let create = format!(
                "CREATE TABLE {name} AS SELECT row_number() OVER (ORDER BY random()) AS n, *
                 FROM (SELECT id, created_at FROM {rows}) AS chosen"
            );
            execute(&mut self.client, &create);
            execute(&mut self.client, &format!("ALTER TABLE {name} ADD PRIMARY KEY (n)"));
            execute(&mut self.client, &format!("VACUUM (ANALYZE) {name}"));
        }
    }

    /// The microseconds of a transaction that reads one row, and the pages of the key and the table that it has to get from
    /// the kernel.
    fn read_by_id(&mut self, server: &Cluster, sizes: &Sizes, rows: &str) -> (f64, f64) {
        let chosen = self.count_of(rows);
        let read = format!(
            "\\set n random(1, {chosen})\nSELECT body FROM posts JOIN {rows} USING (id) WHERE n = :n;"
        );
        let before = self.counted(server);
        let outcome = Outcome::of(server, self.contender.name, 1, sizes.reads as u32, &read);
        let used = self.counted(server).since(&before);
        let pages = used.key_reads + used.table_reads;
        (1e6 / outcome.tps, pages / f64::from(outcome.transactions))
    }

    /// The time for the rows of all spans, and their number.
    fn read_by_time(&mut self, spans: &[Span]) -> (Duration, i64) {
        let (mut time, mut rows) = (Duration::ZERO, 0);
        for &span in spans {
            let condition = of_span(self.contender.name).unwrap_or(created_in)(span);
            // An index alone could answer count(*).
            let read = format!("SELECT count(*), sum(length(body)) FROM posts WHERE {condition}");
            let read = self.client.prepare(&read).expect("the query is valid");
            let began = Instant::now();
            let row = self.client.query_one(&read, &[]).expect("the rows can be read");
            time += began.elapsed();
            rows += row.get::<_, i64>(0);
        }
        (time, rows)
    }

    /// Spans of about as many rows each, from the whole time in which the table was filled.
    fn spans(&mut self) -> Vec<Span> {
        let chosen = self.count_of("any_rows");
        let (step, rows) = ((chosen / SPANS).max(1), (chosen / PART_OF_A_SPAN).max(1));
        let spans = format!(
            "SELECT (extract(epoch FROM since) * 1000)::bigint, (extract(epoch FROM until) * 1000)::bigint
             FROM (SELECT created_at AS since,
                          lead(created_at, {rows}) OVER (ORDER BY created_at) AS until,
                          row_number() OVER (ORDER BY created_at) AS place
                   FROM any_rows) AS spans
             WHERE (place - 1) % {step} = 0 AND until IS NOT NULL"
        );
        let rows =
            self.client.query(spans.as_str(), &[]).expect("the chosen rows have their times");
        rows.iter().map(|row| Span { since: row.get(0), until: row.get(1) }).collect()
    }

    /// What has been counted so far, by pgbench's sessions and this one.
    fn counted(&mut self, server: &Cluster) -> Counted {
        // A session reports what it has counted before it leaves pg_stat_activity.
        wait_for(
            &mut self.client,
            "SELECT count(*) = 1 FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend'",
            "pgbench's sessions are gone",
        );
        execute(&mut self.client, "SELECT pg_stat_force_next_flush()");
        let counted = "SELECT wal_bytes::float8, wal_fpi::float8, idx_blks_read::float8, heap_blks_read::float8
                       FROM pg_stat_wal, pg_statio_user_tables WHERE relname = 'posts'";
        let row = self.client.query_one(counted, &[]).expect("statistics can be read");
        Counted {
            wal_bytes: row.get(0),
            full_page_images: row.get(1),
            key_reads: row.get(2),
            table_reads: row.get(3),
            checkpoints: checkpoints_in(&server.log()),
        }
    }

    fn bytes_of(&mut self, relation: &str) -> f64 {
        let bytes = format!("SELECT pg_relation_size('{relation}')::float8");
        self.client.query_one(&bytes, &[]).expect("it has a size").get(0)
    }

    fn count_of(&mut self, table: &str) -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        self.client.query_one(&count, &[]).expect("it can be read").get(0)
    }
}

impl Counted {
    fn since(&self, before: &Counted) -> Counted {
        Counted {
            wal_bytes: self.wal_bytes - before.wal_bytes,
            full_page_images: self.full_page_images - before.full_page_images,
            key_reads: self.key_reads - before.key_reads,
            table_reads: self.table_reads - before.table_reads,
            checkpoints: self.checkpoints - before.checkpoints,
        }
    }
}

fn execute(client: &mut Client, statement: &str) {
    client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// The checkpoints in a server's log that began by themselves, because of WAL or time.
fn checkpoints_in(log: &str) -> usize {
    ["checkpoint starting: wal", "checkpoint starting: time"]
        .iter()
        .map(|begins| log.matches(begins).count())
        .sum()
}

/// The condition for IDs of a span of time; `None` for a contender whose IDs have no time.
fn of_span(contender: &str) -> Option<fn(Span) -> String> {
    match contender {
        "ours_cache_1" => Some(ours_in),
        "pgedge" => Some(pgedge_in),
        "uuid_v7" => Some(uuid_v7_in),
        _ => None,
    }
}

fn created_in(Span { since, until }: Span) -> String {
    format!(
        "created_at >= to_timestamp({since} / 1000.0) AND created_at < to_timestamp({until} / 1000.0)"
    )
}

fn ours_in(Span { since, until }: Span) -> String {
    format!(
        "snowflake_between(id, to_timestamp({since} / 1000.0), to_timestamp({until} / 1000.0), '{ROOMY}')"
    )
}

/// pgEdge's extension has no function for it: milliseconds since 2023 are above 22 other bits.
fn pgedge_in(Span { since, until }: Span) -> String {
    const EPOCH: i64 = 1_672_531_200_000;
    format!("id >= {} AND id < {}", (since - EPOCH) << 22, (until - EPOCH) << 22)
}

/// Nor has core one: milliseconds since 1970 are the first 48 bits, in RFC 9562.
fn uuid_v7_in(Span { since, until }: Span) -> String {
    format!("id >= '{since:012x}{0:020x}' AND id < '{until:012x}{0:020x}'", 0)
}

#[cfg(test)]
mod tests {
    use super::{Sizes, Span, checkpoints_in, of_span, pgedge_in, uuid_v7_in};

    #[test]
    fn a_smaller_run_has_the_same_proportions() {
        let by_buffers = |sizes: Sizes| {
            let by_buffers = |figure: i64| figure as f64 / sizes.buffers_kb as f64;
            [by_buffers(sizes.rows), by_buffers(sizes.max_wal_kb)].map(f64::round)
        };
        assert_eq!(by_buffers(Sizes::at(0.2)), by_buffers(Sizes::at(1.0)));
    }

    #[test]
    fn a_table_is_large_if_its_key_outgrows_memory_and_checkpoints_begin() {
        let (full, buffers) = (Sizes::at(1.0), 16.0 * 1024.0 * 1024.0);
        assert!(full.is_large(4.0 * buffers, 2));
        assert!(!full.is_large(3.9 * buffers, 2));
        assert!(!full.is_large(4.0 * buffers, 1));
    }

    #[test]
    fn a_checkpoint_that_was_asked_for_is_not_counted() {
        let log = "LOG:  checkpoint starting: immediate force wait\nLOG:  checkpoint complete: wrote 3 buffers\n\
                   LOG:  checkpoint starting: wal\nLOG:  checkpoint starting: time\n\
                   LOG:  checkpoint starting: fast force wait\n";
        assert_eq!(checkpoints_in(log), 2);
    }

    /// The example of RFC 9562, of 2022-02-22 19:22:22 UTC.
    #[test]
    fn the_span_of_a_version_7_uuid_begins_at_its_millisecond() {
        let span = Span { since: 1_645_557_742_000, until: 1_645_557_742_001 };
        assert_eq!(
            uuid_v7_in(span),
            "id >= '017f22e279b000000000000000000000' AND id < '017f22e279b100000000000000000000'"
        );
    }

    #[test]
    fn the_span_of_pgedges_ids_has_those_of_all_nodes_and_counters() {
        let span = Span { since: 1_672_531_200_001, until: 1_672_531_200_002 };
        assert_eq!(pgedge_in(span), "id >= 4194304 AND id < 8388608");
    }

    #[test]
    fn ids_without_time_need_a_column() {
        let without = super::NAMES.into_iter().filter(|name| of_span(name).is_none());
        assert_eq!(without.collect::<Vec<_>>(), ["core_identity", "uuid_v4"]);
    }
}
