//! Exact decimals of up to 65 digits, with MySQL's rules for scale, rounding and overflow.
//!
//! A value is `unscaled / 10^scale`. Everything that fits 38 digits is computed in an `i128`; the rest in
//! 256 bits, and products and quotients of those in 512 (`wide`). The scale is part of how a value prints,
//! not of what it is: `1.0` and `1.00` are equal and hash alike.
//!
//! - `arith`: + − × ÷ % and rounding
//! - `text`: parsing and printing
//! - `wide`: 512-bit magnitudes

mod arith;
mod text;
mod wide;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use arrow::datatypes::i256;
use thiserror::Error;

use crate::sql_type::SqlType;

pub use text::{DecimalPrefix, ParseStatus};

/// `unscaled / 10^scale`. Values that fit an `i128` stay in one; wider ones are boxed.
#[derive(Clone, Debug)]
pub struct Decimal {
    repr: Repr,
    scale: u8,
}

#[derive(Clone, Debug)]
enum Repr {
    Small([u64; 2]),
    Wide(Box<i256>),
}

/// A result has too many digits before the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("DECIMAL value is out of range")]
pub struct Overflow;

/// 10^n for n in 0..=38.
pub const POW10: [i128; 39] = {
    let mut table = [1; 39];
    let mut n = 1;
    while n < 39 {
        table[n] = table[n - 1] * 10;
        n += 1;
    }
    table
};

/// 10^n, if it fits 256 bits (n ≤ 76).
pub fn pow10_256(n: u32) -> Option<i256> {
    let power = |n: u32| POW10.get(n as usize).copied().map(i256::from_i128);
    match n {
        0..=38 => power(n),
        _ => i256::from_i128(POW10[38]).checked_mul(power(n - 38)?),
    }
}

impl Decimal {
    pub const MAX_PRECISION: u8 = 65;
    pub const MAX_SCALE: u8 = 30;
    pub const ZERO: Self = Self::new(0, 0);

    #[inline]
    pub const fn new(unscaled: i128, scale: u8) -> Self {
        Self { repr: Repr::Small([unscaled as u64, (unscaled >> 64) as u64]), scale }
    }

    pub fn from_i256(unscaled: i256, scale: u8) -> Self {
        match unscaled.to_i128() {
            Some(small) => Self::new(small, scale),
            None => Self { repr: Repr::Wide(Box::new(unscaled)), scale },
        }
    }

    #[inline]
    pub const fn scale(&self) -> u8 {
        self.scale
    }

    /// The unscaled value, if it fits an `i128`.
    #[inline]
    pub const fn as_i128(&self) -> Option<i128> {
        match &self.repr {
            Repr::Small([low, high]) => Some(((*high as i64 as i128) << 64) | *low as i128),
            Repr::Wide(_) => None,
        }
    }

    pub fn as_i256(&self) -> i256 {
        match &self.repr {
            Repr::Small(_) => i256::from_i128(self.as_i128().expect("small values fit an i128")),
            Repr::Wide(wide) => **wide,
        }
    }

    /// The value nearest to zero or farthest from it that DECIMAL(precision, scale) can hold: all nines.
    pub fn max_of(precision: u8, scale: u8, negative: bool) -> Self {
        let nines = pow10_256(precision.min(76).into()).expect("at most 76 digits") - i256::ONE;
        Self::from_i256(if negative { -nines } else { nines }, scale)
    }

    pub fn is_zero(&self) -> bool {
        self.as_i128() == Some(0)
    }

    pub fn is_negative(&self) -> bool {
        match &self.repr {
            Repr::Small([_, high]) => (*high as i64) < 0,
            Repr::Wide(wide) => wide.is_negative(),
        }
    }

    /// The type that holds it and nothing longer.
    pub fn own_type(&self) -> SqlType {
        let precision = (self.digits().min(65) as u8).max(self.scale).max(1);
        SqlType::Decimal { precision, scale: self.scale, unsigned: false }
    }

    /// Digits of the unscaled value, at least 1.
    pub fn digits(&self) -> u32 {
        match self.as_i128() {
            Some(v) => v.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1),
            None => {
                let magnitude = self.as_i256().wrapping_abs();
                (39..=76).find(|&n| pow10_256(n).is_some_and(|p| magnitude < p)).unwrap_or(77)
            }
        }
    }

    /// Whether DECIMAL(precision, scale) holds the value's integer part, its scale being at most `scale`.
    pub fn fits(&self, precision: u8, scale: u8) -> bool {
        self.is_zero() || self.digits() + u32::from(scale) <= u32::from(precision) + u32::from(self.scale)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Some(a), Some(b)) = (self.as_i128(), other.as_i128()) {
            let shift = self.scale.abs_diff(other.scale);
            if shift == 0 {
                return a.cmp(&b);
            }
            if let Some(power) = POW10.get(usize::from(shift)) {
                if self.scale < other.scale {
                    if let Some(a) = a.checked_mul(*power) {
                        return a.cmp(&b);
                    }
                } else if let Some(b) = b.checked_mul(*power) {
                    return a.cmp(&b);
                }
            }
        }
        self.cmp_wide(other)
    }
}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let stripped = self.strip_zeros();
        stripped.scale.hash(state);
        match stripped.as_i128() {
            Some(v) => v.hash(state),
            None => stripped.as_i256().to_le_bytes().hash(state),
        }
    }
}

#[cfg(test)]
mod tests;
