//! A Citus cluster, all nodes of which generate IDs. It takes some seconds to start, so a test states several facts about one.

use pg_snowflake_harness::citus::{Fleet, TABLES, Way, default_of, rows_and_ids, strangers, while_writing};
use pg_snowflake_harness::installation::has_contrib;
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::prelude::*;

/// The rows of `source`, and what each way of inserting adds on each node.
const ROWS: usize = 600;

/// The shards in the IDs of a column.
fn shards(client: &mut Client, table: &str, column: &str) -> String {
    let shards = format!(
        "SELECT string_agg(shard::text, ',' ORDER BY shard)
         FROM (SELECT DISTINCT snowflake_shard_id({column}) AS shard FROM {table}) AS shards"
    );
    printed(client, &shards)
}

#[test]
fn nodes_generate_different_ids() {
    if !has_contrib("citus", "IDs of all nodes of Citus") {
        return;
    }
    let mut fleet = Fleet::with_tables(2, ROWS);
    each_node_is_the_shard_of_its_group(&fleet);
    ids_of_all_nodes_and_ways_of_inserting_differ(&fleet);
    homed_ids_of_a_worker_are_in_its_own_shards(&fleet);
    workers_generate_the_ids_of_a_column_that_is_added(&fleet);
    ids_of_a_second_column_differ_where_the_rows_stay_on_their_nodes(&fleet);
    a_query_by_id_goes_to_one_shard(&fleet);
    rows_of_a_table_get_their_ids_where_they_are_read(&fleet);
    a_query_by_id_and_shard_goes_to_one_shard(&fleet);
    a_node_is_added_and_gets_shards_while_clients_write(&mut fleet);
}

fn each_node_is_the_shard_of_its_group(fleet: &Fleet) {
    for (node, mut client) in fleet.connections().into_iter().enumerate() {
        let shards =
            "SELECT groupid, snowflake_current_shard(), snowflake_shard_id(snowflake_nextval('public.ids')) FROM pg_dist_local_group";
        assert_eq!(printed(&mut client, shards), format!("{node}|{node}|{node}"));
    }
}

fn ids_of_all_nodes_and_ways_of_inserting_differ(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    for table in TABLES {
        for way in Way::ALL {
            run(&mut coordinator, &format!("TRUNCATE {table}"));
            // The statement that reads a whole table is one on each node.
            let clients = if way == Way::SelectTable { 1 } else { 2 };
            fleet.insert_at_once(way, table, ROWS, clients);
            let rows = (fleet.nodes.len() * ROWS) as i64;
            assert_eq!(rows_and_ids(&mut coordinator, table, "id"), (rows, rows), "{way:?} {table}");
            let generators = if way == Way::SelectTable { "1,2" } else { "0,1,2" };
            assert_eq!(shards(&mut coordinator, table, "id"), generators, "{way:?} {table}");
        }
    }
}

fn homed_ids_of_a_worker_are_in_its_own_shards(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    run(&mut coordinator, "TRUNCATE homed_posts");
    Way::ALL.into_iter().for_each(|way| fleet.insert_at_once(way, "homed_posts", ROWS, 1));
    let of_workers = "snowflake_shard_id(id) > 0";
    assert_eq!(strangers(&mut coordinator, "homed_posts", of_workers), "0");
    let (posts, _) = rows_and_ids(&mut coordinator, "posts", "id");
    let strangers = strangers(&mut coordinator, "posts", of_workers).parse::<i64>().unwrap();
    assert!(strangers > posts / 10, "{strangers} of {posts} other ids are elsewhere");

    let plan = printed(&mut fleet.nodes[1].connect(), "EXPLAIN INSERT INTO homed_posts (body) VALUES ('a post')");
    assert!(plan.contains(&format!("host={} ", fleet.address(1))), "{plan}");
}

fn workers_generate_the_ids_of_a_column_that_is_added(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    for table in TABLES {
        let default = default_of(&mut coordinator, table);
        run(&mut coordinator, &format!("ALTER TABLE {table} ADD COLUMN second bigint DEFAULT {default}"));
        let (rows, ids) = rows_and_ids(&mut coordinator, table, "second");
        assert!(rows > 0 && ids == rows, "{table}: {rows} rows have {ids} ids");
        assert_eq!(shards(&mut coordinator, table, "second"), "1,2", "{table}");
        run(&mut coordinator, &format!("ALTER TABLE {table} DROP COLUMN second"));
    }
}

fn ids_of_a_second_column_differ_where_the_rows_stay_on_their_nodes(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    for table in TABLES {
        let default = default_of(&mut coordinator, table);
        run(&mut coordinator, &format!("CREATE TABLE seconds (id bigint, second bigint DEFAULT {default})"));
        run(&mut coordinator, &format!("SELECT create_distributed_table('seconds', 'id', colocate_with => '{table}')"));
        run(&mut coordinator, &format!("INSERT INTO seconds (id) SELECT id FROM {table}"));
        let (rows, ids) = rows_and_ids(&mut coordinator, "seconds", "second");
        assert!(rows > 0 && ids == rows, "{table}: {rows} rows have {ids} ids");
        run(&mut coordinator, "DROP TABLE seconds");
    }
}

fn a_query_by_id_goes_to_one_shard(fleet: &Fleet) {
    let mut client = fleet.nodes[1].connect();
    let id = printed(&mut client, "INSERT INTO posts (body) VALUES ('found') RETURNING id");
    let query = format!("SELECT body FROM posts WHERE id = {id}");
    assert_eq!(printed(&mut client, &query), "found");
    let plan = printed(&mut client, &format!("EXPLAIN {query}"));
    assert!(plan.contains("Task Count: 1"), "{plan}");
}

fn rows_of_a_table_get_their_ids_where_they_are_read(fleet: &Fleet) {
    let select = Way::SelectTable.statement("posts", 0);
    let plan = printed(&mut fleet.nodes[1].connect(), &format!("EXPLAIN {select}"));
    assert!(plan.contains("INSERT/SELECT method: repartition"), "{plan}");
}

fn a_query_by_id_and_shard_goes_to_one_shard(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    run(&mut coordinator, "CREATE TABLE by_shard (shard int, id bigint, PRIMARY KEY (shard, id), CHECK (shard = snowflake_shard_id(id)))");
    run(&mut coordinator, "SELECT create_distributed_table('by_shard', 'shard')");
    run(&mut coordinator, "INSERT INTO by_shard SELECT snowflake_shard_id(id), id FROM posts");
    let id = printed(&mut coordinator, "SELECT max(id) FROM posts");
    let query = format!("SELECT id FROM by_shard WHERE id = {id} AND shard = snowflake_shard_id({id})");
    assert_eq!(printed(&mut coordinator, &query), id);
    let plan = printed(&mut coordinator, &format!("EXPLAIN {query}"));
    assert!(plan.contains("Task Count: 1"), "{plan}");
    run(&mut coordinator, "DROP TABLE by_shard");
}

fn a_node_is_added_and_gets_shards_while_clients_write(fleet: &mut Fleet) {
    let mut coordinator = fleet.coordinator();
    run(&mut coordinator, "TRUNCATE posts, homed_posts");
    let mut of_before = fleet.nodes[1].connect();
    Way::SingleRows.insert(&mut of_before, "homed_posts", 1);
    let (written, added) = while_writing(fleet, &TABLES, |fleet| {
        let added = fleet.add_node();
        let mut client = fleet.nodes[added].connect();
        TABLES.into_iter().for_each(|table| Way::SingleRows.insert(&mut client, table, 100));
        run(&mut coordinator, "SELECT rebalance_table_shards()");
        added
    });
    let (posts, ids) = rows_and_ids(&mut coordinator, "posts", "id");
    let (homed_posts, homed_ids) = rows_and_ids(&mut coordinator, "homed_posts", "id");
    assert_eq!((ids, homed_ids), (posts, homed_posts));
    assert_eq!(posts + homed_posts, written + 201);
    assert_eq!(shards(&mut coordinator, "posts", "id"), "0,1,2,3");

    let mut of_added = fleet.nodes[added].connect();
    for client in [&mut of_before, &mut of_added] {
        for _ in 0..100 {
            run(client, "INSERT INTO homed_posts (body) VALUES ('after')");
        }
    }
    assert_eq!(strangers(&mut coordinator, "homed_posts", "body = 'after'"), "0");
    let of_it = format!("SELECT count(*) FROM homed_posts WHERE body = 'after' AND snowflake_shard_id(id) = {added}");
    assert_eq!(printed(&mut coordinator, &of_it), "100");
}

#[test]
fn mistakes_are_reported_and_refused() {
    if !has_contrib("citus", "mistakes under Citus") {
        return;
    }
    let mut fleet = Fleet::with_tables(2, ROWS);
    columns_report_the_recipe_without_an_error(&fleet);
    a_row_is_located(&fleet);
    a_sequence_of_citus_is_refused(&fleet);
    a_distributed_table_is_not_converted(&fleet);
    a_constant_number_is_reported_and_repeats_until_a_fence_refuses_it(&fleet);
    a_setting_of_the_database_is_that_of_all_nodes_and_the_hint_sets_one(&fleet);
    a_number_without_a_lease_is_refused(&mut fleet);
}

fn columns_report_the_recipe_without_an_error(fleet: &Fleet) {
    for mut client in fleet.connections() {
        let columns =
            printed(&mut client, "SELECT table_name, sequence, uses_current_shard, error FROM snowflake_columns ORDER BY table_name::text");
        assert_eq!(columns, "homed_posts|ids|t|\nposts|ids|t|");
    }
}

fn a_row_is_located(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    fleet.insert_at_once(Way::SingleRows, "posts", 20, 1);
    let misplaced = "WITH ids AS MATERIALIZED (SELECT id, get_shard_id_for_distribution_column('posts', id) AS shardid FROM posts)
        SELECT count(*), count(*) FILTER (WHERE l.host IS DISTINCT FROM nodename OR l.port::int IS DISTINCT FROM nodeport)
        FROM ids JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid), snowflake_locate('posts', id) AS l";
    assert_eq!(printed(&mut coordinator, misplaced), "60|0");
}

fn a_sequence_of_citus_is_refused(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    for layout in ["instagram", "twitter", "postgres"] {
        run(&mut coordinator, "CREATE SEQUENCE of_citus");
        run(&mut coordinator, &format!("CREATE TABLE wrong (id bigint DEFAULT snowflake_nextval('of_citus', 1, '{layout}'), n int)"));
        run(&mut coordinator, "SELECT create_distributed_table('wrong', 'id')");
        for node in [1, 2] {
            let error = refused(&mut fleet.nodes[node].connect(), "INSERT INTO wrong (n) VALUES (1)");
            let said = format!("{:?} {:?}", error.detail(), error.hint());
            assert!(said.contains("Citus") && said.contains("run_command_on_all_nodes"), "{layout}: {error:?}");
        }
        run(&mut coordinator, "DROP TABLE wrong; DROP SEQUENCE of_citus");
    }
}

fn a_distributed_table_is_not_converted(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    for column in ["bigint", "bigserial", "int", "bigint GENERATED ALWAYS AS IDENTITY"] {
        run(&mut coordinator, &format!("CREATE TABLE old (id {column}, n int)"));
        run(&mut coordinator, "SELECT create_distributed_table('old', 'id')");
        let shape = "SELECT atttypid::regtype, attidentity, pg_get_expr(adbin, adrelid) FROM pg_attribute
                     LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
                     WHERE attrelid = 'old'::regclass AND attnum = 1";
        let before = printed(&mut coordinator, shape);
        let hint = match column {
            "int" => "ALTER TABLE public.old ALTER COLUMN id TYPE bigint, ALTER COLUMN id SET DEFAULT",
            "bigint" | "bigserial" => "ALTER TABLE public.old ALTER COLUMN id SET DEFAULT",
            _ => "Create a new table without IDENTITY",
        };
        let refusal = Refusal { sqlstate: "0A000", message: "which Citus manages", hint };
        assert_refused(&mut coordinator, "SELECT snowflake_convert_column('old', 'id')", refusal);
        assert_eq!(printed(&mut coordinator, shape), before);
        run(&mut coordinator, "DROP TABLE old");
    }
}

fn a_constant_number_is_reported_and_repeats_until_a_fence_refuses_it(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    run(&mut coordinator, "CREATE TABLE constant (n bigint, id bigint DEFAULT snowflake_nextval('public.ids'::text::regclass, 5))");
    run(&mut coordinator, "SELECT create_distributed_table('constant', 'n')");
    let reported = "SELECT error FROM snowflake_columns WHERE table_name = 'constant'::regclass";
    let reported = printed(&mut coordinator, reported);
    assert!(reported.starts_with("shard is the same on every node of Citus"), "{reported}");

    (0..3).for_each(|node| fleet.set(node, "pg_snowflake.max_lead", "2h"));
    let insert = "INSERT INTO constant (n) SELECT n FROM source";
    let add = "ALTER TABLE source ADD COLUMN id bigint DEFAULT snowflake_nextval('public.ids'::text::regclass, 5)";
    for (table, minutes, statement) in [("constant", 60, insert), ("source", 70, add)] {
        // All nodes at the same counter, which the clock does not reach.
        let counter = first_counter_at(now_ms() + minutes * 60_000);
        on_all_nodes(fleet, &format!("SELECT setval('public.ids', {counter})"));
        let mut later = fleet.coordinator();
        run(&mut later, statement);
        let (rows, ids) = rows_and_ids(&mut later, table, "id");
        assert!(rows == ROWS as i64 && ids < rows, "{rows} rows of {table} have {ids} ids");
    }
    run(&mut coordinator, "ALTER TABLE source DROP COLUMN id");

    for node in 0..3 {
        fleet.set(node, "pg_snowflake.owned_shards", &node.to_string());
    }
    assert_refused(&mut fleet.coordinator(), insert, Refusal { sqlstate: "55000", message: "shard 5", hint: "ALTER SYSTEM" });
    fleet.insert_at_once(Way::SelectTable, "posts", 0, 1);
}

fn on_all_nodes(fleet: &Fleet, command: &str) {
    run(&mut fleet.coordinator(), &format!("SELECT run_command_on_all_nodes($${command}$$)"));
}

fn a_setting_of_the_database_is_that_of_all_nodes_and_the_hint_sets_one(fleet: &Fleet) {
    let mut coordinator = fleet.coordinator();
    run(&mut coordinator, "ALTER DATABASE postgres SET pg_snowflake.shard_id = 5");
    for mut client in fleet.connections() {
        assert_eq!(printed(&mut client, "SELECT snowflake_current_shard()"), "5");
    }
    let error = refused(&mut fleet.nodes[1].connect(), "SELECT snowflake_nextval('public.ids')");
    let hint = error.hint().unwrap_or_default();
    assert!(error.message().contains("shard 5"), "{error:?}");
    assert!(hint.contains("ALTER SYSTEM") && !hint.contains("ALTER DATABASE postgres SET"), "{hint}");
    run(&mut coordinator, "ALTER DATABASE postgres RESET pg_snowflake.shard_id");
}

fn a_number_without_a_lease_is_refused(fleet: &mut Fleet) {
    // New storage: below a counter that it has issued, the sequence would go on above that.
    on_all_nodes(fleet, "ALTER SEQUENCE public.ids RESTART");
    let registry = Registry::start();
    for (node, server) in fleet.nodes.iter_mut().enumerate() {
        let mut client = server.connect();
        for set in [
            "RESET pg_snowflake.owned_shards".into(),
            format!("SET pg_snowflake.registry = '{}'", registry.conninfo()),
            format!("SET pg_snowflake.node = 'node-{node}'"),
        ] {
            run(&mut client, &format!("ALTER SYSTEM {set}"));
        }
        drop(client);
        server.restart(Shutdown::Fast);
    }
    for mut client in fleet.connections() {
        first_id(&mut client, "SELECT snowflake_nextval('public.ids')");
    }
    let insert = "INSERT INTO constant (n) SELECT n FROM source";
    let refused = refusal("55000", "no lease for shard 5");
    let mut coordinator = fleet.coordinator();
    assert_refused(&mut coordinator, insert, refused);
    run(&mut coordinator, "TRUNCATE posts");
    Way::SelectTable.insert(&mut coordinator, "posts", 0);
    assert_eq!(rows_and_ids(&mut coordinator, "posts", "id"), (ROWS as i64, ROWS as i64));
}
