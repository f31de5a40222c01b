//! Conditions on the value at a path, which scans test before they give a row.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{ArrowPrimitiveType, Decimal128Type, Float64Type, Int64Type};

use super::find;
use super::form::{Form, Target, for_each_node};
use crate::datum::{Datum, Value};
use crate::expr::CompareOp;
use crate::json::binary::{JsonRef, Node};
use crate::json::order::compare;
use crate::sql_type::Collation;

/// `value at the path op constant`. Nothing of it fails or warns. A row without a value fulfils none.
#[derive(Clone, Debug)]
pub enum PathTest {
    /// Of what JSON_UNQUOTE gives, under utf8mb4_bin.
    Text(CompareOp, Box<str>),
    /// Of what JSON_EXTRACT gives, in the order of documents.
    Document(CompareOp, Box<[u8]>),
    /// Of the value as the target; nothing is said of others.
    Value(Target, CompareOp, Value),
}

impl PathTest {
    /// Whether it says of every value whether it is wanted.
    pub fn is_complete(&self) -> bool {
        !matches!(self, Self::Value(..))
    }

    /// Whether a row with this value may be wanted: certainly, if the value is one that is spoken of.
    pub fn allows(&self, node: Option<Node<'_>>) -> bool {
        let Some(node) = node else { return false };
        match self {
            Self::Text(op, text) => {
                let order = |value: &str| Collation::UTF8MB4_BIN.compare(value, text);
                op.holds(match node.view() {
                    JsonRef::String(value) => order(value),
                    _ => order(&node.unquoted()),
                })
            }
            Self::Document(op, document) => op.holds(compare(node, Node::new(document))),
            Self::Value(target, op, constant) => target
                .of(node)
                .is_none_or(|value| order_of(&value, constant).is_none_or(|order| op.holds(order))),
        }
    }

    /// Calls `drop` with the places of documents whose rows are not wanted.
    pub fn of_documents(&self, documents: &ArrayRef, names: &[Box<str>], drop: &mut dyn FnMut(usize)) {
        let documents = documents.as_binary_view();
        for row in 0..documents.len() {
            let document = documents.is_valid(row).then(|| documents.value(row));
            if !self.allows(document.and_then(|document| find(Node::new(document), names))) {
                drop(row);
            }
        }
    }

    /// The same of a path's column; see [`Form::of_values`](super::Form::of_values).
    pub fn of_values(
        &self,
        values: &ArrayRef,
        marks: Option<&ArrayRef>,
        others: Option<&ArrayRef>,
        names: &[Box<str>],
        drop: &mut dyn FnMut(usize),
    ) {
        if marks.is_none() && self.of_numbers(values, drop) {
            return;
        }
        for_each_node(values, marks, others, names, &mut |row, node| {
            if !self.allows(node) {
                drop(row);
            }
        });
    }

    /// Of numbers that are all of the target; false if they are not.
    fn of_numbers(&self, values: &ArrayRef, drop: &mut dyn FnMut(usize)) -> bool {
        let Self::Value(target, op, constant) = self else { return false };
        let Some(values) = Form::Value(*target).whole(values) else { return false };
        match (target, constant) {
            (Target::Int, Datum::Int(constant)) => {
                let order = |v: i64| Some(v.cmp(constant));
                drop_unless(values.as_primitive::<Int64Type>(), *op, order, drop);
            }
            (Target::Double, Datum::Double(constant)) => {
                let order = |v: f64| v.partial_cmp(constant);
                drop_unless(values.as_primitive::<Float64Type>(), *op, order, drop);
            }
            (Target::Decimal { scale, .. }, Datum::Decimal(constant)) => {
                let unscaled = constant.rescale(*scale).ok().filter(|there| there == constant);
                let Some(unscaled) = unscaled.and_then(|there| there.as_i128()) else { return false };
                let order = |v: i128| Some(v.cmp(&unscaled));
                drop_unless(values.as_primitive::<Decimal128Type>(), *op, order, drop);
            }
            _ => return false,
        }
        true
    }
}

fn drop_unless<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    op: CompareOp,
    order: impl Fn(T::Native) -> Option<Ordering>,
    drop: &mut dyn FnMut(usize),
) {
    for row in 0..values.len() {
        if values.is_null(row) || !order(values.value(row)).is_none_or(|order| op.holds(order)) {
            drop(row);
        }
    }
}

/// Values of other types than the target's have no order: nothing is said of them.
fn order_of(value: &Datum<'_>, constant: &Datum<'_>) -> Option<Ordering> {
    match (value, constant) {
        (Datum::Int(a), Datum::Int(b)) => Some(a.cmp(b)),
        (Datum::Double(a), Datum::Double(b)) => a.partial_cmp(b),
        (Datum::Decimal(a), Datum::Decimal(b)) => Some(a.cmp(b)),
        _ => None,
    }
}
