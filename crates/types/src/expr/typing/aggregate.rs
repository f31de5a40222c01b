//! The common type of alternatives: CASE, COALESCE, GREATEST, UNION.
//! MySQL 8.4 Reference Manual, 14.5 "Flow Control Functions", "Return type".

use crate::datum::Datum;
use crate::expr::error::EvalResult;
use crate::expr::typing::arith::{Digits, shown_decimals};
use crate::expr::typing::collation::{self, Agreement, Coercibility, Derivation};
use crate::expr::typing::{Typer, ValueClass};
use crate::expr::{Expr, ExprKind};
use crate::sql_type::{Collation, IntWidth, LobSize, RealFormat, SqlType};

/// A string type for so many characters: a VARCHAR up to 65,535 bytes at 4 bytes per character.
pub(crate) fn string_type(chars: u64, collation: Collation) -> SqlType {
    match chars {
        0..=16_383 => SqlType::VarChar { len: chars as u32, collation },
        16_384..=4_194_303 => SqlType::Text { size: LobSize::Medium, collation },
        _ => SqlType::Text { size: LobSize::Long, collation },
    }
}

/// A byte string type for so many bytes.
pub(crate) fn bytes_type(bytes: u64) -> SqlType {
    match bytes {
        0..=65_535 => SqlType::VarBinary { len: bytes as u32 },
        65_536..=16_777_215 => SqlType::Blob { size: LobSize::Medium },
        _ => SqlType::Blob { size: LobSize::Long },
    }
}

/// The most characters (bytes, for byte strings) that a value's text can have.
pub(crate) fn text_len(ty: &SqlType) -> u64 {
    let fraction = |fsp: u8| if fsp > 0 { u64::from(fsp) + 1 } else { 0 };
    match *ty {
        SqlType::Null => 0,
        // A column of BOOL holds any TINYINT.
        SqlType::Bool => 4,
        SqlType::Int { width, unsigned } => match (width, unsigned) {
            (IntWidth::W8, false) => 4,
            (IntWidth::W8, true) => 3,
            (IntWidth::W16, false) => 6,
            (IntWidth::W16, true) => 5,
            (IntWidth::W24, false) => 8,
            (IntWidth::W24, true) => 8,
            (IntWidth::W32, false) => 11,
            (IntWidth::W32, true) => 10,
            (IntWidth::W64, _) => 20,
        },
        SqlType::Decimal { precision, scale, unsigned } => {
            u64::from(precision) + u64::from(scale > 0) + u64::from(!unsigned)
        }
        SqlType::Float(_) => 12,
        SqlType::Double(_) => 23,
        SqlType::Char { len, .. } | SqlType::VarChar { len, .. } => len.into(),
        SqlType::Binary { len } | SqlType::VarBinary { len } => len.into(),
        // As many characters as it has bytes, if each takes one.
        SqlType::Text { size, .. } => size.max_bytes(),
        SqlType::Blob { size } => size.max_bytes(),
        SqlType::Date => 10,
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => 19 + fraction(fsp),
        SqlType::Time { fsp } => 10 + fraction(fsp),
        SqlType::Year => 4,
        SqlType::Enum(members) => members.longest().into(),
        SqlType::Set(members) => members.joined_len().into(),
        SqlType::Bit { len } => u64::from(len).div_ceil(8),
        SqlType::Json | SqlType::Geometry { .. } => u64::from(u32::MAX),
    }
}

/// As [`text_len`], of an expression: an integer that is written there has as many characters as it has, and its sign.
pub(crate) fn text_len_of(expr: &Expr) -> u64 {
    let digits = |v: u64| u64::from(v.checked_ilog10().unwrap_or(0)) + 1;
    match (expr.as_literal(), expr.ty) {
        (Some(Datum::Int(v)), SqlType::Int { .. }) => digits(v.unsigned_abs()) + 1,
        (Some(Datum::UInt(v)), SqlType::Int { .. }) => digits(*v),
        _ => text_len(&expr.ty),
    }
}

impl Typer {
    /// The type that alternatives have together.
    pub fn common_type(&self, exprs: &[Expr], operation: &str) -> EvalResult<SqlType> {
        let is_text = |e: &Expr| matches!(ValueClass::of(&e.ty), ValueClass::Text | ValueClass::Bytes);
        let derivation = match exprs.iter().any(is_text) {
            true => collation::aggregate(exprs, self, operation, Agreement::Together)?,
            false => {
                Derivation { collation: self.connection_collation, coercibility: Coercibility::Coercible }
            }
        };
        let written = |expr: &Expr| match expr.kind {
            ExprKind::Column(index) => self.written_integers.get(&index).cloned(),
            _ => None,
        };
        if exprs.iter().any(|expr| written(expr).is_some()) {
            let exprs: Vec<_> =
                exprs.iter().map(|expr| written(expr).unwrap_or_else(|| expr.clone())).collect();
            return self.common_type(&exprs, operation);
        }
        // Beside texts, what is written as an integer is as long as its text.
        let is_string = |e: &Expr| ValueClass::of(&e.ty) == ValueClass::Text;
        let is_bytes = |e: &Expr| ValueClass::of(&e.ty) == ValueClass::Bytes;
        let has_text = exprs.iter().any(is_string) && !exprs.iter().any(is_bytes);
        // Bytes that are written there give way to a text that is a column's, as in CONCAT.
        let gives_way = exprs.iter().any(is_string)
            && derivation.coercibility < Coercibility::Coercible
            && derivation.collation != Collation::BINARY;
        let type_of = |expr: &Expr| match (expr.as_literal(), expr.ty) {
            (Some(_), SqlType::Int { .. }) if has_text => {
                SqlType::VarChar { len: text_len_of(expr) as u32, collation: derivation.collation }
            }
            (_, ty) if gives_way && ty.is_bytes() => string_type(text_len(&ty), derivation.collation),
            (_, ty) => ty,
        };
        if exprs.iter().any(|expr| matches!(expr.ty, SqlType::Decimal { .. }))
            && exprs.iter().all(|expr| is_exact_number(&expr.ty))
        {
            let digits = exprs.iter().filter(|expr| expr.ty != SqlType::Null).map(Digits::of);
            return Ok(digits.reduce(Digits::union).map_or(SqlType::Null, Digits::decimal));
        }
        let ty = exprs.iter().fold(SqlType::Null, |so_far, expr| {
            // A literal counts its own digits where it meets a decimal.
            match (so_far, expr.as_literal(), &expr.ty) {
                (SqlType::Decimal { .. } | SqlType::Bit { .. }, Some(_), SqlType::Int { .. }) => {
                    Digits::of_type(&so_far).union(Digits::of(expr)).decimal()
                }
                _ => union_type(so_far, type_of(expr), derivation.collation),
            }
        });
        // Documents that become texts keep the collation of their texts.
        if ty.is_string() && exprs.iter().any(|expr| expr.ty == SqlType::Json) {
            return Ok(with_collation(ty, Collation::UTF8MB4_BIN));
        }
        Ok(match ty.collation() {
            None if ty.is_geometry() => SqlType::GEOMETRY,
            Some(_) => with_collation(ty, derivation.collation),
            None => ty,
        })
    }
}

const fn is_exact_number(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Null | SqlType::Bool | SqlType::Int { .. } | SqlType::Decimal { .. })
}

fn with_collation(ty: SqlType, to: Collation) -> SqlType {
    match ty {
        _ if to == Collation::BINARY => bytes_type(text_len(&ty) * 4),
        SqlType::Char { len, .. } => SqlType::Char { len, collation: to },
        SqlType::VarChar { len, .. } => SqlType::VarChar { len, collation: to },
        SqlType::Text { size, .. } => SqlType::Text { size, collation: to },
        ty => ty,
    }
}

/// The type that holds values of both types; `collation` is for strings that come of it.
pub fn union_type(a: SqlType, b: SqlType, collation: Collation) -> SqlType {
    use ValueClass as C;
    if a == b {
        return a;
    }
    match (C::of(&a), C::of(&b)) {
        (C::Null, _) => b,
        (_, C::Null) => a,
        (C::Int, C::Int) if a.is_coded() || b.is_coded() => union_coded(a, b),
        (C::Int, C::Int) => union_int(a, b),
        (C::Int | C::Decimal, C::Int | C::Decimal) => {
            Digits::of_type(&a).union(Digits::of_type(&b)).decimal()
        }
        (C::Double, C::Int | C::Decimal | C::Double) | (C::Int | C::Decimal, C::Double) => union_float(a, b),
        (C::Date | C::DateTime | C::Timestamp | C::Time, C::Date | C::DateTime | C::Timestamp | C::Time) => {
            union_temporal(a, b)
        }
        (C::Json, _) | (_, C::Json) => SqlType::JSON_TEXT,
        _ if a.is_geometry() && b.is_geometry() => SqlType::GEOMETRY,
        (C::Bytes, _) | (_, C::Bytes) => {
            let longest = byte_len(&a).max(byte_len(&b));
            let is_lob = [a, b].iter().any(|ty| matches!(ty, SqlType::Text { .. } | SqlType::Blob { .. }));
            if is_lob { SqlType::Blob { size: LobSize::for_bytes(longest) } } else { bytes_type(longest) }
        }
        _ => union_string(a, b, collation),
    }
}

pub(crate) fn byte_len(ty: &SqlType) -> u64 {
    if ty.is_string() { text_len(ty) * 4 } else { text_len(ty) }
}

fn union_string(a: SqlType, b: SqlType, collation: Collation) -> SqlType {
    let longest = text_len(&a).max(text_len(&b));
    match [a, b].iter().any(|ty| matches!(ty, SqlType::Text { .. })) {
        true => SqlType::Text { size: LobSize::for_bytes(longest * 4), collation },
        false => string_type(longest, collation),
    }
}

/// BITs are as long as the longest; beside other integers they are decimals.
fn union_coded(a: SqlType, b: SqlType) -> SqlType {
    match (a, b) {
        (SqlType::Bit { len: a }, SqlType::Bit { len: b }) => SqlType::Bit { len: a.max(b) },
        _ => Digits::of_type(&a).union(Digits::of_type(&b)).decimal(),
    }
}

/// Of different signs, the next wider signed type; beyond BIGINT a decimal.
fn union_int(a: SqlType, b: SqlType) -> SqlType {
    let parts = |ty: SqlType| match ty {
        SqlType::Int { width, unsigned } => (width, unsigned),
        SqlType::Year => (IntWidth::W16, true),
        _ => (IntWidth::W8, false),
    };
    let ((a_width, a_unsigned), (b_width, b_unsigned)) = (parts(a), parts(b));
    let width = a_width.max(b_width);
    if a_unsigned == b_unsigned {
        return SqlType::Int { width, unsigned: a_unsigned };
    }
    let unsigned_width = if a_unsigned { a_width } else { b_width };
    let signed_width = if a_unsigned { b_width } else { a_width };
    if unsigned_width < signed_width {
        return SqlType::Int { width: signed_width, unsigned: false };
    }
    match unsigned_width {
        IntWidth::W8 => SqlType::Int { width: IntWidth::W16, unsigned: false },
        IntWidth::W16 => SqlType::Int { width: IntWidth::W24, unsigned: false },
        IntWidth::W24 => SqlType::Int { width: IntWidth::W32, unsigned: false },
        IntWidth::W32 => SqlType::BIGINT,
        IntWidth::W64 => SqlType::Decimal { precision: 20, scale: 0, unsigned: false },
    }
}

fn union_float(a: SqlType, b: SqlType) -> SqlType {
    let fits_float = |ty: SqlType| match ty {
        SqlType::Float(_) | SqlType::Bool => true,
        // MySQL's table of result types, which has no pattern.
        SqlType::Int { width, .. } => width != IntWidth::W32,
        _ => false,
    };
    let decimals = shown_decimals(&a).zip(shown_decimals(&b)).map(|(a, b)| a.max(b));
    let real = decimals.map_or(RealFormat::PLAIN, RealFormat::shown_with);
    match fits_float(a) && fits_float(b) {
        true => SqlType::Float(real),
        false => SqlType::Double(real),
    }
}

fn union_temporal(a: SqlType, b: SqlType) -> SqlType {
    let fsp = fsp_of(&a).max(fsp_of(&b));
    match (a, b) {
        (SqlType::Time { .. }, SqlType::Time { .. }) => SqlType::Time { fsp },
        (SqlType::Timestamp { .. }, SqlType::Timestamp { .. }) => SqlType::Timestamp { fsp },
        _ => SqlType::DateTime { fsp },
    }
}

/// Fractional digits of a type as a time: those of temporal types and decimals, 6 for what could have any number.
pub(crate) fn fsp_of(ty: &SqlType) -> u8 {
    match *ty {
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } | SqlType::Time { fsp } => fsp,
        SqlType::Decimal { scale, .. } => scale.min(6),
        SqlType::Float(_) | SqlType::Double(_) => 6,
        _ if ty.is_string() || ty.is_bytes() || ty.members().is_some() => 6,
        _ => 0,
    }
}

/// Fractional digits of an expression as a time; a string literal counts its own.
pub(crate) fn fsp_of_expr(expr: &Expr) -> u8 {
    let of_text =
        |text: &str| text.rsplit_once('.').map_or(0, |(_, fraction)| fraction.trim_end().len().min(6) as u8);
    if let Some(Datum::Str(text)) = expr.as_literal() {
        return of_text(text);
    }
    if expr.ty.is_string() && expr.is_constant() {
        let folded = expr.clone().fold();
        if let Some(Datum::Str(text)) = folded.as_literal() {
            return of_text(text);
        }
    }
    fsp_of(&expr.ty)
}
