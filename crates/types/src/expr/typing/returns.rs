//! How the type of a function's result is told.

use crate::expr::Expr;
use crate::expr::error::EvalResult;
use crate::expr::typing::Typer;
use crate::sql_type::SqlType;

/// How the result type follows from the (converted) arguments.
#[derive(Clone, Copy)]
pub enum Ret {
    Int,
    UInt,
    Double,
    /// A string in the collation that the string arguments agree on, so many characters long.
    Text(fn(&[Expr]) -> u64),
    /// A string in the connection's collation, so many characters long.
    Ascii(fn(&[Expr]) -> u64),
    /// A byte string.
    Bytes(fn(&[Expr]) -> u64),
    /// A name of at most so many characters, in the system collation.
    System(u32),
    Date,
    Json,
    Custom(fn(&Typer, &[Expr]) -> EvalResult<SqlType>),
    Rewrite,
}
