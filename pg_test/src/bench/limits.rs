//! What has to be shown, and whether it was.

use crate::bench::samples::{Measure, Samples, Spread};

/// How a figure is bounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Bound::AtMost(bound) => value <= bound,
            Bound::AtLeast(bound) => value >= bound,
        }
    }
}

/// A figure, or the ratio of two figures of one run, and its bound.
#[derive(Debug)]
pub struct Limit {
    /// For people, in Markdown.
    pub title: &'static str,
    over: (Measure, &'static str),
    under: Option<(Measure, &'static str)>,
    /// What the median has to keep to.
    pub bound: Bound,
}

/// What came of a limit.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Met(Spread),
    NotMet(Spread),
    /// It was not measured.
    Unknown,
}

/// All that a run has to show.
pub const LIMITS: [Limit; 11] = [
    Limit {
        title: "one backend: `snowflake_nextval` by core's `nextval`, both `CACHE 1`",
        over: (Measure::IdNs, "ours_cache_1"),
        under: Some((Measure::IdNs, "core_cache_1")),
        bound: Bound::AtMost(0.9),
    },
    Limit {
        title: "one backend: `snowflake_nextval` by core's `nextval`, both `CACHE 64`",
        over: (Measure::IdNs, "ours_cache_64"),
        under: Some((Measure::IdNs, "core_cache_64")),
        bound: Bound::AtMost(0.5),
    },
    Limit {
        title: "one backend: `snowflake_nextval`, `CACHE 1`, by the PL/pgSQL original",
        over: (Measure::IdNs, "ours_cache_1"),
        under: Some((Measure::IdNs, "copied_plpgsql")),
        bound: Bound::AtMost(0.07),
    },
    Limit {
        title: "one backend: `snowflake_nextvals` by core's `nextval`, `CACHE 64`",
        over: (Measure::IdNs, "ours_batch"),
        under: Some((Measure::IdNs, "core_cache_64")),
        bound: Bound::AtMost(0.5),
    },
    Limit {
        title: "`INSERT` of 1,000,000 rows: seconds by `bigserial`'s",
        over: (Measure::BulkSeconds, "ours_cache_1"),
        under: Some((Measure::BulkSeconds, "core_cache_1")),
        bound: Bound::AtMost(1.02),
    },
    Limit {
        title: "8 clients, 100 ids a transaction, `CACHE 1`: transactions per second by core's",
        over: (Measure::TakingTps(8), "ours_cache_1"),
        under: Some((Measure::TakingTps(8), "core_cache_1")),
        bound: Bound::AtLeast(2.0),
    },
    Limit {
        title: "WAL records of 1,000,000 ids at full rate, `CACHE 1`: by core's",
        over: (Measure::WalRecords, "ours_cache_1"),
        under: Some((Measure::WalRecords, "core_cache_1")),
        bound: Bound::AtMost(0.01),
    },
    Limit {
        title: "primary key after 1,000,000 inserts: bytes by `bigserial`'s",
        over: (Measure::KeyBytes, "ours_cache_1"),
        under: Some((Measure::KeyBytes, "core_cache_1")),
        bound: Bound::AtMost(1.01),
    },
    Limit {
        title: "an id of 100,000 sequences in turn by one of a single sequence, one backend",
        over: (Measure::InTurnNs(100_000), "ours_cache_1"),
        under: Some((Measure::InTurnNs(1), "ours_cache_1")),
        bound: Bound::AtMost(1.5),
    },
    Limit {
        title: "ids per second by the limit of `instagram`, 1,024,000: one backend, `CACHE 1`",
        over: (Measure::ShareOfInstagram, "ours_cache_1"),
        under: None,
        bound: Bound::AtLeast(0.99),
    },
    Limit {
        title: "ids per second by the limit of `twitter`, 4,096,000: one backend, `snowflake_nextvals`",
        over: (Measure::ShareOfTwitter, "ours_batch"),
        under: None,
        bound: Bound::AtLeast(0.95),
    },
];

impl Limit {
    /// Whether the run keeps to it.
    pub fn verdict(&self, samples: &Samples) -> Verdict {
        let spread = match self.under {
            Some(under) => samples.ratio(self.over, under),
            None => samples.spread(self.over.0, self.over.1),
        };
        match spread {
            Some(spread) if self.bound.is_met_by(spread.median) => Verdict::Met(spread),
            Some(spread) => Verdict::NotMet(spread),
            None => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Limit, Verdict};
    use crate::bench::samples::{Measure, Samples};

    const TWICE: Limit = Limit {
        title: "ours is at least twice core's",
        over: (Measure::TakingTps(8), "ours"),
        under: Some((Measure::TakingTps(8), "core")),
        bound: Bound::AtLeast(2.0),
    };

    fn samples(ours: [f64; 3]) -> Samples {
        let mut samples = Samples::default();
        for (round, ours) in ours.into_iter().enumerate() {
            samples.add(round, "ours", Measure::TakingTps(8), ours);
            samples.add(round, "core", Measure::TakingTps(8), 100.0);
        }
        samples
    }

    #[test]
    fn a_bound_itself_is_met() {
        let cases = [
            (Bound::AtMost(0.9), 0.9, true),
            (Bound::AtMost(0.9), 0.901, false),
            (Bound::AtLeast(2.0), 2.0, true),
            (Bound::AtLeast(2.0), 1.99, false),
            (Bound::AtMost(0.9), f64::NAN, false),
        ];
        for (bound, value, is_met) in cases {
            assert_eq!(bound.is_met_by(value), is_met, "{bound:?} by {value}");
        }
    }

    #[test]
    fn the_median_of_the_ratios_decides() {
        assert!(matches!(TWICE.verdict(&samples([100.0, 200.0, 900.0])), Verdict::Met(_)));
        assert!(matches!(TWICE.verdict(&samples([100.0, 199.0, 900.0])), Verdict::NotMet(_)));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert_eq!(TWICE.verdict(&Samples::default()), Verdict::Unknown);
    }
}
