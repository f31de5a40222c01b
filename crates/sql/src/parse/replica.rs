//! CHANGE REPLICATION SOURCE, START, STOP and RESET REPLICA, and PROMOTE REPLICA, which is Avocet's own.
//!
//! Every option of MySQL 8.4 is known. One that asks for what there is not is refused by name.

use avocet_types::error::ErrorCode;

use crate::parse::error::ParseResult;
use crate::parse::lexer::Op;
use crate::parse::parser::Parser;
use crate::parse::refuse::{refused, unserved};
use crate::parse::statement::{PromoteAction, PromoteOptions, PromoteVerify, SourceOptions, StatementKind};

/// Options that would have to change what is done, and cannot.
const UNSERVED: &[&str] = &[
    "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS",
    "GTID_ONLY",
    "IGNORE_SERVER_IDS",
    "NETWORK_NAMESPACE",
    "PRIVILEGE_CHECKS_USER",
    "REQUIRE_ROW_FORMAT",
    "REQUIRE_TABLE_PRIMARY_KEY_CHECK",
    "SOURCE_BIND",
    "SOURCE_COMPRESSION_ALGORITHMS",
    "SOURCE_CONNECTION_AUTO_FAILOVER",
    "SOURCE_DELAY",
    "SOURCE_HEARTBEAT_PERIOD",
    "SOURCE_PUBLIC_KEY_PATH",
    "SOURCE_RETRY_COUNT",
    "SOURCE_SSL_CAPATH",
    "SOURCE_SSL_CERT",
    "SOURCE_SSL_CIPHER",
    "SOURCE_SSL_CRL",
    "SOURCE_SSL_CRLPATH",
    "SOURCE_SSL_KEY",
    "SOURCE_TLS_CIPHERSUITES",
    "SOURCE_TLS_VERSION",
    "SOURCE_ZSTD_COMPRESSION_LEVEL",
];

/// Places by file, where GTIDs are the only ones.
const PLACES: &[&str] = &["SOURCE_LOG_FILE", "SOURCE_LOG_POS", "RELAY_LOG_FILE", "RELAY_LOG_POS"];

impl Parser<'_> {
    /// After CHANGE REPLICATION.
    pub(super) fn change_replication(&mut self) -> ParseResult<StatementKind> {
        if self.eat("FILTER") {
            self.skip_statement();
            return Err(unserved("CHANGE REPLICATION FILTER"));
        }
        self.expect("SOURCE")?;
        self.expect("TO")?;
        let mut options = SourceOptions::default();
        loop {
            self.source_option(&mut options)?;
            if !self.eat_op(Op::Comma) {
                break;
            }
        }
        options.channel = self.channel()?;
        Ok(StatementKind::ChangeSource(Box::new(options)))
    }

    fn source_option(&mut self, options: &mut SourceOptions) -> ParseResult<()> {
        if let Some(name) = self.eat_any(UNSERVED) {
            self.skip_statement();
            return Err(unserved(format_args!("CHANGE REPLICATION SOURCE TO {name}")));
        }
        if self.eat_any(PLACES).is_some() {
            self.skip_statement();
            return Err(refused(ErrorCode::BAD_REPLICA_AUTO_POSITION.with(&[])));
        }
        let texts = [
            ("SOURCE_HOST", &mut options.host),
            ("SOURCE_USER", &mut options.user),
            ("SOURCE_PASSWORD", &mut options.password),
            ("SOURCE_SSL_CA", &mut options.ssl_ca),
        ];
        for (name, option) in texts {
            if self.eat(name) {
                self.expect_op(Op::Eq)?;
                *option = Some(self.string()?);
                return Ok(());
            }
        }
        let numbers = [
            "SOURCE_PORT",
            "SOURCE_CONNECT_RETRY",
            "SOURCE_AUTO_POSITION",
            "SOURCE_SSL",
            "SOURCE_SSL_VERIFY_SERVER_CERT",
            "GET_SOURCE_PUBLIC_KEY",
        ];
        let Some(name) = self.eat_any(&numbers) else { return Err(self.error()) };
        self.expect_op(Op::Eq)?;
        let number = self.unsigned()?;
        let wrong = |_| refused(ErrorCode::WRONG_ARGUMENTS.with(&[&name]));
        match (name, number) {
            ("SOURCE_PORT", port) => options.port = Some(port.try_into().map_err(wrong)?),
            ("SOURCE_CONNECT_RETRY", seconds) => {
                options.connect_retry_seconds = Some(seconds.try_into().map_err(wrong)?);
            }
            ("SOURCE_AUTO_POSITION", on) => options.auto_position = Some(on != 0),
            // Passwords are sent under the source's public key where the connection is not encrypted.
            ("GET_SOURCE_PUBLIC_KEY", 1) => {}
            ("SOURCE_SSL", on) => options.ssl = Some(on != 0),
            ("SOURCE_SSL_VERIFY_SERVER_CERT", on) => options.ssl_verify_server_cert = Some(on != 0),
            _ => return Err(unserved(format_args!("CHANGE REPLICATION SOURCE TO {name} = {number}"))),
        }
        Ok(())
    }

    /// After START REPLICA.
    pub(super) fn start_replica(&mut self) -> ParseResult<StatementKind> {
        self.whole_replica("START REPLICA")?;
        if let Some(word) = self.eat_any(&["UNTIL", "USER", "PASSWORD", "DEFAULT_AUTH", "PLUGIN_DIR"]) {
            self.skip_statement();
            return Err(unserved(format_args!("START REPLICA ... {word}")));
        }
        Ok(StatementKind::StartReplica { channel: self.channel()? })
    }

    /// After STOP REPLICA.
    pub(super) fn stop_replica(&mut self) -> ParseResult<StatementKind> {
        self.whole_replica("STOP REPLICA")?;
        Ok(StatementKind::StopReplica { channel: self.channel()? })
    }

    /// After RESET REPLICA.
    pub(super) fn reset_replica(&mut self) -> ParseResult<StatementKind> {
        let all = self.eat("ALL");
        Ok(StatementKind::ResetReplica { all, channel: self.channel()?, first_log: None })
    }

    /// After PROMOTE REPLICA: `CHECK` or `UNDO` or neither, and options.
    pub(super) fn promote_replica(&mut self) -> ParseResult<StatementKind> {
        let action = match self.eat_any(&["CHECK", "UNDO"]) {
            Some("CHECK") => PromoteAction::Check,
            Some(_) => PromoteAction::Undo,
            None => PromoteAction::Promote,
        };
        let mut options = PromoteOptions { action, ..PromoteOptions::default() };
        if !self.at_statement_end() {
            loop {
                self.promote_option(&mut options)?;
                if !self.eat_op(Op::Comma) {
                    break;
                }
            }
        }
        Ok(StatementKind::PromoteReplica(Box::new(options)))
    }

    fn promote_option(&mut self, options: &mut PromoteOptions) -> ParseResult<()> {
        const NAMES: [&str; 7] = [
            "TIMEOUT",
            "VERIFY",
            "VERIFY_TABLES",
            "ALLOW_LEFT_OUT",
            "ACCOUNTS",
            "SOURCE_USER",
            "SOURCE_PASSWORD",
        ];
        let Some(name) = self.eat_any(&NAMES) else { return Err(self.error()) };
        self.expect_op(Op::Eq)?;
        match name {
            "TIMEOUT" => {
                let seconds = self.unsigned()?.try_into().ok().filter(|seconds| *seconds > 0);
                let wrong = || refused(ErrorCode::WRONG_ARGUMENTS.with(&[&name]));
                options.timeout_seconds = Some(seconds.ok_or_else(wrong)?);
            }
            "VERIFY" => {
                let all = [
                    ("BEFORE", PromoteVerify::Before),
                    ("STOPPED", PromoteVerify::Stopped),
                    ("BOTH", PromoteVerify::Both),
                    ("NONE", PromoteVerify::None),
                ];
                let found = all.into_iter().find(|(word, _)| self.eat(word));
                options.verify = found.ok_or_else(|| self.error())?.1;
            }
            "VERIFY_TABLES" => options.verify_tables = self.strings()?,
            "ALLOW_LEFT_OUT" => options.allow_left_out = self.strings()?,
            "ACCOUNTS" => options.accounts = self.unsigned()? != 0,
            "SOURCE_USER" => options.source_user = Some(self.string()?),
            _ => options.source_password = Some(self.string()?),
        }
        Ok(())
    }

    /// Texts in parentheses.
    fn strings(&mut self) -> ParseResult<Vec<String>> {
        self.expect_op(Op::LParen)?;
        let strings = self.comma_separated(Self::string)?;
        self.expect_op(Op::RParen)?;
        Ok(strings)
    }

    /// The threads that receive and apply begin and end together: both may be named, but not one.
    fn whole_replica(&mut self, statement: &str) -> ParseResult<()> {
        let (mut receives, mut applies) = (false, false);
        loop {
            match self.eat_any(&["IO_THREAD", "SQL_THREAD"]) {
                Some("IO_THREAD") => receives = true,
                Some(_) => applies = true,
                None if receives || applies => return Err(self.error()),
                None => return Ok(()),
            }
            if !self.eat_op(Op::Comma) {
                break;
            }
        }
        if receives == applies {
            return Ok(());
        }
        self.skip_statement();
        let named = if receives { "IO_THREAD" } else { "SQL_THREAD" };
        Err(unserved(format_args!("{statement} {named}")))
    }

    /// `[FOR CHANNEL 'name']`. Names are the same in upper and lower case, and shown in lower case; '' is the default channel.
    pub(super) fn channel(&mut self) -> ParseResult<Option<String>> {
        if !self.eat_all(&["FOR", "CHANNEL"]) {
            return Ok(None);
        }
        Ok(Some(self.string()?.to_lowercase()))
    }
}
