//! Many IDs, fast.

use pg_snowflake_harness::prelude::*;

/// The default of `pg_snowflake.max_lead`.
const LEAD_MS: i64 = 100;

#[test]
fn two_million_ids_from_one_select_are_distinct_and_increase() {
    let (_database, mut client) = database_with("CREATE SEQUENCE s");
    run(&mut client, "SET work_mem = '256MB'; SET jit = off");
    let tally = "WITH taken AS MATERIALIZED (SELECT n, snowflake_nextval('s', 5) AS id FROM generate_series(1, 2000000) AS n),
            compared AS (SELECT id, id <= lag(id) OVER (ORDER BY n) AS is_not_above FROM taken)
        SELECT count(id), count(DISTINCT id), count(*) FILTER (WHERE is_not_above) FROM compared";
    assert_eq!(printed(&mut client, tally), "2000000|2000000|0");
}

/// No ID's time is further ahead of the clock than the lead, at any load.
#[test]
fn an_overloaded_sequence_keeps_within_its_lead() {
    let (database, _) = database_with("CREATE SEQUENCE s");
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
