//! `bench/run random`: random statements, whose answers by Avocet and by MySQL 9.7 must be the same.
//!
//! ```text
//!  seed ─▶ tables (schema) ─▶ expressions (expr), queries (select), ─▶ Avocet: text, prepared, cold without point plans ─┐
//!                             changes (dml)                         ─▶ MySQL: text, prepared ───────────────────────────┴▶ judge
//! ```
//!
//! A hundred seeds of queries share their tables; statements that change something have their own. What differs is made
//! smaller (`tree`): first the statements, then the tables, while the difference stays of its kind; then it is shown as a
//! script. `--seed` with the seed that is printed, and the same `--kind`, repeats it alone.
//! `judge.rs` knows the differences that COMPAT.md names.

mod dml;
mod expr;
mod judge;
mod known;
mod schema;
mod select;
mod stage;
mod tree;

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};

use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rival::Server;
use crate::rival::avocet::Avocet;
use crate::rival::mysql9::Mysql9;
use judge::{Class, Difference, Excuse, Strictness};
use schema::Table;
use select::Query;
use stage::{Outcome, Protocols, Stage};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Expressions over the rows of one table
    Expr,
    /// Queries of every shape
    Select,
    /// Statements that change a table
    Dml,
    /// All of these
    All,
}

#[derive(Args, Clone)]
pub struct Options {
    /// The first statement; those after it have the seeds that follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many statements
    #[arg(long, default_value_t = 2000)]
    cases: u64,
    /// What they are
    #[arg(long, value_enum, default_value = "all")]
    kind: Kind,
    /// Names, lengths, scales and nullability of columns must agree too
    #[arg(long)]
    metadata: bool,
    /// Numbers of warnings of queries must agree too
    #[arg(long)]
    warnings: bool,
    /// Show every statement
    #[arg(long)]
    verbose: bool,
    /// Stop after so many differences
    #[arg(long, default_value_t = 10)]
    stop_after: usize,
    /// An option passed on to `avocet serve`; may be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    serve_option: Vec<String>,
}

/// Statements whose seeds differ in what is below this share their tables.
const CASES_OF_ONE_SCHEMA: u64 = 100;

/// `bench/run random`.
pub fn command(options: &Options) -> Result<()> {
    let scratch = Scratch::new("random")?;
    let avocet = |folder: &str, more: &[&str], settings: &[&str]| -> Result<Stage> {
        let mut serve: Vec<String> = more.iter().map(ToString::to_string).collect();
        serve.push("--durability=os".into());
        serve.extend(options.serve_option.iter().cloned());
        Stage::new(Server::start(Box::new(Avocet::find(&serve)?), &scratch.path().join(folder))?, settings)
    };
    let mysql =
        Mysql9::fetch()?.with(&["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"]);
    let mysql = Server::start(Box::new(mysql), &scratch.path().join("mysql"))?;
    let names = "SET NAMES utf8mb4";
    let zone = "SET time_zone = '+00:00'";
    let mut all = All {
        mysql: Stage::new(mysql, &[names, zone])?,
        hot: avocet("hot", &["--freeze=never"], &[names, zone])?,
        cold: avocet("cold", &["--freeze=always"], &[names, zone, "SET avocet_point_path = OFF"])?,
        strict: Strictness { metadata: options.metadata, warnings: options.warnings },
        excused: BTreeMap::new(),
    };
    all.run(options)
}

/// A way in which Avocet is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Text,
    Prepared,
    Cold,
}

/// Statements in their order, and what they find.
#[derive(Clone)]
pub struct Case {
    tables: Vec<Table>,
    settings: Vec<String>,
    /// The statements change the tables: each run begins with new ones.
    is_changing: bool,
    steps: Vec<Query>,
}

struct All {
    mysql: Stage,
    hot: Stage,
    cold: Stage,
    strict: Strictness,
    excused: BTreeMap<Excuse, usize>,
}

/// A difference with the way that showed it.
struct Found {
    route: Route,
    difference: Difference,
}

/// What a comparison came to.
enum Verdict {
    Same,
    Excused(Excuse),
    Different(Difference),
}

impl All {
    fn run(&mut self, options: &Options) -> Result<()> {
        let mut tables = Vec::new();
        let mut counts: BTreeMap<Class, usize> = BTreeMap::new();
        let (mut same, mut errors) = (0_u64, 0_u64);
        for seed in options.seed..options.seed + options.cases {
            if tables.is_empty() || seed % CASES_OF_ONE_SCHEMA == 0 {
                tables = shared_tables(seed / CASES_OF_ONE_SCHEMA);
                self.create(&tables)?;
            }
            let case = case(seed, options.kind, &tables);
            if options.verbose {
                case.steps.iter().for_each(|step| println!("{seed}: {}", step.tree));
            }
            let (theirs, found) = self.compare(&case)?;
            errors += u64::from(matches!(theirs.first(), Some(Outcome::Error { .. })));
            let Some(found) = found else {
                same += 1;
                continue;
            };
            *counts.entry(found.difference.class).or_default() += 1;
            self.show(seed, case, found)?;
            tables.clear();
            if counts.values().sum::<usize>() >= options.stop_after {
                break;
            }
        }
        println!("{same} cases the same ({errors} began with an error)");
        for (excuse, count) in &self.excused {
            println!("{count} the same but for a known difference: {}", excuse.text());
        }
        for (class, count) in &counts {
            println!("{count} differences of {class:?}");
        }
        match counts.values().sum::<usize>() {
            0 => Ok(()),
            n => Err(Error::Check(format!("{n} cases differ"))),
        }
    }

    fn create(&mut self, tables: &[Table]) -> Result<()> {
        let script = creation(tables);
        [&mut self.mysql, &mut self.hot, &mut self.cold]
            .into_iter()
            .try_for_each(|stage| stage.prepare(&script))
    }

    /// What MySQL answers as text, and the first difference.
    fn compare(&mut self, case: &Case) -> Result<(Vec<Outcome>, Option<Found>)> {
        let theirs = outcomes(&mut self.mysql, case, Protocols::Text)?;
        for route in [Route::Text, Route::Prepared, Route::Cold] {
            match self.compare_by(route, case, Some(&theirs))? {
                Verdict::Same => {}
                Verdict::Excused(excuse) => {
                    *self.excused.entry(excuse).or_default() += 1;
                    break;
                }
                Verdict::Different(difference) => return Ok((theirs, Some(Found { route, difference }))),
            }
        }
        Ok((theirs, None))
    }

    fn compare_by(&mut self, route: Route, case: &Case, theirs: Option<&[Outcome]>) -> Result<Verdict> {
        let (stage, protocol) = match route {
            Route::Text => (&mut self.hot, Protocols::Text),
            Route::Prepared => (&mut self.hot, Protocols::Binary),
            Route::Cold => (&mut self.cold, Protocols::Text),
        };
        let ours = outcomes(stage, case, protocol)?;
        let asked;
        let theirs = match theirs {
            Some(theirs) if protocol == Protocols::Text => theirs,
            _ => {
                asked = outcomes(&mut self.mysql, case, protocol)?;
                &asked
            }
        };
        let mut failed = false;
        for (step, (ours, theirs)) in case.steps.iter().zip(ours.iter().zip(theirs)) {
            // MySQL goes on to look for more that is wrong with a row.
            if failed && step.is_warnings {
                continue;
            }
            failed = matches!(theirs, Outcome::Error { .. });
            if let Some(mut difference) = judge::compare(ours, theirs, step, self.strict) {
                let excuse = judge::excuse(ours, theirs, step.is_simple).or_else(|| {
                    let known = known::known(&step.tree.to_string(), ours, theirs);
                    known.map(|known| judge::Excuse::Listed(known.line))
                });
                if let Some(excuse) = excuse {
                    return Ok(Verdict::Excused(excuse));
                }
                if case.steps.len() > 1 {
                    difference.text = format!("  at {}\n{}", step.tree, difference.text);
                }
                return Ok(Verdict::Different(difference));
            }
        }
        Ok(Verdict::Same)
    }

    /// Makes a difference as small as it gets, and prints it.
    fn show(&mut self, seed: u64, mut case: Case, found: Found) -> Result<()> {
        let Found { route, mut difference } = found;
        'statements: loop {
            for smaller in smaller_steps(&case) {
                if let Some(new) = self.still_differs(route, &smaller, &difference)? {
                    (case, difference) = (smaller, new);
                    continue 'statements;
                }
            }
            break;
        }
        'tables: loop {
            for tables in smaller_tables(&case.tables) {
                let smaller = Case { tables, ..case.clone() };
                if self.create(&smaller.tables).is_err() {
                    continue;
                }
                if let Some(new) = self.still_differs(route, &smaller, &difference)? {
                    (case, difference) = (smaller, new);
                    continue 'tables;
                }
            }
            break;
        }
        println!("seed {seed}: {:?} by {route:?}", difference.class);
        let statements: Vec<String> = case.steps.iter().map(|step| step.tree.to_string()).collect();
        let is_named = |table: &&Table| statements.iter().any(|sql| sql.contains(&table.name));
        let script = case.tables.iter().filter(is_named).flat_map(Table::script);
        for sql in script.chain(case.settings.iter().cloned()).chain(statements.iter().cloned()) {
            println!("    {sql};");
        }
        println!("{}\n", difference.text);
        Ok(())
    }

    fn still_differs(
        &mut self,
        route: Route,
        case: &Case,
        as_before: &Difference,
    ) -> Result<Option<Difference>> {
        Ok(match self.compare_by(route, case, None)? {
            Verdict::Different(difference) if difference.is_like(as_before) => Some(difference),
            _ => None,
        })
    }
}

fn creation(tables: &[Table]) -> Vec<String> {
    let mut script = vec!["SET sql_mode = DEFAULT".to_owned()];
    script.extend(tables.iter().map(|table| format!("DROP TABLE IF EXISTS {}", table.name)));
    script.extend(tables.iter().flat_map(Table::script));
    script
}

fn outcomes(stage: &mut Stage, case: &Case, by: Protocols) -> Result<Vec<Outcome>> {
    if case.is_changing {
        stage.prepare(&creation(&case.tables))?;
    }
    stage.prepare(&case.settings)?;
    // SHOW WARNINGS can not be prepared.
    let protocol = |step: &Query| if step.is_warnings { Protocols::Text } else { by };
    case.steps.iter().map(|step| stage.run(&step.tree.to_string(), protocol(step))).collect()
}

fn shared_tables(number: u64) -> Vec<Table> {
    let random = &mut Random::new(number.wrapping_mul(0x9E37_79B9));
    [("t1", 30), ("t2", 15), ("t3", 5)].map(|(name, most)| Table::random(random, name, most)).into()
}

/// The case of a seed.
fn case(seed: u64, kind: Kind, tables: &[Table]) -> Case {
    let random = &mut Random::new(seed);
    let kind = match kind {
        Kind::All => *schema::pick(random, &[&Kind::Expr, &Kind::Select, &Kind::Select, &Kind::Dml]),
        kind => kind,
    };
    let query = match kind {
        Kind::Dml => return dml::case(random),
        Kind::Expr => select::expressions(random, tables),
        _ => select::Writer::new(random, tables).query(),
    };
    Case { tables: tables.to_vec(), settings: Vec::new(), is_changing: false, steps: vec![query] }
}

/// The case with fewer statements, or smaller ones.
fn smaller_steps(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let with = |steps: Vec<Query>| Case { steps, ..case.clone() };
    if case.steps.len() > 1 {
        for at in 0..case.steps.len() {
            let mut steps = case.steps.clone();
            steps.remove(at);
            all.push(with(steps));
        }
    }
    for (at, step) in case.steps.iter().enumerate() {
        for tree in step.tree.smaller() {
            let mut steps = case.steps.clone();
            steps[at].tree = tree;
            all.push(with(steps));
        }
    }
    all
}

/// The tables with fewer rows, keys and columns.
fn smaller_tables(tables: &[Table]) -> Vec<Vec<Table>> {
    let mut all = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let mut push = |smaller: Table| {
            let mut changed = tables.to_vec();
            changed[at] = smaller;
            all.push(changed);
        };
        let mut chunk = table.rows.len();
        while chunk > 0 {
            (0..table.rows.len())
                .step_by(chunk)
                .filter_map(|from| table.without_rows(from, chunk))
                .for_each(&mut push);
            chunk /= 2;
        }
        table.without_a_key().into_iter().for_each(&mut push);
        (1..table.columns.len()).for_each(|column| push(table.without_column(column)));
    }
    all
}
