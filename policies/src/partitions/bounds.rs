//! The IDs of a partition by range, as in its `FOR VALUES` clause.

use super::step::HOUR_US;
use pg_snowflake_ids::Layout;
use std::fmt;
use std::ops::Range;

/// One bound of a partition. The upper bound is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// `MINVALUE`.
    Min,
    /// An ID.
    At(i64),
    /// `MAXVALUE`.
    Max,
}

impl Bound {
    fn parse(text: &str) -> Option<Bound> {
        match text {
            "MINVALUE" => Some(Bound::Min),
            "MAXVALUE" => Some(Bound::Max),
            _ => {
                let digits = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
                digits.unwrap_or(text).parse().ok().map(Bound::At)
            }
        }
    }

    /// The time at which IDs from the bound on are generated; `None` if the layout has none at the bound.
    pub fn instant(self, layout: &Layout) -> Option<i64> {
        match self {
            Bound::At(id) if id >= 0 && id >> layout.low_bits() <= layout.max_tick() => Some(layout.instant_of(id >> layout.low_bits())),
            _ => None,
        }
    }

    /// The whole hour whose first ID is the bound.
    pub(super) fn whole_hour(self, layout: &Layout) -> Option<i64> {
        let instant = self.instant(layout)?;
        let hour = instant - instant.rem_euclid(HOUR_US);
        (self == Bound::At(layout.min_id(hour))).then_some(hour)
    }
}

/// As in a `FOR VALUES` clause.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Min => f.write_str("MINVALUE"),
            Bound::At(id) => write!(f, "'{id}'"),
            Bound::Max => f.write_str("MAXVALUE"),
        }
    }
}

/// The IDs of a partition by range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounds {
    /// The inclusive lower bound.
    pub from: Bound,
    /// The exclusive upper bound.
    pub to: Bound,
}

impl Bounds {
    /// Reads what `pg_get_expr()` prints of a partition by range of one integer; `None` for any other partition.
    ///
    /// ```
    /// use pg_snowflake_policies::partitions::{Bound, Bounds};
    ///
    /// let bounds = Bounds { from: Bound::At(5), to: Bound::Max };
    /// assert_eq!(Bounds::parse("FOR VALUES FROM ('5') TO (MAXVALUE)"), Some(bounds));
    /// assert_eq!(bounds.to_string(), "FOR VALUES FROM ('5') TO (MAXVALUE)");
    /// assert_eq!(Bounds::parse("DEFAULT"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Bounds> {
        let (from, to) = text.strip_prefix("FOR VALUES FROM (")?.strip_suffix(')')?.split_once(") TO (")?;
        Some(Bounds { from: Bound::parse(from)?, to: Bound::parse(to)? })
    }

    /// The IDs of the layout in a span of time.
    pub(super) fn of_span(layout: &Layout, span: &Range<i64>) -> Bounds {
        let to = match layout.min_id(span.end) {
            // Beyond the last ID, if that has 63 bits.
            i64::MAX => Bound::Max,
            id => Bound::At(id),
        };
        Bounds { from: Bound::At(layout.min_id(span.start)), to }
    }

    pub(super) fn is_empty(self) -> bool {
        self.from >= self.to
    }

    pub(super) fn overlaps(self, other: Bounds) -> bool {
        self.from < other.to && other.from < self.to
    }

    pub(super) fn contains(self, other: Bounds) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Whether it has IDs of the layout that are generated at an instant, by a clock with an error of up to the tolerance.
    pub fn has_ids_of(self, layout: &Layout, unix_us: i64, tolerance_us: i64) -> bool {
        self.overlaps(Bounds::of_span(layout, &(unix_us - tolerance_us..unix_us + tolerance_us)))
    }

    /// Whether every ID in it was generated before that instant, and it has IDs of the layout.
    pub fn ends_before(self, layout: &Layout, unix_us: i64) -> bool {
        // IDs below 0 have no order by time.
        matches!(self.to, Bound::At(id) if id > 0 && id <= layout.min_id(unix_us))
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FOR VALUES FROM ({}) TO ({})", self.from, self.to)
    }
}
