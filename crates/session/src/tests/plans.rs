//! Plans that texts and prepared statements share: same answers as without them, and gone when they no longer hold.

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
    assert_eq!(plans(&client), kept + 1, "what was made for the old table is gone");
    client.run("RENAME TABLE other TO another; CREATE TABLE other (id INT PRIMARY KEY, v VARCHAR(5)); INSERT INTO other VALUES (1, 'new')");
    client.check("SELECT v FROM other WHERE id = 1", "new");
    client.run("DROP TABLE t");
    assert!(second.run("SELECT name FROM t WHERE id = 3").contains("1146"));
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
        let candidate = statement.candidate(&params).expect("a query");
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

#[test]
fn explain_tells_the_path() {
    let mut client = shop();
    client.check("EXPLAIN SELECT name FROM t WHERE id = 1", "Point plan: t by PRIMARY, one row");
    client.check("EXPLAIN DELETE FROM t WHERE k = 10", "Point plan: t by k (1 equal)");
    client.check(
        "EXPLAIN SELECT t.k, COUNT(*) FROM t LEFT JOIN t AS u ON u.id = t.k WHERE t.id = 1 GROUP BY t.k",
        "Point plan: t by PRIMARY, one row, then left join t by PRIMARY, one row",
    );
    client.check("EXPLAIN SELECT k, COUNT(*) FROM t GROUP BY k WITH ROLLUP", "Point plan: t, all rows");
    let plan = client.run("EXPLAIN SELECT SUM(k) OVER (ORDER BY k RANGE 1 PRECEDING) FROM t");
    assert!(plan.starts_with("Not a point plan: a RANGE with a distance\n"), "{plan}");
    client.run("SET avocet_point_path = OFF");
    let plan = client.run("EXPLAIN SELECT name FROM t WHERE id = 1");
    assert!(plan.starts_with("Not a point plan: settings"), "{plan}");
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
    client.check("EXPLAIN REPLACE INTO t VALUES (1, 5, 'c')", "Point plan: new rows");
    client.check("REPLACE INTO t VALUES (1, 5, 'c')", "ok 2");
    client.check("REPLACE INTO t VALUES (1, 6, 'b')", "ok 3");
    client.check("REPLACE INTO t VALUES (3, 7, 'd')", "ok 1");
    client.check("SELECT * FROM t ORDER BY id", "1|6|b\n3|7|d");
    let upsert = "INSERT INTO t VALUES (1, 10, 'x'), (4, 4, 'e') ON DUPLICATE KEY UPDATE n = n + VALUES(n)";
    client.check(upsert, "ok 3 (Records: 2  Duplicates: 1  Warnings: 0)");
    client.check("INSERT INTO t VALUES (9, 1, 'd') AS new ON DUPLICATE KEY UPDATE n = new.n + 1", "ok 2");
    client.check("INSERT INTO t VALUES (9, 1, 'd') ON DUPLICATE KEY UPDATE n = 2", "ok 0");
    client.check("SELECT * FROM t ORDER BY id", "1|16|b\n3|2|d\n4|4|e");
}
