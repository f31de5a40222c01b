//! Partitions as conditions over a table's rows, as SQL text in canonical form.

use std::sync::Arc;

use avocet_types::TableDef;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr, RowProgram};
use avocet_types::names;

use super::{Bound, Function, Part, Partitioning};
use crate::bind::unsupported;
use crate::kept::rules::bind_expr;
use crate::parse::statement::PartitionMethod;

/// Whether a row is taken by one of the partitions, and what the partitioning function makes of it, where it gives one value.
/// None if all rows are.
pub fn taken(table: &Arc<TableDef>) -> Result<Option<(RowProgram, Option<RowProgram>)>, SqlError> {
    let Some(text) = table.partitioning.as_ref().filter(|_| table.is_partitioned_by_bounds()) else {
        return Ok(None);
    };
    let partitioning = super::read(text)?;
    let function = &partitioning.function;
    let condition = match function.method {
        PartitionMethod::Range => match partitioning.parts.last().map(|part| &part.bound) {
            Some(Bound::LessThan(values)) if values.first().is_some_and(Option::is_some) => {
                less_than(function, values)
            }
            _ => return Ok(None),
        },
        _ => any(partitioning.parts.iter().map(|part| within_list(function, part)).collect()),
    };
    let compile = |text: &str, is_condition: bool| -> Result<RowProgram, SqlError> {
        let name = |column: usize| format!("`{}`", table.columns[column].name);
        Ok(RowProgram::compile_named(&bind_expr(text, table, is_condition)?.fold(), &name)?)
    };
    let value = function.expr.as_ref().map(|expr| compile(expr, false)).transpose()?;
    Ok(Some((compile(&condition, true)?, value)))
}

/// The condition for rows of the named partitions, over the table's columns by their positions.
///
/// # Errors
/// 1747 if the table has no partitions, 1735 for a name that none has, 1235 for a function that is not MySQL's here. `shown` is
/// what errors call the table.
pub fn condition_of(table: &Arc<TableDef>, shown: &str, names: &[&str]) -> Result<Expr, SqlError> {
    let text = table.partitioning.as_ref();
    let text = text.ok_or_else(|| ErrorCode::PARTITION_CLAUSE_ON_NONPARTITIONED.with(&[]))?;
    let partitioning = super::read(text)?;
    let mut conditions = Vec::with_capacity(names.len());
    for name in names {
        let condition = of_name(&partitioning, name)?;
        conditions.push(condition.ok_or_else(|| ErrorCode::UNKNOWN_PARTITION.with(&[name, &shown]))?);
    }
    bind_expr(&any(conditions), table, true)
}

/// The condition for a partition or a subpartition.
fn of_name(partitioning: &Partitioning, name: &str) -> Result<Option<String>, SqlError> {
    let parts = partitioning.all_parts();
    for (at, part) in parts.iter().enumerate() {
        if names::eq_unaccented(&part.name, name) {
            return of_part(partitioning, &parts, at).map(Some);
        }
        let subs = partitioning.subs_of(part);
        let Some(of) = subs.iter().position(|(sub, _)| names::eq_unaccented(sub, name)) else { continue };
        let Some(sub) = &partitioning.sub else { continue };
        let within = of_part(partitioning, &parts, at)?;
        return Ok(Some(format!("({within} and {})", hashed(&sub.function, of, subs.len())?)));
    }
    Ok(None)
}

fn of_part(partitioning: &Partitioning, parts: &[Part], at: usize) -> Result<String, SqlError> {
    let function = &partitioning.function;
    match (function.method, &parts[at].bound) {
        (PartitionMethod::Range, Bound::LessThan(values)) => {
            let below = at.checked_sub(1).map(|before| &parts[before].bound);
            let above = match below {
                Some(Bound::LessThan(values)) => format!("(not {})", less_than(function, values)),
                _ => "true".to_owned(),
            };
            Ok(format!("({above} and {})", less_than(function, values)))
        }
        (PartitionMethod::List, _) => Ok(within_list(function, &parts[at])),
        _ => hashed(function, at, parts.len()),
    }
}

fn any(mut conditions: Vec<String>) -> String {
    match conditions.len() {
        0 => "false".to_owned(),
        1 => conditions.remove(0),
        _ => format!("({})", conditions.join(" or ")),
    }
}

fn terms(function: &Function) -> Vec<String> {
    match &function.expr {
        Some(expr) => vec![format!("({expr})")],
        None => function.columns.iter().map(|name| format!("`{}`", name.replace('`', "``"))).collect(),
    }
}

/// Never NULL: a NULL is less than all values.
fn less_than(function: &Function, bound: &[Option<String>]) -> String {
    let mut text = "false".to_owned();
    for (term, value) in terms(function).iter().zip(bound).rev() {
        text = match value {
            None => "true".to_owned(),
            Some(value) if text == "false" => format!("({term} < {value} or {term} is null)"),
            Some(value) => {
                format!("({term} < {value} or {term} is null or ({term} <=> {value} and {text}))")
            }
        };
    }
    text
}

/// Never NULL.
fn within_list(function: &Function, part: &Part) -> String {
    let Bound::In(tuples) = &part.bound else { return "false".to_owned() };
    let terms = terms(function);
    if let [term] = &terms[..] {
        let values: Vec<&str> =
            tuples.iter().map(|tuple| tuple[0].as_str()).filter(|v| *v != "NULL").collect();
        let has_null = values.len() < tuples.len();
        let listed = match values.is_empty() {
            true => "false".to_owned(),
            false => format!("({term} in ({}) and {term} is not null)", values.join(",")),
        };
        return if has_null { format!("({listed} or {term} is null)") } else { listed };
    }
    let tuple = |tuple: &Vec<String>| {
        let equal: Vec<String> =
            terms.iter().zip(tuple).map(|(term, value)| format!("{term} <=> {value}")).collect();
        format!("({})", equal.join(" and "))
    };
    any(tuples.iter().map(tuple).collect())
}

/// `get_part_id_hash` and `get_part_id_from_linear_hash` of MySQL's sql/sql_partition.cc: the value counts as the signed number of its
/// 64 bits, a NULL as the least of them.
fn hashed(function: &Function, at: usize, count: usize) -> Result<String, SqlError> {
    let Some(expr) = &function.expr else {
        return Err(unsupported("PARTITION (...) of partitions by KEY"));
    };
    if count <= 1 {
        return Ok("true".to_owned());
    }
    let value = format!("ifnull(cast(({expr}) as signed),(-9223372036854775807 - 1))");
    if !function.linear {
        return Ok(format!("(abs(({value} % {count})) = {at})"));
    }
    let mask = count.next_power_of_two() - 1;
    let half = mask >> 1;
    let bits = |mask: usize| format!("(cast({value} as unsigned) & {mask})");
    Ok(format!("(if(({} >= {count}),{},{}) = {at})", bits(mask), bits(half), bits(mask)))
}
