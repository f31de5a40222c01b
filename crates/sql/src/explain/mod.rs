//! How a statement is run, as EXPLAIN shows it: steps that a planner describes, in the three forms that MySQL knows.
//!
//! ```text
//!  relational::Plan ──┐           ┌─▶ tree.rs   FORMAT=TREE, and ANALYZE
//!                      ├─▶ Step ────┼─▶ table.rs  FORMAT=TRADITIONAL
//!  point::PointPlan ───┘            └─▶ json.rs   FORMAT=JSON
//! ```

mod json;
mod table;
mod tree;

pub use json::json;
pub use table::{Row, rows};
pub use tree::tree;

/// One step and what it reads from.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// As the tree shows it.
    pub what: String,
    pub estimate: Option<Estimate>,
    /// Of a statement that was run.
    pub actual: Option<Measured>,
    /// The table that it reads.
    pub access: Option<Access>,
    /// It begins a query block of its own.
    pub block: Option<Block>,
    /// What it does to the rows of the tables below, in the words of `Extra`.
    pub notes: Vec<Note>,
    pub inputs: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Of this step and those below it.
    pub cost: f64,
    pub rows: f64,
    /// What the number of rows was made from.
    pub from: &'static str,
}

/// What a step did. Of several runs the average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    pub rows: f64,
    pub loops: u64,
    pub first_ms: f64,
    pub all_ms: f64,
    /// At its highest, in bytes.
    pub memory: Option<u64>,
}

/// How a table is read.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The name that the statement gives it.
    pub table: String,
    pub kind: AccessKind,
    pub possible_keys: Vec<String>,
    pub key: Option<String>,
    /// Bytes of the key that are used.
    pub key_len: Option<u32>,
    /// What the key is compared with.
    pub refs: Vec<String>,
    pub rows: f64,
    /// Of these rows the conditions keep so many, in percent.
    pub filtered: f64,
    pub condition: Option<String>,
    /// Besides what conditions say.
    pub notes: Vec<Note>,
}

/// MySQL's join types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessKind {
    /// All rows.
    #[default]
    All,
    /// All rows along an index.
    Index,
    Range,
    IndexMerge,
    Ref,
    /// One row for each of those before.
    EqRef,
    /// One row.
    Const,
}

impl AccessKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "ALL",
            Self::Index => "index",
            Self::Range => "range",
            Self::IndexMerge => "index_merge",
            Self::Ref => "ref",
            Self::EqRef => "eq_ref",
            Self::Const => "const",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Evaluated once.
    Subquery,
    /// For each row.
    DependentSubquery,
    Derived,
    Union,
    Insert,
    Update,
    Delete,
}

impl Block {
    pub fn name(self) -> &'static str {
        match self {
            Self::Subquery => "SUBQUERY",
            Self::DependentSubquery => "DEPENDENT SUBQUERY",
            Self::Derived => "DERIVED",
            Self::Union => "UNION",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// In the order in which MySQL lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    Temporary,
    Filesort,
    HashJoin,
    Index,
    IndexCondition,
    GroupBy,
    /// Rows are visited one by one, by a plan that was compiled for the statement.
    Point,
}

impl Note {
    pub fn text(self) -> &'static str {
        match self {
            Self::Temporary => "Using temporary",
            Self::Filesort => "Using filesort",
            Self::HashJoin => "Using join buffer (hash join)",
            Self::Index => "Using index",
            Self::IndexCondition => "Using index condition",
            Self::GroupBy => "Using index for group-by",
            Self::Point => "Using point plan",
        }
    }
}

impl Step {
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    pub fn over(what: impl Into<String>, input: Self) -> Self {
        Self { inputs: vec![input], ..Self::new(what) }
    }

    pub fn with_note(mut self, note: Note) -> Self {
        self.notes.push(note);
        self
    }
}
