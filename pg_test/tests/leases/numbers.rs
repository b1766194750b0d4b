//! Which shards a server has leases on.

use super::{GENERATE, LONG, NO_LEASE, holder, start, wait_for_error, wants_shard_5};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::prelude::*;

const GENERATE_ASSIGNED: &str = "SELECT snowflake_nextval('s')";

#[test]
fn an_assigned_shard_gives_way_to_one_that_is_set() {
    let registry = Registry::start();
    let (_server, mut client) = start(registry.node("db-1"));
    first_id(&mut client, GENERATE_ASSIGNED);

    run(&mut client, "SET pg_snowflake.shard_id = 5");

    assert_eq!(printed(&mut client, "SELECT snowflake_current_shard()"), "5");
    assert_refused(&mut client, GENERATE_ASSIGNED, NO_LEASE);
}

#[test]
fn a_server_has_leases_on_all_shards_that_it_owns_and_on_no_others() {
    let registry = Registry::start();
    // The shard_id is a session's default, not a further shard.
    let settings = registry.node("db-1").setting("pg_snowflake.owned_shards", "3, 7-8").setting("pg_snowflake.shard_id", "7");
    let (_server, mut client) = start(settings);
    for shard in [3, 7, 8] {
        let id = first_id(&mut client, &format!("SELECT snowflake_nextval('s', {shard})"));
        assert_eq!(split(id).shard, shard);
    }
    let leased = "SELECT shard_id, node, state FROM snowflake_registry.leases ORDER BY shard_id";
    assert_eq!(printed(&mut registry.cluster.connect(), leased), "3|db-1|held\n7|db-1|held\n8|db-1|held");
}

#[test]
fn a_server_can_own_every_shard_of_instagrams_layout() {
    let registry = Registry::start();
    let settings = registry.node("db-1").setting("pg_snowflake.owned_shards", "0-8191");
    let (mut server, _client) = start(settings.setting("pg_snowflake.lease", LONG));
    // Started again, it knows the serials of all, which fill several pages.
    for _ in 0..2 {
        for shard in [0, 4095, 8191] {
            first_id(&mut server.connect(), &format!("SELECT snowflake_nextval('s', {shard}, 'instagram')"));
        }
        server.restart(Shutdown::Fast);
    }
    // docs/operate.md names the file.
    assert_eq!(printed(&mut server.connect(), "SELECT size > 8192 FROM pg_stat_file('global/9437')"), "t");
}

#[test]
fn a_shard_that_another_server_holds_is_refused_by_its_name() {
    let (registry, _holder, mut of_holder) = holder(LONG);
    let (_other, mut client) = start(wants_shard_5(&registry, "db-2", LONG));
    wait_for_error(&mut client, "%held by node \"db-1\"%");

    let error = assert_refused(&mut client, GENERATE, NO_LEASE);

    let detail = error.detail().expect("the registry's answer");
    assert!(detail.contains("Shard 5 is held by node \"db-1\" until "), "{detail}");
    take_one(&mut of_holder, GENERATE);
}

/// The worker sees the settings of the server, not those of a database.
#[test]
fn a_shard_that_only_a_database_sets_has_ids_once_the_commands_of_the_hint_are_run() {
    // `pg_snowflake.shard_id` of the server, and the shard that it holds: the registry assigns the second one.
    for (shard_id, held) in [("5", 5), ("-1", 0)] {
        let registry = Registry::start();
        let (server, mut client) = start(registry.node("db-1").setting("pg_snowflake.shard_id", shard_id));
        let generate = format!("SELECT snowflake_nextval('s', {held})");
        first_id(&mut client, &generate);
        run(&mut server.fresh_database("other"), "CREATE SEQUENCE s; ALTER DATABASE other SET pg_snowflake.shard_id = 6");
        let mut of_other = server.connect_to(SUPERUSER, "other");

        let message = "no lease for shard 6";
        let hint = format!("pg_snowflake.owned_shards = '{held}, 6'");
        let error = assert_refused(&mut of_other, GENERATE_ASSIGNED, Refusal { message, hint: &hint, ..NO_LEASE });
        take_one(&mut client, &generate);

        server.psql(SUPERUSER, commands_in(error.hint().unwrap()));

        assert_eq!(split(first_id(&mut of_other, GENERATE_ASSIGNED)).shard, 6);
        assert_eq!(split(first_id(&mut client, &generate)).shard, held);
    }
}
