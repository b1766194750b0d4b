//! The program of `./dev bench`, at sizes too small for meaningful figures. Counting instructions is a separate test,
//! among those that need valgrind.

use pg_snowflake_servertest::bench::contender::Ids;
use pg_snowflake_servertest::bench::contenders::ALL;
use pg_snowflake_servertest::bench::hashing::CASES;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Output};

/// The measures of every contender.
const OF_ALL: [&str; 10] = [
    "ns_per_id_with_loop",
    "ns_per_id",
    "ns_per_transaction_with_loop",
    "ns_per_first_id",
    "cpu_s_per_1000000_ids",
    "wal_records_per_1000000_ids",
    "wal_bytes_per_1000000_ids",
    "repeats_in_1000000_ids",
    "tps_of_100_ids_2_clients",
    "tps_of_100_ids_8_clients",
];

/// The measures of contenders that can be a column's default.
const OF_DEFAULTS: [&str; 2] = ["tps_of_an_insert_2_clients", "tps_of_an_insert_8_clients"];

#[test]
fn the_bench_measures_all_contenders_and_writes_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    std::fs::write(&page, "above\n<!-- summary: begin -->\n<!-- summary: end -->\n<!-- bench: begin -->\n<!-- bench: end -->\nbelow\n").unwrap();

    let output = bench(&page, folder.path());

    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("| what has to be shown |"), "{printed}\n{errors}");
    let misses = printed.contains("**not met**");
    assert_eq!(output.status.success(), !misses, "{printed}");

    let page = std::fs::read_to_string(page).unwrap();
    let (above, below) =
        page.split_once("pg_snowflake v0, PostgreSQL ").expect("what was measured");
    let (_, summary) = above.split_once("<!-- summary: begin -->\n").expect("its place");
    assert!(summary.starts_with("- Of the limits, "), "{page}");
    assert!(above.starts_with("above\n") && below.ends_with("\nbelow\n"), "{page}");
    assert_eq!(page.contains("**not met**"), misses);

    let csv = std::fs::read_to_string(folder.path().join("results.csv")).unwrap();
    let measured: HashSet<(&str, &str)> = csv
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(',');
            Some((fields.next()?, fields.next()?))
        })
        .collect();
    let svg = std::fs::read_to_string(folder.path().join("results.svg")).unwrap();
    assert!(svg.contains("pg_snowflake, CACHE 64"), "{svg}");
    for contender in ALL {
        let title = contender.title;
        if page.contains(&format!("{title} is not compared: ")) {
            assert!(contender.needs.is_some(), "{title}");
            continue;
        }
        let of_defaults = OF_DEFAULTS.iter().filter(|_| matches!(contender.ids, Ids::One(_)));
        for measure in OF_ALL.iter().chain(of_defaults) {
            assert!(measured.contains(&(measure, contender.name)), "{measure} of {title}:\n{csv}");
        }
    }
    for measure in ["bulk_insert_s", "primary_key_bytes", "ns_per_id_of_10_sequences"] {
        for name in ["core_cache_1", "ours_cache_1"] {
            assert!(measured.contains(&(measure, name)), "{measure} of {name}:\n{csv}");
        }
    }
    for measure in ["share_of_the_limit_instagram", "share_of_the_limit_twitter"] {
        assert!(measured.contains(&(measure, "ours_batch")), "{measure}:\n{csv}");
    }
    for measure in ["distinct_hashes", "hash_aggregate_s", "hash_aggregate_kb", "hash_join_s"] {
        for (name, title) in CASES {
            assert!(measured.contains(&(measure, name)), "{measure} of {name}:\n{csv}");
            assert!(page.contains(&format!("| {title} | ")), "{title}:\n{page}");
        }
    }
}

fn bench(page: &Path, folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["--rounds", "1", "--scale", "0.001", "--clients", "2,8", "--revision", "v0"])
        .args(["--only", "backend,first,repeats,bulk,sequences,rate,load,hashing"])
        .arg("--record")
        .arg(page)
        .arg("--output")
        .arg(folder)
        .output()
        .unwrap()
}
