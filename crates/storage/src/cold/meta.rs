//! What is known of a block without its data: for each column where its chunk is, how it is encoded, its
//! bounds, NULLs and distinct values. It is the block's footer, and small enough to stay in memory.

use avocet_base::codec::{Malformed, Put, Reader};
use bytes::Bytes;

use super::ordinals::Ordinals;
use super::predicate::ColumnPredicate;
use super::sketch::DistinctSketch;
use super::types::ColdType;
use super::value::ColdValue;
use crate::error::Result;

/// Longest bound that is kept of strings, in bytes.
pub const MAX_BOUND: usize = 32;

/// The version of blocks that have no path columns and do not say so: readers have what was written before there were any.
pub(super) const WITHOUT_PATHS: u32 = 1;
/// The version from which on a footer ends with the id of its block.
pub(super) const WITH_ID: u32 = 3;

/// How a chunk holds its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    AllNull = 0,
    /// One value (and perhaps NULLs).
    Constant = 1,
    /// Frame of reference, bit-packed.
    Words = 2,
    /// Dictionary of words.
    WordDict = 3,
    /// Dictionary of values of fixed width.
    FixedDict = 4,
    Fixed = 5,
    /// As `Fixed`, LZ4-compressed.
    FixedLz4 = 6,
    BytesDict = 7,
    BytesPlain = 8,
    BytesFsst = 9,
}

impl Encoding {
    fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag {
            0 => Self::AllNull,
            1 => Self::Constant,
            2 => Self::Words,
            3 => Self::WordDict,
            4 => Self::FixedDict,
            5 => Self::Fixed,
            6 => Self::FixedLz4,
            7 => Self::BytesDict,
            8 => Self::BytesPlain,
            9 => Self::BytesFsst,
            _ => return None,
        })
    }
}

/// Least and greatest value that is not NULL. Long strings are cut to [`MAX_BOUND`] bytes; an inexact `max`
/// is a prefix of the greatest value.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    pub min: ColdValue<'static>,
    pub max: ColdValue<'static>,
    pub min_exact: bool,
    pub max_exact: bool,
}

/// The distinct values of a column that are not NULL.
#[derive(Clone, PartialEq, Eq)]
pub struct Distinct {
    pub count: u32,
    /// Whether `count` is exact rather than an estimate.
    pub exact: bool,
    sketch: Bytes,
}

impl std::fmt::Debug for Distinct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.exact { "" } else { "about " }, self.count)
    }
}

impl Distinct {
    pub(crate) fn new(exact: Option<u32>, sketch: &DistinctSketch) -> Self {
        let estimate = sketch.estimate().round().clamp(0.0, f64::from(u32::MAX)) as u32;
        Self { count: exact.unwrap_or(estimate), exact: exact.is_some(), sketch: sketch.to_bytes().into() }
    }

    /// The sketch, to be merged with those of other blocks.
    pub fn sketch(&self) -> Result<DistinctSketch> {
        DistinctSketch::from_bytes(&self.sketch)
    }
}

/// What is known of one column of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMeta {
    pub ty: ColdType,
    pub encoding: Encoding,
    /// Where the chunk begins in the block, in bytes.
    pub offset: u64,
    /// Length of the chunk in bytes.
    pub len: u32,
    /// CRC-32C of the chunk.
    pub crc: u32,
    pub nulls: u32,
    /// `None` if all values are NULL.
    pub bounds: Option<Bounds>,
    pub distinct: Distinct,
}

/// Values at a path into a column, beside the column itself. What the values and marks mean is up to whoever writes
/// and reads them.
#[derive(Debug, Clone, PartialEq)]
pub struct PathColumn {
    /// The position of the column that the path leads into.
    pub column: u16,
    pub names: Box<[Box<str>]>,
    pub values: ColumnMeta,
    /// A number for each row; absent if all are zero.
    pub marks: Option<ColumnMeta>,
}

/// What is known of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockMeta {
    pub ordinals: Ordinals,
    pub columns: Box<[ColumnMeta]>,
    pub paths: Box<[PathColumn]>,
    /// Bytes of all chunks.
    pub data_len: u64,
}

impl BlockMeta {
    /// What it takes of memory, about.
    pub fn bytes(&self) -> usize {
        let of = |column: &ColumnMeta| size_of::<ColumnMeta>() + column.distinct.sketch.len();
        let names = |path: &PathColumn| {
            path.names.iter().map(|name| size_of::<Box<str>>() + name.len()).sum::<usize>()
        };
        let of_path = |path: &PathColumn| {
            size_of::<PathColumn>() + of(&path.values) + path.marks.as_ref().map_or(0, of) + names(path)
        };
        size_of::<Self>()
            + self.columns.iter().map(of).sum::<usize>()
            + self.paths.iter().map(of_path).sum::<usize>()
    }

    /// How many numbers of chunks there are: columns, then two for each path, of its values and its marks.
    pub fn chunks(&self) -> usize {
        self.columns.len() + 2 * self.paths.len()
    }

    /// What is known of a chunk; `None` if there is none of this number.
    pub fn chunk(&self, number: usize) -> Option<&ColumnMeta> {
        let Some(behind) = number.checked_sub(self.columns.len()) else { return self.columns.get(number) };
        let path = self.paths.get(behind / 2)?;
        if behind.is_multiple_of(2) { Some(&path.values) } else { path.marks.as_ref() }
    }

    /// The number of the values' chunk of a path; that of the marks comes next.
    pub fn path_chunk(&self, path: usize) -> usize {
        self.columns.len() + 2 * path
    }

    pub fn rows(&self) -> usize {
        self.ordinals.len()
    }

    /// Whether some row of the block may satisfy a predicate on a column.
    pub fn may_match(&self, column: usize, pred: &ColumnPredicate) -> bool {
        self.chunk(column).is_none_or(|meta| meta.may_match(self.rows(), pred))
    }

    /// The footer of a block of the newest version, but for the block's id.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut buf = Vec::new();
        self.ordinals.put(&mut buf);
        buf.put_varint(self.data_len);
        buf.put_varint(self.columns.len() as u64);
        for column in &self.columns {
            column.put(&mut buf);
        }
        buf.put_varint(self.paths.len() as u64);
        for path in &self.paths {
            buf.put_varint(path.column.into());
            buf.put_varint(path.names.len() as u64);
            path.names.iter().for_each(|name| buf.put_bytes(name.as_bytes()));
            path.values.put(&mut buf);
            buf.put_u8(path.marks.is_some().into());
            path.marks.iter().for_each(|marks| marks.put(&mut buf));
        }
        buf
    }

    /// From a footer of a block of a version, without the block's id.
    pub fn from_bytes(bytes: &[u8], version: u32) -> Result<Self> {
        const WHAT: &str = "block metadata";
        let mut r = Reader::new(bytes);
        let ordinals = Ordinals::read(&mut r)?;
        let data_len = r.varint(WHAT)?;
        let count = r.varint(WHAT)?;
        if count > u64::from(u16::MAX) {
            return Err(r.malformed(WHAT).into());
        }
        let columns = (0..count).map(|_| ColumnMeta::read(&mut r)).collect::<Result<Box<[_]>, _>>()?;
        let paths = match version {
            WITHOUT_PATHS => 0,
            _ => r.varint(WHAT)?,
        };
        if count + 2 * paths.min(u64::from(u16::MAX)) > u64::from(u16::MAX) {
            return Err(r.malformed(WHAT).into());
        }
        let paths = (0..paths).map(|_| PathColumn::read(&mut r)).collect::<Result<Box<[_]>, _>>()?;
        let meta = Self { ordinals, columns, paths, data_len };
        let sound = |c: &ColumnMeta| {
            c.offset.checked_add(u64::from(c.len)).is_some_and(|end| end <= data_len)
                && c.nulls as usize <= meta.ordinals.len()
        };
        let known = |path: &PathColumn| usize::from(path.column) < meta.columns.len();
        if !(0..meta.chunks()).filter_map(|number| meta.chunk(number)).all(sound)
            || !meta.paths.iter().all(known)
        {
            return Err(r.malformed(WHAT).into());
        }
        r.finish(WHAT)?;
        Ok(meta)
    }
}

impl PathColumn {
    /// Names beyond this number are no path's that anybody writes.
    const MOST_NAMES: u64 = 64;

    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "path column";
        let column = u16::try_from(r.varint(WHAT)?).map_err(|_| r.malformed(WHAT))?;
        let count = r.varint(WHAT)?;
        if count > Self::MOST_NAMES {
            return Err(r.malformed(WHAT));
        }
        let mut names = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let name = std::str::from_utf8(r.bytes(WHAT)?).map(Box::from);
            names.push(name.map_err(|_| r.malformed(WHAT))?);
        }
        let values = ColumnMeta::read(r)?;
        let marks = match r.u8(WHAT)? {
            0 => None,
            1 => Some(ColumnMeta::read(r)?),
            _ => return Err(r.malformed(WHAT)),
        };
        Ok(Self { column, names: names.into(), values, marks })
    }
}

impl ColumnMeta {
    /// Whether some of so many rows may satisfy a predicate.
    pub fn may_match(&self, rows: usize, pred: &ColumnPredicate) -> bool {
        match pred {
            ColumnPredicate::IsNull => self.nulls > 0,
            ColumnPredicate::IsNotNull => (self.nulls as usize) < rows,
            _ => self.bounds.as_ref().is_some_and(|b| pred.may_match(&b.min, &b.max, !b.max_exact)),
        }
    }

    fn put(&self, buf: &mut Vec<u8>) {
        self.ty.put(buf);
        buf.put_u8(self.encoding as u8);
        buf.put_varint(self.offset);
        buf.put_u32(self.len);
        buf.put_u32(self.crc);
        buf.put_u32(self.nulls);
        match &self.bounds {
            None => buf.put_u8(0),
            Some(b) => {
                buf.put_u8(1 | u8::from(b.min_exact) << 1 | u8::from(b.max_exact) << 2);
                b.min.put(buf);
                b.max.put(buf);
            }
        }
        buf.put_u32(self.distinct.count);
        buf.put_u8(u8::from(self.distinct.exact));
        buf.put_bytes(&self.distinct.sketch);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "column metadata";
        let ty = ColdType::read(r)?;
        let encoding = Encoding::from_tag(r.u8(WHAT)?).ok_or_else(|| r.malformed(WHAT))?;
        let offset = r.varint(WHAT)?;
        let (len, crc, nulls) = (r.u32(WHAT)?, r.u32(WHAT)?, r.u32(WHAT)?);
        let bounds = match r.u8(WHAT)? {
            0 => None,
            flags if flags & 1 == 1 && flags < 8 => Some(Bounds {
                min: ColdValue::read(r)?,
                max: ColdValue::read(r)?,
                min_exact: flags & 2 != 0,
                max_exact: flags & 4 != 0,
            }),
            _ => return Err(r.malformed(WHAT)),
        };
        let count = r.u32(WHAT)?;
        let exact = r.u8(WHAT)? != 0;
        let sketch = Bytes::copy_from_slice(r.bytes(WHAT)?);
        Ok(Self {
            ty,
            encoding,
            offset,
            len,
            crc,
            nulls,
            bounds,
            distinct: Distinct { count, exact, sketch },
        })
    }
}

impl Bounds {
    pub(crate) fn exact(min: ColdValue<'static>, max: ColdValue<'static>) -> Self {
        Self { min, max, min_exact: true, max_exact: true }
    }

    /// Bounds of strings, cut short.
    pub(crate) fn of_bytes(min: &[u8], max: &[u8]) -> Self {
        let cut = |s: &[u8]| ColdValue::Bytes(s[..s.len().min(MAX_BOUND)].to_vec().into());
        Self {
            min: cut(min),
            max: cut(max),
            min_exact: min.len() <= MAX_BOUND,
            max_exact: max.len() <= MAX_BOUND,
        }
    }
}
