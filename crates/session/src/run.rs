//! Running statements: from a text to calls of the sink.

use avocet_channel::blocking::{TEXT_IN_PLACE, blocking_if};
use avocet_channel::{Cancellation, Interruption, OkReply, OutputColumn, ResultSink, SessionChange, Status};
use avocet_point as point;
use avocet_sql::bind::unsupported;
use avocet_sql::facts::StatementFacts;
use avocet_sql::parse::digest::Digest;
use avocet_sql::parse::statement::{ShowKind, Statement, StatementKind};
use avocet_sql::parse::{self, ast, is_tall, parse, parse_up_to_error};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Host, SqlMode};
use avocet_types::{Collation, Datum, SqlType};

use super::api::{DumpFrom, Dumping, Prepared, Replica, Routing, SqlSession, StatementId, Timeouts};
use super::candidate::Candidate;
use super::counters::Counter;
use super::held::{Held, STATEMENT, TextSize};
use super::output::table_column;
use super::plan_cache::CachedPlan;
use super::prepared_statement::{ParamsFrom, PreparedStatement};
use super::state::{Characteristics, Level, Session};
use super::variables::VARIABLES;

/// A statement's source text, and the values of its parameters with the types that they came in.
pub(super) struct Text<'t> {
    pub source: &'t [u8],
    pub params: &'t [Datum<'t>],
    pub types: Vec<SqlType>,
    /// The user variables that EXECUTE took the parameters from.
    pub using: &'t [String],
    /// The modes that a prepared one was parsed by.
    pub parsed_by: Option<SqlMode>,
}

/// What a statement came to. Result sets were sent but for their end.
pub(super) enum Outcome {
    /// With the number of rows.
    Rows(u64),
    Done(Done),
}

/// What an OK packet tells.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    /// What a client is told where none was generated: the AUTO_INCREMENT value of the last row.
    pub last_number: u64,
    /// Whether a client is told what LAST_INSERT_ID(n) chose: after INSERT, REPLACE, UPDATE and CREATE TABLE … SELECT.
    pub tells_chosen: bool,
    pub info: String,
    /// The default database changed.
    pub database_changed: bool,
}

impl Outcome {
    pub fn ok() -> Self {
        Self::Done(Done::default())
    }
}

impl<'t> Text<'t> {
    pub fn new(source: &'t [u8], params: &'t [Datum<'t>], collation: Collation) -> Self {
        let types = params.iter().map(|value| value.natural_type(collation)).collect();
        Self { source, params, types, using: &[], parsed_by: None }
    }
}

impl SqlSession for Session {
    fn register_replica(&mut self, replica: Replica) -> Result<(), SqlError> {
        self.note_replica(replica)
    }

    fn begin_dump(&mut self, from: DumpFrom) -> Result<Dumping, SqlError> {
        self.begin_dumping(from)
    }

    async fn execute(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        self.recover_dropped();
        self.more_results = false;
        // The statement's memory is lent to it, so that nothing need be allocated.
        let mut digest = std::mem::take(&mut self.point_memory.digest);
        let mut values = point::recycle(std::mem::take(&mut self.point_memory.values));
        let result = self.execute_text(sql, &mut digest, &mut values, sink).await;
        self.point_memory.digest = digest;
        self.point_memory.values = point::recycle(values);
        result
    }

    async fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.recover_dropped();
        if !asks_for_conditions(sql, self.settings.sql_mode) {
            self.clear_conditions();
        }
        self.prepare_statement(sql).map_err(|error| self.failed(error))
    }

    async fn execute_prepared(
        &mut self,
        id: StatementId,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.recover_dropped();
        let Some(statement) = self.prepared.get(&id).cloned() else {
            let unknown = ErrorCode::UNKNOWN_STMT_HANDLER.with(&[&id.0, &"mysqld_stmt_execute"]);
            return Err(self.failed(unknown));
        };
        if params.len() != statement.params {
            return Err(self.failed(ErrorCode::WRONG_ARGUMENTS.with(&[&"mysqld_stmt_execute"])));
        }
        self.more_results = false;
        if !statement.reads_values() {
            return self.run_prepared(&statement, params, sink).await;
        }
        let mut params = params.to_vec();
        if let Err(error) = statement.count_limits(&mut params, ParamsFrom::Client) {
            self.clear_conditions();
            return Err(self.failed(error));
        }
        statement.read_numbers(&mut params, self.settings.dialect);
        self.run_prepared(&statement, &params, sink).await
    }

    fn close_prepared(&mut self, id: StatementId) {
        self.prepared.remove(&id);
    }

    fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        self.recover_dropped();
        self.clear_conditions();
        self.change_database(name).map_err(|error| self.failed(error))
    }

    fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    fn table_columns(&mut self, table: &str) -> Result<Vec<OutputColumn>, SqlError> {
        let database = self.current_database()?.to_owned();
        self.check_may_see(&database, table)?;
        let def = self.shown_relation(&database, table)?;
        let sees = |at: &usize| self.seen().sees_column(&database, table, &def.columns[*at].name);
        Ok((0..def.own_columns().len()).filter(sees).map(|at| table_column(&def, at, table)).collect())
    }

    fn kill_connection(&mut self, connection_id: u32) -> Result<(), SqlError> {
        self.recover_dropped();
        self.clear_conditions();
        self.begin_context();
        self.check_needs_of_plan(&[]).map_err(|error| self.failed(error))?;
        self.kill_by_id(connection_id, Interruption::Connection).map_err(|error| self.failed(error))
    }

    async fn reset(&mut self) {
        self.rollback();
        self.drop_temporary_tables();
        self.locked = None;
        self.backup = None;
        self.host.0.release_all_locks();
        self.in_flight = false;
        self.prepared.clear();
        self.named.clear();
        self.user_variables.clear();
        self.clear_conditions();
        self.last_insert_id = 0;
        self.row_count = 0;
        self.found_rows = 0;
        self.next = Characteristics::default();
        self.begin_variables();
        self.begin_roles();
    }

    fn recover(&mut self) {
        self.recover_dropped();
    }

    fn set_multi_statements(&mut self, allowed: bool) {
        self.info.multi_statements = allowed;
    }

    fn timeouts(&self) -> Timeouts {
        self.settings.timeouts
    }

    fn max_allowed_packet(&self) -> usize {
        usize::try_from(self.settings.max_allowed_packet).unwrap_or(usize::MAX)
    }

    fn sql_mode(&self) -> SqlMode {
        self.settings.sql_mode
    }

    fn routing(&self) -> Routing {
        self.settings.routing
    }

    fn status(&self) -> Status {
        self.status_now()
    }
}

/// 1064 at the beginning of a statement that must not be there.
fn syntax_error(source: &[u8], statement: &Statement) -> SqlError {
    let near = ast::Span { start: statement.span.start, end: source.len() as u32 };
    let line = source[..statement.span.start as usize].iter().filter(|b| **b == b'\n').count() + 1;
    ErrorCode::PARSE_ERROR.with(&[&near.text(source).chars().take(80).collect::<String>(), &line])
}

/// Polls what walks trees of a statement of such a height, on a stack that has room for them. Plans of tall statements are not
/// kept: whoever runs one would need that stack, too.
pub(super) async fn on_stack_for<F: Future>(height: u32, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| parse::on_stack_for(height, || future.as_mut().poll(context))).await
}

/// Whether a text to be prepared is SHOW WARNINGS or one of its kind.
fn asks_for_conditions(sql: &str, mode: SqlMode) -> bool {
    let begins = sql.trim_start().as_bytes().get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"SHOW"));
    begins && parse(sql.as_bytes(), mode).is_ok_and(|all| all.iter().any(|s| is_about_conditions(&s.kind)))
}

/// Statements that tell of the last one's conditions, and so must not clear them.
fn is_about_conditions(kind: &StatementKind) -> bool {
    match kind {
        StatementKind::GetDiagnostics(_) => true,
        StatementKind::Show(show) => matches!(
            show.kind,
            ShowKind::Warnings { .. }
                | ShowKind::Errors { .. }
                | ShowKind::CountWarnings
                | ShowKind::CountErrors
        ),
        _ => false,
    }
}

impl Session {
    /// Notes an error for SHOW WARNINGS.
    pub(super) fn failed(&mut self, error: SqlError) -> SqlError {
        // A thread of analytics may still wait for a lock on its behalf.
        self.host.0.call_off();
        self.row_count = -1;
        self.warn(Level::Error, error.errno, error.message.clone());
        error
    }

    /// One statement, from its beginning to the last call of the sink. See [`restart`](super::restart) for those that
    /// begin more than once.
    pub(super) async fn run_once(
        &mut self,
        kind: &StatementKind,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if !is_about_conditions(kind) {
            self.begin_conditions();
        }
        self.begin_context();
        self.shared.counters.add(Counter::Questions);
        self.shared.commands.add(kind);
        self.in_flight = true;
        let (found_rows, row_count) = (self.found_rows, self.row_count);
        let result = self.dispatch(kind, text, sink).await;
        self.in_flight = false;
        let result = self.keep_assigned(result);
        self.collect_warnings();
        match result {
            // The conditions that it tells of are not its own, and FOUND_ROWS() goes on telling of the statement before.
            Ok(Outcome::Rows(_)) if is_about_conditions(kind) => {
                self.row_count = -1;
                sink.end(Status { warnings: 0, ..self.status_now() })?;
                Ok(())
            }
            Ok(outcome) if is_about_conditions(kind) => {
                self.finish(outcome, sink)?;
                (self.found_rows, self.row_count) = (found_rows, row_count);
                Ok(())
            }
            Ok(outcome) => self.finish(outcome, sink),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Runs a text: on a plan that is kept for it, or parsed anew.
    async fn execute_text<'s>(
        &mut self,
        sql: &'s str,
        digest: &mut Digest,
        values: &mut Vec<Datum<'s>>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let mode = self.settings.sql_mode;
        let size = TextSize::of(sql);
        let mut held = size.map(|_| Held::nothing(self.shared.engine.memory()));
        if let (Some(size), Some(held)) = (size, &mut held) {
            held.resize(size.parsed(), STATEMENT).map_err(|error| self.failed(error))?;
        }
        let mut candidate = None;
        if self.takes_point_path() && digest.read(sql.as_bytes(), mode) {
            values.extend(digest.slots.iter().map_while(|slot| slot.value(sql, mode)));
            let (text, slots) = (&digest.text, &digest.slots);
            // A `?` is an error that the parser reports.
            candidate = (values.len() == slots.len()).then_some(Candidate {
                digest: text,
                slots,
                limits: &digest.limits,
                source: sql,
                parsed_by: mode.of(SqlMode::PARSING),
                values,
                params: false,
            });
        }
        let mut known = digest.hinted;
        if let Some(candidate) = &candidate
            && !known
            && let Some((hash, plan)) = self.take_plan(candidate)
        {
            known = true;
            let result = self.run_plan_of_text(&plan, sql, candidate.values, sink).await;
            self.give_plan(hash, plan);
            if result? {
                return Ok(());
            }
        }
        let (is_long, client) = (sql.len() > TEXT_IN_PLACE, self.settings.client_charset);
        self.shared.counters.add(Counter::StatementsParsed);
        let statements = match blocking_if(is_long, || parse_up_to_error(sql.as_bytes(), mode, client)) {
            Ok(statements) => statements,
            Err(error) => {
                self.clear_conditions();
                return Err(self.failed(error.into()));
            }
        };
        if let (Some(size), Some(held)) = (size, &mut held) {
            let planned = statements.iter().map(|statement| size.planned(&statement.kind)).max();
            let planned = planned.unwrap_or_default();
            held.resize(planned, STATEMENT).map_err(|error| self.failed(error))?;
        }
        let height = statements.iter().map(|statement| statement.height).max().unwrap_or_default();
        if height > 0 && is_tall(height) {
            let result = Box::pin(on_stack_for(height, self.run_statements(sql, &statements, sink))).await;
            blocking_if(is_long, || parse::on_stack_for(height, || drop((statements, held))));
            return result;
        }
        if let [statement] = &*statements
            && statement.hints.is_some()
        {
            return Box::pin(self.execute_hinted(sql, statement, candidate, sink)).await;
        }
        if let ([statement], Some(candidate), false) = (&*statements, candidate, known)
            && let Some((hash, plan)) = self.compile_plan(&candidate, &statement.kind, &statement.deprecated)
        {
            let result = self.run_plan_of_text(&plan, sql, candidate.values, sink).await;
            self.give_plan(hash, plan);
            if result? {
                return Ok(());
            }
        }
        // In a box, so that the future of a statement that has a plan stays small.
        let result = Box::pin(self.run_statements(sql, &statements, sink)).await;
        blocking_if(is_long, || drop((statements, held)));
        result
    }

    /// As `run_plan`, for a text that was not prepared before.
    async fn run_plan_of_text(
        &mut self,
        plan: &CachedPlan,
        sql: &str,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<bool, SqlError> {
        if plan.deprecated.is_empty() {
            return self.run_plan(plan, sql, params, sink).await;
        }
        self.deprecated.extend_from_slice(&plan.deprecated);
        let result = self.run_plan(plan, sql, params, sink).await;
        self.deprecated.clear();
        result
    }

    /// Runs one statement that has optimizer hints.
    async fn execute_hinted(
        &mut self,
        sql: &str,
        statement: &Statement,
        candidate: Option<Candidate<'_>>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.begin_hints(statement.hints.as_deref());
        if let Some(candidate) = candidate.filter(|_| self.takes_point_path())
            && let Some((hash, plan)) = self
                .take_plan(&candidate)
                .or_else(|| self.compile_plan(&candidate, &statement.kind, &statement.deprecated))
        {
            let result = self.run_plan_of_text(&plan, sql, candidate.values, sink).await;
            self.give_plan(hash, plan);
            match result {
                Ok(false) => {}
                other => {
                    self.end_hints();
                    return other.map(drop);
                }
            }
        }
        self.run_statements(sql, std::slice::from_ref(statement), sink).await
    }

    /// Runs parsed statements one after the other, until one fails.
    async fn run_statements(
        &mut self,
        sql: &str,
        statements: &[Statement],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if let [_, second, ..] = statements
            && !self.info.multi_statements
        {
            let error = syntax_error(sql.as_bytes(), second);
            return Err(self.failed(error));
        }
        let text =
            Text { source: sql.as_bytes(), params: &[], types: Vec::new(), using: &[], parsed_by: None };
        let last = statements.len() - 1;
        let mode = self.settings.sql_mode;
        for (at, statement) in statements.iter().enumerate() {
            self.more_results = at < last;
            if sink.wants_flush() {
                // What the statements before have answered, however little each.
                let interrupt = self.info.interrupt.clone();
                Cancellation::after(&interrupt, None).flush(sink).await?;
            }
            if statement.params > 0 {
                self.more_results = false;
                return Err(self.failed(ErrorCode::PARSE_ERROR.with(&[&"?", &1])));
            }
            if self.hinted.is_none() {
                self.begin_hints(statement.hints.as_deref());
            }
            let is_part = last > 0 && self.hinted.is_none() && self.settings.sql_mode == mode;
            if is_part {
                match self.run_part(&statement.span.text(sql.as_bytes()), sink).await {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(error) => {
                        self.more_results = false;
                        return Err(error);
                    }
                }
            }
            self.assigns = statement.assigns;
            self.deprecated.extend_from_slice(&statement.deprecated);
            self.part_of_text = Some(statement.span);
            let result = self.run(&statement.kind, &text, sink).await;
            self.assigns = false;
            self.deprecated.clear();
            self.end_hints();
            if result.is_err() {
                self.more_results = false;
            }
            result?;
        }
        Ok(())
    }

    /// Runs one of several statements on its plan, which is that of a text of its own; false if another path is to take it, and nothing
    /// happened yet.
    async fn run_part(&mut self, part: &str, sink: &mut dyn ResultSink) -> Result<bool, SqlError> {
        let mode = self.settings.sql_mode;
        let mut digest = Digest::default();
        if !self.takes_point_path() || !digest.read(part.as_bytes(), mode) || digest.hinted {
            return Ok(false);
        }
        let values: Vec<Datum<'_>> = digest.slots.iter().map_while(|slot| slot.value(part, mode)).collect();
        if values.len() != digest.slots.len() {
            return Ok(false);
        }
        let candidate = Candidate {
            digest: &digest.text,
            slots: &digest.slots,
            limits: &digest.limits,
            source: part,
            parsed_by: mode.of(SqlMode::PARSING),
            values: &values,
            params: false,
        };
        let plan = self.take_plan(&candidate).or_else(|| {
            let client = self.settings.client_charset;
            // Its slots are places in its own text.
            let statements = parse_up_to_error(part.as_bytes(), mode, client).ok()?;
            let [statement] = &*statements else { return None };
            match statement.params > 0 || is_tall(statement.height) {
                true => None,
                false => self.compile_plan(&candidate, &statement.kind, &statement.deprecated),
            }
        });
        let Some((hash, plan)) = plan else { return Ok(false) };
        self.part_of_text = None;
        let result = self.run_plan_of_text(&plan, part, &values, sink).await;
        self.give_plan(hash, plan);
        result
    }

    /// Runs a prepared statement, on the point path if it has a plan.
    async fn run_prepared(
        &mut self,
        statement: &PreparedStatement,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let mut held = None;
        if let Some(size) = statement.size {
            let planned = size.planned(&statement.kind).saturating_sub(size.parsed());
            let held = held.insert(Held::nothing(self.shared.engine.memory()));
            held.resize(planned, STATEMENT).map_err(|error| self.failed(error))?;
        }
        self.part_of_text = None;
        self.begin_hints(statement.hints.as_deref());
        self.enter_prepared(statement);
        let result = match self.run_prepared_plan(statement, params, sink).await {
            Ok(false) => {
                let text = Text::new(statement.source.as_bytes(), params, self.settings.connection_collation);
                let text = Text { parsed_by: Some(statement.parsed_by), ..text };
                self.assigns = statement.assigns;
                // As above.
                let run = self.run(&statement.kind, &text, sink);
                let result = Box::pin(on_stack_for(statement.height, run)).await;
                self.assigns = false;
                result
            }
            other => other.map(drop),
        };
        self.leave_prepared();
        self.end_hints();
        result
    }

    /// False if another path is to take the statement, and nothing happened yet.
    async fn run_prepared_plan(
        &mut self,
        statement: &PreparedStatement,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<bool, SqlError> {
        let Some(candidate) = statement.candidate(params).filter(|_| self.takes_point_path()) else {
            return Ok(false);
        };
        let kept = self
            .take_plan(&candidate)
            .or_else(|| self.compile_plan(&candidate, &statement.kind, &statement.deprecated));
        let Some((hash, plan)) = kept else { return Ok(false) };
        let result = self.run_plan(&plan, &statement.source, params, sink).await;
        self.give_plan(hash, plan);
        result
    }

    pub(super) fn finish(&mut self, outcome: Outcome, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let chosen = self.context.take_insert_id();
        if let Some(id) = chosen {
            self.last_insert_id = id;
        }
        match outcome {
            Outcome::Rows(rows) => {
                self.row_count = -1;
                self.found_rows = rows;
                sink.end(self.status_now())?;
            }
            Outcome::Done(done) => {
                let chosen = chosen.filter(|_| done.tells_chosen);
                self.row_count = done.affected_rows as i64;
                if done.last_insert_id > 0 {
                    self.last_insert_id = done.last_insert_id;
                }
                let changed = std::mem::take(&mut self.changed_variables);
                let shown: Vec<String> = changed.iter().map(|at| self.shown_variable(*at)).collect();
                let variables = changed
                    .iter()
                    .zip(&shown)
                    .map(|(at, value)| SessionChange::Variable { name: VARIABLES[*at].name, value });
                let database = self.database.as_deref().unwrap_or_default();
                let database = (done.database_changed && self.settings.track_schema)
                    .then_some(SessionChange::Database(database));
                let changes: Vec<SessionChange<'_>> = database.into_iter().chain(variables).collect();
                sink.ok(&OkReply {
                    affected_rows: done.affected_rows,
                    last_insert_id: if done.last_insert_id > 0 {
                        done.last_insert_id
                    } else {
                        chosen.unwrap_or(done.last_number)
                    },
                    info: &done.info,
                    status: self.status_now(),
                    changes: &changes,
                })?;
            }
        }
        Ok(())
    }

    pub(super) async fn dispatch(
        &mut self,
        kind: &StatementKind,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        if !commits_implicitly(kind) {
            return self.dispatch_one(kind, text, sink).await;
        }
        self.commit().await?;
        self.next = Characteristics::default();
        // FLUSH changes nothing that is stored, and whoever stops a replica changes none of its rows.
        let changes_nothing = matches!(
            kind,
            StatementKind::ChangeSource(_)
                | StatementKind::StartReplica { .. }
                | StatementKind::PromoteReplica(_)
                | StatementKind::StopReplica { .. }
                | StatementKind::ResetReplica { .. }
                | StatementKind::Flush(_)
                | StatementKind::ResetLogs { .. }
                | StatementKind::FlushWithReadLock(_)
                | StatementKind::LockTables(_)
                | StatementKind::Check { .. }
        );
        if !changes_nothing {
            match self.is_of_temporary(kind, &StatementFacts::of_kind(kind)) {
                true => self.check_transaction_writes()?,
                false => self.check_not_read_only()?,
            }
        }
        let result = self.dispatch_one(kind, text, sink).await;
        // Whatever autocommit is, no transaction is left; what failed was taken back before.
        self.commit().await?;
        result
    }

    async fn dispatch_one(
        &mut self,
        kind: &StatementKind,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        use StatementKind as S;
        self.check_privileges(kind)?;
        self.check_table_locks(kind)?;
        match kind {
            S::Insert(_) | S::LoadData(_) | S::Update(_) | S::Delete(_)
                if !self.changes_temporary_alone(kind) =>
            {
                self.check_not_read_only()?;
            }
            _ if defines_temporary(kind) => self.check_transaction_writes()?,
            _ => {}
        }
        match kind {
            S::Query(query) | S::SelectInto { query, .. } => self.begin_time(true, query.is_one_row()),
            S::Explain { statement, analyze: true, .. } => {
                self.begin_time(matches!(statement.kind, S::Query(_)), false);
            }
            _ => self.begin_time(false, false),
        }
        match kind {
            S::Empty => Err(ErrorCode::EMPTY_QUERY.with(&[])),
            S::Comment => Ok(Outcome::ok()),
            S::Query(query) => self.query(query, text, sink).await,
            S::SelectInto { query, into } => Box::pin(self.select_into(query, into, text)).await,
            S::Insert(insert) => self.insert(insert, text).await,
            S::LoadData(load) => Box::pin(self.load_data(load, text, sink)).await,
            S::Update(update) => self.update(update, text).await,
            S::Delete(delete) => self.delete(delete, text).await,
            S::Begin { read_only, consistent_snapshot } => {
                self.begin(*read_only, *consistent_snapshot).await?;
                Ok(Outcome::ok())
            }
            S::Commit(completion) => self.end_transaction(true, *completion).await,
            S::Rollback(completion) => self.end_transaction(false, *completion).await,
            S::Set(items) => self.set(items, text).await,
            S::Use(name) => {
                self.change_database(&name.name)?;
                Ok(Outcome::Done(Done { database_changed: true, ..Done::default() }))
            }
            S::Show(show) => match &show.kind {
                ShowKind::LogEvents(asked) => Box::pin(self.show_log_events(asked, text, sink)).await,
                _ => self.show(show, text, sink),
            },
            S::Describe { table, column } => self.describe(table, column.as_deref(), text, sink),
            S::Explain { statement, analyze, format } => {
                self.explain(statement, *analyze, format.as_deref(), text, sink).await
            }
            S::Do(exprs) => self.evaluate_only(exprs, text).await,
            S::Call { name, arguments } => Box::pin(self.call(name, arguments, text, sink)).await,
            S::Kill { connection, query_only } => self.kill(connection, *query_only, text),
            S::Prepare { name, source } => self.prepare_named(name, source),
            S::Execute { name, using } => Box::pin(self.execute_named(name, using, sink)).await,
            S::Deallocate(name) => self.deallocate(name),
            S::Flush(what) => self.flush(what),
            S::ResetLogs { first } => self.reset_logs(*first),
            S::PurgeLogs(purge) => self.purge_logs(purge, text),
            S::ResetPersist { name, if_exists } => self.reset_persist(name.as_deref(), *if_exists),
            S::LockTables(tables) => self.lock_tables(tables),
            S::UnlockTables => self.unlock_tables().await,
            S::LockInstance => self.lock_instance(),
            S::UnlockInstance => Ok(self.unlock_instance()),
            S::GetDiagnostics(asked) => self.get_diagnostics(asked, text),
            S::Help(_) => self.help(sink),
            S::FlushWithReadLock(tables) => self.flush_with_read_lock(tables),
            S::Savepoint(name) => self.savepoint(&name.name),
            S::RollbackTo(name) => self.rollback_to(&name.name),
            S::ReleaseSavepoint(name) => self.release_savepoint(&name.name),
            S::Analyze(tables) => self.maintain("analyze", tables, sink),
            S::Check { tables, for_upgrade } => self.check_tables(tables, *for_upgrade, sink).await,
            S::Checksum { tables, quick } => self.checksum_tables(tables, *quick, sink).await,
            S::Optimize(tables) => self.maintain("optimize", tables, sink),
            S::Repair(tables) => self.maintain("repair", tables, sink),
            S::ChangeSource(options) => self.change_source(options),
            S::StartReplica { channel } => self.start_replica(channel.as_deref()),
            S::StopReplica { channel } => self.stop_replica(channel.as_deref()),
            S::PromoteReplica(options) => Box::pin(self.promote_replica(options, sink)).await,
            S::ResetReplica { all, channel, first_log } => {
                if let Some(first) = first_log {
                    self.reset_logs(*first)?;
                }
                self.reset_replica(*all, channel.as_deref())
            }
            S::CheckReplication { tables, repairs } => self.check_replication(tables, *repairs, sink),
            S::Unsupported(words) => Err(unsupported(words)),
            S::Refused(error) => Err((**error).clone()),
            S::RefusedPartitions { table, error } => Err(self.refused_partitions(table, error)),
            S::CreateUser { .. }
            | S::AlterUser { .. }
            | S::DropUser { .. }
            | S::SetPassword { .. }
            | S::CreateRole { .. }
            | S::DropRole { .. }
            | S::RenameUser(_)
            | S::SetDefaultRole { .. }
            | S::GrantRoles { .. }
            | S::RevokeRoles { .. }
            | S::SetRole(_)
            | S::Grant { .. }
            | S::Revoke { .. }
            | S::RevokeAll { .. } => {
                let _entered = self.enter_definitions()?;
                let mut logged = self.begin_logged(kind, text);
                logged.run(|| self.account_statement(kind))
            }
            _ if defines_temporary(kind) => self.ddl(kind, text).await,
            _ => {
                let _entered = self.enter_definitions()?;
                let logged = self.begin_logged(kind, text);
                let outcome = logged.follow(self.ddl(kind, text)).await?;
                self.follow_definitions(kind);
                Ok(outcome)
            }
        }
    }
}

/// Statements of temporary tables alone, by their text.
fn defines_temporary(kind: &StatementKind) -> bool {
    match kind {
        StatementKind::CreateTable(create) => create.temporary,
        StatementKind::CreateTableLike { temporary, .. } | StatementKind::DropTable { temporary, .. } => {
            *temporary
        }
        _ => false,
    }
}

/// MySQL Reference Manual, 15.3.3 "Statements That Cause an Implicit Commit". BEGIN does it itself.
fn commits_implicitly(kind: &StatementKind) -> bool {
    use StatementKind as S;
    if defines_temporary(kind) {
        return false;
    }
    matches!(
        kind,
        S::CreateTable(_)
            | S::CreateTableLike { .. }
            | S::DropTable { .. }
            | S::CreateView(_)
            | S::DropView { .. }
            | S::AlterTable { .. }
            | S::RenameTable(_)
            | S::TruncateTable(_)
            | S::CreateIndex { .. }
            | S::DropIndex { .. }
            | S::CreateDatabase { .. }
            | S::AlterDatabase { .. }
            | S::DropDatabase { .. }
            | S::CreateUser { .. }
            | S::AlterUser { .. }
            | S::DropUser { .. }
            | S::SetPassword { .. }
            | S::CreateRole { .. }
            | S::DropRole { .. }
            | S::RenameUser(_)
            | S::SetDefaultRole { .. }
            | S::GrantRoles { .. }
            | S::RevokeRoles { .. }
            | S::Grant { .. }
            | S::Revoke { .. }
            | S::RevokeAll { .. }
            | S::LockTables(_)
            | S::FlushWithReadLock(_)
            | S::Analyze(_)
            | S::Check { .. }
            | S::Optimize(_)
            | S::Repair(_)
            | S::Flush(_)
            | S::ResetLogs { .. }
            | S::ChangeSource(_)
            | S::StartReplica { .. }
            | S::PromoteReplica(_)
            | S::StopReplica { .. }
            | S::ResetReplica { .. }
    )
}
