//! From an `Expr` to nodes.

use std::fmt::Write;

use crate::datum::Datum;
use crate::expr::coerce::is_identity;
use crate::expr::display::ErrorText;
use crate::expr::error::EvalResult;
use crate::expr::func::regexp;
use crate::expr::function::{Function, Nulls};
use crate::expr::program::compare::Comparer;
use crate::expr::program::members::{Members, RowMembers};
use crate::expr::program::pattern::Pattern;
use crate::expr::program::{CallInfo, CallNode, LikePattern, Node, Prepared, UnitCallNode};
use crate::expr::{Expr, ExprKind};
use crate::json::Path;
use crate::sql_type::SqlType;
use crate::xml::xpath::Xpath;

/// Gives a column's name for error texts.
type Names<'n> = &'n dyn Fn(usize) -> String;

pub(crate) fn compile(expr: &Expr, names: Names<'_>) -> EvalResult<Node> {
    Compiler { names }.node(expr)
}

/// No error is longer, nor in MySQL: of an expression it shows the beginning.
const MOST_TEXT: usize = 512;

/// An expression for error texts.
pub(crate) fn text(expr: &Expr, names: Names<'_>) -> Box<str> {
    let mut text = Beginning(String::new());
    // It ends when there is enough.
    let _ = write!(text, "{}", ErrorText { expr, column_name: names });
    text.0.into()
}

/// Takes so much of a text, and refuses more.
struct Beginning(String);

impl Write for Beginning {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        let room = MOST_TEXT - self.0.len();
        self.0.push_str(&part[..part.floor_char_boundary(room)]);
        if part.len() <= room { Ok(()) } else { Err(std::fmt::Error) }
    }
}

struct Compiler<'n> {
    names: Names<'n>,
}

fn is_signed_int(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Bool | SqlType::Int { unsigned: false, .. })
}

impl Compiler<'_> {
    fn boxed(&self, expr: &Expr) -> EvalResult<Box<Node>> {
        self.node(expr).map(Box::new)
    }

    fn pair(&self, left: &Expr, right: &Expr) -> EvalResult<Box<[Node; 2]>> {
        Ok(Box::new([self.node(left)?, self.node(right)?]))
    }

    fn list(&self, exprs: &[Expr]) -> EvalResult<Box<[Node]>> {
        exprs.iter().map(|expr| self.node(expr)).collect()
    }

    fn text(&self, expr: &Expr) -> Box<str> {
        text(expr, self.names)
    }

    fn node(&self, expr: &Expr) -> EvalResult<Node> {
        Ok(match &expr.kind {
            ExprKind::Column(index) => Node::Column(*index),
            ExprKind::Param(index) => Node::Param(*index),
            ExprKind::Literal(value) => Node::Const(value.clone()),
            ExprKind::Arith { .. } => self.arith(expr)?,
            ExprKind::Negate(inner) => Node::Negate { inner: self.boxed(inner)?, text: self.text(expr) },
            ExprKind::Compare { op, left, right } => {
                let sides = self.pair(left, right)?;
                match is_signed_int(&left.ty) && is_signed_int(&right.ty) {
                    true => Node::CompareInt { op: *op, sides },
                    false => Node::Compare { op: *op, by: Comparer::of_all(&[left.ty, right.ty]), sides },
                }
            }
            ExprKind::And(parts) => Node::And(self.list(parts)?),
            ExprKind::Or(parts) => self.or(parts)?,
            ExprKind::Xor(left, right) => Node::Xor(self.pair(left, right)?),
            ExprKind::Not(inner) => Node::Not(self.boxed(inner)?),
            ExprKind::Is { expr, test, negated } => {
                Node::Is { inner: self.boxed(expr)?, test: *test, negated: *negated }
            }
            ExprKind::Between { expr, low, high, negated } => Node::Between {
                by: Comparer::of_all(&[expr.ty, low.ty, high.ty]),
                parts: Box::new([self.node(expr)?, self.node(low)?, self.node(high)?]),
                negated: *negated,
            },
            ExprKind::InList { expr, list, negated } => self.in_list(expr, list, *negated)?,
            ExprKind::Like { expr, pattern, escape, negated } => {
                self.like(expr, pattern, *escape, *negated)?
            }
            ExprKind::Case { branches, otherwise } => Node::Case {
                branches: branches
                    .iter()
                    .map(|(when, then)| Ok((self.node(when)?, self.node(then)?)))
                    .collect::<EvalResult<_>>()?,
                otherwise: otherwise.as_ref().map(|otherwise| self.boxed(otherwise)).transpose()?,
            },
            ExprKind::Coalesce(args) => Node::Coalesce(self.list(args)?),
            ExprKind::Collate(inner) => self.node(inner)?,
            ExprKind::Convert(inner) if is_identity(&inner.ty, &expr.ty) => self.node(inner)?,
            ExprKind::Convert(inner) if !inner.ty.text_stays(&expr.ty) && inner.is_constant() => {
                Node::Recode { inner: self.boxed(inner)?, from: inner.ty, to: expr.ty }
            }
            ExprKind::Convert(inner) => {
                Node::Convert { inner: self.boxed(inner)?, from: inner.ty, to: expr.ty }
            }
            ExprKind::Cast(inner) if matches!(expr.ty, SqlType::Float(_)) => {
                let (inner, from, text) = (self.boxed(inner)?, inner.ty, self.text(expr));
                Node::CastFloat { inner, from, to: expr.ty, text }
            }
            ExprKind::Cast(inner) => Node::Cast { inner: self.boxed(inner)?, from: inner.ty, to: expr.ty },
            ExprKind::Call(Function::Benchmark, args) => {
                Node::Benchmark { count: self.boxed(&args[0])?, expr: self.boxed(&args[1])? }
            }
            ExprKind::Call(Function::Let, args) => {
                Node::Let { value: self.boxed(&args[0])?, body: self.boxed(&args[1])? }
            }
            ExprKind::Call(Function::LetValue, _) => Node::LetValue,
            ExprKind::Call(function, args) => self.call(expr, *function, args)?,
            ExprKind::UnitCall { function, unit, args } => Node::UnitCall(Box::new(UnitCallNode {
                function: *function,
                unit: *unit,
                args: self.list(args)?,
                info: self.call_info(expr, args, Prepared::Nothing),
            })),
        })
    }

    fn arith(&self, expr: &Expr) -> EvalResult<Node> {
        let ExprKind::Arith { op, left, right } = &expr.kind else {
            unreachable!("called for arithmetic only")
        };
        let (op, sides, text) = (*op, self.pair(left, right)?, self.text(expr));
        Ok(match expr.ty {
            SqlType::Double(_) => Node::DoubleArith { op, sides, text },
            SqlType::Decimal { scale, .. } => Node::DecimalArith { op, scale, sides, text },
            ty => Node::IntArith {
                op,
                signed: is_signed_int(&left.ty) && is_signed_int(&right.ty) && is_signed_int(&ty),
                unsigned_result: ty.is_unsigned(),
                sides,
                text,
            },
        })
    }

    fn in_list(&self, expr: &Expr, list: &[Expr], negated: bool) -> EvalResult<Node> {
        let inner = self.boxed(expr)?;
        let ints = || {
            list.iter()
                .map(|item| match item.as_literal()? {
                    Datum::Int(v) => Some(Some(*v)),
                    Datum::Null => Some(None),
                    _ => None,
                })
                .collect::<Option<Vec<Option<i64>>>>()
        };
        if is_signed_int(&expr.ty)
            && let Some(ints) = ints()
        {
            let has_null = ints.contains(&None);
            let mut list: Vec<i64> = ints.into_iter().flatten().collect();
            list.sort_unstable();
            return Ok(Node::InInts { inner, list: list.into(), has_null, negated });
        }
        let types: Vec<SqlType> = std::iter::once(expr).chain(list).map(|e| e.ty).collect();
        let by = Comparer::of_all(&types);
        Ok(match Members::of(by, list) {
            Some((members, has_null)) => {
                Node::InMembers { inner, members: Box::new(members), has_null, negated }
            }
            None => Node::InList { by, inner, list: self.list(list)?, negated },
        })
    }

    fn or(&self, parts: &[Expr]) -> EvalResult<Node> {
        let Some((members, tested)) = RowMembers::of(parts) else { return Ok(Node::Or(self.list(parts)?)) };
        let row = tested.into_iter().map(|tested| self.node(tested)).collect::<EvalResult<_>>()?;
        Ok(Node::InRows { row, members: Box::new(members) })
    }

    fn like(&self, expr: &Expr, pattern: &Expr, escape: Option<char>, negated: bool) -> EvalResult<Node> {
        let collation = expr.ty.collation().or(pattern.ty.collation()).filter(|_| !expr.ty.is_bytes());
        let compiled = match pattern.as_literal() {
            Some(text) if !text.is_null() => LikePattern::Const(Pattern::new(text, escape, collation)),
            _ => LikePattern::Varying { pattern: self.boxed(pattern)?, escape, collation },
        };
        Ok(Node::Like { inner: self.boxed(expr)?, pattern: compiled, negated })
    }

    fn call(&self, expr: &Expr, function: Function, args: &[Expr]) -> EvalResult<Node> {
        let info = function.info();
        let prepared = prepare(function, args)?;
        Ok(Node::Call(Box::new(CallNode {
            function,
            run: info.run,
            strict: matches!(info.nulls, Nulls::Strict | Nulls::Partial),
            args: self.list(args)?,
            info: self.call_info(expr, args, prepared),
        })))
    }

    fn call_info(&self, expr: &Expr, args: &[Expr], prepared: Prepared) -> CallInfo {
        CallInfo {
            ty: expr.ty,
            arg_types: args.iter().map(|arg| arg.ty).collect(),
            text: self.text(expr),
            prepared,
        }
    }
}

/// What a call with constant arguments does beforehand.
fn prepare(function: Function, args: &[Expr]) -> EvalResult<Prepared> {
    if function.takes_json_paths() {
        // What is no path is an error when the call is evaluated, if it is.
        let path = |arg: &Expr| match arg.as_literal() {
            Some(Datum::Str(text)) if text.trim_start().starts_with('$') => Path::parse(text).ok(),
            _ => None,
        };
        return Ok(Prepared::Paths(args.iter().map(path).collect()));
    }
    let flags = match function {
        Function::RegexpLike => 2,
        Function::RegexpSubstr => 4,
        Function::RegexpInstr | Function::RegexpReplace => 5,
        Function::ExtractValue | Function::UpdateXml => {
            return Ok(match args[1].as_literal() {
                Some(Datum::Str(text)) => Prepared::Xpath(Box::new(Xpath::parse(text)?)),
                _ => Prepared::Nothing,
            });
        }
        Function::Rand if args.first().is_some_and(Expr::is_constant) => return Ok(Prepared::Seed),
        _ => return Ok(Prepared::Nothing),
    };
    let literal = |index: usize| match args.get(index).map(Expr::as_literal) {
        None => Some(""),
        Some(Some(Datum::Str(text))) => Some(&**text),
        Some(_) => None,
    };
    let (Some(pattern), Some(flags)) = (literal(1), literal(flags)) else { return Ok(Prepared::Nothing) };
    let types: Vec<SqlType> = args.iter().map(|arg| arg.ty).collect();
    Ok(Prepared::Regex(Box::new(regexp::build(pattern, flags, &types)?)))
}
