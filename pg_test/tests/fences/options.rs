//! Settings in the options of a connection. Until the library is loaded, PostgreSQL lets them replace the value of the
//! configuration file. Then it refuses them, but has lost the file's value: the session must not continue with the default.

use super::{GENERATE_FOREIGN, GENERATE_OWN, NOT_OWNED, owner_of_shard_5, with_writer};
use pg_snowflake_harness::prelude::*;

const MASKED: Refusal =
    Refusal { sqlstate: "42501", message: "cannot generate IDs because connection options set pg_snowflake.", hint: "PGOPTIONS" };

/// Every setting that only a superuser sets, with its value on the server of a test, and another one.
fn settings() -> Vec<(String, &'static str, &'static str)> {
    let (_database, mut client) = database_with("LOAD 'pg_snowflake'");
    let names = "SELECT substr(name, 14) FROM pg_settings WHERE name LIKE 'pg\\_snowflake.%' AND context = 'superuser'";
    let names = printed(&mut client, names);
    let with_values = names.lines().map(|name| match name {
        "allowed_hosts" => (name.to_owned(), "db-1", ""),
        _ => (name.to_owned(), "5", "6"),
    });
    with_values.collect()
}

#[test]
fn an_ordinary_user_whose_options_name_a_fence_generates_no_ids() {
    let cluster = owner_of_shard_5();
    let before = state(&mut cluster.connect(), "s");
    let attempts = [
        "-c pg_snowflake.owned_shards=6",
        "-c pg_snowflake.owned_shards=",
        "-c pg_snowflake.owned_shards=5",
        "-c pg_snowflake.owned_shards=6-",
        "-c PG_Snowflake.OWNED_shards=6",
        "--pg_snowflake.owned-shards=6",
        "-c pg_snowflake.allowed_hosts=",
        "-c pg_snowflake.owned_shards=6 -c pg_snowflake.allowed_hosts=",
    ];
    for options in attempts {
        for then in ["SELECT 1", "RESET ALL", "DISCARD ALL", "SET pg_snowflake.owned_shards = '6'"] {
            let mut writer = cluster.connect_with_options("writer", options).unwrap();
            writer.batch_execute(then).unwrap();
            // Shown if it fails.
            println!("{options}; {then}");
            for generate in [GENERATE_FOREIGN, GENERATE_OWN] {
                assert_refused(&mut writer, generate, MASKED);
            }
            // Again after the library was loaded.
            let _ = writer.simple_query(then);
            assert_refused(&mut writer, GENERATE_FOREIGN, MASKED);
        }
    }
    assert_eq!(state(&mut cluster.connect(), "s"), before);
}

#[test]
fn an_ordinary_user_whose_options_name_any_setting_generates_no_ids() {
    for (setting, value, other) in settings() {
        let name = format!("pg_snowflake.{setting}");
        let cluster = with_writer(Cluster::builder().setting("pg_snowflake.shard_id", "5").setting(&name, value).start());
        let message = format!("{}{setting}", MASKED.message);
        for value in [value, other, "no value"] {
            let options = format!("-c pg_snowflake.{setting}={}", value.replace(' ', "\\ "));
            for call in [
                GENERATE_OWN,
                "SELECT snowflake_nextval('s')",
                "SELECT snowflake_nextvals('s', 5, 2)",
                "SELECT snowflake_nextval_homed('s', 5, 8)",
                "SELECT snowflake_convert_column('posts', 'id', 5)",
            ] {
                let mut writer = cluster.connect_with_options("writer", &options).unwrap();
                writer.batch_execute("CREATE TEMP TABLE posts (id bigint)").unwrap();
                println!("{options}; {call}");
                assert_refused(&mut writer, call, Refusal { message: &message, ..MASKED });
            }
        }
    }
}

#[test]
fn the_status_and_the_current_shard_report_a_masked_setting() {
    let cluster = with_writer(Cluster::builder().setting("pg_snowflake.shard_id", "5").start());
    let mut writer = cluster.connect_with_options("writer", "-c pg_snowflake.shard_id=6").unwrap();

    assert_refused(&mut writer, "SELECT snowflake_current_shard()", MASKED);
    let error = printed(&mut writer, "SELECT error FROM snowflake_sequence_status('s')");
    assert!(error.starts_with(MASKED.message), "{error}");

    let mut writer = cluster.connect_with_options("writer", "-c pg_snowflake.max_lead=1h").unwrap();
    assert_eq!(printed(&mut writer, "SELECT snowflake_current_shard()"), "5");
}

#[test]
fn an_ordinary_user_who_was_granted_a_setting_sets_it_by_connection_options() {
    let cluster = with_writer(Cluster::new());
    let mut superuser = cluster.connect();
    for (setting, _, _) in settings() {
        let privilege = format!("SET ON PARAMETER pg_snowflake.{setting}");
        superuser.batch_execute(&format!("GRANT {privilege} TO writer")).unwrap();
        let value = if setting == "allowed_hosts" { "" } else { "5" };
        let options = format!("-c pg_snowflake.{setting}={value}");
        let mut writer = cluster.connect_with_options("writer", &options).unwrap();
        assert_eq!(take(&mut writer, GENERATE_OWN).len(), 1, "{options}");
        if setting == "owned_shards" {
            assert_refused(&mut writer, GENERATE_FOREIGN, Refusal { hint: "", ..NOT_OWNED });
        }
        superuser.batch_execute(&format!("REVOKE {privilege} FROM writer")).unwrap();
    }
}

/// The server also drops such a value, and with it that of the configuration file.
#[test]
fn a_superuser_whose_options_have_an_invalid_value_generates_no_ids() {
    let cluster = with_writer(Cluster::builder().setting("pg_snowflake.max_lead", "0").start());
    let mut superuser = cluster.connect_with_options("postgres", "-c pg_snowflake.max_lead=soon").unwrap();
    assert_refused(&mut superuser, GENERATE_OWN, MASKED);
}

#[test]
fn an_ordinary_user_whose_options_name_a_databases_fence_generates_no_ids() {
    let database = Database::new().setting("pg_snowflake.allowed_hosts", "db-1");
    run(&mut database.connect(), "CREATE SEQUENCE s; GRANT USAGE ON SEQUENCE s TO writer");
    // In any spelling: here no line of the configuration file has used it before.
    for options in ["-c pg_snowflake.allowed_hosts=", "-c PG_Snowflake.ALLOWED_hosts="] {
        let mut writer = database.connect_with_options("writer", options).unwrap();
        assert_refused(&mut writer, GENERATE_OWN, MASKED);
    }
}

#[test]
fn a_superusers_options_count() {
    let cluster = owner_of_shard_5();
    let mut superuser = cluster.connect_with_options("postgres", "-c pg_snowflake.owned_shards=6").unwrap();

    assert_eq!(take(&mut superuser, GENERATE_FOREIGN).len(), 1);
}

#[test]
fn a_server_that_preloads_the_library_refuses_such_a_connection() {
    let cluster = Cluster::builder().setting("pg_snowflake.owned_shards", "5").setting("shared_preload_libraries", "pg_snowflake").start();
    cluster.connect().batch_execute("CREATE SEQUENCE s; CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer").unwrap();

    let error = cluster.connect_with_options("writer", "-c pg_snowflake.owned_shards=6").err().expect("refused");
    assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{error:?}");
    let mut writer = cluster.connect_to("writer", "postgres");
    assert_refused(&mut writer, GENERATE_FOREIGN, NOT_OWNED);
}
