//! What a sequence writes to the WAL.

use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::sequence;

/// How many counters a record covers: 100 ms of the layout's full rate, which is why a busy sequence writes about ten per second.
const COVERED: i64 = 100 * SEQS;

#[test]
fn a_busy_sequence_writes_a_record_for_each_100_ms_of_ids() {
    let (cluster, mut client) = server_with("CREATE SEQUENCE s");

    let start = insert_lsn(&mut client);
    let mut counters = Vec::new();
    while counters.last().zip(counters.first()).is_none_or(|(last, first)| last - first < 10 * COVERED) {
        let thousand = "SELECT snowflake_nextval('s', 5) FROM generate_series(1, 1000)";
        counters.extend(sequence::take(&mut client, thousand).into_iter().map(counter));
    }

    // If the machine pauses, the clock passes what was covered, and the next record covers the counters after that.
    let mut due = 0;
    let mut covered = 0;
    for taken in counters {
        if taken > covered {
            covered = taken + COVERED;
            due += 1;
        }
    }
    assert_eq!(sequence_records_since(&cluster, &mut client, &start), due);
}

#[test]
fn ids_within_100_ms_of_a_logged_one_write_nothing() {
    let Ahead { cluster, mut client, .. } = Ahead::caching(1);
    take(&mut client, 1);

    let start = insert_lsn(&mut client);
    take(&mut client, 102_400);
    let covered = sequence_records_since(&cluster, &mut client, &start);
    take(&mut client, 1);
    let beyond = sequence_records_since(&cluster, &mut client, &start);

    assert_eq!((covered, beyond), (0, 1));
}

fn take(client: &mut Client, count: i32) {
    client.batch_execute(&format!("SELECT max(snowflake_nextval('s', 5)) FROM generate_series(1, {count})")).unwrap();
}
