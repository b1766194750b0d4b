//! How the metadata of Citus are read, on servers that have tables of that form and not Citus. `citus.rs` has the tests with Citus.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{
    Refusal, assert_refused, database_with_sequence, printed, run, server_with_sequence,
};
use pg_snowflake_harness::process::backend_pid;
use pg_snowflake_harness::sequence::state;
use pg_snowflake_harness::wait::wait_for;
use postgres::Client;

const METADATA: &str = include_str!("citus_metadata/tables.sql");

/// What Citus's triggers send after a change of its metadata: a message about that relation.
fn notify(client: &mut Client, relation: &str) {
    client
        .batch_execute(&format!(
            "SET allow_system_table_mods = on; ALTER TABLE {relation} SET (fillfactor = 100); RESET allow_system_table_mods"
        ))
        .unwrap();
}

fn with_metadata() -> (Database, Client) {
    let (database, mut client) = database_with_sequence();
    client.batch_execute(METADATA).unwrap();
    (database, client)
}

const UNSET: Refusal = Refusal {
    sqlstate: "55000",
    message: "pg_snowflake.shard_id is not set",
    hint: "pg_snowflake.shard_id",
};

const SHARD: &str = "SELECT snowflake_shard_id(snowflake_nextval('s'))";
const SHARD_OF_BATCH: &str = "SELECT snowflake_shard_id(snowflake_nextvals('s', 1))";

/// On a server of its own: a session that misses messages of others looks again, too.
#[test]
fn the_group_is_the_shard_where_nothing_else_is_set_and_is_read_once_and_after_a_change() {
    let (cluster, mut client) = server_with_sequence();
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

#[test]
fn a_rolled_back_group_is_forgotten() {
    let (_database, mut client) = with_metadata();
    client.batch_execute("BEGIN; UPDATE pg_dist_local_group SET groupid = 9").unwrap();
    notify(&mut client, "pg_dist_local_group");
    assert_eq!(printed(&mut client, SHARD), "9");
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(printed(&mut client, SHARD), "3");
}

/// A major upgrade of PostgreSQL empties the table for a while.
#[test]
fn an_empty_or_a_negative_group_is_not_a_shard() {
    let (_database, mut client) = with_metadata();
    client.batch_execute("DELETE FROM pg_dist_local_group").unwrap();
    let before = state(&mut client, "s");
    assert_refused(&mut client, "SELECT snowflake_nextval('s')", UNSET);
    client.batch_execute("INSERT INTO pg_dist_local_group VALUES (-2)").unwrap();
    assert_refused(&mut client, "SELECT snowflake_nextval('s')", UNSET);
    assert_eq!(state(&mut client, "s"), before);
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
    client
        .batch_execute("INSERT INTO pg_dist_node VALUES (1, 1, 'db-1', 5432, 'primary')")
        .unwrap();
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

#[test]
fn a_group_that_the_layout_does_not_have_or_the_server_does_not_own_is_refused() {
    let (_database, mut client) = with_metadata();
    client.batch_execute("SET pg_snowflake.owned_shards = '0-2'").unwrap();
    let not_owned = Refusal {
        sqlstate: "55000",
        message: "shard 3 is not owned by this server",
        hint: "this node's group in Citus",
    };
    assert_refused(&mut client, "SELECT snowflake_nextval('s')", not_owned);
    client
        .batch_execute(
            "RESET pg_snowflake.owned_shards; UPDATE pg_dist_local_group SET groupid = 4096",
        )
        .unwrap();
    notify(&mut client, "pg_dist_local_group");
    let out_of_range = Refusal {
        sqlstate: "22023",
        message: "shard ID 4096 is out of range",
        hint: "This server's group in Citus is not in that range.",
    };
    assert_refused(&mut client, "SELECT snowflake_nextval('s')", out_of_range);
}

#[test]
fn the_ranges_are_those_of_this_group_and_follow_the_shards() {
    let (_database, mut client) = with_metadata();
    client
        .batch_execute(
            "CREATE TABLE posts (id bigint); CREATE TABLE words (id text); CREATE TABLE plain (id bigint);
             INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id'), ('words', 'h', 'id');
             INSERT INTO pg_dist_shard VALUES
                 ('posts', 1, '-2147483648', '-1'), ('posts', 2, '0', '1073741823'), ('posts', 3, '1073741824', '2147483647');
             INSERT INTO pg_dist_placement VALUES (1, 3), (2, 4), (3, 3)",
        )
        .unwrap();
    let ranges = "SELECT snowflake_citus_ranges('posts')";
    assert_eq!(printed(&mut client, ranges), "{[-2147483648,0),[1073741824,2147483648)}");

    let homed = "SELECT bool_and(hashint8(id) < 0 OR hashint8(id) >= 1073741824) AND bool_and(snowflake_shard_id(id) = 3)
        FROM (SELECT snowflake_nextval_homed_in_ranges('s', snowflake_current_shard(), snowflake_citus_ranges('posts')) AS id
              FROM generate_series(1, 1000)) AS ids";
    assert_eq!(printed(&mut client, homed), "t");

    // A shard moves away.
    client.batch_execute("UPDATE pg_dist_placement SET groupid = 4 WHERE shardid = 1").unwrap();
    notify(&mut client, "posts");
    assert_eq!(printed(&mut client, ranges), "{[1073741824,2147483648)}");
    // So does the last one, and this node is as far from each ID as from the next.
    client.batch_execute("UPDATE pg_dist_placement SET groupid = 4").unwrap();
    notify(&mut client, "posts");
    assert_eq!(printed(&mut client, ranges), "{[-2147483648,2147483648)}");
    // Two tables in turn, of which one changes.
    client
        .batch_execute(
            "CREATE TABLE users (id bigint); INSERT INTO pg_dist_partition VALUES ('users', 'h', 'id');
             INSERT INTO pg_dist_shard VALUES ('users', 4, '5', '6'); INSERT INTO pg_dist_placement VALUES (4, 3)",
        )
        .unwrap();
    let of_users = "SELECT snowflake_citus_ranges('users')";
    assert_eq!(printed(&mut client, of_users), "{[5,7)}");
    client.batch_execute("UPDATE pg_dist_shard SET shardmaxvalue = '7' WHERE shardid = 4").unwrap();
    assert_eq!(printed(&mut client, ranges), "{[-2147483648,2147483648)}");
    assert_eq!(printed(&mut client, of_users), "{[5,7)}");
    notify(&mut client, "users");
    assert_eq!(printed(&mut client, of_users), "{[5,8)}");
    // A shard that Citus is about to remove.
    client.batch_execute("UPDATE pg_dist_placement SET shardstate = 4").unwrap();
    notify(&mut client, "users");
    assert_eq!(printed(&mut client, of_users), "{[-2147483648,2147483648)}");
    // This node becomes the other.
    client.batch_execute("UPDATE pg_dist_local_group SET groupid = 4").unwrap();
    notify(&mut client, "pg_dist_local_group");
    assert_eq!(printed(&mut client, ranges), "{[-2147483648,2147483648)}");

    for table in ["words", "plain"] {
        let message = format!("table \"{table}\" is not distributed by the hash of a bigint");
        let expected =
            Refusal { sqlstate: "42809", message: &message, hint: "create_distributed_table()" };
        assert_refused(&mut client, &format!("SELECT snowflake_citus_ranges('{table}')"), expected);
    }
}

#[test]
fn a_sequence_in_the_range_of_a_node_group_is_refused_with_the_recipe() {
    let (_database, mut client) = database_with_sequence();
    for group in [1_i64, 2, 3, 32_766] {
        let (first, last) = ((group << 48) + 1, ((group + 1) << 48) + 1);
        client
            .batch_execute(&format!(
                "ALTER SEQUENCE s MINVALUE {first} MAXVALUE {last} START {first} RESTART"
            ))
            .unwrap();
        let before = state(&mut client, "s");
        let expected = Refusal {
            sqlstate: "55000",
            message: "sequence \"s\" cannot be used to generate IDs",
            hint: "SELECT run_command_on_all_nodes('CREATE SEQUENCE public.node_ids')",
        };
        let error = assert_refused(&mut client, "SELECT snowflake_nextval('s', 5)", expected);
        let detail =
            format!("Citus manages it, and has limited it to the numbers of node group {group},");
        assert!(error.detail().unwrap().starts_with(&detail), "{error:?}");
        assert_eq!(state(&mut client, "s"), before);
    }
    // Others that are close to it.
    for (first, last) in
        [(1_i64, (1 << 48) + 1), ((1 << 48) + 2, (2_i64 << 48) + 2), ((1 << 48) + 1, i64::MAX)]
    {
        client
            .batch_execute(&format!(
                "ALTER SEQUENCE s MINVALUE {first} MAXVALUE {last} START {first} RESTART"
            ))
            .unwrap();
        let shown = "SELECT error FROM snowflake_sequence_status('s')";
        assert!(!printed(&mut client, shown).contains("Citus"), "{first} to {last}");
    }
}

#[test]
fn snowflake_columns_shows_the_error_of_a_default_under_citus() {
    let (_database, mut client) = with_metadata();
    client
        .batch_execute(
            "CREATE TABLE posts (
                 constant bigint DEFAULT snowflake_nextval('s', 5),
                 of_node bigint DEFAULT snowflake_nextval('s'::text::regclass));
             CREATE TABLE plain (constant bigint DEFAULT snowflake_nextval('s', 5));
             INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'of_node')",
        )
        .unwrap();
    let errors = "SELECT table_name, column_name, shard_id, left(error, 43) FROM snowflake_columns ORDER BY 1, 2";
    assert_eq!(
        printed(&mut client, errors),
        "posts|constant|5|shard is the same on every node of Citus: S\nposts|of_node|3|\nplain|constant|5|"
    );
    run(&mut client, "INSERT INTO pg_dist_object VALUES ('pg_class'::regclass, 's'::regclass)");
    let error = "SELECT left(error, 33) FROM snowflake_columns WHERE column_name = 'of_node'";
    assert_eq!(printed(&mut client, error), "sequence is distributed by Citus:");
}

/// Citus copies what is set for a database or a role to every node.
#[test]
fn the_columns_show_a_shard_that_citus_has_copied_to_every_node() {
    let (cluster, mut client) = server_with_sequence();
    run(&mut client, METADATA);
    client
        .batch_execute(
            "LOAD 'pg_snowflake'; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s'::text::regclass));
             INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id')",
        )
        .unwrap();
    let error = "SELECT left(error, 56) FROM snowflake_columns";
    let copied = "pg_snowflake.shard_id is the same on every node of Citus";
    for (whom, expected) in [
        ("SYSTEM", ""),
        ("DATABASE postgres", copied),
        ("ROLE postgres", copied),
        ("ROLE ALL", copied),
    ] {
        let mut change = |sql: String| client.batch_execute(&sql).unwrap();
        change(format!("ALTER {whom} SET pg_snowflake.shard_id = 5"));
        change("SELECT pg_reload_conf()".into());
        wait_for(
            &mut cluster.connect(),
            "SELECT snowflake_current_shard() = 5",
            "the setting is there",
        );
        assert_eq!(printed(&mut cluster.connect(), error), expected, "{whom}");
        change(format!("ALTER {whom} RESET pg_snowflake.shard_id"));
        change("SELECT pg_reload_conf()".into());
    }
}

#[test]
fn a_call_that_waits_for_the_sequence_takes_the_group_of_afterwards() {
    let (database, mut client) = with_metadata();
    for (group, call) in [(4, SHARD), (5, SHARD_OF_BATCH)] {
        let mut waiting = database.connect();
        assert_eq!(
            printed(&mut waiting, "SELECT snowflake_current_shard()"),
            (group - 1).to_string()
        );
        client.batch_execute(&format!("BEGIN; LOCK TABLE pg_dist_local_group; ALTER SEQUENCE s CACHE {group}; UPDATE pg_dist_local_group SET groupid = {group}")).unwrap();
        client.batch_execute("SET allow_system_table_mods = on; ALTER TABLE pg_dist_local_group SET (fillfactor = 100)").unwrap();
        let pid = backend_pid(&mut waiting);
        let shard = std::thread::spawn(move || printed(&mut waiting, call));
        let waits =
            format!("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted)");
        wait_for(&mut database.connect(), &waits, "the call waits for the sequence");
        client.batch_execute("COMMIT").unwrap();
        assert_eq!(shard.join().unwrap(), group.to_string());
    }
}

/// A session that knows the sequence waits for it on the fast path, where a rolled-back ALTER leaves nothing to notice.
#[test]
fn a_call_that_waits_on_the_fast_path_takes_the_group_of_afterwards() {
    let (database, mut client) = with_metadata();
    let mut waiting = database.connect();
    assert_eq!([printed(&mut waiting, SHARD), printed(&mut waiting, SHARD)], ["3", "3"]);
    let mut other = database.connect();
    other.batch_execute("BEGIN; ALTER SEQUENCE s CACHE 2").unwrap();
    let pid = backend_pid(&mut waiting);
    let shard = std::thread::spawn(move || printed(&mut waiting, SHARD));
    let waits = format!("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted)");
    wait_for(&mut client, &waits, "the call waits for the sequence");
    client.batch_execute("UPDATE pg_dist_local_group SET groupid = 4").unwrap();
    notify(&mut client, "pg_dist_local_group");
    other.batch_execute("ROLLBACK").unwrap();
    assert_eq!(shard.join().unwrap(), "4");
}

#[test]
fn a_batch_in_a_cursor_follows_the_group() {
    let (_database, mut client) = with_metadata();
    let fetch = "FETCH 2 FROM ids";
    client
        .batch_execute("BEGIN; DECLARE ids CURSOR FOR SELECT snowflake_shard_id(id) FROM (SELECT snowflake_nextvals('s', count => 5)) AS b (id)")
        .unwrap();
    assert_eq!(printed(&mut client, fetch), "3\n3");
    client.batch_execute("UPDATE pg_dist_local_group SET groupid = 9").unwrap();
    notify(&mut client, "pg_dist_local_group");
    assert_eq!(printed(&mut client, fetch), "9\n9");
    client.batch_execute("DELETE FROM pg_dist_local_group").unwrap();
    notify(&mut client, "pg_dist_local_group");
    assert_refused(&mut client, fetch, UNSET);
}

/// The ranges assign no transaction ID.
#[test]
fn a_standby_and_a_read_only_transaction_have_the_ranges() {
    let (primary, mut client) = server_with_sequence();
    run(&mut client, METADATA);
    client
        .batch_execute(
            "CREATE TABLE posts (id bigint); INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id');
             INSERT INTO pg_dist_shard VALUES ('posts', 1, '0', '7'); INSERT INTO pg_dist_placement VALUES (1, 3)",
        )
        .unwrap();
    let ranges = "SELECT snowflake_citus_ranges('posts')";
    assert_eq!(printed(&mut primary.standby().connect(), ranges), "{[0,8)}");
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").unwrap();
    assert_eq!(printed(&mut client, ranges), "{[0,8)}");
    assert_eq!(printed(&mut client, "SELECT pg_current_xact_id_if_assigned()"), "");
}

#[test]
fn other_relations_of_these_names_are_not_metadata() {
    let (_database, mut client) = database_with_sequence();
    client
        .batch_execute(
            "SET allow_system_table_mods = on;
             CREATE VIEW pg_catalog.pg_dist_local_group AS SELECT 1 AS groupid;
             CREATE TABLE pg_catalog.pg_dist_node (nodeid int); CREATE VIEW pg_catalog.pg_dist_partition AS SELECT 1 AS one",
        )
        .unwrap();
    assert_refused(&mut client, "SELECT snowflake_nextval('s')", UNSET);
    client
        .batch_execute("DROP VIEW pg_dist_local_group; CREATE TABLE pg_catalog.pg_dist_local_group AS SELECT '1'::text AS groupid")
        .unwrap();
    assert_refused(&mut client, "SELECT snowflake_nextval('s')", UNSET);
    assert_eq!(printed(&mut client, "SELECT count(*) FROM snowflake_columns"), "0");
}

#[test]
fn a_table_of_citus_is_not_converted_and_nothing_has_changed() {
    let (_database, mut client) = with_metadata();
    client
        .batch_execute(
            "CREATE TABLE \"Posts\" (id bigserial PRIMARY KEY); INSERT INTO pg_dist_partition VALUES ('\"Posts\"', 'h', 'id');
             CREATE FUNCTION pg_temp.catalog() RETURNS text LANGUAGE sql AS
                 $$ SELECT string_agg(c.xmin::text || a.xmin, ',' ORDER BY c.oid, attnum)
                    FROM pg_class AS c JOIN pg_attribute AS a ON attrelid = c.oid WHERE relname LIKE 'Posts%' $$",
        )
        .unwrap();
    let catalog = printed(&mut client, "SELECT pg_temp.catalog()");
    let expected = Refusal {
        sqlstate: "0A000",
        message: "cannot convert a column of table public.\"Posts\", which Citus manages",
        hint: "ALTER TABLE public.\"Posts\" ALTER COLUMN id SET DEFAULT snowflake_nextval('public.ids'::text::regclass);",
    };
    assert_refused(&mut client, "SELECT snowflake_convert_column('\"Posts\"', 'id', 5)", expected);
    assert_eq!(printed(&mut client, "SELECT pg_temp.catalog()"), catalog);

    run(&mut client, "CREATE TABLE posts_102008 (id serial PRIMARY KEY)");
    let shard = Refusal {
        sqlstate: "0A000",
        message: "cannot convert a column of table public.posts_102008, which is a shard of Citus",
        hint: "Change the default of the distributed table, on the coordinator.",
    };
    assert_refused(&mut client, "SELECT snowflake_convert_column('posts_102008', 'id', 5)", shard);
}

#[test]
fn an_id_is_located_on_the_node_of_its_hash() {
    let (_database, mut client) = with_metadata();
    client
        .batch_execute(
            "CREATE TABLE posts (id bigint); CREATE TABLE words (id text); CREATE TABLE countries (id bigint);
             INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id', 's'), ('words', 'h', 'id', 's'), ('countries', 'n', NULL, 't');
             INSERT INTO pg_dist_shard VALUES
                 ('posts', 1, '-2147483648', '-1'), ('posts', 2, '0', '2147483647'), ('countries', 3, NULL, NULL);
             INSERT INTO pg_dist_placement VALUES (1, 3), (2, 4), (3, 3), (3, 4);
             INSERT INTO pg_dist_node VALUES
                 (1, 3, 'db-3', 5433, 'primary'), (2, 4, 'db-4', 5434, 'primary'),
                 (3, 4, 'standby-4', 5435, 'secondary')",
        )
        .unwrap();
    let wrong = "SELECT count(*) FROM generate_series(1, 100) AS id, snowflake_locate('posts', id)
        WHERE (partition, host, port, dbname) IS DISTINCT FROM
            ('posts'::regclass, CASE WHEN hashint8(id) < 0 THEN 'db-3' ELSE 'db-4' END,
             CASE WHEN hashint8(id) < 0 THEN 5433 ELSE 5434 END, current_database())";
    assert_eq!(printed(&mut client, wrong), "0");
    // With two copies of a shard, the first; not a shard that Citus is about to remove.
    client
        .batch_execute("INSERT INTO pg_dist_placement VALUES (1, 4), (2, 3); DELETE FROM pg_dist_placement WHERE shardstate = 4")
        .unwrap();
    assert_eq!(printed(&mut client, wrong), "0");
    client
        .batch_execute(
            "UPDATE pg_dist_placement SET shardstate = 4 WHERE (shardid, groupid) = (1, 3)",
        )
        .unwrap();
    let moved =
        "SELECT DISTINCT host FROM generate_series(1, 100) AS id, snowflake_locate('posts', id)";
    assert_eq!(printed(&mut client, moved), "db-4");
    let everywhere = "SELECT partition, host FROM snowflake_locate('countries', 1)";
    assert_eq!(printed(&mut client, everywhere), "countries|");
    // A table with one shard.
    run(
        &mut client,
        "UPDATE pg_dist_partition SET repmodel = 's' WHERE logicalrelid = 'countries'::regclass",
    );
    assert_eq!(printed(&mut client, everywhere), "countries|db-3");
    let expected = Refusal {
        sqlstate: "42809",
        message: "because Citus does not distribute it by the ID",
        hint: "create_distributed_table()",
    };
    assert_refused(&mut client, "SELECT snowflake_locate('words', 1)", expected);
    client
        .batch_execute(
            "UPDATE pg_dist_partition SET partmethod = 'a' WHERE logicalrelid = 'posts'::regclass",
        )
        .unwrap();
    assert_refused(&mut client, "SELECT snowflake_locate('posts', 1)", expected);
}

/// A parallel worker may start no command.
#[test]
fn an_id_is_located_in_a_parallel_query() {
    let (_database, mut client) = with_metadata();
    client
        .batch_execute(
            "CREATE TABLE posts (id bigint); INSERT INTO posts SELECT generate_series(1, 1000);
             INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id');
             INSERT INTO pg_dist_shard VALUES ('posts', 1, '-2147483648', '2147483647');
             INSERT INTO pg_dist_placement VALUES (1, 3); INSERT INTO pg_dist_node VALUES (1, 3, 'db-3', 5433, 'primary');
             SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
             SET parallel_leader_participation = off",
        )
        .unwrap();
    let located = "SELECT count(*), sum(snowflake_current_shard()) FROM posts WHERE (snowflake_locate('posts', id)).port = 5433";
    assert!(printed(&mut client, &format!("EXPLAIN {located}")).contains("Parallel"));
    assert_eq!(printed(&mut client, located), "1000|3000");
}

#[test]
fn the_partitions_of_a_table_of_citus_are_not_managed() {
    let (_database, mut client) = with_metadata();
    run(
        &mut client,
        "CREATE TABLE posts (id bigint NOT NULL) PARTITION BY RANGE (id);
         INSERT INTO pg_dist_partition VALUES ('posts', 'h', 'id')",
    );
    let expected = Refusal {
        sqlstate: "0A000",
        message: "cannot manage partitions of table public.posts, which Citus manages",
        hint: "Create its partitions with CREATE TABLE ... PARTITION OF, and snowflake_min_id() as bounds.",
    };
    for call in [
        "SELECT snowflake_create_partitions('posts', '1 day', 1)",
        "SELECT snowflake_drop_partitions('posts', '1 day')",
    ] {
        assert_refused(&mut client, call, expected);
    }
    assert_eq!(printed(&mut client, "SELECT count(*) FROM pg_inherits"), "0");
}
