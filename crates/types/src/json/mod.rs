//! JSON documents: a compact binary form, its text, paths into it, and MySQL's order of documents.
//! MySQL 8.4 Reference Manual, 13.5 "The JSON Data Type".
//!
//! ```text
//!  text ──parse──▶ Json ──encode──▶ bytes ──Node::new──▶ Node ──path──▶ Node …
//!                 (tree)          (columns,   (a view; nothing        │
//!  text ◀──────────────print───── results)     is parsed)  ◀──to_json──┘
//! ```
//!
//! A value of `SqlType::Json` is a `Datum::Bytes` in the binary form. What looks at a document does so through [`Node`],
//! which reads offsets and no more than it needs; what changes one makes a tree of it ([`Json`]) and writes it anew.
//!
//! - `tree`: documents as trees, values of SQL types as documents
//! - `binary`: the binary form, written and viewed
//! - `parse`, `print`: texts
//! - `path`: the path language, looking up by it
//! - `change`: INSERT, REPLACE, REMOVE and MERGE of parts of a document
//! - `order`: comparison and sort keys
//! - `scalar`: scalars as values of SQL
//! - `schema`: JSON Schema
//! - `shred`: values at paths as typed columns beside the documents
//! - `table`: the rows of JSON_TABLE

mod binary;
mod change;
mod order;
mod packed;
mod parse;
mod path;
mod print;
mod scalar;
mod schema;
pub mod shred;
pub mod table;
mod tree;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use binary::{Array, JsonRef, Node, Object, Place, array_of, object_of};
pub use change::{Missing, Present, append, array_insert, merge_patch, merge_preserve, put, remove};
pub use order::{compare, sort_key};
pub use parse::{parse, parse_within};
pub use path::{BadPath, Index, Leg, Path, Wrap};
pub use print::{pretty, quote, write};
pub use scalar::{scalar, wanted_kind};
pub use schema::{SchemaError, Violation, validate};
pub use tree::{Json, Map};

/// Arrays and objects in one another; deeper ones are refused.
pub const MAX_DEPTH: usize = 100;

/// Opaque values are shown with the number that MySQL's protocol has for their type.
pub mod opaque {
    /// Dates and times are not shown as opaque, unless no calendar has them. A TIMESTAMP is written as a DATETIME.
    pub const TIMESTAMP: u8 = 7;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const VAR_BINARY: u8 = 15;
    pub const BIT: u8 = 16;
    pub const DECIMAL: u8 = 246;
    pub const BLOB: u8 = 252;
    pub const BINARY: u8 = 254;
}

/// Why there is no document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// A text that is none. The position counts bytes from 0.
    #[error("\"{message}\" at position {position}")]
    Syntax { message: &'static str, position: usize },
    /// 3157
    #[error("The JSON document exceeds the maximum depth.")]
    TooDeep,
    /// 3151
    #[error("The JSON object contains a key name that is too long.")]
    KeyTooLong,
    /// 3150
    #[error("The JSON value is too big to be stored in a JSON column.")]
    TooBig,
    /// 1041: there is no memory for the document, or nobody waits for it any more.
    #[error("Out of memory for a JSON document")]
    NoRoom,
}

impl JsonError {
    pub const fn errno(&self) -> u16 {
        match self {
            Self::Syntax { .. } => 3140,
            Self::TooBig => 3150,
            Self::KeyTooLong => 3151,
            Self::TooDeep => 3157,
            Self::NoRoom => 1041,
        }
    }
}
