//! Random queries: joins, derived tables, common table expressions, subqueries, groups, windows, set operations.

use super::expr::Maker;
use super::schema::{Kind, Source, Table, pick};
use super::tree::Tree;
use crate::random::Random;

#[derive(Clone)]
pub struct Query {
    pub tree: Tree,
    /// Its rows come in one order.
    pub is_ordered: bool,
    /// Each expression is computed for each row, whatever the plan.
    pub is_simple: bool,
    /// It shows warnings, of which level and number are compared.
    pub is_warnings: bool,
}

impl Query {
    pub fn plain(tree: Tree) -> Query {
        Query { tree, is_ordered: false, is_simple: false, is_warnings: false }
    }
}

/// Makes queries over some tables.
pub struct Writer<'r, 't> {
    pub random: &'r mut Random,
    pub tables: &'t [Table],
    /// How deep queries stand in queries.
    depth: u32,
    names: u32,
}

/// Expressions over the rows of one table.
pub fn expressions(random: &mut Random, tables: &[Table]) -> Query {
    let table = &tables[random.uniform(0, tables.len() as i64 - 1) as usize];
    let mut maker = Maker { random, sources: vec![table.as_source(&table.name)] };
    let item = |maker: &mut Maker| match maker.random.percent(80) {
        true => maker.any(3),
        false => maker.condition(3),
    };
    let mut items = vec![Tree::text("id")];
    items.extend((0..maker.random.uniform(1, 2)).map(|_| item(&mut maker)));
    let is_simple = maker.random.percent(70);
    let condition = if !is_simple {
        Tree::optional(vec![Tree::text(" WHERE "), maker.condition(3)])
    } else {
        Tree::nothing()
    };
    let tree = Tree::Seq(vec![
        Tree::text("SELECT "),
        Tree::list(items, ", ", 1),
        Tree::text(format!(" FROM {}", table.name)),
        condition,
        Tree::text(" ORDER BY id"),
    ]);
    Query { is_ordered: true, is_simple, ..Query::plain(tree) }
}

impl<'r, 't> Writer<'r, 't> {
    pub fn new(random: &'r mut Random, tables: &'t [Table]) -> Writer<'r, 't> {
        Writer { random, tables, depth: 0, names: 0 }
    }

    pub fn query(&mut self) -> Query {
        match self.random.uniform(1, 20) {
            1..=7 => self.plain(),
            8..=12 => Query::plain(self.grouped()),
            13..=15 => Query::plain(self.windowed()),
            16 | 17 => Query::plain(self.set_operation()),
            18 | 19 => Query::plain(self.with_cte()),
            _ => Query::plain(self.recursive()),
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    fn table(&mut self) -> &'t Table {
        &self.tables[self.random.uniform(0, self.tables.len() as i64 - 1) as usize]
    }

    fn maker<'m>(&'m mut self, sources: &[Source]) -> Maker<'m> {
        Maker { random: self.random, sources: sources.to_vec() }
    }

    /// A table or a derived one, with its name.
    fn relation(&mut self) -> (Tree, Source) {
        let alias = self.name();
        if self.depth < 2 && self.random.percent(15) {
            self.depth += 1;
            let (query, columns) = self.derived();
            self.depth -= 1;
            let tree = Tree::Seq(vec![Tree::text("("), query, Tree::text(format!(") AS {alias}"))]);
            return (tree, Source { alias, columns });
        }
        let table = self.table();
        (Tree::text(format!("{} AS {alias}", table.name)), table.as_source(&alias))
    }

    /// A query whose columns have names.
    fn derived(&mut self) -> (Tree, Vec<(String, Kind)>) {
        let (from, sources) = self.from(2);
        let condition = self.condition(&sources, &[], 40);
        let mut columns = Vec::new();
        let mut maker = self.maker(&sources);
        let mut items = Vec::new();
        let groups = maker.random.percent(30);
        for at in 0..maker.random.uniform(1, 3) {
            let (item, kind) = if maker.random.percent(60) {
                maker.column()
            } else {
                let kind = *pick(maker.random, &[&Kind::Number, &Kind::Text, &Kind::Moment]);
                (maker.of(kind, 1), kind)
            };
            items.push(Tree::Seq(vec![item, Tree::text(format!(" AS k{at}"))]));
            columns.push((format!("k{at}"), kind));
        }
        let mut tail = Tree::nothing();
        if groups {
            let keys: Vec<String> = (1..=items.len()).map(|at| at.to_string()).collect();
            tail = Tree::text(format!(" GROUP BY {}", keys.join(", ")));
            items.push(Tree::text("COUNT(*) AS k9"));
            columns.push(("k9".into(), Kind::Number));
        }
        let distinct = if self.random.percent(20) { "SELECT DISTINCT " } else { "SELECT " };
        let items = Tree::list(items, ", ", usize::MAX);
        (Tree::Seq(vec![Tree::text(distinct), items, Tree::text(" FROM "), from, condition, tail]), columns)
    }

    /// FROM with up to so many relations, and what can be named behind it.
    fn from(&mut self, most: i64) -> (Tree, Vec<Source>) {
        let (first, source) = self.relation();
        let mut sources = vec![source];
        let mut tree = vec![first];
        for _ in 1..self.random.uniform(1, most) {
            let (relation, source) = self.relation();
            sources.push(source);
            let join = pick(
                self.random,
                &[" JOIN ", " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " CROSS JOIN "],
            );
            tree.extend([Tree::text(join), relation]);
            if join != " CROSS JOIN " {
                tree.extend([Tree::text(" ON "), self.join_condition(&sources)]);
            }
        }
        (Tree::Seq(tree), sources)
    }

    fn join_condition(&mut self, sources: &[Source]) -> Tree {
        let (last, before) = sources.split_last().expect("a join has two sides");
        let other = &before[self.random.uniform(0, before.len() as i64 - 1) as usize];
        let (left, kind) = other.any_column(self.random);
        let same = last.column(self.random, kind);
        let right = match same {
            Some(column) if self.random.percent(85) => column,
            _ => last.any_column(self.random).0,
        };
        let operator = pick(self.random, &[" = ", " = ", " = ", " = ", " <=> ", " < ", " >= ", " <> "]);
        let mut parts = vec![Tree::Seq(vec![left, Tree::text(operator), right])];
        if self.random.percent(30) {
            let mut maker = self.maker(sources);
            parts.push(maker.condition(1));
        }
        Tree::list(parts, " AND ", 1)
    }

    /// WHERE with a condition or a subquery, in so many of a hundred cases.
    fn condition(&mut self, sources: &[Source], outer: &[Source], percent: i64) -> Tree {
        let mut parts = Vec::new();
        if self.random.percent(percent) {
            let all: Vec<Source> = sources.iter().chain(outer).cloned().collect();
            parts.push(self.maker(&all).condition(2));
        }
        if !outer.is_empty() && self.random.percent(60) {
            let (left, kind) =
                outer[self.random.uniform(0, outer.len() as i64 - 1) as usize].any_column(self.random);
            let right = sources.iter().find_map(|source| source.column(self.random, kind));
            if let Some(right) = right {
                parts.push(Tree::Seq(vec![left, Tree::text(" = "), right]));
            }
        }
        if self.depth < 2 && self.random.percent(25) {
            parts.push(self.subquery_test(sources));
        }
        if parts.is_empty() {
            return Tree::nothing();
        }
        Tree::optional(vec![Tree::text(" WHERE "), Tree::list(parts, " AND ", 1)])
    }

    /// IN, EXISTS, ANY, ALL or a comparison with one value.
    fn subquery_test(&mut self, outer: &[Source]) -> Tree {
        self.depth += 1;
        let (column, kind) =
            outer[self.random.uniform(0, outer.len() as i64 - 1) as usize].any_column(self.random);
        let correlated: &[Source] = if self.random.percent(60) { outer } else { &[] };
        let tree = match self.random.uniform(1, 10) {
            1..=4 => {
                let is_in = pick(self.random, &[" IN (", " NOT IN (", " = ANY (", " <> ALL ("]);
                vec![column, Tree::text(is_in), self.one_column(kind, correlated), Tree::text(")")]
            }
            5..=7 => {
                let exists = pick(self.random, &["EXISTS (", "NOT EXISTS ("]);
                vec![Tree::text(exists), self.one_column(kind, correlated), Tree::text(")")]
            }
            8 => {
                let compare = pick(
                    self.random,
                    &[" > ANY (", " <= ALL (", " < ANY (", " >= ALL (", " = ALL (", " <> ANY ("],
                );
                vec![column, Tree::text(compare), self.one_column(kind, correlated), Tree::text(")")]
            }
            _ => {
                let compare = pick(self.random, &[" > ", " = ", " <= ", " <=> "]);
                vec![column, Tree::text(compare), self.scalar(correlated)]
            }
        };
        self.depth -= 1;
        Tree::expr(tree)
    }

    /// A subquery of one column.
    fn one_column(&mut self, kind: Kind, outer: &[Source]) -> Tree {
        let (from, sources) = self.from(1);
        let condition = self.condition(&sources, outer, 50);
        let column =
            sources[0].column(self.random, kind).unwrap_or_else(|| sources[0].any_column(self.random).0);
        Tree::Seq(vec![Tree::text("SELECT "), column, Tree::text(" FROM "), from, condition])
    }

    /// A subquery of one value.
    fn scalar(&mut self, outer: &[Source]) -> Tree {
        let (from, sources) = self.from(2);
        let condition = self.condition(&sources, outer, 40);
        let value = self.aggregate(&sources, 1);
        Tree::expr(vec![
            Tree::text("(SELECT "),
            value,
            Tree::text(" FROM "),
            from,
            condition,
            Tree::text(")"),
        ])
    }

    fn aggregate(&mut self, sources: &[Source], depth: u32) -> Tree {
        let mut maker = self.maker(sources);
        let template = pick(
            maker.random,
            &[
                "COUNT(*)",
                "COUNT({a})",
                "COUNT({n})",
                "SUM({n})",
                "SUM({n})",
                "AVG({n})",
                "MIN({a})",
                "MAX({a})",
                "MIN({n})",
                "MAX({s})",
                "COUNT(DISTINCT {a})",
                "SUM(DISTINCT {n})",
                "AVG(DISTINCT {n})",
                "BIT_AND({n})",
                "BIT_OR({n})",
                "BIT_XOR({n})",
                "STDDEV({n})",
                "VAR_SAMP({n})",
                "VAR_POP({n})",
                "COUNT(DISTINCT {a}, {a})",
                "SUM({c})",
                "MAX({c})",
                "SUM({s})",
                "AVG({t})",
                "ANY_VALUE(1)",
            ],
        );
        if maker.random.percent(10) {
            let (column, _) = maker.column();
            let distinct = pick(maker.random, &["", "DISTINCT "]);
            let order = pick(maker.random, &["", " DESC"]);
            return Tree::text(format!(
                "GROUP_CONCAT({distinct}HEX({column}) ORDER BY HEX({column}){order} SEPARATOR '|')"
            ));
        }
        maker.fill(template, depth)
    }

    /// SELECT with joins, sometimes DISTINCT, or in an order and with a limit.
    fn plain(&mut self) -> Query {
        let (from, sources) = self.from(3);
        let condition = self.condition(&sources, &[], 50);
        let has_ids = sources.iter().all(|s| s.columns.iter().any(|(name, _)| name == "id"));
        let is_ordered = has_ids && self.random.percent(50);
        let mut items = Vec::new();
        for _ in 0..self.random.uniform(1, 3) {
            let item = match self.random.uniform(1, 10) {
                1..=5 => self.maker(&sources).column().0,
                6 if self.depth < 2 => self.scalar_in_list(&sources),
                _ => self.maker(&sources).any(2),
            };
            items.push(item);
        }
        let distinct = if !is_ordered && self.random.percent(25) { "SELECT DISTINCT " } else { "SELECT " };
        let mut tree =
            vec![Tree::text(distinct), Tree::list(items, ", ", 1), Tree::text(" FROM "), from, condition];
        if is_ordered {
            tree.push(self.order(&sources));
        }
        Query { is_ordered, ..Query::plain(Tree::Seq(tree)) }
    }

    fn scalar_in_list(&mut self, sources: &[Source]) -> Tree {
        self.depth += 1;
        let correlated: &[Source] = if self.random.percent(60) { sources } else { &[] };
        let tree = self.scalar(correlated);
        self.depth -= 1;
        tree
    }

    /// A total order, and sometimes a limit.
    fn order(&mut self, sources: &[Source]) -> Tree {
        let mut keys = Vec::new();
        for _ in 0..self.random.uniform(0, 2) {
            let mut maker = self.maker(sources);
            let key = if maker.random.percent(70) { maker.column().0 } else { maker.any(1) };
            keys.push(Tree::optional(vec![key, Tree::text(pick(self.random, &[", ", " DESC, "]))]));
        }
        for (at, source) in sources.iter().enumerate() {
            let separator = if at + 1 < sources.len() { ", " } else { "" };
            keys.push(Tree::text(format!("{}.id{separator}", source.alias)));
        }
        keys.insert(0, Tree::text(" ORDER BY "));
        if self.random.percent(50) {
            let limit = pick(
                self.random,
                &[" LIMIT 3", " LIMIT 1", " LIMIT 2, 5", " LIMIT 10 OFFSET 1", " LIMIT 0", " LIMIT 100"],
            );
            keys.push(Tree::optional(vec![Tree::text(limit)]));
        }
        Tree::Seq(keys)
    }

    fn grouped(&mut self) -> Tree {
        let (from, sources) = self.from(2);
        let condition = self.condition(&sources, &[], 50);
        let mut items = Vec::new();
        let keys = self.random.uniform(0, 2);
        for _ in 0..keys {
            let mut maker = self.maker(&sources);
            items.push(if maker.random.percent(65) { maker.column().0 } else { maker.any(2) });
        }
        let mut tree = Vec::new();
        for _ in 0..self.random.uniform(1, 3) {
            let aggregate = self.aggregate(&sources, 2);
            items.push(if self.random.percent(15) {
                let other = self.aggregate(&sources, 1);
                Tree::expr(vec![Tree::text("("), aggregate, Tree::text(" + "), other, Tree::text(")")])
            } else {
                aggregate
            });
        }
        let least = items.len();
        tree.extend([
            Tree::text("SELECT "),
            Tree::list(items, ", ", least),
            Tree::text(" FROM "),
            from,
            condition,
        ]);
        if keys > 0 {
            let keys: Vec<String> = (1..=keys).map(|at| at.to_string()).collect();
            tree.push(Tree::text(format!(" GROUP BY {}", keys.join(", "))));
            if self.random.percent(15) {
                tree.push(Tree::optional(vec![Tree::text(" WITH ROLLUP")]));
            }
        }
        if self.random.percent(25) {
            let aggregate = self.aggregate(&sources, 1);
            let test = pick(self.random, &[" > 1", " < 10", " = 0", " IS NULL", " <> 2", " >= '1'"]);
            tree.push(Tree::optional(vec![Tree::text(" HAVING "), aggregate, Tree::text(test)]));
        }
        Tree::Seq(tree)
    }

    fn windowed(&mut self) -> Tree {
        let (from, sources) = self.from(2);
        let condition = self.condition(&sources, &[], 40);
        let ids: Vec<String> = sources
            .iter()
            .filter(|source| source.columns.iter().any(|(name, _)| name == "id"))
            .map(|source| format!("{}.id", source.alias))
            .collect();
        let is_total = ids.len() == sources.len();
        let mut items: Vec<Tree> = ids.iter().map(Tree::leaf).collect();
        for _ in 0..self.random.uniform(1, 2) {
            items.push(self.window(&sources, if is_total { &ids } else { &[] }));
        }
        let items = Tree::list(items, ", ", 1);
        Tree::Seq(vec![Tree::text("SELECT "), items, Tree::text(" FROM "), from, condition])
    }

    /// A window function; without ids to make the order total, one whose value ties do not change.
    fn window(&mut self, sources: &[Source], ids: &[String]) -> Tree {
        const ANY_ORDER: &[&str] = &[
            "RANK()",
            "DENSE_RANK()",
            "CUME_DIST()",
            "PERCENT_RANK()",
            "COUNT(*)",
            "SUM({n})",
            "MIN({a})",
            "MAX({a})",
            "AVG({n})",
            "COUNT({a})",
        ];
        const TOTAL_ORDER: &[&str] = &[
            "ROW_NUMBER()",
            "NTILE(3)",
            "LAG({a})",
            "LEAD({n}, 2, 0)",
            "LAG({s}, 1, 'none')",
            "FIRST_VALUE({a})",
            "LAST_VALUE({a})",
            "NTH_VALUE({n}, 2)",
            "SUM({n})",
            "MIN({s})",
            "MAX({t})",
            "AVG({n})",
            "COUNT({a})",
            "BIT_OR({n})",
            "VAR_POP({n})",
            "BIT_XOR({n})",
        ];
        let is_total = !ids.is_empty() && self.random.percent(70);
        let mut maker = self.maker(sources);
        let function = pick(maker.random, if is_total { TOTAL_ORDER } else { ANY_ORDER });
        let mut tree = vec![maker.fill(function, 1), Tree::text(" OVER (")];
        if maker.random.percent(50) {
            tree.push(Tree::optional(vec![Tree::text("PARTITION BY "), maker.column().0, Tree::text(" ")]));
        }
        let (key, kind) = maker.column();
        let direction = pick(maker.random, &["", " DESC"]);
        let mut keys = vec![Tree::Seq(vec![key, Tree::text(direction)])];
        if is_total {
            keys.extend(ids.iter().map(Tree::text));
            tree.extend([Tree::text("ORDER BY "), Tree::list(keys, ", ", usize::MAX)]);
        } else {
            tree.extend([Tree::text("ORDER BY "), Tree::list(keys, ", ", 1)]);
        }
        // Rows that tie under an order that is not total may come either way: no frame of rows there.
        let frames: &[&str] = match (is_total, kind) {
            (true, _) => &[
                "",
                "",
                " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                " ROWS UNBOUNDED PRECEDING",
                " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                " ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
            ],
            (false, Kind::Number) => &[
                "",
                " RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING",
                " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            ],
            (false, Kind::Moment) => {
                &["", " RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 YEAR FOLLOWING"]
            }
            (false, _) => &["", " RANGE UNBOUNDED PRECEDING"],
        };
        tree.push(Tree::optional(vec![Tree::text(pick(self.random, frames))]));
        tree.push(Tree::text(")"));
        Tree::expr(tree)
    }

    fn set_operation(&mut self) -> Tree {
        let columns = self.random.uniform(1, 2);
        let kinds: Vec<Kind> = (0..columns)
            .map(|_| {
                *pick(self.random, &[&Kind::Number, &Kind::Text, &Kind::Moment, &Kind::Bytes, &Kind::Time])
            })
            .collect();
        let mut tree = vec![self.operand(&kinds)];
        for _ in 0..self.random.uniform(1, 2) {
            let operator = pick(
                self.random,
                &[
                    " UNION ",
                    " UNION ALL ",
                    " INTERSECT ",
                    " EXCEPT ",
                    " INTERSECT ALL ",
                    " EXCEPT ALL ",
                    " UNION ",
                ],
            );
            tree.push(Tree::optional(vec![Tree::text(operator), self.operand(&kinds)]));
        }
        Tree::Seq(tree)
    }

    fn operand(&mut self, kinds: &[Kind]) -> Tree {
        let (from, sources) = self.from(1);
        let condition = self.condition(&sources, &[], 40);
        let mut maker = self.maker(&sources);
        let mut item = |kind: &Kind| {
            let kind = if maker.random.percent(90) { *kind } else { Kind::Text };
            if maker.random.percent(70) {
                maker.column_of(kind).unwrap_or_else(|| maker.of(kind, 1))
            } else {
                maker.of(kind, 1)
            }
        };
        let items: Vec<Tree> = kinds.iter().map(&mut item).collect();
        Tree::Seq(vec![
            Tree::text("SELECT "),
            Tree::list(items, ", ", usize::MAX),
            Tree::text(" FROM "),
            from,
            condition,
        ])
    }

    fn recursive(&mut self) -> Tree {
        let (from, sources) = self.from(1);
        let mut maker = self.maker(&sources);
        let seed = maker.of(Kind::Number, 1);
        let step = pick(maker.random, &["n + 1", "n * 2 + 1", "n - 1", "n + 0.5"]);
        let all = pick(maker.random, &["ALL", "DISTINCT"]);
        let condition = maker.condition(1);
        let last = maker.random.uniform(3, 12);
        Tree::Seq(vec![
            Tree::text("WITH RECURSIVE r (n, level) AS (SELECT "),
            seed,
            Tree::text(", 1 FROM "),
            from,
            Tree::optional(vec![Tree::text(" WHERE "), condition]),
            Tree::text(format!(" UNION {all} SELECT {step}, level + 1 FROM r WHERE level < {last}) ")),
            Tree::text("SELECT level, COUNT(*), MIN(n), MAX(n), SUM(n) FROM r GROUP BY level"),
        ])
    }

    /// A common table expression, read twice.
    fn with_cte(&mut self) -> Tree {
        let (inner, columns) = self.derived();
        let other = &self.table().name;
        let aggregate = self.aggregate(&[Source { alias: "w".into(), columns }], 1);
        Tree::Seq(vec![
            Tree::text("WITH w AS ("),
            inner,
            Tree::text(") SELECT "),
            aggregate,
            Tree::text(", (SELECT COUNT(*) FROM w AS v) FROM w"),
            Tree::optional(vec![Tree::text(format!(" CROSS JOIN {other}"))]),
        ])
    }
}
