//! The column to convert, with its table locked.

mod constraints;
mod existing_sequence;
mod facts;

use super::references::{Extension, IdColumn, NarrowColumns};
use crate::distributed;
use crate::monitor::{GeneratorCall, StoredExpression};
use crate::postgres::encoding::to_server;
use crate::postgres::query::rows;
use crate::postgres::relation::lock_tree;
use crate::postgres::report::{Raise, no_such_table, relation_name};
use crate::postgres::user_table::{UserTable, query_for_rows};
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::likely::Reading;
use pg_snowflake_policies::messages::convert as messages;
use pgrx::prelude::*;
use std::collections::HashSet;
use std::ffi::CString;

/// How many of the newest IDs show which shard numbers are used.
const SHOWING_SHARDS: usize = 1_000;

/// A column that can be converted. Its table is locked exclusively.
pub struct Column {
    id_column: IdColumn,
    table: Table,
    attribute: Attribute,
    /// Those whose type is changed.
    pub narrow_columns: NarrowColumns,
}

/// The table's row in `pg_class`.
struct Table {
    name: String,
    relname: String,
    schema: pg_sys::Oid,
    owner: pg_sys::Oid,
    is_unlogged: bool,
}

impl Table {
    /// Refuses a relation that has no columns of its own, or has another owner.
    fn read(relid: pg_sys::Oid) -> Self {
        let sql = "SELECT relkind::text, format('%s.%I', relnamespace::regnamespace, relname), relname::text, relnamespace,
                relowner, pg_has_role(relowner, 'USAGE'), relpersistence = 'u'
            FROM pg_class WHERE oid = $1";
        rows(sql, &[relid.into()], |row| {
            let (relkind, name): (String, String) = (row.get(1), row.get(2));
            match relkind.as_str() {
                "r" | "p" => {}
                "v" | "m" => messages::view(name).raise(),
                "f" => messages::foreign_table(name).raise(),
                "S" => messages::sequence(name).raise(),
                _ => messages::not_a_table(name).raise(),
            }
            if !row.get::<bool>(6) {
                messages::not_owner("table", &name, "").raise();
            }
            Table { name, relname: row.get(3), schema: row.get(4), owner: row.get(5), is_unlogged: row.get(7) }
        })
        .pop()
        .unwrap_or_else(|| no_such_table(relid))
    }

    fn column_name(&self, column: &str) -> String {
        format!("column {column} of table {}", self.name)
    }
}

/// The column's row in `pg_attribute`.
struct Attribute {
    number: i16,
    name: String,
    type_name: String,
    is_identity: bool,
}

impl Attribute {
    /// Refuses a column that cannot have a default.
    fn read(id_column: &IdColumn, table: &Table) -> Self {
        let sql = "SELECT a.attnum, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
                a.attidentity <> '', a.attgenerated <> '',
                (SELECT min(format('%s.%I', c.relnamespace::regnamespace, c.relname))
                 FROM pg_inherits AS i
                 JOIN pg_class AS c ON c.oid = i.inhparent
                 JOIN pg_attribute AS p ON p.attrelid = c.oid AND p.attname = a.attname
                 WHERE i.inhrelid = a.attrelid)
            FROM pg_attribute AS a
            WHERE a.attrelid = $1 AND a.attname = $2::name AND NOT a.attisdropped";
        rows(sql, &id_column.arguments(), |row| {
            let attribute = Attribute { number: row.get(1), name: row.get(2), type_name: row.get(3), is_identity: row.get(4) };
            if attribute.number < 0 {
                messages::system_column(&attribute.name).raise();
            }
            let name = table.column_name(&attribute.name);
            if row.get(5) {
                messages::generated_column(&name).raise();
            }
            if let Some(parent) = row.nullable::<String>(6) {
                messages::inherited_column(&name, &parent).raise();
            }
            attribute
        })
        .pop()
        .unwrap_or_else(|| messages::no_such_column(&id_column.column, &table.name).raise())
    }
}

impl Column {
    /// Looks the column up, and locks its table and those whose columns must be changed with it.
    pub fn open(relid: pg_sys::Oid, column: &str, extension: &Extension) -> Self {
        let id_column = IdColumn { table: relid, column: column.to_owned() };
        let mut locked = HashSet::new();
        loop {
            let table = Table::read(relid);
            let attribute = Attribute::read(&id_column, &table);
            let name = table.column_name(&attribute.name);
            let narrow_columns = NarrowColumns::of(&id_column, &name, extension);
            // What was read before the locks were taken may have changed.
            let before = locked.len();
            narrow_columns.lock(&mut locked);
            locked.extend(lock_tree(relid, pg_sys::AccessExclusiveLock));
            if locked.len() == before {
                return Column { id_column, table, attribute, narrow_columns };
            }
        }
    }

    /// The name for a message.
    pub fn name(&self) -> String {
        self.table.column_name(&self.attribute.name)
    }

    /// Refuses the column of a distributed table. The default of an identity column of one cannot be changed, nor its table undistributed.
    #[track_caller]
    pub fn refuse_distributed(&self) -> ! {
        let Attribute { is_identity, type_name, name, .. } = &self.attribute;
        let table = relation_name(self.id_column.table);
        let change_type = match type_name.as_str() {
            "smallint" | "integer" => format!("ALTER COLUMN {name} TYPE bigint, "),
            _ => String::new(),
        };
        let recipe = distributed::recipe(&format!("ALTER TABLE {table} {change_type}ALTER COLUMN {name}"));
        match is_identity {
            true => messages::identity_of_distributed(table),
            false => messages::distributed(table, recipe),
        }
        .raise()
    }

    /// The owner of the table.
    pub fn owner(&self) -> pg_sys::Oid {
        self.table.owner
    }

    /// The layout of which the present default generates IDs; `None` if it generates none. Refuses a default that does not show it.
    pub fn layout_of_default(&self) -> Option<Layout> {
        match self.layouts_of_default().as_slice() {
            [] => None,
            [Some(layout)] => Some(*layout),
            _ => messages::layout_not_known(self.name()).raise(),
        }
    }

    /// As [`layout_of_default`](Self::layout_of_default), but `None` if the default does not show it: what is only reported refuses nothing.
    fn only_layout_of_default(&self) -> Option<Layout> {
        <[_; 1]>::try_from(self.layouts_of_default()).ok()?[0]
    }

    fn layouts_of_default(&self) -> Vec<Option<Layout>> {
        let sql = "SELECT adbin::text FROM pg_attrdef WHERE adrelid = $1 AND adnum = $2";
        let arguments = [self.id_column.table.into(), self.attribute.number.into()];
        GeneratorCall::layouts(StoredExpression::calls_in_texts(rows(sql, &arguments, |row| row.get(1))))
    }

    /// The highest value that meets the condition. Without one, max() reads it from the end of an index, if there is one.
    fn highest_where(&self, condition: &str) -> Option<i64> {
        let highest = format!("max({})::int8", self.attribute.name);
        self.user_table().select(&highest, condition, &[], |row| row.nullable(1))[0]
    }

    fn user_table(&self) -> UserTable {
        UserTable::open(self.id_column.table)
    }

    /// Up to `count` of the highest values that are not above `at_most`.
    pub fn highest_values(&self, count: usize, at_most: i64) -> Vec<i64> {
        let column = &self.attribute.name;
        let highest = format!("WHERE {column} <= $1 ORDER BY {column} DESC LIMIT $2");
        let arguments = [at_most.into(), (count as i64).into()];
        self.user_table().select(&format!("{column}::int8"), &highest, &arguments, |row| row.get(1))
    }

    /// A recent ID of the shard among the highest values, if they are from a generator outside the database, which may go on: the column
    /// has no default.
    pub fn recent_id_of_other_generator(&self, layout: Layout, shard: u32, now_us: i64) -> Option<i64> {
        let sql = "SELECT atthasdef OR attidentity <> '' FROM pg_attribute WHERE attrelid = $1 AND attnum = $2";
        let arguments = [self.id_column.table.into(), self.attribute.number.into()];
        let has_default = rows(sql, &arguments, |row| row.get::<bool>(1)) == [true];
        let newest = if has_default { Vec::new() } else { self.highest_values(SHOWING_SHARDS, i64::MAX) };
        newest.into_iter().find(|&id| {
            let reading = Reading::of(id, "", layout, now_us);
            reading.is_recent(now_us) && reading.fields.shard == shard
        })
    }

    /// The query for the rows with a value.
    pub fn rows_of(&self, value: i64) -> String {
        query_for_rows(&self.table.name, &self.attribute.name, value)
    }

    /// The names of the table and the column, in the server's encoding.
    fn c_names(&self) -> (CString, CString) {
        (to_server(&self.table.relname), to_server(&self.id_column.column))
    }
}
