//! Row events: changes by the key that tells rows apart.
//!
//! Of a table that is followed, a row must be here as the event says that it was, to the last byte: otherwise the table is set
//! aside. Of a table that is being copied, rows may be newer or absent: `copy` says why what is done here is right then.

use std::sync::Arc;
use std::time::Instant;

use avocet_engine::{EngineError, RowChange, TableHandle};
use avocet_types::json::{Node, parse};
use avocet_types::schema::TableDef;
use avocet_types::{Datum, RowRef, SqlType, Value};

use super::{Applied, Follower, Mapped, Open, Setback, Target, UNSEEN_REST, Unread};
use crate::binlog::{Change, Image, RowsEvent, TableCodec, TableMap};
use crate::copy::{Watch, key_of, to_send};
use crate::error::{ReplicateError, Result};
use crate::state::{TableName, TableState};

impl Follower {
    pub(super) fn row_event(&mut self, event_kind: u8, body: &[u8]) -> Result<()> {
        if self.run.open.is_none() {
            return Err(ReplicateError::damaged("rows are changed outside of a transaction"));
        }
        let event = RowsEvent::read(event_kind, body)?;
        // A row event that ends a statement without any row.
        const DUMMY: u64 = 0xff_ffff;
        if event.table_id == DUMMY {
            return Ok(());
        }
        let mapped = self.run.maps.remove(&event.table_id);
        let Some(mut mapped) = mapped else {
            return Err(ReplicateError::damaged("rows of a table that was not described"));
        };
        let target = match mapped.target.take() {
            Some(target) => target,
            None => self.target_of(&mapped.map, &mapped.name)?,
        };
        // Those that wait to be copied, too: a copy must not begin while the transaction is prepared.
        if !matches!(target, Target::Unwanted) && !self.run.touched.contains(&mapped.name) {
            self.run.touched.insert(mapped.name.clone());
        }
        let outcome = match &target {
            Target::Unwanted => Ok(()),
            Target::Table(_) if self.is_oversized() => {
                self.set_aside_unseen(
                    &mapped.name,
                    "a transaction that has changed it is too large to be applied at once",
                );
                self.keep_unread(&mapped, event_kind, body);
                Ok(())
            }
            Target::Aside => {
                self.keep_unread(&mapped, event_kind, body);
                Ok(())
            }
            Target::Table(applied) => self.apply(applied, &mapped.name, event),
        };
        match outcome {
            Ok(()) => mapped.target = Some(target),
            Err(Setback::Error(error)) => return Err(error),
            Err(Setback::TooLarge(why)) => return Err(self.is_too_large(&why)),
            Err(Setback::Table(why)) => {
                self.set_aside_failed(&mapped.name, &why);
                self.keep_unread(&mapped, event_kind, body);
            }
        }
        self.run.maps.insert(mapped.map.table_id, mapped);
        Ok(())
    }

    /// Nothing of the open transaction can be applied: it is read once more, and its tables are set aside then.
    fn is_too_large(&mut self, why: &str) -> ReplicateError {
        let id = self.run.open.as_ref().map(Open::id).unwrap_or_default();
        let error = ReplicateError::TooLarge(format!("{id}: {why}"));
        self.run.oversized.insert(id);
        error
    }

    fn is_oversized(&self) -> bool {
        !self.run.oversized.is_empty()
            && self.run.open.as_ref().is_some_and(|open| self.run.oversized.contains(&open.id()))
    }

    /// Of a source without GTIDs: a row that this event has changed is to be visible when the table is copied.
    fn keep_unread(&mut self, mapped: &Mapped, kind: u8, event: &[u8]) {
        /// For each table that waits: larger ones are of few rows.
        const MOST: usize = 64 << 10;
        let name = mapped.name.clone();
        let waits = matches!(self.state.tables.get(&name), Some(TableState::Waiting { .. }));
        if self.state.place.is_none() || !waits {
            return;
        }
        if event.len() > MOST {
            self.run.unread.remove(&name);
            self.run.resting.insert(name, Instant::now() + UNSEEN_REST);
            return;
        }
        let unread = self.run.unread.entry(name).or_insert_with(|| Unread {
            kind,
            map: mapped.body.clone(),
            event: Vec::new(),
        });
        unread.kind = kind;
        unread.map.clone_from(&mapped.body);
        unread.event.clear();
        unread.event.extend_from_slice(event);
    }

    /// What has changed a table's rows last before it was made, as far as its definition has not changed since: if it has, all that
    /// was before is visible.
    pub(super) fn read_unread(&mut self, name: &TableName, table: &Arc<TableHandle>) {
        let Some(Unread { kind, map, event }) = self.run.unread.remove(name) else { return };
        let Some(key) = key_of(&table.def) else { return };
        let codec =
            TableMap::read(&map, self.flavor, |_, _| true).map(|map| TableCodec::new(&map, &table.def));
        let Ok(Ok(codec)) = codec else { return };
        let applied = Applied {
            table: table.clone(),
            codec,
            key,
            is_lenient: true,
            generated: Vec::new(),
            family: None,
        };
        if let Some(values) = last_key(&applied, kind, &event) {
            self.watch.changed(name, values);
        }
    }

    fn apply(
        &mut self,
        applied: &Applied,
        name: &TableName,
        mut event: RowsEvent<'_>,
    ) -> Result<(), Setback> {
        event.check(&applied.codec)?;
        let (mut before, mut after) = (Image::new(), Image::new());
        let is_unlogged = !self.logs_cascades && event.checks_foreign_keys;
        // What is put in the place of rows that are newer than the position deletes these, and takes no children along.
        self.run.cascades = is_unlogged && !applied.is_lenient;
        let family = applied.family.as_ref().filter(|_| is_unlogged);
        let mut rows = Rows { follower: self, applied, name, key: Vec::new() };
        while !event.is_empty() {
            event.first_image(&applied.codec, &mut before)?;
            match event.change {
                Change::Insert => rows.insert(&before)?,
                Change::Delete => {
                    if let Some(family) = family {
                        rows.delete_children(family, &before)?;
                    }
                    rows.delete(&before)?;
                }
                Change::Update => {
                    event.after_image(&applied.codec, &before, &mut after)?;
                    if let Some(family) = family {
                        rows.update_children(family, &before, &after)?;
                    }
                    rows.update(&before, &after)?;
                }
            }
            rows.follower.run.group.changes += 1;
        }
        if applied.is_lenient
            && self.state.place.is_some()
            && let Some(values) = key_values(applied, &before, &after)
        {
            self.watch.changed(name, values);
        }
        Ok(())
    }
}

/// The key of the last row of an event.
fn last_key(applied: &Applied, kind: u8, body: &[u8]) -> Option<Vec<mysql::Value>> {
    let mut event = RowsEvent::read(kind, body).ok()?;
    event.check(&applied.codec).ok()?;
    let (mut before, mut after) = (Image::new(), Image::new());
    while !event.is_empty() {
        event.first_image(&applied.codec, &mut before).ok()?;
        after.clear();
        if event.change == Change::Update {
            event.after_image(&applied.codec, &before, &mut after).ok()?;
        }
    }
    key_values(applied, &before, &after)
}

/// The key of a row as it is now, as the protocol has it.
fn key_values(applied: &Applied, before: &Image<'_>, after: &Image<'_>) -> Option<Vec<mysql::Value>> {
    let parts = &applied.table.indexes()[applied.key].def.parts;
    let value = |column: usize| {
        let now = after.get(column).and_then(Option::as_ref);
        let value = now.or_else(|| before.get(column).and_then(Option::as_ref))?;
        to_send(value, &applied.table.def.columns[column].ty)
    };
    parts.iter().map(|part| value(part.column)).collect()
}

impl From<crate::binlog::ReadError> for Setback {
    fn from(error: crate::binlog::ReadError) -> Self {
        match error {
            crate::binlog::ReadError::Damaged(error) => Self::Error(error),
            crate::binlog::ReadError::Unfit(why) => Self::Table(why),
        }
    }
}

/// Rows of one event.
pub(super) struct Rows<'f> {
    pub follower: &'f mut Follower,
    pub applied: &'f Applied,
    pub name: &'f TableName,
    pub key: Vec<u8>,
}

pub(super) fn different() -> Setback {
    Setback::Table("a row here is not what the source says that it was".into())
}

pub(super) fn incomplete() -> Setback {
    Setback::Table(
        "an event does not have all columns of a row: a session of the source has set binlog_row_image"
            .into(),
    )
}

/// All of a row's values.
fn whole<'a>(image: &Image<'a>) -> Result<Vec<Datum<'a>>, Setback> {
    image.iter().cloned().collect::<Option<Vec<_>>>().ok_or_else(incomplete)
}

impl Rows<'_> {
    pub(super) fn watch(&self) -> &Watch {
        &self.follower.watch
    }

    /// Encodes the key of a row into `self.key`.
    pub(super) fn encode_key(&mut self, image: &Image<'_>) -> Result<(), Setback> {
        let index = &self.applied.table.indexes()[self.applied.key];
        let values = index.def.parts.iter().map(|part| image[part.column].clone());
        let values: Vec<Datum<'_>> = values.collect::<Option<_>>().ok_or_else(incomplete)?;
        self.key.clear();
        match index.keys.encode_prefix(&values, &mut self.key) {
            true => Ok(()),
            false => Err(Setback::Table("a key is none that its columns can have".into())),
        }
    }

    /// All of a row's values, those of hidden columns, too.
    fn row_of<'a>(&self, image: &Image<'a>) -> Result<Vec<Datum<'a>>, Setback> {
        let mut row = match image.iter().all(Option::is_some) {
            true => whole(image)?,
            false => self.with_generated(image)?,
        };
        let hidden = self.follower.engine.hidden_values(&self.applied.table, &row)?;
        row.extend(hidden.into_iter().map(|(_, value)| value));
        Ok(row)
    }

    /// A row of which the event lacks generated columns: those of a MariaDB do, from 11.8 on.
    fn with_generated<'a>(&self, image: &Image<'a>) -> Result<Vec<Datum<'a>>, Setback> {
        let table = &self.applied.table;
        let is_missing = |column: usize| image.get(column).is_some_and(Option::is_none);
        if (0..image.len()).any(|at| is_missing(at) && table.def.columns[at].generated.is_none()) {
            return Err(incomplete());
        }
        let mut row: Vec<Value> =
            image.iter().map(|value| value.clone().map_or(Datum::Null, Datum::into_owned)).collect();
        self.follower.engine.fill_generated(table, &mut row, &is_missing)?;
        Ok(row)
    }

    /// Should this server be written to one day, generated AUTO_INCREMENT values go on behind a row's, as at the source.
    fn note_number(&self, image: &Image<'_>) {
        let table = &self.applied.table;
        let column = table.def.auto_increment_column();
        let number = column.and_then(|column| image.get(column)?.as_ref());
        number.into_iter().for_each(|number| table.note_stored_number(number));
    }

    fn insert(&mut self, image: &Image<'_>) -> Result<(), Setback> {
        let row = self.row_of(image)?;
        self.note_number(image);
        match self.follower.transaction()?.insert(&self.applied.table, &row) {
            Ok(_) => Ok(()),
            Err(EngineError::DuplicateKey { .. }) if self.applied.is_lenient => self.replace(&row),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a row in place of those that have one of its unique keys. These are newer than the position: the stream is still
    /// to say what became of them.
    fn replace(&mut self, row: &[Datum<'_>]) -> Result<(), Setback> {
        for at in 0..self.applied.table.indexes().len() {
            let index = self.applied.table.indexes()[at].clone();
            let values: Vec<Datum<'_>> =
                index.def.parts.iter().map(|part| row[part.column].clone()).collect();
            if !index.def.kind.is_unique() || values.iter().any(Datum::is_null) {
                continue;
            }
            self.key.clear();
            if index.keys.encode_prefix(&values, &mut self.key) {
                self.modify(at, &mut |_, change| change.delete())?;
            }
        }
        self.follower.transaction()?.insert(&self.applied.table, row)?;
        Ok(())
    }

    /// Changes the row that has `self.key` in an index; false if there is none.
    pub(super) fn modify(
        &mut self,
        index: usize,
        change: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
    ) -> Result<bool, Setback> {
        let table = &self.applied.table;
        let index = table.indexes()[index].clone();
        let mut scratch = std::mem::take(&mut self.follower.run.scratch);
        let txn = self.follower.transaction()?;
        let found = txn.modify_unique(table, &index, &self.key, &mut scratch, change);
        self.follower.run.scratch = scratch;
        Ok(found?.is_some())
    }

    fn delete(&mut self, image: &Image<'_>) -> Result<(), Setback> {
        self.encode_key(image)?;
        if self.applied.is_lenient {
            self.watch().deleted(self.name, &self.key);
        }
        let is_strict = !self.applied.is_lenient;
        let mut is_same = true;
        let table = self.applied.table.clone();
        let found = self.modify(self.applied.key, &mut |row, change| {
            is_same = is_row(&row, image, &table.def);
            if is_same || !is_strict {
                change.delete();
            }
        })?;
        match !is_strict || (found && is_same) {
            true => Ok(()),
            false => Err(different()),
        }
    }

    fn update(&mut self, before: &Image<'_>, after: &Image<'_>) -> Result<(), Setback> {
        self.encode_key(before)?;
        self.note_number(after);
        let is_strict = !self.applied.is_lenient;
        let index = &self.applied.table.indexes()[self.applied.key];
        let keeps_key = index.def.parts.iter().all(|part| {
            let (before, after) = (&before[part.column], &after[part.column]);
            after.as_ref().is_none_or(|after| before.as_ref().is_some_and(|before| before.is_same(after)))
        });
        // What the event says of the row, should it not be here.
        let whole_after = || -> Image<'_> {
            let values = after.iter().zip(before).enumerate();
            let is_generated = |column: usize| self.applied.table.def.columns[column].generated.is_some();
            values
                .map(|(at, (after, before))| {
                    after.clone().or_else(|| before.clone().filter(|_| !is_generated(at)))
                })
                .collect()
        };
        if !is_strict && !keeps_key {
            // The new row may be here, and the old one be gone.
            let whole_after = whole_after();
            self.delete(before)?;
            return self.insert(&whole_after);
        }
        let mut is_same = true;
        let table = self.applied.table.clone();
        let lacks_generated =
            self.applied.generated.iter().any(|at| after.get(*at).is_none_or(Option::is_none));
        let (engine, mut failure) = (self.follower.engine.clone(), None);
        let changed = self.modify(self.applied.key, &mut |row, change| {
            is_same = is_row(&row, before, &table.def);
            if !is_same && is_strict {
                return;
            }
            let changed = |(column, value): &(usize, &Option<Datum<'_>>)| {
                value.as_ref().is_some_and(|value| !row.get(*column).is_same(value))
            };
            for (column, value) in after.iter().enumerate().filter(changed) {
                value.iter().for_each(|value| change.set(column, value));
            }
            if lacks_generated {
                let given = after.iter().enumerate();
                let given: Vec<(usize, Value)> =
                    given.filter_map(|(column, value)| Some((column, value.clone()?.into_owned()))).collect();
                match engine.generated_after(&table, row, &given) {
                    Ok(generated) => generated
                        .iter()
                        .filter(|(column, value)| !row.get(*column).is_same(value))
                        .for_each(|(column, value)| change.set(*column, value)),
                    Err(error) => failure = Some(error),
                }
            }
        });
        if let Some(error) = failure {
            return Err(Setback::Table(error.to_string()));
        }
        match changed {
            Ok(true) if is_same || !is_strict => Ok(()),
            Ok(_) if is_strict => Err(different()),
            Ok(_) => self.insert(&whole_after()),
            // Somebody who is newer has one of its other keys.
            Err(Setback::Table(_)) if !is_strict => self.replace(&self.row_of(&whole_after())?),
            Err(error) => Err(error),
        }
    }
}

/// Whether a row is what the event says, as far as that says anything. A document may have been copied as a text, in which dates
/// are strings and decimals are doubles: then its text is what counts.
fn is_row(row: &RowRef<'_>, image: &Image<'_>, def: &TableDef) -> bool {
    image.iter().enumerate().all(|(at, value)| {
        let Some(value) = value else { return true };
        let here = row.get(at);
        here.is_same(value)
            || match (&here, value, def.columns[at].ty) {
                (Datum::Bytes(here), Datum::Bytes(there), SqlType::Json) => has_text_of(here, there),
                _ => false,
            }
    })
}

/// Whether a document is what the text of another one means.
pub fn has_text_of(copied: &[u8], document: &[u8]) -> bool {
    let (copied, document) = (Node::new(copied), Node::new(document));
    parse(&document.text())
        .is_ok_and(|meant| meant.encode().is_ok_and(|meant| Node::new(&meant).text() == copied.text()))
}
