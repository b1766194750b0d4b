//! The operator classes, and IDs for each.

use pg_snowflake_ids::{Layout, PRESETS};

/// An operator class, and the place of the shard in its layouts: the bits below it, its own bits, and whether they are XORed
/// with as many bits above them.
pub struct Class {
    pub name: &'static str,
    /// The bits below the shard.
    pub shift: u8,
    /// Its own bits.
    pub bits: u8,
    is_xored: bool,
}

pub const CLASSES: [Class; 5] = [
    Class { name: "snowflake_shard_ops", shift: 0, bits: 12, is_xored: true },
    Class { name: "snowflake_shard_ops_instagram", shift: 10, bits: 13, is_xored: false },
    Class { name: "snowflake_shard_ops_twitter", shift: 12, bits: 10, is_xored: false },
    Class { name: "snowflake_shard_ops_sonyflake", shift: 0, bits: 16, is_xored: false },
    Class { name: "snowflake_shard_ops_js53", shift: 5, bits: 7, is_xored: false },
];

impl Class {
    /// The presets with their shard at this place.
    pub fn presets(&self) -> Vec<&'static str> {
        let is_own = |layout: &Layout| {
            let place = (layout.shard_shift(), layout.shard_bits, layout.shard_place.is_xored());
            place == (self.shift, self.bits, self.is_xored)
        };
        PRESETS.iter().filter(|(_, layout)| is_own(layout)).map(|&(name, _)| name).collect()
    }

    /// An ID of that shard with these bits above the shard.
    pub fn id_of_shard(&self, shard: i64, above: i64) -> i64 {
        above << (self.shift + self.bits) | (shard ^ (above & self.mask())) << self.shift
    }

    /// The same as an SQL expression of SQL expressions.
    pub fn sql_of_id(&self, shard: &str, above: &str) -> String {
        let Class { shift, bits, .. } = self;
        format!(
            "(({above})::bigint << {} | ({shard} # (({above}) & {})) << {shift})",
            shift + bits,
            self.mask()
        )
    }

    /// The bits above the shard with which it is XORed.
    fn mask(&self) -> i64 {
        if self.is_xored { (1 << self.bits) - 1 } else { 0 }
    }

    /// A query for every shard and IDs of it: all other bits 0, all 1, and two others; two of four are negative.
    pub fn ids(&self) -> String {
        let Class { shift, bits, .. } = self;
        let id = self.sql_of_id("shard", "high");
        format!(
            "SELECT shard, {id} | low AS id
             FROM generate_series(0, (1::bigint << {bits}) - 1) AS shard,
                  (VALUES (0::bigint, 0::bigint), (-1, (1::bigint << {shift}) - 1), (1, (1::bigint << {shift}) - 1),
                          (-1000000007, 0)) AS rest (high, low)"
        )
    }
}
