//! Little-endian byte codecs for persisted structures: a writer that appends to a `Vec<u8>` and a
//! reader that never panics and never reads past its input, whatever the bytes are.

use thiserror::Error;

/// Persisted bytes do not have the form they must have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("malformed {what} at byte {at}")]
pub struct Malformed {
    /// What was being read.
    pub what: &'static str,
    /// Offset from the start of the reader's input, in bytes.
    pub at: usize,
}

/// Appends little-endian values to a buffer.
pub trait Put {
    fn put_u8(&mut self, v: u8);
    fn put_u16(&mut self, v: u16);
    fn put_u32(&mut self, v: u32);
    fn put_u64(&mut self, v: u64);
    fn put_i64(&mut self, v: i64);
    fn put_i128(&mut self, v: i128);
    fn put_f64(&mut self, v: f64);
    /// LEB128, at most 10 bytes.
    fn put_varint(&mut self, v: u64);
    /// A varint length and the bytes.
    fn put_bytes(&mut self, v: &[u8]);
    fn put_str(&mut self, v: &str) {
        self.put_bytes(v.as_bytes());
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn put_u8(&mut self, v: u8) {
        self.push(v);
    }
    #[inline]
    fn put_u16(&mut self, v: u16) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_u32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_u64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_i64(&mut self, v: i64) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_i128(&mut self, v: i128) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_f64(&mut self, v: f64) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.push(v as u8);
    }
    #[inline]
    fn put_bytes(&mut self, v: &[u8]) {
        self.put_varint(v.len() as u64);
        self.extend_from_slice(v);
    }
}

/// Reads what [`Put`] wrote.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

macro_rules! fixed {
    ($($name:ident -> $ty:ty;)*) => {$(
        #[inline]
        pub fn $name(&mut self, what: &'static str) -> Result<$ty, Malformed> {
            let raw = self.take(size_of::<$ty>(), what)?;
            Ok(<$ty>::from_le_bytes(raw.try_into().expect("take returns the length asked for")))
        }
    )*};
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next byte.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    /// The next `len` bytes, borrowed from the input.
    #[inline]
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let bytes: &'a [u8] = self.bytes;
        let taken =
            bytes.get(self.at..).and_then(|rest| rest.get(..len)).ok_or(Malformed { what, at: self.at })?;
        self.at += len;
        Ok(taken)
    }

    fixed! {
        u8 -> u8;
        u16 -> u16;
        u32 -> u32;
        u64 -> u64;
        i64 -> i64;
        i128 -> i128;
        f64 -> f64;
    }

    #[inline]
    pub fn varint(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.malformed(what))
    }

    #[inline]
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let len = self.varint(what)?;
        let len = usize::try_from(len).map_err(|_| self.malformed(what))?;
        self.take(len, what)
    }

    pub fn str(&mut self, what: &'static str) -> Result<&'a str, Malformed> {
        let at = self.at;
        std::str::from_utf8(self.bytes(what)?).map_err(|_| Malformed { what, at })
    }

    /// Fails unless everything was read.
    pub fn finish(self, what: &'static str) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.malformed(what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_overlong_ones_are_refused() {
        for v in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut buf = Vec::new();
            buf.put_varint(v);
            assert_eq!(Reader::new(&buf).varint("v"), Ok(v));
        }
        assert!(Reader::new(&[0xff; 11]).varint("v").is_err());
        assert!(Reader::new(&[0x80]).varint("v").is_err());
    }

    #[test]
    fn a_length_past_the_end_is_an_error() {
        let mut buf = Vec::new();
        buf.put_varint(u64::MAX);
        assert!(Reader::new(&buf).bytes("b").is_err());
    }
}
