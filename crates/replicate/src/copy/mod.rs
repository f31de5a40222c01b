//! Copying tables while the source goes on, by ranges of their keys.
//!
//! ```text
//!  copying thread                                     applying thread
//!  ask for a table ──────────────────────────────────▶ make it, withheld
//!  ┌ begin a chunk: keys deleted from now on are kept ◀─ events
//!  │ wait until what the stream has brought is visible
//!  │ SELECT … WHERE key > last ORDER BY key LIMIT n
//!  └ hand rows on ────────────────────────────────────▶ those neither deleted since nor here: into column blocks
//!  the log's end ────────────────────────────────────▶ catching up until there
//! ```
//!
//! No snapshot is held at the source, and no lock. A chunk's rows are of some moment between its beginning and its end, and the
//! stream is at an earlier one or at a later one. Why the rows here become the source's all the same:
//!
//! 1. Changes of the table are applied from the first chunk on, as if they had been: what is inserted replaces, what is
//!    updated is put there, what is deleted may be absent. So once a row has been touched by the stream, it is as the stream says.
//! 2. A row that is here when a chunk brings it was put there by the stream, which has its newest state up to where the stream is,
//!    and will bring the rest. The chunk's is left out.
//! 3. A row that the stream has deleted since the chunk began is left out. What it had deleted before is not in the chunk: the source
//!    sends a transaction before it is visible there, so a chunk waits until all that had come is.
//! 4. Any other row of the chunk is as it was at the chunk's moment. What changed it before is in it; what changes it later
//!    is still to come from the stream.
//!
//! Until the stream has reached the log's end as of the last chunk, rows may be newer than the position: nobody else sees the table.

mod reader;
mod values;
mod watch;

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use arrow::record_batch::RecordBatch;
use avocet_engine::TableHandle;
use mysql::Value;

use crate::error::ReplicateError;
use crate::source::Definition;
use crate::state::{LogPlace, TableName};

pub use reader::{ChunkQuery, Copies, Resume, key_of, rows_within, size_about};
pub use values::{datum, sent, to_send};
pub use watch::{ByPlace, ChunkMark, Gone, Received, Since, Watch, WithParent};

/// What a copying thread sends of a table.
#[derive(Debug)]
pub struct FromCopy {
    /// The number of the copy: what a cancelled one sends does not count.
    pub job: u64,
    pub name: TableName,
    pub what: What,
}

#[derive(Debug)]
pub enum What {
    /// It is to be made; `None` if the source has none of that name. The answer is the table, if rows are to follow.
    Make { definition: Option<Definition>, answer: SyncSender<Option<Arc<TableHandle>>> },
    /// Rows, and the key of the last one.
    Rows { mark: ChunkMark, batch: RecordBatch, last: Vec<Value> },
    /// All rows are there; they are no newer than this place in the log.
    Done(LogPlace),
    /// It is to be copied again, later.
    Failed(ReplicateError),
    /// It cannot be copied until it changes.
    Unfit(String),
}
