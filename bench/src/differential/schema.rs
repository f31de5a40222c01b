//! Random tables: columns of all types, keys, and rows with NULLs and extremes.

use super::tree::Tree;
use crate::random::Random;

/// What an expression is, as far as the generator cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Number,
    Text,
    Bytes,
    /// DATE, DATETIME or TIMESTAMP.
    Moment,
    Time,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    sql_type: &'static str,
    not_null: bool,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub keys: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Types with what a column of them may hold, all within its range.
const TYPES: &[(&str, Kind, &[&str])] = &[
    ("TINYINT", Kind::Number, &["0", "1", "-1", "2", "7", "127", "-128"]),
    ("TINYINT UNSIGNED", Kind::Number, &["0", "1", "2", "128", "255"]),
    ("SMALLINT", Kind::Number, &["0", "1", "-1", "3", "32767", "-32768"]),
    ("SMALLINT UNSIGNED", Kind::Number, &["0", "1", "3", "65535"]),
    ("MEDIUMINT", Kind::Number, &["0", "1", "-2", "8388607", "-8388608"]),
    ("MEDIUMINT UNSIGNED", Kind::Number, &["0", "2", "16777215"]),
    ("INT", Kind::Number, &["0", "1", "-1", "2", "3", "5", "10", "100", "-50", "2147483647", "-2147483648"]),
    ("INT", Kind::Number, &["1", "2", "3", "4", "5"]),
    ("INT UNSIGNED", Kind::Number, &["0", "1", "2", "10", "4294967295"]),
    (
        "BIGINT",
        Kind::Number,
        &["0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", "9007199254740993"],
    ),
    ("BIGINT UNSIGNED", Kind::Number, &["0", "1", "2", "77", "9223372036854775808", "18446744073709551615"]),
    ("BOOL", Kind::Number, &["0", "1", "12", "-128"]),
    ("DECIMAL(12,3)", Kind::Number, &["0", "1.5", "-1.5", "2.125", "0.001", "-0.005", "123456789.999", "10"]),
    ("DECIMAL(5,0)", Kind::Number, &["0", "1", "-7", "99999", "-99999"]),
    ("DECIMAL(30,10)", Kind::Number, &["0", "0.0000000001", "-1.5", "12345678901234567890.0123456789"]),
    ("DECIMAL(4,4)", Kind::Number, &["0", "0.5", "-0.9999", "0.0001"]),
    (
        "DECIMAL(65,30)",
        Kind::Number,
        &["0", "1", "-0.000000000000000000000000000001", "99999999999999999999999999999999999.5"],
    ),
    ("DECIMAL(10,2) UNSIGNED", Kind::Number, &["0", "1.25", "99999999.99"]),
    (
        "DOUBLE",
        Kind::Number,
        &["0", "1.5", "-2.5", "0.1", "1e10", "-1e-5", "3", "1e300", "2.5", "-0e0", "9007199254740993"],
    ),
    ("FLOAT", Kind::Number, &["0", "1.5", "0.1", "-3.25", "1e20", "16777217"]),
    ("YEAR", Kind::Number, &["2024", "1901", "2155", "2000"]),
    ("VARCHAR(20)", Kind::Text, WORDS),
    ("VARCHAR(20)", Kind::Text, WORDS),
    ("CHAR(12)", Kind::Text, WORDS),
    ("TEXT", Kind::Text, WORDS),
    ("VARCHAR(20) COLLATE utf8mb4_bin", Kind::Text, WORDS),
    ("VARCHAR(20) COLLATE utf8mb4_0900_as_cs", Kind::Text, WORDS),
    ("VARCHAR(20) COLLATE utf8mb4_general_ci", Kind::Text, WORDS),
    ("CHAR(12) COLLATE utf8mb4_0900_bin", Kind::Text, WORDS),
    ("CHAR(12) COLLATE utf8mb4_unicode_ci", Kind::Text, WORDS),
    ("ENUM('b','A','c','10','ss')", Kind::Text, &["'b'", "'a'", "'C'", "'10'", "'ss'", "3"]),
    ("ENUM('b','B','A','a') COLLATE utf8mb4_bin", Kind::Text, &["'b'", "'B'", "'A'", "'a'"]),
    ("SET('a','ab','zz top')", Kind::Text, &["''", "'a'", "'zz top,a'", "'AB'", "7"]),
    ("BIT(1)", Kind::Number, &["0", "1", "b'1'"]),
    ("BIT(20)", Kind::Number, &["0", "1", "3", "100", "1048575", "b'1010'"]),
    ("BIT(64)", Kind::Number, &["0", "2", "18446744073709551615", "x'8000000000000000'"]),
    ("VARBINARY(12)", Kind::Bytes, BYTES),
    ("BINARY(4)", Kind::Bytes, &["x''", "x'00'", "x'61626364'", "x'61'", "x'ff00ff00'"]),
    ("BLOB", Kind::Bytes, BYTES),
    (
        "DATE",
        Kind::Moment,
        &[
            "'2024-02-29'",
            "'1999-12-31'",
            "'2020-01-01'",
            "'2024-12-30'",
            "'2000-01-03'",
            "'9999-12-31'",
            "'1000-01-01'",
        ],
    ),
    ("DATETIME", Kind::Moment, MOMENTS),
    ("DATETIME(3)", Kind::Moment, MOMENTS),
    ("DATETIME(6)", Kind::Moment, MOMENTS),
    ("TIMESTAMP", Kind::Moment, STAMPS),
    ("TIMESTAMP(6)", Kind::Moment, STAMPS),
    ("TIME", Kind::Time, TIMES),
    ("TIME(6)", Kind::Time, TIMES),
];

pub const WORDS: &[&str] = &[
    "''",
    "'a'",
    "'A'",
    "'b'",
    "'ab'",
    "'Abc'",
    "'abc '",
    "'x_y'",
    "'50%'",
    "'12'",
    "'12abc'",
    "'-3.5'",
    "'0'",
    "'2024-02-29'",
    "'éa'",
    "'Ea'",
    "'ß'",
    "'ss'",
    "'zz top'",
    "'10:11:12'",
    "'1e3'",
    "' 7'",
    "'true'",
    "'日本'",
    "'😀'",
];

pub const BYTES: &[&str] = &["''", "x'00'", "x'61'", "'ab'", "x'ff'", "x'c3a9'", "'12'", "x'6100'"];

const MOMENTS: &[&str] = &[
    "'2024-02-29 12:34:56.789012'",
    "'1999-12-31 23:59:59.999'",
    "'2020-01-01'",
    "'2024-12-30 00:00:00.5'",
    "'1000-01-01'",
    "'9999-12-31 23:59:59'",
    "'2023-01-31 10:00:00'",
    "'1970-01-01 00:00:01'",
];

const STAMPS: &[&str] = &[
    "'2024-02-29 12:34:56.789'",
    "'1999-12-31 23:59:59'",
    "'2020-01-01'",
    "'1970-01-01 00:00:01'",
    "'2038-01-19 03:14:07'",
];

pub const TIMES: &[&str] = &[
    "'12:34:56'",
    "'-01:00:00'",
    "'100:00:01'",
    "'00:00:00'",
    "'838:59:59'",
    "'-838:59:59'",
    "'00:00:00.5'",
    "'23:59:59.999999'",
];

/// One of these.
pub fn pick<'a, T: ?Sized>(random: &mut Random, of: &[&'a T]) -> &'a T {
    of[random.uniform(0, of.len() as i64 - 1) as usize]
}

impl Table {
    /// A table of this name with `id` as its key and up to `most` rows.
    pub fn random(random: &mut Random, name: &str, most: i64) -> Table {
        let mut columns =
            vec![Column { name: "id".into(), kind: Kind::Number, sql_type: "INT", not_null: true }];
        let mut values: Vec<&[&str]> = vec![&[]];
        for at in 1..=random.uniform(5, 10) {
            let (sql_type, kind, of_type) = TYPES[random.uniform(0, TYPES.len() as i64 - 1) as usize];
            columns.push(Column { name: format!("c{at}"), kind, sql_type, not_null: random.percent(20) });
            values.push(of_type);
        }
        let cell = |random: &mut Random, at: usize, id: i64| match at {
            0 => id.to_string(),
            _ if !columns[at].not_null && random.percent(15) => "NULL".into(),
            _ => pick(random, values[at]).to_owned(),
        };
        let count = if random.percent(5) { 0 } else { random.uniform(1, most) };
        let rows =
            (1..=count).map(|id| (0..columns.len()).map(|at| cell(random, at, id)).collect()).collect();
        let keys = keys(random, &columns);
        Table { name: name.into(), columns, keys, rows }
    }

    /// Lets `id` be counted.
    pub fn auto_increment(&mut self) {
        self.columns[0].sql_type = "INT AUTO_INCREMENT";
        self.keys[0] = "PRIMARY KEY (id)".into();
    }

    /// The statements that make it and fill it.
    pub fn script(&self) -> Vec<String> {
        let column = |column: &Column| {
            let null = if column.not_null { " NOT NULL" } else { " NULL" };
            format!("{} {}{null}", column.name, column.sql_type)
        };
        let mut parts: Vec<String> = self.columns.iter().map(column).collect();
        parts.extend(self.keys.iter().cloned());
        let mut script = vec![format!("CREATE TABLE {} ({})", self.name, parts.join(", "))];
        if !self.rows.is_empty() {
            let rows: Vec<String> = self.rows.iter().map(|row| format!("({})", row.join(", "))).collect();
            script.push(format!("INSERT INTO {} VALUES {}", self.name, rows.join(", ")));
        }
        script
    }

    /// The same table without some rows; `None` if it has none there.
    pub fn without_rows(&self, from: usize, count: usize) -> Option<Table> {
        let mut fewer = self.clone();
        fewer.rows.drain(from.min(self.rows.len())..(from + count).min(self.rows.len()));
        (fewer.rows.len() < self.rows.len()).then_some(fewer)
    }

    /// All tables that lack one of its keys.
    pub fn without_a_key(&self) -> Vec<Table> {
        let without = |at| {
            let mut fewer = self.clone();
            fewer.keys.remove(at);
            fewer
        };
        let counted = usize::from(self.columns[0].sql_type.contains("AUTO"));
        (counted..self.keys.len()).map(without).collect()
    }

    /// Without a column; nothing that names it will run.
    pub fn without_column(&self, at: usize) -> Table {
        let mut fewer = self.clone();
        fewer.columns.remove(at);
        fewer.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        fewer
    }

    /// A column as an expression.
    pub fn as_source(&self, alias: &str) -> Source {
        let columns = self.columns.iter().map(|c| (c.name.clone(), c.kind)).collect();
        Source { alias: alias.into(), columns }
    }
}

/// Keys over the columns, of all shapes; the primary key is always on `id`, alone or at the end.
fn keys(random: &mut Random, columns: &[Column]) -> Vec<String> {
    let any = |random: &mut Random| random.uniform(1, columns.len() as i64 - 1) as usize;
    let part = |random: &mut Random, at: usize| {
        let Column { name, sql_type, .. } = &columns[at];
        let prefix = if sql_type.starts_with("TEXT") || sql_type.starts_with("BLOB") {
            "(5)"
        } else if sql_type.contains("CHAR") && random.percent(15) {
            "(2)"
        } else {
            ""
        };
        let order = if random.percent(20) { " DESC" } else { "" };
        format!("{name}{prefix}{order}")
    };
    let first = any(random);
    let mut keys = vec![if random.percent(15) && columns[first].not_null {
        format!("PRIMARY KEY ({}, id)", part(random, first))
    } else {
        "PRIMARY KEY (id)".into()
    }];
    for _ in 0..random.uniform(0, 3) {
        let (a, b) = (any(random), any(random));
        keys.push(match random.uniform(1, 4) {
            1 => format!("UNIQUE KEY ({}, id)", part(random, a)),
            2 if a != b => format!("KEY ({}, {})", part(random, a), part(random, b)),
            _ => format!("KEY ({})", part(random, a)),
        });
    }
    keys
}

/// What a query reads from, under a name.
#[derive(Clone, Debug)]
pub struct Source {
    pub alias: String,
    pub columns: Vec<(String, Kind)>,
}

impl Source {
    /// A column of this kind.
    pub fn column(&self, random: &mut Random, kind: Kind) -> Option<Tree> {
        let fit: Vec<&String> =
            self.columns.iter().filter(|(_, k)| *k == kind).map(|(name, _)| name).collect();
        (!fit.is_empty()).then(|| Tree::leaf(format!("{}.{}", self.alias, pick(random, &fit))))
    }

    /// Any column, with its kind.
    pub fn any_column(&self, random: &mut Random) -> (Tree, Kind) {
        let (name, kind) = &self.columns[random.uniform(0, self.columns.len() as i64 - 1) as usize];
        (Tree::leaf(format!("{}.{name}", self.alias)), *kind)
    }
}
