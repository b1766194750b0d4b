//! Programs in other languages as clients of a server: installed on this machine, and run against a [`Cluster`].
//!
//! A client is installed into a temporary folder from its usual registry, in the version that is pinned beside its program;
//! Java's and Prometheus's come from Debian, in the version of its release. If the machine lacks the interpreter or the registry does not
//! answer, the client is left out, and a line of the output says so. Any other failure to install it fails the test.

pub mod program;
mod registry;

use pg_snowflake_harness::installation::{left_out, remove_pg_variables, temp_dir};
use pg_snowflake_harness::{Cluster, SUPERUSER};
use registry::install;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{fs, thread};
use tempfile::TempDir;

/// A temporary folder with a copy of that folder of this crate, and the Python packages of its `requirements.txt` in `packages`. Here and
/// below, `None` if the client is left out, with a line that gives the reason.
pub fn with_pip(client: &str, folder: &str) -> Option<TempDir> {
    if !has(client, "python3 with pip", "python3", &["-m", "pip", "--version"]) {
        return None;
    }
    let dir = copy_of(folder);
    let mut pip = command("python3", dir.path());
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--root-user-action=ignore"]);
    pip.args(["--requirement=requirements.txt", "--target=packages", "--no-compile"]);
    pip.args(["--retries=2", "--timeout=60"]);
    install(client, "the Python Package Index", &mut pip).then_some(dir)
}

pub fn python(dir: &TempDir, program: &str) -> Command {
    let mut python = command("python3", dir.path());
    python.env("PYTHONPATH", "packages").arg(program);
    python
}

/// The same with the packages of its `package-lock.json`. Tests that run at the same time share the folder, so none changes a file that
/// another one reads.
pub fn with_npm(client: &str, folder: &'static str) -> Option<Arc<TempDir>> {
    static SHARED: Mutex<BTreeMap<&str, Arc<Mutex<Weak<TempDir>>>>> = Mutex::new(BTreeMap::new());
    if !has(client, "npm", "npm", &["--version"]) {
        return None;
    }
    let shared = Arc::clone(SHARED.lock().unwrap_or_else(PoisonError::into_inner).entry(folder).or_default());
    // Locked until the packages are installed, so that another test waits for them.
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(dir) = shared.upgrade() {
        return Some(dir);
    }
    let dir = Arc::new(copy_of(folder));
    let mut npm = command("npm", dir.path());
    npm.args(["ci", "--prefer-offline", "--no-audit", "--no-fund"]);
    npm.args(["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]);
    install(client, "the npm registry", &mut npm).then(|| {
        *shared = Arc::downgrade(&dir);
        dir
    })
}

/// The same with Debian's JDBC driver in `package`.
pub fn with_jdbc(folder: &str) -> Option<TempDir> {
    if !has("JDBC", "Java development kit", "javac", &["-version"]) {
        return None;
    }
    with_packages("JDBC", folder, &["libpostgresql-jdbc-java"])
}

/// The same with these Debian packages in `package`. It is left out if apt does not know the first one, which needs the others.
pub fn with_packages(client: &str, folder: &str, packages: &[&str]) -> Option<TempDir> {
    unpack(client, packages, || copy_of(folder))
}

/// A temporary folder with these Debian packages in `package`, and nothing else. The servers' OS user owns the folder.
///
/// A package is unpacked and not installed, so its service is neither started nor enabled.
pub fn packages(client: &str, packages: &[&str]) -> Option<TempDir> {
    unpack(client, packages, temp_dir)
}

/// The same with one package, and with those that it needs and the machine lacks.
pub fn package_with_needs(client: &str, package: &str) -> Option<TempDir> {
    let simulated =
        command("apt-get", Path::new("/")).args(["--simulate", "--no-install-recommends", "install", package]).output().unwrap();
    let lines = String::from_utf8_lossy(&simulated.stdout);
    let missing = lines.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next()).filter(|&needed| needed != package);
    packages(client, &[package].into_iter().chain(missing).collect::<Vec<_>>())
}

/// Whether the program is on this machine. `./dev` has installed it if the distribution has it. If it is not there, reports that the client
/// is left out.
pub fn has_program(client: &str, program: &Path) -> bool {
    let has = program.exists();
    if !has {
        left_out(client, &format!("{} on this machine", program.display()));
    }
    has
}

fn unpack(client: &str, packages: &[&str], folder: impl FnOnce() -> TempDir) -> Option<TempDir> {
    let package = packages[0];
    if !has(client, &format!("{package} in apt's lists"), "apt-cache", &["show", package]) {
        return None;
    }
    let dir = folder();
    if !install(client, "the distribution's mirror", command("apt-get", dir.path()).arg("download").args(packages)) {
        return None;
    }
    for entry in fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            run(command("dpkg-deb", dir.path()).arg("--extract").arg(path).arg("package"));
        }
    }
    Some(dir)
}

/// Passes a program the address of the cluster, in the variables that psql reads, and nothing else about PostgreSQL.
pub fn client<'a>(program: &'a mut Command, cluster: &Cluster) -> &'a mut Command {
    remove_pg_variables(program);
    program.env("PGHOST", cluster.dir()).env("PGPORT", "5432").env("PGUSER", SUPERUSER).env("PGDATABASE", SUPERUSER)
}

/// The same for a program that supports only TCP, and makes one connection.
pub fn tcp_client<'a>(program: &'a mut Command, cluster: &Cluster) -> &'a mut Command {
    client(program, cluster).env("PGHOST", "127.0.0.1").env("PGPORT", tcp_port_for_one_connection(cluster).to_string())
}

/// A program to run in `dir`.
pub fn command(program: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null());
    command
}

/// Runs a command to its end, and returns its standard output. What it wrote is shown if the test fails.
pub fn run(command: &mut Command) -> String {
    let output = run_to_end(command);
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command to its end, and shows what it wrote if the test fails.
fn run_to_end(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    output
}

/// Whether a command succeeds that checks for what a client needs. If not, reports that the client is left out.
pub fn has(client: &str, need: &str, program: &str, arguments: &[&str]) -> bool {
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

/// A temporary folder with the files of that folder of this crate.
fn copy_of(folder: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), dir.path());
    dir
}

/// Copies the files of a program, without what somebody has installed there by hand.
fn copy_files(from: &Path, to: &Path) {
    const INSTALLED: [&str; 3] = ["node_modules", "packages", "__pycache__"];
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_file() {
            fs::copy(&path, to.join(name)).unwrap();
        } else if !INSTALLED.iter().any(|&installed| name == installed) {
            fs::create_dir(to.join(&name)).unwrap();
            copy_files(&path, &to.join(name));
        }
    }
}

/// A TCP port of this machine that leads to the cluster's socket.
///
/// For one connection only, because the server trusts everybody who reaches it.
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
                // Either side may close first, which is not an error.
                let _ = io::copy(&mut &client, &mut &server);
                let _ = server.shutdown(Shutdown::Write);
            });
            let _ = io::copy(&mut &server, &mut &client);
            let _ = client.shutdown(Shutdown::Write);
        });
    });
    port
}
