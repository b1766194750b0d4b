//! A Citus cluster: a coordinator and its workers, which reach each other over their unix sockets, and the ways in which rows get
//! into its tables.

use crate::ask::{printed, reload_with, run};
use crate::cluster::{Cluster, SUPERUSER};
use crate::crew::{Crew, Place};
use crate::wait::comes_true;
use postgres::Client;
use std::io::Write;
use std::thread::scope;

/// What has to be typed once, on the coordinator: the tables [`TABLES`].
pub const RECIPE: &str = include_str!("../../docs/citus/recipe.sql");

/// The tables of [`RECIPE`]: IDs that any node can have, and homed ones.
pub const TABLES: [&str; 2] = ["posts", "homed_posts"];

/// A distributed table `source`, whose rows the workers read.
const SOURCE: &str = "CREATE TABLE source (n bigint PRIMARY KEY, body text); SELECT create_distributed_table('source', 'n');";

/// A coordinator and its workers. Each node has the number of its group: 0 is the coordinator.
pub struct Fleet {
    pub nodes: Vec<Cluster>,
}

impl Fleet {
    /// Servers with Citus that do not know each other yet.
    pub fn apart(servers: usize) -> Fleet {
        let mut fleet = Fleet { nodes: Vec::new() };
        (0..servers).for_each(|_| fleet.start_server());
        scope(|scope| {
            for mut client in fleet.connections() {
                scope.spawn(move || run(&mut client, "CREATE EXTENSION citus"));
            }
        });
        fleet
    }

    /// A coordinator and this many workers, without tables.
    fn start(workers: usize) -> Fleet {
        let fleet = Fleet::apart(workers + 1);
        run(&mut fleet.coordinator(), &format!("SELECT citus_set_coordinator_host('{}')", fleet.address(0)));
        (1..=workers).for_each(|node| fleet.join(node));
        fleet
    }

    /// The same with the tables of [`RECIPE`], and this many rows in a third one, `source`.
    pub fn with_tables(workers: usize, rows: usize) -> Fleet {
        let fleet = Fleet::start(workers);
        fleet.nodes[0].psql(SUPERUSER, RECIPE);
        fleet.nodes[0].psql(SUPERUSER, SOURCE);
        run(&mut fleet.coordinator(), &format!("INSERT INTO source SELECT n, 'source' FROM generate_series(1, {rows}) AS n"));
        fleet
    }

    /// Adds a worker without shards, and returns its number.
    pub fn add_node(&mut self) -> usize {
        self.start_server();
        let node = self.nodes.len() - 1;
        for sql in ["CREATE EXTENSION citus", "CREATE SEQUENCE public.ids"] {
            run(&mut self.nodes[node].connect(), sql);
        }
        self.join(node);
        node
    }

    /// Citus insists on being the first library.
    fn start_server(&mut self) {
        let server = Cluster::builder()
            .setting("shared_preload_libraries", "citus, pg_snowflake")
            .setting("wal_level", "logical")
            // Fewer than the default, since each that moves takes a second.
            .setting("citus.shard_count", "12")
            .start();
        reload_with(&mut server.connect(), &format!("ALTER SYSTEM SET citus.local_hostname = '{}'", server.dir().display()));
        self.nodes.push(server);
    }

    fn join(&self, node: usize) {
        run(&mut self.coordinator(), &format!("SELECT citus_add_node('{}', 5432)", self.address(node)));
    }

    /// The name of a node, under which the others find it.
    pub fn address(&self, node: usize) -> String {
        self.nodes[node].dir().display().to_string()
    }

    pub fn coordinator(&self) -> Client {
        self.nodes[0].connect()
    }

    pub fn connections(&self) -> Vec<Client> {
        self.nodes.iter().map(Cluster::connect).collect()
    }

    /// Sets a parameter on one node, without a restart, for all statements that begin from now on.
    pub fn set(&self, node: usize, setting: &str, value: &str) {
        reload_with(&mut self.nodes[node].connect(), &format!("ALTER SYSTEM SET {setting} = '{value}'"));
        // A session that begins with it was forked after the postmaster had signalled all others.
        let is_set = || printed(&mut self.nodes[node].connect(), &format!("SHOW {setting}")) == value;
        assert!(comes_true(is_set), "{setting} is not set");
    }

    /// Clients of all nodes insert rows at once, so many on each node.
    pub fn insert_at_once(&self, way: Way, table: &str, rows: usize, clients: usize) {
        scope(|scope| {
            for _ in 0..clients {
                for mut client in self.connections() {
                    scope.spawn(move || way.insert(&mut client, table, rows / clients));
                }
            }
        });
    }
}

/// A way to insert rows into a table with the columns `id` and `body`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A statement for each row.
    SingleRows,
    /// A statement for each hundred rows.
    Values,
    /// `INSERT … SELECT` of rows that the node itself makes.
    SelectFunction,
    /// `INSERT … SELECT` of all rows of `source`, as many as they are: the workers generate the IDs.
    SelectTable,
    /// `COPY … FROM STDIN`.
    Copy,
}

impl Way {
    pub const ALL: [Way; 5] = [Way::SingleRows, Way::Values, Way::SelectFunction, Way::SelectTable, Way::Copy];

    /// What somebody would type.
    pub fn statement(self, table: &str, rows: usize) -> String {
        match self {
            Way::SingleRows => format!("INSERT INTO {table} (body) VALUES ('a post')"),
            Way::Values => {
                format!("INSERT INTO {table} (body) VALUES {}", ["('a post')"; 100].join(", "))
            }
            Way::SelectFunction => {
                format!("INSERT INTO {table} (body) SELECT 'a post' FROM generate_series(1, {rows})")
            }
            Way::SelectTable => format!("INSERT INTO {table} (body) SELECT body FROM source"),
            Way::Copy => format!("COPY {table} (body) FROM STDIN"),
        }
    }

    pub fn insert(self, client: &mut Client, table: &str, rows: usize) {
        let sql = self.statement(table, rows);
        let statements = match self {
            Way::SingleRows => rows,
            Way::Values => rows / 100,
            Way::SelectFunction | Way::SelectTable => 1,
            Way::Copy => {
                let mut writer = client.copy_in(&sql).expect("a table of ours");
                let rows = writer.write_all("a post\n".repeat(rows).as_bytes());
                rows.and_then(|()| writer.finish().map_err(std::io::Error::other).map(drop))
                    .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                return;
            }
        };
        let prepared = client.prepare(&sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        for _ in 0..statements {
            client.execute(&prepared, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
    }
}

/// The rows of a table, and how many different IDs they have.
pub fn rows_and_ids(client: &mut Client, table: &str, column: &str) -> (i64, i64) {
    let query = format!("SELECT count(*), count(DISTINCT {column}) FROM {table}");
    let row = client.query_one(&query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    (row.get(0), row.get(1))
}

/// The default of a table's first column.
pub fn default_of(client: &mut Client, table: &str) -> String {
    printed(client, &format!("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '{table}'::regclass AND adnum = 1"))
}

/// How many rows of a condition are on another node than the one that generated their ID.
pub fn strangers(client: &mut Client, table: &str, condition: &str) -> String {
    let sql = format!(
        "WITH rows AS MATERIALIZED (
             SELECT get_shard_id_for_distribution_column('{table}', id) AS shardid, snowflake_shard_id(id) AS shard
             FROM {table} WHERE {condition})
         SELECT count(*) FROM rows JOIN pg_dist_placement USING (shardid) WHERE groupid <> shard"
    );
    printed(client, &sql)
}

/// Does something to the cluster while a client of each node inserts single rows into these tables in turn. Returns how many rows
/// were acknowledged, and the result of `work`.
pub fn while_writing<T>(fleet: &mut Fleet, tables: &[&str], work: impl FnOnce(&mut Fleet) -> T) -> (i64, T) {
    let tables: Vec<String> = tables.iter().map(|&table| table.to_owned()).collect();
    let worker = |mut client: Client| {
        let tables = tables.clone();
        move |place: &Place| {
            let rows = tables.iter().cycle().take_while(|_| !place.must_stop());
            rows.map(|table| Way::SingleRows.insert(&mut client, table, 1)).count() as i64
        }
    };
    let crew = Crew::start(fleet.connections().into_iter().map(worker).collect());
    let done = work(fleet);
    (crew.stop().into_iter().sum(), done)
}
