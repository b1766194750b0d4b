//! The arguments of the functions, and what is refused of them.

use crate::postgres::arguments as postgres;
use crate::postgres::encoding::from_server;
use crate::postgres::report::{Raise, duration};
use crate::postgres::timestamp::unix_us_of;
use crate::postgres::transaction::{check_read_committed, check_writable};
use pg_snowflake_policies::messages::registry as messages;
use pg_snowflake_policies::registry::{MAX_LEASE_US, MAX_SHARDS_OF_A_NODE, MIN_LEASE_US, Uuid};
use pgrx::datum::{Array, Interval};
use pgrx::prelude::*;
use std::ffi::CString;
use std::iter::repeat;

/// The longest name of a node, in bytes: that of a host name.
const MAX_NODE_BYTES: usize = 255;

/// Refuses a transaction that cannot change a row, or whose snapshot may be older than the lock on it.
#[track_caller]
pub fn check_transaction(function: &str) {
    check_writable(function, "Only the primary changes leases.");
    check_read_committed(function, "It must see every lease that is committed before it locks the lease's row.");
}

/// An argument that must not be null.
#[track_caller]
pub fn required<T>(name: &str, argument: Option<T>) -> T {
    postgres::required(name, argument, "Only started_at, and the arguments for shards and serials can be null.")
}

/// The shards in ascending order, each with its serial if that is known.
#[track_caller]
pub fn shards(
    (name, shard_ids): (&str, Option<Array<i32>>),
    (name_of_serials, serials): (&str, Option<Array<i64>>),
) -> Vec<(i32, Option<i64>)> {
    let shard_ids = elements(name, shard_ids);
    let serials = elements(name_of_serials, serials);
    if !serials.is_empty() && serials.len() != shard_ids.len() {
        messages::different_lengths(name, name_of_serials, shard_ids.len(), serials.len()).raise();
    }
    let mut shards: Vec<(i32, Option<i64>)> = shard_ids
        .into_iter()
        .map(|shard| shard.unwrap_or_else(|| messages::null_shard(name, name_of_serials).raise()))
        .inspect(|&shard| check_shard(shard))
        .zip(serials.into_iter().chain(repeat(None)))
        .collect();
    shards.sort_unstable();
    if let Some(pair) = shards.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        messages::duplicate_shard(name, pair[0].0).raise();
    }
    shards
}

/// The elements of an array argument; none if it is null.
fn elements<T>(name: &str, array: Option<Array<T>>) -> Vec<Option<T>>
where
    Vec<Option<T>>: FromDatum,
{
    let Some(array) = array else { return Vec::new() };
    if array.len() > MAX_SHARDS_OF_A_NODE {
        messages::too_many_elements(name, array.len(), MAX_SHARDS_OF_A_NODE).raise();
    }
    let array = array.into_array_type();
    // SAFETY: the array is detoasted, and stays allocated as long as the function's arguments.
    unsafe {
        if (*array).ndim > 1 {
            messages::not_one_dimensional(name, (*array).ndim).raise();
        }
        Vec::from_datum(array.into(), false).unwrap_or_default()
    }
}

/// Refuses a number that no layout has as a shard.
#[track_caller]
pub fn check_shard(shard: i32) {
    if shard < 0 {
        messages::negative_shard(shard).raise();
    }
}

/// A name that a message can repeat.
#[track_caller]
pub fn node_name(node: Option<&[u8]>) -> String {
    let node = required("node", node);
    if node.is_empty() || node.len() > MAX_NODE_BYTES {
        messages::invalid_node(MAX_NODE_BYTES).raise();
    }
    let name = from_server(&CString::new(node).expect("a text has no zero byte"));
    if name.contains(char::is_control) {
        messages::invalid_node(MAX_NODE_BYTES).raise();
    }
    name
}

/// As the policy has it.
pub fn number(uuid: pgrx::Uuid) -> Uuid {
    u128::from_be_bytes(*uuid.as_bytes())
}

/// In microseconds since 1970.
#[track_caller]
pub fn finite(until: pg_sys::TimestampTz) -> i64 {
    if until == i64::MIN || until == i64::MAX {
        messages::infinite_end().raise();
    }
    unix_us_of(until)
}

/// In microseconds.
#[track_caller]
pub fn length_us(length: Interval) -> i64 {
    let length_us = i64::try_from(length.as_micros());
    length_us
        .ok()
        .filter(|us| (MIN_LEASE_US..=MAX_LEASE_US).contains(us))
        .unwrap_or_else(|| messages::length_out_of_range(duration(MIN_LEASE_US), duration(MAX_LEASE_US)).raise())
}
