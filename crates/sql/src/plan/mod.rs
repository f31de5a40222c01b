//! The bound algebra: what a query means, after names and types are resolved and before anyone decides how to
//! run it. The point path compiles from it, `df` lowers it to DataFusion, EXPLAIN prints it.
//!
//! Every value that flows through a query has a [`ColumnId`], unique in the whole query: a table's column under
//! one reference to the table, a grouping key, an aggregate's result, a window function's, a projected
//! expression, a subquery's answer. Scalar expressions ([`avocet_types::expr::Expr`]) name them by `Column(id)`
//! and know nothing else, so the same expressions run everywhere; what an id is stands in [`ColumnTable`].
//!
//! Invariants:
//! 1. Every id has exactly one producer in the tree.
//! 2. An expression uses ids of its own block's inputs, of the block's subqueries, or of an enclosing block;
//!    the latter are listed in [`Subquery::outer`] (or [`Derived::outer`] of a lateral one) on the way.
//! 3. Every expression carries its final type; conversions are explicit.
//! 4. A block is evaluated in this order: from, filter, aggregation, having, windows, projection, distinct,
//!    order, limit.

mod locks;
pub mod walk;

use std::collections::HashSet;
use std::sync::Arc;

use avocet_base::RowId;
use avocet_types::SqlType;
use avocet_types::collation::Charset;
use avocet_types::expr::{Expr, IntervalUnit};
use avocet_types::schema::TableDef;

use crate::parse::ast::{FrameUnit, LockWait, SetOperator};

pub use locks::{LockQuery, lock_queries, show_only};

/// A value that flows through a query. Also an index into the query's [`ColumnTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

impl ColumnId {
    /// The number by which scalar expressions know it.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A query, ready to be compiled or lowered.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    pub body: QueryExpr,
    pub columns: ColumnTable,
    /// The types that the context gives to the `?` parameters, by number.
    pub params: Vec<SqlType>,
    /// Row locks are asked for: of which tables, their scans say.
    pub locks: bool,
    /// Values of session variables were bound as literals: the plan is good for this execution only.
    pub session_dependent: bool,
    /// Expressions assign to user variables: rows are seen to one after the other, and what stands before is evaluated before.
    pub assigns: bool,
    /// The views that the query reads, and those that these read.
    pub views: Arc<[Arc<TableDef>]>,
    /// SQL_CALC_FOUND_ROWS was given.
    pub calc_found_rows: bool,
    /// What parameters that are a LIMIT or an OFFSET are likely to be, by their numbers.
    pub likely_counts: Box<[(u16, u64)]>,
}

impl BoundQuery {
    /// What the client is told about the result's columns.
    pub fn output(&self) -> impl Iterator<Item = &ColumnInfo> {
        self.body.outputs.iter().map(|id| &self.columns[*id])
    }
}

#[derive(Clone, Debug, Default)]
pub struct ColumnTable(Vec<ColumnInfo>);

impl ColumnTable {
    pub fn add(&mut self, info: ColumnInfo) -> ColumnId {
        self.0.push(info);
        ColumnId(self.0.len() as u32 - 1)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::ops::Index<ColumnId> for ColumnTable {
    type Output = ColumnInfo;

    fn index(&self, id: ColumnId) -> &ColumnInfo {
        &self.0[id.index()]
    }
}

impl std::ops::IndexMut<ColumnId> for ColumnTable {
    fn index_mut(&mut self, id: ColumnId) -> &mut ColumnInfo {
        &mut self.0[id.index()]
    }
}

#[derive(Clone, Debug)]
pub struct ColumnInfo {
    /// As the client sees it, were it an output.
    pub name: Arc<str>,
    pub ty: SqlType,
    pub nullable: bool,
    /// The stored column that this is, unchanged; absent for computed values.
    pub origin: Option<ColumnOrigin>,
    /// What it came through; absent for columns of stored tables, and for computed values.
    pub label: Option<ColumnLabel>,
}

impl ColumnInfo {
    /// As MySQL's errors show it.
    pub fn shown(&self) -> String {
        match (&self.label, &self.origin) {
            (Some(label), _) => format!("`{}`.`{}`", label.table, self.name),
            (None, Some(ColumnOrigin { table, column, alias })) => {
                format!("`{}`.`{alias}`.`{}`", table.database, table.columns[*column].name)
            }
            (None, None) => self.name.to_string(),
        }
    }
}

/// How clients are told of a column of a derived table, a common table expression or a view.
#[derive(Clone, Debug)]
pub struct ColumnLabel {
    /// The name by which the query calls the table.
    pub table: Arc<str>,
    /// The view, or what else is not the stored table.
    pub org_table: Option<Arc<str>>,
    pub org_name: Arc<str>,
    /// The stored table's keys are told of.
    pub keeps_keys: bool,
}

#[derive(Clone, Debug)]
pub struct ColumnOrigin {
    pub table: Arc<TableDef>,
    /// Position in `table.columns`.
    pub column: usize,
    /// The name by which the query calls the table.
    pub alias: Arc<str>,
}

/// A query expression: a body, its order and limit.
#[derive(Clone, Debug)]
pub struct QueryExpr {
    pub ctes: Vec<Cte>,
    pub body: QueryBody,
    /// Keys are columns of the body; those that are not outputs are dropped after sorting.
    pub order_by: Vec<SortKey>,
    pub limit: Option<Limit>,
    /// The visible columns, in order.
    pub outputs: Vec<ColumnId>,
}

#[derive(Clone, Debug)]
pub enum QueryBody {
    Select(Box<Select>),
    SetOperation(Box<SetOperation>),
    Values(Values),
    /// The rows of a JSON_TABLE.
    JsonTable(Box<JsonTable>),
    Nested(Box<QueryExpr>),
}

/// A common table expression, evaluated once and read by any number of [`From::Cte`].
#[derive(Clone, Debug)]
pub struct Cte {
    pub id: CteId,
    pub name: Arc<str>,
    pub body: CteBody,
    /// One for each column; references map them to ids of their own.
    pub columns: Vec<ColumnId>,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a few per query, matched everywhere")]
pub enum CteBody {
    Plain(QueryExpr),
    Recursive {
        seed: QueryExpr,
        /// Reads the rows of the previous round through [`From::Cte`] with this CTE's own id.
        step: QueryExpr,
        distinct: bool,
        /// Ends the recursion when there are enough rows.
        limit: Option<Limit>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CteId(pub u32);

#[derive(Clone, Debug)]
pub struct Select {
    pub from: From,
    pub filter: Option<Expr>,
    pub aggregation: Option<Aggregation>,
    pub having: Option<Expr>,
    /// It has a HAVING without groups, which is part of its filter: its rows are no rows of tables.
    pub has_second_filter: bool,
    pub windows: Vec<WindowFunction>,
    /// Outputs of the block, followed by hidden sort keys.
    pub projection: Vec<Projected>,
    pub distinct: bool,
    /// The subqueries whose answers the block's expressions use.
    pub subqueries: Vec<Subquery>,
}

/// `id := expr`
#[derive(Clone, Debug)]
pub struct Projected {
    pub id: ColumnId,
    pub expr: Expr,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a few per query, matched everywhere")]
pub enum From {
    /// One row without columns.
    Dual,
    Table(TableScan),
    Derived(Derived),
    Cte(CteRef),
    Join(Box<Join>),
}

#[derive(Clone, Debug)]
pub struct TableScan {
    pub table: Arc<TableDef>,
    pub alias: Arc<str>,
    /// The columns that the query uses: the position in the table and the id, in ascending position. The position after the
    /// last column's is that of the row id, which statements ask for that change rows.
    pub columns: Vec<(usize, ColumnId)>,
    /// How its rows are locked, if they are. Such rows are read in their newest versions.
    pub lock: Option<ScanLock>,
    /// If given, only these rows are read: those that are locked.
    pub only: Option<Arc<HashSet<RowId>>>,
    /// A derived table that was merged reads it: as far as a statement's tables are told apart, it does so by itself.
    pub of_derived: bool,
}

/// How a scan locks the rows that it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLock {
    /// FOR UPDATE; FOR SHARE otherwise.
    pub exclusive: bool,
    pub wait: LockWait,
}

#[derive(Clone, Debug)]
pub struct Derived {
    pub query: QueryExpr,
    pub alias: Arc<str>,
    /// What a LATERAL one uses of the tables to its left; empty otherwise.
    pub outer: Vec<ColumnId>,
    /// The view whose name stands here.
    pub view: Option<ViewUse>,
}

impl Derived {
    /// A block that has no name, below another one.
    pub fn unnamed(query: QueryExpr) -> Self {
        Self { query, alias: "".into(), outer: Vec::new(), view: None }
    }

    /// Whether no text of a statement or a view has it.
    pub fn is_unnamed(&self) -> bool {
        self.alias.is_empty() && self.view.is_none()
    }
}

#[derive(Clone, Debug)]
pub struct ViewUse {
    pub def: Arc<TableDef>,
    /// Whether it is merged with the query around it.
    pub merges: bool,
}

#[derive(Clone, Debug)]
pub struct CteRef {
    pub cte: CteId,
    pub alias: Arc<str>,
    /// The id here for each column of the CTE.
    pub columns: Vec<ColumnId>,
}

#[derive(Clone, Debug)]
pub struct Join {
    pub kind: JoinKind,
    pub left: From,
    pub right: From,
    /// None for a cross join.
    pub on: Option<Expr>,
}

/// Right joins are bound as left joins with the sides exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
}

#[derive(Clone, Debug)]
pub struct Aggregation {
    pub keys: Vec<Projected>,
    pub aggregates: Vec<Aggregate>,
    pub rollup: bool,
}

#[derive(Clone, Debug)]
pub struct Aggregate {
    pub id: ColumnId,
    pub function: AggregateFunction,
    /// Converted to what the function takes. Empty for `COUNT(*)`.
    pub args: Vec<Expr>,
    pub distinct: bool,
    /// Of GROUP_CONCAT.
    pub order_by: Vec<(Expr, bool)>,
    pub separator: Arc<str>,
    /// Of GROUP_CONCAT of bytes: the texts stand for them, with a character of latin1 for each.
    pub of_bytes: bool,
}

impl Aggregate {
    /// The character set in whose bytes the length of a GROUP_CONCAT is counted; `text` is what it puts together.
    pub fn concat_charset(&self, text: &Expr) -> Charset {
        match self.of_bytes {
            true => Charset::Latin1,
            false => text.ty.charset().unwrap_or(Charset::Utf8mb4),
        }
    }

    /// ANY_VALUE(arg)
    pub fn any_value(id: ColumnId, arg: Expr) -> Self {
        Self {
            id,
            function: AggregateFunction::AnyValue,
            args: vec![arg],
            distinct: false,
            order_by: Vec::new(),
            separator: "".into(),
            of_bytes: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    StddevPop,
    StddevSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    /// Of arrays of one element each.
    JsonArrayAgg,
    /// Of objects of one member each.
    JsonObjectAgg,
    /// ANY_VALUE, and columns that the grouping keys determine.
    AnyValue,
    /// `GROUPING(key, …)` under WITH ROLLUP.
    Grouping,
}

#[derive(Clone, Debug)]
pub struct WindowFunction {
    pub id: ColumnId,
    pub kind: WindowKind,
    pub args: Vec<Expr>,
    pub partition_by: Vec<Expr>,
    /// With `true` for descending. NULLs come first ascending and last descending.
    pub order_by: Vec<(Expr, bool)>,
    pub frame: Option<Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(AggregateFunction),
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: FrameBound,
}

impl Frame {
    pub fn distances(&self) -> impl Iterator<Item = &Distance> {
        [&self.start, &self.end].into_iter().filter_map(|bound| match bound {
            FrameBound::Preceding(distance) | FrameBound::Following(distance) => Some(distance),
            _ => None,
        })
    }
}

#[derive(Clone, Debug)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Distance),
    CurrentRow,
    Following(Distance),
    UnboundedFollowing,
}

#[derive(Clone, Debug)]
pub enum Distance {
    /// Rows, or what a number is beside the sort key's.
    Value(Expr),
    /// Beside a date or time.
    Interval(Expr, IntervalUnit),
}

/// A subquery used as a value: the enclosing block's expressions see its answer as the column `id`.
#[derive(Clone, Debug)]
pub struct Subquery {
    pub id: ColumnId,
    pub kind: SubqueryKind,
    pub query: QueryExpr,
    /// Columns of enclosing blocks that it uses, sorted; empty for an uncorrelated one.
    pub outer: Vec<ColumnId>,
}

#[derive(Clone, Debug)]
pub enum SubqueryKind {
    /// One column; NULL for no row; error 1242 for more than one.
    Scalar,
    Exists {
        negated: bool,
    },
    /// `needles IN (query)`, three-valued. The needles are the enclosing block's expressions, already converted
    /// to the types of the query's columns.
    In {
        needles: Vec<Expr>,
        negated: bool,
    },
    /// `left op ANY|ALL (query)`, three-valued.
    Quantified {
        op: Comparison,
        all: bool,
        left: Expr,
    },
}

impl SubqueryKind {
    /// The columns of the enclosing block that are compared with the query's rows.
    pub fn operands(&self) -> impl Iterator<Item = ColumnId> {
        let operands = match self {
            Self::Scalar | Self::Exists { .. } => &[][..],
            Self::In { needles, .. } => needles,
            Self::Quantified { left, .. } => std::slice::from_ref(left),
        };
        operands.iter().flat_map(Expr::columns).map(|column| ColumnId(column as u32))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// What holds where this does not, of values that are not NULL.
    pub fn opposite(self) -> Self {
        match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
        }
    }
}

#[derive(Clone, Debug)]
pub struct SetOperation {
    pub op: SetOperator,
    pub all: bool,
    pub left: QueryExpr,
    pub right: QueryExpr,
    /// The unified columns; each side's output is converted to their types.
    pub columns: Vec<ColumnId>,
}

#[derive(Clone, Debug)]
pub struct Values {
    pub rows: Vec<Vec<Expr>>,
    pub columns: Vec<ColumnId>,
}

#[derive(Clone, Debug)]
pub struct JsonTable {
    /// JSON, or NULL: no rows.
    pub document: Expr,
    pub level: Arc<avocet_types::json::table::Level>,
    pub columns: Vec<ColumnId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    pub column: ColumnId,
    pub descending: bool,
}

/// Constants or parameters.
#[derive(Clone, Debug)]
pub struct Limit {
    pub count: Expr,
    pub offset: Option<Expr>,
}

impl QueryExpr {
    /// One block, whose rows come in any order.
    pub fn of_block(select: Select, outputs: Vec<ColumnId>) -> Self {
        let body = QueryBody::Select(Box::new(select));
        Self { ctes: Vec::new(), body, order_by: Vec::new(), limit: None, outputs }
    }
}

impl Select {
    /// `SELECT projection FROM from`
    pub fn plain(from: From, projection: Vec<Projected>) -> Self {
        Self {
            from,
            filter: None,
            aggregation: None,
            having: None,
            has_second_filter: false,
            windows: Vec::new(),
            projection,
            distinct: false,
            subqueries: Vec::new(),
        }
    }
}

/// Whether a view's query is a part of whatever reads it: rows of tables that meet a condition, each as it is (MySQL Reference
/// Manual, 27.6.2 "View Processing Algorithms").
pub fn can_merge(query: &QueryExpr) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    let answers_in_list = |expr: &Expr| {
        expr.columns().iter().any(|id| select.subqueries.iter().any(|s| s.id == ColumnId(*id as u32)))
    };
    shows_rows(query)
        && !select.projection.iter().any(|item| item.expr.is_volatile() || answers_in_list(&item.expr))
}

/// Whether ALGORITHM = MERGE fits a view's query. What is random, or costly, in its list is computed once for each of its rows here.
pub fn shows_rows(query: &QueryExpr) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    query.ctes.is_empty()
        && query.limit.is_none()
        && !matches!(select.from, From::Dual)
        && select.aggregation.is_none()
        && select.having.is_none()
        && !select.has_second_filter
        && select.windows.is_empty()
        && !select.distinct
}
