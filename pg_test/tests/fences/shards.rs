//! `pg_snowflake.owned_shards`.

use super::{GENERATE_FOREIGN, GENERATE_OWN, NOT_OWNED, owner_of_shard_5};
use pg_snowflake_harness::ask::{
    Refusal, assert_refused, database, database_with_sequence, printed, refused, server,
};
use pg_snowflake_harness::id::split;
use pg_snowflake_harness::sequence::{take, take_one};
use pg_snowflake_harness::{Cluster, SUPERUSER};
use pg_snowflake_ids::PRESETS;
use postgres::Client;

#[test]
fn exactly_the_owned_shards_are_generated() {
    let (_database, mut client) = database_with_sequence();
    let cases: [(&str, &[i32], &[i32]); 6] = [
        ("", &[0, 5, 4095], &[]),
        ("5", &[5], &[0, 4, 6, 4095]),
        ("0", &[0], &[1]),
        ("0-127,300", &[0, 1, 127, 300], &[128, 299, 301]),
        ("300, 0-127", &[0, 127, 300], &[128]),
        ("4095-2147483647", &[4095], &[4094]),
    ];
    for (owned, own, foreign) in cases {
        client.batch_execute(&format!("SET pg_snowflake.owned_shards = '{owned}'")).unwrap();
        for &shard in own {
            for query in ways_to_generate(&mut client, shard) {
                let id = take_one(&mut client, &query);
                assert_eq!(split(id).shard, i64::from(shard), "{owned:?}: {query}");
            }
        }
        for &shard in foreign {
            let message = &format!("shard {shard} is not owned by this server");
            for query in ways_to_generate(&mut client, shard) {
                let not_owned = Refusal { sqlstate: "55000", message, hint: "" };
                assert_refused(&mut client, &query, not_owned);
            }
        }
    }
}

/// The calls that generate one ID for the shard: by a literal, by the setting, and as a batch.
fn ways_to_generate(client: &mut Client, shard: i32) -> [String; 3] {
    client.batch_execute(&format!("SET pg_snowflake.shard_id = {shard}")).unwrap();
    [
        format!("SELECT snowflake_nextval('s', {shard})"),
        "SELECT snowflake_nextval('s')".into(),
        format!("SELECT snowflake_nextvals('s', {shard}, 1)"),
    ]
}

#[test]
fn the_fence_holds_in_every_layout() {
    let (_database, mut client) = database();
    client.batch_execute("CREATE SEQUENCE s; SET pg_snowflake.owned_shards = '5'").unwrap();
    for (layout, _) in PRESETS.iter().filter(|(_, layout)| layout.shards() > 6) {
        let foreign = format!("SELECT snowflake_nextval('s', 6, '{layout}')");
        assert_refused(&mut client, &foreign, NOT_OWNED);
    }
    // A layout without a shard field generates IDs for shard 0.
    let foreign = Refusal { message: "shard 0 is not owned", hint: "", ..NOT_OWNED };
    assert_refused(&mut client, "SELECT snowflake_nextval('s', 0, 'mastodon')", foreign);
}

#[test]
fn the_fence_in_force_is_the_one_that_is_shown() {
    let cluster = owner_of_shard_5();
    let mut client = cluster.connect();
    let sound = |client: &mut Client, owned: &str| {
        assert_eq!(printed(client, "SHOW pg_snowflake.owned_shards"), owned);
        let (generate, foreign) = match owned {
            "5" => (GENERATE_OWN, GENERATE_FOREIGN),
            _ => (GENERATE_FOREIGN, GENERATE_OWN),
        };
        client.batch_execute("SAVEPOINT here").unwrap();
        refused(client, foreign);
        client.batch_execute("ROLLBACK TO here").unwrap();
        take_one(client, generate);
    };
    client.batch_execute("SELECT snowflake_decode(0); BEGIN").unwrap();
    sound(&mut client, "5");
    client.batch_execute("SET LOCAL pg_snowflake.owned_shards = '6'").unwrap();
    sound(&mut client, "6");
    client.batch_execute("SAVEPOINT a; SET LOCAL pg_snowflake.owned_shards = '5'").unwrap();
    sound(&mut client, "5");
    client.batch_execute("ROLLBACK TO a").unwrap();
    sound(&mut client, "6");
    client.batch_execute("ROLLBACK; BEGIN").unwrap();
    sound(&mut client, "5");
    client.batch_execute("SET pg_snowflake.owned_shards = '6'; COMMIT; BEGIN").unwrap();
    sound(&mut client, "6");
    client.batch_execute("COMMIT; RESET pg_snowflake.owned_shards; BEGIN").unwrap();
    sound(&mut client, "5");
}

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
        (
            "ALTER ROLE \"Writer\" IN DATABASE postgres SET",
            "ALTER ROLE \"Writer\" IN DATABASE postgres RESET ALL",
        ),
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
fn a_dump_that_is_restored_on_another_shards_server_generates_no_ids_until_its_default_is_changed()
{
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
    let not_owned = Refusal {
        sqlstate: "55000",
        message: "shard 5 is not owned by this server",
        hint: "was restored from a dump, change its shard",
    };
    assert_refused(&mut client, insert, not_owned);
    assert_refused(&mut target.connect_to(SUPERUSER, "restored"), insert, not_owned);

    client
        .batch_execute("ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('s', 6)")
        .unwrap();
    let id = take_one(&mut client, "INSERT INTO posts (body) VALUES ('new') RETURNING id");
    assert_eq!(split(id).shard, 6);
}
