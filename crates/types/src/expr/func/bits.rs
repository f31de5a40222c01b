//! Bits of an integer as lists of strings, and a string's sound.

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::func::int;
use crate::expr::func::string::too_large;
use crate::expr::func::text::{bytes, chars, is_text, make, string};
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// The integer as 64 bits.
fn pattern(value: &Datum<'_>) -> u64 {
    match value {
        Datum::UInt(v) => *v,
        other => int(other) as u64,
    }
}

fn joined_len(strings: &[&[u8]], separator: &[u8]) -> u64 {
    let separators = strings.len().saturating_sub(1) as u64 * separator.len() as u64;
    strings.iter().map(|string| string.len() as u64).sum::<u64>() + separators
}

/// `MAKE_SET(bits, string, …)`: the strings whose bits are set, but NULLs.
pub(crate) fn make_set<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let bits = pattern(&args[0]);
    let is_set = |at: usize| at < 64 && bits >> at & 1 == 1;
    let strings = args[1..].iter().enumerate().filter(|(at, string)| is_set(*at) && !string.is_null());
    let strings: Vec<_> = strings.map(|(_, string)| bytes(string)).collect();
    if joined_len(&strings, b",") > ctx.max_allowed_packet {
        return too_large("make_set", ctx);
    }
    Ok(make(args[1..].iter().all(|arg| arg.is_null() || is_text(arg)), strings.join(&b","[..])))
}

/// `EXPORT_SET(bits, on, off [, separator [, count]])`: a string for each bit, the lowest first.
pub(crate) fn export_set<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let bits = pattern(&args[0]);
    let separator = args.get(3).map_or(&b","[..], |separator| bytes(separator));
    let count = args.get(4).map(int).filter(|count| (0..64).contains(count)).unwrap_or(64);
    let one = |at: i64| bytes(&args[if bits >> at & 1 == 1 { 1 } else { 2 }]);
    let strings: Vec<_> = (0..count).map(one).collect();
    if joined_len(&strings, separator) > ctx.max_allowed_packet {
        return too_large("export_set", ctx);
    }
    Ok(make(args[1..].iter().take(3).all(is_text), strings.join(separator)))
}

/// Of letters in ASCII what Soundex says; others have no code of their own.
fn code(letter: char) -> u8 {
    match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => b'1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => b'2',
        'D' | 'T' => b'3',
        'L' => b'4',
        'M' | 'N' => b'5',
        'R' => b'6',
        _ => b'0',
    }
}

/// SOUNDEX as MySQL has it: vowels are left out before equal codes, which count once, and no code is cut off.
pub(crate) fn soundex<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let mut letters = chars(&args[0]).chars().filter(|c| c.is_ascii_alphabetic() || *c >= '\u{c0}');
    let Some(first) = letters.next() else { return Ok(string("")) };
    let mut sound = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for letter in letters {
        let code = code(letter);
        if code != b'0' && code != last {
            sound.push(char::from(code));
            last = code;
        }
    }
    let missing = 4usize.saturating_sub(sound.chars().count());
    sound.push_str(&"0".repeat(missing));
    Ok(string(sound))
}
