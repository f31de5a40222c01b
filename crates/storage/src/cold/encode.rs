//! From Arrow arrays to column chunks: gathers values, takes their statistics and chooses an encoding.
//! [`encode_column`] is a pure function of one array, so a caller encodes the columns of a block in parallel.

use std::collections::HashMap;
use std::hash::Hash;

use arrow::array::{Array, AsArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    ToByteSlice, UInt8Type, UInt16Type, UInt32Type, UInt64Type, i256,
};
use avocet_base::checksum::crc32c;

use super::bitmap::Bitmap;
use super::fixed::{Fixed, word_value};
use super::fsst;
use super::meta::{Bounds, ColumnMeta, Distinct, Encoding};
use super::ordinals::MAX_ROWS;
use super::sections::join;
use super::sketch::DistinctSketch;
use super::strings::{DictBytes, FsstBytes, PlainBytes};
use super::types::{Class, ColdType};
use super::value::{ColdValue, compare_floats};
use super::words::{self, SIGN};
use crate::error::{Result, StorageError};

/// A dictionary is looked for only if a sample of this many values has at most half as many distinct ones.
const SAMPLE: usize = 1024;
/// Words whose range is at most this are counted exactly with a bit set.
const COUNTED_RANGE: u64 = 1 << 18;
/// Words packed at least this wide on average are worth a look for a dictionary.
const DICT_WORTH_BITS: usize = 12;
/// Strings shorter than this altogether stay plain.
const FSST_WORTH: usize = 512;

/// The chunk of one column, with metadata whose offset is not yet set.
#[derive(Debug)]
pub struct EncodedChunk {
    pub bytes: Vec<u8>,
    pub meta: ColumnMeta,
}

/// An encoded body before it is framed.
struct Body {
    encoding: Encoding,
    sections: Vec<Vec<u8>>,
    bounds: Bounds,
    distinct: Distinct,
}

/// Encodes one column.
pub fn encode_column(ty: ColdType, array: &dyn Array) -> Result<EncodedChunk> {
    encode(ty, array, DistinctSketch::new)
}

/// The same without a sketch of its distinct values, for what nobody asks these of: it takes less time and room.
pub fn encode_uncounted(ty: ColdType, array: &dyn Array) -> Result<EncodedChunk> {
    encode(ty, array, DistinctSketch::none)
}

/// Makes the sketch that counts a column's values.
type Counter = fn() -> DistinctSketch;

fn encode(ty: ColdType, array: &dyn Array, counter: Counter) -> Result<EncodedChunk> {
    if ColdType::from_arrow(array.data_type())? != ty {
        return Err(StorageError::Unsupported(format!("a {} array for a {ty:?} column", array.data_type())));
    }
    if array.len() > MAX_ROWS {
        return Err(StorageError::Unsupported(format!("{} rows in a block", array.len())));
    }
    let nulls = array.nulls().filter(|n| n.null_count() > 0);
    let null_count = nulls.map_or(0, NullBuffer::null_count);
    if null_count == array.len() {
        return all_null(ty, null_count, counter);
    }
    let body = match ty.class() {
        Class::Word => encode_words(ty, &gather_words(ty, array), nulls, counter),
        Class::Int128 => encode_int128(ty, array.as_primitive::<Decimal128Type>().values(), nulls, counter),
        Class::Int256 => encode_int256(ty, array.as_primitive::<Decimal256Type>().values(), nulls, counter),
        Class::F32 => encode_floats(array.as_primitive::<Float32Type>().values(), nulls, Fixed::F32, counter),
        Class::F64 => encode_floats(array.as_primitive::<Float64Type>().values(), nulls, Fixed::F64, counter),
        Class::Bytes => encode_bytes(&gather_bytes(array, nulls), nulls, counter),
    }?;
    let mut sections = body.sections;
    if let Some(nulls) = nulls {
        let mask = Bitmap::from_boolean_buffer(nulls.inner());
        let mut bytes: Vec<u8> = mask.words().iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.truncate(array.len().div_ceil(8));
        sections.insert(0, bytes);
    }
    chunk(ty, body.encoding, null_count, Some(body.bounds), body.distinct, &sections)
}

fn all_null(ty: ColdType, nulls: usize, counter: Counter) -> Result<EncodedChunk> {
    let distinct = Distinct::new(Some(0), &counter());
    chunk(ty, Encoding::AllNull, nulls, None, distinct, &[])
}

fn chunk(
    ty: ColdType,
    encoding: Encoding,
    nulls: usize,
    bounds: Option<Bounds>,
    distinct: Distinct,
    sections: &[Vec<u8>],
) -> Result<EncodedChunk> {
    let bytes = join(sections)?;
    let len = u32::try_from(bytes.len())
        .map_err(|_| StorageError::Unsupported("a column of a block takes more than 4 GiB".into()))?;
    let crc = crc32c(&bytes);
    let meta = ColumnMeta { ty, encoding, offset: 0, len, crc, nulls: nulls as u32, bounds, distinct };
    Ok(EncodedChunk { bytes, meta })
}

fn constant(value: ColdValue<'static>, bounds: Bounds, sketch: &DistinctSketch) -> Body {
    let mut section = Vec::new();
    value.put(&mut section);
    let distinct = Distinct::new(Some(1), sketch);
    Body { encoding: Encoding::Constant, sections: vec![section], bounds, distinct }
}

/// Replaces the values of NULLs by the value before, which packs best.
fn fill<T: Copy>(values: &mut [T], nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls else { return };
    let Some(first) = (0..values.len()).find(|&row| nulls.is_valid(row)) else { return };
    let mut last = values[first];
    for (row, value) in values.iter_mut().enumerate() {
        if nulls.is_valid(row) {
            last = *value;
        } else {
            *value = last;
        }
    }
}

fn gather_words(ty: ColdType, array: &dyn Array) -> Vec<i64> {
    macro_rules! cast {
        ($t:ty) => {
            array.as_primitive::<$t>().values().iter().map(|&v| i64::from(v)).collect()
        };
    }
    match ty {
        ColdType::Int8 => cast!(Int8Type),
        ColdType::Int16 => cast!(Int16Type),
        ColdType::Int32 => cast!(Int32Type),
        ColdType::Int64 => cast!(Int64Type),
        ColdType::UInt8 => cast!(UInt8Type),
        ColdType::UInt16 => cast!(UInt16Type),
        ColdType::UInt32 => cast!(UInt32Type),
        ColdType::UInt64 => {
            array.as_primitive::<UInt64Type>().values().iter().map(|&v| (v ^ SIGN) as i64).collect()
        }
        ColdType::Date32 => cast!(Date32Type),
        ColdType::Timestamp => cast!(TimestampMicrosecondType),
        ColdType::Duration => cast!(DurationMicrosecondType),
        _ => unreachable!("only word types are gathered as words"),
    }
}

fn encode_words(ty: ColdType, values: &[i64], nulls: Option<&NullBuffer>, counter: Counter) -> Result<Body> {
    let mut values = values.to_vec();
    fill(&mut values, nulls);
    let (min, max) = values.iter().fold((i64::MAX, i64::MIN), |(a, b), &w| (a.min(w), b.max(w)));
    let bounds = Bounds::exact(word_value(min, ty), word_value(max, ty));
    let (exact, sketch) = count_words(&values, min, max, counter);
    if min == max {
        return Ok(constant(word_value(min, ty), bounds, &sketch));
    }
    let (dir, data) = words::encode(&values);
    if data.len() * 8 >= values.len() * DICT_WORTH_BITS
        && let Some((entries, codes)) = dictionary(&values, &values)
    {
        let (codes_dir, codes_data) = words::encode(&codes);
        if entries.len() * 8 + codes_data.len() + codes_dir.len() < (dir.len() + data.len()) / 10 * 9 {
            let distinct = Distinct::new(Some(entries.len() as u32), &sketch);
            let entries = Fixed::Word(entries.into()).to_bytes();
            let sections = vec![entries, codes_dir, codes_data];
            return Ok(Body { encoding: Encoding::WordDict, sections, bounds, distinct });
        }
    }
    let distinct = Distinct::new(exact, &sketch);
    Ok(Body { encoding: Encoding::Words, sections: vec![dir, data], bounds, distinct })
}

/// Distinct values: exactly if their range is small, and as a sketch.
fn count_words(values: &[i64], min: i64, max: i64, counter: Counter) -> (Option<u32>, DistinctSketch) {
    let mut sketch = counter();
    let range = max.wrapping_sub(min) as u64;
    if range < COUNTED_RANGE {
        let mut seen = Bitmap::zeros(range as usize + 1);
        for &w in values {
            let at = w.wrapping_sub(min) as usize;
            seen.words_mut()[at / 64] |= 1 << (at % 64);
        }
        seen.iter().for_each(|at| sketch.insert_word(min + at as i64));
        return (Some(seen.count() as u32), sketch);
    }
    let mut last = None;
    for &w in values {
        if last != Some(w) {
            sketch.insert_word(w);
            last = Some(w);
        }
    }
    (None, sketch)
}

/// Distinct values, ascending by `V`'s order, and each row's code; `None` if a dictionary would not pay.
/// `keys` identify the values.
fn dictionary<K: Hash + Eq + Copy, V: Copy + Ord>(keys: &[K], values: &[V]) -> Option<(Vec<V>, Vec<i64>)> {
    let step = (keys.len() / SAMPLE).max(1);
    let mut seen: HashMap<K, u32, foldhash::fast::FixedState> = HashMap::default();
    let sampled = keys.iter().step_by(step).map(|k| seen.insert(*k, 0)).count();
    if seen.len() * 2 > sampled {
        return None;
    }
    seen.clear();
    let (mut entries, limit) = (Vec::new(), keys.len() / 4);
    let mut codes = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(values) {
        let next = entries.len() as u32;
        let code = *seen.entry(*key).or_insert(next);
        if code == next {
            if entries.len() >= limit {
                return None;
            }
            entries.push(*value);
        }
        codes.push(i64::from(code));
    }
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    order.sort_unstable_by_key(|&e| entries[e as usize]);
    let mut rank = vec![0; entries.len()];
    for (to, &from) in order.iter().enumerate() {
        rank[from as usize] = to as i64;
    }
    codes.iter_mut().for_each(|code| *code = rank[*code as usize]);
    let entries = order.iter().map(|&e| entries[e as usize]).collect();
    Some((entries, codes))
}

fn encode_int128(
    ty: ColdType,
    values: &[i128],
    nulls: Option<&NullBuffer>,
    counter: Counter,
) -> Result<Body> {
    let mut values = values.to_vec();
    fill(&mut values, nulls);
    if let Some(words) = values.iter().map(|&v| i64::try_from(v).ok()).collect::<Option<Vec<_>>>() {
        return encode_words(ty, &words, None, counter);
    }
    encode_wide(
        &values,
        |v| ColdValue::Int128(*v),
        |v| i64::try_from(*v).ok(),
        |v| Fixed::Int128(v.into()),
        counter,
    )
}

fn encode_int256(
    ty: ColdType,
    values: &[i256],
    nulls: Option<&NullBuffer>,
    counter: Counter,
) -> Result<Body> {
    let mut values = values.to_vec();
    fill(&mut values, nulls);
    let narrow = |v: &i256| v.to_i128().and_then(|v| i64::try_from(v).ok());
    if let Some(words) = values.iter().map(narrow).collect::<Option<Vec<_>>>() {
        return encode_words(ty, &words, None, counter);
    }
    encode_wide(&values, |v| ColdValue::Int256(*v), narrow, |v| Fixed::Int256(v.into()), counter)
}

/// Integers of which some do not fit a word.
fn encode_wide<T: ArrowNativeType + Hash + Ord>(
    values: &[T],
    value: impl Fn(&T) -> ColdValue<'static>,
    word: impl Fn(&T) -> Option<i64>,
    fixed: impl Fn(Vec<T>) -> Fixed,
    counter: Counter,
) -> Result<Body> {
    let min = values.iter().min().expect("some value is not NULL");
    let max = values.iter().max().expect("some value is not NULL");
    let bounds = Bounds::exact(value(min), value(max));
    let mut sketch = counter();
    for v in values {
        // Equal numbers count as equal in whatever width a block holds them.
        match word(v) {
            Some(word) => sketch.insert_word(word),
            None => sketch.insert_bytes(v.to_byte_slice()),
        }
    }
    if min == max {
        return Ok(constant(value(min), bounds, &sketch));
    }
    let dict = dictionary(values, values);
    Ok(fixed_or_dict(values.to_vec(), dict, bounds, &sketch, fixed))
}

/// Plain values, compressed if that helps, or a dictionary if that is smaller.
fn fixed_or_dict<T: ArrowNativeType>(
    values: Vec<T>,
    dict: Option<(Vec<T>, Vec<i64>)>,
    bounds: Bounds,
    sketch: &DistinctSketch,
    fixed: impl Fn(Vec<T>) -> Fixed,
) -> Body {
    let plain = fixed(values).to_bytes();
    let packed = lz4_flex::block::compress(&plain);
    let (encoding, sections) = if packed.len() < plain.len() / 10 * 9 {
        (Encoding::FixedLz4, vec![packed])
    } else {
        (Encoding::Fixed, vec![plain])
    };
    if let Some((entries, codes)) = dict {
        let distinct = Distinct::new(Some(entries.len() as u32), sketch);
        let (dir, data) = words::encode(&codes);
        let entries = fixed(entries).to_bytes();
        if entries.len() + dir.len() + data.len() < sections[0].len() {
            return Body {
                encoding: Encoding::FixedDict,
                sections: vec![entries, dir, data],
                bounds,
                distinct,
            };
        }
        return Body { encoding, sections, bounds, distinct };
    }
    Body { encoding, sections, bounds, distinct: Distinct::new(None, sketch) }
}

/// A float that can be told from all others, in the order of its bits.
trait Float: ArrowNativeType + Into<f64> {
    fn key(self) -> u64;
    fn value(self) -> ColdValue<'static>;
}

impl Float for f32 {
    fn key(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn value(self) -> ColdValue<'static> {
        ColdValue::F32(self)
    }
}

impl Float for f64 {
    fn key(self) -> u64 {
        self.to_bits()
    }
    fn value(self) -> ColdValue<'static> {
        ColdValue::F64(self)
    }
}

fn encode_floats<T: Float>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    fixed: impl Fn(ScalarBuffer<T>) -> Fixed,
    counter: Counter,
) -> Result<Body> {
    let mut values = values.to_vec();
    fill(&mut values, nulls);
    let order = |a: &&T, b: &&T| compare_floats((**a).into(), (**b).into());
    let min = *values.iter().min_by(order).expect("some value is not NULL");
    let max = *values.iter().max_by(order).expect("some value is not NULL");
    let bounds = Bounds::exact(min.value(), max.value());
    let keys: Vec<u64> = values.iter().map(|v| v.key()).collect();
    let mut sketch = counter();
    keys.iter().for_each(|&k| sketch.insert_word(k as i64));
    if keys.iter().all(|&k| k == keys[0]) {
        return Ok(constant(min.value(), bounds, &sketch));
    }
    let dict = dictionary(&keys, &keys).map(|(entries, codes)| {
        let firsts: HashMap<u64, T> = keys.iter().copied().zip(values.iter().copied()).collect();
        (entries.iter().map(|k| firsts[k]).collect(), codes)
    });
    Ok(fixed_or_dict(values, dict, bounds, &sketch, |v| fixed(v.into())))
}

/// The strings of a column; NULLs are empty.
fn gather_bytes<'a>(array: &'a dyn Array, nulls: Option<&NullBuffer>) -> Vec<&'a [u8]> {
    let valid = |row| nulls.is_none_or(|n| n.is_valid(row));
    let rows = 0..array.len();
    macro_rules! strings {
        ($array:expr) => {{
            let array = $array;
            rows.map(|row| if valid(row) { AsRef::<[u8]>::as_ref(array.value(row)) } else { &[] }).collect()
        }};
    }
    match array.data_type() {
        DataType::Utf8 => strings!(array.as_string::<i32>()),
        DataType::Utf8View => strings!(array.as_string_view()),
        DataType::Binary => strings!(array.as_binary::<i32>()),
        _ => strings!(array.as_binary_view()),
    }
}

fn encode_bytes(strings: &[&[u8]], nulls: Option<&NullBuffer>, counter: Counter) -> Result<Body> {
    let valid = |row: &usize| nulls.is_none_or(|n| n.is_valid(*row));
    let dict = {
        let mut filled = strings.to_vec();
        fill(&mut filled, nulls);
        dictionary(&filled, &filled)
    };
    let mut sketch = counter();
    let bounds = match &dict {
        Some((entries, _)) => {
            entries.iter().for_each(|e| sketch.insert_bytes(e));
            Bounds::of_bytes(entries[0], entries[entries.len() - 1])
        }
        None => {
            let live = || (0..strings.len()).filter(valid).map(|row| strings[row]);
            live().for_each(|s| sketch.insert_bytes(s));
            let bounds = live().min().zip(live().max());
            let (min, max) = bounds.expect("some value is not NULL");
            if min == max {
                let value = ColdValue::Bytes(min.to_vec().into());
                return Ok(constant(value, Bounds::of_bytes(min, max), &sketch));
            }
            Bounds::of_bytes(min, max)
        }
    };
    if let Some((entries, codes)) = dict {
        if let [only] = entries[..] {
            let value = ColdValue::Bytes(only.to_vec().into());
            return Ok(constant(value, bounds, &sketch));
        }
        let distinct = Distinct::new(Some(entries.len() as u32), &sketch);
        let sections = DictBytes::encode(&entries, &codes);
        let size: usize = sections.iter().map(Vec::len).sum();
        // A dictionary is worth something in itself: predicates and groups work on codes.
        let total: usize = strings.iter().map(|s| s.len()).sum();
        if size < total / 2 + strings.len() {
            return Ok(Body { encoding: Encoding::BytesDict, sections, bounds, distinct });
        }
        return packed_bytes(strings, bounds, distinct);
    }
    let distinct = Distinct::new(None, &sketch);
    packed_bytes(strings, bounds, distinct)
}

/// FSST if it helps, or plain.
fn packed_bytes(strings: &[&[u8]], bounds: Bounds, distinct: Distinct) -> Result<Body> {
    let total: usize = strings.iter().map(|s| s.len()).sum();
    if total >= FSST_WORTH {
        let compressed = fsst::compress(strings);
        if compressed.heap.len() + compressed.symbols.len() + strings.len() < total / 10 * 9 {
            let sections = FsstBytes::encode(strings, &compressed)?;
            return Ok(Body { encoding: Encoding::BytesFsst, sections, bounds, distinct });
        }
    }
    let sections = PlainBytes::encode(strings)?;
    Ok(Body { encoding: Encoding::BytesPlain, sections, bounds, distinct })
}
