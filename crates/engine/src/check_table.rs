//! CHECK TABLE: whether a table's blocks can be read, and whether its rows and its indexes agree, while others use it.
//!
//! All is looked at from one snapshot. Each row that it sees has an entry in each index, and each index leads to as many rows as
//! there are: entries of other versions, which a visit tells from these, do not count. [`check`](crate::check()) looks at a
//! directory that nobody uses, and there also at what no snapshot sees.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_base::RowId;
use avocet_storage::index::Direction;
use avocet_storage::relation::SegmentState;
use avocet_types::RowRef;

use crate::buffers::ReadScratch;
use crate::error::Result;
use crate::keys::KeyRange;
use crate::shred;
use crate::stop::Stop;
use crate::table::{IndexHandle, TableHandle};
use crate::txn::{ReadMode, Txn};

/// Counts rows, and asks from time to time whether the statement goes on.
struct Counter {
    rows: u64,
    stop: Stop,
    outcome: Result<()>,
}

impl Counter {
    fn row(&mut self) -> ControlFlow<()> {
        self.rows += 1;
        if self.rows.is_multiple_of(Stop::EVERY as u64) {
            self.outcome = self.stop.check();
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl Txn {
    /// What is wrong with a table that the transaction uses, a sentence each.
    ///
    /// # Errors
    /// If the statement is to end. Damage is in the answer.
    pub fn check_table(&mut self, table: &Arc<TableHandle>) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for (number, state) in table.relation.used_segments() {
            self.check_interrupted()?;
            if let SegmentState::Cold(cold) = &*state
                && let Err(e) = shred::verify(&cold.block)
            {
                findings.push(format!("{number}: {e}"));
            }
        }
        // What cannot be read cannot be compared.
        if !findings.is_empty() {
            return Ok(findings);
        }
        // An index that this snapshot cannot read is newer than what it sees.
        let readable = |index: &&Arc<IndexHandle>| self.check_readable(table, index).is_ok();
        let indexes: Vec<Arc<IndexHandle>> = table.indexes.iter().filter(readable).cloned().collect();
        let mut missing = vec![0u64; indexes.len()];
        let rows = self.count_missing(table, &indexes, &mut missing)?;
        for (index, missing) in indexes.iter().zip(missing) {
            if missing > 0 {
                findings.push(format!("Index '{}' has no entries for {missing} rows", index.def.name));
            }
            let (entries, equal) = self.count_entries(table, index)?;
            if entries != rows {
                let name = &index.def.name;
                findings.push(format!("Index '{name}' contains {entries} entries, should be {rows}"));
            }
            if equal > 0 {
                findings.push(format!("Index '{}' is unique, and has {equal} keys twice", index.def.name));
            }
        }
        Ok(findings)
    }

    /// The number of rows; how many have no entry goes to `missing`, for each index.
    fn count_missing(
        &mut self,
        table: &Arc<TableHandle>,
        indexes: &[Arc<IndexHandle>],
        missing: &mut [u64],
    ) -> Result<u64> {
        let mut counter = self.counter();
        let mut entry = Vec::new();
        self.table_rows(table, ReadMode::Snapshot, &mut |id, row| {
            for (index, missing) in indexes.iter().zip(&mut *missing) {
                entry.clear();
                index.entry(&row, id, &mut entry);
                *missing += u64::from(!index.tree.contains(&entry));
            }
            counter.row()
        })?;
        counter.outcome.map(|()| counter.rows)
    }

    /// The number of rows that an index leads to, and how many of them have the key of another although it is unique.
    fn count_entries(&self, table: &Arc<TableHandle>, index: &IndexHandle) -> Result<(u64, u64)> {
        let (mut counter, mut equal) = (self.counter(), 0);
        let mut scratch = ReadScratch::default();
        let (mut key, mut before) = (Vec::new(), Vec::new());
        let mut visit = |_: RowId, row: RowRef<'_>| {
            if index.def.kind.is_unique() && !index.has_null(&row) {
                std::mem::swap(&mut key, &mut before);
                key.clear();
                index.keys.encode_row(&row, &mut key);
                equal += u64::from(key == before);
            }
            counter.row()
        };
        // As queries read it, which trust an entry that leads to a row of a block: one that should have gone is counted.
        let columns: Vec<usize> = (0..table.def.columns.len()).filter(|&column| index.uses(column)).collect();
        let (all, columns) = (KeyRange::all(), Some(&*columns));
        self.index_scan_of(table, index, &all, Direction::Ascending, columns, &mut scratch, &mut visit)?;
        counter.outcome.map(|()| (counter.rows, equal))
    }

    fn counter(&self) -> Counter {
        Counter { rows: 0, stop: Stop(self.interrupt()), outcome: Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use avocet_base::env::SimDisk;
    use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

    use crate::engine::{Engine, EngineOptions};
    use crate::txn::TxnOptions;

    #[test]
    fn rows_without_entries_are_found() {
        let disk = SimDisk::new();
        let options = EngineOptions { background: false, env: disk.env(), ..EngineOptions::new("data") };
        let engine = Engine::open(options).expect("it opens");
        engine.create_database("d", Collation::DEFAULT).expect("a new one");
        let columns = ["a", "b"].map(|name| ColumnDef::new(name, SqlType::BIGINT)).into();
        let indexes = vec![IndexDef::primary(&[0]), IndexDef::secondary("k", &[1])];
        let table = engine.create_table(TableDef::new("d", "t", columns, indexes)).expect("a new one");
        let mut txn = engine.begin(TxnOptions::default());
        for n in 0..10 {
            txn.insert(&table, &[Datum::Int(n), Datum::Int(n % 3)]).expect("a new key");
        }
        txn.commit().expect("no conflict").wait().expect("durable");
        // Entries of rows that others change, and of rows that this snapshot does not see, are no damage.
        let mut reader = engine.begin(TxnOptions::default());
        assert!(reader.check_table(&table).expect("not interrupted").is_empty());
        let mut writer = engine.begin(TxnOptions::default());
        writer.insert(&table, &[Datum::Int(50), Datum::Int(1)]).expect("a new key");
        writer.commit().expect("no conflict").wait().expect("durable");
        assert!(reader.check_table(&table).expect("not interrupted").is_empty());
        drop(reader);

        let mut entries = Vec::new();
        table.indexes[1].tree.scan(
            std::ops::Bound::Unbounded,
            std::ops::Bound::Unbounded,
            avocet_storage::index::Direction::Ascending,
            &mut Default::default(),
            &mut |entry| {
                entries.push(entry.to_vec());
                std::ops::ControlFlow::Continue(())
            },
        );
        // One that leads to a row of a block, and should have gone with a version of it, is found, too.
        engine.collect_all_garbage();
        assert_eq!(engine.freeze_all().expect("frozen"), 0);
        let stale = [&entries[9][..entries[9].len() - 8], &entries[0][entries[0].len() - 8..]].concat();
        table.indexes[1].tree.insert(&stale);
        let findings = engine.begin(TxnOptions::default()).check_table(&table).expect("not interrupted");
        assert_eq!(findings, ["Index 'k' contains 12 entries, should be 11"]);
        table.indexes[1].tree.remove(&stale);

        table.indexes[1].tree.remove(&entries[0]);
        let findings = engine.begin(TxnOptions::default()).check_table(&table).expect("not interrupted");
        assert_eq!(
            findings,
            ["Index 'k' has no entries for 1 rows", "Index 'k' contains 10 entries, should be 11"]
        );
    }
}
