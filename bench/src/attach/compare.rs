//! Whether the replica has the source's tables, definitions and rows: by value, as the binary protocol brings them.
//!
//! Rows are read as a stream on both sides, and their hashes added, so that no order and no memory is needed; of a table that
//! differs the rows are then compared one by one.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::{Pair, connect};
use crate::error::{Error, Result};
use crate::rival::Server;

/// Compares all tables of a database; says how many there were.
pub fn all(pair: &Pair, database: &str) -> Result<String> {
    both(&pair.source, &pair.replica, database)
}

/// The same, of any two.
pub fn both(source: &Server, replica: &Server, database: &str) -> Result<String> {
    let (mut source, mut replica) = (connect(source)?, connect(replica)?);
    let (there, here) = (tables(&mut source, database)?, tables(&mut replica, database)?);
    let refused = refused(&mut replica, database)?;
    let missing: Vec<&String> =
        there.difference(&here).filter(|name| !refused.iter().any(|(r, _)| r == *name)).collect();
    let surplus: Vec<&String> = here.difference(&there).collect();
    if !missing.is_empty() || !surplus.is_empty() {
        return Err(Error::Check(format!(
            "tables {missing:?} are missing, {surplus:?} are not the source's"
        )));
    }
    let mut rows = 0;
    let is_followed = |name: &&String| !refused.iter().any(|(refused, _)| refused == *name);
    for table in there.intersection(&here).filter(is_followed) {
        rows += Compared { source: &mut source, replica: &mut replica, database, table }.run()?;
    }
    let refused: Vec<String> = refused.into_iter().map(|(name, why)| format!("{name} ({why})")).collect();
    let refused =
        if refused.is_empty() { String::new() } else { format!(", refused: {}", refused.join(", ")) };
    Ok(format!("{} tables and {rows} rows are the same{refused}", here.len()))
}

fn tables(conn: &mut Conn, database: &str) -> Result<BTreeSet<String>> {
    let names: Vec<String> = conn.exec(
        "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE'",
        (database,),
    )?;
    Ok(names.into_iter().collect())
}

/// Tables that are not followed, and why.
fn refused(replica: &mut Conn, database: &str) -> Result<Vec<(String, String)>> {
    let left_out: Vec<(String, String, String)> =
        match replica.query("SELECT table_schema, table_name, state FROM avocet.replica_tables") {
            // A MySQL that follows has none such.
            Err(mysql::Error::MySqlError(error)) if matches!(error.code, 1049 | 1146) => Vec::new(),
            left_out => left_out?,
        };
    let of_database = |(of, table, state): (String, String, String)| {
        let why = state.strip_prefix("not followed: ")?.to_owned();
        (of == database).then_some((table, why))
    };
    Ok(left_out.into_iter().filter_map(of_database).collect())
}

fn columns(conn: &mut Conn, database: &str, table: &str) -> Result<Vec<(String, String, String)>> {
    let columns: Vec<(String, String, String)> = conn.exec(
        "SELECT CAST(COLUMN_NAME AS CHAR), CAST(COLUMN_TYPE AS CHAR), CAST(IS_NULLABLE AS CHAR)
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION",
        (database, table),
    )?;
    Ok(columns.into_iter().map(|(name, ty, nullable)| (name, without_width(&ty), nullable)).collect())
}

/// A type without the width of its display, which a MariaDB shows of all integers.
fn without_width(ty: &str) -> String {
    const WITH_WIDTH: [&str; 6] = ["tinyint", "smallint", "mediumint", "int", "bigint", "year"];
    let plain = ty.split_once('(').and_then(|(name, rest)| Some((name, rest.split_once(')')?.1)));
    match plain.filter(|(name, _)| WITH_WIDTH.contains(name) && ty != "tinyint(1)") {
        Some((name, behind)) => format!("{name}{behind}"),
        None => ty.to_owned(),
    }
}

struct Compared<'a> {
    source: &'a mut Conn,
    replica: &'a mut Conn,
    database: &'a str,
    table: &'a str,
}

impl Compared<'_> {
    fn run(&mut self) -> Result<u64> {
        let Self { source, replica, database, table } = self;
        let (there, here) = (columns(source, database, table)?, columns(replica, database, table)?);
        if there != here {
            return Err(Error::Check(format!(
                "table {table} has columns {there:?} at the source and {here:?} here"
            )));
        }
        // Numbers of members and bits as numbers.
        let names = there.iter().map(|(name, ty, _)| match ty.split(['(', ' ']).next() {
            Some("enum" | "set" | "bit") => format!("CAST(`{name}` AS UNSIGNED)"),
            _ => format!("`{name}`"),
        });
        let sql = format!("SELECT {} FROM {database}.`{table}`", names.collect::<Vec<_>>().join(", "));
        let (there, here) = (sum(source, &sql)?, sum(replica, &sql)?);
        if there == here {
            return Ok(there.0);
        }
        Err(self.difference(&sql)?)
    }

    /// What is different first, in an order that no collation decides.
    fn difference(&mut self, sql: &str) -> Result<Error> {
        let rows = |conn: &mut Conn| -> Result<Vec<Vec<Value>>> {
            let rows: Vec<Row> = conn.exec(sql, ())?;
            let mut rows: Vec<Vec<Value>> = rows.into_iter().map(|row| same(row.unwrap())).collect();
            rows.sort_by_cached_key(|row| row.iter().map(|value| value.as_sql(true)).collect::<Vec<_>>());
            Ok(rows)
        };
        let (there, here) = (rows(self.source)?, rows(self.replica)?);
        let at = there.iter().zip(&here).position(|(a, b)| a != b).unwrap_or(there.len().min(here.len()));
        Ok(Error::Check(format!(
            "table {} has {} rows at the source and {} here; row {at} in order is {:?} there and {:?} here",
            self.table,
            there.len(),
            here.len(),
            there.get(at),
            here.get(at)
        )))
    }
}

/// The number of rows, and the sum of their hashes.
fn sum(conn: &mut Conn, sql: &str) -> Result<(u64, u128)> {
    let (mut count, mut sum) = (0, 0_u128);
    for row in conn.exec_iter(sql, ())? {
        let row = same(row?.unwrap());
        count += 1;
        // Two hashes: equal sums of 64 bits would be found by chance in a few billion comparisons.
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            row.iter().for_each(|value| hash_value(value, &mut hasher));
            u128::from(hasher.finish())
        };
        sum = sum.wrapping_add(hash(0) << 64 | hash(1));
    }
    Ok((count, sum))
}

fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::NULL => {}
        Value::Bytes(bytes) => bytes.hash(hasher),
        Value::Int(n) => n.hash(hasher),
        Value::UInt(n) => n.hash(hasher),
        // Zeros of both signs are the same.
        Value::Float(n) => (n + 0.0).to_bits().hash(hasher),
        Value::Double(n) => (n + 0.0).to_bits().hash(hasher),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            (year, month, day, hour, minute, second, micros).hash(hasher);
        }
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            (negative, days, hours, minutes, seconds, micros).hash(hasher);
        }
    }
}

/// Numbers are numbers, whether they came as signed or unsigned.
fn same(row: Vec<Value>) -> Vec<Value> {
    let plain = |value| match value {
        Value::UInt(v) => i64::try_from(v).map_or(Value::UInt(v), Value::Int),
        other => other,
    };
    row.into_iter().map(plain).collect()
}
