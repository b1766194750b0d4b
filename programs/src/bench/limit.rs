//! A limit of a figure, and whether a run keeps to it.

use crate::bench::samples::{Measure, Samples, Spread};

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    /// Compares to two decimals, as bounds and figures are written.
    fn is_met_by(self, value: f64) -> bool {
        let rounded = format!("{value:.2}").parse().unwrap_or(f64::NAN);
        match self {
            // A cost below 0 is a measurement that failed: the loop that is subtracted was disturbed.
            Bound::AtMost(bound) => value >= 0.0 && rounded <= bound,
            Bound::AtLeast(bound) => rounded >= bound,
        }
    }
}

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
    /// What the median must keep to.
    pub bound: Bound,
    /// How many rounds a full run needs.
    pub rounds: usize,
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

impl Limit {
    /// Whether it uses a figure of this contender.
    pub fn is_about(&self, contender: &str) -> bool {
        self.figures().any(|(_, name)| name == contender)
    }

    /// Its figure, or the two of its ratio.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        std::iter::once(self.over).chain(self.under)
    }

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
    use super::{Bound, Limit, Verdict};
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
            assert_eq!(bound.is_met_by(value), is_met, "{bound:?} by {value}");
        }
    }

    #[test]
    fn the_median_of_the_ratios_decides() {
        let verdict = |ours| twice().verdict(&samples(ours), false);
        assert!(matches!(verdict([100.0, 200.0, 900.0]), Verdict::Met(_)));
        assert!(matches!(verdict([100.0, 199.0, 900.0]), Verdict::NotMet(_)));
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
