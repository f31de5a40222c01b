//! What an item of a select list is called in the result, if the statement gives it no name.

use crate::parse::ast::{Expr, ExprKind, UnaryOp};
use crate::parse::without_version_comments;

/// The bytes of a column's name in a result, as MySQL cuts it.
const LONGEST: usize = 255;

/// The name that MySQL gives an item without an alias: literals, columns and parameters are called by themselves, whatever
/// parentheses and signs `+` stand around them, and all else as it is written in `source`.
pub(crate) fn item_name(expr: &Expr, source: &[u8]) -> String {
    let inner = without_plus(expr);
    let written = inner.span.text(source);
    let bare = written.trim_matches(|c: char| matches!(c, '(' | ')' | '+') || c.is_ascii_whitespace());
    match &inner.kind {
        ExprKind::Column { column, .. } => column.name.clone(),
        ExprKind::Null => "NULL".into(),
        ExprKind::Param(_) => "?".into(),
        ExprKind::Integer(_) | ExprKind::Decimal(_) | ExprKind::Float(_) => bare.into(),
        ExprKind::String { value, charset } if charset.is_none() || is_quoted(bare) => shown(value).into(),
        ExprKind::Bytes(bytes) if is_quoted(bare) => shown(&String::from_utf8_lossy(bytes)).into(),
        ExprKind::Function { name, args } if name.eq_ignore_ascii_case("NAME_CONST") => match &args[..] {
            [Expr { kind: ExprKind::String { value, charset: None }, .. }, _] => value.clone(),
            _ => name.clone(),
        },
        _ => shown(without_version_comments(&expr.span.text(source)).trim()).into(),
    }
}

/// A name without the spaces that it begins with, and not longer than a result's may be.
pub(crate) fn shown(name: &str) -> &str {
    let name = name.trim_start_matches(|c: char| c.is_ascii() && !c.is_ascii_graphic());
    &name[..name.floor_char_boundary(LONGEST)]
}

fn without_plus(mut expr: &Expr) -> &Expr {
    while let ExprKind::Unary { op: UnaryOp::Plus, expr: inner } = &expr.kind {
        expr = inner;
    }
    expr
}

/// Whether the literal behind an introducer is a string, and not a hexadecimal one.
fn is_quoted(introduced: &str) -> bool {
    let literal = introduced.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    literal.trim_start().starts_with(['\'', '"'])
}
