//! Spans of ID time. A lease of a shard is such a span: its holder generates the shard's IDs whose tick begins in it.
//!
//! The spans of different holders never overlap ([`crate::registry`]), so their IDs differ, whatever their clocks say and however
//! long one of them was paused.

use pg_snowflake_ids::layout::Layout;

/// A span of ID time, in microseconds since 1970. The end is exclusive.
///
/// ```
/// use pg_snowflake_policies::lease::{Span, Ticks};
/// use pg_snowflake_ids::presets::TWITTER;
///
/// let begin = TWITTER.instant_of(5_000);
/// let span = Span { starts_us: begin - 999, ends_us: begin + 2_001 };
/// assert_eq!(span.ticks(&TWITTER), Ticks { first: 5_000, last: 5_002 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first instant.
    pub starts_us: i64,
    /// The instant after the last one.
    pub ends_us: i64,
}

impl Span {
    /// The ticks that begin in the span. Those of an empty span are empty too, and begin where they would.
    pub const fn ticks(self, layout: &Layout) -> Ticks {
        Ticks { first: layout.tick_at(self.starts_us.saturating_sub(1)) + 1, last: layout.tick_at(self.ends_us.saturating_sub(1)) }
    }
}

/// The ticks in which IDs may be generated, `first` and `last` included; none if `first` is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticks {
    /// The lowest.
    pub first: i64,
    /// The highest.
    pub last: i64,
}

impl Ticks {
    /// The ticks of a server that needs no lease.
    pub const ALL: Ticks = Ticks { first: i64::MIN, last: i64::MAX };

    /// No ticks.
    pub const NONE: Ticks = Ticks { first: i64::MAX, last: i64::MIN };
}

#[cfg(test)]
mod tests {
    use super::Span;
    use pg_snowflake_ids::any::any_layout;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tick_belongs_to_the_span_in_which_it_begins(
            layout in any_layout(),
            starts_us in 0..1_i64 << 52,
            length_us in 0..1_000_000_i64,
            offset in -3..3_i64,
        ) {
            let span = Span { starts_us, ends_us: starts_us + length_us };
            let ticks = span.ticks(&layout);
            for near in [starts_us, span.ends_us] {
                let tick = layout.tick_at(near) + offset;
                let begin = layout.instant_of(tick);
                let begins_in_it = starts_us <= begin && begin < span.ends_us;
                prop_assert_eq!((ticks.first..=ticks.last).contains(&tick), begins_in_it, "{:?}, {}", ticks, tick);
            }
        }
    }
}
