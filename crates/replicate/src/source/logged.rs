//! What a source keeps out of its binary log: databases by its options, and what it gets from other servers. Nothing of the log tells
//! of such changes, so what they are about cannot be followed.

use mysql::prelude::Queryable;

use super::{Connection, Flavor, log_status, variable};
use crate::error::Result;

/// `binlog-do-db` and `binlog-ignore-db`, each as the server says it: names with commas between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilters {
    only: String,
    ignored: String,
}

impl LogFilters {
    /// Whether changes of rows in a database are not in the log.
    pub fn leave_out(&self, database: &str) -> bool {
        !self.only.is_empty() && !is_listed(&self.only, database) || is_listed(&self.ignored, database)
    }

    /// The options that are set, as they are written.
    pub fn options(&self) -> Vec<String> {
        [("binlog-do-db", &self.only), ("binlog-ignore-db", &self.ignored)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(option, names)| format!("{option} = {names}"))
            .collect()
    }

    /// Why nothing in a database can be followed, and what would help.
    pub fn obstacle(&self, database: &str) -> Option<(String, String)> {
        self.leave_out(database).then(|| {
            let options = self.options().join(", ");
            (
                format!("changes of the database {database} are not in the source's log ({options})"),
                "take the option out of the source's configuration and restart it".into(),
            )
        })
    }
}

/// A name may have commas itself.
fn is_listed(names: &str, name: &str) -> bool {
    names.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&names[..at], &names[at + name.len()..]);
        (before.is_empty() || before.ends_with(',')) && (behind.is_empty() || behind.starts_with(','))
    })
}

/// What the source is started with; asked for once for each connection, as it takes a restart to change it.
pub fn log_filters(conn: &mut Connection) -> Result<LogFilters> {
    if let Some(filters) = &conn.filters {
        return Ok(filters.clone());
    }
    const MAY_NOT_LOOK: u16 = 1227;
    let row = match log_status(conn) {
        Ok(row) => row,
        // The lack of the privilege is told by its name.
        Err(crate::error::ReplicateError::Source(mysql::Error::MySqlError(error)))
            if error.code == MAY_NOT_LOOK =>
        {
            None
        }
        Err(error) => return Err(error),
    };
    let mut filters = LogFilters::default();
    if let Some(mut row) = row {
        filters.only = row.take::<Option<String>, _>("Binlog_Do_DB").flatten().unwrap_or_default();
        filters.ignored = row.take::<Option<String>, _>("Binlog_Ignore_DB").flatten().unwrap_or_default();
    }
    conn.filters = Some(filters.clone());
    Ok(filters)
}

/// The servers that the source itself follows, a row each, whether it does so now or not; `None` if the account may not look.
pub fn replica_status(conn: &mut Connection) -> Result<Option<Vec<mysql::Row>>> {
    let statements: &[&str] = match conn.flavor {
        // The latter before MySQL 8.0.22.
        Flavor::MySql => &["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"],
        Flavor::MariaDb => &["SHOW ALL SLAVES STATUS"],
    };
    for statement in statements {
        match conn.query(*statement) {
            Ok(rows) => return Ok(Some(rows)),
            Err(mysql::Error::MySqlError(error)) if error.code == 1064 => {}
            Err(mysql::Error::MySqlError(error)) if error.code == 1227 => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Whether the source logs what it gets from other servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogsReplicated {
    Yes,
    /// It does not, and gets nothing.
    Nothing,
    /// It does not, and the account may not see whether it gets something.
    Unknown,
    No,
}

/// Whether what the source gets from other servers (as their replica, or as a node of a Galera cluster) is in its log; and the variable
/// that says so.
pub fn logs_replicated(conn: &mut Connection) -> Result<(LogsReplicated, &'static str)> {
    const NAMES: [&str; 2] = ["log_replica_updates", "log_slave_updates"];
    let name = match variable(conn, NAMES[0])? {
        Some(_) => NAMES[0],
        None => NAMES[1],
    };
    if variable(conn, name)?.is_none_or(|value| value != "OFF") {
        return Ok((LogsReplicated::Yes, name));
    }
    if variable(conn, "wsrep_on")?.is_some_and(|value| value == "ON") {
        return Ok((LogsReplicated::No, name));
    }
    Ok((replicated_without_log(replica_status(conn)?.map(|rows| rows.len())), name))
}

/// By how many servers it follows, of a source that does not log what it gets.
fn replicated_without_log(followed: Option<usize>) -> LogsReplicated {
    match followed {
        None => LogsReplicated::Unknown,
        Some(0) => LogsReplicated::Nothing,
        Some(_) => LogsReplicated::No,
    }
}

/// Why a source whose log lacks what it gets from others is not followed, and what to do about it.
pub fn unlogged(variable: &str) -> (String, String) {
    (
        format!(
            "{variable} = OFF, and the source follows another server: what that one has written is not in its log"
        ),
        format!(
            "{variable} = ON in its configuration and a restart, or attach to the server that it follows; if it follows none any more, \
             RESET REPLICA ALL"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(only: &str, ignored: &str) -> LogFilters {
        LogFilters { only: only.into(), ignored: ignored.into() }
    }

    #[test]
    fn databases_are_left_out_by_name() {
        let none = LogFilters::default();
        assert!(!none.leave_out("shop") && none.options().is_empty() && none.obstacle("shop").is_none());
        let ignored = filters("", "stats,tmp");
        assert!(ignored.leave_out("stats") && ignored.leave_out("tmp"));
        assert!(!ignored.leave_out("stat") && !ignored.leave_out("s,t") && !ignored.leave_out("shop"));
        assert!(filters("", "a,b").leave_out("a,b"));
        let only = filters("shop", "");
        assert!(!only.leave_out("shop") && only.leave_out("shops") && only.leave_out("Shop"));
        let (why, _) = filters("shop", "tmp").obstacle("stats").expect("it is left out");
        assert!(
            why.contains("stats") && why.contains("binlog-do-db = shop, binlog-ignore-db = tmp"),
            "{why}"
        );
    }

    #[test]
    fn a_replica_that_logs_nothing_of_it_is_told() {
        assert_eq!(replicated_without_log(Some(0)), LogsReplicated::Nothing);
        assert_eq!(replicated_without_log(Some(2)), LogsReplicated::No);
        assert_eq!(replicated_without_log(None), LogsReplicated::Unknown);
    }
}
