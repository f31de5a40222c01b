//! What planning learns of tables, and when it has to end.

use std::sync::Arc;

use arrow::array::ArrayRef;
use avocet_types::error::SqlError;
use avocet_types::schema::TableDef;

use crate::bind::TableStatistics;

/// Contents of tables, as far as they are known.
pub trait Statistics {
    /// Bounds must hold for every row that a scan gives.
    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>>;

    /// Some of the table's rows, to estimate from.
    fn sample(&self, _table: &TableDef) -> Option<Arc<dyn ColumnSample>> {
        None
    }
}

/// A few rows of a table, by columns.
pub trait ColumnSample {
    fn rows(&self) -> usize;

    /// A column, by its position in the table. `None` if it cannot be read now.
    fn column(&self, position: usize) -> Option<ArrayRef>;
}

/// Whether a statement goes on: planning asks now and then.
pub trait Checkpoint {
    /// Errors 1317 and 3024.
    fn check(&self) -> Result<(), SqlError>;
}
