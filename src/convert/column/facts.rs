//! The facts about a column from which its conversion is planned.

use super::Column;
use super::existing_sequence::{ExistingSequence, ROLE, grant};
use crate::convert::references::{CheckedTables, Extension, TREE, TREE_COLUMN, check_owners};
use crate::postgres::encoding::from_server;
use crate::postgres::query::{rows, text};
use crate::postgres::relation::lock;
use crate::postgres::report::Raise;
use crate::sequence::start_of;
use pg_snowflake_policies::conversion::{Facts, Grant, NewSequence, Sequence};
use pg_snowflake_policies::messages::convert as messages;
use pgrx::prelude::*;
use std::ffi::CStr;

impl Column {
    /// All facts that the plan needs.
    pub fn facts(&self, extension: &Extension) -> Facts {
        check_owners(&self.id_column, &self.name(), self.table.owner, CheckedTables::Tree);
        let narrow_tables = self.narrow_columns.check(self.table.owner);
        check_schema_privilege(extension.namespace, "USAGE");
        let existing = self.locked_sequence();
        let other_sequences = self.other_sequences(existing.as_ref());
        let start = existing.as_ref().and_then(|existing| start_of(existing.relid));
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
            start,
            default_layout: self.only_layout_of_default(),
            highest: self.highest_where(""),
        }
    }

    /// The tables whose identity must be dropped. From 17 on, a partition's identity is dropped with its parent's.
    fn identities(&self) -> Vec<String> {
        let sql = format!(
            "{TREE}{TREE_COLUMN}
            SELECT format('%s.%I', c.relnamespace::regnamespace, c.relname)
            FROM tree_column AS a
            JOIN pg_class AS c ON c.oid = a.attrelid
            WHERE a.attidentity <> ''
                AND NOT (c.relispartition AND current_setting('server_version_num')::int >= 170000)"
        );
        rows(&sql, &self.id_column.arguments(), |row| row.get(1))
    }

    /// The column's current sequence, locked. Read again after locking, because others may have renamed or replaced it before.
    fn locked_sequence(&self) -> Option<ExistingSequence> {
        let mut existing = ExistingSequence::of(self)?;
        loop {
            if !existing.is_identity {
                existing.check(self);
            } else if !self.attribute.is_identity {
                messages::detached_identity_sequence(&existing.name, self.name()).raise();
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
            Sequence { name: existing.name, grants, new: None }
        };
        (sequence, next)
    }

    fn new_sequence(&self, name: String, cache: i64, comment: Option<String>, grants: Vec<Grant>) -> Sequence {
        check_schema_privilege(self.table.schema, "CREATE");
        Sequence { name, grants, new: Some(NewSequence { cache, is_unlogged: self.table.is_unlogged, comment }) }
    }

    /// The column's other sequences: those of a serial whose default was changed to another sequence.
    fn other_sequences(&self, existing: Option<&ExistingSequence>) -> Vec<String> {
        let sql = "SELECT format('%s.%I', s.relnamespace::regnamespace, s.relname)
            FROM pg_depend AS d
            JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
            WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                AND d.refobjid = $1 AND d.refobjsubid = $2 AND d.deptype = 'a' AND s.oid <> $3
            ORDER BY 1";
        let Some(existing) = existing else { return Vec::new() };
        let arguments = [self.id_column.table.into(), self.attribute.number.into(), existing.relid.into()];
        rows(sql, &arguments, |row| row.get(1))
    }

    /// Privileges for the roles that may insert into a table whose default has not used the sequence, also through views and rules:
    /// these insert with the privileges of their owner, but evaluate the default with those of the caller. The roles needed no
    /// privilege on a sequence before, or one on another sequence.
    ///
    /// A view inserts into the first table of its stored query, apart from itself; a rule, into one that its stored query locks for
    /// writing. `ev_type` and `:commandType` are numbers of a command: 2 is UPDATE, 3 INSERT, 4 DELETE. The owner must have the
    /// privilege: a role without it could otherwise create a view to get a privilege on the sequence.
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
            ), source (relid, command) AS (
                SELECT relid, 3 FROM without_sequence
                UNION
                SELECT r.ev_class, CASE r.ev_type WHEN '1' THEN command ELSE r.ev_type::text::int END
                FROM source
                JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = relid AND d.classid = 'pg_rewrite'::regclass
                JOIN pg_rewrite AS r ON r.oid = d.objid
                JOIN pg_class AS c ON c.oid = r.ev_class,
                LATERAL (SELECT r.ev_action::text) AS a (query)
                WHERE CASE r.ev_type WHEN '1'
                    THEN pg_relation_is_updatable(c.oid, false) & (1 << command) <> 0
                        AND (SELECT relation[1]::oid FROM regexp_matches(query, ':relid (\\d+) ', 'g') AS relation
                             WHERE relation[1]::oid <> c.oid LIMIT 1) = relid
                        AND NOT EXISTS (SELECT FROM pg_options_to_table(c.reloptions)
                                        WHERE option_name = 'security_invoker' AND option_value::boolean)
                    ELSE query ~ format(':commandType %s ', command)
                        AND query ~ format(':relid %s (:inh \\w+ )?:relkind . :rellockmode 3 ', relid) END
                    AND CASE command WHEN 4 THEN has_table_privilege(c.relowner, relid, 'DELETE')
                        ELSE has_any_column_privilege(c.relowner, relid, ('{{UPDATE,INSERT}}'::text[])[command - 1]) END
            ), acls (acl, command) AS (
                SELECT c.relacl, command FROM source JOIN pg_class AS c ON c.oid = relid
                UNION ALL
                SELECT a.attacl, command FROM source JOIN pg_attribute AS a ON a.attrelid = relid)
            SELECT DISTINCT 'USAGE', {ROLE}, false
            FROM acls, aclexplode(acls.acl) AS g
            WHERE g.privilege_type = ('{{UPDATE,INSERT,DELETE}}'::text[])[command - 1] AND g.grantee <> $4
            ORDER BY 2"
        );
        // As an integer, because an OID of 0 would be passed as null.
        let arguments =
            [self.id_column.table.into(), text(&self.id_column.column), i64::from(sequence.to_u32()).into(), self.table.owner.into()];
        rows(&sql, &arguments, grant)
    }

    /// A free name of the form that core gives a serial's sequence: `TABLE_COLUMN_seq`.
    fn free_sequence_name(&self) -> String {
        let (table, column) = self.c_names();
        // SAFETY: C strings in, a C string out.
        let name = unsafe {
            let name = call!(ChooseRelationName(table.as_ptr(), column.as_ptr(), c"seq".as_ptr(), self.table.schema, false));
            from_server(CStr::from_ptr(name))
        };
        rows("SELECT format('%s.%I', $1::regnamespace, $2)", &[self.table.schema.into(), text(&name)], |row| row.get(1)).remove(0)
    }
}

/// Refuses if the owner of the table lacks a privilege on a schema that the statements need.
fn check_schema_privilege(schema: pg_sys::Oid, privilege: &str) {
    let sql = "SELECT quote_ident(nspname), quote_ident(current_user) FROM pg_namespace
        WHERE oid = $1 AND NOT has_schema_privilege(oid, $2)";
    let lacking = rows(sql, &[schema.into(), text(privilege)], |row| (row.get::<String>(1), row.get::<String>(2)));
    if let Some((schema, owner)) = lacking.first() {
        messages::lacks_privilege(privilege, schema, owner).raise();
    }
}
