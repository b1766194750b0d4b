//! The column to convert, with its table locked.

mod constraints;
mod existing_sequence;

use super::catalog::{Extension, TREE, TREE_COLUMN};
use super::plan::{Facts, Grant, Sequence};
use super::references::{CheckedTables, IdColumn, NarrowColumns, check_owners, lock_tree};
use super::refusal::{self, CitusColumn};
use crate::monitor::{GeneratorCall, StoredExpression};
use crate::postgres::encoding::{from_server, to_server};
use crate::postgres::query::{rows, text};
use crate::postgres::relation::lock;
use crate::postgres::report::no_such_table;
use existing_sequence::{ExistingSequence, ROLE, grant};
use pg_snowflake_ids::Layout;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// A column that can be converted. Its table is locked exclusively.
pub struct Column {
    id_column: IdColumn,
    table: Table,
    attribute: Attribute,
    narrow_columns: NarrowColumns,
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
        let sql =
            "SELECT c.relkind::text, format('%I.%I', n.nspname, c.relname), c.relname::text, n.oid,
                c.relowner, pg_has_role(c.relowner, 'USAGE'), c.relpersistence = 'u'
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = $1";
        rows(sql, &[relid.into()], |row| {
            let (relkind, name): (String, String) = (row.get(1), row.get(2));
            if !matches!(relkind.as_str(), "r" | "p") {
                refusal::not_a_table(&name, &relkind);
            }
            if !row.get::<bool>(6) {
                refusal::not_owner("table", &name, None);
            }
            Table {
                name,
                relname: row.get(3),
                schema: row.get(4),
                owner: row.get(5),
                is_unlogged: row.get(7),
            }
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
                (SELECT min(format('%I.%I', n.nspname, c.relname))
                 FROM pg_inherits AS i
                 JOIN pg_class AS c ON c.oid = i.inhparent
                 JOIN pg_namespace AS n ON n.oid = c.relnamespace
                 JOIN pg_attribute AS p ON p.attrelid = c.oid AND p.attname = a.attname
                 WHERE i.inhrelid = a.attrelid)
            FROM pg_attribute AS a
            WHERE a.attrelid = $1 AND a.attname = $2::name AND NOT a.attisdropped";
        rows(sql, &id_column.arguments(), |row| {
            let attribute = Attribute {
                number: row.get(1),
                name: row.get(2),
                type_name: row.get(3),
                is_identity: row.get(4),
            };
            if attribute.number < 0 {
                refusal::system_column(&attribute.name);
            }
            let name = table.column_name(&attribute.name);
            if row.get(5) {
                refusal::generated_column(&name);
            }
            if let Some(parent) = row.nullable::<String>(6) {
                refusal::inherited_column(&name, &parent);
            }
            attribute
        })
        .pop()
        .unwrap_or_else(|| refusal::no_such_column(&id_column.column, &table.name))
    }
}

/// Refuses if the owner of the table lacks a privilege on a schema that the statements need.
fn check_schema_privilege(schema: pg_sys::Oid, privilege: &str) {
    let sql = "SELECT quote_ident(nspname), quote_ident(current_user) FROM pg_namespace
        WHERE oid = $1 AND NOT has_schema_privilege(oid, $2)";
    let lacking = rows(sql, &[schema.into(), text(privilege)], |row| {
        (row.get::<String>(1), row.get::<String>(2))
    });
    if let Some((schema, owner)) = lacking.first() {
        refusal::lacks_privilege(privilege, schema, owner);
    }
}

impl Column {
    /// Looks the column up, and locks its table and those whose columns must be changed with it.
    pub fn open(relid: pg_sys::Oid, column: &str, extension: &Extension) -> Self {
        let id_column = IdColumn { table: relid, column: column.to_owned() };
        let mut locked = Vec::new();
        loop {
            let table = Table::read(relid);
            let attribute = Attribute::read(&id_column, &table);
            let name = table.column_name(&attribute.name);
            let narrow_columns = NarrowColumns::of(&id_column, &name, extension);
            // What was read before the locks were taken may have changed.
            let has_locked = narrow_columns.lock(&mut locked);
            let before = locked.len();
            lock_tree(relid, &mut locked);
            if !has_locked && locked.len() == before {
                return Column { id_column, table, attribute, narrow_columns };
            }
        }
    }

    /// The name for a message.
    pub fn name(&self) -> String {
        self.table.column_name(&self.attribute.name)
    }

    /// What the column is to Citus.
    pub fn kind_for_citus(&self) -> CitusColumn {
        let Attribute { is_identity, type_name, .. } = &self.attribute;
        match type_name.as_str() {
            _ if *is_identity => CitusColumn::Identity,
            "smallint" | "integer" => CitusColumn::Narrow,
            _ => CitusColumn::Plain,
        }
    }

    /// The owner of the table.
    pub fn owner(&self) -> pg_sys::Oid {
        self.table.owner
    }

    /// The layout of which the present default generates IDs; `None` if it generates none. Refuses a default that does not show it.
    pub fn layout_of_default(&self) -> Option<Layout> {
        let sql = "SELECT adbin::text FROM pg_attrdef WHERE adrelid = $1 AND adnum = $2";
        let arguments = [self.id_column.table.into(), self.attribute.number.into()];
        let calls = StoredExpression::calls_in_texts(rows(sql, &arguments, |row| row.get(1)));
        match GeneratorCall::layouts(calls).as_slice() {
            [] => None,
            [Some(layout)] => Some(*layout),
            _ => refusal::layout_not_known(&self.name()),
        }
    }

    /// All facts that the plan needs.
    pub fn facts(&self, extension: &Extension) -> Facts {
        check_owners(&self.id_column, &self.name(), self.table.owner, CheckedTables::Tree);
        let narrow_tables = self.narrow_columns.check(self.table.owner);
        check_schema_privilege(extension.namespace, "USAGE");
        let existing = self.locked_sequence();
        let other_sequences = self.other_sequences(existing.as_ref());
        let (sequence, next) = self.sequence(existing);
        Facts {
            schema: extension.schema.clone(),
            table: self.table.name.clone(),
            column: self.attribute.name.clone(),
            identities: self.identities(),
            narrow_tables,
            sequence,
            other_sequences,
            next,
            highest: self.highest(),
        }
    }

    /// The highest value. max() reads it from the end of an index, if there is one.
    fn highest(&self) -> Option<i64> {
        let sql = format!("SELECT max({})::int8 FROM {}", self.attribute.name, self.table.name);
        rows(&sql, &[], |row| row.nullable(1))[0]
    }

    /// The tables whose identity must be dropped. From 17 on, a partition's identity is dropped with its
    /// parent's.
    fn identities(&self) -> Vec<String> {
        let sql = format!(
            "{TREE}{TREE_COLUMN}
            SELECT format('%I.%I', n.nspname, c.relname)
            FROM tree_column AS a
            JOIN pg_class AS c ON c.oid = a.attrelid
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE a.attidentity <> ''
                AND NOT (c.relispartition AND current_setting('server_version_num')::int >= 170000)"
        );
        rows(&sql, &self.id_column.arguments(), |row| row.get(1))
    }

    /// The column's current sequence, locked. Read again after locking, because others may have renamed or
    /// replaced it before.
    fn locked_sequence(&self) -> Option<ExistingSequence> {
        let mut existing = ExistingSequence::of(self)?;
        loop {
            if existing.is_identity && !self.attribute.is_identity {
                refusal::detached_identity_sequence(&existing.name, &self.name());
            }
            if !existing.is_identity {
                existing.check(self);
            }
            lock(existing.relid, pg_sys::ShareRowExclusiveLock);
            let again = ExistingSequence::of(self)?;
            if again == existing {
                return Some(existing);
            }
            existing = again;
        }
    }

    /// The sequence that will generate the IDs, and the next value of the current one.
    fn sequence(&self, existing: Option<ExistingSequence>) -> (Sequence, Option<i64>) {
        let Some(existing) = existing else {
            let grants = self.grants(pg_sys::InvalidOid);
            return (self.new_sequence(self.free_sequence_name(), 1, None, grants), None);
        };
        let next = existing.next_value();
        let mut grants = self.grants(existing.relid);
        let sequence = if existing.is_identity {
            grants.extend(existing.grants(self.table.owner));
            self.new_sequence(existing.name, existing.cache, existing.comment, grants)
        } else {
            Sequence::Kept { name: existing.name, grants }
        };
        (sequence, next)
    }

    fn new_sequence(
        &self,
        name: String,
        cache: i64,
        comment: Option<String>,
        grants: Vec<Grant>,
    ) -> Sequence {
        check_schema_privilege(self.table.schema, "CREATE");
        Sequence::New { name, cache, is_unlogged: self.table.is_unlogged, comment, grants }
    }

    /// The column's other sequences: those of a serial whose default was changed to another sequence.
    fn other_sequences(&self, existing: Option<&ExistingSequence>) -> Vec<String> {
        let sql = "SELECT format('%I.%I', n.nspname, s.relname)
            FROM pg_depend AS d
            JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
            JOIN pg_namespace AS n ON n.oid = s.relnamespace
            WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                AND d.refobjid = $1 AND d.refobjsubid = $2 AND d.deptype = 'a' AND s.oid <> $3
            ORDER BY 1";
        let Some(existing) = existing else { return Vec::new() };
        let arguments =
            [self.id_column.table.into(), self.attribute.number.into(), existing.relid.into()];
        rows(sql, &arguments, |row| row.get(1))
    }

    /// Privileges for the roles that may insert into a table whose default has not used the sequence. They
    /// needed no privilege on a sequence before, or one on another sequence.
    fn grants(&self, sequence: pg_sys::Oid) -> Vec<Grant> {
        let sql = format!(
            "{TREE}{TREE_COLUMN}, without_sequence (relid) AS (
                SELECT attrelid
                FROM tree_column
                WHERE NOT EXISTS (
                    SELECT
                    FROM pg_attrdef AS f
                    JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                    WHERE f.adrelid = attrelid AND f.adnum = attnum
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid::int8 = $3)
            ), acls (acl) AS (
                SELECT c.relacl FROM without_sequence JOIN pg_class AS c ON c.oid = relid
                UNION ALL
                SELECT a.attacl FROM without_sequence JOIN pg_attribute AS a ON a.attrelid = relid)
            SELECT DISTINCT 'USAGE', {ROLE}, false
            FROM acls, aclexplode(acls.acl) AS g
            WHERE g.privilege_type = 'INSERT' AND g.grantee <> $4
            ORDER BY 2"
        );
        // As an integer, because an OID of 0 would be passed as null.
        let arguments = [
            self.id_column.table.into(),
            text(&self.id_column.column),
            i64::from(sequence.to_u32()).into(),
            self.table.owner.into(),
        ];
        rows(&sql, &arguments, grant)
    }

    /// A free name of the form that core gives a serial's sequence: `TABLE_COLUMN_seq`.
    fn free_sequence_name(&self) -> String {
        let (table, column) = self.c_names();
        // SAFETY: C strings in, a C string out.
        let name = unsafe {
            let name = pg_sys::ChooseRelationName(
                table.as_ptr(),
                column.as_ptr(),
                c"seq".as_ptr(),
                self.table.schema,
                false,
            );
            from_server(CStr::from_ptr(name))
        };
        let sql = "SELECT format('%I.%I', nspname, $2) FROM pg_namespace WHERE oid = $1";
        rows(sql, &[self.table.schema.into(), text(&name)], |row| row.get(1)).remove(0)
    }

    fn c_names(&self) -> (CString, CString) {
        (to_server(&self.table.relname), to_server(&self.id_column.column))
    }
}
