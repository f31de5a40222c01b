//! Memory-comparable keys: the bytes that indexes are ordered by.
//!
//! ```text
//!  ┌────────┬──────────────┬────────┬──────────────┬ …
//!  │ null 0 │ value 0      │ null 1 │ value 1      │
//!  │ 0 or 1 │ by its type  │        │              │
//!  └────────┴──────────────┴────────┴──────────────┴ …
//! ```
//!
//! | type | bytes |
//! |---|---|
//! | integers of one byte | the byte, sign bit flipped if signed |
//! | other integers, temporals, decimals up to 64 bits | 1–9, as few as the value needs: see [`compact`] |
//! | wider decimals | as wide as in a row (16, 32), big-endian, sign bit flipped |
//! | FLOAT, DOUBLE | IEEE bits, big-endian; sign flipped if positive, all bits if negative; −0 is 0 |
//! | strings | the collation's sort key |
//! | binary strings | the bytes, `00` as `00 ff`, then `00 00` |
//! | documents | see `json::order` |
//!
//! Invariants:
//! 1. Byte order of keys is MySQL's order of the values they were made of; NULL comes first.
//! 2. No part is the beginning of another of the same column, so the parts need no separators.
//! 3. Columns that are NOT NULL have no null byte. A descending part has all its bytes inverted.
//!
//! Keys are never decoded: index entries lead to row ids, and rows to values. Only where parts end is told, for estimates.

mod compact;
mod ends;

use crate::collation::Collation;
use crate::datum::Datum;
use crate::row::{RowRef, Storage};
use crate::schema::{IndexPart, TableDef};
use crate::sql_type::SqlType;

/// How the keys of one index are made.
#[derive(Clone, Debug)]
pub struct KeyLayout {
    parts: Box<[KeyPart]>,
    /// A guess, to reserve by.
    size: usize,
}

#[derive(Clone, Debug)]
struct KeyPart {
    column: usize,
    storage: Storage,
    /// Decimal scale.
    scale: u8,
    nullable: bool,
    descending: bool,
    /// Characters of strings, bytes of binary strings.
    prefix_len: Option<usize>,
    collation: Collation,
}

impl KeyLayout {
    pub fn new(table: &TableDef, parts: &[IndexPart]) -> Self {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| {
                let column = &table.columns[part.column];
                KeyPart {
                    descending: part.descending,
                    prefix_len: part.prefix_len.map(|n| n as usize),
                    ..KeyPart::new(part.column, &column.ty, column.nullable)
                }
            })
            .collect();
        Self::of_parts(parts)
    }

    /// Keys of whole values of these types, ascending, any of them perhaps NULL: for sorting and grouping.
    pub fn of_types<'t>(types: impl IntoIterator<Item = &'t SqlType>) -> Self {
        Self::of_parts(types.into_iter().enumerate().map(|(i, ty)| KeyPart::new(i, ty, true)).collect())
    }

    fn of_parts(parts: Vec<KeyPart>) -> Self {
        let width = |p: &KeyPart| if p.storage.is_var() { 16 } else { p.storage.size() };
        let size = parts.iter().map(|p| width(p) + usize::from(p.nullable)).sum();
        Self { parts: parts.into(), size }
    }

    /// Columns of the index.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Appends the key of a row.
    #[inline]
    pub fn encode_row(&self, row: &RowRef<'_>, key: &mut Vec<u8>) {
        key.reserve(self.size);
        for part in &*self.parts {
            part.encode_field(row, key);
        }
    }

    /// Whether the row has exactly this key. Integers, as most keys have, are compared where they stand; `scratch` is for
    /// the others.
    #[inline]
    pub fn has_key(&self, row: &RowRef<'_>, key: &[u8], scratch: &mut Vec<u8>) -> bool {
        let mut rest = key;
        for part in &*self.parts {
            let next = match part.strip_integer(row, rest) {
                Stripped::Integer(next) => next,
                Stripped::NoInteger => {
                    scratch.clear();
                    part.encode_field(row, scratch);
                    rest.strip_prefix(&scratch[..])
                }
            };
            match next {
                Some(next) => rest = next,
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Whether an indexed column of the row is NULL: such rows are never duplicates in a unique index.
    #[inline]
    pub fn has_null(&self, row: &RowRef<'_>) -> bool {
        self.parts.iter().any(|p| p.nullable && row.is_null(p.column))
    }

    /// Appends the key of values for the first columns of the index. `false` if one of them is none that its column
    /// can hold (NULL in a NOT NULL column, another type, out of range): no entry equals it, and `key` is unusable.
    #[must_use]
    pub fn encode_prefix(&self, values: &[Datum<'_>], key: &mut Vec<u8>) -> bool {
        assert!(values.len() <= self.parts.len(), "no more values than columns");
        key.reserve(self.size);
        self.parts.iter().zip(values).all(|(part, value)| part.encode(value, key))
    }

    /// As [`Self::encode_prefix`], of integers.
    #[inline]
    #[must_use]
    pub fn encode_integers(&self, values: &[i64], key: &mut Vec<u8>) -> bool {
        assert!(values.len() <= self.parts.len(), "no more values than columns");
        key.reserve(self.size);
        self.parts.iter().zip(values).all(|(part, &value)| part.encode_integer(value, key))
    }

    /// As `encode_prefix` for the columns from `first` on: to append to a key that has the columns before.
    #[must_use]
    pub fn encode_parts(&self, first: usize, values: &[Datum<'_>], key: &mut Vec<u8>) -> bool {
        self.parts[first..].iter().zip(values).all(|(part, value)| part.encode(value, key))
    }

    /// Whether larger values of this column have smaller keys.
    pub fn is_descending(&self, part: usize) -> bool {
        self.parts[part].descending
    }

    /// Whether the key holds only the beginning of the column's values, so that ranges are to be rechecked and
    /// their bounds widened.
    pub fn is_prefix(&self, part: usize) -> bool {
        self.parts[part].prefix_len.is_some()
    }

    /// Appends the part's marker of a value that is not NULL: all such values, and no NULL, begin with it. Appends
    /// nothing where the column is NOT NULL.
    pub fn encode_not_null(&self, part: usize, key: &mut Vec<u8>) {
        let part = &self.parts[part];
        if part.nullable {
            key.push(if part.descending { !1 } else { 1 });
        }
    }

    /// Appends what the keys of all strings have in common that begin with `prefix`, as LIKE 'prefix%' needs it.
    /// `false` if the column holds no strings.
    #[must_use]
    pub fn encode_string_prefix(&self, part: usize, prefix: &str, key: &mut Vec<u8>) -> bool {
        let at = &self.parts[part];
        if at.storage != Storage::Str {
            return false;
        }
        self.encode_not_null(part, key);
        let start = key.len();
        at.collation.sort_key_prefix(cut_chars(prefix, at.prefix_len), key);
        at.finish(start, key);
        true
    }
}

/// Makes a key the least one that is greater than all that begin with it. `false` if there is none.
#[must_use]
pub fn successor(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last < 0xff {
            key.push(last + 1);
            return true;
        }
    }
    false
}

impl KeyPart {
    fn new(column: usize, ty: &SqlType, nullable: bool) -> Self {
        Self {
            column,
            storage: Storage::of(ty),
            scale: if let SqlType::Decimal { scale, .. } = ty { *scale } else { 0 },
            nullable,
            descending: false,
            prefix_len: None,
            collation: ty.order().unwrap_or(Collation::BINARY),
        }
    }

    #[inline]
    fn encode_field(&self, row: &RowRef<'_>, key: &mut Vec<u8>) {
        let start = key.len();
        if self.nullable {
            let null = row.is_null(self.column);
            key.push(u8::from(!null));
            if null {
                self.finish(start, key);
                return;
            }
        }
        let column = self.column;
        match self.storage {
            Storage::I8 => key.push(row.raw::<1>(column)[0] ^ SIGN),
            Storage::U8 => key.push(row.raw::<1>(column)[0]),
            Storage::I16 => compact::push(i16::from_le_bytes(row.raw(column)).into(), key),
            Storage::U16 => compact::push(u16::from_le_bytes(row.raw(column)).into(), key),
            Storage::I32 | Storage::Date => compact::push(i32::from_le_bytes(row.raw(column)).into(), key),
            Storage::U32 => compact::push(u32::from_le_bytes(row.raw(column)).into(), key),
            Storage::I64 | Storage::Dec64 | Storage::Micros | Storage::Time => {
                compact::push(i64::from_le_bytes(row.raw(column)), key);
            }
            Storage::U64 => compact::push_unsigned(u64::from_le_bytes(row.raw(column)), key),
            Storage::Dec128 => wide(row.raw::<16>(column), key),
            Storage::Dec256 => wide(row.raw::<32>(column), key),
            Storage::F32 => float32(f32::from_le_bytes(row.raw(column)), key),
            Storage::F64 => float64(f64::from_le_bytes(row.raw(column)), key),
            Storage::Str => {
                if let Datum::Str(s) = row.get(column) {
                    self.collation.sort_key(cut_chars(&s, self.prefix_len), key);
                }
            }
            Storage::Bytes => self.bytes(row.var_bytes(column), key),
        }
        self.finish(start, key);
    }

    /// Takes this part of a row's key from the beginning of a key, if it is of the plainest kind: an integer of a machine
    /// word or less.
    #[inline]
    fn strip_integer<'k>(&self, row: &RowRef<'_>, key: &'k [u8]) -> Stripped<'k> {
        if self.nullable || self.descending {
            return Stripped::NoInteger;
        }
        let column = self.column;
        Stripped::Integer(match self.storage {
            Storage::I8 => strip(key, row.raw::<1>(column)[0] ^ SIGN),
            Storage::U8 => strip(key, row.raw::<1>(column)[0]),
            Storage::I16 => compact::strip(i16::from_le_bytes(row.raw(column)).into(), key),
            Storage::U16 => compact::strip(u16::from_le_bytes(row.raw(column)).into(), key),
            Storage::I32 | Storage::Date => compact::strip(i32::from_le_bytes(row.raw(column)).into(), key),
            Storage::U32 => compact::strip(u32::from_le_bytes(row.raw(column)).into(), key),
            Storage::I64 | Storage::Dec64 | Storage::Micros | Storage::Time => {
                compact::strip(i64::from_le_bytes(row.raw(column)), key)
            }
            Storage::U64 => compact::strip_unsigned(u64::from_le_bytes(row.raw(column)), key),
            _ => return Stripped::NoInteger,
        })
    }

    fn encode(&self, value: &Datum<'_>, key: &mut Vec<u8>) -> bool {
        let start = key.len();
        if self.nullable {
            key.push(u8::from(!value.is_null()));
        }
        let fits = match (self.storage, value) {
            (_, Datum::Null) => self.nullable,
            (Storage::Str, Datum::Str(s)) => {
                self.collation.sort_key(cut_chars(s, self.prefix_len), key);
                true
            }
            (Storage::Bytes, Datum::Bytes(b)) => {
                self.bytes(b, key);
                true
            }
            (Storage::F32, Datum::Float(v)) => {
                float32(*v, key);
                true
            }
            (Storage::F64, Datum::Double(v)) => {
                float64(*v, key);
                true
            }
            (Storage::Date, Datum::Date(v)) => {
                compact::push((*v).into(), key);
                true
            }
            (Storage::Micros, Datum::DateTime(v)) | (Storage::Time, Datum::Time(v)) => {
                compact::push(*v, key);
                true
            }
            (Storage::Dec64 | Storage::Dec128 | Storage::Dec256, Datum::Decimal(d)) => self.decimal(d, key),
            (_, Datum::Int(v)) => self.integer(*v, key),
            (_, Datum::UInt(v)) => self.integer(*v, key),
            _ => false,
        };
        self.finish(start, key);
        fits
    }

    #[inline]
    fn encode_integer(&self, value: i64, key: &mut Vec<u8>) -> bool {
        let start = key.len();
        if self.nullable {
            key.push(1);
        }
        let fits = self.integer(value, key);
        self.finish(start, key);
        fits
    }

    #[inline]
    fn integer<V>(&self, v: V, key: &mut Vec<u8>) -> bool
    where
        V: TryInto<i8> + TryInto<i16> + TryInto<i32> + TryInto<i64>,
        V: TryInto<u8> + TryInto<u16> + TryInto<u32> + TryInto<u64>,
    {
        macro_rules! narrow {
            ($ty:ty, $write:expr) => {
                TryInto::<$ty>::try_into(v).map(|v| $write(v, key)).is_ok()
            };
        }
        match self.storage {
            Storage::I8 => narrow!(i8, |v: i8, key: &mut Vec<u8>| key.push(v.to_le_bytes()[0] ^ SIGN)),
            Storage::U8 => narrow!(u8, |v, key: &mut Vec<u8>| key.push(v)),
            Storage::I16 => narrow!(i16, |v: i16, key| compact::push(v.into(), key)),
            Storage::U16 => narrow!(u16, |v: u16, key| compact::push(v.into(), key)),
            Storage::I32 => narrow!(i32, |v: i32, key| compact::push(v.into(), key)),
            Storage::U32 => narrow!(u32, |v: u32, key| compact::push(v.into(), key)),
            Storage::I64 => narrow!(i64, compact::push),
            Storage::U64 => narrow!(u64, compact::push_unsigned),
            _ => false,
        }
    }

    /// Only values that the column's scale holds exactly.
    fn decimal(&self, d: &crate::Decimal, key: &mut Vec<u8>) -> bool {
        let Some(v) = d.rescale(self.scale).ok().filter(|scaled| scaled == d) else { return false };
        match (self.storage, v.as_i128()) {
            (Storage::Dec64, Some(v)) => i64::try_from(v).map(|v| compact::push(v, key)).is_ok(),
            (Storage::Dec128, Some(v)) => {
                wide(v.to_le_bytes(), key);
                true
            }
            (Storage::Dec256, _) => {
                wide(v.as_i256().to_le_bytes(), key);
                true
            }
            _ => false,
        }
    }

    fn bytes(&self, bytes: &[u8], key: &mut Vec<u8>) {
        if self.collation == Collation::JSON {
            return crate::json::sort_key(crate::json::Node::new(bytes), key);
        }
        let len = self.prefix_len.map_or(bytes.len(), |n| n.min(bytes.len()));
        crate::collation::bytes_key(&bytes[..len], key);
    }

    #[inline]
    fn finish(&self, start: usize, key: &mut [u8]) {
        if self.descending {
            key[start..].iter_mut().for_each(|b| *b = !*b);
        }
    }
}

enum Stripped<'k> {
    /// What follows, if the key begins so.
    Integer(Option<&'k [u8]>),
    NoInteger,
}

/// Flips the sign in the first byte of a key.
const SIGN: u8 = 0x80;

/// What follows a byte at the beginning of a key.
#[inline]
fn strip(key: &[u8], byte: u8) -> Option<&[u8]> {
    key.split_first().and_then(|(first, rest)| (*first == byte).then_some(rest))
}

/// The first `max` characters.
fn cut_chars(s: &str, max: Option<usize>) -> &str {
    match max {
        Some(max) if s.len() > max => s.char_indices().nth(max).map_or(s, |(end, _)| &s[..end]),
        _ => s,
    }
}

#[inline]
fn wide<const N: usize>(mut bytes: [u8; N], key: &mut Vec<u8>) {
    bytes.reverse();
    bytes[0] ^= SIGN;
    key.extend_from_slice(&bytes);
}

#[inline]
fn float64(v: f64, key: &mut Vec<u8>) {
    let bits = (v + 0.0).to_bits() as i64;
    // All bits of a negative number are inverted, the sign bit of a positive one.
    let flipped = bits ^ (bits >> 63 | i64::MIN);
    key.extend_from_slice(&flipped.to_be_bytes());
}

#[inline]
fn float32(v: f32, key: &mut Vec<u8>) {
    let bits = (v + 0.0).to_bits() as i32;
    let flipped = bits ^ (bits >> 31 | i32::MIN);
    key.extend_from_slice(&flipped.to_be_bytes());
}

#[cfg(test)]
mod tests;
