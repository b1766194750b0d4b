//! A drawing of an ID's bits and their meaning, and the fields that each preset and the layouts of other generators read, for people. Times are in UTC.

use crate::generators;
use crate::instant;
use crate::layout::{Fields, Layout};
use crate::layout_spec;
use crate::likely::{Doubt, Reading};

/// Draws the ID's bits, field by field from the highest, each with its value. `fields` are those of `id` in `layout`.
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
    let time = line("time", layout.time_bits, tick, format!("{tick} ticks of {}: {}", layout.unit.name(), instant::text(layout, tick)));
    let shard = line("shard", layout.shard_bits, shard.into(), shard.to_string());
    let seq = line("seq", layout.seq_bits, seq.into(), seq.to_string());
    let [high, low] = if layout.shard_place.is_lowest() { [seq, shard] } else { [shard, seq] };
    [in_hexadecimal(id), title(layout), time, high, low].join("\n")
}

fn line(name: &str, bits: u8, value: i64, meaning: String) -> String {
    let width = usize::from(bits);
    // format! would print a 0 for a field without bits.
    let drawn = if width == 0 { String::new() } else { format!("{value:0width$b}") };
    format!("{name:<5} {bits:>2} bits  {drawn:<48}  {meaning}")
}

/// The time, the shard and the seq that each preset reads from the ID, and those that the layouts of other generators do in which the
/// ID is of the last days, the most likely first. The last column has the layout of a generator, or the reason why the ID is probably
/// not one of the preset. A last line says if no time is one of the last days.
///
/// ```
/// use pg_snowflake_ids::explain::candidates;
///
/// let in_2022_us = 1_656_500_000_000_000;
/// let listed = candidates(1_541_815_603_606_036_480, in_2022_us);
/// let most_likely = listed.lines().nth(2).unwrap();
/// assert_eq!(most_likely, "twitter    2022-06-28T16:07:40.105Z    378      0");
/// ```
pub fn candidates(id: i64, now_us: i64) -> String {
    let candidates = generators::candidates(id, now_us);
    let width = candidates.iter().map(|reading| reading.name.len()).max().unwrap_or_default();
    let line = |name: &str, time: &str, shard: &str, seq: &str, note: &str| {
        format!("{name:<width$}  {time:<24}  {shard:>5}  {seq:>5}  {note}").trim_end().to_owned()
    };
    let mut lines = vec![in_hexadecimal(id), line("layout", "time", "shard", "seq", "")];
    lines.extend(candidates.iter().map(|Reading { name, layout, fields, doubt, .. }| {
        let (time, shard, seq) = (instant::text(layout, fields.tick), fields.shard.to_string(), fields.seq.to_string());
        match doubt {
            None if layout.preset_name().is_none() => line(name, &time, &shard, &seq, &layout_spec::spec(layout)),
            None => line(name, &time, &shard, &seq, ""),
            Some(Doubt::Future) => line(name, &time, &shard, &seq, "in the future"),
            Some(Doubt::FirstDays) => line(name, &time, &shard, &seq, "in the first days of the layout, as small numbers are"),
            Some(Doubt::NotAnId) => line(name, "-", "-", "-", "not an ID"),
        }
    }));
    if !candidates.iter().any(|reading| reading.is_recent(now_us)) {
        lines.push("none of these, if the ID was generated in the last 90 days".to_owned());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const IN_NOVEMBER_2026_US: i64 = 1_795_888_800_000_000;

    #[test]
    fn presets_are_listed_with_the_reason_against_each() {
        let listed = candidates(2_235_933_130_752_004_096, IN_NOVEMBER_2026_US);
        let expected = "\
2235933130752004096 = 0x1f07a15600001000
layout     time                      shard    seq
postgres   2026-11-23T00:00:00Z          1      1
instagram  2020-02-03T21:07:01.721Z      4      0
twitter    2027-09-26T01:42:54.657Z      1      0  in the future";
        assert_eq!(listed.lines().take(5).collect::<Vec<_>>().join("\n"), expected);
        let js53 = listed.lines().last();
        assert_eq!(js53, Some("js53       -                             -      -  not an ID"));
        assert!(candidates(1_000_000, IN_NOVEMBER_2026_US).contains("first days"));
    }

    #[test]
    fn the_layout_of_another_generator_is_listed_if_the_id_is_of_the_last_days() {
        let tsid = candidates(914_566_487_139_334_844, IN_NOVEMBER_2026_US);
        let expected = "\
914566487139334844 = 0x0cb1315fdd6ababc
layout     time                      shard    seq
tsid       2026-11-28T17:20:42.357Z    683   2748  time:42 shard:10 seq:12 epoch:2020-01-01 unit:1ms
discord    2021-11-28T17:20:42.357Z    683   2748
twitter    2017-10-01T19:03:37.014Z    683   2748";
        assert_eq!(tsid.lines().take(5).collect::<Vec<_>>().join("\n"), expected);
    }

    #[test]
    fn a_line_says_if_the_id_fits_none() {
        let last_line = |id| candidates(id, IN_NOVEMBER_2026_US).lines().last().map(str::to_owned);
        let none = Some("none of these, if the ID was generated in the last 90 days".to_owned());
        for id in [-1, 0, 1_000_000, 1_541_815_603_606_036_480, i64::MAX] {
            assert_eq!(last_line(id), none, "{id}");
        }
        assert_ne!(last_line(2_235_933_130_752_004_096), none);
    }
}
