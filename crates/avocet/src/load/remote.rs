//! Loading over a connection, by LOAD DATA LOCAL.
//!
//! The client library runs the statement and asks for the file meanwhile, so the statement has a thread of its own, which
//! gets the rows through a short queue. A file of a client makes no errors of what does not fit, but warnings: a load that
//! has any is taken back.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use avocet_types::arrow_map::datum_at;
use avocet_types::temporal::TimeZone;
use avocet_types::text::write_text;
use avocet_types::{Datum, SqlType};
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, Row};

use super::source::Batch;
use super::{TableName, Target};
use crate::Failure;
use crate::connect::said;

/// Pieces of the file that may wait for the network.
const QUEUE: usize = 4;

/// "Loading local data is disabled".
const LOCAL_FILES_DISABLED: u16 = 3948;

pub struct Remote {
    /// Absent while a statement runs.
    conn: Option<Conn>,
    columns: Vec<Column>,
    /// `db`.`table`, quoted.
    table: String,
    running: Option<Running>,
    /// Where the statement's thread finds the queue of its file.
    queue: Arc<Mutex<Option<Receiver<Vec<u8>>>>>,
}

struct Column {
    name: String,
    /// It is NOT NULL, and nothing gives it a value by itself.
    is_mandatory: bool,
}

/// A statement that is being run.
struct Running {
    rows: SyncSender<Vec<u8>>,
    statement: JoinHandle<(Conn, mysql::Result<()>)>,
}

impl Remote {
    pub fn open(mut conn: Conn, name: &TableName) -> Result<Self, Failure> {
        let table = format!("{}.{}", quoted_name(&name.database), quoted_name(&name.table));
        let described: Vec<Row> = conn.query(format!("SHOW COLUMNS FROM {table}")).map_err(said)?;
        let columns = described.into_iter().map(|mut row| {
            let mut text = |column: &str| row.take::<Option<String>, _>(column).flatten().unwrap_or_default();
            let (name, extra) = (text("Field"), text("Extra"));
            let is_nullable = text("Null") == "YES";
            let has_default = row.take::<Option<String>, _>("Default").flatten().is_some();
            let is_mandatory = !is_nullable && !has_default && !extra.contains("auto_increment");
            Column { name, is_mandatory }
        });
        let columns = columns.collect();
        // Everybody may set these. Without notes, the first condition that is kept is a warning; and fields have escapes.
        let settings =
            "SET SESSION sql_notes = 0, sql_mode = REPLACE(@@sql_mode, 'NO_BACKSLASH_ESCAPES', '')";
        conn.query_drop(settings).map_err(said)?;
        let queue: Arc<Mutex<Option<Receiver<Vec<u8>>>>> = Arc::default();
        let given = queue.clone();
        conn.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, file| send(&given, file))));
        Ok(Self { conn: Some(conn), columns, table, running: None, queue })
    }

    /// Begins the statement; `places` says which columns it gives values.
    fn start(&mut self, batch: &Batch, places: &[Option<usize>]) -> Result<Running, Failure> {
        let lacking =
            self.columns.iter().zip(places).find(|(column, place)| column.is_mandatory && place.is_none());
        if let Some((column, _)) = lacking {
            let name = &column.name;
            return Err(
                format!("the file has no column '{name}', which is NOT NULL and has no default").into()
            );
        }
        let given = self.columns.iter().zip(places).filter_map(|(column, place)| Some((column, (*place)?)));
        let sql = statement(
            &self.table,
            given.map(|(column, place)| (column.name.as_str(), &batch.columns[place].1)),
        );
        let mut conn = self.conn.take().ok_or("no load has begun")?;
        let (rows, queue) = sync_channel(QUEUE);
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(queue);
        let run = move || {
            let result = conn.query_drop(sql);
            (conn, result)
        };
        let statement = std::thread::Builder::new().name("load".into()).spawn(run)?;
        Ok(Running { rows, statement })
    }

    /// Waits for the statement to end.
    fn join(&mut self, Running { rows, statement }: Running) -> Result<(), Failure> {
        drop(rows);
        let (conn, result) = statement.join().map_err(|_| "the connection's thread panicked")?;
        self.conn = Some(conn);
        result.map_err(|error| match error {
            mysql::Error::MySqlError(e) if e.code == LOCAL_FILES_DISABLED => {
                "the server takes no files of clients (local_infile is OFF): SET GLOBAL local_infile = ON"
                    .to_owned()
            }
            other => said(other),
        })?;
        Ok(())
    }

    /// The first warning of the statement.
    fn warning(&mut self) -> Result<Option<String>, Failure> {
        let conn = self.conn.as_mut().ok_or("no load has begun")?;
        if conn.warnings() == 0 {
            return Ok(None);
        }
        let warnings: Vec<(String, u16, String)> = conn.query("SHOW WARNINGS").map_err(said)?;
        // None is kept if the server's max_error_count is 0.
        let first = warnings.first().map(|(_, code, text)| format!("{code}: {text}"));
        Ok(Some(first.unwrap_or_else(|| "the server has warnings".to_owned())))
    }
}

impl Target for Remote {
    fn columns(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let conn = self.conn.as_mut().ok_or("the connection is lost")?;
        Ok(conn.query_drop("START TRANSACTION").map_err(said)?)
    }

    fn push(&mut self, batch: &Batch, places: &[Option<usize>]) -> Result<(), Failure> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start(batch, places)?,
        };
        let mut lines = Vec::new();
        for row in 0..batch.rows {
            for place in places.iter().flatten() {
                let (array, ty) = &batch.columns[*place];
                field(&mut lines, &datum_at(array.as_ref(), row, ty), ty);
                lines.push(b'\t');
            }
            lines.pop();
            lines.push(b'\n');
        }
        if running.rows.send(lines).is_err() {
            // The statement has ended before its file.
            self.join(running)?;
            return Err("the server did not take the file".into());
        }
        self.running = Some(running);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if let Some(running) = self.running.take() {
            self.join(running)?;
            if let Some(warning) = self.warning()? {
                return Err(warning.into());
            }
        }
        let conn = self.conn.as_mut().ok_or("the connection is lost")?;
        Ok(conn.query_drop("COMMIT").map_err(said)?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Passes the rows of a queue on; they end when the queue's other side is dropped.
fn send(queue: &Mutex<Option<Receiver<Vec<u8>>>>, file: &mut impl Write) -> io::Result<()> {
    let queue = queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    let queue = queue.ok_or(io::ErrorKind::NotFound)?;
    queue.iter().try_for_each(|lines| file.write_all(&lines))
}

/// LOAD DATA into columns of these names, from values of these types. Bytes come as hexadecimal digits.
fn statement<'c>(table: &str, columns: impl Iterator<Item = (&'c str, &'c SqlType)>) -> String {
    let (mut targets, mut assignments) = (Vec::new(), Vec::new());
    for (at, (name, ty)) in columns.enumerate() {
        let name = quoted_name(name);
        if is_binary(ty) {
            targets.push(format!("@load_{at}"));
            assignments.push(format!("{name} = UNHEX(@load_{at})"));
        } else {
            targets.push(name);
        }
    }
    let set = if assignments.is_empty() { String::new() } else { format!(" SET {}", assignments.join(", ")) };
    let targets = targets.join(", ");
    format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4 ({targets}){set}")
}

fn is_binary(ty: &SqlType) -> bool {
    ty.is_bytes()
}

fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Writes a value as a field of LOAD DATA's default format.
fn field(line: &mut Vec<u8>, value: &Datum<'_>, ty: &SqlType) {
    match value {
        Datum::Null => line.extend_from_slice(b"\\N"),
        Datum::Bytes(bytes) => {
            for byte in bytes.iter() {
                line.extend([byte >> 4, byte & 15].map(|digit| b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
        Datum::Str(text) => {
            for &byte in text.as_bytes() {
                match byte {
                    b'\\' => line.extend_from_slice(b"\\\\"),
                    b'\t' => line.extend_from_slice(b"\\t"),
                    b'\n' => line.extend_from_slice(b"\\n"),
                    byte => line.push(byte),
                }
            }
        }
        _ => write_text(value, ty, TimeZone::UTC, line),
    }
}

#[cfg(test)]
mod tests {
    use avocet_types::LobSize;

    use super::*;

    #[test]
    fn values_become_fields() {
        let mut line = Vec::new();
        for (value, ty) in [
            (Datum::Int(-1), SqlType::INT),
            (Datum::str("it's \\ \t\n\\N \0"), SqlType::Null),
            (Datum::bytes(&[0, 255]), SqlType::Null),
            (Datum::Date(0), SqlType::Date),
            (Datum::Null, SqlType::INT),
        ] {
            field(&mut line, &value, &ty);
            line.push(b'|');
        }
        assert_eq!(line, b"-1|it's \\\\ \\t\\n\\\\N \0|00FF|1970-01-01|\\N|");
        assert_eq!(quoted_name("a`b"), "`a``b`");
    }

    #[test]
    fn bytes_are_sent_as_digits() {
        let columns = [("a", &SqlType::INT), ("b`", &SqlType::Blob { size: LobSize::Long })];
        assert_eq!(
            statement("`d`.`t`", columns.into_iter()),
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE `d`.`t` CHARACTER SET utf8mb4 (`a`, @load_1) \
             SET `b``` = UNHEX(@load_1)"
        );
    }
}
