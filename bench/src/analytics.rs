//! Whoever answers analytical queries: a server behind the MySQL protocol, or DuckDB.

pub mod compare;
pub mod contenders;
pub mod load;

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, Value};

use crate::error::Result;
use crate::rival::duckdb::DuckDb;

/// A value as text; NULL is none.
pub type Cell = Option<String>;
pub type Rows = Vec<Vec<Cell>>;

/// One connection that takes queries.
pub enum Analyst {
    Mysql(Box<Conn>),
    DuckDb(Box<DuckDb>),
}

impl Analyst {
    pub fn connect(options: OptsBuilder) -> Result<Analyst> {
        Ok(Analyst::Mysql(Box::new(Conn::new(options)?)))
    }

    /// Runs a query and fetches all its rows; the time is what the client waits.
    pub fn query(&mut self, sql: &str) -> Result<(Duration, Rows)> {
        match self {
            Analyst::Mysql(conn) => ask(conn, sql),
            Analyst::DuckDb(duck) => {
                let answer = duck.query(sql)?;
                Ok((answer.took(), answer.rows))
            }
        }
    }
}

/// Runs a query and fetches all its rows over the text protocol; the time is what the client waits.
pub fn ask(conn: &mut Conn, sql: &str) -> Result<(Duration, Rows)> {
    let begin = Instant::now();
    let rows: Vec<Row> = conn.query(sql)?;
    Ok((begin.elapsed(), rows.into_iter().map(texts).collect()))
}

/// The text protocol's values as text.
fn texts(row: Row) -> Vec<Option<String>> {
    let text = |value| match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        other => Some(other.as_sql(true).trim_matches('\'').to_owned()),
    };
    row.unwrap().into_iter().map(text).collect()
}
