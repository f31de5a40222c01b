//! The shell's statements on a session of our own, over a data directory that no server uses.

use std::path::Path;

use avocet_channel::OutputColumn;
use avocet_session::Database;
use avocet_session::{Answer, Connection};
use avocet_types::error::SqlError;
use avocet_types::text::write_text;
use avocet_types::{SqlType, Value};

use super::backend::{Backend, RunError};
use super::output::{Column, ResultSet};
use crate::Failure;

pub struct Embedded {
    database: Database,
    /// Gone only while dropping: it must end before the database.
    connection: Option<Connection>,
}

impl Embedded {
    pub fn open(data: &Path, default: Option<&str>) -> Result<Self, Failure> {
        let database = Database::open(data)?;
        database.spill_to(data.join("spill"));
        let connection = Some(database.connect(default)?);
        Ok(Self { database, connection })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.connection = None;
        if let Err(error) = self.database.shutdown() {
            eprintln!("avocet: closing the data directory: {error}");
        }
    }
}

impl Backend for Embedded {
    fn run(&mut self, sql: &str, each: &mut dyn FnMut(ResultSet)) -> Result<(), RunError> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        connection.run(sql, &mut |answer| each(shown(answer))).map_err(RunError::from)
    }
}

impl From<SqlError> for RunError {
    fn from(error: SqlError) -> Self {
        let state = String::from_utf8_lossy(&error.sqlstate).into_owned();
        Self::Sql { errno: error.errno, state, message: error.message }
    }
}

/// Values as the shell shows them.
fn shown(answer: Answer) -> ResultSet {
    let Answer { columns, rows, zone, affected_rows, info, warnings, .. } = answer;
    let cell = |(value, column): (&Value, &OutputColumn)| {
        let mut text = Vec::new();
        write_text(value, &column.ty, zone, &mut text);
        (!value.is_null()).then_some(text)
    };
    let column = |column: &OutputColumn| Column {
        name: column.name.to_string(),
        right: is_number(&column.ty),
        nullable: !column.flags.not_null,
    };
    ResultSet {
        rows: rows.iter().map(|row| row.iter().zip(&columns).map(cell).collect()).collect(),
        columns: columns.iter().map(column).collect(),
        affected: affected_rows,
        info,
        warnings,
    }
}

fn is_number(ty: &SqlType) -> bool {
    ty.is_integer() || matches!(ty, SqlType::Decimal { .. } | SqlType::Float(_) | SqlType::Double(_))
}
