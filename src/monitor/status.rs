//! The clock of a backend, and the state of a sequence.

use crate::error::Error;
use crate::fence;
use crate::layout_type::SqlLayout;
use crate::postgres::result_row::{Nullable, NullableResultRow};
use crate::postgres::timestamp::{interval, timestamptz};
use crate::sequence::{self, NoCounter, SequenceData};
use crate::settings;
use pg_snowflake_ids::layout::{Layout, Packed};
use pg_snowflake_policies::clock::{Guard, Now, Steps};
use pg_snowflake_policies::counter::{self, Decision, Reading, Request};
use pg_snowflake_policies::headroom::Headroom;
use pg_snowflake_policies::lease::Ticks;
use pgrx::prelude::*;

/// `snowflake_clock() → (reading, high_water_mark timestamptz, regressions bigint, largest_regression interval,
/// last_regression timestamptz, forward_jumps bigint, largest_forward_jump interval, last_forward_jump timestamptz)`
#[pg_extern(sql = false)]
fn snowflake_clock() -> NullableResultRow<8> {
    let (now, Guard { backward, forward, .. }) = sequence::read_clock_with_steps();
    let [regressions, largest_regression, last_regression] = columns_of(backward);
    let [forward_jumps, largest_forward_jump, last_forward_jump] = columns_of(forward);
    NullableResultRow([
        Some(timestamptz(now.reading_us)),
        Some(timestamptz(now.high_water_us)),
        regressions,
        largest_regression,
        last_regression,
        forward_jumps,
        largest_forward_jump,
        last_forward_jump,
    ])
}

fn columns_of(steps: Steps) -> [Nullable; 3] {
    let Steps { count, largest_us, last_at_us } = steps;
    [Some(count.into()), Some(interval(largest_us)), last_at_us.map(timestamptz)]
}

/// `snowflake_sequence_status(seq regclass, layout) → (last_id_at timestamptz, lead interval, ids_left bigint, ends_at
/// timestamptz, last_value bigint, is_called boolean, cache bigint, logged boolean, error text)`
#[pg_extern(sql = false)]
fn snowflake_sequence_status(seq: pg_sys::Oid, layout: SqlLayout) -> NullableResultRow<9> {
    let SqlLayout(layout) = layout;
    let data = sequence::read_data(seq).unwrap_or_else(|error| Error::from(error).raise("snowflake_sequence_status", seq));
    let Status { last_id_at, lead, ids_left, error } = status(seq, &data, layout);
    NullableResultRow([
        last_id_at,
        lead,
        ids_left,
        Some(timestamptz(layout.end_us())),
        data.state.map(|state| state.last_value.into()),
        data.state.map(|state| state.is_called.into()),
        Some(data.definition.cache.into()),
        Some(data.is_logged.into()),
        error.and_then(String::into_datum),
    ])
}

/// The state of a sequence as columns, which are null if its page cannot be read.
pub struct Status {
    /// The time of the last ID.
    pub last_id_at: Nullable,
    /// How far the sequence is ahead of the clock.
    pub lead: Nullable,
    /// The number of IDs left.
    pub ids_left: Nullable,
    /// The error that a call would raise now, in one line.
    pub error: Option<String>,
}

impl Status {
    /// The state of a sequence that could not be read.
    pub fn unknown(error: Option<String>) -> Self {
        Status { last_id_at: None, lead: None, ids_left: None, error }
    }
}

/// The current state of the sequence `relid`, from the data read from it.
pub fn status(relid: pg_sys::Oid, data: &SequenceData, layout: Layout) -> Status {
    let now = sequence::read_clock();
    let headroom = data.next_state().map(|state| Headroom::of(state, data.definition.max_value, layout, now.reading_us));
    Status {
        last_id_at: headroom.and_then(|headroom| headroom.last_us).map(timestamptz),
        lead: headroom.map(|headroom| interval(headroom.lead_us)),
        ids_left: headroom.map(|headroom| headroom.ids_left.into()),
        error: match check_nextval(data, layout, now) {
            Err(error) => Some(error.summary(relid)),
            Ok(()) => data.set_back.map(|set_back| set_back.report(relid).summary()),
        },
    }
}

/// The error that a call for an ID would raise. It is the same decision from the same numbers, but ignores what
/// this session has fetched, and whether it may call.
fn check_nextval(data: &SequenceData, layout: Layout, now: Now) -> Result<(), Error> {
    fence::check_any_shard()?;
    data.definition.check()?;
    let Some(state) = data.next_state() else { return Ok(()) };
    let reading = Reading::new(Packed::new(layout), settings::policy(), Ticks::ALL, now);
    let request = Request { reading: &reading, shard: 0, highest_fetched: None };
    match counter::advance(state, data.definition.max_value, 1, request) {
        Decision::Refuse(refusal) => Err(NoCounter::Refused { refusal, layout, shard: 0, is_set_back: data.set_back.is_some() }.into()),
        Decision::Issue(_) | Decision::Wait { .. } => Ok(()),
    }
}
