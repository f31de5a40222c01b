//! Regular expressions.
//!
//! MySQL uses ICU; this is the `regex` crate: linear time, Unicode classes, but no look-around, no back-references and no possessive
//! quantifiers (error 3685 for them). Matching ignores case where the collation does; `i`, `c`, `m`, `n` and `u` are understood.

use std::borrow::Cow;

use regex::{Captures, Regex, RegexBuilder};

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::string::{pattern_arg, too_large};
use crate::expr::func::text::{count_chars, string};
use crate::expr::func::{int, take};
use crate::expr::program::{CallInfo, Prepared};
use crate::expr::regexp_error::RegexpError;
use crate::sql_type::SqlType;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// A regular expression may take so much memory once it is compiled.
const SIZE_LIMIT_BYTES: usize = 8 << 20;

/// A pattern with MySQL's match-type letters.
pub(crate) fn build(pattern: &str, flags: &str, arg_types: &[SqlType]) -> EvalResult<Regex> {
    let sensitive =
        arg_types.iter().take(2).filter_map(SqlType::collation).any(|c| !c.name().ends_with("_ci"));
    let (mut ignore_case, mut multi_line, mut dot_all) = (!sensitive, false, false);
    for flag in flags.chars() {
        match flag {
            'i' => ignore_case = true,
            'c' => ignore_case = false,
            'm' => multi_line = true,
            'n' => dot_all = true,
            'u' => {}
            _ => return Err(EvalError::WrongArguments("regexp_like")),
        }
    }
    RegexpError::check(pattern)?;
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .multi_line(multi_line)
        .dot_matches_new_line(dot_all)
        .size_limit(SIZE_LIMIT_BYTES)
        .build()
        .map_err(|_| RegexpError::Argument.into())
}

/// The expression compiled beforehand, or from the arguments.
fn regex<'x>(args: &[Datum<'_>], flags: usize, info: &'x CallInfo) -> EvalResult<Cow<'x, Regex>> {
    match &info.prepared {
        Prepared::Regex(regex) => Ok(Cow::Borrowed(regex)),
        Prepared::Nothing | Prepared::Seed | Prepared::Paths(_) | Prepared::Xpath(_) => {
            build(pattern_arg(args, 1), pattern_arg(args, flags), &info.arg_types).map(Cow::Owned)
        }
    }
}

pub(crate) fn like<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let matched = regex(args, 2, info)?.is_match(pattern_arg(args, 0));
    Ok(Datum::Int(matched.into()))
}

/// Where the search begins, in bytes; error 1583 before the text, 3686 past its end.
fn start(text: &str, position: i64, function: &'static str) -> EvalResult<usize> {
    let wrong = EvalError::WrongParameters(function);
    let index = usize::try_from(position).ok().and_then(|p| p.checked_sub(1)).ok_or(wrong)?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(index).ok_or(RegexpError::Index.into())
}

/// The `occurrence`th match from character `position` on.
fn nth_match(
    regex: &Regex,
    text: &str,
    position: i64,
    occurrence: i64,
    function: &'static str,
) -> EvalResult<Option<(usize, usize)>> {
    let start = start(text, position, function)?;
    let skip = occurrence.max(1) as usize - 1;
    Ok(regex.find_iter(&text[start..]).nth(skip).map(|found| (start + found.start(), start + found.end())))
}

/// REGEXP_INSTR(text, pattern, position, occurrence, 0: begin / 1: behind, flags).
pub(crate) fn instr<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let (text, regex) = (pattern_arg(args, 0), regex(args, 5, info)?);
    let position = args.get(2).map_or(1, int);
    let behind = match args.get(4).map_or(0, int) {
        0 => false,
        1 => true,
        _ => return Err(EvalError::WrongArguments("regexp_instr: return_option must be 1 or 0.")),
    };
    // Here, and here alone, nothing is looked for in an empty text, nor right behind another.
    if text.is_empty() {
        return Ok(Datum::Int(0));
    }
    if position < 1 || position > count_chars(text.as_bytes()) as i64 {
        return Err(RegexpError::Index.into());
    }
    let found = nth_match(&regex, text, position, args.get(3).map_or(1, int), "regexp_instr")?;
    Ok(Datum::Int(found.map_or(0, |(from, to)| {
        let at = if behind { to } else { from };
        count_chars(&text.as_bytes()[..at]) as i64 + 1
    })))
}

/// REGEXP_SUBSTR(text, pattern, position, occurrence, flags).
pub(crate) fn substr<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let found = {
        let (text, regex) = (pattern_arg(args, 0), regex(args, 4, info)?);
        nth_match(&regex, text, args.get(2).map_or(1, int), args.get(3).map_or(1, int), "regexp_substr")?
    };
    Ok(match found {
        Some((from, to)) => crate::expr::func::text::slice(take(&mut args[0]), from, to),
        None => Datum::Null,
    })
}

/// Appends what a match is replaced by, as ICU reads it: `$n` and `${name}` are groups, `\c` is the character itself and `\uhhhh` one by its
/// number. Of the digits behind `$` as many count as make the number of a group.
fn expand(found: &Captures<'_>, regex: &Regex, replacement: &str, to: &mut String) -> EvalResult<()> {
    let groups = regex.captures_len() - 1;
    let mut rest = replacement;
    while let Some(at) = rest.find(['$', '\\']) {
        let is_escape = rest.as_bytes()[at] == b'\\';
        to.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if is_escape {
            let Some(next) = rest.chars().next() else { return Ok(()) };
            let (literal, len) = match escaped_number(rest) {
                Some((literal, len)) => (literal, len),
                None => (next, next.len_utf8()),
            };
            to.push(literal);
            rest = &rest[len..];
        } else if let Some(named) = rest.strip_prefix('{') {
            let len = named.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(named.len());
            let (name, behind) = named.split_at(len);
            let is_group = regex.capture_names().flatten().any(|group| group == name);
            rest = behind.strip_prefix('}').filter(|_| is_group).ok_or(RegexpError::GroupName)?;
            to.push_str(found.name(name).map_or("", |group| group.as_str()));
        } else {
            let mut group = None;
            while let Some(digit) = rest.chars().next().and_then(|c| c.to_digit(10)) {
                let longer = group.unwrap_or(0) * 10 + digit as usize;
                if longer > groups {
                    break;
                }
                group = Some(longer);
                rest = &rest[1..];
            }
            match group {
                Some(group) => to.push_str(found.get(group).map_or("", |group| group.as_str())),
                None if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                    return Err(RegexpError::Index.into());
                }
                None => return Err(RegexpError::GroupName.into()),
            }
        }
    }
    to.push_str(rest);
    Ok(())
}

/// `uhhhh` and `Uhhhhhhhh` behind a backslash: the character, and the length of what stands for it.
fn escaped_number(text: &str) -> Option<(char, usize)> {
    let digits = match text.as_bytes().first()? {
        b'u' => 4,
        b'U' => 8,
        _ => return None,
    };
    let number = u32::from_str_radix(text.get(1..=digits)?, 16).ok()?;
    Some((char::from_u32(number)?, digits + 1))
}

/// REGEXP_REPLACE(text, pattern, replacement, position, occurrence (0: all), flags).
pub(crate) fn replace<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let (text, regex) = (pattern_arg(args, 0), regex(args, 5, info)?);
    let replacement = pattern_arg(args, 2);
    let limit = usize::try_from(ctx.max_allowed_packet).unwrap_or(usize::MAX);
    // Each group may be all of the text.
    let groups = replacement.bytes().filter(|byte| *byte == b'$').count();
    let most_of_one = text.len().saturating_mul(groups).saturating_add(replacement.len());
    let start = start(text, args.get(3).map_or(1, int), "regexp_replace")?;
    let occurrence = args.get(4).map_or(0, int).max(0) as usize;
    let (kept, rest) = text.split_at(start);
    let mut result = kept.to_owned();
    let mut at = 0;
    for (i, found) in regex.captures_iter(rest).enumerate() {
        if occurrence != 0 && i + 1 != occurrence {
            continue;
        }
        let whole = found.get(0).expect("group 0 is the match");
        result.push_str(&rest[at..whole.start()]);
        if result.len() > limit || most_of_one > limit {
            return too_large("regexp_replace", ctx);
        }
        expand(&found, &regex, replacement, &mut result)?;
        at = whole.end();
    }
    result.push_str(&rest[at..]);
    Ok(string(result))
}
