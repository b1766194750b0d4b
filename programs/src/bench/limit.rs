//! A limit of a figure, and whether a run keeps to it.

use crate::bench::samples::{Measure, Samples, Spread};

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    /// Whether a figure that lies between these two can meet it, compared to as many decimals as bounds and figures are
    /// written with.
    fn can_be_met_in(self, [lowest, highest]: [f64; 2], decimals: usize) -> bool {
        let rounded = |value: f64| format!("{value:.decimals$}").parse().unwrap_or(f64::NAN);
        match self {
            // A cost below 0 is a measurement that failed: the loop that is subtracted was disturbed.
            Bound::AtMost(bound) => highest >= 0.0 && rounded(lowest) <= bound,
            Bound::AtLeast(bound) => rounded(highest) >= bound,
        }
    }
}

/// The widest interval of an undecided figure that says something about it, as a fraction of the median.
const MAX_WIDTH: f64 = 0.2;

/// How many figures of a full run may have a wider one: a shared machine disturbs a few of its hundred.
const MAX_NOISY: usize = 5;

/// A measure of a contender, by its name.
pub type Figure = (Measure, &'static str);

/// A figure, or the ratio of two figures of one run, and its bound.
#[derive(Debug)]
pub struct Limit {
    /// The title for people, in Markdown.
    pub title: String,
    pub over: Figure,
    /// The other figure of a ratio.
    pub under: Option<Figure>,
    /// What the figure must keep to.
    pub bound: Bound,
    /// How many rounds a full run needs.
    pub rounds: usize,
}

/// The result for a limit.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Met(Spread),
    /// A time or rate whose median misses the bound, but whose confidence interval includes it: the run cannot say.
    Undecided(Spread),
    /// The same in a full run, with an interval so wide that the machine was too busy for this measurement. More than
    /// [`MAX_NOISY`] of them fail the run.
    TooNoisy(Spread),
    NotMet(Spread),
    /// A full run, in which this had too few rounds.
    TooFewRounds(Spread),
    /// A full run, in which this was not measured.
    Missing,
    /// It was not measured, and did not have to be.
    Unknown,
}

impl Verdict {
    /// Whether the run fails because of it alone.
    pub fn is_miss(&self) -> bool {
        match self {
            Verdict::Met(_) | Verdict::Undecided(_) | Verdict::TooNoisy(_) | Verdict::Unknown => {
                false
            }
            Verdict::NotMet(_) | Verdict::TooFewRounds(_) | Verdict::Missing => true,
        }
    }
}

/// Whether a run with these results fails.
pub fn is_failure(verdicts: &[Verdict]) -> bool {
    let is_noisy = |verdict: &&Verdict| matches!(verdict, Verdict::TooNoisy(_));
    verdicts.iter().any(Verdict::is_miss) || verdicts.iter().filter(is_noisy).count() > MAX_NOISY
}

impl Limit {
    /// Whether it uses a figure of this contender.
    pub fn is_about(&self, contender: &str) -> bool {
        self.figures().any(|(_, name)| name == contender)
    }

    /// Its figure, or the two of its ratio.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        std::iter::once(self.over).chain(self.under)
    }

    /// How many decimals are compared and shown. Instructions are counted so exactly that a thousandth is a difference.
    pub fn decimals(&self) -> usize {
        if self.over.0.is_instructions() { 3 } else { 2 }
    }

    /// Whether the run meets it. A full run must measure everything often enough.
    pub fn verdict(&self, samples: &Samples, is_full: bool) -> Verdict {
        let spread = match self.under {
            Some(under) => samples.ratio(self.over, under),
            None => samples.spread(self.over.0, self.over.1),
        };
        match spread {
            Some(spread) => self.judge(spread, is_full),
            None if is_full => Verdict::Missing,
            None => Verdict::Unknown,
        }
    }

    /// The median decides for an exact figure. A time is missed only if the whole confidence interval is on the wrong side, which
    /// for a few rounds is all of them: else a healthy machine would miss, in half of its runs, what it just meets.
    pub(super) fn judge(&self, spread: Spread, is_full: bool) -> Verdict {
        let can_be_met_in = |range| self.bound.can_be_met_in(range, self.decimals());
        let is_met = can_be_met_in([spread.median; 2]);
        let is_possible = !self.over.0.is_exact() && can_be_met_in(spread.interval);
        if !is_met && !is_possible {
            Verdict::NotMet(spread)
        } else if is_full && spread.count < self.rounds {
            Verdict::TooFewRounds(spread)
        } else if is_met {
            Verdict::Met(spread)
        } else if is_full && spread.width() > MAX_WIDTH {
            Verdict::TooNoisy(spread)
        } else {
            Verdict::Undecided(spread)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Limit, MAX_NOISY, Verdict, is_failure};
    use crate::bench::limits::LIMITS;
    use crate::bench::plan::{CLIENTS, INSERT_ROUNDS};
    use crate::bench::samples::{Measure, Samples};

    fn twice() -> Limit {
        Limit {
            title: "ours is at least twice core's".to_owned(),
            over: (Measure::TakingTps(8), "ours"),
            under: Some((Measure::TakingTps(8), "core")),
            bound: Bound::AtLeast(2.0),
            rounds: 9,
        }
    }

    /// What a measure of ours is relative to core's in each round.
    fn of_ratios(measure: Measure, ratios: impl IntoIterator<Item = f64>) -> Samples {
        let mut samples = Samples::default();
        for (round, ratio) in ratios.into_iter().enumerate() {
            samples.add(round, "ours", measure, ratio * 100.0);
            samples.add(round, "core", measure, 100.0);
        }
        samples
    }

    fn samples<const ROUNDS: usize>(ours: [f64; ROUNDS]) -> Samples {
        of_ratios(Measure::TakingTps(8), ours.map(|ours| ours / 100.0))
    }

    /// The fewest rounds that have an interval, from the first to the last; the median is the second.
    fn six([first, median, last]: [f64; 3]) -> Samples {
        samples([first, median, median, median, median, last])
    }

    #[test]
    fn a_bound_itself_is_met() {
        let cases = [
            (Bound::AtMost(0.9), 0.9, true),
            (Bound::AtMost(0.9), 0.9049, true),
            (Bound::AtMost(0.9), 0.906, false),
            (Bound::AtLeast(2.0), 2.0, true),
            (Bound::AtLeast(2.0), 1.996, true),
            (Bound::AtLeast(2.0), 1.99, false),
            (Bound::AtMost(0.9), f64::NAN, false),
            (Bound::AtMost(0.9), -0.001, false),
            (Bound::AtMost(0.0), 0.0, true),
        ];
        for (bound, value, is_met) in cases {
            assert_eq!(bound.can_be_met_in([value; 2], 2), is_met, "{bound:?} by {value}");
        }
        assert!(!Bound::AtMost(1.01).can_be_met_in([1.0106; 2], 3));
        assert!(Bound::AtMost(1.01).can_be_met_in([1.0104; 2], 3));
    }

    #[test]
    fn a_time_misses_its_limit_if_its_whole_interval_does() {
        let verdict = |ours| twice().verdict(&six(ours), false);
        assert!(matches!(verdict([100.0, 200.0, 900.0]), Verdict::Met(_)));
        assert!(matches!(verdict([100.0, 199.0, 900.0]), Verdict::Undecided(_)));
        assert!(!verdict([100.0, 199.0, 900.0]).is_miss());
        assert!(matches!(verdict([100.0, 198.0, 199.0]), Verdict::NotMet(_)));

        let at_most = Limit { bound: Bound::AtMost(0.15), ..twice() };
        let verdict = |ours| at_most.verdict(&six(ours), false);
        assert!(matches!(verdict([-20.0, 9.0, 24.0]), Verdict::Met(_)));
        assert!(matches!(verdict([-20.0, -9.0, 24.0]), Verdict::Undecided(_)));
        assert!(matches!(verdict([-20.0, -9.0, -1.0]), Verdict::NotMet(_)));
        assert!(matches!(verdict([14.0, 24.0, 25.0]), Verdict::Undecided(_)));
        assert!(matches!(verdict([16.0, 24.0, 25.0]), Verdict::NotMet(_)));
    }

    #[test]
    fn a_time_of_few_rounds_misses_its_limit_if_all_rounds_do() {
        let verdict = |ours| twice().verdict(&samples(ours), false);
        assert!(matches!(verdict([100.0, 200.0, 900.0]), Verdict::Met(_)));
        assert!(matches!(verdict([100.0, 199.0, 200.0]), Verdict::Undecided(_)));
        assert!(matches!(verdict([100.0, 190.0, 199.0]), Verdict::NotMet(_)));
        assert!(matches!(twice().verdict(&samples([199.0]), false), Verdict::NotMet(_)));
    }

    #[test]
    fn the_median_of_an_exact_figure_decides() {
        let measure = Measure::KeyBytes;
        let limit = Limit {
            over: (measure, "ours"),
            under: Some((measure, "core")),
            bound: Bound::AtMost(1.01),
            ..twice()
        };
        let verdict = |ratios: [f64; 3]| limit.verdict(&of_ratios(measure, ratios), false);
        assert!(matches!(verdict([1.0, 1.0, 1.2]), Verdict::Met(_)));
        assert!(matches!(verdict([1.0, 1.02, 1.2]), Verdict::NotMet(_)));
    }

    /// The rounds of a full run, whose ratios lie evenly within 10 % of their middle, as on a disk that others use, in an order without
    /// a trend.
    fn noise(middle: f64) -> impl Iterator<Item = f64> {
        const ROUNDS: usize = INSERT_ROUNDS * 9;
        let part = |round| (round * 11 % ROUNDS) as f64 / (ROUNDS - 1) as f64;
        (0..ROUNDS).map(move |round| middle * (0.9 + 0.2 * part(round)))
    }

    /// The limits of all inserts relative to one contender, where each transaction takes and executes that much.
    fn misses(time: f64, instructions: f64) -> usize {
        let mut samples = Samples::default();
        let inserts = [Measure::InsertingTps, Measure::InsertingAsyncTps];
        for measure in inserts.map(|inserting| CLIENTS.map(inserting)).concat() {
            for (round, ratio) in noise(1.0 / time).enumerate() {
                samples.add(round, "ours_cache_1", measure, ratio * 1000.0);
                samples.add(round, "core_cache_1", measure, 1000.0);
            }
        }
        samples.add(0, "ours_cache_1", Measure::InsertInstructions, instructions * 40_000.0);
        samples.add(0, "core_cache_1", Measure::InsertInstructions, 40_000.0);
        LIMITS.iter().filter(|limit| limit.verdict(&samples, false).is_miss()).count()
    }

    #[test]
    fn one_row_inserts_that_are_as_fast_miss_no_limit_despite_noise() {
        assert_eq!(misses(1.0, 1.0), 0);
        assert_eq!(misses(1.005, 0.99), 0);
    }

    #[test]
    fn one_row_inserts_that_are_slower_miss_a_limit() {
        // By `bigserial`, for which the limit is 1.01.
        assert_eq!(misses(1.0, 1.03), 1);
        // What is slower without an instruction more shows in the time alone, and there only above the noise.
        assert_eq!(misses(1.03, 1.0), 0);
        assert_eq!(misses(1.1, 1.0), 2 * CLIENTS.len());
    }

    #[test]
    fn a_full_run_says_where_the_machine_was_too_busy_to_decide() {
        let of_six = Limit { rounds: 6, ..twice() };
        let undecided = six([160.0, 199.0, 240.0]);
        assert!(matches!(of_six.verdict(&undecided, false), Verdict::Undecided(_)));
        assert!(matches!(of_six.verdict(&undecided, true), Verdict::TooNoisy(_)));
        let close = six([190.0, 199.0, 210.0]);
        assert!(matches!(of_six.verdict(&close, true), Verdict::Undecided(_)));
    }

    #[test]
    fn a_run_fails_if_a_figure_misses_its_limit_or_the_machine_was_too_busy() {
        let of_six = Limit { rounds: 6, ..twice() };
        let noisy = |figures| {
            let verdict = |_| of_six.verdict(&six([160.0, 199.0, 240.0]), true);
            (0..figures).map(verdict).collect::<Vec<_>>()
        };
        assert!(!is_failure(&noisy(MAX_NOISY)));
        assert!(is_failure(&noisy(MAX_NOISY + 1)));
        assert!(is_failure(&[twice().verdict(&six([100.0, 198.0, 199.0]), false)]));
    }

    #[test]
    fn a_full_run_misses_a_limit_with_too_few_rounds() {
        let three_rounds = samples([200.0, 200.0, 200.0]);
        assert!(!twice().verdict(&three_rounds, false).is_miss());
        assert!(matches!(twice().verdict(&three_rounds, true), Verdict::TooFewRounds(_)));
        assert!(twice().verdict(&three_rounds, true).is_miss());
        let often_enough = Limit { rounds: 3, ..twice() };
        assert!(!often_enough.verdict(&three_rounds, true).is_miss());

        assert_eq!(twice().verdict(&Samples::default(), true), Verdict::Missing);
        assert!(twice().verdict(&Samples::default(), true).is_miss());
        assert!(!twice().verdict(&Samples::default(), false).is_miss());
    }
}
