//! Foreign keys at every isolation level: what a transaction has to wait for, and that the newest rows count, not those of its
//! snapshot. What MySQL answers is in `tests/slt/*/foreign_key.slt`.

use avocet_engine::FreezePolicy;

use super::anomalies::{Actor, LEVELS, Level, is_ok};
use super::{Client, check};

/// Two sessions of a level over parents 1 to 4, and one that looks.
fn stage(level: Level, action: &str, freeze: FreezePolicy) -> (Actor, Actor, Client) {
    let mut after = Client::with(|options| options.freeze = freeze);
    after.run(
        "CREATE TABLE p (id INT PRIMARY KEY, v INT); INSERT INTO p VALUES (1, 0), (2, 0), (3, 0), (4, 0)",
    );
    after.run(&format!(
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES p (id) {action})"
    ));
    let actor = |client: &Client| {
        let actor = Actor::new(client.another());
        assert!(is_ok(&actor.run(level.set())));
        actor
    };
    (actor(&after), actor(&after), after)
}

fn each(action: &str, run: impl Fn(Level, Actor, Actor, Client)) {
    for level in LEVELS {
        for freeze in [FreezePolicy::Never, FreezePolicy::Always] {
            let (one, two, after) = stage(level, action, freeze);
            run(level, one, two, after);
        }
    }
}

fn no_orphans(after: &mut Client, level: Level) {
    let orphans =
        after.run("SELECT COUNT(*) FROM c LEFT JOIN p ON c.p = p.id WHERE c.p IS NOT NULL AND p.id IS NULL");
    assert_eq!(orphans.trim(), "0", "{level:?}");
}

#[test]
fn a_parent_waits_for_a_child_that_comes() {
    each("", |level, one, two, mut after| {
        for (id, commits) in [(1, true), (2, false)] {
            assert!(is_ok(&one.run("BEGIN")));
            assert!(is_ok(&one.run(&format!("INSERT INTO c VALUES ({id}, {id}, 0)"))));
            assert!(two.begin_waiting(&format!("DELETE FROM p WHERE id = {id}")).is_none(), "{level:?}");
            assert!(is_ok(&one.run(if commits { "COMMIT" } else { "ROLLBACK" })));
            let deleted = two.answer();
            assert_eq!(is_ok(&deleted), !commits, "{level:?}: {deleted}");
        }
        no_orphans(&mut after, level);
    });
}

#[test]
fn a_child_waits_for_a_parent_that_goes() {
    each("ON DELETE CASCADE", |level, one, two, mut after| {
        for (id, commits) in [(1, true), (2, false)] {
            assert!(is_ok(&one.run("BEGIN")));
            assert!(is_ok(&one.run(&format!("DELETE FROM p WHERE id = {id}"))));
            assert!(
                two.begin_waiting(&format!("INSERT INTO c VALUES ({id}, {id}, 0)")).is_none(),
                "{level:?}"
            );
            assert!(is_ok(&one.run(if commits { "COMMIT" } else { "ROLLBACK" })));
            let inserted = two.answer();
            assert_eq!(is_ok(&inserted), !commits, "{level:?}: {inserted}");
        }
        no_orphans(&mut after, level);
    });
}

/// A parent that is gone and has come again, in one transaction, is there.
#[test]
fn a_child_waits_for_a_parent_that_is_replaced() {
    each("", |level, one, two, mut after| {
        assert!(is_ok(&one.run("BEGIN; DELETE FROM p WHERE id = 1")));
        assert!(two.begin_waiting("INSERT INTO c VALUES (1, 1, 0)").is_none(), "{level:?}");
        assert!(is_ok(&one.run("INSERT INTO p VALUES (1, 5)")));
        assert!(is_ok(&one.run("COMMIT")));
        let inserted = two.answer();
        assert!(is_ok(&inserted), "{level:?}: {inserted}");
        no_orphans(&mut after, level);
    });
}

/// Both have looked at everything before the other one acts: a snapshot alone would let both through.
#[test]
fn snapshots_do_not_hide_parents_nor_children() {
    each("", |level, one, two, mut after| {
        assert!(is_ok(&one.run("BEGIN; SELECT COUNT(*) FROM c")));
        assert!(is_ok(&two.run("INSERT INTO c VALUES (1, 1, 0)")));
        let deleted = one.run("DELETE FROM p WHERE id = 1");
        assert!(deleted.contains("ERROR 1451"), "{level:?}: {deleted}");
        one.run("ROLLBACK");
        assert!(is_ok(&one.run("BEGIN; SELECT COUNT(*) FROM c")));
        assert!(is_ok(&two.run("DELETE FROM p WHERE id = 2")));
        let inserted = one.run("INSERT INTO c VALUES (2, 2, 0)");
        assert!(inserted.contains("ERROR 1452"), "{level:?}: {inserted}");
        assert!(is_ok(&two.run("INSERT INTO p VALUES (9, 0)")));
        let inserted = one.run("INSERT INTO c VALUES (3, 9, 0)");
        assert!(is_ok(&inserted), "{level:?}: {inserted}");
        assert_eq!(one.run("ROLLBACK").trim(), "ok 0");
        no_orphans(&mut after, level);
    });
}

/// A cascade takes children along that the transaction cannot see; strictly, it fails on them as any write would.
#[test]
fn cascades_meet_rows_newer_than_the_snapshot() {
    each("ON DELETE CASCADE", |level, one, two, mut after| {
        assert!(is_ok(&one.run("BEGIN; SELECT COUNT(*) FROM c")));
        assert!(is_ok(&two.run("INSERT INTO c VALUES (1, 1, 0)")));
        let deleted = one.run("DELETE FROM p WHERE id = 1");
        let strictly = matches!(level, Level::Strict | Level::Serializable);
        assert_eq!(is_ok(&deleted), !strictly, "{level:?}: {deleted}");
        one.run("COMMIT");
        let left = after.run("SELECT COUNT(*) FROM c");
        assert_eq!(left.trim(), if strictly { "1" } else { "0" }, "{level:?}");
        no_orphans(&mut after, level);
    });
}

#[test]
fn deadlocks_over_parents_are_found() {
    each("", |level, one, two, mut after| {
        assert!(is_ok(&one.run("BEGIN; INSERT INTO c VALUES (1, 1, 0)")));
        assert!(is_ok(&two.run("BEGIN; INSERT INTO c VALUES (2, 2, 0)")));
        assert!(one.begin_waiting("DELETE FROM p WHERE id = 2").is_none(), "{level:?}");
        let second = two.run("DELETE FROM p WHERE id = 1");
        let first = one.answer();
        let victims = [&first, &second].iter().filter(|answer| answer.contains("ERROR 1213")).count();
        assert_eq!(victims, 1, "{level:?}: {first} / {second}");
        one.run("COMMIT");
        two.run("COMMIT");
        no_orphans(&mut after, level);
    });
}

/// Rows that a statement is to change may have been moved or taken by a cascade of its own.
#[test]
fn cascades_within_the_table_of_a_statement() {
    for freeze in [FreezePolicy::Never, FreezePolicy::Always] {
        let mut client = Client::with(|options| options.freeze = freeze);
        client.run(
            "CREATE TABLE s (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES s (id) ON DELETE SET NULL); \
             INSERT INTO s VALUES (1, NULL), (2, 1), (3, 2), (4, 2), (5, 4)",
        );
        client.check("DELETE FROM s WHERE id IN (1, 2)", "ok 2");
        client.check("SELECT * FROM s ORDER BY id", "3|NULL\n4|NULL\n5|4");
        client.check("DELETE FROM s WHERE id + 0 < 5 ORDER BY id", "ok 2");
        client.check("SELECT * FROM s ORDER BY id", "5|NULL");
        client.run(
            "CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE); \
             INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2)",
        );
        client.check("DELETE FROM t WHERE id + 0 > 0 ORDER BY id", "ok 1");
        client.check("SELECT COUNT(*) FROM t", "0");
    }
}

/// Statements on plans and on the general path, prepared ones, and statements of so many rows that they go to column blocks.
#[test]
fn every_path_checks() {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id))",
    );
    client.run("INSERT INTO p VALUES (1)");
    let error = "ERROR 1452: Cannot add or update a child row: a foreign key constraint fails (`test`.`c`, CONSTRAINT \
                 `c_ibfk_1` FOREIGN KEY (`p`) REFERENCES `p` (`id`))";
    for path in ["ON", "OFF"] {
        client.run(&format!("SET avocet_point_path = {path}"));
        client.check("INSERT INTO c VALUES (1, 2)", error);
        client.check("INSERT INTO c VALUES (1, 1)", "ok 1");
        client.check("UPDATE c SET p = 3 WHERE id = 1", error);
        client.check("REPLACE INTO c VALUES (1, 3)", error);
        let parent = client.run("DELETE FROM p WHERE id = 1");
        assert!(parent.starts_with("ERROR 1451: Cannot delete or update a parent row"), "{parent}");
        client.check("DELETE FROM c WHERE id = 1", "ok 1");
    }
    let many = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 12000) ";
    client.run("SET cte_max_recursion_depth = 20000");
    client.check(&format!("INSERT INTO c {many} SELECT i, 1 + (i = 11999) FROM n"), error);
    client.check("SELECT COUNT(*) FROM c", "0");
    let loaded = client.run(&format!("INSERT INTO c {many} SELECT i, 1 FROM n"));
    assert!(loaded.starts_with("ok 12000"), "{loaded}");
    let parent = client.run("DELETE FROM p");
    assert!(parent.starts_with("ERROR 1451"), "{parent}");
}

#[test]
fn a_cascade_ends_after_fourteen_tables() {
    let mut client = Client::new();
    client.run("CREATE TABLE t0 (id INT PRIMARY KEY); INSERT INTO t0 VALUES (1)");
    for n in 1..=15 {
        let parent = n - 1;
        client.run(&format!(
            "CREATE TABLE t{n} (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES t{parent} (id) ON DELETE CASCADE ON UPDATE CASCADE)"
        ));
        if n < 15 {
            client.run(&format!("INSERT INTO t{n} VALUES (1)"));
        }
    }
    client.check("UPDATE t0 SET id = 2", "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)");
    client.run("INSERT INTO t15 VALUES (2)");
    let too_deep = "ERROR 3008: Foreign key cascade delete/update exceeds max depth of 15.";
    client.check("DELETE FROM t0", too_deep);
    client.check("UPDATE t0 SET id = 3", too_deep);
    client.check("SELECT t14.id FROM t14 JOIN t15 ON t14.id = t15.id", "2");
    client.check("DELETE FROM t15", "ok 1");
    client.check("DELETE FROM t0", "ok 1");
    client.check("SELECT COUNT(*) FROM t14", "0");
}

/// DDL waits for those who have used the tables that it links, and they see it whole.
#[test]
fn definitions_wait_for_transactions() {
    let client = {
        let mut client = Client::new();
        client.run("CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT); INSERT INTO p VALUES (1)");
        client
    };
    let (one, two) = (Actor::new(client.another()), Actor::new(client.another()));
    assert!(is_ok(&one.run("BEGIN; DELETE FROM p WHERE id = 1")));
    assert!(two.begin_waiting("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id)").is_none());
    assert!(is_ok(&one.run("ROLLBACK")));
    assert!(is_ok(&two.answer()));
    assert!(one.run("INSERT INTO c VALUES (1, 2)").contains("ERROR 1452"));
    // A child that is being written holds its parent's definition.
    assert!(is_ok(&one.run("BEGIN; INSERT INTO c VALUES (1, 1)")));
    assert!(two.begin_waiting("ALTER TABLE p ADD COLUMN x INT").is_none());
    assert!(is_ok(&one.run("COMMIT")));
    assert!(is_ok(&two.answer()));
    assert!(one.run("DELETE FROM p WHERE id = 1").contains("ERROR 1451"));
}

#[test]
fn keys_outlive_the_engine() {
    let disk = avocet_base::env::sim::SimDisk::new();
    let open = |disk: &avocet_base::env::sim::SimDisk| {
        Client::with(|options| {
            options.env =
                avocet_base::Env { disk: std::sync::Arc::new(disk.clone()), ..avocet_base::Env::os() }
        })
    };
    let mut client = open(&disk);
    client.run("CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p ON DELETE CASCADE)");
    client.run("INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (1, 1), (2, 2); RENAME TABLE p TO q");
    client.run("ALTER TABLE q RENAME COLUMN id TO nr; ALTER TABLE c ADD COLUMN x INT FIRST");
    for round in 0..2 {
        let mut again = open(&disk.kill());
        again.run("USE test");
        again.check("INSERT INTO c VALUES (0, 3, 3)", "ERROR 1452: Cannot add or update a child row: a foreign key constraint \
                    fails (`test`.`c`, CONSTRAINT `c_ibfk_1` FOREIGN KEY (`p`) REFERENCES `q` (`nr`) ON DELETE CASCADE)");
        again.check("DELETE FROM q WHERE nr = 1", "ok 1");
        again.check("SELECT id FROM c", "2");
        if round == 0 {
            client.database.engine().checkpoint().expect("written");
        }
    }
}

/// What has nothing to do with rows: definitions that must not be, as a table of statements.
#[test]
fn definitions_that_are_refused() {
    check(&[
        ("CREATE TABLE p (id INT PRIMARY KEY, v INT)", "ok 0"),
        ("CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))", "ok 0"),
        (
            "DROP TABLE p",
            "ERROR 3730: Cannot drop table 'p' referenced by a foreign key constraint 'c_ibfk_1' on table 'c'.",
        ),
        (
            "TRUNCATE p",
            "ERROR 1701: Cannot truncate a table referenced in a foreign key constraint (`test`.`c`, CONSTRAINT `c_ibfk_1`)",
        ),
        ("DROP INDEX p ON c", "ERROR 1553: Cannot drop index 'p': needed in a foreign key constraint"),
        (
            "ALTER TABLE p DROP COLUMN id",
            "ERROR 1829: Cannot drop column 'id': needed in a foreign key constraint 'c_ibfk_1' of table 'c'",
        ),
        (
            "ALTER TABLE c DROP COLUMN p",
            "ERROR 1828: Cannot drop column 'p': needed in a foreign key constraint 'c_ibfk_1'",
        ),
        (
            "ALTER TABLE p MODIFY id BIGINT",
            "ERROR 3780: Referencing column 'p' and referenced column 'id' in foreign key constraint 'c_ibfk_1' are \
             incompatible.",
        ),
        (
            "CREATE TABLE d (x INT, FOREIGN KEY (x) REFERENCES p (v))",
            "ERROR 6125: Failed to add the foreign key constraint. Missing unique key for constraint 'd_ibfk_1' in the \
             referenced table 'p'",
        ),
        (
            "CREATE TABLE d (x INT, FOREIGN KEY (x) REFERENCES p (nope))",
            "ERROR 3734: Failed to add the foreign key constraint. Missing column 'nope' for constraint 'd_ibfk_1' in the \
             referenced table 'p'",
        ),
        (
            "CREATE TABLE d (x INT, y INT, FOREIGN KEY (x, y) REFERENCES p (id))",
            "ERROR 1239: Incorrect foreign key definition for 'foreign key without name': Key reference and table reference \
             don't match",
        ),
        (
            "CREATE TABLE d (x INT, FOREIGN KEY (x) REFERENCES nope (id))",
            "ERROR 1824: Failed to open the referenced table 'nope'",
        ),
    ]);
}
