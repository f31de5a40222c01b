//! Evaluating an XPath over a document, with MySQL's arithmetic, comparisons and conversions.
//!
//! A set of nodes is a string where one is wanted: the texts in the nodes. As a condition it holds if it has one node, no more and
//! no less, as in MySQL.

use std::cmp::Ordering;

use super::xpath::{Axis, PathStart, Step, XpathExpr, XpathFunction};
use super::{Document, NodeKind};
use crate::collation::Collation;
use crate::datum::{Datum, Value};
use crate::decimal::Decimal;
use crate::expr::coerce;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::func::string::too_large;
use crate::expr::program::arith::{decimal_op, double_op, int_op, negate};
use crate::expr::program::pattern::find_text;
use crate::expr::{ArithOp, CompareOp};
use crate::number;
use crate::sql_type::SqlType;

/// What an expression gives.
pub(crate) enum Found {
    /// In the document's order, each once.
    Nodes(Vec<usize>),
    Value(Value),
}

pub(crate) struct Evaluation<'e> {
    pub document: &'e Document<'e>,
    pub collation: Collation,
    pub ctx: &'e EvalContext,
}

/// The node that an expression is about, and its place among those that a step found.
#[derive(Clone, Copy)]
struct Focus {
    node: usize,
    position: usize,
    size: usize,
}

const TOP: Focus = Focus { node: 0, position: 1, size: 1 };

impl Evaluation<'_> {
    pub fn run(&self, expr: &XpathExpr) -> EvalResult<Found> {
        self.found(expr, TOP)
    }

    pub fn string_of(&self, found: Found) -> Value {
        match found {
            Found::Nodes(nodes) => Datum::Str(self.document.string(&nodes).into()),
            Found::Value(value) => text(value),
        }
    }

    fn found(&self, expr: &XpathExpr, at: Focus) -> EvalResult<Found> {
        if expr.is_nodeset() {
            return Ok(Found::Nodes(self.nodes(expr, at)?));
        }
        Ok(Found::Value(match expr {
            XpathExpr::Or(sides) => match (self.truth(&sides[0], at)?, self.truth(&sides[1], at)?) {
                (Some(true), _) | (_, Some(true)) => Datum::Int(1),
                (Some(false), Some(false)) => Datum::Int(0),
                _ => Datum::Null,
            },
            XpathExpr::And(sides) => match (self.truth(&sides[0], at)?, self.truth(&sides[1], at)?) {
                (Some(false), _) | (_, Some(false)) => Datum::Int(0),
                (Some(true), Some(true)) => Datum::Int(1),
                _ => Datum::Null,
            },
            XpathExpr::Compare(op, sides) => self.comparison(*op, sides, at)?,
            XpathExpr::Arith(op, sides) => {
                let (left, right) = (self.value(&sides[0], at)?, self.value(&sides[1], at)?);
                self.arithmetic(*op, left, right)?
            }
            XpathExpr::Negate(inner) => self.negated(self.value(inner, at)?)?,
            XpathExpr::Number(digits) => literal(digits),
            XpathExpr::Text(text) => Datum::Str(text.clone().into()),
            XpathExpr::Variable(name) => self.ctx.user_variable(name),
            XpathExpr::Call(function, args) => self.call(*function, args, at)?,
            XpathExpr::Path { .. } | XpathExpr::Union(_) => unreachable!("these are sets of nodes"),
        }))
    }

    /// A value, of nodes their string.
    fn value(&self, expr: &XpathExpr, at: Focus) -> EvalResult<Value> {
        Ok(match self.found(expr, at)? {
            Found::Nodes(nodes) => Datum::Str(self.document.string(&nodes).into()),
            Found::Value(value) => value,
        })
    }

    fn truth(&self, expr: &XpathExpr, at: Focus) -> EvalResult<Option<bool>> {
        match self.found(expr, at)? {
            Found::Nodes(nodes) => Ok(Some(nodes.len() == 1)),
            Found::Value(value) => Ok(self.double(value)?.map(|number| number != 0.0)),
        }
    }

    fn convert(&self, value: Value, to: &SqlType) -> EvalResult<Value> {
        // What is no number is one with a warning, also where values are stored.
        let from = match &value {
            Datum::Str(text) => SqlType::VarChar { len: text.len() as u32, collation: self.collation },
            other => other.natural_type(self.collation),
        };
        let mut context = self.ctx.quiet();
        context.storing = false;
        let converted = coerce::convert(value, &from, to, &context)?.into_owned();
        context.take_warnings().into_iter().for_each(|warning| self.ctx.push_warning(warning));
        Ok(converted)
    }

    fn double(&self, value: Value) -> EvalResult<Option<f64>> {
        Ok(match self.convert(value, &SqlType::DOUBLE)? {
            Datum::Double(number) => Some(number),
            _ => None,
        })
    }

    fn int(&self, value: Value) -> EvalResult<Option<i64>> {
        Ok(match self.convert(value, &SqlType::BIGINT)? {
            Datum::Int(number) => Some(number),
            _ => None,
        })
    }

    fn arithmetic(&self, op: ArithOp, left: Value, right: Value) -> EvalResult<Value> {
        if left.is_null() || right.is_null() {
            return Ok(Datum::Null);
        }
        let shown = format!("({} {} {})", shown(&left), symbol(op), shown(&right));
        let is_int = |value: &Value| matches!(value, Datum::Int(_));
        let is_exact = |value: &Value| matches!(value, Datum::Int(_) | Datum::Decimal(_));
        if is_int(&left) && is_int(&right) {
            return int_op(op, &left, &right, false, &shown, self.ctx);
        }
        if is_exact(&left) && is_exact(&right) {
            let (left, right) = (decimal(&left), decimal(&right));
            if op == ArithOp::IntDiv {
                return int_op(op, &Datum::Decimal(left), &Datum::Decimal(right), false, &shown, self.ctx);
            }
            let scale = match op {
                ArithOp::Mul => (left.scale() + right.scale()).min(Decimal::MAX_SCALE),
                _ => left.scale().max(right.scale()),
            };
            let result = decimal_op(op, &left, &right, scale, &shown, self.ctx)?;
            return Ok(result.map_or(Datum::Null, Datum::Decimal));
        }
        let (Some(left), Some(right)) = (self.double(left)?, self.double(right)?) else {
            return Ok(Datum::Null);
        };
        let result = double_op(op, left, right, &shown, self.ctx)?;
        Ok(match result {
            Some(result) if op == ArithOp::IntDiv => Datum::Int(result as i64),
            Some(result) => Datum::Double(result),
            None => Datum::Null,
        })
    }

    fn negated(&self, value: Value) -> EvalResult<Value> {
        Ok(match value {
            Datum::Str(_) => self.double(value)?.map_or(Datum::Null, |number| Datum::Double(-number)),
            value => {
                let text = format!("-({})", shown(&value));
                negate(value, &text)?
            }
        })
    }

    fn comparison(&self, op: CompareOp, sides: &[XpathExpr; 2], at: Focus) -> EvalResult<Value> {
        let truth = match (self.found(&sides[0], at)?, self.found(&sides[1], at)?) {
            (Found::Nodes(nodes), Found::Value(value)) => self.any_text(op, &nodes, &value)?,
            (Found::Value(value), Found::Nodes(nodes)) => self.any_text(op.flipped(), &nodes, &value)?,
            (Found::Value(left), Found::Value(right)) => self.compare(op, left, right)?,
            (Found::Nodes(_), Found::Nodes(_)) => unreachable!("the parser refuses it"),
        };
        Ok(truth.map_or(Datum::Null, |truth| Datum::Int(truth.into())))
    }

    /// Whether a text directly in one of the nodes compares so with a value.
    fn any_text(&self, op: CompareOp, nodes: &[usize], value: &Value) -> EvalResult<Option<bool>> {
        for node in nodes {
            for text in self.document.texts(*node) {
                if self.compare(op, Datum::Str(text.to_owned().into()), value.clone())? == Some(true) {
                    return Ok(Some(true));
                }
            }
        }
        Ok(Some(false))
    }

    fn compare(&self, op: CompareOp, left: Value, right: Value) -> EvalResult<Option<bool>> {
        let ordering = match (&left, &right) {
            (Datum::Null, _) | (_, Datum::Null) => None,
            (Datum::Str(left), Datum::Str(right)) => Some(self.collation.compare(left, right)),
            (Datum::Int(_) | Datum::Decimal(_), Datum::Int(_) | Datum::Decimal(_)) => {
                Some(decimal(&left).cmp(&decimal(&right)))
            }
            _ => {
                let (left, right) = (self.double(left)?, self.double(right)?);
                left.zip(right).and_then(|(left, right): (f64, f64)| left.partial_cmp(&right))
            }
        };
        Ok(ordering.map(|ordering: Ordering| op.holds(ordering)))
    }

    fn call(&self, function: XpathFunction, args: &[XpathExpr], at: Focus) -> EvalResult<Value> {
        use XpathFunction as F;
        let own_text = || Datum::Str(self.document.string(&[at.node]).into());
        let string = |index: usize| self.value(&args[index], at).map(text);
        let of_double = |round: fn(f64) -> f64| {
            let value = self.value(&args[0], at)?;
            if matches!(value, Datum::Int(_)) {
                return Ok(value);
            }
            let number = self.double(value)?;
            Ok(number.map_or(Datum::Null, |number| Datum::Double(round(number))))
        };
        let truth = |truth: Option<bool>| truth.map_or(Datum::Null, |truth| Datum::Int(truth.into()));
        Ok(match function {
            F::True => Datum::Int(1),
            F::False => Datum::Int(0),
            F::Boolean => truth(self.truth(&args[0], at)?),
            F::Not => truth(self.truth(&args[0], at)?.map(|holds| !holds)),
            F::Position => Datum::Int(at.position as i64),
            F::Last => Datum::Int(at.size as i64),
            F::Count => Datum::Int(self.nodes(&args[0], at)?.len() as i64),
            F::Sum => {
                let nodes = self.nodes(&args[0], at)?;
                let texts = nodes.iter().flat_map(|node| self.document.texts(*node));
                let numbers = texts.map(|text| number::parse_f64(text.as_bytes()).value);
                // Of none it is 0, not −0.
                Datum::Double(numbers.fold(0.0, |sum, number| sum + number))
            }
            F::Number if args.is_empty() => self.double(own_text())?.map_or(Datum::Null, Datum::Double),
            F::Number => return of_double(|number| number),
            F::Round => return of_double(f64::round_ties_even),
            F::Floor => return of_double(f64::floor),
            F::Ceiling => return of_double(f64::ceil),
            F::StringLength => {
                let counted = if args.is_empty() { own_text() } else { string(0)? };
                match counted {
                    Datum::Str(text) => Datum::Int(text.chars().count() as i64),
                    _ => Datum::Null,
                }
            }
            // Of more than two MySQL takes the first two.
            F::Concat => match (string(0)?, string(1)?) {
                (Datum::Str(first), Datum::Str(second))
                    if (first.len() + second.len()) as u64 > self.ctx.max_allowed_packet =>
                {
                    return too_large("concat", self.ctx);
                }
                (Datum::Str(first), Datum::Str(second)) => Datum::Str((first.into_owned() + &second).into()),
                _ => Datum::Null,
            },
            F::Contains => match (string(0)?, string(1)?) {
                (Datum::Str(text), Datum::Str(part)) => {
                    Datum::Int(find_text(&text, &part, Some(self.collation)).is_some().into())
                }
                _ => Datum::Null,
            },
            F::Substring => {
                let from = self.int(self.value(&args[1], at)?)?;
                let length = match args.get(2) {
                    Some(length) => self.int(self.value(length, at)?)?,
                    None => Some(i64::MAX),
                };
                match (string(0)?, from, length) {
                    (Datum::Str(text), Some(from), Some(length)) => substring(&text, from, length),
                    _ => Datum::Null,
                }
            }
        })
    }

    fn nodes(&self, expr: &XpathExpr, at: Focus) -> EvalResult<Vec<usize>> {
        let mut nodes = match expr {
            XpathExpr::Union(sides) => {
                let mut nodes = self.nodes(&sides[0], at)?;
                nodes.extend(self.nodes(&sides[1], at)?);
                nodes
            }
            XpathExpr::Path { start, steps } => {
                let mut nodes = match start {
                    PathStart::Root => vec![0],
                    PathStart::Context => vec![at.node],
                    PathStart::Nodes(expr) => self.nodes(expr, at)?,
                };
                for step in steps {
                    nodes = self.walk(&nodes, step)?;
                }
                nodes
            }
            _ => Vec::new(),
        };
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    fn walk(&self, from: &[usize], step: &Step) -> EvalResult<Vec<usize>> {
        let mut found = Vec::new();
        for node in from {
            self.ctx.check()?;
            let mut candidates = self.on_axis(*node, step.axis);
            if let Some(name) = &step.name {
                let has_name = |node: &usize| {
                    matches!(self.document.nodes[*node].kind, NodeKind::Tag | NodeKind::Attribute)
                        && self.document.name_or_text(*node) == name
                };
                candidates.retain(has_name);
            }
            for predicate in &step.predicates {
                candidates = self.chosen(candidates, predicate)?;
            }
            found.extend(candidates);
            // Nodes within one another find the same ones again and again.
            if found.len() > 2 * self.document.nodes.len() {
                found.sort_unstable();
                found.dedup();
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// In the order of the axis.
    fn on_axis(&self, node: usize, axis: Axis) -> Vec<usize> {
        let document = self.document;
        let of_kind = |kind: NodeKind| {
            document.children(node).filter(move |child| document.nodes[*child].kind == kind).collect()
        };
        let above = || {
            let parent = |node: &usize| Some(document.nodes[*node].parent).filter(|parent| parent != node);
            std::iter::successors(parent(&node), move |node| parent(node))
        };
        match axis {
            Axis::Child => of_kind(NodeKind::Tag),
            Axis::Attribute => of_kind(NodeKind::Attribute),
            Axis::Descendant => document.descendants(node).collect(),
            Axis::DescendantOrSelf => std::iter::once(node).chain(document.descendants(node)).collect(),
            Axis::Parent => above().take(1).collect(),
            // The root is none of them.
            Axis::Ancestor => above().filter(|node| *node > 0).collect(),
            Axis::AncestorOrSelf => std::iter::once(node).chain(above()).filter(|node| *node > 0).collect(),
            Axis::Itself => vec![node],
        }
    }

    /// The nodes for which a predicate holds: a condition, or the place of one.
    fn chosen(&self, nodes: Vec<usize>, predicate: &XpathExpr) -> EvalResult<Vec<usize>> {
        let size = nodes.len();
        let is_condition = predicate.is_truth() || predicate.is_nodeset();
        let mut chosen = Vec::new();
        for (index, node) in nodes.into_iter().enumerate() {
            let at = Focus { node, position: index + 1, size };
            let holds = match is_condition {
                true => self.truth(predicate, at)? == Some(true),
                false => self.int(self.value(predicate, at)?)? == Some(at.position as i64),
            };
            if holds {
                chosen.push(node);
            }
        }
        Ok(chosen)
    }
}

/// Digits, with a point or without.
fn literal(digits: &str) -> Value {
    match digits.parse() {
        Ok(int) => Datum::Int(int),
        Err(_) => Datum::Decimal(Decimal::parse_prefix(digits.as_bytes()).value),
    }
}

fn decimal(value: &Value) -> Decimal {
    match value {
        Datum::Int(int) => Decimal::new((*int).into(), 0),
        Datum::Decimal(decimal) => decimal.clone(),
        _ => Decimal::new(0, 0),
    }
}

fn symbol(op: ArithOp) -> &'static str {
    match op {
        ArithOp::Add => "+",
        ArithOp::Sub => "-",
        ArithOp::Mul => "*",
        ArithOp::Div => "/",
        ArithOp::IntDiv => "DIV",
        ArithOp::Mod => "%",
    }
}

/// A value as a text; NULL stays.
fn text(value: Value) -> Value {
    match value {
        Datum::Null | Datum::Str(_) => value,
        Datum::Bytes(bytes) => Datum::Str(String::from_utf8_lossy(&bytes).into_owned().into()),
        other => Datum::Str(shown(&other).into()),
    }
}

fn shown(value: &Value) -> String {
    let mut bytes = Vec::new();
    match value {
        Datum::Int(int) => number::write_i64(*int, &mut bytes),
        Datum::UInt(int) => number::write_u64(*int, &mut bytes),
        Datum::Decimal(decimal) => decimal.write(&mut bytes),
        Datum::Double(double) => number::write_f64(*double, &mut bytes),
        Datum::Str(text) => return format!("'{text}'"),
        _ => {}
    }
    String::from_utf8(bytes).expect("digits")
}

/// SUBSTRING of SQL: positions count from 1, or from the end if they are negative.
fn substring(text: &str, from: i64, length: i64) -> Value {
    let count = text.chars().count() as i64;
    let skip = if from < 0 { count.saturating_add(from) } else { from - 1 };
    let taken: String = match skip {
        0.. if length > 0 => {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            text.chars().skip(skip as usize).take(length).collect()
        }
        _ => String::new(),
    };
    Datum::Str(taken.into())
}
