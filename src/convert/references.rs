//! The columns that must hold a column's IDs: the column itself, and the columns that reference it directly or indirectly.

use crate::postgres::query::{Row, execute, rows, text};
use crate::postgres::relation::{lock_function, lock_tree};
use crate::postgres::report::Raise;
use pg_snowflake_policies::conversion::NarrowTable;
use pg_snowflake_policies::messages::arguments::trust_owner;
use pg_snowflake_policies::messages::convert as messages;
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use std::collections::{BTreeMap, HashSet};

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
        let sql = "SELECT e.extnamespace::regnamespace::text, e.extnamespace, t.oid
            FROM pg_extension AS e JOIN pg_type AS t ON t.typnamespace = e.extnamespace AND t.typname = 'snowflake'
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

/// A column that must hold IDs, at the root of its inheritance tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdColumn {
    /// The table.
    pub table: pg_sys::Oid,
    /// The name, unquoted.
    pub column: String,
}

impl IdColumn {
    /// The table and the name as `$1` and `$2` of a query, which must cast `$2` to `name`.
    pub fn arguments(&self) -> [DatumWithOid<'static>; 2] {
        [self.table.into(), text(&self.column)]
    }
}

/// The column and the columns that reference it, each after a column that it references.
fn id_columns(converted: &IdColumn) -> Vec<IdColumn> {
    let mut found = vec![converted.clone()];
    let mut next = 0;
    while next < found.len() {
        for referencing in referencing(&found[next]) {
            if !found.contains(&referencing) {
                found.push(referencing);
            }
        }
        next += 1;
    }
    found
}

/// The columns with foreign keys to the column; for an inherited one, the column that it is inherited from.
fn referencing(id_column: &IdColumn) -> Vec<IdColumn> {
    let sql = format!(
        "{TREE}{TREE_COLUMN}, referencing (relid, attname) AS (
            SELECT c.conrelid, a.attname
            FROM tree_column AS r
            JOIN pg_constraint AS c ON c.contype = 'f' AND c.confrelid = r.attrelid
            CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS k (con, conf)
            JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = k.con
            WHERE k.conf = r.attnum
            UNION
            SELECT i.inhparent, referencing.attname
            FROM referencing
            JOIN pg_inherits AS i ON i.inhrelid = referencing.relid
            JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = referencing.attname)
        SELECT a.attrelid, a.attname::text
        FROM referencing AS r JOIN pg_attribute AS a ON a.attrelid = r.relid AND a.attname = r.attname
        WHERE a.attinhcount = 0
        ORDER BY 1, 2"
    );
    rows(&sql, &id_column.arguments(), |row| IdColumn { table: row.get(1), column: row.get(2) })
}

/// A column as the catalog describes it.
struct ColumnDescription {
    table: String,
    column: String,
    is_owned: bool,
    type_oid: pg_sys::Oid,
    type_name: String,
}

impl ColumnDescription {
    /// `None` if the column no longer exists.
    fn of(id_column: &IdColumn) -> Option<Self> {
        let sql = "SELECT format('%s.%I', c.relnamespace::regnamespace, c.relname), quote_ident(a.attname),
                pg_has_role(c.relowner, 'USAGE'), a.atttypid, format_type(a.atttypid, a.atttypmod)
            FROM pg_class AS c
            JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2::name
            WHERE c.oid = $1";
        rows(sql, &id_column.arguments(), |row| ColumnDescription {
            table: row.get(1),
            column: row.get(2),
            is_owned: row.get(3),
            type_oid: row.get(4),
            type_name: row.get(5),
        })
        .pop()
    }

    fn name(&self) -> String {
        format!("column {} of table {}", self.column, self.table)
    }
}

/// The columns that must become bigint. The caller must own their tables.
pub struct NarrowColumns(Vec<(IdColumn, ColumnDescription)>);

impl NarrowColumns {
    /// Finds them. Refuses a type that cannot hold IDs, and a table of another owner.
    pub fn of(converted: &IdColumn, converted_name: &str, extension: &Extension) -> Self {
        let mut narrow_columns = Vec::new();
        for id_column in id_columns(converted) {
            let Some(description) = ColumnDescription::of(&id_column) else { continue };
            let is_converted = id_column == *converted;
            // SAFETY: the type is one of the catalog.
            let base = unsafe { call!(getBaseType(description.type_oid)) };
            let is_narrow = matches!(base, pg_sys::INT2OID | pg_sys::INT4OID);
            // A numeric column, for example, can reference a bigint as it is.
            if base == pg_sys::INT8OID || base == extension.snowflake || (!is_narrow && !is_converted) {
                continue;
            }
            // Another type is not changed to bigint, nor is a domain.
            if !is_narrow || base != description.type_oid {
                let why = if is_converted { String::new() } else { messages::references(converted_name) };
                messages::unsuitable_type(&description.type_name, description.name(), why).raise();
            }
            if !description.is_owned {
                let why = messages::must_become_bigint(&description.column, converted_name);
                messages::not_owner("table", &description.table, why).raise();
            }
            narrow_columns.push((id_column, description));
        }
        NarrowColumns(narrow_columns)
    }

    /// Locks the tables, and the tables that inherit from them, exclusively. A table is locked before the tables
    /// that it references, which is the order in which an INSERT takes its locks.
    pub fn lock(&self, locked: &mut HashSet<pg_sys::Oid>) {
        for (id_column, _) in self.0.iter().rev() {
            locked.extend(lock_tree(id_column.table, pg_sys::AccessExclusiveLock));
        }
    }

    /// Lets open sessions compile the PL/pgSQL functions again that may have the old type of a column: those of triggers of its tables, and
    /// those that name such a table or have its row type. A statement that changes nothing does. Warns of functions that the current role
    /// cannot alter.
    pub fn compile_again(&self) {
        let sql = format!(
            r"{TREE}
            SELECT p.oid, pg_has_role(proowner, 'USAGE') AND has_schema_privilege(pronamespace, 'USAGE')
            FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
            WHERE lanname = 'plpgsql' AND NOT pg_is_other_temp_schema(pronamespace) AND EXISTS (
                SELECT FROM tree JOIN pg_class AS c ON c.oid = tree.relid
                WHERE p.oid IN (SELECT tgfoid FROM pg_trigger WHERE tgrelid = tree.relid)
                    OR c.reltype = p.prorettype OR c.reltype = ANY (p.proargtypes)
                    OR prosrc ~* ('(?<!\w)' || regexp_replace(relname, '(\W)', '\\\1', 'g') || '(?!\w)'))"
        );
        let routine = |row: &Row| (row.get::<pg_sys::Oid>(1).to_u32(), row.get::<bool>(2));
        let of_table = |(table, _): &(IdColumn, _)| rows(&sql, &[table.table.into()], routine);
        let routines: BTreeMap<_, _> = self.0.iter().flat_map(of_table).collect();
        let (ours, theirs): (Vec<_>, Vec<_>) = routines.into_iter().partition(|&(_, ours)| ours);
        for (oid, _) in ours {
            lock_function(oid.into());
            // As of now: it must stay as it is.
            compile_command(oid).iter().for_each(|command| execute(command, &[]));
        }
        let theirs: Vec<_> = theirs.iter().filter_map(|&(oid, _)| compile_command(oid)).collect();
        if !theirs.is_empty() {
            messages::not_compiled_again(theirs.join(" ")).log(PgLogLevel::WARNING);
        }
    }

    /// The columns as input of the plan. Refuses if an object depends on the type of one, or if a role other
    /// than `owner` owns one of the tables.
    pub fn check(&self, owner: pg_sys::Oid) -> Vec<NarrowTable> {
        let mut tables: Vec<NarrowTable> = Vec::new();
        for (id_column, description) in &self.0 {
            let objects = dependent_objects(id_column);
            if !objects.is_empty() {
                messages::has_dependent_objects(description.name(), objects.join("; ")).raise();
            }
            if let Some((partition, parent)) = detach_pending(id_column) {
                messages::detach_pending(description.name(), partition, parent).raise();
            }
            let foreign = foreign_tables(id_column);
            if !foreign.is_empty() {
                let ColumnDescription { table, column, .. } = description;
                messages::has_foreign_tables(column, table, foreign.join(", ")).raise();
            }
            check_owners(id_column, &description.name(), owner, CheckedTables::ForeignKeys);
            let column = description.column.clone();
            match tables.iter_mut().find(|narrow| narrow.table == description.table) {
                Some(narrow) => narrow.columns.push(column),
                None => tables.push(NarrowTable { table: description.table.clone(), columns: vec![column] }),
            }
        }
        tables
    }
}

/// The statement that lets sessions compile a function again; `None` if it no longer exists.
fn compile_command(oid: u32) -> Option<String> {
    let sql = "SELECT format('ALTER ROUTINE %s SECURITY %s;', oid::regprocedure, CASE WHEN prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)
        FROM pg_proc WHERE oid = $1";
    rows(sql, &[pg_sys::Oid::from(oid).into()], |row| row.get(1)).pop()
}

/// A partition whose detachment is not complete, and its table. PostgreSQL 19 could not complete it once their columns had different types.
fn detach_pending(id_column: &IdColumn) -> Option<(String, String)> {
    let sql = format!(
        "{TREE}
        SELECT inhrelid::regclass::text, inhparent::regclass::text
        FROM tree JOIN pg_inherits ON inhparent = tree.relid
        WHERE inhdetachpending"
    );
    rows(&sql, &[id_column.table.into()], |row| (row.get(1), row.get(2))).pop()
}

/// The partitions and children that are foreign tables.
fn foreign_tables(id_column: &IdColumn) -> Vec<String> {
    let sql = format!(
        "{TREE}
        SELECT format('%s.%I', c.relnamespace::regnamespace, c.relname)
        FROM tree
        JOIN pg_class AS c ON c.oid = tree.relid
        WHERE c.relkind = 'f'
        ORDER BY 1"
    );
    rows(&sql, &[id_column.table.into()], |row| row.get(1))
}

/// The tables whose owner is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedTables {
    /// The table and the tables that inherit from it.
    Tree,
    /// Also those at the other end of a foreign key: when a column's type changes, its foreign keys are checked again.
    ForeignKeys,
}

/// Refuses if a role other than `owner` owns one of the tables.
///
/// CHECKs and index predicates are evaluated with the privileges of `owner`, which the role that wrote them
/// must not gain. A child inherits those of its parent.
pub fn check_owners(id_column: &IdColumn, column: &str, owner: pg_sys::Oid, tables: CheckedTables) {
    let sql = format!(
        "{TREE}{TREE_COLUMN}, checked (relid) AS (
            SELECT relid FROM tree
            UNION
            SELECT k.confrelid
            FROM tree_column AS a
            JOIN pg_constraint AS k ON k.contype = 'f' AND k.conrelid = a.attrelid AND a.attnum = ANY (k.conkey)
            WHERE $4
            UNION
            SELECT k.conrelid
            FROM tree_column AS a
            JOIN pg_constraint AS k ON k.contype = 'f' AND k.confrelid = a.attrelid AND a.attnum = ANY (k.confkey)
            WHERE $4)
        SELECT format('%s.%I', c.relnamespace::regnamespace, c.relname), quote_ident(pg_get_userbyid(c.relowner)),
            quote_ident(pg_get_userbyid($3))
        FROM checked
        JOIN pg_class AS c ON c.oid = checked.relid
        WHERE c.relowner <> $3
        ORDER BY 1"
    );
    let [table, name] = id_column.arguments();
    let arguments = [table, name, owner.into(), (tables == CheckedTables::ForeignKeys).into()];
    let others: Vec<[String; 3]> = rows(&sql, &arguments, |row| [row.get(1), row.get(2), row.get(3)]);
    if let Some([table, other, owner]) = others.first() {
        let hint = trust_owner(table, owner);
        messages::other_owner(column, owner, table, other, hint).raise();
    }
}

/// The objects that keep PostgreSQL from changing the column's type.
fn dependent_objects(id_column: &IdColumn) -> Vec<String> {
    let sql = format!(
        "{TREE}{TREE_COLUMN}
        SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
        FROM tree_column AS a
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
        LEFT JOIN pg_trigger AS t ON d.classid = 'pg_trigger'::regclass AND t.oid = d.objid
        LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
        WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass)
            OR NOT t.tgisinternal
            OR f.adnum <> a.attnum
        UNION
        SELECT format('partition key of table %s', p.partrelid::regclass)
        FROM tree_column AS a
        JOIN pg_partitioned_table AS p ON p.partrelid = a.attrelid AND a.attnum = ANY (p.partattrs::int2[])
        ORDER BY 1"
    );
    rows(&sql, &id_column.arguments(), |row| row.get(1))
}
