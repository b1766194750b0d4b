//! A registry that is down, moves, or is restored.

use super::{GENERATE, LONG, NO_EXTENSION, NO_LEASE, SHORT, holder, of_lease, start, wait_for_error, wait_for_lease, wants_shard_5};
use pg_snowflake_harness::installation;
use pg_snowflake_harness::leases::{GRANTS, Registry, first_id, node};
use pg_snowflake_harness::prelude::*;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

#[test]
fn the_error_of_an_ended_lease_says_why_it_was_not_renewed() {
    let (mut registry, _server, mut client) = holder(SHORT);
    registry.cluster.stop(Shutdown::Fast);
    // A tick that begins within the lease can be used to its end.
    wait_for(&mut client, "SELECT remaining < '-1ms' AND registry_error IS NOT NULL FROM snowflake_lease_status()", "the lease has ended");

    let has_ended = Refusal { sqlstate: "55000", message: "lease of shard 5 has ended", hint: "snowflake_lease_status()" };
    let error = assert_refused(&mut client, GENERATE, has_ended);

    let detail = error.detail().unwrap();
    assert!(detail.starts_with("It ended ") && detail.contains("registry"), "{error:?}");
    registry.cluster.start();
    first_id(&mut client, GENERATE);
}

/// The worker's connection has died, and nothing has used it since.
#[test]
fn a_server_that_stops_releases_its_lease_in_a_registry_that_was_restarted() {
    let (mut registry, mut server, _client) = holder(LONG);
    registry.cluster.restart(Shutdown::Fast);

    server.stop(Shutdown::Fast);

    assert_eq!(of_lease(&registry, "state"), "released");
}

#[test]
fn the_end_of_a_lease_is_logged_once() {
    let (mut registry, server, _client) = holder(SHORT);
    registry.cluster.stop(Shutdown::Fast);
    let socket = registry.cluster.dir().join(".s.PGSQL.5432");
    let listener = UnixListener::bind(&socket).unwrap();
    installation::chown_to_server_user(&socket);
    listener.set_nonblocking(true).unwrap();
    let ends = || server.log().matches("the lease of shard 5 has ended").count();
    assert!(comes_true(|| ends() > 0), "{}", server.log());

    // Hangs up, so that the attempts can be counted.
    for attempt in 1..=10 {
        assert!(comes_true(|| listener.accept().is_ok()), "there is no attempt {attempt}");
    }

    assert_eq!(ends(), 1, "{}", server.log());
}

/// The worker waits for it, but not until the end of its deadline.
#[test]
fn a_host_that_accepts_connections_and_says_nothing_does_not_hide_the_next_one() {
    let registry = Registry::start();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let conninfo = format!(
        "host=127.0.0.1,{} port={},5432 user=node dbname=postgres",
        registry.cluster.dir().display(),
        silent.local_addr().unwrap().port()
    );
    let (_server, mut client) = start(node("db-1", &conninfo).setting("pg_snowflake.shard_id", "5"));

    first_id(&mut client, GENERATE);
}

/// The longest lease that the registry was ever asked for may be one that it has forgotten.
#[test]
fn a_lease_that_was_granted_in_the_quiet_time_is_held_and_has_not_begun() {
    let mut registry = Registry::start();
    let ask = "SELECT snowflake_registry.claim('{9}', 'db-9', gen_random_uuid(), NULL, gen_random_uuid(),
                   clock_timestamp() + '5 min', '5 min')";
    run(&mut registry.cluster.connect(), ask);
    registry.cluster.restart(Shutdown::Fast);
    let (_server, mut client) = start(wants_shard_5(&registry, "db-1", SHORT));
    wait_for(&mut client, "SELECT last_answer_at IS NOT NULL FROM snowflake_lease_status()", "the registry has answered");

    assert_eq!(printed(&mut client, "SELECT state, starts > clock_timestamp() FROM snowflake_lease_status()"), "held|t");
    assert_refused(&mut client, GENERATE, Refusal { message: "lease of shard 5 has not begun", ..NO_LEASE });
}

#[test]
fn a_registry_that_fails_over_is_found_by_the_connection_string() {
    let mut registry = Registry::start();
    let standby = registry.cluster.standby();
    let conninfo = format!(
        "host={},{} target_session_attrs=read-write user=node dbname=postgres",
        standby.dir().display(),
        registry.cluster.dir().display()
    );
    // Each of the two hosts has a sixth of the lease to answer.
    let (_server, mut client) = start(node("db-1", &conninfo).setting("pg_snowflake.shard_id", "5").setting("pg_snowflake.lease", "6s"));
    first_id(&mut client, GENERATE);
    let until = of_lease(&registry, "renewed_at");

    registry.cluster.kill_9();
    standby.promote();

    registry.move_to(standby);
    wait_for_lease(&registry, &format!("renewed_at > '{until}'"));
    first_id(&mut client, GENERATE);
}

/// The server keeps its connection to the registry.
#[test]
fn without_its_registrys_extension_a_server_generates_until_its_lease_ends_and_says_what_is_missing() {
    let (registry, server, mut client) = holder("2s");
    run(&mut client, "CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5))");
    run(&mut registry.cluster.connect(), "DROP EXTENSION pg_snowflake_registry");
    let error = loop {
        if let Err(error) = client.batch_execute("INSERT INTO posts DEFAULT VALUES") {
            break error.as_db_error().expect("the server is up").clone();
        }
    };

    assert_eq!(error.message(), "lease of shard 5 has ended");
    assert!(error.detail().unwrap().contains(NO_EXTENSION), "{error:?}");
    assert_eq!(printed(&mut client, "SELECT state, registry_error FROM snowflake_lease_status()"), format!("ended|{NO_EXTENSION}"));
    assert_eq!(printed(&mut client, "SELECT snowflake_created_at(max(id)) < (SELECT ends FROM snowflake_lease_status()) FROM posts"), "t");
    let log = server.log();
    assert_eq!(log.matches(&format!("WARNING:  pg_snowflake: {NO_EXTENSION}")).count(), 1, "{log}");
    assert!(log.contains("CREATE EXTENSION pg_snowflake_registry;"), "{log}");
    assert!(!log.contains("registry reported an error"), "{log}");

    // It would grant spans that have been used.
    let mut person = registry.cluster.connect();
    run(&mut person, &format!("CREATE EXTENSION pg_snowflake_registry; {GRANTS}"));
    run(&mut person, "SELECT snowflake_registry.take_over(9, 'db-9')");
    wait_for_error(&mut client, "%not the one that this server has used%");
    assert_eq!(of_lease(&registry, "node"), "");
}
