//! Memory limits: a query over its limit spills, or fails alone; rows that do not fit are refused.

use std::path::{Path, PathBuf};
use std::sync::Barrier;

use super::Client;
use crate::api::SqlSession;

/// A table of 10,000 rows with long texts.
fn filled(client: &mut Client) {
    client.check(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
        "ok 0\nok 10 (Records: 10  Duplicates: 0  Warnings: 0)",
    );
    client.check("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(400))", "ok 0");
    let all = "INSERT INTO t SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n, REPEAT(CHAR(97 + a.n), 300) FROM d a, d b, d c, d e";
    client.check(all, "ok 10000 (Records: 10000  Duplicates: 0  Warnings: 0)");
}

#[test]
fn a_query_over_its_limit_fails_alone() {
    let mut client = Client::new();
    filled(&mut client);
    let mut other = client.another();
    client.check("SET query_memory_limit = 1000000", "ok 0");
    let big = "SELECT COUNT(*) FROM t x JOIN t y ON x.s = y.s AND x.id + y.id > 3";
    let answer = client.run(big);
    assert!(answer.starts_with("ERROR 1041: "), "{answer}");
    client.check("SELECT COUNT(*) FROM t", "10000");
    other.check("SELECT COUNT(*) FROM t x JOIN t y ON x.id = y.id AND x.s = y.s", "10000");
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}

/// Texts of 130 bytes, nearly all of them different: 13 MB.
fn filled_with_texts(client: &mut Client) {
    filled(client);
    client.check("CREATE TABLE big (id INT PRIMARY KEY, s VARCHAR(400))", "ok 0");
    let all = "INSERT INTO big SELECT t.id * 10 + d.n, CONCAT(MD5((t.id * 10 + d.n) DIV 3), REPEAT('x', 98)) FROM t, d";
    client.check(all, "ok 100000 (Records: 100000  Duplicates: 0  Warnings: 0)");
}

/// A client whose queries spill to a folder of its own.
fn spilling() -> (Client, tempfile::TempDir, PathBuf) {
    let client = Client::new();
    let folder = tempfile::tempdir().expect("made");
    let spill = folder.path().join("spill");
    std::fs::create_dir_all(spill.join("left by a process that was killed")).expect("made");
    client.database.spill_to(&spill);
    (client, folder, spill)
}

/// Files in a folder and those below it.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("listed").path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

/// What does not fit into the limits of the test below: the least limit that it runs with, and how many rows it has.
const LARGE: [(&str, usize, usize); 5] = [
    ("SELECT s, id FROM big ORDER BY s DESC, id", 2_000_000, 100_000),
    ("SELECT id, s FROM big ORDER BY id DESC", 2_000_000, 100_000),
    ("SELECT s, COUNT(*), MIN(id), SUM(id) FROM big GROUP BY s ORDER BY s", 2_000_000, 33_334),
    ("SELECT DISTINCT s FROM big ORDER BY s", 2_000_000, 33_334),
    ("SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC), s FROM big ORDER BY s, id", 8_000_000, 100_000),
];

#[test]
fn what_does_not_fit_spills_and_is_right() {
    let (mut client, _folder, spill) = spilling();
    filled_with_texts(&mut client);
    // In hot pages first, then in column blocks.
    for _ in 0..2 {
        for (sql, least, count) in LARGE {
            client.check("SET query_memory_limit = 0", "ok 0");
            let wanted = client.run(sql);
            assert_eq!(wanted.lines().count(), count, "{sql}");
            for limit in [least, 8_000_000] {
                client.check(&format!("SET query_memory_limit = {limit}"), "ok 0");
                let got = client.run(sql);
                let error = got.find("ERROR").map(|at| &got[at..]);
                assert_eq!(error, None, "{sql} with {limit} bytes");
                assert!(got == wanted, "{sql} with {limit} bytes has another answer");
            }
        }
        client.database.engine().freeze_all().expect("frozen");
    }
    assert_eq!(files(&spill), 0, "all files are gone");
    assert!(!spill.join("left by a process that was killed").exists());
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}

#[test]
fn first_queries_that_come_together_all_run() {
    for _ in 0..20 {
        let (mut client, _folder, _spill) = spilling();
        client.check("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "ok 0");
        client.check("INSERT INTO t VALUES (1, 1), (2, 3)", "ok 2 (Records: 2  Duplicates: 0  Warnings: 0)");
        let together = Barrier::new(6);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                let mut client = client.another();
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    client.check("SELECT id, ROW_NUMBER() OVER (ORDER BY v) FROM t ORDER BY id", "1|1\n2|2");
                });
            }
        });
    }
}

/// Joins whose hash tables do not fit: the least limit that they run with.
const LARGE_JOINS: [(&str, usize); 4] = [
    ("SELECT COUNT(*), SUM(x.id), SUM(y.id) FROM big x JOIN big y ON x.s = y.s AND x.id <> y.id", 8_000_000),
    (
        "SELECT COUNT(*), COUNT(y.id), SUM(y.id) FROM big x LEFT JOIN big y ON x.s = y.s AND y.id % 3 = 1",
        8_000_000,
    ),
    (
        "SELECT COUNT(*), SUM(id) FROM big x WHERE EXISTS (SELECT 1 FROM big y WHERE y.s = x.s AND y.id > x.id)",
        8_000_000,
    ),
    ("SELECT x.id, y.id FROM big x JOIN big y ON x.id = y.id + 1 ORDER BY x.id DESC LIMIT 2", 8_000_000),
];

#[test]
fn joins_that_do_not_fit_spill_and_are_right() {
    let (mut client, _folder, spill) = spilling();
    filled_with_texts(&mut client);
    for (sql, least) in LARGE_JOINS {
        client.check("SET query_memory_limit = 0", "ok 0");
        let wanted = client.run(sql);
        assert!(!wanted.contains("ERROR"), "{sql}: {wanted}");
        client.check(&format!("SET query_memory_limit = {least}"), "ok 0");
        client.check(sql, &wanted);
    }
    assert_eq!(files(&spill), 0, "all files are gone");
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}

/// It is the files that make the difference.
#[test]
fn with_nowhere_to_spill_to_the_same_queries_fail_by_name() {
    let mut client = Client::new();
    filled_with_texts(&mut client);
    client.check("SET query_memory_limit = 8000000", "ok 0");
    for (sql, ..) in LARGE {
        let answer = client.run(sql);
        assert!(answer.contains("ERROR 1041: "), "{sql}: {}", &answer[..answer.len().min(200)]);
        client.check("SELECT COUNT(*) FROM big", "100000");
    }
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}

#[test]
fn queries_that_end_early_leave_no_files() {
    let (mut client, _folder, spill) = spilling();
    filled_with_texts(&mut client);
    client.check("SET query_memory_limit = 4000000, max_execution_time = 60", "ok 0");
    let mut ended = 0;
    for (sql, ..) in LARGE {
        ended += u64::from(client.run(sql).contains("ERROR 3024"));
    }
    assert!(ended > 0, "some took longer than they might");
    // Tasks end on their own threads.
    while files(&spill) > 0 || client.database.engine().memory().in_use().queries > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_folder_that_takes_no_files_fails_the_query_alone() {
    let (mut client, _folder, spill) = spilling();
    filled_with_texts(&mut client);
    client.check("SELECT COUNT(DISTINCT s) FROM big", "33334");
    std::fs::remove_dir_all(&spill).expect("removed");
    client.check("SET query_memory_limit = 4000000", "ok 0");
    let answer = client.run(LARGE[0].0);
    assert!(answer.starts_with("ERROR 1030: "), "{}", &answer[..answer.len().min(300)]);
    client.check("SELECT COUNT(*) FROM big", "100000");
}

/// What can be frozen makes room; what a snapshot keeps in memory cannot.
#[test]
fn rows_beyond_the_limit_are_refused_by_name() {
    let mut client = Client::with(|options| options.memory_limit = 4 << 20);
    client.check("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(4000))", "ok 0");
    let insert = |client: &mut Client, id| {
        client.run(&format!("INSERT INTO t VALUES ({id}, REPEAT('x', 3000))")).trim_end().to_owned()
    };
    for id in 0..3000 {
        assert_eq!(insert(&mut client, id), "ok 1", "9 MB in all");
    }
    let mut old = client.another();
    old.check("START TRANSACTION WITH CONSISTENT SNAPSHOT", "ok 0");
    let refused = (3000..8000)
        .find_map(|id| Some((id, insert(&mut client, id))).filter(|(_, answer)| answer != "ok 1"));
    let (rows, answer) = refused.expect("there is an end");
    assert!(answer.starts_with("ERROR 1041: Out of memory: tables"), "{answer}");
    assert!(answer.contains("most of it rows") && answer.contains("--memory-limit"), "{answer}");
    old.check("SELECT COUNT(*) FROM t", "3000");
    client.check("SELECT COUNT(*) FROM t", &rows.to_string());
    client.check("DELETE FROM t WHERE id = 2", "ok 1");
    old.check("COMMIT", "ok 0");
    assert_eq!(insert(&mut client, 9000), "ok 1");
    client.check("SELECT COUNT(*) FROM t", &rows.to_string());
}

#[test]
fn a_transaction_beyond_its_share_is_refused_by_name() {
    let mut client = Client::with(|options| options.memory_limit = 16 << 20);
    client.check("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(4000))", "ok 0");
    client.check("BEGIN", "ok 0");
    let insert = |client: &mut Client, id| {
        client.run(&format!("INSERT INTO t VALUES ({id}, REPEAT('x', 3000))")).trim_end().to_owned()
    };
    let refused =
        (0..8000).find_map(|id| Some((id, insert(&mut client, id))).filter(|(_, answer)| answer != "ok 1"));
    let (rows, answer) = refused.expect("there is an end");
    assert!(answer.starts_with("ERROR 1197: the transaction needs"), "{answer}");
    assert!(answer.contains("commit in smaller parts"), "{answer}");
    client.check("SELECT COUNT(*) FROM t", &rows.to_string());
    client.check("ROLLBACK; SELECT COUNT(*) FROM t", "ok 0\n0");
    assert_eq!(insert(&mut client, 1), "ok 1");
    assert_eq!(client.database.engine().memory().in_use().transactions, 0);
}

/// Rows of 10 KB, five times the limit, in one statement; then the same from the table itself.
#[test]
fn an_insert_of_a_query_streams_to_column_blocks() {
    let mut client = Client::with(|options| {
        options.memory_limit = 32 << 20;
        options.background = true;
    });
    let folder = tempfile::tempdir().expect("made");
    client.database.spill_to(folder.path());
    client.check(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
         CREATE TABLE w (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(12000));
         CREATE TABLE copy (id INT PRIMARY KEY, s VARCHAR(12000))",
        "ok 0\nok 10 (Records: 10  Duplicates: 0  Warnings: 0)\nok 0\nok 0",
    );
    let many =
        "INSERT INTO w (s) SELECT CONCAT(RAND(a.n + 10 * b.n), REPEAT(MD5(a.n + 10 * b.n + 100 * c.n), 300))
         FROM d a, d b, d c, d e WHERE e.n < 8";
    client.check(many, "ok 8000 id 1 (Records: 8000  Duplicates: 0  Warnings: 0)");
    let copies = "INSERT INTO copy SELECT * FROM w";
    client.check(copies, "ok 8000 (Records: 8000  Duplicates: 0  Warnings: 0)");
    let answer = client.run("INSERT INTO w (s) SELECT s FROM w");
    assert!(answer.contains("(Records: 8000  Duplicates: 0  Warnings: 0)"), "{answer}");
    client.check("SELECT COUNT(*), COUNT(DISTINCT id), SUM(LENGTH(s)) > 150000000 FROM w", "16000|16000|1");
    let sums = client.run("SELECT COUNT(*), SUM(id * CRC32(s)) FROM w WHERE id <= 8000");
    assert_eq!(client.run("SELECT COUNT(*), SUM(id * CRC32(s)) FROM copy"), sums);
    // Every way of finding the rows.
    for query in [
        "SELECT id, s FROM w WHERE id BETWEEN 1 AND 4000",
        "SELECT id, s FROM w WHERE id BETWEEN 1 AND 4000 ORDER BY id DESC",
        "SELECT id, s FROM w WHERE id < 4001 FOR SHARE",
        "SELECT id, s FROM w WHERE id < 2001 UNION ALL SELECT id, s FROM w WHERE id BETWEEN 2001 AND 4000",
        "SELECT x.id, x.s FROM w x JOIN w y ON x.id = y.id WHERE y.id BETWEEN 1 AND 4000",
        "SELECT id, s FROM (SELECT * FROM w WHERE id < 4001 LIMIT 4000) u",
        "WITH c AS (SELECT * FROM w WHERE id < 4001) SELECT id, s FROM c",
        "SELECT id, s FROM w WHERE id % 2 = 1 AND id < 8001",
    ] {
        client.check("CREATE TABLE part LIKE copy", "ok 0");
        let taken = client.run(&format!("INSERT INTO part {query}"));
        assert!(taken.contains("(Records: 4000  Duplicates: 0"), "{query}: {taken}");
        client.check("SELECT COUNT(*), SUM(LENGTH(s)) > 38000000 FROM part", "4000|1");
        client.check("DROP TABLE part", "ok 0");
    }
    // What the statement's own transaction has changed is read, too.
    client.check("CREATE TABLE part LIKE copy; BEGIN; DELETE FROM w WHERE id = 1", "ok 0\nok 0\nok 1");
    let taken = client.run("INSERT INTO part SELECT id, s FROM w WHERE id % 2 = 1 AND id < 8001");
    assert!(taken.contains("(Records: 3999  Duplicates: 0"), "{taken}");
    client.check("ROLLBACK; DROP TABLE part", "ok 0\nok 0");
    let error = client.run("INSERT INTO copy SELECT id + 4000, s FROM w WHERE id <= 8000");
    assert!(error.starts_with("ERROR 1062"), "{error}");
    client.check("SELECT COUNT(*) FROM copy", "8000");
    let memory = client.database.engine().memory().in_use();
    assert_eq!((memory.queries, memory.transactions, memory.work), (0, 0, 0));
}

/// What a transaction has changed before is read, what the statement changes is not.
#[test]
fn an_insert_of_a_query_does_not_read_what_it_inserts() {
    let mut client = Client::new();
    client.check("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)", "ok 0");
    client.run("INSERT INTO t (n) VALUES (1),(2),(3),(4),(5)");
    let double = "INSERT INTO t (n) SELECT n FROM t";
    let mut rows = 5;
    for step in 0..12 {
        if step == 6 {
            client.run("BEGIN; UPDATE t SET n = n + 1 WHERE id = 1");
        }
        let answer = client.run(double);
        assert!(answer.contains(&format!("(Records: {rows}  Duplicates: 0")), "{answer}");
        rows *= 2;
    }
    client.check("SELECT COUNT(*), COUNT(DISTINCT id) FROM t", &format!("{rows}|{rows}"));
    client.check("ROLLBACK", "ok 0");
    client.check("SELECT COUNT(*) FROM t", "320");
}

/// Each of them fits into the server's memory, some together do not: they run one after the other.
#[test]
fn queries_that_do_not_fit_together_yield_now_and_then() {
    let mut client = Client::with(|options| options.memory_limit = 56 << 20);
    filled_with_texts(&mut client);
    client.database.engine().freeze_all().expect("frozen");
    client.database.engine().watch_memory();
    let sql = "SELECT COUNT(*), SUM(x.id) FROM big x JOIN big y ON x.s = y.s AND x.id = y.id WHERE x.id < 60000 AND y.id < 60000";
    let wanted = client.run(sql);
    assert!(!wanted.starts_with("ERROR"), "{wanted}");
    let together = Barrier::new(6);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let mut client = client.another();
            let (together, wanted) = (&together, &wanted);
            scope.spawn(move || {
                together.wait();
                (0..4).for_each(|_| assert_eq!(client.run(sql), *wanted));
            });
        }
    });
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}

/// New keys go to column blocks whatever is to become of those that are there: row by row, these would take more than the
/// server has for transactions.
#[test]
fn changes_by_many_rows_of_a_query_stream_to_column_blocks() {
    let mut client = Client::with(|options| {
        options.memory_limit = 128 << 20;
        options.background = true;
    });
    let folder = tempfile::tempdir().expect("made");
    client.database.spill_to(folder.path());
    client.check(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
         CREATE TABLE w (id INT PRIMARY KEY, s VARCHAR(200))",
        "ok 0\nok 10 (Records: 10  Duplicates: 0  Warnings: 0)\nok 0",
    );
    let many = "INSERT INTO w SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n + 10000 * f.n, REPEAT(MD5(a.n + 10 * b.n), 5)
         FROM d a, d b, d c, d e, d f";
    client.check(many, "ok 100000 (Records: 100000  Duplicates: 0  Warnings: 0)");
    let sums = client.run("SELECT COUNT(*), SUM(id * CRC32(s)) FROM w");
    for (insert, tail) in [
        ("REPLACE INTO", ""),
        ("INSERT IGNORE INTO", ""),
        ("INSERT INTO", "ON DUPLICATE KEY UPDATE copy.s = VALUES(s)"),
    ] {
        client.check("DROP TABLE IF EXISTS copy; CREATE TABLE copy LIKE w", "ok 0\nok 0");
        // Two are there, in the last block, which goes row by row; the last row of the query is one of them.
        let few = client.run("INSERT INTO copy SELECT id, 'old' FROM w WHERE id IN (99998, 99999)");
        assert!(few.starts_with("ok 2"), "{few}");
        let answer = client.run(&format!("{insert} copy SELECT id, s FROM w {tail}"));
        let wanted = match insert {
            "INSERT IGNORE INTO" => "ok 99998 (Records: 100000  Duplicates: 2  Warnings: 2)",
            "REPLACE INTO" => "ok 100002 (Records: 100000  Duplicates: 2  Warnings: 0)",
            // VALUES() is deprecated.
            _ => "ok 100002 (Records: 100000  Duplicates: 2  Warnings: 1)",
        };
        assert_eq!(answer.trim_end(), wanted, "{insert}");
        match insert {
            "INSERT IGNORE INTO" => client.check("SELECT COUNT(*), SUM(s = 'old') FROM copy", "100000|2"),
            _ => assert_eq!(client.run("SELECT COUNT(*), SUM(id * CRC32(s)) FROM copy"), sums, "{insert}"),
        }
    }
    // What the query has for the rows that are there alone.
    client.check("DROP TABLE copy; CREATE TABLE copy LIKE w", "ok 0\nok 0");
    let beside =
        "INSERT INTO copy SELECT id, 'new' FROM w WHERE id < 20000 ON DUPLICATE KEY UPDATE copy.s = w.s";
    client.check(beside, "ok 20000 (Records: 20000  Duplicates: 0  Warnings: 0)");
    client.check(beside, "ok 40000 (Records: 20000  Duplicates: 20000  Warnings: 0)");
    client.check("SELECT COUNT(*) FROM copy JOIN w USING (id) WHERE copy.s = w.s", "20000");
    let memory = client.database.engine().memory().in_use();
    assert_eq!((memory.queries, memory.transactions, memory.work), (0, 0, 0));
}

/// Rows of a few bytes, of which an expression makes many: in the end, on the way, of a constant.
#[test]
fn what_expressions_make_is_bounded() {
    let (mut client, _folder, spill) = spilling();
    filled(&mut client);
    client.check("CREATE TABLE made (id INT PRIMARY KEY, s VARCHAR(20))", "ok 0");
    client.database.engine().freeze_all().expect("frozen");
    client.check("SET query_memory_limit = 16000000", "ok 0");
    for (sql, wanted) in [
        ("SELECT LENGTH(MAX(REPEAT(s, 1000))) FROM t", "300000"),
        ("SELECT SUM(LENGTH(REPEAT(s, 1000))) FROM t", "3000000000"),
        ("SELECT SUM(LENGTH(CONCAT(REPEAT(s, 500), REPEAT(s, id % 500)))) FROM t", "2248500000"),
        ("SELECT COUNT(*) FROM t WHERE REPEAT(s, 1000) LIKE '%b'", "1000"),
        (
            "SELECT COUNT(*), MIN(LENGTH(x)) FROM (SELECT REPEAT('x', 1000000) x, id FROM t) u WHERE id % 3 = 1",
            "3333|1000000",
        ),
        (
            "SELECT COUNT(*) FROM t x JOIN t y ON REPEAT(x.s, 300) = CONCAT(y.s, REPEAT(y.s, 299)) AND x.id = y.id",
            "10000",
        ),
        (
            "INSERT INTO made SELECT id, LEFT(REPEAT(s, 1000), 10) FROM t",
            "ok 10000 (Records: 10000  Duplicates: 0  Warnings: 0)",
        ),
    ] {
        client.check(sql, wanted);
    }
    client.check("SELECT COUNT(*), MIN(s), MAX(s) FROM made", "10000|aaaaaaaaaa|jjjjjjjjjj");
    assert_eq!(files(&spill), 0, "all files are gone");
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}

/// What a client makes its session keep is counted, refused by name, and given back.
#[test]
fn what_sessions_keep_counts() {
    let mut client = Client::with(|options| options.memory_limit = 32 << 20);
    let clients = |client: &Client| client.database.engine().memory().in_use().clients;
    let refused = |client: &mut Client, sql: &dyn Fn(usize) -> String| {
        let answer =
            (0..100).find_map(|n| Some(client.run(&sql(n))).filter(|answer| answer.contains("ERROR")));
        answer.expect("there is an end")
    };
    let answer = refused(&mut client, &|n| format!("SET @a{n} = REPEAT('x', 1000000)"));
    assert!(answer.starts_with("ERROR 1041: Out of memory") && answer.contains("user variables"), "{answer}");
    assert!(clients(&client) > 8 << 20, "{}", clients(&client));
    client.check("SELECT LENGTH(@a0), @b", "1000000|NULL");
    client.runtime.block_on(client.session.reset());
    assert_eq!(clients(&client), 0);
    client.check("USE test; SET @q = CONCAT('SELECT 1 IN (', REPEAT('1,', 50000), '1)')", "ok 0\nok 0");
    let answer = refused(&mut client, &|n| format!("PREPARE p{n} FROM @q"));
    assert!(answer.starts_with("ERROR 1041: Out of memory") && answer.contains("a statement"), "{answer}");
    client.check("DEALLOCATE PREPARE p0", "ok 0");
    client.runtime.block_on(client.session.reset());
    assert_eq!(clients(&client), 0);
    // Statements of no more bytes are not counted themselves.
    let named = |n: usize| format!("s{n}{}", "x".repeat(8_000));
    client.check("BEGIN", "ok 0");
    let answer = (0..100_000).find_map(|n| {
        let answer = client.run(&format!("SAVEPOINT {}", named(n)));
        Some(answer).filter(|answer| answer.contains("ERROR"))
    });
    let answer = answer.expect("there is an end");
    assert!(answer.starts_with("ERROR 1041: Out of memory") && answer.contains("savepoints"), "{answer}");
    let most = clients(&client);
    assert!(most > 8 << 20, "{most}");
    // In the place of the first, which is the last one then.
    client.check(&format!("SAVEPOINT {}", named(0)), "ok 0");
    assert_eq!(clients(&client), most);
    client.check(&format!("ROLLBACK TO {}", named(1)), "ok 0");
    assert_eq!(clients(&client), 0);
    assert!(client.run(&format!("ROLLBACK TO {}", named(0))).starts_with("ERROR 1305"));
    client.check("ROLLBACK", "ok 0");
    // One that is too large to be planned fails before it is, and another one runs.
    let list = |len: usize| format!("SELECT 1 IN (0{})", ",2".repeat(len));
    let answer = client.run(&list(200_000));
    assert!(answer.starts_with("ERROR 1041: Out of memory"), "{answer}");
    client.check(&list(10_000), "0");
    assert_eq!(clients(&client), 0);
}

/// The tree of a document takes many times the bytes of its text, while it is made: it is counted, refused, and given back.
#[test]
fn documents_of_long_texts_count() {
    let mut client = Client::with(|options| options.memory_limit = 64 << 20);
    client.check("CREATE TABLE j (id INT PRIMARY KEY, d JSON)", "ok 0");
    client.check("INSERT INTO j VALUES (0, '[]')", "ok 1");
    let text = |elements: usize| format!("CONCAT('[1', REPEAT(',1', {elements}), ']')");
    let uses = |elements: usize| {
        let text = text(elements);
        [
            format!("SELECT JSON_VALID({text})"),
            format!("SELECT JSON_LENGTH({text})"),
            format!("SELECT JSON_LENGTH(CAST({text} AS JSON))"),
            format!("SELECT JSON_LENGTH(JSON_SET({text}, '$[0]', id)) FROM j WHERE id = 0"),
            format!("INSERT INTO j VALUES (1, {text})"),
            format!("UPDATE j SET d = {text} WHERE id = 0"),
        ]
    };
    for sql in uses(4_000_000) {
        let answer = client.run(&sql);
        assert!(answer.starts_with("ERROR 1041"), "{sql}: {}", &answer[..answer.len().min(100)]);
        assert_eq!(client.database.engine().memory().in_use().queries, 0, "{sql}");
    }
    for sql in uses(100_000) {
        let answer = client.run(&sql);
        assert!(!answer.contains("ERROR"), "{sql}: {}", &answer[..answer.len().min(100)]);
        assert_eq!(client.database.engine().memory().in_use().queries, 0, "{sql}");
    }
    client.check("SELECT id, JSON_LENGTH(d) FROM j ORDER BY id", "0|100001\n1|100001");
}
