//! `ALTER SEQUENCE … CACHE n`: a session takes n counters at once. What happens to the rest.

use pg_snowflake_harness::prelude::*;

const TAKE: &str = "SELECT snowflake_nextval('s', 5)";

/// In turns, so that each would have cached counters of an earlier tick than the other has just used.
#[test]
fn sessions_that_cache_and_alternate_stay_with_the_clock() {
    let cluster = Cluster::new();
    cluster.connect().batch_execute("CREATE SEQUENCE s CACHE 50").unwrap();
    let mut clients = [cluster.connect(), cluster.connect()];

    let ids: Vec<i64> = (0..2000)
        .map(|call| {
            let called_at = now_ms();
            let id = take_one(&mut clients[call % 2], TAKE);
            assert!(split(id).unix_ms >= called_at, "{:?}, called at {called_at}", split(id));
            id
        })
        .collect();

    assert_eq!(count_repeats(ids), 0);
}

/// By its own transaction: the script `cache`.
#[test]
fn ddl_by_any_session_discards_cached_counters() {
    let Ahead { cluster, mut client, start } = Ahead::caching(10);
    let recreate = format!("DROP SEQUENCE s; CREATE SEQUENCE s CACHE 10 START {}", start + 1000);
    // The statement after the first of ten counters was used, and the offset of the next counter from the first.
    let cases = [
        ("ALTER SEQUENCE s CACHE 1", 10),
        ("ALTER SEQUENCE s CACHE 20", 10),
        ("ALTER SEQUENCE s MAXVALUE 9223372036854775806", 10),
        ("ALTER SEQUENCE s START 7", 10),
        ("ALTER SEQUENCE s SET UNLOGGED", 10),
        // These two do not change the sequence's storage.
        ("ALTER SEQUENCE s OWNED BY NONE", 10),
        ("ALTER SEQUENCE s OWNED BY posts.id", 10),
        // After a reset the sequence is behind what the session took, and the session continues above that.
        ("ALTER SEQUENCE s RESTART", 10),
        ("TRUNCATE posts RESTART IDENTITY", 10),
        (&format!("ALTER SEQUENCE s RESTART {}", start + 500), 500),
        (&recreate, 1000),
        (&format!("BEGIN; {recreate}; COMMIT"), 1000),
    ];
    for (ddl, expected) in cases {
        for is_by_another in [false, true] {
            let sql = format!(
                "DROP TABLE IF EXISTS posts; DROP SEQUENCE IF EXISTS s; CREATE TABLE posts (id bigint); \
                 CREATE SEQUENCE s CACHE 10 START {start} OWNED BY posts.id"
            );
            client.batch_execute(&sql).unwrap();
            assert_eq!(counter(take_one(&mut client, TAKE)), start);
            let mut another = cluster.connect();
            let changing = if is_by_another { &mut another } else { &mut client };
            changing.batch_execute(ddl).unwrap();
            assert_eq!(counter(take_one(&mut client, TAKE)) - start, expected, "{ddl}, by another: {is_by_another}");
        }
    }
}

#[test]
fn a_page_that_was_evicted_within_a_transaction_is_read_again() {
    let cluster = Cluster::builder().setting("shared_buffers", "128kB").start();
    let mut client = cluster.connect();
    let sql = "CREATE SEQUENCE s; CREATE TABLE many AS SELECT g, repeat('x', 500) AS filler FROM generate_series(1, 5000) AS g; BEGIN";
    client.batch_execute(sql).unwrap();
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.extend(take(&mut client, &format!("{TAKE} FROM generate_series(1, 3)")));
        client.batch_execute("UPDATE many SET g = g + 1").unwrap();
    }
    assert!(is_increasing(&ids));
}
