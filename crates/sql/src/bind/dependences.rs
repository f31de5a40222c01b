//! Which columns of a derived table follow from which others, so that they may stand beside GROUP BY of these (manual, 14.19.4).
//!
//! A row of a derived table follows from the rows that it is made of, and these from their tables' keys. Each of them has an id of its
//! own among the columns, as if there were a column of row ids. What holds in a CTE holds for each reference to it, for columns of
//! other names.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use avocet_types::IndexPart;
use avocet_types::expr::Expr;

use crate::bind::equalities::{Equality, collect_equalities};
use crate::plan::walk::column_of;
use crate::plan::*;

/// All of `to` have one value where all of `from` have.
#[derive(Clone, Debug)]
pub(super) struct Dependence {
    from: Vec<ColumnId>,
    to: Vec<ColumnId>,
    /// Also in rows that an outer join complements, where all are NULL.
    outlives_outer: bool,
}

/// Those within a CTE.
#[derive(Debug)]
pub(super) struct OfCte {
    all: Dependences,
    columns: Vec<ColumnId>,
    row: ColumnId,
}

pub(super) type OfCtes = HashMap<CteId, OfCte>;

impl OfCte {
    /// `columns` are those of the CTE, which is `query`.
    pub fn new(query: &QueryExpr, columns: &[ColumnId], others: &OfCtes) -> Self {
        let mut within = Dependences::default();
        let row = within.add_query(query, others);
        let mut all = Dependences::default();
        let row_of_cte = all.row();
        let of: Vec<_> = query.outputs.iter().copied().chain([row]).collect();
        let named: Vec<_> = columns.iter().copied().chain([row_of_cte]).collect();
        all.add_renamed(&within, &of, &named);
        Self { all, columns: columns.to_vec(), row: row_of_cte }
    }
}

/// Those of a block's derived tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Dependences {
    all: Vec<Dependence>,
    rows: u32,
}

impl Dependences {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds to the columns that have one value what follows from them.
    pub fn extend(&self, determined: &mut BTreeSet<ColumnId>) {
        for Dependence { from, to, .. } in &self.all {
            if from.iter().all(|id| determined.contains(id)) {
                determined.extend(to);
            }
        }
    }

    /// Keeps of the columns of an outer join's inner side, whose dependences are in this range, what holds for rows without a partner.
    pub fn complement(&mut self, side: Range<usize>) {
        let mut at = 0;
        self.all.retain(|dependence| {
            let is_inner = side.contains(&at);
            at += 1;
            !is_inner || dependence.outlives_outer
        });
    }

    /// Adds those between the columns of a query, its outputs among them; what its row is called.
    pub fn add_query(&mut self, query: &QueryExpr, of_ctes: &OfCtes) -> ColumnId {
        self.add_rows(query, of_ctes, shows_rows(query))
    }

    /// The same; what is random is of the row alone if the rows are not gathered first (`is_shown`).
    pub fn add_rows(&mut self, query: &QueryExpr, of_ctes: &OfCtes, is_shown: bool) -> ColumnId {
        let row = self.row();
        let QueryBody::Select(select) = &query.body else { return row };
        // A row of totals has no value of what a group is by.
        if select.aggregation.as_ref().is_some_and(|aggregation| aggregation.rollup) {
            return row;
        }
        let of_from = self.add_from(&select.from, of_ctes);
        let is_merged = can_merge(query);
        select.filter.iter().for_each(|filter| self.add_equalities(filter, is_merged));
        match &select.aggregation {
            Some(aggregation) => {
                aggregation.keys.iter().for_each(|key| self.add_computed(key));
                // Where one of its rows stands for a group, what it shows is of that row.
                for carrier in
                    aggregation.aggregates.iter().filter(|of| of.function == AggregateFunction::AnyValue)
                {
                    let shown = carrier.args.iter().filter_map(column_of).collect();
                    self.add(vec![carrier.id], shown);
                }
                let keys = aggregation.keys.iter().map(|key| key.id).collect();
                let aggregates = aggregation.aggregates.iter().map(|aggregate| aggregate.id);
                let to = aggregates.chain([row]).collect();
                // A group of NULLs is not a row that there is not.
                let outlives_outer = aggregation.keys.iter().any(|key| !key.expr.nullable);
                self.all.push(Dependence { from: keys, to, outlives_outer });
            }
            None => self.add(of_from, vec![row]),
        }
        select.projection.iter().for_each(|item| self.add_computed(item));
        let is_of_row = |item: &&Projected| is_shown || !item.expr.is_volatile();
        let shown: Vec<_> = select.projection.iter().filter(is_of_row).map(|item| item.id).collect();
        if select.distinct {
            self.add(query.outputs.clone(), vec![row]);
        }
        self.add(vec![row], shown);
        row
    }

    /// Adds those of a CTE for one more reference to it, which has these columns; what its row is called.
    pub fn add_cte(&mut self, id: CteId, columns: &[ColumnId], of_ctes: &OfCtes) -> ColumnId {
        let row = self.row();
        if let Some(cte) = of_ctes.get(&id) {
            let of: Vec<_> = cte.columns.iter().copied().chain([cte.row]).collect();
            let named: Vec<_> = columns.iter().copied().chain([row]).collect();
            self.add_renamed(&cte.all, &of, &named);
        }
        row
    }

    /// Adds what holds for `of`, for `names` instead. What has no new name gets one that nothing else has.
    fn add_renamed(&mut self, others: &Self, of: &[ColumnId], names: &[ColumnId]) {
        let mut known: HashMap<ColumnId, ColumnId> = of.iter().copied().zip(names.iter().copied()).collect();
        for Dependence { from, to, outlives_outer } in &others.all {
            let mut name = |id: &ColumnId| *known.entry(*id).or_insert_with(|| self.row());
            let from = from.iter().map(&mut name).collect();
            let to = to.iter().map(&mut name).collect();
            self.all.push(Dependence { from, to, outlives_outer: *outlives_outer });
        }
    }

    fn row(&mut self) -> ColumnId {
        self.rows += 1;
        ColumnId(u32::MAX - self.rows)
    }

    /// What follows from nothing is NULL all the same in a row that an outer join complements.
    fn add(&mut self, from: Vec<ColumnId>, to: Vec<ColumnId>) {
        let outlives_outer = !from.is_empty();
        self.all.push(Dependence { from, to, outlives_outer });
    }

    fn add_computed(&mut self, item: &Projected) {
        if item.expr.is_volatile() {
            return;
        }
        let column = column_of(&item.expr);
        if let Some(column) = column {
            self.add(vec![item.id], vec![column]);
        }
        let from = item.expr.columns().into_iter().map(|column| ColumnId(column as u32)).collect();
        self.all.push(Dependence { from, to: vec![item.id], outlives_outer: column.is_some() });
    }

    fn add_equalities(&mut self, condition: &Expr, is_merged: bool) {
        let mut found = Vec::new();
        collect_equalities(condition, &mut found);
        // As in MySQL, a column that equals an expression follows from that in the block itself alone; from a constant, in what is merged
        // into it, too.
        let counts = |equality: &Equality| equality.is_plain || is_merged && equality.others.is_empty();
        for equality in found.into_iter().filter(counts) {
            self.add(equality.others, vec![equality.column]);
        }
    }

    /// What the rows are called that a row of FROM is made of.
    fn add_from(&mut self, from: &From, of_ctes: &OfCtes) -> Vec<ColumnId> {
        match from {
            From::Table(scan) => vec![self.add_table(scan)],
            From::Derived(derived) => vec![self.add_query(&derived.query, of_ctes)],
            From::Join(join) => {
                let mut rows = self.add_from(&join.left, of_ctes);
                let left = self.all.len();
                rows.extend(self.add_from(&join.right, of_ctes));
                match (join.kind, &join.on) {
                    (JoinKind::Inner, Some(on)) => self.add_equalities(on, false),
                    (JoinKind::Inner, None) => {}
                    (JoinKind::Left, _) => self.complement(left..usize::MAX),
                }
                rows
            }
            From::Dual => Vec::new(),
            From::Cte(reference) => vec![self.add_cte(reference.cte, &reference.columns, of_ctes)],
        }
    }

    fn add_table(&mut self, scan: &TableScan) -> ColumnId {
        let row = self.row();
        let id_of = |part: &IndexPart| {
            let is_whole = part.prefix_len.is_none() && !scan.table.columns[part.column].nullable;
            let used = scan.columns.iter().find(|(at, _)| *at == part.column && is_whole)?;
            Some(used.1)
        };
        for index in scan.table.indexes.iter().filter(|index| index.kind.is_unique()) {
            if let Some(key) = index.parts.iter().map(id_of).collect() {
                self.add(key, scan.columns.iter().map(|(_, id)| *id).chain([row]).collect());
            }
        }
        row
    }
}
