//! The view `snowflake_columns`: the columns whose defaults generate IDs, the error of an INSERT, and other errors of a column.

use super::status::{Status, status};
use super::stored_expression::{GeneratorCall, SequenceArgument, ShardArgument, StoredExpression, Unreadable};
use crate::authority::{Asked, shard_of_this_database};
use crate::denied::Denied;
use crate::error::Error;
use crate::fence;
use crate::layout_type::SqlLayout;
use crate::lease;
use crate::newest_id::Newest;
use crate::postgres::report::{quoted, relation_name};
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::{statement_start_us, timestamptz, unix_us_of};
use crate::sequence::{self, NoCounter, SequenceData};
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::held::is_counter;
use pg_snowflake_ids::likely::{Verdict, judge};
use pg_snowflake_policies::conversion::first_id;
use pg_snowflake_policies::headroom::Headroom;
use pg_snowflake_policies::homed::Homed;
use pg_snowflake_policies::messages::sequence as messages;
use pgrx::prelude::*;
use std::ffi::CStr;

/// `_snowflake_generator_calls(expression pg_node_tree) → setof (function regprocedure, sequence regclass, shard_id int,
/// uses_current_shard boolean, layout snowflake_layout, first_id bigint, last_id_at timestamptz, lead interval, ids_left bigint, ends_at
/// timestamptz, error text)`
///
/// Does not fail if a sequence does not exist, is not one or may not be read, or if a default cannot be read:
/// one such column must not break a view over all columns.
#[pg_extern(sql = false)]
fn snowflake_generator_calls(expression: StoredExpression) -> SetOfIterator<'static, NullableResultRow<11>> {
    match expression.calls() {
        Ok(calls) => SetOfIterator::new(calls.into_iter().map(call_row)),
        // Only that it depends on a generator is known.
        Err(Unreadable(error)) => {
            let mut row = [None; 11];
            row[10] = error.into_datum();
            SetOfIterator::once(NullableResultRow(row))
        }
    }
}

/// The row of a generator call.
fn call_row(call: GeneratorCall) -> NullableResultRow<11> {
    let GeneratorCall { function, sequence, shard, layout, modulus_and_generators } = call;
    let (first_id, Status { last_id_at, lead, ids_left, error }) = match &sequence {
        SequenceArgument::NotFound(name) => (None, Status::unknown(Some(format!("relation {} does not exist", quoted(name))))),
        known => status_of(known.oid(), layout),
    };
    let sequence = sequence.oid();
    // A call also checks the shard first.
    let shard_error = layout
        .and_then(|layout| check_shard(shard, layout, modulus_and_generators).err())
        .map(|error| error.summary(sequence.unwrap_or(pg_sys::InvalidOid)));
    NullableResultRow([
        Some(function.into()),
        sequence.map(Into::into),
        shard_id(shard).map(Into::into),
        Some((shard == ShardArgument::CurrentShard).into()),
        layout.map(|layout| SqlLayout(layout).into()),
        first_id.map(Into::into),
        last_id_at,
        lead,
        ids_left,
        layout.map(|layout| timestamptz(layout.end_us())),
        shard_error.or(error).and_then(String::into_datum),
    ])
}

/// The lowest ID that the sequence can generate, unless it was set to a lower number than its START value; and the state of the sequence.
fn status_of(sequence: Option<pg_sys::Oid>, layout: Option<Layout>) -> (Option<i64>, Status) {
    let (Some(relid), Some(layout)) = (sequence, layout) else { return (None, Status::unknown(None)) };
    let data = data_of(relid);
    let state = data.as_ref().and_then(|data| data.as_ref().ok()?.state);
    let start = sequence::start_of(relid).filter(|&start| state.is_none_or(|state| state.last_value >= start));
    let status = match data {
        Some(Ok(data)) => status(relid, &data, layout),
        // This user may not see whether the sequence has an error.
        Some(Err(NoCounter::PermissionDenied { .. })) => Status::unknown(None),
        Some(Err(error)) => Status::unknown(Some(Error::from(error).summary(relid))),
        None => Status::unknown(Some(messages::sequence_locked().summary())),
    };
    (start.and_then(|start| first_id(start, layout)), status)
}

/// The time of the last ID that the sequence has generated in the layout, in microseconds since 1970; `None` if it is not known.
pub fn last_id_us(sequence: pg_sys::Oid, layout: Layout) -> Option<i64> {
    let data = data_of(sequence)?.ok()?;
    let now_us = sequence::read_clock().reading_us;
    Headroom::of(data.next_state()?, data.definition.max_value, layout, now_us).last_us
}

/// What a sequence holds; `None` if its lock is not available at once: one open transaction must not block the whole view.
fn data_of(relid: pg_sys::Oid) -> Option<Result<SequenceData, NoCounter>> {
    // Check this without opening the relation: opening a view reads its query, which may be nested too deeply.
    // SAFETY: takes any OID.
    if !matches!(unsafe { call!(get_rel_relkind(relid)) } as u8, 0 | pg_sys::RELKIND_SEQUENCE) {
        return Some(Err(NoCounter::NotASequence));
    }
    const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: takes any OID.
    if !unsafe { call!(ConditionalLockRelationOid(relid, MODE)) } {
        return None;
    }
    let data = sequence::read_data(relid);
    // SAFETY: locked above. After an ERROR, the end of the transaction releases the lock.
    unsafe { call!(UnlockRelationOid(relid, MODE)) };
    Some(data)
}

fn shard_id(shard: ShardArgument) -> Option<i32> {
    match shard {
        ShardArgument::Constant(shard) => Some(shard),
        ShardArgument::CurrentShard => shard_of_this_database().ok(),
        ShardArgument::Unknown => None,
    }
}

/// The error that a call for that shard would raise on this server.
fn check_shard(shard: ShardArgument, layout: Layout, modulus_and_generators: Option<[i32; 2]>) -> Result<(), Error> {
    let asked = match shard {
        ShardArgument::Constant(shard) => Asked::Shard(shard),
        ShardArgument::CurrentShard => Asked::ThisDatabase,
        ShardArgument::Unknown => return Ok(fence::check_any_shard()?),
    };
    let asked = match modulus_and_generators {
        Some(arguments) => homed(asked, layout, arguments)?,
        None => asked,
    };
    let class = asked.class(layout)?;
    // SAFETY: only reads the server's state. A standby has no lease, and needs none.
    if !unsafe { call!(RecoveryInProgress()) } {
        lease::ticks_of(class, &layout)?;
    }
    Ok(())
}

/// The shards of homed IDs.
fn homed(asked: Asked, layout: Layout, [modulus, generators]: [i32; 2]) -> Result<Asked, Error> {
    let shard_id = if let Asked::Shard(shard) = asked { shard } else { shard_of_this_database()? };
    let homed = Homed::in_partition(&layout, shard_id, modulus, generators);
    Ok(Asked::Class(homed.map_err(|invalid| Denied::NotHomed { invalid, layout })?.class))
}

/// `_snowflake_layout_error(table_name regclass, column_name name, layout snowflake_layout, last_id_at timestamptz) → text`
///
/// Whether the newest IDs of a column are of the layout of its default. `last_id_at` is the time of the last ID of the column's sequence.
/// Null if the newest ID is not known, if it can be of the layout, or if the other IDs do not confirm that it is of another.
#[pg_extern(sql = false)]
fn snowflake_layout_error(
    table_name: Option<pg_sys::Oid>,
    column_name: Option<&CStr>,
    layout: Option<SqlLayout>,
    last_id_at: Option<pg_sys::TimestampTz>,
) -> Option<String> {
    let SqlLayout(layout) = layout?;
    let (table, column) = (table_name?, column_name?);
    let newest = |count, at_most| Newest { column, count, at_most }.of_table(table);
    let generated_us = || last_id_at.map(unix_us_of);
    match judge(&layout, statement_start_us(), generated_us, newest)? {
        Verdict::OtherLayout(mismatch) => Some(format!("newest ID is probably of layout \"{}\": {mismatch}.", mismatch.likely.name)),
        Verdict::OddId(_) => None,
    }
}

/// `_snowflake_replaced_default_error(sequence regclass, expression pg_node_tree, calls_nextval boolean) → text`
///
/// Whether a column no longer gets IDs from a sequence that has generated some: some tools take a default that calls
/// `snowflake_nextval` for that of a serial, and replace it.
///
/// Null if the sequence does not hold a counter of IDs, or cannot be read at once; or if the default `expression` is not a call of core's
/// `nextval`. Without an expression, `calls_nextval` says whether the column gets the sequence's values: it is an identity column.
#[pg_extern(sql = false)]
fn snowflake_replaced_default_error(
    sequence: Option<pg_sys::Oid>,
    expression: Option<StoredExpression>,
    calls_nextval: Option<bool>,
) -> Option<String> {
    let sequence = sequence?;
    if !expression.is_none_or(|expression| expression.is_nextval_of(sequence)) {
        return None;
    }
    let data = data_of(sequence)?.ok()?;
    data.definition.check().ok()?;
    let now_us = sequence::read_clock().reading_us;
    let (last_value, start) = (data.state?.last_value, data.definition.start());
    if !is_counter(last_value, start, data.marked, now_us) {
        return None;
    }
    let name = quoted(&relation_name(sequence));
    let detail = match calls_nextval? {
        true => messages::gives_counters(name),
        false => messages::gives_nothing(name),
    };
    Some(messages::replaced_default(detail).summary())
}
