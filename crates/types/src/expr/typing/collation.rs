//! Which collation an operation on several strings uses, by coercibility.
//! MySQL 8.4 Reference Manual, 12.8.4 "Collation Coercibility in Expressions".

use crate::collation::Charset;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::typing::Typer;
use crate::expr::typing::returns::Ret;
use crate::expr::{Expr, ExprKind, Function};
use crate::sql_type::{Collation, SqlType};

/// How strongly an expression insists on its collation; the smaller wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    /// COLLATE was written.
    Explicit = 0,
    /// A column or user variable.
    Implicit = 2,
    /// USER(), VERSION() and their like.
    System = 3,
    /// A literal or parameter.
    Coercible = 4,
    /// A number or date.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
    /// A mix of different collations: fine until two of them are compared.
    NoCollation = 7,
}

impl Coercibility {
    /// As COERCIBILITY() says it.
    pub const fn number(self) -> i64 {
        match self {
            Self::NoCollation => 1,
            other => other as i64,
        }
    }
}

/// Functions of XML: their results count as a column does.
const XML: [Function; 2] = [Function::ExtractValue, Function::UpdateXml];

/// Functions whose results have nothing of their arguments, although their types are told as if they had.
const MADE_ANEW: [Function; 19] = [
    Function::BitAnd,
    Function::BitOr,
    Function::BitXor,
    Function::BitNot,
    Function::ShiftLeft,
    Function::ShiftRight,
    Function::Uncompress,
    Function::LoadFile,
    Function::Uuid,
    Function::Charset,
    Function::CollationOf,
    Function::FormatBytes,
    Function::FormatPicoTime,
    Function::JsonQuote,
    Function::JsonUnquote,
    Function::JsonType,
    Function::JsonPretty,
    Function::AddTime,
    Function::SubTime,
];

/// A collation and how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derivation {
    pub collation: Collation,
    pub coercibility: Coercibility,
}

impl Expr {
    /// The collation of an expression as a string, and how strongly it holds.
    pub fn derivation(&self, typer: &Typer) -> Derivation {
        let connection = typer.connection_collation;
        let collation = match self.ty {
            SqlType::Null => {
                return Derivation { collation: connection, coercibility: Coercibility::Ignorable };
            }
            _ if self.ty.is_bytes() => Collation::BINARY,
            SqlType::Json => {
                let (collation, coercibility) = (Collation::UTF8MB4_BIN, Coercibility::Implicit);
                return Derivation { collation, coercibility };
            }
            _ => match self.ty.collation() {
                Some(collation) => collation,
                None => return Derivation { collation: connection, coercibility: Coercibility::Numeric },
            },
        };
        Derivation { collation, coercibility: self.coercibility(typer) }
    }

    fn coercibility(&self, typer: &Typer) -> Coercibility {
        let strongest = |parts: &mut dyn Iterator<Item = &Expr>| {
            parts.map(|part| part.derivation(typer).coercibility).min().map_or(Coercibility::Coercible, |c| {
                if c >= Coercibility::Numeric { Coercibility::Coercible } else { c }
            })
        };
        match &self.kind {
            ExprKind::Column(index) if typer.coercible_columns.contains(index) => Coercibility::Coercible,
            ExprKind::Column(index) if typer.explicit_columns.contains(index) => Coercibility::Explicit,
            ExprKind::Column(_) => Coercibility::Implicit,
            ExprKind::Collate(_) => Coercibility::Explicit,
            ExprKind::Cast(_) => Coercibility::Implicit,
            ExprKind::Convert(inner) if inner.ty == SqlType::Json => Coercibility::Implicit,
            ExprKind::Convert(inner)
                if inner.ty.is_string() || inner.ty.is_bytes() || inner.ty.is_coded() =>
            {
                inner.coercibility(typer)
            }
            ExprKind::Call(Function::AssignVariable, _) => Coercibility::Implicit,
            // A variable that was a string before the statement.
            ExprKind::Call(Function::ReadVariable, args)
                if args.last().is_some_and(|before| before.ty.is_string() && !before.is_null_literal()) =>
            {
                Coercibility::Implicit
            }
            ExprKind::Call(function, args) => match function.info().ret {
                _ if MADE_ANEW.contains(function) => Coercibility::Coercible,
                _ if XML.contains(function) => Coercibility::Implicit,
                Ret::System(_) => Coercibility::System,
                Ret::Ascii(_) => Coercibility::Coercible,
                Ret::Bytes(_) if *function != Function::WeightString => Coercibility::Coercible,
                _ if function.changes_its_first() && (args[0].ty.is_string() || args[0].ty.is_bytes()) => {
                    strongest(&mut args[..1].iter())
                }
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

/// How far the texts of an operation have to agree on a collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// They are compared: all must agree.
    Compared,
    /// They make one text, or one of them is chosen: there may be none that all agree on.
    Together,
    /// One is looked for in another: not even two `_bin` collations must agree.
    Searched,
}

/// The collation that an operation over all of `exprs` uses; error 1267 (1270 for three, 1271 for more) if two cannot agree
/// as far as they have to.
pub fn aggregate<'a>(
    exprs: impl IntoIterator<Item = &'a Expr>,
    typer: &Typer,
    operation: &str,
    agreement: Agreement,
) -> EvalResult<Derivation> {
    let compares = agreement == Agreement::Compared;
    let mut result: Option<Derivation> = None;
    let (mut disagree, mut apart) = (false, false);
    let derivations: Vec<_> = exprs.into_iter().map(|expr| expr.derivation(typer)).collect();
    for next in derivations.iter().copied() {
        let Some(so_far) = result else {
            result = Some(next);
            continue;
        };
        let combined = match combine(so_far, next) {
            Some(combined) => combined,
            None if agreement == Agreement::Searched && so_far.coercibility != Coercibility::Explicit => {
                return Ok(Derivation { coercibility: Coercibility::NoCollation, ..so_far });
            }
            None => return Err(mix(&derivations, operation)),
        };
        if combined.coercibility == Coercibility::NoCollation {
            disagree = true;
            // Nor can texts stand together of which neither character set holds the other.
            apart |= so_far.collation.info().charset != next.collation.info().charset;
        }
        result = Some(combined);
    }
    let result = result.unwrap_or(Derivation {
        collation: typer.connection_collation,
        coercibility: Coercibility::Coercible,
    });
    match &derivations[..] {
        [one] if compares && one.coercibility == Coercibility::NoCollation => {
            Err(mix(&[*one, *one], operation))
        }
        // Whatever the others are, the one that was said wins.
        _ if result.coercibility == Coercibility::Explicit => Ok(result),
        all if apart || compares && disagree => Err(mix(all, operation)),
        _ => Ok(result),
    }
}

impl Typer {
    /// Whether a column that shows this value insists on its collation no more than a literal does.
    pub fn is_coercible(&self, expr: &Expr) -> bool {
        (expr.ty.is_string() || expr.ty.is_bytes())
            && expr.derivation(self).coercibility >= Coercibility::Coercible
    }

    /// Whether an expression's collation was given by COLLATE.
    pub fn is_explicit(&self, expr: &Expr) -> bool {
        expr.ty.is_string() && expr.derivation(self).coercibility == Coercibility::Explicit
    }

    /// Error 1267 if texts that make one text insist on collations that cannot stand together.
    pub fn check_together(&self, exprs: &[Expr], operation: &str) -> EvalResult<()> {
        aggregate(exprs, self, operation, Agreement::Together).map(drop)
    }

    /// Whether columns of a set operation agree on a collation.
    pub fn agree_in_union(&self, exprs: &[Expr]) -> EvalResult<bool> {
        if !exprs.iter().all(|expr| expr.ty.is_string()) {
            return Ok(true);
        }
        let derivation = aggregate(exprs, self, "UNION", Agreement::Together)?;
        Ok(derivation.coercibility != Coercibility::NoCollation)
    }

    /// Error 1271, of columns of a set operation that do not.
    pub fn no_agreement_in_union() -> EvalError {
        mix(&[], "UNION")
    }

    /// Texts under the connection's collation.
    pub fn under_connection_collation(&self, expr: Expr) -> Expr {
        self.under_collation(expr, self.connection_collation)
    }
}

/// The rules of `DTCollation::aggregate`: byte strings win among equals; then the stronger; then the larger character set;
/// then `_bin` collations. `None` if two are explicit, or two `_bin` collations of one character set.
fn combine(a: Derivation, b: Derivation) -> Option<Derivation> {
    if (a.collation == Collation::BINARY) != (b.collation == Collation::BINARY) {
        let (bytes, text) = if a.collation == Collation::BINARY { (a, b) } else { (b, a) };
        return Some(if bytes.coercibility <= text.coercibility { bytes } else { text });
    }
    if a.coercibility != b.coercibility {
        return Some(if a.coercibility < b.coercibility { a } else { b });
    }
    let is_of_one_charset = a.collation.info().charset == b.collation.info().charset;
    let are_binary = is_of_one_charset && a.collation.is_binary() && b.collation.is_binary();
    if (a.coercibility == Coercibility::Explicit || are_binary) && a.collation != b.collation {
        return None;
    }
    match a.collation.merge(b.collation) {
        Some(collation) => Some(Derivation { collation, ..a }),
        None => {
            let collation = a.collation.info().charset.binary_collation();
            Some(Derivation { collation, coercibility: Coercibility::NoCollation })
        }
    }
}

#[cold]
fn mix(all: &[Derivation], operation: &str) -> EvalError {
    let show = |d: &Derivation| {
        let derivation = match d.coercibility {
            Coercibility::Explicit => "EXPLICIT",
            Coercibility::NoCollation => "NONE",
            Coercibility::Implicit => "IMPLICIT",
            Coercibility::System => "SYSCONST",
            Coercibility::Coercible => "COERCIBLE",
            Coercibility::Numeric => "NUMERIC",
            Coercibility::Ignorable => "NULL",
        };
        // Numbers, dates and NULL have no collation of their own, but one to be named by.
        let collation = match d.coercibility {
            Coercibility::Numeric => Charset::Latin1.default_collation(),
            Coercibility::Ignorable => Collation::BINARY,
            _ => d.collation,
        };
        format!("{},{derivation}", collation.name())
    };
    EvalError::CollationMix { of: all.iter().map(show).collect(), operation: operation.to_owned() }
}
