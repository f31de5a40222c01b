//! KILL, a vanished client and shutdown, as whatever runs long sees them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use avocet_types::error::{ErrorCode, SqlError};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// How others stop a session: set by KILL, by a client that vanished and by shutdown; read by whatever runs long.
#[derive(Debug, Default)]
pub struct Interrupt {
    state: AtomicU8,
    changed: Notify,
    /// For those that wait on a thread of theirs.
    asleep: Mutex<()>,
    woken: Condvar,
}

/// What an [`Interrupt`] asks for, from weakest to strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Interruption {
    /// KILL QUERY: the running statement ends with error 1317.
    Statement = 1,
    /// KILL, or the server stops: the connection ends too.
    Connection = 2,
}

impl Interrupt {
    /// Asks; a weaker request never replaces a stronger one.
    pub fn raise(&self, what: Interruption) {
        self.state.fetch_max(what as u8, Ordering::AcqRel);
        self.changed.notify_waiters();
        // Who has looked at the state before is asleep by now.
        drop(self.asleep.lock());
        self.woken.notify_all();
    }

    pub fn get(&self) -> Option<Interruption> {
        match self.state.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Interruption::Statement),
            _ => Some(Interruption::Connection),
        }
    }

    /// For a loop: `interrupt.check()?` every so many rows.
    pub fn check(&self) -> Result<(), SqlError> {
        match self.get() {
            None => Ok(()),
            Some(_) => Err(ErrorCode::QUERY_INTERRUPTED.with(&[])),
        }
    }

    /// Returns once there is something to obey; for `select!` beside a wait.
    pub async fn raised(&self) -> Interruption {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(what) = self.get() {
                return what;
            }
            changed.await;
        }
    }

    /// Blocks for some time, or until there is something to obey, which it returns.
    pub fn wait_for(&self, time: Duration) -> Option<Interruption> {
        let end = Instant::now() + time;
        let mut asleep = self.asleep.lock();
        loop {
            let what = self.get();
            if what.is_some() || self.woken.wait_until(&mut asleep, end).timed_out() {
                return what.or(self.get());
            }
        }
    }

    /// A KILL QUERY is spent with the statement it hit. The driver calls this before each statement.
    pub fn begin_statement(&self) {
        // Almost always already 0: do not dirty the cache line.
        if self.state.load(Ordering::Relaxed) == Interruption::Statement as u8 {
            let _ = self.state.compare_exchange(
                Interruption::Statement as u8,
                0,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }
}
