//! What a procedure gives back.

use avocet_types::{Datum, SqlType, Value};

/// Result sets, OUT values and a count of rows, kept until the call's transaction is durable.
#[derive(Debug, Default)]
pub struct Reply {
    /// In the order in which they were begun.
    pub result_sets: Vec<ResultSet>,
    /// What clients are told of rows that were changed.
    pub affected_rows: u64,
    out: Vec<Option<Value>>,
}

/// Rows with named columns.
#[derive(Debug, Default, Clone)]
pub struct ResultSet {
    pub columns: Vec<(String, SqlType)>,
    /// Row after row, a value for each column.
    values: Vec<Value>,
}

impl Reply {
    /// Empties it for another call.
    pub(super) fn begin(&mut self, parameters: usize) {
        self.result_sets.clear();
        self.affected_rows = 0;
        self.out.clear();
        self.out.resize(parameters, None);
    }

    /// Begins a result set; rows go to the one that was begun last.
    pub fn result_set(&mut self, columns: &[(&str, SqlType)]) -> &mut ResultSet {
        let columns = columns.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect();
        self.result_sets.push(ResultSet { columns, values: Vec::new() });
        self.result_sets.last_mut().expect("pushed just now")
    }

    /// Gives an OUT or INOUT parameter, by its position, a value of its type.
    ///
    /// # Panics
    /// If there is no such parameter.
    pub fn set(&mut self, parameter: usize, value: Value) {
        self.out[parameter] = Some(value);
    }

    /// What was given to a parameter, if anything was.
    pub fn out(&self, parameter: usize) -> Option<&Value> {
        self.out.get(parameter)?.as_ref()
    }
}

impl ResultSet {
    /// Adds a row.
    ///
    /// # Panics
    /// If it has not a value of each column's type, or NULL, in order.
    pub fn push(&mut self, row: &[Datum<'_>]) {
        assert_eq!(row.len(), self.columns.len(), "a row has a value for each column");
        self.values.extend(row.iter().map(|value| value.clone().into_owned()));
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[Value]> {
        self.values.chunks_exact(self.columns.len().max(1))
    }
}
