//! UUIDs as texts and as bytes. MySQL 8.4 Reference Manual, 14.23 "Miscellaneous Functions".

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::int;
use crate::expr::func::text::{bytes, string};
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// Where the groups of the text begin that a `-` stands before, in digits.
const GROUPS: [usize; 4] = [8, 12, 16, 20];

/// 32 digits; with `-` between the groups, and then perhaps in braces.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let grouped = match text.len() {
        32 => false,
        36 => true,
        38 if text.starts_with(b"{") && text.ends_with(b"}") => return parse(&text[1..37]),
        _ => return None,
    };
    let mut octets = [0; 16];
    let mut at = 0;
    for digit in 0..32 {
        if grouped && GROUPS.contains(&digit) {
            if text[at] != b'-' {
                return None;
            }
            at += 1;
        }
        let value = char::from(text[at]).to_digit(16)? as u8;
        octets[digit / 2] = octets[digit / 2] << 4 | value;
        at += 1;
    }
    Some(octets)
}

fn show(octets: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, octet) in octets.iter().enumerate() {
        if GROUPS.contains(&(at * 2)) {
            text.push('-');
        }
        text.push_str(&format!("{octet:02x}"));
    }
    text
}

/// Time-high and time-low change places, so that those made later sort later.
fn swaps(args: &[Datum<'_>]) -> bool {
    args.get(1).is_some_and(|swap| !swap.is_null() && int(swap) != 0)
}

pub(crate) fn is_uuid<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(parse(bytes(&args[0])).is_some().into()))
}

pub(crate) fn to_bin<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let text = bytes(&args[0]);
    let Some(mut octets) = parse(text) else {
        return Err(EvalError::IncorrectForFunction {
            kind: "string",
            value: String::from_utf8_lossy(text).into_owned(),
            function: "uuid_to_bin",
        });
    };
    if swaps(args) {
        let [a, b, c, d, e, f, g, h, ..] = octets;
        octets[..8].copy_from_slice(&[g, h, e, f, a, b, c, d]);
    }
    Ok(Datum::Bytes(octets.to_vec().into()))
}

pub(crate) fn from_bin<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let given = bytes(&args[0]);
    let Ok(mut octets) = <[u8; 16]>::try_from(given) else {
        return Err(EvalError::IncorrectForFunction {
            kind: "string",
            value: String::from_utf8_lossy(given).into_owned(),
            function: "bin_to_uuid",
        });
    };
    if swaps(args) {
        let [g, h, e, f, a, b, c, d, ..] = octets;
        octets[..8].copy_from_slice(&[a, b, c, d, e, f, g, h]);
    }
    Ok(string(show(&octets)))
}
