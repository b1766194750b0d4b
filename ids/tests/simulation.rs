//! Judges [`find`] by 2,000 tables whose layout is known: it must not be sure of a wrong layout.

use pg_snowflake_ids::find::{Sample, find};
use pg_snowflake_ids::presets::{INSTAGRAM, JS53, POSTGRES, PRESETS, SONYFLAKE, TWITTER};
use pg_snowflake_ids::{Fields, Layout, ShardPlace, Unit};
use std::collections::{BTreeMap, HashSet};

const TABLES: u64 = 2_000;
const BEGIN_US: i64 = 1_767_225_600_000_000; // 2026-01-01

/// The lengths of ticks, in microseconds, that are not units of a layout.
const OTHER_TICKS: [i64; 9] = [2_000, 4_000, 5_000, 8_000, 20_000, 50_000, 500_000, 60_000_000, 1_024];

/// Numbers that look random, the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as i64
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as i64) as usize]
    }

    fn percent(&mut self, percent: i64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Counter {
    /// Begins in each tick at the least number, or a random one below the limit, and waits for the next tick after its highest.
    Restarts { least: i64, below: i64 },
    /// Begins in each tick at 0 or 1 in turn.
    InTurn,
    /// Is random, and one more for the next ID of a tick.
    Random,
    /// Goes on from tick to tick.
    GoesOn { first: i64 },
    /// Goes on, and other tables use some of its numbers.
    Shared,
    /// Goes on, and each session takes some numbers at a time.
    Cached { sessions: i64, cache: i64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    Exact,
    ExactMs,
    /// The row's time is later by up to so many microseconds.
    Later(i64),
    /// The row's time is off by up to so many microseconds.
    Skewed(i64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    /// One ID at a time, about so many microseconds apart.
    Apart(i64),
    /// One ID at a time, exactly a minute apart.
    EveryMinute,
    /// One to five IDs at a time.
    Few,
    /// Always so many IDs at a time.
    Batches(i64),
    /// The same in a loop that takes about a tick.
    Loop(i64),
    /// About so many IDs at a time.
    Bursts(i64),
    /// About one ID in a tick.
    Busy,
}

/// A table and the layout of its IDs.
#[derive(Debug)]
struct Table {
    layout: Layout,
    /// The length of the tick, which need not be the layout's unit.
    tick_us: i64,
    shards: Vec<u32>,
    counter: Counter,
    clock: Clock,
    rate: Rate,
    /// How many rows of a hundred were inserted hours late.
    late: i64,
    rows: usize,
    /// Whether the shards take turns, the step of a counter that goes on, and how many rows of a hundred are lost.
    in_turn: bool,
    step: i64,
    lost: i64,
}

impl Table {
    fn of(random: &mut Random) -> Table {
        let (layout, tick_us) = loop {
            let layout = layout(random);
            let tick_us = if random.percent(15) { random.pick(&OTHER_TICKS) } else { layout.unit.us() };
            let ticks = (BEGIN_US - layout.epoch_ms * 1_000) / tick_us;
            if (ticks as u64).leading_zeros() > u32::from(layout.low_bits()) + 1 {
                break (layout, tick_us);
            }
        };
        let seq_bits = layout.seq_bits;
        let cache = random.pick(&[1, 10, 32, 50, 64]);
        let any_first = random.below(layout.seqs());
        let counter = match random.below(12) {
            0 | 1 => Counter::Restarts { least: 0, below: 1 },
            2 => Counter::Restarts { least: random.pick(&[1, 5]), below: 1 },
            3 => Counter::Restarts { least: 0, below: 100 },
            4 => Counter::InTurn,
            5 => Counter::Random,
            6..=8 => Counter::GoesOn { first: random.pick(&[0, 1, layout.seqs() - 20, any_first]) },
            9 => Counter::Shared,
            _ => Counter::Cached { sessions: random.pick(&[1, 2, 3, 5, 30]), cache },
        };
        let clock = match random.below(6) {
            0 | 1 => Clock::Exact,
            2 => Clock::ExactMs,
            3 | 4 => Clock::Later(random.pick(&[2_000, 20_000, 1_000_000])),
            _ => Clock::Skewed(random.pick(&[50_000, 2_000_000])),
        };
        let rate = match random.below(13) {
            0..=4 => Rate::Apart(random.pick(&[200_000, 10_000_000, 600_000_000])),
            5 => Rate::EveryMinute,
            6 | 7 => Rate::Few,
            8 => Rate::Batches(random.pick(&[2, 8, 16, 64, 100])),
            9 => Rate::Loop(random.pick(&[8, 16, 64])),
            10 | 11 => Rate::Bursts(random.pick(&[30, 700])),
            _ => Rate::Busy,
        };
        let (some, other) = (random.below(layout.shards()), random.below(layout.shards()));
        let any = [0, 1, 2, 3, 7, layout.shards() - 1, some, other];
        let count = random.pick(&[1, 1, 1, 1, 2, 3, 16]);
        let shards = (0..count).map(|n| if count == 16 { n } else { random.pick(&any) }.min(layout.shards() - 1) as u32).collect();
        let of_size = if seq_bits <= 8 { 500 } else { 1_400 };
        let rows = random.pick(&[30, 200, of_size]);
        let late = random.pick(&[0, 0, 5]);
        let (in_turn, step, lost) = (random.percent(30), random.pick(&[1, 1, 1, 1, 2, 4]), random.pick(&[0, 0, 1]));
        Table { layout, tick_us, shards, counter, clock, rate, late, rows, in_turn, step, lost }
    }

    fn samples(&self, random: &mut Random) -> Vec<Sample> {
        let Table { layout, tick_us, .. } = *self;
        let (seqs, mut now_us) = (layout.seqs(), BEGIN_US + random.below(86_400_000_000));
        // Of each shard: the last tick, the last counter, and how many there were.
        let mut states: BTreeMap<u32, (i64, i64, i64)> = BTreeMap::new();
        let (mut ids, mut samples) = (HashSet::new(), Vec::new());
        while samples.len() < self.rows {
            let shard = if self.in_turn { self.shards[samples.len() % self.shards.len()] } else { random.pick(&self.shards) };
            now_us += match self.rate {
                Rate::Apart(us) => 1 + random.below(2 * us),
                Rate::EveryMinute => 60_000_000 - now_us % 60_000_000,
                Rate::Busy => 1 + random.below(2 * tick_us),
                Rate::Loop(_) => tick_us + random.below(tick_us / 5),
                _ => 1 + random.below(tick_us.max(1_000_000) * 100),
            };
            let burst = match self.rate {
                Rate::Few => random.pick(&[1, 1, 2, 3, 5]),
                Rate::Batches(ids) | Rate::Loop(ids) => ids,
                Rate::Bursts(about) => about / 2 + random.below(about),
                _ => 1,
            };
            for _ in 0..burst {
                let (last_tick, last, count) = states.get(&shard).copied().unwrap_or((-1, 0, 0));
                let mut tick = ((now_us - layout.epoch_ms * 1_000) / tick_us).max(last_tick);
                let is_new = tick > last_tick;
                let mut seq = match self.counter {
                    Counter::Restarts { least, below } if is_new => least + random.below(below),
                    Counter::InTurn if is_new => count % 2,
                    Counter::Random if is_new => random.below(seqs),
                    Counter::Restarts { .. } | Counter::InTurn | Counter::Random => last + 1,
                    Counter::GoesOn { first } => first + count * self.step,
                    Counter::Shared => last + 1 + random.below(5),
                    Counter::Cached { sessions, cache } => {
                        (count / sessions / cache * sessions + count % sessions) * cache + count / sessions % cache
                    }
                };
                if seq >= seqs && !is_new && matches!(self.counter, Counter::Restarts { .. } | Counter::InTurn | Counter::Random) {
                    tick += 1;
                    seq = if let Counter::Restarts { least, .. } = self.counter { least } else { 0 };
                }
                seq %= seqs;
                // The generator waits for its next tick.
                let begins_us = layout.epoch_ms * 1_000 + tick * tick_us;
                now_us = now_us.max(begins_us);
                states.insert(shard, (tick, seq, count + 1));
                let id = layout.compose(Fields { tick, shard, seq: seq as u32 });
                if ids.insert(id) {
                    if !random.percent(self.lost) {
                        samples.push(Sample { id, unix_us: self.time_of_row(now_us, random) });
                    }
                    now_us += 1;
                } else {
                    // A counter that goes on has none left in this tick.
                    now_us = begins_us + tick_us;
                }
            }
        }
        samples
    }

    fn time_of_row(&self, us: i64, random: &mut Random) -> i64 {
        let late_us = if random.percent(self.late) { random.below(240) * 3_600_000_000 } else { 0 };
        late_us
            + match self.clock {
                Clock::Exact => us,
                Clock::ExactMs => us / 1_000 * 1_000,
                Clock::Later(by) => us + random.below(by),
                Clock::Skewed(by) => us + random.below(2 * by) - by,
            }
    }

    /// Whether a layout is the table's, with the epoch as exact as the times are.
    fn is_of(&self, layout: &Layout) -> bool {
        let Table { layout: own, tick_us, .. } = self;
        let error_us = match self.clock {
            // Where no row is at the beginning of its tick, the epoch is later by that.
            Clock::ExactMs if *tick_us < 1_000 => 1_000,
            Clock::Exact | Clock::ExactMs if own.epoch_ms % 1_000 == 0 || *tick_us <= 1_000 => 0,
            Clock::Exact | Clock::ExactMs => tick_us / 2,
            Clock::Later(us) | Clock::Skewed(us) => us + tick_us,
        };
        layout.epoch_ms.abs_diff(own.epoch_ms) as i64 * 1_000 <= error_us
            && layout.unit.us() == *tick_us
            && (layout.shard_bits, layout.seq_bits) == (own.shard_bits, own.seq_bits)
            && (layout.shard_place == own.shard_place || own.shard_bits == 0 || own.seq_bits == 0)
    }
}

fn layout(random: &mut Random) -> Layout {
    let own = |random: &mut Random| {
        let (shard_bits, seq_bits) = random.pick(&[
            (10, 12),
            (12, 10),
            (13, 10),
            (8, 8),
            (6, 6),
            (16, 8),
            (5, 16),
            (12, 11),
            (4, 18),
            (8, 14),
            (9, 7),
            (0, 12),
            (0, 22),
            (7, 5),
        ]);
        let shard_place = random.pick(&[ShardPlace::AboveSeq, ShardPlace::AboveSeq, ShardPlace::Lowest]);
        let unit = random.pick(&[Unit::Ms1, Unit::Ms1, Unit::Ms1, Unit::S1, Unit::Ms10, Unit::Ms100, Unit::Us100, Unit::Us10]);
        // A day, a second and a millisecond of three years, and 1970.
        let precision_ms = random.pick(&[86_400_000, 1_000, 1]);
        let epoch_ms = random.pick(&[1, 1, 1, 0]) * (1_577_836_800_000 + random.below(94_608_000_000) / precision_ms * precision_ms);
        let shard_place = if shard_bits == 0 { ShardPlace::AboveSeq } else { shard_place };
        Layout { time_bits: 41, shard_bits, seq_bits, shard_place, unit, epoch_ms }
    };
    let layout = match random.below(10) {
        0..=2 => random.pick(PRESETS).1,
        3 => random.pick(&[INSTAGRAM, TWITTER, SONYFLAKE, POSTGRES]),
        // The epoch and the low bits of a preset, with another division.
        4 => random.pick(&[
            Layout { shard_bits: 6, seq_bits: 6, ..JS53 },
            Layout { shard_bits: 8, seq_bits: 14, ..TWITTER },
            Layout { shard_bits: 11, seq_bits: 12, ..INSTAGRAM },
            Layout { shard_place: ShardPlace::AboveSeq, ..SONYFLAKE },
        ]),
        _ => own(random),
    };
    let time_bits = (63 - layout.low_bits()).min(48);
    Layout { time_bits, ..layout }
}

/// Their shard field, if it is in the lowest bits, changes as a counter does that goes on from tick to tick.
#[test]
fn servers_that_take_turns_are_not_a_counter() {
    let mut wrong = Vec::new();
    for seed in 0..TABLES / 4 {
        let mut random = Random(seed << 32);
        let table = Table::of(&mut random);
        let servers = random.pick(&[64, 128, 256]).min(table.layout.shards()) as u32;
        let counter = Counter::Restarts { least: random.pick(&[0, 1, 5]), below: 1 };
        let table = Table { shards: (0..servers).collect(), in_turn: true, counter, ..table };
        if let Ok(found) = find(&mut table.samples(&mut random))
            && found.is_sure()
            && !table.is_of(&found.layout())
        {
            wrong.push(format!("{seed}: {} of {}, {servers} servers", found.layout(), table.layout));
        }
    }
    assert!(wrong.is_empty(), "sure of {} wrong layouts:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn no_wrong_layout_is_sure() {
    let (mut right, mut named, mut in_doubt, mut refused) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for seed in 0..TABLES {
        let mut random = Random(seed << 32);
        let table = Table::of(&mut random);
        match find(&mut table.samples(&mut random)) {
            Ok(found) if found.is_sure() && table.is_of(&found.layout()) => right += 1,
            Ok(found) if found.is_sure() => wrong.push(format!("{seed}: {} of {table:?}", found.layout())),
            Ok(found) if found.divisions.iter().any(|division| table.is_of(&division.layout)) => named += 1,
            Ok(_) => in_doubt += 1,
            Err(_) => refused += 1,
        }
    }
    println!("right {right}, in doubt with the right one named {named}, in doubt {in_doubt}, refused {refused}, wrong {}", wrong.len());
    assert!(right >= 100 && named >= 1_100, "too many doubts: {right} are right, {named} are named");
    assert!(wrong.is_empty(), "sure of {} wrong layouts:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}
