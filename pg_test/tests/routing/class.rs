//! The operator classes.

use pg_snowflake_ids::{Layout, PRESETS};

/// An operator class, and the place of the shard in its layouts: the bits below it, its own bits, and whether they are XORed
/// with as many bits above them.
pub struct Class {
    pub name: &'static str,
    /// The bits below the shard.
    shift: u8,
    /// Its own bits.
    bits: u8,
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
}
