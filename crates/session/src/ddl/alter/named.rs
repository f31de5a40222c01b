//! What the parts of an ALTER TABLE name, and whether they may all at once. As in MySQL (`mysql_prepare_alter_table`), they name
//! columns and indexes as the table had them, and each of these is meant by one part alone: the others find it gone. Columns
//! get their names at the same time, so that two may swap them, and then their places, one after the other.

use avocet_sql::parse::ast::Ident;
use avocet_sql::parse::statement::{AlterAction, ColumnPosition, ColumnSpec};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::schema::TableDef;

/// The column that a part changes: its old name and its new one, unless it is added or dropped.
pub(super) fn changed_column(action: &AlterAction) -> Option<(&str, &str)> {
    match action {
        AlterAction::ModifyColumn { column, .. } => Some((&column.name.name, &column.name.name)),
        AlterAction::ChangeColumn { old, column, .. } => Some((&old.name, &column.name.name)),
        AlterAction::RenameColumn { from, to } => Some((&from.name, &to.name)),
        AlterAction::SetDefault { column, .. } | AlterAction::SetVisible { column, .. } => {
            Some((&column.name, &column.name))
        }
        _ => None,
    }
}

/// The definition that a column gets.
pub(super) fn definition(action: &AlterAction) -> Option<&ColumnSpec> {
    defined_column(action).map(|(column, _)| column)
}

/// A column that gets a definition, and its new place.
fn defined_column(action: &AlterAction) -> Option<(&ColumnSpec, &ColumnPosition)> {
    match action {
        AlterAction::AddColumn { column, position }
        | AlterAction::ModifyColumn { column, position }
        | AlterAction::ChangeColumn { column, position, .. } => Some((column, position)),
        _ => None,
    }
}

/// Indexes by their old and new names.
pub(super) fn renamed_indexes(actions: &[AlterAction]) -> Vec<(&str, &str)> {
    let renamed = actions.iter().filter_map(|action| match action {
        AlterAction::RenameIndex { from, to } => Some((&*from.name, &*to.name)),
        _ => None,
    });
    renamed.collect()
}

/// Whether a part puts a column that is there to another place.
pub(super) fn moves(action: &AlterAction) -> bool {
    !matches!(action, AlterAction::AddColumn { .. })
        && defined_column(action).is_some_and(|(_, position)| *position != ColumnPosition::Last)
}

/// # Errors
/// 1054 and 1091 for columns, 1091 and 1176 for indexes that are not there, or that a part before has taken.
pub(super) fn check(def: &TableDef, actions: &[AlterAction]) -> Result<(), SqlError> {
    check_columns(def, actions)?;
    check_indexes(def, actions)
}

fn check_columns(def: &TableDef, actions: &[AlterAction]) -> Result<(), SqlError> {
    let unknown = |name: &str| ErrorCode::BAD_FIELD_ERROR.with(&[&name, &def.name]);
    let mut is_done = vec![false; actions.len()];
    let mut placed: Vec<&str> = Vec::with_capacity(def.columns.len());
    for own in def.own_columns() {
        let mut first = |is_meant: &dyn Fn(&AlterAction) -> bool| {
            let at = (0..actions.len()).find(|at| !is_done[*at] && is_meant(&actions[*at]))?;
            is_done[at] = true;
            Some(&actions[at])
        };
        let changes =
            |action: &AlterAction| changed_column(action).is_some_and(|(name, _)| names::eq(name, &own.name));
        let drops = |action: &AlterAction| match action {
            AlterAction::DropColumn(name) => names::eq(&name.name, &own.name),
            _ => false,
        };
        if first(&drops).is_some() {
            continue;
        }
        let change = first(&|action| changes(action) && defined_column(action).is_some());
        match change.or_else(|| first(&changes)) {
            None => placed.push(&own.name),
            Some(change) => placed.extend(changed_column(change).map(|(_, to)| to)),
        }
    }
    for (action, is_done) in actions.iter().zip(&is_done) {
        let Some((column, position)) = defined_column(action) else { continue };
        match changed_column(action) {
            Some((old, _)) if !is_done => return Err(unknown(old)),
            Some(_) if !moves(action) => continue,
            Some((_, new)) => placed.retain(|own| !names::eq(own, new)),
            None => {}
        }
        let at = match position {
            ColumnPosition::Last => placed.len(),
            ColumnPosition::First => 0,
            ColumnPosition::After(name) => {
                let before = placed.iter().position(|own| names::eq(own, &name.name));
                before.ok_or_else(|| unknown(&name.name))? + 1
            }
        };
        placed.insert(at, &column.name.name);
    }
    let left = || actions.iter().zip(&is_done).filter(|(_, is_done)| !**is_done).map(|(action, _)| action);
    if let Some((name, _)) = left().find_map(changed_column) {
        return Err(unknown(name));
    }
    let dropped = left().find_map(|action| match action {
        AlterAction::DropColumn(name) => Some(&name.name),
        _ => None,
    });
    dropped.map_or(Ok(()), |name| Err(ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[name])))
}

fn check_indexes(def: &TableDef, actions: &[AlterAction]) -> Result<(), SqlError> {
    let mut own: Vec<&str> = def.indexes.iter().map(|index| &*index.name).collect();
    own.extend(def.kept_keys.iter().map(|key| &*key.name));
    let mut take = |name: &str| {
        let at = own.iter().position(|own| names::eq(own, name))?;
        Some(own.swap_remove(at))
    };
    for action in actions {
        if let AlterAction::DropIndex(Ident { name, .. }) = action {
            take(name).ok_or_else(|| ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[name]))?;
        }
    }
    let missing = |name: &String| ErrorCode::KEY_DOES_NOT_EXIST.with(&[name, &def.name]);
    for action in actions {
        if let AlterAction::RenameIndex { from, .. } = action {
            take(&from.name).ok_or_else(|| missing(&from.name))?;
        }
    }
    for action in actions {
        if let AlterAction::SetIndexVisible { index, .. } = action
            && !own.iter().any(|own| names::eq(own, &index.name))
        {
            return Err(missing(&index.name));
        }
    }
    Ok(())
}
