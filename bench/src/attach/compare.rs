//! Whether the replica has the source's tables, definitions and rows: by value, as the binary protocol brings them.

use std::collections::BTreeSet;

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::{Pair, connect};
use crate::error::{Error, Result};

/// Compares all tables of database `r`; says how many there were.
pub fn all(pair: &Pair) -> Result<String> {
    let (mut source, mut replica) = (connect(&pair.source)?, connect(&pair.replica)?);
    let (there, here) = (tables(&mut source)?, tables(&mut replica)?);
    let refused = refused(&mut replica)?;
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
        rows += one(&mut source, &mut replica, table)?;
    }
    let refused: Vec<String> = refused.into_iter().map(|(name, why)| format!("{name} ({why})")).collect();
    let refused =
        if refused.is_empty() { String::new() } else { format!(", refused: {}", refused.join(", ")) };
    Ok(format!("{} tables and {rows} rows are the same{refused}", here.len()))
}

fn tables(conn: &mut Conn) -> Result<BTreeSet<String>> {
    let names: Vec<String> = conn.query(
        "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'r' AND TABLE_TYPE = 'BASE TABLE'",
    )?;
    Ok(names.into_iter().collect())
}

/// Tables that are not followed, and why.
fn refused(replica: &mut Conn) -> Result<Vec<(String, String)>> {
    let row: Option<Row> = replica.query_first("SHOW REPLICA STATUS")?;
    let text: String = row.and_then(|row| row.get("Last_SQL_Error")).unwrap_or_default();
    let each = text.split("; ").filter_map(|part| part.split_once(": not followed: "));
    Ok(each.map(|(name, why)| (name.trim_start_matches("r.").to_owned(), why.to_owned())).collect())
}

fn columns(conn: &mut Conn, table: &str) -> Result<Vec<(String, String, String)>> {
    Ok(conn.exec(
        "SELECT CAST(COLUMN_NAME AS CHAR), CAST(COLUMN_TYPE AS CHAR), CAST(IS_NULLABLE AS CHAR)
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'r' AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION",
        (table,),
    )?)
}

fn one(source: &mut Conn, replica: &mut Conn, table: &str) -> Result<usize> {
    let (there, here) = (columns(source, table)?, columns(replica, table)?);
    if there != here {
        return Err(Error::Check(format!(
            "table {table} has columns {there:?} at the source and {here:?} here"
        )));
    }
    // Numbers of members and bits as numbers, and all rows in an order that no collation decides.
    let names = there.iter().map(|(name, ty, _)| match ty.split(['(', ' ']).next() {
        Some("enum" | "set" | "bit") => format!("CAST(`{name}` AS UNSIGNED)"),
        _ => format!("`{name}`"),
    });
    let sql = format!("SELECT {} FROM r.`{table}`", names.collect::<Vec<_>>().join(", "));
    let rows = |conn: &mut Conn| -> Result<Vec<Vec<Value>>> {
        let rows: Vec<Row> = conn.exec(&sql, ())?;
        let mut rows: Vec<Vec<Value>> = rows.into_iter().map(|row| same(row.unwrap())).collect();
        rows.sort_by_cached_key(|row| row.iter().map(|value| value.as_sql(true)).collect::<Vec<_>>());
        Ok(rows)
    };
    let (there, here) = (rows(source)?, rows(replica)?);
    if there == here {
        return Ok(there.len());
    }
    let at = there.iter().zip(&here).position(|(a, b)| a != b).unwrap_or(there.len().min(here.len()));
    Err(Error::Check(format!(
        "table {table} has {} rows at the source and {} here; row {at} in order is {:?} there and {:?} here",
        there.len(),
        here.len(),
        there.get(at),
        here.get(at)
    )))
}

/// Numbers are numbers, whether they came as signed or unsigned.
fn same(row: Vec<Value>) -> Vec<Value> {
    let plain = |value| match value {
        Value::UInt(v) => i64::try_from(v).map_or(Value::UInt(v), Value::Int),
        other => other,
    };
    row.into_iter().map(plain).collect()
}
