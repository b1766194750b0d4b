//! Figures for the documentation: their place, the machine that they were measured on, and their format.

use crate::{installation, top};
use jiff::Zoned;
use std::path::Path;
use std::process::Command;

/// Puts `text` between the two marks of that name in a Markdown file.
pub fn record(file: &Path, name: &str, text: &str) {
    let page = std::fs::read_to_string(file).expect("the file can be read");
    let page = replaced(&page, name, text).unwrap_or_else(|| panic!("{} has no place for the results of the {name}", file.display()));
    std::fs::write(file, page).expect("the file can be written");
}

fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{text}{end}{after}"))
}

/// The date, the revision and the machine of a measurement: the beginning of a paragraph.
pub fn circumstances(revision: &str) -> String {
    format!("{}: pg_snowflake {revision} on {}.", Zoned::now().strftime("%Y-%m-%d"), machine())
}

/// The code that the fault campaign is about: the counter and its page, layouts, what may refuse an ID, leases with their registry, and
/// the SQL edition.
const CODE: &str = "src/sequence* src/generate* src/lease* src/registry* src/settings* src/authority.rs src/fence.rs src/denied.rs
    src/distributed* policies/src/counter* policies/src/clock.rs policies/src/homed* policies/src/lease.rs policies/src/shared_leases.rs
    policies/src/holder.rs policies/src/registry* policies/src/fence* ids/src/layout.rs ids/src/layout sql/registry
    sql/managed/pg_snowflake_managed.sql";

/// A checksum of that code, without lines of comments, by which `docs/proof.md` says which code a campaign has tested.
pub fn checksum_of_code() -> String {
    let code = CODE.replace('\n', " ");
    let lines = format!("find {code} -type f ! -name tests.rs | LC_ALL=C sort | xargs cat | grep -Ev '^ *(//|--|$)' | sha256sum");
    let sum = installation::run(Command::new("bash").args(["-o", "pipefail", "-c", &lines]).current_dir(top()), b"");
    String::from_utf8_lossy(&sum[..12]).into_owned()
}

fn machine() -> String {
    let mut postgres = Command::new(installation::bindir().join("postgres"));
    let version = installation::run(postgres.arg("--version"), b"");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory_kb: u64 = read_field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().expect("a number of kB");
    format!(
        "{}, on {cores} cores ({}) with {} GB of RAM",
        String::from_utf8_lossy(&version).trim().replace("postgres (PostgreSQL)", "PostgreSQL"),
        read_field("/proc/cpuinfo", "model name"),
        memory_kb / 1_000_000,
    )
}

/// The first value of that name in a file of `name : value` lines.
fn read_field(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).expect("/proc can be read");
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(field, _)| field.trim() == name)
        .map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_record_replaces_what_stands_between_its_marks() {
        let page = "above\n<!-- tables: begin -->\nold\n<!-- tables: end -->\nbelow\n";
        let new = "above\n<!-- tables: begin -->\nnew\n<!-- tables: end -->\nbelow\n";
        assert_eq!(replaced(page, "tables", "new\n").as_deref(), Some(new));
        assert_eq!(replaced(page, "campaign", "new\n"), None);
    }
}
