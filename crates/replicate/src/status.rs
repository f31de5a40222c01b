//! What is known of the replication at this moment: for SHOW REPLICA STATUS, for waits, and for whoever watches a copy.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::gtid::GtidSet;
use crate::state::{LogPlace, State, TableName, TableState};

/// What the connection to the source is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Connecting,
    Following,
    /// Somebody has to look.
    Halted,
    Stopped,
}

/// Whether the source's commits wait for this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SemiSync {
    /// Nobody has asked for it.
    #[default]
    Off,
    /// It was asked for, and why it is not so.
    Not(String),
    On,
}

/// A moment's view.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub phase: Phase,
    /// Host, port and user.
    pub source: (String, u16, String),
    pub source_uuid: String,
    pub place: LogPlace,
    pub executed: GtidSet,
    /// The source gives no GTIDs.
    pub by_place: bool,
    pub last_error: Option<String>,
    /// Seconds between a commit at the source and now, of the newest that is in force; `None` if nothing is waited for.
    pub seconds_behind: Option<u64>,
    /// Since the server started.
    pub transactions: u64,
    pub changes: u64,
    /// In a second, of the last ones.
    pub transactions_per_second: f64,
    pub changes_per_second: f64,
    /// How far the source is ahead; `None` if it does not say.
    pub ahead: Option<Ahead>,
    /// Whether the source's commits wait until they are durable here.
    pub semi_sync: SemiSync,
    /// Tables that are not followed (yet), and why.
    pub tables: Vec<(TableName, String)>,
}

/// How far the source is ahead of what is visible here, as of the last second.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    /// `None` if the source gives them no identifiers.
    pub transactions: Option<u64>,
    /// Of its log; `None` while it is not known what of that is visible here.
    pub bytes: Option<u64>,
    /// Where its log ends.
    pub end: LogPlace,
}

/// How far a copy is.
#[derive(Clone, Debug)]
pub struct Progress {
    pub name: TableName,
    pub rows: u64,
    /// The source's estimate.
    pub of_about: u64,
    pub bytes: u64,
    pub since: Instant,
}

#[derive(Default)]
struct Inner {
    shown: Snapshot,
    committed_us: i64,
    is_idle: bool,
    copies: BTreeMap<TableName, Progress>,
    copied_bytes: u64,
    /// When, and how many transactions and changes there had been by then.
    samples: VecDeque<(Instant, u64, u64)>,
    followed_from_start: bool,
    /// A commit was lost, and how: until the next start nothing is followed, whatever a stream brings.
    lost: Option<String>,
    /// All that the source has written up to here is visible; `None` until that is known of this stream.
    visible: Option<VisiblePlace>,
    /// How often that has moved.
    moves: u64,
    /// Tables of databases that other channels follow, and whose those are.
    others: BTreeMap<TableName, String>,
    /// Who waits for that to move.
    waiting: Vec<Waker>,
}

/// A place in the log of one server: those of another one say nothing about it, whatever its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisiblePlace {
    /// Its identity.
    pub source: String,
    pub place: LogPlace,
}

impl VisiblePlace {
    /// Whether all before a place of a server's log is visible.
    fn reaches(&self, source: &str, place: &LogPlace) -> bool {
        self.source == source && place.is_in_log_of(&self.place) && self.place.reaches(place)
    }
}

/// It does not become visible until somebody mends what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl Inner {
    fn broken(&self) -> Option<Broken> {
        let error = || self.shown.last_error.clone();
        match self.shown.phase {
            Phase::Halted => Some(Broken(error().unwrap_or_else(|| "it has halted".into()))),
            Phase::Stopped => Some(Broken(error().unwrap_or_else(|| "it was stopped".into()))),
            Phase::Connecting | Phase::Following => None,
        }
    }
}

/// The time was too short, or a wait was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late;

/// Rates are of so many seconds.
const SAMPLES: usize = 10;
/// How often who waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The state that others see.
#[derive(Default)]
pub struct Status {
    inner: Mutex<Inner>,
    moved: Condvar,
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Status").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl Status {
    pub fn set_source(&self, host: &str, port: u16, user: &str) {
        self.inner.lock().shown.source = (host.to_owned(), port, user.to_owned());
    }

    /// Another start.
    pub fn begin(&self) {
        let mut inner = self.inner.lock();
        inner.shown.phase = Phase::Connecting;
        inner.shown.last_error = None;
        inner.lost = None;
        inner.visible = None;
        inner.shown.ahead = None;
        inner.samples.clear();
        inner.followed_from_start = false;
    }

    /// A commit did not become durable: what is visible is not what was followed.
    pub fn lose(&self, why: String) {
        self.inner.lock().lost = Some(why);
        self.set_phase(Phase::Halted, None);
        self.set_visible_place(None);
    }

    pub fn set_phase(&self, phase: Phase, error: Option<String>) {
        let mut inner = self.inner.lock();
        let (phase, error) = match (&inner.lost, phase) {
            (None, phase) => (phase, error),
            (Some(why), Phase::Stopped) => (Phase::Stopped, Some(why.clone())),
            (Some(why), _) => (Phase::Halted, Some(why.clone())),
        };
        inner.shown.phase = phase;
        if matches!(phase, Phase::Halted | Phase::Stopped) {
            inner.shown.ahead = None;
            inner.samples.clear();
        }
        if error.is_some() || phase == Phase::Following {
            inner.shown.last_error = error;
        }
        if phase != Phase::Following && inner.shown.semi_sync == SemiSync::On {
            inner.shown.semi_sync = SemiSync::Not("there is no stream from the source".into());
        }
        inner.waiting.drain(..).for_each(Waker::wake);
        self.moved.notify_all();
    }

    pub fn set_semi_sync(&self, semi_sync: SemiSync) {
        self.inner.lock().shown.semi_sync = semi_sync;
    }

    pub fn set_place(&self, place: &LogPlace, is_idle: bool) {
        let mut inner = self.inner.lock();
        inner.shown.place.clone_from(place);
        inner.is_idle = is_idle;
    }

    /// Why a table is not followed (yet).
    pub fn why_not_followed(&self, database: &str, table: &str) -> Option<String> {
        let inner = self.inner.lock();
        let found =
            inner.shown.tables.iter().find(|(name, _)| name.database == database && name.table == table);
        found.map(|(_, state)| state.clone())
    }

    /// What is visible to new statements from now on.
    pub fn set_visible(&self, executed: GtidSet, committed_us: i64) {
        let mut inner = self.inner.lock();
        inner.shown.executed = executed;
        inner.committed_us = inner.committed_us.max(committed_us);
        self.moved.notify_all();
    }

    /// All that stands before this place in the source's log is visible; `None`: places of another stream say nothing any more.
    pub fn set_visible_place(&self, visible: Option<VisiblePlace>) {
        let mut inner = self.inner.lock();
        inner.moves += u64::from(visible.is_some() && visible != inner.visible);
        inner.visible = visible;
        inner.waiting.drain(..).for_each(Waker::wake);
        self.moved.notify_all();
    }

    /// Whether what is visible is of another server than this.
    pub fn is_of_other(&self, source: &str) -> bool {
        self.inner.lock().visible.as_ref().is_some_and(|visible| visible.source != source)
    }

    /// Ready when all before this place in the log of that server is visible.
    ///
    /// # Errors
    /// If it will not be, as things are.
    pub fn poll_visible(
        &self,
        source: &str,
        place: &LogPlace,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Broken>> {
        let mut inner = self.inner.lock();
        if let Some(broken) = inner.broken() {
            return Poll::Ready(Err(broken));
        }
        if inner.visible.as_ref().is_some_and(|visible| visible.reaches(source, place)) {
            return Poll::Ready(Ok(()));
        }
        if !inner.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// As [`Self::poll_visible`], for whoever blocks; false if the time was too short, it is broken, or `stop` says so.
    pub fn wait_visible(
        &self,
        source: &str,
        place: &LogPlace,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> bool {
        let begin = Instant::now();
        let mut inner = self.inner.lock();
        while !inner.visible.as_ref().is_some_and(|visible| visible.reaches(source, place)) {
            let left = at_most.saturating_sub(begin.elapsed());
            if left.is_zero() || inner.broken().is_some() || stop() {
                return false;
            }
            self.moved.wait_for(&mut inner, left.min(LOOK));
        }
        true
    }

    /// Waits until all before this place in the source's log is visible: how often what is visible moved meanwhile. `None` if nothing is
    /// followed (any more), or the place is in no log of the source.
    pub fn wait_place(
        &self,
        place: &LogPlace,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Option<Result<u64, Late>> {
        let begin = Instant::now();
        let mut inner = self.inner.lock();
        let before = inner.moves;
        loop {
            if !place.is_in_a_log() || inner.broken().is_some() {
                return None;
            }
            if let Some(VisiblePlace { place: visible, .. }) = &inner.visible {
                if !place.is_in_log_of(visible) {
                    return None;
                }
                if visible.reaches(place) {
                    return Some(Ok(inner.moves - before));
                }
            }
            let left = at_most.saturating_sub(begin.elapsed());
            if left.is_zero() || stop() {
                return Some(Err(Late));
            }
            self.moved.wait_for(&mut inner, left.min(LOOK));
        }
    }

    /// Why nothing more becomes visible, if that is so.
    pub fn broken(&self) -> Option<Broken> {
        self.inner.lock().broken()
    }

    pub fn count(&self, transactions: u64, changes: u64) {
        let mut inner = self.inner.lock();
        inner.shown.transactions += transactions;
        inner.shown.changes += changes;
    }

    pub fn set_tables(&self, state: &State) {
        let mut inner = self.inner.lock();
        inner.shown.source_uuid.clone_from(&state.source);
        inner.shown.by_place = state.place.is_some();
        let told = |state: &TableState| match state {
            TableState::Waiting { why } => format!("waiting to be copied: {why}"),
            TableState::Copying { .. } => "being copied".to_owned(),
            TableState::CatchingUp { .. } => "copied; the stream is not there yet".to_owned(),
            TableState::Refused { why } => format!("not followed: {why}"),
        };
        inner.shown.tables = state.tables.iter().map(|(name, state)| (name.clone(), told(state))).collect();
        inner.copies.retain(|name, _| matches!(state.tables.get(name), Some(TableState::Copying { .. })));
        inner.followed_from_start |=
            state.tables.values().all(|state| matches!(state, TableState::Refused { .. }));
        self.moved.notify_all();
    }

    /// A table is left out, since another channel follows its database.
    pub fn tell_other(&self, name: &TableName, channel: &str) {
        let why = format!(
            "not followed: its database is followed from channel '{channel}'; a database is of one channel: \
             rename it at one of the sources"
        );
        if self.inner.lock().others.insert(name.clone(), why.clone()).is_none() {
            tracing::warn!(table = %name, "{why}");
        }
    }

    /// Another stream begins: what is left out is told anew.
    pub fn forget_others(&self) {
        self.inner.lock().others.clear();
    }

    pub fn copy_begins(&self, name: &TableName, of_about: u64) {
        let progress = Progress { name: name.clone(), rows: 0, of_about, bytes: 0, since: Instant::now() };
        self.inner.lock().copies.entry(name.clone()).or_insert(progress).of_about = of_about;
    }

    pub fn copied(&self, name: &TableName, rows: u64, bytes: u64) {
        let mut inner = self.inner.lock();
        inner.copied_bytes += bytes;
        if let Some(progress) = inner.copies.get_mut(name) {
            progress.rows += rows;
            progress.bytes += bytes;
        }
    }

    /// What was asked in this second; `None` if the source did not say.
    pub fn sample(&self, ahead: Option<Ahead>) {
        let mut inner = self.inner.lock();
        inner.shown.ahead = ahead;
        let sample = (Instant::now(), inner.shown.transactions, inner.shown.changes);
        inner.samples.push_back(sample);
        if inner.samples.len() > SAMPLES {
            inner.samples.pop_front();
        }
    }

    /// All that stands before this place in the source's log is visible.
    pub fn visible_place(&self) -> Option<LogPlace> {
        self.inner.lock().visible.as_ref().map(|visible| visible.place.clone())
    }

    /// As [`Self::visible_place`], if the source is this server.
    pub fn visible_place_of(&self, source: &str) -> Option<LogPlace> {
        let inner = self.inner.lock();
        inner.visible.as_ref().filter(|visible| visible.source == source).map(|visible| visible.place.clone())
    }

    pub fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        let mut shown = inner.shown.clone();
        shown.tables.extend(inner.others.iter().map(|(name, why)| (name.clone(), why.clone())));
        if let (Some(first), Some(last)) = (inner.samples.front(), inner.samples.back()) {
            let seconds = last.0.duration_since(first.0).as_secs_f64().max(1e-3);
            shown.transactions_per_second = (last.1 - first.1) as f64 / seconds;
            shown.changes_per_second = (last.2 - first.2) as f64 / seconds;
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let behind = (now.as_micros() as i64 - inner.committed_us).max(0) as u64 / 1_000_000;
        // After a start the stream may not have told yet what comes.
        let has_all =
            shown.ahead.as_ref().is_none_or(|ahead| ahead.transactions.is_none_or(|behind| behind == 0));
        shown.seconds_behind = match shown.phase {
            Phase::Following if inner.is_idle && has_all => Some(0),
            Phase::Following => Some(behind),
            _ => None,
        };
        shown
    }

    pub fn copies(&self) -> Vec<Progress> {
        self.inner.lock().copies.values().cloned().collect()
    }

    /// Bytes of rows that were copied, as they came over the network.
    pub fn copied_bytes(&self) -> u64 {
        self.inner.lock().copied_bytes
    }

    /// Whether every table that can be followed has been followed at some moment.
    pub fn has_copied_all(&self) -> bool {
        self.inner.lock().followed_from_start
    }

    /// As [`Self::wait_for`], but no longer than anything becomes visible at all.
    ///
    /// # Errors
    /// Why nothing more becomes visible.
    pub fn wait_unless_broken(
        &self,
        wanted: &GtidSet,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, Broken> {
        let begin = Instant::now();
        let mut inner = self.inner.lock();
        while !inner.shown.executed.contains_all(wanted) {
            if let Some(broken) = inner.broken() {
                return Err(broken);
            }
            let left = at_most.saturating_sub(begin.elapsed());
            if left.is_zero() || stop() {
                return Ok(false);
            }
            self.moved.wait_for(&mut inner, left.min(LOOK));
        }
        Ok(true)
    }

    /// Waits until all of these transactions are visible here; false if the time was too short, or `stop` says so.
    pub fn wait_for(&self, wanted: &GtidSet, at_most: Duration, stop: &dyn Fn() -> bool) -> bool {
        let begin = Instant::now();
        let mut inner = self.inner.lock();
        while !inner.shown.executed.contains_all(wanted) {
            let left = at_most.saturating_sub(begin.elapsed());
            if left.is_zero() || stop() {
                return false;
            }
            self.moved.wait_for(&mut inner, left.min(LOOK));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, place: LogPlace) -> VisiblePlace {
        VisiblePlace { source: source.into(), place }
    }

    #[test]
    fn a_wait_for_a_place_ends_as_source_pos_wait_does() {
        let status = Status::default();
        let place = |file: &str, offset| LogPlace { file: file.into(), offset };
        let wait =
            |file, offset| status.wait_place(&place(file, offset), Duration::from_millis(1), &|| false);
        assert_eq!(wait("log", 4), None, "no file of a log");
        assert_eq!(wait("log.000001", 4), Some(Err(Late)), "nothing is known yet");
        status.set_visible_place(Some(of("a", place("log.000002", 100))));
        assert_eq!(wait("log.000001", 900), Some(Ok(0)));
        assert_eq!(wait("log.2", 100), Some(Ok(0)), "numbers are compared");
        assert_eq!(wait("log.000002", 101), Some(Err(Late)));
        assert_eq!(wait("other.000001", 4), None);
        assert_eq!(wait("log.x", 4), None);
        let stopped = status.wait_place(&place("log.000003", 4), Duration::MAX, &|| true);
        assert_eq!(stopped, Some(Err(Late)));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| status.wait_place(&place("log.000003", 4), Duration::MAX, &|| false));
            while !waiter.is_finished() {
                status.set_visible_place(Some(of("a", place("log.000003", 4))));
            }
            // It is seen to move, or has moved before the wait began.
            assert!(matches!(waiter.join(), Ok(Some(Ok(0 | 1)))));
        });
        status.set_phase(Phase::Stopped, None);
        assert_eq!(wait("log.000001", 4), None);
    }

    #[test]
    fn a_place_becomes_visible_or_never_will() {
        let status = Status::default();
        let place = |file: &str, offset| LogPlace { file: file.into(), offset };
        let mut cx = Context::from_waker(Waker::noop());
        let mut poll_of = |source, file, offset| status.poll_visible(source, &place(file, offset), &mut cx);
        assert!(poll_of("a", "log.000001", 4).is_pending());
        status.set_visible_place(Some(of("a", place("log.000002", 100))));
        // Another server at the same address, and another log of the same server.
        assert!(poll_of("b", "log.000001", 4).is_pending());
        assert!(poll_of("a", "other.000001", 4).is_pending());
        assert!(status.is_of_other("b") && !status.is_of_other("a"));
        assert!(!status.wait_visible("b", &place("log.000001", 4), Duration::ZERO, &|| false));
        assert!(status.wait_visible("a", &place("log.000001", 4), Duration::ZERO, &|| false));
        assert_eq!(status.visible_place_of("b"), None);
        let mut poll = |file, offset| poll_of("a", file, offset);
        assert_eq!(poll("log.000001", 900), Poll::Ready(Ok(())));
        assert_eq!(poll("log.000002", 100), Poll::Ready(Ok(())));
        assert!(poll("log.000002", 101).is_pending());
        status.set_visible_place(None);
        assert!(poll("log.000001", 4).is_pending());
        status.set_phase(Phase::Halted, Some("an event is not known".into()));
        assert_eq!(poll("log.000001", 4), Poll::Ready(Err(Broken("an event is not known".into()))));
    }
}
