//! What a promotion does at the source: what it finds there, how it stops writes and gives them back, and what it takes along.
//!
//! - `survey`: what would be left behind, and what stands in the way
//! - `fence`: no more writes
//! - `accounts`: accounts and grants, in the source's words
//! - `applied`: how far the copy here is, as it is on disk

mod accounts;
mod applied;
mod fence;
mod survey;

use std::collections::BTreeMap;

use mysql::prelude::Queryable;

pub use accounts::{AccountText, accounts};
pub use applied::Applied;
pub use fence::{Fence, Was, undo};
pub use survey::{left_out, survey};

use crate::error::Result;
use crate::patterns::Patterns;
use crate::source::Connection;
use crate::state::TableName;

/// The next AUTO_INCREMENT values of the source's tables. A counter may be ahead of every row that there is.
pub fn counters(conn: &mut Connection, patterns: &Patterns) -> Result<BTreeMap<TableName, u64>> {
    let rows: Vec<(String, String, u64)> = conn.query(
        "SELECT CAST(TABLE_SCHEMA AS CHAR), CAST(TABLE_NAME AS CHAR), CAST(AUTO_INCREMENT AS UNSIGNED) FROM information_schema.TABLES
         WHERE AUTO_INCREMENT IS NOT NULL AND TABLE_TYPE = 'BASE TABLE'",
    )?;
    let wanted = rows.into_iter().filter(|(database, table, _)| patterns.has_table(database, table));
    Ok(wanted.map(|(database, table, next)| (TableName { database, table }, next)).collect())
}
