//! How widely used drivers handle an ID: each reads and writes a bigint column and a snowflake column, by the small programs in `drivers/`.

use pg_snowflake_examples::{client, command, python, run, tcp_client, with_jdbc, with_npm, with_pip};
use pg_snowflake_harness::{Cluster, SUPERUSER};

#[path = "../drivers/rust/read_write.rs"]
mod tokio_postgres_program;

#[test]
fn psycopg_reads_and_writes_both_column_types() {
    let Some(dir) = with_pip("psycopg", "drivers/python") else { return };
    let cluster = cluster_with_tables();
    run(client(&mut python(&dir, "read_write.py"), &cluster));
    assert_both_tables_are_written(&cluster);
}

#[test]
fn node_postgres_reads_and_writes_both_column_types() {
    let Some(dir) = with_npm("node-postgres", "drivers/node") else { return };
    let cluster = cluster_with_tables();
    run(client(command("node", dir.path()).arg("read_write.js"), &cluster));
    assert_both_tables_are_written(&cluster);
}

#[test]
fn a_snowflake_survives_json_and_javascript_and_a_bigint_does_not() {
    let Some(dir) = with_npm("node-postgres", "drivers/node") else { return };
    let cluster = cluster_with_tables();
    let said = run(client(command("node", dir.path()).arg("json.js"), &cluster));
    // The program has checked it. This shows that it came this far.
    assert!(said.contains("bigint 2235219950664999947 as 2235219950665000000"), "{said}");
}

#[test]
fn jdbc_reads_and_writes_both_column_types() {
    let Some(dir) = with_jdbc("drivers/java") else { return };
    let cluster = cluster_with_tables();
    let mut java = command("java", dir.path());
    java.args(["-cp", "package/usr/share/java/postgresql.jar", "ReadWrite.java"]);
    run(tcp_client(&mut java, &cluster));
    assert_both_tables_are_written(&cluster);
}

#[test]
fn tokio_postgres_reads_and_writes_both_column_types() {
    let cluster = cluster_with_tables();
    let mut config = tokio_postgres::Config::new();
    config.host_path(cluster.dir()).user(SUPERUSER).dbname(SUPERUSER);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(tokio_postgres_program::read_and_write(&config))
        .unwrap();
    assert_both_tables_are_written(&cluster);
}

/// A server with the tables that the programs use.
fn cluster_with_tables() -> Cluster {
    let cluster = Cluster::new();
    cluster.psql(SUPERUSER, include_str!("../drivers/schema.sql"));
    cluster
}

/// Checks independently of the program what it wrote: one new ID, of shard 5, and one that it passed itself.
fn assert_both_tables_are_written(cluster: &Cluster) {
    let mut client = cluster.connect();
    for table in ["posts", "notes"] {
        let query = format!(
            "SELECT array_agg(body || ' ' || snowflake_shard_id(id) ORDER BY body),
                    max(id::bigint) FILTER (WHERE body = 'old') FROM {table}"
        );
        let row = client.query_one(&query, &[]).unwrap();
        assert_eq!(row.get::<_, Vec<String>>(0), ["new 5", "old 5"], "{table}");
        assert_eq!(row.get::<_, i64>(1), 2235219950664999947, "{table}");
    }
}
