//! pg_auto_failover: a monitor, and two nodes that take turns, with writers that follow the primary. It loses no ID, since its replication
//! is synchronous, and none is returned twice: what this shows is that the new primary, and a node that rejoins, get the lease.

use super::events::{Events, Members};
use super::plugins::provide;
use super::servers::{Servers, configure, name};
use pg_snowflake_examples::program::{Program, free_ports, program_of_server_user};
use pg_snowflake_examples::{has_program, run};
use pg_snowflake_harness::leases::Registry;
use pg_snowflake_harness::wait::{comes_true, wait_for};
use pg_snowflake_harness::{SUPERUSER, installation};
use postgres::{Config, NoTls};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "/usr/bin/pg_autoctl";

const ARE_WHOLE: &str = "SELECT count(*) = 2 FROM pgautofailover.node
                         WHERE reportedstate = goalstate AND reportedstate IN ('primary', 'secondary') AND health = 1";

#[test]
fn with_one_shard_no_id_is_returned_twice_under_pg_auto_failover() {
    if !has_program("pg_auto_failover", Path::new(PROGRAM)) || provide("auto-failover").is_none() {
        return;
    }
    let registry = Registry::start();
    let mut nodes = Nodes::start(&registry);
    let mut events = Events::start("pg_auto_failover, one shard".into(), &nodes);
    events.run("maintenance", 2, &mut nodes, |nodes| {
        let data = nodes.servers.data(nodes.primary());
        run(nodes.command().args(["enable", "maintenance", "--allow-failover", "--pgdata"]).arg(&data));
        nodes.wait_for("SELECT count(*) = 1 FROM pgautofailover.node WHERE reportedstate = 'maintenance'", "the primary is in maintenance");
        run(nodes.command().args(["disable", "maintenance", "--pgdata"]).arg(&data));
    });
    // The standby that is promoted may lack the last WAL. Then it waits for the lease.
    events.run("switchover", 2, &mut nodes, |nodes| {
        run(nodes.command().args(["perform", "switchover", "--pgdata"]).arg(nodes.monitor_data()));
    });
    // Where it has just been restarted in place, the monitor may promote the other instead.
    events.run("server killed, restarted or replaced", 2, &mut nodes, |nodes| nodes.servers.kill_postmaster(nodes.primary()));
    events.run("node killed, the other promoted", 2, &mut nodes, |nodes| {
        let killed = nodes.primary();
        nodes.nodes[killed] = None;
        nodes.servers.unlock(killed);
        // Sooner, it would be the primary again.
        let promoted = format!("SELECT reportedstate = 'wait_primary' FROM pgautofailover.node WHERE nodename = '{}'", name(1 - killed));
        nodes.wait_for(&promoted, "the other node is promoted");
        nodes.run_node(killed);
    });
    assert_eq!(events.stop(), 0);
}

/// Their sockets are their addresses. They listen on TCP ports, too, and refuse whoever connects there.
struct Nodes {
    /// `None` while it is down.
    nodes: [Option<Program>; 2],
    monitor: Option<Program>,
    monitor_port: u16,
    servers: Servers,
}

impl Nodes {
    /// Nodes that generate IDs. The second is a copy of the first.
    fn start(registry: &Registry) -> Self {
        let [monitor_port, ports @ ..] = free_ports::<3>();
        let servers = Servers::new(installation::temp_dir(), &ports);
        let mut nodes = Nodes { nodes: [None, None], monitor: None, monitor_port, servers };
        nodes.servers.init(&nodes.monitor_data());
        nodes.monitor = Some(nodes.run_program("monitor", &nodes.monitor_data(), monitor_port, &[]));
        let is_ready = || nodes.monitor_config().connect(NoTls).is_ok_and(|mut client| client.query(ARE_WHOLE, &[]).is_ok());
        assert!(comes_true(is_ready), "the monitor does not come up");
        let first = nodes.servers.data(0);
        nodes.servers.init(&first);
        let settings = [
            ("shared_preload_libraries", "pg_snowflake"),
            ("pg_snowflake.registry", &registry.conninfo()),
            ("pg_snowflake.lease", "10s"),
            ("pg_snowflake.shard_id", "5"),
        ];
        configure(&first, &settings);
        nodes.run_node(0);
        nodes.wait_for("SELECT count(*) = 1 FROM pgautofailover.node WHERE reportedstate = 'single'", "there is a node");
        nodes.run_node(1);
        nodes.wait_until_whole();
        nodes.servers.create_table(0);
        nodes
    }

    /// Has it go on if it has been killed.
    fn run_node(&mut self, node: usize) {
        let dir = self.servers.dir().display().to_string();
        let monitor = format!("postgres://autoctl_node@/pg_auto_failover?host={dir}&port={}", self.monitor_port);
        let name = name(node);
        let options = ["--monitor", &monitor, "--name", &name, "--pghost", &dir, "--listen", "127.0.0.1", "--username", SUPERUSER];
        let options = [&options[..], &["--dbname", SUPERUSER]].concat();
        self.nodes[node] = Some(self.run_program("postgres", &self.servers.data(node), self.servers.port(node), &options));
    }

    fn run_program(&self, what: &str, data: &Path, port: u16, options: &[&str]) -> Program {
        let mut program = self.command();
        program.args(["create", what, "--run", "--no-ssl", "--skip-pg-hba", "--pgport", &port.to_string()]).args(options);
        program.arg("--pgdata").arg(data).arg("--hostname").arg(self.servers.dir());
        program.arg("--pgctl").arg(installation::bindir().join("pg_ctl"));
        Program::start(program, data.with_extension("log"))
    }

    fn command(&self) -> Command {
        let dir = self.servers.dir();
        let mut program = program_of_server_user(dir);
        // Else it writes below the home folder and in /tmp, and has sockets elsewhere.
        program.envs(["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "PG_REGRESS_SOCK_DIR", "PGHOST"].map(|name| (name, dir)));
        program.arg(PROGRAM);
        program
    }

    fn monitor_data(&self) -> PathBuf {
        self.servers.dir().join("monitor")
    }

    fn monitor_config(&self) -> Config {
        let mut config = Config::new();
        config.host_path(self.servers.dir()).port(self.monitor_port).user(SUPERUSER).dbname("pg_auto_failover");
        config
    }

    /// Waits until a query of the monitor returns true.
    fn wait_for(&self, query: &str, what: &str) {
        wait_for(&mut self.monitor_config().connect(NoTls).unwrap(), query, what);
    }

    fn primary(&self) -> usize {
        self.servers.primary().expect("they are whole")
    }
}

impl Members for Nodes {
    /// Of clients that follow the primary. pg_auto_failover stops a killed primary that has recovered with a smart shutdown, which waits for
    /// sessions such as those of other writers, and the node would never return.
    fn configs(&self) -> Vec<Config> {
        let (dir, [first, second]) = (self.servers.dir().display(), [0, 1].map(|node| self.servers.port(node)));
        let conninfo =
            format!("host={dir},{dir} port={first},{second} user={SUPERUSER} dbname={SUPERUSER} target_session_attrs=read-write");
        vec![conninfo.parse().unwrap(); 2]
    }

    fn wait_until_whole(&self) {
        self.wait_for(ARE_WHOLE, "the monitor has a primary and a secondary");
        assert!(comes_true(|| self.servers.primary().is_some()), "no node has a standby");
    }
}
