//! Table definitions and what they are made of; [the form](super).

use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::{IndexId, TableId};

use crate::datum::Datum;
use crate::schema::{
    CheckDef, ColumnDef, DefaultValue, ForeignKeyDef, GeneratedDef, IndexDef, IndexKind, IndexPart,
    KeptKeyDef, KeptKeyKind, ReferentialAction, TableDef,
};
use crate::sql_type::{Collation, SqlType};
use crate::stated::{StatedOption, StatedOptions};
use crate::stored::{StoredColumn, StoredColumns};

use super::{flag, list, put_list};

/// Of tables without foreign keys.
pub(super) const PLAIN: u8 = 1;
pub(super) const WITH_FOREIGN_KEYS: u8 = 2;
/// Definitions keep expressions (defaults, checks, generated columns) or invisible columns.
pub(super) const WITH_EXPRESSIONS: u8 = 3;
/// Of partitioned tables, and those with FULLTEXT or SPATIAL keys.
pub(super) const WITH_PARTITIONS: u8 = 4;
/// Of tables with functional key parts, whose columns are hidden.
pub(super) const WITH_HIDDEN_COLUMNS: u8 = 5;
/// Columns say that their collations were named.
const WITH_NAMED_COLLATIONS: u8 = 6;
/// Of tables whose columns have changed under their blocks.
pub(super) const WITH_STORED_COLUMNS: u8 = 7;
/// Columns show their numbers with zeros before them.
pub(super) const WITH_ZEROFILL: u8 = 8;
/// The defaults of columns that may be NULL were dropped.
pub(super) const WITH_DROPPED_DEFAULTS: u8 = 9;
/// Indexes and other keys have comments.
pub(super) const WITH_KEY_COMMENTS: u8 = 10;
/// It is known when they were made, or they state options of files.
pub(super) const WITH_TIMES: u8 = 11;

/// Where a FULLTEXT key has its parser's name, which has no such byte.
const SPATIAL: &str = "\0";
/// Between the kind of such a key, or its parser's name, and its comment.
const COMMENT: char = '\u{1}';

/// Beside the kind of an index that was made for a foreign key.
const GENERATED: u8 = 0x80;
/// Beside the kind of an index that no plan uses.
const INVISIBLE: u8 = 0x40;
/// Beside the kind of an index that has a comment, which stands behind its parts.
const COMMENTED: u8 = 0x20;

impl TableDef {
    pub fn encode(&self, to: &mut Vec<u8>) {
        let version = self.version();
        to.put_u8(version);
        to.put_u32(self.id.0);
        to.put_str(&self.database);
        to.put_str(&self.name);
        put_list(&self.columns, to, ColumnDef::encode);
        put_list(&self.indexes, to, IndexDef::encode);
        to.put_u16(self.default_collation.0);
        to.put_str(&self.comment);
        if version >= WITH_FOREIGN_KEYS {
            put_list(&self.foreign_keys, to, ForeignKeyDef::encode);
        }
        if version >= WITH_EXPRESSIONS {
            put_list(&self.checks, to, CheckDef::encode);
        }
        if version >= WITH_PARTITIONS {
            put_list(&self.kept_keys, to, KeptKeyDef::encode);
            to.put_str(self.partitioning.as_deref().unwrap_or_default());
        }
        if version >= WITH_ZEROFILL {
            to.put_u8(self.stored.is_some().into());
        }
        if let Some(stored) = &self.stored {
            put_list(&stored.columns, to, |column, to| {
                to.put_varint(column.position.into());
                column.before.encode(to);
            });
            to.put_u16(stored.width);
        }
        if version >= WITH_TIMES {
            to.put_u8(self.created_us.is_some().into());
            if let Some(created) = self.created_us {
                to.put_i64(created);
            }
            let stated: Vec<_> = self.stated.iter().collect();
            put_list(&stated, to, |(option, value), to| {
                to.put_u8(*option as u8);
                to.put_varint(*value);
            });
        }
    }

    fn has_key_comments(&self) -> bool {
        let of_indexes = self.indexes.iter().map(|index| &index.comment);
        of_indexes.chain(self.kept_keys.iter().map(|key| &key.comment)).any(|comment| !comment.is_empty())
    }

    /// The lowest that has all of it.
    fn version(&self) -> u8 {
        if self.created_us.is_some() || !self.stated.is_empty() {
            WITH_TIMES
        } else if self.has_key_comments() {
            WITH_KEY_COMMENTS
        } else if self.columns.iter().any(|column| matches!(column.default, Some(DefaultValue::Dropped))) {
            WITH_DROPPED_DEFAULTS
        } else if self.columns.iter().any(|column| column.zerofill.is_some()) {
            WITH_ZEROFILL
        } else if self.stored.is_some() {
            WITH_STORED_COLUMNS
        } else if self.columns.iter().any(|column| column.collation_named) {
            WITH_NAMED_COLLATIONS
        } else if self.has_functional_parts() {
            WITH_HIDDEN_COLUMNS
        } else if !self.kept_keys.is_empty() || self.partitioning.is_some() {
            WITH_PARTITIONS
        } else if !self.checks.is_empty() || self.columns.iter().any(|c| c.is_computed() || c.invisible) {
            WITH_EXPRESSIONS
        } else if !self.foreign_keys.is_empty() {
            WITH_FOREIGN_KEYS
        } else {
            PLAIN
        }
    }

    /// Reads what `encode` wrote. Index parts and foreign keys are checked to name columns of the table.
    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "table definition";
        let version = from.u8(WHAT)?;
        if !(PLAIN..=WITH_TIMES).contains(&version) {
            return Err(from.malformed("version of a table definition"));
        }
        let mut table = Self {
            id: TableId(from.u32(WHAT)?),
            database: from.str(WHAT)?.to_owned(),
            name: from.str(WHAT)?.to_owned(),
            columns: list(from, ColumnDef::decode)?,
            indexes: list(from, IndexDef::decode)?,
            default_collation: Collation(from.u16(WHAT)?),
            comment: from.str(WHAT)?.to_owned(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            kept_keys: Vec::new(),
            partitioning: None,
            view: None,
            created_us: None,
            stated: StatedOptions::default(),
            stored: None,
        };
        if version >= WITH_FOREIGN_KEYS {
            table.foreign_keys = list(from, ForeignKeyDef::decode)?;
        }
        if version >= WITH_EXPRESSIONS {
            table.checks = list(from, CheckDef::decode)?;
        }
        if version >= WITH_PARTITIONS {
            table.kept_keys = list(from, KeptKeyDef::decode)?;
            table.partitioning = Some(from.str(WHAT)?.to_owned()).filter(|text| !text.is_empty());
        }
        let has_stored = match version {
            WITH_ZEROFILL.. => flag(from)?,
            _ => version == WITH_STORED_COLUMNS,
        };
        if has_stored {
            let columns = list(from, |from| {
                let position = u16::try_from(from.varint(WHAT)?).map_err(|_| from.malformed(WHAT))?;
                Ok(StoredColumn { position, before: Datum::decode(from)? })
            })?;
            let stored = StoredColumns { columns, width: from.u16(WHAT)? };
            if !stored.is_sound(table.columns.len()) {
                return Err(from.malformed(WHAT));
            }
            table.stored = Some(Box::new(stored));
        }
        if version >= WITH_TIMES {
            table.created_us = if flag(from)? { Some(from.i64(WHAT)?) } else { None };
            let stated = list(from, |from| {
                let option = StatedOption::of_number(from.u8(WHAT)?).ok_or(from.malformed(WHAT))?;
                Ok((option, from.varint(WHAT)?))
            })?;
            stated.into_iter().for_each(|(option, value)| table.stated.set(option, Some(value)));
        }
        let mut indexed = table.kept_keys.iter().flat_map(|key| &key.columns);
        if indexed.any(|column| *column >= table.columns.len()) {
            return Err(from.malformed(WHAT));
        }
        let mut children = table.foreign_keys.iter().flat_map(|key| &key.columns);
        if children.any(|column| *column >= table.columns.len()) {
            return Err(from.malformed(WHAT));
        }
        let parts = table.indexes.iter().flat_map(|index| &index.parts);
        if parts.into_iter().any(|part| part.column >= table.columns.len()) {
            return Err(from.malformed(WHAT));
        }
        Ok(table)
    }
}

impl ColumnDef {
    fn encode(&self, to: &mut Vec<u8>) {
        to.put_str(&self.name);
        self.ty.encode(to);
        let flags = [
            self.nullable,
            self.on_update_now,
            self.auto_increment,
            self.generated.is_some(),
            self.invisible,
            self.is_hidden(),
            self.collation_named,
            self.zerofill.is_some(),
        ];
        to.put_u8(flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag)));
        match &self.default {
            None => to.put_u8(0),
            Some(DefaultValue::Const(value)) => {
                to.put_u8(1);
                value.encode(to);
            }
            Some(DefaultValue::Now) => to.put_u8(2),
            Some(DefaultValue::Expr(text)) => {
                to.put_u8(3);
                to.put_str(text);
            }
            Some(DefaultValue::Dropped) => to.put_u8(4),
        }
        to.put_str(&self.comment);
        if let Some(generated) = &self.generated {
            to.put_str(&generated.expr);
            to.put_u8(generated.stored.into());
            if let Some(index) = &generated.index {
                to.put_str(index);
            }
        }
        if let Some(width) = self.zerofill {
            to.put_u8(width);
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "column definition";
        let name = from.str(WHAT)?.to_owned();
        let ty = SqlType::decode(from)?;
        let flags = from.u8(WHAT)?;
        let default = match from.u8(WHAT)? {
            0 => None,
            1 => Some(DefaultValue::Const(Datum::decode(from)?)),
            2 => Some(DefaultValue::Now),
            3 => Some(DefaultValue::Expr(from.str(WHAT)?.to_owned())),
            4 => Some(DefaultValue::Dropped),
            _ => return Err(from.malformed(WHAT)),
        };
        // Only generated columns are hidden.
        if flags & (8 | 32) == 32 {
            return Err(from.malformed(WHAT));
        }
        Ok(Self {
            name,
            ty,
            nullable: flags & 1 != 0,
            default,
            on_update_now: flags & 2 != 0,
            auto_increment: flags & 4 != 0,
            comment: from.str(WHAT)?.to_owned(),
            invisible: flags & 16 != 0,
            collation_named: flags & 64 != 0,
            generated: match flags & 8 {
                0 => None,
                _ => Some(GeneratedDef {
                    expr: from.str(WHAT)?.to_owned(),
                    stored: flag(from)?,
                    index: match flags & 32 {
                        0 => None,
                        _ => Some(from.str(WHAT)?.to_owned()),
                    },
                }),
            },
            zerofill: match flags & 128 {
                0 => None,
                _ => Some(from.u8(WHAT)?),
            },
        })
    }
}

impl IndexDef {
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.put_u32(self.id.0);
        to.put_str(&self.name);
        let flags =
            [(GENERATED, self.generated), (INVISIBLE, self.invisible), (COMMENTED, !self.comment.is_empty())];
        let set = flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag);
        to.put_u8(set.fold(self.kind as u8, |byte, flag| byte | flag));
        put_list(&self.parts, to, |part, to| {
            to.put_varint(part.column as u64);
            to.put_u8(part.descending.into());
            to.put_varint(part.prefix_len.map_or(0, |len| u64::from(len) + 1));
        });
        if !self.comment.is_empty() {
            to.put_str(&self.comment);
        }
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "index definition";
        let id = IndexId(from.u32(WHAT)?);
        let name = from.str(WHAT)?.to_owned();
        let kinds = [IndexKind::Primary, IndexKind::Unique, IndexKind::Secondary];
        let tag = from.u8(WHAT)?;
        let is_set = |flag: u8| tag & flag != 0;
        let kind = usize::from(tag & !(GENERATED | INVISIBLE | COMMENTED));
        let kind = kinds.get(kind).copied().ok_or(from.malformed(WHAT))?;
        let parts = list(from, |from| {
            let column = from.varint(WHAT)? as usize;
            let descending = flag(from)?;
            let prefix_len = from.varint(WHAT)?.checked_sub(1).map(u32::try_from).transpose();
            let prefix_len = prefix_len.map_err(|_| from.malformed(WHAT))?;
            Ok(IndexPart { column, descending, prefix_len })
        })?;
        let comment = if is_set(COMMENTED) { from.str(WHAT)?.to_owned() } else { String::new() };
        let (generated, invisible) = (is_set(GENERATED), is_set(INVISIBLE));
        Ok(Self { id, name, kind, parts, generated, invisible, comment })
    }
}

impl ForeignKeyDef {
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.put_str(&self.name);
        put_list(&self.columns, to, |column, to| to.put_varint(*column as u64));
        to.put_str(&self.parent_database);
        to.put_str(&self.parent_table);
        put_list(&self.parent_columns, to, |name, to| to.put_str(name));
        to.put_u8(self.on_delete as u8);
        to.put_u8(self.on_update as u8);
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "foreign key";
        let key = Self {
            name: from.str(WHAT)?.to_owned(),
            columns: list(from, |from| Ok(from.varint(WHAT)? as usize))?,
            parent_database: from.str(WHAT)?.to_owned(),
            parent_table: from.str(WHAT)?.to_owned(),
            parent_columns: list(from, |from| Ok(from.str(WHAT)?.to_owned()))?,
            on_delete: ReferentialAction::decode(from)?,
            on_update: ReferentialAction::decode(from)?,
        };
        if key.columns.is_empty() || key.columns.len() != key.parent_columns.len() {
            return Err(from.malformed(WHAT));
        }
        Ok(key)
    }
}

impl KeptKeyDef {
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.put_str(&self.name);
        put_list(&self.columns, to, |column, to| to.put_varint(*column as u64));
        let kind = match &self.kind {
            KeptKeyKind::Fulltext { parser } => parser.as_deref().unwrap_or_default(),
            KeptKeyKind::Spatial => SPATIAL,
        };
        match &*self.comment {
            "" => to.put_str(kind),
            comment => to.put_str(&format!("{kind}{COMMENT}{comment}")),
        }
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "key without entries";
        let name = from.str(WHAT)?.to_owned();
        let columns = list(from, |from| from.varint(WHAT).map(|column| column as usize))?;
        let kind = from.str(WHAT)?;
        let (kind, comment) = kind.split_once(COMMENT).unwrap_or((kind, ""));
        let kind = match kind {
            SPATIAL => KeptKeyKind::Spatial,
            "" => KeptKeyKind::Fulltext { parser: None },
            parser => KeptKeyKind::Fulltext { parser: Some(parser.to_owned()) },
        };
        Ok(Self { name, columns, kind, comment: comment.to_owned() })
    }
}

impl CheckDef {
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.put_str(&self.name);
        to.put_str(&self.condition);
        to.put_u8(self.enforced.into());
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "check constraint";
        Ok(Self {
            name: from.str(WHAT)?.to_owned(),
            condition: from.str(WHAT)?.to_owned(),
            enforced: flag(from)?,
        })
    }
}

impl ReferentialAction {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "referential action";
        let all = [Self::NoAction, Self::Restrict, Self::Cascade, Self::SetNull, Self::SetDefault];
        let tag = usize::from(from.u8(WHAT)?);
        all.get(tag).copied().ok_or(from.malformed(WHAT))
    }
}
