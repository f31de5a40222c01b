//! FLUSH, PURGE and RESET of the binary log, ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR.

use avocet_types::error::ErrorCode;

use crate::parse::ast::{Expr, ExprKind, ObjectName};
use crate::parse::error::ParseResult;
use crate::parse::parser::Parser;
use crate::parse::refuse::{refused, unserved};
use crate::parse::statement::{PurgeLogs, StatementKind};

/// What FLUSH may name besides tables.
const FLUSHED: &[&str] = &[
    "BINARY LOGS",
    "ENGINE LOGS",
    "ERROR LOGS",
    "GENERAL LOGS",
    "LOGS",
    "OPTIMIZER_COSTS",
    "PRIVILEGES",
    "RELAY LOGS",
    "SLOW LOGS",
    "STATUS",
    "USER_RESOURCES",
];

impl Parser<'_> {
    /// After FLUSH.
    pub(super) fn flush(&mut self) -> ParseResult<StatementKind> {
        let _ = self.eat("NO_WRITE_TO_BINLOG") || self.eat("LOCAL");
        if self.eat("TABLES") || self.eat("TABLE") {
            return self.flush_tables();
        }
        Ok(StatementKind::Flush(self.comma_separated(Self::flushed)?))
    }

    fn flushed(&mut self) -> ParseResult<&'static str> {
        let known = |what: &&&str| what.split(' ').enumerate().all(|(at, word)| self.is_word_ahead(at, word));
        let what = FLUSHED.iter().find(known).ok_or_else(|| self.error())?;
        what.split(' ').for_each(|_| self.advance());
        Ok(what)
    }

    /// After RESET: `REPLICA …` and `BINARY LOGS AND GTIDS …`, one or several times.
    pub(super) fn reset_of_replication(&mut self) -> ParseResult<StatementKind> {
        let (mut replica, mut first) = (None, None);
        for item in self.comma_separated(|p| match p.eat("REPLICA") {
            true => p.reset_replica(),
            false => {
                p.expect_all(&["BINARY", "LOGS", "AND", "GTIDS"])?;
                p.reset_logs()
            }
        })? {
            match item {
                StatementKind::ResetLogs { first: number } => first = Some(number),
                // Once RESET REPLICA ALL stands there, all goes.
                StatementKind::ResetReplica { all, channel, .. } => {
                    let all_before = matches!(replica, Some((true, _)));
                    replica = Some((all || all_before, channel));
                }
                _ => {}
            }
        }
        Ok(match (replica, first) {
            (Some((all, channel)), first_log) => StatementKind::ResetReplica { all, channel, first_log },
            (None, first) => StatementKind::ResetLogs { first: first.unwrap_or(1) },
        })
    }

    /// After BINARY LOGS AND GTIDS: `[TO n]`.
    fn reset_logs(&mut self) -> ParseResult<StatementKind> {
        /// As far as MySQL numbers files.
        const LAST: u64 = 2_000_000_000;
        let first = if self.eat("TO") { self.unsigned()? } else { 1 };
        if !(1..=LAST).contains(&first) {
            return Err(refused(ErrorCode::RESET_SOURCE_TO_VALUE_OUT_OF_RANGE.with(&[&first, &LAST])));
        }
        Ok(StatementKind::ResetLogs { first })
    }

    /// After PURGE BINARY LOGS.
    pub(super) fn purge_logs(&mut self) -> ParseResult<StatementKind> {
        if self.eat("TO") {
            return Ok(StatementKind::PurgeLogs(PurgeLogs::To(self.string()?)));
        }
        self.expect("BEFORE")?;
        let moment = self.expr()?;
        let span = moment.span;
        let seconds = ExprKind::Function { name: "UNIX_TIMESTAMP".into(), args: vec![moment] };
        Ok(StatementKind::PurgeLogs(PurgeLogs::Before(Box::new(Expr { kind: seconds, span }))))
    }

    fn flush_tables(&mut self) -> ParseResult<StatementKind> {
        let named = !self.at_statement_end() && !self.is_any_word(&["WITH", "FOR"]);
        let tables = if named { self.comma_separated(Self::object_name)? } else { Vec::new() };
        if self.eat_all(&["WITH", "READ", "LOCK"]) {
            return Ok(StatementKind::FlushWithReadLock(tables));
        }
        if named && self.eat_all(&["FOR", "EXPORT"]) {
            return Err(unserved("FLUSH TABLES ... FOR EXPORT"));
        }
        Ok(StatementKind::Flush(vec!["TABLES"]))
    }

    /// After CHECK REPLICATION, which is Avocet's own: `[TABLE t, …] [REPAIR]`.
    pub(super) fn check_replication(&mut self) -> ParseResult<StatementKind> {
        let named = self.eat("TABLES") || self.eat("TABLE");
        let tables = if named { self.comma_separated(Self::object_name)? } else { Vec::new() };
        Ok(StatementKind::CheckReplication { tables, repairs: self.eat("REPAIR") })
    }

    /// After ANALYZE or OPTIMIZE.
    pub(super) fn maintained_tables(&mut self, what: &str) -> ParseResult<Vec<ObjectName>> {
        let _ = self.eat("NO_WRITE_TO_BINLOG") || self.eat("LOCAL");
        let tables = self.listed_tables()?;
        match what == "ANALYZE" && self.is_any_word(&["UPDATE", "DROP"]) && self.is_word_ahead(1, "HISTOGRAM")
        {
            true => Err(unserved("ANALYZE TABLE ... HISTOGRAM")),
            false => Ok(tables),
        }
    }

    /// After REPAIR.
    pub(super) fn repaired_tables(&mut self) -> ParseResult<Vec<ObjectName>> {
        let _ = self.eat("NO_WRITE_TO_BINLOG") || self.eat("LOCAL");
        let tables = self.listed_tables()?;
        while self.eat_any(&["QUICK", "EXTENDED", "USE_FRM"]).is_some() {}
        Ok(tables)
    }

    /// After CHECK.
    pub(super) fn check_tables(&mut self) -> ParseResult<StatementKind> {
        let tables = self.listed_tables()?;
        let mut for_upgrade = false;
        loop {
            if self.eat_all(&["FOR", "UPGRADE"]) {
                for_upgrade = true;
            } else if self.eat_any(&["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED"]).is_none() {
                return Ok(StatementKind::Check { tables, for_upgrade });
            }
        }
    }

    /// After CHECKSUM.
    pub(super) fn checksum_tables(&mut self) -> ParseResult<StatementKind> {
        let tables = self.listed_tables()?;
        let quick = self.eat_any(&["QUICK", "EXTENDED"]) == Some("QUICK");
        Ok(StatementKind::Checksum { tables, quick })
    }

    fn listed_tables(&mut self) -> ParseResult<Vec<ObjectName>> {
        if !self.eat("TABLES") {
            self.expect("TABLE")?;
        }
        self.comma_separated(Self::object_name)
    }
}
