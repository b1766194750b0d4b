//! A table of Citus, and where its rows are.

use super::metadata_table;
use crate::query::{rows, rows_of_snapshot};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;

/// A distributed table, a reference table, or a local table that Citus manages.
pub struct Table {
    relid: pg_sys::Oid,
    /// The type of the column by whose hash the rows are distributed; `None` if they are not.
    hashed_type: Option<pg_sys::Oid>,
}

/// Where a row is.
pub enum Placement {
    /// On every node.
    Everywhere,
    /// On this node.
    Node {
        /// The name or the address of its host.
        host: String,
        /// Its port.
        port: i32,
        /// The database, which has the same name on every node.
        dbname: String,
    },
}

/// The type of the column by whose hash a table is distributed.
const HASHED_TYPE: &str = "SELECT a.atttypid
    FROM pg_catalog.pg_dist_partition AS p
    LEFT JOIN pg_catalog.pg_attribute AS a
        ON p.partmethod OPERATOR(pg_catalog.=) 'h'::pg_catalog.\"char\"
            AND a.attrelid OPERATOR(pg_catalog.=) $1
            AND a.attname::pg_catalog.text OPERATOR(pg_catalog.=)
                pg_catalog.column_to_column_name($1::pg_catalog.regclass, p.partkey)
    WHERE p.logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) $1";

impl Table {
    /// The table's metadata as the calling statement sees them; `None` if Citus does not manage the table.
    pub fn read(relid: pg_sys::Oid) -> Option<Self> {
        Self::read_by(relid, |sql, arguments| {
            rows_of_snapshot(sql, arguments, |row| row.nullable(1))
        })
    }

    /// The table's metadata as of now.
    pub fn read_now(relid: pg_sys::Oid) -> Option<Self> {
        Self::read_by(relid, |sql, arguments| rows(sql, arguments, |row| row.nullable(1)))
    }

    fn read_by(
        relid: pg_sys::Oid,
        rows: impl Fn(&str, &[DatumWithOid]) -> Vec<Option<pg_sys::Oid>>,
    ) -> Option<Self> {
        metadata_table(c"pg_dist_partition")?;
        let hashed_type = rows(HASHED_TYPE, &[relid.into()]).pop()?;
        Some(Table { relid, hashed_type })
    }

    /// Whether the rows are distributed by the hash of a `bigint`, or of a type with the same hash.
    pub fn is_distributed_by_bigint(&self) -> bool {
        // SAFETY: a type of the catalog; the server keeps the entry.
        self.hashed_type.is_some_and(|typid| unsafe {
            let entry = pg_sys::lookup_type_cache(typid, pg_sys::TYPECACHE_HASH_PROC as i32);
            (*entry).hash_proc.to_u32() == pg_sys::F_HASHINT8
        })
    }

    /// Whether the rows are not distributed by a hash: those of a reference table are on every node, those of a table with a single
    /// shard on one.
    pub fn has_one_shard(&self) -> bool {
        self.hashed_type.is_none()
    }

    /// Where the row with this value in the distribution column is, by Citus's own functions; `None` if it has no shard for it.
    pub fn placement_of(&self, value: i64) -> Option<Placement> {
        let mut nodes = rows_of_snapshot(
            "SELECT n.nodename::pg_catalog.text, n.nodeport, pg_catalog.current_database()::pg_catalog.text
            FROM pg_catalog.pg_dist_placement AS p
            JOIN pg_catalog.pg_dist_node AS n
                ON n.groupid OPERATOR(pg_catalog.=) p.groupid
                    AND n.noderole::pg_catalog.text OPERATOR(pg_catalog.=) 'primary'::pg_catalog.text
            WHERE p.shardid OPERATOR(pg_catalog.=)
                (SELECT pg_catalog.get_shard_id_for_distribution_column($1::pg_catalog.regclass, $2))",
            &[self.relid.into(), value.into()],
            |row| Placement::Node { host: row.get(1), port: row.get(2), dbname: row.get(3) },
        );
        if nodes.len() > 1 { Some(Placement::Everywhere) } else { nodes.pop() }
    }

    /// The first and the last hash of each shard that this node has.
    pub fn hashes_of_group(&self, group: i32) -> Vec<(i64, i64)> {
        rows(
            "SELECT s.shardminvalue::pg_catalog.int8, s.shardmaxvalue::pg_catalog.int8
            FROM pg_catalog.pg_dist_shard AS s
            JOIN pg_catalog.pg_dist_placement AS p ON p.shardid OPERATOR(pg_catalog.=) s.shardid
            WHERE s.logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) $1
                AND p.groupid OPERATOR(pg_catalog.=) $2
            ORDER BY 1",
            &[self.relid.into(), group.into()],
            |row| (row.get(1), row.get(2)),
        )
    }
}

/// Whether the relation is a shard of a distributed table.
pub fn is_shard(relid: pg_sys::Oid) -> bool {
    let is_known = || {
        rows_of_snapshot(
            "SELECT pg_catalog.relation_is_a_known_shard($1::pg_catalog.regclass)",
            &[relid.into()],
            |row| row.get::<bool>(1),
        )
    };
    metadata_table(c"pg_dist_partition").is_some() && is_known() == [true]
}

/// Whether Citus has distributed the sequence to the nodes.
pub fn is_distributed_sequence(relid: pg_sys::Oid) -> bool {
    let is_distributed = || {
        rows_of_snapshot(
            "SELECT true FROM pg_catalog.pg_dist_object
            WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                AND objid OPERATOR(pg_catalog.=) $1",
            &[relid.into()],
            |row| row.get::<bool>(1),
        )
    };
    metadata_table(c"pg_dist_object").is_some() && is_distributed() == [true]
}
