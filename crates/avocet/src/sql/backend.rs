//! Where the shell's statements run: on a server, or on a session of our own over a data directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mysql::consts::ColumnFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfile, LocalInfileHandler, Value};

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
    conn: Conn,
    /// Why the file that the server asked for was not sent.
    unsent: Arc<Mutex<Option<RunError>>>,
}

impl Remote {
    /// `gives_files`: LOAD DATA LOCAL may read this machine's files.
    pub fn new(mut conn: Conn, gives_files: bool) -> Self {
        let unsent: Arc<Mutex<Option<RunError>>> = Arc::default();
        let noted = unsent.clone();
        let handler = move |name: &[u8], file: &mut LocalInfile<'_>| {
            let sent = if gives_files { send_file(name, file)? } else { Err(RunError::refused_file()) };
            // The server gets an empty file, since the library cannot take an answer to its request back.
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = sent.err();
            Ok(())
        };
        conn.set_local_infile_handler(Some(LocalInfileHandler::new(handler)));
        Self { conn, unsent }
    }
}

/// Sends a file; the inner error is one of the file, the outer one of the connection.
fn send_file(name: &[u8], to: &mut impl Write) -> io::Result<Result<(), RunError>> {
    let path = Path::new(OsStr::from_bytes(name));
    let mut file = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 18, file),
        Err(error) => return Ok(Err(RunError::missing_file(path, &error))),
    };
    loop {
        let piece = match file.fill_buf() {
            Ok([]) => return Ok(Ok(())),
            Ok(piece) => piece,
            Err(error) => return Ok(Err(RunError::missing_file(path, &error))),
        };
        to.write_all(piece)?;
        let count = piece.len();
        file.consume(count);
    }
}

/// The client library's own errors, as the mysql client numbers them.
impl RunError {
    fn refused_file() -> Self {
        let message = "LOAD DATA LOCAL INFILE file request rejected due to restrictions on access \
                       (avocet sql --local-infile allows it).";
        Self::Sql { errno: 2068, state: "HY000".into(), message: message.into() }
    }

    fn missing_file(path: &Path, error: &io::Error) -> Self {
        Self::Sql { errno: 2, state: "HY000".into(), message: format!("File '{}': {error}", path.display()) }
    }
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
        match self.unsent.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
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
