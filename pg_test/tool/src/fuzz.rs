//! Fuzzing: each target for some seconds, starting from the corpus of earlier runs.

use crate::checks::FUZZ_CRATE;
use crate::tools::{Result, about, cargo, execute, execute_logged, last_lines, output, target, top};
use pg_snowflake_harness::output::{say, step};
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
    fuzz.args(["--", &format!("-max_total_time={seconds}")]);
    if dictionary.is_file() {
        fuzz.arg(format!("-dict={}", dictionary.display()));
    }
    let (outcome, said) = execute_logged(&mut fuzz)?;
    if let Err(error) = outcome {
        return Err(format!(
            "{}\n{error}\nThe input is in {folder}/artifacts/{name}. To run it again, alone:\n  \
             RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir {folder} --features targets \\\n      \
             --target-dir {} {name} FILE",
            last_lines(&said, LINES),
            builds().display(),
            folder = folder().display(),
        ));
    }
    // "Done 12 runs in 60 second(s)".
    let done = said.lines().find(|line| line.starts_with("Done ") && !line.starts_with("Done 0 "));
    say(done.ok_or_else(|| format!("{}\nthe fuzzer has tried no input", last_lines(&said, LINES)))?);
    Ok(())
}
