//! The limits that a run must meet, and whether it does.

use crate::measures::{MEASURES, Measure, measure};
use crate::samples::{Samples, Spread};
use Bound::{AtLeast, AtMost};

/// The highest or lowest acceptable figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// A limit of a contender's measure, or of its ratio to that of another. The name of a measure may end in `*`.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub measure: &'static str,
    pub over: &'static str,
    pub under: Option<&'static str>,
    pub bound: Bound,
    majors: &'static [u32],
}

const OURS: &str = "ours_cache_1";
const OURS_64: &str = "ours_cache_64";
const BATCH: &str = "ours_batch";
const CORE: &str = "core_cache_1";
const CORE_64: &str = "core_cache_64";
const PGEDGE: &str = "pgedge";
const ORIGINAL: &str = "copied_plpgsql";

/// The bounds of what is equal but for noise, which a bound of 1 would miss by chance, and but for a page or two.
const SAME_RATE: f64 = 0.97;
const SAME_TIME: f64 = 1.05;
const SAME_SIZE: f64 = 1.01;

#[rustfmt::skip]
const LIMITS: [Limit; 73] = [
    most("ns_per_id", OURS, CORE, 0.6),
    most("ns_per_id", OURS_64, CORE_64, 0.45),
    most("ns_per_id_with_loop", BATCH, CORE_64, 0.65),
    most("ns_per_id", OURS, ORIGINAL, 0.07).on(&[15, 16, 17, 18]),
    most("ns_per_id", OURS, ORIGINAL, 0.09).on(&[19]),
    // PostgreSQL 19 runs the original three times as fast as 18, and what the lock of the SQL edition needs hardly faster.
    most("ns_per_id", "managed", ORIGINAL, 1.5).on(&[15, 16, 17, 18]),
    most("ns_per_id", "managed", ORIGINAL, 3.6).on(&[19]),
    least("tps_of_100_ids_8_clients", "managed_batch", ORIGINAL, 0.5),
    most("ns_per_first_id", OURS, CORE, 0.8),
    most("ns_per_first_id", OURS_64, CORE_64, 1.0),
    // What a connection pays that generates one ID. Up to 15, the server sorts all its settings for each one that a library defines.
    most("ms_of_a_connection", "ours_preloaded", CORE, 1.1),
    most("ms_of_a_connection", OURS, CORE, 1.45).on(&[15]),
    most("ms_of_a_connection", OURS, CORE, 1.3).on(&[16, 17, 18, 19]),
    most("ms_of_a_connection", OURS, PGEDGE, 1.3).on(&[15]),
    most("ms_of_a_connection", OURS, PGEDGE, 1.2).on(&[16, 17, 18, 19]),
    most("ms_of_load", OURS, PGEDGE, 2.7).on(&[15]),
    most("ms_of_load", OURS, PGEDGE, 2.5).on(&[16, 17, 18, 19]),
    alone("mb_of_the_library", OURS, 1.8),
    most("wal_records_per_1000000_ids", OURS, CORE, 0.01),
    // What is left for checks and arithmetic. An ID from the cache, or of a batch, needs no page. A batch returns its rows itself, so
    // the whole statements are compared. The bounds leave room for noise above what a quiet machine shows.
    most("ns_per_id", OURS, "floor_lock", 1.75).on(&[15, 16, 17, 18]),
    most("ns_per_id", OURS, "floor_lock", 1.5).on(&[19]),
    most("ns_per_id", OURS_64, "floor_clock", 1.5),
    most("ns_per_id_with_loop", BATCH, "floor_clock", 1.2),
    // 1 % above what was counted when they were set: they find what no time shows on a shared machine. On 19, two counts differ by up to
    // 25 instructions, and those of the small floors by more.
    most("instructions_per_id", OURS, "floor_lock", 1.85).on(&[19]),
    most("instructions_per_id", OURS, "floor_lock", 1.594).on(&[18]),
    most("instructions_per_id", OURS, "floor_lock", 1.54).on(&[15]),
    most("instructions_per_id", OURS_64, "floor_lock", 0.65).on(&[19]),
    most("instructions_per_id", OURS_64, "floor_clock", 4.554).on(&[18]),
    most("instructions_per_id", OURS_64, "floor_clock", 4.478).on(&[15]),
    most("instructions_per_id", BATCH, "floor_lock", 0.38).on(&[19]),
    most("instructions_per_id", BATCH, "floor_clock", 3.106).on(&[18]),
    most("instructions_per_id", BATCH, "floor_clock", 2.858).on(&[15]),
    // What a user gains by CACHE where several sessions share a sequence.
    least("tps_of_100_ids_8_clients", OURS_64, CORE, 3.0),
    least("tps_of_100_ids_8_clients", OURS_64, CORE_64, 2.0),
    least("tps_of_100_ids_8_clients", OURS_64, PGEDGE, 1.5),
    most("bulk_insert_s", OURS, CORE, 0.97),
    most("primary_key_bytes", OURS, CORE, SAME_SIZE),
    least("tps_of_an_insert_*", OURS, CORE, SAME_RATE),
    // The differences of times are lost in those of the disk. These are not.
    most("instructions_per_insert", OURS, CORE, 1.01),
    most("ns_per_id", OURS, PGEDGE, 1.0),
    most("ns_per_first_id", OURS, PGEDGE, 1.0),
    most("bulk_insert_s", OURS, PGEDGE, 1.0),
    most("primary_key_bytes", OURS, PGEDGE, SAME_SIZE),
    least("tps_of_100_ids_*", OURS, PGEDGE, 1.0),
    least("tps_of_an_insert_*", OURS, PGEDGE, SAME_RATE),
    most("instructions_per_insert", OURS, PGEDGE, 1.0),
    most("bulk_insert_s", OURS, "uuid_v7", 1.0),
    most("bulk_insert_s", "ready_ids", "ready_uuids", 1.0),
    most("ns_per_id", OURS, "uuid_v7", 1.0),
    most("primary_key_bytes", OURS, "uuid_v7", 1.0),
    none("repeats_in_1000000_ids", OURS),
    none("repeats_in_1000000_ids", OURS_64),
    none("repeats_in_1000000_ids", BATCH),
    none("repeats_in_1000000_ids", "managed"),
    none("repeats_in_1000000_ids", "managed_batch"),
    // The XOR takes a few of about 900. Two counts on 19 differ by up to 25.
    most("instructions_per_id", "ours_postgres", "ours_instagram", 1.015).on(&[15, 16, 17, 18]),
    most("instructions_per_id", "ours_postgres", "ours_instagram", 1.03).on(&[19]),
    most("instructions_per_id", "with_leases", "without_leases", 1.02),
    most("instructions_per_first_id", "with_leases", "without_leases", 1.02),
    // With the scan: what is left of a small time without it may be below 0.
    most("ns_per_row_with_scan*", "shard", "shard_in_sql", 1.0),
    most("ns_per_row_with_scan*", "time", "time_in_sql", 1.0),
    most("ns_per_row_with_scan*", "decode", "decode_in_sql", 1.0),
    // It is inlined, so both are the same plan.
    most("ns_per_row_with_scan*", "is_between", "is_between_in_sql", SAME_TIME),
    least("span_rows_per_s", "between", "column_between", 0.9),
    least("large_rows_per_s", OURS, PGEDGE, SAME_RATE),
    most("large_wal_bytes_per_row", OURS, PGEDGE, SAME_SIZE),
    most("large_key_bytes", OURS, PGEDGE, SAME_SIZE),
    least("large_rows_per_s", OURS, "uuid_v7", 1.0),
    most("large_wal_bytes_per_row", OURS, "uuid_v7", 0.92),
    most("large_key_bytes", OURS, "uuid_v7", 0.75),
    least("large_rows_per_s", OURS, "uuid_v4", 1.5),
    most("large_wal_bytes_per_row", OURS, "uuid_v4", 0.5),
    most("large_key_bytes", OURS, "uuid_v4", 0.65),
];

const fn most(measure: &'static str, over: &'static str, under: &'static str, most: f64) -> Limit {
    Limit { measure, over, under: Some(under), bound: AtMost(most), majors: &[] }
}

const fn least(measure: &'static str, over: &'static str, under: &'static str, least: f64) -> Limit {
    Limit { bound: AtLeast(least), ..most(measure, over, under, least) }
}

/// At most so many, by itself.
const fn alone(measure: &'static str, over: &'static str, most: f64) -> Limit {
    Limit { measure, over, under: None, bound: AtMost(most), majors: &[] }
}

/// Not one, by itself.
const fn none(measure: &'static str, over: &'static str) -> Limit {
    alone(measure, over, 0.0)
}

pub fn on(major: u32) -> impl Iterator<Item = Limit> {
    all().filter(move |limit| limit.majors.is_empty() || limit.majors.contains(&major))
}

/// With each measure for those whose name ends in `*`.
fn all() -> impl Iterator<Item = Limit> {
    let measures = |pattern: &'static str| {
        let is_one = move |name: &str| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        };
        MEASURES.iter().filter(move |measure| is_one(measure.name))
    };
    LIMITS.into_iter().flat_map(move |limit| measures(limit.measure).map(move |measure| Limit { measure: measure.name, ..limit }))
}

/// Whether a turn that takes seconds is due: in each of the rounds if a limit uses its figure, else in three of them.
pub fn is_due(round: usize, rounds: usize, measure: &str, contender: &str) -> bool {
    round.is_multiple_of((rounds / 3).max(1)) || is_judged(measure, contender)
}

/// Whether a limit uses the figure.
pub fn is_judged(measure: &str, contender: &str) -> bool {
    all().any(|limit| limit.measure == measure && limit.is_about(contender))
}

/// The widest interval of an undecided figure that says something about it, as a fraction of the median.
const MAX_WIDTH: f64 = 0.2;

/// How many figures of a full run may have a wider one: a shared machine disturbs a few of them.
const MAX_NOISY: usize = 5;

/// The result for a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Met,
    /// A time or rate whose median misses the bound, but whose confidence interval includes it: the run cannot say.
    Undecided,
    /// The same in a full run, with an interval so wide that the machine was too busy for this measurement.
    TooNoisy,
    Missed,
    /// A full run, in which this had too few rounds.
    TooFewRounds,
    /// A full run, in which this was not measured.
    Missing,
    /// It was not measured, and did not have to be.
    Unknown,
}

pub fn is_failure(verdicts: &[Verdict]) -> bool {
    use Verdict::{Missed, Missing, TooFewRounds, TooNoisy};
    let is_miss = |verdict| matches!(verdict, &Missed | &Missing | &TooFewRounds);
    let noisy = verdicts.iter().filter(|verdict| **verdict == TooNoisy).count();
    verdicts.iter().any(is_miss) || noisy > MAX_NOISY
}

impl Bound {
    /// Whether a figure that lies between these two can meet it, compared to as many decimals as bounds and figures are written with.
    fn can_be_met_in(self, [lowest, highest]: [f64; 2], decimals: usize) -> bool {
        let rounded = |value: f64| format!("{value:.decimals$}").parse().unwrap_or(f64::NAN);
        match self {
            // A cost below 0 is a measurement that failed: the loop that is subtracted was disturbed.
            AtMost(bound) => highest >= 0.0 && rounded(lowest) <= bound,
            AtLeast(bound) => rounded(highest) >= bound,
        }
    }
}

impl Limit {
    const fn on(self, majors: &'static [u32]) -> Self {
        Limit { majors, ..self }
    }

    pub fn measure(&self) -> &'static Measure {
        measure(self.measure)
    }

    pub fn is_about(&self, contender: &str) -> bool {
        self.over == contender || self.under == Some(contender)
    }

    /// How many decimals are compared and shown. Instructions are counted so exactly that a thousandth is a difference.
    pub fn decimals(&self) -> usize {
        if self.measure.starts_with("instructions") { 3 } else { 2 }
    }

    pub fn spread(&self, samples: &Samples) -> Option<Spread> {
        match self.under {
            Some(under) => samples.ratio(self.measure, self.over, under),
            None => samples.spread(self.measure, self.over),
        }
    }

    /// Whether a figure meets it. A full run must measure everything often enough.
    ///
    /// The median decides for what is counted. A time is missed only if the whole confidence interval is on the wrong side, which for a
    /// few rounds is all of them: else a healthy machine would miss, in half of its runs, what it just meets.
    pub fn verdict(&self, spread: Option<Spread>, is_full: bool) -> Verdict {
        let Some(spread) = spread else {
            return if is_full { Verdict::Missing } else { Verdict::Unknown };
        };
        let can_be_met_in = |range| self.bound.can_be_met_in(range, self.decimals());
        let is_met = can_be_met_in([spread.median; 2]);
        let Measure { rounds, is_counted, .. } = *self.measure();
        if !is_met && (is_counted || !can_be_met_in(spread.interval)) {
            Verdict::Missed
        } else if is_full && spread.count < rounds {
            Verdict::TooFewRounds
        } else if is_met {
            Verdict::Met
        } else if is_full && spread.width() > MAX_WIDTH {
            Verdict::TooNoisy
        } else {
            Verdict::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bound::{AtLeast, AtMost};
    use super::{Limit, MAX_NOISY, Verdict, is_due, is_failure, least, most};
    use crate::samples::Spread;
    use Verdict::*;

    const TWICE: Limit = least("tps_of_100_ids_8_clients", "ours", "core", 2.0);

    fn verdict(limit: Limit, figures: &[f64], is_full: bool) -> Verdict {
        limit.verdict(Spread::of(figures.to_vec()), is_full)
    }

    /// The fewest rounds that have an interval, from the first to the last; the median is the second.
    fn six([first, median, last]: [f64; 3]) -> [f64; 6] {
        [first, median, median, median, median, last]
    }

    #[test]
    fn a_bound_itself_is_met() {
        let cases = [
            (AtMost(0.9), 0.9, true),
            (AtMost(0.9), 0.9049, true),
            (AtMost(0.9), 0.906, false),
            (AtLeast(2.0), 2.0, true),
            (AtLeast(2.0), 1.996, true),
            (AtLeast(2.0), 1.99, false),
            (AtMost(0.9), f64::NAN, false),
            (AtMost(0.9), -0.001, false),
            (AtMost(0.0), 0.0, true),
        ];
        for (bound, value, is_met) in cases {
            assert_eq!(bound.can_be_met_in([value; 2], 2), is_met, "{bound:?} by {value}");
        }
        assert!(!AtMost(1.01).can_be_met_in([1.0106; 2], 3));
        assert!(AtMost(1.01).can_be_met_in([1.0104; 2], 3));
    }

    #[test]
    fn a_time_misses_its_limit_if_its_whole_interval_does() {
        let low = Limit { bound: AtMost(0.15), ..TWICE };
        for (limit, figures, expected) in [
            (TWICE, [1.0, 2.0, 9.0], Met),
            (TWICE, [1.0, 1.99, 9.0], Undecided),
            (TWICE, [1.0, 1.98, 1.99], Missed),
            (low, [-0.2, 0.09, 0.24], Met),
            (low, [-0.2, -0.09, 0.24], Undecided),
            (low, [-0.2, -0.09, -0.01], Missed),
            (low, [0.14, 0.24, 0.25], Undecided),
            (low, [0.16, 0.24, 0.25], Missed),
        ] {
            assert_eq!(verdict(limit, &six(figures), false), expected, "{figures:?}");
            // Of few rounds, the interval is from the lowest to the highest.
            assert_eq!(verdict(limit, &figures, false), expected, "{figures:?}");
        }
        assert_eq!(verdict(TWICE, &[1.99], false), Missed);
    }

    #[test]
    fn the_median_of_a_count_decides() {
        let limit = most("primary_key_bytes", "ours", "core", 1.01);
        assert_eq!(verdict(limit, &[1.0, 1.0, 1.2], false), Met);
        assert_eq!(verdict(limit, &[1.0, 1.02, 1.2], false), Missed);
    }

    #[test]
    fn a_full_run_needs_every_figure_enough_rounds_and_a_quiet_machine() {
        let nine = |figure| [figure; 9];
        assert_eq!(verdict(TWICE, &nine(2.0), true), Met);
        assert_eq!(verdict(TWICE, &[2.0; 8], true), TooFewRounds);
        assert_eq!(verdict(TWICE, &[2.0; 8], false), Met);
        assert_eq!((verdict(TWICE, &[], true), verdict(TWICE, &[], false)), (Missing, Unknown));
        let mut close = nine(1.99);
        close[..2].fill(1.9);
        close[7..].fill(2.1);
        assert_eq!(verdict(TWICE, &close, true), Undecided);
        close[7..].fill(2.4);
        assert_eq!(verdict(TWICE, &close, true), TooNoisy);
        assert_eq!(verdict(TWICE, &close, false), Undecided);
    }

    #[test]
    fn a_run_fails_if_a_figure_misses_its_limit_or_the_machine_was_too_busy() {
        assert!(!is_failure(&[[TooNoisy; MAX_NOISY].as_slice(), &[Met, Undecided, Unknown]].concat()));
        assert!(is_failure(&[TooNoisy; MAX_NOISY + 1]));
        for verdict in [Missed, Missing, TooFewRounds] {
            assert!(is_failure(&[Met, verdict]), "{verdict:?}");
        }
    }

    #[test]
    fn a_turn_is_due_in_each_round_if_a_limit_uses_it() {
        let due = |measure, name| (0..9).filter(|&round| is_due(round, 9, measure, name)).count();
        assert_eq!(due("tps_of_100_ids_8_clients", "core_cache_1"), 9);
        assert_eq!(due("tps_of_100_ids_8_clients", "ours_cache_64"), 9);
        assert_eq!(due("tps_of_100_ids_8_clients", "copied_sql"), 3);
        assert_eq!(due("tps_of_100_ids_1_clients", "ours_cache_64"), 3);
    }
}
