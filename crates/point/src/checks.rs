//! WITH CHECK OPTION and PARTITION: what rows have to meet that are written through a view, or into partitions; and the views that a plan was made for.

use std::sync::Arc;

use avocet_engine::Catalog;
use avocet_sql::bind::CheckOf;
use avocet_types::TableDef;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalContext, Expr, RowProgram, RowSource, Warning};

use super::{NotPoint, Refusal, Run, Table};

/// A condition over a row of a table.
#[derive(Debug)]
pub struct RowCheck {
    program: RowProgram,
    of: CheckOf,
}

impl RowCheck {
    /// `of` is what refuses.
    pub fn compile(condition: &Expr, of: &CheckOf) -> Result<Self, Refusal> {
        Ok(Self { program: RowProgram::compile(condition)?, of: of.clone() })
    }
}

/// Error 1369 or 1748 of the first condition that a row does not meet.
pub fn first_failed<'a, R: RowSource<'a>>(
    checks: &'a [RowCheck],
    row: &R,
    Run { params, ctx, .. }: Run<'a>,
) -> Result<Option<SqlError>, SqlError> {
    for check in checks {
        if !check.program.matches(row, params, ctx)? {
            return Ok(Some(match &check.of {
                CheckOf::View(database, view) => ErrorCode::VIEW_CHECK_FAILED.with(&[database, view]),
                CheckOf::Partitions => ErrorCode::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET.with(&[]),
            }));
        }
    }
    Ok(None)
}

/// IGNORE makes a warning of it.
pub fn warn_of_check(ctx: &EvalContext, failed: SqlError) {
    ctx.push_warning(Warning { errno: failed.errno, message: failed.message, note: false });
}

/// Views as tables of a plan: it holds their definitions, and is good as long as they are what they were.
pub fn views_of(views: &[Arc<TableDef>], catalog: &Catalog) -> Result<Vec<Table>, Refusal> {
    let find = |view: &Arc<TableDef>| {
        let handle = catalog.table_by_id(view.id).filter(|handle| Arc::ptr_eq(&handle.def, view));
        handle
            .map(|handle| Table(handle.clone()))
            .ok_or_else(|| NotPoint::because("a view has changed").into())
    };
    views.iter().map(find).collect()
}
