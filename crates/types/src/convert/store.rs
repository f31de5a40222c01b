//! Values into columns.

use std::borrow::Cow;

use super::coded;
use super::{
    ConvertContext, Read, StoreError, byte_limit, char_limit, read_datetime, read_time, round_double,
    temporal_to_integer, text_of,
};
use crate::accumulate::moments::nearest_finite;
use crate::collation::{Charset, Collation};
use crate::compare;
use crate::datum::Datum;
use crate::decimal::{Decimal, ParseStatus};
use crate::geometry::{self, GeometryType, Misfit};
use crate::json::{self, JsonError, Node, scalar, wanted_kind};
use crate::number::{parse_f64, write_f64_within};
use crate::schema::ColumnDef;
use crate::sql_type::SqlType;
use crate::temporal::{
    DAY, MAX_TIMESTAMP, MIN_TIMESTAMP, NotADate, ZERO_DATE, ZERO_DATETIME, ZeroDates, date_of, time_of,
    year_from_number,
};

/// A value as its column keeps it.
#[derive(Clone, Debug)]
pub struct Stored<'v> {
    pub value: Datum<'v>,
    /// A note, or out of strict mode a warning: the value is not what was given.
    pub warning: Option<StoreError>,
}

/// What becomes of a value, and what is wrong with it.
pub(super) type Outcome<'v> = (Datum<'v>, Option<StoreError>);

/// Converts a value of type `from` for a column; refuses NULL if the column does.
#[inline]
pub fn store_column<'v>(
    value: Datum<'v>,
    from: &SqlType,
    column: &ColumnDef,
    context: &ConvertContext,
) -> Result<Stored<'v>, StoreError> {
    if value.is_null() && !column.nullable {
        return Err(StoreError::null_in(&column.ty));
    }
    store(value, from, &column.ty, context)
}

/// Converts a value of type `from` for a column of type `to`. DATETIMEs are in local time, TIMESTAMPs in UTC, on both sides.
#[inline]
pub fn store<'v>(
    value: Datum<'v>,
    from: &SqlType,
    to: &SqlType,
    context: &ConvertContext,
) -> Result<Stored<'v>, StoreError> {
    if let Some((min, max)) = fast_int_range(to)
        && let Datum::Int(v) = value
        && (min..=max).contains(&v)
    {
        return Ok(Stored { value, warning: None });
    }
    let (value, warning) = convert(value, from, to, context);
    match warning {
        Some(problem) if problem.is_fatal() || context.strict && !problem.is_note() => Err(problem),
        warning => Ok(Stored { value, warning }),
    }
}

/// The range of signed integer types.
#[inline]
fn fast_int_range(to: &SqlType) -> Option<(i64, i64)> {
    match to {
        SqlType::Int { width, unsigned: false } => {
            let max = i64::MAX >> (64 - width.bits());
            Some((-max - 1, max))
        }
        _ => None,
    }
}

/// Whether it is a sum that is larger than any DOUBLE, or no number.
fn is_infinite(value: &Datum<'_>) -> bool {
    matches!(value, Datum::Double(v) if !v.is_finite())
}

fn convert<'v>(value: Datum<'v>, from: &SqlType, to: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    if value.is_null() {
        return (Datum::Null, None);
    }
    let (value, from) = match value {
        Datum::UInt(v) if from.is_coded() => match coded::taken_as(v, from, to) {
            Ok(as_it_is) => return as_it_is,
            Err(Some(name)) => (Datum::Str(name), &coded::NAME),
            // Stored as a number is.
            Err(None) => (value, &SqlType::BIGINT_UNSIGNED),
        },
        Datum::Str(text) if is_bytes_to(from, to) => {
            (Datum::Bytes(text.into_owned().into_bytes().into()), &BYTES)
        }
        value => (value, from),
    };
    if *from == SqlType::Json {
        return of_json(value, to, context);
    }
    match to {
        SqlType::Json => to_json(&value),
        SqlType::Geometry { ty, srid } => to_geometry(value, *ty, *srid),
        SqlType::Null => (value, None),
        SqlType::Enum(members) => coded::to_enum(&value, from, *members, context),
        SqlType::Set(members) => coded::to_set(&value, from, *members, context),
        SqlType::Bit { len } => coded::to_bits(&value, *len),
        SqlType::Bool | SqlType::Int { .. } => to_int(&value, from, to, context),
        SqlType::Year => to_year(&value, from, context),
        SqlType::Decimal { precision, scale, unsigned } => {
            to_decimal(value, from, (*precision, *scale, *unsigned), context)
        }
        // Of the same type: it was rounded before.
        SqlType::Double(_) | SqlType::Float(_) if from == to && !is_infinite(&value) => (value, None),
        SqlType::Double(real) => {
            let (v, problem) = to_double(&value, "DOUBLE", from, context);
            if !v.is_finite() {
                return (Datum::Double(real.fit(nearest_finite(v)).0), Some(StoreError::OutOfRange));
            }
            let (v, fits) = real.fit(v);
            (Datum::Double(v), if fits { problem } else { Some(StoreError::OutOfRange) })
        }
        SqlType::Float(real) => {
            let (v, problem) = to_double(&value, "FLOAT", from, context);
            let (v, fits) = real.fit(v);
            let narrow = nearest_finite(v) as f32;
            if narrow.is_infinite() {
                return (Datum::Float(f32::MAX.copysign(narrow)), Some(StoreError::OutOfRange));
            }
            (Datum::Float(narrow), if fits { problem } else { Some(StoreError::OutOfRange) })
        }
        SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } => {
            to_string(value, from, to, context)
        }
        SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Blob { .. } => {
            to_bytes(value, from, to, context)
        }
        SqlType::Date => to_date(&value, from, context),
        SqlType::DateTime { fsp } => to_datetime(&value, from, *fsp, context),
        SqlType::Timestamp { fsp } => to_timestamp(&value, from, *fsp, context),
        SqlType::Time { fsp } => to_time(&value, from, *fsp, context),
    }
}

const BYTES: SqlType = SqlType::VarBinary { len: u32::MAX };

/// Whether a text is a literal of a connection in `binary`, for a column whose bytes are not those of UTF-8: what is text to all
/// expressions is stored as the bytes that the client sent.
fn is_bytes_to(from: &SqlType, to: &SqlType) -> bool {
    from.collation() == Some(Collation::BINARY)
        && to.declared_collation().is_some_and(|collation| !collation.info().charset.is_utf8())
}

/// The document that a text is. Numbers and dates are none.
fn to_json<'v>(value: &Datum<'_>) -> Outcome<'v> {
    let problem = match value {
        Datum::Str(text) => match json::parse(text).and_then(|json| json.encode()) {
            Ok(document) => return (Datum::Bytes(document.into()), None),
            Err(problem) => StoreError::Json(problem),
        },
        Datum::Bytes(_) => StoreError::JsonCharset,
        _ => StoreError::Json(JsonError::Syntax { message: "not a JSON text, may need CAST", position: 0 }),
    };
    (Datum::Null, Some(problem))
}

/// A spatial value: bytes that are one already.
fn to_geometry(value: Datum<'_>, ty: GeometryType, srid: Option<u32>) -> Outcome<'_> {
    let checked = match &value {
        Datum::Bytes(bytes) => geometry::check_stored(bytes, ty, srid),
        Datum::Str(text) => geometry::check_stored(text.as_bytes(), ty, srid),
        _ => Err(Misfit::NoGeometry),
    };
    match (checked, value) {
        (Ok(()), Datum::Str(text)) => (Datum::Bytes(text.into_owned().into_bytes().into()), None),
        (Ok(()), value) => (value, None),
        (Err(misfit), _) => (Datum::Null, Some(StoreError::Geometry(misfit))),
    }
}

/// A document for a column of another type: its text, or the value of a scalar.
fn of_json<'v>(value: Datum<'v>, to: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    let Datum::Bytes(bytes) = &value else { return (value, None) };
    let node = Node::new(bytes);
    let text = |text: String| (Datum::Str(text.into()), SqlType::JSON_TEXT);
    let (scalar, from) = match to {
        SqlType::Json => return (value, None),
        ty if ty.is_string() || ty.is_bytes() || ty.members().is_some() => text(node.text()),
        _ => match scalar(node) {
            Some(scalar) => scalar,
            None => {
                let zero = convert(Datum::Int(0), &SqlType::BIGINT, to, context).0;
                return (
                    if to.is_temporal() { Datum::Null } else { zero },
                    Some(StoreError::JsonCast(wanted_kind(to))),
                );
            }
        },
    };
    // Judged as in strict mode, in which it is known what is no date.
    let judge = ConvertContext { strict: context.strict || to.is_temporal(), ..*context };
    let (stored, problem) = convert(scalar, &from, to, &judge);
    let is_none =
        problem.is_some() && matches!(stored, Datum::Date(ZERO_DATE) | Datum::DateTime(ZERO_DATETIME));
    // A string in a document that is no number or date is no value for the cast.
    let problem = problem.map(|problem| match problem {
        StoreError::Truncated | StoreError::Incorrect { .. } | StoreError::IncorrectTemporal { .. }
            if from.is_string() && to.members().is_none() =>
        {
            StoreError::JsonCast(wanted_kind(to))
        }
        other => other,
    });
    (if is_none { Datum::Null } else { stored.into_owned() }, problem)
}

/// The integer that a value is worth: rounded, not yet in the range of any type.
fn integer(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> (i128, Option<StoreError>) {
    match value {
        Datum::Int(v) => ((*v).into(), None),
        Datum::UInt(v) => ((*v).into(), None),
        Datum::Float(v) => (round_double((*v).into()), None),
        Datum::Double(v) => (round_double(*v), None),
        Datum::Decimal(v) => (whole(v), None),
        Datum::Str(text) => integer_of_text(text.as_bytes()),
        Datum::Bytes(text) => integer_of_text(text),
        temporal => (temporal_to_integer(temporal, from, context).unwrap_or(0).into(), None),
    }
}

fn whole(v: &Decimal) -> i128 {
    let far = if v.is_negative() { i128::MIN } else { i128::MAX };
    v.round(0).as_i128().unwrap_or(far)
}

fn integer_of_text(text: &[u8]) -> (i128, Option<StoreError>) {
    let parsed = Decimal::parse_prefix(text);
    let problem = match parsed.status {
        ParseStatus::NotANumber => Some(incorrect("integer", text)),
        _ if !text[parsed.consumed..].trim_ascii().is_empty() => Some(StoreError::Truncated),
        _ => None,
    };
    (whole(&parsed.value), problem)
}

fn incorrect(kind: &'static str, text: &[u8]) -> StoreError {
    StoreError::Incorrect { kind, value: String::from_utf8_lossy(text).into_owned() }
}

fn to_int<'v>(value: &Datum<'_>, from: &SqlType, to: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    let (v, mut problem) = integer(value, from, context);
    let (min, max) = to.int_range().expect("an integer type");
    if v < min || v > max {
        problem = Some(StoreError::OutOfRange);
    }
    let v = v.clamp(min, max);
    (if to.is_unsigned() { Datum::UInt(v as u64) } else { Datum::Int(v as i64) }, problem)
}

fn to_year<'v>(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    let zeros = ConvertContext { zero_dates: ZeroDates::ALLOWED, ..*context };
    if let Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_) = value
        && let Ok(read) = read_datetime(value, from, 6, &zeros)
    {
        let year = crate::temporal::Civil::from_days(date_of(read.micros)).year;
        return match year_from_number(year.into()) {
            Some(year) => (Datum::UInt(year), None),
            None => (Datum::UInt(0), Some(StoreError::OutOfRange)),
        };
    }
    let (v, problem) = integer(value, from, context);
    let is_text = matches!(value, Datum::Str(_) | Datum::Bytes(_));
    match i64::try_from(v).ok().and_then(year_from_number) {
        // The text '0' is a two-digit year.
        Some(0) if is_text && problem.is_none() && text_of(value, from, context).trim().len() < 3 => {
            (Datum::UInt(2000), None)
        }
        Some(year) => (Datum::UInt(year), problem),
        None => (Datum::UInt(0), Some(StoreError::OutOfRange)),
    }
}

fn to_decimal<'v>(
    value: Datum<'v>,
    from: &SqlType,
    (precision, scale, unsigned): (u8, u8, bool),
    context: &ConvertContext,
) -> Outcome<'v> {
    if let Datum::Decimal(v) = &value
        && v.scale() == scale
        && v.fits(precision, scale)
        && !(unsigned && v.is_negative())
    {
        return (value, None);
    }
    let text = match &value {
        Datum::Str(s) => Some(s.as_bytes()),
        Datum::Bytes(b) => Some(&**b),
        _ => None,
    };
    let (mut problem, mut beyond) = (None, None);
    let exact = match text {
        Some(text) => {
            let parsed = Decimal::parse_prefix(text);
            let rest = !text[parsed.consumed..].trim_ascii().is_empty();
            if parsed.status == ParseStatus::NotANumber {
                problem = Some(incorrect("decimal", text));
            } else if rest {
                beyond = Some(String::from_utf8_lossy(text).into_owned());
            } else if parsed.status == ParseStatus::Overflow {
                problem = Some(StoreError::OutOfRange);
            }
            parsed.value
        }
        None => {
            let local = matches!(from, SqlType::Timestamp { .. });
            match &value {
                Datum::DateTime(micros) if local => {
                    compare::decimal(&Datum::DateTime(context.zone.to_local(*micros)))
                }
                other => compare::decimal(other),
            }
        }
    };
    let (v, fit) = fit_decimal(&exact, precision, scale, unsigned);
    let problem = match beyond {
        Some(value) => Some(StoreError::BeyondDecimal { value, number: fit.map(Box::new) }),
        None => problem.or(fit),
    };
    (Datum::Decimal(v), problem)
}

/// The value at the column's scale, and in its range.
pub(super) fn fit_decimal(
    exact: &Decimal,
    precision: u8,
    scale: u8,
    unsigned: bool,
) -> (Decimal, Option<StoreError>) {
    if unsigned && exact.is_negative() {
        return (Decimal::new(0, scale), Some(StoreError::OutOfRange));
    }
    match exact.rescale(scale) {
        Ok(v) if v.fits(precision, scale) => {
            let rounded = v != *exact;
            (v, rounded.then_some(StoreError::Rounded))
        }
        _ => (Decimal::max_of(precision, scale, exact.is_negative()), Some(StoreError::OutOfRange)),
    }
}

fn to_double(
    value: &Datum<'_>,
    kind: &'static str,
    from: &SqlType,
    context: &ConvertContext,
) -> (f64, Option<StoreError>) {
    let of_text = |text: &[u8]| {
        let parsed = parse_f64(text);
        let problem = if parsed.truncated {
            Some(incorrect(kind, text))
        } else {
            parsed.overflow.then_some(StoreError::OutOfRange)
        };
        (parsed.value, problem)
    };
    match value {
        Datum::Str(text) => of_text(text.as_bytes()),
        Datum::Bytes(text) => of_text(text),
        Datum::DateTime(micros) if matches!(from, SqlType::Timestamp { .. }) => {
            (compare::double(&Datum::DateTime(context.zone.to_local(*micros))), None)
        }
        other => (compare::double(other), None),
    }
}

/// Of a number for a string of limited width: it is rounded to the digits that there is room for.
fn double_within(value: &Datum<'_>, to: &SqlType) -> Option<(String, Option<StoreError>)> {
    let v = match *value {
        Datum::Double(v) => v,
        Datum::Float(v) => v.into(),
        _ => return None,
    };
    let (SqlType::Char { len: width, .. }
    | SqlType::VarChar { len: width, .. }
    | SqlType::Binary { len: width }
    | SqlType::VarBinary { len: width }) = *to
    else {
        return None;
    };
    let mut text = Vec::new();
    let fits = write_f64_within(v, width as usize, &mut text);
    let text = String::from_utf8(text).expect("numbers are written in ASCII");
    Some((text, (!fits).then_some(StoreError::TooLong)))
}

fn to_string<'v>(value: Datum<'v>, from: &SqlType, to: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    if let Some((text, problem)) = double_within(&value, to) {
        return (Datum::Str(text.into()), problem);
    }
    let charset = to.charset().unwrap_or(Charset::Utf8mb4);
    let mut wrong = None;
    let text: Cow<'v, str> = match value {
        Datum::Str(text) => text,
        // Bytes end where they are no text.
        Datum::Bytes(bytes) => match text_of_bytes(bytes, charset) {
            Ok(text) => text,
            Err((bytes, at)) => {
                wrong = Some(StoreError::incorrect_string(&bytes[at..]));
                Cow::Owned(charset.decode(&bytes[..at]).unwrap_or_default())
            }
        },
        other => Cow::Owned(text_of(&other, from, context).into_owned()),
    };
    let missing = charset.first_missing(&text).map(|at| StoreError::incorrect_string(&text.as_bytes()[at..]));
    let text = charset.fitted(text);
    let (end, counts_spaces) = match to {
        SqlType::Char { len, .. } => (char_limit(&text, *len as usize), false),
        SqlType::VarChar { len, .. } => (char_limit(&text, *len as usize), true),
        _ => {
            let max = to.max_bytes().map_or(usize::MAX, |max| max as usize);
            (encoded_limit(&text, charset, max), true)
        }
    };
    let cut = end.and_then(|end| match text[end..].trim_end_matches(' ').is_empty() {
        true => counts_spaces.then_some(StoreError::Rounded),
        false => Some(StoreError::TooLong),
    });
    let text = cut_str(text, end);
    // CHAR gives back no trailing spaces, so it keeps none.
    let text = match to {
        SqlType::Char { .. } if text.ends_with(' ') => {
            let end = text.trim_end_matches(' ').len();
            cut_str(text, Some(end))
        }
        _ => text,
    };
    (Datum::Str(text), wrong.or(missing).or(cut))
}

/// Bytes as a text of a character set; the bytes, and where they are none.
fn text_of_bytes(bytes: Cow<'_, [u8]>, charset: Charset) -> Result<Cow<'_, str>, (Cow<'_, [u8]>, usize)> {
    let wrong = match charset {
        Charset::Ascii => bytes.iter().position(|byte| !byte.is_ascii()),
        _ => None,
    };
    if let Some(at) = wrong {
        return Err((bytes, at));
    }
    if !charset.is_utf8() {
        return charset.decode(&bytes).map(Cow::Owned).map_err(|at| (bytes, at));
    }
    let text = utf8(bytes).map_err(|bytes| {
        let at = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
        (bytes, at)
    })?;
    match charset.first_missing(&text) {
        Some(at) => Err((Cow::Owned(text.into_owned().into_bytes()), at)),
        None => Ok(text),
    }
}

/// Where a text has to be cut to take no more than `max` bytes in a character set.
fn encoded_limit(text: &str, charset: Charset, max: usize) -> Option<usize> {
    // Most texts are far below it.
    if text.len() <= max / charset.max_len() as usize {
        return None;
    }
    if charset.is_utf8() {
        return (text.len() > max).then(|| byte_limit(text, max));
    }
    let mut taken = 0;
    let fits = |(at, c): (usize, char)| {
        taken += charset.encoded_len(c.encode_utf8(&mut [0; 4]));
        (taken > max).then_some(at)
    };
    text.char_indices().find_map(fits)
}

fn utf8(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, Cow<'_, [u8]>> {
    match bytes {
        Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(_) => Err(Cow::Borrowed(bytes)),
        },
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(error) => Err(Cow::Owned(error.into_bytes())),
        },
    }
}

/// `Incorrect string value: '\xFF...'`: at most six bytes from the first that is no UTF-8.
fn cut_str(text: Cow<'_, str>, end: Option<usize>) -> Cow<'_, str> {
    match (text, end) {
        (text, None) => text,
        (Cow::Borrowed(text), Some(end)) => Cow::Borrowed(&text[..end]),
        (Cow::Owned(mut text), Some(end)) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

fn to_bytes<'v>(value: Datum<'v>, from: &SqlType, to: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    let (value, cut_off) = match double_within(&value, to) {
        Some((text, problem)) => (Datum::Str(text.into()), problem),
        None => (value, None),
    };
    let bytes: Cow<'v, [u8]> = match value {
        Datum::Bytes(bytes) => bytes,
        Datum::Str(text) if let Some(charset) = from.charset().filter(|charset| !charset.is_utf8()) => {
            Cow::Owned(charset.encode(&text))
        }
        Datum::Str(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        Datum::Str(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        other => Cow::Owned(text_of(&other, from, context).into_owned().into_bytes()),
    };
    let max = to.max_bytes().map_or(usize::MAX, |max| max as usize);
    let problem = (bytes.len() > max).then_some(StoreError::TooLong);
    let bytes = match (bytes, to) {
        (bytes, _) if problem.is_some() => Cow::Owned(bytes[..max].to_vec()),
        (bytes, SqlType::Binary { .. }) if bytes.len() < max => {
            let mut padded = bytes.into_owned();
            padded.resize(max, 0);
            Cow::Owned(padded)
        }
        (bytes, _) => bytes,
    };
    (Datum::Bytes(bytes), problem.or(cut_off))
}

/// What to say of a value that is no temporal, or not all of which is.
fn temporal_problem(
    read: Result<Read, NotADate>,
    kind: &'static str,
    value: &Datum<'_>,
    from: &SqlType,
    context: &ConvertContext,
) -> Option<StoreError> {
    let reason = match read {
        Err(reason) => reason,
        Ok(read) if read.clipped => NotADate::OutOfRange,
        Ok(read) if read.truncated => NotADate::Malformed,
        Ok(_) => return None,
    };
    Some(match (context.strict, reason) {
        (true, NotADate::RoundedOver) => StoreError::RoundedOver,
        (true, NotADate::OutOfRange | NotADate::Malformed) => {
            StoreError::IncorrectTemporal { kind, value: text_of(value, from, context).into_owned() }
        }
        (false, NotADate::OutOfRange | NotADate::RoundedOver) => StoreError::OutOfRange,
        (false, NotADate::Malformed) => StoreError::Truncated,
    })
}

/// The note that a part of a value is lost.
#[cold]
fn part_lost(kind: &'static str, value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> StoreError {
    match context.strict {
        true => StoreError::PartLost { kind, value: text_of(value, from, context).into_owned() },
        false => StoreError::Rounded,
    }
}

/// What is no date is the zero date.
fn to_date<'v>(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    if let Datum::Date(days) = value
        && context.zero_dates.allow(i64::from(*days) * DAY)
    {
        return (Datum::Date(*days), None);
    }
    // As MySQL has it: to the next second, which may be of the next day.
    let read = read_datetime(value, from, 0, context);
    let mut problem = temporal_problem(read, "date", value, from, context);
    if problem.is_none() && read.is_ok_and(|r| r.had_time && time_of(r.micros) != 0) {
        problem = Some(part_lost("date", value, from, context));
    }
    (Datum::Date(read.map_or(ZERO_DATE, |r| date_of(r.micros))), problem)
}

fn to_datetime<'v>(value: &Datum<'_>, from: &SqlType, fsp: u8, context: &ConvertContext) -> Outcome<'v> {
    let read = read_datetime(value, from, fsp, context);
    let problem = temporal_problem(read, "datetime", value, from, context);
    (Datum::DateTime(read.map_or(ZERO_DATETIME, |r| r.micros)), problem)
}

fn to_timestamp<'v>(value: &Datum<'_>, from: &SqlType, fsp: u8, context: &ConvertContext) -> Outcome<'v> {
    let mut in_gap = false;
    let read = read_datetime(value, from, fsp, context).and_then(|read| {
        let moment = read.utc.map_or_else(|| context.zone.moment_of(read.micros), Ok);
        let utc = moment.unwrap_or_else(|gap_end| {
            in_gap = true;
            gap_end
        });
        match utc {
            MIN_TIMESTAMP..=MAX_TIMESTAMP | ZERO_DATETIME => Ok(Read { micros: utc, ..read }),
            _ => Err(NotADate::OutOfRange),
        }
    });
    let mut problem = temporal_problem(read, "datetime", value, from, context);
    if problem.is_none() && in_gap {
        problem = Some(StoreError::LeftOut { value: text_of(value, from, context).into_owned() });
    }
    (Datum::DateTime(read.map_or(ZERO_DATETIME, |r| r.micros)), problem)
}

fn to_time<'v>(value: &Datum<'_>, from: &SqlType, fsp: u8, context: &ConvertContext) -> Outcome<'v> {
    let empty = matches!(value, Datum::Str(text) if text.is_empty());
    let read = if empty { Some(Read::new(0)) } else { read_time(value, from, fsp, context) };
    let read = read.ok_or_else(|| {
        let text = text_of(value, from, context);
        let has_numbers = text.trim_start().trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        if has_numbers { NotADate::OutOfRange } else { NotADate::Malformed }
    });
    let mut problem = temporal_problem(read, "time", value, from, context);
    if problem.is_none() && read.is_ok_and(|r| r.had_date) {
        problem = Some(part_lost("time", value, from, context));
    }
    (Datum::Time(read.map_or(0, |r| r.micros)), problem)
}
