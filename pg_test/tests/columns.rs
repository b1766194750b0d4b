//! The view `snowflake_columns` on a standby. It reads the newest ID of a table, to notice another layout: what it must not do for that.

use pg_snowflake_harness::prelude::*;

#[test]
fn a_standby_and_a_read_only_transaction_show_it() {
    let sql = "CREATE SEQUENCE s; CREATE UNLOGGED SEQUENCE u;
            CREATE TABLE posts (a bigint DEFAULT snowflake_nextval('s', 5), b bigint DEFAULT snowflake_nextval('u', 5));
            INSERT INTO posts DEFAULT VALUES";
    let (primary, mut client) = server_with(sql);
    let seen = "SELECT column_name, last_id_at IS NOT NULL FROM snowflake_columns ORDER BY 1";
    let standby = primary.standby();
    assert_eq!(printed(&mut standby.connect(), seen), "a|t\nb|f");
    client.batch_execute("BEGIN READ ONLY").unwrap();
    assert_eq!(printed(&mut client, seen), "a|t\nb|t");
}

#[test]
fn relations_without_rows_of_their_own_are_not_read() {
    let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "5").start();
    let mut client = cluster.connect();
    let sql = "CREATE SEQUENCE s; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w;
        CREATE FOREIGN TABLE elsewhere (id bigint DEFAULT snowflake_nextval('s')) SERVER far;
        CREATE TABLE empty (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'));
        CREATE TABLE narrow (id int PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO narrow VALUES (5);
        CREATE TABLE texts (id text PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO texts VALUES ('4036363106367045632');
        CREATE TABLE typed (id snowflake PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO typed VALUES (4036363106367045632), (4036363106367045633);
        CREATE UNLOGGED TABLE unlogged (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s')); INSERT INTO unlogged TABLE typed;
        CREATE VIEW shown AS SELECT * FROM empty; ALTER VIEW shown ALTER id SET DEFAULT snowflake_nextval('s')";
    run(&mut client, sql);
    let reported = "SELECT string_agg(table_name::text, ' ' ORDER BY table_name::text) FROM snowflake_columns
         WHERE error LIKE 'newest ID%'";
    assert_eq!(printed(&mut client, reported), "typed unlogged");
    assert_eq!(printed(&mut cluster.standby().connect(), reported), "typed");
}
