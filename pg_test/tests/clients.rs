//! What the widely used clients make of an id: each reads and writes a bigint column and a snowflake column, by the
//! small programs in `clients/`.
//!
//! A client is installed into a temporary folder from the registry where its users get it. Where a machine has no
//! interpreter or installer for one, that client is left out, and a line of the output says so. One that is there
//! and does not install is a failure.

use pg_snowflake_servertest::left_out::left_out;
use pg_snowflake_servertest::{Cluster, SUPERUSER};
use std::io;
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, thread};
use tempfile::TempDir;

#[path = "../clients/rust/read_write.rs"]
mod tokio_postgres_program;

/// Debian's package of the JDBC driver.
const JDBC_PACKAGE: &str = "libpostgresql-jdbc-java";

#[test]
fn psycopg_reads_and_writes_both_column_types() {
    if !has("psycopg", "python3 with pip", "python3", &["-m", "pip", "--version"]) {
        return;
    }
    let dir = copy_of("python");
    run(command("python3", dir.path()).args([
        "-m",
        "pip",
        "install",
        "--requirement=requirements.txt",
        "--target=packages",
        "--no-compile",
    ]));

    let cluster = cluster_with_tables();
    run(client(command("python3", dir.path()), &cluster)
        .env("PYTHONPATH", "packages")
        .arg("read_write.py"));
    assert_both_tables_are_written(&cluster);
}

#[test]
fn node_postgres_reads_and_writes_both_column_types() {
    let Some(dir) = node_postgres() else { return };
    let cluster = cluster_with_tables();
    run(client(command("node", dir.path()), &cluster).arg("read_write.js"));
    assert_both_tables_are_written(&cluster);
}

#[test]
fn a_snowflake_survives_json_and_javascript_and_a_bigint_does_not() {
    let Some(dir) = node_postgres() else { return };
    let cluster = cluster_with_tables();
    let said = run(client(command("node", dir.path()), &cluster).arg("json.js"));
    // The program has checked it; this is that it got so far.
    assert!(said.contains("bigint 4034936746192933889 as 4034936746192934000"), "{said}");
}

#[test]
fn jdbc_reads_and_writes_both_column_types() {
    let is_there = has("JDBC", "Java development kit", "javac", &["-version"])
        && has(
            "JDBC",
            &format!("{JDBC_PACKAGE} in apt's lists"),
            "apt-cache",
            &["show", JDBC_PACKAGE],
        );
    if !is_there {
        return;
    }
    let dir = copy_of("java");
    run(command("apt-get", dir.path()).args(["download", JDBC_PACKAGE]));
    run(command("dpkg-deb", dir.path())
        .arg("--extract")
        .arg(package_in(dir.path()))
        .arg("package"));

    let cluster = cluster_with_tables();
    run(client(command("java", dir.path()), &cluster)
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", tcp_port_for_one_connection(&cluster).to_string())
        .args(["-cp", "package/usr/share/java/postgresql.jar", "ReadWrite.java"]));
    assert_both_tables_are_written(&cluster);
}

#[test]
fn tokio_postgres_reads_and_writes_both_column_types() {
    let cluster = cluster_with_tables();
    let mut config = tokio_postgres::Config::new();
    config.host_path(cluster.dir()).user(SUPERUSER).dbname(SUPERUSER);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(tokio_postgres_program::read_and_write(&config))
        .unwrap();
    assert_both_tables_are_written(&cluster);
}

/// A server with the tables that the programs use.
fn cluster_with_tables() -> Cluster {
    let cluster = Cluster::new();
    cluster.psql(SUPERUSER, include_str!("../clients/schema.sql"));
    cluster
}

/// Checks that a program did write, whatever it says: one new id, of shard 5, and one that it brought itself.
fn assert_both_tables_are_written(cluster: &Cluster) {
    let mut client = cluster.connect();
    for table in ["posts", "notes"] {
        let query = format!(
            "SELECT array_agg(body || ' ' || snowflake_shard_id(id) ORDER BY body),
                    max(id::bigint) FILTER (WHERE body = 'old') FROM {table}"
        );
        let row = client.query_one(&query, &[]).unwrap();
        assert_eq!(row.get::<_, Vec<String>>(0), ["new 5", "old 5"], "{table}");
        assert_eq!(row.get::<_, i64>(1), 4034936746192933889, "{table}");
    }
}

/// A folder with the programs for Node.js and node-postgres, or none where there is no npm.
fn node_postgres() -> Option<TempDir> {
    if !has("node-postgres", "npm", "npm", &["--version"]) {
        return None;
    }
    let dir = copy_of("node");
    run(command("npm", dir.path()).args(["ci", "--prefer-offline", "--no-audit", "--no-fund"]));
    Some(dir)
}

/// Whether a command succeeds that shows what a client needs; where it does not, says that the client is left out.
fn has(client: &str, need: &str, program: &str, arguments: &[&str]) -> bool {
    let has = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has {
        left_out(client, &format!("{need} on this machine"));
    }
    has
}

/// A temporary folder with the files of that folder of `clients/`.
fn copy_of(folder: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(folder);
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        // What somebody who tried a program by hand has installed there stays there.
        if path.is_file() {
            fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    dir
}

/// A program to be run in `dir`.
fn command(program: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null());
    command
}

/// A program that is told where the cluster is, as psql would be, and nothing else about PostgreSQL.
fn client(mut program: Command, cluster: &Cluster) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            program.env_remove(name);
        }
    }
    program
        .env("PGHOST", cluster.dir())
        .env("PGPORT", "5432")
        .env("PGUSER", SUPERUSER)
        .env("PGDATABASE", SUPERUSER);
    program
}

/// Runs a command to its end, and gives its standard output. What it wrote is shown where the test fails.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}", output.status);
    stdout
}

/// The package that apt put into `dir`.
fn package_in(dir: &Path) -> PathBuf {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .expect("apt puts the package into the current folder")
}

/// A TCP port of this machine that leads to the cluster's socket, for a client that knows TCP only.
///
/// For one connection only, because the server trusts whoever reaches it.
fn tcp_port_for_one_connection(cluster: &Cluster) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = cluster.dir().join(".s.PGSQL.5432");
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        drop(listener);
        let server = UnixStream::connect(socket).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                // Either side may end first, and that is no fault.
                let _ = io::copy(&mut &client, &mut &server);
                let _ = server.shutdown(Shutdown::Write);
            });
            let _ = io::copy(&mut &server, &mut &client);
            let _ = client.shutdown(Shutdown::Write);
        });
    });
    port
}
