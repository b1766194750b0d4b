//! What keeps a server from having leases: each is reported once, and the server generates no IDs.

use super::{
    GENERATE, LONG, NO_EXTENSION, NO_LEASE, SHORT, holder, reload_with, set, start, wait_for_error, wait_for_lease, wants_shard_5,
};
use pg_snowflake_harness::leases::{Registry, answers_kept_back, first_id, node, restart_worker, waiting_sessions};
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::{installation, release};
use std::path::Path;
use std::thread;

fn assert_no_lease(settings: Builder, reason: &str) {
    let (server, mut client) = start(settings.setting("pg_snowflake.shard_id", "5"));
    assert_refused_because(&server, &mut client, reason);
}

fn assert_refused_because(server: &Cluster, client: &mut Client, reason: &str) {
    wait_for(client, "SELECT registry_error IS NOT NULL FROM snowflake_lease_status()", reason);
    let shown = printed(client, "SELECT registry_error FROM snowflake_lease_status()");
    assert!(shown.contains(reason), "{reason:?} is not in {shown:?}");
    let error = assert_refused(client, GENERATE, NO_LEASE);
    assert!(error.detail().is_some() && error.hint().is_some(), "{error:?}");
    // The worker publishes the reason first.
    assert!(comes_true(|| warnings(server) > 0), "{}", server.log());
    assert!(server.log().contains(reason), "{reason:?} is not in the log:\n{}", server.log());
}

#[test]
fn a_registry_that_cannot_be_used_grants_nothing() {
    let registry = Registry::start();
    let mut person = registry.cluster.connect();
    run(&mut person, "CREATE ROLE stranger LOGIN; CREATE ROLE half LOGIN; GRANT USAGE ON SCHEMA snowflake_registry TO half");
    registry.cluster.fresh_database("of_ids");
    let standby = registry.cluster.standby();
    let host = |dir: &Path| format!("host={} dbname=postgres user=node", dir.display());
    let usable = host(registry.cluster.dir());
    let cases = [
        ("garbage".into(), "missing \"=\" after \"garbage\""),
        ("host=/nowhere user=node".into(), "No such file or directory"),
        ("host=no-such-host.invalid user=node".into(), "could not translate host name"),
        (usable.replace("user=node", "user=nobody"), "role \"nobody\" does not exist"),
        (usable.replace("user=node", "user=stranger"), "permission denied for schema"),
        (usable.replace("user=node", "user=half"), "permission denied for function"),
        (usable.replace("dbname=postgres", "dbname=none"), "database \"none\" does not exist"),
        (usable.replace("dbname=postgres", "dbname=template1"), NO_EXTENSION),
        (usable.replace("dbname=postgres", "dbname=of_ids"), NO_EXTENSION),
        (host(standby.dir()), "during recovery"),
    ];
    for (conninfo, reason) in cases {
        assert_no_lease(node("db-1", &conninfo), reason);
    }
    assert_no_lease(registry.node(&"x".repeat(300)), "invalid node name");
}

#[test]
fn a_registry_of_another_version_that_lacks_a_function_or_a_column_grants_nothing() {
    let without_function = |function| format!("ALTER FUNCTION snowflake_registry.{function} RENAME TO former");
    let without_column = "UPDATE pg_proc SET proargnames = array_replace(proargnames, 'retry_at', 'former') WHERE proname = 'claim'";
    for lack in ["id", "claim", "release"].map(without_function).into_iter().chain([without_column.to_owned()]) {
        let registry = Registry::start();
        run(&mut registry.cluster.connect(), &format!("{lack}; {OTHER_VERSION}"));
        let reason = format!("incompatible version of pg_snowflake_registry: The registry has 0.0.1, this server {}.", release::head());
        let (server, mut client) = start(registry.node("db-1").setting("pg_snowflake.shard_id", "5"));
        assert_refused_because(&server, &mut client, &reason);
        let log = server.log();
        assert!(log.contains("ALTER EXTENSION pg_snowflake_registry UPDATE;"), "{log}");
    }
}

/// As if another version had been installed in the registry.
const OTHER_VERSION: &str = "UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'pg_snowflake_registry'";

/// Otherwise, an update of the registry would stop all servers.
#[test]
fn a_registry_of_another_version_with_the_same_functions_grants_leases_and_is_logged_once() {
    let mut registry = Registry::start();
    run(&mut registry.cluster.connect(), OTHER_VERSION);
    let (server, mut client) = start(wants_shard_5(&registry, "db-1", LONG));
    first_id(&mut client, GENERATE);
    registry.cluster.restart(Shutdown::Fast);
    // It connects again.
    set(&server, "owned_shards", "5, 6");
    wait_for_lease(&registry, "(SELECT count(*) = 2 FROM snowflake_registry.leases)");

    let log = server.log();
    assert_eq!(log.matches(&format!("The registry has 0.0.1, this server {}.", release::head())).count(), 1, "{log}");
    assert_eq!(warnings(&server), 0, "{log}");
}

#[test]
fn a_problem_that_lasts_is_logged_once() {
    let mut registry = Registry::start();
    run(&mut registry.cluster.connect(), "ALTER ROLE node PASSWORD 'right'");
    registry.cluster.stop(Shutdown::Fast);
    let file = registry.cluster.dir().join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("local all node scram-sha-256\n{rules}")).unwrap();
    registry.cluster.start();
    let wrong_password = format!("{} password=wrong", registry.conninfo());
    let no_role = registry.conninfo().replace("user=node", "user=nobody");
    let servers = [wrong_password, no_role]
        .map(|conninfo| start(node("db-1", &conninfo).setting("pg_snowflake.lease", LONG).setting("pg_snowflake.shard_id", "5")));
    for problem in ["password authentication failed for user", "role \"nobody\" does not exist"] {
        let fatal = format!("FATAL:  {problem}");
        assert!(comes_true(|| registry.cluster.log().matches(&fatal).count() >= 5), "{problem}:\n{}", registry.cluster.log());
    }
    for (server, mut client) in servers {
        assert_eq!(warnings(&server), 1, "{}", server.log());
        assert_refused(&mut client, GENERATE, NO_LEASE);
    }
}

fn warnings(server: &Cluster) -> usize {
    server.log().lines().filter(|line| line.contains("WARNING:  pg_snowflake")).count()
}

/// A copy of the server would also be a copy of the registry.
#[test]
fn a_registry_on_the_server_itself_grants_nothing() {
    let (mut server, mut client) = start(node("db-1", ""));
    let conninfo = format!("host={} dbname=postgres user=postgres", server.dir().display());
    run(&mut client, "CREATE EXTENSION pg_snowflake_registry");
    run(&mut client, &format!("ALTER SYSTEM SET pg_snowflake.registry = '{conninfo}'"));
    run(&mut client, "ALTER SYSTEM SET pg_snowflake.shard_id = 5");
    server.restart(Shutdown::Fast);
    assert_refused_because(&server, &mut server.connect(), "on this server or on a copy of it");
}

/// An empty registry would grant spans whose IDs have been returned.
#[test]
fn a_registry_in_place_of_the_first_one_grants_nothing_until_a_person_agrees() {
    let (_registry, server) = server_that_refuses_another_registry("");

    run(&mut server.connect(), "SELECT snowflake_forget_registry()");

    first_id(&mut server.connect(), GENERATE);
}

#[test]
fn a_registry_of_other_servers_is_not_changed() {
    let (registry, _server) = server_that_refuses_another_registry("SELECT snowflake_registry.take_over(9, 'db-9')");
    assert_eq!(printed(&mut registry.cluster.connect(), "SELECT shard_id, node FROM snowflake_registry.leases"), "9|db-9");
}

/// pg_rewind replaces the files of the data directory by those of the new primary, and removes what that lacks.
#[test]
fn a_rewound_server_refuses_another_registry() {
    let registry = Registry::start();
    let settings = wants_shard_5(&registry, "db-1", LONG).setting("wal_log_hints", "on").setting("wal_keep_size", "100MB");
    let (mut server, mut client) = start(settings);
    let standby = server.standby();
    first_id(&mut client, GENERATE);
    standby.promote();
    run(&mut client, "CREATE TABLE diverged ()");
    run(&mut standby.connect(), "CHECKPOINT");
    server.stop(Shutdown::Fast);
    let source = format!("host={} user={SUPERUSER} dbname=postgres", standby.dir().display());
    let mut rewind = installation::as_server_user(installation::bindir().join("pg_rewind"), server.dir());
    let output = rewind.args(["--target-pgdata=data", "--source-server", &source]).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    assert_refuses_another_registry(registry, server, "");
}

/// A server that has used a registry, and refuses another one at its address in which `first_call` was made.
fn server_that_refuses_another_registry(first_call: &str) -> (Registry, Cluster) {
    let (registry, mut server, _client) = holder(LONG);
    server.stop(Shutdown::Fast);
    assert_refuses_another_registry(registry, server, first_call)
}

fn assert_refuses_another_registry(mut registry: Registry, mut server: Cluster, first_call: &str) -> (Registry, Cluster) {
    let Registry { cluster: another, .. } = Registry::start();
    run(&mut another.connect(), first_call);
    registry.move_to(another);
    server.start();
    assert_refused_because(&server, &mut server.connect(), "not the one that this server has used");
    (registry, server)
}

/// The registry has granted the lease, but may lose it in a failover. With these settings of the role, the grant would not
/// wait for the standby, and the warning would not be sent.
#[test]
fn an_answer_with_a_warning_grants_nothing() {
    let mut registry = Registry::start();
    let mut person = registry.cluster.connect();
    run(&mut person, "ALTER ROLE node SET synchronous_commit = off; ALTER ROLE node SET client_min_messages = error");
    run(&mut person, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    registry.cluster.restart(Shutdown::Fast);
    let mut person = registry.cluster.connect();
    // The process that does it lets commits wait from then on.
    run(&mut person, "CHECKPOINT");
    let (server, mut client) = start(wants_shard_5(&registry, "db-1", LONG));
    let waits = || waiting_sessions(&registry, "SyncRep") > 0;
    assert!(comes_true(waits), "the grant does not wait for the standby");
    assert_refused(&mut client, GENERATE, NO_LEASE);

    printed(&mut person, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");

    assert_refused_because(&server, &mut client, "canceling wait for synchronous replication");
    reload_with(&mut person, "ALTER SYSTEM RESET synchronous_standby_names");
    first_id(&mut client, GENERATE);
}

/// The first request waits for the standby, and the next ones for its locks.
#[test]
fn a_lost_synchronous_standby_of_the_registry_is_named() {
    let (registry, server, mut client) = holder(SHORT);
    let mut person = registry.cluster.connect();
    reload_with(&mut person, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");

    wait_for_error(&mut client, "registry waits for its synchronous standby: An earlier request has waited % s,%");
    let hint = "HINT:  Start the standby.";
    assert!(comes_true(|| server.log().contains(hint)), "{}", server.log());

    reload_with(&mut person, "ALTER SYSTEM RESET synchronous_standby_names");
    first_id(&mut client, GENERATE);
}

/// Somebody else's commit waits for the standby, and a transaction that waits for nothing has the lock.
#[test]
fn a_lock_timeout_is_not_blamed_on_the_standby_of_other_commits() {
    let registry = Registry::start();
    let mut person = registry.cluster.connect();
    run(&mut person, "CREATE TABLE other AS SELECT 'snowflake_registry.'; GRANT ALL ON other TO node; GRANT ALL ON SCHEMA public TO node");
    let other = registry.cluster.fresh_database("other");
    drop(other);
    reload_with(&mut person, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    let commits = [("postgres", SUPERUSER), ("other", "node")].map(|(database, role)| {
        let mut client = registry.cluster.connect_to(role, database);
        thread::spawn(move || {
            run(&mut client, "SELECT 'snowflake_registry.', pg_current_xact_id(); CREATE TEMPORARY TABLE t ()");
        })
    });
    wait_for(&mut person, "SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "commits wait");
    let mut locker = answers_kept_back(&registry);
    let (_server, mut client) = start(wants_shard_5(&registry, "db-1", SHORT));

    wait_for_error(&mut client, "%lock timeout%");
    let waits_long = "SELECT min(now() - query_start) > '1 s' FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    wait_for(&mut person, waits_long, "the commits wait for longer than lock_timeout");
    for _ in 0..20 {
        let error = printed(&mut client, "SELECT registry_error FROM snowflake_lease_status()");
        assert!(error.contains("lock timeout"), "{error}");
    }

    run(&mut locker, "ROLLBACK");
    reload_with(&mut person, "ALTER SYSTEM RESET synchronous_standby_names");
    commits.into_iter().for_each(|commit| commit.join().unwrap());
}

/// A session whose client has gone waits on, until it has what it waits for.
#[test]
fn claims_do_not_pile_up_behind_a_lock_in_the_registry() {
    let registry = Registry::start();
    let mut locker = answers_kept_back(&registry);
    let (_server, mut client) = start(wants_shard_5(&registry, "db-1", SHORT));
    let gives_up = || registry.cluster.log().matches("due to lock timeout").count() >= 5;
    assert!(comes_true(gives_up), "claims wait on:\n{}", registry.cluster.log());
    wait_for_error(&mut client, "%lock timeout%");

    assert!(waiting_sessions(&registry, "Lock") <= 2);

    run(&mut locker, "COMMIT");
    first_id(&mut client, GENERATE);
}

#[test]
fn a_wrong_clock_grants_nothing() {
    let registry = Registry::start();
    let (server, mut client) = start(wants_shard_5(&registry, "db-1", SHORT).fake_clock());
    restart_worker(&server);
    first_id(&mut client, GENERATE);
    for (hours, reason) in [(1.0, "ahead of the registry"), (-1.0, "behind the registry")] {
        server.set_clock(hours * 3600.0);
        wait_for_error(&mut client, &format!("%{reason}%"));
        server.set_clock(0.0);
        first_id(&mut server.connect(), GENERATE);
    }
}

/// A mistake that a manager of failovers spreads to all members does not take the cluster down.
#[test]
fn a_server_that_starts_with_an_invalid_length_uses_the_default() {
    for length in ["0", "1h"] {
        let (server, mut client) = start(node("db-1", "").setting("pg_snowflake.lease", length));
        assert_eq!(printed(&mut client, "SHOW pg_snowflake.lease"), "10s");
        assert!(server.log().contains("is outside the valid range for parameter \"pg_snowflake.lease\""), "{}", server.log());
    }
}

/// It would generate IDs without leases.
#[test]
fn a_server_that_starts_with_a_misspelt_parameter_generates_no_ids() {
    let meant = "Perhaps you meant the parameter \"pg_snowflake.registry\"";
    for (name, hint) in [("regsitry", meant), ("something_else", "The parameters are pg_snowflake.owned_shards, ")] {
        let (mut server, mut client) = start(Cluster::builder());
        run(&mut client, "CREATE TABLE plain (id int)");
        run(&mut client, &format!("SET pg_snowflake.{name} = ''"));
        for parameter in ["shared_preload_libraries = 'pg_snowflake'", &format!("pg_snowflake.{name} = 'host=/nowhere'")] {
            run(&mut client, &format!("ALTER SYSTEM SET {parameter}"));
        }
        server.restart(Shutdown::Fast);

        let mut client = server.connect();
        run(&mut client, "INSERT INTO plain VALUES (1)");
        let message = format!("unrecognized configuration parameter \"pg_snowflake.{name}\"");
        let error = assert_refused(&mut client, GENERATE, Refusal { sqlstate: "42704", message: &message, hint });
        let place = "postgresql.auto.conf\", line ";
        assert!(error.detail().is_some_and(|detail| detail.contains(place)), "{error:?}");
        let log = server.log();
        for part in [&format!("WARNING:  {message}"), hint, place] {
            assert!(log.contains(part), "{part} is not in the log:\n{log}");
        }
        run(&mut client, "CREATE ROLE reader; SET ROLE reader");
        let error = assert_refused(&mut client, "SELECT snowflake_nextval('s', 5)", Refusal { sqlstate: "42704", message: &message, hint });
        assert!(error.detail().is_some_and(|detail| !detail.contains(place)), "{error:?}");
    }
}

#[test]
fn a_lease_shorter_than_two_ticks_of_the_layout_is_too_short_for_it() {
    const GENERATE_SLOW: &str = "SELECT snowflake_nextval('slow', 5, 'time:31 shard:13 seq:19 epoch:2024-01-01 unit:1s')";
    let (_registry, server, mut client) = holder(SHORT);
    run(&mut client, "CREATE SEQUENCE slow");

    assert_refused(&mut client, GENERATE_SLOW, Refusal { message: "lease is too short for the layout", ..NO_LEASE });

    set(&server, "lease", LONG);
    first_id(&mut client, GENERATE_SLOW);
}

#[test]
fn a_shard_that_the_layout_lacks_is_refused_with_a_lease_too() {
    let registry = Registry::start();
    let (_server, mut client) = start(registry.node("db-1").setting("pg_snowflake.owned_shards", "5, 8192"));
    first_id(&mut client, GENERATE);
    assert_refused(&mut client, "SELECT snowflake_nextval('s', 8192)", refusal("22023", "shard ID 8192 is out of range"));
}

#[test]
fn a_sequence_that_was_set_to_an_id_is_recognized_under_a_lease() {
    let (_registry, _server, mut client) = holder(LONG);
    let id = first_id(&mut client, GENERATE);
    run(&mut client, &format!("SELECT setval('s', {id})"));
    let refusal =
        Refusal { sqlstate: "55000", message: "is past the end of the lease of shard 5", hint: "Call snowflake_convert_column()" };
    let error = assert_refused(&mut client, GENERATE, refusal);
    let cause = format!("its last_value, {id}, is an ID of layout \"postgres\"");
    assert!(error.detail().is_some_and(|detail| detail.contains(&cause)), "{error:?}");
}
