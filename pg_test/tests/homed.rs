//! Homed IDs: their hash leads to the shard that generates them.

use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::prelude::*;

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
        "SELECT count(*) FILTER (WHERE NOT satisfies_hash_partition('t'::regclass, 4, 3, id)), count(DISTINCT id) FROM ({ids}) AS ids (id)"
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
    let no_lease = refusal("55000", "no lease for shard 3075");
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
    let error = assert_refused(&mut client, call, Refusal { sqlstate: "55000", message: "no lease for shard 515", hint });
    let (_, query) = error.hint().unwrap().split_once("SELECT").expect("a query for the list");
    let list = printed(&mut client, &format!("SELECT {query}"));
    reload_with(&mut client, &format!("ALTER SYSTEM SET pg_snowflake.owned_shards = '{list}'"));
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
    cluster.crash();
    let after = counter(take_one(&mut cluster.connect_to(SUPERUSER, "postgres"), "SELECT snowflake_nextval_homed('s', 1, 64)"));
    assert!(after > *before.last().unwrap());
}
