//! Views: that plans see through them, and what they cost.

use super::Client;

fn shop() -> Client {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(20), KEY (k));
         INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 20, 'three');
         CREATE TABLE u (id INT PRIMARY KEY, t_id INT, KEY (t_id)); INSERT INTO u VALUES (1, 1), (2, 2);
         CREATE VIEW v AS SELECT id, k, s FROM t; CREATE VIEW w AS SELECT id AS i, k + 1 AS l FROM v WHERE k > 0;
         CREATE VIEW j AS SELECT t.id, t.s, u.id AS u_id FROM t JOIN u ON u.t_id = t.id",
    );
    client
}

/// An index is found through a view as it is without.
#[test]
fn plans_through_views_are_those_of_their_tables() {
    let mut client = shop();
    for (through, without) in [
        ("SELECT s FROM v WHERE id = 2", "SELECT s FROM t WHERE id = 2"),
        (
            "SELECT id FROM v WHERE k = 20 ORDER BY id LIMIT 1",
            "SELECT id FROM t WHERE k = 20 ORDER BY id LIMIT 1",
        ),
        ("SELECT l FROM w WHERE i = 2", "SELECT k + 1 FROM t WHERE k > 0 AND id = 2"),
        ("SELECT s FROM j WHERE u_id = 2", "SELECT t.s FROM t JOIN u ON u.t_id = t.id WHERE u.id = 2"),
        ("SELECT COUNT(*), MAX(k) FROM v WHERE k = 20", "SELECT COUNT(*), MAX(k) FROM t WHERE k = 20"),
    ] {
        let explained = client.run(&format!("EXPLAIN FORMAT=TREE {through}"));
        assert_eq!(explained, client.run(&format!("EXPLAIN FORMAT=TREE {without}")), "{through}");
        assert_eq!(client.run(through), client.run(without), "{through}");
    }
}

/// Views of views of views: each once more within, until it is too much, without a crash.
#[test]
fn towers_of_views_are_bounded() {
    let mut client = shop();
    client.run("CREATE VIEW v0 AS SELECT id FROM t");
    let mut refused = None;
    for n in 1..100 {
        let made = client.run(&format!("CREATE VIEW v{n} AS SELECT id FROM v{} WHERE id > 0", n - 1));
        if made.contains("ERROR") {
            refused = Some((n, made));
            break;
        }
    }
    let (n, error) = refused.expect("MySQL allows so many levels, too");
    assert!(error.contains("4028") || error.contains("1473"), "{n}: {error}");
    // The statement around it counts, too.
    assert_eq!(client.run(&format!("SELECT COUNT(*) FROM v{}", n - 2)).trim(), "3");
    // Twice the one below, ten times over.
    client.run("CREATE VIEW d0 AS SELECT 1 AS a FROM t WHERE id = 1");
    for n in 1..20 {
        let below = n - 1;
        let sql =
            format!("CREATE VIEW d{n} AS SELECT x.a FROM d{below} AS x JOIN d{below} AS y ON x.a = y.a");
        if client.run(&sql).contains("ERROR") {
            return;
        }
    }
    panic!("a million readings of one table are too many");
}

/// A view that another session changes is seen by plans that are kept.
#[test]
fn changes_of_views_are_seen_at_once() {
    let mut client = shop();
    let mut other = client.another();
    for _ in 0..2 {
        client.check("SELECT s FROM v WHERE id = 1", "one");
        client.check("INSERT INTO v VALUES (9, 90, 'nine'); DELETE FROM v WHERE id = 9", "ok 1\nok 1");
        other.run("CREATE OR REPLACE VIEW v AS SELECT id, k, UPPER(s) AS s FROM t");
        client.check("SELECT s FROM v WHERE id = 1", "ONE");
        assert!(client.run("INSERT INTO v VALUES (9, 90, 'nine')").contains("1348"));
        other.run("ALTER VIEW v AS SELECT id, k, s FROM t");
    }
    other.run("DROP VIEW v");
    assert!(client.run("SELECT s FROM v WHERE id = 1").contains("1146"));
    assert!(client.run("SELECT * FROM w").contains("1356"));
}
