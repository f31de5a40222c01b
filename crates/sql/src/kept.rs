//! Expressions that definitions keep: defaults, generated columns and CHECK constraints.
//!
//! ```text
//!  CREATE, ALTER ─▶ syntax tree ─ allowed? ─ print ─▶ canonical text, in the catalog ─▶ SHOW CREATE, information_schema
//!                                                           └── parse, bind (rules) ─▶ RowRules, for who writes rows
//! ```
//!
//! What is kept is text in MySQL's canonical form: that of its SHOW CREATE TABLE. It means the same in every session: names and
//! strings are quoted in one way, whatever the SQL mode, and strings have their character sets with them.

pub mod allowed;
pub mod partitions;
mod rules;

use std::collections::BTreeSet;

use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
use avocet_types::names;
use avocet_types::{ColumnDef, DefaultValue, TableDef};

use crate::parse::ast::{Expr, ExprKind};
use crate::parse::{ParseError, grow_stack, parse_expr};
use crate::print::{self, Names, Style};

pub(crate) use rules::bind_expr;
pub use rules::{compile, type_of};

/// An expression's canonical text. `source` is what it was parsed from, whose strings are in the character set `charset`.
pub fn canonical(expr: &Expr, source: &[u8], charset: Charset) -> String {
    let style = Style { names: Names::Bare, strings: Some(charset), charset, quote: '`' };
    print::expr(expr, source, style)
}

/// The syntax tree of a kept text.
pub fn parse(text: &str) -> Result<Expr, SqlError> {
    // Text that does not parse comes from damaged bytes, or from a release that knows more.
    parse_expr(text.as_bytes(), SqlMode::DEFAULT).map_err(|error| {
        let why = match error {
            ParseError::Refused(error) => return *error,
            other => format!("{other:?}"),
        };
        ErrorCode::UNKNOWN_ERROR.because(format!("the expression {text} does not parse: {why}"))
    })
}

/// The names of the columns that an expression uses, in the order in which they stand, each once.
pub fn column_names(expr: &Expr) -> Vec<String> {
    fn gather(expr: &mut Expr, names: &mut Vec<String>) {
        let name = match &expr.kind {
            ExprKind::Column { column, .. } | ExprKind::DefaultOf { column, .. } => Some(&column.name),
            _ => None,
        };
        if let Some(name) = name
            && !names.iter().any(|known| names::eq(known, name))
        {
            names.push(name.clone());
        }
        expr.children_mut().into_iter().for_each(|child| grow_stack(|| gather(child, names)));
    }
    let mut names = Vec::new();
    gather(&mut expr.clone(), &mut names);
    names
}

/// The positions of the columns that a kept text uses; names that the table does not have are left out.
pub fn columns_of(text: &str, table: &TableDef) -> Result<BTreeSet<usize>, SqlError> {
    Ok(column_names(&parse(text)?).iter().filter_map(|name| table.column(name)).collect())
}

/// Whether the defaults and generated columns of a definition are right together.
pub fn check_columns(table: &TableDef) -> Result<(), SqlError> {
    for (at, column) in table.columns.iter().enumerate() {
        if let Some(generated) = &column.generated {
            check_generated(table, at, &generated.expr)?;
        }
        if let Some(DefaultValue::Expr(text)) = &column.default {
            check_default(table, at, text)?;
        }
    }
    Ok(())
}

/// Whether what a generated column, or a functional key part, is computed from may be.
pub fn check_generated(table: &TableDef, at: usize, text: &str) -> Result<(), SqlError> {
    let index = table.columns[at].functional_index();
    let place = if index.is_some() { "functional index" } else { "generated column function" };
    for name in column_names(&parse(text)?) {
        let of = table.column(&name);
        let of = of.ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name, &place]))?;
        if let Some(index) = index.filter(|_| table.columns[of].auto_increment) {
            return Err(ErrorCode::FUNCTIONAL_INDEX_REF_AUTO_INCREMENT.with(&[&index]));
        }
        if table.columns[of].auto_increment {
            return Err(ErrorCode::GENERATED_COLUMN_REF_AUTO_INC.with(&[&table.columns[at].name]));
        }
        if of >= at && table.columns[of].generated.is_some() {
            return Err(ErrorCode::GENERATED_COLUMN_NON_PRIOR.with(&[]));
        }
    }
    Ok(())
}

fn check_default(table: &TableDef, at: usize, text: &str) -> Result<(), SqlError> {
    let column = &table.columns[at];
    for name in column_names(&parse(text)?) {
        let of = table.column(&name);
        let of = of.ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name, &"default value expression"]))?;
        if table.columns[of].auto_increment {
            return Err(ErrorCode::DEFAULT_VAL_GENERATED_REF_AUTO_INC.with(&[&column.name]));
        }
        if of >= at && table.columns[of].is_computed() {
            return Err(ErrorCode::DEFAULT_VAL_GENERATED_NON_PRIOR.with(&[&column.name]));
        }
    }
    Ok(())
}

/// Errors 3108, 3766 and 3837 if another column is computed from this one. Those for which `goes` holds do not count.
pub fn check_is_unused(table: &TableDef, column: usize, goes: &dyn Fn(&str) -> bool) -> Result<(), SqlError> {
    let name = &table.columns[column].name;
    // Few columns are computed; to look for one among those that go may take long.
    let is_computed =
        |other: &ColumnDef| other.generated.is_some() || matches!(other.default, Some(DefaultValue::Expr(_)));
    let others = table.columns.iter().enumerate().filter(|(at, other)| *at != column && is_computed(other));
    for (_, other) in others.filter(|(_, other)| !goes(&other.name)) {
        if let Some(generated) = &other.generated
            && columns_of(&generated.expr, table)?.contains(&column)
        {
            return Err(match other.is_hidden() {
                true => ErrorCode::DEPENDENT_BY_FUNCTIONAL_INDEX.with(&[name]),
                false => ErrorCode::DEPENDENT_BY_GENERATED_COLUMN.with(&[name]),
            });
        }
        if let Some(DefaultValue::Expr(text)) = &other.default
            && columns_of(text, table)?.contains(&column)
        {
            return Err(ErrorCode::DEPENDENT_BY_DEFAULT_GENERATED_VALUE.with(&[name, &table.name]));
        }
    }
    Ok(())
}
