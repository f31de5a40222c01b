//! A small binder for tests: SQL text of an expression without columns, to `Expr`.

use avocet_types::expr::{
    ArithOp, CastTarget, CompareOp, Expr, Function, IntervalUnit, IsTest, Typer, UnitFunction,
};
use avocet_types::{Collation, Datum, Decimal, EvalError, SqlType};
use sqlparser::ast::{self, BinaryOperator as B, DataType, FunctionArg, FunctionArgExpr, FunctionArguments};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

pub fn bind(sql: &str) -> Result<Expr, EvalError> {
    let typer = Typer::default();
    // The parser knows no compound units: a unit that MySQL does not have stands for them.
    let compound = COMPOUND_UNITS
        .iter()
        .find(|name| sql.contains(&format!(" {name})")) || sql.contains(&format!("({name} ")));
    let replaced = compound.map_or(sql.to_owned(), |name| sql.replace(name, "ISOYEAR"));
    let mut parser =
        Parser::new(&MySqlDialect {}).try_with_sql(&replaced).expect("the test's SQL has tokens");
    let parsed = parser.parse_expr().unwrap_or_else(|error| panic!("{sql}: {error}"));
    Binder { typer, compound: compound.and_then(|name| IntervalUnit::parse(name)) }.expr(&parsed)
}

struct Binder {
    typer: Typer,
    compound: Option<IntervalUnit>,
}

const COMPOUND_UNITS: [&str; 11] = [
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
];

type Bound = Result<Expr, EvalError>;

impl Binder {
    fn expr(&self, e: &ast::Expr) -> Bound {
        let t = &self.typer;
        match e {
            ast::Expr::Nested(inner) => self.expr(inner),
            ast::Expr::Value(value) => Ok(self.value(&value.value)),
            ast::Expr::TypedString(typed) => self.typed(&typed.data_type, &typed.value.value),
            ast::Expr::UnaryOp { op, expr } => {
                let inner = self.expr(expr)?;
                Ok(match op {
                    ast::UnaryOperator::Minus => t.negate(inner),
                    ast::UnaryOperator::Not | ast::UnaryOperator::BangNot => t.not(inner),
                    ast::UnaryOperator::BitwiseNot => t.call(Function::BitNot, vec![inner])?,
                    _ => inner,
                })
            }
            ast::Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            ast::Expr::IsNull(e) => Ok(t.is(self.expr(e)?, IsTest::Null, false)),
            ast::Expr::IsNotNull(e) => Ok(t.is(self.expr(e)?, IsTest::Null, true)),
            ast::Expr::IsTrue(e) => Ok(t.is(self.expr(e)?, IsTest::True, false)),
            ast::Expr::IsNotTrue(e) => Ok(t.is(self.expr(e)?, IsTest::True, true)),
            ast::Expr::IsFalse(e) => Ok(t.is(self.expr(e)?, IsTest::False, false)),
            ast::Expr::Between { expr, negated, low, high } => {
                t.between(self.expr(expr)?, self.expr(low)?, self.expr(high)?, *negated)
            }
            ast::Expr::InList { expr, list, negated } => {
                t.in_list(self.expr(expr)?, self.list(list)?, *negated)
            }
            ast::Expr::Like { negated, expr, pattern, escape_char, .. } => {
                let escape = match escape_char {
                    None => Some('\\'),
                    Some(value) => value.to_string().trim_matches('\'').chars().next(),
                };
                t.like(self.expr(expr)?, self.expr(pattern)?, escape, *negated)
            }
            ast::Expr::RLike { negated, expr, pattern, .. } => {
                t.regexp(self.expr(expr)?, self.expr(pattern)?, *negated)
            }
            ast::Expr::Case { operand, conditions, else_result, .. } => {
                let operand = operand.as_ref().map(|o| self.expr(o)).transpose()?;
                let branches = conditions
                    .iter()
                    .map(|w| Ok((self.expr(&w.condition)?, self.expr(&w.result)?)))
                    .collect::<Result<_, EvalError>>()?;
                t.case(operand, branches, else_result.as_ref().map(|e| self.expr(e)).transpose()?)
            }
            ast::Expr::Cast { expr, data_type, .. } => t.cast(self.expr(expr)?, target(data_type)),
            ast::Expr::Convert { expr, data_type: Some(data_type), .. } => {
                t.cast(self.expr(expr)?, target(data_type))
            }
            ast::Expr::Collate { expr, collation } => {
                let collation =
                    Collation::by_name(&collation.to_string()).expect("the test names a collation");
                t.collate(self.expr(expr)?, collation)
            }
            ast::Expr::Extract { field, expr, .. } => {
                t.unit_call(UnitFunction::Extract, self.unit(&field.to_string()), vec![self.expr(expr)?])
            }
            ast::Expr::Ceil { expr, .. } => t.call(Function::Ceil, vec![self.expr(expr)?]),
            ast::Expr::Floor { expr, .. } => t.call(Function::Floor, vec![self.expr(expr)?]),
            ast::Expr::Position { expr, r#in } => {
                t.call(Function::Locate, vec![self.expr(expr)?, self.expr(r#in)?])
            }
            ast::Expr::Substring { expr, substring_from, substring_for, .. } => {
                let mut args = vec![self.expr(expr)?];
                for part in [substring_from, substring_for].into_iter().flatten() {
                    args.push(self.expr(part)?);
                }
                t.call(Function::Substring, args)
            }
            ast::Expr::Trim { expr, trim_where, trim_what, .. } => {
                let mut args = vec![self.expr(expr)?];
                if let Some(what) = trim_what {
                    args.push(self.expr(what)?);
                }
                let function = match trim_where {
                    Some(ast::TrimWhereField::Leading) => Function::TrimLeading,
                    Some(ast::TrimWhereField::Trailing) => Function::TrimTrailing,
                    _ => Function::Trim,
                };
                t.call(function, args)
            }
            ast::Expr::Function(function) => self.function(function),
            other => panic!("the test binder does not know {other:?}"),
        }
    }

    fn unit(&self, name: &str) -> IntervalUnit {
        match (name, self.compound) {
            ("ISOYEAR", Some(unit)) => unit,
            _ => IntervalUnit::parse(name).unwrap_or_else(|| panic!("no unit {name}")),
        }
    }

    fn list(&self, exprs: &[ast::Expr]) -> Result<Vec<Expr>, EvalError> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn binary(&self, left: &ast::Expr, op: &B, right: &ast::Expr) -> Bound {
        let t = &self.typer;
        // date ± INTERVAL
        for (date, interval) in [(left, right), (right, left)] {
            if let ast::Expr::Interval(interval) = interval {
                let function = if *op == B::Minus { UnitFunction::DateSub } else { UnitFunction::DateAdd };
                return self.interval(function, date, interval);
            }
        }
        let (l, r) = (self.expr(left)?, self.expr(right)?);
        match op {
            B::Plus => t.arith(ArithOp::Add, l, r),
            B::Minus => t.arith(ArithOp::Sub, l, r),
            B::Multiply => t.arith(ArithOp::Mul, l, r),
            B::Divide => t.arith(ArithOp::Div, l, r),
            B::MyIntegerDivide => t.arith(ArithOp::IntDiv, l, r),
            B::Modulo => t.arith(ArithOp::Mod, l, r),
            B::Eq => t.compare(CompareOp::Eq, l, r),
            B::Spaceship => t.compare(CompareOp::NullSafeEq, l, r),
            B::NotEq => t.compare(CompareOp::Ne, l, r),
            B::Lt => t.compare(CompareOp::Lt, l, r),
            B::LtEq => t.compare(CompareOp::Le, l, r),
            B::Gt => t.compare(CompareOp::Gt, l, r),
            B::GtEq => t.compare(CompareOp::Ge, l, r),
            B::And => Ok(t.and(vec![l, r])),
            B::Or => Ok(t.or(vec![l, r])),
            B::Xor => Ok(t.xor(l, r)),
            B::BitwiseAnd => t.call(Function::BitAnd, vec![l, r]),
            B::BitwiseOr => t.call(Function::BitOr, vec![l, r]),
            B::BitwiseXor => t.call(Function::BitXor, vec![l, r]),
            B::PGBitwiseShiftLeft => t.call(Function::ShiftLeft, vec![l, r]),
            B::PGBitwiseShiftRight => t.call(Function::ShiftRight, vec![l, r]),
            other => panic!("the test binder does not know {other}"),
        }
    }

    fn interval(&self, function: UnitFunction, date: &ast::Expr, interval: &ast::Interval) -> Bound {
        let unit = self.unit(&interval.leading_field.as_ref().expect("a unit").to_string());
        self.typer.unit_call(function, unit, vec![self.expr(date)?, self.expr(&interval.value)?])
    }

    fn function(&self, function: &ast::Function) -> Bound {
        let name = function.name.to_string();
        let args: Vec<&ast::Expr> = match &function.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => e,
                    other => panic!("{other}"),
                })
                .collect(),
            _ => Vec::new(),
        };
        let upper = name.to_ascii_uppercase();
        if let ("DATE_ADD" | "DATE_SUB" | "ADDDATE" | "SUBDATE", [date, ast::Expr::Interval(interval)]) =
            (&*upper, &args[..])
        {
            let add = matches!(&*upper, "DATE_ADD" | "ADDDATE");
            let function = if add { UnitFunction::DateAdd } else { UnitFunction::DateSub };
            return self.interval(function, date, interval);
        }
        if let ("TIMESTAMPDIFF" | "TIMESTAMPADD", [what, a, b]) = (&*upper, &args[..]) {
            let function = if upper == "TIMESTAMPADD" {
                UnitFunction::TimestampAdd
            } else {
                UnitFunction::TimestampDiff
            };
            return self.typer.unit_call(
                function,
                self.unit(&what.to_string()),
                vec![self.expr(a)?, self.expr(b)?],
            );
        }
        let known = Function::lookup(&name).unwrap_or_else(|| panic!("no function {name}"));
        let args = args.into_iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
        self.typer.call(known, args)
    }

    fn value(&self, value: &ast::Value) -> Expr {
        match value {
            ast::Value::Null => Expr::null(),
            ast::Value::Boolean(b) => Expr::bool(*b),
            ast::Value::SingleQuotedString(s) | ast::Value::DoubleQuotedString(s) => {
                self.typer.string(s.clone())
            }
            ast::Value::HexStringLiteral(hex) => {
                let bytes: Vec<u8> = (0..hex.len())
                    .step_by(2)
                    .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex digits"))
                    .collect();
                self.typer.bytes(bytes)
            }
            ast::Value::Number(text, _) => number(text),
            other => panic!("the test binder does not know the literal {other}"),
        }
    }

    fn typed(&self, ty: &DataType, value: &ast::Value) -> Bound {
        let target = match ty {
            DataType::Date => CastTarget::Date,
            DataType::Time(..) => CastTarget::Time(fraction_digits(value)),
            DataType::Timestamp(..) => CastTarget::DateTime(fraction_digits(value)),
            other => panic!("a literal of type {other}"),
        };
        self.typer.cast(self.value(value), target).map(Expr::fold)
    }
}

fn fraction_digits(value: &ast::Value) -> u64 {
    let text = value.to_string();
    text.trim_matches('\'').rsplit_once('.').map_or(0, |(_, digits)| digits.len() as u64)
}

fn number(text: &str) -> Expr {
    if let Ok(v) = text.parse::<i64>() {
        return Expr::int(v);
    }
    if let Ok(v) = text.parse::<u64>() {
        return Expr::literal(Datum::UInt(v), SqlType::BIGINT_UNSIGNED);
    }
    if text.contains(['e', 'E']) {
        return Expr::literal(Datum::Double(text.parse().expect("a double")), SqlType::DOUBLE);
    }
    let value = Decimal::parse_prefix(text.as_bytes()).value;
    let scale = value.scale();
    let precision = (value.digits() as u8).max(scale).max(1);
    Expr::literal(Datum::Decimal(value), SqlType::Decimal { precision, scale, unsigned: false })
}

fn target(ty: &DataType) -> CastTarget {
    use ast::ExactNumberInfo as Exact;
    match ty {
        DataType::Signed | DataType::SignedInteger => CastTarget::Signed,
        DataType::Unsigned | DataType::UnsignedInteger => CastTarget::Unsigned,
        DataType::Decimal(Exact::None) => CastTarget::Decimal(None),
        DataType::Decimal(Exact::Precision(p)) => CastTarget::Decimal(Some((*p, 0))),
        DataType::Decimal(Exact::PrecisionAndScale(p, s)) => CastTarget::Decimal(Some((*p, *s as u64))),
        DataType::Double(_) => CastTarget::Double,
        DataType::Float(_) => CastTarget::Float,
        DataType::Char(len) => CastTarget::Char(length(len), None),
        DataType::Binary(len) => CastTarget::Binary(*len),
        DataType::Date => CastTarget::Date,
        DataType::Datetime(fsp) => CastTarget::DateTime(fsp.unwrap_or(0)),
        DataType::Time(fsp, _) => CastTarget::Time(fsp.unwrap_or(0)),
        DataType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("year") => CastTarget::Year,
        other => panic!("a cast to {other}"),
    }
}

fn length(len: &Option<ast::CharacterLength>) -> Option<u64> {
    match len {
        Some(ast::CharacterLength::IntegerLength { length, .. }) => Some(*length),
        _ => None,
    }
}
