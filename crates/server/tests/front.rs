//! Clients that come through a front, with a second server of this kind in the place of the source. The same tables have other rows on
//! the two, which tell where a query ran.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use avocet_engine::{Engine, EngineOptions};
use avocet_server::auth::{MemoryAccounts, Plugin};
use avocet_server::{AskedEnd, Late, LogEnd, PeerAccount, Server, ServerOptions, Source, SourceTls, Wait};
use avocet_session::Database;
use avocet_session::api::Freshness;
use mysql::ChangeUserOpts;
use mysql::prelude::Queryable;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};

/// What is here is always fresh, and everything is.
struct Fresh {
    address: SocketAddr,
    host: String,
    tls: SourceTls,
    replaced: watch::Sender<bool>,
}

impl Source for Fresh {
    fn address(&self) -> (&str, u16) {
        (&self.host, self.address.port())
    }

    fn tls(&self) -> &SourceTls {
        &self.tls
    }

    fn uuid(&self) -> String {
        String::new()
    }

    fn peers(&self) -> &[PeerAccount] {
        &[]
    }

    fn replaced(&self) -> watch::Receiver<bool> {
        self.replaced.subscribe()
    }

    fn why_not_followed(&self, _database: &str, _table: &str) -> Option<String> {
        None
    }

    fn fresh(&self, _freshness: Freshness, _has_written: bool, _at_most: Duration) -> Wait<'_> {
        Box::pin(async { Ok(()) })
    }

    fn end(&self) -> AskedEnd<'_> {
        Box::pin(async { Err::<LogEnd, _>(Late::TimedOut) })
    }
}

/// A server, and what stops it when it is dropped.
struct Running {
    database: Database,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    done: Option<std::thread::JoinHandle<()>>,
    _data: tempfile::TempDir,
}

impl Running {
    /// With a source, the address is the front's.
    fn start(source: Option<SocketAddr>) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let engine = Engine::open(EngineOptions::new(data.path().join("engine"))).expect("an engine");
        let database = Database::new(engine, None).expect("a database");
        let address = "127.0.0.1:0".parse().expect("an address");
        let mut options = ServerOptions::new(data.path().to_owned(), address);
        options.shutdown_grace = Duration::from_millis(100);
        let accounts = Arc::new(MemoryAccounts::open_root());
        for user in ["alice", "bob"] {
            accounts.set(user, "%", Plugin::Native, b"");
        }
        let runtime = Runtime::new().expect("a runtime");
        let mut server =
            runtime.block_on(Server::bind(options, database.clone(), accounts)).expect("a server");
        let address = match source {
            None => server.addresses()[0],
            Some(address) => {
                let host = address.ip().to_string();
                let tls = SourceTls { is_required: false, authorities: None };
                let source = Fresh { address, host, tls, replaced: watch::Sender::new(false) };
                let own = "127.0.0.1:0".parse().expect("an address");
                let journal = database.journal().clone();
                runtime.block_on(server.listen_before(own, Arc::new(source), journal)).expect("a front")
            }
        };
        let (stop, stopped) = oneshot::channel();
        let done = std::thread::spawn(move || {
            runtime.block_on(server.run(async {
                let _ = stopped.await;
            }));
        });
        Self { database, address, stop: Some(stop), done: Some(done), _data: data }
    }

    fn run(&self, statements: &[&str]) {
        let mut connection = self.database.connect(None).expect("a connection");
        for sql in statements {
            connection.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(done) = self.done.take() {
            done.join().expect("the server's thread");
        }
    }
}

/// A source and a front before it. `place` says on which of the two a query ran.
struct Pair {
    front: Running,
    _source: Running,
}

impl Pair {
    fn start() -> Self {
        let source = Running::start(None);
        let front = Running::start(Some(source.address));
        for (server, name) in [(&source, "source"), (&front, "here")] {
            server.run(&[
                "CREATE DATABASE shop",
                "CREATE TABLE shop.place (id INT PRIMARY KEY, name VARCHAR(10))",
                &format!("INSERT INTO shop.place VALUES (1, '{name}'), (2, '{name}'), (3, '{name}')"),
                "CREATE VIEW shop.plain AS SELECT name FROM shop.place WHERE id = 1",
                "CREATE VIEW shop.who AS SELECT name, USER() AS who FROM shop.place WHERE id = 1",
                "CREATE VIEW shop.above AS SELECT name FROM shop.who",
                "CREATE VIEW shop.version AS SELECT name FROM shop.place WHERE VERSION() <> '' AND id = 1",
                "CREATE VIEW shop.last AS SELECT name FROM shop.place WHERE id = 1 + LAST_INSERT_ID()",
            ]);
        }
        source.run(&["CREATE USER alice", "CREATE USER bob", "GRANT ALL ON shop.* TO alice, bob"]);
        Self { front, _source: source }
    }

    fn connect(&self) -> mysql::Conn {
        let opts = mysql::OptsBuilder::new()
            .ip_or_hostname(Some(self.front.address.ip().to_string()))
            .tcp_port(self.front.address.port())
            .user(Some("alice"))
            .db_name(Some("shop"))
            .prefer_socket(false);
        let mut conn = mysql::Conn::new(opts).expect("a connection");
        conn.query_drop("SET time_zone = '+00:00'").expect("the source has it");
        conn
    }
}

fn one(conn: &mut mysql::Conn, sql: &str) -> String {
    let row: Option<mysql::Row> = conn.query_first(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    row.and_then(|row| row.get(0)).unwrap_or_else(|| panic!("{sql}: no row"))
}

#[test]
fn views_that_ask_for_the_session_run_on_the_source() {
    let pair = Pair::start();
    let mut conn = pair.connect();
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    assert_eq!(one(&mut conn, "SELECT name FROM plain"), "here");
    for view in ["who", "above", "version", "last"] {
        assert_eq!(one(&mut conn, &format!("SELECT name FROM {view}")), "source", "{view}");
        // A plan that another session here has made is not this one's.
        pair.front.run(&[&format!("SELECT name FROM shop.{view}")]);
        assert_eq!(one(&mut conn, &format!("SELECT name FROM {view}")), "source", "{view}");
        let prepared = conn.prep(format!("SELECT name FROM {view} WHERE 1 = ?")).expect("a statement");
        let name: Option<String> = conn.exec_first(&prepared, (1,)).expect("a row");
        assert_eq!(name.as_deref(), Some("source"), "{view}");
    }
}

/// What a prepared statement with an id answers.
fn executed(conn: &mut mysql::Conn, statement: &mysql::Statement, id: i32) -> Option<String> {
    conn.exec_first(statement, (id,)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_statement_means_what_its_session_said_when_it_was_prepared() {
    let pair = Pair::start();
    for server in [&pair.front, &pair._source] {
        server.run(&[
            "CREATE DATABASE tenant",
            "CREATE TABLE tenant.place (id INT PRIMARY KEY, name VARCHAR(20))",
            "INSERT INTO tenant.place VALUES (1, 'of the tenant')",
        ]);
    }
    pair._source.run(&["GRANT ALL ON tenant.* TO alice"]);
    let mut conn = pair.connect();
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    const SQL: &str = "SELECT name FROM place WHERE id = ?";
    // Prepared in the one database and first run in the other; in between, nobody has asked which one it was.
    let unknown = conn.prep(SQL).expect("a statement");
    conn.query_drop("USE tenant").expect("it is there");
    assert_eq!(executed(&mut conn, &unknown, 1).as_deref(), Some("source"));
    conn.query_drop("USE shop").expect("it is there");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "here");
    // The view knows it at PREPARE, and learns it afterwards.
    let known = conn.prep(format!("{SQL} AND 1")).expect("a statement");
    assert_eq!(executed(&mut conn, &known, 1).as_deref(), Some("here"));
    conn.query_drop("SET @a = 1").expect("it is set");
    let learned = conn.prep(format!("{SQL} AND 2")).expect("a statement");
    assert_eq!(executed(&mut conn, &learned, 1).as_deref(), Some("here"));
    conn.query_drop("USE tenant").expect("it is there");
    for statement in [&known, &learned] {
        assert_eq!(executed(&mut conn, statement, 1).as_deref(), Some("source"));
    }
    conn.query_drop("USE shop").expect("it is there");
    for statement in [&known, &learned] {
        assert_eq!(executed(&mut conn, statement, 1).as_deref(), Some("here"));
    }
    // A column, and not a text.
    conn.query_drop("SET sql_mode = 'ANSI_QUOTES'").expect("it is set");
    let quoted = conn.prep("SELECT \"name\" FROM place WHERE id = ?").expect("a statement");
    assert_eq!(executed(&mut conn, &quoted, 1).as_deref(), Some("here"));
    conn.query_drop("SET sql_mode = ''").expect("it is set");
    assert_eq!(executed(&mut conn, &quoted, 1).as_deref(), Some("source"));
}

#[test]
fn a_statement_is_read_in_the_character_set_of_its_prepare() {
    let pair = Pair::start();
    for (server, id) in [(&pair.front, 8), (&pair._source, 7)] {
        server.run(&[&format!("INSERT INTO shop.place VALUES ({id}, 'Köln')")]);
    }
    let mut conn = pair.connect();
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    conn.query_drop("SET NAMES latin1").expect("it is set");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "here");
    // The session here is of latin1 still.
    conn.query_drop("SET NAMES utf8mb4").expect("it is set");
    let statement = conn.prep("SELECT id FROM place WHERE name = 'Köln' AND id > ?").expect("a statement");
    let found: Option<i32> = conn.exec_first(&statement, (0,)).expect("an answer");
    assert_eq!(found, Some(8), "it runs here, as the text that it is");
}

#[test]
fn a_session_here_encrypts_as_the_sources_does() {
    let pair = Pair::start();
    let mut conn = pair.connect();
    conn.query_drop("SET block_encryption_mode = 'aes-256-cbc'").expect("it is set");
    const SQL: &str = "SELECT HEX(AES_ENCRYPT(id, 'key', '0123456789abcdef')) FROM place WHERE id = 1";
    let there = one(&mut conn, SQL);
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "here");
    assert_eq!(one(&mut conn, SQL), there);
    conn.query_drop("SET block_encryption_mode = DEFAULT").expect("it is set");
    assert_ne!(one(&mut conn, SQL), there);
}

#[test]
fn a_session_here_has_the_sources_largest_packet() {
    let pair = Pair::start();
    pair._source.run(&["SET GLOBAL max_allowed_packet = 1024"]);
    let mut conn = pair.connect();
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    let length = "SELECT COALESCE(LENGTH(REPEAT(name, 1000)), name) FROM place WHERE id = 1";
    assert_eq!(one(&mut conn, length), "here");
    conn.query_drop("SET SESSION max_allowed_packet = 4096").expect_err("a session keeps it");
}

#[test]
fn another_user_has_a_session_of_their_own() {
    let pair = Pair::start();
    let mut conn = pair.connect();
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "here");
    conn.change_user(ChangeUserOpts::new().with_user(Some("bob".into())).with_db_name(Some("shop".into())))
        .expect("the source lets bob in");
    assert!(one(&mut conn, "SELECT who FROM who").starts_with("bob@"));
    // What alice has set is not bob's.
    assert_eq!(one(&mut conn, "SELECT @@avocet_route"), "auto");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "source");
}

#[test]
fn own_variables_leave_found_rows_alone() {
    let pair = Pair::start();
    let mut conn = pair.connect();
    conn.query_drop("INSERT INTO place VALUES (4, 'source')").expect("a row");
    let _: Vec<mysql::Row> = conn.query("SELECT SQL_CALC_FOUND_ROWS name FROM place LIMIT 1").expect("rows");
    conn.query_drop("SET avocet_route_cost = 5").expect("it is known here");
    assert_eq!(one(&mut conn, "SELECT FOUND_ROWS()"), "4");
    let _: Vec<mysql::Row> = conn.query("SELECT name FROM place").expect("rows");
    assert_eq!(one(&mut conn, "SELECT @@avocet_route_cost"), "5");
    assert_eq!(one(&mut conn, "SELECT FOUND_ROWS()"), "1");
}

#[test]
fn one_statement_asks_one_server_for_what_was_before() {
    let pair = Pair::start();
    let mut conn = pair.connect();
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "here");
    assert_eq!(one(&mut conn, "SELECT FOUND_ROWS(), ROW_COUNT()"), "1");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "here");
    conn.query_drop("UPDATE place SET name = 'changed'").expect("three rows");
    let both = conn.query_drop("SELECT ROW_COUNT(), FOUND_ROWS()").expect_err("two servers know them");
    assert!(matches!(&both, mysql::Error::MySqlError(error) if error.code == 1105), "{both}");
    // It is as it was.
    assert_eq!(one(&mut conn, "SELECT ROW_COUNT()"), "3");
    assert_eq!(one(&mut conn, "SELECT FOUND_ROWS()"), "1");
}

#[test]
fn a_session_is_not_idle_while_its_query_runs_here() {
    let pair = Pair::start();
    let mut conn = pair.connect();
    conn.query_drop("SET wait_timeout = 1, avocet_nothing = 1").expect_err("no such variable");
    conn.query_drop("SET wait_timeout = 1").expect("the source has it");
    conn.query_drop("SET avocet_route = 'here'").expect("it is known here");
    assert_eq!(one(&mut conn, "SELECT name FROM place WHERE id = 1"), "here");
    let mut locker = pair.front.database.connect(None).expect("a connection");
    locker.query("LOCK TABLES shop.place WRITE").expect("a lock");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| one(&mut conn, "SELECT name FROM place WHERE id = 2"));
        // Longer than the source lets a session be idle, and looks for it.
        std::thread::sleep(Duration::from_millis(3500));
        locker.query("UNLOCK TABLES").expect("no lock");
        assert_eq!(waiting.join().expect("an answer"), "here");
    });
    assert_eq!(one(&mut conn, "SELECT CONNECTION_ID() > 0"), "1");
}
