//! SHOW of what is the server's or the session's: variables, conditions, connections, lists of features.

use avocet_engine::Privileges;
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::{Limit, VariableScope};
use avocet_sql::parse::statement::ShowKind;
use avocet_types::collation::{Charset, collations};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Datum, IntWidth, SqlType, Value};

use crate::output::{COUNT, LONG_TEXT, Rowset, optional, text, varchar};
use crate::run::Text;
use crate::state::{Level, Session};
use crate::variables::{Scope, VARIABLES};

impl Session {
    /// As OpenSSL calls it; empty without TLS. The ciphers of TLS 1.3 are its own.
    fn tls_version(&self) -> &'static str {
        match &*self.info.cipher {
            "" => "",
            cipher if cipher.starts_with("TLS_") => "TLSv1.3",
            _ => "TLSv1.2",
        }
    }

    pub(super) fn show_server(&mut self, kind: &ShowKind, statement: &Text<'_>) -> Result<Rowset, SqlError> {
        match kind {
            ShowKind::Variables(scope) => self.show_variables(*scope),
            ShowKind::Status(scope) => {
                let mut rows = Rowset::new(
                    "session_status",
                    &[("Variable_name", varchar(64)), ("Value", varchar(1024))],
                );
                for (name, value) in self.shared.status(&*self.info.connections) {
                    rows.push(vec![text(name), text(value)]);
                }
                if *scope != VariableScope::Global {
                    for (own, value) in
                        [("Ssl_cipher", &*self.info.cipher), ("Ssl_version", self.tls_version())]
                    {
                        let is_before =
                            |row: &Vec<Value>| matches!(&row[0], Datum::Str(name) if **name < *own);
                        let at = rows.rows.partition_point(is_before);
                        rows.rows.insert(at, vec![text(own), text(value)]);
                    }
                }
                Ok(rows)
            }
            ShowKind::Warnings { limit } => self.show_conditions(false, limit.as_ref(), statement),
            ShowKind::Errors { limit } => self.show_conditions(true, limit.as_ref(), statement),
            ShowKind::CountWarnings => Ok(count("@@session.warning_count", self.condition_count() as usize)),
            ShowKind::CountErrors => Ok(count("@@session.error_count", self.error_count() as usize)),
            ShowKind::Processlist { full } => Ok(self.show_processlist(*full)),
            ShowKind::Grants { user, using } => self.show_grants(user.as_ref(), using),
            ShowKind::CreateUser(user) => self.show_create_user(user.as_ref()),
            ShowKind::Engines => Ok(engines()),
            ShowKind::Charset => Ok(charsets()),
            ShowKind::Collation => Ok(collation_list()),
            ShowKind::Plugins => Ok(plugins()),
            ShowKind::Privileges => Ok(super::privileges::privileges()),
            ShowKind::Events { database } => {
                if database.is_none() {
                    self.current_database()?;
                }
                nothing("EVENTS")
            }
            ShowKind::Triggers { database } => {
                self.shown_database(database.as_ref())?;
                nothing("TRIGGERS")
            }
            ShowKind::Other(words) if words == "PROCEDURE STATUS" => self.procedures(words),
            ShowKind::ReplicaStatus { channel } => self.replica_status(channel.as_deref()),
            ShowKind::Other(words) if words == "SLAVE STATUS" => self.replica_status(None),
            ShowKind::Other(words) if matches!(words.as_str(), "BINARY LOG STATUS" | "MASTER STATUS") => {
                Ok(self.binary_log_status(nothing(words)?))
            }
            ShowKind::Other(words) if matches!(words.as_str(), "BINARY LOGS" | "MASTER LOGS") => {
                self.binary_logs()
            }
            ShowKind::Other(words) if words == "REPLICAS" => Ok(self.replicas(nothing(words)?)),
            ShowKind::Other(words)
                if matches!(words.as_str(), "PROFILES" | "PROFILE") || words.starts_with("PROFILE ") =>
            {
                let rows = match words.strip_prefix("PROFILE ").or((words == "PROFILE").then_some("")) {
                    Some(kinds) => profile(kinds)?,
                    None => profiles(),
                };
                let name = words.split(' ').next().unwrap_or(words);
                let text = format!(
                    "'SHOW {name}' is deprecated and will be removed in a future release. Please use Performance Schema instead"
                );
                self.warn(Level::Warning, 1287, text);
                Ok(rows)
            }
            ShowKind::Other(words) => nothing(words),
            _ => Err(unsupported("this SHOW")),
        }
    }

    /// The native procedures.
    fn procedures(&self, words: &str) -> Result<Rowset, SqlError> {
        let mut rows = nothing(words)?;
        for procedure in self.shared.engine.procedures().list() {
            let held = self.seen().on_procedure(procedure.database(), procedure.name());
            if !held.intersects(Privileges::EXECUTE) {
                continue;
            }
            let known = [procedure.database(), procedure.name(), "PROCEDURE", "RUST", "root@localhost"];
            let mut row = known.map(text).to_vec();
            row.resize(rows.columns.len(), Datum::Null);
            rows.push(row);
        }
        Ok(rows)
    }

    fn show_variables(&self, scope: VariableScope) -> Result<Rowset, SqlError> {
        let mut rows =
            Rowset::new("session_variables", &[("Variable_name", varchar(64)), ("Value", varchar(1024))]);
        let global = scope == VariableScope::Global;
        for (at, variable) in VARIABLES.iter().enumerate() {
            if global && variable.scope == Scope::Session {
                continue;
            }
            let scope = if global { VariableScope::Global } else { VariableScope::Default };
            let value = self.variables.read(scope, at)?;
            rows.push(vec![text(variable.name), text(variable.show(&value))]);
        }
        Ok(rows)
    }

    fn show_conditions(
        &self,
        errors_only: bool,
        limit: Option<&Limit>,
        statement: &Text<'_>,
    ) -> Result<Rowset, SqlError> {
        let mut rows = Rowset::new("", &[("Level", varchar(7)), ("Code", COUNT), ("Message", varchar(512))]);
        let (skip, take) = match limit {
            None => (0, usize::MAX),
            Some(limit) => self.limits(limit, statement)?,
        };
        let conditions = self.conditions.iter().filter(|c| !errors_only || c.level == Level::Error);
        for condition in conditions.skip(skip).take(take) {
            let level = match condition.level {
                Level::Note => "Note",
                Level::Warning => "Warning",
                Level::Error => "Error",
            };
            rows.push(vec![text(level), Datum::UInt(condition.errno.into()), text(&condition.message)]);
        }
        Ok(rows)
    }

    /// How many rows to leave out, and how many to take.
    pub(super) fn limits(&self, limit: &Limit, statement: &Text<'_>) -> Result<(usize, usize), SqlError> {
        let number = |expr: &avocet_sql::parse::ast::Expr| match self.constant(expr, statement)? {
            Datum::Int(v) => Ok(v.max(0) as usize),
            Datum::UInt(v) => Ok(v as usize),
            _ => Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"LIMIT"])),
        };
        Ok((limit.offset.as_ref().map_or(Ok(0), number)?, number(&limit.count)?))
    }

    fn show_processlist(&self, full: bool) -> Rowset {
        let mut rows = Rowset::new(
            "",
            &[
                ("Id", COUNT),
                ("User", varchar(32)),
                ("Host", varchar(261)),
                ("db", varchar(64)),
                ("Command", varchar(16)),
                ("Time", COUNT),
                ("State", varchar(64)),
                ("Info", LONG_TEXT),
            ],
        );
        for connection in self.seen_connections() {
            let most = if full { usize::MAX } else { 100 };
            let info = connection.info.map(|info| info.chars().take(most).collect::<String>());
            rows.push(vec![
                Datum::UInt(connection.id.into()),
                text(connection.user),
                text(connection.host),
                optional(connection.database),
                text(connection.command),
                Datum::UInt(connection.time_s),
                text(connection.state),
                optional(info),
            ]);
        }
        rows
    }
}

fn count(name: &str, n: usize) -> Rowset {
    let mut rows = Rowset::new("", &[(name, COUNT)]);
    rows.push(vec![Datum::UInt(n as u64)]);
    rows
}

fn engines() -> Rowset {
    let names = ["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"];
    let columns: Vec<_> = names.iter().map(|name| (*name, varchar(80))).collect();
    let mut rows = Rowset::new("ENGINES", &columns);
    let comment = "Avocet: rows and columns in one, under the name that clients expect";
    rows.push(["InnoDB", "DEFAULT", comment, "YES", "NO", "NO"].into_iter().map(text).collect());
    rows
}

pub(crate) fn charset_rows() -> Vec<Vec<Value>> {
    Charset::ALL
        .iter()
        .map(|charset| {
            vec![
                text(charset.name()),
                text(charset.description()),
                text(charset.default_collation().name()),
                Datum::UInt(charset.max_len().into()),
            ]
        })
        .collect()
}

fn charsets() -> Rowset {
    let mut rows = Rowset::new(
        "CHARACTER_SETS",
        &[
            ("Charset", varchar(64)),
            ("Description", varchar(2048)),
            ("Default collation", varchar(64)),
            ("Maxlen", COUNT),
        ],
    );
    rows.rows = charset_rows();
    rows
}

pub(crate) fn collation_rows() -> Vec<Vec<Value>> {
    let yes = |is| text(if is { "Yes" } else { "" });
    let mut list: Vec<_> = collations().iter().collect();
    // As MySQL sorts names: `utf8mb4_danish_ci` before `utf8mb4_da_0900_ai_ci`.
    list.sort_unstable_by_key(|collation| collation.name.to_ascii_uppercase());
    list.into_iter()
        .map(|collation| {
            vec![
                text(collation.name),
                text(collation.charset.name()),
                Datum::UInt(collation.id.into()),
                yes(collation.is_default),
                yes(true),
                Datum::UInt(collation.sort_len.into()),
                text(if collation.pad_space { "PAD SPACE" } else { "NO PAD" }),
            ]
        })
        .collect()
}

fn collation_list() -> Rowset {
    let mut rows = Rowset::new(
        "COLLATIONS",
        &[
            ("Collation", varchar(64)),
            ("Charset", varchar(64)),
            ("Id", COUNT),
            ("Default", varchar(3)),
            ("Compiled", varchar(3)),
            ("Sortlen", COUNT),
            ("Pad_attribute", varchar(9)),
        ],
    );
    rows.rows = collation_rows();
    rows
}

fn plugins() -> Rowset {
    let names = ["Name", "Status", "Type", "Library", "License"];
    let columns: Vec<_> = names.iter().map(|name| (*name, varchar(64))).collect();
    let mut rows = Rowset::new("PLUGINS", &columns);
    for (name, kind) in [
        ("mysql_native_password", "AUTHENTICATION"),
        ("caching_sha2_password", "AUTHENTICATION"),
        ("InnoDB", "STORAGE ENGINE"),
    ] {
        rows.push(vec![text(name), text("ACTIVE"), text(kind), Datum::Null, text("Apache-2.0")]);
    }
    rows
}

/// SHOW PROFILE: nothing is profiled (`profiling` is OFF), but clients want the columns of what they ask for.
fn profile(asked: &str) -> Result<Rowset, SqlError> {
    const KINDS: &[(&str, &[&str])] = &[
        ("CPU", &["CPU_user", "CPU_system"]),
        ("CONTEXT SWITCHES", &["Context_voluntary", "Context_involuntary"]),
        ("BLOCK IO", &["Block_ops_in", "Block_ops_out"]),
        ("IPC", &["Messages_sent", "Messages_received"]),
        ("PAGE FAULTS", &["Page_faults_major", "Page_faults_minor"]),
        ("SWAPS", &["Swaps"]),
        ("SOURCE", &["Source_function", "Source_file", "Source_line"]),
    ];
    let kinds = ["FOR QUERY ", "LIMIT "]
        .iter()
        .fold(asked, |kinds, end| kinds.find(end).map_or(kinds, |at| &kinds[..at]));
    let kinds: Vec<&str> = kinds.split(',').map(str::trim).filter(|kind| !kind.is_empty()).collect();
    let is_known =
        |kind: &&str| matches!(*kind, "ALL" | "MEMORY") || KINDS.iter().any(|(name, _)| name == kind);
    if !kinds.iter().all(is_known) {
        return Err(unsupported(format_args!("SHOW PROFILE {asked}")));
    }
    let wanted = KINDS.iter().filter(|(name, _)| kinds.contains(name) || kinds.contains(&"ALL"));
    let names = ["Status", "Duration"].iter().chain(wanted.flat_map(|(_, columns)| *columns));
    let type_of = |name: &str| match name {
        "Duration" | "CPU_user" | "CPU_system" => {
            SqlType::Decimal { precision: 9, scale: 6, unsigned: false }
        }
        "Status" | "Source_function" => varchar(30),
        "Source_file" => varchar(20),
        _ => SqlType::INT,
    };
    let columns: Vec<_> = names.map(|name| (*name, type_of(name))).collect();
    Ok(Rowset::new("PROFILING", &columns))
}

/// SHOW PROFILES
fn profiles() -> Rowset {
    let int = SqlType::Int { width: IntWidth::W32, unsigned: true };
    Rowset::new("", &[("Query_ID", int), ("Duration", SqlType::DOUBLE), ("Query", varchar(300))])
}

/// Lists that are always empty: there are no triggers, events or replicas, nor routines but native procedures. Clients want
/// the columns.
fn nothing(words: &str) -> Result<Rowset, SqlError> {
    let columns: &[&str] =
        match words.split(" FROM ").next().and_then(|w| w.split(" IN ").next()).unwrap_or(words) {
            "TRIGGERS" => &[
                "Trigger",
                "Event",
                "Table",
                "Statement",
                "Timing",
                "Created",
                "sql_mode",
                "Definer",
                "character_set_client",
                "collation_connection",
                "Database Collation",
            ],
            "EVENTS" => &[
                "Db",
                "Name",
                "Definer",
                "Time zone",
                "Type",
                "Execute at",
                "Interval value",
                "Interval field",
                "Starts",
                "Ends",
                "Status",
                "Originator",
                "character_set_client",
                "collation_connection",
                "Database Collation",
            ],
            "PROCEDURE STATUS" | "FUNCTION STATUS" => &[
                "Db",
                "Name",
                "Type",
                "Language",
                "Definer",
                "Modified",
                "Created",
                "Security_type",
                "Comment",
                "character_set_client",
                "collation_connection",
                "Database Collation",
            ],
            "OPEN TABLES" => &["Database", "Table", "In_use", "Name_locked"],
            "MASTER STATUS" | "BINARY LOG STATUS" => {
                &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"]
            }
            "REPLICAS" => &["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"],
            _ => return Err(unsupported(format_args!("SHOW {words}"))),
        };
    let columns: Vec<_> = columns.iter().map(|name| (*name, varchar(1024))).collect();
    Ok(Rowset::new("", &columns))
}
