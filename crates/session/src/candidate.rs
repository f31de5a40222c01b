//! Statements that look for their plans, and what a session keeps for that.

use avocet_sql::parse::digest::{Digest, Slot, literal_type};
use avocet_types::expr::SqlMode;
use avocet_types::{Collation, Datum, SqlType, Value};

/// A statement that is to find its plan.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'c> {
    /// The text that plans are kept under.
    pub digest: &'c [u8],
    pub slots: &'c [Slot],
    /// Which of the values are a LIMIT or an OFFSET.
    pub limits: &'c [u16],
    pub source: &'c str,
    /// Of [`SqlMode::PARSING`]: what it was parsed under. For a prepared statement, these are not the session's.
    pub parsed_by: SqlMode,
    /// What the slots hold, or what the parameters are if there are no slots.
    pub values: &'c [Datum<'c>],
    /// Whether the values are a client's parameters, whose types are wider than those of literals.
    pub params: bool,
}

/// What a session keeps from statement to statement, so as not to allocate.
#[derive(Default)]
pub(super) struct PointMemory {
    pub digest: Digest,
    pub values: Vec<Value>,
    pub key: Vec<u8>,
}

impl Candidate<'_> {
    pub fn types(&self, connection: Collation) -> Vec<SqlType> {
        let of = |value: &Datum<'_>| match self.params {
            true => value.natural_type(connection),
            false => literal_type(value, connection),
        };
        self.values.iter().map(of).collect()
    }

    /// The LIMITs and OFFSETs among the values, by number.
    pub fn likely_counts(&self) -> Vec<(u16, u64)> {
        let of = |at: &u16| Some((*at, count_of(self.values.get(usize::from(*at))?)?));
        self.limits.iter().filter_map(of).collect()
    }
}

/// A value as a count of rows.
pub(super) fn count_of(value: &Datum<'_>) -> Option<u64> {
    match value {
        Datum::UInt(count) => Some(*count),
        Datum::Int(count) => u64::try_from(*count).ok(),
        _ => None,
    }
}
