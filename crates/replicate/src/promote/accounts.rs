//! The source's accounts, in its own words: CREATE USER with what is kept of the password, and GRANT.

use mysql::prelude::Queryable;

use crate::error::{ReplicateError, Result};
use crate::source::{Connection, Flavor};

/// An account, as statements.
#[derive(Clone, Debug)]
pub struct AccountText {
    pub user: String,
    pub host: String,
    pub create: String,
    pub grants: Vec<String>,
}

/// Its statements mean something else here.
pub(super) const OF_MARIADB: &str = "the accounts of a MariaDB are not copied";
/// Of a MySQL's own, which nobody signs in with.
const OWN: [&str; 4] = ["mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys"];

/// Users and hosts of all accounts and roles but the source's own.
pub(super) fn names(conn: &mut Connection) -> Result<Vec<(String, String)>> {
    let query = "SELECT CAST(User AS CHAR), CAST(Host AS CHAR) FROM mysql.user ORDER BY User, Host";
    let mut names: Vec<(String, String)> = conn.query(query)?;
    names.retain(|(user, _)| !OWN.contains(&&**user));
    Ok(names)
}

/// All accounts but the source's own.
///
/// # Errors
/// `Refused` for a MariaDB.
pub fn accounts(conn: &mut Connection) -> Result<Vec<AccountText>> {
    if conn.flavor == Flavor::MariaDb {
        return Err(ReplicateError::Refused(OF_MARIADB.into()));
    }
    // Since MySQL 8.0.17; before, a hash with bytes that are no text cannot be read back.
    match conn.query_drop("SET SESSION print_identified_with_as_hex = ON") {
        Ok(()) => {}
        Err(mysql::Error::MySqlError(error)) if error.code == 1193 => {}
        Err(error) => return Err(error.into()),
    }
    let mut all = Vec::new();
    for (user, host) in names(conn)? {
        let name = format!("{}@{}", quoted(&user), quoted(&host));
        let create: Option<String> = conn.query_first(format!("SHOW CREATE USER {name}"))?;
        let grants = conn.query(format!("SHOW GRANTS FOR {name}"))?;
        all.push(AccountText { user, host, create: create.unwrap_or_default(), grants });
    }
    Ok(all)
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
