//! The part of the bench that needs valgrind.

use std::process::Command;

/// True on any machine: each costs more instructions than the one before.
const FEWER_FIRST: [&str; 4] = ["`snowflake_nextvals`", "core `nextval`, `CACHE 64`", "core `nextval`, `CACHE 1`", "the PL/pgSQL original"];

#[test]
fn the_bench_counts_the_instructions_of_an_id() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    let output = bench.args(["--only", "instructions"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let counts = FEWER_FIRST.map(|title| -> f64 {
        let row = said.lines().find_map(|line| line.strip_prefix(&format!("| {title} | "))).unwrap();
        row.split(" | ").nth(3).unwrap().replace(',', "").parse().unwrap()
    });
    assert!(counts[0] > 0.0 && counts.is_sorted_by(|one, next| one < next), "{said}");
    let (_, limits) = said.split_once("\n### Limits\n").unwrap();
    let counted = limits.lines().filter(|row| row.starts_with("| instructions of "));
    let unknown: Vec<&str> = counted.filter(|row| row.contains(" not measured ")).collect();
    assert!(unknown.iter().all(|row| row.contains("pgEdge")), "{unknown:?}");
}
