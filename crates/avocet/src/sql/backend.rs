//! Where the shell's statements run: on a server, or on a session of our own over a data directory.

use mysql::consts::ColumnFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use super::output::{Column, ResultSet};
use crate::connect::said;

/// An error of a statement, as MySQL numbers it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("ERROR {errno} ({state}): {message}")]
    Sql { errno: u16, state: String, message: String },
    /// The connection is gone; nothing more can run.
    #[error("{0}")]
    Lost(String),
}

/// Runs statements.
pub trait Backend {
    /// Runs one statement (or several, if the server takes them) and passes on each result as it is complete.
    fn run(&mut self, sql: &str, each: &mut dyn FnMut(ResultSet)) -> Result<(), RunError>;
}

impl From<mysql::Error> for RunError {
    fn from(error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(e) => Self::Sql { errno: e.code, state: e.state, message: e.message },
            other => Self::Lost(said(other)),
        }
    }
}

/// A server, over a connection.
pub struct Remote {
    pub conn: Conn,
}

impl Backend for Remote {
    fn run(&mut self, sql: &str, each: &mut dyn FnMut(ResultSet)) -> Result<(), RunError> {
        let mut results = self.conn.query_iter(sql)?;
        while let Some(set) = results.iter() {
            let columns = set.columns().as_ref().iter().map(column).collect();
            let mut result = ResultSet {
                columns,
                affected: set.affected_rows(),
                info: set.info_str().into_owned(),
                warnings: set.warnings(),
                ..ResultSet::default()
            };
            for row in set {
                result.rows.push(row?.unwrap().into_iter().map(cell).collect());
            }
            each(result);
        }
        Ok(())
    }
}

fn column(column: &mysql::Column) -> Column {
    let nullable = !column.flags().contains(ColumnFlags::NOT_NULL_FLAG);
    Column { name: column.name_str().into_owned(), right: column.column_type().is_numeric_type(), nullable }
}

/// Text results carry every value as its text.
fn cell(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes),
        other => Some(other.as_sql(true).into_bytes()),
    }
}
