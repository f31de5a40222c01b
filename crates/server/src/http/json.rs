//! Rows as JSON: `{"columns": ["id", …], "rows": [[1, "a", null], …]}`. Numbers are numbers, all else its text.

use arrow::record_batch::RecordBatch;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_types::arrow_map::datum_at;
use avocet_types::temporal::TimeZone;
use avocet_types::text::to_text;
use avocet_types::{Datum, SqlType};
use hyper::Response;
use serde_json::{Value, json};

use super::pages::{Body, of_type};

/// The result set of a statement.
#[derive(Default)]
pub(super) struct Rows {
    columns: Vec<String>,
    types: Vec<SqlType>,
    zone: TimeZone,
    rows: Vec<Value>,
}

impl Rows {
    pub fn response(self) -> Response<Body> {
        let text = json!({ "columns": self.columns, "rows": self.rows }).to_string();
        of_type("application/json", text.into())
    }
}

fn value(datum: &Datum<'_>, ty: &SqlType, zone: TimeZone) -> Value {
    match datum {
        Datum::Null => Value::Null,
        Datum::Int(number) => json!(number),
        Datum::UInt(number) => json!(number),
        Datum::Float(number) => json!(number),
        Datum::Double(number) => json!(number),
        other => json!(to_text(other, ty, zone)),
    }
}

impl ResultSink for Rows {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        *self = Self {
            columns: columns.iter().map(|column| column.name.to_string()).collect(),
            types: columns.iter().map(|column| column.ty).collect(),
            zone,
            rows: Vec::new(),
        };
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        let values = row.iter().zip(&self.types).map(|(datum, ty)| value(datum, ty, self.zone));
        self.rows.push(values.collect());
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        for row in from..batch.num_rows() {
            let columns = batch.columns().iter().zip(&self.types);
            let values = columns.map(|(array, ty)| value(&datum_at(array.as_ref(), row, ty), ty, self.zone));
            self.rows.push(values.collect());
        }
        Ok(batch.num_rows())
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
