//! Range analysis: which conditions of a statement say where the values of a table's columns are, so that an index can be asked
//! for them.
//!
//! ```text
//!  conjuncts of WHERE and ON ─conditions─▶ column = value, IN, ranges, prefixes ─┐
//!                            └alternatives▶ ORs as sets of such conditions ──────┴─▶ key terms of an index (point/src/choose.rs)
//!  values, when they are known ─domain─▶ values as the column can hold them ─────▶ sorted, disjoint key ranges (point/src/keys.rs)
//! ```
//!
//! It knows columns and types, and no index: what an index makes of the conditions, and which one is taken, is for who reads tables.

mod alternatives;
mod conditions;
mod domain;

use avocet_types::SqlType;
use avocet_types::expr::Expr;

pub use alternatives::{Alternatives, Side, alternatives};
pub use conditions::{Condition, Test, conditions, conjunction, literal_prefix, without_not};
pub use domain::{Fit, fit};

/// The tables that conditions are about, by number, and their columns.
pub trait Columns {
    /// The table and the position of the column with this id; `None` if no table has it.
    fn place(&self, id: usize) -> Option<(usize, usize)>;

    /// The type of a column, if the table is one whose rows can be looked up.
    fn stored_type(&self, table: usize, column: usize) -> Option<SqlType>;

    /// Whether all columns of the expression are of these tables (a bit each).
    fn uses_only(&self, expr: &Expr, tables: u32) -> bool;
}
