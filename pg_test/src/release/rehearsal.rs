//! A release that the tests make themselves, so that they rehearse an update before there is a release, and afterwards with changes
//! of every kind: the head's SQL with some objects as an older version could have had them, and the script that updates it to the
//! head.

use super::{SNOWFLAKE, extensions, head, read};
use std::fs;

/// Its version, older than every release.
pub const VERSION: &str = "0.8.0";

/// A difference to the head.
pub struct Change {
    /// What the catalog shows of it.
    pub shows: &'static str,
    /// A part of the head's SQL.
    head: String,
    /// What stands there in this version.
    older: String,
    /// The statements that update it.
    upgrade: String,
}

/// All differences to the head.
///
/// The statements of the head are taken from its SQL. Only the names and the changed argument are repeated here.
pub fn changes() -> Vec<Change> {
    let head = head_sql();
    let function = |name: &str| statement(&head, &format!("CREATE FUNCTION {name}("));
    let comment = |name: &str| statement(&head, &format!("COMMENT ON FUNCTION {name}("));
    let new =
        format!("{}\n\n{}", function("snowflake_from_base32"), comment("snowflake_from_base32"));
    let create_partitions = function("snowflake_create_partitions");
    let to_base32 = function("snowflake_to_base32");
    let about_base32 = comment("snowflake_to_base32");
    let old_name = |text: &str| text.replace("snowflake_to_base32(", "snowflake_base32(");
    vec![
        Change {
            shows: "snowflake_from_base32",
            head: new.clone(),
            older: String::new(),
            upgrade: new,
        },
        Change {
            shows: "snowflake_base32",
            head: format!("{to_base32}\n\n{about_base32}"),
            older: old_name(&format!("{to_base32}\n\n{about_base32}")),
            upgrade:
                "ALTER FUNCTION snowflake_base32(pg_catalog.int8) RENAME TO snowflake_to_base32;"
                    .into(),
        },
        Change {
            shows: "ahead integer DEFAULT 2",
            head: "ahead integer DEFAULT 4".into(),
            older: "ahead integer DEFAULT 2".into(),
            upgrade: create_partitions.replacen("CREATE", "CREATE OR REPLACE", 1),
        },
        Change {
            shows: "column preset of view snowflake_layouts",
            head: "SELECT preset.layout::pg_catalog.text AS name, info.*".into(),
            older: "SELECT preset.layout::pg_catalog.text AS preset, info.*".into(),
            upgrade: "ALTER VIEW snowflake_layouts RENAME COLUMN preset TO name;".into(),
        },
    ]
}

/// Its install SQL, and the script that updates it to the head.
pub fn scripts() -> [String; 2] {
    let changes = changes();
    let older = changes.iter().fold(head_sql(), |sql, change| {
        let places = sql.matches(&change.head).count();
        assert_eq!(places, 1, "in the head's SQL there must be exactly one:\n{}", change.head);
        sql.replace(&change.head, &change.older)
    });
    [older, upgrade(&changes)]
}

/// Writes both scripts into the installation under test.
pub(super) fn install() {
    let [older, upgrade] = scripts();
    super::install(&SNOWFLAKE.install_script(VERSION), &older);
    super::install(&SNOWFLAKE.upgrade_script(VERSION, &head()), &upgrade);
}

/// Calls `run` with a version to which a script updates this one that omits a change.
pub fn without(omitted: &str, run: impl FnOnce(&str)) {
    let version = "omission";
    let kept: Vec<Change> =
        changes().into_iter().filter(|change| change.shows != omitted).collect();
    let script = SNOWFLAKE.upgrade_script(VERSION, version);
    super::install(&script, &upgrade(&kept));
    run(version);
    fs::remove_file(extensions().join(script)).expect("the script is there");
}

fn upgrade(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{}\n\n", change.upgrade)).collect()
}

/// The install SQL of the head, as it is installed.
fn head_sql() -> String {
    read(&extensions().join(SNOWFLAKE.install_script(&head())))
}

/// The statement of the SQL that begins in this way.
fn statement(sql: &str, beginning: &str) -> String {
    let start = sql.find(beginning).unwrap_or_else(|| panic!("the head has no {beginning}"));
    let end = sql[start..].find(";\n").expect("a statement ends with a semicolon");
    sql[start..=start + end].to_owned()
}
