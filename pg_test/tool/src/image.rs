//! The image that CloudNativePG mounts into its servers, as an OCI archive.

use crate::tools::{Result, about, cargo, command, execute, major, make, output, pg_config, run_folder, target, top};
use pg_snowflake_harness::output::{say, step};
use pg_snowflake_harness::release;
use std::fs;

/// Builds it, and tests it on a server that has never had the extension.
pub fn build() -> Result {
    let (major, version) = (major(), release::head());
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let distribution = system.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let distribution = distribution.ok_or("/etc/os-release has no VERSION_CODENAME")?;
    let name = format!("pg_snowflake:{version}-{major}-{distribution}");
    let archive = target().join(format!("{}.tar", name.replace(':', "-")));
    step(&format!("building {name}"));
    // Containerfile copies it from there.
    let files = top().join("target/image");
    execute(command("rm").arg("-rf").args([&files, &archive]))?;
    // The test looks for the SQL of the head in the installation.
    execute(make("release", &pg_config()).args(["all", "install"]))?;
    let mut install = make("release", &pg_config());
    install.args(["install", "DESTDIR=target/image", "pkglibdir=/lib", "datadir=/share"]);
    execute(&mut install)?;
    let git = |arguments: &[&str]| output(command("git").args(arguments)).map(|said| said.trim().to_owned());
    let revision = git(&["describe", "--always", "--dirty", "--abbrev=40"])?;
    // So that two builds of a commit have the same digest.
    let date = git(&["log", "-1", "--format=%ct"])?;
    let buildah = || {
        let mut buildah = command("buildah");
        buildah.args(["--storage-driver", "vfs", "--root"]).arg(run_folder().join("images"));
        buildah.arg("--runroot").arg(run_folder().join("containers"));
        buildah
    };
    let mut build = buildah();
    build.args(["build", "--quiet", "--isolation", "chroot", "--identity-label=false"]);
    build.args(["--omit-history", "--timestamp", &date, "--file", "packaging/Containerfile"]);
    for (argument, value) in
        [("MAJOR", major.to_string()), ("VERSION", version), ("DISTRIBUTION", distribution.to_owned()), ("REVISION", revision)]
    {
        build.arg(format!("--build-arg={argument}={value}"));
    }
    output(build.args(["--tag", "pg_snowflake", "."]))?;
    let digest = run_folder().join("digest");
    let mut push = buildah();
    push.args(["push", "--quiet", "--digestfile"]).arg(&digest).arg("pg_snowflake");
    output(push.arg(format!("oci-archive:{}:{name}", archive.display())))?;
    step("testing it");
    let mut test = cargo(&["test", "--quiet", "--package", "pg_snowflake_harness"]);
    test.args(["--test", "servers", "--", "extension_image"]).env("EXTENSION_IMAGE", &archive);
    execute(&mut test)?;
    let digest = fs::read_to_string(&digest).map_err(about(&digest))?;
    say(&format!("{} {digest}", archive.display()));
    Ok(())
}
