//! A schedule: what a table holds, how each session is isolated, and their statements in one order.

use super::sql;
use crate::random::Random;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    ReadCommitted,
    RepeatableRead,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
        }
    }
}

/// What a statement does, as far as the judge must know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traits {
    /// Looks at all rows, or all of a part that no index narrows as the condition does.
    pub scans: bool,
    /// Locks rows that it then does not want, or whatever lies behind a range.
    pub looks_beyond: bool,
    /// NOWAIT or SKIP LOCKED: it shows what others hold.
    pub shows_locks: bool,
    /// The index that it reads a range of, and where that ends.
    pub range: Option<(&'static str, i64)>,
    /// The index that it goes along.
    pub along: Option<&'static str>,
    /// A read that locks.
    pub locks: bool,
    pub inserts: bool,
    pub ignores: bool,
    /// Ends the transaction, or all that it did since a savepoint.
    pub ends: bool,
    pub goes_back: bool,
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: String,
    pub traits: Traits,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub session: usize,
    pub statement: Statement,
}

#[derive(Clone, Debug)]
pub struct Schedule {
    pub setup: Vec<String>,
    pub levels: Vec<Level>,
    pub steps: Vec<Step>,
}

impl Schedule {
    pub fn random(seed: u64, levels: Option<Level>) -> Schedule {
        let mut random = Random::new(seed);
        let sessions = random.uniform(2, 4) as usize;
        let mixed = random.percent(20);
        let common = if random.percent(75) { Level::ReadCommitted } else { Level::RepeatableRead };
        let level = |random: &mut Random| match levels {
            Some(level) => level,
            None if !mixed => common,
            None if random.percent(50) => Level::ReadCommitted,
            None => Level::RepeatableRead,
        };
        let levels: Vec<Level> = (0..sessions).map(|_| level(&mut random)).collect();
        let scripts = (0..sessions).map(|_| script(&mut random)).collect();
        Schedule::of(&mut random, levels, scripts)
    }

    /// Transactions at REPEATABLE READ that read, lock and change what others change meanwhile. All go by single keys, so
    /// that few locks of gaps are in the way.
    pub fn views(seed: u64) -> Schedule {
        let mut random = Random::new(seed);
        let readers = random.uniform(1, 2) as usize;
        let mut scripts: Vec<Vec<Statement>> = (0..readers).map(|_| reader(&mut random)).collect();
        scripts.push((0..random.uniform(3, 8)).map(|_| sql::change_by_key(&mut random)).collect());
        Schedule::of(&mut random, vec![Level::RepeatableRead; scripts.len()], scripts)
    }

    fn of(random: &mut Random, levels: Vec<Level>, mut scripts: Vec<Vec<Statement>>) -> Schedule {
        let mut steps = Vec::new();
        while let Some(session) = pick(random, &scripts) {
            // A few statements of one session in a row, as real clients have it.
            for _ in 0..random.uniform(1, 3).min(scripts[session].len() as i64) {
                steps.push(Step { session, statement: scripts[session].remove(0) });
            }
        }
        Schedule { setup: sql::setup(random), levels, steps }
    }

    /// The schedule without some of its steps; `None` if nothing is left.
    pub fn without(&self, from: usize, count: usize) -> Option<Schedule> {
        let mut fewer = self.clone();
        fewer.steps.drain(from..(from + count).min(self.steps.len()));
        (!fewer.steps.is_empty()).then_some(fewer)
    }
}

/// A session that has something left to do.
fn pick(random: &mut Random, scripts: &[Vec<Statement>]) -> Option<usize> {
    let busy: Vec<usize> = (0..scripts.len()).filter(|s| !scripts[*s].is_empty()).collect();
    (!busy.is_empty()).then(|| busy[random.uniform(0, busy.len() as i64 - 1) as usize])
}

fn control(sql: &str) -> Statement {
    let goes_back = sql.starts_with("ROLLBACK TO");
    let ends = !goes_back && (sql == "COMMIT" || sql == "ROLLBACK");
    Statement { sql: sql.into(), traits: Traits { ends, goes_back, ..Traits::default() } }
}

/// A transaction that looks at what it sees again and again.
fn reader(random: &mut Random) -> Vec<Statement> {
    let mut script = vec![control("BEGIN"), sql::view(random)];
    for _ in 0..random.uniform(2, 6) {
        script.push(if random.percent(50) { sql::view(random) } else { sql::change_by_key(random) });
        if random.percent(10) {
            script.push(control("SAVEPOINT a"));
            script.push(sql::change_by_key(random));
            script.push(sql::view(random));
            script.push(control("ROLLBACK TO a"));
        }
    }
    script.extend([sql::view(random), control(if random.percent(75) { "COMMIT" } else { "ROLLBACK" })]);
    script
}

/// One to three transactions.
fn script(random: &mut Random) -> Vec<Statement> {
    let mut script = Vec::new();
    for _ in 0..random.uniform(1, 3) {
        if random.percent(25) {
            script.push(sql::statement(random));
            continue;
        }
        script.push(control("BEGIN"));
        let savepoint = random.percent(15);
        for _ in 0..random.uniform(1, 3) {
            script.push(sql::statement(random));
        }
        if savepoint {
            script.push(control("SAVEPOINT a"));
            script.push(sql::statement(random));
            script.push(control("ROLLBACK TO a"));
            if random.percent(50) {
                script.push(sql::statement(random));
            }
        }
        script.push(control(if random.percent(75) { "COMMIT" } else { "ROLLBACK" }));
    }
    script
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.setup.iter().try_for_each(|sql| writeln!(f, "    {sql};"))?;
        for (session, level) in self.levels.iter().enumerate() {
            writeln!(f, "    @{}  {}", session + 1, level.name())?;
        }
        self.steps
            .iter()
            .try_for_each(|step| writeln!(f, "    @{}  {}", step.session + 1, step.statement.sql))
    }
}
