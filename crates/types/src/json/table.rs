//! JSON_TABLE: rows out of a document.
//! MySQL 8.4 Reference Manual, 14.17.6 "JSON Table Functions".

use std::sync::Arc;

use crate::convert::StoreError;
use crate::datum::{Datum, Value};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::json::value::as_column;
use crate::json::{Json, JsonRef, Node, Path, wanted_kind};
use crate::sql_type::SqlType;

/// A row for each value that a path leads to.
#[derive(Clone, Debug)]
pub struct Level {
    pub path: Path,
    pub columns: Vec<Column>,
    /// Levels below, beside one another: each gives rows of its own, with NULL in the others' columns.
    pub nested: Vec<Level>,
}

#[derive(Clone, Debug)]
pub struct Column {
    /// Its place in the table's rows.
    pub at: usize,
    pub name: Arc<str>,
    pub ty: SqlType,
    pub source: Source,
}

#[derive(Clone, Debug)]
pub enum Source {
    /// FOR ORDINALITY: the row's number below the row that it is of.
    Ordinality,
    /// EXISTS PATH
    Exists(Path),
    Path {
        path: Path,
        on_empty: Answer,
        on_error: Answer,
    },
}

/// What a column has where its path leads to nothing, or to no value of its type.
#[derive(Clone, Debug)]
pub enum Answer {
    Null,
    Error,
    Value(Value),
}

impl Level {
    /// Columns of the level and those below it.
    pub fn width(&self) -> usize {
        self.columns.len() + self.nested.iter().map(Self::width).sum::<usize>()
    }

    /// Calls `emit` with each row of a document.
    pub fn rows(
        &self,
        document: Node<'_>,
        context: &EvalContext,
        emit: &mut dyn FnMut(&[Value]) -> EvalResult<()>,
    ) -> EvalResult<()> {
        let mut row = vec![Datum::Null; self.width()];
        self.rows_within(document, context, &mut row, emit).map(drop)
    }

    /// How many rows there were.
    fn rows_within(
        &self,
        node: Node<'_>,
        context: &EvalContext,
        row: &mut [Value],
        emit: &mut dyn FnMut(&[Value]) -> EvalResult<()>,
    ) -> EvalResult<usize> {
        let found = self.path.find_all(node, || context.check())?;
        for (number, node) in found.iter().enumerate() {
            for column in &self.columns {
                row[column.at] = column.value(*node, number as i64 + 1, context)?;
            }
            let mut below = 0;
            for nested in &self.nested {
                below += nested.rows_within(*node, context, row, emit)?;
            }
            if below == 0 {
                emit(row)?;
            }
        }
        self.clear(row);
        Ok(found.len())
    }

    /// The level's columns are NULL in rows of levels beside it.
    fn clear(&self, row: &mut [Value]) {
        self.columns.iter().for_each(|column| row[column.at] = Datum::Null);
        self.nested.iter().for_each(|nested| nested.clear(row));
    }
}

impl Column {
    fn value(&self, node: Node<'_>, number: i64, context: &EvalContext) -> EvalResult<Value> {
        let (path, on_empty, on_error) = match &self.source {
            Source::Ordinality => return Ok(Datum::Int(number)),
            Source::Exists(path) => {
                let exists = Json::Int(path.exists(node, || context.check())?.into());
                let document = exists.encode().map_err(EvalError::Json)?;
                return as_column(Node::new(&document), &self.ty, context.time_zone)
                    .map_err(|_| EvalError::JsonTableRange(self.name.to_string()));
            }
            Source::Path { path, on_empty, on_error } => (path, on_empty, on_error),
        };
        let found = path.find_all(node, || context.check())?;
        let together;
        let node = match &found[..] {
            [] => {
                return on_empty.or(|| EvalError::JsonTableMissing(self.name.to_string()));
            }
            [node] => *node,
            // Several values are an array.
            several => {
                let elements = several.iter().map(Node::to_json).collect();
                together = Json::Array(elements).encode().map_err(EvalError::Json)?;
                Node::new(&together)
            }
        };
        if self.ty != SqlType::Json && matches!(node.view(), JsonRef::Array(_) | JsonRef::Object(_)) {
            return on_error.or(|| EvalError::JsonTableScalar(self.name.to_string()));
        }
        as_column(node, &self.ty, context.time_zone).or_else(|problem| {
            on_error.or(|| match problem {
                StoreError::OutOfRange | StoreError::TooLong => {
                    EvalError::JsonTableRange(self.name.to_string())
                }
                _ => EvalError::JsonTableCast { kind: wanted_kind(&self.ty), column: self.name.to_string() },
            })
        })
    }
}

impl Answer {
    fn or(&self, error: impl FnOnce() -> EvalError) -> EvalResult<Value> {
        match self {
            Self::Null => Ok(Datum::Null),
            Self::Value(value) => Ok(value.clone()),
            Self::Error => Err(error()),
        }
    }
}
