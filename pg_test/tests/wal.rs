//! What a sequence writes to the WAL.

use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::wal::{insert_lsn, sequence_records_since};
use postgres::Client;
use std::time::{Duration, Instant};

#[test]
fn a_busy_sequence_writes_about_ten_records_a_second() {
    let cluster = Cluster::new();
    let mut client = cluster.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();

    let busy = Duration::from_secs(2);
    let start = insert_lsn(&mut client);
    let deadline = Instant::now() + busy;
    while Instant::now() < deadline {
        take(&mut client, "snowflake_nextval('s', 5)", 1000);
    }

    let records = sequence_records_since(&cluster, &mut client, &start);
    assert!((10..=25).contains(&records), "{records} records in {busy:?}");
}

#[test]
fn core_nextval_is_seen_to_write_a_record_per_32_values() {
    let cluster = Cluster::new();
    let mut client = cluster.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();

    let start = insert_lsn(&mut client);
    take(&mut client, "nextval('s')", 33_000);

    assert_eq!(sequence_records_since(&cluster, &mut client, &start), 1000);
}

#[test]
fn ids_within_100_ms_of_a_logged_one_write_nothing() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
    let mut client = cluster.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();
    // Ahead of the clock, so that only the ids move the counter.
    client
        .batch_execute(
            "SELECT setval('s', (snowflake_nextval('s', 0) >> 13) + 3600000::bigint * 1024)",
        )
        .unwrap();
    take(&mut client, "snowflake_nextval('s', 5)", 1);

    let start = insert_lsn(&mut client);
    take(&mut client, "snowflake_nextval('s', 5)", 102_400);
    let covered = sequence_records_since(&cluster, &mut client, &start);
    take(&mut client, "snowflake_nextval('s', 5)", 1);
    let beyond = sequence_records_since(&cluster, &mut client, &start);

    assert_eq!((covered, beyond), (0, 1));
}

#[test]
fn the_first_id_after_a_checkpoint_is_logged() {
    let cluster = Cluster::new();
    let mut client = cluster.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();
    take(&mut client, "snowflake_nextval('s', 5)", 1);
    client.batch_execute("CHECKPOINT").unwrap();

    let start = insert_lsn(&mut client);
    take(&mut client, "snowflake_nextval('s', 5)", 1);

    assert_eq!(sequence_records_since(&cluster, &mut client, &start), 1);
}

fn take(client: &mut Client, generator: &str, count: i32) {
    let query = format!("SELECT max({generator}) FROM generate_series(1, {count})");
    client.batch_execute(&query).unwrap();
}
