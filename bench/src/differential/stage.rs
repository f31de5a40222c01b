//! Servers that are asked the same, and what they answer.

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::{Protocol, Queryable};
use mysql::{Column, Conn, QueryResult, Row};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::rival::Server;
use crate::slt::render;

/// A statement that takes longer is one that hangs.
const LONGEST: Duration = Duration::from_secs(60);

/// How a statement is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocols {
    Text,
    Binary,
}

/// A value, as far as it is compared.
#[derive(Clone, Debug)]
pub enum Cell {
    Float(f64),
    Text(String),
}

/// What is said of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    pub name: String,
    /// As in the SQL test files.
    pub letter: char,
    pub column_type: ColumnType,
    pub decimals: u8,
    pub length: u32,
    pub not_null: bool,
    pub charset: u16,
}

/// What a statement came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    Rows {
        columns: Vec<Meta>,
        rows: Vec<Vec<Cell>>,
        warnings: u16,
    },
    Done {
        affected: u64,
        insert_id: u64,
        warnings: u16,
        info: String,
    },
    Error {
        code: u16,
        message: String,
    },
    /// The connection broke, or nothing came in a long time.
    Lost(String),
}

/// A server and one session on it.
pub struct Stage {
    server: Server,
    conn: Conn,
    /// What the session begins with.
    settings: Vec<String>,
}

impl Stage {
    pub fn new(server: Server, settings: &[&str]) -> Result<Stage> {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let conn = connect(&server, &settings)?;
        Ok(Stage { server, conn, settings })
    }

    /// Runs statements that prepare a case.
    pub fn prepare(&mut self, statements: &[String]) -> Result<()> {
        statements.iter().try_for_each(|sql| Ok(self.conn.query_drop(sql)?))
    }

    pub fn run(&mut self, sql: &str, by: Protocols) -> Result<Outcome> {
        let outcome = match by {
            Protocols::Text => {
                self.conn.query_iter(sql).map_err(Error::from).and_then(|mut r| collect(&mut r))
            }
            Protocols::Binary => self.run_prepared(sql),
        };
        match outcome {
            Err(Error::Mysql(mysql::Error::MySqlError(e))) => {
                Ok(Outcome::Error { code: e.code, message: e.message })
            }
            Err(e) if e.is_disconnect() => {
                self.connect_again()?;
                Ok(Outcome::Lost(e.to_string()))
            }
            other => other,
        }
    }

    fn run_prepared(&mut self, sql: &str) -> Result<Outcome> {
        let statement = self.conn.prep(sql)?;
        let outcome =
            self.conn.exec_iter(&statement, ()).map_err(Error::from).and_then(|mut r| collect(&mut r));
        if outcome.as_ref().err().is_none_or(|e| e.errno().is_some()) {
            self.conn.close(statement)?;
        }
        outcome
    }

    /// A new session; the server is started anew if it is gone.
    fn connect_again(&mut self) -> Result<()> {
        self.conn = match connect(&self.server, &self.settings) {
            Ok(conn) => conn,
            Err(_) => {
                // It may be gone already, which is what is wanted.
                let _ = self.server.kill();
                self.server.start_again()?;
                connect(&self.server, &self.settings)?
            }
        };
        Ok(())
    }
}

fn connect(server: &Server, settings: &[String]) -> Result<Conn> {
    let mut conn = Conn::new(server.options().read_timeout(Some(LONGEST)))?;
    conn.query_drop("CREATE DATABASE IF NOT EXISTS random")?;
    conn.query_drop("USE random")?;
    settings.iter().try_for_each(|sql| conn.query_drop(sql))?;
    Ok(conn)
}

fn collect<P: Protocol>(result: &mut QueryResult<'_, '_, '_, P>) -> Result<Outcome> {
    let columns: Vec<Meta> = result.columns().as_ref().iter().map(meta).collect();
    if columns.is_empty() {
        result.by_ref().try_for_each(|row| row.map(drop))?;
        return Ok(Outcome::Done {
            affected: result.affected_rows(),
            insert_id: result.last_insert_id().unwrap_or(0),
            warnings: result.warnings(),
            info: result.info_str().into_owned(),
        });
    }
    let rows: Vec<Row> = result.by_ref().collect::<std::result::Result<_, _>>()?;
    let rows = rows.iter().map(|row| cells(row, &columns)).collect();
    Ok(Outcome::Rows { columns, rows, warnings: result.warnings() })
}

fn meta(column: &Column) -> Meta {
    Meta {
        name: column.name_str().into_owned(),
        letter: render::letter(column),
        column_type: column.column_type(),
        decimals: column.decimals(),
        length: column.column_length(),
        not_null: column.flags().contains(ColumnFlags::NOT_NULL_FLAG),
        charset: column.character_set(),
    }
}

fn cells(row: &Row, columns: &[Meta]) -> Vec<Cell> {
    let line = render::line(row);
    let cell = |(text, meta): (&str, &Meta)| match text.parse() {
        Ok(float) if meta.letter == 'R' => Cell::Float(float),
        _ => Cell::Text(text.to_owned()),
    };
    line.split('\t').zip(columns).map(cell).collect()
}

impl Cell {
    /// Floating point may differ in its last digits: functions of the C library and sums in another order do.
    pub fn agrees(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(a), Cell::Float(b)) => a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            (a, b) => a.to_string() == b.to_string(),
        }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Float(float) if *float == 0.0 => f.write_str("0"),
            Cell::Float(float) => float.fmt(f),
            Cell::Text(text) => f.write_str(text),
        }
    }
}
