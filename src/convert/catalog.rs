//! What a conversion asks the catalog.

use crate::postgres::query::{rows, text};
use pgrx::prelude::*;

/// The relation with this quoted name.
pub fn relation(name: &str) -> pg_sys::Oid {
    rows("SELECT $1::regclass::oid", &[text(name)], |row| row.get(1))[0]
}

/// The extension's own objects.
pub struct Extension {
    /// Its schema, quoted.
    pub schema: String,
    /// Its schema.
    pub namespace: pg_sys::Oid,
    /// The type `snowflake`.
    pub snowflake: pg_sys::Oid,
}

impl Extension {
    /// Reads them from the catalog.
    pub fn read() -> Self {
        let sql = "SELECT quote_ident(n.nspname), n.oid, t.oid
            FROM pg_extension AS e
            JOIN pg_namespace AS n ON n.oid = e.extnamespace
            JOIN pg_type AS t ON t.typnamespace = n.oid AND t.typname = 'snowflake'
            WHERE e.extname = 'pg_snowflake'";
        let mut found = rows(sql, &[], |row| Extension { schema: row.get(1), namespace: row.get(2), snowflake: row.get(3) });
        found.pop().expect("the extension is there")
    }
}

/// A table, `$1`, and all that inherit from it, as `tree (relid)`.
pub const TREE: &str = "WITH RECURSIVE tree (relid) AS (
        SELECT $1::oid
        UNION
        SELECT i.inhrelid FROM pg_inherits AS i JOIN tree ON i.inhparent = tree.relid)";

/// The row in `pg_attribute` of the column `$2` of each table in [`TREE`], as `tree_column`. It follows [`TREE`].
pub const TREE_COLUMN: &str = ", tree_column AS (
        SELECT a.* FROM tree JOIN pg_attribute AS a ON a.attrelid = tree.relid AND a.attname = $2::name)";
