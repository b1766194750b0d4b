//! `snowflake_create_partitions` and `snowflake_drop_partitions`: the partitions by time of a table that is partitioned by a
//! range of its IDs. What one session shows at a fixed time is in `pg_test/noon`.

mod concurrency;

use pg_snowflake_harness::clock::{server_at_noon, set_to};
use pg_snowflake_harness::prelude::*;

/// The rows of `snowflake_create_partitions`, without their times and without the name of the table.
fn created(client: &mut Client, arguments: &str) -> String {
    outcome(client, "snowflake_create_partitions", arguments)
}

/// The rows of `snowflake_drop_partitions`, in the same way.
fn dropped(client: &mut Client, arguments: &str) -> String {
    outcome(client, "snowflake_drop_partitions", arguments)
}

fn outcome(client: &mut Client, function: &str, arguments: &str) -> String {
    printed(client, &format!("SELECT action, partition, message FROM {function}({arguments})"))
}

/// A table `posts` whose IDs are those of shard 5.
const POSTS: &str = "CREATE SEQUENCE posts_id_seq;
    CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq', 5), body text)
        PARTITION BY RANGE (id);";

#[test]
fn a_clock_years_ahead_makes_nothing_old() {
    let cluster = server_at_noon();
    let mut client = cluster.connect();
    let sql = format!(
        "{POSTS} CREATE TABLE posts_p20260601 PARTITION OF posts
             FOR VALUES FROM (snowflake_min_id('2026-06-01 00:00+00')) TO (snowflake_min_id('2026-11-01 00:00+00'));
         SELECT snowflake_create_partitions('posts', '1 month', 4); INSERT INTO posts DEFAULT VALUES"
    );
    run(&mut client, &sql);
    // Within the partitions that are created ahead, as long as no row has been inserted by that clock.
    set_to(&cluster, "2027-02-15 12:00Z");
    let mut ahead = cluster.connect();
    let found = dropped(&mut ahead, "'posts', '2 months'");
    let is_kept =
        |line: &str| line.starts_with("kept|") && line.contains("is not old compared with the newest ID of the table, of 2026-11-23 12:");
    assert!(found.lines().count() == 2 && found.lines().all(is_kept), "{found}");

    // Beyond them, also if rows have been inserted.
    set_to(&cluster, "2030-02-15 12:00Z");
    let mut ahead = cluster.connect();
    assert_refused(&mut ahead, "SELECT snowflake_drop_partitions('posts', '24 months')", refusal("55000", "would have the IDs of now"));
    created(&mut ahead, "'posts', '1 month', 1");
    run(&mut ahead, "INSERT INTO posts DEFAULT VALUES");
    let found = dropped(&mut ahead, "'posts', '24 months'");
    let gap = "no partition has the IDs from 2027-04-01 00:00:00+00 to 2030-02-01 00:00:00+00";
    assert!(found.lines().count() == 6 && found.lines().all(|line| line.starts_with("kept|") && line.contains(gap)), "{found}");
    assert_eq!(printed(&mut ahead, "SELECT count(*) FROM posts"), "2");

    // Before the epoch.
    set_to(&cluster, "2009-11-23 12:00Z");
    let early = Refusal { sqlstate: "55000", message: "outside the time range of layout \"postgres\"", hint: "clock" };
    assert_refused(&mut cluster.connect(), "SELECT snowflake_create_partitions('posts', '1 day', 1)", early);
}

/// The query of the page, as it stands, and where nothing is created ahead.
#[test]
fn the_monitoring_query_reports_a_missing_partition_in_the_last_2_days_of_a_month() {
    let cluster = server_at_noon();
    run(&mut cluster.connect(), POSTS);
    let page = include_str!("../../docs/partitions.md");
    let query = page.split("```sql").find(|block| block.contains("HAVING")).expect("the query").split("```").next().expect("its end");
    let without = query.replace("'1 month', 1)", "'1 month', 0)");
    let alerts = |time, query: &str| {
        set_to(&cluster, time);
        printed(&mut cluster.connect(), &format!("SET timezone = 'UTC'; {query}"))
    };
    assert_eq!(alerts("2026-11-23 12:00Z", &without), "");
    assert_eq!(alerts("2026-11-28 23:58Z", &without), "");
    assert_eq!(alerts("2026-11-29 00:01Z", &without), "posts|2026-12-01 00:00:00+00|");
    for time in ["2026-11-29 00:01Z", "2026-11-30 23:30Z", "2026-12-01 00:30Z", "2026-12-30 12:00Z"] {
        assert_eq!(alerts(time, query), "", "{time}");
    }
    let sql = "CREATE TABLE posts_default PARTITION OF posts DEFAULT; INSERT INTO posts VALUES (snowflake_min_id('2027-02-15'))";
    run(&mut cluster.connect(), sql);
    let problem = "updated partition constraint for default partition \"posts_default\" would be violated by some row";
    let alert = alerts("2027-01-10 12:00Z", query);
    assert!(alert.starts_with("posts|2027-03-01 00:00:00+00|") && alert.contains(problem), "{alert}");
}
