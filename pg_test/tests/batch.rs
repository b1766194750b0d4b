//! `snowflake_nextvals()`: many IDs at the cost of a few, and cursors over them.

use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::process::private_memory_kb;
use std::thread::sleep;
use std::time::Duration;

const TEN_MILLION: i64 = 10_000_000;

/// Row by row, and through a tuplestore, as for a function in FROM.
const FORMS: [&str; 2] = [
    "SELECT count(*) FROM (SELECT snowflake_nextvals('s', 5, 10000000)) AS ids",
    "SELECT count(*) FROM snowflake_nextvals('s', 5, 10000000)",
];

/// Single IDs, batches and homed IDs at the same time, some in the turns of short statements.
#[test]
fn concurrent_sessions_never_repeat_an_id() {
    for cache in [1, 64] {
        let database = Database::new().setting("pg_snowflake.max_lead", "1min");
        database.connect().batch_execute(&format!("CREATE SEQUENCE s CACHE {cache}")).unwrap();
        let queries = [
            "SELECT snowflake_nextval('s', 5)",
            "SELECT snowflake_nextval('s', 5) FROM generate_series(1, 500)",
            "SELECT snowflake_nextvals('s', 5, 500)",
            "SELECT * FROM snowflake_nextvals('s', 5, 5000)",
            "SELECT snowflake_nextvals('s', 5, g) FROM generate_series(1, 30) AS g",
            "SELECT snowflake_nextval_homed('s', 1, 2) FROM generate_series(1, 200)",
            "SELECT snowflake_nextval_homed('s', 1, 2, generators => 4) FROM generate_series(1, 200)",
            "SELECT snowflake_nextvals_homed('s', 1, 2, 200)",
            "SELECT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange) FROM generate_series(1, 200)",
        ];
        let by_client: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let clients = queries.map(|query| {
                let mut client = database.connect();
                scope.spawn(move || (0..100).flat_map(|_| take(&mut client, query)).collect())
            });
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });

        assert!(by_client.iter().all(|ids| is_increasing(ids)), "CACHE {cache}");
        assert_eq!(count_repeats(by_client.concat()), 0, "CACHE {cache}");
    }
}

#[test]
fn ten_million_ids_take_little_memory() {
    for form in FORMS {
        let (database, mut client) = unhurried();
        let pid = backend_pid(&mut client);
        take(&mut client, "SELECT snowflake_nextvals('s', 5, 5000)");
        let before = private_memory_kb(pid);

        // The session outlives its query, so that its process can be inspected.
        let query = std::thread::spawn(move || (take_one(&mut client, form), client));
        let mut highest = before;
        while !query.is_finished() {
            highest = highest.max(private_memory_kb(pid));
            sleep(Duration::from_millis(5));
        }

        let (count, _client) = query.join().unwrap();
        assert_eq!(count, TEN_MILLION);
        // The IDs alone would be 80 MB. A tuplestore takes work_mem, which is 4 MB, and then a file.
        assert!(highest - before < 16 * 1024, "{form}: {before} kB before, {highest} kB meanwhile");
        let spilled = database.log().contains("temporary file: path");
        assert_eq!(spilled, form == FORMS[1], "{form} spilled to disk: {spilled}");
    }
}

#[test]
fn a_batch_can_be_cancelled() {
    // So many that they take minutes: the cancel arrives in time, however late it is.
    for form in FORMS.map(|form| form.replace("10000000", &i32::MAX.to_string())) {
        let (database, mut client) = unhurried();
        let mut other = database.connect();
        let pid = backend_pid(&mut client);
        let first = counter(take_one(&mut client, "SELECT snowflake_nextval('s', 5)"));
        let query = std::thread::spawn(move || client.query_one(&form, &[]).map(|_| ()));
        wait_for(&mut other, &format!("SELECT last_value > {first} FROM s"), "the batch has begun");

        other.execute("SELECT pg_cancel_backend($1)", &[&pid]).unwrap();
        let error = query.join().unwrap().expect_err("the query was cancelled");

        assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{error:?}");
        let taken = state(&mut other, "s").last_value - first;
        assert!(taken < i64::from(i32::MAX), "continued for {taken} ids");
        // What it had taken is used up, and the sequence continues.
        assert!(counter(take_one(&mut other, "SELECT snowflake_nextval('s', 5)")) > first + taken);
    }
}

/// A sequence `s` that may run ahead of the clock, so that the batch and not the clock sets the pace.
fn unhurried() -> (Database, Client) {
    let database = Database::new().setting("pg_snowflake.max_lead", "2h").setting("log_temp_files", "0");
    let mut client = database.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();
    (database, client)
}

/// Each kind of batch, of shard 5 or, for homed IDs by modulus, of its class.
const BATCHES: [&str; 4] = [
    "snowflake_nextvals('s', 5, 1000000)",
    "snowflake_nextvals('s', count => 1000000)",
    "snowflake_nextvals_homed('s', 5, 16, 1000000)",
    "snowflake_nextvals_homed_in_ranges('s', 5, int8multirange '{[-1000000000,1000000000]}', 1000000)",
];

/// Sets a setting of the server, and waits until the session has noticed.
fn reload(cluster: &Cluster, client: &mut Client, setting: &str, value: &str) {
    let mut superuser = cluster.connect();
    run(&mut superuser, "LOAD 'pg_snowflake'");
    reload_with(&mut superuser, &format!("ALTER SYSTEM SET pg_snowflake.{setting} = '{value}'"));
    let show = format!("SHOW pg_snowflake.{setting}");
    assert!(comes_true(|| printed(client, &show) == value), "the reload has no effect");
}

/// A server whose database has shard 5, and whose sequence is ahead of the clock, which then passes no counters that a cursor has fetched.
fn server_of_shard_5() -> (Cluster, Client) {
    let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "5").setting("pg_snowflake.max_lead", "2h").start();
    let mut client = cluster.connect();
    client.batch_execute(&create_ahead()).unwrap();
    (cluster, client)
}

fn create_ahead() -> String {
    format!("CREATE SEQUENCE s START {}", first_counter_at(now_ms() + 3_600_000))
}

/// Opens a cursor over the batch, and fetches a row.
fn open_cursor(client: &mut Client, batch: &str) {
    run(client, &format!("BEGIN; DECLARE ids CURSOR FOR SELECT {batch}; FETCH 1 FROM ids"));
}

/// The SQLSTATE of the next FETCH, which must fail.
fn refusal(client: &mut Client) -> String {
    let error = client.batch_execute("FETCH 1 FROM ids").expect_err("an ID was generated");
    error.code().expect("an error of the server").code().to_owned()
}

#[test]
fn an_open_cursor_generates_no_ids_after_a_reload_that_forbids_them() {
    for (setting, value) in [("owned_shards", "6"), ("allowed_hosts", "no-such-host"), ("registry", "host=/nowhere")] {
        for batch in BATCHES {
            let (cluster, mut client) = server_of_shard_5();
            open_cursor(&mut client, batch);
            reload(&cluster, &mut client, setting, value);
            assert_eq!(refusal(&mut client), "55000", "{batch}, {setting}");
        }
    }
}

#[test]
fn an_open_cursor_generates_no_ids_that_a_new_call_would_not() {
    let (cluster, mut superuser) = server_of_shard_5();
    let sql = "CREATE ROLE writer LOGIN; CREATE ROLE other; GRANT other TO writer;
            CREATE TABLE never_locked (); GRANT SELECT ON never_locked TO PUBLIC";
    superuser.batch_execute(sql).unwrap();
    // What another session does, what this one does, and the SQLSTATE of the next FETCH.
    for (by_other, own, sqlstate) in [
        // The session processes the message when it locks a relation.
        ("REVOKE ALL ON SEQUENCE s FROM writer", "SELECT count(*) FROM never_locked", "42501"),
        ("", "SET LOCAL ROLE other", "42501"),
        ("", "SET TRANSACTION READ ONLY", "25006"),
        ("", "ALTER SEQUENCE s INCREMENT 2", "55000"),
        ("", "DROP SEQUENCE s", "42P01"),
    ] {
        for batch in BATCHES {
            let recreate = ["DROP SEQUENCE IF EXISTS s", &create_ahead()];
            let allow = if by_other.is_empty() { "ALTER SEQUENCE s OWNER TO writer" } else { "GRANT USAGE ON SEQUENCE s TO writer" };
            superuser.batch_execute(&[recreate.as_slice(), &[allow]].concat().join(";")).unwrap();
            let mut client = cluster.connect_to("writer", "postgres");
            open_cursor(&mut client, batch);
            superuser.batch_execute(by_other).unwrap();
            client.batch_execute(own).unwrap();
            assert_eq!(refusal(&mut client), sqlstate, "{batch} after {by_other}{own}");
        }
    }
}

/// Another server may have used them meanwhile.
#[test]
fn counters_fetched_before_a_fence_closed_are_dropped() {
    const CALL: &str = "SELECT snowflake_nextval('s', 5)";
    let call: fn(&mut Client) = |client| run(client, CALL);
    let open: fn(&mut Client) = |client| open_cursor(client, BATCHES[0]);
    for (cache, first, next, fetched) in [(64, call, CALL, 64), (1, open, "FETCH 1 FROM ids", 1024)] {
        let Ahead { cluster, mut client, start } = Ahead::caching(cache);
        first(&mut client);
        assert_eq!(state(&mut client, "s").last_value, start + fetched - 1);
        for owned in ["6", ""] {
            reload(&cluster, &mut client, "owned_shards", owned);
        }
        assert_eq!(counter(take_one(&mut client, next)), start + fetched, "{next}");
    }
}

#[test]
fn a_cursor_drops_the_counters_whose_time_the_clock_has_passed() {
    let database = Database::new().setting("pg_snowflake.shard_id", "5");
    let mut client = database.connect();
    let mut other = database.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();
    for batch in BATCHES {
        open_cursor(&mut client, batch);
        // Later than every counter that was fetched.
        sleep(Duration::from_millis(100));
        let earlier = take_one(&mut other, "SELECT snowflake_nextval('s', 5)");
        assert!(take_one(&mut client, "FETCH 1 FROM ids") > earlier, "{batch}");
        client.batch_execute("COMMIT").unwrap();
    }
}
