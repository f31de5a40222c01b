//! Keys that the stream deletes while chunks are on their way, and the transactions that the stream has brought.
//!
//! The source sends a transaction as soon as it is in its log, which is before it is visible there. So a chunk waits, at the
//! source, until all that had been handled here when it began is visible there: otherwise it could bring back what the stream
//! has deleted already. Of a source without GTIDs nothing tells what is visible but a row's lock.
//!
//! Children whose parent the stream deletes go with it where the source's log does not say so: then the parent's key is kept.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mysql::Value;
use parking_lot::Mutex;

use crate::gtid::{Gtid, GtidSet};
use crate::state::{LogPlace, TableName};

/// Bytes of keys that are kept for one table; a chunk whose keys are not all kept is read again.
const MOST_BYTES: usize = 8 << 20;

/// When a chunk began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkMark(u64);

/// Deleted keys by table, of those whose chunks are on their way.
#[derive(Default)]
pub struct Watch {
    tables: Mutex<HashMap<TableName, Deleted>>,
    /// Whose stream it is.
    source: Mutex<String>,
    received: Mutex<Received>,
    /// Of a source without GTIDs, by table: the row that the stream changed last.
    last_rows: Mutex<HashMap<TableName, LastRow>>,
    changes: AtomicU64,
}

/// What the stream has brought.
#[derive(Clone, Debug, Default)]
pub struct Received {
    pub executed: GtidSet,
    /// A place in the last transaction of these: whoever sees the log up to a transaction's end behind it sees them all.
    pub place: LogPlace,
    /// Of a source without GTIDs.
    pub by_place: Option<ByPlace>,
}

/// How it is known that transactions without GTIDs are visible.
#[derive(Clone, Debug, Default)]
pub struct ByPlace {
    /// Transactions of an earlier stream, of which no row is known, had time to become visible by then.
    pub not_before: Option<Instant>,
    /// The row of the chunk's table that the stream changed last. Who has a lock on it sees all that the stream has brought of the
    /// table: transactions become visible in the log's order, and let their locks go afterwards.
    pub last_row: Option<LastRow>,
}

/// A row by its key, as the protocol has it.
#[derive(Clone, Debug)]
pub struct LastRow {
    /// Which change of all it was.
    number: u64,
    pub key: Vec<Value>,
}

/// Values of a foreign key that name no parent any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gone {
    /// The child's index that begins with the key's columns, and the values as it has them.
    pub index: usize,
    pub key: Vec<u8>,
    pub with: WithParent,
}

/// What becomes of a child's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WithParent {
    Deleted,
    /// These columns are NULL.
    Orphaned(Vec<usize>),
    /// Others may go with it: the table is copied anew.
    Anew,
}

/// What has happened since a chunk began.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// Keys of rows that were deleted.
    pub deleted: HashSet<Vec<u8>>,
    /// Parents that were deleted, in their order.
    pub gone: Vec<Gone>,
}

impl Since {
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.gone.is_empty()
    }
}

#[derive(Default)]
struct Deleted {
    now: u64,
    /// Chunks that are on their way.
    begun: Vec<ChunkMark>,
    /// Since the oldest of these, in their order.
    keys: Vec<(u64, Vec<u8>)>,
    gone: Vec<(u64, Gone)>,
    bytes: usize,
    /// Keys of before this one are not known.
    known_from: u64,
}

impl Watch {
    /// The stream of this server begins behind these, which the source's log has before this place.
    pub fn begin_stream(&self, source: &str, executed: &GtidSet, place: LogPlace, by_place: Option<ByPlace>) {
        *self.source.lock() = source.to_owned();
        *self.received.lock() = Received { executed: executed.clone(), place, by_place };
    }

    /// Whether the stream is this server's: what another one shows may be before or behind it.
    pub fn is_stream_of(&self, source: &str) -> bool {
        *self.source.lock() == source
    }

    /// The stream has changed a row of a table of a source without GTIDs that is copied, or is to be.
    pub fn changed(&self, name: &TableName, key: Vec<Value>) {
        let number = self.changes.fetch_add(1, Ordering::Relaxed);
        self.last_rows.lock().insert(name.clone(), LastRow { number, key });
    }

    /// What the stream had brought of a table up to this row is visible.
    pub fn seen(&self, name: &TableName, row: &LastRow) {
        let mut last_rows = self.last_rows.lock();
        if last_rows.get(name).is_some_and(|last| last.number == row.number) {
            last_rows.remove(name);
        }
    }

    /// A transaction is about to be handled.
    pub fn received(&self, gtid: Option<&Gtid>, place: &LogPlace) {
        let mut received = self.received.lock();
        if let Some(gtid) = gtid.filter(|_| received.by_place.is_none()) {
            received.executed.add(gtid);
        }
        // The stream may begin with transactions that stand before the end that the log had then.
        if place.reaches(&received.place) {
            received.place.clone_from(place);
        }
    }

    /// A chunk is about to be read, when the source has made these transactions visible.
    pub fn begin(&self, name: &TableName) -> (ChunkMark, Received) {
        let mark = self.mark(name);
        // Behind the mark: what is received in between is in both.
        let mut received = self.received.lock().clone();
        if let Some(by_place) = &mut received.by_place {
            by_place.last_row = self.last_rows.lock().get(name).cloned();
        }
        (mark, received)
    }

    fn mark(&self, name: &TableName) -> ChunkMark {
        let mut tables = self.tables.lock();
        let of = tables.entry(name.clone()).or_default();
        of.now += 1;
        let mark = ChunkMark(of.now);
        of.begun.push(mark);
        mark
    }

    /// The stream deletes a row of a table that is being copied.
    pub fn deleted(&self, name: &TableName, key: &[u8]) {
        let mut tables = self.tables.lock();
        let Some(of) = tables.get_mut(name).filter(|of| !of.begun.is_empty()) else { return };
        of.now += 1;
        of.keys.push((of.now, key.to_vec()));
        of.keep(key.len());
    }

    /// The stream deletes a parent, or a child with others of its own, of a table that is being copied.
    pub fn parent_gone(&self, name: &TableName, gone: Gone) {
        let mut tables = self.tables.lock();
        let Some(of) = tables.get_mut(name).filter(|of| !of.begun.is_empty()) else { return };
        of.now += 1;
        let len = gone.key.len();
        of.gone.push((of.now, gone));
        of.keep(len);
    }

    /// A chunk has arrived: what was deleted since it began; `None` if that was too much.
    pub fn end(&self, name: &TableName, mark: ChunkMark) -> Option<Since> {
        let mut tables = self.tables.lock();
        let of = tables.get_mut(name)?;
        let is_known = mark.0 >= of.known_from;
        let keys = of.keys.iter().filter(|(at, _)| *at > mark.0);
        let gone = of.gone.iter().filter(|(at, _)| *at > mark.0);
        let since = is_known.then(|| Since {
            deleted: keys.map(|(_, key)| key.clone()).collect(),
            gone: gone.map(|(_, gone)| gone.clone()).collect(),
        });
        of.begun.retain(|begun| *begun != mark);
        let oldest = of.begun.iter().min().map_or(u64::MAX, |oldest| oldest.0);
        of.keys.retain(|(at, _)| *at > oldest);
        of.gone.retain(|(at, _)| *at > oldest);
        let gone: usize = of.gone.iter().map(|(_, gone)| gone.key.len()).sum();
        of.bytes = gone + of.keys.iter().map(|(_, key)| key.len()).sum::<usize>();
        since
    }

    /// Nothing of the table is on its way any more.
    pub fn forget(&self, name: &TableName) {
        self.tables.lock().remove(name);
    }
}

impl Deleted {
    /// So many bytes more are kept, or nothing is.
    fn keep(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MOST_BYTES {
            (self.keys, self.gone, self.bytes) = (Vec::new(), Vec::new(), 0);
            self.known_from = self.now + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_waited_for_until_it_was_seen() {
        let watch = Watch::default();
        let name = TableName { database: "d".into(), table: "t".into() };
        let last_row = |watch: &Watch| watch.begin(&name).1.by_place.and_then(|by_place| by_place.last_row);
        watch.begin_stream("a", &GtidSet::default(), LogPlace::default(), Some(ByPlace::default()));
        assert!(watch.is_stream_of("a") && !watch.is_stream_of("b"));
        assert!(last_row(&watch).is_none());
        watch.changed(&name, vec![Value::Int(1)]);
        let first = last_row(&watch).expect("a row");
        // The same row once more: it was not seen since.
        watch.changed(&name, vec![Value::Int(1)]);
        watch.seen(&name, &first);
        let second = last_row(&watch).expect("a row");
        assert_eq!(second.key, vec![Value::Int(1)]);
        // A table whose copy begins again waits for it all the same.
        watch.forget(&name);
        assert!(last_row(&watch).is_some());
        watch.seen(&name, &second);
        assert!(last_row(&watch).is_none());
    }

    #[test]
    fn a_chunk_knows_what_was_deleted_since_it_began() {
        let watch = Watch::default();
        let name = TableName { database: "d".into(), table: "t".into() };
        watch.deleted(&name, b"0");
        let (first, _) = watch.begin(&name);
        watch.deleted(&name, b"1");
        let (second, _) = watch.begin(&name);
        watch.deleted(&name, b"2");
        let keys = |of: &[&[u8]]| {
            Some(Since { deleted: of.iter().map(|key| key.to_vec()).collect(), gone: Vec::new() })
        };
        assert_eq!(watch.end(&name, first), keys(&[b"1", b"2"]));
        assert_eq!(watch.end(&name, second), keys(&[b"2"]));
        let (third, _) = watch.begin(&name);
        watch.deleted(&name, &vec![0; MOST_BYTES + 1]);
        assert_eq!(watch.end(&name, third), None, "too many");
        let (fourth, _) = watch.begin(&name);
        assert_eq!(watch.end(&name, fourth), keys(&[]));
        let (fifth, _) = watch.begin(&name);
        let gone = Gone { index: 1, key: b"p".to_vec(), with: WithParent::Deleted };
        watch.parent_gone(&name, gone.clone());
        let (sixth, _) = watch.begin(&name);
        assert_eq!(watch.end(&name, fifth).map(|since| since.gone), Some(vec![gone]));
        assert_eq!(watch.end(&name, sixth), keys(&[]));
    }
}
