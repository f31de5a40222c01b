//! FULLTEXT and SPATIAL keys: their definitions are kept and shown, so that tables which have them are made, loaded and followed.
//! There are no entries: MATCH is refused, and no row is found by a SPATIAL key.

use avocet_sql::bind::unsupported;
use avocet_sql::parse::statement::{IndexPartSpec, IndexSpec, IndexSpecKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{KeptKeyDef, KeptKeyKind, TableDef};
use avocet_types::{Collation, SqlType};

use super::{check_name, indexes};
use crate::state::{Level, Session};

/// Whether a key is one that has no entries. A key of a spatial column is a SPATIAL one without the word.
pub(super) fn is_kept(def: &TableDef, spec: &IndexSpec) -> bool {
    let is_spatial = |part: &IndexPartSpec| match part {
        IndexPartSpec::Column { name, .. } => {
            def.column(&name.name).is_some_and(|at| def.columns[at].ty.is_geometry())
        }
        IndexPartSpec::Expr { .. } => false,
    };
    match spec.kind {
        IndexSpecKind::Fulltext | IndexSpecKind::Spatial => true,
        IndexSpecKind::Secondary => spec.parts.iter().any(is_spatial),
        IndexSpecKind::Primary | IndexSpecKind::Unique => false,
    }
}

/// Adds a key to a definition. Whether its columns may be in it is for [`check`], when all of them are known.
pub(super) fn add(def: &mut TableDef, spec: &IndexSpec) -> Result<(), SqlError> {
    let kind = match spec.kind {
        IndexSpecKind::Fulltext => KeptKeyKind::Fulltext { parser: spec.parser.clone() },
        _ => KeptKeyKind::Spatial,
    };
    if def.id.is_temporary() && !kind.is_spatial() {
        return Err(ErrorCode::INNODB_NO_FT_TEMP_TABLE.with(&[]));
    }
    if spec.invisible {
        return Err(unsupported(format_args!("an invisible {} key", kind.word())));
    }
    if kind.is_spatial() && spec.parts.len() > 1 {
        return Err(ErrorCode::TOO_MANY_KEY_PARTS.with(&[&1]));
    }
    let mut columns: Vec<usize> = Vec::with_capacity(spec.parts.len());
    for part in &spec.parts {
        let at = column_of(def, part, &kind)?;
        if columns.contains(&at) {
            return Err(ErrorCode::DUP_FIELDNAME.with(&[&def.columns[at].name]));
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
    let comment = spec.comment.clone().unwrap_or_default();
    let key = KeptKeyDef { name, columns, kind, comment };
    if !key.kind.is_spatial() {
        check_key(def, &key)?;
    }
    def.kept_keys.push(key);
    Ok(())
}

fn column_of(def: &TableDef, part: &IndexPartSpec, kind: &KeptKeyKind) -> Result<usize, SqlError> {
    let IndexPartSpec::Column { name, prefix_len, descending } = part else {
        return Err(match kind {
            KeptKeyKind::Spatial => ErrorCode::SPATIAL_FUNCTIONAL_INDEX.with(&[]),
            KeptKeyKind::Fulltext { .. } => ErrorCode::FULLTEXT_FUNCTIONAL_INDEX.with(&[]),
        });
    };
    if *descending {
        let what = "spatial/fulltext/hash index";
        return Err(ErrorCode::WRONG_USAGE.with(&[&what, &"explicit index order"]));
    }
    let at = def.column(&name.name);
    let at = at.ok_or_else(|| ErrorCode::KEY_COLUMN_DOES_NOT_EXIST.with(&[&name.name]))?;
    if kind.is_spatial() && prefix_len.is_some() {
        return Err(ErrorCode::WRONG_SUB_KEY.with(&[]));
    }
    Ok(at)
}

/// Whether all columns may be in their keys.
pub(super) fn check(def: &TableDef) -> Result<(), SqlError> {
    def.kept_keys.iter().try_for_each(|key| check_key(def, key))
}

fn check_key(def: &TableDef, key: &KeptKeyDef) -> Result<(), SqlError> {
    if key.kind.is_spatial() {
        return key.columns.iter().map(|at| &def.columns[*at]).try_for_each(|column| match column.ty {
            SqlType::Geometry { .. } if !column.nullable => Ok(()),
            SqlType::Geometry { .. } => Err(ErrorCode::SPATIAL_CANT_HAVE_NULL.with(&[])),
            _ => Err(ErrorCode::SPATIAL_MUST_HAVE_GEOM_COL.with(&[])),
        });
    }
    let mut of_first = None;
    for at in &key.columns {
        let collation = searched(def, *at)?;
        if of_first.is_some_and(|first| first != collation) {
            return Err(ErrorCode::BAD_FT_COLUMN.with(&[&def.columns[*at].name]));
        }
        of_first = Some(collation);
    }
    Ok(())
}

/// A column of a SPATIAL key stays in its reference system.
pub(super) fn check_systems(def: &TableDef, before: &TableDef) -> Result<(), SqlError> {
    let srid_of = |def: &TableDef, at: usize| match def.columns[at].ty {
        SqlType::Geometry { srid, .. } => srid,
        _ => None,
    };
    for key in def.kept_keys.iter().filter(|key| key.kind.is_spatial()) {
        let Some(old) = before.kept_keys.iter().find(|old| old.name == key.name) else { continue };
        for (new_at, old_at) in key.columns.iter().zip(&old.columns) {
            let name = &def.columns[*new_at].name;
            if *name == before.columns[*old_at].name && srid_of(def, *new_at) != srid_of(before, *old_at) {
                return Err(ErrorCode::CANNOT_ALTER_SRID_DUE_TO_INDEX.with(&[name]));
            }
        }
    }
    Ok(())
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
    pub(super) fn warn_of_kept_keys(&mut self, def: &TableDef, before: Option<&TableDef>) {
        let is_new = |key: &&KeptKeyDef| before.is_none_or(|before| !before.kept_keys.contains(key));
        let keys: Vec<KeptKeyDef> = def.kept_keys.iter().filter(is_new).cloned().collect();
        for KeptKeyDef { name, kind, .. } in keys {
            let what = match kind {
                KeptKeyKind::Fulltext { .. } => "MATCH ... AGAINST",
                KeptKeyKind::Spatial => "finding rows by spatial keys",
            };
            let error =
                unsupported(format_args!("{what} ({} key '{name}' is a definition alone)", kind.word()));
            self.warn(Level::Warning, error.errno, error.message);
        }
    }
}
