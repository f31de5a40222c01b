//! A statement that takes long does not hold up the other connections of its thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::Client;

/// Beats on the runtime's thread until told to stop; returns the longest time between two beats.
async fn beat(stop: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

/// Runs a statement beside a heart on a runtime of one thread; returns how long it took, and how long the heart stood still.
fn beside_a_heart(client: &mut Client, sql: &str) -> (Duration, Duration) {
    let stop = Arc::<AtomicBool>::default();
    let heart = client.runtime.spawn(beat(stop.clone()));
    let took = client.on_the_thread(sql);
    stop.store(true, Ordering::Relaxed);
    (took, client.runtime.block_on(heart).expect("it beats"))
}

#[test]
fn long_statements_do_not_hold_up_others() {
    let mut client = Client::new();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    client.runtime = Arc::new(runtime.expect("a runtime"));
    client.run("CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(20), KEY (k)); CREATE TABLE u LIKE t");
    let values: Vec<String> = (0..20_000).map(|id| format!("({id}, {}, 'some text')", id % 7)).collect();
    let values = values.join(",");
    let fill = format!("INSERT INTO t VALUES {values}");
    let fill_row_by_row = format!("REPLACE INTO u VALUES {values}");
    let statements = [
        &*fill,
        // Rows that a query finds, rows of an index's range, and rows of two tables.
        "UPDATE t SET s = CONCAT(s, 'x') WHERE id % 2 = 0",
        "UPDATE t SET s = 'y' WHERE k BETWEEN 2 AND 5",
        "UPDATE t, u SET t.s = 'z' WHERE t.id = u.id",
        &fill_row_by_row,
        "SELECT * FROM t WHERE id >= 0 FOR UPDATE",
        "SELECT * FROM t ORDER BY s, id",
        "BEGIN; DELETE FROM t WHERE id > 10; ROLLBACK",
        "DELETE FROM u WHERE k < 6",
        "TRUNCATE u; INSERT INTO u SELECT * FROM t",
        "DELETE FROM t",
    ];
    for sql in statements {
        // A machine that is busy elsewhere may stop the heart, but not always.
        let again = !sql.starts_with("INSERT") && !sql.starts_with("DELETE");
        let taken_back = format!("BEGIN; {sql}; ROLLBACK");
        let mut rounds: Vec<_> =
            (0..3).map(|_| beside_a_heart(&mut client, if again { sql } else { &taken_back })).collect();
        rounds.push(beside_a_heart(&mut client, sql));
        let held_up =
            |(took, still): &(Duration, Duration)| *still > (*took / 5).max(Duration::from_millis(15));
        assert!(!rounds.iter().all(held_up), "{}: {rounds:?}", &sql[..sql.len().min(60)]);
    }
}
