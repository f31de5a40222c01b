//! How far the one who is told of changes has come: for checkpoints, which must not go beyond, and for those who ask what was told.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_base::Lsn;
use parking_lot::{Condvar, Mutex};

use crate::error::{EngineError, Result};

#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    reached: Lsn,
    /// All before this was told, and can be seen by others.
    shown: Lsn,
    has_ended: bool,
    /// Why the one who is told cannot go on for now.
    stalled: Option<EngineError>,
    /// The engine is ending.
    is_closing: bool,
}

impl Gate {
    pub fn reach(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        if lsn > state.reached {
            state.reached = lsn;
            self.moved.notify_all();
        }
    }

    pub fn show(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        if lsn > state.shown {
            state.shown = lsn;
            self.moved.notify_all();
        }
    }

    /// Waits until all before this can be seen, but no longer than this, and not for one who is stalled; whether it can.
    pub fn wait_until_shown(&self, lsn: Lsn, at_most: Duration, stop: &dyn Fn() -> bool) -> bool {
        const LOOK: Duration = Duration::from_millis(50);
        let begin = Instant::now();
        let mut state = self.state.lock();
        while state.shown < lsn {
            let left = at_most.saturating_sub(begin.elapsed());
            if left.is_zero() || state.has_ended || state.stalled.is_some() || stop() {
                return false;
            }
            self.moved.wait_for(&mut state, left.min(LOOK));
        }
        true
    }

    /// Nobody is told any more.
    pub fn end(&self) {
        self.state.lock().has_ended = true;
        self.moved.notify_all();
    }

    /// The engine is ending: who is stalled waits no longer.
    pub fn close(&self) {
        self.state.lock().is_closing = true;
        self.moved.notify_all();
    }

    /// Waits until all before this was acknowledged; but not for one who is stalled, since that may take any time.
    pub fn wait_for(&self, lsn: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        let goes_on = |state: &State| !state.has_ended && state.stalled.is_none();
        self.moved.wait_while(&mut state, |state| state.reached < lsn && goes_on(state));
        match (state.reached < lsn, &state.stalled) {
            (false, _) => Ok(()),
            (true, Some(why)) => Err(why.clone()),
            (true, None) => Err(EngineError::Stopped("change capture has ended".into())),
        }
    }
}

/// A sink's way to say that it cannot go on for now: its disk is full. What is committed stays in the redo log meanwhile, and
/// checkpoints fail.
#[derive(Clone)]
pub struct SinkStall(pub(crate) Arc<Gate>);

impl SinkStall {
    /// Waits for so long; false if the engine is ending.
    pub fn wait(&self, why: &io::Error, at_most: Duration) -> bool {
        let mut state = self.0.state.lock();
        if state.stalled.is_none() {
            state.stalled = Some(EngineError::io("change capture", why));
            self.0.moved.notify_all();
        }
        if !state.is_closing {
            self.0.moved.wait_for(&mut state, at_most);
        }
        !state.is_closing
    }

    /// It goes on.
    pub fn end(&self) {
        self.0.state.lock().stalled = None;
    }
}
