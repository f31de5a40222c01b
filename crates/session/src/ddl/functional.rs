//! Functional key parts: each has a hidden generated column, which the index is on. The column comes and goes with its index, and
//! stands behind all columns that statements know.

use avocet_sql::kept;
use avocet_sql::kept::allowed::Place;
use avocet_sql::parse::ast::{Expr, ExprKind};
use avocet_types::SqlType;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{ColumnDef, GeneratedDef, IndexDef, IndexPart, TableDef};

use super::indexes;

/// The canonical text of an expression.
pub(super) type Texts<'t> = &'t dyn Fn(&Expr) -> String;

/// What an index without a name of its own is called.
pub(super) const UNNAMED: &str = "functional_index";

/// Longer strings count as TEXT, in characters or bytes: MySQL's limit.
const MOST_CHARACTERS: u64 = 512;

/// A key part of an index, for which the definition gets a hidden column.
pub(super) fn part(
    def: &mut TableDef,
    index: &str,
    (expr, descending): (&Expr, bool),
    texts: Texts<'_>,
) -> Result<IndexPart, SqlError> {
    match &expr.kind {
        ExprKind::Column { .. } => return Err(ErrorCode::FUNCTIONAL_INDEX_ON_FIELD.with(&[])),
        ExprKind::Row(_) => return Err(ErrorCode::FUNCTIONAL_INDEX_ROW_VALUE_IS_NOT_ALLOWED.with(&[&index])),
        _ => Place::KeyPart(index).check(expr)?,
    }
    let column = def.columns.len();
    let text = texts(expr);
    let generated = GeneratedDef { expr: text.clone(), stored: false, index: Some(index.to_owned()) };
    let name = free_name(def, index);
    let hidden =
        ColumnDef { generated: Some(generated), invisible: true, ..ColumnDef::new(name, SqlType::Null) };
    def.columns.push(hidden.nullable());
    kept::check_generated(def, column, &text)?;
    let (ty, nullable) = kept::type_of(&text, def)?;
    check_type(&ty, &text)?;
    (def.columns[column].ty, def.columns[column].nullable) = (ty, nullable);
    Ok(IndexPart { column, descending, prefix_len: None })
}

/// A name for a column that nobody says: no other column has it.
fn free_name(def: &TableDef, index: &str) -> String {
    let is_free = |name: &String| !def.columns.iter().any(|column| column.name == *name);
    let mut names = (0..).map(|n| format!("!hidden!{index}!{n}"));
    names.find(is_free).expect("numbers do not end")
}

/// Whether an index can have values of a type.
fn check_type(ty: &SqlType, text: &str) -> Result<(), SqlError> {
    match ty {
        SqlType::Json | SqlType::Geometry { .. } => {
            Err(ErrorCode::FUNCTIONAL_INDEX_ON_JSON_OR_GEOMETRY_FUNCTION.with(&[]))
        }
        SqlType::Null => Err(ErrorCode::WRONG_KEY_COLUMN_FUNCTIONAL_INDEX.with(&[&text])),
        SqlType::Text { .. } | SqlType::Blob { .. } => Err(ErrorCode::FUNCTIONAL_INDEX_ON_LOB.with(&[])),
        SqlType::Char { .. }
        | SqlType::VarChar { .. }
        | SqlType::Binary { .. }
        | SqlType::VarBinary { .. }
            if ty.declared_len().is_none_or(|len| len > MOST_CHARACTERS) =>
        {
            Err(ErrorCode::FUNCTIONAL_INDEX_ON_LOB.with(&[]))
        }
        _ => Ok(()),
    }
}

/// Gives hidden columns the types that their expressions have now: of other columns, or under another collation. Those that an
/// index cannot have any more, or that make its keys too long, leave a column as it is, and values that do not fit are refused.
pub(super) fn retype(def: &mut TableDef) -> Result<(), SqlError> {
    for at in def.own_columns().len()..def.columns.len() {
        let Some(generated) = &def.columns[at].generated else { continue };
        let (ty, nullable) = kept::type_of(&generated.expr, def)?;
        if check_type(&ty, &generated.expr).is_err() {
            continue;
        }
        let before = std::mem::replace(&mut def.columns[at].ty, ty);
        let is_too_long = |index: &IndexDef| {
            index.parts.iter().any(|part| part.column == at) && indexes::is_too_long(def, &index.parts)
        };
        match def.indexes.iter().any(is_too_long) {
            true => def.columns[at].ty = before,
            false => def.columns[at].nullable = nullable,
        }
    }
    Ok(())
}

/// A hidden column whose index is gone, if there is one.
pub(super) fn unused(def: &TableDef) -> Option<usize> {
    let is_used = |at: usize| def.indexes.iter().flat_map(|index| &index.parts).any(|part| part.column == at);
    (def.own_columns().len()..def.columns.len()).find(|at| !is_used(*at))
}

/// Indexes got other names.
pub(super) fn rename<'n>(def: &mut TableDef, new_name: &dyn Fn(&str) -> Option<&'n str>) {
    for generated in def.columns.iter_mut().filter_map(|column| column.generated.as_mut()) {
        if let Some(to) = generated.index.as_deref().and_then(new_name) {
            generated.index = Some(to.to_owned());
        }
    }
}
