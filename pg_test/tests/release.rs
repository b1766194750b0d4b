//! Released files never change, and the places that state the version state the same one; those of JavaScript and pg_tle are found by
//! the tool's `version.rs`.

use pg_snowflake_harness::release::{self, read};
use pg_snowflake_harness::top;
use serde_json::Value;

#[test]
fn the_sql_of_a_release_never_changes_and_scripts_update_it_to_the_head() {
    assert_eq!(release::problems(top()), [""; 0]);
}

/// PGXN's validator, which `./dev lint` runs, checks the rest.
#[test]
fn meta_json_names_the_version_and_files_that_are_here() {
    let meta: Value = serde_json::from_str(&read(&top().join("META.json"))).unwrap();
    let head = release::head();
    assert_eq!(meta["release_status"], release::status(&head), "{head}");
    for extension in ["pg_snowflake", "pg_snowflake_registry"] {
        let extension = &meta["provides"][extension];
        assert_eq!([&meta["version"], &extension["version"]], [&head, &head]);
        for file in ["file", "docfile"] {
            let file = extension[file].as_str().unwrap();
            assert!(top().join(file).exists(), "{file} is missing");
        }
    }
}

/// Cargo.toml is where the maintainer states them.
#[test]
fn meta_json_has_the_maintainer_and_the_repository_of_cargo_toml() {
    let meta: Value = serde_json::from_str(&read(&top().join("META.json"))).unwrap();
    let resources = &meta["resources"];
    let repository = release::metadata("repository");

    assert_eq!(meta["maintainer"], release::metadata("authors"));
    assert_eq!(resources["homepage"], release::metadata("homepage"));
    assert_eq!(resources["repository"]["web"], repository);
    assert_eq!(resources["repository"]["url"], format!("{repository}.git"));
    assert_eq!(resources["bugtracker"]["web"], format!("{repository}/issues"));
}

/// `debian/control` is made from `debian/control.in`.
#[test]
fn the_debian_packages_have_the_version_the_maintainer_and_the_links_of_cargo_toml() {
    let debian = |file: &str| read(&top().join("debian").join(file));
    let maintainer = release::metadata("authors");
    let version = release::debian_version(&release::head());

    assert!(debian("changelog").starts_with(&format!("pg-snowflake ({version}) ")));
    assert!(debian("changelog").contains(&format!("\n -- {maintainer}  ")));
    let homepage = release::metadata("homepage");
    for file in ["control", "control.in"] {
        assert!(debian(file).contains(&format!("\nMaintainer: {maintainer}\n")), "{file}");
        assert!(debian(file).contains(&format!("\nHomepage: {homepage}\n")), "{file}");
    }
    let repository = release::metadata("repository");
    assert!(debian("copyright").contains(&format!("\nSource: {repository}\n")));
}

#[test]
fn a_release_has_no_placeholder() {
    let placeholders = release::placeholders();

    assert!(release::head().ends_with("-dev") || placeholders.is_empty(), "{placeholders}");
}
