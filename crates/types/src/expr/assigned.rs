//! User variables that a statement assigns to while it runs: `@n := @n + 1`.
//!
//! Others are values by the time a statement is bound. Of these, the type that reading gives is that of the value before the
//! statement, as MySQL has it (`typing/variables.rs`): what was assigned meanwhile is converted (`func/variables.rs`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::datum::Value;
use crate::sql_type::SqlType;

/// What one statement has assigned so far, by names in lower case.
#[derive(Clone, Debug, Default)]
pub struct AssignedVariables(Arc<Mutex<HashMap<String, (Value, SqlType)>>>);

impl AssignedVariables {
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, (Value, SqlType)>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes all that was assigned; reading gives the values before the statement again.
    pub fn take(&self) -> HashMap<String, (Value, SqlType)> {
        self.with(std::mem::take)
    }
}
