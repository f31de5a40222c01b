//! Exact decimals of up to 65 digits.

use arrow::datatypes::i256;

/// `unscaled / 10^scale`. Values that fit 38 digits stay in an `i128`; wider ones are boxed.
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

impl Decimal {
    pub const MAX_PRECISION: u8 = 65;
    pub const MAX_SCALE: u8 = 30;

    pub fn new(unscaled: i128, scale: u8) -> Self {
        Self { repr: Repr::Small([unscaled as u64, (unscaled >> 64) as u64]), scale }
    }

    pub fn from_i256(unscaled: i256, scale: u8) -> Self {
        match unscaled.to_i128() {
            Some(small) => Self::new(small, scale),
            None => Self { repr: Repr::Wide(Box::new(unscaled)), scale },
        }
    }

    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// The unscaled value, if it fits an `i128`.
    pub fn as_i128(&self) -> Option<i128> {
        match &self.repr {
            Repr::Small([low, high]) => Some(i128::from(*high as i64) << 64 | i128::from(*low)),
            Repr::Wide(_) => None,
        }
    }

    pub fn as_i256(&self) -> i256 {
        match &self.repr {
            Repr::Small(_) => i256::from_i128(self.as_i128().expect("small values fit an i128")),
            Repr::Wide(wide) => **wide,
        }
    }
}
