//! MySQL's values and types, and the one implementation of what its expressions mean.
//!
//! `SqlType` says what a column or expression is, `Datum` is one value, `row` lays a row out in bytes,
//! `schema` describes tables. Everything above compares, converts and formats through this crate, so that
//! the point path, the vectorised path and DataFusion can not disagree.
#![deny(unsafe_code)]

pub mod accumulate;
pub mod arrow_map;
pub mod checksum;
pub mod collation;
pub mod compare;
pub mod convert;
pub mod datum;
pub mod decimal;
pub mod error;
pub mod expr;
pub mod geometry;
pub mod gtid;
pub mod json;
pub mod key;
pub mod members;
pub mod names;
pub mod number;
mod persist;
pub mod row;
pub mod rules;
pub mod schema;
pub mod sql_type;
pub mod stated;
pub mod stored;
pub mod temporal;
pub mod text;
pub mod view;
mod xml;

pub use arrow_map::{ColumnBuilder, datum_at};
pub use datum::{Datum, Value};
pub use decimal::Decimal;
pub use expr::{EvalContext, EvalError, Expr, ExprKind, Function, SqlMode, Typer};
pub use key::KeyLayout;
pub use members::Members;
pub use row::{RowLayout, RowRef};
pub use rules::RowRules;
pub use schema::{
    CheckDef, ColumnDef, DefaultValue, ForeignKeyDef, GeneratedDef, IndexDef, IndexKind, IndexPart,
    KeptKeyDef, KeptKeyKind, ReferentialAction, TableDef,
};
pub use sql_type::{Collation, IntWidth, LobSize, RealFormat, SqlType};
pub use stored::{StoredColumn, StoredColumns};
pub use view::{ViewAlgorithm, ViewCheck, ViewDef, ViewSecurity};
