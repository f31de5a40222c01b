//! Expressions as SQL text: for EXPLAIN and for the expression that an error names, as MySQL prints it in lower case with
//! all parentheses.

use std::fmt::{self, Display, Formatter, Write};

use crate::datum::Datum;
use crate::expr::{ArithOp, Expr, ExprKind, Function, IsTest, UnitFunction};
use crate::sql_type::SqlType;
use crate::temporal::{SECOND, TimeZone};
use crate::text::to_text;

/// An expression with a name for each column.
pub struct SqlText<'e, F> {
    expr: &'e Expr,
    column_name: F,
}

impl Expr {
    /// The expression as SQL, with columns named by `column_name`.
    pub fn sql<F: Fn(usize) -> String>(&self, column_name: F) -> SqlText<'_, F> {
        SqlText { expr: self, column_name }
    }
}

/// An expression for the error that one of its evaluations may raise. Parameters are places, which
/// [`with_params`] fills in: a program is compiled once, for whatever they are.
pub(crate) struct ErrorText<'e> {
    pub expr: &'e Expr,
    pub column_name: &'e dyn Fn(usize) -> String,
}

impl Display for ErrorText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let param = &|index: usize| format!("{PLACE}{index}{PLACE}");
        write_expr(f, self.expr, Names { column: self.column_name, param })
    }
}

/// Stands on both sides of a parameter's number. No name has it, and literals show it as `\\0`.
const PLACE: char = '\0';

/// The text of an [`ErrorText`], with the parameters' values, or `?` for those that are not known.
pub(crate) fn with_params(text: &str, params: &[Datum<'_>]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PLACE) {
        filled.push_str(before);
        // A text that was cut within a place ends before it.
        let Some((number, after)) = after.split_once(PLACE) else { return filled };
        match number.parse::<usize>().ok().and_then(|index| params.get(index)) {
            Some(value) => filled.push_str(&Literal(value).to_string()),
            None => filled.push('?'),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

struct Literal<'d>(&'d Datum<'d>);

impl Display for Literal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_literal(f, self.0)
    }
}

/// Columns appear as `#0`, `#1`….
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self, Names { column: &|index| format!("#{index}"), param: &|_| "?".to_owned() })
    }
}

impl<F: Fn(usize) -> String> Display for SqlText<'_, F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self.expr, Names { column: &self.column_name, param: &|_| "?".to_owned() })
    }
}

/// What columns and parameters are shown as.
#[derive(Clone, Copy)]
struct Names<'n> {
    column: &'n dyn Fn(usize) -> String,
    param: &'n dyn Fn(usize) -> String,
}

fn write_expr(f: &mut Formatter<'_>, expr: &Expr, names: Names<'_>) -> fmt::Result {
    let one = |f: &mut Formatter<'_>, e: &Expr| write_expr(f, e, names);
    match &expr.kind {
        ExprKind::Column(index) => f.write_str(&(names.column)(*index)),
        ExprKind::Param(index) => f.write_str(&(names.param)(*index)),
        ExprKind::Literal(value) => write_literal(f, value),
        ExprKind::Arith { op, left, right } => infix(f, left, op.symbol(), right, names),
        ExprKind::Negate(inner) => {
            f.write_str("-(")?;
            one(f, inner)?;
            f.write_char(')')
        }
        ExprKind::Compare { op, left, right } => infix(f, left, op.symbol(), right, names),
        ExprKind::And(parts) => joined(f, parts, " and ", names),
        ExprKind::Or(parts) => joined(f, parts, " or ", names),
        ExprKind::Xor(left, right) => infix(f, left, "xor", right, names),
        ExprKind::Not(inner) => {
            f.write_str("(not ")?;
            one(f, inner)?;
            f.write_char(')')
        }
        ExprKind::Is { expr, test, negated } => {
            f.write_char('(')?;
            one(f, expr)?;
            write!(f, " is {}{})", if *negated { "not " } else { "" }, test.name())
        }
        ExprKind::Between { expr, low, high, negated } => {
            f.write_char('(')?;
            one(f, expr)?;
            f.write_str(if *negated { " not between " } else { " between " })?;
            one(f, low)?;
            f.write_str(" and ")?;
            one(f, high)?;
            f.write_char(')')
        }
        ExprKind::InList { expr, list, negated } => {
            f.write_char('(')?;
            one(f, expr)?;
            f.write_str(if *negated { " not in " } else { " in " })?;
            joined(f, list, ",", names)?;
            f.write_char(')')
        }
        ExprKind::Like { expr, pattern, escape, negated } => {
            f.write_char('(')?;
            one(f, expr)?;
            f.write_str(if *negated { " not like " } else { " like " })?;
            one(f, pattern)?;
            match escape {
                Some('\\') => {}
                Some(c) => write!(f, " escape '{c}'")?,
                None => f.write_str(" escape ''")?,
            }
            f.write_char(')')
        }
        ExprKind::Case { branches, otherwise } => {
            f.write_str("(case")?;
            for (when, then) in branches {
                f.write_str(" when ")?;
                one(f, when)?;
                f.write_str(" then ")?;
                one(f, then)?;
            }
            if let Some(otherwise) = otherwise {
                f.write_str(" else ")?;
                one(f, otherwise)?;
            }
            f.write_str(" end)")
        }
        ExprKind::Coalesce(args) => {
            f.write_str("coalesce")?;
            joined(f, args, ",", names)
        }
        ExprKind::Cast(inner) => {
            f.write_str("cast(")?;
            one(f, inner)?;
            f.write_str(" as ")?;
            write_cast_type(f, &expr.ty)?;
            f.write_char(')')
        }
        // Conversions that nobody wrote are not shown.
        ExprKind::Convert(inner) => one(f, inner),
        ExprKind::Collate(inner) => {
            f.write_char('(')?;
            one(f, inner)?;
            let collation = expr.ty.collation().unwrap_or(crate::Collation::BINARY).name();
            write!(f, " collate {collation})")
        }
        ExprKind::Call(Function::Let, args) => one(f, &with_value(args)),
        ExprKind::Call(Function::IntegerOfDouble | Function::TextOfBytes, args) => one(f, &args[0]),
        ExprKind::Call(function, args) => {
            let name = function.name();
            match (name.starts_with(|c: char| c.is_ascii_alphabetic()), &args[..]) {
                (false, [left, right]) => infix(f, left, name, right, names),
                (false, [inner]) => {
                    f.write_str(name)?;
                    one(f, inner)
                }
                _ => {
                    f.write_str(&name.to_ascii_lowercase())?;
                    joined(f, args, ",", names)
                }
            }
        }
        ExprKind::UnitCall { function, unit, args } => {
            let unit = unit.name().to_ascii_lowercase();
            match (function, &args[..]) {
                (UnitFunction::DateAdd | UnitFunction::DateSub, [date, amount]) => {
                    let sign = if *function == UnitFunction::DateAdd { '+' } else { '-' };
                    f.write_char('(')?;
                    one(f, date)?;
                    write!(f, " {sign} interval ")?;
                    one(f, amount)?;
                    write!(f, " {unit})")
                }
                (UnitFunction::Extract, [date]) => {
                    write!(f, "extract({unit} from ")?;
                    one(f, date)?;
                    f.write_char(')')
                }
                (function, args) => {
                    let (name, args) = match (function, args) {
                        (UnitFunction::TimestampAdd, [date, amount]) => ("timestampadd", [amount, date]),
                        (_, [from, to]) => ("timestampdiff", [from, to]),
                        _ => return Err(fmt::Error),
                    };
                    write!(f, "{name}({unit},")?;
                    one(f, args[0])?;
                    f.write_char(',')?;
                    one(f, args[1])?;
                    f.write_char(')')
                }
            }
        }
    }
}

/// What was written where a value stands in several places.
fn with_value(args: &[Expr]) -> Expr {
    args[1].clone().transform(&mut |expr| match expr.kind {
        ExprKind::Call(Function::LetValue, _) => args[0].clone(),
        _ => expr,
    })
}

fn infix(f: &mut Formatter<'_>, left: &Expr, op: &str, right: &Expr, names: Names<'_>) -> fmt::Result {
    f.write_char('(')?;
    write_expr(f, left, names)?;
    write!(f, " {op} ")?;
    write_expr(f, right, names)?;
    f.write_char(')')
}

fn joined(f: &mut Formatter<'_>, parts: &[Expr], separator: &str, names: Names<'_>) -> fmt::Result {
    f.write_char('(')?;
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(separator)?;
        }
        write_expr(f, part, names)?;
    }
    f.write_char(')')
}

fn write_literal(f: &mut Formatter<'_>, value: &Datum<'_>) -> fmt::Result {
    match value {
        Datum::Null => f.write_str("NULL"),
        Datum::Int(v) => write!(f, "{v}"),
        Datum::UInt(v) => write!(f, "{v}"),
        Datum::Str(text) => {
            f.write_char('\'')?;
            for c in text.chars() {
                match c {
                    '\'' => f.write_str("\\'")?,
                    '\\' => f.write_str("\\\\")?,
                    '\0' => f.write_str("\\0")?,
                    '\n' => f.write_str("\\n")?,
                    '\r' => f.write_str("\\r")?,
                    c => f.write_char(c)?,
                }
            }
            f.write_char('\'')
        }
        Datum::Bytes(bytes) => {
            f.write_str("0x")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
        }
        Datum::Date(_) => write!(f, "DATE'{}'", plain_text(value, &SqlType::Date)),
        Datum::Time(micros) => {
            write!(f, "TIME'{}'", plain_text(value, &SqlType::Time { fsp: shown_fsp(*micros) }))
        }
        Datum::DateTime(micros) => {
            let ty = SqlType::DateTime { fsp: shown_fsp(*micros) };
            write!(f, "TIMESTAMP'{}'", plain_text(value, &ty))
        }
        number => f.write_str(&plain_text(number, &SqlType::DOUBLE)),
    }
}

fn shown_fsp(micros: i64) -> u8 {
    if micros % SECOND == 0 { 0 } else { 6 }
}

fn plain_text(value: &Datum<'_>, ty: &SqlType) -> String {
    to_text(value, ty, TimeZone::UTC).unwrap_or_default().into_owned()
}

fn write_cast_type(f: &mut Formatter<'_>, ty: &SqlType) -> fmt::Result {
    let fraction = |f: &mut Formatter<'_>, fsp: u8| if fsp > 0 { write!(f, "({fsp})") } else { Ok(()) };
    match *ty {
        SqlType::Int { unsigned: true, .. } => f.write_str("unsigned"),
        SqlType::Null | SqlType::Bool | SqlType::Int { .. } => f.write_str("signed"),
        SqlType::Decimal { precision, scale, .. } => write!(f, "decimal({precision},{scale})"),
        SqlType::Float(_) => f.write_str("float"),
        SqlType::Double(_) => f.write_str("double"),
        SqlType::Char { len, .. } | SqlType::VarChar { len, .. } => write!(f, "char({len})"),
        SqlType::Text { .. } => f.write_str("char"),
        SqlType::Binary { len } | SqlType::VarBinary { len } => write!(f, "binary({len})"),
        SqlType::Blob { .. } | SqlType::Geometry { .. } => f.write_str("binary"),
        SqlType::Date => f.write_str("date"),
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => {
            f.write_str("datetime")?;
            fraction(f, fsp)
        }
        SqlType::Time { fsp } => {
            f.write_str("time")?;
            fraction(f, fsp)
        }
        SqlType::Year => f.write_str("year"),
        SqlType::Enum(_) | SqlType::Set(_) => f.write_str("char"),
        SqlType::Bit { .. } => f.write_str("unsigned"),
        SqlType::Json => f.write_str("json"),
    }
}

impl ArithOp {
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::IntDiv => "DIV",
            Self::Mod => "%",
        }
    }
}

impl IsTest {
    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::True => "true",
            Self::False => "false",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{EvalContext, Function, RowProgram, SqlMode};

    /// A program is compiled for whatever its parameters are: no error or warning may show their places.
    #[test]
    fn conditions_show_parameters_or_question_marks() {
        let days = Expr::new(ExprKind::Param(0), SqlType::BIGINT, false);
        let call = Expr::new(ExprKind::Call(Function::FromDays, vec![days]), SqlType::Date, true);
        let program = RowProgram::compile(&call).expect("it compiles");
        let params = [Datum::Int(99_999_999)];
        let mut ctx = EvalContext::new(0, 0);
        assert!(program.eval_const(&params, &ctx).expect("a warning").is_null());
        assert_eq!(ctx.take_warnings()[0].message, "DATE value is out of range in 'from_days(?)'");
        (ctx.storing, ctx.sql_mode) = (true, SqlMode::DEFAULT);
        let error = program.eval_const(&params, &ctx).expect_err("it is strict");
        assert_eq!(error.shown(), "DATE value is out of range in 'from_days(99999999)'");
        assert_eq!(with_params("(a - \0", &params), "(a - ");
    }
}
