//! A small table and an engine without background threads, for the tests of faults.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;

pub fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions {
        env: disk.env(),
        log_segment_bytes: 16 << 10,
        background: false,
        ..EngineOptions::new("/data")
    }
}

#[allow(dead_code, reason = "not every test binary has this table")]
pub fn create(engine: &Engine) {
    engine.create_database("d", Collation::DEFAULT).expect("created");
    engine.create_table(definition()).expect("created");
}

/// `d.t (id BIGINT PRIMARY KEY, note VARCHAR(200))`
#[allow(dead_code, reason = "not every test binary has this table")]
pub fn definition() -> TableDef {
    let note = SqlType::VarChar { len: 200, collation: Collation::UTF8MB4_BIN };
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("note", note)];
    TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])])
}

pub fn table(engine: &Engine) -> Arc<TableHandle> {
    engine.catalog().table("d", "t").expect("created").clone()
}

#[allow(dead_code, reason = "not every test binary inserts")]
pub fn insert(txn: &mut Txn, table: &Arc<TableHandle>, id: i64) -> Result<RowId> {
    let note = "note ".repeat(id as usize % 30);
    txn.insert(table, &[Datum::Int(id), Datum::str(&note)])
}

/// Rows that a new snapshot has.
#[allow(dead_code, reason = "not every test binary counts")]
pub fn rows(engine: &Arc<Engine>) -> usize {
    let (t, mut txn) = (table(engine), engine.begin(TxnOptions::default()));
    let mut rows = 0;
    txn.table_rows(&t, ReadMode::Snapshot, &mut |_, _| {
        rows += 1;
        std::ops::ControlFlow::Continue(())
    })
    .expect("read");
    rows
}
