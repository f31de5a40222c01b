//! The syntax tree of MySQL statements.
//!
//! Nodes keep their place in the source text: MySQL names an unaliased output column by the text that the
//! user wrote, and quotes the source in its errors. Nothing here is resolved; that is the binder's work.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use avocet_types::collation::Charset;

pub use avocet_types::expr::{CastTarget, IntervalUnit, IsTest};

/// The user variables that a statement's expressions assign to. Whoever reads one knows them only when all of the statement has
/// been parsed.
#[derive(Clone, Debug, Default)]
pub struct AssignedNames(Arc<OnceLock<Box<[String]>>>);

impl AssignedNames {
    /// What is set once stays.
    pub(super) fn set(&self, names: &[String]) {
        if !names.is_empty() {
            self.0.get_or_init(|| names.into());
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.get().is_some_and(|names| names.iter().any(|known| known == name))
    }
}

/// They say nothing that the statement's nodes do not say.
impl PartialEq for AssignedNames {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Byte offsets into the source text of the statement list that was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }

    pub fn bytes(self, source: &[u8]) -> &[u8] {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    pub fn text(self, source: &[u8]) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(source))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    pub name: String,
    pub span: Span,
}

/// `name` or `database.name`.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectName {
    pub database: Option<Ident>,
    pub name: Ident,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Null,
    Bool(bool),
    Integer(u64),
    /// A number with a point and no exponent, or an integer above 2^64 − 1: exact, as written.
    Decimal(String),
    /// A number with an exponent.
    Float(f64),
    /// With the charset of an introducer such as `_utf8mb4'…'` or `N'…'`.
    String {
        value: String,
        charset: Option<Charset>,
    },
    /// `_binary'…'`
    Bytes(Vec<u8>),
    /// `x'…'`, `0x…` (or `b'…'`, `0b…`): bytes, and a number where one is asked for.
    Hybrid {
        bytes: Vec<u8>,
        bits: bool,
    },
    /// `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'`.
    Temporal {
        kind: TemporalKind,
        text: String,
    },
    /// A `?`; numbered from 0 within the statement.
    Param(u32),
    Column {
        database: Option<Ident>,
        table: Option<Ident>,
        column: Ident,
    },
    SystemVariable {
        scope: VariableScope,
        name: String,
    },
    UserVariable {
        name: String,
        among: AssignedNames,
    },
    /// `@name := value`
    AssignVariable {
        name: String,
        value: Box<Expr>,
    },
    /// `DEFAULT`: that of the column to which it is assigned.
    Default,
    /// `DEFAULT(column)`
    DefaultOf {
        database: Option<Ident>,
        table: Option<Ident>,
        column: Ident,
    },
    Unary {
        op: UnaryOp,
        expr: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// Two or more operands: long chains must not make deep trees.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Is {
        expr: Box<Expr>,
        test: IsTest,
        negated: bool,
    },
    InList {
        expr: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InSubquery {
        expr: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Between {
        expr: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    Like {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    Regexp {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(e AS t)`, `CONVERT(e, t)`, and the `BINARY e` operator.
    Cast {
        expr: Box<Expr>,
        target: CastTarget,
    },
    /// `CONVERT(e USING charset)`
    ConvertUsing {
        expr: Box<Expr>,
        charset: String,
    },
    Collate {
        expr: Box<Expr>,
        collation: String,
    },
    /// A call of a scalar function by name, and the forms with a syntax of their own that mean one
    /// (`SUBSTRING(a FROM b)`, `POSITION(a IN b)`, `CURRENT_DATE`). The name is as it was written.
    Function {
        name: String,
        args: Vec<Expr>,
    },
    Aggregate(Box<AggregateCall>),
    Window(Box<WindowCall>),
    /// `e ± INTERVAL n unit`, `DATE_ADD`, `DATE_SUB`, `ADDDATE`, `SUBDATE`, `TIMESTAMPADD`.
    DateArithmetic {
        expr: Box<Expr>,
        amount: Box<Expr>,
        unit: IntervalUnit,
        subtract: bool,
    },
    Extract {
        unit: IntervalUnit,
        expr: Box<Expr>,
    },
    TimestampDiff {
        unit: IntervalUnit,
        from: Box<Expr>,
        to: Box<Expr>,
    },
    Trim {
        side: TrimSide,
        what: Option<Box<Expr>>,
        expr: Box<Expr>,
    },
    JsonValue(Box<JsonValueCall>),
    Row(Vec<Expr>),
    Subquery(Box<Query>),
    Exists(Box<Query>),
    /// `left op ANY|ALL (query)`
    Quantified {
        op: BinaryOp,
        left: Box<Expr>,
        all: bool,
        query: Box<Query>,
    },
    /// `VALUES(column)`: in ON DUPLICATE KEY UPDATE what the row would have had, elsewhere NULL.
    InsertedValue {
        database: Option<Ident>,
        table: Option<Ident>,
        column: Ident,
    },
    /// Known, but not served: to be refused by this name.
    Unsupported(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemporalKind {
    Date,
    Time,
    Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    /// `@@name`: the session's value if there is one, else the global one.
    Default,
    Session,
    Global,
    /// `SET PERSIST`
    Persist,
    PersistOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    Not,
    BitNot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Xor,
    Eq,
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitAnd,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    /// `||` under PIPES_AS_CONCAT.
    Concat,
}

impl BinaryOp {
    pub fn is_arithmetic(self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::Mul | Self::Div | Self::IntDiv | Self::Mod)
    }

    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::NullSafeEq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    /// In upper case: COUNT, SUM, GROUP_CONCAT, …
    pub name: String,
    pub distinct: bool,
    /// Empty for `COUNT(*)`.
    pub args: Vec<Expr>,
    /// Of GROUP_CONCAT.
    pub order_by: Vec<OrderItem>,
    pub separator: Option<String>,
    pub over: Option<WindowRef>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonValueCall {
    pub document: Box<Expr>,
    pub path: Box<Expr>,
    pub returning: Option<CastTarget>,
    pub on_empty: OnJsonProblem,
    pub on_error: OnJsonProblem,
}

/// `JSON_TABLE(document, path COLUMNS (…))`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    pub document: Expr,
    pub path: String,
    pub columns: Vec<JsonTableColumn>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonTableColumn {
    /// `name FOR ORDINALITY`
    Ordinality(Ident),
    /// `name type [EXISTS] PATH path …`
    Path(Box<JsonTablePath>),
    /// `NESTED PATH path COLUMNS (…)`
    Nested { path: String, columns: Vec<JsonTableColumn> },
}

/// A column of JSON_TABLE with a path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTablePath {
    pub name: Ident,
    pub ty: TypeSpec,
    /// Whether there is a value, not which.
    pub exists: bool,
    pub path: String,
    pub on_empty: OnJsonProblem,
    pub on_error: OnJsonProblem,
}

/// A column type as written; what it means (widths, default collation) is decided by the statement.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeSpec {
    /// In upper case, without arguments: `INT`, `VARCHAR`, `DOUBLE`, …
    pub name: String,
    pub args: Vec<u64>,
    /// Of ENUM and SET.
    pub values: Vec<String>,
    pub unsigned: bool,
    pub zerofill: bool,
    pub charset: Option<String>,
    pub collation: Option<String>,
    /// `BINARY` after a character type: the charset's binary collation.
    pub binary: bool,
    pub span: Span,
}

impl TypeSpec {
    /// ENUM('a'): a list of strings, which must be there.
    pub fn has_members(&self) -> bool {
        matches!(self.name.as_str(), "ENUM" | "SET")
    }

    /// INT(11), VARCHAR(10): not DATE(3).
    pub fn may_have_args(&self) -> bool {
        !matches!(
            self.name.as_str(),
            "BOOL"
                | "BOOLEAN"
                | "DATE"
                | "GEOMCOLLECTION"
                | "GEOMETRY"
                | "GEOMETRYCOLLECTION"
                | "JSON"
                | "LINESTRING"
                | "MULTILINESTRING"
                | "MULTIPOINT"
                | "MULTIPOLYGON"
                | "POINT"
                | "POLYGON"
                | "SERIAL"
                | "TINYTEXT"
                | "TINYBLOB"
                | "MEDIUMTEXT"
                | "MEDIUMBLOB"
                | "LONGTEXT"
                | "LONGBLOB"
        )
    }

    pub fn is_approximate(&self) -> bool {
        matches!(self.name.as_str(), "FLOAT" | "FLOAT4" | "DOUBLE")
    }

    pub fn is_integer(&self) -> bool {
        let named = matches!(
            self.name.as_str(),
            "TINYINT" | "SMALLINT" | "MEDIUMINT" | "MIDDLEINT" | "INT" | "INTEGER" | "BIGINT"
        );
        named || matches!(self.name.as_str(), "INT1" | "INT2" | "INT3" | "INT4" | "INT8")
    }

    /// Whether it may be UNSIGNED.
    pub fn is_number(&self) -> bool {
        let exact = matches!(self.name.as_str(), "DECIMAL" | "DEC" | "NUMERIC" | "FIXED");
        self.is_integer() || exact || self.is_approximate() || self.name == "YEAR"
    }

    /// Whether it may have a character set.
    pub fn is_text(&self) -> bool {
        self.name.ends_with("CHAR")
            || self.name.ends_with("TEXT")
            || matches!(self.name.as_str(), "CHARACTER" | "VARCHARACTER" | "ENUM" | "SET")
    }
}

/// What JSON_VALUE and a column of JSON_TABLE give where there is nothing, or no value of their type.
#[derive(Clone, Debug, PartialEq)]
pub enum OnJsonProblem {
    Null,
    Error,
    Default(Expr),
}

/// A call of a function that exists only as a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub name: String,
    pub args: Vec<Expr>,
    pub ignore_nulls: bool,
    pub from_last: bool,
    pub over: WindowRef,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WindowRef {
    Named(Ident),
    Inline(WindowSpec),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSpec {
    /// The named window that this one extends.
    pub base: Option<Ident>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: FrameBound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>, Option<IntervalUnit>),
    CurrentRow,
    Following(Box<Expr>, Option<IntervalUnit>),
    UnboundedFollowing,
}

/// A query expression: `WITH … body ORDER BY … LIMIT …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub locks: Vec<LockClause>,
    pub span: Span,
}

impl Query {
    /// A body and nothing else.
    pub fn of(body: QueryBody) -> Self {
        Self { with: None, body, order_by: Vec::new(), limit: None, locks: Vec::new(), span: Span::default() }
    }

    /// Whether there is nothing but the body.
    pub fn is_body_alone(&self) -> bool {
        self.with.is_none() && self.order_by.is_empty() && self.limit.is_none() && self.locks.is_empty()
    }

    /// `SELECT exprs`
    pub fn select_of(exprs: impl IntoIterator<Item = Expr>) -> Self {
        let items = exprs.into_iter().map(|expr| SelectItem::Expr { expr, alias: None }).collect();
        let select = Select { items, ..Select::default() };
        Self {
            with: None,
            body: QueryBody::Select(Box::new(select)),
            order_by: Vec::new(),
            limit: None,
            locks: Vec::new(),
            span: Span::default(),
        }
    }
}

impl Query {
    /// The block that begins the query, whose options may be about all of it.
    pub fn first_select(&self) -> Option<&Select> {
        self.body.first_select()
    }

    pub fn first_select_mut(&mut self) -> Option<&mut Select> {
        self.body.first_select_mut()
    }

    /// Whether it gives one row, whatever its values are: without tables, conditions and aggregates.
    pub fn is_one_row(&self) -> bool {
        let select = match &self.body {
            QueryBody::Select(select) => select,
            QueryBody::Values(rows) => return rows.len() == 1,
            QueryBody::JsonTable(_) => return false,
            _ => return false,
        };
        let has_aggregate =
            |item: &SelectItem| matches!(item, SelectItem::Expr { expr, .. } if expr.has_aggregate());
        self.with.is_none()
            && select.from.is_empty()
            && select.filter.is_none()
            && select.having.is_none()
            && select.group_by.is_empty()
            && !select.items.iter().any(has_aggregate)
    }
}

impl QueryBody {
    pub(crate) fn first_select(&self) -> Option<&Select> {
        match self {
            Self::Select(select) => Some(select),
            Self::SetOperation { left, .. } => left.first_select(),
            Self::Parenthesized(query) => query.first_select(),
            Self::Values(_) | Self::JsonTable(_) | Self::Table(_) => None,
        }
    }

    fn first_select_mut(&mut self) -> Option<&mut Select> {
        match self {
            Self::Select(select) => Some(select),
            Self::SetOperation { left, .. } => left.first_select_mut(),
            Self::Parenthesized(query) => query.first_select_mut(),
            Self::Values(_) | Self::JsonTable(_) | Self::Table(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub ctes: Vec<Cte>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub name: Ident,
    pub columns: Vec<Ident>,
    pub query: Query,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    SetOperation {
        op: SetOperator,
        all: bool,
        left: Box<QueryBody>,
        right: Box<QueryBody>,
    },
    /// `VALUES ROW(…), ROW(…)`
    Values(Vec<Vec<Expr>>),
    /// `JSON_TABLE(…)`: of a derived table alone.
    JsonTable(Box<JsonTable>),
    /// `TABLE t`
    Table(ObjectName),
    Parenthesized(Box<Query>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub straight_join: bool,
    pub calc_found_rows: bool,
    pub items: Vec<SelectItem>,
    /// Comma-separated; empty means FROM DUAL or no FROM at all.
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub rollup: bool,
    pub having: Option<Expr>,
    pub windows: Vec<(Ident, WindowSpec)>,
}

impl Select {
    /// `SELECT * FROM t`, which `TABLE t` stands for.
    pub fn all_of(name: &ObjectName) -> Self {
        let span = name.name.span;
        Self {
            items: vec![SelectItem::Wildcard { database: None, table: None, span }],
            from: vec![TableRef::Table { name: name.clone(), alias: None, hints: Vec::new() }],
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`, `t.*`, `db.t.*`
    Wildcard {
        database: Option<Ident>,
        table: Option<Ident>,
        span: Span,
    },
    Expr {
        expr: Expr,
        alias: Option<Ident>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Table { name: ObjectName, alias: Option<Ident>, hints: Vec<IndexHint> },
    Derived { query: Box<Query>, alias: Option<Ident>, columns: Vec<Ident>, lateral: bool, span: Span },
    Join(Box<Join>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub left: TableRef,
    pub right: TableRef,
    pub condition: JoinCondition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// `JOIN`, `INNER JOIN`, `CROSS JOIN`, `STRAIGHT_JOIN` and the comma.
    Inner,
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    None,
    On(Expr),
    Using(Vec<Ident>),
    Natural,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexHint {
    pub kind: IndexHintKind,
    pub indexes: Vec<Ident>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintKind {
    /// `PARTITION (p, …)`: names partitions, not indexes, and there is no row but theirs.
    Partition,
    Use,
    Ignore,
    Force,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub offset: Option<Expr>,
    pub count: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockClause {
    pub exclusive: bool,
    pub of: Vec<ObjectName>,
    pub wait: LockWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Wait,
    NoWait,
    SkipLocked,
}
