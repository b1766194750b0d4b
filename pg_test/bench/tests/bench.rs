//! The program of `./dev bench`, at sizes too small for meaningful figures. Counting instructions needs valgrind, and is tested with it.

use std::path::Path;
use std::process::Command;

/// Whether the bench succeeds, and what it prints.
fn bench(folder: &Path, options: &[&str]) -> (bool, String) {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    bench.args(["--rounds", "1", "--scale", "0.001", "--revision", "v0"]);
    let output = bench.arg("--output").arg(folder).args(options).output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (output.status.success(), said.concat())
}

#[test]
fn the_bench_measures_what_has_a_limit_or_stands_in_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let parts = ["--only", "backend,first,connections,repeats,bulk,load,reading,large"];
    let (is_met, said) = bench(folder.path(), &parts);
    assert_eq!(is_met, !said.contains(" **not met** |"), "{said}");
    for text in [
        "\npg_snowflake v0 on PostgreSQL ",
        "1 rounds at 0.001 of the full size took ",
        "`snowflake_nextval`, `CACHE 1` in the part `large` is not large",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }

    let (_, tables) = bench(folder.path(), &["--tables"]);
    // The tables of the run itself leave open what was not measured.
    assert_eq!(said.split("\n### ").nth(1), tables.split("\n### ").nth(1), "{tables}");
    let (summary, limits) = tables.split_once("\n### Limits\n").unwrap();
    // A load of 100 IDs, for one, is of several numbers of clients. The table has those that are not met.
    let (_, all) = limits.split_once(" of the ").unwrap();
    assert!(all.split_once(" limits were met").unwrap().0.parse::<usize>().unwrap() > 60, "{limits}");
    for row in limits.lines().filter(|row| row.contains(" **not measured** ")) {
        assert!(row.starts_with("| instructions of "), "{row}");
    }

    let (table, _) = summary.split_once("\n### Generating IDs\n").unwrap();
    let rows: Vec<Vec<&str>> = table.trim().lines().map(|row| row.split('|').map(str::trim).collect()).collect();
    let column = |heading: &str| rows[0].iter().position(|column| *column == heading).unwrap();
    let is_filled = |heading: &str, title: &str| {
        let row = rows.iter().find(|row| row[1] == title).unwrap_or_else(|| panic!("{title}: {table}"));
        !row[column(heading)].is_empty()
    };
    assert!(is_filled("identity column", "s for 1,000,000 rows in one `INSERT`"), "{table}");
    assert!(is_filled("its formula in plain SQL", "duplicates in 1,000,000 IDs of one session"), "{table}");
    assert!(is_filled("`snowflake_nextval`", "the same in the default layout"), "{table}");
    assert!(!is_filled("identity column", "ns for an ID in one session"), "{table}");
}
