//! The layouts of other ID generators: those of `docs/generators.md` that are not presets.

use crate::layout::Layout;
use crate::layout_spec;
use crate::likely::{Reading, readings};
use crate::presets::PRESETS;
use std::sync::LazyLock;

/// The layout of a generator that is not a preset.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    /// What it is called.
    pub name: &'static str,
    /// Its layout as text.
    pub spec: &'static str,
    /// The lowest value of its counter.
    pub first_seq: u32,
}

/// The generators of `docs/generators.md`. Those that read the same time in the same number of bits are here once, because an ID does not
/// show which of them it is of.
pub const GENERATORS: &[Generator] = &[
    from_0("tsid", "time:42 shard:10 seq:12 epoch:2020-01-01 unit:1ms"),
    from_5("yitter", "time:41 shard:6 seq:6 epoch:2020-02-19T18:20:02Z unit:1ms"),
    from_5("simple-flakeid", "time:41 shard:6 seq:6 epoch:2020-01-01 unit:1ms"),
    from_5("idgenerator", "time:41 shard:8 seq:8 epoch:2020-02-19T18:20:02Z unit:1ms"),
    from_0("cockroachdb", "time:48 shard:15 seq:0 epoch:2015-01-01 unit:10us"),
    from_0("flake-idgen", "time:42 shard:10 seq:12 epoch:1970-01-01 unit:1ms"),
    from_0("snowflake-uuid", "time:42 shard:10 seq:12 epoch:2021-01-01 unit:1ms"),
    from_0("akashrajpurohit", "time:42 shard:10 seq:12 epoch:2020-08-10 unit:1ms"),
    from_0("shardingsphere", "time:41 shard:10 seq:12 epoch:2016-10-31T16:00:00Z unit:1ms"),
    from_0("hipopayflake", "time:41 shard:13 seq:9 epoch:2020-09-20T04:08:00Z unit:1ms"),
    from_0("simpleflakes", "time:41 shard:0 seq:23 epoch:2000-01-01 unit:1ms"),
    from_0("simpleflake", "time:41 shard:0 seq:23 epoch:2000-01-01T05:00:00Z unit:1ms"),
    from_0("ferroid", "time:41 shard:13 seq:10 epoch:2011-01-01 unit:1ms"),
    from_0("fity3", "time:41 shard:8 seq:4 epoch:2014-10-15T11:00:00Z unit:1ms"),
    from_0("ulid-flake", "time:43 shard:0 seq:20 epoch:2024-01-01 unit:1ms"),
    from_0("npm-sonyflake", "time:39 seq:8 shard:16 epoch:2020-01-01 unit:1ms"),
    from_0("toolkit-sony", "time:39 shard:8 seq:16 epoch:1970-01-01 unit:10ms"),
    from_0("nocobase", "time:32 shard:5 seq:16 epoch:2020-11-10T16:00:00Z unit:1s"),
    from_0("uid-generator", "time:29 shard:21 seq:13 epoch:2016-09-19T16:00:00Z unit:1s"),
    from_0("weibo", "time:31 shard:4 seq:18 epoch:1986-05-03T05:51:03Z unit:1s"),
];

const fn from_0(name: &'static str, spec: &'static str) -> Generator {
    Generator { name, spec, first_seq: 0 }
}

const fn from_5(name: &'static str, spec: &'static str) -> Generator {
    Generator { name, spec, first_seq: 5 }
}

/// The presets and the layouts of the generators.
pub static KNOWN_LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    let others = GENERATORS.iter().filter_map(|generator| layout_spec::parse(generator.spec, i64::MAX).ok());
    PRESETS.iter().map(|&(_, preset)| preset).chain(others).collect()
});

/// The ID as every preset reads it, and as the generators do in whose layout it is of the last days. The most likely first, as
/// [`readings`] orders the presets.
///
/// ```
/// use pg_snowflake_ids::generators::candidates;
///
/// let id = 914_566_487_139_334_844; // a TSID
/// let in_november_2026_us = 1_795_886_500_000_000;
/// let [first, second, ..] = &candidates(id, in_november_2026_us)[..] else { panic!() };
/// assert_eq!((first.name, first.fields.shard), ("tsid", 683));
/// assert_eq!(second.name, "discord"); // in 2021
/// ```
pub fn candidates(id: i64, now_us: i64) -> Vec<Reading> {
    let mut candidates = readings(id, now_us);
    for generator in GENERATORS {
        let layout = layout_spec::parse(generator.spec, now_us / 1_000).ok();
        let reading = layout.map(|layout| Reading::of(id, generator.name, layout, now_us));
        let Some(reading) = reading.filter(|reading| reading.is_recent(now_us)) else { continue };
        let is_after = |other: &Reading| match reading.unix_us.abs_diff(now_us).cmp(&other.unix_us.abs_diff(now_us)) {
            _ if other.doubt.is_some() => true,
            // As of Yitter and js53: the layout in which fewer IDs of the tick precede.
            std::cmp::Ordering::Equal => (generator.first_seq..generator.first_seq + other.fields.seq).contains(&reading.fields.seq),
            order => order.is_lt(),
        };
        let place = candidates.iter().position(is_after).unwrap_or(candidates.len());
        candidates.insert(place, reading);
    }
    candidates
}

#[cfg(test)]
mod tests;
