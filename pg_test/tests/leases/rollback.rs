//! A registry that goes back to an earlier state without a restart, and one whose clock was wrong.

use super::{GENERATE, LONG, claim, holder, of_lease, registry_on, start, wants_shard_5};
use pg_snowflake_harness::installation::System;
use pg_snowflake_harness::leases::{Registry, change_by_hand, first_id};
use pg_snowflake_harness::prelude::*;

#[test]
fn a_data_only_dump_is_not_restored_into_a_registry_with_leases() {
    let cluster = Cluster::new();
    let mut client = registry_on(&cluster);
    run(&mut client, &claim("*", "'{5}'", "db-1", 1));
    let dump = cluster.pg_dump("postgres", "postgres").arg("--data-only").output().unwrap();
    let dump = String::from_utf8(dump.stdout).unwrap();
    run(&mut client, &claim("*", "'{5,6}'", "db-1", 1));
    let rows = "SELECT s::text, i::text FROM snowflake_registry.shards AS s, snowflake_registry.identity AS i ORDER BY shard_id";
    let before = printed(&mut client, rows);

    assert!(dump.contains("COPY snowflake_registry.shards"), "{dump}");
    let output = cluster.psql("postgres", &format!("\\set ON_ERROR_STOP off\n{dump}"));
    assert_eq!(printed(&mut client, rows), before, "{output}");
}

/// The file of its table has the same name there.
#[test]
fn a_data_only_dump_is_restored_into_a_registry_of_another_server_that_nobody_has_called() {
    let cluster = Cluster::new();
    let mut client = registry_on(&cluster);
    let other = Cluster::builder().of_system(System::Registry).start();
    let mut of_other = registry_on(&other);
    let file = "SELECT pg_relation_filepath('snowflake_registry.shards')";
    assert_eq!(printed(&mut client, file), printed(&mut of_other, file));
    run(&mut client, &claim("*", "'{5}'", "db-1", 1));
    let dump = cluster.pg_dump("postgres", "postgres").arg("--data-only").output().unwrap();
    let dump = format!("\\set ON_ERROR_STOP on\n{}", String::from_utf8(dump.stdout).unwrap());

    other.psql("postgres", &dump);

    let rows = "SELECT s::text, n::text FROM snowflake_registry.shards AS s, snowflake_registry.nodes AS n";
    assert_eq!(printed(&mut client, rows), printed(&mut of_other, rows));
    run(&mut of_other, &claim("*", "'{6}'", "db-1", 1));
    let refusal = refusal("55000", "cannot change table");
    assert_refused(&mut of_other, "INSERT INTO snowflake_registry.shards TABLE snowflake_registry.shards", refusal);
}

/// The rows of both shards are those of a time at which nobody had shard 5.
#[test]
fn a_registry_that_was_rolled_back_is_noticed_by_a_server_that_renews() {
    let registry = Registry::start();
    let (other, _) = start(registry.node("db-6").setting("pg_snowflake.shard_id", "6").setting("pg_snowflake.lease", LONG));
    let mut superuser = registry.cluster.connect();
    wait_for(&mut superuser, "SELECT count(*) = 1 FROM snowflake_registry.shards", "shard 6 is held");
    run(&mut superuser, "CREATE TABLE backup AS TABLE snowflake_registry.shards");
    run(&mut other.connect(), "SELECT pg_reload_conf()");
    let is_renewed = "SELECT s.serial > b.serial FROM snowflake_registry.shards AS s, backup AS b WHERE s.shard_id = 6";
    wait_for(&mut superuser, is_renewed, "the lease is renewed");
    let (_holder, mut client) = start(wants_shard_5(&registry, "db-1", LONG));
    first_id(&mut client, GENERATE);

    change_by_hand(&mut superuser, "DELETE FROM snowflake_registry.shards; INSERT INTO snowflake_registry.shards TABLE backup");
    run(&mut other.connect(), "SELECT pg_reload_conf()");
    let is_noticed = "SELECT quiet_until > clock_timestamp() + interval '4 min' FROM snowflake_registry.identity";
    wait_for(&mut superuser, is_noticed, "the rollback is noticed");

    let (_thief, _) = start(wants_shard_5(&registry, "db-2", LONG));
    wait_for(&mut superuser, "SELECT count(*) = 1 FROM snowflake_registry.shards WHERE shard_id = 5", "");
    assert_eq!(of_lease(&registry, "starts >= (SELECT quiet_until - interval '1 s' FROM snowflake_registry.identity)"), "t");
    assert!(registry.cluster.log().contains("registry of leases was rolled back"));
}

/// The log says when the server can generate IDs again.
#[test]
fn a_lease_that_was_lost_and_is_granted_again_is_logged() {
    let (registry, server, mut client) = holder(LONG);
    let mut superuser = registry.cluster.connect();
    change_by_hand(&mut superuser, "DELETE FROM snowflake_registry.shards");

    run(&mut client, "SELECT pg_reload_conf()");

    wait_for(&mut client, "SELECT starts > clock_timestamp() FROM snowflake_lease_status()", "the lease is granted again");
    let log = server.log();
    let lost = log.find("lost the lease of shard 5").expect("a warning");
    let begins = "pg_snowflake: holding the lease of shard 5\n";
    assert_eq!(log[..lost].matches(begins).count(), 1, "{log}");
    let granted = || {
        let log = server.log();
        log[lost..].contains(begins) && log[lost..].contains("The spans begin at ")
    };
    assert!(comes_true(granted), "{}", server.log());
}

#[test]
fn a_quiet_time_of_a_wrong_clock_is_ended() {
    let mut cluster = Cluster::builder().fake_clock().start();
    let mut client = registry_on(&cluster);
    run(&mut client, &claim("*", "'{5}'", "db-1", 1));
    // BETWEEN would call the function twice.
    let end = "SELECT abs(extract(epoch FROM snowflake_registry.end_quiet_time() - clock_timestamp()) - 300) < 60";
    assert_refused(&mut client, end, refusal("55000", "registry has no quiet time"));
    let not_yet = Refusal {
        sqlstate: "55000",
        message: "quiet time of the registry cannot end earlier",
        hint: "Servers that hold a lease renew it meanwhile",
    };
    cluster.restart(Shutdown::Fast);
    let mut client = cluster.connect();
    cluster.set_clock(3600.0);
    printed(&mut client, "SELECT snowflake_registry.take_over(6, 'db-6')");
    assert_refused(&mut client, end, not_yet);

    cluster.set_clock(0.0);
    assert_eq!(printed(&mut client, end), "t");
    assert_refused(&mut client, end, not_yet);
    // A shard that nobody had is free, although it was reserved in the future.
    assert_eq!(printed(&mut client, "SELECT ends < clock_timestamp() FROM snowflake_registry.shards WHERE shard_id = 6"), "t");

    // A lease that was granted in the future may be one of many: the clock may be behind now.
    cluster.set_clock(7200.0);
    run(&mut client, &claim("*", "'{7}'", "db-7", 7));
    cluster.restart(Shutdown::Fast);
    let mut client = cluster.connect();
    printed(&mut client, "SELECT snowflake_registry.take_over(6, 'db-6')");
    cluster.set_clock(0.0);
    assert_refused(&mut client, end, Refusal { hint: "Correct the registry's clock", ..not_yet });
}
