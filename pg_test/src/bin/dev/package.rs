//! Packages for users: a Debian package, and a tarball for other servers.

use crate::tools::{
    Result, about, cargo_pgrx, command, execute, install_registry, major, output, pg_config,
    run_folder, server_version, target, top,
};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use pg_snowflake_servertest::output::{say, step};
use pg_snowflake_servertest::{Cluster, installation, release};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names of the packages of a major, and their folder.
struct Package {
    major: u32,
    version: String,
    /// Debian's name of the architecture.
    architecture: String,
    folder: PathBuf,
}

impl Package {
    fn of_this_tree() -> Result<Self> {
        Ok(Package {
            major: major(),
            version: release::head(),
            architecture: output(command("dpkg").arg("--print-architecture"))?.trim().to_owned(),
            folder: target().join("pg_snowflake-packages"),
        })
    }

    /// As the PostgreSQL project's apt repository names extensions.
    fn name(&self) -> String {
        format!("postgresql-{}-pg-snowflake", self.major)
    }

    /// A tilde sorts before everything, as a pre-release must.
    fn debian_version(&self) -> String {
        format!("{}-1", self.version.replace('-', "~"))
    }

    fn debian_file(&self) -> String {
        format!("{}_{}_{}.deb", self.name(), self.debian_version(), self.architecture)
    }

    /// The tarball's top folder, which is also its name without `.tar.gz`.
    fn tarball_name(&self) -> String {
        format!("pg_snowflake-{}-pg{}-linux-{}", self.version, self.major, self.architecture)
    }

    fn tarball_file(&self) -> String {
        format!("{}.tar.gz", self.tarball_name())
    }

    /// The changelog of the packaging, which has only the version. The changes are in the other one.
    fn debian_changelog(&self, date: &str) -> String {
        format!(
            "pg-snowflake ({}) unstable; urgency=medium\n\n  * pg_snowflake {}, see changelog.gz.\n\n \
             -- {}  {date}\n",
            self.debian_version(),
            self.version,
            release::metadata("authors")
        )
    }

    /// The lines of the description are shorter than 80 characters, which lintian checks.
    fn debian_control(&self, kilobytes: &str, libraries: &str) -> String {
        let (name, version, major) = (self.name(), self.debian_version(), self.major);
        let (architecture, maintainer) = (&self.architecture, release::metadata("authors"));
        format!(
            "Package: {name}
Source: pg-snowflake
Version: {version}
Architecture: {architecture}
Section: database
Priority: optional
Maintainer: {maintainer}
Installed-Size: {kilobytes}
Depends: postgresql-{major}, {libraries}
Description: Snowflake IDs for PostgreSQL {major}
 Unique, time-ordered 64-bit keys that embed a timestamp and a shard number,
 backed by an ordinary sequence. A sequence never returns the same ID twice,
 regardless of concurrency, clock steps, crashes or failover.
"
        )
    }
}

/// Builds both, and the checksums of all files in their folder.
pub fn make() -> Result {
    let package = Package::of_this_tree()?;
    let stage = run_folder().join("stage");
    step(&format!("building the package for {}", server_version()?));
    build_without_paths(&stage)?;
    let built = Built::in_stage(&stage);
    execute(command("strip").arg("--strip-unneeded").arg(&built.library))?;
    refuse_paths_of_this_machine(&built.library)?;
    refuse_missing_upgrade_scripts(top(), &built.extension)?;
    fs::create_dir_all(&package.folder).map_err(about(&package.folder))?;
    // Files are dated by the commit. Two packages can still differ in the order of the install SQL, which pgrx does not
    // guarantee.
    let commit = output(command("git").args(["log", "-1", "--format=%ct"]));
    let date = match commit.ok().and_then(|seconds| seconds.trim().parse().ok()) {
        Some(seconds) => Timestamp::from_second(seconds).map_err(|error| error.to_string())?,
        None => Timestamp::now(),
    };
    make_debian_package(&package, &built, date)?;
    make_tarball(&package, &built, date)?;
    write_checksums(&package.folder)?;
    step(&format!("in {}:", package.folder.display()));
    say(&[package.debian_file(), package.tarball_file(), "SHA256SUMS".to_owned()].join("\n"));
    Ok(())
}

/// Verifies the checksums, and puts both into a folder with the script that tests them on a clean system.
pub fn files(folder: &Path) -> Result {
    let package = Package::of_this_tree()?;
    let files =
        [package.debian_file(), package.tarball_file()].map(|name| package.folder.join(name));
    if let Some(missing) = files.iter().find(|file| !file.is_file()) {
        return Err(format!("no {}: ./dev package {} makes it", missing.display(), package.major));
    }
    let check = ["--check", "--quiet", "--ignore-missing", "SHA256SUMS"];
    output(command("sha256sum").args(check).current_dir(&package.folder))?;
    for file in &files {
        put(file, folder, 0o644)?;
    }
    put(&top().join("packaging/smoke.sh"), folder, 0o755)?;
    put(&top().join("packaging/smoke.sql"), folder, 0o644).map(drop)
}

/// Tests the tarball on a server that is not a Debian package, for which it is meant: a copy of the one under test,
/// without the files of `./dev build`. The Debian package cannot be installed if apt has no server for it to depend on, but
/// it must have the same files.
pub fn try_tarball(folder: &Path) -> Result {
    let package = Package::of_this_tree()?;
    files(folder)?;
    step(&format!("testing the tarball on {}", server_version()?));
    let pg_config = installation::copy(&run_folder().join("installation"));
    let ask = |option| -> Result<PathBuf> {
        Ok(PathBuf::from(output(command(&pg_config).arg(option))?.trim_end()))
    };
    let library = ask("--pkglibdir")?.join("pg_snowflake.so");
    fs::remove_file(&library).map_err(about(&library))?;
    let extension = ask("--sharedir")?.join("extension");
    for entry in fs::read_dir(&extension).map_err(about(&extension))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("pg_snowflake") {
            fs::remove_file(entry.path()).map_err(about(&entry.path()))?;
        }
    }
    let (tarball, debian) =
        (folder.join(package.tarball_file()), folder.join(package.debian_file()));
    execute(command("tar").arg("-x").arg("-f").arg(tarball).arg("-C").arg(folder))?;
    let unpacked = folder.join(package.tarball_name());
    execute(command("sh").arg(unpacked.join("install.sh")).env("PG_CONFIG", &pg_config))?;
    // Another process, since this one has already cached the paths of the other installation.
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    execute(command(this).arg("smoke").env("PG_CONFIG", &pg_config))?;
    let root = run_folder().join("root");
    execute(command("dpkg-deb").arg("--extract").arg(debian).arg(&root))?;
    for (of_debian, of_tarball) in
        [("lib/postgresql/MAJOR/lib", "lib"), ("share/postgresql/MAJOR/extension", "extension")]
    {
        let of_debian =
            root.join("usr").join(of_debian.replace("MAJOR", &package.major.to_string()));
        execute(command("diff").arg("--recursive").arg(of_debian).arg(unpacked.join(of_tarball)))?;
    }
    step("the tarball works, and the Debian package has the same files");
    Ok(())
}

/// Tests the installed extension, as on a system that has never had it.
pub fn smoke() {
    let server = Cluster::new();
    server.empty_database("smoke");
    print!("{}", server.psql("smoke", include_str!("../../../../packaging/smoke.sql")));
}

/// The files that pgrx has built.
struct Built {
    library: PathBuf,
    /// The folder of the control file and the SQL.
    extension: PathBuf,
}

impl Built {
    fn in_stage(stage: &Path) -> Self {
        let staged = |option: &str| {
            let mut path = stage.as_os_str().to_owned();
            path.push(installation::pg_config(option));
            PathBuf::from(path)
        };
        Built {
            library: staged("--pkglibdir").join("pg_snowflake.so"),
            extension: staged("--sharedir").join("extension"),
        }
    }
}

/// Where cargo builds the package.
fn build_folder() -> PathBuf {
    target().join("pg_snowflake-package-build")
}

/// Panic messages name source files; they must not name this machine's folders. Uses a separate target folder, since other
/// flags cause a full rebuild.
fn build_without_paths(stage: &Path) -> Result {
    let build = build_folder();
    let renamed = |path: &Path, name: &str| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(path);
        flag.push(format!("={name}"));
        flag
    };
    // These replace pgrx's own flag, which makes the linker keep all unused code for the sake of the sections that the
    // install SQL is made from. GNU ld and lld keep those sections because they are marked. A linker that does not leaves
    // nothing to make the SQL from, and pgrx fails.
    let flags = [
        renamed(&build, "target"),
        renamed(top(), "pg_snowflake"),
        renamed(&cargo_home()?, "cargo"),
    ];
    let mut package = cargo_pgrx(&["package", "--pg-config"])?;
    package.arg(pg_config()).arg("--out-dir").arg(stage);
    // Separated and quoted as cargo and its C compiler need it for a path with a space.
    package.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}".as_ref()));
    package.env("CARGO_TARGET_DIR", &build).env("CC_SHELL_ESCAPED_FLAGS", "1");
    package.env("CFLAGS", format!("'-ffile-prefix-map={}=target'", build.display()));
    output(&mut package)?;
    install_registry(&Built::in_stage(stage).extension)
}

fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cargo"));
    let folder = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    folder.ok_or_else(|| "there is no home folder".to_owned())
}

fn refuse_paths_of_this_machine(library: &Path) -> Result {
    let bytes = fs::read(library).map_err(about(library))?;
    for folder in [cargo_home()?, build_folder()] {
        let name = format!("{}/", folder.display());
        if bytes.windows(name.len()).any(|window| window == name.as_bytes()) {
            return Err(format!(
                "the library for the package names {name}, a folder of this machine"
            ));
        }
    }
    Ok(())
}

/// A release whose script is missing could not be updated.
pub fn refuse_missing_upgrade_scripts(top: &Path, extension: &Path) -> Result {
    let is_there = |script: &Path| extension.join(script.file_name().unwrap_or_default()).exists();
    match release::upgrades(top).iter().find(|script| !is_there(script.as_ref())) {
        None => Ok(()),
        Some(script) => Err(format!("the package lacks {script}")),
    }
}

fn make_debian_package(package: &Package, built: &Built, date: Timestamp) -> Result {
    let root = run_folder().join("debian");
    let documents = root.join("usr/share/doc").join(package.name());
    let libraries = root.join(format!("usr/lib/postgresql/{}/lib", package.major));
    put(&built.library, &libraries, 0o644)?;
    let extension = root.join(format!("usr/share/postgresql/{}/extension", package.major));
    put_all(&built.extension, &extension)?;
    put(&top().join("README.md"), &documents, 0o644)?;
    put_all(&top().join("docs"), &documents.join("docs"))?;
    put_all(&top().join("sql/managed"), &documents.join("managed"))?;
    let licence = documents.join("copyright");
    fs::rename(put(&top().join("LICENSE"), &documents, 0o644)?, &licence)
        .map_err(about(&licence))?;
    // The name that README.md uses.
    symlink("copyright", documents.join("LICENSE")).map_err(about(&documents))?;
    compress(put(&top().join("CHANGELOG.md"), &documents, 0o644)?, &documents.join("changelog"))?;
    let zoned = date.to_zoned(TimeZone::UTC);
    let written = rfc2822::to_string(&zoned).map_err(|error| error.to_string())?;
    let changelog = documents.join("packaging");
    write(&changelog, &package.debian_changelog(&written))?;
    compress(changelog, &documents.join("changelog.Debian"))?;

    let libraries = shared_libraries(package, &libraries.join("pg_snowflake.so"))?;
    let kilobytes = ["--summarize", "--apparent-size", "--block-size=1K"];
    let kilobytes = output(command("du").args(kilobytes).arg(root.join("usr")))?;
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or_default();
    let debian = root.join("DEBIAN");
    fs::create_dir(&debian).map_err(about(&debian))?;
    write(&debian.join("control"), &package.debian_control(kilobytes, &libraries))?;
    let files = output(command("find").args(["usr", "-type", "f"]).current_dir(&root))?;
    let mut files: Vec<&str> = files.lines().collect();
    files.sort_unstable();
    let sums = output(command("md5sum").args(files).current_dir(&root))?;
    write(&debian.join("md5sums"), &sums)?;
    let mut build = dated(command("dpkg-deb"), date);
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root);
    output(build.arg(package.folder.join(package.debian_file()))).map(drop)
}

/// In a separate folder: dpkg-shlibdeps must run beside the debian/control of a source package.
fn shared_libraries(package: &Package, library: &Path) -> Result<String> {
    let folder = run_folder().join("shlibdeps");
    let debian = folder.join("debian");
    fs::create_dir_all(&debian).map_err(about(&debian))?;
    let control =
        format!("Source: pg-snowflake\n\nPackage: {}\nArchitecture: any\n", package.name());
    write(&debian.join("control"), &control)?;
    // It warns about the server's functions, which no library has.
    let said = output(command("dpkg-shlibdeps").arg("-O").arg(library).current_dir(&folder))?;
    let found = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).ok_or_else(|| format!("{said}\ndpkg-shlibdeps names no library"))
}

/// For systems without Debian packages: the files, and a script that installs them where a pg_config says.
fn make_tarball(package: &Package, built: &Built, date: Timestamp) -> Result {
    let name = package.tarball_name();
    let folder = run_folder().join(&name);
    put(&built.library, &folder.join("lib"), 0o755)?;
    put_all(&built.extension, &folder.join("extension"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md"] {
        put(&top().join(file), &folder, 0o644)?;
    }
    put_all(&top().join("docs"), &folder.join("docs"))?;
    put_all(&top().join("sql/managed"), &folder.join("managed"))?;
    put(&top().join("packaging/install.sh"), &folder, 0o755)?;
    let archive = run_folder().join(format!("{name}.tar"));
    let mut tar = command("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", date.as_second())).arg("--file").arg(&archive);
    execute(tar.arg("-C").arg(run_folder()).arg(&name))?;
    compress(archive, &package.folder.join(format!("{name}.tar")))
}

fn write_checksums(folder: &Path) -> Result {
    let mut names: Vec<OsString> = fs::read_dir(folder)
        .map_err(about(folder))?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.retain(|name| {
        name.to_string_lossy().ends_with(".deb") || name.to_string_lossy().ends_with(".tar.gz")
    });
    names.sort();
    let sums = output(command("sha256sum").arg("--").args(names).current_dir(folder))?;
    write(&folder.join("SHA256SUMS"), &sums)
}

/// Copies a file into a folder, which is created if needed, and returns the new path.
fn put(file: &Path, folder: &Path, mode: u32) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(about(folder))?;
    let to = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, &to).map_err(about(file))?;
    fs::set_permissions(&to, Permissions::from_mode(mode)).map_err(about(&to))?;
    Ok(to)
}

/// The files of a folder and of its subfolders.
fn put_all(from: &Path, to: &Path) -> Result {
    for entry in fs::read_dir(from).map_err(about(from))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            put_all(&path, &to.join(entry.file_name()))?;
        } else {
            put(&path, to, 0o644)?;
        }
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result {
    fs::write(file, text).map_err(about(file))
}

/// Replaces a file by a compressed one under this name and `.gz`, without a date or a name in it.
fn compress(file: PathBuf, name: &Path) -> Result {
    execute(command("gzip").args(["-9", "--no-name"]).arg(&file))?;
    let (from, to) = (file.with_added_extension("gz"), name.with_added_extension("gz"));
    // Not by renaming, since the folders may be on different disks.
    fs::copy(&from, &to).and_then(|_| fs::remove_file(&from)).map_err(about(&to))
}

/// Makes a command date its output with this time.
fn dated(mut command: Command, date: Timestamp) -> Command {
    command.env("SOURCE_DATE_EPOCH", date.as_second().to_string());
    command
}

#[cfg(test)]
mod tests {
    use super::Package;

    fn package(version: &str) -> Package {
        Package {
            major: 17,
            version: version.into(),
            architecture: "arm64".into(),
            folder: "/".into(),
        }
    }

    #[test]
    fn files_are_named_as_debian_and_its_users_expect() {
        let package = package("0.3.0");
        assert_eq!(package.debian_file(), "postgresql-17-pg-snowflake_0.3.0-1_arm64.deb");
        assert_eq!(package.tarball_file(), "pg_snowflake-0.3.0-pg17-linux-arm64.tar.gz");
    }

    #[test]
    fn a_version_in_development_sorts_before_the_release() {
        assert_eq!(package("0.3.0-dev").debian_version(), "0.3.0~dev-1");
    }

    #[test]
    fn the_control_file_is_as_debian_and_lintian_want_it() {
        let control = package("0.3.0").debian_control("1400", "libc6 (>= 2.34)");
        for line in
            ["Version: 0.3.0-1", "Installed-Size: 1400", "Depends: postgresql-17, libc6 (>= 2.34)"]
        {
            assert!(control.lines().any(|found| found == line), "{line} in\n{control}");
        }
        assert!(control.lines().all(|line| line.len() < 80), "{control}");
        // A line without a leading space is a field, and an empty line ends the paragraph.
        assert!(
            control.lines().all(|line| line.starts_with(' ') || line.contains(": ")),
            "{control}"
        );
    }

    #[test]
    fn the_changelog_of_the_packaging_has_the_form_that_dpkg_parses() {
        let changelog = package("0.3.0-dev").debian_changelog("Sat, 27 Feb 2027 12:00:00 +0000");
        assert!(
            changelog.starts_with("pg-snowflake (0.3.0~dev-1) unstable; urgency=medium\n\n  * ")
        );
        assert!(changelog.ends_with(">  Sat, 27 Feb 2027 12:00:00 +0000\n"), "{changelog}");
    }
}
