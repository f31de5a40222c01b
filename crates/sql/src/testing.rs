//! Tables for tests, from their CREATE TABLE and without a catalog's rules; with rows in memory, if the test needs some.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use avocet_base::{IndexId, TableId};
use avocet_types::arrow_map::{ColumnBuilder, datum_at};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr, SqlMode, Typer};
use avocet_types::schema::{ColumnDef, IndexDef, IndexPart, TableDef};
use avocet_types::{Collation, IntWidth, SqlType, Value};

use crate::bind::{CatalogView, ColumnStatistics, TableStatistics};
use crate::parse::ast::TypeSpec;
use crate::parse::ast::VariableScope;
use crate::parse::statement::{CreateTable, IndexPartSpec, IndexSpecKind, StatementKind};
use crate::relational::Statistics;

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
                generated: None,
                invisible: false,
                collation_named: false,
                zerofill: None,
                comment: String::new(),
            }
        })
        .collect();
    for index in create.indexes.iter().filter(|i| i.kind == IndexSpecKind::Primary) {
        primary.extend(index.parts.iter().map(|part| match part {
            IndexPartSpec::Column { name, .. } => name.name.clone(),
            IndexPartSpec::Expr { .. } => panic!("a functional key in a test's table"),
        }));
    }
    let parts = primary.iter().map(|name| IndexPart {
        column: columns.iter().position(|c| c.name == *name).expect("a key of the table's columns"),
        descending: false,
        prefix_len: None,
    });
    let parts: Vec<_> = parts.collect();
    let index = IndexDef { id: IndexId(1), parts, ..IndexDef::primary(&[]) };
    TableDef {
        id: TableId(1),
        database: "test".into(),
        name: create.name.name.name.clone(),
        columns,
        indexes: if primary.is_empty() { Vec::new() } else { vec![index] },
        default_collation: collation,
        comment: String::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        kept_keys: Vec::new(),
        partitioning: None,
        view: None,
        created_us: None,
        stated: Default::default(),
        stored: None,
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
        "DOUBLE" => SqlType::DOUBLE,
        "CHAR" => SqlType::Char { len: arg(0, 1) as u32, collation },
        "VARCHAR" => SqlType::VarChar { len: arg(0, 1) as u32, collation },
        "DATE" => SqlType::Date,
        "DATETIME" => SqlType::DateTime { fsp: arg(0, 0) as u8 },
        other => panic!("{other} in a test's table"),
    }
}

/// A database `test` with tables in memory.
#[derive(Debug, Default)]
pub struct Memory {
    tables: HashMap<String, Table>,
}

#[derive(Debug)]
struct Table {
    def: Arc<TableDef>,
    batches: Vec<RecordBatch>,
    statistics: Arc<TableStatistics>,
}

impl Memory {
    /// A table's rows.
    pub fn batches(&self, table: &str) -> &[RecordBatch] {
        &self.tables[table].batches
    }

    /// Adds a table by its CREATE TABLE; `rows` in Arrow batches whose columns are cast to the table's types.
    pub fn create(&mut self, sql: &str, collation: Collation, batches: Vec<RecordBatch>) {
        let def = Arc::new(table(sql, collation));
        let batches: Vec<_> = batches.iter().map(|batch| conform(batch, &def)).collect();
        let statistics = Arc::new(measure(&batches, &def));
        self.tables.insert(def.name.clone(), Table { def, batches, statistics });
    }

    /// The same with rows as values, in two batches so that there are two morsels.
    pub fn create_with(&mut self, sql: &str, collation: Collation, rows: &[Vec<Value>]) {
        self.create(sql, collation, Vec::new());
        let name =
            self.tables.keys().find(|n| sql.contains(&format!("TABLE {n} "))).expect("the table").clone();
        let def = self.tables[&name].def.clone();
        let halves = rows.split_at(rows.len() / 2);
        let batches: Vec<_> = [halves.0, halves.1].iter().map(|rows| batch_of(rows, &def)).collect();
        let statistics = Arc::new(measure(&batches, &def));
        self.tables.insert(name, Table { def, batches, statistics });
    }
}

fn batch_of(rows: &[Vec<Value>], def: &TableDef) -> RecordBatch {
    let columns = def.columns.iter().enumerate().map(|(i, column)| {
        let mut builder = ColumnBuilder::new(&column.ty, rows.len());
        rows.iter().for_each(|row| builder.append(&row[i]));
        builder.finish()
    });
    let fields = def.columns.iter().map(|c| arrow::datatypes::Field::new(&c.name, c.ty.arrow_type(), true));
    let schema = arrow::datatypes::Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.collect()).expect("built to the schema")
}

fn conform(batch: &RecordBatch, def: &TableDef) -> RecordBatch {
    let fields = def.columns.iter().map(|c| arrow::datatypes::Field::new(&c.name, c.ty.arrow_type(), true));
    let schema = Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()));
    let columns =
        batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
            arrow::compute::cast(array, field.data_type()).expect("the test's data casts")
        });
    RecordBatch::try_new(schema.clone(), columns.collect()).expect("cast to the schema")
}

fn measure(batches: &[RecordBatch], def: &TableDef) -> TableStatistics {
    let rows = batches.iter().map(|b| b.num_rows() as u64).sum();
    let columns = def.columns.iter().enumerate().map(|(i, column)| {
        let values = batches.iter().flat_map(|b| {
            let array = b.column(i).clone();
            (0..b.num_rows()).map(move |row| datum_at(array.as_ref(), row, &column.ty).into_owned())
        });
        let (mut distinct, mut statistics) = (BTreeSet::new(), ColumnStatistics::default());
        let order = |a: &Value, b: &Value| avocet_types::compare::compare(a, b, Collation::UTF8MB4_0900_BIN);
        for value in values {
            if value.is_null() {
                statistics.nulls = Some(statistics.nulls.unwrap_or(0) + 1);
                continue;
            }
            distinct.insert(format!("{value:?}"));
            if statistics.min.as_ref().is_none_or(|min| order(&value, min).is_some_and(|o| o.is_lt())) {
                statistics.min = Some(value.clone());
            }
            if statistics.max.as_ref().is_none_or(|max| order(&value, max).is_some_and(|o| o.is_gt())) {
                statistics.max = Some(value);
            }
        }
        statistics.distinct = Some(distinct.len() as u64);
        statistics
    });
    TableStatistics { rows, most_rows: rows, columns: columns.collect(), paths: Vec::new() }
}

impl CatalogView for Memory {
    fn current_database(&self) -> Option<&str> {
        Some("test")
    }

    fn has_database(&self, name: &str) -> bool {
        name == "test"
    }

    fn table(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.tables.get(name).filter(|_| database == "test").map(|t| t.def.clone())
    }

    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        Statistics::statistics(self, table)
    }

    fn typer(&self) -> Typer {
        Typer::default()
    }

    fn system_variable(&self, _scope: VariableScope, name: &str) -> Result<Expr, SqlError> {
        match name {
            "version_comment" => Ok(self.typer().string("Avocet")),
            _ => Err(ErrorCode::UNKNOWN_SYSTEM_VARIABLE.with(&[&name])),
        }
    }

    fn user_variable(&self, _name: &str) -> Expr {
        Expr::null()
    }

    fn collation(&self, name: &str) -> Option<Collation> {
        Collation::by_name(name)
    }
}

impl Statistics for Memory {
    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        self.tables.get(&table.name).map(|t| t.statistics.clone())
    }
}
