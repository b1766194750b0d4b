//! Layouts as text: a preset's name, or a spec such as `time:41 seq:10 shard:12 epoch:2024-01-01 unit:1ms`.
//!
//! The fields of a spec are in their order in the ID, high bits first: `time:39 seq:8 shard:16` puts the shard
//! lowest. `shard_xor_above:12` is a shard in the lowest 12 bits, XORed with the 12 bits above them.

use crate::excerpt::excerpt;
use crate::generators::{GENERATORS, Generator};
use crate::layout::{EPOCH_MS_LIMIT, Layout, MAX_OTHER_BITS, MAX_TIME_BITS, ShardPlace, Unit};
use crate::presets::PRESETS;
use jiff::Timestamp;
use std::error::Error;
use std::fmt;

/// The maximum length of a layout as text, in bytes. A spec with single spaces between its parts has fewer than 80.
pub const MAX_LENGTH: usize = 1000;

/// The name of a shard field that is XORed with the bits above it.
const XORED: &str = "shard_xor_above";

/// What is wrong with a spec, and what is allowed instead.
///
/// ```
/// use pg_snowflake_ids::layout_spec::parse;
///
/// let error = parse("time:49 shard:5 seq:5 epoch:2024-01-01 unit:1ms", 1_800_000_000_000).unwrap_err();
/// assert_eq!(error.message, "invalid layout part \"time:49\"");
/// assert_eq!(error.allowed, "The time field has 1 to 48 bits, in plain digits, as in \"time:48\".");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// What is wrong.
    pub message: String,
    /// What is allowed.
    pub allowed: String,
}

impl fmt::Display for SpecError {
    /// Both in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.message, self.allowed)
    }
}

impl Error for SpecError {}

fn error<T>(message: String, allowed: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError { message, allowed: allowed.into() })
}

impl fmt::Display for Layout {
    /// The preset's name, or the spec.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.preset_name() {
            return f.write_str(name);
        }
        f.write_str(&spec(self))
    }
}

/// The spec of a layout, even of a preset: all parts in a fixed order.
///
/// ```
/// use pg_snowflake_ids::{layout_spec::spec, presets::SONYFLAKE};
///
/// assert_eq!(spec(&SONYFLAKE), "time:39 seq:8 shard:16 epoch:2014-09-01 unit:10ms");
/// assert_eq!(SONYFLAKE.to_string(), "sonyflake");
/// ```
pub fn spec(layout: &Layout) -> String {
    let Layout { time_bits, shard_bits, seq_bits, .. } = layout;
    let fields = match layout.shard_place {
        ShardPlace::AboveSeq => format!("shard:{shard_bits} seq:{seq_bits}"),
        ShardPlace::Lowest => format!("seq:{seq_bits} shard:{shard_bits}"),
        ShardPlace::LowestXored => format!("seq:{seq_bits} {XORED}:{shard_bits}"),
    };
    let epoch = epoch_text(layout.epoch_ms);
    format!("time:{time_bits} {fields} epoch:{epoch} unit:{}", layout.unit.name())
}

/// A date if the epoch is midnight in UTC, else a timestamp.
fn epoch_text(epoch_ms: i64) -> String {
    let Ok(epoch) = Timestamp::from_millisecond(epoch_ms) else { return epoch_ms.to_string() };
    let text = epoch.to_string();
    match text.strip_suffix("T00:00:00Z") {
        Some(date) => date.to_owned(),
        None => text,
    }
}

/// Parses a layout. `now_ms` is the clock in milliseconds since 1970; an epoch must not be after it.
///
/// ```
/// use pg_snowflake_ids::{layout_spec::parse, presets::SONYFLAKE};
///
/// let now_ms = 1_800_000_000_000;
/// assert_eq!(parse("sonyflake", now_ms), Ok(SONYFLAKE));
/// assert_eq!(parse("time:39 seq:8 shard:16 epoch:2014-09-01 unit:10ms", now_ms), Ok(SONYFLAKE));
/// assert!(parse("sunnyflake", now_ms).is_err());
/// ```
pub fn parse(text: &str, now_ms: i64) -> Result<Layout, SpecError> {
    if text.len() > MAX_LENGTH {
        return error(
            format!("layout \"{}\" is too long", excerpt(text)),
            format!("A layout has at most {MAX_LENGTH} characters. {}", presets_hint()),
        );
    }
    let text = text.trim();
    if let Some(preset) = Layout::preset(text) {
        return Ok(preset);
    }
    if !text.contains(':') {
        let generator = GENERATORS.iter().find(|generator| generator.name == text);
        let hint = generator.map(|Generator { name, spec, .. }| format!("IDs of {name} have the layout \"{spec}\"."));
        return error(format!("unrecognized layout \"{}\"", excerpt(text)), hint.unwrap_or_else(presets_hint));
    }
    let parts = Parts::read(text)?;
    parts.layout(now_ms)
}

fn presets_hint() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|&(name, _)| name).collect();
    format!("A layout is one of {}, or a spec such as \"time:41 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:1ms\".", names.join(", "))
}

/// The parts of a spec, not yet parsed.
#[derive(Default)]
struct Parts<'a> {
    time: Option<&'a str>,
    shard: Option<&'a str>,
    seq: Option<&'a str>,
    epoch: Option<&'a str>,
    unit: Option<&'a str>,
    /// The names of the bit fields, in the order given.
    order: Vec<&'static str>,
}

impl<'a> Parts<'a> {
    fn read(text: &'a str) -> Result<Self, SpecError> {
        let mut parts = Parts::default();
        for part in text.split_whitespace() {
            let Some((name, value)) = part.split_once(':') else {
                return error(
                    format!("layout part \"{}\" has no value", excerpt(part)),
                    "Each part of a spec is a name, a colon and a value, such as \"seq:10\".",
                );
            };
            let (place, field) = match name {
                "time" => (&mut parts.time, Some("time")),
                "shard" => (&mut parts.shard, Some("shard")),
                XORED => (&mut parts.shard, Some(XORED)),
                "seq" => (&mut parts.seq, Some("seq")),
                "epoch" => (&mut parts.epoch, None),
                "unit" => (&mut parts.unit, None),
                _ => {
                    return error(
                        format!("unrecognized layout part \"{}\"", excerpt(name)),
                        format!("The parts of a spec are time, shard or {XORED}, seq, epoch and unit."),
                    );
                }
            };
            if place.replace(value).is_some() {
                return error(
                    format!("layout part \"{name}\" is specified more than once"),
                    format!("Specify each part once, and only one of shard and {XORED}."),
                );
            }
            parts.order.extend(field);
        }
        Ok(parts)
    }

    fn layout(self, now_ms: i64) -> Result<Layout, SpecError> {
        let shard = if self.order.contains(&XORED) { XORED } else { "shard" };
        let layout = Layout {
            time_bits: width("time", self.time, 1, MAX_TIME_BITS)?,
            shard_bits: width(shard, self.shard, 0, MAX_OTHER_BITS)?,
            seq_bits: width("seq", self.seq, 0, MAX_OTHER_BITS)?,
            shard_place: match self.order.as_slice() {
                ["time", "shard", "seq"] => ShardPlace::AboveSeq,
                ["time", "seq", "shard"] => ShardPlace::Lowest,
                ["time", "seq", XORED] => ShardPlace::LowestXored,
                other => {
                    return error(
                        format!("invalid order of layout fields: {}", other.join(", ")),
                        format!("The order must be time, shard, seq, or time, seq, shard, or time, seq, {XORED}."),
                    );
                }
            },
            epoch_ms: epoch(self.epoch, now_ms)?,
            unit: unit(self.unit)?,
        };
        if layout.bits() > 64 {
            return error(format!("layout fields have {} bits in total", layout.bits()), "An ID has 64 bits.");
        }
        Ok(layout)
    }
}

fn width(name: &str, value: Option<&str>, least: u8, most: u8) -> Result<u8, SpecError> {
    let allowed = format!("The {name} field has {least} to {most} bits, in plain digits, as in \"{name}:{most}\".");
    match value {
        None => error(format!("layout part \"{name}\" is missing"), allowed),
        Some(value) => match plain_number(value) {
            Some(bits) if (least..=most).contains(&bits) => Ok(bits),
            _ => error(format!("invalid layout part \"{name}:{}\"", excerpt(value)), allowed),
        },
    }
}

/// `None` unless the text is how the number prints: `parse()` also accepts a plus sign and leading zeros.
fn plain_number(text: &str) -> Option<u8> {
    text.parse().ok().filter(|number: &u8| number.to_string() == text)
}

fn unit(value: Option<&str>) -> Result<Unit, SpecError> {
    let allowed = || format!("The unit is one of {}.", Unit::ALL.map(|(_, name)| name).join(", "));
    match value {
        None => error("layout part \"unit\" is missing".into(), allowed()),
        Some(value) => match Unit::ALL.iter().find(|(_, name)| *name == value) {
            Some(&(unit, _)) => Ok(unit),
            None => error(format!("invalid layout part \"unit:{}\"", excerpt(value)), allowed()),
        },
    }
}

fn epoch(value: Option<&str>, now_ms: i64) -> Result<i64, SpecError> {
    let allowed = "The epoch is a date or a UTC timestamp to the millisecond, from 1970 to now, as in \
                   \"epoch:2024-01-01\" or \"epoch:2024-01-01T00:00:00.123Z\".";
    let Some(value) = value else {
        return error("layout part \"epoch\" is missing".into(), allowed);
    };
    match epoch_ms(value) {
        Some(epoch_ms) if epoch_ms > now_ms => error(format!("layout part \"epoch:{}\" is in the future", excerpt(value)), allowed),
        Some(epoch_ms) if (0..EPOCH_MS_LIMIT).contains(&epoch_ms) => Ok(epoch_ms),
        _ => error(format!("invalid layout part \"epoch:{}\"", excerpt(value)), allowed),
    }
}

/// `None` unless the text is a date, or a UTC timestamp to the millisecond.
fn epoch_ms(text: &str) -> Option<i64> {
    let epoch = text.parse().or_else(|_| format!("{text}T00:00Z").parse::<Timestamp>()).ok()?;
    // The parser also accepts time zones, leap seconds and finer fractions. Accept only what prints the same.
    let epoch_ms = epoch.as_millisecond();
    let epoch = Timestamp::from_millisecond(epoch_ms).ok()?;
    [epoch.to_string(), format!("{epoch:.3}"), epoch_text(epoch_ms)].contains(&text.to_owned()).then_some(epoch_ms)
}

#[cfg(test)]
mod tests;
