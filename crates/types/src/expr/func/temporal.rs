//! Functions of dates and times. Dates come as DATETIMEs in the session's time zone.

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::expr::coerce::{
    DateOfNumber, cast, convert, kind_of_text, number_of_moment, signed, to_text_or_bytes,
};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::{bytes, chars, from_buffer};
use crate::expr::func::{int, micros};
use crate::expr::program::{CallInfo, reborrow};
use crate::sql_type::SqlType;
use crate::temporal::{
    self, Civil, DAY, HOUR, MAX_TIME, MINUTE, Mismatch, SECOND, StrToDate, TimeZone, WeekMode, ZERO_DATETIME,
    ZeroDates, date_of, has_zero_date, is_zero_date,
};

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// The last second that UNIX_TIMESTAMP and FROM_UNIXTIME know: 3001-01-18 23:59:59 UTC.
const MAX_UNIX_SECONDS: i64 = 32_536_771_199;

fn date_arg(args: &[Datum<'_>]) -> i32 {
    date_of(micros(&args[0]))
}

/// The same, if it is a day of the calendar.
fn day_arg(args: &[Datum<'_>]) -> Option<i32> {
    let days = date_arg(args);
    (!is_zero_date(days)).then_some(days)
}

/// The date of an argument of which a part is asked for. Numbers come as they are: their month and day may be zero.
fn civil_arg(args: &[Datum<'_>], info: &CallInfo, ctx: &EvalContext) -> EvalResult<Option<Civil>> {
    let number = &args[0];
    let datetime = match number {
        Datum::Date(_) | Datum::DateTime(_) => return Ok(Some(Civil::from_days(date_arg(args)))),
        Datum::Str(_) | Datum::Bytes(_) => match temporal::parse_partial_date(bytes(number)) {
            Some(date) => return Ok(Some(date)),
            None => convert(reborrow(number), &info.arg_types[0], &SqlType::Date, ctx)?,
        },
        _ => match DateOfNumber::of_any_day(number) {
            Some(date) => return Ok(Some(date)),
            None => convert(number.clone().into_owned(), &info.arg_types[0], &SqlType::Date, ctx)?,
        },
    };
    Ok(match datetime {
        Datum::Null => None,
        Datum::Date(days) => Some(Civil::from_days(days)),
        datetime => Some(Civil::from_days(date_of(micros(&datetime)))),
    })
}

/// Functions of dates, the zero date too.
macro_rules! of_date {
    ($($name:ident = $body:expr;)*) => {$(
        pub(crate) fn $name<'a>(
            args: Args<'_, 'a>,
            info: &CallInfo,
            ctx: &EvalContext,
        ) -> EvalResult<Datum<'a>> {
            let function: fn(Civil) -> i64 = $body;
            Ok(civil_arg(args, info, ctx)?.map_or(Datum::Null, |date| Datum::Int(function(date))))
        }
    )*};
}

/// Functions of days: the zero date has no value.
macro_rules! of_day {
    ($($name:ident = $body:expr;)*) => {$(
        pub(crate) fn $name<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
            let function: fn(i32) -> i64 = $body;
            Ok(day_arg(args).map_or(Datum::Null, |days| Datum::Int(function(days))))
        }
    )*};
}

of_date! {
    month = |date| date.month.into();
    quarter = |date| i64::from(date.month + 2) / 3;
    day_of_month = |date| date.day.into();
}

of_day! {
    day_of_week = |days| temporal::day_of_week(days).into();
    day_of_year = |days| temporal::day_of_year(days).into();
    week_of_year = |days| temporal::week_of_year(days).into();
    week_day = |days| temporal::weekday(days).into();
    to_days = temporal::to_days;
}

/// YEAR: of type YEAR, and thus unsigned.
pub(crate) fn year<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let date = civil_arg(args, info, ctx)?;
    Ok(date.map_or(Datum::Null, |date| Datum::UInt(u64::try_from(date.year).unwrap_or(0))))
}

pub(crate) fn week<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let mode = args.get(1).map_or(ctx.default_week_format.into(), int);
    let week = |days| Datum::Int(temporal::week(days, WeekMode::new((mode as i32).max(0).into())).into());
    Ok(day_arg(args).map_or(Datum::Null, week))
}

pub(crate) fn year_week<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let mode = args.get(1).map_or(0, int);
    let week = |days| match mode as i32 {
        // A mode below 0 leaves the year of the calendar beside the week of mode 0.
        ..0 => {
            let year = i64::from(Civil::from_days(days).year);
            year * 100 + i64::from(temporal::week(days, WeekMode::new(0)))
        }
        mode => temporal::year_week(days, WeekMode::new(mode.into())).into(),
    };
    Ok(day_arg(args).map_or(Datum::Null, |days| Datum::Int(week(days))))
}

pub(crate) fn day_name<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(day_arg(args).map_or(Datum::Null, |days| Datum::str(ctx.locale.day_name(days))))
}

pub(crate) fn month_name<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let date = civil_arg(args, info, ctx)?.filter(|date| date.month > 0);
    Ok(date.map_or(Datum::Null, |date| Datum::str(ctx.locale.month_name(date.month))))
}

macro_rules! of_time {
    ($($name:ident = $body:expr;)*) => {$(
        pub(crate) fn $name<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
            let function: fn(i64) -> i64 = $body;
            Ok(Datum::Int(function(micros(&args[0]))))
        }
    )*};
}

of_time! {
    hour = |time| time.abs() / HOUR;
    minute = |time| time.abs() / MINUTE % 60;
    second = |time| time.abs() / SECOND % 60;
    microsecond = |time| time.abs() % SECOND;
    time_to_sec = |time| time / SECOND;
}

pub(crate) fn to_seconds<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let seconds = |_| Datum::Int(temporal::to_seconds(micros(&args[0])));
    Ok(day_arg(args).map_or(Datum::Null, seconds))
}

pub(crate) fn from_days<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    match temporal::from_days(int(&args[0])) {
        Some(days) => Ok(Datum::Date(days)),
        None => out_of_range("DATE", info, ctx),
    }
}

/// NULL and warning 6527 for what no date or time is.
#[cold]
fn out_of_range<'a>(kind: &'static str, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    ctx.warn(EvalError::TemporalRange { kind, call: info.text.to_string() })?;
    Ok(Datum::Null)
}

/// LAST_DAY; the day itself may be zero, or one that the month does not have.
pub(crate) fn last_day<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(Civil { year, month, day }) = civil_arg(args, info, ctx)? else { return Ok(Datum::Null) };
    match Civil::checked(year, month, 1) {
        Some(first) => Ok(Datum::Date(temporal::last_day(date_of(first.to_micros())))),
        None => {
            let value = format!("{year:04}-{month:02}-{day:02}");
            ctx.note(&EvalError::TruncatedValue { kind: "date", value });
            Ok(Datum::Null)
        }
    }
}

/// MAKEDATE(year, day of year); years of one or two digits are of our time.
pub(crate) fn make_date<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let (year, day) = (int(&args[0]), int(&args[1]));
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        year => year,
    };
    Ok(temporal::date_from_day_of_year(year, day).map_or(Datum::Null, Datum::Date))
}

/// Microseconds from a number of seconds; saturates.
fn seconds(value: &Datum<'_>) -> i64 {
    let micros = match value {
        Datum::Int(v) => return v.saturating_mul(SECOND),
        Datum::UInt(v) => return i64::try_from(*v).unwrap_or(i64::MAX).saturating_mul(SECOND),
        Datum::Decimal(v) => v.rescale(6).ok().and_then(|v| v.as_i128()),
        other => Decimal::from_f64(super::double(other)).ok().and_then(|v| v.rescale(6).ok()?.as_i128()),
    };
    let is_negative = match value {
        Datum::Decimal(v) => v.is_negative(),
        other => super::double(other) < 0.0,
    };
    let farthest = if is_negative { i64::MIN } else { i64::MAX };
    micros.map_or(farthest, |v| v.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

fn result_fsp(info: &CallInfo) -> u8 {
    match info.ty {
        SqlType::DateTime { fsp } | SqlType::Time { fsp } => fsp,
        _ => 6,
    }
}

/// A TIME, cut to its range with warning 1292.
pub(crate) fn clipped_time<'a>(time: i64, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    if time.abs() > MAX_TIME {
        let mut value = Vec::new();
        temporal::write_time(time, 0, &mut value);
        let value = String::from_utf8_lossy(&value).into_owned();
        ctx.warn(EvalError::TruncatedValue { kind: "time", value })?;
    }
    Ok(Datum::Time(time.clamp(-MAX_TIME, MAX_TIME)))
}

pub(crate) fn make_time<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let (hour, minute, second) = (int(&args[0]), int(&args[1]), seconds(&args[2]));
    // A fraction that is rounded may make it a full minute.
    let below_sixty = match &args[2] {
        Datum::Decimal(second) => second.floor() < Decimal::new(60, 0),
        Datum::Double(second) => *second < 60.0,
        _ => second < 60 * SECOND,
    };
    if !(0..60).contains(&minute) || second < 0 || !below_sixty {
        return Ok(Datum::Null);
    }
    let magnitude = hour.saturating_abs().saturating_mul(HOUR).saturating_add(minute * MINUTE + second);
    let time = ctx.sql_mode.excess_digits().time(magnitude.min(i64::MAX / 2), result_fsp(info));
    clipped_time(if hour < 0 { -time } else { time }, ctx)
}

pub(crate) fn sec_to_time<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let time = seconds(&args[0]).clamp(i64::MIN / 2, i64::MAX / 2);
    if let Datum::Int(number) = &args[0]
        && time.abs() > MAX_TIME
    {
        ctx.warn(EvalError::TruncatedValue { kind: "time", value: number.to_string() })?;
        return Ok(Datum::Time(time.clamp(-MAX_TIME, MAX_TIME)));
    }
    clipped_time(ctx.sql_mode.excess_digits().time(time, result_fsp(info)), ctx)
}

pub(crate) fn date_diff<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let (Some(to), Some(from)) = (day_arg(args), day_arg(&args[1..])) else { return Ok(Datum::Null) };
    Ok(Datum::Int(i64::from(to) - i64::from(from)))
}

/// Both must be times, or both dates with times.
pub(crate) fn time_diff<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let read = |at: usize| match counted_moment(&args[at], ctx) {
        Some(moment) => Ok(moment),
        None => time_or_moment(&args[at], &info.arg_types[at], ctx),
    };
    match (read(0)?, read(1)?) {
        (Datum::Time(a), Datum::Time(b)) | (Datum::DateTime(a), Datum::DateTime(b)) => {
            clipped_time(a - b, ctx)
        }
        _ => Ok(Datum::Null),
    }
}

/// What a text or a number says, if that is a date whose day its month does not have: TIMEDIFF counts with it.
fn counted_moment(value: &Datum<'_>, ctx: &EvalContext) -> Option<Datum<'static>> {
    let counted = |text: &[u8]| {
        let is_known = temporal::parse_datetime(text, ctx.time_zone, ZeroDates::ALLOWED).is_some();
        if is_known { None } else { temporal::count_datetime(text, ctx.time_zone).map(Datum::DateTime) }
    };
    match value {
        Datum::Int(number @ (10_000_000..=99_999_999 | 10_000_000_000_000..=99_999_999_999_999)) => {
            counted(number.to_string().as_bytes())
        }
        Datum::Str(_) | Datum::Bytes(_) if is_moment(bytes(value), ctx.time_zone) => counted(bytes(value)),
        _ => None,
    }
}

/// A TIME or a DATETIME, whichever a text or a number says.
fn time_or_moment(value: &Datum<'_>, ty: &SqlType, ctx: &EvalContext) -> EvalResult<Datum<'static>> {
    /// `838:59:59`: a larger number is a date.
    const LAST_TIME: f64 = 8_385_959.0;
    let is_moment = match value {
        Datum::Null | Datum::Time(_) | Datum::DateTime(_) => return Ok(value.clone().into_owned()),
        Datum::Date(_) => return Ok(Datum::DateTime(micros(value))),
        Datum::Int(v) => *v as f64 > LAST_TIME,
        Datum::UInt(v) => *v as f64 > LAST_TIME,
        Datum::Float(v) => f64::from(*v) > LAST_TIME,
        Datum::Double(v) => *v > LAST_TIME,
        Datum::Decimal(v) => v.to_f64().trunc() > LAST_TIME,
        text => {
            let is_moment = is_moment(bytes(text), ctx.time_zone);
            if is_moment
                && let Some(zero) = temporal::parse_datetime(bytes(text), ctx.time_zone, ZeroDates::ALLOWED)
                && has_zero_date(zero.micros)
            {
                return Ok(Datum::DateTime(zero.micros));
            }
            is_moment
        }
    };
    let to = if is_moment { SqlType::DateTime { fsp: 6 } } else { SqlType::Time { fsp: 6 } };
    cast(value.clone().into_owned(), ty, &to, ctx)
}

/// Whether TIMEDIFF and TIME_FORMAT read a text as a date, also if it is none that there is.
fn is_moment(text: &[u8], zone: TimeZone) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let is_date = || temporal::parse_datetime(text, zone, ZeroDates::ALLOWED).is_some();
    match text.get(digits) {
        Some(b'-' | b'/' | b'^' | b'@') => digits > 0,
        Some(b':') => digits == 4 && is_date(),
        Some(b'.') if digits <= 4 => text.iter().filter(|b| **b == b'.').count() > 1 && is_date(),
        Some(b' ') if digits <= 2 => false,
        _ => digits >= 12 || (digits == 6 || digits == 8) && is_date(),
    }
}

pub(crate) fn add_time<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    shift_time(args, 1, info, ctx)
}

pub(crate) fn sub_time<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    shift_time(args, -1, info, ctx)
}

/// Whether a text is written as a date with dashes: it is no time then, whether there is such a date or not.
fn is_dashed(text: &Datum<'_>) -> bool {
    let text = bytes(text).trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && text.get(digits) == Some(&b'-') && text.get(digits + 1).is_some_and(u8::is_ascii_digit)
}

fn shift_time<'a>(
    args: Args<'_, 'a>,
    sign: i64,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let shift = sign * micros(&args[1]);
    let datetime = |value: i64| {
        let sum = Some(value + shift).filter(|_| !has_zero_date(value));
        sum.filter(|sum| (temporal::MIN_DATETIME..=temporal::MAX_DATETIME).contains(sum))
    };
    match &args[0] {
        Datum::Time(time) if (time + shift).abs() > MAX_TIME => out_of_range("TIME", info, ctx),
        Datum::Time(time) => Ok(Datum::Time(time + shift)),
        Datum::Date(_) | Datum::DateTime(_) => match (micros(&args[0]), datetime(micros(&args[0]))) {
            (_, Some(sum)) => Ok(Datum::DateTime(sum)),
            (value, None) if has_zero_date(value) => Ok(Datum::Null),
            (_, None) => out_of_range("DATETIME", info, ctx),
        },
        text => {
            let parsed = temporal::parse_datetime(bytes(text), ctx.time_zone, ZeroDates::ALLOWED)
                .filter(|_| has_date(bytes(text)));
            // What has a date is no time, whatever else is wrong with it.
            if parsed.is_some_and(|parsed| has_zero_date(parsed.micros))
                || parsed.is_none() && is_dashed(text)
            {
                let (kind, value) = (kind_of_text(bytes(text)), chars(text).to_owned());
                ctx.warn(EvalError::TruncatedValue { kind, value })?;
                return Ok(Datum::Null);
            }
            let mut result = Vec::new();
            let is_number = matches!(info.ty, SqlType::Double(_));
            let fraction = |micros: i64| if micros % SECOND == 0 { 0 } else { 6 };
            if let Some(parsed) = parsed {
                let Some(sum) = datetime(parsed.micros) else { return out_of_range("DATETIME", info, ctx) };
                if is_number {
                    return Ok(number_of_moment(&Datum::DateTime(sum), ctx));
                }
                temporal::write_datetime(sum, fraction(sum), &mut result);
            } else {
                let Some(parsed) = temporal::parse_time(bytes(text), ctx.time_zone) else {
                    let value = chars(text).to_owned();
                    ctx.warn(EvalError::IncorrectValue { kind: "datetime", value })?;
                    return Ok(Datum::Null);
                };
                let sum = parsed.micros + shift;
                if sum.abs() > MAX_TIME {
                    let call = info.text.to_string();
                    ctx.warn(EvalError::TemporalRange { kind: "TIME", call })?;
                }
                let sum = sum.clamp(-MAX_TIME, MAX_TIME);
                if is_number {
                    return Ok(number_of_moment(&Datum::Time(sum), ctx));
                }
                temporal::write_time(sum, fraction(sum), &mut result);
            }
            Ok(from_buffer(result))
        }
    }
}

/// Characters of the shortest text that may be a date with colons, if its year has two digits; and if that has four.
const SHORTEST_WITH_COLONS: (usize, usize) = (12, 10);

/// Whether a text may be a date: it starts as one does, or it is too long for a time.
pub(crate) fn has_date(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    match text.get(digits) {
        Some(b'-' | b'/' | b'^' | b'@') => true,
        Some(b':' | b'.') if digits == 4 => text.len() >= SHORTEST_WITH_COLONS.1,
        Some(b':') => text.len() >= SHORTEST_WITH_COLONS.0,
        _ => digits >= 8,
    }
}

pub(crate) fn date_format<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(formatted(micros(&args[0]), chars(&args[1]), ctx))
}

/// Bytes that a result may have: one that has more is NULL, whatever else were in it.
fn most(ctx: &EvalContext) -> usize {
    usize::try_from(ctx.max_allowed_packet).unwrap_or(usize::MAX)
}

/// An empty pattern gives NULL.
fn formatted<'a>(datetime: i64, pattern: &str, ctx: &EvalContext) -> Datum<'a> {
    if pattern.is_empty() {
        return Datum::Null;
    }
    let mut result = Vec::new();
    if !temporal::date_format(datetime, pattern, ctx.locale, most(ctx), &mut result) {
        return Datum::Null;
    }
    from_buffer(result)
}

pub(crate) fn time_format<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let (time, date) = match time_or_moment(&args[0], &info.arg_types[0], ctx)? {
        Datum::Time(time) => (time, None),
        Datum::DateTime(moment) => (temporal::time_of(moment), Some(date_of(moment))),
        _ => return Ok(Datum::Null),
    };
    let mut result = Vec::new();
    let valid = temporal::time_format(time, date, chars(&args[1]), ctx.locale, most(ctx), &mut result);
    Ok(if valid && !chars(&args[1]).is_empty() { from_buffer(result) } else { Datum::Null })
}

/// GET_FORMAT: what DATE_FORMAT and STR_TO_DATE take; NULL for a standard that there is not.
pub(crate) fn get_format<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let [of_date, of_time, of_both] = match chars(&args[1]).to_ascii_uppercase().as_str() {
        "USA" => ["%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"],
        "JIS" | "ISO" => ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"],
        "EUR" => ["%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"],
        "INTERNAL" => ["%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"],
        _ => return Ok(Datum::Null),
    };
    Ok(Datum::str(match chars(&args[0]) {
        "DATE" => of_date,
        "TIME" => of_time,
        _ => of_both,
    }))
}

/// STR_TO_DATE; what the text gives becomes what the call's type is.
pub(crate) fn str_to_date<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let text = chars(&args[0]);
    let (value, rest_left) = match temporal::str_to_date(text, chars(&args[1]), ctx.sql_mode.zero_dates()) {
        Ok(read) => read,
        Err(Mismatch { before_time }) => {
            let kind = if before_time.is_some() { "time" } else { "datetime" };
            let value = text[text.ceil_char_boundary(before_time.unwrap_or(0))..].to_owned();
            ctx.warn(EvalError::IncorrectForFunction { kind, value, function: "str_to_date" })?;
            return Ok(Datum::Null);
        }
    };
    if rest_left {
        let kind = match value {
            StrToDate::Date(_) => "date",
            StrToDate::DateTime(_) => "datetime",
            StrToDate::Time(_) => "time",
        };
        ctx.note(&EvalError::TruncatedValue { kind, value: text.to_owned() });
    }
    Ok(match (value, info.ty) {
        (StrToDate::Date(days), SqlType::Date) => Datum::Date(days),
        (StrToDate::Date(days), _) => Datum::DateTime(i64::from(days) * DAY),
        (StrToDate::DateTime(at), _) => Datum::DateTime(at),
        (StrToDate::Time(time), SqlType::Time { .. }) => Datum::Time(time),
        // Of a format that is not known before: a time without a date.
        (StrToDate::Time(time), _) => {
            let at = ZERO_DATETIME + time;
            if !ctx.sql_mode.zero_dates().allow(at) {
                let value = text.to_owned();
                let function = "str_to_date";
                ctx.warn(EvalError::IncorrectForFunction { kind: "datetime", value, function })?;
                return Ok(Datum::Null);
            }
            Datum::DateTime(at)
        }
    })
}

/// Seconds since 1970-01-01 UTC, with a fraction where the type has one; 0 out of range.
pub(crate) fn unix_timestamp<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let is_moment = matches!(info.arg_types.first(), Some(SqlType::Timestamp { .. }));
    let moment = |at| if is_moment { micros(at) } else { ctx.time_zone.to_utc(micros(at)) };
    let utc = args.first().map_or(ctx.statement_time_micros, moment);
    let valid = (0..=(MAX_UNIX_SECONDS + 1) * SECOND - 1).contains(&utc);
    let utc = if valid { utc } else { 0 };
    Ok(match info.ty {
        SqlType::Decimal { scale, .. } => {
            let unit = 10i64.pow(6 - u32::from(scale));
            Datum::Decimal(Decimal::new((utc / unit).into(), scale))
        }
        _ => Datum::Int(utc / SECOND),
    })
}

pub(crate) fn from_unix_time<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let utc = seconds(&args[0]);
    if !(0..=(MAX_UNIX_SECONDS + 1).saturating_mul(SECOND) - 1).contains(&utc) {
        return Ok(Datum::Null);
    }
    let local = ctx.time_zone.to_local(utc);
    Ok(match args.get(1) {
        None => Datum::DateTime(ctx.sql_mode.excess_digits().datetime(local, result_fsp(info))),
        Some(pattern) => formatted(local, chars(pattern), ctx),
    })
}

pub(crate) fn period_add<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    valid_period(&args[0], "period_add")?;
    Ok(Datum::Int(temporal::period_add(int(&args[0]), int(&args[1]))))
}

pub(crate) fn period_diff<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    valid_period(&args[0], "period_diff")?;
    valid_period(&args[1], "period_diff")?;
    Ok(Datum::Int(temporal::period_diff(int(&args[0]), int(&args[1]))))
}

/// Error 1210 for a month that there is not.
fn valid_period(period: &Datum<'_>, function: &'static str) -> EvalResult<()> {
    let period = int(period);
    let valid = period > 0 && (1..=12).contains(&(period % 100));
    if valid { Ok(()) } else { Err(EvalError::WrongArguments(function)) }
}

/// NULL for time zones that are not known.
pub(crate) fn convert_tz<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let zones = (TimeZone::parse(chars(&args[1])), TimeZone::parse(chars(&args[2])));
    let (Ok(from), Ok(to)) = zones else { return Ok(Datum::Null) };
    let (local, utc) = (micros(&args[0]), from.to_utc(micros(&args[0])));
    if has_zero_date(local) {
        return Ok(Datum::Null);
    }
    // The first second of 1970 stands for none.
    let convertible = (SECOND..=(MAX_UNIX_SECONDS + 1) * SECOND - 1).contains(&utc);
    Ok(Datum::DateTime(if convertible { to.to_local(utc) } else { local }))
}

/// EXTRACT. A text is there for the units from days to what is below: it is a time, or a date with one. Numbers come as they
/// are.
pub(crate) fn extract<'a>(
    value: &Datum<'_>,
    unit: temporal::Unit,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    Ok(match value {
        Datum::Time(time) => Datum::Int(unit.extract_time(*time)),
        Datum::Str(_) | Datum::Bytes(_) => extract_from_text(bytes(value), unit, false, ctx)?,
        Datum::Date(_) | Datum::DateTime(_) => Datum::Int(unit.extract(micros(value))),
        number if unit.is_whole_days() => extract_from_date(number, unit, &info.arg_types[0], ctx)?,
        number => extract_from_clock_of_number(number, unit, &info.arg_types[0], ctx)?,
    })
}

fn extract_from_text<'a>(
    text: &[u8],
    unit: temporal::Unit,
    is_number: bool,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let zone = ctx.time_zone;
    let shown = || String::from_utf8_lossy(text).into_owned();
    let date = match looks_like_time(text) {
        true => None,
        false => temporal::parse_datetime(text, zone, ctx.sql_mode.zero_dates()),
    };
    let truncated = |kind| ctx.warn(EvalError::TruncatedValue { kind, value: shown() });
    if let Some(date) = date {
        if date.truncated {
            truncated("time")?;
        }
        return Ok(Datum::Int(unit.extract(date.micros)));
    }
    if !looks_like_time(text)
        && let Some((day, clock)) = temporal::parse_partial_datetime(text)
    {
        return Ok(Datum::Int(unit.extract_clock(clock, day.day.into())));
    }
    if has_separated_date(text) {
        ctx.warn(EvalError::IncorrectValue { kind: "datetime", value: shown() })?;
        return Ok(Datum::Null);
    }
    let time = temporal::parse_time(text, zone);
    if time.is_none_or(|time| time.truncated || time.clipped) {
        truncated("time")?;
    }
    // Texts out of range become the greatest time, numbers NULL.
    let time = time.filter(|time| !(is_number && (time.clipped || time.truncated)));
    Ok(time.map_or(Datum::Null, |time| Datum::Int(unit.extract_time(time.micros))))
}

/// A part with a time of day. A number whose digits are those of a date is that date, which for seven digits is not the one that the
/// text says: 1000101 is the first day of the year 100. Others are times.
fn extract_from_clock_of_number<'a>(
    number: &Datum<'_>,
    unit: temporal::Unit,
    from: &SqlType,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let number = signed(number, from);
    let text = to_text_or_bytes(reborrow(&number), from);
    let digits = bytes(&text);
    let is_date = temporal::count_datetime(digits, ctx.time_zone).is_some();
    if is_date || temporal::parse_partial_date(digits).is_some() {
        let read = DateOfNumber::read(&number);
        let lost_fraction = read.as_ref().map_or(digits.contains(&b'.'), |read| read.lost_fraction);
        let any_day = || DateOfNumber::of_any_day(&number).map(|date| unit.extract_clock(0, date.day.into()));
        if let Some(part) = read.map(|read| unit.extract(read.micros)).or_else(any_day) {
            if lost_fraction {
                let value = String::from_utf8_lossy(digits).into_owned();
                ctx.warn(EvalError::TruncatedValue { kind: "date", value })?;
            }
            return Ok(Datum::Int(part));
        }
    }
    extract_from_text(digits, unit, true, ctx)
}

/// A part of the date that a number says, of which the month or the day may be zero.
fn extract_from_date<'a>(
    number: &Datum<'_>,
    unit: temporal::Unit,
    from: &SqlType,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let number = signed(number, from);
    if let Some(date) = DateOfNumber::read(&number) {
        if date.lost_fraction {
            let value = chars(&to_text_or_bytes(reborrow(&number), from)).to_owned();
            ctx.note(&EvalError::TruncatedValue { kind: "date", value });
        }
        return Ok(Datum::Int(unit.extract(date.micros)));
    }
    let partial = DateOfNumber::of_partial_day(&number);
    if let Some(Civil { year, month, day }) = partial {
        let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
        match unit {
            temporal::Unit::Day => return Ok(Datum::Int(day)),
            temporal::Unit::Month => return Ok(Datum::Int(month)),
            temporal::Unit::Quarter => return Ok(Datum::Int((month + 2) / 3)),
            temporal::Unit::Year => return Ok(Datum::Int(year)),
            temporal::Unit::YearMonth => return Ok(Datum::Int(year * 100 + month)),
            _ => {}
        }
    }
    let value = chars(&to_text_or_bytes(number, from)).to_owned();
    ctx.warn(EvalError::IncorrectValue { kind: "datetime", value })?;
    Ok(Datum::Null)
}

/// Year, month and day with what parts a date between them: it is no time, also if there is no such date.
fn has_separated_date(text: &[u8]) -> bool {
    let is_separator = |byte: &u8| matches!(byte, b'-' | b'/' | b'^' | b'@');
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0
        && text.get(digits).is_some_and(is_separator)
        && text[digits + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || is_separator(byte))
            .any(is_separator)
}

/// Colons, and nothing that parts a date.
fn looks_like_time(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let first = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b' ');
    first.is_some_and(|at| text[at] == b':')
}
