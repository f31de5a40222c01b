//! System variables: what there is, of which scope and type, and the values that sessions and the server have.
//!
//! A variable's value is kept as clients see it; what statements look at often stands beside in
//! [`Settings`](super::settings::Settings), made anew after each SET.

mod table;
mod values;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use avocet_channel::blocking::blocking;
use avocet_engine::Durability;
use avocet_sql::parse::ast::VariableScope;
use avocet_types::collation::{CollationInfo, collations};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::temporal::{Locale, TimeZone};
use avocet_types::{Collation, Datum, SqlType, Value};
use parking_lot::RwLock;

use super::binary_log::BinaryLog;
use super::role_names::parse_roles;
use super::routing::Freshness;
use super::settings::{ServerSettings, Settings};

pub(super) use table::VARIABLES;
pub(super) use values::int;

/// Who has a value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Global,
    Session,
    Both,
}

/// Integers that are BIGINTs in MySQL; all others that cannot be negative are BIGINT UNSIGNEDs.
const SIGNED: [&str; 2] = ["innodb_autoinc_lock_mode", "max_digest_length"];

/// What values a variable takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// ON and OFF, shown as 1 and 0 by SELECT.
    Bool,
    Int {
        min: i64,
        max: i64,
    },
    UInt {
        min: u64,
        max: u64,
    },
    Double,
    Text,
    /// A list of roles.
    Roles,
    /// Text or NULL.
    NullableText,
    /// One of these words, or its position.
    Enum(&'static [&'static str]),
    /// The name of a storage engine that tables may name.
    Engine,
    /// Some of these words, separated by commas.
    Words(&'static [&'static str]),
    /// Some of these words, each with `=on`, `=off` or `=default`, separated by commas; or `default`.
    Switches(&'static [&'static str]),
    SqlMode,
    TimeZone,
    /// The name of a locale, or its number.
    Locale,
    /// A character set's name.
    Charset,
    /// `sync`, `group`, `group:MS` or `os`.
    Durability,
    /// `latest`, `session`, `bounded(MS)` or `any`.
    Freshness,
    /// As `Charset`, or NULL.
    NullableCharset,
    Collation,
}

/// What a variable does. There is nothing else that one could do: a variable without a reader says so, and COMPAT.md lists it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// Statements look at what this makes of its value. The compiler warns of settings that nobody looks at.
    Reads(fn(&mut Settings, &Value)),
    /// As `Reads`, for the whole server.
    Server(fn(&mut ServerSettings, &Value)),
    /// Setting it is what LAST_INSERT_ID() gives from then on.
    InsertId,
    /// It says the same as the variable of this name, which is set with it.
    Sets(&'static str),
    /// It tells what is so, and cannot be set.
    Tells,
    /// Its default is what is so: any other value is refused (1235).
    OnlyDefault,
    /// No value could make a difference here: listed in COMPAT.md.
    Inert,
}

/// Who may set a session's own value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionUse {
    Anybody,
    /// Who holds SESSION_VARIABLES_ADMIN, or what includes it.
    Administrators,
    /// A session keeps what the server's value was when it began.
    Nobody,
}

/// A row of the table of variables.
#[derive(Debug)]
pub(super) struct Variable {
    pub name: &'static str,
    pub scope: Scope,
    pub kind: Kind,
    /// As SHOW VARIABLES would print it.
    pub default: &'static str,
    pub effect: Effect,
    pub session: SessionUse,
}

/// So long `gtid_executed` waits for a binary log that is behind what is committed; it tells how far it is then.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// MySQL takes no time from here on.
const LAST_TIMESTAMP: f64 = 2_147_483_648.0;
const UTF8MB4_COLLATION: &str = "default_collation_for_utf8mb4";
/// The roles that every account has.
pub(super) const MANDATORY_ROLES: &str = "mandatory_roles";

/// The value of each variable, by its position in [`VARIABLES`].
#[derive(Clone, Debug)]
pub(super) struct Values(Vec<Value>);

/// The server's values: what new sessions begin with, and what the server itself goes by.
pub(super) struct Globals {
    values: RwLock<Values>,
    settings: RwLock<Arc<ServerSettings>>,
    /// Apart from the settings, since every change of rows looks at it: a [`Changes`].
    changes: AtomicU8,
    /// What it says of itself changes with every commit.
    binary_log: OnceLock<Arc<dyn BinaryLog>>,
}

/// Whose changes the server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Changes {
    Anybody,
    Administrators,
    Nobody,
}

/// The position of a variable, which is known by its name in lower case.
pub(super) fn find(name: &str) -> Result<usize, SqlError> {
    VARIABLES
        .binary_search_by(|v| v.name.cmp(name))
        .map_err(|_| ErrorCode::UNKNOWN_SYSTEM_VARIABLE.with(&[&name]))
}

/// The variables whose values a session's statements go by.
pub fn in_effect() -> impl Iterator<Item = &'static str> {
    VARIABLES
        .iter()
        .filter(|variable| matches!(variable.effect, Effect::Reads(_)))
        .map(|variable| variable.name)
}

/// Whether a session's own value is for administrators; false if there is no such variable.
pub(super) fn is_restricted(name: &str) -> bool {
    find(name).is_ok_and(|at| VARIABLES[at].session == SessionUse::Administrators)
}

/// The position of a variable that the code itself names.
pub(super) fn known(name: &'static str) -> usize {
    find(name).expect("the name stands in the table")
}

impl Values {
    /// Every variable at its default.
    pub fn defaults() -> Self {
        let parse = |v: &Variable| {
            v.parse_text(v.default).unwrap_or_else(|_| unreachable!("the default of {} is valid", v.name))
        };
        Self(VARIABLES.iter().map(parse).collect())
    }

    pub fn get(&self, position: usize) -> &Value {
        &self.0[position]
    }

    pub fn put(&mut self, position: usize, value: Value) {
        self.0[position] = value;
    }

    /// Gives a variable a value, and those that say the same in other words. Returns what they had before.
    pub fn put_with_others(&mut self, position: usize, value: Value) -> Vec<(usize, Value)> {
        let mut all = values::others(VARIABLES[position].name, &value);
        all.push((VARIABLES[position].name, value));
        let mut put = |(name, value)| {
            let at = known(name);
            (at, std::mem::replace(&mut self.0[at], value))
        };
        all.into_iter().map(&mut put).collect()
    }

    /// Gives a variable a value that was persisted, unless this server does not know it, or it only tells.
    pub fn put_persisted(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let Ok(position) = find(name) else { return Ok(()) };
        let variable = &VARIABLES[position];
        if matches!(variable.effect, Effect::Tells) {
            return Ok(());
        }
        let (value, _) = variable.accept(&variable.parse_text(value)?)?;
        variable.check_value(&value)?;
        self.put_with_others(position, value);
        Ok(())
    }

    pub fn by_name(&self, name: &'static str) -> &Value {
        self.get(known(name))
    }

    pub fn put_by_name(&mut self, name: &'static str, value: Value) {
        self.put(known(name), value);
    }
}

impl Globals {
    pub fn new(values: Values) -> Self {
        let settings = RwLock::new(Arc::new(ServerSettings::new(&values)));
        Self {
            values: RwLock::new(values),
            settings,
            changes: AtomicU8::new(Changes::Anybody as u8),
            binary_log: OnceLock::new(),
        }
    }

    /// Whose changes the server takes now.
    pub(super) fn changes(&self) -> Changes {
        match self.changes.load(Ordering::Acquire) {
            0 => Changes::Anybody,
            1 => Changes::Administrators,
            _ => Changes::Nobody,
        }
    }

    pub fn snapshot(&self) -> Values {
        self.values.read().clone()
    }

    /// What the server goes by at this moment.
    pub fn settings(&self) -> Arc<ServerSettings> {
        self.settings.read().clone()
    }

    pub fn follow(&self, log: Arc<dyn BinaryLog>) {
        // It is set once.
        let _ = self.binary_log.set(log);
    }

    pub fn get(&self, position: usize) -> Value {
        if let Some(log) = self.binary_log.get() {
            match VARIABLES[position].name {
                "gtid_executed" => {
                    // What its reader has committed is there. Nobody can end this wait.
                    blocking(|| log.catch_up(ANSWERED_WITHIN, &|| false));
                    return Datum::Str(log.status().executed.into());
                }
                "gtid_purged" => return Datum::Str(log.status().purged.into()),
                _ => {}
            }
        }
        self.values.read().get(position).clone()
    }

    /// The folder that `secure_file_priv` names, if there is one.
    pub fn file_folder(&self) -> Option<PathBuf> {
        match self.get(known("secure_file_priv")) {
            Datum::Str(folder) => Path::new(&*folder).canonicalize().ok(),
            _ => None,
        }
    }

    pub fn put(&self, position: usize, value: Value) {
        let mut values = self.values.write();
        values.put_with_others(position, value);
        let settings = ServerSettings::new(&values);
        let changes = match (settings.super_read_only, settings.read_only) {
            (true, _) => Changes::Nobody,
            (false, true) => Changes::Administrators,
            (false, false) => Changes::Anybody,
        };
        self.changes.store(changes as u8, Ordering::Release);
        *self.settings.write() = Arc::new(settings);
    }
}

impl Variable {
    /// The type that `@@name` has.
    pub fn sql_type(&self, connection: Collation) -> SqlType {
        match self.kind {
            Kind::Int { min: 0.., .. } if !SIGNED.contains(&self.name) => SqlType::BIGINT_UNSIGNED,
            Kind::Bool | Kind::Int { .. } => SqlType::BIGINT,
            Kind::UInt { .. } => SqlType::BIGINT_UNSIGNED,
            Kind::Double => SqlType::DOUBLE,
            _ => SqlType::VarChar { len: 1024, collation: connection },
        }
    }

    /// `@@name` as a literal.
    pub fn literal(&self, value: &Value, connection: Collation) -> Expr {
        let ty = self.sql_type(connection);
        match *value {
            Datum::Int(v) if ty.is_unsigned() => Expr::literal(Datum::UInt(v as u64), ty),
            _ => Expr::literal(value.clone(), ty),
        }
    }

    /// As SHOW VARIABLES prints a value.
    pub fn show(&self, value: &Value) -> String {
        match (self.kind, value) {
            (Kind::Bool, Datum::Int(0)) => "OFF".into(),
            (Kind::Bool, _) => "ON".into(),
            (_, Datum::Int(v)) => v.to_string(),
            (_, Datum::UInt(v)) => v.to_string(),
            (_, Datum::Double(v)) => format!("{v:.6}"),
            (_, Datum::Str(v)) => v.to_string(),
            // What is not set is no folder here, and '' is any.
            (Kind::NullableText, Datum::Null) if self.name == "secure_file_priv" => "NULL".into(),
            _ => String::new(),
        }
    }

    /// Whether SET with this scope may reach it, and which value it then is. A session that stands for one of another server
    /// (`is_on_behalf`) is given what that one began with.
    pub fn check_set(&self, scope: VariableScope, is_on_behalf: bool) -> Result<(), SqlError> {
        use VariableScope::{Global, Persist, PersistOnly};
        if self.scope == Scope::Session && matches!(scope, Persist | PersistOnly) {
            return Err(ErrorCode::LOCAL_VARIABLE.with(&[&self.name]));
        }
        if matches!(self.effect, Effect::Tells) && scope == PersistOnly {
            return Err(
                ErrorCode::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&self.name, &"non persistent read only"])
            );
        }
        if matches!(self.effect, Effect::Tells) {
            return Err(ErrorCode::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&self.name, &"read only"]));
        }
        match (scope, self.scope) {
            (VariableScope::Session | VariableScope::Default, Scope::Both)
                if self.session == SessionUse::Nobody && !is_on_behalf =>
            {
                Err(ErrorCode::VARIABLE_IS_READONLY.with(&[&"SESSION", &self.name, &"GLOBAL"]))
            }
            (Global | Persist | PersistOnly, Scope::Session) => {
                Err(ErrorCode::LOCAL_VARIABLE.with(&[&self.name]))
            }
            (VariableScope::Session | VariableScope::Default, Scope::Global) => {
                Err(ErrorCode::GLOBAL_VARIABLE.with(&[&self.name]))
            }
            _ => Ok(()),
        }
    }

    /// The variable that does what this one says in other words.
    pub fn acting(&self) -> &Self {
        match self.effect {
            Effect::Sets(name) => &VARIABLES[known(name)],
            _ => self,
        }
    }

    /// Error 1235 for a value that would promise something that there is not, 3721 for a collation that utf8mb4 has never had by
    /// default.
    pub fn check_value(&self, value: &Value) -> Result<(), SqlError> {
        if self.name == UTF8MB4_COLLATION {
            let name = self.show(value);
            return match name.as_str() {
                "utf8mb4_0900_ai_ci" | "utf8mb4_general_ci" => Ok(()),
                // What a MariaDB has set, of which definitions come.
                name if name.starts_with("utf8mb4_uca1400_") => Ok(()),
                _ => Err(ErrorCode::INVALID_DEFAULT_UTF8MB4_COLLATION.with(&[&name])),
            };
        }
        if let ("timestamp", Datum::Double(seconds)) = (self.name, value)
            && *seconds > 0.0
            && !(1.0..LAST_TIMESTAMP).contains(seconds)
        {
            let mut shown = Vec::new();
            avocet_types::number::write_f64(*seconds, &mut shown);
            return Err(self.wrong_value(&String::from_utf8_lossy(&shown)));
        }
        let Effect::OnlyDefault = self.effect else { return Ok(()) };
        let default = self.parse_text(self.default)?;
        if self.show(&default).eq_ignore_ascii_case(&self.show(value)) {
            return Ok(());
        }
        Err(SqlError::unsupported(format_args!("SET {} = {}", self.name, self.show(value))))
    }

    #[cfg(test)]
    pub fn is_without_effect(&self) -> bool {
        matches!(self.effect, Effect::Inert)
    }

    fn wrong_value(&self, value: &str) -> SqlError {
        ErrorCode::WRONG_VALUE_FOR_VAR.with(&[&self.name, &value])
    }

    fn wrong_type(&self) -> SqlError {
        ErrorCode::WRONG_TYPE_FOR_VAR.with(&[&self.name])
    }

    /// The value that SET gives it. Numbers beyond the limits are clipped, as MySQL does with a warning; `true` says so.
    pub fn accept(&self, value: &Value) -> Result<(Value, bool), SqlError> {
        let number = match value {
            Datum::Int(v) => Some(i128::from(*v)),
            Datum::UInt(v) => Some(i128::from(*v)),
            _ => None,
        };
        let clipped = |v: i128, min: i128, max: i128| (v.clamp(min, max), !(min..=max).contains(&v));
        match (self.kind, number) {
            (Kind::Bool, Some(v @ (0 | 1))) => Ok((Datum::Int(v as i64), false)),
            (Kind::Bool, Some(v)) => Err(self.wrong_value(&v.to_string())),
            (Kind::Int { min, max }, Some(v)) => {
                let (v, cut) = clipped(v, min.into(), max.into());
                Ok((Datum::Int(v as i64), cut))
            }
            (Kind::UInt { min, max }, Some(v)) => {
                let (v, cut) = clipped(v, min.into(), max.into());
                Ok((Datum::UInt(v as u64), cut))
            }
            (Kind::Int { .. } | Kind::UInt { .. }, None) => Err(self.wrong_type()),
            (Kind::Double, Some(v)) => Ok((Datum::Double(v as f64), false)),
            (Kind::Double, None) => match value {
                Datum::Double(_) | Datum::Float(_) | Datum::Decimal(_) => {
                    Ok((Datum::Double(avocet_types::compare::double(value)), false))
                }
                _ => Err(self.wrong_type()),
            },
            (Kind::Enum(words), Some(v)) => {
                let word = usize::try_from(v).ok().and_then(|at| words.get(at));
                let word = word.ok_or_else(|| self.wrong_value(&v.to_string()))?;
                Ok((Datum::Str((*word).into()), false))
            }
            (Kind::Locale, Some(v)) => {
                let locale = usize::try_from(v).ok().and_then(|at| Locale::all().get(at));
                let locale = locale.ok_or_else(|| unknown_locale(&v.to_string()))?;
                Ok((Datum::Str(locale.name.into()), false))
            }
            (Kind::SqlMode, Some(bits)) => Ok((Datum::Str(super::sql_mode::of_bits(bits)?.into()), false)),
            (Kind::Charset | Kind::NullableCharset, Some(id)) => {
                let collation = collation_by_id(id);
                let collation = collation.ok_or_else(|| ErrorCode::UNKNOWN_CHARACTER_SET.with(&[&id]))?;
                let charset = collation.charset;
                if self.name == "character_set_client" && !charset.is_for_clients() {
                    return Err(self.wrong_value(&id.to_string()));
                }
                Ok((Datum::Str(charset.name().into()), false))
            }
            (Kind::Collation, Some(id)) => {
                let collation = collation_by_id(id);
                let collation = collation.ok_or_else(|| ErrorCode::UNKNOWN_COLLATION.with(&[&id]))?;
                Ok((Datum::Str(collation.name.into()), false))
            }
            (Kind::NullableText | Kind::NullableCharset, _) if value.is_null() => Ok((Datum::Null, false)),
            (_, Some(v)) => match self.kind {
                Kind::Text | Kind::NullableText | Kind::Engine => Err(self.wrong_type()),
                _ => Err(self.wrong_value(&v.to_string())),
            },
            _ => match value {
                Datum::Str(text) => self.parse_text(text).map(|v| (v, false)),
                Datum::Bytes(text) => self.parse_text(&String::from_utf8_lossy(text)).map(|v| (v, false)),
                Datum::Null => Err(self.wrong_value("NULL")),
                _ => Err(self.wrong_type()),
            },
        }
    }

    /// A value from text: SET's strings, defaults, server options.
    pub fn parse_text(&self, text: &str) -> Result<Value, SqlError> {
        let owned = |text: &str| Datum::Str(text.to_owned().into());
        match self.kind {
            Kind::Bool => match text.to_ascii_uppercase().as_str() {
                "ON" | "TRUE" | "1" => Ok(Datum::Int(1)),
                "OFF" | "FALSE" | "0" => Ok(Datum::Int(0)),
                _ => Err(self.wrong_value(text)),
            },
            Kind::Int { .. } => text.parse().map(Datum::Int).map_err(|_| self.wrong_type()),
            Kind::UInt { .. } => text.parse().map(Datum::UInt).map_err(|_| self.wrong_type()),
            Kind::Double => text.parse().map(Datum::Double).map_err(|_| self.wrong_type()),
            Kind::Text => Ok(owned(text)),
            Kind::Roles => {
                parse_roles(text).ok_or_else(|| self.wrong_value(text))?;
                Ok(owned(text))
            }
            Kind::NullableText => Ok(if text.is_empty() { Datum::Null } else { owned(text) }),
            Kind::Enum(words) => {
                let word = words.iter().find(|w| w.eq_ignore_ascii_case(text));
                word.map(|w| Datum::Str((*w).into())).ok_or_else(|| self.wrong_value(text))
            }
            Kind::Engine => {
                let name = crate::engines::engine_name(text);
                name.map(|name| Datum::Str(name.into()))
                    .ok_or_else(|| ErrorCode::UNKNOWN_STORAGE_ENGINE.with(&[&text]))
            }
            Kind::Words(known) => {
                let is_known = |word: &str| known.iter().any(|known| known.eq_ignore_ascii_case(word));
                match text.split(',').all(is_known) {
                    true => Ok(owned(&text.to_ascii_uppercase())),
                    false => Err(self.wrong_value(text)),
                }
            }
            Kind::Switches(known) => {
                let is_known = |switch: &str| match switch.split_once('=') {
                    None => switch.eq_ignore_ascii_case("default"),
                    Some((name, value)) => {
                        let values = ["on", "off", "default"];
                        known.iter().any(|known| known.eq_ignore_ascii_case(name))
                            && values.iter().any(|known| known.eq_ignore_ascii_case(value))
                    }
                };
                match text.split(',').find(|switch| !switch.is_empty() && !is_known(switch)) {
                    None => Ok(owned(text)),
                    Some(unknown) => Err(self.wrong_value(unknown)),
                }
            }
            Kind::SqlMode => Ok(Datum::Str(super::sql_mode::normalize(text)?.into())),
            Kind::TimeZone => {
                let zone = TimeZone::parse(text).map_err(|_| ErrorCode::UNKNOWN_TIME_ZONE.with(&[&text]))?;
                Ok(match text {
                    _ if text.eq_ignore_ascii_case("SYSTEM") => owned("SYSTEM"),
                    _ if text.eq_ignore_ascii_case("UTC") => owned("UTC"),
                    _ if zone.is_named() => owned(&zone.to_string()),
                    _ => owned(text),
                })
            }
            Kind::Locale => {
                let locale = Locale::by_name(text).ok_or_else(|| unknown_locale(text))?;
                Ok(Datum::Str(locale.name.into()))
            }
            Kind::Durability => {
                let durability: Durability = text.parse().map_err(|_| self.wrong_value(text))?;
                Ok(owned(&durability.to_string()))
            }
            Kind::Freshness => {
                let freshness: Freshness = text.parse().map_err(|()| self.wrong_value(text))?;
                Ok(owned(&freshness.to_string()))
            }
            Kind::NullableCharset if text.is_empty() => Ok(Datum::Null),
            Kind::Charset | Kind::NullableCharset => {
                let charset = avocet_types::collation::Charset::by_name(text);
                let charset = charset.ok_or_else(|| ErrorCode::UNKNOWN_CHARACTER_SET.with(&[&text]))?;
                if self.name == "character_set_client" && !charset.is_for_clients() {
                    return Err(self.wrong_value(charset.name()));
                }
                Ok(owned(charset.name()))
            }
            Kind::Collation => {
                let collation = Collation::by_name(text);
                let collation = collation.ok_or_else(|| ErrorCode::UNKNOWN_COLLATION.with(&[&text]))?;
                Ok(owned(collation.name()))
            }
        }
    }
}

/// A collation by the number that MySQL has for it; also for a character set's, as `mysqlbinlog` names them.
fn collation_by_id(id: i128) -> Option<&'static CollationInfo> {
    collations().iter().find(|collation| i128::from(collation.id) == id)
}

fn unknown_locale(name: &str) -> SqlError {
    ErrorCode::UNKNOWN_LOCALE.with(&[&name])
}

/// What a session has of the variables: its own values, and the server's.
pub(super) struct SessionVariables {
    pub own: Values,
    pub globals: Arc<Globals>,
}

impl SessionVariables {
    pub fn new(globals: Arc<Globals>) -> Self {
        Self { own: globals.snapshot(), globals }
    }

    /// The value that `@@scope.name` means.
    pub fn read(&self, scope: VariableScope, position: usize) -> Result<Value, SqlError> {
        let variable = &VARIABLES[position];
        match (scope, variable.scope) {
            (VariableScope::Global, Scope::Session) => {
                Err(ErrorCode::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&variable.name, &"SESSION"]))
            }
            (VariableScope::Session, Scope::Global) => {
                Err(ErrorCode::INCORRECT_GLOBAL_LOCAL_VAR.with(&[&variable.name, &"GLOBAL"]))
            }
            (VariableScope::Global, _) | (_, Scope::Global) => Ok(self.globals.get(position)),
            _ => Ok(self.own.get(position).clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_defaults_are_valid() {
        assert!(VARIABLES.windows(2).all(|w| w[0].name < w[1].name));
        let values = Values::defaults();
        assert!(matches!(values.by_name("autocommit"), Datum::Int(1)));
        assert!(matches!(values.by_name("sql_select_limit"), Datum::UInt(u64::MAX)));
    }

    #[test]
    fn values_are_checked_as_mysql_checks_them() {
        let variable = |name| &VARIABLES[find(name).expect("known")];
        let autocommit = variable("autocommit");
        assert!(matches!(autocommit.accept(&Datum::str("on").into_owned()), Ok((Datum::Int(1), false))));
        assert_eq!(autocommit.accept(&Datum::Int(7)).expect_err("bad").errno, 1231);
        let text = |text: &'static str| Datum::str(text).into_owned();
        let switches = variable("optimizer_switch");
        assert!(switches.accept(&text("mrr=on,batched_key_access=off")).is_ok());
        assert_eq!(switches.accept(&text("nosuch=on")).expect_err("bad").errno, 1231);
        assert_eq!(switches.accept(&text("mrr=perhaps")).expect_err("bad").errno, 1231);
        assert!(variable("log_output").accept(&text("file,table")).is_ok());
        assert_eq!(variable("log_output").accept(&text("nosuch")).expect_err("bad").errno, 1231);
        assert_eq!(variable("block_encryption_mode").accept(&text("x")).expect_err("bad").errno, 1231);
        let longest = variable("group_concat_max_len");
        assert!(matches!(longest.accept(&Datum::Int(1)), Ok((Datum::UInt(4), true))));
        let wait = variable("wait_timeout");
        assert!(matches!(wait.accept(&Datum::Int(0)), Ok((Datum::Int(1), true))));
        assert_eq!(wait.accept(&Datum::str("x").into_owned()).expect_err("bad").errno, 1232);
        assert_eq!(find("no_such").expect_err("unknown").errno, 1193);
    }
}
