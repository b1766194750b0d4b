//! Servers without a registry, and servers that cannot use theirs.

use super::{GENERATE, NO_LEASE, SHORT, holder, set, start};
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, run};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::sequence::take_one;
use pg_snowflake_harness::wait::{comes_true, wait_for};
use pg_snowflake_harness::{Builder, Cluster, SUPERUSER, Shutdown};

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
        let unset = Refusal { sqlstate: "55000", message: "pg_snowflake.shard_id is not set", hint: "" };
        assert_refused(&mut client, "SELECT snowflake_nextval('s')", unset);
    }
}

/// As for `primary_conninfo`: a mistake in a template does not turn leases off.
#[test]
fn a_registry_of_blanks_is_a_connection_string() {
    let builder = preloaded().setting("pg_snowflake.registry", " ");
    let (_server, mut client) = start(builder.setting("pg_snowflake.shard_id", "5"));
    assert_eq!(printed(&mut client, MODE), "on");
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
    for generate in [GENERATE, "SELECT snowflake_nextvals('s', 5, 1)"] {
        assert_refused(&mut server.connect_to("writer", "postgres"), generate, NOT_PRELOADED);
    }
    assert_eq!(printed(&mut client, MODE), "not_preloaded");
}

/// A session that began before the reload knows, too, as does one of an ordinary role.
#[test]
fn a_registry_that_is_set_by_a_reload_stops_all_ids_until_a_restart() {
    let (mut server, mut client) = start(preloaded());
    run(&mut client, "CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer");
    take_one(&mut client, GENERATE);
    let not_restarted =
        Refusal { sqlstate: "55000", message: "pg_snowflake.registry was set after the server started", hint: "Restart the server." };
    for (value, mode) in [("host=/nowhere", "pending_restart"), ("", "off"), ("host=/nowhere", "pending_restart")] {
        set(&server, "registry", value);
        let is_known = format!("SELECT snowflake_lease_mode() = '{mode}'");
        for client in [&mut client, &mut server.connect_to("writer", SUPERUSER)] {
            wait_for(client, &is_known, mode);
            if value.is_empty() {
                take_one(client, GENERATE);
            } else {
                assert_refused(client, GENERATE, not_restarted);
            }
        }
    }
    let status = "SELECT registry_error FROM snowflake_lease_status()";
    assert!(printed(&mut client, status).contains(not_restarted.message));

    server.stop(Shutdown::Fast);
    server.start();

    let mut client = server.connect();
    assert_eq!(printed(&mut client, MODE), "on");
    assert_refused(&mut client, GENERATE, NO_LEASE);
}

/// Leases last until the restart, of which `pg_settings` warns.
#[test]
fn a_registry_that_is_unset_by_a_reload_is_in_use_until_a_restart() {
    let (_registry, server, mut client) = holder(SHORT);
    set(&server, "registry", "");
    let is_pending = "SELECT pending_restart FROM pg_settings WHERE name = 'pg_snowflake.registry'";
    wait_for(&mut client, is_pending, "the reload is known");
    assert_eq!(printed(&mut client, MODE), "on");
    first_id(&mut client, GENERATE);
}

#[test]
fn a_session_does_not_set_the_registry() {
    let registry = Registry::start();
    for (builder, message) in [(preloaded(), "cannot be changed now"), (registry.node("db-1"), "without restarting")] {
        let (_server, mut client) = start(builder);
        let denied = Refusal { sqlstate: "55P02", message, hint: "" };
        assert_refused(&mut client, "SET pg_snowflake.registry = 'host=/nowhere'", denied);
    }
}

#[test]
fn an_ordinary_user_neither_sees_nor_sets_the_registry() {
    let registry = Registry::start();
    let (server, mut client) = start(registry.node("db-1").setting("pg_snowflake.shard_id", "5"));
    run(&mut client, "CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer");
    let mut writer = server.connect_to("writer", SUPERUSER);
    let denied = |message| Refusal { sqlstate: "42501", message, hint: "" };

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
