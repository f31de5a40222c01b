//! Keys that the stream deletes while chunks are on their way.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::state::TableName;

/// Bytes of keys that are kept for one table; a chunk whose keys are not all kept is read again.
const MOST_BYTES: usize = 8 << 20;

/// When a chunk began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkMark(u64);

/// Deleted keys by table, of those whose chunks are on their way.
#[derive(Default)]
pub struct Watch(Mutex<HashMap<TableName, Deleted>>);

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
    /// A chunk is about to be read.
    pub fn begin(&self, name: &TableName) -> ChunkMark {
        let mut tables = self.0.lock();
        let of = tables.entry(name.clone()).or_default();
        of.now += 1;
        let mark = ChunkMark(of.now);
        of.begun.push(mark);
        mark
    }

    /// The stream deletes a row of a table that is being copied.
    pub fn deleted(&self, name: &TableName, key: &[u8]) {
        let mut tables = self.0.lock();
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
        let mut tables = self.0.lock();
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
        self.0.lock().remove(name);
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
        let first = watch.begin(&name);
        watch.deleted(&name, b"1");
        let second = watch.begin(&name);
        watch.deleted(&name, b"2");
        let keys = |of: &[&[u8]]| Some(of.iter().map(|key| key.to_vec()).collect());
        assert_eq!(watch.end(&name, first), keys(&[b"1", b"2"]));
        assert_eq!(watch.end(&name, second), keys(&[b"2"]));
        let third = watch.begin(&name);
        watch.deleted(&name, &vec![0; MOST_BYTES + 1]);
        assert_eq!(watch.end(&name, third), None, "too many");
        let fourth = watch.begin(&name);
        assert_eq!(watch.end(&name, fourth), keys(&[]));
    }
}
