//! Many IDs, fast: from several sessions, and from one.
//!
//! The copied formula runs in the same loads, to show that they do detect repeats. Its clock stands still, so that it
//! repeats IDs on a machine of any speed.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::database_with_sequence;
use pg_snowflake_harness::copied;
use pg_snowflake_harness::id::{count_repeats, counter, is_increasing, now_ms, split};
use pg_snowflake_harness::sequence::take_one;
use postgres::Client;

/// The default of `pg_snowflake.max_lead`.
const LEAD_MS: i64 = 100;

#[test]
fn eight_clients_never_share_an_id_and_each_sees_its_ids_increase() {
    let (database, _) = database_with_sequence();

    let by_client = take_from_eight_clients(&database, "snowflake_nextval('s', 5)", 250_000);

    for ids in &by_client {
        assert_eq!(ids.len(), 250_000);
        assert!(is_increasing(ids));
    }
    assert_eq!(count_repeats(by_client.concat()), 0);
}

#[test]
fn eight_clients_of_the_copied_function_share_ids_within_a_millisecond() {
    let (database, _) = database_with_sequence();
    database.connect().batch_execute(&within_a_millisecond(copied::PLPGSQL)).unwrap();

    let by_client = take_from_eight_clients(&database, "copied_nextval('s', 5)", 1000);

    assert!(count_repeats(by_client.concat()) > 0);
}

#[test]
fn two_million_ids_from_one_select_are_distinct_and_increase() {
    let (_database, mut client) = database_with_sequence();

    let tally = tally_of_one_select(&mut client, "snowflake_nextval('s', 5)", 2_000_000);

    assert_eq!(tally, Tally { ids: 2_000_000, distinct: 2_000_000, not_above_the_one_before: 0 });
}

#[test]
fn ids_of_the_copied_formula_from_one_select_repeat_within_a_millisecond() {
    let (_database, mut client) = database_with_sequence();
    client.batch_execute(&within_a_millisecond(copied::SQL)).unwrap();

    let tally = tally_of_one_select(&mut client, "copied_nextval('s', 5)", 10_000);

    assert_eq!(tally.distinct, 1024, "{tally:?}");
    assert!(tally.not_above_the_one_before > 0, "{tally:?}");
}

/// The formula with a clock that stands still.
fn within_a_millisecond(formula: &str) -> String {
    assert!(formula.contains("clock_timestamp()"));
    formula.replace("clock_timestamp()", "timestamptz '2026-01-01'")
}

/// The IDs that eight clients get at the same time, each in transactions of 100 IDs.
fn take_from_eight_clients(database: &Database, generator: &str, ids_per_client: usize) -> Vec<Vec<i64>> {
    let query = format!("SELECT array_agg({generator}) FROM generate_series(1, 100)");
    let take_all = || {
        let mut client = database.connect();
        let statement = client.prepare(&query).unwrap();
        let mut take_100 = |_| client.query_one(&statement, &[]).unwrap().get::<_, Vec<i64>>(0);
        (0..ids_per_client / 100).flat_map(&mut take_100).collect()
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(take_all)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

/// No ID's time is further ahead of the clock than the lead, at any load.
#[test]
fn an_overloaded_sequence_keeps_within_its_lead() {
    let (database, _) = database_with_sequence();
    let overload = || {
        let mut client = database.connect();
        // Each batch is a fifth of a second at the full rate of the layout.
        for _ in 0..5 {
            let last = take_one(&mut client, "SELECT max(id) FROM snowflake_nextvals('s', 5, 200000) AS id");
            let latest = now_ms() + LEAD_MS;
            assert!(split(last).unix_ms <= latest, "{:?}, at the latest {latest}", split(last));
        }
    };
    let first = take_one(&mut database.connect(), "SELECT snowflake_nextval('s', 5)");
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(overload))));
    let last = take_one(&mut database.connect(), "SELECT snowflake_nextval('s', 5)");
    assert!(counter(last) - counter(first) >= 4_000_000);
}

#[derive(Debug, PartialEq, Eq)]
struct Tally {
    ids: i64,
    distinct: i64,
    not_above_the_one_before: i64,
}

/// Counts, in the server, the IDs of one SELECT of this many.
fn tally_of_one_select(client: &mut Client, generator: &str, ids: i32) -> Tally {
    client.batch_execute("SET work_mem = '256MB'; SET jit = off").unwrap();
    let row = client
        .query_one(
            &format!(
                "WITH taken AS MATERIALIZED (
                     SELECT n, {generator} AS id FROM generate_series(1, {ids}) AS n),
                 compared AS (
                     SELECT id, id <= lag(id) OVER (ORDER BY n) AS is_not_above FROM taken)
                 SELECT count(id), count(DISTINCT id), count(*) FILTER (WHERE is_not_above) FROM compared"
            ),
            &[],
        )
        .unwrap();
    Tally { ids: row.get(0), distinct: row.get(1), not_above_the_one_before: row.get(2) }
}
