//! CAST and CONVERT.

use crate::datum::Datum;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::typing::aggregate::{bytes_type, string_type, text_len, text_len_of};
use crate::expr::typing::arith::hybrid_number;
use crate::expr::typing::{Typer, refuse_geometries, rounds_datetime};
use crate::expr::{Expr, ExprKind};
use crate::sql_type::{Collation, SqlType};

/// What CAST can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastTarget {
    Signed,
    Unsigned,
    /// `None` is CAST's default of (10, 0).
    Decimal(Option<(u64, u64)>),
    Float,
    Double,
    /// Length in characters, collation (the connection's if not given).
    Char(Option<u64>, Option<Collation>),
    /// Length in bytes.
    Binary(Option<u64>),
    Date,
    DateTime(u64),
    Time(u64),
    Year,
    Json,
}

impl Typer {
    /// `CAST(expr AS target)`.
    pub fn cast(&self, expr: Expr, target: CastTarget) -> EvalResult<Expr> {
        self.check_cast(&expr, target)?;
        let expr = match target {
            CastTarget::Char(..)
            | CastTarget::Binary(_)
            | CastTarget::Date
            | CastTarget::DateTime(_)
            | CastTarget::Time(_) => self.decoded(expr),
            _ => expr,
        };
        match target {
            CastTarget::Signed => refuse_geometries(&[&expr], "cast_as_signed")?,
            CastTarget::Unsigned => refuse_geometries(&[&expr], "cast_as_unsigned")?,
            _ => {}
        }
        let expr = match target {
            CastTarget::Char(..) => self.with_zeros(expr),
            CastTarget::Signed
            | CastTarget::Unsigned
            | CastTarget::Decimal(_)
            | CastTarget::Float
            | CastTarget::Double
            | CastTarget::Year => hybrid_number(&expr).unwrap_or(expr),
            _ => expr,
        };
        let expr = match target {
            CastTarget::Signed | CastTarget::Unsigned => self.extreme_as_number(expr),
            CastTarget::Decimal(_) | CastTarget::Float | CastTarget::Double => self.moment_as_number(expr),
            CastTarget::Date | CastTarget::DateTime(_) | CastTarget::Time(_) => self.computed_year(expr),
            _ => expr,
        };
        let ty = self.cast_type(&expr, target)?;
        if target == CastTarget::Json && !expr.ty.is_string() {
            return Ok(Expr { nullable: true, ..self.json(expr) });
        }
        // A timestamp has to come into the session's time zone first.
        let expr = match expr.ty {
            SqlType::Timestamp { fsp } => self.convert(expr, SqlType::DateTime { fsp }),
            _ => expr,
        };
        let from_text = expr.ty.is_string() || expr.ty.is_bytes();
        let can_fail = ty.is_temporal()
            || ty == SqlType::Year
            || matches!(target, CastTarget::Char(..)) && expr.ty.is_bytes();
        let rounds = rounds_datetime(&expr.ty, &ty);
        // MySQL tells of none that its casts to dates, times and documents are never NULL.
        let is_told =
            matches!(ty, SqlType::Date | SqlType::DateTime { .. } | SqlType::Time { .. } | SqlType::Json);
        let nullable =
            expr.nullable || is_told || can_fail && (from_text || rounds || !expr.ty.is_temporal());
        Ok(Expr::new(ExprKind::Cast(Box::new(expr)), ty, nullable))
    }

    /// The type that JSON_VALUE returns.
    pub fn cast_type_of(&self, target: CastTarget) -> EvalResult<SqlType> {
        self.cast_type(&Expr::literal(Datum::Null, Self::JSON_VALUE_TYPE), target)
    }

    fn cast_type(&self, expr: &Expr, target: CastTarget) -> EvalResult<SqlType> {
        Ok(match target {
            CastTarget::Signed => SqlType::BIGINT,
            CastTarget::Unsigned => SqlType::BIGINT_UNSIGNED,
            CastTarget::Decimal(None) => SqlType::Decimal { precision: 10, scale: 0, unsigned: false },
            CastTarget::Decimal(Some((precision, scale))) => decimal_type(precision, scale)?,
            CastTarget::Float => SqlType::FLOAT,
            CastTarget::Double => SqlType::DOUBLE,
            CastTarget::Char(_, Some(Collation::BINARY)) => bytes_type(text_len(&expr.ty)),
            CastTarget::Char(len, collation) => {
                let collation = collation.unwrap_or(self.connection_collation);
                string_type(len.unwrap_or_else(|| text_len_of(expr)), collation)
            }
            CastTarget::Binary(Some(len)) => match u32::try_from(len) {
                Ok(len) if len <= 65_535 => SqlType::Binary { len },
                _ => bytes_type(len),
            },
            CastTarget::Binary(None) => {
                bytes_type(if expr.ty.is_string() { text_len(&expr.ty) * 4 } else { text_len(&expr.ty) })
            }
            CastTarget::Date => SqlType::Date,
            CastTarget::DateTime(fsp) => SqlType::DateTime { fsp: fsp_of(fsp, "CAST")? },
            CastTarget::Time(fsp) => SqlType::Time { fsp: fsp_of(fsp, "CAST")? },
            CastTarget::Year => SqlType::Year,
            CastTarget::Json => SqlType::Json,
        })
    }
}

fn decimal_type(precision: u64, scale: u64) -> EvalResult<SqlType> {
    let expr = || "CAST".to_owned();
    if scale > 30 {
        return Err(EvalError::TooBigScale { scale, expr: expr(), max: 30 });
    }
    if precision > 65 {
        return Err(EvalError::TooBigPrecision { precision, expr: expr(), max: 65 });
    }
    let precision = if precision == 0 && scale == 0 { 10 } else { precision };
    if scale > precision {
        return Err(EvalError::ScaleAbovePrecision(String::new()));
    }
    Ok(SqlType::Decimal { precision: precision as u8, scale: scale as u8, unsigned: false })
}

/// Fractional seconds as a statement gives them.
pub(crate) fn fsp_of(fsp: u64, function: &str) -> EvalResult<u8> {
    match fsp {
        0..=6 => Ok(fsp as u8),
        _ => Err(EvalError::TooBigPrecision { precision: fsp, expr: function.to_lowercase(), max: 6 }),
    }
}
