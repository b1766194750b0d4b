//! How the planner uses the functions: index ranges, pruned partitions, estimates, and queries on other servers.

use pg_snowflake_harness::ask::{Refusal, assert_refused, database, plan, printed, server};
use pg_snowflake_harness::installation::has_contrib;
use postgres::Client;

/// A table `posts` of this many IDs at regular intervals from the beginning of 2024, twice as dense at the end.
fn fill(client: &mut Client, rows: i64, layout: &str) {
    client
        .batch_execute(&format!(
            "CREATE TABLE posts (id bigint);
             INSERT INTO posts SELECT snowflake_encode(
                 timestamptz '2024-01-01' + interval '366 days' * (x * (1.5 - x / 2)), g % 100, g % 32, '{layout}')
             FROM generate_series(1, {rows}) AS g, LATERAL (SELECT g::float8 / {rows} AS x) AS spread;
             ALTER TABLE posts ADD PRIMARY KEY (id);
             ANALYZE posts"
        ))
        .unwrap();
}

#[test]
fn a_time_range_is_a_range_of_the_primary_key() {
    let (_database, mut client) = database();
    for layout in ["postgres", "sonyflake", "js53"] {
        client
            .batch_execute("DROP TABLE IF EXISTS posts; SET plan_cache_mode = force_generic_plan")
            .unwrap();
        fill(&mut client, 10_000, layout);
        let both = "Index Cond: ((id >= '";
        let cases = [
            (format!("snowflake_between(id, '2024-03-01', '2024-03-02', '{layout}')"), both),
            (
                format!(
                    "id >= snowflake_min_id('2024-03-01', '{layout}') AND id < snowflake_min_id('2024-03-02', '{layout}')"
                ),
                both,
            ),
            (format!("id >= snowflake_min_id('2024-12-30', '{layout}')"), "Index Cond: (id >= '"),
            (
                format!("snowflake_between(id, now() - interval '1 hour', 'infinity', '{layout}')"),
                "Index Cond: ((id >= snowflake_min_id((now() - ",
            ),
        ];
        for (condition, expected) in cases {
            let plan = plan(&mut client, &format!("SELECT * FROM posts WHERE {condition}"));
            assert!(plan.contains(expected) && plan.contains("posts_pkey"), "{condition}:\n{plan}");
            assert!(!plan.contains("Filter"), "{condition}:\n{plan}");
        }
        client
            .batch_execute(&format!(
                "DEALLOCATE ALL; PREPARE span (timestamptz, timestamptz) AS
                 SELECT * FROM posts WHERE snowflake_between(id, $1, $2, '{layout}')"
            ))
            .unwrap();
        let generic = plan(&mut client, "EXECUTE span ('2024-03-01', '2024-03-02')");
        assert!(generic.contains("Index Cond: ((id >= snowflake_min_id($1, "), "{generic}");
        assert!(!generic.contains("Filter"), "{generic}");
    }
}

#[test]
fn estimates_are_within_a_fifth_of_a_million_rows() {
    let (_database, mut client) = database();
    fill(&mut client, 1_000_000, "postgres");
    // The default statistics target, and ten times as much for a day.
    let spans = [
        (100, "'2024-01-10'", "'2024-01-17'"),
        (100, "'2024-07-01'", "'2024-08-01'"),
        (100, "'2024-01-01'", "'2024-07-01'"),
        (100, "'2024-11-15'", "'2024-12-15'"),
        (100, "'2024-02-01'", "'infinity'"),
        (100, "'-infinity'", "'2024-02-01'"),
        (1000, "'2024-07-01'", "'2024-07-02'"),
        (1000, "'2024-12-24'", "'2024-12-25'"),
    ];
    let mut target = 100;
    for (statistics, since, until) in spans {
        if statistics != target {
            target = statistics;
            client
                .batch_execute(&format!(
                    "ALTER TABLE posts ALTER id SET STATISTICS {statistics}; ANALYZE posts"
                ))
                .unwrap();
        }
        for condition in [
            format!("snowflake_between(id, {since}, {until})"),
            format!("id >= snowflake_min_id({since}) AND id < snowflake_min_id({until})"),
        ] {
            let estimate =
                estimated_rows(&mut client, &format!("SELECT * FROM posts WHERE {condition}"));
            let count =
                printed(&mut client, &format!("SELECT count(*) FROM posts WHERE {condition}"));
            let ratio = estimate / count.parse::<f64>().unwrap();
            println!("{condition}: estimate {estimate}, count {count}, ratio {ratio:.3}");
            assert!((0.8..=1.2).contains(&ratio), "{condition}: {estimate} for {count}");
        }
    }
}

/// How many rows the planner expects of a query.
fn estimated_rows(client: &mut Client, query: &str) -> f64 {
    let plan = printed(client, &format!("EXPLAIN (FORMAT JSON) {query}"));
    let (_, rows) = plan.split_once("\"Plan Rows\": ").expect("the plan has an estimate");
    let (rows, _) = rows.split_once(',').expect("more follows");
    rows.parse().unwrap()
}

/// A table `posts` with a partition for each month of 2024, and a thousand IDs in each.
fn months(client: &mut Client) {
    client
        .batch_execute("CREATE TABLE posts (id bigint PRIMARY KEY) PARTITION BY RANGE (id)")
        .unwrap();
    for month in 1..=12 {
        client
            .batch_execute(&format!(
                "CREATE TABLE posts_{month:02} PARTITION OF posts FOR VALUES
                     FROM (snowflake_min_id('2024-{month:02}-01', 'twitter'))
                     TO (snowflake_min_id('2024-{month:02}-01'::timestamptz + interval '1 month', 'twitter'));
                 INSERT INTO posts SELECT snowflake_encode(
                     timestamptz '2024-{month:02}-01' + interval '28 days' * g / 1000, g, g, 'twitter')
                 FROM generate_series(0, 999) AS g"
            ))
            .unwrap();
    }
    client.batch_execute("ANALYZE posts").unwrap();
}

#[test]
fn a_partition_bound_may_be_an_instant_and_the_ids_land_in_their_months() {
    let (_database, mut client) = database();
    months(&mut client);
    let per_month = "SELECT count(*), count(DISTINCT right(tableoid::regclass::text, 2)::int)
                     FROM posts WHERE extract(month FROM snowflake_created_at(id, 'twitter'))
                         = right(tableoid::regclass::text, 2)::int";
    assert_eq!(printed(&mut client, per_month), "12000|12");
}

#[test]
fn constants_prune_partitions_when_the_query_is_planned() {
    let (_database, mut client) = database();
    months(&mut client);
    let cases: [(&str, &[i32]); 5] = [
        ("snowflake_between(id, '2024-03-05', '2024-03-06', 'twitter')", &[3]),
        ("snowflake_between(id, '2024-03-05', '2024-04-01', 'twitter')", &[3]),
        ("snowflake_between(id, '2024-03-05', '2024-04-01 00:00:00.001', 'twitter')", &[3, 4]),
        ("id >= snowflake_min_id('2024-11-30', 'twitter')", &[11, 12]),
        ("id < snowflake_min_id('2024-02-01', 'twitter')", &[1]),
    ];
    for (condition, months) in cases {
        let plan = plan(&mut client, &format!("SELECT * FROM posts WHERE {condition}"));
        let scanned: Vec<i32> =
            (1..=12).filter(|month| plan.contains(&format!("on posts_{month:02}"))).collect();
        assert_eq!(scanned, months, "{condition}:\n{plan}");
        assert!(!plan.contains("Subplans Removed"), "{plan}");
    }
}

#[test]
fn parameters_prune_partitions_when_the_query_runs() {
    let (_database, mut client) = database();
    months(&mut client);
    client
        .batch_execute(
            "SET plan_cache_mode = force_generic_plan;
             PREPARE span (timestamptz, timestamptz) AS
                 SELECT * FROM posts WHERE snowflake_between(id, $1, $2, 'twitter');
             PREPARE since (timestamptz) AS SELECT * FROM posts WHERE id >= snowflake_min_id($1, 'twitter')",
        )
        .unwrap();
    let cases = [
        ("EXECUTE span ('2024-03-05', '2024-03-06')", 11),
        ("EXECUTE span ('2024-03-05', '2024-04-02')", 10),
        ("EXECUTE since ('2024-11-30')", 10),
        (
            "SELECT * FROM posts WHERE snowflake_between(id, now() - interval '1 hour', now(), 'twitter')",
            12,
        ),
    ];
    for (sql, removed) in cases {
        let plan = plan(&mut client, sql);
        let expected = format!("Subplans Removed: {removed}");
        assert!(plan.lines().any(|line| line.trim() == expected), "{sql}:\n{plan}");
    }
}

#[test]
fn a_check_holds_ids_to_their_shard_and_a_generated_column_shows_their_time() {
    let (_database, mut client) = database();
    client
        .batch_execute(
            "CREATE SEQUENCE s;
             CREATE TABLE posts (
                 id bigint PRIMARY KEY CHECK (snowflake_shard_id(id, 'twitter') = 5),
                 written timestamptz GENERATED ALWAYS AS (snowflake_created_at(id, 'twitter')) STORED,
                 token text GENERATED ALWAYS AS (snowflake_to_base32(id)) STORED,
                 uuid uuid GENERATED ALWAYS AS (snowflake_to_uuid(id, 'twitter')) STORED,
                 spell text GENERATED ALWAYS AS (snowflake_explain(id, 'twitter')) STORED,
                 recent boolean GENERATED ALWAYS AS (snowflake_between(id, '2024-01-01', 'infinity', 'twitter')) STORED);
             INSERT INTO posts VALUES (snowflake_encode('2024-02-03 04:05:06.007', 5, 1, 'twitter'))",
        )
        .unwrap();
    let shown = "SELECT written, snowflake_from_base32(token) = id, snowflake_from_uuid(uuid, 'twitter') = id,
                     spell LIKE '%2024-02-03T04:05:06.007Z%', recent FROM posts";
    assert_eq!(printed(&mut client, shown), "2024-02-03 04:05:06.007+00|t|t|t|t");
    let refusal = Refusal { sqlstate: "23514", message: "check constraint", hint: "" };
    assert_refused(
        &mut client,
        "INSERT INTO posts VALUES (snowflake_nextval('s', 6, 'twitter'))",
        refusal,
    );
}

#[test]
fn an_index_on_a_field_is_used() {
    let (_database, mut client) = database();
    fill(&mut client, 10_000, "postgres");
    client
        .batch_execute(
            "CREATE INDEX by_shard ON posts (snowflake_shard_id(id));
             CREATE INDEX by_seq ON posts (snowflake_seq(id, 'twitter'));
             CREATE INDEX by_time ON posts (snowflake_created_at(id));
             CREATE INDEX by_token ON posts (snowflake_to_base32(id));
             CREATE INDEX by_uuid ON posts (snowflake_to_uuid(id));
             CREATE INDEX partial ON posts (id) WHERE snowflake_shard_id(id) = 7;
             ANALYZE posts",
        )
        .unwrap();
    let cases = [
        ("snowflake_shard_id(id) = 5", "by_shard"),
        ("snowflake_seq(id, 'twitter') = 5", "by_seq"),
        ("snowflake_created_at(id) < '2024-01-02'", "by_time"),
        ("snowflake_to_base32(id) = '0000000000000'", "by_token"),
        ("snowflake_to_uuid(id) = '00000000-0000-0000-0000-000000000000'", "by_uuid"),
    ];
    for (condition, index) in cases {
        let plan = plan(&mut client, &format!("SELECT * FROM posts WHERE {condition}"));
        assert!(
            plan.contains(&format!(" {index}\n")) || plan.contains(&format!(" {index} ")),
            "{plan}"
        );
        assert!(plan.contains("Index Cond"), "{plan}");
    }
    let rows = printed(&mut client, "SELECT count(*) FROM posts WHERE snowflake_shard_id(id) = 5");
    assert_eq!(rows, "100");
    // Another layout is another expression.
    let other =
        plan(&mut client, "SELECT * FROM posts WHERE snowflake_shard_id(id, 'twitter') = 5");
    assert!(!other.contains("by_shard"), "{other}");
}

#[test]
fn conditions_are_evaluated_by_the_foreign_server() {
    if !has_contrib("postgres_fdw", "conditions sent to a foreign server") {
        return;
    }
    let (cluster, mut client) = server();
    fill(&mut client, 10_000, "js53");
    client
        .batch_execute(&format!(
            "CREATE EXTENSION postgres_fdw;
             CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw
                 OPTIONS (host '{}', dbname 'postgres', extensions 'pg_snowflake');
             CREATE USER MAPPING FOR postgres SERVER loopback OPTIONS (user 'postgres');
             CREATE FOREIGN TABLE there (id bigint) SERVER loopback OPTIONS (table_name 'posts');
             CREATE TABLE typed AS SELECT id::snowflake, 'js53'::snowflake_layout AS layout FROM posts;
             CREATE FOREIGN TABLE typed_there (id snowflake, layout snowflake_layout)
                 SERVER loopback OPTIONS (table_name 'typed')",
            cluster.dir().display()
        ))
        .unwrap();
    let shard = "snowflake_shard_id(id, 'js53') = 5";
    let cases = [
        ("there", shard, "WHERE ((public.snowflake_shard_id(id, "),
        (
            "there",
            "snowflake_created_at(id, 'js53') < '2024-01-05'",
            "WHERE ((public.snowflake_created_at(id, ",
        ),
        (
            "there",
            "snowflake_to_uuid(id, 'js53') > '018d0000-0000-7000-8000-000000000000'",
            "snowflake_to_uuid(id, ",
        ),
        // Folded to a range here.
        ("there", "snowflake_between(id, '2024-01-05', '2024-01-06', 'js53')", "WHERE ((id >= "),
        ("typed_there", "id > 5", "WHERE ((id > 5))"),
        ("typed_there", "layout = 'js53'", "WHERE ((layout OPERATOR(public.=) 'js53'"),
        ("typed_there", "snowflake_seq(id, layout) = 5", "public.snowflake_seq(id, layout)"),
    ];
    for (table, condition, sent) in cases {
        let plan = printed(
            &mut client,
            &format!("EXPLAIN (VERBOSE) SELECT id FROM {table} WHERE {condition}"),
        );
        let remote = plan.lines().find(|line| line.contains("Remote SQL")).unwrap_or_default();
        assert!(remote.contains(sent) && !plan.contains("Filter"), "{condition}:\n{plan}");
        let count = |client: &mut Client, table: &str| {
            printed(client, &format!("SELECT count(*), sum(id) FROM {table} WHERE {condition}"))
        };
        let here = if table == "there" { "posts" } else { "typed" };
        assert_eq!(count(&mut client, table), count(&mut client, here), "{condition}");
    }
}
