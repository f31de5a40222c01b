//! JSON functions. MySQL 8.4 Reference Manual, 14.17 "JSON Functions".
//!
//! Documents come as JSON or as texts, which are parsed (3141); other types are errors (3146). Values to put into documents
//! come converted to JSON by `Typer::json`.
//!
//! - here: arguments, and functions of a whole document
//! - `build`: documents from values
//! - `look`: what a document holds, and where
//! - `modify`: documents from documents
//! - `value`: a scalar of a document as a value of SQL
//! - `schema`: JSON Schema

pub(crate) mod build;
pub(crate) mod look;
pub(crate) mod modify;
pub(crate) mod schema;
pub(crate) mod value;

use std::borrow::Cow;

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::string::too_large;
use crate::expr::func::text::string;
use crate::expr::func::{take, text};
use crate::expr::program::{CallInfo, Prepared};
use crate::json::{Json, JsonError, JsonRef, Node, Path, pretty};
use crate::sql_type::SqlType;

pub(super) type Args<'x, 'a> = &'x mut [Datum<'a>];

/// A document in its binary form.
pub(super) fn encoded<'a>(json: &Json) -> EvalResult<Datum<'a>> {
    Ok(Datum::Bytes(Cow::Owned(json.encode().map_err(EvalError::Json)?)))
}

/// The binary form of an argument that is a document or the text of one; `None` for NULL.
pub(super) fn document<'x>(
    args: &'x [Datum<'_>],
    index: usize,
    function: &'static str,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Option<Cow<'x, [u8]>>> {
    let argument = index + 1;
    match (&args[index], &info.arg_types[index]) {
        // What has another type is refused for it, whatever its value.
        (Datum::Null, ty) if never_document(ty) && !TAKES_ANY_NULL.contains(&function) => {
            Err(EvalError::JsonType { argument, function })
        }
        (Datum::Null, _) => Ok(None),
        (Datum::Bytes(bytes), SqlType::Json) => Ok(Some(Cow::Borrowed(bytes))),
        (Datum::Str(text), _) => {
            let document = ctx.with_json(text, |json| {
                let problem = |problem| EvalError::InvalidJsonText { argument, function, problem };
                json.map_err(problem)?.encode().map_err(EvalError::Json)
            })?;
            Ok(Some(Cow::Owned(document)))
        }
        (Datum::Bytes(_), _) => Err(EvalError::JsonCharset),
        _ => Err(EvalError::JsonType { argument, function }),
    }
}

/// What is no function of documents to MySQL takes NULL of every type.
const TAKES_ANY_NULL: [&str; 3] = ["json_table", "json_value", "member of"];

/// Numbers, dates and times.
fn never_document(ty: &SqlType) -> bool {
    ty.is_temporal()
        || matches!(
            ty,
            SqlType::Bool
                | SqlType::Int { .. }
                | SqlType::Decimal { .. }
                | SqlType::Float(_)
                | SqlType::Double(_)
                | SqlType::Year
        )
}

/// Whether documents put together would not fit a packet: one of many megabytes may be named many times.
pub(super) fn is_too_much(values: &[Node<'_>], ctx: &EvalContext) -> bool {
    values.iter().map(|value| value.size() as u64).sum::<u64>() > ctx.max_allowed_packet
}

/// The path that an argument is; `None` for NULL.
pub(super) fn path<'x>(
    args: &[Datum<'_>],
    index: usize,
    info: &'x CallInfo,
) -> EvalResult<Option<Cow<'x, Path>>> {
    if let Prepared::Paths(paths) = &info.prepared
        && let Some(Some(path)) = paths.get(index)
    {
        return Ok(Some(Cow::Borrowed(path)));
    }
    match &args[index] {
        Datum::Null => Ok(None),
        text => Path::parse(text::chars(text))
            .map(|path| Some(Cow::Owned(path)))
            .map_err(|bad| EvalError::JsonPath(bad.position)),
    }
}

/// A path that leads to one value at most (3149).
pub(super) fn single_path<'x>(
    args: &[Datum<'_>],
    index: usize,
    info: &'x CallInfo,
) -> EvalResult<Option<Cow<'x, Path>>> {
    let path = path(args, index, info)?;
    match path.as_ref().is_some_and(|path| path.is_wild()) {
        true => Err(EvalError::JsonPathWild),
        false => Ok(path),
    }
}

/// What an argument of `oneOrAll` says: whether one is enough.
pub(super) fn is_one(arg: &Datum<'_>, function: &'static str) -> EvalResult<bool> {
    let word = text::chars(arg);
    match () {
        () if word.eq_ignore_ascii_case("one") => Ok(true),
        () if word.eq_ignore_ascii_case("all") => Ok(false),
        () => Err(EvalError::OneOrAll(function)),
    }
}

pub(crate) fn type_name<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let document = document(args, 0, "json_type", info, ctx)?;
    Ok(document.map_or(Datum::Null, |bytes| Datum::str(Node::new(&bytes).type_name())))
}

pub(crate) fn is_valid<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(match (&args[0], &info.arg_types[0]) {
        (Datum::Null, _) => Datum::Null,
        (Datum::Bytes(_), SqlType::Json) => Datum::Int(1),
        (Datum::Str(text), _) => ctx.with_json(text, |json| match json {
            Ok(_) => Ok(Datum::Int(1)),
            // What is too deep is an error, not an answer.
            Err(problem @ JsonError::TooDeep) => Err(EvalError::Json(problem)),
            Err(_) => Ok(Datum::Int(0)),
        })?,
        _ => Datum::Int(0),
    })
}

pub(crate) fn depth<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let document = document(args, 0, "json_depth", info, ctx)?;
    Ok(document.map_or(Datum::Null, |bytes| Datum::Int(Node::new(&bytes).depth() as i64)))
}

pub(crate) fn length<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, "json_length", info, ctx)? else { return Ok(Datum::Null) };
    let root = Node::new(&bytes);
    if args.len() == 1 {
        return Ok(Datum::Int(root.length() as i64));
    }
    let Some(path) = path(args, 1, info)? else { return Ok(Datum::Null) };
    // What a path with wildcards leads to is an array.
    let len = match path.is_wild() {
        true => Some(path.find_all(root, || ctx.check())?.len()).filter(|len| *len > 0),
        false => path.find(root).map(|node| node.length()),
    };
    Ok(len.map_or(Datum::Null, |len| Datum::Int(len as i64)))
}

pub(crate) fn keys<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, "json_keys", info, ctx)? else { return Ok(Datum::Null) };
    let root = Node::new(&bytes);
    let node = match args.len() {
        1 => Some(root),
        _ => single_path(args, 1, info)?.and_then(|path| path.find_unwrapped(root)),
    };
    match node.map(|node| node.view()) {
        Some(JsonRef::Object(object)) => {
            encoded(&Json::Array(object.iter().map(|(name, _)| Json::String(name.to_owned())).collect()))
        }
        _ => Ok(Datum::Null),
    }
}

pub(crate) fn prettied<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, "json_pretty", info, ctx)? else { return Ok(Datum::Null) };
    let mut to = Vec::new();
    let most = usize::try_from(ctx.max_allowed_packet).unwrap_or(usize::MAX);
    pretty(Node::new(&bytes), 0, most, &mut to);
    if to.len() > most {
        return too_large("json_pretty", ctx);
    }
    Ok(text::from_buffer(to))
}

pub(crate) fn storage_size<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let document = document(args, 0, "json_storage_size", info, ctx)?;
    Ok(document.map_or(Datum::Null, |bytes| Datum::Int(bytes.len() as i64)))
}

/// Nothing is ever updated in place within a value, so nothing is free.
pub(crate) fn storage_free<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let document = document(args, 0, "json_storage_free", info, ctx)?;
    Ok(document.map_or(Datum::Null, |_| Datum::Int(0)))
}

pub(crate) fn quoted<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let mut to = Vec::new();
    crate::json::quote(text::chars(&args[0]), &mut to);
    Ok(text::from_buffer(to))
}

/// JSON_UNQUOTE, and what `->>` does to what it extracts.
pub(crate) fn unquoted<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    match (&args[0], &info.arg_types[0]) {
        (Datum::Bytes(bytes), SqlType::Json) => Ok(string(Node::new(bytes).unquoted())),
        (Datum::Str(text), _) if text.len() >= 2 && text.starts_with('"') && text.ends_with('"') => {
            match crate::json::parse(text) {
                Ok(Json::String(value)) => Ok(string(value)),
                // It begins and ends like a string, so what is wrong is within.
                Ok(_) => Ok(take(&mut args[0])),
                Err(problem) => {
                    Err(EvalError::InvalidJsonText { argument: 1, function: "json_unquote", problem })
                }
            }
        }
        _ => Ok(take(&mut args[0])),
    }
}

/// What JSON_TABLE makes rows of.
pub(crate) fn table_document<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let document = document(args, 0, "json_table", info, ctx)?;
    Ok(document.map_or(Datum::Null, |bytes| Datum::Bytes(Cow::Owned(bytes.into_owned()))))
}
