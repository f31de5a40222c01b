//! Foreign keys, row by row: every way in which rows are written ends here, if its table has foreign keys or is referred to.
//!
//! ```text
//!  child:  insert, update of key columns ─▶ the parent's newest row is locked shared ─▶ none: 1452
//!  parent: delete, update of key columns ─▶ (its row is held exclusively by now) children's newest rows
//!                                             RESTRICT: locked shared, any: 1451
//!                                             CASCADE, SET NULL: locked, deleted or updated in turn
//! ```
//!
//! Both sides go for the parent's row: whoever brings a child shares it till the end of its transaction, and whoever takes
//! the parent away holds it exclusively. So one of two waits for the other, whichever rows they see in their snapshots, and
//! a deadlock between them is one of row locks. The snapshot has no say: what counts are the newest committed rows and the
//! transaction's own.
//!
//! Everything is checked at once, row by row, as in MySQL; nothing is deferred to the end of the statement or the
//! transaction. But a row may be its own parent, and rows that are loaded as a block may be each other's.
//!
//! Under strict isolation a cascade fails, as any other write does, on a row that has changed since the snapshot; a mere
//! check does not. What a serializable transaction was refused for counts as read.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{RowId, TableId};
use avocet_storage::hot::{RowBuf, delta};
use avocet_storage::index::Direction;
use avocet_storage::relation::ColdSegment;
use avocet_types::convert::{ConvertContext, store_column};
use avocet_types::temporal::ZeroDates;
use avocet_types::{ColumnDef, Datum, EvalContext, ReferentialAction, RowRef, RowRules, SqlType, Value};
use hashbrown::HashSet;

use super::action::{LockHow, LockWait, RowLock, RowVerdict};
use super::core::Txn;
use super::locking::Entries;
use super::parts::KnownLinks;
use crate::entries::changes_keys;
use crate::error::ForeignKeyError;
use crate::error::{EngineError, Result};
use crate::foreign::{Link, Links, Parent, each_cold_row, key_values};
use crate::keys::KeyRange;
use crate::rules;
use crate::table::TableHandle;

/// So many children are seen to without a look at KILL, and without handing on the thread's other connections.
const CHILDREN_IN_PLACE: usize = 256;
/// InnoDB's limit: the statement's own rows count as the first level.
const MAX_DEPTH: usize = 15;

const SHARED: RowLock = RowLock { exclusive: false, wait: LockWait::Wait };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Parents,
    Children,
}

/// What becomes of a child's row.
enum Fate {
    Refused,
    Deleted,
    /// Its key gets these values.
    Changed(Vec<Value>),
}

impl Txn {
    /// `foreign_key_checks`, for the statements to come. While it is off, keys that were always enforced cease to be.
    pub fn set_foreign_key_checks(&mut self, on: bool) {
        self.constraints.foreign.on = on;
        self.constraints.foreign.cascades = false;
    }

    /// Nothing is checked from now on, as another server has checked it, but children follow their parents, if asked for: what
    /// InnoDB cascades is in no log.
    pub fn follow_foreign_keys(&mut self, cascades: bool) {
        self.constraints.foreign.on = false;
        self.constraints.foreign.cascades = cascades;
    }

    /// Whether changes of parents have to do with their children.
    fn sees_to_children(&self) -> bool {
        self.constraints.foreign.on || self.constraints.foreign.cascades
    }

    /// Whether writes to a table have to do with foreign keys at all.
    #[inline]
    pub(super) fn has_foreign_keys(table: &TableHandle) -> bool {
        table.is_child() || table.is_parent()
    }

    /// Before a write to a table that has to do with foreign keys.
    pub(super) fn begin_foreign(&mut self, table: &TableHandle) -> Result<()> {
        if !self.constraints.foreign.on && !self.constraints.foreign.unenforced.contains(&table.id()) {
            self.engine.unenforce(table)?;
            self.constraints.foreign.unenforced.push(table.id());
        }
        Ok(())
    }

    /// A row is to be inserted.
    pub(super) fn foreign_insert(&mut self, table: &Arc<TableHandle>, row: &RowRef<'_>) -> Result<()> {
        if !self.constraints.foreign.on {
            return Ok(());
        }
        let links = self.links_of(table, Side::Parents)?;
        let mut others = links.as_child.iter().filter(|link| !is_own_parent(link, table, row));
        others.try_for_each(|link| self.check_parent(link, row))
    }

    /// The row as it is before an update that foreign keys care for.
    pub(super) fn foreign_before(&self, table: &TableHandle, after: &[u8], old: &RowBuf) -> Option<RowBuf> {
        let cares = Self::has_foreign_keys(table) && self.sees_to_children() && changes_keys(table, after);
        cares.then(|| RowBuf { image: old.image.clone() })
    }

    /// A row was updated: as in InnoDB, first its children follow, or are in the way, then its parents are looked for.
    pub(super) fn foreign_update(
        &mut self,
        table: &Arc<TableHandle>,
        before: &RowBuf,
        after: &[u8],
    ) -> Result<()> {
        self.foreign_update_of_parent(table, before, after, false)?;
        if !table.is_child() || !self.constraints.foreign.on {
            return Ok(());
        }
        let new = updated(table, before, after)?;
        let (old, new) = (before.row(&table.layout), new.row(&table.layout));
        let changes = |columns: &[usize]| columns.iter().any(|&c| !old.get(c).is_same(&new.get(c)));
        let links = self.links_of(table, Side::Parents)?;
        let primary = table.def.primary_key().map_or(&[][..], |index| &index.parts);
        let is_other = primary.iter().any(|part| changes(&[part.column]));
        // Without a parent table, as MySQL has it, a row must not even get another primary key.
        let concerns = |link: &Link| changes(&link.def().columns) || (is_other && link.parent.is_none());
        for link in links.as_child.iter().filter(|link| concerns(link)) {
            self.check_parent(link, &new)?;
        }
        Ok(())
    }

    /// A parent's row was updated; with `refusals_only`, it could not be, and the question is whether children would have been in
    /// the way before that.
    pub(super) fn foreign_update_of_parent(
        &mut self,
        table: &Arc<TableHandle>,
        before: &RowBuf,
        after: &[u8],
        refusals_only: bool,
    ) -> Result<()> {
        if !table.is_parent() {
            return Ok(());
        }
        let new = updated(table, before, after)?;
        let (old, new) = (before.row(&table.layout), new.row(&table.layout));
        let changes = |columns: &[usize]| columns.iter().any(|&c| !old.get(c).is_same(&new.get(c)));
        let links = self.links_of(table, Side::Children)?;
        self.constraints.foreign.cascade.push((table.id(), true));
        let outcome = links.as_parent.iter().try_for_each(|link| {
            let parent = link.parent.as_ref().expect("it was found by its parent");
            let concerns = changes(&parent.columns)
                && (!refusals_only || matches!(self.fate(link, parent, Some(&new)), Fate::Refused));
            match concerns {
                true => self.pass_on_change(link, parent, &old, Some(&new)),
                false => Ok(()),
            }
        });
        self.constraints.foreign.cascade.pop();
        outcome
    }

    /// A row was deleted.
    pub(super) fn foreign_delete(&mut self, table: &Arc<TableHandle>, old: &RowBuf) -> Result<()> {
        if !self.sees_to_children() || !table.is_parent() {
            return Ok(());
        }
        let links = self.links_of(table, Side::Children)?;
        let old = RowBuf { image: old.image.clone() };
        let old = old.row(&table.layout);
        self.constraints.foreign.cascade.push((table.id(), false));
        let outcome = links.as_parent.iter().try_for_each(|link| {
            let parent = link.parent.as_ref().expect("it was found by its parent");
            self.pass_on_change(link, parent, &old, None)
        });
        self.constraints.foreign.cascade.pop();
        outcome
    }

    /// A block of rows was loaded: each parent that they name is looked for once.
    pub(crate) fn foreign_load(&mut self, table: &Arc<TableHandle>, cold: &ColdSegment) -> Result<()> {
        if !self.constraints.foreign.on || !table.is_child() {
            return Ok(());
        }
        let links = self.links_of(table, Side::Parents)?;
        for link in &links.as_child {
            let mut seen: HashSet<Vec<u8>> = HashSet::new();
            let columns = &link.def().columns;
            each_cold_row(table, cold, columns, &mut |row| {
                let mut key = Vec::new();
                let is_new = match (&link.parent, key_values(&row, columns)) {
                    (_, None) => false,
                    (None, _) => true,
                    (Some(parent), Some(values)) => {
                        let keys = &parent.table.indexes[parent.index].keys;
                        !keys.encode_prefix(&values, &mut key) || seen.insert(key)
                    }
                };
                if is_new {
                    self.check_parent(link, &row)?;
                }
                Ok(ControlFlow::Continue(()))
            })
            .map(drop)?;
        }
        Ok(())
    }

    /// The links of a table. Holds the metadata of the tables on that side, so they stay as they are.
    fn links_of(&mut self, table: &TableHandle, side: Side) -> Result<Arc<Links>> {
        let holds = |known: &&KnownLinks| {
            known.table == table.id() && if side == Side::Parents { known.parents } else { known.children }
        };
        if let Some(known) = self.constraints.foreign.links.iter().find(holds) {
            return Ok(known.links.clone());
        }
        loop {
            let links = self.engine.catalog().links(table.id()).cloned().unwrap_or_default();
            match side {
                Side::Parents => {
                    for parent in links.as_child.iter().filter_map(|link| link.parent.as_ref()) {
                        self.touch(&parent.table)?;
                    }
                }
                Side::Children => {
                    for link in &links.as_parent {
                        match link.changes_children() {
                            true => self.touch_to_write(&link.child)?,
                            false => self.touch(&link.child)?,
                        };
                    }
                }
            }
            let now = self.engine.catalog().links(table.id()).cloned().unwrap_or_default();
            if now.is_same_as(&links) {
                self.know_links(table.id(), &links, side);
                return Ok(links);
            }
        }
    }

    fn know_links(&mut self, table: TableId, links: &Arc<Links>, side: Side) {
        let all = &mut self.constraints.foreign.links;
        let at = all.iter().position(|known| known.table == table).unwrap_or_else(|| {
            all.push(KnownLinks { table, links: links.clone(), parents: false, children: false });
            all.len() - 1
        });
        let known = &mut all[at];
        if !known.links.is_same_as(links) {
            *known = KnownLinks { table, links: links.clone(), parents: false, children: false };
        }
        match side {
            Side::Parents => known.parents = true,
            Side::Children => known.children = true,
        }
    }

    /// Locks the parent of a child's row, shared. MATCH SIMPLE: with a NULL in its key, a row needs none.
    fn check_parent(&mut self, link: &Link, row: &RowRef<'_>) -> Result<()> {
        let Some(values) = key_values(row, &link.def().columns) else { return Ok(()) };
        let missing = || Err(ForeignKeyError::no_parent(&link.child.def, link.def()).into());
        let Some(parent) = &link.parent else { return missing() };
        let index = &parent.table.indexes[parent.index];
        let mut key = Vec::new();
        if !index.keys.encode_prefix(&values, &mut key) {
            return missing();
        }
        let range = KeyRange::prefix(&key);
        loop {
            let waits = self.locks.waits.load(Ordering::Relaxed);
            if !self.lock_newest(&parent.table, parent.index, &range, SHARED, 1)?.is_empty() {
                return Ok(());
            }
            // Whoever was waited for may have put another row in the place of the one that is gone.
            if self.locks.waits.load(Ordering::Relaxed) == waits {
                self.note_locking_read(|reads| reads.add_range(&parent.table, parent.index, &range));
                return missing();
            }
        }
    }

    /// A parent's row is gone, or is `new` now: the children follow, or are in the way.
    fn pass_on_change(
        &mut self,
        link: &Link,
        parent: &Parent,
        old: &RowRef<'_>,
        new: Option<&RowRef<'_>>,
    ) -> Result<()> {
        let Some(values) = key_values(old, &parent.columns) else { return Ok(()) };
        let fate = self.fate(link, parent, new);
        if matches!(fate, Fate::Refused) && !self.constraints.foreign.on {
            return Ok(());
        }
        if matches!(fate, Fate::Refused) && new.is_some_and(|new| has_equal_key(parent, old, new)) {
            return Ok(());
        }
        let Some(index) = link.child_index else {
            let name = format!("foreign key {}", link.def().name);
            return Err(EngineError::corrupt(name, "the child has no index for it"));
        };
        let mut key = Vec::new();
        if !link.child.indexes[index].keys.encode_prefix(&values, &mut key) {
            return Ok(());
        }
        let range = KeyRange::prefix(&key);
        if matches!(fate, Fate::Refused) {
            if self.lock_newest(&link.child, index, &range, SHARED, 1)?.is_empty() {
                return Ok(());
            }
            self.note_locking_read(|reads| reads.add_range(&link.child, index, &range));
            return Err(ForeignKeyError::has_children(&link.child.def, link.def()).into());
        }
        let few = self.lock_newest(&link.child, index, &range, RowLock::FOR_UPDATE, CHILDREN_IN_PLACE + 1)?;
        if few.len() <= CHILDREN_IN_PLACE {
            return self.cascade(link, few, &fate);
        }
        let mut outcome = Ok(());
        // Others of the thread go on meanwhile.
        (self.engine.clone().wait_hook())(&mut || {
            let children = self.lock_newest(&link.child, index, &range, RowLock::FOR_UPDATE, usize::MAX);
            outcome = children.and_then(|children| self.cascade(link, children, &fate));
        });
        outcome
    }

    fn cascade(&mut self, link: &Link, children: Vec<RowId>, fate: &Fate) -> Result<()> {
        if !children.is_empty() && self.constraints.foreign.cascade.len() >= MAX_DEPTH {
            return Err(ForeignKeyError::TooDeep(MAX_DEPTH).into());
        }
        for (n, child) in children.into_iter().enumerate() {
            if n % CHILDREN_IN_PLACE == CHILDREN_IN_PLACE - 1 {
                self.check_interrupted()?;
            }
            self.cascade_to(link, child, fate)?;
        }
        Ok(())
    }

    /// What a foreign key says about a row of the child whose parent is gone, or is `new` now.
    fn fate(&self, link: &Link, parent: &Parent, new: Option<&RowRef<'_>>) -> Fate {
        let key = link.def();
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        // An update that would come back to a table that it updates could go on forever.
        let updates = |(table, is_update): &(TableId, bool)| *is_update && *table == link.child.id();
        let returns = new.is_some() && self.constraints.foreign.cascade.iter().any(updates);
        match (action, new) {
            (ReferentialAction::Cascade | ReferentialAction::SetNull, _) if returns => Fate::Refused,
            (ReferentialAction::Cascade, None) => Fate::Deleted,
            (ReferentialAction::Cascade, Some(new)) => {
                Fate::Changed(parent.columns.iter().map(|&column| new.get(column).into_owned()).collect())
            }
            (ReferentialAction::SetNull, _) => Fate::Changed(vec![Datum::Null; key.columns.len()]),
            _ => Fate::Refused,
        }
    }

    fn cascade_to(&mut self, link: &Link, row: RowId, fate: &Fate) -> Result<()> {
        let child = &link.child;
        let Fate::Changed(values) = fate else { return self.delete(child, row).map(drop) };
        let parent = link.parent.as_ref().expect("it was found by its parent");
        let mut changes: Vec<(usize, Datum<'_>)> = Vec::with_capacity(values.len());
        for ((&column, of), value) in link.def().columns.iter().zip(&parent.columns).zip(values) {
            let from = &parent.table.def.columns[*of].ty;
            let value = fitting(value, from, &child.def.columns[column]);
            let value = value.ok_or_else(|| ForeignKeyError::has_children(&child.def, link.def()))?;
            changes.push((column, value));
        }
        let mut buf = RowBuf::default();
        if child.def.columns.iter().any(|column| column.generated.is_some())
            && let Some((rules, context)) = self.rules_of(child)?
            && self.lock_row(child, row, RowLock::FOR_UPDATE, &mut buf)?
        {
            let asked = changes.into_iter().map(|(column, value)| (column, value.into_owned())).collect();
            let old = buf.row(&child.layout);
            changes = rules::changed(rules, &context, child, old, asked)?;
        }
        let undo = self.changes.undo.len();
        if let Some(to) = self.update(child, row, &changes)?.filter(|to| *to != row) {
            self.constraints.foreign.moved.insert((child.id(), row), (to, undo + 1));
        }
        Ok(())
    }

    /// What a child's definition computes.
    fn rules_of<'t>(&mut self, table: &'t TableHandle) -> Result<Option<(&'t RowRules, EvalContext)>> {
        let compiler = self.engine.rule_compiler();
        rules::of(table, compiler, || self.now_us())
    }

    /// Locks newest rows whose keys are in the range, at most `most`, whatever the snapshot sees. To share a row is no
    /// conflict under strict isolation, to lock it for a change is one.
    fn lock_newest(
        &mut self,
        table: &Arc<TableHandle>,
        index: usize,
        range: &KeyRange,
        lock: RowLock,
        most: usize,
    ) -> Result<Vec<RowId>> {
        let index = table.indexes[index].clone();
        let mut scratch = std::mem::take(&mut self.scratch.reads);
        let mut found = Vec::new();
        let relaxed = std::mem::replace(&mut self.view.relaxed, !lock.exclusive);
        let entries = Entries { index: &index, range, direction: Direction::Ascending, strict: false };
        let interrupted = self.interrupted.clone();
        let is_interrupted = |locked: usize| {
            locked.is_multiple_of(CHILDREN_IN_PLACE)
                && interrupted.as_ref().is_some_and(|interrupted| interrupted())
        };
        let outcome =
            self.lock_entries(table, entries, &mut LockHow::all(lock), &mut scratch, &mut |id, _| {
                found.push(id);
                let is_last = found.len() == most || is_interrupted(found.len());
                if is_last { RowVerdict::Last } else { RowVerdict::Wanted }
            });
        self.view.relaxed = relaxed;
        self.scratch.reads = scratch;
        outcome?;
        self.check_interrupted()?;
        Ok(found)
    }
}

/// A row as an update leaves it.
fn updated(table: &TableHandle, before: &RowBuf, after: &[u8]) -> Result<RowBuf> {
    let mut new = RowBuf { image: before.image.clone() };
    delta::apply_to_image(&table.layout, after, &mut new.image)
        .map_err(crate::error::malformed("row delta"))?;
    Ok(new)
}

/// Whether a row refers to itself.
fn is_own_parent(link: &Link, table: &TableHandle, row: &RowRef<'_>) -> bool {
    let Some(parent) = link.parent.as_ref().filter(|parent| parent.table.id() == table.id()) else {
        return false;
    };
    let keys = &parent.table.indexes[parent.index].keys;
    let key = |columns: &[usize]| {
        let mut key = Vec::new();
        key_values(row, columns).filter(|values| keys.encode_prefix(values, &mut key)).map(|_| key)
    };
    key(&link.def().columns).is_some_and(|wanted| key(&parent.columns) == Some(wanted))
}

/// Whether both rows have the same key for the parent's index: equal strings may differ in their bytes.
fn has_equal_key(parent: &Parent, old: &RowRef<'_>, new: &RowRef<'_>) -> bool {
    let keys = &parent.table.indexes[parent.index].keys;
    let [mut a, mut b] = [Vec::new(), Vec::new()];
    let values = |row: &RowRef<'_>| key_values(row, &parent.columns);
    match (values(old), values(new)) {
        (Some(old), Some(new)) => {
            keys.encode_prefix(&old, &mut a) && keys.encode_prefix(&new, &mut b) && a == b
        }
        _ => false,
    }
}

/// A parent's value as one of the child's column, which may be shorter or of another scale; `None` if it cannot be.
fn fitting(value: &Value, from: &SqlType, column: &ColumnDef) -> Option<Value> {
    if *from == column.ty || value.is_null() {
        return Some(value.clone()).filter(|value| !value.is_null() || column.nullable);
    }
    let context = ConvertContext { zero_dates: ZeroDates::ALLOWED, ..ConvertContext::STRICT_UTC };
    let stored = store_column(value.clone(), from, column, &context).ok()?;
    stored.warning.is_none().then(|| stored.value.into_owned())
}
