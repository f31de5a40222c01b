//! Views: definitions without rows. They have the metadata locks that tables have.

use std::sync::Arc;

use avocet_base::TableId;
use avocet_types::TableDef;

use super::exclusive::DdlWait;
use crate::catalog::{Catalog, Change};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

impl Engine {
    /// Creates a view, in the place of the one of its name if it `replaces`; the id in `def` is given here.
    ///
    /// # Panics
    /// If it is not the definition of a view.
    pub fn create_view(&self, mut def: TableDef, replaces: bool, wait: impl Into<DdlWait>) -> Result<()> {
        assert!(def.is_view(), "{} is no view", def.name);
        let old = |catalog: &Catalog| catalog.view(&def.database, &def.name).cloned();
        let _group = self.lock_group(wait, |catalog| Ok(old(catalog).into_iter().collect()))?;
        let _latch = self.ddl.lock();
        let catalog = self.catalog();
        if catalog.database(&def.database).is_none() {
            return Err(EngineError::NoSuchDatabase(def.database));
        }
        let old = old(&catalog);
        if catalog.table(&def.database, &def.name).is_some() || (old.is_some() && !replaces) {
            return Err(EngineError::TableExists(def.name));
        }
        def.id = TableId(catalog.next_id());
        let mut changes: Vec<Change> = old.iter().map(|old| Change::DropTable(old.id())).collect();
        changes.push(Change::CreateView(Box::new(def)));
        self.apply_plain(&Change::Several(changes))
    }

    /// Drops views, each of which is there.
    pub fn drop_views(&self, names: &[(String, String)], wait: impl Into<DdlWait>) -> Result<()> {
        let find = |catalog: &Catalog| -> Result<Vec<Arc<TableHandle>>> {
            let missing = |name: &(String, String)| EngineError::NoSuchTable(name.0.clone(), name.1.clone());
            let of = |name: &(String, String)| catalog.view(&name.0, &name.1).cloned();
            names.iter().map(|name| of(name).ok_or_else(|| missing(name))).collect()
        };
        let _group = self.lock_group(wait, find)?;
        let _latch = self.ddl.lock();
        let mut views = find(&self.catalog())?;
        views.dedup_by_key(|view| view.id());
        let drops: Vec<Change> = views.iter().map(|view| Change::DropTable(view.id())).collect();
        if drops.is_empty() {
            return Ok(());
        }
        self.apply_plain(&Change::Several(drops))
    }
}
