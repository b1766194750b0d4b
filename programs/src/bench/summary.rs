//! The results of a run in a few lines.

use crate::bench::contender::Contender;
use crate::bench::homed;
use crate::bench::limit::Verdict;
use crate::bench::samples::{Measure, Samples};
use crate::record::thousands;

/// The measure that a line compares, and the contenders.
type Line = (&'static str, Measure, &'static [&'static str]);

const LINES: [Line; 11] = [
    (
        "Nanoseconds for an ID in one backend",
        Measure::IdNs,
        &["ours_cache_1", "core_cache_1", "pgedge", "copied_plpgsql", "uuid_v7", "uuid_v4"],
    ),
    ("The same in the default layout", Measure::IdNs, &[homed::PLAIN]),
    (
        "The same where a session takes many at once",
        Measure::IdNs,
        &["ours_cache_64", "core_cache_64", "ours_batch"],
    ),
    (
        "Nanoseconds for the first ID of a transaction",
        Measure::FirstIdNs,
        &["ours_cache_1", "core_cache_1", "pgedge", "copied_plpgsql"],
    ),
    (
        "One-row `INSERT`s per second, 8 clients",
        Measure::InsertingTps(8),
        &["ours_cache_1", "core_cache_1", "core_identity", "pgedge"],
    ),
    (
        "Transactions of 100 IDs per second, 8 clients",
        Measure::TakingTps(8),
        &["ours_cache_1", "core_cache_1", "pgedge", "ours_cache_64", "core_cache_64"],
    ),
    (
        "Seconds for 1,000,000 rows in one `INSERT`",
        Measure::BulkSeconds,
        &["ours_cache_1", "core_cache_1", "uuid_v7", "ready_ids", "ready_uuids"],
    ),
    (
        "Bytes of a primary key of 1,000,000 rows",
        Measure::KeyBytes,
        &["ours_cache_1", "core_cache_1", "uuid_v7", "uuid_v4"],
    ),
    (
        "Repeats per 1,000,000 IDs",
        Measure::Repeats,
        &["ours_cache_1", "core_cache_1", "copied_sql"],
    ),
    (
        "Rows inserted per second where the key is larger than `shared_buffers`",
        Measure::LargeRowsPerSecond,
        &["ours_cache_1", "core_identity", "uuid_v7", "uuid_v4"],
    ),
    (
        "WAL bytes of such a row",
        Measure::LargeWalBytes,
        &["ours_cache_1", "core_identity", "uuid_v7", "uuid_v4"],
    ),
];

/// A line for the limits, and one for each comparison with a measurement.
pub(super) fn of(verdicts: &[Verdict], contenders: &[&Contender], samples: &Samples) -> String {
    let met = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Met(_))).count();
    let is_undecided =
        |verdict: &&Verdict| matches!(verdict, Verdict::Undecided(_) | Verdict::TooNoisy(_));
    let undecided = verdicts.iter().filter(is_undecided).count();
    let judged = verdicts.iter().filter(|verdict| **verdict != Verdict::Unknown).count();
    let mut limits = format!("- {met} of {judged} limits are met");
    if undecided > 0 {
        limits += &format!("; undecided: {undecided}");
    }
    let missed = verdicts.iter().filter(|verdict| verdict.is_miss()).count();
    if missed > 0 {
        limits += &format!("; missed: {missed}");
    }
    if judged < verdicts.len() {
        limits += &format!("; not measured: {}", verdicts.len() - judged);
    }
    let mut lines = vec![limits + ".\n"];
    lines.extend(LINES.iter().filter_map(|line| comparison(line, contenders, samples)));
    lines.concat()
}

fn comparison(
    (what, measure, names): &Line,
    contenders: &[&Contender],
    samples: &Samples,
) -> Option<String> {
    let figures: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let contenders = contenders.iter().map(|contender| (contender.name, contender.title));
            let cases = homed::CASES.map(|(name, title, _)| (name, title));
            let (_, title) = contenders.chain(cases).find(|(other, _)| other == name)?;
            let median = samples.spread(*measure, name)?.median;
            Some(format!("{title} {}", figure(median)))
        })
        .collect();
    (!figures.is_empty()).then(|| format!("- {what}: {}.\n", figures.join("; ")))
}

/// At least as exact as two digits.
fn figure(median: f64) -> String {
    if median < 10.0 && median.fract() != 0.0 {
        format!("{median:.2}")
    } else {
        thousands(median.round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::bench::contenders::ALL;
    use crate::bench::limit::Verdict;
    use crate::bench::samples::{Measure, Samples};

    #[test]
    fn it_counts_the_limits_and_shows_the_medians() {
        let mut samples = Samples::default();
        for (round, ours, core) in [(0, 130.0, 480.0), (1, 150.0, 1480.0), (2, 120.0, 1500.0)] {
            samples.add(round, "ours_cache_1", Measure::IdNs, ours);
            samples.add(round, "core_cache_1", Measure::IdNs, core);
        }
        let spread = samples.spread(Measure::IdNs, "ours_cache_1").unwrap();
        let [met, undecided] = [Verdict::Met(spread), Verdict::Undecided(spread)];
        assert_eq!(
            of(&[met, undecided, Verdict::Missing, Verdict::Unknown], &ALL, &samples),
            "- 1 of 3 limits are met; undecided: 1; missed: 1; not measured: 1.\n\
             - Nanoseconds for an ID in one backend: `snowflake_nextval`, `CACHE 1` 130; core `nextval`, `CACHE 1` 1,480.\n"
        );
    }
}
