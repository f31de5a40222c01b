//! Lists in rows, on an engine, and clients that append to them and read them in random transactions.
//!
//! Every key is a row whose text is a list of numbers; the row comes to be with the first append, so that reads of what is
//! not there are part of it.

#[path = "../common/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use avocet_base::Env;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;

use crate::checker::{Key, Op, Transaction, Value};

pub use random::Random;

pub const KEYS: i64 = 6;

pub fn options(disk: &SimDisk, freeze: FreezePolicy, broken_rule: Option<BrokenRule>) -> EngineOptions {
    let env = Env { disk: Arc::new(disk.clone()), ..Env::os() };
    let log_segment_bytes = 256 << 10;
    let options = EngineOptions::new("/data");
    EngineOptions { env, log_segment_bytes, background: false, freeze, broken_rule, ..options }
}

/// Makes the table.
pub fn create(engine: &Engine) {
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let list = SqlType::VarChar { len: 16_000, collation: Collation::UTF8MB4_BIN };
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("list", list)];
    let def = TableDef::new("d", "lists", columns, vec![IndexDef::primary(&[0])]);
    engine.create_table(def).expect("created");
}

/// A transaction that an error ended that is no part of the game.
pub struct Failed {
    /// What it had done. Whether it is committed is another matter.
    pub transaction: Transaction,
    /// Its commit was under way.
    pub in_doubt: bool,
    pub error: EngineError,
}

pub struct Worker {
    table: Arc<TableHandle>,
    scratch: ReadScratch,
}

impl Worker {
    pub fn new(engine: &Engine) -> Self {
        let table = engine.catalog().table("d", "lists").expect("created").clone();
        Self { table, scratch: ReadScratch::default() }
    }

    fn range(&self, key: Key) -> KeyRange {
        let mut bytes = Vec::new();
        assert!(self.table.indexes()[0].keys.encode_parts(0, &[Datum::Int(key)], &mut bytes));
        KeyRange::prefix(&bytes)
    }

    pub fn read(&mut self, txn: &Txn, key: Key) -> Result<Vec<Value>> {
        let mut list = Vec::new();
        let range = self.range(key);
        let index = self.table.indexes()[0].clone();
        txn.index_scan(
            &self.table,
            &index,
            &range,
            Direction::Ascending,
            &mut self.scratch,
            &mut |_, row| {
                list = values(&row);
                ControlFlow::Break(())
            },
        )?;
        Ok(list)
    }

    fn append(&mut self, txn: &mut Txn, key: Key, value: Value) -> Result<()> {
        let mut found = None;
        let range = self.range(key);
        let index = self.table.indexes()[0].clone();
        let lock = RowLock::FOR_UPDATE;
        txn.lock_scan(
            &self.table,
            &index,
            &range,
            Direction::Ascending,
            lock,
            &mut self.scratch,
            &mut |id, row| {
                found = Some((id, values(&row)));
                ControlFlow::Break(())
            },
        )?;
        match found {
            None => {
                let text = value.to_string();
                txn.insert(&self.table, &[Datum::Int(key), Datum::str(&text)]).map(drop)
            }
            Some((id, mut list)) => {
                list.push(value);
                let text: Vec<String> = list.iter().map(Value::to_string).collect();
                let text = text.join(",");
                let moved = txn.update(&self.table, id, &[(1, Datum::str(&text))])?;
                assert!(moved.is_some(), "a locked row is there");
                Ok(())
            }
        }
    }

    /// What all lists hold.
    pub fn all(&mut self, engine: &Arc<Engine>) -> BTreeMap<Key, Vec<Value>> {
        let txn = engine.begin(TxnOptions::default());
        (0..KEYS).map(|key| (key, self.read(&txn, key).expect("readable"))).collect()
    }

    /// Runs random operations; what became of them.
    pub fn transaction(
        &mut self,
        engine: &Arc<Engine>,
        isolation: Isolation,
        random: &mut Random,
        next: &AtomicI64,
    ) -> Result<Transaction, Box<Failed>> {
        let mut txn = engine.begin(TxnOptions {
            isolation,
            lock_wait_timeout: Duration::from_secs(10),
            ..TxnOptions::default()
        });
        let mut ops = Vec::new();
        let reads_only = random.below(4) == 0;
        for _ in 0..=random.below(4) {
            let key = random.below(KEYS as u64) as i64;
            let mark = txn.begin_statement();
            let done = if reads_only || random.below(2) == 0 {
                self.read(&txn, key).map(|list| ops.push(Op::Read(key, list)))
            } else {
                let value = next.fetch_add(1, Ordering::Relaxed);
                self.append(&mut txn, key, value).map(|()| ops.push(Op::Append(key, value)))
            };
            match done {
                Ok(()) => {}
                // Taken back alone, it leaves nothing.
                Err(EngineError::DuplicateKey { .. }) if random.below(2) == 0 => txn.rollback_statement(mark),
                Err(
                    EngineError::DuplicateKey { .. }
                    | EngineError::Deadlock
                    | EngineError::SnapshotConflict(_),
                ) => {
                    txn.rollback();
                    return Ok(Transaction { ops, committed: false });
                }
                Err(error) => return Err(failed(ops, false, error)),
            }
            if random.below(2) == 0 {
                std::thread::yield_now();
            }
        }
        if random.below(10) == 0 {
            txn.rollback();
            return Ok(Transaction { ops, committed: false });
        }
        match txn.commit().and_then(CommitTicket::wait) {
            Ok(()) => Ok(Transaction { ops, committed: true }),
            Err(EngineError::SerializationFailure) => Ok(Transaction { ops, committed: false }),
            Err(error) => Err(failed(ops, true, error)),
        }
    }
}

fn failed(ops: Vec<Op>, in_doubt: bool, error: EngineError) -> Box<Failed> {
    Box::new(Failed { transaction: Transaction { ops, committed: false }, in_doubt, error })
}

fn values(row: &RowRef<'_>) -> Vec<Value> {
    let Datum::Str(text) = row.get(1) else { panic!("a list is text") };
    text.split(',').map(|value| value.parse().expect("a number")).collect()
}
