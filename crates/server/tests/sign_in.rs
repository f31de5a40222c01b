//! Who gets in, how, and what the others are told.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use support::TestServer;
use support::raw::{Raw, error_of, login};

fn user_of(conn: &mut Conn) -> String {
    conn.query_first("SELECT USER").expect("a row").expect("one")
}

fn denied(result: Result<Conn, Error>) -> (u16, String) {
    match result.expect_err("no connection") {
        Error::MySqlError(e) => (e.code, e.message),
        other => panic!("not an error of the server: {other}"),
    }
}

#[test]
fn both_plugins_accept_the_right_password() {
    let server = TestServer::start();
    assert_eq!(user_of(&mut server.connect()), "root@localhost");
    for user in ["native", "sha2"] {
        // The second time, caching_sha2_password answers from its cache.
        for _ in 0..2 {
            let opts = server.opts().user(Some(user)).pass(Some("secret"));
            assert_eq!(user_of(&mut Conn::new(opts).expect(user)), format!("{user}@%"));
        }
    }
}

#[test]
fn access_denied_is_1045_with_mysqls_text() {
    let server = TestServer::start();
    for user in ["native", "sha2", "root", "nobody"] {
        let opts = server.opts().user(Some(user)).pass(Some("wrong"));
        let expected = format!("Access denied for user '{user}'@'localhost' (using password: YES)");
        assert_eq!(denied(Conn::new(opts)), (1045, expected));
    }
    let expected = "Access denied for user 'sha2'@'localhost' (using password: NO)".to_owned();
    assert_eq!(denied(Conn::new(server.opts().user(Some("sha2")))), (1045, expected));
}

#[test]
fn a_changed_password_takes_effect_at_once() {
    let server = TestServer::start();
    let with = |password| Conn::new(server.opts().user(Some("sha2")).pass(Some(password)));
    assert!(with("secret").is_ok());
    server.accounts.set("sha2", "%", avocet_server::auth::Plugin::CachingSha2, b"fresh");
    assert!(with("secret").is_err());
    assert!(with("fresh").is_ok());
}

#[test]
fn the_password_before_is_good_while_it_is_retained() {
    use avocet_server::auth::{Account, Plugin};
    let server = TestServer::start();
    for plugin in [Plugin::CachingSha2, Plugin::Native] {
        let retained = Some(plugin.auth_string(b"before"));
        let account = Account::new("two", "%", plugin, plugin.auth_string(b"now"));
        server.accounts.put(Account { retained, ..account.clone() });
        let with = |password| Conn::new(server.opts().user(Some("two")).pass(Some(password)));
        // Twice, for caching_sha2_password answers from its cache then.
        for password in ["before", "before", "now", "now", "before"] {
            assert!(with(password).is_ok(), "{plugin:?} {password}");
        }
        server.accounts.put(account);
        assert!(with("before").is_err());
        assert!(with("now").is_ok());
    }
}

#[test]
fn accounts_that_require_tls_get_in_over_tls_alone() {
    use avocet_server::auth::{Account, LoginRule, Plugin, TlsRule};
    let server = TestServer::start();
    let login = LoginRule { tls: TlsRule::Encrypted, ..LoginRule::default() };
    let plugin = Plugin::CachingSha2;
    server.accounts.put(Account { login, ..Account::new("safe", "%", plugin, plugin.auth_string(b"x")) });
    let opts = || server.opts().user(Some("safe")).pass(Some("x"));
    assert_eq!(denied(Conn::new(opts())).0, 1045);
}

#[test]
fn expired_passwords_let_those_in_who_can_change_them() {
    use avocet_server::auth::{Account, Plugin};
    const CAN_HANDLE_EXPIRED_PASSWORDS: u32 = 1 << 22;
    let server = TestServer::start();
    let account = Account::new("old", "%", Plugin::Native, Vec::new());
    server.accounts.put(Account { expired: true, ..account });
    assert_eq!(denied(Conn::new(server.opts().user(Some("old")))).0, 1862);
    for (flag, expected) in [(0, 0xFF), (CAN_HANDLE_EXPIRED_PASSWORDS, 0)] {
        let (mut raw, _) = Raw::connect(server.address);
        raw.send(1, &login(flag, b"old", b"", b"mysql_native_password"));
        assert_eq!(raw.read().expect("an answer").1[0], expected);
    }
}

#[test]
fn accounts_lock_after_wrong_passwords() {
    use avocet_server::auth::{Account, LoginRule, Plugin};
    let server = TestServer::start();
    let rule = |set_at| {
        let login = LoginRule { failed_attempts: 2, lock_days: Some(3), set_at, ..LoginRule::default() };
        let auth = Plugin::Native.auth_string(b"x");
        Account { login, ..Account::new("guarded", "%", Plugin::Native, auth) }
    };
    let with = |password| Conn::new(server.opts().user(Some("guarded")).pass(Some(password)));
    server.accounts.put(rule(1));
    assert_eq!(denied(with("wrong")).0, 1045);
    assert!(with("x").is_ok(), "only failures in a row count");
    assert_eq!(denied(with("wrong")).0, 1045);
    let expected = "Access denied for user 'guarded'@'localhost'. Account is blocked for 3 day(s) (3 day(s) \
                    remaining) due to 2 consecutive failed logins.";
    assert_eq!(denied(with("wrong")), (3955, expected.to_owned()));
    assert_eq!(denied(with("x")), (3955, expected.to_owned()));
    server.accounts.put(rule(2));
    assert!(with("x").is_ok(), "ALTER USER … ACCOUNT UNLOCK");
}

#[test]
fn who_guesses_waits() {
    let server = TestServer::start();
    let guess = || denied(Conn::new(server.opts().user(Some("native")).pass(Some("guess"))));
    let start = std::time::Instant::now();
    for _ in 0..4 {
        assert_eq!(guess().0, 1045);
    }
    assert!(start.elapsed() < std::time::Duration::from_millis(400), "the first are answered at once");
    assert_eq!(guess().0, 1045);
    assert_eq!(guess().0, 1045);
    assert!(start.elapsed() >= std::time::Duration::from_millis(1000), "{:?}", start.elapsed());
    // Others are not kept waiting.
    let start = std::time::Instant::now();
    server.connect();
    assert!(start.elapsed() < std::time::Duration::from_millis(400));
}

#[test]
fn the_greeting_is_that_of_mysql_8_4() {
    let server = TestServer::start();
    let (_, first) = Raw::connect(server.address);
    let (_, second) = Raw::connect(server.address);
    assert_eq!(first[0], 10);
    assert!(first[1..].starts_with(b"8.4.13-avocet-"));
    assert!(first.ends_with(b"caching_sha2_password\0"));
    assert_ne!(first, second, "salts are random");
}

#[test]
fn broken_handshakes_are_refused() {
    let server = TestServer::start();
    let cases: [(&str, u8, Vec<u8>, u16); 5] = [
        ("empty", 1, Vec::new(), 1043),
        ("protocol 3.20", 1, vec![0; 40], 1043),
        ("cut short", 1, login(0, b"root", b"", b"")[..20].to_vec(), 1043),
        ("a response longer than the packet", 1, login(0x0020_0000, b"root\0\xFE", b"", b"x"), 1043),
        ("wrong sequence", 7, login(0, b"root", b"", b"caching_sha2_password"), 1156),
    ];
    for (name, sequence, payload, expected) in cases {
        let (mut raw, _) = Raw::connect(server.address);
        raw.send(sequence, &payload);
        let reply = raw.read().expect(name).1;
        assert_eq!(error_of(&reply).map(|(number, _)| number), Some(expected), "{name}: {reply:?}");
        assert!(raw.is_closed(), "{name}");
    }
}

#[test]
fn a_client_that_says_nothing_is_cut_off() {
    let server = TestServer::with(|options| {
        options.connect_timeout = std::time::Duration::from_millis(50);
    });
    let (mut raw, _) = Raw::connect(server.address);
    assert_eq!(error_of(&raw.read().expect("an error").1).map(|(number, _)| number), Some(1159));
    assert!(raw.is_closed());
}

#[test]
fn connections_over_the_limit_are_told_so_and_an_administrator_gets_in() {
    let server = TestServer::start();
    let of =
        |user: &str, password: &str| mysql::Conn::new(server.opts().user(Some(user)).pass(Some(password)));
    let first = of("native", "secret").expect("room");
    // It counts from now on, as SET GLOBAL has it.
    server.max_connections.store(1, Ordering::SeqCst);
    assert_eq!(denied(of("native", "secret")).0, 1040);
    let administrator = of("root", "").expect("one more");
    assert_eq!(denied(of("root", "")).0, 1040);
    drop((first, administrator));
    server.until("a free place", || server.registry.count() == 0);
    of("native", "secret").expect("room again");
}

#[test]
fn silent_connections_keep_nobody_out() {
    let server = TestServer::start();
    server.max_connections.store(2, Ordering::SeqCst);
    let mut silent: Vec<_> = (0..600).map(|_| Raw::connect(server.address).0).collect();
    let one = server.connect();
    let other = server.connect();
    assert_eq!(error_of(&silent[0].read().expect("an error").1).map(|(number, _)| number), Some(1040));
    assert!(silent[0].is_closed());
    drop((one, other));
}

#[test]
fn an_open_root_keeps_the_server_on_this_machine() {
    let data = tempfile::tempdir().expect("a directory");
    let accounts = std::sync::Arc::new(avocet_server::auth::MemoryAccounts::open_root());
    let options =
        || avocet_server::ServerOptions::new(data.path().into(), "0.0.0.0:0".parse().expect("an address"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bind = |accounts| {
        runtime.block_on(avocet_server::Server::bind(options(), support::TestSessions::default(), accounts))
    };
    let message = bind(accounts.clone()).err().expect("refused").to_string();
    assert!(message.contains("root has no password") && message.contains("ALTER USER"), "{message}");
    accounts.set("root", "localhost", avocet_server::auth::Plugin::CachingSha2, b"secret");
    assert!(bind(accounts).is_ok());
}

#[test]
fn a_socket_is_of_this_machine_and_needs_no_encryption() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("mysqld.sock");
    let server = TestServer::with(|options| options.sockets.push(path.clone()));
    let mode = std::fs::metadata(&path).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "for the server's own user, as long as root is open");
    let opts = || TestServer::socket_opts(&path);
    assert_eq!(user_of(&mut Conn::new(opts()).expect("root")), "root@localhost");
    for user in ["native", "sha2", "sha2"] {
        let opts = opts().user(Some(user)).pass(Some("secret"));
        assert_eq!(user_of(&mut Conn::new(opts).expect(user)), format!("{user}@%"));
    }
    let expected = "Access denied for user 'sha2'@'localhost' (using password: YES)".to_owned();
    assert_eq!(denied(Conn::new(opts().user(Some("sha2")).pass(Some("wrong")))), (1045, expected));
    server.stop();
    assert!(!path.exists(), "the socket goes with its server");
}

#[test]
fn a_socket_left_behind_is_taken_over_and_nothing_else_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("mysqld.sock");
    // Nobody listens any more, but the file stays, as after a kill.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let server = TestServer::with(|options| options.sockets.push(path.clone()));
    Conn::new(TestServer::socket_opts(&path)).expect("a connection");
    let second = |path: &std::path::Path| {
        let data = tempfile::tempdir().expect("a directory");
        let address = "127.0.0.1:0".parse().expect("an address");
        let mut options = avocet_server::ServerOptions::new(data.path().into(), address);
        options.sockets.push(path.to_owned());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let sessions = support::TestSessions::default();
        let bound = runtime.block_on(avocet_server::Server::bind(options, sessions, server.accounts.clone()));
        bound.err().map(|error| error.to_string())
    };
    assert!(second(&path).expect("refused").contains("another server"), "the first one serves it");
    Conn::new(TestServer::socket_opts(&path)).expect("a connection");
    let file = dir.path().join("precious");
    std::fs::write(&file, "data").expect("a file");
    assert!(second(&file).is_some());
    assert_eq!(std::fs::read(&file).expect("still there"), b"data");
}

#[test]
fn a_tls_handshake_right_behind_its_request_is_left_to_tls() {
    use std::io::{Read, Write};
    let server = TestServer::start();
    let (mut raw, _) = Raw::connect(server.address);
    // An SSL request and, in the same write, the start of a TLS record that is too short to be a hello.
    let request = &login(0x0800, b"", b"", b"")[..32];
    let mut bytes = vec![32, 0, 0, 1];
    bytes.extend_from_slice(request);
    bytes.extend_from_slice(&[0x16, 3, 1, 0, 4, 1, 0, 0, 0]);
    raw.stream.write_all(&bytes).expect("a server that reads");
    let mut answer = [0];
    // TLS answers: with an alert record, not with a packet of ours.
    raw.stream.read_exact(&mut answer).expect("an alert");
    assert_eq!(answer[0], 0x15);
}
