//! Three members of Patroni, and an etcd.

use super::Shards;
use crate::events::Members;
use crate::servers::{Servers, name, postmaster};
use nix::unistd::Pid;
use pg_snowflake_examples::program::{Program, free_ports, program, program_of_server_user};
use pg_snowflake_examples::{has_program, packages, run, with_pip};
use pg_snowflake_harness::installation::as_server_user;
use pg_snowflake_harness::leases::Registry;
use pg_snowflake_harness::process::children_of;
use pg_snowflake_harness::wait::comes_true;
use pg_snowflake_harness::{SUPERUSER, installation};
use postgres::Config;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The last major that Debian's Patroni, 3.0.2, knows.
const LAST_MAJOR_OF_DEBIAN: u32 = 15;

/// A Patroni.
pub struct Version {
    /// The packages of PyPI; `None` for Debian's.
    python: Option<TempDir>,
}

impl Version {
    pub fn of_debian() -> Option<Self> {
        let knows_major = installation::major(installation::bindir()) <= LAST_MAJOR_OF_DEBIAN;
        if !knows_major {
            installation::left_out("Debian's Patroni", &format!("PostgreSQL {LAST_MAJOR_OF_DEBIAN}, the last that it knows"));
        }
        (knows_major && has_program("Debian's Patroni", Path::new("/usr/bin/patroni"))).then_some(Version { python: None })
    }

    /// The pinned one.
    pub fn of_pypi() -> Option<Self> {
        let python = with_pip("Patroni of PyPI", "surroundings/patroni")?;
        installation::chown_to_server_user(python.path());
        Some(Version { python: Some(python) })
    }

    pub fn number(&self) -> String {
        let said = run(self.command(Command::new("env"), "patroni").arg("--version"));
        said.trim().trim_start_matches("patroni ").to_owned()
    }

    /// A program of it as the argument of a command that runs its arguments. The packages of PyPI run on any Python, such as the first one
    /// that the servers' OS user may run.
    fn command(&self, mut command: Command, name: &str) -> Command {
        match &self.python {
            None => command.arg(Path::new("/usr/bin").join(name)),
            Some(python) => {
                let packages = python.path().join("packages");
                command.env("PYTHONPATH", &packages).arg("python3").arg(packages.join("bin").join(name))
            }
        };
        command
    }
}

/// The name of the cluster.
const SCOPE: &str = "cluster";

const MEMBERS: usize = 3;

pub struct Patronis {
    version: Version,
    /// Of each member; `None` while it is down.
    patronis: [Option<Program>; MEMBERS],
    rest_ports: [u16; MEMBERS],
    etcd: Program,
    password: String,
    servers: Servers,
}

impl Patronis {
    /// A cluster that generates IDs.
    pub fn start(version: Version, shards: Shards, registry: &Registry) -> Option<Self> {
        let dir = packages("Patroni", &["etcd-server"])?;
        let [client, peer, rest_ports @ .., p1, p2, p3] = free_ports::<8>();
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let mut etcd = program(&dir, "etcd");
        etcd.args(["--data-dir=etcd", "--unsafe-no-fsync"]);
        etcd.args([format!("--listen-client-urls={}", url(client)), format!("--advertise-client-urls={}", url(client))]);
        etcd.args([format!("--listen-peer-urls={}", url(peer)), format!("--initial-advertise-peer-urls={}", url(peer))]);
        etcd.arg(format!("--initial-cluster=default={}", url(peer)));
        let password = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap().trim().to_owned();
        let mut members = Patronis {
            version,
            patronis: [const { None }; MEMBERS],
            rest_ports,
            etcd: Program::start(etcd, dir.path().join("etcd.log")),
            password,
            servers: Servers::new(dir, &[p1, p2, p3]),
        };
        for member in 0..MEMBERS {
            let configuration = members.configuration(member, client, shards, registry);
            fs::write(members.file(member, "yml"), configuration.to_string()).unwrap(); // JSON is YAML
            members.start_member(member);
        }
        members.wait_until_whole();
        members.servers.create_table(members.leader());
        Some(members)
    }

    fn configuration(&self, member: usize, etcd: u16, shards: Shards, registry: &Registry) -> Value {
        let address = |port: u16| format!("127.0.0.1:{port}");
        let (password, folder) = (&self.password, self.servers.dir());
        let leases = json!({"pg_snowflake.registry": registry.conninfo(), "pg_snowflake.lease": "10s"});
        let (of_cluster, of_member) = match shards {
            Shards::WithoutLeases => (json!({"pg_snowflake.shard_id": 5}), json!({})),
            Shards::One => (merged([leases, json!({"pg_snowflake.node": "cluster", "pg_snowflake.shard_id": 5})]), json!({})),
            Shards::OnePerMember => (leases, json!({"pg_snowflake.node": name(member), "pg_snowflake.shard_id": 21 + member})),
        };
        // As for all servers of the tests.
        let usual = json!({"shared_preload_libraries": "pg_snowflake", "shared_buffers": "32MB", "fsync": "off", "log_min_messages": "log", "log_line_prefix": "%m [%p] "});
        json!({
            "scope": SCOPE,
            "name": name(member),
            "restapi": {
                "listen": address(self.rest_ports[member]),
                "connect_address": address(self.rest_ports[member]),
                "authentication": {"username": SUPERUSER, "password": password},
            },
            "etcd3": {"host": address(etcd)},
            "bootstrap": {
                "dcs": {
                    "ttl": 20,
                    "loop_wait": 5,
                    "retry_timeout": 5,
                    "postgresql": {"use_pg_rewind": true, "parameters": merged([usual, of_cluster])},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
            },
            "postgresql": {
                "listen": address(self.servers.port(member)),
                "connect_address": address(self.servers.port(member)),
                "data_dir": self.servers.data(member),
                "bin_dir": installation::bindir(),
                "use_unix_socket": true,
                "authentication": {
                    "superuser": {"username": SUPERUSER, "password": password},
                    "replication": {"username": "replicator", "password": password},
                },
                "parameters": merged([json!({"unix_socket_directories": folder}), of_member]),
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"],
            },
        })
    }

    pub fn start_member(&mut self, member: usize) {
        let mut patroni = self.version.command(program_of_server_user(self.servers.dir()), "patroni");
        patroni.arg(self.file(member, "yml"));
        self.patronis[member] = Some(Program::start(patroni, self.file(member, "log")));
    }

    pub fn leader(&self) -> usize {
        self.present_leader().expect("a leader")
    }

    pub fn replica(&self) -> usize {
        (self.leader() + 1) % MEMBERS
    }

    pub fn wait_for_another_leader(&self, than: usize) {
        let is_other = || self.present_leader().is_some_and(|leader| leader != than);
        assert!(comes_true(is_other), "{}", self.cluster());
    }

    fn present_leader(&self) -> Option<usize> {
        let cluster = self.cluster();
        let mut members = cluster["members"].as_array()?.iter();
        let leader = members.find(|member| member["role"] == "leader")?;
        (0..MEMBERS).find(|&member| leader["name"] == name(member))
    }

    /// What a member says of the cluster; null if none answers.
    fn cluster(&self) -> Value {
        let ask = |port| minreq::get(format!("http://127.0.0.1:{port}/cluster")).with_timeout(5).send().ok();
        let answer = self.rest_ports.iter().find_map(ask);
        answer.and_then(|answer| serde_json::from_slice(answer.as_bytes()).ok()).unwrap_or_default()
    }

    pub fn switch_over(&self) {
        self.switch_over_to(self.replica());
    }

    pub fn switch_over_to(&self, candidate: usize) {
        self.control(&["switchover", SCOPE, "--candidate", &name(candidate), "--leader", &name(self.leader()), "--force"]);
    }

    /// Makes it a copy of the leader again.
    pub fn reinitialize(&self, replica: usize) {
        self.control(&["reinit", SCOPE, &name(replica), "--force", "--wait"]);
        self.wait_until_whole();
    }

    /// Changes the dynamic configuration.
    pub fn set(&self, changes: &[&str]) {
        let changes = changes.iter().flat_map(|change| ["--set", change]);
        self.control(&["edit-config", SCOPE, "--force"].into_iter().chain(changes).collect::<Vec<_>>());
    }

    /// Runs patronictl, again for as long as it refuses.
    fn control(&self, arguments: &[&str]) {
        let mut said = String::new();
        let is_done = || {
            let mut patronictl = self.version.command(as_server_user("env", self.servers.dir()), "patronictl");
            let output = patronictl.arg("-c").arg(self.file(0, "yml")).args(arguments).stdin(Stdio::null()).output().unwrap();
            said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            output.status.success()
        };
        assert!(comes_true(is_done), "patronictl {arguments:?}: {said}");
    }

    pub fn kill_postmaster(&self) {
        self.servers.kill_postmaster(self.leader());
    }

    /// Kills both of the leader, and returns which member that is.
    pub fn kill_patroni_and_server(&mut self) -> usize {
        let leader = self.leader();
        self.patronis[leader] = None;
        self.servers.kill_postmaster(leader);
        leader
    }

    /// Patroni, the postmaster, and its children.
    pub fn processes_of(&self, member: usize) -> Vec<Pid> {
        let patroni = self.patronis[member].as_ref().expect("it runs").pid();
        let postmaster = postmaster(&self.servers.data(member)).expect("it runs");
        [vec![Pid::from_raw(patroni), postmaster], children_of(postmaster)].concat()
    }

    pub fn etcd(&self) -> Pid {
        Pid::from_raw(self.etcd.pid())
    }

    /// How often pg_rewind has begun.
    pub fn rewinds(&self) -> usize {
        self.patronis.iter().flatten().map(|patroni| patroni.log().matches("running pg_rewind").count()).sum()
    }

    fn file(&self, member: usize, extension: &str) -> PathBuf {
        self.servers.dir().join(format!("{}.{extension}", name(member)))
    }
}

impl Members for Patronis {
    fn configs(&self) -> Vec<Config> {
        self.servers.configs()
    }

    fn wait_until_whole(&self) {
        let is_whole = || {
            let cluster = self.cluster();
            let members = cluster["members"].as_array().map_or(&[][..], Vec::as_slice);
            let is_up = |member: &Value| ["running", "streaming"].iter().any(|state| member["state"] == *state);
            let timeline = |member: &Value| member["timeline"].as_i64();
            members.len() == MEMBERS
                && members.iter().all(|member| is_up(member) && timeline(member) == timeline(&members[0]))
                && members.iter().filter(|member| member["role"] == "leader").count() == 1
        };
        assert!(comes_true(is_whole), "{}", self.cluster());
    }
}

fn merged<const N: usize>(objects: [Value; N]) -> Value {
    objects.into_iter().flat_map(|object| object.as_object().cloned().unwrap_or_default()).collect()
}
