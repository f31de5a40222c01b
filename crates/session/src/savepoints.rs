//! The savepoints of a session's transaction. A client may set as many as it likes, under names as long as it likes: they count as
//! the session's memory.

use std::sync::Arc;

use avocet_engine::{MemoryBudget, StatementMark};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;

use crate::held::Held;

/// What a savepoint takes beside its name.
const SAVEPOINT_BYTES: usize = size_of::<Savepoint>();

struct Savepoint {
    name: String,
    mark: StatementMark,
}

pub(crate) struct Savepoints {
    /// In the order in which they were set.
    all: Vec<Savepoint>,
    bytes: usize,
    held: Held,
}

impl Savepoints {
    pub fn none(memory: &Arc<MemoryBudget>) -> Self {
        Self { all: Vec::new(), bytes: 0, held: Held::nothing(memory) }
    }

    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Sets one, in the place of what had its name.
    ///
    /// # Errors
    /// 1041 if there is no room for it; the others stay as they are.
    pub fn set(&mut self, name: &str, mark: StatementMark) -> Result<(), SqlError> {
        let before = self.find(name).ok();
        let freed = before.map_or(0, |at| bytes_of(&self.all[at]));
        let new = Savepoint { name: name.to_owned(), mark };
        let bytes = self.bytes - freed + bytes_of(&new);
        self.held.resize(bytes, "savepoints")?;
        if let Some(at) = before {
            self.all.remove(at);
        }
        self.all.push(new);
        self.bytes = bytes;
        Ok(())
    }

    /// ROLLBACK TO: the savepoint stays, those after it go.
    pub fn return_to(&mut self, name: &str) -> Result<StatementMark, SqlError> {
        let at = self.find(name)?;
        self.truncate(at + 1);
        Ok(self.all[at].mark)
    }

    /// RELEASE SAVEPOINT: it and those after it go.
    pub fn release(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self.find(name)?;
        self.truncate(at);
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        self.bytes -= self.all.drain(len..).map(|savepoint| bytes_of(&savepoint)).sum::<usize>();
        self.held.resize(self.bytes, "savepoints").expect("less memory is always there");
    }

    fn find(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.all.iter().rposition(|savepoint| names::eq_unaccented(&savepoint.name, name));
        found.ok_or_else(|| ErrorCode::SP_DOES_NOT_EXIST.with(&[&"SAVEPOINT", &name]))
    }
}

fn bytes_of(savepoint: &Savepoint) -> usize {
    SAVEPOINT_BYTES + savepoint.name.len()
}
