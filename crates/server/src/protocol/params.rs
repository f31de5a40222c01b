//! The parameters of COM_STMT_EXECUTE, and query attributes, which look the same.

use std::borrow::Cow;

use avocet_types::collation::Charset;
use avocet_types::decimal::ParseStatus;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::{Civil, Clock, MAX_TIME};
use avocet_types::{Datum, Decimal};
use mysql_common::constants::ColumnType;

use super::read::{Malformed, Reader};
use super::{CapabilityFlags, charset};

const PARAMETER_COUNT_AVAILABLE: u8 = 0x08;
const CURSOR_READ_ONLY: u8 = 0x01;
const UNSIGNED: u8 = 0x80;
/// In a whole COM_STMT_EXECUTE: the flags stand behind the command and the number, and an iteration count behind these.
const EXECUTE_FLAGS: usize = 5;
const EXECUTE_HEAD: usize = 10;

/// A parameter's type as the client bound it: a column type and whether it is unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamType {
    code: ColumnType,
    unsigned: bool,
}

impl ParamType {
    /// Whether a value may have it: some types are of columns alone, and NULL is told by its bit (`setup_one_conversion_function`).
    fn is_of_parameters(self) -> bool {
        use ColumnType as T;
        !matches!(
            self.code,
            T::MYSQL_TYPE_NULL
                | T::MYSQL_TYPE_INT24
                | T::MYSQL_TYPE_YEAR
                | T::MYSQL_TYPE_NEWDATE
                | T::MYSQL_TYPE_BIT
                | T::MYSQL_TYPE_TIMESTAMP2
                | T::MYSQL_TYPE_DATETIME2
                | T::MYSQL_TYPE_TIME2
                | T::MYSQL_TYPE_TYPED_ARRAY
                | T::MYSQL_TYPE_ENUM
                | T::MYSQL_TYPE_SET
                | T::MYSQL_TYPE_GEOMETRY
        )
    }
}

/// What a COM_STMT_EXECUTE asks for besides its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecuteFlags {
    /// Keep the rows for COM_STMT_FETCH.
    pub cursor: bool,
}

/// Why values are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamError {
    Malformed,
    /// Of a type that no parameter has.
    WrongType,
    /// Of a type that has no such value: no clock or calendar shows it, or it is no number.
    OutOfRange(&'static str),
}

impl From<Malformed> for ParamError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<ParamError> for SqlError {
    fn from(error: ParamError) -> Self {
        match error {
            ParamError::Malformed => ErrorCode::MALFORMED_PACKET.with(&[]),
            ParamError::WrongType => ErrorCode::WRONG_ARGUMENTS.with(&[&"mysqld_stmt_execute"]),
            ParamError::OutOfRange(ty) => ErrorCode::DATA_OUT_OF_RANGE.with(&[&ty, &"set_parameter_value"]),
        }
    }
}

/// Reads the rest of a COM_STMT_EXECUTE for a statement of `count` parameters into `values`. `types` are
/// those of the statement's last execution and are replaced if new ones are bound; `long_data` has what
/// came by COM_STMT_SEND_LONG_DATA.
pub fn execute<'a>(
    mut reader: Reader<'a>,
    capabilities: CapabilityFlags,
    count: usize,
    types: &mut Vec<ParamType>,
    long_data: &'a [Option<Vec<u8>>],
    client: Option<Charset>,
    values: &mut Vec<Datum<'a>>,
) -> Result<ExecuteFlags, ParamError> {
    let flags = reader.u8()?;
    reader.u32()?;
    // Who knows of query attributes sends a count and names with all parameters; the flag says that there may be attributes
    // where the statement has no parameters (MySQL's source documentation, "COM_STMT_EXECUTE").
    let named = capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
    let mut sent = count;
    if named && (count > 0 || flags & PARAMETER_COUNT_AVAILABLE != 0) {
        sent = usize::try_from(reader.lenenc_int()?).map_err(|_| Malformed)?;
    }
    if sent < count {
        return Err(ParamError::Malformed);
    }
    if sent > 0 {
        let nulls = reader.bytes(sent.div_ceil(8))?;
        if reader.u8()? != 0 {
            read_types(&mut reader, sent, named, types)?;
        }
        for i in 0..count {
            let is_null = nulls[i / 8] & (1 << (i % 8)) != 0;
            let long = long_data.get(i).and_then(Option::as_deref);
            values.push(match (long, types.get(i)) {
                (None, _) if is_null => Datum::Null,
                (Some(bytes), Some(ty)) => string(*ty, bytes, client),
                (None, Some(ty)) if !ty.is_of_parameters() => return Err(ParamError::WrongType),
                (None, Some(ty)) => value(&mut reader, *ty, client)?,
                // NULLs alone need no types.
                (_, None) => return Err(ParamError::Malformed),
            });
        }
    }
    Ok(ExecuteFlags { cursor: flags & CURSOR_READ_ONLY != 0 })
}

fn read_types(
    reader: &mut Reader<'_>,
    count: usize,
    named: bool,
    types: &mut Vec<ParamType>,
) -> Result<(), ParamError> {
    types.clear();
    for _ in 0..count {
        let code = reader.u8()?;
        let flags = reader.u8()?;
        let code = ColumnType::try_from(code).map_err(|_| ParamError::WrongType)?;
        types.push(ParamType { code, unsigned: flags & UNSIGNED != 0 });
        if named {
            reader.lenenc_bytes()?;
        }
    }
    Ok(())
}

/// What a COM_STMT_EXECUTE is like before its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecuteKind {
    /// No cursor is asked for, and there are no attributes.
    pub is_plain: bool,
}

/// Reads the flags of a whole COM_STMT_EXECUTE packet; `None` if it is malformed.
pub fn execute_flags(payload: &[u8], capabilities: CapabilityFlags) -> Option<ExecuteKind> {
    let flags = *payload.get(EXECUTE_FLAGS)?;
    let has_attributes = capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES)
        && flags & PARAMETER_COUNT_AVAILABLE != 0;
    Some(ExecuteKind { is_plain: flags & !PARAMETER_COUNT_AVAILABLE == 0 && !has_attributes })
}

/// Where the bound types of `count` parameters stand in a COM_STMT_EXECUTE, if it has any: behind the NULLs, after the byte
/// that says whether they are there.
fn place_of_types(payload: &[u8], capabilities: CapabilityFlags, count: usize) -> Option<usize> {
    let mut reader = Reader::new(payload.get(EXECUTE_HEAD..)?);
    let before = reader.left();
    if capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES)
        && usize::try_from(reader.lenenc_int().ok()?).ok()? != count
    {
        return None;
    }
    reader.bytes(count.div_ceil(8)).ok()?;
    Some(EXECUTE_HEAD + before - reader.left())
}

/// Reads the types that a COM_STMT_EXECUTE of `count` parameters binds; false if it goes on with those of before.
pub fn bound_types(
    payload: &[u8],
    capabilities: CapabilityFlags,
    count: usize,
    types: &mut Vec<ParamType>,
) -> bool {
    if count == 0 {
        return false;
    }
    let at = place_of_types(payload, capabilities, count);
    let Some(bytes) = at.and_then(|at| payload.get(at..)) else { return false };
    let mut reader = Reader::new(bytes);
    let named = capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
    reader.u8().is_ok_and(|binds| binds != 0) && read_types(&mut reader, count, named, types).is_ok()
}

/// A COM_STMT_EXECUTE that goes on with the types of before, as one that binds them.
pub fn with_types(
    payload: &[u8],
    capabilities: CapabilityFlags,
    count: usize,
    types: &[ParamType],
) -> Option<Vec<u8>> {
    if count == 0 || types.len() != count {
        return None;
    }
    let at = place_of_types(payload, capabilities, count)?;
    let mut whole = payload.get(..at)?.to_vec();
    whole.push(1);
    for ty in types {
        whole.push(ty.code as u8);
        whole.push(if ty.unsigned { UNSIGNED } else { 0 });
        if capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES) {
            whole.push(0);
        }
    }
    whole.extend_from_slice(payload.get(at + 1..)?);
    Some(whole)
}

/// Reads over the attributes in front of a COM_QUERY's text.
pub fn skip_query_attributes(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    let count = usize::try_from(reader.lenenc_int()?).map_err(|_| Malformed)?;
    reader.lenenc_int()?;
    if count == 0 {
        return Ok(());
    }
    let nulls = reader.bytes(count.div_ceil(8))?;
    if reader.u8()? != 1 {
        return Err(Malformed);
    }
    let mut types = Vec::new();
    read_types(reader, count, true, &mut types).map_err(|_| Malformed)?;
    for (i, ty) in types.iter().enumerate() {
        if nulls[i / 8] & (1 << (i % 8)) == 0 {
            // Nobody looks at it.
            match value(reader, *ty, None) {
                Err(ParamError::Malformed | ParamError::WrongType) => return Err(Malformed),
                Ok(_) | Err(ParamError::OutOfRange(_)) => {}
            }
        }
    }
    Ok(())
}

fn value<'a>(
    reader: &mut Reader<'a>,
    ty: ParamType,
    client: Option<Charset>,
) -> Result<Datum<'a>, ParamError> {
    Ok(match ty.code {
        ColumnType::MYSQL_TYPE_NULL => Datum::Null,
        ColumnType::MYSQL_TYPE_TINY => {
            let v = reader.u8()?;
            if ty.unsigned { Datum::UInt(u64::from(v)) } else { Datum::Int(i64::from(v as i8)) }
        }
        ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => {
            let v = reader.u16()?;
            if ty.unsigned { Datum::UInt(u64::from(v)) } else { Datum::Int(i64::from(v as i16)) }
        }
        ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 => {
            let v = reader.u32()?;
            if ty.unsigned { Datum::UInt(u64::from(v)) } else { Datum::Int(i64::from(v as i32)) }
        }
        ColumnType::MYSQL_TYPE_LONGLONG => {
            let v = reader.u64()?;
            if ty.unsigned { Datum::UInt(v) } else { Datum::Int(v as i64) }
        }
        ColumnType::MYSQL_TYPE_FLOAT => finite("FLOAT", f32::from_bits(reader.u32()?), Datum::Float)?,
        ColumnType::MYSQL_TYPE_DOUBLE => finite("DOUBLE", f64::from_bits(reader.u64()?), Datum::Double)?,
        ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => date_or_datetime(reader, true)?,
        ColumnType::MYSQL_TYPE_DATETIME
        | ColumnType::MYSQL_TYPE_TIMESTAMP
        | ColumnType::MYSQL_TYPE_DATETIME2
        | ColumnType::MYSQL_TYPE_TIMESTAMP2 => date_or_datetime(reader, false)?,
        ColumnType::MYSQL_TYPE_TIME | ColumnType::MYSQL_TYPE_TIME2 => time(reader)?,
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
            let bytes = reader.lenenc_bytes()?;
            decimal(bytes).map_or_else(|| string(ty, bytes, client), Datum::Decimal)
        }
        ColumnType::MYSQL_TYPE_VARCHAR
        | ColumnType::MYSQL_TYPE_VAR_STRING
        | ColumnType::MYSQL_TYPE_STRING
        | ColumnType::MYSQL_TYPE_ENUM
        | ColumnType::MYSQL_TYPE_SET
        | ColumnType::MYSQL_TYPE_JSON
        | ColumnType::MYSQL_TYPE_TINY_BLOB
        | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
        | ColumnType::MYSQL_TYPE_LONG_BLOB
        | ColumnType::MYSQL_TYPE_BLOB
        | ColumnType::MYSQL_TYPE_GEOMETRY
        | ColumnType::MYSQL_TYPE_BIT => string(ty, reader.lenenc_bytes()?, client),
        ColumnType::MYSQL_TYPE_TYPED_ARRAY
        | ColumnType::MYSQL_TYPE_VECTOR
        | ColumnType::MYSQL_TYPE_UNKNOWN => return Err(ParamError::Malformed),
    })
}

/// MySQL takes NaN and infinities as parameters, and refuses them in columns (1264). No expression of SQL gives them, so they are
/// refused here.
fn finite<'a, F: Copy + Into<f64>>(
    ty: &'static str,
    v: F,
    as_datum: fn(F) -> Datum<'a>,
) -> Result<Datum<'a>, ParamError> {
    match v.into().is_finite() {
        true => Ok(as_datum(v)),
        false => Err(ParamError::OutOfRange(ty)),
    }
}

/// Text, unless it was bound as binary or is not UTF-8: drivers send byte strings as text too.
fn string(ty: ParamType, bytes: &[u8], client: Option<Charset>) -> Datum<'_> {
    let binary = matches!(
        ty.code,
        ColumnType::MYSQL_TYPE_TINY_BLOB
            | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
            | ColumnType::MYSQL_TYPE_LONG_BLOB
            | ColumnType::MYSQL_TYPE_BLOB
            | ColumnType::MYSQL_TYPE_GEOMETRY
            | ColumnType::MYSQL_TYPE_BIT
    );
    if let Some(client) = client.filter(|_| !binary) {
        return charset::decode_param(bytes, client);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !binary => Datum::Str(Cow::Borrowed(text)),
        _ => Datum::Bytes(Cow::Borrowed(bytes)),
    }
}

/// A decimal sent as its text; `None`, and so text for the binder to judge, unless it is one exactly.
fn decimal(text: &[u8]) -> Option<Decimal> {
    let parsed = Decimal::parse_prefix(text);
    (parsed.consumed == text.len() && parsed.status == ParseStatus::Exact).then_some(parsed.value)
}

/// A moment as sent; zero dates, and days that their month does not have, become text: sql_mode says whether they are dates.
fn date_or_datetime<'a>(reader: &mut Reader<'a>, date_only: bool) -> Result<Datum<'a>, ParamError> {
    let len = reader.u8()?;
    let (mut year, mut month, mut day) = (0, 0, 0);
    let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
    match len {
        0 | 4 | 7 | 11 => {}
        _ => return Err(ParamError::Malformed),
    }
    if len >= 4 {
        (year, month, day) = (reader.u16()?, reader.u8()?, reader.u8()?);
    }
    if len >= 7 {
        (hour, minute, second) = (reader.u8()?, reader.u8()?, reader.u8()?);
    }
    if len == 11 {
        micros = reader.u32()?;
    }
    let clock = Clock::new(u32::from(hour), u32::from(minute), u32::from(second), micros);
    let in_day = hour < 24 && minute < 60 && second < 60 && micros < 1_000_000;
    if year > 9999 || month > 12 || day > 31 || !in_day {
        return Err(ParamError::OutOfRange(if date_only { "DATE" } else { "DATETIME" }));
    }
    match Civil::checked(i32::from(year), u32::from(month), u32::from(day)) {
        Some(date) if date_only && len == 4 => Ok(Datum::Date(date.to_days())),
        Some(date) => Ok(Datum::DateTime(date.to_micros() + clock.to_micros())),
        None if date_only => Ok(Datum::Str(Cow::Owned(format!("{year:04}-{month:02}-{day:02}")))),
        None => {
            let fraction = if micros > 0 { format!(".{micros:06}") } else { String::new() };
            Ok(Datum::Str(Cow::Owned(format!(
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}"
            ))))
        }
    }
}

/// A TIME as sent.
fn time<'a>(reader: &mut Reader<'a>) -> Result<Datum<'a>, ParamError> {
    let len = reader.u8()?;
    match len {
        0 => return Ok(Datum::Time(0)),
        8 | 12 => {}
        _ => return Err(ParamError::Malformed),
    }
    let negative = reader.u8()? != 0;
    let days = reader.u32()?;
    let (hour, minute, second) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let micros = if len == 12 { reader.u32()? } else { 0 };
    let hours = days.saturating_mul(24).saturating_add(u32::from(hour));
    let is_in_range = hours <= 838 && minute <= 59 && second <= 59 && micros <= 999_999;
    let total = Clock::new(hours.min(838), u32::from(minute), u32::from(second), micros).to_micros();
    if !is_in_range || total > MAX_TIME {
        return Err(ParamError::OutOfRange("TIME"));
    }
    Ok(Datum::Time(if negative { -total } else { total }))
}

#[cfg(test)]
mod tests;
