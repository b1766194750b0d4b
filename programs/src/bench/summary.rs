//! The most important figures of a run.

use crate::bench::homed;
use crate::bench::samples::{Measure, Spread};
use crate::bench::tables::Run;
use pg_snowflake_harness::record::thousands;

/// The contender of a column; none where a row has no figure of it.
type Name = Option<&'static str>;

const COLUMNS: [(&str, Name); 8] = [
    ("`snowflake_nextval`", Some("ours_cache_1")),
    ("`bigserial`", Some("core_cache_1")),
    ("identity column", Some("core_identity")),
    ("pgEdge's `snowflake.nextval`", Some("pgedge")),
    ("`uuidv7()`", Some("uuid_v7")),
    ("`gen_random_uuid()`", Some("uuid_v4")),
    ("the PL/pgSQL original", Some("copied_plpgsql")),
    ("its formula in plain SQL", Some("copied_sql")),
];

type Names = [Name; COLUMNS.len()];

const EACH: Names = {
    let mut names = [None; COLUMNS.len()];
    let mut column = 0;
    while column < names.len() {
        names[column] = COLUMNS[column].1;
        column += 1;
    }
    names
};
const IN_THE_DEFAULT_LAYOUT: Names = [Some(homed::PLAIN), None, None, None, None, None, None, None];
const CACHE_64: Names =
    [Some("ours_cache_64"), Some("core_cache_64"), None, None, None, None, None, None];
const READY_MADE: Names =
    [Some("ready_ids"), None, None, None, Some("ready_uuids"), None, None, None];

/// The title of a row, its measure and the contenders.
const ROWS: [(&str, Measure, Names); 13] = [
    ("ns for an ID in one session", Measure::IdNs, EACH),
    ("the same in the default layout", Measure::IdNs, IN_THE_DEFAULT_LAYOUT),
    ("the same with `CACHE 64`", Measure::IdNs, CACHE_64),
    ("ns for the first ID of a transaction", Measure::FirstIdNs, EACH),
    ("one-row `INSERT`s per second, 8 clients", Measure::InsertingTps(8), EACH),
    ("transactions of 100 IDs per second, 8 clients", Measure::TakingTps(8), EACH),
    ("the same with `CACHE 64`, 8 clients", Measure::TakingTps(8), CACHE_64),
    ("s for 1,000,000 rows in one `INSERT`", Measure::BulkSeconds, EACH),
    ("the same with ready-made values", Measure::BulkSeconds, READY_MADE),
    ("bytes of their primary key", Measure::KeyBytes, EACH),
    ("duplicates in 1,000,000 IDs of one session", Measure::Repeats, EACH),
    ("rows per second, key larger than `shared_buffers`", Measure::LargeRowsPerSecond, EACH),
    ("WAL bytes of such a row", Measure::LargeWalBytes, EACH),
];

/// As a table with a column for each contender.
pub(super) fn of(run: &Run) -> String {
    let headings = COLUMNS.map(|(heading, _)| heading).join(" | ");
    let mut table = format!("| PostgreSQL {} | {headings} |\n", run.version);
    table += &format!("| --- |{}\n", " --: |".repeat(COLUMNS.len()));
    for (title, measure, names) in ROWS {
        let cell = |name| Some(cell(run.samples.spread(measure, name?)?, measure.is_exact()));
        let cells = names.map(|name| cell(name).unwrap_or_default());
        table += &format!("| {title} | {} |\n", cells.join(" | "));
    }
    table
}

/// The median, and the interval of a time or rate.
fn cell(Spread { median, interval: [low, high], count }: Spread, is_exact: bool) -> String {
    let has_interval = !is_exact && count > 1;
    let interval = has_interval.then(|| format!(" ({}–{})", figure(low), figure(high)));
    figure(median) + &interval.unwrap_or_default()
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
    use crate::bench::samples::{Measure, Samples};
    use crate::bench::tables::Run;

    #[test]
    fn it_shows_the_medians_and_their_intervals() {
        let mut samples = Samples::default();
        for (round, ours, core) in [(0, 130.0, 480.0), (1, 150.0, 1480.0), (2, 120.0, 1500.0)] {
            samples.add(round, "ours_cache_1", Measure::IdNs, ours);
            samples.add(round, "core_cache_1", Measure::IdNs, core);
        }
        samples.add(0, "ready_uuids", Measure::BulkSeconds, 1.064);
        let table = of(&Run::recorded("18.6".to_owned(), 18, samples));
        for row in [
            "| PostgreSQL 18.6 | `snowflake_nextval` | `bigserial` | identity column | ",
            "| ns for an ID in one session | 130 (120–150) | 1,480 (480–1,500) |  |  |  |  |  |  |\n",
            "| the same with ready-made values |  |  |  |  | 1.06 |  |  |  |\n",
        ] {
            assert!(table.contains(row), "{row}: {table}");
        }
    }
}
