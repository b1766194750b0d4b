//! A second router, which has postgres_fdw and no pg_snowflake: PostgreSQL's own hash partitions find rows whose IDs are homed.

use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{printed, run};
use pg_snowflake_harness::fleet::{Fleet, schema};
use pg_snowflake_programs::output::{Claims, say, step};
use pg_snowflake_programs::record::thousands;

/// In each logical shard.
const ROWS: usize = 1_000;

/// Creates a table in each logical shard, and the router; then looks for each row by its ID.
pub fn show(fleet: &Fleet, claims: &mut Claims) {
    step(
        "routing homed IDs without pg_snowflake: PARTITION BY HASH (id) on a router that has postgres_fdw only",
    );
    if fleet.has_leases() {
        say(
            "left out with --leases: homed IDs need the leases of a class, and these servers hold one for each logical shard",
        );
        return;
    }
    let router = Cluster::new();
    let mut client = router.connect();
    run(
        &mut client,
        "DROP EXTENSION pg_snowflake; CREATE EXTENSION postgres_fdw;
         CREATE TABLE events (id bigint NOT NULL, made_in int NOT NULL) PARTITION BY HASH (id)",
    );
    let shards = fleet.shards().len();
    for shard in fleet.shards() {
        let schema = schema(shard);
        let create = format!(
            "CREATE TABLE events (
                 id bigint PRIMARY KEY DEFAULT snowflake_nextval_homed('ids', {shard}, {shards}),
                 made_in int NOT NULL DEFAULT {shard});
             INSERT INTO events SELECT FROM generate_series(1, {ROWS})"
        );
        run(&mut fleet.connect_to_shard(shard), &create);
        let host = fleet.home(shard).dir().display();
        let route = format!(
            "CREATE SERVER {schema} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', dbname 'postgres');
             CREATE USER MAPPING FOR CURRENT_USER SERVER {schema} OPTIONS (user 'postgres');
             CREATE FOREIGN TABLE {schema} PARTITION OF events FOR VALUES WITH (MODULUS {shards}, REMAINDER {shard})
                 SERVER {schema} OPTIONS (schema_name '{schema}', table_name 'events')"
        );
        run(&mut client, &route);
    }
    let rows = (shards * ROWS) as i64;

    // The servers do not know the router's partitions.
    let rows_where_they_were_made = format!(
        "WITH rows AS MATERIALIZED (SELECT id, made_in, tableoid::regclass::text AS name FROM events)
         SELECT count(*) FROM rows
         WHERE name = 'shard_' || made_in AND satisfies_hash_partition('events'::regclass, {shards}, made_in, id)"
    );
    let at_home = printed(&mut client, &rows_where_they_were_made);
    claims.check(
        at_home == rows.to_string(),
        &format!("{at_home} of {} rows are in the partition of their ID's hash", thousands(rows)),
    );

    let ids =
        printed(&mut client, "SELECT string_agg(id::text, ' ') FROM events WHERE id % 10 = 0");
    run(
        &mut client,
        "SET plan_cache_mode = force_generic_plan; PREPARE by_id (bigint) AS SELECT made_in FROM events WHERE id = $1",
    );
    let (mut queries, mut found, mut to_one) = (0, 0, 0);
    for id in ids.split(' ') {
        for query in
            [format!("SELECT made_in FROM events WHERE id = {id}"), format!("EXECUTE by_id ({id})")]
        {
            queries += 1;
            found += usize::from(!printed(&mut client, &query).is_empty());
            let plan = printed(&mut client, &format!("EXPLAIN (VERBOSE, COSTS OFF) {query}"));
            to_one += usize::from(plan.matches("Remote SQL").count() == 1);
        }
    }
    claims.check(
        queries > 0 && (found, to_one) == (queries, queries),
        &format!(
            "of {queries} queries by id, as a constant and as a parameter of a generic plan, {found} find their row, and {to_one} go to \
             one server"
        ),
    );
    // A shard that moves takes all of its tables along.
    fleet.shards().for_each(|shard| run(&mut fleet.connect_to_shard(shard), "DROP TABLE events"));
}
