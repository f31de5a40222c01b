//! What a source must have to be followed, and how to mend what it lacks.

use std::fmt;

use super::{
    Connection, Flavor, Grants, LEAST_MARIADB, LEAST_VERSION, LOWER_CASE, LogsReplicated, NO_CASE, has_gtids,
    is_in_utc, log_filters, logs_replicated, tables, unlogged, variable,
};
use crate::error::Result;
use crate::patterns::Patterns;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Fine,
    /// It can be followed, but something is worth knowing.
    Notice,
    /// A table or a kind of objects is left out.
    Partly,
    /// It cannot be followed as it is.
    Fatal,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    pub severity: Severity,
    pub what: String,
    /// What to do about it, if anything is to be done.
    pub cure: Option<String>,
}

/// All that was looked at.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn is_fatal(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Fatal)
    }

    pub(crate) fn add(&mut self, severity: Severity, what: impl Into<String>, cure: &str) {
        let cure = (!cure.is_empty()).then(|| cure.to_owned());
        self.findings.push(Finding { severity, what: what.into(), cure });
    }

    pub(crate) fn fine(&mut self, what: impl Into<String>) {
        self.add(Severity::Fine, what, "");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let mark = match finding.severity {
                Severity::Fine => "ok     ",
                Severity::Notice => "note   ",
                Severity::Partly => "partly ",
                Severity::Fatal => "cannot ",
            };
            writeln!(f, "{mark} {}", finding.what)?;
            if let Some(cure) = &finding.cure {
                writeln!(f, "         → {cure}")?;
            }
        }
        Ok(())
    }
}

/// Looks at the source's settings, the account's privileges and the tables that the patterns name.
pub fn check(conn: &mut Connection, patterns: &Patterns) -> Result<Report> {
    let mut report = Report::default();
    if !check_version(conn, &mut report)? {
        return Ok(report);
    }
    check_log(conn, &mut report)?;
    check_left_out(conn, &mut report)?;
    check_retention(conn, &mut report)?;
    check_names(conn, &mut report)?;
    check_zone(conn, &mut report)?;
    check_privileges(conn, &mut report)?;
    check_tables(conn, patterns, &mut report)?;
    Ok(report)
}

fn check_version(conn: &mut Connection, report: &mut Report) -> Result<bool> {
    let (number, text) = &conn.version;
    let (name, least, cure) = match conn.flavor {
        Flavor::MySql => ("MySQL", LEAST_VERSION, "upgrade it to MySQL 8.0 or later"),
        Flavor::MariaDb => ("MariaDB", LEAST_MARIADB, "upgrade it to MariaDB 10.6 or later"),
    };
    match number {
        None => report.add(
            Severity::Fatal,
            format!("the source is {text}"),
            "only MySQL from 8.0.1 on and MariaDB from 10.6 on are followed",
        ),
        Some(number) if *number < least => {
            report.add(Severity::Fatal, format!("the source is {name} {text}"), cure);
        }
        Some(_) => {
            report.fine(format!("{name} {text}"));
            return Ok(true);
        }
    }
    Ok(false)
}

/// A variable, what it must be, and how to mend it.
type Setting = (&'static str, &'static str, &'static str);

const OF_MYSQL: [Setting; 3] = [
    ("log_bin", "ON", "start the source with --log-bin (it is on by default since MySQL 8.0)"),
    ("binlog_format", "ROW", "SET PERSIST binlog_format = ROW; sessions keep their own until they reconnect"),
    (
        "binlog_row_image",
        "FULL",
        "SET PERSIST binlog_row_image = FULL; sessions keep their own until they reconnect",
    ),
];

/// What a MySQL is better with, and what it is without: these are not its defaults.
const BETTER_OF_MYSQL: [Setting; 2] = [
    (
        "gtid_mode",
        "ON",
        "the log is followed by file and position: if another server takes the source's place, everything is copied again, and PROMOTE \
         REPLICA is refused. SET GLOBAL gtid_mode step by step to ON_PERMISSIVE and ON (MySQL manual, 19.1.4.2), then attach a new \
         data directory",
    ),
    (
        "binlog_row_metadata",
        "FULL",
        "columns are told by their order alone: definitions that the source changes with sql_log_bin = 0 are not noticed. SET PERSIST \
         binlog_row_metadata = FULL",
    ),
];

/// It has identifiers without being asked, and forgets SET GLOBAL when it restarts.
const OF_MARIADB: [Setting; 4] = [
    ("log_bin", "ON", "start the source with log_bin in its configuration: it is off by default"),
    (
        "binlog_format",
        "ROW",
        "SET GLOBAL binlog_format = ROW, and binlog_format = ROW in its configuration; sessions keep their own until they reconnect",
    ),
    (
        "binlog_row_image",
        "FULL",
        "SET GLOBAL binlog_row_image = FULL, and the same in its configuration; sessions keep their own until they reconnect",
    ),
    (
        "binlog_row_metadata",
        "FULL",
        "SET GLOBAL binlog_row_metadata = FULL, binlog_row_metadata = FULL in its configuration, then FLUSH BINARY LOGS: the log has \
         no columns' names and signs by default",
    ),
];

fn check_log(conn: &mut Connection, report: &mut Report) -> Result<()> {
    let settings = match conn.flavor {
        Flavor::MySql => &OF_MYSQL[..],
        Flavor::MariaDb => &OF_MARIADB[..],
    };
    for &(name, wanted, cure) in settings {
        match variable(conn, name)? {
            Some(value) if value.eq_ignore_ascii_case(wanted) => report.fine(format!("{name} = {value}")),
            // Versions that know no other format have no variable for it.
            None if name == "binlog_format" => report.fine("binlog_format = ROW"),
            value => {
                let value = value.unwrap_or_else(|| "unknown".into());
                report.add(Severity::Fatal, format!("{name} = {value}, and it must be {wanted}"), cure);
            }
        }
    }
    if conn.flavor == Flavor::MySql {
        check_better(conn, report)?;
    }
    Ok(())
}

/// What is not in the log.
fn check_left_out(conn: &mut Connection, report: &mut Report) -> Result<()> {
    let (logs, name) = logs_replicated(conn)?;
    match logs {
        LogsReplicated::Yes => report.fine(format!("{name} = ON")),
        LogsReplicated::Nothing => report.add(
            Severity::Notice,
            format!("{name} = OFF"),
            "it must be ON before the source follows another server: what that one writes would not be followed",
        ),
        LogsReplicated::Unknown => report.add(
            Severity::Notice,
            format!("{name} = OFF, and the account may not see whether the source follows another server"),
            "if it does, what that one writes is not followed: GRANT REPLICATION CLIENT, or SLAVE MONITOR of a MariaDB",
        ),
        LogsReplicated::No => {
            let (why, cure) = unlogged(name);
            report.add(Severity::Fatal, why, &cure);
        }
    }
    for option in log_filters(conn)?.options() {
        report.add(
            Severity::Notice,
            option,
            "databases that it leaves out are not followed, and definitions by sessions whose default database is one of them (or none) \
             are not noticed, whichever tables they change. Take it out of the source's configuration",
        );
    }
    Ok(())
}

fn check_better(conn: &mut Connection, report: &mut Report) -> Result<()> {
    for (name, wanted, otherwise) in BETTER_OF_MYSQL {
        let value = variable(conn, name)?.unwrap_or_else(|| "unknown".into());
        match value.eq_ignore_ascii_case(wanted) {
            true => report.fine(format!("{name} = {value}")),
            false => report.add(Severity::Notice, format!("{name} = {value}"), otherwise),
        }
    }
    // Without identifiers, what is visible is told by the order of commits.
    if !has_gtids(conn)? && variable(conn, "binlog_order_commits")?.is_some_and(|value| value != "ON") {
        report.add(
            Severity::Fatal,
            "binlog_order_commits = OFF, and it must be ON, as gtid_mode is not",
            "SET PERSIST binlog_order_commits = ON",
        );
    }
    Ok(())
}

fn check_retention(conn: &mut Connection, report: &mut Report) -> Result<()> {
    const HOUR: u64 = 3600;
    const SHORT: u64 = 24 * HOUR;
    let seconds = variable(conn, "binlog_expire_logs_seconds")?.and_then(|value| value.parse::<u64>().ok());
    match seconds {
        Some(0) | None => report.fine("binary logs are kept until they are purged by hand"),
        Some(seconds) if seconds < SHORT => report.add(
            Severity::Notice,
            format!(
                "binary logs are kept for {} hours: whoever is away for longer has to copy everything again",
                seconds / HOUR
            ),
            match conn.flavor {
                Flavor::MySql => "SET PERSIST binlog_expire_logs_seconds = 604800",
                Flavor::MariaDb => {
                    "SET GLOBAL binlog_expire_logs_seconds = 604800, and the same in its configuration"
                }
            },
        ),
        Some(seconds) => report.fine(format!("binary logs are kept for {} days", seconds / SHORT)),
    }
    Ok(())
}

fn check_names(conn: &mut Connection, report: &mut Report) -> Result<()> {
    match variable(conn, LOWER_CASE)?.as_deref() {
        Some("0") | None => report.fine(format!("{LOWER_CASE} = 0")),
        Some("1") => report.add(
            Severity::Notice,
            format!("{LOWER_CASE} = 1"),
            "names are in lower case here, and a table that a definition names in another case is copied again",
        ),
        Some(value) => report.add(Severity::Fatal, format!("{LOWER_CASE} = {value}: {NO_CASE}"), ""),
    }
    Ok(())
}

fn check_zone(conn: &mut Connection, report: &mut Report) -> Result<()> {
    let zone = variable(conn, "time_zone")?.unwrap_or_default();
    match zone != "SYSTEM" || is_in_utc(conn)? {
        true => report.fine(format!("time_zone = {zone}")),
        false => report.add(
            Severity::Notice,
            "time_zone = SYSTEM, and the source's machine is not in UTC",
            "tables are copied again when they get a column with the current time, or a TIMESTAMP becomes another type. SET GLOBAL \
             time_zone to the machine's zone by its name (mysql_tzinfo_to_sql), and the same in its configuration",
        ),
    }
    Ok(())
}

fn check_privileges(conn: &mut Connection, report: &mut Report) -> Result<()> {
    let grants = Grants::of(conn)?;
    let user = grants.account();
    let of_log = match conn.flavor {
        Flavor::MySql => "REPLICATION CLIENT",
        Flavor::MariaDb => "BINLOG MONITOR",
    };
    for (privilege, severity) in [
        ("REPLICATION SLAVE", Severity::Fatal),
        (of_log, Severity::Fatal),
        ("SELECT", Severity::Notice),
        ("SHOW VIEW", Severity::Notice),
    ] {
        match grants.has(privilege) {
            true => report.fine(format!("{user} has {privilege}")),
            false => {
                let what = format!("{user} does not have {privilege} on all tables");
                report.add(severity, what, &grants.cure(privilege));
            }
        }
    }
    Ok(())
}

fn check_tables(conn: &mut Connection, patterns: &Patterns, report: &mut Report) -> Result<()> {
    let (mut followed, mut views) = (0, 0);
    for (name, is_view) in tables(conn, patterns)? {
        if is_view && !log_filters(conn)?.leave_out(&name.database) {
            views += 1;
            continue;
        }
        match super::definition(conn, &name)?.map(|definition| definition.obstacle) {
            Some(Some((why, cure))) => {
                report.add(Severity::Partly, format!("{name} is left out: {why}"), &cure);
            }
            _ => followed += 1,
        }
    }
    report.fine(format!("{followed} tables and {views} views can be followed"));
    Ok(())
}
