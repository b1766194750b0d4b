//! A text is an ID exactly if Crockford's rules say so, and every ID round-trips through its text.

use crate::base32::{decode, encode};
use arbitrary::Arbitrary;

/// The input of the target.
#[derive(Debug, Arbitrary)]
pub struct Input<'a> {
    /// Perhaps an ID's.
    pub text: &'a str,
    /// An ID.
    pub id: i64,
    /// Another.
    pub other: i64,
}

/// Panics if a property does not hold.
pub fn check(Input { text, id, other }: Input<'_>) {
    assert_eq!(decode(text.as_bytes()).ok(), value_of(text), "{text:?}");
    if let Ok(id) = decode(text.as_bytes()) {
        assert_eq!(encode(id), upper(text), "one text, except for characters that look alike");
    }

    let token = encode(id);
    assert_eq!(decode(token.as_bytes()), Ok(id));
    assert_eq!(decode(token.to_lowercase().as_bytes()), Ok(id));
    if id >= 0 && other >= 0 {
        assert_eq!(id.cmp(&other), token.cmp(&encode(other)), "{id} {other}");
    }
}

/// The rules, stated independently.
fn value_of(text: &str) -> Option<i64> {
    let upper = upper(text);
    if upper.chars().count() != 13 || upper.as_bytes()[0] > b'F' {
        return None;
    }
    upper.chars().try_fold(0_u128, |value, c| Some(value * 32 + digit(c)?)).map(|value| value as i64)
}

fn upper(text: &str) -> String {
    let looks_like = |c| match c {
        'I' | 'L' => '1',
        'O' => '0',
        c => c,
    };
    text.to_ascii_uppercase().chars().map(looks_like).collect()
}

fn digit(c: char) -> Option<u128> {
    let c32 = u128::from(u32::from(c));
    match c {
        '0'..='9' => Some(c32 - 48),
        'A'..='H' => Some(c32 - 55),
        'J' | 'K' => Some(c32 - 56),
        'M' | 'N' => Some(c32 - 57),
        'P'..='T' => Some(c32 - 58),
        'V'..='Z' => Some(c32 - 59),
        _ => None,
    }
}
