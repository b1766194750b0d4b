//! The table of docs/hashing.md about `id % n` of an application: how full the fullest bucket gets.
//!
//! It is computed, for a clock that runs evenly, and so the same on every machine. `./dev test buckets` prints it.

use super::page::page;
use pg_snowflake_ids::presets::{DEFAULT, PRESETS};
use pg_snowflake_ids::{Layout, ShardPlace};

/// 2026-01-01 UTC.
const START_US: i64 = 1_767_225_600_000_000;

const SHARD: u32 = 5;
const MODULI: [usize; 7] = [2, 3, 10, 16, 100, 1024, 4096];

/// One ID in 30 s for a year, and 100 in a millisecond for 10 s, or as many as the layout has.
const SLOW: Rate = Rate { us_between: 30_000_000, ids: 1_051_200 };
const FAST: Rate = Rate { us_between: 10, ids: 1_000_000 };

#[derive(Clone, Copy)]
struct Rate {
    us_between: i64,
    ids: i64,
}

#[test]
fn the_table_of_buckets_is_what_the_layouts_give() {
    let twitter = Layout::preset("twitter").expect("a preset");
    let mut table = String::new();
    for &(name, layout) in PRESETS {
        if layout == twitter || !has_fields_of(&layout, &twitter) {
            table += &row(&format!("`{name}`"), |rate| shares(ids(layout, rate, false)));
        }
    }
    let plain = Layout { shard_place: ShardPlace::Lowest, ..DEFAULT };
    table += &row("the default's fields without the XOR", |rate| shares(ids(plain, rate, false)));
    table += &row("`twitter`, counter reset in each millisecond", |rate| shares(ids(twitter, rate, true)));
    println!("{table}");
    assert!(page("docs/hashing.md").text().contains(&table), "docs/hashing.md lacks\n{table}");
}

/// Whether the fields below the time are the same, and so the buckets are.
fn has_fields_of(layout: &Layout, other: &Layout) -> bool {
    let below_time = |layout: &Layout| (layout.shard_bits, layout.seq_bits, layout.shard_place);
    below_time(layout) == below_time(other)
}

/// A row of the table, with both rates in a cell.
fn row(title: &str, shares: impl Fn(Rate) -> [f64; MODULI.len()]) -> String {
    let (slow, fast) = (shares(SLOW), shares(FAST));
    let cells = slow.iter().zip(&fast).map(|(slow, fast)| format!("{} / {}", cell(*slow), cell(*fast)));
    format!("| {title} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn cell(share: f64) -> String {
    if share < 10.0 { format!("{share:.2}") } else { format!("{share:.0}") }
}

/// How many times its share the fullest bucket of `id % n` has, for each n.
fn shares(ids: Vec<i64>) -> [f64; MODULI.len()] {
    MODULI.map(|n| {
        let mut buckets = vec![0_u32; n];
        ids.iter().for_each(|id| buckets[*id as usize % n] += 1);
        let fullest = *buckets.iter().max().expect("n is not 0");
        f64::from(fullest) * n as f64 / ids.len() as f64
    })
}

/// The IDs of a fresh sequence. In a new tick its counter goes on, or begins at 0 as Twitter's and pgEdge's do.
fn ids(layout: Layout, rate: Rate, is_reset: bool) -> Vec<i64> {
    let rate = at_most_that_of(layout, rate);
    let shard = SHARD.min((layout.shards() - 1) as u32);
    let (seqs, mut last) = (layout.seqs(), 0);
    let ticks = (0..rate.ids).map(|n| layout.tick_at(START_US + n * rate.us_between));
    ticks
        .map(|tick| {
            let seq = if is_reset { 0 } else { (last + 1) % seqs };
            last = (last + 1).max(tick * seqs + seq);
            layout.id(last, shard)
        })
        .collect()
}

/// The rate, or the layout's if that is lower.
fn at_most_that_of(layout: Layout, rate: Rate) -> Rate {
    let least = (layout.tick_us() as u64).div_ceil(layout.seqs() as u64) as i64;
    Rate { us_between: rate.us_between.max(least), ..rate }
}
