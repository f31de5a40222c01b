//! Keys that the stream deletes while chunks are on their way, and the transactions that the stream has brought.
//!
//! The source sends a transaction as soon as it is in its log, which is before it is visible there. So a chunk waits, at the
//! source, until all that had been handled here when it began is visible there: otherwise it could bring back what the stream
//! has deleted already.

use std::collections::{HashMap, HashSet};

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
    received: Mutex<Received>,
}

/// What the stream has brought.
#[derive(Clone, Debug, Default)]
pub struct Received {
    pub executed: GtidSet,
    /// A place in the last transaction of these: whoever sees the log up to a transaction's end behind it sees them all.
    pub place: LogPlace,
}

#[derive(Default)]
struct Deleted {
    now: u64,
    /// Chunks that are on their way.
    begun: Vec<ChunkMark>,
    /// Since the oldest of these, in their order.
    keys: Vec<(u64, Vec<u8>)>,
    bytes: usize,
    /// Keys of before this one are not known.
    known_from: u64,
}

impl Watch {
    /// The stream begins behind these, which the source's log has before this place.
    pub fn begin_stream(&self, executed: &GtidSet, place: LogPlace) {
        *self.received.lock() = Received { executed: executed.clone(), place };
    }

    /// A transaction is about to be handled.
    pub fn received(&self, gtid: &Gtid, place: &LogPlace) {
        let mut received = self.received.lock();
        received.executed.add(gtid);
        // The stream may begin with transactions that stand before the end that the log had then.
        if place.reaches(&received.place) {
            received.place.clone_from(place);
        }
    }

    /// A chunk is about to be read, when the source has made these transactions visible.
    pub fn begin(&self, name: &TableName) -> (ChunkMark, Received) {
        let mark = self.mark(name);
        // Behind the mark: what is received in between is in both.
        (mark, self.received.lock().clone())
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
        of.bytes += key.len();
        of.keys.push((of.now, key.to_vec()));
        if of.bytes > MOST_BYTES {
            (of.keys, of.bytes) = (Vec::new(), 0);
            of.known_from = of.now + 1;
        }
    }

    /// A chunk has arrived: keys that were deleted since it began; `None` if there were too many.
    pub fn end(&self, name: &TableName, mark: ChunkMark) -> Option<HashSet<Vec<u8>>> {
        let mut tables = self.tables.lock();
        let of = tables.get_mut(name)?;
        let is_known = mark.0 >= of.known_from;
        let since = of.keys.iter().filter(|(at, _)| *at > mark.0);
        let since = is_known.then(|| since.map(|(_, key)| key.clone()).collect());
        of.begun.retain(|begun| *begun != mark);
        let oldest = of.begun.iter().min().map_or(u64::MAX, |oldest| oldest.0);
        of.keys.retain(|(at, _)| *at > oldest);
        of.bytes = of.keys.iter().map(|(_, key)| key.len()).sum();
        since
    }

    /// Nothing of the table is on its way any more.
    pub fn forget(&self, name: &TableName) {
        self.tables.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_knows_what_was_deleted_since_it_began() {
        let watch = Watch::default();
        let name = TableName { database: "d".into(), table: "t".into() };
        watch.deleted(&name, b"0");
        let (first, _) = watch.begin(&name);
        watch.deleted(&name, b"1");
        let (second, _) = watch.begin(&name);
        watch.deleted(&name, b"2");
        let keys = |of: &[&[u8]]| Some(of.iter().map(|key| key.to_vec()).collect());
        assert_eq!(watch.end(&name, first), keys(&[b"1", b"2"]));
        assert_eq!(watch.end(&name, second), keys(&[b"2"]));
        let (third, _) = watch.begin(&name);
        watch.deleted(&name, &vec![0; MOST_BYTES + 1]);
        assert_eq!(watch.end(&name, third), None, "too many");
        let (fourth, _) = watch.begin(&name);
        assert_eq!(watch.end(&name, fourth), keys(&[]));
    }
}
