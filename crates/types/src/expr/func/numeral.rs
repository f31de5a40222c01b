//! Numbers as texts in other forms: bases, FORMAT, checksums.

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::locale::NumberFormat;
use crate::expr::func::math::cut_double;
use crate::expr::func::text::{bytes, chars, from_buffer, make, string};
use crate::expr::func::{double, int};
use crate::expr::program::CallInfo;
use crate::number;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// The text of a number of a column, of ZEROFILL perhaps; the second argument are the characters that it has at least.
pub(crate) fn zero_filled<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let mut text = Vec::new();
    crate::text::write_number_of_column(&args[0], &info.arg_types[0], &mut text);
    Ok(from_buffer(crate::text::with_zeros(text, int(&args[1]) as usize)))
}

pub(crate) fn hex<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(string(match &args[0] {
        Datum::Int(v) => format!("{v:X}"),
        Datum::UInt(v) => format!("{v:X}"),
        other => hex_text(bytes(other), b"0123456789ABCDEF"),
    }))
}

/// Two digits for each byte.
pub(crate) fn hex_text(bytes: &[u8], digits: &[u8; 16]) -> String {
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).map(|digit| char::from(digits[usize::from(digit)])).collect()
}

pub(crate) fn unhex<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let text = bytes(&args[0]);
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    // An odd first digit is a byte of its own.
    let (first, pairs) = text.split_at(text.len() % 2);
    let decoded: Option<Vec<u8>> = first
        .iter()
        .map(|byte| digit(*byte))
        .chain(pairs.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)))
        .collect();
    match decoded {
        Some(decoded) => Ok(make(false, decoded)),
        None => {
            // MySQL shows it as a literal.
            let value = format!("'{}'", String::from_utf8_lossy(text));
            ctx.warn(EvalError::IncorrectForFunction { kind: "string", value, function: "unhex" })?;
            Ok(Datum::Null)
        }
    }
}

/// CONV(text, from base, to base); a negative base means signed numbers.
pub(crate) fn conv<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    converted(chars(&args[0]), int(&args[1]), int(&args[2]), ctx)
}

fn converted<'a>(text: &str, from: i64, to: i64, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let base = |b: i64| u32::try_from(b.unsigned_abs()).ok().filter(|b| (2..=36).contains(b));
    let (Some(from_base), Some(to_base)) = (base(from), base(to)) else { return Ok(Datum::Null) };
    if text.is_empty() {
        return Ok(Datum::Null);
    }
    if !text.trim_start().trim_start_matches(['-', '+']).starts_with(|c: char| c.is_digit(from_base)) {
        ctx.note(&EvalError::TruncatedValue { kind: "DECIMAL", value: text.to_owned() });
    }
    let value = parse_radix(text, from_base, from < 0);
    Ok(string(radix(value, to_base, to < 0)))
}

/// The integer at the start of a text; out of range it is the nearest.
fn parse_radix(text: &str, base: u32, signed: bool) -> u64 {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = digits
        .chars()
        .map_while(|c| c.to_digit(base))
        .fold(0u128, |v, digit| v.saturating_mul(base.into()).saturating_add(digit.into()));
    match (signed, negative) {
        (true, true) => magnitude.min(1 << 63) as u64,
        (true, false) => return magnitude.min(i64::MAX as u128) as u64,
        (false, true) if magnitude > u64::MAX.into() => return u64::MAX,
        (false, _) => magnitude.min(u64::MAX.into()) as u64,
    }
    .wrapping_mul(if negative { u64::MAX } else { 1 })
}

fn radix(value: u64, base: u32, signed: bool) -> String {
    let negative = signed && (value as i64) < 0;
    let mut rest = if negative { (value as i64).unsigned_abs() } else { value };
    let mut reversed = Vec::new();
    loop {
        let digit = (rest % u64::from(base)) as u32;
        reversed.push(char::from_digit(digit, base).map_or('0', |c| c.to_ascii_uppercase()));
        rest /= u64::from(base);
        if rest == 0 {
            break;
        }
    }
    if negative {
        reversed.push('-');
    }
    reversed.into_iter().rev().collect()
}

/// BIN(n) is CONV(n, 10, 2), of the number's text.
pub(crate) fn bin<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    converted(chars(&args[0]), 10, 2, ctx)
}

pub(crate) fn oct<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    converted(chars(&args[0]), 10, 8, ctx)
}

/// `FORMAT(number, decimals, locale)`: the digits in groups.
pub(crate) fn format<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let locale = match args.get(2) {
        None => &NumberFormat::EN_US,
        Some(name) => {
            let name = if name.is_null() { "NULL" } else { chars(name) };
            NumberFormat::of_locale(name).unwrap_or_else(|| {
                ctx.note(&EvalError::UnknownLocale(name.to_owned()));
                &NumberFormat::EN_US
            })
        }
    };
    if args[0].is_null() || args[1].is_null() {
        return Ok(Datum::Null);
    }
    // Of 32 bits (`Item_func_format::val_str`).
    let decimals = (int(&args[1]) as i32).clamp(0, Decimal::MAX_SCALE.into()) as u8;
    let mut plain = Vec::new();
    match &args[0] {
        Datum::Int(v) => write_decimal(&Decimal::from(*v), decimals, &mut plain),
        Datum::UInt(v) => write_decimal(&Decimal::from(*v), decimals, &mut plain),
        Datum::Decimal(v) => write_decimal(v, decimals, &mut plain),
        other => {
            let rounded = cut_double(double(other), decimals.into(), true);
            number::write_f64_fixed(rounded, decimals, &mut plain);
        }
    }
    Ok(from_buffer(locale.grouped(&plain)))
}

fn write_decimal(value: &Decimal, decimals: u8, to: &mut Vec<u8>) {
    let rounded = value.round(decimals.into());
    rounded.rescale(decimals).unwrap_or(rounded).write(to);
}

pub(crate) fn crc32<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::UInt(crc32_from(0, bytes(&args[0])).into()))
}

/// The CRC-32 of bytes that follow those that had the checksum `crc`.
pub(crate) fn crc32_from(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |crc, byte| CRC_TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

/// CRC-32 of IEEE 802.3, as zlib has it, a byte at a time.
static CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};
