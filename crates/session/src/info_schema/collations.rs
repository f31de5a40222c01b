//! Collations of `information_schema`'s columns. Names of what MySQL keeps in files compare byte by byte, names within tables
//! without the case of letters, but with their accents; the rest as texts of the system.

use avocet_types::schema::TableDef;
use avocet_types::{Collation, SqlType};

use crate::output::FILE_NAMES;

/// `utf8mb3_tolower_ci`
const WITHIN_TABLES: Collation = Collation(76);

/// In every table that has them but those of privileges and of InnoDB.
const BINARY: &[&str] = &[
    "ACTION_STATEMENT",
    "ACTION_TIMING",
    "CATALOG_NAME",
    "CHECK_CLAUSE",
    "CHECK_OPTION",
    "COLUMN_COMMENT",
    "COLUMN_DEFAULT",
    "COLUMN_KEY",
    "COLUMN_TYPE",
    "CONSTRAINT_CATALOG",
    "CONSTRAINT_SCHEMA",
    "CONSTRAINT_TYPE",
    "DATA_TYPE",
    "DEFAULT_ENCRYPTION",
    "DEFINER",
    "DELETE_RULE",
    "DTD_IDENTIFIER",
    "ENFORCED",
    "EVENT_CATALOG",
    "EVENT_COMMENT",
    "EVENT_DEFINITION",
    "EVENT_MANIPULATION",
    "EVENT_OBJECT_CATALOG",
    "EVENT_OBJECT_SCHEMA",
    "EVENT_OBJECT_TABLE",
    "EVENT_SCHEMA",
    "EXPRESSION",
    "EXTERNAL_LANGUAGE",
    "FILE_NAME",
    "GENERATION_EXPRESSION",
    "GEOMETRY_TYPE_NAME",
    "INDEX_COMMENT",
    "INDEX_SCHEMA",
    "INDEX_TYPE",
    "INTERVAL_FIELD",
    "IS_UPDATABLE",
    "MATCH_OPTION",
    "PAD_ATTRIBUTE",
    "PARAMETER_MODE",
    "PARTITION_COMMENT",
    "PARTITION_DESCRIPTION",
    "PARTITION_EXPRESSION",
    "REFERENCED_TABLE_NAME",
    "REFERENCED_TABLE_SCHEMA",
    "RESOURCE_GROUP_TYPE",
    "ROUTINE_CATALOG",
    "ROUTINE_COMMENT",
    "ROUTINE_DEFINITION",
    "ROUTINE_SCHEMA",
    "ROUTINE_TYPE",
    "SCHEMA_NAME",
    "SECONDARY_LOAD",
    "SECURITY_TYPE",
    "SPECIFIC_CATALOG",
    "SPECIFIC_SCHEMA",
    "SQL_DATA_ACCESS",
    "SQL_MODE",
    "SUBPARTITION_EXPRESSION",
    "TABLESPACE_NAME",
    "TABLE_CATALOG",
    "TABLE_NAME",
    "TABLE_SCHEMA",
    "TABLE_TYPE",
    "TIME_ZONE",
    "TRIGGER_CATALOG",
    "TRIGGER_SCHEMA",
    "UNIQUE_CONSTRAINT_CATALOG",
    "UNIQUE_CONSTRAINT_SCHEMA",
    "UPDATE_RULE",
    "VIEW_CATALOG",
    "VIEW_DEFINITION",
    "VIEW_NAME",
    "VIEW_SCHEMA",
];

const LOWER: &[&str] = &[
    "COLUMN_NAME",
    "CONSTRAINT_NAME",
    "INDEX_NAME",
    "PARTITION_NAME",
    "REFERENCED_COLUMN_NAME",
    "SUBPARTITION_NAME",
    "UNIQUE_CONSTRAINT_NAME",
];

/// Gives the columns of a table the collations that they have in MySQL.
pub(super) fn apply(def: &mut TableDef) {
    let table = def.name.clone();
    for column in &mut def.columns {
        let (SqlType::VarChar { collation, .. } | SqlType::Text { collation, .. }) = &mut column.ty else {
            continue;
        };
        *collation = of(&table, &column.name).unwrap_or(*collation);
    }
}

fn of(table: &str, column: &str) -> Option<Collation> {
    if table.starts_with("INNODB_") || table.ends_with("_PRIVILEGES") {
        return None;
    }
    match (table, column) {
        ("EVENTS", "STATUS") | ("TABLES", "ROW_FORMAT") | ("USER_ATTRIBUTES", "USER") => Some(FILE_NAMES),
        ("FILES", "TABLE_CATALOG") => None,
        (role, "TABLE_CATALOG" | "ROUTINE_CATALOG" | "SPECIFIC_CATALOG") if role.starts_with("ROLE_") => None,
        (role, "COLUMN_NAME" | "GRANTEE") if role.starts_with("ROLE_") => Some(FILE_NAMES),
        _ if BINARY.contains(&column) => Some(FILE_NAMES),
        _ if LOWER.contains(&column) => Some(WITHIN_TABLES),
        _ => None,
    }
}
