//! Tables whose rows nobody may use just now but whoever applies a source's transactions: they are not what the source has
//! shown at any moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// By database and table, and why.
#[derive(Default)]
pub(crate) struct Withheld {
    count: AtomicUsize,
    tables: RwLock<HashMap<(String, String), String>>,
}

impl Withheld {
    #[inline]
    pub fn check(&self, table: &TableHandle) -> Result<()> {
        if self.count.load(Ordering::Acquire) == 0 { Ok(()) } else { self.look(table) }
    }

    #[cold]
    fn look(&self, table: &TableHandle) -> Result<()> {
        let tables = self.tables.read();
        let why = tables
            .iter()
            .find(|((database, name), _)| *database == table.def.database && *name == table.def.name);
        match why {
            None => Ok(()),
            Some((_, why)) => Err(EngineError::Withheld {
                table: format!("{}.{}", table.def.database, table.def.name),
                why: why.clone(),
            }),
        }
    }
}

impl Engine {
    /// From now on statements that use a table of this name fail, and say why. It need not be there yet. Statements that
    /// run already go on with the rows that they see. This is not kept: whoever withholds does so again after a restart.
    pub fn withhold(&self, database: &str, table: &str, why: &str) {
        let mut tables = self.withheld.tables.write();
        tables.insert((database.to_owned(), table.to_owned()), why.to_owned());
        self.withheld.count.store(tables.len(), Ordering::Release);
    }

    /// Ends what [`withhold`](Self::withhold) began.
    pub fn release(&self, database: &str, table: &str) {
        let mut tables = self.withheld.tables.write();
        tables.remove(&(database.to_owned(), table.to_owned()));
        self.withheld.count.store(tables.len(), Ordering::Release);
    }
}
