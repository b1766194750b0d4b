//! How widely used ORMs handle an ID that a column's default generates, by the programs in `orms/`.
//!
//! Each creates the tables by its own migrations, or by those in SQL, and writes one row, 200 rows at once, a post with two
//! comments, and a row that has its ID. The programs check what they get, and the tests here what reached the server.

use pg_snowflake_examples::{client, command, python, run, with_npm, with_pip};
use pg_snowflake_harness::ask::run as run_sql;
use pg_snowflake_harness::prelude::*;
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use std::path::Path;

#[path = "../orms/sqlx/blog.rs"]
mod sqlx_program;

#[test]
fn sqlalchemy_gets_its_ids_from_the_insert() {
    let Some(dir) = with_pip("SQLAlchemy", "orms/sqlalchemy") else { return };
    let cluster = cluster_that_logs_statements();
    run(client(&mut python(&dir, "blog.py"), &cluster));
    let statements = [
        "insert into posts (body) values ($1::varchar) returning posts.id",
        "insert into posts (body) select p0::varchar from (… returning posts.id, posts.id as id__1",
        "insert into posts (body) values ($1::varchar) returning posts.id",
        "insert into comments (post_id, body) select p0::bi… returning comments.id, comments.id as id__1",
        "insert into posts (id, body) values ($1::bigint, $2::varchar)",
    ];
    assert_written_by(&cluster, &statements);
}

#[test]
fn django_gets_its_ids_from_the_insert() {
    let Some(dir) = with_pip("Django", "orms/django") else { return };
    let cluster = cluster_that_logs_statements();
    run(client(&mut python(&dir, "main.py"), &cluster));
    let statements = [
        "insert into posts (id, body) values (default, 'first') returning posts.id",
        "insert into posts (id, body) values (default, 'bul… returning posts.id",
        "insert into posts (id, body) values (default, 'parent') returning posts.id",
        "insert into comments (id, post_id, body) values (d… returning comments.id",
        // The column that was an identity column. No sequence is passed to setval.
        "insert into tags (body) values ('one') returning tags.id",
        "insert into tags (body) select * from unnest(('{two,three}')::text[]) returning tags.id",
        "insert into tags (body) values ('four') returning tags.id",
        "insert into posts (id, body) values (1896919282483208199, 'imported') returning posts.id",
    ];
    assert_written_by(&cluster, &statements);
}

#[test]
fn sequelize_gets_its_ids_from_the_insert() {
    let Some(dir) = with_npm("Sequelize", "orms/sequelize") else { return };
    let cluster = cluster_that_logs_statements();
    run(client(command("node", dir.path()).arg("blog.js"), &cluster));
    let statements = [
        "insert into posts (id,body) values (default,$1) returning id,body;",
        "insert into posts (id,body) values (default,'bulk … returning id,body;",
        "insert into posts (id,body) values (default,$1) returning id,body;",
        "2 times insert into comments (id,body,post_id) values (default,$1,$2) returning id,body,post_id;",
        "insert into posts (id,body) values ($1,$2) returning id,body;",
    ];
    assert_written_by(&cluster, &statements);
}

/// `drizzle-kit push` drops what the schema lacks from `public`.
#[test]
fn drizzle_kit_leaves_an_extension_in_its_own_schema_alone() {
    let Some(dir) = with_npm("Drizzle", "orms/drizzle") else { return };
    let cluster = Cluster::new();
    let push = || {
        let mut kit = command("node_modules/.bin/drizzle-kit", dir.path());
        run(client(kit.args(["push", "--verbose", "--force"]), &cluster))
    };
    let in_public = push();
    assert!(in_public.contains("DROP VIEW \"public\".\"snowflake_columns\""), "{in_public}");

    let schema = "CREATE SCHEMA snowflake;
        ALTER EXTENSION pg_snowflake SET SCHEMA snowflake;
        ALTER DATABASE postgres SET search_path = \"$user\", public, snowflake";
    cluster.psql(SUPERUSER, schema);
    for _ in 0..2 {
        let in_its_own = push();
        assert!(!in_its_own.contains("DROP"), "{in_its_own}");
    }
    assert!(push().contains("No changes detected"));
    run(client(command("node", dir.path()).arg("blog.js"), &cluster));
    cluster.psql(SUPERUSER, "ALTER SEQUENCE posts_id_seq OWNED BY posts.id");
    std::fs::write(dir.path().join("schema.js"), include_str!("../orms/drizzle/schema.js").replace(SEQUENCE, "")).unwrap();
    assert!(push().contains("No changes detected"));
}

/// The sequence in Drizzle's schema, which must not be there if a column owns the sequence.
const SEQUENCE: &str = "exports.postsIdSeq = pgSequence('posts_id_seq');\n";

#[test]
fn typeorm_keeps_the_default_of_a_converted_column() {
    let Some(dir) = with_npm("TypeORM", "orms/typeorm") else { return };
    let (cluster, mut session) = server();
    run_sql(&mut session, "CREATE TABLE posts (id bigserial PRIMARY KEY, body text); SELECT snowflake_convert_column('posts', 'id', 5)");
    run(client(command("node", dir.path()).arg("blog.js"), &cluster));
    let of_shard = "SELECT string_agg(body, ' ' ORDER BY id) FROM posts WHERE snowflake_shard_id(id) = 5 AND id > 1::bigint << 60";
    assert_eq!(printed(&mut session, of_shard), "one two");
    assert_eq!(printed(&mut session, "SELECT shard_id, error FROM snowflake_columns"), "5|");
}

#[test]
fn sqlx_gets_its_ids_from_the_insert() {
    let cluster = cluster_that_logs_statements();
    let options = PgConnectOptions::new_without_pgpass().socket(cluster.dir()).username(SUPERUSER);
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("orms/migrations");
    let program = async {
        let mut connection = PgConnection::connect_with(&options).await?;
        sqlx_program::blog(&mut connection, &migrations).await?;
        connection.close().await
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(program).unwrap();
    let statements = [
        "insert into posts (body) values ($1) returning id, body",
        "insert into posts (body) select body from unnest($… returning id, body",
        "insert into posts (body) values ($1) returning id",
        "2 times insert into comments (post_id, body) values ($1, $2) returning id, post_id, body",
        "insert into posts (id, body) values ($1, 'imported')",
    ];
    assert_written_by(&cluster, &statements);
}

fn cluster_that_logs_statements() -> Cluster {
    Cluster::builder().setting("log_statement", "all").start()
}

/// Checks independently of the program what it wrote: all its rows in the order in which it wrote them, with IDs that the
/// tables' defaults generated for shard 5, by these statements.
fn assert_written_by(cluster: &Cluster, statements: &[&str]) {
    let mut client = cluster.connect();
    let bodies = "SELECT body FROM posts WHERE snowflake_shard_id(id) = 5 ORDER BY id";
    let bulk: String = (0..200).map(|i| format!("bulk {i}\n")).collect();
    assert_eq!(printed(&mut client, bodies), format!("imported\nfirst\n{bulk}parent"));

    let comments =
        "SELECT c.body, p.body FROM comments c JOIN posts p ON p.id = c.post_id WHERE snowflake_shard_id(c.id) = 5 ORDER BY c.id";
    assert_eq!(printed(&mut client, comments), "one|parent\ntwo|parent");

    let columns = "SELECT attrelid::regclass, atttypid::regtype, pg_get_expr(adbin, adrelid)
        FROM pg_attribute JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE attname = 'id' AND attrelid IN ('posts'::regclass, 'comments'::regclass) ORDER BY attrelid::regclass::text";
    assert_eq!(
        printed(&mut client, columns),
        "comments|snowflake|snowflake_nextval('comments_id_seq'::regclass, 5)\nposts|bigint|snowflake_nextval('posts_id_seq'::regclass, 5)"
    );
    assert_eq!(statements_with_ids(cluster), statements);
}

/// The statements that wrote rows or used a sequence, in order and shortened. Consecutive repeats are counted.
///
/// DDL and the ORMs' own tables of migrations are left out.
fn statements_with_ids(cluster: &Cluster) -> Vec<String> {
    let log = statements(&cluster.log());
    let statements: Vec<String> = log
        .iter()
        .map(|statement| statement.to_lowercase().replace('"', ""))
        .filter(|statement| writes_rows_or_asks_a_sequence(statement))
        .map(|statement| in_short(&statement))
        .collect();
    statements
        .chunk_by(|a, b| a == b)
        .map(|same| match same {
            [once] => once.clone(),
            several => format!("{} times {}", several.len(), several[0]),
        })
        .collect()
}

fn writes_rows_or_asks_a_sequence(statement: &str) -> bool {
    const WORDS: [&str; 4] = ["insert ", "nextval", "currval", "lastval"];
    WORDS.iter().any(|word| statement.contains(word))
        && !statement.contains("create ")
        && !statement.starts_with("alter ")
        && !statement.contains("migrations")
}

fn statements(log: &str) -> Vec<String> {
    // The lines of a statement but its first start with a tab.
    let entries = log.replace("\n\t", " ");
    entries
        .lines()
        .filter_map(|line| {
            let (_, entry) = line.split_once("LOG:  ")?;
            let (kind, statement) = entry.split_once(": ")?;
            let is_statement = kind == "statement" || kind.starts_with("execute ");
            is_statement.then(|| statement.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// A long statement is cut to its beginning and its RETURNING clause.
fn in_short(statement: &str) -> String {
    const LONG: usize = 100;
    const BEGINNING: usize = 50;
    if statement.len() < LONG {
        return statement.to_owned();
    }
    let returning = statement.find(" returning ").map_or("", |start| &statement[start..]);
    format!("{}…{returning}", &statement[..BEGINNING])
}
