//! One of the two servers: connections to it, what it answers, and how long that takes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use parking_lot::Mutex;

use crate::answer::{Answer, Column};
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    Source,
    Avocet,
}

impl Which {
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "the source",
            Self::Avocet => "Avocet",
        }
    }
}

/// A server, and how it is reached.
#[derive(Clone)]
pub struct Place {
    pub which: Which,
    pub opts: Opts,
}

impl Place {
    pub fn new(which: Which, opts: Opts) -> Self {
        // Known, so the driver need not ask; and large rows are rows, too.
        let opts = OptsBuilder::from_opts(opts).max_allowed_packet(Some(1 << 30)).stmt_cache_size(0);
        Self { which, opts: opts.into() }
    }

    pub fn address(&self) -> String {
        format!("{}:{}", self.opts.get_ip_or_hostname(), self.opts.get_tcp_port())
    }

    fn connect(&self) -> Result<Conn> {
        Conn::new(self.opts.clone()).map_err(|error| self.gone(&error))
    }

    pub fn gone(&self, error: &mysql::Error) -> Error {
        let why = match error {
            mysql::Error::MySqlError(e) => format!("ERROR {} ({}): {}", e.code, e.state, e.message),
            other => other.to_string(),
        };
        Error::Gone { side: self.which.name(), address: self.address(), why }
    }
}

/// A statement that runs.
struct Running {
    since: Instant,
    killed: Option<Instant>,
}

/// What ends statements that take too long, and all of them when the replay is to end.
pub struct Control {
    stop: AtomicBool,
    done: AtomicBool,
    timeout: Option<Duration>,
    running: Mutex<HashMap<(Which, u32), Running>>,
    /// Connections of the replay itself, which a log that is read live has as well.
    own: Mutex<HashSet<(Which, u32)>>,
}

impl Control {
    pub fn new(timeout: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            stop: AtomicBool::new(false),
            done: AtomicBool::new(false),
            timeout,
            running: Mutex::default(),
            own: Mutex::default(),
        })
    }

    /// Ends the replay: what runs is killed on both sides, and what was found is reported.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Nothing runs any more.
    pub fn finish(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    pub fn is_own(&self, which: Which, connection: u64) -> bool {
        u32::try_from(connection).is_ok_and(|id| self.own.lock().contains(&(which, id)))
    }

    /// A connection that a log which is read live shows as the replay's own.
    pub fn connect(&self, place: &Place) -> Result<Conn> {
        let conn = place.connect()?;
        self.own.lock().insert((place.which, conn.connection_id()));
        Ok(conn)
    }

    /// Kills what has to end, until the replay has ended; for a thread of its own.
    pub fn watch(&self, places: &[&Place; 2]) {
        const LOOK: Duration = Duration::from_millis(50);
        const AGAIN: Duration = Duration::from_secs(1);
        while !self.done.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
            let mut late = Vec::new();
            for (key, running) in self.running.lock().iter_mut() {
                let is_late = self.timeout.is_some_and(|limit| running.since.elapsed() > limit);
                let is_killed = running.killed.is_some_and(|at| at.elapsed() < AGAIN);
                if (is_late || self.is_stopped()) && !is_killed {
                    running.killed = Some(Instant::now());
                    late.push(*key);
                }
            }
            for (which, id) in late {
                let place = places.iter().find(|place| place.which == which);
                // One that cannot be reached any more runs nothing for us.
                if let Some(Ok(mut conn)) = place.map(|place| self.connect(place)) {
                    let _ = conn.query_drop(format!("KILL QUERY {id}"));
                }
            }
        }
    }
}

/// A connection to one of the servers.
pub struct Side {
    place: Place,
    conn: Conn,
    control: Arc<Control>,
}

impl Side {
    pub fn open(place: &Place, control: &Arc<Control>) -> Result<Self> {
        Ok(Self { place: place.clone(), conn: control.connect(place)?, control: control.clone() })
    }

    fn key(&self) -> (Which, u32) {
        (self.place.which, self.conn.connection_id())
    }

    /// Runs a statement to its last row. Errors of the statement are answers, too.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn run(&mut self, text: &str) -> Result<Answer> {
        let running = Running { since: Instant::now(), killed: None };
        self.control.running.lock().insert(self.key(), running);
        let begin = Instant::now();
        let mut answer = Answer::default();
        let outcome = read(&mut self.conn, text, &mut answer);
        answer.took = begin.elapsed();
        let running = self.control.running.lock().remove(&self.key());
        answer.killed = running.is_some_and(|running| running.killed.is_some());
        match outcome {
            Ok(()) => Ok(answer),
            Err(mysql::Error::MySqlError(error)) => {
                answer.error = Some((error.code, error.message));
                Ok(answer)
            }
            Err(error) => Err(self.place.gone(&error)),
        }
    }

    /// The first column of the first row, as text.
    pub fn value(&mut self, text: &str) -> Result<Option<String>> {
        let answer = self.run(text)?;
        if let Some((code, message)) = answer.error {
            let why = format!("ERROR {code}: {message} (asked: {text})");
            return Err(Error::Gone { side: self.place.which.name(), address: self.place.address(), why });
        }
        let first = answer.kept.into_iter().next().and_then(|row| row.into_iter().next());
        Ok(first.flatten().map(|value| String::from_utf8_lossy(&value).into_owned()))
    }
}

fn read(conn: &mut Conn, text: &str, answer: &mut Answer) -> mysql::Result<()> {
    let mut results = conn.query_iter(text)?;
    if let Some(set) = results.iter() {
        answer.columns = set.columns().as_ref().iter().map(Column::of).collect();
        answer.begin();
        for row in set {
            let values = row?.unwrap().into_iter();
            answer.add(values.map(|value| match value {
                mysql::Value::NULL => None,
                mysql::Value::Bytes(bytes) => Some(bytes),
                other => Some(other.as_sql(true).into_bytes()),
            }));
        }
    }
    drop(results);
    answer.warnings = conn.warnings();
    Ok(())
}
