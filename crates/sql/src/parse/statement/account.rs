//! What statements say of accounts and privileges.

use crate::parse::ast::{Ident, ObjectName};

/// `'name'@'host'`; no host means `%`.
#[derive(Clone, Debug, PartialEq)]
pub enum UserName {
    Named { name: String, host: String },
    CurrentUser,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UserSpec {
    pub user: UserName,
    pub plugin: Option<String>,
    /// `IDENTIFIED BY '…'`
    pub password: Option<String>,
    /// `IDENTIFIED WITH plugin AS '…'`: the stored form.
    pub auth_string: Option<Vec<u8>>,
    /// `REPLACE '…'`
    pub current: Option<String>,
    /// RETAIN CURRENT PASSWORD
    pub retains: bool,
    /// DISCARD OLD PASSWORD
    pub discards: bool,
}

impl UserSpec {
    /// One that says nothing but a name.
    pub fn new(user: UserName) -> Self {
        Self {
            user,
            plugin: None,
            password: None,
            auth_string: None,
            current: None,
            retains: false,
            discards: false,
        }
    }

    /// Whether it gives another password, or another plugin.
    pub fn identifies(&self) -> bool {
        self.password.is_some() || self.plugin.is_some() || self.auth_string.is_some()
    }
}

/// What CREATE USER and ALTER USER say of all their accounts. In rules, the inner `None` is DEFAULT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOptions {
    /// ACCOUNT LOCK, ACCOUNT UNLOCK
    pub locked: Option<bool>,
    pub tls: Option<TlsRequirement>,
    pub expire: Option<PasswordExpiry>,
    pub history: Option<Option<u32>>,
    pub reuse_days: Option<Option<u32>>,
    pub require_current: Option<Option<bool>>,
    pub failed_attempts: Option<u16>,
    /// The inner `None` is UNBOUNDED.
    pub lock_days: Option<Option<u16>>,
}

/// `REQUIRE …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsRequirement {
    None,
    Ssl,
    X509,
    /// What is not said is empty.
    Specified {
        subject: String,
        issuer: String,
        cipher: String,
    },
}

/// `PASSWORD EXPIRE …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordExpiry {
    Now,
    Default,
    /// 0 is NEVER.
    Days(u32),
}

/// Roles in SET ROLE and SET DEFAULT ROLE.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleSet {
    None,
    All,
    Default,
    AllExcept(Vec<UserName>),
    List(Vec<UserName>),
}

/// What REVOKE does where there is nothing to revoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevokeHow {
    pub if_exists: bool,
    /// IGNORE UNKNOWN USER
    pub ignore_unknown: bool,
}

/// A privilege in GRANT or REVOKE.
#[derive(Clone, Debug, PartialEq)]
pub enum PrivilegeSpec {
    /// ALL [PRIVILEGES]
    All,
    /// USAGE, or a privilege's name in upper case.
    Named(String),
    OnColumns {
        name: String,
        columns: Vec<Ident>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum GrantTarget {
    /// `*.*`
    All,
    /// `*`
    CurrentDatabase,
    /// A pattern, as in LIKE.
    Database(String),
    Table(ObjectName),
    Procedure(ObjectName),
}
