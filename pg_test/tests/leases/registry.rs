//! The registry alone: which leases its functions grant, and to which servers.

use super::registry;
use pg_snowflake_harness::ask::{Bad, Refusal, assert_each_refused, assert_refused, printed, run};
use pg_snowflake_harness::leases::{change_by_hand, make_registry};
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
    /// How far the end is ahead of the registry's clock when the call begins. No test takes so long, however slow the machine.
    ahead: &'a str,
}

/// A claim of `db-a`, which holds nothing yet.
const A: Claim = Claim {
    shard_ids: "'{5}'",
    node: "db-a",
    incarnation: 1,
    serial: None,
    nonce: 1,
    ahead: "5 min",
};

/// The same of another server.
const B: Claim = Claim { node: "db-b", incarnation: 2, nonce: 2, ..A };

/// A longer time than any lease and the time for which it is kept, in seconds.
const LATER: f64 = 700.0;

/// Before any span.
const NOT_USED: &str = "timestamptz '2000-01-01'";

impl Claim<'_> {
    fn sql(&self, columns: &str) -> String {
        let Claim { shard_ids, node, incarnation, serial, nonce, ahead } = *self;
        let serials = serial.map_or("NULL".to_owned(), |serial| format!("'{{{serial}}}'"));
        format!(
            "SELECT {columns} FROM snowflake_registry.claim({shard_ids}, '{node}', '{}', {serials}, '{}',
                 clock_timestamp() + interval '{ahead}', '5 min')",
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
fn the_holder_extends_its_span_and_another_server_is_refused_with_the_name_of_the_holder() {
    let (_database, mut client) = registry();

    let lease = claim(&mut client, A);
    assert!(lease.granted);
    assert_eq!(lease.starts, Some(lease.read_at));

    let renewed = claim(&mut client, Claim { serial: lease.serial, nonce: 3, ..A });
    assert_eq!(renewed.starts, lease.starts);
    assert!(renewed.ends > lease.ends);

    let before = row_of(&mut client, 5);
    let refused = claim(&mut client, B);
    assert_eq!((refused.granted, refused.starts, refused.serial), (false, None, None));
    let reason = refused.reason.unwrap();
    assert!(reason.starts_with("Shard 5 is held by node \"db-a\" until 20"), "{reason}");
    assert_eq!(row_of(&mut client, 5), before);
    assert_eq!(state_of(&mut client, 5), "held");
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
    let renewed =
        claim(&mut client, Claim { shard_ids: "'{6}'", serial: of_6.serial, nonce: 3, ..A });
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
fn a_release_lowers_the_end_to_the_mark_or_gives_back_a_span_of_which_nothing_was_used() {
    let (_database, mut client) = registry();
    // The mark, and the end after the release.
    let cases = [
        ("starts + interval '2 min'", "starts + interval '2 min'"),
        ("starts + interval '1 microsecond'", "starts + interval '1 microsecond'"),
        ("starts", NOT_USED),
        ("'-infinity'", NOT_USED),
        ("ends + interval '1 h'", "ends"),
        ("'infinity'", "ends"),
    ];
    for (shard, (mark, end)) in (0..).zip(cases) {
        let shard_ids = format!("'{{{shard}}}'");
        let lease = claim(&mut client, Claim { shard_ids: &shard_ids, ..A });
        let end = number(&mut client, &time_of(end, shard));

        assert_eq!(release(&mut client, 1, shard, lease.serial, mark), "1");

        assert_eq!(state_of(&mut client, shard), "released");
        let ends = format!("greatest(ends, {NOT_USED})");
        assert_eq!(number(&mut client, &time_of(&ends, shard)), end, "{mark}");
        let next = claim(&mut client, Claim { shard_ids: &shard_ids, ..B });
        assert_eq!(next.starts, Some(end.max(next.read_at)), "{mark}");
    }
}

#[test]
fn only_the_holder_with_the_current_serial_releases() {
    let (_database, mut client) = registry();
    let first = claim(&mut client, A);
    let lease = claim(&mut client, Claim { serial: first.serial, nonce: 3, ..A });
    let before = row_of(&mut client, 5);

    assert_eq!(release(&mut client, 2, 5, lease.serial, "'-infinity'"), "0");
    assert_eq!(release(&mut client, 1, 5, first.serial, "'-infinity'"), "0");
    assert_eq!(release(&mut client, 1, 5, None, "'-infinity'"), "0");
    assert_eq!(release(&mut client, 1, 6, lease.serial, "'-infinity'"), "0");
    assert_eq!(row_of(&mut client, 5), before);
    assert_eq!(row_of(&mut client, 6), "");

    assert_eq!(release(&mut client, 1, 5, lease.serial, "'-infinity'"), "1");
    assert_eq!(release(&mut client, 1, 5, lease.serial, "'-infinity'"), "0");
}

#[test]
fn a_repeated_claim_gets_the_same_answer_and_changes_nothing() {
    let (_database, mut client) = registry();
    let lease = claim(&mut client, A);
    let renewal = Claim { serial: lease.serial, nonce: 3, ..A };
    for claimed in [A, renewal] {
        let answer = claim(&mut client, claimed);
        let before = row_of(&mut client, 5);

        let again = claim(&mut client, claimed);

        assert_eq!(Answer { read_at: answer.read_at, ..again }, answer);
        assert_eq!(row_of(&mut client, 5), before);
    }
}

#[test]
fn a_claim_with_an_old_serial_changes_nothing() {
    let (_database, mut client) = registry();
    let first = claim(&mut client, A);
    claim(&mut client, Claim { serial: first.serial, nonce: 3, ..A });
    let before = row_of(&mut client, 5);

    let delayed = claim(&mut client, Claim { serial: first.serial, nonce: 4, ..A });

    assert!(!delayed.granted);
    let reason = "The lease of shard 5 has changed since this server last renewed it.";
    assert_eq!(delayed.reason.as_deref(), Some(reason));
    assert_eq!(row_of(&mut client, 5), before);

    let of_no_row = claim(&mut client, Claim { shard_ids: "'{6}'", serial: Some(1), ..A });
    assert!(!of_no_row.granted);
    assert_eq!(row_of(&mut client, 6), "");
}

#[test]
fn a_wrong_clock_is_refused_both_ways_with_both_readings() {
    let (_database, mut client) = registry();
    for (ahead, message) in [
        ("5 min 2 s", "clock of node \"db-a\" is too far ahead of the registry's"),
        ("0 s", "clock of node \"db-a\" is too far behind the registry's"),
        ("-1 h", "clock of node \"db-a\" is too far behind the registry's"),
        ("1000 years", "too far ahead"),
        ("-1000 years", "too far behind"),
    ] {
        let wrong = Refusal { sqlstate: "55000", message, hint: "Correct the clock" };
        let error = assert_refused(&mut client, &Claim { ahead, ..A }.sql("*"), wrong);
        let detail = error.detail().unwrap();
        assert_eq!(detail.matches("+00").count(), 2, "{detail}");
    }
    assert_eq!(row_of(&mut client, 5), "");
    // Half a second is nothing unusual.
    assert!(claim(&mut client, Claim { ahead: "5 min 0.5 s", ..A }).granted);
}

#[test]
fn a_take_over_bars_the_holder_and_the_next_span_begins_after_its_end() {
    let cluster = Cluster::builder().fake_clock().start();
    let mut client = make_registry(&cluster);
    let lease = claim(&mut client, A);
    let take_over = format!("SELECT {}", microseconds("snowflake_registry.take_over(5, 'db-b')"));

    assert_eq!(Some(number(&mut client, &take_over)), lease.ends);

    assert_eq!(state_of(&mut client, 5), "reserved");
    let reason_for =
        |client: &mut Client, claimed| claim(client, claimed).reason.unwrap_or_default();
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
    let retire =
        "SELECT shard_id, free_at <= clock_timestamp() FROM snowflake_registry.retire('db-a')";
    let of_a = Claim { shard_ids: "NULL", ..A };
    let of_b = Claim { shard_ids: "NULL", ..B };
    let gone =
        Refusal { sqlstate: "42704", message: "node \"db-a\" does not exist", hint: "leases" };
    assert_refused(&mut client, retire, gone);
    let lease = claim(&mut client, of_a);
    assert_eq!(claim(&mut client, of_b).shard, 1);

    let message = "node \"db-a\" holds the lease of shard 0";
    let held = Refusal { sqlstate: "55000", message, hint: "Stop the server." };
    assert_refused(&mut client, retire, held);
    assert!(release(&mut client, 1, 0, lease.serial, "now()") == "1");
    assert_eq!(printed(&mut client, retire), "0|t");
    assert_eq!(
        printed(
            &mut client,
            "SELECT node IS NULL, state FROM snowflake_registry.leases WHERE shard_id = 0"
        ),
        "t|retired"
    );
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
    let free_at =
        format!("SELECT {} FROM snowflake_registry.retire('db-d')", microseconds("free_at"));
    assert_eq!(Some(number(&mut client, &free_at)), lease.ends);
    let waits = claim(&mut client, Claim { shard_ids: "'{9}'", ..B });
    assert!(waits.reason.unwrap().starts_with("The span of the last holder of shard 9 ends at 20"));
}

#[test]
fn no_number_beyond_the_default_layout_is_assigned() {
    let (_database, mut client) = registry();
    change_by_hand(
        &mut client,
        "INSERT INTO snowflake_registry.shards
             (shard_id, node, serial, starts, ends, released, renewed_at, former_end, kept_until)
         SELECT shard, 'db-' || shard, 1, '-infinity', '-infinity', true, '-infinity', '-infinity', '-infinity'
         FROM generate_series(0, 4094) AS shard",
    );
    let last = Claim { shard_ids: "NULL", ..A };
    assert_eq!(claim(&mut client, last).shard, 4095);
    let none_left = Refusal {
        sqlstate: "54000",
        message: "registry has no free shard number",
        hint: "snowflake_registry.retire(",
    };
    let of_b = Claim { shard_ids: "NULL", ..B };
    assert_refused(&mut client, &of_b.sql("*"), none_left);
    assert_eq!(claim(&mut client, last).shard, 4095);
    // Nor one that a person has reserved.
    run(&mut client, "SELECT snowflake_registry.take_over(5000, 'db-b')");
    assert_refused(&mut client, &of_b.sql("*"), none_left);
    run(&mut client, "SELECT snowflake_registry.retire('db-7')");
    assert_eq!(claim(&mut client, Claim { node: "db-new", incarnation: 3, ..of_b }).shard, 7);
}

#[test]
fn a_shard_that_nobody_had_can_be_reserved() {
    let (_database, mut client) = registry();
    printed(&mut client, "SELECT snowflake_registry.take_over(5, 'db-b')");

    assert!(!claim(&mut client, A).granted);
    let lease = claim(&mut client, B);
    assert_eq!(lease.starts, Some(lease.read_at));
}

#[test]
fn after_a_restart_of_the_registry_new_spans_begin_when_forgotten_leases_have_ended() {
    let mut cluster = Cluster::new();
    let mut client = make_registry(&cluster);
    let (of_5, of_6) =
        (claim(&mut client, A), claim(&mut client, Claim { shard_ids: "'{6}'", ..A }));
    release(&mut client, 1, 5, of_5.serial, "'-infinity'");

    cluster.stop(Shutdown::Immediate);
    cluster.start();
    let mut client = cluster.connect();

    let quiet_until =
        format!("SELECT {} FROM snowflake_registry.identity", microseconds("quiet_until"));
    let of_another = claim(&mut client, B);
    assert_eq!(of_another.starts, Some(number(&mut client, &quiet_until)));
    assert!(of_another.starts > of_6.ends);
    let of_new = claim(&mut client, Claim { shard_ids: "'{7}'", ..B });
    assert_eq!(of_new.starts, of_another.starts);
    // It knows this lease.
    let renewed =
        claim(&mut client, Claim { shard_ids: "'{6}'", serial: of_6.serial, nonce: 3, ..A });
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
fn a_copy_that_is_assigned_the_shard_of_the_original_is_refused() {
    let (_database, mut client) = registry();
    let original = claim(&mut client, Claim { shard_ids: "NULL", ..A });

    let copy = claim(&mut client, Claim { shard_ids: "NULL", incarnation: 2, nonce: 2, ..A });

    assert_eq!((copy.shard, copy.granted), (original.shard, false));
}

#[test]
fn a_claim_of_several_shards_is_granted_those_that_are_free() {
    let (_database, mut client) = registry();
    claim(&mut client, A);

    let answers = claims(&mut client, Claim { shard_ids: "'{9, 5, 0}'", ..B });

    let granted: Vec<(i32, bool)> =
        answers.iter().map(|answer| (answer.shard, answer.granted)).collect();
    assert_eq!(granted, [(0, true), (5, false), (9, true)]);

    // Each serial is that of its shard: only the holder of 9 goes on where it was.
    let of_9 = answers[2].serial.unwrap();
    let renewal = Claim { shard_ids: "'{9, 0}'", nonce: 3, ..B };
    let renewed = answers_to(&mut client, &|columns| {
        renewal.sql(columns).replacen("NULL,", &format!("'{{{of_9}, NULL}}',"), 1)
    });
    assert_eq!(renewed[0].starts, answers[0].ends);
    assert_eq!(renewed[1].starts, answers[2].starts);
}

#[test]
fn claims_for_the_same_shards_in_another_order_do_not_deadlock() {
    let (database, _client) = registry();
    let orders = ["n", "-n", "n % 7, n", "n % 5, -n"];
    at_once(&database, orders.len(), |client, server| {
        let shard_ids =
            format!("ARRAY(SELECT n FROM generate_series(0, 49) AS n ORDER BY {})", orders[server]);
        for turn in 0..20 {
            let nonce = 100 * turn + server;
            claims(client, Claim { shard_ids: &shard_ids, incarnation: server, nonce, ..A });
            let assign = Claim { shard_ids: "NULL", incarnation: server, nonce, ..A };
            claims(client, assign);
        }
    });
}

#[test]
fn a_session_claims_after_errors_and_in_a_registry_that_was_created_anew() {
    let (_database, mut client) = registry();
    let claim = |client: &mut Client, nonce| {
        printed(
            client,
            &Claim { nonce, shard_ids: "'{5,6}'", ..A }.sql("count(*) FILTER (WHERE granted)"),
        )
    };
    // An error while the session plans its first claim, and one after it.
    run(&mut client, "BEGIN; ALTER TABLE snowflake_registry.shards RENAME TO hidden");
    assert!(client.simple_query(&A.sql("*")).is_err());
    run(&mut client, "ROLLBACK");
    assert_eq!(claim(&mut client, 1), "2");
    assert!(client.simple_query(&Claim { ahead: "1 h", ..A }.sql("*")).is_err());
    assert_eq!(claim(&mut client, 2), "2");
    for anew in [
        "DROP EXTENSION pg_snowflake_registry; CREATE EXTENSION pg_snowflake_registry",
        "ALTER TABLE snowflake_registry.shards ADD COLUMN other text; VACUUM FULL snowflake_registry.shards",
        "DISCARD PLANS",
    ] {
        for statement in anew.split("; ") {
            run(&mut client, statement);
        }
        // More often than a session plans anew for its arguments.
        for nonce in 3..12 {
            assert_eq!(claim(&mut client, nonce), "2", "{anew}");
        }
    }
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
            let second = scope
                .spawn(|| claim(&mut database.connect(), Claim { shard_ids: &shard_ids, ..B }));
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
fn a_transaction_that_could_miss_a_lease_is_refused() {
    let cluster = Cluster::new();
    let mut client = make_registry(&cluster);
    let standby = cluster.standby();
    for (call, function) in &calls() {
        for (level, sqlstate, hint) in [
            ("ISOLATION LEVEL REPEATABLE READ", "25000", "READ COMMITTED"),
            ("ISOLATION LEVEL SERIALIZABLE", "25000", "READ COMMITTED"),
            ("READ ONLY", "25006", "READ WRITE"),
        ] {
            let message = format!("cannot execute {function}() in a");
            let refusal = Refusal { sqlstate, message: &message, hint };
            assert_refused(&mut client, &format!("BEGIN {level}; {call}"), refusal);
            run(&mut client, "ROLLBACK");
        }
        let message = format!("cannot execute {function}() during recovery");
        let refusal = Refusal { sqlstate: "25006", message: &message, hint: "primary" };
        assert_refused(&mut standby.connect(), call, refusal);
    }
}

/// A call of each function, and its name.
fn calls() -> [(String, &'static str); 4] {
    [
        (A.sql("*"), "snowflake_registry.claim"),
        (
            format!("SELECT snowflake_registry.release('{}', '{{5}}', '{{1}}', now())", uuid(1)),
            "snowflake_registry.release",
        ),
        (
            "SELECT snowflake_registry.take_over(5, 'db-b')".to_owned(),
            "snowflake_registry.take_over",
        ),
        ("SELECT snowflake_registry.retire('db-b')".to_owned(), "snowflake_registry.retire"),
    ]
}

/// The error of a registry that an ordinary role could change.
const OWNED: Refusal = Refusal {
    sqlstate: "55000",
    message: "registry of leases must be owned by a superuser",
    hint: "",
};

/// An owner could put a table with triggers in place of ours.
#[test]
fn a_registry_whose_schema_an_ordinary_role_owns_is_refused_until_it_belongs_to_a_superuser() {
    let cluster = Cluster::new();
    let mut client = make_registry(&cluster);
    run(
        &mut client,
        "CREATE ROLE mallory; CREATE ROLE other SUPERUSER;
         ALTER SCHEMA snowflake_registry OWNER TO mallory",
    );
    for (call, _) in calls() {
        let error = assert_refused(&mut client, &call, OWNED);
        assert!(error.detail().unwrap().contains("mallory"), "{error:?}");
        let is_command = error.hint().unwrap().contains("ALTER SCHEMA snowflake_registry OWNER TO");
        assert!(is_command, "{error:?}");
    }

    for owner in ["other", "CURRENT_USER"] {
        run(&mut client, &format!("ALTER SCHEMA snowflake_registry OWNER TO {owner}"));

        for (call, _) in calls() {
            run(&mut client, &call);
        }
    }
}

#[test]
fn bad_arguments_are_refused_and_change_nothing() {
    let (_database, mut client) = registry();
    let lease = claim(&mut client, A);
    let before = printed(&mut client, "TABLE snowflake_registry.shards");
    let good = Claim { shard_ids: "'{6}'", ..A }.sql("*");
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        good.replacen(from, to, 1)
    };
    let uuid_1 = format!("'{}'", uuid(1));
    let release = |shards: &str, serials: &str, mark: &str| {
        format!("SELECT snowflake_registry.release({uuid_1}, {shards}, {serials}, {mark})")
    };
    let until = "clock_timestamp() + interval '5 min'";
    let long_node = format!("'{}'", "x".repeat(256));
    let cases = [
        // Arrays.
        (with("'{6}'", "'{6, NULL}'"), "22004", "shard_ids must not contain nulls", "Omit"),
        (with("'{6}'", "'{{6, 7}, {8, 9}}'"), "2202E", "one-dimensional", "2 dimensions"),
        (with("'{6}'", "'{6, 7, 6}'"), "22023", "contains 6 more than once", "once"),
        (with("'{6}'", "'{6, -1}'"), "22023", "shard ID -1 is out of range", "0"),
        (with("'{6}'", "'{-2147483648}'"), "22023", "out of range", "0"),
        (
            with("'{6}'", "array_fill(6, ARRAY[1000000])"),
            "54000",
            "shard_ids has too many elements",
            "the limit is 8192",
        ),
        (with("NULL", "'{1, 2}'"), "22023", "the same number of elements", "1 and 2"),
        (with("NULL", "'{{1}}'"), "2202E", "serials must be a one-dimensional", "2 dimensions"),
        (
            with("'{6}'", "NULL").replacen("NULL, '00", "'{1}', '00", 1),
            "22023",
            "same number",
            "0 and 1",
        ),
        // Node names.
        (with("'db-a'", "''"), "22023", "invalid node name", "1 to 255"),
        (with("'db-a'", &long_node), "22023", "invalid node name", "1 to 255"),
        (with("'db-a'", "E'db\\nLOG:  forged'"), "22023", "invalid node name", "line feeds"),
        (with("'db-a'", "E'db\\u0085'"), "22023", "invalid node name", "control"),
        (with("'db-a'", "NULL"), "22004", "argument \"node\" must not be null", ""),
        // Numbers and times.
        (with(&uuid_1, "NULL"), "22004", "argument \"incarnation\" must not be null", ""),
        (
            good.replace(&uuid_1, "NULL").replacen("NULL", &uuid_1, 1),
            "22004",
            "argument \"nonce\" must not be null",
            "",
        ),
        (with(until, "NULL"), "22004", "argument \"until\" must not be null", ""),
        (with(until, "'infinity'"), "22023", "until must be finite", "clock"),
        (with(until, "'-infinity'"), "22023", "until must be finite", "clock"),
        (with(until, "'294276-12-31'"), "55000", "too far ahead", ""),
        (with(until, "'4000-01-01 BC'"), "55000", "too far behind", ""),
        (with(", '5 min')", ", NULL)"), "22004", "argument \"length\" must not be null", ""),
        (
            with(", '5 min')", ", '0 s')"),
            "22023",
            "out of range",
            "1.000 s, the longest 5.000 minutes",
        ),
        (with(", '5 min')", ", '-10 s')"), "22023", "out of range", "shortest"),
        (with(", '5 min')", ", '1 h')"), "22023", "out of range", "longest"),
        (with(", '5 min')", ", '178000000 years')"), "22023", "out of range", "longest"),
        // A release.
        (release("'{5, 5}'", "'{1, 1}'", "now()"), "22023", "more than once", ""),
        (release("'{5}'", "'{1}'", "NULL"), "22004", "argument \"mark\" must not be null", ""),
        (release("'{5}'", "'{1, 2}'", "now()"), "22023", "same number", "1 and 2"),
        (release("'{{5}}'", "'{1}'", "now()"), "2202E", "one-dimensional", "2 dimensions"),
        (
            "SELECT snowflake_registry.release(NULL, '{5}', '{1}', now())".into(),
            "22004",
            "argument \"incarnation\" must not be null",
            "",
        ),
        // A take-over.
        ("SELECT snowflake_registry.take_over(-1, 'db-b')".into(), "22023", "out of range", "0"),
        ("SELECT snowflake_registry.take_over(NULL, 'db-b')".into(), "22004", "\"shard_id\"", ""),
        ("SELECT snowflake_registry.take_over(5, NULL)".into(), "22004", "\"node\"", ""),
        (
            "SELECT snowflake_registry.take_over(5, '')".into(),
            "22023",
            "invalid node name",
            "1 to 255",
        ),
    ];
    let bad = cases.iter().map(|&(ref sql, sqlstate, message, allowed)| Bad {
        sql,
        sqlstate,
        message,
        allowed,
    });
    assert_each_refused(&mut client, &bad.collect::<Vec<_>>());

    assert_eq!(printed(&mut client, "TABLE snowflake_registry.shards"), before);
    assert!(claim(&mut client, Claim { serial: lease.serial, nonce: 3, ..A }).granted);
}

#[test]
fn unusual_arguments_are_taken_as_they_are() {
    let (_database, mut client) = registry();
    let many = Claim { shard_ids: "ARRAY(SELECT generate_series(0, 8191))", ..A };
    assert!(claims(&mut client, many).iter().all(|answer| answer.granted));
    let other_bounds = Claim { shard_ids: "'[7:8]={2147483647, 8192}'", ..A };
    assert!(claims(&mut client, other_bounds).iter().all(|answer| answer.granted));

    let odd = Claim { shard_ids: "'{9000}'", node: r#"d"b'' \; -- é"#, ..A };
    assert!(claim(&mut client, odd).granted);
    assert_eq!(
        printed(&mut client, "SELECT node FROM snowflake_registry.leases WHERE shard_id = 9000"),
        r#"d"b' \; -- é"#
    );
    let reason = claim(&mut client, Claim { shard_ids: "'{9000}'", ..B }).reason.unwrap();
    assert!(reason.contains(r#"held by node d"b' \; -- é until"#), "{reason}");
    assert_eq!(release(&mut client, 1, 5, None, "now()"), "0");
    let nothing = format!("SELECT snowflake_registry.release('{}', NULL, NULL, now())", uuid(1));
    assert_eq!(printed(&mut client, &nothing), "0");
}

#[test]
fn it_works_in_a_database_with_another_encoding() {
    let cluster = Cluster::new();
    run(
        &mut cluster.connect(),
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    );
    let mut client = cluster.connect_to(SUPERUSER, "latin");
    run(&mut client, CREATE);
    let of_a = Claim { node: "dbé", ..A };
    let lease = claim(&mut client, of_a);
    assert!(claim(&mut client, Claim { serial: lease.serial, nonce: 3, ..of_a }).granted);
    let reason = claim(&mut client, B).reason.unwrap();
    assert!(reason.contains("dbé"), "{reason}");
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
    let mut plants = String::from(
        "CREATE FUNCTION mallory.caught() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;",
    );
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
        for (left, right) in [
            ("timestamptz", "timestamptz"),
            ("text", "text"),
            ("name", "text"),
            ("int", "int"),
            ("interval", "interval"),
        ] {
            plants += &format!(
                "CREATE OPERATOR mallory.{operator} (FUNCTION = mallory.differ, LEFTARG = {left}, RIGHTARG = {right});"
            );
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
        format!(
            "SELECT snowflake_registry.release('{}', '{{5}}', '{{1}}', pg_catalog.clock_timestamp())",
            uuid(1)
        ),
        "SELECT snowflake_registry.take_over(5, 'db-b')".to_owned(),
        "SELECT snowflake_registry.id()".to_owned(),
    ];
    for search_path in ["mallory, pg_catalog, public", "pg_temp, mallory, pg_catalog, public"] {
        run(&mut mallory, &format!("SET search_path = {search_path}"));
        for call in &calls {
            let call = call
                .replace("clock_timestamp() + interval '5 min'", "$1")
                .replace("pg_catalog.clock_timestamp()", "$1");
            let clock = format!("SELECT {}", microseconds("clock_timestamp()"));
            let until_us = number(&mut superuser, &clock) + 300_000_000;
            let seconds = until_us as f64 / 1e6;
            let until = format!("pg_catalog.to_timestamp({seconds:.6})");
            printed(&mut mallory, &call.replace("$1", &until));
        }
    }
}

/// Runs `ask` for each of `servers` at once, each in a session of its own.
fn at_once<T: Send>(
    database: &Database,
    servers: usize,
    ask: impl Fn(&mut Client, usize) -> T + Sync,
) -> Vec<T> {
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
    let columns =
        format!("shard_id, granted, {starts}, {ends}, serial, reason, registry::text, {read_at}");
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
fn release(
    client: &mut Client,
    incarnation: usize,
    shard: i32,
    serial: Option<i64>,
    mark: &str,
) -> String {
    let serial = serial.map_or("NULL".to_owned(), |serial| serial.to_string());
    let mark = match mark.starts_with('\'') || mark == "now()" {
        true => mark.to_owned(),
        false => format!("(SELECT {mark} FROM snowflake_registry.leases WHERE shard_id = {shard})"),
    };
    let sql = format!(
        "SELECT snowflake_registry.release('{}', '{{{shard}}}', '{{{serial}}}', {mark})",
        uuid(incarnation)
    );
    printed(client, &sql)
}

/// The whole row of a shard.
fn row_of(client: &mut Client, shard: i32) -> String {
    printed(client, &format!("SELECT * FROM snowflake_registry.shards WHERE shard_id = {shard}"))
}

fn state_of(client: &mut Client, shard: i32) -> String {
    printed(
        client,
        &format!("SELECT state FROM snowflake_registry.leases WHERE shard_id = {shard}"),
    )
}

/// The query of a time of a lease.
fn time_of(time: &str, shard: i32) -> String {
    format!("SELECT {} FROM snowflake_registry.leases WHERE shard_id = {shard}", microseconds(time))
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
