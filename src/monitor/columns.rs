//! What the view `snowflake_columns` shows of a column whose default generates ids.

use super::status::{GENERATOR, Status, end_of, status};
use super::stored_expression::{Call, Expression, LONGEST_TEXT, Shard, Unreadable};
use crate::error::Error;
use crate::fence;
use crate::layout_type::SqlLayout;
use crate::result_row::NullableRow;
use crate::{sequence, settings, shard};
use pg_snowflake_core::Layout;
use pgrx::prelude::*;

/// `snowflake_generator_calls(expression pg_node_tree) → setof (function regprocedure, sequence regclass, shard_id int,
/// shard_from_setting boolean, layout snowflake_layout, last_id_at timestamptz, lead interval, ids_left bigint, ends_at
/// timestamptz, error text)`
///
/// Never fails over a sequence that is gone, is not one, or may not be read, nor over a default that cannot be read: a view
/// over all columns must not.
#[pg_extern(sql = false)]
fn snowflake_generator_calls(expression: Expression) -> SetOfIterator<'static, NullableRow<10>> {
    let calls = match expression.calls() {
        Ok(calls) => calls.into_iter().map(Ok).collect(),
        Err(unreadable) => vec![Err(unreadable)],
    };
    SetOfIterator::new(calls.into_iter().map(|call| call.map_or_else(unread, row)))
}

/// The row of a default of which nothing is known but that it depends on a generator.
fn unread(unreadable: Unreadable) -> NullableRow<10> {
    let error = match unreadable {
        Unreadable::TooDeep => {
            "default is nested too deeply to be read: simplify it, or raise max_stack_depth"
                .to_owned()
        }
        Unreadable::TooLong(length) => format!(
            "default is too long to be read: simplify it; its expression tree has {length} bytes, and the limit is {LONGEST_TEXT}"
        ),
    };
    let mut row = [None; 10];
    row[9] = error.into_datum();
    NullableRow(row)
}

fn row(call: Call) -> NullableRow<10> {
    let Call { function, sequence, shard, layout } = call;
    let (Status { last_id_at, lead, ids_left, error }, is_locked) =
        match status_of(sequence, layout) {
            Ok(status) => (status, false),
            Err(Locked) => (unknown(None), true),
        };
    // The shard is checked first by a call, too.
    let refusal = layout
        .and_then(|layout| shard_error(shard, layout))
        .or(error)
        .map(|error| error.summary(GENERATOR, sequence.unwrap_or(pg_sys::InvalidOid)));
    let lock =
        || is_locked.then(|| "sequence is locked by another transaction: see pg_locks".into());
    NullableRow([
        Some(function.into()),
        sequence.map(Into::into),
        shard_id(shard).map(Into::into),
        Some((shard == Shard::OfThisDatabase).into()),
        layout.map(|layout| SqlLayout(layout).into()),
        last_id_at,
        lead,
        ids_left,
        layout.map(end_of),
        refusal.or_else(lock).and_then(String::into_datum),
    ])
}

/// Another transaction has a lock that reading the sequence would wait for.
struct Locked;

/// Where the sequence stands. Waits for nobody: one transaction that is left open must not hold up the whole view.
fn status_of(sequence: Option<pg_sys::Oid>, layout: Option<Layout>) -> Result<Status, Locked> {
    let (Some(relid), Some(layout)) = (sequence, layout) else { return Ok(unknown(None)) };
    // Not opened first: to open a view is to read its query, which may be nested too deeply for that.
    if is_something_else(relid) {
        return Ok(unknown(Some(Error::NotASequence)));
    }
    const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: takes any OID.
    if !unsafe { pg_sys::ConditionalLockRelationOid(relid, MODE) } {
        return Err(Locked);
    }
    let reading = sequence::read_data(relid);
    // SAFETY: locked above. An ERROR lets go of it with the transaction.
    unsafe { pg_sys::UnlockRelationOid(relid, MODE) };
    Ok(match reading {
        Ok(reading) => status(&reading, layout),
        // Whether the sequence is sound is not for this user to know.
        Err(Error::PermissionDenied { .. }) => unknown(None),
        Err(error) => unknown(Some(error)),
    })
}

fn unknown(error: Option<Error>) -> Status {
    Status { last_id_at: None, lead: None, ids_left: None, error }
}

/// Whether that is a relation, and not a sequence.
fn is_something_else(relid: pg_sys::Oid) -> bool {
    // SAFETY: takes any OID.
    !matches!(unsafe { pg_sys::get_rel_relkind(relid) } as u8, 0 | pg_sys::RELKIND_SEQUENCE)
}

fn shard_id(shard: Shard) -> Option<i32> {
    match shard {
        Shard::Constant(shard) => Some(shard),
        Shard::OfThisDatabase => settings::shard_id(),
        Shard::Unknown => None,
    }
}

/// The error that a call for that shard would raise on this server.
fn shard_error(shard: Shard, layout: Layout) -> Option<Error> {
    let given = match shard {
        Shard::Constant(shard) => Some(shard),
        Shard::OfThisDatabase => None,
        Shard::Unknown => return fence::permit_any().err().map(Error::Barred),
    };
    shard::permitted(given, layout).err()
}
