//! Tables that tools ask for by name, with the columns that MySQL 9.7 gives them: of InnoDB, of `mysql`, `performance_schema` and `sys`.
//!
//! `shapes.tsv` has a line for each: schema, name, and columns with their types, divided by `|`. Where there is something to tell,
//! [`filler`] names who tells it; the others stay empty, since what they would tell of is not here, or not measured.

use avocet_types::{IntWidth, RealFormat, SqlType};

use super::{MYSQL, PERFORMANCE, SYS, clients, grants, innodb, statements, sys, system};
use crate::output::{LONG_TEXT, Only, Rowset, varchar};
use crate::state::Session;

static SHAPES: &str = include_str!("shapes.tsv");

pub(super) type Fill = fn(&Session, &mut Rowset);

/// The tables of all schemas.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Rowset, Fill)> {
    SHAPES.lines().map(|line| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().expect("the file has three fields a line");
        let (schema, name, columns) = (field(), field(), field());
        let column = |column: &str| {
            let (name, ty) = column.split_once(' ').expect("columns have a type");
            (name.to_owned(), type_of(ty))
        };
        let columns = columns.split('|').map(column).collect();
        (schema, Rowset { name, columns, rows: Vec::new(), only: Only::default() }, filler(schema, name))
    })
}

/// A type as MySQL's catalog writes it.
fn type_of(text: &str) -> SqlType {
    let (text, unsigned) = match text.strip_suffix(" unsigned") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (name, args) = text.split_once('(').unwrap_or((text, ")"));
    let mut args = args.trim_end_matches(')').split(',').map(|arg| arg.parse().unwrap_or(0u32));
    let mut arg = || args.next().unwrap_or(0);
    let int = |width| SqlType::Int { width, unsigned };
    match name {
        "tinyint" => int(IntWidth::W8),
        "smallint" => int(IntWidth::W16),
        "int" => int(IntWidth::W32),
        "bigint" => int(IntWidth::W64),
        "decimal" => SqlType::Decimal { precision: arg() as u8, scale: arg() as u8, unsigned },
        "float" => SqlType::Float(RealFormat::default()),
        "double" => SqlType::Double(RealFormat::default()),
        "char" | "varchar" => varchar(arg()),
        "varbinary" => SqlType::VarBinary { len: arg() },
        "blob" | "mediumblob" | "longblob" => SqlType::Blob { size: avocet_types::LobSize::Long },
        "timestamp" => SqlType::Timestamp { fsp: arg() as u8 },
        "datetime" => SqlType::DateTime { fsp: arg() as u8 },
        "time" => SqlType::Time { fsp: arg() as u8 },
        "json" => SqlType::Json,
        _ => LONG_TEXT,
    }
}

fn filler(schema: &str, name: &str) -> Fill {
    match (schema, name) {
        (super::NAME, name) => match name {
            "INNODB_COLUMNS" => innodb::columns,
            "INNODB_FIELDS" => innodb::fields,
            "INNODB_FOREIGN" => innodb::foreign,
            "INNODB_FOREIGN_COLS" => innodb::foreign_columns,
            "INNODB_INDEXES" => innodb::indexes,
            "INNODB_TABLES" => innodb::tables,
            "INNODB_TABLESTATS" => innodb::statistics,
            "INNODB_FT_DEFAULT_STOPWORD" => system::stopwords,
            "RESOURCE_GROUPS" => system::resource_groups,
            "ADMINISTRABLE_ROLE_AUTHORIZATIONS" => grants::fill_administrable_roles,
            "ROLE_COLUMN_GRANTS" => grants::fill_role_column_grants,
            "ROLE_TABLE_GRANTS" => grants::fill_role_table_grants,
            "ROLE_ROUTINE_GRANTS" => grants::fill_role_routine_grants,
            _ => nothing,
        },
        (MYSQL, name) => match name {
            "engine_cost" => system::engine_cost,
            "server_cost" => system::server_cost,
            "innodb_table_stats" => innodb::table_stats,
            "time_zone" => system::time_zones,
            "time_zone_name" => system::time_zone_names,
            _ => nothing,
        },
        (PERFORMANCE, name) => match name {
            "accounts" => clients::accounts,
            "hosts" => clients::hosts,
            "users" => clients::users,
            "replication_applier_status" => clients::applier_status,
            "replication_connection_configuration" => clients::connection_configuration,
            "replication_connection_status" => clients::connection_status,
            "status_by_thread" => clients::status_by_thread,
            "user_variables_by_thread" => clients::user_variables,
            "variables_by_thread" => clients::variables_by_thread,
            _ => nothing,
        },
        (SYS, name) => match name {
            "metrics" => sys::metrics,
            "processlist" | "session" | "x$processlist" | "x$session" => sys::sessions,
            "schema_auto_increment_columns" => sys::auto_increment_columns,
            "schema_object_overview" => sys::object_overview,
            "schema_redundant_indexes" => sys::redundant_indexes,
            "statement_analysis" => |session, rows| statements::analysis(session, rows, true),
            "x$statement_analysis" => |session, rows| statements::analysis(session, rows, false),
            "statements_with_errors_or_warnings" => |session, rows| statements::failing(session, rows, true),
            "x$statements_with_errors_or_warnings" => {
                |session, rows| statements::failing(session, rows, false)
            }
            "sys_config" => sys::config,
            "version" => sys::version,
            _ => nothing,
        },
        _ => nothing,
    }
}

fn nothing(_: &Session, _: &mut Rowset) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read() {
        let all: Vec<_> = all().collect();
        assert!(all.len() > 200 && all.iter().all(|(_, rows, _)| !rows.columns.is_empty()));
        let (_, version, _) =
            all.iter().find(|(schema, rows, _)| *schema == SYS && rows.name == "version").expect("there");
        assert_eq!(version.columns[0], ("sys_version".to_owned(), varchar(5)));
        assert_eq!(type_of("bigint unsigned"), SqlType::BIGINT_UNSIGNED);
        assert_eq!(
            type_of("decimal(25,4) unsigned"),
            SqlType::Decimal { precision: 25, scale: 4, unsigned: true }
        );
        assert_eq!(type_of("timestamp(6)"), SqlType::Timestamp { fsp: 6 });
    }
}
