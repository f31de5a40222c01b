//! Accounts: who may sign in, and what is granted to them.
//!
//! The catalog keeps grants as they were made: a set of privileges for each scope. What a statement needs, and how the
//! scopes add up, is the business of sessions.

mod privileges;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use avocet_base::codec::{Malformed, Put, Reader};

pub use privileges::Privileges;
pub use rules::{LoginRules, PasswordRules, TlsRule};

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
    /// Column names in lower case: they are the same in any.
    Column {
        database: String,
        table: String,
        column: String,
    },
    /// Procedure names in lower case, too.
    Procedure {
        database: String,
        procedure: String,
    },
}

pub type Grants = BTreeMap<GrantScope, Privileges>;

/// Name and host of an account.
pub type AccountId = (String, String);

/// An account: MySQL's `'name'@'host'`. A role is one, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDef {
    pub name: String,
    pub host: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// What the plugin keeps of the password; empty for no password.
    pub auth: Vec<u8>,
    /// Of the password before, while it may be used as well (`RETAIN CURRENT PASSWORD`).
    pub retained: Option<Vec<u8>>,
    /// May not sign in.
    pub locked: bool,
    pub password: PasswordRules,
    pub login: LoginRules,
    /// No set in it is empty.
    pub grants: Grants,
    /// What is not held on a database although it is granted for all (partial revokes); no set in it is empty.
    pub restrictions: BTreeMap<String, Privileges>,
    /// The roles that it was granted, and whether it may grant them on.
    pub roles: BTreeMap<AccountId, bool>,
    /// Those that are active after signing in.
    pub default_roles: BTreeSet<AccountId>,
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
            retained: None,
            locked: false,
            password: PasswordRules::default(),
            login: LoginRules::OPEN,
            grants: Grants::new(),
            restrictions: BTreeMap::new(),
            roles: BTreeMap::new(),
            default_roles: BTreeSet::new(),
        }
    }

    pub fn id(&self) -> AccountId {
        (self.name.clone(), self.host.clone())
    }

    /// What is granted for the whole server.
    pub fn global(&self) -> Privileges {
        self.grants.get(&GrantScope::Global).copied().unwrap_or_default()
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

    /// Takes back, on one database, some of what is granted for all.
    pub fn restrict(&mut self, database: &str, privileges: Privileges) {
        if !privileges.is_empty() {
            *self.restrictions.entry(database.into()).or_default() |= privileges;
        }
    }

    /// Ends restrictions; those of them that there were.
    pub fn lift(&mut self, database: &str, privileges: Privileges) -> Privileges {
        let Some(held) = self.restrictions.get_mut(database) else { return Privileges::NONE };
        let lifted = held.and(privileges);
        *held = held.without(privileges);
        if held.is_empty() {
            self.restrictions.remove(database);
        }
        lifted
    }

    /// Forgets a role.
    pub fn lose_role(&mut self, role: &AccountId) -> bool {
        self.default_roles.remove(role);
        self.roles.remove(role).is_some()
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
                GrantScope::Column { database, table, column } => {
                    to.put_u8(3);
                    to.put_str(database);
                    to.put_str(table);
                    to.put_str(column);
                }
                GrantScope::Procedure { database, procedure } => {
                    to.put_u8(4);
                    to.put_str(database);
                    to.put_str(procedure);
                }
            }
            to.put_varint(privileges.bits());
        }
        to.put_u8(u8::from(self.retained.is_some()));
        self.retained.iter().for_each(|auth| to.put_bytes(auth));
        self.password.encode(to);
        self.login.encode(to);
        to.put_varint(self.restrictions.len() as u64);
        for (database, privileges) in &self.restrictions {
            to.put_str(database);
            to.put_varint(privileges.bits());
        }
        to.put_varint(self.roles.len() as u64);
        for ((name, host), admin) in &self.roles {
            to.put_str(name);
            to.put_str(host);
            to.put_u8(u8::from(*admin));
        }
        to.put_varint(self.default_roles.len() as u64);
        for (name, host) in &self.default_roles {
            to.put_str(name);
            to.put_str(host);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut user = Self::decode_names(reader)?;
        user.locked = reader.u8(WHAT)? != 0;
        user.grants = Self::decode_grants_of(reader, Privileges::from_bits)?;
        if reader.u8(WHAT)? != 0 {
            user.retained = Some(reader.bytes(WHAT)?.to_vec());
        }
        user.password = PasswordRules::decode(reader)?;
        user.login = LoginRules::decode(reader)?;
        for _ in 0..reader.varint(WHAT)? {
            let database = reader.str(WHAT)?.to_owned();
            user.restrictions.insert(database, Privileges::from_bits(reader.varint(WHAT)?));
        }
        for _ in 0..reader.varint(WHAT)? {
            let role = decode_id(reader)?;
            user.roles.insert(role, reader.u8(WHAT)? != 0);
        }
        for _ in 0..reader.varint(WHAT)? {
            user.default_roles.insert(decode_id(reader)?);
        }
        Ok(user)
    }

    /// The form that had grants, and nothing else yet.
    pub(super) fn decode_with_grants(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut user = Self::decode_names(reader)?;
        user.locked = reader.u8(WHAT)? != 0;
        user.grants = Self::decode_grants_of(reader, Privileges::of_first_catalogs)?;
        Ok(user)
    }

    /// The form of 0.1, without privileges.
    pub(super) fn decode_0_1(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let user = Self::decode_names(reader)?;
        Ok(Self { grants: Self::grants_of_0_1(&user.name), ..user })
    }

    fn decode_grants_of(reader: &mut Reader<'_>, set: fn(u64) -> Privileges) -> Result<Grants, Malformed> {
        let string = |reader: &mut Reader<'_>| reader.str(WHAT).map(str::to_owned);
        let mut grants = Grants::new();
        for _ in 0..reader.varint(WHAT)? {
            let scope = match reader.u8(WHAT)? {
                0 => GrantScope::Global,
                1 => GrantScope::Database(string(reader)?),
                2 => GrantScope::Table { database: string(reader)?, table: string(reader)? },
                3 => GrantScope::Column {
                    database: string(reader)?,
                    table: string(reader)?,
                    column: string(reader)?,
                },
                4 => GrantScope::Procedure { database: string(reader)?, procedure: string(reader)? },
                _ => return Err(reader.malformed(WHAT)),
            };
            grants.insert(scope, set(reader.varint(WHAT)?));
        }
        Ok(grants)
    }

    fn decode_names(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (name, host) = decode_id(reader)?;
        Ok(Self {
            plugin: reader.str(WHAT)?.to_owned(),
            auth: reader.bytes(WHAT)?.to_vec(),
            ..Self::new(&name, &host)
        })
    }
}

fn decode_id(reader: &mut Reader<'_>) -> Result<AccountId, Malformed> {
    Ok((reader.str(WHAT)?.to_owned(), reader.str(WHAT)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn restrictions_are_lifted_one_by_one() {
        let mut user = UserDef::new("u", "%");
        user.restrict("d", Privileges::SELECT | Privileges::INSERT);
        assert_eq!(user.lift("d", Privileges::SELECT | Privileges::DROP), Privileges::SELECT);
        assert_eq!(user.lift("e", Privileges::SELECT), Privileges::NONE);
        assert_eq!(user.lift("d", Privileges::ALL), Privileges::INSERT);
        assert!(user.restrictions.is_empty());
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
