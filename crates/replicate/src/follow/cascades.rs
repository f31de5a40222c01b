//! Rows that change with their parents, where the source's log does not say so: InnoDB's own CASCADE and SET NULL, before MySQL 9.6
//! and in a MariaDB.
//!
//! Of tables that are followed the engine does what InnoDB has done, as it is told to with each change of a parent. A child that is
//! being copied has rows that are newer than the stream, and lacks others:
//!
//! 1. A child is copied only when its parents are followed (but for itself), and again when one of them is. So what a parent loses is
//!    known exactly, over all levels, and a cascade ends with the children that are copied.
//! 2. Its rows that name a parent which the stream deletes follow it, and so do those of chunks that are on their way, as
//!    [`Watch::parent_gone`] keeps it. If such a row is newer than the deletion, its change is still to come in the stream, and puts it
//!    there.
//! 3. That is not so of rows that get their parent by *its* new key. When a key changes while a child is copied, it is copied again; and
//!    so is a table that refers to itself when a deletion would go on from its children to theirs.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_engine::{Direction, EngineError, KeyRange, TableHandle};
use avocet_types::schema::{ForeignKeyDef, ReferentialAction, TableDef};
use avocet_types::{Datum, Value};

use super::rows::Rows;
use super::{Follower, Setback};
use crate::binlog::Image;
use crate::copy::{Gone, WithParent, key_of};
use crate::state::{TableName, TableState};

/// Foreign keys are enforced above InnoDB from this version on, and what they change is logged.
const LOGS: u32 = 90_600;
/// Bytes of keys of one parent's children that are gathered at most.
const MOST_BYTES: usize = 8 << 20;

/// The tables, from one on, in which what a parent loses leads to children that are being copied. The first is that one.
pub(super) struct Family {
    members: Vec<Member>,
}

struct Member {
    name: TableName,
    table: Arc<TableHandle>,
    is_copied: bool,
    /// Foreign keys to it that lead to children that are copied; of one that is copied itself, none.
    links: Vec<Link>,
}

#[derive(Clone)]
struct Link {
    child: usize,
    table: Arc<TableHandle>,
    /// Which of the child's keys, and the index for it.
    key: usize,
    index: usize,
    /// The parent's columns.
    columns: Vec<usize>,
}

impl Link {
    fn def(&self) -> &ForeignKeyDef {
        &self.table.def.foreign_keys[self.key]
    }
}

/// What is known of the parents of a table whose rows change with theirs.
pub(super) enum Parents {
    Followed,
    /// This one is not yet.
    Awaited(String),
    /// One never will be.
    Lost(String),
}

pub(super) fn changes_rows(action: ReferentialAction) -> bool {
    matches!(action, ReferentialAction::Cascade | ReferentialAction::SetNull)
}

/// The parents with which rows of a table change, but for the table itself.
fn parents(def: &TableDef) -> impl Iterator<Item = TableName> + '_ {
    let cascading = |key: &&ForeignKeyDef| changes_rows(key.on_delete) || changes_rows(key.on_update);
    let name = |key: &ForeignKeyDef| TableName {
        database: key.parent_database.clone(),
        table: key.parent_table.clone(),
    };
    def.foreign_keys.iter().filter(cascading).map(name).filter(|name| !is_named(def, name))
}

fn is_named(def: &TableDef, name: &TableName) -> bool {
    def.database == name.database && def.name == name.table
}

impl Follower {
    /// A server of this version has written what comes, which may be an older one than the source is now.
    pub(super) fn written_by(&mut self, version: Option<u32>) {
        self.logs_cascades = self.can_log_cascades && version.is_none_or(|version| version >= LOGS);
        self.run.maps.clear();
    }

    /// Whether the parents of a table of this definition are followed, as they have to be before it is copied.
    pub(super) fn parents_of(&self, def: &TableDef) -> Parents {
        if self.logs_cascades {
            return Parents::Followed;
        }
        const WHY: &str = "its foreign key changes rows by CASCADE or SET NULL, which this source does not write to its log, and its parent";
        let mut awaited = None;
        for parent in parents(def) {
            if !self.patterns.has_table(&parent.database, &parent.table) {
                return Parents::Lost(format!("{WHY} {parent} is left out"));
            }
            match self.state.tables.get(&parent) {
                Some(TableState::Refused { .. }) => {
                    return Parents::Lost(format!("{WHY} {parent} cannot be followed"));
                }
                Some(_) => awaited = awaited.or(Some(parent)),
                None => {}
            }
        }
        match awaited {
            Some(_) if self.is_own_ancestor(def) => {
                Parents::Lost("foreign keys that change rows, which this source does not write to its log, lead from it back to it".into())
            }
            Some(parent) => Parents::Awaited(format!("its parent {parent} is copied first")),
            None => Parents::Followed,
        }
    }

    fn is_own_ancestor(&self, def: &TableDef) -> bool {
        let catalog = self.engine.catalog();
        let mut ahead: Vec<TableName> = parents(def).collect();
        let mut seen = HashSet::new();
        while let Some(name) = ahead.pop() {
            if is_named(def, &name) {
                return true;
            }
            if seen.insert(name.clone())
                && let Some(table) = catalog.table(&name.database, &name.table)
            {
                ahead.extend(parents(&table.def));
            }
        }
        false
    }

    /// Tables whose rows change with those of this one, where the log does not say it.
    pub(super) fn children_of(&self, name: &TableName) -> Vec<TableName> {
        if self.logs_cascades { Vec::new() } else { self.cascading_children(name) }
    }

    /// Tables whose rows change with those of this one.
    pub(super) fn cascading_children(&self, name: &TableName) -> Vec<TableName> {
        let catalog = self.engine.catalog();
        let is_child = |table: &&Arc<TableHandle>| {
            parents(&table.def).any(|parent| parent == *name)
                && self.patterns.has_table(&table.def.database, &table.def.name)
        };
        let children = catalog.tables().filter(is_child);
        children
            .map(|table| TableName { database: table.def.database.clone(), table: table.def.name.clone() })
            .collect()
    }

    /// After definitions: a table whose parents are not followed is not what it is at the source for long.
    pub(super) fn look_at_parents(&mut self, names: impl IntoIterator<Item = TableName>) {
        for name in names {
            let is_here = !matches!(
                self.state.tables.get(&name),
                Some(TableState::Waiting { .. } | TableState::Refused { .. })
            );
            let table = self.engine.catalog().table(&name.database, &name.table).cloned();
            let Some(table) = table.filter(|_| is_here) else { continue };
            match self.parents_of(&table.def) {
                Parents::Followed => {}
                Parents::Awaited(why) => self.set_aside(&name, &why),
                Parents::Lost(why) => self.refuse(&name, &why),
            }
        }
    }

    /// The source may have begun to enforce foreign keys in another way.
    pub(super) fn look_at_all_parents(&mut self) {
        let catalog = self.engine.catalog();
        let is_child = |table: &&Arc<TableHandle>| {
            parents(&table.def).next().is_some()
                && self.patterns.has_table(&table.def.database, &table.def.name)
        };
        let name = |table: &Arc<TableHandle>| TableName {
            database: table.def.database.clone(),
            table: table.def.name.clone(),
        };
        let children: Vec<TableName> = catalog.tables().filter(is_child).map(name).collect();
        self.look_at_parents(children);
    }

    /// How changes of a table lead to children that are being copied; `None` if they do not.
    pub(super) fn family_of(&self, name: &TableName, table: &Arc<TableHandle>) -> Option<Family> {
        let is_copied = |name: &TableName| {
            let state = self.state.tables.get(name);
            matches!(state, Some(TableState::Copying { .. } | TableState::CatchingUp { .. }))
        };
        if self.logs_cascades || !self.state.tables.keys().any(is_copied) {
            return None;
        }
        let catalog = self.engine.catalog();
        let member = |name: TableName, table: &Arc<TableHandle>| Member {
            is_copied: is_copied(&name),
            name,
            table: table.clone(),
            links: Vec::new(),
        };
        let mut members = vec![member(name.clone(), table)];
        let mut at = 0;
        while at < members.len() {
            // What is below a table that is copied is not copied before it is followed; but it may refer to itself.
            let (parent, ends) = (members[at].table.clone(), members[at].is_copied && at > 0);
            for child in catalog.tables().filter(|_| !ends) {
                for (key, def) in child.def.foreign_keys.iter().enumerate() {
                    let is_link = def.parent_database == parent.def.database
                        && def.parent_table == parent.def.name
                        && (changes_rows(def.on_delete) || changes_rows(def.on_update));
                    let columns = def.parent_columns.iter().map(|column| parent.def.column(column));
                    let columns: Option<Vec<usize>> = columns.collect();
                    let (Some(columns), Some(index), true) =
                        (columns, child.def.index_on(&def.columns), is_link)
                    else {
                        continue;
                    };
                    let known = members.iter().position(|member| member.table.id() == child.id());
                    let child_at = known.unwrap_or(members.len());
                    if known.is_none() {
                        let (database, table) = (child.def.database.clone(), child.def.name.clone());
                        members.push(member(TableName { database, table }, child));
                    }
                    members[at].links.push(Link {
                        child: child_at,
                        table: child.clone(),
                        key,
                        index,
                        columns,
                    });
                }
            }
            at += 1;
        }
        // Links that lead to none that is copied are the engine's alone.
        let mut leads: Vec<bool> = members.iter().map(|member| member.is_copied).collect();
        while let Some(at) = (0..members.len())
            .find(|at| !leads[*at] && members[*at].links.iter().any(|link| leads[link.child]))
        {
            leads[at] = true;
        }
        members.iter_mut().for_each(|member| member.links.retain(|link| leads[link.child]));
        Some(Family { members }).filter(|family| !family.members[0].links.is_empty())
    }
}

/// Why a child's copy begins anew.
struct Anew(&'static str);

const KEY_CHANGED: &str = "its parent got another key while it was copied";
const TOO_DEEP: &str = "rows of it went with their parents, and others with them, while it was copied";
const TOO_MANY: &str = "more of its rows went with their parent than can be kept while it was copied";
const COMPUTED: &str = "rows of it with generated columns lost their parents while it was copied";

/// As in the engine, and in InnoDB.
const MAX_DEPTH: usize = 15;

/// The values by which the children of each link name a row; `None` with a NULL among them: then none does.
type Named = Vec<Option<Vec<Value>>>;

impl Rows<'_> {
    /// A row of a parent is to be deleted: what becomes of children that are being copied.
    pub(super) fn delete_children(&mut self, family: &Family, image: &Image<'_>) -> Result<(), Setback> {
        let named = self.named(&family.members[0], image)?;
        self.row_is_gone(family, 0, &named, 0)
    }

    fn row_is_gone(
        &mut self,
        family: &Family,
        at: usize,
        named: &Named,
        depth: usize,
    ) -> Result<(), Setback> {
        if depth > MAX_DEPTH {
            return Err(Setback::Table("its foreign keys lead deeper than they can at the source".into()));
        }
        for (link, values) in family.members[at].links.iter().zip(named) {
            let (child, action) = (&family.members[link.child], link.def().on_delete);
            let Some(values) = values.as_ref().filter(|_| changes_rows(action)) else { continue };
            if child.is_copied {
                if let Err(Anew(why)) = self.delete_copied(&child.name, link, values)? {
                    self.copy_anew(&child.name, why)?;
                }
                continue;
            }
            let Some(rows) = self.children(child, link, values)? else {
                self.copy_all_anew(family, link.child, TOO_MANY)?;
                continue;
            };
            match action {
                ReferentialAction::Cascade => {
                    rows.iter().try_for_each(|row| self.row_is_gone(family, link.child, row, depth + 1))?;
                }
                _ if rows.is_empty() => {}
                _ => self.keys_change(family, link.child, &link.def().columns, depth + 1)?,
            }
        }
        Ok(())
    }

    /// A row of a parent is to be updated.
    pub(super) fn update_children(
        &mut self,
        family: &Family,
        before: &Image<'_>,
        after: &Image<'_>,
    ) -> Result<(), Setback> {
        let changes = |column: &usize| {
            let (before, after) = (&before[*column], &after[*column]);
            after.as_ref().is_some_and(|after| before.as_ref().is_none_or(|before| !before.is_same(after)))
        };
        let columns: Vec<usize> = (0..before.len()).filter(changes).collect();
        self.keys_change(family, 0, &columns, 0)
    }

    /// Rows of a member get other values of these columns: children that are copied and may follow are copied anew.
    fn keys_change(
        &mut self,
        family: &Family,
        at: usize,
        columns: &[usize],
        depth: usize,
    ) -> Result<(), Setback> {
        for link in &family.members[at].links {
            let concerns = link.columns.iter().any(|column| columns.contains(column));
            if !concerns || !changes_rows(link.def().on_update) {
                continue;
            }
            let child = &family.members[link.child];
            match child.is_copied {
                true => self.copy_anew(&child.name, KEY_CHANGED)?,
                false if depth < MAX_DEPTH => {
                    self.keys_change(family, link.child, &link.def().columns, depth + 1)?;
                }
                false => {}
            }
        }
        Ok(())
    }

    fn copy_anew(&mut self, child: &TableName, why: &str) -> Result<(), Setback> {
        if child == self.name {
            return Err(Setback::Table(why.into()));
        }
        let state = self.follower.state.tables.get(child);
        if matches!(state, Some(TableState::Copying { .. } | TableState::CatchingUp { .. })) {
            self.follower.set_aside(child, why);
        }
        Ok(())
    }

    /// Of all that are copied below a member.
    fn copy_all_anew(&mut self, family: &Family, at: usize, why: &str) -> Result<(), Setback> {
        let (mut ahead, mut seen) = (vec![at], HashSet::from([at]));
        while let Some(at) = ahead.pop() {
            for link in &family.members[at].links {
                let child = &family.members[link.child];
                if child.is_copied {
                    self.copy_anew(&child.name, why)?;
                } else if seen.insert(link.child) {
                    ahead.push(link.child);
                }
            }
        }
        Ok(())
    }

    /// What names a row of the event.
    fn named(&mut self, member: &Member, image: &Image<'_>) -> Result<Named, Setback> {
        let mut named = Vec::with_capacity(member.links.len());
        for link in &member.links {
            named.push(self.referenced(link, image)?);
        }
        Ok(named)
    }

    /// What names the rows of a child that is followed which name a parent by these values; `None` if there are too many.
    fn children(
        &mut self,
        child: &Member,
        link: &Link,
        values: &[Value],
    ) -> Result<Option<Vec<Named>>, Setback> {
        let mut key = Vec::new();
        if !link.table.indexes()[link.index].keys.encode_prefix(values, &mut key) {
            return Ok(Some(Vec::new()));
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.each_with(&link.table, link.index, &key, &mut |row| {
            let of = |link: &Link| {
                let values = link.columns.iter().map(|column| row.get(*column).into_owned());
                Some(values.collect::<Vec<Value>>()).filter(|values| !values.iter().any(Datum::is_null))
            };
            let named: Named = child.links.iter().map(of).collect();
            let len = |value: &Value| match value {
                Datum::Str(text) => size_of::<Value>() + text.len(),
                Datum::Bytes(bytes) => size_of::<Value>() + bytes.len(),
                _ => size_of::<Value>(),
            };
            bytes += named.iter().flatten().flatten().map(len).sum::<usize>();
            rows.push(named);
            if bytes > MOST_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(Some(rows).filter(|_| bytes <= MOST_BYTES))
    }

    /// The values that children name; `None` if there is a NULL in them, so that no child does.
    fn referenced(&mut self, link: &Link, image: &Image<'_>) -> Result<Option<Vec<Value>>, Setback> {
        let values = link.columns.iter().map(|column| image[*column].clone().map(Datum::into_owned));
        let values: Option<Vec<Value>> = values.collect();
        let values = match values {
            Some(values) => values,
            // The event has the key alone.
            None if self.applied.is_lenient => return Err(super::rows::incomplete()),
            None => {
                self.encode_key(image)?;
                let mut here = None;
                self.modify(self.applied.key, &mut |row, _| {
                    here = Some(link.columns.iter().map(|column| row.get(*column).into_owned()).collect());
                })?;
                let Some(here) = here else { return Err(super::rows::different()) };
                here
            }
        };
        Ok(Some(values).filter(|values| !values.iter().any(Datum::is_null)))
    }

    /// The rows of a child that is being copied whose parent had these values go, or lose it.
    fn delete_copied(
        &mut self,
        child: &TableName,
        copied: &Link,
        values: &[Value],
    ) -> Result<Result<(), Anew>, Setback> {
        let table = &copied.table;
        let mut named = Vec::new();
        if !table.indexes()[copied.index].keys.encode_prefix(values, &mut named) {
            return Ok(Ok(()));
        }
        let deletes = copied.def().on_delete == ReferentialAction::Cascade;
        let own = own_keys(&table.def);
        if !deletes && table.def.columns.iter().any(|column| column.generated.is_some()) {
            return Ok(Err(Anew(COMPUTED)));
        }
        let Some(identity) = key_of(&table.def) else { return Ok(Ok(())) };
        let (mut keys, mut bytes, mut theirs) = (Vec::new(), 0, Vec::new());
        self.each_with(table, copied.index, &named, &mut |row| {
            let parts = table.indexes()[identity].def.parts.iter();
            let values: Vec<Datum<'_>> = parts.map(|part| row.get(part.column)).collect();
            let mut key = Vec::new();
            if table.indexes()[identity].keys.encode_prefix(&values, &mut key) {
                bytes += key.len();
                keys.push(key);
            }
            for own in own.iter().filter(|_| deletes) {
                let values: Vec<Datum<'_>> = own.columns.iter().map(|column| row.get(*column)).collect();
                let mut key = Vec::new();
                if !values.iter().any(Datum::is_null)
                    && table.indexes()[own.index].keys.encode_prefix(&values, &mut key)
                {
                    bytes += key.len();
                    theirs.push((own.index, key));
                }
            }
            if bytes > MOST_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if bytes > MOST_BYTES {
            return Ok(Err(Anew(TOO_MANY)));
        }
        for (index, key) in theirs {
            let mut has_own = false;
            self.each_with(table, index, &key, &mut |_| {
                has_own = true;
                ControlFlow::Break(())
            })?;
            if has_own {
                return Ok(Err(Anew(TOO_DEEP)));
            }
            let gone = Gone { index, key, with: WithParent::Anew };
            self.watch().parent_gone(child, gone);
        }
        for key in keys {
            if deletes {
                self.watch().deleted(child, &key);
            }
            self.change_copied(copied, identity, &key, deletes)?;
        }
        let with = match deletes {
            true if !own.is_empty() => WithParent::Anew,
            true => WithParent::Deleted,
            false => WithParent::Orphaned(copied.def().columns.clone()),
        };
        self.watch().parent_gone(child, Gone { index: copied.index, key: named, with });
        Ok(Ok(()))
    }

    /// Shows the newest rows whose keys begin with these bytes.
    fn each_with(
        &mut self,
        table: &Arc<TableHandle>,
        index: usize,
        key: &[u8],
        show: &mut dyn FnMut(avocet_types::RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), Setback> {
        let index = table.indexes()[index].clone();
        let range = KeyRange::prefix(key);
        let mut scratch = std::mem::take(&mut self.follower.run.scratch);
        let txn = self.follower.transaction()?;
        let shown =
            txn.modify_range(table, &index, &range, Direction::Ascending, &mut scratch, &mut |row, _| {
                show(row)
            });
        self.follower.run.scratch = scratch;
        Ok(shown?)
    }

    fn change_copied(
        &mut self,
        copied: &Link,
        identity: usize,
        key: &[u8],
        deletes: bool,
    ) -> Result<(), Setback> {
        let table = &copied.table;
        let index = table.indexes()[identity].clone();
        let engine = self.follower.engine.clone();
        let mut failure: Option<EngineError> = None;
        let mut scratch = std::mem::take(&mut self.follower.run.scratch);
        let txn = self.follower.transaction()?;
        let done = txn.modify_unique(table, &index, key, &mut scratch, &mut |row, change| {
            if deletes {
                return change.delete();
            }
            let columns = &copied.def().columns;
            columns.iter().for_each(|column| change.set(*column, &Datum::Null));
            if table.def.has_functional_parts() {
                let own = table.def.own_columns().len();
                let value = |column: usize| match columns.contains(&column) {
                    true => Datum::Null,
                    false => row.get(column).into_owned(),
                };
                let new: Vec<Value> = (0..own).map(value).collect();
                match engine.hidden_values(table, &new) {
                    Ok(hidden) => hidden.iter().for_each(|(column, value)| change.set(*column, value)),
                    Err(error) => failure = Some(error),
                }
            }
        });
        self.follower.run.scratch = scratch;
        done?;
        failure.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// A foreign key of a table to itself that changes rows.
struct OwnKey {
    /// The columns that children name, and the index for what they name.
    columns: Vec<usize>,
    index: usize,
}

fn own_keys(def: &TableDef) -> Vec<OwnKey> {
    let of = |key: &ForeignKeyDef| {
        let columns: Option<Vec<usize>> =
            key.parent_columns.iter().map(|column| def.column(column)).collect();
        Some(OwnKey { columns: columns?, index: def.index_on(&key.columns)? })
    };
    let is_own = |key: &&ForeignKeyDef| {
        key.parent_database == def.database && key.parent_table == def.name && changes_rows(key.on_delete)
    };
    def.foreign_keys.iter().filter(is_own).filter_map(of).collect()
}
