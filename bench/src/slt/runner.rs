//! Runs a SQL test file against a server over the MySQL protocol, or records what a real MySQL answers.

use std::collections::HashMap;
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, Row};

use super::file::{Expected, Item, Login, Record, TestFile};
use super::render;
use crate::error::{Error, Result};
use crate::rival::Server;

/// How the statements are sent, and what happens between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Send queries as prepared statements.
    pub binary: bool,
    /// Kill and restart the server after every statement of files that do not need their session.
    pub restart: bool,
}

/// A record that did not do what it must.
#[derive(Debug)]
pub struct Failure {
    pub line: usize,
    pub sql: String,
    pub expected: String,
    pub actual: String,
}

/// The connections of a file, each in the test's own database.
struct Session<'s> {
    server: &'s mut Server,
    connections: HashMap<String, Conn>,
    /// Statements in the background, by connection.
    running: HashMap<String, Receiver<(Conn, Result<Expected>)>>,
    mode: Mode,
    may_restart: bool,
    logins: Vec<Login>,
}

const DATABASE: &str = "slt";
const ACCESS_DENIED: u16 = 1045;
/// What has not ended by then waits for something.
const WAITS_AFTER: Duration = Duration::from_millis(400);
/// A lock wait ends by its time-out at the latest.
const LONGEST: Duration = Duration::from_secs(120);
/// "This command is not supported in the prepared statement protocol yet".
const NOT_PREPARABLE: u16 = 1295;

impl<'s> Session<'s> {
    fn begin(server: &'s mut Server, file: &TestFile, mode: Mode) -> Result<Session<'s>> {
        let mut conn = Conn::new(server.options())?;
        conn.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
        conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
        let named = file.records().any(|record| record.connection.is_some());
        let may_restart = mode.restart && !file.needs_session && !named;
        let logins = file.logins.clone();
        Ok(Session {
            server,
            connections: HashMap::new(),
            running: HashMap::new(),
            mode,
            may_restart,
            logins,
        })
    }

    fn connection(&mut self, record: &Record) -> Result<&mut Conn> {
        let name = record.connection.clone().unwrap_or_default();
        if !self.connections.contains_key(&name) {
            let options = self.server.options().local_infile_handler(Some(local_files()));
            let conn = Conn::new(match self.logins.iter().find(|login| login.connection == name) {
                Some(login) => {
                    options.user(Some(&login.user)).pass(login.password.as_ref()).db_name(None::<&str>)
                }
                None => options.db_name(Some(DATABASE)),
            })?;
            self.connections.insert(name.clone(), conn);
        }
        Ok(self.connections.get_mut(&name).expect("it was just inserted"))
    }

    /// Runs a statement in the background; what it did, if it ends soon.
    fn start(&mut self, record: &Record) -> Result<Expected> {
        let name = record.connection.clone().unwrap_or_default();
        self.connection(record)?;
        let mut conn = self.connections.remove(&name).expect("just made");
        let (send, done) = channel();
        let record = record.clone();
        std::thread::spawn(move || {
            let outcome = as_expected(execute(&mut conn, &record, false));
            // Nobody listens if the file has ended meanwhile.
            let _ = send.send((conn, outcome));
        });
        self.running.insert(name.clone(), done);
        self.finish(&name, WAITS_AFTER)
    }

    /// What came of a statement in the background.
    fn finish(&mut self, name: &str, within: Duration) -> Result<Expected> {
        let Some(done) = self.running.remove(name) else {
            return Err(Error::Check("nothing runs in the background".into()));
        };
        match done.recv_timeout(within) {
            Ok((conn, outcome)) => {
                self.connections.insert(name.to_owned(), conn);
                outcome
            }
            Err(RecvTimeoutError::Timeout) => {
                self.running.insert(name.to_owned(), done);
                Ok(Expected::Waits)
            }
            Err(RecvTimeoutError::Disconnected) => Err(Error::Check("the statement's thread died".into())),
        }
    }

    /// Runs a record and describes what it did in the terms of what it must do.
    fn run(&mut self, record: &Record) -> Result<Expected> {
        let name = record.connection.as_deref().unwrap_or_default();
        if record.is_result {
            return self.finish(name, LONGEST);
        }
        if self.running.contains_key(name) {
            return Err(Error::Check(format!("@{name} still runs its last statement")));
        }
        if record.background {
            return self.start(record);
        }
        let binary = self.mode.binary && record.is_query;
        let conn = match self.connection(record) {
            Ok(conn) => conn,
            // Signing in is a part of what the record tells of.
            Err(e) => return as_expected(Err(e)),
        };
        let done = match as_expected(execute(conn, record, binary)) {
            Ok(done) => done,
            Err(e) => {
                // The connection is of no more use: the next record gets another one.
                self.connections.remove(&record.connection.clone().unwrap_or_default());
                return Err(e);
            }
        };
        if self.may_restart {
            self.connections.clear();
            self.server.kill()?;
            self.server.start_again()?;
        }
        Ok(done)
    }
}

/// What LOAD DATA LOCAL reads: the text behind `data:` in the name itself, so that a record holds its file.
fn local_files() -> LocalInfileHandler {
    LocalInfileHandler::new(|name, file| match name.strip_prefix(b"data:") {
        Some(data) => file.write_all(data),
        None => Err(std::io::ErrorKind::NotFound.into()),
    })
}

/// A server's error is something that a record can expect.
fn as_expected(outcome: Result<Expected>) -> Result<Expected> {
    match outcome {
        Err(Error::Mysql(mysql::Error::MySqlError(e))) => Ok(Expected::Error(e.code)),
        // So that nobody learns which users there are, MySQL asks unknown ones for any of its methods.
        Err(Error::Mysql(mysql::Error::DriverError(mysql::DriverError::UnknownAuthPlugin(_)))) => {
            Ok(Expected::Error(ACCESS_DENIED))
        }
        other => other,
    }
}

fn execute(conn: &mut Conn, record: &Record, binary: bool) -> Result<Expected> {
    if binary {
        match conn.prep(&record.sql) {
            Ok(statement) => return collect(&mut conn.exec_iter(&statement, ())?, record),
            // MySQL cannot prepare everything: such a statement is sent as text.
            Err(mysql::Error::MySqlError(e)) if e.code == NOT_PREPARABLE => {}
            Err(e) => return Err(e.into()),
        }
    }
    collect(&mut conn.query_iter(&record.sql)?, record)
}

fn collect<P: mysql::prelude::Protocol>(
    result: &mut mysql::QueryResult<'_, '_, '_, P>,
    record: &Record,
) -> Result<Expected> {
    let types: String = result.columns().as_ref().iter().map(render::letter).collect();
    if !record.is_query || types.is_empty() {
        let affected = result.affected_rows();
        result.by_ref().try_for_each(|row| row.map(drop))?;
        return Ok(if record.wants_count { Expected::Count(affected) } else { Expected::Ok });
    }
    let rows: Vec<Row> = result.by_ref().collect::<std::result::Result<_, _>>()?;
    let mut rows: Vec<String> = rows.iter().map(render::line).collect();
    if record.rowsort {
        rows.sort();
    }
    Ok(Expected::Rows { types, rows })
}

/// Runs a file; returns how many records ran and which failed. `types` tells whether column types must agree too.
pub fn check(server: &mut Server, file: &TestFile, mode: Mode, types: bool) -> Result<(usize, Vec<Failure>)> {
    let name = server.name();
    let mut session = Session::begin(server, file, mode)?;
    let (mut ran, mut failures) = (0, Vec::new());
    for record in file.records().filter(|record| record.runs_on(name)) {
        ran += 1;
        let actual = session.run(record);
        let right = actual.as_ref().is_ok_and(|actual| agrees(&record.expected, actual, types));
        if !right {
            failures.push(Failure {
                line: record.line,
                sql: record.sql.clone(),
                expected: describe(&record.expected),
                actual: actual.as_ref().map_or_else(ToString::to_string, describe),
            });
        }
    }
    Ok((ran, failures))
}

/// Runs a file on the oracle and returns it with what the oracle did.
pub fn record(server: &mut Server, file: &TestFile) -> Result<TestFile> {
    let name = server.name();
    let mut recorded = file.clone();
    let mut session = Session::begin(server, file, Mode { binary: false, restart: false })?;
    for item in &mut recorded.items {
        if let Item::Record(record) = item
            && record.runs_on(name)
        {
            record.expected = session.run(record)?;
        }
    }
    Ok(recorded)
}

fn agrees(expected: &Expected, actual: &Expected, types: bool) -> bool {
    match (expected, actual) {
        (Expected::Rows { rows: a, types: t }, Expected::Rows { rows: b, types: u }) => {
            a == b && (!types || t == u)
        }
        (a, b) => a == b,
    }
}

fn describe(expected: &Expected) -> String {
    match expected {
        Expected::Unknown => "nothing recorded".into(),
        Expected::Waits => "to wait".into(),
        Expected::Ok => "success".into(),
        Expected::Count(n) => format!("{n} affected rows"),
        Expected::Error(n) => format!("error {n}"),
        Expected::Rows { types, rows } => format!("rows of types {types}\n{}", rows.join("\n")),
    }
}
