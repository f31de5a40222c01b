//! CALL: native procedures, on the thread of the session.
//!
//! A call outside a transaction is a transaction of its own, which sees what is logged; its reply is kept until that is
//! durable. Inside one it is a part of it: the client commits it, or a failed call is rolled back alone.

use avocet_channel::{Cancellation, OutputColumn, ResultSink, Status};
use avocet_engine::{Parameter, ParameterMode, Procedure, Reply, ResultSet};
use avocet_sql::parse::ast::{Expr, ExprKind, ObjectName};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Datum, SqlType, Value};

use super::run::{Done, Outcome, Text};
use super::state::Session;

impl Session {
    pub(super) async fn call(
        &mut self,
        name: &ObjectName,
        arguments: &[Expr],
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let database = match &name.database {
            Some(database) => database.name.clone(),
            None => self.current_database()?.to_owned(),
        };
        let procedure = self.shared.engine.procedure(&database, &name.name.name)?.clone();
        let (expected, got) = (procedure.parameters().len(), arguments.len());
        if expected != got {
            let name = procedure.full_name();
            return Err(ErrorCode::SP_WRONG_NO_OF_ARGS.with(&[&"PROCEDURE", &name, &expected, &got]));
        }
        let mut values = Vec::with_capacity(got);
        for (at, (parameter, argument)) in procedure.parameters().iter().zip(arguments).enumerate() {
            let is_place = matches!(argument.kind, ExprKind::UserVariable { .. } | ExprKind::Param(_));
            if parameter.mode != ParameterMode::In && !is_place {
                return Err(ErrorCode::SP_NOT_VAR_ARG.with(&[&(at + 1), &procedure.full_name()]));
            }
            values.push(self.argument(parameter, argument, text).await?);
        }
        let mut reply = Reply::default();
        self.run_procedure(&procedure, &values, &mut reply).await?;
        let out = self.keep_out(&procedure, arguments, &reply, text.using)?;
        self.send_results(&reply.result_sets, sink).await?;
        self.send_out(&out, sink)?;
        Ok(Outcome::Done(Done { affected_rows: reply.affected_rows, ..Done::default() }))
    }

    /// The value of an argument, converted to its parameter's type as for a column.
    async fn argument(
        &mut self,
        parameter: &Parameter,
        argument: &Expr,
        text: &Text<'_>,
    ) -> Result<Value, SqlError> {
        let (value, from) = match &argument.kind {
            _ if parameter.mode == ParameterMode::Out => return Ok(Datum::Null),
            ExprKind::Param(n) => {
                let n = *n as usize;
                (text.params[n].clone().into_owned(), text.types[n])
            }
            ExprKind::Integer(v) if i64::try_from(*v).is_ok() => (Datum::Int(*v as i64), SqlType::BIGINT),
            _ => self.value_of(argument, text).await?,
        };
        let storing = self.storing(false);
        self.store(value, &from, &parameter.column, &storing, 1)
    }

    async fn run_procedure(
        &mut self,
        procedure: &Procedure,
        arguments: &[Value],
        reply: &mut Reply,
    ) -> Result<(), SqlError> {
        let is_own = !self.in_transaction();
        // One that begins anew on another snapshot goes on in its transaction.
        let mark = match is_own && self.txn.is_none() {
            true => {
                let options = self.next_options(None);
                self.begin_with(|engine| engine.begin_call(procedure, arguments, options));
                self.txn().mark()
            }
            false => self.begin_statement()?,
        };
        let result = procedure.run(self.txn(), arguments, reply).map_err(SqlError::from);
        let failed = result.is_err();
        let ended = self.end_statement(mark, result).await;
        if is_own && failed {
            // What the error tells of may not be durable yet.
            self.shared.engine.all_logged().await?;
        }
        ended
    }

    /// Gives user variables the values of OUT and INOUT parameters, those that EXECUTE took its parameters from included;
    /// the others, for the client that executes the statement.
    fn keep_out(
        &mut self,
        procedure: &Procedure,
        arguments: &[Expr],
        reply: &Reply,
        using: &[String],
    ) -> Result<Vec<(OutputColumn, Value)>, SqlError> {
        let mut for_client = Vec::new();
        for (at, (parameter, argument)) in procedure.parameters().iter().zip(arguments).enumerate() {
            let value = match (parameter.mode, reply.out(at)) {
                (ParameterMode::In, _) | (ParameterMode::InOut, None) => continue,
                (ParameterMode::Out | ParameterMode::InOut, value) => value.cloned().unwrap_or(Datum::Null),
            };
            let variable = match &argument.kind {
                ExprKind::UserVariable { name, .. } => Some(name),
                ExprKind::Param(n) => using.get(*n as usize),
                _ => unreachable!("looked at before the call"),
            };
            match variable {
                Some(name) => {
                    let ty = if value.is_null() { SqlType::Null } else { parameter.column.ty };
                    self.user_variables.insert(name.clone(), (value, ty), self.settings.time_zone)?;
                }
                None => {
                    let column = OutputColumn::expression(&parameter.column.name, parameter.column.ty);
                    for_client.push((column, value));
                }
            }
        }
        Ok(for_client)
    }

    /// Sends the values of parameters as one more result set, which the reply to the CALL follows.
    fn send_out(&mut self, out: &[(OutputColumn, Value)], sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        if out.is_empty() || !sink.takes_out_parameters() {
            return Ok(());
        }
        let (columns, values): (Vec<_>, Vec<_>) = out.iter().cloned().unzip();
        sink.out_parameters(&columns, self.settings.time_zone)?;
        sink.row(&values)?;
        sink.end(Status { more_results: true, out_parameters: true, ..self.status_now() })?;
        Ok(())
    }

    /// Sends result sets, each of which another result follows.
    async fn send_results(
        &mut self,
        results: &[ResultSet],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let interrupt = self.info.interrupt.clone();
        let cancellation = Cancellation::after(&interrupt, None);
        let more_after_all = std::mem::replace(&mut self.more_results, true);
        for result in results {
            let columns: Vec<_> =
                result.columns.iter().map(|(name, ty)| OutputColumn::expression(name, *ty)).collect();
            sink.columns(&columns, self.settings.time_zone)?;
            for row in result.rows() {
                sink.row(row)?;
                if sink.wants_flush() {
                    cancellation.flush(sink).await?;
                }
            }
            sink.end(self.status_now())?;
        }
        self.more_results = more_after_all;
        Ok(())
    }
}
