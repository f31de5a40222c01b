//! One server and the sessions of a schedule on it: a statement is started, and then all sessions are let come to rest.
//!
//! At rest, every session has either answered or waits for a row. That a session waits is asked of the server, not
//! guessed from the time that it takes: MySQL's `data_lock_waits`, and Avocet's `Innodb_row_lock_current_waits`, which
//! does not count those who have been woken already.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::innodb::{self, Waiting};
use crate::error::{Error, Result};
use crate::rival::Server;
use crate::slt::render;

/// What a statement came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Sorted lines.
    Rows(Vec<String>),
    Affected(u64),
    Error(u16),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Rows(rows) => write!(f, "rows {}", rows.join(" | ").replace('\t', ",")),
            Outcome::Affected(n) => write!(f, "{n} affected"),
            Outcome::Error(code) => write!(f, "error {code}"),
        }
    }
}

/// What became of the sessions since the last rest: those that are not here wait on.
pub type Answers = BTreeMap<usize, Outcome>;

/// How a server is asked who waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Avocet,
    Mysql,
}

/// Whoever has neither answered nor waits for a row by then does something that it should not.
const LONGEST: Duration = Duration::from_secs(30);
/// By then, a server has found a deadlock.
const DEADLOCK_FOUND: Duration = Duration::from_secs(3);
/// Between two looks at who waits.
const PAUSE: Duration = Duration::from_micros(300);
/// Lock waits may not end by themselves.
const LOCK_WAIT_SECONDS: u64 = 600;

/// A session on a thread of its own.
struct Lane {
    statements: Sender<String>,
    /// As the server numbers its connections.
    connection: u32,
}

pub struct Stage<'s> {
    server: &'s Server,
    kind: Kind,
    observer: Conn,
    lanes: Vec<Lane>,
    answers: Receiver<(usize, Result<Outcome>)>,
    answer: Sender<(usize, Result<Outcome>)>,
    running: Vec<usize>,
}

impl<'s> Stage<'s> {
    pub fn new(server: &'s Server, kind: Kind) -> Result<Stage<'s>> {
        let mut observer = Conn::new(server.options())?;
        observer.query_drop("CREATE DATABASE IF NOT EXISTS isolation")?;
        observer.query_drop("USE isolation")?;
        let (answer, answers) = channel();
        Ok(Stage { server, kind, observer, lanes: Vec::new(), answers, answer, running: Vec::new() })
    }

    pub fn name(&self) -> &'static str {
        self.server.name()
    }

    /// Runs statements that prepare a case.
    pub fn prepare<'q>(&mut self, statements: impl IntoIterator<Item = &'q String>) -> Result<()> {
        statements.into_iter().try_for_each(|sql| Ok(self.observer.query_drop(sql)?))
    }

    pub fn sessions(&mut self, count: usize) -> Result<()> {
        while self.lanes.len() < count {
            let mut conn = Conn::new(self.server.options().db_name(Some("isolation")))?;
            conn.query_drop(format!("SET innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}"))?;
            let connection = conn.connection_id();
            let (statements, asked) = channel::<String>();
            let (lane, answer) = (self.lanes.len(), self.answer.clone());
            std::thread::spawn(move || {
                while let Ok(sql) = asked.recv() {
                    if answer.send((lane, run(&mut conn, &sql))).is_err() {
                        return;
                    }
                }
            });
            self.lanes.push(Lane { statements, connection });
        }
        Ok(())
    }

    /// Rows of a query by the connection that prepares.
    pub fn look(&mut self, sql: &str) -> Result<Outcome> {
        run(&mut self.observer, sql)
    }

    pub fn waits(&self, session: usize) -> bool {
        self.running.contains(&session)
    }

    pub fn waiting(&self) -> &[usize] {
        &self.running
    }

    /// Starts a statement and lets everyone come to rest.
    pub fn step(&mut self, session: usize, sql: &str) -> Result<Answers> {
        assert!(!self.waits(session), "a session runs one statement at a time");
        let sent = self.lanes[session].statements.send(sql.to_owned());
        sent.map_err(|_| Error::Check(format!("session {session} is gone")))?;
        self.running.push(session);
        self.rest()
    }

    fn rest(&mut self) -> Result<Answers> {
        let mut answers = Answers::new();
        let begin = Instant::now();
        let (mut seen_waiting, mut since) = (0, begin);
        while !self.running.is_empty() {
            match self.answers.recv_timeout(PAUSE) {
                Ok((session, outcome)) => {
                    self.running.retain(|running| *running != session);
                    answers.insert(session, outcome?);
                    (seen_waiting, since) = (0, Instant::now());
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Check("all sessions are gone".into()));
                }
            }
            match self.all_wait()? {
                Waiting::NotAll => seen_waiting = 0,
                Waiting::All => seen_waiting += 1,
                Waiting::InCircle if since.elapsed() > DEADLOCK_FOUND => break,
                Waiting::InCircle => seen_waiting = 0,
            }
            // Of several, one may be about to be told that it closes a circle.
            let enough = if self.running.len() == 1 { 1 } else { 5 };
            if seen_waiting >= enough {
                break;
            }
            if begin.elapsed() > LONGEST {
                let who = format!("{:?} on {}", self.running, self.name());
                return Err(Error::Check(format!("sessions {who} neither answer nor wait for a row")));
            }
        }
        Ok(answers)
    }

    /// Whether all that have not answered wait for rows.
    fn all_wait(&mut self) -> Result<Waiting> {
        match self.kind {
            Kind::Mysql => innodb::waiting(&mut self.observer, self.running.len()),
            Kind::Avocet => {
                let row: Option<(String, usize)> =
                    self.observer.query_first("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")?;
                let all = row.is_some_and(|(_, waiting)| waiting == self.running.len());
                Ok(if all { Waiting::All } else { Waiting::NotAll })
            }
        }
    }

    /// What a session of MySQL waits for.
    pub fn wait_of(&mut self, session: usize) -> Result<Option<innodb::Wait>> {
        let connections: Vec<u32> = self.lanes.iter().map(|lane| lane.connection).collect();
        innodb::wait_of(&mut self.observer, &connections, session)
    }

    /// What MySQL says of the last deadlock.
    pub fn last_deadlock(&mut self) -> Result<innodb::Deadlock> {
        innodb::last_deadlock(&mut self.observer)
    }

    /// Ends all transactions.
    pub fn clear(&mut self) -> Result<()> {
        let mut idle: Vec<usize> = (0..self.lanes.len()).filter(|lane| !self.waits(*lane)).collect();
        while let Some(session) = idle.pop() {
            // Whoever waited for it goes on, and is ended next.
            idle.extend(self.step(session, "ROLLBACK")?.into_keys().filter(|other| *other != session));
        }
        match &self.running[..] {
            [] => Ok(()),
            stuck => Err(Error::Check(format!("sessions {stuck:?} wait for nobody on {}", self.name()))),
        }
    }
}

fn run(conn: &mut Conn, sql: &str) -> Result<Outcome> {
    match collect(conn, sql) {
        Err(Error::Mysql(mysql::Error::MySqlError(e))) => Ok(Outcome::Error(e.code)),
        other => other,
    }
}

fn collect(conn: &mut Conn, sql: &str) -> Result<Outcome> {
    let mut result = conn.query_iter(sql)?;
    if result.columns().as_ref().is_empty() {
        let affected = result.affected_rows();
        result.by_ref().try_for_each(|row| row.map(drop))?;
        return Ok(Outcome::Affected(affected));
    }
    let rows: Vec<Row> = result.by_ref().collect::<std::result::Result<_, _>>()?;
    let mut rows: Vec<String> = rows.iter().map(render::line).collect();
    rows.sort();
    Ok(Outcome::Rows(rows))
}
