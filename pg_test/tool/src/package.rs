//! The Debian package, by Debian's tools. `debian/` says how it is built.

use crate::tools::{Result, about, command, execute, output, target};
use pg_snowflake_harness::output::step;
use pg_snowflake_harness::release;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The last commit and its crates as a source package, and from it a package for the major, built without a network.
pub fn build(major: u32) -> Result {
    let folder = target().join("pg_snowflake-packages");
    let version = release::debian_version(&release::head());
    let upstream = version.rsplit_once('-').map_or(version.as_str(), |(upstream, _)| upstream);
    let archive = |part: &str| folder.join(format!("pg-snowflake_{upstream}.orig{part}.tar.gz"));
    execute(command("rm").arg("-rf").arg(&folder))?;
    fs::create_dir_all(&folder).map_err(about(&folder))?;
    let mut git = command("git");
    git.args(["archive", "--prefix=pg-snowflake/", "HEAD", "--output"]);
    execute(git.arg(archive("")))?;
    execute(command("tar").arg("-x").arg("-C").arg(&folder).arg("-f").arg(archive("")))?;
    let tree = folder.join("pg-snowflake");
    output(in_tree("cargo", &tree).args(["vendor", "--locked", "--quiet"]))?;
    execute(in_tree("tar", &tree).arg("-cz").arg("-f").arg(archive("-vendor")).arg("vendor"))?;
    // An ordinary user may not be allowed to have a network of his own.
    let alone = ["unshare --net", "unshare --net --map-root-user"]
        .into_iter()
        .find(|alone| command("sh").args(["-c", &format!("{alone} true 2>/dev/null")]).status().is_ok_and(|s| s.success()));
    match alone {
        Some(_) => step(&format!("building the package for PostgreSQL {major}, without a network")),
        None => step("left out: a build without a network, which this user may not have"),
    }
    let build = format!("{} dpkg-buildpackage --no-sign --build-profiles=nocheck", alone.unwrap_or_default());
    // debian/control is of all majors. CI tests the package on another machine.
    let mut package = in_tree("sh", &tree);
    package.args(["-c", &build]).env("DEB_BUILD_OPTIONS", "nocheck");
    execute(package.env("PG_SUPPORTED_VERSIONS", major.to_string()).env("PG_UPDATECONTROL", "yes"))
}

/// With the distribution's Rust, as on its build servers, and not rustup's.
fn in_tree(program: &str, tree: &Path) -> Command {
    let mut command = command(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.current_dir(tree).env("PATH", format!("/usr/bin:{path}")).env_remove("RUSTUP_TOOLCHAIN");
    command
}
