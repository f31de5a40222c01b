//! Documents as values of other types, and values as documents.

use super::{cast, cast_binary, cast_text, convert};
use crate::datum::Datum;
use crate::decimal::{Decimal, ParseStatus};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::bytes;
use crate::expr::program::CallInfo;
use crate::json::{self, Json, JsonRef, Node};
use crate::number;
use crate::sql_type::SqlType;
use crate::temporal;

pub(super) fn encode_json<'a>(json: &Json) -> EvalResult<Datum<'a>> {
    Ok(Datum::Bytes(json.encode().map_err(EvalError::Json)?.into()))
}

/// A document as a condition: whether it is another one than the integer 0.
pub(crate) fn json_is_true<'a>(
    args: &mut [Datum<'a>],
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    ctx.warn(EvalError::JsonCondition)?;
    let order = json::compare(Node::new(bytes(&args[0])), Node::new(&ZERO));
    Ok(Datum::Int(order.is_ne().into()))
}

/// The document 0.
const ZERO: [u8; 3] = [5, 0, 0];

/// A document as a value of another type: its text, or the value of a scalar. Warning 3156 where it has none.
pub(super) fn from_json<'a>(
    value: Datum<'a>,
    to: &SqlType,
    is_cast: bool,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let node = Node::new(bytes(&value));
    match *to {
        SqlType::Json => return Ok(value),
        SqlType::VarChar { len, .. } if is_cast => {
            return cast_text(Datum::Str(node.text().into()), &SqlType::JSON_TEXT, to, len, ctx);
        }
        SqlType::Binary { len } if is_cast => {
            return cast_binary(Datum::Str(node.text().into()), &SqlType::Null, len as usize, ctx);
        }
        ty if ty.is_string() => return Ok(Datum::Str(node.text().into())),
        ty if ty.is_bytes() => return Ok(Datum::Bytes(node.text().into_bytes().into())),
        _ => {}
    }
    let kind = json::wanted_kind(to);
    let scalar = json_scalar(node, to, ctx);
    let Some((scalar, from)) = scalar else {
        ctx.warn(EvalError::JsonCast(kind))?;
        return Ok(match to {
            ty if ty.is_temporal() => Datum::Null,
            SqlType::Double(_) => Datum::Double(0.0),
            SqlType::Float(_) => Datum::Float(0.0),
            SqlType::Decimal { scale, .. } => Datum::Decimal(Decimal::new(0, *scale)),
            ty if ty.is_unsigned() => Datum::UInt(0),
            _ => Datum::Int(0),
        });
    };
    if is_cast { cast(scalar, &from, to, ctx) } else { convert(scalar, &from, to, ctx) }
}

/// The scalar that a document is, if it can become a value of the type.
fn json_scalar(node: Node<'_>, to: &SqlType, ctx: &EvalContext) -> Option<(Datum<'static>, SqlType)> {
    let (value, from) = json::scalar(node)?;
    let is_number = matches!(
        node.view(),
        JsonRef::Bool(_) | JsonRef::Int(_) | JsonRef::UInt(_) | JsonRef::Double(_) | JsonRef::Decimal(_)
    );
    let suits = match (&value, to) {
        (Datum::Str(text), ty) if ty.is_temporal() => match ty {
            SqlType::Time { .. } => {
                temporal::parse_time(text.as_bytes(), ctx.time_zone).is_some_and(|t| !t.truncated)
            }
            _ => temporal::parse_datetime(text.as_bytes(), ctx.time_zone, ctx.sql_mode.zero_dates())
                .is_some_and(|t| !t.truncated),
        },
        (Datum::Str(text), SqlType::Double(_) | SqlType::Float(_)) => {
            let parsed = number::parse_f64(text.as_bytes());
            !parsed.truncated && !parsed.overflow
        }
        (Datum::Str(text), SqlType::Decimal { .. }) => {
            let parsed = Decimal::parse_prefix(text.as_bytes());
            parsed.status != ParseStatus::NotANumber
                && text.as_bytes()[parsed.consumed..].trim_ascii().is_empty()
        }
        (Datum::Str(text), _) => {
            let parsed = number::parse_int(text.as_bytes());
            !parsed.truncated && !parsed.overflow
        }
        (_, ty) if ty.is_temporal() => !is_number,
        _ => true,
    };
    suits.then_some((value, from))
}
