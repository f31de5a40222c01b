//! The server: listeners, limits, shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use avocet_session::api::{ClientMemory, Journal, SessionFactory};
use avocet_types::error::ErrorCode;
use tokio_rustls::TlsAcceptor;

use crate::auth::Accounts;
use crate::auth::exchange::Authenticator;
use crate::auth::rsa_key::RsaKey;
use crate::connection;
use crate::files::FileError;
use crate::front::{Front, Source};
use crate::http;
use crate::listen::{Incoming, Listener, Peer};
use crate::protocol::{PacketBuf, reply};
use crate::registry::Registry;
use crate::tls::{self, TlsFiles};
use crate::transport::Transport;
use crate::workers::Workers;

#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where keys and the certificate are kept.
    pub data: PathBuf,
    pub listen: Vec<SocketAddr>,
    /// Unix sockets to listen on, too.
    pub sockets: Vec<PathBuf>,
    /// The certificate to show; one of our own if there is none.
    pub tls: Option<TlsFiles>,
    /// The authorities (PEM) that sign the certificates of clients.
    pub tls_ca: Option<PathBuf>,
    /// Threads that connections live on.
    pub workers: usize,
    /// Per connection.
    pub max_prepared_statements: usize,
    /// For the whole connection phase.
    pub connect_timeout: Duration,
    /// What running statements get to finish in when the server stops.
    pub shutdown_grace: Duration,
    /// A statement that holds its thread for so long, so that other connections wait, ends the process: for tests.
    pub fatal_hold: Option<Duration>,
}

impl ServerOptions {
    pub fn new(data: PathBuf, listen: SocketAddr) -> Self {
        Self {
            data,
            listen: vec![listen],
            sockets: Vec::new(),
            tls: None,
            tls_ca: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            max_prepared_statements: 16_382,
            connect_timeout: Duration::from_secs(10),
            shutdown_grace: Duration::from_secs(5),
            fatal_hold: None,
        }
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "cannot listen on {address}: it is in use, perhaps by another server; choose another with --listen"
    )]
    InUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot listen on {}: another server does, or it is no socket; choose another with --socket", path.display())]
    SocketInUse { path: PathBuf },
    #[error("cannot listen on {}: {source}", path.display())]
    Socket { path: PathBuf, source: io::Error },
    #[error(
        "refusing to listen on {address}: the account root has no password, so anyone who reaches that address \
         would own the data; start with {option} 127.0.0.1:{port} and set one \
         (ALTER USER 'root'@'localhost' IDENTIFIED BY '...')",
        port = .address.port()
    )]
    OpenRoot { address: SocketAddr, option: &'static str },
    #[error("cannot start a thread: {source}")]
    Threads { source: io::Error },
    #[error(transparent)]
    Files(#[from] FileError),
}

/// What all connections share.
pub(crate) struct Shared<F> {
    pub options: ServerOptions,
    pub factory: F,
    /// What buffers of connections are counted against.
    pub memory: Option<Arc<dyn ClientMemory>>,
    pub accounts: Arc<dyn Accounts>,
    pub authenticator: Authenticator,
    pub tls: Option<TlsAcceptor>,
    pub registry: Arc<Registry>,
}

/// A server that listens but does not accept yet.
pub struct Server<F: SessionFactory> {
    shared: Arc<Shared<F>>,
    listeners: Vec<(Listener, Speaks)>,
    workers: Arc<Workers>,
    root_is_open: bool,
}

/// What those speak with who come in somewhere.
#[derive(Clone)]
enum Speaks {
    /// This server, in the MySQL protocol.
    MySql,
    /// The front of the source, in the MySQL protocol.
    Front(Arc<Front>),
    /// This server, in HTTP.
    Http,
}

impl<F: SessionFactory> Server<F> {
    /// Loads or makes keys and takes the addresses.
    pub async fn bind(
        options: ServerOptions,
        factory: F,
        accounts: Arc<dyn Accounts>,
    ) -> Result<Self, StartError> {
        let root_is_open = accounts.root_is_open();
        if let Some(&address) = options.listen.iter().find(|a| root_is_open && !a.ip().is_loopback()) {
            return Err(StartError::OpenRoot { address, option: "--listen" });
        }
        let rsa = RsaKey::load_or_create(&options.data)?;
        let tls = tls::acceptor(&options.data, options.tls.as_ref(), options.tls_ca.as_deref())?;
        let mut listeners = Vec::with_capacity(options.listen.len() + options.sockets.len());
        for &address in &options.listen {
            listeners.push((Listener::tcp(address).await?, Speaks::MySql));
        }
        for path in &options.sockets {
            listeners.push((Listener::unix(path, root_is_open)?, Speaks::MySql));
        }
        let workers = Workers::start(options.workers).map_err(|source| StartError::Threads { source })?;
        let workers = Arc::new(workers);
        let registry = Arc::new(Registry::default());
        let watched = workers.watch(registry.clone(), options.fatal_hold);
        watched.map_err(|source| StartError::Threads { source })?;
        let authenticator = Authenticator::new(accounts.clone(), rsa);
        let memory = factory.client_memory();
        let tls = Some(tls);
        let shared = Shared { options, factory, memory, accounts, authenticator, tls, registry };
        Ok(Self { shared: Arc::new(shared), listeners, workers, root_is_open })
    }

    /// Answers HTTP on one more address: metrics and the console. Returns the address, with the port that was chosen where 0 was
    /// asked for.
    ///
    /// # Errors
    /// `InUse` or `Listen`; `OpenRoot` for an address that others reach while root has no password.
    pub async fn listen_http(&mut self, address: SocketAddr) -> Result<SocketAddr, StartError> {
        if self.root_is_open && !address.ip().is_loopback() {
            return Err(StartError::OpenRoot { address, option: "--http" });
        }
        let listener = Listener::tcp(address).await?;
        let chosen = listener.address().unwrap_or(address);
        self.listeners.push((listener, Speaks::Http));
        Ok(chosen)
    }

    /// Listens on one more address, in the place of the source: clients sign in there with that one's accounts. Where their
    /// queries run is noted in the journal. Returns the address, with the port that was chosen where 0 was asked for.
    ///
    /// # Errors
    /// `InUse` or `Listen`.
    pub async fn listen_before(
        &mut self,
        address: SocketAddr,
        source: Arc<dyn Source>,
        journal: Arc<Journal>,
    ) -> Result<SocketAddr, StartError> {
        let listener = Listener::tcp(address).await?;
        let chosen = listener.address().unwrap_or(address);
        self.listeners.push((listener, Speaks::Front(Arc::new(Front::new(source, journal)?))));
        Ok(chosen)
    }

    /// The TCP addresses that it listens on as itself, with the ports that were chosen where 0 was asked for.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let own = self.listeners.iter().filter(|(_, speaks)| matches!(speaks, Speaks::MySql));
        own.filter_map(|(listener, _)| listener.address()).collect()
    }

    pub fn registry(&self) -> Arc<Registry> {
        self.shared.registry.clone()
    }

    /// Serves until `shutdown` is ready, then stops accepting and returns when the last connection has gone.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { shared, listeners, workers, .. } = self;
        let mut accepting = Vec::with_capacity(listeners.len());
        for (listener, speaks) in listeners {
            accepting.push(tokio::spawn(accept(shared.clone(), workers.clone(), listener, speaks)));
        }
        let janitor = tokio::spawn(end_overdue(shared.clone()));
        shutdown.await;
        accepting.iter().for_each(tokio::task::JoinHandle::abort);
        janitor.abort();
        shared.registry.drain(shared.options.shutdown_grace).await;
    }
}

async fn accept<F: SessionFactory>(
    shared: Arc<Shared<F>>,
    workers: Arc<Workers>,
    listener: Listener,
    speaks: Speaks,
) {
    loop {
        match listener.accept().await {
            Ok((client, peer)) => admit(&shared, &workers, client, peer, &speaks),
            // Out of file descriptors, or a client that left at once: wait for it to pass.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// An address that was the source's is open to others than this machine.
const OPEN_ROOT: &str = "This server has taken the source's place, and its account root has no password: set one \
                         (ALTER USER 'root'@'localhost' IDENTIFIED BY '...') where it listens as itself";

fn admit<F: SessionFactory>(
    shared: &Arc<Shared<F>>,
    workers: &Workers,
    client: Incoming,
    peer: Peer,
    speaks: &Speaks,
) {
    let mut speaks = speaks.clone();
    let mut is_open = false;
    if let Speaks::Front(front) = &speaks
        && front.is_replaced()
    {
        // Clients of the source are this server's own from now on.
        speaks = Speaks::MySql;
        is_open = !peer.is_on_this_machine() && shared.accounts.root_is_open();
    }
    let entered = match is_open {
        true => Err(ErrorCode::HOST_NOT_PRIVILEGED.because(OPEN_ROOT)),
        false => shared.registry.enter(peer.to_string()),
    };
    match entered {
        Ok(registration) => {
            let shared = shared.clone();
            // The socket has left the event queue of the thread that accepts for that of its worker.
            workers.spawn(registration.id, async move {
                let Ok(transport) = client.register() else { return };
                match (speaks, transport) {
                    (Speaks::Http, Transport::Plain(stream)) => {
                        let host = http::Host {
                            factory: &shared.factory,
                            authenticator: &shared.authenticator,
                            tls: shared.tls.as_ref(),
                            registry: &shared.registry,
                        };
                        let origin =
                            http::Origin { host: peer.host(), is_this_machine: peer.is_on_this_machine() };
                        http::serve(host, stream, origin, registration).await;
                    }
                    (Speaks::Front(front), transport) => {
                        connection::serve(shared, transport, peer, registration, Some(front)).await;
                    }
                    (_, transport) => connection::serve(shared, transport, peer, registration, None).await,
                }
            });
        }
        // Who speaks HTTP is told by the end of the connection.
        Err(_) if matches!(speaks, Speaks::Http) => {}
        Err(error) => {
            let mut out = PacketBuf::new();
            reply::error(&mut out, false, &error);
            // The socket's buffer is empty, so this goes out whole or the client is gone.
            client.say(out.bytes());
        }
    }
}

async fn end_overdue<F: SessionFactory>(shared: Arc<Shared<F>>) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tick.tick().await;
        shared.registry.end_overdue();
    }
}
