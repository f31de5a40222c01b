//! Bytes of types, values and table definitions, as the catalog keeps them in the log and in checkpoints.
//!
//! A table definition begins with a version, so that later releases read what this one wrote. Everything else is inside one and
//! has none. Enums are a tag byte and their fields; tags are never reused.
//!
//! ```text
//!  table    version u8 = 1 to 8 │ id u32 │ database │ name │ columns │ indexes │ collation u16 │ comment
//!           from version 2: │ foreign keys, from version 3: │ checks,
//!           from version 4: │ fulltext and spatial keys │ partitioning: text, empty if there is none
//!           from version 7: │ where blocks have the columns: list of position varint, value │ width u16
//!           (version 8: behind a u8, 0 if blocks have them as they are)
//!  type     tag u8 │ what the type has: of ENUM and SET collation u16 │ names
//!  column   name │ type │ flags u8 (1 nullable, 2 on update now, 4 auto_increment, 8 generated,
//!           16 invisible, 32 hidden, 64 collation named: version 6,
//!           128 zerofill: version 8) │ default │ comment
//!           if generated (version 3): │ expression: text │ stored u8, if hidden (version 5): │ index: text
//!           if zerofill: │ characters u8
//!  default  0 none │ 1 value │ 2 now │ 3 expression: text (version 3)
//!  index    id u32 │ name │ kind u8 (128 added: made for a foreign key, 64: invisible) │ parts
//!  part     column varint │ descending u8 │ prefix length + 1, or 0: varint
//!  foreign  name │ child's columns: list of varint │ parent's database │ table │ columns: list
//!           │ on delete u8 │ on update u8 (0 no action, 1 restrict, 2 cascade, 3 set null, 4 set default)
//!  fulltext name │ columns: list of varint │ parser: text, empty if there is none; of a SPATIAL key a zero byte
//!  check    name │ condition: text │ enforced u8
//! ```
//!
//! A table without foreign keys is written as version 1, which every release reads, and one without expressions as version 2 at
//! most.

use arrow::datatypes::i256;
use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::{IndexId, TableId};

use crate::datum::{Datum, Value};
use crate::decimal::Decimal;
use crate::geometry::GeometryType;
use crate::members::{MAX_ENUM, MAX_SET, Members};
use crate::schema::{
    CheckDef, ColumnDef, DefaultValue, ForeignKeyDef, GeneratedDef, IndexDef, IndexKind, IndexPart,
    KeptKeyDef, KeptKeyKind, ReferentialAction, TableDef,
};
use crate::sql_type::{Collation, IntWidth, LobSize, RealFormat, SqlType};
use crate::stored::{StoredColumn, StoredColumns};

/// Of tables without foreign keys.
const PLAIN: u8 = 1;
const WITH_FOREIGN_KEYS: u8 = 2;
/// Definitions keep expressions (defaults, checks, generated columns) or invisible columns.
const WITH_EXPRESSIONS: u8 = 3;
/// Of partitioned tables, and those with FULLTEXT or SPATIAL keys.
const WITH_PARTITIONS: u8 = 4;
/// Of tables with functional key parts, whose columns are hidden.
const WITH_HIDDEN_COLUMNS: u8 = 5;
/// Columns say that their collations were named.
const WITH_NAMED_COLLATIONS: u8 = 6;
/// Of tables whose columns have changed under their blocks.
const WITH_STORED_COLUMNS: u8 = 7;
/// Columns show their numbers with zeros before them.
const WITH_ZEROFILL: u8 = 8;

/// Where a FULLTEXT key has its parser's name, which has no such byte.
const SPATIAL: &str = "\0";

/// Beside the kind of an index that was made for a foreign key.
const GENERATED: u8 = 0x80;
/// Beside the kind of an index that no plan uses.
const INVISIBLE: u8 = 0x40;

/// More columns or indexes than a table can have: longer lists are damage.
const MAX_ITEMS: u64 = 1 << 16;

impl SqlType {
    pub fn encode(&self, to: &mut Vec<u8>) {
        let collated = |to: &mut Vec<u8>, tag: u8, len: u32, collation: Collation| {
            to.put_u8(tag);
            to.put_varint(len.into());
            to.put_u16(collation.0);
        };
        let listed = |to: &mut Vec<u8>, tag: u8, members: Members| {
            to.put_u8(tag);
            to.put_u16(members.collation().0);
            put_list(members.names(), to, |name, to| to.put_str(name));
        };
        // Without (M,D), M is 0.
        let formatted = |to: &mut Vec<u8>, tag: u8, real: RealFormat| {
            let (digits, decimals) = real.digits.unwrap_or_default();
            to.extend_from_slice(&[tag, real.unsigned.into(), digits, decimals]);
        };
        match *self {
            Self::Null => to.put_u8(0),
            Self::Bool => to.put_u8(1),
            Self::Int { width, unsigned } => to.extend_from_slice(&[2, width as u8, unsigned.into()]),
            Self::Decimal { precision, scale, unsigned } => {
                to.extend_from_slice(&[3, precision, scale, unsigned.into()]);
            }
            Self::Float(RealFormat::PLAIN) => to.put_u8(4),
            Self::Double(RealFormat::PLAIN) => to.put_u8(5),
            Self::Float(real) => formatted(to, 23, real),
            Self::Double(real) => formatted(to, 24, real),
            Self::Char { len, collation } => collated(to, 6, len, collation),
            Self::VarChar { len, collation } => collated(to, 7, len, collation),
            Self::Text { size, collation } => collated(to, 8, size as u32, collation),
            Self::Binary { len } => {
                to.put_u8(9);
                to.put_varint(len.into());
            }
            Self::VarBinary { len } => {
                to.put_u8(10);
                to.put_varint(len.into());
            }
            Self::Blob { size } => to.extend_from_slice(&[11, size as u8]),
            Self::Date => to.put_u8(12),
            Self::DateTime { fsp } => to.extend_from_slice(&[13, fsp]),
            Self::Timestamp { fsp } => to.extend_from_slice(&[14, fsp]),
            Self::Time { fsp } => to.extend_from_slice(&[15, fsp]),
            Self::Year => to.put_u8(16),
            Self::Enum(members) => listed(to, 20, members),
            Self::Set(members) => listed(to, 21, members),
            Self::Bit { len } => to.extend_from_slice(&[22, len]),
            Self::Json => to.put_u8(17),
            Self::Geometry { ty, srid } => {
                to.extend_from_slice(&[25, ty as u8, srid.is_some().into()]);
                to.put_u32(srid.unwrap_or_default());
            }
        }
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "SQL type";
        let len = |from: &mut Reader<'_>| {
            let len = from.varint(WHAT)?;
            u32::try_from(len).map_err(|_| from.malformed(WHAT))
        };
        let collation = |from: &mut Reader<'_>| from.u16(WHAT).map(Collation);
        let size = |from: &mut Reader<'_>| {
            let sizes = [LobSize::Tiny, LobSize::Normal, LobSize::Medium, LobSize::Long];
            let tag = from.varint(WHAT)?;
            sizes.get(tag as usize).copied().ok_or(from.malformed(WHAT))
        };
        let fsp = |from: &mut Reader<'_>| match from.u8(WHAT)? {
            fsp @ 0..=6 => Ok(fsp),
            _ => Err(from.malformed(WHAT)),
        };
        Ok(match from.u8(WHAT)? {
            0 => Self::Null,
            1 => Self::Bool,
            2 => {
                let widths = [IntWidth::W8, IntWidth::W16, IntWidth::W24, IntWidth::W32, IntWidth::W64];
                let width = usize::from(from.u8(WHAT)?);
                let width = widths.get(width).copied().ok_or(from.malformed(WHAT))?;
                Self::Int { width, unsigned: flag(from)? }
            }
            3 => {
                let (precision, scale) = (from.u8(WHAT)?, from.u8(WHAT)?);
                let valid = (1..=Decimal::MAX_PRECISION).contains(&precision)
                    && scale <= precision.min(Decimal::MAX_SCALE);
                if !valid {
                    return Err(from.malformed(WHAT));
                }
                Self::Decimal { precision, scale, unsigned: flag(from)? }
            }
            4 => Self::FLOAT,
            5 => Self::DOUBLE,
            tag @ (23 | 24) => {
                let unsigned = flag(from)?;
                let (digits, decimals) = (from.u8(WHAT)?, from.u8(WHAT)?);
                if decimals > digits {
                    return Err(from.malformed(WHAT));
                }
                let real = RealFormat { unsigned, digits: (digits > 0).then_some((digits, decimals)) };
                if tag == 23 { Self::Float(real) } else { Self::Double(real) }
            }
            6 => Self::Char { len: len(from)?, collation: collation(from)? },
            7 => Self::VarChar { len: len(from)?, collation: collation(from)? },
            8 => Self::Text { size: size(from)?, collation: collation(from)? },
            9 => Self::Binary { len: len(from)? },
            10 => Self::VarBinary { len: len(from)? },
            11 => Self::Blob { size: size(from)? },
            12 => Self::Date,
            13 => Self::DateTime { fsp: fsp(from)? },
            14 => Self::Timestamp { fsp: fsp(from)? },
            15 => Self::Time { fsp: fsp(from)? },
            16 => Self::Year,
            20 => Self::Enum(members(from, MAX_ENUM)?),
            21 => Self::Set(members(from, MAX_SET)?),
            22 => match from.u8(WHAT)? {
                len @ 1..=64 => Self::Bit { len },
                _ => return Err(from.malformed(WHAT)),
            },
            17 => Self::Json,
            25 => {
                let ty = GeometryType::of_code(from.u8(WHAT)?.into()).ok_or(from.malformed(WHAT))?;
                let has_srid = flag(from)?;
                let srid = from.u32(WHAT)?;
                Self::Geometry { ty, srid: has_srid.then_some(srid) }
            }
            _ => return Err(from.malformed(WHAT)),
        })
    }
}

/// The members of an ENUM or SET: their collation and names.
fn members(from: &mut Reader<'_>, most: usize) -> Result<Members, Malformed> {
    const WHAT: &str = "members";
    let collation = Collation(from.u16(WHAT)?);
    let names = list(from, |from| Ok(from.str(WHAT)?.to_owned()))?;
    if names.is_empty() || names.len() > most {
        return Err(from.malformed(WHAT));
    }
    Members::of_stored(names, collation).map_err(|_| from.malformed(WHAT))
}

fn flag(from: &mut Reader<'_>) -> Result<bool, Malformed> {
    match from.u8("flag")? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(from.malformed("flag")),
    }
}

impl Datum<'_> {
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Null => to.put_u8(0),
            Self::Int(v) => {
                to.put_u8(1);
                to.put_i64(*v);
            }
            Self::UInt(v) => {
                to.put_u8(2);
                to.put_u64(*v);
            }
            Self::Float(v) => {
                to.put_u8(3);
                to.put_u32(v.to_bits());
            }
            Self::Double(v) => {
                to.put_u8(4);
                to.put_f64(*v);
            }
            Self::Decimal(v) => {
                to.extend_from_slice(&[5, v.scale()]);
                to.extend_from_slice(&v.as_i256().to_le_bytes());
            }
            Self::Str(v) => {
                to.put_u8(6);
                to.put_str(v);
            }
            Self::Bytes(v) => {
                to.put_u8(7);
                to.put_bytes(v);
            }
            Self::Date(v) => {
                to.put_u8(8);
                to.put_u32(*v as u32);
            }
            Self::DateTime(v) => {
                to.put_u8(9);
                to.put_i64(*v);
            }
            Self::Time(v) => {
                to.put_u8(10);
                to.put_i64(*v);
            }
        }
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Value, Malformed> {
        const WHAT: &str = "value";
        Ok(match from.u8(WHAT)? {
            0 => Datum::Null,
            1 => Datum::Int(from.i64(WHAT)?),
            2 => Datum::UInt(from.u64(WHAT)?),
            3 => Datum::Float(f32::from_bits(from.u32(WHAT)?)),
            4 => Datum::Double(from.f64(WHAT)?),
            5 => {
                let scale = from.u8(WHAT)?;
                let raw = from.take(32, WHAT)?;
                if scale > Decimal::MAX_SCALE {
                    return Err(from.malformed(WHAT));
                }
                let unscaled =
                    i256::from_le_bytes(raw.try_into().expect("take returns the length asked for"));
                Datum::Decimal(Decimal::from_i256(unscaled, scale))
            }
            6 => Datum::Str(from.str(WHAT)?.to_owned().into()),
            7 => Datum::Bytes(from.bytes(WHAT)?.to_owned().into()),
            8 => Datum::Date(from.u32(WHAT)? as i32),
            9 => Datum::DateTime(from.i64(WHAT)?),
            10 => Datum::Time(from.i64(WHAT)?),
            _ => return Err(from.malformed(WHAT)),
        })
    }
}

/// A list: its length and its items.
fn put_list<T>(items: &[T], to: &mut Vec<u8>, mut put: impl FnMut(&T, &mut Vec<u8>)) {
    to.put_varint(items.len() as u64);
    items.iter().for_each(|item| put(item, to));
}

fn list<T>(
    from: &mut Reader<'_>,
    mut item: impl FnMut(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = from.varint("list")?;
    if count > MAX_ITEMS {
        return Err(from.malformed("list"));
    }
    (0..count).map(|_| item(from)).collect()
}

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
        if version == WITH_ZEROFILL {
            to.put_u8(self.stored.is_some().into());
        }
        if let Some(stored) = &self.stored {
            put_list(&stored.columns, to, |column, to| {
                to.put_varint(column.position.into());
                column.before.encode(to);
            });
            to.put_u16(stored.width);
        }
    }

    /// The lowest that has all of it.
    fn version(&self) -> u8 {
        if self.columns.iter().any(|column| column.zerofill.is_some()) {
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
        if !(PLAIN..=WITH_ZEROFILL).contains(&version) {
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
            WITH_ZEROFILL => flag(from)?,
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
        let flags = if self.generated { GENERATED } else { 0 } | if self.invisible { INVISIBLE } else { 0 };
        to.put_u8(self.kind as u8 | flags);
        put_list(&self.parts, to, |part, to| {
            to.put_varint(part.column as u64);
            to.put_u8(part.descending.into());
            to.put_varint(part.prefix_len.map_or(0, |len| u64::from(len) + 1));
        });
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "index definition";
        let id = IndexId(from.u32(WHAT)?);
        let name = from.str(WHAT)?.to_owned();
        let kinds = [IndexKind::Primary, IndexKind::Unique, IndexKind::Secondary];
        let tag = from.u8(WHAT)?;
        let (generated, invisible) = (tag & GENERATED != 0, tag & INVISIBLE != 0);
        let kind =
            kinds.get(usize::from(tag & !(GENERATED | INVISIBLE))).copied().ok_or(from.malformed(WHAT))?;
        let parts = list(from, |from| {
            let column = from.varint(WHAT)? as usize;
            let descending = flag(from)?;
            let prefix_len = from.varint(WHAT)?.checked_sub(1).map(u32::try_from).transpose();
            let prefix_len = prefix_len.map_err(|_| from.malformed(WHAT))?;
            Ok(IndexPart { column, descending, prefix_len })
        })?;
        Ok(Self { id, name, kind, parts, generated, invisible })
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
        to.put_str(match &self.kind {
            KeptKeyKind::Fulltext { parser } => parser.as_deref().unwrap_or_default(),
            KeptKeyKind::Spatial => SPATIAL,
        });
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "key without entries";
        Ok(Self {
            name: from.str(WHAT)?.to_owned(),
            columns: list(from, |from| from.varint(WHAT).map(|column| column as usize))?,
            kind: match from.str(WHAT)? {
                SPATIAL => KeptKeyKind::Spatial,
                "" => KeptKeyKind::Fulltext { parser: None },
                parser => KeptKeyKind::Fulltext { parser: Some(parser.to_owned()) },
            },
        })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(names: &[&str]) -> Members {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Members::new(names, Collation::UTF8MB4_BIN).expect("distinct names")
    }

    fn table() -> TableDef {
        let column = |name: &str, ty, default| ColumnDef {
            name: name.into(),
            ty,
            nullable: default,
            default: default.then(|| DefaultValue::Const(Datum::Decimal(Decimal::new(-150, 2)))),
            on_update_now: !default,
            auto_increment: false,
            generated: None,
            invisible: false,
            collation_named: false,
            zerofill: None,
            comment: "ä".into(),
        };
        let collation = Collation::UTF8MB4_BIN;
        let types = [
            SqlType::Null,
            SqlType::Bool,
            SqlType::Int { width: IntWidth::W24, unsigned: true },
            SqlType::Decimal { precision: 65, scale: 30, unsigned: false },
            SqlType::FLOAT,
            SqlType::DOUBLE,
            SqlType::Float(RealFormat { unsigned: true, digits: None }),
            SqlType::Double(RealFormat { unsigned: false, digits: Some((10, 3)) }),
            SqlType::Char { len: 255, collation },
            SqlType::VarChar { len: 20, collation },
            SqlType::Text { size: LobSize::Long, collation },
            SqlType::Binary { len: 16 },
            SqlType::VarBinary { len: 300 },
            SqlType::Blob { size: LobSize::Tiny },
            SqlType::Date,
            SqlType::DateTime { fsp: 6 },
            SqlType::Timestamp { fsp: 3 },
            SqlType::Time { fsp: 0 },
            SqlType::Year,
            SqlType::Enum(members(&["a", "ü"])),
            SqlType::Set(members(&["x", "y", "z"])),
            SqlType::Bit { len: 64 },
            SqlType::Json,
            SqlType::GEOMETRY,
            SqlType::Geometry { ty: GeometryType::Point, srid: Some(4326) },
        ];
        TableDef {
            view: None,
            stored: None,
            id: TableId(7),
            database: "d".into(),
            name: "t".into(),
            columns: types.iter().enumerate().map(|(i, ty)| column("c", *ty, i % 2 == 0)).collect(),
            indexes: vec![IndexDef {
                id: IndexId(9),
                name: "PRIMARY".into(),
                kind: IndexKind::Primary,
                parts: vec![
                    IndexPart { column: 2, descending: false, prefix_len: None },
                    IndexPart { column: 7, descending: true, prefix_len: Some(10) },
                ],
                generated: true,
                invisible: true,
            }],
            default_collation: collation,
            comment: String::new(),
            foreign_keys: vec![ForeignKeyDef {
                name: "t_ibfk_1".into(),
                columns: vec![3, 1],
                parent_database: "e".into(),
                parent_table: "p".into(),
                parent_columns: vec!["a".into(), "b".into()],
                on_delete: ReferentialAction::Cascade,
                on_update: ReferentialAction::SetNull,
            }],
            kept_keys: Vec::new(),
            partitioning: None,
            checks: vec![CheckDef { name: "t_chk_1".into(), condition: "(`c` > 0)".into(), enforced: false }],
        }
    }

    #[test]
    fn tables_round_trip() {
        let with = TableDef { checks: Vec::new(), ..table() };
        let without = TableDef { foreign_keys: Vec::new(), ..with.clone() };
        let mut computed = without.clone();
        computed.columns[3].default = Some(DefaultValue::Expr("uuid()".into()));
        let mut generated = without.clone();
        let from = GeneratedDef { expr: "(`a` + 1)".into(), stored: true, index: None };
        generated.columns[4].generated = Some(from.clone());
        let mut functional = without.clone();
        let last = functional.columns.last_mut().expect("there are columns");
        last.generated = Some(GeneratedDef { index: Some("k".into()), ..from });
        let mut invisible = without.clone();
        invisible.columns[4].invisible = true;
        let fulltext = KeptKeyDef {
            name: "f".into(),
            columns: vec![9, 8],
            kind: KeptKeyKind::Fulltext { parser: Some("ngram".into()) },
        };
        let searched = TableDef { kept_keys: vec![fulltext], ..without.clone() };
        let partitioned = TableDef { partitioning: Some("HASH (`c`)".into()), ..table() };
        let mut changed = partitioned.clone();
        let columns = (0..changed.columns.len() as u16).rev();
        let columns = columns.map(|at| StoredColumn { position: at + 3, before: Datum::Int(at.into()) });
        let width = changed.columns.len() as u16 + 3;
        changed.stored = Some(Box::new(StoredColumns { columns: columns.collect(), width }));
        let mut filled = without.clone();
        filled.columns[3].zerofill = Some(5);
        let mut filled_and_changed = changed.clone();
        filled_and_changed.columns[3].zerofill = Some(20);
        let versions = [
            (filled, WITH_ZEROFILL),
            (filled_and_changed, WITH_ZEROFILL),
            (changed, WITH_STORED_COLUMNS),
            (functional, WITH_HIDDEN_COLUMNS),
            (searched, WITH_PARTITIONS),
            (partitioned, WITH_PARTITIONS),
            (table(), WITH_EXPRESSIONS),
            (computed, WITH_EXPRESSIONS),
            (generated, WITH_EXPRESSIONS),
            (invisible, WITH_EXPRESSIONS),
            (with, WITH_FOREIGN_KEYS),
            (without, PLAIN),
        ];
        for (table, version) in versions {
            let mut bytes = Vec::new();
            table.encode(&mut bytes);
            assert_eq!(bytes[0], version);
            let mut from = Reader::new(&bytes);
            let back = TableDef::decode(&mut from).expect("valid");
            assert!(from.is_empty());
            assert_eq!(format!("{back:?}"), format!("{table:?}"));
        }
    }

    #[test]
    fn values_round_trip() {
        for value in [
            Datum::Null,
            Datum::Int(-1),
            Datum::UInt(u64::MAX),
            Datum::Float(0.5),
            Datum::Double(-1e300),
            Datum::Decimal(Decimal::max_of(65, 30, true)),
            Datum::str("ü"),
            Datum::bytes(&[0, 255]),
            Datum::Date(-1),
            Datum::DateTime(i64::MIN),
            Datum::Time(1),
        ] {
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            let back = Datum::decode(&mut Reader::new(&bytes)).expect("valid");
            assert_eq!(format!("{back:?}"), format!("{value:?}"));
        }
    }

    proptest! {
        #[test]
        fn damaged_definitions_never_panic(at in 0usize..1000, byte in any::<u8>(), len in 0usize..1000) {
            let mut bytes = Vec::new();
            table().encode(&mut bytes);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(len.max(at + 1));
            let _ = TableDef::decode(&mut Reader::new(&bytes));
        }
    }
}
