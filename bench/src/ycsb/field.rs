//! Values that say what they are: a field's 100 characters begin with a stamp, and the rest follows from the key's number, the
//! field and the stamp. A value that was torn, mixed up with another's, or never written does not check.
//!
//! A stamp names the write: 0 for the load, otherwise the writer and its count. Read-modify-write adds one to the stamp.

use crate::error::{Error, Result};

pub const FIELDS: usize = 10;
const LENGTH: usize = 100;
/// Characters of a stamp, six bits each.
const STAMP: usize = 11;
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// Which write a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, PartialOrd, Ord)]
pub struct Stamp(pub u64);

/// Appends the value of a field.
pub fn value(number: u64, field: usize, stamp: Stamp, out: &mut String) {
    out.extend((0..STAMP).map(|digit| char::from(DIGITS[(stamp.0 >> (6 * digit) & 63) as usize])));
    let mut state = mix(number ^ mix(stamp.0 ^ ((field as u64 + 1) << 58)));
    let mut left = LENGTH - STAMP;
    while left > 0 {
        state = mix(state);
        // Ten characters of six bits out of each word.
        let count = left.min(10);
        out.extend((0..count).map(|digit| char::from(DIGITS[(state >> (6 * digit) & 63) as usize])));
        left -= count;
    }
}

/// SplitMix64's step.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The stamp of a value that was read, if the value is one of this field. `scratch` is only kept for its allocation.
pub fn stamp(number: u64, field: usize, read: &[u8], scratch: &mut String) -> Result<Stamp> {
    let digits = read.get(..STAMP).unwrap_or_default();
    let stamp = digits.iter().rev().fold(0_u64, |stamp, c| stamp << 6 | digit(*c));
    scratch.clear();
    value(number, field, Stamp(stamp), scratch);
    if scratch.as_bytes() == read {
        return Ok(Stamp(stamp));
    }
    let read = String::from_utf8_lossy(read);
    Err(Error::Check(format!("field {field} of key {number} is '{read}', which nobody wrote")))
}

fn digit(c: u8) -> u64 {
    DIGITS.iter().position(|d| *d == c).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_stamp_and_only_its_own() {
        let mut scratch = String::new();
        for bits in [0, 1, 77, u64::MAX] {
            let mut text = String::new();
            value(5, 3, Stamp(bits), &mut text);
            assert_eq!(text.len(), LENGTH);
            assert_eq!(stamp(5, 3, text.as_bytes(), &mut scratch).unwrap(), Stamp(bits));
            assert!(stamp(6, 3, text.as_bytes(), &mut scratch).is_err(), "another key's");
            assert!(stamp(5, 4, text.as_bytes(), &mut scratch).is_err(), "another field's");
            let torn = text.replace(&text[40..41], "\u{7f}");
            assert!(stamp(5, 3, torn.as_bytes(), &mut scratch).is_err(), "a torn one");
        }
        assert!(stamp(5, 3, b"short", &mut scratch).is_err());
    }
}
