//! What the account of a connection may do at the source, as SHOW GRANTS says it: with the roles that are active.

use mysql::prelude::Queryable;

use super::Connection;
use crate::error::Result;

/// Privileges on everything.
pub struct Grants {
    /// User and host.
    account: (String, String),
    has_all: bool,
    global: Vec<String>,
}

impl Grants {
    pub fn of(conn: &mut Connection) -> Result<Self> {
        let account: Option<String> = conn.query_first("SELECT CURRENT_USER()")?;
        let lines: Vec<String> = conn.query("SHOW GRANTS")?;
        Ok(Self::read(&account.unwrap_or_default(), &lines))
    }

    fn read(account: &str, lines: &[String]) -> Self {
        const ON_ALL: &str = " ON *.* ";
        let lists = lines.iter().filter_map(|line| line.strip_prefix("GRANT ")?.split_once(ON_ALL));
        let lists: Vec<&str> = lists.map(|(list, _)| list).collect();
        // A user's name may have an @, a host's has none. Dynamic privileges have no blanks between them.
        let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
        Self {
            account: (user.to_owned(), host.to_owned()),
            has_all: lists.contains(&"ALL PRIVILEGES"),
            global: lists.iter().flat_map(|list| list.split(',')).map(|one| one.trim().to_owned()).collect(),
        }
    }

    pub fn has(&self, privilege: &str) -> bool {
        self.has_all || self.global.iter().any(|own| own == privilege)
    }

    /// The account, for people.
    pub fn account(&self) -> String {
        format!("{}@{}", self.account.0, self.account.1)
    }

    /// What gives it a privilege.
    pub fn cure(&self, privilege: &str) -> String {
        format!("GRANT {privilege} ON *.* TO '{}'@'{}'", self.account.0, self.account.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileges_are_read_from_what_servers_say() {
        let of = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            Grants::read("re@pl@%", &lines)
        };
        let grants = of(&[
            "GRANT SELECT, REPLICATION SLAVE, SHOW VIEW ON *.* TO `re@pl`@`%`",
            "GRANT SHOW_ROUTINE,SYSTEM_VARIABLES_ADMIN ON *.* TO `re@pl`@`%`",
            "GRANT TRIGGER ON `shop`.* TO `re@pl`@`%`",
            "GRANT `reader`@`%` TO `re@pl`@`%`",
        ]);
        for privilege in ["SELECT", "SHOW VIEW", "SHOW_ROUTINE", "SYSTEM_VARIABLES_ADMIN"] {
            assert!(grants.has(privilege), "{privilege}");
        }
        for privilege in ["TRIGGER", "SHOW", "REPLICATION CLIENT"] {
            assert!(!grants.has(privilege), "{privilege}");
        }
        assert_eq!(grants.cure("TRIGGER"), "GRANT TRIGGER ON *.* TO 're@pl'@'%'");
        let of_all =
            "GRANT ALL PRIVILEGES ON *.* TO `re@pl`@`%` IDENTIFIED BY PASSWORD '*5' WITH GRANT OPTION";
        assert!(of(&[of_all]).has("TRIGGER"));
        assert!(!of(&["GRANT ALL PRIVILEGES ON `shop`.* TO `re@pl`@`%`"]).has("TRIGGER"));
    }
}
