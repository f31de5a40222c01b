//! Memory of transactions and of reads that is used again and again, so that neither rows nor transactions cost allocations.

use avocet_base::RowId;
use avocet_storage::hot::RowBuf;
use avocet_storage::index::ScanScratch;
use hashbrown::HashSet;
use parking_lot::Mutex;

/// Memory of transactions that ended, for those to come.
#[derive(Default)]
pub(crate) struct BufferPool {
    spare: Mutex<Vec<Buffers>>,
}

#[derive(Default)]
pub(crate) struct Buffers {
    pub redo: Vec<u8>,
    pub row_changes: Vec<i64>,
    pub scratch: Scratch,
    pub carried: Carried,
}

/// Buffers that are kept, and the redo bytes that one of them may have room for.
const SPARE_BUFFERS: usize = 64;
const SPARE_REDO: usize = 256 << 10;

impl BufferPool {
    pub fn take(&self) -> Buffers {
        self.spare.lock().pop().unwrap_or_default()
    }

    pub fn give(&self, mut buffers: Buffers) {
        let size =
            buffers.redo.capacity() + buffers.scratch.image.capacity() + buffers.scratch.old.image.capacity();
        if size <= SPARE_REDO {
            buffers.redo.clear();
            buffers.row_changes.clear();
            let mut spare = self.spare.lock();
            if spare.len() < SPARE_BUFFERS {
                spare.push(buffers);
            }
        }
    }
}

/// Buffers that live as long as the transaction, so that rows cost no allocation.
#[derive(Default)]
pub(crate) struct Scratch {
    pub image: Vec<u8>,
    pub old: RowBuf,
    pub delta: Vec<u8>,
    pub before: Vec<u8>,
    pub key: Vec<u8>,
    pub old_key: Vec<u8>,
    pub scan: ScanScratch,
    pub reads: ReadScratch,
}

/// What a transaction hands on to the next one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Carried {
    /// Bytes of rows that the budget has not been told of.
    pub untold: usize,
    /// It has added a step: the next one looks whether there is room for more.
    pub is_step: bool,
}

/// Memory of reads, to be used again and again.
#[derive(Default)]
pub struct ReadScratch {
    pub(crate) scan: ScanScratch,
    pub(crate) row: RowBuf,
    pub(crate) copy: RowBuf,
    pub(crate) key: Vec<u8>,
    pub(crate) visited: Visited,
}

/// Memory for so many rows is kept for the next scan.
const MOST_KEPT: usize = 1024;

/// What a locking scan remembers. A cold row that is changed moves to another row id, and so does a row that is deleted
/// and inserted again, perhaps while the scan waits for it; its new entry has the same key, but the scan may be past it.
/// So the scan begins that key anew, once for each row that it found gone, and leaves out what it had visited.
#[derive(Default)]
pub(crate) struct Visited {
    pub key: Vec<u8>,
    /// Rows with this key. Entries of one key ascend or descend by row id, so that none comes twice until the key is begun
    /// anew: only then are rows looked for, and only among the first `before`, which are sorted.
    rows: Vec<RowId>,
    before: usize,
    gone: HashSet<RowId>,
}

impl Visited {
    pub fn clear(&mut self) {
        self.key.clear();
        self.forget_rows();
        // To empty a large set costs as much as to fill it.
        match self.gone.capacity() > MOST_KEPT {
            true => self.gone = HashSet::new(),
            false => self.gone.clear(),
        }
    }

    fn forget_rows(&mut self) {
        self.rows.clear();
        self.before = 0;
    }

    /// Whether a row was visited before the key was begun anew.
    pub fn has(&self, key: &[u8], id: RowId) -> bool {
        self.before > 0 && self.rows[..self.before].binary_search(&id).is_ok() && self.key == key
    }

    pub fn begin(&mut self, key: &[u8]) {
        if self.key != key {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.forget_rows();
        }
    }

    pub fn note(&mut self, key: &[u8], id: RowId) {
        self.begin(key);
        self.rows.push(id);
    }

    /// The key is begun anew.
    pub fn begin_anew(&mut self) {
        self.rows.sort_unstable();
        self.before = self.rows.len();
    }

    /// True if the key is to be begun anew.
    pub fn lose(&mut self, key: &[u8], id: RowId) -> bool {
        self.begin(key);
        self.gone.insert(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_left_out_once_their_key_is_begun_anew() {
        let mut visited = Visited::default();
        for row in [5, 3, 9] {
            visited.note(b"k", RowId(row));
            assert!(!visited.has(b"k", RowId(row)), "in one go no entry comes twice");
        }
        visited.begin_anew();
        assert!([3, 5, 9].iter().all(|row| visited.has(b"k", RowId(*row))));
        assert!(!visited.has(b"k", RowId(4)) && !visited.has(b"other", RowId(3)));
        visited.note(b"k", RowId(4));
        assert!(!visited.has(b"k", RowId(4)));
        visited.begin_anew();
        assert!(visited.has(b"k", RowId(4)) && visited.has(b"k", RowId(9)));
        visited.note(b"other", RowId(3));
        assert!(!visited.has(b"k", RowId(4)) && !visited.has(b"other", RowId(3)));
        assert!(visited.lose(b"other", RowId(3)) && !visited.lose(b"other", RowId(3)));
        visited.clear();
        assert!(visited.lose(b"other", RowId(3)));
    }
}
