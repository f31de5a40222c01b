//! How many rows a part of FROM has, and how many values its expressions take.
//!
//! Conditions and keys are tried on a sample of the table's rows, whatever they are made of; conditions of one table are
//! tried together, so that correlation between columns shows. Where there is no sample (derived tables), or it holds too
//! few rows of the kind, rules of thumb and the distinct counts of column blocks stand in.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::row::{RowConverter, SortField};
use avocet_types::expr::{BatchProgram, CompareOp, EvalContext, Expr, ExprKind};

use super::{Cardinality, ColumnSample, RowsFrom};
use crate::plan::{ColumnId, TableScan};

/// Of parts of which nothing is known.
pub(super) const UNKNOWN_ROWS: f64 = 1e4;
/// Fewer sampled rows than these say little.
const FEW: usize = 4;

/// Sizes of one relation of FROM.
pub(super) struct Estimate {
    /// Before and after the relation's own conditions.
    pub all_rows: f64,
    pub rows: f64,
    pub source: RowsFrom,
    /// Distinct values of columns, as storage counts them.
    distinct: HashMap<ColumnId, f64>,
    sample: Option<Sample>,
}

struct Sample {
    source: Arc<dyn ColumnSample>,
    /// Positions in the table.
    positions: HashMap<ColumnId, usize>,
    /// The rows for which all conditions so far hold.
    kept: Vec<bool>,
    context: EvalContext,
}

impl Estimate {
    /// A part that is no table: every column may be its key.
    pub fn of_part(Cardinality { rows, source }: Cardinality) -> Self {
        Self { all_rows: rows, rows, source, distinct: HashMap::new(), sample: None }
    }

    pub fn of_table(
        scan: &TableScan,
        counted: Option<f64>,
        distinct: impl Fn(usize) -> Option<u64>,
        source: Option<Arc<dyn ColumnSample>>,
        context: &EvalContext,
    ) -> Self {
        let source_of_rows = if counted.is_some() { RowsFrom::Statistics } else { RowsFrom::Rule };
        let rows = counted.unwrap_or(UNKNOWN_ROWS);
        let unique = |position: usize| {
            let mut keys = scan.table.indexes.iter().filter(|i| i.kind.is_unique() && i.parts.len() == 1);
            keys.any(|key| key.parts[0].column == position)
        };
        let known = scan.columns.iter().filter_map(|(position, id)| {
            let count = if unique(*position) { rows } else { distinct(*position)? as f64 };
            Some((*id, count.clamp(1.0, rows)))
        });
        let sample = source.filter(|s| s.rows() > 0).map(|source| Sample {
            kept: vec![true; source.rows()],
            positions: scan.columns.iter().map(|(position, id)| (*id, *position)).collect(),
            context: context.quiet(),
            source,
        });
        Self { all_rows: rows, rows, source: source_of_rows, distinct: known.collect(), sample }
    }

    /// Takes a condition over this relation alone into account.
    pub fn filter(&mut self, condition: &Expr) {
        let by_rule = self.rule_of_thumb(condition);
        let share = self.sample.as_mut().and_then(|s| s.filter(condition, by_rule));
        self.source = self.source.max(if share.is_some() { RowsFrom::Sample } else { RowsFrom::Rule });
        self.rows = (self.rows * share.unwrap_or(by_rule)).max(1.0);
    }

    /// Only a share of the rows is kept.
    pub fn reduce(&mut self, share: f64) {
        self.rows = (self.rows * share).max(1.0);
        self.source = RowsFrom::Rule;
    }

    /// The number of distinct values of an expression before the relation's conditions.
    pub fn distinct(&self, expr: &Expr) -> f64 {
        if let ExprKind::Column(column) = &expr.kind
            && let Some(known) = self.distinct.get(&ColumnId(*column as u32))
        {
            return *known;
        }
        let sampled = self.sample.as_ref().and_then(|s| s.distinct(expr, self.all_rows));
        let unknown = || if self.sample.is_none() { self.all_rows } else { self.all_rows / 10.0 };
        sampled.unwrap_or_else(unknown).clamp(1.0, self.all_rows.max(1.0))
    }

    fn rule_of_thumb(&self, expr: &Expr) -> f64 {
        let unless = |negated: bool, share: f64| if negated { 1.0 - share } else { share };
        match &expr.kind {
            ExprKind::Compare { op, left, right } => match op {
                CompareOp::Eq | CompareOp::NullSafeEq => {
                    1.0 / self.distinct(if left.is_constant() { right } else { left })
                }
                CompareOp::Ne => 0.9,
                _ => 0.3,
            },
            ExprKind::Between { negated, .. } => unless(*negated, 0.15),
            ExprKind::InList { expr, list, negated } => {
                unless(*negated, (list.len() as f64 / self.distinct(expr)).min(0.5))
            }
            ExprKind::Like { negated, .. } | ExprKind::Is { negated, .. } => unless(*negated, 0.1),
            ExprKind::And(parts) => parts.iter().map(|p| self.rule_of_thumb(p)).product(),
            ExprKind::Or(parts) => parts.iter().map(|p| self.rule_of_thumb(p)).sum::<f64>().min(1.0),
            ExprKind::Not(inner) => 1.0 - self.rule_of_thumb(inner),
            _ => 0.3,
        }
    }
}

impl Sample {
    /// The columns that an expression needs, and the expression over them. `None` if it needs others.
    fn inputs(&self, expr: &Expr) -> Option<(Vec<ArrayRef>, Expr)> {
        let columns = expr.columns();
        let array = |column: &usize| self.source.column(*self.positions.get(&ColumnId(*column as u32))?);
        let arrays = columns.iter().map(array).collect::<Option<Vec<_>>>()?;
        let place = |column: usize| columns.iter().position(|c| *c == column).expect("one of its columns");
        Some((arrays, expr.clone().map_columns(&mut { place })))
    }

    /// The share of the rows kept so far for which the condition holds too.
    fn filter(&mut self, condition: &Expr, by_rule: f64) -> Option<f64> {
        let (arrays, condition) = self.inputs(condition)?;
        let program = BatchProgram::compile(&condition).ok()?;
        let matches: BooleanArray = program.matches(&arrays, self.kept.len(), &self.context).ok()?;
        let holds = |at: usize| matches.is_valid(at) && matches.value(at);
        let before = self.kept.iter().filter(|kept| **kept).count();
        let kept: Vec<_> = self.kept.iter().enumerate().map(|(at, kept)| *kept && holds(at)).collect();
        let after = kept.iter().filter(|kept| **kept).count();
        if after >= FEW {
            self.kept = kept;
            return Some(after as f64 / before as f64);
        }
        // Too few are left to count: the condition by itself, or less than one of the sample.
        let alone = (0..self.kept.len()).filter(|at| holds(*at)).count();
        let all = self.kept.len() as f64;
        Some(if alone > 0 { alone as f64 / all } else { by_rule.min(0.5 / all) })
    }

    fn distinct(&self, expr: &Expr, all_rows: f64) -> Option<f64> {
        let (arrays, expr) = self.inputs(expr)?;
        let values = match &expr.kind {
            ExprKind::Column(column) => arrays[*column].clone(),
            _ => BatchProgram::compile(&expr).ok()?.eval(&arrays, self.kept.len(), &self.context).ok()?,
        };
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]).ok()?;
        let keys = converter.convert_columns(std::slice::from_ref(&values)).ok()?;
        let mut keys: Vec<_> =
            keys.iter().enumerate().filter(|(at, _)| values.is_valid(*at)).map(|(_, key)| key).collect();
        keys.sort_unstable();
        let (mut distinct, mut once) = (0, 0);
        for run in keys.chunk_by(|a, b| a == b) {
            distinct += 1;
            once += usize::from(run.len() == 1);
        }
        let share_valid = keys.len() as f64 / values.len().max(1) as f64;
        Some(extrapolate(keys.len(), distinct, once, all_rows * share_valid))
    }
}

/// The distinct values of `all` rows of which `sampled` have `distinct` values, `once` of them seen a single time: the
/// estimator Duj1 of Haas and Stokes ("Estimating the number of classes in a finite population", 1998).
fn extrapolate(sampled: usize, distinct: usize, once: usize, all: f64) -> f64 {
    let (n, d, f1) = (sampled as f64, distinct as f64, once as f64);
    if n == 0.0 || all <= n {
        return d.max(1.0);
    }
    (n * d / (n - f1 + f1 * n / all)).clamp(d, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_counts_are_extrapolated_from_a_sample() {
        // All different: a key.
        assert_eq!(extrapolate(1000, 1000, 1000, 1e6), 1e6);
        // All seen often: there are no others.
        assert_eq!(extrapolate(1000, 10, 0, 1e6), 10.0);
        // 2,048 draws of 60,000 rows with 3,000 values meet about 1,480 of them, some 1,030 once.
        let estimate = extrapolate(2048, 1480, 1030, 60_000.0);
        assert!((2000.0..4500.0).contains(&estimate), "{estimate}");
    }
}
