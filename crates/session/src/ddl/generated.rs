//! Generated columns: of CREATE TABLE and ALTER TABLE.

use avocet_sql::kept;
use avocet_sql::kept::allowed::Place;
use avocet_sql::parse::statement::ColumnSpec;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{ColumnDef, ForeignKeyDef, GeneratedDef, IndexKind, ReferentialAction, TableDef};

use crate::run::Text;
use crate::state::Session;

impl Session {
    /// What a column is generated from, if it is.
    pub(super) fn generated_def(
        &self,
        spec: &ColumnSpec,
        text: &Text<'_>,
    ) -> Result<Option<GeneratedDef>, SqlError> {
        let Some(generated) = &spec.generated else { return Ok(None) };
        Place::Generated(&spec.name.name).check(&generated.expr)?;
        let expr = self.kept_text(&generated.expr, text);
        Ok(Some(GeneratedDef { expr, stored: generated.stored, index: None }))
    }
}

/// What keys may not do with generated columns.
pub(super) fn check(def: &TableDef) -> Result<(), SqlError> {
    let is_virtual = |column: usize| def.columns[column].is_virtual();
    let primary = def.indexes.iter().filter(|index| index.kind == IndexKind::Primary);
    if primary.flat_map(|index| &index.parts).any(|part| is_virtual(part.column)) {
        let what = "Defining a virtual generated column as primary key";
        return Err(ErrorCode::UNSUPPORTED_ACTION_ON_GENERATED_COLUMN.with(&[&what]));
    }
    for key in &def.foreign_keys {
        if let Some(column) = key.columns.iter().find(|column| is_virtual(**column)) {
            let name = &def.columns[*column].name;
            return Err(ErrorCode::FK_CANNOT_USE_VIRTUAL_COLUMN.with(&[&key.name, name]));
        }
        if key.columns.iter().any(|column| def.columns[*column].generated.is_some()) {
            check_actions(key)?;
        }
        check_bases(def, key)?;
    }
    Ok(())
}

/// Error 3104 for actions that would give the child's columns values.
fn check_actions(key: &ForeignKeyDef) -> Result<(), SqlError> {
    use ReferentialAction as A;
    let refused = |what: &str| Err(ErrorCode::WRONG_FK_OPTION_FOR_GENERATED_COLUMN.with(&[&what]));
    match (key.on_update, key.on_delete) {
        (A::Cascade | A::SetNull | A::SetDefault, _) => {
            refused(&format!("ON UPDATE {}", key.on_update.sql()))
        }
        (_, A::SetNull | A::SetDefault) => refused(&format!("ON DELETE {}", key.on_delete.sql())),
        _ => Ok(()),
    }
}

/// Error 1215 for actions on a column that a STORED one is generated from.
fn check_bases(def: &TableDef, key: &ForeignKeyDef) -> Result<(), SqlError> {
    use ReferentialAction as A;
    let acts = |action: A| matches!(action, A::Cascade | A::SetNull);
    if !acts(key.on_update) && !acts(key.on_delete) {
        return Ok(());
    }
    let stored = def.columns.iter().filter_map(|column| column.generated.as_ref().filter(|from| from.stored));
    for from in stored {
        let bases = kept::columns_of(&from.expr, def)?;
        if key.columns.iter().any(|column| bases.contains(column)) {
            return Err(ErrorCode::CANNOT_ADD_FOREIGN.with(&[]));
        }
    }
    Ok(())
}

/// Error 3106 for a column that would be stored and is not, or the other way round. VIRTUAL columns count as not stored.
pub(super) fn check_change(before: &ColumnDef, after: &ColumnDef) -> Result<(), SqlError> {
    match before.is_virtual() == after.is_virtual() {
        true => Ok(()),
        false => {
            Err(ErrorCode::UNSUPPORTED_ACTION_ON_GENERATED_COLUMN.with(&[&"Changing the STORED status"]))
        }
    }
}
