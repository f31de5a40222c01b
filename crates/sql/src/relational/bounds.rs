//! How large numbers get, and how many rows there are at most: what decides in which width values are added and multiplied.
//!
//! A DECIMAL of more than 38 digits, or a sum of many numbers, may fit a narrow type all the same: its columns' values are
//! known from statistics, and what expressions make of them follows. These bounds are proofs, not estimates.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use avocet_types::expr::{ArithOp, Expr, ExprKind};
use avocet_types::json::shred::{Form, Kind, Target};
use avocet_types::{Datum, SqlType, Value};

use super::{JoinKind, MOST_ROWS, Node, Operator, RowRange, Scan};
use crate::plan::{ColumnId, ColumnTable, CteId};

/// The largest absolute values of columns, where they are smaller than their types allow.
#[derive(Clone, Debug, Default)]
pub struct Bounds(HashMap<ColumnId, f64>);

impl Bounds {
    /// The largest absolute value that a number can have.
    pub fn of(&self, expr: &Expr) -> f64 {
        let by_type = type_bound(&expr.ty);
        let by_value = match &expr.kind {
            ExprKind::Literal(Datum::Int(v)) => v.unsigned_abs() as f64,
            ExprKind::Literal(Datum::UInt(v)) => *v as f64,
            ExprKind::Literal(Datum::Decimal(v)) => v.to_f64().abs(),
            ExprKind::Literal(Datum::Null) => 0.0,
            ExprKind::Column(index) => self.of_column(ColumnId(*index as u32)).unwrap_or(by_type),
            ExprKind::Arith { op: ArithOp::Add | ArithOp::Sub, left, right } => {
                self.of(left) + self.of(right)
            }
            ExprKind::Arith { op: ArithOp::Mul, left, right } => self.of(left) * self.of(right),
            ExprKind::Negate(inner) if is_exact_number(&inner.ty) && is_exact_number(&expr.ty) => {
                self.of(inner)
            }
            ExprKind::Convert(inner) | ExprKind::Cast(inner) if keeps_size(&inner.ty, &expr.ty) => {
                self.of(inner)
            }
            ExprKind::Case { branches, otherwise } => {
                let values = branches.iter().map(|(_, then)| then).chain(otherwise.as_deref());
                values.map(|v| self.of(v)).fold(0.0, f64::max)
            }
            ExprKind::Coalesce(parts) => parts.iter().map(|p| self.of(p)).fold(0.0, f64::max),
            _ => by_type,
        };
        by_value.min(by_type)
    }

    fn of_column(&self, id: ColumnId) -> Option<f64> {
        self.0.get(&id).copied()
    }

    fn set(&mut self, id: ColumnId, bound: f64) {
        if bound.is_finite() {
            self.0.insert(id, bound);
        }
    }

    fn copy(&mut self, from: ColumnId, to: ColumnId) {
        if let Some(bound) = self.of_column(from) {
            self.0.insert(to, bound);
        }
    }
}

fn is_exact_number(ty: &SqlType) -> bool {
    ty.is_integer() || matches!(ty, SqlType::Decimal { .. })
}

/// Whether no conversion makes a number larger: as an unsigned one, -1 is 18446744073709551615.
fn keeps_size(from: &SqlType, to: &SqlType) -> bool {
    is_exact_number(from) && is_exact_number(to) && (from.is_unsigned() || !to.is_unsigned())
}

/// The largest absolute value of a numeric type; infinite for others.
pub fn type_bound(ty: &SqlType) -> f64 {
    match ty.arrow_type() {
        DataType::Int8 => 128.0,
        DataType::UInt8 => 255.0,
        DataType::Int16 => 32_768.0,
        DataType::UInt16 => 65_535.0,
        DataType::Int32 => 2f64.powi(31),
        DataType::UInt32 => 2f64.powi(32),
        DataType::Int64 => 2f64.powi(63),
        DataType::UInt64 => 2f64.powi(64),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => 10f64.powi(i32::from(p) - i32::from(s)),
        _ => f64::INFINITY,
    }
}

/// Finds the bounds of all columns, and the most rows of all nodes.
pub(super) fn bounds(root: &mut Node, columns: &ColumnTable) -> Bounds {
    let mut finder = Finder { columns, bounds: Bounds::default(), evaluated: HashMap::new() };
    finder.node(root);
    finder.bounds
}

struct Finder<'f> {
    columns: &'f ColumnTable,
    bounds: Bounds,
    /// The most rows of what is evaluated once.
    evaluated: HashMap<CteId, f64>,
}

impl Finder<'_> {
    fn node(&mut self, node: &mut Node) {
        if let Operator::With { cte, body, input, .. } = &mut node.operator {
            self.node(body);
            self.evaluated.insert(*cte, body.most_rows);
            self.node(input);
            node.most_rows = input.most_rows;
            return;
        }
        for input in node.inputs_mut() {
            self.node(input);
        }
        node.most_rows = self.own(node).clamp(1.0, MOST_ROWS);
    }

    /// The most rows of a node whose inputs are known; notes the columns that it makes.
    fn own(&mut self, node: &Node) -> f64 {
        match &node.operator {
            Operator::OneRow => 1.0,
            Operator::Scan(scan) => self.scan(scan),
            Operator::Values(rows) => rows.len() as f64,
            Operator::Filter { input, .. }
            | Operator::Distinct { input }
            | Operator::Window { input, .. } => input.most_rows,
            Operator::Project { input, items } => {
                for item in items {
                    self.bounds.set(item.id, self.bounds.of(&item.expr));
                }
                input.most_rows
            }
            Operator::Join(join) => match join.kind {
                JoinKind::Inner | JoinKind::Left => join.left.most_rows * join.right.most_rows,
                _ => join.left.most_rows,
            },
            Operator::Aggregate { input, aggregation } => {
                for key in &aggregation.keys {
                    self.bounds.set(key.id, self.bounds.of(&key.expr));
                }
                let sets = if aggregation.rollup { aggregation.keys.len() + 1 } else { 1 };
                input.most_rows * sets as f64
            }
            Operator::Sort { input, range, .. } => limited(input.most_rows, *range),
            Operator::Limit { input, range } => limited(input.most_rows, Some(*range)),
            Operator::SetOperation(set) => set.inputs.iter().map(|input| input.most_rows).sum(),
            Operator::Apply(apply) => match apply.kind {
                super::ApplyKind::Rows { .. } => MOST_ROWS,
                _ => apply.input.most_rows,
            },
            Operator::Once { id, query, input } => {
                if let [answer] = query.outputs[..] {
                    self.bounds.copy(answer, *id);
                }
                input.most_rows
            }
            Operator::Shared { cte, columns, .. } => {
                columns.iter().zip(&node.outputs).for_each(|(from, to)| self.bounds.copy(*from, *to));
                self.evaluated.get(cte).copied().unwrap_or(MOST_ROWS)
            }
            Operator::With { input, .. } => input.most_rows,
            Operator::Recursive(_) | Operator::WorkTable { .. } | Operator::JsonTable { .. } => MOST_ROWS,
        }
    }

    fn scan(&mut self, scan: &Scan) -> f64 {
        // Rows that are being locked may be newer than what is known.
        let Some(known) = scan.statistics.as_ref().filter(|_| scan.table.lock.is_none()) else {
            return MOST_ROWS;
        };
        for (position, id) in &scan.table.columns {
            if let Some(column) = known.columns.get(*position)
                && let (Some(min), Some(max)) = (&column.min, &column.max)
                && let (Some(min), Some(max)) = (magnitude(min), magnitude(max))
            {
                self.bounds.set(*id, min.max(max).min(type_bound(&self.columns[*id].ty)));
            }
        }
        for path in &scan.paths.columns {
            if let Form::Value(target) = path.form
                && let Some(greatest) = greatest_at(scan, path.column, &path.names, target)
            {
                self.bounds.set(path.id, greatest.min(type_bound(&self.columns[path.id].ty)));
            }
        }
        known.most_rows as f64
    }
}

/// How large the values at a path get, if each is one of the target; infinite of what is no integer.
pub(super) fn greatest_at(scan: &Scan, column: usize, names: &[Box<str>], target: Target) -> Option<f64> {
    // Rows that are being locked may be newer than what is known.
    let known = scan.statistics.as_ref().filter(|_| scan.table.lock.is_none())?;
    let path = known.paths.iter().find(|path| path.column == column && *path.names == *names)?;
    match (path.kind, target) {
        (Kind::Int, Target::Int) => path.greatest,
        (Kind::Int, Target::Double) => path.greatest.filter(|greatest| *greatest <= 2f64.powi(53)),
        (Kind::Int, Target::Decimal { precision, scale }) => {
            path.greatest.filter(|greatest| *greatest < 10f64.powi(i32::from(precision) - i32::from(scale)))
        }
        (Kind::Double, Target::Double) | (Kind::String, Target::String) => Some(f64::INFINITY),
        _ => None,
    }
}

fn limited(rows: f64, range: Option<RowRange>) -> f64 {
    range.map_or(rows, |range| rows.min(range.fetch as f64))
}

fn magnitude(value: &Value) -> Option<f64> {
    Some(match value {
        Datum::Int(v) => v.unsigned_abs() as f64,
        Datum::UInt(v) => *v as f64,
        Datum::Decimal(v) => v.to_f64().abs(),
        _ => return None,
    })
}
