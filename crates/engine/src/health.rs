//! Whether the engine may go on, and what went wrong in the background.

use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::error::{EngineError, ErrorKind, Result};

#[derive(Default)]
pub(crate) struct Health {
    stopped: OnceLock<String>,
    /// Why background work failed last.
    last_error: Mutex<Option<String>>,
}

impl Health {
    /// Ends all work after an error that nothing may follow.
    pub fn stop(&self, why: &EngineError) {
        self.stop_for(why.to_string());
    }

    /// Ends all work for a reason that is no error of a caller's.
    pub fn stop_for(&self, why: String) {
        let _ = self.stopped.set(why);
    }

    /// After an error of the log: a record that it refused did not happen; after anything else nothing may go on.
    pub fn stop_unless_refused(&self, why: &EngineError) {
        let refused = matches!(why.kind(), ErrorKind::NoSpace | ErrorKind::User);
        if matches!(why, EngineError::Log(_)) && !refused {
            self.stop(why);
        }
    }

    pub fn check(&self) -> Result<()> {
        match self.stopped.get() {
            None => Ok(()),
            Some(why) => Err(EngineError::Stopped(why.clone())),
        }
    }

    /// Background work has failed: reported, once if it fails in the same way again; damage stops the engine.
    pub fn note_background_error(&self, error: &EngineError) {
        let text = error.to_string();
        let mut last = self.last_error.lock();
        if last.as_ref() != Some(&text) {
            eprintln!("avocet: background maintenance: {text}");
            *last = Some(text);
        }
        drop(last);
        if error.kind() == ErrorKind::Corrupt {
            self.stop(error);
        }
    }
}
