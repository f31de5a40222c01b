//! Window functions (manual, 14.20).

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Dialect, Expr, IntervalUnit};
use avocet_types::names;
use avocet_types::{Datum, SqlType, Value};

use crate::bind::aggregate::result_type;
use crate::bind::scope::{Block, BlockWindow};
use crate::bind::{Binder, unsupported};
use crate::parse::ast::{self, ExprKind, WindowRef, WindowSpec};
use crate::plan::{AggregateFunction, ColumnId, Distance, Frame, FrameBound, WindowFunction, WindowKind};

fn kind_of(name: &str) -> Option<WindowKind> {
    Some(match name {
        "ROW_NUMBER" => WindowKind::RowNumber,
        "RANK" => WindowKind::Rank,
        "DENSE_RANK" => WindowKind::DenseRank,
        "PERCENT_RANK" => WindowKind::PercentRank,
        "CUME_DIST" => WindowKind::CumeDist,
        "NTILE" => WindowKind::Ntile,
        "LAG" => WindowKind::Lag,
        "LEAD" => WindowKind::Lead,
        "FIRST_VALUE" => WindowKind::FirstValue,
        "LAST_VALUE" => WindowKind::LastValue,
        "NTH_VALUE" => WindowKind::NthValue,
        _ => return None,
    })
}

/// Windows of one SELECT, as in MySQL.
const MOST_WINDOWS: usize = 127;

/// A specification with what it extends filled in, and the windows that its partitions and its order were written for.
struct FullSpec {
    spec: WindowSpec,
    partition_of: Arc<str>,
    order_of: Arc<str>,
}

/// What MySQL's messages call a window that is specified where it is used.
const UNNAMED: &str = "<unnamed window>";

impl Block {
    pub(super) fn check_windows(&self) -> Result<(), SqlError> {
        let windows = self.windows.len() + self.unnamed_windows;
        if windows > MOST_WINDOWS {
            return Err(ErrorCode::TOO_MANY_WINDOWS.with(&[&windows, &MOST_WINDOWS]));
        }
        for (at, (name, spec)) in self.windows.iter().enumerate() {
            if self.named_window(&name.name).is_some_and(|(first, ..)| first != at) {
                return Err(ErrorCode::WINDOW_DUPLICATE_NAME.with(&[&name.name]));
            }
            self.inherited(&name.name, spec, 0)?;
        }
        Ok(())
    }

    fn named_window(&self, name: &str) -> Option<(usize, &str, &WindowSpec)> {
        let mut windows = self.windows.iter().enumerate();
        let found = windows.find(|(_, (window, _))| names::eq_unaccented(&window.name, name));
        found.map(|(at, (window, spec))| (at, &*window.name, spec))
    }

    /// The specification that a reference leads to, with what it extends filled in.
    fn window_spec(&self, over: &WindowRef) -> Result<FullSpec, SqlError> {
        match over {
            WindowRef::Inline(spec) => self.inherited(UNNAMED, spec, 0),
            WindowRef::Named(name) => match self.named_window(&name.name) {
                Some((_, name, spec)) => self.inherited(name, spec, 0),
                None => Err(ErrorCode::WINDOW_NO_SUCH_WINDOW.with(&[&name.name])),
            },
        }
    }

    /// A window takes the partitions and the order of the one that it extends, which has no frame.
    fn inherited(&self, name: &str, spec: &WindowSpec, depth: usize) -> Result<FullSpec, SqlError> {
        let own: Arc<str> = name.into();
        let mut full = FullSpec { spec: spec.clone(), partition_of: own.clone(), order_of: own };
        let spec = &mut full.spec;
        let Some(base) = spec.base.take() else { return Ok(full) };
        let Some((_, base, extended)) = self.named_window(&base.name) else {
            return Err(ErrorCode::WINDOW_NO_SUCH_WINDOW.with(&[&base.name]));
        };
        if depth > self.windows.len().min(MOST_WINDOWS) {
            return Err(ErrorCode::WINDOW_CIRCULARITY_IN_WINDOW_GRAPH.with(&[]));
        }
        let FullSpec { spec: extended, partition_of, order_of } =
            self.inherited(base, extended, depth + 1)?;
        if !spec.partition_by.is_empty() {
            return Err(ErrorCode::WINDOW_NO_CHILD_PARTITIONING.with(&[]));
        }
        if extended.frame.is_some() {
            return Err(ErrorCode::WINDOW_NO_INHERIT_FRAME.with(&[&base]));
        }
        if !spec.order_by.is_empty() && !extended.order_by.is_empty() {
            return Err(ErrorCode::WINDOW_NO_REDEFINE_ORDER_BY.with(&[&name, &base]));
        }
        spec.partition_by = extended.partition_by;
        full.partition_of = partition_of;
        if spec.order_by.is_empty() {
            spec.order_by = extended.order_by;
            full.order_of = order_of;
        }
        Ok(full)
    }
}

impl Binder<'_> {
    pub(super) fn window_call(&mut self, call: &ast::WindowCall) -> Result<Expr, SqlError> {
        self.enter_window(&call.name)?;
        let bound = self.window_call_parts(call);
        self.block().in_window = false;
        self.add_window(bound?, &call.name)
    }

    fn enter_window(&mut self, name: &str) -> Result<(), SqlError> {
        let block = self.block();
        if !block.clause.allows_windows() || block.in_window || block.in_aggregate {
            return Err(ErrorCode::WINDOW_INVALID_WINDOW_FUNC_USE.with(&[&name.to_lowercase()]));
        }
        block.in_window = true;
        Ok(())
    }

    /// The call, its result type, and whether it can be NULL.
    fn window_call_parts(
        &mut self,
        call: &ast::WindowCall,
    ) -> Result<(BlockWindow, SqlType, bool), SqlError> {
        let kind = kind_of(&call.name).ok_or_else(|| unsupported(&call.name))?;
        if call.ignore_nulls {
            return Err(unsupported("IGNORE NULLS"));
        }
        if call.from_last {
            return Err(unsupported("FROM LAST"));
        }
        let mut args = self.exprs(&call.args)?;
        let takes = match kind {
            WindowKind::Ntile | WindowKind::FirstValue | WindowKind::LastValue => 1..=1,
            WindowKind::Lag | WindowKind::Lead => 1..=3,
            WindowKind::NthValue => 2..=2,
            _ => 0..=0,
        };
        if !takes.contains(&args.len()) {
            return Err(ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT.with(&[&call.name.to_lowercase()]));
        }
        let counts = match kind {
            WindowKind::Ntile => args.first().map(|count| (count, 1)),
            WindowKind::NthValue => args.get(1).map(|count| (count, 1)),
            WindowKind::Lag | WindowKind::Lead => args.get(1).map(|count| (count, 0)),
            _ => None,
        };
        if let Some((count, least)) = counts
            && let Some(value) = count.as_literal()
            && !matches!(value, Datum::Int(count) if *count >= least)
        {
            return Err(ErrorCode::WRONG_ARGUMENTS.with(&[&call.name.to_lowercase()]));
        }
        if let (WindowKind::NthValue, Some((count, _))) = (kind, counts)
            && let Some(column) = count.columns().first()
        {
            let subqueries = &self.block().subqueries;
            return Err(match subqueries.iter().any(|entry| entry.subquery.id.index() == *column) {
                true => unsupported("a subquery as the row of NTH_VALUE()"),
                false => ErrorCode::WRONG_ARGUMENTS.with(&[&"nth_value"]),
            });
        }
        let (ty, nullable) = match kind {
            WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank => {
                (SqlType::BIGINT_UNSIGNED, false)
            }
            WindowKind::Ntile => (SqlType::BIGINT_UNSIGNED, true),
            WindowKind::PercentRank | WindowKind::CumeDist => (SqlType::DOUBLE, false),
            WindowKind::Lag | WindowKind::Lead if args.len() == 3 => {
                let default = args.remove(2);
                let value = args.remove(0);
                let mut unified = self.typer.unify(vec![value, default], &call.name.to_lowercase())?;
                let (default, value) = (unified.pop(), unified.pop());
                args = value.into_iter().chain(args).chain(default).collect();
                (args[0].ty, true)
            }
            _ => (args[0].ty, true),
        };
        let window = self.window(&call.over, kind, args)?;
        Ok((window, ty, nullable))
    }

    pub(super) fn window_aggregate(
        &mut self,
        call: &ast::AggregateCall,
        function: AggregateFunction,
    ) -> Result<Expr, SqlError> {
        if call.distinct || matches!(function, AggregateFunction::GroupConcat | AggregateFunction::AnyValue) {
            return Err(unsupported(format_args!("{}() OVER", call.name)));
        }
        self.enter_window(&call.name)?;
        let bound = self.window_aggregate_parts(call, function);
        self.block().in_window = false;
        self.add_window(bound?, &call.name)
    }

    fn window_aggregate_parts(
        &mut self,
        call: &ast::AggregateCall,
        function: AggregateFunction,
    ) -> Result<(BlockWindow, SqlType, bool), SqlError> {
        let args = self.aggregate_parts(call, function)?.args;
        let (ty, nullable) = result_type(function, &args, &self.typer);
        let over = call.over.as_ref().ok_or_else(|| unsupported("a window without OVER"))?;
        Ok((self.window(over, WindowKind::Aggregate(function), args)?, ty, nullable))
    }

    fn add_window(&mut self, bound: (BlockWindow, SqlType, bool), name: &str) -> Result<Expr, SqlError> {
        let (mut entry, ty, nullable) = bound;
        let window = &mut entry.window;
        match of_no_rows(window.kind) {
            // It is checked, and is nothing to a function of the whole partition (manual, 14.20.3).
            None => window.frame = None,
            Some(value)
                if window.frame.as_ref().is_some_and(ends_before_it_begins)
                    && (value.is_null() || matches!(ty, SqlType::Int { .. })) =>
            {
                return Ok(Expr::literal(value, ty));
            }
            Some(_) => {}
        }
        window.id = self.add_column(name.to_lowercase(), ty, nullable);
        let id = window.id;
        self.block().window_functions.push(entry);
        let column = self.column_expr(id);
        Ok(match self.typer.dialect {
            // Numbers of rows have a sign there.
            Dialect::MariaDb if column.ty == SqlType::BIGINT_UNSIGNED => {
                self.typer.convert(column, SqlType::BIGINT)
            }
            _ => column,
        })
    }

    fn window(
        &mut self,
        over: &WindowRef,
        kind: WindowKind,
        args: Vec<Expr>,
    ) -> Result<BlockWindow, SqlError> {
        if let WindowRef::Inline(_) = over {
            self.block().unnamed_windows += 1;
        }
        let FullSpec { spec, partition_of, order_of } = self.block().window_spec(over)?;
        let mut keys = spec.partition_by.iter().chain(spec.order_by.iter().map(|item| &item.expr));
        if keys.any(|key| matches!(key.kind, ExprKind::Integer(_))) {
            let name = match over {
                WindowRef::Named(name) => &name.name,
                WindowRef::Inline(_) => UNNAMED,
            };
            return Err(ErrorCode::WINDOW_ILLEGAL_ORDER_BY.with(&[&name]));
        }
        self.block().in_window_keys = true;
        let partition_by = self.exprs(&spec.partition_by);
        let key = |item: &ast::OrderItem| Ok((self.expr(&item.expr)?, item.descending));
        let order_by = spec.order_by.iter().map(key).collect::<Result<Vec<_>, SqlError>>();
        self.block().in_window_keys = false;
        let (partition_by, order_by) = (partition_by?, order_by?);
        let frame = spec.frame.as_ref().map(|frame| self.frame(frame)).transpose()?;
        let id = ColumnId(u32::MAX);
        let window = WindowFunction { id, kind, args, partition_by, order_by, frame };
        Ok(BlockWindow { window, partition_of, order_of })
    }

    fn frame(&mut self, frame: &ast::Frame) -> Result<Frame, SqlError> {
        check_edges(frame)?;
        Ok(Frame {
            unit: frame.unit,
            start: self.frame_bound(&frame.start)?,
            end: self.frame_bound(&frame.end)?,
        })
    }

    fn frame_bound(&mut self, bound: &ast::FrameBound) -> Result<FrameBound, SqlError> {
        Ok(match bound {
            ast::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
            ast::FrameBound::Preceding(by, unit) => FrameBound::Preceding(self.distance(by, *unit)?),
            ast::FrameBound::Following(by, unit) => FrameBound::Following(self.distance(by, *unit)?),
        })
    }

    fn distance(&mut self, by: &ast::Expr, unit: Option<IntervalUnit>) -> Result<Distance, SqlError> {
        let by = self.expr(by)?;
        Ok(match unit {
            None => Distance::Value(by),
            Some(unit) => Distance::Interval(self.typer.interval_amount(by, unit), unit),
        })
    }
}

/// A frame can not end before it begins.
fn check_edges(frame: &ast::Frame) -> Result<(), SqlError> {
    use ast::FrameBound as B;
    let illegal = match (&frame.start, &frame.end) {
        (B::UnboundedFollowing, _) => ErrorCode::WINDOW_FRAME_START_ILLEGAL,
        (_, B::UnboundedPreceding) => ErrorCode::WINDOW_FRAME_END_ILLEGAL,
        (B::CurrentRow, B::Preceding(..)) | (B::Following(..), B::Preceding(..) | B::CurrentRow) => {
            ErrorCode::WINDOW_FRAME_ILLEGAL
        }
        _ => return Ok(()),
    };
    Err(illegal.with(&[&UNNAMED]))
}

/// `BETWEEN 1 PRECEDING AND 2 PRECEDING`: MySQL takes it, and no row is in it.
fn ends_before_it_begins(frame: &Frame) -> bool {
    let number = |distance: &Distance| match distance {
        Distance::Value(by) => match by.as_literal() {
            Some(Datum::Int(by)) => u64::try_from(*by).ok(),
            Some(Datum::UInt(by)) => Some(*by),
            _ => None,
        },
        Distance::Interval(..) => None,
    };
    match (&frame.start, &frame.end) {
        (FrameBound::Preceding(start), FrameBound::Preceding(end)) => {
            number(start).zip(number(end)).is_some_and(|(start, end)| start < end)
        }
        (FrameBound::Following(start), FrameBound::Following(end)) => {
            number(start).zip(number(end)).is_some_and(|(start, end)| start > end)
        }
        _ => false,
    }
}

/// What a function of a frame is of no rows; `None` if it is not of the frame.
fn of_no_rows(kind: WindowKind) -> Option<Value> {
    match kind {
        WindowKind::Aggregate(AggregateFunction::Count) => Some(Datum::Int(0)),
        WindowKind::Aggregate(AggregateFunction::BitAnd) => Some(Datum::UInt(u64::MAX)),
        WindowKind::Aggregate(AggregateFunction::BitOr | AggregateFunction::BitXor) => Some(Datum::UInt(0)),
        WindowKind::Aggregate(_) | WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
            Some(Datum::Null)
        }
        WindowKind::RowNumber
        | WindowKind::Rank
        | WindowKind::DenseRank
        | WindowKind::PercentRank
        | WindowKind::CumeDist
        | WindowKind::Ntile
        | WindowKind::Lag
        | WindowKind::Lead => None,
    }
}
