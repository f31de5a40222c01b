//! Rows as lines of text, and column types as letters, the same for the text and the binary protocol.
//!
//! Letters: `I` integer, `U` unsigned integer, `D` decimal, `R` floating point, `T` text, `B` binary, `A` date, `M` date and time,
//! `H` time, `Y` year, `J` JSON, `X` bit, `N` null, `O` other.

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::{Column, Row, Value};

/// MySQL's number of the binary collation, which tells bytes from text.
const BINARY: u16 = 63;

/// The letter of a column's type.
pub fn letter(column: &Column) -> char {
    use ColumnType::*;
    match column.column_type() {
        MYSQL_TYPE_TINY | MYSQL_TYPE_SHORT | MYSQL_TYPE_LONG | MYSQL_TYPE_INT24 | MYSQL_TYPE_LONGLONG => {
            if column.flags().contains(ColumnFlags::UNSIGNED_FLAG) {
                'U'
            } else {
                'I'
            }
        }
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => 'D',
        MYSQL_TYPE_FLOAT | MYSQL_TYPE_DOUBLE => 'R',
        MYSQL_TYPE_DATE | MYSQL_TYPE_NEWDATE => 'A',
        MYSQL_TYPE_DATETIME | MYSQL_TYPE_DATETIME2 | MYSQL_TYPE_TIMESTAMP | MYSQL_TYPE_TIMESTAMP2 => 'M',
        MYSQL_TYPE_TIME | MYSQL_TYPE_TIME2 => 'H',
        MYSQL_TYPE_YEAR => 'Y',
        MYSQL_TYPE_JSON => 'J',
        MYSQL_TYPE_BIT => 'X',
        MYSQL_TYPE_NULL => 'N',
        MYSQL_TYPE_VARCHAR
        | MYSQL_TYPE_VAR_STRING
        | MYSQL_TYPE_STRING
        | MYSQL_TYPE_ENUM
        | MYSQL_TYPE_SET
        | MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB
        | MYSQL_TYPE_BLOB => {
            if column.character_set() == BINARY {
                'B'
            } else {
                'T'
            }
        }
        _ => 'O',
    }
}

/// A row as a line.
pub fn line(row: &Row) -> String {
    let columns = row.columns_ref().iter().enumerate();
    let cell = |(at, column)| row.as_ref(at).map_or_else(String::new, |value| cell(value, column));
    columns.map(cell).collect::<Vec<_>>().join("\t")
}

fn cell(value: &Value, column: &Column) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Int(i) => i.to_string(),
        Value::UInt(u) => u.to_string(),
        Value::Float(f) => float(f64::from(*f), column),
        Value::Double(d) => float(*d, column),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            if letter(column) == 'A' {
                return date;
            }
            format!("{date} {hour:02}:{minute:02}:{second:02}{}", fraction(*micros, column))
        }
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            let sign = if *negative { "-" } else { "" };
            let hours = days * 24 + u32::from(*hours);
            format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{}", fraction(*micros, column))
        }
        Value::Bytes(bytes) => text(bytes, column),
    }
}

fn fraction(micros: u32, column: &Column) -> String {
    match usize::from(column.decimals()).min(6) {
        0 => String::new(),
        digits => format!(".{}", &format!("{micros:06}")[..digits]),
    }
}

/// Bytes as they came, but with floating point in one form, and what is not printable as hex.
fn text(bytes: &[u8], column: &Column) -> String {
    let kind = letter(column);
    match std::str::from_utf8(bytes) {
        Ok("") => "(empty)".into(),
        Ok(text) if kind == 'R' => text.parse().map_or_else(|_| text.to_owned(), |f: f64| float(f, column)),
        Ok(text) if kind != 'X' && text.chars().all(|c| !c.is_control()) => text.to_owned(),
        _ => bytes.iter().fold("0x".to_owned(), |hex, byte| hex + &format!("{byte:02X}")),
    }
}

/// MySQL's text protocol shows FLOAT with six digits, some functions with a fixed number of decimals, and DOUBLE as it is.
fn float(value: f64, column: &Column) -> String {
    const NOT_FIXED: u8 = 31;
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let places = if column.decimals() < NOT_FIXED {
        i32::from(column.decimals())
    } else if column.column_type() == ColumnType::MYSQL_TYPE_FLOAT {
        5 - value.abs().log10().floor() as i32
    } else {
        return format!("{value}");
    };
    let scale = 10f64.powi(places);
    format!("{}", (value * scale).round() / scale)
}
