//! Tables for tests, from their CREATE TABLE and without a catalog's rules.

use avocet_base::{IndexId, TableId};
use avocet_types::expr::SqlMode;
use avocet_types::schema::{ColumnDef, IndexDef, IndexKind, IndexPart, TableDef};
use avocet_types::{Collation, IntWidth, SqlType};

use crate::parse::statement::{CreateTable, IndexPartSpec, IndexSpecKind, StatementKind, TypeSpec};

/// The definition of a table of the database `test`, with its primary key alone.
///
/// # Panics
/// If the text is not such a statement, or has types that tests do not need.
pub fn table(sql: &str, collation: Collation) -> TableDef {
    let mut statements =
        crate::parse::parse(sql.as_bytes(), SqlMode::DEFAULT).expect("the test's DDL parses");
    let StatementKind::CreateTable(create) = statements.remove(0).kind else {
        panic!("{sql}: no CREATE TABLE")
    };
    define(&create, collation)
}

fn define(create: &CreateTable, collation: Collation) -> TableDef {
    let mut primary: Vec<String> = Vec::new();
    let columns: Vec<_> = create
        .columns
        .iter()
        .map(|c| {
            if c.primary_key {
                primary.push(c.name.name.clone());
            }
            ColumnDef {
                name: c.name.name.clone(),
                ty: type_of(&c.ty, collation),
                nullable: c.nullable.unwrap_or(!c.primary_key),
                default: None,
                on_update_now: false,
                auto_increment: false,
                comment: String::new(),
            }
        })
        .collect();
    for index in create.indexes.iter().filter(|i| i.kind == IndexSpecKind::Primary) {
        primary.extend(index.parts.iter().map(|part| match part {
            IndexPartSpec::Column { name, .. } => name.name.clone(),
            IndexPartSpec::Expr(_) => panic!("a functional key in a test's table"),
        }));
    }
    let parts = primary.iter().map(|name| IndexPart {
        column: columns.iter().position(|c| c.name == *name).expect("a key of the table's columns"),
        descending: false,
        prefix_len: None,
    });
    let parts: Vec<_> = parts.collect();
    let index = IndexDef {
        id: IndexId(1),
        name: "PRIMARY".into(),
        kind: IndexKind::Primary,
        parts,
        generated: false,
    };
    TableDef {
        id: TableId(1),
        database: "test".into(),
        name: create.name.name.name.clone(),
        columns,
        indexes: if primary.is_empty() { Vec::new() } else { vec![index] },
        default_collation: collation,
        comment: String::new(),
        foreign_keys: Vec::new(),
    }
}

fn type_of(spec: &TypeSpec, collation: Collation) -> SqlType {
    let arg = |i: usize, default: u64| spec.args.get(i).copied().unwrap_or(default);
    let int = |width| SqlType::Int { width, unsigned: spec.unsigned };
    match spec.name.as_str() {
        "TINYINT" => int(IntWidth::W8),
        "SMALLINT" => int(IntWidth::W16),
        "INT" => int(IntWidth::W32),
        "BIGINT" => int(IntWidth::W64),
        "DECIMAL" => {
            SqlType::Decimal { precision: arg(0, 10) as u8, scale: arg(1, 0) as u8, unsigned: spec.unsigned }
        }
        "DOUBLE" => SqlType::Double,
        "CHAR" => SqlType::Char { len: arg(0, 1) as u32, collation },
        "VARCHAR" => SqlType::VarChar { len: arg(0, 1) as u32, collation },
        "DATE" => SqlType::Date,
        "DATETIME" => SqlType::DateTime { fsp: arg(0, 0) as u8 },
        other => panic!("{other} in a test's table"),
    }
}
