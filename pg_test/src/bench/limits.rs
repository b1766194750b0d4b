//! The limits that a run must meet, and whether it did.

use crate::bench::samples::Measure::{AggregateSeconds, JoinSeconds};
use crate::bench::samples::{Measure, Samples, Spread};

/// The bound of a figure.
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
    /// The title for people, in Markdown.
    pub title: &'static str,
    over: (Measure, &'static str),
    under: Option<(Measure, &'static str)>,
    /// What the median must keep to.
    pub bound: Bound,
    /// The least number of rounds of a full run.
    rounds: usize,
}

/// The result for a limit.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Met(Spread),
    NotMet(Spread),
    /// A full run, in which this had too few rounds.
    TooFewRounds(Spread),
    /// A full run, in which this was not measured.
    Missing,
    /// It was not measured, and did not have to be.
    Unknown,
}

impl Verdict {
    /// Whether the run fails because of it.
    pub fn is_miss(&self) -> bool {
        match self {
            Verdict::Met(_) | Verdict::Unknown => false,
            Verdict::NotMet(_) | Verdict::TooFewRounds(_) | Verdict::Missing => true,
        }
    }
}

/// The median of fewer rounds is not reliable.
const ROUNDS: usize = 9;

/// The same statement has the same count in every round.
const ONE_COUNT: usize = 1;

/// All limits of a run.
pub const LIMITS: [Limit; 26] = [
    Limit {
        title: "one backend: `snowflake_nextval` by core's `nextval`, both `CACHE 1`",
        over: (Measure::IdNs, "ours_cache_1"),
        under: Some((Measure::IdNs, "core_cache_1")),
        bound: Bound::AtMost(0.9),
        rounds: ROUNDS,
    },
    Limit {
        title: "one backend: `snowflake_nextval` by core's `nextval`, both `CACHE 64`",
        over: (Measure::IdNs, "ours_cache_64"),
        under: Some((Measure::IdNs, "core_cache_64")),
        bound: Bound::AtMost(0.5),
        rounds: ROUNDS,
    },
    Limit {
        title: "one backend: `snowflake_nextval`, `CACHE 1`, by the PL/pgSQL original",
        over: (Measure::IdNs, "ours_cache_1"),
        under: Some((Measure::IdNs, "copied_plpgsql")),
        bound: Bound::AtMost(0.07),
        rounds: ROUNDS,
    },
    Limit {
        title: "one backend: `snowflake_nextvals` by core's `nextval`, `CACHE 64`",
        over: (Measure::IdNs, "ours_batch"),
        under: Some((Measure::IdNs, "core_cache_64")),
        bound: Bound::AtMost(0.5),
        rounds: ROUNDS,
    },
    Limit {
        title: "the first id of a transaction: `snowflake_nextval` by core's `nextval`, both `CACHE 1`",
        over: (Measure::FirstIdNs, "ours_cache_1"),
        under: Some((Measure::FirstIdNs, "core_cache_1")),
        bound: Bound::AtMost(1.0),
        rounds: ROUNDS,
    },
    Limit {
        title: "one `INSERT` of many rows: seconds by `bigserial`'s",
        over: (Measure::BulkSeconds, "ours_cache_1"),
        under: Some((Measure::BulkSeconds, "core_cache_1")),
        bound: Bound::AtMost(1.02),
        rounds: ROUNDS,
    },
    Limit {
        title: "8 clients, 100 ids a transaction, `CACHE 1`: transactions per second by core's",
        over: (Measure::TakingTps(8), "ours_cache_1"),
        under: Some((Measure::TakingTps(8), "core_cache_1")),
        bound: Bound::AtLeast(2.0),
        rounds: ROUNDS,
    },
    Limit {
        title: "WAL records at full rate, `CACHE 1`, layout with 18 bits of `seq`: by core's",
        over: (Measure::WalRecords, "ours_cache_1"),
        under: Some((Measure::WalRecords, "core_cache_1")),
        bound: Bound::AtMost(0.01),
        rounds: ROUNDS,
    },
    Limit {
        title: "primary key after that `INSERT`: bytes by `bigserial`'s",
        over: (Measure::KeyBytes, "ours_cache_1"),
        under: Some((Measure::KeyBytes, "core_cache_1")),
        bound: Bound::AtMost(1.01),
        rounds: ROUNDS,
    },
    Limit {
        title: "an id of 100,000 sequences in turn, each used before, by one of a single sequence, one backend",
        over: (Measure::InTurnNs(100_000), "ours_cache_1"),
        under: Some((Measure::InTurnNs(1), "ours_cache_1")),
        bound: Bound::AtMost(1.5),
        rounds: ROUNDS,
    },
    Limit {
        title: "ids per second by the limit of `instagram`, 1,024,000: one backend, `CACHE 1`",
        over: (Measure::ShareOfInstagram, "ours_cache_1"),
        under: None,
        bound: Bound::AtLeast(0.99),
        rounds: ROUNDS,
    },
    Limit {
        title: "ids per second by the limit of `twitter`, 4,096,000: one backend, `CACHE 1`",
        over: (Measure::ShareOfTwitter, "ours_cache_1"),
        under: None,
        bound: Bound::AtLeast(0.95),
        rounds: ROUNDS,
    },
    Limit {
        title: "repeats among the ids of one statement: `snowflake_nextval`, `CACHE 1`",
        over: (Measure::Repeats, "ours_cache_1"),
        under: None,
        bound: Bound::AtMost(0.0),
        rounds: ONE_COUNT,
    },
    Limit {
        title: "repeats among the ids of one statement: `snowflake_nextval`, `CACHE 64`",
        over: (Measure::Repeats, "ours_cache_64"),
        under: None,
        bound: Bound::AtMost(0.0),
        rounds: ONE_COUNT,
    },
    Limit {
        title: "repeats among the ids of one statement: `snowflake_nextvals`",
        over: (Measure::Repeats, "ours_batch"),
        under: None,
        bound: Bound::AtMost(0.0),
        rounds: ONE_COUNT,
    },
    as_bigserial(
        "HashAggregate of `postgres` by `bigserial`, 1 per ms",
        AggregateSeconds,
        "postgres_1",
    ),
    as_bigserial(
        "HashAggregate of `postgres` by `bigserial`, 10 per ms",
        AggregateSeconds,
        "postgres_10",
    ),
    as_bigserial(
        "HashAggregate of `postgres` by `bigserial`, 100 per ms",
        AggregateSeconds,
        "postgres_100",
    ),
    as_bigserial(
        "HashAggregate of `postgres` by `bigserial`, 1,000 per ms",
        AggregateSeconds,
        "postgres_1000",
    ),
    as_bigserial(
        "HashAggregate of `postgres` by `bigserial`, 100 per ms of 16 shards",
        AggregateSeconds,
        "postgres_100_16shards",
    ),
    as_bigserial("hash join of `postgres` by `bigserial`, 1 per ms", JoinSeconds, "postgres_1"),
    as_bigserial("hash join of `postgres` by `bigserial`, 10 per ms", JoinSeconds, "postgres_10"),
    as_bigserial("hash join of `postgres` by `bigserial`, 100 per ms", JoinSeconds, "postgres_100"),
    as_bigserial(
        "hash join of `postgres` by `bigserial`, 1,000 per ms",
        JoinSeconds,
        "postgres_1000",
    ),
    as_bigserial(
        "hash join of `postgres` by `bigserial`, 100 per ms of 16 shards",
        JoinSeconds,
        "postgres_100_16shards",
    ),
    Limit {
        title: "instructions of an id in layout `postgres` by `instagram`",
        over: (Measure::InstructionsOfPostgres, "ours_cache_1"),
        under: Some((Measure::InstructionsOfInstagram, "ours_cache_1")),
        bound: Bound::AtMost(1.01),
        rounds: ONE_COUNT,
    },
];

/// The limit of a hash table, relative to one of sequential numbers.
const fn as_bigserial(title: &'static str, measure: Measure, case: &'static str) -> Limit {
    Limit {
        title,
        over: (measure, case),
        under: Some((measure, "bigserial")),
        bound: Bound::AtMost(1.1),
        rounds: ROUNDS,
    }
}

/// Whether a limit uses this figure of this contender, by itself or in a ratio.
pub fn is_judged(measure: Measure, contender: &str) -> bool {
    LIMITS.iter().any(|limit| {
        let mut figures = std::iter::once(limit.over).chain(limit.under);
        figures.any(|figure| figure == (measure, contender))
    })
}

impl Limit {
    /// Whether the run meets it. A full run must measure everything often enough.
    pub fn verdict(&self, samples: &Samples, is_full: bool) -> Verdict {
        let spread = match self.under {
            Some(under) => samples.ratio(self.over, under),
            None => samples.spread(self.over.0, self.over.1),
        };
        match spread {
            Some(spread) if !self.bound.is_met_by(spread.median) => Verdict::NotMet(spread),
            Some(spread) if is_full && spread.count < self.rounds => Verdict::TooFewRounds(spread),
            Some(spread) => Verdict::Met(spread),
            None if is_full => Verdict::Missing,
            None => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, LIMITS, Limit, ROUNDS, Verdict, is_judged};
    use crate::bench::samples::{Measure, Samples};

    const TWICE: Limit = Limit {
        title: "ours is at least twice core's",
        over: (Measure::TakingTps(8), "ours"),
        under: Some((Measure::TakingTps(8), "core")),
        bound: Bound::AtLeast(2.0),
        rounds: ROUNDS,
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
        let verdict = |ours| TWICE.verdict(&samples(ours), false);
        assert!(matches!(verdict([100.0, 200.0, 900.0]), Verdict::Met(_)));
        assert!(matches!(verdict([100.0, 199.0, 900.0]), Verdict::NotMet(_)));
    }

    #[test]
    fn a_full_run_misses_a_limit_with_too_few_rounds() {
        let three_rounds = samples([200.0, 200.0, 200.0]);
        assert!(!TWICE.verdict(&three_rounds, false).is_miss());
        assert!(matches!(TWICE.verdict(&three_rounds, true), Verdict::TooFewRounds(_)));
        assert!(TWICE.verdict(&three_rounds, true).is_miss());
        let often_enough = Limit { rounds: 3, ..TWICE };
        assert!(!often_enough.verdict(&three_rounds, true).is_miss());

        assert_eq!(TWICE.verdict(&Samples::default(), true), Verdict::Missing);
        assert!(TWICE.verdict(&Samples::default(), true).is_miss());
        assert!(!TWICE.verdict(&Samples::default(), false).is_miss());
    }

    #[test]
    fn both_figures_of_a_ratio_are_judged() {
        for name in ["ours_cache_1", "core_cache_1"] {
            assert!(is_judged(Measure::TakingTps(8), name), "{name}");
        }
        assert!(!is_judged(Measure::TakingTps(8), "copied_plpgsql"));
        assert!(!is_judged(Measure::TakingTps(2), "ours_cache_1"));
    }

    #[test]
    fn one_repeat_of_ours_is_a_miss() {
        for name in ["ours_cache_1", "ours_cache_64", "ours_batch"] {
            let misses = |repeats| {
                let mut samples = Samples::default();
                samples.add(0, name, Measure::Repeats, repeats);
                LIMITS.iter().filter(|limit| limit.verdict(&samples, false).is_miss()).count()
            };
            assert_eq!((misses(0.0), misses(1.0)), (0, 1), "{name}");
        }
    }
}
