//! Whether Avocet did as MySQL did, and where it did not, whether docs/transactions.md says so.
//!
//! Nothing is let pass for what it looks like alone: each difference is traced to the lock of InnoDB's that made it. Only
//! these are let pass, and the schedule ends there, since the sessions are in different states from then on:
//!
//! 1. MySQL waits, or ends a deadlock, where Avocet goes on, and whoever is waited for runs at REPEATABLE READ and has looked
//!    at rows that it did not want, or at the end of a range: InnoDB keeps these locked there.
//! 2. The same, if the lock that is wanted is on a gap, or an INSERT or REPLACE waits for one that covers a gap, too: ranges at
//!    REPEATABLE READ, deleted rows in them, and checks of unique keys.
//! 3. The same, if whoever waits scans the table: InnoDB waits for each row, Avocet for those that match. Or the row lies
//!    behind the range that is read: InnoDB ends a range there.
//! 4. The same, if whoever is waited for has a failed statement, a row that was ignored or replaced as a duplicate, a
//!    ROLLBACK TO, or a locking read behind it that found no row to match: InnoDB keeps these locks.
//! 5. The same, if Avocet tells of a duplicate of a secondary key and the lock that is wanted is on that key's entry:
//!    InnoDB locks entries, and fails at once too unless somebody came to the row by this one.
//!    Or the entry lies behind all keys that are inserted: InnoDB checks a unique key up to the next one. Or a deadlock is about
//!    one row, between its entry and itself.
//! 6. NOWAIT and SKIP LOCKED show locks of 1 and 4 without waiting.
//! 7. Both end a deadlock, with another victim. Or a step lets several go on who waited, each for a lock of its own: they run
//!    side by side from then on, and which is the first to reach a row that both want, the threads of each server decide.
//!
//! 8. A deadlock of Avocet's alone, or a wait while others wait already, if somebody goes along a plain secondary index: rows of
//!    one key come in another order, and whoever waits for one holds others.
//! 9. Otherwise, where Avocet waits and MySQL does not, there is one excuse: an UPDATE fails on a duplicate in MySQL. Avocet
//!    locks all rows of a statement before it changes the first.

use std::collections::BTreeMap;

use super::innodb::Wait;
use super::schedule::{Level, Schedule, Traits};
use super::stage::{Answers, Outcome, Stage};
use crate::error::Result;

/// MySQL's number of a duplicate key.
const DUPLICATE: Outcome = Outcome::Error(1062);
/// MySQL's number of a deadlock.
const DEADLOCK: Outcome = Outcome::Error(1213);

/// Why the servers may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Excuse {
    RepeatableRead,
    Gap,
    Scan,
    RangeEnd,
    KeptLock,
    UniqueEntry,
    BehindKey,
    Entry,
    RowByRow,
    Ties,
    InsertersDeadlock,
    Victim,
    Order,
}

impl Excuse {
    pub fn text(self) -> &'static str {
        match self {
            Excuse::RepeatableRead => "InnoDB keeps unmatched rows locked at REPEATABLE READ",
            Excuse::Gap => "InnoDB locks a gap",
            Excuse::Scan => "InnoDB waits for rows that do not match in a scan",
            Excuse::RangeEnd => "InnoDB waits for the row behind a range",
            Excuse::KeptLock => "InnoDB keeps a lock of what failed, was ignored or taken back",
            Excuse::UniqueEntry => {
                "InnoDB waits for the entry of a secondary key before it tells of a duplicate"
            }
            Excuse::BehindKey => "InnoDB waits for the entry behind a unique key that it checks",
            Excuse::Entry => "InnoDB locks an index's entry before its row, and others the other way round",
            Excuse::RowByRow => "InnoDB changes a row before it locks the next",
            Excuse::Ties => "rows of one secondary key come in the order of the primary key in InnoDB",
            Excuse::InsertersDeadlock => "InnoDB has those deadlock who wait to insert one key",
            Excuse::Victim => "another victim of a deadlock",
            Excuse::Order => "several went on together, in another order",
        }
    }
}

/// What the judge remembers of a session.
#[derive(Clone, Copy, Default)]
struct Memory {
    /// InnoDB may hold more for its transaction than Avocet does.
    keeps_more: bool,
    in_transaction: bool,
    /// At REPEATABLE READ, InnoDB holds rows for it that it looked at and did not want.
    keeps_unwanted: bool,
    /// The statement that runs had to wait.
    waited: bool,
    running: Traits,
}

pub struct Judge<'s> {
    schedule: &'s Schedule,
    memory: Vec<Memory>,
    /// By session: the text of the statement that runs.
    running: Vec<String>,
    /// What sessions wait for in MySQL since the last step.
    waits: BTreeMap<usize, Wait>,
}

/// What is made of a step.
pub enum Verdict {
    Same,
    Excused(Excuse),
    Different(String),
}

impl Judge<'_> {
    pub fn new(schedule: &Schedule) -> Judge<'_> {
        Judge {
            schedule,
            memory: vec![Memory::default(); schedule.levels.len()],
            running: vec![String::new(); schedule.levels.len()],
            waits: BTreeMap::new(),
        }
    }

    pub fn begins(&mut self, session: usize, sql: &str, traits: Traits) {
        sql.clone_into(&mut self.running[session]);
        let memory = &mut self.memory[session];
        memory.running = traits;
        memory.waited = false;
        memory.in_transaction |= sql == "BEGIN";
        memory.keeps_more |= traits.goes_back;
        memory.keeps_unwanted |=
            traits.looks_beyond && self.schedule.levels[session] == Level::RepeatableRead;
    }

    /// Notes what statements came to.
    fn note(&mut self, answers: &Answers) {
        for (session, outcome) in answers {
            let memory = &mut self.memory[*session];
            let ended = memory.running.ends || !memory.in_transaction || *outcome == DEADLOCK;
            if ended {
                *memory = Memory::default();
            } else {
                // A duplicate may have been met without an error: ignored, replaced, updated.
                memory.keeps_more |= memory.running.inserts || matches!(outcome, Outcome::Error(_));
                // A row found by its key before the rest of WHERE is looked at stays locked, and so does one that was
                // waited for.
                memory.keeps_more |= memory.running.locks && *outcome == Outcome::Rows(Vec::new());
                memory.keeps_more |= memory.waited;
            }
        }
    }

    /// Compares what a step came to on both; `waited` are those who waited before.
    pub fn compare(
        &mut self,
        avocet: (&Answers, &mut Stage<'_>),
        mysql: (&Answers, &mut Stage<'_>),
        waited: &[usize],
    ) -> Result<Verdict> {
        let (ours, theirs) = (avocet.0, mysql.0);
        if ours == theirs {
            self.note(ours);
            self.note_waits(mysql.1)?;
            return Ok(Verdict::Same);
        }
        let excuse = self.excuse(ours, theirs, mysql.1, waited)?;
        Ok(match excuse {
            Some(excuse) => Verdict::Excused(excuse),
            None => Verdict::Different(self.describe(ours, theirs, mysql.1)?),
        })
    }

    fn note_waits(&mut self, mysql: &mut Stage<'_>) -> Result<()> {
        self.waits.clear();
        for session in mysql.waiting().to_vec() {
            self.memory[session].waited = true;
            self.waits.extend(mysql.wait_of(session)?.map(|wait| (session, wait)));
        }
        Ok(())
    }

    /// Who waited before the step and has got what it waited for, on either server.
    fn let_go(&self, ours: &Answers, theirs: &Answers, mysql: &mut Stage<'_>) -> Result<Vec<usize>> {
        let mut free = Vec::new();
        for (session, before) in &self.waits {
            let answered = ours.contains_key(session) || theirs.contains_key(session);
            if answered || mysql.wait_of(*session)?.is_none_or(|now| !now.is_for_the_lock_of(before)) {
                free.push(*session);
            }
        }
        Ok(free)
    }

    fn describe(&self, ours: &Answers, theirs: &Answers, mysql: &mut Stage<'_>) -> Result<String> {
        let mut lines = Vec::new();
        for session in 0..self.memory.len() {
            let (a, b) = (ours.get(&session), theirs.get(&session));
            if a != b {
                let say = |outcome: Option<&Outcome>| {
                    outcome.map_or_else(|| "waits".to_owned(), ToString::to_string)
                };
                lines.push(format!("@{}: avocet {}, mysql {}", session + 1, say(a), say(b)));
                if b.is_none()
                    && let Some(wait) = mysql.wait_of(session)?
                {
                    lines.push(format!("    mysql waits {wait}"));
                }
            }
        }
        if theirs.values().any(|outcome| *outcome == DEADLOCK) {
            lines.push(mysql.last_deadlock()?.text);
        }
        Ok(lines.join("\n"))
    }

    fn excuse(
        &self,
        ours: &Answers,
        theirs: &Answers,
        mysql: &mut Stage<'_>,
        waited: &[usize],
    ) -> Result<Option<Excuse>> {
        // Of several who are let go on together, one is the first, and the others find what it leaves.
        let free = self.let_go(ours, theirs, mysql)?;
        let differs = |who: &usize| ours.get(who) != theirs.get(who);
        if free.len() > 1 && (0..self.memory.len()).filter(differs).all(|who| free.contains(&who)) {
            return Ok(Some(Excuse::Order));
        }
        let is_deadlock = |answers: &Answers| answers.values().any(|outcome| *outcome == DEADLOCK);
        if is_deadlock(theirs) {
            if is_deadlock(ours) {
                return Ok(Some(Excuse::Victim));
            }
            return self.excuse_deadlock(mysql);
        }
        if is_deadlock(ours) {
            // Who waits in MySQL for a lock that Avocet does not know has locked less there.
            let kept =
                self.waits.values().any(|wait| wait.blockers.iter().any(|b| self.memory[*b].keeps_more));
            let ties = self.memory.iter().any(|memory| memory.running.along == Some("k"));
            return Ok(if ties { Some(Excuse::Ties) } else { kept.then_some(Excuse::KeptLock) });
        }
        let row_by_row = |(session, outcome): (&usize, &Outcome)| {
            !ours.contains_key(session) && *outcome == DUPLICATE && !self.memory[*session].running.inserts
        };
        if theirs.iter().any(row_by_row) {
            return Ok(Some(Excuse::RowByRow));
        }
        let goes_along_k = |session: &usize| self.memory[*session].running.along == Some("k");
        if theirs.keys().any(|session| !ours.contains_key(session)) && waited.iter().any(goes_along_k) {
            return Ok(Some(Excuse::Ties));
        }
        for (session, outcome) in ours {
            match theirs.get(session) {
                Some(other) if other == outcome => {}
                Some(_) if self.memory[*session].running.shows_locks => {
                    return Ok(self.excuse_shown(*session));
                }
                Some(_) => return Ok(None),
                None => {
                    let Some(wait) = mysql.wait_of(*session)? else { return Ok(None) };
                    return match self.excuse_wait(*session, outcome, &wait) {
                        None => self.excuse_range(*session, &wait, mysql),
                        excuse => Ok(excuse),
                    };
                }
            }
        }
        Ok(None)
    }

    fn excuse_wait(&self, session: usize, outcome: &Outcome, wait: &Wait) -> Option<Excuse> {
        let running = self.memory[session].running;
        if wait.is_about_gaps() || running.inserts && wait.is_held_with_gap() {
            return Some(Excuse::Gap);
        }
        if wait.blockers.iter().any(|b| self.memory[*b].keeps_unwanted) {
            return Some(Excuse::RepeatableRead);
        }
        if wait.blockers.iter().any(|b| self.memory[*b].keeps_more) {
            return Some(Excuse::KeptLock);
        }
        let tells_duplicate =
            *outcome == DUPLICATE || running.ignores && matches!(outcome, Outcome::Affected(_));
        if tells_duplicate && wait.index == "u" {
            return Some(Excuse::UniqueEntry);
        }
        let checks = running.inserts && wait.index == "u" && !wait.mode.contains("REC_NOT_GAP");
        if checks && wait.key().is_some_and(|key| !unique_keys(&self.running[session]).contains(&key)) {
            return Some(Excuse::BehindKey);
        }
        running.scans.then_some(Excuse::Scan)
    }

    /// Whether the row that is waited for lies behind the range that is read.
    fn excuse_range(&self, session: usize, wait: &Wait, mysql: &mut Stage<'_>) -> Result<Option<Excuse>> {
        let (Some((index, end)), Some(key)) = (self.memory[session].running.range, wait.key()) else {
            return Ok(None);
        };
        let beyond = if wait.index == index {
            key > end
        } else {
            let row = mysql.look(&format!("SELECT 1 FROM t WHERE id = {key} AND u > {end}"))?;
            row == Outcome::Rows(vec!["1".into()])
        };
        Ok(beyond.then_some(Excuse::RangeEnd))
    }

    /// What others hold in MySQL, and not in Avocet, was shown.
    fn excuse_shown(&self, session: usize) -> Option<Excuse> {
        let mut others = (0..self.memory.len()).filter(|other| *other != session);
        if others.clone().any(|other| self.memory[other].keeps_unwanted) {
            return Some(Excuse::RepeatableRead);
        }
        others.any(|other| self.memory[other].keeps_more).then_some(Excuse::KeptLock)
    }

    fn excuse_deadlock(&self, mysql: &mut Stage<'_>) -> Result<Option<Excuse>> {
        let deadlock = mysql.last_deadlock()?;
        if deadlock.is_of_entry_and_row() {
            return Ok(Some(Excuse::Entry));
        }
        let locks = deadlock.text.lines().filter(|line| line.starts_with("RECORD LOCKS"));
        if locks.clone().any(|line| line.contains("gap before rec") || line.contains("insert intention")) {
            return Ok(Some(Excuse::Gap));
        }
        let shares = self.schedule.steps.iter().any(|step| step.statement.sql.contains("FOR SHARE"));
        if !shares && locks.clone().any(|line| line.contains("lock mode S")) {
            return Ok(Some(Excuse::InsertersDeadlock));
        }
        if self.memory.iter().any(|memory| memory.keeps_unwanted) {
            return Ok(Some(Excuse::RepeatableRead));
        }
        if self.memory.iter().any(|memory| memory.keeps_more) {
            return Ok(Some(Excuse::KeptLock));
        }
        Ok(self.memory.iter().any(|memory| memory.running.scans).then_some(Excuse::Scan))
    }
}

/// The values for `u`, the second column, that an INSERT or REPLACE gives.
fn unique_keys(sql: &str) -> Vec<i64> {
    let rows = sql.split('(').skip(1).map(|row| row.split(')').next().unwrap_or_default());
    rows.filter_map(|row| row.split(',').nth(1)?.trim().parse().ok()).collect()
}
