//! A server on a scratch directory with a session that knows a handful of statements, and raw sockets to it.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod raw;
pub mod session;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use avocet_server::auth::{MemoryAccounts, Plugin};
use avocet_server::{Registry, Server, ServerOptions};
use avocet_session::api::Timeouts;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub use session::{Log, TestSessions};

/// A running server; stopped when dropped.
pub struct TestServer {
    pub address: SocketAddr,
    pub accounts: Arc<MemoryAccounts>,
    pub registry: Arc<Registry>,
    pub log: Arc<Log>,
    pub max_connections: Arc<AtomicUsize>,
    pub timeouts: Arc<std::sync::Mutex<Timeouts>>,
    /// Of sessions that are opened from now on.
    pub max_allowed_packet: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    done: Option<std::thread::JoinHandle<()>>,
    _data: tempfile::TempDir,
}

impl TestServer {
    pub fn start() -> Self {
        Self::with(|_| {})
    }

    /// Starts with changed options.
    pub fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let mut options =
            ServerOptions::new(data.path().to_owned(), "127.0.0.1:0".parse().expect("an address"));
        options.shutdown_grace = Duration::from_millis(500);
        change(&mut options);
        let accounts = Arc::new(MemoryAccounts::open_root());
        accounts.set("native", "%", Plugin::Native, b"secret");
        accounts.set("sha2", "%", Plugin::CachingSha2, b"secret");
        let sessions = TestSessions::default();
        let (log, max_connections) = (sessions.log.clone(), sessions.max_connections.clone());
        let (timeouts, max_allowed_packet) = (sessions.timeouts.clone(), sessions.max_allowed_packet.clone());
        let runtime = Runtime::new().expect("a runtime");
        let server = runtime.block_on(Server::bind(options, sessions, accounts.clone())).expect("a server");
        let (address, registry) = (server.addresses()[0], server.registry());
        let (stop, stopped) = oneshot::channel();
        let done = std::thread::spawn(move || {
            runtime.block_on(server.run(async {
                let _ = stopped.await;
            }));
        });
        Self {
            address,
            accounts,
            registry,
            log,
            max_connections,
            timeouts,
            max_allowed_packet,
            stop: Some(stop),
            done: Some(done),
            _data: data,
        }
    }

    pub fn opts(&self) -> mysql::OptsBuilder {
        mysql::OptsBuilder::new()
            .ip_or_hostname(Some(self.address.ip().to_string()))
            .tcp_port(self.address.port())
            .user(Some("root"))
            .prefer_socket(false)
    }

    /// To connect through a Unix socket.
    pub fn socket_opts(path: &Path) -> mysql::OptsBuilder {
        mysql::OptsBuilder::new().socket(path.to_str()).user(Some("root")).prefer_socket(false)
    }

    pub fn connect(&self) -> mysql::Conn {
        mysql::Conn::new(self.opts()).expect("a connection")
    }

    /// Waits for something that another thread is about to bring about.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        for _ in 0..1000 {
            if condition() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{what} did not happen");
    }

    /// Stops the server and waits until it has.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        self.stop.take();
        if let Some(done) = self.done.take() {
            done.join().expect("the server's thread");
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shut_down();
    }
}
