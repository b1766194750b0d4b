//! The registry alone, with several sessions, restarts, copies and another encoding: which leases its functions grant. The script
//! `registry_claims` has the tests of one session.

use super::{HELPERS, claim, registry, registry_on};
use pg_snowflake_harness::prelude::*;
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

const CREATE: &str = "CREATE EXTENSION pg_snowflake_registry";

#[test]
fn after_a_restart_of_the_registry_new_spans_begin_when_forgotten_leases_have_ended() {
    let mut cluster = Cluster::new();
    let mut client = registry_on(&cluster);
    run(&mut client, &format!("CREATE TABLE before AS {}", claim("*", "'{5, 6}'", "db-a", 1)));
    let id = printed(&mut client, "SELECT snowflake_registry.id()");
    run(&mut client, "SELECT release(1, 5, serial) FROM before WHERE shard_id = 5");

    cluster.restart(Shutdown::Immediate);
    let mut client = cluster.connect();

    run(&mut client, &format!("CREATE TABLE after AS {}", claim("*", "'{5, 7}'", "db-b", 2)));
    let begin = "SELECT starts = (SELECT quiet_until FROM snowflake_registry.identity), starts > (SELECT max(ends) FROM before) FROM after";
    assert_eq!(printed(&mut client, begin), "t|t\nt|t");
    // It knows this lease.
    let renewed = "SELECT claim.starts = before.starts, snowflake_registry.id()
                   FROM before, claim('{6}', 'db-a', 1, ARRAY[before.serial], 3) WHERE before.shard_id = 6";
    assert_eq!(printed(&mut client, renewed), format!("t|{id}"));
}

#[test]
fn a_copy_of_the_registry_on_the_same_server_waits_too() {
    let cluster = Cluster::new();
    let mut registry = cluster.empty_database("registry");
    run(&mut registry, &format!("{CREATE}; {HELPERS}"));
    run(&mut registry, &claim("*", "'{5}'", "db-a", 1));
    let id = printed(&mut registry, "SELECT snowflake_registry.id()");
    drop(registry);
    run(&mut cluster.connect(), "CREATE DATABASE copied TEMPLATE registry");
    let mut restored = cluster.restored_database("restored", &cluster.dump("registry"));

    for copy in [&mut cluster.connect_to(SUPERUSER, "copied"), &mut restored] {
        assert_eq!(printed(copy, &claim("starts > read_at", "'{6}'", "db-b", 2)), "t");
        assert_eq!(printed(copy, "SELECT snowflake_registry.id()"), id);
    }
}

#[test]
fn of_many_servers_that_claim_a_shard_at_once_exactly_one_gets_it() {
    const SERVERS: usize = 16;
    let (database, mut client) = registry();
    // The first time, the row is new; then it is one that was released.
    for turn in 1..=5 {
        let answers = at_once(&database, SERVERS, |client, server| {
            printed(client, &claim("granted, reason", "'{5}'", &format!("db-{server}"), turn * SERVERS + server))
        });

        let holders: Vec<usize> = (0..SERVERS).filter(|&server| answers[server].starts_with('t')).collect();
        assert_eq!(holders.len(), 1, "{answers:?}");
        let refused = format!("node \"db-{}\"", holders[0]);
        assert_eq!(answers.iter().filter(|answer| answer.contains(&refused)).count(), SERVERS - 1, "{answers:?}");
        let release = format!("SELECT release({}, 5, serial) FROM snowflake_registry.shards", turn * SERVERS + holders[0]);
        assert_eq!(printed(&mut client, &release), "1");
    }
}

#[test]
fn ten_servers_without_a_shard_are_assigned_ten_and_the_same_again() {
    const SERVERS: usize = 10;
    let (database, mut client) = registry();
    // This one is assigned by a person.
    run(&mut client, &claim("*", "'{3}'", "db-a", 1));
    let assign = |run: usize| {
        at_once(&database, SERVERS, |client, server| {
            // NULL and no elements mean the same.
            let shard_ids = if server < 5 { "NULL" } else { "'{}'" };
            printed(client, &claim("granted, shard_id", shard_ids, &format!("node-{server}"), 100 * run + server))
        })
    };

    let first = assign(1);

    let lowest: BTreeSet<String> = (0..=SERVERS).filter(|&shard| shard != 3).map(|shard| format!("t|{shard}")).collect();
    assert_eq!(first.iter().cloned().collect::<BTreeSet<_>>(), lowest);
    for server in 0..SERVERS {
        let release =
            format!("SELECT release({}, shard_id, serial) FROM snowflake_registry.shards WHERE node = 'node-{server}'", 100 + server);
        assert_eq!(printed(&mut client, &release), "1");
    }
    assert_eq!(assign(2), first);
}

#[test]
fn claims_for_the_same_shards_in_another_order_do_not_deadlock() {
    let (database, _client) = registry();
    let orders = ["n", "-n", "n % 7, n", "n % 5, -n"];
    at_once(&database, orders.len(), |client, server| {
        let shard_ids = format!("ARRAY(SELECT n FROM generate_series(0, 49) AS n ORDER BY {})", orders[server]);
        for turn in 0..20 {
            for shard_ids in [&*shard_ids, "NULL"] {
                run(client, &format!("SELECT * FROM claim({shard_ids}, 'db-a', {server}, NULL, {})", 100 * turn + server));
            }
        }
    });
}

#[test]
fn a_claim_waits_for_the_transaction_before_it_and_reads_the_clock_after_that() {
    let (database, mut observer) = registry();
    for (shard, end, granted) in [(5, "COMMIT", "f"), (6, "ROLLBACK", "t")] {
        let shard_ids = format!("'{{{shard}}}'");
        let mut first = database.connect();
        run(&mut first, "BEGIN");
        run(&mut first, &claim("*", &shard_ids, "db-a", 1));

        let claim = claim("granted, read_at", &shard_ids, "db-b", 2);
        let meanwhile = |observer: &mut Client| {
            let now = printed(observer, "SELECT clock_timestamp()");
            run(&mut first, end);
            now
        };
        let (answer, now) = while_it_waits(&mut observer, &mut database.connect(), |second| printed(second, &claim), meanwhile);

        let (is_granted, read_at) = answer.split_once('|').unwrap();
        assert_eq!(is_granted, granted, "{end}");
        assert_eq!(printed(&mut observer, &format!("SELECT timestamptz '{read_at}' > '{now}'")), "t", "{end}");
    }
}

#[test]
fn a_standby_of_the_registry_grants_and_changes_nothing() {
    let cluster = Cluster::new();
    registry_on(&cluster);
    let standby = cluster.standby();
    let claim = claim("*", "'{5}'", "db-a", 1);
    for call in [&claim, "SELECT release(1, 5, 1)", "SELECT snowflake_registry.take_over(5, 'b')", "SELECT snowflake_registry.retire('b')"]
    {
        assert_refused(&mut standby.connect(), call, Refusal { sqlstate: "25006", message: "() during recovery", hint: "primary" });
    }
}

#[test]
fn it_works_in_a_database_with_another_encoding() {
    let cluster = Cluster::new();
    run(&mut cluster.connect(), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let mut client = cluster.connect_to(SUPERUSER, "latin");
    run(&mut client, &format!("{CREATE}; {HELPERS}"));
    assert_eq!(printed(&mut client, &claim("granted", "'{5}'", "dbé", 1)), "t");
    let reason = printed(&mut client, &claim("reason", "'{5}'", "db-b", 2));
    assert!(reason.contains("dbé"), "{reason}");
    assert_eq!(refused(&mut client, &claim("*", "'{5}'", "db\u{85}", 1)).code().code(), "22023", "a control character");
}

/// Runs `ask` for each of `servers` at once, each in a session of its own.
fn at_once<T: Send>(database: &Database, servers: usize, ask: impl Fn(&mut Client, usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(servers);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..servers)
            .map(|server| {
                let mut client = database.connect();
                let (ask, barrier) = (&ask, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    ask(&mut client, server)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
