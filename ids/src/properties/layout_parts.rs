//! A spec is a layout exactly if each part is within its limits, and the layout has these parts.

use crate::layout_spec::parse;
use crate::{Layout, ShardPlace, Unit};
use arbitrary::{Arbitrary, Result, Unstructured};

/// The input of the target: the parts of a spec, within their limits or not.
#[derive(Debug, Arbitrary)]
pub struct Input {
    time_bits: u8,
    shard_bits: u8,
    seq_bits: u8,
    order: Order,
    epoch: Epoch,
    now: Now,
    unit: UnitName,
}

#[derive(Debug, Arbitrary)]
enum Order {
    TimeShardSeq,
    TimeSeqShard,
    TimeXoredSeq,
    TimeSeqXored,
    ShardTimeSeq,
    SeqShardTime,
}

/// In milliseconds since 1970, of a year with four digits.
#[derive(Debug)]
struct Epoch(i64);

impl Arbitrary<'_> for Epoch {
    fn arbitrary(u: &mut Unstructured) -> Result<Self> {
        let ms = u.int_in_range(-(1_i64 << 45)..=1 << 46)?;
        Ok(Epoch(if u.arbitrary()? { ms - ms.rem_euclid(86_400_000) } else { ms }))
    }
}

/// The clock in milliseconds since 1970, anywhere or near the epoch.
#[derive(Debug, Arbitrary)]
enum Now {
    At(i64),
    AfterEpoch(i8),
}

#[derive(Debug)]
struct UnitName(&'static str);

impl Arbitrary<'_> for UnitName {
    fn arbitrary(u: &mut Unstructured) -> Result<Self> {
        let names = ["10us", "100us", "1ms", "10ms", "100ms", "1s", "1us", "1"];
        Ok(UnitName(u.choose(&names)?))
    }
}

/// Panics if a property does not hold.
pub fn check(input: Input) {
    let texts = [input.text(input.epoch.timestamp()), input.text(input.epoch.date())];
    let expected = [input.layout(), input.layout().filter(|_| input.epoch.is_midnight())];
    assert_eq!(parse(&texts[0], input.now_ms()).ok(), expected[0], "{} {}", texts[0], input.now_ms());
    if input.epoch.is_midnight() {
        assert_eq!(parse(&texts[1], input.now_ms()).ok(), expected[1], "{} {}", texts[1], input.now_ms());
    }
}

impl Input {
    fn now_ms(&self) -> i64 {
        match self.now {
            Now::At(now_ms) => now_ms,
            Now::AfterEpoch(ms) => self.epoch.0 + i64::from(ms),
        }
    }

    fn text(&self, epoch: String) -> String {
        let [time, shard, seq, xored] = [
            format!("time:{}", self.time_bits),
            format!("shard:{}", self.shard_bits),
            format!("seq:{}", self.seq_bits),
            format!("shard_xor_above:{}", self.shard_bits),
        ];
        let fields = match self.order {
            Order::TimeShardSeq => [time, shard, seq],
            Order::TimeXoredSeq => [time, xored, seq],
            Order::TimeSeqShard => [time, seq, shard],
            Order::TimeSeqXored => [time, seq, xored],
            Order::ShardTimeSeq => [shard, time, seq],
            Order::SeqShardTime => [seq, shard, time],
        };
        format!("{} epoch:{epoch} unit:{}", fields.join(" "), self.unit.0)
    }

    /// The limits, stated independently.
    fn layout(&self) -> Option<Layout> {
        let Input { time_bits, shard_bits, seq_bits, .. } = *self;
        let bits = u32::from(time_bits) + u32::from(shard_bits) + u32::from(seq_bits);
        let epoch_ms = self.epoch.0;
        let is_layout = (1..=48).contains(&time_bits)
            && shard_bits <= 31
            && seq_bits <= 31
            && bits <= 64
            && (0..=self.now_ms()).contains(&epoch_ms)
            && epoch_ms < 1 << 43;
        let unit = match self.unit.0 {
            "10us" => Unit::Us10,
            "100us" => Unit::Us100,
            "1ms" => Unit::Ms1,
            "10ms" => Unit::Ms10,
            "100ms" => Unit::Ms100,
            "1s" => Unit::S1,
            _ => return None,
        };
        let shard_place = match self.order {
            Order::TimeShardSeq => ShardPlace::AboveSeq,
            Order::TimeSeqShard => ShardPlace::Lowest,
            Order::TimeSeqXored => ShardPlace::LowestXored,
            Order::TimeXoredSeq | Order::ShardTimeSeq | Order::SeqShardTime => return None,
        };
        is_layout.then_some(Layout { time_bits, shard_bits, seq_bits, shard_place, unit, epoch_ms })
    }
}

impl Epoch {
    fn is_midnight(&self) -> bool {
        self.0.rem_euclid(86_400_000) == 0
    }

    fn timestamp(&self) -> String {
        let ms = self.0.rem_euclid(86_400_000);
        let (h, m, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
        format!("{}T{h:02}:{m:02}:{s:02}.{ms:03}Z", self.date())
    }

    /// The Gregorian calendar by its cycles: 146,097 days are 400 years, which begin in March.
    fn date(&self) -> String {
        let day = self.0.div_euclid(86_400_000) + 719_468;
        let (cycle, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (year, month) = match month {
            0..=9 => (cycle * 400 + year, month + 3),
            _ => (cycle * 400 + year + 1, month - 9),
        };
        format!("{year:04}-{month:02}-{day:02}")
    }
}
