//! Point plans as EXPLAIN's steps.

use avocet_engine::TableHandle;
use avocet_types::SqlType;
use avocet_types::schema::TableDef;

use super::choose::Access;
use super::measure::Measurements;
use super::select::{Level, Output, Select, Source};
use super::subplan::SubPlan;
use super::{Kind, PointPlan};
use avocet_sql::explain::{Access as Described, AccessKind, Block, Estimate, Measured, Note, Step};

/// What it costs to find a row by an index, and to pass one on: as for relational plans.
const FIND_COST: f64 = 0.35;
const ROW_COST: f64 = 0.1;
/// What a range with one bound leaves of the rows, where nothing is known.
const RANGE: f64 = 1.0 / 3.0;

impl PointPlan {
    /// The plan as EXPLAIN shows it; with what its parts did, if it was run.
    pub fn steps(&self, measured: Option<&Measurements>) -> Step {
        let printer = Printer { measured };
        let changed = |what: &str, block: Block, input: Step| {
            let cost = input.estimate;
            let table = self.tables.first().map_or("", |table| &table.def.name);
            Step { block: Some(block), estimate: cost, ..Step::over(format!("{what} {table}"), input) }
        };
        let step = match &self.kind {
            Kind::Select(select) => {
                let input = printer.select(select);
                Step { estimate: input.estimate, ..Step::over("Point plan", input) }
            }
            Kind::Update(update) => changed("Update", Block::Update, printer.target(&update.target)),
            Kind::Delete(delete) => changed("Delete from", Block::Delete, printer.target(&delete.target)),
            Kind::Modify(modify) => match modify.changer.verb() {
                super::Verb::Delete => changed("Delete from", Block::Delete, printer.select(&modify.select)),
                _ => changed("Update", Block::Update, printer.select(&modify.select)),
            },
            Kind::Insert(insert) => match insert.query() {
                Some(query) => changed("Insert into", Block::Insert, printer.select(query)),
                None => changed("Insert into", Block::Insert, Step::new("Rows fetched before execution")),
            },
        };
        step.with_note(Note::Point)
    }
}

struct Printer<'m> {
    measured: Option<&'m Measurements>,
}

impl Printer<'_> {
    fn target(&self, target: &super::write::Target) -> Step {
        let found = access_step(&target.table, &target.table.def.name, &target.way.access, true);
        filtered(found, target.way.residual.is_some())
    }

    fn select(&self, select: &Select) -> Step {
        let runs = self.measured.and_then(|measured| measured.of_select(select));
        let mut joined: Option<Step> = None;
        for level in &select.levels {
            let step = self.level(level, joined.is_none());
            joined = Some(match joined {
                None => step,
                Some(before) => self.join(level, before, step, runs),
            });
        }
        let step = joined.unwrap_or_else(|| Step::new("Rows fetched before execution"));
        let step = output_steps(&select.output, step);
        let mut step = match (&select.limit, &select.offset) {
            (None, _) => step,
            (Some(_), None) => Step { estimate: step.estimate, ..Step::over("Limit", step) },
            (Some(_), Some(_)) => Step { estimate: step.estimate, ..Step::over("Limit/Offset", step) },
        };
        // What is above the rows' join gives what the query gives, and holds what it holds.
        let mut top = Some(&mut step);
        while let Some(step) = top {
            if step.actual.is_some() {
                break;
            }
            step.actual = runs;
            top = step.inputs.first_mut();
        }
        step
    }

    /// The rows of a level beside those before it.
    fn join(&self, level: &Level, before: Step, step: Step, runs: Option<Measured>) -> Step {
        let (outer, inner) = (rows_of(&before), rows_of(&step));
        let cost = cost_of(&before) + outer * cost_of(&step);
        let what = if level.outer { "Nested loop left join" } else { "Nested loop inner join" };
        let estimate = Some(Estimate { cost, rows: outer * inner, from: "rule" });
        let actual = self.measured.zip(runs).map(|(measured, runs)| {
            let rows = measured.joined(level) as f64 / runs.loops.max(1) as f64;
            let all = |step: &Step| step.actual.map_or(0.0, |actual| actual.all_ms * actual.loops as f64);
            let first = |step: &Step| step.actual.map_or(0.0, |actual| actual.first_ms);
            let all_ms = (all(&before) + all(&step)) / runs.loops.max(1) as f64;
            let first_ms = (first(&before) + first(&step)).min(all_ms);
            Measured { rows, loops: runs.loops, first_ms, all_ms, memory: None }
        });
        Step { estimate, actual, inputs: vec![before, step], ..Step::new(what) }
    }

    fn level(&self, level: &Level, is_first: bool) -> Step {
        let mut step = match &level.source {
            Source::Table { table, access } => access_step(table, &table.def.name, access, is_first),
            Source::Subquery(plan) => self.subplan(plan),
        };
        if let (Source::Table { table, .. }, Some(along)) = (&level.source, &level.along)
            && let Some(index) = along.access.index
        {
            let key = &table.indexes()[index].def.name;
            step.what.push_str(&format!(", or along {key} where that is sooner"));
            step.access.iter_mut().for_each(|access| access.possible_keys.push(key.clone()));
        }
        let measured = self.measured;
        step.actual = measured.map(|measured| measured.of_level(level).unwrap_or_default());
        let is_filtered = level.residual.is_some() || level.on.is_some();
        let mut step = filtered(step, is_filtered);
        if is_filtered {
            step.actual = measured.map(|measured| measured.of_tests(level).unwrap_or_default());
        }
        step
    }

    fn subplan(&self, plan: &SubPlan) -> Step {
        if let Some(parts) = plan.recursion() {
            let inputs = parts.into_iter().map(|part| self.subplan(part)).collect();
            return Step { inputs, ..Step::new("Materialize recursive CTE") };
        }
        let inputs = plan.selects.iter().map(|select| self.select(select));
        let inputs = inputs.map(|step| Step { block: Some(Block::Derived), ..step });
        Step { inputs: inputs.collect(), ..Step::new("Subquery in the place of a table") }
    }
}

fn filtered(step: Step, is_filtered: bool) -> Step {
    if !is_filtered {
        return step;
    }
    let mut step = step;
    if let Some(access) = &mut step.access {
        access.condition = Some("conditions beside the key".to_owned());
    }
    Step { estimate: step.estimate, ..Step::over("Filter: conditions beside the key", step) }
}

fn output_steps(output: &Output, mut step: Step) -> Step {
    let over = |what: &str, step: Step| Step { estimate: step.estimate, ..Step::over(what, step) };
    if let Some(aggregation) = &output.aggregation {
        step = match aggregation.keys.is_empty() {
            true => over("Aggregate", step),
            false => over("Aggregate using temporary table", step).with_note(Note::Temporary),
        };
    }
    if output.windows.is_some() {
        step = over("Window aggregate", step).with_note(Note::Filesort);
    }
    if output.distinct {
        step = over("Deduplicate", step).with_note(Note::Temporary);
    }
    if !output.order.is_empty() {
        step = over("Sort", step).with_note(Note::Filesort);
    }
    step
}

fn rows_of(step: &Step) -> f64 {
    step.estimate.map_or(1.0, |estimate| estimate.rows)
}

fn cost_of(step: &Step) -> f64 {
    step.estimate.map_or(ROW_COST, |estimate| estimate.cost)
}

/// How a table's rows are found.
fn access_step(table: &TableHandle, name: &str, access: &Access, is_first: bool) -> Step {
    let all = (table.row_count() as f64).max(1.0);
    let key = |index: usize| table.indexes()[index].def.name.clone();
    let terms = &access.terms;
    let (kind, what, rows) = match access.index {
        None if access.union.is_empty() => (AccessKind::All, format!("Table scan on {name}"), all),
        None => {
            let keys: Vec<_> = access.union.iter().filter_map(|part| part.index).map(key).collect();
            let rows = access.union.iter().map(|part| estimated(part, all)).sum();
            (AccessKind::IndexMerge, format!("Index merge on {name} using {}", keys.join(", ")), rows)
        }
        Some(index) => {
            let (key, rows) = (key(index), estimated(access, all));
            match (terms.unique, terms.eq.len(), terms.range.is_some() || !terms.any_of.is_empty()) {
                _ if access.loose.is_some() => {
                    let what = format!("Covering index skip scan for grouping on {name} using {key}");
                    (AccessKind::Range, what, rows)
                }
                (true, ..) => {
                    let kind = if is_first { AccessKind::Const } else { AccessKind::EqRef };
                    (kind, format!("Single-row index lookup on {name} using {key}"), 1.0)
                }
                (_, _, true) => (AccessKind::Range, format!("Index range scan on {name} using {key}"), rows),
                (_, 0, false) => (AccessKind::Index, format!("Index scan on {name} using {key}"), rows),
                _ => (AccessKind::Ref, format!("Index lookup on {name} using {key}"), rows),
            }
        }
    };
    let parts = terms.eq.len() + usize::from(terms.range.is_some());
    let source = if is_first { "const" } else { "func" };
    let notes = access.loose.iter().map(|_| Note::GroupBy).collect();
    let used = |index: &usize| &table.indexes()[*index].def;
    let described = Described {
        table: name.to_owned(),
        kind,
        possible_keys: access
            .index
            .iter()
            .chain(access.union.iter().filter_map(|p| p.index.as_ref()))
            .map(|index| used(index).name.clone())
            .collect(),
        key: access.index.map(key),
        key_len: access.index.as_ref().filter(|_| parts > 0).map(|index| {
            used(index).parts.iter().take(parts).map(|part| key_len(&table.def, part.column)).sum()
        }),
        refs: terms.eq.iter().map(|_| source.to_owned()).collect(),
        rows,
        filtered: 100.0,
        condition: None,
        notes,
    };
    let cost = match kind {
        AccessKind::All | AccessKind::Index => rows * ROW_COST,
        _ => FIND_COST + rows * ROW_COST,
    };
    let estimate = Some(Estimate { cost, rows, from: "rule" });
    Step { access: Some(described), estimate, ..Step::new(what) }
}

/// Equality on some columns leaves a root of the rows, a range a part of these.
fn estimated(access: &Access, all: f64) -> f64 {
    let terms = &access.terms;
    if terms.unique {
        return 1.0;
    }
    if !terms.any_of.is_empty() {
        return (terms.any_of.len() as f64).min(all);
    }
    let rows = all.powf(1.0 / (terms.eq.len() as f64 + 1.0));
    if terms.range.is_some() { (rows * RANGE).max(1.0) } else { rows }
}

/// The bytes that a column takes in a key, as MySQL counts them.
fn key_len(table: &TableDef, column: usize) -> u32 {
    let column = &table.columns[column];
    let bytes = match column.ty {
        SqlType::Char { len, .. } => len * 4,
        SqlType::VarChar { len, .. } => len * 4 + 2,
        SqlType::Binary { len } => len,
        SqlType::VarBinary { len } => len + 2,
        SqlType::Decimal { precision, .. } => u32::from(precision) / 2 + 1,
        SqlType::Date => 3,
        SqlType::Bool | SqlType::Year => 1,
        SqlType::Int { width, .. } => width.bits() / 8,
        SqlType::Float(_) => 4,
        SqlType::Bit { len } => u32::from(len).div_ceil(8),
        ty => ty.coded_width().map_or(8, |width| width.bits() / 8),
    };
    bytes + u32::from(column.nullable)
}
