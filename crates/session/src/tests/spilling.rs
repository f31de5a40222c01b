//! Queries of all kinds that do not fit into their memory limit: they spill and are right, or fail by name. All memory is given back.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Client;

/// A client whose queries spill, with 100,000 rows: 13 MB of texts, each of which is there three times, and ten groups.
fn client() -> (Client, tempfile::TempDir, PathBuf) {
    let mut client = Client::new();
    let folder = tempfile::tempdir().expect("made");
    let spill = folder.path().join("spill");
    client.database.spill_to(&spill);
    client.run(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
    );
    client.run("CREATE TABLE t (id INT PRIMARY KEY, g INT, c VARCHAR(20), s VARCHAR(200), v INT, x DOUBLE)");
    let rows = "INSERT INTO t SELECT id, NULLIF(id % 10, 7), CONCAT(IF(id % 2, 'g', 'G'), id % 5), CONCAT(MD5(id DIV 3), REPEAT('x', 98)), id % 777, id / 8
        FROM (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n + 10000 * f.n AS id FROM d a, d b, d c, d e, d f) r";
    let answer = client.run(rows);
    assert!(answer.starts_with("ok 100000"), "{answer}");
    (client, folder, spill)
}

fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("listed").path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

/// Nothing is left of a query, at once.
fn check_given_back(client: &Client, spill: &Path, sql: &str) {
    // Tasks end on their own threads.
    let soon = Instant::now() + Duration::from_secs(2);
    let left = || (files(spill), client.database.engine().memory().in_use().queries);
    while left() != (0, 0) && Instant::now() < soon {
        std::thread::yield_now();
    }
    assert_eq!(left(), (0, 0), "files and bytes of {sql}");
}

/// Runs queries with a limit and without: the answers are the same.
fn check_same(queries: &[&str], limit: usize) {
    let (mut client, _folder, spill) = client();
    let mut wrong = Vec::new();
    for sql in queries {
        client.check("SET query_memory_limit = 0", "ok 0");
        let wanted = client.run(sql);
        assert!(!wanted.contains("ERROR"), "{sql}: {}", &wanted[..wanted.len().min(300)]);
        client.check(&format!("SET query_memory_limit = {limit}"), "ok 0");
        let got = client.run(sql);
        if got != wanted {
            let differs = got.lines().zip(wanted.lines()).find(|(got, wanted)| got != wanted);
            let shown = got.find("ERROR").map_or(&got[..got.len().min(300)], |at| &got[at..]);
            wrong.push(format!("{sql}\n  got {shown}\n  first difference {differs:?}"));
        }
        check_given_back(&client, &spill, sql);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), queries.len(), wrong.join("\n"));
}

#[test]
fn distinct_aggregates() {
    check_same(
        &[
            "SELECT COUNT(DISTINCT s) FROM t",
            "SELECT COUNT(DISTINCT s), COUNT(*), SUM(v) FROM t",
            "SELECT COUNT(DISTINCT s), COUNT(DISTINCT id), SUM(DISTINCT v), AVG(DISTINCT x), COUNT(*) FROM t",
            "SELECT g, COUNT(DISTINCT s), SUM(DISTINCT id), AVG(DISTINCT id), MIN(s), COUNT(*) FROM t GROUP BY g ORDER BY g",
            "SELECT LOWER(c), COUNT(DISTINCT s, id), COUNT(DISTINCT id), LOWER(MAX(c)) FROM t GROUP BY c ORDER BY c",
            "SELECT g, COUNT(DISTINCT s) FROM t GROUP BY g WITH ROLLUP",
            "SELECT g, c, GROUPING(c), COUNT(DISTINCT s), SUM(DISTINCT id), COUNT(*) FROM t GROUP BY g, c WITH ROLLUP ORDER BY g, c, GROUPING(g), GROUPING(c)",
            "SELECT id DIV 3 AS k, COUNT(DISTINCT s), COUNT(DISTINCT v), SUM(v) FROM t GROUP BY k ORDER BY k",
            "SELECT g, COUNT(DISTINCT s) AS n FROM t WHERE id > 50 GROUP BY g HAVING n > 5 ORDER BY n DESC, g LIMIT 3",
            "SELECT COUNT(DISTINCT s), SUM(DISTINCT v) FROM t WHERE id < 0",
            "SELECT g, COUNT(DISTINCT s), SUM(DISTINCT v) FROM t WHERE id < 0 GROUP BY g WITH ROLLUP",
        ],
        6_000_000,
    );
}

#[test]
fn group_concat() {
    check_same(
        &[
            "SELECT LENGTH(GROUP_CONCAT(s)) FROM t",
            "SELECT GROUP_CONCAT(s ORDER BY s DESC) FROM t",
            "SELECT g, GROUP_CONCAT(DISTINCT s ORDER BY s SEPARATOR '; ') FROM t GROUP BY g ORDER BY g",
            "SELECT GROUP_CONCAT(DISTINCT v ORDER BY v DESC), GROUP_CONCAT(id ORDER BY id DESC), COUNT(*) FROM t",
            "SELECT g, GROUP_CONCAT(DISTINCT id ORDER BY -id), COUNT(DISTINCT s), COUNT(*) FROM t GROUP BY g ORDER BY g",
            "SELECT g, GROUP_CONCAT(DISTINCT id ORDER BY -id) FROM t GROUP BY g WITH ROLLUP",
            "SELECT id DIV 10 AS k, GROUP_CONCAT(s ORDER BY id) FROM t GROUP BY k ORDER BY k",
        ],
        6_000_000,
    );
}

#[test]
fn pages_far_behind() {
    check_same(
        &[
            "SELECT id, s FROM t ORDER BY s DESC, id LIMIT 99000, 3",
            "SELECT id FROM t ORDER BY v, id LIMIT 99990, 5",
            "SELECT s, MAX(id) FROM t GROUP BY s ORDER BY MAX(id) DESC LIMIT 33000, 3",
            "SELECT DISTINCT s FROM t ORDER BY s LIMIT 33000, 3",
            "SELECT * FROM (SELECT id, s FROM t ORDER BY s, id LIMIT 90000, 8000) u ORDER BY id LIMIT 5",
        ],
        3_000_000,
    );
}

#[test]
fn window_functions() {
    check_same(
        &[
            "SELECT id, SUM(v) OVER () FROM t ORDER BY id",
            "SELECT id, s, SUM(v) OVER (PARTITION BY g), COUNT(*) OVER (PARTITION BY g), MAX(s) OVER (PARTITION BY g) FROM t ORDER BY id",
            "SELECT id, s, AVG(v) OVER (PARTITION BY s), LAST_VALUE(v) OVER (PARTITION BY s ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t ORDER BY id",
            "SELECT id, s, ROW_NUMBER() OVER w, SUM(v) OVER (PARTITION BY g) FROM t WINDOW w AS (PARTITION BY g ORDER BY id) ORDER BY id",
            "SELECT id, s, PERCENT_RANK() OVER w, CUME_DIST() OVER w, NTILE(7) OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY v, id) ORDER BY id",
            "SELECT id, s, LAST_VALUE(id) OVER w, FIRST_VALUE(s) OVER w, SUM(v) OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY id",
            "SELECT id, s, SUM(v) OVER w, FIRST_VALUE(id) OVER w, LAST_VALUE(id) OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY id",
            "SELECT id, s, NTH_VALUE(id, 3) OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY id",
            "SELECT id, s, LAG(id, 3) OVER w, LEAD(s, 2) OVER w, RANK() OVER w FROM t WINDOW w AS (ORDER BY v, id) ORDER BY id",
        ],
        6_000_000,
    );
}

#[test]
fn set_operations_and_joins() {
    check_same(
        &[
            "SELECT COUNT(*) FROM (SELECT id, s FROM t UNION SELECT id + 50000, s FROM t) u",
            "SELECT COUNT(*), SUM(id) FROM (SELECT id, s FROM t INTERSECT SELECT id, s FROM t WHERE id % 3 = 1) u",
            "SELECT COUNT(*), SUM(id) FROM (SELECT id, s FROM t EXCEPT SELECT id, s FROM t WHERE id % 3 = 1) u",
            "SELECT COUNT(*), SUM(v) FROM (SELECT v, s FROM t INTERSECT ALL SELECT v, s FROM t WHERE id % 3 <> 1) u",
            "SELECT COUNT(*), SUM(v) FROM (SELECT v, s FROM t EXCEPT ALL SELECT v, s FROM t WHERE id % 3 <> 1) u",
            "SELECT COUNT(*), SUM(x.id) FROM t x JOIN t y ON x.s = y.s AND x.id <> y.id",
            "SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.s = y.s AND y.id > x.id ORDER BY x.id, y.id LIMIT 99000, 3",
            "SELECT COUNT(*), SUM(x.id), MIN(x.s), MAX(y.s) FROM t x JOIN (SELECT * FROM t WHERE id % 25000 = 1) y ON x.id < y.id AND x.s < y.s",
            "SELECT COUNT(*), SUM(x.id), MIN(x.s), MAX(y.s) FROM (SELECT * FROM t WHERE id % 25000 = 1) y LEFT JOIN t x ON x.id < y.id AND x.s < y.s",
            "SELECT COUNT(*), SUM(x.id), MIN(x.s), MAX(y.s) FROM t x, (SELECT * FROM t WHERE id % 25000 = 1) y",
            "SELECT COUNT(*) FROM t x WHERE s NOT IN (SELECT s FROM t y WHERE y.id % 2 = 1)",
            "SELECT COUNT(*), SUM(id) FROM t x WHERE IF(id % 100 = 0, NULL, s) NOT IN (SELECT s FROM t y WHERE y.id % 5 > 1 AND y.id < 90000)",
            "SELECT COUNT(*), SUM(id) FROM t x WHERE s NOT IN (SELECT IF(id = 77, NULL, s) FROM t y WHERE y.id < 90000)",
            "SELECT COUNT(*), SUM(id) FROM t x WHERE IF(id % 100 = 0, NULL, s) NOT IN (SELECT s FROM t y WHERE y.s = 'a')",
        ],
        8_000_000,
    );
}

/// What an attempt that failed has warned of is forgotten.
#[test]
fn warnings_are_those_of_the_attempt_that_counts() {
    let (mut client, _folder, _spill) = client();
    for limit in [0, 6_000_000] {
        client.check(&format!("SET query_memory_limit = {limit}"), "ok 0");
        client.check("SELECT COUNT(DISTINCT s, id), COUNT(id / (id % 400)) FROM t", "100000|99750");
        client.check("SHOW COUNT(*) WARNINGS", "250");
    }
}

/// Nested loops that spill read one side a second time.
#[test]
fn joins_without_equal_keys() {
    let sides = "(SELECT id, s FROM t WHERE id % 50 = 0) x JOIN (SELECT id, s FROM t WHERE id % 50 = 1) y";
    let queries = [
        format!("SELECT COUNT(*), SUM(x.id), SUM(y.id) FROM {sides} ON x.id < y.id AND x.s < y.s"),
        format!(
            "SELECT COUNT(*), SUM(x.id), SUM(y.id) FROM {} ON x.id < y.id AND x.s < y.s",
            sides.replace("JOIN", "LEFT JOIN")
        ),
        format!("SELECT COUNT(*), SUM(x.id), MIN(x.s), MAX(y.s) FROM {sides}"),
    ];
    check_same(&queries.each_ref().map(String::as_str), 300_000);
}

/// A hundred thousand steps, each with a row of its own.
#[test]
fn long_recursions() {
    let (mut client, _folder, spill) = client();
    client.check("SET cte_max_recursion_depth = 100000000, query_memory_limit = 3000000", "ok 0");
    let up_to = |rest: &str| {
        format!("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 100000) {rest}")
    };
    for (rest, wanted) in [
        ("SELECT COUNT(*), SUM(n) FROM r", "100000|5000050000"),
        ("SELECT n FROM r ORDER BY n DESC LIMIT 99998, 3", "2\n1"),
        ("SELECT COUNT(DISTINCT a.n) FROM r a JOIN r b ON a.n = b.n + 1", "99999"),
    ] {
        client.check(&up_to(rest), wanted);
        check_given_back(&client, &spill, rest);
    }
    // A LIMIT ends the recursion with its last row, and not a step later.
    client.check("SET cte_max_recursion_depth = 1000", "ok 0");
    let endless = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r LIMIT 1000) SELECT COUNT(*), MAX(n) FROM r";
    client.check(endless, "1000|1000");
    client.check("SET cte_max_recursion_depth = 998", "ok 0");
    assert!(client.run(endless).starts_with("ERROR 3636"));
}

#[test]
fn sorts_of_recursions_are_killed_at_once() {
    let (mut client, _folder, spill) = client();
    client.check("SET cte_max_recursion_depth = 100000000, max_execution_time = 300", "ok 0");
    let sql = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5000000) SELECT n FROM r ORDER BY -n";
    let answer = client.run(sql);
    assert!(answer.starts_with("ERROR 3024"), "{answer}");
    check_given_back(&client, &spill, sql);
}

/// A text that a window function shows for each row has its bytes each time, and a document grows: few are there at a time.
#[test]
fn texts_that_windows_show_again() {
    let (mut client, _folder, spill) = client();
    client.run("CREATE TABLE w (id INT PRIMARY KEY, s LONGTEXT)");
    client.run("INSERT INTO w SELECT id, IF(id = 0, REPEAT('z', 1000000), id) FROM t WHERE id < 1000");
    client.check("SET query_memory_limit = 40000000", "ok 0");
    for (sql, wanted) in [
        ("SELECT SUM(LENGTH(f)) FROM (SELECT FIRST_VALUE(s) OVER (ORDER BY id) AS f FROM w) u", "1000000000"),
        ("SELECT SUM(LENGTH(f)) FROM (SELECT MAX(s) OVER (ORDER BY id) AS f FROM w) u", "1000000000"),
        ("SELECT SUM(LENGTH(f)) FROM (SELECT LAG(s) OVER (ORDER BY id) AS f FROM w) u", "1002886"),
        (
            "SELECT SUM(JSON_LENGTH(j)) FROM (SELECT JSON_ARRAYAGG(v) OVER (ORDER BY id) AS j FROM t WHERE id < 3000) u",
            "4501500",
        ),
    ] {
        client.check(sql, wanted);
        check_given_back(&client, &spill, sql);
    }
}

/// Frames that end with the partition are folded in one go.
#[test]
fn folds_of_large_frames_are_killed_at_once() {
    let (mut client, _folder, spill) = client();
    client.check("SET max_execution_time = 300", "ok 0");
    let sql = "SELECT SUM(y) FROM (SELECT SUM(x) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS y FROM t) u";
    let answer = client.run(sql);
    assert!(answer.starts_with("ERROR 3024"), "{answer}");
    check_given_back(&client, &spill, sql);
}

/// What has to be in memory as a whole.
#[test]
fn what_can_not_spill_fails_by_name() {
    let (mut client, _folder, spill) = client();
    client.check("SET query_memory_limit = 3000000, group_concat_max_len = 100000000", "ok 0");
    for sql in [
        "SELECT LENGTH(GROUP_CONCAT(s)) FROM t",
        "WITH RECURSIVE r AS (SELECT 1 AS n, 0 AS m UNION ALL SELECT r.n + 1, d.n FROM r, d WHERE r.n < 8) SELECT COUNT(*), SUM(n) FROM r",
        "WITH RECURSIVE r AS (SELECT 1 AS n, 0 AS m UNION DISTINCT SELECT r.n + 1, r.m * 10 + d.n FROM r, d WHERE r.n < 8) SELECT COUNT(*), SUM(n) FROM r",
        // The one side of the join is the step before.
        "WITH RECURSIVE r AS (SELECT 1 AS n, s FROM t WHERE id < 6000 UNION ALL SELECT r.n + 1, r.s FROM r, d WHERE r.n < 2) SELECT COUNT(*), SUM(n) FROM r",
        "WITH RECURSIVE r AS (SELECT 1 AS n, s FROM t WHERE id < 6000 UNION ALL SELECT r.n + 1, r.s FROM r JOIN t ON r.s < t.s WHERE r.n < 2) SELECT COUNT(*), SUM(n) FROM r",
        "SELECT SUM(LENGTH(l)) FROM (SELECT LEAD(s, 90000) OVER (ORDER BY id) AS l FROM t) u",
        "SELECT MAX(m) FROM (SELECT MIN(s) OVER (ORDER BY id ROWS BETWEEN 90000 PRECEDING AND CURRENT ROW) AS m FROM t) u",
        "SELECT MAX(LENGTH(j)) FROM (SELECT JSON_ARRAYAGG(s) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS j FROM t WHERE id < 3000) u",
        "SELECT COUNT(*) FROM t WHERE s >= ALL (SELECT s FROM t)",
        "SELECT COUNT(*) FROM t WHERE s NOT IN (SELECT IF(RAND() < 2, s, NULL) FROM t)",
    ] {
        let answer = client.run(sql);
        let by_name = answer.starts_with("ERROR 1041: ") && answer.contains("query_memory_limit");
        assert!(by_name, "{sql}: {}", &answer[..answer.len().min(300)]);
        check_given_back(&client, &spill, sql);
    }
    client.check("SELECT COUNT(*) FROM t", "100000");
}
