//! What InnoDB says of its locks: who waits, for which kind of lock, and whom for.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::error::Result;

/// A lock wait as the performance schema has it.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Such as `X,REC_NOT_GAP` or `X,INSERT_INTENTION`.
    pub mode: String,
    pub index: String,
    /// The record's key, such as `30, 3`.
    pub record: String,
    /// The sessions that are waited for.
    pub blockers: Vec<usize>,
    /// The modes that these hold.
    pub held: Vec<String>,
}

impl Wait {
    /// Whether it is about the space between records, or that space is what is held.
    pub fn is_about_gaps(&self) -> bool {
        let covers_gap = |mode: &String| !mode.contains("REC_NOT_GAP");
        self.mode.contains("INSERT_INTENTION")
            || self.mode.contains("GAP") && !self.mode.contains("REC_NOT_GAP")
            || self.record.contains("supremum")
            || covers_gap(&self.mode) && self.held.iter().any(covers_gap)
    }

    /// The first column of the record's key.
    pub fn key(&self) -> Option<i64> {
        self.record.split(',').next()?.trim().parse().ok()
    }
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let blockers: Vec<String> = self.blockers.iter().map(|b| format!("@{}", b + 1)).collect();
        write!(f, "for {} on {} {}, held by {} as ", self.mode, self.index, self.record, blockers.join(" "))?;
        write!(f, "{}", self.held.join(" "))
    }
}

/// Whether so many transactions wait, and not in a circle: the server finds that a moment later.
pub fn all_wait(observer: &mut Conn, count: usize) -> Result<bool> {
    let edges: Vec<(u64, u64)> = observer.query(
        "SELECT REQUESTING_ENGINE_TRANSACTION_ID, BLOCKING_ENGINE_TRANSACTION_ID FROM performance_schema.data_lock_waits",
    )?;
    let mut waiting: Vec<u64> = edges.iter().map(|(who, _)| *who).collect();
    waiting.sort_unstable();
    waiting.dedup();
    Ok(waiting.len() == count && !waiting.iter().any(|start| is_in_circle(*start, &edges)))
}

fn is_in_circle(start: u64, edges: &[(u64, u64)]) -> bool {
    let mut reached = vec![start];
    let mut at = 0;
    while let Some(&from) = reached.get(at) {
        for (_, to) in edges.iter().filter(|(who, _)| *who == from) {
            if *to == start {
                return true;
            }
            if !reached.contains(to) {
                reached.push(*to);
            }
        }
        at += 1;
    }
    false
}

/// What a session waits for. A row's lock may have been noted by whoever ran into it: only the lock of the table says whose
/// the transaction is.
pub fn wait_of(observer: &mut Conn, connections: &[u32], session: usize) -> Result<Option<Wait>> {
    type Line = (Option<u32>, String, Option<String>, Option<String>, Option<String>);
    let lines: Vec<Line> = observer.query(format!(
        "SELECT DISTINCT holder.PROCESSLIST_ID, wanted.LOCK_MODE, wanted.INDEX_NAME, wanted.LOCK_DATA, held.LOCK_MODE
         FROM performance_schema.data_lock_waits w
         JOIN performance_schema.data_locks wanted ON wanted.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
         LEFT JOIN performance_schema.data_locks held ON held.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID
         LEFT JOIN performance_schema.data_locks own ON own.ENGINE_TRANSACTION_ID = w.BLOCKING_ENGINE_TRANSACTION_ID
              AND own.LOCK_TYPE = 'TABLE'
         JOIN performance_schema.threads waiter ON waiter.THREAD_ID = w.REQUESTING_THREAD_ID
         LEFT JOIN performance_schema.threads holder ON holder.THREAD_ID = own.THREAD_ID
         WHERE waiter.PROCESSLIST_ID = {}",
        connections[session]
    ))?;
    let Some((_, mode, index, data, _)) = lines.first().cloned() else { return Ok(None) };
    let (index, record) = (index.unwrap_or_default(), data.unwrap_or_default());
    let mut wait = Wait { mode, index, record, blockers: Vec::new(), held: Vec::new() };
    for (holder, .., held) in lines {
        wait.blockers.extend(connections.iter().position(|connection| Some(*connection) == holder));
        wait.held.extend(held);
    }
    Ok(Some(wait))
}

/// What `SHOW ENGINE INNODB STATUS` says of the last deadlock: its statements and locks.
pub fn last_deadlock(observer: &mut Conn) -> Result<String> {
    let status: Option<(String, String, String)> = observer.query_first("SHOW ENGINE INNODB STATUS")?;
    let status = status.map(|(.., text)| text).unwrap_or_default();
    let from = status.split("LATEST DETECTED DEADLOCK").nth(1).unwrap_or_default();
    let section = from.split("\nTRANSACTIONS\n").next().unwrap_or_default();
    let is_said = |line: &&str| {
        line.starts_with("RECORD LOCKS")
            || line.starts_with("***")
            || line.contains("  t ")
            || line.contains(" t ")
    };
    Ok(section.lines().filter(is_said).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_from_within() {
        let edges = [(1, 2), (2, 3), (3, 2)];
        assert!(!is_in_circle(1, &edges));
        assert!(is_in_circle(2, &edges));
        assert!(!is_in_circle(2, &[(2, 1), (1, 3)]));
    }
}
