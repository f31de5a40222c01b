//! Prepared statements, by protocol and by PREPARE … FROM.

use std::sync::Arc;

use avocet_channel::{OutputColumn, ResultSink};
use avocet_point::Refusal;
use avocet_sql::parse::ast::Ident;
use avocet_sql::parse::statement::{PrepareSource, StatementKind};
use avocet_sql::parse::{on_stack_for, parse_of_client};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::{Datum, SqlType, Value};

use super::api::{Prepared, StatementId};
use super::counters::Counter;
use super::held::{Held, STATEMENT, TextSize};
use super::output::columns_of;
use super::prepared_statement::{CountedStatement, ParamsFrom, PreparedStatement, Resolved};
use super::run::{self, Outcome, Text};
use super::state::Session;

impl Session {
    fn parse_one(&mut self, sql: &str) -> Result<PreparedStatement, SqlError> {
        let mut held = Held::nothing(self.shared.engine.memory());
        let size = TextSize::of(sql);
        if let Some(size) = size {
            held.resize(size.parsed(), STATEMENT)?;
        }
        self.shared.counters.add(Counter::StatementsParsed);
        let mut statements =
            parse_of_client(sql.as_bytes(), self.settings.sql_mode, self.settings.client_charset)?;
        let statement = statements.swap_remove(0);
        if !statements.is_empty() {
            return Err(ErrorCode::PARSE_ERROR.with(&[&sql.chars().take(80).collect::<String>(), &1]));
        }
        match &statement.kind {
            StatementKind::Empty | StatementKind::Comment => return Err(ErrorCode::EMPTY_QUERY.with(&[])),
            StatementKind::Prepare { .. }
            | StatementKind::Execute { .. }
            | StatementKind::Deallocate(_)
            | StatementKind::Check { .. }
            | StatementKind::GetDiagnostics(_)
            | StatementKind::Help(_)
            | StatementKind::Begin { .. }
            | StatementKind::Savepoint(_)
            | StatementKind::RollbackTo(_)
            | StatementKind::ReleaseSavepoint(_)
            | StatementKind::LockTables(_)
            | StatementKind::UnlockTables
            | StatementKind::PurgeLogs(_)
            | StatementKind::LockInstance
            | StatementKind::UnlockInstance
            | StatementKind::Use(_)
            | StatementKind::LoadData(_) => {
                return Err(ErrorCode::UNSUPPORTED_PS.with(&[]));
            }
            StatementKind::Refused(error) => return Err((**error).clone()),
            _ if statement.reads_counts => return Err(ErrorCode::UNSUPPORTED_PS.with(&[])),
            _ => {}
        }
        self.deprecated.extend_from_slice(&statement.deprecated);
        self.warn_of_deprecated();
        self.deprecated.clear();
        let counted = CountedStatement::new(&self.shared)?;
        self.begin_hints(statement.hints.as_deref());
        let resolved = Resolved::of(&self.settings);
        self.end_hints();
        let (database, mode) = (self.database.as_deref(), self.settings.sql_mode);
        Ok(PreparedStatement::new(sql, (database, resolved), statement, counted, (size, held), mode))
    }

    pub(super) fn prepare_statement(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.begin_context();
        let statement = self.parse_one(sql)?;
        if statement.params > usize::from(u16::MAX) {
            return Err(ErrorCode::PS_MANY_PARAM.with(&[]));
        }
        let (params, columns) = on_stack_for(statement.height, || self.shape_of(&statement))?;
        let id = StatementId(self.next_statement);
        self.next_statement = self.next_statement.wrapping_add(1).max(1);
        self.prepared.insert(id, Arc::new(statement));
        Ok(Prepared { id, params, columns, warnings: self.conditions.len() as u16 })
    }

    /// The types of parameters and the columns of the result, as far as they are known before there are values.
    fn shape_of(
        &mut self,
        statement: &PreparedStatement,
    ) -> Result<(Vec<SqlType>, Arc<[OutputColumn]>), SqlError> {
        self.check_privileges(&statement.kind)?;
        let source = statement.source.as_bytes();
        let unknown = vec![SqlType::Null; statement.params];
        match &statement.kind {
            StatementKind::Query(query) => {
                let bound = self.bind_types(query, source, &unknown)?;
                let columns = columns_of(&bound).into();
                let mut params = bound.params;
                params.resize(statement.params, SqlType::Null);
                Ok((params, columns))
            }
            StatementKind::Show(_) | StatementKind::Describe { .. } => {
                let text = Text { source, params: &[], types: Vec::new(), using: &[], parsed_by: None };
                let mut shape = ColumnsOnly::default();
                match &statement.kind {
                    StatementKind::Describe { table, column } => {
                        self.describe(table, column.as_deref(), &text, &mut shape)?;
                    }
                    StatementKind::Show(show) => {
                        self.show(show, &text, &mut shape)?;
                    }
                    _ => unreachable!("one of the two above"),
                }
                Ok((unknown, shape.0.into()))
            }
            StatementKind::Insert(insert) => {
                self.check_insert(insert)?;
                let mut params = unknown;
                self.type_inserted_params(insert, &mut params);
                Ok((params, Arc::default()))
            }
            StatementKind::RefusedPartitions { table, error } => Err(self.refused_partitions(table, error)),
            StatementKind::Update(_) | StatementKind::Delete(_) => {
                // Names and types are resolved on the way to a plan, whether there is one or not.
                if let Err(Refusal::Error(error)) =
                    self.compile_point(&statement.kind, &statement.source, &unknown, &[])
                {
                    return Err(error);
                }
                let mut params = unknown;
                if let StatementKind::Update(update) = &statement.kind {
                    self.type_assigned_params(update, &mut params);
                }
                Ok((params, Arc::default()))
            }
            _ => Ok((unknown, Arc::default())),
        }
    }

    pub(super) fn prepare_named(
        &mut self,
        name: &Ident,
        source: &PrepareSource,
    ) -> Result<Outcome, SqlError> {
        let sql = match source {
            PrepareSource::Text(sql) => sql.clone(),
            PrepareSource::UserVariable(variable) => match self.user_variables.get(variable) {
                Some((Datum::Str(sql), _)) => sql.to_string(),
                _ => return Err(ErrorCode::PARSE_ERROR.with(&[&"NULL", &1])),
            },
        };
        let key = names::fold_unaccented(&name.name).into_owned();
        self.named.remove(&key);
        let statement = self.parse_one(&sql)?;
        on_stack_for(statement.height, || self.shape_of(&statement))?;
        self.named.insert(key, Arc::new(statement));
        Ok(Outcome::Done(super::run::Done { info: "Statement prepared".into(), ..Default::default() }))
    }

    pub(super) async fn execute_named(
        &mut self,
        name: &Ident,
        using: &[String],
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let statement = self.named.get(&*names::fold_unaccented(&name.name)).cloned();
        let statement =
            statement.ok_or_else(|| ErrorCode::UNKNOWN_STMT_HANDLER.with(&[&name.name, &"EXECUTE"]))?;
        if using.len() != statement.params {
            return Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"EXECUTE"]));
        }
        let value = |name: &String| self.user_variables.get(name).map_or(Datum::Null, |(value, _)| value);
        let mut params: Vec<Value> = using.iter().map(value).collect();
        statement.count_limits(&mut params, ParamsFrom::UserVariables)?;
        statement.read_numbers(&mut params, self.settings.dialect);
        self.begin_hints(statement.hints.as_deref());
        self.enter_prepared(&statement);
        let result = self.run_named(&statement, using, &params, sink).await;
        self.leave_prepared();
        self.end_hints();
        result
    }

    async fn run_named(
        &mut self,
        statement: &PreparedStatement,
        using: &[String],
        params: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        if let Some(candidate) = statement.candidate(params).filter(|_| self.takes_point_path())
            && let Some((hash, plan)) = self
                .take_plan(&candidate)
                .or_else(|| self.compile_plan(&candidate, &statement.kind, &statement.deprecated))
        {
            let result = self.try_plan(&plan, params, sink).await;
            self.give_plan(hash, plan);
            if let Some(outcome) = result? {
                return Ok(outcome);
            }
        }
        let text = Text::new(statement.source.as_bytes(), params, self.settings.connection_collation);
        let text = Text { using, parsed_by: Some(statement.parsed_by), ..text };
        self.assigns = statement.assigns;
        // EXECUTE stands there in its own text, and this one is all of another.
        let outer = self.part_of_text.take();
        let run = self.dispatch(&statement.kind, &text, sink);
        let result = Box::pin(run::on_stack_for(statement.height, run)).await;
        self.part_of_text = outer;
        self.assigns = false;
        result
    }

    pub(super) fn deallocate(&mut self, name: &Ident) -> Result<Outcome, SqlError> {
        match self.named.remove(&*names::fold_unaccented(&name.name)) {
            Some(_) => Ok(Outcome::ok()),
            None => Err(ErrorCode::UNKNOWN_STMT_HANDLER.with(&[&name.name, &"DEALLOCATE PREPARE"])),
        }
    }
}

/// Keeps the columns that a statement announces.
#[derive(Default)]
struct ColumnsOnly(Vec<OutputColumn>);

impl ResultSink for ColumnsOnly {
    fn columns(
        &mut self,
        columns: &[OutputColumn],
        _zone: avocet_types::temporal::TimeZone,
    ) -> Result<(), avocet_channel::SinkError> {
        self.0 = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, _row: &[Datum<'_>]) -> Result<(), avocet_channel::SinkError> {
        Ok(())
    }

    fn batch(
        &mut self,
        batch: &arrow::record_batch::RecordBatch,
        _from: usize,
    ) -> Result<usize, avocet_channel::SinkError> {
        Ok(batch.num_rows())
    }

    fn end(&mut self, _status: avocet_channel::Status) -> Result<(), avocet_channel::SinkError> {
        Ok(())
    }

    fn ok(&mut self, _ok: &avocet_channel::OkReply<'_>) -> Result<(), avocet_channel::SinkError> {
        Ok(())
    }
}
