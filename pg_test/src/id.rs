//! The format of an ID in the default layout, stated independently: `x = (ms - 1262304000000) << 22 | seq << 12`, and the ID is
//! `x | (shard ^ (x >> 12 & 4095))`.

use std::time::{SystemTime, UNIX_EPOCH};

/// The epoch of IDs as a Unix time in milliseconds.
pub const EPOCH_MS: i64 = 1_262_304_000_000;

/// How many values `seq` has, which is how many IDs a sequence has in a millisecond.
pub const SEQS: i64 = 1024;

const SHARDS: i64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    pub unix_ms: i64,
    pub shard: i64,
    /// The number within that millisecond.
    pub seq: i64,
}

pub fn compose(fields: Fields) -> i64 {
    let above = (fields.unix_ms - EPOCH_MS) * SEQS + fields.seq;
    above * SHARDS + (fields.shard ^ (above % SHARDS))
}

/// The fields of an ID, which is not negative.
pub fn split(id: i64) -> Fields {
    let above = id / SHARDS;
    Fields { unix_ms: above / SEQS + EPOCH_MS, shard: (id ^ above) % SHARDS, seq: above % SEQS }
}

/// The ID without its shard: what its sequence's `last_value` was when it was issued.
pub fn counter(id: i64) -> i64 {
    let Fields { unix_ms, seq, .. } = split(id);
    first_counter_at(unix_ms) | seq
}

pub fn first_counter_at(unix_ms: i64) -> i64 {
    (unix_ms - EPOCH_MS) * SEQS
}

/// The clock of this machine and of the servers, in Unix milliseconds.
pub fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    since_epoch.as_millis().try_into().expect("the clock is before the year 292278994")
}

pub fn count_repeats(mut ids: Vec<i64>) -> usize {
    let total = ids.len();
    ids.sort_unstable();
    ids.dedup();
    total - ids.len()
}

pub fn is_increasing(ids: &[i64]) -> bool {
    ids.is_sorted_by(|earlier, later| earlier < later)
}
