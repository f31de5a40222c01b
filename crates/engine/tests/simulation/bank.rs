//! Customers with two accounts each, and as many of the bank's own. Transfers keep the total; a withdrawal looks at both
//! accounts of its customer, and goes from one of them to its counterpart at the bank: serializable ones never overdraw
//! a customer, while snapshots alone do, since two withdrawals need not change the same row.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_engine::*;
use avocet_types::*;

use crate::orders::{Random, int};
use crate::scheduler::pause;

const CUSTOMERS: i64 = 3;
/// The first of the bank's accounts.
const BANK: i64 = 100;
const FIRST: i64 = 50;

fn table(engine: &Engine) -> Arc<TableHandle> {
    engine.catalog().table("d", "account").expect("created").clone()
}

/// `account (id PRIMARY KEY, balance, KEY (balance))`; a customer's are `2c` and `2c + 1`.
pub fn create(engine: &Arc<Engine>) {
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let columns = ["id", "balance"].map(|name| ColumnDef::new(name, SqlType::BIGINT)).to_vec();
    let indexes = vec![IndexDef::primary(&[0]), IndexDef::secondary("balance", &[1])];
    let def = TableDef::new("d", "account", columns, indexes);
    let table = engine.create_table(def).expect("created");
    let mut txn = engine.begin(TxnOptions::default());
    for id in (0..2 * CUSTOMERS).flat_map(|id| [id, BANK + id]) {
        txn.insert(&table, &[Datum::Int(id), Datum::Int(FIRST)]).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
}

fn balances(txn: &Txn, table: &Arc<TableHandle>, index: usize) -> Vec<(i64, i64)> {
    let index = table.indexes()[index].clone();
    let (mut found, mut scratch) = (Vec::new(), ReadScratch::default());
    let each = &mut |_, row: RowRef<'_>| {
        found.push((int(&row, 0), int(&row, 1)));
        ControlFlow::Continue(())
    };
    txn.index_scan(table, &index, &KeyRange::all(), Direction::Ascending, &mut scratch, each)
        .expect("readable");
    found.sort_unstable();
    found
}

/// Whatever is under way, a snapshot has all accounts and all money.
pub fn check_total(engine: &Arc<Engine>, step: usize) {
    let txn = engine.begin(TxnOptions::default());
    let found = balances(&txn, &table(engine), step % 2);
    let total: i64 = found.iter().map(|(_, balance)| balance).sum();
    let accounts = 4 * CUSTOMERS;
    assert!(
        found.len() as i64 == accounts && total == accounts * FIRST,
        "step {step}: {found:?} are {total} in all"
    );
}

/// Whether no customer has less than nothing.
pub fn is_covered(engine: &Arc<Engine>) -> bool {
    let txn = engine.begin(TxnOptions::default());
    let found = balances(&txn, &table(engine), 0);
    found[..2 * CUSTOMERS as usize].chunks(2).all(|accounts| accounts[0].1 + accounts[1].1 >= 0)
}

pub fn client(engine: &Arc<Engine>, seed: u64, isolation: Isolation, transactions: usize) {
    let table = table(engine);
    let mut random = Random(seed);
    for _ in 0..transactions {
        let mut txn = engine.begin(TxnOptions { isolation, ..TxnOptions::default() });
        pause();
        let done = match random.below(2) {
            0 => transfer(&mut txn, &table, &mut random),
            _ => withdraw(&mut txn, &table, &mut random),
        };
        let ended = done.and_then(|()| txn.commit()).and_then(CommitTicket::wait);
        if let Err(e) = ended {
            assert_eq!(e.kind(), ErrorKind::Retry, "{e}");
        }
        pause();
    }
}

fn add(txn: &mut Txn, table: &Arc<TableHandle>, id: i64, amount: i64) -> Result<()> {
    let index = table.indexes()[0].clone();
    let mut key = Vec::new();
    assert!(index.keys.encode_prefix(&[Datum::Int(id)], &mut key));
    txn.begin_statement();
    let mut scratch = ReadScratch::default();
    let place = txn.modify_unique(table, &index, &key, &mut scratch, &mut |row, to| {
        to.set(1, &Datum::Int(int(&row, 1) + amount));
    })?;
    assert!(place.is_some(), "account {id} is there");
    pause();
    Ok(())
}

/// From one customer's account to the same one's other, so that it covers what was covered.
fn transfer(txn: &mut Txn, table: &Arc<TableHandle>, random: &mut Random) -> Result<()> {
    let from = random.below(2 * CUSTOMERS);
    let amount = 1 + random.below(40);
    add(txn, table, from, -amount)?;
    add(txn, table, from ^ 1, amount)
}

fn withdraw(txn: &mut Txn, table: &Arc<TableHandle>, random: &mut Random) -> Result<()> {
    let from = random.below(2 * CUSTOMERS);
    let amount = 30 + random.below(60);
    txn.begin_statement();
    let seen = balances(txn, table, 0);
    pause();
    let of = |id: i64| seen.iter().find(|(at, _)| *at == id).expect("all are there").1;
    if of(from) + of(from ^ 1) >= amount {
        add(txn, table, from, -amount)?;
        add(txn, table, BANK + from, amount)?;
    }
    Ok(())
}
