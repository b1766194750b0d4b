//! The page of the records: what of it is made of the measurements. It names each recorded major between the marks `bench MAJOR`,
//! and the folder of the same name has the measurements.

use crate::bench::samples::Samples;
use crate::bench::summary;
use crate::bench::tables::{Run, Tables};
use crate::record::{between, replaced};
use std::path::Path;

/// The places of a page that have figures of all majors.
pub const OF_ALL: [&str; 2] = [SUMMARY, TABLES];

const SUMMARY: &str = "summary";
const TABLES: &str = "tables";

/// The place of what one run says about itself.
pub fn place_of(major: u32) -> String {
    format!("bench {major}")
}

/// The name of the files of a major's measurements, without its extension.
pub fn name_of(major: u32) -> String {
    format!("postgresql-{major}")
}

/// The text of the page with the figures of all records, in the order in which it names the majors.
///
/// # Errors
/// The measurements that cannot be read.
pub fn with_figures(page: &str, folder: &Path) -> Result<String, String> {
    let mut runs = Vec::new();
    for major in majors(page) {
        let Some(version) = between(page, &place_of(major)).and_then(version) else { continue };
        let file = folder.join(name_of(major)).with_extension("csv");
        let error = |error: &dyn std::error::Error| format!("{}: {error}", file.display());
        let csv = std::fs::read_to_string(&file).map_err(|unread| error(&unread))?;
        let samples = Samples::from_csv(&csv).map_err(|unread| error(&unread))?;
        runs.push((major, Run::recorded(version.to_owned(), major, samples)));
    }
    // The version of a beta or a release candidate has no dot.
    let newest = runs.iter().max_by_key(|(major, run)| (run.version.contains('.'), *major));
    let folder = folder.file_name().unwrap_or_default().display();
    let summary = newest.map_or_else(String::new, |(major, run)| {
        format!(
            "{}\n![The same as bars: the first ID of a transaction, a row, an index, and what CACHE changes]({folder}/{}.svg)\n",
            summary::of(run),
            name_of(*major)
        )
    });
    let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
    let tables = Tables { runs: &runs, scale: 1.0 }.to_string();
    let with_summary = replaced(page, SUMMARY, &summary);
    with_summary
        .and_then(|page| replaced(&page, TABLES, &tables))
        .ok_or_else(|| format!("the page has no places {OF_ALL:?}"))
}

fn majors(page: &str) -> impl Iterator<Item = u32> {
    page.lines().filter_map(|line| {
        line.strip_prefix("<!-- bench ")?.strip_suffix(": begin -->")?.parse().ok()
    })
}

/// That of the server: "18.6" of "… on PostgreSQL 18.6 (Debian 18.6-3), …".
fn version(run: &str) -> Option<&str> {
    run.split_once(" on PostgreSQL ")?.1.split([' ', ',']).next()
}

#[cfg(test)]
mod tests {
    use super::{majors, name_of, with_figures};
    use crate::bench::floor::instruction_bounds;
    use crate::bench::samples::{Measure, Samples};
    use pg_snowflake_harness::top;

    /// A limit, a title or a figure was changed: `./dev bench --tables` writes the page anew.
    #[test]
    fn the_figures_of_the_page_are_those_of_the_measurements() {
        let file = top().join("docs/benchmarks.md");
        let page = std::fs::read_to_string(&file).unwrap();
        assert_eq!(with_figures(&page, &file.with_extension("")).unwrap(), page);
    }

    #[test]
    fn every_recorded_major_has_bounds_of_instructions() {
        let page = std::fs::read_to_string(top().join("docs/benchmarks.md")).unwrap();
        assert!(majors(&page).count() > 0);
        for major in majors(&page) {
            assert!(instruction_bounds(major).is_some(), "{major}");
        }
    }

    #[test]
    fn a_record_replaces_only_the_figures_of_its_major() {
        let folder = tempfile::tempdir().unwrap();
        let record = |major, ns| {
            let mut samples = Samples::default();
            samples.add(0, "ours_cache_1", Measure::IdNs, ns);
            let file = folder.path().join(name_of(major)).with_extension("csv");
            std::fs::write(file, samples.to_csv()).unwrap();
        };
        let place = |(name, text)| format!("<!-- {name}: begin -->\n{text}<!-- {name}: end -->\n");
        let page = [
            ("summary", ""),
            ("bench 19", "2026-09-01 on PostgreSQL 19beta3, 2 cores\n"),
            ("bench 18", "2026-09-01 on PostgreSQL 18.6 (Debian 18.6-3), 2 cores\n"),
            ("tables", ""),
        ];
        let page = page.map(place).concat();
        for (ns_on_18, cell) in [(60.0, "50 / 60"), (70.0, "50 / 70")] {
            record(19, 50.0);
            record(18, ns_on_18);
            let page = with_figures(&page, folder.path()).unwrap();
            let row = format!("| `snowflake_nextval`, `CACHE 1` | {cell} |");
            assert!(page.contains(&row), "{page}");
            assert!(page.contains("| PostgreSQL 18.6 | `snowflake_nextval` | "), "{page}");
            assert!(page.contains(" on PostgreSQL 19beta3, 2 cores\n"), "{page}");
        }
    }

    #[test]
    fn a_page_without_a_record_has_empty_places_for_it() {
        let places = ["summary", "bench 18", "tables"]
            .map(|place| format!("<!-- {place}: begin -->\n<!-- {place}: end -->\n"));
        let page = with_figures(&places.concat(), "nowhere".as_ref()).unwrap();
        assert!(page.contains("<!-- summary: begin -->\n<!-- summary: end -->\n"), "{page}");
        assert!(with_figures(&places[1], "nowhere".as_ref()).is_err());
    }
}
