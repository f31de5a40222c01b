//! SQL test files: parsing and writing.
//!
//! The format is sqllogictest's, with MySQL's error numbers:
//!
//! ```text
//! # a comment
//! control session            the file needs its session: no restarts between its statements
//! control user c2 ann pw     connection c2 signs in as ann (the password may be missing), without a default database
//! skipif mariadb             the next record is not for this server (onlyif likewise)
//!
//! statement ok [@connection]
//! CREATE TABLE t (a INT)
//!
//! statement count 2          so many affected rows
//! INSERT INTO t VALUES (1), (2)
//!
//! statement error 1146
//! SELECT * FROM u
//!
//! query IT [rowsort] [@connection]
//! SELECT a, 'x' FROM t
//! ----
//! 1<tab>x
//! ```
//!
//! A statement that is expected to wait for another connection runs in the background; what came of it is a record of
//! its own, without SQL:
//!
//! ```text
//! statement waits @c2        still runs after a while (`async` where it may also end at once)
//! UPDATE t SET a = 1
//!
//! result count 1 @c2
//! ```
//!
//! The file of a LOAD DATA LOCAL is its name, behind `data:`.
//!
//! A record ends at an empty line. The letters of a query are the types of its columns (see `render`); columns are separated by
//! tabs; NULL is `NULL`, the empty text `(empty)`. `statement` and `query` without more are filled in by recording.

use std::fmt::Write;

/// What a statement must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Not recorded yet.
    Unknown,
    /// It still runs after a while.
    Waits,
    Ok,
    Count(u64),
    Error(u16),
    Rows {
        types: String,
        rows: Vec<String>,
    },
}

/// One statement or query with what it must do.
#[derive(Clone, Debug)]
pub struct Record {
    /// The line of its first word, from 1.
    pub line: usize,
    pub sql: String,
    /// Written as `query`, thus recorded as one.
    pub is_query: bool,
    /// Runs in the background.
    pub background: bool,
    /// No statement, but what came of the one in the connection's background.
    pub is_result: bool,
    pub wants_count: bool,
    pub rowsort: bool,
    pub connection: Option<String>,
    pub expected: Expected,
    pub skip_if: Vec<String>,
    pub only_if: Vec<String>,
}

impl Record {
    /// Whether it needs what is left of its session, or leaves there what later statements may need; a restart ends both.
    fn depends_on_its_session(&self) -> bool {
        let mut words = self.sql.split_whitespace().map(str::to_ascii_uppercase);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let leaves = match (&*first, &*second) {
            ("SET", "GLOBAL" | "PERSIST" | "PERSIST_ONLY" | "PASSWORD" | "DEFAULT") => false,
            ("SET", scoped) => !["@@GLOBAL.", "@@PERSIST"].iter().any(|scope| scoped.starts_with(scope)),
            ("PREPARE" | "BEGIN" | "USE", _) => true,
            ("START", "TRANSACTION") | ("CREATE", "TEMPORARY") | ("LOCK", "TABLES" | "TABLE") => true,
            ("SHOW", "WARNINGS" | "ERRORS") => true,
            _ => false,
        };
        leaves && !matches!(self.expected, Expected::Error(_))
    }

    pub fn runs_on(&self, server: &str) -> bool {
        !self.skip_if.iter().any(|s| s == server)
            && (self.only_if.is_empty() || self.only_if.iter().any(|s| s == server))
    }
}

/// A piece of a file, in its order.
#[derive(Clone, Debug)]
pub enum Item {
    /// Comments, empty lines and controls: kept as they are.
    Text(String),
    Record(Record),
}

#[derive(Clone, Debug, Default)]
pub struct TestFile {
    pub items: Vec<Item>,
    /// `control session`: statements depend on the session's state.
    pub needs_session: bool,
    /// `control user`: who connections sign in as.
    pub logins: Vec<Login>,
}

/// Who a connection signs in as, if not as the server's administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub connection: String,
    pub user: String,
    pub password: Option<String>,
}

impl TestFile {
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.items.iter().filter_map(|item| match item {
            Item::Record(record) => Some(record),
            Item::Text(_) => None,
        })
    }
}

/// Parses a file; an error names its line.
pub fn parse(text: &str) -> Result<TestFile, String> {
    let mut file = TestFile::default();
    let mut lines = text.lines().enumerate().peekable();
    let (mut skip_if, mut only_if) = (Vec::new(), Vec::new());
    while let Some((at, line)) = lines.next() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("skipif") => skip_if.extend(words.map(str::to_owned)),
            Some("onlyif") => only_if.extend(words.map(str::to_owned)),
            Some(kind @ ("statement" | "query" | "result")) => {
                let body = std::iter::from_fn(|| lines.next_if(|(_, line)| !line.trim().is_empty()));
                let body: Vec<&str> = body.map(|(_, line)| line).collect();
                let mut record = record(at + 1, kind, words, &body)?;
                record.skip_if = std::mem::take(&mut skip_if);
                record.only_if = std::mem::take(&mut only_if);
                file.items.push(Item::Record(record));
            }
            Some("control") => {
                match (words.next(), words.next(), words.next()) {
                    (Some("session"), None, None) => file.needs_session = true,
                    (Some("user"), Some(connection), Some(user)) => file.logins.push(Login {
                        connection: connection.to_owned(),
                        user: user.to_owned(),
                        password: words.next().map(str::to_owned),
                    }),
                    _ => return Err(format!("line {}: unknown control", at + 1)),
                }
                file.items.push(Item::Text(line.to_owned()));
            }
            Some(word) if !word.starts_with('#') => {
                return Err(format!("line {}: unknown word {word}", at + 1));
            }
            _ => file.items.push(Item::Text(line.to_owned())),
        }
    }
    let has_connections = file.records().any(|record| record.connection.is_some());
    let bound = file.records().find(|record| record.depends_on_its_session()).map(|record| record.line);
    match bound {
        Some(line) if !file.needs_session && !has_connections => {
            Err(format!("line {line}: it depends on its session: the file needs a line `control session`"))
        }
        _ => Ok(file),
    }
}

fn record<'a>(
    line: usize,
    kind: &str,
    words: impl Iterator<Item = &'a str>,
    body: &[&str],
) -> Result<Record, String> {
    let (is_query, is_result) = (kind == "query", kind == "result");
    let end_of_sql = body.iter().position(|l| *l == "----").unwrap_or(body.len());
    let rows: Vec<String> = body.iter().skip(end_of_sql + 1).map(|l| (*l).to_owned()).collect();
    let mut record = Record {
        line,
        sql: body[..end_of_sql].join("\n"),
        is_query,
        background: false,
        is_result,
        wants_count: false,
        rowsort: false,
        connection: None,
        expected: Expected::Unknown,
        skip_if: Vec::new(),
        only_if: Vec::new(),
    };
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let number = |next: Option<&&str>| next.and_then(|n| n.parse::<u64>().ok());
        match word {
            "rowsort" => record.rowsort = true,
            "async" => record.background = true,
            "waits" => {
                record.background = true;
                record.expected = Expected::Waits;
            }
            "ok" if !is_query => record.expected = Expected::Ok,
            "count" if !is_query => {
                record.wants_count = true;
                if let Some(n) = number(words.peek()) {
                    words.next();
                    record.expected = Expected::Count(n);
                }
            }
            "error" if !is_query => {
                let n = number(words.peek()).and_then(|n| u16::try_from(n).ok());
                record.expected = n.map_or(Expected::Unknown, Expected::Error);
                words.next();
            }
            name if name.starts_with('@') => record.connection = Some(name[1..].to_owned()),
            types if is_query || is_result => {
                record.expected = Expected::Rows { types: types.to_owned(), rows: rows.clone() };
            }
            other => return Err(format!("line {line}: unknown word {other}")),
        }
    }
    if record.sql.is_empty() != is_result {
        let what = if is_result { "SQL in a result" } else { "no SQL" };
        return Err(format!("line {line}: {what}"));
    }
    Ok(record)
}

/// Writes a file back; parsing what was written gives the same file.
pub fn write(file: &TestFile) -> String {
    let mut text = String::new();
    for item in &file.items {
        match item {
            Item::Text(line) => {
                text.push_str(line);
                text.push('\n');
            }
            Item::Record(record) => write_record(&mut text, record),
        }
    }
    text
}

fn write_record(text: &mut String, record: &Record) {
    for (word, names) in [("skipif", &record.skip_if), ("onlyif", &record.only_if)] {
        if !names.is_empty() {
            put(text, format_args!("{word} {}\n", names.join(" ")));
        }
    }
    let kind = match (record.is_result, record.is_query) {
        (true, _) => "result",
        (false, true) => "query",
        (false, false) => "statement",
    };
    // What a query did that gave no rows is a statement's.
    let kind_of_others = if record.is_result { "result" } else { "statement" };
    match &record.expected {
        Expected::Unknown => text.push_str(kind),
        Expected::Waits => put(text, format_args!("{kind} waits")),
        Expected::Ok => put(text, format_args!("{kind_of_others} ok")),
        Expected::Count(n) => put(text, format_args!("{kind_of_others} count {n}")),
        Expected::Error(n) => put(text, format_args!("{kind_of_others} error {n}")),
        Expected::Rows { types, .. } => put(text, format_args!("{kind} {types}")),
    }
    if record.background && record.expected != Expected::Waits {
        text.push_str(" async");
    }
    if record.wants_count && record.expected == Expected::Waits {
        text.push_str(" count");
    }
    let shows_rows = matches!(record.expected, Expected::Rows { .. });
    if record.rowsort && shows_rows {
        text.push_str(" rowsort");
    }
    if let Some(connection) = &record.connection {
        put(text, format_args!(" @{connection}"));
    }
    text.push('\n');
    if !record.is_result {
        put(text, format_args!("{}\n", record.sql));
    }
    if let Expected::Rows { rows, .. } = &record.expected {
        text.push_str("----\n");
        rows.iter().for_each(|row| put(text, format_args!("{row}\n")));
    }
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# about\ncontrol session\ncontrol user c2 ann secret\ncontrol user c3 bob\n\nstatement ok\nCREATE TABLE t\n(a INT)\n\nskipif mariadb\nstatement error 1062 @c2\nINSERT x\n\nstatement count 3\nDELETE\n\nquery IT rowsort\nSELECT 1, 'a b'\n----\n1\ta b\n\nstatement waits @c\nUPDATE\n\nresult count 1 @c\n\nresult I @c\n----\n1\n";

    #[test]
    fn written_files_parse_to_the_same() {
        let file = parse(TEXT).unwrap();
        assert!(file.needs_session);
        let logins: Vec<_> =
            file.logins.iter().map(|l| (&*l.connection, &*l.user, l.password.as_deref())).collect();
        assert_eq!(logins, [("c2", "ann", Some("secret")), ("c3", "bob", None)]);
        assert_eq!(write(&file), TEXT);
        let records: Vec<&Record> = file.records().collect();
        assert_eq!(records.len(), 7);
        assert_eq!(records[0].sql, "CREATE TABLE t\n(a INT)");
        assert_eq!(records[1].expected, Expected::Error(1062));
        assert!(!records[1].runs_on("mariadb") && records[1].runs_on("mysql"));
        assert_eq!(records[1].connection.as_deref(), Some("c2"));
        assert_eq!(records[2].expected, Expected::Count(3));
        assert!(records[3].rowsort && records[3].line == 17);
        assert!(records[4].background && records[4].expected == Expected::Waits && !records[4].is_result);
        assert!(records[5].is_result && records[5].expected == Expected::Count(1));
    }

    #[test]
    fn mistakes_name_their_line() {
        assert!(parse("statement maybe\nSELECT 1\n").unwrap_err().contains("line 1"));
        assert!(parse("\nfoo\n").unwrap_err().contains("line 2"));
        assert!(parse("control user c\n").unwrap_err().contains("line 1"));
        for sql in
            ["SET @a = 1", "set names latin1", "PREPARE s FROM 'DO 1'", "CREATE TEMPORARY TABLE t (a INT)"]
        {
            assert!(
                parse(&format!("statement ok\n{sql}\n")).unwrap_err().contains("control session"),
                "{sql}"
            );
            parse(&format!("control session\n\nstatement ok\n{sql}\n")).expect("it says so");
        }
        for sql in ["SET GLOBAL max_connections = 7", "SET @@GLOBAL.max_connections = 7", "SELECT 1"] {
            parse(&format!("statement ok\n{sql}\n")).expect("nothing of it is lost");
        }
        assert!(parse("query I\n\n").unwrap_err().contains("no SQL"));
        assert!(parse("result ok @c\nSELECT 1\n").unwrap_err().contains("SQL in a result"));
    }
}
