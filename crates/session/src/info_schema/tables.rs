//! The tables of `information_schema` that clients ask for.

use avocet_engine::TableHandle;
use avocet_types::schema::{ForeignKeyDef, IndexKind, IndexPart, TableDef};
use avocet_types::{Datum, IntWidth, SqlType, Value};

use crate::output::{COUNT, LONG_TEXT, Only, Rowset, optional, text, varchar};
use crate::show::{
    SPATIAL_PART, cardinality, charset_rows, checks_of, collation_rows, default_of, escaped, extra_of, key_of,
};
use crate::state::Session;

pub(super) type Entry = (fn() -> Rowset, fn(&Session, &mut Rowset));

pub(super) const TABLES: &[Entry] = &[
    (character_sets, |_, rows| rows.rows = charset_list()),
    (check_constraints, fill_check_constraints),
    (collations, |_, rows| rows.rows = collation_rows()),
    (columns, fill_columns),
    (key_column_usage, fill_key_column_usage),
    (processlist, fill_processlist),
    (referential_constraints, fill_referential_constraints),
    (schemata, fill_schemata),
    (statistics, fill_statistics),
    (table_constraints, fill_table_constraints),
    (tables, fill_tables),
];

pub(super) const NAME_TYPE: SqlType = varchar(64);
pub(crate) const UINT: SqlType = SqlType::Int { width: IntWidth::W32, unsigned: true };

pub(super) fn none(_: &Session, _: &mut Rowset) {}

fn character_sets() -> Rowset {
    Rowset::new(
        "CHARACTER_SETS",
        &[
            ("CHARACTER_SET_NAME", NAME_TYPE),
            ("DEFAULT_COLLATE_NAME", NAME_TYPE),
            ("DESCRIPTION", varchar(2048)),
            ("MAXLEN", COUNT),
        ],
    )
}

fn charset_list() -> Vec<Vec<Value>> {
    let mut rows = charset_rows();
    rows.iter_mut().for_each(|row| row.swap(1, 2));
    rows
}

fn check_constraints() -> Rowset {
    Rowset::new(
        "CHECK_CONSTRAINTS",
        &[
            ("CONSTRAINT_CATALOG", NAME_TYPE),
            ("CONSTRAINT_SCHEMA", NAME_TYPE),
            ("CONSTRAINT_NAME", NAME_TYPE),
            ("CHECK_CLAUSE", LONG_TEXT),
        ],
    )
}

fn fill_check_constraints(session: &Session, rows: &mut Rowset) {
    let (catalog, only) = (session.stored_catalog(), rows.only.clone());
    for handle in session.seen_tables(&catalog).filter(|handle| only.wants(&handle.def)) {
        let table = &handle.def;
        for check in &table.checks {
            let clause = escaped(&check.condition);
            rows.push(vec![text("def"), text(&table.database), text(&check.name), text(clause)]);
        }
    }
}

fn collations() -> Rowset {
    Rowset::new(
        "COLLATIONS",
        &[
            ("COLLATION_NAME", NAME_TYPE),
            ("CHARACTER_SET_NAME", NAME_TYPE),
            ("ID", COUNT),
            ("IS_DEFAULT", varchar(3)),
            ("IS_COMPILED", varchar(3)),
            ("SORTLEN", COUNT),
            ("PAD_ATTRIBUTE", varchar(9)),
        ],
    )
}

fn columns() -> Rowset {
    Rowset::new(
        "COLUMNS",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("COLUMN_NAME", NAME_TYPE),
            ("ORDINAL_POSITION", UINT),
            ("COLUMN_DEFAULT", LONG_TEXT),
            ("IS_NULLABLE", varchar(3)),
            ("DATA_TYPE", LONG_TEXT),
            ("CHARACTER_MAXIMUM_LENGTH", SqlType::BIGINT),
            ("CHARACTER_OCTET_LENGTH", SqlType::BIGINT),
            ("NUMERIC_PRECISION", COUNT),
            ("NUMERIC_SCALE", COUNT),
            ("DATETIME_PRECISION", UINT),
            ("CHARACTER_SET_NAME", NAME_TYPE),
            ("COLLATION_NAME", NAME_TYPE),
            ("COLUMN_TYPE", LONG_TEXT),
            ("COLUMN_KEY", varchar(3)),
            ("EXTRA", varchar(256)),
            ("PRIVILEGES", varchar(154)),
            ("COLUMN_COMMENT", LONG_TEXT),
            ("GENERATION_EXPRESSION", LONG_TEXT),
            ("SRS_ID", UINT),
        ],
    )
}

fn key_column_usage() -> Rowset {
    Rowset::new(
        "KEY_COLUMN_USAGE",
        &[
            ("CONSTRAINT_CATALOG", NAME_TYPE),
            ("CONSTRAINT_SCHEMA", NAME_TYPE),
            ("CONSTRAINT_NAME", NAME_TYPE),
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("COLUMN_NAME", NAME_TYPE),
            ("ORDINAL_POSITION", UINT),
            ("POSITION_IN_UNIQUE_CONSTRAINT", UINT),
            ("REFERENCED_TABLE_SCHEMA", NAME_TYPE),
            ("REFERENCED_TABLE_NAME", NAME_TYPE),
            ("REFERENCED_COLUMN_NAME", NAME_TYPE),
        ],
    )
}

fn processlist() -> Rowset {
    Rowset::new(
        "PROCESSLIST",
        &[
            ("ID", COUNT),
            ("USER", varchar(32)),
            ("HOST", varchar(261)),
            ("DB", NAME_TYPE),
            ("COMMAND", varchar(16)),
            ("TIME", COUNT),
            ("STATE", NAME_TYPE),
            ("INFO", LONG_TEXT),
        ],
    )
}

fn fill_processlist(session: &Session, rows: &mut Rowset) {
    for connection in session.seen_connections() {
        rows.push(vec![
            Datum::UInt(connection.id.into()),
            text(connection.user),
            text(connection.host),
            optional(connection.database),
            text(connection.command),
            Datum::UInt(connection.time_s),
            text(connection.state),
            optional(connection.info),
        ]);
    }
}

fn referential_constraints() -> Rowset {
    Rowset::new(
        "REFERENTIAL_CONSTRAINTS",
        &[
            ("CONSTRAINT_CATALOG", NAME_TYPE),
            ("CONSTRAINT_SCHEMA", NAME_TYPE),
            ("CONSTRAINT_NAME", NAME_TYPE),
            ("UNIQUE_CONSTRAINT_CATALOG", NAME_TYPE),
            ("UNIQUE_CONSTRAINT_SCHEMA", NAME_TYPE),
            ("UNIQUE_CONSTRAINT_NAME", NAME_TYPE),
            ("MATCH_OPTION", NAME_TYPE),
            ("UPDATE_RULE", NAME_TYPE),
            ("DELETE_RULE", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("REFERENCED_TABLE_NAME", NAME_TYPE),
        ],
    )
}

fn fill_referential_constraints(session: &Session, rows: &mut Rowset) {
    let (catalog, only) = (session.stored_catalog(), rows.only.clone());
    for handle in session.seen_tables(&catalog).filter(|handle| only.wants(&handle.def)) {
        let table = &handle.def;
        for key in sorted(&table.foreign_keys) {
            rows.push(vec![
                text("def"),
                text(&table.database),
                text(&key.name),
                text("def"),
                text(&key.parent_database),
                optional(catalog.index_of_parent(table.id, &key.name)),
                text("NONE"),
                text(key.on_update.sql()),
                text(key.on_delete.sql()),
                text(&table.name),
                text(&key.parent_table),
            ]);
        }
    }
}

/// Foreign keys by their names.
fn sorted(keys: &[ForeignKeyDef]) -> Vec<&ForeignKeyDef> {
    let mut keys: Vec<_> = keys.iter().collect();
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    keys
}

fn schemata() -> Rowset {
    Rowset::new(
        "SCHEMATA",
        &[
            ("CATALOG_NAME", NAME_TYPE),
            ("SCHEMA_NAME", NAME_TYPE),
            ("DEFAULT_CHARACTER_SET_NAME", NAME_TYPE),
            ("DEFAULT_COLLATION_NAME", NAME_TYPE),
            ("SQL_PATH", varchar(1)),
            ("DEFAULT_ENCRYPTION", varchar(3)),
        ],
    )
}

fn fill_schemata(session: &Session, rows: &mut Rowset) {
    let mut push = |name: &str, collation: avocet_types::Collation| {
        let info = collation.info();
        let row = vec![
            text("def"),
            text(name),
            text(info.charset.name()),
            text(info.name),
            Datum::Null,
            text("NO"),
        ];
        rows.push(row);
    };
    for schema in super::SCHEMAS.iter().filter(|schema| session.seen().sees_database(schema)) {
        push(schema, super::collation_of(schema));
    }
    let catalog = session.stored_catalog();
    let databases = catalog.databases().filter(|database| session.seen().sees_database(&database.name));
    databases.for_each(|database| push(&database.name, database.collation));
}

fn statistics() -> Rowset {
    Rowset::new(
        "STATISTICS",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("NON_UNIQUE", SqlType::INT),
            ("INDEX_SCHEMA", NAME_TYPE),
            ("INDEX_NAME", NAME_TYPE),
            ("SEQ_IN_INDEX", UINT),
            ("COLUMN_NAME", NAME_TYPE),
            ("COLLATION", varchar(1)),
            ("CARDINALITY", SqlType::BIGINT),
            ("SUB_PART", SqlType::BIGINT),
            ("PACKED", varchar(1)),
            ("NULLABLE", varchar(3)),
            ("INDEX_TYPE", varchar(11)),
            ("COMMENT", varchar(8)),
            ("INDEX_COMMENT", varchar(2048)),
            ("IS_VISIBLE", varchar(3)),
            ("EXPRESSION", LONG_TEXT),
        ],
    )
}

/// Its position in STATISTICS.
const CARDINALITY: usize = 9;

fn fill_statistics(session: &Session, rows: &mut Rowset) {
    let (catalog, only) = (session.stored_catalog(), rows.only.clone());
    for handle in session.seen_tables(&catalog).filter(|handle| only.wants(&handle.def)) {
        let table = &handle.def;
        for index in &table.indexes {
            // Which it takes some work to estimate.
            let counts = if only.asks_for(CARDINALITY) { cardinality(handle, index) } else { Box::default() };
            for (at, part) in index.parts.iter().enumerate() {
                let column = &table.columns[part.column];
                rows.push(vec![
                    text("def"),
                    text(&table.database),
                    text(&table.name),
                    Datum::Int((!index.kind.is_unique()).into()),
                    text(&table.database),
                    text(&index.name),
                    Datum::UInt(at as u64 + 1),
                    optional(Some(&column.name).filter(|_| !column.is_hidden())),
                    text(if part.descending { "D" } else { "A" }),
                    Datum::Int(counts.get(at).map_or(0, |count| *count as i64)),
                    part.prefix_len.map_or(Datum::Null, |len| Datum::Int(len.into())),
                    Datum::Null,
                    text(if column.nullable { "YES" } else { "" }),
                    text("BTREE"),
                    text(""),
                    text(&index.comment),
                    text(if index.invisible { "NO" } else { "YES" }),
                    optional(table.expression_of(part).map(escaped)),
                ]);
            }
        }
        for key in &table.kept_keys {
            for (at, column) in key.columns.iter().enumerate() {
                let column = &table.columns[*column];
                let is_spatial = key.kind.is_spatial();
                rows.push(vec![
                    text("def"),
                    text(&table.database),
                    text(&table.name),
                    Datum::Int(1),
                    text(&table.database),
                    text(&key.name),
                    Datum::UInt(at as u64 + 1),
                    text(&column.name),
                    if is_spatial { text("A") } else { Datum::Null },
                    Datum::Int(handle.row_count() as i64),
                    if is_spatial { Datum::Int(SPATIAL_PART as i64) } else { Datum::Null },
                    Datum::Null,
                    text(if column.nullable { "YES" } else { "" }),
                    text(key.kind.word()),
                    text(""),
                    text(&key.comment),
                    text("YES"),
                    Datum::Null,
                ]);
            }
        }
    }
}

fn table_constraints() -> Rowset {
    Rowset::new(
        "TABLE_CONSTRAINTS",
        &[
            ("CONSTRAINT_CATALOG", NAME_TYPE),
            ("CONSTRAINT_SCHEMA", NAME_TYPE),
            ("CONSTRAINT_NAME", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("CONSTRAINT_TYPE", varchar(11)),
            ("ENFORCED", varchar(3)),
        ],
    )
}

fn fill_table_constraints(session: &Session, rows: &mut Rowset) {
    let (catalog, only) = (session.stored_catalog(), rows.only.clone());
    for handle in session.seen_tables(&catalog).filter(|handle| only.wants(&handle.def)) {
        let table = &handle.def;
        let kind = |kind| if kind == IndexKind::Primary { "PRIMARY KEY" } else { "UNIQUE" };
        let unique = table.indexes.iter().filter(|index| index.kind.is_unique());
        let unique = unique.map(|index| (&index.name, kind(index.kind)));
        let foreign = sorted(&table.foreign_keys).into_iter().map(|key| (&key.name, "FOREIGN KEY"));
        let all = unique.chain(foreign).map(|(name, kind)| (name, kind, true));
        let checks = checks_of(table).into_iter().map(|check| (&check.name, "CHECK", check.enforced));
        for (name, kind, enforced) in all.chain(checks) {
            let schema = &table.database;
            rows.push(vec![
                text("def"),
                text(schema),
                text(name),
                text(schema),
                text(&table.name),
                text(kind),
                text(if enforced { "YES" } else { "NO" }),
            ]);
        }
    }
}

fn fill_key_column_usage(session: &Session, rows: &mut Rowset) {
    let (catalog, only) = (session.stored_catalog(), rows.only.clone());
    for handle in session.seen_tables(&catalog).filter(|handle| only.wants(&handle.def)) {
        let table = &handle.def;
        let mut push =
            |constraint: &str, column: usize, at: usize, parent: Option<(&ForeignKeyDef, usize)>| {
                let of_parent =
                    |name: fn(&ForeignKeyDef, usize) -> &str| optional(parent.map(|(key, n)| name(key, n)));
                rows.push(vec![
                    text("def"),
                    text(&table.database),
                    text(constraint),
                    text("def"),
                    text(&table.database),
                    text(&table.name),
                    text(&table.columns[column].name),
                    Datum::UInt(at as u64 + 1),
                    parent.map_or(Datum::Null, |(_, n)| Datum::UInt(n as u64 + 1)),
                    of_parent(|key, _| &key.parent_database),
                    of_parent(|key, _| &key.parent_table),
                    of_parent(|key, n| &key.parent_columns[n]),
                ]);
            };
        for index in table.indexes.iter().filter(|index| index.kind.is_unique()) {
            let named = |part: &IndexPart| !table.columns[part.column].is_hidden();
            for (at, part) in index.parts.iter().enumerate().filter(|(_, part)| named(part)) {
                push(&index.name, part.column, at, None);
            }
        }
        for key in sorted(&table.foreign_keys) {
            for (at, column) in key.columns.iter().enumerate() {
                push(&key.name, *column, at, Some((key, at)));
            }
        }
    }
}

fn tables() -> Rowset {
    Rowset::new(
        "TABLES",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("TABLE_TYPE", varchar(11)),
            ("ENGINE", NAME_TYPE),
            ("VERSION", COUNT),
            ("ROW_FORMAT", varchar(10)),
            ("TABLE_ROWS", COUNT),
            ("AVG_ROW_LENGTH", COUNT),
            ("DATA_LENGTH", COUNT),
            ("MAX_DATA_LENGTH", COUNT),
            ("INDEX_LENGTH", COUNT),
            ("DATA_FREE", COUNT),
            ("AUTO_INCREMENT", COUNT),
            ("CREATE_TIME", SqlType::Timestamp { fsp: 0 }),
            ("UPDATE_TIME", SqlType::DateTime { fsp: 0 }),
            ("CHECK_TIME", SqlType::DateTime { fsp: 0 }),
            ("TABLE_COLLATION", NAME_TYPE),
            ("CHECKSUM", COUNT),
            ("CREATE_OPTIONS", varchar(256)),
            ("TABLE_COMMENT", varchar(2048)),
        ],
    )
}

/// From ENGINE to TABLE_COMMENT, in TABLES.
const STATUS: std::ops::Range<usize> = 4..21;

fn fill_tables(session: &Session, rows: &mut Rowset) {
    let only = rows.only.clone();
    for table in super::all().iter().map(|table| &*table.def).filter(|table| only.wants(table)) {
        if !session.seen().sees_table(&table.database, &table.name) {
            continue;
        }
        let kind = super::kind_of(table);
        let mut row = vec![text("def"), text(&table.database), text(&table.name), text(kind), Datum::Null];
        row.resize(rows.columns.len(), Datum::Null);
        rows.push(row);
    }
    let catalog = session.stored_catalog();
    let seen = session.seen_tables(&catalog).chain(session.seen_views(&catalog));
    for handle in seen.filter(|handle| only.wants(&handle.def)) {
        let table = &handle.def;
        let mut row =
            vec![text("def"), text(&table.database), text(&table.name), text(super::type_of(table))];
        match STATUS.clone().any(|at| only.asks_for(at)) {
            true => row.extend(status_of(session, handle)),
            false => row.resize(rows.columns.len(), Datum::Null),
        }
        rows.push(row);
    }
}

fn auto_increment_of(table: &TableHandle) -> Value {
    match table.def.auto_increment_column() {
        Some(_) => Datum::UInt(table.next_auto_increment()),
        None => Datum::Null,
    }
}

/// CREATE_TIME, a TIMESTAMP of whole seconds.
pub(super) fn created(at_us: Option<i64>) -> Value {
    at_us.map_or(Datum::Null, |at_us| Datum::DateTime(at_us.div_euclid(1_000_000) * 1_000_000))
}

fn create_options(table: &TableDef) -> String {
    let mut options = table.stated.create_options();
    if table.partitioning.is_some() {
        options += if options.is_empty() { "partitioned" } else { " partitioned" };
    }
    options
}

/// From ENGINE to TABLE_COMMENT: what SHOW TABLE STATUS tells of a table, too.
pub fn status_of(session: &Session, handle: &TableHandle) -> [Value; 17] {
    let table = &handle.def;
    if table.is_view() {
        return super::views::status_of(session, table);
    }
    let index_bytes: u64 = handle.indexes().iter().map(|index| index.bytes()).sum();
    let (rows, data_bytes) = (handle.row_count(), handle.data_bytes());
    [
        text("InnoDB"),
        Datum::UInt(10),
        text(table.stated.row_format()),
        Datum::UInt(rows),
        Datum::UInt(data_bytes.checked_div(rows).unwrap_or(0)),
        Datum::UInt(data_bytes),
        Datum::UInt(0),
        Datum::UInt(index_bytes),
        Datum::UInt(0),
        auto_increment_of(handle),
        created(table.created_us),
        Datum::Null,
        Datum::Null,
        text(table.default_collation.name()),
        Datum::Null,
        text(create_options(table)),
        text(&table.comment),
    ]
}

fn fill_columns(session: &Session, rows: &mut Rowset) {
    let (catalog, only) = (session.stored_catalog(), rows.only.clone());
    let own = super::all().iter().map(|table| &*table.def).filter(|table| only.wants(table));
    let views: Vec<TableDef> = session
        .seen_views(&catalog)
        .filter(|handle| only.wants(&handle.def))
        .filter_map(|handle| session.with_columns_of_now(&handle.def).ok())
        .collect();
    let stored = session.seen_tables(&catalog).map(|handle| &*handle.def).filter(|table| only.wants(table));
    for table in stored.chain(&views).chain(own) {
        for at in 0..table.own_columns().len() {
            if session.seen().sees_column(&table.database, &table.name, &table.columns[at].name) {
                rows.push(column_row(session, table, at, &only));
            }
        }
    }
}

/// A row of COLUMNS, with what is asked for.
fn column_row(session: &Session, table: &TableDef, at: usize, only: &Only) -> Vec<Value> {
    let (column, zone) = (&table.columns[at], session.settings.time_zone);
    let ty = &column.ty;
    let number = |value: Option<u64>| value.map_or(Datum::Null, Datum::UInt);
    let length = |value: Option<u64>| value.map_or(Datum::Null, |v| Datum::Int(v as i64));
    let cell = |cell: usize| match cell {
        0 => text("def"),
        1 => text(&table.database),
        2 => text(&table.name),
        3 => text(&column.name),
        4 => Datum::UInt(at as u64 + 1),
        5 => optional(column.stated_default().map(|default| default_of(default, column, false, zone))),
        6 => text(if column.nullable { "YES" } else { "NO" }),
        7 => text(column.type_text().split(['(', ' ']).next().unwrap_or_default()),
        8 => length(lengths(ty).0),
        9 => length(lengths(ty).1),
        10 => number(numeric(ty).0),
        11 => number(numeric(ty).1),
        12 => number(ty.fsp().map(u64::from)),
        13 => optional(ty.declared_collation().map(|collation| collation.info().charset.name())),
        14 => optional(ty.declared_collation().map(avocet_types::Collation::name)),
        15 => text(column.type_text()),
        16 => text(key_of(table, at)),
        17 => text(extra_of(column)),
        18 => text(session.seen().column_privileges(&table.database, &table.name, &column.name)),
        19 => text(&column.comment),
        20 => text(column.generated.as_ref().map_or(String::new(), |generated| escaped(&generated.expr))),
        _ => match ty {
            SqlType::Geometry { srid: Some(srid), .. } => Datum::UInt((*srid).into()),
            _ => Datum::Null,
        },
    };
    (0..COLUMNS_CELLS).map(|at| if only.asks_for(at) { cell(at) } else { Datum::Null }).collect()
}

/// The columns of COLUMNS.
const COLUMNS_CELLS: usize = 22;

/// Most characters and bytes of a string type.
fn lengths(ty: &SqlType) -> (Option<u64>, Option<u64>) {
    match ty {
        SqlType::Char { len, collation } | SqlType::VarChar { len, collation } => {
            let per_char = collation.info().charset.max_len();
            (Some((*len).into()), Some(u64::from(*len) * u64::from(per_char)))
        }
        SqlType::Enum(members) | SqlType::Set(members) => {
            let is_set = matches!(ty, SqlType::Set(_));
            let len = if is_set { members.joined_len() } else { members.longest() };
            let per_char = members.collation().info().charset.max_len();
            (Some(len.into()), Some(u64::from(len) * u64::from(per_char)))
        }
        SqlType::Text { collation, .. } => {
            let least = u64::from(collation.info().charset.min_len());
            (ty.max_bytes().map(|bytes| bytes / least), ty.max_bytes())
        }
        _ => (ty.max_bytes(), ty.max_bytes()),
    }
}

fn numeric(ty: &SqlType) -> (Option<u64>, Option<u64>) {
    match ty {
        SqlType::Bool => (Some(3), Some(0)),
        SqlType::Int { width, unsigned } => (Some(digits(*width, *unsigned)), Some(0)),
        SqlType::Decimal { precision, scale, .. } => (Some((*precision).into()), Some((*scale).into())),
        SqlType::Bit { len } => (Some((*len).into()), None),
        SqlType::Float(real) | SqlType::Double(real) => match real.digits {
            Some((digits, decimals)) => (Some(digits.into()), Some(decimals.into())),
            None if matches!(ty, SqlType::Float(_)) => (Some(12), None),
            None => (Some(22), None),
        },
        _ => (None, None),
    }
}

/// Decimal digits of the widest value.
fn digits(width: IntWidth, unsigned: bool) -> u64 {
    match (width, unsigned) {
        (IntWidth::W8, _) => 3,
        (IntWidth::W16, _) => 5,
        (IntWidth::W24, _) => 7,
        (IntWidth::W32, _) => 10,
        (IntWidth::W64, false) => 19,
        (IntWidth::W64, true) => 20,
    }
}
