//! Values at paths into documents: scans give the same of hot rows, of blocks with columns of paths, of compacted blocks, and after
//! recovery.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::concat;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::expr::CompareOp;
use avocet_types::json::shred::{Form, PathTest, Target};
use avocet_types::{Datum, IndexDef, SqlType, TableDef, json};
use common::{options, table};

const ROWS: i64 = 400;

fn document(id: i64) -> Option<String> {
    Some(match id % 40 {
        0 => return None,
        1 => format!(r#"{{"n": "{id}", "s": {id}, "o": [1]}}"#),
        2 => r#"{"n": null, "s": null, "o": {"d": null}}"#.to_owned(),
        3 => "[1]".to_owned(),
        4 => format!(r#"{{"s": "ends with a space ", "big": {}}}"#, u64::MAX),
        _ => {
            format!(r#"{{"n": {id}, "s": "s{}", "o": {{"d": {}.25}}, "clean": {}}}"#, id % 7, id % 11, id % 5)
        }
    })
}

fn insert(txn: &mut Txn, table: &Arc<TableHandle>, id: i64) {
    let document = document(id).map(|text| json::parse(&text).expect("a document").encode().expect("small"));
    let document = document.map_or(Datum::Null, |document| Datum::Bytes(document.into()));
    txn.insert(table, &[Datum::Int(id), document]).expect("inserted");
}

fn create(engine: &Engine) {
    let columns = vec![
        avocet_types::ColumnDef::new("id", SqlType::BIGINT),
        avocet_types::ColumnDef { nullable: true, ..avocet_types::ColumnDef::new("doc", SqlType::Json) },
    ];
    engine.create_database("d", avocet_types::Collation::DEFAULT).expect("created");
    engine.create_table(TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])])).expect("created");
}

fn names(path: &str) -> Arc<[Box<str>]> {
    path.split('.').map(Box::from).collect()
}

fn forms() -> Vec<Form> {
    let targets = [Target::Int, Target::Double, Target::String, Target::Decimal { precision: 10, scale: 2 }];
    let of_targets = targets.into_iter().flat_map(|target| [Form::Value(target), Form::Rest(target)]);
    [Form::Text, Form::Document].into_iter().chain(of_targets).collect()
}

const PATHS: [&str; 6] = ["n", "s", "o.d", "clean", "big", "nothing"];

fn conditions() -> Vec<PathCondition> {
    let mut conditions = Vec::new();
    for path in PATHS {
        for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Ge] {
            let tests = [
                PathTest::Text(op, "s3".into()),
                PathTest::Document(op, json::Json::Int(117).encode().expect("small").into()),
                PathTest::Document(op, json::Json::Double(3.25).encode().expect("small").into()),
                PathTest::Document(op, json::Json::String("s3".into()).encode().expect("small").into()),
                PathTest::Value(Target::Int, op, Datum::Int(117)),
                PathTest::Value(Target::Double, op, Datum::Double(3.25)),
                PathTest::Value(Target::Double, op, Datum::Double(4.0)),
            ];
            conditions.extend(tests.map(|test| PathCondition { column: 1, names: names(path), test }));
        }
    }
    conditions
}

/// The columns of a scan, of all morsels.
fn read(txn: &Txn, t: &Arc<TableHandle>, request: ScanRequest) -> Vec<ArrayRef> {
    let scan = txn.scan(t, request);
    let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); scan.schema().fields().len()];
    for morsel in 0..scan.morsels() {
        let each = &mut |batch: arrow::array::RecordBatch| {
            parts.iter_mut().zip(batch.columns()).for_each(|(parts, column)| parts.push(column.clone()));
            ControlFlow::Continue(())
        };
        let _ = scan.read(morsel, each).expect("readable");
    }
    let whole = |parts: Vec<ArrayRef>| {
        let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            arrow::array::new_empty_array(&arrow::datatypes::DataType::Null)
        } else {
            concat(&parts).expect("of a type")
        }
    };
    parts.into_iter().map(whole).collect()
}

/// All that scans give of paths.
fn everything(engine: &Arc<Engine>) -> Vec<Vec<ArrayRef>> {
    let (t, txn) = (table(engine), engine.begin(TxnOptions::default()));
    let mut all = Vec::new();
    for path in PATHS {
        let paths: Vec<_> =
            forms().into_iter().map(|form| PathColumn { column: 1, names: names(path), form }).collect();
        // Behind the two columns, and the id among them.
        let mut columns: Vec<usize> = (2..2 + paths.len()).collect();
        columns.insert(3, 0);
        all.push(read(&txn, &t, ScanRequest { columns, paths, ..ScanRequest::default() }));
    }
    for condition in conditions() {
        let path_conditions = vec![condition];
        all.push(read(&txn, &t, ScanRequest { columns: vec![0], path_conditions, ..ScanRequest::default() }));
    }
    all
}

fn columns_of_paths(engine: &Engine) -> usize {
    table(engine).stats().paths.len()
}

#[test]
fn paths_are_read_alike_from_hot_rows_and_blocks() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opened");
    create(&engine);
    let t = table(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    (0..ROWS).for_each(|id| insert(&mut txn, &t, id));
    txn.commit().expect("committed").wait().expect("durable");

    let hot = everything(&engine);
    assert_eq!(columns_of_paths(&engine), 0);
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    assert_eq!(everything(&engine), hot, "frozen");
    // Only of this one has every document a value of one kind or none.
    assert_eq!(columns_of_paths(&engine), 1);

    let mut txn = engine.begin(TxnOptions::default());
    let mut places = Vec::new();
    txn.table_rows(&t, ReadMode::Snapshot, &mut |place, row| {
        let Datum::Int(id) = row.get(0) else { panic!("an integer") };
        if id % 3 == 0 {
            places.push(place);
        }
        ControlFlow::Continue(())
    })
    .expect("read");
    for place in places {
        txn.delete(&t, place).expect("deleted");
    }
    txn.commit().expect("committed").wait().expect("durable");
    let fewer = everything(&engine);
    assert_ne!(fewer, hot);
    assert_eq!(engine.freeze_all().expect("compacted"), 0);
    assert_eq!(everything(&engine), fewer, "compacted");

    engine.checkpoint().expect("written");
    drop((t, engine));
    let report = check(options(&disk)).expect("checked");
    assert!(report.is_clean(), "{report:?}");
    let engine = Engine::open(options(&disk)).expect("opened again");
    assert_eq!(everything(&engine), fewer, "recovered");
    assert_eq!(columns_of_paths(&engine), 1);
}
