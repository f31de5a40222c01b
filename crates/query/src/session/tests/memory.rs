//! Memory limits: a query over its limit spills or fails, alone; rows that do not fit are refused.

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
fn a_sort_that_does_not_fit_spills() {
    let mut client = Client::new();
    let folder = tempfile::tempdir().expect("a folder");
    let spill = folder.path().join("spill");
    std::fs::create_dir_all(spill.join("left by a process that was killed")).expect("made");
    client.database.spill_to(&spill);
    filled(&mut client);
    client.run("CREATE TABLE big (id INT PRIMARY KEY, s VARCHAR(400))");
    client.check(
        "INSERT INTO big SELECT t.id * 10 + d.n, t.s FROM t, d",
        "ok 100000 (Records: 100000  Duplicates: 0  Warnings: 0)",
    );
    // The texts alone are 30 MB.
    client.check("SET query_memory_limit = 20000000", "ok 0");
    let rows = client.run("SELECT s, id FROM big ORDER BY s DESC, id");
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 100_000, "{}", &rows[..rows.len().min(300)]);
    assert!(lines[0].starts_with("jjj") && lines[0].ends_with("|90") && lines[99_999].ends_with("|99909"));
    let left: Vec<_> = std::fs::read_dir(&spill).expect("there").collect();
    assert!(left.len() <= 1, "{left:?}");
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
    client.check("UPDATE t SET s = 'y' WHERE id = 1", &answer);
    client.check("DELETE FROM t WHERE id >= 0", &format!("ok {rows}"));
    client.database.engine().collect_all_garbage();
    client.database.engine().freeze_all().expect("frozen");
    client.database.engine().watch_memory().expect("counted");
    client.check("INSERT INTO t VALUES (1, 'a')", "ok 1");
}
