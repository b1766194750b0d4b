//! How long sessions wait for a clock that steps back. `tests/clock.rs` states what holds for their IDs at any speed.

use crate::machine;
use pg_snowflake_harness::clock::{cluster_with_posts, inserting_clients};
use postgres::Client;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOUR_MS: f64 = 3_600_000.0;

/// A call that takes this long has waited for the clock. A step of 500 ms exceeds the lead by 400 ms, less the time since
/// the last ID.
const STALL: Duration = Duration::from_millis(200);

/// After 500 ms the clock is where it was before that step. The machine may add as much again.
const MAX_WAIT: Duration = Duration::from_millis(1000);

/// What the clients may see of a clock step.
#[derive(Clone, Copy, Debug)]
enum Sees {
    Nothing,
    AWait,
    Errors,
}

#[test]
fn a_clock_that_steps_back_is_held_waited_for_or_refused_at_once() {
    let _machine = machine();
    let steps = [(-2.0, Sees::Nothing), (-50.0, Sees::Nothing), (-500.0, Sees::AWait), (-HOUR_MS, Sees::Errors)];
    for (ms, sees) in steps {
        let cluster = cluster_with_posts();
        let clients = inserting_clients(&cluster);
        sleep(Duration::from_millis(400));
        cluster.set_clock(ms / 1000.0);
        let wait_for_the_clock = sees_waits(&mut cluster.connect(), Duration::from_millis(1000));
        cluster.set_clock(0.0);
        let reports = clients.stop();

        for report in &reports {
            let as_expected = match sees {
                Sees::Nothing => report.errors.is_empty() && !wait_for_the_clock,
                Sees::AWait => report.errors.is_empty() && wait_for_the_clock && (STALL..MAX_WAIT).contains(&report.slowest),
                // Many were refused within the time of one wait.
                Sees::Errors => report.was_refused_for_the_clock() && !wait_for_the_clock,
            };
            assert!(
                as_expected,
                "step of {ms} ms: a wait was seen: {wait_for_the_clock}; {:?}, {:?}",
                report.slowest,
                report.errors.first()
            );
            // The step, less the time since the session last looked.
            let seen = report.clock.largest_regression_ms;
            assert!(matches!(sees, Sees::Nothing) || seen > -ms - 1000.0, "{seen} ms of {ms}");
        }
    }
}

/// Whether any session was seen waiting for the clock.
fn sees_waits(observer: &mut Client, period: Duration) -> bool {
    let end = Instant::now() + period;
    let mut seen = false;
    while Instant::now() < end {
        // From 17 on the wait has its own name in this class.
        let waiting: bool =
            observer.query_one("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Extension')", &[]).unwrap().get(0);
        seen |= waiting;
        sleep(Duration::from_millis(5));
    }
    seen
}
