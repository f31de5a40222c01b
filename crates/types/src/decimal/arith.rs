//! Arithmetic, rounding and conversion of decimals.
//!
//! Results have MySQL's scales: `+ − %` the larger one, `×` the sum, `÷` the dividend's plus
//! `div_precision_increment`, all at most 30. Rounding is half away from zero. MySQL divides in words of
//! nine digits: where the quotient's scale is exactly the number of digits so computed, the last one is cut
//! rather than rounded (`2.00000 / 3` is `0.666666666`); `div` does the same.

use std::cmp::Ordering;

use arrow::datatypes::i256;

use super::wide::U512;
use super::{Decimal, Overflow, POW10, pow10_256};

/// Digits in a word of MySQL's decimals.
const WORD: u32 = 9;

impl Decimal {
    #[inline]
    pub fn add(&self, other: &Self) -> Result<Self, Overflow> {
        if self.scale == other.scale
            && let (Some(a), Some(b)) = (self.as_i128(), other.as_i128())
            && let Some(sum) = a.checked_add(b)
        {
            return Ok(Self::new(sum, self.scale));
        }
        self.add_slow(other)
    }

    #[inline]
    pub fn sub(&self, other: &Self) -> Result<Self, Overflow> {
        if self.scale == other.scale
            && let (Some(a), Some(b)) = (self.as_i128(), other.as_i128())
            && let Some(difference) = a.checked_sub(b)
        {
            return Ok(Self::new(difference, self.scale));
        }
        self.add_slow(&other.neg())
    }

    /// Adds at the larger scale or, where the sum has no room for so many digits, at the largest that fits.
    fn add_slow(&self, other: &Self) -> Result<Self, Overflow> {
        let scale = self.scale.max(other.scale);
        (0..=scale)
            .rev()
            .find_map(|scale| {
                let a = self.truncate(scale.into()).extend(scale)?.as_i256();
                let b = other.truncate(scale.into()).extend(scale)?.as_i256();
                Some(Self::from_i256(a.checked_add(b)?, scale))
            })
            .ok_or(Overflow)
    }

    #[inline]
    pub fn mul(&self, other: &Self) -> Result<Self, Overflow> {
        let scale = self.scale + other.scale;
        if scale <= Self::MAX_SCALE
            && let (Some(a), Some(b)) = (self.as_i128(), other.as_i128())
            && let Some(product) = a.checked_mul(b)
        {
            return Ok(Self::new(product, scale));
        }
        self.mul_slow(other)
    }

    fn mul_slow(&self, other: &Self) -> Result<Self, Overflow> {
        let (a, b) = (self.as_i256(), other.as_i256());
        let negative = a.is_negative() != b.is_negative();
        let product = U512::magnitude(a).mul(U512::magnitude(b));
        let exact = u32::from(self.scale) + u32::from(other.scale);
        let scale = exact.min(Self::MAX_SCALE.into());
        // Fewer digits after the point where the product has no room for all of them.
        (0..=scale)
            .rev()
            .find_map(|scale| {
                let (mut quotient, rest) = product.div_pow10(exact - scale);
                let power = U512::magnitude(i256::ONE).mul_pow10(exact - scale)?;
                if exact > scale && rest.is_half_of(power) {
                    quotient = quotient.plus_one();
                }
                Some(Self::from_i256(quotient.to_i256(negative)?, scale as u8))
            })
            .ok_or(Overflow)
    }

    /// `self / other` with `scale` digits after the point, or as many as `self` has if these are more; `None` if `other` is
    /// zero.
    pub fn div(&self, other: &Self, scale: u8) -> Result<Option<Self>, Overflow> {
        if other.is_zero() {
            return Ok(None);
        }
        let increment = scale.saturating_sub(self.scale);
        let scale = self.scale + increment;
        let shift = u32::from(increment) + u32::from(other.scale);
        let cuts =
            u32::from(scale) == words_of_quotient(self.scale.into(), other.scale.into(), increment.into());
        if let (Some(a), Some(b)) = (self.as_i128(), other.as_i128())
            && let Some(power) = POW10.get(shift as usize)
            && let Some(numerator) = a.checked_mul(*power)
            && let (Some(quotient), Some(rest)) = (numerator.checked_div(b), numerator.checked_rem(b))
        {
            let up = !cuts && rest.unsigned_abs() >= b.unsigned_abs() - rest.unsigned_abs();
            let away = if (a < 0) == (b < 0) { 1 } else { -1 };
            return Ok(Some(Self::new(quotient + if up { away } else { 0 }, scale)));
        }
        let (a, b) = (self.as_i256(), other.as_i256());
        let divisor = U512::magnitude(b);
        let numerator = U512::magnitude(a).mul_pow10(shift).ok_or(Overflow)?;
        let (mut quotient, rest) = numerator.div_rem(divisor);
        if !cuts && rest.is_half_of(divisor) {
            quotient = quotient.plus_one();
        }
        let quotient = quotient.to_i256(a.is_negative() != b.is_negative()).ok_or(Overflow)?;
        Ok(Some(Self::from_i256(quotient, scale)))
    }

    /// `self DIV other`, cut to an integer; `None` if `other` is zero.
    pub fn int_div(&self, other: &Self) -> Result<Option<Self>, Overflow> {
        if other.is_zero() {
            return Ok(None);
        }
        let (a, b) = (self.as_i256(), other.as_i256());
        let numerator = U512::magnitude(a).mul_pow10(other.scale.into()).ok_or(Overflow)?;
        let divisor = U512::magnitude(b).mul_pow10(self.scale.into()).ok_or(Overflow)?;
        let quotient = numerator.div_rem(divisor).0.to_i256(a.is_negative() != b.is_negative());
        Ok(Some(Self::from_i256(quotient.ok_or(Overflow)?, 0)))
    }

    /// `self % other`, with the sign of `self`; `None` if `other` is zero.
    pub fn rem(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let scale = self.scale.max(other.scale);
        if let (Some(a), Some(b)) = (self.extend(scale), other.extend(scale))
            && let (Some(a), Some(b)) = (a.as_i128(), b.as_i128())
        {
            return Some(Self::new(a.checked_rem(b).unwrap_or(0), scale));
        }
        let numerator = U512::magnitude(self.as_i256()).mul_pow10((scale - self.scale).into())?;
        let divisor = U512::magnitude(other.as_i256()).mul_pow10((scale - other.scale).into())?;
        let rest = numerator.div_rem(divisor).1;
        match rest.to_i256(self.is_negative()) {
            Some(rest) => Some(Self::from_i256(rest, scale)),
            None => Some(self.clone()),
        }
    }

    pub fn neg(&self) -> Self {
        match self.as_i128().and_then(i128::checked_neg) {
            Some(v) => Self::new(v, self.scale),
            None => Self::from_i256(self.as_i256().wrapping_neg(), self.scale),
        }
    }

    pub fn abs(&self) -> Self {
        if self.is_negative() { self.neg() } else { self.clone() }
    }

    /// The same value with more digits after the point; `None` if it does not fit 256 bits.
    fn extend(&self, scale: u8) -> Option<Self> {
        let shift = u32::from(scale.checked_sub(self.scale)?);
        if shift == 0 {
            return Some(self.clone());
        }
        if let (Some(v), Some(power)) = (self.as_i128(), POW10.get(shift as usize))
            && let Some(v) = v.checked_mul(*power)
        {
            return Some(Self::new(v, scale));
        }
        Some(Self::from_i256(self.as_i256().checked_mul(pow10_256(shift)?)?, scale))
    }

    /// The value with exactly `scale` digits after the point, rounded half away from zero.
    #[inline]
    pub fn rescale(&self, scale: u8) -> Result<Self, Overflow> {
        match self.scale.cmp(&scale) {
            Ordering::Equal => Ok(self.clone()),
            Ordering::Less => self.extend(scale).ok_or(Overflow),
            Ordering::Greater => Ok(self.drop_digits((self.scale - scale).into(), true)),
        }
    }

    /// The same value with as few digits after the point as it has.
    pub fn without_last_zeros(&self) -> Self {
        let ten = i256::from_i128(10);
        let (mut unscaled, mut scale) = (self.as_i256(), self.scale);
        while scale > 0 && unscaled.wrapping_rem(ten) == i256::ZERO {
            (unscaled, scale) = (unscaled.wrapping_div(ten), scale - 1);
        }
        Self::from_i256(unscaled, scale)
    }

    /// ROUND(self, digits): to at most `digits` after the point; negative counts before it.
    pub fn round(&self, digits: i32) -> Self {
        self.cut(digits, true)
    }

    /// TRUNCATE(self, digits).
    pub fn truncate(&self, digits: i32) -> Self {
        self.cut(digits, false)
    }

    fn cut(&self, digits: i32, round: bool) -> Self {
        let dropped = i32::from(self.scale).saturating_sub(digits);
        if dropped <= 0 {
            return self.clone();
        }
        let cut = self.drop_digits(dropped as u32, round);
        if digits >= 0 {
            return cut;
        }
        // Rounded before the point: the zeros come back.
        let zeros = digits.unsigned_abs();
        let value = pow10_256(zeros).and_then(|power| cut.as_i256().checked_mul(power));
        Self::from_i256(value.unwrap_or(i256::ZERO), 0)
    }

    /// Drops the last `count` digits of the unscaled value; the scale falls by as many, down to 0.
    fn drop_digits(&self, count: u32, round: bool) -> Self {
        let scale = u32::from(self.scale).saturating_sub(count) as u8;
        if let (Some(v), Some(power)) = (self.as_i128(), POW10.get(count as usize)) {
            let (quotient, rest) = (v / power, v % power);
            let up = round && rest.unsigned_abs() >= power.unsigned_abs() - rest.unsigned_abs();
            return Self::new(quotient + if up { v.signum() } else { 0 }, scale);
        }
        let Some(power) = pow10_256(count) else { return Self::new(0, scale) };
        let v = self.as_i256();
        let (mut quotient, rest) = (v.wrapping_div(power), v.wrapping_rem(power).wrapping_abs());
        if round && rest >= power - rest {
            quotient = if v.is_negative() { quotient - i256::ONE } else { quotient + i256::ONE };
        }
        Self::from_i256(quotient, scale)
    }

    pub fn ceil(&self) -> Self {
        let cut = self.truncate(0);
        if !self.is_negative() && cut < *self { Self::from_i256(cut.as_i256() + i256::ONE, 0) } else { cut }
    }

    pub fn floor(&self) -> Self {
        let cut = self.truncate(0);
        if self.is_negative() && cut > *self { Self::from_i256(cut.as_i256() - i256::ONE, 0) } else { cut }
    }

    /// The value without zeros at the end of its fraction.
    pub(super) fn strip_zeros(&self) -> Self {
        let mut stripped = self.clone();
        while stripped.scale > 0 {
            let shorter = stripped.drop_digits(1, false);
            if shorter.cmp(&stripped).is_ne() {
                break;
            }
            stripped = shorter;
        }
        stripped
    }

    #[cold]
    pub(super) fn cmp_wide(&self, other: &Self) -> Ordering {
        let negative = self.is_negative();
        if negative != other.is_negative() {
            return other.is_negative().cmp(&negative);
        }
        let scale = self.scale.max(other.scale);
        let scaled = |d: &Self| U512::magnitude(d.as_i256()).mul_pow10((scale - d.scale).into());
        let order = match (scaled(self), scaled(other)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        };
        if negative { order.reverse() } else { order }
    }

    /// The nearest integer, half away from zero; `None` if it is out of range.
    pub fn to_i64(&self) -> Option<i64> {
        self.round(0).as_i128().and_then(|v| v.try_into().ok())
    }

    /// The nearest integer, half away from zero; `None` if it is out of range.
    pub fn to_u64(&self) -> Option<u64> {
        self.round(0).as_i128().and_then(|v| v.try_into().ok())
    }

    /// The nearest double.
    /// The whole number, and millionths of what is behind the point, rounded: a million of them, perhaps.
    pub fn whole_and_micros(&self) -> Option<(i64, i64)> {
        let whole = self.truncate(0);
        let fraction = self.sub(&whole).ok()?.rescale(6).ok()?.as_i128()?;
        Some((whole.to_i64()?, i64::try_from(fraction).ok()?))
    }

    pub fn to_f64(&self) -> f64 {
        /// Powers of ten that a double holds exactly.
        const EXACT: [f64; 23] = [
            1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
            1e18, 1e19, 1e20, 1e21, 1e22,
        ];
        if let Some(v) = self.as_i128()
            && v.unsigned_abs() < 1 << 53
            && let Some(power) = EXACT.get(usize::from(self.scale))
        {
            return v as f64 / power;
        }
        self.to_string().parse().expect("a decimal's text is a number")
    }
}

/// Digits after the point that MySQL's division computes for operands of these scales.
fn words_of_quotient(dividend: u32, divisor: u32, increment: u32) -> u32 {
    let whole = |scale: u32| scale.next_multiple_of(WORD);
    let (a, b) = (whole(dividend), whole(divisor));
    let spare = (a - dividend) + (b - divisor);
    whole(a + b + increment.saturating_sub(spare))
}

impl From<i64> for Decimal {
    fn from(v: i64) -> Self {
        Self::new(v.into(), 0)
    }
}

impl From<u64> for Decimal {
    fn from(v: u64) -> Self {
        Self::new(v.into(), 0)
    }
}
