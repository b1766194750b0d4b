//! Conversion of instants and durations to SQL and from it. Ours are in microseconds, instants since 1970.

use crate::postgres::report;
use pgrx::prelude::*;

/// PostgreSQL's epoch, 2000-01-01 UTC, in microseconds since 1970.
pub const POSTGRES_EPOCH_US: i64 =
    (pg_sys::POSTGRES_EPOCH_JDATE - pg_sys::UNIX_EPOCH_JDATE) as i64 * pg_sys::SECS_PER_DAY as i64 * 1_000_000;

/// An instant in microseconds since 1970 as a `timestamptz`. The end of `i64` stands for everything later, from
/// the year 294247 on, and becomes `infinity`. Its beginning becomes `-infinity`.
pub fn timestamptz(unix_us: i64) -> pg_sys::Datum {
    let is_endless = unix_us == i64::MAX;
    (if is_endless { unix_us } else { unix_us.saturating_sub(POSTGRES_EPOCH_US) }).into()
}

/// A `timestamptz` in microseconds since 1970. `infinity` and what is beyond `i64` become the end of `i64`;
/// `-infinity` is close to its beginning.
pub fn unix_us_of(timestamptz: pg_sys::TimestampTz) -> i64 {
    timestamptz.saturating_add(POSTGRES_EPOCH_US)
}

/// The server's clock, in microseconds since 1970.
pub fn now_us() -> i64 {
    // SAFETY: reads the clock.
    unix_us_of(unsafe { call!(GetCurrentTimestamp()) })
}

/// When the current statement started, in microseconds since 1970: the clock of STABLE functions.
pub fn statement_start_us() -> i64 {
    // SAFETY: reads a variable of the backend, which a parallel worker gets from its leader.
    unix_us_of(unsafe { call!(GetCurrentStatementStartTimestamp()) })
}

/// A duration in microseconds as an `interval`.
pub fn interval(us: i64) -> pg_sys::Datum {
    // SAFETY: palloc() returns memory of the size asked for, or does not return.
    unsafe {
        let interval = call!(palloc(size_of::<pg_sys::Interval>())).cast::<pg_sys::Interval>();
        interval.write(pg_sys::Interval { time: us, day: 0, month: 0 });
        interval.into()
    }
}

/// An instant as people read it, in the session's time zone.
pub fn printed(unix_us: i64) -> String {
    // SAFETY: takes any timestamp, and returns a C string in a static buffer, which is copied.
    unsafe { report::c_text(call!(timestamptz_to_str(timestamptz(unix_us).value() as i64))) }
}

/// A datum of SQL type `timestamptz`: an instant in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Instant(pub i64);

impl FromDatum for Instant {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        (!is_null).then(|| Instant(unix_us_of(datum.value() as i64)))
    }
}

impl IntoDatum for Instant {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(timestamptz(self.0))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TIMESTAMPTZOID
    }
}
