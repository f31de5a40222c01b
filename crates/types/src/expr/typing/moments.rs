//! Texts that functions of dates and times give. Where a number is asked for, such a function gives the number of the date
//! (`Item_func::val_real`), and not what its text begins with.

use crate::expr::error::EvalResult;
use crate::expr::typing::aggregate::{bytes_type, fsp_of_expr, string_type, text_len};
use crate::expr::typing::{Typer, ValueClass};
use crate::expr::{Expr, ExprKind, Function, UnitFunction};
use crate::sql_type::SqlType;

impl Typer {
    /// GREATEST and LEAST of dates beside texts and numbers: the dates are compared, and the result is a text of one, as long as
    /// the longest argument. `None` if there are no such arguments.
    pub(super) fn extreme_moment(&self, function: Function, args: &[Expr]) -> EvalResult<Option<Expr>> {
        if !matches!(function, Function::Greatest | Function::Least) {
            return Ok(None);
        }
        let args = self.extreme_operands(args.to_vec());
        let Some(date) = date_beside_others(&args) else { return Ok(None) };
        let longest = args.iter().map(|arg| text_len(&arg.ty)).max().unwrap_or(0);
        let ty = match args.iter().any(|arg| arg.ty.is_bytes()) {
            true => bytes_type(longest),
            false => string_type(longest, self.connection_collation),
        };
        let read = |arg: Expr| if arg.ty == SqlType::Null { arg } else { self.convert(arg, date) };
        let args: Vec<_> = args.into_iter().map(read).collect();
        let nullable = args.iter().any(|arg| arg.nullable);
        let extreme = Expr::new(ExprKind::Call(function, args), date, nullable);
        Ok(Some(Expr::new(ExprKind::Convert(Box::new(extreme)), ty, nullable)))
    }

    /// What GREATEST and LEAST are given, without TIMESTAMPs, documents and bits.
    pub(super) fn extreme_operands(&self, args: Vec<Expr>) -> Vec<Expr> {
        let args = args.into_iter().map(|arg| self.session_time(arg)).collect();
        self.without_json(self.coded_alternatives(self.bits_as_numbers(args)), false)
    }

    /// The date or time, or its number, of an expression that gives a text of one; others as they are.
    pub(super) fn moment_as_number(&self, expr: Expr) -> Expr {
        if !expr.ty.is_string() && !expr.ty.is_bytes() {
            return expr;
        }
        if let Some(extreme) = extreme_in(&expr) {
            return extreme.clone();
        }
        let nullable = expr.nullable;
        match expr.kind {
            kind @ ExprKind::UnitCall {
                function: UnitFunction::DateAdd | UnitFunction::DateSub | UnitFunction::TimestampAdd,
                ..
            }
            | kind @ ExprKind::Call(Function::AddTime | Function::SubTime, _) => {
                Expr::new(kind, SqlType::DOUBLE, nullable)
            }
            // A TIME beside texts is compared as a number then.
            ExprKind::Call(function @ (Function::Greatest | Function::Least), args)
                if args.iter().any(|arg| time_in(arg).is_some()) =>
            {
                let number = |arg: Expr| self.to_double(time_in(&arg).cloned().unwrap_or(arg));
                let args = args.into_iter().map(number).collect();
                Expr::new(ExprKind::Call(function, args), SqlType::DOUBLE, nullable)
            }
            kind => Expr { kind, ..expr },
        }
    }

    /// As [`Self::moment_as_number`], but for sums, whose texts are read where an integer is asked for.
    pub(super) fn extreme_as_number(&self, expr: Expr) -> Expr {
        extreme_in(&expr).cloned().unwrap_or(expr)
    }
}

/// Whether it is the sum of a date and an interval that is a text.
pub(super) fn is_sum_as_text(expr: &Expr) -> bool {
    let function = match &expr.kind {
        ExprKind::UnitCall { function, .. } => function,
        _ => return false,
    };
    let is_sum =
        matches!(function, UnitFunction::DateAdd | UnitFunction::DateSub | UnitFunction::TimestampAdd);
    is_sum && expr.ty.is_string()
}

/// The greatest or least date of which an expression is the text.
fn extreme_in(expr: &Expr) -> Option<&Expr> {
    let ExprKind::Convert(inner) = &expr.kind else { return None };
    let is_extreme = matches!(inner.kind, ExprKind::Call(Function::Greatest | Function::Least, _));
    (is_extreme && is_date_like(&inner.ty)).then_some(&**inner)
}

/// The TIME of which an expression is the text.
fn time_in(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Convert(inner) if matches!(inner.ty, SqlType::Time { .. }) => Some(inner),
        _ => None,
    }
}

/// As what GREATEST and LEAST read texts, numbers and years that stand beside dates, and times with them.
fn date_beside_others(args: &[Expr]) -> Option<SqlType> {
    let mut dates = args.iter().map(|arg| arg.ty).filter(is_date_like);
    let is_other = |arg: &Expr| {
        use ValueClass as C;
        matches!(ValueClass::of(&arg.ty), C::Text | C::Bytes | C::Int | C::Decimal | C::Double)
    };
    if !args.iter().any(is_other) {
        return None;
    }
    match dates.next()? {
        SqlType::Date if dates.all(|ty| ty == SqlType::Date) => Some(SqlType::Date),
        _ => Some(SqlType::DateTime { fsp: args.iter().map(fsp_of_expr).max().unwrap_or(0) }),
    }
}

pub(super) const fn is_date_like(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. })
}
