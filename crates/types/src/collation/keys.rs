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
