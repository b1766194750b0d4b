//! Which Rust `./dev` uses, on machines that are folders of scripts: a PATH of their own, on which rustup, cargo, rustc and apt
//! say what a test wants.

use pg_snowflake_harness::top;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
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
    /// A machine without Rust and without packages of it.
    fn new() -> Self {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        for program in SYSTEM {
            let here = which(program);
            fs::create_dir_all(machine.path("system")).unwrap();
            symlink(here, machine.path("system").join(program)).unwrap();
        }
        machine.script("system/sudo", "exec \"$@\"");
        machine.script("system/apt-cache", "[ $1 != depends ] || echo '  Depends: postgresql-15'");
        machine.script("system/apt-get", &format!("echo \"$@\" >>'{}'", machine.path("asked").display()));
        machine
    }

    /// A toolchain that no rustup manages.
    fn with_rust(self, folder: &str, version: &str) -> Self {
        self.script(&format!("{folder}/cargo"), &format!("echo \"cargo of {version}: $*\""));
        self.script(&format!("{folder}/rustc"), &format!("echo 'rustc {version} (0000000 2026-01-01)'"));
        self
    }

    /// rustup with these toolchains, the first of which is active.
    fn with_rustup(self, toolchains: &[(&str, &str)]) -> Self {
        let list: Vec<&str> = toolchains.iter().map(|(name, _)| *name).collect();
        let versions: Vec<String> = toolchains.iter().map(|(name, version)| format!("{name}) version={version} ;;\n")).collect();
        let versions = format!("case ${{RUSTUP_TOOLCHAIN:-{}}} in\n{}esac\n", list[0], versions.concat());
        self.script(
            "rustup/rustup",
            &format!(
                "case $1 in\nlist | toolchain) printf '%s\\n' {} ;;\nrun) RUSTUP_TOOLCHAIN=$2 exec \"${{0%/*}}/$3\" ;;\nesac",
                list.iter().map(|name| format!("'{name} (installed)'")).collect::<Vec<_>>().join(" ")
            ),
        );
        self.script("rustup/cargo", &format!("{versions}echo \"cargo of $version: $*\""));
        self.script("rustup/rustc", &format!("{versions}echo \"rustc $version (0000000 2026-01-01)\""));
        self
    }

    /// apt that has a Rust of this version for browsers, and puts it where the system's programs are.
    fn with_packages_of(self, version: &str) -> Self {
        let (asked, system) = (self.path("asked"), self.path("system"));
        let package = self.path("package");
        let machine = self.with_rust("package", version);
        machine.script(
            "system/apt-cache",
            &format!(
                "case \"$*\" in\ndepends*) echo '  Depends: postgresql-15' ;;\n*rustc) echo 'Version: 1.63.0+dfsg1-2' ;;\n\
                 *rustc-web) echo 'Version: {version}+dfsg1-1~deb12u2' ;;\nesac"
            ),
        );
        machine.script(
            "system/apt-get",
            &format!(
                "echo \"$@\" >>'{}'\ncase \"$*\" in *cargo-web*) cp '{package}/cargo' '{package}/rustc' '{}' ;; esac",
                asked.display(),
                system.display(),
                package = package.display()
            ),
        );
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }

    /// What `./dev lint --fix` prints here, standard error last.
    fn lint_fix(&self) -> String {
        let path: Vec<PathBuf> = ["first", "rustup", "system"].map(|name| self.path(name)).into();
        let output = Command::new(top().join("dev"))
            .args(["lint", "--fix"])
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).unwrap()
    }

    /// What apt-get was asked to install.
    fn installed(&self) -> String {
        let asked = fs::read_to_string(self.path("asked")).unwrap_or_default();
        asked.lines().filter(|line| line.contains(" install ")).collect()
    }
}

/// The file of a program on PATH.
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
