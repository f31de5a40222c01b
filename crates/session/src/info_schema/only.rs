//! Which tables a query of the catalog asks for, and which columns: tools ask for a few, and making the rows of all takes long.
//!
//! A scan's tables are bounded by what its block says of their names: conditions of WHERE and of inner joins, also by way of
//! equality with another scan's columns, and those of an outer join for the side that may be missing. All of these are
//! tested afterwards, too; as none of them holds for NULL, rows that are left out were none of the answer, and neither are those
//! that an outer join gives in their place.

use avocet_sql::plan::walk::{column_of, for_each_select};
use avocet_sql::plan::{BoundQuery, ColumnId, From, JoinKind, Select, TableScan};
use avocet_types::Datum;
use avocet_types::expr::{CompareOp, Expr, ExprKind, Function};
use avocet_types::schema::TableDef;

use super::NAME;
use crate::output::{Names, Only};

/// What the query says of a table of the server's own, whose rows all its scans share. `database` is the current one.
pub(crate) fn only_of(
    bound: &BoundQuery,
    table: &TableDef,
    params: &[Datum<'_>],
    database: Option<&str>,
) -> Only {
    let mut scans = Vec::new();
    let mut columns = vec![false; table.columns.len()];
    for_each_select(&bound.body, &mut |select| {
        let mut found = Vec::new();
        scans_of(&select.from, &mut found);
        if !found.iter().any(|scan| scan.table.id == table.id) {
            return;
        }
        let facts = Facts::of(select, &found, params, database);
        for scan in found.into_iter().filter(|scan| scan.table.id == table.id) {
            scans.push(facts.names_of(scan));
            for (at, _) in &scan.columns {
                columns.get_mut(*at).into_iter().for_each(|asked| *asked = true);
            }
        }
    });
    Only { scans: Some(scans), columns: Some(columns.into()) }
}

fn scans_of<'f>(from: &'f From, found: &mut Vec<&'f TableScan>) {
    match from {
        From::Table(scan) => found.push(scan),
        From::Join(join) => {
            scans_of(&join.left, found);
            scans_of(&join.right, found);
        }
        From::Dual | From::Derived(_) | From::Cte(_) => {}
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Database,
    Table,
}

/// What a column of information_schema names, if its rows are made by that.
fn kind_of(scan: &TableScan, at: usize) -> Option<Kind> {
    match scan.table.columns.get(at)?.name.as_str() {
        "TABLE_SCHEMA" | "CONSTRAINT_SCHEMA" | "INDEX_SCHEMA" => Some(Kind::Database),
        "TABLE_NAME" => Some(Kind::Table),
        _ => None,
    }
}

/// A column that names databases or tables, and the only names that count there, if these are known.
struct Named {
    id: ColumnId,
    kind: Kind,
    values: Option<Vec<Box<str>>>,
}

struct Facts<'q> {
    named: Vec<Named>,
    /// Who knows the first one's names knows the second one's.
    edges: Vec<(ColumnId, ColumnId)>,
    params: &'q [Datum<'q>],
    /// What DATABASE() is.
    database: Option<&'q str>,
}

impl<'q> Facts<'q> {
    fn of(select: &Select, scans: &[&TableScan], params: &'q [Datum<'q>], database: Option<&'q str>) -> Self {
        let columns = scans.iter().filter(|scan| scan.table.database == NAME).flat_map(|scan| {
            let named = |(at, id): &(usize, ColumnId)| Some((*id, kind_of(scan, *at)?));
            scan.columns.iter().filter_map(named)
        });
        let named = columns.map(|(id, kind)| Named { id, kind, values: None }).collect();
        let mut facts = Self { named, edges: Vec::new(), params, database };
        select.filter.iter().for_each(|filter| facts.assume(filter, None));
        facts.see_joins(&select.from);
        // Each round makes one more column known at least.
        while let Some((to, values)) = facts.next() {
            facts.named[to].values = Some(values);
        }
        facts
    }

    fn see_joins(&mut self, from: &From) {
        let From::Join(join) = from else { return };
        self.see_joins(&join.left);
        self.see_joins(&join.right);
        let Some(on) = &join.on else { return };
        match join.kind {
            JoinKind::Inner => self.assume(on, None),
            JoinKind::Left => {
                let mut right = Vec::new();
                scans_of(&join.right, &mut right);
                let right = right.iter().flat_map(|scan| scan.columns.iter().map(|(_, id)| *id));
                self.assume(on, Some(&right.collect::<Vec<_>>()));
            }
        }
    }

    /// Takes a condition that holds for all rows of these columns; of others, it says nothing.
    fn assume(&mut self, condition: &Expr, within: Option<&[ColumnId]>) {
        let is_within = |id: ColumnId| within.is_none_or(|within| within.contains(&id));
        match &condition.kind {
            ExprKind::And(parts) => parts.iter().for_each(|part| self.assume(part, within)),
            ExprKind::Compare { op: CompareOp::Eq, left, right }
                if let (Some(left), Some(right)) = (column_of(left), column_of(right)) =>
            {
                for (from, to) in [(left, right), (right, left)] {
                    let kind = |id| self.position(id).map(|at| self.named[at].kind);
                    if is_within(to) && kind(from).is_some() && kind(from) == kind(to) {
                        self.edges.push((from, to));
                    }
                }
            }
            _ => {
                for (id, values) in self.listed(condition) {
                    if is_within(id) {
                        self.restrict(id, values);
                    }
                }
            }
        }
    }

    /// The columns of which a condition lists the values.
    fn listed(&self, condition: &Expr) -> Vec<(ColumnId, Vec<Box<str>>)> {
        match &condition.kind {
            ExprKind::Compare { op: CompareOp::Eq, left, right } => {
                let sides = [(left, right), (right, left)];
                let equal = |(column, value): (&Expr, &Expr)| {
                    let id = self.named_column(column)?;
                    Some((id, vec![self.name(value)?]))
                };
                sides.into_iter().find_map(|(a, b)| equal((a, b))).into_iter().collect()
            }
            ExprKind::InList { expr, list, negated: false } => {
                let values = || list.iter().map(|value| self.name(value)).collect::<Option<Vec<_>>>();
                self.named_column(expr).and_then(|id| Some((id, values()?))).into_iter().collect()
            }
            // All that hold together are as good as one of them.
            ExprKind::And(parts) => parts.iter().flat_map(|part| self.listed(part)).collect(),
            ExprKind::Or(parts) => {
                let mut branches = parts.iter().map(|part| self.listed(part));
                let mut all = branches.next().unwrap_or_default();
                for branch in branches {
                    all.retain_mut(|(id, values)| {
                        let same = branch.iter().find(|(other, _)| other == id);
                        same.is_some_and(|(_, more)| {
                            values.extend(more.iter().cloned());
                            true
                        })
                    });
                }
                all
            }
            _ => Vec::new(),
        }
    }

    fn named_column(&self, expr: &Expr) -> Option<ColumnId> {
        column_of(expr).filter(|id| self.position(*id).is_some())
    }

    /// A name that is given. Names are compared byte by byte but for blanks at their ends.
    fn name(&self, expr: &Expr) -> Option<Box<str>> {
        let name = match &expr.kind {
            // Brought to the column's character set.
            ExprKind::Convert(inner) => return self.name(inner),
            ExprKind::Call(Function::Database, _) => return self.database.map(Into::into),
            ExprKind::Param(at) => self.params.get(*at)?,
            _ => expr.as_literal()?,
        };
        match name {
            Datum::Str(text) if !text.ends_with(' ') => Some(text.as_ref().into()),
            _ => None,
        }
    }

    fn position(&self, id: ColumnId) -> Option<usize> {
        self.named.iter().position(|named| named.id == id)
    }

    fn restrict(&mut self, id: ColumnId, values: Vec<Box<str>>) {
        if let Some(at) = self.position(id) {
            // Of several conditions, the shortest list.
            let known = &mut self.named[at].values;
            if known.as_ref().is_none_or(|known| known.len() > values.len()) {
                *known = Some(values);
            }
        }
    }

    /// A column whose names follow from another's.
    fn next(&self) -> Option<(usize, Vec<Box<str>>)> {
        self.edges.iter().find_map(|(from, to)| {
            let (from, to) = (&self.named[self.position(*from)?], self.position(*to)?);
            self.named[to].values.is_none().then(|| from.values.clone().map(|values| (to, values)))?
        })
    }

    fn names_of(&self, scan: &TableScan) -> Names {
        let of = |kind: Kind| {
            let ids = scan.columns.iter().filter_map(|(_, id)| self.position(*id));
            let known = ids.map(|at| &self.named[at]).filter(|named| named.kind == kind);
            known.filter_map(|named| named.values.clone()).min_by_key(Vec::len)
        };
        Names { databases: of(Kind::Database), tables: of(Kind::Table) }
    }
}
