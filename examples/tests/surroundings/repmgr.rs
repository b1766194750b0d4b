//! repmgr: a primary and a standby that take turns, with writers on both.

use super::events::{Events, Members};
use super::plugins::provide;
use super::servers::{Servers, configure, name};
use pg_snowflake_examples::run;
use pg_snowflake_harness::ask;
use pg_snowflake_harness::installation::{self, as_server_user};
use pg_snowflake_harness::leases::Registry;
use pg_snowflake_harness::prelude::*;
use postgres::{Config, NoTls};
use std::fs;
use tempfile::TempDir;

#[test]
fn with_one_shard_no_id_is_returned_twice_under_repmgr() {
    let Some(package) = provide("repmgr") else { return };
    let registry = Registry::start();
    let mut pair = Pair::start(package, &registry);
    let mut events = Events::start("repmgr, one shard".into(), &pair);
    events.run("stopped, standby promoted", 3, &mut pair, |pair| {
        pair.control_server(pair.primary, &["-m", "fast", "stop"]);
        pair.promote();
    });
    events.run("killed, standby promoted", 2, &mut pair, |pair| {
        pair.servers.kill_postmaster(pair.primary);
        pair.servers.unlock(pair.primary);
        pair.promote();
    });
    assert_eq!(events.stop(), 0);
}

/// Two servers, each with a configuration of its own in its data directory.
struct Pair {
    package: TempDir,
    servers: Servers,
    primary: usize,
}

impl Pair {
    fn start(package: TempDir, registry: &Registry) -> Self {
        // The numbers in the names of their sockets, which are in a folder of their own.
        let pair = Pair { package, servers: Servers::new(installation::temp_dir(), &[5432, 5433]), primary: 0 };
        let bindir = installation::bindir();
        pair.servers.init(&pair.servers.data(0));
        let settings = [
            ("listen_addresses", ""),
            ("wal_log_hints", "on"), // for pg_rewind
            ("wal_keep_size", "256MB"),
            ("shared_preload_libraries", "pg_snowflake"),
            ("pg_snowflake.registry", &registry.conninfo()),
            ("pg_snowflake.shard_id", "5"),
        ];
        configure(&pair.servers.data(0), &settings);
        for member in [0, 1] {
            let (number, data) = (member + 1, pair.servers.data(member));
            let start = format!("{}/pg_ctl -D {} -l {}.log -w start", bindir.display(), data.display(), data.display());
            let lines = [
                ("node_id", number.to_string()),
                ("node_name", name(member)),
                ("data_directory", data.display().to_string()),
                ("pg_bindir", bindir.display().to_string()),
                ("conninfo", pair.servers.conninfo(member)),
                ("service_start_command", start),
            ];
            let text: String = lines.iter().map(|(setting, value)| format!("{setting} = '{value}'\n")).collect();
            fs::write(pair.servers.dir().join(name(member) + ".conf"), text).unwrap();
            if member == 1 {
                let source = pair.servers.conninfo(0);
                pair.control(1, &["-d", &source, "standby", "clone", "--fast-checkpoint"]);
            }
            configure(&data, &[("port", &pair.servers.port(member).to_string()), ("pg_snowflake.node", &name(member))]);
            pair.control_server(member, &["-l", &format!("{}.log", data.display()), "-w", "start"]);
            pair.control(member, &[["primary", "standby"][member], "register"]);
        }
        pair.servers.create_table(0);
        pair
    }

    /// Promotes the standby in place of a primary that is down, which follows then, with its own configuration.
    fn promote(&mut self) {
        let former = self.primary;
        self.primary = 1 - former;
        self.control(self.primary, &["standby", "promote"]);
        let primary = self.servers.conninfo(self.primary);
        self.control(former, &["-d", &primary, "node", "rejoin", "--force-rewind", "--config-files=postgresql.conf"]);
        let mut client = self.configs()[former].connect(NoTls).unwrap();
        assert_eq!(ask::printed(&mut client, "SHOW pg_snowflake.node"), name(former));
    }

    fn control(&self, member: usize, arguments: &[&str]) {
        let program = format!("package/usr/lib/postgresql/{}/bin/repmgr", installation::major(installation::bindir()));
        let mut repmgr = as_server_user(self.package.path().join(program), self.servers.dir());
        repmgr.env("HOME", self.servers.dir()).arg("-f").arg(self.servers.dir().join(name(member) + ".conf"));
        run(repmgr.args(arguments));
    }

    fn control_server(&self, member: usize, arguments: &[&str]) {
        run(as_server_user(installation::bindir().join("pg_ctl"), self.servers.dir())
            .arg("-D")
            .arg(self.servers.data(member))
            .args(arguments));
    }
}

impl Members for Pair {
    fn configs(&self) -> Vec<Config> {
        self.servers.configs()
    }

    fn wait_until_whole(&self) {
        assert!(comes_true(|| self.servers.primary() == Some(self.primary)), "{} has no standby", name(self.primary));
    }
}
