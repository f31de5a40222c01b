//! The rows of `avocet.metrics` in the text format of Prometheus (exposition format 0.0.4).

use std::fmt::Write;

use arrow::record_batch::RecordBatch;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_types::Datum;
use avocet_types::SqlType;
use avocet_types::arrow_map::datum_at;
use avocet_types::temporal::TimeZone;
use hyper::Response;

use super::pages::{Body, of_type};

/// What is to be read: the columns that [`Exposition`] takes, in its order. Samples of a family stand together.
pub(super) const METRICS: &str = "SELECT family, kind, help, name, labels, value FROM avocet.metrics";

#[derive(Default)]
pub(super) struct Exposition {
    types: Vec<SqlType>,
    /// The family whose head was written last.
    family: String,
    text: String,
}

impl Exposition {
    pub fn response(self) -> Response<Body> {
        of_type("text/plain; version=0.0.4; charset=utf-8", self.text.into())
    }

    fn sample(&mut self, row: &[Datum<'_>]) {
        let [
            Datum::Str(family),
            Datum::Str(kind),
            Datum::Str(help),
            Datum::Str(name),
            Datum::Str(labels),
            Datum::Double(value),
        ] = row
        else {
            return debug_assert!(false, "other columns than those of METRICS");
        };
        // Writing to a string does not fail.
        if self.family != **family {
            self.family = family.to_string();
            let _ = writeln!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}");
        }
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{name} {value}"),
            false => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }
}

impl ResultSink for Exposition {
    fn columns(&mut self, columns: &[OutputColumn], _: TimeZone) -> Result<(), SinkError> {
        *self = Self { types: columns.iter().map(|column| column.ty).collect(), ..Self::default() };
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        self.sample(row);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        for row in from..batch.num_rows() {
            let columns = batch.columns().iter().zip(&self.types);
            let values: Vec<_> =
                columns.map(|(array, ty)| datum_at(array.as_ref(), row, ty).into_owned()).collect();
            self.sample(&values);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_one_head() {
        let mut text = Exposition::default();
        for (name, labels, value) in
            [("a_total", "x=\"1\"", 2.0), ("a_total", "x=\"2\"", 0.5), ("b", "", 1e18)]
        {
            let row = [name, "counter", "What it is.", name, labels].map(Datum::str);
            let row: Vec<_> = row.into_iter().chain([Datum::Double(value)]).collect();
            text.sample(&row);
        }
        let wanted = "# HELP a_total What it is.\n# TYPE a_total counter\na_total{x=\"1\"} 2\na_total{x=\"2\"} 0.5\n\
            # HELP b What it is.\n# TYPE b counter\nb 1000000000000000000\n";
        assert_eq!(text.text, wanted);
    }
}
