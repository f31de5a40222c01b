//! The rows of a cursor: kept for COM_STMT_FETCH, which takes them bit by bit.
//!
//! A statement with a cursor runs to its end when it is executed, as in MySQL, so that nothing of it (its snapshot, its locks,
//! its memory in the executor) waits for the client. The rows are kept as they will be sent, in a spool: when they are many,
//! they wait on disk.

use std::path::PathBuf;

use avocet_channel::SinkError;
use avocet_session::spool::{Spool, SpoolReader};

use crate::account::Account;
use crate::protocol::PacketBuf;

pub struct Cursor {
    rows: Spool,
    reader: SpoolReader,
    /// Of both.
    account: Account,
}

impl Cursor {
    /// Without a folder, all rows stay in memory.
    pub fn new(folder: Option<PathBuf>, account: Account) -> Self {
        Self { rows: Spool::new(folder), reader: SpoolReader::default(), account }
    }

    /// Keeps a row: the payload of its packet.
    pub fn push(&mut self, payload: &[u8]) -> Result<(), SinkError> {
        if !self.account.grow(self.rows.bytes_with(payload.len())) {
            return Err(SinkError::OutOfMemory);
        }
        self.rows.push(payload)
    }

    /// All rows have come.
    pub fn finish(&mut self) -> Result<(), SinkError> {
        self.rows.finish()?;
        self.account.shrink(self.rows.bytes());
        Ok(())
    }

    /// Moves up to `left` rows to `out`, or as many as fill it up to `full` bytes. True if none are left.
    pub fn fetch(&mut self, out: &mut PacketBuf, left: &mut u32, full: usize) -> Result<bool, SinkError> {
        while *left > 0 && out.len() < full {
            if !self.account.grow(self.rows.bytes() + self.reader.bytes(&self.rows)) {
                return Err(SinkError::OutOfMemory);
            }
            let Some(row) = self.reader.next(&self.rows)? else { break };
            out.packet(row);
            *left -= 1;
        }
        Ok(self.reader.is_at_end(&self.rows))
    }
}
