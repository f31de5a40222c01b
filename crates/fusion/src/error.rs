//! DataFusion's errors as MySQL's.

use std::io;

use arrow::error::ArrowError;
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
        DataFusionError::ArrowError(inner, _) if let ArrowError::IoError(_, error) = &**inner => {
            spill_error(error)
        }
        other => ErrorCode::UNKNOWN_ERROR.because(format!("Internal error in execution: {other}")),
    }
}

/// The only files that a plan itself reads and writes are those of what does not fit into memory.
fn spill_error(error: &io::Error) -> SqlError {
    // DataFusion hands its own errors to Arrow's writers as errors of files.
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return run_error(inner);
    }
    let what = format!("a query's temporary file: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::DISK_FULL.because(what),
        _ => ErrorCode::GET_ERRNO.because(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_one_whoever_has_met_it() {
        let full = || DataFusionError::IoError(io::ErrorKind::StorageFull.into());
        let by_arrow = |error: io::Error| DataFusionError::ArrowError(Box::new(error.into()), None);
        let met = [full(), by_arrow(io::ErrorKind::StorageFull.into()), by_arrow(full().into())];
        for error in met {
            assert!(run_error(&error).is(ErrorCode::DISK_FULL), "{error}");
        }
        let other = by_arrow(io::ErrorKind::PermissionDenied.into());
        assert!(run_error(&other).is(ErrorCode::GET_ERRNO));
    }
}
