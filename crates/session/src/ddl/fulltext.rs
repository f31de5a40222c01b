//! FULLTEXT keys: their definitions are kept and shown, so that tables which have them are made, loaded and followed. There are no
//! entries, and MATCH is refused.

use avocet_sql::bind::unsupported;
use avocet_sql::parse::statement::{IndexPartSpec, IndexSpec};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{FulltextDef, TableDef};
use avocet_types::{Collation, SqlType};

use super::{check_name, indexes};
use crate::state::{Level, Session};

/// Adds a key to a definition.
pub(super) fn add(def: &mut TableDef, spec: &IndexSpec) -> Result<(), SqlError> {
    if def.id.is_temporary() {
        return Err(ErrorCode::INNODB_NO_FT_TEMP_TABLE.with(&[]));
    }
    if spec.invisible {
        return Err(unsupported("an invisible FULLTEXT key"));
    }
    let mut columns: Vec<usize> = Vec::with_capacity(spec.parts.len());
    for part in &spec.parts {
        let IndexPartSpec::Column { name, descending, .. } = part else {
            return Err(unsupported("a functional index"));
        };
        if *descending {
            let what = "spatial/fulltext/hash index";
            return Err(ErrorCode::WRONG_USAGE.with(&[&what, &"explicit index order"]));
        }
        let at = def.column(&name.name);
        let at = at.ok_or_else(|| ErrorCode::KEY_COLUMN_DOES_NOT_EXIST.with(&[&name.name]))?;
        if columns.contains(&at) {
            return Err(ErrorCode::DUP_FIELDNAME.with(&[&def.columns[at].name]));
        }
        let collation = searched(def, at)?;
        if columns.first().is_some_and(|first| searched(def, *first).ok() != Some(collation)) {
            return Err(ErrorCode::BAD_FT_COLUMN.with(&[&def.columns[at].name]));
        }
        columns.push(at);
    }
    let name = match &spec.name {
        Some(name) => {
            check_name(&name.name, indexes::WRONG_INDEX_NAME)?;
            name.name.clone()
        }
        None => indexes::free_name(def, &def.columns[columns[0]].name),
    };
    if indexes::is_taken(def, &name) {
        return Err(ErrorCode::DUP_KEYNAME.with(&[&name]));
    }
    def.fulltext.push(FulltextDef { name, columns, parser: spec.parser.clone() });
    Ok(())
}

/// Whether all columns of the keys can be searched.
pub(super) fn check(def: &TableDef) -> Result<(), SqlError> {
    def.fulltext.iter().flat_map(|key| &key.columns).try_for_each(|column| searched(def, *column).map(drop))
}

/// The collation by which a column's words are compared, or why it has none.
fn searched(def: &TableDef, column: usize) -> Result<Collation, SqlError> {
    let column = &def.columns[column];
    match column.ty {
        SqlType::Char { collation, .. }
        | SqlType::VarChar { collation, .. }
        | SqlType::Text { collation, .. }
            if collation != Collation::BINARY =>
        {
            Ok(collation)
        }
        SqlType::Json => Err(ErrorCode::JSON_USED_AS_KEY.with(&[&column.name])),
        _ => Err(ErrorCode::BAD_FT_COLUMN.with(&[&column.name])),
    }
}

impl Session {
    /// Says that keys are definitions alone.
    pub(super) fn warn_of_fulltext(&mut self, def: &TableDef, before: Option<&TableDef>) {
        let is_new = |key: &&FulltextDef| before.is_none_or(|before| !before.fulltext.contains(key));
        let names: Vec<String> = def.fulltext.iter().filter(is_new).map(|key| key.name.clone()).collect();
        for name in names {
            let error =
                unsupported(format_args!("MATCH ... AGAINST (FULLTEXT key '{name}' is a definition alone)"));
            self.warn(Level::Warning, error.errno, error.message);
        }
    }
}
