//! Random changes of rows: of one and of many, in transactions of all sizes, in sessions of all kinds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::families;
use super::pair::Source;
use super::schema::{Column, Kind, Table, document, literal, run};
use crate::error::{Error, Result};
use crate::random::Random;

/// Changes rows until it is stopped; returns how many statements the source took.
pub fn write(
    kind: Source,
    options: OptsBuilder,
    seed: u64,
    tables: &[Table],
    stop: &AtomicBool,
) -> Result<u64> {
    let mut writer = Writer::new(kind, seed);
    let mut statements = 0;
    let mut conn = None;
    while !stop.load(Ordering::SeqCst) {
        let alive = match &mut conn {
            Some(conn) => conn,
            None => match Conn::new(options.clone()) {
                Ok(fresh) => conn.insert(fresh),
                // The source was killed: it comes back.
                Err(_) => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            },
        };
        match writer.step(alive, tables) {
            Ok(done) => statements += done,
            Err(error) if error.is_disconnect() => conn = None,
            Err(error) => return Err(error),
        }
    }
    Ok(statements)
}

pub struct Writer {
    kind: Source,
    random: Random,
    xa: u64,
}

/// Settings of a session that change what its log looks like.
const SESSIONS: [&str; 10] = [
    "binlog_transaction_compression = ON",
    "binlog_transaction_compression = OFF",
    "binlog_row_value_options = 'PARTIAL_JSON'",
    "binlog_row_value_options = ''",
    "time_zone = '+05:30'",
    "time_zone = '+00:00'",
    "sql_mode = ''",
    "sql_mode = DEFAULT",
    "foreign_key_checks = OFF",
    "foreign_key_checks = ON",
];

/// Those of a MariaDB.
const MARIADB_SESSIONS: [&str; 12] = [
    "GLOBAL log_bin_compress = ON",
    "GLOBAL log_bin_compress = OFF",
    "SESSION gtid_domain_id = 0",
    "SESSION gtid_domain_id = 1",
    "SESSION gtid_domain_id = 4294967295",
    "SESSION time_zone = '+05:30'",
    "SESSION time_zone = '+00:00'",
    "SESSION sql_mode = ''",
    "SESSION sql_mode = DEFAULT",
    "SESSION server_id = 7",
    "SESSION foreign_key_checks = OFF",
    "SESSION foreign_key_checks = ON",
];

impl Writer {
    pub fn new(kind: Source, seed: u64) -> Self {
        Self { kind, random: Random::new(seed), xa: seed }
    }

    /// A transaction, or a statement by itself.
    pub fn step(&mut self, conn: &mut Conn, tables: &[Table]) -> Result<u64> {
        let random = &mut self.random;
        if random.percent(6) {
            // In an empty mode defaults are zero dates, too; other dates are always whole.
            let setting = match self.kind {
                Source::Mysql | Source::MysqlPlain | Source::MysqlNativeKeys => {
                    let setting = SESSIONS[random.uniform(0, SESSIONS.len() as i64 - 1) as usize];
                    format!("SET SESSION {setting}")
                }
                Source::Mariadb | Source::Mariadb11 => {
                    let last = MARIADB_SESSIONS.len() as i64 - 1;
                    format!("SET {}", MARIADB_SESSIONS[random.uniform(0, last) as usize])
                }
            };
            run(conn, &setting)?;
        }
        if random.percent(2) {
            let image = ["FULL", "MINIMAL", "NOBLOB"][random.uniform(0, 2) as usize];
            run(conn, &format!("SET SESSION binlog_row_image = {image}"))?;
        }
        if random.percent(2) {
            let tag = if random.percent(50) { "AUTOMATIC:bench" } else { "AUTOMATIC" };
            run(conn, &format!("SET SESSION gtid_next = '{tag}'"))?;
        }
        let is_xa = random.percent(1);
        let is_transaction = is_xa || random.percent(40);
        let count = if is_transaction { random.uniform(1, 12) } else { 1 };
        self.xa = self.xa.wrapping_add(1);
        let id = format!("'x{}'", self.xa);
        match (is_xa, is_transaction) {
            (true, _) => drop(run(conn, &format!("XA START {id}"))?),
            (false, true) => conn.query_drop("START TRANSACTION")?,
            _ => {}
        }
        let mut done = 0;
        for _ in 0..count {
            let sql = match self.random.percent(25) {
                true => families::statement(&mut self.random),
                false => {
                    let table = &tables[self.random.uniform(0, tables.len() as i64 - 1) as usize];
                    statement(table, &mut self.random)
                }
            };
            done += u64::from(run(conn, &sql)?);
        }
        match (is_xa, is_transaction) {
            (true, _) => {
                run(conn, &format!("XA END {id}"))?;
                run(conn, &format!("XA PREPARE {id}"))?;
                let end = if self.random.percent(50) { "COMMIT" } else { "ROLLBACK" };
                if !run(conn, &format!("XA {end} {id}"))? {
                    // It was rolled back already, or cannot be prepared: its locks must not stay.
                    run(conn, &format!("XA ROLLBACK {id}"))?;
                }
            }
            (false, true) => {
                let end = if self.random.percent(90) { "COMMIT" } else { "ROLLBACK" };
                match conn.query_drop(end) {
                    Err(mysql::Error::MySqlError(_)) | Ok(()) => {}
                    Err(error) => return Err(Error::from(error)),
                }
            }
            _ => {}
        }
        Ok(done)
    }
}

/// Ends what was prepared when the source was killed, as its operator has to: the tables would be set aside for ever.
pub fn end_prepared(conn: &mut Conn, random: &mut Random) -> Result<()> {
    let prepared: Vec<(i64, u64, u64, Vec<u8>)> = conn.query("XA RECOVER")?;
    for (_, length, _, id) in prepared {
        let id = String::from_utf8_lossy(&id[..length as usize]).into_owned();
        let end = if random.percent(50) { "COMMIT" } else { "ROLLBACK" };
        // One of a session that has come meanwhile is that one's.
        run(conn, &format!("XA {end} '{id}'"))?;
    }
    Ok(())
}

fn statement(table: &Table, random: &mut Random) -> String {
    let name = &table.name;
    match random.uniform(0, 11) {
        0..=4 => insert(table, "INSERT IGNORE", random),
        5 => insert(table, "REPLACE", random),
        6 => {
            let set = assignment(table, random);
            format!("{} ON DUPLICATE KEY UPDATE {set}", insert(table, "INSERT", random))
        }
        7 => format!(
            "UPDATE IGNORE r.{name} SET {} LIMIT {}",
            assignment(table, random),
            random.uniform(1, 30)
        ),
        8 => {
            let key = &table.key[0];
            let value = literal(key.kind, random);
            format!(
                "UPDATE IGNORE r.{name} SET {} WHERE {} >= {value} LIMIT 20",
                assignment(table, random),
                key.name
            )
        }
        9 => {
            let key = &table.key[0];
            let value = literal(key.kind, random);
            format!("UPDATE IGNORE r.{name} SET {0} = {value} WHERE {0} < {value} LIMIT 3", key.name)
        }
        10 => {
            let key = &table.key[0];
            format!("DELETE FROM r.{name} WHERE {} < {} LIMIT 10", key.name, literal(key.kind, random))
        }
        _ => match table.columns.iter().find(|column| column.kind == Kind::Json) {
            Some(column) => format!(
                "UPDATE r.{name} SET {0} = JSON_SET({0}, '$.k{1}', CAST('{2}' AS JSON)) WHERE {0} IS NOT NULL LIMIT 5",
                column.name,
                random.uniform(0, 5),
                document(1, random)
            ),
            None => format!("DELETE FROM r.{name} LIMIT 2"),
        },
    }
}

fn value(column: &Column, random: &mut Random) -> String {
    if column.nullable && random.percent(15) { "NULL".into() } else { literal(column.kind, random) }
}

fn insert(table: &Table, verb: &str, random: &mut Random) -> String {
    let columns: Vec<&Column> = table.key.iter().chain(&table.columns).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let rows = if random.percent(10) { random.uniform(20, 200) } else { random.uniform(1, 6) };
    let rows = (0..rows).map(|_| {
        let values: Vec<String> = columns.iter().map(|column| value(column, random)).collect();
        format!("({})", values.join(", "))
    });
    let rows: Vec<String> = rows.collect();
    format!("{verb} INTO r.{} ({}) VALUES {}", table.name, names.join(", "), rows.join(", "))
}

fn assignment(table: &Table, random: &mut Random) -> String {
    match table.columns.get(random.uniform(0, table.columns.len().max(1) as i64 - 1) as usize) {
        Some(column) => format!("{} = {}", column.name, value(column, random)),
        None => format!("{0} = {0}", table.key[0].name),
    }
}
