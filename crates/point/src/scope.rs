//! The tables of a statement, and the numbers by which its expressions know their columns.
//!
//! The bound algebra numbers columns query-wide. A plan numbers *slots*: the columns of the first table, then those of the
//! second, and so on. With one table a slot is the column's position, and a stored row serves as it is.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use avocet_base::RowId;
use avocet_engine::{RowLock, TableHandle};
use avocet_sql::plan::walk::for_each_expr_mut;
use avocet_sql::plan::{BoundQuery, ColumnId};
use avocet_sql::ranges::Columns;
use avocet_types::expr::program::reborrow;
use avocet_types::expr::{Expr, ExprKind, RowProgram, RowSource};
use avocet_types::{Datum, RowRef, SqlType, Value};

use super::{NotPoint, Refusal};

/// The column of a slot that is not a table's column but the row's id.
const ROW_ID: u16 = u16::MAX;

/// So many tables at most can be joined on the point path: sets of them are bits.
const MAX_TABLES: usize = 31;

/// The rows of so many tables are found by their number in a joined row, those of others behind one another.
pub const NEAR_TABLES: usize = 8;

pub struct Scope {
    pub tables: Vec<Source>,
    /// By column id.
    by_id: Vec<Option<u16>>,
    /// Table and column of each slot.
    pub slots: Arc<[(u8, u16)]>,
    /// The parameters that what was compiled reads as dates or times.
    dates: RefCell<Vec<(usize, ReadAs)>>,
    /// The slots that what was compiled reads.
    used: RefCell<HashSet<usize>>,
}

pub struct Source {
    /// `None` for what a subquery gives.
    stored: Option<Arc<TableHandle>>,
    alias: Arc<str>,
    /// How its rows are locked.
    pub lock: Option<RowLock>,
    /// If given, only these rows are read.
    pub only: Option<Arc<HashSet<RowId>>>,
}

impl Source {
    /// The table, if it is a stored one.
    pub fn stored(&self) -> Option<&Arc<TableHandle>> {
        self.stored.as_ref()
    }
}

impl Columns for Scope {
    fn place(&self, id: usize) -> Option<(usize, usize)> {
        Self::place(self, id)
    }

    fn stored_type(&self, table: usize, column: usize) -> Option<SqlType> {
        self.tables[table].stored().map(|handle| handle.def.columns[column].ty)
    }

    fn uses_only(&self, expr: &Expr, tables: u32) -> bool {
        Self::uses_only(self, expr, tables)
    }
}

impl Scope {
    /// One table whose column ids are the columns' positions.
    pub fn single(handle: Arc<TableHandle>) -> Self {
        let columns = handle.def.columns.len() as u16;
        let alias = handle.def.name.as_str().into();
        Self {
            by_id: (0..columns).map(Some).collect(),
            slots: (0..columns).map(|column| (0, column)).collect(),
            tables: vec![Source { stored: Some(handle), alias, lock: None, only: None }],
            dates: RefCell::default(),
            used: RefCell::default(),
        }
    }

    pub fn new() -> Self {
        Self {
            tables: Vec::new(),
            by_id: Vec::new(),
            slots: Arc::from([]),
            dates: RefCell::default(),
            used: RefCell::default(),
        }
    }

    /// Adds a table of which the query knows these columns: position and id.
    pub fn add(
        &mut self,
        handle: Arc<TableHandle>,
        alias: Arc<str>,
        columns: impl Iterator<Item = (usize, usize)>,
        lock: Option<RowLock>,
        only: Option<Arc<HashSet<RowId>>>,
    ) -> Result<(), NotPoint> {
        // What follows the columns is the row's id.
        let count = handle.def.columns.len() + 1;
        self.add_source(Source { stored: Some(handle), alias, lock, only }, count, columns)?;
        let slots = self.slots.iter().copied().take(self.slots.len() - 1);
        self.slots = slots.chain([((self.tables.len() - 1) as u8, ROW_ID)]).collect();
        Ok(())
    }

    /// Adds a table whose rows the caller has, `width` columns each; the table's number.
    pub fn add_given(
        &mut self,
        alias: Arc<str>,
        width: usize,
        columns: impl Iterator<Item = (usize, usize)>,
    ) -> Result<usize, NotPoint> {
        self.add_source(Source { stored: None, alias, lock: None, only: None }, width, columns)?;
        Ok(self.tables.len() - 1)
    }

    /// Adds the rows that a subquery gives, with these columns; the table's number.
    pub fn add_rows(&mut self, ids: &[ColumnId]) -> Result<usize, NotPoint> {
        let columns = ids.iter().enumerate().map(|(column, id)| (column, id.index()));
        let source = Source { stored: None, alias: "".into(), lock: None, only: None };
        self.add_source(source, ids.len(), columns)?;
        Ok(self.tables.len() - 1)
    }

    fn add_source(
        &mut self,
        source: Source,
        count: usize,
        columns: impl Iterator<Item = (usize, usize)>,
    ) -> Result<(), NotPoint> {
        let first = self.slots.len();
        if self.tables.len() == MAX_TABLES || first + count > u16::MAX.into() {
            return Err(NotPoint::because("too many tables"));
        }
        for (column, id) in columns {
            if self.by_id.len() <= id {
                self.by_id.resize(id + 1, None);
            }
            self.by_id[id] = Some((first + column) as u16);
        }
        let table = self.tables.len() as u8;
        let added = (0..count).map(|column| (table, column as u16));
        self.slots = self.slots.iter().copied().chain(added).collect();
        self.tables.push(source);
        Ok(())
    }

    /// Whether the ids of rows are used.
    pub fn gives_ids(&self) -> bool {
        let is_id = |slot: &Option<u16>| slot.is_some_and(|slot| self.slots[usize::from(slot)].1 == ROW_ID);
        self.by_id.iter().any(is_id)
    }

    /// The tables that are stored, each with its number.
    pub fn stored(&self) -> impl Iterator<Item = (usize, &Arc<TableHandle>)> {
        self.tables.iter().enumerate().filter_map(|(at, source)| Some((at, source.stored()?)))
    }

    /// The tables whose columns an expression uses, a bit each; `None` if it uses something else.
    pub fn tables_of(&self, expr: &Expr) -> Option<u32> {
        expr.columns().into_iter().try_fold(0, |tables, id| Some(tables | 1 << self.place(id)?.0))
    }

    /// The table and position of the column with this id; `None` if no table has it.
    pub fn place(&self, id: usize) -> Option<(usize, usize)> {
        let slot = (*self.by_id.get(id)?)?;
        let (table, column) = self.slots[usize::from(slot)];
        Some((table.into(), column.into()))
    }

    /// Whether all columns of the expression are of these tables (a bit each).
    pub fn uses_only(&self, expr: &Expr, tables: u32) -> bool {
        !expr.any(&mut |part| match part.kind {
            ExprKind::Column(id) => self.place(id).is_none_or(|(table, _)| tables & (1 << table) == 0),
            _ => false,
        })
    }

    /// The expression over slots. Refused if it uses something that is no table's column.
    pub fn to_slots(&self, expr: &Expr) -> Result<Expr, NotPoint> {
        let foreign = expr.any(&mut |part| match part.kind {
            ExprKind::Column(id) => self.place(id).is_none(),
            _ => false,
        });
        if foreign {
            return Err(NotPoint::because("a value that is no table's column is used"));
        }
        Ok(expr.clone().map_columns(&mut |id| self.by_id[id].expect("looked up just now").into()))
    }

    pub fn compile(&self, expr: &Expr) -> Result<RowProgram, Refusal> {
        let expr = self.to_slots(expr)?;
        self.note_dates(&expr);
        let program = RowProgram::compile_named(&expr, &|slot| self.slot_name(slot))?;
        self.note_used(&program);
        Ok(program)
    }

    /// A program of the plan reads these slots.
    pub fn note_used(&self, program: &RowProgram) {
        self.used.borrow_mut().extend(program.columns());
    }

    /// Runs something whose programs need not come into the plan; who uses one notes what it reads.
    pub fn without_notes<T>(&self, run: impl FnOnce() -> T) -> T {
        let before = self.used.borrow().clone();
        let result = run();
        self.used.replace(before);
        result
    }

    /// The columns of a table that the plan reads, ascending.
    pub fn columns_used(&self, table: usize) -> Vec<usize> {
        let used = self.used.borrow();
        let of_table = |slot: &usize| {
            let (of, column) = self.slots[*slot];
            (usize::from(of) == table && column != ROW_ID).then_some(usize::from(column))
        };
        let mut columns: Vec<usize> = used.iter().filter_map(of_table).collect();
        columns.sort_unstable();
        columns
    }

    fn note_dates(&self, expr: &Expr) {
        expr.any(&mut |part| {
            let ExprKind::Convert(inner) = &part.kind else { return false };
            let read_as = match part.ty {
                SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. } => ReadAs::Date,
                SqlType::Time { .. } => ReadAs::Time,
                _ => return false,
            };
            if let ExprKind::Param(at) = inner.kind
                && !inner.ty.is_temporal()
            {
                self.dates.borrow_mut().push((at, read_as));
            }
            false
        });
    }

    /// As if these had been compiled here.
    pub fn add_dates(&self, dates: &[(usize, ReadAs)]) {
        self.dates.borrow_mut().extend_from_slice(dates);
    }

    /// The parameters that what was compiled reads as dates or times.
    pub fn dates(&self) -> Box<[(usize, ReadAs)]> {
        let mut dates = self.dates.take();
        dates.sort_unstable();
        dates.dedup();
        dates.into()
    }

    /// As MySQL's errors show a column.
    fn slot_name(&self, slot: usize) -> String {
        let (table, column) = self.slots[slot];
        let source = &self.tables[usize::from(table)];
        match source.stored() {
            Some(_) if column == ROW_ID => "a row's id".to_owned(),
            Some(handle) => {
                let def = &handle.def;
                format!("`{}`.`{}`.`{}`", def.database, source.alias, def.columns[usize::from(column)].name)
            }
            None => "a subquery's value".to_owned(),
        }
    }
}

/// These, and the parameters that values read as dates or times.
pub fn with_dates_of<'e>(
    values: impl Iterator<Item = &'e Expr>,
    dates: &[(usize, ReadAs)],
) -> Box<[(usize, ReadAs)]> {
    let scope = Scope::new();
    scope.add_dates(dates);
    values.for_each(|value| scope.note_dates(value));
    scope.dates()
}

/// The parameters that a query reads as dates or times, whoever runs it.
pub fn dates_of(query: &BoundQuery) -> Box<[(usize, ReadAs)]> {
    let scope = Scope::new();
    for_each_expr_mut(&mut query.body.clone(), &mut |expr| scope.note_dates(expr));
    scope.dates()
}

/// What a parameter that is text or a number is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadAs {
    Date,
    Time,
}

/// The row of one table in a row of several.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// None, since an outer join found none: all its columns are NULL.
    None,
    Stored(RowId, RowRef<'a>),
    Values(&'a [Value]),
}

/// The current rows of several tables. It is copied for each row that is joined, so it has room for few tables; rows of the others
/// stand in the joined rows that it was made from.
#[derive(Clone, Copy)]
pub struct JoinedRow<'a> {
    near: [Part<'a>; NEAR_TABLES],
    /// The table of which `far` is a row, if `before` is one.
    table: usize,
    far: Part<'a>,
    before: Option<&'a JoinedRow<'a>>,
    slots: &'a [(u8, u16)],
}

impl<'a> JoinedRow<'a> {
    pub fn new(slots: &'a [(u8, u16)]) -> Self {
        Self { near: [Part::None; NEAR_TABLES], table: 0, far: Part::None, before: None, slots }
    }

    #[must_use]
    pub fn with<'b>(&'b self, table: usize, id: RowId, row: RowRef<'b>) -> JoinedRow<'b> {
        self.with_part(table, Part::Stored(id, row))
    }

    #[must_use]
    pub fn with_values<'b>(&'b self, table: usize, row: &'b [Value]) -> JoinedRow<'b> {
        self.with_part(table, Part::Values(row))
    }

    /// # Panics
    /// If the table is none of the first [`NEAR_TABLES`].
    #[must_use]
    pub fn with_near_values(mut self, table: usize, row: &'a [Value]) -> Self {
        self.near[table] = Part::Values(row);
        self
    }

    #[inline]
    fn with_part<'b>(&'b self, table: usize, part: Part<'b>) -> JoinedRow<'b> {
        let mut joined: JoinedRow<'b> = *self;
        match joined.near.get_mut(table) {
            Some(near) => *near = part,
            None => {
                joined.table = table;
                joined.far = part;
                joined.before = Some(self);
            }
        }
        joined
    }

    #[inline]
    fn at(&self, slot: usize) -> (&Part<'a>, usize) {
        let (table, column) = self.slots[slot];
        let part = match self.near.get(usize::from(table)) {
            Some(near) => near,
            None => self.far(table.into()),
        };
        (part, column.into())
    }

    fn far(&self, table: usize) -> &Part<'a> {
        let mut joined = self;
        while let Some(before) = joined.before {
            if joined.table == table {
                return &joined.far;
            }
            joined = before;
        }
        &Part::None
    }
}

impl<'a> RowSource<'a> for JoinedRow<'a> {
    #[inline]
    fn datum(&self, slot: usize) -> Datum<'a> {
        match self.at(slot) {
            (Part::Stored(id, row), column) => match column == usize::from(ROW_ID) {
                true => Datum::UInt(id.0),
                false => row.get(column),
            },
            (Part::None, _) => Datum::Null,
            (Part::Values(row), column) => reborrow(&row[column]),
        }
    }

    #[inline]
    fn is_null(&self, slot: usize) -> bool {
        match self.at(slot) {
            (Part::Stored(_, row), column) => column != usize::from(ROW_ID) && row.is_null(column),
            (Part::None, _) => true,
            (Part::Values(row), column) => row[column].is_null(),
        }
    }
}
