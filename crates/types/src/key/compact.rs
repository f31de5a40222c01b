//! Integers in as few bytes as they need, in an order that comparing bytes finds.
//!
//! ```text
//!  first byte    00 … 07          08 … f7            f8 … ff
//!  number        below 0          0 … 239            240 and more
//!  behind it     8 … 1 bytes      –                  1 … 8 bytes
//! ```
//!
//! What follows is the number's last bytes, big-endian (of a negative one in two's complement), no more than it needs. The
//! first byte says how many, so that no code is the beginning of another; it grows with the number.
//!
//! Most keys are small numbers, several in a row. Short ones differ within the bytes that nodes of an index keep at hand (see
//! `storage::index`), and take less memory.

/// First byte of 0.
const ZERO: u8 = 0x08;
/// The least number with bytes behind the first one.
const LARGE: u64 = 240;
/// First byte of numbers with no bytes behind it; 1 more for each that there is.
const LARGE_BYTE: u8 = 0xf7;

/// Most bytes of a number.
const MAX_LEN: usize = 9;

/// The code of a number: bytes, and how many of them count.
#[inline]
fn code(v: i64) -> ([u8; MAX_LEN], usize) {
    if v >= 0 { code_unsigned(v as u64) } else { code_negative(v) }
}

#[inline]
fn code_unsigned(v: u64) -> ([u8; MAX_LEN], usize) {
    if v < LARGE {
        return ([ZERO + v as u8, 0, 0, 0, 0, 0, 0, 0, 0], 1);
    }
    let bytes = 8 - v.leading_zeros() as usize / 8;
    with_bytes(LARGE_BYTE + bytes as u8, v, bytes)
}

fn code_negative(v: i64) -> ([u8; MAX_LEN], usize) {
    // -1 needs no bit, and takes one byte all the same.
    let bytes = (8 - (!v).leading_zeros() as usize / 8).max(1);
    with_bytes(ZERO - bytes as u8, v as u64, bytes)
}

/// A first byte, and the last bytes of a number.
#[inline]
fn with_bytes(first: u8, v: u64, bytes: usize) -> ([u8; MAX_LEN], usize) {
    let mut code = [first, 0, 0, 0, 0, 0, 0, 0, 0];
    code[1..].copy_from_slice(&(v << (64 - 8 * bytes)).to_be_bytes());
    (code, 1 + bytes)
}

/// Appends a number to a key.
#[inline]
pub fn push(v: i64, key: &mut Vec<u8>) {
    append(code(v), key);
}

/// The same, of one that may lie beyond `i64`. Both write the same for a number that both can have.
#[inline]
pub fn push_unsigned(v: u64, key: &mut Vec<u8>) {
    append(code_unsigned(v), key);
}

#[inline]
fn append((code, len): ([u8; MAX_LEN], usize), key: &mut Vec<u8>) {
    if len == 1 {
        return key.push(code[0]);
    }
    // Of fixed length, which is faster, and then without what does not count.
    key.extend_from_slice(&code);
    key.truncate(key.len() + len - MAX_LEN);
}

/// The length of a number's code, by its first byte.
pub fn len(first: u8) -> usize {
    match first {
        ..ZERO => 1 + usize::from(ZERO - first),
        _ => 1 + usize::from(first.saturating_sub(LARGE_BYTE)),
    }
}

/// What follows a number at the beginning of a key; `None` if another one stands there.
#[inline]
pub fn strip(v: i64, key: &[u8]) -> Option<&[u8]> {
    without(code(v), key)
}

/// The same, of a number that may lie beyond `i64`.
#[inline]
pub fn strip_unsigned(v: u64, key: &[u8]) -> Option<&[u8]> {
    without(code_unsigned(v), key)
}

#[inline]
fn without((code, len): ([u8; MAX_LEN], usize), key: &[u8]) -> Option<&[u8]> {
    let (first, rest) = key.split_first()?;
    if *first != code[0] {
        return None;
    }
    if len == 1 {
        return Some(rest);
    }
    let (bytes, rest) = rest.split_at_checked(len - 1)?;
    bytes.iter().zip(&code[1..]).all(|(a, b)| a == b).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(v: i64) -> Vec<u8> {
        let mut key = Vec::new();
        push(v, &mut key);
        key
    }

    #[test]
    fn every_length_and_its_edges_are_in_order() {
        let mut numbers: Vec<i64> = vec![i64::MIN, i64::MAX, 0, -1, 1, 239, 240, 241];
        for bits in 0..63 {
            let power = 1i64 << bits;
            numbers.extend([power - 1, power, power + 1, -power - 1, -power, 1 - power]);
        }
        numbers.sort_unstable();
        numbers.dedup();
        for pair in numbers.windows(2) {
            let (less, more) = (key(pair[0]), key(pair[1]));
            assert!(less < more && !more.starts_with(&less), "{pair:?}: {less:x?} {more:x?}");
        }
        for v in numbers {
            let mut at = key(v);
            at.push(7);
            assert_eq!(strip(v, &at), Some(&[7][..]), "{v}");
            assert_eq!(strip(v.wrapping_add(1), &at), None);
            assert_eq!(strip(v, &at[..at.len() - 2]), None);
        }
    }

    #[test]
    fn small_numbers_are_short_and_large_ones_go_on_beyond_i64() {
        assert_eq!(
            [0, 239, 240, 3000, 100_000, -1, -256, -257].map(|v| key(v).len()),
            [1, 1, 2, 3, 4, 2, 2, 3]
        );
        let mut last = key(i64::MAX);
        for v in [1 << 63, u64::MAX] {
            let mut next = Vec::new();
            push_unsigned(v, &mut next);
            assert!(last < next);
            last = next;
        }
    }
}
