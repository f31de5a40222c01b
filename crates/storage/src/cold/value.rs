//! Single values of cold columns: what point access returns, what bounds and predicates hold.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrow::datatypes::i256;
use avocet_base::codec::{Malformed, Put, Reader};

/// A value that is not NULL. Integers, dates and times are `Int`, unsigned columns `UInt`, decimals their
/// unscaled integers (`Int128` for Decimal128, `Int256` for Decimal256).
#[derive(Debug, Clone, PartialEq)]
pub enum ColdValue<'a> {
    Int(i64),
    UInt(u64),
    Int128(i128),
    Int256(i256),
    F32(f32),
    F64(f64),
    Bytes(Cow<'a, [u8]>),
}

impl ColdValue<'_> {
    pub fn into_owned(self) -> ColdValue<'static> {
        match self {
            Self::Int(v) => ColdValue::Int(v),
            Self::UInt(v) => ColdValue::UInt(v),
            Self::Int128(v) => ColdValue::Int128(v),
            Self::Int256(v) => ColdValue::Int256(v),
            Self::F32(v) => ColdValue::F32(v),
            Self::F64(v) => ColdValue::F64(v),
            Self::Bytes(v) => ColdValue::Bytes(Cow::Owned(v.into_owned())),
        }
    }

    /// The integer, however wide it is held.
    pub fn as_integer(&self) -> Option<i256> {
        Some(match self {
            Self::Int(v) => i256::from_i128(i128::from(*v)),
            Self::UInt(v) => i256::from_i128(i128::from(*v)),
            Self::Int128(v) => i256::from_i128(*v),
            Self::Int256(v) => *v,
            Self::F32(_) | Self::F64(_) | Self::Bytes(_) => return None,
        })
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::F32(v) => Some(f64::from(*v)),
            Self::F64(v) => Some(*v),
            _ => None,
        }
    }

    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(v) => Some(v),
            _ => None,
        }
    }

    /// Order of two values of one kind (integer, float, bytes); `None` across kinds. Bytes compare as
    /// unsigned bytes, floats by value with NaN after everything.
    pub fn compare(&self, other: &ColdValue<'_>) -> Option<Ordering> {
        if let (ColdValue::Int(a), ColdValue::Int(b)) = (self, other) {
            return Some(a.cmp(b));
        }
        if let (Some(a), Some(b)) = (self.as_bytes(), other.as_bytes()) {
            return Some(a.cmp(b));
        }
        if let (Some(a), Some(b)) = (self.as_integer(), other.as_integer()) {
            return Some(a.cmp(&b));
        }
        Some(compare_floats(self.as_f64()?, other.as_f64()?))
    }

    pub(crate) fn put(&self, buf: &mut Vec<u8>) {
        match self {
            Self::Int(v) => {
                buf.put_u8(0);
                buf.put_i64(*v);
            }
            Self::UInt(v) => {
                buf.put_u8(1);
                buf.put_u64(*v);
            }
            Self::Int128(v) => {
                buf.put_u8(2);
                buf.put_i128(*v);
            }
            Self::Int256(v) => {
                buf.put_u8(3);
                buf.extend_from_slice(&v.to_le_bytes());
            }
            Self::F32(v) => {
                buf.put_u8(4);
                buf.put_u32(v.to_bits());
            }
            Self::F64(v) => {
                buf.put_u8(5);
                buf.put_u64(v.to_bits());
            }
            Self::Bytes(v) => {
                buf.put_u8(6);
                buf.put_bytes(v);
            }
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<ColdValue<'static>, Malformed> {
        const WHAT: &str = "value";
        Ok(match r.u8(WHAT)? {
            0 => ColdValue::Int(r.i64(WHAT)?),
            1 => ColdValue::UInt(r.u64(WHAT)?),
            2 => ColdValue::Int128(r.i128(WHAT)?),
            3 => {
                let raw = r.take(32, WHAT)?;
                ColdValue::Int256(i256::from_le_bytes(raw.try_into().expect("32 bytes were taken")))
            }
            4 => ColdValue::F32(f32::from_bits(r.u32(WHAT)?)),
            5 => ColdValue::F64(f64::from_bits(r.u64(WHAT)?)),
            6 => ColdValue::Bytes(Cow::Owned(r.bytes(WHAT)?.to_vec())),
            _ => return Err(r.malformed(WHAT)),
        })
    }
}

impl From<&str> for ColdValue<'static> {
    fn from(v: &str) -> Self {
        Self::Bytes(Cow::Owned(v.as_bytes().to_vec()))
    }
}

/// IEEE order, with zeros equal and NaN after everything.
pub(crate) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_widths_compare_by_value() {
        let big = ColdValue::UInt(u64::MAX);
        assert_eq!(ColdValue::Int(-1).compare(&big), Some(Ordering::Less));
        assert_eq!(ColdValue::Int128(i128::MAX).compare(&big), Some(Ordering::Greater));
        assert_eq!(ColdValue::Int256(i256::from_i128(5)).compare(&ColdValue::Int(5)), Some(Ordering::Equal));
        assert_eq!(ColdValue::Int(1).compare(&ColdValue::F64(1.0)), None);
    }

    #[test]
    fn floats_are_totally_ordered() {
        assert_eq!(compare_floats(0.0, -0.0), Ordering::Equal);
        assert_eq!(compare_floats(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(compare_floats(f64::NAN, -f64::NAN), Ordering::Equal);
    }
}
