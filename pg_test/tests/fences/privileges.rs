//! An ordinary user can neither change a fence nor generate IDs past it.

use super::{GENERATE_FOREIGN, GENERATE_OWN, NOT_OWNED, owner_of_shard_5, with_writer};
use pg_snowflake_harness::prelude::*;

const DENIED: Refusal = refusal("42501", "pg_snowflake.owned_shards");

/// Whether the session has used the extension before the attempt. Before that, PostgreSQL accepts any value from anybody,
/// and only checks it when the library is loaded.
const EARLY_AND_LATE: [&str; 2] = ["SELECT 1", "SELECT snowflake_decode(0)"];

const NOT_LISTED: Refusal = Refusal { sqlstate: "55000", message: "is not allowed to generate IDs", hint: "they no longer generate" };

fn writer(cluster: &Cluster, first: &str) -> Client {
    let mut writer = cluster.connect_to("writer", "postgres");
    writer.batch_execute(first).unwrap();
    writer
}

#[test]
fn an_ordinary_user_who_changes_the_fence_for_the_session_or_a_transaction_stays_inside() {
    // What each attempt would gain: shard 6, and a host that is not listed.
    stays_inside(&owner_of_shard_5(), "owned_shards", NOT_OWNED);
    let unlisted_host = with_writer(Cluster::builder().setting("pg_snowflake.allowed_hosts", "elsewhere").start());
    stays_inside(&unlisted_host, "allowed_hosts", NOT_LISTED);
}

fn stays_inside(cluster: &Cluster, fence: &str, refusal: Refusal) {
    let before = state(&mut cluster.connect(), "s");
    let attempts = [
        "SET pg_snowflake.owned_shards = ''",
        "SET pg_snowflake.owned_shards = '6'",
        "SET PG_SNOWFLAKE.owned_shards = '6'",
        "SET pg_snowflake.owned_shards = '6-'",
        "SET SESSION pg_snowflake.owned_shards TO DEFAULT",
        "SELECT set_config('pg_snowflake.owned_shards', '6', false)",
        "UPDATE pg_settings SET setting = '6' WHERE name = 'pg_snowflake.owned_shards'",
        "RESET pg_snowflake.owned_shards",
        "RESET ALL",
        "DISCARD ALL",
        "SET SESSION AUTHORIZATION postgres",
        "SET ROLE postgres",
        "LOAD 'pg_snowflake'",
        "SET pg_snowflake.owned_shards = '6'; RESET pg_snowflake.owned_shards",
        "BEGIN; SET LOCAL pg_snowflake.owned_shards = '6'",
        "BEGIN; SELECT set_config('pg_snowflake.owned_shards', '6', true)",
        "BEGIN; SET pg_snowflake.owned_shards = '6'; ROLLBACK",
        "BEGIN; SET pg_snowflake.owned_shards = '6'; SELECT snowflake_decode(0); ROLLBACK",
        "BEGIN; SET LOCAL pg_snowflake.owned_shards = '6'; SELECT snowflake_decode(0); COMMIT",
        "BEGIN; SAVEPOINT a; SET LOCAL pg_snowflake.owned_shards = '6'; SELECT snowflake_decode(0); ROLLBACK TO a; COMMIT",
    ];
    for attempt in attempts {
        let attempt = attempt.replace("owned_shards", fence);
        for first in EARLY_AND_LATE {
            let mut writer = writer(cluster, first);
            for statement in attempt.split("; ") {
                // Denied or without effect.
                let _ = writer.simple_query(statement);
            }
            // Shown if it fails.
            println!("{first}; {attempt}");
            let error = refused(&mut writer, GENERATE_FOREIGN);
            assert!([refusal.sqlstate, "25P02"].contains(&error.code().code()), "{error:?}");
            let _ = writer.simple_query("ROLLBACK");
            assert_refused(&mut writer, GENERATE_FOREIGN, refusal);
        }
    }
    assert_eq!(state(&mut cluster.connect(), "s"), before);
}

#[test]
fn an_ordinary_user_can_store_no_fence_for_later() {
    let cluster = owner_of_shard_5();
    let sql = "CREATE ROLE owner LOGIN CREATEROLE; GRANT CREATE ON SCHEMA public TO owner;
        ALTER DATABASE postgres OWNER TO owner; GRANT USAGE ON SEQUENCE s TO owner;
        SET ROLE owner;
        CREATE FUNCTION of_the_owner() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake_nextval(''s'', 6)'";
    run(&mut cluster.connect(), sql);
    let attempts = [
        "ALTER ROLE owner SET pg_snowflake.owned_shards = '6'",
        "ALTER ROLE owner IN DATABASE postgres SET pg_snowflake.owned_shards = '6'",
        "ALTER DATABASE postgres SET pg_snowflake.owned_shards = '6'",
        "CREATE FUNCTION generate() RETURNS bigint LANGUAGE sql SET pg_snowflake.owned_shards = '6' \
         AS 'SELECT snowflake_nextval(''s'', 6)'",
        "ALTER FUNCTION of_the_owner() SET pg_snowflake.owned_shards = '6'",
    ];
    let firsts = ["SELECT 1", "SET pg_snowflake.owned_shards = '6'", "SELECT snowflake_decode(0)"];
    for attempt in attempts {
        for first in firsts {
            let mut owner = cluster.connect_to("owner", "postgres");
            owner.batch_execute(first).unwrap();
            assert_refused(&mut owner, attempt, DENIED);
            assert_refused(&mut cluster.connect_to("owner", "postgres"), GENERATE_FOREIGN, NOT_OWNED);
        }
    }
    let mut owner = cluster.connect_to("owner", "postgres");
    assert_refused(&mut owner, "ALTER SYSTEM SET pg_snowflake.owned_shards = '6'", Refusal { message: "permission denied", ..DENIED });
}

#[test]
fn no_function_leads_an_ordinary_user_past_the_fence() {
    let cluster = owner_of_shard_5();
    // The superuser's function is meant to generate, not to open the fence.
    let sql = "CREATE FUNCTION generate_as_superuser() RETURNS bigint LANGUAGE sql SECURITY DEFINER
        AS 'SELECT snowflake_nextval(''s'', 6)'";
    run(&mut cluster.connect(), sql);
    let sql = "CREATE FUNCTION generate_as_writer() RETURNS bigint LANGUAGE sql SECURITY DEFINER
        AS 'SELECT snowflake_nextval(''s'', 6)';
        CREATE FUNCTION set_and_generate() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
            PERFORM set_config('pg_snowflake.owned_shards', '6', true);
            RETURN snowflake_nextval('s', 6);
        END $$;
        CREATE FUNCTION try_and_generate() RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN
            BEGIN
                PERFORM set_config('pg_snowflake.owned_shards', '6', true);
            EXCEPTION WHEN insufficient_privilege THEN
            END;
            RETURN generate_as_superuser();
        END $$";
    run(&mut writer(&cluster, EARLY_AND_LATE[0]), sql);
    for function in ["generate_as_superuser", "generate_as_writer", "set_and_generate", "try_and_generate"] {
        for first in ["SELECT 1", "SET pg_snowflake.owned_shards = '6'"] {
            let mut writer = writer(&cluster, first);
            assert_refused(&mut writer, &format!("SELECT {function}()"), NOT_OWNED);
        }
    }
}

#[test]
fn a_parallel_worker_generates_no_ids_past_the_fence() {
    let cluster = owner_of_shard_5();
    let mut writer = writer(&cluster, EARLY_AND_LATE[0]);
    let force = match printed(&mut writer, "SHOW server_version_num").parse::<i32>().unwrap() {
        160_000.. => "debug_parallel_query",
        _ => "force_parallel_mode",
    };
    let sql = format!(
        "CREATE FUNCTION generate(shard int) RETURNS bigint LANGUAGE sql PARALLEL SAFE VOLATILE
         AS 'SELECT snowflake_nextval(''s'', shard)';
         SET {force} = on"
    );
    run(&mut writer, &sql);

    let error = assert_refused(&mut writer, "SELECT generate(6)", NOT_OWNED);
    assert!(error.where_().unwrap().contains("parallel worker"), "{error:?}");
    assert_refused(&mut writer, "SELECT generate(5)", refusal("25000", "parallel operation"));
}

#[test]
fn a_user_who_was_granted_the_setting_can_set_it() {
    let cluster = owner_of_shard_5();
    cluster.connect().batch_execute("GRANT SET ON PARAMETER pg_snowflake.owned_shards TO writer").unwrap();
    for first in EARLY_AND_LATE {
        let mut writer = writer(&cluster, first);
        writer.batch_execute("SET pg_snowflake.owned_shards = '6'").unwrap();
        assert_eq!(take(&mut writer, GENERATE_FOREIGN).len(), 1);
        assert_refused(&mut writer, GENERATE_OWN, Refusal { message: "shard 5 is not owned", hint: "", ..NOT_OWNED });
    }
}
