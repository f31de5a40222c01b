//! The point path: compiled plans for statements that touch few rows through an index. What transactions run on.
//!
//! ```text
//!  BoundQuery ─────────┐                       ┌─ choose   which index
//!                      │                       ├─ joins    in which order of tables and subqueries (subplan)
//!  ast::Update, Delete ┼─▶ compile_… ─▶ PointPlan ─ keys     key ranges from parameters and outer rows
//!  ast::Insert ────────┘        │              ├─ run      rows visited (visit), joined, filtered, handed to the pipeline
//!                               ▼              ├─ write    rows of one table changed, new ones inserted (insert, upsert)
//!                      NotPoint(reason)        └─ modify   rows changed that a query found
//! ```
//!
//! A plan is made once for a statement (its text, the types of its parameters, the catalog's version) and run any number
//! of times, from any number of sessions: it is immutable. Running it calls the engine directly, without an intermediate
//! representation of rows; buffers come from the session's [`PointScratch`].
//!
//! Invariants:
//! 1. What a plan answers is what the general path answers: keys only narrow the search. A condition is dropped only if
//!    the keys guarantee it.
//! 2. A statement that changes rows first finds and locks all of them, and then changes them; one that inserts a query's
//!    rows has all of them before: it never meets its own changes.
//! 3. Parameters have the types in [`PointPlan::params`], or are NULL.
//! 4. Whatever visits rows counts them, and whatever keeps some counts their bytes (`bounds`), so that KILL, deadlines and memory
//!    limits end it. A query of which nothing was sent may be left to another path at any time.
//! 5. Who runs a plan begins the statement before (`Txn::begin_statement`), and takes it back after an error.

mod aggregate;
mod assign;
mod bounds;
mod checks;
mod choose;
mod compile;
mod explain;
mod ignore;
mod insert;
mod joins;
mod keys;
mod known;
mod late;
mod locks;
mod lookups;
mod loose;
mod measure;
mod modify;
mod numbers;
mod pipeline;
mod rows;
mod run;
mod scope;
mod select;
mod subplan;
mod upsert;
mod visit;
mod windows;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use avocet_base::{RowId, TableId};
use avocet_channel::{OutputColumn, PlanColumns, ResultSink};
use avocet_engine::{Catalog, EngineError, ReadScratch, TableHandle, Txn};
use avocet_sql::bind::unsupported;
use avocet_types::compare::sort_order;
use avocet_types::convert::{ConvertContext, StoreError};
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, EvalError, Warning};
use avocet_types::temporal::date_of;
use avocet_types::{Datum, RowRules, SqlType, Value};

pub use assign::{Assignments, not_for_generated};
pub use bounds::Bounds;
pub use checks::{RowCheck, first_failed, warn_of_check};
pub use compile::compile_query;
pub use ignore::{can_ignore, is_of_row, warn_of, warn_of_row};
pub use insert::{
    BULK_ROWS, LARGE_SHARE, compile_insert, implicit_default, no_default, note_updated, now, unstated_default,
};
pub use locks::row_lock;
pub use lookups::LookupScratch;
pub use measure::Measurements;
pub use modify::Changer;
pub use numbers::within_range;
pub use rows::Rows;
pub use scope::{ReadAs, dates_of};
pub use subplan::WorkTable;
pub use upsert::{NewRow, Rounds, Updates, Upserted, auto_number, conflicting};
pub use write::{compile_delete, compile_update};

/// Why a statement has no point plan; EXPLAIN shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPoint(Cow<'static, str>);

impl NotPoint {
    pub fn because(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for NotPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What compiling gives instead of a plan.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// Another path is to take the statement.
    NotPoint(NotPoint),
    /// The statement is wrong.
    Error(SqlError),
}

impl Refusal {
    /// What the client is told where no other path can take the statement.
    pub fn into_error(self) -> SqlError {
        match self {
            Self::NotPoint(reason) => unsupported(reason),
            Self::Error(error) => error,
        }
    }
}

impl From<NotPoint> for Refusal {
    fn from(reason: NotPoint) -> Self {
        Self::NotPoint(reason)
    }
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

impl From<EvalError> for Refusal {
    fn from(error: EvalError) -> Self {
        Self::Error(error.into())
    }
}

/// A compiled statement.
#[derive(Debug)]
pub struct PointPlan {
    kind: Kind,
    tables: Vec<Table>,
    params: Vec<SqlType>,
    /// Of the result set; empty for a statement without one.
    columns: PlanColumns,
    /// Parameters with text that is compared as a date.
    dates: Box<[(usize, ReadAs)]>,
    /// Variables of the session stand in it as the values that they had: it is for one run.
    is_of_session: bool,
}

/// What a plan's statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Select,
    Insert,
    Update,
    Delete,
}

#[derive(Debug)]
enum Kind {
    Select(select::Select),
    Update(write::Update),
    Delete(write::Delete),
    Modify(modify::Modify),
    Insert(insert::Insert),
}

/// A table in a plan.
#[derive(Clone)]
struct Table(Arc<TableHandle>);

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.def.name)
    }
}

impl std::ops::Deref for Table {
    type Target = Arc<TableHandle>;

    fn deref(&self) -> &Arc<TableHandle> {
        &self.0
    }
}

/// What running a plan came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows that an UPDATE found, whether it changed them or not; rows of an INSERT or DELETE.
    pub matched: u64,
    /// Rows that are other than before.
    pub changed: u64,
    /// Rows of an INSERT whose key was there already, and those of them that kept their values.
    pub duplicates: u64,
    pub unchanged: u64,
    /// The first AUTO_INCREMENT value that was generated, or 0.
    pub last_insert_id: u64,
    /// That of the last row that was inserted, or changed instead, whoever gave it; 0 without such a column.
    pub last_number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The columns and so many rows went into the sink. Its end is for the caller to mark.
    Rows(u64),
    Changed(Changes),
    /// Too many rows to go through one by one: another path is to take the statement. Nothing happened yet.
    Declined,
}

/// Memory of running plans, to be used again and again.
#[derive(Default)]
pub struct PointScratch {
    levels: Vec<LevelScratch>,
    values: Vec<Datum<'static>>,
    changes: Vec<(usize, Datum<'static>)>,
    /// That a change goes on with.
    rows: Rows,
    lookups: LookupScratch,
}

/// What a run of a plan is given.
#[derive(Clone, Copy)]
pub struct Run<'r> {
    pub params: &'r [Datum<'r>],
    pub ctx: &'r EvalContext,
    pub bounds: &'r Bounds<'r>,
    /// Within the step of a recursion: the rows that it goes on from.
    pub work_table: Option<&'r WorkTable<'r>>,
    /// The rows of the tables for which the plan was made with rows of the caller's.
    pub given: &'r [GivenRows],
    /// Where what the plan's parts do is noted.
    pub measurements: Option<&'r Measurements>,
}

/// The rows of a table that is not stored.
pub struct GivenRows {
    pub table: TableId,
    pub rows: Vec<Vec<Value>>,
}

/// Memory for the rows of one table.
#[derive(Default)]
struct LevelScratch {
    keys: keys::Keys,
    read: ReadScratch,
    found: FoundRows,
    /// Of a subquery in a table's place.
    subquery: Option<Box<subplan::SubScratch>>,
}

/// Rows that were found, copied one after the other.
#[derive(Default)]
struct FoundRows {
    images: Vec<u8>,
    rows: Vec<FoundRow>,
}

/// A row's id, and where its image is.
struct FoundRow {
    id: RowId,
    begin: usize,
    end: usize,
}

impl FoundRows {
    fn clear(&mut self, bounds: &Bounds<'_>) {
        bounds.let_go(self.bytes());
        self.images.clear();
        self.rows.clear();
    }

    fn push(&mut self, id: RowId, row: &avocet_types::RowRef<'_>, bounds: &Bounds<'_>) {
        let before = self.bytes();
        let begin = self.images.len();
        row.to_image(&mut self.images);
        self.rows.push(FoundRow { id, begin, end: self.images.len() });
        bounds.hold(self.bytes() - before);
    }

    /// Without a copy of the row.
    fn push_id(&mut self, id: RowId, bounds: &Bounds<'_>) {
        self.rows.push(FoundRow { id, begin: 0, end: 0 });
        bounds.hold(size_of::<FoundRow>());
    }

    /// Puts them in the order of some of their columns.
    fn sort(&mut self, order: &[select::LeadTerm], layout: &avocet_types::RowLayout, bounds: &Bounds<'_>) {
        if order.is_empty() || self.rows.len() < 2 {
            return;
        }
        let key = |n: usize| -> Vec<Datum<'_>> {
            let (_, row) = self.get(n, layout);
            order.iter().map(|term| row.get(term.column)).collect()
        };
        let mut keyed: Vec<(Vec<Datum<'_>>, usize)> = (0..self.rows.len()).map(|n| (key(n), n)).collect();
        let bytes =
            keyed.len() * (size_of::<Datum<'_>>() * order.len() + size_of::<(Vec<Datum<'_>>, usize)>());
        bounds.hold(bytes);
        keyed.sort_by(|(a, _), (b, _)| {
            let orders = order.iter().zip(a.iter().zip(b)).map(|(term, (a, b))| {
                let order = sort_order(a, b, term.collation);
                if term.descending { order.reverse() } else { order }
            });
            orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        let order: Vec<usize> = keyed.into_iter().map(|(_, n)| n).collect();
        bounds.let_go(bytes);
        self.arrange(order.into_iter());
    }

    /// Puts them in another order: of `order`, which has each number once at most. All others are left out.
    fn arrange(&mut self, order: impl Iterator<Item = usize>) {
        let rows = order.map(|n| FoundRow { ..self.rows[n] }).collect();
        self.rows = rows;
    }

    /// What the rows take.
    fn bytes(&self) -> usize {
        self.images.len() + size_of_val(&self.rows[..])
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn get<'a>(&'a self, n: usize, layout: &'a avocet_types::RowLayout) -> (RowId, avocet_types::RowRef<'a>) {
        let FoundRow { id, begin, end } = self.rows[n];
        let (fixed, heap) = self.images[begin..end].split_at(layout.fixed_size);
        (id, avocet_types::RowRef::new(layout, fixed, heap))
    }
}

impl PointScratch {
    fn reserve(&mut self, levels: usize) {
        if self.levels.len() < levels {
            self.levels.resize_with(levels, LevelScratch::default);
        }
    }

    /// Between two statements nothing is held, and much memory is not kept.
    fn rest(&mut self, bounds: &Bounds<'_>) {
        if bounds.held_much() {
            *self = Self::default();
        } else if bounds.holds_something() {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.rows.forget();
        self.lookups.forget();
        for level in &mut self.levels {
            level.found.images.clear();
            level.found.rows.clear();
            level.subquery.iter_mut().for_each(|subquery| subquery.forget_all());
        }
    }
}

impl PointPlan {
    /// The types that parameters must have.
    pub fn params(&self) -> &[SqlType] {
        &self.params
    }

    /// Whether it is for one run, since variables of the session have become values in it.
    pub fn is_of_session(&self) -> bool {
        self.is_of_session
    }

    /// Whether a LIMIT bounds the rows of an UPDATE or DELETE.
    pub fn is_limited(&self) -> bool {
        match &self.kind {
            Kind::Update(update) => update.target.is_limited(),
            Kind::Delete(delete) => delete.target.is_limited(),
            Kind::Modify(modify) => modify.select.limit.is_some(),
            Kind::Select(_) | Kind::Insert(_) => false,
        }
    }

    /// The columns of the result set; empty if there is none.
    pub fn columns(&self) -> &Arc<[OutputColumn]> {
        &self.columns.list
    }

    /// How the rows are found, in words.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Select(select) => select.describe(),
            Kind::Update(update) => update.describe(),
            Kind::Delete(delete) => delete.describe(),
            Kind::Modify(modify) => modify.describe(),
            Kind::Insert(insert) => match insert.query() {
                Some(query) => format!("new rows from {}", query.describe()),
                None => "new rows".to_owned(),
            },
        }
    }

    pub fn verb(&self) -> Verb {
        match &self.kind {
            Kind::Select(_) => Verb::Select,
            Kind::Update(_) => Verb::Update,
            Kind::Delete(_) => Verb::Delete,
            Kind::Modify(modify) => modify.changer.verb(),
            Kind::Insert(_) => Verb::Insert,
        }
    }

    /// Of an UPDATE or DELETE: whether keys lead to the rows that it changes.
    pub fn changes_by_keys(&self, params: &[Datum<'_>], ctx: &EvalContext) -> bool {
        match &self.kind {
            Kind::Update(update) => update.has_keys(params, ctx),
            Kind::Delete(delete) => delete.has_keys(params, ctx),
            Kind::Modify(modify) => modify.has_keys(params, ctx),
            Kind::Select(_) | Kind::Insert(_) => false,
        }
    }

    /// The parameters that are read as dates or times.
    pub fn dates(&self) -> &[(usize, ReadAs)] {
        &self.dates
    }

    /// Whether its tables have so many rows now that another path, or another plan, is better.
    pub fn is_outgrown(&self) -> bool {
        let query = match &self.kind {
            Kind::Select(select) => Some(select),
            Kind::Modify(modify) => Some(&modify.select),
            Kind::Insert(insert) => insert.query(),
            Kind::Update(_) | Kind::Delete(_) => None,
        };
        query.is_some_and(select::Select::is_outgrown)
    }

    /// Whether it is a query that gives one row, whatever its values are: without tables, conditions and aggregates.
    pub fn is_one_row(&self) -> bool {
        matches!(&self.kind, Kind::Select(select) if select.is_one_row())
    }

    /// Whether it counts rows before it reads them, and leaves many to another path.
    pub fn is_measured(&self) -> bool {
        matches!(&self.kind, Kind::Select(select) if select.is_measured())
    }

    /// Whether it is a query that may turn out to be of too many rows, and is left for another path then.
    pub fn may_be_left(&self) -> bool {
        matches!(&self.kind, Kind::Select(select) if select.may_be_left())
    }

    /// Whether it may write to tables.
    pub fn is_write(&self) -> bool {
        self.verb() != Verb::Select
    }

    /// Whether all that it changes are rows of temporary tables.
    pub fn changes_temporary_alone(&self) -> bool {
        match &self.kind {
            Kind::Select(_) => false,
            Kind::Update(update) => update.target.table.0.id().is_temporary(),
            Kind::Delete(delete) => delete.target.table.0.id().is_temporary(),
            Kind::Modify(modify) => modify.changer.changes_temporary_alone(),
            Kind::Insert(insert) => insert.table().id().is_temporary(),
        }
    }

    /// Whether it locks rows, those that it changes included.
    pub fn locks(&self) -> bool {
        self.is_write() || matches!(&self.kind, Kind::Select(select) if select.locks)
    }

    /// Whether it is a query that locks rows as if to change them.
    pub fn locks_exclusively(&self) -> bool {
        matches!(&self.kind, Kind::Select(select) if select.locks_exclusively())
    }

    /// Whether errors of single rows are warnings.
    pub fn ignores(&self) -> bool {
        match &self.kind {
            Kind::Select(_) => false,
            Kind::Update(update) => update.ignore,
            Kind::Delete(delete) => delete.ignore,
            Kind::Modify(modify) => modify.changer.ignore,
            Kind::Insert(insert) => insert.ignore,
        }
    }

    /// Whether the client is told of the numbers of records and duplicates.
    pub fn is_listed(&self) -> bool {
        matches!(&self.kind, Kind::Insert(insert) if insert.is_listed)
    }

    /// Whether the plan was made for the tables as they are now.
    pub fn is_current(&self, catalog: &Catalog) -> bool {
        self.tables
            .iter()
            .all(|table| catalog.table_by_id(table.id()).is_some_and(|now| Arc::ptr_eq(now, &table.0)))
    }

    /// A plan that is good as long as these views are what they are, too.
    pub fn with_views(
        mut self,
        views: &[Arc<avocet_types::TableDef>],
        catalog: &Catalog,
    ) -> Result<Self, Refusal> {
        self.tables.extend(checks::views_of(views, catalog)?);
        Ok(self)
    }

    /// The tables that it uses.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.tables.iter().map(|table| &table.0)
    }

    /// Runs the statement. `run.ctx.storing` is to be set for statements that write.
    pub fn execute(
        &self,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        assert!(run.params.len() >= self.params.len(), "a value for every parameter");
        let is_insert = matches!(self.kind, Kind::Insert(_));
        for table in &self.tables {
            let used = match is_insert {
                true => txn.use_table_as_now(&table.0),
                false => txn.use_table(&table.0),
            };
            match used {
                // It has waited for a change of the table, and is to be compiled anew.
                Err(EngineError::StaleDefinition(..)) => return Ok(Outcome::Declined),
                other => other?,
            }
        }
        let result = match &self.kind {
            Kind::Select(select) => select.run(&self.columns, txn, run, scratch, sink),
            Kind::Update(update) => update.run(txn, run, scratch).map(Outcome::Changed),
            Kind::Delete(delete) => delete.run(txn, run, scratch).map(Outcome::Changed),
            Kind::Modify(modify) => modify.run(txn, run, scratch),
            Kind::Insert(insert) => insert.run(txn, run, scratch),
        };
        scratch.rest(run.bounds);
        result
    }
}

/// Empties a vector of values and gives its memory to values that live for another time.
pub fn recycle<'b>(mut values: Vec<Datum<'_>>) -> Vec<Datum<'b>> {
    values.clear();
    values.into_iter().map(|_| unreachable!("the vector was emptied")).collect()
}

/// As `recycle`, of values with their columns.
fn recycle_changes<'b>(mut changes: Vec<(usize, Datum<'_>)>) -> Vec<(usize, Datum<'b>)> {
    changes.clear();
    changes.into_iter().map(|_| unreachable!("the vector was emptied")).collect()
}

/// How a statement's values are stored.
/// What a table's definition says of its rows beyond types, if it says anything.
#[inline]
pub fn rules_of(table: &TableHandle) -> Result<Option<&RowRules>, SqlError> {
    table.rules(avocet_sql::kept::compile)
}

fn convert_context(ctx: &EvalContext) -> ConvertContext {
    ConvertContext {
        strict: ctx.is_strict(),
        zone: ctx.time_zone,
        today: date_of(ctx.local_now_micros()),
        excess_digits: ctx.sql_mode.excess_digits(),
        zero_dates: ctx.sql_mode.zero_dates(),
    }
}

/// Notes that a value was changed to fit its column; `row` counts from 1.
#[cold]
fn note_stored(ctx: &EvalContext, problem: &StoreError, column: &str, row: u64) {
    for (errno, message, note) in problem.warnings(column, row, ctx.sql_mode.is_strict()) {
        ctx.push_warning(Warning { errno, message, note });
    }
}
