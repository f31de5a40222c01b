//! Memory of a session that grows with what its client sends: user variables, prepared statements, and what the texts of large
//! statements become while they run. It is counted as what connections buffer is, and refused alone if there is no room.

use std::collections::HashMap;
use std::sync::Arc;

use avocet_engine::MemoryBudget;
use avocet_sql::parse::statement::{InsertSource, StatementKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::TimeZone;
use avocet_types::text::without_column;
use avocet_types::{SqlType, Value};
use parking_lot::Mutex;

use crate::bulk::string_bytes;

/// So much of each kind is not counted.
const FREE_BYTES: usize = 64 << 10;
/// A text of no more bytes takes little whatever is in it.
const SMALL_TEXT: usize = 8 << 10;
/// What a variable takes beside its name and the bytes of its value, about.
const VARIABLE_BYTES: usize = 128;
/// What a list's element takes in a syntax tree, about, and what in all that a query is planned by.
const PARSED_ELEMENT: usize = 128;
const PLANNED_ELEMENT: usize = 352;
/// How often the bytes of a text, which may be one large literal, are there.
const PARSED_COPIES: usize = 2;
const PLANNED_COPIES: usize = 4;

/// What a text is counted for.
pub(crate) const STATEMENT: &str = "a statement";

/// Bytes that are counted until this is dropped.
pub(crate) struct Held {
    memory: Arc<MemoryBudget>,
    bytes: usize,
}

impl Held {
    pub fn nothing(memory: &Arc<MemoryBudget>) -> Self {
        Self { memory: memory.clone(), bytes: 0 }
    }

    /// Counts so many bytes from now on.
    ///
    /// # Errors
    /// 1041 if there is no room for them; what was counted stays so.
    pub fn resize(&mut self, bytes: usize, what: &str) -> Result<(), SqlError> {
        let bytes = if bytes <= FREE_BYTES { 0 } else { bytes };
        match bytes.checked_sub(self.bytes) {
            None => self.memory.release_of_client(self.bytes - bytes),
            Some(more) if more == 0 || self.memory.reserve_for_client(more) => {}
            Some(more) => {
                let why = format!("Out of memory: {more} bytes for {what} (--memory-limit)");
                return Err(ErrorCode::OUT_OF_RESOURCES.because(why));
            }
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.release_of_client(self.bytes);
        }
    }
}

/// The size of a statement's text, as far as it says what the statement takes.
#[derive(Clone, Copy)]
pub(crate) struct TextSize {
    bytes: usize,
    elements: usize,
}

impl TextSize {
    /// None of a text that takes little whatever it is.
    pub fn of(sql: &str) -> Option<Self> {
        (sql.len() > SMALL_TEXT).then(|| Self { bytes: sql.len(), elements: separators(sql.as_bytes()) })
    }

    /// What its syntax tree takes, about.
    pub fn parsed(self) -> usize {
        self.bytes * PARSED_COPIES + self.elements * PARSED_ELEMENT
    }

    /// What the statement takes while it is planned, about. Rows of VALUES are looked at one at a time.
    pub fn planned(self, kind: &StatementKind) -> usize {
        match kind {
            StatementKind::Insert(insert) if matches!(insert.source, InsertSource::Values(_)) => {
                self.parsed()
            }
            _ => self.bytes * PLANNED_COPIES + self.elements * PLANNED_ELEMENT,
        }
    }
}

/// How many commas a text has outside of quotes, about: elements of lists.
fn separators(sql: &[u8]) -> usize {
    let (mut count, mut quote, mut escaped) = (0, None, false);
    for &byte in sql {
        match quote {
            _ if escaped => escaped = false,
            Some(b'`') | None if byte == b'\\' => {}
            Some(_) if byte == b'\\' => escaped = true,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if matches!(byte, b'\'' | b'"' | b'`') => quote = Some(byte),
            None => count += usize::from(byte == b','),
        }
    }
    count
}

/// Shared with what functions of the session's statements read.
pub(crate) type VariableValues = Arc<Mutex<HashMap<String, (Value, SqlType)>>>;

/// A session's user variables, by their names in lower case.
pub(crate) struct UserVariables {
    values: VariableValues,
    bytes: usize,
    held: Held,
}

impl UserVariables {
    pub fn new(memory: &Arc<MemoryBudget>) -> Self {
        Self { values: VariableValues::default(), bytes: 0, held: Held::nothing(memory) }
    }

    pub fn get(&self, name: &str) -> Option<(Value, SqlType)> {
        self.values.lock().get(name).cloned()
    }

    pub fn values(&self) -> VariableValues {
        self.values.clone()
    }

    /// # Errors
    /// 1041 if there is no room for the value; the variable keeps the one that it has.
    pub fn insert(
        &mut self,
        name: String,
        (value, ty): (Value, SqlType),
        zone: TimeZone,
    ) -> Result<(), SqlError> {
        let value = without_column(value, ty, zone);
        let size = |value: &Value| name.len() + VARIABLE_BYTES + string_bytes(std::slice::from_ref(value));
        let before = self.values.lock().get(&name).map_or(0, |(value, _)| size(value));
        let bytes = self.bytes - before + size(&value.0);
        self.held.resize(bytes, "user variables")?;
        self.bytes = bytes;
        self.values.lock().insert(name, value);
        Ok(())
    }

    pub fn clear(&mut self) {
        *self.values.lock() = HashMap::new();
        self.bytes = 0;
        self.held.resize(0, "").expect("less is not refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_counted_outside_of_quotes() {
        assert_eq!(separators(b"SELECT 1, 2, ',,', \",\", `a,b`, '\\',', 'it''s,', 3"), 7);
        assert_eq!(separators(b"'open, to the end"), 0);
    }
}
