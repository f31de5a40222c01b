//! What becomes of tables: followed, missing, set aside until they are copied again, or refused; and withheld as long as they are not
//! what they are at the source.

use std::time::{Duration, Instant};

use super::{COPY_REST, FAILURES_FORGOTTEN, Follower, LONGEST_REST, UNSEEN_REST, withheld_because};
use crate::error::{ReplicateError, Result};
use crate::source::{self, Connection};
use crate::state::{LogPlace, TableName, TableState};

impl Follower {
    pub(super) fn recopy_unfinished(&mut self, why: &str) {
        for (name, state) in &mut self.state.tables {
            if matches!(state, TableState::Copying { .. } | TableState::CatchingUp { .. }) {
                self.copies.cancel(name);
                *state = TableState::Waiting { why: why.to_owned() };
            }
        }
    }

    /// Tables that catch up to a place which the source's log has not: it has begun its files anew (RESET BINARY LOGS AND GTIDS), and
    /// would reach that after as many of them.
    pub(super) fn recopy_beyond(&mut self, end: &LogPlace) {
        for (name, state) in &mut self.state.tables {
            if matches!(state, TableState::CatchingUp { until } if !end.reaches(until)) {
                self.copies.cancel(name);
                *state = TableState::Waiting { why: "the source has begun its log anew".into() };
            }
        }
    }

    /// Tables that are wanted, are not here, and are not known: they are to be copied.
    pub(super) fn add_missing(&mut self, conn: &mut Connection) -> Result<()> {
        self.status.forget_others();
        let catalog = self.engine.catalog();
        for (name, _) in source::tables(conn, &self.patterns.of_all_channels())? {
            if !self.claim(&name)? {
                continue;
            }
            let is_here = catalog.table(&name.database, &name.table).is_some();
            match self.state.tables.get_mut(&name) {
                Some(_) => {}
                None if is_here => {}
                None if catalog.view(&name.database, &name.table).is_some() => {}
                None => {
                    self.state.tables.insert(name, TableState::Waiting { why: "it is not here yet".into() });
                }
            }
        }
        Ok(())
    }

    /// What the source's log leaves out is told by name, and not shown as it was once.
    pub(super) fn set_unlogged_aside(&mut self, conn: &mut Connection) -> Result<()> {
        let filters = source::log_filters(conn)?;
        let catalog = self.engine.catalog();
        let here = catalog.tables().chain(catalog.views()).map(|table| &table.def);
        let unlogged = here.filter(|def| {
            self.patterns.has_table(&def.database, &def.name) && filters.leave_out(&def.database)
        });
        let unlogged: Vec<TableName> = unlogged
            .map(|def| TableName { database: def.database.clone(), table: def.name.clone() })
            .filter(|name| {
                let state = self.state.tables.get(name);
                !matches!(state, Some(TableState::Waiting { .. } | TableState::Refused { .. }))
            })
            .collect();
        for name in unlogged {
            self.set_aside(&name, "changes of its database are not in the source's log");
        }
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
        for child in self.children_of(name) {
            if !matches!(self.state.tables.get(&child), Some(TableState::Waiting { .. })) {
                self.set_aside(&child, &format!("its parent {name} is copied again"));
            }
        }
    }

    /// As [`Self::set_aside`], for what may go wrong again: each time the table rests for longer. How often it was so of late.
    pub(super) fn set_aside_failed(&mut self, name: &TableName, why: &str) -> u32 {
        self.set_aside(name, why);
        let now = Instant::now();
        let (times, last) = self.run.failures.entry(name.clone()).or_insert((0, now));
        *times = if last.elapsed() > FAILURES_FORGOTTEN { 1 } else { *times + 1 };
        *last = now;
        let times = *times;
        self.run.resting.insert(name.clone(), now + rest_after(times));
        times
    }

    /// A table is to be copied when another one has been.
    pub(super) fn postpone(&mut self, name: &TableName, why: String) {
        self.copies.cancel(name);
        self.state.tables.insert(name.clone(), TableState::Waiting { why });
        self.run.resting.insert(name.clone(), Instant::now() + COPY_REST);
        self.changed(name);
    }

    /// As [`Self::set_aside`], for what a transaction has done whose rows are not known: it has to be visible before they are read.
    pub(super) fn set_aside_unseen(&mut self, name: &TableName, why: &str) {
        self.set_aside(name, why);
        // A copy must not begin while an XA transaction with such a statement is prepared.
        if self.run.open.is_some() && !self.run.touched.contains(name) {
            self.run.touched.insert(name.clone());
        }
        if self.state.place.is_some() {
            self.run.resting.insert(name.clone(), Instant::now() + UNSEEN_REST);
        }
    }

    pub(super) fn refuse(&mut self, name: &TableName, why: &str) {
        tracing::warn!(table = %name, why, "not followed");
        self.copies.cancel(name);
        self.state.tables.insert(name.clone(), TableState::Refused { why: why.to_owned() });
        self.changed(name);
        self.look_at_parents(self.children_of(name));
    }

    /// The state of a table has changed.
    pub(super) fn changed(&mut self, name: &TableName) {
        // Those of its parents say that it is being copied.
        let are_all_concerned = !self.logs_cascades;
        self.run
            .maps
            .values_mut()
            .filter(|mapped| are_all_concerned || mapped.name == *name)
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

/// How long a table rests that has failed so often; the first times may have had a cause that is gone.
fn rest_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(2).min(LONGEST_REST.ilog2());
    COPY_REST * (1 << doublings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_the_log_does_not_have_is_not_awaited() {
        let mut stage = super::super::tests::stage();
        let place = |file: &str, offset| LogPlace { file: file.into(), offset };
        let catching = |until| TableState::CatchingUp { until };
        let name = |table: &str| TableName { database: "d".into(), table: table.into() };
        let tables = &mut stage.follower.state.tables;
        tables.insert(name("t"), catching(place("log.000009", 4)));
        tables.insert(name("u"), catching(place("log.000002", 4)));
        stage.follower.recopy_beyond(&place("log.000002", 700));
        let tables = &stage.follower.state.tables;
        assert!(matches!(tables[&name("t")], TableState::Waiting { .. }));
        assert!(matches!(tables[&name("u")], TableState::CatchingUp { .. }));
    }

    #[test]
    fn rests_grow_to_a_bound() {
        let seconds: Vec<u64> = (1..=9).map(|failures| rest_after(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 32, 32, 32]);
    }
}
