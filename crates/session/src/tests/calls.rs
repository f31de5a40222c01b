//! CALL of native procedures, alone and in transactions, by text and prepared.

use std::ops::ControlFlow;

use avocet_engine::{Direction, EngineError, KeyRange, ParameterMode, Procedure, Procedures, ReadScratch};
use avocet_types::{Datum, Decimal, SqlType};

use super::Client;

/// `test.put(id, note)` inserts into `t`, `test.sum(OUT total, INOUT factor)` reads it, `test.two()` has two result sets.
pub fn procedures() -> Procedures {
    let table = |call: &mut avocet_engine::Call<'_>| {
        let catalog = call.txn.engine().catalog();
        let table = catalog.table("test", "t").cloned();
        let table = table.ok_or_else(|| EngineError::NoSuchTable("test".into(), "t".into()))?;
        call.txn.use_table(&table).map(|()| table)
    };
    let put = Procedure::new("test", "put", move |call| {
        let table = table(call)?;
        call.txn.insert(&table, call.arguments)?;
        if call.arguments[0].is_null() || matches!(&call.arguments[1], Datum::Str(s) if s == "no") {
            return Err(EngineError::signal("no such note"));
        }
        call.reply.affected_rows = 1;
        Ok(())
    });
    let sum = Procedure::new("test", "sum", move |call| {
        let table = table(call)?;
        let mut sum = 0;
        let add = &mut |_, row: avocet_types::RowRef<'_>| {
            if let Datum::Int(id) = row.get(0) {
                sum += id;
            }
            ControlFlow::Continue(())
        };
        let index = &table.indexes()[0];
        let mut scratch = ReadScratch::default();
        call.txn.index_scan(&table, index, &KeyRange::all(), Direction::Ascending, &mut scratch, add)?;
        let factor = match call.arguments[1] {
            Datum::Int(v) => v,
            _ => 1,
        };
        call.reply.set(0, Datum::Decimal(Decimal::new((sum * factor * 100).into(), 2)));
        call.reply.set(1, Datum::Int(factor + 1));
        Ok(())
    });
    let two = Procedure::new("test", "two", |call| {
        call.reply.result_set(&[("n", SqlType::BIGINT)]).push(&[Datum::Int(1)]);
        let second = call.reply.result_set(&[("a", SqlType::BIGINT), ("b", SqlType::DOUBLE)]);
        second.push(&[Datum::Null, Datum::Double(0.5)]);
        second.push(&[Datum::Int(2), Datum::Double(1.5)]);
        Ok(())
    });
    let amount = SqlType::Decimal { precision: 10, scale: 2, unsigned: false };
    Procedures::default()
        .with(put.takes("id", SqlType::BIGINT).takes("note", avocet_engine::typed::NewTable::text(20)))
        .with(sum.parameter("total", amount, ParameterMode::Out).parameter(
            "factor",
            SqlType::BIGINT,
            ParameterMode::InOut,
        ))
        .with(two)
}

fn client() -> Client {
    let mut client = Client::with(|options| options.procedures = procedures());
    client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, note VARCHAR(20))");
    client
}

#[test]
fn a_call_is_a_transaction_of_its_own() {
    let mut client = client();
    client.check("CALL put(1, CONCAT('a', 'b')); SELECT * FROM t", "ok 1\n1|ab");
    client.check("CALL TEST.Put(2, 'no')", "ERROR 1644: no such note");
    client.check("CALL put(1, 'x')", "ERROR 1062: Duplicate entry '1' for key 't.PRIMARY'");
    client.check("CALL put((SELECT MAX(id) + 2 FROM t), 5)", "ok 1");
    client.check("SELECT * FROM t ORDER BY id", "1|ab\n3|5");
    client.check("CALL two", "1\nNULL|0.5\n2|1.5\nok 0");
    client.check("CALL two(); SELECT 7", "1\nNULL|0.5\n2|1.5\nok 0\n7");
}

#[test]
fn a_call_in_a_transaction_is_a_part_of_it() {
    let mut client = client();
    client.check("BEGIN; CALL put(1, 'a'); CALL put(2, 'no')", "ok 0\nok 1\nERROR 1644: no such note");
    let mut other = client.another();
    other.check("SELECT COUNT(*) FROM t", "0");
    client.check("SELECT * FROM t; ROLLBACK; SELECT COUNT(*) FROM t", "1|a\nok 0\n0");
    client.check("SET autocommit = 0; CALL put(3, 'c'); COMMIT", "ok 0\nok 1\nok 0");
    other.check("SELECT * FROM t", "3|c");
    let read_only = "ERROR 1792: Cannot execute statement in a READ ONLY transaction.";
    client.check("START TRANSACTION READ ONLY; CALL put(4, 'd')", &format!("ok 0\n{read_only}"));
}

#[test]
fn out_parameters_are_user_variables() {
    let mut client = client();
    client.run("INSERT INTO t VALUES (1, 'a'), (4, 'b')");
    client.check("SET @f = '3'; CALL sum(@total, @f); SELECT @total, @f", "ok 0\nok 0\n15.00|4");
    client.check("CALL sum(@total, @none); SELECT @total, @none", "ok 0\n5.00|2");
    client.check(
        "CALL sum(@total, 2)",
        "ERROR 1414: OUT or INOUT argument 2 for routine test.sum is not a variable or NEW pseudo-variable in BEFORE \
         trigger",
    );
}

#[test]
fn out_parameters_of_prepared_calls_come_back_to_whoever_executes_them() {
    let mut client = client();
    client.run("INSERT INTO t VALUES (1, 'a'), (4, 'b')");
    let sum = client.prepare("CALL sum(?, ?)");
    let answer = client.execute(sum, &[Datum::Null, Datum::Int(3)]);
    assert_eq!(answer, "out total, factor\n15.00|4\nok 0\n");
    let mixed = client.prepare("CALL sum(@total, ?)");
    assert_eq!(client.execute(mixed, &[Datum::str("2").into_owned()]), "out factor\n3\nok 0\n");
    client.check("SELECT @total", "10.00");
    client.check(
        "PREPARE s FROM 'CALL sum(?, ?)'; SET @f = 5; EXECUTE s USING @all, @f",
        "ok 0 (Statement prepared)\nok 0\nok 0",
    );
    client.check("SELECT @all, @f", "25.00|6");
}

#[test]
fn what_is_wrong_with_a_call_is_said_as_mysql_says_it() {
    let mut client = client();
    client.check("CALL nope(1)", "ERROR 1305: PROCEDURE test.nope does not exist");
    client.check("CALL d.put(1, 2)", "ERROR 1305: PROCEDURE d.put does not exist");
    client.check(
        "CALL put(1)",
        "ERROR 1318: Incorrect number of arguments for PROCEDURE test.put; expected 2, got 1",
    );
    client.check("CALL put('x', 'y')", "ERROR 1366: Incorrect integer value: 'x' for column 'id' at row 1");
    client.check("CALL put(1, REPEAT('x', 21))", "ERROR 1406: Data too long for column 'note' at row 1");
    client.check("SELECT COUNT(*) FROM t", "0");
}

#[test]
fn procedures_are_listed() {
    let mut client = client();
    client.check(
        "SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES",
        "test|put\ntest|sum\ntest|two",
    );
    let shown = client.run("SHOW PROCEDURE STATUS");
    assert!(shown.starts_with("test|put|PROCEDURE|RUST|root@localhost|"), "{shown}");
}

#[test]
fn a_prepared_call_takes_parameters() {
    let mut client = client();
    let put = client.prepare("CALL put(?, ?)");
    for id in 1..=3 {
        assert_eq!(client.execute(put, &[Datum::Int(id), Datum::Str(format!("n{id}").into())]), "ok 1\n");
    }
    client.check("SELECT * FROM t", "1|n1\n2|n2\n3|n3");
    client.check(
        "PREPARE p FROM 'CALL sum(@total, @f)'; EXECUTE p; SELECT @total",
        "ok 0 (Statement prepared)\nok 0\n6.00",
    );
}
