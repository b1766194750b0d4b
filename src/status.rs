//! What an operator may look at.

use crate::clock::Guard;
use crate::row::{Row, interval, timestamptz};
use crate::sequence;
use pgrx::prelude::*;

/// `snowflake_clock() → (reading, high_water_mark timestamptz, regressions bigint, largest_regression
/// interval, forward_jumps bigint, largest_forward_jump interval)`
#[pg_extern(sql = false)]
fn snowflake_clock() -> Row<6> {
    let (now, Guard { backward, forward, .. }) = sequence::clock();
    Row([
        timestamptz(now.reading_us),
        timestamptz(now.high_water_us),
        backward.count.into(),
        interval(backward.largest_us),
        forward.count.into(),
        interval(forward.largest_us),
    ])
}
