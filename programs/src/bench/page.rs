//! The page of the records: what of it is made of the measurements. It names each recorded major between the marks `bench MAJOR`. A
//! folder outside the tree has the measurements, and the folder of the page's name their charts.

use crate::bench::samples::Samples;
use crate::bench::summary;
use crate::bench::tables::{Run, Tables};
use pg_snowflake_harness::record::{between, replaced};
use std::fs::{copy, create_dir_all, read_to_string};
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

/// Writes the runs of that folder, the figures and the charts into the page, in the order in which it names the majors.
///
/// # Errors
/// The measurements of a recorded major that cannot be read. The page is then as before.
pub fn write(page: &Path, folder: &Path) -> Result<(), String> {
    let charts = page.with_extension("");
    let mut text = read(page)?;
    let mut runs = Vec::new();
    for major in majors(&text).collect::<Vec<_>>() {
        let (place, name) = (place_of(major), name_of(major));
        let file = |extension| folder.join(&name).with_extension(extension);
        if let Ok(run) = read(&file("md")) {
            let chart = format!("{}/{name}.svg", of_page(&charts));
            let run = format!("{run} See the [chart]({chart}).\n");
            text = replaced(&text, &place, &run).ok_or(place.clone())?;
        }
        let Some(version) = between(&text, &place).and_then(version) else { continue };
        let samples = Samples::from_csv(&read(&file("csv"))?)
            .map_err(|error| format!("{}: {error}", file("csv").display()))?;
        runs.push((major, Run::recorded(version.to_owned(), major, samples)));
    }
    let copied = runs.iter().map(|(major, _)| name_of(*major) + ".svg").try_for_each(|chart| {
        create_dir_all(&charts)?;
        copy(folder.join(&chart), charts.join(&chart)).map(drop)
    });
    copied.map_err(|error| format!("the charts of {}: {error}", folder.display()))?;
    let text = with_figures(&text, of_page(&charts), runs)?;
    std::fs::write(page, text).map_err(|error| format!("{}: {error}", page.display()))
}

fn read(file: &Path) -> Result<String, String> {
    read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// The name of a folder beside the page.
fn of_page(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn with_figures(page: &str, charts: &str, runs: Vec<(u32, Run)>) -> Result<String, String> {
    // The version of a beta or a release candidate has no dot.
    let newest = runs.iter().max_by_key(|(major, run)| (run.version.contains('.'), *major));
    let summary = newest.map_or_else(String::new, |(major, run)| {
        format!(
            "{}\n![The same as bars: the first ID of a transaction, a row, an index, and what CACHE changes]({charts}/{}.svg)\n",
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
    use super::{majors, name_of, write};
    use crate::bench::floor::instruction_bounds;
    use crate::bench::samples::{Measure, Samples};
    use pg_snowflake_harness::top;
    use std::path::Path;

    #[test]
    fn every_recorded_major_has_bounds_of_instructions() {
        let page = std::fs::read_to_string(top().join("docs/benchmarks.md")).unwrap();
        assert!(majors(&page).count() > 0);
        for major in majors(&page) {
            assert!(instruction_bounds(major).is_some(), "{major}");
        }
    }

    const PLACES: [(&str, &str); 4] = [
        ("summary", ""),
        ("bench 19", "2026-09-01 on PostgreSQL 19beta3, 2 cores\n"),
        ("bench 18", "2026-08-01 on PostgreSQL 18.5, 2 cores\n"),
        ("tables", ""),
    ];

    fn page(places: &[(&str, &str)]) -> String {
        let place =
            |(name, text): &(_, _)| format!("<!-- {name}: begin -->\n{text}<!-- {name}: end -->\n");
        places.iter().map(place).collect()
    }

    fn put(folder: &Path, major: u32, ns: f64, run: Option<&str>) {
        let mut samples = Samples::default();
        samples.add(0, "ours_cache_1", Measure::IdNs, ns);
        let file = |extension| folder.join(name_of(major)).with_extension(extension);
        std::fs::write(file("csv"), samples.to_csv()).unwrap();
        std::fs::write(file("svg"), format!("chart {ns}")).unwrap();
        run.into_iter().for_each(|run| std::fs::write(file("md"), run).unwrap());
    }

    #[test]
    fn a_record_replaces_the_run_and_the_figures_of_its_major() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.md");
        std::fs::write(&file, page(&PLACES)).unwrap();
        put(folder.path(), 19, 50.0, None);
        for (ns, minor) in [(60.0, 6), (70.0, 7)] {
            let run = format!("2026-09-01 on PostgreSQL 18.{minor} (Debian 18.{minor}-3), 2 cores");
            put(folder.path(), 18, ns, Some(&run));
            write(&file, folder.path()).unwrap();
            let page = std::fs::read_to_string(&file).unwrap();
            for text in [
                format!("| `snowflake_nextval`, `CACHE 1` | 50 / {ns} |"),
                format!("| PostgreSQL 18.{minor} | `snowflake_nextval` | "),
                "2026-09-01 on PostgreSQL 19beta3, 2 cores\n".to_owned(),
                format!("{run} See the [chart](page/postgresql-18.svg).\n"),
            ] {
                assert!(page.contains(&text), "{text}: {page}");
            }
            let chart = std::fs::read_to_string(file.with_file_name("page/postgresql-18.svg"));
            assert_eq!(chart.unwrap(), format!("chart {ns}"));
        }
    }

    #[test]
    fn the_page_stays_as_it_is_without_the_measurements_of_another_recorded_major() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.md");
        std::fs::write(&file, page(&PLACES)).unwrap();
        put(folder.path(), 18, 60.0, Some("2026-09-01 on PostgreSQL 18.6, 2 cores"));
        let error = write(&file, folder.path()).unwrap_err();
        assert!(error.contains("postgresql-19.csv: "), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), page(&PLACES));
    }

    #[test]
    fn a_page_without_a_record_has_empty_places_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.md");
        let places = ["summary", "bench 18", "tables"].map(|place| (place, ""));
        std::fs::write(&file, page(&places)).unwrap();
        write(&file, folder.path()).unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written.starts_with(&page(&places[..2])), "{written}");
        std::fs::write(&file, page(&places[1..2])).unwrap();
        assert!(write(&file, folder.path()).is_err());
    }
}
