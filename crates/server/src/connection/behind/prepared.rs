//! Prepared statements through a front. The source has them all, and numbers them; the session here prepares one as well when it
//! is first to run here.
//!
//! The source has resolved a statement's text, names and literals by its session's settings when it was prepared (MySQL manual, 15.5):
//! the default database, `sql_mode`, character set and collation. It runs here only in a session that has the same ones, so that it means
//! the same, and what is asked of the source about its tables is asked about the right ones.

use std::ops::Range;
use std::sync::Arc;

use avocet_session::api::{SessionFactory, SqlSession, StatementId};
use avocet_sql::parse::digest::{Digest, SlotKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
use avocet_types::temporal::TimeZone;
use avocet_types::text::to_text;
use avocet_types::{Collation, Datum};

use super::Behind;
use super::statement::Job;
use crate::account::Account;
use crate::connection::{Connection, LongData, Next, Statement};
use crate::front::effects::Effects;
use crate::front::framer::{Framer, Reply};
use crate::front::shape::Shape;
use crate::front::view::Period;
use crate::protocol::charset;
use crate::protocol::command::{self, Command};
use crate::protocol::params::{self, ParamType};
use crate::registry::Activity;
use crate::wire::WireError;

/// A statement that the client has prepared.
pub(super) struct Remote {
    /// As far as its character set is known: see `raw`.
    pub text: String,
    /// The session that it was prepared in.
    period: Period,
    /// Its bytes, until it is known how to read those that are not ASCII.
    raw: Option<Box<[u8]>>,
    /// They are no text of that character set, or there was no memory for it.
    is_unreadable: bool,
    pub params: usize,
    /// As the client bound them last.
    pub types: Vec<ParamType>,
    /// The execution at hand binds them.
    pub binds: bool,
    /// The source has got these types, too.
    source_has_types: bool,
    /// Parts of its parameters came ahead: they are at the source.
    pub has_long_data: bool,
    /// As it was told when it was last executed.
    told: Option<Told>,
}

impl Remote {
    /// Bytes of its text and its digest.
    pub fn size(&self) -> usize {
        2 * self.text.len() + self.raw.as_ref().map_or(0, |raw| raw.len())
    }
}

/// What a statement's text says, under one SQL mode.
struct Told {
    mode: SqlMode,
    shape: Arc<Shape>,
    /// What its cost is kept by, if it has a digest.
    digest: Option<Box<[u8]>>,
}

impl Behind {
    /// The shape of a prepared statement, and whether it has a digest, which is left in `digest` then. `None` if there is no such
    /// statement. Its text is looked at once, and again under another SQL mode: `mode`, if that of its PREPARE is not known.
    pub(super) fn shape_of_prepared(&mut self, id: u32, mode: SqlMode) -> Option<(Arc<Shape>, bool)> {
        self.read_again(id);
        let remote = self.statements.get_mut(&id)?;
        let mode = remote.period.get().map_or(mode, |resolution| resolution.mode);
        if let Some(told) = remote.told.as_ref().filter(|told| told.mode == mode) {
            if let Some(digest) = &told.digest {
                self.digest.text.clear();
                self.digest.text.extend_from_slice(digest);
            }
            return Some((told.shape.clone(), told.digest.is_some()));
        }
        let (shape, has_digest) = self.front.shapes.of(&remote.text, mode, &mut self.digest);
        let digest = has_digest.then(|| self.digest.text.as_slice().into());
        remote.told = Some(Told { mode, shape: shape.clone(), digest });
        Some((shape, has_digest))
    }

    /// Reads a statement's text in the character set of its PREPARE, once that is known.
    fn read_again(&mut self, id: u32) {
        let Some(remote) = self.statements.get_mut(&id) else { return };
        let Some(resolution) = remote.period.get() else { return };
        let Some(raw) = remote.raw.take() else { return };
        let before = remote.size() + raw.len();
        match charset::decode(&raw, resolution.client, resolution.mode) {
            Ok(text) => remote.text = text.into_owned(),
            Err(_) => remote.is_unreadable = true,
        }
        remote.told = None;
        let texts = self.texts - before + remote.size();
        match texts > self.texts && !self.account.grow(texts) {
            true => {
                (remote.text, remote.is_unreadable) = (String::new(), true);
                self.texts -= before;
            }
            false => self.texts = texts,
        }
        self.account.shrink(self.texts);
    }

    /// Why a prepared statement means something else in the session as it is than at the source, or may; `None` if it does not.
    pub(super) fn why_means_other(&self, id: u32) -> Option<&'static str> {
        let remote = self.statements.get(&id)?;
        // Nothing runs here then.
        let settings = self.view.settings.as_ref()?;
        Some(match remote.period.get() {
            None => "nobody knows the settings it was prepared under",
            Some(resolution) if !resolution.is_of(settings) => {
                "it was prepared under another default database, sql_mode, character set or collation"
            }
            Some(_) if remote.is_unreadable => "its text cannot be read",
            Some(_) => return None,
        })
    }
}

impl<F: SessionFactory> Connection<F> {
    pub(super) async fn prepare_with(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
    ) -> Result<Next, WireError> {
        let raw = match command::parse(self.wire.input.slice(packet.clone()), self.capabilities) {
            Ok(Command::Prepare(raw)) => raw,
            _ => return Ok(Next::Close),
        };
        self.begin(Activity::Prepare, raw);
        // Preparing changes nothing but the conditions.
        let mut framer = Framer::new(Reply::Prepared, behind.upstream.deprecates_eof());
        let text = charset::decode(raw, self.session.status().client, self.session.sql_mode())
            .map(|text| text.into_owned());
        // The source reads it in a character set that is not known here yet.
        let raw = (!raw.is_ascii() && behind.view.settings.is_none()).then(|| raw.into());
        let sent = behind.upstream.send(self.wire.input.slice(packet)).await;
        let next = self.pass_reply(behind, sent, &mut framer, &Effects::default()).await?;
        // Without its text it always runs on the source, and so it does when there are very many, or there is no memory for them.
        if let (Some((id, _, params)), Ok(text)) = (framer.prepared, text)
            && behind.statements.len() < self.shared.options.max_prepared_statements
        {
            let remote = Remote {
                text,
                period: behind.view.period.clone(),
                raw,
                is_unreadable: false,
                params: usize::from(params),
                types: Vec::new(),
                binds: false,
                source_has_types: true,
                has_long_data: false,
                told: None,
            };
            if behind.account.grow(behind.texts + remote.size()) {
                behind.texts += remote.size();
                behind.statements.insert(id, remote);
            }
        }
        Ok(next)
    }

    pub(super) async fn execute_with(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
        id: u32,
    ) -> Result<Next, WireError> {
        let Some(remote) = behind.statements.get(&id) else {
            // What it may do is not known.
            return self.pass(behind, packet, Reply::Results, &Effects::unknown()).await;
        };
        self.begin(Activity::Execute, remote.text.as_bytes());
        let has_long_data = remote.has_long_data;
        let Some((shape, has_key)) = behind.shape_of_prepared(id, self.session.sql_mode()) else {
            return Ok(Next::Close);
        };
        self.note_types(behind, packet.clone(), id);
        let payload = self.wire.input.slice(packet.clone());
        let is_simple = params::execute_flags(payload, self.capabilities).is_some_and(|flags| flags.is_plain);
        let job = Job::Execute(packet, id);
        if has_long_data || !is_simple {
            // Parameters in pieces, a cursor or attributes: the source has them.
            behind.front.journal.count_passed_on();
            let Job::Execute(packet, id) = job else { return Ok(Next::Close) };
            return self.pass_execute(behind, packet, id, &shape.effects).await;
        }
        self.answer(behind, job, shape, has_key).await
    }

    /// Keeps the types that come with an execution.
    fn note_types(&self, behind: &mut Behind, packet: Range<usize>, id: u32) {
        let Some(remote) = behind.statements.get_mut(&id) else { return };
        let payload = self.wire.input.slice(packet);
        remote.binds = params::bound_types(payload, self.capabilities, remote.params, &mut behind.types);
        if remote.binds {
            std::mem::swap(&mut remote.types, &mut behind.types);
            remote.source_has_types = false;
        }
    }

    /// Executes on the source. If it does not have the types that the client has bound, since they came with an execution that ran
    /// here, they are put in.
    pub(super) async fn pass_execute(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
        id: u32,
        effects: &Effects,
    ) -> Result<Next, WireError> {
        let payload = self.wire.input.slice(packet.clone());
        let with_types = behind.statements.get_mut(&id).and_then(|remote| {
            remote.has_long_data = false;
            let has = std::mem::replace(&mut remote.source_has_types, true);
            if has || remote.binds {
                return None;
            }
            params::with_types(payload, self.capabilities, remote.params, &remote.types)
        });
        match with_types {
            None => self.pass(behind, packet, Reply::Results, effects).await,
            Some(payload) => {
                let mut framer = Framer::new(Reply::Results, behind.upstream.deprecates_eof());
                let sent = behind.upstream.send(&payload).await;
                self.pass_reply(behind, sent, &mut framer, effects).await
            }
        }
    }

    /// Prepares a statement of the source here, too.
    pub(super) async fn prepare_here(&mut self, behind: &Behind, id: u32) -> Result<(), SqlError> {
        let remote = behind.statements.get(&id).ok_or_else(|| unknown(id))?;
        if let Some(statement) = self.statements.get_mut(&StatementId(id)) {
            statement.types.clone_from(&remote.types);
            return Ok(());
        }
        let prepared = self.session.prepare(&remote.text).await?;
        if prepared.params.len() != remote.params {
            self.session.close_prepared(prepared.id);
            return Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"mysqld_stmt_execute"]));
        }
        let statement = Statement {
            prepared,
            text: remote.text.clone(),
            types: remote.types.clone(),
            long_data: LongData { account: Account::new(self.shared.memory.clone()), ..LongData::default() },
            long_data_error: None,
            cursor: None,
        };
        self.statements.insert(StatementId(id), statement);
        Ok(())
    }

    /// A prepared statement as a text with its values, in the client's character set.
    pub(super) fn explained_execute(
        &self,
        behind: &Behind,
        packet: Range<usize>,
        id: u32,
    ) -> Option<Vec<u8>> {
        let remote = behind.statements.get(&id)?;
        let Ok(Command::Execute { rest, .. }) =
            command::parse(self.wire.input.slice(packet), self.capabilities)
        else {
            return None;
        };
        let status = self.session.status();
        let (mut types, mut values) = (remote.types.clone(), Vec::new());
        params::execute(rest, self.capabilities, remote.params, &mut types, &[], status.client, &mut values)
            .ok()?;
        let mut digest = Digest::default();
        if !digest.read(remote.text.as_bytes(), self.session.sql_mode()) {
            return None;
        }
        let mut text = String::new();
        let mut copied = 0;
        let places = digest.slots.iter().filter(|slot| slot.kind == SlotKind::Param);
        for (slot, value) in places.zip(&values) {
            text.push_str(remote.text.get(copied..slot.span.start as usize)?);
            put_literal(value, &mut text);
            copied = slot.span.end as usize;
        }
        text.push_str(remote.text.get(copied..)?);
        Some(charset::encode_for(&text, status.client).into_owned())
    }
}

fn unknown(id: u32) -> SqlError {
    ErrorCode::UNKNOWN_STMT_HANDLER.with(&[&id, &"mysqld_stmt_execute"])
}

/// A value as SQL, whatever the session's sql_mode is: text and bytes in hexadecimal.
fn put_literal(value: &Datum<'_>, to: &mut String) {
    use std::fmt::Write;
    let hexadecimal = |bytes: &[u8], to: &mut String| {
        to.push_str("X'");
        bytes.iter().for_each(|byte| {
            let _ = write!(to, "{byte:02X}");
        });
        to.push('\'');
    };
    match value {
        Datum::Null => to.push_str("NULL"),
        Datum::Int(number) => {
            let _ = write!(to, "{number}");
        }
        Datum::UInt(number) => {
            let _ = write!(to, "{number}");
        }
        Datum::Double(number) => {
            let _ = write!(to, "{number:e}");
        }
        Datum::Float(number) => {
            let _ = write!(to, "{number:e}");
        }
        Datum::Str(text) => {
            to.push_str("_utf8mb4 ");
            hexadecimal(text.as_bytes(), to);
        }
        Datum::Bytes(bytes) => hexadecimal(bytes, to),
        other => {
            let ty = other.natural_type(Collation::DEFAULT);
            match (to_text(other, &ty, TimeZone::UTC), other) {
                (Some(text), Datum::Decimal(_)) => to.push_str(&text),
                (Some(text), _) => {
                    let _ = write!(to, "'{}'", text.replace('\'', "''"));
                }
                (None, _) => to.push_str("NULL"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_literals() {
        let literal = |value: Datum<'_>| {
            let mut text = String::new();
            put_literal(&value, &mut text);
            text
        };
        assert_eq!(literal(Datum::Null), "NULL");
        assert_eq!(literal(Datum::Int(-5)), "-5");
        assert_eq!(literal(Datum::str("a'b")), "_utf8mb4 X'612762'");
        assert_eq!(literal(Datum::bytes(&[0, 255])), "X'00FF'");
        assert_eq!(literal(Datum::Double(1.5)), "1.5e0");
        assert_eq!(literal(Datum::Date(19_782)), "'2024-02-29'");
    }
}
