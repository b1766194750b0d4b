//! Misspelt settings that are stored.

use pg_snowflake_harness::prelude::*;

/// What a session without the preloaded library raises while a misspelt setting has a value.
fn unrecognized(hint: &str) -> Refusal<'_> {
    Refusal { sqlstate: "42704", message: "unrecognized configuration parameter \"pg_snowflake.owned_shard\"", hint }
}

#[test]
fn a_session_in_which_a_misspelt_setting_has_a_value_generates_no_ids() {
    let (cluster, _) = server_with("CREATE SEQUENCE s; CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer");
    for whose in ["DATABASE postgres", "ROLE ALL", "ROLE writer", "ROLE writer IN DATABASE postgres"] {
        // Each command in a session that has not loaded the library.
        cluster.psql(SUPERUSER, &format!("ALTER {whose} SET pg_snowflake.Owned_shard = '7'"));
        let mut client = cluster.connect_to("writer", SUPERUSER);
        for sql in ["SELECT snowflake_nextval('s', 5)", "SELECT snowflake_decode(5)"] {
            assert_refused(&mut client, sql, unrecognized("Perhaps you meant the parameter \"pg_snowflake.owned_shards\"."));
        }
        // The value that the session began with.
        run(&mut client, "RESET pg_snowflake.owned_shard");
        let error = assert_refused(&mut client, "SELECT snowflake_nextval('s', 5)", unrecognized("ALTER"));

        let command = error.hint().unwrap().split_once("ALTER ").unwrap().1;
        let command = command.replacen("DATABASE ...", "DATABASE postgres", 1).replacen("ROLE ...", "ROLE writer", 1);
        cluster.psql(SUPERUSER, &format!("ALTER {command}"));
        take_one(&mut cluster.connect_to("writer", SUPERUSER), "SELECT snowflake_nextval('s', 5)");
    }
}

/// The library of the leader has been loaded, and a parallel plan fails otherwise until the session ends.
#[test]
fn a_misspelt_setting_of_the_database_does_not_end_the_parallel_plans_of_earlier_sessions() {
    let sql = "CREATE TABLE big AS SELECT id::bigint FROM generate_series(1, 5000) AS ids (id); ANALYZE;
        SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
        SET parallel_leader_participation = off; SELECT snowflake_created_at(0)";
    let (cluster, mut client) = server_with(sql);
    cluster.psql(SUPERUSER, "ALTER DATABASE postgres SET pg_snowflake.owned_shard = '7'");
    let scan = "SELECT count(snowflake_created_at(id)) FROM big";
    assert!(plan(&mut client, scan).contains("Workers Planned"));
    assert_eq!(printed(&mut client, scan), "5000");
}

/// A role can keep the others out; an operator gets in without the library.
#[test]
fn a_misspelt_setting_with_session_preload_libraries_refuses_the_connection() {
    let database = Database::new().setting("pg_snowflake.owned_shard", "7").setting("session_preload_libraries", "pg_snowflake");
    let error = database.connect_with_options(SUPERUSER, "").err().expect("a misspelt setting");
    let error = error.as_db_error().expect("an error of the server");
    assert_eq!(error.code().code(), "42704", "{error:?}");

    let mut client = database.connect_with_options(SUPERUSER, "-c session_preload_libraries=").unwrap();
    run(&mut client, &format!("ALTER DATABASE {} RESET pg_snowflake.owned_shard", database.name()));
    database.connect_with_options(SUPERUSER, "").unwrap();
}

/// PostgreSQL drops the value with a WARNING there, so nothing is left to find when the session begins.
#[test]
fn a_misspelt_setting_cannot_be_stored_while_the_library_is_preloaded() {
    let mut cluster = Cluster::new();
    let settings = "ALTER DATABASE postgres SET pg_snowflake.owned_shard = '7'; ALTER SYSTEM SET shared_preload_libraries = 'pg_snowflake'";
    cluster.psql(SUPERUSER, settings);
    cluster.restart(Shutdown::Fast);
    let mut client = cluster.connect();
    let invalid = "invalid configuration parameter name \"pg_snowflake.owned_shard\"";
    assert!(cluster.log().contains(&format!("WARNING:  {invalid}")), "{}", cluster.log());

    for whose in ["DATABASE postgres", "ROLE ALL"] {
        assert_refused(&mut client, &format!("ALTER {whose} SET pg_snowflake.owned_shard = '7'"), refusal("42602", invalid));
    }
    run(&mut client, "ALTER DATABASE postgres RESET pg_snowflake.owned_shard");
    let stored = "SELECT count(*) FROM pg_db_role_setting, unnest(setconfig) AS s WHERE s LIKE 'pg\\_snowflake.%'";
    assert_eq!(printed(&mut client, stored), "0");
}
