//! Window functions that look ahead to the end of their partition, in terms of others: for partitions that do not fit into memory.
//!
//! ```text
//!   PERCENT_RANK                 (RANK - 1) / (COUNT(*) of the partition - 1)
//!   CUME_DIST                    COUNT(*) up to the peers / COUNT(*) of the partition
//!   NTILE                        ROW_NUMBER and COUNT(*) of the partition
//!   FIRST_VALUE of all           FIRST_VALUE up to the current row
//!   LAST_VALUE, NTH_VALUE of all  an aggregate over the partition
//!   from here to the end         from the end to here, in the opposite order
//! ```
//!
//! An aggregate over all of a partition spills (windows.rs), and frames that end near the current row need no more than is in them.

use arrow::datatypes::DataType;
use avocet_sql::parse::ast::FrameUnit;
use avocet_sql::plan::*;
use avocet_types::Datum;
use avocet_types::error::SqlError;
use avocet_types::expr::Expr;
use datafusion::functions_aggregate::{first_last, nth_value};
use datafusion::logical_expr::{self as df, Operator, WindowFunctionDefinition, lit};

use crate::aggregate::Calls;
use crate::expr::binary;
use crate::lower::Lowerer;

/// A function over the same partitions, without a frame of its own.
fn over_the_same(window: &WindowFunction, kind: WindowKind, ordered: bool) -> WindowFunction {
    let order_by = if ordered { window.order_by.clone() } else { Vec::new() };
    WindowFunction { kind, args: Vec::new(), order_by, frame: None, ..window.clone() }
}

fn is_ahead(window: &WindowFunction) -> bool {
    window.frame.as_ref().is_some_and(|frame| matches!(frame.end, FrameBound::UnboundedFollowing))
}

fn is_of_all(window: &WindowFunction) -> bool {
    let starts_first =
        window.frame.as_ref().is_some_and(|frame| matches!(frame.start, FrameBound::UnboundedPreceding));
    is_ahead(window) && starts_first
}

/// The same from the other end: rows in the opposite order, up to where the frame began. None if that is no simpler.
pub(super) fn mirrored(window: &WindowFunction) -> Option<WindowFunction> {
    let frame = window.frame.as_ref()?;
    if !is_ahead(window) || is_of_all(window) || window.order_by.is_empty() {
        return None;
    }
    let end = match frame.start.clone() {
        FrameBound::Preceding(by) => FrameBound::Following(by),
        FrameBound::Following(by) => FrameBound::Preceding(by),
        other => other,
    };
    let kind = match window.kind {
        WindowKind::FirstValue => WindowKind::LastValue,
        WindowKind::LastValue => WindowKind::FirstValue,
        // Documents have their values in the rows' order.
        WindowKind::Aggregate(AggregateFunction::JsonArrayAgg | AggregateFunction::JsonObjectAgg) => {
            return None;
        }
        WindowKind::Aggregate(function) => WindowKind::Aggregate(function),
        _ => return None,
    };
    let order_by = window.order_by.iter().map(|(key, descending)| (key.clone(), !descending)).collect();
    let frame = Frame { unit: frame.unit, start: FrameBound::UnboundedPreceding, end };
    Some(WindowFunction { kind, order_by, frame: Some(frame), ..window.clone() })
}

impl Lowerer {
    /// The function in other terms, if it looks ahead.
    pub(super) fn without_lookahead(
        &mut self,
        window: &WindowFunction,
        args: &[Expr],
        calls: &mut Calls,
    ) -> Result<Option<df::Expr>, SqlError> {
        let of_all = is_of_all(window);
        match (window.kind, args.first().and_then(Expr::as_literal), args.get(1).and_then(Expr::as_literal)) {
            (WindowKind::PercentRank, ..) => {
                let rank = self.window_count(window, WindowKind::Rank, true, calls)?;
                let others = self.others(window, calls)?;
                let before = df::cast(binary(rank, Operator::Minus, lit(1i64)), DataType::Float64);
                // Alone in its partition, a row has the rank 1.
                let others = datafusion::functions::core::expr_fn::nullif(others, lit(0i64));
                let share = binary(before, Operator::Divide, df::cast(others, DataType::Float64));
                Ok(Some(datafusion::functions::core::expr_fn::coalesce(vec![share, lit(0.0)])))
            }
            (WindowKind::CumeDist, ..) => {
                let count = WindowKind::Aggregate(AggregateFunction::Count);
                let passed = self.window_count(window, count, true, calls)?;
                let all = self.window_count(window, count, false, calls)?;
                let [passed, all] = [passed, all].map(|count| df::cast(count, DataType::Float64));
                Ok(Some(binary(passed, Operator::Divide, all)))
            }
            (WindowKind::Ntile, Some(Datum::Int(tiles)), _) if *tiles > 0 => {
                self.tile(window, *tiles, calls).map(Some)
            }
            (WindowKind::FirstValue, ..) if of_all => {
                let (start, end) = (FrameBound::UnboundedPreceding, FrameBound::CurrentRow);
                let frame = Some(Frame { unit: FrameUnit::Rows, start, end });
                let near = WindowFunction { frame, ..window.clone() };
                self.ranked(&near, args, calls).map(Some)
            }
            (WindowKind::LastValue, ..) if of_all => {
                let value = self.logical_value(&args[0])?;
                let last = WindowFunctionDefinition::AggregateUDF(first_last::last_value_udaf());
                let last = self.over(window, last, vec![value])?;
                Ok(Some(calls.add(last)))
            }
            (WindowKind::NthValue, _, Some(Datum::Int(at))) if of_all && *at > 0 => {
                let (value, at) = (self.logical_value(&args[0])?, lit(*at));
                let nth = WindowFunctionDefinition::AggregateUDF(nth_value::nth_value_udaf());
                let nth = self.over(window, nth, vec![value, at])?;
                Ok(Some(calls.add(nth)))
            }
            _ => Ok(None),
        }
    }

    /// A count or a rank, as a BIGINT.
    fn window_count(
        &mut self,
        window: &WindowFunction,
        kind: WindowKind,
        ordered: bool,
        calls: &mut Calls,
    ) -> Result<df::Expr, SqlError> {
        let count = over_the_same(window, kind, ordered);
        let count = match kind {
            WindowKind::Aggregate(_) => self.window(&count, calls)?.expr,
            _ => self.ranked(&count, &[], calls)?,
        };
        Ok(df::cast(count, DataType::Int64))
    }

    /// How many other rows a partition has.
    fn others(&mut self, window: &WindowFunction, calls: &mut Calls) -> Result<df::Expr, SqlError> {
        let count = WindowKind::Aggregate(AggregateFunction::Count);
        let all = self.window_count(window, count, false, calls)?;
        Ok(binary(all, Operator::Minus, lit(1i64)))
    }

    /// The first tiles have a row more than the last, if rows are left over.
    fn tile(&mut self, window: &WindowFunction, tiles: i64, calls: &mut Calls) -> Result<df::Expr, SqlError> {
        use Operator::{Divide, Lt, Minus, Modulo, Multiply, Plus};
        let count = WindowKind::Aggregate(AggregateFunction::Count);
        let all = self.window_count(window, count, false, calls)?;
        let number = self.window_count(window, WindowKind::RowNumber, true, calls)?;
        let before = binary(number, Minus, lit(1i64));
        let (base, left_over) = (binary(all.clone(), Divide, lit(tiles)), binary(all, Modulo, lit(tiles)));
        let large = binary(base.clone(), Plus, lit(1i64));
        let in_large = binary(left_over.clone(), Multiply, large.clone());
        let of_large = binary(binary(before.clone(), Divide, large), Plus, lit(1i64));
        let rest = binary(before.clone(), Minus, in_large.clone());
        let base = datafusion::functions::core::expr_fn::nullif(base, lit(0i64));
        let of_rest = binary(binary(rest, Divide, base), Plus, binary(left_over, Plus, lit(1i64)));
        let is_large = Box::new(binary(before, Lt, in_large));
        Ok(df::Expr::Case(df::expr::Case::new(
            None,
            vec![(is_large, Box::new(of_large))],
            Some(Box::new(of_rest)),
        )))
    }
}
