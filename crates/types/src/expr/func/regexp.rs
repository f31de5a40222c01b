//! Regular expressions.
//!
//! MySQL uses ICU; this is the `regex` crate: linear time, Unicode classes, but no look-around and no back-references
//! (error 3685 for them). Matching ignores case where the collation does; `i`, `c`, `m`, `n` and `u` are understood.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::string::{pattern_arg, too_large};
use crate::expr::func::text::{count_chars, string};
use crate::expr::func::{int, take};
use crate::expr::program::{CallInfo, Prepared};
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
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .multi_line(multi_line)
        .dot_matches_new_line(dot_all)
        .size_limit(SIZE_LIMIT_BYTES)
        .build()
        .map_err(|_| EvalError::RegexpSyntax)
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

/// Where the search begins, in bytes; error 1210 past the end.
fn start(text: &str, position: i64) -> EvalResult<usize> {
    let wrong = EvalError::WrongArguments("regexp");
    let index = usize::try_from(position).ok().and_then(|p| p.checked_sub(1)).ok_or(wrong.clone())?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(index).ok_or(wrong)
}

/// The `occurrence`th match from character `position` on.
fn nth_match(
    regex: &Regex,
    text: &str,
    position: i64,
    occurrence: i64,
) -> EvalResult<Option<(usize, usize)>> {
    let start = start(text, position)?;
    let skip = occurrence.max(1) as usize - 1;
    Ok(regex.find_iter(&text[start..]).nth(skip).map(|found| (start + found.start(), start + found.end())))
}

/// REGEXP_INSTR(text, pattern, position, occurrence, 0: begin / 1: behind, flags).
pub(crate) fn instr<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let (text, regex) = (pattern_arg(args, 0), regex(args, 5, info)?);
    let position = args.get(2).map_or(1, int);
    let found = nth_match(&regex, text, position, args.get(3).map_or(1, int))?;
    let behind = args.get(4).map_or(0, int) == 1;
    Ok(Datum::Int(found.map_or(0, |(from, to)| {
        let at = if behind { to } else { from };
        count_chars(&text.as_bytes()[..at]) as i64 + 1
    })))
}

/// REGEXP_SUBSTR(text, pattern, position, occurrence, flags).
pub(crate) fn substr<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let found = {
        let (text, regex) = (pattern_arg(args, 0), regex(args, 4, info)?);
        nth_match(&regex, text, args.get(2).map_or(1, int), args.get(3).map_or(1, int))?
    };
    Ok(match found {
        Some((from, to)) => crate::expr::func::text::slice(take(&mut args[0]), from, to),
        None => Datum::Null,
    })
}

/// REGEXP_REPLACE(text, pattern, replacement, position, occurrence (0: all), flags).
pub(crate) fn replace<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let (text, regex) = (pattern_arg(args, 0), regex(args, 5, info)?);
    let replacement = pattern_arg(args, 2);
    let limit = usize::try_from(ctx.max_allowed_packet).unwrap_or(usize::MAX);
    // Each group may be all of the text.
    let groups = replacement.bytes().filter(|byte| *byte == b'$').count();
    let most_of_one = text.len().saturating_mul(groups).saturating_add(replacement.len());
    let start = start(text, args.get(3).map_or(1, int))?;
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
        found.expand(replacement, &mut result);
        at = whole.end();
    }
    result.push_str(&rest[at..]);
    Ok(string(result))
}
