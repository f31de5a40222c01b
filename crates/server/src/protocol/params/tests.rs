use super::*;
use proptest::prelude::*;

fn decode(payload: &[u8], count: usize, types: &mut Vec<ParamType>) -> Result<Vec<String>, ParamError> {
    let mut values = Vec::new();
    execute(Reader::new(payload), CapabilityFlags::empty(), count, types, &[], None, &mut values)?;
    Ok(values.iter().map(|v| format!("{v:?}")).collect())
}

const HEAD: [u8; 5] = [0, 1, 0, 0, 0];

#[test]
fn types_are_kept_until_new_ones_are_bound() {
    let mut types = Vec::new();
    let mut first = HEAD.to_vec();
    first.extend([0, 1, ColumnType::MYSQL_TYPE_TINY as u8, UNSIGNED, 200]);
    assert_eq!(decode(&first, 1, &mut types), Ok(vec!["UInt(200)".into()]));
    let mut again = HEAD.to_vec();
    again.extend([0, 0, 201]);
    assert_eq!(decode(&again, 1, &mut types), Ok(vec!["UInt(201)".into()]));
    assert_eq!(decode(&again, 1, &mut Vec::new()), Err(ParamError::Malformed));
}

#[test]
fn null_bits_and_values_are_told_apart() {
    let mut raw = HEAD.to_vec();
    let long = ColumnType::MYSQL_TYPE_LONG as u8;
    raw.extend([0b01, 1, long, 0, long, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert_eq!(decode(&raw, 2, &mut Vec::new()), Ok(vec!["Null".into(), "Int(-1)".into()]));
}

/// Connector/J sends no types where all values are NULL.
#[test]
fn nulls_need_no_types() {
    let raw = [&HEAD[..], &[0b11, 0]].concat();
    assert_eq!(decode(&raw, 2, &mut Vec::new()), Ok(vec!["Null".into(), "Null".into()]));
    let raw = [&HEAD[..], &[0b01, 0, 5]].concat();
    assert_eq!(decode(&raw, 2, &mut Vec::new()), Err(ParamError::Malformed));
}

/// MySQL answers 1210, unless the value is NULL.
#[test]
fn types_of_no_parameter_are_refused() {
    for code in [6, 9, 13, 14, 16, 17, 18, 19, 20, 200, 247, 248, 255] {
        let raw = [&HEAD[..], &[0, 1, code, 0, 0, 0, 0, 0]].concat();
        assert_eq!(decode(&raw, 1, &mut Vec::new()), Err(ParamError::WrongType), "{code}");
    }
    let null = [&HEAD[..], &[1, 1, ColumnType::MYSQL_TYPE_NULL as u8, 0]].concat();
    assert_eq!(decode(&null, 1, &mut Vec::new()), Ok(vec!["Null".into()]));
}

#[test]
fn long_data_stands_for_a_value() {
    let mut raw = HEAD.to_vec();
    raw.extend([0, 1, ColumnType::MYSQL_TYPE_BLOB as u8, 0]);
    let long = [Some(b"xy".to_vec())];
    let mut values = Vec::new();
    let none = CapabilityFlags::empty();
    let flags = execute(Reader::new(&raw), none, 1, &mut Vec::new(), &long, None, &mut values);
    assert_eq!(flags, Ok(ExecuteFlags { cursor: false }));
    assert!(matches!(&values[..], [Datum::Bytes(b)] if **b == *b"xy"));
}

/// A client that knows of attributes sends count and names with every parameter, whether or not it sets the flag.
#[test]
fn names_and_their_count_come_with_the_capability() {
    let all = CapabilityFlags::all();
    let long = ColumnType::MYSQL_TYPE_LONGLONG as u8;
    let two = 2_u64.to_le_bytes();
    for flags in [0, PARAMETER_COUNT_AVAILABLE] {
        for name in [&[0][..], &[1, b'n']] {
            let raw = [&[flags, 1, 0, 0, 0, 1, 0, 1, long, 0][..], name, &two].concat();
            let mut values = Vec::new();
            let executed = execute(Reader::new(&raw), all, 1, &mut Vec::new(), &[], None, &mut values);
            assert!(executed.is_ok(), "{raw:?}");
            assert!(matches!(values[..], [Datum::Int(2)]), "{raw:?}");
        }
    }
}

#[test]
fn query_attributes_are_skipped() {
    let string = ColumnType::MYSQL_TYPE_VAR_STRING as u8;
    let mut raw = vec![1, 1, 0, 1, string, 0, 4];
    raw.extend_from_slice(b"name\x03val");
    raw.extend_from_slice(b"SELECT 1");
    let mut reader = Reader::new(&raw);
    assert_eq!(skip_query_attributes(&mut reader), Ok(()));
    assert_eq!(reader.rest(), b"SELECT 1");
}

#[test]
fn decimals_are_exact_or_stay_text() {
    let show = |text: &str| {
        decimal(text.as_bytes()).map(|d| {
            let mut buf = Vec::new();
            d.write(&mut buf);
            String::from_utf8(buf).expect("ascii")
        })
    };
    assert_eq!(show("-12.340").as_deref(), Some("-12.340"));
    assert_eq!(show("0.05").as_deref(), Some("0.05"));
    let wide = "123456789012345678901234567890123456789012345678901234567890.12345";
    assert_eq!(show(wide).as_deref(), Some(wide));
    for bad in ["", "-", ".", "1 x", "1.2.3", "abc"] {
        assert_eq!(show(bad), None, "{bad}");
    }
}

#[test]
fn dates_that_do_not_exist_stay_text() {
    let date = ColumnType::MYSQL_TYPE_DATE as u8;
    let mut raw = HEAD.to_vec();
    raw.extend([0, 1, date, 0, 4, 0xE8, 0x07, 2, 30]);
    assert_eq!(decode(&raw, 1, &mut Vec::new()), Ok(vec!["Str(\"2024-02-30\")".into()]));
    let mut raw = HEAD.to_vec();
    raw.extend([0, 1, date, 0, 4, 0xE8, 0x07, 2, 29]);
    assert_eq!(decode(&raw, 1, &mut Vec::new()), Ok(vec!["Date(19782)".into()]));
    let mut raw = HEAD.to_vec();
    raw.extend([0, 1, date, 0, 0]);
    assert_eq!(decode(&raw, 1, &mut Vec::new()), Ok(vec!["Str(\"0000-00-00\")".into()]));
}

/// As MySQL 9.7 has them.
#[test]
fn values_that_a_type_does_not_have_are_refused() {
    let decoded = |ty: ColumnType, value: &[u8]| {
        let raw = [&HEAD[..], &[0, 1, ty as u8, 0], value].concat();
        decode(&raw, 1, &mut Vec::new()).map(|mut values| values.remove(0))
    };
    let time = |value: &[u8]| decoded(ColumnType::MYSQL_TYPE_TIME, &[&[value.len() as u8], value].concat());
    assert_eq!(time(&[1, 1, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0]), Ok("Time(-93784000005)".into()));
    assert_eq!(time(&[0, 34, 0, 0, 0, 22, 59, 59]), Ok("Time(3020399000000)".into()));
    assert_eq!(time(&[0, 0, 0, 0, 0, 25, 1, 1]), Ok("Time(90061000000)".into()));
    let too_long: [&[u8]; 6] = [
        &[0, 34, 0, 0, 0, 23, 0, 0],
        &[0, 34, 0, 0, 0, 22, 59, 59, 1, 0, 0, 0],
        &[1, 255, 255, 255, 255, 255, 59, 59],
        &[0, 0, 0, 0, 0, 1, 60, 0],
        &[0, 0, 0, 0, 0, 1, 0, 60],
        &[0, 0, 0, 0, 0, 1, 0, 0, 0x40, 0x42, 0x0F, 0],
    ];
    for value in too_long {
        assert_eq!(time(value), Err(ParamError::OutOfRange("TIME")), "{value:?}");
    }
    for (ty, name) in [(ColumnType::MYSQL_TYPE_DATE, "DATE"), (ColumnType::MYSQL_TYPE_DATETIME, "DATETIME")] {
        for value in [[4, 0xE8, 7, 13, 1], [4, 0xE8, 7, 1, 32], [4, 0x10, 0x27, 1, 1]] {
            assert_eq!(decoded(ty, &value), Err(ParamError::OutOfRange(name)), "{value:?}");
        }
    }
    let datetime = |clock: [u8; 3], micros: u32| {
        let value = [&[11, 0xE8, 7, 1, 1][..], &clock, &micros.to_le_bytes()].concat();
        decoded(ColumnType::MYSQL_TYPE_TIMESTAMP, &value)
    };
    assert!(datetime([23, 59, 59], 999_999).is_ok());
    for (clock, micros) in [([24, 0, 0], 0), ([23, 60, 0], 0), ([23, 0, 60], 0), ([0, 0, 0], 1_000_000)] {
        assert_eq!(datetime(clock, micros), Err(ParamError::OutOfRange("DATETIME")));
    }
    for no_number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let double = decoded(ColumnType::MYSQL_TYPE_DOUBLE, &no_number.to_le_bytes());
        assert_eq!(double, Err(ParamError::OutOfRange("DOUBLE")));
        let float = decoded(ColumnType::MYSQL_TYPE_FLOAT, &(no_number as f32).to_le_bytes());
        assert_eq!(float, Err(ParamError::OutOfRange("FLOAT")));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(
        payload in prop::collection::vec(any::<u8>(), 0..120),
        count in 0usize..20,
        all: bool,
    ) {
        let capabilities = if all { CapabilityFlags::all() } else { CapabilityFlags::empty() };
        let mut values = Vec::new();
        let _ = execute(Reader::new(&payload), capabilities, count, &mut Vec::new(), &[], None, &mut values);
        let _ = skip_query_attributes(&mut Reader::new(&payload));
    }
}
