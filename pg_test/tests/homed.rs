//! Homed IDs: their hash leads to the shard that generates them.

use pg_snowflake_harness::ask::{Refusal, assert_refused, database, printed, run};
use pg_snowflake_harness::id::{count_repeats, counter};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::sequence::{Ahead, take, take_one};
use pg_snowflake_harness::{Database, SUPERUSER};

#[test]
fn concurrent_sessions_never_repeat_a_homed_id() {
    let database = Database::new().setting("pg_snowflake.max_lead", "1min");
    run(&mut database.connect(), "CREATE SEQUENCE s");
    let queries = [
        "SELECT snowflake_nextval_homed('s', 1, 2) FROM generate_series(1, 20000)",
        "SELECT snowflake_nextval_homed('s', 1, 2, generators => 4) FROM generate_series(1, 20000)",
        "SELECT snowflake_nextvals_homed('s', 1, 2, 20000)",
        "SELECT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange) FROM generate_series(1, 20000)",
    ];
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let sessions = queries.map(|query| {
            let mut client = database.connect();
            scope.spawn(move || take(&mut client, query))
        });
        sessions.into_iter().flat_map(|session| session.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 80_000);
    assert_eq!(count_repeats(ids), 0);
}

/// The shard to which PgDog sends a row with that key, restated from its sources (`router/sharding/hashfn.c`).
///
/// It is PostgreSQL's hash of a partition key of one bigint: both halves of the key are XORed, the high one inverted if the key is
/// negative, and Jenkins' hash of the result, with a seed, is combined with 0.
fn pgdog_shard(key: i64, shards: u64) -> u64 {
    let [mut a, mut b, mut c] = [0x9e37_79b9_u32.wrapping_add(4 + 3_923_095); 3];
    a = a.wrapping_add(0x7A5B_2236);
    b = b.wrapping_add(0x7996_DCFD);
    for turn in [4, 6, 8, 16, 19, 4] {
        a = a.wrapping_sub(c) ^ c.rotate_left(turn);
        c = c.wrapping_add(b);
        [a, b, c] = [b, c, a];
    }
    let high = (key >> 32) as u32;
    a = a.wrapping_add(key as u32 ^ if key < 0 { !high } else { high });
    for turn in [14, 11, 25, 16, 4, 14, 24] {
        c = (c ^ b).wrapping_sub(b.rotate_left(turn));
        [a, b, c] = [b, c, a];
    }
    let hash = u64::from(a) << 32 | u64::from(b);
    hash.wrapping_add(0x49a0_f4dd_15e5_a8e3) % shards
}

/// Each shard is a schema with what PgDog needs for `pgdog.next_id_seq()`, which the default replaces: a table for
/// `satisfies_hash_partition()`.
#[test]
fn pgdog_sends_a_homed_id_to_its_shard() {
    // As fast as they can be generated.
    let database = Database::new().setting("pg_snowflake.max_lead", "1min");
    let mut client = database.connect();
    run(&mut client, "CREATE SCHEMA pgdog");
    run(&mut client, "CREATE TABLE pgdog.validator_bigint (id bigint) PARTITION BY HASH (id)");
    for shards in [2, 3, 4, 16] {
        for shard in 0..shards {
            run(
                &mut client,
                &format!(
                    "CREATE SCHEMA shard_{shard}_of_{shards};
                     SET search_path = shard_{shard}_of_{shards}, public;
                     CREATE SEQUENCE ids;
                     CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval_homed('ids', {shard}, {shards}));
                     INSERT INTO posts SELECT FROM generate_series(1, 1000)"
                ),
            );
            let batch = 1_000_000_u64.div_ceil(shards) - 1000;
            let at_home_for_postgres = format!(
                "SELECT string_agg(int8send(id), '')
                 FROM (TABLE posts UNION ALL SELECT snowflake_nextvals_homed('ids', {shard}, {shards}, {batch})) AS ids
                 WHERE satisfies_hash_partition('pgdog.validator_bigint'::regclass, {shards}, {shard}, id)"
            );
            let ids = client.query_one(&at_home_for_postgres, &[]).unwrap().get::<_, Vec<u8>>(0);
            let (ids, _) = ids.as_chunks();
            assert_eq!(ids.len() as u64, batch + 1000, "shard {shard} of {shards}");
            for id in ids.iter().map(|&bytes| i64::from_be_bytes(bytes)) {
                assert_eq!(pgdog_shard(id, shards), shard, "{id} of {shards} shards");
            }
        }
    }
}

#[test]
fn every_shard_number_needs_a_lease() {
    let registry = Registry::start();
    let server = registry.node("db-1").setting("pg_snowflake.owned_shards", "3, 515-3587").start();
    let mut client = server.connect();
    run(&mut client, "CREATE SEQUENCE s; CREATE TABLE t (id bigint) PARTITION BY HASH (id)");
    let call = "SELECT snowflake_nextval_homed('s', 3, 4, generators => 128)";
    first_id(&mut client, call);
    // Of both kinds in turn, and of another class.
    for _ in 0..100 {
        take_one(&mut client, call);
        take_one(&mut client, "SELECT snowflake_nextval('s', 600)");
        take_one(&mut client, "SELECT snowflake_nextval_homed('s', 600, 4, generators => 512)");
    }
    let ids = "SELECT snowflake_nextvals_homed('s', 3, 4, 3000, generators => 128)";
    let strangers = format!(
        "SELECT count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, 4, 3, id)), count(DISTINCT id)
         FROM ({ids}) AS ids (id)"
    );
    assert_eq!(printed(&mut client, &strangers), "0|3000");

    // The server claims all shards that it owns, but another one holds shard 3075.
    drop(client);
    drop(server);
    let registry = Registry::start();
    let other = registry.node("db-2").setting("pg_snowflake.owned_shards", "3075").start();
    run(&mut other.connect(), "CREATE SEQUENCE s");
    first_id(&mut other.connect(), "SELECT snowflake_nextval('s', 3075)");
    let server = registry.node("db-1").setting("pg_snowflake.owned_shards", "3, 515-3587").start();
    let mut client = server.connect();
    run(&mut client, "CREATE SEQUENCE s");
    first_id(&mut client, "SELECT snowflake_nextval('s', 3)");
    let no_lease = Refusal { sqlstate: "55000", message: "no lease for shard 3075", hint: "" };
    for call in [call, ids] {
        assert_refused(&mut client, call, no_lease);
    }
}

#[test]
fn without_the_leases_of_a_class_the_hint_has_the_list() {
    let registry = Registry::start();
    let server = registry.node("db-1").setting("pg_snowflake.shard_id", "3").start();
    let mut client = server.connect();
    run(&mut client, "CREATE SEQUENCE s");
    first_id(&mut client, "SELECT snowflake_nextval('s', 3)");
    let call = "SELECT snowflake_nextval_homed('s', 3, 4, generators => 128)";
    let hint = "pg_snowflake.owned_shards";
    let no_lease = Refusal { sqlstate: "55000", message: "no lease for shard 515", hint };
    let error = assert_refused(&mut client, call, no_lease);
    let (_, query) = error.hint().unwrap().split_once("SELECT").expect("a query for the list");
    let list = printed(&mut client, &format!("SELECT {query}"));
    for statement in [&format!("ALTER SYSTEM SET pg_snowflake.owned_shards = '{list}'"), "SELECT pg_reload_conf()"] {
        run(&mut client, statement);
    }
    first_id(&mut client, call);
}

#[test]
fn a_homed_id_survives_a_crash() {
    // Ahead of the clock, which would hide a lost counter.
    let Ahead { mut cluster, mut client, .. } = Ahead::caching(1);
    let ids = "INSERT INTO t SELECT snowflake_nextval_homed('s', 1, 64) FROM generate_series(1, 1000) RETURNING id";
    run(&mut client, "CREATE TABLE t (id bigint)");
    let before: Vec<i64> = take(&mut client, ids).into_iter().map(counter).collect();
    drop(client);
    cluster.kill_9();
    cluster.start();
    let after = counter(take_one(&mut cluster.connect_to(SUPERUSER, "postgres"), "SELECT snowflake_nextval_homed('s', 1, 64)"));
    assert!(after > *before.last().unwrap());
}

#[test]
fn a_default_is_restored_with_its_arguments() {
    let (database, mut client) = database();
    run(
        &mut client,
        "CREATE SEQUENCE s;
         CREATE TABLE posts (
             id bigint DEFAULT snowflake_nextval_homed('s', 1, 4, 8, 'postgres'),
             in_ranges bigint DEFAULT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange, 'postgres'))",
    );
    let defaults = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1";
    let expected = printed(&mut client, defaults);
    let copy = Database::restored(&database.dump());
    let mut restored = copy.connect();
    assert_eq!(printed(&mut restored, defaults), expected);
    run(&mut restored, "INSERT INTO posts DEFAULT VALUES");
}
