//! INSERT … VALUES.

use avocet_engine::{Catalog, EngineError, ReadScratch, TableHandle, Txn};
use avocet_types::convert::{StoreError, store_column};
use avocet_types::expr::program::NoRow;
use avocet_types::expr::{EvalContext, RowProgram, SqlMode, Warning};
use avocet_types::temporal::{TimeZone, date_of, time_of};
use avocet_types::{ColumnDef, Datum, Decimal, DefaultValue, SqlType, TableDef, Value};

use super::scope::Scope;
use super::upsert::{NewRow, OnDuplicate, Upserted, conflicting};
use super::write::{default_value, find_table};
use super::{
    Changes, Kind, NotPoint, PointPlan, PointScratch, Refusal, Run, Table, convert_context, note_stored,
    recycle,
};
use crate::bind::{CatalogView, TableBinder};
use crate::error::{ErrorCode, SqlError};
use crate::parse::ast::{self, ExprKind as Syntax};
use crate::parse::statement::{self, InsertSource};
use crate::session::api::PlanColumns;
use crate::session::errors::store_error;
use crate::turns::{ROWS_IN_PLACE, blocking_if};

#[derive(Debug)]
pub struct Insert {
    table: Table,
    /// A source for each column of each row.
    rows: Box<[Box<[Source]>]>,
    auto_increment: Option<usize>,
    on_duplicate: OnDuplicate,
}

/// Where a column's value comes from.
#[derive(Debug)]
enum Source {
    Value(RowProgram),
    /// Over the columns of the row before this one.
    Dependent(RowProgram),
    Default,
}

/// As `compile_update`.
pub fn compile_insert(
    insert: &statement::Insert,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
    params: &[SqlType],
) -> Result<PointPlan, Refusal> {
    if insert.ignore && (insert.replace || !insert.on_duplicate.is_empty()) {
        return Err(NotPoint::because("IGNORE with ON DUPLICATE KEY UPDATE").into());
    }
    let InsertSource::Values(values) = &insert.source else {
        return Err(NotPoint::because("INSERT … SELECT").into());
    };
    let (def, handle) = find_table(&insert.table, view, catalog)?;
    if insert.replace && handle.is_parent() {
        return Err(NotPoint::because("REPLACE of rows that others refer to").into());
    }
    let columns = target_columns(insert.columns.as_deref(), &def)?;
    let mut binder = TableBinder::new(source, view, params, &def, None);
    let scope = Scope::single(handle.clone());
    let mut rows = Vec::with_capacity(values.len());
    for (n, row) in values.iter().enumerate() {
        rows.push(compile_row(row, n + 1, &columns, insert.columns.is_some(), &def, &mut binder, &scope)?);
    }
    let params = binder.params().to_vec();
    let auto_increment = def.auto_increment_column();
    let table = Table(handle.clone());
    let on_duplicate = OnDuplicate::compile(insert, source, view, &table, &columns, &params)?;
    let kind = Kind::Insert(Insert { table, rows: rows.into(), auto_increment, on_duplicate });
    let dates = scope.dates();
    Ok(PointPlan { kind, tables: vec![Table(handle)], params, columns: PlanColumns::default(), dates })
}

/// The positions of the columns that are named.
fn target_columns(named: Option<&[ast::Ident]>, def: &TableDef) -> Result<Vec<usize>, SqlError> {
    let Some(named) = named else { return Ok((0..def.columns.len()).collect()) };
    let mut columns = Vec::with_capacity(named.len());
    for ident in named {
        let column = def.column(&ident.name);
        let column = column.ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&ident.name, &"field list"]))?;
        if columns.contains(&column) {
            return Err(ErrorCode::FIELD_SPECIFIED_TWICE.with(&[&ident.name]));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn compile_row(
    row: &[ast::Expr],
    number: usize,
    columns: &[usize],
    named: bool,
    def: &TableDef,
    binder: &mut TableBinder<'_>,
    scope: &Scope,
) -> Result<Box<[Source]>, Refusal> {
    // `()` gives every column its default.
    let all_default = row.is_empty() && (!named || columns.is_empty());
    if row.len() != columns.len() && !all_default {
        return Err(ErrorCode::WRONG_VALUE_COUNT_ON_ROW.with(&[&number]).into());
    }
    let mut sources: Vec<Source> = def.columns.iter().map(|_| Source::Default).collect();
    for (&column, value) in columns.iter().zip(row) {
        sources[column] = match &value.kind {
            Syntax::Default(None) => Source::Default,
            Syntax::Default(of) => Source::Value(scope.compile(&default_value(of.as_ref(), def, column)?)?),
            _ => {
                let value = binder.expr(value, false)?;
                let value = binder.settle_param(value, def.columns[column].ty);
                let program = scope.compile(&value)?;
                if value.columns().is_empty() { Source::Value(program) } else { Source::Dependent(program) }
            }
        };
    }
    Ok(sources.into())
}

/// The statement's time as a value of a type. Digits beyond the type's are dropped, not rounded: it is never in the
/// future.
pub fn now(ty: &SqlType, utc: i64, zone: TimeZone) -> Value {
    let local = zone.to_local(utc);
    let cut = |micros: i64| {
        let step = 10i64.pow(6 - u32::from(ty.fsp().unwrap_or(0).min(6)));
        micros - micros.rem_euclid(step)
    };
    match ty {
        SqlType::Timestamp { .. } => Datum::DateTime(cut(utc)),
        SqlType::Date => Datum::Date(date_of(local)),
        SqlType::Time { .. } => Datum::Time(cut(time_of(local))),
        _ => Datum::DateTime(cut(local)),
    }
}

/// A column got another value: if it counts, later numbers are greater.
pub fn note_updated(table: &TableHandle, column: &ColumnDef, value: &Datum<'_>) {
    if !column.auto_increment {
        return;
    }
    match value {
        Datum::Int(used) => table.note_auto_increment((*used).max(0) as u64),
        Datum::UInt(used) => table.note_auto_increment(*used),
        _ => {}
    }
}

/// MySQL Reference Manual, 13.6 "Data Type Default Values": what a NOT NULL column gets out of strict mode. `None` for
/// dates: there are no zero dates.
pub fn implicit_default(ty: &SqlType) -> Option<Value> {
    Some(match *ty {
        SqlType::Null => Datum::Null,
        SqlType::Bool | SqlType::Int { unsigned: false, .. } => Datum::Int(0),
        SqlType::Int { unsigned: true, .. } | SqlType::Year => Datum::UInt(0),
        SqlType::Decimal { scale, .. } => Datum::Decimal(Decimal::new(0, scale)),
        SqlType::Float => Datum::Float(0.0),
        SqlType::Double => Datum::Double(0.0),
        SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } => Datum::Str("".into()),
        SqlType::Binary { len } => Datum::Bytes(vec![0; len as usize].into()),
        SqlType::VarBinary { .. } | SqlType::Blob { .. } => Datum::Bytes((&[][..]).into()),
        SqlType::Time { .. } => Datum::Time(0),
        SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. } => return None,
    })
}

/// The AUTO_INCREMENT values of one statement.
struct Generated {
    next: u64,
    left: u64,
    /// The row's that is being inserted.
    own: Option<u64>,
    /// The first one of a row that was inserted.
    first: u64,
}

impl Generated {
    /// The row was not inserted: the next one takes its number.
    fn give_back(&mut self) {
        if let Some(own) = self.own.take() {
            self.next = own;
            self.left += 1;
        }
    }

    fn note_inserted(&mut self) {
        if self.first == 0 {
            self.first = self.own.unwrap_or(0);
        }
    }
}

/// What became of a row.
enum Put {
    Inserted,
    /// Another row was there, and is perhaps changed.
    Not,
}

#[cold]
fn warn_of(ctx: &EvalContext, error: EngineError) {
    let error = SqlError::from(error);
    ctx.push_warning(Warning { errno: error.errno, message: error.message, note: false });
}

impl Insert {
    /// Whether rows that can not be inserted are left out, with a warning.
    pub(super) fn ignores(&self) -> bool {
        matches!(self.on_duplicate, OnDuplicate::Ignore)
    }

    pub(super) fn run(
        &self,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Changes, SqlError> {
        blocking_if(self.rows.len() > ROWS_IN_PLACE, || self.insert(txn, run, scratch))
    }

    fn insert(
        &self,
        txn: &mut Txn,
        Run { params, ctx, bounds }: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Changes, SqlError> {
        scratch.reserve(1);
        let mut generated = Generated { next: 0, left: 0, own: None, first: 0 };
        let mut outcome = Changes { matched: self.rows.len() as u64, ..Changes::default() };
        for (n, sources) in self.rows.iter().enumerate() {
            bounds.row()?;
            let number = n as u64 + 1;
            let mut row = recycle(std::mem::take(&mut scratch.values));
            self.fill(sources, params, ctx, number, &mut row)?;
            generated.own = None;
            if let Some(column) = self.auto_increment {
                let left = (self.rows.len() - n) as u64;
                self.number(&mut row[column], column, left, ctx, &mut generated)?;
            }
            for (value, column) in row.iter().zip(&self.table.def.columns) {
                if value.is_null() && !column.nullable {
                    return Err(store_error(&StoreError::Null, &column.name, number));
                }
            }
            let new = NewRow { values: &row, number };
            match self.put(new, txn, params, ctx, &mut scratch.levels[0].read, &mut outcome)? {
                Put::Inserted => generated.note_inserted(),
                Put::Not => generated.give_back(),
            }
            scratch.values = recycle(row);
        }
        outcome.last_insert_id = generated.first;
        Ok(outcome)
    }

    /// Inserts a row, or does what is to be done if its key is there.
    fn put(
        &self,
        new: NewRow<'_>,
        txn: &mut Txn,
        params: &[Datum<'_>],
        ctx: &EvalContext,
        read: &mut ReadScratch,
        outcome: &mut Changes,
    ) -> Result<Put, SqlError> {
        loop {
            let duplicate = match txn.insert(&self.table, new.values) {
                Ok(_) => {
                    outcome.changed += 1;
                    return Ok(Put::Inserted);
                }
                Err(duplicate @ EngineError::DuplicateKey { .. }) => duplicate,
                Err(EngineError::ForeignKey(error)) if self.ignores() && error.is_of_row() => {
                    outcome.matched -= 1;
                    warn_of(ctx, error.into());
                    return Ok(Put::Not);
                }
                Err(error) => return Err(error.into()),
            };
            match self.on_duplicate {
                OnDuplicate::Fail => return Err(duplicate.into()),
                OnDuplicate::Ignore => {
                    outcome.duplicates += 1;
                    warn_of(ctx, duplicate);
                    return Ok(Put::Not);
                }
                OnDuplicate::Replace | OnDuplicate::Update(_) => {}
            }
            let Some(id) = conflicting(&self.table, new.values, None, txn, read)? else { continue };
            match &self.on_duplicate {
                OnDuplicate::Update(updates) => {
                    match updates.run(&self.table, id, new, txn, params, ctx)? {
                        Upserted::Changed => outcome.changed += 2,
                        Upserted::Unchanged => outcome.unchanged += 1,
                        Upserted::Gone => continue,
                    }
                    outcome.duplicates += 1;
                    return Ok(Put::Not);
                }
                _ if txn.delete(&self.table, id)? => {
                    outcome.changed += 1;
                    outcome.duplicates += 1;
                }
                _ => {}
            }
        }
    }

    /// The values of a row, of their columns' types.
    fn fill<'a>(
        &'a self,
        sources: &'a [Source],
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        number: u64,
        row: &mut Vec<Datum<'a>>,
    ) -> Result<(), SqlError> {
        let convert = convert_context(ctx);
        for (at, (source, column)) in sources.iter().zip(&self.table.def.columns).enumerate() {
            let (value, program) = match source {
                Source::Value(program) => (program.eval(&NoRow, params, ctx)?, program),
                Source::Dependent(program) => {
                    row.push(Datum::Null);
                    let value = self.dependent(program, sources, params, ctx, &row[..at])?;
                    row.pop();
                    (value, program)
                }
                Source::Default => {
                    row.push(self.default_of(at, column, ctx)?);
                    continue;
                }
            };
            // NULL asks for the next number.
            if self.auto_increment == Some(at) && value.is_null() {
                row.push(Datum::Null);
                continue;
            }
            // Of several rows, one without a value gets what the type has for none.
            if value.is_null()
                && !column.nullable
                && (self.rows.len() > 1 || self.ignores())
                && !ctx.is_strict()
                && let Some(value) = implicit_default(&column.ty)
            {
                note_stored(ctx, &StoreError::Null, &column.name, number);
                row.push(value);
                continue;
            }
            let stored = store_column(value, program.ty(), column, &convert)
                .map_err(|problem| store_error(&problem, &column.name, number))?;
            if let Some(problem) = &stored.warning {
                note_stored(ctx, problem, &column.name, number);
            }
            row.push(stored.value);
        }
        Ok(())
    }

    /// A value that uses columns of its own row: those before have their values, the others their defaults.
    fn dependent<'a>(
        &self,
        program: &'a RowProgram,
        sources: &[Source],
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        done: &[Datum<'a>],
    ) -> Result<Datum<'a>, SqlError> {
        let mut whole: Vec<Datum<'_>> = done.to_vec();
        for (at, column) in self.table.def.columns.iter().enumerate().skip(done.len()) {
            let is_default = matches!(sources[at], Source::Default);
            let value = if is_default { self.default_of(at, column, ctx)? } else { Datum::Null };
            let missing = value.is_null() && !column.nullable;
            whole.push(if missing { implicit_default(&column.ty).unwrap_or(Datum::Null) } else { value });
        }
        let whole: Vec<Value> = whole.into_iter().map(Datum::into_owned).collect();
        let params: Vec<Value> = params.iter().map(|p| p.clone().into_owned()).collect();
        Ok(program.eval(&&whole[..], &params, ctx)?.into_owned())
    }

    fn default_of(&self, at: usize, column: &ColumnDef, ctx: &EvalContext) -> Result<Value, SqlError> {
        match &column.default {
            Some(DefaultValue::Const(value)) => Ok(value.clone()),
            Some(DefaultValue::Now) => Ok(now(&column.ty, ctx.statement_time_micros, ctx.time_zone)),
            None if column.nullable || self.auto_increment == Some(at) => Ok(Datum::Null),
            None => {
                let missing = ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&column.name]);
                let value = implicit_default(&column.ty).filter(|_| !ctx.is_strict());
                let Some(value) = value else { return Err(missing) };
                ctx.push_warning(Warning { errno: missing.errno, message: missing.message, note: false });
                Ok(value)
            }
        }
    }

    fn note_explicit(&self, value: u64, generated: &mut Generated) {
        self.table.note_auto_increment(value);
        // Later numbers are greater than explicit ones: what was reserved below is not used.
        if value >= generated.next {
            generated.left = 0;
        }
    }

    /// Gives a row its AUTO_INCREMENT value, or notes the one that it has. `rows` are still to come, this one included.
    fn number(
        &self,
        value: &mut Datum<'_>,
        column: usize,
        rows: u64,
        ctx: &EvalContext,
        generated: &mut Generated,
    ) -> Result<(), SqlError> {
        let zero_asks = !ctx.sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        match *value {
            Datum::Null => {}
            Datum::Int(0) | Datum::UInt(0) if zero_asks => {}
            Datum::Int(v) => {
                self.note_explicit(v.max(0) as u64, generated);
                return Ok(());
            }
            Datum::UInt(v) => {
                self.note_explicit(v, generated);
                return Ok(());
            }
            _ => return Ok(()),
        }
        if generated.left == 0 {
            generated.next = self.table.reserve_auto_increment(rows);
            generated.left = rows;
        }
        let next = generated.next;
        let ty = &self.table.def.columns[column].ty;
        let most = ty.int_range().map_or(i128::from(i64::MAX), |(_, most)| most);
        if i128::from(next) > most {
            let message = "Failed to read auto-increment value from storage engine";
            return Err(SqlError { errno: 1467, sqlstate: *b"HY000", message: message.into() });
        }
        generated.next += 1;
        generated.left -= 1;
        generated.own = Some(next);
        *value = if ty.is_unsigned() { Datum::UInt(next) } else { Datum::Int(next as i64) };
        Ok(())
    }
}
