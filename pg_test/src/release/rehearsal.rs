//! A release that the tests make themselves, so that they rehearse an update before there is a release, and afterwards with changes
//! of every kind: the head's SQL with some objects as an older version could have had them, and the script that updates it to the
//! head.

use super::{
    EXTENSIONS, Extension, REGISTRY, REHEARSED as VERSION, extensions, head, read, versions,
};
use crate::top;
use std::fs;
use std::sync::Once;

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

/// All differences of an extension to the head.
///
/// The statements of the head are taken from its SQL. Only the names and what is changed are repeated here.
pub fn changes(extension: &Extension) -> Vec<Change> {
    let head = head_sql(extension);
    if extension.name == REGISTRY.name { of_registry(&head) } else { of_snowflake(&head) }
}

fn of_snowflake(head: &str) -> Vec<Change> {
    let new = function(head, "snowflake_from_base32");
    let create_partitions = statement(head, "CREATE FUNCTION snowflake_create_partitions(");
    let to_base32 = function(head, "snowflake_to_base32");
    vec![
        Change {
            shows: "snowflake_from_base32",
            head: new.clone(),
            older: String::new(),
            upgrade: new,
        },
        Change {
            shows: "snowflake_base32",
            older: to_base32.replace("snowflake_to_base32(", "snowflake_base32("),
            head: to_base32,
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

fn of_registry(head: &str) -> Vec<Change> {
    let take_over = function(head, "snowflake_registry.take_over");
    let leases = statements(
        head,
        "CREATE VIEW snowflake_registry.leases ",
        "COMMENT ON COLUMN snowflake_registry.leases.state ",
    );
    vec![
        Change {
            shows: "take_over",
            head: take_over.clone(),
            older: String::new(),
            upgrade: format!(
                "{take_over}\nREVOKE ALL ON FUNCTION snowflake_registry.take_over FROM PUBLIC;"
            ),
        },
        Change {
            shows: "column status of view snowflake_registry.leases",
            older: leases
                .replace(" AS state", " AS status")
                .replace("leases.state ", "leases.status "),
            head: leases,
            upgrade: "ALTER VIEW snowflake_registry.leases RENAME COLUMN status TO state;".into(),
        },
        Change {
            shows: "CHECK ((shard_id >= 0))",
            head: " CHECK (shard_id >= 0)".into(),
            older: String::new(),
            upgrade: "ALTER TABLE snowflake_registry.shards ADD CHECK (shard_id >= 0);".into(),
        },
    ]
}

/// The install SQL of an extension, and the script that updates it to the head.
pub fn scripts(extension: &Extension) -> [String; 2] {
    let changes = changes(extension);
    let older = changes.iter().fold(head_sql(extension), |sql, change| {
        let places = sql.matches(&change.head).count();
        assert_eq!(places, 1, "in the head's SQL there must be exactly one:\n{}", change.head);
        sql.replace(&change.head, &change.older)
    });
    [older, upgrade(&changes)]
}

/// Puts the SQL of all versions in [`super::older`] beside that of the head in the installation under test, so that a test can start
/// from one.
pub(crate) fn install_all() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for version in versions(top()) {
            for extension in EXTENSIONS {
                let released = read(&top().join(extension.released(&version)));
                super::install(&extension.install_script(&version), &released);
            }
        }
        install();
    });
}

/// Writes both scripts of all extensions into the installation under test.
fn install() {
    for extension in EXTENSIONS {
        let [older, upgrade] = scripts(&extension);
        super::install(&extension.install_script(VERSION), &older);
        super::install(&extension.upgrade_script(VERSION, &head()), &upgrade);
    }
}

/// Calls `run` with a version to which a script that omits a change updates this one of the extension.
pub fn without(extension: &Extension, omitted: &str, run: impl FnOnce(&str)) {
    let version = "omission";
    let kept: Vec<Change> =
        changes(extension).into_iter().filter(|change| change.shows != omitted).collect();
    let script = extension.upgrade_script(VERSION, version);
    super::install(&script, &upgrade(&kept));
    run(version);
    fs::remove_file(extensions().join(script)).expect("the script is there");
}

fn upgrade(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{}\n\n", change.upgrade)).collect()
}

/// The install SQL of an extension in the head, as it is installed.
fn head_sql(extension: &Extension) -> String {
    read(&extensions().join(extension.install_script(&head())))
}

/// The function of that name in the SQL, with its comment.
fn function(sql: &str, name: &str) -> String {
    statements(sql, &format!("CREATE FUNCTION {name}("), &format!("COMMENT ON FUNCTION {name}("))
}

/// The statement of the SQL that begins in this way.
fn statement(sql: &str, beginning: &str) -> String {
    statements(sql, beginning, beginning)
}

/// The statements of the SQL from the one that begins with `first` to the one that begins with `last`.
fn statements(sql: &str, first: &str, last: &str) -> String {
    let find = |from: usize, text: &str| {
        let found = sql[from..].find(text).unwrap_or_else(|| panic!("the head has no {text}"));
        from + found
    };
    let start = find(0, first);
    let end = find(find(start, last), ";\n");
    sql[start..=end].to_owned()
}
