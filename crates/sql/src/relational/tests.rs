//! Plans of small queries, as trees.

use std::collections::HashMap;
use std::sync::Arc;

use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, SqlMode};
use avocet_types::{Collation, Datum};

use super::{Checkpoint, Environment, Node, Operator, Plan, plan, steps};
use crate::bind::bind_query;
use crate::explain::tree;
use crate::parse::{self, StatementKind};
use crate::testing::Memory;

struct Forever;

impl Checkpoint for Forever {
    fn check(&self) -> Result<(), SqlError> {
        Ok(())
    }
}

/// Three tables, of 10, 100 and 1,000 rows.
fn tables() -> Arc<Memory> {
    let mut memory = Memory::default();
    for (name, rows) in [("small", 10), ("middle", 100), ("large", 1000)] {
        let sql = format!(
            "CREATE TABLE {name} (id INT PRIMARY KEY, k INT, v INT NOT NULL, d DECIMAL(40,2) NOT NULL)"
        );
        let row = |n: i64| {
            let d = avocet_types::Decimal::from(n);
            vec![Datum::Int(n), Datum::Int(n % 10), Datum::Int(n), Datum::Decimal(d)]
        };
        let rows: Vec<_> = (0..rows).map(row).collect();
        memory.create_with(&sql, Collation::UTF8MB4_BIN, &rows);
    }
    Arc::new(memory)
}

fn planned(sql: &str, memory: &Memory) -> Plan {
    let statements = parse::parse(sql.as_bytes(), SqlMode::DEFAULT).expect("it parses");
    let StatementKind::Query(query) = &statements[0].kind else { panic!("{sql}: no query") };
    let bound = bind_query(query, sql.as_bytes(), memory, &[]).expect("it binds");
    let context = EvalContext::new(0, 7);
    let environment =
        Environment { statistics: memory, params: &[], context: &context, checkpoint: &Forever };
    plan(&bound, environment).expect("it is planned")
}

/// The tree without estimates, and without the numbers of columns that have no name.
fn shape(sql: &str, memory: &Memory) -> String {
    let text = tree(&steps(&planned(sql, memory), &HashMap::new()));
    let line = |line: &str| line.split("  (cost=").next().unwrap_or_default().trim_start().to_owned();
    let depth = |line: &str| (line.len() - line.trim_start().len()) / 4;
    let lines: Vec<_> = text.lines().map(|l| format!("{}{}", ".".repeat(depth(l)), &line(l)[3..])).collect();
    let mut shape = lines.join("\n");
    while let Some(at) = shape.find('#').filter(|at| shape[at + 1..].starts_with(char::is_numeric)) {
        let digits = shape[at + 1..].chars().take_while(char::is_ascii_digit).count();
        shape.replace_range(at..at + 1 + digits, "@");
    }
    shape
}

fn check(sql: &str, expected: &[&str]) {
    let memory = tables();
    assert_eq!(shape(sql, &memory), expected.join("\n"), "{sql}");
}

#[test]
fn conditions_stand_at_their_tables_and_joins_in_order_of_size() {
    check(
        "SELECT l.v FROM large l, small s, middle m WHERE l.k = m.k AND m.id = s.id AND s.v > 5 AND l.v < 3",
        &[
            "Inner hash join (m.k = l.k)",
            ".Filter: (l.v < 3)",
            "..Table scan on l",
            ".Hash",
            "..Inner hash join (s.id = m.id)",
            "...Table scan on m",
            "...Hash",
            "....Filter: (s.v > 5)",
            ".....Table scan on s",
        ],
    );
    // A condition on a derived table's column is one on what makes it, and that of an outer join's left side is there.
    check(
        "SELECT * FROM (SELECT v + 1 AS w, id FROM large) x LEFT JOIN small s ON s.id = x.id AND s.v = 1 WHERE x.w = 3",
        &[
            "Left hash join (large.id = s.id)",
            ".Filter: ((large.v + 1) = 3)",
            "..Table scan on large",
            ".Hash",
            "..Filter: (s.v = 1)",
            "...Table scan on s",
        ],
    );
}

#[test]
fn subqueries_are_joins_where_joins_answer_them() {
    check(
        "SELECT id FROM large l WHERE EXISTS (SELECT * FROM small s WHERE s.id = l.k AND s.v > l.v)",
        &[
            "Hash semijoin (l.k = s.id), extra conditions: (s.v > l.v)",
            ".Table scan on l",
            ".Hash",
            "..Table scan on s",
        ],
    );
    check(
        "SELECT id FROM large WHERE v NOT IN (SELECT v FROM small WHERE id > 3)",
        &[
            "Hash antijoin (large.v = small.v)",
            ".Table scan on large",
            ".Hash",
            "..Filter: (small.id > 3)",
            "...Table scan on small",
        ],
    );
    check(
        "SELECT id FROM large l WHERE v = 1 OR EXISTS (SELECT * FROM small s WHERE s.id = l.k)",
        &[
            "Filter: ((l.v = 1) or @)",
            ".Hash mark join (l.k = s.id)",
            "..Table scan on l",
            "..Hash",
            "...Table scan on s",
        ],
    );
    check(
        "SELECT id FROM middle m WHERE v > (SELECT COUNT(*) FROM large l WHERE l.k = m.k)",
        &[
            "Filter: (m.v > (case when (@ is null) then 0 else COUNT(*) end))",
            ".Left hash join (m.k = @)",
            "..Table scan on m",
            "..Hash",
            "...Group by l.k: count(0)",
            "....Table scan on l",
        ],
    );
    check(
        "SELECT id FROM middle WHERE v > (SELECT MAX(v) FROM small)",
        &[
            "Filter: (middle.v > @)",
            ".Table scan on middle",
            ".Subquery (run only once)",
            "..Aggregate: max(small.v)",
            "...Table scan on small",
        ],
    );
    // What is no condition keeps its NULLs.
    check(
        "SELECT k IN (SELECT k FROM small) FROM middle",
        &[
            "Apply middle.k in (subquery)",
            ".Table scan on middle",
            ".Subquery (run only once)",
            "..Table scan on small",
        ],
    );
}

#[test]
fn a_semi_join_that_keeps_little_comes_before_joins() {
    let memory = tables();
    let sql = "SELECT l.id FROM large l JOIN middle m ON m.k = l.k WHERE l.id IN (SELECT id FROM small)";
    let text = shape(sql, &memory);
    let semi = text.find("Hash semijoin").expect("there is one");
    assert!(semi > text.find("Inner hash join").expect("there is one"), "{text}");
}

fn scans(node: &Node, found: &mut Vec<(String, usize)>) {
    if let Operator::Scan(scan) = &node.operator {
        found.push((scan.table.alias.to_string(), scan.table.columns.len()));
    }
    node.inputs().into_iter().for_each(|input| scans(input, found));
}

#[test]
fn columns_that_nobody_needs_are_not_read() {
    let memory = tables();
    let sql = "SELECT x.a FROM (SELECT id AS a, k AS b, v FROM large) x JOIN middle m ON m.id = x.a";
    let mut found = Vec::new();
    scans(&planned(sql, &memory).root, &mut found);
    found.sort();
    assert_eq!(found, [("large".to_owned(), 1), ("m".to_owned(), 1)]);
}

#[test]
fn bounds_come_from_statistics() {
    let memory = tables();
    let plan = planned("SELECT d * 2 AS twice, id FROM small", &memory);
    let twice = plan.columns[plan.root.outputs[0]].clone();
    let expr = avocet_types::expr::Expr::column(plan.root.outputs[0].index(), twice.ty, false);
    assert_eq!(plan.bounds.of(&expr), 18.0);
    assert_eq!(plan.root.most_rows, 10.0);
    let plan = planned("SELECT * FROM small a, middle b LIMIT 7", &memory);
    assert_eq!(plan.root.most_rows, 7.0);
}

#[test]
fn what_is_read_twice_is_evaluated_once() {
    let memory = tables();
    let with = "WITH c AS (SELECT k, COUNT(*) AS n FROM large GROUP BY k)";
    let text = shape(&format!("{with} SELECT * FROM c a JOIN c b ON a.k = b.n"), &memory);
    assert_eq!(text.matches("Materialize").count(), 1, "{text}");
    let text = shape(&format!("{with} SELECT * FROM c"), &memory);
    assert!(!text.contains("Materialize"), "{text}");
}

#[test]
fn other_comparisons_with_outer_columns_are_made_once_for_each_value() {
    check(
        "SELECT id, (SELECT COUNT(*) FROM large l WHERE l.k = m.k AND l.v >= m.v) FROM middle m",
        &[
            "Left hash join (m.k = @), (m.v = @)",
            ".Table scan on m",
            ".Hash",
            "..Group by @, @: count(0)",
            "...Inner hash join (@ = l.k), extra conditions: (l.v >= @)",
            "....Table scan on l",
            "....Hash",
            ".....Deduplicate",
            "......Table scan on m",
        ],
    );
}
