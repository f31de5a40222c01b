//! Functions of regular expressions. Matching ignores case where the collation does; `i`, `c`, `m`, `n` and `u` are understood.

use std::borrow::Cow;

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::string::{pattern_arg, too_large};
use crate::expr::func::text::{count_chars, string};
use crate::expr::func::{int, take};
use crate::expr::program::{CallInfo, Prepared};
use crate::expr::regexp::engine::{Flags, Groups, behind};
use crate::expr::regexp::{Matcher, RegexpError};
use crate::sql_type::SqlType;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// A pattern with MySQL's match-type letters.
pub(crate) fn build(pattern: &str, flags: &str, arg_types: &[SqlType]) -> EvalResult<Matcher> {
    let sensitive =
        arg_types.iter().take(2).filter_map(SqlType::collation).any(|c| !c.name().ends_with("_ci"));
    let mut of = Flags { ignore_case: !sensitive, ..Flags::default() };
    for flag in flags.chars() {
        match flag {
            'i' => of.ignore_case = true,
            'c' => of.ignore_case = false,
            'm' => of.multi_line = true,
            'n' => of.dot_all = true,
            'u' => of.unix_lines = true,
            _ => return Err(EvalError::WrongArguments("regexp_like")),
        }
    }
    Ok(Matcher::new(pattern, of)?)
}

/// The expression compiled beforehand, or from the arguments.
fn regex<'x>(args: &[Datum<'_>], flags: usize, info: &'x CallInfo) -> EvalResult<Cow<'x, Matcher>> {
    match &info.prepared {
        Prepared::Regex(regex) => Ok(Cow::Borrowed(regex)),
        Prepared::Nothing | Prepared::Seed | Prepared::Paths(_) | Prepared::Xpath(_) => {
            build(pattern_arg(args, 1), pattern_arg(args, flags), &info.arg_types).map(Cow::Owned)
        }
    }
}

pub(crate) fn like<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let matched = regex(args, 2, info)?.is_match(pattern_arg(args, 0), ctx)?;
    Ok(Datum::Int(matched.into()))
}

/// Where the search begins, in bytes; error 1583 before the text, 3686 past its end.
fn start(text: &str, position: i64, function: &'static str) -> EvalResult<usize> {
    let wrong = EvalError::WrongParameters(function);
    let index = usize::try_from(position).ok().and_then(|p| p.checked_sub(1)).ok_or(wrong)?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(index).ok_or(RegexpError::Index.into())
}

/// The `occurrence`th match from byte `at` on.
fn nth_match(
    matcher: &Matcher,
    text: &str,
    mut at: usize,
    occurrence: i64,
    ctx: &EvalContext,
) -> EvalResult<Option<(usize, usize)>> {
    let mut left = occurrence.max(1);
    while let Some(found) = matcher.find_at(text, at, ctx)? {
        left -= 1;
        if left == 0 {
            return Ok(Some(found));
        }
        // Each search may look through the whole rest of the text.
        ctx.check()?;
        match behind(text, found) {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(None)
}

/// REGEXP_INSTR(text, pattern, position, occurrence, 0: begin / 1: behind, flags).
pub(crate) fn instr<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let (text, regex) = (pattern_arg(args, 0), regex(args, 5, info)?);
    let position = args.get(2).map_or(1, int);
    let is_behind = match args.get(4).map_or(0, int) {
        0 => false,
        1 => true,
        _ => return Err(EvalError::WrongArguments("regexp_instr: return_option must be 1 or 0.")),
    };
    // An empty text is searched whatever the position is; here, and here alone, no text is searched right behind its end.
    let position = if text.is_empty() { 1 } else { position };
    if position < 1 || (position > count_chars(text.as_bytes()) as i64 && !text.is_empty()) {
        return Err(RegexpError::Index.into());
    }
    // What is before the position is not looked back at, and `^` stands there.
    let start = start(text, position, "regexp_instr")?;
    let found = nth_match(&regex, &text[start..], 0, args.get(3).map_or(1, int), ctx)?;
    Ok(Datum::Int(found.map_or(0, |(from, to)| {
        let at = start + if is_behind { to } else { from };
        count_chars(&text.as_bytes()[..at]) as i64 + 1
    })))
}

/// REGEXP_SUBSTR(text, pattern, position, occurrence, flags).
pub(crate) fn substr<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let found = {
        let (text, regex) = (pattern_arg(args, 0), regex(args, 4, info)?);
        let start = start(text, args.get(2).map_or(1, int), "regexp_substr")?;
        nth_match(&regex, text, start, args.get(3).map_or(1, int), ctx)?
    };
    Ok(match found {
        Some((from, to)) => crate::expr::func::text::slice(take(&mut args[0]), from, to),
        None => Datum::Null,
    })
}

/// Appends what a match is replaced by, or as much of it as is more than so many bytes, as ICU reads it: `$n` and `${name}` are groups, `\c`
/// is the character itself and `\uhhhh` one by its
/// number. Of the digits behind `$` as many count as make the number of a group.
fn expand(
    found: &Groups,
    text: &str,
    matcher: &Matcher,
    replacement: &str,
    most: usize,
    to: &mut String,
) -> EvalResult<()> {
    let groups = matcher.group_count();
    let group_text = |group: usize| match found.get(group) {
        Some(Some((from, to))) => &text[*from..*to],
        _ => "",
    };
    let mut rest = replacement;
    while let Some(at) = rest.find(['$', '\\']) {
        // Each group may be all of the text.
        if to.len() > most {
            return Ok(());
        }
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
            let group = matcher.group_named(name).ok_or(RegexpError::GroupName)?;
            rest = behind.strip_prefix('}').ok_or(RegexpError::GroupName)?;
            to.push_str(group_text(group));
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
                Some(group) => to.push_str(group_text(group)),
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
    let start = start(text, args.get(3).map_or(1, int), "regexp_replace")?;
    let occurrence = args.get(4).map_or(0, int).max(0) as usize;
    let mut result = text[..start].to_owned();
    let (mut copied, mut next, mut count) = (start, Some(start), 0);
    while let Some(at) = next.filter(|_| !text.is_empty())
        && let Some(found) = regex.groups_at(text, at, ctx)?
    {
        let whole = found[0].expect("group 0 is the match");
        next = behind(text, whole);
        count += 1;
        ctx.check()?;
        if occurrence != 0 && count != occurrence {
            continue;
        }
        result.push_str(&text[copied..whole.0]);
        expand(&found, text, &regex, replacement, limit, &mut result)?;
        if result.len() > limit {
            return too_large("regexp_replace", ctx);
        }
        copied = whole.1;
        if count == occurrence {
            break;
        }
    }
    result.push_str(&text[copied..]);
    Ok(string(result))
}
