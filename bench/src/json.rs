//! Values in JSON documents beside plain columns of the same values: `bench/run json`. The mark: what is asked of a path takes at
//! most twice as long as the same asked of the column.

use std::time::Instant;

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::contest::{Contender, Contest, median};
use crate::error::{Error, Result};
use crate::oltp;
use crate::options::Common;
use crate::report::Report;
use crate::rival::Server;

/// From so many rows on the mark is to be met.
const FULL_SIZE: i64 = 1_000_000;
const MARK: f64 = 2.0;

#[derive(Args, Clone)]
pub struct Options {
    /// Rows of the table
    #[arg(long, default_value_t = 2_000_000)]
    rows: i64,
    /// Runs of each statement in a round
    #[arg(long, default_value_t = 7)]
    runs: usize,
    #[command(flatten)]
    common: Common,
}

/// A statement over paths, and the same over columns.
struct Pair {
    name: &'static str,
    path: &'static str,
    column: &'static str,
}

const PAIRS: [Pair; 9] = [
    Pair {
        name: "count_text",
        path: "SELECT COUNT(*) FROM docs WHERE doc->>'$.city' = 'city 17'",
        column: "SELECT COUNT(*) FROM docs WHERE city = 'city 17'",
    },
    Pair {
        name: "count_number",
        path: "SELECT COUNT(*) FROM docs WHERE doc->>'$.n' > 500000",
        column: "SELECT COUNT(*) FROM docs WHERE n > 500000",
    },
    Pair {
        name: "count_json",
        path: "SELECT COUNT(*) FROM docs WHERE doc->'$.n' BETWEEN 1000 AND 2000",
        column: "SELECT COUNT(*) FROM docs WHERE n BETWEEN 1000 AND 2000",
    },
    Pair {
        name: "count_double",
        path: "SELECT COUNT(*) FROM docs WHERE doc->'$.at.lat' < 10",
        column: "SELECT COUNT(*) FROM docs WHERE lat < 10",
    },
    Pair {
        name: "sum_number",
        path: "SELECT SUM(CAST(doc->>'$.n' AS SIGNED)) FROM docs",
        column: "SELECT SUM(n) FROM docs",
    },
    Pair {
        name: "sum_json",
        path: "SELECT SUM(doc->'$.at.lat') FROM docs",
        column: "SELECT SUM(lat) FROM docs",
    },
    Pair {
        name: "sum_price",
        path: "SELECT SUM(CAST(doc->>'$.price' AS DECIMAL(10,2))) FROM docs WHERE doc->>'$.city' = 'city 3'",
        column: "SELECT SUM(price) FROM docs WHERE city = 'city 3'",
    },
    Pair {
        name: "group_text",
        path: "SELECT doc->>'$.city' c, COUNT(*) FROM docs GROUP BY c ORDER BY c",
        column: "SELECT city c, COUNT(*) FROM docs GROUP BY c ORDER BY c",
    },
    Pair {
        name: "group_sum",
        path: "SELECT doc->>'$.kind' k, SUM(CAST(doc->>'$.n' AS SIGNED)), MAX(JSON_VALUE(doc, '$.price' RETURNING DECIMAL(10,2)))
               FROM docs GROUP BY k ORDER BY k",
        column: "SELECT kind k, SUM(n), MAX(price) FROM docs GROUP BY k ORDER BY k",
    },
];

const SETUP: [&str; 5] = [
    "DROP DATABASE IF EXISTS json",
    "CREATE DATABASE json",
    "USE json",
    "CREATE TABLE digits (d INT PRIMARY KEY)",
    "CREATE TABLE docs (id INT PRIMARY KEY, n INT, lat DOUBLE, price DECIMAL(10,2), kind CHAR(2), city VARCHAR(20), doc JSON)",
];

/// Rows of the table that the others are multiplied out of.
const DIGITS: i64 = 2_000;

/// The same values in columns and in a document, which has others besides. A large INSERT … SELECT goes to column blocks.
fn fill(rows: i64) -> String {
    let doc = r#"CAST(CONCAT('{"n": ', n, ', "at": {"lat": ', lat, '}, "price": ', price, ', "kind": "', kind, '", "city": "', city,
        '", "note": "number ', id, '", "tags": [', id % 7, ', ', id % 11, ']}') AS JSON)"#;
    let hash = |factor: i64, of: i64| format!("id * {factor} % {of}");
    let (n, lat, whole) = (hash(7_919, 1_000_003), hash(104_729, 18_000), hash(1_299_709, 997));
    format!(
        "INSERT INTO docs SELECT id, n, lat, price, kind, city, {doc} FROM (SELECT id, {n} n,
         CAST(({lat} - 9000) / 100 + 0.005 AS DOUBLE) lat, CAST({whole} + (id % 9 + 1) / 10 AS DECIMAL(10,2)) price,
         CONCAT('k', id % 8) kind, CONCAT('city ', id % 101) city
         FROM (SELECT CAST(a.d * {DIGITS} + b.d AS SIGNED) id FROM digits a, digits b) i WHERE id < {rows}) v"
    )
}

fn load(server: &Server, rows: i64) -> Result<Conn> {
    let mut conn = Conn::new(server.options())?;
    for statement in SETUP {
        conn.query_drop(statement)?;
    }
    let digits: Vec<_> = (0..DIGITS).map(|d| format!("({d})")).collect();
    conn.query_drop(format!("INSERT INTO digits VALUES {}", digits.join(",")))?;
    eprintln!("{}: filling docs", server.name());
    conn.query_drop(fill(rows))?;
    Ok(conn)
}

/// Values of rows as text, numbers that are sums of doubles to fewer digits.
fn answer(rows: Vec<Row>) -> Vec<String> {
    let text = |value: mysql::Value| {
        let text = value.as_sql(true);
        match text.trim_matches('\'').parse::<f64>() {
            Ok(number) => format!("{number:.6e}"),
            Err(_) => text,
        }
    };
    rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect::<Vec<_>>().join(" ")).collect()
}

/// The times of some runs in milliseconds, and the answer.
fn timed(conn: &mut Conn, sql: &str, runs: usize) -> Result<(Vec<f64>, Vec<String>)> {
    let (mut times, mut last) = (Vec::new(), Vec::new());
    for _ in 0..=runs {
        let begin = Instant::now();
        last = conn.query::<Row, _>(sql)?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    // The first one plans, and reads what is not in memory.
    times.remove(0);
    Ok((times, answer(last)))
}

/// `bench/run json`.
pub fn command(options: &Options) -> Result<()> {
    let contest = Contest::start(&options.common)?;
    let connect = |(contender, server)| Ok::<_, Error>((contender, load(server, options.rows)?));
    let mut conns: Vec<(Contender, Conn)> = contest.each().map(connect).collect::<Result<_>>()?;
    let mut report = Report::new("json", options.common.rival);
    let (mut holds, mut missed) = (true, Vec::new());
    for Pair { name, path, column } in &PAIRS {
        let mut times: Vec<(Contender, bool, Vec<f64>)> = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..options.common.rounds {
            for (contender, conn) in &mut conns {
                for (is_path, sql) in [(true, path), (false, column)] {
                    let (took, answer) = timed(conn, sql, options.runs)?;
                    times.push((*contender, is_path, took));
                    answers.push(answer);
                }
            }
        }
        if answers.windows(2).any(|pair| pair[0] != pair[1]) {
            eprintln!("{name}: the answers differ");
            holds = false;
        }
        let middle = |who, paths| {
            let of = times.iter().filter(|(contender, is_path, _)| (*contender, *is_path) == (who, paths));
            median(of.flat_map(|(_, _, took)| took.iter().copied()))
        };
        let both = |paths| (middle(Contender::Avocet, paths), middle(Contender::Rival, paths));
        let ((path, of_rival), (column, rival_column)) = (both(true), both(false));
        let ratio =
            |path: Option<f64>, column: Option<f64>| path.zip(column).map(|(path, column)| path / column);
        let over = ratio(path, column);
        missed.extend(over.filter(|over| *over > MARK).map(|over| format!("{name}: {over:.2}")));
        report.add(format!("json.{name}.path_ms"), "ms", path, of_rival);
        report.add(format!("json.{name}.column_ms"), "ms", column, rival_column);
        report.add(format!("json.{name}.path_over_column"), "ratio", over, ratio(of_rival, rival_column));
    }
    report.publish(options.common.json.as_deref())?;
    if options.rows >= FULL_SIZE {
        for missed in &missed {
            eprintln!("a mark is missed: {missed}");
        }
        holds &= missed.is_empty();
    }
    oltp::verdict(holds)
}
