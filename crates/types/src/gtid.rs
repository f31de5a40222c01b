//! Global transaction identifiers, and what is in force of a source by them: MySQL's sets, `uuid:1-5:7,uuid:tag:1-3`, and MariaDB's
//! positions, `0-1-17,1-4-3`: the last transaction of each domain.
//! MySQL 8.4 Reference Manual, 19.1.3.1 "GTID Format and Storage"; MariaDB Server Documentation, "Global Transaction ID".
//!
//! Invariants:
//! 1. Intervals of one source are ascending, do not touch, and none is empty.
//! 2. There is no source without an interval.

mod mysql;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

pub use mysql::MalformedGtids;

/// Where transactions come from: a server's UUID, and the tag that it gave them, which is mostly empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub uuid: [u8; 16],
    pub tag: String,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gtid {
    /// MySQL's.
    Numbered { origin: Origin, number: u64 },
    /// MariaDB's: the domain, and its transaction.
    InDomain(u32, DomainGtid),
}

/// A transaction of a domain: the server that it was made on, and its number, which grows within the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainGtid {
    pub server: u32,
    pub sequence: u64,
}

/// Transactions that are in force: a set of MySQL's, or all of MariaDB's up to one of each domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    /// First and last number of each interval.
    intervals: BTreeMap<Origin, Vec<(u64, u64)>>,
    /// The last transaction of each domain.
    domains: BTreeMap<u32, DomainGtid>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is no set of GTIDs")]
pub struct BadGtids(String);

impl GtidSet {
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty() && self.domains.is_empty()
    }

    /// Whether there are transactions of a MySQL in it.
    pub fn is_of_mysql(&self) -> bool {
        !self.intervals.is_empty()
    }

    /// Whether there are transactions of a MariaDB in it.
    pub fn is_of_mariadb(&self) -> bool {
        !self.domains.is_empty()
    }

    pub fn add(&mut self, gtid: &Gtid) {
        match gtid {
            // The log's order is the domain's: a number may be lower than the one before if two servers were written to.
            Gtid::InDomain(domain, of_domain) => {
                self.domains.insert(*domain, *of_domain);
            }
            Gtid::Numbered { origin, number } => match self.intervals.get_mut(origin) {
                // Transactions mostly come in order.
                Some(of_origin) => match of_origin.last_mut() {
                    Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
                    _ => insert(of_origin, *number, *number),
                },
                None => {
                    self.intervals.insert(origin.clone(), vec![(*number, *number)]);
                }
            },
        }
    }

    /// Adds the transactions `first..=last` of a source.
    pub fn add_range(&mut self, origin: &Origin, first: u64, last: u64) {
        insert(self.intervals.entry(origin.clone()).or_default(), first, last);
    }

    /// Adds all of another set.
    pub fn add_all(&mut self, other: &Self) {
        for (origin, intervals) in &other.intervals {
            intervals.iter().for_each(|&(first, last)| self.add_range(origin, first, last));
        }
        for (domain, last) in &other.domains {
            let own = self.domains.entry(*domain).or_insert(*last);
            if own.sequence < last.sequence {
                *own = *last;
            }
        }
    }

    /// Those of MySQLs alone.
    pub fn of_mysql(&self) -> Self {
        Self { intervals: self.intervals.clone(), domains: BTreeMap::new() }
    }

    /// All but those of one source.
    pub fn without(&self, origin: &Origin) -> Self {
        let mut set = self.clone();
        set.intervals.remove(origin);
        set
    }

    /// Those of MySQLs that are not in the other set.
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = Self::default();
        for (origin, own) in &self.intervals {
            let taken = other.intervals.get(origin).map_or(&[][..], Vec::as_slice);
            let mut rest = Vec::new();
            for &(first, last) in own {
                let mut from = first;
                let at = taken.partition_point(|&(_, end)| end < first);
                for &(start, end) in taken[at..].iter().take_while(|&&(start, _)| start <= last) {
                    if from < start {
                        rest.push((from, start - 1));
                    }
                    from = end.saturating_add(1);
                }
                if from <= last {
                    rest.push((from, last));
                }
            }
            if !rest.is_empty() {
                left.intervals.insert(origin.clone(), rest);
            }
        }
        left
    }

    /// How many of a source there are without a gap, from the first on.
    pub fn dense_up_to(&self, origin: &Origin) -> u64 {
        match self.intervals.get(origin).and_then(|of| of.first()) {
            Some((1, last)) => *last,
            _ => 0,
        }
    }

    pub fn contains(&self, gtid: &Gtid) -> bool {
        match gtid {
            Gtid::Numbered { origin, number } => {
                self.intervals.get(origin).is_some_and(|of| covers(of, *number, *number))
            }
            Gtid::InDomain(domain, wanted) => {
                self.domains.get(domain).is_some_and(|own| own.sequence >= wanted.sequence)
            }
        }
    }

    /// Whether all of the other set's transactions are in this one.
    pub fn contains_all(&self, other: &Self) -> bool {
        let are_numbered = other.intervals.iter().all(|(origin, wanted)| {
            let own = self.intervals.get(origin).map_or(&[][..], Vec::as_slice);
            wanted.iter().all(|&(first, last)| covers(own, first, last))
        });
        are_numbered
            && other.domains.iter().all(|(domain, wanted)| {
                self.domains.get(domain).is_some_and(|own| own.sequence >= wanted.sequence)
            })
    }

    /// How many of the other set's transactions are not in this one.
    pub fn missing_of(&self, other: &Self) -> u64 {
        let numbered = other.intervals.iter().map(|(origin, wanted)| {
            let own = self.intervals.get(origin).map_or(&[][..], Vec::as_slice);
            wanted.iter().map(|&(first, last)| last - first + 1 - covered(own, first, last)).sum::<u64>()
        });
        let of_domains = other.domains.iter().map(|(domain, wanted)| {
            let own = self.domains.get(domain).map_or(0, |own| own.sequence);
            wanted.sequence.saturating_sub(own)
        });
        numbered.chain(of_domains).sum()
    }

    /// Sources with their intervals.
    pub fn iter(&self) -> impl Iterator<Item = (&Origin, &[(u64, u64)])> {
        self.intervals.iter().map(|(origin, intervals)| (origin, intervals.as_slice()))
    }
}

/// How many numbers of a range are in the intervals.
fn covered(intervals: &[(u64, u64)], first: u64, last: u64) -> u64 {
    let at = intervals.partition_point(|&(_, end)| end < first);
    let within = intervals[at..].iter().take_while(|&&(start, _)| start <= last);
    within.map(|&(start, end)| end.min(last) - start.max(first) + 1).sum()
}

fn covers(intervals: &[(u64, u64)], first: u64, last: u64) -> bool {
    let at = intervals.partition_point(|&(_, end)| end < first);
    intervals.get(at).is_some_and(|&(start, end)| start <= first && last <= end)
}

fn insert(intervals: &mut Vec<(u64, u64)>, first: u64, last: u64) {
    // Those that overlap the new one or touch it.
    let from = intervals.partition_point(|&(_, end)| end.saturating_add(1) < first);
    let to = intervals.partition_point(|&(start, _)| start <= last.saturating_add(1));
    let joined = intervals[from..to.max(from)].iter();
    let joined = joined.fold((first, last), |(a, b), &(start, end)| (a.min(start), b.max(end)));
    intervals.splice(from..to.max(from), [joined]);
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.uuid.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        if self.tag.is_empty() { Ok(()) } else { write!(f, ":{}", self.tag) }
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbered { origin, number } => write!(f, "{origin}:{number}"),
            Self::InDomain(domain, DomainGtid { server, sequence }) => {
                write!(f, "{domain}-{server}-{sequence}")
            }
        }
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (origin, intervals)) in self.intervals.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{origin}")?;
            for &(first, last) in intervals {
                if first == last { write!(f, ":{first}")? } else { write!(f, ":{first}-{last}")? }
            }
        }
        for (at, (domain, DomainGtid { server, sequence })) in self.domains.iter().enumerate() {
            let comma = if at > 0 || !self.intervals.is_empty() { "," } else { "" };
            write!(f, "{comma}{domain}-{server}-{sequence}")?;
        }
        Ok(())
    }
}

/// The bytes of a server's UUID.
pub fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn interval(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (0 < first && first <= last).then_some((first, last))
}

/// `domain-server-sequence`.
fn in_domain(text: &str) -> Option<(u32, DomainGtid)> {
    let mut numbers = text.split('-');
    let domain = numbers.next()?.parse().ok()?;
    let gtid = DomainGtid { server: numbers.next()?.parse().ok()?, sequence: numbers.next()?.parse().ok()? };
    numbers.next().is_none().then_some((domain, gtid))
}

impl FromStr for GtidSet {
    type Err = BadGtids;

    fn from_str(text: &str) -> Result<Self, BadGtids> {
        let bad = || BadGtids(text.to_owned());
        let mut set = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some((domain, gtid)) = in_domain(part) {
                if set.domains.insert(domain, gtid).is_some() {
                    return Err(bad());
                }
                continue;
            }
            let mut pieces = part.split(':').map(str::trim);
            let uuid = pieces.next().and_then(uuid).ok_or_else(bad)?;
            let mut tag = String::new();
            for piece in pieces {
                if piece.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    tag = piece.to_ascii_lowercase();
                    continue;
                }
                let (first, last) = interval(piece).ok_or_else(bad)?;
                let origin = Origin { uuid, tag: tag.clone() };
                insert(set.intervals.entry(origin).or_default(), first, last);
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> GtidSet {
        text.parse().expect("a set")
    }

    #[test]
    fn sets_round_trip_in_their_canonical_form() {
        assert_eq!(set(&format!("{A}:1-3:5:4,{A}:tag:2")).to_string(), format!("{A}:1-5,{A}:tag:2"));
        assert_eq!(set(&format!("{A}:1:tag:2-3:5")).to_string(), format!("{A}:1,{A}:tag:2-3:5"));
        assert_eq!(set("").to_string(), "");
        assert_eq!(set(&format!("{A}:7,\n{A}:1")).to_string(), format!("{A}:1:7"));
        for bad in ["x:1", &format!("{A}:0"), &format!("{A}:5-4"), &format!("{A}:a b:")] {
            assert!(bad.parse::<GtidSet>().is_err(), "{bad}");
        }
    }

    #[test]
    fn adding_joins_intervals() {
        let origin = Origin { uuid: uuid(A).expect("a UUID"), tag: String::new() };
        let mut all = GtidSet::default();
        for number in [5, 1, 3, 2, 9, 4, 8] {
            let one = set(&format!("{A}:{number}"));
            assert!(!all.contains_all(&one));
            all.add(&Gtid::Numbered { origin: origin.clone(), number });
            assert!(all.contains_all(&one));
        }
        assert_eq!(all.to_string(), format!("{A}:1-5:8-9"));
        let more = set(&format!("{A}:1-9:20"));
        assert!(more.contains_all(&all) && !all.contains_all(&more));
    }

    #[test]
    fn parts_of_sets() {
        let (one, other) = (format!("{A}:1-5"), "4e11fa47-71ca-11e1-9e33-c80aa9429562:1");
        let all = set(&format!("{one},{other},0-1-5"));
        let origin = Origin { uuid: uuid(A).expect("a UUID"), tag: String::new() };
        assert_eq!(all.of_mysql(), set(&format!("{one},{other}")));
        assert_eq!(all.without(&origin), set(&format!("{other},0-1-5")));
    }

    #[test]
    fn what_one_set_has_and_another_lacks() {
        let minus = |one: &str, other: &str| {
            let of = |text: &str| set(&text.replace('A', A));
            of(one).minus(&of(other)).to_string().replace(A, "A")
        };
        assert_eq!(minus("A:1-10", "A:3-5:9"), "A:1-2:6-8:10");
        assert_eq!(minus("A:3-5:9", "A:1-10"), "");
        assert_eq!(minus("A:1-5,A:t:1-5", "A:1:5,A:t:2-3"), "A:2-4,A:t:1:4-5");
        assert_eq!(minus("A:1-5", "A:t:1-5"), "A:1-5");
        assert_eq!(minus("A:1-3:7-9", "A:2-8"), "A:1:9");
    }

    #[test]
    fn positions_have_the_last_transaction_of_each_domain() {
        let mut position = set("4294967295-2-18446744073709551615, 0-1-5");
        assert_eq!(position.to_string(), "0-1-5,4294967295-2-18446744073709551615");
        assert!(position.is_of_mariadb() && !position.is_of_mysql());
        assert!(position.contains_all(&set("0-7-5")), "the domain's order is that of its numbers");
        assert!(!position.contains_all(&set("0-1-6")) && !position.contains_all(&set("1-1-1")));
        position.add(&Gtid::InDomain(0, DomainGtid { server: 2, sequence: 4 }));
        position.add(&Gtid::InDomain(1, DomainGtid { server: 2, sequence: 1 }));
        assert_eq!(position.to_string(), "0-2-4,1-2-1,4294967295-2-18446744073709551615");
        for bad in ["0-1", "0-1-2-3", "0-1-x", "4294967296-1-1", "0-1-1,0-2-2", "-1-1-1"] {
            assert!(bad.parse::<GtidSet>().is_err(), "{bad}");
        }
        let both = format!("{A}:1,0-1-5");
        assert_eq!(set(&both).to_string(), both);
    }

    proptest::proptest! {
        #[test]
        fn a_set_is_what_was_put_in(numbers in proptest::collection::vec(1u64..40, 0..30)) {
            let origin = Origin { uuid: [7; 16], tag: "t".into() };
            let mut all = GtidSet::default();
            for &number in &numbers {
                all.add(&Gtid::Numbered { origin: origin.clone(), number });
            }
            for number in 1..40 {
                let mut one = GtidSet::default();
                one.add(&Gtid::Numbered { origin: origin.clone(), number });
                proptest::prop_assert_eq!(all.contains_all(&one), numbers.contains(&number));
            }
            proptest::prop_assert_eq!(set(&all.to_string()), all);
        }

        #[test]
        fn a_position_is_its_text(gtids in proptest::collection::vec((0u32..5, 0u32..4, 0u64..9), 0..30)) {
            let mut position = GtidSet::default();
            for &(domain, server, sequence) in &gtids {
                position.add(&Gtid::InDomain(domain, DomainGtid { server, sequence }));
            }
            proptest::prop_assert_eq!(set(&position.to_string()), position);
        }
    }
}
