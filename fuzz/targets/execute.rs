//! Prepared statements: the first byte says which, the rest is what a client sends to execute it. Parameters of any type and any
//! value get rows or an error.

use std::cell::RefCell;

use avocet_server::protocol::read::Reader;
use avocet_server::protocol::{CapabilityFlags, params};
use avocet_session::api::StatementId;

#[path = "client.rs"]
mod client;

use client::Client;

/// Keys, writes, functions that take numbers of things, comparisons with each column, and a query that is not the point path's.
#[rustfmt::skip]
const STATEMENTS: [&str; 16] = [
    "SELECT * FROM t WHERE id = ?",
    "SELECT * FROM t WHERE s = ? AND id <> ?",
    "SELECT * FROM t WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?",
    "SELECT * FROM t WHERE d < ? OR t >= ? OR s LIKE ?",
    "INSERT INTO t VALUES (?, ?, ?, ?)",
    "INSERT INTO t VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE d = d + ?, s = CONCAT(s, ?)",
    "REPLACE INTO t VALUES (?, ?, ?, ?)",
    "UPDATE t SET s = ?, d = ? * ?, t = ? WHERE id = ?",
    "UPDATE IGNORE t SET id = ?, d = ? WHERE s IN (?, ?)",
    "DELETE FROM t WHERE s = ? OR t < ?",
    "SELECT ? + ?, ? * ?, ? / ?, ? DIV ?, ? % ?, -?",
    "SELECT CAST(? AS SIGNED), CAST(? AS DECIMAL(20, 5)), CAST(? AS DATETIME(6)), CAST(? AS TIME(3)), CAST(? AS CHAR(3))",
    "SELECT DATE_ADD(?, INTERVAL ? DAY), DATEDIFF(?, ?), SEC_TO_TIME(?), FROM_UNIXTIME(?), MAKEDATE(?, ?), TIMEDIFF(?, ?)",
    "SELECT SUBSTRING(?, ?, ?), LPAD(?, ?, ?), REPEAT(?, ?), ROUND(?, ?), FORMAT(?, ?), CONV(?, ?, ?), INSERT(?, ?, ?, ?)",
    "SELECT ? = ?, ? <=> ?, ? & ?, ? << ?, ? LIKE ?, ? REGEXP ?, GREATEST(?, ?), COALESCE(?, ?), IF(?, ?, ?)",
    "SELECT s, SUM(d) + ?, COUNT(*) FROM t WHERE t > ? OR d > ? GROUP BY s HAVING SUM(d) <> ? ORDER BY 2",
];

/// As in `sql.rs`.
const LIFE: u64 = 2000;

struct Executor {
    client: Client,
    ids: Vec<StatementId>,
    statements: u64,
}

impl Executor {
    fn new() -> Self {
        let mut client = Client::new();
        let ids = STATEMENTS.iter().map(|sql| client.prepare(sql)).collect();
        Self { client, ids, statements: 0 }
    }
}

thread_local! {
    static EXECUTOR: RefCell<Option<Executor>> = const { RefCell::new(None) };
}

pub fn run(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    let which = usize::from(*which) % STATEMENTS.len();
    let count = STATEMENTS[which].matches('?').count();
    let (mut types, mut values) = (Vec::new(), Vec::new());
    let capabilities = CapabilityFlags::empty();
    if params::execute(Reader::new(rest), capabilities, count, &mut types, &[], None, &mut values).is_err() {
        return;
    }
    EXECUTOR.with_borrow_mut(|kept| {
        let executor = kept.get_or_insert_with(Executor::new);
        executor.client.execute_prepared(executor.ids[which], &values);
        executor.statements += 1;
    });
    EXECUTOR.with_borrow_mut(|kept| kept.take_if(|executor| executor.statements >= LIFE));
}

/// Each statement with integers, texts, times and NULLs.
#[allow(dead_code, reason = "the fuzzer gets them from the tests")]
pub fn examples() -> Vec<Vec<u8>> {
    // A type's code, and a value of it.
    let kinds: [(u8, &[u8]); 8] = [
        (8, &[3, 0, 0, 0, 0, 0, 0, 0]),
        (253, b"\x051.5 x"),
        (5, &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
        (246, b"\x06-12.34"),
        (12, &[11, 0xe4, 7, 1, 31, 23, 59, 59, 1, 0, 0, 0]),
        (11, &[8, 1, 1, 0, 0, 0, 2, 3, 4]),
        (10, &[4, 0xe4, 7, 2, 29]),
        (6, &[]),
    ];
    let example = |which: usize, shift: usize| {
        let count = STATEMENTS[which].matches('?').count();
        let chosen = || (0..count).map(|n| kinds[(n + shift) % kinds.len()]);
        let mut bytes = vec![which as u8, 0, 1, 0, 0, 0];
        bytes.resize(bytes.len() + count.div_ceil(8), 0);
        bytes.push(1);
        bytes.extend(chosen().flat_map(|(code, _)| [code, 0]));
        bytes.extend(chosen().flat_map(|(_, value)| value.to_vec()));
        bytes
    };
    (0..STATEMENTS.len())
        .flat_map(|which| (0..kinds.len()).map(move |shift| (which, shift)))
        .map(|(w, s)| example(w, s))
        .collect()
}
