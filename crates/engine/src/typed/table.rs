//! A table of typed rows, and its indexes.

use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeBounds};
use std::sync::Arc;

use arc_swap::ArcSwap;
use avocet_types::names;
use avocet_types::schema::{ColumnDef, DefaultValue};
use avocet_types::{Collation, Datum, EvalContext, RowRef, RowRules, SqlType, Value, compare};

use super::field::{FieldColumn, Row};
use super::key::{Key, encode, range};
use crate::buffers::ReadScratch;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::keys::KeyRange;
use crate::rules;
use crate::table::{IndexHandle, TableHandle};
use crate::txn::{RowLock, Txn};
use crate::values::exactly;
use crate::{Direction, RowBuf, RowId};

/// A table whose rows are `R`s. To be shared, and kept as long as one likes.
pub struct Table<R> {
    database: String,
    name: String,
    bound: ArcSwap<Bound>,
    rows: PhantomData<fn() -> R>,
}

/// An index of a table of `R`s.
pub struct Index<'t, R> {
    table: &'t Table<R>,
    name: String,
}

/// The table as DDL has left it.
struct Bound {
    handle: Arc<TableHandle>,
    /// Where the fields are.
    columns: Box<[usize]>,
}

impl Bound {
    fn new<R: Row>(handle: &Arc<TableHandle>) -> Result<Self> {
        let wrong = |why| EngineError::WrongShape { table: handle.def.name.clone(), why };
        let find = |(name, reads): &FieldColumn| {
            let name = name.trim_start_matches("r#");
            let at = handle.def.column(name).ok_or_else(|| wrong(format!("it has no column {name}")))?;
            match reads(&handle.def.columns[at]) {
                true => Ok(at),
                false => Err(wrong(format!("column {name} is of another type, or may be NULL"))),
            }
        };
        let columns = R::COLUMNS.iter().map(find).collect::<Result<_>>()?;
        Ok(Self { handle: handle.clone(), columns })
    }

    fn index(&self, name: &str) -> Result<&Arc<IndexHandle>> {
        let found = self.handle.indexes.iter().find(|index| names::eq(&index.def.name, name));
        found.ok_or_else(|| EngineError::NoSuchIndex(name.into()))
    }

    fn read<R: Row>(&self, row: &RowRef<'_>) -> R {
        R::read(row, &self.columns).expect("the columns' types were checked")
    }
}

const PRIMARY: &str = "PRIMARY";

impl<R: Row> Table<R> {
    pub(super) fn open(engine: &Engine, database: &str, name: &str) -> Result<Self> {
        let catalog = engine.catalog();
        let handle = catalog.table(database, name);
        let handle = handle.ok_or_else(|| EngineError::NoSuchTable(database.into(), name.into()))?;
        Ok(Self {
            database: database.into(),
            name: name.into(),
            bound: ArcSwap::from_pointee(Bound::new::<R>(handle)?),
            rows: PhantomData,
        })
    }

    /// The table as it is now, which it stays till the end of the transaction.
    fn hold(&self, txn: &mut Txn) -> Result<Arc<Bound>> {
        let mut bound = self.bound.load_full();
        loop {
            // Each time, another change of the definition came first.
            match txn.use_table(&bound.handle) {
                Err(EngineError::StaleDefinition(..)) => {}
                other => return other.map(|()| bound),
            }
            let missing = || EngineError::NoSuchTable(self.database.clone(), self.name.clone());
            let catalog = txn.engine().catalog();
            let handle = catalog.table(&self.database, &self.name).ok_or_else(missing)?;
            bound = Arc::new(Bound::new::<R>(handle)?);
            self.bound.store(bound.clone());
        }
    }

    /// One of the table's indexes, by its name.
    pub fn index(&self, name: impl Into<String>) -> Index<'_, R> {
        Index { table: self, name: name.into() }
    }

    /// The primary key.
    pub fn primary(&self) -> Index<'_, R> {
        self.index(PRIMARY)
    }

    /// The row with a primary key.
    pub fn get(&self, txn: &mut Txn, key: impl Key) -> Result<Option<R>> {
        self.primary().get(txn, key)
    }

    /// The newest committed row with a primary key, locked till the end of the transaction.
    pub fn get_for_update(&self, txn: &mut Txn, key: impl Key) -> Result<Option<R>> {
        let bound = self.hold(txn)?;
        Ok(lock::<R>(&bound, txn, &key)?.map(|(_, row)| row))
    }

    /// Adds a row. Returns the AUTO_INCREMENT value that was generated for it, if one was.
    ///
    /// # Errors
    /// [`EngineError::DuplicateKey`]; [`EngineError::BadValue`] for what its column does not take.
    pub fn insert(&self, txn: &mut Txn, row: &R) -> Result<Option<u64>> {
        let bound = self.hold(txn)?;
        insert(&bound, txn, row)
    }

    /// Adds a row, or gives the one with its primary key these values.
    pub fn put(&self, txn: &mut Txn, row: &R) -> Result<()> {
        let bound = self.hold(txn)?;
        let primary = bound.index(PRIMARY)?;
        let values = row_values(&bound, row)?;
        let of = |column: usize| values.iter().find(|(c, _)| *c == column).map(|(_, value)| value.clone());
        let parts: Option<Vec<_>> = primary.def.parts.iter().map(|part| of(part.column)).collect();
        let mut key = Vec::new();
        if !parts.is_some_and(|parts| primary.keys.encode_prefix(&parts, &mut key)) {
            // Without the whole key it is a new row.
            return insert(&bound, txn, row).map(drop);
        }
        loop {
            let mut scratch = ReadScratch::default();
            let mut refused = None;
            let rules = rules_of(&bound, txn)?;
            let mut change = |old: RowRef<'_>, to: &mut crate::RowChange<'_>| {
                let changed = || values.iter().filter(|(column, v)| !same(&old.get(*column), v));
                let Some((rules, context)) = &rules else {
                    return changed().for_each(|(column, value)| to.set(*column, value));
                };
                let changes = owned(changed().cloned().collect());
                match rules::changed(rules, context, &bound.handle, old, changes) {
                    Ok(all) => all.iter().for_each(|(column, value)| to.set(*column, value)),
                    Err(error) => refused = Some(error),
                }
            };
            let found = txn.modify_unique(&bound.handle, primary, &key, &mut scratch, &mut change)?;
            if let Some(error) = refused {
                return Err(error);
            }
            if found.is_some() {
                return Ok(());
            }
            match insert(&bound, txn, row) {
                // Somebody else has just added it.
                Err(EngineError::DuplicateKey { key, .. }) if key == PRIMARY => {}
                other => return other.map(drop),
            }
        }
    }

    /// Shows the newest row with a primary key to `change`, and stores what that makes of it. False if there is none.
    pub fn update(&self, txn: &mut Txn, key: impl Key, change: impl FnOnce(&mut R)) -> Result<bool> {
        let bound = self.hold(txn)?;
        let rules = rules_of(&bound, txn)?;
        let Some((id, mut row)) = lock::<R>(&bound, txn, &key)? else { return Ok(false) };
        let before = owned(row_values(&bound, &row)?);
        change(&mut row);
        let mut changes = row_values(&bound, &row)?;
        changes.retain(|(column, value)| !before.iter().any(|(c, old)| c == column && same(old, value)));
        if changes.is_empty() {
            return Ok(true);
        }
        let mut buf = RowBuf::default();
        if let Some((rules, context)) = &rules
            && txn.lock_row(&bound.handle, id, RowLock::FOR_UPDATE, &mut buf)?
        {
            let old = buf.row(&bound.handle.layout);
            let all = rules::changed(rules, context, &bound.handle, old, owned(changes))?;
            txn.update(&bound.handle, id, &all)?;
            return Ok(true);
        }
        txn.update(&bound.handle, id, &changes)?;
        Ok(true)
    }

    /// Deletes the newest row with a primary key. False if there is none.
    pub fn delete(&self, txn: &mut Txn, key: impl Key) -> Result<bool> {
        let bound = self.hold(txn)?;
        let primary = bound.index(PRIMARY)?;
        let key = encode(&bound.handle, primary, &key)?;
        let mut scratch = ReadScratch::default();
        let delete = &mut |_: RowRef<'_>, to: &mut crate::RowChange<'_>| to.delete();
        Ok(txn.modify_unique(&bound.handle, primary, &key, &mut scratch, delete)?.is_some())
    }

    /// Visits the rows in a range of primary keys, ascending, until told to stop.
    pub fn scan<K: Key>(
        &self,
        txn: &mut Txn,
        keys: impl RangeBounds<K>,
        visit: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        self.primary().scan(txn, keys, Direction::Ascending, visit)
    }
}

impl<R: Row> Index<'_, R> {
    /// The row with a key; of several the first.
    pub fn get(&self, txn: &mut Txn, key: impl Key) -> Result<Option<R>> {
        let bound = self.table.hold(txn)?;
        let index = bound.index(&self.name)?;
        let prefix = encode(&bound.handle, index, &key)?;
        let mut found = None;
        let is_whole = key.parts().len() == index.def.parts.len();
        if index.def.kind.is_unique() && is_whole {
            let one = &mut |_, row: RowRef<'_>| found = Some(bound.read(&row));
            txn.get_unique(&bound.handle, index, &prefix, &mut ReadScratch::default(), one)?;
        } else {
            let first = |row| {
                found = Some(row);
                ControlFlow::Break(())
            };
            visit_range(&bound, txn, index, &KeyRange::prefix(&prefix), Direction::Ascending, first)?;
        }
        Ok(found)
    }

    /// Visits the rows in a range of keys, in their order, until told to stop. A bound of fewer columns than the index has
    /// stands for all keys that begin with it.
    pub fn scan<K: Key>(
        &self,
        txn: &mut Txn,
        keys: impl RangeBounds<K>,
        direction: Direction,
        visit: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        let bound = self.table.hold(txn)?;
        let index = bound.index(&self.name)?;
        let range = range(&bound.handle, index, &keys)?;
        visit_range(&bound, txn, index, &range, direction, visit)
    }

    /// Visits all rows, in the order of the index, until told to stop.
    pub fn scan_all(
        &self,
        txn: &mut Txn,
        direction: Direction,
        visit: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        self.scan::<i64>(txn, .., direction, visit)
    }
}

fn visit_range<R: Row>(
    bound: &Bound,
    txn: &Txn,
    index: &IndexHandle,
    range: &KeyRange,
    direction: Direction,
    mut visit: impl FnMut(R) -> ControlFlow<()>,
) -> Result<()> {
    let each = &mut |_: RowId, row: RowRef<'_>| visit(bound.read(&row));
    txn.index_scan(&bound.handle, index, range, direction, &mut ReadScratch::default(), each)
}

/// Locks the newest row with a primary key.
fn lock<R: Row>(bound: &Bound, txn: &mut Txn, key: &impl Key) -> Result<Option<(RowId, R)>> {
    let primary = bound.index(PRIMARY)?;
    let range = KeyRange::prefix(&encode(&bound.handle, primary, key)?);
    let mut found = None;
    txn.lock_scan(
        &bound.handle,
        primary,
        &range,
        Direction::Ascending,
        RowLock::FOR_UPDATE,
        &mut ReadScratch::default(),
        &mut |id, row| {
            found = Some((id, bound.read(&row)));
            ControlFlow::Break(())
        },
    )?;
    Ok(found)
}

/// What the table's definition computes.
fn rules_of<'b>(bound: &'b Bound, txn: &mut Txn) -> Result<Option<(&'b RowRules, EvalContext)>> {
    let compiler = txn.engine().rule_compiler();
    rules::of(&bound.handle, compiler, || txn.now_us())
}

/// The fields as their columns store them.
fn row_values<'r, R: Row>(bound: &Bound, row: &'r R) -> Result<Vec<(usize, Datum<'r>)>> {
    let value = |(value, &at): (Datum<'r>, &usize)| {
        let column = &bound.handle.def.columns[at];
        if value.is_null() && !column.nullable && !column.auto_increment {
            return Err(EngineError::NullInColumn(column.name.clone()));
        }
        Ok((at, exactly(value, column)?))
    };
    row.datums().into_iter().zip(&bound.columns).map(value).collect()
}

fn owned(values: Vec<(usize, Datum<'_>)>) -> Vec<(usize, Value)> {
    values.into_iter().map(|(column, value)| (column, value.into_owned())).collect()
}

fn insert<R: Row>(bound: &Bound, txn: &mut Txn, row: &R) -> Result<Option<u64>> {
    let handle = &bound.handle;
    let mut values: Vec<Option<Datum<'_>>> = vec![None; handle.def.columns.len()];
    for (column, value) in row_values(bound, row)? {
        values[column] = Some(value);
    }
    let mut generated = None;
    for (column, value) in handle.def.columns.iter().zip(&mut values) {
        if column.auto_increment {
            match value.as_ref().and_then(explicit) {
                Some(used) => handle.note_auto_increment(used),
                None => {
                    let next = txn.reserve_auto_increment(handle, 1);
                    generated = Some(next);
                    *value = Some(exactly(Datum::UInt(next), column)?);
                }
            }
        } else if value.is_none() && !column.is_computed() {
            *value = Some(default_value(column, txn)?);
        }
    }
    if let Some((rules, context)) = rules_of(bound, txn)? {
        rules::complete(rules, &context, handle, &mut values)?;
    }
    let values: Vec<_> = values.into_iter().flatten().collect();
    txn.insert(handle, &values)?;
    Ok(generated)
}

/// A value for an AUTO_INCREMENT column that is not a request for one.
fn explicit(value: &Datum<'_>) -> Option<u64> {
    match *value {
        Datum::UInt(v) => Some(v),
        Datum::Int(v) => Some(u64::try_from(v).unwrap_or(0)),
        _ => None,
    }
}

fn default_value(column: &ColumnDef, txn: &mut Txn) -> Result<Value> {
    match &column.default {
        Some(DefaultValue::Const(value)) => Ok(value.clone()),
        Some(DefaultValue::Now) => {
            let digits = match column.ty {
                SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => fsp,
                _ => 0,
            };
            let unit = 10_i64.pow(6 - u32::from(digits.min(6)));
            Ok(Datum::DateTime(txn.now_us().div_euclid(unit) * unit))
        }
        // One that is an expression is evaluated when the row's other values are there.
        Some(DefaultValue::Expr(_)) => Ok(Datum::Null),
        None if column.nullable => Ok(Datum::Null),
        None | Some(DefaultValue::Dropped) => Err(EngineError::BadValue {
            column: column.name.clone(),
            why: format!("Field '{}' doesn't have a default value", column.name),
        }),
    }
}

/// Whether two stored values are the same to the last byte.
fn same(a: &Datum<'_>, b: &Datum<'_>) -> bool {
    match (a.is_null(), b.is_null()) {
        (true, true) => true,
        (false, false) => {
            compare::compare(a, b, Collation::UTF8MB4_0900_BIN).is_some_and(std::cmp::Ordering::is_eq)
        }
        _ => false,
    }
}
