//! Judges a history of transactions that append to lists and read them.
//!
//! Values are unique and a list is only ever appended to, so a read tells the whole order of the writes of its key (the
//! idea of Elle: Kingsbury, Alvaro 2020). From that follow the dependencies between transactions:
//!
//! ```text
//!  ww   the other appended to the key next after this one
//!  wr   the other read what this one appended last
//!  rw   the other appended to the key next after what this one read
//! ```
//!
//! and from cycles of these the anomalies (Adya 1999): G0 of ww alone, G1c of ww and wr, G-single with one rw, G2 with
//! several. What needs no cycle is judged by itself: reads of aborted and of intermediate states, and of own writes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub type Key = i64;
pub type Value = i64;

#[derive(Clone, Debug)]
pub enum Op {
    Append(Key, Value),
    Read(Key, Vec<Value>),
}

#[derive(Clone, Debug)]
pub struct Transaction {
    pub ops: Vec<Op>,
    pub committed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Anomaly {
    /// A write that was acknowledged is in nobody's list.
    LostWrite,
    /// Two reads of a key do not agree about its order.
    IncompatibleOrder,
    /// What a transaction wrote or had read before is not in what it reads.
    Internal,
    AbortedRead,
    IntermediateRead,
    G0,
    G1c,
    GSingle,
    /// A cycle in which two rw dependencies follow each other: what snapshot isolation allows.
    G2,
    /// Two or more rw dependencies, but never in a row: no snapshot isolation has it.
    GNonadjacent,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Ww,
    Wr,
    Rw,
}

/// All anomalies that the history shows. `last` is what the lists held in the end.
pub fn anomalies(history: &[Transaction], last: &BTreeMap<Key, Vec<Value>>) -> BTreeSet<Anomaly> {
    let mut found = BTreeSet::new();
    let writers = Writers::of(history);
    for (at, txn) in history.iter().enumerate().filter(|(_, txn)| txn.committed) {
        judge_alone(at, txn, history, &writers, last, &mut found);
    }
    if found.contains(&Anomaly::IncompatibleOrder) {
        return found;
    }
    let graph = Graph::of(history, &writers, last);
    graph.judge(&mut found);
    found
}

struct Writers {
    /// Who appended a value, and whether that was its last append to the key.
    of: HashMap<(Key, Value), (usize, bool)>,
}

impl Writers {
    fn of(history: &[Transaction]) -> Self {
        let mut of = HashMap::new();
        for (at, txn) in history.iter().enumerate() {
            let mut last: HashMap<Key, Value> = HashMap::new();
            for op in &txn.ops {
                if let Op::Append(key, value) = op {
                    if let Some(before) = last.insert(*key, *value) {
                        of.insert((*key, before), (at, false));
                    }
                    of.insert((*key, *value), (at, true));
                }
            }
        }
        Self { of }
    }
}

/// What one transaction's reads show without regard to others' reads.
fn judge_alone(
    at: usize,
    txn: &Transaction,
    history: &[Transaction],
    writers: &Writers,
    last: &BTreeMap<Key, Vec<Value>>,
    found: &mut BTreeSet<Anomaly>,
) {
    let mut own: HashMap<Key, Vec<Value>> = HashMap::new();
    for op in &txn.ops {
        match op {
            Op::Append(key, value) => {
                own.entry(*key).or_default().push(*value);
                if !last.get(key).is_some_and(|list| list.contains(value)) {
                    found.insert(Anomaly::LostWrite);
                }
            }
            Op::Read(key, list) => {
                let appended = own.get(key).map_or(&[][..], |own| own);
                if !list.ends_with(appended) {
                    found.insert(Anomaly::Internal);
                }
                for (n, value) in list.iter().enumerate() {
                    let Some((writer, is_final)) = writers.of.get(&(*key, *value)) else {
                        found.insert(Anomaly::AbortedRead);
                        continue;
                    };
                    if *writer == at {
                        continue;
                    }
                    if !history[*writer].committed {
                        found.insert(Anomaly::AbortedRead);
                    }
                    if !is_final && n + 1 == list.len() {
                        found.insert(Anomaly::IntermediateRead);
                    }
                }
                let of_others = &list[..list.len().saturating_sub(appended.len())];
                let all = last.get(key).map_or(&[][..], |list| list);
                if history[at].committed && !all.starts_with(of_others) {
                    found.insert(Anomaly::IncompatibleOrder);
                }
            }
        }
    }
}

struct Graph {
    edges: Vec<Vec<(usize, Kind)>>,
}

impl Graph {
    const SORTS: [Anomaly; 5] =
        [Anomaly::G0, Anomaly::G1c, Anomaly::GSingle, Anomaly::GNonadjacent, Anomaly::G2];

    fn of(history: &[Transaction], writers: &Writers, last: &BTreeMap<Key, Vec<Value>>) -> Self {
        let mut edges: Vec<HashSet<(usize, Kind)>> = vec![HashSet::new(); history.len()];
        let mut add = |from: usize, to: usize, kind| {
            if from != to {
                edges[from].insert((to, kind));
            }
        };
        let writer = |key: Key, value: Value| writers.of.get(&(key, value)).map(|(at, _)| *at);
        for (key, list) in last {
            for pair in list.windows(2) {
                if let (Some(a), Some(b)) = (writer(*key, pair[0]), writer(*key, pair[1])) {
                    add(a, b, Kind::Ww);
                }
            }
        }
        for (at, txn) in history.iter().enumerate().filter(|(_, txn)| txn.committed) {
            for op in &txn.ops {
                let Op::Read(key, list) = op else { continue };
                // What it read of others; its own appends come behind that.
                let seen =
                    list.iter().rposition(|value| writer(*key, *value) != Some(at)).map_or(0, |n| n + 1);
                if seen > 0
                    && let Some(from) = writer(*key, list[seen - 1])
                {
                    add(from, at, Kind::Wr);
                }
                let all = last.get(key).map_or(&[][..], |list| list);
                let next = all[seen.min(all.len())..].iter().find(|value| writer(*key, **value) != Some(at));
                if seen == list.len()
                    && let Some(to) = next.and_then(|value| writer(*key, *value))
                {
                    add(at, to, Kind::Rw);
                }
            }
        }
        Self { edges: edges.into_iter().map(|set| set.into_iter().collect()).collect() }
    }

    fn judge(&self, found: &mut BTreeSet<Anomaly>) {
        let component = self.components();
        for (from, edges) in self.edges.iter().enumerate() {
            for (to, kind) in edges.iter().filter(|(to, _)| component[*to] == component[from]) {
                if Self::SORTS.iter().all(|sort| found.contains(sort)) {
                    return;
                }
                let within = |kinds: &[Kind]| self.reaches(*to, from, kinds);
                match kind {
                    Kind::Ww if within(&[Kind::Ww]) => drop(found.insert(Anomaly::G0)),
                    Kind::Wr if within(&[Kind::Ww, Kind::Wr]) => drop(found.insert(Anomaly::G1c)),
                    Kind::Rw if within(&[Kind::Ww, Kind::Wr]) => drop(found.insert(Anomaly::GSingle)),
                    Kind::Rw if self.reaches_without_two_rw(*to, from) => {
                        found.insert(Anomaly::GNonadjacent);
                    }
                    Kind::Rw if within(&[Kind::Ww, Kind::Wr, Kind::Rw]) => drop(found.insert(Anomaly::G2)),
                    _ => {}
                }
            }
        }
    }

    fn reaches(&self, from: usize, to: usize, kinds: &[Kind]) -> bool {
        let mut seen = HashSet::from([from]);
        let mut left = vec![from];
        while let Some(at) = left.pop() {
            if at == to {
                return true;
            }
            let next = self.edges[at].iter().filter(|(_, kind)| kinds.contains(kind)).map(|(to, _)| *to);
            left.extend(next.filter(|to| seen.insert(*to)));
        }
        false
    }

    /// Whether a way leads back, after an rw dependency, on which no rw follows an rw, the first included.
    fn reaches_without_two_rw(&self, from: usize, to: usize) -> bool {
        let mut seen = HashSet::from([(from, true)]);
        let mut left = vec![(from, true)];
        while let Some((at, after_rw)) = left.pop() {
            if at == to && !after_rw {
                return true;
            }
            for &(next, kind) in &self.edges[at] {
                let state = (next, kind == Kind::Rw);
                if !(after_rw && kind == Kind::Rw) && seen.insert(state) {
                    left.push(state);
                }
            }
        }
        false
    }

    /// Strongly connected components (Kosaraju): two passes, both without recursion.
    fn components(&self) -> Vec<usize> {
        let count = self.edges.len();
        let mut order = Vec::with_capacity(count);
        let mut seen = vec![false; count];
        for start in 0..count {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut path = vec![(start, 0)];
            while let Some((at, next)) = path.last_mut() {
                match self.edges[*at].get(*next) {
                    Some(&(to, _)) => {
                        *next += 1;
                        if !std::mem::replace(&mut seen[to], true) {
                            path.push((to, 0));
                        }
                    }
                    None => {
                        order.push(*at);
                        path.pop();
                    }
                }
            }
        }
        let mut reverse = vec![Vec::new(); count];
        for (from, edges) in self.edges.iter().enumerate() {
            edges.iter().for_each(|(to, _)| reverse[*to].push(from));
        }
        let mut component = vec![usize::MAX; count];
        for (number, &start) in order.iter().rev().enumerate() {
            let mut left = vec![start];
            while let Some(at) = left.pop() {
                if component[at] == usize::MAX {
                    component[at] = number;
                    left.extend(&reverse[at]);
                }
            }
        }
        component
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(ops: &[Op]) -> Transaction {
        Transaction { ops: ops.to_vec(), committed: true }
    }

    fn append(key: Key, value: Value) -> Op {
        Op::Append(key, value)
    }

    fn read(key: Key, list: &[Value]) -> Op {
        Op::Read(key, list.to_vec())
    }

    fn judged(history: &[Transaction], last: &[(Key, &[Value])]) -> Vec<Anomaly> {
        let last = last.iter().map(|(key, list)| (*key, list.to_vec())).collect();
        anomalies(history, &last).into_iter().collect()
    }

    #[test]
    fn a_serial_history_has_none() {
        let history = [
            txn(&[append(1, 1), append(2, 2)]),
            txn(&[read(1, &[1]), append(1, 3), read(1, &[1, 3]), append(1, 4)]),
            txn(&[read(2, &[2]), read(1, &[1, 3, 4])]),
        ];
        assert_eq!(judged(&history, &[(1, &[1, 3, 4]), (2, &[2])]), []);
    }

    #[test]
    fn each_anomaly_is_found() {
        let dirty = [txn(&[append(1, 1), append(2, 2)]), txn(&[append(1, 3), append(2, 4)])];
        assert_eq!(judged(&dirty, &[(1, &[1, 3]), (2, &[4, 2])]), [Anomaly::G0]);
        let circular = [txn(&[append(1, 1), read(2, &[2])]), txn(&[append(2, 2), read(1, &[1])])];
        assert_eq!(judged(&circular, &[(1, &[1]), (2, &[2])]), [Anomaly::G1c]);
        let skewed_read = [txn(&[append(1, 1), append(2, 2)]), txn(&[read(1, &[]), read(2, &[2])])];
        assert_eq!(judged(&skewed_read, &[(1, &[1]), (2, &[2])]), [Anomaly::GSingle]);
        let write_skew = [txn(&[read(1, &[]), append(2, 2)]), txn(&[read(2, &[]), append(1, 1)])];
        assert_eq!(judged(&write_skew, &[(1, &[1]), (2, &[2])]), [Anomaly::G2]);
        let lost_update = [txn(&[read(1, &[]), append(1, 1)]), txn(&[read(1, &[]), append(1, 2)])];
        assert!(judged(&lost_update, &[(1, &[1, 2])]).contains(&Anomaly::GSingle));
        let lost = [txn(&[append(1, 1)])];
        assert_eq!(judged(&lost, &[]), [Anomaly::LostWrite]);
        let middle = [txn(&[append(1, 1), append(1, 2)]), txn(&[read(1, &[1])])];
        assert!(judged(&middle, &[(1, &[1, 2])]).contains(&Anomaly::IntermediateRead));
        let aborted = [Transaction { committed: false, ..txn(&[append(1, 1)]) }, txn(&[read(1, &[1])])];
        assert!(judged(&aborted, &[]).contains(&Anomaly::AbortedRead));
        let forgetful = [txn(&[append(1, 1), read(1, &[])])];
        assert!(judged(&forgetful, &[(1, &[1])]).contains(&Anomaly::Internal));
        let disagreeing = [txn(&[append(1, 1)]), txn(&[append(1, 2)]), txn(&[read(1, &[2])])];
        assert_eq!(judged(&disagreeing, &[(1, &[1, 2])]), [Anomaly::IncompatibleOrder]);
        // T1 reads before T2 writes, T3 reads T2's and before T4 writes, T1 reads T4's: two rw, never in a row.
        let long_fork = [
            txn(&[read(1, &[]), read(2, &[2])]),
            txn(&[append(1, 1)]),
            txn(&[read(1, &[1]), read(2, &[])]),
            txn(&[append(2, 2)]),
        ];
        assert_eq!(judged(&long_fork, &[(1, &[1]), (2, &[2])]), [Anomaly::GNonadjacent]);
    }
}
