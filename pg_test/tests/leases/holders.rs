//! A shard that goes from one run of a server to another: after a stop, a crash, a take-over, a promotion.

use super::{GENERATE, LONG, NO_LEASE, SHORT, holder, of_lease, set, start, wait_for_error, wait_for_lease, wants_shard_5};
use nix::sys::signal::{Signal, kill};
use pg_snowflake_harness::debugger::{self, Debugger};
use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::leases::{Registry, first_id, is_refusal};
use pg_snowflake_harness::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

/// A homed ID of shard 5.
const GENERATE_HOMED: &str = "SELECT snowflake_nextval_homed_in_ranges('s', 5, '{[0,)}'::int8multirange)";

#[test]
fn a_shard_that_a_server_gives_up_goes_to_another_server() {
    let (registry, holder, mut client) = holder(LONG);
    let last = first_id(&mut client, GENERATE);
    let (_other, mut of_other) = start(wants_shard_5(&registry, "db-2", LONG));

    set(&holder, "shard_id", "6");

    assert!(first_id(&mut of_other, GENERATE) > last);
    assert_eq!(of_lease(&registry, "node"), "db-2");
    first_id(&mut client, "SELECT snowflake_nextval('s', 6)");
    assert_eq!(printed(&mut client, "SELECT shard_id, node, state FROM snowflake_lease_status()"), "6|db-1|held");
}

/// Each claim of shard 5 locks its row, and each renewal of another shard raises its serial.
#[test]
fn a_refused_shard_is_claimed_again_without_the_others() {
    let (registry, _holder, _client) = holder(LONG);
    let (_other, mut of_other) =
        start(registry.node("db-2").setting("pg_snowflake.owned_shards", "5,6,7").setting("pg_snowflake.lease", LONG));
    first_id(&mut of_other, "SELECT snowflake_nextval('s', 6)");
    let mut observer = registry.cluster.connect();
    let renewed = "SELECT string_agg(serial::text, ' ') FROM snowflake_registry.shards WHERE shard_id > 5";
    let before = printed(&mut observer, renewed);
    for _ in 0..3 {
        let xmax = printed(&mut observer, "SELECT xmax FROM snowflake_registry.shards WHERE shard_id = 5");
        let is_claimed = format!("SELECT xmax <> '{xmax}' FROM snowflake_registry.shards WHERE shard_id = 5");
        wait_for(&mut observer, &is_claimed, "the refused shard is claimed again");
    }
    assert_eq!(printed(&mut observer, renewed), before);
}

/// A run of 5,000 counters takes several ticks, of which the client gets the first ID.
#[test]
fn a_server_that_stops_releases_its_lease_right_after_what_its_sessions_have_fetched() {
    let registry = Registry::start();
    let (mut server, mut client) = start(wants_shard_5(&registry, "db-1", LONG));
    run(&mut client, "CREATE SEQUENCE before; CREATE SEQUENCE of_another_layout");
    let cases = [
        // On the fast path from the second ID on, for several milliseconds.
        ("", "SELECT max(snowflake_nextval('s', 5)) FROM generate_series(1, 5000)"),
        ("DROP SEQUENCE s; CREATE TEMPORARY SEQUENCE s CACHE 5000", GENERATE),
        ("CREATE UNLOGGED SEQUENCE s CACHE 5000", GENERATE),
        ("ALTER SEQUENCE s SET LOGGED", GENERATE),
        ("BEGIN; DECLARE ids CURSOR FOR SELECT snowflake_nextvals('s', 5, 5000)", "FETCH 1 FROM ids"),
    ];
    for (prepare, query) in cases {
        let mut client = server.connect();
        first_id(&mut client, "SELECT snowflake_nextval('before', 5)");
        // Its ticks have higher numbers.
        first_id(&mut client, "SELECT snowflake_nextval('of_another_layout', 5, 'time:41 shard:12 seq:10 epoch:2000-01-01 unit:1ms')");
        run(&mut client, prepare);
        take_one(&mut client, query);
        let last_ms = state(&mut client, "s").last_value / SEQS + EPOCH_MS;

        server.stop(Shutdown::Fast);

        let end_us = of_lease(&registry, "state, (extract(epoch FROM ends) * 1000000)::bigint");
        assert_eq!(end_us, format!("released|{}", last_ms * 1000 + 1), "{prepare}");
        server.start();
    }
}

/// The crash of one backend clears the memory in which the server keeps its spans and what it has used of them.
#[test]
fn a_server_that_crashed_or_whose_backend_crashed_generates_above_the_span_that_it_had() {
    // Each start is another incarnation.
    let crashes: [fn(&mut Cluster, i32); 2] = [|server, _| server.crash(), Cluster::kill_backend];
    for (crash, is_another) in crashes.into_iter().zip(["t", "f"]) {
        let registry = Registry::start();
        let (mut server, mut client) = start(wants_shard_5(&registry, "db-1", SHORT));
        run(&mut client, "CREATE UNLOGGED SEQUENCE u");
        first_id(&mut client, "SELECT snowflake_nextval('u', 5)");
        let end = of_lease(&registry, "ends");
        let incarnation = of_lease(&registry, "incarnation");

        crash(&mut server, backend_pid(&mut client));

        let mut client = server.connect();
        let id = first_id(&mut client, "SELECT snowflake_nextval('u', 5)");
        assert_eq!(printed(&mut client, &format!("SELECT snowflake_created_at({id}) >= '{end}'")), "t", "{end}");
        assert_eq!(of_lease(&registry, &format!("incarnation <> '{incarnation}'")), is_another);
    }
}

#[test]
fn a_lease_worker_that_is_terminated_releases_its_leases_and_starts_again() {
    let (registry, server, mut client) = holder(LONG);
    let begin = of_lease(&registry, "starts");
    let worker = server.processes("lease worker")[0];

    kill(worker, Signal::SIGTERM).unwrap();

    wait_for_lease(&registry, &format!("state = 'held' AND starts > '{begin}'"));
    first_id(&mut client, GENERATE);
    assert_ne!(server.processes("lease worker"), [worker]);
    let log = server.log();
    assert!(log.contains("background worker \"pg_snowflake lease worker\""), "{log}");
}

#[test]
fn a_server_that_loses_its_lease_goes_on_as_a_new_incarnation() {
    let (registry, _server, mut client) = holder(SHORT);
    let incarnation = "SELECT incarnation FROM snowflake_lease_status()";
    let before = printed(&mut client, incarnation);
    assert_eq!(of_lease(&registry, "incarnation"), before);

    run(&mut registry.cluster.connect(), "SELECT snowflake_registry.take_over(5, 'db-1')");

    wait_for(&mut client, &format!("SELECT incarnation <> '{before}' FROM snowflake_lease_status()"), "the server has lost its lease");
    first_id(&mut client, GENERATE);
    assert_eq!(of_lease(&registry, "incarnation"), printed(&mut client, incarnation));
}

/// The call sees the lease, waits for the lock on the sequence, and sees a lease again.
#[test]
fn a_call_that_waited_for_a_lock_past_the_end_of_the_lease_that_it_saw_gets_an_id() {
    let (_registry, server, _client) = holder(SHORT);
    // A session that has used the sequence would wait before it sees the lease.
    let mut caller = server.connect();
    let pid = backend_pid(&mut caller);
    let mut observer = server.connect();
    let mut locker = server.connect();
    run(&mut locker, "BEGIN; ALTER SEQUENCE s CACHE 2");
    let has_waited = AtomicBool::new(false);

    let outcome = thread::scope(|scope| {
        let call = scope.spawn(|| {
            loop {
                // A slow machine renews so short a lease late.
                match caller.query_one(GENERATE, &[]) {
                    Err(error) if is_refusal(&error) && !has_waited.load(SeqCst) => {}
                    outcome => return outcome,
                }
            }
        });
        wait_until_it_waits_for_a_lock(&mut observer, pid);
        has_waited.store(true, SeqCst);
        let end = printed(&mut observer, "SELECT ends FROM snowflake_lease_status()");
        set(&server, "lease", LONG);
        let is_over = format!(
            "SELECT ends > '{end}'::timestamptz + '1 min' AND clock_timestamp() > '{end}'::timestamptz + '1 s'
             FROM snowflake_lease_status()"
        );
        wait_for(&mut observer, &is_over, "the lease that the call saw is over");
        run(&mut locker, "COMMIT");
        call.join().unwrap()
    });

    assert!(outcome.is_ok(), "{outcome:?}");
}

/// A session's first call looks up the sequence after its check of the lease, and before it locks the page.
#[test]
fn a_call_that_saw_the_lease_before_its_release_generates_no_id() {
    let (registry, server, mut client) = holder(LONG);
    let mut locker = server.connect();
    run(&mut locker, "BEGIN; LOCK TABLE pg_sequence");
    thread::scope(|scope| {
        for call in [GENERATE, "SELECT snowflake_nextvals('s', 5, 10)", GENERATE_HOMED] {
            let mut caller = server.connect();
            scope.spawn(move || assert_refused(&mut caller, call, NO_LEASE));
        }
        let waiting = "SELECT count(*) = 3 FROM pg_locks WHERE relation = 'pg_sequence'::regclass AND NOT granted";
        wait_for(&mut client, waiting, "the calls wait");
        set(&server, "shard_id", "6");
        wait_for_lease(&registry, "state = 'released'");
        run(&mut locker, "COMMIT");
    });
}

/// Each call stops after its check of the lease and before it locks the page: where it returns from the lookup of the page's buffer.
#[test]
fn a_call_on_the_fast_path_that_saw_the_lease_before_its_release_generates_no_id() {
    if let Some(need) = debugger::missing_requirement() {
        return left_out("a lease released during a call on the fast path", need);
    }
    let (registry, server, _client) = holder(LONG);
    thread::scope(|scope| {
        let stopped = [GENERATE, GENERATE_HOMED].map(|call| {
            let mut caller = server.connect();
            first_id(&mut caller, call);
            let mut debugger = Debugger::stop_at_return_of("ReadRecentBuffer", backend_pid(&mut caller));
            scope.spawn(move || assert_refused(&mut caller, call, NO_LEASE));
            debugger.wait_until_stopped();
            debugger
        });
        set(&server, "shard_id", "6");
        wait_for_lease(&registry, "state = 'released'");
        drop(stopped);
    });
}

#[test]
fn a_standby_has_no_lease_until_it_is_promoted() {
    let registry = Registry::start();
    let (mut primary, mut client) = start(wants_shard_5(&registry, "db-1", SHORT));
    run(&mut client, "CREATE TABLE t (id bigint DEFAULT snowflake_nextval('s', 5))");
    let standby = primary.standby();
    let last = first_id(&mut client, GENERATE);
    let mut client = standby.connect();
    assert!(standby.processes("lease worker").is_empty());
    assert_eq!(printed(&mut client, "SELECT * FROM snowflake_lease_status()"), "");
    assert_eq!(printed(&mut client, "SELECT shard_id, error FROM snowflake_columns"), "5|");
    let in_recovery = Refusal { sqlstate: "25006", message: "cannot execute snowflake_nextval() during recovery", hint: "primary" };
    assert_refused(&mut client, GENERATE, in_recovery);

    primary.kill_9();
    standby.promote();

    assert!(first_id(&mut client, GENERATE) > last);
}

/// It has replayed the WAL of the stop. The other one left the primary before.
#[test]
fn a_standby_that_is_promoted_once_its_primary_has_stopped_comes_as_the_original() {
    let (registry, mut primary, mut client) = holder(LONG);
    let [early, standby] = [primary.standby(), primary.standby()];
    early.promote();
    let last = first_id(&mut client, GENERATE);

    primary.stop(Shutdown::Fast);

    wait_for_error(&mut early.connect(), "%Shard 5 is kept for the server that held it last%");
    standby.promote();
    assert!(first_id(&mut standby.connect(), GENERATE) > last);
    assert_ne!(of_lease(&registry, "known_serial"), "");
}

#[test]
fn an_old_primary_that_is_alive_keeps_its_shard_until_it_stops() {
    let (registry, mut primary, mut client) = holder(LONG);
    let standby = primary.standby();
    standby.promote();
    let mut of_standby = standby.connect();
    wait_for_error(&mut of_standby, "%held by%");

    assert_refused(&mut of_standby, GENERATE, NO_LEASE);
    let last = take_one(&mut client, GENERATE);

    // The registry keeps the shard for a server that stops, as long as its last lease.
    set(&primary, "lease", SHORT);
    wait_for_lease(&registry, "kept_until < ends + interval '2 s'");
    primary.stop(Shutdown::Fast);
    assert!(first_id(&mut of_standby, GENERATE) > last);
}
