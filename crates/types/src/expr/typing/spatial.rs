//! Where spatial values may stand. Strings in their place are read as values; beside numbers they are refused, as MySQL does it.

use std::borrow::Borrow;

use crate::expr::Expr;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::function::{ArgClass, Function};
use crate::expr::typing::Typer;
use crate::geometry::GeometryError;

/// Error 1210 if one of an operation's operands is a spatial value.
pub fn refuse_geometries(exprs: &[impl Borrow<Expr>], operation: &str) -> EvalResult<()> {
    match exprs.iter().any(|expr| expr.borrow().ty.is_geometry()) {
        true => Err(EvalError::Geometry(GeometryError::WrongArguments(operation.to_owned()))),
        false => Ok(()),
    }
}

impl Typer {
    /// Refuses spatial values where a function takes numbers, and other values where it puts spatial ones together.
    pub(super) fn check_geometries(&self, function: Function, args: &[Expr]) -> EvalResult<()> {
        match function {
            Function::LineString
            | Function::Polygon
            | Function::MultiPoint
            | Function::MultiLineString
            | Function::MultiPolygon
            | Function::GeometryCollection => match args.iter().find(|arg| !arg.ty.is_geometry()) {
                Some(other) => Err(EvalError::Geometry(GeometryError::NoGeometry(other.to_string()))),
                None => Ok(()),
            },
            Function::Interval => Ok(()),
            Function::Greatest | Function::Least => {
                refuse_geometries(args, &function.name().to_ascii_lowercase())
            }
            _ => {
                let takes_number =
                    |at: usize| matches!(function.info().arg(at), ArgClass::Number | ArgClass::Double);
                let numbers: Vec<&Expr> =
                    args.iter().enumerate().filter(|(at, _)| takes_number(*at)).map(|(_, arg)| arg).collect();
                refuse_geometries(&numbers, &function.name().to_ascii_lowercase())
            }
        }
    }
}
