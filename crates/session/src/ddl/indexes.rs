//! Indexes: of CREATE TABLE, CREATE INDEX and ALTER TABLE.

use avocet_base::IndexId;
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::Ident;
use avocet_sql::parse::statement::{ColumnSpec, CreateTable, IndexPartSpec, IndexSpec, IndexSpecKind};
use avocet_types::SqlType;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::schema::{ColumnDef, IndexDef, IndexKind, IndexPart, MAX_KEY_BYTES, TableDef};

use super::functional::{self, Texts};
use super::{check_name, kept_keys, row_size};
use crate::state::{Level, Session};

const MAX_KEYS: usize = 64;
const MAX_PARTS: usize = 16;

/// Gives a new table the indexes of its columns' attributes and of its own list.
pub(super) fn define(def: &mut TableDef, create: &CreateTable, texts: Texts<'_>) -> Result<(), SqlError> {
    for spec in &create.columns {
        of_attributes(def, spec)?;
    }
    for spec in &create.indexes {
        match kept_keys::is_kept(def, spec) {
            true => kept_keys::add(def, spec)?,
            false => drop(add(def, spec, texts)?),
        }
    }
    let is_written = |spec: &&ColumnSpec| spec.nullable == Some(true);
    let written_null = create.columns.iter().filter(is_written).map(|spec| spec.name.name.clone());
    check_written_null(def, &written_null.collect::<Vec<_>>())
}

/// Takes out indexes that were made for foreign keys which others serve as well; their names.
pub(super) fn drop_superfluous(def: &mut TableDef) -> Vec<String> {
    let mut dropped = Vec::new();
    let mut at = 0;
    while at < def.indexes.len() {
        let columns: Vec<usize> = def.indexes[at].parts.iter().map(|part| part.column).collect();
        let serves = |(other, index): (usize, &IndexDef)| other != at && index.serves_foreign_key(&columns);
        if def.indexes[at].generated && def.indexes.iter().enumerate().any(serves) {
            dropped.push(def.indexes.remove(at).name);
        } else {
            at += 1;
        }
    }
    dropped
}

/// The indexes that PRIMARY KEY and UNIQUE beside a column make.
pub(super) fn of_attributes(def: &mut TableDef, spec: &ColumnSpec) -> Result<(), SqlError> {
    let Some(column) = def.column(&spec.name.name) else { return Ok(()) };
    let part = IndexPart { column, descending: false, prefix_len: None };
    if spec.primary_key {
        push(def, IndexKind::Primary, None, vec![part])?;
    }
    if spec.unique {
        push(def, IndexKind::Unique, None, vec![part])?;
    }
    Ok(())
}

/// One AUTO_INCREMENT column, and an index begins with it.
pub(super) fn check_auto(def: &TableDef) -> Result<(), SqlError> {
    let autos: Vec<usize> = (0..def.columns.len()).filter(|c| def.columns[*c].auto_increment).collect();
    let is_key = |column: usize| def.indexes.iter().any(|index| index.parts[0].column == column);
    if autos.len() > 1 || !autos.iter().all(|column| is_key(*column)) {
        return Err(ErrorCode::WRONG_AUTO_KEY.with(&[]));
    }
    Ok(())
}

/// Adds an index to a definition; its position in the list.
pub(super) fn add(def: &mut TableDef, spec: &IndexSpec, texts: Texts<'_>) -> Result<usize, SqlError> {
    let is_functional = spec.parts.iter().any(|part| matches!(part, IndexPartSpec::Expr { .. }));
    let kind = match spec.kind {
        IndexSpecKind::Primary if is_functional => {
            return Err(ErrorCode::FUNCTIONAL_INDEX_PRIMARY_KEY.with(&[]));
        }
        IndexSpecKind::Primary => IndexKind::Primary,
        IndexSpecKind::Unique => IndexKind::Unique,
        IndexSpecKind::Secondary => IndexKind::Secondary,
        IndexSpecKind::Fulltext | IndexSpecKind::Spatial => {
            return Err(unsupported("a FULLTEXT or SPATIAL key among those that have entries"));
        }
    };
    if kind == IndexKind::Primary {
        check_only_primary(def)?;
    }
    let own_name = spec.name.as_ref().map(|name| name.name.clone());
    let is_taken = |name: &&String| kind != IndexKind::Primary && is_taken(def, name);
    let taken = own_name.as_ref().filter(is_taken).cloned();
    let gives_way = |index: &IndexDef, name: &str| index.generated && names::eq(&index.name, name);
    if let Some(name) = taken.as_ref().filter(|name| !def.indexes.iter().any(|index| gives_way(index, name)))
    {
        return Err(ErrorCode::DUP_KEYNAME.with(&[name]));
    }
    let name = own_name.or_else(|| is_functional.then(|| free_name(def, functional::UNNAMED)));
    let mut parts = Vec::with_capacity(spec.parts.len());
    for part in &spec.parts {
        parts.push(match part {
            IndexPartSpec::Column { name, prefix_len, descending } => {
                index_part(def, name, *prefix_len, *descending)?
            }
            IndexPartSpec::Expr { expr, descending } => {
                let index = name.as_deref().unwrap_or(functional::UNNAMED);
                functional::part(def, index, (expr, *descending), texts)?
            }
        });
    }
    for (at, part) in parts.iter().enumerate() {
        if parts[..at].iter().any(|other| other.column == part.column) {
            return Err(ErrorCode::DUP_FIELDNAME.with(&[&def.columns[part.column].name]));
        }
    }
    if let Some(name) = &taken {
        // The index that a foreign key was given leaves its name to one that serves the key as well.
        let new = IndexDef { parts: parts.clone(), ..IndexDef::new(name.clone(), kind, &[]) };
        def.indexes.retain(|index| {
            let columns: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
            !gives_way(index, name) || !new.serves_foreign_key(&columns)
        });
    }
    let at = push(def, kind, name.as_deref(), parts)?;
    def.indexes[at].invisible = spec.invisible;
    def.indexes[at].comment = spec.comment.clone().unwrap_or_default();
    Ok(at)
}

/// Error 3522 if the primary key is invisible, or the unique key that stands for it.
pub(super) fn check_visible(def: &TableDef) -> Result<(), SqlError> {
    let never_null = |index: &&IndexDef| index.parts.iter().all(|part| !def.columns[part.column].nullable);
    let unique =
        def.indexes.iter().filter(|index| index.kind == IndexKind::Unique && !def.is_functional(index));
    let primary = def.primary_key().or_else(|| unique.into_iter().find(never_null));
    match primary.is_some_and(|index| index.invisible) {
        true => Err(ErrorCode::PK_INDEX_CANT_BE_INVISIBLE.with(&[])),
        false => Ok(()),
    }
}

fn index_part(
    def: &TableDef,
    name: &Ident,
    prefix_len: Option<u32>,
    descending: bool,
) -> Result<IndexPart, SqlError> {
    let column = def.column(&name.name);
    let column = column.ok_or_else(|| ErrorCode::KEY_COLUMN_DOES_NOT_EXIST.with(&[&name.name]))?;
    if prefix_len == Some(0) {
        let message = format!("Key part '{}' length cannot be 0", name.name);
        return Err(SqlError { errno: 1391, sqlstate: *b"HY000", message });
    }
    check_part(&def.columns[column], prefix_len)?;
    let prefix_len = prefix_len.filter(|len| !is_all_of(*len, &def.columns[column].ty));
    Ok(IndexPart { column, descending, prefix_len })
}

/// Whether a column can be a part of an index, with so many of its characters or bytes.
fn check_part(column: &ColumnDef, prefix_len: Option<u32>) -> Result<(), SqlError> {
    let (name, ty) = (&column.name, &column.ty);
    let fits = |len: u32| match ty.declared_len() {
        Some(most) => u64::from(len) <= most,
        // Of what is no string all bytes may be asked for.
        None => !ty.is_geometry() && ty.members().is_none() && row_size::packed_bytes(ty) == u64::from(len),
    };
    match (ty, prefix_len) {
        (SqlType::Json, _) => Err(ErrorCode::JSON_USED_AS_KEY.with(&[name])),
        (SqlType::Text { .. } | SqlType::Blob { .. }, None) => {
            Err(ErrorCode::BLOB_KEY_WITHOUT_LENGTH.with(&[name]))
        }
        (_, Some(len)) if !fits(len) => Err(ErrorCode::WRONG_SUB_KEY.with(&[])),
        _ => Ok(()),
    }
}

/// Whether a prefix of so many characters or bytes is all that a value of the type has. Of TEXT and BLOB it never is.
fn is_all_of(prefix_len: u32, ty: &SqlType) -> bool {
    !is_large(ty) && ty.declared_len().is_none_or(|len| len == u64::from(prefix_len))
}

fn is_large(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Text { .. } | SqlType::Blob { .. })
}

/// Takes off prefixes that the columns' types have no use for: they have none, or no more characters than the prefix. The part is
/// the whole column then, as MySQL's `prepare_fields_and_keys` has it.
pub(super) fn fit_prefixes(def: &mut TableDef) {
    let TableDef { columns, indexes, .. } = def;
    for part in indexes.iter_mut().flat_map(|index| &mut index.parts) {
        let ty = &columns[part.column].ty;
        // MySQL refuses the prefix of a geometry, and not the geometry.
        if ty.is_geometry() {
            continue;
        }
        let is_shorter = |len: u32| match ty.declared_len() {
            Some(most) if is_large(ty) => u64::from(len) <= most,
            Some(most) => u64::from(len) < most,
            None => false,
        };
        part.prefix_len = part.prefix_len.filter(|len| is_shorter(*len));
    }
}

/// Whether every index can be on its columns, whichever statement gave them their types.
pub(super) fn check(def: &TableDef) -> Result<(), SqlError> {
    def.indexes.iter().try_for_each(|index| check_parts(def, index.kind, &index.parts))
}

fn check_parts(def: &TableDef, kind: IndexKind, parts: &[IndexPart]) -> Result<(), SqlError> {
    for part in parts {
        let column = &def.columns[part.column];
        check_part(column, part.prefix_len)?;
        if column.ty.is_geometry() {
            return Err(without_entries(kind, parts));
        }
    }
    match is_too_long(def, parts) {
        true => Err(ErrorCode::TOO_LONG_KEY.with(&[&MAX_KEY_BYTES])),
        false => Ok(()),
    }
}

/// Why an index cannot be on a geometry: no order has geometries in it. One that is not unique is a SPATIAL key to MySQL.
fn without_entries(kind: IndexKind, parts: &[IndexPart]) -> SqlError {
    match kind {
        IndexKind::Primary | IndexKind::Unique => {
            ErrorCode::INDEX_TYPE_NOT_SUPPORTED_FOR_SPATIAL_INDEX.with(&[])
        }
        IndexKind::Secondary if parts.len() > 1 => ErrorCode::TOO_MANY_KEY_PARTS.with(&[&1]),
        IndexKind::Secondary => {
            let what = "spatial/fulltext/hash index";
            ErrorCode::WRONG_USAGE.with(&[&what, &"explicit index order"])
        }
    }
}

/// Whether keys of these parts may have more bytes than MySQL takes.
pub(super) fn is_too_long(def: &TableDef, parts: &[IndexPart]) -> bool {
    parts.iter().map(|part| part.max_bytes(&def.columns[part.column].ty)).sum::<u64>() > MAX_KEY_BYTES
}

pub(super) fn push(
    def: &mut TableDef,
    kind: IndexKind,
    name: Option<&str>,
    parts: Vec<IndexPart>,
) -> Result<usize, SqlError> {
    if def.indexes.len() == MAX_KEYS {
        return Err(ErrorCode::TOO_MANY_KEYS.with(&[&MAX_KEYS]));
    }
    if parts.len() > MAX_PARTS {
        return Err(ErrorCode::TOO_MANY_KEY_PARTS.with(&[&MAX_PARTS]));
    }
    if kind == IndexKind::Primary {
        check_only_primary(def)?;
    }
    let name = match (kind, name) {
        (IndexKind::Primary, _) => "PRIMARY".to_owned(),
        (_, Some(name)) => {
            check_name(name, WRONG_INDEX_NAME)?;
            if name.eq_ignore_ascii_case("PRIMARY") {
                return Err(WRONG_INDEX_NAME.with(&[&name]));
            }
            name.to_owned()
        }
        (_, None) => free_name(def, &def.columns[parts[0].column].name),
    };
    if is_taken(def, &name) {
        return Err(ErrorCode::DUP_KEYNAME.with(&[&name]));
    }
    check_parts(def, kind, &parts)?;
    if kind == IndexKind::Primary {
        for part in &parts {
            def.columns[part.column].nullable = false;
        }
    }
    let at = if kind == IndexKind::Primary { 0 } else { def.indexes.len() };
    def.indexes.insert(at, IndexDef { parts, ..IndexDef::new(name, kind, &[]) });
    Ok(at)
}

fn check_only_primary(def: &TableDef) -> Result<(), SqlError> {
    match def.primary_key() {
        Some(_) => Err(ErrorCode::MULTIPLE_PRI_KEY.with(&[])),
        None => Ok(()),
    }
}

/// 1171 for a column of the primary key for which NULL is written.
pub(super) fn check_written_null(def: &TableDef, written_null: &[String]) -> Result<(), SqlError> {
    let is_null =
        |part: &IndexPart| written_null.iter().any(|name| names::eq(name, &def.columns[part.column].name));
    match def.primary_key().is_some_and(|key| key.parts.iter().any(is_null)) {
        true => Err(ErrorCode::PRIMARY_CANT_HAVE_NULL.with(&[])),
        false => Ok(()),
    }
}

/// Whether a key has this name.
pub(super) fn is_taken(def: &TableDef, name: &str) -> bool {
    let mut names =
        def.indexes.iter().map(|index| &index.name).chain(def.kept_keys.iter().map(|key| &key.name));
    names.any(|taken| names::eq(taken, name))
}

impl Session {
    /// Says of new indexes that others have the same parts.
    pub(super) fn warn_of_duplicate_indexes(&mut self, def: &TableDef) {
        let same = |a: &IndexDef, b: &IndexDef| !b.generated && a.kind == b.kind && a.parts == b.parts;
        for (at, index) in def.indexes.iter().enumerate() {
            let is_new = index.id == IndexId(0) && !index.generated;
            if is_new && def.indexes[..at].iter().any(|earlier| same(index, earlier)) {
                let TableDef { database, name, .. } = def;
                let error = ErrorCode::DUP_INDEX.with(&[&index.name, database, name]);
                self.warn(Level::Warning, error.errno, error.message);
            }
        }
    }
}

/// 1280
pub(super) const WRONG_INDEX_NAME: ErrorCode =
    ErrorCode { errno: 1280, sqlstate: *b"42000", text: "Incorrect index name '{}'" };

/// The first column's name, with a number if it is taken: `a`, `a_2`, `a_3`, …
pub(super) fn free_name(def: &TableDef, column: &str) -> String {
    let taken = |name: &str| is_taken(def, name);
    let numbered = (2..).map(|n| format!("{column}_{n}"));
    let mut names = std::iter::once(column.to_owned()).chain(numbered);
    names.find(|name| !taken(name)).expect("numbers do not end")
}
