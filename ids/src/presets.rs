//! The layouts with a name.

use crate::layout::{Layout, ShardPlace, Unit};

/// The layout that Instagram published: milliseconds since 2011-08-24 21:07:01.721 UTC, 8192 shards, 1024 IDs per millisecond and shard.
pub const INSTAGRAM: Layout = high_shard(41, 13, 10, 1_314_220_021_721);

/// The layout of Twitter's snowflakes. Those of Discord, pgEdge and PgDog have the shard in the same place.
pub const TWITTER: Layout = high_shard(41, 10, 12, 1_288_834_974_657);

/// The layout of Sony's sonyflake, with the shard in the low bits.
pub const SONYFLAKE: Layout =
    Layout { time_bits: 39, shard_bits: 16, seq_bits: 8, shard_place: ShardPlace::Lowest, unit: Unit::Ms10, epoch_ms: 1_409_529_600_000 };

/// A layout whose IDs are exact as JavaScript numbers.
pub const JS53: Layout = high_shard(41, 7, 5, 1_577_836_800_000);

/// Milliseconds since 2010-01-01 UTC, 4096 shards, 1024 IDs per millisecond and shard.
///
/// PostgreSQL's hash of a bigint XORs its halves. With the shard in the low bits, that puts the high half of the time on
/// the shard, and not on seq, which would lose bits of both. The shard is XORed with the 12 bits above it, so that the low
/// bits vary within a shard, and `id % n` of an application is even. Its shard is `(id ^ (id >> 12)) & 4095`.
///
/// ```
/// use pg_snowflake_ids::presets::POSTGRES;
///
/// let id = POSTGRES.id(1_000_000_000, 5);
/// assert_eq!((id ^ (id >> 12)) & 4095, 5);
/// ```
pub const POSTGRES: Layout = Layout {
    time_bits: 41,
    shard_bits: 12,
    seq_bits: 10,
    shard_place: ShardPlace::LowestXored,
    unit: Unit::Ms1,
    epoch_ms: 1_262_304_000_000,
};

/// The layout of every function without one.
pub const DEFAULT: Layout = POSTGRES;

impl Default for Layout {
    /// [`DEFAULT`].
    fn default() -> Self {
        DEFAULT
    }
}

/// Every preset with its name, in the order of the view `snowflake_layouts`. The parser, the view and the
/// checks of the documentation read this table.
///
/// A released preset never changes. CONTRIBUTING.md explains how to add one.
///
/// ```
/// use pg_snowflake_ids::{Layout, PRESETS, presets::TWITTER};
///
/// assert!(PRESETS.contains(&("twitter", TWITTER)));
/// assert_eq!(Layout::preset("twitter"), Some(TWITTER));
/// assert_eq!(TWITTER.preset_name(), Some("twitter"));
/// ```
pub const PRESETS: &[(&str, Layout)] = &[
    ("postgres", POSTGRES),
    ("instagram", INSTAGRAM),
    ("twitter", TWITTER),
    ("discord", high_shard(42, 10, 12, 1_420_070_400_000)),
    ("mastodon", high_shard(48, 0, 16, 0)),
    ("sonyflake", SONYFLAKE),
    ("pgedge", high_shard(41, 10, 12, 1_672_531_200_000)),
    ("pgdog", high_shard(41, 10, 12, 1_764_184_395_000)),
    ("js53", JS53),
];

impl Layout {
    /// The preset with this name.
    pub fn preset(name: &str) -> Option<Layout> {
        PRESETS.iter().find(|(of_preset, _)| *of_preset == name).map(|&(_, layout)| layout)
    }

    /// The shard of an ID as an SQL expression of bigints, in which `#` is XOR.
    ///
    /// ```
    /// use pg_snowflake_ids::presets::{INSTAGRAM, POSTGRES};
    ///
    /// assert_eq!(POSTGRES.shard_formula("id"), "(id # (id >> 12)) & 4095");
    /// assert_eq!(INSTAGRAM.shard_formula("id"), "(id >> 10) & 8191");
    /// ```
    pub fn shard_formula(&self, id: &str) -> String {
        let (bits, mask) = (self.shard_bits, self.shards() - 1);
        match self.shard_place {
            _ if bits == 0 => "0".into(),
            ShardPlace::AboveSeq if self.seq_bits > 0 => format!("({id} >> {}) & {mask}", self.seq_bits),
            ShardPlace::LowestXored => format!("({id} # ({id} >> {bits})) & {mask}"),
            ShardPlace::AboveSeq | ShardPlace::Lowest => format!("{id} & {mask}"),
        }
    }

    /// The name of the layout, if it is a preset.
    pub fn preset_name(&self) -> Option<&'static str> {
        PRESETS.iter().find(|(_, preset)| preset == self).map(|&(name, _)| name)
    }
}

const fn high_shard(time_bits: u8, shard_bits: u8, seq_bits: u8, epoch_ms: i64) -> Layout {
    Layout { time_bits, shard_bits, seq_bits, shard_place: ShardPlace::AboveSeq, unit: Unit::Ms1, epoch_ms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn presets_are_valid_and_distinct() {
        let names: HashSet<&str> = PRESETS.iter().map(|&(name, _)| name).collect();
        let layouts: HashSet<Layout> = PRESETS.iter().map(|&(_, layout)| layout).collect();
        assert_eq!((names.len(), layouts.len()), (PRESETS.len(), PRESETS.len()));
        for (name, layout) in PRESETS {
            assert!(layout.is_valid(), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{name}");
        }
    }
}
