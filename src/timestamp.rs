//! Conversion of instants and durations to SQL and from it. Ours are in microseconds, instants since 1970.

use pgrx::pg_sys;

/// PostgreSQL's epoch, 2000-01-01 UTC, in microseconds since 1970.
pub const POSTGRES_EPOCH_US: i64 = (pg_sys::POSTGRES_EPOCH_JDATE - pg_sys::UNIX_EPOCH_JDATE) as i64
    * pg_sys::SECS_PER_DAY as i64
    * 1_000_000;

/// An instant in microseconds since 1970 as a `timestamptz`. The end of `i64` stands for everything later, from
/// the year 294247 on, and becomes `infinity`.
pub fn timestamptz(unix_us: i64) -> pg_sys::Datum {
    (if unix_us == i64::MAX { unix_us } else { unix_us - POSTGRES_EPOCH_US }).into()
}

/// A `timestamptz` in microseconds since 1970. `infinity` and what is beyond `i64` become the end of `i64`;
/// `-infinity` is close to its beginning.
pub fn unix_us_of(timestamptz: pg_sys::TimestampTz) -> i64 {
    timestamptz.saturating_add(POSTGRES_EPOCH_US)
}

/// A duration in microseconds as an `interval`.
pub fn interval(us: i64) -> pg_sys::Datum {
    // SAFETY: palloc() returns memory of the size asked for, or does not return.
    unsafe {
        let interval = pg_sys::palloc(size_of::<pg_sys::Interval>()).cast::<pg_sys::Interval>();
        interval.write(pg_sys::Interval { time: us, day: 0, month: 0 });
        interval.into()
    }
}
