//! The sources that CHANGE REPLICATION SOURCE has named, one for each channel, in `replica.json` in the data directory.
//!
//! ```text
//!  {"host": "db1", "port": 3306, "user": "repl", "password": "…", "connect_retry": 60, "auto_position": true, "running": true,
//!   "ssl": false, "ssl_ca": "", "ssl_verify": false}
//! ```
//!
//! That is the default channel; one that is alone has no more. With others, it also has `"databases": ["a", …]`, those that it follows, and
//! `"channels": {"name": {"number": 2, …}, …}`, each with the same members.
//!
//! Invariants:
//! 1. The file has all that statements were told is done; a new one is written whole, synced, and then takes its place.
//! 2. Of several channels, a database is in the list of one before a row of it is here ([`Claims`]).
//! 3. A name keeps its number, also when its source is forgotten: the engine knows by it how far the channel is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::{Env, read_file, replace_file};
use avocet_replicate::{Attachment, Channel, Claims, SOURCE, SYSTEM};
use avocet_session::Database;
use avocet_session::replication::SourceOptions;
use avocet_types::json::{self, Json, Map, Node};
use mysql::{Opts, OptsBuilder};
use parking_lot::Mutex;

use super::Source;
use super::tls::{SslMode, Tls};

const FILE: &str = "replica.json";
const PORT: u16 = 3306;
/// Seconds, as MySQL waits.
const CONNECT_RETRY: u32 = 60;
/// The default channel's name.
pub const DEFAULT: &str = "";

/// What is kept of all channels.
pub struct Kept {
    env: Env,
    path: PathBuf,
    database: Database,
    channels: Mutex<Channels>,
}

/// By name; the default one is always there.
type Channels = BTreeMap<String, Entry>;

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The engine's number of its source.
    number: u32,
    known: Known,
    /// Databases that it follows.
    databases: BTreeSet<String>,
}

impl Entry {
    fn new(number: u32) -> Self {
        Self { number, known: Known::default(), databases: BTreeSet::new() }
    }

    fn exists(&self) -> bool {
        self.known != Known::default()
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What is kept of one channel.
pub struct Settings {
    kept: Arc<Kept>,
    name: String,
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

impl Kept {
    /// Reads what a data directory has.
    pub fn open(database: &Database, data: &Path) -> Result<Arc<Self>, String> {
        let (env, path) = (database.engine().options().env.clone(), data.join(FILE));
        let wrong = |why: &dyn Display| format!("{}: {why}", path.display());
        let channels = match read_file(&*env.disk, &path).map_err(|error| wrong(&error))? {
            None => Channels::from([(DEFAULT.to_owned(), Entry::new(SOURCE))]),
            Some(bytes) => {
                let text = String::from_utf8(bytes).map_err(|error| wrong(&error))?;
                let document = json::parse(&text).map_err(|error| wrong(&error))?;
                channels_of(&document).ok_or_else(|| wrong(&"it does not describe a source"))?
            }
        };
        Ok(Arc::new(Self { env, path, database: database.clone(), channels: Mutex::new(channels) }))
    }

    /// One channel's part; a new name gets a number.
    pub fn channel(self: &Arc<Self>, name: &str) -> Settings {
        let mut channels = self.channels.lock();
        if !channels.contains_key(name) {
            let is_first = channels.len() == 1;
            let number = channels.values().map(|entry| entry.number).max().unwrap_or(SOURCE) + 1;
            channels.insert(name.to_owned(), Entry::new(number));
            if is_first && Attachment::has_begun(self.database.engine(), SOURCE) {
                self.claim_what_is_here(&mut channels);
            }
        }
        Settings { kept: self.clone(), name: name.to_owned() }
    }

    /// Until now there was one channel: what is here is its own.
    fn claim_what_is_here(&self, channels: &mut Channels) {
        let catalog = self.database.engine().catalog();
        let names = catalog.databases().map(|database| database.name.clone());
        let names = names.filter(|name| !SYSTEM.contains(&name.as_str()));
        if let Some(default) = channels.get_mut(DEFAULT) {
            default.databases.extend(names);
        }
    }

    /// Channels that statements have named a source for, but for the default one.
    pub fn named(&self) -> Vec<String> {
        let channels = self.channels.lock();
        let named = channels.iter().filter(|(name, entry)| *name != DEFAULT && entry.exists());
        named.map(|(name, _)| name.clone()).collect()
    }

    /// The channel that follows a database, if one does.
    pub fn owner(&self, database: &str) -> Option<String> {
        let channels = self.channels.lock();
        let owner = channels.iter().find(|(_, entry)| entry.databases.contains(database));
        owner.map(|(name, _)| name.clone())
    }

    pub fn is_any_running(&self) -> bool {
        self.channels.lock().values().any(|entry| entry.known.is_running)
    }

    /// Whose a database is, if it is not this channel's.
    fn other(&self, channels: &Channels, database: &str, number: u32) -> Option<String> {
        let owner = channels.iter().find(|(_, entry)| entry.databases.contains(database));
        let (name, entry) = owner.filter(|(_, entry)| entry.number != number)?;
        // What a channel has left behind is anybody's once it is dropped.
        let is_left = !entry.exists() && self.database.engine().catalog().database(database).is_none();
        (!is_left).then(|| name.clone())
    }

    /// Writes what is to be, and then it is so.
    fn keep(&self, channels: &mut Channels, next: Channels) -> Result<(), String> {
        let wrong = |why: &dyn Display| format!("{}: {why}", self.path.display());
        let encoded = document(&next).encode().map_err(|error| wrong(&error))?;
        let mut text = Vec::new();
        json::write(Node::new(&encoded), &mut text);
        replace_file(&*self.env.disk, &self.path, &text).map_err(|error| wrong(&error))?;
        *channels = next;
        Ok(())
    }
}

impl Claims for Kept {
    fn other(&self, database: &str, channel: u32) -> Option<String> {
        let channels = self.channels.lock();
        // There is nobody else.
        if channels.len() == 1 { None } else { self.other(&channels, database, channel) }
    }

    fn claim(&self, database: &str, channel: u32) -> Result<Option<String>, String> {
        let mut channels = self.channels.lock();
        if let Some(other) = self.other(&channels, database, channel) {
            return Ok(Some(other));
        }
        let is_ours = |entry: &Entry| entry.number == channel && entry.databases.contains(database);
        if channels.values().any(is_ours) {
            return Ok(None);
        }
        let mut next = channels.clone();
        for entry in next.values_mut() {
            entry.databases.remove(database);
            if entry.number == channel {
                entry.databases.insert(database.to_owned());
            }
        }
        // One that is alone needs no file to know what is its own.
        match next.len() {
            1 => *channels = next,
            _ => self.keep(&mut channels, next)?,
        }
        Ok(None)
    }
}

impl Settings {
    fn entry(&self) -> Entry {
        self.kept.channels.lock().get(&self.name).cloned().unwrap_or_else(|| Entry::new(SOURCE))
    }

    /// Of its channel.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn number(&self) -> u32 {
        self.entry().number
    }

    /// Whether statements have said anything of it.
    pub fn exists(&self) -> bool {
        self.entry().exists()
    }

    pub fn is_known(&self) -> bool {
        !self.entry().known.host.is_empty()
    }

    /// Host, port and user.
    pub fn address(&self) -> (String, u16, String) {
        let known = self.entry().known;
        (known.host, known.port, known.user)
    }

    pub fn is_running(&self) -> bool {
        self.entry().known.is_running
    }

    pub fn uses_gtids(&self) -> bool {
        self.entry().known.auto_position
    }

    /// # Errors
    /// If its certificate cannot be verified as it is said.
    pub fn source(&self) -> Result<Option<Source>, String> {
        let entry = self.entry();
        if entry.known.host.is_empty() {
            return Ok(None);
        }
        let mut source = entry.known.source()?;
        source.patterns.channel = Some(Channel { number: entry.number, claims: self.kept.clone() });
        Ok(Some(source))
    }

    /// What is not said stays as it was.
    ///
    /// # Errors
    /// What cannot be followed as it is said, or kept; then nothing is changed.
    pub fn change(&self, options: &SourceOptions) -> Result<(), String> {
        let mut known = self.entry().known;
        let SourceOptions {
            channel: _,
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
        self.set(|entry| entry.known = known)
    }

    pub fn set_running(&self, is_running: bool) -> Result<(), String> {
        let entry = self.entry();
        match entry.exists() && entry.known.is_running != is_running {
            true => self.set(|entry| entry.known.is_running = is_running),
            false => Ok(()),
        }
    }

    pub fn forget(&self) -> Result<(), String> {
        match self.exists() {
            true => self.set(|entry| entry.known = Known::default()),
            false => Ok(()),
        }
    }

    fn set(&self, change: impl FnOnce(&mut Entry)) -> Result<(), String> {
        let mut channels = self.kept.channels.lock();
        let mut next = channels.clone();
        next.get_mut(&self.name).map(change);
        self.kept.keep(&mut channels, next)
    }
}

/// Of all channels.
fn document(channels: &Channels) -> Json {
    let is_alone = channels.len() == 1;
    let members_of = |entry: &Entry| {
        let mut members = entry.known.members();
        if !is_alone {
            let names = entry.databases.iter().map(|name| Json::String(name.clone())).collect();
            members.push(("databases".to_owned(), Json::Array(names)));
        }
        members
    };
    let mut root = channels.get(DEFAULT).map(members_of).unwrap_or_default();
    let named = channels.iter().filter(|(name, _)| *name != DEFAULT).map(|(name, entry)| {
        let mut members = members_of(entry);
        members.push(("number".to_owned(), Json::Int(entry.number.into())));
        (name.clone(), Json::Object(Map::from_members(members)))
    });
    let named: Vec<(String, Json)> = named.collect();
    if !is_alone {
        root.push(("channels".to_owned(), Json::Object(Map::from_members(named))));
    }
    Json::Object(Map::from_members(root))
}

/// `None` for a document of another form.
fn channels_of(document: &Json) -> Option<Channels> {
    let databases = |of: &Json| match member(of, "databases") {
        None => Some(BTreeSet::new()),
        Some(Json::Array(names)) => {
            let name = |name: &Json| match name {
                Json::String(name) => Some(name.clone()),
                _ => None,
            };
            names.iter().map(name).collect()
        }
        Some(_) => None,
    };
    let entry = |of: &Json, number| Some(Entry { number, known: Known::of(of)?, databases: databases(of)? });
    let mut channels = Channels::from([(DEFAULT.to_owned(), entry(document, SOURCE)?)]);
    match member(document, "channels") {
        None => {}
        Some(Json::Object(named)) => {
            for (name, of) in named.iter() {
                let number = number(of, "number").filter(|number| *number > SOURCE)?;
                if channels.values().any(|other| other.number == number) {
                    return None;
                }
                channels.insert(name.to_owned(), entry(of, number)?);
            }
        }
        Some(_) => return None,
    }
    Some(channels)
}

fn member<'a>(document: &'a Json, wanted: &str) -> Option<&'a Json> {
    let Json::Object(root) = document else { return None };
    root.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

fn number(document: &Json, name: &str) -> Option<u32> {
    match *member(document, name)? {
        Json::Int(number) => u32::try_from(number).ok(),
        Json::UInt(number) => u32::try_from(number).ok(),
        _ => None,
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

    fn members(&self) -> Vec<(String, Json)> {
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
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// `None` for a document of another form.
    fn of(document: &Json) -> Option<Self> {
        let text = |name| match member(document, name)? {
            Json::String(text) => Some(text.clone()),
            _ => None,
        };
        let number = |name| number(document, name);
        let flag = |name| match *member(document, name)? {
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

    fn written(channels: &Channels) -> String {
        let mut text = Vec::new();
        json::write(Node::new(&document(channels).encode().expect("it is small")), &mut text);
        String::from_utf8(text).expect("UTF-8")
    }

    fn read(text: &str) -> Option<Channels> {
        channels_of(&json::parse(text).expect("JSON"))
    }

    fn known(host: &str) -> Known {
        Known { host: host.into(), password: "p\\'\u{e9}".into(), is_running: true, ..Known::default() }
    }

    #[test]
    fn a_source_is_read_as_it_was_kept() {
        let alone = Entry { number: SOURCE, known: known("a \"host\""), databases: BTreeSet::new() };
        let channels = Channels::from([(DEFAULT.to_owned(), alone)]);
        assert_eq!(read(&written(&channels)), Some(channels));
        for other in ["{}", "[1]", r#"{"host": 1}"#] {
            assert_eq!(read(other), None);
        }
    }

    #[test]
    fn one_channel_is_kept_as_before_there_were_several() {
        const OLD: &str = r#"{"host": "h", "port": 3306, "user": "", "password": "", "connect_retry": 60, "auto_position": false,
            "running": true, "ssl": false, "ssl_ca": "", "ssl_verify": false}"#;
        let channels = read(OLD).expect("an old file");
        assert_eq!(
            (channels.len(), channels[DEFAULT].number, &*channels[DEFAULT].known.host),
            (1, SOURCE, "h")
        );
        let text = |document: &str| {
            let mut text = Vec::new();
            let encoded = json::parse(document).expect("JSON").encode().expect("it is small");
            json::write(Node::new(&encoded), &mut text);
            text
        };
        assert_eq!(text(&written(&channels)), text(OLD));
    }

    #[test]
    fn several_channels_are_read_as_they_were_kept() {
        let databases = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let entry = |number, known, names: &[&str]| Entry { number, known, databases: databases(names) };
        let channels = Channels::from([
            (DEFAULT.to_owned(), entry(SOURCE, known("a"), &["shop", "log"])),
            ("b".to_owned(), entry(3, known("b"), &[])),
            // It is forgotten, and keeps its number and what it has left behind.
            ("c".to_owned(), entry(2, Known::default(), &["old"])),
        ]);
        let text = written(&channels);
        assert_eq!(read(&text), Some(channels));
        for wrong in
            [text.replace("\"number\": 3", "\"number\": 2"), text.replace("\"number\": 3", "\"number\": 1")]
        {
            assert_eq!(read(&wrong), None, "two channels with one number");
        }
        assert_eq!(read(&text.replace("\"old\"", "7")), None);
    }

    #[test]
    fn a_database_is_of_one_channel() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine =
            avocet_engine::Engine::open(avocet_engine::EngineOptions::new(folder.path())).expect("an engine");
        let database = Database::new(engine, None).expect("a database");
        let kept = Kept::open(&database, folder.path()).expect("no file");
        assert_eq!(kept.claim("shop", SOURCE), Ok(None));
        assert!(!folder.path().join(FILE).exists(), "one that is alone needs none");
        let other = kept.channel("other");
        let options = SourceOptions { host: Some("h".into()), ..SourceOptions::default() };
        other.change(&options).expect("kept");
        kept.channel(DEFAULT).change(&options).expect("kept");
        assert_eq!(kept.claim("shop", other.number()), Ok(Some(DEFAULT.into())));
        assert_eq!(kept.claim("log", other.number()), Ok(None));
        let again = Kept::open(&database, folder.path()).expect("a file");
        assert_eq!(again.named(), ["other"]);
        assert_eq!(Claims::other(&*again, "shop", other.number()), Some(DEFAULT.into()));
        assert_eq!(Claims::other(&*again, "log", SOURCE), Some("other".into()));
        assert_eq!(Claims::other(&*again, "log", other.number()), None);
        // Forgotten, and nothing of it is here: anybody's.
        again.channel("other").forget().expect("kept");
        assert_eq!(again.claim("log", SOURCE), Ok(None));
        assert_eq!(Claims::other(&*again, "log", other.number()), Some(DEFAULT.into()));
        assert_eq!(again.channel("other").number(), other.number());
    }
}
