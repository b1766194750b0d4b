//! The mistake: one shard number on two nodes.

use super::{Nodes, can_replicate, level_sequences};
use pg_snowflake_harness::installation::{bindir, major};
use pg_snowflake_harness::prelude::*;

const REKEY: &str = include_str!("../../../docs/active_active/rekey.sql");
const SKIP: &str = include_str!("../../../docs/active_active/skip.sql");

/// Has two nodes subscribe to each other.
fn subscribe(nodes: &Nodes) {
    for (from, to) in [(1, 2), (2, 1)] {
        let create = format!(
            "CREATE SUBSCRIPTION node_{from}_to_{to} CONNECTION 'host=node-{from} dbname=app user=replicator'
             PUBLICATION app WITH (origin = none, copy_data = false)"
        );
        nodes.run_on(to, &create);
    }
}

#[test]
fn one_number_on_two_nodes_stops_their_subscriptions_until_the_row_has_another_id() {
    if !can_replicate("one number on two nodes") {
        return;
    }
    let nodes = Nodes::start([(); 2].map(|()| Cluster::builder()));
    nodes.numbers().for_each(|node| nodes.set_number(node, 1));
    subscribe(&nodes);
    level_sequences(&nodes);
    // Else a row may arrive before the other node generates the same ID, and that INSERT fails instead.
    for (node, other) in [(1, 2), (2, 1)] {
        run(&mut nodes.connect(node), &format!("ALTER SUBSCRIPTION node_{other}_to_{node} DISABLE"));
    }
    for node in nodes.numbers() {
        run(&mut nodes.connect(node), &format!("INSERT INTO posts (body) VALUES ('node {node}')"));
    }
    for (node, other) in [(1, 2), (2, 1)] {
        run(&mut nodes.connect(node), &format!("ALTER SUBSCRIPTION node_{other}_to_{node} ENABLE"));
    }

    for node in nodes.numbers() {
        let mut client = nodes.connect(node);
        // The first attempt and another one: it does not get past the row.
        wait_for(&mut client, "SELECT apply_error_count > 1 FROM pg_stat_subscription_stats", "the row has failed twice");
        assert_eq!(printed(&mut client, "SELECT body FROM posts"), format!("node {node}"));
        let messages: &[&str] = if major(bindir()) < 18 {
            &["ERROR:  duplicate key value violates unique constraint \"posts_pkey\""]
        } else {
            wait_for(&mut client, "SELECT confl_insert_exists > 1 FROM pg_stat_subscription_stats", "the conflict has been counted twice");
            &[
                "ERROR:  conflict detected on relation \"public.posts\": conflict=insert_exists",
                "Key already exists in unique index \"posts_pkey\"",
            ]
        };
        for message in messages {
            let log = || nodes.0[node - 1].log();
            assert!(comes_true(|| log().contains(message)), "{message} is not in\n{}", log());
        }
    }

    nodes.set_number(2, 2);
    let id = printed(&mut nodes.connect(2), "SELECT id FROM posts");
    nodes.run_on(2, &format!("\\set id {id}\n{REKEY}"));
    let log = nodes.0[0].log();
    let finished_at = log.rsplit("finished at ").next().and_then(|rest| rest.lines().next());
    let finished_at = finished_at.expect("lines() has one");
    nodes.run_on(1, &format!("\\set finished_at {finished_at}\n{SKIP}"));

    for node in nodes.numbers() {
        let mut client = nodes.connect(node);
        wait_for(&mut client, "SELECT count(*) = 2 FROM posts", "both rows are there");
        assert_eq!(printed(&mut client, "SELECT snowflake_shard_id(id), body FROM posts ORDER BY id"), "1|node 1\n2|node 2");
    }
}
