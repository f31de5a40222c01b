//! A bank: two tables, procedures over them, each registered twice: `name` is logged as rows, `name_logged` as calls.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_base::env::sim::SimDisk;
use avocet_engine::typed::{DateTime, NewTable, Table};
use avocet_engine::types::{Datum, SqlType, Value};
use avocet_engine::*;

row! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Account { pub id: i64, pub owner: String, pub balance: i64, pub note: Option<String> }
}

row! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Entry { pub id: Option<u64>, pub account: i64, pub amount: i64, pub at: DateTime, pub text: String }
}

/// Long enough that a call is shorter than the rows that it changes.
pub const NOTE: &str = "a note that is so long that nobody would want to have it in the log once for every change of the row, \
                        since the call that writes it is a good deal shorter than that, and does the same";

pub fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions {
        env: disk.env(),
        log_segment_bytes: 32 << 10,
        background: false,
        procedures: procedures(),
        ..EngineOptions::new("/data")
    }
}

pub fn create(engine: &Engine) -> Result<()> {
    engine.create_database("bank", types::Collation::DEFAULT)?;
    NewTable::new("bank", "accounts")
        .column("id", SqlType::BIGINT)
        .column("owner", NewTable::text(40))
        .column("balance", SqlType::BIGINT)
        .nullable("note", NewTable::text(400))
        .primary_key(&["id"])
        .index("balance", &["balance"])
        .create(engine)?;
    NewTable::new("bank", "entries")
        .auto_increment("id", SqlType::BIGINT_UNSIGNED)
        .column("account", SqlType::BIGINT)
        .column("amount", SqlType::BIGINT)
        .created_at("at", SqlType::DateTime { fsp: 6 })
        .column("text", NewTable::text(400))
        .primary_key(&["id"])
        .index("account", &["account"])
        .create(engine)?;
    Ok(())
}

pub fn accounts(engine: &Engine) -> Table<Account> {
    engine.table("bank", "accounts").expect("created")
}

pub fn entries(engine: &Engine) -> Table<Entry> {
    engine.table("bank", "entries").expect("created")
}

fn int(value: &Value) -> i64 {
    match value {
        Datum::Int(v) => *v,
        other => panic!("{other:?} is no integer"),
    }
}

fn book(call: &mut Call<'_>, account: i64, amount: i64) -> Result<()> {
    let at = DateTime(call.txn.now_us());
    let entry = Entry { id: None, account, amount, at, text: NOTE.into() };
    let number = entries(&call.txn.engine().clone()).insert(call.txn, &entry)?;
    assert!(number.is_some(), "an entry is numbered");
    call.reply.affected_rows += 1;
    Ok(())
}

/// Opens an account; what exists gets the money. The failed insert has used a row id.
fn open(call: &mut Call<'_>) -> Result<()> {
    let (id, amount) = (int(&call.arguments[0]), int(&call.arguments[1]));
    let table = accounts(&call.txn.engine().clone());
    let account = Account { id, owner: format!("owner {id}"), balance: amount, note: Some(NOTE.into()) };
    match table.insert(call.txn, &account) {
        Err(EngineError::DuplicateKey { .. }) => {
            table.update(call.txn, id, |row| row.balance += amount)?;
        }
        other => drop(other?),
    }
    book(call, id, amount)
}

fn transfer(call: &mut Call<'_>) -> Result<()> {
    let [from, to, amount] = [0, 1, 2].map(|n| int(&call.arguments[n]));
    let table = accounts(&call.txn.engine().clone());
    let Some(payer) = table.get_for_update(call.txn, from)? else {
        return Err(EngineError::signal(format!("no account {from}")));
    };
    book(call, from, -amount)?;
    let note = format!("{NOTE}, {}", payer.balance);
    table.update(call.txn, from, |row| {
        row.balance -= amount;
        row.note = Some(note);
    })?;
    if !table.update(call.txn, to, |row| row.balance += amount)? {
        return Err(EngineError::signal(format!("no account {to}")));
    }
    book(call, to, amount)
}

/// Closes the poorest accounts below a limit; what rows there are, and in which order, decides.
fn sweep(call: &mut Call<'_>) -> Result<()> {
    let limit = int(&call.arguments[0]);
    let table = accounts(&call.txn.engine().clone());
    let mut poor = Vec::new();
    table.index("balance").scan(call.txn, ..limit, Direction::Ascending, |row| {
        poor.push(row);
        if poor.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    for row in poor {
        table.delete(call.txn, row.id)?;
        book(call, row.id, -row.balance)?;
    }
    Ok(())
}

type Body = fn(&mut Call<'_>) -> Result<()>;

pub fn procedures() -> Procedures {
    let all: [(&str, &[&str], Body); 3] = [
        ("open", &["id", "amount"], open),
        ("transfer", &["payer", "payee", "amount"], transfer),
        ("sweep", &["limit"], sweep),
    ];
    let mut registered = Procedures::default();
    for (name, parameters, body) in all {
        let make = |name: String| {
            let procedure = Procedure::new("bank", name, body);
            parameters.iter().fold(procedure, |p, name| p.takes(*name, SqlType::BIGINT))
        };
        registered = registered.with(make(name.into())).with(make(format!("{name}_logged")).deterministic());
    }
    registered
}

pub fn call(engine: &Arc<Engine>, name: &str, arguments: &[i64]) -> Result<Reply> {
    let arguments: Vec<Value> = arguments.iter().copied().map(Datum::Int).collect();
    engine.call("bank", name, &arguments)
}

/// All rows of both tables.
pub fn contents(engine: &Arc<Engine>) -> String {
    if engine.catalog().table("bank", "entries").is_none() {
        return String::new();
    }
    let mut text = String::new();
    let mut txn = engine.begin(TxnOptions::default());
    let mut line = |row: &dyn std::fmt::Debug| {
        text.push_str(&format!("{row:?}\n").replace(NOTE, "…"));
        ControlFlow::Continue(())
    };
    let all = accounts(engine).primary().scan_all(&mut txn, Direction::Ascending, |row| line(&row));
    all.expect("readable");
    let all = entries(engine).primary().scan_all(&mut txn, Direction::Ascending, |row| line(&row));
    all.expect("readable");
    text
}
