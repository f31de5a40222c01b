//! Keys: bytes that order as strings compare.
//!
//! Keys end in a byte below every unit (NO PAD), or, where strings are padded with spaces, tell at each run of
//! spaces what the run ends with, so that the end of a string sorts as endless spaces:
//!
//! ```text
//!  space  1 n     n spaces, then something smaller than a space   (more spaces: larger)
//!  space  2       the end, trailing spaces included
//!  space  3 ~n    n spaces, then something larger                 (more spaces: smaller)
//! ```

/// Units of one byte or three. Those of three never end in two zeros, which is how the others are known.
#[inline]
pub(super) fn push_unit(unit: u32, to: &mut Vec<u8>) {
    let [_, first, second, third] = unit.to_be_bytes();
    to.push(first);
    if second != 0 || third != 0 {
        to.extend_from_slice(&[second, third]);
    }
}

/// Bytes with an escape for zero, and an end below all of them.
pub(crate) fn bytes_key(mut bytes: &[u8], to: &mut Vec<u8>) {
    while let Some(zero) = bytes.iter().position(|b| *b == 0) {
        to.extend_from_slice(&bytes[..zero]);
        to.extend_from_slice(&[0, 0xff]);
        bytes = &bytes[zero + 1..];
    }
    to.extend_from_slice(bytes);
    to.extend_from_slice(&[0, 0]);
}

/// The length of such a key, at the beginning of what `byte` gives.
pub(crate) fn bytes_key_len(byte: &impl Fn(usize) -> Option<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        match (byte(at)?, byte(at + 1)) {
            (0, Some(0)) => return Some(at + 2),
            (0, _) => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of units that no run of spaces interrupts, and that a zero follows. `has_tail` says by its first byte whether a unit
/// has three.
pub(super) fn units_end(
    byte: &impl Fn(usize) -> Option<u8>,
    mut at: usize,
    has_tail: impl Fn(u8) -> bool,
) -> Option<usize> {
    loop {
        match byte(at)? {
            0 => return Some(at + 1),
            first => at += if has_tail(first) { 3 } else { 1 },
        }
    }
}

/// The end of a key that [`padded_key`] has made.
pub(super) fn padded_end(
    byte: &impl Fn(usize) -> Option<u8>,
    mut at: usize,
    space: u8,
    has_tail: impl Fn(u8) -> bool,
) -> Option<usize> {
    loop {
        let first = byte(at)?;
        if first != space {
            at += if has_tail(first) { 3 } else { 1 };
            continue;
        }
        let goes_on = match byte(at + 1)? {
            2 => return Some(at + 2),
            1 => 255,
            _ => 0,
        };
        at += 2;
        while byte(at)? == goes_on {
            at += 1;
        }
        at += 1;
    }
}

pub(super) fn padded_key(units: impl Iterator<Item = u32>, space: u32, to: &mut Vec<u8>) {
    let mut spaces = 0usize;
    for unit in units {
        if unit == space {
            spaces += 1;
            continue;
        }
        if spaces > 0 {
            push_run(unit < space, spaces, (space >> 16) as u8, to);
            spaces = 0;
        }
        push_unit(unit, to);
    }
    to.extend_from_slice(&[(space >> 16) as u8, 2]);
}

fn push_run(smaller: bool, mut spaces: usize, space: u8, to: &mut Vec<u8>) {
    let flip = if smaller { 0 } else { 0xff };
    to.extend_from_slice(&[space, if smaller { 1 } else { 3 }]);
    while spaces >= 255 {
        to.push(255 ^ flip);
        spaces -= 255;
    }
    to.push(spaces as u8 ^ flip);
}
