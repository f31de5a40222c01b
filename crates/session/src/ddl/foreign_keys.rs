//! Foreign keys: of CREATE TABLE and ALTER TABLE. Whether parents fit is the engine's to say, which holds them still.

use avocet_engine::Catalog;
use avocet_sql::parse::ast::Ident;
use avocet_sql::parse::statement::{CreateTable, ForeignKeySpec, IndexSpec, IndexSpecKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{ForeignKeyDef, IndexDef, IndexKind, IndexPart, TableDef};

use super::{check_length, indexes};
use crate::state::Session;
use crate::{engines, info_schema};

/// Between a table's name and a number, in names that are made up.
const GENERATED: &str = "_ibfk_";

/// What a key may lack in the statement.
struct Missing {
    /// The number of the next name.
    number: u32,
}

impl Session {
    /// Gives a new table its foreign keys, and the indexes that they need.
    pub(super) fn define_foreign_keys(
        &self,
        def: &mut TableDef,
        create: &CreateTable,
    ) -> Result<(), SqlError> {
        // Engines of MySQL without foreign keys read them, and make the indexes alone: what such a table holds may have no parents.
        let is_enforced = create.options.engine.as_deref().is_none_or(engines::has_foreign_keys);
        let mut missing = Missing { number: 1 };
        for spec in &create.foreign_keys {
            let columns = columns_of(def, &spec.columns)?;
            match is_enforced {
                true => drop(self.add_foreign_key_to(def, spec, &mut missing)?),
                false => give_index(def, spec, &columns)?,
            }
            place_index(def, create, spec, &columns);
        }
        indexes::drop_superfluous(def);
        Ok(())
    }

    /// Adds a foreign key to the definition of a table that is there; its name.
    pub(super) fn draft_foreign_key(
        &self,
        def: &mut TableDef,
        spec: &ForeignKeySpec,
    ) -> Result<String, SqlError> {
        let prefix = format!("{}{GENERATED}", def.name);
        let numbers =
            def.foreign_keys.iter().filter_map(|key| key.name.strip_prefix(&prefix)?.parse::<u32>().ok());
        let mut missing = Missing { number: numbers.max().unwrap_or(0) + 1 };
        self.add_foreign_key_to(def, spec, &mut missing)
    }

    fn add_foreign_key_to(
        &self,
        def: &mut TableDef,
        spec: &ForeignKeySpec,
        missing: &mut Missing,
    ) -> Result<String, SqlError> {
        let columns = columns_of(def, &spec.columns)?;
        let references = &spec.references;
        let parent_database =
            references.table.database.as_ref().map_or(&def.database, |name| &name.name).clone();
        let parent_table = references.table.name.name.clone();
        if info_schema::is_virtual(&parent_database) {
            let user = &self.info.account;
            let table = format!("{parent_database}.{parent_table}");
            return Err(ErrorCode::TABLEACCESS_DENIED_ERROR.with(&[
                &"REFERENCES",
                &user.user,
                &user.host,
                &table,
            ]));
        }
        let catalog = self.stored_catalog();
        let is_self = parent_database == def.database && parent_table == def.name;
        let parent = if is_self { Some(&*def) } else { table_of(&catalog, &parent_database, &parent_table) };
        let parent_columns = parent_columns(spec, parent, columns.len()).ok_or_else(|| mismatch(spec))?;
        let name = match &spec.name {
            Some(name) => {
                check_length(&name.name)?;
                name.name.clone()
            }
            None => {
                let name = format!("{}{GENERATED}{}", def.name, missing.number);
                missing.number += 1;
                name
            }
        };
        give_index(def, spec, &columns)?;
        def.foreign_keys.push(ForeignKeyDef {
            name: name.clone(),
            columns,
            parent_database,
            parent_table,
            parent_columns,
            on_delete: references.on_delete,
            on_update: references.on_update,
        });
        Ok(name)
    }
}

/// Makes the index that a foreign key needs, unless there is one.
fn give_index(def: &mut TableDef, spec: &ForeignKeySpec, columns: &[usize]) -> Result<(), SqlError> {
    let serves = |index: &IndexDef| {
        index.serves_foreign_key(columns) && (!index.generated || index.parts.len() > columns.len())
    };
    if !def.indexes.iter().any(serves) {
        // One that was made for another key gives way.
        def.indexes.retain(|index| !index.serves_foreign_key(columns));
        let name = spec.name.as_ref().or(spec.index.as_ref()).map(|name| name.name.as_str());
        let part = |&column: &usize| IndexPart { column, descending: false, prefix_len: None };
        let parts = columns.iter().map(part).collect();
        let at = indexes::push(def, IndexKind::Secondary, name, parts)?;
        def.indexes[at].generated = true;
    }
    Ok(())
}

/// Moves an index that has just been made for a foreign key to where that stands among the keys of the list.
fn place_index(def: &mut TableDef, create: &CreateTable, spec: &ForeignKeySpec, columns: &[usize]) {
    let is_made = |index: &mut IndexDef| {
        index.generated && index.parts.len() == columns.len() && index.begins_with(columns)
    };
    let Some(made) = def.indexes.pop_if(is_made) else { return };
    let is_plain = |index: &&IndexSpec| matches!(index.kind, IndexSpecKind::Secondary);
    let before = create.indexes[..spec.behind].iter().filter(is_plain).count();
    let own = def
        .indexes
        .iter()
        .enumerate()
        .filter(|(_, index)| index.kind == IndexKind::Secondary && !index.generated);
    let at = own.map(|(at, _)| at).nth(before).unwrap_or(def.indexes.len());
    def.indexes.insert(at, made);
}

fn table_of<'c>(catalog: &'c Catalog, database: &str, name: &str) -> Option<&'c TableDef> {
    catalog.table(database, name).map(|table| &*table.def)
}

fn columns_of(def: &TableDef, names: &[Ident]) -> Result<Vec<usize>, SqlError> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = def.column(&name.name);
        let column = column.ok_or_else(|| ErrorCode::KEY_COLUMN_DOES_NOT_EXIST.with(&[&name.name]))?;
        if columns.contains(&column) {
            return Err(ErrorCode::DUP_FIELDNAME.with(&[&name.name]));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The parent's columns as they are written there, if it is there; those of its primary key if none are named. `None` if that
/// leaves none, or another number of them.
fn parent_columns(spec: &ForeignKeySpec, parent: Option<&TableDef>, count: usize) -> Option<Vec<String>> {
    let named = &spec.references.columns;
    if !named.is_empty() && named.len() != count {
        return None;
    }
    let Some(parent) = parent else {
        let names = named.iter().map(|name| name.name.clone()).collect();
        return Some(names).filter(|_| !named.is_empty());
    };
    let own = |at: usize| parent.columns[at].name.clone();
    if named.is_empty() {
        let parts = &parent.primary_key()?.parts;
        return (parts.len() == count).then(|| parts.iter().map(|part| own(part.column)).collect());
    }
    Some(named.iter().map(|name| parent.column(&name.name).map_or_else(|| name.name.clone(), own)).collect())
}

fn mismatch(spec: &ForeignKeySpec) -> SqlError {
    let name = spec.name.as_ref().map_or("foreign key without name", |name| name.name.as_str());
    ErrorCode::WRONG_FK_DEF.with(&[&name, &"Key reference and table reference don't match"])
}
