//! What a promotion would find at the source: what stands in its way, and what is not followed and so would stay behind.

use mysql::prelude::Queryable;

use super::accounts::OF_MARIADB;
use super::fence::Was;
use crate::error::Result;
use crate::patterns::{Patterns, SYSTEM};
use crate::source::{self, Connection, Flavor, Grants, Report, Severity, tables, variable};
use crate::state::TableName;

/// So many names are told of one kind.
const MOST_TOLD: usize = 50;

/// Tables of the source that the patterns leave out.
pub fn left_out(conn: &mut Connection, patterns: &Patterns) -> Result<Vec<TableName>> {
    let all = tables(conn, &Patterns::default())?.into_iter().map(|(name, _)| name);
    Ok(all.filter(|name| !patterns.has_table(&name.database, &name.table)).collect())
}

/// Looks at everything but the tables.
pub fn survey(conn: &mut Connection, patterns: &Patterns, copies_accounts: bool) -> Result<Report> {
    let mut report = Report::default();
    check_privilege(conn, &mut report)?;
    check_is_no_replica(conn, &mut report)?;
    check_is_no_member(conn, &mut report)?;
    check_prepared(conn, &mut report)?;
    note_open_transactions(conn, &mut report);
    note_definitions(conn, patterns, &mut report)?;
    note_accounts(conn, copies_accounts, &mut report);
    note_replicas(conn, &mut report);
    Ok(report)
}

/// Sets what stops writes to what it is already, which needs the same privilege.
fn check_privilege(conn: &mut Connection, report: &mut Report) -> Result<()> {
    let (name, privilege) = match conn.flavor {
        Flavor::MySql => ("super_read_only", "SYSTEM_VARIABLES_ADMIN"),
        Flavor::MariaDb => ("read_only", "READ_ONLY ADMIN"),
    };
    let grants = Grants::of(conn)?;
    let user = grants.account();
    match conn.query_drop(format!("SET GLOBAL {name} = @@GLOBAL.{name}")) {
        Ok(()) => report.fine(format!("{user} may set {name}")),
        Err(mysql::Error::MySqlError(error)) if error.code == 1227 => {
            report.add(
                Severity::Fatal,
                format!("{user} may not set {name} at the source"),
                &format!(
                    "{} there, or name another account by SOURCE_USER and SOURCE_PASSWORD",
                    grants.cure(privilege)
                ),
            );
        }
        Err(error) => return Err(error.into()),
    }
    // Of a MariaDB, its administrators are stopped by FLUSH TABLES WITH READ LOCK.
    if conn.flavor == Flavor::MariaDb {
        match grants.has("RELOAD") {
            true => report.fine(format!("{user} has RELOAD")),
            false => {
                let cure = format!("{} there, or name another account by SOURCE_USER", grants.cure("RELOAD"));
                let what = format!("{user} may not run FLUSH TABLES WITH READ LOCK at the source");
                report.add(Severity::Fatal, what, &cure);
            }
        }
    }
    let was = Was::of(conn)?;
    if was.read_only || was.super_read_only {
        report.add(
            Severity::Notice,
            "the source is read-only already",
            "it stays so, whatever becomes of the promotion",
        );
    }
    Ok(())
}

/// The thread that applies what another server has done is not stopped by `super_read_only`.
fn check_is_no_replica(conn: &mut Connection, report: &mut Report) -> Result<()> {
    let Some(rows) = source::replica_status(conn)? else {
        report.add(
            Severity::Notice,
            "whether the source follows another server is not known: its account may not look",
            "GRANT REPLICATION CLIENT, or SLAVE MONITOR of a MariaDB",
        );
        return Ok(());
    };
    let runs = |row: &mysql::Row| {
        ["Replica_SQL_Running", "Slave_SQL_Running"]
            .iter()
            .any(|name| row.get::<String, _>(*name).is_some_and(|value| value == "Yes"))
    };
    match rows.iter().any(runs) {
        true => report.add(
            Severity::Fatal,
            "the source follows another server, whose changes nothing stops there",
            "STOP REPLICA at the source, or follow that server instead",
        ),
        false => report.fine("the source follows no other server"),
    }
    Ok(())
}

/// Other members of its cluster take writes when this one does not, and what they do is applied there whatever `super_read_only` says.
fn check_is_no_member(conn: &mut Connection, report: &mut Report) -> Result<()> {
    const CURE: &str = "shut the other members down first: what follows the source is then a copy of all that they have written";
    let wsrep: Option<(String, String)> = conn.query_first("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'")?;
    let of_galera: u64 = wsrep.and_then(|(_, size)| size.parse().ok()).unwrap_or_default();
    let group = variable(conn, "group_replication_group_name")?.filter(|name| !name.is_empty());
    // A plugin that is not there has no variables.
    let of_group = match group {
        None => 0,
        Some(_) => {
            let members: mysql::Result<Option<u64>> = conn.query_first(
                "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE IN ('ONLINE', 'RECOVERING')",
            );
            match members {
                Ok(members) => members.unwrap_or_default(),
                Err(mysql::Error::MySqlError(_)) => {
                    report.add(
                        Severity::Fatal,
                        "the source is set up for group replication, and does not tell which members the group has",
                        "GRANT SELECT ON performance_schema.replication_group_members, or name another account by SOURCE_USER",
                    );
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    };
    for (members, what) in [(of_group, "a replication group"), (of_galera, "a Galera cluster")] {
        if members > 1 {
            let told =
                format!("the source is one of {members} members of {what}, and the others go on to write");
            report.add(Severity::Fatal, told, CURE);
        }
    }
    if of_group.max(of_galera) <= 1 {
        report.fine("the source is no member of a cluster");
    }
    Ok(())
}

fn check_prepared(conn: &mut Connection, report: &mut Report) -> Result<()> {
    match conn.query::<mysql::Row, _>("XA RECOVER") {
        Ok(prepared) if prepared.is_empty() => report.fine("no XA transaction is prepared"),
        Ok(prepared) => report.add(
            Severity::Fatal,
            format!("{} XA transactions are prepared at the source", prepared.len()),
            "XA COMMIT or XA ROLLBACK each that XA RECOVER shows there: what is prepared is not followed before it ends",
        ),
        // XAER_RMERR: XA_RECOVER_ADMIN is needed.
        Err(mysql::Error::MySqlError(_)) => report.add(
            Severity::Notice,
            "the source does not tell which XA transactions are prepared",
            "GRANT XA_RECOVER_ADMIN; those of tables that are followed are known here",
        ),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn note_open_transactions(conn: &mut Connection, report: &mut Report) {
    let open: std::result::Result<Option<(u64, Option<i64>)>, _> = conn.query_first(
        "SELECT COUNT(*), CAST(MAX(TIMESTAMPDIFF(SECOND, trx_started, NOW())) AS SIGNED) FROM information_schema.INNODB_TRX
         WHERE trx_rows_modified > 0",
    );
    match open {
        Ok(Some((0, _)) | None) => report.fine("no transaction is open that has changed anything"),
        Ok(Some((count, seconds))) => report.add(
            Severity::Notice,
            format!(
                "{count} transactions are open that have changed something, the oldest for {} s",
                seconds.unwrap_or_default()
            ),
            "what has not been committed when writes stop fails with error 1290 at its COMMIT",
        ),
        Err(error) => report.add(
            Severity::Notice,
            format!("the source does not tell of open transactions: {error}"),
            "GRANT PROCESS",
        ),
    }
}

/// Servers show triggers, routines and events to who has a privilege on them; an empty list says nothing to others.
fn note_definitions(conn: &mut Connection, patterns: &Patterns, report: &mut Report) -> Result<()> {
    let grants = Grants::of(conn)?;
    for (kind, seen_with, cure, query) in [
        (
            "triggers",
            &["TRIGGER"][..],
            "what they would do has to be done by the application",
            "SELECT CAST(TRIGGER_SCHEMA AS CHAR), CAST(TRIGGER_NAME AS CHAR) FROM information_schema.TRIGGERS",
        ),
        (
            "routines",
            &["SELECT", "SHOW_ROUTINE"],
            "call what they do from the application",
            "SELECT CAST(ROUTINE_SCHEMA AS CHAR), CAST(ROUTINE_NAME AS CHAR) FROM information_schema.ROUTINES",
        ),
        (
            "events",
            &["EVENT"],
            "have another scheduler run them; at the source they fail while it is read-only",
            "SELECT CAST(EVENT_SCHEMA AS CHAR), CAST(EVENT_NAME AS CHAR) FROM information_schema.EVENTS",
        ),
    ] {
        let rows: Vec<(String, String)> = conn.query(query)?;
        let names: Vec<String> = rows
            .into_iter()
            .filter(|(database, _)| !SYSTEM.contains(&&**database) && patterns.has_database(database))
            .map(|(database, name)| format!("{database}.{name}"))
            .collect();
        let sees_all = seen_with.iter().any(|privilege| grants.has(privilege));
        if !names.is_empty() {
            report.add(Severity::Notice, format!("{kind} stay behind: {}", told(&names)), cure);
        }
        match sees_all {
            true if names.is_empty() => report.fine(format!("there are no {kind}")),
            true => {}
            false => report.add(
                Severity::Notice,
                format!(
                    "whether there are {}{kind}, which would stay behind, is not known: {} may not see them",
                    if names.is_empty() { "" } else { "other " },
                    grants.account()
                ),
                &format!("{}, or name another account by SOURCE_USER", grants.cure(seen_with[0])),
            ),
        }
    }
    Ok(())
}

fn told(names: &[String]) -> String {
    match names.len().checked_sub(MOST_TOLD) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MOST_TOLD].join(", ")),
    }
}

fn note_accounts(conn: &mut Connection, copies: bool, report: &mut Report) {
    if copies && conn.flavor == Flavor::MariaDb {
        return report.add(Severity::Fatal, OF_MARIADB, "make them here by hand, and leave ACCOUNTS out");
    }
    match super::accounts::names(conn) {
        Ok(names) => {
            let names: Vec<String> = names.iter().map(|(user, host)| format!("'{user}'@'{host}'")).collect();
            match copies {
                true => report.fine(format!("accounts to be made here: {}", told(&names))),
                false => report.add(
                    Severity::Notice,
                    format!("accounts stay behind: {}", told(&names)),
                    "ACCOUNTS = 1 makes them here, with their passwords and grants",
                ),
            }
        }
        Err(error) => {
            let severity = if copies { Severity::Fatal } else { Severity::Notice };
            let what = format!("the source's accounts cannot be read: {error}");
            report.add(severity, what, "GRANT SELECT ON mysql.*, or name another account by SOURCE_USER");
        }
    }
}

/// Others that follow the source are not told of the change.
fn note_replicas(conn: &mut Connection, report: &mut Report) {
    let statements: &[&str] = match conn.flavor {
        Flavor::MySql => &["SHOW REPLICAS", "SHOW SLAVE HOSTS"],
        Flavor::MariaDb => &["SHOW SLAVE HOSTS"],
    };
    for statement in statements {
        let Ok(rows) = conn.query::<mysql::Row, _>(*statement) else { continue };
        let ids: Vec<String> = rows.iter().filter_map(server_id).map(|id| id.to_string()).collect();
        if ids.len() > 1 {
            report.add(
                Severity::Notice,
                format!("the source has {} replicas, this one counted: server ids {}", ids.len(), told(&ids)),
                "the others follow the source still; with --log-bin here, CHANGE REPLICATION SOURCE leads them to this server",
            );
        }
        return;
    }
    report.add(
        Severity::Notice,
        "whether the source has other replicas is not known: its account may not look",
        "GRANT REPLICATION SLAVE, or REPLICATION MASTER ADMIN of a MariaDB; others would follow the source still",
    );
}

/// A MySQL calls the column `Server_Id`, a MariaDB `Server_id`.
fn server_id(row: &mysql::Row) -> Option<u64> {
    let columns = row.columns_ref();
    let at = columns.iter().position(|column| column.name_str().eq_ignore_ascii_case("server_id"))?;
    row.get(at)
}
