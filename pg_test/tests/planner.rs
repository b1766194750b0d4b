//! Conditions on IDs in queries on other servers.

use pg_snowflake_harness::installation::has_contrib;
use pg_snowflake_harness::prelude::*;

#[test]
fn conditions_are_evaluated_by_the_foreign_server() {
    if !has_contrib("postgres_fdw", "conditions sent to a foreign server") {
        return;
    }
    let (cluster, mut client) = server();
    let sql = format!(
        "CREATE TABLE posts (id bigint PRIMARY KEY);
         INSERT INTO posts SELECT snowflake_encode(timestamptz '2024-01-01' + interval '50 min' * n, n % 100, n % 32, 'js53')
             FROM generate_series(1, 10000) AS n;
         ANALYZE posts; CREATE EXTENSION postgres_fdw;
         CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host '{}', dbname 'postgres', extensions 'pg_snowflake');
         CREATE USER MAPPING FOR postgres SERVER loopback OPTIONS (user 'postgres');
         CREATE FOREIGN TABLE there (id bigint) SERVER loopback OPTIONS (table_name 'posts');
         CREATE TABLE typed AS SELECT id::snowflake, 'js53'::snowflake_layout AS layout FROM posts;
         CREATE FOREIGN TABLE typed_there (id snowflake, layout snowflake_layout)
             SERVER loopback OPTIONS (table_name 'typed')",
        cluster.dir().display()
    );
    run(&mut client, &sql);
    let cases = [
        ("there", "snowflake_shard_id(id, 'js53') = 5", "WHERE ((public.snowflake_shard_id(id, "),
        ("there", "snowflake_created_at(id, 'js53') < '2024-01-05'", "WHERE ((public.snowflake_created_at(id, "),
        ("there", "snowflake_to_uuid(id, 'js53') > '018d0000-0000-7000-8000-000000000000'", "snowflake_to_uuid(id, "),
        // Folded to a range here.
        ("there", "snowflake_between(id, '2024-01-05', '2024-01-06', 'js53')", "WHERE ((id >= "),
        ("typed_there", "id > 5", "WHERE ((id > 5))"),
        ("typed_there", "layout = 'js53'", "WHERE ((layout OPERATOR(public.=) 'js53'"),
        ("typed_there", "snowflake_seq(id, layout) = 5", "public.snowflake_seq(id, layout)"),
    ];
    for (table, condition, sent) in cases {
        let plan = printed(&mut client, &format!("EXPLAIN (VERBOSE) SELECT id FROM {table} WHERE {condition}"));
        let remote = plan.lines().find(|line| line.contains("Remote SQL")).unwrap_or_default();
        assert!(remote.contains(sent) && !plan.contains("Filter"), "{condition}:\n{plan}");
        let count = |client: &mut Client, table: &str| printed(client, &format!("SELECT count(*), sum(id) FROM {table} WHERE {condition}"));
        let here = if table == "there" { "posts" } else { "typed" };
        assert_eq!(count(&mut client, table), count(&mut client, here), "{condition}");
    }
}
