//! Functions of strings.

use std::borrow::Cow;

use memchr::memmem;

use crate::collation::Charset;
use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::{
    bytes, chars, count_chars, find, find_last, is_text, length, make, offset, slice, string,
};
use crate::expr::func::{int, take};
use crate::expr::program::CallInfo;
use crate::expr::program::compare::Comparer;
use crate::sql_type::{Collation, SqlType};

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// NULL and warning 1301 for a result that would not fit a packet.
#[cold]
pub(crate) fn too_large<'a>(function: &'static str, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    ctx.warn(EvalError::ResultTooLarge { function, limit: ctx.max_allowed_packet })?;
    Ok(Datum::Null)
}

pub(crate) fn concat<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    if let [only] = args {
        return Ok(take(only));
    }
    join(args.iter(), b"", !info.ty.is_bytes(), "concat", ctx)
}

/// NULL arguments are left out; a NULL separator makes the result NULL.
pub(crate) fn concat_ws<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let [separator, parts @ ..] = args else { return Ok(Datum::Null) };
    if separator.is_null() {
        return Ok(Datum::Null);
    }
    let parts = parts.iter().filter(|part| !part.is_null());
    join(parts, bytes(separator), !info.ty.is_bytes(), "concat_ws", ctx)
}

fn join<'x, 'a, 'b: 'x>(
    parts: impl Iterator<Item = &'x Datum<'b>> + Clone,
    separator: &[u8],
    text: bool,
    function: &'static str,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let len = parts.clone().map(|part| bytes(part).len() + separator.len()).sum::<usize>();
    if len as u64 > ctx.max_allowed_packet {
        return too_large(function, ctx);
    }
    let mut joined = Vec::with_capacity(len);
    for (i, part) in parts.enumerate() {
        if i > 0 {
            joined.extend_from_slice(separator);
        }
        joined.extend_from_slice(bytes(part));
    }
    Ok(make(text, joined))
}

pub(crate) fn byte_length<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(bytes(&args[0]).len() as i64))
}

pub(crate) fn bit_length<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(bytes(&args[0]).len() as i64 * 8))
}

pub(crate) fn char_length<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(length(&args[0]) as i64))
}

pub(crate) fn upper<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(change_case(take(&mut args[0]), info, Collation::upper))
}

pub(crate) fn lower<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(change_case(take(&mut args[0]), info, Collation::lower))
}

/// Byte strings have no case.
fn change_case<'a>(
    value: Datum<'a>,
    info: &CallInfo,
    change: for<'s> fn(Collation, &'s str) -> Cow<'s, str>,
) -> Datum<'a> {
    let collation = info.arg_types[0].collation().unwrap_or(Collation::DEFAULT);
    match value {
        Datum::Str(Cow::Borrowed(s)) => Datum::Str(change(collation, s)),
        Datum::Str(Cow::Owned(s)) => string(change(collation, &s).into_owned()),
        other => other,
    }
}

pub(crate) fn substring<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let (from, len) = (int(&args[1]), args.get(2).map(int));
    let value = take(&mut args[0]);
    let whole = length(&value) as i64;
    let start = match from {
        1.. => from - 1,
        0 => whole,
        _ => whole.saturating_add(from),
    };
    let end = len.map_or(whole, |len| start.saturating_add(len).min(whole));
    if !(0..whole).contains(&start) || end <= start {
        return Ok(slice(value, 0, 0));
    }
    let (start, end) = (offset(&value, start as usize), offset(&value, end as usize));
    Ok(slice(value, start, end))
}

pub(crate) fn left<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let count = int(&args[1]).max(0) as usize;
    let value = take(&mut args[0]);
    let end = offset(&value, count);
    Ok(slice(value, 0, end))
}

pub(crate) fn right<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let count = int(&args[1]).max(0) as usize;
    let value = take(&mut args[0]);
    let start = offset(&value, length(&value).saturating_sub(count));
    let end = bytes(&value).len();
    Ok(slice(value, start, end))
}

pub(crate) fn trim<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(trimmed(args, true, true))
}

pub(crate) fn trim_leading<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(trimmed(args, true, false))
}

pub(crate) fn trim_trailing<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(trimmed(args, false, true))
}

fn trimmed<'a>(args: Args<'_, 'a>, leading: bool, trailing: bool) -> Datum<'a> {
    let value = take(&mut args[0]);
    let what = args.get(1).map_or(&b" "[..], bytes);
    let all = bytes(&value);
    let (mut start, mut end) = (0, all.len());
    if !what.is_empty() {
        while leading && all[start..end].starts_with(what) {
            start += what.len();
        }
        while trailing && all[start..end].ends_with(what) {
            end -= what.len();
        }
    }
    slice(value, start, end)
}

pub(crate) fn replace<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let value = take(&mut args[0]);
    let (from, to) = (bytes(&args[1]), bytes(&args[2]));
    let all = bytes(&value);
    if from.is_empty() || find(all, from, 0).is_none() {
        return Ok(value);
    }
    let mut result = Vec::with_capacity(all.len());
    let mut at = 0;
    while let Some(next) = find(all, from, at) {
        result.extend_from_slice(&all[at..next]);
        result.extend_from_slice(to);
        at = next + from.len();
        if result.len() as u64 > ctx.max_allowed_packet {
            return too_large("replace", ctx);
        }
    }
    result.extend_from_slice(&all[at..]);
    Ok(make(is_text(&value), result))
}

pub(crate) fn lpad<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    pad(args, true, "lpad", info, ctx)
}

pub(crate) fn rpad<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    pad(args, false, "rpad", info, ctx)
}

fn pad<'a>(
    args: Args<'_, 'a>,
    before: bool,
    function: &'static str,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let value = take(&mut args[0]);
    let (wanted, filler) = (int(&args[1]), &args[2]);
    if wanted < 0 {
        return Ok(Datum::Null);
    }
    let have = length(&value);
    if wanted as u64 <= have as u64 {
        let end = offset(&value, wanted as usize);
        return Ok(slice(value, 0, end));
    }
    // As if all characters were as long as they can be.
    let longest = info.ty.charset().map_or(1, Charset::max_len);
    if (wanted as u64).saturating_mul(longest.into()) > ctx.max_allowed_packet {
        return too_large(function, ctx);
    }
    let (missing, unit) = (wanted as usize - have, length(filler));
    if unit == 0 {
        return Ok(value);
    }
    let mut padding = bytes(filler).repeat(missing / unit);
    padding.extend_from_slice(&bytes(filler)[..offset(filler, missing % unit)]);
    let parts = if before { [&padding, bytes(&value)] } else { [bytes(&value), &padding] };
    Ok(make(is_text(&value), parts.concat()))
}

pub(crate) fn repeat<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let (value, count) = (&args[0], int(&args[1]).max(0) as u64);
    let all = bytes(value);
    if (all.len() as u64).saturating_mul(count) > ctx.max_allowed_packet {
        return too_large("repeat", ctx);
    }
    Ok(make(is_text(value), all.repeat(if all.is_empty() { 0 } else { count as usize })))
}

pub(crate) fn space<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let count = int(&args[0]).max(0) as u64;
    if count > ctx.max_allowed_packet {
        return too_large("space", ctx);
    }
    Ok(string(" ".repeat(count as usize)))
}

pub(crate) fn reverse<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(match &args[0] {
        Datum::Str(s) => string(s.chars().rev().collect::<String>()),
        other => make(false, bytes(other).iter().rev().copied().collect()),
    })
}

pub(crate) fn instr<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(position(&args[0], &args[1], 1, info)))
}

pub(crate) fn locate<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(position(&args[1], &args[0], args.get(2).map_or(1, int), info)))
}

/// Where `needle` first is at or after character `from`, counted from 1; 0 if it is not there.
fn position(haystack: &Datum<'_>, needle: &Datum<'_>, from: i64, info: &CallInfo) -> i64 {
    if from < 1 || from - 1 > length(haystack) as i64 {
        return 0;
    }
    let start = offset(haystack, from as usize - 1);
    let found = match (haystack, needle) {
        (Datum::Str(haystack), Datum::Str(needle)) => {
            let collation = info.arg_types.iter().find_map(|ty| ty.collation());
            crate::expr::program::pattern::find_text(&haystack[start..], needle, collation)
                .map(|at| start + at)
        }
        _ => find(bytes(haystack), bytes(needle), start),
    };
    match (found, haystack) {
        (None, _) => 0,
        (Some(at), Datum::Str(s)) => crate::expr::func::text::count_chars(&s.as_bytes()[..at]) as i64 + 1,
        (Some(at), _) => at as i64 + 1,
    }
}

pub(crate) fn strcmp<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let ordering = Comparer::of_all(&info.arg_types).compare(&args[0], &args[1]);
    Ok(ordering.map_or(Datum::Null, |ordering| Datum::Int(ordering as i64)))
}

pub(crate) fn ascii<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(bytes(&args[0]).first().copied().unwrap_or(0).into()))
}

/// The first character's bytes as a number.
pub(crate) fn ord<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let len = offset(&args[0], 1);
    let first = &bytes(&args[0])[..len];
    let first = match (&args[0], info.arg_types[0].charset()) {
        (Datum::Str(s), Some(charset)) if !charset.is_utf8() => Cow::Owned(charset.encode(&s[..len])),
        _ => Cow::Borrowed(first),
    };
    let code = first.iter().fold(0i64, |code, byte| code << 8 | i64::from(*byte));
    Ok(Datum::Int(code))
}

/// CHAR(n, …): the bytes of each number, without leading zero bytes.
pub(crate) fn char<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let mut result = Vec::new();
    for arg in args.iter().filter(|arg| !arg.is_null()) {
        let code = (int(arg) as u32).to_be_bytes();
        let skip = code.iter().take(3).take_while(|b| **b == 0).count();
        result.extend_from_slice(&code[skip..]);
    }
    Ok(make(false, result))
}

/// Which of the others equals the first argument, from 1; 0 if none.
pub(crate) fn field<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let by = Comparer::of_all(&info.arg_types);
    let same = |other: &Datum<'_>| by.compare(&args[0], other).is_some_and(|ordering| ordering.is_eq());
    let found = args[1..].iter().position(|other| !other.is_null() && !args[0].is_null() && same(other));
    Ok(Datum::Int(found.map_or(0, |at| at as i64 + 1)))
}

pub(crate) fn elt<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let index = if args[0].is_null() { 0 } else { int(&args[0]) };
    Ok(match usize::try_from(index) {
        Ok(index @ 1..) => args.get_mut(index).map_or(Datum::Null, take),
        _ => Datum::Null,
    })
}

pub(crate) fn find_in_set<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let (wanted, set) = (&args[0], &args[1]);
    if bytes(set).is_empty() || bytes(wanted).contains(&b',') {
        return Ok(Datum::Int(0));
    }
    let by = Comparer::of_all(&info.arg_types);
    let same = |item: &[u8]| match std::str::from_utf8(item) {
        Ok(item) if is_text(set) => by.compare(wanted, &Datum::str(item)),
        _ => by.compare(wanted, &Datum::bytes(item)),
    };
    // Unlike in comparisons, blanks at the end count under every collation.
    let blanks = |text: &[u8]| text.iter().rev().take_while(|byte| **byte == b' ').count();
    let own = blanks(bytes(wanted));
    let is_found = |item: &[u8]| blanks(item) == own && same(item).is_some_and(|o| o.is_eq());
    let found = bytes(set).split(|b| *b == b',').position(is_found);
    Ok(Datum::Int(found.map_or(0, |at| at as i64 + 1)))
}

pub(crate) fn substring_index<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    _: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let count = int(&args[2]);
    let value = take(&mut args[0]);
    let delimiter = bytes(&args[1]);
    if count == 0 || delimiter.is_empty() {
        return Ok(slice(value, 0, 0));
    }
    let (all, end) = (bytes(&value), bytes(&value).len());
    let nth = |n: u64| usize::try_from(n).ok().and_then(|n| memmem::find_iter(all, delimiter).nth(n));
    let back = count.unsigned_abs();
    if count > 0 {
        let to = nth(back - 1).unwrap_or(end);
        return Ok(slice(value, 0, to));
    }
    // Where characters can have several bytes, MySQL counts from the left here, too: `aa` stands twice in `aaaaa`, and an `a` behind it.
    let found = if info.arg_types[0].charset().is_some_and(|charset| charset.max_len() > 1) {
        (memmem::find_iter(all, delimiter).count() as u64).checked_sub(back).and_then(nth)
    } else {
        let mut to = Some(end);
        for _ in 0..back {
            to = to.and_then(|to| find_last(all, delimiter, to));
            if to.is_none() {
                break;
            }
        }
        to
    };
    Ok(slice(value, found.map_or(0, |at| at + delimiter.len()), end))
}

pub(crate) fn insert<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let (from, len) = (int(&args[1]), int(&args[2]));
    let value = take(&mut args[0]);
    let whole = length(&value) as i64;
    if from < 1 || from > whole {
        return Ok(value);
    }
    let start = from - 1;
    let end = if len < 0 { whole } else { start.saturating_add(len).min(whole) };
    let (start, end) = (offset(&value, start as usize), offset(&value, end as usize));
    let all = bytes(&value);
    let result = [&all[..start], bytes(&args[3]), &all[end..]].concat();
    if result.len() as u64 > ctx.max_allowed_packet {
        return too_large("insert", ctx);
    }
    Ok(make(is_text(&value), result))
}

pub(crate) fn quote<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let value = &args[0];
    if value.is_null() {
        return Ok(make(!info.ty.is_bytes(), b"NULL".to_vec()));
    }
    let mut quoted = vec![b'\''];
    for &byte in bytes(value) {
        match byte {
            b'\'' | b'\\' => quoted.extend_from_slice(&[b'\\', byte]),
            0 => quoted.extend_from_slice(b"\\0"),
            0x1A => quoted.extend_from_slice(b"\\Z"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    Ok(make(is_text(value), quoted))
}

/// CHARSET and COLLATION tell of the argument's type.
/// WEIGHT_STRING(text), or of as many characters of it as a number says, spaces added where the collation pads.
pub(crate) fn weight_string<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let chars = match args.get(1) {
        Some(Datum::Null) => return Ok(Datum::Null),
        Some(chars) => Some(int(chars).max(0) as u64),
        None => None,
    };
    if chars.is_some_and(|chars| chars > ctx.max_allowed_packet) {
        return too_large("weight_string", ctx);
    }
    let text = match (take(&mut args[0]), chars) {
        (Datum::Str(text), None) => text,
        (Datum::Str(text), Some(chars)) => {
            let collation = info.arg_types[0].collation().unwrap_or(Collation::DEFAULT);
            let end = text.char_indices().nth(chars as usize).map_or(text.len(), |(at, _)| at);
            let missing = (chars as usize).saturating_sub(count_chars(text.as_bytes()));
            let padding = if collation.is_padded() { " ".repeat(missing) } else { String::new() };
            format!("{}{padding}", &text[..end]).into()
        }
        (other, _) => return Ok(other),
    };
    let collation = info.arg_types[0].collation().unwrap_or(Collation::DEFAULT);
    let most = collation.most_weight_bytes().saturating_mul(count_chars(text.as_bytes()));
    if most as u64 > ctx.max_allowed_packet {
        return too_large("weight_string", ctx);
    }
    let mut weights = Vec::new();
    collation.weight_string(&text, &mut weights);
    Ok(Datum::Bytes(weights.into()))
}

pub(crate) fn charset<'a>(_: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let charset = match info.arg_types[0] {
        SqlType::Json => Charset::Utf8mb4,
        ty => ty.declared_collation().map_or(Charset::Binary, |collation| collation.info().charset),
    };
    Ok(Datum::str(charset.name()))
}

pub(crate) fn collation<'a>(_: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let collation = match info.arg_types[0] {
        SqlType::Json => Collation::UTF8MB4_BIN,
        ty => ty.declared_collation().unwrap_or(Collation::BINARY),
    };
    Ok(Datum::str(collation.name()))
}

/// A character string argument that a function reads as it is.
pub(crate) fn pattern_arg<'x>(args: &'x [Datum<'_>], index: usize) -> &'x str {
    args.get(index).map_or("", chars)
}
