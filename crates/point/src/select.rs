//! A compiled query: the tables that it visits, and what becomes of their rows.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use avocet_base::RowId;
use avocet_engine::{RowLock, TableHandle};
use avocet_types::Collation;
use avocet_types::expr::RowProgram;

use super::Table;
use super::aggregate::Aggregation;
use super::choose::Access;
use super::subplan::SubPlan;
use super::windows::Windows;

/// A compiled query.
#[derive(Debug)]
pub struct Select {
    /// Tables in the order in which they are visited, each for every row of those before.
    pub levels: Box<[Level]>,
    pub slots: Arc<[(u8, u16)]>,
    /// Whether rows of some table are locked.
    pub locks: bool,
    /// Expressions assign to user variables.
    pub assigns: bool,
    /// Running it twice does no harm.
    pub repeatable: bool,
    /// The ids of rows are among its columns.
    pub gives_ids: bool,
    /// The first row found is all that matters.
    pub first_only: bool,
    /// What has to hold before any row is looked for.
    pub gate: Option<RowProgram>,
    /// Nothing is known of how many rows it visits, and it is left if they become many.
    pub is_tried: bool,
    pub record: Record,
    /// Nearly each row of the first table leads to a row, and it wants the same of them whenever they are looked at: there need be
    /// no more of them than are taken, or some more, in several turns.
    pub in_turns: bool,
    /// The rows of the first table are put in this order before they are joined, so that a LIMIT ends the join.
    pub lead_order: Box<[LeadTerm]>,
    pub output: Output,
    pub limit: Option<RowProgram>,
    pub offset: Option<RowProgram>,
    /// SQL_CALC_FOUND_ROWS: rows beyond LIMIT are counted, not sent.
    pub counts_all: bool,
}

/// How a plan did that may be left for another path: one that was wrong about its rows is not taken each time.
#[derive(Debug, Default)]
pub struct Record {
    /// Runs that were left, since the last one that was not.
    left: AtomicU32,
    /// Those that were not begun, since the last one that was.
    skipped: AtomicU32,
}

impl Record {
    /// Whether the next run is worth it: after each that was left, half as often, at least one of 64.
    pub fn is_worth_it(&self) -> bool {
        let left = self.left.load(Relaxed);
        if left == 0 {
            return true;
        }
        let skips = (1 << left.min(6)) - 1;
        if self.skipped.load(Relaxed) < skips {
            self.skipped.fetch_add(1, Relaxed);
            return false;
        }
        self.skipped.store(0, Relaxed);
        true
    }

    pub fn note(&self, was_left: bool) {
        if was_left {
            self.left.fetch_add(1, Relaxed);
        } else if self.left.load(Relaxed) > 0 {
            self.left.store(0, Relaxed);
        }
    }
}

/// A table of a query, or a subquery whose rows stand for one.
#[derive(Debug)]
pub struct Level {
    pub source: Source,
    /// Its number in the scope.
    pub position: usize,
    /// To the right of a left join: ON, as far as the keys do not guarantee it.
    pub on: Option<RowProgram>,
    /// Where no row is found, one of NULLs takes its place.
    pub outer: bool,
    pub residual: Option<RowProgram>,
    /// How its rows are locked.
    pub lock: Option<RowLock>,
    /// If given, only these rows are read.
    pub only: Option<Arc<HashSet<RowId>>>,
    /// If the source leads to many rows, the first ones in the wanted order are looked for along that.
    pub along: Option<Box<Along>>,
    /// How many rows were visited along it.
    pub visited: LastCount,
}

/// A way along the order that is wanted.
#[derive(Debug)]
pub struct Along {
    pub access: Access,
    pub residual: Option<RowProgram>,
}

/// What was counted in the last run, as far as there was one: what the next one is taken to come to.
#[derive(Debug)]
pub struct LastCount(AtomicU64);

impl Default for LastCount {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl LastCount {
    pub fn get(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|count| *count < u64::MAX)
    }

    pub fn set(&self, count: u64) {
        // Plans are shared: what is the same already is not written.
        if self.0.load(Relaxed) != count {
            self.0.store(count, Relaxed);
        }
    }
}

impl Level {
    pub fn reads(&self, id: RowId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&id))
    }
}

/// Where the rows of a level come from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few per plan, and mostly the large one")]
pub enum Source {
    Table { table: Table, access: Access },
    Subquery(Box<SubPlan>),
}

/// What becomes of the rows.
#[derive(Debug)]
pub struct Output {
    /// Visible columns, then sort keys, then what `late` needs.
    pub programs: Box<[RowProgram]>,
    pub visible: usize,
    /// Visible columns, by their numbers, that are computed of the kept row when it is sent: of rows that LIMIT leaves out they are
    /// not. Their programs above give NULL.
    pub late: Box<[(usize, RowProgram)]>,
    pub distinct: bool,
    /// Empty if the rows come in order.
    pub order: Box<[SortTerm]>,
    /// They come in the order of so many of the first terms.
    pub presorted: usize,
    pub aggregation: Option<Aggregation>,
    /// What stands after it is then over what the windows pass on.
    pub windows: Option<Windows>,
}

#[derive(Debug)]
pub struct SortTerm {
    pub program: usize,
    pub descending: bool,
    pub collation: Collation,
}

/// A column of the first table that its rows are ordered by.
#[derive(Clone, Copy, Debug)]
pub struct LeadTerm {
    pub column: usize,
    pub descending: bool,
    pub collation: Collation,
}

impl Select {
    /// The tables in the order of visits, each with its index.
    pub fn locks_exclusively(&self) -> bool {
        self.levels.iter().any(|level| {
            level.lock.is_some_and(|lock| lock.exclusive)
                || matches!(&level.source, Source::Subquery(plan) if plan.selects.iter().any(Self::locks_exclusively))
        })
    }

    /// Whether rows are sent as they are found.
    pub fn sends_in_order(&self) -> bool {
        let output = &self.output;
        let waits = output.aggregation.is_some() || output.windows.is_some() || !output.order.is_empty();
        !waits && self.lead_order.is_empty()
    }

    pub fn is_one_row(&self) -> bool {
        self.levels.is_empty() && self.gate.is_none() && self.output.aggregation.is_none()
    }

    pub fn describe(&self) -> String {
        let level = |level: &Level| {
            let source = match &level.source {
                Source::Table { table, access } => {
                    describe_ways(table, access, level.along.as_ref().map(|along| &along.access))
                }
                Source::Subquery(plan) => describe_subplan(plan),
            };
            if level.outer { format!("left join {source}") } else { source }
        };
        let levels: Vec<_> = self.levels.iter().map(level).collect();
        match (levels.is_empty(), self.is_tried) {
            (true, _) => "no tables".to_owned(),
            (false, true) => format!("{}, if it is soon done", levels.join(", then ")),
            (false, false) => levels.join(", then "),
        }
    }
}

/// How rows are found, and the way along an order that there may be beside.
pub fn describe_ways(table: &TableHandle, access: &Access, along: Option<&Access>) -> String {
    let way = access.describe(table);
    match along {
        Some(along) => format!("{way}, or {} if that is sooner", along.describe_index(table)),
        None => way,
    }
}

fn describe_subplan(plan: &SubPlan) -> String {
    match plan.recursion() {
        Some([seed, step]) => {
            format!("({}, again and again {})", describe_subplan(seed), describe_subplan(step))
        }
        None => {
            let parts: Vec<_> = plan.selects.iter().map(Select::describe).collect();
            format!("({})", parts.join(", and "))
        }
    }
}
