//! The table of docs/generators.md has the generators of the data file, whose IDs other tests decode, with the layouts of this file.

use super::page::page;
use pg_snowflake_harness::top;
use std::collections::BTreeSet;

#[test]
fn the_layouts_of_other_generators_are_those_that_the_tests_decode() {
    let page = page("docs/generators.md");
    let documented: BTreeSet<[String; 3]> = page
        .text()
        .lines()
        .filter_map(|line| {
            let [_, generator, version, layout, _counter, _shard, _] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
                return None;
            };
            let layout = layout.strip_prefix('`')?.strip_suffix('`')?;
            Some([generator, version, layout].map(str::to_owned))
        })
        .collect();

    let data = std::fs::read_to_string(top().join("pg_test/data/generators.csv")).unwrap();
    let decoded: BTreeSet<[String; 3]> = data
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [cells[0], cells[1], cells[2]].map(str::to_owned)
        })
        .collect();
    assert_eq!(documented, decoded, "left: docs/generators.md, right: generators.csv");
}
