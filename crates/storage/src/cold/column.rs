//! A column of a block in its encoded form, as the cache holds it: decoding whole, by range or by selection,
//! point access, and predicates on encoded data.

use arrow::array::{ArrayRef, new_null_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use avocet_base::codec::Reader;

use super::arrays::{Coded, Packed, constant_array, fixed_array, word_array};
use super::bitmap::Bitmap;
use super::fixed::{Fixed, word_value};
use super::meta::{ColumnMeta, Encoding};
use super::predicate::{ColumnPredicate, WordTest};
use super::sections::Sections;
use super::strings::{DictBytes, FsstBytes, PlainBytes};
use super::types::{Class, ColdType};
use super::value::ColdValue;
use super::words::{Rows, Words};
use crate::error::{Result, StorageError};

/// The rows of a column to decode.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Ascending row numbers.
    Rows(&'a [u32]),
    Bitmap(&'a Bitmap),
}

/// An encoded column.
#[derive(Debug)]
pub struct EncodedColumn {
    ty: ColdType,
    rows: usize,
    nulls: Option<NullBuffer>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    AllNull,
    Constant(ColdValue<'static>),
    Words(Words),
    FixedDict { entries: Fixed, codes: Words },
    Fixed(Fixed),
    BytesDict(DictBytes),
    BytesPlain(PlainBytes),
    BytesFsst(FsstBytes),
}

impl EncodedColumn {
    /// Reads the chunk of a column whose checksum has been verified.
    pub fn parse(meta: &ColumnMeta, rows: usize, chunk: &[u8]) -> Result<Self> {
        let ty = meta.ty;
        // One copy, to an address that is aligned for every type.
        let chunk = Buffer::from_slice_ref(chunk);
        let mut sections = Sections::split(&chunk)?;
        let masked = meta.nulls > 0 && meta.encoding != Encoding::AllNull;
        let nulls = if masked { Some(parse_nulls(meta, rows, sections.next("null mask")?)?) } else { None };
        let body = Body::parse(meta, rows, &mut sections)?;
        sections.finish()?;
        Ok(Self { ty, rows, nulls, body })
    }

    pub fn ty(&self) -> ColdType {
        self.ty
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes in memory, about.
    pub fn size(&self) -> usize {
        let body = match &self.body {
            Body::AllNull | Body::Constant(_) => 0,
            Body::Words(w) => w.size(),
            Body::FixedDict { entries, codes } => entries.size() + codes.size(),
            Body::Fixed(v) => v.size(),
            Body::BytesDict(d) => d.size(),
            Body::BytesPlain(p) => p.size(),
            Body::BytesFsst(f) => f.size(),
        };
        size_of::<Self>() + body + self.nulls.as_ref().map_or(0, |n| n.buffer().len())
    }

    /// Where values are not NULL; `None` if all are not.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// All rows.
    pub fn decode(&self) -> Result<ArrayRef> {
        self.decode_rows(&Rows::Range(0..self.rows))
    }

    /// Rows `start..start + len`.
    pub fn decode_range(&self, start: usize, len: usize) -> Result<ArrayRef> {
        assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        self.decode_rows(&Rows::Range(start..start + len))
    }

    /// The selected rows.
    pub fn decode_selected(&self, selection: Selection<'_>) -> Result<ArrayRef> {
        match selection {
            Selection::Bitmap(bits) => {
                assert_eq!(bits.len(), self.rows, "a selection has a bit per row");
                let rows = bits.to_rows();
                if rows.len() == self.rows {
                    return self.decode();
                }
                self.decode_rows(&Rows::List(&rows))
            }
            Selection::Rows(rows) => {
                assert!(rows.last().is_none_or(|&r| (r as usize) < self.rows), "a row past the end");
                debug_assert!(rows.is_sorted());
                self.decode_rows(&Rows::List(rows))
            }
        }
    }

    fn decode_rows(&self, rows: &Rows<'_>) -> Result<ArrayRef> {
        let nulls = self.nulls.as_ref().map(|n| pick_nulls(n, rows));
        Ok(match &self.body {
            Body::AllNull => new_null_array(&self.ty.to_arrow(), rows.len()),
            Body::Constant(value) => constant_array(self.ty, value, rows.len(), nulls)?,
            Body::Words(words) => word_array(self.ty, &Packed(words, rows), nulls)?,
            Body::FixedDict { entries: Fixed::Word(entries), codes } => {
                word_array(self.ty, &Coded(entries, codes, rows), nulls)?
            }
            Body::FixedDict { entries, codes } => {
                let codes = codes.decode::<u32>(rows);
                fixed_array(self.ty, entries, &codes[..], nulls)?
            }
            Body::Fixed(values) => fixed_array(self.ty, values, rows, nulls)?,
            Body::BytesDict(dict) => dict.decode(self.ty, rows, nulls)?,
            Body::BytesPlain(plain) => plain.decode(self.ty, rows, nulls)?,
            Body::BytesFsst(fsst) => fsst.decode(self.ty, rows, nulls)?,
        })
    }

    /// The value of one row; `None` for NULL.
    pub fn value_at(&self, row: usize) -> Result<Option<ColdValue<'_>>> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if self.nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            return Ok(None);
        }
        Ok(Some(match &self.body {
            Body::AllNull => return Ok(None),
            Body::Constant(value) => value.clone(),
            Body::Words(words) => word_value(words.get(row), self.ty),
            Body::FixedDict { entries, codes } => {
                let code = usize::try_from(codes.get(row)).unwrap_or(usize::MAX);
                if code >= entries.len() {
                    return Err(StorageError::corrupt("dictionary codes", "a code has no entry"));
                }
                entries.get(code, self.ty)
            }
            Body::Fixed(values) => values.get(row, self.ty),
            Body::BytesDict(dict) => ColdValue::Bytes(dict.get(row)?.into()),
            Body::BytesPlain(plain) => ColdValue::Bytes(plain.get(row)?.into()),
            Body::BytesFsst(fsst) => ColdValue::Bytes(fsst.get(row)?.into()),
        }))
    }

    /// The value of a row will be asked for soon.
    pub fn prefetch(&self, row: usize) {
        if row >= self.rows {
            return;
        }
        match &self.body {
            Body::AllNull | Body::Constant(_) | Body::Fixed(_) => {}
            Body::Words(words) | Body::FixedDict { codes: words, .. } => words.prefetch(row),
            Body::BytesDict(dict) => dict.codes.prefetch(row),
            Body::BytesPlain(plain) => plain.prefetch(row),
            Body::BytesFsst(fsst) => fsst.prefetch(row),
        }
    }

    /// Removes from `selected` (a bit per row) the rows that do not satisfy the predicate.
    pub fn filter(&self, pred: &ColumnPredicate, selected: &mut Bitmap) -> Result<()> {
        assert_eq!(selected.len(), self.rows, "a selection has a bit per row");
        pred.check(self.ty)?;
        self.filter_nulls(pred, selected);
        if matches!(pred, ColumnPredicate::IsNull | ColumnPredicate::IsNotNull) || !selected.any() {
            return Ok(());
        }
        match &self.body {
            Body::AllNull => selected.clear_all(),
            Body::Constant(value) => {
                if !pred.matches(value) {
                    selected.clear_all();
                }
            }
            Body::Words(words) => words.filter(&WordTest::of(pred, self.ty)?, selected.words_mut()),
            Body::FixedDict { entries, codes } => {
                let hits = (0..entries.len()).filter(|&code| pred.matches(&entries.get(code, self.ty)));
                codes.filter(&WordTest::set(hits.map(|code| code as i64).collect()), selected.words_mut());
            }
            Body::Fixed(values) => values.filter(pred, self.ty, selected.words_mut()),
            Body::BytesDict(dict) => dict.codes.filter(&dict.test(pred)?, selected.words_mut()),
            Body::BytesPlain(plain) => {
                let rows = selected.to_rows();
                plain.for_each(&rows, |row, bytes| keep(pred, selected, row, bytes))?;
            }
            Body::BytesFsst(fsst) => {
                let rows = selected.to_rows();
                fsst.for_each(&rows, |row, bytes| keep(pred, selected, row, bytes))?;
            }
        }
        Ok(())
    }

    fn filter_nulls(&self, pred: &ColumnPredicate, selected: &mut Bitmap) {
        let wants_null = matches!(pred, ColumnPredicate::IsNull);
        match (&self.nulls, &self.body) {
            (Some(nulls), _) => {
                let valid = Bitmap::from_boolean_buffer(nulls.inner());
                if wants_null { selected.subtract(&valid) } else { selected.intersect(&valid) }
            }
            (None, Body::AllNull) if wants_null => {}
            (None, Body::AllNull) => selected.clear_all(),
            (None, _) if wants_null => selected.clear_all(),
            (None, _) => {}
        }
    }
}

impl Body {
    fn parse(meta: &ColumnMeta, rows: usize, sections: &mut Sections) -> Result<Self> {
        let (ty, class) = (meta.ty, meta.ty.class());
        let is_bytes = class == Class::Bytes;
        let is_integer = matches!(class, Class::Word | Class::Int128 | Class::Int256);
        let words = |s: &mut Sections| Words::parse(rows, &s.next("integers")?, s.next("integers")?);
        Ok(match meta.encoding {
            Encoding::AllNull if meta.nulls as usize == rows => Self::AllNull,
            Encoding::Constant => {
                let section = sections.next("constant")?;
                let mut r = Reader::new(&section);
                let value = ColdValue::read(&mut r)?;
                r.finish("constant")?;
                check_constant(ty, &value)?;
                Self::Constant(value)
            }
            Encoding::Words if is_integer => Self::Words(words(sections)?),
            Encoding::WordDict if is_integer => {
                let entries = Fixed::parse_all(Class::Word, sections.next("dictionary")?)?;
                Self::FixedDict { entries, codes: words(sections)? }
            }
            Encoding::FixedDict if !is_bytes && class != Class::Word => {
                let entries = Fixed::parse_all(class, sections.next("dictionary")?)?;
                Self::FixedDict { entries, codes: words(sections)? }
            }
            Encoding::Fixed if !is_bytes && class != Class::Word => {
                Self::Fixed(Fixed::parse(class, rows, sections.next("values")?)?)
            }
            Encoding::FixedLz4 if !is_bytes && class != Class::Word => {
                let packed = sections.next("values")?;
                let raw = lz4_flex::block::decompress(&packed, rows * class.width())
                    .map_err(|e| StorageError::corrupt("compressed values", e))?;
                Self::Fixed(Fixed::parse(class, rows, Buffer::from_slice_ref(&raw))?)
            }
            Encoding::BytesDict if is_bytes => Self::BytesDict(DictBytes::parse(ty, rows, sections)?),
            Encoding::BytesPlain if is_bytes => Self::BytesPlain(PlainBytes::parse(ty, rows, sections)?),
            Encoding::BytesFsst if is_bytes => Self::BytesFsst(FsstBytes::parse(ty, rows, sections)?),
            other => {
                return Err(StorageError::corrupt(
                    "column",
                    format_args!("{ty:?} can not be encoded as {other:?}"),
                ));
            }
        })
    }
}

fn keep(pred: &ColumnPredicate, selected: &mut Bitmap, row: usize, bytes: &[u8]) {
    if !pred.matches(&ColdValue::Bytes(bytes.into())) {
        selected.clear(row);
    }
}

fn check_constant(ty: ColdType, value: &ColdValue<'_>) -> Result<()> {
    let fits = match (ty.class(), value) {
        (Class::Word, ColdValue::UInt(_)) => ty.is_unsigned(),
        (Class::Word, ColdValue::Int(_)) => !ty.is_unsigned(),
        (Class::F32, ColdValue::F32(_)) | (Class::F64, ColdValue::F64(_)) => true,
        (Class::Int128, ColdValue::Int128(_)) | (Class::Int256, ColdValue::Int256(_)) => true,
        (Class::Bytes, ColdValue::Bytes(v)) => ty == ColdType::Binary || std::str::from_utf8(v).is_ok(),
        _ => false,
    };
    if fits { Ok(()) } else { Err(StorageError::corrupt("constant", format_args!("{value:?} is no {ty:?}"))) }
}

fn parse_nulls(meta: &ColumnMeta, rows: usize, mask: Buffer) -> Result<NullBuffer> {
    if mask.len() != rows.div_ceil(8) {
        return Err(StorageError::corrupt("null mask", format_args!("{} bytes for {rows} rows", mask.len())));
    }
    let nulls = NullBuffer::new(BooleanBuffer::new(mask, 0, rows));
    if nulls.null_count() != meta.nulls as usize {
        return Err(StorageError::corrupt("null mask", "its count is not the column's"));
    }
    Ok(nulls)
}

fn pick_nulls(nulls: &NullBuffer, rows: &Rows<'_>) -> NullBuffer {
    match rows {
        Rows::Range(range) => nulls.slice(range.start, range.len()),
        Rows::List(list) => {
            NullBuffer::new(BooleanBuffer::collect_bool(list.len(), |i| nulls.is_valid(list[i] as usize)))
        }
    }
}
