//! What may stand beside GROUP BY: everything after grouping is rewritten in terms of keys and aggregates, and what is
//! left of the block's own columns must follow from the keys (manual, 14.19.3 and 14.19.4).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr, ExprKind, Function, SqlMode};
use avocet_types::schema::TableDef;
use avocet_types::{IndexPart, IntWidth, SqlType};

use crate::bind::Binder;
use crate::bind::equalities::{Equality, collect_equalities, not_null_columns};
use crate::bind::scope::{BlockWindow, Clause};
use crate::kept::bind_expr;
use crate::plan::walk::{column_of, for_each_outer_mut, replace, visit_subquery, visit_window};
use crate::plan::*;

/// What is rewritten, as errors call it.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    list: &'p str,
    position: usize,
    /// The key of a window, which may be a key of GROUP BY as a whole; in MySQL no part of it is.
    is_window_key: bool,
}

impl<'p> Place<'p> {
    pub(super) fn of(clause: Clause, position: usize) -> Self {
        let list = match clause {
            Clause::Order => "ORDER BY clause",
            Clause::Having => "HAVING clause",
            _ => "SELECT list",
        };
        Self { list, position, is_window_key: false }
    }

    fn of_window(list: &'p str, position: usize) -> Self {
        Self { list, position, is_window_key: true }
    }
}

pub(super) struct Grouping {
    keys: Vec<Projected>,
    /// The block's columns that have one value per group.
    determined: BTreeSet<ColumnId>,
    /// Determined columns that are used after grouping, and the ANY_VALUE that carries each.
    carried: HashMap<ColumnId, ColumnId>,
    carriers: Vec<Aggregate>,
    strict: bool,
    rollup: bool,
}

impl Grouping {
    pub(super) fn new(
        binder: &mut Binder<'_>,
        keys: Vec<Expr>,
        filter: Option<&Expr>,
        rollup: bool,
    ) -> Result<Self, SqlError> {
        // Under ROLLUP nothing follows from a key: a row of totals has no value for it.
        let determined = match rollup {
            true => BTreeSet::new(),
            false => determined_columns(binder, &keys, filter),
        };
        let strict = binder.typer.sql_mode.has(SqlMode::ONLY_FULL_GROUP_BY);
        // `SELECT (SELECT …) AS n … GROUP BY n`: what a key is made of is evaluated before there are groups. So is what is aggregated
        // by an item's name: `HAVING SUM(n) > 1`.
        let block = binder.block();
        let args = block.aggregates.iter().flat_map(|of| {
            let order = of.order_by.iter().map(|(key, _)| key);
            of.args.iter().chain(order)
        });
        let parts: BTreeSet<usize> = keys.iter().chain(args).flat_map(Expr::columns).collect();
        for entry in block.subqueries.iter_mut().filter(|entry| parts.contains(&entry.subquery.id.index())) {
            entry.before_grouping = true;
        }
        let keys = keys
            .into_iter()
            .map(|expr| {
                let name = column_of(&expr).map_or_else(|| "".into(), |id| binder.columns[id].name.clone());
                let id = binder.add_projected(name, &expr);
                binder.columns[id].nullable |= rollup;
                // What YEAR() gives is kept as a number.
                if expr.ty == SqlType::Year && column_of(&expr).is_none() && !rollup {
                    binder.columns[id].ty = SqlType::Int { width: IntWidth::W32, unsigned: true };
                }
                Projected { id, expr }
            })
            .collect();
        let carried = HashMap::new();
        Ok(Self { keys, determined, carried, carriers: Vec::new(), strict, rollup })
    }

    /// Rewrites an expression that is evaluated after grouping.
    pub(super) fn regroup(
        &mut self,
        binder: &mut Binder<'_>,
        expr: &mut Expr,
        place: Place<'_>,
    ) -> Result<(), SqlError> {
        let mut error = None;
        let whole = (place.is_window_key && self.strict).then(|| expr.clone());
        replace(expr, &mut |part| {
            if let Some(key) = self.keys.iter().find(|key| key.expr == *part) {
                if whole.as_ref().is_some_and(|whole| whole != part)
                    && let Some(id) = self.undetermined_part(binder, part)
                {
                    error.get_or_insert_with(|| self.refusal(binder, id, place));
                }
                let ty = binder.columns[key.id].ty;
                return Some(Expr::column(key.id.index(), ty, part.nullable || self.rollup));
            }
            if let Some(arg) = any_value(part)
                && arg.columns().iter().any(|column| binder.block().owns(ColumnId(*column as u32)))
                && !self.sees_groups(binder, arg)
            {
                let carrier = self.carrier(binder, arg.clone());
                return Some(Expr::column(carrier.index(), part.ty, true));
            }
            let id = column_of(part)?;
            if !binder.block().owns(id) && !is_of_rows(binder, id) {
                return None;
            }
            match self.carry(binder, id, place) {
                Ok(carrier) => Some(Expr::column(carrier.index(), part.ty, true)),
                Err(e) => {
                    error.get_or_insert(e);
                    None
                }
            }
        });
        error.map_or(Ok(()), Err)
    }

    /// The ANY_VALUE of a column that the keys determine.
    fn carry(
        &mut self,
        binder: &mut Binder<'_>,
        id: ColumnId,
        place: Place<'_>,
    ) -> Result<ColumnId, SqlError> {
        if let Some(carrier) = self.carried.get(&id) {
            return Ok(*carrier);
        }
        if self.strict
            && let Some(unknown) = self.undetermined(binder, id)
        {
            return Err(self.refusal(binder, unknown, place));
        }
        let arg = binder.column_expr(id);
        let carrier = self.carrier(binder, arg);
        self.carried.insert(id, carrier);
        Ok(carrier)
    }

    /// The column that a group has several values of: this one, or one that this subquery reads.
    fn undetermined(&self, binder: &mut Binder<'_>, id: ColumnId) -> Option<ColumnId> {
        let block = binder.block();
        let several = |id: &ColumnId| block.owns(*id) && !self.determined.contains(id);
        match block.subqueries.iter().find(|entry| entry.subquery.id == id) {
            Some(entry) => entry.subquery.outer.iter().copied().find(|id| several(id)),
            None => Some(id).filter(several),
        }
    }

    /// A column in a part of an expression that is neither a key nor follows from the keys.
    fn undetermined_part(&self, binder: &mut Binder<'_>, part: &Expr) -> Option<ColumnId> {
        let is_key = |id: ColumnId| self.keys.iter().any(|key| column_of(&key.expr) == Some(id));
        let columns = part.columns().into_iter().map(|column| ColumnId(column as u32));
        columns.filter(|id| !is_key(*id)).find_map(|id| self.undetermined(binder, id))
    }

    /// The column in which a group shows one of its rows' values.
    fn carrier(&mut self, binder: &mut Binder<'_>, arg: Expr) -> ColumnId {
        if let Some(same) = self.carriers.iter().find(|carrier| carrier.args[0] == arg) {
            return same.id;
        }
        let name = column_of(&arg).map_or_else(|| "any_value".into(), |id| binder.columns[id].name.clone());
        let id = binder.add_projected(name, &arg);
        binder.columns[id].nullable = true;
        self.carriers.push(Aggregate::any_value(id, arg));
        id
    }

    /// Whether there is anything in an expression that only a group has.
    fn sees_groups(&self, binder: &mut Binder<'_>, expr: &Expr) -> bool {
        let block = binder.block();
        let is_aggregate = |id: ColumnId| block.aggregates.iter().any(|aggregate| aggregate.id == id);
        expr.columns().into_iter().any(|column| is_aggregate(ColumnId(column as u32)))
    }

    /// What a column of the block is called after grouping, if it is itself a key or is carried.
    fn carried_as(&self, id: ColumnId) -> Option<ColumnId> {
        let key = self.keys.iter().find(|key| column_of(&key.expr) == Some(id)).map(|key| key.id);
        key.or_else(|| self.carried.get(&id).copied())
    }

    fn refusal(&self, binder: &Binder<'_>, id: ColumnId, place: Place<'_>) -> SqlError {
        let Place { list, position, .. } = place;
        let column = binder.full_name(id);
        if self.keys.is_empty() {
            return ErrorCode::MIX_OF_GROUP_FUNC_AND_FIELDS.because(format!(
                "In aggregated query without GROUP BY, expression #{position} of {list} contains nonaggregated column \
                 '{column}'; this is incompatible with sql_mode=only_full_group_by"
            ));
        }
        ErrorCode::WRONG_FIELD_WITH_GROUP.because(format!(
            "Expression #{position} of {list} is not in GROUP BY clause and contains nonaggregated column '{column}' \
             which is not functionally dependent on columns in GROUP BY clause; this is incompatible with \
             sql_mode=only_full_group_by"
        ))
    }

    pub(super) fn regroup_windows(&mut self, binder: &mut Binder<'_>) -> Result<(), SqlError> {
        let mut windows = std::mem::take(&mut binder.block().window_functions);
        let mut result = Ok(());
        for BlockWindow { window, partition_of, order_of } in &mut windows {
            let mut keys = |keys: &mut dyn Iterator<Item = &mut Expr>, of: &str| {
                let list = format!("PARTITION BY or ORDER BY clause of window '{of}'");
                for (at, key) in keys.enumerate() {
                    self.regroup(binder, key, Place::of_window(&list, at + 1))?;
                }
                Ok::<(), SqlError>(())
            };
            keys(&mut window.partition_by.iter_mut(), partition_of)?;
            keys(&mut window.order_by.iter_mut().map(|(key, _)| key), order_of)?;
            visit_window(window, &mut |expr| {
                if result.is_ok() {
                    result = self.regroup(binder, expr, Place::of(Clause::Select, 1));
                }
            });
        }
        binder.block().window_functions = windows;
        result
    }

    /// Subqueries that the block evaluates after grouping see groups as well.
    pub(super) fn regroup_subqueries(&mut self, binder: &mut Binder<'_>) -> Result<(), SqlError> {
        let mut subqueries = std::mem::take(&mut binder.block().subqueries);
        let mut result = Ok(());
        for entry in subqueries.iter_mut().filter(|s| !s.before_grouping) {
            let (mut reached, clause) = (BTreeSet::new(), entry.clause);
            visit_subquery(&mut entry.subquery, &mut |expr| {
                if result.is_ok() {
                    result = self.regroup(binder, expr, Place::of(clause, 1));
                }
                reached.extend(expr.columns().into_iter().map(|c| ColumnId(c as u32)));
            });
            let block = binder.block();
            let ours = |id: &ColumnId| {
                self.keys.iter().any(|k| k.id == *id) || self.carriers.iter().any(|c| c.id == *id)
            };
            let kept = entry.subquery.outer.iter().copied().filter(|id| !block.owns(*id));
            let reached: Vec<_> = reached.iter().copied().filter(ours).collect();
            let outer: BTreeSet<_> = kept.chain(reached.iter().copied()).collect();
            entry.subquery.outer = outer.into_iter().collect();
            for_each_outer_mut(&mut entry.subquery.query, &mut |outer| {
                outer_after(outer, &|id| block.owns(id), &|id| self.carried_as(id), &reached);
            });
        }
        binder.block().subqueries = subqueries;
        result
    }

    /// The order in which MySQL gives the rows of WITH ROLLUP: totals after what they are of.
    pub(super) fn rollup_order(&self, binder: &mut Binder<'_>) -> Vec<Expr> {
        let mut order = Vec::with_capacity(2 * self.keys.len());
        for key in &self.keys {
            let id = binder.add_grouping(vec![key.expr.clone()]);
            order.push(binder.column_expr(id));
            order.push(Expr::column(key.id.index(), key.expr.ty, true));
        }
        order
    }

    pub(super) fn finish(self, binder: &mut Binder<'_>) -> Result<Aggregation, SqlError> {
        let mut aggregates = std::mem::take(&mut binder.block().aggregates);
        for grouping in aggregates.iter().filter(|a| a.function == AggregateFunction::Grouping) {
            let unknown = |arg: &Expr| !self.keys.iter().any(|key| key.expr == *arg);
            if let Some(at) = grouping.args.iter().position(unknown) {
                return Err(ErrorCode::FIELD_IN_GROUPING_NOT_GROUP_BY.with(&[&(at + 1)]));
            }
        }
        aggregates.extend(self.carriers);
        Ok(Aggregation { keys: self.keys, aggregates, rollup: self.rollup })
    }
}

/// Brings the outer columns of a subquery within a subquery up to date, after the columns of a block that are `replaced` have
/// been `named` anew. One that has no new name was a part of a larger expression, which is among those `reached`.
pub(super) fn outer_after(
    outer: &mut Vec<ColumnId>,
    replaced: &dyn Fn(ColumnId) -> bool,
    named: &dyn Fn(ColumnId) -> Option<ColumnId>,
    reached: &[ColumnId],
) {
    let mut now = BTreeSet::new();
    for id in outer.drain(..) {
        match (replaced(id), named(id)) {
            (false, _) => now.extend([id]),
            (true, Some(id)) => now.extend([id]),
            (true, None) => now.extend(reached),
        }
    }
    outer.extend(now);
}

/// Whether it is a subquery that is evaluated for each row, since a key is made of it.
fn is_of_rows(binder: &mut Binder<'_>, id: ColumnId) -> bool {
    binder.block().subqueries.iter().any(|entry| entry.subquery.id == id && entry.before_grouping)
}

/// What ANY_VALUE is of.
pub(super) fn any_value(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Call(Function::AnyValue, args) => args.first(),
        _ => None,
    }
}

/// The block's columns that have one value in each group: the keys, constants, what equalities lead to from there, and
/// all columns of a table of which a key is determined.
fn determined_columns(binder: &mut Binder<'_>, keys: &[Expr], filter: Option<&Expr>) -> BTreeSet<ColumnId> {
    let origins = StoredTables::of(binder);
    let block = &*binder.block();
    let mut equalities = block.equalities.clone();
    let (mut not_null, mut not_complemented) = (BTreeSet::new(), BTreeSet::new());
    if let Some(filter) = filter {
        collect_equalities(filter, &mut equalities);
        not_null_columns(filter, false, &mut not_null);
        if !block.outer_joins.is_empty() {
            not_null_columns(filter, true, &mut not_complemented);
        }
    }
    // From the outermost one inwards: what a join leaves out makes inner joins of those within.
    for join in block.outer_joins.iter().rev() {
        if join.inner.iter().any(|id| not_complemented.contains(id)) {
            collect_equalities(&join.on, &mut equalities);
            not_null_columns(&join.on, false, &mut not_null);
            not_null_columns(&join.on, true, &mut not_complemented);
        }
    }
    let mut determined: BTreeSet<_> = keys.iter().filter_map(column_of).collect();
    // Of other blocks, or of a subquery that reads nothing of this one.
    let is_constant = |id: ColumnId| {
        let subquery = block.subqueries.iter().find(|s| s.subquery.id == id);
        !block.owns(id) && !subquery.is_some_and(|s| s.subquery.outer.iter().any(|id| block.owns(*id)))
    };
    let more_keys = origins.unique_keys(&not_null);
    let computed = origins.generated();
    loop {
        let before = determined.len();
        for Equality { column, others, .. } in &equalities {
            let follows = others.iter().all(|id| determined.contains(id) || is_constant(*id));
            if follows {
                determined.insert(*column);
            }
        }
        block.dependences.extend(&mut determined);
        for table in &block.tables {
            let found = table.keys.iter().any(|key| key.iter().all(|id| determined.contains(id)));
            if found {
                determined.extend(table.columns.iter().map(|c| c.id));
            }
        }
        for (key, all) in more_keys.iter().chain(&computed) {
            if key.iter().all(|id| determined.contains(id)) {
                determined.extend(all);
            }
        }
        if determined.len() == before {
            return determined;
        }
    }
}

/// The stored tables of a block, with the ids of their columns.
struct StoredTables(Vec<(Arc<TableDef>, Vec<ColumnId>)>);

/// All of the second follow from all of the first.
type Follows = Vec<(Vec<ColumnId>, Vec<ColumnId>)>;

impl StoredTables {
    fn of(binder: &mut Binder<'_>) -> Self {
        let tables: Vec<Vec<ColumnId>> = binder
            .block()
            .tables
            .iter()
            .filter(|table| table.is_stored)
            .map(|table| table.ids().collect())
            .collect();
        let with_table = |ids: Vec<ColumnId>| {
            let origin = binder.columns[*ids.first()?].origin.as_ref()?;
            (origin.table.columns.len() == ids.len()).then(|| (origin.table.clone(), ids))
        };
        Self(tables.into_iter().filter_map(with_table).collect())
    }

    /// Of unique keys that may hold NULLs, those whose columns are not NULL here.
    fn unique_keys(&self, not_null: &BTreeSet<ColumnId>) -> Follows {
        let mut found = Vec::new();
        for (table, ids) in self.0.iter().filter(|_| !not_null.is_empty()) {
            for index in table.indexes.iter().filter(|index| index.kind.is_unique()) {
                let is_whole = |part: &IndexPart| {
                    let is_not_null =
                        !table.columns[part.column].nullable || not_null.contains(&ids[part.column]);
                    part.prefix_len.is_none() && is_not_null
                };
                if index.parts.iter().all(is_whole) {
                    found.push((index.parts.iter().map(|part| ids[part.column]).collect(), ids.clone()));
                }
            }
        }
        found
    }

    /// Generated columns follow from what they are computed from.
    fn generated(&self) -> Follows {
        let mut found = Vec::new();
        for (table, ids) in &self.0 {
            for (column, id) in table.own_columns().iter().zip(ids) {
                let Some(from) = &column.generated else { continue };
                let Ok(expr) = bind_expr(&from.expr, table, false) else { continue };
                found.push((expr.columns().into_iter().map(|column| ids[column]).collect(), vec![*id]));
            }
        }
        found
    }
}
