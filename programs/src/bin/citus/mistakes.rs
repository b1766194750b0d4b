//! Mistakes of users, and the errors that the server reports.

use pg_snowflake_harness::Shutdown;
use pg_snowflake_harness::ask::{printed, run};
use pg_snowflake_harness::citus::{Fleet, Way, rows_and_ids};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_programs::output::{Claims, say, step};
use pg_snowflake_programs::record::thousands;
use postgres::Client;

const CONSTANT: &str = "DEFAULT snowflake_nextval('public.ids'::text::regclass, 5)";

/// The statement that repeats ids: each worker generates IDs for the rows of `source` that it has.
const INSERT: &str = "INSERT INTO constant (n) SELECT n FROM source";

/// Makes each mistake.
pub fn show(fleet: &mut Fleet, claims: &mut Claims) {
    sequence_of_citus(fleet, claims);
    conversion(fleet, claims);
    constant_number(fleet, claims);
    database_setting(fleet, claims);
    owned_shards(fleet, claims);
    leases(fleet, claims);
}

/// A default that names the sequence by a constant makes it one of Citus.
fn sequence_of_citus(fleet: &Fleet, claims: &mut Claims) {
    let mut coordinator = fleet.coordinator();
    for layout in ["postgres", "instagram", "twitter"] {
        let table = format!("of_citus_{layout}");
        let create = format!(
            "CREATE SEQUENCE {table}_ids; CREATE TABLE {table} (id bigint DEFAULT snowflake_nextval('{table}_ids', 1, '{layout}'), n int)"
        );
        step(&create);
        run(&mut coordinator, &create);
        run(&mut coordinator, &format!("SELECT create_distributed_table('{table}', 'id')"));
        for node in 1..=3 {
            say(&format!("on node {node}:"));
            let insert = format!("INSERT INTO {table} (n) VALUES (1)");
            refused(&mut fleet.nodes[node].connect(), &insert, "Citus", claims);
        }
        run(&mut coordinator, &format!("DROP TABLE {table}"));
    }
}

fn conversion(fleet: &Fleet, claims: &mut Claims) {
    let mut coordinator = fleet.coordinator();
    for column in ["bigint", "int", "bigserial", "bigint GENERATED ALWAYS AS IDENTITY"] {
        step(&format!("converting the column `id {column}` of a distributed table"));
        run(&mut coordinator, &format!("CREATE TABLE old (id {column}, n int)"));
        run(&mut coordinator, "SELECT create_distributed_table('old', 'id')");
        refused(&mut coordinator, "SELECT snowflake_convert_column('old', 'id')", "Citus", claims);
        run(&mut coordinator, "DROP TABLE old");
    }
}

fn constant_number(fleet: &Fleet, claims: &mut Claims) {
    let mut coordinator = fleet.coordinator();
    step(&format!("CREATE TABLE constant (n bigint, id bigint {CONSTANT}); {INSERT}"));
    run(&mut coordinator, &format!("CREATE TABLE constant (n bigint, id bigint {CONSTANT})"));
    run(&mut coordinator, "SELECT create_distributed_table('constant', 'n')");
    run(&mut coordinator, INSERT);
    repeats(&mut coordinator, "constant", claims);
    step(&format!("ALTER TABLE source ADD COLUMN id bigint {CONSTANT}"));
    run(&mut coordinator, &format!("ALTER TABLE source ADD COLUMN id bigint {CONSTANT}"));
    repeats(&mut coordinator, "source", claims);
    run(&mut coordinator, "ALTER TABLE source DROP COLUMN id");
    let error = "SELECT table_name, column_name, shard_id, error FROM snowflake_columns WHERE table_name = 'constant'::regclass";
    step(error);
    let error = printed(&mut coordinator, error);
    say(&error);
    claims.check(error.contains("duplicates"), "snowflake_columns reports it");
}

fn repeats(client: &mut Client, table: &str, claims: &mut Claims) {
    let (rows, ids) = rows_and_ids(client, table, "id");
    claims.check(
        ids < rows,
        &format!(
            "IDs repeat without an error: {} rows have {} IDs",
            thousands(rows),
            thousands(ids)
        ),
    );
}

/// Citus repeats the statement on every node.
fn database_setting(fleet: &Fleet, claims: &mut Claims) {
    let mut coordinator = fleet.coordinator();
    let set = "ALTER DATABASE postgres SET pg_snowflake.shard_id = 5";
    step(&format!("{set}, on the coordinator"));
    run(&mut coordinator, set);
    let shards: Vec<String> = fleet
        .connections()
        .iter_mut()
        .map(|client| printed(client, "SELECT snowflake_current_shard()"))
        .collect();
    claims.check(
        shards.iter().all(|shard| shard == "5"),
        &format!("every node generates IDs for it: {}", shards.join(", ")),
    );
    for (node, mut client) in fleet.connections().into_iter().enumerate().skip(1) {
        fleet.set(node, "pg_snowflake.owned_shards", &node.to_string());
        say(&format!("with pg_snowflake.owned_shards = '{node}' on node {node}:"));
        refused(&mut client, "INSERT INTO posts (body) VALUES ('a post')", "shard 5", claims);
    }
    run(&mut coordinator, "ALTER DATABASE postgres RESET pg_snowflake.shard_id");
}

fn owned_shards(fleet: &Fleet, claims: &mut Claims) {
    step(
        "ALTER SYSTEM SET pg_snowflake.owned_shards = '<its group>' on each node, and the constant number again",
    );
    for node in 0..fleet.nodes.len() {
        fleet.set(node, "pg_snowflake.owned_shards", &node.to_string());
    }
    refused(&mut fleet.coordinator(), INSERT, "shard 5", claims);
    recipe_works(fleet, claims);
    for node in 0..fleet.nodes.len() {
        fleet.set(node, "pg_snowflake.owned_shards", "");
    }
}

fn leases(fleet: &mut Fleet, claims: &mut Claims) {
    step("pg_snowflake.registry on each node, and the constant number again");
    let registry = Registry::start();
    for (node, server) in fleet.nodes.iter_mut().enumerate() {
        let mut client = server.connect();
        run(&mut client, "ALTER SYSTEM RESET pg_snowflake.owned_shards");
        for (setting, value) in
            [("registry", registry.conninfo()), ("node", format!("node-{node}"))]
        {
            run(&mut client, &format!("ALTER SYSTEM SET pg_snowflake.{setting} = '{value}'"));
        }
        drop(client);
        server.stop(Shutdown::Fast);
        server.start();
    }
    for mut client in fleet.connections() {
        first_id(&mut client, "SELECT snowflake_nextval('public.ids')");
    }
    refused(&mut fleet.coordinator(), INSERT, "no lease for shard 5", claims);
    let numbers: Vec<String> = fleet
        .connections()
        .iter_mut()
        .map(|client| printed(client, "SELECT snowflake_current_shard()"))
        .collect();
    say(&format!("the registry has assigned shards {}", numbers.join(", ")));
    recipe_works(fleet, claims);
}

fn recipe_works(fleet: &Fleet, claims: &mut Claims) {
    let mut coordinator = fleet.coordinator();
    run(&mut coordinator, "TRUNCATE posts");
    fleet.insert_at_once(Way::SelectTable, "posts", 0, 1);
    let (rows, ids) = rows_and_ids(&mut coordinator, "posts", "id");
    claims.check(
        rows == ids,
        &format!(
            "the recipe generates {} different IDs of {} rows",
            thousands(ids),
            thousands(rows)
        ),
    );
}

/// Prints the error of a statement.
fn refused(client: &mut Client, sql: &str, expected: &str, claims: &mut Claims) {
    let said = match client.simple_query(sql) {
        Ok(_) => "no error".to_owned(),
        Err(error) => match error.as_db_error() {
            Some(error) => {
                let rest = [("DETAIL", error.detail()), ("HINT", error.hint())];
                let rest = rest
                    .iter()
                    .filter_map(|(name, text)| Some(format!("\n{name}: {}", text.as_ref()?)));
                format!("ERROR: {}{}", error.message(), rest.collect::<String>())
            }
            None => format!("{error:?}"),
        },
    };
    say(&said);
    claims.check(said.contains("ERROR") && said.contains(expected), &format!("refused: {sql}"));
}
