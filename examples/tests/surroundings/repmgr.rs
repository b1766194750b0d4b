//! repmgr: a primary and a standby that take turns, with writers on both.

use super::events::{Events, Members, end_server, kill_at_once, postmaster};
use super::plugins::provide;
use pg_snowflake_examples::run;
use pg_snowflake_harness::installation::{self, as_server_user};
use pg_snowflake_harness::leases::Registry;
use pg_snowflake_harness::process::{children_of, wait_until_gone};
use pg_snowflake_harness::wait::comes_true;
use pg_snowflake_harness::{SUPERUSER, ask};
use postgres::{Config, NoTls};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
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
        let killed = postmaster(&pair.data(pair.primary)).expect("it runs");
        let children = children_of(killed);
        kill_at_once(killed);
        children.into_iter().for_each(wait_until_gone);
        // To the next postgres there, an orphan that process 1 has not reaped yet is running.
        fs::remove_file(pair.data(pair.primary).join("postmaster.pid")).unwrap();
        pair.promote();
    });
    assert_eq!(events.stop(), 0);
}

/// Two servers, each with a configuration of its own in its data directory.
struct Pair {
    package: TempDir,
    dir: TempDir,
    primary: usize,
}

impl Pair {
    fn start(package: TempDir, registry: &Registry) -> Self {
        let pair = Pair { package, dir: installation::temp_dir(), primary: 0 };
        let bindir = installation::bindir();
        let mut initdb = as_server_user(bindir.join("initdb"), pair.dir.path());
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"]);
        run(initdb.arg(pair.data(0)));
        pair.configure(
            0,
            &[
                ("unix_socket_directories", &pair.dir.path().display().to_string()),
                ("listen_addresses", ""),
                ("wal_log_hints", "on"), // for pg_rewind
                ("wal_keep_size", "256MB"),
                ("fsync", "off"),
                ("shared_buffers", "32MB"),
                ("shared_preload_libraries", "pg_snowflake"),
                ("pg_snowflake.registry", &registry.conninfo()),
                ("pg_snowflake.shard_id", "5"),
            ],
        );
        for member in [0, 1] {
            let (number, data) = (member + 1, pair.data(member));
            let start = format!("{}/pg_ctl -D {} -l {}.log -w start", bindir.display(), data.display(), data.display());
            let lines = [
                ("node_id", number.to_string()),
                ("node_name", name(member)),
                ("data_directory", data.display().to_string()),
                ("pg_bindir", bindir.display().to_string()),
                ("conninfo", pair.conninfo(member)),
                ("service_start_command", start),
            ];
            let text: String = lines.iter().map(|(setting, value)| format!("{setting} = '{value}'\n")).collect();
            fs::write(pair.dir.path().join(name(member) + ".conf"), text).unwrap();
            if member == 1 {
                let source = pair.conninfo(0);
                pair.control(1, &["-d", &source, "standby", "clone", "--fast-checkpoint"]);
            }
            pair.configure(member, &[("port", &port(member).to_string()), ("pg_snowflake.node", &name(member))]);
            let log = format!("{}.log", data.display());
            pair.control_server(member, &["-l", &log, "-w", "start"]);
            pair.control(member, &[["primary", "standby"][member], "register"]);
        }
        let mut client = pair.configs()[0].connect(NoTls).unwrap();
        // Without a key, so that a duplicate would be returned.
        ask::run(&mut client, "CREATE EXTENSION pg_snowflake; CREATE SEQUENCE posts_id_seq");
        ask::run(&mut client, "CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('posts_id_seq'))");
        pair
    }

    /// Adds lines, which have priority over those above.
    fn configure(&self, member: usize, settings: &[(&str, &str)]) {
        let mut file = OpenOptions::new().append(true).open(self.data(member).join("postgresql.conf")).unwrap();
        settings.iter().for_each(|(name, value)| writeln!(file, "{name} = '{value}'").unwrap());
    }

    /// Promotes the standby in place of a primary that is down, which follows then, with its own configuration.
    fn promote(&mut self) {
        let former = self.primary;
        self.primary = 1 - former;
        self.control(self.primary, &["standby", "promote"]);
        let primary = self.conninfo(self.primary);
        self.control(former, &["-d", &primary, "node", "rejoin", "--force-rewind", "--config-files=postgresql.conf"]);
        let mut client = self.configs()[former].connect(NoTls).unwrap();
        assert_eq!(ask::printed(&mut client, "SHOW pg_snowflake.node"), name(former));
    }

    fn control(&self, member: usize, arguments: &[&str]) {
        let program = format!("package/usr/lib/postgresql/{}/bin/repmgr", installation::major(installation::bindir()));
        let mut repmgr = as_server_user(self.package.path().join(program), self.dir.path());
        repmgr.env("HOME", self.dir.path()).arg("-f").arg(self.dir.path().join(name(member) + ".conf"));
        run(repmgr.args(arguments));
    }

    fn control_server(&self, member: usize, arguments: &[&str]) {
        run(as_server_user(installation::bindir().join("pg_ctl"), self.dir.path()).arg("-D").arg(self.data(member)).args(arguments));
    }

    fn conninfo(&self, member: usize) -> String {
        format!("host={} port={} user={SUPERUSER} dbname={SUPERUSER}", self.dir.path().display(), port(member))
    }

    fn data(&self, member: usize) -> PathBuf {
        self.dir.path().join(name(member))
    }
}

impl Members for Pair {
    fn configs(&self) -> Vec<Config> {
        [0, 1].map(|member| self.conninfo(member).parse().unwrap()).into()
    }

    fn wait_until_whole(&self) {
        let streams = "SELECT FROM pg_stat_replication WHERE state = 'streaming'";
        let is_whole =
            || self.configs()[self.primary].connect(NoTls).is_ok_and(|mut client| client.query(streams, &[]).unwrap().len() == 1);
        assert!(comes_true(is_whole), "{} has no standby", name(self.primary));
    }
}

impl Drop for Pair {
    /// The servers outlive the programs that have started them.
    fn drop(&mut self) {
        [0, 1].into_iter().for_each(|member| end_server(&self.data(member)));
    }
}

/// The number in the name of a socket, which is in a folder of its own.
fn port(member: usize) -> u16 {
    [5432, 5433][member]
}

fn name(member: usize) -> String {
    format!("db-{}", member + 1)
}
