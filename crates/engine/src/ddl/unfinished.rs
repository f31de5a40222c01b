//! Tables that are being filled: ALTER TABLE copies rows to one, CREATE TABLE … SELECT inserts its rows into one.
//!
//! Such a table stands in a database of its own, whose name no statement can say. One record of the log moves it to where it
//! belongs (or to the name of the table that it replaces), and tells the number of rows that it then has: whoever recovers that
//! record and finds another number knows that rows are lost. Until then the table is nobody's: dropping the [`Unfinished`]
//! drops it, and what a crash leaves is dropped by [`Engine::drop_unfinished`].

use std::sync::Arc;

use avocet_types::TableDef;

use super::{DdlWait, NO_TIMEOUT, checks, foreign};
use crate::catalog::Change;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;
use crate::txn::{Txn, TxnOptions};

/// With this begin the databases of tables that are being filled. Names that users give have no NUL in them.
const UNFINISHED: char = '\0';

/// A table that only its maker knows of, dropped unless it is published.
pub struct Unfinished {
    engine: Arc<Engine>,
    table: Arc<TableHandle>,
    is_published: bool,
}

impl TableHandle {
    /// Whether the table is still being filled: no statement can name it.
    pub fn is_unfinished(&self) -> bool {
        Self::is_database_of_unfinished(&self.def.database)
    }

    pub(crate) fn is_database_of_unfinished(database: &str) -> bool {
        database.starts_with(UNFINISHED)
    }
}

impl Engine {
    /// Creates a table that is yet to be published. It has no foreign keys until then.
    pub fn create_unfinished(self: &Arc<Self>, mut def: TableDef) -> Result<Unfinished> {
        def.foreign_keys.clear();
        let _latch = self.ddl.lock();
        def.database = format!("{UNFINISHED}{}", self.catalog().next_id());
        let table = self.create_under_latch(def, None)?;
        Ok(Unfinished { engine: self.clone(), table, is_published: false })
    }

    /// Drops the tables that a crash left unfinished.
    pub fn drop_unfinished(&self) -> Result<()> {
        for table in self.catalog().tables().filter(|table| table.is_unfinished()) {
            self.drop_table(&table.def.database, &table.def.name, std::time::Duration::ZERO)?;
        }
        Ok(())
    }
}

impl Unfinished {
    pub fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Fills the table in a transaction of its own; returns when that is durable.
    pub fn fill<T, E: From<EngineError>>(
        &self,
        options: TxnOptions,
        interrupted: Arc<dyn Fn() -> bool + Send + Sync>,
        fill: impl FnOnce(&mut Txn) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut txn = self.engine.begin(options);
        txn.set_interrupt(interrupted);
        txn.begin_statement();
        let made = fill(&mut txn)?;
        txn.commit()?.wait()?;
        Ok(made)
    }

    /// The table becomes that of `def`, which says its database, name and foreign keys. `rows` are all that it is to have, and
    /// are committed. With `checks` off, the parents of its foreign keys need not be there (yet).
    ///
    /// # Errors
    /// If names or foreign keys are not free or do not fit, rows lack parents or are not as many as they should be, or the log
    /// refuses the change: then the table is dropped.
    pub fn publish(
        mut self,
        def: &TableDef,
        rows: u64,
        auto_increment: Option<u64>,
        checks: bool,
        wait: impl Into<DdlWait>,
    ) -> Result<()> {
        let engine = self.engine.clone();
        let wait = wait.into();
        let stop = wait.stop();
        let _group = engine.lock_group(wait, |catalog| Ok(foreign::linked_with(catalog, def)))?;
        let check = || {
            let catalog = engine.catalog();
            engine.check_name_is_free(&catalog, def, &def.database, &def.name, checks)?;
            foreign::check_definition(&catalog, def, checks)?;
            checks::check_names(&catalog, &def.checks, &def.database, None)
        };
        check()?;
        // Before the latch: it may take long, and nobody else writes to the parents.
        for key in def.foreign_keys.iter().filter(|_| checks) {
            engine.check_rows(&self.table, key, &stop)?;
        }
        let _latch = engine.ddl.lock();
        check()?;
        let table = self.table.id();
        let (database, name) = (def.database.clone(), def.name.clone());
        let mut changes = vec![Change::PublishTable { table, database, name, rows }];
        for key in &def.foreign_keys {
            if !checks {
                changes.push(Change::Unenforce { table, name: key.name.clone() });
            }
            changes.push(Change::AddForeignKey { table, key: key.clone() });
        }
        stop.check()?;
        self.apply(rows, changes, auto_increment)
    }

    /// Logs the change that publishes the table. Under the DDL latch, so that the table must not be dropped here if that fails:
    /// dropping it takes the latch.
    pub(super) fn apply(
        &mut self,
        rows: u64,
        mut changes: Vec<Change>,
        auto_increment: Option<u64>,
    ) -> Result<()> {
        let there = self.table.count_rows();
        if there != rows {
            return Err(EngineError::RowsMissing {
                what: "the new table".into(),
                expected: rows,
                found: there,
            });
        }
        let table = self.table.id();
        changes.extend(auto_increment.map(|next| Change::AutoIncrement { table, next }));
        self.engine.apply_plain(&Change::Several(changes))?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_published {
            // If the log has failed, the next start drops it.
            let def = &self.table.def;
            let _ = self.engine.drop_table(&def.database, &def.name, NO_TIMEOUT);
        }
    }
}
