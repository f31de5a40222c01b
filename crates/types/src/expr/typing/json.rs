//! Values as JSON: what functions put into documents, and what documents are compared with.

use crate::convert::{ConvertContext, Stored, store};
use crate::datum::Datum;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::json::value::OnProblem;
use crate::expr::function::Function;
use crate::expr::typing::Typer;
use crate::expr::{Expr, ExprKind};
use crate::json::Json;
use crate::sql_type::{Collation, SqlType};

/// The option of ST_ASGEOJSON by which a document names its reference system.
const LONG_SYSTEM: i64 = 4;

/// What JSON_VALUE gives where there is nothing, or no value of the type.
#[derive(Clone, Debug)]
pub enum OnJsonProblem {
    Null,
    Error,
    Default(Expr),
}

impl Typer {
    /// A value as a document: JSON as it is, other types as scalars. Conditions are true or false, not numbers.
    pub fn json(&self, expr: Expr) -> Expr {
        if expr.ty == SqlType::Json {
            return expr;
        }
        if expr.is_null_literal() {
            return Expr::literal(Datum::Null, SqlType::Json);
        }
        if expr.ty.is_geometry() {
            let nullable = expr.nullable;
            let all = vec![expr, Expr::int(i64::from(i32::MAX)), Expr::int(LONG_SYSTEM)];
            return Expr::new(ExprKind::Call(Function::StAsGeoJson, all), SqlType::Json, nullable);
        }
        // A member of ENUM or SET is its name; bits are what they are.
        let expr = if expr.ty.members().is_some() { self.text(expr) } else { expr };
        // Bits that are written as such are bytes like others.
        let expr = match (&expr.kind, expr.ty) {
            (ExprKind::Literal(_), SqlType::Binary { len }) => {
                Expr { ty: SqlType::VarBinary { len }, ..expr }
            }
            _ => expr,
        };
        let nullable = expr.nullable;
        match is_condition(&expr) {
            true => self.json_truth(expr),
            false => Expr::new(ExprKind::Convert(Box::new(expr)), SqlType::Json, nullable),
        }
    }

    /// A truth value as a document that is true or false.
    pub fn json_truth(&self, expr: Expr) -> Expr {
        let nullable = expr.nullable;
        Expr::new(ExprKind::Call(Function::JsonOfTruth, vec![expr]), SqlType::Json, nullable)
    }

    /// Arguments of functions that take names or paths and values in turn, values from position `first` on.
    pub(super) fn json_pairs(&self, args: Vec<Expr>, first: usize) -> Vec<Expr> {
        let one = |(at, arg): (usize, Expr)| match (at + 2 - first) % 2 {
            0 => self.json(arg),
            _ if arg.ty.is_bytes() => arg,
            _ => self.text(arg),
        };
        args.into_iter()
            .enumerate()
            .map(|(at, arg)| if at + 1 < first { arg } else { one((at, arg)) })
            .collect()
    }

    /// JSON_QUOTE and JSON_UNQUOTE take strings.
    pub(super) fn json_string(&self, function: Function, arg: Expr) -> EvalResult<Expr> {
        let is_document = function == Function::JsonUnquote && arg.ty == SqlType::Json;
        if is_document || arg.ty.is_string() || arg.is_null_literal() {
            return Ok(arg);
        }
        if arg.ty.is_bytes() {
            return Ok(self.under_collation(arg, self.connection_collation));
        }
        let function = if function == Function::JsonQuote { "json_quote" } else { "json_unquote" };
        Err(EvalError::IncorrectType { argument: 1, function })
    }

    /// `JSON_VALUE(document, path RETURNING type … ON EMPTY … ON ERROR)`.
    pub fn json_value(
        &self,
        document: Expr,
        path: Expr,
        ty: SqlType,
        on_empty: OnJsonProblem,
        on_error: OnJsonProblem,
    ) -> EvalResult<Expr> {
        let mut args = vec![document, path];
        for problem in [on_empty, on_error] {
            let (what, default) = match problem {
                OnJsonProblem::Null => (OnProblem::Null, Expr::literal(Datum::Null, ty)),
                OnJsonProblem::Error => (OnProblem::Error, Expr::literal(Datum::Null, ty)),
                OnJsonProblem::Default(default) => (OnProblem::Default, default_of(default, ty)?),
            };
            args.push(Expr::int(what.code()));
            args.push(default);
        }
        Ok(Expr::new(ExprKind::Call(Function::JsonValue, args), ty, true))
    }

    /// The words TRUE and FALSE where a document is asked for; elsewhere they are numbers.
    pub fn json_word(&self, value: bool) -> Expr {
        let document = Json::Bool(value).encode().expect("a scalar has room");
        Expr::literal(Datum::Bytes(document.into()), SqlType::Json)
    }

    /// What JSON_VALUE returns if nothing else is said.
    pub const JSON_VALUE_TYPE: SqlType =
        SqlType::VarChar { len: 512, collation: Collation::UTF8MB4_0900_BIN };
}

/// A default, as a literal of the type that it stands in for (1292 if it is none).
fn default_of(default: Expr, ty: SqlType) -> EvalResult<Expr> {
    let value = default.fold();
    let incorrect = |value: &Datum<'_>| {
        let kind = match ty {
            SqlType::Int { unsigned: false, .. } => "INTEGER SIGNED",
            SqlType::Int { unsigned: true, .. } => "INTEGER UNSIGNED",
            SqlType::Decimal { .. } => "DECIMAL",
            SqlType::Float(_) | SqlType::Double(_) => "DOUBLE",
            ty if ty.is_temporal() => "datetime",
            _ => "CHAR",
        };
        let value = crate::text::to_text(value, &SqlType::Null, crate::temporal::TimeZone::UTC);
        EvalError::TruncatedValue { kind, value: value.unwrap_or_default().into_owned() }
    };
    let Some(literal) = value.as_literal() else { return Err(incorrect(&Datum::Null)) };
    if matches!((literal, ty), (Datum::Decimal(number), SqlType::Int { .. }) if number.floor() != *number) {
        return Err(incorrect(literal));
    }
    match store(literal.clone(), &value.ty, &ty, &ConvertContext::STRICT_UTC) {
        Ok(Stored { value, warning: None }) => Ok(Expr::literal(value.into_owned(), ty)),
        _ => Err(incorrect(literal)),
    }
}

/// Whether MySQL takes it for a condition: comparisons and the like, and tests by functions.
fn is_condition(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(function, _) => matches!(
            function,
            Function::RegexpLike
                | Function::JsonContains
                | Function::JsonContainsPath
                | Function::JsonOverlaps
                | Function::JsonMemberOf
                | Function::JsonValid
                | Function::JsonSchemaValid
        ),
        _ => expr.is_truth(),
    }
}
