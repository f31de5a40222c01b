//! The tables of a statement, and the numbers by which its expressions know their columns.
//!
//! The bound algebra numbers columns query-wide. A plan numbers *slots*: the columns of the first table, then those of the
//! second, and so on. With one table a slot is the column's position, and a stored row serves as it is.

use std::cell::RefCell;
use std::sync::Arc;

use avocet_engine::{RowLock, TableHandle};
use avocet_types::expr::{Expr, ExprKind, RowProgram, RowSource};
use avocet_types::{Datum, RowRef, SqlType};

use super::{NotPoint, Refusal};

/// So many tables at most can be joined on the point path.
pub const MAX_TABLES: usize = 8;

pub struct Scope {
    pub tables: Vec<Source>,
    /// By column id.
    by_id: Vec<Option<u16>>,
    /// Table and column of each slot.
    pub slots: Arc<[(u8, u16)]>,
    /// The parameters that what was compiled reads as dates or times.
    dates: RefCell<Vec<(usize, ReadAs)>>,
}

pub struct Source {
    pub handle: Arc<TableHandle>,
    alias: Arc<str>,
    /// How its rows are locked.
    pub lock: Option<RowLock>,
}

impl Scope {
    /// One table whose column ids are the columns' positions.
    pub fn single(handle: Arc<TableHandle>) -> Self {
        let columns = handle.def.columns.len() as u16;
        let alias = handle.def.name.as_str().into();
        Self {
            by_id: (0..columns).map(Some).collect(),
            slots: (0..columns).map(|column| (0, column)).collect(),
            tables: vec![Source { handle, alias, lock: None }],
            dates: RefCell::default(),
        }
    }

    pub fn new() -> Self {
        Self { tables: Vec::new(), by_id: Vec::new(), slots: Arc::from([]), dates: RefCell::default() }
    }

    /// Adds a table of which the query knows these columns: position and id.
    pub fn add(
        &mut self,
        handle: Arc<TableHandle>,
        alias: Arc<str>,
        columns: impl Iterator<Item = (usize, usize)>,
        lock: Option<RowLock>,
    ) -> Result<(), NotPoint> {
        let first = self.slots.len();
        let count = handle.def.columns.len();
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
        self.tables.push(Source { handle, alias, lock });
        Ok(())
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
            return Err(NotPoint::because("a subquery's value is used"));
        }
        Ok(expr.clone().map_columns(&mut |id| self.by_id[id].expect("looked up just now").into()))
    }

    pub fn compile(&self, expr: &Expr) -> Result<RowProgram, Refusal> {
        let expr = self.to_slots(expr)?;
        self.note_dates(&expr);
        Ok(RowProgram::compile_named(&expr, &|slot| self.slot_name(slot))?)
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
        let def = &source.handle.def;
        format!("`{}`.`{}`.`{}`", def.database, source.alias, def.columns[usize::from(column)].name)
    }
}

/// What a parameter that is text or a number is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadAs {
    Date,
    Time,
}

/// The current rows of several tables; one that has none, since an outer join found none, has NULLs.
#[derive(Clone, Copy)]
pub struct JoinedRow<'a> {
    rows: [Option<RowRef<'a>>; MAX_TABLES],
    slots: &'a [(u8, u16)],
}

impl<'a> JoinedRow<'a> {
    pub fn new(slots: &'a [(u8, u16)]) -> Self {
        Self { rows: [None; MAX_TABLES], slots }
    }

    #[must_use]
    pub fn with(mut self, table: usize, row: RowRef<'a>) -> Self {
        self.rows[table] = Some(row);
        self
    }

    #[inline]
    fn at(&self, slot: usize) -> Option<(RowRef<'a>, usize)> {
        let (table, column) = self.slots[slot];
        self.rows[usize::from(table)].map(|row| (row, column.into()))
    }
}

impl<'a> RowSource<'a> for JoinedRow<'a> {
    #[inline]
    fn datum(&self, slot: usize) -> Datum<'a> {
        self.at(slot).map_or(Datum::Null, |(row, column)| row.get(column))
    }

    #[inline]
    fn is_null(&self, slot: usize) -> bool {
        self.at(slot).is_none_or(|(row, column)| row.is_null(column))
    }
}
