//! A disk that is full: the writer waits for room, as MySQL's does. What is committed stays in the redo log meanwhile.

use std::io;
use std::time::Duration;

use avocet_engine::SinkStall;

/// So often it looks whether there is room again.
const LOOK: Duration = Duration::from_millis(500);

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Who waits for room, unless the log is only being opened.
#[derive(Default)]
pub(super) struct Room(pub Option<SinkStall>);

impl Room {
    /// Tries until there is room for what is tried, or the engine ends: then the error is that of the disk.
    pub fn wait_for<T>(&self, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut has_waited = false;
        loop {
            let outcome = attempt();
            let (stall, error) = match (&self.0, outcome) {
                (Some(stall), Err(error)) if is_full(&error) => (stall, error),
                (stall, outcome) => {
                    if let Some(stall) = stall.as_ref().filter(|_| has_waited) {
                        stall.end();
                        tracing::info!("the binary log goes on");
                    }
                    return outcome;
                }
            };
            if !has_waited {
                tracing::warn!("the binary log waits for room, and stays behind what is committed: {error}");
                has_waited = true;
            }
            if !stall.wait(&error, LOOK) {
                return Err(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use avocet_base::env::SimDisk;
    use avocet_engine::{Engine, EngineOptions, ErrorKind, ReadMode, TableHandle, TxnOptions};
    use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

    use super::super::{Base, BinaryLog, BinlogOptions};

    fn open(disk: &SimDisk) -> (Arc<Engine>, BinaryLog) {
        let options = EngineOptions {
            env: disk.env(),
            background: false,
            capture_changes: true,
            ..EngineOptions::new("/data")
        };
        let engine = Engine::open(options).expect("it opens");
        let log = BinaryLog::start(&engine, BinlogOptions {
            folder: PathBuf::from("/data/binlog"),
            server_id: 7,
            version: "8.4.0-avocet".into(),
            max_file_bytes: 1 << 20,
            expire_seconds: 0,
            base: Base::default(),
        });
        (engine, log.expect("it begins"))
    }

    fn insert(engine: &Arc<Engine>, table: &Arc<TableHandle>, id: i64) -> Result<(), ErrorKind> {
        let mut txn = engine.begin(TxnOptions::default());
        txn.insert(table, &[Datum::Int(id), Datum::Bytes((&[b'x'; 2000][..]).into())]).map_err(|error| error.kind())?;
        let ticket = txn.commit().map_err(|error| error.kind())?;
        ticket.wait().map_err(|error| error.kind())
    }

    /// Inserts until the redo log has no room either; how many rows there are then.
    fn fill(engine: &Arc<Engine>, table: &Arc<TableHandle>, from: i64) -> i64 {
        let refused = (from..from + 100_000).find_map(|id| insert(engine, table, id).err().map(|kind| (id, kind)));
        let (rows, kind) = refused.expect("the disk is full");
        assert_eq!(kind, ErrorKind::NoSpace);
        rows
    }

    fn told(log: &BinaryLog) -> u64 {
        log.log().expect("it has begun").0.state().last
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_full_disk_stops_nobody_for_good() {
        let disk = SimDisk::new();
        let (engine, log) = open(&disk);
        engine.create_database("d", Collation::DEFAULT).expect("a new one");
        let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("t", SqlType::VarBinary { len: 2000 })];
        let def = TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])]);
        let table = engine.create_table(def).expect("a new one");
        assert_eq!(insert(&engine, &table, 0), Ok(()));
        // Definitions that nobody has stated as SQL are not told.
        wait_until("the first row is told", || told(&log) == 1);

        disk.set_capacity(Some(disk.used() + (96 << 10)));
        let rows = fill(&engine, &table, 1);
        // Reads go on, checkpoints fail and do not wait.
        let mut read = 0;
        let reader = &mut engine.begin(TxnOptions::default());
        let counted = reader.table_rows(&table, ReadMode::Snapshot, &mut |_, _| {
            read += 1;
            ControlFlow::Continue(())
        });
        counted.expect("read");
        assert_eq!(read, rows);
        wait_until("the log stays behind", || {
            engine.checkpoint().is_err_and(|error| error.kind() == ErrorKind::NoSpace)
        });

        // With room all goes on.
        disk.set_capacity(None);
        assert_eq!(insert(&engine, &table, rows), Ok(()));
        wait_until("all is told", || told(&log) == rows as u64 + 1);
        engine.checkpoint().expect("there is room");

        // An end while it is full does not wait; what was not told is told after the next start.
        disk.set_capacity(Some(disk.used() + (96 << 10)));
        let rows = fill(&engine, &table, rows + 1);
        let _ = engine.shutdown();
        log.join();
        drop((table, engine, log));
        disk.set_capacity(None);
        let (engine, log) = open(&disk);
        wait_until("all is told", || told(&log) == rows as u64);
        engine.shutdown().expect("an end");
        log.join();
    }
}
