//! What a scan gives of the value at a path, of a column or of documents.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, PrimitiveArray, StringViewBuilder, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int8Type, Int64Type, UInt8Type, UInt64Type};

use super::{LONGEST_STRING, Scalar, find, mark};
use crate::arrow_map::ColumnBuilder;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::json::binary::{JsonRef, Node};
use crate::number::write_i64;
use crate::sql_type::SqlType;

/// What is made of a value at a path. Nothing of it fails or warns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// What JSON_UNQUOTE gives of it.
    Text,
    /// What JSON_EXTRACT gives.
    Document,
    /// The value, if it is one of the target without any loss or doubt; NULL otherwise.
    Value(Target),
    /// The document of what [`Form::Value`] leaves.
    Rest(Target),
}

/// Types as which values are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Of integers.
    Int,
    /// Of doubles, and of integers that a double holds exactly.
    Double,
    /// Of integers, and of doubles whose shortest decimal notation has no more digits behind the point. At most 38 digits.
    Decimal { precision: u8, scale: u8 },
    /// Of strings that are no longer than this type's.
    String,
}

/// Integers up to here are doubles, too.
const EXACT_IN_DOUBLE: i64 = 1 << 53;
/// Decimals of fewer digits than this differ as doubles if they differ.
const TOLD_APART: f64 = 1e15;
/// Powers of ten up to this exponent are doubles.
const EXACT_POWERS: u8 = 22;

impl Target {
    pub fn sql_type(self) -> SqlType {
        match self {
            Self::Int => SqlType::BIGINT,
            Self::Double => SqlType::DOUBLE,
            Self::Decimal { precision, scale } => SqlType::Decimal { precision, scale, unsigned: false },
            Self::String => SqlType::JSON_TEXT,
        }
    }

    /// The value, if it is one of the target.
    pub(super) fn of<'a>(self, node: Node<'a>) -> Option<Datum<'a>> {
        match (self, node.view()) {
            (Self::Int, JsonRef::Int(v)) => Some(Datum::Int(v)),
            (Self::Double, JsonRef::Double(v)) => Some(Datum::Double(v)),
            (Self::Double, JsonRef::Int(v)) => is_exact(v).then_some(Datum::Double(v as f64)),
            (Self::Double, JsonRef::UInt(v)) => {
                i64::try_from(v).is_ok_and(is_exact).then_some(Datum::Double(v as f64))
            }
            (Self::Decimal { precision, scale }, JsonRef::Int(v)) => {
                Some(Datum::Decimal(Decimal::new(unscaled_of_int(v, precision, scale)?, scale)))
            }
            (Self::Decimal { precision, scale }, JsonRef::Double(v)) => {
                Some(Datum::Decimal(Decimal::new(unscaled_of_double(v, precision, scale)?, scale)))
            }
            (Self::String, JsonRef::String(v)) if v.len() <= LONGEST_STRING => Some(Datum::Str(v.into())),
            _ => None,
        }
    }
}

fn is_exact(v: i64) -> bool {
    (-EXACT_IN_DOUBLE..=EXACT_IN_DOUBLE).contains(&v)
}

fn power(digits: u8) -> i128 {
    10i128.pow(digits.into())
}

fn unscaled_of_int(v: i64, precision: u8, scale: u8) -> Option<i128> {
    let unscaled = i128::from(v).checked_mul(power(scale))?;
    (unscaled.unsigned_abs() < power(precision).unsigned_abs()).then_some(unscaled)
}

/// Of a double that is the nearest to a decimal of the scale. So few digits are told apart by doubles: the decimal is the one
/// that the double prints as.
fn unscaled_of_double(v: f64, precision: u8, scale: u8) -> Option<i128> {
    if scale > EXACT_POWERS {
        return None;
    }
    let factor = 10f64.powi(scale.into());
    let unscaled = (v * factor).round();
    let is_it = unscaled.abs() < TOLD_APART && unscaled / factor == v;
    let unscaled = is_it.then_some(unscaled as i128)?;
    (unscaled.unsigned_abs() < power(precision).unsigned_abs()).then_some(unscaled)
}

impl Form {
    /// The type of what it gives, which can be NULL.
    pub fn sql_type(self) -> SqlType {
        match self {
            Self::Text => SqlType::JSON_TEXT,
            Self::Document | Self::Rest(_) => SqlType::Json,
            Self::Value(target) => target.sql_type(),
        }
    }

    /// Appends what it makes of a value, or NULL where there is none.
    pub fn append(self, node: Option<Node<'_>>, to: &mut ColumnBuilder) {
        let Some(node) = node else { return to.append_null() };
        match self {
            Self::Text => match node.view() {
                JsonRef::String(text) => to.append(&Datum::Str(text.into())),
                _ => to.append(&Datum::Str(node.unquoted().into())),
            },
            Self::Document => to.append(&Datum::Bytes(node.to_document().into())),
            Self::Value(target) => match target.of(node) {
                Some(value) => to.append(&value),
                None => to.append_null(),
            },
            Self::Rest(target) => match target.of(node) {
                Some(_) => to.append_null(),
                None => to.append(&Datum::Bytes(node.to_document().into())),
            },
        }
    }

    /// Whether it makes NULL of all values of a column of an Arrow type.
    pub fn is_nothing_of(self, ty: &DataType) -> bool {
        let nothing = match ty {
            DataType::Int64 => Target::Int,
            DataType::Float64 => Target::Double,
            DataType::Utf8View => Target::String,
            _ => return false,
        };
        self == Self::Rest(nothing)
    }

    /// NULLs.
    pub fn nothing(self, rows: usize) -> ArrayRef {
        match self.sql_type() {
            SqlType::Json => none(rows),
            ty => new_null_array(&ty.arrow_type(), rows),
        }
    }

    /// Of documents.
    pub fn of_documents(self, documents: &ArrayRef, names: &[Box<str>]) -> ArrayRef {
        let mut to = ColumnBuilder::new(&self.sql_type(), documents.len());
        for document in documents.as_binary_view() {
            self.append(document.and_then(|document| find(Node::new(document), names)), &mut to);
        }
        to.finish()
    }

    /// Of a path's column. `others` has the documents of the rows that are marked so, in order.
    pub fn of_values(
        self,
        values: &ArrayRef,
        marks: Option<&ArrayRef>,
        others: Option<&ArrayRef>,
        names: &[Box<str>],
    ) -> ArrayRef {
        if marks.is_none()
            && let Some(whole) = self.whole(values)
        {
            return whole;
        }
        let mut to = ColumnBuilder::new(&self.sql_type(), values.len());
        for_each_node(values, marks, others, names, &mut |_, node| self.append(node, &mut to));
        to.finish()
    }

    /// Of all values at once, for the combinations that matter.
    pub(super) fn whole(self, values: &ArrayRef) -> Option<ArrayRef> {
        let ints = || values.as_primitive_opt::<Int64Type>();
        let doubles = || values.as_primitive_opt::<Float64Type>();
        let is_text = *values.data_type() == DataType::Utf8View;
        match self {
            Self::Text | Self::Value(Target::String) if is_text => Some(values.clone()),
            Self::Text => ints().map(texts_of),
            Self::Value(Target::Int) => ints().map(|_| values.clone()),
            Self::Value(Target::Double) if doubles().is_some() => Some(values.clone()),
            Self::Value(Target::Double) if ints().is_some_and(are_exact) => {
                cast(values, &DataType::Float64).ok()
            }
            Self::Value(Target::Decimal { precision, scale }) => decimals(values, precision, scale),
            Self::Rest(Target::String) if is_text => Some(none(values.len())),
            Self::Rest(Target::Int) if ints().is_some() => Some(none(values.len())),
            Self::Rest(Target::Double) if doubles().is_some() || ints().is_some_and(are_exact) => {
                Some(none(values.len()))
            }
            Self::Rest(Target::Decimal { precision, scale }) => {
                decimals(values, precision, scale).map(|_| none(values.len()))
            }
            _ => None,
        }
    }
}

/// Rows that scans mostly give at once.
const FEW_ROWS: usize = 8192;

/// No documents.
fn none(rows: usize) -> ArrayRef {
    static NONE: LazyLock<ArrayRef> = LazyLock::new(|| new_null_array(&DataType::BinaryView, FEW_ROWS));
    if rows <= FEW_ROWS { NONE.slice(0, rows) } else { new_null_array(&DataType::BinaryView, rows) }
}

fn are_exact(values: &Int64Array) -> bool {
    values.values().iter().all(|v| is_exact(*v))
}

fn texts_of(values: &Int64Array) -> ArrayRef {
    let mut to = StringViewBuilder::with_capacity(values.len());
    let mut text = Vec::new();
    for value in values {
        match value {
            Some(value) => {
                text.clear();
                write_i64(value, &mut text);
                to.append_value(std::str::from_utf8(&text).expect("digits are text"));
            }
            None => to.append_null(),
        }
    }
    Arc::new(to.finish())
}

/// All values as decimals; `None` if some are not.
fn decimals(values: &ArrayRef, precision: u8, scale: u8) -> Option<ArrayRef> {
    let unscaled: PrimitiveArray<Decimal128Type> = match values.data_type() {
        DataType::Int64 => {
            decimals_of(values.as_primitive::<Int64Type>(), |v| unscaled_of_int(v, precision, scale))
        }
        DataType::Float64 => {
            decimals_of(values.as_primitive::<Float64Type>(), |v| unscaled_of_double(v, precision, scale))
        }
        _ => return None,
    }?;
    let ty = DataType::Decimal128(precision, scale as i8);
    Some(Arc::new(unscaled.with_data_type(ty)))
}

fn decimals_of<T: arrow::datatypes::ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    one: impl Fn(T::Native) -> Option<i128>,
) -> Option<PrimitiveArray<Decimal128Type>> {
    let mut unscaled = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        // What stands where there is no value may be anything.
        unscaled.push(if values.is_null(row) { 0 } else { one(values.value(row))? });
    }
    Some(PrimitiveArray::new(unscaled.into(), values.nulls().cloned()))
}

/// Visits the value of each row of a path's column, or of the row's document where it is marked so.
pub(super) fn for_each_node(
    values: &ArrayRef,
    marks: Option<&ArrayRef>,
    others: Option<&ArrayRef>,
    names: &[Box<str>],
    visit: &mut dyn FnMut(usize, Option<Node<'_>>),
) {
    let marks = marks.map(|marks| marks.as_primitive::<UInt8Type>());
    let mut others = others.iter().flat_map(|others| others.as_binary_view());
    let mut document = Vec::new();
    for row in 0..values.len() {
        match marks.map_or(mark::NONE, |marks| marks.value(row)) {
            mark::NONE if values.is_null(row) => visit(row, None),
            mark::NONE => {
                scalar_at(values, row).write(&mut document);
                visit(row, Some(Node::new(&document)));
            }
            mark::NULL => visit(row, Some(Node::NULL)),
            _ => {
                let other = others.next().flatten();
                visit(row, other.and_then(|other| find(Node::new(other), names)));
            }
        }
    }
}

/// The value of a row that has one.
fn scalar_at(values: &ArrayRef, row: usize) -> Scalar<'_> {
    match values.data_type() {
        DataType::Int8 => Scalar::Bool(values.as_primitive::<Int8Type>().value(row) != 0),
        DataType::Int64 => Scalar::Int(values.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => Scalar::UInt(values.as_primitive::<UInt64Type>().value(row)),
        DataType::Float64 => {
            let doubles: &Float64Array = values.as_primitive::<Float64Type>();
            Scalar::Double(doubles.value(row))
        }
        DataType::Utf8View => Scalar::String(values.as_string_view().value(row)),
        _ => Scalar::Null,
    }
}
