//! Times as text. They are in UTC.

use crate::layout::Layout;
use jiff::Timestamp;

/// The instant at which a tick begins, in RFC 3339 format; after the year 9999, a text that says so.
///
/// ```
/// use pg_snowflake_ids::{instant, presets::JS53};
///
/// assert_eq!(instant::text(&JS53, 0), "2020-01-01T00:00:00Z");
/// ```
pub fn text(layout: &Layout, tick: i64) -> String {
    match Timestamp::from_microsecond(layout.instant_of(tick)) {
        Ok(instant) => instant.to_string(),
        Err(_) => "after the year 9999".into(),
    }
}
