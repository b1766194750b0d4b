//! Logical decoding by libraries of others: how an ID is written, and what becomes of sequences.

use pg_snowflake_examples::packages;
use pg_snowflake_harness::installation::{self, bindir, pg_config};
use pg_snowflake_harness::prelude::*;
use serde_json::Value;
use std::process::Command;
use std::thread;
use tempfile::TempDir;

#[test]
fn wal2json_writes_a_bigint_as_a_number_and_a_snowflake_as_a_string() {
    if provide("wal2json").is_none() {
        return;
    }
    let server = server(5, "wal2json", &[]);
    let mut client = server.connect();
    run(&mut client, "CREATE SEQUENCE s; CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'), public_id snowflake)");
    run(&mut client, "SELECT pg_create_logical_replication_slot('slot', 'wal2json')");
    let id = printed(&mut client, "INSERT INTO posts (public_id) VALUES (snowflake_nextval('s')) RETURNING id");
    run(&mut client, "UPDATE posts SET public_id = id");

    let changes = printed(&mut client, "SELECT data FROM pg_logical_slot_get_changes('slot', NULL, NULL, 'format-version', '2')");

    let changes: Vec<Value> = changes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let update = changes.iter().find(|change| change["action"] == "U").unwrap_or_else(|| panic!("{changes:?}"));
    let values: Vec<String> = ["columns", "identity"]
        .iter()
        .flat_map(|part| update[part].as_array().unwrap())
        .map(|column| column["value"].to_string())
        .collect();
    // serde_json keeps all digits of an integer.
    assert_eq!(values, [id.clone(), format!("\"{id}\""), id]);
}

/// A sequence of a replication set is set to the provider's value, whatever the subscriber has generated from it.
#[test]
fn a_subscriber_of_pglogical_repeats_no_id_with_and_without_the_sequence_in_a_set() {
    if provide("pglogical").is_none() {
        return;
    }
    for is_in_set in [false, true] {
        let [provider, subscriber] = provider_and_subscriber(is_in_set);
        let mut client = provider.connect();
        let was_set_back = || subscriber.log().contains("sequence \"s\" was set back");
        let has_rows = || subscriber.connect().query("SELECT FROM posts", &[]).unwrap().len() > 100;
        let stop = Stop::default();

        let ids = thread::scope(|scope| {
            let generators = [(); 3].map(|()| scope.spawn(|| generate_until(&subscriber, &stop)));
            let at_the_end = StopAtEnd(&stop);
            let comes = comes_true(|| {
                run(&mut client, "INSERT INTO posts DEFAULT VALUES");
                if is_in_set {
                    run(&mut client, "SELECT pglogical.synchronize_sequence('s')");
                }
                has_rows() && was_set_back() == is_in_set
            });
            assert!(comes, "in the set: {is_in_set}");
            drop(at_the_end);
            generators.map(|generator| generator.join().unwrap()).concat()
        });

        assert_eq!(count_repeats(ids), 0, "in the set: {is_in_set}");
        assert_eq!(was_set_back(), is_in_set);
    }
}

/// Both generate IDs, and the rows of `posts` are replicated.
fn provider_and_subscriber(is_in_set: bool) -> [Cluster; 2] {
    let servers = [5, 6].map(|shard| server(shard, "pglogical_output", &[("shared_preload_libraries", "pglogical")]));
    let address = |server: &Cluster| format!("host={} port=5432 dbname={SUPERUSER} user={SUPERUSER}", server.dir().display());
    for (number, server) in servers.iter().enumerate() {
        let mut client = server.connect();
        run(&mut client, "CREATE EXTENSION pglogical; CREATE SEQUENCE s");
        run(&mut client, "CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'))");
        run(&mut client, &format!("SELECT pglogical.create_node('node_{number}', '{}')", address(server)));
    }
    let [mut provider, mut subscriber] = servers.each_ref().map(Cluster::connect);
    run(&mut provider, "SELECT pglogical.replication_set_add_table('default', 'posts')");
    if is_in_set {
        run(&mut provider, "SELECT pglogical.replication_set_add_sequence('default', 's')");
    }
    let subscribe = format!("SELECT pglogical.create_subscription('subscription', '{}', synchronize_data := false)", address(&servers[0]));
    run(&mut subscriber, &subscribe);
    run(&mut subscriber, "SELECT pglogical.wait_for_subscription_sync_complete('subscription')");
    wait_for(&mut provider, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'", "it subscribes");
    servers
}

/// Generates IDs, the last ones after the call.
fn generate_until(server: &Cluster, stop: &Stop) -> Vec<i64> {
    let mut client = server.connect();
    let mut ids = Vec::new();
    let mut is_last = false;
    while !is_last {
        is_last = stop.is_called();
        ids.extend(take(&mut client, "SELECT snowflake_nextval('s') FROM generate_series(1, 100000)"));
    }
    ids
}

/// Puts a library of the distribution into the installation of the tests, and returns its package. `None` if the distribution does not have
/// it for the major version.
pub fn provide(library: &str) -> Option<TempDir> {
    let major = installation::major(bindir());
    let dir = packages(library, &[&format!("postgresql-{major}-{library}")])?;
    for (from, to) in [("lib/postgresql/{}/lib", "--pkglibdir"), ("share/postgresql/{}", "--sharedir")] {
        let from = dir.path().join("package/usr").join(from.replace("{}", &major.to_string()));
        if from.exists() {
            pg_snowflake_examples::run(Command::new("cp").arg("--recursive").arg(from.join(".")).arg(pg_config(to)));
        }
    }
    Some(dir)
}

/// A server of that shard, whose clients may decode its WAL by the library.
fn server(shard: u32, library: &str, settings: &[(&str, &str)]) -> Cluster {
    let builder = Cluster::builder().setting("wal_level", "logical");
    let server = settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value)).start();
    let mut client = server.connect();
    run(&mut client, &format!("ALTER DATABASE postgres SET pg_snowflake.shard_id = {shard}"));
    // From 15.19 on.
    if printed(&mut client, "SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'") == "1" {
        run(&mut client, &format!("ALTER SYSTEM SET output_plugin_libraries = '{library}'"));
        run(&mut client, "SELECT pg_reload_conf()");
        wait_for(
            &mut server.connect(),
            &format!("SELECT current_setting('output_plugin_libraries') = '{library}'"),
            "the setting is in effect",
        );
    }
    server
}
