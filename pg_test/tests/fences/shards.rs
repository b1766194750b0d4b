//! `pg_snowflake.owned_shards`.

use super::{GENERATE_FOREIGN, NOT_OWNED, owner_of_shard_5};
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, server};
use pg_snowflake_harness::id::split;
use pg_snowflake_harness::sequence::{take, take_one};
use pg_snowflake_harness::{Cluster, SUPERUSER};

#[test]
fn the_error_names_the_shard_the_fence_and_what_to_do() {
    let cluster = owner_of_shard_5();
    let mut client = cluster.connect();

    let literal = assert_refused(&mut client, GENERATE_FOREIGN, NOT_OWNED);
    assert!(literal.detail().unwrap().contains("pg_snowflake.owned_shards is \"5\""));
    for part in [
        "was restored from a dump",
        "SET DEFAULT snowflake_nextval(..., 5)",
        "LOAD 'pg_snowflake'; ALTER SYSTEM SET pg_snowflake.owned_shards = '5, 6'; SELECT pg_reload_conf();",
    ] {
        assert!(literal.hint().unwrap().contains(part), "{part:?}: {literal:?}");
    }

    client.batch_execute("SET pg_snowflake.shard_id = 6").unwrap();
    let by_setting = assert_refused(&mut client, "SELECT snowflake_nextval('s')", NOT_OWNED);
    let part = "ALTER DATABASE postgres SET pg_snowflake.shard_id = 5;";
    assert!(by_setting.hint().unwrap().contains(part), "{by_setting:?}");
}

#[test]
fn the_hint_sets_the_fence_where_it_is_set() {
    let (cluster, mut client) = server();
    client.batch_execute("CREATE SEQUENCE s; CREATE ROLE \"Writer\" LOGIN SUPERUSER").unwrap();
    let places = [
        ("ALTER DATABASE postgres SET", "ALTER DATABASE postgres RESET ALL"),
        ("ALTER ROLE ALL SET", "ALTER ROLE ALL RESET ALL"),
        ("ALTER ROLE \"Writer\" SET", "ALTER ROLE \"Writer\" RESET ALL"),
        ("ALTER ROLE \"Writer\" IN DATABASE postgres SET", "ALTER ROLE \"Writer\" IN DATABASE postgres RESET ALL"),
    ];
    for (set, reset) in places {
        client.batch_execute(&format!("{set} pg_snowflake.owned_shards = '5'")).unwrap();
        let command = format!("{set} pg_snowflake.owned_shards = '5, 6'; and reconnect");
        let mut writer = cluster.connect_to("Writer", SUPERUSER);
        assert_refused(&mut writer, GENERATE_FOREIGN, Refusal { hint: &command, ..NOT_OWNED });

        client.batch_execute(command.strip_suffix("; and reconnect").unwrap()).unwrap();
        assert_eq!(take(&mut cluster.connect_to("Writer", SUPERUSER), GENERATE_FOREIGN).len(), 1);
        client.batch_execute(reset).unwrap();
    }
}

#[test]
fn a_dump_that_is_restored_on_another_shards_server_generates_no_ids_until_its_default_is_changed() {
    let source = owner_of_shard_5();
    source
        .connect()
        .batch_execute(
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text);
             ALTER SEQUENCE s OWNED BY posts.id;
             ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('s', 5);
             INSERT INTO posts (body) SELECT 'old' FROM generate_series(1, 10)",
        )
        .unwrap();
    let target = Cluster::builder().setting("pg_snowflake.owned_shards", "6").start();
    target.connect().batch_execute("CREATE ROLE writer").unwrap();
    let mut client = target.restored_database("restored", &source.dump("postgres"));

    assert_eq!(printed(&mut client, "SELECT count(*) FROM posts"), "10");
    let insert = "INSERT INTO posts (body) VALUES ('new')";
    let not_owned =
        Refusal { sqlstate: "55000", message: "shard 5 is not owned by this server", hint: "was restored from a dump, change its shard" };
    assert_refused(&mut client, insert, not_owned);
    assert_refused(&mut target.connect_to(SUPERUSER, "restored"), insert, not_owned);

    client.batch_execute("ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('s', 6)").unwrap();
    let id = take_one(&mut client, "INSERT INTO posts (body) VALUES ('new') RETURNING id");
    assert_eq!(split(id).shard, 6);
}
