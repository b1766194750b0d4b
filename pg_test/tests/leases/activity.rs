//! The lease worker in `pg_stat_activity`, and what other sessions ask of it there.

use super::{GENERATE, LONG, SHORT, holder, start, wants_shard_5};
use pg_snowflake_harness::installation;
use pg_snowflake_harness::leases::{Registry, answers_kept_back, node};
use pg_snowflake_harness::prelude::*;
use std::net::TcpListener;

const WORKER: &str = "FROM pg_stat_activity WHERE backend_type = 'pg_snowflake lease worker'";

fn wait_for_worker(client: &mut Client, state: &str, query: &str) {
    wait_for(client, &format!("SELECT count(*) = 1 {WORKER} AND state = '{state}' AND query = '{query}'"), query);
}

/// A server whose worker waits for a registry that accepts connections and never answers.
fn waits_for_a_silent_registry() -> (TcpListener, Cluster, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let conninfo = format!("host=127.0.0.1 port={}", listener.local_addr().unwrap().port());
    let (server, mut client) = start(node("db-1", &conninfo).setting("pg_snowflake.lease", LONG));
    wait_for_worker(&mut client, "active", "connecting to the registry");
    (listener, server, client)
}

#[test]
fn the_activity_of_the_worker_says_what_it_waits_for() {
    let registry = Registry::start();
    let (_server, mut client) = start(wants_shard_5(&registry, "db-1", SHORT));
    wait_for_worker(&mut client, "idle", "waiting until the next claim is due");

    let mut locker = answers_kept_back(&registry);
    wait_for_worker(&mut client, "active", "claiming leases from the registry");
    run(&mut locker, "COMMIT");

    wait_for_worker(&mut client, "idle", "waiting until the next claim is due");
    let is_newer = installation::major(installation::bindir()) >= 17;
    let event = if is_newer { "SnowflakeLeaseMain" } else { "Extension" };
    wait_for(&mut client, &format!("SELECT count(*) = 1 {WORKER} AND wait_event = '{event}'"), "the wait event");
}

/// They wait for every process that is connected.
#[test]
fn databases_and_tablespaces_are_dropped_and_moved_while_the_worker_waits_for_the_registry() {
    let (_registry, server, mut client) = waits_for_a_silent_registry();
    let location = server.dir().join("space");
    std::fs::create_dir(&location).unwrap();
    installation::chown_to_server_user(&location);
    let location = location.display();

    for sql in [
        "CREATE DATABASE gone",
        &format!("CREATE TABLESPACE space LOCATION '{location}'"),
        "ALTER DATABASE gone SET TABLESPACE space",
        "DROP DATABASE gone",
        "DROP TABLESPACE space",
    ] {
        run(&mut client, sql);
    }

    wait_for_worker(&mut client, "active", "connecting to the registry");
}

#[test]
fn to_cancel_the_worker_changes_nothing() {
    let (_registry, server, mut client) = holder(LONG);
    let pid = printed(&mut client, &format!("SELECT pid {WORKER}"));
    for _ in 0..10 {
        printed(&mut client, &format!("SELECT pg_cancel_backend({pid})"));
        // It still does what it is asked to do.
        run(&mut client, "CREATE DATABASE gone");
        run(&mut client, "DROP DATABASE gone");
        take_one(&mut client, GENERATE);
    }
    assert_eq!(printed(&mut client, &format!("SELECT pid {WORKER}")), pid);
    assert!(!server.log().contains("canceling"), "{}", server.log());
}
