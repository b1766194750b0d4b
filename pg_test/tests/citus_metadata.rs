//! The metadata of Citus as several sessions and servers see them, in tables of that form and without Citus: the script `citus` has
//! the tests of one session. `citus.rs` has the tests with Citus.

use pg_snowflake_harness::prelude::*;

const METADATA: &str = include_str!("../data/citus.sql");

/// What Citus's triggers send after a change of its metadata: a message about that relation.
fn notify(client: &mut Client, relation: &str) {
    let sql = format!("SET allow_system_table_mods = on; ALTER TABLE {relation} SET (fillfactor = 100); RESET allow_system_table_mods");
    client.batch_execute(&sql).unwrap();
}

fn with_metadata() -> (Database, Client) {
    let (database, mut client) = database_with("CREATE SEQUENCE s");
    client.batch_execute(METADATA).unwrap();
    (database, client)
}

const UNSET: Refusal = Refusal { sqlstate: "55000", message: "pg_snowflake.shard_id is not set", hint: "pg_snowflake.shard_id" };

const SHARD: &str = "SELECT snowflake_shard_id(snowflake_nextval('s'))";
const SHARD_OF_BATCH: &str = "SELECT snowflake_shard_id(snowflake_nextvals('s', 1))";

/// On a server of its own: a session that misses messages of others looks again, too.
#[test]
fn the_group_is_the_shard_where_nothing_else_is_set_and_is_read_once_and_after_a_change() {
    let (cluster, mut client) = server_with("CREATE SEQUENCE s");
    run(&mut client, METADATA);
    let mut other = cluster.connect();
    assert_eq!(printed(&mut client, SHARD), "3");
    assert_eq!(printed(&mut other, "SELECT snowflake_current_shard()"), "3");

    // Without a message, the session does not look again.
    client.batch_execute("UPDATE pg_dist_local_group SET groupid = 4").unwrap();
    assert_eq!(printed(&mut other, SHARD), "3");
    notify(&mut client, "pg_dist_local_group");
    assert_eq!(printed(&mut other, SHARD), "4");

    client.batch_execute("SET pg_snowflake.shard_id = 7").unwrap();
    assert_eq!(printed(&mut client, SHARD), "7");
    client.batch_execute("RESET pg_snowflake.shard_id").unwrap();
    assert_eq!(printed(&mut client, SHARD), "4");
}

/// Citus resets the group of a node that it removes to 0, the coordinator's, and deletes all nodes from its table.
#[test]
fn a_server_that_is_not_a_node_does_not_generate_for_the_coordinators_shard() {
    let (database, mut client) = with_metadata();
    let mut other = database.connect();
    assert_eq!(printed(&mut other, SHARD), "3");
    client.batch_execute("UPDATE pg_dist_local_group SET groupid = 0").unwrap();
    notify(&mut client, "pg_dist_local_group");
    for session in [&mut client, &mut other] {
        assert_refused(session, "SELECT snowflake_nextval('s')", UNSET);
    }

    // The coordinator knows its nodes.
    client.batch_execute("INSERT INTO pg_dist_node VALUES (1, 1, 'db-1', 5432, 'primary')").unwrap();
    notify(&mut client, "pg_dist_node");
    for session in [&mut client, &mut other] {
        assert_eq!(printed(session, SHARD), "0");
    }
    client.batch_execute("DELETE FROM pg_dist_node").unwrap();
    notify(&mut client, "pg_dist_node");
    for session in [&mut client, &mut other] {
        assert_refused(session, "SELECT snowflake_nextval('s')", UNSET);
    }
}

/// Citus copies what is set for a database or a role to every node.
#[test]
fn the_columns_show_a_shard_that_citus_has_copied_to_every_node() {
    let (cluster, mut client) = server_with("CREATE SEQUENCE s");
    run(&mut client, METADATA);
    let setup = "LOAD 'pg_snowflake'; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s'::text::regclass));
            INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id')";
    client.batch_execute(setup).unwrap();
    let error = "SELECT left(error, 56) FROM snowflake_columns";
    let copied = "pg_snowflake.shard_id is the same on every node of Citus";
    for (whom, expected) in [("SYSTEM", ""), ("DATABASE postgres", copied), ("ROLE postgres", copied), ("ROLE ALL", copied)] {
        reload_with(&mut client, &format!("ALTER {whom} SET pg_snowflake.shard_id = 5"));
        wait_for(&mut cluster.connect(), "SELECT snowflake_current_shard() = 5", "the setting is there");
        assert_eq!(printed(&mut cluster.connect(), error), expected, "{whom}");
        reload_with(&mut client, &format!("ALTER {whom} RESET pg_snowflake.shard_id"));
    }
}

#[test]
fn a_call_that_waits_for_the_sequence_takes_the_group_of_afterwards() {
    let (database, mut client) = with_metadata();
    for (group, call) in [(4, SHARD), (5, SHARD_OF_BATCH)] {
        let mut waiting = database.connect();
        assert_eq!(printed(&mut waiting, "SELECT snowflake_current_shard()"), (group - 1).to_string());
        let sql = format!(
            "BEGIN; LOCK TABLE pg_dist_local_group; ALTER SEQUENCE s CACHE {group}; UPDATE pg_dist_local_group SET groupid = {group}"
        );
        client.batch_execute(&sql).unwrap();
        client.batch_execute("SET allow_system_table_mods = on; ALTER TABLE pg_dist_local_group SET (fillfactor = 100)").unwrap();
        let (shard, ()) = while_it_waits(&mut client, &mut waiting, |waiting| printed(waiting, call), |client| run(client, "COMMIT"));
        assert_eq!(shard, group.to_string());
    }
}

/// The server gets another number after the call has read it, and while the call waits for the table of nodes.
#[test]
fn a_call_that_waits_for_the_nodes_takes_the_group_of_afterwards() {
    let (database, mut client) = with_metadata();
    run(&mut client, "UPDATE pg_dist_local_group SET groupid = 0");
    let mut waiting = database.connect();
    run(&mut client, "BEGIN; LOCK TABLE pg_dist_node");
    let meanwhile = |client: &mut Client| {
        run(client, "UPDATE pg_dist_local_group SET groupid = 4; INSERT INTO pg_dist_node VALUES (1, 1, 'db-1', 5432, 'primary')");
        notify(client, "pg_dist_local_group");
        run(client, "COMMIT");
    };
    let (shard, ()) = while_it_waits(&mut client, &mut waiting, |waiting| printed(waiting, SHARD), meanwhile);
    assert_eq!(shard, "4");
}

/// A session that knows the sequence waits for it on the fast path, where a rolled-back ALTER leaves nothing to notice.
#[test]
fn a_call_that_waits_on_the_fast_path_takes_the_group_of_afterwards() {
    let (database, mut client) = with_metadata();
    // In the second turn, the session has cached counters that the clock does not pass.
    for (cache, group) in [(1, 4), (10, 5)] {
        run(&mut client, &format!("ALTER SEQUENCE s CACHE {cache} RESTART {}", counter_in_an_hour()));
        let mut waiting = database.connect();
        run(&mut waiting, "LOAD 'pg_snowflake'; SET pg_snowflake.max_lead = '2h'");
        let former = (group - 1).to_string();
        assert_eq!([printed(&mut waiting, SHARD), printed(&mut waiting, SHARD)], [&*former, &*former]);
        let mut other = database.connect();
        other.batch_execute("BEGIN; ALTER SEQUENCE s CACHE 2").unwrap();
        let meanwhile = |client: &mut Client| {
            run(client, &format!("UPDATE pg_dist_local_group SET groupid = {group}"));
            notify(client, "pg_dist_local_group");
            run(&mut other, "ROLLBACK");
        };
        let (shard, ()) = while_it_waits(&mut client, &mut waiting, |waiting| printed(waiting, SHARD), meanwhile);
        assert_eq!(shard, group.to_string());
    }
}

#[test]
fn a_standby_has_the_ranges() {
    let (primary, mut client) = server_with("CREATE SEQUENCE s");
    run(&mut client, METADATA);
    let sql = "CREATE TABLE posts (id bigint); INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id');
            INSERT INTO pg_dist_shard VALUES ('posts', 1, '0', '7'); INSERT INTO pg_dist_placement VALUES (1, 3)";
    client.batch_execute(sql).unwrap();
    assert_eq!(printed(&mut primary.standby().connect(), "SELECT snowflake_citus_ranges('posts')"), "{[0,8)}");
}
