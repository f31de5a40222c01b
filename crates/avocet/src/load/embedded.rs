//! Loading straight into a data directory: rows become column blocks, the log carries references.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Field, Schema};
use avocet_engine::{BulkInsert, Engine, EngineOptions, TableHandle, Txn, TxnOptions};
use avocet_types::arrow_map::{ColumnBuilder, datum_at};
use avocet_types::convert::{ConvertContext, store_column};
use avocet_types::{ColumnDef, Datum, DefaultValue, SqlType};

use super::source::Batch;
use super::{TableName, Target, computed};
use crate::Failure;

pub struct Embedded {
    engine: Arc<Engine>,
    table: Arc<TableHandle>,
    schema: Arc<Schema>,
    running: Option<Running>,
}

/// The load of one file.
struct Running {
    txn: Txn,
    insert: BulkInsert,
    rows: u64,
}

impl Embedded {
    pub fn open(data: &Path, name: &TableName) -> Result<Self, Failure> {
        let rule_compiler = Some(avocet_session::compile_rules as avocet_engine::RuleCompiler);
        let engine = Engine::open(EngineOptions { rule_compiler, ..EngineOptions::new(data) })?;
        let table = engine
            .catalog()
            .table(&name.database, &name.table)
            .cloned()
            .ok_or_else(|| format!("Table '{}.{}' doesn't exist", name.database, name.table))?;
        let fields = table.def.columns.iter().map(|c| Field::new(&c.name, c.ty.arrow_type(), c.nullable));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { engine, table, schema, running: None })
    }
}

impl Target for Embedded {
    fn columns(&self) -> Vec<String> {
        self.table.def.own_columns().iter().map(|column| column.name.clone()).collect()
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let mut txn = self.engine.begin(TxnOptions::default());
        let insert = txn.bulk_insert(&self.table)?;
        self.running = Some(Running { txn, insert, rows: 0 });
        Ok(())
    }

    fn push(&mut self, batch: &Batch, places: &[Option<usize>]) -> Result<(), Failure> {
        let running = self.running.as_mut().ok_or("no load has begun")?;
        // Hidden columns have no places.
        let places_of_all = places.iter().chain(std::iter::repeat(&None));
        let columns = self.table.def.columns.iter().zip(places_of_all).map(|(column, place)| match *place {
            Some(place) => {
                let (array, ty) = &batch.columns[place];
                stored(array, ty, column, running.rows + 1)
            }
            None => absent(column, batch.rows),
        });
        let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
        let now_us = self.engine.options().env.clock.wall_us();
        computed::complete(
            &self.table,
            &mut columns,
            &|at| places.get(at).is_some_and(Option::is_some),
            running.rows + 1,
            now_us,
        )?;
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        running.insert.push(&mut running.txn, &batch)?;
        running.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let Running { mut txn, insert, .. } = self.running.take().ok_or("no load has begun")?;
        insert.finish(&mut txn)?;
        Ok(txn.commit()?.wait()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(self.engine.shutdown()?)
    }
}

/// A column of the file as the table keeps it.
fn stored(array: &ArrayRef, from: &SqlType, column: &ColumnDef, first_row: u64) -> Result<ArrayRef, Failure> {
    let nulls_fit = column.nullable || array.null_count() == 0;
    if *array.data_type() == column.ty.arrow_type() && nulls_fit && fits(array, from, &column.ty) {
        return Ok(array.clone());
    }
    let mut builder = ColumnBuilder::new(&column.ty, array.len());
    for row in 0..array.len() {
        let value = datum_at(array.as_ref(), row, from);
        let stored = store_column(value, from, column, &ConvertContext::STRICT_UTC).map_err(|error| {
            format!("{error} for column '{}' at row {}", column.name, first_row + row as u64)
        })?;
        builder.append(&stored.value);
    }
    Ok(builder.finish())
}

/// Whether every value of an array that has the column's Arrow type surely fits the column.
fn fits(array: &ArrayRef, from: &SqlType, to: &SqlType) -> bool {
    match *to {
        // No text has more characters than bytes.
        SqlType::VarChar { len, .. } => array.as_string_view().lengths().all(|bytes| bytes <= len),
        SqlType::VarBinary { len } => array.as_binary_view().lengths().all(|bytes| bytes <= len),
        _ => from == to,
    }
}

/// A column that the file does not have: its default.
fn absent(column: &ColumnDef, rows: usize) -> Result<ArrayRef, Failure> {
    let value = match &column.default {
        Some(DefaultValue::Const(value)) => value.clone(),
        // Computed when the other values are there.
        Some(DefaultValue::Expr(_)) => Datum::Null,
        None if column.nullable => Datum::Null,
        _ => {
            let name = &column.name;
            return Err(format!("the file has no column '{name}', and that has no constant default").into());
        }
    };
    let mut builder = ColumnBuilder::new(&column.ty, rows);
    (0..rows).for_each(|_| builder.append(&value));
    Ok(builder.finish())
}
