//! Which collation an operation on several strings uses, by coercibility.
//! MySQL 8.4 Reference Manual, 12.8.4 "Collation Coercibility in Expressions".

use crate::expr::error::{EvalError, EvalResult};
use crate::expr::function::Ret;
use crate::expr::{Expr, ExprKind};
use crate::sql_type::{Collation, SqlType};

/// How strongly an expression insists on its collation; the smaller wins. The numbers are those of COERCIBILITY().
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    /// COLLATE was written.
    Explicit = 0,
    /// A mix of different collations: fine until something compares it.
    NoCollation = 1,
    /// A column.
    Implicit = 2,
    /// USER(), VERSION() and their like.
    System = 3,
    /// A literal or parameter.
    Coercible = 4,
    /// A number or date.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
}

/// A collation and how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derivation {
    pub collation: Collation,
    pub coercibility: Coercibility,
}

impl Expr {
    /// The collation of an expression as a string, and how strongly it holds.
    pub fn derivation(&self, connection: Collation) -> Derivation {
        let collation = match self.ty {
            SqlType::Null => {
                return Derivation { collation: connection, coercibility: Coercibility::Ignorable };
            }
            _ if self.ty.is_bytes() => Collation::BINARY,
            _ => match self.ty.collation() {
                Some(collation) => collation,
                None => return Derivation { collation: connection, coercibility: Coercibility::Numeric },
            },
        };
        Derivation { collation, coercibility: self.coercibility(connection) }
    }

    fn coercibility(&self, connection: Collation) -> Coercibility {
        let strongest = |parts: &mut dyn Iterator<Item = &Expr>| {
            parts.map(|part| part.derivation(connection).coercibility).min().map_or(
                Coercibility::Coercible,
                |c| {
                    if c >= Coercibility::Numeric { Coercibility::Coercible } else { c }
                },
            )
        };
        match &self.kind {
            ExprKind::Column(_) => Coercibility::Implicit,
            ExprKind::Collate(_) => Coercibility::Explicit,
            ExprKind::Cast(inner) => match inner.ty.is_string() {
                true => inner.coercibility(connection).max(Coercibility::Implicit),
                false => Coercibility::Implicit,
            },
            ExprKind::Convert(inner) if inner.ty.is_string() || inner.ty.is_bytes() => {
                inner.coercibility(connection)
            }
            ExprKind::Call(function, args) => match function.info().ret {
                Ret::System(_) => Coercibility::System,
                Ret::Ascii(_) => Coercibility::Coercible,
                _ => strongest(&mut args.iter()),
            },
            ExprKind::Case { branches, otherwise } => {
                strongest(&mut branches.iter().map(|(_, then)| then).chain(otherwise.as_deref()))
            }
            ExprKind::Coalesce(args) => strongest(&mut args.iter()),
            _ => Coercibility::Coercible,
        }
    }
}

/// The collation that an operation over all of `exprs` uses; error 1267 if they cannot agree and `operation` compares.
pub fn aggregate<'a>(
    exprs: impl IntoIterator<Item = &'a Expr>,
    connection: Collation,
    operation: &str,
    compares: bool,
) -> EvalResult<Derivation> {
    let mut result: Option<Derivation> = None;
    let mut disagreement = None;
    for expr in exprs {
        let next = expr.derivation(connection);
        let Some(so_far) = result else {
            result = Some(next);
            continue;
        };
        let combined = combine(so_far, next, operation)?;
        if combined.coercibility == Coercibility::NoCollation {
            disagreement.get_or_insert((so_far, next));
        }
        result = Some(combined);
    }
    let result =
        result.unwrap_or(Derivation { collation: connection, coercibility: Coercibility::Coercible });
    match (result.coercibility, disagreement) {
        (Coercibility::NoCollation, Some((a, b))) if compares => Err(mix(a, b, operation)),
        (Coercibility::NoCollation, None) if compares => Err(mix(result, result, operation)),
        _ => Ok(result),
    }
}

/// The rules of `DTCollation::aggregate`: byte strings win among equals; then the stronger; then the larger character set;
/// then `_bin` collations.
fn combine(a: Derivation, b: Derivation, operation: &str) -> EvalResult<Derivation> {
    if (a.collation == Collation::BINARY) != (b.collation == Collation::BINARY) {
        let (bytes, text) = if a.collation == Collation::BINARY { (a, b) } else { (b, a) };
        return Ok(if bytes.coercibility <= text.coercibility { bytes } else { text });
    }
    if a.coercibility != b.coercibility {
        return Ok(if a.coercibility < b.coercibility { a } else { b });
    }
    let same_charset = a.collation.info().charset == b.collation.info().charset;
    if a.coercibility == Coercibility::Explicit && same_charset && a.collation != b.collation {
        return Err(mix(a, b, operation));
    }
    match a.collation.merge(b.collation) {
        Some(collation) => Ok(Derivation { collation, ..a }),
        None => Ok(Derivation { collation: Collation::UTF8MB4_BIN, coercibility: Coercibility::NoCollation }),
    }
}

#[cold]
fn mix(a: Derivation, b: Derivation, operation: &str) -> EvalError {
    let show = |d: Derivation| {
        let derivation = match d.coercibility {
            Coercibility::Explicit => "EXPLICIT",
            Coercibility::NoCollation => "NONE",
            Coercibility::Implicit => "IMPLICIT",
            Coercibility::System => "SYSCONST",
            Coercibility::Coercible => "COERCIBLE",
            Coercibility::Numeric => "NUMERIC",
            Coercibility::Ignorable => "IGNORABLE",
        };
        format!("{},{derivation}", d.collation.name())
    };
    EvalError::CollationMix { left: show(a), right: show(b), operation: operation.to_owned() }
}
