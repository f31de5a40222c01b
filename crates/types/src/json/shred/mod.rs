//! Values at paths as columns of their own beside the documents, and what is made of them.
//!
//! ```text
//!  documents ──choose──▶ paths with the kind of most of their values
//!      │                   │
//!      └──────extract──────┴──▶ values (Int64, UInt64, Float64, Int8, text) + marks
//!                                   │
//!       Form, PathTest ◀────────────┴──▶ what a scan gives of a path, and which rows it gives
//! ```
//!
//! A path is a sequence of names of members: `$.a.b`. Its column holds a scalar of one kind for each row; what is of another
//! kind is marked, and read from the row's document. So a column of a path is an addition, and never the only place of a value.
//!
//! Invariants:
//! 1. A value that is not marked is, written as a document, the bytes that JSON_EXTRACT gives of its row; NULL without a mark
//!    is no value: no such member, or no document.
//! 2. What [`Form`] and [`PathTest`] make of columns is what they make of the documents.

mod choose;
mod condition;
mod extract;
mod form;

pub use choose::{ChosenPath, choose};
pub use condition::PathTest;
pub use extract::{Shredded, extract};
pub use form::{Form, Target};

use crate::json::binary::{JsonRef, Node, kind, literal, push_len};

/// Names in a path, at most.
pub const MOST_NAMES: usize = 4;
/// Paths that have columns, of one column of documents.
pub const MOST_PATHS: usize = 32;
/// Longer strings stay in the document, in bytes.
const LONGEST_STRING: usize = 512;

/// What a row's mark says.
pub mod mark {
    /// The value is in the column, or there is none.
    pub const NONE: u8 = 0;
    /// A JSON null.
    pub const NULL: u8 = 1;
    /// Something else, which the document has.
    pub const OTHER: u8 = 2;
}

/// The kinds of values that columns hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    UInt,
    Double,
    String,
}

/// A scalar of a kind that columns hold.
#[derive(Clone, Copy, Debug)]
enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    String(&'a str),
}

impl<'a> Scalar<'a> {
    /// `None` for what no column holds.
    fn of(node: Node<'a>) -> Option<Self> {
        Some(match node.view() {
            JsonRef::Null => Self::Null,
            JsonRef::Bool(v) => Self::Bool(v),
            JsonRef::Int(v) if node.is_shortest() => Self::Int(v),
            JsonRef::UInt(v) if node.is_shortest() => Self::UInt(v),
            JsonRef::Double(v) => Self::Double(v),
            // What ends with spaces equals other strings where texts are compared with padding.
            JsonRef::String(v) if v.len() <= LONGEST_STRING && !v.ends_with(' ') => Self::String(v),
            _ => return None,
        })
    }

    fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::UInt(_) => Kind::UInt,
            Self::Double(_) => Kind::Double,
            Self::String(_) => Kind::String,
        })
    }

    /// Puts it in place of what the buffer holds, as a document.
    fn write(self, to: &mut Vec<u8>) {
        to.clear();
        match self {
            Self::Null => to.extend([kind::LITERAL, literal::NULL]),
            Self::Bool(v) => to.extend([kind::LITERAL, if v { literal::TRUE } else { literal::FALSE }]),
            Self::Int(v) => {
                let (kind, len) = match v {
                    -0x8000..0x8000 => (kind::INT16, 2),
                    -0x8000_0000..0x8000_0000 => (kind::INT32, 4),
                    _ => (kind::INT64, 8),
                };
                to.push(kind);
                to.extend_from_slice(&v.to_le_bytes()[..len]);
            }
            Self::UInt(v) => {
                let (kind, len) = match v {
                    0..0x1_0000 => (kind::UINT16, 2),
                    0x1_0000..0x1_0000_0000 => (kind::UINT32, 4),
                    _ => (kind::UINT64, 8),
                };
                to.push(kind);
                to.extend_from_slice(&v.to_le_bytes()[..len]);
            }
            Self::Double(v) => {
                to.push(kind::DOUBLE);
                to.extend_from_slice(&v.to_le_bytes());
            }
            Self::String(text) => {
                to.push(kind::STRING);
                push_len(text.len(), to);
                to.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// The value at a path of names.
pub fn find<'a>(root: Node<'a>, names: &[Box<str>]) -> Option<Node<'a>> {
    names.iter().try_fold(root, |node, name| match node.view() {
        JsonRef::Object(object) => object.get(name),
        _ => None,
    })
}
