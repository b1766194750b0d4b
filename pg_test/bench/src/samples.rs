//! Measurements, and their medians, confidence intervals and ratios.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};
use std::path::Path;

/// One measurement: a line of the CSV.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Sample {
    measure: String,
    contender: String,
    round: usize,
    value: f64,
}

#[derive(Debug, Default, PartialEq)]
pub struct Samples(Vec<Sample>);

impl Samples {
    pub fn add(&mut self, round: usize, contender: &str, measure: &str, value: f64) {
        let (measure, contender) = (measure.to_owned(), contender.to_owned());
        self.0.push(Sample { measure, contender, round, value });
    }

    /// Whether anything was measured of the contender.
    pub fn has(&self, contender: &str) -> bool {
        self.0.iter().any(|sample| sample.contender == contender)
    }

    /// Adds another measure: one less that of `the_loop` in the same round.
    pub fn subtract(&mut self, with_loop: &str, without: &str, the_loop: &str) {
        let others = self.0.iter().filter(|sample| sample.measure == with_loop);
        let others = others.filter(|sample| sample.contender != the_loop);
        let remains = others.filter_map(|sample| {
            let value = sample.value - self.value(with_loop, the_loop, sample.round)?;
            Some(Sample { measure: without.to_owned(), value, ..sample.clone() })
        });
        let remains: Vec<Sample> = remains.collect();
        self.0.extend(remains);
    }

    fn of(&self, measure: &str, contender: &str) -> impl Iterator<Item = &Sample> {
        self.0.iter().filter(move |sample| sample.measure == measure && sample.contender == contender)
    }

    fn value(&self, measure: &str, contender: &str, round: usize) -> Option<f64> {
        self.of(measure, contender).find(|sample| sample.round == round).map(|sample| sample.value)
    }

    /// The measurements of a contender in all rounds; `None` if there are none.
    pub fn spread(&self, measure: &str, contender: &str) -> Option<Spread> {
        Spread::of(self.of(measure, contender).map(|sample| sample.value).collect())
    }

    /// One contender's figure divided by another's, round by round, so that a disturbance affects both.
    pub fn ratio(&self, measure: &str, over: &str, under: &str) -> Option<Spread> {
        let ratio = |over: &Sample| Some(over.value / self.value(measure, under, over.round)?);
        Spread::of(self.of(measure, over).filter_map(ratio).collect())
    }

    pub fn write(&self, file: &Path) -> csv::Result<()> {
        let mut csv = csv::Writer::from_path(file)?;
        self.0.iter().try_for_each(|sample| csv.serialize(sample))?;
        Ok(csv.flush()?)
    }

    /// Reads what [`write`](Self::write) has written.
    pub fn read(file: &Path) -> csv::Result<Self> {
        csv::Reader::from_path(file)?.into_deserialize().collect::<csv::Result<_>>().map(Self)
    }
}

/// A median and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    /// With a probability of at least 95 %, the median of infinitely many measurements lies in it, if they do not depend on each
    /// other. Fewer than six measurements show less: then it is from the smallest to the largest.
    pub interval: [f64; 2],
    pub count: usize,
}

impl Spread {
    /// The width of the interval, as a fraction of the median.
    pub fn width(&self) -> f64 {
        (self.interval[1] - self.interval[0]) / self.median.abs()
    }

    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let (count, left_out) = (values.len(), left_out_of_interval(values.len()));
        Some(Spread {
            median: f64::midpoint(values[(count - 1) / 2], values[count / 2]),
            interval: [values[left_out], values[count - 1 - left_out]],
            count,
        })
    }
}

/// How many of the smallest, and of the largest, lie outside the confidence interval of the median.
///
/// Whatever the distribution, a measurement is below the median with a probability of 1/2. So the number of those below it is that of
/// heads among `count` coins, as in the sign test. On each side, the interval misses the median with a probability of at most 2.5 %.
fn left_out_of_interval(count: usize) -> usize {
    let coins = Binomial::new(0.5, count as u64).expect("1/2 is a probability");
    (coins.inverse_cdf(0.025) as usize).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{Samples, Spread};

    fn samples(values: &[(usize, &str, f64)]) -> Samples {
        let mut samples = Samples::default();
        for &(round, contender, value) in values {
            samples.add(round, contender, "ns_per_id_with_loop", value);
        }
        samples
    }

    #[test]
    fn half_of_the_measurements_are_below_the_median_whatever_the_order() {
        let cases = [
            (vec![7.0], 7.0),
            (vec![4.0, 1.0, 3.0, 2.0], 2.5),
            (vec![9.0, 1.0, 5.0, 3.0, 7.0], 5.0),
            (vec![1.0, 1.0, 1.0, 1000.0, 1.0], 1.0),
        ];
        for (values, median) in cases {
            let spread = Spread::of(values.clone()).unwrap();
            assert_eq!((spread.median, spread.count), (median, values.len()), "{values:?}");
        }
        assert_eq!(Spread::of(vec![]), None);
    }

    /// As tables of the sign test have it.
    #[test]
    fn the_interval_is_between_two_measurements() {
        let cases = [(1, [1, 1]), (3, [1, 3]), (5, [1, 5]), (6, [1, 6]), (8, [1, 8]), (9, [2, 8])];
        let more = [(12, [3, 10]), (18, [5, 14]), (27, [8, 20]), (100, [40, 61])];
        for (count, interval) in cases.into_iter().chain(more) {
            let values = (1..=count).rev().map(f64::from).collect();
            assert_eq!(Spread::of(values).unwrap().interval, interval.map(f64::from), "{count}");
        }
    }

    #[test]
    fn a_ratio_is_of_the_same_round() {
        // The machine was ten times as slow in round 1, and round 3 has only one figure.
        let samples = samples(&[
            (0, "ours", 10.0),
            (0, "core", 20.0),
            (1, "core", 200.0),
            (1, "ours", 100.0),
            (2, "ours", 10.0),
            (2, "core", 20.0),
            (3, "ours", 1.0),
        ]);
        let ratio = |measure| samples.ratio(measure, "ours", "core");
        let half = Spread { median: 0.5, interval: [0.5, 0.5], count: 3 };
        assert_eq!(ratio("ns_per_id_with_loop"), Some(half));
        assert_eq!(ratio("ns_per_id"), None);
    }

    #[test]
    fn the_loop_of_the_same_round_is_subtracted() {
        let mut samples = samples(&[(0, "loop", 3.0), (0, "ours", 10.0), (1, "ours", 30.0), (1, "loop", 9.0)]);
        samples.subtract("ns_per_id_with_loop", "ns_per_id", "loop");
        let without: Vec<f64> = samples.of("ns_per_id", "ours").map(|sample| sample.value).collect();
        assert_eq!(without, [7.0, 21.0]);
        assert_eq!(samples.spread("ns_per_id", "loop"), None);
    }
}
