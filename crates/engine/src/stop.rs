//! KILL and deadlines, for work of many rows that is no transaction's: building and checking indexes and foreign keys.

use std::sync::Arc;

use crate::error::{EngineError, Result};

/// Asks, from time to time, whether work of many rows is to end with `Interrupted`.
#[derive(Clone, Default)]
pub(crate) struct Stop(pub Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Stop {
    /// So many rows are seen to between two checks.
    pub const EVERY: usize = 4096;

    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(EngineError::Interrupted) } else { Ok(()) }
    }

    pub fn is_raised(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked())
    }
}
