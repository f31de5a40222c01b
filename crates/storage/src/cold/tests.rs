//! Round trips and damage of whole blocks, for every type and many distributions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, Float32Array, Float64Array, PrimitiveArray, StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type, i256,
};
use avocet_base::BlockId;
use bytes::Bytes;
use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::*;
use crate::error::{Result, StorageError};
use crate::store::{BlobStore, BlockCache};

const TYPES: [ColdType; 20] = [
    ColdType::Int8,
    ColdType::Int16,
    ColdType::Int32,
    ColdType::Int64,
    ColdType::UInt8,
    ColdType::UInt16,
    ColdType::UInt32,
    ColdType::UInt64,
    ColdType::Float32,
    ColdType::Float64,
    ColdType::Decimal128(15, 2),
    ColdType::Decimal128(38, 10),
    ColdType::Decimal256(65, 30),
    ColdType::Decimal256(40, 0),
    ColdType::Date32,
    ColdType::Timestamp,
    ColdType::Duration,
    ColdType::Utf8,
    ColdType::Binary,
    ColdType::Int64,
];

/// How the numbers behind a column's values are spread.
#[derive(Debug, Clone, Copy)]
enum Spread {
    Constant,
    Sorted,
    Climbing,
    Random,
    Small,
    Few,
    Extremes,
}

const SPREADS: [Spread; 7] = [
    Spread::Constant,
    Spread::Sorted,
    Spread::Climbing,
    Spread::Random,
    Spread::Small,
    Spread::Few,
    Spread::Extremes,
];

#[derive(Debug, Clone, Copy)]
enum NullShare {
    None,
    Some,
    Most,
    All,
}

/// Numbers of a spread, from a seed.
fn numbers(spread: Spread, len: usize, seed: u64) -> Vec<i128> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        i128::from(state as i64)
    };
    let mut sum = 0;
    let few: Vec<i128> = (0..7).map(|_| next() * next()).collect();
    (0..len)
        .map(|i| match spread {
            Spread::Constant => few[0],
            Spread::Sorted => {
                sum += next() & 63;
                sum
            }
            Spread::Climbing => 1_000_000 + 17 * i as i128,
            Spread::Random => next() * next(),
            Spread::Small => next() & 1023,
            Spread::Few => few[(next() & 7) as usize % 7],
            Spread::Extremes => {
                [i128::from(i64::MIN), i128::from(i64::MAX), 0, -1, i128::from(u64::MAX), i128::MAX]
                    [(next() & 7) as usize % 6]
            }
        })
        .collect()
}

fn null_mask(share: NullShare, len: usize, seed: u64) -> Option<NullBuffer> {
    let every = match share {
        NullShare::None => return None,
        NullShare::All => return Some(NullBuffer::new_null(len)),
        NullShare::Some => 5,
        NullShare::Most => 100,
    };
    let bit = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 40;
    let most = matches!(share, NullShare::Most);
    Some((0..len).map(|i| bit(i).is_multiple_of(every) == most).collect())
}

fn primitive<T: ArrowPrimitiveType>(
    ty: ColdType,
    numbers: &[i128],
    nulls: Option<NullBuffer>,
    cast: impl Fn(i128) -> T::Native,
) -> ArrayRef {
    let values = numbers.iter().map(|&n| cast(n)).collect::<Vec<_>>();
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(ty.to_arrow()))
}

fn text(n: i128) -> String {
    match n.rem_euclid(5) {
        0 => String::new(),
        1 => format!("{n}"),
        2 => format!("carefully pending deposits № {n} détecté"),
        3 => "x".repeat((n & 255) as usize),
        _ => format!("{:x}", n & 0xffff),
    }
}

/// An array of a type with values made of numbers.
fn array(ty: ColdType, spread: Spread, share: NullShare, len: usize, seed: u64) -> ArrayRef {
    let numbers = numbers(spread, len, seed);
    let nulls = null_mask(share, len, seed);
    match ty {
        ColdType::Int8 => primitive::<Int8Type>(ty, &numbers, nulls, |n| n as i8),
        ColdType::Int16 => primitive::<Int16Type>(ty, &numbers, nulls, |n| n as i16),
        ColdType::Int32 => primitive::<Int32Type>(ty, &numbers, nulls, |n| n as i32),
        ColdType::Int64 => primitive::<Int64Type>(ty, &numbers, nulls, |n| n as i64),
        ColdType::UInt8 => primitive::<UInt8Type>(ty, &numbers, nulls, |n| n as u8),
        ColdType::UInt16 => primitive::<UInt16Type>(ty, &numbers, nulls, |n| n as u16),
        ColdType::UInt32 => primitive::<UInt32Type>(ty, &numbers, nulls, |n| n as u32),
        ColdType::UInt64 => primitive::<UInt64Type>(ty, &numbers, nulls, |n| n as u64),
        ColdType::Date32 => primitive::<Date32Type>(ty, &numbers, nulls, |n| n as i32),
        ColdType::Timestamp => primitive::<TimestampMicrosecondType>(ty, &numbers, nulls, |n| n as i64),
        ColdType::Duration => primitive::<DurationMicrosecondType>(ty, &numbers, nulls, |n| n as i64),
        ColdType::Decimal128(15, _) => {
            primitive::<Decimal128Type>(ty, &numbers, nulls, |n| n % 1_000_000_000_000)
        }
        ColdType::Decimal128(..) => primitive::<Decimal128Type>(ty, &numbers, nulls, |n| n),
        ColdType::Decimal256(40, _) => {
            primitive::<Decimal256Type>(ty, &numbers, nulls, |n| i256::from_i128(n as i64 as i128))
        }
        ColdType::Decimal256(..) => primitive::<Decimal256Type>(ty, &numbers, nulls, |n| {
            i256::from_parts(n as u128, n.rotate_left(50) >> 20)
        }),
        ColdType::Float32 => {
            let values: Vec<f32> = numbers.iter().map(|&n| n as f32 / 64.0).collect();
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        ColdType::Float64 => {
            let odd = |n: i128| match n & 31 {
                3 => f64::NAN,
                4 => -0.0,
                5 => f64::NEG_INFINITY,
                _ => n as f64 / 1000.0,
            };
            let values: Vec<f64> = numbers.iter().map(|&n| odd(n)).collect();
            Arc::new(Float64Array::new(values.into(), nulls))
        }
        ColdType::Utf8 | ColdType::Binary => {
            let valid = |i| nulls.as_ref().is_none_or(|n: &NullBuffer| n.is_valid(i));
            let strings = numbers.iter().enumerate().map(|(i, &n)| valid(i).then(|| text(n)));
            if ty == ColdType::Utf8 {
                return Arc::new(StringViewArray::from_iter(strings));
            }
            Arc::new(BinaryViewArray::from_iter(
                strings.map(|s| s.map(|s| [s.as_bytes(), &[0xff, 0]].concat())),
            ))
        }
    }
}

/// The value of a row by way of Arrow, for comparison.
fn model(ty: ColdType, array: &dyn Array, row: usize) -> Option<ColdValue<'static>> {
    if array.is_null(row) {
        return None;
    }
    macro_rules! int {
        ($t:ty, $variant:ident) => {
            ColdValue::$variant(array.as_primitive::<$t>().value(row).into())
        };
    }
    Some(match ty {
        ColdType::Int8 => int!(Int8Type, Int),
        ColdType::Int16 => int!(Int16Type, Int),
        ColdType::Int32 => int!(Int32Type, Int),
        ColdType::Int64 => int!(Int64Type, Int),
        ColdType::UInt8 => int!(UInt8Type, UInt),
        ColdType::UInt16 => int!(UInt16Type, UInt),
        ColdType::UInt32 => int!(UInt32Type, UInt),
        ColdType::UInt64 => int!(UInt64Type, UInt),
        ColdType::Date32 => int!(Date32Type, Int),
        ColdType::Timestamp => int!(TimestampMicrosecondType, Int),
        ColdType::Duration => int!(DurationMicrosecondType, Int),
        ColdType::Decimal128(..) => int!(Decimal128Type, Int128),
        ColdType::Decimal256(..) => int!(Decimal256Type, Int256),
        ColdType::Float32 => ColdValue::F32(array.as_primitive::<arrow::datatypes::Float32Type>().value(row)),
        ColdType::Float64 => ColdValue::F64(array.as_primitive::<arrow::datatypes::Float64Type>().value(row)),
        ColdType::Utf8 => ColdValue::Bytes(array.as_string_view().value(row).as_bytes().to_vec().into()),
        ColdType::Binary => ColdValue::Bytes(array.as_binary_view().value(row).to_vec().into()),
    })
}

/// Equality that tells NaNs apart by nothing and zeros by sign.
fn same(a: &Option<ColdValue<'_>>, b: &Option<ColdValue<'_>>) -> bool {
    match (a, b) {
        (Some(ColdValue::F64(a)), Some(ColdValue::F64(b))) => a.to_bits() == b.to_bits(),
        (Some(ColdValue::F32(a)), Some(ColdValue::F32(b))) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn same_array(ty: ColdType, a: &dyn Array, b: &dyn Array) -> bool {
    a.data_type() == b.data_type()
        && a.len() == b.len()
        && (0..a.len()).all(|row| same(&model(ty, a, row), &model(ty, b, row)))
}

fn parse(chunk: &EncodedChunk, rows: usize) -> EncodedColumn {
    EncodedColumn::parse(&chunk.meta, rows, &chunk.bytes).unwrap()
}

fn check_predicate(
    column: &EncodedColumn,
    meta: &BlockMeta,
    values: &[Option<ColdValue<'static>>],
    pred: &ColumnPredicate,
) -> TestCaseResult {
    let mut selected = Bitmap::ones(values.len());
    if values.len() > 70 {
        selected.clear(values.len() / 3);
    }
    let before = selected.clone();
    column.filter(pred, &mut selected).unwrap();
    let holds = |v: &Option<ColdValue<'static>>| match (pred, v) {
        (ColumnPredicate::IsNull, v) => v.is_none(),
        (_, None) => false,
        (_, Some(v)) => pred.matches(v),
    };
    for (row, value) in values.iter().enumerate() {
        prop_assert_eq!(
            selected.get(row),
            before.get(row) && holds(value),
            "row {} {:?} {:?}",
            row,
            value,
            pred
        );
    }
    if values.iter().any(holds) {
        prop_assert!(meta.may_match(0, pred), "{:?} pruned by {:?}", pred, meta.columns[0].bounds);
    }
    Ok(())
}

fn predicates(values: &[Option<ColdValue<'static>>], seed: usize) -> Vec<ColumnPredicate> {
    use CompareOp::*;
    let mut preds =
        vec![ColumnPredicate::IsNull, ColumnPredicate::IsNotNull, ColumnPredicate::In(Vec::new())];
    let live: Vec<_> = values.iter().flatten().collect();
    if live.is_empty() {
        return preds;
    }
    let pick = |n: usize| live[(seed / 7 + n * 7919) % live.len()].clone();
    for op in [Eq, Ne, Lt, Le, Gt, Ge] {
        preds.push(ColumnPredicate::Compare(op, pick(1)));
        preds.push(ColumnPredicate::Compare(
            op,
            match pick(2) {
                ColdValue::Bytes(b) => ColdValue::Bytes([&b[..b.len() / 2], b"m"].concat().into()),
                ColdValue::F32(v) => ColdValue::F64(f64::from(v) + 0.5),
                ColdValue::F64(v) => ColdValue::F64(v + 0.5),
                _ => ColdValue::Int(i64::from(seed as i32) - (1 << 20)),
            },
        ));
    }
    preds.push(ColumnPredicate::Between(pick(3), pick(4)));
    preds.push(ColumnPredicate::Between(pick(4), pick(3)));
    preds.push(ColumnPredicate::In(vec![pick(5), pick(6), pick(7)]));
    preds
}

fn check(ty: ColdType, input: &ArrayRef, seed: u64) -> TestCaseResult {
    let rows = input.len();
    let block = encode_block(&[ty], std::slice::from_ref(input), Ordinals::Dense(rows as u32)).unwrap();
    let meta = BlockMeta::from_bytes(&block.meta.to_bytes(), FORMAT_VERSION).unwrap();
    // Not by value: a bound may be NaN.
    prop_assert!(meta.to_bytes() == block.meta.to_bytes());
    let chunk = encode_column(ty, input).unwrap();
    let column = parse(&chunk, rows);
    let label = format!("{:?}", chunk.meta.encoding);

    prop_assert!(same_array(ty, &column.decode().unwrap(), input), "{}", label);
    let values: Vec<_> = (0..rows).map(|row| model(ty, input, row)).collect();
    for row in (0..rows).step_by(rows / 50 + 1) {
        prop_assert!(same(&column.value_at(row).unwrap(), &values[row]), "{} row {}", label, row);
    }
    for (from, to) in [(0, rows / 2), (rows / 3, rows), (rows / 2, rows / 2)] {
        let part = column.decode_range(from, to - from).unwrap();
        prop_assert!(same_array(ty, &part, &input.slice(from, to - from)), "{} {}..{}", label, from, to);
    }
    for stride in [1, 2, 50, 1500] {
        let list: Vec<u32> = (seed as u32 % 2..rows as u32).step_by(stride).collect();
        let expected = take(input, &arrow::array::UInt32Array::from(list.clone()), None).unwrap();
        let mut bits = Bitmap::zeros(rows);
        list.iter().for_each(|&r| bits.set(r as usize));
        prop_assert!(same_array(ty, &column.decode_selected(Selection::Rows(&list)).unwrap(), &expected));
        prop_assert!(same_array(ty, &column.decode_selected(Selection::Bitmap(&bits)).unwrap(), &expected));
    }
    for pred in predicates(&values, seed as usize) {
        check_predicate(&column, &meta, &values, &pred)?;
    }
    check_statistics(&meta.columns[0], &values)
}

fn check_statistics(meta: &ColumnMeta, values: &[Option<ColdValue<'static>>]) -> TestCaseResult {
    let live: Vec<_> = values.iter().flatten().collect();
    prop_assert_eq!(meta.nulls as usize, values.len() - live.len());
    prop_assert_eq!(meta.bounds.is_none(), live.is_empty());
    let distinct: std::collections::HashSet<String> = live.iter().map(|v| format!("{v:?}")).collect();
    let (count, real) = (f64::from(meta.distinct.count), distinct.len() as f64);
    if meta.distinct.exact {
        prop_assert_eq!(count, real);
    }
    prop_assert!((count - real).abs() <= real * 0.2 + 2.0, "{} distinct, not {}", count, real);
    let Some(bounds) = &meta.bounds else { return Ok(()) };
    for (bound, exact, order) in [
        (&bounds.min, bounds.min_exact, std::cmp::Ordering::Less),
        (&bounds.max, bounds.max_exact, std::cmp::Ordering::Greater),
    ] {
        if exact {
            prop_assert!(live.iter().all(|v| v.compare(bound) != Some(order)));
            prop_assert!(live.iter().any(|v| v.compare(bound) == Some(std::cmp::Ordering::Equal)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn columns_round_trip(
        ty in prop::sample::select(TYPES.to_vec()),
        spread in prop::sample::select(SPREADS.to_vec()),
        share in prop::sample::select(vec![NullShare::None, NullShare::None, NullShare::Some, NullShare::Most, NullShare::All]),
        len in prop_oneof![Just(0usize), Just(1), 2usize..200, 900usize..1100, Just(1024), 2000usize..6000],
        seed in any::<u64>(),
    ) {
        check(ty, &array(ty, spread, share, len, seed), seed)?;
    }
}

#[test]
fn full_blocks_round_trip() {
    for (i, ty) in TYPES.into_iter().enumerate() {
        let spread = SPREADS[(i * 3 + 2) % SPREADS.len()];
        check(ty, &array(ty, spread, NullShare::Some, MAX_ROWS, i as u64), i as u64).unwrap();
    }
}

#[test]
fn every_type_and_spread_round_trips() {
    for ty in TYPES {
        for spread in SPREADS {
            for share in [NullShare::None, NullShare::Some] {
                check(ty, &array(ty, spread, share, 3000, 11), 5).unwrap();
            }
        }
    }
}

#[test]
fn slices_and_classic_strings_are_taken() {
    let strings: ArrayRef =
        Arc::new(arrow::array::StringArray::from(vec![Some("a"), None, Some("long enough to spill")]));
    let chunk = encode_column(ColdType::Utf8, &strings.slice(1, 2)).unwrap();
    let back = parse(&chunk, 2).decode().unwrap();
    assert_eq!(back.as_ref(), &StringViewArray::from(vec![None, Some("long enough to spill")]) as &dyn Array);
    assert!(encode_column(ColdType::Int8, &strings).is_err());
    assert!(ColdType::from_arrow(&DataType::Boolean).is_err());
}

/// Objects in memory.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Bytes>>);

impl BlobStore for Memory {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        self.0.lock().insert(key.into(), Bytes::copy_from_slice(bytes));
        Ok(())
    }
    fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        let all = self.get(key)?;
        let (from, to) = (range.start as usize, range.end as usize);
        if from > to || to > all.len() {
            return Err(StorageError::io("get", std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(all.slice(from..to))
    }
    fn get(&self, key: &str) -> Result<Bytes> {
        let found = self.0.lock().get(key).cloned();
        found.ok_or_else(|| StorageError::io("get", std::io::ErrorKind::NotFound.into()))
    }
    fn size(&self, key: &str) -> Result<u64> {
        Ok(self.get(key)?.len() as u64)
    }
    fn list(&self, _: &str) -> Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }
    fn delete(&self, key: &str) -> Result<()> {
        self.0.lock().remove(key);
        Ok(())
    }
}

fn open(bytes: &[u8]) -> Result<Block> {
    let store = Memory::default();
    store.put(&block_key(BlockId(3)), bytes)?;
    Block::open(Arc::new(store), Arc::new(BlockCache::new(1 << 20)), BlockId(3))
}

fn small_block() -> (Vec<ColdType>, Vec<ArrayRef>, EncodedBlock) {
    let types = TYPES.to_vec();
    let columns: Vec<ArrayRef> = types
        .iter()
        .enumerate()
        .map(|(i, &ty)| array(ty, SPREADS[i % SPREADS.len()], NullShare::Some, 60, i as u64))
        .collect();
    let ordinals: Vec<u16> = (0..60).map(|i| i * 3 + 1).collect();
    let mut block = encode_block(&types, &columns, Ordinals::from_sorted(&ordinals).unwrap()).unwrap();
    block.seal(BlockId(3));
    (types, columns, block)
}

#[test]
fn blocks_come_back_from_a_store() {
    let (types, columns, encoded) = small_block();
    let block = open(&encoded.bytes).unwrap();
    assert_eq!(block.meta().to_bytes(), encoded.meta.to_bytes());
    assert_eq!(block.meta().ordinals.row_of(7), Some(2));
    for (i, input) in columns.iter().enumerate() {
        assert!(same_array(types[i], &block.column(i).unwrap().decode().unwrap(), input));
        block.column(i).unwrap();
    }
    assert!(block.column(types.len()).is_err());
    block.verify().unwrap();
}

#[test]
fn a_block_in_the_place_of_another_is_refused() {
    let (_, _, mut encoded) = small_block();
    encoded.seal(BlockId(4));
    let refused = open(&encoded.bytes).err().expect("it is another").to_string();
    assert!(refused.contains("block#4") && refused.contains("block#3"), "{refused}");
    let columns = [array(ColdType::Int32, SPREADS[0], NullShare::Some, 60, 1)];
    let unsealed = encode_block(&[ColdType::Int32], &columns, Ordinals::Dense(60)).unwrap();
    assert!(open(&unsealed.bytes).is_err(), "it has no id");
}

/// As blocks of the versions before are: without an id, and the first without paths.
#[test]
fn blocks_of_older_versions_are_read() {
    let (types, columns, encoded) = small_block();
    for version in [1u32, 2] {
        let trailer = encoded.bytes.len() - 24;
        let len = u32::from_le_bytes(encoded.bytes[trailer..trailer + 4].try_into().unwrap()) as usize;
        let mut bytes = encoded.bytes[..trailer - len].to_vec();
        let mut footer = encoded.meta.to_bytes();
        if version == 1 {
            assert_eq!(footer.pop(), Some(0), "the number of paths");
        }
        footer.extend((footer.len() as u32).to_le_bytes());
        footer.extend(version.to_le_bytes());
        let crc = avocet_base::checksum::crc32c(&footer);
        bytes.extend(footer);
        bytes.extend(crc.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&encoded.bytes[..8]);
        assert!(reads_back(&bytes, &types, &columns).unwrap(), "version {version}");
    }
}

/// Reads everything of a block; whether it went well and gave what was written.
fn reads_back(bytes: &[u8], types: &[ColdType], columns: &[ArrayRef]) -> Result<bool> {
    let block = open(bytes)?;
    let mut good = block.meta().rows() == columns[0].len();
    for (i, input) in columns.iter().enumerate() {
        good &= same_array(types[i], &block.column(i)?.decode()?, input);
    }
    Ok(good)
}

#[test]
fn damage_of_any_byte_is_found_or_harmless() {
    let (types, columns, encoded) = small_block();
    assert!(reads_back(&encoded.bytes, &types, &columns).unwrap());
    let mut found = 0;
    for at in 0..encoded.bytes.len() {
        let mut bytes = encoded.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        match reads_back(&bytes, &types, &columns) {
            Ok(good) => assert!(good, "byte {at} changed the data silently"),
            Err(_) => found += 1,
        }
    }
    // All but the identification at the start.
    assert_eq!(found, encoded.bytes.len() - 16);
}

#[test]
fn cut_blocks_are_errors() {
    let (types, columns, encoded) = small_block();
    for len in 0..encoded.bytes.len() {
        assert!(reads_back(&encoded.bytes[..len], &types, &columns).is_err(), "cut to {len}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// Chunks that pass the checksum and yet are damaged: an error or some value, never a panic.
    #[test]
    fn hostile_chunks_do_not_panic(
        ty in prop::sample::select(TYPES.to_vec()),
        spread in prop::sample::select(SPREADS.to_vec()),
        seed in any::<u64>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let input = array(ty, spread, NullShare::Some, 1500, seed);
        let mut chunk = encode_column(ty, &input).unwrap();
        for (at, with) in flips {
            let at = at.index(chunk.bytes.len());
            chunk.bytes[at] ^= with;
        }
        if let Some(cut) = cut {
            chunk.bytes.truncate(cut.index(chunk.bytes.len()));
        }
        let Ok(column) = EncodedColumn::parse(&chunk.meta, input.len(), &chunk.bytes) else { return Ok(()) };
        let _ = column.decode();
        let _ = column.decode_range(1000, 300);
        let _ = column.decode_selected(Selection::Rows(&[1, 5, 1024, 1499]));
        let values: Vec<_> = (0..input.len()).map(|row| model(ty, &input, row)).collect();
        for pred in predicates(&values, seed as usize) {
            let _ = column.filter(&pred, &mut Bitmap::ones(input.len()));
        }
        for row in (0..input.len()).step_by(97) {
            let _ = column.value_at(row);
        }
    }

    #[test]
    fn any_bytes_are_no_block(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(open(&bytes).is_err());
        let _ = BlockMeta::from_bytes(&bytes, 1);
        let _ = BlockMeta::from_bytes(&bytes, 2);
        let _ = BlockMeta::from_bytes(&bytes, 3);
        let _ = decode_deletes(&bytes);
    }
}
