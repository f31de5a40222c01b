//! Tables in memory, for the tests of binding and of analytics.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatchOptions;
use arrow::record_batch::RecordBatch;
use avocet_sql::bind::{CatalogView, ColumnStatistics, TableStatistics};
use avocet_sql::parse::ast::VariableScope;
use avocet_sql::relational::Statistics;
use avocet_sql::testing::table;
use avocet_types::arrow_map::{ColumnBuilder, datum_at};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr, Typer};
use avocet_types::schema::TableDef;
use avocet_types::{Collation, Datum, SqlType, Value};

use crate::{ColumnPredicate, MorselReader, MorselScan, ScanRequest, ScanSource};

/// A database `test` with tables in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    tables: HashMap<String, Table>,
}

#[derive(Debug)]
struct Table {
    def: Arc<TableDef>,
    batches: Vec<RecordBatch>,
    statistics: Arc<TableStatistics>,
}

impl Memory {
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
    TableStatistics { rows, columns: columns.collect() }
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

impl ScanSource for Memory {
    fn open(&self, table: &Arc<TableDef>, request: ScanRequest) -> Result<Arc<dyn MorselScan>, SqlError> {
        let batches = self.tables[&table.name].batches.iter().map(|batch| {
            let columns = request.columns.iter().map(|c| batch.column(*c).clone()).collect();
            let fields: Vec<_> = request.columns.iter().map(|c| batch.schema().field(*c).clone()).collect();
            let schema = Arc::new(arrow::datatypes::Schema::new(fields));
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema, columns, &options).expect("columns of the batch")
        });
        Ok(Arc::new(MemoryScan(batches.collect())))
    }

    fn filters_exactly(&self, _table: &TableDef, _predicate: &ColumnPredicate) -> bool {
        false
    }
}

struct MemoryScan(Vec<RecordBatch>);

impl MorselScan for MemoryScan {
    fn morsels(&self) -> usize {
        self.0.len()
    }

    fn open(self: Arc<Self>, morsel: usize) -> Result<Box<dyn MorselReader>, SqlError> {
        Ok(Box::new(Some(self.0[morsel].clone())))
    }
}

/// A value as MySQL's client shows it.
pub(crate) fn shown(value: &Datum<'_>, ty: &SqlType) -> String {
    if value.is_null() {
        return "NULL".into();
    }
    let mut out = Vec::new();
    avocet_types::text::write_text(value, ty, avocet_types::expr::TimeZone::UTC, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
