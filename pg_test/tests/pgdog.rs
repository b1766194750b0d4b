//! PgDog, <https://github.com/pgdogdev/pgdog>, in front of two servers that generate homed IDs: where it sends a statement that names an
//! ID. The variable PGDOG names the program.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::prelude::*;
use postgres::{Config, NoTls};
use std::fs::{File, write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use tempfile::TempDir;

/// At first, and after new ones have been added. The IDs are homed modulo 16, which is a multiple of both.
const SHARDS: usize = 2;
const MORE_SHARDS: usize = 4;

/// Each shard has a `shard_id` of its own.
const TABLES: [&str; 3] = [
    "CREATE SEQUENCE ids",
    "CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval_homed('ids', snowflake_current_shard(), 16),
                         made_on int NOT NULL DEFAULT snowflake_current_shard(), body text)",
    "CREATE TABLE plain (id bigint PRIMARY KEY DEFAULT snowflake_nextval('ids', snowflake_current_shard()),
                         made_on int NOT NULL DEFAULT snowflake_current_shard())",
];

#[test]
fn a_statement_goes_to_the_shard_that_made_its_id() {
    let Some(program) = std::env::var_os("PGDOG").map(PathBuf::from) else {
        left_out("where PgDog sends homed IDs", "PgDog (PGDOG=PROGRAM)");
        return;
    };
    let mut servers: Vec<Cluster> = (0..SHARDS).map(start_server).collect();
    let pgdog = PgDog::start(&program, SHARDS);
    let mut router = pgdog.connect();
    // PgDog sends DDL to all shards.
    TABLES.iter().for_each(|statement| run(&mut router, statement));
    for server in &servers {
        let rows = "INSERT INTO posts SELECT FROM generate_series(1, 1000); INSERT INTO plain SELECT FROM generate_series(1, 1000)";
        run(&mut server.connect(), rows);
    }
    for _ in 0..200 {
        // Not prepared: PgDog takes a turn for preparing a statement, too.
        run(&mut router, "INSERT INTO posts (body) VALUES ('new')");
    }
    let rows: Vec<usize> = rows_of(&servers, "posts").iter().map(Vec::len).collect();
    assert_eq!(rows, [1100, 1100]);
    each_row_is_found_on_its_server_alone(&servers, &mut router);
    let found = found_by_id(&rows_of(&servers, "plain"), &mut router, "plain");
    assert!((1200..2800).contains(&found), "{found} of 4,000 statements find an ID that is not homed");
    rows_are_inserted_updated_and_deleted_on_their_server(&servers, &mut router);

    for shard in SHARDS..MORE_SHARDS {
        let server = start_server(shard);
        run(&mut server.connect(), &[&TABLES[..], &["INSERT INTO posts SELECT FROM generate_series(1, 1000)"]].concat().join(";"));
        servers.push(server);
    }
    let pgdog = PgDog::start(&program, MORE_SHARDS);
    each_row_is_found_on_its_server_alone(&servers, &mut pgdog.connect());
}

/// Reads every row by its ID through PgDog, and checks where each statement arrives.
fn each_row_is_found_on_its_server_alone(servers: &[Cluster], router: &mut Client) {
    let ids = rows_of(servers, "posts");
    let before = asked(servers);
    let found = found_by_id(&ids, router, "posts");
    let asked: Vec<usize> = asked(servers).iter().zip(before).map(|(now, then)| now - then).collect();
    let statements: Vec<usize> = ids.iter().map(|ids| 2 * ids.len()).collect();
    assert_eq!((found, asked), (statements.iter().sum(), statements));
}

fn rows_are_inserted_updated_and_deleted_on_their_server(servers: &[Cluster], router: &mut Client) {
    for (number, server) in servers.iter().enumerate() {
        let ids = "SELECT snowflake_nextvals_homed('ids', snowflake_current_shard(), 16, 100)";
        for id in take(&mut server.connect(), ids) {
            router.execute("INSERT INTO posts (id) VALUES ($1)", &[&id]).expect("a new ID");
            let update = "UPDATE posts SET made_on = made_on WHERE id = $1 RETURNING made_on";
            let row = router.query_one(update, &[&id]).expect("the row is found");
            assert_eq!(row.get::<_, i32>(0), number as i32, "{id}");
            assert_eq!(router.execute("DELETE FROM posts WHERE id = $1", &[&id]).expect("the row is found"), 1, "{id}");
        }
    }
}

/// How many statements find the row of an ID, two for each ID. The IDs are those of each server.
fn found_by_id(ids: &[Vec<i64>], router: &mut Client, table: &str) -> usize {
    let by_id = format!("SELECT made_on FROM {table} WHERE id = ");
    let by_parameter = router.prepare(&format!("{by_id}$1")).expect("a table of all shards");
    let mut found = 0;
    for (server, ids) in ids.iter().enumerate() {
        for id in ids {
            let as_constant = printed(router, &format!("{by_id}{id}"));
            found += usize::from(as_constant == server.to_string());
            let row = router.query_opt(&by_parameter, &[id]).expect("a table of all shards");
            found += usize::from(row.is_some_and(|row| row.get::<_, i32>(0) == server as i32));
        }
    }
    found
}

/// PgDog connects by TCP. Each server has an address of the loopback network to itself.
fn address_of(shard: usize) -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{high}.{low}.{}", shard + 2)
}

fn start_server(shard: usize) -> Cluster {
    Cluster::builder()
        .setting("listen_addresses", &address_of(shard))
        .setting("pg_snowflake.shard_id", &shard.to_string())
        .setting("log_statement", "all")
        .start()
}

/// The IDs of that table on each server.
fn rows_of(servers: &[Cluster], table: &str) -> Vec<Vec<i64>> {
    let ids = format!("SELECT id FROM {table}");
    servers.iter().map(|server| take(&mut server.connect(), &ids)).collect()
}

/// How many statements that name the ID of a post each server has logged.
fn asked(servers: &[Cluster]) -> Vec<usize> {
    let statement = ": SELECT made_on FROM posts WHERE id = ";
    servers.iter().map(|server| server.log().matches(statement).count()).collect()
}

/// PgDog, which ends with the test.
struct PgDog {
    port: u16,
    process: Child,
    dir: TempDir,
}

impl PgDog {
    fn start(program: &Path, shards: usize) -> PgDog {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let mut configuration = format!("[general]\nhost = '127.0.0.1'\nport = {port}\nauth_type = 'trust'\n");
        // Without their names, PgDog would send an INSERT without a key to all shards.
        for table in ["posts", "plain"] {
            configuration +=
                &format!("[[sharded_tables]]\ndatabase = '{SUPERUSER}'\nname = '{table}'\ncolumn = 'id'\ndata_type = 'bigint'\n");
        }
        for shard in 0..shards {
            configuration += &format!("[[databases]]\nname = '{SUPERUSER}'\nhost = '{}'\nshard = {shard}\n", address_of(shard));
        }
        let users = format!("[[users]]\nname = '{SUPERUSER}'\ndatabase = '{SUPERUSER}'\npassword = 'any'\n");
        let dir = tempfile::tempdir().expect("a folder can be made");
        let file = |name| dir.path().join(name);
        write(file("pgdog.toml"), configuration).expect("a new folder");
        write(file("users.toml"), users).expect("a new folder");
        let log = File::create(file("log")).expect("a new folder");
        let mut command = Command::new(program);
        command.current_dir(dir.path()).stdout(log.try_clone().expect("a file")).stderr(log);
        // SAFETY: the closure makes a system call only and touches no memory of this process.
        unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
        let process = command.spawn().unwrap_or_else(|error| panic!("{program:?}: {error}"));
        let mut pgdog = PgDog { port, process, dir };
        let is_up = comes_true(|| {
            let ended = pgdog.process.try_wait().expect("a child");
            assert!(ended.is_none(), "PgDog ended:\n{}", pgdog.log());
            pgdog.config().connect(NoTls).is_ok()
        });
        assert!(is_up, "PgDog takes no connections:\n{}", pgdog.log());
        pgdog
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user(SUPERUSER).dbname(SUPERUSER).password("any");
        config
    }

    fn connect(&self) -> Client {
        self.config().connect(NoTls).expect("PgDog takes connections")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PgDog {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("log of PgDog:\n{}", self.log());
        }
    }
}
