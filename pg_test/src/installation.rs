//! The PostgreSQL installation under test, the OS user that its servers run as, and tests that are left out because the
//! machine lacks something.

use nix::unistd::{User, geteuid};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Runs a command to its end with `input` on its standard input, and returns its standard output.
pub fn run(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let output = std::thread::scope(|scope| {
        // From a separate thread: a command that stops reading in order to write would block both sides. A command that
        // exits without reading shows in its exit status.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("the command can be waited for")
    });
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// A temporary folder that the servers' OS user owns.
///
/// Its name is short because it contains a socket, whose path has at most 107 bytes.
pub fn temp_dir() -> TempDir {
    temp_dir_in(std::env::temp_dir())
}

/// A temporary folder for a server. It is in the folder of memory that `MEMORY` names, if any: hundreds of data directories
/// are written and removed.
pub fn server_dir() -> TempDir {
    temp_dir_in(memory())
}

fn temp_dir_in(folder: PathBuf) -> TempDir {
    let dir = tempfile::Builder::new().prefix("sf").tempdir_in(folder).expect("a temporary folder can be made");
    chown_to_server_user(dir.path());
    dir
}

fn memory() -> PathBuf {
    std::env::var_os("MEMORY").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Makes the servers' OS user the owner of a folder.
pub fn chown_to_server_user(dir: &Path) {
    if let Some(user) = server_user() {
        chown(dir, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("root can give the folder away");
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum System {
    /// That of all servers but registries, as if they were copies of one.
    #[default]
    Server,
    /// That of all registries of leases, which are not on the servers that use them.
    Registry,
}

/// A fresh data directory, packed.
///
/// `initdb` takes a second, so it runs once per test binary and system. Its result is kept as an archive without a name, not as a
/// folder, because nothing would remove a folder after the last test; and not in our memory, which each start of a program copies.
pub fn fresh_data_directory(system: System) -> &'static File {
    static ARCHIVES: [OnceLock<File>; 2] = [const { OnceLock::new() }; 2];
    ARCHIVES[system as usize].get_or_init(|| {
        let dir = temp_dir();
        run(&mut initdb(bindir(), dir.path()), b"");
        pack_data_directory(dir.path())
    })
}

pub fn pack_data_directory(dir: &Path) -> File {
    let archive = tempfile::tempfile_in(memory()).expect("a temporary file can be made");
    let mut tar = as_server_user("tar", dir);
    tar.args(["-c", "-f", "-", "data"]).stdout(archive.try_clone().expect("a file can be shared"));
    assert!(tar.status().expect("tar can be run").success(), "{tar:?}");
    archive
}

pub fn unpack_data_directory(dir: &Path, archive: &File) {
    // Its own position in the file, which several servers read.
    let archive = File::open(format!("/proc/self/fd/{}", archive.as_raw_fd())).expect("an open file");
    let mut tar = as_server_user("tar", dir);
    assert!(tar.args(["-x", "-f", "-"]).stdin(archive).status().expect("tar can be run").success(), "{tar:?}");
}

/// The command that makes `dir/data` a data directory of the installation with that `bindir`.
pub fn initdb(bindir: &Path, dir: &Path) -> Command {
    let mut initdb = as_server_user(bindir.join("initdb"), dir);
    initdb.args(["--pgdata=data", "--username=postgres", "--auth=trust", "--encoding=UTF8"]);
    initdb.args(["--locale=C", "--no-sync"]);
    // From 18 on they are the default, and pg_upgrade needs the same on both sides.
    if major(bindir) >= 18 {
        initdb.arg("--no-data-checksums");
    }
    initdb
}

pub fn major(bindir: &Path) -> u32 {
    let answer = run(Command::new(bindir.join("postgres")).arg("--version"), b"");
    let version = String::from_utf8(answer).expect("a version in UTF-8");
    let digits = version.trim_start_matches(|character: char| !character.is_ascii_digit());
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().expect("a version begins with its major")
}

/// The programs of the installation that `PG_CONFIG_NEXT` names: another major, with the extension installed, for upgrades. If there is
/// none that `pg_upgrade` can upgrade to, what is missing.
pub fn next_bindir() -> Result<&'static Path, &'static str> {
    static BINDIR: OnceLock<Result<PathBuf, &str>> = OnceLock::new();
    let find = || {
        let pg_config = std::env::var_os("PG_CONFIG_NEXT").ok_or("later major version of the same origin")?;
        let next = ask_pg_config(pg_config, "--bindir");
        let go_together = !mentions_column_versions(&bindir().join("postgres")) || mentions_column_versions(&next.join("pg_dump"));
        go_together.then_some(next).ok_or("later major version whose pg_dump leaves out pg_attver, which this server writes")
    };
    BINDIR.get_or_init(find).as_deref().map_err(|missing| *missing)
}

/// Whether the program knows the option `pg_attver`, which servers write into each new column from the minor versions of November 2026 on,
/// such as 15.20. A `pg_dump` that does not know it, such as that of 19rc1, dumps it, and its server refuses it.
fn mentions_column_versions(program: &Path) -> bool {
    let program = fs::read(program).expect("an installed program");
    program.windows(9).any(|bytes| bytes == b"pg_attver")
}

/// Keeps PostgreSQL's environment variables from a program: a `PGHOST` or `PGOPTIONS` of the person who runs the tests would
/// lead it to another server.
pub fn remove_pg_variables(program: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            program.env_remove(name);
        }
    }
}

/// A program to run in `dir` as the servers' OS user, without PostgreSQL's environment variables.
pub fn as_server_user(program: impl AsRef<OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir);
    remove_pg_variables(&mut command);
    // A server that inherits it appends a backtrace to errors, which takes about 80 ms each.
    command.env_remove("RUST_BACKTRACE");
    if let Some(user) = server_user() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

/// An option of a program, with a path.
pub(crate) fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// The user that Debian's package creates, if the tests run as root, which PostgreSQL refuses.
fn server_user() -> Option<&'static User> {
    static USER: OnceLock<Option<User>> = OnceLock::new();
    USER.get_or_init(|| {
        geteuid().is_root().then(|| {
            User::from_name("postgres")
                .expect("the user database can be read")
                .expect("to test as root there must be an OS user postgres to run the servers")
        })
    })
    .as_ref()
}

/// Copies the installation to a new folder, and returns the `pg_config` of the copy.
pub fn copy(to: &Path) -> PathBuf {
    let (from, programs) = folder_and_programs();
    run(Command::new("cp").arg("-a").arg(&from).arg(to), b"");
    to.join(programs).join("pg_config")
}

/// Copies the installation without the extension's files, as one that never had them, and returns the `bindir` of the copy. Another test
/// may remove a script of the extension meanwhile.
pub fn copy_without_extension(to: &Path) -> PathBuf {
    let (from, programs) = folder_and_programs();
    fs::create_dir(to).expect("a folder can be made");
    run(Command::new("sh").args(["-c", "tar -C \"$0\" --exclude='pg_snowflake*' -cf - . | tar -C \"$1\" -xf -"]).arg(from).arg(to), b"");
    to.join(programs)
}

/// The folder that `INSTALLATION` names, and the path of its programs in it.
fn folder_and_programs() -> (PathBuf, PathBuf) {
    let folder = std::env::var_os("INSTALLATION").expect("INSTALLATION names the folder to copy");
    let bindir = pg_config("--bindir");
    let programs = bindir.strip_prefix(&folder).expect("INSTALLATION contains the servers' programs");
    (folder.into(), programs.to_owned())
}

static BINDIR: OnceLock<PathBuf> = OnceLock::new();

pub fn bindir() -> &'static Path {
    BINDIR.get_or_init(|| pg_config("--bindir"))
}

/// Whether the installation has that module of `contrib`. If not, reports that `what` is left out.
pub fn has_contrib(module: &str, what: &str) -> bool {
    let has = pg_config("--pkglibdir").join(format!("{module}.so")).exists();
    if !has {
        left_out(what, &format!("{module} in the installation"));
    }
    has
}

/// Whether the installation is of that major version or a later one. If it is not, reports that `what` is left out.
pub fn has_major(oldest: u32, what: &str) -> bool {
    let has = major(bindir()) >= oldest;
    if !has {
        left_out(what, &format!("PostgreSQL {oldest}"));
    }
    has
}

/// Reports that something is left out of the tests, and what is missing for it. `./dev test` repeats it at its end.
pub fn left_out(what: &str, need: &str) {
    // Not by println!, which shows nothing if the test passes.
    let line = format!("\nleft out: {what}: no {need}\n");
    io::stdout().write_all(line.as_bytes()).expect("standard output is open");
}

/// A folder of the installation, by the option of `pg_config` that prints it.
pub fn pg_config(option: &str) -> PathBuf {
    let pg_config = std::env::var_os("PG_CONFIG").expect("PG_CONFIG names the pg_config of an installation that has the extension");
    ask_pg_config(pg_config, option)
}

fn ask_pg_config(pg_config: OsString, option: &str) -> PathBuf {
    let answer = run(Command::new(pg_config).arg(option), b"");
    PathBuf::from(String::from_utf8(answer).expect("a path in UTF-8").trim_end())
}
