//! INSERT and REPLACE, of VALUES or of a query's rows.

use std::sync::Arc;

use avocet_channel::PlanColumns;
use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_engine::{Catalog, EngineError, ReadScratch, TableHandle, Txn};
use avocet_sql::bind::{CatalogView, Clause, TableBinder, UpsertNames, bind_query, reads_directly};
use avocet_sql::parse::ast::{self, ExprKind as Syntax};
use avocet_sql::parse::statement::{self, InsertSource};
use avocet_sql::plan::BoundQuery;
use avocet_types::convert::{StoreError, store_column};
use avocet_types::error::{ErrorCode, SqlError, column_error, store_error};
use avocet_types::expr::program::{NoRow, reborrow};
use avocet_types::expr::{EvalContext, RowProgram};
use avocet_types::temporal::{TimeZone, ZERO_DATE, ZERO_DATETIME, date_of, time_of};
use avocet_types::{ColumnDef, Datum, Decimal, RowRules, SqlType, TableDef, Value};

use super::assign::{
    Computing, check_zero_default, computed_default, computed_value, default_of, missing_default,
    not_for_generated, of_long_document,
};
use super::compile::{Nesting, compile_block};
use super::ignore::{is_of_row, warn_of, warn_of_row};
use super::known::{CompileBudget, Known};
use super::lookups::LookupScratch;
use super::numbers::Generated;
use super::rows::Rows;
use super::scope::Scope;
use super::select::Select;
use super::upsert::{NewRow, OnDuplicate, Rounds, Upserted, auto_number, conflicting};
use super::write::find_table;
use super::{
    Changes, Kind, NotPoint, Outcome, PointPlan, PointScratch, Refusal, Run, Table, convert_context,
    note_stored, recycle, rules_of,
};

/// Statements of more rows than this go to column blocks.
pub const BULK_ROWS: usize = 10_000;
/// So do rows that have this share of a block's bytes.
pub const LARGE_SHARE: usize = 4;

#[derive(Debug)]
pub struct Insert {
    table: Table,
    given: Given,
    /// The columns that are given values, in the statement's order.
    named: Box<[usize]>,
    /// Out of strict mode, a NULL for a column that has none becomes the type's default, with a warning.
    takes_nulls: bool,
    auto_increment: Option<usize>,
    on_duplicate: OnDuplicate,
    /// Rows that can not be inserted are left out, with a warning.
    pub ignore: bool,
    /// The client is told of the numbers of records and duplicates.
    pub is_listed: bool,
}

/// The rows that a statement gives, as a source for each column.
#[derive(Debug)]
enum Given {
    Values(Box<[Box<[Source]>]>),
    Query(Box<FromQuery>),
}

/// So often a row is computed that waits for others: each time one of them has committed.
const MOST_ROUNDS: usize = 1000;

#[derive(Debug)]
struct FromQuery {
    select: Select,
    sources: Box<[Source]>,
    /// How many columns are inserted, and how many more there are for ON DUPLICATE KEY UPDATE.
    width: usize,
    beside: usize,
    /// It is a row of VALUES with subqueries.
    is_row: bool,
}

/// Where a column's value comes from.
#[derive(Debug)]
enum Source {
    Value(RowProgram),
    /// A column of the query, of this type.
    Query(usize, SqlType),
    /// Over the columns of the row: those named before this one have their values, the others their defaults.
    Dependent(RowProgram),
    Default,
    /// The column is not named.
    Omitted,
}

/// A value that uses columns of its own row.
fn dependent<'a>(
    program: &RowProgram,
    params: &[Datum<'_>],
    ctx: &EvalContext,
    row: &[Datum<'a>],
) -> Result<Datum<'a>, SqlError> {
    let row: Vec<Value> = row.iter().map(|value| value.clone().into_owned()).collect();
    let params: Vec<Value> = params.iter().map(|value| value.clone().into_owned()).collect();
    Ok(program.eval(&&row[..], &params, ctx)?.into_owned())
}

/// As `compile_update`.
pub fn compile_insert(
    insert: &statement::Insert,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
    params: &[SqlType],
) -> Result<PointPlan, Refusal> {
    let (def, handle) = find_table(&insert.table, view, catalog)?;
    if insert.replace && handle.is_parent() {
        return Err(NotPoint::because("REPLACE of rows that others refer to").into());
    }
    let columns = target_columns(insert.columns.as_deref(), &def)?;
    let mut names = UpsertNames::new(insert, &def, &columns)?;
    let values = match &insert.source {
        InsertSource::Values(values) if !values.iter().flatten().any(ast::Expr::has_subquery) => values,
        InsertSource::Values(values) => {
            let is_default = |value: &ast::Expr| matches!(value.kind, Syntax::Default);
            let [row] = &values[..] else {
                return Err(NotPoint::because("subqueries in VALUES of several rows").into());
            };
            if row.len() != columns.len() || row.iter().any(is_default) {
                return Err(NotPoint::because("subqueries in VALUES beside DEFAULT").into());
            }
            let bound = bind_query(&ast::Query::select_of(row.iter().cloned()), source, view, params)?;
            if reads_directly(&bound.body, &def, Some(&def.name)) {
                return Err(ErrorCode::UPDATE_TABLE_USED.with(&[&def.name]).into());
            }
            return compile_from_query(insert, &names, &columns, &bound, handle, source, view, catalog);
        }
        InsertSource::Query(query) => {
            let query = names.add_to_query(query, source, view, params)?;
            let bound = bind_query(&query, source, view, params)?;
            return compile_from_query(insert, &names, &columns, &bound, handle, source, view, catalog);
        }
    };
    let mut binder = TableBinder::new(source, view, params, &def, None);
    let scope = Scope::single(handle.clone());
    let mut rows = Vec::with_capacity(values.len());
    for (n, row) in values.iter().enumerate() {
        rows.push(compile_row(row, n + 1, &columns, insert.columns.is_some(), &def, &mut binder, &scope)?);
    }
    for &column in columns.iter().filter(|column| def.columns[**column].generated.is_some()) {
        if rows.iter().any(|row| !matches!(row[column], Source::Default | Source::Omitted)) {
            return Err(not_for_generated(&def, column).into());
        }
    }
    let params = binder.params().to_vec();
    let auto_increment = def.auto_increment_column();
    let table = Table(handle.clone());
    let on_duplicate = OnDuplicate::compile(insert, &names, source, view, &def, &[], &params, catalog)?;
    let tables = std::iter::once(Table(handle)).chain(on_duplicate.tables()).collect();
    let dates = on_duplicate.with_dates(&scope.dates());
    let is_of_session = binder.is_of_session() || on_duplicate.is_of_session();
    let takes_nulls = rows.len() > 1 || insert.ignore;
    let (given, named) = (Given::Values(rows.into()), columns.into());
    let (ignore, is_listed) = (insert.ignore, values.len() > 1);
    let kind = Kind::Insert(Insert {
        table,
        given,
        named,
        takes_nulls,
        auto_increment,
        on_duplicate,
        ignore,
        is_listed,
    });
    let columns = PlanColumns::default();
    Ok(PointPlan { kind, tables, params, columns, dates, is_of_session })
}

/// INSERT … SELECT.
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of the statement, bound, and what they are bound with"
)]
fn compile_from_query(
    insert: &statement::Insert,
    names: &UpsertNames<'_>,
    columns: &[usize],
    bound: &BoundQuery,
    handle: Arc<TableHandle>,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
) -> Result<PointPlan, Refusal> {
    if bound.locks {
        return Err(NotPoint::because("INSERT … SELECT that locks rows").into());
    }
    let (width, beside) = (columns.len(), names.columns_of_query());
    if bound.body.outputs.len() != width + beside {
        return Err(ErrorCode::WRONG_VALUE_COUNT_ON_ROW.with(&[&1]).into());
    }
    let budget = CompileBudget::new();
    let block = compile_block(bound, &Known::new(catalog, &budget), Nesting::Change)?;
    let types: Vec<SqlType> = bound.output().map(|column| column.ty).collect();
    let mut sources: Vec<Source> = handle.def.columns.iter().map(|_| Source::Omitted).collect();
    for (at, column) in columns.iter().enumerate() {
        if handle.def.columns[*column].generated.is_some() {
            return Err(not_for_generated(&handle.def, *column).into());
        }
        sources[*column] = Source::Query(at, types[at]);
    }
    let table = Table(handle.clone());
    let on_duplicate = OnDuplicate::compile(
        insert,
        names,
        source,
        view,
        &table.def,
        &types[width..],
        &bound.params,
        catalog,
    )?;
    let mut tables = block.tables;
    tables.push(Table(handle));
    tables.extend(on_duplicate.tables());
    let dates = on_duplicate.with_dates(&block.dates);
    let is_of_session = bound.session_dependent || on_duplicate.is_of_session();
    tables.extend(super::checks::views_of(&bound.views, catalog)?);
    let is_listed = matches!(insert.source, InsertSource::Query(_));
    let query =
        FromQuery { select: block.select, sources: sources.into(), width, beside, is_row: !is_listed };
    let auto_increment = table.def.auto_increment_column();
    let (given, named) = (Given::Query(Box::new(query)), columns.into());
    let takes_nulls = insert.ignore || matches!(insert.source, InsertSource::Query(_));
    let ignore = insert.ignore;
    let kind = Kind::Insert(Insert {
        table,
        given,
        named,
        takes_nulls,
        auto_increment,
        on_duplicate,
        ignore,
        is_listed,
    });
    let (params, columns) = (bound.params.clone(), PlanColumns::default());
    Ok(PointPlan { kind, tables, params, columns, dates, is_of_session })
}

/// The positions of the columns that are named.
fn target_columns(named: Option<&[ast::Ident]>, def: &TableDef) -> Result<Vec<usize>, SqlError> {
    let Some(named) = named else {
        return Ok((0..def.columns.len()).filter(|at| !def.columns[*at].invisible).collect());
    };
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
    let mut sources: Vec<Source> = def.columns.iter().map(|_| Source::Omitted).collect();
    for (&column, value) in columns.iter().zip(row) {
        sources[column] = match &value.kind {
            Syntax::Default => Source::Default,
            _ => {
                let value = binder.expr(value, Clause::Select)?;
                let value = binder.assigned(value, def.columns[column].ty);
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
    if column.auto_increment {
        table.note_stored_number(value);
    }
}

/// MySQL Reference Manual, 13.6 "Data Type Default Values": what a NOT NULL column gets out of strict mode. `None` for
/// spatial values.
pub fn implicit_default(ty: &SqlType) -> Option<Value> {
    Some(match *ty {
        SqlType::Null => Datum::Null,
        SqlType::Bool | SqlType::Int { unsigned: false, .. } => Datum::Int(0),
        SqlType::Int { unsigned: true, .. } | SqlType::Year => Datum::UInt(0),
        SqlType::Decimal { scale, .. } => Datum::Decimal(Decimal::new(0, scale)),
        SqlType::Float(_) => Datum::Float(0.0),
        SqlType::Double(_) => Datum::Double(0.0),
        SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } => Datum::Str("".into()),
        SqlType::Binary { len } => Datum::Bytes(vec![0; len as usize].into()),
        SqlType::VarBinary { .. } | SqlType::Blob { .. } => Datum::Bytes((&[][..]).into()),
        SqlType::Time { .. } => Datum::Time(0),
        SqlType::Enum(_) | SqlType::Set(_) | SqlType::Bit { .. } => Datum::UInt(0),
        SqlType::Json => Datum::Bytes(avocet_types::json::Node::NULL.to_document().into()),
        SqlType::Date => Datum::Date(ZERO_DATE),
        SqlType::DateTime { .. } | SqlType::Timestamp { .. } => Datum::DateTime(ZERO_DATETIME),
        SqlType::Geometry { .. } => return None,
    })
}

/// What a column gets that has no DEFAULT, in any mode: an ENUM that is NOT NULL its first member.
pub const fn unstated_default(column: &ColumnDef) -> Option<Value> {
    match column.ty {
        SqlType::Enum(_) if column.has_no_default() => match column.nullable {
            true => Some(Datum::Null),
            false => Some(Datum::UInt(1)),
        },
        _ => None,
    }
}

/// What a column gets that has no default and is given no value, out of strict mode; `None` where there is nothing to give.
pub fn no_default(column: &ColumnDef) -> Option<Value> {
    match column.nullable {
        true => Some(Datum::Null),
        false => implicit_default(&column.ty),
    }
}

/// What became of a row.
enum Put {
    Inserted,
    /// Another row was there, and is perhaps changed.
    Not,
}

impl Insert {
    pub(super) fn table(&self) -> &Arc<TableHandle> {
        &self.table.0
    }

    pub(super) fn query(&self) -> Option<&Select> {
        match &self.given {
            Given::Values(_) => None,
            Given::Query(query) => Some(&query.select),
        }
    }

    pub(super) fn run(
        &self,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Outcome, SqlError> {
        scratch.lookups.forget();
        match &self.given {
            Given::Values(rows) => {
                let is_much = rows.len() > ROWS_IN_PLACE;
                blocking_if(is_much, || self.insert_values(rows, txn, run, scratch))
            }
            Given::Query(query) => {
                if query.select.is_too_much(run, scratch)? {
                    return Ok(Outcome::Declined);
                }
                let mut rows = std::mem::take(&mut scratch.rows);
                let result = self.insert_from(query, &mut rows, txn, run, scratch);
                scratch.rows = rows;
                result
            }
        }
    }

    fn insert_values(
        &self,
        rows: &[Box<[Source]>],
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Outcome, SqlError> {
        scratch.reserve(1);
        let mut generated = Generated::default();
        let matched = rows.len() as u64;
        let mut outcome = Changes { matched, ..Changes::default() };
        for (n, sources) in rows.iter().enumerate() {
            let given = NewRow { values: &[], beside: &[], number: n as u64 + 1 };
            self.insert_row(sources, given, matched, &mut generated, txn, run, scratch, &mut outcome)?;
        }
        outcome.last_insert_id = generated.first();
        Ok(Outcome::Changed(outcome))
    }

    /// A row whose insertion waited for another transaction, which may have changed what its subqueries read, is computed again: MySQL's
    /// subqueries would have waited before they gave a value.
    fn insert_from(
        &self,
        query: &FromQuery,
        rows: &mut Rows,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Outcome, SqlError> {
        if !query.is_row {
            return self.insert_found(query, rows, txn, run, scratch);
        }
        let told = run.ctx.warning_count();
        for _ in 0..MOST_ROUNDS {
            // What a round before has assigned and told is as if it had not been.
            run.ctx.assigned.take();
            run.ctx.truncate_warnings(told);
            let (mark, newest) = (txn.mark(), txn.newest_reader());
            let outcome = self.insert_found(query, rows, txn, run, scratch)?;
            if !matches!(outcome, Outcome::Changed(_)) || !txn.has_met_newer(newest.ts()) {
                return Ok(outcome);
            }
            txn.rollback_statement(mark);
            run.bounds.check()?;
        }
        Err(ErrorCode::LOCK_DEADLOCK.with(&[]))
    }

    /// Inserts the rows that a query finds.
    fn insert_found(
        &self,
        query: &FromQuery,
        rows: &mut Rows,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Outcome, SqlError> {
        let FromQuery { select, sources, width, beside, .. } = query;
        rows.begin(width + beside, run.bounds);
        select.allow_declining(run.bounds);
        let mut sink = rows.sink(run.bounds);
        let found = txn.read_for_change(|txn| select.run_here(None, txn, run, scratch, &mut sink));
        drop(sink);
        match found {
            Err(_) if run.bounds.has_declined() => return Ok(Outcome::Declined),
            other => other?,
        };
        run.bounds.forbid_declining();
        let block = txn.engine().memory().segment_bytes();
        if select.repeatable && goes_to_blocks(rows.count(), rows.bytes(), block) {
            return Ok(Outcome::Declined);
        }
        scratch.reserve(1);
        let mut generated = Generated::default();
        let matched = rows.count() as u64;
        let mut outcome = Changes { matched, ..Changes::default() };
        blocking_if(rows.count() > ROWS_IN_PLACE, || {
            for (n, row) in rows.iter().enumerate() {
                let (values, beside) = row.split_at(*width);
                let given = NewRow { values, beside, number: n as u64 + 1 };
                // As InnoDB does, numbers are reserved in ever larger groups; what is not used is lost.
                let reserved = 1 << generated.reservations().min(16);
                self.insert_row(sources, given, reserved, &mut generated, txn, run, scratch, &mut outcome)?;
            }
            Ok::<_, SqlError>(())
        })?;
        outcome.last_insert_id = generated.first();
        Ok(Outcome::Changed(outcome))
    }

    /// Inserts a row; `given` has the query's values. So many numbers are reserved if one is needed.
    #[expect(
        clippy::too_many_arguments,
        reason = "a row, where its values come from, and what becomes of it"
    )]
    fn insert_row(
        &self,
        sources: &[Source],
        given: NewRow<'_>,
        reserved: u64,
        generated: &mut Generated,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
        outcome: &mut Changes,
    ) -> Result<(), SqlError> {
        run.bounds.row()?;
        let NewRow { values, beside, number } = given;
        let mut row = recycle(std::mem::take(&mut scratch.values));
        self.fill(sources, values, run, number, &mut row)?;
        generated.begin_row();
        let rules = rules_of(&self.table)?;
        let how = self.computing(run.ctx, number);
        for (at, program) in rules.iter().flat_map(|rules| rules.generated()) {
            let column = &self.table.def.columns[*at];
            row[*at] = computed_value(program, column, &&row[..], how)?;
        }
        for (at, (value, column)) in row.iter().zip(&self.table.def.columns).enumerate() {
            if value.is_null() && !column.nullable && self.auto_increment != Some(at) {
                return Err(store_error(&StoreError::null_in(&column.ty), &column.name, number));
            }
        }
        if let Some(rules) = rules
            && let Err(error) = rules.check(&&row[..], run.ctx)
        {
            if !(self.ignore && is_of_row(&error)) {
                return Err(error);
            }
            outcome.matched -= 1;
            warn_of_row(run.ctx, error);
            generated.give_back();
            scratch.values = recycle(row);
            return Ok(());
        }
        // Neither a CHECK nor a generated column reads it: rows that are refused take no number.
        if let Some(column) = self.auto_increment {
            generated.number(&self.table, column, &mut row[column], reserved, run.ctx)?;
        }
        let new = NewRow { values: &row, beside, number };
        let (read, lookups) = (&mut scratch.levels[0].read, &mut scratch.lookups);
        match self.put(new, generated.is_numbered(), txn, run, read, lookups, outcome)? {
            Put::Inserted => generated.note_inserted(),
            Put::Not => generated.give_back(),
        }
        scratch.values = recycle(row);
        Ok(())
    }

    /// Inserts a row, or does what is to be done if its key is there. `is_numbered`: its number was generated.
    #[expect(clippy::too_many_arguments, reason = "a row, and what changes it")]
    fn put(
        &self,
        new: NewRow<'_>,
        is_numbered: bool,
        txn: &mut Txn,
        run: Run<'_>,
        read: &mut ReadScratch,
        lookups: &mut LookupScratch,
        outcome: &mut Changes,
    ) -> Result<Put, SqlError> {
        let mut rounds = Rounds::default();
        loop {
            let duplicate = match txn.insert(&self.table, new.values) {
                Ok(_) => {
                    outcome.changed += 1;
                    outcome.last_number = auto_number(self.auto_increment, &new.values);
                    return Ok(Put::Inserted);
                }
                Err(duplicate @ EngineError::DuplicateKey { .. }) => duplicate,
                Err(EngineError::ForeignKey(error)) if self.ignore && error.is_of_row() => {
                    outcome.matched -= 1;
                    warn_of(run.ctx, error.into());
                    return Ok(Put::Not);
                }
                Err(error) => return Err(error.into()),
            };
            match self.on_duplicate {
                OnDuplicate::Fail => return Err(duplicate.into()),
                OnDuplicate::Ignore => {
                    outcome.duplicates += 1;
                    warn_of(run.ctx, duplicate);
                    return Ok(Put::Not);
                }
                OnDuplicate::Replace | OnDuplicate::Update(_) => {}
            }
            let conflict = conflicting(&self.table, new.values, None, txn, read)?;
            if let Some(conflict) = conflict
                && is_numbered
                && matches!(self.on_duplicate, OnDuplicate::Replace)
                && conflict.is_of_number(self.auto_increment)
            {
                return Err(duplicate.into());
            }
            rounds.next(duplicate, || run.bounds.check())?;
            let Some(conflict) = conflict else { continue };
            let id = conflict.row;
            match &self.on_duplicate {
                OnDuplicate::Update(updates) => {
                    match updates.run(&self.table, id, new, self.ignore, txn, run, lookups)? {
                        Upserted::Changed { number } => {
                            outcome.changed += 2;
                            outcome.last_number = number;
                        }
                        Upserted::Unchanged => outcome.unchanged += 1,
                        Upserted::Left => {}
                        Upserted::Gone => continue,
                    }
                    outcome.duplicates += 1;
                    return Ok(Put::Not);
                }
                _ if conflict.is_replaced_by_itself(&self.table, new.values, txn)? => {
                    outcome.changed += 1;
                    outcome.last_number = auto_number(self.auto_increment, &new.values);
                    return Ok(Put::Inserted);
                }
                _ if txn.delete(&self.table, id)? => {
                    outcome.changed += 1;
                    outcome.duplicates += 1;
                }
                _ => {}
            }
        }
    }

    /// The values of a row, of their columns' types. Values are stored in the order in which their columns are named; what is
    /// not given, and has no default, is missed after that.
    fn fill<'a>(
        &'a self,
        sources: &'a [Source],
        given: &'a [Datum<'a>],
        Run { params, ctx, .. }: Run<'a>,
        number: u64,
        row: &mut Vec<Datum<'a>>,
    ) -> Result<(), SqlError> {
        let convert = convert_context(ctx);
        let columns = &self.table.def.columns;
        row.resize(columns.len(), Datum::Null);
        let rules = rules_of(&self.table)?;
        let how = self.computing(ctx, number);
        let depends = |source: &Source| matches!(source, Source::Dependent(_));
        if rules.is_some_and(RowRules::has_defaults) || sources.iter().any(depends) {
            for (at, column) in columns.iter().enumerate() {
                row[at] = self.before_given(at, column, ctx)?;
            }
        }
        for &at in &self.named {
            let column = &columns[at];
            let (value, ty) = match &sources[at] {
                Source::Value(program) => (program.eval(&NoRow, params, ctx)?, program.ty()),
                Source::Query(at, ty) => (reborrow(&given[*at]), ty),
                Source::Dependent(program) => (dependent(program, params, ctx, row)?, program.ty()),
                Source::Default => {
                    row[at] = match computed_default(rules, at, column, &&row[..], how)? {
                        Some(value) => value,
                        None => {
                            check_zero_default(column, ctx, number)?;
                            self.default_of(at, column, ctx)?
                        }
                    };
                    continue;
                }
                Source::Omitted => continue,
            };
            // NULL asks for the next number.
            if self.auto_increment == Some(at) && value.is_null() {
                row[at] = Datum::Null;
                continue;
            }
            // Of several rows, one without a value gets what the type has for none.
            if value.is_null()
                && !column.nullable
                && self.takes_nulls
                && !ctx.is_strict()
                && let Some(value) = implicit_default(&column.ty)
            {
                note_stored(ctx, &StoreError::Null, &column.name, number);
                row[at] = value;
                continue;
            }
            let (value, ty) = of_long_document(value, ty, column, ctx)?;
            let stored = store_column(value, ty, column, &convert)
                .map_err(|problem| column_error(&problem, &self.table.def.name, &column.name, number))?;
            if let Some(problem) = &stored.warning {
                note_stored(ctx, problem, &column.name, number);
            }
            row[at] = stored.value;
        }
        for (at, source) in sources.iter().enumerate() {
            if matches!(source, Source::Omitted) {
                check_zero_default(&columns[at], ctx, number)?;
                row[at] = match self.misses(at, &columns[at]) {
                    true => missing_default(&columns[at], ctx, number == 1)?,
                    false => self.default_of(at, &columns[at], ctx)?,
                };
            }
        }
        // Expressions see all that is given, all constants, and expressions before them.
        if let Some(rules) = rules.filter(|rules| rules.has_defaults()) {
            for at in (0..columns.len()).filter(|at| matches!(sources[*at], Source::Omitted)) {
                let Some(program) = rules.default_of(at) else { continue };
                for (from, generated) in rules.generated_for(program) {
                    row[*from] = computed_value(generated, &columns[*from], &&row[..], how)?;
                }
                row[at] = computed_value(program, &columns[at], &&row[..], how)?;
            }
        }
        Ok(())
    }

    fn computing<'c>(&self, ctx: &'c EvalContext, number: u64) -> Computing<'c> {
        Computing { ctx, number, takes_nulls: self.takes_nulls }
    }

    /// Whether a column has no value if it is given none.
    fn misses(&self, at: usize, column: &ColumnDef) -> bool {
        column.has_no_default() && column.generated.is_none() && self.auto_increment != Some(at)
    }

    /// What values that use the column see as long as it is not given.
    fn before_given(&self, at: usize, column: &ColumnDef, ctx: &EvalContext) -> Result<Value, SqlError> {
        let value = if self.misses(at, column) { Datum::Null } else { self.default_of(at, column, ctx)? };
        let is_none = value.is_null() && !column.nullable;
        let none =
            || unstated_default(column).or_else(|| implicit_default(&column.ty)).unwrap_or(Datum::Null);
        Ok(if is_none { none() } else { value })
    }

    fn default_of(&self, at: usize, column: &ColumnDef, ctx: &EvalContext) -> Result<Value, SqlError> {
        match self.auto_increment == Some(at) {
            true => Ok(Datum::Null),
            // Generated when the others are there.
            false if column.generated.is_some() => Ok(Datum::Null),
            false => default_of(column, ctx),
        }
    }
}

/// Whether so many rows, of so many bytes, had better go straight to column blocks.
fn goes_to_blocks(rows: usize, bytes: usize, block: usize) -> bool {
    rows > BULK_ROWS || bytes >= block / LARGE_SHARE
}
