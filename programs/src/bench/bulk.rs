//! Many rows in one INSERT, and the size of the primary key afterwards.

use crate::bench::contender::Contender;
use crate::bench::limits::is_due;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server::{self, wal_bytes};
use crate::bench::turns::interleaved;
use pg_snowflake_harness::process::{backend_pid, cpu_time};
use postgres::Client;
use postgres::error::SqlState;
use std::time::Instant;

pub(super) const ROWS: i64 = 1_000_000;

/// The measures of a turn that limits use.
const JUDGED: [Measure; 2] = [Measure::BulkSeconds, Measure::KeyBytes];

/// A contender's table, and the statement that fills it.
struct Table {
    contender: &'static Contender,
    client: Client,
    pid: i32,
    insert: String,
    /// The key rejected its IDs.
    is_refused: bool,
}

/// What an INSERT used and left.
struct Filled {
    seconds: f64,
    cpu_seconds: f64,
    key_bytes: f64,
    wal_bytes: f64,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().start();
    let rows = plan.scaled(ROWS);
    let mut tables: Vec<Table> = contenders
        .iter()
        .map(|contender| {
            let mut client = server::database_of(&server, contender);
            let create = contender.create_source(rows) + ";" + &contender.create_table();
            client.batch_execute(&create).expect("tables can be created");
            let pid = backend_pid(&mut client);
            Table {
                contender,
                client,
                pid,
                insert: contender.insert_from_source(rows),
                is_refused: false,
            }
        })
        .collect();
    // The first run is not recorded: it fills the caches and creates the WAL files.
    for table in &mut tables {
        table.fill(findings);
    }
    interleaved(plan.rounds, &mut tables, |round, table| {
        if !JUDGED.into_iter().any(|measure| is_due(round, plan.rounds, measure, table.contender)) {
            return;
        }
        let Some(filled) = table.fill(findings) else { return };
        let Filled { seconds, cpu_seconds, key_bytes, wal_bytes } = filled;
        let mut add =
            |measure, value| findings.samples.add(round, table.contender.name, measure, value);
        add(Measure::BulkSeconds, seconds);
        add(Measure::BulkCpuSeconds, cpu_seconds);
        add(Measure::KeyBytes, key_bytes);
        add(Measure::BulkWalBytes, wal_bytes / rows as f64);
    });
}

impl Table {
    /// `None` if the key rejects its IDs.
    fn fill(&mut self, findings: &mut Findings) -> Option<Filled> {
        if self.is_refused {
            return None;
        }
        let Table { contender, client, pid, insert, .. } = self;
        client.batch_execute("TRUNCATE posts").expect("a table can be emptied");
        // Pages that the last INSERT left dirty must not count for the next one.
        client.batch_execute("CHECKPOINT").expect("a checkpoint can be written");
        let wal = wal_bytes(client);
        let cpu = cpu_time(*pid);
        let began = Instant::now();
        match client.execute(insert.as_str(), &[]) {
            Err(error)
                if contender.may_repeat && error.code() == Some(&SqlState::UNIQUE_VIOLATION) =>
            {
                self.is_refused = true;
                findings.note(format!(
                    "{} fills no table by one INSERT: its ids repeat, and the primary key refuses them.",
                    contender.title
                ));
                return None;
            }
            Err(error) => panic!("{}: rows cannot be inserted: {error:?}", contender.name),
            Ok(_) => {}
        }
        let seconds = began.elapsed().as_secs_f64();
        let cpu_seconds = (cpu_time(*pid) - cpu).as_secs_f64();
        let wal_bytes = wal_bytes(client) - wal;
        let key: i64 = client
            .query_one("SELECT pg_relation_size('posts_pkey')", &[])
            .expect("the key has a size")
            .get(0);
        Some(Filled { seconds, cpu_seconds, key_bytes: key as f64, wal_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::JUDGED;
    use crate::bench::contenders::ALL;
    use crate::bench::limits::is_due;

    #[test]
    fn contenders_whose_time_or_size_has_a_limit_have_a_turn_in_each_round() {
        let is_due = |round, contender| {
            JUDGED.into_iter().any(|measure| is_due(round, 9, measure, contender))
        };
        let due = ALL.into_iter().filter(|contender| is_due(1, contender));
        let due: Vec<&str> = due.map(|contender| contender.name).collect();
        assert_eq!(
            due,
            ["core_cache_1", "ours_cache_1", "pgedge", "uuid_v7", "ready_ids", "ready_uuids"]
        );
        assert!(ALL.into_iter().all(|contender| is_due(3, contender)));
    }
}
