//! `snowflake_locate`: the partition and the server of an ID's row, from the catalog alone.

use super::operator_class::{OperatorClass, place_of_shard};
use super::partition_key::{PartitionKey, PartitionedTable, partition_key_sql};
use crate::distributed::{Distribution, Node, Table};
use crate::layout_type::SqlLayout;
use crate::postgres::encoding::Text;
use crate::postgres::report::{Report, no_such_table, quoted, relation_name};
use crate::postgres::result_row::{Nullable, NullableResultRow};
use pg_snowflake_ids::Layout;
use pgrx::prelude::*;
use std::ffi::CString;

/// `snowflake_locate(table_name regclass, id bigint, layout)
/// → (shard_id int, partition regclass, server name, host text, port int, dbname text)`
///
/// The shard is read from its bits whatever the other bits are, as the operator classes do, so that every row
/// of a table can be located.
#[pg_extern(sql = false)]
fn snowflake_locate(table_name: pg_sys::Oid, id: i64, layout: SqlLayout) -> NullableResultRow<6> {
    let SqlLayout(layout) = layout;
    let shard = layout.split(id).shard as i32;
    let [partition, server, host, port, dbname] = location_of(table_name, id, &layout);
    NullableResultRow([Some(shard.into()), partition, server, host, port, dbname])
}

/// The result's columns after the shard: a partition and its server, null if there is none.
type Location = [Nullable; 5];

/// The location of `id` in a table: the partition, the table itself if it is not partitioned, or nulls if it
/// has no partition for the ID.
///
/// A loop and not a recursion, because users can nest partitions to any depth. Each table stays locked until
/// its partition is locked, so that the partition cannot be dropped in between, and no longer, so that
/// thousands of levels do not fill the lock table.
fn location_of(mut relid: pg_sys::Oid, id: i64, layout: &Layout) -> Location {
    if let Some(table) = Table::read(relid) {
        return location_in_citus(relid, &table, id);
    }
    // The parent, and the column that it is partitioned by.
    let mut parent: Option<(PartitionedTable, CString)> = None;
    loop {
        pgrx::check_for_interrupts!();
        if let Some(location) = location_of_unpartitioned(relid) {
            return location;
        }
        let table = PartitionedTable::open(relid);
        let key = table.key();
        let is_same_column =
            |column: &CString| parent.as_ref().is_none_or(|(_, of_parent)| of_parent == column);
        let column = key.as_ref().and_then(PartitionKey::id_column).filter(is_same_column);
        let (Some(key), Some(column)) = (key, column) else { not_partitioned_by_id(relid) };
        check_layout(relid, &key, layout);
        let Some(partition) = key.partition_of(id) else { return [None; 5] };
        // This releases the lock on the parent.
        parent = Some((table, column));
        relid = partition;
    }
}

/// The location of `id` in a table of Citus: the table, and the node that has the row; nulls if no shard is for the ID.
fn location_in_citus(relid: pg_sys::Oid, table: &Table, id: i64) -> Location {
    match table.distribution {
        Distribution::Reference => return [Some(relid.into()), None, None, None, None],
        Distribution::OneShard => {}
        Distribution::Hash(_) if table.is_distributed_by_bigint() => {}
        Distribution::Hash(_) | Distribution::Other => not_distributed_by_id(relid),
    }
    match table.node_of(id) {
        Some(Node { host, port, dbname }) => {
            let [host, dbname] = [host, dbname].map(|name| Text(name).into_datum());
            [Some(relid.into()), None, host, Some(port.into()), dbname]
        }
        None => [None; 5],
    }
}

/// The location of all rows of a table that is not partitioned; `None` if it is partitioned. The parent, if
/// there is one, is locked.
fn location_of_unpartitioned(relid: pg_sys::Oid) -> Option<Location> {
    // SAFETY: takes any OID.
    match unsafe { pg_sys::get_rel_relkind(relid) } as u8 {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_FOREIGN_TABLE
            if super::inheritance::has_children(relid) =>
        {
            inherited(relid)
        }
        pg_sys::RELKIND_RELATION => Some([Some(relid.into()), None, None, None, None]),
        pg_sys::RELKIND_FOREIGN_TABLE => {
            let [server, host, port, dbname] = super::foreign_server::of_foreign_table(relid);
            Some([Some(relid.into()), server, host, port, dbname])
        }
        pg_sys::RELKIND_PARTITIONED_TABLE => None,
        0 => no_such_table(relid),
        _ => not_a_table(relid),
    }
}

fn check_layout(relid: pg_sys::Oid, key: &PartitionKey, layout: &Layout) {
    let Some(class) = key.class().filter(|class| !class.reads(layout)) else { return };
    let OperatorClass { name, .. } = class;
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!(
            "table {} is not partitioned by shards of layout \"{layout}\"",
            quoted(&relation_name(relid))
        ),
        detail: Some(format!(
            "Operator class {name} reads {}. The shard of the layout is {}.",
            class.place(),
            place_of_shard(layout)
        )),
        hint: Some(
            "Pass the layout of the IDs in the table. If this is that layout, create the table with the operator class \
             of the layout."
                .into(),
        ),
    }
    .raise()
}

#[track_caller]
fn not_a_table(relid: pg_sys::Oid) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message: format!("{} is not a table", quoted(&relation_name(relid))),
        detail: None,
        hint: Some("Pass a table, a partitioned table or a foreign table.".into()),
    }
    .raise()
}

#[track_caller]
fn not_distributed_by_id(relid: pg_sys::Oid) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message: format!(
            "cannot locate IDs in table {} because Citus does not distribute it by the ID",
            quoted(&relation_name(relid))
        ),
        detail: Some("It is not distributed by the hash of a bigint.".into()),
        hint: Some("Distribute the table by its ID, with create_distributed_table().".into()),
    }
    .raise()
}

#[track_caller]
fn inherited(relid: pg_sys::Oid) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message: format!(
            "cannot locate IDs in table {} because other tables inherit from it",
            quoted(&relation_name(relid))
        ),
        detail: Some("An ID does not determine which of these tables has its row.".into()),
        hint: Some("Use a partitioned table, or pass one of the children.".into()),
    }
    .raise()
}

#[track_caller]
fn not_partitioned_by_id(relid: pg_sys::Oid) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message: format!(
            "cannot locate IDs in table {} because it is not partitioned by the ID alone",
            quoted(&relation_name(relid))
        ),
        detail: Some(format!("Its partition key is ({}).", partition_key_sql(relid))),
        hint: Some(
            "Partition every level by the same single column, of type bigint or snowflake.".into(),
        ),
    }
    .raise()
}
