//! The relational plan: what a query computes, as a tree of typed operators, rewritten and estimated before any executor is
//! chosen.
//!
//! ```text
//!  BoundQuery ─build─▶ tree ─unnest─▶ joins for subqueries ─placement─▶ predicates at their tables, joins in order
//!                                       else Apply               │       (estimate, order)
//!                                                                ▼
//!        an executor, EXPLAIN ◀─── bounds: what ◀─── alternatives: a ◀─── prune: columns
//!                                    numbers can reach    join for each
//! ```
//!
//! Invariants:
//! 1. An expression uses columns that its node's inputs produce, that an enclosing [`Apply`] provides, or that an enclosing
//!    [`Operator::Once`] has computed. Within one input every [`ColumnId`] has one producer.
//! 2. All expressions are folded: parameters and what is constant for the statement are literals.
//! 3. Every node has a [`NodeId`] of its own, numbered from the root down; what a run measures is kept under it.
//! 4. Passes recurse once for each level of the tree, and visit each node a bounded number of times.
//!
//! Nothing here knows the engine or an executor: definitions come with the bound query, statistics and samples through
//! [`Statistics`], the end of the statement's time through [`Checkpoint`].

mod alternatives;
mod bounds;
mod build;
mod copy;
mod estimate;
mod explain;
mod lateral;
mod naming;
mod order;
mod outer_values;
mod path_shapes;
mod paths;
mod placement;
mod prune;
mod sharing;
mod statistics;
mod substitute;
#[cfg(test)]
mod tests;
mod tree;
mod unnest;

use std::sync::Arc;

use avocet_types::Value;
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, Expr};
use avocet_types::json::shred::{Form, PathTest};
use avocet_types::json::table::Level;

use crate::bind::TableStatistics;
use crate::parse::ast::SetOperator;
use crate::plan::{
    Aggregation, BoundQuery, ColumnId, ColumnTable, Comparison, CteId, Projected, SortKey, TableScan,
    WindowFunction,
};

pub use bounds::{Bounds, type_bound};
pub use explain::{Measured, steps};
pub use statistics::{Checkpoint, ColumnSample, Statistics};

/// No join that ends in our lifetime gives more rows: the bound where nothing better is known.
pub const MOST_ROWS: f64 = 1e13;

/// What planning asks of its surroundings.
#[derive(Clone, Copy)]
pub struct Environment<'e> {
    pub statistics: &'e dyn Statistics,
    /// Values of the `?` parameters.
    pub params: &'e [Value],
    pub context: &'e EvalContext,
    pub checkpoint: &'e dyn Checkpoint,
}

/// A planned query.
#[derive(Clone, Debug)]
pub struct Plan {
    pub root: Node,
    /// The bound query's columns and those that rewriting has added.
    pub columns: ColumnTable,
    pub bounds: Bounds,
}

/// Identifies a node of one plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

#[derive(Clone, Debug)]
pub struct Node {
    pub id: NodeId,
    pub operator: Operator,
    /// The columns that it gives, each of an input or of its own making.
    pub outputs: Vec<ColumnId>,
    pub rows: Cardinality,
    /// It never gives more rows, as far as statistics prove.
    pub most_rows: f64,
}

/// An estimated number of rows, and what it was made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cardinality {
    pub rows: f64,
    pub source: RowsFrom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowsFrom {
    /// It is what the statement says: VALUES, a LIMIT, an aggregate without groups.
    Statement,
    /// Counts that the storage keeps.
    Statistics,
    /// Conditions were tried on sampled rows.
    Sample,
    /// A rule of thumb.
    Rule,
}

#[derive(Clone, Debug)]
pub enum Operator {
    /// One row without columns.
    OneRow,
    Scan(Scan),
    /// Rows of expressions without columns.
    Values(Vec<Vec<Expr>>),
    /// The rows for which all conditions hold.
    Filter {
        input: Box<Node>,
        conditions: Vec<Expr>,
    },
    /// Outputs that no item makes are passed on.
    Project {
        input: Box<Node>,
        items: Vec<Projected>,
    },
    /// The rows of a JSON_TABLE, made when the document is known; `columns` are those of the level, in order.
    JsonTable {
        document: Expr,
        level: Arc<Level>,
        columns: Vec<ColumnId>,
    },
    Join(Box<Join>),
    Aggregate {
        input: Box<Node>,
        aggregation: Aggregation,
    },
    /// Rows that differ, as their columns' collations see it.
    Distinct {
        input: Box<Node>,
    },
    Window {
        input: Box<Node>,
        functions: Vec<WindowFunction>,
    },
    /// With a range: only these rows of all that are sorted.
    Sort {
        input: Box<Node>,
        keys: Vec<SortKey>,
        range: Option<RowRange>,
    },
    Limit {
        input: Box<Node>,
        range: RowRange,
    },
    SetOperation(Box<SetOperation>),
    Apply(Box<Apply>),
    /// Evaluates a subquery without outer columns before its input, which sees the value as the column `id`.
    Once {
        id: ColumnId,
        query: Box<Node>,
        input: Box<Node>,
    },
    /// Evaluates `body` once for all [`Operator::Shared`] of it in the input.
    With {
        cte: CteId,
        name: Arc<str>,
        body: Box<Node>,
        input: Box<Node>,
    },
    /// Reads what a [`Operator::With`] has evaluated; `columns` are the body's, in the order of the outputs.
    Shared {
        cte: CteId,
        alias: Arc<str>,
        columns: Vec<ColumnId>,
    },
    Recursive(Box<Recursive>),
    /// In the step of a recursion: the rows of the round before; `columns` are the recursion's.
    WorkTable {
        cte: CteId,
        alias: Arc<str>,
        columns: Vec<ColumnId>,
    },
}

/// One reference to a stored table.
#[derive(Clone, Debug)]
pub struct Scan {
    pub table: TableScan,
    /// Conditions over this table alone: the executor gives what it can to the storage.
    pub predicates: Vec<Expr>,
    /// About how many it has, before these.
    pub rows: f64,
    /// What is known of the table; found out once, as that takes a while.
    pub statistics: Option<Arc<TableStatistics>>,
    /// What it does with values in documents: nothing before [`Plan::with_path_columns`].
    pub paths: Box<ScanPaths>,
}

/// What a scan does with values at paths into documents.
#[derive(Clone, Debug, Default)]
pub struct ScanPaths {
    /// Columns that it makes of them.
    pub columns: Vec<PathColumn>,
    /// Conditions that it tests itself, beside the predicates.
    pub tests: Vec<PathCondition>,
}

/// A column of the values at a path into documents.
#[derive(Clone, Debug)]
pub struct PathColumn {
    pub id: ColumnId,
    /// The position of the documents in the table.
    pub column: usize,
    pub names: Arc<[Box<str>]>,
    pub form: Form,
}

/// A condition on the value at a path into documents.
#[derive(Clone, Debug)]
pub struct PathCondition {
    /// The position of the documents in the table.
    pub column: usize,
    pub names: Arc<[Box<str>]>,
    pub test: PathTest,
}

#[derive(Clone, Debug)]
pub struct Join {
    pub kind: JoinKind,
    /// Of an inner join the side with fewer rows, which a hash table is built of.
    pub left: Node,
    pub right: Node,
    pub keys: Vec<Equality>,
    /// What pairs of rows must fulfil besides.
    pub residual: Vec<Expr>,
}

/// `left = right`, each over one side of a join.
#[derive(Clone, Debug, PartialEq)]
pub struct Equality {
    pub left: Expr,
    pub right: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    /// All rows of the left side.
    Left,
    /// As `Left`; no row has more than one partner.
    Single,
    /// The left side's rows that have a partner.
    Semi,
    /// Those that have none. With `nulls`, a NULL among the keys counts as a partner that may be: NOT IN.
    Anti {
        nulls: bool,
    },
    /// All rows of the left side; the column tells whether they have a partner.
    Mark(ColumnId),
}

/// Rows by their numbers in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    pub skip: u64,
    pub fetch: u64,
}

#[derive(Clone, Debug)]
pub struct SetOperation {
    pub op: SetOperator,
    pub all: bool,
    /// Two or more; more than two only of UNION. Their outputs are converted to the node's, in order.
    pub inputs: Vec<Node>,
}

/// A query that is evaluated for each row of the input, with some of its columns as constants.
#[derive(Clone, Debug)]
pub struct Apply {
    pub kind: ApplyKind,
    pub input: Node,
    pub query: Node,
    /// The columns that the query has from outside.
    pub outer: Vec<ColumnId>,
    /// What the query's columns are compared with.
    pub needles: Vec<Expr>,
    /// The answer; of rows the first column.
    pub id: ColumnId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyKind {
    /// One value; NULL for no row; error 1242 for more than one.
    Scalar,
    Exists {
        negated: bool,
    },
    /// `needles IN (query)`, three-valued.
    In {
        negated: bool,
    },
    /// `needle op ANY|ALL (query)`, three-valued.
    Quantified {
        op: Comparison,
        all: bool,
    },
    /// LATERAL: the query's rows beside the input's. `outer`: a row without any is beside NULLs.
    Rows {
        outer: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Recursive {
    pub cte: CteId,
    pub name: Arc<str>,
    pub seed: Node,
    pub step: Node,
    pub distinct: bool,
    /// Ends the recursion.
    pub range: Option<RowRange>,
}

/// Plans a query.
pub fn plan(query: &BoundQuery, environment: Environment<'_>) -> Result<Plan, SqlError> {
    let (mut root, mut columns) = build::build(query, environment)?;
    root = unnest::unnest(root, &mut columns, environment)?;
    root = placement::place(root, environment)?;
    prune::prune(&mut root, &query.body.outputs);
    alternatives::split(&mut root, &columns);
    let bounds = bounds::bounds(&mut root, &columns);
    tree::number(&mut root);
    Ok(Plan { root, columns, bounds })
}
