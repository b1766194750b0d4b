//! A drawing of an ID's bits and their meaning, and the fields that each preset reads, for people. Times are in UTC.

use crate::instant;
use crate::layout::{Fields, Layout};
use crate::layout_spec;
use crate::likely::{Doubt, readings};

/// Draws the ID's bits, field by field from the highest, each with its value. `fields` are those of `id` in
/// `layout`.
///
/// ```
/// use pg_snowflake_ids::{explain::explain, presets::INSTAGRAM};
///
/// let id = 11_637_205_501_278_089;
/// let drawn = explain(id, INSTAGRAM.split(id), &INSTAGRAM);
/// assert!(drawn.ends_with("seq   10 bits  1110001001                                        905"));
/// ```
pub fn explain(id: i64, fields: Fields, layout: &Layout) -> String {
    let Fields { tick, shard, seq } = fields;
    let time = Field {
        name: "time",
        bits: layout.time_bits,
        value: tick,
        meaning: format!("{tick} ticks of {}: {}", layout.unit.name(), instant::text(layout, tick)),
    };
    let shard = Field { name: "shard", bits: layout.shard_bits, value: shard.into(), meaning: shard.to_string() };
    let seq = Field { name: "seq", bits: layout.seq_bits, value: seq.into(), meaning: seq.to_string() };
    let below_time = if layout.shard_place.is_lowest() { [seq, shard] } else { [shard, seq] };

    let mut lines = vec![in_hexadecimal(id), title(layout)];
    lines.extend([time].iter().chain(&below_time).map(Field::line));
    lines.join("\n")
}

/// The time, the shard and the seq that each preset reads from the ID, the most likely preset first, with the reason why it is
/// probably not an ID of the others.
///
/// ```
/// use pg_snowflake_ids::explain::presets;
///
/// let in_2022_us = 1_656_500_000_000_000;
/// let listed = presets(1_541_815_603_606_036_480, in_2022_us);
/// let most_likely = listed.lines().nth(2).unwrap();
/// assert_eq!(most_likely, "twitter    2022-06-28T16:07:40.105Z    378      0");
/// ```
pub fn presets(id: i64, now_us: i64) -> String {
    let mut lines = vec![in_hexadecimal(id), format!("{:<9}  {:<24}  {:>5}  {:>5}", "preset", "time", "shard", "seq")];
    lines.extend(readings(id, now_us).into_iter().map(|reading| {
        let Fields { tick, shard, seq } = reading.fields;
        let instant = instant::text(&reading.layout, tick);
        let line = format!("{:<9}  {instant:<24}  {shard:>5}  {seq:>5}", reading.name);
        match reading.doubt {
            None => line,
            Some(Doubt::Future) => format!("{line}  in the future"),
            Some(Doubt::FirstDays) => {
                format!("{line}  in the first days of the layout, as small numbers are")
            }
            Some(Doubt::NotAnId) => {
                format!("{:<9}  {:<24}  {:>5}  {:>5}  not an ID", reading.name, "-", "-", "-")
            }
        }
    }));
    lines.join("\n")
}

fn in_hexadecimal(id: i64) -> String {
    format!("{id} = {:#018x}", id as u64)
}

fn title(layout: &Layout) -> String {
    let spec = layout_spec::spec(layout);
    match layout.preset_name() {
        Some(name) => format!("{name}: {spec}"),
        None => spec,
    }
}

struct Field {
    name: &'static str,
    bits: u8,
    value: i64,
    meaning: String,
}

impl Field {
    fn line(&self) -> String {
        let Field { name, bits, value, meaning } = self;
        let width = usize::from(*bits);
        // format! would print a 0 for a field without bits.
        let drawn = if width == 0 { String::new() } else { format!("{value:0width$b}") };
        format!("{name:<5} {bits:>2} bits  {drawn:<48}  {meaning}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::INSTAGRAM;

    #[test]
    fn the_published_example_is_drawn() {
        let id = INSTAGRAM.id(INSTAGRAM.at_tick(905, 1_387_263_000), 1341);
        let drawn = explain(id, INSTAGRAM.split(id), &INSTAGRAM);
        let lines: Vec<&str> = drawn.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "11637205501278089 = 0x002957fa0c14f789");
        assert!(lines[1].starts_with("instagram: time:41 shard:13 seq:10 epoch:2011-08-24T21:07:01.721Z"));
        assert!(lines[2].ends_with("1387263000 ticks of 1ms: 2011-09-09T22:28:04.721Z"), "{drawn}");
        assert!(lines[3].starts_with("shard 13 bits  0010100111101 "), "{drawn}");
        assert!(lines[4].ends_with("  905"), "{drawn}");
    }

    #[test]
    fn presets_are_listed_with_the_reason_against_each() {
        let listed = presets(2_235_933_130_752_004_096, 1_795_392_000_000_000);
        let expected = "\
2235933130752004096 = 0x1f07a15600001000
preset     time                      shard    seq
postgres   2026-11-23T00:00:00Z          1      1
instagram  2020-02-03T21:07:01.721Z      4      0
twitter    2027-09-26T01:42:54.657Z      1      0  in the future";
        assert_eq!(listed.lines().take(5).collect::<Vec<_>>().join("\n"), expected);
        let js53 = listed.lines().last();
        assert_eq!(js53, Some("js53       -                             -      -  not an ID"));
        assert!(presets(1_000_000, 1_795_392_000_000_000).contains("first days"));
    }

    #[test]
    fn fields_are_drawn_in_order_and_an_empty_one_without_bits() {
        let [mastodon, sonyflake] = ["mastodon", "sonyflake"].map(|name| Layout::preset(name).unwrap());
        let cases = [(mastodon, ["time", "shard", "seq"]), (sonyflake, ["time", "seq", "shard"])];
        for (layout, names) in cases {
            let drawn = explain(1 << 40, layout.split(1 << 40), &layout);
            let found: Vec<&str> = drawn.lines().skip(2).map(|line| line.split(' ').next().unwrap()).collect();
            assert_eq!(found, names);
        }
        assert!(explain(0, mastodon.split(0), &mastodon).contains("shard  0 bits   "));
    }
}
