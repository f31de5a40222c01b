//! Tables of `information_schema` that have few rows here, or none, with all columns that MySQL gives them: programs name these.

use avocet_sql::parse::{all_keywords, is_reserved};
use avocet_types::collation::collations;
use avocet_types::geometry::ReferenceSystem;
use avocet_types::{Datum, SqlType, Value};

use super::tables::{Entry, NAME_TYPE, UINT, none};
use crate::output::{COUNT, LONG_TEXT, Rowset, text, varchar};
use crate::state::Session;

const WHEN: SqlType = SqlType::DateTime { fsp: 0 };

pub(super) const TABLES: &[Entry] = &[
    (collation_character_set_applicability, fill_applicability),
    (columns_extensions, fill_columns_extensions),
    (column_statistics, none),
    (engines, fill_engines),
    (events, none),
    (files, none),
    (keywords, fill_keywords),
    (optimizer_trace, none),
    (parameters, none),
    (plugins, fill_plugins),
    (profiling, none),
    (routines, fill_routines),
    (schemata_extensions, fill_schemata_extensions),
    (st_geometry_columns, fill_geometry_columns),
    (tablespaces_extensions, none),
    (tables_extensions, fill_tables_extensions),
    (table_constraints_extensions, fill_constraints_extensions),
    (triggers, none),
];

fn collation_character_set_applicability() -> Rowset {
    Rowset::new(
        "COLLATION_CHARACTER_SET_APPLICABILITY",
        &[("COLLATION_NAME", NAME_TYPE), ("CHARACTER_SET_NAME", NAME_TYPE)],
    )
}

fn columns_extensions() -> Rowset {
    Rowset::new(
        "COLUMNS_EXTENSIONS",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("COLUMN_NAME", NAME_TYPE),
            ("ENGINE_ATTRIBUTE", SqlType::Json),
            ("SECONDARY_ENGINE_ATTRIBUTE", SqlType::Json),
        ],
    )
}

fn column_statistics() -> Rowset {
    Rowset::new(
        "COLUMN_STATISTICS",
        &[
            ("SCHEMA_NAME", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("COLUMN_NAME", NAME_TYPE),
            ("HISTOGRAM", SqlType::Json),
        ],
    )
}

fn engines() -> Rowset {
    Rowset::new(
        "ENGINES",
        &[
            ("ENGINE", NAME_TYPE),
            ("SUPPORT", varchar(8)),
            ("COMMENT", varchar(80)),
            ("TRANSACTIONS", varchar(3)),
            ("XA", varchar(3)),
            ("SAVEPOINTS", varchar(3)),
        ],
    )
}

fn events() -> Rowset {
    Rowset::new(
        "EVENTS",
        &[
            ("EVENT_CATALOG", NAME_TYPE),
            ("EVENT_SCHEMA", NAME_TYPE),
            ("EVENT_NAME", NAME_TYPE),
            ("DEFINER", varchar(288)),
            ("TIME_ZONE", NAME_TYPE),
            ("EVENT_BODY", varchar(3)),
            ("EVENT_DEFINITION", LONG_TEXT),
            ("EVENT_TYPE", varchar(9)),
            ("EXECUTE_AT", WHEN),
            ("INTERVAL_VALUE", varchar(256)),
            ("INTERVAL_FIELD", NAME_TYPE),
            ("SQL_MODE", NAME_TYPE),
            ("STARTS", WHEN),
            ("ENDS", WHEN),
            ("STATUS", varchar(21)),
            ("ON_COMPLETION", varchar(12)),
            ("CREATED", WHEN),
            ("LAST_ALTERED", WHEN),
            ("LAST_EXECUTED", WHEN),
            ("EVENT_COMMENT", varchar(2048)),
            ("ORIGINATOR", UINT),
            ("CHARACTER_SET_CLIENT", NAME_TYPE),
            ("COLLATION_CONNECTION", NAME_TYPE),
            ("DATABASE_COLLATION", NAME_TYPE),
        ],
    )
}

fn files() -> Rowset {
    Rowset::new(
        "FILES",
        &[
            ("FILE_ID", SqlType::BIGINT),
            ("FILE_NAME", LONG_TEXT),
            ("FILE_TYPE", varchar(256)),
            ("TABLESPACE_NAME", varchar(268)),
            ("TABLE_CATALOG", varchar(0)),
            ("TABLE_SCHEMA", LONG_TEXT),
            ("TABLE_NAME", LONG_TEXT),
            ("LOGFILE_GROUP_NAME", varchar(256)),
            ("LOGFILE_GROUP_NUMBER", SqlType::BIGINT),
            ("ENGINE", NAME_TYPE),
            ("FULLTEXT_KEYS", LONG_TEXT),
            ("DELETED_ROWS", LONG_TEXT),
            ("UPDATE_COUNT", LONG_TEXT),
            ("FREE_EXTENTS", SqlType::BIGINT),
            ("TOTAL_EXTENTS", SqlType::BIGINT),
            ("EXTENT_SIZE", SqlType::BIGINT),
            ("INITIAL_SIZE", SqlType::BIGINT),
            ("MAXIMUM_SIZE", SqlType::BIGINT),
            ("AUTOEXTEND_SIZE", SqlType::BIGINT),
            ("CREATION_TIME", LONG_TEXT),
            ("LAST_UPDATE_TIME", LONG_TEXT),
            ("LAST_ACCESS_TIME", LONG_TEXT),
            ("RECOVER_TIME", LONG_TEXT),
            ("TRANSACTION_COUNTER", LONG_TEXT),
            ("VERSION", SqlType::BIGINT),
            ("ROW_FORMAT", varchar(256)),
            ("TABLE_ROWS", LONG_TEXT),
            ("AVG_ROW_LENGTH", LONG_TEXT),
            ("DATA_LENGTH", LONG_TEXT),
            ("MAX_DATA_LENGTH", LONG_TEXT),
            ("INDEX_LENGTH", LONG_TEXT),
            ("DATA_FREE", SqlType::BIGINT),
            ("CREATE_TIME", LONG_TEXT),
            ("UPDATE_TIME", LONG_TEXT),
            ("CHECK_TIME", LONG_TEXT),
            ("CHECKSUM", LONG_TEXT),
            ("STATUS", varchar(256)),
            ("EXTRA", varchar(256)),
        ],
    )
}

fn keywords() -> Rowset {
    Rowset::new("KEYWORDS", &[("WORD", varchar(128)), ("RESERVED", SqlType::INT)])
}

fn optimizer_trace() -> Rowset {
    Rowset::new(
        "OPTIMIZER_TRACE",
        &[
            ("QUERY", varchar(65535)),
            ("TRACE", varchar(65535)),
            ("MISSING_BYTES_BEYOND_MAX_MEM_SIZE", SqlType::INT),
            ("INSUFFICIENT_PRIVILEGES", SqlType::INT),
        ],
    )
}

fn parameters() -> Rowset {
    Rowset::new(
        "PARAMETERS",
        &[
            ("SPECIFIC_CATALOG", NAME_TYPE),
            ("SPECIFIC_SCHEMA", NAME_TYPE),
            ("SPECIFIC_NAME", NAME_TYPE),
            ("ORDINAL_POSITION", COUNT),
            ("PARAMETER_MODE", varchar(5)),
            ("PARAMETER_NAME", NAME_TYPE),
            ("DATA_TYPE", LONG_TEXT),
            ("CHARACTER_MAXIMUM_LENGTH", SqlType::BIGINT),
            ("CHARACTER_OCTET_LENGTH", SqlType::BIGINT),
            ("NUMERIC_PRECISION", UINT),
            ("NUMERIC_SCALE", SqlType::BIGINT),
            ("DATETIME_PRECISION", UINT),
            ("CHARACTER_SET_NAME", NAME_TYPE),
            ("COLLATION_NAME", NAME_TYPE),
            ("DTD_IDENTIFIER", LONG_TEXT),
            ("ROUTINE_TYPE", NAME_TYPE),
        ],
    )
}

fn plugins() -> Rowset {
    Rowset::new(
        "PLUGINS",
        &[
            ("PLUGIN_NAME", NAME_TYPE),
            ("PLUGIN_VERSION", varchar(20)),
            ("PLUGIN_STATUS", varchar(10)),
            ("PLUGIN_TYPE", varchar(80)),
            ("PLUGIN_TYPE_VERSION", varchar(20)),
            ("PLUGIN_LIBRARY", NAME_TYPE),
            ("PLUGIN_LIBRARY_VERSION", varchar(20)),
            ("PLUGIN_AUTHOR", NAME_TYPE),
            ("PLUGIN_DESCRIPTION", varchar(65535)),
            ("PLUGIN_LICENSE", varchar(80)),
            ("LOAD_OPTION", NAME_TYPE),
        ],
    )
}

fn profiling() -> Rowset {
    Rowset::new(
        "PROFILING",
        &[
            ("QUERY_ID", SqlType::INT),
            ("SEQ", SqlType::INT),
            ("STATE", varchar(30)),
            ("DURATION", SqlType::Decimal { precision: 9, scale: 6, unsigned: false }),
            ("CPU_USER", SqlType::Decimal { precision: 9, scale: 6, unsigned: false }),
            ("CPU_SYSTEM", SqlType::Decimal { precision: 9, scale: 6, unsigned: false }),
            ("CONTEXT_VOLUNTARY", SqlType::INT),
            ("CONTEXT_INVOLUNTARY", SqlType::INT),
            ("BLOCK_OPS_IN", SqlType::INT),
            ("BLOCK_OPS_OUT", SqlType::INT),
            ("MESSAGES_SENT", SqlType::INT),
            ("MESSAGES_RECEIVED", SqlType::INT),
            ("PAGE_FAULTS_MAJOR", SqlType::INT),
            ("PAGE_FAULTS_MINOR", SqlType::INT),
            ("SWAPS", SqlType::INT),
            ("SOURCE_FUNCTION", varchar(30)),
            ("SOURCE_FILE", varchar(20)),
            ("SOURCE_LINE", SqlType::INT),
        ],
    )
}

fn routines() -> Rowset {
    Rowset::new(
        "ROUTINES",
        &[
            ("SPECIFIC_NAME", NAME_TYPE),
            ("ROUTINE_CATALOG", NAME_TYPE),
            ("ROUTINE_SCHEMA", NAME_TYPE),
            ("ROUTINE_NAME", NAME_TYPE),
            ("ROUTINE_TYPE", NAME_TYPE),
            ("DATA_TYPE", LONG_TEXT),
            ("CHARACTER_MAXIMUM_LENGTH", SqlType::BIGINT),
            ("CHARACTER_OCTET_LENGTH", SqlType::BIGINT),
            ("NUMERIC_PRECISION", UINT),
            ("NUMERIC_SCALE", UINT),
            ("DATETIME_PRECISION", UINT),
            ("CHARACTER_SET_NAME", NAME_TYPE),
            ("COLLATION_NAME", NAME_TYPE),
            ("DTD_IDENTIFIER", LONG_TEXT),
            ("ROUTINE_BODY", varchar(8)),
            ("ROUTINE_DEFINITION", LONG_TEXT),
            ("EXTERNAL_NAME", LONG_TEXT),
            ("EXTERNAL_LANGUAGE", NAME_TYPE),
            ("PARAMETER_STYLE", varchar(3)),
            ("IS_DETERMINISTIC", varchar(3)),
            ("SQL_DATA_ACCESS", NAME_TYPE),
            ("SQL_PATH", LONG_TEXT),
            ("SECURITY_TYPE", NAME_TYPE),
            ("CREATED", WHEN),
            ("LAST_ALTERED", WHEN),
            ("SQL_MODE", NAME_TYPE),
            ("ROUTINE_COMMENT", LONG_TEXT),
            ("DEFINER", varchar(288)),
            ("CHARACTER_SET_CLIENT", NAME_TYPE),
            ("COLLATION_CONNECTION", NAME_TYPE),
            ("DATABASE_COLLATION", NAME_TYPE),
        ],
    )
}

fn schemata_extensions() -> Rowset {
    Rowset::new(
        "SCHEMATA_EXTENSIONS",
        &[("CATALOG_NAME", NAME_TYPE), ("SCHEMA_NAME", NAME_TYPE), ("OPTIONS", varchar(256))],
    )
}

fn st_geometry_columns() -> Rowset {
    Rowset::new(
        "ST_GEOMETRY_COLUMNS",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("COLUMN_NAME", NAME_TYPE),
            ("SRS_NAME", varchar(80)),
            ("SRS_ID", UINT),
            ("GEOMETRY_TYPE_NAME", LONG_TEXT),
        ],
    )
}

fn tablespaces_extensions() -> Rowset {
    Rowset::new(
        "TABLESPACES_EXTENSIONS",
        &[("TABLESPACE_NAME", varchar(268)), ("ENGINE_ATTRIBUTE", SqlType::Json)],
    )
}

fn tables_extensions() -> Rowset {
    Rowset::new(
        "TABLES_EXTENSIONS",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("ENGINE_ATTRIBUTE", SqlType::Json),
            ("SECONDARY_ENGINE_ATTRIBUTE", SqlType::Json),
        ],
    )
}

fn table_constraints_extensions() -> Rowset {
    Rowset::new(
        "TABLE_CONSTRAINTS_EXTENSIONS",
        &[
            ("CONSTRAINT_CATALOG", NAME_TYPE),
            ("CONSTRAINT_SCHEMA", NAME_TYPE),
            ("CONSTRAINT_NAME", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("ENGINE_ATTRIBUTE", SqlType::Json),
            ("SECONDARY_ENGINE_ATTRIBUTE", SqlType::Json),
        ],
    )
}

fn triggers() -> Rowset {
    Rowset::new(
        "TRIGGERS",
        &[
            ("TRIGGER_CATALOG", NAME_TYPE),
            ("TRIGGER_SCHEMA", NAME_TYPE),
            ("TRIGGER_NAME", NAME_TYPE),
            ("EVENT_MANIPULATION", NAME_TYPE),
            ("EVENT_OBJECT_CATALOG", NAME_TYPE),
            ("EVENT_OBJECT_SCHEMA", NAME_TYPE),
            ("EVENT_OBJECT_TABLE", NAME_TYPE),
            ("ACTION_ORDER", UINT),
            ("ACTION_CONDITION", LONG_TEXT),
            ("ACTION_STATEMENT", LONG_TEXT),
            ("ACTION_ORIENTATION", varchar(3)),
            ("ACTION_TIMING", NAME_TYPE),
            ("ACTION_REFERENCE_OLD_TABLE", LONG_TEXT),
            ("ACTION_REFERENCE_NEW_TABLE", LONG_TEXT),
            ("ACTION_REFERENCE_OLD_ROW", varchar(3)),
            ("ACTION_REFERENCE_NEW_ROW", varchar(3)),
            ("CREATED", WHEN),
            ("SQL_MODE", NAME_TYPE),
            ("DEFINER", varchar(288)),
            ("CHARACTER_SET_CLIENT", NAME_TYPE),
            ("COLLATION_CONNECTION", NAME_TYPE),
            ("DATABASE_COLLATION", NAME_TYPE),
        ],
    )
}

fn fill_applicability(_: &Session, rows: &mut Rowset) {
    for collation in collations() {
        rows.push(vec![text(collation.name), text(collation.charset.name())]);
    }
}

fn fill_columns_extensions(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for handle in session.seen_tables(&catalog) {
        for column in handle.def.own_columns() {
            let names = [text("def"), text(&handle.def.database), text(&handle.def.name), text(&column.name)];
            rows.push(names.into_iter().chain([Datum::Null, Datum::Null]).collect());
        }
    }
}

fn fill_engines(_: &Session, rows: &mut Rowset) {
    rows.push(["InnoDB", "DEFAULT", "Avocet", "YES", "NO", "YES"].into_iter().map(text).collect());
}

fn fill_keywords(_: &Session, rows: &mut Rowset) {
    for word in all_keywords() {
        rows.push(vec![text(word), Datum::Int(is_reserved(word.as_bytes()).into())]);
    }
}

/// What the server can do that is a plugin in MySQL.
fn fill_plugins(_: &Session, rows: &mut Rowset) {
    for (name, kind, interface, description) in [
        ("mysql_native_password", "AUTHENTICATION", "2.1", "Native MySQL authentication"),
        ("caching_sha2_password", "AUTHENTICATION", "2.1", "Caching sha2 authentication"),
        ("InnoDB", "STORAGE ENGINE", "80400.0", "Avocet"),
    ] {
        let row = [name, "1.0", "ACTIVE", kind, interface].map(text);
        let of_file = [Datum::Null, Datum::Null];
        let rest = ["Avocet", description, "Apache-2.0", "FORCE"].map(text);
        rows.push(row.into_iter().chain(of_file).chain(rest).collect());
    }
}

/// Native procedures; there are no others.
fn fill_routines(session: &Session, rows: &mut Rowset) {
    let width = rows.columns.len();
    for procedure in session.shared.engine.procedures().list() {
        let held = session.seen().on_procedure(procedure.database(), procedure.name());
        if !held.intersects(avocet_engine::Privileges::EXECUTE) {
            continue;
        }
        let (database, name) = (procedure.database(), procedure.name());
        let mut row: Vec<Value> = vec![Datum::Null; width];
        for (column, value) in [
            ("SPECIFIC_NAME", name),
            ("ROUTINE_CATALOG", "def"),
            ("ROUTINE_SCHEMA", database),
            ("ROUTINE_NAME", name),
            ("ROUTINE_TYPE", "PROCEDURE"),
            ("DATA_TYPE", ""),
            ("ROUTINE_BODY", "EXTERNAL"),
            ("EXTERNAL_LANGUAGE", "RUST"),
            ("PARAMETER_STYLE", "SQL"),
            ("IS_DETERMINISTIC", "YES"),
            ("SQL_DATA_ACCESS", "MODIFIES SQL DATA"),
            ("SECURITY_TYPE", "DEFINER"),
            ("ROUTINE_COMMENT", ""),
            ("DEFINER", "root@localhost"),
        ] {
            let at = rows.columns.iter().position(|(known, _)| known == column);
            row[at.expect("the table has it")] = text(value);
        }
        rows.push(row);
    }
}

fn fill_schemata_extensions(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    let own = super::SCHEMAS.iter().copied();
    for name in own.chain(catalog.databases().map(|database| database.name.as_str())) {
        if session.seen().sees_database(name) {
            rows.push(["def", name, ""].map(text).to_vec());
        }
    }
}

fn fill_geometry_columns(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for handle in session.seen_tables(&catalog) {
        let def = &handle.def;
        for column in &def.columns {
            let SqlType::Geometry { ty, srid } = column.ty else { continue };
            if !session.seen().sees_column(&def.database, &def.name, &column.name) {
                continue;
            }
            let system = srid.and_then(ReferenceSystem::by_id);
            rows.push(vec![
                text("def"),
                text(&def.database),
                text(&def.name),
                text(&column.name),
                system.map_or(Datum::Null, |system| text(system.name)),
                srid.map_or(Datum::Null, |srid| Datum::UInt(srid.into())),
                text(ty.name()),
            ]);
        }
    }
}

fn fill_tables_extensions(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for handle in session.seen_tables(&catalog) {
        let names = [text("def"), text(&handle.def.database), text(&handle.def.name)];
        rows.push(names.into_iter().chain([Datum::Null, Datum::Null]).collect());
    }
}

fn fill_constraints_extensions(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for handle in session.seen_tables(&catalog) {
        let def = &handle.def;
        for index in def.indexes.iter().filter(|index| index.kind.is_unique()) {
            let names = [text("def"), text(&def.database), text(&index.name), text(&def.name)];
            rows.push(names.into_iter().chain([Datum::Null, Datum::Null]).collect());
        }
    }
}
