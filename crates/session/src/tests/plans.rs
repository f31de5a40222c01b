//! Plans that texts and prepared statements share: same answers as without them, and gone when they no longer hold.

use std::collections::HashSet;

use avocet_types::Datum;

use super::Client;

fn shop() -> Client {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, name VARCHAR(20), price DECIMAL(10,2), day DATE, KEY (k), KEY (day));
         INSERT INTO t VALUES (1, 10, 'one', 1.50, '2024-01-01'), (2, 20, '2', 2.25, '2024-01-02'),
                              (3, 20, 'Three', 3.00, NULL)",
    );
    client
}

#[test]
fn texts_that_differ_in_literals_share_a_plan() {
    let mut client = shop();
    let plans = |client: &Client| client.database.0.plans.len();
    client.check("SELECT name FROM t WHERE id = 1", "one");
    let before = plans(&client);
    client.check("SELECT name FROM t WHERE id = 2", "2");
    client.check("/* trace 7 */ SELECT name FROM t WHERE id = 3 -- 8", "Three");
    let id = client.prepare("SELECT name FROM t WHERE id = ?");
    assert_eq!(client.execute(id, &[Datum::Int(1)]), "one\n");
    client.check(
        "PREPARE p FROM 'SELECT name FROM t WHERE id = ?'; SET @a = 2; EXECUTE p USING @a",
        "ok 0 (Statement prepared)\nok 0\n2",
    );
    assert_eq!(plans(&client), before);
    let mut other = client.another();
    other.check("SELECT name FROM t WHERE id = 2", "2");
    assert_eq!(plans(&client), before);
}

#[test]
fn a_change_of_definitions_concerns_the_plans_of_its_table_alone() {
    let mut client = shop();
    client.run("CREATE TABLE other (id INT PRIMARY KEY, v INT); INSERT INTO other VALUES (1, 2)");
    client.check("SELECT name FROM t WHERE id = 1", "one");
    client.check("SELECT v FROM other WHERE id = 1", "2");
    let mut second = client.another();
    second.check("SELECT name FROM t WHERE id = 2", "2");
    let plans = |client: &Client| client.database.0.plans.len();
    let compiled = |client: &Client| {
        let counters = client.database.0.counters.list();
        let (_, count) =
            counters.iter().find(|(name, _)| *name == "Avocet_point_plans_compiled").expect("a counter");
        count.parse::<u64>().expect("a number")
    };
    let (kept, before) = (plans(&client), compiled(&client));
    client.run("ALTER TABLE other ADD COLUMN w INT DEFAULT 7; CREATE TABLE third (id INT)");
    client.check("SELECT name FROM t WHERE id = 3", "Three");
    second.check("SELECT name FROM t WHERE id = 3", "Three");
    assert_eq!(compiled(&client), before, "the plan is still good");
    client.check("SELECT * FROM other WHERE id = 1", "1|2|7");
    client.check("SELECT v FROM other WHERE id = 1", "2");
    assert_eq!(compiled(&client), before + 2);
    assert_eq!(plans(&client), kept, "what was made for the old table is gone");
    client.run("RENAME TABLE other TO another; CREATE TABLE other (id INT PRIMARY KEY, v VARCHAR(5)); INSERT INTO other VALUES (1, 'new')");
    client.check("SELECT v FROM other WHERE id = 1", "new");
    client.run("DROP TABLE t");
    assert!(second.run("SELECT name FROM t WHERE id = 3").contains("1146"));
}

/// How often texts were parsed, queries bound and plans compiled while a statement ran.
fn work_of(client: &mut Client, sql: &str, wanted: &str) -> [u64; 3] {
    let counts = |client: &Client| {
        let counters = client.database.0.counters.list();
        let of = |name| {
            let (_, count) = counters.iter().find(|(is, _)| *is == name).expect("a counter");
            count.parse::<u64>().expect("a number")
        };
        ["Avocet_statements_parsed", "Avocet_queries_bound", "Avocet_point_plans_compiled"].map(of)
    };
    let before = counts(client);
    client.check(sql, wanted);
    let after = counts(client);
    std::array::from_fn(|n| after[n] - before[n])
}

#[test]
fn a_statement_is_parsed_bound_and_compiled_once() {
    let mut client = shop();
    let mut work = |sql: &str, wanted: &str| work_of(&mut client, sql, wanted);
    // With a plan.
    assert_eq!(work("SELECT name FROM t WHERE id = 1", "one"), [1, 1, 1]);
    assert_eq!(work("SELECT name FROM t WHERE id = 2", "2"), [0, 0, 0]);
    assert_eq!(work("SELECT 1 + 2 AS n", "3"), [1, 1, 1]);
    assert_eq!(work("SELECT 1 + 2 AS n", "3"), [0, 0, 0]);
    let done = "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)";
    assert_eq!(work("UPDATE t SET k = 11 WHERE id = 1", done), [1, 0, 1]);
    assert_eq!(work("UPDATE t SET k = 10 WHERE id = 1", done), [0, 0, 0]);
    // Without one: the query is kept as it was bound.
    let sums = "SELECT SUM(k) OVER (ORDER BY k RANGE 1 PRECEDING) AS s FROM t WHERE day > ";
    assert_eq!(work(&format!("{sums}'2024-01-01'"), "20"), [1, 1, 1]);
    assert_eq!(work(&format!("{sums}'2023-12-31'"), "10\n20"), [0, 0, 0]);
    // What is no date is said by what reads the text itself.
    assert_eq!(work(&format!("{sums}'soon'"), "ERROR 1525: Incorrect DATE value: 'soon'"), [1, 1, 0]);
    assert_eq!(work(&format!("{sums}'2024-01-02'"), ""), [0, 0, 0]);
    let offset =
        "SELECT k, SUM(k) OVER (ORDER BY k RANGE 1 PRECEDING) AS s FROM t WHERE id <> 2 ORDER BY k LIMIT ";
    assert_eq!(work(&format!("{offset}1 OFFSET 1"), "20|20"), [1, 1, 1]);
    assert_eq!(work(&format!("{offset}1 OFFSET 2"), ""), [0, 0, 0]);
    // A variable's value is of one run.
    assert_eq!(work("SELECT name, @a FROM t WHERE id = 1", "one|NULL"), [1, 2, 1]);
    assert_eq!(work("SELECT name, @a FROM t WHERE id = 2", "2|NULL"), [1, 1, 0]);
}

#[test]
fn what_is_bound_without_a_plan_ends_with_its_tables() {
    let mut client = shop();
    let sql = "SELECT *, SUM(k) OVER (ORDER BY k RANGE 1 PRECEDING) AS s FROM u WHERE k > 10";
    client.run("CREATE TABLE u (id INT PRIMARY KEY, k INT); INSERT INTO u SELECT id, k FROM t WHERE id < 3");
    client.check(sql, "2|20|20");
    client.check(sql, "2|20|20");
    client.run("ALTER TABLE u ADD COLUMN w INT DEFAULT 7");
    client.check(sql, "2|20|7|20");
    client.run("DROP TABLE u; CREATE TABLE u (k INT, x INT); INSERT INTO u VALUES (30, 1)");
    client.check(sql, "30|1|30");
    let mut other = client.another();
    other.run("BEGIN");
    other.check(sql, "30|1|30");
    client.run("INSERT INTO u VALUES (40, 2)");
    other.check(sql, "30|1|30");
    other.run("COMMIT");
    other.check(sql, "30|1|30\n40|2|40");
    client.run("DROP TABLE u");
    assert!(other.run(sql).contains("1146"));
}

#[test]
fn an_account_needs_its_privileges_each_time() {
    let mut client = shop();
    let sql = "SELECT SUM(k) OVER (ORDER BY k RANGE 1 PRECEDING) AS s FROM test.t WHERE k < 20";
    client.check(sql, "10");
    client.run("CREATE USER reader; GRANT SELECT ON test.t TO reader; CREATE USER nobody");
    client.of("reader").check(sql, "10");
    assert!(client.of("nobody").run(sql).contains("1142"));
    client.run("REVOKE SELECT ON test.t FROM reader");
    assert!(client.of("reader").run(sql).contains("1142"));
}

#[test]
fn a_literals_type_is_part_of_its_statement() {
    let mut client = shop();
    client.check("SELECT id FROM t WHERE name = '2'", "2");
    client.check("SELECT id FROM t WHERE name = 2", "2");
    client.check("SELECT id FROM t WHERE k = 20", "2\n3");
    client.check("SELECT id FROM t WHERE k = '20'", "2\n3");
    client.check("SELECT id FROM t WHERE k = '20x'", "2\n3");
    client.check("SELECT id FROM t WHERE k = 20.5", "");
    client.check("SELECT id FROM t WHERE k = 2e1", "2\n3");
    client.check("SELECT id FROM t WHERE k = -20", "");
    client.check("SELECT id FROM t WHERE k = 18446744073709551615", "");
    client.check("SELECT id FROM t WHERE price = 2.25", "2");
    client.check("SELECT id FROM t WHERE price = 2.2500", "2");
    client.check("SELECT id FROM t WHERE price IN (1.5, 3)", "1\n3");
    client.check(
        "UPDATE t SET price = price + 1 WHERE id = 1",
        "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)",
    );
    client.check(
        "UPDATE t SET price = price + 0.255 WHERE id = 1",
        "ok 1 (Rows matched: 1  Changed: 1  Warnings: 1)",
    );
    client.check("SELECT price FROM t WHERE id = 1", "2.76");
}

#[test]
fn literals_that_mean_more_than_a_value_are_not_shared() {
    let mut client = shop();
    client.check("SELECT id, k FROM t ORDER BY 1 DESC LIMIT 1", "3|20");
    client.check("SELECT id, k FROM t ORDER BY 2 LIMIT 1", "1|10");
    client.check("SELECT id FROM t WHERE name LIKE 'o%'", "1");
    client.check("SELECT id FROM t WHERE name LIKE 'T%'", "3");
    client.check("SELECT id FROM t ORDER BY id LIMIT 2", "1\n2");
    client.check("SELECT id FROM t ORDER BY id LIMIT 1", "1");
    client.check("SELECT id FROM t ORDER BY id LIMIT 1 OFFSET 1", "2");
    client.check("SELECT id FROM t ORDER BY id LIMIT 1 OFFSET 2", "3");
    client.check("SELECT ROUND(price, 1) FROM t WHERE id = 2", "2.3");
    client.check("SELECT ROUND(price, 0) FROM t WHERE id = 2", "2");
}

#[test]
fn a_limit_that_is_a_parameter_is_planned_as_what_it_is() {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
    );
    client.run("CREATE TABLE p (id INT PRIMARY KEY, s INT, v INT, KEY (s), KEY (v))");
    client.run("INSERT INTO p SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n, a.n, 0 - a.n - 10 * b.n - 100 * c.n - 1000 * e.n FROM d a, d b, d c, d e");
    let sql = "SELECT s FROM p ORDER BY s LIMIT ";
    let id = client.prepare("SELECT s FROM p ORDER BY s LIMIT ?");
    let all = client.prepare("SELECT s FROM p WHERE v < ? ORDER BY s LIMIT ? OFFSET ?");
    let mut ways = Vec::new();
    for limit in [3, 5, 900, 3, 700, 1_000_000] {
        let params = [Datum::Int(limit)];
        let wanted = client.run(&format!("{sql}{limit}"));
        assert_eq!(client.execute(id, &params), wanted, "{limit} rows");
        assert_eq!(client.execute(all, &[Datum::Int(10), Datum::Int(limit), Datum::Int(0)]), wanted);
        let statement = client.session.prepared[&id].clone();
        // As the session has it: limits are settled before anything is planned.
        let settled = [Datum::UInt(limit.unsigned_abs())];
        let candidate = statement.candidate(&settled).expect("a query");
        let (hash, plan) = client.session.take_plan(&candidate).expect("it was made");
        let way = plan.plan.as_ref().map(|plan| (plan.describe(), plan.is_measured()));
        ways.push(way.map_err(ToString::to_string));
        client.session.give_plan(hash, plan);
    }
    assert_eq!(ways[0], ways[3]);
    assert_ne!(ways[0], ways[5], "all rows are not looked up one by one");
}

#[test]
fn dates_are_judged_for_each_literal() {
    let mut client = shop();
    client.check("SELECT id FROM t WHERE day = '2024-01-01'", "1");
    client.check("SELECT id FROM t WHERE day = '2024-01-02'", "2");
    client.check("SELECT id FROM t WHERE day = 'soon'", "ERROR 1525: Incorrect DATE value: 'soon'");
    client.check("SELECT id FROM t WHERE day > '2024-01-01'", "2");
}

#[test]
fn plans_end_with_what_they_were_made_for() {
    let mut client = shop();
    client.check("SELECT * FROM t WHERE id = 1", "1|10|one|1.50|2024-01-01");
    client.run("DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY, name CHAR(5))");
    client.check("SELECT * FROM t WHERE id = 1", "");
    client.check("INSERT INTO t VALUES (1, 'new')", "ok 1");
    client.check("SELECT * FROM t WHERE id = 1", "1|new");
    client.run(
        "CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY); INSERT INTO other.t VALUES (1)",
    );
    client.run("USE other");
    client.check("SELECT * FROM t WHERE id = 1", "1");
    client.run("USE test");
    client.check("SELECT id FROM t WHERE name = \"new\"", "1");
    client.run("SET sql_mode = 'ANSI_QUOTES'");
    let unknown = client.run("SELECT id FROM t WHERE name = \"new\"");
    assert!(unknown.starts_with("ERROR 1054: Unknown column 'new'"), "{unknown}");
    client.run("SET sql_mode = DEFAULT; SET time_zone = '+01:00'");
    client.check("SELECT id FROM t WHERE name = \"new\"", "1");
}

/// What EXPLAIN notes of a statement.
fn path(client: &mut Client, sql: &str) -> String {
    client.run(&format!("EXPLAIN {sql}"));
    client.run("SHOW WARNINGS").trim_end().replacen("Note|1003|", "", 1)
}

#[test]
fn explain_tells_the_path() {
    let mut client = shop();
    let mut check = |sql: &str, wanted: &str| assert_eq!(path(&mut client, sql), wanted, "{sql}");
    check("SELECT name FROM t WHERE id = 1", "Point plan: t by PRIMARY, one row");
    check("DELETE FROM t WHERE k = 10", "Point plan: t by k (1 equal)");
    check(
        "SELECT t.k, COUNT(*) FROM t LEFT JOIN t AS u ON u.id = t.k WHERE t.id = 1 GROUP BY t.k",
        "Point plan: t by PRIMARY, one row, then left join t by PRIMARY, one row",
    );
    check("SELECT k, COUNT(*) FROM t GROUP BY k WITH ROLLUP", "Point plan: t, all rows");
    check(
        "SELECT SUM(k) OVER (ORDER BY k RANGE 1 PRECEDING) FROM t",
        "Not a point plan: a RANGE with a distance",
    );
    client.run("SET avocet_point_path = OFF");
    let noted = path(&mut client, "SELECT name FROM t WHERE id = 1");
    assert!(noted.starts_with("Not a point plan: settings"), "{noted}");
}

#[test]
fn explain_has_three_forms() {
    let mut client = shop();
    client.check(
        "EXPLAIN SELECT name FROM t WHERE id = 1",
        "1|SIMPLE|t|NULL|const|PRIMARY|PRIMARY|4|const|1|100|Using point plan",
    );
    let tree = client.run("EXPLAIN FORMAT=TREE SELECT name FROM t WHERE k = 10");
    let lines =
        ["-> Point plan  (cost=0.52 rows=1.73)", "    -> Index lookup on t using k  (cost=0.52 rows=1.73)"];
    assert_eq!(tree.trim_end(), lines.join("\n"));
    client.check(
        "EXPLAIN DELETE FROM t WHERE k = 10",
        "1|DELETE|t|NULL|ref|k|k|5|const|1|100|Using point plan",
    );
    client.run("SET avocet_point_path = OFF");
    let query =
        "SELECT a.k, COUNT(*) FROM t a JOIN t b ON a.k = b.k WHERE a.price > 2 GROUP BY a.k ORDER BY 2";
    let rows = client.run(&format!("EXPLAIN {query}"));
    let tables: Vec<_> = rows.lines().map(|line| line.split('|').nth(2).unwrap_or_default()).collect();
    assert_eq!(tables.len(), 2, "{rows}");
    assert!(rows.contains("Using where") && rows.contains("Using temporary; Using filesort"), "{rows}");
    let tree = client.run(&format!("EXPLAIN FORMAT=TREE {query}"));
    assert!(tree.contains("Inner hash join (") && tree.contains("-> Filter: (a.price > "), "{tree}");
    let json = client.run(&format!("EXPLAIN FORMAT=JSON {query}"));
    assert!(json.starts_with("{") && json.contains("\"access_type\": \"ALL\""), "{json}");
    assert_eq!(json.matches('{').count(), json.matches('}').count(), "{json}");
}

#[test]
fn explain_analyze_counts_what_nodes_do() {
    let mut client = shop();
    let tree = client.run("EXPLAIN ANALYZE SELECT name FROM t WHERE k = 20");
    assert!(tree.starts_with("-> Point plan") && tree.contains(" rows=2 loops=1)"), "{tree}");
    let mut has = |sql: &str, parts: &[(&str, &str)]| {
        let tree = client.run(&format!("EXPLAIN ANALYZE {sql}"));
        for (what, actual) in parts {
            let found = tree.lines().any(|line| line.contains(what) && line.contains(actual));
            assert!(found, "{sql}: {what} with {actual}\n{tree}");
        }
    };
    has(
        "SELECT a.id, b.id FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.id >= 1 ORDER BY a.name",
        &[
            ("Sort", " rows=2 loops=1 memory="),
            ("Nested loop inner join", " rows=2 loops=1)"),
            ("Index range scan on t using PRIMARY", " rows=3 loops=1)"),
            ("Single-row index lookup on t using PRIMARY", " rows=0.67 loops=3)"),
        ],
    );
    has(
        "SELECT a.id, (SELECT COUNT(*) FROM t b WHERE b.k = a.k AND b.name <> '') FROM t a WHERE a.id < 3",
        &[
            ("Index range scan on t using PRIMARY", " rows=2 loops=1)"),
            ("Subquery in the place of a table", " rows=1 loops=2)"),
            ("Aggregate", " rows=1 loops=2)"),
            ("Index lookup on t using k", " loops=2)"),
        ],
    );
    has(
        "SELECT a.id FROM t a LEFT JOIN t b ON b.id = a.id + 10 WHERE a.id <= 2 LIMIT 1",
        &[("Limit", " rows=1 loops=1)"), ("Nested loop left join", " rows=1 loops=1)")],
    );
    client.run("SET avocet_point_path = OFF");
    let sql = "EXPLAIN ANALYZE SELECT a.k FROM t a JOIN t b ON a.k = b.k WHERE a.id > 1 ORDER BY 1";
    let tree = client.run(sql);
    let line = |what: &str| tree.lines().find(|line| line.contains(what)).unwrap_or_default();
    assert!(line("Inner hash join").contains(" rows=4 loops=1"), "{tree}");
    assert!(line("Filter: (a.id > 1)").contains(" rows=2 loops=1"), "{tree}");
    // The rows are sorted below the join, which keeps the order of its probe side.
    assert!(line("Sort").contains(" rows=4 loops=1"), "{tree}");
    assert!(line("Inner hash join").contains(" memory="), "{tree}");
    let applied =
        client.run("EXPLAIN ANALYZE SELECT id, k IN (SELECT u.id * 10 FROM t u WHERE u.id <= t.id) FROM t");
    assert!(applied.contains("Subquery (dependent)") && applied.contains("loops=3"), "{applied}");
    assert!(client.run("EXPLAIN ANALYZE DELETE FROM t").starts_with("ERROR 1235"));
}

#[test]
fn nulls_of_a_client_take_the_same_path() {
    let mut client = shop();
    let id = client.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)");
    let row = [Datum::Int(9), Datum::Null, Datum::Null, Datum::Null, Datum::Null];
    assert_eq!(client.execute(id, &row), "ok 1\n");
    client.check("SELECT * FROM t WHERE id = 9", "9|NULL|NULL|NULL|NULL");
}

#[test]
fn rows_whose_key_is_there_are_replaced_or_updated() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, n INT, name CHAR(5), UNIQUE (name)); INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')");
    assert_eq!(path(&mut client, "REPLACE INTO t VALUES (1, 5, 'c')"), "Point plan: new rows");
    client.check("REPLACE INTO t VALUES (1, 5, 'c')", "ok 2");
    client.check("REPLACE INTO t VALUES (1, 6, 'b')", "ok 3");
    client.check("REPLACE INTO t VALUES (3, 7, 'd')", "ok 1");
    client.check("SELECT * FROM t ORDER BY id", "1|6|b\n3|7|d");
    let upsert = "INSERT INTO t VALUES (1, 10, 'x'), (4, 4, 'e') ON DUPLICATE KEY UPDATE n = n + VALUES(n)";
    client.check(upsert, "ok 3 (Records: 2  Duplicates: 1  Warnings: 1)");
    client.check("INSERT INTO t VALUES (9, 1, 'd') AS new ON DUPLICATE KEY UPDATE n = new.n + 1", "ok 2");
    client.check("INSERT INTO t VALUES (9, 1, 'd') ON DUPLICATE KEY UPDATE n = 2", "ok 0");
    client.check("SELECT * FROM t ORDER BY id", "1|16|b\n3|2|d\n4|4|e");
}

/// Several decimals equal one double: an index on them gives no order of the column behind.
#[test]
fn an_equality_of_doubles_leaves_the_order_to_be_sorted() {
    let mut client = Client::new();
    client.check("CREATE TABLE o (id INT PRIMARY KEY, v DECIMAL(40, 20), x INT, KEY (v, x))", "ok 0");
    let rows = "INSERT INTO o VALUES (1, 0.10000000000000000001, 2), (2, 0.10000000000000000002, 1), (3, 0.1, 3), (4, 7, 0)";
    client.check(rows, "ok 4 (Records: 4  Duplicates: 0  Warnings: 0)");
    client.check("SELECT x FROM o FORCE INDEX (v) WHERE v = 0.1e0 ORDER BY x", "1\n2\n3");
    client.check("SELECT x FROM o FORCE INDEX (v) WHERE v = 0.1e0 ORDER BY x DESC LIMIT 2", "3\n2");
}

/// As doubles, several integers are equal: the next part of an index is not in order behind them.
#[test]
fn integers_that_equal_a_double_are_sorted() {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT, b INT, c INT, KEY (a, b), KEY (c, b));
         INSERT INTO t VALUES (1, 9007199254740992, 9, 7), (2, 9007199254740993, 1, 7), (3, 9007199254740993, 5, 7);
         CREATE TABLE d (id INT PRIMARY KEY, x DOUBLE); INSERT INTO d VALUES (1, 9007199254740992), (2, 7)",
    );
    client.run("SET @x = 9007199254740992e0");
    client.run("PREPARE p FROM 'SELECT b FROM t WHERE a = ? ORDER BY b'");
    client.check("EXECUTE p USING @x", "1\n5\n9");
    client.run("PREPARE p FROM 'SELECT b FROM t WHERE a = ? ORDER BY b DESC LIMIT 2'");
    client.check("EXECUTE p USING @x", "9\n5");
    client.check("SELECT b FROM t WHERE a = 9007199254740992e0 ORDER BY b", "1\n5\n9");
    client.check("SELECT b FROM t WHERE a = (SELECT x FROM d WHERE id = 1) ORDER BY b", "1\n5\n9");
    client.check("SELECT t.b FROM d STRAIGHT_JOIN t ON t.a = d.x WHERE d.id = 1 ORDER BY t.b", "1\n5\n9");
    client.check("SELECT b FROM t WHERE c = (SELECT x FROM d WHERE id = 2) ORDER BY b", "1\n5\n9");
}

/// A join that looks at its first table in several turns passes over what it had before; what is random would have others.
#[test]
fn a_limit_of_random_rows_has_none_twice() {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT); CREATE TABLE u (id INT PRIMARY KEY, v INT);
         INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
             SELECT i, i FROM n;
         INSERT INTO u SELECT id, k FROM t WHERE id % 3 = 0",
    );
    for _ in 0..50 {
        let answer = client.run(
            "SELECT t.id FROM t JOIN u ON u.id = t.k WHERE t.id > 10 AND RAND() + t.k * 0 < 0.5 ORDER BY t.id LIMIT 100",
        );
        let rows: HashSet<&str> = answer.lines().collect();
        assert_eq!(rows.len(), 100, "{answer}");
    }
}
