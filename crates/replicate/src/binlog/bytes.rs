//! Reading a slice from its beginning. What is cut short is an error, never a panic.

use crate::error::{ReplicateError, Result};

pub struct Bytes<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Bytes<'a> {
    pub fn new(rest: &'a [u8], what: &'static str) -> Self {
        Self { rest, what }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(ReplicateError::damaged(format!(
                "{} ends after {} of {len} bytes",
                self.what,
                self.rest.len()
            ))),
        }
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("so many were taken"))
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned little-endian integer of up to eight bytes.
    pub fn little(&mut self, len: usize) -> Result<u64> {
        let taken = self.take(len)?;
        Ok(taken.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// An unsigned big-endian integer of up to eight bytes.
    pub fn big(&mut self, len: usize) -> Result<u64> {
        let taken = self.take(len)?;
        Ok(taken.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// MySQL's integer of variable length.
    pub fn packed(&mut self) -> Result<u64> {
        match self.u8()? {
            small @ 0..=250 => Ok(small.into()),
            252 => self.little(2),
            253 => self.little(3),
            254 => self.little(8),
            other => {
                Err(ReplicateError::damaged(format!("{} has a length that begins with {other}", self.what)))
            }
        }
    }

    pub fn packed_len(&mut self) -> Result<usize> {
        let len = self.packed()?;
        match usize::try_from(len) {
            Ok(len) if len <= self.rest.len() => Ok(len),
            _ => Err(ReplicateError::damaged(format!("{} has {len} bytes, which are not there", self.what))),
        }
    }

    pub fn packed_bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.packed_len()?;
        self.take(len)
    }
}

/// The bit of a column in a bitmap, lowest first.
pub fn bit(bitmap: &[u8], at: usize) -> bool {
    bitmap.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// Bytes of a fixture.
#[cfg(test)]
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16);
    digits.chunks(2).map(|digits| pair(digits).expect("hexadecimal")).collect()
}
