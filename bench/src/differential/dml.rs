//! Random statements that change a table: what they say of themselves, their warnings, and what the table holds then.

use super::Case;
use super::expr::Maker;
use super::schema::{Column, Source, Table, pick};
use super::select::Query;
use super::tree::Tree;
use crate::random::Random;

/// Out of strict mode values are made to fit.
const MODES: &[&str] =
    &["DEFAULT", "DEFAULT", "DEFAULT", "''", "'STRICT_ALL_TABLES'", "'NO_ENGINE_SUBSTITUTION'"];

/// A few statements on tables of their own, with looks at warnings and rows.
pub fn case(random: &mut Random) -> Case {
    let mut tables = vec![Table::random(random, "d1", 8), Table::random(random, "d2", 6)];
    if random.percent(30) {
        tables[0].auto_increment();
    }
    let mode = pick(random, MODES);
    let mut steps = Vec::new();
    for _ in 0..random.uniform(1, 3) {
        steps.push(Query::plain(statement(random, &tables[0], &tables[1])));
        steps.push(Query { is_warnings: true, ..Query::plain(Tree::text("SHOW WARNINGS")) });
        steps.push(Query::plain(Tree::text("SELECT LAST_INSERT_ID()")));
        // Several rows may have one id: their order says nothing.
        steps.push(Query::plain(Tree::text("SELECT * FROM d1 ORDER BY id")));
    }
    // A statement that fails may leave any number there, for the cases that follow.
    let settings = vec![format!("SET sql_mode = {mode}"), "DO LAST_INSERT_ID(0)".to_owned()];
    Case { tables, settings, is_changing: true, steps }
}

fn statement(random: &mut Random, to: &Table, from: &Table) -> Tree {
    match random.uniform(1, 10) {
        1..=3 => insert(random, to),
        4 | 5 => insert_select(random, to, from),
        6..=8 => update(random, to, from),
        _ => delete(random, to, from),
    }
}

fn ignore(random: &mut Random) -> &'static str {
    if random.percent(20) { "IGNORE " } else { "" }
}

/// INSERT, INSERT IGNORE or REPLACE; whether ON DUPLICATE KEY UPDATE may follow.
fn verb(random: &mut Random) -> (&'static str, bool) {
    match random.uniform(1, 6) {
        1 => ("REPLACE INTO ", false),
        2 => ("INSERT IGNORE INTO ", true),
        _ => ("INSERT INTO ", true),
    }
}

/// The columns that are given, `id` first.
fn given(random: &mut Random, to: &Table) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![to.columns[0].clone()];
    columns.extend(to.columns[1..].iter().filter(|_| random.percent(75)).cloned());
    columns
}

fn names(columns: &[Column]) -> Tree {
    Tree::text(columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join(", "))
}

fn insert(random: &mut Random, to: &Table) -> Tree {
    let (verb, may_update) = verb(random);
    let columns = given(random, to);
    let rows = (0..random.uniform(1, 3)).map(|_| {
        let values = columns.iter().enumerate().map(|(at, column)| {
            let mut maker = Maker { random, sources: Vec::new() };
            match at {
                0 if maker.random.percent(10) => Tree::text("NULL"),
                0 => Tree::text(maker.random.uniform(1, 12).to_string()),
                _ if maker.random.percent(10) => Tree::text("DEFAULT"),
                _ if maker.random.percent(15) => maker.any(1),
                _ => maker.of(column.kind, 1),
            }
        });
        Tree::Seq(vec![Tree::text("("), Tree::list(values.collect(), ", ", usize::MAX), Tree::text(")")])
    });
    let rows = Tree::list(rows.collect(), ", ", 1);
    let mut tree =
        vec![Tree::text(format!("{verb}{} (", to.name)), names(&columns), Tree::text(") VALUES "), rows];
    if may_update && random.percent(35) {
        tree.push(Tree::optional(vec![
            Tree::text(" AS new ON DUPLICATE KEY UPDATE "),
            assignments(random, to, &["new"], true),
        ]));
    }
    Tree::Seq(tree)
}

fn insert_select(random: &mut Random, to: &Table, from: &Table) -> Tree {
    let (verb, may_update) = verb(random);
    let columns = given(random, to);
    let source = from.as_source(&from.name);
    let mut maker = Maker { random, sources: vec![source] };
    let items = columns.iter().enumerate().map(|(at, column)| match at {
        0 => Tree::text(format!("{}.id", from.name)),
        _ if maker.random.percent(10) => maker.any(1),
        _ => maker.of(column.kind, 1),
    });
    let items = Tree::list(items.collect(), ", ", usize::MAX);
    let condition = match maker.random.percent(40) {
        true => Tree::optional(vec![Tree::text(" WHERE "), maker.condition(1)]),
        false => Tree::nothing(),
    };
    let mut tree = vec![
        Tree::text(format!("{verb}{} (", to.name)),
        names(&columns),
        Tree::text(") SELECT "),
        items,
        Tree::text(format!(" FROM {}", from.name)),
        condition,
        Tree::text(format!(" ORDER BY {}.id", from.name)),
    ];
    if may_update && random.percent(30) {
        tree.push(Tree::optional(vec![
            Tree::text(" ON DUPLICATE KEY UPDATE "),
            assignments(random, to, &[], false),
        ]));
    }
    Tree::Seq(tree)
}

/// `column = expression, …` over the table's own columns and those of others.
fn assignments(random: &mut Random, to: &Table, others: &[&str], is_new: bool) -> Tree {
    let mut list = Vec::new();
    for _ in 0..random.uniform(1, 2) {
        let column = &to.columns[random.uniform(1, to.columns.len() as i64 - 1) as usize];
        let mut sources = vec![to.as_source(&to.name)];
        sources.extend(others.iter().map(|other| to.as_source(other)));
        let mut maker = Maker { random, sources };
        let value = match maker.random.uniform(1, 10) {
            1 | 2 if is_new => Tree::text(format!("new.{}", column.name)),
            1 if !is_new => Tree::text(format!("VALUES({})", column.name)),
            3 => maker.any(1),
            _ => maker.of(column.kind, 2),
        };
        list.push(Tree::Seq(vec![Tree::text(format!("{}.{} = ", to.name, column.name)), value]));
    }
    Tree::list(list, ", ", 1)
}

fn set(random: &mut Random, to: &Table, sources: &[Source]) -> Tree {
    let mut list = Vec::new();
    for _ in 0..random.uniform(1, 3) {
        let first = i64::from(!random.percent(10));
        let column = &to.columns[random.uniform(first, to.columns.len() as i64 - 1) as usize];
        let mut maker = Maker { random, sources: sources.to_vec() };
        let value = match maker.random.uniform(1, 10) {
            1 => Tree::text("DEFAULT"),
            2 => maker.any(2),
            _ => maker.of(column.kind, 2),
        };
        list.push(Tree::Seq(vec![Tree::text(format!("{}.{} = ", to.name, column.name)), value]));
    }
    Tree::list(list, ", ", 1)
}

fn condition(random: &mut Random, sources: &[Source]) -> Tree {
    if random.percent(25) {
        return Tree::nothing();
    }
    if random.percent(30) {
        let (low, high) = (random.uniform(1, 5), random.uniform(3, 8));
        let name = &sources[0].alias;
        let keys = [format!("{name}.id = {low}"), format!("{name}.id BETWEEN {low} AND {high}")];
        return Tree::optional(vec![Tree::text(format!(" WHERE {}", pick(random, &[&keys[0], &keys[1]])))]);
    }
    let mut maker = Maker { random, sources: sources.to_vec() };
    Tree::optional(vec![Tree::text(" WHERE "), maker.condition(2)])
}

fn order_and_limit(random: &mut Random) -> Tree {
    let limit = pick(random, &["", "", " LIMIT 2", " LIMIT 1"]);
    Tree::Seq(vec![Tree::text(" ORDER BY id"), Tree::optional(vec![Tree::text(limit)])])
}

fn update(random: &mut Random, to: &Table, from: &Table) -> Tree {
    let ignore = ignore(random);
    let own = to.as_source(&to.name);
    if random.percent(75) {
        let sources = [own];
        let set = set(random, to, &sources);
        return Tree::Seq(vec![
            Tree::text(format!("UPDATE {ignore}{} SET ", to.name)),
            set,
            condition(random, &sources),
            order_and_limit(random),
        ]);
    }
    let sources = [own, from.as_source(&from.name)];
    let join = pick(random, &["JOIN", "LEFT JOIN"]);
    let set = set(random, to, &sources);
    Tree::Seq(vec![
        Tree::text(format!("UPDATE {ignore}{0} {join} {1} ON {0}.id = {1}.id SET ", to.name, from.name)),
        set,
        condition(random, &sources),
    ])
}

fn delete(random: &mut Random, to: &Table, from: &Table) -> Tree {
    let own = to.as_source(&to.name);
    if random.percent(75) {
        return Tree::Seq(vec![
            Tree::text(format!("DELETE FROM {}", to.name)),
            condition(random, &[own]),
            order_and_limit(random),
        ]);
    }
    let join = pick(random, &["JOIN", "LEFT JOIN"]);
    Tree::Seq(vec![
        Tree::text(format!("DELETE {0} FROM {0} {join} {1} ON {0}.id = {1}.id", to.name, from.name)),
        condition(random, &[own, from.as_source(&from.name)]),
    ])
}
