//! Accounts and what is granted to them: CREATE USER, ALTER USER, GRANT, REVOKE.

use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::unserved;
use crate::parse::statement::*;

impl Parser<'_> {
    /// `'name'@'host'`, `name@host`, `name`, CURRENT_USER[()]
    pub(super) fn user_name(&mut self) -> ParseResult<UserName> {
        if self.eat("CURRENT_USER") {
            if self.eat_op(Op::LParen) {
                self.expect_op(Op::RParen)?;
            }
            return Ok(UserName::CurrentUser);
        }
        let name = self.name()?;
        let host = if self.eat_op(Op::At) { self.name()?.to_lowercase() } else { "%".into() };
        Ok(UserName::Named { name, host })
    }

    /// After CREATE USER or ALTER USER.
    pub(super) fn user_specs(&mut self) -> ParseResult<(Vec<UserSpec>, AccountOptions)> {
        let users = self.comma_separated(Self::user_spec)?;
        let mut options = AccountOptions::default();
        self.no_requirement()?;
        if self.is_any_word(&["WITH", "COMMENT", "ATTRIBUTE"]) {
            return Err(unserved("limits, comments and attributes of accounts"));
        }
        loop {
            if self.eat("ACCOUNT") {
                match self.eat_any(&["LOCK", "UNLOCK"]) {
                    Some(word) => options.locked = Some(word == "LOCK"),
                    None => return Err(self.error()),
                }
            } else if self.eat("PASSWORD") {
                self.default_of_passwords()?;
            } else {
                return Ok((users, options));
            }
        }
    }

    /// `REQUIRE NONE`
    fn no_requirement(&mut self) -> ParseResult<()> {
        if self.eat("REQUIRE") && !self.eat("NONE") {
            return Err(unserved("REQUIRE of accounts"));
        }
        Ok(())
    }

    /// After PASSWORD: the defaults, which SHOW CREATE USER writes, ask for nothing.
    fn default_of_passwords(&mut self) -> ParseResult<()> {
        const DEFAULTS: &[&[&str]] = &[
            &["EXPIRE", "DEFAULT"],
            &["EXPIRE", "NEVER"],
            &["HISTORY", "DEFAULT"],
            &["REUSE", "INTERVAL", "DEFAULT"],
            &["REQUIRE", "CURRENT", "DEFAULT"],
        ];
        match DEFAULTS.iter().any(|words| self.eat_all(words)) {
            true => Ok(()),
            false => Err(unserved("rules for the passwords of accounts")),
        }
    }

    fn user_spec(&mut self) -> ParseResult<UserSpec> {
        let user = self.user_name()?;
        let mut spec = UserSpec { user, plugin: None, password: None, auth_string: None };
        if !self.eat("IDENTIFIED") {
            return Ok(spec);
        }
        if self.eat("WITH") {
            spec.plugin = Some(self.name()?.to_lowercase());
            if self.eat("AS") {
                spec.auth_string = Some(match self.peek() {
                    TokenKind::Bytes(bytes) => {
                        let bytes = bytes.clone();
                        self.advance();
                        bytes
                    }
                    _ => self.string_bytes()?,
                });
                return Ok(spec);
            }
            if !self.is_word("BY") {
                return Ok(spec);
            }
        }
        self.expect("BY")?;
        spec.password = Some(self.string()?);
        Ok(spec)
    }

    /// After GRANT.
    pub(super) fn grant(&mut self) -> ParseResult<StatementKind> {
        let privileges = self.privileges("TO")?;
        let on = self.grant_target()?;
        self.expect("TO")?;
        let to = self.comma_separated(Self::user_name)?;
        let grant_option = self.eat("WITH");
        if grant_option {
            self.expect_all(&["GRANT", "OPTION"])?;
        }
        if self.is_word("AS") {
            return Err(unserved("GRANT AS"));
        }
        Ok(StatementKind::Grant { privileges, on, to, grant_option })
    }

    /// After REVOKE.
    pub(super) fn revoke(&mut self) -> ParseResult<StatementKind> {
        let if_exists = self.if_exists();
        let everything = self.position();
        if self.eat("ALL") {
            self.eat("PRIVILEGES");
            if self.eat_op(Op::Comma) && self.eat_all(&["GRANT", "OPTION", "FROM"]) {
                let from = self.comma_separated(Self::user_name)?;
                return Ok(StatementKind::RevokeAll { from, if_exists });
            }
            self.rewind(everything);
        }
        let privileges = self.privileges("FROM")?;
        let on = self.grant_target()?;
        self.expect("FROM")?;
        let from = self.comma_separated(Self::user_name)?;
        if self.is_words(&["IGNORE", "UNKNOWN"]) {
            return Err(unserved("IGNORE UNKNOWN USER"));
        }
        Ok(StatementKind::Revoke { privileges, on, from, if_exists })
    }

    /// A list of privileges, and ON; without it, the names are those of roles.
    fn privileges(&mut self, link: &str) -> ParseResult<Vec<PrivilegeSpec>> {
        let privileges = self.comma_separated(Self::privilege)?;
        if self.is_word(link) {
            return Err(unserved("roles"));
        }
        self.expect("ON")?;
        Ok(privileges)
    }

    fn privilege(&mut self) -> ParseResult<PrivilegeSpec> {
        if self.eat("ALL") {
            self.eat("PRIVILEGES");
            return Ok(PrivilegeSpec::All);
        }
        if self.is_word("PROXY") {
            return Err(unserved("PROXY"));
        }
        if matches!(self.peek(), TokenKind::String(_) | TokenKind::QuotedIdent(_)) {
            self.user_name()?;
            return Err(unserved("roles"));
        }
        let mut words = Vec::new();
        while !self.is_any_word(&["ON", "TO", "FROM"]) && self.word_upper().is_some() {
            words.extend(self.word_upper());
            self.advance();
        }
        if self.is_op(Op::LParen) {
            return Err(unserved("privileges on columns"));
        }
        if words.is_empty() { Err(self.error()) } else { Ok(PrivilegeSpec::Named(words.join(" "))) }
    }

    /// `*.*`, `*`, `db.*`, `[TABLE] [db.]table`
    fn grant_target(&mut self) -> ParseResult<GrantTarget> {
        if self.is_any_word(&["PROCEDURE", "FUNCTION", "LIBRARY"])
            && !matches!(self.peek_ahead(1), TokenKind::Op(_))
        {
            return Err(unserved("privileges on routines"));
        }
        self.eat("TABLE");
        if self.eat_op(Op::Star) {
            if self.eat_op(Op::Dot) {
                self.expect_op(Op::Star)?;
                return Ok(GrantTarget::All);
            }
            return Ok(GrantTarget::CurrentDatabase);
        }
        if *self.peek_ahead(1) == TokenKind::Op(Op::Dot) && *self.peek_ahead(2) == TokenKind::Op(Op::Star) {
            let database = self.ident()?.name;
            self.advance();
            self.advance();
            return Ok(GrantTarget::Database(database));
        }
        self.object_name().map(GrantTarget::Table)
    }
}
