//! `PARTITION BY`, and what ALTER TABLE says of partitions.

use crate::parse::ast::{Expr, Ident};

/// What follows `PARTITION BY`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionBy {
    pub function: PartitionFunction,
    /// `PARTITIONS n`
    pub count: Option<u64>,
    pub sub: Option<SubpartitionBy>,
    pub parts: Vec<PartitionSpec>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SubpartitionBy {
    pub function: PartitionFunction,
    /// `SUBPARTITIONS n`
    pub count: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionFunction {
    pub method: PartitionMethod,
    pub linear: bool,
    /// The first of KEY's algorithms, that of MySQL 5.1.
    pub old_algorithm: bool,
    pub of: PartitionedBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionMethod {
    Range,
    List,
    Hash,
    Key,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartitionedBy {
    Expr(Expr),
    /// Of KEY, RANGE COLUMNS and LIST COLUMNS.
    Columns(Vec<Ident>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSpec {
    pub name: Ident,
    pub values: PartitionValues,
    pub options: PartitionOptions,
    pub subs: Vec<(Ident, PartitionOptions)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartitionValues {
    None,
    /// A tuple; `None` is MAXVALUE.
    LessThan(Vec<Option<Expr>>),
    /// `LESS THAN MAXVALUE`, without parentheses.
    LessThanMax,
    /// A list of tuples.
    In(Vec<Vec<Expr>>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionOptions {
    pub engine: Option<String>,
    pub comment: Option<String>,
    pub max_rows: Option<u64>,
    pub min_rows: Option<u64>,
}

/// An action of ALTER TABLE. `None` for names is ALL.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionChange {
    By(Box<PartitionBy>),
    Remove,
    Add(Vec<PartitionSpec>),
    /// `ADD PARTITION PARTITIONS n`
    AddCount(u64),
    Coalesce(u64),
    Drop(Vec<Ident>),
    Truncate(Option<Vec<Ident>>),
    Rebuild(Option<Vec<Ident>>),
    Reorganize {
        names: Vec<Ident>,
        into: Vec<PartitionSpec>,
    },
}
