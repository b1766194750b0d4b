//! What `make` says on a machine that cannot build the library: one line, before anything is compiled.

use crate::toolchain::{link, script, which};
use nix::unistd::geteuid;
use pg_snowflake_harness::release::{self, EXTENSIONS};
use pg_snowflake_harness::{installation, top};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// What the Makefile runs besides cargo. Nothing else is on PATH, clang in particular.
const PROGRAMS: [&str; 17] =
    ["cat", "cksum", "cp", "cut", "find", "grep", "head", "install", "ls", "mkdir", "mv", "rm", "sed", "sh", "sort", "touch", "uname"];

/// A copy of the Makefile and of what it reads, on a machine whose `pg_config`, `rustc` and `cargo` are scripts. PostgreSQL's
/// headers and clang's are there.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(version: &str) -> Self {
        let machine = Machine { folder: installation::temp_dir() };
        let mut copy = Command::new("cp");
        copy.args(["-r", "--parents", "Makefile", "Cargo.toml", "Cargo.lock", "ids/Cargo.toml", "policies/Cargo.toml", "src/lib.rs"]);
        copy.args([".cargo", "sql", "pg_snowflake.control"]).arg(machine.folder.path());
        installation::run(copy.current_dir(top()), b"");
        link(&PROGRAMS, &machine.file("bin"));
        machine.script("rustc", &format!("echo 'rustc {WANTED}.0 (0000000 2026-01-01)'"));
        let folder = machine.folder.path().display();
        machine.script("pg_config", &format!("case $1 in --version) echo '{version}' ;; *) echo '{folder}' ;; esac"));
        // It makes the library where the Makefile looks for it.
        machine.script("cargo", "while [ $1 != --target-dir ]; do shift; done; mkdir -p $2/release; echo >$2/release/libpg_snowflake.so");
        fs::write(machine.file("postgres.h"), "").unwrap();
        if geteuid().is_root() {
            let mut chown = Command::new("chown");
            installation::run(chown.args(["-R", "postgres:"]).arg(machine.folder.path()), b"");
        }
        machine
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        script(&self.file(name), text);
    }

    fn make(&self) -> Command {
        let mut make = installation::as_server_user(which("make"), self.folder.path());
        make.args(["--no-print-directory", "--silent", "libclang=postgres.h", "PG_CONFIG=./pg_config"]);
        make.args(["RUSTC=./rustc", "CARGO=./cargo"]);
        for variable in ["MAKEFLAGS", "LIBCLANG_PATH", "LLVM_CONFIG_PATH", "CARGO_TARGET_DIR"] {
            make.env_remove(variable);
        }
        make.env("PATH", self.file("bin"));
        make
    }
}

/// The only line that it prints.
fn refusal(make: &mut Command) -> String {
    let output = make.output().expect("make runs");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("make: *** [")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    lines[0].to_owned()
}

fn assert_refused(make: &mut Command, expected: &str) {
    let line = refusal(make);
    assert!(line.contains(expected), "{expected}: {line}");
}

const WANTED: &str = env!("CARGO_PKG_RUST_VERSION");

#[test]
fn make_names_what_is_missing_before_it_compiles() {
    let machine = Machine::new("PostgreSQL 17.2 (Debian 17.2-1)");
    machine.script("old", "echo 'rustc 1.85.0 (0000000 2025-01-01)'");
    let needed = format!("Rust {WANTED} or newer is needed");
    for (argument, expected) in [
        ("PG_CONFIG=/nowhere/pg_config", "\"/nowhere/pg_config\" does not answer"),
        ("RUSTC=./nowhere", "\"./nowhere\" is not usable"),
        ("CARGO=./nowhere", "\"./nowhere\" is missing"),
        ("RUSTC=./old", &needed),
        ("PROFILE=nowhere", "there is no PROFILE \"nowhere\""),
        ("libclang=nowhere", "libclang, which reads the headers, is missing"),
    ] {
        assert_refused(machine.make().arg(argument), expected);
    }
    fs::remove_file(machine.file("postgres.h")).unwrap();
    assert_refused(machine.make().arg("libclang=Makefile"), "postgresql-server-dev-17");
}

#[test]
fn make_refuses_a_major_that_is_not_supported() {
    let machine = Machine::new("PostgreSQL 14.9");
    assert_refused(&mut machine.make(), "PostgreSQL 14 is not supported, only 15 16 17 18 19");
}

#[test]
fn make_refuses_a_path_that_it_would_take_for_two() {
    let machine = Machine::new("PostgreSQL 17.2");
    assert_refused(machine.make().env("CARGO_TARGET_DIR", "two words"), "has a space");
    let spaced = machine.file("two words");
    fs::create_dir(&spaced).unwrap();
    fs::copy(machine.file("Makefile"), spaced.join("Makefile")).unwrap();
    assert_refused(machine.make().arg("-f").arg(spaced.join("Makefile")), "has a space");
}

#[test]
fn make_install_copies_what_make_has_built_and_compiles_nothing() {
    let machine = Machine::new("PostgreSQL 17.2");
    let install = || {
        let mut install = machine.make();
        install.args(["install", "DESTDIR=./a folder", "pkglibdir=/lib", "datadir=/share"]);
        install
    };
    assert_refused(&mut install(), "run make first, as yourself");

    let upgrades = EXTENSIONS.map(|extension| extension.upgrade("0.1.0", "0.2.0"));
    for script in &upgrades {
        fs::write(machine.file(script), "").unwrap();
    }
    installation::run(&mut machine.make(), b"");
    installation::run(&mut install(), b"");
    let version = release::head();
    for file in [
        "share/extension/pg_snowflake--0.1.0--0.2.0.sql",
        "share/extension/pg_snowflake_registry--0.1.0--0.2.0.sql",
        "lib/pg_snowflake.so",
        "share/extension/pg_snowflake.control",
        "share/extension/pg_snowflake_registry.control",
        &format!("share/extension/pg_snowflake--{version}.sql"),
        &format!("share/extension/pg_snowflake_registry--{version}.sql"),
    ] {
        assert!(machine.file("a folder").join(file).exists(), "{file}");
    }

    for source in ["pg_snowflake.control", ".cargo/profiles/testing.toml"] {
        let source = machine.file(source);
        fs::write(&source, fs::read(&source).unwrap()).unwrap();
        assert_refused(&mut install(), "run make first, as yourself");
        installation::run(&mut machine.make(), b"");
    }
    machine.script("cargo", "exit 1");
    assert!(!machine.make().status().unwrap().success());
    assert_refused(&mut install(), "run make first, as yourself");
}

#[test]
fn make_passes_on_the_flags_of_its_user_as_they_are() {
    let machine = Machine::new("PostgreSQL 17.2");
    machine.script("cargo", "printf %s \"$CARGO_ENCODED_RUSTFLAGS\" >flags; exit 1");
    let flags = r#"-C link-arg=-Wl,-rpath,$ORIGIN/../* --cfg=feature="x""#;
    machine.make().env("RUSTFLAGS", flags).output().unwrap();

    let passed = fs::read_to_string(machine.file("flags")).unwrap();
    assert!(passed.starts_with(&flags.replace(' ', "\u{1f}")), "{passed}");
    assert_eq!(passed.matches("\u{1f}--remap-path-prefix=").count(), 3, "{passed}");
}

#[test]
fn make_refuses_a_list_of_sql_files_that_it_cannot_read() {
    let machine = Machine::new("PostgreSQL 17.2");
    let list = machine.file("src/lib.rs");
    let text = fs::read_to_string(&list).unwrap();
    fs::write(&list, text.replace("!(\"../sql/status.sql\"", "!(\n    \"../sql/status.sql\"")).unwrap();
    assert_refused(&mut machine.make(), "not on one line");
}

/// As `pg_buildext` of Debian calls it.
#[test]
fn make_builds_in_another_folder_than_the_sources() {
    let machine = Machine::new("PostgreSQL 17.2");
    let build = machine.file("build-17");
    fs::create_dir(&build).unwrap();
    installation::chown_to_server_user(&build);
    let make = |goal: &str| {
        let mut make = machine.make();
        make.args(["-C", "build-17", "-f", "../Makefile", "VPATH=..", "PG_CONFIG=../pg_config"]);
        make.args(["libclang=../Makefile", "DESTDIR=files", goal]);
        make.arg(format!("RUSTC={}", machine.file("rustc").display()));
        make.arg(format!("CARGO={}", machine.file("cargo").display()));
        installation::run(&mut make, b"");
    };
    for goal in ["all", "install"] {
        make(goal);
    }
    assert!(build.join("target").exists() && !machine.file("target").exists());
    make("uninstall");
}

#[test]
fn make_names_a_folder_of_another_user() {
    let machine = Machine::new("PostgreSQL 17.2");
    fs::create_dir(machine.file("target")).unwrap();
    fs::set_permissions(machine.file("target"), Permissions::from_mode(0o555)).unwrap();
    assert_refused(&mut machine.make(), "belongs to another user");
}
