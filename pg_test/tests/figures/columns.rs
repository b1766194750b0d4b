//! The time to read the view of all generating columns.

use crate::machine;
use pg_snowflake_harness::Cluster;
use std::time::{Duration, Instant};

const COLUMNS: usize = 1000;

/// The time that an exporter may take, which queries every few seconds.
const LIMIT: Duration = Duration::from_millis(200);

#[test]
fn a_new_session_sees_a_thousand_generating_columns_within_200_ms() {
    let _machine = machine();
    let cluster = Cluster::new();
    // In several transactions: one cannot hold the locks of so many new relations.
    for first in (1..=COLUMNS).step_by(100) {
        cluster
            .connect()
            .batch_execute(&format!(
                "DO $$ BEGIN
                     FOR i IN {first}..{first} + 99 LOOP
                         EXECUTE format('CREATE SEQUENCE s%s', i);
                         EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY DEFAULT snowflake_nextval(%L, 5))',
                                        i, 's' || i);
                         EXECUTE format('INSERT INTO t%s DEFAULT VALUES', i);
                     END LOOP;
                 END $$"
            ))
            .unwrap();
    }

    let mut times: Vec<Duration> = (0..7).map(|_| time_to_see_all(&cluster)).collect();
    times.sort();
    println!("{COLUMNS} columns in new sessions: {times:.1?}");
    assert!(times[3] < LIMIT, "{times:?}");
}

/// The time of a session's first statement, which reads every column of the view.
fn time_to_see_all(cluster: &Cluster) -> Duration {
    let mut session = cluster.connect();
    let asked = Instant::now();
    let rows = session.simple_query("SELECT * FROM snowflake_columns").unwrap();
    let elapsed = asked.elapsed();
    let standing = rows.iter().filter(|row| match row {
        postgres::SimpleQueryMessage::Row(row) => row.get("last_id_at").is_some(),
        _ => false,
    });
    assert_eq!(standing.count(), COLUMNS);
    elapsed
}
