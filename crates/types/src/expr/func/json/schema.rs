//! JSON_SCHEMA_VALID and JSON_SCHEMA_VALIDATION_REPORT.

use super::{Args, document, encoded};
use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::program::CallInfo;
use crate::json::{Json, JsonRef, Map, Node, SchemaError, Violation, validate};

/// `None` if an argument is NULL.
fn check(
    args: &[Datum<'_>],
    function: &'static str,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Option<Option<Violation>>> {
    let Some(schema) = document(args, 0, function, info, ctx)? else { return Ok(None) };
    let Some(document) = document(args, 1, function, info, ctx)? else { return Ok(None) };
    let schema = Node::new(&schema);
    if !matches!(schema.view(), JsonRef::Object(_)) {
        return Err(EvalError::JsonNoObject { argument: 1, function });
    }
    match validate(schema, Node::new(&document), &|| ctx.check().is_err()) {
        Ok(violation) => Ok(Some(violation)),
        Err(SchemaError::RemoteReference) => {
            Err(EvalError::NotSupported("references to remote JSON Schema".to_owned()))
        }
        Err(SchemaError::Pattern(pattern)) => {
            Err(EvalError::NotSupported(format!("the regular expression '{pattern}' of a JSON Schema")))
        }
        Err(SchemaError::Stopped) => ctx.check().and(Err(EvalError::Interrupted)),
        Err(SchemaError::TooDeep) => Err(EvalError::Json(crate::json::JsonError::TooDeep)),
    }
}

pub(crate) fn is_valid<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let checked = check(args, "json_schema_valid", info, ctx)?;
    Ok(checked.map_or(Datum::Null, |violation| Datum::Int(violation.is_none().into())))
}

pub(crate) fn report<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(violation) = check(args, "json_schema_validation_report", info, ctx)? else {
        return Ok(Datum::Null);
    };
    let mut members = vec![("valid".to_owned(), Json::Bool(violation.is_none()))];
    if let Some(Violation { document, schema, keyword }) = violation {
        let reason = format!(
            "The JSON document location '{document}' failed requirement '{keyword}' at JSON Schema location '{schema}'"
        );
        members.push(("reason".to_owned(), Json::String(reason)));
        members.push(("schema-location".to_owned(), Json::String(schema)));
        members.push(("document-location".to_owned(), Json::String(document)));
        members.push(("schema-failed-keyword".to_owned(), Json::String(keyword.to_owned())));
    }
    encoded(&Json::Object(Map::from_members(members)))
}
