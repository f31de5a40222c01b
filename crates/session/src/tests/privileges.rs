//! Privileges where the SQL files do not reach: on native procedures, with a password that has expired, on every path.

use avocet_channel::Interruption;
use avocet_types::error::SqlError;

use super::calls::procedures;
use super::client::Client;
use crate::api::{AccountName, ConnectionRow, Connections, SqlSession};

#[test]
fn procedures_are_called_by_those_who_may() {
    let mut root = Client::with(|options| options.procedures = procedures());
    root.run("CREATE TABLE t (id BIGINT PRIMARY KEY, note VARCHAR(20)); CREATE USER u, v");
    let mut user = root.of("u");
    let denied = "ERROR 1370: execute command denied to user 'u'@'%' for routine 'test.put'";
    user.check("CALL test.put(1, 'a')", denied);
    user.check("SELECT COUNT(*) FROM information_schema.routines", "0");
    root.check("GRANT EXECUTE ON PROCEDURE test.nope TO u", "ERROR 1305: PROCEDURE test.nope does not exist");
    root.check("GRANT SELECT ON PROCEDURE test.put TO u", &illegal());
    root.check("GRANT EXECUTE ON PROCEDURE test.PUT TO u WITH GRANT OPTION", "ok 0");
    root.check(
        "SHOW GRANTS FOR u",
        "GRANT USAGE ON *.* TO `u`@`%`\nGRANT EXECUTE ON PROCEDURE `test`.`put` TO `u`@`%` WITH GRANT OPTION",
    );
    user.check("CALL test.put(1, 'a')", "ok 1");
    user.check("CALL test.sum(1)", &denied.replace("put", "sum"));
    user.check("SELECT routine_name FROM information_schema.routines", "put");
    user.check("GRANT EXECUTE ON PROCEDURE test.put TO v", "ok 0");
    root.of("v").check("CALL test.put(2, 'b')", "ok 1");
    root.check(
        "SELECT Db, User, Routine_name, Proc_priv FROM mysql.procs_priv ORDER BY User",
        "test|u|put|Execute,Grant\ntest|v|put|Execute",
    );
    root.check("REVOKE EXECUTE ON PROCEDURE test.put FROM u, v", "ok 0");
    user.check("CALL test.put(3, 'a')", denied);
    root.check(
        "REVOKE EXECUTE ON PROCEDURE test.put FROM v",
        "ERROR 1403: There is no such grant defined for user 'v' on host '%' on routine 'put'",
    );
}

fn illegal() -> String {
    let text = "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    format!("ERROR 1144: {text}")
}

#[test]
fn an_expired_password_has_to_be_changed_first() {
    let mut root = Client::new();
    root.run("CREATE TABLE t (id INT PRIMARY KEY); CREATE USER u; GRANT ALL ON *.* TO u");
    let mut before = root.of("u");
    let kept = before.prepare("SELECT COUNT(*) FROM test.t");
    root.check("ALTER USER u PASSWORD EXPIRE", "ok 0");
    // Connections that were there go on, as in MySQL.
    before.check("SELECT 1", "1");
    assert_eq!(before.execute(kept, &[]).trim(), "0");
    let mut user = root.of("u");
    let must = "ERROR 1820: You must reset your password using ALTER USER statement before executing this statement.";
    for sql in [
        "SELECT 1",
        "USE test",
        "INSERT INTO test.t VALUES (1)",
        "BEGIN",
        "SHOW GRANTS",
        "ALTER USER u ACCOUNT LOCK",
        "ALTER USER u PASSWORD EXPIRE NEVER",
        "SET PASSWORD FOR root@localhost = ''",
        "KILL 1",
        "DO 1",
    ] {
        user.check(sql, must);
    }
    user.check("SET NAMES utf8mb4", "ok 0");
    user.check("SET PASSWORD = ''", "ok 0");
    user.check("SELECT 1", "1");
    root.of("u").check("SELECT 1", "1");
}

#[test]
fn passwords_expire_with_time() {
    let mut root = Client::new();
    root.run("CREATE USER u; CREATE USER v PASSWORD EXPIRE NEVER");
    root.check("SET GLOBAL default_password_lifetime = 1", "ok 0");
    root.of("u").check("SELECT 1", "1");
    // What is 0 was given in 1970.
    let engine = root.database.engine();
    for name in ["u", "v"] {
        let mut user = avocet_engine::UserDef::clone(engine.catalog().user(name, "%").expect("there"));
        user.password.changed_at = 0;
        engine.put_user(user).expect("logged");
    }
    assert!(root.of("u").run("SELECT 1").starts_with("ERROR 1820"));
    root.of("v").check("SELECT 1", "1");
    root.check("SET GLOBAL default_password_lifetime = 0", "ok 0");
    root.of("u").check("SELECT 1", "1");
}

/// A plan is kept for all; what its statement needs is asked of each, and again when something was revoked.
#[test]
fn kept_plans_ask_for_columns() {
    let mut root = Client::new();
    root.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, secret INT); INSERT INTO t VALUES (1, 2, 3)");
    root.run("CREATE USER u; GRANT SELECT (id, a) ON test.t TO u");
    let mut user = root.of("u");
    let denied = |column: &str| {
        format!(
            "ERROR 1143: SELECT command denied to user 'u'@'localhost' for column '{column}' in table 't'"
        )
    };
    for _ in 0..3 {
        root.check("SELECT secret FROM test.t WHERE id = 1", "3");
        root.check("SELECT a FROM test.t WHERE id = 1", "2");
        user.check("SELECT secret FROM test.t WHERE id = 1", &denied("secret"));
        user.check("SELECT a FROM test.t WHERE id = 1", "2");
    }
    let kept = user.prepare("SELECT a FROM test.t WHERE id = ?");
    assert_eq!(user.execute(kept, &[avocet_types::Datum::Int(1)]).trim(), "2");
    root.run("REVOKE SELECT (a) ON test.t FROM u");
    assert_eq!(user.execute(kept, &[avocet_types::Datum::Int(1)]).trim(), denied("a"));
    root.run("CREATE ROLE r; GRANT SELECT ON test.* TO r; GRANT r TO u");
    user.check("SET ROLE r", "ok 0");
    assert_eq!(user.execute(kept, &[avocet_types::Datum::Int(1)]).trim(), "2");
    root.run("DROP ROLE r");
    assert_eq!(user.execute(kept, &[avocet_types::Datum::Int(1)]).trim(), denied("a"));
}

/// Definitions of foreign keys need REFERENCES on the columns that they refer to.
#[test]
fn foreign_keys_refer_to_columns_that_may_be() {
    let mut root = Client::new();
    root.run("CREATE TABLE p (id INT PRIMARY KEY, k INT, UNIQUE (k)); CREATE USER u");
    root.run("CREATE DATABASE mine; GRANT ALL ON mine.* TO u; GRANT REFERENCES (id) ON test.p TO u");
    let mut user = root.of("u");
    user.check("CREATE TABLE mine.a (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES test.p (id))", "ok 0");
    let denied = user.run("CREATE TABLE mine.b (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES test.p (k))");
    assert!(denied.starts_with("ERROR 1143: REFERENCES command denied"), "{denied}");
}

/// The connections of a server: one of `root`, one of `plain`.
struct Two;

impl Connections for Two {
    fn list(&self) -> Vec<ConnectionRow> {
        let row = |id, user: &str, host: &str| ConnectionRow {
            id,
            user: user.into(),
            account: Some(AccountName { user: user.into(), host: host.into() }),
            host: "localhost".into(),
            database: None,
            command: "Sleep",
            time_s: 0,
            state: "",
            info: None,
        };
        vec![row(1007, "root", "localhost"), row(1008, "plain", "%")]
    }

    fn kill(&self, _connection_id: u32, _what: Interruption) -> Result<(), SqlError> {
        Ok(())
    }

    fn set_database(&self, _connection_id: u32, _database: Option<&str>) {}
}

#[test]
fn who_holds_system_user_is_not_killed_by_others() {
    let mut root = Client::new();
    root.run("CREATE USER admin, plain; GRANT CONNECTION_ADMIN ON *.* TO admin");
    let of = |client: &mut Client, user: &str| {
        let mut client = client.of(user);
        client.session.info.connections = std::sync::Arc::new(Two);
        client
    };
    let denied = |id: u32| format!("ERROR 1095: You are not owner of thread {id}");
    let mut plain = of(&mut root, "plain");
    plain.check("KILL 1007", &denied(1007));
    plain.check("KILL 1008", "ok 0");
    let mut admin = of(&mut root, "admin");
    admin.check("KILL 1008", "ok 0");
    admin.check("KILL QUERY 1007", &denied(1007));
    // COM_PROCESS_KILL
    assert_eq!(admin.session.kill_connection(1007).expect_err("root's").errno, 1095);
    root.check("GRANT SYSTEM_USER ON *.* TO admin", "ok 0");
    admin.check("KILL 1007", "ok 0");
    admin.session.kill_connection(1007).expect("allowed now");
    // One that is held by a role counts as well.
    root.run("CREATE ROLE system; GRANT SYSTEM_USER ON *.* TO system; GRANT system TO plain");
    root.run("REVOKE SYSTEM_USER ON *.* FROM admin");
    admin.check("KILL 1008", &denied(1008));
}

#[test]
fn no_account_is_made_without_a_name() {
    super::check(&[
        (
            "CREATE USER ''@localhost",
            "ERROR 1235: This version of Avocet doesn't yet support 'anonymous accounts'",
        ),
        ("CREATE USER u, ''", "ERROR 1235: This version of Avocet doesn't yet support 'anonymous accounts'"),
        ("CREATE USER u", "ok 0"),
        (
            "RENAME USER u TO ''",
            "ERROR 1235: This version of Avocet doesn't yet support 'anonymous accounts'",
        ),
        ("DROP USER ''@localhost", "ERROR 1396: Operation DROP USER failed for ''@'localhost'"),
    ]);
}
