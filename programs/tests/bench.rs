//! The program of `./dev bench`, at sizes too small for meaningful figures. Counting instructions needs valgrind, and
//! is tested with it.

use pg_snowflake_harness::installation;
use pg_snowflake_programs::bench::build;
use pg_snowflake_programs::bench::contenders::ALL;
use pg_snowflake_programs::bench::hashing::CASES;
use pg_snowflake_programs::bench::page::name_of;
use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The measures of every contender that is called.
const OF_CALLED: [&str; 8] = [
    "ns_per_id_with_loop",
    "ns_per_id",
    "cpu_s_per_1000000_ids",
    "wal_records_per_1000000_ids",
    "wal_bytes_per_1000000_ids",
    "repeats_in_1000000_ids",
    "tps_of_100_ids_2_clients",
    "tps_of_100_ids_8_clients",
];

/// The measures of every contender that supplies the ID of a single row.
const OF_INSERTS: [&str; 4] = [
    "tps_of_an_insert_2_clients",
    "tps_of_an_insert_8_clients",
    "tps_of_an_insert_async_2_clients",
    "tps_of_an_insert_async_8_clients",
];

/// The measures of the large table, for each kind of key. With so few rows, a span of time may have none.
const OF_A_LARGE_TABLE: [&str; 10] = [
    "large_rows_per_s",
    "large_wal_bytes_per_row",
    "large_full_page_images_per_1000_rows",
    "large_checkpoints",
    "large_key_reads_per_1000_rows",
    "large_key_bytes",
    "large_read_us",
    "large_read_pages",
    "large_recent_read_us",
    "large_recent_read_pages",
];

#[test]
fn the_bench_measures_all_contenders_and_writes_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    let major = installation::major(installation::bindir());
    std::fs::write(&page, format!("above\n{}below\n", places(major))).unwrap();

    let parts = "backend,first,repeats,bulk,sequences,rate,load,reading,large,registry,homed,hashing,retention";
    let can_be_recorded = build::lacking().is_empty();
    let mut options = vec!["--only", parts];
    options
        .extend(can_be_recorded.then_some(["--record", page.to_str().unwrap()]).iter().flatten());
    let output = bench(folder.path(), &options);

    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("| requirement |"), "{printed}\n{errors}");
    let misses = printed.contains("**not met**");
    assert_eq!(output.status.success(), !misses, "{printed}");

    let csv = csv_in(folder.path());
    let page = if can_be_recorded {
        recorded(&page, major, misses)
    } else {
        installation::left_out("recording the bench", "PostgreSQL built as a distribution's");
        printed
    };
    let measured: HashSet<(&str, &str)> = csv
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(',');
            Some((fields.next()?, fields.next()?))
        })
        .collect();
    let svg =
        std::fs::read_to_string(folder.path().join(format!("{}.svg", name_of(major)))).unwrap();
    assert!(svg.contains("pg_snowflake, CACHE 64"), "{svg}");
    for contender in ALL {
        let title = contender.title;
        if contender.needs.as_ref().is_some_and(|need| page.contains(need.if_missing)) {
            continue;
        }
        let of_called = OF_CALLED.iter().filter(|_| contender.take_one().is_some());
        let of_inserts = OF_INSERTS.iter().filter(|_| contender.fills_single_rows());
        let of_first = ["ns_per_transaction_with_loop", "ns_per_first_id"].iter();
        let has_first = contender.take_one().is_some() && contender.fills_single_rows();
        let of_first = of_first.filter(|_| has_first);
        for measure in of_called.chain(of_inserts).chain(of_first) {
            assert!(measured.contains(&(measure, contender.name)), "{measure} of {title}:\n{csv}");
        }
    }
    for name in ["core_identity", "core_cache_1", "ours_cache_1"] {
        for measure in ["bulk_insert_s", "primary_key_bytes"] {
            assert!(measured.contains(&(measure, name)), "{measure} of {name}:\n{csv}");
        }
    }
    for name in ["core_cache_1", "ours_cache_1"] {
        let measure = "ns_per_id_of_10_sequences";
        assert!(measured.contains(&(measure, name)), "{measure} of {name}:\n{csv}");
    }
    for measure in OF_A_LARGE_TABLE {
        for name in ["core_identity", "ours_cache_1", "uuid_v4"] {
            assert!(measured.contains(&(measure, name)), "{measure} of {name}:\n{csv}");
        }
    }
    let has_density = measured.contains(&("large_leaf_density_percent", "ours_cache_1"));
    assert_eq!(
        has_density,
        !page.contains("The density of a large key is not measured: "),
        "{page}"
    );
    assert!(
        page.contains("`snowflake_nextval`, `CACHE 1` in the part `large` is not large"),
        "{page}"
    );
    for measure in ["share_of_the_limit_postgres", "share_of_the_limit_twitter"] {
        assert!(measured.contains(&(measure, "ours_batch")), "{measure}:\n{csv}");
    }
    for measure in ["distinct_hashes", "hash_aggregate_s", "hash_aggregate_kb", "hash_join_s"] {
        for (name, title) in CASES {
            assert!(measured.contains(&(measure, name)), "{measure} of {name}:\n{csv}");
            assert!(page.contains(&format!("| {title} | ")), "{title}:\n{page}");
        }
    }
    for (measure, name) in [
        ("ns_per_id", "floor_function"),
        ("ns_per_id", "floor_clock"),
        ("ns_per_id", "floor_lock"),
        ("ns_per_row", "shard"),
        ("ns_per_row", "decode"),
        ("ns_per_row_parallel", "time"),
        ("ns_per_row_parallel", "is_between"),
        ("span_rows_per_s", "between"),
        ("span_rows_per_s", "column_between"),
        ("retention_s", "drop_partition"),
        ("ns_per_id", "homed_16"),
        ("bulk_insert_wal_bytes_per_row", "ready_ids"),
    ] {
        assert!(measured.contains(&(measure, name)), "{measure} of {name}:\n{csv}");
    }
    for case in ["8_nodes_1024_shards_10s", "1024_nodes_8_shards_10s", "4096_nodes_1_shard_60s"] {
        let claims = csv
            .lines()
            .find_map(|line| line.strip_prefix(&format!("registry_claims_per_s,{case},0,")));
        assert!(
            claims.is_some_and(|claims| claims.parse::<f64>().unwrap() > 0.0),
            "{case}:\n{csv}"
        );
    }
    let has_uuid_v7 = measured.contains(&("ns_per_id", "uuid_v7"));
    assert_eq!(measured.contains(&("bulk_insert_s", "ready_uuids")), has_uuid_v7, "{csv}");
}

/// The marks of a page for the figures of all majors, the run of this one, and the run of another, which has no record yet.
fn places(major: u32) -> String {
    let places = ["summary", &format!("bench {major}"), "bench 1", "tables"];
    let marks = places.map(|place| format!("<!-- {place}: begin -->\n<!-- {place}: end -->\n"));
    marks.concat()
}

/// The page that the bench has written the results into, between its marks.
fn recorded(page: &Path, major: u32, misses: bool) -> String {
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.starts_with("above\n") && text.ends_with("\nbelow\n"), "{text}");
    let between = |place: &str| {
        let (_, after) = text.split_once(&format!("<!-- {place}: begin -->\n")).unwrap();
        after.split_once(&format!("<!-- {place}: end -->\n")).unwrap().0
    };
    let run = between(&format!("bench {major}"));
    assert!(run.contains("pg_snowflake v0 on PostgreSQL "), "{text}");
    assert_eq!(between("bench 1"), "");
    assert!(between("summary").starts_with(&format!("| PostgreSQL {major}")), "{text}");
    let tables = between("tables");
    assert!(tables.contains(" limits were met"), "{text}");
    assert_eq!(tables.contains("**not met**"), misses);
    let chart = format!("page/{}.svg", name_of(major));
    assert!(run.contains(&format!("]({chart})")) && page.with_file_name(chart).exists(), "{text}");
    text
}

#[test]
fn a_server_that_is_not_built_as_a_distributions_is_measured_but_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let [page, pg_config] = ["page.md", "pg_config"].map(|name| folder.path().join(name));
    let major = installation::major(installation::bindir());
    std::fs::write(&page, places(major)).unwrap();
    let others = std::env::var("PG_CONFIG").unwrap();
    let script = format!(
        "#!/bin/sh\ncase $1 in\n--configure) echo \"'--prefix=/opt' '--with-lz4'\" ;;\n--cflags) echo -g -O0 ;;\n*) exec {others} $1 ;;\nesac\n"
    );
    std::fs::write(&pg_config, script).unwrap();
    std::fs::set_permissions(&pg_config, PermissionsExt::from_mode(0o755)).unwrap();
    let bench = |options: &[&str]| {
        let output = bench_command(folder.path(), &["--only", "repeats"])
            .args(options)
            .env("PG_CONFIG", &pg_config)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        (output.status.success(), said)
    };

    let (recorded, [printed, errors]) = bench(&["--record", page.to_str().unwrap()]);
    assert!(!recorded && !printed.contains("==>"), "{printed}");
    for lacking in ["lacks OpenSSL (", "lacks Zstandard (", "lacks -O2 (pg_config --cflags: -O0)"] {
        assert!(errors.contains(lacking), "{lacking}: {errors}");
    }
    assert!(!errors.contains("LZ4 (pg_config"), "{errors}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), places(major));

    let (measured, [printed, errors]) = bench(&[]);
    assert!(measured, "{errors}");
    let note = "This PostgreSQL lacks what a distribution's has: OpenSSL (";
    assert!(printed.contains(note) && printed.contains("; -O2 ("), "{printed}");
}

#[test]
fn pgedges_extension_is_built_for_one_run_and_its_version_is_printed() {
    if !can_build("comparing pgEdge's extension in the bench") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tarball = tarball_of_pgedge(folder.path(), "");

    let said = bench_repeats(folder.path(), Some(&tarball));

    assert!(
        said.contains("pgEdge's `snowflake.nextval` is from version 0.0.1 of its extension.\n"),
        "{said}"
    );
    assert!(csv_in(folder.path()).contains("\nrepeats_in_1000000_ids,pgedge,0,0\n"), "{said}");

    assert!(!has_pgedge(), "it is in the installation that the tests use");
    let said = bench_repeats(folder.path(), None);
    assert!(said.contains("pgEdge's `snowflake.nextval` is not included, because "), "{said}");
    assert!(!csv_in(folder.path()).contains("pgedge"), "{said}");
}

#[test]
fn a_pgedge_that_does_not_build_is_left_out_with_its_error() {
    if !can_build("leaving out an extension of pgEdge that does not build") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tarball = tarball_of_pgedge(folder.path(), "$(error this server is too new)\n");

    let said = bench_repeats(folder.path(), Some(&tarball));

    let major = installation::major(installation::bindir());
    let note = format!("pgEdge's extension does not build for PostgreSQL {major}: Makefile:");
    assert!(said.contains(&note) && said.contains("this server is too new"), "{said}");
    assert!(said.contains("pgEdge's `snowflake.nextval` is not included, because "), "{said}");
    assert!(!csv_in(folder.path()).contains("pgedge"), "{said}");
}

#[test]
fn a_tarball_that_cannot_be_read_stops_the_bench() {
    let folder = tempfile::tempdir().unwrap();
    let tarball = folder.path().join("nothing.tar.xz");
    let output =
        bench(folder.path(), &["--only", "repeats", "--pgedge", tarball.to_str().unwrap()]);
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("nothing.tar.xz"), "{errors}");
}

fn bench(folder: &Path, options: &[&str]) -> Output {
    bench_command(folder, options).output().unwrap()
}

fn bench_command(folder: &Path, options: &[&str]) -> Command {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    bench.args(["--rounds", "1", "--scale", "0.001", "--clients", "2,8", "--revision", "v0"]);
    bench.arg("--output").arg(folder).args(options);
    bench
}

/// What the shortest part prints.
fn bench_repeats(folder: &Path, pgedge: Option<&Path>) -> String {
    let mut options = vec!["--only", "repeats"];
    options.extend(pgedge.into_iter().flat_map(|tarball| ["--pgedge", tarball.to_str().unwrap()]));
    let output = bench(folder, &options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn csv_in(folder: &Path) -> String {
    let name = name_of(installation::major(installation::bindir()));
    std::fs::read_to_string(folder.join(name).with_extension("csv")).unwrap()
}

/// An extension of pgEdge's name and function, in SQL, with that in its Makefile.
fn tarball_of_pgedge(folder: &Path, in_makefile: &str) -> PathBuf {
    let source = folder.join("pgedge-snowflake");
    std::fs::create_dir(&source).unwrap();
    let makefile = format!(
        "EXTENSION = snowflake\nDATA = snowflake--0.0.1.sql\n{in_makefile}\
         PGXS := $(shell $(PG_CONFIG) --pgxs)\ninclude $(PGXS)\n"
    );
    let files = [
        ("Makefile", makefile.as_str()),
        (
            "snowflake.control",
            "default_version = '0.0.1'\nrelocatable = false\nschema = snowflake\n",
        ),
        (
            "snowflake--0.0.1.sql",
            "CREATE FUNCTION nextval(regclass) RETURNS bigint AS 'nextval_oid' LANGUAGE internal STRICT;\n",
        ),
    ];
    for (name, text) in files {
        std::fs::write(source.join(name), text).unwrap();
    }
    let tarball = folder.join("pgedge-snowflake.tar");
    let mut tar = Command::new("tar");
    tar.arg("-c").arg("-f").arg(&tarball).arg("-C").arg(folder).arg("pgedge-snowflake");
    installation::run(&mut tar, b"");
    tarball
}

/// Whether the machine can build pgEdge's extension, and has not installed it already. If not, reports that `what` is left out.
fn can_build(what: &str) -> bool {
    let has_make = Command::new("make").arg("--version").output().is_ok();
    let needs = [(has_make, "make"), (!has_pgedge(), "PostgreSQL without pgEdge's extension")];
    let missing = needs.into_iter().find(|(has, _)| !has);
    if let Some((_, need)) = missing {
        installation::left_out(what, need);
    }
    missing.is_none()
}

/// Whether the installation that the tests use has pgEdge's extension.
fn has_pgedge() -> bool {
    installation::pg_config("--sharedir").join("extension/snowflake.control").exists()
}
