//! Unsigned 512-bit integers, for the products and quotients of 256-bit ones. Only values of more than 38
//! digits come here, so the division is the plain one bit at a time.

use std::cmp::Ordering;

use arrow::datatypes::i256;

/// Little-endian limbs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct U512([u64; 8]);

impl U512 {
    pub const ZERO: Self = Self([0; 8]);

    /// The magnitude of `v`.
    pub fn magnitude(v: i256) -> Self {
        let bytes = v.wrapping_abs().to_le_bytes();
        let mut limbs = [0; 8];
        for (limb, raw) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *limb = u64::from_le_bytes(*raw);
        }
        Self(limbs)
    }

    /// The value with a sign, if it fits 255 bits.
    pub fn to_i256(self, negative: bool) -> Option<i256> {
        if self.0[4..] != [0; 4] || self.0[3] >> 63 != 0 {
            return None;
        }
        let mut bytes = [0; 32];
        for (raw, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *raw = limb.to_le_bytes();
        }
        let v = i256::from_le_bytes(bytes);
        Some(if negative { -v } else { v })
    }

    /// `self × 10^n`, if it fits.
    pub fn mul_pow10(mut self, mut n: u32) -> Option<Self> {
        while n > 0 {
            let step = n.min(19);
            self = self.mul_small(10u64.pow(step))?;
            n -= step;
        }
        Some(self)
    }

    fn mul_small(self, by: u64) -> Option<Self> {
        let mut limbs = [0; 8];
        let mut carry = 0u128;
        for (to, limb) in limbs.iter_mut().zip(self.0) {
            let wide = u128::from(limb) * u128::from(by) + carry;
            *to = wide as u64;
            carry = wide >> 64;
        }
        (carry == 0).then_some(Self(limbs))
    }

    /// The product of two values of at most 256 bits.
    pub fn mul(self, other: Self) -> Self {
        let mut limbs = [0u64; 8];
        for i in 0..4 {
            let mut carry = 0u128;
            for j in 0..4 {
                let at = i + j;
                let wide = u128::from(self.0[i]) * u128::from(other.0[j]) + u128::from(limbs[at]) + carry;
                limbs[at] = wide as u64;
                carry = wide >> 64;
            }
            limbs[i + 4] = carry as u64;
        }
        Self(limbs)
    }

    /// Quotient and remainder by 10^n.
    pub fn div_pow10(self, n: u32) -> (Self, Self) {
        let mut one = Self::ZERO;
        one.0[0] = 1;
        match one.mul_pow10(n) {
            Some(power) => self.div_rem(power),
            None => (Self::ZERO, self),
        }
    }

    /// Quotient and remainder; `by` is not zero.
    pub fn div_rem(self, by: Self) -> (Self, Self) {
        let (mut quotient, mut rest) = (Self::ZERO, Self::ZERO);
        for bit in (0..self.bits()).rev() {
            let carried = rest.0[7] >> 63 != 0;
            rest = rest.double();
            rest.0[0] |= self.0[bit / 64] >> (bit % 64) & 1;
            if carried || rest >= by {
                rest = rest.wrapping_sub(by);
                quotient.0[bit / 64] |= 1 << (bit % 64);
            }
        }
        (quotient, rest)
    }

    /// Whether twice the value is at least `by`.
    pub fn is_half_of(self, by: Self) -> bool {
        self.0[7] >> 63 != 0 || self.double() >= by
    }

    pub fn plus_one(mut self) -> Self {
        for limb in &mut self.0 {
            let (sum, carried) = limb.overflowing_add(1);
            *limb = sum;
            if !carried {
                break;
            }
        }
        self
    }

    fn bits(self) -> usize {
        (0..8).rev().find(|&i| self.0[i] != 0).map_or(0, |i| i * 64 + 64 - self.0[i].leading_zeros() as usize)
    }

    fn double(self) -> Self {
        let mut limbs = [0; 8];
        let mut carry = 0;
        for (to, limb) in limbs.iter_mut().zip(self.0) {
            *to = limb << 1 | carry;
            carry = limb >> 63;
        }
        Self(limbs)
    }

    fn wrapping_sub(self, other: Self) -> Self {
        let mut limbs = [0; 8];
        let mut borrow = false;
        for (to, (a, b)) in limbs.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (rest, first) = a.overflowing_sub(b);
            let (rest, second) = rest.overflowing_sub(borrow.into());
            *to = rest;
            borrow = first || second;
        }
        Self(limbs)
    }
}

impl PartialOrd for U512 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for U512 {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}
