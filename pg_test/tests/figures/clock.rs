//! What sessions see when the server's clock steps under them, and that no id comes twice.

use crate::machine;
use pg_snowflake_servertest::id::{EPOCH_MS, count_repeats, is_increasing, now_ms, split};
use pg_snowflake_servertest::refusal::{Refusal, assert_refused};
use pg_snowflake_servertest::sequence::{state, take_one};
use pg_snowflake_servertest::{Cluster, SUPERUSER};
use postgres::Client;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;
const HOUR: f64 = 3600.0;

/// A call that takes this long has waited for the clock. A step of 500 ms exceeds the lead by 400 ms, less the time since
/// the last id, and a busy machine may let a session rest as long as the difference.
const STALL: Duration = Duration::from_millis(200);

/// After 500 ms the clock is where it was before that step. As long again may be the machine's doing.
const LONGEST_WAIT: Duration = Duration::from_millis(1000);

/// A step of the clock, and what the clients may see of it.
struct Step {
    ms: f64,
    sees: Sees,
    /// The least that a session knows of the step afterwards, in milliseconds: the step, less the time since it
    /// last looked. `None` where the step is too small to be seen for sure.
    seen_ms: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Sees {
    Nothing,
    AWait,
    Errors,
}

#[test]
fn a_clock_that_steps_back_is_held_waited_for_or_refused_and_no_id_comes_twice() {
    let _machine = machine();
    let steps = [
        Step { ms: -2.0, sees: Sees::Nothing, seen_ms: None },
        Step { ms: -50.0, sees: Sees::Nothing, seen_ms: None },
        Step { ms: -500.0, sees: Sees::AWait, seen_ms: Some(200.0) },
        Step { ms: -1000.0 * HOUR, sees: Sees::Errors, seen_ms: Some(1000.0 * HOUR - 1000.0) },
    ];
    for Step { ms, sees, seen_ms } in steps {
        let cluster = cluster_with_posts();
        let clients = Clients::start(&cluster);
        sleep(Duration::from_millis(400));
        cluster.set_clock(ms / 1000.0);
        let wait_for_the_clock = sees_waits(&mut cluster.connect(), Duration::from_millis(1000));
        let before_it_is_right = Instant::now();
        cluster.set_clock(0.0);
        sleep(Duration::from_millis(400));
        let reports = clients.stop();

        for report in &reports {
            let as_expected = match sees {
                Sees::Nothing => report.errors.is_empty() && !wait_for_the_clock,
                Sees::AWait => {
                    report.errors.is_empty() && report.has_waited_briefly() && wait_for_the_clock
                }
                Sees::Errors => report.was_refused_at_once() && !wait_for_the_clock,
            };
            assert!(
                as_expected,
                "step of {ms} ms: a wait was seen: {wait_for_the_clock}; {:?}, {:?}",
                report.stalls,
                report.errors.first()
            );
            assert!(is_increasing(&report.ids), "step of {ms} ms");
            assert!(
                report.last_success > before_it_is_right,
                "after the step of {ms} ms ids go on by themselves"
            );
            let seen = report.largest_regression_ms;
            assert!(report.regressions <= 1 && seen <= -ms, "{seen} ms of {ms}");
            assert!(seen_ms.is_none_or(|least| seen > least), "{seen} ms of {ms}");
        }
        // One line in the log for each session that saw it, with the size that the session tells.
        let regressions: Vec<String> = reports
            .iter()
            .filter(|report| report.regressions == 1)
            .map(|report| duration(report.largest_regression_ms))
            .collect();
        assert_eq!(count_in_log(&cluster, "the clock stepped back by"), regressions.len());
        for size in regressions {
            assert!(cluster.log().contains(&format!("the clock stepped back by {size}")), "{size}");
        }
        let ids = reports.into_iter().flat_map(|report| report.ids).collect();
        assert_eq!(count_repeats(ids), 0, "step of {ms} ms");
    }
}

/// As the server's messages have it.
fn duration(ms: f64) -> String {
    match ms {
        ..1.0 => format!("{:.0} us", ms * 1000.0),
        1.0..1000.0 => format!("{ms:.3} ms"),
        _ => format!("{:.3} minutes", ms / 60_000.0),
    }
}

#[test]
fn after_a_clock_that_was_an_hour_fast_the_hints_remedy_goes_on_without_a_repeat() {
    let _machine = machine();
    let cluster = cluster_with_posts();
    let clients = Clients::start(&cluster);
    clients.let_each_call(20);
    cluster.set_clock(HOUR);
    clients.let_each_call(20);
    cluster.set_clock(0.0);
    clients.let_each_call(20);
    let reports = clients.stop();
    for report in &reports {
        assert!(report.was_refused_at_once());
        assert_eq!((report.forward_jumps, report.regressions), (1, 1));
    }
    assert_eq!(count_in_log(&cluster, "the clock jumped forward by"), CLIENTS);
    let mut ids: Vec<i64> = reports.into_iter().flat_map(|report| report.ids).collect();
    let highest = *ids.iter().max().unwrap();

    // A session that did not see the clock step meets the sequence alone.
    let refusal = assert_refused(
        &mut cluster.connect(),
        INSERT,
        Refusal {
            sqlstate: "55000",
            message: "is too far ahead of the server clock",
            hint: "ALTER DATABASE postgres SET pg_snowflake.max_lead = '",
        },
    );
    let hint = refusal.hint().unwrap();
    let remedy = &hint[hint.find("ALTER DATABASE").unwrap()..];
    cluster.connect().batch_execute(remedy).unwrap();

    let mut client = cluster.connect();
    for _ in 0..1000 {
        ids.push(take_one(&mut client, INSERT));
    }
    assert!(ids[ids.len() - 1000] > highest);
    assert_eq!(count_repeats(ids), 0);
}

#[test]
fn the_error_names_the_step_that_the_session_saw() {
    let _machine = machine();
    let cluster = cluster_with_posts();
    let mut client = cluster.connect();
    take_one(&mut client, INSERT);
    cluster.set_clock(-HOUR);

    let refusal = assert_refused(
        &mut client,
        INSERT,
        Refusal {
            sqlstate: "55000",
            message: "server clock stepped back too far",
            hint: "If the clock is wrong, correct it",
        },
    );

    assert!(refusal.detail().unwrap().contains("pg_snowflake.max_wait"), "{refusal:?}");
}

/// Ways to set a sequence back that leave it the same sequence.
const RESETS: [&str; 3] = [
    "ALTER SEQUENCE posts_id_seq RESTART",
    "SELECT setval('posts_id_seq', 1, false)",
    "TRUNCATE posts RESTART IDENTITY",
];

#[test]
fn a_sequence_that_is_reset_in_the_same_breath_as_the_clock_steps_back_repeats_nothing() {
    let _machine = machine();
    let make_anew = "ALTER TABLE posts ALTER id DROP DEFAULT; DROP SEQUENCE posts_id_seq;
                     CREATE SEQUENCE posts_id_seq;
                     ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5)";
    for reset in RESETS.into_iter().chain([make_anew]) {
        let cluster = cluster_with_posts();
        let mut client = cluster.connect();
        let ids: Vec<i64> = (0..1000).map(|_| take_one(&mut client, INSERT)).collect();
        cluster.set_clock(-0.05);
        client.batch_execute(reset).unwrap();
        assert!(take_one(&mut client, INSERT) > ids[999], "{reset}");

        cluster.set_clock(-HOUR);
        client.batch_execute(reset).unwrap();
        assert_refused(
            &mut client,
            INSERT,
            Refusal { sqlstate: "55000", message: "server clock stepped back", hint: "" },
        );
    }
}

#[test]
fn a_session_repeats_nothing_however_often_it_resets_a_sequence_within_a_tick() {
    let _machine = machine();
    for reset in RESETS {
        let cluster = cluster_with_posts();
        let mut client = cluster.connect();
        client
            .batch_execute(&format!(
                "CREATE TABLE given (id bigint PRIMARY KEY);
                 DO $$ BEGIN
                     FOR i IN 1..500 LOOP
                         INSERT INTO given VALUES (snowflake_nextval('posts_id_seq', 5));
                         EXECUTE $reset${reset}$reset$;
                         DISCARD SEQUENCES;
                     END LOOP;
                 END $$"
            ))
            .unwrap_or_else(|error| panic!("{reset}: {error:?}"));
    }
}

#[test]
fn no_setting_makes_ids_come_twice() {
    let _machine = machine();
    // With no lead every full tick waits for the next; with no wait it is refused instead.
    for (max_lead, max_wait) in [("0", "1s"), ("0", "0"), ("100ms", "0"), ("1d", "0")] {
        let cluster = cluster_with_posts();
        let mut client = cluster.connect();
        client
            .batch_execute(&format!(
                "SET pg_snowflake.max_lead = '{max_lead}'; SET pg_snowflake.max_wait = '{max_wait}'"
            ))
            .unwrap();
        let mut ids = Vec::new();
        for step in [0.0, -0.02, 0.0, -0.2, 0.0] {
            cluster.set_clock(step);
            for _ in 0..200 {
                match client.query_one(INSERT, &[]) {
                    Ok(row) => ids.push(row.get(0)),
                    Err(error) => assert_eq!(error.code().unwrap().code(), "55000"),
                }
            }
        }
        assert!(is_increasing(&ids), "max_lead {max_lead}, max_wait {max_wait}");
        assert!(ids.len() >= 200, "{} ids with max_lead {max_lead}", ids.len());
    }
}

#[test]
fn the_clock_says_what_it_has_seen() {
    let _machine = machine();
    let cluster = cluster_with_posts();
    let mut client = cluster.connect();
    let before = ClockReport::read(&mut client);
    assert_eq!((before.regressions, before.forward_jumps), (0, 0));
    assert_eq!(before.ahead_ms, 0.0);
    assert_eq!((before.since_regression_ms, before.since_forward_jump_ms), (None, None));

    cluster.set_clock(-10.0);
    let back = ClockReport::read(&mut client);
    assert_eq!((back.regressions, back.forward_jumps), (1, 0));
    assert!((9_000.0..=10_000.0).contains(&back.largest_regression_ms), "{back:?}");
    assert!((9_000.0..=10_000.0).contains(&back.ahead_ms), "{back:?}");
    // The reading that reports the step is the one that saw it.
    assert_eq!((back.since_regression_ms, back.since_forward_jump_ms), (Some(0.0), None));

    cluster.set_clock(10.0);
    let forward = ClockReport::read(&mut client);
    assert_eq!((forward.regressions, forward.forward_jumps), (1, 1));
    assert!((19_900.0..=20_000.1).contains(&forward.largest_forward_jump_ms), "{forward:?}");
    assert_eq!(forward.ahead_ms, 0.0);
    assert_eq!(forward.since_forward_jump_ms, Some(0.0));
    assert!(forward.since_regression_ms.is_some_and(|ms| ms >= 19_900.0), "{forward:?}");

    // Another session has seen nothing of it.
    assert_eq!(ClockReport::read(&mut cluster.connect()).regressions, 0);
}

#[test]
fn a_clock_before_the_epoch_is_refused_and_takes_nothing() {
    let _machine = machine();
    let cluster = cluster_with_posts();
    let before_the_epoch = (EPOCH_MS - now_ms()) as f64 / 1000.0 - 60.0;
    cluster.set_clock(before_the_epoch);
    let mut client = cluster.connect();
    let fresh = state(&mut client, "posts_id_seq");

    assert_refused(
        &mut client,
        INSERT,
        Refusal {
            sqlstate: "55000",
            message: "server clock is before the epoch of layout \"instagram\"",
            hint: "Correct the server's clock.",
        },
    );

    assert_eq!(state(&mut client, "posts_id_seq"), fresh);
}

#[test]
fn at_the_end_of_the_layouts_life_ids_end_with_an_error_and_none_is_negative() {
    let _machine = machine();
    let cluster = cluster_with_posts();
    let end_ms = EPOCH_MS + (1 << 40);
    // Long enough for a session to begin, on any machine.
    cluster.set_clock((end_ms - now_ms()) as f64 / 1000.0 - 3.0);
    let mut client = cluster.connect();
    let mut ids = Vec::new();
    let error = loop {
        match client.query_one("SELECT snowflake_nextval('posts_id_seq', 8191)", &[]) {
            Ok(row) => ids.push(row.get::<_, i64>(0)),
            Err(error) => break error.as_db_error().unwrap().clone(),
        }
    };

    assert_eq!(error.code().code(), "2200H", "{error:?}");
    assert!(error.hint().is_some());
    assert!(is_increasing(&ids) && ids[0] > 0);
    assert!(split(*ids.last().unwrap()).unix_ms < end_ms);

    // The last one is issued; the next does not come by way of the lead, nor once the clock is past the end.
    cluster.set_clock((end_ms - now_ms()) as f64 / 1000.0 - 30.0);
    let mut client = cluster.connect();
    client
        .batch_execute(&format!(
            "SET pg_snowflake.max_lead = '1min'; SELECT setval('posts_id_seq', {})",
            (1_i64 << 50) - 2
        ))
        .unwrap();
    let last = take_one(&mut client, "SELECT snowflake_nextval('posts_id_seq', 8191)");
    assert_eq!(last, i64::MAX);
    let used_up = Refusal { sqlstate: "2200H", message: "has reached the end of layout", hint: "" };
    assert_refused(&mut client, INSERT, used_up);
    cluster.set_clock((end_ms - now_ms()) as f64 / 1000.0 + 60.0);
    assert_refused(&mut cluster.connect(), INSERT, used_up);
}

const INSERT: &str = "INSERT INTO posts DEFAULT VALUES RETURNING id";

fn cluster_with_posts() -> Cluster {
    let cluster = Cluster::builder().fake_clock().start();
    cluster
        .connect()
        .batch_execute(
            "CREATE SEQUENCE posts_id_seq;
             CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5));
             ALTER SEQUENCE posts_id_seq OWNED BY posts.id",
        )
        .unwrap();
    cluster
}

fn count_in_log(cluster: &Cluster, what: &str) -> usize {
    cluster.log().matches(what).count()
}

/// Clients that insert one row after the other until they are told to stop.
struct Clients {
    threads: Vec<JoinHandle<Report>>,
    stop: &'static AtomicBool,
    /// How many calls each has made.
    calls: &'static [AtomicU64; CLIENTS],
}

impl Clients {
    fn start(cluster: &Cluster) -> Self {
        let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let calls: &'static [AtomicU64; CLIENTS] = Box::leak(Box::default());
        let threads = calls
            .iter()
            .map(|calls| {
                let client = cluster.connect_to(SUPERUSER, SUPERUSER);
                spawn(move || insert_until(stop, calls, client))
            })
            .collect();
        Clients { threads, stop, calls }
    }

    /// Waits until each has made so many calls more: a busy machine may let one rest for any time.
    fn let_each_call(&self, calls: u64) {
        let made = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let wanted = self.calls.each_ref().map(|count| made(count) + calls);
        while !self.threads.iter().any(JoinHandle::is_finished)
            && self.calls.iter().zip(wanted).any(|(count, wanted)| made(count) < wanted)
        {
            sleep(Duration::from_millis(1));
        }
    }

    fn stop(self) -> Vec<Report> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

/// What one client saw.
struct Report {
    ids: Vec<i64>,
    errors: Vec<String>,
    stalls: Vec<Duration>,
    last_success: Instant,
    regressions: i64,
    largest_regression_ms: f64,
    forward_jumps: i64,
}

impl Report {
    /// The machine may make any call slow, so what counts is all that took long together.
    fn has_waited_briefly(&self) -> bool {
        !self.stalls.is_empty() && self.stalls.iter().sum::<Duration>() < LONGEST_WAIT
    }

    fn was_refused_at_once(&self) -> bool {
        let names_the_cause = |error: &String| {
            error.contains("stepped back too far")
                || error.contains("is too far ahead of the server clock")
        };
        // In the time of one wait many were refused.
        self.errors.len() > 10 && self.errors.iter().all(names_the_cause)
    }
}

/// Whether any session was seen to wait for the clock.
fn sees_waits(observer: &mut Client, period: Duration) -> bool {
    let end = Instant::now() + period;
    let mut seen = false;
    while Instant::now() < end {
        // From 17 on the wait has a name of its own in this class.
        let waiting: bool = observer
            .query_one(
                "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Extension')",
                &[],
            )
            .unwrap()
            .get(0);
        seen |= waiting;
        sleep(Duration::from_millis(5));
    }
    seen
}

fn insert_until(stop: &AtomicBool, calls: &AtomicU64, mut client: Client) -> Report {
    let statement = client.prepare(INSERT).unwrap();
    let (mut ids, mut errors, mut stalls) = (Vec::new(), Vec::new(), Vec::new());
    let mut last_success = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        match client.query_one(&statement, &[]) {
            Ok(row) => {
                ids.push(row.get(0));
                last_success = Instant::now();
            }
            Err(error) => errors.push(error.as_db_error().expect("the server answers").to_string()),
        }
        calls.fetch_add(1, Ordering::Relaxed);
        let took = asked.elapsed();
        if took >= STALL {
            stalls.push(took);
        }
    }
    let clock = ClockReport::read(&mut client);
    Report {
        ids,
        errors,
        stalls,
        last_success,
        regressions: clock.regressions,
        largest_regression_ms: clock.largest_regression_ms,
        forward_jumps: clock.forward_jumps,
    }
}

/// A row of `snowflake_clock()`.
#[derive(Debug)]
struct ClockReport {
    /// How far the high-water mark is above the reading.
    ahead_ms: f64,
    regressions: i64,
    largest_regression_ms: f64,
    forward_jumps: i64,
    largest_forward_jump_ms: f64,
    /// How long ago the last step back, and the last jump forward, was seen by that session's clock.
    since_regression_ms: Option<f64>,
    since_forward_jump_ms: Option<f64>,
}

impl ClockReport {
    fn read(client: &mut Client) -> Self {
        let row = client
            .query_one(
                "SELECT extract(epoch FROM high_water_mark - reading)::float8 * 1000, regressions,
                        extract(epoch FROM largest_regression)::float8 * 1000, forward_jumps,
                        extract(epoch FROM largest_forward_jump)::float8 * 1000,
                        extract(epoch FROM reading - last_regression)::float8 * 1000,
                        extract(epoch FROM reading - last_forward_jump)::float8 * 1000
                 FROM snowflake_clock()",
                &[],
            )
            .unwrap();
        ClockReport {
            ahead_ms: row.get(0),
            regressions: row.get(1),
            largest_regression_ms: row.get(2),
            forward_jumps: row.get(3),
            largest_forward_jump_ms: row.get(4),
            since_regression_ms: row.get(5),
            since_forward_jump_ms: row.get(6),
        }
    }
}
