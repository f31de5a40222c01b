//! What an account may do: its own privileges and those of its active roles, in a form that answers by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use avocet_engine::{AccountId, Catalog, GrantScope, Privileges, UserDef};
use avocet_types::Collation;
use avocet_types::collation::LikePattern;
use avocet_types::names;

use crate::api::AccountName;
use crate::role_names::quoted;
use crate::schemas;

/// The privileges of one account, as of one version of the catalog.
pub(crate) struct Access {
    /// Whether there is nothing to be asked: an embedded session, or an account that holds all.
    pub(super) unrestricted: bool,
    /// An embedded session: no account decides.
    is_embedded: bool,
    version: u64,
    /// The password has to be changed first.
    expired: bool,
    /// The active roles.
    roles: Vec<AccountId>,
    /// The account, and the roles that it has by those.
    identities: Vec<Arc<UserDef>>,
    global: Privileges,
    has_restrictions: bool,
    held: Vec<Held>,
}

/// What one identity was granted.
struct Held {
    global: Privileges,
    /// What of it is not held on a database.
    restrictions: BTreeMap<String, Privileges>,
    /// By pattern, the most specific first.
    databases: Vec<OfDatabase>,
    /// By database and name.
    tables: HashMap<String, HashMap<String, OfTable>>,
    procedures: HashMap<String, HashMap<String, Privileges>>,
}

#[derive(Default)]
struct OfTable {
    whole: Privileges,
    /// By name in lower case.
    columns: HashMap<String, Privileges>,
}

/// What is granted on the databases that a pattern means.
struct OfDatabase {
    pattern: String,
    like: LikePattern,
    privileges: Privileges,
}

impl OfDatabase {
    fn new(pattern: &str, privileges: Privileges) -> Self {
        let like = LikePattern::new(pattern, Some('\\'), Collation::BINARY);
        Self { pattern: pattern.to_owned(), like, privileges }
    }

    fn means(&self, database: &str) -> bool {
        self.pattern == database || self.like.matches(database)
    }
}

impl Held {
    fn new(account: &UserDef) -> Self {
        let mut held = Self {
            global: Privileges::NONE,
            restrictions: account.restrictions.clone(),
            databases: Vec::new(),
            tables: HashMap::new(),
            procedures: HashMap::new(),
        };
        for (scope, privileges) in &account.grants {
            match scope {
                GrantScope::Global => held.global = *privileges,
                GrantScope::Database(pattern) => held.databases.push(OfDatabase::new(pattern, *privileges)),
                GrantScope::Table { database, table } => held.table(database, table).whole = *privileges,
                GrantScope::Column { database, table, column } => {
                    held.table(database, table).columns.insert(column.clone(), *privileges);
                }
                GrantScope::Procedure { database, procedure } => {
                    let of_database = held.procedures.entry(database.clone()).or_default();
                    of_database.insert(procedure.clone(), *privileges);
                }
            }
        }
        held.databases.sort_by_key(|of| std::cmp::Reverse(specificity(&of.pattern)));
        held
    }

    fn table(&mut self, database: &str, table: &str) -> &mut OfTable {
        self.tables.entry(database.to_owned()).or_default().entry(table.to_owned()).or_default()
    }

    fn find(&self, database: &str, table: &str) -> Option<&OfTable> {
        self.tables.get(database)?.get(table)
    }

    fn restricted(&self, database: &str) -> Privileges {
        let restrictions = self.restrictions.get(database).copied().unwrap_or_default();
        self.global.without(restrictions)
    }

    fn on_database(&self, database: &str) -> Privileges {
        let of_pattern = self.databases.iter().find(|of| of.means(database));
        self.restricted(database) | of_pattern.map_or(Privileges::NONE, |of| of.privileges)
    }

    fn on_pattern(&self, pattern: &str) -> Privileges {
        let same = self.databases.iter().find(|of| of.pattern == pattern);
        let meant = OfDatabase::new(pattern, Privileges::NONE);
        let restricted = self.restrictions.iter().filter(|(database, _)| meant.means(database));
        let missing = restricted.fold(Privileges::NONE, |all, (_, one)| all | *one);
        self.global.without(missing) | same.map_or(Privileges::NONE, |of| of.privileges)
    }
}

impl Access {
    /// Of a session within this process.
    pub fn embedded() -> Self {
        Self {
            unrestricted: true,
            is_embedded: true,
            global: Privileges::ALL,
            ..Self::of(Vec::new(), Vec::new(), 0)
        }
    }

    /// Of an account with some of its roles active; nothing if there is no such account.
    pub fn of_account(
        catalog: &Catalog,
        name: &AccountName,
        roles: &[AccountId],
        mandatory: &[AccountId],
    ) -> Self {
        let (roles, identities) = identities(catalog, name, roles, mandatory);
        Self::of(roles, identities, catalog.version())
    }

    pub(super) fn of(roles: Vec<AccountId>, identities: Vec<Arc<UserDef>>, version: u64) -> Self {
        let held: Vec<_> = identities.iter().map(|identity| Held::new(identity)).collect();
        let global = held.iter().fold(Privileges::NONE, |all, one| all | one.global);
        let has_restrictions = held.iter().any(|one| !one.restrictions.is_empty());
        Self {
            unrestricted: global == Privileges::ALL && !has_restrictions,
            is_embedded: false,
            version,
            expired: false,
            roles,
            identities,
            global,
            has_restrictions,
            held,
        }
    }

    /// With a password that has to be changed first.
    pub fn with_expired_password(mut self, expired: bool) -> Self {
        self.expired = expired;
        self
    }

    /// Brings it up to date.
    pub(super) fn refresh(&mut self, catalog: &Catalog, name: &AccountName, mandatory: &[AccountId]) {
        let (roles, now) = identities(catalog, name, &self.roles, mandatory);
        let is_same = now.len() == self.identities.len()
            && now.iter().zip(&self.identities).all(|(now, before)| Arc::ptr_eq(now, before));
        if is_same {
            self.version = catalog.version();
            return;
        }
        let expired = self.expired
            && match (now.first(), self.identities.first()) {
                (Some(now), Some(before)) => {
                    let (now, before) = (&now.password, &before.password);
                    now.expired || (!before.expired && now.changed_at == before.changed_at)
                }
                _ => false,
            };
        *self = Self::of(roles, now, catalog.version()).with_expired_password(expired);
    }

    /// Whether it is of another version of the catalog.
    pub(super) fn is_stale(&self, version: u64) -> bool {
        self.version != version && !self.is_embedded
    }

    pub fn is_embedded(&self) -> bool {
        self.is_embedded
    }

    /// Whether the account has to change its password before anything else.
    pub fn must_change_password(&self) -> bool {
        self.expired
    }

    /// Whether the account, or one of its active roles, was granted a role WITH ADMIN OPTION.
    pub(super) fn may_grant_role(&self, role: &AccountId) -> bool {
        self.identities.iter().any(|identity| identity.roles.get(role).is_some_and(|admin| *admin))
    }

    pub fn roles(&self) -> &[AccountId] {
        &self.roles
    }

    /// As CURRENT_ROLE() shows them; empty for none.
    pub fn roles_text(&self) -> String {
        let names: Vec<_> = self.roles.iter().map(quoted).collect();
        names.join(",")
    }

    pub fn global(&self) -> Privileges {
        self.global
    }

    /// By database, what of the privileges for the whole server is not held there.
    pub(super) fn restrictions(&self) -> BTreeMap<String, Privileges> {
        let databases = self.held.iter().flat_map(|held| held.restrictions.keys());
        databases.map(|database| (database.clone(), self.restricted(database))).collect()
    }

    /// What every identity that holds it for the server does not hold on a database.
    fn restricted(&self, database: &str) -> Privileges {
        let held = self.held.iter().fold(Privileges::NONE, |all, one| all | one.restricted(database));
        self.global.without(held)
    }

    fn any(&self, of: impl Fn(&Held) -> Privileges) -> Privileges {
        if self.is_embedded {
            return Privileges::ALL;
        }
        self.held.iter().fold(Privileges::NONE, |all, held| all | of(held))
    }

    /// On all of a database, by what is granted for it or for all of them.
    pub fn on_database(&self, database: &str) -> Privileges {
        let all = self.any(|held| held.on_database(database));
        // As in MySQL, where a role that was granted something on the database does not lift the restriction.
        if self.has_restrictions { all.without(self.restricted(database)) } else { all }
    }

    /// On every database that a pattern means, as far as that can be told: what the same pattern was granted, or, of a
    /// pattern without wildcards, what is held on its one database.
    pub(super) fn on_pattern(&self, pattern: &str) -> Privileges {
        if specificity(pattern) == usize::MAX {
            return self.on_database(&pattern.replace('\\', ""));
        }
        self.any(|held| held.on_pattern(pattern))
    }

    pub fn on_table(&self, database: &str, table: &str) -> Privileges {
        let own = |held: &Held| held.find(database, table).map_or(Privileges::NONE, |table| table.whole);
        self.on_database(database) | self.any(own)
    }

    pub fn on_column(&self, database: &str, table: &str, column: &str) -> Privileges {
        let on_table = self.on_table(database, table);
        if on_table.contains(Privileges::OF_COLUMNS) {
            return on_table;
        }
        let folded = names::fold(column);
        let own = |held: &Held| held.find(database, table)?.columns.get(&*folded).copied();
        on_table | self.any(|held| own(held).unwrap_or_default())
    }

    /// On a table or on some of its columns.
    pub fn on_some_column(&self, database: &str, table: &str) -> Privileges {
        let own = |held: &Held| match held.find(database, table) {
            Some(table) => table.columns.values().fold(Privileges::NONE, |all, one| all | *one),
            None => Privileges::NONE,
        };
        self.on_table(database, table) | self.any(own)
    }

    pub fn on_procedure(&self, database: &str, procedure: &str) -> Privileges {
        let lower = procedure.to_lowercase();
        let own = |held: &Held| held.procedures.get(database)?.get(&lower).copied();
        self.on_database(database) | self.any(|held| own(held).unwrap_or_default())
    }

    /// What is granted on a table by its own name, or on some of its columns.
    pub(super) fn of_table(&self, database: &str, table: &str) -> Privileges {
        self.any(|held| match held.find(database, table) {
            Some(table) => table.columns.values().fold(table.whole, |all, one| all | *one),
            None => Privileges::NONE,
        })
    }

    /// Whether there is anything in a database that the account may do something with.
    pub fn may_use(&self, database: &str) -> bool {
        self.unrestricted || schemas::is_open(database) || self.was_granted_in(database)
    }

    fn was_granted_in(&self, database: &str) -> bool {
        let has = |held: &Held| held.tables.contains_key(database) || held.procedures.contains_key(database);
        self.on_database(database).intersects(Privileges::OF_DATABASES) || self.held.iter().any(has)
    }

    /// Whether SHOW DATABASES lists it.
    pub fn sees_database(&self, database: &str) -> bool {
        // `sys` may be read by all, but is listed as other databases are.
        let is_listed = match schemas::is_sys(database) {
            true => self.was_granted_in(database),
            false => self.may_use(database),
        };
        self.global.intersects(Privileges::SHOW_DATABASES) || is_listed
    }

    /// Whether lists of tables have it.
    pub fn sees_table(&self, database: &str, table: &str) -> bool {
        self.unrestricted
            || schemas::is_open(database)
            || self.on_some_column(database, table).intersects(Privileges::OF_TABLES)
    }

    /// What may be done with a column, as SHOW FULL COLUMNS tells it.
    pub fn column_privileges(&self, database: &str, table: &str, column: &str) -> String {
        let held = match self.unrestricted {
            _ if schemas::is_schema(database) => Privileges::SELECT,
            true => Privileges::OF_COLUMNS,
            false if schemas::is_open(database) => Privileges::SELECT,
            false => self.on_column(database, table, column).and(Privileges::OF_COLUMNS),
        };
        held.names().map(str::to_lowercase).collect::<Vec<_>>().join(",")
    }

    /// Whether lists of columns have it.
    pub fn sees_column(&self, database: &str, table: &str, column: &str) -> bool {
        self.unrestricted
            || schemas::is_open(database)
            || self.on_column(database, table, column).intersects(Privileges::OF_COLUMNS)
    }
}

/// Those of some roles that an account has still, and the accounts by which it holds privileges: its own, and each role
/// with the roles that it was granted.
fn identities(
    catalog: &Catalog,
    name: &AccountName,
    roles: &[AccountId],
    mandatory: &[AccountId],
) -> (Vec<AccountId>, Vec<Arc<UserDef>>) {
    let Some(account) = catalog.user(&name.user, &name.host) else { return (Vec::new(), Vec::new()) };
    let is_held = |role: &&AccountId| account.roles.contains_key(*role) || mandatory.contains(role);
    let is_there = |role: &&AccountId| catalog.user(&role.0, &role.1).is_some();
    let active: Vec<_> = roles.iter().filter(is_held).filter(is_there).cloned().collect();
    let all = identities_of(catalog, account, &active);
    (active, all)
}

/// An account, the given roles, and the roles that those were granted, each once.
pub(super) fn identities_of<'r>(
    catalog: &Catalog,
    account: &UserDef,
    roles: impl IntoIterator<Item = &'r AccountId>,
) -> Vec<Arc<UserDef>> {
    let def = |(name, host): &AccountId| catalog.user(name, host).cloned();
    let mut all: Vec<_> = def(&account.id()).into_iter().collect();
    let mut seen = BTreeSet::from([account.id()]);
    let mut waiting: Vec<_> = roles.into_iter().filter_map(def).collect();
    while let Some(role) = waiting.pop() {
        if seen.insert(role.id()) {
            waiting.extend(role.roles.keys().filter_map(def));
            all.push(role);
        }
    }
    all
}

/// Literal characters before the first wildcard; a pattern without one beats all that have one.
pub(super) fn specificity(pattern: &str) -> usize {
    let mut escaped = false;
    for (at, c) in pattern.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '%' | '_' if !escaped => return at,
            _ => escaped = false,
        }
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(users: &[&UserDef]) -> Access {
        Access::of(Vec::new(), users.iter().map(|user| Arc::new((*user).clone())).collect(), 1)
    }

    #[test]
    fn the_most_specific_pattern_decides() {
        let mut user = UserDef::new("u", "%");
        user.grant(GrantScope::Database("%".into()), Privileges::SELECT);
        user.grant(GrantScope::Database("app%".into()), Privileges::INSERT);
        user.grant(GrantScope::Database("app\\_1".into()), Privileges::DELETE);
        let table = GrantScope::Table { database: "app2".into(), table: "t".into() };
        user.grant(table, Privileges::DROP);
        let access = access(&[&user]);
        assert_eq!(access.on_database("other"), Privileges::SELECT);
        assert_eq!(access.on_database("app2"), Privileges::INSERT);
        assert_eq!(access.on_database("app_1"), Privileges::DELETE);
        assert_eq!(access.on_database("appx1"), Privileges::INSERT);
        assert_eq!(access.on_table("app2", "t"), Privileges::INSERT | Privileges::DROP);
        assert_eq!(access.on_table("app2", "T"), Privileges::INSERT);
        assert!(!access.unrestricted);
    }

    #[test]
    fn an_account_without_grants_sees_nothing() {
        let nothing = access(&[&UserDef::new("u", "%")]);
        assert!(!nothing.may_use("d") && !nothing.sees_database("d") && !nothing.sees_table("d", "t"));
        assert!(nothing.may_use("information_schema") && nothing.sees_table("INFORMATION_SCHEMA", "TABLES"));
        let nobody = access(&[]);
        assert!(!nobody.unrestricted && nobody.global().is_empty());
        assert!(Access::embedded().unrestricted);
    }

    #[test]
    fn columns_add_to_tables() {
        let mut user = UserDef::new("u", "%");
        let (database, table) = ("d".to_owned(), "t".to_owned());
        user.grant(GrantScope::Column { database, table, column: "a".into() }, Privileges::SELECT);
        user.grant(GrantScope::Database("d".into()), Privileges::INSERT);
        let access = access(&[&user]);
        assert_eq!(access.on_column("d", "t", "A"), Privileges::SELECT | Privileges::INSERT);
        assert_eq!(access.on_column("d", "t", "b"), Privileges::INSERT);
        assert_eq!(access.on_some_column("d", "t"), Privileges::SELECT | Privileges::INSERT);
        assert_eq!(access.on_some_column("d", "u"), Privileges::INSERT);
    }

    /// What one identity may not do in a database, another may.
    #[test]
    fn restrictions_are_of_the_identity_that_has_them() {
        let mut user = UserDef::new("u", "%");
        user.grant(GrantScope::Global, Privileges::SELECT | Privileges::INSERT);
        user.restrict("d", Privileges::SELECT);
        assert_eq!(access(&[&user]).on_database("d"), Privileges::INSERT);
        assert_eq!(access(&[&user]).on_database("e"), Privileges::SELECT | Privileges::INSERT);
        let mut role = UserDef::new("r", "%");
        role.grant(GrantScope::Table { database: "d".into(), table: "t".into() }, Privileges::SELECT);
        let both = access(&[&user, &role]);
        assert_eq!(both.on_table("d", "t"), Privileges::SELECT | Privileges::INSERT);
        assert_eq!(both.on_table("d", "v"), Privileges::INSERT);
        let mut all = UserDef::new("a", "%");
        all.grant(GrantScope::Global, Privileges::ALL);
        assert!(access(&[&all]).unrestricted);
        all.restrict("d", Privileges::DROP);
        assert!(!access(&[&all]).unrestricted);
    }
}
