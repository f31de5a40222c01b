//! How far the one who is told of changes has come, for checkpoints, which must not go beyond.

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
    has_ended: bool,
}

impl Gate {
    pub fn reach(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        if lsn > state.reached {
            state.reached = lsn;
            self.moved.notify_all();
        }
    }

    /// Nobody is told any more.
    pub fn end(&self) {
        self.state.lock().has_ended = true;
        self.moved.notify_all();
    }

    pub fn wait_for(&self, lsn: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        self.moved.wait_while(&mut state, |state| state.reached < lsn && !state.has_ended);
        match state.reached < lsn {
            false => Ok(()),
            true => Err(EngineError::Stopped("change capture has ended".into())),
        }
    }
}
