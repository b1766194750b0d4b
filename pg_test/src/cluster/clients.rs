//! Connections, databases, and PostgreSQL's own clients.

use super::{Cluster, SUPERUSER};
use crate::wait::comes_true;
use crate::{installation, release};
use postgres::{Client, Config, NoTls};
use std::process::Command;

impl Cluster {
    /// A superuser's connection to the database `postgres`.
    pub fn connect(&self) -> Client {
        self.connect_to(SUPERUSER, SUPERUSER)
    }

    pub fn connect_to(&self, role: &str, database: &str) -> Client {
        self.config(role, database).connect(NoTls).unwrap_or_else(|error| panic!("{role} cannot connect to {database}: {error:?}"))
    }

    /// [`Cluster::connect`] on a server that may be restarting after the crash of a backend.
    pub fn connect_again(&self) -> Client {
        let mut client = None;
        let is_up = comes_true(|| {
            client = self.config(SUPERUSER, SUPERUSER).connect(NoTls).ok();
            client.is_some()
        });
        assert!(is_up, "the server does not come up:\n{}", self.log());
        client.expect("connected")
    }

    /// A connection of that role to the database `postgres` with these options, as from `PGOPTIONS`.
    pub fn connect_with_options(&self, role: &str, options: &str) -> Result<Client, postgres::Error> {
        self.config(role, SUPERUSER).options(options).connect(NoTls)
    }

    /// A superuser's connection to a new database of that name, with the extension. An existing one is dropped.
    pub fn fresh_database(&self, name: &str) -> Client {
        let mut client = self.empty_database(name);
        self.create_extension(&mut client);
        client
    }

    /// A superuser's connection to a new database of that name, restored from that dump. An existing one is dropped.
    pub fn restored_database(&self, name: &str, dump: &str) -> Client {
        let client = self.empty_database(name);
        self.psql(name, dump);
        client
    }

    /// A superuser's connection to a new, empty database of that name. An existing one is dropped.
    pub fn empty_database(&self, name: &str) -> Client {
        let mut client = self.connect();
        for statement in [format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name} TEMPLATE template0")] {
            client.batch_execute(&statement).expect("a superuser makes databases");
        }
        self.connect_to(SUPERUSER, name)
    }

    pub(super) fn create_extension(&self, client: &mut Client) {
        let create = match &self.options.release {
            None => "CREATE EXTENSION pg_snowflake".to_owned(),
            Some(version) => {
                release::rehearsal::install_all();
                format!("CREATE EXTENSION pg_snowflake VERSION '{version}'")
            }
        };
        client.batch_execute(&create).expect("the extension can be created");
    }

    /// Runs a script with psql in that database, stops at its first error, and returns what it printed.
    pub fn psql(&self, database: &str, script: &str) -> String {
        self.psql_as(SUPERUSER, database, script)
    }

    /// As [`Cluster::psql`], by that role.
    pub fn psql_as(&self, role: &str, database: &str, script: &str) -> String {
        let mut psql = self.client_command("psql", role, database);
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]);
        let output = installation::run(&mut psql, script.as_bytes());
        String::from_utf8(output).expect("psql prints UTF-8")
    }

    pub fn dump(&self, database: &str) -> String {
        self.dump_as(SUPERUSER, database)
    }

    pub fn dump_as(&self, role: &str, database: &str) -> String {
        let dump = installation::run(&mut self.pg_dump(role, database), b"");
        String::from_utf8(dump).expect("the dump is UTF-8")
    }

    pub fn pg_dump(&self, role: &str, database: &str) -> Command {
        self.client_command("pg_dump", role, database)
    }

    /// Runs a script with pgbench in that database, or with that connection string, and returns what it printed.
    pub fn pgbench(&self, database: &str, options: &[String], script: &str) -> String {
        let mut pgbench = self.command("pgbench");
        pgbench.arg("--host").arg(self.dir.path());
        pgbench.args(["--username", SUPERUSER, "--no-vacuum", "--file=-"]).args(options);
        let output = installation::run(pgbench.arg(database), script.as_bytes());
        String::from_utf8(output).expect("pgbench prints UTF-8")
    }

    fn client_command(&self, program: &str, role: &str, database: &str) -> Command {
        let mut command = self.command(program);
        command.arg("--host").arg(self.dir.path()).args(["--username", role, "--dbname", database]);
        command
    }

    pub fn config(&self, role: &str, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(self.dir.path()).user(role).dbname(database);
        config
    }
}
