//! Steps, what they do to the tables, and a seed's choice of them.

use super::{Random, Row, State, Table};

/// A change of one row. Those of rows that are not there, or are there already, do nothing.
#[derive(Clone, Debug)]
pub enum Change {
    Insert(&'static str, i64, i64),
    Update(&'static str, i64, i64),
    /// To another primary key.
    Move(&'static str, i64, i64),
    Delete(&'static str, i64),
    /// Taken back to a savepoint.
    TakenBack(Vec<Change>),
}

#[derive(Clone, Debug)]
pub enum Step {
    Database,
    Create(&'static str),
    Drop(&'static str),
    Truncate(&'static str),
    Rename(&'static str, &'static str),
    /// A unique one, on notes.
    AddIndex(&'static str),
    DropIndex(&'static str),
    /// Adds the column `extra`, or drops it.
    Alter(&'static str),
    /// The same, and rows stay where they are, if no older versions are in use. They get [`RESHAPED`].
    Reshape(&'static str),
    /// A table with the rows of another one, filled before it has its name.
    Copy(&'static str, &'static str),
    User(i64),
    Commit(Vec<Change>),
    RollBack(Vec<Change>),
    /// Stays open until the next `Release`.
    Hold(Vec<Change>),
    Release {
        commits: bool,
    },
    /// Committed one after the other, then waited for together.
    Pipeline(Vec<Vec<Change>>),
    Load {
        table: &'static str,
        first: i64,
        count: i64,
        stamp: i64,
    },
    Freeze,
    Checkpoint,
    /// A transaction that holds its snapshot until the next of these.
    Look,
    Collect,
}

const TABLES: [&str; 3] = ["a", "b", "c"];
/// What rows have in a column that they are reshaped to have.
pub const RESHAPED: i64 = -7;
/// Rows that short transactions change.
const IDS: i64 = 24;
/// Rows that a transaction which is held open changes.
const HELD: i64 = 100;
/// Rows that are loaded.
const LOADED: i64 = 1000;

impl Change {
    /// The table; a change that is taken back has none.
    pub fn table(&self) -> Option<&'static str> {
        match self {
            Self::Insert(name, ..)
            | Self::Update(name, ..)
            | Self::Move(name, ..)
            | Self::Delete(name, _) => Some(name),
            Self::TakenBack(_) => None,
        }
    }

    pub fn apply(&self, state: &mut State) {
        match *self {
            Self::Insert(name, id, stamp) => {
                let Some(table) = state.get_mut(name) else { return };
                table.rows.entry(id).or_insert_with(|| Row::of(id, stamp, table.has_extra));
            }
            Self::Update(name, id, stamp) => {
                let Some(row) = state.get_mut(name).and_then(|table| table.rows.get_mut(&id)) else { return };
                *row = Row { extra: row.extra, ..Row::of(id, stamp, false) };
            }
            Self::Move(name, id, to) => {
                let Some(table) = state.get_mut(name) else { return };
                if !table.rows.contains_key(&to)
                    && let Some(row) = table.rows.remove(&id)
                {
                    table.rows.insert(to, row);
                }
            }
            Self::Delete(name, id) => {
                if let Some(table) = state.get_mut(name) {
                    table.rows.remove(&id);
                }
            }
            Self::TakenBack(_) => {}
        }
    }
}

impl Step {
    /// What the step makes of a definition or of rows, other than those of transactions.
    pub fn apply(&self, state: &mut State) {
        match self {
            Self::Create(name) => {
                let indexes = ["PRIMARY", "by_amount"].map(str::to_owned).into();
                state.insert((*name).to_owned(), Table { indexes, ..Table::default() });
            }
            Self::Drop(name) => drop(state.remove(*name)),
            Self::Truncate(name) => state.get_mut(*name).into_iter().for_each(|table| table.rows.clear()),
            Self::Rename(from, to) => {
                if let Some(table) = state.remove(*from) {
                    state.insert((*to).to_owned(), table);
                }
            }
            Self::AddIndex(name) => {
                if let Some(table) = state.get_mut(*name) {
                    table.indexes.insert("by_note".into());
                }
            }
            Self::DropIndex(name) => {
                if let Some(table) = state.get_mut(*name) {
                    table.indexes.remove("by_note");
                }
            }
            Self::Alter(name) => {
                if let Some(table) = state.get_mut(*name) {
                    table.has_extra = !table.has_extra;
                    table.rows.values_mut().for_each(|row| row.extra = None);
                }
            }
            Self::Reshape(name) => {
                if let Some(table) = state.get_mut(*name) {
                    table.has_extra = !table.has_extra;
                    let extra = table.has_extra.then_some(RESHAPED);
                    table.rows.values_mut().for_each(|row| row.extra = extra);
                }
            }
            Self::Copy(from, to) => {
                if let Some(table) = state.get(*from) {
                    let indexes = ["PRIMARY", "by_amount"].map(str::to_owned).into();
                    state.insert((*to).to_owned(), Table { indexes, ..table.clone() });
                }
            }
            Self::Load { table: name, first, count, stamp } => {
                let Some(table) = state.get_mut(*name) else { return };
                for id in *first..first + count {
                    table.rows.insert(id, Row::of(id, *stamp, table.has_extra));
                }
            }
            Self::Commit(changes) => changes.iter().for_each(|change| change.apply(state)),
            _ => {}
        }
    }
}

/// Makes steps of random numbers.
struct Maker {
    random: Random,
    /// Of the next change.
    stamp: i64,
    /// The first loaded row, and how many there are.
    first_loaded: i64,
    loaded: i64,
}

impl Maker {
    fn table(&mut self) -> &'static str {
        // The first is used most, so that it gets old.
        TABLES[[0, 0, 0, 1, 1, 2][self.random.below(6) as usize]]
    }

    fn id(&mut self, held: bool) -> i64 {
        let id = self.random.below(IDS as u64) as i64;
        match held {
            true => HELD + id % 8,
            false if self.loaded > 0 && self.random.below(3) == 0 => {
                self.first_loaded + self.random.below(self.loaded as u64) as i64
            }
            false => id,
        }
    }

    fn change(&mut self, held: bool) -> Change {
        self.stamp += 1;
        let (table, id, stamp) = (self.table(), self.id(held), self.stamp);
        match self.random.below(12) {
            0..4 => Change::Insert(table, id, stamp),
            4..9 => Change::Update(table, id, stamp),
            9 => {
                let to = if held { HELD + 8 + id % 8 } else { self.random.below(IDS as u64) as i64 };
                Change::Move(table, id, to)
            }
            10 => Change::Delete(table, id),
            _ => Change::TakenBack((0..=self.random.below(2)).map(|_| self.change(held)).collect()),
        }
    }

    fn changes(&mut self, held: bool) -> Vec<Change> {
        (0..=self.random.below(5)).map(|_| self.change(held)).collect()
    }

    fn load(&mut self) -> Step {
        let (table, count) = (self.table(), 20 + self.random.below(120) as i64);
        let first = self.first_loaded + self.loaded;
        self.loaded += count;
        self.stamp += 1;
        Step::Load { table, first, count, stamp: self.stamp }
    }

    fn definition(&mut self) -> Step {
        let table = self.table();
        match self.random.below(15) {
            0 | 1 => Step::Create(table),
            2 => Step::Drop(table),
            3 => Step::Truncate(table),
            4 => Step::Rename(table, TABLES[self.random.below(3) as usize]),
            5 | 6 => Step::AddIndex(table),
            7 => Step::DropIndex(table),
            8..11 => Step::Alter(table),
            11 => Step::User(self.random.below(3) as i64),
            _ => Step::Reshape(table),
        }
    }

    fn step(&mut self) -> Step {
        match self.random.below(32) {
            0..11 => Step::Commit(self.changes(false)),
            11 => Step::RollBack(self.changes(false)),
            12 => Step::Hold(self.changes(true)),
            13 | 14 => Step::Release { commits: self.random.below(3) > 0 },
            15 | 16 => Step::Pipeline((0..2 + self.random.below(4)).map(|_| self.changes(false)).collect()),
            17 | 18 => self.load(),
            19..24 => self.definition(),
            24..27 => Step::Freeze,
            27..29 => Step::Checkpoint,
            29 => Step::Look,
            _ => Step::Collect,
        }
    }
}

/// The steps of a seed: tables with some rows, then `count` steps of all kinds. Nothing is written twice by workloads that
/// differ in `stamp` by enough.
pub fn steps(seed: u64, count: usize, stamp: i64) -> Vec<Step> {
    let mut maker = Maker { random: Random(seed), stamp, first_loaded: LOADED + stamp, loaded: 0 };
    let mut steps = vec![Step::Database, Step::Create("a"), Step::Create("b")];
    let mut insert = |table| {
        let rows = (0..IDS / 2).map(|id| {
            maker.stamp += 1;
            Change::Insert(table, id * 2, maker.stamp)
        });
        Step::Commit(rows.collect())
    };
    steps.extend([insert("a"), insert("b")]);
    steps.extend((0..count).map(|_| maker.step()));
    steps
}
