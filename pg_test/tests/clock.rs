//! What sessions see when the server's clock steps, and that no ID is returned twice. `figures/clock.rs` measures how long
//! they wait.

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{Refusal, assert_refused, commands_in};
use pg_snowflake_harness::clock::{CLIENTS, ClockReport, End, INSERT, cluster_with_posts, end_a_waiting_call, inserting_clients};
use pg_snowflake_harness::id::{EPOCH_MS, count_repeats, is_increasing, now_ms, split};
use pg_snowflake_harness::sequence::{state, take_one};
use std::time::Instant;

/// In seconds.
const HOUR: f64 = 3600.0;

const HOUR_MS: f64 = 1000.0 * HOUR;

#[test]
fn a_clock_that_steps_back_repeats_no_id_and_ids_continue() {
    // Sessions wait for a step of 500 ms, which the lead and `max_wait` allow. They refuse a step of an hour until the
    // clock is correct.
    for (ms, is_refused) in [(-2.0, false), (-50.0, false), (-500.0, false), (-HOUR_MS, true)] {
        let cluster = cluster_with_posts();
        let clients = inserting_clients(&cluster);
        clients.let_each_do(50);
        cluster.set_clock(ms / 1000.0);
        clients.let_each_do(50);
        let before_it_is_right = Instant::now();
        cluster.set_clock(0.0);
        clients.let_each_do(50);
        let reports = clients.stop();

        for report in &reports {
            if is_refused {
                assert!(report.was_refused_for_the_clock(), "{:?}", report.errors.first());
            } else {
                assert!(report.errors.is_empty(), "step of {ms} ms: {:?}", report.errors.first());
            }
            assert!(is_increasing(&report.ids), "step of {ms} ms");
            assert!(report.last_success > before_it_is_right, "after the step of {ms} ms ids continue");
            let seen = report.clock.largest_regression_ms;
            assert!(report.clock.regressions <= 1 && seen <= -ms, "{seen} ms of {ms}");
            // A session does not see a step that is shorter than its pause.
            assert!(!is_refused || seen > HOUR_MS / 2.0, "{seen} ms of {ms}");
        }
        // One line in the log for each session that saw it, with the size that the session reports.
        let regressions: Vec<String> = reports
            .iter()
            .filter(|report| report.clock.regressions == 1)
            .map(|report| duration(report.clock.largest_regression_ms))
            .collect();
        assert_eq!(count_in_log(&cluster, "the clock stepped back by"), regressions.len());
        for size in regressions {
            assert!(cluster.log().contains(&format!("the clock stepped back by {size}")), "{size}");
        }
        let ids = reports.into_iter().flat_map(|report| report.ids).collect();
        assert_eq!(count_repeats(ids), 0, "step of {ms} ms");
    }
}

/// As in the server's messages.
fn duration(ms: f64) -> String {
    match ms {
        ..1.0 => format!("{:.0} us", ms * 1000.0),
        1.0..1000.0 => format!("{ms:.3} ms"),
        _ => format!("{:.3} minutes", ms / 60_000.0),
    }
}

#[test]
fn the_hint_after_an_hour_fast_clock_continues_without_a_repeat() {
    let cluster = cluster_with_posts();
    let clients = inserting_clients(&cluster);
    clients.let_each_do(20);
    cluster.set_clock(HOUR);
    clients.let_each_do(20);
    cluster.set_clock(0.0);
    clients.let_each_do(20);
    let reports = clients.stop();
    for report in &reports {
        assert!(report.was_refused_for_the_clock());
        assert_eq!((report.clock.forward_jumps, report.clock.regressions), (1, 1));
    }
    assert_eq!(count_in_log(&cluster, "the clock jumped forward by"), CLIENTS);
    let mut ids: Vec<i64> = reports.into_iter().flat_map(|report| report.ids).collect();
    let highest = *ids.iter().max().unwrap();

    // A session that did not see the clock step sees only the sequence.
    let refusal = assert_refused(
        &mut cluster.connect(),
        INSERT,
        Refusal {
            sqlstate: "55000",
            message: "is too far ahead of the server clock",
            hint: "ALTER DATABASE postgres SET pg_snowflake.max_lead = '",
        },
    );
    cluster.connect().batch_execute(commands_in(refusal.hint().unwrap())).unwrap();

    let mut client = cluster.connect();
    for _ in 0..1000 {
        ids.push(take_one(&mut client, INSERT));
    }
    assert!(ids[ids.len() - 1000] > highest);
    assert_eq!(count_repeats(ids), 0);
}

#[test]
fn the_hint_names_a_role_whose_own_lead_overrides_that_of_the_database() {
    let cluster = cluster_with_posts();
    cluster
        .connect()
        .batch_execute(
            "CREATE ROLE app LOGIN; GRANT INSERT, SELECT ON posts TO app; GRANT USAGE ON SEQUENCE posts_id_seq TO app;
             ALTER ROLE app SET pg_snowflake.max_lead = '50ms'",
        )
        .unwrap();
    cluster.set_clock(HOUR);
    let id = take_one(&mut cluster.connect(), INSERT);
    cluster.set_clock(0.0);

    let command = "ALTER ROLE app IN DATABASE postgres SET pg_snowflake.max_lead = '";
    let refusal = Refusal { sqlstate: "55000", message: "is too far ahead", hint: command };
    let error = assert_refused(&mut cluster.connect_to("app", "postgres"), INSERT, refusal);
    cluster.connect().batch_execute(commands_in(error.hint().unwrap())).unwrap();

    assert!(take_one(&mut cluster.connect_to("app", "postgres"), INSERT) > id);
}

#[test]
fn the_hint_after_a_call_with_another_layout_continues_without_a_repeat() {
    let cluster = cluster_with_posts();
    let mut client = cluster.connect();
    let before = take_one(&mut client, INSERT);
    take_one(&mut client, "SELECT snowflake_nextval('posts_id_seq', 0, 'mastodon')");

    let hint = "snowflake_convert_column() with the shard and the layout of the column";
    let refusal = Refusal { sqlstate: "55000", message: "is too far ahead", hint };
    assert_refused(&mut client, INSERT, refusal);
    client.batch_execute("SELECT snowflake_convert_column('posts', 'id', 5, 'postgres')").unwrap();

    let after = take_one(&mut client, INSERT);
    assert!(after > before);
    assert_eq!(split(after).shard, split(before).shard);
}

#[test]
fn the_error_names_the_step_that_the_session_saw() {
    // A lead of 1000 hours is longer than max_lead may be.
    for (step, remedy) in [(HOUR, "SET pg_snowflake.max_lead = '36"), (1000.0 * HOUR, "reconnect")] {
        let cluster = cluster_with_posts();
        let mut client = cluster.connect();
        take_one(&mut client, INSERT);
        cluster.set_clock(-step);

        let refusal = assert_refused(
            &mut client,
            INSERT,
            Refusal { sqlstate: "55000", message: "server clock stepped back too far", hint: "If the clock is wrong, correct it" },
        );

        assert!(refusal.hint().unwrap().contains(remedy), "{refusal:?}");
        let detail = refusal.detail().unwrap();
        assert!(detail.contains("behind its reading at the last ID of this session"), "{refusal:?}");
        assert!(detail.contains("pg_snowflake.max_wait"), "{refusal:?}");
    }
}

#[test]
fn a_session_that_got_no_id_while_the_clock_was_ahead_is_not_stopped_afterwards() {
    let cluster = cluster_with_posts();
    let mut client = cluster.connect();
    let first = take_one(&mut client, INSERT);
    cluster.set_clock(HOUR);
    for refused in [
        "BEGIN READ ONLY; SELECT snowflake_nextval('posts_id_seq', 5); COMMIT",
        "SELECT snowflake_nextval('posts_id_seq', 4096)",
        "ALTER SEQUENCE posts_id_seq MAXVALUE 5; INSERT INTO posts DEFAULT VALUES",
    ] {
        assert!(client.batch_execute(refused).is_err(), "{refused}");
        client.batch_execute("ROLLBACK").unwrap();
    }
    client.batch_execute("SELECT snowflake_clock(); SELECT snowflake_sequence_status('posts_id_seq')").unwrap();
    cluster.set_clock(0.0);
    assert!(take_one(&mut client, INSERT) > first);

    // One that did get an ID goes on above it.
    client.batch_execute("CREATE SEQUENCE other").unwrap();
    cluster.set_clock(HOUR);
    take_one(&mut client, "SELECT snowflake_nextval('other', 5)");
    cluster.set_clock(0.0);
    let stepped = Refusal { sqlstate: "55000", message: "server clock stepped back too far", hint: "" };
    assert_refused(&mut client, INSERT, stepped);
    assert!(take_one(&mut cluster.connect(), INSERT) > first);
}

/// Ways to reset a sequence without replacing it.
const RESETS: [&str; 3] =
    ["ALTER SEQUENCE posts_id_seq RESTART", "SELECT setval('posts_id_seq', 1, false)", "TRUNCATE posts RESTART IDENTITY"];

#[test]
fn a_reset_at_the_moment_of_a_step_back_repeats_no_id() {
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
        assert_refused(&mut client, INSERT, Refusal { sqlstate: "55000", message: "server clock stepped back", hint: "" });
    }
}

#[test]
fn a_session_that_keeps_resetting_a_sequence_within_a_tick_repeats_no_id() {
    for reset in RESETS {
        let cluster = cluster_with_posts();
        let mut client = cluster.connect();
        client
            .batch_execute(&format!(
                "CREATE TABLE returned (id bigint PRIMARY KEY);
                 DO $$ BEGIN
                     FOR i IN 1..500 LOOP
                         INSERT INTO returned VALUES (snowflake_nextval('posts_id_seq', 5));
                         EXECUTE $reset${reset}$reset$;
                         DISCARD SEQUENCES;
                     END LOOP;
                 END $$"
            ))
            .unwrap_or_else(|error| panic!("{reset}: {error:?}"));
    }
}

#[test]
fn no_setting_makes_ids_repeat() {
    // Without a lead every full tick waits for the next one; without a wait it is refused instead.
    for (max_lead, max_wait) in [("0", "1s"), ("0", "0"), ("100ms", "0"), ("1d", "0")] {
        let cluster = cluster_with_posts();
        let mut client = cluster.connect();
        client.batch_execute(&format!("SET pg_snowflake.max_lead = '{max_lead}'; SET pg_snowflake.max_wait = '{max_wait}'")).unwrap();
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
fn snowflake_clock_reports_steps_and_jumps() {
    let cluster = cluster_with_posts();
    let mut client = cluster.connect();
    let before = ClockReport::read(&mut client);
    assert_eq!((before.regressions, before.forward_jumps), (0, 0));
    assert_eq!(before.ahead_ms, 0.0);
    assert_eq!((before.since_regression_ms, before.since_forward_jump_ms), (None, None));
    take_one(&mut client, INSERT);

    // Less the session's pause, which is less than an hour.
    cluster.set_clock(-10.0 * HOUR);
    let back = ClockReport::read(&mut client);
    let ten_hours = 9.0 * HOUR_MS..=10.0 * HOUR_MS;
    assert_eq!((back.regressions, back.forward_jumps), (1, 0));
    assert!(ten_hours.contains(&back.largest_regression_ms), "{back:?}");
    assert!(ten_hours.contains(&back.ahead_ms), "{back:?}");
    // The reading that reports the step is the one that saw it.
    assert_eq!((back.since_regression_ms, back.since_forward_jump_ms), (Some(0.0), None));

    cluster.set_clock(10.0 * HOUR);
    let forward = ClockReport::read(&mut client);
    let twenty_hours = 19.0 * HOUR_MS..=21.0 * HOUR_MS;
    assert_eq!((forward.regressions, forward.forward_jumps), (1, 1));
    assert!(twenty_hours.contains(&forward.largest_forward_jump_ms), "{forward:?}");
    assert_eq!(forward.ahead_ms, 0.0);
    assert_eq!(forward.since_forward_jump_ms, Some(0.0));
    assert!(forward.since_regression_ms.is_some_and(|ms| twenty_hours.contains(&ms)), "{forward:?}");

    // Another session has not seen it.
    assert_eq!(ClockReport::read(&mut cluster.connect()).regressions, 0);
}

#[test]
fn a_clock_before_the_epoch_is_refused_and_takes_nothing() {
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
            message: "server clock is before the epoch of layout \"postgres\"",
            hint: "Correct the server's clock.",
        },
    );

    assert_eq!(state(&mut client, "posts_id_seq"), fresh);
}

#[test]
fn ids_end_with_an_error_at_the_end_of_the_layout_and_are_never_negative() {
    let cluster = cluster_with_posts();
    let end_ms = EPOCH_MS + (1 << 41);
    let next = "SELECT snowflake_nextval('posts_id_seq', 0)";
    // On a machine on which a session needs more than three seconds to begin, try with more.
    let (mut client, first) = (1..=100)
        .find_map(|attempt| {
            cluster.set_clock((end_ms - now_ms()) as f64 / 1000.0 - 3.0 * f64::from(attempt));
            let mut client = cluster.connect();
            let first = client.query_one(next, &[]).ok()?.get(0);
            Some((client, first))
        })
        .expect("a server answers in time");
    let mut ids: Vec<i64> = vec![first];
    let error = loop {
        match client.query_one(next, &[]) {
            Ok(row) => ids.push(row.get(0)),
            Err(error) => break error.as_db_error().unwrap().clone(),
        }
    };

    assert_eq!(error.code().code(), "2200H", "{error:?}");
    assert!(error.hint().is_some());
    assert!(is_increasing(&ids) && ids[0] > 0);
    assert!(split(*ids.last().unwrap()).unix_ms < end_ms);

    // The last ID is issued. The next is refused, both within the lead and after the clock has passed the end.
    cluster.set_clock((end_ms - now_ms()) as f64 / 1000.0 - HOUR);
    let mut client = cluster.connect();
    client.batch_execute(&format!("SET pg_snowflake.max_lead = '2h'; SELECT setval('posts_id_seq', {})", (1_i64 << 51) - 2)).unwrap();
    let last = take_one(&mut client, next);
    assert_eq!(last, i64::MAX);
    let used_up = Refusal { sqlstate: "2200H", message: "has reached the end of layout", hint: "" };
    assert_refused(&mut client, INSERT, used_up);
    cluster.set_clock((end_ms - now_ms()) as f64 / 1000.0 + 60.0);
    assert_refused(&mut cluster.connect(), INSERT, used_up);
}

#[test]
fn a_cancel_and_a_terminate_end_a_call_that_waits_for_the_clock_and_takes_nothing() {
    let cluster = Cluster::new();
    for how in [End::Cancel, End::Terminate] {
        end_a_waiting_call(&cluster, how);
    }
}

fn count_in_log(cluster: &Cluster, what: &str) -> usize {
    cluster.log().matches(what).count()
}
