//! OVER: what a window function is computed over.
//!
//! MySQL's RANGE counts distances from the sort key's value. DataFusion adds a distance to the key as it is and takes a sum
//! that fails for the end of the partition: so key and distance are brought to one type here that holds their sums.
//! Of keys without distances (strings) there are only peers, which are GROUPS there.

use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::FrameUnit;
use avocet_sql::plan::{Distance, Frame, FrameBound, WindowFunction};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{ArithOp, Expr, IsTest, Typer, ValueClass, interval_of};
use avocet_types::temporal::DAY;
use avocet_types::{Datum, IntWidth, SqlType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Sort, WindowFunction as DfWindow};
use datafusion::logical_expr::{
    self as df, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};

use crate::expr::{LONG_CHAIN, Lowered, cast, literal, without_negative_zero};
use crate::lower::Lowerer;
use crate::udf::OrderKeyUdf;

/// The most digits of a decimal of 128 bits.
const SMALL_DIGITS: u8 = 38;
/// How MySQL's errors call a window without a name.
const UNNAMED: &str = "<unnamed window>";

impl Lowerer {
    pub(super) fn over(
        &mut self,
        window: &WindowFunction,
        function: WindowFunctionDefinition,
        args: Vec<df::Expr>,
    ) -> Result<df::Expr, SqlError> {
        let mut call = DfWindow::new(function, args);
        for partition in &window.partition_by {
            call.params.partition_by.push(self.order_key(partition)?);
        }
        for (order, descending) in &window.order_by {
            call.params.order_by.push(Sort::new(self.order_key(order)?, !descending, !descending));
        }
        if call.params.partition_by.len() > LONG_CHAIN {
            let keys = std::mem::take(&mut call.params.partition_by);
            call.params.partition_by = vec![OrderKeyUdf::create(vec![false; keys.len()]).call(keys)];
        }
        let is_long = call.params.order_by.len() > LONG_CHAIN;
        if is_long {
            let keys = std::mem::take(&mut call.params.order_by);
            let descending = keys.iter().map(|key| !key.asc).collect();
            let keys = keys.into_iter().map(|key| key.expr).collect();
            let key = OrderKeyUdf::create(descending).call(keys);
            call.params.order_by = vec![Sort::new(key, true, true)];
        }
        let is_counted = window.order_by.first().is_none_or(|(key, _)| has_distances(&key.ty) && !is_long);
        call.params.window_frame = match &window.frame {
            Some(frame) if frame.unit == FrameUnit::Rows => self.rows(frame)?,
            Some(frame) if frame.distances().next().is_some() => {
                let [(key, descending)] = &window.order_by[..] else { return Err(order_type()) };
                let (key, frame) = self.distances(key, *descending, frame)?;
                call.params.order_by[0].expr = key;
                frame
            }
            Some(frame) if is_counted => peers(frame, WindowFrameUnits::Range, &ScalarValue::Null)?,
            Some(frame) => peers(frame, WindowFrameUnits::Groups, &ScalarValue::UInt64(None))?,
            None if is_counted => WindowFrame::new((!window.order_by.is_empty()).then_some(false)),
            None => WindowFrame::new_bounds(
                WindowFrameUnits::Groups,
                WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::CurrentRow,
            ),
        };
        Ok(df::Expr::WindowFunction(Box::new(call)))
    }

    fn rows(&self, frame: &Frame) -> Result<WindowFrame, SqlError> {
        // DataFusion adds a distance to the number of a row and to a LIMIT. No partition has so many rows.
        const FARTHEST: u64 = 1 << 62;
        let count = |distance: &Distance| match distance {
            Distance::Value(expr) => match expr.as_literal() {
                Some(Datum::Int(v)) if *v >= 0 => Ok(ScalarValue::UInt64(Some((*v as u64).min(FARTHEST)))),
                Some(Datum::UInt(v)) => Ok(ScalarValue::UInt64(Some((*v).min(FARTHEST)))),
                _ => Err(illegal_frame()),
            },
            Distance::Interval(..) => Err(illegal_frame()),
        };
        bounds(frame, WindowFrameUnits::Rows, &ScalarValue::UInt64(None), count)
    }

    /// The sort key of a RANGE with distances, and the frame, in one type.
    fn distances(
        &mut self,
        key: &Expr,
        descending: bool,
        frame: &Frame,
    ) -> Result<(df::Expr, WindowFrame), SqlError> {
        let literals: Vec<_> = frame.distances().cloned().collect();
        let ty = key_type(key, &literals)?;
        let mut literals = literals.iter().map(|distance| scalar(distance, &ty));
        let next = |_: &Distance| literals.next().expect("a literal was made of each distance");
        let bounds = bounds(frame, WindowFrameUnits::Range, &ScalarValue::Null, next)?;
        let key = checked_key(key, descending, frame)?;
        let key = cast(self.value(&key)?, &ty);
        let key = if ty == DataType::Float64 { without_negative_zero(key) } else { key };
        Ok((key, bounds))
    }
}

/// The key, with MySQL's error 1690 for one whose frame begins or ends beyond its type.
fn checked_key(key: &Expr, descending: bool, frame: &Frame) -> Result<Expr, SqlError> {
    let typer = Typer::default();
    let mut checked = key.clone();
    for bound in [&frame.start, &frame.end] {
        let (distance, is_before) = match bound {
            FrameBound::Preceding(Distance::Value(distance)) => (distance, true),
            FrameBound::Following(Distance::Value(distance)) => (distance, false),
            _ => continue,
        };
        if !may_leave_its_type(key, distance) {
            continue;
        }
        let op = if is_before == descending { ArithOp::Add } else { ArithOp::Sub };
        let end = typer.arith(op, key.clone(), distance.clone())?;
        let is_none = typer.is(end, IsTest::Null, false);
        checked = typer.case(None, vec![(is_none, Expr::literal(Datum::Null, key.ty))], Some(checked))?;
    }
    Ok(checked)
}

/// Whether the sum of a key and a distance may be beyond BIGINT or DOUBLE.
fn may_leave_its_type(key: &Expr, distance: &Expr) -> bool {
    match (ValueClass::of(&key.ty), distance.as_literal()) {
        (ValueClass::Double, Some(_)) => true,
        (ValueClass::Int, Some(Datum::Int(by))) => {
            let is_narrow = !key.ty.is_unsigned()
                && matches!(key.ty, SqlType::Int { width, .. } if width != IntWidth::W64);
            !is_narrow || *by > i64::MAX - i64::from(u32::MAX)
        }
        (ValueClass::Int, Some(Datum::UInt(_) | Datum::Double(_))) => true,
        _ => false,
    }
}

/// The type in which a key and its distances are added.
fn key_type(key: &Expr, distances: &[Distance]) -> Result<DataType, SqlError> {
    use ValueClass as C;
    let is_interval = |distance: &&Distance| matches!(distance, Distance::Interval(..));
    let intervals = distances.iter().filter(is_interval).count();
    let class = ValueClass::of(&key.ty);
    match class {
        C::Date | C::DateTime | C::Timestamp | C::Time if intervals < distances.len() => {
            return Err(ErrorCode::WINDOW_RANGE_FRAME_TEMPORAL_TYPE.with(&[&UNNAMED]));
        }
        C::Date | C::DateTime | C::Timestamp => return Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        // Microseconds: DataFusion has no RANGE over durations.
        C::Time => return Ok(DataType::Int64),
        C::Int | C::Decimal | C::Double if intervals > 0 => {
            return Err(ErrorCode::WINDOW_RANGE_FRAME_NUMERIC_TYPE.with(&[&UNNAMED]));
        }
        C::Int | C::Decimal | C::Double => {}
        _ => return Err(order_type()),
    }
    let literals = || {
        distances.iter().filter_map(|distance| match distance {
            Distance::Value(expr) => expr.as_literal(),
            Distance::Interval(..) => None,
        })
    };
    if class == C::Double || literals().any(|value| matches!(value, Datum::Double(_))) {
        return Ok(DataType::Float64);
    }
    let arrow = key.ty.arrow_type();
    if class == C::Int && literals().all(|value| matches!(value, Datum::Int(_))) {
        return Ok(if arrow == DataType::UInt64 { DataType::UInt64 } else { DataType::Int64 });
    }
    let (whole, scale) = match arrow {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            (precision.saturating_sub(scale as u8), scale)
        }
        _ => (20, 0),
    };
    let scale = literals().fold(scale, |scale, value| match value {
        Datum::Decimal(value) => scale.max(value.scale() as i8),
        _ => scale,
    });
    // One digit more for the sum, and room for a distance of as many as a BIGINT has.
    let small = whole.max(20) + (scale as u8) < SMALL_DIGITS;
    Ok(if small { DataType::Decimal128(SMALL_DIGITS, scale) } else { DataType::Decimal256(76, scale) })
}

/// A distance as something that can be added to a key of the type.
fn scalar(distance: &Distance, ty: &DataType) -> Result<ScalarValue, SqlError> {
    let value = match distance {
        Distance::Interval(amount, unit) => {
            let interval = amount.as_literal().filter(|value| !value.is_null());
            let interval = interval.and_then(|value| interval_of(value, *unit)).ok_or_else(illegal_frame)?;
            let parts = [interval.months, interval.days, interval.micros];
            if parts.iter().any(|part| *part < 0) {
                return Err(illegal_frame());
            }
            if *ty == DataType::Int64 {
                let micros = interval.days.saturating_mul(DAY).saturating_add(parts[2]);
                return Ok(ScalarValue::Int64(Some(micros)));
            }
            let [months, days] = [parts[0], parts[1]].map(|part| part.min(i32::MAX.into()) as i32);
            let nanos = interval.micros.saturating_mul(1000);
            return Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(
                months, days, nanos,
            ))));
        }
        Distance::Value(expr) => match expr.as_literal() {
            Some(Datum::Int(v)) if *v >= 0 => ScalarValue::Int64(Some(*v)),
            Some(Datum::UInt(v)) => ScalarValue::UInt64(Some(*v)),
            Some(Datum::Double(v)) if *v >= 0.0 => ScalarValue::Float64(Some(*v)),
            Some(Datum::Decimal(v)) if !v.is_negative() => {
                match literal(&Datum::Decimal(v.clone()), &expr.ty) {
                    Some(Lowered { expr: df::Expr::Literal(scalar, _), .. }) => scalar,
                    _ => return Err(unsupported("this kind of window frame")),
                }
            }
            _ => return Err(illegal_frame()),
        },
    };
    value.cast_to(ty).map_err(|_| unsupported("this kind of window frame"))
}

fn illegal_frame() -> SqlError {
    ErrorCode::WINDOW_FRAME_ILLEGAL.with(&[&UNNAMED])
}

fn order_type() -> SqlError {
    ErrorCode::WINDOW_RANGE_FRAME_ORDER_TYPE.with(&[&UNNAMED])
}

/// Whether DataFusion has RANGE over such keys; of others there are only peers, its GROUPS.
fn has_distances(ty: &SqlType) -> bool {
    use ValueClass as C;
    matches!(ValueClass::of(ty), C::Int | C::Decimal | C::Double | C::Date | C::DateTime | C::Timestamp)
}

/// A RANGE from or to the peers of the current row.
fn peers(frame: &Frame, units: WindowFrameUnits, unbounded: &ScalarValue) -> Result<WindowFrame, SqlError> {
    bounds(frame, units, unbounded, |_| Err(illegal_frame()))
}

fn bounds(
    frame: &Frame,
    units: WindowFrameUnits,
    unbounded: &ScalarValue,
    mut distance: impl FnMut(&Distance) -> Result<ScalarValue, SqlError>,
) -> Result<WindowFrame, SqlError> {
    let mut bound = |bound: &FrameBound| {
        Ok::<_, SqlError>(match bound {
            FrameBound::UnboundedPreceding => WindowFrameBound::Preceding(unbounded.clone()),
            FrameBound::Preceding(by) => WindowFrameBound::Preceding(distance(by)?),
            FrameBound::CurrentRow => WindowFrameBound::CurrentRow,
            FrameBound::Following(by) => WindowFrameBound::Following(distance(by)?),
            FrameBound::UnboundedFollowing => WindowFrameBound::Following(unbounded.clone()),
        })
    };
    let (start, end) = (bound(&frame.start)?, bound(&frame.end)?);
    Ok(WindowFrame::new_bounds(units, start, end))
}
