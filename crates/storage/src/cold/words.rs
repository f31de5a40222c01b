//! Sequences of 64-bit integers (*words*), packed vector by vector: frame of reference, with a slope for
//! sequences that climb. It holds integer, date, time and decimal columns, and inside other encodings
//! dictionary codes and string lengths.
//!
//! Each vector of 1,024 words has its own frame, so sorted and clustered columns pack tightly, and its own
//! minimum and maximum, which decide most predicates without a look at the packed data:
//!
//! ```text
//!   word i of a vector = base + (slope · i >> 20) + packed field i        (slope is 0 for most)
//! ```
//!
//! The slope replaces delta coding: it takes the trend out of keys and timestamps and leaves every word
//! reachable in constant time. All arithmetic wraps, so no bytes can make a reader overflow.

use std::ops::Range;

use arrow::buffer::Buffer;
use avocet_base::codec::{Put, Reader};

use super::bitpack::{Lane, LaneWidth, VECTOR, bits, packed_len};
use super::predicate::WordTest;
use crate::error::{Result, StorageError};
use crate::prefetch::prefetch;

const SLOPED: u8 = 0x80;
const SLOPE_SHIFT: u32 = 20;
/// A slope costs decoding time and predicates on packed fields; it must save this many bits per word.
const SLOPE_MUST_SAVE: u8 = 2;
/// Beyond this range a slope could overflow its fixed point, and would not help.
const SLOPE_MAX_RANGE: u64 = 1 << 40;
/// From this many rows of a vector on, unpacking all of it is cheaper than picking them.
const UNPACK_ALL: usize = 128;

/// The rows of a block that are asked for.
#[derive(Debug, Clone)]
pub enum Rows<'a> {
    Range(Range<usize>),
    /// Ascending row numbers.
    List(&'a [u32]),
}

impl Rows<'_> {
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::List(list) => list.len(),
        }
    }
}

/// What a word decodes to.
pub trait FromWord: Copy + Default {
    fn from_word(word: i64) -> Self;
}

macro_rules! from_word {
    ($($t:ty),*) => {$(
        impl FromWord for $t {
            #[inline(always)]
            fn from_word(word: i64) -> Self {
                word as Self
            }
        }
    )*};
}

from_word!(i8, i16, i32, i64, u8, u16, u32, i128);

impl FromWord for u64 {
    #[inline(always)]
    fn from_word(word: i64) -> Self {
        word as u64 ^ SIGN
    }
}

impl FromWord for arrow::datatypes::i256 {
    #[inline(always)]
    fn from_word(word: i64) -> Self {
        Self::from_i128(i128::from(word))
    }
}

/// Unsigned 64-bit values are words with the sign bit flipped, so that words order as the values do.
pub const SIGN: u64 = 1 << 63;

/// The frame of one vector.
#[derive(Debug, Clone, Copy)]
struct Frame {
    min: i64,
    max: i64,
    base: i64,
    slope: i64,
    /// Offset of the packed fields, in bytes.
    offset: usize,
    width: u8,
}

impl Frame {
    #[inline(always)]
    fn trend(&self, at: usize) -> i64 {
        (at as i64).wrapping_mul(self.slope) >> SLOPE_SHIFT
    }
}

/// A packed sequence of words.
#[derive(Debug, Clone)]
pub struct Words {
    len: usize,
    frames: Box<[Frame]>,
    data: Buffer,
}

/// Packs words; returns the directory and the packed data.
pub fn encode(words: &[i64]) -> (Vec<u8>, Vec<u8>) {
    let (mut dir, mut data) = (Vec::new(), Vec::new());
    let low = words.iter().copied().min().unwrap_or(0);
    dir.put_i64(low);
    for vector in words.chunks(VECTOR) {
        encode_vector(vector, low, &mut dir, &mut data);
    }
    (dir, data)
}

fn encode_vector(vector: &[i64], low: i64, dir: &mut Vec<u8>, data: &mut Vec<u8>) {
    let (min, max) = min_max(vector);
    let span = max.wrapping_sub(min) as u64;
    let mut frame = Frame { min, max, base: min, slope: 0, offset: 0, width: bits(span) };
    if frame.width > SLOPE_MUST_SAVE
        && span < SLOPE_MAX_RANGE
        && let Some(sloped) = sloped_frame(vector, &frame)
        && sloped.width + SLOPE_MUST_SAVE <= frame.width
    {
        frame = sloped;
    }
    let sloped = frame.slope != 0;
    dir.put_u8(frame.width | if sloped { SLOPED } else { 0 });
    dir.put_varint(min.wrapping_sub(low) as u64);
    dir.put_varint(span);
    if sloped {
        dir.put_varint(zigzag(frame.base.wrapping_sub(min)));
        dir.put_varint(zigzag(frame.slope));
    }
    match LaneWidth::of(frame.width) {
        LaneWidth::L8 => pack::<u8>(vector, &frame, data),
        LaneWidth::L16 => pack::<u16>(vector, &frame, data),
        LaneWidth::L32 => pack::<u32>(vector, &frame, data),
        LaneWidth::L64 => pack::<u64>(vector, &frame, data),
    }
}

fn min_max(vector: &[i64]) -> (i64, i64) {
    vector.iter().fold((i64::MAX, i64::MIN), |(min, max), &w| (min.min(w), max.max(w)))
}

/// The frame along the line from the first word to the last.
fn sloped_frame(vector: &[i64], flat: &Frame) -> Option<Frame> {
    let steps = vector.len().checked_sub(1).filter(|&n| n > 0)? as i64;
    let slope = (vector[vector.len() - 1].wrapping_sub(vector[0]) << SLOPE_SHIFT) / steps;
    let mut frame = Frame { slope, ..*flat };
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for (at, &word) in vector.iter().enumerate() {
        let rest = word.wrapping_sub(frame.trend(at));
        least = least.min(rest);
        most = most.max(rest);
    }
    frame.base = least;
    frame.width = bits(most.wrapping_sub(least) as u64);
    (slope != 0).then_some(frame)
}

fn pack<L: Lane>(vector: &[i64], frame: &Frame, data: &mut Vec<u8>) {
    let mut fields = [L::default(); VECTOR];
    for (at, (field, &word)) in fields.iter_mut().zip(vector).enumerate() {
        *field = L::from_u64(word.wrapping_sub(frame.base).wrapping_sub(frame.trend(at)) as u64);
    }
    let mut packed = [L::default(); VECTOR];
    let packed = &mut packed[..usize::from(frame.width) * L::LANES];
    L::pack(frame.width, &fields, packed);
    L::append_le(packed, data);
}

fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

impl Words {
    /// Reads what [`encode`] made of `len` words. `data` is aligned to 8 bytes.
    pub fn parse(len: usize, dir: &[u8], data: Buffer) -> Result<Self> {
        const WHAT: &str = "packed integers";
        let mut r = Reader::new(dir);
        let low = r.i64(WHAT)?;
        let mut frames = Vec::with_capacity(len.div_ceil(VECTOR));
        let mut offset = 0;
        for _ in 0..len.div_ceil(VECTOR) {
            let head = r.u8(WHAT)?;
            let width = head & !SLOPED;
            if width > 64 {
                return Err(r.malformed(WHAT).into());
            }
            let min = low.wrapping_add(r.varint(WHAT)? as i64);
            let max = min.wrapping_add(r.varint(WHAT)? as i64);
            let (mut base, mut slope) = (min, 0);
            if head & SLOPED != 0 {
                base = min.wrapping_add(unzigzag(r.varint(WHAT)?));
                slope = unzigzag(r.varint(WHAT)?);
            }
            if max < min {
                return Err(r.malformed(WHAT).into());
            }
            frames.push(Frame { min, max, base, slope, offset, width });
            offset += packed_len(width);
        }
        r.finish(WHAT)?;
        if offset != data.len() || data.as_ptr().align_offset(align_of::<u64>()) != 0 {
            return Err(StorageError::corrupt(
                WHAT,
                format_args!("{} bytes in place of {offset}", data.len()),
            ));
        }
        Ok(Self { len, frames: frames.into(), data })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes in memory.
    pub fn size(&self) -> usize {
        self.data.len() + size_of_val(&*self.frames)
    }

    pub fn vectors(&self) -> usize {
        self.frames.len()
    }

    fn fields<L: Lane>(&self, frame: &Frame) -> &[L] {
        let all = L::cast(self.data.as_slice());
        &all[frame.offset / size_of::<L>()..][..usize::from(frame.width) * L::LANES]
    }

    /// The word at `row`.
    #[inline]
    pub fn get(&self, row: usize) -> i64 {
        assert!(row < self.len, "word {row} of {}", self.len);
        let (frame, at) = (&self.frames[row / VECTOR], row % VECTOR);
        self.get_in(frame, at)
    }

    #[inline]
    fn get_in(&self, frame: &Frame, at: usize) -> i64 {
        let width = frame.width;
        let field = match LaneWidth::of(width) {
            LaneWidth::L8 => u64::from(u8::unpack_one(width, self.fields(frame), at)),
            LaneWidth::L16 => u64::from(u16::unpack_one(width, self.fields(frame), at)),
            LaneWidth::L32 => u64::from(u32::unpack_one(width, self.fields(frame), at)),
            LaneWidth::L64 => u64::unpack_one(width, self.fields(frame), at),
        };
        frame.base.wrapping_add(frame.trend(at)).wrapping_add(field as i64)
    }

    /// The word at `row` will be looked at soon.
    pub fn prefetch(&self, row: usize) {
        let (packed, at) = self.packed(row);
        prefetch(&packed[at..packed.len().min(at + size_of::<u64>())]);
    }

    /// `sum_before` will be asked for soon.
    pub fn prefetch_before(&self, row: usize) {
        let (packed, at) = self.packed(row);
        prefetch(&packed[..packed.len().min(at + size_of::<u64>())]);
    }

    /// The packed fields of a row's vector, and about where in them the row's is.
    fn packed(&self, row: usize) -> (&[u8], usize) {
        let frame = &self.frames[row / VECTOR];
        let fields = &self.data.as_slice()[frame.offset..frame.offset + packed_len(frame.width)];
        (fields, row % VECTOR * usize::from(frame.width) / 8)
    }

    /// Rows of a vector: the last one may be short.
    pub fn rows_in(&self, vector: usize) -> usize {
        (self.len - vector * VECTOR).min(VECTOR)
    }

    /// Decodes the first words of a vector, as many as `out` has room for.
    pub fn decode_vector<O: FromWord>(&self, vector: usize, out: &mut [O]) {
        let frame = &self.frames[vector];
        if frame.width == 0 && frame.slope == 0 {
            out.fill(O::from_word(frame.base));
            return;
        }
        match LaneWidth::of(frame.width) {
            LaneWidth::L8 => widen::<u8, O>(frame, self.fields(frame), out),
            LaneWidth::L16 => widen::<u16, O>(frame, self.fields(frame), out),
            LaneWidth::L32 => widen::<u32, O>(frame, self.fields(frame), out),
            LaneWidth::L64 => widen::<u64, O>(frame, self.fields(frame), out),
        }
    }

    /// Decodes the rows asked for.
    pub fn decode<O: FromWord>(&self, rows: &Rows<'_>) -> Vec<O> {
        match rows {
            Rows::Range(range) => self.decode_range(range.clone()),
            Rows::List(list) => self.gather(list),
        }
    }

    fn decode_range<O: FromWord>(&self, range: Range<usize>) -> Vec<O> {
        let mut out = vec![O::default(); range.len()];
        let (mut row, mut rest) = (range.start, &mut out[..]);
        while !rest.is_empty() {
            let (vector, at) = (row / VECTOR, row % VECTOR);
            let take = rest.len().min(VECTOR - at);
            let (now, later) = rest.split_at_mut(take);
            if at == 0 {
                self.decode_vector(vector, now);
            } else {
                let mut whole = [O::default(); VECTOR];
                self.decode_vector(vector, &mut whole);
                now.copy_from_slice(&whole[at..at + take]);
            }
            row += take;
            rest = later;
        }
        out
    }

    fn gather<O: FromWord>(&self, list: &[u32]) -> Vec<O> {
        let mut out = Vec::with_capacity(list.len());
        for rows in list.chunk_by(|a, b| *a as usize / VECTOR == *b as usize / VECTOR) {
            let vector = rows[0] as usize / VECTOR;
            if rows.len() < UNPACK_ALL {
                let frame = &self.frames[vector];
                out.extend(rows.iter().map(|&r| O::from_word(self.get_in(frame, r as usize % VECTOR))));
            } else {
                let mut whole = [O::default(); VECTOR];
                self.decode_vector(vector, &mut whole);
                out.extend(rows.iter().map(|&r| whole[r as usize % VECTOR]));
            }
        }
        out
    }

    /// Sum of the words from the start of `row`'s vector up to it.
    pub fn sum_before(&self, row: usize) -> u64 {
        let (frame, at) = (&self.frames[row / VECTOR], row % VECTOR);
        let fields = match LaneWidth::of(frame.width) {
            LaneWidth::L8 => u8::sum(frame.width, self.fields(frame), at),
            LaneWidth::L16 => u16::sum(frame.width, self.fields(frame), at),
            LaneWidth::L32 => u32::sum(frame.width, self.fields(frame), at),
            LaneWidth::L64 => u64::sum(frame.width, self.fields(frame), at),
        };
        let mut trend = 0u64;
        if frame.slope != 0 {
            trend = (0..at).fold(0, |sum: u64, i| sum.wrapping_add(frame.trend(i) as u64));
        }
        fields.wrapping_add(trend).wrapping_add((frame.base as u64).wrapping_mul(at as u64))
    }

    /// Clears the bits of rows whose words fail the test. `selected` has the rows of the sequence.
    pub fn filter(&self, test: &WordTest, selected: &mut [u64]) {
        for (vector, selected) in selected.chunks_mut(VECTOR / 64).enumerate() {
            if selected.iter().any(|&w| w != 0) {
                self.filter_vector(vector, test, selected);
            }
        }
    }

    fn filter_vector(&self, vector: usize, test: &WordTest, selected: &mut [u64]) {
        let frame = &self.frames[vector];
        match test.on_bounds(frame.min, frame.max) {
            Some(true) => return,
            Some(false) => return selected.fill(0),
            None => {}
        }
        let mut hits = [0; VECTOR / 64];
        match test {
            WordTest::Range { low, high, negate } if frame.slope == 0 => {
                self.fields_within(frame, *low, *high, &mut hits);
                if *negate {
                    hits.iter_mut().for_each(|w| *w = !*w);
                }
            }
            _ => {
                let mut words = [0i64; VECTOR];
                self.decode_vector(vector, &mut words);
                let (chunks, _) = words.as_chunks::<64>();
                for (hits, words) in hits.iter_mut().zip(chunks) {
                    *hits = match test {
                        WordTest::Keys(set) => set.among(words),
                        _ => super::bitpack::gather_bits(&words.map(|w| u8::from(test.holds(w)))),
                    };
                }
            }
        }
        for (selected, hits) in selected.iter_mut().zip(hits) {
            *selected &= hits;
        }
    }

    /// Compares packed fields: words in `low..=high` are fields in a range of the same length, cut to
    /// what a field can be.
    fn fields_within(&self, frame: &Frame, low: i64, high: i64, hits: &mut [u64; VECTOR / 64]) {
        let low = low.max(frame.base).wrapping_sub(frame.base) as u64;
        let most = if frame.width == 64 { u64::MAX } else { (1 << frame.width) - 1 };
        let high = (high.wrapping_sub(frame.base) as u64).min(most);
        if low > high {
            return;
        }
        let width = frame.width;
        match LaneWidth::of(width) {
            LaneWidth::L8 => {
                u8::within(width, self.fields(frame), low as u8, (high - low) as u8, hits);
            }
            LaneWidth::L16 => {
                u16::within(width, self.fields(frame), low as u16, (high - low) as u16, hits);
            }
            LaneWidth::L32 => {
                u32::within(width, self.fields(frame), low as u32, (high - low) as u32, hits);
            }
            LaneWidth::L64 => u64::within(width, self.fields(frame), low, high - low, hits),
        }
    }
}

fn widen<L: Lane, O: FromWord>(frame: &Frame, packed: &[L], out: &mut [O]) {
    let mut fields = [L::default(); VECTOR];
    L::unpack(frame.width, packed, &mut fields);
    if frame.slope == 0 {
        for (o, f) in out.iter_mut().zip(&fields) {
            *o = O::from_word(frame.base.wrapping_add(f.to_u64() as i64));
        }
    } else {
        for (at, (o, f)) in out.iter_mut().zip(&fields).enumerate() {
            *o = O::from_word(frame.base.wrapping_add(frame.trend(at)).wrapping_add(f.to_u64() as i64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[i64]) -> usize {
        let (dir, data) = encode(words);
        let packed = Words::parse(words.len(), &dir, Buffer::from_slice_ref(&data)).unwrap();
        assert_eq!(packed.decode::<i64>(&Rows::Range(0..words.len())), words);
        for row in (0..words.len()).step_by(37) {
            assert_eq!(packed.get(row), words[row]);
        }
        let some: Vec<u32> = (0..words.len() as u32).filter(|r| r % 3 == 1 || r / 500 == 2).collect();
        let expected: Vec<i64> = some.iter().map(|&r| words[r as usize]).collect();
        assert_eq!(packed.decode::<i64>(&Rows::List(&some)), expected);
        if words.len() > 1030 {
            assert_eq!(packed.decode::<i64>(&Rows::Range(1000..1030)), &words[1000..1030]);
            assert_eq!(
                packed.sum_before(1030),
                words[1024..1030].iter().fold(0, |sum: u64, &w| sum.wrapping_add(w as u64))
            );
        }
        for row in [0, words.len() / 2] {
            let Some(&pivot) = words.get(row) else { continue };
            for (low, high) in
                [(pivot, pivot), (i64::MIN, pivot), (pivot, i64::MAX), (pivot, pivot.wrapping_sub(1))]
            {
                for negate in [false, true] {
                    let test = WordTest::Range { low, high, negate };
                    let mut selected = vec![u64::MAX; words.len().div_ceil(64)];
                    packed.filter(&test, &mut selected);
                    for (at, &w) in words.iter().enumerate() {
                        assert_eq!(selected[at / 64] >> (at % 64) & 1 == 1, test.holds(w), "{w} in {test:?}");
                    }
                }
            }
        }
        data.len()
    }

    #[test]
    fn sequences_of_all_shapes_round_trip() {
        assert_eq!(check(&[]), 0);
        assert_eq!(check(&[42]), 0);
        assert_eq!(check(&[7; 3000]), 0);
        check(&[i64::MIN, i64::MAX, 0, -1, 1]);
        check(&(0..5000).map(|i| (i * 7919) % 1000 - 500).collect::<Vec<_>>());
        check(&(0..5000i64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64)).collect::<Vec<_>>());
    }

    #[test]
    fn sequences_that_climb_take_no_room_for_the_climb() {
        assert_eq!(check(&(1..=65536).collect::<Vec<_>>()), 0);
        assert_eq!(check(&(0..4096).map(|i| 1_000_000 - 12 * i).collect::<Vec<_>>()), 0);
        let noisy: Vec<i64> = (0..65536).map(|i| i * 1000 + ((i * 37) & 15)).collect();
        assert!(check(&noisy) <= 64 * packed_len(6));
    }

    #[test]
    fn malformed_directories_are_errors() {
        let (dir, data) = encode(&(0..2000).map(|i| i * i % 777).collect::<Vec<_>>());
        let data = Buffer::from_slice_ref(&data);
        for cut in 0..dir.len() {
            assert!(Words::parse(2000, &dir[..cut], data.clone()).is_err());
        }
        assert!(Words::parse(2000, &dir, data.slice(8)).is_err());
        assert!(Words::parse(3000, &dir, data).is_err());
    }
}
