//! Servers that all accept writes and replicate their own rows to each other. docs/engines.md shows the SQL, which is in
//! `docs/active_active`.

mod duplicates;

use pg_snowflake_harness::installation::has_major;
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::prelude::*;
use std::collections::BTreeSet;
use std::thread::{scope, sleep};
use std::time::Duration;

const NUMBER: &str = include_str!("../../docs/active_active/number.sql");
const NODE: &str = include_str!("../../docs/active_active/node.sql");
const SUBSCRIBE: &str = include_str!("../../docs/active_active/subscribe.sql");
const CATCH_UP: &str = include_str!("../../docs/active_active/catch_up.sql");
const COPY: &str = include_str!("../../docs/active_active/copy.sql");
const JOIN: &str = include_str!("../../docs/active_active/join.sql");
const MONITOR: &str = include_str!("../../docs/active_active/monitor.sql");

const DATABASE: &str = "app";

const CLIENTS: i64 = 3;
const INSERTS: i64 = 50;
const ROWS: i64 = 8;
const ROWS_OF_NODE: i64 = CLIENTS * INSERTS * ROWS;

/// `origin = none`, which keeps a row from being sent on, is that new.
fn can_replicate(what: &str) -> bool {
    has_major(16, &format!("active-active replication: {what}"))
}

/// The nodes of the documentation, from 1.
struct Nodes(Vec<Cluster>);

impl Nodes {
    /// Servers with the tables, which do not subscribe to each other yet.
    fn start(builders: impl IntoIterator<Item = Builder>) -> Nodes {
        let mut nodes = Nodes(Vec::new());
        builders.into_iter().for_each(|builder| nodes.add(builder));
        nodes
    }

    fn add(&mut self, builder: Builder) {
        let node = builder
            .setting("wal_level", "logical")
            .setting("pg_snowflake.max_lead", "2h")
            // How long a failed subscription rests.
            .setting("wal_retrieve_retry_interval", "100ms")
            .start();
        node.empty_database(DATABASE);
        self.0.push(node);
        self.run_on(self.0.len(), NODE);
    }

    fn set_number(&self, node: usize, number: usize) {
        let default = "shard_id = 1;";
        assert!(NUMBER.contains(default));
        self.run_on(node, &NUMBER.replace(default, &format!("shard_id = {number};")));
        let is_set = format!("SELECT current_setting('pg_snowflake.shard_id', true) = '{number}'");
        wait_for(&mut self.connect(node), &is_set, "the node has its number");
    }

    /// Runs a script of the documentation there, with the addresses of these nodes.
    fn run_on(&self, node: usize, script: &str) -> String {
        let mut script = script.to_owned();
        for (number, server) in (1..).zip(&self.0) {
            script = script.replace(&format!("host=node-{number}"), &format!("host={}", server.dir().display()));
        }
        assert!(!script.contains("host=node-"), "{script}");
        self.0[node - 1].psql(DATABASE, &script)
    }

    fn connect(&self, node: usize) -> Client {
        self.0[node - 1].connect_to(SUPERUSER, DATABASE)
    }

    fn numbers(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.0.len()
    }

    fn write(&self, nodes: impl IntoIterator<Item = usize>) {
        scope(|scope| {
            for node in nodes {
                for _ in 0..CLIENTS {
                    let mut client = self.connect(node);
                    scope.spawn(move || (0..INSERTS).for_each(|_| insert(&mut client, node)));
                }
            }
        });
    }

    /// Waits until all nodes have so many rows, and checks that these are the same, that no row met another one with its ID, and
    /// that the IDs of each node have its shard.
    fn assert_equal(&self, rows: i64, shards: &[i32]) {
        for node in self.numbers() {
            wait_for(&mut self.connect(node), &format!("SELECT count(*) >= {rows} FROM posts"), "all rows have arrived");
        }
        let digest = "SELECT count(*), md5(string_agg(id || body, ',' ORDER BY id)) FROM posts";
        let digests: Vec<String> = self.numbers().map(|node| printed(&mut self.connect(node), digest)).collect();
        assert!(digests[0].starts_with(&format!("{rows}|")), "{digests:?}");
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");

        let by_node = "SELECT split_part(body, ' ', 2), snowflake_shard_id(id) FROM posts GROUP BY 1, 2 ORDER BY 1";
        let expected: Vec<String> = (1..).zip(shards).map(|(node, shard)| format!("{node}|{shard}")).collect();
        for node in self.numbers() {
            let mut client = self.connect(node);
            assert_eq!(printed(&mut client, by_node), expected.join("\n"), "on node {node}");
            assert_eq!(printed(&mut client, ERRORS_AND_CONFLICTS), "0", "on node {node}");
        }
    }
}

/// Of all subscriptions. PostgreSQL counts conflicts from 18 on.
const ERRORS_AND_CONFLICTS: &str = "SELECT sum(value::bigint)
     FROM pg_stat_subscription_stats AS stats, jsonb_each_text(to_jsonb(stats))
     WHERE key LIKE '%\\_error\\_count' OR key LIKE 'confl\\_%'";

fn insert(client: &mut Client, node: usize) {
    run(client, &format!("INSERT INTO posts (body) SELECT 'node {node}' FROM generate_series(1, {ROWS})"));
}

/// Sets the sequences of all nodes to the same counter, an hour ahead, so that the clock moves none: the nodes generate IDs
/// that differ in nothing but their shard.
fn level_sequences(nodes: &Nodes) {
    let start = counter_in_an_hour();
    for node in nodes.numbers() {
        run(&mut nodes.connect(node), &format!("SELECT setval('posts_id_seq', {start}, false)"));
    }
}

#[test]
fn three_nodes_that_a_registry_numbers_have_no_conflict() {
    if !can_replicate("three nodes that a registry numbers") {
        return;
    }
    let registry = Registry::start();
    let nodes = Nodes::start((1..=3).map(|node| registry.node(&format!("node-{node}"))));
    let shards: Vec<i32> = nodes
        .numbers()
        .map(|node| {
            let mut client = nodes.connect(node);
            first_id(&mut client, "SELECT snowflake_nextval('posts_id_seq')");
            printed(&mut client, "SELECT snowflake_current_shard()").parse().unwrap()
        })
        .collect();
    assert_eq!(shards.iter().collect::<BTreeSet<_>>().len(), 3, "{shards:?}");
    nodes.run_on(1, SUBSCRIBE);

    nodes.write(nodes.numbers());

    nodes.assert_equal(3 * ROWS_OF_NODE, &shards);
}

#[test]
fn three_nodes_with_equal_sequences_and_a_number_each_have_no_conflict_and_a_fourth_joins_while_one_is_written_to() {
    if !can_replicate("three nodes with a number each, and a fourth") {
        return;
    }
    let mut nodes = Nodes::start([(); 3].map(|()| Cluster::builder()));
    nodes.numbers().for_each(|node| nodes.set_number(node, node));
    nodes.run_on(1, SUBSCRIBE);
    level_sequences(&nodes);
    nodes.write(nodes.numbers());
    nodes.assert_equal(3 * ROWS_OF_NODE, &[1, 2, 3]);
    let counters = printed(&mut nodes.connect(1), "SELECT count(DISTINCT id >> 12) FROM posts");
    assert_eq!(counters, ROWS_OF_NODE.to_string(), "the nodes have not used the same counters");
    let status = nodes.run_on(1, MONITOR);
    assert!(status.contains("node_2_to_1") && status.contains("node_1_to_2"), "{status}");
    nodes.add(Cluster::builder());
    nodes.set_number(4, 4);

    let stop = Stop::default();
    let written: i64 = scope(|scope| {
        let mut client = nodes.connect(1);
        let stop_at_end = StopAtEnd(&stop);
        let stop = &stop;
        let writer = scope.spawn(move || {
            let inserts = (0..).take_while(|_| !stop.is_called());
            // With a rest, so that the rows do not pile up on a slow machine.
            inserts.map(|_| (insert(&mut client, 1), sleep(Duration::from_millis(5)))).count()
        });
        let go_on = || wait_for_more_rows(&mut nodes.connect(1), "posts", ROWS);
        go_on();
        nodes.run_on(4, COPY);
        go_on();
        for node in [2, 3, 1] {
            nodes.run_on(node, CATCH_UP);
        }
        nodes.run_on(4, JOIN);
        go_on();
        drop(stop_at_end);
        writer.join().expect("node 1 takes rows at any time") as i64 * ROWS
    });
    nodes.write(nodes.numbers());

    nodes.assert_equal(7 * ROWS_OF_NODE + written, &[1, 2, 3, 4]);
}
