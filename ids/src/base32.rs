//! IDs as 13 characters of Crockford's base 32, which sort in the order of the IDs.
//!
//! Crockford's alphabet omits I, L, O and U. Decoding reads I and L as 1 and O as 0, so an ID can be read aloud
//! and typed. 13 characters hold 65 bits, so the first is at most F.

use std::error::Error;
use std::fmt;

/// The number of characters of an ID.
const LENGTH: usize = 13;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Why a text is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base32Error {
    /// The text has this many bytes instead of 13.
    Length(usize),
    /// The text contains a character that is not ASCII.
    NotAscii,
    /// The text contains this character, which is not in the alphabet.
    Character(char),
    /// The text begins with this character, above F: the value has more than 64 bits.
    TooLarge(char),
}

impl fmt::Display for Base32Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Base32Error::Length(length) => write!(f, "The text has {length} bytes, not {LENGTH}."),
            Base32Error::NotAscii => f.write_str("The text contains a character that is not ASCII."),
            Base32Error::Character(c) => write!(f, "The text contains the character \"{c}\"."),
            Base32Error::TooLarge(c) => write!(f, "The text begins with \"{c}\". Above F, the value has more than 64 bits."),
        }
    }
}

impl Error for Base32Error {}

/// The ID as upper-case text. The texts of nonnegative IDs sort bytewise as the IDs do.
///
/// ```
/// use pg_snowflake_ids::base32;
///
/// assert_eq!(base32::encode(1_541_815_603_606_036_480), "1ASD13XH1F800");
/// ```
pub fn encode(id: i64) -> String {
    let bits = id as u64;
    (0..LENGTH).rev().map(|place| char::from(ALPHABET[(bits >> (5 * place) & 31) as usize])).collect()
}

/// Parses an ID, in upper or lower case. It takes bytes, because a text in another encoding is not a Rust string.
///
/// ```
/// use pg_snowflake_ids::base32::{self, Base32Error};
///
/// assert_eq!(base32::decode(b"1asdl3xhif8oo"), Ok(1_541_815_603_606_036_480));
/// assert_eq!(base32::decode(b"1ASD13XH1F80U"), Err(Base32Error::Character('U')));
/// ```
pub fn decode(text: &[u8]) -> Result<i64, Base32Error> {
    // Check the length first: a text can have 1 GB.
    if text.len() != LENGTH {
        return Err(Base32Error::Length(text.len()));
    }
    if !text.is_ascii() {
        return Err(Base32Error::NotAscii);
    }
    let mut bits = 0_u64;
    for (place, &byte) in text.iter().enumerate() {
        let c = char::from(byte);
        let digit = digit(c).ok_or(Base32Error::Character(c))?;
        if place == 0 && digit > 15 {
            return Err(Base32Error::TooLarge(c));
        }
        bits = bits << 5 | u64::from(digit);
    }
    Ok(bits as i64)
}

fn digit(c: char) -> Option<u8> {
    let upper = match c.to_ascii_uppercase() {
        'I' | 'L' => '1',
        'O' => '0',
        other => other,
    };
    let place = ALPHABET.iter().position(|&letter| char::from(letter) == upper)?;
    u8::try_from(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::base32::{Input, check};
    use proptest::prelude::*;

    /// Beside those whose whole errors the script `forms` has.
    #[test]
    fn a_text_that_is_not_ascii_is_refused() {
        assert_eq!(decode("00000000000é".as_bytes()), Err(Base32Error::NotAscii));
        assert_eq!(decode("00000000000é0".as_bytes()), Err(Base32Error::Length(14)));
    }

    proptest! {
        #[test]
        fn properties_of_texts(text in ".{0,20}|[0-9A-Fa-f][0-9A-Za-z]{12}", id: i64, other: i64) {
            check(Input { text: &text, id, other });
        }
    }
}
