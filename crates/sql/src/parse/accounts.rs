//! Accounts and what is granted to them: CREATE USER, ALTER USER, GRANT, REVOKE, roles.

use std::ops::RangeInclusive;

use avocet_types::error::ErrorCode;

use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::{refused, unserved};
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

    pub(super) fn user_names(&mut self) -> ParseResult<Vec<UserName>> {
        self.comma_separated(Self::user_name)
    }

    /// After CREATE USER.
    pub(super) fn create_user(&mut self) -> ParseResult<StatementKind> {
        let if_not_exists = self.if_not_exists();
        let users = self.comma_separated(Self::user_spec)?;
        let default_roles = if self.eat_all(&["DEFAULT", "ROLE"]) { self.user_names()? } else { Vec::new() };
        let options = Box::new(self.account_options()?);
        Ok(StatementKind::CreateUser { users, if_not_exists, default_roles, options })
    }

    /// After ALTER USER.
    pub(super) fn alter_user(&mut self) -> ParseResult<StatementKind> {
        let if_exists = self.if_exists();
        let users = self.comma_separated(Self::user_spec)?;
        if let [UserSpec { user, .. }] = users.as_slice()
            && self.eat_all(&["DEFAULT", "ROLE"])
        {
            let (roles, user) = (self.role_set(&["NONE", "ALL"])?, user.clone());
            return Ok(StatementKind::SetDefaultRole { roles, users: vec![user], if_exists });
        }
        let options = Box::new(self.account_options()?);
        Ok(StatementKind::AlterUser { users, if_exists, options })
    }

    /// After CREATE ROLE.
    pub(super) fn create_role(&mut self) -> ParseResult<StatementKind> {
        let if_not_exists = self.if_not_exists();
        Ok(StatementKind::CreateRole { roles: self.user_names()?, if_not_exists })
    }

    /// After DROP ROLE.
    pub(super) fn drop_role(&mut self) -> ParseResult<StatementKind> {
        let if_exists = self.if_exists();
        Ok(StatementKind::DropRole { roles: self.user_names()?, if_exists })
    }

    /// After SET, where ROLE or DEFAULT ROLE is.
    pub(super) fn set_role(&mut self) -> ParseResult<Option<StatementKind>> {
        if self.eat_all(&["DEFAULT", "ROLE"]) {
            let roles = self.role_set(&["NONE", "ALL"])?;
            self.expect("TO")?;
            let users = self.user_names()?;
            return Ok(Some(StatementKind::SetDefaultRole { roles, users, if_exists: false }));
        }
        // `SET role = …` is of a variable.
        if !self.is_word("ROLE") || matches!(self.peek_ahead(1), TokenKind::Op(Op::Eq | Op::Assign)) {
            return Ok(None);
        }
        self.advance();
        Ok(Some(StatementKind::SetRole(self.role_set(&["NONE", "ALL", "DEFAULT"])?)))
    }

    /// NONE, ALL, DEFAULT, ALL EXCEPT …, or a list.
    fn role_set(&mut self, words: &[&'static str]) -> ParseResult<RoleSet> {
        Ok(match self.eat_any(words) {
            Some("NONE") => RoleSet::None,
            Some("DEFAULT") => RoleSet::Default,
            Some(_) if words.contains(&"DEFAULT") && self.eat("EXCEPT") => {
                RoleSet::AllExcept(self.user_names()?)
            }
            Some(_) => RoleSet::All,
            None => RoleSet::List(self.user_names()?),
        })
    }

    /// After WITH: limits of an account, of which zero is none.
    fn no_limits(&mut self) -> ParseResult<()> {
        const LIMITS: [&str; 4] = [
            "MAX_QUERIES_PER_HOUR",
            "MAX_UPDATES_PER_HOUR",
            "MAX_CONNECTIONS_PER_HOUR",
            "MAX_USER_CONNECTIONS",
        ];
        self.eat_any(&LIMITS).ok_or_else(|| self.error())?;
        loop {
            if self.unsigned()? > 0 {
                return Err(unserved("limits of accounts"));
            }
            if self.eat_any(&LIMITS).is_none() {
                return Ok(());
            }
        }
    }

    /// What follows the accounts of CREATE USER and ALTER USER.
    fn account_options(&mut self) -> ParseResult<AccountOptions> {
        let mut options = AccountOptions::default();
        if self.eat("REQUIRE") {
            options.tls = Some(self.tls_requirement()?);
        }
        if self.eat("WITH") {
            self.no_limits()?;
        }
        loop {
            if self.eat("ACCOUNT") {
                match self.eat_any(&["LOCK", "UNLOCK"]) {
                    Some(word) => options.locked = Some(word == "LOCK"),
                    None => return Err(self.error()),
                }
            } else if self.eat("PASSWORD") {
                self.password_rule(&mut options)?;
            } else if self.eat("FAILED_LOGIN_ATTEMPTS") {
                options.failed_attempts =
                    Some(within("FAILED_LOGIN_ATTEMPTS", self.unsigned()?, 0..=32_767)?);
            } else if self.eat("PASSWORD_LOCK_TIME") {
                options.lock_days = Some(match self.eat("UNBOUNDED") {
                    true => None,
                    false => Some(within("PASSWORD_LOCK_TIME", self.unsigned()?, 0..=32_767)?),
                });
            } else if self.is_any_word(&["COMMENT", "ATTRIBUTE"]) {
                return Err(unserved("comments and attributes of accounts"));
            } else {
                return Ok(options);
            }
        }
    }

    /// After REQUIRE.
    fn tls_requirement(&mut self) -> ParseResult<TlsRequirement> {
        match self.eat_any(&["NONE", "SSL", "X509"]) {
            Some("NONE") => return Ok(TlsRequirement::None),
            Some("SSL") => return Ok(TlsRequirement::Ssl),
            Some(_) => return Ok(TlsRequirement::X509),
            None => {}
        }
        let (mut subject, mut issuer, mut cipher) = (None, None, None);
        loop {
            let word = self.eat_any(&["SUBJECT", "ISSUER", "CIPHER"]);
            let option = match word {
                Some("SUBJECT") => &mut subject,
                Some("ISSUER") => &mut issuer,
                Some(_) => &mut cipher,
                None if subject.is_none() && issuer.is_none() && cipher.is_none() => {
                    return Err(self.error());
                }
                None => break,
            };
            if option.replace(self.string()?).is_some() {
                return Err(refused(ErrorCode::DUP_ARGUMENT.with(&[&word.unwrap_or_default()])));
            }
            self.eat("AND");
        }
        Ok(TlsRequirement::Specified {
            subject: subject.unwrap_or_default(),
            issuer: issuer.unwrap_or_default(),
            cipher: cipher.unwrap_or_default(),
        })
    }

    /// After PASSWORD.
    fn password_rule(&mut self, options: &mut AccountOptions) -> ParseResult<()> {
        if self.eat("EXPIRE") {
            options.expire = Some(if self.eat("DEFAULT") {
                PasswordExpiry::Default
            } else if self.eat("NEVER") {
                PasswordExpiry::Days(0)
            } else if self.eat("INTERVAL") {
                PasswordExpiry::Days(self.days()?)
            } else {
                PasswordExpiry::Now
            });
        } else if self.eat("HISTORY") {
            options.history = Some(match self.eat("DEFAULT") {
                true => None,
                false => Some(within("PASSWORD HISTORY", self.unsigned()?, 0..=65_535)?),
            });
        } else if self.eat_all(&["REUSE", "INTERVAL"]) {
            options.reuse_days = Some(match self.eat("DEFAULT") {
                true => None,
                false => {
                    let days = self.unsigned()?;
                    self.expect("DAY")?;
                    Some(within("DAY", days, 0..=65_535)?)
                }
            });
        } else {
            self.expect_all(&["REQUIRE", "CURRENT"])?;
            options.require_current = Some(match self.eat_any(&["DEFAULT", "OPTIONAL"]) {
                Some("DEFAULT") => None,
                Some(_) => Some(false),
                None => Some(true),
            });
        }
        Ok(())
    }

    /// `n DAY`
    fn days(&mut self) -> ParseResult<u32> {
        let days = self.unsigned()?;
        self.expect("DAY")?;
        within("DAY", days, 1..=65_535)
    }

    fn user_spec(&mut self) -> ParseResult<UserSpec> {
        let mut spec =
            UserSpec::new(match self.is_word("USER") && *self.peek_ahead(1) == TokenKind::Op(Op::LParen) {
                true => {
                    self.advance();
                    self.advance();
                    self.expect_op(Op::RParen)?;
                    UserName::CurrentUser
                }
                false => self.user_name()?,
            });
        if self.eat_all(&["DISCARD", "OLD", "PASSWORD"]) {
            spec.discards = true;
            return Ok(spec);
        }
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
                spec.retains = self.retain()?;
                return Ok(spec);
            }
            if !self.is_word("BY") {
                return Ok(spec);
            }
        }
        self.expect("BY")?;
        if self.is_words(&["RANDOM", "PASSWORD"]) {
            return Err(unserved("random passwords"));
        }
        spec.password = Some(self.string()?);
        if self.is_any_word(&["AND"]) {
            return Err(unserved("several factors of accounts"));
        }
        spec.current = self.replaced()?;
        spec.retains = self.retain()?;
        Ok(spec)
    }

    /// `REPLACE 'current password'`
    pub(super) fn replaced(&mut self) -> ParseResult<Option<String>> {
        if self.eat("REPLACE") { self.string().map(Some) } else { Ok(None) }
    }

    /// RETAIN CURRENT PASSWORD
    pub(super) fn retain(&mut self) -> ParseResult<bool> {
        let retains = self.eat("RETAIN");
        if retains {
            self.expect_all(&["CURRENT", "PASSWORD"])?;
        }
        Ok(retains)
    }

    /// After GRANT.
    pub(super) fn grant(&mut self) -> ParseResult<StatementKind> {
        if let Some(roles) = self.roles("TO") {
            let to = self.user_names()?;
            let admin_option = self.eat("WITH");
            if admin_option {
                self.expect_all(&["ADMIN", "OPTION"])?;
            }
            return Ok(StatementKind::GrantRoles { roles, to, admin_option });
        }
        let privileges = self.privileges()?;
        let on = self.grant_target()?;
        self.expect("TO")?;
        let to = self.user_names()?;
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
        if let Some(roles) = self.roles("FROM") {
            let from = self.user_names()?;
            let how = self.revoke_how(if_exists)?;
            return Ok(StatementKind::RevokeRoles { roles, from, how });
        }
        let everything = self.position();
        if self.eat("ALL") {
            self.eat("PRIVILEGES");
            if self.eat_op(Op::Comma) && self.eat_all(&["GRANT", "OPTION", "FROM"]) {
                let from = self.user_names()?;
                return Ok(StatementKind::RevokeAll { from, how: self.revoke_how(if_exists)? });
            }
            self.rewind(everything);
        }
        let privileges = self.privileges()?;
        let on = self.grant_target()?;
        self.expect("FROM")?;
        let from = self.user_names()?;
        let how = self.revoke_how(if_exists)?;
        Ok(StatementKind::Revoke { privileges, on, from, how })
    }

    /// At the end of a REVOKE.
    fn revoke_how(&mut self, if_exists: bool) -> ParseResult<RevokeHow> {
        let ignore_unknown = self.eat("IGNORE");
        if ignore_unknown {
            self.expect_all(&["UNKNOWN", "USER"])?;
        }
        Ok(RevokeHow { if_exists, ignore_unknown })
    }

    /// Names, if these are all there is before `link`: those of roles. Nothing is read otherwise.
    fn roles(&mut self, link: &str) -> Option<Vec<UserName>> {
        let at = self.position();
        match self.user_names() {
            Ok(roles) if self.eat(link) => Some(roles),
            _ => {
                self.rewind(at);
                None
            }
        }
    }

    /// A list of privileges, and ON.
    fn privileges(&mut self) -> ParseResult<Vec<PrivilegeSpec>> {
        let first = self.privilege()?;
        let mut privileges = vec![first];
        // ALL is all there can be.
        while privileges[0] != PrivilegeSpec::All && self.eat_op(Op::Comma) {
            privileges.push(self.privilege()?);
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
        let mut words = Vec::new();
        while !self.is_any_word(&["ON", "TO", "FROM"]) && self.word_upper().is_some() {
            words.extend(self.word_upper());
            self.advance();
        }
        let name = words.join(" ");
        if name.is_empty() {
            return Err(self.error());
        }
        if !self.is_op(Op::LParen) {
            return Ok(PrivilegeSpec::Named(name));
        }
        if !matches!(name.as_str(), "SELECT" | "INSERT" | "UPDATE" | "REFERENCES") {
            return Err(self.error());
        }
        Ok(PrivilegeSpec::OnColumns { name, columns: self.parenthesized_idents()? })
    }

    /// `*.*`, `*`, `db.*`, `[TABLE] [db.]table`, `PROCEDURE [db.]procedure`
    fn grant_target(&mut self) -> ParseResult<GrantTarget> {
        let is_kind = !matches!(self.peek_ahead(1), TokenKind::Op(_));
        if is_kind && self.eat("PROCEDURE") {
            return self.object_name().map(GrantTarget::Procedure);
        }
        if is_kind && self.is_any_word(&["FUNCTION", "LIBRARY"]) {
            return Err(unserved("stored functions and libraries"));
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

/// A number, if it is one of those that may be.
fn within<T: TryFrom<u64>>(what: &str, value: u64, range: RangeInclusive<u64>) -> ParseResult<T> {
    let wrong = || refused(ErrorCode::WRONG_VALUE.with(&[&what, &value]));
    if range.contains(&value) { T::try_from(value).map_err(|_| wrong()) } else { Err(wrong()) }
}
