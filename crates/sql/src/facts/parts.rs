//! What an expression is made of, for who has to know whether another server means the same by it.

use avocet_types::Function;
use avocet_types::expr::IntervalUnit;
use avocet_types::expr::typing::CastTarget;

use crate::parse::ast::{AggregateCall, BinaryOp};

/// A part of a query whose meaning, or type, is a matter of the server's dialect. Comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, CASE,
/// `+`, `-`, `*`, COUNT, SUM, MIN and MAX are none, nor is an average or a quotient that is shown as it is: they mean the same to all of MySQL's kin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Function(Function),
    Cast(CastTarget),
    ConvertUsing,
    Collate,
    Aggregate(Aggregate),
    /// A function over a window that is no aggregate.
    Window,
    /// PERCENT_RANK() and CUME_DIST()
    Share,
    /// ROWS or RANGE of a window.
    Frame,
    Operator(BinaryOp),
    /// `~`
    BitNot,
    Regexp,
    /// `DATE '…'` and its kin.
    TemporalLiteral,
    /// `x'…'`, `0x…`, `b'…'`
    BinaryLiteral,
    /// `_latin1'…'`
    Introducer,
    /// `e ± INTERVAL n unit`
    DateArithmetic,
    Extract(IntervalUnit),
    TimestampDiff,
    JsonValue,
    JsonTable,
    Rollup,
    /// SQL_CALC_FOUND_ROWS
    FoundRows,
    /// WITH RECURSIVE
    Recursive,
    /// `(a, b) = (c, d)`
    Row,
}

/// Aggregates beside COUNT, SUM, MIN and MAX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// An average that more is computed from.
    Average,
    GroupConcat,
    /// BIT_AND, BIT_OR, BIT_XOR
    Bits,
    /// STD, VARIANCE and their kin
    Deviation,
    /// JSON_ARRAYAGG, JSON_OBJECTAGG
    Json,
    AnyValue,
}

impl Part {
    pub(super) fn of_aggregate(call: &AggregateCall) -> Option<Self> {
        Some(Self::Aggregate(match call.name.as_str() {
            "COUNT" | "SUM" | "MIN" | "MAX" => return None,
            "AVG" => Aggregate::Average,
            "GROUP_CONCAT" => Aggregate::GroupConcat,
            "BIT_AND" | "BIT_OR" | "BIT_XOR" => Aggregate::Bits,
            "JSON_ARRAYAGG" | "JSON_OBJECTAGG" => Aggregate::Json,
            "ANY_VALUE" => Aggregate::AnyValue,
            _ => Aggregate::Deviation,
        }))
    }

    pub(super) fn of_operator(op: BinaryOp) -> Option<Self> {
        use BinaryOp as B;
        match op {
            _ if op.is_comparison() => None,
            B::Add | B::Sub | B::Mul => None,
            _ => Some(Self::Operator(op)),
        }
    }
}
