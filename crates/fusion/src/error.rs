//! DataFusion's errors as MySQL's.

use avocet_sql::bind::unsupported;
use avocet_types::error::{ErrorCode, SqlError};
use datafusion::common::DataFusionError;

use crate::udf::sql_error_of;

/// An error of planning: what DataFusion can not plan, we do not support.
pub(super) fn plan_error(error: &DataFusionError) -> SqlError {
    match sql_error_of(error) {
        Some(error) => error,
        None => match error.find_root() {
            DataFusionError::NotImplemented(what) | DataFusionError::Plan(what) => unsupported(what),
            other => ErrorCode::UNKNOWN_ERROR.because(format!("Internal error in planning: {other}")),
        },
    }
}

/// An error of running a plan.
pub(super) fn run_error(error: &DataFusionError) -> SqlError {
    if let Some(error) = sql_error_of(error) {
        return error;
    }
    match error.find_root() {
        DataFusionError::ResourcesExhausted(what) => {
            ErrorCode::OUT_OF_RESOURCES.because(format!("Query exceeded its memory limit: {what}"))
        }
        DataFusionError::NotImplemented(what) => unsupported(what),
        DataFusionError::IoError(error) => spill_error(error),
        other => ErrorCode::UNKNOWN_ERROR.because(format!("Internal error in execution: {other}")),
    }
}

/// The only files that a plan itself reads and writes are those of what does not fit into memory.
fn spill_error(error: &std::io::Error) -> SqlError {
    let what = format!("a query's temporary file: {error}");
    match error.kind() {
        std::io::ErrorKind::StorageFull => ErrorCode::DISK_FULL.because(what),
        _ => ErrorCode::GET_ERRNO.because(what),
    }
}
