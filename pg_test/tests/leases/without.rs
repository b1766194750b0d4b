//! Servers without a registry, and servers that cannot use theirs.

use super::{GENERATE, NO_LEASE, set, start};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::prelude::*;

const ALLOCATED: &str = "SELECT count(*) FROM pg_shmem_allocations WHERE name LIKE 'pg\\_snowflake%'";

const MODE: &str = "SELECT snowflake_lease_mode()";

fn preloaded() -> Builder {
    Cluster::builder().setting("shared_preload_libraries", "pg_snowflake")
}

#[test]
fn without_a_registry_there_is_no_worker_and_no_shared_memory() {
    for builder in [Cluster::builder(), preloaded(), preloaded().setting("pg_snowflake.registry", "")] {
        let (server, mut client) = start(builder);

        take_one(&mut client, GENERATE);

        assert!(server.processes("lease worker").is_empty());
        assert_eq!(printed(&mut client, ALLOCATED), "0");
        assert_eq!(printed(&mut client, "SELECT * FROM snowflake_lease_status()"), "");
        assert_eq!(printed(&mut client, MODE), "off");
        assert_refused(&mut client, "SELECT snowflake_nextval('s')", refusal("55000", "pg_snowflake.shard_id is not set"));
    }
}

/// As for `primary_conninfo`: a mistake in a template does not turn leases off.
#[test]
fn a_registry_of_blanks_is_a_connection_string() {
    let builder = preloaded().setting("pg_snowflake.registry", " ");
    let (server, mut client) = start(builder);
    assert_eq!(printed(&mut client, MODE), "on");
    assert_refused(&mut client, "SELECT snowflake_nextval('s')", NOT_ASSIGNED);
    set(&server, "shard_id", "5");
    wait_for(&mut client, "SELECT current_setting('pg_snowflake.shard_id') = '5'", "the reload is known");
    assert_refused(&mut client, GENERATE, NO_LEASE);
}

#[test]
fn with_a_registry_there_is_one_worker_and_shared_memory() {
    let registry = Registry::start();
    let (server, mut client) = start(registry.node("db-1"));
    assert!(comes_true(|| server.processes("lease worker").len() == 1), "there is no worker");
    assert_eq!(printed(&mut client, ALLOCATED), "1");
    assert_eq!(printed(&mut client, MODE), "on");
    let standby = server.standby();
    assert_eq!(printed(&mut standby.connect(), MODE), "on");
}

/// The error of a server whose registry is to say which shard it has, and has not answered.
const NOT_ASSIGNED: Refusal =
    Refusal { sqlstate: "55000", message: "registry has not assigned a shard to this server", hint: "Try again in a moment." };

/// The error of a server that has a registry, and cannot have a lease.
const NOT_PRELOADED: Refusal =
    Refusal { sqlstate: "55000", message: "pg_snowflake is not in shared_preload_libraries", hint: "shared_preload_libraries" };

/// A value that the server drops when the library is loaded has replaced that of the configuration file.
#[test]
fn a_registry_stops_all_ids_until_the_library_is_preloaded_also_if_the_database_or_role_sets_another_value() {
    let (server, mut client) = start(Cluster::builder());
    run(&mut client, "CREATE ROLE writer LOGIN; GRANT ALL ON SEQUENCE s TO writer");
    take_one(&mut client, GENERATE);
    server.psql(SUPERUSER, "LOAD 'pg_snowflake'; ALTER SYSTEM SET pg_snowflake.registry = 'host=/nowhere'; SELECT pg_reload_conf()");
    let is_refused = || client.simple_query(GENERATE).is_err();
    assert!(comes_true(is_refused), "the reload has no effect");
    assert_refused(&mut client, GENERATE, NOT_PRELOADED);

    for target in ["DATABASE postgres", "ROLE writer", "ROLE ALL"] {
        for value in ["''", "'host=elsewhere'"] {
            run(&mut server.connect(), &format!("ALTER {target} SET pg_snowflake.registry = {value}"));
            let masked = Refusal {
                sqlstate: "42501",
                message: "cannot generate IDs because connection options set pg_snowflake.registry",
                hint: "the database or the role",
            };
            let mut writer = server.connect_to("writer", "postgres");
            assert_refused(&mut writer, GENERATE, masked);
        }
        run(&mut server.connect(), &format!("ALTER {target} RESET pg_snowflake.registry"));
    }
    for generate in [GENERATE, "SELECT snowflake_nextvals('s', 5, 1)", "SELECT snowflake_nextval('s')"] {
        assert_refused(&mut server.connect_to("writer", "postgres"), generate, NOT_PRELOADED);
    }
    assert_eq!(printed(&mut client, MODE), "not_preloaded");
    run(&mut client, "CREATE TABLE t (id bigint DEFAULT snowflake_nextval('s', 5))");
    assert_eq!(printed(&mut client, "SELECT error ~ 'shared_preload_libraries' FROM snowflake_columns"), "t");
}

/// What a manager of failovers does: it reloads all members at once, and asks `pg_settings` which of them to restart.
#[test]
fn a_registry_that_a_reload_sets_or_unsets_is_used_or_left_at_the_next_start_of_which_pg_settings_warns() {
    let (mut server, mut client) = start(preloaded().setting("pg_snowflake.shard_id", "5"));
    run(&mut client, "CREATE ROLE stranger LOGIN");
    let pending = "SELECT pending_restart FROM pg_settings WHERE name = 'pg_snowflake.registry'";
    set(&server, "registry", "host=/nowhere");
    wait_for(&mut client, pending, "the reload is known");
    // Who may not see the setting sees the mode.
    for client in [&mut client, &mut server.connect_to("stranger", SUPERUSER)] {
        assert_eq!(printed(client, MODE), "pending_restart");
    }
    take_one(&mut client, GENERATE);
    take_one(&mut server.connect(), GENERATE);

    server.restart(Shutdown::Fast);

    let mut client = server.connect();
    assert_eq!(printed(&mut client, MODE), "on");
    assert_refused(&mut client, GENERATE, NO_LEASE);
    set(&server, "registry", "");
    wait_for(&mut client, pending, "the reload is known");
    assert_eq!(printed(&mut client, MODE), "on");
    assert_refused(&mut server.connect(), GENERATE, NO_LEASE);
}

#[test]
fn a_session_does_not_set_the_registry() {
    for (builder, message) in [(Cluster::builder(), "cannot be changed now"), (preloaded(), "without restarting")] {
        let (_server, mut client) = start(builder);
        run(&mut client, "LOAD 'pg_snowflake'");
        assert_refused(&mut client, "SET pg_snowflake.registry = 'host=/nowhere'", refusal("55P02", message));
    }
}

#[test]
fn an_ordinary_user_neither_sees_nor_sets_the_registry() {
    let registry = Registry::start();
    let (server, mut client) = start(registry.node("db-1").setting("pg_snowflake.shard_id", "5"));
    run(&mut client, "CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer");
    let mut writer = server.connect_to("writer", SUPERUSER);
    let denied = |message| refusal("42501", message);

    let hidden = denied("to examine");
    assert_refused(&mut writer, "SHOW pg_snowflake.registry", hidden);
    let status = denied("permission denied for function snowflake_lease_status");
    assert_refused(&mut writer, "SELECT * FROM snowflake_lease_status()", status);
    for setting in ["registry", "lease", "node"] {
        let set = format!("SET pg_snowflake.{setting} = '1s'");
        assert!(writer.simple_query(&set).is_err(), "{set}");
    }
    first_id(&mut writer, GENERATE);
}
