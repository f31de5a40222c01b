//! Scalar expressions to DataFusion's: natively where its semantics are MySQL's, through [`EvalUdf`] elsewhere.
//!
//! Every expression here has a *physical* type, which may be narrower than its SQL type's Arrow type: a DECIMAL of more than
//! 38 digits stays a Decimal128 as long as the bounds of its inputs prove that its values fit. What DataFusion would
//! coerce is cast explicitly, so that its own coercion finds nothing to do.

use arrow::datatypes::DataType;
use avocet_sql::plan::ColumnId;
use avocet_sql::relational::Checkpoint;
use avocet_types::error::SqlError;
use avocet_types::expr::{ArithOp, CompareOp, Expr, ExprKind, IsTest, ValueClass};
use avocet_types::{Collation, Datum, SqlType};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::{self as df, BinaryExpr, Operator, ScalarUDF, lit};

use crate::in_set::InSetUdf;
use crate::lower::Lowerer;
use crate::names::df_result;
use crate::scan::scalar_of;
use crate::udf::{EvalUdf, SortKeyUdf, TrimmedUdf};

/// The largest unscaled value that native decimal arithmetic may reach: a digit below the limit of Decimal128.
const DECIMAL128_ROOM: f64 = 1e37;
const INT64_ROOM: f64 = 9e18;

pub(super) struct Lowered {
    pub expr: df::Expr,
    pub ty: DataType,
}

pub(super) fn binary(left: df::Expr, op: Operator, right: df::Expr) -> df::Expr {
    df::Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

pub(super) fn cast(lowered: Lowered, to: &DataType) -> df::Expr {
    if lowered.ty == *to {
        return lowered.expr;
    }
    if let df::Expr::Literal(value, _) = &lowered.expr
        && let Ok(value) = value.cast_to(to)
    {
        return df::Expr::Literal(value, None);
    }
    df::cast(lowered.expr, to.clone())
}

/// A chain of more conditions than this is one function to DataFusion, whose passes over trees would take long, and deep
/// stacks, for what they can make nothing of.
pub(super) const LONG_CHAIN: usize = 64;

fn is_small(expr: &Expr) -> bool {
    let mut parts = 0;
    !expr.any(&mut |_| {
        parts += 1;
        parts > LONG_CHAIN
    })
}

fn has_coalesce(expr: &df::Expr) -> bool {
    let is_coalesce =
        |part: &df::Expr| matches!(part, df::Expr::ScalarFunction(call) if call.name() == "coalesce");
    expr.exists(|part| Ok(is_coalesce(part))).unwrap_or(true)
}

/// Whether it has so many operands, or leads down so many operators.
fn is_long(expr: &Expr) -> bool {
    let operands = match &expr.kind {
        ExprKind::And(parts) | ExprKind::Or(parts) | ExprKind::Coalesce(parts) => parts.len(),
        ExprKind::Case { branches, .. } => branches.len(),
        _ => 0,
    };
    let down = std::iter::successors(Some(expr), |expr| match &expr.kind {
        ExprKind::Arith { left: first, .. }
        | ExprKind::Compare { left: first, .. }
        | ExprKind::Xor(first, _)
        | ExprKind::Convert(first)
        | ExprKind::Cast(first)
        | ExprKind::Negate(first)
        | ExprKind::Not(first) => Some(first),
        ExprKind::UnitCall { args, .. } | ExprKind::Call(_, args) => args.first(),
        _ => None,
    });
    operands > LONG_CHAIN || down.take(LONG_CHAIN + 1).count() > LONG_CHAIN
}

/// AND or OR of all, as a tree as flat as can be: whoever walks it recurses.
pub(super) fn junction(mut parts: Vec<df::Expr>, op: Operator) -> df::Expr {
    match parts.len() {
        0 => lit(op == Operator::And),
        1 => parts.swap_remove(0),
        n => {
            let right = parts.split_off(n / 2);
            binary(junction(parts, op), op, junction(right, op))
        }
    }
}

/// The precision and scale of a decimal that fits 38 digits.
fn decimal128(ty: &DataType) -> Option<(u8, i8)> {
    match ty {
        DataType::Decimal128(p, s) => Some((*p, *s)),
        DataType::Int8 | DataType::UInt8 => Some((3, 0)),
        DataType::Int16 | DataType::UInt16 => Some((5, 0)),
        DataType::Int32 | DataType::UInt32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::UInt64 => Some((20, 0)),
        _ => None,
    }
}

impl Lowerer {
    /// A value in whatever physical type suits it.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Lowered, SqlError> {
        if is_truth(expr) {
            let truth = self.condition(expr)?;
            return Ok(Lowered { expr: df::cast(truth, DataType::Int64), ty: DataType::Int64 });
        }
        let native = match &expr.kind {
            _ if is_long(expr) => None,
            ExprKind::Literal(value) => {
                self.results.note_constant(string_len(value));
                literal(value, &expr.ty)
            }
            ExprKind::Column(index) => Some(self.column_value(ColumnId(*index as u32))),
            ExprKind::Arith { op, left, right } => self.arithmetic(*op, left, right, expr)?,
            ExprKind::Negate(inner) => self.negate(inner, expr)?,
            ExprKind::Case { branches, otherwise } => {
                Some(self.case(branches, otherwise.as_deref(), expr)?)
            }
            ExprKind::Coalesce(parts) => Some(self.coalesce(parts, expr)?),
            ExprKind::Convert(inner) | ExprKind::Cast(inner) => self.conversion(inner, &expr.ty)?,
            ExprKind::Collate(inner) => Some(self.value(inner)?),
            _ => None,
        };
        match native {
            Some(lowered) => Ok(lowered),
            None => Ok(Lowered { expr: self.evaluated(expr, false)?, ty: expr.ty.arrow_type() }),
        }
    }

    /// A value in the Arrow type of its SQL type.
    pub(super) fn logical_value(&mut self, expr: &Expr) -> Result<df::Expr, SqlError> {
        let lowered = self.value(expr)?;
        Ok(cast(lowered, &expr.ty.arrow_type()))
    }

    fn column_value(&self, id: ColumnId) -> Lowered {
        let column = self.column(id);
        match column.ty {
            DataType::Boolean => {
                Lowered { expr: df::cast(column.expr, DataType::Int64), ty: DataType::Int64 }
            }
            _ => column,
        }
    }

    /// Something for WHERE, ON, HAVING, CASE WHEN: a BOOLEAN.
    pub(super) fn condition(&mut self, expr: &Expr) -> Result<df::Expr, SqlError> {
        Ok(match &expr.kind {
            _ if is_long(expr) => self.evaluated(expr, true)?,
            // DataFusion looks at a part for rows that one before it has decided.
            ExprKind::And(parts) | ExprKind::Or(parts) if raises_late(parts) => self.evaluated(expr, true)?,
            ExprKind::And(parts) => junction(self.conditions(parts)?, Operator::And),
            ExprKind::Or(parts) => junction(self.conditions(parts)?, Operator::Or),
            ExprKind::Xor(left, right) => {
                binary(self.condition(left)?, Operator::NotEq, self.condition(right)?)
            }
            ExprKind::Not(inner) => df::Expr::Not(Box::new(self.condition(inner)?)),
            ExprKind::Compare { op, left, right } => match self.compare(*op, left, right)? {
                Some(native) => native,
                None => self.evaluated(expr, true)?,
            },
            // What stands twice is nothing that has such a thing within.
            ExprKind::Between { expr: inner, .. } if !is_small(inner) => self.evaluated(expr, true)?,
            ExprKind::Between { expr: inner, low, high, negated } => {
                match (self.compare(CompareOp::Ge, inner, low)?, self.compare(CompareOp::Le, inner, high)?) {
                    (Some(low), Some(high)) if !inner.is_volatile() => {
                        let both = binary(low, Operator::And, high);
                        if *negated { df::Expr::Not(Box::new(both)) } else { both }
                    }
                    _ => self.evaluated(expr, true)?,
                }
            }
            ExprKind::InList { expr: inner, list, negated } => match self.in_list(inner, list, *negated)? {
                Some(native) => native,
                None => self.evaluated(expr, true)?,
            },
            ExprKind::Like { expr: inner, pattern, escape, negated } => {
                match self.like(inner, pattern, *escape, *negated)? {
                    Some(native) => native,
                    None => self.evaluated(expr, true)?,
                }
            }
            ExprKind::Is { expr: inner, test, negated } => self.is(inner, *test, *negated)?,
            ExprKind::Column(index) => {
                let column = self.column(ColumnId(*index as u32));
                if column.ty == DataType::Boolean { column.expr } else { self.is_not_zero(expr)? }
            }
            ExprKind::Literal(value) => match value {
                Datum::Null => lit(ScalarValue::Boolean(None)),
                Datum::Int(v) => lit(*v != 0),
                _ => self.evaluated(expr, true)?,
            },
            _ => self.is_not_zero(expr)?,
        })
    }

    fn conditions(&mut self, parts: &[Expr]) -> Result<Vec<df::Expr>, SqlError> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn is_not_zero(&mut self, expr: &Expr) -> Result<df::Expr, SqlError> {
        let value = self.value(expr)?;
        let Ok(zero) = ScalarValue::new_zero(&value.ty) else { return self.evaluated(expr, true) };
        let number = match value.ty.is_floating() {
            // Arrow's comparisons tell the two zeros apart.
            true => binary(value.expr, Operator::Plus, lit(zero.clone())),
            false => value.expr,
        };
        Ok(binary(number, Operator::NotEq, lit(zero)))
    }

    fn is(&mut self, inner: &Expr, test: IsTest, negated: bool) -> Result<df::Expr, SqlError> {
        if test == IsTest::Null {
            let operand = match is_truth(inner) {
                true => self.condition(inner)?,
                false => self.value(inner)?.expr,
            };
            let operand = Box::new(operand);
            return Ok(if negated { df::Expr::IsNotNull(operand) } else { df::Expr::IsNull(operand) });
        }
        let condition = Box::new(self.condition(inner)?);
        Ok(match (test, negated) {
            (IsTest::True, false) => df::Expr::IsTrue(condition),
            (IsTest::True, true) => df::Expr::IsNotTrue(condition),
            (IsTest::False, false) => df::Expr::IsFalse(condition),
            (IsTest::False, true) => df::Expr::IsNotFalse(condition),
            (_, false) => df::Expr::IsUnknown(condition),
            (_, true) => df::Expr::IsNotUnknown(condition),
        })
    }

    /// A comparison that DataFusion makes as MySQL does; None if there is none.
    pub(super) fn compare(
        &mut self,
        op: CompareOp,
        left: &Expr,
        right: &Expr,
    ) -> Result<Option<df::Expr>, SqlError> {
        let class = match (ValueClass::of(&left.ty), ValueClass::of(&right.ty)) {
            (ValueClass::Null, other) | (other, ValueClass::Null) => other,
            (a, b) if a == b => a,
            _ => return Ok(None),
        };
        let operator = match op {
            CompareOp::Eq => Operator::Eq,
            CompareOp::NullSafeEq => Operator::IsNotDistinctFrom,
            CompareOp::Ne => Operator::NotEq,
            CompareOp::Lt => Operator::Lt,
            CompareOp::Le => Operator::LtEq,
            CompareOp::Gt => Operator::Gt,
            CompareOp::Ge => Operator::GtEq,
        };
        let (left, right) = match class {
            ValueClass::Double | ValueClass::Null => return Ok(None),
            ValueClass::Text => {
                let collation = left.ty.collation().or(right.ty.collation()).unwrap_or(Collation::DEFAULT);
                let equality = matches!(op, CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne);
                if equality && collation.is_binary() {
                    let (left, right) = (self.equality_key(left)?, self.equality_key(right)?);
                    return Ok(Some(binary(left, operator, right)));
                }
                if !collation.is_exact() {
                    // One side constant: comparing is cheaper than making keys.
                    if left.is_constant() || right.is_constant() {
                        return Ok(None);
                    }
                    let (left, right) = (self.sort_key(left)?, self.sort_key(right)?);
                    return Ok(Some(binary(left, operator, right)));
                }
                (self.value(left)?, self.value(right)?)
            }
            ValueClass::Json if left.is_constant() || right.is_constant() => return Ok(None),
            ValueClass::Json => {
                let (left, right) = (self.sort_key(left)?, self.sort_key(right)?);
                return Ok(Some(binary(left, operator, right)));
            }
            _ => (self.value(left)?, self.value(right)?),
        };
        let Some(ty) = meeting_type(&left, &right) else { return Ok(None) };
        Ok(Some(binary(cast(left, &ty), operator, cast(right, &ty))))
    }

    fn in_list(&mut self, inner: &Expr, list: &[Expr], negated: bool) -> Result<Option<df::Expr>, SqlError> {
        let class = ValueClass::of(&inner.ty);
        let plain = match class {
            ValueClass::Int | ValueClass::Decimal | ValueClass::Date | ValueClass::DateTime => true,
            ValueClass::Text => inner.ty.collation().is_some_and(Collation::is_binary),
            _ => false,
        };
        if !plain || !list.iter().all(|item| item.as_literal().is_some()) {
            return Ok(None);
        }
        let text = class == ValueClass::Text;
        let inner = if text { text_key(self.equality_key(inner)?) } else { self.value(inner)? };
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            let item = if text { text_key(self.equality_key(item)?) } else { self.value(item)? };
            if meeting_type(&inner, &item).as_ref() != Some(&inner.ty) {
                return Ok(None);
            }
            items.push(cast(item, &inner.ty));
        }
        if items.len() > LONG_CHAIN {
            let member = |item: &df::Expr| match item {
                df::Expr::Literal(value, _) if value.data_type() == inner.ty => Some(value.clone()),
                _ => None,
            };
            if let Some(members) = items.iter().map(member).collect() {
                return df_result(InSetUdf::call(inner.expr, &inner.ty, members, negated)).map(Some);
            }
        }
        Ok(Some(df::Expr::InList(InList::new(Box::new(inner.expr), items, negated))))
    }

    fn like(
        &mut self,
        inner: &Expr,
        pattern: &Expr,
        escape: Option<char>,
        negated: bool,
    ) -> Result<Option<df::Expr>, SqlError> {
        let exact = inner.ty.collation().is_some_and(Collation::is_binary);
        if !exact || escape != Some('\\') || pattern.as_literal().is_none() {
            return Ok(None);
        }
        let (inner, pattern) = (self.value(inner)?, self.value(pattern)?);
        if inner.ty != DataType::Utf8View || pattern.ty != DataType::Utf8View {
            return Ok(None);
        }
        let like = Like::new(negated, Box::new(inner.expr), Box::new(pattern.expr), None, false);
        Ok(Some(df::Expr::Like(like)))
    }

    /// The bytes by which a string compares under its collation; other types are their own keys.
    pub(super) fn sort_key(&mut self, expr: &Expr) -> Result<df::Expr, SqlError> {
        let value = self.value(expr)?;
        Ok(match expr.ty.order() {
            Some(collation) => sort_key_of(value.expr, collation),
            None => value.expr,
        })
    }

    /// By which rows are ordered: the two zeros are one number there, too.
    pub(super) fn order_key(&mut self, expr: &Expr) -> Result<df::Expr, SqlError> {
        match ValueClass::of(&expr.ty) {
            ValueClass::Double => self.equality_key(expr),
            _ => self.sort_key(expr),
        }
    }

    /// What is equal exactly if the values are, under their collation.
    pub(super) fn equality_key(&mut self, expr: &Expr) -> Result<df::Expr, SqlError> {
        if let (Some(collation), Some(Datum::Str(text))) = (expr.ty.collation(), expr.as_literal())
            && collation.is_binary()
            && !collation.is_exact()
        {
            return Ok(lit(ScalarValue::Utf8View(Some(text.trim_end_matches(' ').to_owned()))));
        }
        let value = self.value(expr)?;
        Ok(equality_key_of(value.expr, &expr.ty))
    }

    fn arithmetic(
        &mut self,
        op: ArithOp,
        left: &Expr,
        right: &Expr,
        whole: &Expr,
    ) -> Result<Option<Lowered>, SqlError> {
        let operator = match op {
            ArithOp::Add => Operator::Plus,
            ArithOp::Sub => Operator::Minus,
            ArithOp::Mul => Operator::Multiply,
            ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod => return Ok(None),
        };
        let bound = self.bound(left).max(self.bound(right)).max(self.bound(whole));
        match whole.ty {
            SqlType::Int { unsigned: false, .. } if bound < INT64_ROOM => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let (left, right) = (cast(left, &DataType::Int64), cast(right, &DataType::Int64));
                Ok(Some(Lowered { expr: binary(left, operator, right), ty: DataType::Int64 }))
            }
            SqlType::Decimal { scale, .. } if bound * 10f64.powi(scale.into()) < DECIMAL128_ROOM => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let (Some((lp, ls)), Some((rp, rs))) = (decimal128(&left.ty), decimal128(&right.ty)) else {
                    return Ok(None);
                };
                let ty = match op {
                    ArithOp::Mul => DataType::Decimal128((lp + rp + 1).min(38), ls + rs),
                    _ => {
                        let scale = ls.max(rs);
                        let digits = (lp as i8 - ls).max(rp as i8 - rs) + scale + 1;
                        DataType::Decimal128((digits as u8).min(38), scale)
                    }
                };
                let result_scale = if op == ArithOp::Mul { ls + rs } else { ls.max(rs) };
                if result_scale != scale as i8 {
                    return Ok(None);
                }
                let left = cast(left, &DataType::Decimal128(lp, ls));
                let right = cast(right, &DataType::Decimal128(rp, rs));
                Ok(Some(Lowered { expr: binary(left, operator, right), ty }))
            }
            _ => Ok(None),
        }
    }

    fn negate(&mut self, inner: &Expr, whole: &Expr) -> Result<Option<Lowered>, SqlError> {
        let bound = self.bound(inner);
        let fits = match whole.ty {
            SqlType::Int { unsigned: false, .. } => bound < INT64_ROOM,
            SqlType::Decimal { scale, .. } => bound * 10f64.powi(scale.into()) < DECIMAL128_ROOM,
            _ => false,
        };
        if !fits {
            return Ok(None);
        }
        let inner = self.value(inner)?;
        let ty = match &inner.ty {
            DataType::Decimal128(p, s) => DataType::Decimal128(*p, *s),
            ty if ty.is_integer() => DataType::Int64,
            _ => return Ok(None),
        };
        Ok(Some(Lowered { expr: df::Expr::Negative(Box::new(cast(inner, &ty))), ty }))
    }

    /// The physical type in which alternatives meet.
    fn common_physical(&self, parts: &[Lowered], whole: &Expr) -> DataType {
        let logical = whole.ty.arrow_type();
        let DataType::Decimal256(_, scale) = logical else { return logical };
        let narrow = parts.iter().all(|p| p.ty == DataType::Null || decimal128(&p.ty).is_some());
        let room = self.bound(whole) * 10f64.powi(scale.into()) < DECIMAL128_ROOM;
        if narrow && room { DataType::Decimal128(38, scale) } else { logical }
    }

    fn case(
        &mut self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        whole: &Expr,
    ) -> Result<Lowered, SqlError> {
        let mut conditions = Vec::with_capacity(branches.len());
        let mut values = Vec::with_capacity(branches.len() + 1);
        for (when, then) in branches {
            conditions.push(self.condition(when)?);
            values.push(self.value(then)?);
        }
        let has_else = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            values.push(self.value(otherwise)?);
        }
        let ty = self.common_physical(&values, whole);
        let mut values: Vec<_> = values.into_iter().map(|v| Box::new(cast(v, &ty))).collect();
        let otherwise = if has_else { values.pop() } else { None };
        let branches = conditions.into_iter().map(Box::new).zip(values).collect();
        let case = df::expr::Case::new(None, branches, otherwise);
        Ok(Lowered { expr: df::Expr::Case(case), ty })
    }

    fn coalesce(&mut self, parts: &[Expr], whole: &Expr) -> Result<Lowered, SqlError> {
        let values = parts.iter().map(|p| self.value(p)).collect::<Result<Vec<_>, _>>()?;
        // DataFusion makes a CASE of it, in which all but the last stand twice: of one within another four times, and so on.
        if values.iter().any(|value| has_coalesce(&value.expr)) {
            return Ok(Lowered { expr: self.evaluated(whole, false)?, ty: whole.ty.arrow_type() });
        }
        let ty = self.common_physical(&values, whole);
        let args = values.into_iter().map(|v| cast(v, &ty)).collect();
        Ok(Lowered { expr: datafusion::functions::core::expr_fn::coalesce(args), ty })
    }

    /// Conversions that lose nothing, natively.
    fn conversion(&mut self, inner: &Expr, to: &SqlType) -> Result<Option<Lowered>, SqlError> {
        use ValueClass as C;
        let native = match (C::of(&inner.ty), C::of(to)) {
            (C::Int, C::Int) => widens(&inner.ty.arrow_type(), &to.arrow_type()),
            (C::Int | C::Decimal, C::Decimal) => {
                let digits = |ty: &SqlType| match *ty {
                    SqlType::Decimal { precision, scale, .. } => Some((precision - scale, scale)),
                    _ => decimal128(&ty.arrow_type()).map(|(p, _)| (p, 0)),
                };
                match (digits(&inner.ty), digits(to)) {
                    (Some((int, scale)), Some((to_int, to_scale))) => {
                        to_scale >= scale && (to_int >= int || self.bound(inner) < 10f64.powi(to_int.into()))
                    }
                    _ => false,
                }
            }
            (C::Date, C::DateTime) => true,
            (C::DateTime, C::DateTime) | (C::Time, C::Time) => fsp_of(&inner.ty) <= fsp_of(to),
            (C::Text, C::Text) => self.text_fits(&inner.ty, to),
            (a, b) => a == b && inner.ty == *to,
        };
        if !native {
            return Ok(None);
        }
        let value = self.value(inner)?;
        let mut ty = to.arrow_type();
        if let DataType::Decimal256(_, scale) = ty
            && self.bound(inner) * 10f64.powi(scale.into()) < DECIMAL128_ROOM
            && decimal128(&value.ty).is_some()
        {
            ty = DataType::Decimal128(38, scale);
        }
        Ok(Some(Lowered { expr: cast(value, &ty), ty }))
    }

    fn text_fits(&self, from: &SqlType, to: &SqlType) -> bool {
        let len = |ty: &SqlType| match *ty {
            SqlType::Char { len, .. } | SqlType::VarChar { len, .. } => u64::from(len),
            SqlType::Text { size, .. } => size.max_bytes() / 4,
            _ => u64::MAX,
        };
        !matches!(to, SqlType::Char { .. }) && len(from) <= len(to) && from.text_stays(to)
    }

    /// Evaluates an expression by `types`, its columns being the arguments.
    fn evaluated(&mut self, expr: &Expr, truth: bool) -> Result<df::Expr, SqlError> {
        self.stop.check()?;
        let columns = expr.columns();
        let mut args = Vec::with_capacity(columns.len());
        let mut types = Vec::with_capacity(columns.len());
        for index in &columns {
            let id = ColumnId(*index as u32);
            let info = &self.columns()[id];
            let (ty, nullable) = (info.ty, info.nullable);
            let column = Expr::column(*index, ty, nullable);
            args.push(self.logical_value(&column)?);
            types.push(ty);
        }
        let shown = |at: usize| self.columns()[ColumnId(columns[at] as u32)].shown();
        let expr = expr.clone().map_columns(&mut |index| columns.binary_search(&index).unwrap_or(usize::MAX));
        Ok(self.function(expr, types, truth, &shown)?.call(args))
    }

    /// An expression as a function of its columns, of which errors tell as `shown`.
    pub(super) fn function(
        &self,
        expr: Expr,
        args: Vec<SqlType>,
        truth: bool,
        shown: &dyn Fn(usize) -> String,
    ) -> Result<ScalarUDF, SqlError> {
        EvalUdf::create(expr, args, truth, shown, self.context.clone(), self.results.clone())
    }
}

/// Whether a part may raise an error or a warning for rows that parts before it decide.
pub(super) fn raises_late(parts: &[Expr]) -> bool {
    parts.iter().skip(1).any(Expr::can_raise)
}

pub(super) fn sort_key_of(value: df::Expr, collation: Collation) -> df::Expr {
    if collation.is_exact() { value } else { SortKeyUdf::create(collation).call(vec![value]) }
}

/// Whether equal values of a type are equal bytes.
pub(super) fn equals_bytewise(ty: &SqlType) -> bool {
    match (ty.order(), ty) {
        (None, _) => true,
        // A CHAR is stored without trailing spaces.
        (Some(collation), SqlType::Char { .. }) => collation.is_binary(),
        (Some(collation), _) => collation.is_exact(),
    }
}

/// A DOUBLE, of which 0 is the only zero.
pub(super) fn without_negative_zero(value: df::Expr) -> df::Expr {
    binary(value, Operator::Plus, lit(0.0f64))
}

/// What is equal exactly if values of the type are.
pub(super) fn equality_key_of(value: df::Expr, ty: &SqlType) -> df::Expr {
    match ty.order() {
        // The two zeros are one number.
        _ if ValueClass::of(ty) == ValueClass::Double => without_negative_zero(value),
        _ if equals_bytewise(ty) => value,
        Some(collation) if collation.is_binary() => TrimmedUdf::create().call(vec![value]),
        Some(collation) => SortKeyUdf::create(collation).call(vec![value]),
        None => value,
    }
}

fn text_key(expr: df::Expr) -> Lowered {
    Lowered { expr, ty: DataType::Utf8View }
}

pub(super) fn is_truth(expr: &Expr) -> bool {
    expr.is_truth()
}

fn fsp_of(ty: &SqlType) -> u8 {
    match *ty {
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } | SqlType::Time { fsp } => fsp,
        _ => 0,
    }
}

fn string_len(value: &Datum<'_>) -> usize {
    match value {
        Datum::Str(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

pub(super) fn literal(value: &Datum<'_>, ty: &SqlType) -> Option<Lowered> {
    let scalar = match value {
        Datum::Null => ScalarValue::try_from(ty.arrow_type()).ok()?,
        value => scalar_of(value, ty)?,
    };
    Some(Lowered { expr: lit(scalar), ty: ty.arrow_type() })
}

/// Whether every value of one integer type is one of the other.
fn widens(from: &DataType, to: &DataType) -> bool {
    let bits = |ty: &DataType| match ty {
        DataType::Int8 | DataType::UInt8 => 8,
        DataType::Int16 | DataType::UInt16 => 16,
        DataType::Int32 | DataType::UInt32 => 32,
        _ => 64,
    };
    let (from_signed, to_signed) = (from.is_signed_integer(), to.is_signed_integer());
    from == to
        || (bits(from) < bits(to) && (to_signed || !from_signed))
        || (from_signed == to_signed && bits(from) <= bits(to))
}

/// The type in which two values compare without loss. A literal takes the other side's type if it can.
pub(super) fn meeting_type(left: &Lowered, right: &Lowered) -> Option<DataType> {
    if left.ty == right.ty {
        return Some(left.ty.clone());
    }
    for (value, other) in [(left, right), (right, left)] {
        if let df::Expr::Literal(scalar, _) = &value.expr
            && exactly(scalar, &other.ty)
        {
            return Some(other.ty.clone());
        }
    }
    match (&left.ty, &right.ty) {
        (a, b) if a.is_integer() && b.is_integer() => {
            let unsigned64 = |ty: &DataType| *ty == DataType::UInt64;
            if !unsigned64(a) && !unsigned64(b) {
                return Some(DataType::Int64);
            }
            (!a.is_signed_integer() && !b.is_signed_integer()).then_some(DataType::UInt64)
        }
        (a, b) => match (decimal128(a), decimal128(b)) {
            (Some((lp, ls)), Some((rp, rs))) => {
                let scale = ls.max(rs);
                let digits = (lp as i8 - ls).max(rp as i8 - rs) + scale;
                Some(match digits {
                    ..=38 => DataType::Decimal128(digits as u8, scale),
                    _ => DataType::Decimal256(76, scale),
                })
            }
            _ => wide_meeting(a, b),
        },
    }
}

/// As [`meeting_type`], for types too that only our own comparisons take as they are.
pub(super) fn key_meeting_type(left: &Lowered, right: &Lowered) -> Option<DataType> {
    meeting_type(left, right).or_else(|| match (&left.ty, &right.ty) {
        (a, b) if a.is_integer() && b.is_integer() => Some(DataType::Decimal128(20, 0)),
        (a, b) if a.is_floating() && b.is_floating() => Some(DataType::Float64),
        _ => None,
    })
}

fn wide_meeting(a: &DataType, b: &DataType) -> Option<DataType> {
    let scale = |ty: &DataType| match ty {
        DataType::Decimal256(_, s) | DataType::Decimal128(_, s) => Some(*s),
        ty if ty.is_integer() => Some(0),
        _ => None,
    };
    Some(DataType::Decimal256(76, scale(a)?.max(scale(b)?)))
}

/// Whether a literal can be written in another type without a change of value.
fn exactly(value: &ScalarValue, to: &DataType) -> bool {
    if value.is_null() {
        return true;
    }
    let numeric =
        |ty: &DataType| ty.is_integer() || matches!(ty, DataType::Decimal128(..) | DataType::Decimal256(..));
    if !numeric(to) || !numeric(&value.data_type()) {
        return false;
    }
    let Ok(there) = value.cast_to(to) else { return false };
    if there.is_null() {
        return false;
    }
    there.cast_to(&value.data_type()).is_ok_and(|back| back == *value)
}
