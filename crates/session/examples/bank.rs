//! Avocet as a library: typed tables, transactions, a native procedure, and SQL over the same data. No server.
//!
//! ```sh
//! cargo run --release --example bank -- /tmp/bank
//! ```

use std::error::Error;
use std::ops::ControlFlow;
use std::process::ExitCode;

use avocet_engine::typed::NewTable;
use avocet_engine::types::{Collation, Datum, SqlType};
use avocet_engine::{Call, Engine, EngineError, EngineOptions, Procedure, Procedures, TxnOptions, row};
use avocet_session::Database;

row! {
    #[derive(Debug)]
    pub struct Account { pub id: i64, pub owner: String, pub balance: i64 }
}

/// `bank.transfer(payer, payee, amount)`, in cents.
fn transfer(call: &mut Call<'_>) -> Result<(), EngineError> {
    let [Datum::Int(payer), Datum::Int(payee), Datum::Int(amount)] = call.arguments[..] else {
        return Err(EngineError::signal("an argument is NULL"));
    };
    let accounts = call.txn.engine().table::<Account>("bank", "accounts")?;
    let mut left = 0;
    accounts.update(call.txn, payer, |account| {
        account.balance -= amount;
        left = account.balance;
    })?;
    // Whatever fails takes back all of the call.
    if left < 0 {
        return Err(EngineError::signal("there is not enough money"));
    }
    accounts.update(call.txn, payee, |account| account.balance += amount)?;
    Ok(())
}

fn run(directory: &str) -> Result<(), Box<dyn Error>> {
    let transfer = Procedure::new("bank", "transfer", transfer)
        .takes("payer", SqlType::BIGINT)
        .takes("payee", SqlType::BIGINT)
        .takes("amount", SqlType::BIGINT)
        .deterministic();
    let procedures = Procedures::default().with(transfer);
    let engine = Engine::open(EngineOptions { procedures, ..EngineOptions::new(directory) })?;
    if engine.catalog().database("bank").is_none() {
        engine.create_database("bank", Collation::DEFAULT)?;
        NewTable::new("bank", "accounts")
            .column("id", SqlType::BIGINT)
            .column("owner", NewTable::text(80))
            .column("balance", SqlType::BIGINT)
            .primary_key(&["id"])
            .index("owner", &["owner"])
            .create(&engine)?;
    }
    let accounts = engine.table::<Account>("bank", "accounts")?;

    let mut txn = engine.begin(TxnOptions::default());
    for (id, owner) in [(1, "Ada"), (2, "Grace"), (3, "Barbara")] {
        accounts.put(&mut txn, &Account { id, owner: owner.into(), balance: 10_000 })?;
    }
    txn.commit()?.wait()?;

    let cents = |amounts: [i64; 3]| amounts.map(Datum::Int);
    engine.call("bank", "transfer", &cents([1, 2, 2_500]))?;
    if let Err(refused) = engine.call("bank", "transfer", &cents([3, 1, 50_000])) {
        println!("refused: {refused}");
    }

    let mut txn = engine.begin(TxnOptions::default());
    println!("Grace: {:?}", accounts.index("owner").get(&mut txn, "grace")?);
    accounts.scan(&mut txn, 1..=3, |account| {
        println!("{:>8} {:>4}.{:02}", account.owner, account.balance / 100, account.balance % 100);
        ControlFlow::Continue(())
    })?;
    drop(txn);

    let database = Database::new(engine, None)?;
    let mut connection = database.connect(Some("bank"))?;
    connection.query("CALL transfer(2, 3, 1000)")?;
    let answer = connection.query("SELECT COUNT(*), SUM(balance) FROM accounts")?;
    println!("{:?}", answer.rows);
    drop(connection);
    Ok(database.shutdown()?)
}

fn main() -> ExitCode {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: bank DIRECTORY");
        return ExitCode::FAILURE;
    };
    match run(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
