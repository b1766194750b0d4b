//! The fast path: IDs that a session takes after its first, without opening the sequence, and with a reading of the clock that
//! may be some microseconds old.

use pg_snowflake_harness::ask::server_with_sequence;
use postgres::Client;

#[test]
fn changes_of_other_relations_do_not_make_a_session_open_the_sequence_again() {
    let (cluster, mut client) = server_with_sequence();
    let mut other = cluster.connect();
    let before = openings(&mut client);
    for round in 0..100 {
        other
            .batch_execute(&format!(
                "CREATE TEMP TABLE t{round} (id int PRIMARY KEY);
                 CREATE SEQUENCE s{round}; ALTER SEQUENCE s{round} CACHE 5"
            ))
            .unwrap();
        client.batch_execute("SELECT snowflake_nextval('s', 5)").unwrap();
    }
    // Other relations can share the slot in which the session counts changes of the sequence, one in 1,024.
    let opened = openings(&mut client) - before;
    assert!(opened <= 1 + 10, "{opened}");
}

/// How often sessions have opened the sequence and then accessed its page, which the server counts.
fn openings(client: &mut Client) -> i64 {
    client.batch_execute("SELECT pg_stat_force_next_flush()").unwrap();
    let accesses = "SELECT blks_hit + blks_read FROM pg_statio_user_sequences WHERE relname = 's'";
    client.query_one(accesses, &[]).unwrap().get(0)
}
