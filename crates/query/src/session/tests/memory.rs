//! Memory limits: a query over its limit fails, alone; rows that do not fit are refused.

use super::Client;

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

#[test]
fn rows_beyond_the_limit_are_refused_and_deletes_make_room() {
    let mut client = Client::with(|options| options.memory_limit = 4 << 20);
    client.check("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(4000))", "ok 0");
    let mut refused = None;
    for id in 0..5000 {
        let answer = client.run(&format!("INSERT INTO t VALUES ({id}, REPEAT('x', 3000))"));
        if answer.starts_with("ERROR") {
            refused = Some((id, answer));
            break;
        }
        client.database.engine().watch_memory().expect("counted");
    }
    let (rows, answer) = refused.expect("there is an end");
    assert!(answer.starts_with("ERROR 1041: Out of memory"), "{answer}");
    client.check("SELECT COUNT(*) FROM t", &rows.to_string());
    client.check("DELETE FROM t WHERE id >= 0", &format!("ok {rows}"));
    client.database.engine().collect_all_garbage();
    client.database.engine().freeze_all().expect("frozen");
    client.database.engine().watch_memory().expect("counted");
    client.check("INSERT INTO t VALUES (1, 'a')", "ok 1");
}
