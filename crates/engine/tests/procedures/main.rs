//! Native procedures: what callers get, and what the log makes of their calls.

mod bank;
mod crash;
#[path = "../common/random.rs"]
mod random;
mod together;

use std::path::Path;

use avocet_base::Lsn;
use avocet_base::env::sim::SimDisk;
use avocet_engine::types::{Datum, SqlType, Value};
use avocet_engine::*;
use avocet_log::LogReader;
use bank::{accounts, call, contents, create, options};

/// How many records of each kind the log has: transactions, calls.
fn records(disk: &SimDisk) -> (usize, usize) {
    let mut reader = LogReader::open(disk.env(), Path::new("/data/log"), Lsn(0)).expect("readable");
    let mut count = (0, 0);
    while let Some(record) = reader.next_record().expect("whole") {
        match record.kind {
            1 => count.0 += 1,
            4 => count.1 += 1,
            _ => {}
        }
    }
    count
}

#[test]
fn a_call_returns_results_and_is_all_or_nothing() {
    let disk = SimDisk::new();
    let procedure = Procedure::new("d", "Sum", |call| {
        let [Datum::Int(a), Datum::Int(b)] = call.arguments[..2] else {
            return Err(EngineError::signal("two numbers, please"));
        };
        call.reply.set(2, Datum::Int(a + b));
        let rows = call.reply.result_set(&[("a", SqlType::BIGINT), ("b", SqlType::BIGINT)]);
        rows.push(&[Datum::Int(a), Datum::Int(b)]);
        rows.push(&[Datum::Null, Datum::Int(a + b)]);
        call.reply.affected_rows = 7;
        Ok(())
    })
    .takes("a", SqlType::BIGINT)
    .takes("b", SqlType::BIGINT)
    .parameter("sum", SqlType::BIGINT, ParameterMode::Out);
    let mut options = options(&disk);
    options.procedures = options.procedures.with(procedure);
    let engine = Engine::open(options).expect("opened");
    create(&engine).expect("created");

    let reply =
        engine.call("D", "sum", &[Datum::Int(2), Datum::Str("3".into()), Datum::Null]).expect("called");
    assert!(matches!(reply.out(2), Some(Datum::Int(5))));
    assert_eq!(reply.affected_rows, 7);
    let rows: Vec<String> = reply.result_sets[0].rows().map(|row| format!("{row:?}")).collect();
    assert_eq!(rows, ["[Int(2), Int(3)]", "[Null, Int(5)]"]);

    let error = |result: Result<Reply>| result.expect_err("refused").to_string();
    let none: [Value; 3] = [Datum::Null, Datum::Null, Datum::Null];
    assert_eq!(error(engine.call("d", "sum", &none)), "two numbers, please");
    assert_eq!(error(engine.call("d", "sum", &none[..1])), "procedure d.Sum takes 3 arguments, got 1");
    assert_eq!(error(engine.call("d", "diff", &none)), "procedure d.diff does not exist");
    let wrong = [Datum::Str("x".into()), Datum::Int(1), Datum::Null];
    assert_eq!(
        error(engine.call("d", "sum", &wrong)),
        "Incorrect integer value: 'x' for column 'a' at row 1"
    );

    call(&engine, "open", &[1, 100]).expect("opened");
    let before = contents(&engine);
    assert_eq!(error(call(&engine, "transfer", &[1, 2, 30])), "no account 2");
    assert_eq!(contents(&engine), before, "what the failed call had changed is as it was");
}

#[test]
fn calls_are_logged_as_rows_or_by_their_arguments() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opened");
    create(&engine).expect("created");
    let bytes = |name: &str, id: i64| {
        let before = engine.log_stats().bytes;
        call(&engine, name, &[id, 100]).expect("called");
        engine.log_stats().bytes - before
    };
    let (rows, logged) = (bytes("open", 1), bytes("open_logged", 2));
    assert!(logged * 4 < rows, "{logged} bytes by arguments, {rows} as rows");
    drop(engine);
    assert_eq!(records(&disk), (1, 1));
}

#[test]
fn a_call_that_did_not_run_alone_is_logged_as_rows() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opened");
    create(&engine).expect("created");
    let procedure = engine.procedure("bank", "open_logged").expect("registered").clone();
    let arguments = [Datum::Int(1), Datum::Int(100)];

    // Somebody commits between its snapshot and its end.
    let mut txn = engine.begin_call(&procedure, &arguments, TxnOptions::default());
    call(&engine, "open", &[2, 5]).expect("committed");
    procedure.run(&mut txn, &arguments, &mut Reply::default()).expect("ran");
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(records(&disk), (2, 0));

    // A definition changes.
    let mut txn = engine.begin_call(&procedure, &[Datum::Int(3), Datum::Int(1)], TxnOptions::default());
    procedure.run(&mut txn, &[Datum::Int(3), Datum::Int(1)], &mut Reply::default()).expect("ran");
    engine.create_database("other", types::Collation::DEFAULT).expect("created");
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(records(&disk), (3, 0));

    // It is a part of another transaction.
    let mut txn = engine.begin(TxnOptions::default());
    procedure.run(&mut txn, &[Datum::Int(4), Datum::Int(1)], &mut Reply::default()).expect("ran");
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(records(&disk), (4, 0));

    let before = contents(&engine);
    drop(engine);
    let engine = Engine::open(options(&disk)).expect("recovered");
    assert_eq!(contents(&engine), before);
}

#[test]
fn recovery_needs_the_procedures_that_the_log_calls() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opened");
    create(&engine).expect("created");
    call(&engine, "open_logged", &[1, 100]).expect("called");
    let before = contents(&engine);
    drop(engine);

    let without = EngineOptions { procedures: Procedures::default(), ..options(&disk) };
    let refused = Engine::open(without).err().expect("refused");
    assert_eq!(
        refused.to_string(),
        "the log has a call of procedure bank.open_logged, which is not registered: recovery needs it"
    );

    let mut changed = options(&disk);
    let other = Procedure::new("bank", "open_logged", |call| {
        accounts(&call.txn.engine().clone()).delete(call.txn, 1).map(drop)
    });
    let other = other.takes("id", SqlType::BIGINT).takes("amount", SqlType::BIGINT).deterministic();
    changed.procedures = changed.procedures.with(other);
    let refused = Engine::open(changed).err().expect("refused");
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert!(refused.to_string().contains("procedure bank.open_logged is not deterministic"), "{refused}");

    // With the right ones all is there: the attempts have changed nothing.
    let engine = Engine::open(options(&disk)).expect("recovered");
    assert_eq!(contents(&engine), before);
    engine.shutdown().expect("shut down");
    drop(engine);
    let without = EngineOptions { procedures: Procedures::default(), ..options(&disk) };
    let engine = Engine::open(without).expect("a log without calls needs no procedures");
    assert_eq!(contents(&engine), before);
}
