//! What a reload changes, and what `snowflake_lease_status()` shows.

use super::{GENERATE, LONG, SHORT, holder, of_lease, set, start, wait_for_lease, wants_shard_5};
use nix::unistd::gethostname;
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::prelude::*;

#[test]
fn a_reload_changes_the_length_of_the_lease() {
    let (registry, server, mut client) = holder(SHORT);
    assert_eq!(of_lease(&registry, "ends - renewed_at < '10 s'"), "t");

    set(&server, "lease", "1min");

    wait_for_lease(&registry, "ends - renewed_at > '50 s'");
    for length in ["0", "999ms", "301s", "1h", "-1"] {
        let set = format!("ALTER SYSTEM SET pg_snowflake.lease = '{length}'");
        assert_refused(&mut client, &set, refusal("22023", "outside the valid range"));
    }
}

/// Another name would give its assigned shard to another node.
#[test]
fn a_node_has_its_name_and_its_assigned_shard_until_a_restart() {
    let registry = Registry::start();
    let (mut server, _) = start(registry.node("db-1").setting("pg_snowflake.lease", LONG));
    let mut superuser = registry.cluster.connect();
    let shard = |server: &Cluster| {
        let mut client = server.connect();
        split(first_id(&mut client, "SELECT snowflake_nextval('s')")).shard
    };
    assert_eq!(shard(&server), 0);
    run(&mut superuser, "CREATE TABLE before AS TABLE snowflake_registry.leases");

    set(&server, "node", "db-7");

    let renewed = "SELECT l.node FROM snowflake_registry.leases AS l, before AS b WHERE l.renewed_at > b.renewed_at";
    wait_for(&mut superuser, &format!("SELECT EXISTS ({renewed})"), "the lease is renewed");
    assert_eq!(printed(&mut superuser, renewed), "db-1");
    assert_eq!(printed(&mut server.connect(), "SELECT node FROM snowflake_lease_status()"), "db-1");
    for (name, number) in [("db-7", 1), ("db-1", 0)] {
        set(&server, "node", name);
        server.restart(Shutdown::Fast);
        assert_eq!(shard(&server), number, "{name}");
    }
}

#[test]
fn a_reload_that_leaves_the_server_no_shards_releases_those_that_it_held() {
    let (registry, server, mut client) = holder(LONG);
    for (setting, value) in [("allowed_hosts", "elsewhere"), ("owned_shards", "0-8192")] {
        set(&server, setting, value);
        wait_for_lease(&registry, "state = 'released'");

        set(&server, setting, "");
        first_id(&mut client, GENERATE);
    }
    assert!(server.log().contains("8192"), "the log does not name the limit:\n{}", server.log());
}

#[test]
fn the_name_of_the_node_is_by_default_that_of_the_host_and_the_cluster() {
    let registry = Registry::start();
    let builder = wants_shard_5(&registry, "", LONG).setting("cluster_name", "db-3");
    let (_server, mut client) = start(builder);

    first_id(&mut client, GENERATE);

    let host = gethostname().unwrap().into_string().unwrap();
    assert_eq!(of_lease(&registry, "node"), format!("{host}/db-3"));
}

#[test]
fn the_status_of_a_lease_is_that_of_the_registry() {
    let (registry, server, mut client) = holder(LONG);
    run(&mut client, "CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor");

    let columns = "shard_id, node, starts, ends, state, incarnation";
    let shown = printed(&mut server.connect_to("monitor", SUPERUSER), &format!("SELECT {columns} FROM snowflake_lease_status()"));

    assert_eq!(shown, of_lease(&registry, columns));
    let plausible =
        "SELECT remaining BETWEEN '0' AND '5min', last_answer_at <= now(), registry_error IS NULL FROM snowflake_lease_status()";
    assert_eq!(printed(&mut client, plausible), "t|t|t");
}

#[test]
fn a_server_whose_shard_the_registry_is_to_assign_goes_on_with_the_one_that_it_had() {
    let (registry, server, mut client) = holder(LONG);
    let begin = of_lease(&registry, "starts");

    set(&server, "shard_id", "-1");

    let has_anew = format!("SELECT bool_or(state = 'held' AND starts > '{begin}') FROM snowflake_lease_status()");
    wait_for(&mut client, &has_anew, "the shard is assigned");
    assert_eq!(printed(&mut client, "SELECT starts <= clock_timestamp() FROM snowflake_lease_status()"), "t");
}

#[test]
fn a_release_that_failed_is_repeated() {
    let (registry, server, mut client) = holder(LONG);
    let mut person = registry.cluster.connect();
    run(&mut person, "REVOKE EXECUTE ON FUNCTION snowflake_registry.release FROM node");
    // In the end, more are to be released than a request can name.
    for (shards, count) in [("5, 6", 2), ("5", 1), ("5, 6", 2), ("5", 1), ("0-8191", 8192), ("5, 8192-8193", 3), ("5", 1)] {
        set(&server, "owned_shards", shards);
        wait_for(&mut client, &format!("SELECT count(*) = {count} FROM snowflake_lease_status() WHERE state = 'held'"), shards);
    }

    run(&mut person, "GRANT EXECUTE ON FUNCTION snowflake_registry.release TO node");

    let are_released = "SELECT bool_and(state = 'released') FROM snowflake_registry.leases WHERE shard_id <> 5";
    wait_for(&mut person, are_released, "the others are released");
}
