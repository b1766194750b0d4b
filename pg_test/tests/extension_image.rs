//! From PostgreSQL 18 on, a server runs the extension from a folder outside of its installation, as CloudNativePG mounts it from an
//! image. The folder is the image that `./dev image` has built and names in `EXTENSION_IMAGE`, an OCI archive, or has the files of the
//! installation under test.

use pg_snowflake_harness::installation::{copy_without_extension, has_major, pg_config, run as run_program, temp_dir};
use pg_snowflake_harness::leases::{Registry, as_node, first_id};
use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::release::REHEARSED;
use pg_snowflake_harness::release::rehearsal::scripts;
use pg_snowflake_harness::release::{EXTENSIONS, head, upgrades};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const FILES: [&str; 2] = ["lib/pg_snowflake.so", "licenses/pg_snowflake/LICENSE"];

/// An installation that has never had the extension, and a folder with `lib/` and `share/extension/` of the extension.
struct Mounted {
    dir: TempDir,
    bindir: PathBuf,
}

impl Mounted {
    /// Nothing on a server that cannot look for extensions elsewhere.
    fn new() -> Option<Self> {
        if !has_major(18, "an extension outside of the installation") {
            return None;
        }
        let dir = temp_dir();
        let bindir = copy_without_extension(&dir.path().join("installation"));
        let folder = dir.path().join("extension");
        match std::env::var_os("EXTENSION_IMAGE") {
            Some(archive) => unpack(Path::new(&archive), &folder),
            None => collect(&folder),
        }
        Some(Mounted { dir, bindir })
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("extension")
    }

    /// Builds a server with the two settings that the operator adds.
    fn server(&self) -> Builder {
        let folder = self.folder();
        Cluster::builder()
            .bindir(&self.bindir)
            .setting("extension_control_path", &format!("$system:{}/share", folder.display()))
            .setting("dynamic_library_path", &format!("$libdir:{}/lib", folder.display()))
    }
}

/// Puts the files of the installation under test where an image has them.
fn collect(folder: &Path) {
    let (lib, share) = (folder.join("lib"), folder.join("share/extension"));
    for folder in [&lib, &share] {
        fs::create_dir_all(folder).unwrap();
    }
    let library = "pg_snowflake.so";
    fs::copy(pg_config("--pkglibdir").join(library), lib.join(library)).unwrap();
    for name in names_of_sql() {
        fs::copy(pg_config("--sharedir").join("extension").join(&name), share.join(name)).unwrap();
    }
}

/// The files of the SQL: the head's, and what updates a release to it.
fn names_of_sql() -> Vec<String> {
    let heads = EXTENSIONS.iter().flat_map(|extension| [format!("{}.control", extension.name), extension.install_script(&head())]);
    let upgrades = upgrades(top()).into_iter().map(|path| {
        let name = Path::new(&path).file_name().expect("a file");
        name.to_str().expect("a name in UTF-8").to_owned()
    });
    heads.chain(upgrades).collect()
}

/// Reads an OCI archive as the runtime of containers does, and checks that it has only what belongs there.
fn unpack(archive: &Path, folder: &Path) {
    let layout = temp_dir();
    let extract = |archive: &Path, to: &Path| {
        run_program(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(to), b"");
    };
    let blob = |descriptor: &serde_json::Value| {
        let digest = descriptor["digest"].as_str().expect("a digest").replace(':', "/");
        layout.path().join("blobs").join(digest)
    };
    let read = |path: PathBuf| -> serde_json::Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    extract(archive, layout.path());
    let index = read(layout.path().join("index.json"));
    let manifest = read(blob(&index["manifests"][0]));
    fs::create_dir(folder).unwrap();
    for layer in manifest["layers"].as_array().expect("layers") {
        extract(&blob(layer), folder);
    }

    let find = Command::new("find").arg(folder).args(["!", "-type", "d", "-printf", "%P\n"]).output();
    let found = String::from_utf8(find.unwrap().stdout).unwrap();
    let mut found: Vec<&str> = found.lines().collect();
    found.sort_unstable();
    let sql = names_of_sql().into_iter().map(|name| format!("share/extension/{name}"));
    let mut expected: Vec<String> = FILES.map(str::to_owned).into_iter().chain(sql).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn servers_generate_ids_by_leases_with_the_extension_in_a_mounted_folder() {
    let Some(mounted) = Mounted::new() else { return };
    let registry = Registry::start_with(mounted.server());
    let node = as_node(mounted.server(), "db-1", &registry.conninfo()).start();
    let mut client = node.connect();
    run(&mut client, "CREATE SEQUENCE s");

    let id = first_id(&mut client, "SELECT snowflake_nextval('s')");

    assert_eq!(printed(&mut client, "SELECT snowflake_lease_mode()"), "on");
    let leases = "SELECT shard_id, node FROM snowflake_registry.leases";
    assert_eq!(printed(&mut registry.cluster.connect(), leases), format!("{}|db-1", split(id).shard));
}

#[test]
fn both_extensions_are_updated_in_a_mounted_folder() {
    let Some(mounted) = Mounted::new() else { return };
    for extension in EXTENSIONS {
        let names = [extension.install_script(REHEARSED), extension.upgrade_script(REHEARSED, &head())];
        for (name, script) in names.into_iter().zip(scripts(&extension)) {
            fs::write(mounted.folder().join("share/extension").join(name), script).unwrap();
        }
    }
    let cluster = mounted.server().start();
    let mut client = cluster.empty_database("older");
    for extension in EXTENSIONS.map(|extension| extension.name) {
        run(&mut client, &format!("CREATE EXTENSION {extension} VERSION '{REHEARSED}'"));
    }
    run(&mut client, "CREATE SEQUENCE s; SELECT snowflake_nextval('s', 5)");

    for extension in EXTENSIONS.map(|extension| extension.name) {
        run(&mut client, &format!("ALTER EXTENSION {extension} UPDATE"));
        assert_eq!(printed(&mut client, &format!("SELECT extversion FROM pg_extension WHERE extname = '{extension}'")), head());
    }
    assert_eq!(split(take_one(&mut client, "SELECT snowflake_nextval('s', 5)")).shard, 5);
}
