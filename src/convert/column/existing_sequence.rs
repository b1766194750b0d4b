//! The column's current sequence.

use super::Column;
use crate::convert::references::{TREE, TREE_COLUMN};
use crate::error::Error;
use crate::postgres::query::{Row, rows, text};
use crate::postgres::report::Raise;
use crate::sequence;
use pg_snowflake_policies::conversion::Grant;
use pg_snowflake_policies::counter::State;
use pg_snowflake_policies::messages::convert as messages;
use pgrx::prelude::*;

/// The role of `g`, a row of aclexplode(), as SQL.
pub const ROLE: &str = "CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END";

/// A privilege, its role, and whether the role may grant it to others.
pub fn grant(row: &Row) -> Grant {
    Grant { privilege: row.get(1), role: row.get(2), is_grantable: row.get(3) }
}

/// The column's current sequence.
#[derive(PartialEq, Eq)]
pub struct ExistingSequence {
    /// The OID.
    pub relid: pg_sys::Oid,
    /// The name, quoted, with the schema.
    pub name: String,
    /// The CACHE.
    pub cache: i64,
    /// Whether it belongs to an identity column.
    pub is_identity: bool,
    /// The comment on it.
    pub comment: Option<String>,
}

impl ExistingSequence {
    /// The identity's sequence; else the one that the default names, if it names only one; else the one that the column owns.
    pub fn of(column: &Column) -> Option<Self> {
        let sql = "
            WITH named AS (
                SELECT DISTINCT s.oid
                FROM pg_attrdef AS f
                JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                    AND d.refclassid = 'pg_class'::regclass
                JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
                WHERE f.adrelid = $1 AND f.adnum = $2
            ), candidate (oid, is_identity, rank) AS (
                SELECT d.objid, d.deptype = 'i', CASE d.deptype WHEN 'i' THEN 0 ELSE 2 END
                FROM pg_depend AS d
                JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
                WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                    AND d.refobjid = $1 AND d.refobjsubid = $2 AND d.deptype IN ('a', 'i')
                UNION ALL
                SELECT oid, false, 1 FROM named WHERE (SELECT count(*) FROM named) = 1)
            SELECT s.oid, format('%s.%I', s.relnamespace::regnamespace, s.relname), q.seqcache, candidate.is_identity,
                obj_description(s.oid, 'pg_class')
            FROM candidate
            JOIN pg_class AS s ON s.oid = candidate.oid
            JOIN pg_sequence AS q ON q.seqrelid = s.oid
            ORDER BY candidate.rank, s.oid
            LIMIT 1";
        let arguments = [column.id_column.table.into(), column.attribute.number.into()];
        rows(sql, &arguments, |row| ExistingSequence {
            relid: row.get(1),
            name: row.get(2),
            cache: row.get(3),
            is_identity: row.get(4),
            comment: row.nullable(5),
        })
        .pop()
    }

    /// Refuses a sequence that the column cannot own or does not use alone.
    pub fn check(&self, column: &Column) {
        let sql = "SELECT pg_has_role(relowner, 'USAGE'), relowner = $2 AND relnamespace = $3
            FROM pg_class WHERE oid = $1";
        let arguments = [self.relid.into(), column.table.owner.into(), column.table.schema.into()];
        let (may_alter, can_be_owned): (bool, bool) = rows(sql, &arguments, |row| (row.get(1), row.get(2)))[0];
        if !may_alter {
            messages::not_owner("sequence", &self.name, "").raise();
        }
        let users = self.other_users(column);
        if !users.is_empty() {
            messages::shared_sequence(&self.name, column.name(), users.join("; ")).raise();
        }
        if !can_be_owned {
            messages::cannot_own_sequence(&self.name, &column.table.name).raise();
        }
    }

    /// Objects other than the column's defaults that depend on the sequence, and any other column that owns it.
    fn other_users(&self, column: &Column) -> Vec<String> {
        let sql = format!(
            "{TREE}{TREE_COLUMN}
            SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
            FROM pg_depend AS d
            WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $3 AND d.deptype = 'n'
                AND NOT (d.classid = 'pg_attrdef'::regclass AND EXISTS (
                    SELECT
                    FROM tree_column AS a
                    JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
                    WHERE f.oid = d.objid))
            UNION
            SELECT pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
            FROM pg_depend AS d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = $3 AND d.deptype IN ('a', 'i')
                AND d.refclassid = 'pg_class'::regclass
                AND NOT EXISTS (
                    SELECT FROM tree_column AS a WHERE (a.attrelid, a.attnum) = (d.refobjid, d.refobjsubid))
            ORDER BY 1"
        );
        let arguments = [column.id_column.table.into(), text(&column.id_column.column), self.relid.into()];
        rows(&sql, &arguments, |row| row.get(1))
    }

    /// The privileges of roles other than the owner.
    pub fn grants(&self, owner: pg_sys::Oid) -> Vec<Grant> {
        let sql = format!(
            "SELECT g.privilege_type, {ROLE}, g.is_grantable
            FROM pg_class AS c, aclexplode(c.relacl) AS g
            WHERE c.oid = $1 AND g.grantee <> $2
            ORDER BY 2, 1"
        );
        rows(&sql, &[self.relid.into(), owner.into()], grant)
    }

    /// The value that nextval() would return; `None` for the sequence of another session's temporary table.
    /// Read by OID, because the name may belong to another relation by now.
    pub fn next_value(&self) -> Option<i64> {
        let raise = |error| Error::from(error).raise("snowflake_convert_column", self.relid);
        let data = sequence::read_data(self.relid).unwrap_or_else(raise);
        let State { last_value, is_called } = data.state?;
        Some(last_value.saturating_add(i64::from(is_called)))
    }
}
