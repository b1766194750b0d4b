//! The constraints on a column: its type and the CHECKs, which new IDs must satisfy, and the CHECK that rejects other shards.

use super::{Attribute, Column};
use crate::convert::references::{TREE, TREE_COLUMN};
use crate::postgres::call::guarded;
use crate::postgres::encoding::from_server;
use crate::postgres::query::{execute, rows, text};
use crate::postgres::report::Raise;
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::messages::convert as messages;
use pgrx::prelude::*;
use std::ffi::{CStr, c_char};

/// The condition that `k`, a row of `pg_constraint`, is enforced: from 18 on, a CHECK may be `NOT ENFORCED`.
const IS_ENFORCED: &str = if cfg!(any(feature = "pg15", feature = "pg16", feature = "pg17")) { "" } else { "AND k.conenforced" };

impl Column {
    /// The highest value of another shard. A negative value counts as one: it is not an ID, and in a layout of
    /// fewer than 64 bits it has no shard.
    pub fn highest_of_other_shards(&self, layout: Layout, shard: u32) -> Option<i64> {
        let Attribute { name, .. } = &self.attribute;
        let of_other_shards = format!(
            "WHERE CASE WHEN {name}::int8 < 0 THEN true ELSE ({}) <> {shard}::int8 END",
            layout.shard_formula(&format!("{name}::int8")),
        );
        self.highest_where(&of_other_shards)
    }

    /// Drops the table's constraint with this quoted name, if another constraint has the same definition.
    pub fn drop_if_duplicate(&self, constraint: &str) {
        let sql = "SELECT FROM pg_constraint AS added
            JOIN pg_constraint AS other ON other.conrelid = added.conrelid AND other.oid <> added.oid
            WHERE added.conrelid = $1 AND quote_ident(added.conname) = $2
                AND pg_get_constraintdef(other.oid) = pg_get_constraintdef(added.oid)";
        if !rows(sql, &[self.id_column.table.into(), text(constraint)], |_| ()).is_empty() {
            let drop = format!("ALTER TABLE {} DROP CONSTRAINT {constraint}", self.table.name);
            execute(&drop, &[]);
        }
    }

    /// Refuses if an enforced CHECK on the column alone, of its table or of a child, would reject an ID. Raises core's error if the type is
    /// a domain that does. A CHECK that a child only inherits is left out, because it may come from a table outside the tree, whose owner
    /// wrote it. A CHECK may call any function that the owner of the tables chose.
    pub fn check_constraints(&self, id: i64) {
        self.is_true(&format!("{} IS NOT NULL", self.attribute.name), id);
        let sql = format!(
            "{TREE}{TREE_COLUMN}
            SELECT quote_ident(k.conname), format('%s.%I', c.relnamespace::regnamespace, c.relname), pg_get_expr(k.conbin, k.conrelid)
            FROM tree_column AS a
            JOIN pg_constraint AS k ON k.conrelid = a.attrelid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]
                {IS_ENFORCED}
            JOIN pg_class AS c ON c.oid = a.attrelid AND (k.conislocal OR c.relispartition)"
        );
        let checks: Vec<[String; 3]> = rows(&sql, &self.id_column.arguments(), |row| [row.get(1), row.get(2), row.get(3)]);
        for [name, table, expression] in &checks {
            if !self.is_true(&format!("({expression}) IS NOT FALSE"), id) {
                messages::violates_constraint(name, table, id).raise();
            }
        }
    }

    /// The value of a condition for an ID in the column, with its type after the conversion.
    fn is_true(&self, condition: &str, id: i64) -> bool {
        let Attribute { name, type_name, .. } = &self.attribute;
        let new_type: &str = if matches!(type_name.as_str(), "smallint" | "integer") { "int8" } else { type_name };
        self.user_table().is_true(condition, name, new_type, id)
    }

    /// A free name of the form that core gives a CHECK: `TABLE_COLUMN_shard_check`.
    pub fn free_constraint_name(&self) -> String {
        let (table, column) = self.c_names();
        // SAFETY: C strings and a schema in, a C string out.
        let name = unsafe {
            guarded(|| {
                ChooseConstraintName(table.as_ptr(), column.as_ptr(), c"shard_check".as_ptr(), self.table.schema, std::ptr::null_mut())
            })
        };
        // SAFETY: a C string.
        pgrx::spi::quote_identifier(from_server(unsafe { CStr::from_ptr(name) }))
    }
}

unsafe extern "C-unwind" {
    // catalog/pg_constraint.h
    fn ChooseConstraintName(
        name1: *const c_char,
        name2: *const c_char,
        label: *const c_char,
        namespaceid: pg_sys::Oid,
        others: *mut pg_sys::List,
    ) -> *mut c_char;
}
