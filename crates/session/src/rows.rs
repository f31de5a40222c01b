//! Queries that are run a row at a time: those without tables, on one table through an index, on the server's own
//! tables, and those that lock rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_base::RowId;
use avocet_channel::{Cancellation, ResultSink};
use avocet_engine::{RowBuf, RowLock, TableHandle, Txn};
use avocet_sql::plan::{BoundQuery, From, Limit, QueryBody, TableScan};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::program::NoRow;
use avocet_types::expr::{EvalContext, Expr, RowProgram, RowSource};
use avocet_types::schema::TableDef;
use avocet_types::{Datum, SqlType, Value};

use super::access::{Condition, Locking, lock_matching, order, visit_snapshot};

/// `SELECT projection FROM [table] WHERE filter ORDER BY … LIMIT …`, with table columns by position.
pub(super) struct RowQuery {
    pub table: Option<Arc<TableDef>>,
    pub filter: Option<Expr>,
    projection: Vec<RowProgram>,
    /// The visible columns, as positions in the projection.
    outputs: Vec<usize>,
    sort: Vec<usize>,
    sort_types: Vec<(SqlType, bool)>,
    limit: Option<Limit>,
    /// How the table's rows are locked.
    pub lock: Option<RowLock>,
}

/// Where a query's rows come from.
pub(super) enum Rows<'r> {
    /// One row without columns.
    One,
    Table(&'r mut Txn, &'r Arc<TableHandle>),
    Locked(&'r mut Txn, &'r Arc<TableHandle>, RowLock),
    Values(Vec<Vec<Value>>),
}

/// What a run needs of its statement.
pub(super) struct Run<'r> {
    pub params: &'r [Datum<'r>],
    pub context: &'r EvalContext,
    /// `@@sql_select_limit`.
    pub select_limit: u64,
    pub cancellation: Cancellation<'r>,
}

impl RowQuery {
    /// `None` if the query is of another form.
    pub fn compile(bound: &BoundQuery) -> Result<Option<Self>, SqlError> {
        let QueryBody::Select(select) = &bound.body.body else { return Ok(None) };
        let plain = select.aggregation.is_none()
            && select.having.is_none()
            && select.windows.is_empty()
            && !select.distinct
            && select.subqueries.is_empty()
            && bound.body.ctes.is_empty();
        if !plain {
            return Ok(None);
        }
        let scan = match &select.from {
            From::Dual => None,
            From::Table(scan) => Some(scan),
            _ => return Ok(None),
        };
        let local = |expr: &Expr| to_positions(expr.clone(), scan);
        let table = scan.map(|scan| scan.table.clone());
        let compile = |expr: &Expr| match &table {
            Some(table) => super::access::compile(expr, table),
            None => Ok(RowProgram::compile(expr)?),
        };
        let projection =
            select.projection.iter().map(|p| compile(&local(&p.expr))).collect::<Result<Vec<_>, _>>()?;
        let position = |id| select.projection.iter().position(|p| p.id == id);
        let outputs = bound.body.outputs.iter().map(|id| position(*id)).collect::<Option<Vec<_>>>();
        let sort = bound.body.order_by.iter().map(|key| position(key.column)).collect::<Option<Vec<_>>>();
        let (Some(outputs), Some(sort)) = (outputs, sort) else { return Ok(None) };
        let sort_types =
            sort.iter().zip(&bound.body.order_by).map(|(at, key)| (*projection[*at].ty(), key.descending));
        Ok(Some(Self {
            filter: select.filter.as_ref().map(local),
            sort_types: sort_types.collect(),
            projection,
            outputs,
            sort,
            limit: bound.body.limit.clone(),
            lock: scan.and_then(|scan| scan.lock.map(avocet_point::row_lock)),
            table,
        }))
    }

    /// Sends the rows; returns how many.
    pub fn run(&self, rows: Rows<'_>, run: &Run<'_>, sink: &mut dyn ResultSink) -> Result<u64, SqlError> {
        let (offset, count) = self.limits(run)?;
        let mut out =
            Output { query: self, run, sink, skip: offset, left: count, sent: 0, sorted: Vec::new() };
        match rows {
            Rows::One => {
                let holds = match &self.filter {
                    Some(filter) => RowProgram::compile(filter)?.matches(&NoRow, run.params, run.context)?,
                    None => true,
                };
                if holds {
                    let _ = out.row(&NoRow)?;
                }
            }
            Rows::Values(values) => {
                let condition = self.condition(run)?;
                for row in &values {
                    if condition.holds(&row.as_slice())? && out.row(&row.as_slice())?.is_break() {
                        break;
                    }
                }
            }
            Rows::Table(txn, table) => {
                let condition = self.condition(run)?;
                let range = condition.index_range(table);
                visit_snapshot(txn, table, &condition, range.as_ref(), &mut |_, row| out.row(&row))?;
            }
            Rows::Locked(txn, table, lock) => {
                let condition = self.condition(run)?;
                let most = if self.sort.is_empty() { offset.saturating_add(count) } else { u64::MAX };
                let found =
                    lock_matching(txn, table, &condition, Locking { lock, most, looks_first: false })?;
                let mut buf = RowBuf::default();
                for id in found {
                    if locked_row(txn, table, id, lock, &mut buf)?
                        && out.row(&buf.row(&table.layout))?.is_break()
                    {
                        break;
                    }
                }
            }
        }
        out.finish()
    }

    fn condition<'r>(&self, run: &Run<'r>) -> Result<Condition<'r>, SqlError> {
        let table = self.table.as_deref().expect("rows come from a table");
        Condition::new(self.filter.clone(), table, run.params, run.context)
    }

    /// The name of the index that finds the rows, if one does.
    pub fn index_name(&self, table: &TableHandle, run: &Run<'_>) -> Result<Option<String>, SqlError> {
        let range = self.condition(run)?.index_range(table);
        Ok(range.map(|range| table.indexes()[range.index].def.name.clone()))
    }

    fn limits(&self, run: &Run<'_>) -> Result<(u64, u64), SqlError> {
        match &self.limit {
            None => Ok((0, run.select_limit)),
            Some(limit) => {
                let offset = limit
                    .offset
                    .as_ref()
                    .map_or(Ok(0), |offset| limit_value(offset, run.params, run.context))?;
                Ok((offset, limit_value(&limit.count, run.params, run.context)?))
            }
        }
    }
}

fn locked_row(
    txn: &mut Txn,
    table: &Arc<TableHandle>,
    id: RowId,
    lock: RowLock,
    buf: &mut RowBuf,
) -> Result<bool, SqlError> {
    Ok(txn.lock_row(table, id, lock, buf)?)
}

/// The value of a LIMIT or OFFSET.
pub(super) fn limit_value(expr: &Expr, params: &[Datum<'_>], context: &EvalContext) -> Result<u64, SqlError> {
    let program = RowProgram::compile(expr)?;
    match program.eval_const(params, context)? {
        Datum::UInt(v) => Ok(v),
        Datum::Int(v) if v >= 0 => Ok(v as u64),
        _ => Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"LIMIT"])),
    }
}

/// An expression of a query with its column ids replaced by positions in the one table.
pub(super) fn to_positions(expr: Expr, scan: Option<&TableScan>) -> Expr {
    expr.map_columns(&mut |id| {
        let column = scan.and_then(|scan| scan.columns.iter().find(|(_, column)| column.index() == id));
        column.expect("a block without other inputs uses its table's columns").0
    })
}

/// Rows on their way to the sink.
struct Output<'o> {
    query: &'o RowQuery,
    run: &'o Run<'o>,
    sink: &'o mut dyn ResultSink,
    skip: u64,
    left: u64,
    sent: u64,
    sorted: Vec<(Vec<Value>, Vec<Value>)>,
}

impl Output<'_> {
    fn row<'a, R: RowSource<'a>>(&mut self, row: &R) -> Result<ControlFlow<()>, SqlError>
    where
        Self: 'a,
    {
        let run = self.run;
        let query = self.query;
        let values = query
            .projection
            .iter()
            .map(|program| program.eval(row, run.params, run.context).map(Datum::into_owned))
            .collect::<Result<Vec<Value>, _>>()?;
        if !query.sort.is_empty() {
            let keys = query.sort.iter().map(|at| values[*at].clone()).collect();
            self.sorted.push((keys, values));
            return Ok(ControlFlow::Continue(()));
        }
        self.send(&values)
    }

    fn send(&mut self, values: &[Value]) -> Result<ControlFlow<()>, SqlError> {
        if self.left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        if self.query.outputs.iter().copied().eq(0..values.len()) {
            self.sink.row(values)?;
        } else {
            let visible: Vec<Value> = self.query.outputs.iter().map(|at| values[*at].clone()).collect();
            self.sink.row(&visible)?;
        }
        self.left -= 1;
        self.sent += 1;
        if self.sink.wants_flush() {
            self.run.cancellation.flush_in_place(self.sink)?;
        }
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn finish(mut self) -> Result<u64, SqlError> {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.sort_by(|(a, _), (b, _)| order(a, b, &self.query.sort_types));
        for (_, values) in &sorted {
            if self.send(values)?.is_break() {
                break;
            }
        }
        Ok(self.sent)
    }
}
