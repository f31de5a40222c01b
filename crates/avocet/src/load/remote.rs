//! Loading over a connection, by INSERTs of many rows.

use avocet_types::arrow_map::datum_at;
use avocet_types::temporal::TimeZone;
use avocet_types::text::write_text;
use avocet_types::{Datum, SqlType};
use mysql::Conn;
use mysql::prelude::Queryable;

use super::source::Batch;
use super::{TableName, Target};
use crate::Failure;
use crate::connect::said;

/// A statement is sent when it has grown to this.
const STATEMENT_BYTES: usize = 1 << 20;

pub struct Remote {
    conn: Conn,
    columns: Vec<String>,
    /// `db`.`table`, quoted.
    table: String,
    /// `INSERT … VALUES `.
    head: Vec<u8>,
    /// `head` and rows, each with a comma behind it.
    sql: Vec<u8>,
}

impl Remote {
    pub fn open(mut conn: Conn, name: &TableName) -> Result<Self, Failure> {
        let table = format!("{}.{}", quoted_name(&name.database), quoted_name(&name.table));
        let described = conn.query_iter(format!("SELECT * FROM {table} LIMIT 0")).map_err(said)?;
        let columns = described.columns().as_ref().iter().map(|c| c.name_str().into_owned()).collect();
        drop(described);
        Ok(Self { conn, columns, table, head: Vec::new(), sql: Vec::new() })
    }

    fn send(&mut self) -> Result<(), Failure> {
        if self.sql.len() > self.head.len() {
            self.sql.pop();
            self.conn.query_drop(std::str::from_utf8(&self.sql)?).map_err(said)?;
        }
        self.sql.clear();
        self.sql.extend_from_slice(&self.head);
        Ok(())
    }
}

impl Target for Remote {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.head.clear();
        self.sql.clear();
        Ok(self.conn.query_drop("START TRANSACTION").map_err(said)?)
    }

    fn push(&mut self, batch: &Batch, places: &[Option<usize>]) -> Result<(), Failure> {
        if self.head.is_empty() {
            let given = self.columns.iter().zip(places).filter(|(_, place)| place.is_some());
            let names: Vec<String> = given.map(|(name, _)| quoted_name(name)).collect();
            self.head = format!("INSERT INTO {} ({}) VALUES ", self.table, names.join(",")).into_bytes();
            self.sql.extend_from_slice(&self.head);
        }
        for row in 0..batch.rows {
            self.sql.push(b'(');
            for place in places.iter().flatten() {
                let (array, ty) = &batch.columns[*place];
                literal(&mut self.sql, &datum_at(array.as_ref(), row, ty), ty);
                self.sql.push(b',');
            }
            self.sql.pop();
            self.sql.extend_from_slice(b"),");
            if self.sql.len() > STATEMENT_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.send()?;
        Ok(self.conn.query_drop("COMMIT").map_err(said)?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn literal(sql: &mut Vec<u8>, value: &Datum<'_>, ty: &SqlType) {
    match value {
        Datum::Null => sql.extend_from_slice(b"NULL"),
        Datum::Bytes(bytes) => {
            sql.extend_from_slice(b"x'");
            bytes.iter().for_each(|byte| sql.extend_from_slice(format!("{byte:02X}").as_bytes()));
            sql.push(b'\'');
        }
        Datum::Str(text) => {
            sql.push(b'\'');
            for &byte in text.as_bytes() {
                match byte {
                    b'\'' | b'\\' => sql.extend_from_slice(&[b'\\', byte]),
                    0 => sql.extend_from_slice(b"\\0"),
                    byte => sql.push(byte),
                }
            }
            sql.push(b'\'');
        }
        Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_) => {
            sql.push(b'\'');
            write_text(value, ty, TimeZone::UTC, sql);
            sql.push(b'\'');
        }
        _ => write_text(value, ty, TimeZone::UTC, sql),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_literals() {
        let mut sql = Vec::new();
        for (value, ty) in [
            (Datum::Int(-1), SqlType::INT),
            (Datum::str("it's \\ \0"), SqlType::Null),
            (Datum::bytes(&[0, 255]), SqlType::Null),
            (Datum::Date(0), SqlType::Date),
            (Datum::Null, SqlType::INT),
        ] {
            literal(&mut sql, &value, &ty);
            sql.push(b' ');
        }
        assert_eq!(sql, b"-1 'it\\'s \\\\ \\0' x'00FF' '1970-01-01' NULL ");
        assert_eq!(quoted_name("a`b"), "`a``b`");
    }
}
