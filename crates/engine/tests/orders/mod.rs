//! Order entry in small: TPC-C's transactions on a few rows, and its consistency conditions as a check of any snapshot.
//!
//! ```text
//!  district  d │ next order, paid                    stock     i │ sold, orders, counted
//!  customer  d, c │ balance, paid, deliveries        orders    d, o │ customer, carrier (0: none yet), lines
//!  pending   d, o │                                  line      d, o, n │ item, quantity, amount, delivered
//! ```
//!
//! Few rows and much change: nearly every transaction meets rows that others have just changed, that have been frozen in
//! between, or whose old versions are just being collected.
#![allow(dead_code, reason = "not every test binary uses all of it")]

mod conditions;
#[path = "../common/random.rs"]
mod random;

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_engine::*;
use avocet_types::*;

pub use conditions::see;
pub use random::Random;

pub const DISTRICTS: i64 = 2;
pub const CUSTOMERS: i64 = 4;
pub const ITEMS: i64 = 12;

/// Name, number of columns, columns of the primary key (the first ones), columns of a secondary key.
const TABLES: [(&str, usize, usize, &[usize]); 6] = [
    ("district", 3, 1, &[]),
    ("customer", 5, 2, &[2]),
    ("orders", 5, 2, &[0, 2, 1]),
    ("pending", 2, 2, &[]),
    ("line", 7, 3, &[3]),
    ("stock", 4, 1, &[]),
];

/// The tables of an engine.
pub struct Tables {
    pub district: Arc<TableHandle>,
    pub customer: Arc<TableHandle>,
    pub orders: Arc<TableHandle>,
    pub pending: Arc<TableHandle>,
    pub line: Arc<TableHandle>,
    pub stock: Arc<TableHandle>,
}

fn definition(name: &str, columns: usize, key: usize, secondary: &[usize]) -> TableDef {
    let columns = (0..columns).map(|n| ColumnDef::new(format!("c{n}"), SqlType::BIGINT)).collect();
    let first: Vec<usize> = (0..key).collect();
    let mut indexes = vec![IndexDef::primary(&first)];
    if !secondary.is_empty() {
        indexes.push(IndexDef::secondary("second", secondary));
    }
    TableDef::new("d", name, columns, indexes)
}

/// Makes the tables and their first rows.
pub fn create(engine: &Arc<Engine>) -> Result<Tables> {
    engine.create_database("d", Collation::DEFAULT)?;
    for (name, columns, key, secondary) in TABLES {
        engine.create_table(definition(name, columns, key, secondary))?;
    }
    let tables = open(engine);
    let mut txn = engine.begin(TxnOptions::default());
    for d in 0..DISTRICTS {
        insert(&mut txn, &tables.district, &[d, 1, 0])?;
        for c in 0..CUSTOMERS {
            insert(&mut txn, &tables.customer, &[d, c, 0, 0, 0])?;
        }
    }
    for i in 0..ITEMS {
        insert(&mut txn, &tables.stock, &[i, 0, 0, 0])?;
    }
    txn.commit()?.wait()?;
    Ok(tables)
}

pub fn open(engine: &Arc<Engine>) -> Tables {
    let catalog = engine.catalog();
    let table = |name: &str| catalog.table("d", name).expect("created").clone();
    Tables {
        district: table("district"),
        customer: table("customer"),
        orders: table("orders"),
        pending: table("pending"),
        line: table("line"),
        stock: table("stock"),
    }
}

fn insert(txn: &mut Txn, table: &Arc<TableHandle>, row: &[i64]) -> Result<RowId> {
    let row: Vec<Datum<'_>> = row.iter().map(|v| Datum::Int(*v)).collect();
    txn.insert(table, &row)
}

fn key(table: &TableHandle, values: &[i64]) -> Vec<u8> {
    let values: Vec<Datum<'_>> = values.iter().map(|v| Datum::Int(*v)).collect();
    let mut key = Vec::new();
    assert!(table.indexes()[0].keys.encode_prefix(&values, &mut key));
    key
}

pub fn int(row: &RowRef<'_>, column: usize) -> i64 {
    let Datum::Int(value) = row.get(column) else { panic!("all columns are numbers") };
    value
}

/// What a client does: one transaction after the other.
pub struct Client<'e> {
    pub engine: &'e Arc<Engine>,
    pub tables: Tables,
    pub random: Random,
    pub isolation: Isolation,
    /// Called between any two operations.
    pub pause: &'e (dyn Fn() + Sync),
    scratch: ReadScratch,
}

impl<'e> Client<'e> {
    pub fn new(
        engine: &'e Arc<Engine>,
        seed: u64,
        isolation: Isolation,
        pause: &'e (dyn Fn() + Sync),
    ) -> Self {
        let (tables, scratch) = (open(engine), ReadScratch::default());
        Self { engine, tables, random: Random(seed), isolation, pause, scratch }
    }

    /// Runs a transaction; false if it was rolled back.
    pub fn transaction(&mut self) -> bool {
        let mut txn = self.engine.begin(TxnOptions { isolation: self.isolation, ..TxnOptions::default() });
        (self.pause)();
        if self.random.below(3) == 0 {
            // A read by which the snapshot of the transaction begins.
            txn.begin_statement();
            let pending = self.pending_count(&txn);
            assert!(pending.is_ok(), "{pending:?}");
            (self.pause)();
        }
        let done = match self.random.below(16) {
            0..6 => self.new_order(&mut txn),
            6..10 => self.payment(&mut txn),
            10..14 => self.delivery(&mut txn),
            _ => self.count_stock(&mut txn),
        };
        match done {
            Ok(()) if self.random.below(10) == 0 => txn.rollback(),
            Ok(()) => match txn.commit() {
                Ok(ticket) => {
                    ticket.wait().expect("durable");
                    return true;
                }
                Err(e) => assert_eq!(e.kind(), ErrorKind::Retry, "{e}"),
            },
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Retry, "{e}");
                txn.rollback();
            }
        }
        false
    }

    fn pending_count(&mut self, txn: &Txn) -> Result<usize> {
        let mut count = 0;
        let table = &self.tables.pending;
        let index = table.indexes()[0].clone();
        let each = &mut |_, _: RowRef<'_>| {
            count += 1;
            ControlFlow::Continue(())
        };
        txn.index_scan(table, &index, &KeyRange::all(), Direction::Ascending, &mut self.scratch, each)?;
        Ok(count)
    }

    /// Changes the one row with this key; it must be there. Strictly it may be that a newer snapshot has it.
    fn modify(
        &mut self,
        txn: &mut Txn,
        table: &Arc<TableHandle>,
        at: &[i64],
        change: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
    ) -> Result<()> {
        txn.begin_statement();
        let index = table.indexes()[0].clone();
        let key = key(table, at);
        let place = txn.modify_unique(table, &index, &key, &mut self.scratch, change)?;
        assert!(place.is_some(), "{} {at:?} is gone", table.def.name);
        (self.pause)();
        Ok(())
    }

    fn new_order(&mut self, txn: &mut Txn) -> Result<()> {
        let (d, c) = (self.random.below(DISTRICTS), self.random.below(CUSTOMERS));
        let lines = 1 + self.random.below(4);
        let mut o = 0;
        self.modify(txn, &self.tables.district.clone(), &[d], &mut |row, to| {
            o = int(&row, 1);
            to.set(1, &Datum::Int(o + 1));
        })?;
        insert(txn, &self.tables.orders, &[d, o, c, 0, lines])?;
        (self.pause)();
        insert(txn, &self.tables.pending, &[d, o])?;
        for n in 0..lines {
            let (i, quantity) = (self.random.below(ITEMS), 1 + self.random.below(5));
            self.modify(txn, &self.tables.stock.clone(), &[i], &mut |row, to| {
                to.set(1, &Datum::Int(int(&row, 1) + quantity));
                to.set(2, &Datum::Int(int(&row, 2) + 1));
            })?;
            insert(txn, &self.tables.line, &[d, o, n, i, quantity, quantity * (i + 1), 0])?;
            (self.pause)();
        }
        Ok(())
    }

    fn payment(&mut self, txn: &mut Txn) -> Result<()> {
        let (d, c) = (self.random.below(DISTRICTS), self.random.below(CUSTOMERS));
        let amount = 1 + self.random.below(100);
        self.modify(txn, &self.tables.district.clone(), &[d], &mut |row, to| {
            to.set(2, &Datum::Int(int(&row, 2) + amount));
        })?;
        self.modify(txn, &self.tables.customer.clone(), &[d, c], &mut |row, to| {
            to.set(2, &Datum::Int(int(&row, 2) - amount));
            to.set(3, &Datum::Int(int(&row, 3) + amount));
        })
    }

    /// Delivers the oldest pending order of a district, if there is one.
    fn delivery(&mut self, txn: &mut Txn) -> Result<()> {
        let d = self.random.below(DISTRICTS);
        let Some(o) = self.take_oldest(txn, d)? else { return Ok(()) };
        (self.pause)();
        let (mut c, mut lines) = (0, 0);
        self.modify(txn, &self.tables.orders.clone(), &[d, o], &mut |row, to| {
            (c, lines) = (int(&row, 2), int(&row, 4));
            assert_eq!(int(&row, 3), 0, "a pending order has no carrier");
            to.set(3, &Datum::Int(1 + o % 10));
        })?;
        let (mut met, mut sum) = (0, 0);
        let table = self.tables.line.clone();
        let index = table.indexes()[0].clone();
        let range = KeyRange::prefix(&key(&table, &[d, o]));
        let deliver = &mut |row: RowRef<'_>, to: &mut RowChange<'_>| {
            met += 1;
            sum += int(&row, 5);
            assert_eq!(int(&row, 6), 0, "a pending order's lines are not delivered");
            to.set(6, &Datum::Int(1));
            ControlFlow::Continue(())
        };
        let ascending = Direction::Ascending;
        txn.begin_statement();
        txn.modify_range(&table, &index, &range, ascending, &mut self.scratch, deliver)?;
        assert_eq!(met, lines, "all lines of order {d}, {o}");
        (self.pause)();
        self.modify(txn, &self.tables.customer.clone(), &[d, c], &mut |row, to| {
            to.set(2, &Datum::Int(int(&row, 2) + sum));
            to.set(4, &Datum::Int(int(&row, 4) + 1));
        })
    }

    fn take_oldest(&mut self, txn: &mut Txn, d: i64) -> Result<Option<i64>> {
        let table = self.tables.pending.clone();
        let index = table.indexes()[0].clone();
        let range = KeyRange::prefix(&key(&table, &[d]));
        let (lock, ascending) = (RowLock::FOR_UPDATE, Direction::Ascending);
        let mut oldest = None;
        txn.begin_statement();
        txn.lock_scan(&table, &index, &range, ascending, lock, &mut self.scratch, &mut |place, row| {
            oldest = Some((place, int(&row, 1)));
            ControlFlow::Break(())
        })?;
        let Some((place, o)) = oldest else { return Ok(None) };
        (self.pause)();
        assert!(txn.delete(&table, place)?, "a locked row is there");
        Ok(Some(o))
    }

    /// Changes every row of a table in one statement.
    fn count_stock(&mut self, txn: &mut Txn) -> Result<()> {
        let table = self.tables.stock.clone();
        let index = table.indexes()[0].clone();
        let mut met = Vec::new();
        let count = &mut |row: RowRef<'_>, to: &mut RowChange<'_>| {
            met.push(int(&row, 0));
            to.set(3, &Datum::Int(int(&row, 3) + 1));
            ControlFlow::Continue(())
        };
        let all = KeyRange::all();
        txn.begin_statement();
        txn.modify_range(&table, &index, &all, Direction::Ascending, &mut self.scratch, count)?;
        assert_eq!(met, (0..ITEMS).collect::<Vec<_>>(), "a statement that changes all rows meets each once");
        (self.pause)();
        Ok(())
    }
}
