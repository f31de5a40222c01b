//! The source that CHANGE REPLICATION SOURCE has named, in `replica.json` in the data directory.
//!
//! ```text
//!  {"host": "db1", "port": 3306, "user": "repl", "password": "…", "connect_retry": 60, "auto_position": true, "running": true,
//!   "ssl": false, "ssl_ca": "", "ssl_verify": false}
//! ```
//!
//! Invariant: the file has all that statements were told is done; a new one is written whole, synced, and then takes its place.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use avocet_base::env::{Env, read_file, replace_file};
use avocet_session::Database;
use avocet_session::replication::SourceOptions;
use avocet_types::json::{self, Json, Map, Node};
use mysql::{Opts, OptsBuilder};

use super::Source;
use super::tls::{SslMode, Tls};

const FILE: &str = "replica.json";
const PORT: u16 = 3306;
/// Seconds, as MySQL waits.
const CONNECT_RETRY: u32 = 60;

pub struct Settings {
    env: Env,
    path: PathBuf,
    known: Option<Known>,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    host: String,
    port: u16,
    user: String,
    password: String,
    connect_retry: u32,
    auto_position: bool,
    is_running: bool,
    ssl: bool,
    ssl_ca: String,
    ssl_verify: bool,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            host: String::new(),
            port: PORT,
            user: String::new(),
            password: String::new(),
            connect_retry: CONNECT_RETRY,
            auto_position: false,
            is_running: false,
            ssl: false,
            ssl_ca: String::new(),
            ssl_verify: false,
        }
    }
}

impl Settings {
    /// Reads what a data directory has.
    pub fn open(database: &Database, data: &Path) -> Result<Self, String> {
        let (env, path) = (database.engine().options().env.clone(), data.join(FILE));
        let wrong = |why: &dyn Display| format!("{}: {why}", path.display());
        let known = match read_file(&*env.disk, &path).map_err(|error| wrong(&error))? {
            None => None,
            Some(bytes) => {
                let text = String::from_utf8(bytes).map_err(|error| wrong(&error))?;
                let document = json::parse(&text).map_err(|error| wrong(&error))?;
                Some(Known::of(&document).ok_or_else(|| wrong(&"it does not describe a source"))?)
            }
        };
        Ok(Self { env, path, known })
    }

    pub fn is_known(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.host.is_empty())
    }

    /// Host, port and user.
    pub fn address(&self) -> (String, u16, String) {
        let known = self.known.clone().unwrap_or_default();
        (known.host, known.port, known.user)
    }

    pub fn is_running(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.is_running)
    }

    pub fn uses_gtids(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.auto_position)
    }

    /// # Errors
    /// If its certificate cannot be verified as it is said.
    pub fn source(&self) -> Result<Option<Source>, String> {
        self.known.as_ref().filter(|_| self.is_known()).map(Known::source).transpose()
    }

    /// What is not said stays as it was.
    ///
    /// # Errors
    /// What cannot be followed as it is said, or kept; then nothing is changed.
    pub fn change(&mut self, options: &SourceOptions) -> Result<(), String> {
        let mut known = self.known.clone().unwrap_or_default();
        let SourceOptions {
            host,
            port,
            user,
            password,
            auto_position,
            connect_retry_seconds,
            ssl,
            ssl_ca,
            ssl_verify_server_cert,
        } = options.clone();
        known.host = host.unwrap_or(known.host);
        known.port = port.unwrap_or(known.port);
        known.user = user.unwrap_or(known.user);
        known.password = password.unwrap_or(known.password);
        known.auto_position = auto_position.unwrap_or(known.auto_position);
        known.connect_retry = connect_retry_seconds.unwrap_or(known.connect_retry);
        known.ssl = ssl.unwrap_or(known.ssl);
        known.ssl_ca = ssl_ca.unwrap_or(known.ssl_ca);
        known.ssl_verify = ssl_verify_server_cert.unwrap_or(known.ssl_verify);
        known.source()?;
        self.keep(known)
    }

    pub fn set_running(&mut self, is_running: bool) -> Result<(), String> {
        match self.known.clone() {
            Some(known) if known.is_running != is_running => self.keep(Known { is_running, ..known }),
            _ => Ok(()),
        }
    }

    pub fn forget(&mut self) -> Result<(), String> {
        if self.known.is_some() {
            self.keep(Known::default())?;
        }
        Ok(())
    }

    fn keep(&mut self, known: Known) -> Result<(), String> {
        let wrong = |why: &dyn Display| format!("{}: {why}", self.path.display());
        let encoded = known.document().encode().map_err(|error| wrong(&error))?;
        let mut text = Vec::new();
        json::write(Node::new(&encoded), &mut text);
        replace_file(&*self.env.disk, &self.path, &text).map_err(|error| wrong(&error))?;
        self.known = Some(known);
        Ok(())
    }
}

impl Known {
    fn source(&self) -> Result<Source, String> {
        match (self.ssl, self.ssl_verify, self.ssl_ca.is_empty()) {
            (true, false, false) => {
                return Err("SOURCE_SSL_CA verifies nothing without SOURCE_SSL_VERIFY_SERVER_CERT = 1".into());
            }
            (false, true, _) | (false, _, false) => {
                return Err("SOURCE_SSL_CA and SOURCE_SSL_VERIFY_SERVER_CERT = 1 need SOURCE_SSL = 1".into());
            }
            _ => {}
        }
        let opts = OptsBuilder::new()
            .ip_or_hostname(Some(self.host.clone()))
            .tcp_port(self.port)
            .user(Some(self.user.clone()))
            .pass(Some(self.password.clone()));
        let mut source = Source::new(Opts::default());
        source.tls = self.tls();
        source.opts = source.tls.secure(Opts::from(opts))?;
        source.retry_after = Duration::from_secs(self.connect_retry.max(1).into());
        Ok(source)
    }

    fn tls(&self) -> Tls {
        let mode = match (self.ssl, self.ssl_verify) {
            (false, _) => SslMode::Disabled,
            (true, false) => SslMode::Required,
            (true, true) => SslMode::VerifyIdentity,
        };
        Tls { mode, authorities: (!self.ssl_ca.is_empty()).then(|| self.ssl_ca.clone().into()) }
    }

    fn document(&self) -> Json {
        let text = |text: &str| Json::String(text.to_owned());
        let members = [
            ("host", text(&self.host)),
            ("port", Json::Int(self.port.into())),
            ("user", text(&self.user)),
            ("password", text(&self.password)),
            ("connect_retry", Json::Int(self.connect_retry.into())),
            ("auto_position", Json::Bool(self.auto_position)),
            ("running", Json::Bool(self.is_running)),
            ("ssl", Json::Bool(self.ssl)),
            ("ssl_ca", text(&self.ssl_ca)),
            ("ssl_verify", Json::Bool(self.ssl_verify)),
        ];
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Json::Object(Map::from_members(members))
    }

    /// `None` for a document of another form.
    fn of(document: &Json) -> Option<Self> {
        let Json::Object(root) = document else { return None };
        let member = |wanted: &str| root.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        let text = |name| match member(name)? {
            Json::String(text) => Some(text.clone()),
            _ => None,
        };
        let number = |name| match *member(name)? {
            Json::Int(number) => u32::try_from(number).ok(),
            Json::UInt(number) => u32::try_from(number).ok(),
            _ => None,
        };
        let flag = |name| match *member(name)? {
            Json::Bool(is_set) => Some(is_set),
            _ => None,
        };
        Some(Self {
            host: text("host")?,
            port: number("port")?.try_into().ok()?,
            user: text("user")?,
            password: text("password")?,
            connect_retry: number("connect_retry")?,
            auto_position: flag("auto_position")?,
            is_running: flag("running")?,
            ssl: flag("ssl")?,
            ssl_ca: text("ssl_ca")?,
            ssl_verify: flag("ssl_verify")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_as_it_was_kept() {
        let known = Known {
            host: "a \"host\"".into(),
            password: "p\\'\u{e9}".into(),
            is_running: true,
            ..Known::default()
        };
        let mut text = Vec::new();
        json::write(Node::new(&known.document().encode().expect("it is small")), &mut text);
        let text = String::from_utf8(text).expect("UTF-8");
        assert_eq!(Known::of(&json::parse(&text).expect("JSON")), Some(known));
        for other in ["{}", "[1]", r#"{"host": 1}"#] {
            assert_eq!(Known::of(&json::parse(other).expect("JSON")), None);
        }
    }
}
