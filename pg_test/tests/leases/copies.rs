//! A server beside a copy of it: the original comes first.

use super::{GENERATE, LONG, NO_LEASE, holder, of_lease, wait_for_error};
use pg_snowflake_harness::installation;
use pg_snowflake_harness::leases::first_id;
use pg_snowflake_harness::prelude::*;

/// The copy claims the shard twice a second, and the lease is kept for five minutes after each stop.
#[test]
fn a_server_that_restarts_keeps_its_shard_from_a_copy_of_it() {
    let (_registry, mut source, mut client) = holder(LONG);
    let mut last = first_id(&mut client, GENERATE);
    let mut copy = source.base_backup();
    copy.start();
    let mut of_copy = copy.connect();
    for reason in ["held by an earlier run or a copy of this server", "kept for the server"] {
        if reason.starts_with("kept") {
            source.stop(Shutdown::Fast);
        }
        wait_for_error(&mut of_copy, &format!("%{reason}%"));
    }
    source.start();
    // Twenty restarts at once, and five after the copy has asked, too.
    for restart in 0..25 {
        let id = first_id(&mut source.connect(), GENERATE);
        assert!(id > last);
        last = id;
        source.stop(Shutdown::Fast);
        if restart >= 20 {
            let stopped = printed(&mut of_copy, "SELECT clock_timestamp()");
            let has_asked = format!("SELECT last_answer_at > '{stopped}' FROM snowflake_lease_status()");
            wait_for(&mut of_copy, &has_asked, "the registry has answered the copy");
        }
        source.start();
    }
    assert_refused(&mut of_copy, GENERATE, NO_LEASE);
}

/// Both have the serial of the release.
#[test]
fn two_servers_with_the_same_data_directory_learn_of_each_other() {
    let (registry, mut source, _client) = holder(LONG);
    source.stop(Shutdown::Fast);
    let mut copy = source.snapshot();

    copy.start();
    let mut of_copy = copy.connect();
    first_id(&mut of_copy, GENERATE);
    source.start();
    let mut of_source = source.connect();

    let claims = "Two servers with the same data directory claim shard 5. The registry cannot know which one is the copy.";
    let other = "The other server connects by a Unix-domain socket, and was started at 20";
    wait_for_error(&mut of_source, &format!("registry refused the lease of shard 5: {claims} {other}%"));
    // The first one learns of it when it renews its lease: a third of five minutes later, or when it reads its configuration again.
    printed(&mut of_copy, "SELECT pg_reload_conf()");
    wait_for_error(
        &mut of_copy,
        &format!("a copy of this server is running: Another server with the name of this one claims shard 5, too. {other}%"),
    );
    first_id(&mut of_copy, GENERATE);
    assert_refused(&mut of_source, GENERATE, NO_LEASE);
    let started = "to_char(copy_started_at, 'YYYY-MM-DD HH24:MI:SS.US')";
    let of_source = printed(&mut of_source, "SELECT to_char(pg_postmaster_start_time(), 'YYYY-MM-DD HH24:MI:SS.US')");
    assert_eq!(of_lease(&registry, started), of_source);
}

/// pg_upgrade copies neither the configuration nor what the server knows of its registry.
#[test]
fn a_server_that_was_upgraded_waits_for_its_shard_like_another_server_unless_a_person_takes_over() {
    let (registry, server, mut client) = holder(LONG);
    let last = first_id(&mut client, GENERATE);

    let mut upgraded = server.upgrade(installation::bindir());
    let mut client = upgraded.connect();
    assert_eq!(printed(&mut client, "SELECT snowflake_lease_mode()"), "off");
    let conninfo = registry.conninfo();
    for setting in
        ["shared_preload_libraries = pg_snowflake", &format!("pg_snowflake.registry = '{conninfo}'"), "pg_snowflake.node = 'db-1'"]
    {
        run(&mut client, &format!("ALTER SYSTEM SET {setting}"));
    }
    run(&mut client, "ALTER SYSTEM SET pg_snowflake.shard_id = 5");
    upgraded.restart(Shutdown::Fast);
    let mut client = upgraded.connect();
    wait_for_error(&mut client, "%Shard 5 is kept for the server that held it last, node \"db-1\",%");
    printed(&mut registry.cluster.connect(), "SELECT snowflake_registry.take_over(5, 'db-1')");
    assert!(first_id(&mut client, GENERATE) > last);
}
