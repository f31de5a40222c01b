//! Syntax trees as MySQL prints them where it keeps them: all parentheses, names in backticks, functions by their first names,
//! and NOT as far inside as it goes.
//!
//! ```text
//!  view      select `d`.`t`.`a` AS `a` from `d`.`t` where (`d`.`t`.`b` = 'x')      kept, information_schema
//!            select `t`.`a` AS `a` from `t` where (`t`.`b` = 'x')                  SHOW CREATE VIEW
//!  table     (`b` = _utf8mb4'x')                                                   expressions of a table's definition
//! ```
//!
//! The text parses to a tree that means the same, in any SQL mode but ANSI_QUOTES and NO_BACKSLASH_ESCAPES. What a tree must be
//! like for its names to be printed, [`qualify`](crate::qualify) says.

mod expr;
mod query;
#[cfg(test)]
mod tests;

use avocet_types::collation::Charset;
use avocet_types::expr::Function;

use crate::parse::ast::{BinaryOp, Expr, ExprKind, Query, UnaryOp};
use expr::Printer;

/// What differs between the places where trees are printed.
#[derive(Clone, Copy, Debug)]
pub struct Style<'s> {
    pub names: Names<'s>,
    /// The character set that strings without an introducer are printed with.
    pub strings: Option<Charset>,
    /// That of the connection, which CAST(… AS CHAR) means.
    pub charset: Charset,
    /// Around names.
    pub quote: char,
}

#[derive(Clone, Copy, Debug)]
pub enum Names<'s> {
    /// Columns alone.
    Bare,
    /// With their tables, and these with their databases but for one.
    Qualified { left_out: Option<&'s str> },
}

/// An expression's text. `source` is what it was parsed from.
pub fn expr(expr: &Expr, source: &[u8], style: Style<'_>) -> String {
    let mut printer = Printer { source, style, text: String::new(), in_expression: false };
    printer.value(expr);
    printer.text
}

/// A query's text. `source` is what it was parsed from.
pub fn query(query: &Query, source: &[u8], style: Style<'_>) -> String {
    let mut printer = Printer { source, style, text: String::new(), in_expression: false };
    printer.query(query);
    printer.text
}

/// Functions that are conditions.
const CONDITIONS: &[Function] = &[
    Function::IsNull,
    Function::RegexpLike,
    Function::JsonValid,
    Function::JsonContains,
    Function::JsonContainsPath,
    Function::JsonOverlaps,
    Function::JsonSchemaValid,
    Function::JsonMemberOf,
    Function::IsUuid,
    Function::IsIpv4,
    Function::IsIpv4Compat,
    Function::IsIpv4Mapped,
    Function::IsIpv6,
];

/// Whether an expression is a condition as MySQL has it: a comparison, a test, or several of them.
pub fn is_condition(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_)
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Is { .. }
        | ExprKind::InList { .. }
        | ExprKind::InSubquery { .. }
        | ExprKind::Quantified { .. }
        | ExprKind::Exists(_)
        | ExprKind::Between { .. }
        | ExprKind::Like { .. }
        | ExprKind::Regexp { .. } => true,
        ExprKind::Unary { op, .. } => *op == UnaryOp::Not,
        ExprKind::Binary { op, .. } => op.is_comparison() || *op == BinaryOp::Xor,
        ExprKind::Function { name, .. } => {
            Function::lookup(name).is_some_and(|function| CONDITIONS.contains(&function))
        }
        _ => false,
    }
}
