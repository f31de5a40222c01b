//! INSERT and REPLACE.
//!
//! Few rows go one by one through the engine's row inserts; a statement of many is gathered to Arrow batches and goes
//! straight to column blocks.

mod computed;
mod duplicate;
mod from_query;

use std::sync::Arc;

use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if, yield_now_and_then};
use avocet_engine::{StatementMark, TableHandle};
use avocet_point::{
    BULK_ROWS, Refusal, RowCheck, Updates, auto_number, first_failed, rules_of, within_range,
};
use avocet_sql::bind::{Clause, TableBinder, UpsertNames, ViewTarget, reads_directly, unsupported};
use avocet_sql::parse::ast::{Expr, ExprKind, Ident, ObjectName, Query, UnaryOp};
use avocet_sql::parse::statement::{Insert, InsertSource};
use avocet_sql::plan::BoundQuery;
use avocet_types::convert::StoreError;
use avocet_types::decimal::ParseStatus;
use avocet_types::error::{ErrorCode, SqlError, store_error};
use avocet_types::expr::RowProgram;
use avocet_types::schema::TableDef;
use avocet_types::{ColumnDef, Datum, Decimal, SqlType, Value};

use self::computed::check_given;
use super::bulk::Bulk;
use super::counters::Counter;
use super::modify::Finds;
use super::run::{Done, Outcome, Text};
use super::select::{MAX_REBINDS, Purpose};
use super::state::{Level, Session};
use super::store::{Storing, explicit_auto_value, generates, next_auto_value};
use super::through_views::checks_of;

/// What to do with a row whose key is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDuplicate {
    Fail,
    Ignore,
    Replace,
    Update,
}

/// One INSERT that is being run.
pub(super) struct Inserter<'i> {
    pub table: Arc<TableHandle>,
    /// By source position: the column that it goes to.
    targets: Vec<usize>,
    /// By column: the source position.
    sources: Vec<Option<usize>>,
    pub auto: Option<usize>,
    pub storing: Storing,
    on_duplicate: OnDuplicate,
    ignore: bool,
    updates: Option<Updates>,
    /// Of the view into which the rows go.
    pub checks: Arc<[RowCheck]>,
    /// A warning said that the table behind the view has columns without a default.
    told_of_defaults: bool,
    /// Of the row that is being inserted: what the query has for `updates` alone.
    beside: Vec<Value>,
    params: &'i [Datum<'i>],
    pub counts: Counts,
    /// `insert_id`: the next number, whatever the table's counter says.
    forced: Option<u64>,
    /// Numbers that are reserved and not given out yet.
    numbers: std::ops::Range<u64>,
    /// How often numbers were reserved.
    reservations: u32,
    /// How many rows VALUES has.
    expected_rows: u64,
    /// The number that was generated for the row that is being inserted.
    pub generated: Option<u64>,
}

/// What the statement tells of its rows.
#[derive(Clone, Default)]
pub(super) struct Counts {
    /// The first generated number of a row that was inserted.
    pub first_generated: u64,
    /// The AUTO_INCREMENT value of the last row that was inserted, or changed instead.
    last_number: u64,
    pub affected: u64,
    pub rows: u64,
    pub duplicates: u64,
}

impl Inserter<'_> {
    /// The next AUTO_INCREMENT value. As InnoDB does, numbers are reserved for all rows of VALUES at once, and for those of
    /// a query in ever larger groups; what is not used is lost.
    fn next_number(&mut self) -> u64 {
        if self.storing.increment != 1 {
            return next_auto_value(&self.table, &self.storing);
        }
        if self.numbers.is_empty() {
            let count = match self.reservations {
                0 if self.expected_rows > 0 => self.expected_rows,
                before => 1 << before.min(16),
            };
            self.reservations += 1;
            let first = self.table.reserve_auto_increment(count);
            self.numbers = first..first.saturating_add(count);
        }
        self.numbers.next().unwrap_or(u64::MAX)
    }

    /// A row was not inserted: the next one takes its number.
    fn give_number_back(&mut self) {
        if let Some(number) = self.generated.take()
            && self.numbers.start == number + 1
        {
            self.numbers.start = number;
        }
    }

    /// The columns that change in a row whose key is there.
    pub fn updated_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.updates.iter().flat_map(Updates::columns)
    }

    fn note_inserted(&mut self, row: &[Value]) {
        self.counts.affected += 1;
        self.counts.last_number = auto_number(self.auto, &row);
        if self.counts.first_generated == 0 {
            self.counts.first_generated = self.generated.unwrap_or(0);
        }
    }
}

/// A value as the statement gives it.
pub(super) enum Given {
    Value(Value, SqlType),
    Default,
}

/// The number of a row of VALUES, from 1, if it has as many values as there are columns to take them.
fn row_number(at: usize, row: &[Expr], inserter: &Inserter<'_>) -> Result<u64, SqlError> {
    let number = at as u64 + 1;
    match row.len() == inserter.targets.len() || row.is_empty() {
        true => Ok(number),
        false => Err(ErrorCode::WRONG_VALUE_COUNT_ON_ROW.with(&[&number])),
    }
}

impl Session {
    /// Why rows cannot be put into named partitions of a table: that is not served, if it has some.
    pub(super) fn refused_partitions(&self, name: &ObjectName, unserved: &SqlError) -> SqlError {
        let database = match &name.database {
            Some(database) => database.name.as_str(),
            None => match self.current_database() {
                Ok(database) => database,
                Err(error) => return error,
            },
        };
        let catalog = self.catalog();
        match catalog.table(database, &name.name.name) {
            Some(table) if table.def.partitioning.is_some() => unserved.clone(),
            Some(_) => ErrorCode::PARTITION_CLAUSE_ON_NONPARTITIONED.with(&[]),
            None if catalog.view(database, &name.name.name).is_some() => unserved.clone(),
            None => ErrorCode::NO_SUCH_TABLE.with(&[&database, &name.name.name]),
        }
    }

    /// What PREPARE finds wrong with an INSERT.
    pub(super) fn check_insert(&self, insert: &Insert) -> Result<(), SqlError> {
        let database = match &insert.table.database {
            Some(database) => database.name.as_str(),
            None => self.current_database()?,
        };
        let catalog = self.catalog();
        if let Some(target) = self.insert_through_view(insert)? {
            return target.insert(insert).map(drop);
        }
        match catalog.table(database, &insert.table.name.name) {
            Some(table) => targets(table, insert).map(drop),
            None => Err(ErrorCode::NO_SUCH_TABLE.with(&[&database, &insert.table.name.name])),
        }
    }

    pub(super) async fn insert(&mut self, insert: &Insert, text: &Text<'_>) -> Result<Outcome, SqlError> {
        self.set_storing(!insert.ignore);
        self.set_ignoring(insert.ignore);
        let mark = self.begin_statement()?;
        let result = match self.insert_once(insert, mark, text).await {
            Ok(None) => self.insert_in_transaction(insert, text).await,
            Ok(Some(done)) => Ok(done),
            Err(error) => Err(error),
        };
        let result = self.end_statement(mark, result).await;
        if self.settings.insert_id.is_some() {
            // It was for this statement.
            self.variables.own.put_by_name("insert_id", Datum::UInt(0));
            self.refresh();
        }
        result.map(Outcome::Done)
    }

    /// Runs the INSERT of a few rows of VALUES on a plan that is made for this run alone; `None` if it is not one.
    async fn insert_once(
        &mut self,
        insert: &Insert,
        mark: StatementMark,
        text: &Text<'_>,
    ) -> Result<Option<Done>, SqlError> {
        let is_few =
            |rows: &[Vec<Expr>]| rows.len() <= BULK_ROWS && !rows.iter().flatten().any(Expr::has_subquery);
        match &insert.source {
            InsertSource::Values(rows) if self.numbers_plainly() && is_few(rows) => {}
            _ => return Ok(None),
        }
        let compile = |session: &Self| session.compile_insert(insert, text.source, &text.types);
        self.change_once(&compile, Finds::Nothing, mark, text).await
    }

    async fn insert_in_transaction(&mut self, insert: &Insert, text: &Text<'_>) -> Result<Done, SqlError> {
        self.shared.counters.add(Counter::Insert);
        for _ in 0..MAX_REBINDS {
            let Some(target) = self.insert_through_view(insert)? else {
                let table = self.insert_target(&insert.table)?;
                return self.insert_into(table, None, insert, text).await;
            };
            let own = target.insert(insert)?;
            // Whoever changes the view waits for this transaction once it is held.
            if self.hold_views(&target.views)? {
                let table = self.insert_target(&own.table)?;
                if Arc::ptr_eq(&table.def, &target.table) {
                    return self.insert_into(table, Some(&target), &own, text).await;
                }
            }
        }
        Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]))
    }

    async fn insert_into(
        &mut self,
        table: Arc<TableHandle>,
        through: Option<&ViewTarget>,
        insert: &Insert,
        text: &Text<'_>,
    ) -> Result<Done, SqlError> {
        let mut inserter = self.inserter(table, insert, text)?;
        if let Some(target) = through {
            inserter.checks = checks_of(target)?;
            if let Some(lacking) = &target.lacks_default {
                self.warn_of(lacking);
                inserter.told_of_defaults = true;
            }
        }
        let many = match &insert.source {
            InsertSource::Values(rows) => {
                let names = UpsertNames::new(insert, &inserter.table.def, &inserter.targets)?;
                inserter.updates = self.duplicate_updates(insert, &names, &[], &inserter, text)?;
                self.insert_values(&mut inserter, rows, text).await?;
                rows.len() > 1
            }
            InsertSource::Query(query) => {
                let (bound, tables) = self.bind_source(insert, query, &mut inserter, text)?;
                self.insert_query(&mut inserter, bound, tables, text).await?;
                true
            }
        };
        let warnings = self.condition_count() + self.context.warning_count();
        let info = if many {
            format!(
                "Records: {}  Duplicates: {}  Warnings: {warnings}",
                inserter.counts.rows, inserter.counts.duplicates
            )
        } else {
            String::new()
        };
        Ok(Done {
            affected_rows: inserter.counts.affected,
            last_insert_id: inserter.counts.first_generated,
            last_number: inserter.counts.last_number,
            tells_chosen: true,
            info,
            database_changed: false,
        })
    }

    fn inserter<'i>(
        &self,
        table: Arc<TableHandle>,
        insert: &Insert,
        text: &Text<'i>,
    ) -> Result<Inserter<'i>, SqlError> {
        let targets = targets(&table, insert)?;
        let mut sources = vec![None; table.def.columns.len()];
        for (source, target) in targets.iter().enumerate() {
            sources[*target] = Some(source);
        }
        let on_duplicate = match (insert.replace, insert.on_duplicate.is_empty(), insert.ignore) {
            (true, ..) => OnDuplicate::Replace,
            (_, false, _) => OnDuplicate::Update,
            (_, _, true) => OnDuplicate::Ignore,
            _ => OnDuplicate::Fail,
        };
        let params = text.params;
        Ok(Inserter { targets, sources, params, ..self.inserter_of_rows(table, on_duplicate, insert.ignore) })
    }

    /// For rows that come with a value for each column.
    pub(super) fn inserter_of_rows<'i>(
        &self,
        table: Arc<TableHandle>,
        on_duplicate: OnDuplicate,
        ignore: bool,
    ) -> Inserter<'i> {
        Inserter {
            auto: table.def.auto_increment_column(),
            storing: self.storing(ignore),
            targets: Vec::new(),
            sources: Vec::new(),
            table,
            on_duplicate,
            ignore,
            updates: None,
            checks: Arc::default(),
            told_of_defaults: false,
            beside: Vec::new(),
            params: &[],
            counts: Counts::default(),
            forced: self.settings.insert_id,
            numbers: 0..0,
            reservations: 0,
            expected_rows: 0,
            generated: None,
        }
    }

    /// Binds the query whose rows are inserted, and what becomes of those whose keys are there.
    fn bind_source(
        &mut self,
        insert: &Insert,
        query: &Query,
        inserter: &mut Inserter<'_>,
        text: &Text<'_>,
    ) -> Result<(BoundQuery, Vec<Arc<TableHandle>>), SqlError> {
        let table = inserter.table.clone();
        let mut names = UpsertNames::new(insert, &table.def, &inserter.targets)?;
        let query = names.add_to_query(query, text.source, &self.view(), &text.types)?;
        let (bound, tables) = self.bind_and_hold(&query, text)?;
        let width = inserter.targets.len();
        if bound.body.outputs.len() != width + names.columns_of_query() {
            return Err(ErrorCode::WRONG_VALUE_COUNT_ON_ROW.with(&[&1]));
        }
        let beside: Vec<SqlType> = bound.output().skip(width).map(|column| column.ty).collect();
        inserter.updates = self.duplicate_updates(insert, &names, &beside, inserter, text)?;
        Ok((bound, tables))
    }

    /// The assignments of ON DUPLICATE KEY UPDATE.
    fn duplicate_updates(
        &mut self,
        insert: &Insert,
        names: &UpsertNames<'_>,
        beside: &[SqlType],
        inserter: &Inserter<'_>,
        text: &Text<'_>,
    ) -> Result<Option<Updates>, SqlError> {
        let (view, def) = (self.view(), &inserter.table.def);
        let catalog = self.catalog();
        let updates = Updates::compile(insert, names, text.source, &view, def, beside, &text.types, &catalog);
        let updates = updates.map_err(Refusal::into_error)?;
        // A transaction runs, so that a change of these waits for it from now on.
        for table in updates.tables().cloned().collect::<Vec<_>>() {
            if !self.hold(&table)? {
                return Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]));
            }
        }
        Ok(Some(updates.checked(inserter.checks.clone())))
    }

    async fn insert_values(
        &mut self,
        inserter: &mut Inserter<'_>,
        rows: &[Vec<Expr>],
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        inserter.expected_rows = rows.len() as u64;
        inserter.storing.refuses_null = rows.len() == 1 && !inserter.ignore;
        check_given(inserter, rows)?;
        if !rows.iter().flatten().any(Expr::has_subquery) {
            let is_much = rows.len() > ROWS_IN_PLACE;
            return blocking_if(is_much, || self.insert_given(inserter, rows, text));
        }
        for (at, row) in rows.iter().enumerate() {
            yield_now_and_then(at).await;
            self.insert_computed(inserter, row_number(at, row, inserter)?, row, text).await?;
        }
        Ok(())
    }

    /// Inserts a row with subqueries. If it waited for another transaction, which may have changed what these read, they are evaluated
    /// again: MySQL's would have waited before they gave a value.
    async fn insert_computed(
        &mut self,
        inserter: &mut Inserter<'_>,
        number: u64,
        row: &[Expr],
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        /// Each time another transaction has committed.
        const MOST_ROUNDS: usize = 1000;
        let counts = inserter.counts.clone();
        let told = (self.conditions.len(), self.conditions_dropped, self.context.warning_count());
        for _ in 0..MOST_ROUNDS {
            self.info.interrupt.check()?;
            let (mark, newest) = (self.txn().mark(), self.txn().newest_reader());
            let mut given = Vec::with_capacity(row.len());
            for expr in row {
                given.push(match expr.has_subquery() {
                    true => self.given_by_query(expr, inserter, text).await?,
                    false => self.given(expr, inserter, text)?,
                });
            }
            let Some(values) = self.complete(inserter, given, number)? else { return Ok(()) };
            self.insert_row(inserter, values)?;
            if !self.txn().has_met_newer(newest.ts()) {
                return Ok(());
            }
            // What this round has done and told is as if it had not been.
            self.txn().rollback_statement(mark);
            inserter.counts = counts.clone();
            self.conditions.truncate(told.0);
            self.conditions_dropped = told.1;
            self.context.truncate_warnings(told.2);
        }
        Err(ErrorCode::LOCK_DEADLOCK.with(&[]))
    }

    /// Inserts rows in which there are no subqueries.
    fn insert_given(
        &mut self,
        inserter: &mut Inserter<'_>,
        rows: &[Vec<Expr>],
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        let bulk = rows.len() > BULK_ROWS && inserter.on_duplicate == OnDuplicate::Fail;
        let mut batches = bulk.then(|| Bulk::new(&inserter.table));
        for (at, row) in rows.iter().enumerate() {
            self.info.interrupt.check()?;
            let number = row_number(at, row, inserter)?;
            let given =
                row.iter().map(|expr| self.given(expr, inserter, text)).collect::<Result<_, SqlError>>()?;
            let Some(values) = self.complete(inserter, given, number)? else { continue };
            match &mut batches {
                Some(batches) => {
                    batches.push(self.txn(), &values)?;
                    inserter.note_inserted(&values);
                }
                None => self.insert_row(inserter, values)?,
            }
        }
        if let Some(batches) = batches {
            inserter.counts.rows = batches.finish(self.txn())?;
            inserter.counts.affected = inserter.counts.rows;
        }
        Ok(())
    }

    /// Whether a row meets what the view asks for, into which it goes; error 1369, or a warning under IGNORE.
    pub(super) fn meets_checks(
        &mut self,
        inserter: &mut Inserter<'_>,
        row: &[Value],
    ) -> Result<bool, SqlError> {
        if inserter.checks.is_empty() {
            return Ok(true);
        }
        let failed = self.with_run(inserter.params, |_, run, _| {
            let failed = first_failed(&inserter.checks, &row, run)?;
            Ok::<_, SqlError>(failed)
        })?;
        match failed {
            None => Ok(true),
            Some(error) if inserter.ignore => {
                // The engine of partitions refuses them, as it does a key that is there.
                if error.is(ErrorCode::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET) {
                    inserter.counts.rows += 1;
                    inserter.counts.duplicates += 1;
                }
                self.warn(Level::Warning, error.errno, error.message);
                inserter.give_number_back();
                Ok(false)
            }
            Some(error) => Err(error),
        }
    }

    /// The value of an expression in VALUES. Literals take no binding.
    fn given(&mut self, expr: &Expr, inserter: &Inserter<'_>, text: &Text<'_>) -> Result<Given, SqlError> {
        if let Some((value, ty)) = self.literal(expr) {
            return Ok(Given::Value(value, ty));
        }
        match &expr.kind {
            ExprKind::Default => return Ok(Given::Default),
            ExprKind::Param(index) => {
                let index = *index as usize;
                return Ok(Given::Value(text.params[index].clone().into_owned(), text.types[index]));
            }
            _ => {}
        }
        let view = self.view();
        let mut binder = TableBinder::new(text.source, &view, &text.types, &inserter.table.def, None);
        let bound = binder.expr(expr, Clause::Select)?;
        if !bound.columns().is_empty() {
            return Err(unsupported("columns in VALUES"));
        }
        let program = compile_over(&bound, &inserter.table.def)?;
        let value = program.eval_const(text.params, &self.context)?.into_owned();
        Ok(Given::Value(value, bound.ty))
    }

    /// The value of an expression with subqueries, which may read the table itself only under another name (error 1093): it
    /// then has the rows that the statement has inserted so far.
    pub(super) async fn given_by_query(
        &mut self,
        expr: &Expr,
        inserter: &Inserter<'_>,
        text: &Text<'_>,
    ) -> Result<Given, SqlError> {
        let (bound, tables) = self.bind_and_hold(&Query::select_of([expr.clone()]), text)?;
        let def = &inserter.table.def;
        if reads_directly(&bound.body, def, Some(&def.name)) {
            return Err(ErrorCode::UPDATE_TABLE_USED.with(&[&def.name]));
        }
        let mut rows = self.collected();
        self.run_bound(bound, tables, text, &mut rows, Purpose::Change).await?;
        let mut given = Given::Value(Datum::Null, SqlType::Null);
        rows.for_each(&mut |row| {
            given = row.into_iter().next().map_or(Given::Default, |(value, ty)| Given::Value(value, ty));
            Ok(())
        })?;
        Ok(given)
    }

    fn literal(&self, expr: &Expr) -> Option<(Value, SqlType)> {
        Some(match &expr.kind {
            ExprKind::Null => (Datum::Null, SqlType::Null),
            ExprKind::Bool(v) => (Datum::Int((*v).into()), SqlType::BIGINT),
            ExprKind::Integer(v) => match i64::try_from(*v) {
                Ok(v) => (Datum::Int(v), SqlType::BIGINT),
                Err(_) => (Datum::UInt(*v), SqlType::BIGINT_UNSIGNED),
            },
            ExprKind::Decimal(text) => decimal(text)?,
            ExprKind::Float(v) if v.is_finite() => (Datum::Double(*v), SqlType::DOUBLE),
            ExprKind::String { value, charset: None } => {
                let len = value.len() as u32;
                let ty = SqlType::VarChar { len, collation: self.settings.connection_collation };
                (Datum::Str(value.clone().into()), ty)
            }
            ExprKind::Unary { op: UnaryOp::Minus, expr } => match &expr.kind {
                ExprKind::Integer(v) => (Datum::Int(0_i64.checked_sub_unsigned(*v)?), SqlType::BIGINT),
                ExprKind::Decimal(text) => decimal(&format!("-{text}"))?,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// The whole row: values converted, defaults and generated values filled in. `None` for one that a CHECK constraint keeps
    /// out of an INSERT IGNORE.
    fn complete(
        &mut self,
        inserter: &mut Inserter<'_>,
        given: Vec<Given>,
        number: u64,
    ) -> Result<Option<Vec<Value>>, SqlError> {
        let table = inserter.table.clone();
        match rules_of(&table)? {
            None => {
                let row = self.complete_plain(inserter, given, number)?;
                Ok(self.meets_checks(inserter, &row)?.then_some(row))
            }
            Some(rules) => self.complete_by_rules(inserter, given, number, rules),
        }
    }

    fn complete_plain(
        &mut self,
        inserter: &mut Inserter<'_>,
        mut given: Vec<Given>,
        number: u64,
    ) -> Result<Vec<Value>, SqlError> {
        let table = inserter.table.clone();
        let mut row = Vec::with_capacity(table.def.columns.len());
        inserter.generated = None;
        let empty = given.is_empty();
        for (at, column) in table.def.columns.iter().enumerate() {
            let source = inserter.sources[at].filter(|_| !empty);
            let value = match source {
                Some(source) => std::mem::replace(&mut given[source], Given::Default),
                None => Given::Default,
            };
            row.push(self.value_for(inserter, at, column, value, number)?);
        }
        Ok(row)
    }

    /// What a column gets for what is given.
    fn value_for(
        &mut self,
        inserter: &mut Inserter<'_>,
        at: usize,
        column: &ColumnDef,
        given: Given,
        number: u64,
    ) -> Result<Value, SqlError> {
        match given {
            Given::Value(value, _) if inserter.auto == Some(at) && generates(&value, &inserter.storing) => {
                self.generate(inserter, at, number)
            }
            Given::Default if inserter.auto == Some(at) => self.generate(inserter, at, number),
            // Out of strict mode, too, one row alone is not given another value.
            Given::Value(Datum::Null, _)
                if !column.nullable && inserter.expected_rows == 1 && !inserter.ignore =>
            {
                Err(store_error(&StoreError::null_in(&column.ty), &column.name, number))
            }
            Given::Value(value, ty) => {
                let stored = self.store(value, &ty, column, &inserter.storing, number)?;
                if inserter.auto != Some(at) {
                    return Ok(stored);
                }
                // What has become 0 asks for a number, too.
                if generates(&stored, &inserter.storing) {
                    return self.generate(inserter, at, number);
                }
                self.note_auto_value(inserter, &stored);
                Ok(stored)
            }
            Given::Default => {
                let warns = number == 1 && !inserter.told_of_defaults;
                self.default_value(column, &inserter.storing, warns)
            }
        }
    }

    pub(super) fn generate(
        &mut self,
        inserter: &mut Inserter<'_>,
        column: usize,
        row: u64,
    ) -> Result<Value, SqlError> {
        let table = inserter.table.clone();
        let def = &table.def.columns[column];
        if let Some(number) = inserter.forced {
            inserter.forced = number.checked_add(inserter.storing.increment);
            let stored =
                self.store(Datum::UInt(number), &SqlType::BIGINT_UNSIGNED, def, &inserter.storing, row)?;
            inserter.generated = explicit_auto_value(&stored);
            inserter.generated.iter().for_each(|number| table.note_auto_increment(*number));
            return Ok(stored);
        }
        let mut next = inserter.next_number();
        if inserter.storing.increment == 1 {
            next = within_range(next, &def.ty, inserter.counts.first_generated == 0)?;
        } else if next == u64::MAX {
            // The end of all counters, and no number of the series.
            return Err(store_error(&StoreError::OutOfRange, &def.name, row));
        }
        inserter.generated = Some(next);
        self.store(Datum::UInt(next), &SqlType::BIGINT_UNSIGNED, def, &inserter.storing, row)
    }

    pub(super) fn note_auto_value(&self, inserter: &mut Inserter<'_>, value: &Value) {
        if let Some(used) = explicit_auto_value(value) {
            inserter.table.note_auto_increment(used);
            // Later numbers are greater than explicit ones: what was reserved below is not used.
            if used >= inserter.numbers.start {
                let end = inserter.numbers.end;
                inserter.numbers = used.saturating_add(1).min(end)..end;
            }
        }
    }
}

/// The columns that an INSERT names, or all.
pub(super) fn targets(table: &TableHandle, insert: &Insert) -> Result<Vec<usize>, SqlError> {
    let Some(names) = &insert.columns else {
        return Ok((0..table.def.columns.len()).filter(|at| !table.def.columns[*at].invisible).collect());
    };
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let column = column_of(table, name)?;
        if targets.contains(&column) {
            return Err(ErrorCode::FIELD_SPECIFIED_TWICE.with(&[&name.name]));
        }
        targets.push(column);
    }
    Ok(targets)
}

fn column_of(table: &TableHandle, name: &Ident) -> Result<usize, SqlError> {
    let column = table.def.column(&name.name);
    column.ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name.name, &"field list"]))
}

fn decimal(text: &str) -> Option<(Value, SqlType)> {
    let parsed = Decimal::parse_prefix(text.as_bytes());
    if parsed.status != ParseStatus::Exact {
        return None;
    }
    let value = parsed.value;
    let (precision, scale) = (value.digits().clamp(1, 65) as u8, value.scale());
    let precision = precision.max(scale).max(1);
    Some((Datum::Decimal(value), SqlType::Decimal { precision, scale, unsigned: false }))
}

/// Compiles an expression over a table's columns.
pub(crate) fn compile_over(
    expr: &avocet_types::expr::Expr,
    table: &TableDef,
) -> Result<RowProgram, SqlError> {
    let name =
        |column: usize| format!("`{}`.`{}`.`{}`", table.database, table.name, table.columns[column].name);
    Ok(RowProgram::compile_named(expr, &name)?)
}
