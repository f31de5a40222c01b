//! Common table expressions that are read several times are evaluated once.

use super::Client;

fn client() -> Client {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
    );
    client.run("CREATE TABLE t (id INT PRIMARY KEY, g INT, s VARCHAR(40))");
    client.run(
        "INSERT INTO t SELECT a.n + 10 * b.n + 100 * c.n, b.n, REPEAT(CHAR(97 + a.n), 30) FROM d a, d b, d c",
    );
    client
}

/// Queries, and what they give if each common table expression in them is evaluated once.
const ONCE: [(&str, &str); 14] = [
    (
        "WITH r AS (SELECT id, RAND() AS x FROM t) SELECT COUNT(*) FROM r a JOIN r b USING (id) WHERE a.x = b.x",
        "1000",
    ),
    (
        "WITH r AS (SELECT UUID() AS x FROM t) SELECT COUNT(DISTINCT x) FROM (SELECT x FROM r UNION ALL SELECT x FROM r) u",
        "1000",
    ),
    (
        "WITH r AS (SELECT id, RAND() AS x FROM t) SELECT COUNT(*) FROM r WHERE x = (SELECT MAX(x) FROM r)",
        "1",
    ),
    (
        "WITH r AS (SELECT id, RAND() AS x FROM t) SELECT COUNT(*) FROM r WHERE x NOT IN (SELECT x FROM r)",
        "0",
    ),
    (
        "WITH r AS (SELECT id, RAND() AS x FROM t) SELECT COUNT(*) FROM r WHERE EXISTS (SELECT 1 FROM r b WHERE b.x = r.x AND b.id = r.id)",
        "1000",
    ),
    // By way of others.
    (
        "WITH r AS (SELECT id, RAND() AS x FROM t), p AS (SELECT id, x FROM r), q AS (SELECT id, x FROM r) SELECT COUNT(*) FROM p JOIN q USING (id) WHERE p.x = q.x",
        "1000",
    ),
    (
        "WITH r AS (SELECT id, RAND() AS x FROM t), p AS (SELECT id, x FROM r) SELECT COUNT(*) FROM p a JOIN p b USING (id) WHERE a.x = b.x",
        "1000",
    ),
    (
        "WITH r AS (WITH i AS (SELECT id, RAND() AS x FROM t) SELECT id, x FROM i) SELECT COUNT(*) FROM r a JOIN r b USING (id) WHERE a.x = b.x",
        "1000",
    ),
    (
        "SELECT COUNT(*) FROM (WITH r AS (SELECT id, RAND() AS x FROM t) SELECT a.id FROM r a JOIN r b USING (id) WHERE a.x = b.x) u",
        "1000",
    ),
    // Any ten rows, but the same.
    (
        "WITH r AS (SELECT id FROM t ORDER BY RAND() LIMIT 10) SELECT COUNT(*) FROM r a JOIN r b USING (id)",
        "10",
    ),
    (
        "WITH r AS (SELECT id FROM (SELECT id FROM t ORDER BY RAND() LIMIT 10) u) SELECT COUNT(*) FROM r a JOIN r b USING (id)",
        "10",
    ),
    (
        "WITH r AS (SELECT id, ROW_NUMBER() OVER (ORDER BY RAND()) AS n FROM t) SELECT COUNT(*) FROM r a JOIN r b USING (id) WHERE a.n = b.n",
        "1000",
    ),
    (
        "WITH RECURSIVE r AS (SELECT 1 AS n, RAND() AS x UNION ALL SELECT n + 1, RAND() FROM r WHERE n < 50) SELECT COUNT(*) FROM r a JOIN r b USING (n) WHERE a.x = b.x",
        "50",
    ),
    // In each step of a recursion the same.
    (
        "WITH RECURSIVE x AS (SELECT MAX(RAND()) AS x FROM t), r AS (SELECT 1 AS n, x FROM x UNION ALL SELECT n + 1, x.x FROM r, x WHERE n < 5) SELECT COUNT(*), COUNT(DISTINCT x) FROM r",
        "5|1",
    ),
];

#[test]
fn what_is_read_several_times_is_evaluated_once() {
    let mut client = client();
    for (sql, wanted) in ONCE {
        client.check(sql, wanted);
    }
}

/// In a subquery that is answered for each row, a common table expression has that row's values.
#[test]
fn what_depends_on_outer_rows_is_evaluated_for_each() {
    let mut client = client();
    client.check(
        "SELECT n, (WITH c AS (SELECT COUNT(*) AS k FROM t WHERE g = d.n AND id < 155) SELECT SUM(a.k) + SUM(b.k) FROM c a, c b) AS s FROM d WHERE n IN (0, 5, 9) ORDER BY n",
        "0|40\n5|30\n9|20",
    );
    client.check(
        "SELECT n, s FROM d, LATERAL (WITH c AS (SELECT MAX(id) AS k FROM t WHERE g = d.n) SELECT a.k + b.k AS s FROM c a JOIN c b) l WHERE n < 2 ORDER BY n",
        "0|1818\n1|1838",
    );
}

#[test]
fn shared_rows_that_do_not_fit_are_spilled() {
    let (mut client, folder) = (client(), tempfile::tempdir().expect("made"));
    client.database.spill_to(folder.path().join("spill"));
    client.run("CREATE TABLE big (id INT PRIMARY KEY, s VARCHAR(200))");
    client.run(
        "INSERT INTO big SELECT t.id * 100 + a.n + 10 * b.n, CONCAT(t.s, REPEAT('x', 100)) FROM t, d a, d b",
    );
    let sql = "WITH r AS (SELECT id, s, RAND() AS x FROM big) SELECT COUNT(*), SUM(LENGTH(s)) FROM (SELECT s FROM r UNION ALL SELECT s FROM r) u";
    for limit in [0, 8_000_000] {
        client.check(&format!("SET query_memory_limit = {limit}"), "ok 0");
        client.check(sql, "200000|26000000");
    }
    let same = "WITH r AS (SELECT id, s, RAND() AS x FROM big) SELECT COUNT(*) FROM (SELECT id, x FROM r UNION SELECT id, x FROM r) u";
    client.check("SET query_memory_limit = 20000000", "ok 0");
    client.check(same, "100000");
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}
