//! Locks by name: GET_LOCK and its kin (MySQL Reference Manual, 14.14 "Locking Functions"). They are the connections', not
//! of transactions; a connection may have several, and each several times.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use avocet_channel::Interrupt;
use avocet_channel::blocking::blocking;
use avocet_sql::parse::digest_text::digest_text;
use avocet_sql::parse::{StatementKind, parse};
use avocet_types::Value;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalError, EvalResult, Host, SqlMode, StatementDigest};
use avocet_types::gtid::GtidSet;
use avocet_types::names;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::binary_log::{BinaryLog, Replicas};
use super::digest::{MOST_TEXT, digest};
use super::replication::{PlaceWait, Replication};
use super::server_functions::ServerFunctions;

/// How often a waiter asks whether it was interrupted.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The locks of a server. Waiters of one lock get it in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct NamedLocks {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Names are there while somebody has or wants the lock.
    locks: HashMap<String, NamedLock>,
    /// What each connection waits for: at most one lock.
    wanted: HashMap<u32, Wanted>,
    waits: u64,
}

#[derive(Debug)]
struct Wanted {
    name: String,
    /// Which of all waits it is: one that was called off may not have noticed yet when the connection waits anew.
    wait: u64,
}

#[derive(Debug, Default)]
struct NamedLock {
    owner: Option<u32>,
    /// How often the owner has it.
    times: u64,
    waiters: VecDeque<u32>,
}

impl State {
    /// Whether `connection` has, directly or not, what keeps the owner of a lock waiting.
    fn is_deadlock(&self, connection: u32, name: &str) -> bool {
        let owner = |name: &str| self.locks.get(name).and_then(|lock| lock.owner);
        let mut at = owner(name);
        while let Some(blocker) = at {
            if blocker == connection {
                return true;
            }
            at = self.wanted.get(&blocker).and_then(|wanted| owner(&wanted.name));
        }
        false
    }

    /// Ends the wait of a connection.
    fn give_up(&mut self, connection: u32) {
        let Some(Wanted { name, .. }) = self.wanted.remove(&connection) else { return };
        let name = &*name;
        if let Some(lock) = self.locks.get_mut(name) {
            lock.waiters.retain(|waiter| *waiter != connection);
            if lock.owner.is_none() && lock.waiters.is_empty() {
                self.locks.remove(name);
            }
        }
    }

    /// Gives back a lock as often as it is held.
    fn free(&mut self, name: &str) {
        let Some(lock) = self.locks.get_mut(name) else { return };
        (lock.owner, lock.times) = (None, 0);
        if lock.waiters.is_empty() {
            self.locks.remove(name);
        }
    }
}

impl NamedLocks {
    /// Waits for a lock; whether the connection has it now. `None`: interrupted.
    fn get(
        &self,
        connection: u32,
        name: String,
        timeout: Option<Duration>,
        interrupted: &dyn Fn() -> bool,
    ) -> EvalResult<Option<bool>> {
        let mut state = self.state.lock();
        // The statement that asks may be over, and with it the session: nobody would give the lock back.
        if interrupted() {
            return Ok(None);
        }
        let lock = state.locks.entry(name.clone()).or_default();
        if lock.owner == Some(connection) {
            lock.times += 1;
            return Ok(Some(true));
        }
        if lock.owner.is_none() && lock.waiters.is_empty() {
            (lock.owner, lock.times) = (Some(connection), 1);
            return Ok(Some(true));
        }
        if state.is_deadlock(connection, &name) {
            return Err(EvalError::UserLockDeadlock);
        }
        state.locks.get_mut(&name).expect("somebody has it").waiters.push_back(connection);
        state.waits += 1;
        let wait = state.waits;
        state.wanted.insert(connection, Wanted { name, wait });
        let got = blocking(|| self.wait(&mut state, connection, wait, timeout, interrupted));
        if state.wanted.get(&connection).is_some_and(|wanted| wanted.wait == wait) {
            state.give_up(connection);
        }
        Ok(got)
    }

    /// Calls off a connection's wait: its statement is over, whatever becomes of the thread that evaluates it.
    pub fn call_off(&self, connection: u32) {
        let mut state = self.state.lock();
        if state.wanted.contains_key(&connection) {
            state.give_up(connection);
            self.released.notify_all();
        }
    }

    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        connection: u32,
        wait: u64,
        timeout: Option<Duration>,
        interrupted: &dyn Fn() -> bool,
    ) -> Option<bool> {
        let begin = Instant::now();
        loop {
            if interrupted() {
                return None;
            }
            let State { locks, wanted, .. } = &mut **state;
            let wanted = wanted.get(&connection).filter(|wanted| wanted.wait == wait)?;
            let lock = locks.get_mut(&wanted.name).expect("it has a waiter");
            if lock.owner.is_none() && lock.waiters.front() == Some(&connection) {
                (lock.owner, lock.times) = (Some(connection), 1);
                return Some(true);
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
            if left == Some(Duration::ZERO) {
                return Some(false);
            }
            self.released.wait_for(state, left.unwrap_or(ASK_EVERY).min(ASK_EVERY));
        }
    }

    /// Gives a lock back once: whether the connection had it; `None` if nobody has.
    fn release(&self, connection: u32, name: &str) -> Option<bool> {
        let mut state = self.state.lock();
        let lock = state.locks.get_mut(name).filter(|lock| lock.owner.is_some())?;
        if lock.owner != Some(connection) {
            return Some(false);
        }
        lock.times -= 1;
        if lock.times == 0 {
            state.free(name);
            self.released.notify_all();
        }
        Some(true)
    }

    /// Gives back all that a connection has; returns how often it had them.
    pub fn release_all(&self, connection: u32) -> u64 {
        let mut state = self.state.lock();
        let owned = state.locks.iter().filter(|(_, lock)| lock.owner == Some(connection));
        let owned: Vec<(String, u64)> = owned.map(|(name, lock)| (name.clone(), lock.times)).collect();
        owned.iter().for_each(|(name, _)| state.free(name));
        if !owned.is_empty() {
            self.released.notify_all();
        }
        owned.iter().map(|(_, times)| times).sum()
    }

    /// How many connections wait for a lock.
    #[cfg(test)]
    pub fn waiters(&self) -> usize {
        self.state.lock().wanted.len()
    }

    fn owner(&self, name: &str) -> Option<u32> {
        self.state.lock().locks.get(name)?.owner
    }
}

/// When the running statement has to end. Set by the session, read by whatever threads evaluate the statement.
#[derive(Debug)]
pub(super) struct TimeLimit {
    since: Instant,
    /// Microseconds after `since`; 0 for no limit.
    end: AtomicU64,
    /// SLEEP that is cut short gives a value, and does not end the statement.
    answers: AtomicBool,
}

impl Default for TimeLimit {
    fn default() -> Self {
        Self { since: Instant::now(), end: AtomicU64::new(0), answers: AtomicBool::new(true) }
    }
}

impl TimeLimit {
    pub fn set(&self, end: Option<Instant>, answers: bool) {
        let micros = |end: Instant| {
            let micros = end.saturating_duration_since(self.since).as_micros();
            u64::try_from(micros).unwrap_or(u64::MAX).max(1)
        };
        self.end.store(end.map_or(0, micros), Relaxed);
        self.answers.store(answers, Relaxed);
    }

    /// What is left of the statement's time; `None` if it has no limit.
    fn left(&self) -> Option<Duration> {
        let end = Some(self.end.load(Relaxed)).filter(|end| *end > 0)?;
        Some(Duration::from_micros(end).saturating_sub(self.since.elapsed()))
    }
}

/// What a session's functions ask of it. Its locks are given back when it is dropped.
#[derive(Debug)]
pub(super) struct SessionHost {
    pub connection: u32,
    pub locks: Arc<NamedLocks>,
    pub interrupt: Arc<Interrupt>,
    pub time: TimeLimit,
    pub replication: Arc<OnceLock<Arc<dyn Replication>>>,
    pub binary_log: Arc<OnceLock<Arc<dyn BinaryLog>>>,
    pub replicas: Arc<Replicas>,
    pub server: ServerFunctions,
    /// The connection has given back its locks, and gets none any more.
    pub has_ended: AtomicBool,
}

impl Host for SessionHost {
    fn sleep(&self, time: Duration) -> EvalResult<bool> {
        if self.interrupt.get().is_some() {
            return Err(EvalError::Interrupted);
        }
        let left = self.time.left();
        let is_cut_short = left.is_some_and(|left| left < time);
        let interruption = blocking(|| self.interrupt.wait_for(left.map_or(time, |left| left.min(time))));
        match interruption {
            None if !is_cut_short => Ok(true),
            _ if self.time.answers.load(Relaxed) => Ok(false),
            Some(_) => Err(EvalError::Interrupted),
            None => Err(EvalError::Timeout),
        }
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.server.memory().reserve(bytes)
    }

    fn release(&self, bytes: usize) {
        self.server.memory().release(bytes);
    }

    fn random_bytes(&self, to: &mut [u8]) {
        use rand::{RngCore, rngs::OsRng};
        OsRng.fill_bytes(to);
    }

    fn aside(&self, work: &mut dyn FnMut()) {
        blocking(work);
    }

    fn load_file(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        let mut loaded = None;
        blocking(|| loaded = self.server.load_file(name, most));
        loaded
    }

    fn user_variable(&self, name: &str) -> Option<Value> {
        self.server.user_variable(name)
    }

    fn thread_id(&self, connection: Option<u64>) -> Option<u64> {
        match connection {
            None => Some(self.connection.into()),
            Some(connection) => self.server.thread_id(connection),
        }
    }

    fn roles_graph(&self) -> String {
        self.server.roles_graph()
    }

    fn check(&self) -> EvalResult<()> {
        if self.interrupt.get().is_some() {
            return Err(EvalError::Interrupted);
        }
        match self.time.left() {
            Some(Duration::ZERO) => Err(EvalError::Timeout),
            _ => Ok(()),
        }
    }

    fn get_lock(&self, name: &str, timeout: Option<Duration>) -> EvalResult<bool> {
        let interrupted = || self.interrupt.get().is_some() || self.has_ended.load(Relaxed);
        let (timeout, is_cut_short) = self.at_most(timeout);
        if is_cut_short && timeout == Some(Duration::ZERO) {
            return Err(EvalError::Timeout);
        }
        match self.locks.get(self.connection, names::fold(name).into_owned(), timeout, &interrupted)? {
            Some(false) if is_cut_short => Err(EvalError::Timeout),
            Some(got) => Ok(got),
            None => Err(EvalError::Interrupted),
        }
    }

    fn release_lock(&self, name: &str) -> Option<bool> {
        self.locks.release(self.connection, &names::fold(name))
    }

    fn release_all_locks(&self) -> u64 {
        self.locks.release_all(self.connection)
    }

    fn lock_owner(&self, name: &str) -> Option<u64> {
        self.locks.owner(&names::fold(name)).map(u64::from)
    }

    fn statement_digest(&self, statement: &str, mode: SqlMode) -> EvalResult<StatementDigest> {
        let refused = |error: SqlError| EvalError::DigestOfNoStatement(error.message);
        let statements = parse(statement.as_bytes(), mode).map_err(|error| refused(error.into()))?;
        if let Some(second) = statements.get(1) {
            let near = second.span.text(statement.as_bytes());
            return Err(refused(ErrorCode::PARSE_ERROR.with(&[&near, &1])));
        }
        let is_none = |kind: &StatementKind| matches!(kind, StatementKind::Empty | StatementKind::Comment);
        if statements.iter().all(|statement| is_none(&statement.kind)) {
            return Err(refused(ErrorCode::EMPTY_QUERY.with(&[])));
        }
        let text = digest_text(statement.as_bytes(), mode, MOST_TEXT);
        Ok(StatementDigest { digest: digest(&text), text })
    }

    fn wait_for_transactions(&self, set: &str, timeout: Option<Duration>) -> EvalResult<Option<bool>> {
        let wait = |at_most, stop: &dyn Fn() -> bool| match (self.replication.get(), self.binary_log.get()) {
            // Whoever follows another has no log of its own yet.
            (_, Some(log)) => log.wait_for(set, at_most, stop),
            (Some(replication), None) => replication.wait_for(set, at_most, stop),
            (None, None) => GtidSet::of_mysql_text(set).ok().map(|set| set.is_empty()),
        };
        let (timeout, is_cut_short) = self.at_most(timeout);
        let interrupted = || self.interrupt.get().is_some();
        let mut arrived = None;
        blocking(|| arrived = wait(timeout.unwrap_or(Duration::MAX), &interrupted));
        match arrived {
            Some(false) if interrupted() => Err(EvalError::Interrupted),
            Some(false) if is_cut_short => Err(EvalError::Timeout),
            arrived => Ok(arrived),
        }
    }

    fn wait_for_place(
        &self,
        file: &str,
        position: u64,
        channel: Option<&str>,
        timeout: Option<Duration>,
    ) -> EvalResult<Option<i64>> {
        let Some(replication) = self.replication.get() else { return Ok(None) };
        let (timeout, is_cut_short) = self.at_most(timeout);
        let interrupted = || self.interrupt.get().is_some();
        let timeout = timeout.unwrap_or(Duration::MAX);
        let waited = blocking(|| replication.wait_for_place(file, position, channel, timeout, &interrupted));
        match waited {
            PlaceWait::Reached(moves) => Ok(Some(i64::try_from(moves).unwrap_or(i64::MAX))),
            PlaceWait::Late if interrupted() => Err(EvalError::Interrupted),
            PlaceWait::Late if is_cut_short => Err(EvalError::Timeout),
            PlaceWait::Late => Ok(Some(-1)),
            PlaceWait::Never => Ok(None),
            PlaceWait::Unclear => Err(EvalError::MultipleChannels),
        }
    }
}

impl SessionHost {
    /// The statement is over: it waits for no lock any more.
    pub fn call_off(&self) {
        self.locks.call_off(self.connection);
    }

    /// The time that is left of one, and whether that is the statement's own.
    fn at_most(&self, timeout: Option<Duration>) -> (Option<Duration>, bool) {
        let left = self.time.left();
        let is_cut_short = left.is_some_and(|left| timeout.is_none_or(|timeout| left < timeout));
        (if is_cut_short { left } else { timeout }, is_cut_short)
    }
}

/// Gives back a connection's locks at its end.
pub(super) struct EndOfLocks(pub Arc<SessionHost>);

impl Drop for EndOfLocks {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Relaxed);
        self.0.call_off();
        self.0.release_all_locks();
        self.0.replicas.lock().remove(&self.0.connection);
    }
}
