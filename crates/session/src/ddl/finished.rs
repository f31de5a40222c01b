//! What must hold of a table's definition as a whole. Every statement that makes or changes one ends here, whichever parts it
//! named: an index is held against the type that its column has come to, a default against the character set. So what SHOW CREATE
//! TABLE says of a table is a statement that makes it again.
//!
//! Tables that were defined before a rule was here are opened as they are, and meet it when they are altered.

use avocet_sql::kept;
use avocet_sql::kept::partitions;
use avocet_types::Datum;
use avocet_types::convert::{ConvertContext, store};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{ColumnDef, DefaultValue, TableDef};

use super::{checks, generated, indexes, kept_keys, row_size};

/// MySQL's limit.
const MAX_COLUMNS: usize = 4096;

pub(super) fn check(def: &TableDef) -> Result<(), SqlError> {
    check_number_of_columns(def)?;
    if let Some(column) = def.columns.iter().find(|c| c.nullable && c.auto_increment) {
        return Err(ErrorCode::WRONG_FIELD_SPEC.with(&[&column.name]));
    }
    if def.own_columns().iter().all(|column| column.invisible) {
        return Err(ErrorCode::TABLE_MUST_HAVE_A_VISIBLE_COLUMN.with(&[]));
    }
    def.own_columns().iter().try_for_each(check_default)?;
    kept::check_columns(def)?;
    indexes::check(def)?;
    indexes::check_visible(def)?;
    generated::check(def)?;
    checks::check_referential_actions(def)?;
    partitions::check(def)?;
    kept_keys::check(def)?;
    // What is wrong with functions' arguments and collations is found now, not when rows are written.
    if def.has_rules() {
        kept::compile(def)?;
    }
    row_size::check(def)
}

/// Asked with each column, too, as long lists are looked through for each name.
pub(super) fn check_number_of_columns(def: &TableDef) -> Result<(), SqlError> {
    match def.own_columns().len() > MAX_COLUMNS {
        true => Err(ErrorCode::TOO_MANY_FIELDS.with(&[])),
        false => Ok(()),
    }
}

/// A default is a value of its column: in its character set, and not beside the column's own numbers.
fn check_default(column: &ColumnDef) -> Result<(), SqlError> {
    let fits = match &column.default {
        None => true,
        Some(_) if column.auto_increment => false,
        Some(DefaultValue::Const(value @ Datum::Str(_))) => {
            store(value.clone(), &column.ty, &column.ty, &ConvertContext::STRICT_UTC).is_ok()
        }
        Some(_) => true,
    };
    match fits {
        true => Ok(()),
        false => Err(ErrorCode::INVALID_DEFAULT.with(&[&column.name])),
    }
}
