//! The setting with the shard that a database generates IDs for.

use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::ask::{Refusal, assert_refused, server};
use pg_snowflake_servertest::id::split;
use pg_snowflake_servertest::sequence::take_one;

const TAKE: &str = "SELECT snowflake_nextval('s')";

#[test]
fn the_databases_setting_names_the_shard() {
    let cluster = Cluster::new();
    let mut superuser = cluster.connect();
    superuser
        .batch_execute(
            "CREATE ROLE writer LOGIN; CREATE SEQUENCE s; GRANT USAGE ON SEQUENCE s TO writer",
        )
        .unwrap();

    for shard in [0, 5, 4095] {
        superuser
            .batch_execute(&format!("ALTER DATABASE postgres SET pg_snowflake.shard_id = {shard}"))
            .unwrap();
        let id = take_one(&mut cluster.connect_to("writer", "postgres"), TAKE);
        assert_eq!(split(id).shard, shard);
    }
}

#[test]
fn a_passed_shard_overrides_the_setting() {
    let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "5").start();
    let mut client = cluster.connect();
    client.batch_execute("CREATE SEQUENCE s").unwrap();

    let id = take_one(&mut client, "SELECT snowflake_nextval('s', 6)");

    assert_eq!(split(id).shard, 6);
}

#[test]
fn an_ordinary_user_cannot_change_the_shard() {
    let cluster = Cluster::new();
    cluster.connect().batch_execute("CREATE ROLE writer LOGIN").unwrap();
    let mut writer = cluster.connect_to("writer", "postgres");
    writer.batch_execute("SELECT snowflake_decode(0)").unwrap();

    let denied = Refusal { sqlstate: "42501", message: "pg_snowflake.shard_id", hint: "" };
    assert_refused(&mut writer, "SET pg_snowflake.shard_id = 6", denied);
}

#[test]
fn a_misspelt_setting_is_an_error() {
    let (_cluster, mut client) = server();
    client.batch_execute("SELECT snowflake_decode(0)").unwrap();

    let invalid = Refusal { sqlstate: "42602", message: "pg_snowflake.shard", hint: "" };
    assert_refused(&mut client, "SET pg_snowflake.shard = 6", invalid);
}
