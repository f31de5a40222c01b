//! LOAD DATA: what the client is told, what is refused, and files of the server.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::Client;

/// What a text answers, without the counts for people.
fn run(client: &mut Client, sql: &str) -> String {
    let answer = client.run(sql);
    answer.lines().map(|line| format!("{}\n", line.split(" (Records").next().unwrap_or_default())).collect()
}

#[test]
fn the_reply_counts_rows_and_warnings() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    let mut info = |sql: &str| {
        let reply = client.run(sql);
        reply.split(['(', ')']).nth(1).unwrap_or(&reply).to_owned()
    };
    assert_eq!(
        info("LOAD DATA LOCAL INFILE 'data:1\\t1\\n2\\tx\\n1\\t3\\n' INTO TABLE t"),
        "Records: 3  Deleted: 0  Skipped: 1  Warnings: 2"
    );
    assert_eq!(
        info("LOAD DATA LOCAL INFILE 'data:1\\t1\\n2\\t2\\n3\\t3\\n' REPLACE INTO TABLE t"),
        "Records: 3  Deleted: 1  Skipped: 0  Warnings: 0"
    );
    // More warnings than are kept are counted.
    let many =
        format!("LOAD DATA LOCAL INFILE 'data:{}' INTO TABLE t (@skip) SET id = 7", "x\\n".repeat(3000));
    assert_eq!(info(&many), "Records: 3000  Deleted: 0  Skipped: 2999  Warnings: 2999");
    assert_eq!(client.run("SHOW COUNT(*) WARNINGS"), "2999\n");
}

/// As MySQL 9.7 has it; elsewhere such bytes are question marks.
#[test]
fn bytes_that_the_character_set_has_not_are_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut client = Client::new();
    client.database.set_option("secure_file_priv", &folder.path().display().to_string()).expect("known");
    client.run("CREATE TABLE t (a INT, b VARCHAR(20))");
    let path = folder.path().join("in").display().to_string();
    std::fs::write(&path, b"1\tabc\n2\ta\xc4\x81b\n").expect("written");
    for (charset, shown) in [("ascii", "\\xC4\\x81b"), ("cp1250", "\\x81b")] {
        let load =
            |clause: &str| format!("LOAD DATA INFILE '{path}' {clause} INTO TABLE t CHARACTER SET {charset}");
        let problem = format!("1366: Incorrect string value: '{shown}' for column 'b' at row 2");
        assert_eq!(client.run(&load("")), format!("ERROR {problem}\n"));
        assert_eq!(client.run("SELECT COUNT(*) FROM t"), "0\n");
        assert_eq!(run(&mut client, &load("IGNORE")), "ok 2\n");
        let warned = client.run("SHOW WARNINGS");
        assert_eq!(warned, format!("Warning|1366|{}\n", &problem[6..]));
        assert!(client.run("SELECT b FROM t WHERE a = 2").ends_with("?b\n"));
        client.run("TRUNCATE t");
    }
    std::fs::write(&path, b"1\t\xe9\n").expect("written");
    assert_eq!(
        run(&mut client, &format!("LOAD DATA INFILE '{path}' INTO TABLE t CHARACTER SET latin1")),
        "ok 1\n"
    );
    assert_eq!(client.run("SELECT b FROM t"), "é\n");
}

#[test]
fn dates_without_any_default_are_zero_dates() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT, at DATETIME NOT NULL); SET sql_mode = ''");
    for load in ["'data:1\\n'", "'data:1\\t\\\\N\\n'", "'data:1\\n' INTO TABLE t (id) -- "] {
        client.run(&format!("LOAD DATA LOCAL INFILE {load} INTO TABLE t"));
    }
    assert_eq!(client.run("SELECT id, at, COUNT(*) FROM t GROUP BY id, at"), "1|0000-00-00 00:00:00|3\n");
}

/// Row by row and as blocks; what is no document is an error, although LOCAL means IGNORE.
#[test]
fn documents_are_read_from_their_texts() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, j JSON)");
    let load = |data: &str| format!("LOAD DATA LOCAL INFILE 'data:{data}' INTO TABLE t");
    assert_eq!(run(&mut client, &load("1\\t{\"b\": 1, \"a\": [1, null]}\\n2\\t\\\\N\\n")), "ok 2\n");
    assert_eq!(client.run("SELECT * FROM t ORDER BY id"), "1|{\"a\": [1, null], \"b\": 1}\n2|NULL\n");
    let refused = client.run(&load("3\\t{\\n"));
    assert!(
        refused.starts_with(
            "ERROR 3140: Invalid JSON text: \"Missing a name for object member.\" at position 1"
        )
    );
    let many: String = (10..3010).map(|id| format!("{id}\\t[{id}]\\n")).collect();
    assert_eq!(run(&mut client, &load(&many)), "ok 3000\n");
    assert_eq!(client.run("SELECT COUNT(*), SUM(j->'$[0]') FROM t WHERE id >= 10"), "3000|4528500\n");
}

/// However many steps a path takes, it ends when the statement is to.
#[test]
fn long_paths_end_with_the_statements_time() {
    let mut client = Client::new();
    let wide = "CONCAT('[', REPEAT('[1],', 100000), '2]')";
    let answer = client.run(&format!(
        "SET max_execution_time = 100; SELECT JSON_LENGTH(JSON_EXTRACT({wide}, CONCAT('$', REPEAT('**[0]', 100000))))"
    ));
    assert!(answer.contains("ERROR 3024"), "{answer}");
}

#[test]
fn files_of_the_server_are_read_below_one_folder_alone() {
    let folder = tempfile::tempdir().expect("a directory");
    let outside = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("rows.txt"), "1\t10\n2\t20\n").expect("written");
    std::fs::write(outside.path().join("secret"), "3\t30\n").expect("written");
    std::os::unix::fs::symlink(outside.path().join("secret"), path("link")).expect("linked");
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    let load = |name: &str| format!("LOAD DATA INFILE '{name}' INTO TABLE t");
    let denied = "ERROR 1290: The MySQL server is running with the --secure-file-priv option so it cannot execute \
                  this statement\n";
    // By default there is no such folder.
    assert_eq!(client.run("SELECT @@secure_file_priv"), "NULL\n");
    assert_eq!(run(&mut client, &load(&path("rows.txt"))), denied);
    client.database.set_option("secure_file_priv", &folder.path().display().to_string()).expect("known");
    assert_eq!(run(&mut client, &load(&path("rows.txt"))), "ok 2\n");
    assert_eq!(
        run(&mut client, &load(&path("rows.txt"))),
        "ERROR 1062: Duplicate entry '1' for key 't.PRIMARY'\n"
    );
    for name in [
        path("link"),
        path(&format!("../{}/secret", outside.path().file_name().expect("a name").to_string_lossy())),
        outside.path().join("secret").display().to_string(),
        outside.path().join("nosuch").display().to_string(),
        path("nosuch/../../etc/passwd"),
        "/etc/passwd".into(),
        "rows.txt".into(),
        String::new(),
    ] {
        assert_eq!(run(&mut client, &load(&name)), denied, "{name}");
    }
    let missing = run(&mut client, &load(&path("nosuch")));
    assert!(missing.starts_with("ERROR 13: Can't get stat of "), "{missing}");
    let directory = run(&mut client, &load(&folder.path().display().to_string()));
    assert!(directory.starts_with("ERROR 1085: "), "{directory}");
    assert_eq!(client.run("SELECT * FROM t"), "1|10\n2|20\n");
}

#[test]
fn rows_longer_than_the_buffer_arrive_whole_and_too_long_ones_are_refused() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)");
    let before = client.database.engine().memory().in_use().queries;
    let text = "0123456789".repeat(100_000);
    let load = format!("LOAD DATA LOCAL INFILE 'data:1\\t{text}\\n2\\t{text}' INTO TABLE t");
    assert_eq!(run(&mut client, &load), "ok 2\n");
    assert_eq!(
        client.run("SELECT id, LENGTH(v), MD5(v) = MD5(REPEAT('0123456789', 100000)) FROM t"),
        "1|1000000|1\n2|1000000|1\n"
    );
    client.run("SET GLOBAL max_allowed_packet = 500000");
    let mut client = client.another();
    assert_eq!(
        run(&mut client, &load.replace("data:1", "data:3")),
        "ERROR 1153: Got a packet bigger than 'max_allowed_packet' bytes\n"
    );
    assert_eq!(client.run("SELECT COUNT(*) FROM t"), "2\n");
    assert_eq!(client.database.engine().memory().in_use().queries, before, "all memory is given back");
}

#[test]
fn a_load_is_a_part_of_its_transaction() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40))");
    client.run("BEGIN; INSERT INTO t VALUES (1000000, 'mine')");
    assert_eq!(run(&mut client, "LOAD DATA LOCAL INFILE 'rows:1000' INTO TABLE t"), "ok 1000\n");
    assert_eq!(client.another().run("SELECT COUNT(*) FROM t"), "0\n");
    assert_eq!(
        run(&mut client, "SELECT COUNT(*) FROM t; ROLLBACK; SELECT COUNT(*) FROM t"),
        "1001\nok 0\n0\n"
    );
    for level in ["SERIALIZABLE", "READ COMMITTED"] {
        client.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        assert_eq!(
            run(&mut client, "LOAD DATA LOCAL INFILE 'rows:10' REPLACE INTO TABLE t; DELETE FROM t"),
            "ok 10\nok 10\n"
        );
    }
}

#[test]
fn large_loads_go_to_blocks_and_the_log_carries_references() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40), KEY (v))");
    let logged = client.database.engine().log_stats().bytes;
    assert_eq!(run(&mut client, "LOAD DATA LOCAL INFILE 'rows:300000' INTO TABLE t"), "ok 300000\n");
    let logged = client.database.engine().log_stats().bytes - logged;
    assert!(logged < 1 << 20, "{logged} bytes of log for a file of nine million");
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all memory is given back");
    let sums = "SELECT COUNT(*), SUM(id), MIN(v), MAX(v) FROM t; SELECT id FROM t WHERE v = 'the text of row 299999'";
    let whole = "300000|44999850000|the text of row 0|the text of row 99999\n299999\n";
    assert_eq!(client.run(sums), whole);
    assert_eq!(client.run("SELECT v FROM t WHERE id = 150000"), "the text of row 150000\n");
    // What was loaded is as visible, and as taken back, as any other row.
    client.run("CREATE TABLE r LIKE t; BEGIN");
    assert_eq!(run(&mut client, "LOAD DATA LOCAL INFILE 'rows:100000' INTO TABLE r"), "ok 100000\n");
    assert_eq!(client.another().run("SELECT COUNT(*) FROM r"), "0\n");
    assert_eq!(client.run("SELECT COUNT(*) FROM r; ROLLBACK; SELECT COUNT(*) FROM r"), "100000\nok 0\n0\n");
}

#[test]
fn blocks_with_keys_that_are_there_go_row_by_row() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40), w INT DEFAULT 0, UNIQUE (v))");
    client.run("LOAD DATA LOCAL INFILE 'rows:400000' INTO TABLE t (id, v) SET w = 1");
    client.run("DELETE FROM t WHERE id >= 100000 AND id < 390000 OR id = 5");
    let load = "LOAD DATA LOCAL INFILE 'rows:400000' IGNORE INTO TABLE t (id, v) SET w = 2";
    assert_eq!(
        client.run(load),
        "ok 290001 (Records: 400000  Deleted: 0  Skipped: 109999  Warnings: 109999)\n"
    );
    let state = "SELECT w, COUNT(*), SUM(id) FROM t GROUP BY w ORDER BY w";
    assert_eq!(
        client.run(state),
        "1|109999|8949945000\n2|290001|71049855005\n"
            .replace("8949945000", &sum(false))
            .replace("71049855005", &sum(true))
    );
    let load = "LOAD DATA LOCAL INFILE 'rows:120000' REPLACE INTO TABLE t (id, v) SET w = 3";
    assert_eq!(client.run(load), "ok 240000 (Records: 120000  Deleted: 120000  Skipped: 0  Warnings: 0)\n");
    assert_eq!(client.run("SELECT COUNT(*), SUM(w = 3), COUNT(DISTINCT v) FROM t"), "400000|120000|400000\n");
    // A key twice in one file, and one that another transaction inserts meanwhile.
    client.run("CREATE TABLE one (k INT PRIMARY KEY)");
    let load = "LOAD DATA LOCAL INFILE 'rows:100000' INTO TABLE one (@n, @text) SET k = @n DIV 2";
    assert_eq!(client.run(load), "ok 50000 (Records: 100000  Deleted: 0  Skipped: 50000  Warnings: 50000)\n");
}

/// A few keys that are there in each block, and a few that come twice: these rows alone go one by one, and what comes of all is
/// what comes of them one by one.
#[test]
fn blocks_with_few_keys_that_are_there_are_blocks_without_these() {
    let mut client = Client::new();
    client.run("CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(40), w INT)");
    client.run("LOAD DATA LOCAL INFILE 'rows:300000' INTO TABLE s (id, v) SET w = id");
    let fill =
        "TRUNCATE TABLE t; INSERT INTO t SELECT id, CONCAT('old ', v), -1 FROM s WHERE id % 10000 = 17";
    // Every id once, but that of each 10,000th row again in the row behind it; 30 are there, and 30 come twice.
    let rows = "SELECT id - (id % 10000 = 5), v, w FROM s ORDER BY id";
    let state = "SELECT COUNT(*), SUM(id), SUM(w), COUNT(DISTINCT v), SUM(v LIKE 'old%') FROM t";
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(60), w INT, KEY (w), UNIQUE (v))");
    let ids: u64 = (0..300_000).filter(|id| id % 10_000 != 5).sum();
    let there = |of: u64| (0..300_000).filter(|id| id % 10_000 == of).sum::<u64>() as i64;
    let all = (0..300_000).sum::<u64>() as i64;
    for (statement, affected, w, old) in [
        (format!("INSERT IGNORE INTO t {rows}"), 299_940, all - there(5) - there(17) - 30, 30),
        (format!("REPLACE INTO t {rows}"), 300_000 + 60, all - there(4), 0),
        (
            format!("INSERT INTO t {rows} ON DUPLICATE KEY UPDATE w = VALUES(w) + 1"),
            299_940 + 2 * 60,
            all - there(4) + 60,
            30,
        ),
    ] {
        client.run(fill);
        let logged = client.database.engine().log_stats().bytes;
        let answer = run(&mut client, &statement);
        assert_eq!(answer, format!("ok {affected}\n"), "{statement}");
        let logged = client.database.engine().log_stats().bytes - logged;
        assert!(logged < 1 << 20, "{statement}: {logged} bytes of log");
        assert_eq!(client.run(state), format!("299970|{ids}|{w}|299970|{old}\n"), "{statement}");
        assert_eq!(client.database.engine().memory().in_use().queries, 0, "all memory is given back");
    }
    // Where what becomes of a row changes a key, the order of all rows counts.
    client.run("CREATE TABLE k (id INT PRIMARY KEY, u INT, UNIQUE (u)); INSERT INTO k VALUES (50000, -1)");
    let moved = "INSERT INTO k SELECT id, id FROM s ORDER BY id
                 ON DUPLICATE KEY UPDATE u = IF(k.id = 50000, 50001, k.u)";
    assert_eq!(run(&mut client, moved), "ok 300000\n");
    assert_eq!(client.run("SELECT u FROM k WHERE id = 50000; SELECT COUNT(*) FROM k"), "50001\n299999\n");
}

/// Of the ids that were loaded again, or were not.
fn sum(again: bool) -> String {
    let is_again = |id: &u64| (100_000..390_000).contains(id) || *id == 5;
    (0..400_000_u64).filter(|id| is_again(id) == again).sum::<u64>().to_string()
}

#[test]
fn a_large_load_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("rows");
    let mut client = Client::new();
    client.database.set_option("secure_file_priv", &folder.path().display().to_string()).expect("known");
    client.run("CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1), (2)");
    client.run("CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))");
    let mut load = |rows: &mut dyn Iterator<Item = (u32, u32)>| {
        let lines: String = rows.map(|(id, parent)| format!("{id}\t{parent}\n")).collect();
        std::fs::write(&file, lines).expect("written");
        let answer = run(&mut client, &format!("LOAD DATA INFILE '{}' INTO TABLE t", file.display()));
        answer + &client.run("SELECT COUNT(*) FROM t")
    };
    let end = "\n0\n";
    let twice = load(&mut (0..200_000).map(|n| (if n == 150_000 { 7 } else { n }, 1)));
    assert_eq!(twice, format!("ERROR 1062: Duplicate entry '7' for key 't.PRIMARY'{end}"));
    let orphan = load(&mut (0..200_000).map(|n| (n, if n == 199_999 { 3 } else { 2 })));
    assert!(orphan.starts_with("ERROR 1452: ") && orphan.ends_with(end), "{orphan}");
    let short = load(&mut (0..200_000).map(|n| (n, 1)).filter(|(n, _)| *n != 5));
    assert_eq!(short, "ok 199999\n199999\n");
}

#[test]
fn generated_numbers_go_on_behind_blocks() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40))");
    assert_eq!(run(&mut client, "LOAD DATA LOCAL INFILE 'rows:100000' INTO TABLE t (@n, v)"), "ok 100000\n");
    assert_eq!(
        client.run("SELECT MIN(id), COUNT(DISTINCT id) FROM t; SELECT LAST_INSERT_ID()"),
        "1|100000\n1\n"
    );
    assert_eq!(
        run(&mut client, "LOAD DATA LOCAL INFILE 'rows:100000' INTO TABLE t (@n, v) SET id = @n + 1000000"),
        "ok 100000\n"
    );
    client.run("INSERT INTO t (v) VALUES ('next')");
    assert_eq!(client.run("SELECT id FROM t WHERE v = 'next'"), "1100000\n");
}

#[test]
fn wide_rows_fill_smaller_blocks() {
    let mut client = Client::with(|options| options.memory_limit = 256 << 20);
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)");
    let load = "LOAD DATA LOCAL INFILE 'rows:6000' INTO TABLE t (id, @v) SET v = REPEAT(@v, 1000)";
    assert_eq!(run(&mut client, load), "ok 6000\n");
    assert_eq!(client.run("SELECT COUNT(*), SUM(LENGTH(v)) DIV 1000 FROM t"), "6000|118890\n");
    assert_eq!(client.database.engine().memory().in_use().queries, 0);
}

#[test]
fn loads_wait_for_memory() {
    let load = "LOAD DATA LOCAL INFILE 'rows:2000' INTO TABLE t (id, @v) SET v = REPEAT(@v, 1000)";
    for mib in [32, 64, 128] {
        let mut client = Client::with(|options| options.memory_limit = mib << 20);
        client.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)");
        assert_eq!(run(&mut client, load), "ok 2000\n", "under {mib} MiB");
        // Another query has all that there is. Whoever waits asks whether to stop: at the third question it gives all back.
        client.run("TRUNCATE TABLE t");
        let memory = client.database.engine().memory().clone();
        let held = AtomicUsize::new(0);
        while memory.reserve(64 << 10) {
            held.fetch_add(64 << 10, Relaxed);
        }
        let questions = AtomicUsize::new(0);
        client.session.stop = Arc::new({
            let memory = memory.clone();
            move || {
                if questions.fetch_add(1, Relaxed) == 2 {
                    memory.release(held.swap(0, Relaxed));
                }
                false
            }
        });
        assert_eq!(run(&mut client, load), "ok 2000\n", "under {mib} MiB, beside a query");
        assert_eq!(client.run("SELECT COUNT(*), SUM(LENGTH(v)) DIV 1000 FROM t"), "2000|38890\n");
        assert_eq!(memory.in_use().queries, 0);
    }
}
