//! Fuzzing: each target for some seconds, starting from the corpus of earlier runs.

use crate::checks::FUZZ_CRATE;
use crate::tools::{Result, about, cargo, execute, execute_logged, last_lines, output, target, top};
use pg_snowflake_harness::output::{say, step};
use pg_snowflake_harness::record::thousands;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// How many lines of a log are shown.
const LINES: usize = 120;

/// Runs every target for this many seconds.
pub fn run(seconds: u32) -> Result {
    let list = output(cargo(&["fuzz", "list", "--fuzz-dir"]).arg(folder()))?;
    let targets: Vec<&str> = list.split_whitespace().collect();
    if targets.is_empty() {
        return Err(format!("no fuzz targets in {FUZZ_CRATE}"));
    }
    step(&format!("building {} fuzz targets", targets.len()));
    execute(&mut cargo_fuzz("build"))?;
    for name in targets {
        step(&format!("{name}: {seconds} s"));
        fuzz(name, seconds)?;
    }
    step("no failing input was found");
    Ok(())
}

fn folder() -> PathBuf {
    top().join(FUZZ_CRATE).parent().expect("a manifest is in a folder").to_owned()
}

fn builds() -> PathBuf {
    target().join("pg_snowflake-fuzz")
}

/// The address sanitizer checks the libraries that the modules call, which may contain unsafe code. Its option needs a
/// nightly compiler; this variable enables it in a stable one.
fn cargo_fuzz(subcommand: &str) -> Command {
    let mut fuzz = cargo(&["fuzz", subcommand, "--features", "targets", "--fuzz-dir"]);
    fuzz.arg(folder()).arg("--target-dir").arg(builds()).env("RUSTC_BOOTSTRAP", "1");
    fuzz
}

fn fuzz(name: &str, seconds: u32) -> Result {
    let corpus = builds().join("corpus").join(name);
    fs::create_dir_all(&corpus).map_err(about(&corpus))?;
    let (seeds, dictionary) = (folder().join("seeds").join(name), folder().join(format!("{name}.dict")));
    let mut fuzz = cargo_fuzz("run");
    fuzz.arg(name).arg(&corpus).args(seeds.is_dir().then_some(&seeds));
    fuzz.args(["--", &format!("-max_total_time={seconds}"), "-print_final_stats=1"]);
    if dictionary.is_file() {
        fuzz.arg(format!("-dict={}", dictionary.display()));
    }
    let (outcome, said) = execute_logged(&mut fuzz)?;
    match outcome {
        Ok(()) => say(&format!("{} inputs, no failure", thousands(inputs(&said)?))),
        Err(error) => {
            return Err(format!(
                "{}\n{error}\nThe input is in {folder}/artifacts/{name}. To run it again, alone:\n  \
                 RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir {folder} --features targets \\\n      \
                 --target-dir {} {name} FILE",
                end_of(&said),
                builds().display(),
                folder = folder().display(),
            ));
        }
    }
    Ok(())
}

/// The number of inputs tried, as libFuzzer reports it at the end.
fn inputs(said: &str) -> Result<i64> {
    let number = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    number
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| format!("{}\nthe fuzzer does not report how many inputs it tried", end_of(said)))
}

/// The end of a log, without progress lines. The beginning is left out: it is the corpus being read.
fn end_of(said: &str) -> String {
    let is_progress = |line: &str| line.strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let lines: Vec<&str> = said.lines().filter(|line| !is_progress(line)).collect();
    last_lines(&lines.join("\n"), LINES)
}

#[cfg(test)]
mod tests {
    use super::{end_of, inputs};

    #[test]
    fn the_number_of_inputs_is_read_from_the_final_statistics() {
        let said = "Done 12 runs\nstat::number_of_executed_units: 1234567\nstat::peak_rss_mb: 50\n";
        assert_eq!(inputs(said), Ok(1_234_567));
        assert!(inputs("Done 12 runs").is_err());
    }

    #[test]
    fn the_end_of_a_failure_is_shown_without_progress() {
        assert_eq!(end_of("#12 NEW cov: 3\nSUMMARY\n# about\n"), "SUMMARY\n# about");
        let long: Vec<String> = (0..200).map(|i| format!("line {i}")).collect();
        assert!(end_of(&long.join("\n")).starts_with("line 80\n"));
    }
}
