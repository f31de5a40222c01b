//! What single operations of the engine cost: CPU time of one thread per operation, on the real disk.
//!
//! `cargo run --release -p avocet-engine --example oltp -- [ROWS] [DIR]`

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_engine::*;
use avocet_types::*;
use rustix::time::{ClockId, clock_gettime};

fn cpu_ns() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn measure(name: &str, operations: u64, mut run: impl FnMut(u64)) {
    let begin = cpu_ns();
    (0..operations).for_each(&mut run);
    println!("{name:<44} {:8.0} ns", (cpu_ns() - begin) / operations as f64);
}

fn table(engine: &Arc<Engine>) -> Arc<TableHandle> {
    let text = |len| SqlType::VarChar { len, collation: Collation::UTF8MB4_BIN };
    let mut columns = vec![ColumnDef::new("w", SqlType::INT), ColumnDef::new("i", SqlType::INT)];
    columns.extend((0..10).map(|n| ColumnDef::new(format!("dist_{n}"), text(24))));
    columns.push(ColumnDef::new("quantity", SqlType::INT));
    columns.push(ColumnDef::new("data", text(50)));
    engine.create_database("d", Collation::DEFAULT).expect("created");
    engine
        .create_table(TableDef::new("d", "stock", columns, vec![IndexDef::primary(&[0, 1])]))
        .expect("created")
}

fn main() {
    let mut args = std::env::args().skip(1);
    let rows: u64 = args.next().map_or(200_000, |n| n.parse().expect("a number of rows"));
    let dir = args.next().unwrap_or_else(|| std::env::temp_dir().join("avocet-oltp").display().to_string());
    let _ = std::fs::remove_dir_all(&dir);
    let engine = Engine::open(EngineOptions::new(&dir)).expect("open");
    let t = table(&engine);
    let primary = t.indexes()[0].clone();
    let info = "abcdefghijklmnopqrstuvwx";
    let options = TxnOptions { freshness: Freshness::Logged, ..TxnOptions::default() };
    let mut txn = Some(engine.begin(options));
    measure("insert (14 columns, 340 bytes)", rows, |n| {
        let mut row = vec![Datum::Int(1), Datum::Int(n as i64)];
        row.extend((0..10).map(|_| Datum::str(info)));
        row.extend([Datum::Int(50), Datum::str("some data of the stock")]);
        txn.as_mut().expect("open").insert(&t, &row).expect("inserted");
        if n % 1000 == 999 {
            drop(txn.take().expect("open").commit().expect("logged"));
            txn = Some(engine.begin(options));
        }
    });
    txn.take().expect("open").commit().expect("logged").wait().expect("durable");
    let mut state = 88172645463325252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % rows) as i64
    };
    let mut scratch = ReadScratch::default();
    let mut key = Vec::new();
    measure("begin and commit, nothing done", rows, |_| {
        drop(engine.begin(options).commit().expect("nothing to log"));
    });
    let reader = engine.begin(options);
    let mut sum = 0;
    measure("get by primary key", rows, |_| {
        key.clear();
        assert!(primary.keys.encode_prefix(&[Datum::Int(1), Datum::Int(random())], &mut key));
        let found = reader.get_unique(&t, &primary, &key, &mut scratch, &mut |_, row| {
            if let Datum::Int(v) = row.get(12) {
                sum += v;
            }
        });
        assert!(found.expect("readable"));
    });
    reader.rollback();
    for per_txn in [1, 10] {
        measure(&format!("lock, update; {per_txn} a transaction"), rows / per_txn, |_| {
            let mut txn = engine.begin(options);
            for _ in 0..per_txn {
                key.clear();
                assert!(primary.keys.encode_prefix(&[Datum::Int(1), Datum::Int(random())], &mut key));
                let mut found = None;
                let range = KeyRange::prefix(&key);
                txn.lock_scan(
                    &t,
                    &primary,
                    &range,
                    Direction::Ascending,
                    RowLock::FOR_UPDATE,
                    &mut scratch,
                    &mut |id, row| {
                        found = Some((id, row.get(12).into_owned()));
                        ControlFlow::Break(())
                    },
                )
                .expect("locked");
                let (id, Datum::Int(had)) = found.expect("there") else { panic!("an integer") };
                txn.update(&t, id, &[(12, Datum::Int(had + 1))]).expect("updated");
            }
            drop(txn.commit().expect("logged"));
        });
    }
    println!("log: {:?}", engine.log_stats());
    engine.shutdown().expect("shut down");
    std::fs::remove_dir_all(&dir).expect("removed");
}
