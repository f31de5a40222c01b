//! Parsing and printing of decimals.

use std::fmt;
use std::str::FromStr;

use arrow::datatypes::i256;

use super::{Decimal, Overflow, pow10_256};

/// What a text's longest numeric prefix is worth.
#[derive(Clone, Debug)]
pub struct DecimalPrefix {
    pub value: Decimal,
    /// Bytes of the text that were read, leading spaces included.
    pub consumed: usize,
    pub status: ParseStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseStatus {
    Exact,
    /// No digits: the value is 0.
    NotANumber,
    /// Digits past the 30th after the point were rounded off.
    Rounded,
    /// More than 65 digits: the value is the largest of its sign.
    Overflow,
}

/// Digits that an `i256` always holds.
const MAX_DIGITS: usize = 76;

/// The digits of a number, without leading zeros, and how many of them follow the point.
struct Digits {
    digits: [u8; MAX_DIGITS],
    len: usize,
    scale: i64,
    /// Digits that found no room.
    lost: i64,
    round_up: bool,
}

impl Digits {
    fn push(&mut self, digit: u8) {
        if self.len == MAX_DIGITS {
            self.round_up |= self.lost == 0 && digit >= 5;
            self.lost += 1;
        } else if self.len > 0 || digit > 0 {
            self.digits[self.len] = digit;
            self.len += 1;
        }
    }

    fn value(&self) -> i256 {
        let mut value = i256::ZERO;
        for chunk in self.digits[..self.len].chunks(18) {
            let part = chunk.iter().fold(0u64, |v, &d| v * 10 + u64::from(d));
            let power = i256::from_i128(10i128.pow(chunk.len() as u32));
            value = value.wrapping_mul(power).wrapping_add(i256::from_i128(part.into()));
        }
        if self.round_up { value.wrapping_add(i256::ONE) } else { value }
    }
}

impl Decimal {
    /// Reads the longest prefix that is a number, as MySQL does: leading spaces, a sign, digits with a
    /// point, an exponent.
    pub fn parse_prefix(text: &[u8]) -> DecimalPrefix {
        let mut at = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let negative = text.get(at) == Some(&b'-');
        if matches!(text.get(at), Some(b'-' | b'+')) {
            at += 1;
        }
        let mut digits = Digits { digits: [0; MAX_DIGITS], len: 0, scale: 0, lost: 0, round_up: false };
        let (mut seen, mut point) = (false, false);
        while let Some(&byte) = text.get(at) {
            match byte {
                b'0'..=b'9' => {
                    digits.push(byte - b'0');
                    digits.scale += i64::from(point);
                    seen = true;
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        if !seen {
            return DecimalPrefix { value: Self::ZERO, consumed: 0, status: ParseStatus::NotANumber };
        }
        if let Some((exponent, len)) = exponent(&text[at..]) {
            digits.scale -= exponent;
            at += len;
        }
        let (value, status) = assemble(&digits, negative);
        DecimalPrefix { value, consumed: at, status }
    }

    /// The decimal that prints as the shortest text of `v`, as MySQL converts doubles.
    pub fn from_f64(v: f64) -> Result<Self, Overflow> {
        if !v.is_finite() {
            return Err(Overflow);
        }
        let parsed = Self::parse_prefix(format!("{v:e}").as_bytes());
        if parsed.status == ParseStatus::Overflow { Err(Overflow) } else { Ok(parsed.value) }
    }

    /// Appends the text: sign, at least one digit before the point, exactly `scale` after it.
    pub fn write(&self, to: &mut Vec<u8>) {
        let mut buffer = [b'0'; 112];
        let first = self.digits_into(&mut buffer);
        if self.is_negative() {
            to.push(b'-');
        }
        let scale = usize::from(self.scale);
        let point = buffer.len() - scale;
        to.extend_from_slice(&buffer[first.min(point - 1)..point]);
        if scale > 0 {
            to.push(b'.');
            to.extend_from_slice(&buffer[point..]);
        }
    }

    /// The magnitude's digits at the end of `buffer`; says where they begin.
    fn digits_into(&self, buffer: &mut [u8; 112]) -> usize {
        let mut at = buffer.len();
        let mut low = match self.as_i128() {
            Some(v) => v.unsigned_abs(),
            None => {
                let mut v = self.as_i256().wrapping_abs();
                let step = i256::from_i128(10i128.pow(18));
                while v.to_i128().is_none() {
                    let rest = v.wrapping_rem(step).to_i128().expect("below 10^18") as u64;
                    v = v.wrapping_div(step);
                    at = put_digits(buffer, at, rest, 18);
                }
                v.to_i128().expect("the loop ends there").unsigned_abs()
            }
        };
        while low >= 10u128.pow(18) {
            at = put_digits(buffer, at, (low % 10u128.pow(18)) as u64, 18);
            low /= 10u128.pow(18);
        }
        put_digits(buffer, at, low as u64, 0)
    }
}

/// Writes at least `width` digits that end at `end`; says where they begin.
fn put_digits(buffer: &mut [u8; 112], end: usize, mut v: u64, width: usize) -> usize {
    let mut at = end;
    while v > 0 || end - at < width {
        at -= 1;
        buffer[at] = b'0' + (v % 10) as u8;
        v /= 10;
    }
    at
}

/// An exponent `e±n` at the start of `text`, and its length; absent unless a digit follows.
fn exponent(text: &[u8]) -> Option<(i64, usize)> {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return None;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'-' | b'+')));
    let digits = text[1 + sign..].iter().take_while(|b| b.is_ascii_digit());
    let (mut value, mut count) = (0i64, 0);
    for digit in digits {
        value = (value * 10 + i64::from(digit - b'0')).min(1_000_000);
        count += 1;
    }
    let value = if text.get(1) == Some(&b'-') { -value } else { value };
    (count > 0).then_some((value, 1 + sign + count))
}

fn assemble(digits: &Digits, negative: bool) -> (Decimal, ParseStatus) {
    let signed = |v: i256| if negative { -v } else { v };
    let overflow = (Decimal::max_of(Decimal::MAX_PRECISION, 0, negative), ParseStatus::Overflow);
    let unscaled = digits.value();
    let scale = digits.scale - digits.lost;
    let max_scale = i64::from(Decimal::MAX_SCALE);
    let (value, status) = if unscaled == i256::ZERO {
        (Decimal::new(0, scale.clamp(0, max_scale) as u8), ParseStatus::Exact)
    } else if scale < 0 {
        let power = u32::try_from(-scale).ok().and_then(pow10_256);
        match power.and_then(|p| unscaled.checked_mul(p)) {
            Some(v) => (Decimal::from_i256(signed(v), 0), ParseStatus::Exact),
            None => return overflow,
        }
    } else if scale > max_scale {
        // Scaled down in one step, so that it is rounded once.
        let rounded = u8::try_from(scale)
            .ok()
            .and_then(|scale| Decimal::from_i256(signed(unscaled), scale).rescale(Decimal::MAX_SCALE).ok());
        (rounded.unwrap_or(Decimal::new(0, Decimal::MAX_SCALE)), ParseStatus::Rounded)
    } else {
        (Decimal::from_i256(signed(unscaled), scale as u8), ParseStatus::Exact)
    };
    if value.digits() > u32::from(Decimal::MAX_PRECISION) + u32::from(value.scale()) {
        return overflow;
    }
    let lost = digits.lost > 0 && status == ParseStatus::Exact;
    (value, if lost { ParseStatus::Rounded } else { status })
}

/// The text is not a number, or has more digits than a decimal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a DECIMAL value")]
pub struct NotDecimal;

impl FromStr for Decimal {
    type Err = NotDecimal;

    fn from_str(text: &str) -> Result<Self, NotDecimal> {
        let parsed = Self::parse_prefix(text.as_bytes());
        if parsed.status == ParseStatus::Exact && parsed.consumed == text.len() {
            Ok(parsed.value)
        } else {
            Err(NotDecimal)
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(80);
        self.write(&mut text);
        f.pad(std::str::from_utf8(&text).expect("digits are ASCII"))
    }
}
