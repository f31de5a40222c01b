//! `avocet serve`: one data directory, served until SIGTERM or SIGINT.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avocet_engine::{Compression, Durability, Engine, EngineOptions, FreezePolicy};
use avocet_replicate::publish::Base;
use avocet_server::{Server, ServerOptions, Source, TlsFiles};
use avocet_session::Database;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::accounts::{CatalogAccounts, PluginPasswords};
use crate::binary_log::{Begins, OwnLog};
use crate::open_files;
use crate::replica::promoted::Promoted;
use crate::replica::{Channels, Kept};
use crate::{Failure, binary_log};

#[derive(clap::Args)]
// Others of this name are parts of the same command.
#[group(skip)]
pub struct Args {
    /// The data directory; made if there is none
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where to listen; only loopback addresses while root has no password
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3307")]
    listen: Vec<SocketAddr>,
    /// A Unix socket to listen on, too, such as /run/mysqld/mysqld.sock; for the server's own user alone if root has no
    /// password at the start
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// Answer HTTP here: /metrics for Prometheus, and a console for browsers, for the server's accounts; only on loopback addresses
    /// while root has no password
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// Certificate chain (PEM); one of its own is made if none is given
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Certificates (PEM) of the authorities that sign clients' certificates, for accounts that REQUIRE X509
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Memory for rows, indexes, queries and cached blocks together, such as 512M or 2G, at least 16M; 60 % of the machine's if not given
    #[arg(long, value_name = "BYTES", value_parser = memory_bytes)]
    memory_limit: Option<usize>,
    /// Memory for one analytical query (variable query_memory_limit); half of all if not given
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    query_memory_limit: Option<usize>,
    /// Connections at a time, as far as the limit of open files allows (variable max_connections)
    #[arg(long, value_name = "N", value_parser = connections, default_value = "10000")]
    max_connections: usize,
    /// Largest packet, such as 64M; from 1K to 1G
    #[arg(long, value_name = "BYTES", value_parser = packet_bytes, default_value = "64M")]
    max_allowed_packet: usize,
    /// Seconds that running statements get to finish in when the server stops
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=86_400), default_value_t = 5)]
    shutdown_grace: u64,
    /// Abort when a statement has kept other connections from running for so many seconds: for tests
    #[arg(long, value_name = "SECONDS", hide = true)]
    fail_when_held: Option<u64>,
    /// Begin a checkpoint when the log has grown by so many MiB since the last one
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(..=1 << 30), default_value_t = 512)]
    checkpoint_log_mib: u64,
    /// MiB that checkpoints, freezing and compaction write in a second while there is no need for more; 0 for as much as they
    /// can (variable background_mib_per_second)
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    background_mib_per_second: u64,
    /// How commits that are written to the log together are compressed
    #[arg(long, value_name = "lz4|none", default_value_t)]
    log_compression: Compression,
    /// When rows move to column blocks: when they have not changed for a while, never, or as soon as they can
    #[arg(long, value_enum, default_value_t = Freeze::Auto)]
    freeze: Freeze,
    /// When a commit is acknowledged: synced (sync), synced with those of so many milliseconds (group:MS), or handed to the
    /// operating system and synced within a second (os: a power cut may lose it); sessions can SET durability
    #[arg(long, value_name = "sync|group:MS|os", default_value = "sync")]
    durability: Durability,
    /// The folder where LOAD DATA INFILE may read files, and SELECT … INTO OUTFILE make them (variable secure_file_priv); without it, none
    #[arg(long, value_name = "DIR")]
    secure_file_priv: Option<PathBuf>,
    /// Keep blocks and checkpoints in this object store instead of the data directory
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// With what a server that follows another has not.
#[derive(clap::Args)]
pub struct OwnArgs {
    #[command(flatten)]
    serve: Args,
    #[command(flatten)]
    binary_log: binary_log::Args,
    /// By which replicas know this server; all of a topology have different ones (variable server_id)
    #[arg(long, value_name = "N", default_value_t = 1)]
    server_id: u32,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Freeze {
    Auto,
    Never,
    Always,
}

impl From<Freeze> for FreezePolicy {
    fn from(freeze: Freeze) -> Self {
        match freeze {
            Freeze::Auto => Self::Auto,
            Freeze::Never => Self::Never,
            Freeze::Always => Self::Always,
        }
    }
}

impl Args {
    pub fn data(&self) -> &Path {
        &self.data
    }
}

/// The server itself, and one query at a time, have to have room.
const LEAST_MEMORY: usize = 16 << 20;
/// As the variable max_connections has it.
const MOST_CONNECTIONS: usize = 100_000;

/// A number of bytes with an optional K, M or G behind it.
pub fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: usize = digits.parse().map_err(|_| format!("'{text}' is not a number of bytes"))?;
    number.checked_shl(shift).filter(|n| n >> shift == number).ok_or_else(|| format!("'{text}' is too large"))
}

fn memory_bytes(text: &str) -> Result<usize, String> {
    bytes(text).and_then(|bytes| match bytes {
        0..LEAST_MEMORY => Err("at least 16M are needed".into()),
        _ => Ok(bytes),
    })
}

fn packet_bytes(text: &str) -> Result<usize, String> {
    bytes(text).and_then(|bytes| match bytes {
        0x400..=0x4000_0000 => Ok(bytes),
        _ => Err("a packet has from 1K to 1G".into()),
    })
}

fn connections(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_CONNECTIONS).contains(number));
    number.ok_or_else(|| format!("a number from 1 to {MOST_CONNECTIONS}"))
}

pub fn run(args: OwnArgs) -> Result<(), Failure> {
    log_to_stderr();
    let data = &args.serve.data;
    let begin = |database: &Database, log: Option<Arc<OwnLog>>| {
        let channels = Channels::resume(database.clone(), data, log)?;
        database.follow(channels.clone());
        Ok(channels)
    };
    let log = Log { args: &args.binary_log, server_id: args.server_id };
    let follows = |database: &Database| Ok(Kept::open(database, data)?.is_any_running());
    run_with(&args.serve, log, follows, begin, |_| None, |channels| channels.end())
}

pub fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("AVOCET_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(std::io::stderr).init();
}

/// A place before another server.
pub struct Front {
    pub listen: SocketAddr,
    /// `None` if this server has taken that one's place.
    pub source: Option<Arc<dyn Source>>,
}

/// What a binary log is to be.
pub struct Log<'a> {
    pub args: &'a binary_log::Args,
    pub server_id: u32,
}

/// Serves a data directory; `follows` says whether it follows another server from its start on, `begin` sees its database before clients
/// do, `front` says whether it stands before another server, and `end` takes what `begin` returned when clients have gone.
pub fn run_with<T>(
    args: &Args,
    log: Log<'_>,
    follows: impl FnOnce(&Database) -> Result<bool, Failure>,
    begin: impl FnOnce(&Database, Option<Arc<OwnLog>>) -> Result<T, Failure>,
    front: impl FnOnce(&T) -> Option<Front>,
    end: impl FnOnce(T),
) -> Result<(), Failure> {
    // It accepts connections and waits for signals; they run on the server's own threads.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let engine = open(args, log.args.log_bin)?;
    let database = Database::new(engine.clone(), Some(Box::new(PluginPasswords)))?;
    database.spill_to(args.data.join("spill"));
    let begins = match Promoted::open(&database)? {
        Some(mut promoted) => {
            if !log.args.log_bin {
                promoted.keep_without_log(&database)?;
            }
            Begins::Now(promoted.base(&database)?)
        }
        None if follows(&database)? => Begins::WithPromotion,
        None => Begins::Now(Base::default()),
    };
    let own_log = binary_log::start(log.args, log.server_id, &args.data, &database, begins)?;
    let begun = begin(&database, own_log.clone())?;
    let served = runtime.block_on(serve(args, database.clone(), front(&begun)));
    end(begun);
    // Whatever became of the server, what is committed is checkpointed.
    let closed = database.shutdown();
    own_log.iter().for_each(|log| log.join());
    served?;
    closed?;
    tracing::info!("stopped");
    Ok(())
}

fn open(args: &Args, log_bin: bool) -> Result<Arc<Engine>, Failure> {
    refuse_foreign(&args.data)?;
    let mut options = EngineOptions::new(&args.data);
    options.owns_process = true;
    options.rule_compiler = Some(avocet_session::compile_rules);
    if let Some(limit) = args.memory_limit {
        options.memory_limit = limit;
    }
    options.checkpoint_log_bytes = args.checkpoint_log_mib << 20;
    options.background_bytes_per_second = args.background_mib_per_second.saturating_mul(1 << 20);
    options.log_compression = args.log_compression;
    options.durability = args.durability;
    options.freeze = args.freeze.into();
    options.store_url = args.store.clone();
    options.capture_changes = log_bin;
    Engine::open(options).map_err(|error| format!("cannot open {}: {error}", args.data.display()).into())
}

/// A file, or another system's data directory, is not taken for a new data directory.
fn refuse_foreign(data: &Path) -> Result<(), Failure> {
    if data.is_file() {
        return Err(format!("{} is a file, not a data directory", data.display()).into());
    }
    if let Some(name) =
        ["ibdata1", "PG_VERSION", "aria_log_control"].iter().find(|name| data.join(name).exists())
    {
        let data = data.display();
        return Err(format!("{data} is another database's data directory (it has a file {name})").into());
    }
    Ok(())
}

async fn serve(args: &Args, database: Database, front: Option<Front>) -> Result<(), Failure> {
    let mut options = ServerOptions::new(args.data.clone(), args.listen[0]);
    options.listen.clone_from(&args.listen);
    if let Some(Front { listen, source: None }) = &front {
        options.listen.push(*listen);
    }
    options.sockets.clone_from(&args.socket);
    options.shutdown_grace = Duration::from_secs(args.shutdown_grace);
    options.fatal_hold = args.fail_when_held.map(Duration::from_secs);
    options.tls_ca.clone_from(&args.tls_ca);
    options.tls = args
        .tls_cert
        .clone()
        .zip(args.tls_key.clone())
        .map(|(certificate, key)| TlsFiles { certificate, key });
    let connections = open_files::allow(args.max_connections);
    database.set_default("max_connections", &connections.to_string())?;
    database.set_default("max_allowed_packet", &args.max_allowed_packet.min(1 << 30).to_string())?;
    if let Some(limit) = args.query_memory_limit {
        database.set_default("query_memory_limit", &limit.to_string())?;
    }
    if let Some(folder) = &args.secure_file_priv {
        let real = folder.canonicalize().ok().filter(|real| real.is_dir());
        let real = real.ok_or_else(|| format!("--secure-file-priv: {} is not a folder", folder.display()))?;
        database.set_option("secure_file_priv", &format!("{}/", real.display()))?;
    }
    let accounts = Arc::new(CatalogAccounts { database: database.clone() });
    let mut server = Server::bind(options, database.clone(), accounts).await?;
    if let Some(Front { listen, source: Some(source) }) = front {
        let (host, port) = source.address();
        let before = format!("{host}:{port}");
        let address = server.listen_before(listen, source, database.journal().clone()).await?;
        tracing::info!(%address, source = before, "ready to stand before the source");
    }
    if let Some(address) = args.http {
        let address = server.listen_http(address).await?;
        tracing::info!(%address, "ready for HTTP");
    }
    for address in server.addresses() {
        database.set_option("port", &address.port().to_string())?;
        database.set_option("bind_address", &address.ip().to_string())?;
        tracing::info!(%address, data = %args.data.display(), "ready");
    }
    if let Some(path) = args.socket.first() {
        database.set_option("socket", &path.display().to_string())?;
    }
    let mut signals =
        Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
    let limit = Duration::from_secs(args.shutdown_grace) + CLOSING;
    server
        .run(async move {
            signals.next().await;
            tracing::info!("stopping; a second signal ends it at once");
            tokio::spawn(end_at_last(signals, limit));
        })
        .await;
    Ok(())
}

/// What is left for interrupted statements to notice, and for the last checkpoint, when the grace is over.
const CLOSING: Duration = Duration::from_millis(4_500);

/// What asks the server to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Ends the process at a second signal, or when it has taken too long to stop: whatever still runs. The log has all that
/// was committed, so this costs the next start a recovery and nothing else.
async fn end_at_last(mut signals: Signals, limit: Duration) {
    let why = tokio::select! {
        () = signals.next() => "a second signal came",
        () = tokio::time::sleep(limit) => "it took too long",
    };
    tracing::warn!(why, "stopped before the last checkpoint: the next start recovers from the log");
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("2g"), Ok(2 << 30));
        assert_eq!(bytes("1000"), Ok(1000));
        assert!(bytes("x").is_err() && bytes("").is_err() && bytes("99999999999G").is_err());
    }

    #[test]
    fn other_systems_directories_are_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(refuse_foreign(dir.path()).is_ok());
        std::fs::write(dir.path().join("ibdata1"), b"").expect("a file");
        assert!(refuse_foreign(dir.path()).is_err());
    }
}
