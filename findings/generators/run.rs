//! Generates IDs with crates, and prints a line of each ID: the generator, the ID, the clock before and after the call in ms, and the shard
//! number that the crate was given.

use ferroid::generator::BasicSnowflakeGenerator;
use ferroid::id::{SnowflakeDiscordId, SnowflakeInstagramId, SnowflakeMastodonId, SnowflakeTwitterId};
use ferroid::time::{DISCORD_EPOCH, INSTAGRAM_EPOCH, MASTODON_EPOCH, MonotonicClock, TWITTER_EPOCH, TimeSource};
use idgenerator::{IdGeneratorOptions, IdInstance};
use std::time::{SystemTime, UNIX_EPOCH};

const SPACED: usize = 20;
const BURST: usize = 60;
const WORKER: u16 = 21;
const PROCESS: u16 = 11;
const NODE: u16 = WORKER * 32 + PROCESS;

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

fn sample(name: &str, shard: u32, next: impl FnMut() -> u64) {
    sample_with(name, shard, 3, SPACED, next);
}

fn sample_with(name: &str, shard: u32, gap_ms: u128, spaced: usize, next: impl FnMut() -> u64) {
    sample_by_clock(name, shard, gap_ms, spaced, now_ms, next);
}

fn sample_by_clock(name: &str, shard: u32, gap_ms: u128, spaced: usize, now_ms: impl Fn() -> u128, mut next: impl FnMut() -> u64) {
    let mut last = now_ms();
    for n in 0..spaced + BURST {
        // In the burst, no time is left between two IDs.
        while n < spaced && now_ms() - last < gap_ms {}
        let before = now_ms();
        let id = next();
        last = now_ms();
        println!("crates.io {name}\t{id}\t{before}\t{last}\t{shard}");
    }
}

fn main() {
    IdInstance::init(IdGeneratorOptions::new().worker_id(173)).unwrap();
    sample("idgenerator (Yitter)", 173, || IdInstance::next_id() as u64);

    let mut tsid_1024 = tsid::TsidFactory::with_node_bits(10, NODE.into());
    sample("tsid with_node_bits(10)", NODE.into(), || tsid_1024.create().number());
    let mut tsid_256 = tsid::TsidFactory::with_node_bits(8, 173);
    sample("tsid with_node_bits(8)", 173, || tsid_256.create().number());

    let sonyflake = sonyflake::Sonyflake::builder().machine_id(&|| Ok(43691)).finalize().unwrap();
    sample_with("sonyflake", 43691, 11, 12, || *sonyflake.next_id().unwrap());

    let mut snowflaked = snowflaked::Generator::new(NODE);
    sample("snowflaked", NODE.into(), || snowflaked.generate());

    macro_rules! ferroid {
        ($name:literal, $id:ty, $epoch:ident, $shard:expr) => {
            // A thread of the crate reads the system's clock every millisecond, so its IDs are about a millisecond old.
            let clock = MonotonicClock::<1>::with_epoch($epoch);
            let generator = BasicSnowflakeGenerator::<$id, _>::new($shard.into(), clock.clone());
            let now_ms = || $epoch.as_millis() + u128::from(TimeSource::<u64>::current_millis(&clock));
            sample_by_clock($name, $shard.into(), 3, SPACED, now_ms, || generator.next_id(|_| std::thread::yield_now()).to_raw());
        };
    }
    ferroid!("ferroid Twitter", SnowflakeTwitterId, TWITTER_EPOCH, NODE);
    ferroid!("ferroid Discord", SnowflakeDiscordId, DISCORD_EPOCH, NODE);
    ferroid!("ferroid Instagram", SnowflakeInstagramId, INSTAGRAM_EPOCH, 6827_u16);
    ferroid!("ferroid Mastodon", SnowflakeMastodonId, MASTODON_EPOCH, 0_u16);

    let mut rs = rs_snowflake::SnowflakeIdGenerator::new(WORKER.into(), PROCESS.into());
    sample("rs-snowflake real_time_generate()", NODE.into(), || rs.real_time_generate() as u64);

    let rs_impl = snowflake_rs_impl::snowflake::Snowflake::new(NODE, None).unwrap();
    sample("snowflake-rs-impl", NODE.into(), || rs_impl.generate().unwrap());
}
