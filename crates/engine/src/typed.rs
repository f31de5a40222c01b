//! Tables as Rust sees them: rows are structs, keys are values or tuples of values.
//!
//! ```text
//!  row! { struct Account { id: i64, owner: String, .. } }      columns by name, checked when the table is opened
//!  Engine::table::<Account>("bank", "accounts") ─▶ Table       get / put / insert / update / delete by primary key
//!                                                  └─ index(..) ─▶ Index    get and scan by any index
//! ```
//!
//! A thin layer over [`Txn`] and [`TableHandle`]: each call is one or two of theirs. Values are converted to the columns'
//! types as a strict MySQL statement would, but nothing is rounded or cut: what does not fit is refused
//! ([`EngineError::BadValue`]). Temporal values of DATETIME columns are taken as they are, those of TIMESTAMP columns are UTC.
//!
//! Reads see the transaction's snapshot and its own changes; changes act on the newest committed rows and wait for whoever
//! has locked them. A table that DDL has changed is found again by its name.

mod define;
mod field;
mod key;
mod table;

pub use define::NewTable;
pub use field::{Date, DateTime, Field, FieldColumn, Row, Time};
pub use key::{Key, KeyPart};
pub use table::{Index, Table};

use crate::engine::Engine;
use crate::error::Result;
#[allow(unused_imports, reason = "named by the documentation")]
use crate::{EngineError, TableHandle, Txn};

impl Engine {
    /// Opens a table whose rows are `R`s.
    ///
    /// # Errors
    /// [`EngineError::NoSuchTable`]; [`EngineError::WrongShape`] if a column of `R` is missing or of another type.
    pub fn table<R: Row>(&self, database: &str, name: &str) -> Result<Table<R>> {
        Table::open(self, database, name)
    }
}
