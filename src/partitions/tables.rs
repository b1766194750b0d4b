//! The tables that a call is about, and what is refused of them.

use super::reasons;
use super::table::{Key, Partition, Table};
use crate::distributed;
use crate::postgres::query::rows;
use crate::postgres::report::{Raise, no_such_table, relation_name};
use pg_snowflake_policies::messages::partitions as messages;
use pgrx::prelude::*;

/// The tables that a call is about.
pub struct Tables {
    /// The table itself, or those of its partitions that are partitioned by a range of IDs.
    pub by_range: Vec<Table>,
    /// The other partitions, each with the reason why it has no ranges.
    pub others: Vec<(Partition, String)>,
}

impl Tables {
    /// The tables under a table. Refuses one that is not partitioned by a range of IDs, nor its partitions by hash or list,
    /// and one whose owner the caller is not.
    pub fn read(relid: pg_sys::Oid) -> Self {
        let mut found = Tables { by_range: Vec::new(), others: Vec::new() };
        let parent = Table::read(relid).unwrap_or_else(|| no_such_table(relid));
        // Each command is propagated by itself.
        if distributed::is_managed_now(relid) {
            messages::distributed(relation_name(relid)).raise();
        }
        match &parent.key {
            Key::None => messages::not_partitioned(&parent.name).raise(),
            Key::OfIds => {
                parent.check_owner();
                found.by_range.push(parent);
                return found;
            }
            Key::OtherRange => messages::partitioned_by_something_else(&parent.name, parent.key()).raise(),
            Key::Descend => parent.check_owner(),
        }
        let mut to_visit = parent.partitions();
        to_visit.reverse();
        while let Some(partition) = to_visit.pop() {
            pgrx::check_for_interrupts!();
            // Its rows are no longer the table's.
            if let Some(finalize) = partition.finalize.as_ref().filter(|_| partition.is_detach_pending) {
                let reason = reasons::detach_pending(&partition, finalize);
                found.others.push((partition, reason));
                continue;
            }
            // It was dropped meanwhile.
            let Some(table) = Table::read(partition.relid) else { continue };
            match &table.key {
                Key::None => {
                    let reason = reasons::without_ranges(partition.foreign_table.is_some());
                    found.others.push((partition, reason));
                }
                Key::OtherRange => {
                    let reason = format!("is partitioned by {}", table.key());
                    found.others.push((partition, reason));
                }
                Key::OfIds => {
                    table.check_owner();
                    found.by_range.push(table);
                }
                Key::Descend => to_visit.extend(table.partitions().into_iter().rev()),
            }
        }
        if found.by_range.is_empty() {
            messages::partitioned_by_something_else(&parent.name, parent.key()).raise();
        }
        found
    }
}

impl Table {
    /// The table as of now, after a lock was waited for. Refuses if it is another one, or has another owner.
    pub fn again(&self) -> Self {
        let again = Table::read(self.relid).filter(|again| again.owner == self.owner);
        again.unwrap_or_else(|| messages::changed_meanwhile("table", &self.name).raise())
    }

    fn check_owner(&self) {
        if !self.is_owned {
            messages::not_owner(&self.name).raise();
        }
    }

    /// Refuses if the owner may not create a table in the schema.
    pub fn check_schema(&self) {
        let sql = "SELECT w.privilege, quote_ident(r.rolname)
            FROM (VALUES ('USAGE'), ('CREATE')) AS w (privilege)
            JOIN pg_roles AS r ON r.oid = $2
            WHERE NOT has_schema_privilege(r.oid, $1, w.privilege)";
        let lacking = rows(sql, &[self.namespace.into(), self.owner.into()], |row| (row.get::<String>(1), row.get::<String>(2)));
        if let Some((privilege, owner)) = lacking.first() {
            messages::lacks_privilege(privilege, &self.schema, owner).raise();
        }
    }
}
