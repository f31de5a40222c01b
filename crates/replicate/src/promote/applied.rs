//! How far the copy of a source is, as it is committed here.

use avocet_engine::Engine;

use crate::error::{ReplicateError, Result};
use crate::gtid::GtidSet;
use crate::state::{State, TableName};

/// What is in force here of a source.
#[derive(Clone, Debug)]
pub struct Applied {
    /// `server_uuid` of the source, or what stands for it.
    pub source: String,
    pub executed: GtidSet,
    /// It is followed by places in its log: nothing else tells which transactions are in force.
    pub by_place: bool,
    /// Tables that are not the source's at this position.
    pub unfinished: Vec<TableName>,
    /// XA transactions that are prepared, and neither committed nor rolled back.
    pub prepared: usize,
}

impl Applied {
    /// Of the source with this number; `None` if none has been followed.
    ///
    /// # Errors
    /// A position that is damaged.
    pub fn of(engine: &Engine, number: u32) -> Result<Option<Self>> {
        let Some(origin) = engine.applied(number) else { return Ok(None) };
        let state = State::decode(&origin.position)
            .map_err(|error| ReplicateError::Refused(format!("the position here is damaged: {error}")))?;
        let State { source, executed, place, tables, prepared, .. } = state;
        Ok(Some(Self {
            source,
            executed,
            by_place: place.is_some(),
            unfinished: tables.into_keys().collect(),
            prepared: prepared.len(),
        }))
    }
}
