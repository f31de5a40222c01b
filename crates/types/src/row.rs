//! Row images: a row as bytes, with every column at a fixed place.
//!
//! ```text
//!  ┌────────────┬───────────────┬─────┬───────────────┬──────────────────────────┐
//!  │ null bits  │ column 0      │ …   │ column n−1    │ variable-length bytes    │
//!  │ 1 per col. │ 1/2/4/8/16/32 │     │ var: off, len │ (row images only)        │
//!  └────────────┴───────────────┴─────┴───────────────┴──────────────────────────┘
//!  ◀──────────── fixed part: `fixed_size` bytes ─────▶
//! ```
//!
//! The same fixed part is what a slot of a hot page holds; there the variable-length bytes are in the page's
//! heap. `off` counts from the start of the variable part (row image) or heap (page); `off` and `len` are u32.
//! A NULL column's bytes are zero, so equal rows have equal fixed parts. All integers are little-endian.
//!
//! Invariants:
//! 1. A row image is self-contained: `heap` covers every (off, len) of its non-NULL columns.
//! 2. The layout of a table never changes for a given `TableDef` (DDL makes a new one).

use arrow::datatypes::i256;
use avocet_base::codec::Malformed;

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::sql_type::{IntWidth, SqlType};

/// How one column is kept in the fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    /// Decimals of at most 18, 38, 65 digits.
    Dec64,
    Dec128,
    Dec256,
    Date,
    /// DATETIME and TIMESTAMP.
    Micros,
    Time,
    Str,
    Bytes,
}

impl Storage {
    pub fn of(ty: &SqlType) -> Self {
        match *ty {
            SqlType::Null | SqlType::Bool => Self::I8,
            SqlType::Int { width, unsigned } => match (width, unsigned) {
                (IntWidth::W8, false) => Self::I8,
                (IntWidth::W8, true) => Self::U8,
                (IntWidth::W16, false) => Self::I16,
                (IntWidth::W16, true) => Self::U16,
                (IntWidth::W24 | IntWidth::W32, false) => Self::I32,
                (IntWidth::W24 | IntWidth::W32, true) => Self::U32,
                (IntWidth::W64, false) => Self::I64,
                (IntWidth::W64, true) => Self::U64,
            },
            SqlType::Decimal { precision, .. } => match precision {
                0..=18 => Self::Dec64,
                19..=38 => Self::Dec128,
                _ => Self::Dec256,
            },
            SqlType::Float(_) => Self::F32,
            SqlType::Double(_) => Self::F64,
            SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } => Self::Str,
            SqlType::Binary { .. }
            | SqlType::VarBinary { .. }
            | SqlType::Blob { .. }
            | SqlType::Json
            | SqlType::Geometry { .. } => Self::Bytes,
            SqlType::Date => Self::Date,
            SqlType::DateTime { .. } | SqlType::Timestamp { .. } => Self::Micros,
            SqlType::Time { .. } => Self::Time,
            SqlType::Year => Self::U16,
            SqlType::Enum(_) | SqlType::Set(_) | SqlType::Bit { .. } => match ty.coded_width() {
                Some(width) => Self::of(&SqlType::Int { width, unsigned: true }),
                None => unreachable!("the type is coded"),
            },
        }
    }

    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Date => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Dec64 | Self::Micros | Self::Time => 8,
            Self::Str | Self::Bytes => 8,
            Self::Dec128 => 16,
            Self::Dec256 => 32,
        }
    }

    pub const fn is_var(self) -> bool {
        matches!(self, Self::Str | Self::Bytes)
    }
}

/// One column's place in the fixed part.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub storage: Storage,
    /// Byte offset in the fixed part.
    pub offset: u32,
    /// Decimal scale.
    pub scale: u8,
}

/// So many variable-length bytes of an image may be out of use whatever the others are.
const IMAGE_SLACK: usize = 4 << 10;

/// Where each column of a table's rows is.
#[derive(Clone, Debug)]
pub struct RowLayout {
    pub fields: Box<[Field]>,
    /// Columns of variable length.
    pub var_columns: Box<[u16]>,
    /// Bytes of the fixed part.
    pub fixed_size: usize,
}

impl RowLayout {
    pub fn new<'t>(types: impl IntoIterator<Item = &'t SqlType>) -> Self {
        let types: Vec<_> = types.into_iter().collect();
        let mut offset = types.len().div_ceil(8);
        let mut fields = Vec::with_capacity(types.len());
        for ty in &types {
            let storage = Storage::of(ty);
            let scale = if let SqlType::Decimal { scale, .. } = ty { *scale } else { 0 };
            fields.push(Field { storage, offset: offset as u32, scale });
            offset += storage.size();
        }
        let var_columns =
            (0..fields.len() as u16).filter(|&c| fields[c as usize].storage.is_var()).collect::<Vec<_>>();
        Self { fields: fields.into(), var_columns: var_columns.into(), fixed_size: offset }
    }

    /// Appends the image of a row. Datums must have the variants that their column types use (see [`Datum`]),
    /// decimals at the column's scale: conversion is the binder's business.
    pub fn encode(&self, row: &[Datum<'_>], image: &mut Vec<u8>) {
        assert_eq!(row.len(), self.fields.len(), "a value for every column");
        let start = image.len();
        image.resize(start + self.fixed_size, 0);
        for (column, datum) in row.iter().enumerate() {
            self.put(image, start, column, datum);
        }
    }

    /// Overwrites one column in the image that starts at `start` and ends with `image`; variable-length bytes are appended.
    pub fn put(&self, image: &mut Vec<u8>, start: usize, column: usize, datum: &Datum<'_>) {
        let field = &self.fields[column];
        let at = start + field.offset as usize;
        let null_byte = start + column / 8;
        if datum.is_null() {
            image[null_byte] |= 1 << (column % 8);
            image[at..at + field.storage.size()].fill(0);
            return;
        }
        image[null_byte] &= !(1 << (column % 8));
        let var: &[u8] = match datum {
            Datum::Str(s) => s.as_bytes(),
            Datum::Bytes(b) => b,
            _ => {
                write_fixed(field, datum, &mut image[at..at + field.storage.size()]);
                return;
            }
        };
        assert!(field.storage.is_var(), "column {column} is not of variable length");
        let offset = heap_place(image.len() - start - self.fixed_size);
        image[at..at + 4].copy_from_slice(&offset.to_le_bytes());
        image[at + 4..at + 8].copy_from_slice(&heap_place(var.len()).to_le_bytes());
        image.extend_from_slice(var);
    }

    /// Appends the stored bytes of a fixed-width value.
    pub fn put_fixed(&self, column: usize, datum: &Datum<'_>, to: &mut Vec<u8>) {
        let field = &self.fields[column];
        let at = to.len();
        to.resize(at + field.storage.size(), 0);
        write_fixed(field, datum, &mut to[at..]);
    }

    /// Like [`Self::put`], from stored bytes (fixed width) or the value's bytes (variable length); `None` is NULL.
    pub fn put_stored(&self, image: &mut Vec<u8>, start: usize, column: usize, stored: Option<&[u8]>) {
        let field = &self.fields[column];
        let at = start + field.offset as usize;
        let null_byte = start + column / 8;
        let Some(bytes) = stored else {
            image[null_byte] |= 1 << (column % 8);
            image[at..at + field.storage.size()].fill(0);
            return;
        };
        image[null_byte] &= !(1 << (column % 8));
        if field.storage.is_var() {
            let offset = heap_place(image.len() - start - self.fixed_size);
            image[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            image[at + 4..at + 8].copy_from_slice(&heap_place(bytes.len()).to_le_bytes());
            image.extend_from_slice(bytes);
        } else {
            image[at..at + field.storage.size()].copy_from_slice(bytes);
        }
    }

    /// As [`Self::put_stored`], for an image that is all of the vector and whose columns are changed again and again: a value
    /// goes where the column's last one is if it is no longer than that. [`Self::compact`] frees what is left behind.
    pub fn replace_stored(&self, image: &mut Vec<u8>, column: usize, stored: Option<&[u8]>) {
        if let Some(bytes) = stored
            && self.fields[column].storage.is_var()
        {
            let (fixed, heap) = image.split_at_mut(self.fixed_size);
            let row = RowRef::new(self, fixed, heap);
            let (offset, room) = row.var_range(column);
            if !row.is_null(column) && bytes.len() <= room {
                heap[offset..offset + bytes.len()].copy_from_slice(bytes);
                let at = self.fields[column].offset as usize;
                fixed[at + 4..at + 8].copy_from_slice(&heap_place(bytes.len()).to_le_bytes());
                return;
            }
        }
        self.put_stored(image, 0, column, stored);
    }

    /// Makes an image small again of which most of the variable-length bytes are not in use.
    pub fn compact(&self, image: &mut Vec<u8>) {
        let heap = image.len() - self.fixed_size;
        if heap <= IMAGE_SLACK {
            return;
        }
        let (fixed, bytes) = image.split_at(self.fixed_size);
        let row = RowRef::new(self, fixed, bytes);
        let columns = self.var_columns.iter().map(|&column| usize::from(column));
        let live: usize = columns.filter(|&c| !row.is_null(c)).map(|c| row.var_range(c).1).sum();
        if heap > 2 * live + IMAGE_SLACK {
            let mut compact = Vec::with_capacity(self.fixed_size + live);
            row.to_image(&mut compact);
            *image = compact;
        }
    }

    /// Views a row image, checking that it is self-contained.
    pub fn view<'a>(&'a self, image: &'a [u8]) -> Result<RowRef<'a>, Malformed> {
        let bad = |at| Malformed { what: "row image", at };
        if image.len() < self.fixed_size {
            return Err(bad(image.len()));
        }
        let (fixed, heap) = image.split_at(self.fixed_size);
        let row = RowRef { layout: self, fixed, heap };
        for &column in &*self.var_columns {
            let (offset, len) = row.var_range(column as usize);
            let bytes = heap.get(offset..).and_then(|h| h.get(..len)).ok_or(bad(self.fixed_size))?;
            if self.fields[column as usize].storage == Storage::Str && std::str::from_utf8(bytes).is_err() {
                return Err(bad(self.fixed_size + offset));
            }
        }
        Ok(row)
    }
}

/// An offset into the variable-length bytes of a row, or a length of some of them.
#[inline]
fn heap_place(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a row has less than 4 GiB")
}

/// Writes a fixed-width value in its storage form.
fn write_fixed(field: &Field, datum: &Datum<'_>, to: &mut [u8]) {
    match (field.storage, datum) {
        (Storage::I8, Datum::Int(v)) => to.copy_from_slice(&(*v as i8).to_le_bytes()),
        (Storage::I16, Datum::Int(v)) => to.copy_from_slice(&(*v as i16).to_le_bytes()),
        (Storage::I32, Datum::Int(v)) => to.copy_from_slice(&(*v as i32).to_le_bytes()),
        (Storage::I64, Datum::Int(v)) => to.copy_from_slice(&v.to_le_bytes()),
        (Storage::U8, Datum::UInt(v)) => to.copy_from_slice(&(*v as u8).to_le_bytes()),
        (Storage::U16, Datum::UInt(v)) => to.copy_from_slice(&(*v as u16).to_le_bytes()),
        (Storage::U32, Datum::UInt(v)) => to.copy_from_slice(&(*v as u32).to_le_bytes()),
        (Storage::U64, Datum::UInt(v)) => to.copy_from_slice(&v.to_le_bytes()),
        (Storage::F32, Datum::Float(v)) => to.copy_from_slice(&v.to_le_bytes()),
        (Storage::F64, Datum::Double(v)) => to.copy_from_slice(&v.to_le_bytes()),
        (Storage::Date, Datum::Date(v)) => to.copy_from_slice(&v.to_le_bytes()),
        (Storage::Micros, Datum::DateTime(v)) | (Storage::Time, Datum::Time(v)) => {
            to.copy_from_slice(&v.to_le_bytes());
        }
        (Storage::Dec64, Datum::Decimal(d)) => {
            let unscaled = d.as_i128().and_then(|v| i64::try_from(v).ok());
            to.copy_from_slice(&unscaled.expect("at most 18 digits").to_le_bytes());
        }
        (Storage::Dec128, Datum::Decimal(d)) => {
            to.copy_from_slice(&d.as_i128().expect("at most 38 digits").to_le_bytes());
        }
        (Storage::Dec256, Datum::Decimal(d)) => to.copy_from_slice(&d.as_i256().to_le_bytes()),
        (storage, datum) => unreachable!("a {storage:?} column was given {datum:?}"),
    }
}

/// A row, wherever its bytes are.
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    layout: &'a RowLayout,
    fixed: &'a [u8],
    heap: &'a [u8],
}

impl<'a> RowRef<'a> {
    /// A row whose bytes were validated when they were written.
    pub fn new(layout: &'a RowLayout, fixed: &'a [u8], heap: &'a [u8]) -> Self {
        debug_assert_eq!(fixed.len(), layout.fixed_size);
        Self { layout, fixed, heap }
    }

    pub fn layout(&self) -> &'a RowLayout {
        self.layout
    }

    pub fn fixed(&self) -> &'a [u8] {
        self.fixed
    }

    pub fn len(&self) -> usize {
        self.layout.fields.len()
    }

    pub fn is_empty(&self) -> bool {
        self.layout.fields.is_empty()
    }

    #[inline]
    pub fn is_null(&self, column: usize) -> bool {
        self.fixed[column / 8] >> (column % 8) & 1 != 0
    }

    #[inline]
    fn var_range(&self, column: usize) -> (usize, usize) {
        let raw = self.raw::<8>(column);
        let offset = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        let len = u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]);
        (offset as usize, len as usize)
    }

    /// The bytes of a column of variable length.
    #[inline]
    pub fn var_bytes(&self, column: usize) -> &'a [u8] {
        let (offset, len) = self.var_range(column);
        &self.heap[offset..offset + len]
    }

    /// The first `N` stored bytes of a column of fixed width, little-endian.
    #[inline]
    pub fn raw<const N: usize>(&self, column: usize) -> [u8; N] {
        let at = self.layout.fields[column].offset as usize;
        self.fixed[at..at + N].try_into().expect("the slice has N bytes")
    }

    /// The stored bytes of a value of fixed width, or the bytes of one of variable length; `None` for NULL.
    pub fn stored(&self, column: usize) -> Option<&'a [u8]> {
        if self.is_null(column) {
            return None;
        }
        let field = &self.layout.fields[column];
        Some(match field.storage.is_var() {
            true => self.var_bytes(column),
            false => &self.fixed[field.offset as usize..][..field.storage.size()],
        })
    }

    #[inline]
    pub fn get(&self, column: usize) -> Datum<'a> {
        if self.is_null(column) {
            return Datum::Null;
        }
        let field = &self.layout.fields[column];
        match field.storage {
            Storage::I8 => Datum::Int(i8::from_le_bytes(self.raw(column)).into()),
            Storage::I16 => Datum::Int(i16::from_le_bytes(self.raw(column)).into()),
            Storage::I32 => Datum::Int(i32::from_le_bytes(self.raw(column)).into()),
            Storage::I64 => Datum::Int(i64::from_le_bytes(self.raw(column))),
            Storage::U8 => Datum::UInt(u8::from_le_bytes(self.raw(column)).into()),
            Storage::U16 => Datum::UInt(u16::from_le_bytes(self.raw(column)).into()),
            Storage::U32 => Datum::UInt(u32::from_le_bytes(self.raw(column)).into()),
            Storage::U64 => Datum::UInt(u64::from_le_bytes(self.raw(column))),
            Storage::F32 => Datum::Float(f32::from_le_bytes(self.raw(column))),
            Storage::F64 => Datum::Double(f64::from_le_bytes(self.raw(column))),
            Storage::Dec64 => {
                Datum::Decimal(Decimal::new(i64::from_le_bytes(self.raw(column)).into(), field.scale))
            }
            Storage::Dec128 => {
                Datum::Decimal(Decimal::new(i128::from_le_bytes(self.raw(column)), field.scale))
            }
            Storage::Dec256 => {
                Datum::Decimal(Decimal::from_i256(i256::from_le_bytes(self.raw(column)), field.scale))
            }
            Storage::Date => Datum::Date(i32::from_le_bytes(self.raw(column))),
            Storage::Micros => Datum::DateTime(i64::from_le_bytes(self.raw(column))),
            Storage::Time => Datum::Time(i64::from_le_bytes(self.raw(column))),
            Storage::Str => {
                let bytes = self.var_bytes(column);
                Datum::str(
                    std::str::from_utf8(bytes).expect("text is checked to be UTF-8 when it is written"),
                )
            }
            Storage::Bytes => Datum::bytes(self.var_bytes(column)),
        }
    }

    /// Appends the row's image, compact: only the variable-length bytes in use.
    pub fn to_image(&self, image: &mut Vec<u8>) {
        let start = image.len();
        image.extend_from_slice(self.fixed);
        for &column in &*self.layout.var_columns {
            let column = column as usize;
            if self.is_null(column) {
                continue;
            }
            let bytes = self.var_bytes(column);
            let offset = heap_place(image.len() - start - self.layout.fixed_size);
            let at = start + self.layout.fields[column].offset as usize;
            image[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            image.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip() {
        let types = [
            SqlType::INT,
            SqlType::VarChar { len: 20, collation: crate::Collation::DEFAULT },
            SqlType::Decimal { precision: 12, scale: 2, unsigned: false },
            SqlType::Blob { size: crate::LobSize::Normal },
            SqlType::DOUBLE,
        ];
        let layout = RowLayout::new(&types);
        let row = [
            Datum::Int(-7),
            Datum::str("löwe"),
            Datum::Decimal(Decimal::new(-1234, 2)),
            Datum::Null,
            Datum::Double(0.5),
        ];
        let mut image = Vec::new();
        layout.encode(&row, &mut image);
        let view = layout.view(&image).expect("valid");
        let shown: Vec<_> = (0..5).map(|c| format!("{:?}", view.get(c))).collect();
        let wanted: Vec<_> = row.iter().map(|d| format!("{d:?}")).collect();
        assert_eq!(shown, wanted);
        let mut again = Vec::new();
        view.to_image(&mut again);
        assert_eq!(again, image);
        assert!(layout.view(&image[..image.len() - 1]).is_err());
    }
}
