//! A release that the tests make themselves, so that they rehearse an update before there is a release, and afterwards with changes
//! of every kind: the head's SQL with statements that undo some of it, and the script that updates it to the head.

use super::{EXTENSIONS, Extension, REGISTRY, REHEARSED as VERSION, extensions, head, read, versions};
use crate::top;
use std::sync::Once;

/// A difference to the head.
pub struct Change {
    /// What the catalog shows of it.
    pub shows: &'static str,
    /// The statements that make the older version of the head.
    undo: String,
    /// The statements that update it.
    upgrade: String,
}

impl Change {
    fn new(shows: &'static str, undo: impl Into<String>, upgrade: impl Into<String>) -> Self {
        Change { shows, undo: undo.into(), upgrade: upgrade.into() }
    }
}

/// All differences of an extension to the head, whose SQL has the bodies of the functions.
pub fn changes(extension: &Extension) -> Vec<Change> {
    let head = head_sql(extension);
    if extension.name == REGISTRY.name {
        return vec![
            Change::new(
                "take_over",
                "DROP FUNCTION snowflake_registry.take_over;",
                function(&head, "snowflake_registry.take_over") + "\nREVOKE ALL ON FUNCTION snowflake_registry.take_over FROM PUBLIC;",
            ),
            Change::new(
                "column status of view snowflake_registry.leases",
                "ALTER VIEW snowflake_registry.leases RENAME COLUMN state TO status;",
                "ALTER VIEW snowflake_registry.leases RENAME COLUMN status TO state;",
            ),
            Change::new(
                "CHECK ((shard_id >= 0))",
                "ALTER TABLE snowflake_registry.shards DROP CONSTRAINT shards_shard_id_check;",
                "ALTER TABLE snowflake_registry.shards ADD CHECK (shard_id >= 0);",
            ),
            Change::new(
                "A | CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON snowflake_registry.nodes",
                "ALTER TABLE snowflake_registry.nodes ENABLE TRIGGER refuse_truncate;",
                "ALTER TABLE snowflake_registry.nodes ENABLE ALWAYS TRIGGER refuse_truncate;",
            ),
        ];
    }
    let create_partitions = function(&head, "snowflake_create_partitions");
    let with_default = create_partitions.replacen("CREATE", "CREATE OR REPLACE", 1);
    vec![
        Change::new(
            "snowflake_from_base32",
            "DROP FUNCTION snowflake_from_base32(pg_catalog.text);",
            function(&head, "snowflake_from_base32"),
        ),
        Change::new(
            "snowflake_base32",
            "ALTER FUNCTION snowflake_to_base32(pg_catalog.int8) RENAME TO snowflake_base32;",
            "ALTER FUNCTION snowflake_base32(pg_catalog.int8) RENAME TO snowflake_to_base32;",
        ),
        Change::new("ahead integer DEFAULT 2", with_default.replace("ahead integer DEFAULT 4", "ahead integer DEFAULT 2"), with_default),
        Change::new(
            "column preset of view snowflake_layouts",
            "ALTER VIEW snowflake_layouts RENAME COLUMN name TO preset;",
            "ALTER VIEW snowflake_layouts RENAME COLUMN preset TO name;",
        ),
    ]
}

/// The install SQL of an extension, and the script that updates it to the head.
pub fn scripts(extension: &Extension) -> [String; 2] {
    let changes = changes(extension);
    let all = |of: fn(&Change) -> &str| changes.iter().map(of).collect::<Vec<_>>().join("\n\n");
    [head_sql(extension) + &all(|change| &change.undo), all(|change| &change.upgrade)]
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

/// The install SQL of an extension in the head, as it is installed.
fn head_sql(extension: &Extension) -> String {
    read(&extensions().join(extension.install_script(&head())))
}

/// The function of that name in the SQL, with its comment.
fn function(sql: &str, name: &str) -> String {
    let (_, from) = sql.split_once(&format!("CREATE FUNCTION {name}(")).expect(name);
    let comment = from.find(&format!("COMMENT ON FUNCTION {name}(")).expect(name);
    let end = comment + from[comment..].find(";\n").expect(name);
    format!("CREATE FUNCTION {name}({};\n", &from[..end])
}
