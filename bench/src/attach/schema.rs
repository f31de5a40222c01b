//! Random tables, and random changes of their definitions.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::error::{Error, Result};
use crate::random::Random;

/// What a column can hold, as far as random values go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int {
        bits: u32,
        unsigned: bool,
    },
    Decimal {
        digits: u32,
        scale: u32,
    },
    Float,
    Double,
    /// At most so many characters, of ASCII alone or of more.
    Text {
        chars: i64,
        latin: bool,
    },
    Bytes {
        len: i64,
        fixed: bool,
    },
    Date,
    DateTime {
        fsp: u32,
    },
    Timestamp {
        fsp: u32,
    },
    Time {
        fsp: u32,
    },
    Year,
    Enum,
    Set,
    Bit {
        len: u32,
    },
    Json,
}

/// Types with what their values are.
const TYPES: [(&str, Kind); 34] = [
    ("TINYINT", Kind::Int { bits: 8, unsigned: false }),
    ("TINYINT UNSIGNED", Kind::Int { bits: 8, unsigned: true }),
    ("BOOL", Kind::Int { bits: 1, unsigned: true }),
    ("SMALLINT", Kind::Int { bits: 16, unsigned: false }),
    ("MEDIUMINT", Kind::Int { bits: 24, unsigned: false }),
    ("MEDIUMINT UNSIGNED", Kind::Int { bits: 24, unsigned: true }),
    ("INT", Kind::Int { bits: 32, unsigned: false }),
    ("INT UNSIGNED", Kind::Int { bits: 32, unsigned: true }),
    ("BIGINT", Kind::Int { bits: 64, unsigned: false }),
    ("BIGINT UNSIGNED", Kind::Int { bits: 64, unsigned: true }),
    ("DECIMAL(10,2)", Kind::Decimal { digits: 10, scale: 2 }),
    ("DECIMAL(38,10)", Kind::Decimal { digits: 38, scale: 10 }),
    ("DECIMAL(65,30)", Kind::Decimal { digits: 65, scale: 30 }),
    ("FLOAT", Kind::Float),
    ("DOUBLE", Kind::Double),
    ("CHAR(12)", Kind::Text { chars: 12, latin: false }),
    ("VARCHAR(60)", Kind::Text { chars: 60, latin: false }),
    ("VARCHAR(300)", Kind::Text { chars: 300, latin: false }),
    ("VARCHAR(40) CHARACTER SET latin1", Kind::Text { chars: 40, latin: true }),
    ("TEXT", Kind::Text { chars: 900, latin: false }),
    ("MEDIUMTEXT", Kind::Text { chars: 3_000, latin: false }),
    ("BINARY(8)", Kind::Bytes { len: 8, fixed: true }),
    ("VARBINARY(200)", Kind::Bytes { len: 200, fixed: false }),
    ("BLOB", Kind::Bytes { len: 700, fixed: false }),
    ("DATE", Kind::Date),
    ("DATETIME", Kind::DateTime { fsp: 0 }),
    ("DATETIME(6)", Kind::DateTime { fsp: 6 }),
    ("TIMESTAMP(3)", Kind::Timestamp { fsp: 3 }),
    ("TIME(2)", Kind::Time { fsp: 2 }),
    ("YEAR", Kind::Year),
    ("ENUM('red','green','blue','grün')", Kind::Enum),
    ("SET('a','b','c','d')", Kind::Set),
    ("BIT(37)", Kind::Bit { len: 37 }),
    ("JSON", Kind::Json),
];

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
}

/// A table as the generator knows it. A definition may have failed, or another writer been faster: statements may err.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Of the key.
    pub key: Vec<Column>,
    pub columns: Vec<Column>,
}

/// A value of a type as SQL text.
pub fn literal(kind: Kind, random: &mut Random) -> String {
    match kind {
        Kind::Int { bits, unsigned } => {
            let bits = if random.percent(60) { bits.min(8) } else { bits };
            let all = random.bits() >> (64 - bits);
            match unsigned {
                true => all.to_string(),
                false => (i128::from(all) - (1i128 << (bits - 1))).to_string(),
            }
        }
        Kind::Decimal { digits, scale } => {
            let whole = random.uniform(0, (digits - scale).into());
            let fraction = random.uniform(0, scale.into());
            let sign = if random.percent(40) { "-" } else { "" };
            format!("{sign}0{}.{}0", random.digits(whole), random.digits(fraction.min(i64::from(scale) - 1)))
        }
        Kind::Float => format!("{:e}", ((random.unit() - 0.5) * 1e6) as f32),
        Kind::Double => format!("{:e}", (random.unit() - 0.5) * 10f64.powi(random.uniform(-200, 200) as i32)),
        Kind::Text { chars, latin } => text(chars, latin, random),
        Kind::Bytes { len, .. } => {
            let len = random.uniform(0, len);
            let bytes =
                (0..len).map(|_| format!("{:02x}", if random.percent(20) { 0 } else { random.bits() as u8 }));
            format!("x'{}'", bytes.collect::<String>())
        }
        Kind::Date => format!(
            "'{:04}-{:02}-{:02}'",
            random.uniform(1, 9999),
            random.uniform(1, 12),
            random.uniform(1, 28)
        ),
        Kind::DateTime { fsp } => format!(
            "'{:04}-{:02}-{:02} {:02}:{:02}:{:02}{}'",
            random.uniform(1000, 9999),
            random.uniform(1, 12),
            random.uniform(1, 28),
            random.uniform(0, 23),
            random.uniform(0, 59),
            random.uniform(0, 59),
            fraction(fsp, random)
        ),
        Kind::Timestamp { fsp } => format!(
            "'{:04}-{:02}-{:02} {:02}:{:02}:{:02}{}'",
            random.uniform(1971, 2037),
            random.uniform(1, 12),
            random.uniform(1, 28),
            random.uniform(0, 23),
            random.uniform(0, 59),
            random.uniform(0, 59),
            fraction(fsp, random)
        ),
        Kind::Time { fsp } => format!(
            "'{}{}:{:02}:{:02}{}'",
            if random.percent(40) { "-" } else { "" },
            random.uniform(0, 837),
            random.uniform(0, 59),
            random.uniform(0, 59),
            fraction(fsp, random)
        ),
        Kind::Year => random.uniform(1901, 2155).to_string(),
        Kind::Enum => ["'red'", "'green'", "'blue'", "'grün'"][random.uniform(0, 3) as usize].into(),
        Kind::Set => ["''", "'a'", "'b,d'", "'a,b,c,d'"][random.uniform(0, 3) as usize].into(),
        Kind::Bit { len } => format!("b'{:b}'", random.bits() >> (64 - len)),
        Kind::Json => format!("'{}'", document(3, random)),
    }
}

fn fraction(fsp: u32, random: &mut Random) -> String {
    if fsp == 0 { String::new() } else { format!(".{}", random.digits(fsp.into())) }
}

fn text(chars: i64, latin: bool, random: &mut Random) -> String {
    let most = if random.percent(80) { chars.min(12) } else { chars };
    let more = if latin { ['é', 'ß', 'Ü'] } else { ['é', '漢', '😀'] };
    let len = random.uniform(0, most);
    let one = |random: &mut Random| match random.uniform(0, 19) {
        0 => more[random.uniform(0, 2) as usize],
        1 => ' ',
        n => char::from(b'a' + n as u8),
    };
    let text: String = (0..len).map(|_| one(random)).collect();
    format!("'{text}'")
}

/// A document without numbers whose kind its text does not tell.
pub fn document(depth: u32, random: &mut Random) -> String {
    match random.uniform(0, if depth == 0 { 4 } else { 6 }) {
        0 => "null".into(),
        1 => "true".into(),
        2 => random.uniform(-1_000_000, 1_000_000).to_string(),
        3 => format!("{}.5", random.uniform(-1000, 1000)),
        4 => format!("\"{}\"", random.alphanumeric(0, 20)),
        5 => {
            let elements = (0..random.uniform(0, 4)).map(|_| document(depth - 1, random));
            format!("[{}]", elements.collect::<Vec<_>>().join(", "))
        }
        _ => {
            let members =
                (0..random.uniform(0, 4)).map(|at| format!("\"k{at}\": {}", document(depth - 1, random)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn column(name: String, random: &mut Random) -> (Column, String) {
    let (ty, kind) = TYPES[random.uniform(0, TYPES.len() as i64 - 1) as usize];
    let nullable = random.percent(70);
    let sql = format!("{name} {ty}{}", if nullable { "" } else { " NOT NULL" });
    (Column { name, kind, nullable }, sql)
}

/// Columns and the key's clause.
fn key(random: &mut Random) -> (Vec<Column>, Vec<String>) {
    let part = |name: &str, kind| Column { name: name.into(), kind, nullable: false };
    let int = Kind::Int { bits: 10, unsigned: true };
    let (columns, clauses): (Vec<Column>, Vec<&str>) = match random.uniform(0, 8) {
        0 | 1 => (vec![part("id", int)], vec!["id INT NOT NULL PRIMARY KEY"]),
        2 => (vec![part("id", int)], vec!["id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"]),
        3 => (
            vec![part("id", Kind::Text { chars: 3, latin: false })],
            vec!["id VARCHAR(20) NOT NULL PRIMARY KEY"],
        ),
        4 => (
            vec![part("id", int), part("id2", Kind::Text { chars: 2, latin: true })],
            vec![
                "id INT NOT NULL",
                "id2 VARCHAR(10) CHARACTER SET latin1 NOT NULL",
                "PRIMARY KEY (id2, id DESC)",
            ],
        ),
        5 => {
            (vec![part("id", Kind::Bytes { len: 2, fixed: true })], vec!["id BINARY(4) NOT NULL PRIMARY KEY"])
        }
        6 => (vec![part("id", int)], vec!["id DECIMAL(12,2) NOT NULL PRIMARY KEY"]),
        7 => (vec![part("id", int)], vec!["id SMALLINT NOT NULL", "UNIQUE KEY (id)"]),
        _ => (
            vec![part("id", Kind::DateTime { fsp: 0 }), part("id2", int)],
            vec!["id DATETIME(3) NOT NULL", "id2 INT NOT NULL", "PRIMARY KEY (id, id2)"],
        ),
    };
    (columns, clauses.into_iter().map(String::from).collect())
}

/// Makes a table of a random shape.
pub fn create(conn: &mut Conn, random: &mut Random, tables: &mut Vec<Table>) -> Result<()> {
    let name = format!("t{}", random.uniform(0, 999));
    let (key, mut clauses) = key(random);
    let mut columns = Vec::new();
    for at in 0..random.uniform(1, 8) {
        let (column, sql) = column(format!("c{at}"), random);
        clauses.push(sql);
        columns.push(column);
    }
    if let Some(indexed) = columns.iter().find(|column| matches!(column.kind, Kind::Int { bits: 9.., .. })) {
        let kind = if random.percent(30) { "UNIQUE KEY" } else { "KEY" };
        clauses.push(format!("{kind} ({})", indexed.name));
    }
    if let Some(base) = columns.iter().find(|column| matches!(column.kind, Kind::Int { bits: ..=32, .. }))
        && random.percent(40)
    {
        let how = if random.percent(50) { "STORED" } else { "VIRTUAL" };
        clauses.push(format!("g BIGINT AS ({} * 2 + 1) {how}", base.name));
        if random.percent(50) {
            clauses.push("KEY (g)".into());
        }
    }
    let options = if random.percent(10) { " CHARACTER SET utf8mb3" } else { "" };
    run(conn, &format!("CREATE TABLE r.{name} ({}){options}", clauses.join(", ")))?;
    tables.retain(|table| table.name != name);
    tables.push(Table { name, key, columns });
    Ok(())
}

/// Changes the definition of some table.
pub fn define(conn: &mut Conn, random: &mut Random, tables: &mut Vec<Table>) -> Result<()> {
    if tables.len() < 3 {
        return create(conn, random, tables);
    }
    let at = random.uniform(0, tables.len() as i64 - 1) as usize;
    let table = tables[at].name.clone();
    let other = format!("t{}", random.uniform(0, 999));
    let fresh = format!("n{}", random.uniform(0, 99));
    let some = |table: &Table, random: &mut Random| {
        table.columns.get(random.uniform(0, table.columns.len().max(1) as i64 - 1) as usize).cloned()
    };
    match random.uniform(0, 15) {
        0 | 1 => create(conn, random, tables)?,
        2 | 3 => {
            let (mut column, sql) = column(fresh, random);
            let place = if random.percent(30) { " FIRST" } else { "" };
            if run(conn, &format!("ALTER TABLE r.{table} ADD COLUMN {sql}{place}"))? {
                column.nullable = true;
                tables[at].columns.push(column);
            }
        }
        4 => {
            if let Some(column) = some(&tables[at], random) {
                run(conn, &format!("ALTER TABLE r.{table} DROP COLUMN {}", column.name))?;
            }
        }
        5 => {
            if let Some(column) = some(&tables[at], random) {
                run(conn, &format!("ALTER TABLE r.{table} MODIFY {} VARCHAR(400)", column.name))?;
            }
        }
        6 => {
            if let Some(column) = some(&tables[at], random) {
                run(conn, &format!("CREATE INDEX i_{fresh} ON r.{table} ({})", column.name))?;
            }
        }
        7 => {
            if run(conn, &format!("RENAME TABLE r.{table} TO r.{other}"))? {
                tables[at].name = other;
            }
        }
        8 => drop(run(conn, &format!("TRUNCATE TABLE r.{table}"))?),
        9 => {
            run(conn, &format!("DROP TABLE r.{table}"))?;
            tables.swap_remove(at);
        }
        10 => {
            if run(conn, &format!("CREATE TABLE r.{other} LIKE r.{table}"))? {
                let made = Table { name: other, ..tables[at].clone() };
                tables.push(made);
            }
        }
        11 => {
            let key = tables[at].key[0].name.clone();
            if tables[at].key.len() == 1
                && run(
                    conn,
                    &format!("CREATE TABLE r.{other} (PRIMARY KEY ({key})) SELECT * FROM r.{table}"),
                )?
            {
                let made = Table { name: other, ..tables[at].clone() };
                tables.push(made);
            }
        }
        12 => {
            // As online tools swap a table for its copy.
            let old = format!("{table}_old");
            if run(conn, &format!("CREATE TABLE r.{other} LIKE r.{table}"))? {
                run(conn, &format!("INSERT IGNORE INTO r.{other} SELECT * FROM r.{table}"))?;
                run(conn, &format!("RENAME TABLE r.{table} TO r.{old}, r.{other} TO r.{table}"))?;
                run(conn, &format!("DROP TABLE IF EXISTS r.{old}"))?;
            }
        }
        13 => {
            if let Some(column) = some(&tables[at], random) {
                run(conn, &format!("ALTER TABLE r.{table} RENAME COLUMN {} TO x_{fresh}", column.name))?;
            }
        }
        14 => {
            run(
                conn,
                &format!("CREATE OR REPLACE VIEW r.v{} AS SELECT * FROM r.{table}", random.uniform(0, 2)),
            )?;
        }
        _ => drop(run(conn, &format!("ALTER TABLE r.{table} COMMENT = 'c{fresh}', ALGORITHM = INPLACE"))?),
    }
    Ok(())
}

/// Changes definitions in ways that only a MariaDB has.
pub fn define_as_mariadb(conn: &mut Conn, random: &mut Random, tables: &mut Vec<Table>) -> Result<()> {
    if tables.is_empty() {
        return create(conn, random, tables);
    }
    let at = random.uniform(0, tables.len() as i64 - 1) as usize;
    let table = tables[at].name.clone();
    let fresh = format!("m{}", random.uniform(0, 99));
    let statement = match random.uniform(0, 13) {
        0 => format!("ALTER TABLE r.{table} ADD COLUMN IF NOT EXISTS {fresh} INT NOT NULL DEFAULT 5"),
        1 => format!("CREATE INDEX IF NOT EXISTS i_{fresh} ON r.{table} ({})", tables[at].key[0].name),
        2 => format!("DROP INDEX IF EXISTS i_{fresh} ON r.{table}"),
        3 => format!(
            "SET STATEMENT max_statement_time = 5 FOR ALTER TABLE r.{table} ADD COLUMN {fresh} TEXT DEFAULT 'x'"
        ),
        4 => format!(
            "ALTER /*M!100301 ONLINE */ TABLE r.{table} /*!80000 COMMENT = 'not for it' */ /*!50601 COMMENT = 'x' */"
        ),
        5 => format!("ALTER TABLE r.{table} ADD COLUMN {fresh} VARCHAR(40) DEFAULT uuid()"),
        6 => format!(
            "ALTER TABLE r.{table} ADD COLUMN {fresh} INT CHECK ({fresh} > -1000), ADD CONSTRAINT c_{fresh} CHECK (1 > 0)"
        ),
        7 => "FLUSH BINARY LOGS".into(),
        8 => format!("CREATE OR REPLACE SEQUENCE r.s{}", random.uniform(0, 3)),
        9 => format!("DO NEXTVAL(r.s{})", random.uniform(0, 3)),
        10 => format!("DROP SEQUENCE IF EXISTS r.s{}", random.uniform(0, 3)),
        11 => {
            run(conn, "SET SESSION binlog_alter_two_phase = 1")?;
            format!("ALTER TABLE r.{table} ADD COLUMN {fresh} DATETIME(3) DEFAULT current_timestamp(3)")
        }
        12 => format!(
            "ALTER TABLE r.{table} ADD COLUMN {fresh} INT AS (1 + 1) VIRTUAL, ADD COLUMN s_{fresh} INT AS (2) STORED"
        ),
        _ => {
            let columns = [("c0", Kind::Json), ("c1", Kind::Text { chars: 9, latin: false })];
            let columns = columns.map(|(name, kind)| Column { name: name.into(), kind, nullable: true });
            let key =
                Column { name: "id".into(), kind: Kind::Int { bits: 10, unsigned: true }, nullable: false };
            let made = format!(
                "CREATE OR REPLACE TABLE r.{table} (id INT PRIMARY KEY, c0 JSON DEFAULT '[]', c1 VARCHAR(40) DEFAULT uuid()) ENGINE={}",
                if random.percent(70) { "InnoDB" } else { "Aria" }
            );
            if run(conn, &made)? {
                tables[at] = Table { name: table, key: vec![key], columns: columns.into() };
            }
            return Ok(());
        }
    };
    run(conn, &statement)?;
    Ok(())
}

/// Runs a statement that may be refused; whether it was not.
pub fn run(conn: &mut Conn, sql: &str) -> Result<bool> {
    match conn.query_drop(sql) {
        Ok(()) => Ok(true),
        Err(mysql::Error::MySqlError(_)) => Ok(false),
        Err(error) => Err(Error::from(error)),
    }
}
