//! The registry alone, with several sessions, restarts, copies and another clock: which leases its functions grant. The script
//! `registry_claims` has the tests of one session.

use super::registry;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, run};
use pg_snowflake_harness::leases::make_registry;
use pg_snowflake_harness::wait::wait_for;
use pg_snowflake_harness::{Cluster, Database, SUPERUSER, Shutdown};
use postgres::Client;
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

const CREATE: &str = "CREATE EXTENSION pg_snowflake_registry";

/// What a server asks for.
#[derive(Clone, Copy)]
struct Claim<'a> {
    /// An array, or `NULL`.
    shard_ids: &'a str,
    node: &'a str,
    incarnation: usize,
    serial: Option<i64>,
    nonce: usize,
}

/// A claim of `db-a`, which holds nothing yet.
const A: Claim = Claim { shard_ids: "'{5}'", node: "db-a", incarnation: 1, serial: None, nonce: 1 };

/// The same of another server.
const B: Claim = Claim { node: "db-b", incarnation: 2, nonce: 2, ..A };

/// A longer time than any lease and the time for which it is kept, in seconds.
const LATER: f64 = 700.0;

impl Claim<'_> {
    fn sql(&self, columns: &str) -> String {
        let Claim { shard_ids, node, incarnation, serial, nonce } = *self;
        let serials = serial.map_or("NULL".to_owned(), |serial| format!("'{{{serial}}}'"));
        format!(
            "SELECT {columns} FROM snowflake_registry.claim({shard_ids}, '{node}', '{}', {serials}, '{}',
                 clock_timestamp() + interval '5 min', '5 min')",
            uuid(incarnation),
            uuid(nonce),
        )
    }
}

/// What the registry answers. Times are in microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    shard: i32,
    granted: bool,
    starts: Option<i64>,
    ends: Option<i64>,
    serial: Option<i64>,
    reason: Option<String>,
    registry: String,
    read_at: i64,
}

#[test]
fn after_the_end_the_next_span_begins_at_the_clock() {
    let cluster = Cluster::builder().fake_clock().start();
    let mut client = make_registry(&cluster);
    let of_5 = claim(&mut client, A);
    let of_6 = claim(&mut client, Claim { shard_ids: "'{6}'", ..A });

    cluster.set_clock(LATER);

    assert_eq!(state_of(&mut client, 5), "ended");
    let next = claim(&mut client, B);
    assert_eq!(next.starts, Some(next.read_at));
    assert!(next.starts > of_5.ends);
    let renewed = claim(&mut client, Claim { shard_ids: "'{6}'", serial: of_6.serial, nonce: 3, ..A });
    assert_eq!(renewed.starts, Some(renewed.read_at));
    assert!(renewed.starts > of_6.ends);
}

#[test]
fn a_clock_that_stepped_back_does_not_let_spans_overlap() {
    let cluster = Cluster::builder().fake_clock().start();
    let mut client = make_registry(&cluster);
    cluster.set_clock(LATER);
    let lease = claim(&mut client, A);
    release(&mut client, 1, 5, lease.serial, "'infinity'");

    cluster.set_clock(0.0);

    let next = claim(&mut client, B);
    assert_eq!((next.starts, next.ends), (lease.ends, lease.ends));
}

#[test]
fn a_take_over_bars_the_holder_and_the_next_span_begins_after_its_end() {
    let cluster = Cluster::builder().fake_clock().start();
    let mut client = make_registry(&cluster);
    let lease = claim(&mut client, A);
    let take_over = format!("SELECT {}", microseconds("snowflake_registry.take_over(5, 'db-b')"));

    assert_eq!(Some(number(&mut client, &take_over)), lease.ends);

    assert_eq!(state_of(&mut client, 5), "reserved");
    let reason_for = |client: &mut Client, claimed| claim(client, claimed).reason.unwrap_or_default();
    for serial in [lease.serial, None] {
        let renewal = Claim { serial, nonce: 3, ..A };
        let reason = reason_for(&mut client, renewal);
        assert_eq!(reason, "Shard 5 was taken over from this server.");
    }
    let of_another = Claim { node: "db-c", incarnation: 3, ..B };
    let reason = reason_for(&mut client, of_another);
    assert_eq!(reason, "Shard 5 is reserved for node \"db-b\".");

    let reason = reason_for(&mut client, B);
    let waits = "The span of the last holder of shard 5 ends at 20";
    assert!(reason.starts_with(waits), "{reason}");
    assert_eq!(release(&mut client, 1, 5, lease.serial, "'-infinity'"), "0");

    cluster.set_clock(LATER);

    assert_eq!(reason_for(&mut client, of_another), "Shard 5 is reserved for node \"db-b\".");
    let next = claim(&mut client, B);
    assert_eq!(next.starts, Some(next.read_at));
    assert!(next.starts > lease.ends);
}

#[test]
fn a_retired_node_leaves_its_number_to_another_when_its_span_has_ended() {
    let cluster = Cluster::builder().fake_clock().start();
    let mut client = make_registry(&cluster);
    let retire = "SELECT shard_id, free_at <= clock_timestamp() FROM snowflake_registry.retire('db-a')";
    let of_a = Claim { shard_ids: "NULL", ..A };
    let of_b = Claim { shard_ids: "NULL", ..B };
    let gone = Refusal { sqlstate: "42704", message: "node \"db-a\" does not exist", hint: "leases" };
    assert_refused(&mut client, retire, gone);
    let lease = claim(&mut client, of_a);
    assert_eq!(claim(&mut client, of_b).shard, 1);

    let message = "node \"db-a\" holds the lease of shard 0";
    let held = Refusal { sqlstate: "55000", message, hint: "Stop the server." };
    assert_refused(&mut client, retire, held);
    assert!(release(&mut client, 1, 0, lease.serial, "now()") == "1");
    assert_eq!(printed(&mut client, retire), "0|t");
    assert_eq!(printed(&mut client, "SELECT node IS NULL, state FROM snowflake_registry.leases WHERE shard_id = 0"), "t|retired");
    assert_refused(&mut client, retire, gone);
    let of_c = Claim { node: "db-c", incarnation: 3, nonce: 3, ..of_b };
    let next = claim(&mut client, of_c);
    assert_eq!(next.shard, 0);
    assert!(next.starts > lease.starts);

    // That of a server that crashed can be retired when its lease has ended.
    let holds = Refusal { sqlstate: "55000", message: "node \"db-c\" holds", hint: "" };
    let retire = retire.replace("db-a", "db-c");
    assert_refused(&mut client, &retire, holds);
    cluster.set_clock(LATER);
    assert_eq!(printed(&mut client, &retire), "0|t");

    // One that was taken over has a span of its last holder.
    cluster.set_clock(0.0);
    let lease = claim(&mut client, Claim { shard_ids: "'{9}'", ..A });
    run(&mut client, "SELECT snowflake_registry.take_over(9, 'db-d')");
    let free_at = format!("SELECT {} FROM snowflake_registry.retire('db-d')", microseconds("free_at"));
    assert_eq!(Some(number(&mut client, &free_at)), lease.ends);
    let waits = claim(&mut client, Claim { shard_ids: "'{9}'", ..B });
    assert!(waits.reason.unwrap().starts_with("The span of the last holder of shard 9 ends at 20"));
}

#[test]
fn after_a_restart_of_the_registry_new_spans_begin_when_forgotten_leases_have_ended() {
    let mut cluster = Cluster::new();
    let mut client = make_registry(&cluster);
    let (of_5, of_6) = (claim(&mut client, A), claim(&mut client, Claim { shard_ids: "'{6}'", ..A }));
    release(&mut client, 1, 5, of_5.serial, "'-infinity'");

    cluster.stop(Shutdown::Immediate);
    cluster.start();
    let mut client = cluster.connect();

    let quiet_until = format!("SELECT {} FROM snowflake_registry.identity", microseconds("quiet_until"));
    let of_another = claim(&mut client, B);
    assert_eq!(of_another.starts, Some(number(&mut client, &quiet_until)));
    assert!(of_another.starts > of_6.ends);
    let of_new = claim(&mut client, Claim { shard_ids: "'{7}'", ..B });
    assert_eq!(of_new.starts, of_another.starts);
    // It knows this lease.
    let renewed = claim(&mut client, Claim { shard_ids: "'{6}'", serial: of_6.serial, nonce: 3, ..A });
    assert_eq!(renewed.starts, of_6.starts);
    assert_eq!(renewed.registry, of_6.registry);
}

#[test]
fn a_copy_of_the_registry_on_the_same_server_waits_too() {
    let cluster = Cluster::new();
    let mut registry = cluster.empty_database("registry");
    run(&mut registry, CREATE);
    let lease = claim(&mut registry, A);
    drop(registry);
    run(&mut cluster.connect(), "CREATE DATABASE copied TEMPLATE registry");
    let mut restored = cluster.restored_database("restored", &cluster.dump("registry"));

    for copy in [&mut cluster.connect_to(SUPERUSER, "copied"), &mut restored] {
        let of_another = claim(copy, Claim { shard_ids: "'{6}'", ..B });
        assert!(of_another.starts.unwrap() > of_another.read_at);
        assert_eq!(of_another.registry, lease.registry);
    }
}

#[test]
fn a_restored_dump_has_the_leases_and_the_id_of_the_registry() {
    let (database, mut client) = registry();
    let lease = claim(&mut client, A);
    printed(&mut client, "SELECT snowflake_registry.take_over(6, 'db-b')");
    let before = [row_of(&mut client, 5), row_of(&mut client, 6)];

    let target = Database::restored(&database.dump());
    let mut restored = target.connect();

    assert_eq!([row_of(&mut restored, 5), row_of(&mut restored, 6)], before);
    assert!(!claim(&mut restored, B).granted);
    let renewed = claim(&mut restored, Claim { serial: lease.serial, nonce: 3, ..A });
    assert_eq!((renewed.starts, renewed.registry), (lease.starts, lease.registry));
}

#[test]
fn of_many_servers_that_claim_a_shard_at_once_exactly_one_gets_it() {
    const SERVERS: usize = 16;
    let (database, mut client) = registry();
    // The first time, the row is new; then it is one that was released.
    for turn in 1..=5 {
        let answers = at_once(&database, SERVERS, |client, server| {
            let node = format!("db-{server}");
            let incarnation = turn * SERVERS + server;
            claim(client, Claim { node: &node, incarnation, nonce: incarnation, ..A })
        });

        let holders: Vec<usize> = (0..SERVERS).filter(|&server| answers[server].granted).collect();
        assert_eq!(holders.len(), 1, "{answers:?}");
        let node = format!("node \"db-{}\"", holders[0]);
        for refused in answers.iter().filter(|answer| !answer.granted) {
            assert!(refused.reason.as_ref().unwrap().contains(&node), "{refused:?}");
        }
        let incarnation = turn * SERVERS + holders[0];
        let serial = answers[holders[0]].serial;
        assert_eq!(release(&mut client, incarnation, 5, serial, "'-infinity'"), "1");
    }
}

#[test]
fn ten_servers_without_a_shard_are_assigned_ten_and_the_same_again() {
    const SERVERS: usize = 10;
    let (database, mut client) = registry();
    // This one is assigned by a person.
    claim(&mut client, Claim { shard_ids: "'{3}'", ..A });
    let assign = |run: usize| {
        at_once(&database, SERVERS, |client, server| {
            let node = format!("node-{server}");
            let incarnation = 100 * run + server;
            // NULL and no elements mean the same.
            let shard_ids = if server < 5 { "NULL" } else { "'{}'" };
            claim(client, Claim { shard_ids, node: &node, incarnation, nonce: incarnation, ..A })
        })
    };

    let first = assign(1);

    assert!(first.iter().all(|answer| answer.granted), "{first:?}");
    let shards: BTreeSet<i32> = first.iter().map(|answer| answer.shard).collect();
    let lowest: BTreeSet<i32> = (0..=SERVERS as i32).filter(|&shard| shard != 3).collect();
    assert_eq!(shards, lowest);

    for (server, lease) in first.iter().enumerate() {
        release(&mut client, 100 + server, lease.shard, lease.serial, "'-infinity'");
    }
    let second = assign(2);
    assert!(second.iter().all(|answer| answer.granted), "{second:?}");
    for (before, after) in first.iter().zip(&second) {
        assert_eq!(before.shard, after.shard);
    }
}

#[test]
fn claims_for_the_same_shards_in_another_order_do_not_deadlock() {
    let (database, _client) = registry();
    let orders = ["n", "-n", "n % 7, n", "n % 5, -n"];
    at_once(&database, orders.len(), |client, server| {
        let shard_ids = format!("ARRAY(SELECT n FROM generate_series(0, 49) AS n ORDER BY {})", orders[server]);
        for turn in 0..20 {
            let nonce = 100 * turn + server;
            claims(client, Claim { shard_ids: &shard_ids, incarnation: server, nonce, ..A });
            let assign = Claim { shard_ids: "NULL", incarnation: server, nonce, ..A };
            claims(client, assign);
        }
    });
}

#[test]
fn a_claim_waits_for_the_transaction_before_it_and_reads_the_clock_after_that() {
    let (database, mut observer) = registry();
    for (shard, end, granted) in [(5, "COMMIT", false), (6, "ROLLBACK", true)] {
        let shard_ids = format!("'{{{shard}}}'");
        let mut first = database.connect();
        run(&mut first, "BEGIN");
        claim(&mut first, Claim { shard_ids: &shard_ids, ..A });

        let answer = thread::scope(|scope| {
            let second = scope.spawn(|| claim(&mut database.connect(), Claim { shard_ids: &shard_ids, ..B }));
            let is_waiting = "SELECT count(*) > 0 FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'";
            wait_for(&mut observer, is_waiting, "the second claim waits");
            let clock = format!("SELECT {}", microseconds("clock_timestamp()"));
            let now = number(&mut observer, &clock);
            run(&mut first, end);
            let answer = second.join().unwrap();
            assert!(answer.read_at > now, "{end}");
            answer
        });

        assert_eq!(answer.granted, granted, "{end}");
    }
}

#[test]
fn a_standby_of_the_registry_grants_and_changes_nothing() {
    let cluster = Cluster::new();
    make_registry(&cluster);
    let standby = cluster.standby();
    let release = format!("release('{}', '{{5}}', '{{1}}', now())", uuid(1));
    for call in [&*release, "take_over(5, 'db-b')", "retire('db-b')"]
        .map(|call| format!("SELECT snowflake_registry.{call}"))
        .into_iter()
        .chain([A.sql("*")])
    {
        let refusal = Refusal { sqlstate: "25006", message: "() during recovery", hint: "primary" };
        assert_refused(&mut standby.connect(), &call, refusal);
    }
}

#[test]
fn it_works_in_a_database_with_another_encoding() {
    let cluster = Cluster::new();
    run(&mut cluster.connect(), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let mut client = cluster.connect_to(SUPERUSER, "latin");
    run(&mut client, CREATE);
    let of_a = Claim { node: "dbé", ..A };
    let lease = claim(&mut client, of_a);
    assert!(claim(&mut client, Claim { serial: lease.serial, nonce: 3, ..of_a }).granted);
    let reason = claim(&mut client, B).reason.unwrap();
    assert!(reason.contains("dbé"), "{reason}");
    let error = client.query(&Claim { node: "db\u{85}", ..A }.sql("granted"), &[]).unwrap_err();
    assert_eq!(error.code().unwrap().code(), "22023", "a control character");
    assert_eq!(state_of(&mut client, 5), "held");
}

/// The functions run as a superuser: a name that resolved to a caller's object would run it as one.
#[test]
fn objects_that_a_caller_created_are_not_used() {
    let cluster = Cluster::new();
    let mut superuser = make_registry(&cluster);
    run(
        &mut superuser,
        "CREATE ROLE mallory LOGIN; CREATE SCHEMA mallory AUTHORIZATION mallory;
         GRANT USAGE ON SCHEMA snowflake_registry TO mallory;
         GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_registry TO mallory",
    );
    let mut mallory = cluster.connect_to("mallory", "postgres");
    let mut plants =
        String::from("CREATE FUNCTION mallory.caught() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;");
    for name in ["pg_namespace", "pg_roles", "shards", "identity"] {
        plants += &format!(
            "CREATE VIEW mallory.{name} AS SELECT mallory.caught() AS oid;
             CREATE TEMP VIEW {name} AS SELECT mallory.caught() AS oid;"
        );
    }
    for (function, result) in [
        ("gen_random_uuid()", "uuid"),
        ("pg_relation_filepath(regclass)", "text"),
        ("clock_timestamp()", "timestamptz"),
        ("unnest(int[])", "int"),
        ("differ(timestamptz, timestamptz)", "boolean"),
        ("differ(text, text)", "boolean"),
        ("differ(name, text)", "boolean"),
        ("differ(int, int)", "boolean"),
        ("differ(interval, interval)", "boolean"),
        ("later(timestamptz, interval)", "timestamptz"),
    ] {
        plants += &format!(
            "CREATE FUNCTION mallory.{function} RETURNS {result} LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;"
        );
    }
    for operator in ["=", "<>", "<"] {
        for (left, right) in [("timestamptz", "timestamptz"), ("text", "text"), ("name", "text"), ("int", "int"), ("interval", "interval")]
        {
            plants += &format!("CREATE OPERATOR mallory.{operator} (FUNCTION = mallory.differ, LEFTARG = {left}, RIGHTARG = {right});");
        }
    }
    plants += "CREATE OPERATOR mallory.+ (FUNCTION = mallory.later, LEFTARG = timestamptz, RIGHTARG = interval);
         CREATE DOMAIN mallory.timestamptz AS pg_catalog.timestamptz CHECK (mallory.caught());
         CREATE DOMAIN mallory.regclass AS pg_catalog.regclass CHECK (mallory.caught());
         CREATE DOMAIN mallory.interval AS pg_catalog.interval CHECK (mallory.caught());";
    run(&mut mallory, &plants);
    let calls = [
        Claim { shard_ids: "'{5}'::pg_catalog.int4[]", ..A }.sql("granted"),
        Claim { shard_ids: "NULL", ..B }.sql("granted"),
        format!("SELECT snowflake_registry.release('{}', '{{5}}', '{{1}}', pg_catalog.clock_timestamp())", uuid(1)),
        "SELECT snowflake_registry.take_over(5, 'db-b')".to_owned(),
        "SELECT snowflake_registry.id()".to_owned(),
    ];
    for search_path in ["mallory, pg_catalog, public", "pg_temp, mallory, pg_catalog, public"] {
        run(&mut mallory, &format!("SET search_path = {search_path}"));
        for call in &calls {
            let call = call.replace("clock_timestamp() + interval '5 min'", "$1").replace("pg_catalog.clock_timestamp()", "$1");
            let clock = format!("SELECT {}", microseconds("clock_timestamp()"));
            let until_us = number(&mut superuser, &clock) + 300_000_000;
            let seconds = until_us as f64 / 1e6;
            let until = format!("pg_catalog.to_timestamp({seconds:.6})");
            printed(&mut mallory, &call.replace("$1", &until));
        }
    }
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

/// The answer to a claim for one shard.
fn claim(client: &mut Client, claim: Claim) -> Answer {
    let mut answers = claims(client, claim);
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

fn claims(client: &mut Client, claim: Claim) -> Vec<Answer> {
    answers_to(client, &|columns| claim.sql(columns))
}

/// The answers to the statement that `sql` makes from a list of columns.
fn answers_to(client: &mut Client, sql: &dyn Fn(&str) -> String) -> Vec<Answer> {
    let [starts, ends, read_at] = ["starts", "ends", "read_at"].map(microseconds);
    let columns = format!("shard_id, granted, {starts}, {ends}, serial, reason, registry::text, {read_at}");
    let sql = sql(&columns);
    let rows = loop {
        match client.query(&sql, &[]) {
            // It took the registry of a slow machine more than a second to get to the claim.
            Err(error) if is_late(&error) => {}
            outcome => break outcome.unwrap_or_else(|error| panic!("{sql}: {error:?}")),
        }
    };
    rows.iter()
        .map(|row| Answer {
            shard: row.get(0),
            granted: row.get(1),
            starts: row.get(2),
            ends: row.get(3),
            serial: row.get(4),
            reason: row.get(5),
            registry: row.get(6),
            read_at: row.get(7),
        })
        .collect()
}

fn is_late(error: &postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| error.message().contains("too far behind"))
}

/// Releases a shard up to a mark, which may name columns of its lease, and returns the number of leases released.
fn release(client: &mut Client, incarnation: usize, shard: i32, serial: Option<i64>, mark: &str) -> String {
    let serial = serial.map_or("NULL".to_owned(), |serial| serial.to_string());
    let mark = match mark.starts_with('\'') || mark == "now()" {
        true => mark.to_owned(),
        false => format!("(SELECT {mark} FROM snowflake_registry.leases WHERE shard_id = {shard})"),
    };
    let sql = format!("SELECT snowflake_registry.release('{}', '{{{shard}}}', '{{{serial}}}', {mark})", uuid(incarnation));
    printed(client, &sql)
}

/// The whole row of a shard.
fn row_of(client: &mut Client, shard: i32) -> String {
    printed(client, &format!("SELECT * FROM snowflake_registry.shards WHERE shard_id = {shard}"))
}

fn state_of(client: &mut Client, shard: i32) -> String {
    printed(client, &format!("SELECT state FROM snowflake_registry.leases WHERE shard_id = {shard}"))
}

/// The SQL of a time as microseconds since 1970.
fn microseconds(time: &str) -> String {
    format!("(extract(epoch FROM {time}) * 1000000)::bigint")
}

fn number(client: &mut Client, query: &str) -> i64 {
    let row = client.query_one(query, &[]);
    row.unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
}

fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}
