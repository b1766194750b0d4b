//! How long a shard has no IDs when its holder changes, and what its lease costs. `pg_test/tests/leases` states what holds at any speed.

use crate::part_of_machine;
use pg_snowflake_harness::leases::{GENERATE, Registry, answers_kept_back, first_id, holder, start, waiting_sessions, wants_shard_5};
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::process::sleeps;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const LEASE: Duration = Duration::from_secs(3);

/// The default.
const DEFAULT: Duration = Duration::from_secs(10);

/// What the machine and the server's start may add.
const SECOND: Duration = Duration::from_secs(1);

/// As a setting has it.
fn ms(length: Duration) -> String {
    length.as_millis().to_string()
}

/// How long a session waits for an ID, from then on.
fn without_ids(since: Instant, client: &mut Client) -> Duration {
    first_id(client, GENERATE);
    let elapsed = since.elapsed();
    println!("{elapsed:.3?} without ids");
    elapsed
}

#[test]
fn a_restarted_server_has_ids_within_a_second() {
    let _machine = part_of_machine();
    let (_registry, mut server, _) = holder(&ms(LEASE));
    server.restart(Shutdown::Fast);
    assert!(without_ids(Instant::now(), &mut server.connect()) <= SECOND);
}

#[test]
fn a_crashed_server_has_ids_within_its_lease_and_a_second() {
    let _machine = part_of_machine();
    let (_registry, mut server, mut client) = holder(&ms(LEASE));
    let crashes: [fn(&mut Cluster, i32); 2] = [|server, _| server.crash(), Cluster::kill_backend];
    for crash in crashes {
        let pid = backend_pid(&mut client);
        let crashed_at = Instant::now();
        crash(&mut server, pid);
        client = server.connect();
        assert!(without_ids(crashed_at, &mut client) <= LEASE + SECOND);
    }
}

/// What makes the shard free, and the time from which it is, by the registry's clock.
const WAYS: [fn(&Registry, &mut Cluster) -> String; 3] = [
    |registry, holder| {
        own(&mut holder.connect(), "6");
        printed(&mut registry.cluster.connect(), "SELECT clock_timestamp()")
    },
    |registry, holder| {
        holder.kill_9();
        printed(&mut registry.cluster.connect(), "SELECT kept_until FROM snowflake_registry.shards")
    },
    |registry, _| printed(&mut registry.cluster.connect(), "SELECT snowflake_registry.take_over(5, 'db-2')"),
];

#[test]
fn another_server_has_ids_within_a_second_of_a_release_the_time_for_which_the_shard_is_kept_and_a_taken_over_leases_end() {
    let _machine = part_of_machine();
    // After a crash, the registry refuses the shard for longer than a lease, and the server asks less often.
    for (way, lease) in WAYS.into_iter().zip([LEASE, DEFAULT, LEASE]) {
        let (registry, mut server, _) = holder(&ms(lease));
        let (_other, mut client) = start(wants_shard_5(&registry, "db-2", &ms(lease)));
        let time = way(&registry, &mut server);
        first_id(&mut client, GENERATE);
        let late = format!("SELECT extract(epoch FROM clock_timestamp() - '{time}')::float8");
        let late: f64 = registry.cluster.connect().query_one(&late, &[]).unwrap().get(0);
        println!("{late:.3} s late");
        assert!(late <= 1.0, "{late:.3} s");
    }
}

/// A copy, which has the same name, claims the shard at the same time.
#[test]
fn a_crashed_server_that_starts_within_its_lease_keeps_its_shard_from_a_copy_of_it() {
    let _machine = part_of_machine();
    let (_registry, mut server, mut client) = holder(&ms(LEASE));
    let mut copy = server.base_backup();
    copy.start();
    // The holder, which shows a renewal after it has stored the serial. Killed before that, it knows no more than its copy.
    let ends = printed(&mut client, "SELECT ends FROM snowflake_lease_status()");
    wait_for(&mut client, &format!("SELECT ends > '{ends}' FROM snowflake_lease_status()"), "the copy is older than the last renewal");
    let mut last = first_id(&mut client, GENERATE);
    for _ in 0..10 {
        server.restart(Shutdown::Immediate);
        let next = first_id(&mut server.connect(), GENERATE);
        assert!(next > last);
        last = next;
    }
    assert_eq!(printed(&mut copy.connect(), "SELECT bool_or(state = 'held') FROM snowflake_lease_status()"), "f");
}

#[test]
fn no_call_is_refused_while_the_registry_is_down_for_less_than_two_thirds_of_a_lease() {
    let _machine = part_of_machine();
    // So long that the start of the registry is short.
    let lease = Duration::from_secs(10);
    let (mut registry, server, mut client) = holder(&ms(lease));
    let mut generate_until = |end: Instant| {
        while Instant::now() < end {
            client.simple_query(GENERATE).expect("the lease has not ended");
            sleep(Duration::from_millis(10));
        }
    };
    for _ in 0..2 {
        // A renewal is due at two thirds.
        let is_due = format!("SELECT remaining < 0.70 * interval '{} s' FROM snowflake_lease_status()", lease.as_secs());
        wait_for(&mut server.connect(), &is_due, "a renewal is due soon");
        let stopped_at = Instant::now();
        registry.cluster.stop(Shutdown::Immediate);
        generate_until(stopped_at + lease.mul_f64(0.6));
        registry.cluster.start();
        println!("down for {:.3?}", stopped_at.elapsed());
        generate_until(stopped_at + lease);
    }
}

/// A lease of which the registry takes long to answer a claim, as far as the server knows.
const LONG: Duration = Duration::from_secs(60);

/// Sets the shards that the server owns, and has it claim them at once.
fn own(client: &mut Client, shards: &str) {
    reload_with(client, &format!("ALTER SYSTEM SET pg_snowflake.owned_shards = '{shards}'"));
}

/// Has the server claim its leases, and waits until the registry keeps its answer back. It does so until the session that is
/// returned ends its transaction.
fn claim_without_an_answer(registry: &Registry, client: &mut Client) -> Client {
    let locker = answers_kept_back(registry);
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
    assert!(comes_true(|| waiting_sessions(registry, "Lock") > 0), "the server does not claim");
    locker
}

#[test]
fn a_server_stops_within_four_seconds_while_it_waits_for_the_registry() {
    let _machine = part_of_machine();
    let (registry, mut server, mut client) = holder(&ms(LONG));
    let mut locker = claim_without_an_answer(&registry, &mut client);

    let began_at = Instant::now();
    let elapsed = thread::scope(|scope| {
        scope.spawn(|| {
            sleep(SECOND);
            locker.batch_execute("COMMIT").unwrap();
        });
        server.stop(Shutdown::Fast);
        began_at.elapsed()
    });

    println!("stopped after {elapsed:.3?}");
    assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
}

#[test]
fn a_new_shard_has_ids_within_three_seconds_of_a_late_answer() {
    let _machine = part_of_machine();
    let (registry, _server, mut client) = holder(&ms(LONG));
    let mut locker = claim_without_an_answer(&registry, &mut client);
    own(&mut client, "5, 6");
    sleep(SECOND);

    locker.batch_execute("COMMIT").unwrap();

    let answered_at = Instant::now();
    first_id(&mut client, "SELECT snowflake_nextval('s', 6)");
    let elapsed = answered_at.elapsed();
    println!("{elapsed:.3?} after the answer");
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
}

/// The worker claims three times in each lease of 10 s, and sleeps twice for each claim. Other tests do not change how often it sleeps.
#[test]
fn the_lease_worker_wakes_less_than_once_a_second() {
    let (_registry, server, _client) = holder(&ms(DEFAULT));
    let worker = server.processes("lease worker")[0].as_raw();
    let before = sleeps(worker);
    sleep(Duration::from_secs(30));
    let wakes = sleeps(worker) - before;
    println!("{wakes} times in 30 s");
    assert!((1..30).contains(&wakes), "{wakes} times in 30 s");
}
