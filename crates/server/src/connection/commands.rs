//! What each command does.

use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;

use avocet_channel::{Interruption, OutputColumn};
use avocet_session::api::{DumpFrom, Prepared, Replica, SessionFactory, SqlSession, StatementId};
use avocet_types::Datum;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::TimeZone;

use super::{Connection, Cut, LongData, Next, Statement, attended, sign_in};
use crate::account::Account;
use crate::auth::exchange::AuthError;
use crate::cursor::Cursor;
use crate::protocol::command::{self, Command};
use crate::protocol::{Malformed, Reader, StatusFlags, charset, column, handshake, params, reply};
use crate::registry::Activity;
use crate::sink::{FLUSH_AT, Rows, WireSink};
use crate::wire::WireError;

/// The name of a file as replicas send it: some send the NUL of a C string, too.
fn log_name(sent: &[u8]) -> String {
    let name = sent.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// How a statement's run ended.
pub(super) struct Ran {
    pub outcome: Result<Result<(), SqlError>, Cut>,
    /// The client has got some of its rows.
    pub has_sent: bool,
}

impl Ran {
    pub fn failed(error: SqlError) -> Self {
        Self { outcome: Ok(Err(error)), has_sent: false }
    }
}

impl<F: SessionFactory> Connection<F> {
    /// Runs one command and leaves its reply in the write buffer.
    pub(super) async fn handle(&mut self, packet: Range<usize>) -> Result<Next, WireError> {
        let payload = self.wire.input.slice(packet.clone());
        let Ok(command) = command::parse(payload, self.capabilities) else {
            self.reply_error(&ErrorCode::MALFORMED_PACKET.with(&[]));
            return Ok(Next::Continue);
        };
        match command {
            Command::Query(_) => return self.query(packet).await,
            Command::Execute { statement, .. } => return self.execute(packet, StatementId(statement)).await,
            Command::Prepare(_) => self.prepare(packet).await,
            Command::Fetch { statement, rows } => return self.fetch(StatementId(statement), rows).await,
            Command::CloseStatement(id) => {
                self.statements.remove(&StatementId(id));
                self.session.close_prepared(StatementId(id));
            }
            Command::ResetStatement(id) => self.reset_statement(StatementId(id)),
            Command::SendLongData { .. } => self.long_data(packet),
            Command::Ping => self.reply_ok(),
            Command::Quit => return Ok(Next::Close),
            Command::InitDb(name) => {
                // It ends at a NUL, and what is no text is no name.
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = charset::decode(name, self.session.status().client, self.session.sql_mode());
                let result = match name {
                    Ok(name) if !name.is_empty() => self.session.use_database(&name),
                    _ => Err(ErrorCode::NO_DB_ERROR.with(&[])),
                };
                self.reply_result(result);
            }
            Command::FieldList { table } => {
                let table = charset::decode(table, self.session.status().client, self.session.sql_mode());
                let result = table.and_then(|table| self.session.table_columns(&table));
                self.field_list(result);
            }
            Command::Statistics => {
                let statistics = self.shared.registry.statistics();
                self.wire.out.packet(statistics.as_bytes());
            }
            Command::ProcessKill(id) => {
                let result = self.session.kill_connection(id);
                self.reply_result(result);
            }
            Command::Debug => self.reply_eof(),
            Command::SetOption { multi_statements } => {
                self.info.multi_statements = multi_statements;
                self.session.set_multi_statements(multi_statements);
                self.reply_eof();
            }
            Command::ResetConnection => {
                self.session.reset().await;
                self.statements.clear();
                self.reply_ok();
            }
            Command::ChangeUser(_) => return self.change_user(packet).await,
            Command::RegisterReplica { server_id, host, port } => {
                let host = String::from_utf8_lossy(host).into_owned();
                let result =
                    self.session.register_replica(Replica { server_id, host, port, ..Replica::default() });
                self.reply_result(result);
            }
            Command::Dump { file, position, how } => {
                let from = DumpFrom::Position(log_name(file), position);
                return Box::pin(self.dump(from, how)).await;
            }
            Command::DumpGtids { set, file, position, how } => {
                // Replicas name none; mysqlbinlog does.
                let file = Some(log_name(file)).filter(|file| !file.is_empty());
                let from = DumpFrom::Gtids(set.to_vec(), file.map(|file| (file, position)));
                return Box::pin(self.dump(from, how)).await;
            }
            Command::Unknown => self.reply_error(&ErrorCode::UNKNOWN_COM_ERROR.with(&[])),
        }
        Ok(Next::Continue)
    }

    async fn query(&mut self, packet: Range<usize>) -> Result<Next, WireError> {
        let ran = self.run_query(packet).await?;
        Ok(self.conclude(ran.outcome))
    }

    /// Runs the statements of a COM_QUERY. What is left to do is [`Self::conclude`].
    pub(super) async fn run_query(&mut self, packet: Range<usize>) -> Result<Ran, WireError> {
        let Ok(Command::Query(raw)) = command::parse(self.wire.input.slice(packet), self.capabilities) else {
            return Ok(Ran::failed(ErrorCode::MALFORMED_PACKET.with(&[])));
        };
        self.begin(Activity::Query, raw);
        let status = self.session.status();
        let sql = match charset::decode(raw, status.client, self.session.sql_mode()) {
            Ok(sql) => sql,
            Err(error) => return Ok(Ran::failed(error)),
        };
        let mut sink = WireSink {
            out: &mut self.wire.out,
            account: &mut self.wire.account,
            line: &self.wire.line,
            types: &mut self.types,
            zero_filled: Vec::new(),
            zone: TimeZone::UTC,
            rows: Rows::Text,
            capabilities: self.capabilities,
            max_packet: self.wire.max_packet,
            local_file: &mut self.local_file,
            is_pipelined: self.wire.input.has_more(),
            status,
            has_sent: false,
            outer_status: self.outer_status,
        };
        let outcome = {
            let statement = pin!(self.session.execute(&sql, &mut sink));
            attended(statement, &self.wire.line, &self.registration.interrupt).await
        };
        let has_sent = sink.has_sent;
        drop(sql);
        if self.local_file.was_asked_for() {
            self.end_local_file().await?;
        }
        Ok(Ran { outcome, has_sent })
    }

    async fn execute(&mut self, packet: Range<usize>, id: StatementId) -> Result<Next, WireError> {
        let ran = self.run_prepared(packet, id).await;
        Ok(self.conclude(ran.outcome))
    }

    /// Runs a prepared statement. What is left to do is [`Self::conclude`].
    pub(super) async fn run_prepared(&mut self, packet: Range<usize>, id: StatementId) -> Ran {
        let Some(statement) = self.statements.get_mut(&id) else {
            return Ran::failed(ErrorCode::UNKNOWN_STMT_HANDLER.with(&[&id.0, &"mysqld_stmt_execute"]));
        };
        let payload = self.wire.input.slice(packet);
        let Ok(Command::Execute { rest, .. }) = command::parse(payload, self.capabilities) else {
            return Ran::failed(ErrorCode::MALFORMED_PACKET.with(&[]));
        };
        self.shared.registry.count_statement();
        self.registration.begin(Activity::Execute, statement.text.as_bytes());
        statement.cursor = None;
        let status = self.session.status();
        let count = statement.prepared.params.len();
        let mut values = recycle(std::mem::take(&mut self.values));
        let read = params::execute(
            rest,
            self.capabilities,
            count,
            &mut statement.types,
            &statement.long_data.params,
            status.client,
            &mut values,
        );
        let read = match (statement.long_data_error.take(), read) {
            (Some(error), _) => Err(error),
            (None, read) => read.map_err(SqlError::from),
        };
        let flags = match read {
            Ok(flags) => flags,
            Err(error) => {
                self.values = recycle(values);
                statement.long_data.clear();
                return Ran::failed(error);
            }
        };
        let keeps_rows = flags.cursor && !statement.prepared.columns.is_empty();
        let shared = &self.shared;
        let kept = || Cursor::new(shared.factory.spill_folder(), Account::new(shared.memory.clone()));
        let mut cursor = keeps_rows.then(kept);
        let mut sink = WireSink {
            out: &mut self.wire.out,
            account: &mut self.wire.account,
            line: &self.wire.line,
            types: &mut self.types,
            zero_filled: Vec::new(),
            zone: TimeZone::UTC,
            rows: cursor.as_mut().map_or(Rows::Binary, Rows::Cursor),
            capabilities: self.capabilities,
            max_packet: self.wire.max_packet,
            local_file: &mut self.local_file,
            is_pipelined: self.wire.input.has_more(),
            status,
            has_sent: false,
            outer_status: self.outer_status,
        };
        let outcome = {
            let running = pin!(self.session.execute_prepared(statement.prepared.id, &values, &mut sink));
            attended(running, &self.wire.line, &self.registration.interrupt).await
        };
        let has_sent = sink.has_sent;
        self.values = recycle(values);
        statement.long_data.clear();
        statement.cursor = cursor.filter(|_| matches!(outcome, Ok(Ok(()))));
        Ran { outcome, has_sent }
    }

    /// Reads what a client still sends of its file, after which it awaits the reply.
    async fn end_local_file(&mut self) -> Result<(), WireError> {
        let Self { local_file, wire, registration, .. } = self;
        let mut dropped = Vec::new();
        while local_file.is_open() && registration.interrupt.get() != Some(Interruption::Connection) {
            dropped.clear();
            let read = poll_fn(|cx| local_file.poll_read(cx, &wire.line, &mut wire.out, &mut dropped));
            tokio::select! {
                biased;
                _ = registration.interrupt.raised(), if registration.interrupt.get().is_none() => {}
                read = read => {
                    read.map_err(|_| WireError::Closed)?;
                }
            }
        }
        let behind = self.local_file.close();
        self.wire.input.push(&behind);
        Ok(())
    }

    /// Turns a statement's end into the rest of its reply.
    pub(super) fn conclude(&mut self, outcome: Result<Result<(), SqlError>, Cut>) -> Next {
        match outcome {
            Ok(Ok(())) => Next::Continue,
            Ok(Err(error)) => {
                self.reply_error(&error);
                Next::Continue
            }
            Err(Cut::HungUp) => Next::Close,
            Err(Cut::Killed) => {
                self.reply_error(&ErrorCode::QUERY_INTERRUPTED.with(&[]));
                Next::Continue
            }
            Err(Cut::Panicked) => {
                self.session.recover();
                self.reply_error(&ErrorCode::INTERNAL_ERROR.with(&[&"the statement panicked; see the log"]));
                Next::Continue
            }
        }
    }

    async fn prepare(&mut self, packet: Range<usize>) {
        let payload = self.wire.input.slice(packet);
        let Ok(Command::Prepare(raw)) = command::parse(payload, self.capabilities) else { return };
        self.begin(Activity::Prepare, raw);
        if self.statements.len() >= self.shared.options.max_prepared_statements {
            let error = ErrorCode::MAX_PREPARED_STMT_COUNT_REACHED.with(&[&self.statements.len()]);
            return self.reply_error(&error);
        }
        let sql = match charset::decode(raw, self.session.status().client, self.session.sql_mode()) {
            Ok(sql) => sql.into_owned(),
            Err(error) => return self.reply_error(&error),
        };
        match self.session.prepare(&sql).await {
            Ok(prepared) => {
                self.reply_prepared(&prepared);
                let statement = Statement {
                    prepared,
                    text: sql,
                    types: Vec::new(),
                    long_data: LongData {
                        account: Account::new(self.shared.memory.clone()),
                        ..LongData::default()
                    },
                    long_data_error: None,
                    cursor: None,
                };
                self.statements.insert(statement.prepared.id, statement);
            }
            Err(error) => self.reply_error(&error),
        }
    }

    fn reply_prepared(&mut self, prepared: &Prepared) {
        let session_status = self.session.status();
        let status = reply::status_flags(&session_status);
        let out = &mut self.wire.out;
        out.begin();
        out.put_u8(0);
        out.put_u32(prepared.id.0);
        out.put_u16(prepared.columns.len() as u16);
        out.put_u16(prepared.params.len() as u16);
        out.put_u8(0);
        out.put_u16(prepared.warnings);
        out.end();
        if !prepared.params.is_empty() {
            prepared.params.iter().for_each(|ty| column::parameter(out, ty));
            reply::end_of_columns(out, self.capabilities, status);
        }
        if !prepared.columns.is_empty() {
            prepared.columns.iter().for_each(|c| column::definition(out, c, false, &session_status));
            reply::end_of_columns(out, self.capabilities, status);
        }
    }

    /// Sends rows of a cursor, as fast as the client takes them.
    async fn fetch(&mut self, id: StatementId, rows: u32) -> Result<Next, WireError> {
        self.begin(Activity::Fetch, b"");
        let Some(statement) = self.statements.get_mut(&id) else {
            self.reply_unknown_statement(id, "mysqld_stmt_fetch");
            return Ok(Next::Continue);
        };
        let Some(cursor) = &mut statement.cursor else {
            self.reply_error(&ErrorCode::STMT_HAS_NO_OPEN_CURSOR.with(&[&id.0]));
            return Ok(Next::Continue);
        };
        let mut left = rows;
        let exhausted = loop {
            match cursor.fetch(&mut self.wire.out, &mut left, FLUSH_AT) {
                Ok(false) if left > 0 => {}
                Ok(exhausted) => break exhausted,
                Err(error) => {
                    self.reply_error(&error.into());
                    return Ok(Next::Continue);
                }
            }
            tokio::select! {
                biased;
                _ = self.registration.interrupt.raised() => {
                    self.reply_error(&ErrorCode::QUERY_INTERRUPTED.with(&[]));
                    return Ok(Next::Continue);
                }
                flushed = self.wire.flush() => flushed?,
            }
            tokio::task::yield_now().await;
        };
        let mut flags = reply::status_flags(&self.session.status());
        flags |= if exhausted {
            statement.cursor = None;
            StatusFlags::SERVER_STATUS_LAST_ROW_SENT
        } else {
            StatusFlags::SERVER_STATUS_CURSOR_EXISTS
        };
        reply::end_of_rows(&mut self.wire.out, self.capabilities, 0, flags);
        Ok(Next::Continue)
    }

    fn reset_statement(&mut self, id: StatementId) {
        match self.statements.get_mut(&id) {
            Some(statement) => {
                statement.long_data.clear();
                statement.long_data_error = None;
                statement.cursor = None;
                self.reply_ok();
            }
            None => self.reply_unknown_statement(id, "mysqld_stmt_reset"),
        }
    }

    pub(super) fn reply_unknown_statement(&mut self, id: StatementId, command: &str) {
        self.reply_error(&ErrorCode::UNKNOWN_STMT_HANDLER.with(&[&id.0, &command]));
    }

    /// Keeps a piece of a parameter. There is no reply; what is wrong is told at the next execution.
    fn long_data(&mut self, packet: Range<usize>) {
        let payload = self.wire.input.slice(packet);
        let Ok(Command::SendLongData { statement, parameter, data }) =
            command::parse(payload, self.capabilities)
        else {
            return;
        };
        let Some(statement) = self.statements.get_mut(&StatementId(statement)) else { return };
        let count = statement.prepared.params.len();
        let parameter = usize::from(parameter);
        if parameter >= count {
            let error = ErrorCode::WRONG_ARGUMENTS.with(&[&"mysqld_stmt_send_long_data"]);
            statement.long_data_error = Some(error);
            return;
        }
        let LongData { params, account } = &mut statement.long_data;
        params.resize(count, None);
        let held: usize = params.iter().flatten().map(Vec::len).sum();
        if held + data.len() > self.wire.max_packet {
            let message = "Parameter of prepared statement which is set through mysql_send_long_data() is longer \
                           than 'max_allowed_packet' bytes";
            statement.long_data_error = Some(ErrorCode::UNKNOWN_ERROR.because(message));
            return;
        }
        if !account.grow(held + data.len()) {
            let message = "The server has no memory for a parameter at the moment";
            statement.long_data_error = Some(ErrorCode::OUT_OF_RESOURCES.because(message));
            return;
        }
        params[parameter].get_or_insert_default().extend_from_slice(data);
    }

    fn field_list(&mut self, result: Result<Vec<OutputColumn>, SqlError>) {
        match result {
            Ok(columns) => {
                let status = self.session.status();
                columns.iter().for_each(|c| column::definition(&mut self.wire.out, c, true, &status));
                self.reply_eof();
            }
            Err(error) => self.reply_error(&error),
        }
    }

    fn reply_eof(&mut self) {
        let flags = reply::status_flags(&self.session.status());
        reply::end_of_rows(&mut self.wire.out, self.capabilities, 0, flags);
    }

    /// Becomes another user, with a fresh session. A client that fails to is disconnected.
    async fn change_user(&mut self, packet: Range<usize>) -> Result<Next, WireError> {
        self.begin(Activity::Connect, b"");
        match self.try_change_user(packet).await {
            Ok(()) => {
                self.reply_ok();
                Ok(Next::Continue)
            }
            Err(AuthError::Denied(error)) => {
                self.reply_error(&error);
                self.wire.flush().await?;
                Ok(Next::Close)
            }
            Err(AuthError::Wire(error)) => Err(error),
        }
    }

    async fn try_change_user(&mut self, packet: Range<usize>) -> Result<(), AuthError> {
        let bad = |_: Malformed| ErrorCode::UNKNOWN_COM_ERROR.with(&[]);
        let payload = Reader::new(self.wire.input.slice(packet.start + 1..packet.end));
        let (login, collation) = handshake::change_user(payload, self.capabilities).map_err(bad)?;
        let (mut claim, database) = sign_in::claim(&login, self.capabilities).map_err(bad)?;
        claim.changes_user = true;
        let user = claim.user.clone();
        let shared = self.shared.clone();
        let account =
            shared.authenticator.authenticate(&mut self.wire, &self.salt, &self.host, claim).await?;
        self.session.reset().await;
        self.statements.clear();
        self.info.account = account;
        self.info.database = database;
        self.info.collation = collation.unwrap_or(self.info.collation);
        self.session = shared.factory.open(self.info.clone())?;
        self.registration.signed_in(&user, &self.info.account, self.info.database.as_deref());
        Ok(())
    }
}

/// Empties a vector of values and gives its memory to values that live for another time.
pub(super) fn recycle<'b>(mut values: Vec<Datum<'_>>) -> Vec<Datum<'b>> {
    values.clear();
    values.into_iter().map(|_| unreachable!("the vector was emptied")).collect()
}
