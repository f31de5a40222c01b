//! A scalar of a document as a value of SQL: JSON_VALUE, columns of JSON_TABLE, and conversions.

use std::borrow::Cow;

use super::{Args, document, path};
use crate::convert::{ConvertContext, StoreError, store};
use crate::datum::{Datum, Value};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::int;
use crate::expr::program::{CallInfo, reborrow};
use crate::json::{Node, scalar};
use crate::sql_type::{Collation, SqlType};
use crate::temporal::TimeZone;

/// What ON EMPTY and ON ERROR ask for, as arguments of JSON_VALUE have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnProblem {
    Null,
    Error,
    Default,
}

impl OnProblem {
    pub const fn code(self) -> i64 {
        match self {
            Self::Null => 0,
            Self::Error => 1,
            Self::Default => 2,
        }
    }

    fn of(arg: &Datum<'_>) -> Self {
        match int(arg) {
            1 => Self::Error,
            2 => Self::Default,
            _ => Self::Null,
        }
    }
}

/// A part of a document as a value of a column. Null is NULL; an error if the value does not fit, or is no scalar where one
/// is needed.
pub fn as_column(node: Node<'_>, to: &SqlType, zone: TimeZone) -> Result<Value, StoreError> {
    if node.is_null() {
        return Ok(Datum::Null);
    }
    if *to == SqlType::Json {
        return Ok(Datum::Bytes(node.to_document().into()));
    }
    let (value, from) = match scalar(node) {
        // Booleans are words where a string is asked for.
        _ if to.is_string() => unquoted(node),
        Some(scalar) => scalar,
        None => return Err(StoreError::Truncated),
    };
    if !suits(&value, to) {
        return Err(StoreError::Truncated);
    }
    let context = ConvertContext { strict: true, zone, ..ConvertContext::STRICT_UTC };
    let stored = store(value, &from, to, &context)?;
    Ok(stored.value.into_owned())
}

/// Whether a value may be read as one of the type: no fractions of strings for integers, no numbers for dates.
fn suits(value: &Datum<'_>, to: &SqlType) -> bool {
    match (value, to) {
        (Datum::Str(text), SqlType::Int { .. }) => !crate::number::parse_int(text.as_bytes()).truncated,
        (Datum::Str(_) | Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_), ty) if ty.is_temporal() => {
            true
        }
        (_, ty) if ty.is_temporal() => false,
        (value, SqlType::Year) => matches!(value, Datum::Int(_) | Datum::UInt(_)),
        _ => true,
    }
}

fn unquoted(node: Node<'_>) -> (Value, SqlType) {
    let value = Datum::Str(Cow::Owned(node.unquoted()));
    let ty = value.natural_type(Collation::UTF8MB4_BIN);
    (value, ty)
}

/// JSON_VALUE: document, path, what to do where there is nothing, the default then, what to do with an error, the default then.
pub(crate) fn value<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let problem = |at: usize, error: EvalError| match OnProblem::of(&args[at]) {
        OnProblem::Null => Ok(Datum::Null),
        OnProblem::Error => Err(error),
        OnProblem::Default => Ok(reborrow(&args[at + 1]).into_owned()),
    };
    let bytes = match document(args, 0, "json_value", info, ctx) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Datum::Null),
        Err(error @ (EvalError::JsonType { .. } | EvalError::JsonCharset)) => return Err(error),
        Err(error) => {
            if OnProblem::of(&args[4]) != OnProblem::Error {
                ctx.note(&error);
            }
            return problem(4, error);
        }
    };
    let Some(path) = path(args, 1, info)? else { return Ok(Datum::Null) };
    let root = Node::new(&bytes);
    let found = match path.is_wild() {
        true => path.find_all(root, || ctx.check())?,
        false => path.find(root).into_iter().collect(),
    };
    match &found[..] {
        [] => problem(2, EvalError::JsonMissing),
        [node] => as_column(*node, &info.ty, ctx.time_zone)
            .or_else(|_| problem(4, EvalError::JsonValueRange(kind(&info.ty)))),
        _ => problem(4, EvalError::JsonMultiple),
    }
}

/// As MySQL names what a value was to become.
fn kind(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Int { unsigned: false, .. } => "SIGNED",
        SqlType::Int { unsigned: true, .. } => "UNSIGNED",
        SqlType::Decimal { .. } => "DECIMAL",
        SqlType::Float(_) | SqlType::Double(_) => "DOUBLE",
        SqlType::Date => "DATE",
        SqlType::DateTime { .. } => "DATETIME",
        SqlType::Time { .. } => "TIME",
        SqlType::Year => "YEAR",
        _ => "STRING",
    }
}
