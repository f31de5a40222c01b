//! In which type values are compared. MySQL 8.4 Reference Manual, 14.3 "Type Conversion in Expression Evaluation".

use crate::datum::Datum;
use crate::decimal::{Decimal, ParseStatus};
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::typing::aggregate::{fsp_of, fsp_of_expr, string_type, text_len, text_len_of};
use crate::expr::typing::arith::{hybrid_number, numeric_type, shown_decimals};
use crate::expr::typing::collation::Agreement;
use crate::expr::typing::moments::is_date_like;
use crate::expr::typing::{Typer, ValueClass, collation, refuse_geometries};
use crate::expr::{ArithOp, CastTarget, CompareOp, Expr, ExprKind, Function, IsTest};
use crate::sql_type::{Collation, RealFormat, SqlType};
use crate::temporal::{TimeZone, ZERO_DATETIME, ZeroDates, parse_datetime, parse_time};
use crate::text::fixed_decimals;

/// The class in which two classes meet.
fn meet(a: ValueClass, b: ValueClass) -> ValueClass {
    use ValueClass as C;
    match (a, b) {
        (C::Null, other) | (other, C::Null) => other,
        (a, b) if a == b => a,
        (C::Json, _) | (_, C::Json) => C::Json,
        (C::Int | C::Decimal, C::Int | C::Decimal) => C::Decimal,
        (C::Text | C::Bytes, C::Text | C::Bytes) => C::Bytes,
        // A string beside a date or time is read as one.
        (C::Date | C::DateTime | C::Timestamp, C::Text | C::Bytes) => C::DateTime,
        (C::Text | C::Bytes, C::Date | C::DateTime | C::Timestamp) => C::DateTime,
        // Beside a time it stays one; see `as_the_column`.
        (C::Time, C::Text | C::Bytes) | (C::Text | C::Bytes, C::Time) => C::Text,
        (a, b) if is_temporal(a) && is_temporal(b) => C::DateTime,
        // Temporal beside number: as a number; the caller knows of which kind.
        (C::Double, _) | (_, C::Double) | (C::Text | C::Bytes, _) | (_, C::Text | C::Bytes) => C::Double,
        _ => C::Decimal,
    }
}

const fn is_temporal(class: ValueClass) -> bool {
    matches!(class, ValueClass::Date | ValueClass::DateTime | ValueClass::Timestamp | ValueClass::Time)
}

const fn is_number(class: ValueClass) -> bool {
    matches!(class, ValueClass::Int | ValueClass::Decimal | ValueClass::Double)
}

const fn is_date_or_coded(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Year | SqlType::Enum(_) | SqlType::Set(_))
}

const fn is_plain_number(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Bool | SqlType::Int { .. })
}

impl Typer {
    /// `left op right`.
    pub fn compare(&self, op: CompareOp, left: Expr, right: Expr) -> EvalResult<Expr> {
        let exprs = vec![left, right];
        self.check_compared(&exprs, false)?;
        if exprs.iter().any(|expr| expr.ty == SqlType::Json) {
            return self.compare_unchecked(op, exprs);
        }
        check_dates(&exprs, self.sql_mode.zero_dates())?;
        let exprs = self.years_before_dates(self.as_the_year(exprs)?)?;
        let exprs = self.reals_of_one_scale(self.as_the_reals(self.as_the_column(exprs)));
        self.compare_unchecked(op, exprs)
    }

    /// A comparison of rows, some of many: a literal that is no date is not equal to any, and no error.
    pub fn compare_leniently(&self, op: CompareOp, left: Expr, right: Expr) -> EvalResult<Expr> {
        let exprs = vec![left, right];
        self.check_compared(&exprs, true)?;
        let exprs = self.reals_of_one_scale(self.as_the_reals(self.as_the_column(exprs)));
        self.compare_unchecked(op, exprs)
    }

    /// An element of one of several rows in a list, compared as what the left side is (`cmp_item_row`).
    pub fn compare_as_left(&self, left: Expr, right: Expr) -> EvalResult<Expr> {
        use ValueClass as C;
        let right = match (ValueClass::of(&left.ty), ValueClass::of(&right.ty)) {
            // A text beside integers stays the exact number that it is; only whether that is warned of would differ.
            (C::Int, C::Decimal | C::Double) if is_plain_number(&left.ty) => {
                self.convert(right, SqlType::BIGINT)
            }
            (C::Text, C::Int | C::Decimal | C::Double) if left.ty.members().is_none() => self.text(right),
            // Under the left side's collation, whatever the other one is.
            (C::Text, C::Text | C::Bytes) => match left.ty.collation() {
                Some(collation) => self.under_collation(right, collation),
                None => right,
            },
            (C::Bytes, C::Text) => self.under_collation(right, Collation::BINARY),
            _ => right,
        };
        let exprs = vec![left, right];
        self.check_compared(&exprs, true)?;
        self.compare_unchecked(CompareOp::Eq, self.as_the_reals(self.as_the_column(exprs)))
    }

    /// The comparison of `CASE operand WHEN value`: a literal that is no date is not equal to any, and no error. Numbers and
    /// strings meet as doubles here, also where the operand is a column.
    pub(crate) fn compare_case(&self, operand: Expr, value: Expr) -> EvalResult<Expr> {
        let is_document = |expr: &Expr| expr.ty == SqlType::Json;
        let exprs = vec![operand, value];
        self.check_compared(&exprs, true)?;
        let mut exprs = self.as_the_temporal(exprs);
        // A document beside another value counts as its text here, or as its number.
        if let Some(at) = exprs.iter().position(is_document)
            && !is_document(&exprs[1 - at])
        {
            let to = if is_number(ValueClass::of(&exprs[1 - at].ty)) {
                SqlType::DOUBLE
            } else {
                SqlType::JSON_TEXT
            };
            let document = std::mem::replace(&mut exprs[at], Expr::literal(Datum::Null, SqlType::Null));
            exprs[at] = self.convert(document, to);
        }
        self.compare_unchecked(CompareOp::Eq, exprs).map_err(|error| error.in_operation("case"))
    }

    fn compare_unchecked(&self, op: CompareOp, exprs: Vec<Expr>) -> EvalResult<Expr> {
        let is_equality = matches!(op, CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne);
        if !is_equality {
            refuse_geometries(&exprs, op.symbol())?;
        }
        let exprs = match is_equality {
            true => self.constants_as_numbers(exprs, op.symbol()),
            false => self.ordered_operands(exprs),
        };
        let exprs = self.comparable(exprs, op.symbol())?;
        let exprs = if op == CompareOp::NullSafeEq { self.typed_nulls(exprs) } else { exprs };
        let [left, right]: [Expr; 2] = exprs.try_into().expect("two go in, two come out");
        if op != CompareOp::NullSafeEq {
            let nullable = left.nullable || right.nullable;
            return Ok(Expr::truth(
                ExprKind::Compare { op, left: left.into(), right: right.into() },
                nullable,
            ));
        }
        let read: Vec<_> = [&left, &right].into_iter().filter_map(|side| self.was_read(side)).collect();
        let compared = Expr::truth(ExprKind::Compare { op, left: left.into(), right: right.into() }, false);
        Ok(match read.is_empty() {
            true => compared,
            false => self.and(std::iter::once(compared).chain(read).collect()),
        })
    }

    /// Whether a side that is read as a date or time is one, or NULL itself: as NULL, what is none would be `<=>` to NULL.
    /// `None` if that is sure.
    fn was_read(&self, side: &Expr) -> Option<Expr> {
        let mut inner = side;
        while let ExprKind::Convert(below) = &inner.kind {
            inner = below;
        }
        if !side.ty.is_temporal() || inner.ty.is_temporal() || inner.ty == SqlType::Null {
            return None;
        }
        if inner.as_literal().is_some()
            && side.clone().fold().as_literal().is_some_and(|read| !read.is_null())
        {
            return None;
        }
        let is_null = self.is(inner.clone(), IsTest::Null, false);
        Some(self.or(vec![is_null, self.is(side.clone(), IsTest::Null, true)]))
    }

    /// What is nothing but NULL, as a NULL of the other side's type: `<=>` compares it, too, and vectors have one type.
    /// The type of a parameter is not known before it is bound.
    fn typed_nulls(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let Some(ty) = exprs.iter().map(|expr| expr.ty).find(|ty| *ty != SqlType::Null) else { return exprs };
        let is_null = |expr: &Expr| expr.ty == SqlType::Null && !matches!(expr.kind, ExprKind::Param(_));
        exprs.into_iter().map(|expr| if is_null(&expr) { self.convert(expr, ty) } else { expr }).collect()
    }

    /// Constants beside a column are read as what the column has, as far as they can be.
    fn as_the_column(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        self.as_the_number(self.as_the_temporal(exprs))
    }

    /// Beside a column of integers or decimals, constant strings are exact numbers. As doubles, several integers beyond 2^53
    /// would equal one string.
    fn as_the_number(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let class = |expr: &Expr| ValueClass::of(&expr.ty);
        let mut columns = exprs.iter().filter(|expr| matches!(expr.kind, ExprKind::Column(_)));
        let (Some(column), None) = (columns.next(), columns.next()) else {
            return self.params_as_numbers(exprs);
        };
        let of_column = class(column);
        let is_exact = matches!(of_column, ValueClass::Int | ValueClass::Decimal);
        if !is_exact || column.ty == SqlType::Year || column.ty.members().is_some() {
            return exprs;
        }
        let is_string =
            |expr: &Expr| matches!(class(expr), ValueClass::Text | ValueClass::Bytes) && expr.is_constant();
        exprs.into_iter().map(|expr| if is_string(&expr) { exact(expr, of_column) } else { expr }).collect()
    }

    /// Texts that are given for parameters are exact numbers beside one that is computed, too. (A MariaDB has doubles.)
    fn params_as_numbers(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        if self.is_of_mariadb() {
            return exprs;
        }
        let class = |expr: &Expr| ValueClass::of(&expr.ty);
        let is_param =
            |expr: &Expr| matches!(expr.kind, ExprKind::Param(_)) && class(expr) == ValueClass::Text;
        let is_exact = |expr: &Expr| matches!(class(expr), ValueClass::Int | ValueClass::Decimal);
        let mut others = exprs.iter().filter(|expr| !is_param(expr));
        let Some(first) = others.next().filter(|first| is_exact(first) && !is_date_or_coded(&first.ty))
        else {
            return exprs;
        };
        let of_first = class(first);
        if others.any(|other| !is_exact(other)) {
            return exprs;
        }
        exprs.into_iter().map(|expr| if is_param(&expr) { exact(expr, of_first) } else { expr }).collect()
    }

    /// Beside a FLOAT or DOUBLE column that is rounded to so many decimals, an exact number is what the column would have of it:
    /// `f = 1.1` finds 1.1 (IN and BETWEEN have no such thing). Decimals that the column does not keep count still. A constant text is
    /// the FLOAT that it says, beside such a column.
    fn as_the_reals(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let mut columns = exprs.iter().filter(|expr| matches!(expr.kind, ExprKind::Column(_)));
        let (Some(column), None) = (columns.next(), columns.next()) else { return exprs };
        let Some(decimals) = fixed_decimals(&column.ty) else { return exprs };
        let is_float = matches!(column.ty, SqlType::Float(_));
        let one = |expr: Expr| {
            let own = match expr.ty {
                ty if is_float && (ty.is_string() || ty.is_bytes()) && expr.is_constant() => {
                    return self.convert(expr, SqlType::FLOAT);
                }
                SqlType::Bool | SqlType::Int { .. } if expr.is_constant() => 0,
                SqlType::Decimal { scale, .. } if expr.is_constant() => scale,
                _ => return expr,
            };
            let real = RealFormat::shown_with(decimals.max(own));
            self.convert(expr, if is_float { SqlType::Float(real) } else { SqlType::Double(real) })
        };
        exprs.into_iter().map(one).collect()
    }

    /// Reals that are rounded to so many decimals, and numbers beside them, are equal if they are when both are rounded to the
    /// decimals of the one that has more (`Arg_comparator::compare_real_fixed`).
    fn reals_of_one_scale(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let has_real = exprs.iter().any(|expr| fixed_decimals(&expr.ty).is_some());
        // Of constants beside a column was found what the column has of them.
        let is_column = |expr: &Expr| matches!(expr.kind, ExprKind::Column(_));
        let is_settled = exprs.iter().all(|expr| is_column(expr) || expr.is_constant())
            && exprs.iter().filter(|expr| is_column(expr)).count() == 1;
        if !has_real || is_settled || exprs.windows(2).all(|pair| pair[0].ty == pair[1].ty) {
            return exprs;
        }
        let decimals: Option<Vec<u8>> = exprs.iter().map(|expr| shown_decimals(&expr.ty)).collect();
        let Some(most) = decimals.and_then(|decimals| decimals.into_iter().max()) else { return exprs };
        let ty = SqlType::Double(RealFormat::shown_with(most));
        let one = |expr: Expr| match (&expr.kind, expr.ty) {
            // As it is kept, a DOUBLE is rounded already, and integers are.
            (ExprKind::Column(_), SqlType::Double(_)) | (_, SqlType::Bool | SqlType::Int { .. }) => expr,
            (_, from) if from == ty => self.convert(self.convert(expr, SqlType::DOUBLE), ty),
            _ => self.convert(expr, ty),
        };
        exprs.into_iter().map(one).collect()
    }

    /// Beside a column of dates or times, constants are read as what the column has, as far as they can be:
    ///
    /// - Beside a TIME, literals that are times become times, rounded as the column is. All else that is a string makes
    ///   strings of the times: `'01:00:00'` is not `'1:0:0'` then.
    /// - Beside a DATE, DATETIME or TIMESTAMP, numbers that are dates become dates: `20240101` is not less than all moments.
    /// - Beside a YEAR, integers from 1 to 99 are years of two digits.
    fn as_the_temporal(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let is_column = |expr: &&Expr| {
            matches!(expr.kind, ExprKind::Column(_)) && (expr.ty.is_temporal() || expr.ty == SqlType::Year)
        };
        let mut columns = exprs.iter().filter(is_column).map(|expr| expr.ty);
        let (Some(ty), None) = (columns.next(), columns.next()) else { return exprs };
        match ty {
            SqlType::Time { .. } => self.times_beside(exprs, ty),
            SqlType::Year => exprs.into_iter().map(full_year).collect(),
            _ => {
                let one = |expr: Expr| match ValueClass::of(&expr.ty) {
                    class if is_number(class) && expr.is_constant() => self.as_date(expr, ty),
                    _ => expr,
                };
                exprs.into_iter().map(one).collect()
            }
        }
    }

    /// Beside a column of YEAR, constant dates are their years: 2020 is `DATE'2020-05-05'`. What no YEAR can be stays a date.
    fn as_the_year(&self, exprs: Vec<Expr>) -> EvalResult<Vec<Expr>> {
        let is_year = |expr: &Expr| matches!(expr.kind, ExprKind::Column(_)) && expr.ty == SqlType::Year;
        let is_other = |expr: &Expr| expr.ty.is_temporal() && expr.is_constant();
        let mut years = exprs.iter().filter(|expr| is_year(expr));
        let has_one = years.next().is_some() && years.next().is_none();
        if !has_one || !exprs.iter().all(|expr| is_year(expr) || is_other(expr)) {
            return Ok(exprs);
        }
        let one = |expr: Expr| {
            if is_year(&expr) {
                return Ok(expr);
            }
            let is_date =
                |expr: &Expr| matches!(expr.as_literal(), Some(Datum::Date(_) | Datum::DateTime(_)));
            let year = self.cast(expr.clone(), CastTarget::Year)?.fold();
            // Of what is no YEAR, folding leaves the warning to be given.
            let is_year = year.as_literal().is_some_and(|year| !year.is_null());
            Ok(if is_year || !is_date(&expr.clone().fold()) { year } else { expr })
        };
        exprs.into_iter().map(one).collect()
    }

    /// A YEAR is before all dates that are in it, and behind those of other years: it counts as a date without month and day.
    fn years_before_dates(&self, exprs: Vec<Expr>) -> EvalResult<Vec<Expr>> {
        let Some(date) = exprs.iter().find(|expr| is_date_like(&expr.ty)) else { return Ok(exprs) };
        // As many digits as stand behind a date's year.
        let digits = if date.ty == SqlType::Date { 10_000 } else { 10_000_000_000 };
        let one = |expr: Expr| match expr.ty {
            SqlType::Year => self.arith(ArithOp::Mul, expr, Expr::int(digits)),
            _ => Ok(expr),
        };
        exprs.into_iter().map(one).collect()
    }

    fn times_beside(&self, exprs: Vec<Expr>, ty: SqlType) -> Vec<Expr> {
        let all_times = exprs.iter().all(|expr| match ValueClass::of(&expr.ty) {
            ValueClass::Time => matches!(expr.kind, ExprKind::Column(_)),
            ValueClass::Text | ValueClass::Bytes => is_time(expr),
            class => class == ValueClass::Null,
        });
        if !all_times {
            return exprs;
        }
        let one = |expr: Expr| if expr.ty.is_temporal() { expr } else { self.convert(expr, ty) };
        exprs.into_iter().map(one).collect()
    }

    /// In a list of several, what is a string is read as a time; a literal that is none is equal to no time.
    fn time_in_list(&self, item: Expr) -> Expr {
        let is_text = matches!(ValueClass::of(&item.ty), ValueClass::Text | ValueClass::Bytes);
        match is_text && (item.as_literal().is_none() || is_time(&item)) {
            true => self.to_temporal(item, ValueClass::Time),
            false => item,
        }
    }

    /// A constant number as a date, unless it is none.
    fn as_date(&self, number: Expr, column: SqlType) -> Expr {
        let ty = match column {
            SqlType::Date => SqlType::Date,
            _ => SqlType::DateTime { fsp: fsp_of(&column).max(fsp_of_expr(&number)) },
        };
        let date = self.convert(number.clone(), ty);
        if matches!(number.kind, ExprKind::Param(_)) {
            return date;
        }
        let date = date.fold();
        if date.as_literal().is_some_and(|value| !value.is_null()) { date } else { number }
    }

    /// `expr [NOT] BETWEEN low AND high`.
    pub fn between(&self, expr: Expr, low: Expr, high: Expr, negated: bool) -> EvalResult<Expr> {
        let mut exprs = vec![expr, low, high];
        if exprs.iter().any(|expr| is_temporal(ValueClass::of(&expr.ty))) {
            for expr in &mut exprs {
                if let Some(computed) = computed_text(expr) {
                    *expr = computed;
                }
            }
        }
        self.check_compared(&exprs, false)?;
        refuse_geometries(&exprs, "between")?;
        if !exprs.iter().any(|expr| is_number(ValueClass::of(&expr.ty))) {
            self.check_collations(&exprs, "between")?;
        }
        // To be between a number and itself is to be it, which for a rounded real is not the same.
        let is_real = fixed_decimals(&exprs[0].ty).is_some() && !exprs[0].is_constant();
        if is_real && !negated && exprs[1].as_literal().is_some() && exprs[1] == exprs[2] {
            return self.is_real(exprs[0].clone(), exprs[1].clone());
        }
        let are_params = exprs[1..].iter().all(|expr| {
            matches!(expr.kind, ExprKind::Param(_)) && matches!(expr.ty, SqlType::Decimal { .. })
        });
        if is_real && !negated && are_params {
            let [real, low, high] = &exprs[..] else { unreachable!("three are compared") };
            let same = self.compare_unchecked(CompareOp::Eq, vec![low.clone(), high.clone()])?;
            let is_it = self.and(vec![same, self.is_real(real.clone(), low.clone())?]);
            let is_between = self.between_unchecked(exprs, negated)?;
            return Ok(self.or(vec![is_it, is_between]));
        }
        self.between_unchecked(exprs, negated)
    }

    /// Whether a real that is rounded to so many decimals is a number.
    fn is_real(&self, real: Expr, number: Expr) -> EvalResult<Expr> {
        let exprs = self.reals_of_one_scale(self.as_the_reals(vec![real, number]));
        self.compare_unchecked(CompareOp::Eq, exprs)
    }

    fn between_unchecked(&self, exprs: Vec<Expr>, negated: bool) -> EvalResult<Expr> {
        let exprs = self.as_the_year(self.without_json(exprs, true))?;
        let exprs = self.ordered_operands(self.as_the_column(exprs));
        let [expr, low, high]: [Expr; 3] =
            self.comparable(exprs, "between")?.try_into().expect("three go in, three come out");
        let nullable = expr.nullable || low.nullable || high.nullable;
        let kind =
            ExprKind::Between { expr: Box::new(expr), low: Box::new(low), high: Box::new(high), negated };
        Ok(Expr::truth(kind, nullable))
    }

    /// Texts that a text, a date or a time is compared with must agree on a collation, whatever stands between them.
    fn check_collations(&self, exprs: &[Expr], operation: &str) -> EvalResult<()> {
        let classes = || exprs.iter().map(|expr| ValueClass::of(&expr.ty));
        let is_of_texts = |class: ValueClass| class == ValueClass::Text || is_temporal(class);
        let is_compared = classes().next().is_some_and(is_of_texts)
            && classes().filter(|class| *class == ValueClass::Text).count() > 1
            && !exprs.iter().any(|expr| expr.ty == SqlType::Json || expr.ty.is_coded());
        match is_compared {
            true => collation::aggregate(exprs, self, operation, Agreement::Compared).map(drop),
            false => Ok(()),
        }
    }

    /// `expr [NOT] IN (list)`. Each element is compared by its own type's rule, so a mixed list becomes an OR.
    pub fn in_list(&self, expr: Expr, mut list: Vec<Expr>, negated: bool) -> EvalResult<Expr> {
        if list.len() == 1 {
            let equal = self.compare(CompareOp::Eq, expr, list.remove(0))?;
            return Ok(if negated { self.not(equal) } else { equal });
        }
        let mut all = Vec::with_capacity(list.len() + 1);
        all.push(expr);
        all.extend(list);
        self.check_compared(&all, true)?;
        self.check_collations(&all, " IN ")?;
        let all = self.as_the_number(all);
        // Constants that are no members have one number: among each other they are compared as texts.
        let all = match all[0].ty.members() {
            Some(_) => self.constants_as_numbers(all, " IN "),
            None => all,
        };
        // Names, if nothing beside them is a number.
        let plain = |expr: &Expr| is_number(ValueClass::of(&expr.ty)) && expr.ty.members().is_none();
        let numbers = all[1..].iter().any(plain);
        let mut all = if numbers { all } else { self.coded_operands(all) }.into_iter();
        let expr = all.next().expect("the list came after the expression");
        let mut list: Vec<_> = all.collect();
        let class = ValueClass::of(&expr.ty);
        if class == ValueClass::Time {
            list = list.into_iter().map(|item| self.time_in_list(item)).collect();
        }
        let meets: Vec<_> = list.iter().map(|item| meet(class, ValueClass::of(&item.ty))).collect();
        let uniform = meets.windows(2).all(|pair| pair[0] == pair[1])
            && !list.iter().any(|item| {
                is_temporal(class) != is_temporal(ValueClass::of(&item.ty))
                    && is_number(ValueClass::of(&item.ty))
            });
        if !uniform {
            let parts = list
                .into_iter()
                .map(|item| self.compare_leniently(CompareOp::Eq, self.copy(&expr)?, item))
                .collect::<EvalResult<Vec<_>>>()?;
            let any = self.or(parts);
            return Ok(if negated { self.not(any) } else { any });
        }
        let mut all = Vec::with_capacity(list.len() + 1);
        all.push(expr);
        all.extend(list);
        let mut all = self.comparable(all, " IN ")?.into_iter();
        let expr = all.next().expect("the list came after the expression");
        let list: Vec<_> = all.collect();
        let nullable = expr.nullable || list.iter().any(|item| item.nullable);
        Ok(Expr::truth(ExprKind::InList { expr: Box::new(expr), list, negated }, nullable))
    }

    /// What a constant behind ESCAPE says: one character or none. NULL is the backslash.
    pub fn escape_character(&self, escape: Expr) -> EvalResult<Option<char>> {
        let escape = self.text(escape).fold();
        let one = match escape.as_literal() {
            Some(Datum::Null) => Some(Some('\\')),
            Some(Datum::Str(text)) => {
                let mut chars = text.chars();
                let first = chars.next();
                chars.next().is_none().then_some(first)
            }
            Some(Datum::Bytes(bytes)) => {
                (bytes.len() <= 1).then(|| bytes.first().map(|byte| char::from(*byte)))
            }
            _ => None,
        };
        one.ok_or(EvalError::WrongArguments("ESCAPE"))
    }

    /// `expr [NOT] LIKE pattern [ESCAPE escape]`.
    pub fn like(&self, expr: Expr, pattern: Expr, escape: Option<char>, negated: bool) -> EvalResult<Expr> {
        refuse_geometries(&[&expr, &pattern], "like")?;
        let (expr, pattern) = (self.text(expr), self.text(pattern));
        let mut both = self.same_collation(vec![expr, pattern], "like")?.into_iter();
        let (expr, pattern) = (both.next().expect("two went in"), both.next().expect("two went in"));
        let nullable = expr.nullable || pattern.nullable;
        let kind = ExprKind::Like { expr: Box::new(expr), pattern: Box::new(pattern), escape, negated };
        Ok(Expr::truth(kind, nullable))
    }

    /// Converts expressions so that their values compare with each other.
    pub(crate) fn comparable(&self, exprs: Vec<Expr>, operation: &str) -> EvalResult<Vec<Expr>> {
        if exprs.iter().any(|expr| expr.ty == SqlType::Json) {
            return Ok(exprs.into_iter().map(|expr| self.json(expr)).collect());
        }
        let exprs = self.coded_operands(exprs);
        let classes: Vec<_> = exprs.iter().map(|expr| ValueClass::of(&expr.ty)).collect();
        let met = classes.iter().copied().fold(ValueClass::Null, meet);
        if classes.iter().any(|c| is_temporal(*c)) && classes.iter().any(|c| is_number(*c)) {
            let numbers: Vec<_> = exprs.into_iter().map(|expr| self.number(expr)).collect();
            return self.comparable(numbers, operation);
        }
        Ok(match met {
            ValueClass::Null | ValueClass::Int | ValueClass::Date => exprs,
            ValueClass::Text | ValueClass::Bytes => return self.same_collation(exprs, operation),
            ValueClass::Decimal => {
                exprs.into_iter().map(|expr| self.to_number_class(expr, ValueClass::Decimal)).collect()
            }
            ValueClass::Double => exprs
                .into_iter()
                .map(|expr| {
                    if matches!(numeric_type(&expr), SqlType::Float(_)) { expr } else { self.to_double(expr) }
                })
                .collect(),
            ValueClass::Timestamp | ValueClass::Json => exprs,
            ValueClass::DateTime => self.as_datetimes(exprs),
            ValueClass::Time => {
                exprs.into_iter().map(|expr| self.to_temporal(expr, ValueClass::Time)).collect()
            }
        })
    }

    /// BETWEEN, GREATEST and LEAST compare documents as texts; BETWEEN as numbers, if it has one beside them.
    pub(super) fn without_json(&self, exprs: Vec<Expr>, numbers: bool) -> Vec<Expr> {
        let has_number = numbers && exprs.iter().any(|expr| is_number(ValueClass::of(&expr.ty)));
        let one = |expr: Expr| match expr.ty {
            SqlType::Json if has_number => self.convert(expr, SqlType::DOUBLE),
            SqlType::Json => self.text(expr),
            _ => expr,
        };
        exprs.into_iter().map(one).collect()
    }

    /// Where every other operand is constant, a TIMESTAMP or DATE column stays as it is, so that an index on it can be
    /// used, and the constants take its type.
    fn as_datetimes(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let mut varying = exprs.iter().filter(|expr| !expr.is_constant());
        let class = match (varying.next(), varying.next()) {
            (Some(one), None) if ValueClass::of(&one.ty) == ValueClass::Timestamp => ValueClass::Timestamp,
            _ => ValueClass::DateTime,
        };
        exprs.into_iter().map(|expr| self.to_temporal(expr, class)).collect()
    }

    fn to_temporal(&self, expr: Expr, class: ValueClass) -> Expr {
        if ValueClass::of(&expr.ty) == class || expr.ty == SqlType::Null {
            return expr;
        }
        let is_text = matches!(ValueClass::of(&expr.ty), ValueClass::Text | ValueClass::Bytes);
        // Of what is constant, only a literal's text is known here: whether it is a date was judged before.
        let zeros = self.sql_mode.zero_dates();
        let may_be_none = !expr.is_constant() || expr.as_literal().is_some() && !is_date(&expr, zeros);
        if let Some(zero) = zero_date(&expr, zeros).filter(|_| class != ValueClass::Time) {
            return zero;
        }
        if is_text && class == ValueClass::DateTime && may_be_none {
            let nullable = expr.nullable;
            let call = ExprKind::Call(Function::DateTimeOrZero, vec![expr]);
            return Expr::new(call, SqlType::DateTime { fsp: 6 }, nullable);
        }
        let fsp = fsp_of_expr(&expr);
        let ty = match class {
            ValueClass::Timestamp => SqlType::Timestamp { fsp },
            ValueClass::Time => SqlType::Time { fsp },
            _ => SqlType::DateTime { fsp },
        };
        self.convert(expr, ty)
    }

    pub(crate) fn to_double(&self, expr: Expr) -> Expr {
        match ValueClass::of(&expr.ty) {
            ValueClass::Double | ValueClass::Null => expr,
            _ => self.convert(expr, SqlType::DOUBLE),
        }
    }

    /// An argument as a string: numbers and dates become their text in the connection's collation.
    pub(crate) fn text(&self, expr: Expr) -> Expr {
        let expr = self.with_zeros(expr);
        match ValueClass::of(&expr.ty) {
            ValueClass::Text | ValueClass::Bytes => expr,
            ValueClass::Json => self.convert(expr, SqlType::JSON_TEXT),
            _ if expr.ty.is_coded() => self.decoded(expr),
            _ => {
                let ty =
                    SqlType::VarChar { len: text_len_of(&expr) as u32, collation: self.connection_collation };
                self.convert(expr, ty)
            }
        }
    }

    /// Strings for a comparison: all under the collation that they agree on, or all bytes.
    pub(crate) fn same_collation(&self, exprs: Vec<Expr>, operation: &str) -> EvalResult<Vec<Expr>> {
        let derivation = collation::aggregate(&exprs, self, operation, Agreement::Compared)?;
        Ok(exprs.into_iter().map(|expr| self.under_collation(expr, derivation.collation)).collect())
    }

    /// A string under another collation: the same characters, or their bytes.
    pub(crate) fn under_collation(&self, expr: Expr, to: Collation) -> Expr {
        let (bytes, chars) =
            (text_len(&expr.ty).saturating_mul(4).min(u32::MAX.into()) as u32, text_len(&expr.ty));
        match (ValueClass::of(&expr.ty), to) {
            (ValueClass::Null, _) | (ValueClass::Bytes, Collation::BINARY) => expr,
            (ValueClass::Bytes, _) => self.convert(expr, string_type(chars, to)),
            (ValueClass::Text, Collation::BINARY) => self.convert(expr, SqlType::VarBinary { len: bytes }),
            (ValueClass::Text, _) => match expr.ty.collation() == Some(to) {
                true => expr,
                false => {
                    let ty = SqlType::VarChar { len: chars.min(u32::MAX.into()) as u32, collation: to };
                    if let Some(recoded) = self.recoded(&expr, ty) {
                        return recoded;
                    }
                    let nullable = expr.nullable;
                    // Not `Collate`: that would make the collation explicit.
                    Expr::new(ExprKind::Convert(Box::new(expr)), ty, nullable)
                }
            },
            _ => self.under_collation(self.text(expr), to),
        }
    }

    /// `expr COLLATE collation`.
    pub fn collate(&self, expr: Expr, to: Collation) -> EvalResult<Expr> {
        let is_bytes = expr.ty.is_bytes() || expr.ty == SqlType::Null && expr.is_null_literal();
        if is_bytes && to != Collation::BINARY {
            return Err(EvalError::CollationCharset {
                collation: to.name().to_owned(),
                charset: "binary".to_owned(),
            });
        }
        // The text of a number, a date or a time is of any character set.
        let is_plain = !expr.ty.is_string() && !expr.ty.is_bytes() && expr.ty.members().is_none();
        let is_plain = is_plain && expr.ty != SqlType::Json && expr.ty != SqlType::Null;
        let expr = if is_plain { self.under_collation(expr, to) } else { self.text(expr) };
        if let Some(charset) = expr.ty.charset().filter(|charset| *charset != to.info().charset) {
            return Err(EvalError::CollationCharset {
                collation: to.name().to_owned(),
                charset: charset.name().to_owned(),
            });
        }
        let ty = match expr.ty {
            SqlType::Char { len, .. } => SqlType::Char { len, collation: to },
            SqlType::VarChar { len, .. } => SqlType::VarChar { len, collation: to },
            SqlType::Text { size, .. } => SqlType::Text { size, collation: to },
            ty => ty,
        };
        let nullable = expr.nullable;
        Ok(Expr::new(ExprKind::Collate(Box::new(expr)), ty, nullable))
    }
}

/// A constant string as the number that it is beside a column of integers or decimals.
fn exact(text: Expr, column: ValueClass) -> Expr {
    if let Some(number) = hybrid_number(&text) {
        return number;
    }
    if let Some(Datum::Str(_) | Datum::Bytes(_)) = text.as_literal()
        && let Some(number) = whole_number(&text)
    {
        let as_integer = number.to_i64().map(Datum::Int).or_else(|| number.to_u64().map(Datum::UInt));
        return match as_integer.filter(|_| column == ValueClass::Int && number.floor() == number) {
            Some(integer) => Expr::literal(integer.clone(), integer.natural_type(Collation::BINARY)),
            None => {
                let ty = number.own_type();
                Expr::literal(Datum::Decimal(number), ty)
            }
        };
    }
    let function = match column {
        ValueClass::Int => Function::ExactInteger,
        _ => Function::ExactDecimal,
    };
    let nullable = text.nullable;
    let ty = SqlType::Decimal { precision: 65, scale: 30, unsigned: false };
    Expr::new(ExprKind::Call(function, vec![text]), ty, nullable)
}

/// The number that all of a literal's text is; `None` if there is more, or if no decimal is that.
fn whole_number(text: &Expr) -> Option<Decimal> {
    let bytes = match text.as_literal()? {
        Datum::Str(text) => text.as_bytes(),
        Datum::Bytes(bytes) => bytes,
        _ => return None,
    };
    let parsed = Decimal::parse_prefix(bytes);
    let is_all = bytes[parsed.consumed..].trim_ascii().is_empty();
    (is_all && parsed.status == ParseStatus::Exact).then_some(parsed.value)
}

/// A constant integer as a year.
fn full_year(expr: Expr) -> Expr {
    if ValueClass::of(&expr.ty) != ValueClass::Int || !expr.is_constant() {
        return expr;
    }
    let (ty, nullable) = (expr.ty, expr.nullable);
    Expr::new(ExprKind::Call(Function::FullYear, vec![expr]), ty, nullable).fold()
}

/// Whether it is a literal that can be read as a date.
fn is_date(expr: &Expr, zeros: ZeroDates) -> bool {
    match expr.as_literal() {
        Some(Datum::Str(text)) => parse_datetime(text.as_bytes(), TimeZone::UTC, zeros).is_some(),
        _ => false,
    }
}

/// A literal text that is `0000-00-00` as the zero DATETIME, which is the zero TIMESTAMP, too. Folding does not know the
/// mode that lets it in.
fn zero_date(expr: &Expr, zeros: ZeroDates) -> Option<Expr> {
    let Some(Datum::Str(text)) = expr.as_literal().filter(|_| zeros.alone) else { return None };
    let parsed = parse_datetime(text.as_bytes(), TimeZone::UTC, zeros)?;
    let is_plain = parsed.micros == ZERO_DATETIME && !parsed.truncated;
    is_plain.then(|| Expr::literal(Datum::DateTime(ZERO_DATETIME), SqlType::DateTime { fsp: 0 }))
}

/// Whether it is a literal that is a time and nothing else.
fn is_time(expr: &Expr) -> bool {
    match expr.as_literal() {
        Some(Datum::Str(text)) => {
            parse_time(text.as_bytes(), TimeZone::UTC).is_some_and(|time| !time.truncated)
        }
        Some(_) => false,
        None => matches!(expr.kind, ExprKind::Param(_)),
    }
}

/// A constant text that is no literal, as one: beside dates it is read once, as a literal is.
fn computed_text(expr: &Expr) -> Option<Expr> {
    let is_computed = expr.as_literal().is_none() && expr.ty.is_string() && expr.is_constant();
    is_computed.then(|| expr.clone().fold())
}

/// Error 1525 for a constant that is compared with a date and is none.
fn check_dates(exprs: &[Expr], zeros: ZeroDates) -> EvalResult<()> {
    let classes = || exprs.iter().map(|expr| ValueClass::of(&expr.ty));
    if classes().fold(ValueClass::Null, meet) != ValueClass::DateTime || classes().any(is_number) {
        return Ok(());
    }
    let kind = match exprs.iter().map(|expr| ValueClass::of(&expr.ty)).find(|class| is_temporal(*class)) {
        Some(ValueClass::Date) => "DATE",
        Some(ValueClass::Timestamp) => "TIMESTAMP",
        _ => "DATETIME",
    };
    for expr in exprs {
        let computed = computed_text(expr);
        let expr = computed.as_ref().unwrap_or(expr);
        if let Some(Datum::Str(text)) = expr.as_literal()
            && !is_date(expr, zeros)
        {
            return Err(EvalError::IncorrectConstant { kind, value: text.to_string() });
        }
    }
    Ok(())
}

impl CompareOp {
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::NullSafeEq => "<=>",
            Self::Ne => "<>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }
}
