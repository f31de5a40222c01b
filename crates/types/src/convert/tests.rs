//! The cases are MySQL 9.7's answers: `type|literal|text of the result`, with `!errno` for an error and ` ~errno` for a
//! warning or note.

use super::*;
use crate::sql_type::{Collation, IntWidth, LobSize};
use crate::temporal::{ZeroDates, date_of, parse_datetime};
use crate::text::write_text;

const COLLATION: Collation = Collation::DEFAULT;

fn column_type(name: &str) -> SqlType {
    let decimal = |unsigned| SqlType::Decimal { precision: 5, scale: 2, unsigned };
    match name {
        "tinyint" => SqlType::Int { width: IntWidth::W8, unsigned: false },
        "int unsigned" => SqlType::Int { width: IntWidth::W32, unsigned: true },
        "signed" => SqlType::BIGINT,
        "unsigned" => SqlType::BIGINT_UNSIGNED,
        "decimal(5,2)" => decimal(false),
        "decimal(5,2) unsigned" => decimal(true),
        "double" => SqlType::DOUBLE,
        "float" => SqlType::FLOAT,
        "char(3)" => SqlType::Char { len: 3, collation: COLLATION },
        "varchar(3)" => SqlType::VarChar { len: 3, collation: COLLATION },
        "tinytext" => SqlType::Text { size: LobSize::Tiny, collation: COLLATION },
        "char" => SqlType::Text { size: LobSize::Long, collation: COLLATION },
        "binary(3)" => SqlType::Binary { len: 3 },
        "date" => SqlType::Date,
        "datetime" => SqlType::DateTime { fsp: 0 },
        "datetime(2)" => SqlType::DateTime { fsp: 2 },
        "timestamp" => SqlType::Timestamp { fsp: 0 },
        "time" => SqlType::Time { fsp: 0 },
        "time(1)" => SqlType::Time { fsp: 1 },
        "year" => SqlType::Year,
        other => panic!("{other}"),
    }
}

fn literal(text: &str) -> (Datum<'_>, SqlType) {
    let quoted = |prefix: &str| text.strip_prefix(prefix)?.strip_suffix('\'');
    let instant =
        |s: &str| parse_datetime(s.as_bytes(), TimeZone::UTC, ZeroDates::REFUSED).expect("valid").micros;
    if let Some(s) = quoted("'") {
        (Datum::str(s), SqlType::VarChar { len: 99, collation: COLLATION })
    } else if let Some(s) = quoted("date'") {
        (Datum::Date(date_of(instant(s))), SqlType::Date)
    } else if let Some(s) = quoted("timestamp'") {
        (Datum::DateTime(instant(s)), SqlType::DateTime { fsp: 2 })
    } else if let Some(s) = quoted("time'") {
        let time = parse_time(s.as_bytes(), TimeZone::UTC).expect("valid").micros;
        (Datum::Time(time), SqlType::Time { fsp: 2 })
    } else if text.contains('e') {
        (Datum::Double(text.parse().expect("a double")), SqlType::DOUBLE)
    } else if text.contains('.') {
        let decimal: crate::Decimal = text.parse().expect("a decimal");
        (Datum::Decimal(decimal), SqlType::Null)
    } else {
        (Datum::Int(text.parse().expect("an integer")), SqlType::BIGINT)
    }
}

fn shown(value: &Datum<'_>, ty: &SqlType) -> String {
    let mut text = Vec::new();
    write_text(value, ty, TimeZone::UTC, &mut text);
    if value.is_null() {
        return "NULL".into();
    }
    String::from_utf8(text).expect("UTF-8").replace('\0', "\\0")
}

fn check(cases: &str, answer: impl Fn(Datum<'_>, &SqlType, &SqlType) -> String) {
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let [ty, text, wanted] = line.splitn(3, '|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (value, from) = literal(text);
        let got = answer(value, &from, &column_type(ty));
        if got != wanted {
            wrong.push(format!("{ty} <- {text}: {got:?}, MySQL has {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_are_stored_as_in_mysql() {
    check(include_str!("testdata/store.txt"), |value, from, to| {
        match store(value, from, to, &ConvertContext::STRICT_UTC) {
            Err(error) => format!("!{}", error.errno()),
            Ok(Stored { value, warning }) => {
                let note = warning.map_or(String::new(), |w| format!(" ~{}", w.errno()));
                format!("{}{note}", shown(&value, to))
            }
        }
    });
}

#[test]
fn values_are_cast_as_in_mysql() {
    check(include_str!("testdata/cast.txt"), |value, from, to| {
        let (value, warning) = cast(value, from, to, &ConvertContext::STRICT_UTC);
        let warning = warning.map_or(String::new(), |w| format!(" ~{}", w.errno()));
        format!("{}{warning}", shown(&value, to))
    });
}

#[test]
fn out_of_strict_mode_values_are_clipped() {
    let lenient = ConvertContext { strict: false, ..ConvertContext::STRICT_UTC };
    for (ty, text, wanted, errno) in [
        ("tinyint", "300", "127", 1264),
        ("int unsigned", "-1", "0", 1264),
        ("tinyint", "'12abc'", "12", 1265),
        ("varchar(3)", "'abcd'", "abc", 1406),
        ("decimal(5,2)", "1e10", "999.99", 1264),
        ("double", "'x'", "0", 1366),
    ] {
        let (value, from) = literal(text);
        let to = column_type(ty);
        let stored = store(value, &from, &to, &lenient).expect("never an error");
        let errno_got = stored.warning.map(|w| w.errno());
        assert_eq!((shown(&stored.value, &to).as_str(), errno_got), (wanted, Some(errno)), "{ty} {text}");
    }
}

#[test]
fn timestamps_are_stored_in_utc() {
    let context =
        ConvertContext { zone: TimeZone::parse("+02:00").expect("valid"), ..ConvertContext::STRICT_UTC };
    let timestamp = SqlType::Timestamp { fsp: 0 };
    let stored =
        store(Datum::str("1970-01-01 03:00:00"), &SqlType::Null, &timestamp, &context).expect("fits");
    assert!(matches!(stored.value, Datum::DateTime(3_600_000_000)));
    assert!(store(Datum::str("1970-01-01 02:00:00"), &SqlType::Null, &timestamp, &context).is_err());
    let back = store(stored.value, &timestamp, &SqlType::DateTime { fsp: 0 }, &context).expect("fits");
    assert!(matches!(back.value, Datum::DateTime(10_800_000_000)));
}

#[test]
fn messages_are_mysqls() {
    let error = store(Datum::str("abc"), &SqlType::Null, &SqlType::INT, &ConvertContext::STRICT_UTC);
    let message = error.expect_err("not an integer").message("c", 1);
    assert_eq!(message, "Incorrect integer value: 'abc' for column 'c' at row 1");
    assert_eq!(StoreError::Null.message("c", 3), "Column 'c' cannot be null");
    assert_eq!(StoreError::TooLong.message("c", 3), "Data too long for column 'c' at row 3");
}
