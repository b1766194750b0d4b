//! A text that is parsed as a layout describes that layout, and its printed form is parsed as the same layout.

use crate::layout_spec::{SpecError, parse, spec};
use crate::{Layout, PRESETS};
use std::collections::BTreeMap;

const NOW_MS: i64 = 1_800_000_000_000;

/// Panics if a property does not hold.
pub fn check(text: &str) {
    match parse(text, NOW_MS) {
        Ok(layout) => {
            assert!(layout.is_valid() && layout.epoch_ms <= NOW_MS, "{layout:?}");
            round_trips(layout);
            assert!(says(text, &layout), "{text:?} is not {layout}");
        }
        Err(SpecError { message, allowed }) => {
            assert!(!message.is_empty() && allowed.ends_with('.'), "{message} {allowed}");
        }
    }
}

/// Panics if the layout is another one after it was packed or printed.
pub fn round_trips(layout: Layout) {
    assert_eq!(Layout::unpack(layout.pack()), Some(layout));
    assert_eq!(parse(&layout.to_string(), NOW_MS), Ok(layout));
    assert_eq!(parse(&spec(&layout), NOW_MS), Ok(layout));
}

/// Whether the text is the layout's name, or has the parts of its spec, except for the order of epoch and unit, trailing
/// zeros in the epoch's fraction, and a midnight that is spelt out.
fn says(text: &str, layout: &Layout) -> bool {
    let is_name = PRESETS.iter().any(|(name, preset)| *name == text.trim() && preset == layout);
    is_name || (parts(text) == parts(&spec(layout)) && bit_fields(text) == bit_fields(&spec(layout)))
}

fn parts(text: &str) -> Option<BTreeMap<&str, String>> {
    let parts: Vec<_> = text.split_whitespace().map(|part| part.split_once(':')).collect();
    let is_whole = parts.len() == 5;
    let map: Option<BTreeMap<_, _>> = parts.into_iter().map(|part| part.map(|(name, value)| (name, plain(name, value)))).collect();
    map.filter(|map| is_whole && map.len() == 5)
}

fn plain(name: &str, value: &str) -> String {
    match name {
        "epoch" => {
            let instant = value.trim_end_matches('Z');
            let instant = match instant.split_once('.') {
                Some((seconds, fraction)) => {
                    format!("{seconds}.{}", fraction.trim_end_matches('0'))
                }
                None => instant.to_owned(),
            };
            let instant = instant.trim_end_matches('.');
            instant.strip_suffix("T00:00:00").unwrap_or(instant).to_owned()
        }
        _ => value.to_owned(),
    }
}

fn bit_fields(text: &str) -> Vec<&str> {
    let names = text.split_whitespace().filter_map(|part| part.split(':').next());
    names.filter(|name| ["time", "shard", "shard_xor_above", "seq"].contains(name)).collect()
}
