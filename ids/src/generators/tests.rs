//! The IDs of `pg_test/data/generators.csv`: those that other generators returned at known times, and, with `source` as the version, those
//! that their published formulas give. The script `generators` decodes them.

use super::*;
use crate::Layout;
use crate::presets::{JS53, PRESETS};
use std::collections::BTreeSet;

struct Row {
    generator: String,
    layout: Layout,
    id: i64,
    unix_us: i64,
    shard: i64,
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../pg_test/data/generators.csv");
    let file = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let [generator, _version, layout, id, unix_ms, shard] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        Row {
            generator: generator.to_owned(),
            layout: layout_spec::parse(layout, i64::MAX).unwrap(),
            id: id.parse().unwrap(),
            unix_us: unix_ms.parse::<i64>().unwrap() * 1_000,
            shard: shard.parse().unwrap(),
        }
    };
    file.lines().skip(1).map(row).collect()
}

#[test]
fn the_generators_are_those_of_the_page_that_read_another_time_than_a_preset() {
    let time = |layout: &Layout| (layout.epoch_ms, layout.tick_us(), layout.bits() - layout.time_bits);
    let presets: BTreeSet<_> = PRESETS.iter().filter(|(_, preset)| *preset != JS53).map(|(_, preset)| time(preset)).collect();
    let layouts: Vec<Layout> = GENERATORS.iter().map(|generator| layout_spec::parse(generator.spec, i64::MAX).unwrap()).collect();
    let of_page: Vec<Layout> = rows().into_iter().map(|row| row.layout).collect();
    for layout in &layouts {
        assert!(of_page.contains(layout), "{}", layout_spec::spec(layout));
    }
    let is_in_use = |layout: &&Layout| layout.end_us() > NOW_US && !presets.contains(&time(layout));
    let [own, expected] = [&layouts, &of_page].map(|all| all.iter().filter(is_in_use).map(time).collect::<BTreeSet<_>>());
    assert_eq!(own, expected);
    assert_eq!(own.len(), layouts.len(), "two read the same time");
}

/// Of the day on which the packages were run.
const NOW_US: i64 = 1_795_888_800_000_000;

#[test]
fn the_layout_of_a_recent_id_comes_first() {
    let mut others = Vec::new();
    for Row { generator, layout, id, unix_us, shard } in rows() {
        if unix_us < NOW_US - 86_400_000_000 {
            continue; // of UidGenerator, in other years
        }
        let first = candidates(id, NOW_US)[0];
        assert_eq!(first.unix_us, layout.instant_of(layout.split(id).tick), "{generator}: {id} is taken for {}", first.name);
        if i64::from(first.fields.shard) != shard {
            others.push(generator);
        }
    }
    others.dedup();
    // The same time, and another division of the bits below it; and the last ID of a tick of Yitter, which is taken for js53.
    let expected = [
        "npm nodejs-snowflake",
        "npm simple-flakeid (Yitter)",
        "npm snowflake-generator",
        "PyPI tsidpy TSID.create()",
        "PyPI sonyflake-turbo",
        "crates.io tsid with_node_bits(8)",
    ];
    assert_eq!(others, expected);
}

#[test]
fn ids_of_yitter_and_of_js53_are_distinguished_by_their_counter() {
    let name = |id: i64| candidates(id, NOW_US)[0].name;
    let tick = JS53.tick_at(NOW_US - 5_000_000);
    let yitter = |worker: i64, seq: i64| tick << 12 | worker << 6 | seq;
    for worker in [1, 6, 41, 63] {
        assert_eq!([5, 6, 31].map(|seq| name(yitter(worker, seq))), ["simple-flakeid"; 3]);
    }
    for shard in [0, 1, 41, 127] {
        assert_eq!([0, 1, 4].map(|seq| name(tick << 12 | shard << 5 | seq)), ["js53"; 3]);
    }
}
