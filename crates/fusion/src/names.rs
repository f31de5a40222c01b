//! What the lowering's parts share: how a column is called in DataFusion's plans, and its refusals as ours.

use avocet_sql::plan::ColumnId;
use avocet_types::error::SqlError;

use crate::error::plan_error;

/// A column's name, from its producer up.
pub(crate) fn name_of(id: ColumnId) -> String {
    format!("c{}", id.0)
}

pub(crate) fn df_result<T>(result: datafusion::common::Result<T>) -> Result<T, SqlError> {
    result.map_err(|error| plan_error(&error))
}
