//! Runs steps on an engine, and keeps account of what must be there, or may.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;

use super::steps::RESHAPED;
use super::{Change, DATABASE, Row, State, Step, contents, contents_of, options};

const AT_ONCE: Duration = Duration::ZERO;

/// How far a run came.
pub struct Outcome {
    /// What may be there after a crash: if there are several, what was under way may have happened or not.
    pub possible: Vec<State>,
    /// Nothing stopped it.
    pub finished: bool,
    /// Steps that failed and left nothing.
    pub refused: u64,
}

/// Steps on their way through an engine.
pub struct Run {
    disk: SimDisk,
    pub engine: Arc<Engine>,
    /// What is there.
    pub state: State,
    held: Option<(Txn, Vec<Change>)>,
    /// An old snapshot, and what it saw of tables that are still the same.
    look: Option<(Txn, u64, State)>,
    pub refused: u64,
}

impl Run {
    /// `state` is what the directory holds.
    pub fn open(disk: &SimDisk, state: State) -> Result<Self> {
        let engine = Engine::open(options(disk))?;
        engine.drop_unfinished()?;
        Ok(Self { disk: disk.clone(), engine, state, held: None, look: None, refused: 0 })
    }

    /// Runs steps until nothing goes on.
    pub fn run(mut self, steps: &[Step]) -> Outcome {
        for step in steps {
            if let Some(possible) = self.step(step) {
                return Outcome { possible, finished: false, refused: self.refused };
            }
        }
        Outcome { possible: vec![self.state], finished: true, refused: self.refused }
    }

    /// Another one on the same engine, for another thread. What it takes to be there means nothing.
    pub fn beside(&self) -> Self {
        Self {
            disk: self.disk.clone(),
            engine: self.engine.clone(),
            state: State::new(),
            held: None,
            look: None,
            refused: 0,
        }
    }

    /// One step. If it was the last that there can be: what may be there.
    pub fn step(&mut self, step: &Step) -> Option<Vec<State>> {
        let mut next = vec![self.state.clone()];
        match self.execute(step, &mut next) {
            Ok(()) => {
                self.state = next.pop().expect("at least what was there");
                None
            }
            Err(e) if e.kind() == ErrorKind::Stopped || self.disk.is_cut() => {
                if next.len() == 1 {
                    let mut after = self.state.clone();
                    step.apply(&mut after);
                    if let (Step::Release { .. }, Some((_, changes))) = (step, &self.held) {
                        changes.iter().for_each(|change| change.apply(&mut after));
                    }
                    next.push(after);
                }
                Some(next)
            }
            Err(_) => {
                self.refused += 1;
                None
            }
        }
    }

    /// Does it; the states that others may see come to be in `next`, one after the other.
    fn execute(&mut self, step: &Step, next: &mut Vec<State>) -> Result<()> {
        match step {
            Step::Commit(changes) => {
                let mut txn = self.begin();
                self.change(&mut txn, changes)?;
                txn.commit()?.wait()?;
            }
            Step::RollBack(changes) => {
                let mut txn = self.begin();
                self.change(&mut txn, changes)?;
                txn.rollback();
            }
            Step::Hold(changes) => {
                if self.held.is_none() {
                    let mut txn = self.begin();
                    self.change(&mut txn, changes)?;
                    // Tables that come later are not its own.
                    let there = |c: &&Change| c.table().is_some_and(|name| self.state.contains_key(name));
                    self.held = Some((txn, changes.iter().filter(there).cloned().collect()));
                }
            }
            Step::Release { commits } => return self.release(*commits, next),
            Step::Pipeline(transactions) => return self.pipeline(transactions, next),
            Step::Load { table, first, count, stamp } => self.load(table, *first, *count, *stamp)?,
            Step::Freeze => {
                self.engine.freeze_all()?;
            }
            Step::Checkpoint => {
                self.engine.checkpoint()?;
            }
            Step::Collect => {
                self.engine.collect_all_garbage();
                self.engine.prune_versions();
            }
            Step::Look => self.look()?,
            _ => self.define(step)?,
        }
        let mut after = self.state.clone();
        step.apply(&mut after);
        next.push(after);
        Ok(())
    }

    fn begin(&self) -> Txn {
        self.engine.begin(TxnOptions {
            lock_wait_timeout: AT_ONCE,
            metadata_lock_timeout: AT_ONCE,
            ..TxnOptions::default()
        })
    }

    fn release(&mut self, commits: bool, next: &mut Vec<State>) -> Result<()> {
        let Some((txn, changes)) = self.held.take() else { return Ok(()) };
        if !commits {
            txn.rollback();
            return Ok(());
        }
        let mut after = self.state.clone();
        changes.iter().for_each(|change| change.apply(&mut after));
        let ticket = txn.commit().inspect_err(|e| {
            if e.kind() == ErrorKind::Stopped || self.disk.is_cut() {
                next.push(after.clone());
            }
        })?;
        next.push(after);
        ticket.wait()
    }

    /// Commits one after the other; only then are they waited for.
    fn pipeline(&mut self, transactions: &[Vec<Change>], next: &mut Vec<State>) -> Result<()> {
        let mut tickets = Vec::new();
        for changes in transactions {
            let mut txn = self.begin();
            let mut after = next.last().expect("at least what was there").clone();
            match self.change(&mut txn, changes).and_then(|()| txn.commit()) {
                Ok(ticket) => {
                    changes.iter().for_each(|change| change.apply(&mut after));
                    next.push(after);
                    tickets.push(ticket);
                }
                Err(e) if e.kind() == ErrorKind::Stopped || self.disk.is_cut() => {
                    changes.iter().for_each(|change| change.apply(&mut after));
                    next.push(after);
                    return Err(e);
                }
                Err(_) => self.refused += 1,
            }
        }
        tickets.into_iter().try_for_each(CommitTicket::wait)
    }

    fn table(&self, name: &str) -> Option<Arc<TableHandle>> {
        self.engine.catalog().table(DATABASE, name).cloned()
    }

    fn change(&self, txn: &mut Txn, changes: &[Change]) -> Result<()> {
        changes.iter().try_for_each(|change| self.change_one(txn, change))
    }

    fn change_one(&self, txn: &mut Txn, change: &Change) -> Result<()> {
        if let Change::TakenBack(changes) = change {
            let mark = txn.begin_statement();
            let outcome = self.change(txn, changes);
            txn.rollback_statement(mark);
            return outcome;
        }
        let Some(table) = change.table().and_then(|name| self.table(name)) else { return Ok(()) };
        txn.use_table(&table)?;
        let mark = txn.begin_statement();
        let outcome = match *change {
            Change::Insert(_, id, stamp) => {
                let row = Row::of(id, stamp, table.def.column("extra").is_some());
                txn.insert(&table, &values(id, &row, &table)).map(drop)
            }
            Change::Update(_, id, stamp) => {
                let row = Row::of(id, stamp, false);
                let set = [(1, Datum::Int(row.amount)), (2, Datum::str(&row.note))];
                find(txn, &table, id)?.map_or(Ok(()), |place| txn.update(&table, place, &set).map(drop))
            }
            Change::Move(_, id, to) => {
                let set = [(0, Datum::Int(to))];
                find(txn, &table, id)?.map_or(Ok(()), |place| txn.update(&table, place, &set).map(drop))
            }
            Change::Delete(_, id) => {
                find(txn, &table, id)?.map_or(Ok(()), |place| txn.delete(&table, place).map(drop))
            }
            Change::TakenBack(_) => unreachable!("done above"),
        };
        match outcome {
            Err(EngineError::DuplicateKey { .. }) => {
                txn.rollback_statement(mark);
                Ok(())
            }
            other => other,
        }
    }

    fn load(&self, name: &str, first: i64, count: i64, stamp: i64) -> Result<()> {
        let Some(table) = self.table(name) else { return Ok(()) };
        let mut builders: Vec<_> =
            table.def.columns.iter().map(|c| ColumnBuilder::new(&c.ty, count as usize)).collect();
        for id in first..first + count {
            let row = Row::of(id, stamp, table.def.column("extra").is_some());
            let values = values(id, &row, &table);
            builders.iter_mut().zip(&values).for_each(|(builder, value)| builder.append(value));
        }
        let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
        let mut txn = self.begin();
        txn.use_table(&table)?;
        let mut bulk = txn.bulk_insert(&table)?;
        bulk.push(&mut txn, &batch(&table, arrays))?;
        bulk.finish(&mut txn)?;
        txn.commit()?.wait()
    }

    /// An old snapshot still sees what it saw; then there is a new one.
    fn look(&mut self) -> Result<()> {
        if let Some((txn, version, seen)) = self.look.take()
            && version == self.engine.catalog_version()
        {
            assert_eq!(contents_of(&txn, &self.engine)?, seen, "a snapshot stays as it is");
        }
        let mut txn = self.begin();
        txn.fix_snapshot();
        let seen = contents_of(&txn, &self.engine)?;
        self.look = Some((txn, self.engine.catalog_version(), seen));
        Ok(())
    }

    fn define(&self, step: &Step) -> Result<()> {
        let engine = &self.engine;
        match step {
            Step::Database => engine.create_database(DATABASE, Collation::DEFAULT),
            Step::Create(name) => engine.create_table(definition(name)).map(drop),
            Step::Drop(name) => engine.drop_table(DATABASE, name, AT_ONCE),
            Step::Truncate(name) => engine.truncate_table(DATABASE, name, true, AT_ONCE),
            Step::Rename(from, to) => engine.rename_table((DATABASE, from), (DATABASE, to), true, AT_ONCE),
            Step::AddIndex(name) => engine.create_index(
                DATABASE,
                name,
                IndexDef::new("by_note", IndexKind::Unique, &[2]),
                AT_ONCE,
            ),
            Step::DropIndex(name) => engine.drop_index(DATABASE, name, "by_note", AT_ONCE),
            Step::User(n) => engine.put_user(UserDef::new(&format!("user{n}"), "%")),
            Step::Alter(name) => self.alter(name, None),
            Step::Reshape(name) => self.alter(name, Some(RESHAPED)),
            Step::Copy(from, to) => self.copy(from, to),
            _ => unreachable!("not a definition"),
        }
    }

    /// Gives a table one column more or less: the rows stay, and have `reshaped` in the new one; or they are copied to a table that
    /// then takes the old one's place.
    fn alter(&self, name: &str, reshaped: Option<i64>) -> Result<()> {
        let engine = &self.engine;
        let alteration = engine.alter(DATABASE, name, &[], None, AT_ONCE)?;
        let old = alteration.table().clone();
        let mut def = (*old.def).clone();
        let mut sources: Vec<_> = (0..def.columns.len()).map(Ok).collect();
        let value = reshaped.map_or(Datum::Null, Datum::Int);
        match def.column("extra") {
            Some(at) => {
                def.columns.remove(at);
                let _ = sources.remove(at);
            }
            None => {
                def.columns.push(ColumnDef::new("extra", SqlType::BIGINT).nullable());
                sources.push(Err(value.clone()));
            }
        }
        let (foreign, rest) = (NewForeignKeys::default(), AlterRest::default());
        if reshaped.is_some()
            && alteration.has_newest_rows_alone(engine)
            && alteration.reshape(engine, &def, &sources, &foreign, &rest)?
        {
            return Ok(());
        }
        let copy = engine.create_unfinished(def)?;
        let rows = self.copy_rows(&old, copy.table(), &value)?;
        alteration.replace_by(copy, rows, foreign, rest)
    }

    fn copy(&self, from: &str, to: &str) -> Result<()> {
        let Some(old) = self.table(from) else { return Ok(()) };
        let def = TableDef { columns: old.def.columns.clone(), ..definition(to) };
        let copy = self.engine.create_unfinished(def.clone())?;
        let rows = self.copy_rows(&old, copy.table(), &Datum::Null)?;
        copy.publish(&def, rows, None, true, AT_ONCE)
    }

    fn copy_rows(&self, old: &Arc<TableHandle>, new: &Arc<TableHandle>, added: &Datum<'_>) -> Result<u64> {
        let mut txn = self.begin();
        let kept = old.def.columns.len().min(new.def.columns.len());
        let scan = txn.scan(old, ScanRequest { columns: (0..kept).collect(), ..ScanRequest::default() });
        let mut bulk = txn.bulk_insert(new)?;
        for morsel in 0..scan.morsels() {
            let mut outcome = Ok(());
            let _ = scan.read(morsel, &mut |rows| {
                let mut arrays = rows.columns().to_vec();
                for column in &new.def.columns[kept..] {
                    let mut all = ColumnBuilder::new(&column.ty, rows.num_rows());
                    (0..rows.num_rows()).for_each(|_| all.append(added));
                    arrays.push(all.finish());
                }
                outcome = bulk.push(&mut txn, &batch(new, arrays));
                if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            outcome?;
        }
        let rows = bulk.finish(&mut txn)?;
        txn.commit()?.wait()?;
        Ok(rows)
    }

    /// The tables hold what they must. An attempt to read may fail once.
    pub fn check(&self, what: &str) {
        let there = contents(&self.engine).or_else(|_| contents(&self.engine)).expect("readable");
        assert_eq!(there, self.state, "{what}");
    }
}

fn definition(name: &str) -> TableDef {
    let note = SqlType::VarChar { len: 250, collation: Collation::UTF8MB4_BIN };
    let columns = [("id", SqlType::BIGINT), ("amount", SqlType::BIGINT), ("note", note)];
    let columns = columns.map(|(name, ty)| ColumnDef::new(name, ty)).to_vec();
    TableDef::new(
        DATABASE,
        name,
        columns,
        vec![IndexDef::primary(&[0]), IndexDef::secondary("by_amount", &[1])],
    )
}

fn values<'r>(id: i64, row: &'r Row, table: &TableHandle) -> Vec<Datum<'r>> {
    let mut values = vec![Datum::Int(id), Datum::Int(row.amount), Datum::str(&row.note)];
    if table.def.columns.len() > values.len() {
        values.push(row.extra.map_or(Datum::Null, Datum::Int));
    }
    values
}

fn batch(table: &TableHandle, arrays: Vec<ArrayRef>) -> RecordBatch {
    let fields = table.def.columns.iter().map(|c| Field::new(&c.name, c.ty.arrow_type(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new_with_options(schema, arrays, &RecordBatchOptions::new()).expect("of the types")
}

/// Where a row is, locked.
fn find(txn: &mut Txn, table: &Arc<TableHandle>, id: i64) -> Result<Option<RowId>> {
    let primary = table.indexes()[0].clone();
    let mut key = Vec::new();
    assert!(primary.keys.encode_prefix(&[Datum::Int(id)], &mut key));
    let (mut found, mut scratch) = (None, ReadScratch::default());
    let range = KeyRange::prefix(&key);
    let lock = RowLock::FOR_UPDATE;
    txn.lock_scan(table, &primary, &range, Direction::Ascending, lock, &mut scratch, &mut |place, _| {
        found = Some(place);
        ControlFlow::Break(())
    })?;
    Ok(found)
}
