//! From documents to the column of a path.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, Float64Builder, Int8Builder, Int64Builder, StringViewBuilder,
    UInt8Array, UInt64Builder,
};

use super::{ChosenPath, Kind, Scalar, mark};
use crate::json::binary::{JsonRef, Node};

/// A column that would leave more than one row in so many to the documents is not worth having.
const MOST_OTHERS: usize = 8;

/// The values at a path, and the rows' marks, if any has one.
#[derive(Debug)]
pub struct Shredded {
    pub values: ArrayRef,
    pub marks: Option<ArrayRef>,
}

enum Values {
    Bool(Int8Builder),
    Int(Int64Builder),
    UInt(UInt64Builder),
    Double(Float64Builder),
    String(StringViewBuilder),
}

impl Values {
    fn new(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Bool => Self::Bool(Int8Builder::with_capacity(rows)),
            Kind::Int => Self::Int(Int64Builder::with_capacity(rows)),
            Kind::UInt => Self::UInt(UInt64Builder::with_capacity(rows)),
            Kind::Double => Self::Double(Float64Builder::with_capacity(rows)),
            Kind::String => Self::String(StringViewBuilder::with_capacity(rows)),
        }
    }

    /// Whether it is of the column's kind.
    fn append(&mut self, scalar: Scalar<'_>) -> bool {
        match (self, scalar) {
            (Self::Bool(to), Scalar::Bool(v)) => to.append_value(v.into()),
            (Self::Int(to), Scalar::Int(v)) => to.append_value(v),
            (Self::UInt(to), Scalar::UInt(v)) => to.append_value(v),
            (Self::Double(to), Scalar::Double(v)) => to.append_value(v),
            (Self::String(to), Scalar::String(v)) => to.append_value(v),
            _ => return false,
        }
        true
    }

    fn append_null(&mut self) {
        match self {
            Self::Bool(to) => to.append_null(),
            Self::Int(to) => to.append_null(),
            Self::UInt(to) => to.append_null(),
            Self::Double(to) => to.append_null(),
            Self::String(to) => to.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Bool(mut of) => Arc::new(of.finish()),
            Self::Int(mut of) => Arc::new(of.finish()),
            Self::UInt(mut of) => Arc::new(of.finish()),
            Self::Double(mut of) => Arc::new(of.finish()),
            Self::String(mut of) => Arc::new(of.finish()),
        }
    }
}

/// The column of a path; `None` if it turns out not to be worth having.
pub fn extract(documents: &BinaryViewArray, path: &ChosenPath) -> Option<Shredded> {
    let mut values = Values::new(path.kind, documents.len());
    let mut marks = vec![mark::NONE; documents.len()];
    // Documents that come together mostly have the same members.
    let mut near = vec![0; path.names.len()];
    let (mut others, most) = (0, documents.len() / MOST_OTHERS);
    for (row, mark) in marks.iter_mut().enumerate() {
        let node = match documents.is_null(row) {
            true => None,
            false => find_near(Node::new(documents.value(row)), &path.names, &mut near),
        };
        *mark = match node.map(Scalar::of) {
            None => mark::NONE,
            Some(Some(Scalar::Null)) => mark::NULL,
            Some(Some(scalar)) if values.append(scalar) => continue,
            Some(_) => mark::OTHER,
        };
        others += usize::from(*mark == mark::OTHER);
        if others > most {
            return None;
        }
        values.append_null();
    }
    let is_marked = marks.iter().any(|mark| *mark != mark::NONE);
    let marks = is_marked.then(|| Arc::new(UInt8Array::from(marks)) as ArrayRef);
    Some(Shredded { values: values.finish(), marks })
}

fn find_near<'a>(root: Node<'a>, names: &[Box<str>], near: &mut [usize]) -> Option<Node<'a>> {
    names.iter().zip(near).try_fold(root, |node, (name, near)| match node.view() {
        JsonRef::Object(object) => object.get_near(name, near),
        _ => None,
    })
}
