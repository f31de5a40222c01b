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
    /// Whether it is about the space between records.
    pub fn is_about_gaps(&self) -> bool {
        self.mode.contains("INSERT_INTENTION")
            || self.mode.contains("GAP") && !self.mode.contains("REC_NOT_GAP")
            || self.record.contains("supremum")
    }

    /// Whether a lock that is held is on the space before its record, too.
    pub fn is_held_with_gap(&self) -> bool {
        self.held.iter().any(|mode| !mode.contains("REC_NOT_GAP"))
    }

    /// Whether it is the same lock that is wanted, whoever holds it.
    pub fn is_for_the_lock_of(&self, other: &Self) -> bool {
        (&self.mode, &self.index, &self.record) == (&other.mode, &other.index, &other.record)
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

/// Whether transactions wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    NotAll,
    All,
    /// All, and some of them for each other: a deadlock, which the server is about to find. Or none: whoever holds a row shared
    /// and wants more goes before those who wait for it, and is listed as waiting for them all the same.
    InCircle,
}

/// Whether so many transactions wait.
pub fn waiting(observer: &mut Conn, count: usize) -> Result<Waiting> {
    let edges: Vec<(u64, u64)> = observer.query(
        "SELECT REQUESTING_ENGINE_TRANSACTION_ID, BLOCKING_ENGINE_TRANSACTION_ID FROM performance_schema.data_lock_waits",
    )?;
    let mut waiting: Vec<u64> = edges.iter().map(|(who, _)| *who).collect();
    waiting.sort_unstable();
    waiting.dedup();
    Ok(match waiting.len() == count {
        false => Waiting::NotAll,
        true if waiting.iter().any(|start| is_in_circle(*start, &edges)) => Waiting::InCircle,
        true => Waiting::All,
    })
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

/// The last deadlock, as `SHOW ENGINE INNODB STATUS` has it.
pub struct Deadlock {
    /// Its statements and locks.
    pub text: String,
    /// The locks that were waited for.
    pub wanted: Vec<WantedLock>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedLock {
    pub index: String,
    /// The primary key of the record's row, as bytes in hexadecimal.
    pub row: String,
}

impl Deadlock {
    /// Whether it is all about one row: one comes by an index's entry, which the other waits for while it holds the row.
    pub fn is_of_entry_and_row(&self) -> bool {
        let is_row = |lock: &WantedLock| lock.index == "PRIMARY";
        let one_row = self.wanted.windows(2).all(|pair| pair[0].row == pair[1].row);
        one_row && self.wanted.iter().any(is_row) && !self.wanted.iter().all(is_row)
    }
}

pub fn last_deadlock(observer: &mut Conn) -> Result<Deadlock> {
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
    let text = section.lines().filter(is_said).collect::<Vec<_>>().join("\n");
    let wanted =
        section.split("WAITING FOR THIS LOCK TO BE GRANTED:").skip(1).filter_map(wanted_lock).collect();
    Ok(Deadlock { text, wanted })
}

/// A lock's line, and the fields of its record: a secondary key's entry ends in the primary key.
fn wanted_lock(said: &str) -> Option<WantedLock> {
    let said = said.split("***").next()?;
    let index = said.split("index ").nth(1)?.split(' ').next()?.to_owned();
    let field = if index == "PRIMARY" { " 0: len" } else { " 1: len" };
    let line = said.lines().find(|line| line.starts_with(field))?;
    let row = line.split("hex ").nth(1)?.split(';').next()?.to_owned();
    Some(WantedLock { index, row })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_lock_names_its_row() {
        let said = "\nRECORD LOCKS space id 3 page no 6 n bits 72 index k of table `i`.`t` trx id 8860 lock mode S waiting\n\
                    Record lock, heap no 3 PHYSICAL RECORD: n_fields 2; compact format; info bits 0\n \
                    0: len 4; hex 80000003; asc     ;;\n 1: len 4; hex 80000004; asc     ;;\n\n*** WE ROLL BACK";
        let row = "80000004".to_owned();
        assert_eq!(wanted_lock(said), Some(WantedLock { index: "k".into(), row }));
    }

    #[test]
    fn circles_are_found_from_within() {
        let edges = [(1, 2), (2, 3), (3, 2)];
        assert!(!is_in_circle(1, &edges));
        assert!(is_in_circle(2, &edges));
        assert!(!is_in_circle(2, &[(2, 1), (1, 3)]));
    }
}
