//! Queries that lock rows and are not visited row by row, on several threads. What each of them locks is in
//! `tests/slt/transactions/locking_queries.slt`.

use std::thread;

use super::{Client, check};

const WORKERS: usize = 4;

/// Runs `work` on several threads, each with a session of its own.
fn together(client: &Client, work: impl Fn(usize, &mut Client) + Send + Sync) {
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let mut own = client.another();
            let work = &work;
            scope.spawn(move || work(worker, &mut own));
        }
    });
}

fn is_to_be_tried_again(answer: &str) -> bool {
    ["ERROR 1020", "ERROR 1213"].iter().any(|error| answer.contains(error))
}

#[test]
fn what_a_group_is_made_of_stays() {
    const ROUNDS: usize = 25;
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "strict"] {
        let mut client = Client::new();
        client.run("CREATE TABLE part (id INT PRIMARY KEY, g INT, v INT NOT NULL)");
        client.run("CREATE TABLE seen (total INT PRIMARY KEY)");
        client.run("INSERT INTO part VALUES (1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 1, 0), (5, 2, 0)");
        together(&client, |worker, client| {
            client.run(&match level {
                "strict" => "SET innodb_snapshot_isolation = ON".to_owned(),
                level => format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
            });
            for _ in 0..ROUNDS {
                loop {
                    client.run("BEGIN");
                    let total = client.run("SELECT SUM(v), g FROM part WHERE g = 1 GROUP BY g FOR UPDATE");
                    let change = match total.split_once('|') {
                        // Each changes a row of its own: nothing but the locks makes the totals differ.
                        Some((total, _)) => client.run(&format!(
                            "UPDATE part SET v = v + 1 WHERE id = {}; INSERT INTO seen VALUES ({total}); COMMIT",
                            worker + 1
                        )),
                        None => total,
                    };
                    if !change.contains("ERROR") {
                        break;
                    }
                    assert!(is_to_be_tried_again(&change), "{level}: {change}");
                    client.run("ROLLBACK");
                }
            }
        });
        let rounds = WORKERS * ROUNDS;
        client.check("SELECT COUNT(*), MAX(total) FROM seen", &format!("{rounds}|{}", rounds - 1));
        client.check("SELECT SUM(v) FROM part", &rounds.to_string());
    }
}

#[test]
fn each_takes_its_own_of_a_queue() {
    const JOBS: usize = 60;
    let mut client = Client::new();
    client.run("CREATE TABLE job (id INT PRIMARY KEY, owner INT, state INT NOT NULL)");
    client.run("CREATE TABLE owner (id INT PRIMARY KEY, name VARCHAR(10))");
    client.run("CREATE TABLE done (id INT PRIMARY KEY, worker INT)");
    client.run("INSERT INTO owner VALUES (0, 'a'), (1, 'b')");
    let jobs: Vec<_> = (0..JOBS).map(|id| format!("({id}, {}, 0)", id % 3)).collect();
    client.run(&format!("INSERT INTO job VALUES {}", jobs.join(",")));
    together(&client, |worker, client| {
        loop {
            let taken = client.run(
                "BEGIN; SELECT job.id, owner.name FROM job LEFT JOIN owner ON owner.id = job.owner \
                 WHERE job.state = 0 ORDER BY job.id DESC LIMIT 2 FOR UPDATE OF job SKIP LOCKED",
            );
            let ids: Vec<_> = taken.lines().filter_map(|line| Some(line.split_once('|')?.0)).collect();
            for id in &ids {
                let done = client.run(&format!(
                    "UPDATE job SET state = 1 WHERE id = {id}; INSERT INTO done VALUES ({id}, {worker})"
                ));
                assert!(!done.contains("ERROR"), "{done}");
            }
            client.run("COMMIT");
            let left = client.run("SELECT COUNT(*) FROM job WHERE state = 0");
            if ids.is_empty() && left.trim() == "0" {
                break;
            }
        }
    });
    client.check("SELECT COUNT(*) FROM done", &JOBS.to_string());
}

#[test]
fn a_subquery_for_each_row_locks_only_where_rows_are_visited() {
    check(&[
        ("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)", "ok 0\nok 1"),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id FOR UPDATE)", "1"),
        (
            "SELECT * FROM t WHERE EXISTS (SELECT SUM(id) OVER (ORDER BY id RANGE 1 PRECEDING) FROM t AS u WHERE u.id = t.id \
             FOR UPDATE)",
            "ERROR 1235: This version of Avocet doesn't yet support 'FOR UPDATE or FOR SHARE in a subquery that refers to \
             outer tables'",
        ),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM t AS u FOR UPDATE)", "1"),
    ]);
}
