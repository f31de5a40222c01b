//! What copies bring, at boundaries of the source's transactions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use avocet_engine::{Engine, EngineError, TableHandle, Txn};
use avocet_types::arrow_map::ColumnBuilder;
use avocet_types::error::SqlError;
use avocet_types::{ColumnDef, Datum, Value, datum_at};

use super::cascades::Parents;
use super::{CLEARING_WAIT, COPY_REST, Follower, Setback};
use crate::binlog::SessionOfQuery;
use crate::copy::{FromCopy, Since, What, WithParent, key_of};
use crate::error::{After, ReplicateError, Result, is_busy};
use crate::source::{Definition, quoted};
use crate::state::{TableName, TableState};

impl Follower {
    /// The transaction that the next commit is of.
    pub(super) fn transaction(&mut self) -> Result<&mut Txn> {
        let cascades = self.run.cascades;
        let txn = self.applier.transaction()?;
        // The source has checked them.
        txn.follow_foreign_keys(cascades);
        Ok(txn)
    }

    /// Gives waiting tables to the threads that copy.
    pub(super) fn start_copies(&mut self) {
        if self.state.tables.is_empty() {
            return;
        }
        let now = Instant::now();
        let held: Vec<&TableName> = self.state.prepared.values().flatten().collect();
        let catalog = self.engine.catalog();
        let awaits_parents = |name: &TableName| {
            let table = catalog.table(&name.database, &name.table);
            table.is_some_and(|table| matches!(self.parents_of(&table.def), Parents::Awaited(_)))
        };
        let waiting = self.state.tables.iter().filter(|(name, state)| {
            matches!(state, TableState::Waiting { .. })
                && !held.contains(name)
                && self.run.resting.get(*name).is_none_or(|until| *until <= now)
                && !awaits_parents(name)
        });
        for (name, _) in waiting {
            if !self.copies.has(name) {
                self.copies.add(name, None);
            }
        }
    }

    pub(super) fn copied(&mut self, copy: FromCopy) -> Result<()> {
        let FromCopy { job, name, what } = copy;
        if !self.copies.is_live(&name, job) {
            return Ok(());
        }
        match what {
            What::Make { definition, answer } => {
                let made = self.make(&name, definition)?;
                if made.is_none() {
                    self.copies.cancel(&name);
                }
                // A thread that is gone copies nothing.
                let _ = answer.send(made);
                self.publish()
            }
            What::Rows { mark, batch, last } => {
                let Some(since) = self.watch.end(&name, mark) else {
                    self.set_aside(&name, "more rows were deleted than can be kept while it was copied");
                    return Ok(());
                };
                let table = self.engine.catalog().table(&name.database, &name.table).cloned();
                let Some(table) = table else {
                    self.set_aside(&name, "its copy is gone");
                    return Ok(());
                };
                match self.store_chunk(&table, &batch, &since) {
                    Ok(Stored::All) => {}
                    Ok(Stored::Not) => {
                        self.set_aside(&name, "rows of it went with their parents, and perhaps others with them, while it was copied");
                        return Ok(());
                    }
                    Err(Setback::Table(why) | Setback::TooLarge(why)) => return self.is_unfit(&name, &why),
                    Err(Setback::Error(error)) => return Err(error),
                }
                if let Some(TableState::Copying { after, .. }) = self.state.tables.get_mut(&name) {
                    *after = Some(last);
                }
                self.run.group.is_changed = true;
                self.publish()
            }
            What::Done(until) => {
                self.copies.cancel(&name);
                self.state.tables.insert(name.clone(), TableState::CatchingUp { until });
                self.changed(&name);
                self.publish()
            }
            What::Failed(error) => {
                self.copies.cancel(&name);
                match error.after() {
                    // The source is away: what is here is good, and it goes on from there.
                    After::Retry => {
                        self.run.resting.insert(name.clone(), Instant::now() + COPY_REST);
                        self.resume_copies();
                    }
                    _ => {
                        let times = self.set_aside_failed(&name, &error.to_string());
                        if times >= MOST_FAILURES && is_about_table(&error) {
                            self.refuse(&name, &format!("it cannot be read: {error}"));
                            self.publish()?;
                        }
                    }
                }
                Ok(())
            }
            What::Unfit(why) => self.is_unfit(&name, &why),
        }
    }

    /// A table has rows that cannot be here.
    fn is_unfit(&mut self, name: &TableName, why: &str) -> Result<()> {
        self.refuse(name, why);
        self.publish()?;
        // Its definition stays, so that statements are told why it cannot be used.
        let truncate = format!("TRUNCATE TABLE {}.{}", quoted(&name.database), quoted(&name.table));
        let done = self.definitions.run(None, &SessionOfQuery::default(), &truncate, CLEARING_WAIT);
        if let Err(error) = done {
            // They take room, and nobody sees them.
            tracing::warn!(table = %name, error = error.message, "its rows were not deleted");
        }
        Ok(())
    }

    /// Makes a table anew, without rows; `None` if none are to be copied.
    fn make(&mut self, name: &TableName, definition: Option<Definition>) -> Result<Option<Arc<TableHandle>>> {
        self.publish()?;
        if let Err(error) = self.drop_copy(name)? {
            match is_busy(&error) {
                true => {
                    self.set_aside_failed(name, "a transaction that has read it here is open");
                }
                false => self.refuse(name, &error.message),
            }
            return Ok(None);
        }
        let Some(definition) = definition else {
            // It is not at the source any more; the stream will say so, too.
            self.state.tables.remove(name);
            self.changed(name);
            return Ok(None);
        };
        if let Some((why, cure)) = &definition.obstacle {
            self.refuse(name, &format!("{why} ({cure})"));
            return Ok(None);
        }
        let session = SessionOfQuery::default();
        if self.engine.catalog().database(&name.database).is_none()
            && let Err(error) = self.definitions.run(None, &session, &definition.database, CLEARING_WAIT)
        {
            self.refuse(name, &format!("its database cannot be made: {}", error.message));
            return Ok(None);
        }
        let database = Some(name.database.as_str());
        let created = self.definitions.run(database, &session, &definition.text, CLEARING_WAIT);
        let created = match (created, without_partitions(&definition.text)) {
            (Err(_), Some(text)) => self.definitions.run(database, &session, &text, CLEARING_WAIT),
            (created, _) => created,
        };
        if let Err(error) = created {
            let are_tables_awaited = self.state.tables.iter().any(|(other, state)| {
                other != name && matches!(state, TableState::Waiting { .. } | TableState::Copying { .. })
            });
            match definition.is_view && are_tables_awaited || is_busy(&error) {
                true => self.set_aside(name, &error.message),
                false => self.refuse(name, &error.message),
            }
            return Ok(None);
        }
        if definition.is_view {
            self.state.tables.remove(name);
            self.changed(name);
            return Ok(None);
        }
        let table = self.engine.catalog().table(&name.database, &name.table).cloned();
        let Some(table) = table else {
            self.refuse(name, "it was made under another name here");
            return Ok(None);
        };
        if key_of(&table.def).is_none() {
            if let Err(error) = self.drop_copy(name)? {
                tracing::warn!(table = %name, error = error.message, "it was not dropped");
            }
            self.refuse(name, "it has no key here");
            return Ok(None);
        }
        match self.parents_of(&table.def) {
            Parents::Followed => {}
            Parents::Awaited(why) => {
                self.postpone(name, why);
                return Ok(None);
            }
            Parents::Lost(why) => {
                self.refuse(name, &why);
                return Ok(None);
            }
        }
        self.read_unread(name, &table);
        let definition = definition.text;
        self.state.tables.insert(name.clone(), TableState::Copying { definition, after: None });
        self.changed(name);
        Ok(Some(table))
    }

    /// The inner error is of the definition.
    fn drop_copy(&mut self, name: &TableName) -> Result<Result<(), SqlError>> {
        let catalog = self.engine.catalog();
        if catalog.database(&name.database).is_none() {
            return Ok(Ok(()));
        }
        let session = SessionOfQuery::default();
        let kind = if catalog.view(&name.database, &name.table).is_some() { "VIEW" } else { "TABLE" };
        let name = format!("{}.{}", quoted(&name.database), quoted(&name.table));
        self.publish()?;
        Ok(self.definitions.run(None, &session, &format!("DROP {kind} IF EXISTS {name}"), CLEARING_WAIT))
    }

    /// Stores what remains of a chunk after what has happened since it began.
    fn store_chunk(
        &mut self,
        table: &Arc<TableHandle>,
        batch: &RecordBatch,
        since: &Since,
    ) -> Result<Stored, Setback> {
        // What is taken back with a chunk is nothing of the stream's.
        self.publish()?;
        if since.is_empty() {
            self.store(table, batch)?;
            return Ok(Stored::All);
        }
        let Some(sorted) = sorted(table, batch, since)? else { return Ok(Stored::Not) };
        self.store(table, &sorted.as_they_are)?;
        self.store_orphans(table, &sorted.orphans)?;
        Ok(Stored::All)
    }

    /// Stores rows of a chunk, less those that the stream has put here.
    fn store(&mut self, table: &Arc<TableHandle>, batch: &RecordBatch) -> Result<(), Setback> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = &with_hidden(&self.engine, table, batch)?;
        let txn = self.transaction()?;
        let mark = txn.mark();
        let mut block = txn.bulk_insert(table)?;
        let stored = block.push(txn, batch).and_then(|()| block.finish(txn));
        match stored {
            Ok(_) => return Ok(()),
            Err(EngineError::DuplicateKey { .. }) => txn.rollback_statement(mark),
            Err(error) => {
                txn.rollback_statement(mark);
                return Err(error.into());
            }
        }
        let mark = txn.mark();
        let columns = &table.def.columns;
        for row in 0..batch.num_rows() {
            let values = columns.iter().zip(batch.columns());
            let values: Vec<Datum<'_>> =
                values.map(|(column, array)| datum_at(array.as_ref(), row, &column.ty)).collect();
            if let Err(error) = store_row(txn, table, &values) {
                txn.rollback_statement(mark);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Stores rows of a chunk that have lost their parents, in their own columns.
    fn store_orphans(&mut self, table: &Arc<TableHandle>, rows: &[Vec<Value>]) -> Result<(), Setback> {
        let engine = self.engine.clone();
        for row in rows {
            let hidden = engine.hidden_values(table, row)?;
            let row: Vec<Datum<'_>> =
                row.iter().cloned().chain(hidden.into_iter().map(|(_, value)| value)).collect();
            store_row(self.transaction()?, table, &row)?;
        }
        Ok(())
    }
}

/// A row that is here already is newer.
fn store_row(txn: &mut Txn, table: &Arc<TableHandle>, row: &[Datum<'_>]) -> Result<(), EngineError> {
    if let Some(column) = table.def.auto_increment_column() {
        table.note_stored_number(&row[column]);
    }
    match txn.insert(table, row) {
        Ok(_) | Err(EngineError::DuplicateKey { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What became of a chunk.
enum Stored {
    All,
    /// It cannot be told what has become of its rows since.
    Not,
}

/// So often a table cannot be read before it is left out.
const MOST_FAILURES: u32 = 6;

/// Whether the source refuses one table, and not the account.
fn is_about_table(error: &ReplicateError) -> bool {
    /// Privileges of the table or its columns.
    const DENIED: [u16; 2] = [1142, 1143];
    matches!(error, ReplicateError::Source(mysql::Error::MySqlError(error)) if DENIED.contains(&error.code))
}

/// A chunk with the columns that only indexes have.
fn with_hidden(engine: &Engine, table: &TableHandle, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = &table.def.columns;
    if !table.def.has_functional_parts() {
        return Ok(batch.clone());
    }
    let own = table.def.own_columns();
    let builder = |column: &ColumnDef| ColumnBuilder::new(&column.ty, batch.num_rows());
    let mut hidden: Vec<ColumnBuilder> = columns[own.len()..].iter().map(builder).collect();
    for row in 0..batch.num_rows() {
        let values = own.iter().zip(batch.columns());
        let values: Vec<Datum<'_>> =
            values.map(|(column, array)| datum_at(array.as_ref(), row, &column.ty)).collect();
        for (at, value) in engine.hidden_values(table, &values)? {
            hidden[at - own.len()].append(&value);
        }
    }
    let field = |column: &ColumnDef| Field::new(&column.name, column.ty.arrow_type(), column.nullable);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = batch.columns().iter().cloned().chain(hidden.iter_mut().map(ColumnBuilder::finish));
    RecordBatch::try_new(Arc::new(schema), arrays.collect())
        .map_err(|error| ReplicateError::Refused(error.to_string()))
}

/// What remains of a chunk.
struct Sorted {
    as_they_are: RecordBatch,
    /// Rows that have lost a parent since.
    orphans: Vec<Vec<Value>>,
}

/// A chunk after what has happened since it began; `None` if that cannot be told of one row after the other.
fn sorted(table: &TableHandle, batch: &RecordBatch, since: &Since) -> Result<Option<Sorted>> {
    let identity = key_of(&table.def).map(|at| &table.indexes()[at]);
    let identity = identity.ok_or_else(|| ReplicateError::Refused("a table without a key".into()))?;
    let mut gone: HashMap<usize, HashMap<&[u8], Vec<&WithParent>>> = HashMap::new();
    for one in &since.gone {
        gone.entry(one.index).or_default().entry(&one.key).or_default().push(&one.with);
    }
    let foreign: Vec<(&[usize], usize)> = table
        .def
        .foreign_keys
        .iter()
        .filter_map(|key| Some((key.columns.as_slice(), table.def.index_on(&key.columns)?)))
        .filter(|(_, index)| gone.contains_key(index))
        .collect();
    let mut orphans = Vec::new();
    let mut stays = Vec::with_capacity(batch.num_rows());
    let mut key = Vec::new();
    for row in 0..batch.num_rows() {
        let value =
            |column: usize| datum_at(batch.column(column).as_ref(), row, &table.def.columns[column].ty);
        let own: Vec<Datum<'_>> = identity.def.parts.iter().map(|part| value(part.column)).collect();
        key.clear();
        if identity.keys.encode_prefix(&own, &mut key) && since.deleted.contains(&key) {
            stays.push(false);
            continue;
        }
        let mut happened: Vec<&WithParent> = Vec::new();
        for (columns, index) in &foreign {
            let named: Vec<Datum<'_>> = columns.iter().map(|column| value(*column)).collect();
            key.clear();
            if !named.iter().any(Datum::is_null)
                && table.indexes()[*index].keys.encode_prefix(&named, &mut key)
                && let Some(with) = gone.get(index).and_then(|keys| keys.get(key.as_slice()))
            {
                happened.extend(with);
            }
        }
        stays.push(happened.is_empty());
        if happened.is_empty() {
            continue;
        }
        if happened.contains(&&WithParent::Anew) {
            return Ok(None);
        }
        // With one parent it is gone, whatever became of the others: it had all of them at some time since.
        if happened.contains(&&WithParent::Deleted) {
            continue;
        }
        let mut values: Vec<Value> =
            (0..table.def.own_columns().len()).map(|column| value(column).into_owned()).collect();
        for with in happened {
            if let WithParent::Orphaned(columns) = with {
                columns.iter().for_each(|column| values[*column] = Datum::Null);
            }
        }
        orphans.push(values);
    }
    let as_they_are = filter_record_batch(batch, &BooleanArray::from(stays))
        .map_err(|error| ReplicateError::Refused(error.to_string()))?;
    Ok(Some(Sorted { as_they_are, orphans }))
}

/// A definition without its partitions, which no answer depends on; `None` if it has none.
fn without_partitions(text: &str) -> Option<String> {
    let options = text.rfind("\n) ENGINE=")?;
    let at = text[options..].find("\n/*!50")?;
    let rest = &text[options + at..];
    rest.contains("PARTITION BY").then(|| text[..options + at].to_owned())
}
