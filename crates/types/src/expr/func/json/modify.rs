//! Documents from documents.

use super::build::json;
use super::{Args, document, encoded, single_path};
use crate::datum::Datum;
use crate::expr::context::{EvalContext, Warning};
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::program::CallInfo;
use crate::json::{self, Json, JsonRef, Leg, Missing, Node, Path, Present};

/// A document changed by each path and value in turn; NULL if the document or a path is.
fn each_pair<'a>(
    args: Args<'_, 'a>,
    function: &'static str,
    info: &CallInfo,
    ctx: &EvalContext,
    change: impl Fn(&mut Json, &Path, Json) -> EvalResult<()>,
) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, function, info, ctx)? else { return Ok(Datum::Null) };
    let mut root = Node::new(&bytes).to_json();
    for index in (1..args.len()).step_by(2) {
        let Some(path) = single_path(args, index, info)? else { return Ok(Datum::Null) };
        change(&mut root, &path, json(&args[index + 1]))?;
    }
    encoded(&root)
}

macro_rules! puts {
    ($($name:ident $shown:literal $present:ident $missing:ident;)*) => {$(
        pub(crate) fn $name<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
            each_pair(args, $shown, info, ctx, |root, path, value| {
                json::put(root, path, value, Present::$present, Missing::$missing);
                Ok(())
            })
        }
    )*};
}

puts! {
    set "json_set" Replace Add;
    insert "json_insert" Keep Add;
    replace "json_replace" Replace Ignore;
}

pub(crate) fn array_append<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    each_pair(args, "json_array_append", info, ctx, |root, path, value| {
        json::append(root, path, value);
        Ok(())
    })
}

pub(crate) fn array_insert<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    each_pair(args, "json_array_insert", info, ctx, |root, path, value| match path.legs.last() {
        Some(Leg::Cell(_)) => {
            json::array_insert(root, path, value);
            Ok(())
        }
        _ => Err(EvalError::JsonPathNoCell),
    })
}

pub(crate) fn remove<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, "json_remove", info, ctx)? else { return Ok(Datum::Null) };
    let mut root = Node::new(&bytes).to_json();
    for index in 1..args.len() {
        let Some(path) = single_path(args, index, info)? else { return Ok(Datum::Null) };
        if path.legs.is_empty() {
            return Err(EvalError::JsonPathVacuous);
        }
        json::remove(&mut root, &path);
    }
    encoded(&root)
}

fn preserved<'a>(
    args: Args<'_, 'a>,
    function: &'static str,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let mut merged: Option<Json> = None;
    for index in 0..args.len() {
        let Some(bytes) = document(args, index, function, info, ctx)? else { return Ok(Datum::Null) };
        let next = Node::new(&bytes).to_json();
        merged = Some(match merged {
            Some(left) => json::merge_preserve(left, next),
            None => next,
        });
    }
    merged.map_or(Ok(Datum::Null), |merged| encoded(&merged))
}

pub(crate) fn merge_preserve<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    preserved(args, "json_merge_preserve", info, ctx)
}

pub(crate) fn merge<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    ctx.push_warning(Warning {
        errno: 1287,
        message: "'JSON_MERGE' is deprecated and will be removed in a future release. Please use \
                  JSON_MERGE_PRESERVE/JSON_MERGE_PATCH instead"
            .to_owned(),
        note: false,
    });
    preserved(args, "json_merge", info, ctx)
}

/// JSON_MERGE_PATCH. What NULL makes unknown is known again behind a patch that is no object.
pub(crate) fn merge_patch<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let mut merged: Option<Json> = None;
    for index in 0..args.len() {
        let Some(bytes) = document(args, index, "json_merge_patch", info, ctx)? else {
            merged = None;
            continue;
        };
        let patch = Node::new(&bytes);
        let is_object = matches!(patch.view(), JsonRef::Object(_));
        merged = match merged {
            Some(target) => Some(json::merge_patch(target, patch.to_json())),
            None if index == 0 || !is_object => Some(patch.to_json()),
            None => None,
        };
    }
    merged.map_or(Ok(Datum::Null), |merged| encoded(&merged))
}
