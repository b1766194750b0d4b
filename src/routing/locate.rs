//! `snowflake_locate`: the partition and the server of an ID's row, from the catalog alone.

use super::partition_key::{PartitionKey, PartitionedTable, partition_key_sql};
use crate::distributed::{Distribution, Node, Table};
use crate::layout_type::SqlLayout;
use crate::postgres::encoding::Text;
use crate::postgres::report::{Raise, no_such_table, quoted, relation_name};
use crate::postgres::result_row::{Nullable, NullableResultRow};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::list::List;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_void};

/// `snowflake_locate(table_name regclass, id bigint, layout)
/// → (shard_id int, partition regclass, server name, host text, port int, dbname text)`
///
/// The shard is read from its bits whatever the other bits are, as the operator classes do, so that every row of a table can be located.
#[pg_extern(sql = false)]
fn snowflake_locate(table_name: pg_sys::Oid, id: i64, layout: SqlLayout) -> NullableResultRow<6> {
    let SqlLayout(layout) = layout;
    let shard = layout.split(id).shard as i32;
    let [partition, server, host, port, dbname] = location_of(table_name, id, &layout);
    NullableResultRow([Some(shard.into()), partition, server, host, port, dbname])
}

/// The result's columns after the shard: a partition and its server, null if there is none.
type Location = [Nullable; 5];

/// The location of `id` in a table: the partition, the table itself if it is not partitioned, or nulls if it has no partition for the ID.
///
/// A loop and not a recursion, because users can nest partitions to any depth. Each table stays locked until its partition is locked, so
/// that the partition cannot be dropped in between, and no longer, so that thousands of levels do not fill the lock table.
fn location_of(mut relid: pg_sys::Oid, id: i64, layout: &Layout) -> Location {
    if let Some(table) = Table::read(relid) {
        return location_of_distributed(relid, &table, id);
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
        let is_same_column = |column: &CString| parent.as_ref().is_none_or(|(_, of_parent)| of_parent == column);
        let column = key.as_ref().and_then(PartitionKey::id_column).filter(is_same_column);
        let (Some(key), Some(column)) = (key, column) else {
            messages::not_partitioned_by_id(quoted(&relation_name(relid)), partition_key_sql(relid)).raise()
        };
        check_layout(relid, &key, layout);
        let Some(partition) = key.partition_of(id) else { return [None; 5] };
        // This releases the lock on the parent.
        parent = Some((table, column));
        relid = partition;
    }
}

/// The location of `id` in a distributed table: the table, and the node that has the row; nulls if no shard is for the ID.
fn location_of_distributed(relid: pg_sys::Oid, table: &Table, id: i64) -> Location {
    match table.distribution {
        Distribution::Reference => return [Some(relid.into()), None, None, None, None],
        Distribution::OneShard => {}
        Distribution::Hash(_) if table.is_distributed_by_bigint() => {}
        Distribution::Hash(_) | Distribution::Other => messages::not_distributed_by_id(quoted(&relation_name(relid))).raise(),
    }
    match table.node_of(id) {
        Some(Node { host, port, dbname }) => {
            let [host, dbname] = [host, dbname].map(|name| Text(name).into_datum());
            [Some(relid.into()), None, host, Some(port.into()), dbname]
        }
        None => [None; 5],
    }
}

/// The location of all rows of a table that is not partitioned; `None` if it is partitioned. The parent, if there is one, is locked.
fn location_of_unpartitioned(relid: pg_sys::Oid) -> Option<Location> {
    // SAFETY: takes any OID.
    match unsafe { call!(get_rel_relkind(relid)) } as u8 {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_FOREIGN_TABLE if has_children(relid) => {
            messages::has_children(quoted(&relation_name(relid))).raise()
        }
        pg_sys::RELKIND_RELATION => Some([Some(relid.into()), None, None, None, None]),
        pg_sys::RELKIND_FOREIGN_TABLE => Some(location_of_foreign_table(relid)),
        pg_sys::RELKIND_PARTITIONED_TABLE => None,
        0 => no_such_table(relid),
        _ => messages::not_a_table(quoted(&relation_name(relid))).raise(),
    }
}

fn check_layout(relid: pg_sys::Oid, key: &PartitionKey, layout: &Layout) {
    let Some(class) = key.class().filter(|class| !class.reads(layout)) else { return };
    let table = quoted(&relation_name(relid));
    let [read, shard] = [class.layout, layout].map(|layout| layout.shard_formula("id"));
    messages::not_partitioned_by_shards(table, layout, class.name, read, shard).raise()
}

/// Whether other tables inherit from this one. Any of them may have a row, and no rule says which.
fn has_children(relid: pg_sys::Oid) -> bool {
    // SAFETY: the relation exists. The children are not used, so they need no lock. has_subclass() is fast, but
    // may be true for a table whose children are gone; the list is accurate.
    unsafe { call!(has_subclass(relid)) && !call!(find_inheritance_children(relid, pg_sys::NoLock as i32)).is_null() }
}

/// A foreign table, the name of its server, and the server's options host, port and dbname; null for an option
/// that is not set. A port that is not a number, such as the list for several hosts, is null too.
fn location_of_foreign_table(relid: pg_sys::Oid) -> Location {
    // SAFETY: a foreign table has a server, and the server's name is a C string.
    unsafe {
        let server = &*call!(GetForeignServer((*call!(GetForeignTable(relid))).serverid));
        let name = pgrx::direct_function_call_as_datum(pg_sys::namein, &[Some(server.servername.into())]);
        let host = option(server, c"host").map(text);
        let port = option(server, c"port").and_then(number);
        let dbname = option(server, c"dbname").map(text);
        [Some(relid.into()), name, host, port, dbname]
    }
}

/// The value of an option of the server.
unsafe fn option<'a>(server: &'a pg_sys::ForeignServer, name: &CStr) -> Option<&'a CStr> {
    // SAFETY: the options are a list of nodes, each with a name and a string, in memory that outlives the call.
    unsafe {
        pgrx::memcx::current_context(|context| {
            let options = List::<*mut c_void>::downcast_ptr_in_memcx(server.options, context)?;
            options
                .iter()
                .map(|&option| option.cast::<pg_sys::DefElem>())
                .find(|&option| CStr::from_ptr((*option).defname) == name)
                .map(|option| CStr::from_ptr(call!(defGetString(option))))
        })
    }
}

fn text(value: &CStr) -> pg_sys::Datum {
    // SAFETY: a C string in, a palloc'd text out.
    unsafe { call!(cstring_to_text(value.as_ptr())) }.into()
}

fn number(value: &CStr) -> Nullable {
    Some(value.to_str().ok()?.parse::<i32>().ok()?.into())
}
