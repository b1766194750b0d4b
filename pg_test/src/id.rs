//! What an id is, stated a second time: `(ms - 1314220021721) << 23 | shard << 10 | seq`.

use std::time::{SystemTime, UNIX_EPOCH};

/// The Unix time in milliseconds at which ids begin.
pub const EPOCH_MS: i64 = 1_314_220_021_721;

/// How many values `seq` has, and how many ids a sequence has in a millisecond.
pub const SEQS: i64 = 1024;

const SHARDS: i64 = 8192;

/// The fields of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// When, in Unix milliseconds.
    pub unix_ms: i64,
    /// On which shard.
    pub shard: i64,
    /// Which of that millisecond.
    pub seq: i64,
}

/// The id that has these fields.
pub fn compose(fields: Fields) -> i64 {
    (fields.unix_ms - EPOCH_MS) << 23 | fields.shard << 10 | fields.seq
}

/// The fields of an id of before 2046, which is not negative.
pub fn split(id: i64) -> Fields {
    Fields { unix_ms: (id >> 23) + EPOCH_MS, shard: (id >> 10) % SHARDS, seq: id % SEQS }
}

/// The id without its shard: what its sequence's `last_value` was when it was issued.
pub fn counter(id: i64) -> i64 {
    let Fields { unix_ms, seq, .. } = split(id);
    first_counter_at(unix_ms) | seq
}

/// The counter that opens that millisecond.
pub fn first_counter_at(unix_ms: i64) -> i64 {
    (unix_ms - EPOCH_MS) * SEQS
}

/// This machine's clock in Unix milliseconds, which is the server's clock too.
pub fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    since_epoch.as_millis().try_into().expect("the clock is before the year 292278994")
}

/// How many of these ids are there more than once.
pub fn count_repeats(mut ids: Vec<i64>) -> usize {
    let given = ids.len();
    ids.sort_unstable();
    ids.dedup();
    given - ids.len()
}

/// Whether each id is above the one before it.
pub fn is_increasing(ids: &[i64]) -> bool {
    ids.is_sorted_by(|earlier, later| earlier < later)
}
