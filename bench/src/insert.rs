//! Multi-row INSERT statements built as text: the one way to load rows that every MySQL-speaking server has.

use std::fmt::Write;
use std::sync::Mutex;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::error::Result;

/// Rows in one INSERT. Large enough that parsing and round trips amortise, small enough for any packet limit.
const ROWS_PER_STATEMENT: usize = 500;
/// Rows in one transaction.
const ROWS_PER_COMMIT: usize = 5_000;

/// Collects rows for one table and sends them in statements and transactions of reasonable size.
pub struct Inserter<'c> {
    conn: &'c mut Conn,
    table: String,
    sql: String,
    rows: usize,
    uncommitted: usize,
    count: u64,
}

impl<'c> Inserter<'c> {
    /// `table` may carry a column list.
    pub fn new(conn: &'c mut Conn, table: &str) -> Inserter<'c> {
        Inserter { conn, table: table.to_owned(), sql: String::new(), rows: 0, uncommitted: 0, count: 0 }
    }

    /// Adds a row; `write` appends the values, separated by commas.
    pub fn row(&mut self, write: impl FnOnce(&mut String)) -> Result<()> {
        if self.rows == 0 {
            self.sql.clear();
            write!(self.sql, "INSERT INTO {} VALUES (", self.table).expect("a String takes all text");
        } else {
            self.sql.push_str(",(");
        }
        write(&mut self.sql);
        self.sql.push(')');
        self.rows += 1;
        self.count += 1;
        if self.rows == ROWS_PER_STATEMENT { self.send() } else { Ok(()) }
    }

    /// Rows added since it was last asked.
    pub fn take_count(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }

    /// Sends and commits what is left.
    pub fn finish(mut self) -> Result<()> {
        if self.rows > 0 {
            self.send()?;
        }
        self.commit()
    }

    fn send(&mut self) -> Result<()> {
        if self.uncommitted == 0 {
            self.conn.query_drop("START TRANSACTION")?;
        }
        self.conn.query_drop(&self.sql)?;
        self.uncommitted += self.rows;
        self.rows = 0;
        if self.uncommitted >= ROWS_PER_COMMIT { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<()> {
        if self.uncommitted > 0 {
            self.conn.query_drop("COMMIT")?;
            self.uncommitted = 0;
        }
        Ok(())
    }
}

/// Cuts loading into `pieces` that `workers` connections take one by one, in order.
pub fn in_pieces<P: Send>(
    options: &OptsBuilder,
    workers: usize,
    pieces: impl IntoIterator<Item = P, IntoIter: Send>,
    load: impl Fn(&mut Conn, P) -> Result<()> + Sync,
) -> Result<()> {
    let queue = Mutex::new(pieces.into_iter());
    let worker = || -> Result<()> {
        let mut conn = Conn::new(options.clone())?;
        loop {
            let piece = queue.lock().expect("no worker panics holding the queue").next();
            match piece {
                Some(piece) => load(&mut conn, piece)?,
                None => return Ok(()),
            }
        }
    };
    std::thread::scope(|threads| {
        let running: Vec<_> = (0..workers).map(|_| threads.spawn(worker)).collect();
        running.into_iter().try_for_each(|thread| thread.join().expect("a loader does not panic"))
    })
}

/// Appends a quoted string literal.
pub fn quote(sql: &mut String, text: &str) {
    sql.push('\'');
    for c in text.chars() {
        if c == '\'' || c == '\\' {
            sql.push('\\');
        }
        sql.push(c);
    }
    sql.push('\'');
}
