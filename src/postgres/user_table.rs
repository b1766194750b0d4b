//! Reads the rows of a user's table, and evaluates what its owner wrote.
//!
//! Every query of ours over a user's table is one of [`UserTable`]; `pg_test/tests/privileges.rs` fails on another. Planning a query is enough to run
//! a user's function: the planner simplifies index expressions and predicates, CHECKs, virtual generated columns, expressions of
//! extended statistics and of partition keys. So a query runs as the owner of the table, in a security-restricted operation, as
//! VACUUM does. Its operators, casts and functions are core's, because the columns have types of core, `snowflake`, or a domain over
//! one, and the `search_path` is `pg_catalog, pg_temp`. No view, rule or policy is applied.
//!
//! | query | columns | rights |
//! | --- | --- | --- |
//! | `find_layout`: the newest and the oldest IDs, and their times | types of core and `snowflake`, no domain | the owner's, after a check of the caller's `SELECT` and row security |
//! | `convert`: the highest values, also of other shards | `smallint`, `integer`, `bigint`, `snowflake`, a domain over `bigint` | the owner's |
//! | `convert`: whether a new ID satisfies a CHECK or a domain | no table; one ID | the owner's |
//! | `partitions`: whether the default partition has rows; the newest ID before another | `bigint`, `snowflake`, a domain over `bigint` | those of the owner of the partitioned table |
//!
//! Statements that change tables or functions run as the owner of the table, too (`as_owner`). What they evaluate of other tables, such as
//! those at the other end of a foreign key, has the same owner or no expression ([`check_owner_of_expressions`], `convert::references`).
//! `newest_id` reads an index and its rows without a query, and evaluates nothing; `routing` calls only the support functions of an
//! operator class, which a superuser created. All other queries read the catalog, the metadata of distributed tables, and the tables of our registry. So
//! do the views and functions in `sql/`, `monitoring/metrics.sql` and `docs/migrate/dependents.sql`, which print stored expressions, but
//! evaluate none. In `sql/managed`, one function reads a sequence by its name, after `pg_sequence_last_value()` has refused every other
//! relation.

use crate::postgres::encoding::from_server;
use crate::postgres::query::{Row, rows, rows_of_snapshot};
use crate::postgres::relation::{as_restricted_owner, lock, lock_tree};
use crate::postgres::report::{Raise, no_such_table, quoted, relation_name, role_name};
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use std::ffi::{CStr, c_int};

/// The query, for a hint, of the rows with a value in a column. The names are quoted.
pub fn query_for_rows(table: &str, column: &str, value: i64) -> String {
    format!("SELECT * FROM {table} WHERE {column} = {value};")
}

/// A user's table, partition or materialized view, locked against a change of its owner until the end of the transaction, with all that
/// inherit from it.
pub struct UserTable {
    relid: pg_sys::Oid,
    /// The quoted name with its schema.
    name: String,
    owner: pg_sys::Oid,
}

impl UserTable {
    /// To be read as its owner. Refuses a tree of several owners.
    pub fn open(relid: pg_sys::Oid) -> Self {
        lock(relid, pg_sys::AccessShareLock);
        let owner = owner_of(relid).unwrap_or_else(|| no_such_table(relid));
        Self::open_as(owner, relid)
    }

    /// To be read as this role, the owner of a table above. Refuses a tree of other owners.
    pub fn open_as(owner: pg_sys::Oid, relid: pg_sys::Oid) -> Self {
        refuse_other_owner(relid, owner, |_| true);
        // SAFETY: the relation is locked, so it has a name and a schema.
        let name = unsafe {
            let name = call!(get_rel_name(relid));
            if name.is_null() {
                no_such_table(relid);
            }
            let schema = call!(get_namespace_name(call!(get_rel_namespace(relid))));
            from_server(CStr::from_ptr(call!(quote_qualified_identifier(schema, name))))
        };
        UserTable { relid, name, owner }
    }

    /// The members of its inheritance tree that are foreign tables.
    pub fn foreign_tables(&self) -> Vec<pg_sys::Oid> {
        // SAFETY: takes any OID.
        let is_foreign = |&relid: &pg_sys::Oid| unsafe { call!(get_rel_relkind(relid)) } as u8 == pg_sys::RELKIND_FOREIGN_TABLE;
        lock_tree(self.relid, pg_sys::AccessShareLock).into_iter().filter(is_foreign).collect()
    }

    /// The rows of `SELECT what FROM table rest` as of now.
    pub fn select<T>(&self, what: &str, rest: &str, arguments: &[DatumWithOid], read: impl Fn(&Row) -> T) -> Vec<T> {
        as_restricted_owner(self.owner, || rows(&self.query(what, rest), arguments, read))
    }

    /// The same rows as the calling statement sees them.
    pub fn select_of_snapshot<T>(&self, what: &str, rest: &str, read: impl Fn(&Row) -> T) -> Vec<T> {
        as_restricted_owner(self.owner, || rows_of_snapshot(&self.query(what, rest), &[], read))
    }

    fn query(&self, what: &str, rest: &str) -> String {
        format!("SELECT {what} FROM {} {rest}", self.name)
    }

    /// The value for an ID of a condition on a column, both written by the owner. The name and the type are quoted.
    pub fn is_true(&self, condition: &str, column: &str, type_name: &str, id: i64) -> bool {
        let sql = format!("SELECT {condition} FROM (SELECT $1::int8::{type_name}) AS row ({column})");
        as_restricted_owner(self.owner, || rows(&sql, &[id.into()], |row| row.get(1)))[0]
    }
}

/// As [`refuse_other_owner`], but a table without expressions may have another owner. It is locked against new ones, and against writers.
pub fn check_owner_of_expressions(relid: pg_sys::Oid, owner: pg_sys::Oid) {
    refuse_other_owner(relid, owner, |member| {
        lock(member, pg_sys::ShareRowExclusiveLock);
        has_expressions(member)
    });
}

/// Refuses if a table or one that inherits from it belongs to another role than `owner`, except a superuser, and `is_evaluated`. They are
/// locked until the end of the transaction, but not against a new index.
fn refuse_other_owner(relid: pg_sys::Oid, owner: pg_sys::Oid, is_evaluated: impl Fn(pg_sys::Oid) -> bool) {
    for member in lock_tree(relid, pg_sys::AccessShareLock) {
        let Some(other) = owner_of(member) else { continue };
        // SAFETY: takes any OID of a role.
        let is_trusted = other == owner || unsafe { call!(superuser_arg(other)) };
        if !is_trusted && is_evaluated(member) {
            // Expressions of one role would be evaluated with the privileges of another.
            let member = relation_name(member);
            let [other, owner] = [other, owner].map(role_name);
            let hint = messages::trust_owner(&member, &owner);
            messages::other_owner(quoted(&member), owner, other, hint).raise()
        }
    }
}

/// Whether a query of the table, or its plan, can evaluate what its owner wrote.
fn has_expressions(relid: pg_sys::Oid) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM pg_class WHERE oid = $1 AND (relkind = 'f' OR relrowsecurity))
        OR EXISTS (SELECT FROM pg_index WHERE indrelid = $1 AND (indexprs IS NOT NULL OR indpred IS NOT NULL))
        OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = $1 AND contype = 'c')
        OR EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = $1 AND stxexprs IS NOT NULL)
        OR EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = $1 AND partexprs IS NOT NULL)
        OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = $1 AND attgenerated <> '')";
    rows(sql, &[relid.into()], |row| row.get(1))[0]
}

/// The owner of a relation; `None` if there is no such relation.
fn owner_of(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let cache_id = pg_sys::SysCacheIdentifier::RELOID as c_int;
    // SAFETY: a tuple of pg_class, which is read before it is released.
    unsafe {
        let tuple = call!(SearchSysCache1(cache_id, relid.into()));
        if tuple.is_null() {
            return None;
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        call!(ReleaseSysCache(tuple));
        Some(owner)
    }
}
