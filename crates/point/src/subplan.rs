//! Subqueries and derived tables of a point plan: blocks of their own, whose rows stand for a table's.
//!
//! What a subquery uses of the enclosing block it gets as parameters after the statement's. One that uses nothing runs once
//! for each run of the enclosing block.

mod recursion;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use avocet_base::TableId;
use avocet_engine::Txn;
use avocet_sql::parse::ast::SetOperator;
use avocet_sql::plan::{Comparison, CteId};
use avocet_types::compare::sort_order;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::program::reborrow;
use avocet_types::expr::{EvalError, RowProgram};
use avocet_types::json::Node;
use avocet_types::json::table::Level;
use avocet_types::{Collation, Datum, Value};

use super::aggregate::value_key;
use super::bounds::{Bounds, KEY_BYTES, bytes_of};
use super::rows::EachRow;
use super::scope::JoinedRow;
use super::select::Select;
use super::{PointScratch, Run};
use recursion::gather_work_table;

pub use recursion::{Recursion, WorkTable};

/// A subquery, compiled.
#[derive(Debug)]
pub struct SubPlan {
    /// One, or those of set operations.
    pub selects: Box<[Select]>,
    /// How each goes together with the rows of all before; of the first, nothing.
    pub steps: Box<[SetStep]>,
    /// How many parameters the enclosing block has.
    pub params: usize,
    /// What it uses of the enclosing block's row.
    pub outer: Box<[RowProgram]>,
    /// How many columns its rows have.
    pub width: usize,
    pub kind: Kind,
    /// A value that depends on what the statement has assigned so far, or on chance.
    pub varies: bool,
}

#[derive(Debug)]
pub enum Kind {
    Rows {
        /// Those of the first so many selects differ: rows that are there already are left out as they come.
        distinct: usize,
        /// All differ in the end.
        unique: bool,
        collations: Box<[Collation]>,
    },
    Scalar,
    Exists {
        negated: bool,
    },
    In {
        needle: RowProgram,
        collation: Collation,
        negated: bool,
    },
    Quantified {
        needle: RowProgram,
        collation: Collation,
        op: Comparison,
        all: bool,
    },
    Recursion(Recursion),
    /// The rows of a recursion's round before.
    WorkTable(CteId),
    /// Those of a table that the caller has.
    Given(TableId),
    JsonTable(JsonRows),
}

/// The rows of a JSON_TABLE.
#[derive(Debug)]
pub struct JsonRows {
    /// Over the enclosing block's row.
    pub document: RowProgram,
    pub level: Arc<Level>,
    /// Which of the level's columns are the row's.
    pub places: Box<[usize]>,
}

impl JsonRows {
    fn gather(
        &self,
        row: &JoinedRow<'_>,
        Run { params, ctx, bounds, .. }: Run<'_>,
        gathered: &mut Gathered,
    ) -> Result<(), SqlError> {
        let document = self.document.eval(row, params, ctx)?;
        let Datum::Bytes(document) = &document else { return Ok(()) };
        let mut failure = None;
        let done = self.level.rows(Node::new(document), ctx, &mut |values: &[Datum<'static>]| {
            bounds.row().map_err(|error| {
                failure = Some(error);
                EvalError::Interrupted
            })?;
            gathered.rows += 1;
            gathered.hold(self.places.iter().map(|at| bytes_of(&values[*at])).sum(), bounds);
            gathered.values.extend(self.places.iter().map(|at| values[*at].clone()));
            Ok(())
        });
        done.map_err(|error| failure.take().unwrap_or_else(|| error.into()))
    }
}

/// A set operation of all rows so far with those of one more select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetStep {
    pub op: SetOperator,
    pub all: bool,
}

impl SetStep {
    pub const UNION_ALL: Self = Self { op: SetOperator::Union, all: true };
}

/// Memory of a subquery, and its rows.
#[derive(Default)]
pub struct SubScratch {
    inner: PointScratch,
    gathered: Gathered,
    /// Of a recursion's seed and step.
    rounds: Option<Box<[SubScratch; 2]>>,
    /// What it gives is there, and the same for all rows of the enclosing block.
    is_known: bool,
}

/// What a subquery gave.
#[derive(Default)]
struct Gathered {
    /// The values of all rows, one after the other.
    values: Vec<Value>,
    /// The rows' own count: they may have no columns.
    rows: usize,
    /// Keys of the rows, if they are looked up or must differ.
    keys: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    has_null: bool,
    /// Of the values that are compared with ANY or ALL.
    least: Option<Value>,
    greatest: Option<Value>,
    key: Vec<u8>,
    /// Of `values` and `keys`, in bytes.
    held: usize,
}

impl SubScratch {
    /// The enclosing block begins anew.
    pub fn forget(&mut self) {
        self.is_known = false;
    }

    /// Nothing is held any more.
    pub fn forget_all(&mut self) {
        self.gathered.clear();
        self.is_known = false;
        self.inner.forget();
        self.rounds.iter_mut().flat_map(|rounds| &mut **rounds).for_each(Self::forget_all);
    }
}

impl SubPlan {
    /// One that uses nothing of the enclosing block, and has no selects of its own.
    pub fn of_kind(kind: Kind, params: usize, width: usize) -> Self {
        let (selects, steps, outer) = (Box::default(), Box::default(), Box::default());
        Self { selects, steps, params, outer, width, kind, varies: false }
    }

    /// The plans of a recursion's seed and step.
    pub fn recursion(&self) -> Option<[&Self; 2]> {
        if let Kind::Recursion(recursion) = &self.kind { Some(recursion.parts()) } else { None }
    }

    /// Runs the subquery for a row of the enclosing block; returns how many rows it gives, which `row` shows.
    pub fn run(
        &self,
        row: &JoinedRow<'_>,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut SubScratch,
    ) -> Result<usize, SqlError> {
        if !scratch.is_known {
            self.gather(row, txn, run, scratch)?;
            scratch.is_known = self.outer.is_empty() && !self.varies;
        }
        let gathered = &mut scratch.gathered;
        if let Kind::In { needle, collation, negated } = &self.kind {
            let needle = needle.eval(row, run.params, run.ctx)?;
            let found = gathered.contains(&needle, *collation);
            let value = found.map_or(Datum::Null, |found| Datum::Int(i64::from(found != *negated)));
            gathered.values.clear();
            gathered.values.push(value);
            return Ok(1);
        }
        if let Kind::Quantified { needle, collation, op, all } = &self.kind {
            let needle = needle.eval(row, run.params, run.ctx)?;
            let holds = gathered.compare(&needle, *collation, *op, *all);
            gathered.values.clear();
            gathered.values.push(holds.map_or(Datum::Null, |holds| Datum::Int(i64::from(holds))));
            return Ok(1);
        }
        Ok(gathered.rows)
    }

    /// Whether it gives rows that are the same for all rows of the enclosing block.
    pub fn stands_alone(&self) -> bool {
        self.gives_rows() && self.outer.is_empty()
    }

    /// A row that the subquery gave.
    pub fn row<'s>(&self, scratch: &'s SubScratch, at: usize) -> &'s [Value] {
        let width = match self.kind {
            _ if self.gives_rows() => self.width,
            _ => 1,
        };
        &scratch.gathered.values[at * width..(at + 1) * width]
    }

    /// Whether it stands for a table, and not for a value.
    fn gives_rows(&self) -> bool {
        matches!(
            self.kind,
            Kind::Rows { .. } | Kind::Recursion(_) | Kind::WorkTable(_) | Kind::Given(_) | Kind::JsonTable(_)
        )
    }

    /// Of rows that are compared.
    fn collations(&self) -> &[Collation] {
        if let Kind::Rows { collations, .. } = &self.kind { collations } else { &[] }
    }

    fn gather(
        &self,
        row: &JoinedRow<'_>,
        txn: &mut Txn,
        run @ Run { params, ctx, bounds, .. }: Run<'_>,
        scratch: &mut SubScratch,
    ) -> Result<(), SqlError> {
        let mut own: Vec<Datum<'_>> = Vec::with_capacity(params.len() + self.outer.len());
        own.extend(params[..self.params].iter().map(reborrow));
        for program in &self.outer {
            own.push(program.eval(row, params, ctx)?);
        }
        let SubScratch { inner, gathered, rounds, .. } = scratch;
        bounds.let_go(gathered.held);
        gathered.clear();
        match &self.kind {
            Kind::Recursion(recursion) => {
                let rounds = rounds.get_or_insert_default();
                return recursion.gather(row, txn, Run { params: &own, ..run }, gathered, rounds);
            }
            Kind::JsonTable(table) => return table.gather(row, run, gathered),
            Kind::WorkTable(cte) => {
                gather_work_table(*cte, run, self.width, gathered);
                return Ok(());
            }
            Kind::Given(table) => {
                let given = run.given.iter().find(|given| given.table == *table);
                for row in &given.expect("the plan was made for them").rows {
                    bounds.row()?;
                    gathered.extend(row, self.width, bounds);
                }
                return Ok(());
            }
            _ => {}
        }
        let distinct = if let Kind::Rows { distinct, .. } = self.kind { distinct } else { 0 };
        for (at, select) in self.selects.iter().enumerate() {
            let step = self.steps[at];
            if step.op != SetOperator::Union {
                let mut others = RowCounts::default();
                let mut sink = EachRow(|row: &[Datum<'_>]| others.take(row, self.collations(), bounds));
                select.run_here(None, txn, Run { params: &own, ..run }, inner, &mut sink)?;
                gathered.keep(self.width, self.collations(), step, others, bounds);
                continue;
            }
            let mut sink = EachRow(|row: &[Datum<'_>]| gathered.take(row, &self.kind, at < distinct, bounds));
            select.run_here(None, txn, Run { params: &own, ..run }, inner, &mut sink)?;
            // For other kinds it does not matter how often a row is there.
            if !step.all && matches!(self.kind, Kind::Rows { distinct: 0, .. }) {
                gathered.keep(self.width, self.collations(), step, RowCounts::default(), bounds);
            }
        }
        match &self.kind {
            Kind::Rows { unique: true, .. } => {
                let step = SetStep { op: SetOperator::Union, all: false };
                gathered.keep(self.width, self.collations(), step, RowCounts::default(), bounds);
            }
            Kind::Rows { .. }
            | Kind::In { .. }
            | Kind::Quantified { .. }
            | Kind::Recursion(_)
            | Kind::WorkTable(_)
            | Kind::Given(_)
            | Kind::JsonTable(_) => {}
            Kind::Scalar => match gathered.rows {
                0 => gathered.values.push(Datum::Null),
                1 => {}
                _ => return Err(ErrorCode::SUBQUERY_NO_1_ROW.with(&[])),
            },
            Kind::Exists { negated } => {
                let exists = (gathered.rows > 0) != *negated;
                gathered.values.clear();
                gathered.values.push(Datum::Int(i64::from(exists)));
            }
        }
        if !self.gives_rows() {
            gathered.rows = 1;
        }
        Ok(())
    }
}

impl Gathered {
    fn clear(&mut self) {
        self.values.clear();
        self.keys.clear();
        (self.least, self.greatest) = (None, None);
        (self.rows, self.has_null, self.held) = (0, false, 0);
    }

    /// Takes a row; if it is to be `unique`, one that is there already is left out.
    fn take(&mut self, row: &[Datum<'_>], kind: &Kind, unique: bool, bounds: &Bounds<'_>) {
        match kind {
            Kind::In { .. } if row[0].is_null() => {
                self.has_null = true;
                return;
            }
            Kind::In { collation, .. } => {
                self.insert_key(row.iter().zip([collation]), bounds);
                return;
            }
            Kind::Exists { .. } => {
                self.rows += 1;
                return;
            }
            Kind::Quantified { collation, .. } => {
                self.rows += 1;
                self.take_compared(&row[0], *collation, bounds);
                return;
            }
            Kind::Rows { collations, .. }
                if unique && !self.insert_key(row.iter().zip(collations), bounds) =>
            {
                return;
            }
            Kind::Rows { .. } | Kind::Scalar => {}
            Kind::Recursion(_) | Kind::WorkTable(_) | Kind::Given(_) | Kind::JsonTable(_) => {
                unreachable!("rows that no select gives")
            }
        }
        self.rows += 1;
        self.hold(row.iter().map(bytes_of).sum(), bounds);
        self.values.extend(row.iter().map(|value| value.clone().into_owned()));
    }

    /// Takes all of these rows.
    fn extend(&mut self, rows: &[Value], width: usize, bounds: &Bounds<'_>) {
        self.rows += rows.len() / width;
        self.hold(rows.iter().map(bytes_of).sum(), bounds);
        self.values.extend_from_slice(rows);
    }

    /// Leaves the rows between an offset and an end.
    fn keep_some(&mut self, from: usize, to: u64, width: usize) {
        let to = usize::try_from(to).map_or(self.rows, |to| to.min(self.rows));
        let from = from.min(to);
        self.values.truncate(to * width);
        self.values.drain(..from * width);
        self.rows = to - from;
    }

    /// Keeps the key of these values if it is new.
    fn insert_key<'v>(
        &mut self,
        values: impl Iterator<Item = (&'v Datum<'v>, &'v Collation)>,
        bounds: &Bounds<'_>,
    ) -> bool {
        self.key.clear();
        values.for_each(|(value, collation)| value_key(value, *collation, &mut self.key));
        if self.keys.contains(&self.key[..]) {
            return false;
        }
        self.hold(KEY_BYTES + self.key.len(), bounds);
        self.keys.insert(self.key.as_slice().into())
    }

    /// Takes a value that is compared with ANY or ALL.
    fn take_compared(&mut self, value: &Datum<'_>, collation: Collation, bounds: &Bounds<'_>) {
        if value.is_null() {
            self.has_null = true;
            return;
        }
        self.insert_key([(value, &collation)].into_iter(), bounds);
        if self.least.as_ref().is_none_or(|least| sort_order(value, least, collation).is_lt()) {
            self.least = Some(value.clone().into_owned());
        }
        if self.greatest.as_ref().is_none_or(|greatest| sort_order(value, greatest, collation).is_gt()) {
            self.greatest = Some(value.clone().into_owned());
        }
    }

    /// `needle op ANY|ALL`; `None` is NULL.
    fn compare(
        &mut self,
        needle: &Datum<'_>,
        collation: Collation,
        op: Comparison,
        all: bool,
    ) -> Option<bool> {
        if self.keys.is_empty() && !self.has_null {
            return Some(all);
        }
        if needle.is_null() {
            return None;
        }
        // ALL fails where the opposite holds for one row.
        let wanted = if all { op.opposite() } else { op };
        match self.has_one(needle, collation, wanted) {
            true => Some(!all),
            false if self.has_null => None,
            false => Some(all),
        }
    }

    /// Whether the comparison holds for one value.
    fn has_one(&mut self, needle: &Datum<'_>, collation: Collation, op: Comparison) -> bool {
        let (Some(least), Some(greatest)) = (&self.least, &self.greatest) else { return false };
        let (of_least, of_greatest) =
            (sort_order(needle, least, collation), sort_order(needle, greatest, collation));
        match op {
            Comparison::Eq => {
                self.key.clear();
                value_key(needle, collation, &mut self.key);
                self.keys.contains(&self.key[..])
            }
            Comparison::Ne => of_least.is_ne() || of_greatest.is_ne(),
            Comparison::Lt => of_greatest.is_lt(),
            Comparison::Le => of_greatest.is_le(),
            Comparison::Gt => of_least.is_gt(),
            Comparison::Ge => of_least.is_ge(),
        }
    }

    /// Keeps the rows that a set operation leaves, given how often it found others; of equal ones each only once, unless with ALL.
    fn keep(
        &mut self,
        width: usize,
        collations: &[Collation],
        step: SetStep,
        mut others: RowCounts,
        bounds: &Bounds<'_>,
    ) {
        self.keys.clear();
        let mut kept = 0;
        for at in 0..self.rows {
            let row = &self.values[at * width..(at + 1) * width];
            others.key_of(row, collations);
            // With ALL, each row of the other side stands for one here.
            let is_there = if step.all { others.take_away() } else { others.has() };
            let stays = match step.op {
                SetOperator::Union => true,
                SetOperator::Except => !is_there,
                SetOperator::Intersect => is_there,
            };
            if stays && (step.all || self.keys.insert(others.key.as_slice().into())) {
                for column in 0..width {
                    self.values.swap(kept * width + column, at * width + column);
                }
                kept += 1;
            }
        }
        self.values.truncate(kept * width);
        self.rows = kept;
        bounds.let_go(others.held);
    }

    fn hold(&mut self, bytes: usize, bounds: &Bounds<'_>) {
        self.held += bytes;
        bounds.hold(bytes);
    }

    /// Three-valued membership.
    fn contains(&mut self, needle: &Datum<'_>, collation: Collation) -> Option<bool> {
        if self.keys.is_empty() && !self.has_null {
            return Some(false);
        }
        if needle.is_null() {
            return None;
        }
        self.key.clear();
        value_key(needle, collation, &mut self.key);
        match self.keys.contains(&self.key[..]) {
            true => Some(true),
            false if self.has_null => None,
            false => Some(false),
        }
    }
}

/// How often each row is there.
#[derive(Default)]
struct RowCounts {
    counts: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    key: Vec<u8>,
    held: usize,
}

impl RowCounts {
    fn key_of(&mut self, row: &[Datum<'_>], collations: &[Collation]) {
        self.key.clear();
        row.iter().zip(collations).for_each(|(value, collation)| value_key(value, *collation, &mut self.key));
    }

    fn take(&mut self, row: &[Datum<'_>], collations: &[Collation], bounds: &Bounds<'_>) {
        self.key_of(row, collations);
        if let Some(count) = self.counts.get_mut(&self.key[..]) {
            *count += 1;
            return;
        }
        let bytes = KEY_BYTES + self.key.len();
        self.held += bytes;
        bounds.hold(bytes);
        self.counts.insert(self.key.as_slice().into(), 1);
    }

    /// Whether the row is there whose key is at hand.
    fn has(&self) -> bool {
        self.counts.contains_key(&self.key[..])
    }

    /// The same, and it is there once less then.
    fn take_away(&mut self) -> bool {
        match self.counts.get_mut(&self.key[..]) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}
