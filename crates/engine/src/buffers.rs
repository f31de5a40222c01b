//! Memory of transactions and of reads that is used again and again, so that neither rows nor transactions cost allocations.

use avocet_base::RowId;
use avocet_storage::hot::RowBuf;
use avocet_storage::index::ScanScratch;
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

/// What a locking scan remembers. A cold row that is changed moves to another row id, and so does a row that is deleted
/// and inserted again, perhaps while the scan waits for it; its new entry has the same key, but the scan may be past it.
/// So the scan begins that key anew, once for each row that it found gone, and leaves out what it had visited.
#[derive(Default)]
pub(crate) struct Visited {
    pub key: Vec<u8>,
    /// Rows with this key.
    rows: Vec<RowId>,
    gone: Vec<RowId>,
}

impl Visited {
    pub fn clear(&mut self) {
        self.key.clear();
        self.rows.clear();
        self.gone.clear();
    }

    pub fn has(&self, key: &[u8], id: RowId) -> bool {
        !self.rows.is_empty() && self.rows.contains(&id) && self.key == key
    }

    pub fn begin(&mut self, key: &[u8]) {
        if self.key != key {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.rows.clear();
        }
    }

    pub fn note(&mut self, key: &[u8], id: RowId) {
        self.begin(key);
        self.rows.push(id);
    }

    /// True if the key is to be begun anew.
    pub fn lose(&mut self, key: &[u8], id: RowId) -> bool {
        self.begin(key);
        let is_new = !self.gone.contains(&id);
        if is_new {
            self.gone.push(id);
        }
        is_new
    }
}
