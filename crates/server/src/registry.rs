//! The connections that are open: their number is limited, SHOW PROCESSLIST lists them, KILL reaches them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use avocet_base::stripe::{self, STRIPES, Striped};
use avocet_channel::{Interrupt, Interruption};
use avocet_session::api::{AccountName, ConnectionRow, ConnectionTotals, Connections, Timeouts};
use avocet_types::error::{ErrorCode, SqlError};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::transport::{Line, Stall, Traffic};

/// So much of a statement is kept for SHOW PROCESSLIST.
const SHOWN_TEXT: usize = 1024;

/// So many clients at a time may be on their way to signing in. When one more comes, the one that has taken longest goes: clients that
/// say nothing keep nobody out.
const MOST_SIGNING_IN: usize = 256;

/// So long a statement that was interrupted may take to notice when the server stops.
const LAST_GRACE: Duration = Duration::from_secs(3);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Connect,
    Sleep,
    Query,
    Prepare,
    Execute,
    Fetch,
    Dump,
    Other,
}

impl Activity {
    const fn name(self) -> &'static str {
        match self {
            Self::Connect => "Connect",
            Self::Sleep => "Sleep",
            Self::Query => "Query",
            Self::Prepare => "Prepare",
            Self::Execute => "Execute",
            Self::Fetch => "Fetch",
            Self::Dump => "Binlog Dump GTID",
            Self::Other => "Daemon",
        }
    }
}

/// A connection as others see it.
pub struct Entry {
    pub id: u32,
    pub interrupt: Arc<Interrupt>,
    peer: String,
    /// It has proved who it is, and counts.
    admitted: AtomicBool,
    /// It was idle for too long, and ends for that.
    timed_out: AtomicBool,
    /// It is to end without another word: KILL, or its client is taken to be gone.
    cut_off: AtomicBool,
    /// The running statement has held its thread for long, without letting other connections go on.
    holds_thread: AtomicBool,
    clock: Arc<CoarseClock>,
    state: Mutex<State>,
}

/// Whole seconds since the server started, as often as somebody looks at the real clock: statements do not.
#[derive(Default)]
struct CoarseClock(AtomicU64);

impl CoarseClock {
    fn now_s(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct State {
    user: String,
    account: Option<AccountName>,
    database: Option<String>,
    activity: Activity,
    /// On the registry's clock.
    since_s: u64,
    /// The statement that runs, as it came; its buffer is reused.
    text: Vec<u8>,
    timeouts: Timeouts,
    /// The client's stream.
    line: Weak<Mutex<Line>>,
}

impl Entry {
    pub fn signed_in(&self, user: &str, account: &AccountName, database: Option<&str>) {
        let mut state = self.state.lock();
        state.user = user.to_owned();
        state.account = Some(account.clone());
        state.database = database.map(str::to_owned);
    }

    /// The bytes that went over its stream; none once that is gone.
    fn traffic(&self) -> Traffic {
        let line = self.state.lock().line.upgrade();
        line.map_or(Traffic::default(), |line| line.lock().traffic)
    }

    /// From now on the client is watched on its stream: whether it is still there, and how long it takes.
    pub fn watch(&self, line: &Arc<Mutex<Line>>) {
        self.state.lock().line = Arc::downgrade(line);
    }

    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.state.lock().timeouts = timeouts;
    }

    /// Notes that the running statement holds its thread, or does no more.
    pub fn set_holds_thread(&self, holds: bool) {
        self.holds_thread.store(holds, Ordering::Relaxed);
    }

    /// The statement that runs, as far as it is kept, and how many seconds it has run.
    pub fn statement(&self) -> (String, u64) {
        let state = self.state.lock();
        let text = String::from_utf8_lossy(&state.text).into_owned();
        (text, self.clock.now_s().saturating_sub(state.since_s))
    }

    /// Notes what the connection does from now on.
    pub fn begin(&self, activity: Activity, text: &[u8]) {
        let shown = &text[..text.len().min(SHOWN_TEXT)];
        let mut state = self.state.lock();
        state.activity = activity;
        state.since_s = self.clock.now_s();
        state.text.clear();
        state.text.extend_from_slice(shown);
    }

    pub fn sleep(&self) {
        let mut state = self.state.lock();
        state.activity = Activity::Sleep;
        state.since_s = self.clock.now_s();
    }

    fn row(&self) -> ConnectionRow {
        let state = self.state.lock();
        let asleep = matches!(state.activity, Activity::Sleep | Activity::Connect);
        let line = state.line.upgrade();
        let is_sending = || {
            let stalled = line.as_ref().and_then(|line| line.lock().stalled());
            matches!(stalled, Some((Stall::Writing, _)))
        };
        ConnectionRow {
            id: self.id,
            user: state.user.clone(),
            account: state.account.clone(),
            host: self.peer.clone(),
            database: state.database.clone(),
            command: state.activity.name(),
            time_s: self.clock.now_s().saturating_sub(state.since_s),
            state: match asleep {
                true => "",
                false if self.holds_thread.load(Ordering::Relaxed) => "holding its thread",
                false if is_sending() => "Sending to client",
                false => "executing",
            },
            info: (!asleep).then(|| String::from_utf8_lossy(&state.text).into_owned()),
        }
    }

    pub fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Relaxed)
    }

    pub fn has_timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }

    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Ends it if its client is gone or takes too long. `now_s`: on the registry's clock.
    fn end_if_overdue(&self, now_s: u64) {
        let state = self.state.lock();
        let (timeouts, activity) = (state.timeouts, state.activity);
        let since = now_s.saturating_sub(state.since_s);
        let line = state.line.upgrade();
        drop(state);
        if activity == Activity::Sleep && since > timeouts.idle.as_secs() {
            self.timed_out.store(true, Ordering::Relaxed);
            return self.interrupt.raise(Interruption::Connection);
        }
        let Some(line) = line else { return };
        let line = line.lock();
        let is_overdue = line.stalled().is_some_and(|(stall, time)| match stall {
            Stall::Reading => time > timeouts.read,
            Stall::Writing => time > timeouts.write,
        });
        // Whoever awaits something sees for itself when its client hangs up, unless that has sent more before; a statement that
        // blocks does not.
        let is_blocked = !matches!(activity, Activity::Sleep | Activity::Connect) && since > 0;
        if is_overdue || (is_blocked && line.transport.has_hung_up()) {
            self.cut_off.store(true, Ordering::Relaxed);
            self.interrupt.raise(Interruption::Connection);
        }
    }
}

/// All open connections.
pub struct Registry {
    connections: Mutex<Connected>,
    started: Instant,
    clock: Arc<CoarseClock>,
    statements: [Striped<AtomicU64>; STRIPES],
    /// How often a statement held its thread for long.
    held_threads: AtomicU64,
    stopping: AtomicBool,
    left: Notify,
}

struct Connected {
    by_id: HashMap<u32, Arc<Entry>>,
    /// Those of them that have not signed in; older ones first.
    signing_in: BTreeSet<u32>,
    admitted: usize,
    next_id: u32,
    attempts: u64,
    refused: u64,
    most_admitted: usize,
    /// Of the connections that have ended.
    traffic: Traffic,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            connections: Mutex::new(Connected {
                by_id: HashMap::new(),
                signing_in: BTreeSet::new(),
                admitted: 0,
                next_id: 1,
                attempts: 0,
                refused: 0,
                most_admitted: 0,
                traffic: Traffic::default(),
            }),
            started: Instant::now(),
            clock: Arc::default(),
            statements: Default::default(),
            held_threads: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            left: Notify::new(),
        }
    }
}

impl Registry {
    /// Takes note of a client that is about to sign in; error 1053 if the server stops.
    pub fn enter(self: &Arc<Self>, peer: String) -> Result<Registration, SqlError> {
        let mut connected = self.connections.lock();
        if self.is_stopping() {
            return Err(ErrorCode::SERVER_SHUTDOWN.with(&[]));
        }
        connected.attempts += 1;
        if connected.signing_in.len() >= MOST_SIGNING_IN
            && let Some(oldest) = connected.signing_in.pop_first()
            && let Some(entry) = connected.by_id.get(&oldest)
        {
            entry.interrupt.raise(Interruption::Connection);
        }
        while connected.next_id == 0 || connected.by_id.contains_key(&connected.next_id) {
            connected.next_id = connected.next_id.wrapping_add(1);
        }
        let id = connected.next_id;
        connected.next_id = id.wrapping_add(1);
        let state = State {
            user: "unauthenticated user".to_owned(),
            account: None,
            database: None,
            activity: Activity::Connect,
            since_s: self.clock.now_s(),
            text: Vec::new(),
            timeouts: Timeouts::default(),
            line: Weak::new(),
        };
        let clock = self.clock.clone();
        let entry = Arc::new(Entry {
            id,
            interrupt: Arc::default(),
            peer,
            admitted: AtomicBool::new(false),
            timed_out: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            holds_thread: AtomicBool::new(false),
            clock,
            state: Mutex::new(state),
        });
        connected.by_id.insert(id, entry.clone());
        connected.signing_in.insert(id);
        Ok(Registration { registry: self.clone(), entry })
    }

    /// Admits a client that has proved who it is; error 1040 if `max` have been admitted and are there.
    pub fn admit(&self, entry: &Entry, max: usize) -> Result<(), SqlError> {
        let mut connected = self.connections.lock();
        if connected.admitted >= max {
            return Err(ErrorCode::CON_COUNT_ERROR.with(&[]));
        }
        connected.admitted += 1;
        connected.most_admitted = connected.most_admitted.max(connected.admitted);
        connected.signing_in.remove(&entry.id);
        entry.admitted.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub fn count(&self) -> usize {
        self.connections.lock().by_id.len()
    }

    pub fn count_statement(&self) {
        self.statements[stripe::own()].0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// The text of COM_STATISTICS.
    pub fn statistics(&self) -> String {
        let uptime = self.started.elapsed().as_secs();
        let questions: u64 = self.statements.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum();
        let average = questions as f64 / uptime.max(1) as f64;
        format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: 0  Flush tables: 0  \
             Open tables: 0  Queries per second avg: {average:.3}",
            self.count()
        )
    }

    fn each(&self, mut visit: impl FnMut(&Entry)) {
        let entries: Vec<_> = self.connections.lock().by_id.values().cloned().collect();
        entries.iter().for_each(|entry| visit(entry));
    }

    fn tick(&self) {
        self.clock.0.store(self.started.elapsed().as_secs(), Ordering::Relaxed);
    }

    /// Ends connections whose clients are gone or take too long; to be called every second.
    pub fn end_overdue(&self) {
        self.tick();
        let now_s = self.clock.now_s();
        self.each(|entry| entry.end_if_overdue(now_s));
    }

    /// Notes that a statement holds its thread (an id of 0: nobody is known to). What it is.
    pub fn note_held_thread(&self, connection: u32) -> Option<(String, u64)> {
        self.held_threads.fetch_add(1, Ordering::Relaxed);
        let entry = self.connections.lock().by_id.get(&connection).cloned()?;
        entry.set_holds_thread(true);
        Some(entry.statement())
    }

    /// The thread goes on.
    pub fn note_released_thread(&self, connection: u32) {
        if let Some(entry) = self.connections.lock().by_id.get(&connection) {
            entry.set_holds_thread(false);
        }
    }

    /// Lets nobody in any more, ends idle connections, gives running statements `grace` to finish, then interrupts those too and
    /// waits until all are gone, for some seconds at most: nothing that is not committed counts.
    pub async fn drain(&self, grace: Duration) {
        self.stopping.store(true, Ordering::SeqCst);
        // A connection that goes to sleep after this looks at `stopping` itself.
        self.each(|entry| {
            if entry.state.lock().activity != Activity::Sleep {
                return;
            }
            entry.interrupt.raise(Interruption::Connection);
        });
        if tokio::time::timeout(grace, self.all_left()).await.is_ok() {
            return;
        }
        self.each(|entry| entry.interrupt.raise(Interruption::Connection));
        if tokio::time::timeout(LAST_GRACE, self.all_left()).await.is_err() {
            self.each(|entry| {
                let (statement, seconds) = entry.statement();
                tracing::warn!(connection = entry.id, seconds, statement, "does not end; left behind");
            });
        }
    }

    async fn all_left(&self) {
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Connections for Registry {
    fn list(&self) -> Vec<ConnectionRow> {
        let mut rows = Vec::new();
        self.each(|entry| rows.push(entry.row()));
        rows.sort_unstable_by_key(|row| row.id);
        rows
    }

    fn kill(&self, connection_id: u32, what: Interruption) -> Result<(), SqlError> {
        match self.connections.lock().by_id.get(&connection_id) {
            Some(entry) => {
                if what == Interruption::Connection {
                    entry.cut_off.store(true, Ordering::Relaxed);
                }
                entry.interrupt.raise(what);
                Ok(())
            }
            None => Err(ErrorCode::NO_SUCH_THREAD.with(&[&connection_id])),
        }
    }

    fn held_threads(&self) -> u64 {
        self.held_threads.load(Ordering::Relaxed)
    }

    fn totals(&self) -> ConnectionTotals {
        // Under one lock: a connection that ends meanwhile would be counted twice.
        let connected = self.connections.lock();
        let Connected { attempts, refused, mut traffic, .. } = *connected;
        let mut running = 0;
        for entry in connected.by_id.values() {
            running += u64::from(!matches!(entry.state.lock().activity, Activity::Sleep | Activity::Connect));
            traffic.add(entry.traffic());
        }
        ConnectionTotals {
            attempts,
            refused,
            most: connected.most_admitted as u64,
            connected: connected.admitted as u64,
            running,
            received: traffic.received,
            sent: traffic.sent,
        }
    }

    fn set_database(&self, connection_id: u32, database: Option<&str>) {
        if let Some(entry) = self.connections.lock().by_id.get(&connection_id) {
            entry.state.lock().database = database.map(str::to_owned);
        }
    }
}

/// A connection's place among the open ones, given up when dropped.
pub struct Registration {
    registry: Arc<Registry>,
    entry: Arc<Entry>,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "connection {}", self.entry.id)
    }
}

impl std::ops::Deref for Registration {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let traffic = self.entry.traffic();
        let mut connected = self.registry.connections.lock();
        connected.traffic.add(traffic);
        connected.by_id.remove(&self.entry.id);
        connected.signing_in.remove(&self.entry.id);
        let was_admitted = self.entry.admitted.load(Ordering::Relaxed);
        connected.admitted -= usize::from(was_admitted);
        connected.refused += u64::from(!was_admitted);
        drop(connected);
        self.registry.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_connection_has_gone() {
        let registry = Arc::new(Registry::default());
        let first = registry.enter("a:1".into()).expect("room");
        registry.admit(&first, 1).expect("room");
        let second = registry.enter("b:1".into()).expect("it may sign in");
        assert_eq!(registry.admit(&second, 1).expect_err("full").errno, 1040);
        drop(first);
        registry.admit(&second, 1).expect("room again");
        assert_eq!(second.id, 2);
    }

    #[test]
    fn those_that_do_not_sign_in_keep_nobody_out() {
        let registry = Arc::new(Registry::default());
        let silent: Vec<_> =
            (0..2 * MOST_SIGNING_IN).map(|_| registry.enter("a:1".into()).expect("room")).collect();
        let sent_away = silent.iter().filter(|entry| entry.interrupt.get().is_some()).count();
        assert_eq!(sent_away, MOST_SIGNING_IN);
        assert!(
            silent[0].interrupt.get().is_some() && silent[2 * MOST_SIGNING_IN - 1].interrupt.get().is_none()
        );
        // Those that were sent away and have not gone yet do not count.
        let one = registry.enter("b:1".into()).expect("room");
        registry.admit(&one, 1).expect("the only one");
        drop(silent);
    }

    #[test]
    fn kill_reaches_only_who_is_there() {
        let registry = Arc::new(Registry::default());
        let one = registry.enter("a:1".into()).expect("room");
        assert_eq!(registry.kill(77, Interruption::Statement).expect_err("nobody").errno, 1094);
        registry.kill(one.id, Interruption::Statement).expect("there");
        assert!(one.interrupt.check().is_err());
        one.interrupt.begin_statement();
        assert!(one.interrupt.check().is_ok());
    }

    #[tokio::test]
    async fn draining_ends_sleepers_at_once_and_others_after_the_grace() {
        let registry = Arc::new(Registry::default());
        for activity in [Activity::Sleep, Activity::Query] {
            let connection = registry.enter("a:1".into()).expect("room");
            if activity == Activity::Sleep {
                connection.sleep()
            } else {
                connection.begin(activity, b"")
            }
            tokio::spawn(async move { connection.interrupt.raised().await });
        }
        registry.drain(Duration::from_millis(10)).await;
        assert_eq!(registry.count(), 0);
        assert_eq!(registry.enter("b:1".into()).expect_err("stopping").errno, 1053);
    }
}
