//! A table of Citus, and where its rows are.

use super::node::metadata_table;
use crate::postgres::query::{Multirange, Row, rows_of_latest_snapshot, rows_of_snapshot};
use pgrx::prelude::*;

/// A distributed table, a reference table, or a local table that Citus manages.
pub struct Table {
    relid: pg_sys::Oid,
    /// How the rows are distributed.
    pub distribution: Distribution,
}

/// How Citus distributes the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// By the hash of a column of this type.
    Hash(pg_sys::Oid),
    /// Every node has all rows.
    Reference,
    /// One node has all rows.
    OneShard,
    /// By ranges or by appending, which Citus no longer recommends.
    Other,
}

/// The node that has a row.
pub struct Node {
    /// The name or the address of its host.
    pub host: String,
    /// Its port.
    pub port: i32,
    /// The database, which has the same name on every node.
    pub dbname: String,
}

/// The distribution of a table: `partmethod` and `repmodel` of Citus, and the type of the column by whose hash it is distributed.
const DISTRIBUTION: &str = "SELECT p.partmethod OPERATOR(pg_catalog.=) 'n'::pg_catalog.\"char\",
        p.repmodel OPERATOR(pg_catalog.=) 't'::pg_catalog.\"char\",
        a.atttypid
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
        is_managed(relid).then(|| {
            let rows = rows_of_snapshot(DISTRIBUTION, &[relid.into()], distribution);
            let distribution = rows.first().copied().unwrap_or(Distribution::Other);
            Table { relid, distribution }
        })
    }

    /// Whether the rows are distributed by the hash of a `bigint`, or of a type with the same hash.
    pub fn is_distributed_by_bigint(&self) -> bool {
        let Distribution::Hash(typid) = self.distribution else { return false };
        // SAFETY: a type of the catalog; the server keeps the entry.
        unsafe {
            let entry = call!(lookup_type_cache(typid, pg_sys::TYPECACHE_HASH_PROC as i32));
            (*entry).hash_proc.to_u32() == pg_sys::F_HASHINT8
        }
    }

    /// The node of the row with this value in the distribution column, by Citus's own functions; `None` if no shard is for the value.
    pub fn node_of(&self, value: i64) -> Option<Node> {
        let nodes = rows_of_snapshot(
            "SELECT n.nodename::pg_catalog.text, n.nodeport, pg_catalog.current_database()::pg_catalog.text
            FROM pg_catalog.pg_dist_placement AS p
            JOIN pg_catalog.pg_dist_node AS n
                ON n.groupid OPERATOR(pg_catalog.=) p.groupid
                    AND n.noderole::pg_catalog.text OPERATOR(pg_catalog.=) 'primary'::pg_catalog.text
            WHERE p.shardstate OPERATOR(pg_catalog.=) 1
                AND p.shardid OPERATOR(pg_catalog.=)
                    (SELECT pg_catalog.get_shard_id_for_distribution_column($1::pg_catalog.regclass, $2))
            ORDER BY p.placementid",
            &[self.relid.into(), value.into()],
            |row| Node { host: row.get(1), port: row.get(2), dbname: row.get(3) },
        );
        nodes.into_iter().next()
    }

    /// The hashes of the shards that the node group has, as of now. A node that has no shard, such as a coordinator, gets all hashes:
    /// all nodes are equally far.
    pub fn hashes_of_group(&self, group: i32) -> Multirange {
        let ranges = rows_of_latest_snapshot(
            "SELECT coalesce(
                pg_catalog.range_agg(pg_catalog.int8range(
                    s.shardminvalue::pg_catalog.int8, s.shardmaxvalue::pg_catalog.int8, '[]'::pg_catalog.text)),
                '{[-2147483648,2147483647]}'::pg_catalog.int8multirange)
            FROM pg_catalog.pg_dist_shard AS s
            JOIN pg_catalog.pg_dist_placement AS p ON p.shardid OPERATOR(pg_catalog.=) s.shardid
            WHERE s.logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) $1
                AND p.groupid OPERATOR(pg_catalog.=) $2
                AND p.shardstate OPERATOR(pg_catalog.=) 1",
            &[self.relid.into(), group.into()],
            |row| row.get(1),
        );
        ranges.into_iter().next().expect("an aggregate has a row")
    }
}

fn distribution(row: &Row) -> Distribution {
    let [is_whole, is_reference] = [1, 2].map(|column| row.get::<bool>(column));
    match row.nullable(3) {
        Some(typid) => Distribution::Hash(typid),
        _ if is_whole && is_reference => Distribution::Reference,
        _ if is_whole => Distribution::OneShard,
        _ => Distribution::Other,
    }
}

/// Whether Citus manages the table, as the calling statement sees it.
pub fn is_managed(relid: pg_sys::Oid) -> bool {
    is_managed_by(|sql| rows_of_snapshot(sql, &[relid.into()], |_| ()).len())
}

/// Whether Citus manages the table, as of now.
pub fn is_managed_now(relid: pg_sys::Oid) -> bool {
    is_managed_by(|sql| rows_of_latest_snapshot(sql, &[relid.into()], |_| ()).len())
}

fn is_managed_by(count: impl Fn(&str) -> usize) -> bool {
    let rows = "SELECT FROM pg_catalog.pg_dist_partition
        WHERE logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) $1";
    metadata_table(c"pg_dist_partition").is_some() && count(rows) > 0
}

/// Whether the relation is a shard of a distributed table.
pub fn is_shard(relid: pg_sys::Oid) -> bool {
    let is_known = || {
        rows_of_snapshot("SELECT pg_catalog.relation_is_a_known_shard($1::pg_catalog.regclass)", &[relid.into()], |row| row.get::<bool>(1))
    };
    metadata_table(c"pg_dist_partition").is_some() && is_known() == [true]
}

/// Whether Citus has distributed the sequence to the nodes.
pub fn is_distributed_sequence(relid: pg_sys::Oid) -> bool {
    let rows = || {
        rows_of_snapshot(
            "SELECT FROM pg_catalog.pg_dist_object
            WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                AND objid OPERATOR(pg_catalog.=) $1",
            &[relid.into()],
            |_| (),
        )
    };
    metadata_table(c"pg_dist_object").is_some() && !rows().is_empty()
}
