//! How many rows a locking statement holds: those that the ranges of an index lead to, and no others. The numbers are those of
//! InnoDB at REPEATABLE READ, but for the record behind a range of a secondary index, which it locks with its gap.

use super::Client;

const ROWS: i32 = 2000;

const TABLE: &str = "CREATE TABLE q (id INT PRIMARY KEY, st INT NOT NULL, a INT NOT NULL, c INT, f TINYINT NOT NULL,
    d DECIMAL(10,2) NOT NULL, s VARCHAR(20) NOT NULL, x INT NOT NULL, y INT NOT NULL, dt DATETIME NOT NULL,
    big BIGINT NOT NULL, v INT NOT NULL, KEY st (st), KEY a (a), KEY c (c), KEY f (f), KEY d (d), KEY s (s), KEY xy (x, y),
    KEY dt (dt), KEY big (big))";

const FILL: &str = "INSERT INTO q WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
    SELECT i, i % 5, i * 7 % 400, IF(i % 50 = 0, NULL, i % 40), i % 100 = 7, (i * 7 % 400) + 0.05,
    CONCAT('s', i * 7 % 400), i % 10, i * 3 % 100, '2024-01-01' + INTERVAL (i * 37 % 2000) MINUTE, 9007199254740992 + i, 0
    FROM n";

/// Each WHERE with the rows that are held.
const WHERES: &[(&str, i32)] = &[
    // Equal values come in the order of the primary key.
    ("st = 2 ORDER BY id LIMIT 1", 1),
    ("st = 2 ORDER BY id LIMIT 3", 3),
    ("st = 2 ORDER BY id DESC LIMIT 3", 3),
    ("st = 2 AND id > 1900", 20),
    ("st = 2 AND id > 1900 ORDER BY id LIMIT 3", 3),
    ("st = 2 AND id BETWEEN 100 AND 120", 4),
    ("f = 0 ORDER BY id LIMIT 2", 2),
    ("x = 5 ORDER BY y, id LIMIT 3", 3),
    ("x = 5 ORDER BY y, v LIMIT 3", 21),
    ("c IS NULL AND id < 200", 3),
    ("c = 5 AND id IN (5, 45, 46)", 2),
    // The wanted rows are met sooner along the order than among all that match.
    ("st IN (1, 3) ORDER BY id LIMIT 1", 1),
    ("st IN (1, 3) ORDER BY dt LIMIT 1", 2),
    ("st = 2 ORDER BY dt LIMIT 1", 5),
    ("st = 2 AND v = 0 ORDER BY dt DESC LIMIT 2", 6),
    // A way along the order that is left for the index holds nothing.
    ("st = 2 AND v <> 0 ORDER BY dt LIMIT 1", 400),
    // Nothing is looked for where a condition on no row does not hold.
    ("1 = 0", 0),
    ("a = 5 AND 1 = 0", 0),
    ("id = 5 AND NULL", 0),
    ("FALSE ORDER BY dt LIMIT 1", 0),
    ("(st = 2 OR a = 5) AND 1 > 2 ORDER BY dt LIMIT 1", 0),
    ("id = 5 AND 1 = 1", 1),
    // What is not equal to something.
    ("f <> 0", 20),
    ("f != 0", 20),
    ("f", 20),
    ("NOT (f = 0)", 20),
    ("f NOT IN (0, 5)", 20),
    ("NOT f AND id < 4", 3),
    ("a NOT BETWEEN 2 AND 397", 20),
    ("NOT (a >= 2 AND a <= 397)", 20),
    ("NOT (a < 399)", 5),
    ("a <> 5 AND a < 7", 30),
    ("a NOT IN (1, 3) AND a < 4", 10),
    ("c IS NOT NULL AND c <> 0 AND c < 2", 50),
    // Several conditions on a column.
    ("a = 5 AND a = 6", 0),
    ("a = 5 AND a > 7", 0),
    ("a IN (5, 6) AND a < 6", 5),
    ("a > 1 AND a > 395", 20),
    ("a < 300 AND a < 3", 15),
    ("id BETWEEN 1 AND 2000 AND id > 1995", 5),
    ("id > 1 AND id > 1995", 5),
    ("x = 5 AND y > 10 AND y < 30 AND y > 20", 20),
    ("(y = 15 OR y = 45) AND x = 5 AND (y = 45 OR y = 75)", 20),
    ("(x, y) >= (5, 15) AND (x, y) < (5, 30)", 40),
    ("a NOT BETWEEN 2 AND 397 AND a NOT BETWEEN 398 AND 399", 10),
    // Other types.
    ("d = '5.05'", 5),
    ("d IN ('5.05', '6.05')", 10),
    ("d BETWEEN '5' AND '7'", 10),
    ("d = 5.05e0", 5),
    ("s LIKE 's5'", 5),
    ("big = '9007199254741000'", 1),
    ("big IN ('9007199254741000', '9007199254741001')", 2),
    ("big > '9007199254742985'", 7),
    ("big BETWEEN '9007199254741000' AND '9007199254741003'", 4),
    ("id = '7'", 1),
    ("id IN ('7', '8')", 2),
    ("id < '4'", 3),
];

fn held(client: &mut Client) -> i32 {
    let free = client.run("SELECT COUNT(*) FROM q FOR UPDATE SKIP LOCKED");
    ROWS - free.trim().parse::<i32>().expect("a count")
}

#[test]
fn rows_outside_of_the_ranges_are_not_locked() {
    let mut one = Client::new();
    let mut two = one.another();
    one.run("SET cte_max_recursion_depth = 5000");
    one.run(TABLE);
    one.run(FILL);
    two.run("SET transaction_isolation = 'READ-COMMITTED'");
    let mut wrong = Vec::new();
    for (condition, expected) in WHERES {
        for statement in [
            format!("SELECT id FROM q WHERE {condition} FOR UPDATE"),
            format!("UPDATE q SET v = 1 WHERE {condition}"),
            format!("DELETE FROM q WHERE {condition}"),
        ] {
            one.run("BEGIN");
            let answer = one.run(&statement);
            assert!(!answer.starts_with("ERROR"), "{statement}: {answer}");
            let held = held(&mut two);
            if held != *expected {
                wrong.push(format!("{statement}: {held} rows instead of {expected}"));
            }
            one.run("ROLLBACK");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_double_near_many_integers_locks_those_alone() {
    let mut one = Client::new();
    let mut two = one.another();
    one.run("SET cte_max_recursion_depth = 5000");
    one.run(TABLE);
    one.run(FILL);
    two.run("SET transaction_isolation = 'READ-COMMITTED'");
    for (condition, most) in
        [("big = 9007199254741000e0", 5), ("big IN (9007199254741000e0, 9007199254741001e0)", 7)]
    {
        one.run("BEGIN");
        one.run(&format!("SELECT id FROM q WHERE {condition} FOR UPDATE"));
        let held = held(&mut two);
        assert!((1..=most).contains(&held), "{condition}: {held} rows");
        one.run("ROLLBACK");
    }
}

#[test]
fn variables_of_the_session_lead_along_indexes() {
    let mut one = Client::new();
    let mut two = one.another();
    one.run("SET cte_max_recursion_depth = 5000");
    one.run(TABLE);
    one.run(FILL);
    one.run("CREATE TABLE w (k INT)");
    one.run("SET @a = 5, @b = 6");
    two.run("SET transaction_isolation = 'READ-COMMITTED'");
    for (statement, expected) in [
        ("SELECT id FROM q WHERE a = @a OR a = @b FOR UPDATE", 10),
        ("SELECT id FROM q WHERE x = 1 AND (y = 3 OR y = @b) FOR UPDATE", 20),
        ("INSERT INTO w SELECT a FROM q WHERE x = 1 AND (y = 3 OR y = 13) FOR UPDATE", 40),
        ("SELECT id FROM q WHERE st = @a - 3 ORDER BY id LIMIT 2 FOR UPDATE", 2),
    ] {
        one.run("BEGIN");
        let answer = one.run(statement);
        assert!(!answer.starts_with("ERROR"), "{statement}: {answer}");
        assert_eq!(held(&mut two), expected, "{statement}");
        one.run("ROLLBACK");
    }
}

/// The index still leads to rows by what they were, for those who see them so.
#[test]
fn rows_that_have_left_a_range_are_not_held() {
    let mut reader = Client::new();
    reader.run("CREATE TABLE moved (id INT PRIMARY KEY, k INT, v INT, KEY (k), KEY kv (v, k))");
    reader.run("INSERT INTO moved VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1)");
    let [mut writer, mut one, mut two] = [(); 3].map(|()| reader.another());
    reader.run("BEGIN");
    reader.check("SELECT COUNT(*) FROM moved WHERE k = 1", "1");
    writer.run("UPDATE moved SET k = k + 100 WHERE id < 3");
    for statement in [
        "SELECT id FROM moved WHERE k = 1 FOR UPDATE",
        "SELECT id FROM moved WHERE k < 3 FOR SHARE",
        "SELECT id FROM moved WHERE k < 3 ORDER BY k DESC LIMIT 1 FOR UPDATE",
        "UPDATE moved SET k = 7 WHERE k IN (1, 2)",
        "DELETE FROM moved WHERE k = 2",
        "UPDATE moved SET k = 7 WHERE v = 1 AND k = 2",
    ] {
        one.run("BEGIN");
        let answer = one.run(statement);
        assert!(answer.is_empty() || answer.starts_with("ok 0"), "{statement}: {answer}");
        two.check("SELECT id FROM moved WHERE id < 3 FOR UPDATE NOWAIT", "1\n2");
        one.run("ROLLBACK");
    }
    reader.check("SELECT COUNT(*) FROM moved WHERE k = 1", "1");
}

/// Workers that each take the first job that nobody has.
#[test]
fn a_queue_by_primary_key_serves_every_worker() {
    let mut clients = vec![Client::new()];
    clients[0].run(
        "CREATE TABLE job (id INT PRIMARY KEY, state INT NOT NULL, due INT NOT NULL, KEY (state), KEY (due))",
    );
    clients[0].run("INSERT INTO job SELECT a.n + 10 * b.n, (a.n + b.n) % 5, 100 - a.n - 10 * b.n FROM
        (SELECT 0 n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
         UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) a,
        (SELECT 0 n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) b");
    clients.extend((0..3).map(|_| clients[0].another()).collect::<Vec<_>>());
    let queues = [
        (
            "SELECT id FROM job WHERE state = 2 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
            ["2", "7", "11", "16"],
        ),
        (
            "SELECT id FROM job WHERE state IN (1, 3) ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED",
            ["38", "35", "33", "30"],
        ),
    ];
    for (take, jobs) in queues {
        let taken: Vec<String> = clients
            .iter_mut()
            .map(|worker| {
                worker.run("BEGIN");
                worker.run(take).trim().to_owned()
            })
            .collect();
        assert_eq!(taken, jobs, "{take}");
        clients.iter_mut().for_each(|worker| drop(worker.run("ROLLBACK")));
    }
}
