//! What the source thinks of a query: its optimizer's cost, by EXPLAIN in the client's own session.
//!
//! It is kept by account and roles, default database and digest, for a while: literals change costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use parking_lot::RwLock;
use serde_json::Value;

use super::dialect::Dialect;
use super::view::Settings;

/// What a second of the source's time is in its optimizer's units, roughly: some tenths of a microsecond for a row, which is a
/// tenth of one.
const COST_OF_A_SECOND: f64 = 250_000.0;
/// What its optimizer thinks of a row.
const COST_OF_A_ROW: f64 = 0.1;
/// So long an answer is kept.
const KEPT: Duration = Duration::from_secs(60);

/// What is known of queries of one digest in sessions that may do the same.
#[derive(Clone, Debug)]
pub struct Known {
    pub cost: f64,
    /// Why it cannot run here, found out by trying.
    pub refused: Option<Arc<str>>,
    since: Instant,
}

/// Costs by account and roles, database and digest; when there are too many, all are forgotten.
#[derive(Default)]
pub struct Costs {
    kept: RwLock<HashMap<Box<[u8]>, Known>>,
}

impl Costs {
    const MOST: usize = 4096;

    /// The key of a digest in a session like this.
    pub fn key(session: &Settings, digest: &[u8], key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(session.identity.as_bytes());
        key.push(0);
        key.extend_from_slice(session.database.as_deref().unwrap_or_default().as_bytes());
        key.push(0);
        key.extend_from_slice(digest);
    }

    pub fn get(&self, key: &[u8]) -> Option<Known> {
        let kept = self.kept.read();
        let known = kept.get(key)?;
        (known.since.elapsed() < KEPT).then(|| known.clone())
    }

    /// Whether a query is known to cost less than this. Asked for each statement that is passed on.
    pub fn is_below(&self, key: &[u8], least: f64) -> bool {
        let kept = self.kept.read();
        kept.get(key).is_some_and(|known| known.cost < least && known.since.elapsed() < KEPT)
    }

    pub fn put(&self, key: &[u8], cost: f64) {
        let known = Known { cost, refused: None, since: Instant::now() };
        let mut kept = self.kept.write();
        if kept.len() >= Self::MOST {
            kept.clear();
        }
        kept.insert(key.into(), known);
    }

    /// It was tried here, and failed.
    pub fn refuse(&self, key: &[u8], why: &str) {
        if let Some(known) = self.kept.write().get_mut(key) {
            known.refused = Some(why.into());
        }
    }

    /// It took the source so long, whatever its cost was thought to be: as long as that is known, it counts.
    pub fn measured(&self, key: &[u8], took: Duration) {
        if let Some(known) = self.kept.write().get_mut(key) {
            known.cost = known.cost.max(took.as_secs_f64() * COST_OF_A_SECOND);
        }
    }
}

/// The cost in EXPLAIN FORMAT=JSON: of all query blocks together, or of the tree of version 2 of the format, with each
/// dependent subquery as often as there are rows that it runs for. `None` if there is none: a query that reads nothing.
pub fn read_cost(json: &[u8], dialect: Dialect) -> Option<f64> {
    // Deeper trees than serde_json takes have no cost either.
    let plan: Value = serde_json::from_slice(json).ok()?;
    match plan.get("query_plan") {
        _ if dialect == Dialect::MariaDb => Some(rows_examined(&plan, &mut 1.0) * COST_OF_A_ROW),
        Some(tree) => Some(Estimate::of(tree)).map(|estimate| estimate.cost + estimate.of_subqueries),
        None => cost_of_blocks(&plan),
    }
}

/// How many rows a MariaDB thinks to look at: its plans have no costs, or (from 11.0 on) in other units. `fanout`: for how many rows
/// before it the node runs.
fn rows_examined(node: &Value, fanout: &mut f64) -> f64 {
    let number = |node: &Value, name: &str| node.get(name).and_then(Value::as_f64);
    match node {
        Value::Array(items) => items.iter().map(|item| rows_examined(item, fanout)).sum(),
        Value::Object(fields) => {
            let mut total = 0.0;
            for (name, value) in fields {
                total += match name.as_str() {
                    // They run when the rest of their block has.
                    "subqueries" => 0.0,
                    "query_block" | "materialized" => rows_examined(value, &mut 1.0),
                    "table" => {
                        let rows = number(value, "rows").unwrap_or_default();
                        let examined = *fanout * rows;
                        *fanout *= (rows * number(value, "filtered").unwrap_or(100.0) / 100.0).max(1.0);
                        examined
                            + value.get("materialized").map_or(0.0, |below| rows_examined(below, &mut 1.0))
                    }
                    _ => rows_examined(value, fanout),
                };
            }
            for subquery in fields.get("subqueries").and_then(Value::as_array).into_iter().flatten() {
                // What depends on the rows of its block has a cache of its answers.
                let times = if subquery.get("expression_cache").is_some() { *fanout } else { 1.0 };
                total += times * rows_examined(subquery, &mut 1.0);
            }
            total
        }
        _ => 0.0,
    }
}

/// `query_cost` of every query block.
fn cost_of_blocks(plan: &Value) -> Option<f64> {
    let (mut total, mut pending) = (None, vec![plan]);
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(cost) = fields.get("query_cost") {
                    let cost = cost.as_f64().or_else(|| cost.as_str()?.parse().ok());
                    total = cost.map(|cost: f64| total.unwrap_or(0.0) + cost).or(total);
                }
                pending.extend(fields.values());
            }
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
    total
}

/// What is thought of a node of a tree and all below it.
struct Estimate {
    cost: f64,
    rows: f64,
    /// Which no node's cost has in it.
    of_subqueries: f64,
}

impl Estimate {
    fn of(node: &Value) -> Self {
        let number = |name: &str| node.get(name).and_then(Value::as_f64);
        let fields = node.as_object().into_iter().flatten();
        let inputs =
            fields.filter(|(name, _)| name.starts_with("inputs")).filter_map(|(_, list)| list.as_array());
        let (mut below, mut rows, mut of_subqueries, mut subqueries) = (0.0, 1.0_f64, 0.0, Vec::new());
        for input in inputs.flatten() {
            let is = |name: &str| input.get(name).and_then(Value::as_bool) == Some(true);
            let estimate = Self::of(input);
            if is("subquery") {
                subqueries.push((estimate, is("dependent")));
                continue;
            }
            below += estimate.cost;
            rows = rows.max(estimate.rows);
            of_subqueries += estimate.of_subqueries;
        }
        for (subquery, is_dependent) in subqueries {
            let times = if is_dependent { rows } else { 1.0 };
            of_subqueries += (subquery.cost + subquery.of_subqueries) * times;
        }
        // Some nodes have no numbers: temporary tables, sorts, limits.
        let cost = number("estimated_total_cost").unwrap_or(0.0).max(below);
        Self { cost, rows: number("estimated_rows").unwrap_or(rows), of_subqueries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_from_both_formats() {
        let old = br#"{"query_block": {"select_id": 1, "cost_info": {"query_cost": "10.25"}, "table": {"attached_subqueries":
            [{"query_block": {"cost_info": {"query_cost": "5.75"}}}]}}}"#;
        assert_eq!(read_cost(old, Dialect::MySql), Some(16.0));
        assert_eq!(read_cost(br#"{"query_block": {"message": "No tables used"}}"#, Dialect::MySql), None);
        assert_eq!(read_cost(b"{", Dialect::MySql), None);
        let new = br#"{"query": "select 1", "query_plan": {"estimated_total_cost": 7.5, "inputs": [{"estimated_total_cost": 3}]}}"#;
        assert_eq!(read_cost(new, Dialect::MySql), Some(7.5));
        let without_numbers =
            br#"{"query_plan": {"operation": "Limit", "inputs": [{"operation": "Sort", "inputs":
            [{"estimated_rows": 200.0, "estimated_total_cost": 20.5}]}]}}"#;
        assert_eq!(read_cost(without_numbers, Dialect::MySql), Some(20.5));
        let dependent = br#"{"query_plan": {"estimated_total_cost": 20.0, "inputs": [{"estimated_rows": 100, "estimated_total_cost": 20},
            {"subquery": true, "dependent": true, "estimated_total_cost": 3}],
            "inputs_from_select_list": [{"subquery": true, "estimated_total_cost": 7}]}}"#;
        assert_eq!(read_cost(dependent, Dialect::MySql), Some(327.0));
    }

    #[test]
    fn rows_are_the_cost_of_a_mariadbs_plan() {
        let plan = br#"{"query_block": {"select_id": 1, "filesort": {"temporary_table": {"nested_loop": [
            {"table": {"table_name": "a", "access_type": "ALL", "rows": 1000, "filtered": 50}},
            {"block-nl-join": {"table": {"table_name": "b", "rows": 10, "filtered": 100}}}]}},
            "subqueries": [{"expression_cache": {"query_block": {"table": {"rows": 2, "filtered": 100}}}},
            {"query_block": {"table": {"rows": 300, "materialized": {"query_block": {"table": {"rows": 700}}}}}}]}}"#;
        let rows = 1000.0 + 500.0 * 10.0 + 5000.0 * 2.0 + 300.0 + 700.0;
        assert_eq!(read_cost(plan, Dialect::MariaDb), Some(rows * COST_OF_A_ROW));
        let none = br#"{"query_block": {"select_id": 1, "table": {"message": "No tables used"}}}"#;
        assert_eq!(read_cost(none, Dialect::MariaDb), Some(0.0));
    }

    #[test]
    fn what_was_seen_of_a_query_counts() {
        let (costs, mut key) = (Costs::default(), Vec::new());
        let session = Settings {
            database: Some("shop".into()),
            identity: "app@% NONE".into(),
            reads_committed: false,
            set: String::new(),
            resolving: String::new(),
            clock_is_set: false,
            idle: Duration::from_secs(28_800),
            write: Duration::from_secs(60),
        };
        Costs::key(&session, b"SELECT ?", &mut key);
        costs.put(&key, 12.0);
        assert_eq!(costs.get(&key).map(|known| known.cost), Some(12.0));
        assert!(costs.is_below(&key, 12.5) && !costs.is_below(&key, 12.0) && !costs.is_below(b"other", 12.5));
        costs.refuse(&key, "it is not supported");
        assert!(costs.get(&key).is_some_and(|known| known.refused.is_some()));
        costs.measured(&key, Duration::from_millis(100));
        assert_eq!(costs.get(&key).map(|known| known.cost), Some(25_000.0));
    }
}
