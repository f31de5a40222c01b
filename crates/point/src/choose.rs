//! Which index a table is read by: the conditions that an index can serve, and what each index makes of them.
//!
//! A full unique key comes first; otherwise what is estimated to visit the fewest rows, and among equals what gives the
//! wanted order. Estimates grow with the table: equality on `k` columns leaves `rows^(1/(k+1))` where
//! nothing better is known. An OR that no single index serves may lead along several ([`union`]). A plan remembers up to how many rows of the table its estimate stays small
//! ([`Access::row_limit`]), so that a plan made for an empty table is not kept when the table has grown.
//!
//! A statement that wants the first rows of an order may meet them sooner along that order than among all that its conditions
//! lead to. Queries and changes of one table, and joins that begin with the table of the order, have both ways in their plans,
//! and each run chooses ([`Choice::along`]).

mod estimate;
mod loose;
mod union;

use std::cmp::Reverse;
use std::sync::Arc;

use avocet_engine::{IndexHandle, TableHandle};
use avocet_sql::ranges::{Alternatives, Condition, Side, Test, alternatives, conditions};
use avocet_types::expr::{CompareOp, EvalContext, Expr, RowProgram};
use avocet_types::{Datum, IndexKind, IndexPart};

use super::Refusal;
use super::keys::{Edge, EqTerm, KeyTerms, PrefixTerm, RangeTerm};
use super::scope::Scope;

pub use loose::{Grouped, Loose, choose_loose};

use estimate::{
    CLOSED_RANGE, Estimate, LIKELY_EQUALS, LIKELY_ROWS, MANY_ROWS, NEARLY_ALL, OPEN_RANGE, READ_WHOLE,
    SMALL_TABLE,
};
use union::Union;

/// Lists on several columns are combined up to so many keys; beyond that the keys end before the last list.
const MAX_KEYS: usize = 16_384;

/// How the rows of one table are found.
#[derive(Debug, Default)]
pub struct Access {
    /// Position among the table's indexes; `None` reads the whole table, or what `union` says.
    pub index: Option<usize>,
    pub terms: KeyTerms,
    /// The rows of any of these, each by an index of its own; nothing but the limits is set beside them.
    pub union: Box<[Access]>,
    pub descending: bool,
    /// Of each group only the ends are read.
    pub loose: Option<Loose>,
    /// The columns that the statement uses of rows that it does not lock; `None` for all.
    pub columns: Option<Box<[usize]>>,
    /// The table may have so many rows before another path is better.
    pub row_limit: u64,
    /// The range ends a unique key and has two bounds: if they are integers, they tell how many rows it holds at most.
    pub spans: bool,
    /// It is for few rows, and how many there are is measured before they are read, as nothing was known of them.
    pub is_measured: bool,
    /// Instead of that, rows are read in the wanted order until there are as many as the LIMIT, or until it took too many.
    pub is_tried: bool,
}

impl Access {
    /// For EXPLAIN: `t by k (2 = columns, range)`.
    pub fn describe(&self, table: &TableHandle) -> String {
        let way = self.describe_way(table);
        match (self.is_tried, self.is_measured) {
            (true, _) => format!("{way}, if soon enough match"),
            (_, true) => format!("{way}, if they are few"),
            _ => way,
        }
    }

    fn describe_way(&self, table: &TableHandle) -> String {
        let name = &table.def.name;
        if !self.union.is_empty() {
            let ways: Vec<_> = self.union.iter().map(|part| part.describe_index(table)).collect();
            return format!("{name} {}", ways.join(" or "));
        }
        match self.index {
            Some(_) => format!("{name} {}", self.describe_index(table)),
            None => format!("{name}, all rows"),
        }
    }

    pub fn describe_index(&self, table: &TableHandle) -> String {
        let index = self.index.map_or("no index", |index| &table.indexes()[index].def.name);
        if !self.terms.any_of.is_empty() {
            return format!("by {index} (any of {})", self.terms.any_of.len());
        }
        if !self.terms.all_of.is_empty() {
            return format!("by {index} (all of {} alternatives)", self.terms.all_of.len());
        }
        if let Some(Loose { parts: 0, .. }) = self.loose {
            return format!("by {index} (both ends)");
        }
        if let Some(loose) = self.loose {
            return format!("by {index} (ends of groups of {})", loose.parts);
        }
        match (self.terms.unique, self.terms.eq.len(), self.terms.range.is_some()) {
            (true, ..) => format!("by {index}, one row"),
            (_, 0, false) => format!("along {index}"),
            (_, 0, true) => format!("by {index} (range)"),
            (_, n, false) => format!("by {index} ({n} equal)"),
            (_, n, true) => format!("by {index} ({n} equal, range)"),
        }
    }

    /// Of the rows only these columns are used.
    pub fn read_only(&mut self, columns: &[usize]) {
        // The ends of groups are compared by the columns of the index.
        if self.loose.is_none() {
            self.columns = Some(columns.into());
            self.union.iter_mut().for_each(|part| part.read_only(columns));
        }
    }

    /// All programs that give the values of its keys.
    pub fn for_each_program(&self, visit: &mut dyn FnMut(&RowProgram)) {
        self.terms.for_each_program(visit);
        self.union.iter().for_each(|part| part.for_each_program(visit));
    }

    /// Whether it goes to rows by keys that the statement gives, and not through all of them.
    pub fn has_keys(&self, params: &[Datum<'_>], ctx: &EvalContext) -> bool {
        self.terms.are_keys(params, ctx)
            || !self.union.is_empty() && self.union.iter().all(|part| part.has_keys(params, ctx))
    }

    /// Whether its keys lead to rows of which there may be any number.
    pub fn leads_to_several(&self) -> bool {
        !self.terms.unique && (self.index.is_some() || !self.union.is_empty())
    }

    /// Whether the groups whose ends it reads are those that the statement names.
    pub fn has_few_groups(&self) -> bool {
        self.loose.is_some_and(|loose| loose.parts == 0 || loose.parts == self.terms.eq.len())
    }

    /// Whether it goes through rows along the primary key, or through all, and not to single ones.
    pub fn is_scan(&self, table: &TableHandle) -> bool {
        let Some(index) = self.index else { return self.union.is_empty() };
        let index = &table.indexes()[index].def;
        index.kind == IndexKind::Primary && self.terms.eq.len() < index.parts.len()
    }
}

/// An access and what it leaves to be done.
#[derive(Default)]
pub struct Choice {
    pub access: Access,
    /// Conditions that the keys guarantee, by position.
    pub served: Vec<usize>,
    /// The keys begin with the first column of the wanted order, and hold no NULL there.
    pub first_value: bool,
    pub gives_order: bool,
    /// Rows come in the order of so many of the first wanted columns.
    pub order_prefix: usize,
    pub estimate: f64,
    /// The way along the wanted order, which is shorter if the access leads to many rows.
    pub along: Option<Box<Choice>>,
}

impl Choice {
    /// Each run goes along an order instead if its access leads to many rows, so it is for tables of any size.
    fn run_along(&mut self, along: Option<Box<Self>>, wish: &Wish<'_>, rows: f64) {
        let (Some(along), Some(limit)) = (along, wish.limit) else { return };
        self.estimate = self.estimate.min((limit as f64 * rows).sqrt());
        self.access.row_limit = u64::MAX;
        self.along = Some(along);
    }

    /// Good for tables of any size, if it `is` so.
    fn of_any_size(mut self, is: bool) -> Self {
        if is {
            self.access.row_limit = u64::MAX;
        }
        self
    }
}

/// What the statement would like of the first table.
#[derive(Default)]
pub struct Wish<'w> {
    /// Columns, with `true` for descending.
    pub order: &'w [(usize, bool)],
    /// Rows that will be taken if they come in order.
    pub limit: Option<u64>,
    /// The first row in order is all, and NULL does not count (MIN, MAX): the order is of one column.
    pub first_value: bool,
    /// The only table, of a statement that another path may take when its parameters turn out to ask for many rows.
    pub may_measure: bool,
    /// Rows are locked on the way: what is examined counts, also where the tables are small.
    pub must: bool,
    /// Rows are seen to one after the other, each once: those of a whole table in the wanted order, or that of the primary key.
    pub in_key_order: bool,
    /// Any index will do: the plan is left when it takes too long.
    pub tries: bool,
    /// Nothing but an index that gives the order.
    pub only_in_order: bool,
    /// A run can choose between two ways.
    pub switches: bool,
}

impl Wish<'_> {
    /// Whether the first rows of an order are wanted.
    fn is_page(&self) -> bool {
        !self.first_value && !self.order.is_empty() && self.limit.is_some()
    }
}

/// The indexes that a plan may use, with their positions.
fn visible_indexes(handle: &TableHandle) -> impl Iterator<Item = (usize, &Arc<IndexHandle>)> {
    handle.indexes().iter().enumerate().filter(|(n, _)| !handle.def.indexes[*n].invisible)
}

/// Chooses how to read `table`, the rows of `bound` tables (a bit each) being known. `None` if nothing serves.
pub fn choose(
    scope: &Scope,
    table: usize,
    bound: u32,
    conjuncts: &[Expr],
    wish: &Wish<'_>,
) -> Result<Option<Choice>, Refusal> {
    let handle = scope.tables[table].stored().expect("rows are looked up in stored tables");
    let conditions = conditions(scope, table, bound, conjuncts.iter().enumerate());
    let mut alternatives = alternatives(scope, table, bound, conjuncts, &conditions);
    // Nearly all rows are better read in another way, unless those that are left out are not to be locked.
    alternatives.retain(|or| wish.must || or.narrows());
    let rows = (handle.row_count() as f64).max(1.0);
    let (mut best, mut in_order): (Option<Draft<'_>>, Option<Draft<'_>>) = (None, None);
    for (n, index) in visible_indexes(handle) {
        let draft = Draft::of(handle, n, index, &conditions, conjuncts.len(), wish);
        if draft.gives_order && in_order.as_ref().is_none_or(|first| draft.beats(first, rows)) {
            in_order = Some(Draft::of(handle, n, index, &conditions, conjuncts.len(), wish));
        }
        let mut sides = Vec::new();
        for or in &alternatives {
            sides.extend(Draft::of_any(handle, n, index, vec![or], &draft, conjuncts.len(), wish));
        }
        if sides.len() > 1 {
            let served = sides.iter().flat_map(|side| &side.any_of).map(|(or, _)| *or).collect();
            sides.extend(Draft::of_any(handle, n, index, served, &draft, conjuncts.len(), wish));
        }
        for draft in std::iter::once(draft).chain(sides) {
            if best.as_ref().is_none_or(|best| draft.beats(best, rows.max(LIKELY_ROWS))) {
                best = Some(draft);
            }
        }
    }
    if wish.only_in_order {
        let choice = in_order.map(|draft| draft.finish(scope, handle, rows)).transpose()?;
        return Ok(choice.map(|choice| choice.of_any_size(wish.tries)));
    }
    let union = alternatives.iter().filter_map(|or| Union::of(handle, or, rows.max(LIKELY_ROWS), wish));
    let union = union.min_by(|a, b| a.rows(rows).total_cmp(&b.rows(rows))).filter(|_| !wish.in_key_order);
    // A plan that locks rows is for few of them, however small the table is now.
    let whole = whole_table(if wish.must { rows.max(LIKELY_ROWS) } else { rows });
    let is_few = |estimate: &Estimate| rows <= estimate.row_limit() as f64;
    let has_along = wish.switches && wish.is_page() && in_order.is_some();
    let mut best = best.filter(|best| {
        let useful = best.has_terms() || (best.order_prefix > 0 && wish.limit.is_some());
        let switches = has_along && best.narrows() && best.order_prefix == 0 && !best.gives_order;
        useful && (wish.must || wish.tries || wish.may_measure || switches || is_few(&best.estimate))
    });
    if wish.in_key_order && best.is_none() {
        let along = in_order.filter(|_| !wish.order.is_empty());
        return match along {
            Some(draft) => draft.finish(scope, handle, rows).map(|choice| Some(choice.of_any_size(true))),
            None => Ok(Some(along_primary(handle, whole).of_any_size(true))),
        };
    }
    // Where nothing leads to few rows, those that a page of a list wants may come first in its order.
    let is_page = wish.may_measure && !wish.must && wish.is_page();
    let is_unsure = is_page && rows > SMALL_TABLE && best.as_ref().is_none_or(|best| !is_few(&best.estimate));
    let tried = match best.as_ref().is_some_and(Draft::narrows) {
        _ if !is_unsure || union.is_some() => None,
        true => best.take_if(|best| best.order_prefix > 0),
        false => in_order.take(),
    };
    if let Some(draft) = tried {
        let mut choice = draft.finish(scope, handle, rows)?;
        (choice.access.is_measured, choice.access.is_tried) = (true, true);
        return Ok(Some(choice));
    }
    let along = in_order.filter(|_| has_along);
    let along = along.map(|draft| draft.finish(scope, handle, rows).map(Box::new)).transpose()?;
    let union = union.filter(|union| {
        let is_less =
            best.as_ref().is_none_or(|best| union.rows(rows) < best.estimate.rows(rows.max(LIKELY_ROWS)));
        is_less && (wish.must || wish.tries || wish.may_measure || has_along || is_few(&union.estimate))
    });
    if let Some(union) = union {
        let mut choice = union.finish(scope, handle)?;
        let is_sure = is_few(&union.estimate) && !union.is_unsure(rows) || !wish.may_measure;
        choice.access.is_measured = !wish.must && !wish.tries && !is_sure;
        choice.run_along(along, wish, rows);
        return Ok(Some(choice.of_any_size(wish.tries)));
    }
    match best {
        Some(draft) => {
            let is_sure = is_few(&draft.estimate) && !draft.is_unsure(rows) || !wish.may_measure;
            let mut choice = draft.finish(scope, handle, rows.max(LIKELY_ROWS))?;
            choice.access.is_measured = !wish.must && !wish.tries && !is_sure;
            let leads_anywhere =
                choice.order_prefix == 0 && !choice.gives_order && !choice.access.terms.unique;
            choice.run_along(along.filter(|_| leads_anywhere), wish, rows);
            Ok(Some(choice.of_any_size(wish.tries)))
        }
        None if wish.must || rows <= READ_WHOLE => Ok(Some(whole)),
        None => Ok(None),
    }
}

fn whole_table(rows: f64) -> Choice {
    let access = Access { row_limit: READ_WHOLE as u64, ..Access::default() };
    Choice { access, estimate: rows, ..Choice::default() }
}

/// The whole table in the order of its primary key, if it has one.
fn along_primary(handle: &TableHandle, mut whole: Choice) -> Choice {
    whole.access.index = handle.indexes().iter().position(|index| index.def.kind == IndexKind::Primary);
    whole
}

/// What one index makes of the conditions.
struct Draft<'c> {
    index: usize,
    kind: IndexKind,
    /// What its entries are ordered by: see `IndexDef::key_parts`.
    parts: &'c [IndexPart],
    eq: Vec<&'c Condition<'c>>,
    /// What else is said of the columns that equal something, each by its place among them.
    also: Vec<(usize, &'c Condition<'c>)>,
    /// What is said of the column after those.
    range: Vec<&'c Condition<'c>>,
    prefix: Option<&'c Condition<'c>>,
    /// A range of all that is not NULL.
    not_null: bool,
    unique: bool,
    gives_order: bool,
    /// As in `Choice`. All of the wanted order if it gives that.
    order_prefix: usize,
    descending: bool,
    estimate: Estimate,
    /// The sides of ORs, which all hold; nothing of the terms above is set then.
    any_of: Vec<(&'c Alternatives<'c>, Vec<Draft<'c>>)>,
}

impl<'c> Draft<'c> {
    /// What an index makes of ORs each of whose sides it serves. `plain`: what it makes of the other conditions, which the sides
    /// contain.
    fn of_any(
        handle: &TableHandle,
        index: usize,
        is: &'c IndexHandle,
        ors: Vec<&'c Alternatives<'c>>,
        plain: &Self,
        conjuncts: usize,
        wish: &Wish<'_>,
    ) -> Option<Self> {
        let each = Wish { must: wish.must, tries: wish.tries, ..Wish::default() };
        let sides_of = |or: &'c Alternatives<'c>| {
            let side = |side: &'c Side<'c>| {
                let draft = Self::of(handle, index, is, &side.conditions, usize::MAX, &each);
                draft.has_terms().then_some(draft)
            };
            or.sides.iter().map(side).collect::<Option<Vec<_>>>()
        };
        let any_of = ors.into_iter().map(|or| Some((or, sides_of(or)?))).collect::<Option<Vec<_>>>()?;
        // Ranges along an index give its order, whatever they are.
        let mut draft = Self::of(handle, index, is, &[], usize::MAX, wish);
        draft.not_null = false;
        draft.any_of = any_of;
        let own =
            draft.any_of.iter().map(|(_, sides)| Estimate::sum(sides.iter().map(|side| &side.estimate)));
        draft.estimate = own.reduce(Estimate::both).unwrap_or(draft.estimate);
        if plain.has_terms() {
            draft.estimate = draft.estimate.within(plain.estimate);
        }
        if conjuncts == draft.any_of.len() && draft.any_of.iter().all(|(or, sides)| serve_or(or, sides)) {
            draft.end_after(wish, handle.row_count());
        }
        Some(draft)
    }

    /// The statement ends after the rows that it wants, if they come in its order, or nearly so.
    fn end_after(&mut self, wish: &Wish<'_>, table: u64) {
        let equals = match (self.gives_order, self.order_prefix) {
            (true, _) => 1.0,
            (false, 0) => return,
            (false, _) => LIKELY_EQUALS,
        };
        let Some(limit) = wish.limit else { return };
        let limited = Estimate { factor: limit as f64 * equals, power: 0.0 };
        let rows = table as f64;
        let is_few = limited.row_limit() == u64::MAX && self.estimate.row_limit() < u64::MAX;
        if is_few || limited.rows(rows) < self.estimate.rows(rows) {
            self.estimate = limited;
        }
    }

    fn has_terms(&self) -> bool {
        !self.eq.is_empty() || self.has_range() || !self.any_of.is_empty()
    }

    /// Whether its terms do more than to leave single values out.
    fn narrows(&self) -> bool {
        let leaves_out = |condition: &&Condition<'_>| matches!(condition.test, Test::Not(_));
        !self.eq.is_empty()
            || self.prefix.is_some()
            || !self.any_of.is_empty()
            || !self.range.iter().all(leaves_out)
    }

    /// Whether it may lead to many rows although it is taken to lead to few: a range does as its bounds are, and of a large
    /// table some values are frequent.
    fn is_unsure(&self, rows: f64) -> bool {
        let has_range =
            self.has_range() || self.any_of.iter().flat_map(|(_, sides)| sides).any(Self::has_range);
        self.estimate.power > 0.0 && self.has_terms() && (has_range || rows > MANY_ROWS)
    }

    fn of(
        handle: &TableHandle,
        index: usize,
        is: &'c IndexHandle,
        conditions: &'c [Condition<'c>],
        conjuncts: usize,
        wish: &Wish<'_>,
    ) -> Self {
        let parts = &is.parts;
        let on = |column: usize| conditions.iter().filter(move |c| c.column == column);
        let mut eq: Vec<&Condition<'_>> = Vec::new();
        let mut also = Vec::new();
        let mut keys = 1usize;
        for (n, part) in parts.iter().enumerate() {
            // A single value before a list: the shorter work, and it keeps the order.
            let found = on(part.column)
                .filter(|c| c.test.is_equality())
                .min_by_key(|c| matches!(c.test, Test::In(_)));
            let Some(found) = found else { break };
            if let Test::In(list) = found.test {
                if keys > 1 && keys.saturating_mul(list.len()) > MAX_KEYS {
                    break;
                }
                keys = keys.saturating_mul(list.len().max(1));
            }
            eq.push(found);
            let others =
                on(part.column).filter(|other| !std::ptr::eq(*other, found) && other.test.is_limit());
            also.extend(others.map(|other| (n, other)));
            if part.prefix_len.is_some() {
                break;
            }
        }
        let mut draft = Self {
            index,
            kind: is.def.kind,
            parts,
            range: Vec::new(),
            also,
            prefix: None,
            not_null: false,
            unique: false,
            gives_order: false,
            order_prefix: 0,
            descending: false,
            estimate: Estimate::ONE,
            any_of: Vec::new(),
            eq,
        };
        let after_prefix = draft.eq.len().checked_sub(1).is_some_and(|n| parts[n].prefix_len.is_some());
        if let Some(part) = parts.get(draft.eq.len()).filter(|_| !after_prefix) {
            for condition in on(part.column) {
                match &condition.test {
                    Test::Like { .. } if draft.prefix.is_none() => draft.prefix = Some(condition),
                    Test::Not(list) => {
                        keys = keys.saturating_mul(list.len() + 1);
                        if keys <= MAX_KEYS {
                            draft.range.push(condition);
                        }
                    }
                    Test::Range { .. } | Test::Between { .. } => draft.range.push(condition),
                    _ => {}
                }
            }
        }
        let single = draft.eq.iter().all(|c| c.exact && matches!(c.test, Test::Eq { null_safe: false, .. }));
        draft.unique = draft.kind.is_unique()
            && single
            && draft.eq.len() == parts.len()
            && parts.iter().all(|p| p.prefix_len.is_none());
        draft.match_order(wish, handle);
        let next = parts.get(draft.eq.len()).map(|part| part.column);
        let is_first = wish.order.first().is_some_and(|(column, _)| Some(*column) == next);
        draft.not_null = wish.first_value && is_first && draft.gives_order && !draft.unique && !after_prefix;
        draft.estimate = draft.estimated(handle);
        let may_end = draft.not_null || !wish.first_value;
        if may_end && conditions.len() == conjuncts && conditions.iter().all(|c| draft.serves(c)) {
            draft.end_after(wish, handle.row_count());
        }
        draft
    }

    fn has_range(&self) -> bool {
        !self.range.is_empty() || self.prefix.is_some()
    }

    /// Whether the range has a lower bound, and an upper one.
    fn bounds(&self) -> (bool, bool) {
        let tests = || self.range.iter().map(|condition| &condition.test);
        (tests().any(|test| test.is_lower()), tests().any(|test| test.is_upper()))
    }

    fn spans(&self) -> bool {
        self.kind.is_unique() && self.eq.len() + 1 == self.parts.len() && self.bounds() == (true, true)
    }

    /// All conditions that the keys are made of, but for a LIKE.
    fn terms_used(&self) -> impl Iterator<Item = &&'c Condition<'c>> {
        let range = self.range.iter().filter(|_| self.prefix.is_none());
        self.eq.iter().chain(self.also.iter().map(|(_, condition)| condition)).chain(range)
    }

    /// Whether the keys guarantee a condition.
    fn serves(&self, condition: &Condition<'_>) -> bool {
        let is_used = self.terms_used().any(|other| std::ptr::eq(*other, condition));
        condition.exact && is_used && self.is_exact()
    }

    /// Whether the ranges hold no rows but those of the terms.
    fn is_exact(&self) -> bool {
        let parts = self.eq.len() + usize::from(self.has_range());
        self.terms_used().all(|c| c.exact) && self.parts[..parts].iter().all(|p| p.prefix_len.is_none())
    }

    fn match_order(&mut self, wish: &Wish<'_>, handle: &TableHandle) {
        if self.unique {
            self.gives_order = true;
            self.order_prefix = wish.order.len();
            return;
        }
        let is_fixed = |n: usize| {
            let part = &self.parts[n];
            let ty = &handle.def.columns[part.column].ty;
            self.eq.get(n).is_some_and(|c| c.is_one_value(ty)) && part.prefix_len.is_none()
        };
        let fixed: Vec<usize> =
            (0..self.eq.len()).filter(|&n| is_fixed(n)).map(|n| self.parts[n].column).collect();
        let mut parts = self.parts.iter().enumerate().filter(|(n, _)| !is_fixed(*n));
        let mut backwards = None;
        for &(column, descending) in wish.order {
            if !fixed.contains(&column) {
                let Some((_, part)) = parts.next() else { break };
                let reversed = part.descending != descending;
                if part.column != column
                    || part.prefix_len.is_some()
                    || backwards.is_some_and(|backwards| backwards != reversed)
                {
                    break;
                }
                backwards = Some(reversed);
            }
            self.order_prefix += 1;
        }
        self.gives_order = self.order_prefix == wish.order.len();
        self.descending = backwards.unwrap_or(false);
    }

    fn estimated(&self, handle: &TableHandle) -> Estimate {
        if self.unique {
            return Estimate::ONE;
        }
        let lists: f64 = self
            .eq
            .iter()
            .map(|c| if let Test::In(list) = c.test { list.len() as f64 } else { 1.0 })
            .product();
        let all = self.kind.is_unique() && self.eq.len() == self.parts.len();
        // A pattern that is not known yet may begin with a wildcard.
        let has_prefix = self
            .prefix
            .is_some_and(|c| matches!(&c.test, Test::Like { pattern, .. } if pattern.as_literal().is_some()));
        let range = match (self.bounds(), self.prefix.is_some()) {
            ((true, true), _) => CLOSED_RANGE,
            (_, true) if has_prefix => CLOSED_RANGE,
            ((false, false), false) if self.has_range() => NEARLY_ALL,
            ((false, false), false) => 1.0,
            _ => OPEN_RANGE,
        };
        if all || self.pins_primary_key(handle) {
            return Estimate { factor: lists, power: 0.0 };
        }
        let rows = handle.row_count();
        if rows as f64 > MANY_ROWS && !self.eq.is_empty() {
            let stats = handle.stats();
            let distinct: Option<f64> = self
                .eq
                .iter()
                .map(|c| stats.columns.get(c.column)?.distinct.map(|d| d.max(1) as f64))
                .product();
            if let Some(distinct) = distinct {
                let factor = (lists * range / distinct).max(1.0 / rows as f64);
                return Estimate { factor, power: 1.0 };
            }
        }
        Estimate { factor: lists * range, power: 1.0 / (self.eq.len() as f64 + 1.0) }
    }

    /// Whether a value of the index leads to one row, since it contains the primary key's.
    fn pins_primary_key(&self, handle: &TableHandle) -> bool {
        let equal = &self.parts[..self.eq.len()];
        let is_equal =
            |of: &IndexPart| equal.iter().any(|part| part.column == of.column && part.prefix_len.is_none());
        let primary = handle.def.indexes.iter().find(|index| index.kind == IndexKind::Primary);
        primary.is_some_and(|primary| primary.parts.iter().all(is_equal))
    }

    fn beats(&self, other: &Self, rows: f64) -> bool {
        if self.unique != other.unique {
            return self.unique;
        }
        let has_work = |d: &Self| d.has_terms() || d.gives_order || d.order_prefix > 0;
        let rank = |d: &Self| (!has_work(d), d.estimate.rows(rows), !d.gives_order, Reverse(d.order_prefix));
        rank(self) < rank(other) || (rank(self) == rank(other) && self.eq.len() > other.eq.len())
    }

    fn finish(self, scope: &Scope, handle: &TableHandle, rows: f64) -> Result<Choice, Refusal> {
        let mut served: Vec<usize> = Vec::new();
        served.extend(self.any_of.iter().filter(|(or, sides)| serve_or(or, sides)).map(|(or, _)| or.at));
        for condition in self.terms_used() {
            if self.serves(condition) {
                served.push(condition.at);
            }
        }
        served.sort_unstable();
        served.dedup();
        let access = Access {
            index: Some(self.index),
            terms: self.terms(scope, handle)?,
            descending: self.descending,
            row_limit: self.estimate.row_limit(),
            spans: self.spans(),
            ..Access::default()
        };
        let (first_value, gives_order) = (self.not_null, self.gives_order);
        let (order_prefix, estimate) = (self.order_prefix, self.estimate.rows(rows));
        Ok(Choice { access, served, first_value, gives_order, order_prefix, estimate, along: None })
    }

    fn terms(&self, scope: &Scope, handle: &TableHandle) -> Result<KeyTerms, Refusal> {
        let any_of = |sides: &[Self]| {
            let any_of = sides.iter().map(|side| side.terms(scope, handle)).collect::<Result<_, _>>()?;
            Ok::<_, Refusal>(KeyTerms { any_of, ..KeyTerms::default() })
        };
        match &self.any_of[..] {
            [] => {}
            [(_, sides)] => return any_of(sides),
            several => {
                let all_of = several.iter().map(|(_, sides)| any_of(sides)).collect::<Result<_, _>>()?;
                return Ok(KeyTerms { all_of, ..KeyTerms::default() });
            }
        }
        let also =
            self.also.iter().map(|(part, condition)| Ok((*part, range_term(scope, &[condition], None)?)));
        let range = match self.has_range() || self.not_null {
            true => Some(range_term(scope, &self.range, self.prefix)?),
            false => None,
        };
        Ok(KeyTerms {
            eq: self.eq.iter().map(|c| eq_term(scope, &c.test)).collect::<Result<_, _>>()?,
            also: also.collect::<Result<_, Refusal>>()?,
            range,
            types: self.parts.iter().map(|p| handle.def.columns[p.column].ty).collect(),
            unique: self.unique,
            ..KeyTerms::default()
        })
    }
}

/// What conditions say of one column together.
fn range_term(
    scope: &Scope,
    conditions: &[&Condition<'_>],
    prefix: Option<&Condition<'_>>,
) -> Result<RangeTerm, Refusal> {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let (mut except, mut only) = (Vec::new(), Vec::new());
    let edge = |value: &Expr, inclusive| Ok::<_, Refusal>(Edge { program: scope.compile(value)?, inclusive });
    for condition in conditions {
        match &condition.test {
            Test::Range { op, value } => match op {
                CompareOp::Gt | CompareOp::Ge => lower.push(edge(value, *op == CompareOp::Ge)?),
                CompareOp::Lt | CompareOp::Le => upper.push(edge(value, *op == CompareOp::Le)?),
                _ => {}
            },
            Test::Between { low, high } => {
                lower.push(edge(low, true)?);
                upper.push(edge(high, true)?);
            }
            Test::Eq { value, null_safe: false } => {
                lower.push(edge(value, true)?);
                upper.push(edge(value, true)?);
            }
            Test::Not(list) => {
                for value in *list {
                    except.push(scope.compile(value)?);
                }
            }
            Test::In(list) => {
                only.push(list.iter().map(|value| scope.compile(value)).collect::<Result<Box<[_]>, _>>()?);
            }
            _ => {}
        }
    }
    let prefix = match prefix.map(|condition| &condition.test) {
        Some(Test::Like { pattern, escape }) => {
            Some(PrefixTerm { pattern: scope.compile(pattern)?, escape: *escape })
        }
        _ => None,
    };
    let (except, only) = (except.into(), only.into());
    Ok(RangeTerm { lower: lower.into(), upper: upper.into(), except, only, prefix })
}

/// Whether the keys of its sides guarantee an OR.
fn serve_or(or: &Alternatives<'_>, sides: &[Draft<'_>]) -> bool {
    let serves = |(side, draft): (&Side<'_>, &Draft<'_>)| {
        side.is_whole && side.own().iter().all(|condition| draft.serves(condition))
    };
    or.sides.iter().zip(sides).all(serves)
}

fn eq_term(scope: &Scope, test: &Test<'_>) -> Result<EqTerm, Refusal> {
    Ok(match test {
        Test::Eq { value, null_safe } => {
            EqTerm::Value { program: scope.compile(value)?, null_safe: *null_safe }
        }
        Test::In(list) => EqTerm::List(list.iter().map(|v| scope.compile(v)).collect::<Result<_, _>>()?),
        _ => EqTerm::IsNull,
    })
}
