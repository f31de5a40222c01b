//! A disk that is full: the writer waits for room, as MySQL's does. What is committed stays in the redo log meanwhile.

use std::io;
use std::time::Duration;

use avocet_engine::SinkStall;

/// So often it looks whether there is room again.
const LOOK: Duration = Duration::from_millis(500);

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Who waits for room, unless the log is only being opened.
#[derive(Default)]
pub(super) struct Room(pub Option<SinkStall>);

impl Room {
    /// Tries until there is room for what is tried, or the engine ends: then the error is that of the disk.
    pub fn wait_for<T>(&self, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut has_waited = false;
        loop {
            let outcome = attempt();
            let (stall, error) = match (&self.0, outcome) {
                (Some(stall), Err(error)) if is_full(&error) => (stall, error),
                (stall, outcome) => {
                    if let Some(stall) = stall.as_ref().filter(|_| has_waited) {
                        stall.end();
                        tracing::info!("the binary log goes on");
                    }
                    return outcome;
                }
            };
            if !has_waited {
                tracing::warn!("the binary log waits for room, and stays behind what is committed: {error}");
                has_waited = true;
            }
            if !stall.wait(&error, LOOK) {
                return Err(error);
            }
        }
    }
}
