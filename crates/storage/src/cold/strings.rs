//! String and binary columns: dictionary, FSST, or plain.
//!
//! Plain and FSST strings lie back to back in a heap. Their lengths are packed [words](super::words); where
//! each vector's strings begin is kept beside them, so that a string is found with a sum over at most one
//! vector of lengths.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::ArrayRef;
use arrow::buffer::{Buffer, NullBuffer};
use avocet_base::codec::{Put, Reader};

use super::bitpack::VECTOR;
use super::fsst::{self, Symbols};
use super::predicate::{ColumnPredicate, WordTest};
use super::sections::Sections;
use super::types::ColdType;
use super::views::{check_utf8, view, view_array};
use super::words::{self, Rows, Words};
use crate::error::{Result, StorageError};

/// Beyond this, offsets in views would overflow what Arrow's implementations agree on.
const MAX_HEAP: usize = i32::MAX as usize;

/// Where each of a column's strings lies in a heap.
#[derive(Debug)]
struct Places {
    lengths: Words,
    /// Where the strings of each vector begin; one more for the end.
    starts: Box<[usize]>,
}

impl Places {
    fn encode(lengths: &[i64]) -> Result<[Vec<u8>; 3]> {
        let mut starts = Vec::new();
        for vector in lengths.chunks(VECTOR) {
            starts.put_varint(vector.iter().map(|&l| l as u64).sum());
        }
        if lengths.iter().map(|&l| l as usize).sum::<usize>() > MAX_HEAP {
            return Err(StorageError::Unsupported("a string column of a block holds more than 2 GiB".into()));
        }
        let (dir, data) = words::encode(lengths);
        Ok([starts, dir, data])
    }

    /// Reads what `encode` wrote. After that each vector's lengths are known to add up to what its strings take, and none to be
    /// below zero: strings lie side by side, whichever way they are found.
    fn parse(rows: usize, sections: &mut Sections) -> Result<Self> {
        const WHAT: &str = "string lengths";
        let raw = sections.next(WHAT)?;
        let lengths = Words::parse(rows, &sections.next(WHAT)?, sections.next(WHAT)?)?;
        let mut r = Reader::new(&raw);
        let mut starts = vec![0];
        let mut at = 0usize;
        let mut of_vector = [0i64; VECTOR];
        for vector in 0..lengths.vectors() {
            let size = usize::try_from(r.varint(WHAT)?).unwrap_or(usize::MAX);
            at = at.saturating_add(size);
            let of_vector = &mut of_vector[..lengths.rows_in(vector)];
            lengths.decode_vector(vector, of_vector);
            // No sum of a vector's lengths wraps: each is less than 2^31, or the heap would be longer than it may be.
            let sound = of_vector.iter().all(|len| (0..=MAX_HEAP as i64).contains(len));
            if at > MAX_HEAP || !sound || of_vector.iter().sum::<i64>() != size as i64 {
                return Err(r.malformed(WHAT).into());
            }
            starts.push(at);
        }
        r.finish(WHAT)?;
        Ok(Self { lengths, starts: starts.into() })
    }

    fn end(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn size(&self) -> usize {
        self.lengths.size() + size_of_val(&*self.starts)
    }

    /// The place of one string.
    fn get(&self, row: usize) -> Result<Range<usize>> {
        let start = self.starts[row / VECTOR].saturating_add(self.lengths.sum_before(row) as usize);
        self.checked(start, self.lengths.get(row))
    }

    /// The place of a string will be asked for soon.
    fn prefetch(&self, row: usize) {
        self.lengths.prefetch_before(row);
    }

    fn checked(&self, start: usize, len: i64) -> Result<Range<usize>> {
        usize::try_from(len)
            .ok()
            .and_then(|len| start.checked_add(len))
            .filter(|&end| end <= self.end())
            .map(|end| start..end)
            .ok_or_else(|| StorageError::corrupt("string lengths", "a string passes the end of the heap"))
    }

    /// Calls `f` with the place of each string asked for.
    fn for_each(&self, rows: &Rows<'_>, mut f: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
        let mut lengths = [0i64; VECTOR];
        let mut one_vector = |vector: usize, wanted: &mut dyn Iterator<Item = usize>| -> Result<()> {
            let n = self.lengths.rows_in(vector);
            self.lengths.decode_vector(vector, &mut lengths[..n]);
            let (mut start, mut next) = (self.starts[vector], 0);
            for row in wanted {
                while next < row {
                    start = self.checked(start, lengths[next])?.end;
                    next += 1;
                }
                f(self.checked(start, lengths[row])?)?;
            }
            Ok(())
        };
        match rows {
            Rows::Range(range) => {
                let mut row = range.start;
                while row < range.end {
                    let (vector, at) = (row / VECTOR, row % VECTOR);
                    let to = (at + range.end - row).min(VECTOR);
                    one_vector(vector, &mut (at..to))?;
                    row += to - at;
                }
            }
            Rows::List(list) => {
                for rows in list.chunk_by(|a, b| *a as usize / VECTOR == *b as usize / VECTOR) {
                    one_vector(rows[0] as usize / VECTOR, &mut rows.iter().map(|&r| r as usize % VECTOR))?;
                }
            }
        }
        Ok(())
    }
}

/// Strings as they are.
#[derive(Debug)]
pub struct PlainBytes {
    places: Places,
    heap: Buffer,
}

impl PlainBytes {
    pub fn encode(strings: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
        let lengths: Vec<i64> = strings.iter().map(|s| s.len() as i64).collect();
        let mut sections = Places::encode(&lengths)?.to_vec();
        sections.push(strings.concat());
        Ok(sections)
    }

    pub fn parse(ty: ColdType, rows: usize, sections: &mut Sections) -> Result<Self> {
        let places = Places::parse(rows, sections)?;
        let heap = sections.next("string heap")?;
        if places.end() != heap.len() {
            return Err(StorageError::corrupt("string lengths", "they do not add up to the heap"));
        }
        if ty == ColdType::Utf8 {
            let lengths = places.lengths.decode::<i64>(&Rows::Range(0..rows));
            check_utf8(&heap, lengths.iter().map(|&l| l as usize))?;
        }
        Ok(Self { places, heap })
    }

    pub fn size(&self) -> usize {
        self.places.size() + self.heap.len()
    }

    pub fn get(&self, row: usize) -> Result<&[u8]> {
        Ok(&self.heap[self.places.get(row)?])
    }

    /// The string will be asked for soon.
    pub fn prefetch(&self, row: usize) {
        self.places.prefetch(row);
    }

    #[allow(unsafe_code)]
    pub fn decode(&self, ty: ColdType, rows: &Rows<'_>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let heap = self.heap.as_slice();
        let mut views = Vec::with_capacity(rows.len());
        self.places.for_each(rows, |place| {
            views.push(view(heap, place.start, place.len()));
            Ok(())
        })?;
        // SAFETY: the views are over the heap, and `parse` checked that all its strings are UTF-8.
        Ok(unsafe { view_array(ty, views, self.heap.clone(), nulls) })
    }

    pub fn for_each(&self, rows: &[u32], mut f: impl FnMut(usize, &[u8])) -> Result<()> {
        let mut list = rows.iter();
        self.places.for_each(&Rows::List(rows), |place| {
            let row = *list.next().expect("a place per row");
            f(row as usize, &self.heap[place]);
            Ok(())
        })
    }
}

/// Strings compressed with FSST.
#[derive(Debug)]
pub struct FsstBytes {
    symbols: Symbols,
    /// Places of compressed strings in the heap.
    packed: Places,
    /// Places of the strings if all were decoded.
    plain: Places,
    heap: Buffer,
    is_text: bool,
    /// All strings, decoded in one go, were seen to be UTF-8.
    checked: AtomicBool,
}

impl FsstBytes {
    pub fn encode(strings: &[&[u8]], compressed: &fsst::Compressed) -> Result<Vec<Vec<u8>>> {
        let mut from = 0;
        let packed: Vec<i64> = compressed
            .ends
            .iter()
            .map(|&end| {
                let len = end - from;
                from = end;
                len as i64
            })
            .collect();
        let plain: Vec<i64> = strings.iter().map(|s| s.len() as i64).collect();
        let mut sections = vec![compressed.symbols.clone()];
        sections.extend(Places::encode(&packed)?);
        sections.extend(Places::encode(&plain)?);
        sections.push(compressed.heap.clone());
        Ok(sections)
    }

    pub fn parse(ty: ColdType, rows: usize, sections: &mut Sections) -> Result<Self> {
        let symbols = Symbols::parse(&sections.next("symbol table")?)?;
        let packed = Places::parse(rows, sections)?;
        let plain = Places::parse(rows, sections)?;
        let heap = sections.next("string heap")?;
        // No code stands for more than eight bytes, so nothing larger needs to be allocated.
        if packed.end() != heap.len() || plain.end() > heap.len() * 8 {
            return Err(StorageError::corrupt("string lengths", "they do not add up to the heap"));
        }
        let is_text = ty == ColdType::Utf8;
        Ok(Self { symbols, packed, plain, heap, is_text, checked: AtomicBool::new(false) })
    }

    pub fn size(&self) -> usize {
        self.packed.size() + self.plain.size() + self.heap.len() + 256 * 9
    }

    /// The string will be asked for soon.
    pub fn prefetch(&self, row: usize) {
        self.packed.prefetch(row);
        self.plain.lengths.prefetch(row);
    }

    pub fn get(&self, row: usize) -> Result<Vec<u8>> {
        let len = usize::try_from(self.plain.lengths.get(row)).unwrap_or(usize::MAX).min(self.plain.end());
        let mut out = Vec::with_capacity(len + 8);
        self.symbols.decode(&self.heap[self.packed.get(row)?], len, &mut out)?;
        if self.is_text && !self.checked.load(Ordering::Relaxed) {
            check_utf8(&out, [])?;
        }
        Ok(out)
    }

    #[allow(unsafe_code)]
    pub fn decode(&self, ty: ColdType, rows: &Rows<'_>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let lengths = self.plain.lengths.decode::<i64>(rows);
        let heap = self.decode_heap(rows, &lengths)?;
        let whole = matches!(rows, Rows::Range(r) if r.len() == self.plain.lengths.len());
        if self.is_text && !(whole && self.checked.load(Ordering::Relaxed)) {
            check_utf8(&heap, lengths.iter().map(|&l| l as usize))?;
            self.checked.fetch_or(whole, Ordering::Relaxed);
        }
        let mut views = Vec::with_capacity(lengths.len());
        let mut at = 0;
        for &len in &lengths {
            let len = len as usize;
            views.push(view(&heap, at, len));
            at += len;
        }
        // SAFETY: the views are over the heap; its strings were checked to be UTF-8 just now, or when the same
        // bytes were decoded before.
        Ok(unsafe { view_array(ty, views, Buffer::from_vec(heap), nulls) })
    }

    /// The strings asked for, back to back. A range is decoded in one go.
    fn decode_heap(&self, rows: &Rows<'_>, lengths: &[i64]) -> Result<Vec<u8>> {
        let total = lengths
            .iter()
            .try_fold(0usize, |sum, &l| sum.checked_add(usize::try_from(l).ok()?))
            .filter(|&sum| sum <= self.plain.end())
            .ok_or_else(|| StorageError::corrupt("string lengths", "they pass the end of the strings"))?;
        let mut out = Vec::with_capacity(total + 8);
        match rows {
            Rows::Range(range) if range.is_empty() => {}
            Rows::Range(range) => {
                let (first, last) = (self.packed.get(range.start)?, self.packed.get(range.end - 1)?);
                let codes = self.heap.get(first.start..last.end);
                let codes =
                    codes.ok_or_else(|| StorageError::corrupt("string lengths", "they go backwards"))?;
                self.symbols.decode(codes, total, &mut out)?;
            }
            Rows::List(_) => {
                let mut lengths = lengths.iter();
                self.packed.for_each(rows, |place| {
                    let len = *lengths.next().expect("a place per row") as usize;
                    self.symbols.decode(&self.heap[place], len, &mut out)
                })?;
            }
        }
        Ok(out)
    }

    pub fn for_each(&self, rows: &[u32], mut f: impl FnMut(usize, &[u8])) -> Result<()> {
        for wanted in rows.chunk_by(|a, b| *a as usize / VECTOR == *b as usize / VECTOR) {
            let (first, last) = (wanted[0] as usize, wanted[wanted.len() - 1] as usize);
            // Decoding in one go what lies between pays from about this density on.
            let dense = wanted.len() * 4 >= last + 1 - first;
            let decoded = if dense { Rows::Range(first..last + 1) } else { Rows::List(wanted) };
            let lengths = self.plain.lengths.decode::<i64>(&decoded);
            let heap = self.decode_heap(&decoded, &lengths)?;
            let (mut at, mut next) = (0, 0);
            for (i, &len) in lengths.iter().enumerate() {
                let row = if dense { first + i } else { wanted[i] as usize };
                if row == wanted[next] as usize {
                    f(row, &heap[at..at + len as usize]);
                    next += 1;
                }
                at += len as usize;
            }
        }
        Ok(())
    }
}

/// Few distinct strings: sorted entries, and a packed code per row.
#[derive(Debug)]
pub struct DictBytes {
    heap: Buffer,
    /// Where entries begin in the heap; one more for the end.
    starts: Box<[u32]>,
    /// The view of each entry.
    views: Box<[u128]>,
    pub codes: Words,
}

impl DictBytes {
    /// `entries` ascend, so that an order on strings is an order on codes.
    pub fn encode(entries: &[&[u8]], codes: &[i64]) -> Vec<Vec<u8>> {
        let mut lengths = Vec::new();
        lengths.put_varint(entries.len() as u64);
        for entry in entries {
            lengths.put_varint(entry.len() as u64);
        }
        let (dir, data) = words::encode(codes);
        vec![lengths, entries.concat(), dir, data]
    }

    pub fn parse(ty: ColdType, rows: usize, sections: &mut Sections) -> Result<Self> {
        const WHAT: &str = "dictionary";
        let lengths = sections.next(WHAT)?;
        let heap = sections.next(WHAT)?;
        let mut r = Reader::new(&lengths);
        let entries = r.varint(WHAT)? as usize;
        if entries > r.remaining() || heap.len() > MAX_HEAP {
            return Err(r.malformed(WHAT).into());
        }
        let mut starts = vec![0u32];
        let mut views = Vec::with_capacity(entries);
        let mut at = 0usize;
        for _ in 0..entries {
            let len = usize::try_from(r.varint(WHAT)?).unwrap_or(usize::MAX);
            let end =
                at.checked_add(len).filter(|&end| end <= heap.len()).ok_or_else(|| r.malformed(WHAT))?;
            views.push(view(&heap, at, len));
            starts.push(end as u32);
            at = end;
        }
        r.finish(WHAT)?;
        if ty == ColdType::Utf8 {
            check_utf8(&heap, starts.windows(2).map(|w| (w[1] - w[0]) as usize))?;
        }
        let codes = Words::parse(rows, &sections.next(WHAT)?, sections.next(WHAT)?)?;
        Ok(Self { heap, starts: starts.into(), views: views.into(), codes })
    }

    pub fn size(&self) -> usize {
        self.heap.len() + self.starts.len() * 4 + self.views.len() * 16 + self.codes.size()
    }

    /// The number of distinct strings.
    pub fn entries(&self) -> usize {
        self.views.len()
    }

    /// The entry with this code.
    pub fn entry(&self, code: usize) -> Result<&[u8]> {
        match self.starts.get(code..code + 2) {
            Some(&[start, end]) => Ok(&self.heap[start as usize..end as usize]),
            _ => Err(bad_code()),
        }
    }

    pub fn get(&self, row: usize) -> Result<&[u8]> {
        self.entry(usize::try_from(self.codes.get(row)).map_err(|_| bad_code())?)
    }

    #[allow(unsafe_code)]
    pub fn decode(&self, ty: ColdType, rows: &Rows<'_>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let codes = self.codes.decode::<u32>(rows);
        let views = lookup(&self.views, &codes)?;
        // SAFETY: the views are over the heap, and `parse` checked that the entries are UTF-8.
        Ok(unsafe { view_array(ty, views, self.heap.clone(), nulls) })
    }

    /// The predicate on codes: one evaluation per entry.
    pub fn test(&self, pred: &ColumnPredicate) -> Result<WordTest> {
        let mut hits = Vec::new();
        for code in 0..self.entries() {
            let entry = super::value::ColdValue::Bytes(self.entry(code)?.into());
            if pred.matches(&entry) {
                hits.push(code as i64);
            }
        }
        Ok(WordTest::set(hits))
    }
}

fn bad_code() -> StorageError {
    StorageError::corrupt("dictionary codes", "a code has no entry")
}

/// The entries that codes stand for.
pub fn lookup<T: Copy>(entries: &[T], codes: &[u32]) -> Result<Vec<T>> {
    let most = codes.iter().copied().max();
    if most.is_some_and(|most| most as usize >= entries.len()) {
        return Err(bad_code());
    }
    Ok(codes.iter().map(|&code| entries[code as usize]).collect())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, StringViewArray};

    use super::*;
    use crate::cold::meta::Encoding;
    use crate::cold::sections;
    use crate::cold::{EncodedColumn, encode_column};

    /// A column of text as somebody has written it whose checksums are right.
    fn column(rows: usize, encoding: Encoding, sections: &[Vec<u8>]) -> Result<EncodedColumn> {
        let empty: ArrayRef = std::sync::Arc::new(StringViewArray::from_iter_values(vec![""; rows]));
        let mut meta = encode_column(ColdType::Utf8, &empty).expect("encoded").meta;
        meta.encoding = encoding;
        EncodedColumn::parse(&meta, rows, &sections::join(sections).expect("short"))
    }

    /// Three sections of string places that say what they are told to.
    fn places(of_vectors: &[u64], lengths: &[i64]) -> Vec<Vec<u8>> {
        let mut starts = Vec::new();
        of_vectors.iter().for_each(|size| starts.put_varint(*size));
        let (dir, data) = words::encode(lengths);
        vec![starts, dir, data]
    }

    #[test]
    fn lengths_that_disagree_with_the_vectors_are_damage() {
        // Two vectors of letters with two bytes each: places a byte off are no text.
        let lengths = vec![2i64; VECTOR + 10];
        let heap = "ä".repeat(lengths.len()).into_bytes();
        let whole = (2 * VECTOR) as u64;
        let plain = |of_vectors: &[u64], lengths: &[i64]| {
            let sections = [places(of_vectors, lengths), vec![heap.clone()]].concat();
            column(lengths.len(), Encoding::BytesPlain, &sections)
        };
        let sound = plain(&[whole, 20], &lengths).expect("sound");
        assert_eq!(sound.decode().expect("decoded").len(), lengths.len());
        assert!(plain(&[whole - 1, 21], &lengths).is_err(), "the second vector begins within a letter");
        let mut shifted = lengths.clone();
        (shifted[VECTOR - 1], shifted[VECTOR]) = (0, 4);
        assert!(plain(&[whole, 20], &shifted).is_err(), "the vectors' sums are others");
        // Below zero, and rising along the vector, so that its frame has a slope.
        let mut below: Vec<i64> = (0..VECTOR as i64).map(|n| n - 100).collect();
        below.extend([2; 10]);
        let sum: i64 = below[..VECTOR].iter().sum();
        let heap = "x".repeat(sum as usize + 20).into_bytes();
        let sections = [places(&[sum as u64, 20], &below), vec![heap]].concat();
        assert!(column(below.len(), Encoding::BytesPlain, &sections).is_err(), "lengths below zero");
    }

    #[test]
    fn compressed_strings_that_are_no_text_are_damage_one_by_one_too() {
        let strings: Vec<&[u8]> = vec![b"sound, and sound again", b"not \xff\xfe text", b"sound"];
        let sections = FsstBytes::encode(&strings, &fsst::compress(&strings)).expect("encoded");
        let column = column(strings.len(), Encoding::BytesFsst, &sections).expect("its places are sound");
        assert!(column.value_at(0).is_ok() && column.value_at(2).is_ok());
        assert!(column.value_at(1).is_err());
        assert!(column.decode().is_err());
    }
}
