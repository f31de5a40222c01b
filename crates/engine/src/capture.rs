//! What an engine has of change capture ([`crate::ChangeStream`]): where the stream begins, how far the one who is told has come,
//! and which statement a thread runs.

mod gate;
mod statement;

use std::sync::Arc;

use avocet_base::Lsn;
use parking_lot::Mutex;

use crate::catalog::Catalog;
use crate::error::Result;

pub(crate) use gate::Gate;
pub use gate::SinkStall;
pub(crate) use statement::take_statement;
pub use statement::{change_statement, run_as_statement};

/// What an engine has of change capture; nothing, mostly.
#[derive(Default)]
pub(crate) struct Capture {
    pub gate: Option<Arc<Gate>>,
    /// Where the stream begins, until it is asked for.
    pub start: Mutex<Option<(Catalog, Lsn)>>,
}

impl Capture {
    /// Of what is behind a checkpoint.
    pub fn from(catalog: Catalog, at: Lsn) -> Self {
        Self { gate: Some(Arc::default()), start: Mutex::new(Some((catalog, at))) }
    }

    /// The engine is ending.
    pub fn close(&self) {
        self.gate.iter().for_each(|gate| gate.close());
    }

    /// Waits until all before this was acknowledged.
    pub fn wait_for(&self, lsn: Lsn) -> Result<()> {
        self.gate.as_ref().map_or(Ok(()), |gate| gate.wait_for(lsn))
    }
}
