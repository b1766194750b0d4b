//! What sessions see when the server's clock steps, and that no ID is returned twice. The campaign steps it
//! under load, and the property tests of `policies` try every setting.

use pg_snowflake_harness::clock::{End, INSERT, end_a_waiting_call, server_with_posts};
use pg_snowflake_harness::prelude::*;
use std::thread::spawn;

/// In seconds.
const HOUR: f64 = 3600.0;

#[test]
fn a_clock_that_steps_back_is_held_waited_for_or_refused() {
    // Of a step of 50 ms, the lead is left.
    for (step, refused_with) in [(-0.05, None), (-HOUR, Some("server clock stepped back too far"))] {
        let (cluster, mut client) = server_with_posts();
        client.batch_execute("SET pg_snowflake.max_wait = 0").unwrap();
        let before = take_one(&mut client, INSERT);
        cluster.set_clock(step);
        match refused_with {
            None => assert!(take_one(&mut client, INSERT) > before),
            Some(message) => drop(assert_refused(&mut client, INSERT, refusal("55000", message))),
        }
        // One line in the log, with the size that the session reports, unless the step is shorter than the session's pause.
        let steps = "SELECT regressions, round(extract(epoch FROM largest_regression) / 60, 3) FROM snowflake_clock()";
        let steps = printed(&mut client, steps);
        let (number, minutes) = steps.split_once('|').unwrap();
        assert_eq!(cluster.log().matches("the clock stepped back by").count().to_string(), number);
        let size = format!("the clock stepped back by {minutes} minutes");
        assert!(refused_with.is_none() || cluster.log().contains(&size), "{size}");

        // The call sees the clock again when it waits.
        client.batch_execute("SET pg_snowflake.max_wait = '1h'").unwrap();
        cluster.set_clock(-HOUR / 2.0);
        let pid = backend_pid(&mut client);
        let waiting = spawn(move || take_one(&mut client, INSERT));
        wait_until_it_waits_for_the_clock(&mut cluster.connect(), pid);
        cluster.set_clock(0.0);
        assert!(waiting.join().unwrap() > before);
    }
}

#[test]
fn the_hint_after_an_hour_fast_clock_continues_without_a_repeat() {
    let (cluster, mut client) = server_with_posts();
    let mut ids = vec![take_one(&mut client, INSERT)];
    cluster.set_clock(HOUR);
    ids.push(take_one(&mut client, INSERT));
    cluster.set_clock(0.0);
    assert_refused(&mut client, INSERT, refusal("55000", "server clock stepped back too far"));
    assert_eq!(printed(&mut client, "SELECT forward_jumps, regressions FROM snowflake_clock()"), "1|1");
    assert_eq!(cluster.log().matches("the clock jumped forward by").count(), 1);

    // A session that did not see the clock step sees only the sequence.
    let command = "ALTER DATABASE postgres SET pg_snowflake.max_lead = '";
    let refusal = Refusal { sqlstate: "55000", message: "is too far ahead of the server clock", hint: command };
    let error = assert_refused(&mut cluster.connect(), INSERT, refusal);
    cluster.connect().batch_execute(commands_in(error.hint().unwrap())).unwrap();

    let mut client = cluster.connect();
    for _ in 0..1000 {
        ids.push(take_one(&mut client, INSERT));
    }
    assert!(is_increasing(&ids));
}

#[test]
fn the_hint_names_a_role_whose_own_lead_overrides_that_of_the_database() {
    let (cluster, _) = server_with_posts();
    let sql = "CREATE ROLE app LOGIN; GRANT INSERT, SELECT ON posts TO app; GRANT USAGE ON SEQUENCE posts_id_seq TO app;
        ALTER ROLE app SET pg_snowflake.max_lead = '50ms'";
    run(&mut cluster.connect(), sql);
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
    let (_cluster, mut client) = server_with_posts();
    let before = take_one(&mut client, INSERT);
    take_one(&mut client, "SELECT snowflake_nextval('posts_id_seq', 0, 'mastodon')");

    let hint = "snowflake_convert_column() with the shard and the layout of the column";
    assert_refused(&mut client, INSERT, Refusal { sqlstate: "55000", message: "is too far ahead", hint });
    client.batch_execute("SELECT snowflake_convert_column('posts', 'id', 5, 'postgres')").unwrap();

    let after = take_one(&mut client, INSERT);
    assert!(after > before);
    assert_eq!(split(after).shard, split(before).shard);
}

#[test]
fn the_error_names_the_step_that_the_session_saw() {
    // A lead of 1000 hours is longer than max_lead may be.
    for (step, remedy) in [(HOUR, "SET pg_snowflake.max_lead = '36"), (1000.0 * HOUR, "reconnect")] {
        let (cluster, mut client) = server_with_posts();
        take_one(&mut client, INSERT);
        cluster.set_clock(-step);

        let stepped =
            Refusal { sqlstate: "55000", message: "server clock stepped back too far", hint: "If the clock is wrong, correct it" };
        let error = assert_refused(&mut client, INSERT, stepped);

        assert!(error.hint().unwrap().contains(remedy), "{error:?}");
        let detail = error.detail().unwrap();
        assert!(detail.contains("behind its reading at the last ID of this session"), "{error:?}");
        assert!(detail.contains("pg_snowflake.max_wait"), "{error:?}");
    }
}

#[test]
fn a_session_that_got_no_id_while_the_clock_was_ahead_is_not_stopped_afterwards() {
    let (cluster, mut client) = server_with_posts();
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
    assert_refused(&mut client, INSERT, refusal("55000", "server clock stepped back too far"));
    assert!(take_one(&mut cluster.connect(), INSERT) > first);
}

#[test]
fn a_reset_at_the_moment_of_a_step_back_repeats_no_id() {
    let make_anew = "ALTER TABLE posts ALTER id DROP DEFAULT; DROP SEQUENCE posts_id_seq;
                     CREATE SEQUENCE posts_id_seq;
                     ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5)";
    for reset in
        ["ALTER SEQUENCE posts_id_seq RESTART", "SELECT setval('posts_id_seq', 1, false)", "TRUNCATE posts RESTART IDENTITY", make_anew]
    {
        let (cluster, mut client) = server_with_posts();
        let ids: Vec<i64> = (0..1000).map(|_| take_one(&mut client, INSERT)).collect();
        cluster.set_clock(-0.05);
        client.batch_execute(reset).unwrap();
        assert!(take_one(&mut client, INSERT) > ids[999], "{reset}");

        cluster.set_clock(-HOUR);
        client.batch_execute(reset).unwrap();
        assert_refused(&mut client, INSERT, refusal("55000", "server clock stepped back"));
    }
}

#[test]
fn snowflake_clock_reports_steps_and_jumps() {
    let (cluster, mut client) = server_with_posts();
    let of_clock = |client: &mut Client, columns: &str| {
        printed(client, &format!("SELECT regressions, forward_jumps, high_water_mark - reading, {columns} FROM snowflake_clock()"))
    };
    assert_eq!(of_clock(&mut client, "last_regression, last_forward_jump"), "0|0|00:00:00||");
    take_one(&mut client, INSERT);

    // Less the session's pause, which is less than an hour.
    cluster.set_clock(-10.0 * HOUR);
    // The reading that reports the step is the one that saw it.
    let back = "largest_regression BETWEEN '9 h' AND '10 h', reading - last_regression, last_forward_jump";
    let back = of_clock(&mut client, back);
    assert!(back.starts_with("1|0|09:") && back.ends_with("|t|00:00:00|"), "{back}");

    cluster.set_clock(10.0 * HOUR);
    let forward =
        "largest_forward_jump BETWEEN '19 h' AND '21 h', reading - last_forward_jump, reading - last_regression BETWEEN '19 h' AND '21 h'";
    assert_eq!(of_clock(&mut client, forward), "1|1|00:00:00|t|00:00:00|t");

    // Another session has not seen it.
    assert_eq!(printed(&mut cluster.connect(), "SELECT regressions FROM snowflake_clock()"), "0");
}

#[test]
fn a_clock_before_the_epoch_is_refused_and_takes_nothing() {
    let (cluster, _) = server_with_posts();
    cluster.set_clock((EPOCH_MS - now_ms()) as f64 / 1000.0 - 60.0);
    let mut client = cluster.connect();
    let fresh = state(&mut client, "posts_id_seq");

    let message = "server clock is before the epoch of layout \"postgres\"";
    assert_refused(&mut client, INSERT, Refusal { sqlstate: "55000", message, hint: "Correct the server's clock." });

    assert_eq!(state(&mut client, "posts_id_seq"), fresh);
}

#[test]
fn ids_end_with_an_error_at_the_end_of_the_layout_and_are_never_negative() {
    let (cluster, _) = server_with_posts();
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
    assert_eq!(take_one(&mut client, next), i64::MAX);
    let used_up = refusal("2200H", "has reached the end of layout");
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
