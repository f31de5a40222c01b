//! Variables, SHOW, accounts, what clients send on connect.

use super::{Client, check};

#[test]
fn variables_are_set_and_read() {
    check(&[
        ("SELECT @@version_comment LIMIT 1", "Avocet"),
        ("SET NAMES utf8mb4 COLLATE utf8mb4_bin; SELECT @@collation_connection", "ok 0\nutf8mb4_bin"),
        ("SET character_set_results = NULL; SELECT @@character_set_results", "ok 0\nNULL"),
        ("SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')", "ok 0"),
        ("SELECT @@sql_mode LIKE '%ANSI_QUOTES%'", "1"),
        (
            "SET SESSION wait_timeout = 0; SHOW WARNINGS",
            "ok 0\nWarning|1292|Truncated incorrect wait_timeout value: '0'",
        ),
        ("SHOW VARIABLES LIKE 'wait_timeout'", "wait_timeout|1"),
        ("SHOW VARIABLES WHERE Variable_name = 'autocommit'", "autocommit|ON"),
        ("SET time_zone = '+02:00'; SELECT @@time_zone", "ok 0\n+02:00"),
        ("SET sql_select_limit = 0; SELECT 1", "ok 0"),
        ("SET sql_select_limit = DEFAULT", "ok 0"),
        ("SET nope = 1", "ERROR 1193: Unknown system variable 'nope'"),
        (
            "SET max_connections = 5",
            "ERROR 1229: Variable 'max_connections' is a GLOBAL variable and should be set with SET GLOBAL",
        ),
        ("SET version = 'x'", "ERROR 1238: Variable 'version' is a read only variable"),
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT @@transaction_isolation",
            "ok 0\nSERIALIZABLE",
        ),
    ]);
}

#[test]
fn clients_find_what_they_ask_for_on_connect() {
    let mut client = Client::new();
    for sql in [
        "/* mysql-connector-j */ SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client, \
         @@init_connect, @@interactive_timeout, @@license, @@lower_case_table_names, @@max_allowed_packet, \
         @@net_write_timeout, @@performance_schema, @@system_time_zone, @@time_zone, @@transaction_isolation",
        "SELECT @@session.transaction_read_only",
        "SHOW ENGINES",
        "SHOW CHARSET",
        "SHOW COLLATION WHERE Id = 33",
        "SHOW PLUGINS",
        "SHOW STATUS LIKE 'Uptime'",
        "SHOW GRANTS FOR CURRENT_USER",
        "SHOW TABLE STATUS FROM test",
        "SHOW FULL TABLES FROM test",
        "SHOW PROCEDURE STATUS",
        "SELECT @@GLOBAL.event_scheduler, @@default_tmp_storage_engine",
        "SELECT CONNECTION_ID(), VERSION()",
    ] {
        let got = client.run(sql);
        assert!(!got.contains("ERROR"), "{sql}: {got}");
    }
    client.check("SHOW COLLATION WHERE Id = 33", "utf8mb3_general_ci|utf8mb3|33|Yes|Yes|1|PAD SPACE");
}

#[test]
fn accounts_are_kept() {
    check(&[
        ("CREATE USER ann", "ok 0"),
        ("CREATE USER ann", "ERROR 1396: Operation CREATE USER failed for 'ann'@'%'"),
        ("GRANT ALL PRIVILEGES ON *.* TO ann", "ok 0"),
        ("GRANT SELECT ON test.* TO ann", "ok 0"),
        ("DROP USER ann", "ok 0"),
        (
            "DROP USER IF EXISTS ann; SHOW WARNINGS",
            "ok 0\nNote|3162|Authorization ID 'ann'@'%' does not exist.",
        ),
    ]);
}

#[test]
fn a_reset_session_is_as_new() {
    use crate::api::SqlSession;
    let mut client = Client::new();
    client.check(
        "CREATE TABLE t (a INT); SET @x = 1; SET autocommit = 0; INSERT INTO t VALUES (1)",
        "ok 0\nok 0\nok 0\nok 1",
    );
    client.runtime.clone().block_on(client.session.reset());
    client.check("SELECT @x, @@autocommit, DATABASE(); SELECT COUNT(*) FROM t", "NULL|1|test\n0");
}

#[test]
fn a_session_says_how_durable_its_commits_are() {
    check(&[
        ("SELECT @@durability, @@GLOBAL.durability", "sync|sync"),
        ("SET durability = 'OS'; SELECT @@durability, @@GLOBAL.durability", "ok 0\nos|sync"),
        ("SET SESSION durability = 'group:5'; SELECT @@durability", "ok 0\ngroup:5"),
        ("SET GLOBAL durability = 'group'; SELECT @@GLOBAL.durability", "ok 0\ngroup:1"),
        ("SET durability = DEFAULT; SELECT @@durability", "ok 0\ngroup:1"),
        (
            "SET durability = 'never'",
            "ERROR 1231: Variable 'durability' can't be set to the value of 'never'",
        ),
    ]);
}

#[test]
fn the_log_counts_its_bytes_before_and_after_compression() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (a VARCHAR(100))");
    let rows = vec!["('the same in every row')"; 1000].join(", ");
    client.run(&format!("INSERT INTO t VALUES {rows}"));
    let mut count = |name: &str| -> u64 {
        let shown = client.run(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        shown.split('|').next_back().and_then(|n| n.trim().parse().ok()).expect("a number")
    };
    let (all, written) = (count("Avocet_log_bytes"), count("Avocet_log_written_bytes"));
    assert!(all > 25_000 && written * 4 < all, "{written} of {all}");
}

#[test]
fn only_sessions_that_want_it_wait_for_the_disk() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (a INT)");
    let syncs = "SHOW GLOBAL STATUS LIKE 'Avocet_log_syncs'";
    let before = client.run(syncs);
    client.run("SET durability = 'os'");
    client
        .check("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); SELECT COUNT(*) FROM t", "ok 1\nok 1\n2");
    assert_eq!(client.run(syncs), before);
    client.check("SET durability = 'sync'; INSERT INTO t VALUES (3)", "ok 0\nok 1");
    assert_ne!(client.run(syncs), before);
    let is_counted =
        |client: &mut Client, name| client.run(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).contains(':');
    for name in ["Avocet_log_group_records", "Avocet_log_sync_us"] {
        assert!(is_counted(&mut client, name), "{name}");
    }
    // A commit that is durable before anybody waits for it has not waited: one of some has.
    let waited = (0..1_000).any(|_| {
        client.check("INSERT INTO t VALUES (4)", "ok 1");
        is_counted(&mut client, "Avocet_commit_wait_us")
    });
    assert!(waited);
}
