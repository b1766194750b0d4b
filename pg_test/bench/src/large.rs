//! A table that outgrows memory: several clients fill it on a server that flushes each commit and takes checkpoints, until its primary
//! key is several times larger than `shared_buffers`.

use crate::contenders::Contender;
use crate::measures::LARGE_ROUNDS;
use crate::run::{Run, database_of, empty, execute, server, tps, value};
use crate::turns::interleaved;
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::wait::wait_for;
use postgres::Client;

/// The kinds of keys between which people choose.
const NAMES: [&str; 5] = ["core_identity", "ours_cache_1", "pgedge", "uuid_v7", "uuid_v4"];

/// The size of everything depends on these three. They shrink together, so that a smaller run has the same proportions. A checkpoint
/// begins when about half of `max_wal_size` has been written.
const ROWS: i64 = 3_500_000;
const BUFFERS_KB: i64 = 16 << 10;
const MAX_WAL_KB: i64 = 256 << 10;

/// A server does not start with less than two WAL files of 16 MB, nor work with much less than 128 buffers.
const MIN_WAL_KB: i64 = 32 << 10;
const MIN_BUFFERS_KB: i64 = 1 << 10;

const CLIENTS: u32 = 4;

/// The rows of an INSERT, which is a transaction. With fewer, the time would be that of flushes.
const ROWS_OF_AN_INSERT: i64 = 100;

pub fn large(run: &mut Run) {
    let buffers_kb = run.scaled(BUFFERS_KB).max(MIN_BUFFERS_KB);
    let server = server()
        .setting("shared_buffers", &format!("{buffers_kb}kB"))
        .setting("max_wal_size", &format!("{}kB", run.scaled(MAX_WAL_KB).max(MIN_WAL_KB)))
        .setting("checkpoint_timeout", "5min")
        .setting("wal_buffers", "-1")
        .setting("log_checkpoints", "on")
        .setting("fsync", "on")
        .start();
    let open = |contender: &&'static Contender| {
        let mut client = database_of(&server, contender);
        execute(&mut client, &contender.create_table());
        let created_at = "created_at timestamptz NOT NULL DEFAULT clock_timestamp()";
        execute(&mut client, &format!("ALTER TABLE posts ADD COLUMN {created_at}"));
        (*contender, client)
    };
    let contenders = run.contenders.iter().filter(|contender| NAMES.contains(&contender.name));
    let mut tables: Vec<(&Contender, Client)> = contenders.map(open).collect();
    let transactions = (run.scaled(ROWS) / ROWS_OF_AN_INSERT / i64::from(CLIENTS)).max(1) as u32;
    let rows = (f64::from(transactions * CLIENTS)) * ROWS_OF_AN_INSERT as f64;
    let fill = |contender: &Contender| {
        let insert = contender.insert(&format!("generate_series(1, {ROWS_OF_AN_INSERT})"), ROWS_OF_AN_INSERT);
        tps(&server, contender.name, CLIENTS, transactions, &insert)
    };
    // Not recorded: it creates the WAL files, which the others reuse.
    fill(tables[0].0);
    empty(&mut tables[0].1);
    interleaved(run.rounds.min(LARGE_ROUNDS), &mut tables, |round, (contender, client)| {
        let before = counted(&server, client);
        let tps = fill(contender);
        let after = counted(&server, client);
        let [wal_bytes, checkpoints] = std::array::from_fn(|n| after[n] - before[n]);
        let key_bytes = value(client, "SELECT pg_relation_size('posts_pkey')::float8");
        let mut add = |measure, value| run.samples.add(round, contender.name, measure, value);
        add("large_rows_per_s", tps * ROWS_OF_AN_INSERT as f64);
        add("large_wal_bytes_per_row", wal_bytes / rows);
        add("large_key_bytes", key_bytes);
        // What makes the difference to a small table.
        if key_bytes < 4.0 * (buffers_kb << 10) as f64 || checkpoints < 2.0 {
            let title = contender.title;
            run.note(format!(
                "The table of {title} in the part `large` is not large: its key should have at least 4 times `shared_buffers`, \
                 and 2 checkpoints should begin."
            ));
        }
        // The disk has room for one of them at a time.
        empty(client);
    });
}

/// The bytes of WAL and the checkpoints so far, by pgbench's sessions and this one.
fn counted(server: &Cluster, client: &mut Client) -> [f64; 2] {
    // A session reports what it has counted before it leaves pg_stat_activity.
    wait_for(
        client,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'",
        "pgbench's sessions are gone",
    );
    execute(client, "SELECT pg_stat_force_next_flush()");
    [value(client, "SELECT wal_bytes::float8 FROM pg_stat_wal"), checkpoints_in(&server.log()) as f64]
}

/// The checkpoints in a server's log that began by themselves, because of WAL or time.
fn checkpoints_in(log: &str) -> usize {
    let begins = ["checkpoint starting: wal", "checkpoint starting: time"];
    begins.iter().map(|begin| log.matches(begin).count()).sum()
}

#[test]
fn a_checkpoint_that_was_asked_for_is_not_counted() {
    let log = "LOG:  checkpoint starting: immediate force wait\nLOG:  checkpoint complete: wrote 3 buffers\n\
               LOG:  checkpoint starting: wal\nLOG:  checkpoint starting: time\n\
               LOG:  checkpoint starting: fast force wait\n";
    assert_eq!(checkpoints_in(log), 2);
}
