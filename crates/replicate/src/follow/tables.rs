//! What becomes of tables: followed, missing, set aside until they are copied again, or refused; and withheld as long as they are not
//! what they are at the source.

use std::time::Instant;

use super::{COPY_REST, Follower, UNSEEN_REST, withheld_because};
use crate::error::{ReplicateError, Result};
use crate::source::{self, Connection};
use crate::state::{TableName, TableState};

impl Follower {
    /// Tables that have got foreign keys whose changes are not in the source's log are followed no further.
    pub(super) fn refuse_unlogged(&mut self, names: impl IntoIterator<Item = TableName>) {
        if self.logs_cascades {
            return;
        }
        let catalog = self.engine.catalog();
        for name in names {
            let table = catalog.table(&name.database, &name.table);
            let is_followed = !self.state.tables.contains_key(&name);
            let why = table.and_then(|table| source::unlogged_cascades(&table.def, self.flavor));
            if let Some(why) = why.filter(|_| is_followed) {
                self.refuse(&name, &why);
            }
        }
    }

    pub(super) fn recopy_unfinished(&mut self, why: &str) {
        for (name, state) in &mut self.state.tables {
            if matches!(state, TableState::Copying { .. } | TableState::CatchingUp { .. }) {
                self.copies.cancel(name);
                *state = TableState::Waiting { why: why.to_owned() };
            }
        }
    }

    /// Tables that are wanted, are not here, and are not known: they are to be copied.
    pub(super) fn add_missing(&mut self, conn: &mut Connection) -> Result<()> {
        self.status.forget_others();
        let catalog = self.engine.catalog();
        let mut here = Vec::new();
        for (name, _) in source::tables(conn, &self.patterns.of_all_channels())? {
            if !self.claim(&name)? {
                continue;
            }
            let is_here = catalog.table(&name.database, &name.table).is_some();
            match self.state.tables.get_mut(&name) {
                Some(_) => {}
                None if is_here => here.push(name),
                None if catalog.view(&name.database, &name.table).is_some() => {}
                None => {
                    self.state.tables.insert(name, TableState::Waiting { why: "it is not here yet".into() });
                }
            }
        }
        self.refuse_unlogged(here);
        Ok(())
    }

    /// Makes a table's database this channel's; false if it is another's, which is told.
    pub(super) fn claim(&self, name: &TableName) -> Result<bool> {
        let other = self.patterns.claim(&name.database).map_err(ReplicateError::Refused)?;
        if let Some(other) = &other {
            self.status.tell_other(name, other);
        }
        Ok(other.is_none())
    }

    /// A table is not what it is at the source any more: it is withheld, and copied again.
    pub(super) fn set_aside(&mut self, name: &TableName, why: &str) {
        tracing::warn!(table = %name, why, "set aside; it will be copied again");
        self.copies.cancel(name);
        self.state.tables.insert(name.clone(), TableState::Waiting { why: why.to_owned() });
        self.run.resting.insert(name.clone(), Instant::now() + COPY_REST);
        self.changed(name);
    }

    /// As [`Self::set_aside`], for what a transaction has done whose rows are not known: it has to be visible before they are read.
    pub(super) fn set_aside_unseen(&mut self, name: &TableName, why: &str) {
        self.set_aside(name, why);
        if self.state.place.is_some() {
            self.run.resting.insert(name.clone(), Instant::now() + UNSEEN_REST);
        }
    }

    pub(super) fn refuse(&mut self, name: &TableName, why: &str) {
        tracing::warn!(table = %name, why, "not followed");
        self.copies.cancel(name);
        self.state.tables.insert(name.clone(), TableState::Refused { why: why.to_owned() });
        self.changed(name);
    }

    /// The state of a table has changed.
    pub(super) fn changed(&mut self, name: &TableName) {
        self.run
            .maps
            .values_mut()
            .filter(|mapped| mapped.name == *name)
            .for_each(|mapped| mapped.target = None);
        self.run.group.is_changed = true;
        if let Some(state) = self.state.tables.get(name) {
            let why = withheld_because(state);
            self.withholdings.withhold(&self.engine, name, &why);
            self.run.withheld.insert(name.clone());
        }
    }

    /// Withholds what the state says, and nothing else.
    pub(super) fn withhold_all(&mut self) {
        for (name, state) in &self.state.tables {
            self.withholdings.withhold(&self.engine, name, &withheld_because(state));
            self.run.withheld.insert(name.clone());
        }
        let no_more: Vec<_> =
            self.run.withheld.iter().filter(|name| !self.state.tables.contains_key(*name)).cloned().collect();
        for name in no_more {
            self.engine.release(&name.database, &name.table);
            self.run.withheld.remove(&name);
        }
    }
}
