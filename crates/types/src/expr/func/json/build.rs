//! Documents from values.

use super::{Args, encoded, is_too_much};
use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::string::too_large;
use crate::expr::func::text;
use crate::expr::program::CallInfo;
use crate::json::{Json, Node, array_of, object_of};

/// A value that came converted to JSON; NULL is null.
pub(in crate::expr::func) fn json(value: &Datum<'_>) -> Json {
    match value {
        Datum::Bytes(bytes) => Node::new(bytes).to_json(),
        _ => Json::Null,
    }
}

/// The same, without taking it apart.
fn node<'x>(value: &'x Datum<'_>) -> Node<'x> {
    match value {
        Datum::Bytes(bytes) => Node::new(bytes),
        _ => Node::NULL,
    }
}

pub(crate) fn array<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let elements: Vec<_> = args.iter().map(node).collect();
    if is_too_much(&elements, ctx) {
        return too_large("json_array", ctx);
    }
    Ok(Datum::Bytes(array_of(&elements).map_err(EvalError::Json)?.into()))
}

pub(crate) fn object<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let mut members = Vec::with_capacity(args.len() / 2);
    for (pair, types) in args.chunks(2).zip(info.arg_types.chunks(2)) {
        if pair[0].is_null() {
            return Err(EvalError::JsonNullName);
        }
        if types[0].is_bytes() {
            return Err(EvalError::JsonCharset);
        }
        members.push((text::chars(&pair[0]), node(&pair[1])));
    }
    let values: Vec<_> = members.iter().map(|(_, value)| *value).collect();
    if is_too_much(&values, ctx) {
        return too_large("json_object", ctx);
    }
    Ok(Datum::Bytes(object_of(members).map_err(EvalError::Json)?.into()))
}

/// A truth value as true or false.
pub(crate) fn of_truth<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    match &args[0] {
        Datum::Null => Ok(Datum::Null),
        value => encoded(&Json::Bool(crate::expr::program::eval::is_true(value) == Some(true))),
    }
}
