//! Finding the rows of one table for a condition: by an index if one fits, else by a scan.
//!
//! The condition is always checked again on each row, so that a range need only hold all rows that can match.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use avocet_base::RowId;
use avocet_engine::{
    Direction, KeyRange, LockHow, ReadScratch, RowBuf, RowLock, RowVerdict, ScanRequest, TableHandle, Txn,
};
use avocet_types::arrow_map::datum_at;
use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, EvalContext, Expr, ExprKind, RowProgram, RowSource};
use avocet_types::schema::{IndexKind, TableDef};
use avocet_types::{Datum, RowRef, SqlType, Value};

/// A range of an index's keys that holds every row that can match.
pub(super) struct IndexRange {
    pub index: usize,
    range: KeyRange,
    /// Columns that are compared for equality, and whether one more is bounded.
    equal: usize,
    bounded: bool,
}

/// A condition on one table's rows: column `i` of the table is `Column(i)`.
pub(super) struct Condition<'c> {
    pub expr: Option<Expr>,
    program: Option<RowProgram>,
    params: &'c [Datum<'c>],
    context: &'c EvalContext,
}

/// Compiles an expression over a table's columns.
pub(super) fn compile(expr: &Expr, table: &TableDef) -> Result<RowProgram, SqlError> {
    let name =
        |column: usize| format!("`{}`.`{}`.`{}`", table.database, table.name, table.columns[column].name);
    Ok(RowProgram::compile_named(expr, &name)?)
}

impl<'c> Condition<'c> {
    pub fn new(
        expr: Option<Expr>,
        table: &TableDef,
        params: &'c [Datum<'c>],
        context: &'c EvalContext,
    ) -> Result<Self, SqlError> {
        let program = expr.as_ref().map(|expr| compile(expr, table)).transpose()?;
        Ok(Self { expr, program, params, context })
    }

    pub fn holds<'a, R: RowSource<'a>>(&'a self, row: &R) -> Result<bool, SqlError>
    where
        'c: 'a,
    {
        match &self.program {
            None => Ok(true),
            Some(program) => Ok(program.matches(row, self.params, self.context)?),
        }
    }

    /// The index range with the most equal columns.
    pub fn index_range(&self, table: &TableHandle) -> Option<IndexRange> {
        let conjuncts = self.expr.clone()?.into_conjuncts();
        let terms: Vec<_> = conjuncts.iter().flat_map(|c| self.terms(c, &table.def)).collect();
        let ranges = (0..table.indexes().len()).filter_map(|index| index_range(table, index, &terms));
        ranges.max_by_key(|range| (range.equal, range.bounded))
    }

    /// `column op value` terms that a conjunct implies.
    fn terms(&self, conjunct: &Expr, table: &TableDef) -> Vec<Term> {
        let term = |column: usize, op: CompareOp, other: &Expr| {
            let usable = same_order(&table.columns[column].ty, other);
            let value = usable.then(|| self.constant(other)).flatten()?;
            Some(Term { column, op, value })
        };
        match &conjunct.kind {
            ExprKind::Between { expr, low, high, negated: false } => match expr.kind {
                ExprKind::Column(column) if low.is_constant() && high.is_constant() => {
                    let bounds = [term(column, CompareOp::Ge, low), term(column, CompareOp::Le, high)];
                    bounds.into_iter().flatten().collect()
                }
                _ => Vec::new(),
            },
            _ => match conjunct.as_column_comparison() {
                Some((column, op, other)) => term(column, op, other).into_iter().collect(),
                None => Vec::new(),
            },
        }
    }

    fn constant(&self, expr: &Expr) -> Option<Value> {
        let program = RowProgram::compile(expr).ok()?;
        program.eval_const(self.params, self.context).ok().map(Datum::into_owned)
    }
}

struct Term {
    column: usize,
    op: CompareOp,
    value: Value,
}

/// Whether comparing the column with a value of this expression goes by the order of the column's keys.
fn same_order(column: &SqlType, other: &Expr) -> bool {
    match (column.collation(), other.ty.collation()) {
        (Some(_), Some(_)) if matches!(other.kind, ExprKind::Literal(_) | ExprKind::Param(_)) => true,
        (Some(of), Some(with)) => of == with,
        (None, None) => true,
        _ => false,
    }
}

fn index_range(table: &TableHandle, index: usize, terms: &[Term]) -> Option<IndexRange> {
    let handle = &table.indexes()[index];
    let mut prefix = Vec::new();
    let mut equal = 0;
    for part in &handle.def.parts {
        if part.prefix_len.is_some() {
            break;
        }
        let term = terms.iter().find(|t| t.column == part.column && t.op == CompareOp::Eq);
        let Some(term) = term else { break };
        let before = prefix.len();
        if term.value.is_null()
            || !handle.keys.encode_parts(equal, std::slice::from_ref(&term.value), &mut prefix)
        {
            prefix.truncate(before);
            break;
        }
        equal += 1;
    }
    let (mut lower, mut upper) = (None, None);
    if let Some(part) = handle.def.parts.get(equal)
        && part.prefix_len.is_none()
    {
        for term in terms.iter().filter(|t| t.column == part.column) {
            let mut key = prefix.clone();
            let encoded = handle.keys.encode_parts(equal, std::slice::from_ref(&term.value), &mut key);
            if term.value.is_null() || !encoded {
                continue;
            }
            // Bounds are taken as included: the condition is checked again anyway.
            let from_below = matches!(term.op, CompareOp::Gt | CompareOp::Ge) != part.descending;
            match term.op {
                CompareOp::Gt | CompareOp::Ge | CompareOp::Lt | CompareOp::Le if from_below => {
                    lower = Some(key)
                }
                CompareOp::Gt | CompareOp::Ge | CompareOp::Lt | CompareOp::Le => upper = Some(key),
                _ => {}
            }
        }
    }
    let bounded = lower.is_some() || upper.is_some();
    if equal == 0 && !bounded {
        return None;
    }
    let low = lower.as_deref().unwrap_or(&prefix);
    let high = upper.as_deref().unwrap_or(&prefix);
    let bound = |key: &[u8]| -> bool { !key.is_empty() };
    let range = KeyRange::new(
        if bound(low) { Bound::Included(low) } else { Bound::Unbounded },
        if bound(high) { Bound::Included(high) } else { Bound::Unbounded },
    );
    Some(IndexRange { index, range, equal, bounded })
}

/// A row of a scan's batch; column `i` of the table is `positions[i]` of the batch.
struct BatchRow<'b> {
    table: &'b TableDef,
    batch: &'b arrow::record_batch::RecordBatch,
    positions: &'b [usize],
    row: usize,
}

impl<'b> RowSource<'b> for BatchRow<'b> {
    fn datum(&self, column: usize) -> Datum<'b> {
        let (batch, table) = (self.batch, self.table);
        datum_at(batch.column(self.positions[column]).as_ref(), self.row, &table.columns[column].ty)
    }
}

/// What visitors of rows return: an error ends the visit too.
pub(super) type Visit<'v> = &'v mut dyn FnMut(RowId, RowRef<'_>) -> Result<ControlFlow<()>, SqlError>;

/// Visits the rows that the transaction's snapshot sees and for which the condition holds.
pub(super) fn visit_snapshot(
    txn: &mut Txn,
    table: &Arc<TableHandle>,
    condition: &Condition<'_>,
    range: Option<&IndexRange>,
    visit: Visit<'_>,
) -> Result<(), SqlError> {
    let mut failure = None;
    let mut checked = |id: RowId, row: RowRef<'_>| {
        let step = match condition.holds(&row) {
            Ok(true) => visit(id, row),
            Ok(false) => Ok(ControlFlow::Continue(())),
            Err(error) => Err(error),
        };
        step.unwrap_or_else(|error| {
            failure = Some(error);
            ControlFlow::Break(())
        })
    };
    match range {
        Some(range) => {
            let index = table.indexes()[range.index].clone();
            let mut scratch = ReadScratch::default();
            txn.index_scan(table, &index, &range.range, Direction::Ascending, &mut scratch, &mut checked)?;
        }
        None => txn.table_rows(table, avocet_engine::ReadMode::Snapshot, &mut checked)?,
    }
    failure.map_or(Ok(()), Err)
}

/// How matching rows are locked.
pub(super) struct Locking {
    pub lock: RowLock,
    /// No more than so many.
    pub most: u64,
    /// At READ COMMITTED, rows that others hold are not waited for in a scan if they do not match as they were last
    /// committed.
    pub looks_first: bool,
}

/// Locks the newest version of every row for which the condition holds, and returns where they are.
pub(super) fn lock_matching(
    txn: &mut Txn,
    table: &Arc<TableHandle>,
    condition: &Condition<'_>,
    Locking { lock, most, looks_first }: Locking,
) -> Result<Vec<RowId>, SqlError> {
    let mut found = Vec::new();
    if most == 0 {
        return Ok(found);
    }
    if let Some(range) = condition.index_range(table) {
        let index = table.indexes()[range.index].clone();
        let mut scratch = ReadScratch::default();
        let mut failure = None;
        let mut visit = |id: RowId, row: RowRef<'_>| match condition.holds(&row) {
            Ok(false) => RowVerdict::Unwanted,
            Ok(true) => {
                found.push(id);
                if found.len() as u64 >= most { RowVerdict::Last } else { RowVerdict::Wanted }
            }
            Err(error) => {
                failure = Some(error);
                RowVerdict::Last
            }
        };
        // What cannot be told is told once the row is locked.
        let mut is_wanted = |row: RowRef<'_>| condition.holds(&row).unwrap_or(true);
        let is_scan = index.def.kind == IndexKind::Primary && range.equal < index.def.parts.len();
        let first_look: Option<&mut dyn FnMut(RowRef<'_>) -> bool> =
            if looks_first && is_scan { Some(&mut is_wanted) } else { None };
        let mut how = LockHow { lock, first_look };
        txn.lock_range(
            table,
            &index,
            &range.range,
            Direction::Ascending,
            &mut how,
            &mut scratch,
            &mut visit,
        )?;
        return failure.map_or(Ok(found), Err);
    }
    let mut seen = HashSet::new();
    let mut buf = RowBuf::default();
    loop {
        let mut moved = false;
        for id in candidates(txn, table, condition)? {
            if !seen.insert(id) {
                continue;
            }
            let mark = txn.mark();
            if !txn.lock_row(table, id, lock, &mut buf)? {
                // Gone, or a cold row that moved: another look will tell.
                moved = true;
                continue;
            }
            if !condition.holds(&buf.row(&table.layout))? {
                txn.let_go(mark);
                continue;
            }
            found.push(id);
            if found.len() as u64 >= most {
                return Ok(found);
            }
        }
        if !moved {
            return Ok(found);
        }
    }
}

/// Rows that may match in their newest version.
fn candidates(
    txn: &mut Txn,
    table: &Arc<TableHandle>,
    condition: &Condition<'_>,
) -> Result<Vec<RowId>, SqlError> {
    use arrow::array::AsArray;
    use arrow::datatypes::UInt64Type;
    let mut columns = condition.expr.as_ref().map(Expr::columns).unwrap_or_default();
    columns.sort_unstable();
    columns.dedup();
    let mut positions = vec![0; table.def.columns.len()];
    for (position, column) in columns.iter().enumerate() {
        positions[*column] = position;
    }
    let last = columns.len();
    let request = ScanRequest { columns, predicates: Vec::new(), with_row_id: true };
    let scan = txn.newest_reader().scan(table, request);
    let mut ids = Vec::new();
    let mut failure = None;
    for morsel in 0..scan.morsels() {
        let flow = scan.read(morsel, &mut |batch| {
            let row_ids = batch.column(last).as_primitive::<UInt64Type>();
            for row in 0..batch.num_rows() {
                let source = BatchRow { table: &table.def, batch: &batch, positions: &positions, row };
                match condition.holds(&source) {
                    Ok(true) => ids.push(RowId(row_ids.value(row))),
                    Ok(false) => {}
                    Err(error) => {
                        failure = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        if flow.is_break() {
            break;
        }
    }
    failure.map_or(Ok(ids), Err)
}

/// The order of two rows of sort keys, each ascending or descending.
pub(super) fn order(a: &[Value], b: &[Value], keys: &[(SqlType, bool)]) -> Ordering {
    for ((a, b), (ty, descending)) in a.iter().zip(b).zip(keys) {
        let collation = ty.order().unwrap_or(avocet_types::Collation::BINARY);
        let order = avocet_types::compare::sort_order(a, b, collation);
        let order = if *descending { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
