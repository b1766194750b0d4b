//! Which Rust `./dev` uses, on machines that are folders of scripts: a PATH of their own, on which rustup, cargo, rustc and apt
//! say what a test wants.

use pg_snowflake_harness::top;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What `./dev lint --fix` runs besides Rust's programs and apt.
const SYSTEM: [&str; 16] =
    ["bash", "cat", "chmod", "cp", "cut", "dirname", "env", "getent", "id", "mkdir", "realpath", "rm", "sed", "sha256sum", "sh", "sort"];

/// A machine whose toolchains are newer or older than Cargo.toml wants.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        link(&SYSTEM, &machine.path("system"));
        machine.script("system/sudo", "exec \"$@\"");
        machine.with_apt("[ $1 != depends ] || echo '  Depends: postgresql-15'", "")
    }

    /// A toolchain that no rustup manages.
    fn with_rust(self, folder: &str, version: &str) -> Self {
        self.script(&format!("{folder}/cargo"), &format!("echo \"cargo of {version}: $*\""));
        self.script(&format!("{folder}/rustc"), &format!("echo 'rustc {version} (0000000 2026-01-01)'"));
        self
    }

    /// rustup with these toolchains, the first of which is active.
    fn with_rustup(self, toolchains: &[(&str, &str)]) -> Self {
        let each = |of: fn(&(&str, &str)) -> String| toolchains.iter().map(of).collect::<String>();
        let versions = each(|(name, version)| format!("{name}) version={version} ;;\n"));
        let versions = format!("case ${{RUSTUP_TOOLCHAIN:-{}}} in\n{versions}esac\n", toolchains[0].0);
        let list = each(|(name, _)| format!("'{name} (installed)' "));
        let rustup =
            format!("case $1 in\nlist | toolchain) printf '%s\\n' {list};;\nrun) RUSTUP_TOOLCHAIN=$2 exec \"${{0%/*}}/$3\" ;;\nesac");
        self.script("rustup/rustup", &rustup);
        self.script("rustup/cargo", &format!("{versions}echo \"cargo of $version: $*\""));
        self.script("rustup/rustc", &format!("{versions}echo \"rustc $version (0000000 2026-01-01)\""));
        self
    }

    /// apt that has a Rust of this version for browsers, and puts it where the system's programs are.
    fn with_packages_of(self, version: &str) -> Self {
        let (package, system) = (self.path("package"), self.path("system"));
        let (package, system) = (package.display(), system.display());
        let cache = format!(
            "case \"$*\" in\ndepends*) echo '  Depends: postgresql-15' ;;\n*rustc) echo 'Version: 1.63.0+dfsg1-2' ;;\n\
             *rustc-web) echo 'Version: {version}+dfsg1-1~deb12u2' ;;\nesac"
        );
        let get = format!("case \"$*\" in *cargo-web*) cp '{package}/cargo' '{package}/rustc' '{system}' ;; esac");
        self.with_rust("package", version).with_apt(&cache, &get)
    }

    /// apt-get notes what it is asked for.
    fn with_apt(self, cache: &str, get: &str) -> Self {
        self.script("system/apt-cache", cache);
        self.script("system/apt-get", &format!("echo \"$@\" >>'{}'\n{get}", self.path("asked").display()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        script(&self.path(name), text);
    }

    /// What `./dev lint --fix` prints here, standard error last.
    fn lint_fix(&self) -> String {
        let path = ["first", "rustup", "system"].map(|name| self.path(name));
        let mut dev = Command::new(top().join("dev"));
        dev.args(["lint", "--fix"]).env_clear().env("PATH", std::env::join_paths(path).unwrap()).env("HOME", self.folder.path());
        let output = dev.output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn installed(&self) -> String {
        fs::read_to_string(self.path("asked")).unwrap_or_default().lines().filter(|line| line.contains(" install ")).collect()
    }
}

/// Makes programs of this machine those of another one.
pub fn link(programs: &[&str], folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    programs.iter().for_each(|program| symlink(which(program), folder.join(program)).unwrap());
}

/// Writes a program.
pub fn script(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
}

pub fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file()).unwrap_or_else(|| panic!("no {program} on PATH"))
}

/// The version that Cargo.toml asks for, and one that is older.
const WANTED: &str = env!("CARGO_PKG_RUST_VERSION");
const OLD: &str = "1.85.0";

#[test]
fn dev_uses_the_active_toolchain_where_it_is_new_enough() {
    let newest = format!("{WANTED}.1");
    for machine in [
        Machine::new().with_rustup(&[("stable", &newest), ("nightly", "9.9.0-nightly")]),
        Machine::new().with_rust("first", &newest),
        Machine::new().with_rust("first", &format!("{WANTED}.0-nightly")),
    ] {
        let said = machine.lint_fix();
        assert!(said.contains(&format!("cargo of {WANTED}.")), "{said}");
        assert!(!said.contains("using"), "{said}");
    }
}

#[test]
fn dev_uses_another_toolchain_of_rustup_where_the_active_one_is_too_old() {
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("stable", OLD), ("nightly", "9.9.0-nightly")], "9.9.0-nightly"),
        (&[("stable", OLD), ("nightly", "9.9.0-nightly"), ("9.8.0", "9.8.0")], "9.8.0"),
        (&[("1.85.0", OLD), ("nightly", "9.9.0-nightly"), ("stable", "8.0.0")], "8.0.0"),
    ];
    for (toolchains, version) in cases {
        // The variable says nothing to a cargo that is not rustup's.
        for machine in [Machine::new(), Machine::new().with_rust("first", OLD)] {
            let machine = machine.with_rustup(toolchains).with_packages_of("9.9.9");
            let said = machine.lint_fix();
            assert!(said.contains(&format!("cargo of {version}: fmt --all")), "{said}");
            assert_eq!(machine.installed(), "");
        }
    }
}

#[test]
fn dev_installs_the_rust_of_the_distribution_where_no_toolchain_is_new_enough() {
    for machine in [
        Machine::new(),
        Machine::new().with_rust("first", OLD),
        Machine::new().with_rustup(&[("stable", OLD), ("nightly", "1.86.0-nightly")]),
    ] {
        let machine = machine.with_packages_of(&format!("{WANTED}.0"));
        let said = machine.lint_fix();
        assert!(said.contains(&format!("cargo of {WANTED}.0: fmt --all")), "{said}");
        let installed = machine.installed();
        assert!(installed.ends_with("rustc-web cargo-web rustfmt-web rust-web-clippy"), "{installed}");
        // The second time it is there.
        let said = machine.lint_fix();
        assert!(said.contains(&format!("cargo of {WANTED}.0: fmt --all")), "{said}");
        assert_eq!(machine.installed(), installed);
    }
}

#[test]
fn dev_installs_nothing_where_no_rust_is_new_enough() {
    for machine in [Machine::new(), Machine::new().with_packages_of("1.85.0"), Machine::new().with_rustup(&[("stable", OLD)])] {
        assert_eq!(machine.lint_fix(), format!("dev: Rust {WANTED} or newer is needed: run rustup update, or install Rust with rustup\n"));
        assert_eq!(machine.installed(), "");
    }
}
