//! The time to read the view of all generating columns.

use crate::machine;
use pg_snowflake_harness::prelude::*;
use std::time::{Duration, Instant};

const COLUMNS: usize = 1000;

/// How many times as long a session's first reading of the view may take as its first reading of core's view of the same
/// sequences. Measured: 3 to 4, also with other programs on every core.
const LIMIT: f64 = 8.0;

#[test]
fn a_new_session_reads_a_thousand_generating_columns_in_at_most_8_times_the_time_of_pg_sequences() {
    let _machine = machine();
    let cluster = Cluster::new();
    // In several transactions: one cannot hold the locks of so many new relations.
    for first in (1..=COLUMNS).step_by(100) {
        let sql = format!(
            "DO $$ BEGIN
                 FOR i IN {first}..{first} + 99 LOOP
                     EXECUTE format('CREATE SEQUENCE s%s', i);
                     EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY DEFAULT snowflake_nextval(%L, 5))',
                                    i, 's' || i);
                     EXECUTE format('INSERT INTO t%s DEFAULT VALUES', i);
                 END LOOP;
             END $$"
        );
        run(&mut cluster.connect(), &sql);
    }

    let mut ratios: Vec<f64> = (0..7)
        .map(|_| {
            let columns = time_of_first(&cluster, "SELECT last_id_at, c.* FROM snowflake_columns AS c");
            let sequences = time_of_first(&cluster, "SELECT last_value, s.* FROM pg_sequences AS s");
            println!("{COLUMNS} columns: {columns:.1?}; sequences: {sequences:.1?}");
            columns.div_duration_f64(sequences)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    println!("{ratios:.1?}");
    assert!(ratios[3] < LIMIT, "{ratios:.1?}");
}

/// The time of a session's first statement, which returns a value for each column.
fn time_of_first(cluster: &Cluster, statement: &str) -> Duration {
    let mut session = cluster.connect();
    let asked = Instant::now();
    let rows = session.simple_query(statement).unwrap();
    let elapsed = asked.elapsed();
    let known = rows.iter().filter(|row| match row {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).is_some(),
        _ => false,
    });
    assert_eq!(known.count(), COLUMNS);
    elapsed
}
