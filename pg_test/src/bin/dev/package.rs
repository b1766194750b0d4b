//! Packages for users: one of Debian, and a tarball for the servers of others.

use crate::tools::{
    Result, about, cargo_pgrx, command, copy_installation, execute, major, output, pg_config,
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

/// What the packages of a major are called, and in which folder they are.
struct Package {
    major: u32,
    version: String,
    /// As Debian calls it.
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

    /// A tilde sorts before everything, as a pre-release should.
    fn debian_version(&self) -> String {
        format!("{}-1", self.version.replace('-', "~"))
    }

    fn debian_file(&self) -> String {
        format!("{}_{}_{}.deb", self.name(), self.debian_version(), self.architecture)
    }

    /// The tarball's top folder, and its name but for `.tar.gz`.
    fn tarball_name(&self) -> String {
        format!("pg_snowflake-{}-pg{}-linux-{}", self.version, self.major, self.architecture)
    }

    fn tarball_file(&self) -> String {
        format!("{}.tar.gz", self.tarball_name())
    }

    /// Of the packaging, which has nothing to tell besides the version: what has changed is in the other one.
    fn debian_changelog(&self, date: &str) -> String {
        format!(
            "pg-snowflake ({}) unstable; urgency=medium\n\n  * pg_snowflake {}, see changelog.gz.\n\n \
             -- the pg_snowflake authors <>  {date}\n",
            self.debian_version(),
            self.version
        )
    }

    /// The lines of a description are shorter than 80 characters, at which lintian looks.
    fn debian_control(&self, kilobytes: &str, libraries: &str) -> String {
        let (name, version, major) = (self.name(), self.debian_version(), self.major);
        let architecture = &self.architecture;
        format!(
            "Package: {name}
Source: pg-snowflake
Version: {version}
Architecture: {architecture}
Section: database
Priority: optional
Maintainer: the pg_snowflake authors
Installed-Size: {kilobytes}
Depends: postgresql-{major}, {libraries}
Description: 64-bit ids of time, shard and counter from a PostgreSQL sequence
 An extension of PostgreSQL {major} for sharded databases. The sequence is a
 hybrid logical clock: ids sort by time, say which shard their row lives on,
 and none that was committed repeats, whatever the clock, a crash or a
 failover does.
"
        )
    }
}

/// Makes both, and the checksums of all that is in their folder.
pub fn make() -> Result {
    let package = Package::of_this_tree()?;
    let stage = run_folder().join("stage");
    step(&format!("building the package for {}", server_version()?));
    build_without_paths(&stage)?;
    let built = Built::in_stage(&stage);
    execute(command("strip").arg("--strip-unneeded").arg(&built.library))?;
    refuse_paths_of_this_machine(&built.library)?;
    fs::create_dir_all(&package.folder).map_err(about(&package.folder))?;
    // Files are dated by the commit. What keeps two packages from being the same to the byte is the order of the
    // install SQL, which pgrx does not promise.
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

/// Puts both into a folder, once their checksums are found right, with the script that tries them on a clean system.
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

/// Tries the tarball on a server that is no package of Debian's, which is whom it is for: a copy of the one under test,
/// without what `./dev build` put there. The Debian package cannot be installed where apt has no server for it to depend
/// on, but it has to have the same files.
pub fn try_tarball(folder: &Path) -> Result {
    let package = Package::of_this_tree()?;
    files(folder)?;
    step(&format!("trying the tarball on {}", server_version()?));
    let pg_config = copy_installation(&run_folder().join("installation"))?;
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
    // Another process, since this one has asked the other installation where its programs are.
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

/// Tries what is installed, as on a system that has never seen the extension.
pub fn smoke() {
    let server = Cluster::new();
    server.empty_database("smoke");
    print!("{}", server.psql("smoke", include_str!("../../../../packaging/smoke.sql")));
}

/// What pgrx has built.
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

/// The messages of a panic name source files: of this machine's folders they say nothing. In a target folder of its own,
/// since what is built with other flags is built anew.
fn build_without_paths(stage: &Path) -> Result {
    let build = target().join("pg_snowflake-package-build");
    let renamed = |path: &Path, name: &str| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(path);
        flag.push(format!("={name}"));
        flag
    };
    // These take the place of pgrx's own flag, at which the linker keeps all that nothing calls, for the sake of the
    // sections that the install SQL is made from. GNU ld and lld keep those by their mark; a linker that does not leaves
    // nothing to make the SQL from, and pgrx refuses.
    let flags = [
        renamed(&build, "target"),
        renamed(top(), "pg_snowflake"),
        renamed(&cargo_home()?, "cargo"),
    ];
    let mut package = cargo_pgrx(&["package", "--pg-config"])?;
    package.arg(pg_config()).arg("--out-dir").arg(stage);
    // Separated and quoted as cargo and its C compiler want it where a path may have a space.
    package.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}".as_ref()));
    package.env("CARGO_TARGET_DIR", &build).env("CC_SHELL_ESCAPED_FLAGS", "1");
    package.env("CFLAGS", format!("'-ffile-prefix-map={}=target'", build.display()));
    output(&mut package).map(drop)
}

fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cargo"));
    let folder = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    folder.ok_or_else(|| "there is no home folder".to_owned())
}

fn refuse_paths_of_this_machine(library: &Path) -> Result {
    let bytes = fs::read(library).map_err(about(library))?;
    for folder in [cargo_home()?, target().join("pg_snowflake-package-build")] {
        let name = format!("{}/", folder.display());
        if bytes.windows(name.len()).any(|window| window == name.as_bytes()) {
            return Err(format!(
                "the library for the package names {name}, a folder of this machine"
            ));
        }
    }
    Ok(())
}

fn make_debian_package(package: &Package, built: &Built, date: Timestamp) -> Result {
    let root = run_folder().join("debian");
    let documents = root.join("usr/share/doc").join(package.name());
    let libraries = root.join(format!("usr/lib/postgresql/{}/lib", package.major));
    put(&built.library, &libraries, 0o644)?;
    let extension = root.join(format!("usr/share/postgresql/{}/extension", package.major));
    put_all(&built.extension, &extension)?;
    put(&top().join("README.md"), &documents, 0o644)?;
    put_docs(&documents)?;
    let licence = documents.join("copyright");
    fs::rename(put(&top().join("LICENSE"), &documents, 0o644)?, &licence)
        .map_err(about(&licence))?;
    // As README.md calls it.
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

/// In a folder of its own: dpkg-shlibdeps wants to stand beside a source package's debian/control.
fn shared_libraries(package: &Package, library: &Path) -> Result<String> {
    let folder = run_folder().join("shlibdeps");
    let debian = folder.join("debian");
    fs::create_dir_all(&debian).map_err(about(&debian))?;
    let control =
        format!("Source: pg-snowflake\n\nPackage: {}\nArchitecture: any\n", package.name());
    write(&debian.join("control"), &control)?;
    // It warns of the server's functions, which are in no library.
    let said = output(command("dpkg-shlibdeps").arg("-O").arg(library).current_dir(&folder))?;
    let found = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).ok_or_else(|| format!("{said}\ndpkg-shlibdeps names no library"))
}

/// For systems without Debian's packages: the files, and a script that puts them where a pg_config says.
fn make_tarball(package: &Package, built: &Built, date: Timestamp) -> Result {
    let name = package.tarball_name();
    let folder = run_folder().join(&name);
    put(&built.library, &folder.join("lib"), 0o755)?;
    put_all(&built.extension, &folder.join("extension"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE"] {
        put(&top().join(file), &folder, 0o644)?;
    }
    put_docs(&folder)?;
    put(&top().join("packaging/install.sh"), &folder, 0o755)?;
    let archive = run_folder().join(format!("{name}.tar"));
    let mut tar = command("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", date.as_second())).arg("--file").arg(&archive);
    execute(tar.arg("-C").arg(run_folder()).arg(&name))?;
    compress(archive, &package.folder.join(format!("{name}.tar")))
}

fn put_docs(folder: &Path) -> Result {
    put_all(&top().join("docs"), &folder.join("docs"))?;
    put_all(&top().join("docs/benchmarks"), &folder.join("docs/benchmarks"))
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

/// Copies a file into a folder, which is made where it is not there, and returns its new path.
fn put(file: &Path, folder: &Path, mode: u32) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(about(folder))?;
    let to = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, &to).map_err(about(file))?;
    fs::set_permissions(&to, Permissions::from_mode(mode)).map_err(about(&to))?;
    Ok(to)
}

/// The files of a folder, not those of folders in it.
fn put_all(from: &Path, to: &Path) -> Result {
    for entry in fs::read_dir(from).map_err(about(from))?.flatten() {
        if entry.path().is_file() {
            put(&entry.path(), to, 0o644)?;
        }
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result {
    fs::write(file, text).map_err(about(file))
}

/// Puts a compressed file in the place of another, under that name and `.gz`, with no date and no name in it.
fn compress(file: PathBuf, name: &Path) -> Result {
    execute(command("gzip").args(["-9", "--no-name"]).arg(&file))?;
    let (from, to) = (file.with_added_extension("gz"), name.with_added_extension("gz"));
    // Not by renaming, since one may be on another disk.
    fs::copy(&from, &to).and_then(|_| fs::remove_file(&from)).map_err(about(&to))
}

/// Has a command date what it writes by that instant.
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
        // A line that begins without a space is a field, and an empty one ends the paragraph.
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
        assert!(
            changelog.ends_with(
                "\n\n -- the pg_snowflake authors <>  Sat, 27 Feb 2027 12:00:00 +0000\n"
            )
        );
    }
}
