//! The values of the fences. An invalid one that could not be checked when it was set stops all IDs.

use super::{GENERATE_FOREIGN, GENERATE_OWN, NOT_OWNED};
use pg_snowflake_harness::prelude::*;

#[test]
fn an_invalid_value_set_before_it_could_be_checked_stops_everything() {
    let cases = [("owned_shards", "5-", "\"5-\" lacks the last shard"), ("allowed_hosts", "db 1", "\"db 1\" is not a host name")];
    // The library is loaded by the first call of a session, at a session's start, or with the server: after or before the
    // session reads the value.
    let preloads =
        [("shared_preload_libraries", ""), ("session_preload_libraries", "pg_snowflake"), ("shared_preload_libraries", "pg_snowflake")];
    for (preload, library) in preloads {
        for (setting, value, wrong) in cases {
            let cluster = Cluster::builder().setting(preload, library).start();
            let mut superuser = cluster.connect();
            superuser.batch_execute("CREATE SEQUENCE s").unwrap();
            // As ALTER DATABASE stores it in a session that has not loaded the library.
            let sql = format!(
                "INSERT INTO pg_db_role_setting SELECT oid, 0, ARRAY['pg_snowflake.{setting}={value}']
                 FROM pg_database WHERE datname = 'postgres'"
            );
            run(&mut superuser, &sql);

            let message = format!("pg_snowflake.{setting} has an invalid value");
            let unreadable = Refusal {
                sqlstate: "55000",
                message: &message,
                hint: &format!("ALTER DATABASE postgres SET pg_snowflake.{setting} = '...'"),
            };
            let mut client = cluster.connect();
            for generate in [GENERATE_OWN, GENERATE_FOREIGN] {
                let error = assert_refused(&mut client, generate, unreadable);
                assert!(error.detail().unwrap().contains(wrong), "{error:?}");
            }

            superuser.batch_execute(&format!("ALTER DATABASE postgres RESET pg_snowflake.{setting}")).unwrap();
            assert_eq!(take(&mut cluster.connect(), GENERATE_OWN).len(), 1);
        }
    }
}

#[test]
fn an_invalid_line_in_the_configuration_file_stops_everything() {
    for preload in ["", "pg_snowflake"] {
        let cluster =
            Cluster::builder().setting("pg_snowflake.owned_shards", "0-127;300").setting("shared_preload_libraries", preload).start();
        let mut client = cluster.connect();
        client.batch_execute("CREATE SEQUENCE s").unwrap();

        let unreadable = Refusal {
            sqlstate: "55000",
            message: "pg_snowflake.owned_shards has an invalid value",
            hint: "ALTER SYSTEM SET pg_snowflake.owned_shards",
        };
        assert_refused(&mut client, GENERATE_OWN, unreadable);
    }
}

#[test]
fn a_session_that_cannot_generate_can_run_parallel_queries() {
    let cluster = Cluster::builder().setting("pg_snowflake.owned_shards", "5-").start();
    let mut client = cluster.connect();
    let sql = "CREATE TABLE t AS SELECT i FROM generate_series(1, 1000) AS i; SELECT snowflake_decode(0);
        SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
        SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0";
    run(&mut client, sql);
    let query = "SELECT sum(i) FROM t";
    let plan = printed(&mut client, &format!("EXPLAIN (ANALYZE, TIMING OFF) {query}"));
    assert!(plan.contains("Workers Launched: "), "{plan}");
    assert!(!plan.contains("Workers Launched: 0"), "{plan}");

    assert_eq!(printed(&mut client, query), "500500");
}

#[test]
fn the_hint_sets_the_fence_where_it_is_set() {
    let (cluster, mut client) = server_with("CREATE SEQUENCE s; CREATE ROLE \"Writer\" LOGIN SUPERUSER");
    let places = [
        ("ALTER DATABASE postgres SET", "ALTER DATABASE postgres RESET ALL"),
        ("ALTER ROLE ALL SET", "ALTER ROLE ALL RESET ALL"),
        ("ALTER ROLE \"Writer\" SET", "ALTER ROLE \"Writer\" RESET ALL"),
        ("ALTER ROLE \"Writer\" IN DATABASE postgres SET", "ALTER ROLE \"Writer\" IN DATABASE postgres RESET ALL"),
    ];
    for (set, reset) in places {
        client.batch_execute(&format!("{set} pg_snowflake.owned_shards = '5'")).unwrap();
        let command = format!("{set} pg_snowflake.owned_shards = '5, 6'; and reconnect");
        let mut writer = cluster.connect_to("Writer", SUPERUSER);
        assert_refused(&mut writer, GENERATE_FOREIGN, Refusal { hint: &command, ..NOT_OWNED });

        client.batch_execute(command.strip_suffix("; and reconnect").unwrap()).unwrap();
        assert_eq!(take(&mut cluster.connect_to("Writer", SUPERUSER), GENERATE_FOREIGN).len(), 1);
        client.batch_execute(reset).unwrap();
    }
}
