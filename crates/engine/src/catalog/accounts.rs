//! Accounts: who may sign in, and what is granted to them.
//!
//! The catalog keeps grants as they were made: a set of privileges for each scope. What a statement needs, and how the
//! scopes add up, is the business of sessions.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use avocet_base::codec::{Malformed, Put, Reader};

/// A set of MySQL's privileges. The bits are in logs and checkpoints: they are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Privileges(u64);

macro_rules! privileges {
    ($($bit:literal $name:ident $text:literal)*) => {
        impl Privileges {
            $(pub const $name: Self = Self(1 << $bit);)*

            /// Each privilege with MySQL's name of it, in the order in which MySQL lists them.
            pub const NAMES: &[(Self, &str)] = &[$((Self::$name, $text)),*];
        }
    };
}

privileges! {
    0 SELECT "SELECT"
    1 INSERT "INSERT"
    2 UPDATE "UPDATE"
    3 DELETE "DELETE"
    4 CREATE "CREATE"
    5 DROP "DROP"
    6 RELOAD "RELOAD"
    7 SHUTDOWN "SHUTDOWN"
    8 PROCESS "PROCESS"
    9 FILE "FILE"
    10 GRANT "GRANT OPTION"
    11 REFERENCES "REFERENCES"
    12 INDEX "INDEX"
    13 ALTER "ALTER"
    14 SHOW_DATABASES "SHOW DATABASES"
    15 SUPER "SUPER"
    16 CREATE_TEMPORARY_TABLES "CREATE TEMPORARY TABLES"
    17 LOCK_TABLES "LOCK TABLES"
    18 EXECUTE "EXECUTE"
    19 REPLICATION_SLAVE "REPLICATION SLAVE"
    20 REPLICATION_CLIENT "REPLICATION CLIENT"
    21 CREATE_VIEW "CREATE VIEW"
    22 SHOW_VIEW "SHOW VIEW"
    23 CREATE_ROUTINE "CREATE ROUTINE"
    24 ALTER_ROUTINE "ALTER ROUTINE"
    25 CREATE_USER "CREATE USER"
    26 EVENT "EVENT"
    27 TRIGGER "TRIGGER"
    28 CREATE_TABLESPACE "CREATE TABLESPACE"
    29 CREATE_ROLE "CREATE ROLE"
    30 DROP_ROLE "DROP ROLE"
    32 CONNECTION_ADMIN "CONNECTION_ADMIN"
    33 SYSTEM_USER "SYSTEM_USER"
    34 SYSTEM_VARIABLES_ADMIN "SYSTEM_VARIABLES_ADMIN"
}

impl Privileges {
    pub const NONE: Self = Self(0);
    /// All that there are, GRANT OPTION among them.
    pub const ALL: Self = Self(Self::STATIC.0 | Self::DYNAMIC.0);

    /// Those that MySQL has a column for in `mysql.user`.
    pub const STATIC: Self = Self((1 << 31) - 1);

    /// Those that MySQL keeps by name; SHOW GRANTS lists them in a line of their own.
    pub const DYNAMIC: Self =
        Self(Self::CONNECTION_ADMIN.0 | Self::SYSTEM_USER.0 | Self::SYSTEM_VARIABLES_ADMIN.0);

    /// What may be granted on a table.
    pub const OF_TABLES: Self = Self(
        Self::SELECT.0
            | Self::INSERT.0
            | Self::UPDATE.0
            | Self::DELETE.0
            | Self::CREATE.0
            | Self::DROP.0
            | Self::GRANT.0
            | Self::REFERENCES.0
            | Self::INDEX.0
            | Self::ALTER.0
            | Self::CREATE_VIEW.0
            | Self::SHOW_VIEW.0
            | Self::TRIGGER.0,
    );

    /// What may be granted on a database.
    pub const OF_DATABASES: Self = Self(
        Self::OF_TABLES.0
            | Self::CREATE_TEMPORARY_TABLES.0
            | Self::LOCK_TABLES.0
            | Self::EXECUTE.0
            | Self::CREATE_ROUTINE.0
            | Self::ALTER_ROUTINE.0
            | Self::EVENT.0,
    );

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is among these.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those of a set that have a name, in MySQL's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(one, _)| self.contains(*one)).map(|(_, name)| *name)
    }

    /// The privilege of a name in upper case.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(one, _)| *one)
    }
}

impl BitOr for Privileges {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

impl BitOrAssign for Privileges {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

/// What privileges are granted on, in the order in which SHOW GRANTS lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantScope {
    Global,
    /// A pattern of database names, as in LIKE.
    Database(String),
    Table {
        database: String,
        table: String,
    },
}

pub type Grants = BTreeMap<GrantScope, Privileges>;

/// An account: MySQL's `'name'@'host'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDef {
    pub name: String,
    pub host: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// What the plugin keeps of the password; empty for no password.
    pub auth: Vec<u8>,
    /// May not sign in.
    pub locked: bool,
    /// No set in it is empty.
    pub grants: Grants,
}

const WHAT: &str = "account";

impl UserDef {
    /// An account without a password that may do nothing but sign in.
    pub fn new(name: &str, host: &str) -> Self {
        Self {
            name: name.into(),
            host: host.into(),
            plugin: "caching_sha2_password".into(),
            auth: Vec::new(),
            locked: false,
            grants: Grants::new(),
        }
    }

    /// Adds privileges to those of a scope.
    pub fn grant(&mut self, scope: GrantScope, privileges: Privileges) {
        if !privileges.is_empty() {
            *self.grants.entry(scope).or_default() |= privileges;
        }
    }

    /// Takes privileges from those of a scope; false if there were none of any kind.
    pub fn revoke(&mut self, scope: &GrantScope, privileges: Privileges) -> bool {
        let Some(held) = self.grants.get_mut(scope) else { return false };
        *held = held.without(privileges);
        if held.is_empty() {
            self.grants.remove(scope);
        }
        true
    }

    /// What 0.1 let accounts do, which knew of no privileges: `root` everything, others everything but to rule over the
    /// server and its accounts.
    fn grants_of_0_1(name: &str) -> Grants {
        let rules = Privileges::GRANT
            | Privileges::SUPER
            | Privileges::CREATE_USER
            | Privileges::CREATE_ROLE
            | Privileges::DROP_ROLE
            | Privileges::SHUTDOWN
            | Privileges::RELOAD
            | Privileges::PROCESS
            | Privileges::FILE
            | Privileges::REPLICATION_CLIENT
            | Privileges::REPLICATION_SLAVE
            | Privileges::CREATE_TABLESPACE
            | Privileges::DYNAMIC;
        let all = if name == "root" { Privileges::ALL } else { Privileges::ALL.without(rules) };
        Grants::from([(GrantScope::Global, all)])
    }

    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        to.put_str(&self.name);
        to.put_str(&self.host);
        to.put_str(&self.plugin);
        to.put_bytes(&self.auth);
        to.put_u8(u8::from(self.locked));
        to.put_varint(self.grants.len() as u64);
        for (scope, privileges) in &self.grants {
            match scope {
                GrantScope::Global => to.put_u8(0),
                GrantScope::Database(pattern) => {
                    to.put_u8(1);
                    to.put_str(pattern);
                }
                GrantScope::Table { database, table } => {
                    to.put_u8(2);
                    to.put_str(database);
                    to.put_str(table);
                }
            }
            to.put_varint(privileges.0);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let string = |reader: &mut Reader<'_>| reader.str(WHAT).map(str::to_owned);
        let mut user = Self::decode_names(reader)?;
        user.locked = reader.u8(WHAT)? != 0;
        for _ in 0..reader.varint(WHAT)? {
            let scope = match reader.u8(WHAT)? {
                0 => GrantScope::Global,
                1 => GrantScope::Database(string(reader)?),
                2 => GrantScope::Table { database: string(reader)?, table: string(reader)? },
                _ => return Err(reader.malformed(WHAT)),
            };
            user.grants.insert(scope, Privileges(reader.varint(WHAT)?));
        }
        Ok(user)
    }

    /// The form of 0.1, without privileges.
    pub(super) fn decode_0_1(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let user = Self::decode_names(reader)?;
        Ok(Self { grants: Self::grants_of_0_1(&user.name), ..user })
    }

    fn decode_names(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            name: reader.str(WHAT)?.to_owned(),
            host: reader.str(WHAT)?.to_owned(),
            plugin: reader.str(WHAT)?.to_owned(),
            auth: reader.bytes(WHAT)?.to_vec(),
            locked: false,
            grants: Grants::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_privileges() {
        let some = Privileges::SELECT | Privileges::CREATE_TEMPORARY_TABLES | Privileges::GRANT;
        assert_eq!(some.to_string(), "SELECT, GRANT OPTION, CREATE TEMPORARY TABLES");
        assert!(some.contains(Privileges::SELECT | Privileges::GRANT) && some.contains(Privileges::NONE));
        assert!(!some.contains(Privileges::SELECT | Privileges::DROP));
        assert!(some.intersects(Privileges::SELECT | Privileges::DROP) && !some.intersects(Privileges::DROP));
        assert_eq!(some.without(Privileges::GRANT).names().count(), 2);
        for (one, name) in Privileges::NAMES {
            assert_eq!(Privileges::by_name(name), Some(*one));
            assert!(Privileges::ALL.contains(*one));
        }
        assert_eq!(Privileges::ALL.names().count(), Privileges::NAMES.len());
    }

    #[test]
    fn granted_and_revoked() {
        let mut user = UserDef::new("u", "%");
        let scope = GrantScope::Database("d".into());
        user.grant(scope.clone(), Privileges::SELECT | Privileges::INSERT);
        user.grant(scope.clone(), Privileges::DROP);
        assert!(user.revoke(&scope, Privileges::SELECT | Privileges::UPDATE));
        assert_eq!(user.grants[&scope], Privileges::INSERT | Privileges::DROP);
        assert!(user.revoke(&scope, Privileges::ALL));
        assert!(user.grants.is_empty() && !user.revoke(&scope, Privileges::SELECT));
    }

    /// What 0.1 wrote: names, plugin, password.
    #[test]
    fn accounts_of_0_1_keep_their_data_and_root_rules() {
        let read = |name: &str| {
            let mut bytes = Vec::new();
            for text in [name, "%", "mysql_native_password"] {
                bytes.put_str(text);
            }
            bytes.put_bytes(b"*AB");
            let mut reader = Reader::new(&bytes);
            let user = UserDef::decode_0_1(&mut reader).expect("valid");
            reader.finish(WHAT).expect("all was read");
            user
        };
        assert_eq!(read("root").grants[&GrantScope::Global], Privileges::ALL);
        let other = read("app");
        assert_eq!((other.auth.as_slice(), other.locked), (b"*AB".as_slice(), false));
        let held = other.grants[&GrantScope::Global];
        assert!(held.contains(Privileges::OF_DATABASES.without(Privileges::GRANT)));
        for rule in [Privileges::GRANT, Privileges::SUPER, Privileges::CREATE_USER, Privileges::FILE] {
            assert!(!held.intersects(rule));
        }
    }
}
