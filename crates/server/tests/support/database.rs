//! A server on a real database.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_engine::{Engine, EngineOptions};
use avocet_server::auth::MemoryAccounts;
use avocet_server::{Registry, Server, ServerOptions};
use avocet_session::Database;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// A running server; stopped when dropped.
pub struct DatabaseServer {
    pub address: SocketAddr,
    pub database: Database,
    pub registry: Arc<Registry>,
    stop: Option<oneshot::Sender<()>>,
    done: Option<std::thread::JoinHandle<()>>,
    _data: tempfile::TempDir,
}

impl DatabaseServer {
    pub fn start(memory_limit: usize) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let mut engine = EngineOptions::new(data.path().join("engine"));
        engine.memory_limit = memory_limit;
        let engine = Engine::open(engine).expect("an engine");
        let database = Database::new(engine, None).expect("a database");
        database.spill_to(data.path().join("spill"));
        let mut options =
            ServerOptions::new(data.path().to_owned(), "127.0.0.1:0".parse().expect("an address"));
        options.shutdown_grace = Duration::from_millis(100);
        let accounts = Arc::new(MemoryAccounts::open_root());
        let runtime = Runtime::new().expect("a runtime");
        let server = runtime.block_on(Server::bind(options, database.clone(), accounts)).expect("a server");
        let (address, registry) = (server.addresses()[0], server.registry());
        let (stop, stopped) = oneshot::channel();
        let done = std::thread::spawn(move || {
            runtime.block_on(server.run(async {
                let _ = stopped.await;
            }));
        });
        Self { address, database, registry, stop: Some(stop), done: Some(done), _data: data }
    }

    pub fn connect(&self) -> mysql::Conn {
        let opts = mysql::OptsBuilder::new()
            .ip_or_hostname(Some(self.address.ip().to_string()))
            .tcp_port(self.address.port())
            .user(Some("root"))
            .db_name(Some("test"))
            .prefer_socket(false);
        mysql::Conn::new(opts).expect("a connection")
    }

    /// Runs statements as root.
    pub fn run(&self, statements: &[&str]) {
        let mut connection = self.database.connect(None).expect("a connection");
        for sql in statements {
            connection.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// Bytes that connections buffer.
    pub fn buffered(&self) -> usize {
        self.database.engine().memory().in_use().clients
    }

    /// Waits until something is so, for so long at most.
    pub fn within(&self, time: Duration, what: &str, mut condition: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !condition() {
            assert!(begin.elapsed() < time, "{what} did not happen within {time:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(done) = self.done.take() {
            done.join().expect("the server's thread");
        }
    }
}
