//! Tables whose rows nobody may use just now but whoever applies a source's transactions: they are not what the source has
//! shown at any moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

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

    fn set(&self, change: impl FnOnce(&mut HashMap<(String, String), String>)) {
        let mut tables = self.tables.write();
        change(&mut tables);
        self.count.store(tables.len(), Ordering::Release);
    }

    pub fn add(&self, database: &str, table: &str, why: &str) {
        self.set(|tables| {
            tables.insert((database.to_owned(), table.to_owned()), why.to_owned());
        });
    }

    pub fn remove(&self, database: &str, table: &str) {
        self.set(|tables| {
            tables.remove(&(database.to_owned(), table.to_owned()));
        });
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
