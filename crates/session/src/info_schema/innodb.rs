//! InnoDB's data dictionary, as `information_schema` has it: the tables, columns and keys that there are, in InnoDB's numbers. For
//! those with PROCESS.

use avocet_engine::TableHandle;
use avocet_types::schema::{ColumnDef, IndexDef, IndexKind, IndexPart, ReferentialAction, TableDef};
use avocet_types::{Collation, Datum, IntWidth, LobSize, SqlType, Value};

use crate::output::{Rowset, text};
use crate::state::Session;

/// Calls `each` with every table that the session sees.
fn each_table(session: &Session, mut each: impl FnMut(&TableHandle)) {
    if session.sees_statements_of_others() {
        let catalog = session.stored_catalog();
        session.seen_tables(&catalog).for_each(|table| each(table));
    }
}

fn name_of(table: &TableDef) -> String {
    format!("{}/{}", table.database, table.name)
}

fn int(value: i64) -> Option<Value> {
    Some(Datum::Int(value))
}

fn count(value: u64) -> Option<Value> {
    Some(Datum::UInt(value))
}

fn table_id(table: &TableDef) -> u64 {
    table.id.0.into()
}

/// Indexes are numbered within their tables.
fn index_id(table: &TableDef, index: &IndexDef) -> u64 {
    table_id(table) << 16 | u64::from(index.id.0 & 0xFFFF)
}

pub(super) fn tables(session: &Session, rows: &mut Rowset) {
    each_table(session, |table| {
        let table = &table.def;
        rows.push_named(|column| match column {
            "TABLE_ID" => count(table_id(table)),
            "NAME" => Some(text(name_of(table))),
            "FLAG" => int(33),
            // Those that InnoDB adds, too.
            "N_COLS" => int(table.own_columns().len() as i64 + 3),
            "SPACE" => int(table.id.0.into()),
            "ROW_FORMAT" => Some(text("Dynamic")),
            "ZIP_PAGE_SIZE" => count(0),
            "SPACE_TYPE" => Some(text("Single")),
            "INSTANT_COLS" | "TOTAL_ROW_VERSIONS" => int(0),
            _ => None,
        });
    });
}

pub(super) fn columns(session: &Session, rows: &mut Rowset) {
    each_table(session, |table| {
        let table = &table.def;
        for (at, own) in table.own_columns().iter().enumerate() {
            let (main_type, precise_type, len) = innodb_type(own);
            rows.push_named(|column| match column {
                "TABLE_ID" => count(table_id(table)),
                "NAME" => Some(text(&own.name)),
                "POS" => count(at as u64),
                "MTYPE" => int(main_type),
                "PRTYPE" => int(precise_type),
                "LEN" => int(len),
                "HAS_DEFAULT" => int(0),
                _ => None,
            });
        }
    });
}

const NOT_NULL: i64 = 256;
const UNSIGNED: i64 = 512;
const BINARY: i64 = 1024;
/// Of a VARCHAR whose length takes two bytes.
const LONG: i64 = 4096;

/// A column's main type, precise type (the type's code, flags, collation) and length in bytes.
fn innodb_type(column: &ColumnDef) -> (i64, i64, i64) {
    let (int, fixed, blob) = (6, 3, 5);
    let collated = |collation: Collation| i64::from(collation.0) << 16;
    let binary = collated(Collation::BINARY) | BINARY;
    // Values that InnoDB compares as bytes have a collation of their own.
    let numeral = (8 << 16) | BINARY;
    let sign = |unsigned: bool| if unsigned { UNSIGNED } else { 0 };
    let bytes =
        |len: u32, collation: Collation| i64::from(len) * i64::from(collation.info().charset.max_len());
    let lob = |size: LobSize| match size {
        LobSize::Tiny => 9,
        LobSize::Normal => 10,
        LobSize::Medium => 11,
        LobSize::Long => 12,
    };
    let text = |collation: Collation| match collation.is_binary() {
        true => collated(collation) | BINARY,
        false => collated(collation),
    };
    let fraction = |fsp: u8| i64::from(fsp.div_ceil(2));
    let (main, precise, len) = match column.ty {
        SqlType::Bool => (int, BINARY | 1, 1),
        SqlType::Int { width, unsigned } => {
            let (code, len) = match width {
                IntWidth::W8 => (1, 1),
                IntWidth::W16 => (2, 2),
                IntWidth::W24 => (9, 3),
                IntWidth::W32 => (3, 4),
                IntWidth::W64 => (8, 8),
            };
            (int, BINARY | sign(unsigned) | code, len)
        }
        SqlType::Decimal { precision, scale, unsigned } => {
            const BYTES: [i64; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
            let digits = |digits: u8| i64::from(digits / 9) * 4 + BYTES[usize::from(digits % 9)];
            (fixed, numeral | sign(unsigned) | 246, digits(precision - scale) + digits(scale))
        }
        SqlType::Float(real) => (9, BINARY | sign(real.unsigned) | 4, 4),
        SqlType::Double(real) => (10, BINARY | sign(real.unsigned) | 5, 8),
        SqlType::Char { len, collation } => (13, text(collation) | 254, bytes(len, collation)),
        SqlType::VarChar { len, collation } => {
            let len = bytes(len, collation);
            let main = if collation.info().id == 8 { 1 } else { 12 };
            (main, text(collation) | 15 | if len > 255 { LONG } else { 0 }, len)
        }
        SqlType::Text { size, collation } => (blob, text(collation) | 252, lob(size)),
        SqlType::Binary { len } => (fixed, binary | 254, len.into()),
        SqlType::VarBinary { len } => (4, binary | 15 | if len > 255 { LONG } else { 0 }, len.into()),
        SqlType::Blob { size } => (blob, binary | 252, lob(size)),
        SqlType::Json => (blob, collated(Collation::UTF8MB4_BIN) | BINARY | 245, 12),
        SqlType::Geometry { .. } => (14, binary | 255, 12),
        SqlType::Date => (int, BINARY | 10, 3),
        SqlType::DateTime { fsp } => (fixed, numeral | 12, 5 + fraction(fsp)),
        SqlType::Timestamp { fsp } => (fixed, numeral | 7, 4 + fraction(fsp)),
        SqlType::Time { fsp } => (fixed, numeral | 11, 3 + fraction(fsp)),
        SqlType::Year => (int, BINARY | UNSIGNED | 13, 1),
        SqlType::Enum(members) => (int, UNSIGNED | 254, if members.count() > 255 { 2 } else { 1 }),
        SqlType::Set(members) => {
            (int, UNSIGNED | 254, members.count().div_ceil(8).next_power_of_two() as i64)
        }
        SqlType::Bit { len } => (fixed, binary | 16, i64::from(len.div_ceil(8))),
        SqlType::Null => (fixed, binary, 0),
    };
    (main, precise | if column.nullable { 0 } else { NOT_NULL }, len)
}

pub(super) fn indexes(session: &Session, rows: &mut Rowset) {
    each_table(session, |table| {
        let table = &table.def;
        for (at, index) in table.indexes.iter().enumerate() {
            let kind = match index.kind {
                IndexKind::Primary => 3,
                IndexKind::Unique => 2,
                IndexKind::Secondary => 0,
            };
            let fields = match index.kind {
                // The clustered index has every column, and two that InnoDB adds.
                IndexKind::Primary => table.own_columns().len() + 2,
                _ => {
                    let own = |part: &&IndexPart| index.parts.iter().all(|other| other.column != part.column);
                    let of_key = table.primary_key().map_or(1, |key| key.parts.iter().filter(own).count());
                    index.parts.len() + of_key
                }
            };
            rows.push_named(|column| match column {
                "INDEX_ID" => count(index_id(table, index)),
                "NAME" => Some(text(&index.name)),
                "TABLE_ID" => count(table_id(table)),
                "TYPE" => int(kind),
                "N_FIELDS" => int(fields as i64),
                "PAGE_NO" => int(at as i64 + 4),
                "SPACE" => int(table.id.0.into()),
                "MERGE_THRESHOLD" => int(50),
                _ => None,
            });
        }
    });
}

pub(super) fn fields(session: &Session, rows: &mut Rowset) {
    each_table(session, |table| {
        let table = &table.def;
        for index in &table.indexes {
            for (at, part) in index.parts.iter().enumerate() {
                rows.push_named(|column| match column {
                    "INDEX_ID" => Some(Datum::Bytes(index_id(table, index).to_string().into_bytes().into())),
                    "NAME" => Some(text(table.columns[part.column].shown_name())),
                    "POS" => count(at as u64),
                    _ => None,
                });
            }
        }
    });
}

pub(super) fn statistics(session: &Session, rows: &mut Rowset) {
    each_table(session, |table| {
        let next = table.def.auto_increment_column().map_or(0, |_| table.next_auto_increment());
        rows.push_named(|column| match column {
            "TABLE_ID" => count(table_id(&table.def)),
            "NAME" => Some(text(name_of(&table.def))),
            "STATS_INITIALIZED" => Some(text("Initialized")),
            "NUM_ROWS" => count(table.row_count()),
            "AUTOINC" => count(next),
            _ => None,
        });
    });
}

/// As the optimizer sees tables; in pages of InnoDB's size.
pub(super) fn table_stats(session: &Session, rows: &mut Rowset) {
    const PAGE: u64 = 16 << 10;
    each_table(session, |table| {
        let bytes = table.data_bytes();
        rows.push_named(|column| match column {
            "database_name" => Some(text(&table.def.database)),
            "table_name" => Some(text(&table.def.name)),
            "n_rows" => count(table.row_count()),
            "clustered_index_size" => count((bytes / PAGE).max(1)),
            "sum_of_other_index_sizes" => count(0),
            _ => None,
        });
    });
}

/// What a foreign key does, in InnoDB's bits.
fn actions(delete: ReferentialAction, update: ReferentialAction) -> u64 {
    let bits = |action: ReferentialAction, [cascade, null, none]: [u64; 3]| match action {
        ReferentialAction::Cascade => cascade,
        ReferentialAction::SetNull => null,
        ReferentialAction::NoAction => none,
        _ => 0,
    };
    bits(delete, [1, 2, 16]) | bits(update, [4, 8, 32])
}

pub(super) fn foreign(session: &Session, rows: &mut Rowset) {
    each_table(session, |table| {
        let table = &table.def;
        for key in &table.foreign_keys {
            rows.push_named(|column| match column {
                "ID" => Some(text(format!("{}/{}", table.database, key.name))),
                "FOR_NAME" => Some(text(name_of(table))),
                "REF_NAME" => Some(text(format!("{}/{}", key.parent_database, key.parent_table))),
                "N_COLS" => int(key.columns.len() as i64),
                "TYPE" => count(actions(key.on_delete, key.on_update)),
                _ => None,
            });
        }
    });
}

pub(super) fn foreign_columns(session: &Session, rows: &mut Rowset) {
    each_table(session, |table| {
        let table = &table.def;
        for key in &table.foreign_keys {
            for (at, (own, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
                rows.push_named(|column| match column {
                    "ID" => Some(text(format!("{}/{}", table.database, key.name))),
                    "FOR_COL_NAME" => Some(text(&table.columns[*own].name)),
                    "REF_COL_NAME" => Some(text(parent)),
                    "POS" => count(at as u64 + 1),
                    _ => None,
                });
            }
        }
    });
}
