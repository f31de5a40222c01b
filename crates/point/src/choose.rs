//! Which index a table is read by: the conditions that an index can serve, and what each index makes of them.
//!
//! A full unique key comes first; otherwise what is estimated to visit the fewest rows, and among equals what gives the
//! wanted order. Estimates grow with the table: equality on `k` columns leaves `rows^(1/(k+1))` where
//! nothing better is known. An OR that no single index serves may lead along several ([`union`]). A plan remembers up to how many rows of the table its estimate stays small
//! ([`Access::row_limit`]), so that a plan made for an empty table is not kept when the table has grown.

mod estimate;
mod loose;
mod union;

use std::cmp::Reverse;

use avocet_engine::TableHandle;
use avocet_types::expr::{CompareOp, Expr};
use avocet_types::{IndexDef, IndexKind};

use super::Refusal;
use super::alternatives::{Alternatives, Side, alternatives};
use super::conditions::{Condition, Test, conditions};
use super::keys::{Edge, EqTerm, KeyTerms, PrefixTerm, RangeTerm};
use super::scope::Scope;

pub use loose::{Grouped, Loose, choose_loose};

use estimate::{CLOSED_RANGE, Estimate, LIKELY_EQUALS, LIKELY_ROWS, MANY_ROWS, OPEN_RANGE, SMALL_TABLE};
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

    fn describe_index(&self, table: &TableHandle) -> String {
        let index = self.index.map_or("no index", |index| &table.indexes()[index].def.name);
        if !self.terms.any_of.is_empty() {
            return format!("by {index} (any of {})", self.terms.any_of.len());
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

    /// Whether it goes to rows by keys that the statement gives, and not through all of them.
    pub fn has_keys(&self) -> bool {
        let KeyTerms { eq, range, any_of, .. } = &self.terms;
        !eq.is_empty() || range.is_some() || !any_of.is_empty() || !self.union.is_empty()
    }

    /// Whether the groups whose ends it reads are those that the statement names.
    pub fn has_few_groups(&self) -> bool {
        self.loose.is_some_and(|loose| loose.parts == self.terms.eq.len())
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
}

impl Choice {
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
    /// Any index will do: the plan is left when it takes too long.
    pub tries: bool,
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
    let alternatives = alternatives(scope, table, bound, conjuncts, &conditions);
    let rows = (handle.row_count() as f64).max(1.0);
    let (mut best, mut in_order): (Option<Draft<'_>>, Option<Draft<'_>>) = (None, None);
    for (n, index) in handle.indexes().iter().enumerate() {
        let draft = Draft::of(handle, n, &index.def, &conditions, conjuncts.len(), wish);
        if draft.gives_order && in_order.as_ref().is_none_or(|first| draft.beats(first, rows)) {
            in_order = Some(Draft::of(handle, n, &index.def, &conditions, conjuncts.len(), wish));
        }
        let sides = alternatives
            .iter()
            .filter_map(|or| Draft::of_any(handle, n, &index.def, or, conjuncts.len(), wish));
        for draft in std::iter::once(draft).chain(sides) {
            if best.as_ref().is_none_or(|best| draft.beats(best, rows.max(LIKELY_ROWS))) {
                best = Some(draft);
            }
        }
    }
    let union = alternatives.iter().filter_map(|or| Union::of(handle, or, rows.max(LIKELY_ROWS), wish));
    let union = union.min_by(|a, b| a.rows(rows).total_cmp(&b.rows(rows)));
    // A plan that locks rows is for few of them, however small the table is now.
    let whole = whole_table(if wish.must { rows.max(LIKELY_ROWS) } else { rows });
    let is_few = |estimate: &Estimate| rows <= estimate.row_limit() as f64;
    let mut best = best.filter(|best| {
        let useful = best.has_terms() || (best.order_prefix > 0 && wish.limit.is_some());
        useful && (wish.must || wish.tries || wish.may_measure || is_few(&best.estimate))
    });
    // Where nothing leads to few rows, those that a page of a list wants may come first in its order.
    let is_page =
        wish.may_measure && !wish.must && !wish.first_value && !wish.order.is_empty() && wish.limit.is_some();
    let is_unsure = is_page && rows > SMALL_TABLE && best.as_ref().is_none_or(|best| !is_few(&best.estimate));
    let tried = match best.as_ref().is_some_and(Draft::has_terms) {
        _ if !is_unsure || union.is_some() => None,
        true => best.take_if(|best| best.order_prefix > 0),
        false => in_order,
    };
    if let Some(draft) = tried {
        let mut choice = draft.finish(scope, handle, rows)?;
        (choice.access.is_measured, choice.access.is_tried) = (true, true);
        return Ok(Some(choice));
    }
    let union = union.filter(|union| {
        let is_less =
            best.as_ref().is_none_or(|best| union.rows(rows) < best.estimate.rows(rows.max(LIKELY_ROWS)));
        is_less && (wish.must || wish.tries || wish.may_measure || is_few(&union.estimate))
    });
    if let Some(union) = union {
        let mut choice = union.finish(scope, handle)?;
        choice.access.is_measured = !wish.must && !wish.tries && !is_few(&union.estimate);
        return Ok(Some(choice.of_any_size(wish.tries)));
    }
    match best {
        Some(draft) => {
            let is_few = wish.must || wish.tries || is_few(&draft.estimate);
            let mut choice = draft.finish(scope, handle, rows.max(LIKELY_ROWS))?;
            choice.access.is_measured = !is_few;
            Ok(Some(choice.of_any_size(wish.tries)))
        }
        None if wish.must || rows <= SMALL_TABLE => Ok(Some(whole)),
        None => Ok(None),
    }
}

fn whole_table(rows: f64) -> Choice {
    let access = Access { row_limit: SMALL_TABLE as u64, ..Access::default() };
    Choice { access, estimate: rows, ..Choice::default() }
}

/// What one index makes of the conditions.
struct Draft<'c> {
    index: usize,
    def: &'c IndexDef,
    eq: Vec<&'c Condition<'c>>,
    lower: Option<&'c Condition<'c>>,
    upper: Option<&'c Condition<'c>>,
    prefix: Option<&'c Condition<'c>>,
    /// A range of all that is not NULL.
    not_null: bool,
    unique: bool,
    gives_order: bool,
    /// As in `Choice`. All of the wanted order if it gives that.
    order_prefix: usize,
    descending: bool,
    estimate: Estimate,
    /// The sides of an OR, at this place among the conjuncts; nothing of the above is set then.
    any_of: Option<(&'c Alternatives<'c>, Vec<Draft<'c>>)>,
}

impl<'c> Draft<'c> {
    /// What an index makes of an OR each of whose sides it serves.
    fn of_any(
        handle: &TableHandle,
        index: usize,
        def: &'c IndexDef,
        or: &'c Alternatives<'c>,
        conjuncts: usize,
        wish: &Wish<'_>,
    ) -> Option<Self> {
        let each = Wish { must: wish.must, tries: wish.tries, ..Wish::default() };
        let mut sides = Vec::with_capacity(or.sides.len());
        for side in &or.sides {
            let draft = Self::of(handle, index, def, &side.conditions, usize::MAX, &each);
            if !draft.has_terms() {
                return None;
            }
            sides.push(draft);
        }
        // Ranges along an index give its order, whatever they are.
        let mut draft = Self::of(handle, index, def, &[], usize::MAX, wish);
        draft.not_null = false;
        draft.estimate = Estimate::sum(sides.iter().map(|side| &side.estimate));
        draft.any_of = Some((or, sides));
        if conjuncts == 1 && draft.serves_or() {
            draft.end_after(wish, handle.row_count());
        }
        Some(draft)
    }

    /// Whether the keys guarantee the OR.
    fn serves_or(&self) -> bool {
        self.any_of.as_ref().is_some_and(|(or, sides)| serve_or(or, sides))
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
        !self.eq.is_empty() || self.has_range() || self.any_of.is_some()
    }

    fn of(
        handle: &TableHandle,
        index: usize,
        def: &'c IndexDef,
        conditions: &'c [Condition<'c>],
        conjuncts: usize,
        wish: &Wish<'_>,
    ) -> Self {
        let on = |column: usize| conditions.iter().filter(move |c| c.column == column);
        let mut eq: Vec<&Condition<'_>> = Vec::new();
        let mut keys = 1usize;
        for part in &def.parts {
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
            if part.prefix_len.is_some() {
                break;
            }
        }
        let mut draft = Self {
            index,
            def,
            lower: None,
            upper: None,
            prefix: None,
            not_null: false,
            unique: false,
            gives_order: false,
            order_prefix: 0,
            descending: false,
            estimate: Estimate::ONE,
            any_of: None,
            eq,
        };
        let after_prefix = draft.eq.len().checked_sub(1).is_some_and(|n| def.parts[n].prefix_len.is_some());
        if let Some(part) = def.parts.get(draft.eq.len()).filter(|_| !after_prefix) {
            for condition in on(part.column) {
                draft.add_range(condition);
            }
        }
        let single = draft.eq.iter().all(|c| c.exact && matches!(c.test, Test::Eq { null_safe: false, .. }));
        draft.unique = def.kind.is_unique()
            && single
            && draft.eq.len() == def.parts.len()
            && def.parts.iter().all(|p| p.prefix_len.is_none());
        draft.match_order(wish);
        let next = def.parts.get(draft.eq.len()).map(|part| part.column);
        let is_first = wish.order.first().is_some_and(|(column, _)| Some(*column) == next);
        draft.not_null = wish.first_value && is_first && draft.gives_order && !draft.unique && !after_prefix;
        draft.estimate = draft.estimated(handle);
        let may_end = draft.not_null || !wish.first_value;
        if may_end && conditions.len() == conjuncts && conditions.iter().all(|c| draft.serves(c)) {
            draft.end_after(wish, handle.row_count());
        }
        draft
    }

    fn add_range(&mut self, condition: &'c Condition<'c>) {
        use CompareOp as Op;
        match &condition.test {
            Test::Range { op: Op::Gt | Op::Ge, .. } if self.lower.is_none() => self.lower = Some(condition),
            Test::Range { op: Op::Lt | Op::Le, .. } if self.upper.is_none() => self.upper = Some(condition),
            Test::Between { .. } if self.lower.is_none() && self.upper.is_none() => {
                self.lower = Some(condition);
                self.upper = Some(condition);
            }
            Test::Like { .. } if self.prefix.is_none() => self.prefix = Some(condition),
            _ => {}
        }
    }

    fn has_range(&self) -> bool {
        self.lower.is_some() || self.upper.is_some() || self.prefix.is_some()
    }

    fn spans(&self) -> bool {
        self.def.kind.is_unique()
            && self.eq.len() + 1 == self.def.parts.len()
            && self.lower.is_some()
            && self.upper.is_some()
    }

    /// Whether the keys guarantee a condition.
    fn serves(&self, condition: &Condition<'_>) -> bool {
        let same = |other: &&Condition<'_>| std::ptr::eq(*other, condition);
        let in_range = self.prefix.is_none() && self.lower.iter().chain(&self.upper).any(same);
        condition.exact && self.is_exact() && (in_range || self.eq.iter().any(same))
    }

    /// Whether the ranges hold no rows but those of the terms.
    fn is_exact(&self) -> bool {
        let parts = self.eq.len() + usize::from(self.has_range());
        self.eq.iter().chain(&self.lower).chain(&self.upper).all(|c| c.exact)
            && self.def.parts[..parts].iter().all(|p| p.prefix_len.is_none())
    }

    fn match_order(&mut self, wish: &Wish<'_>) {
        if self.unique {
            self.gives_order = true;
            self.order_prefix = wish.order.len();
            return;
        }
        let is_fixed = |n: usize| {
            self.eq.get(n).is_some_and(|c| !matches!(c.test, Test::In(_)))
                && self.def.parts[n].prefix_len.is_none()
        };
        let fixed: Vec<usize> =
            (0..self.eq.len()).filter(|&n| is_fixed(n)).map(|n| self.def.parts[n].column).collect();
        let mut parts = self.def.parts.iter().enumerate().filter(|(n, _)| !is_fixed(*n));
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
        let all = self.def.kind.is_unique() && self.eq.len() == self.def.parts.len();
        // A pattern that is not known yet may begin with a wildcard.
        let has_prefix = self
            .prefix
            .is_some_and(|c| matches!(&c.test, Test::Like { pattern, .. } if pattern.as_literal().is_some()));
        let range = match (self.lower.is_some(), self.upper.is_some(), self.prefix.is_some()) {
            (true, true, _) => CLOSED_RANGE,
            (_, _, true) if has_prefix => CLOSED_RANGE,
            (false, false, false) => 1.0,
            _ => OPEN_RANGE,
        };
        if all {
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
        served.extend(self.any_of.iter().filter(|_| self.serves_or()).map(|(or, _)| or.at));
        for condition in self.eq.iter().chain(&self.lower).chain(&self.upper) {
            if self.serves(condition) {
                served.push(condition.at);
            }
        }
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
        Ok(Choice { access, served, first_value, gives_order, order_prefix, estimate })
    }

    fn terms(&self, scope: &Scope, handle: &TableHandle) -> Result<KeyTerms, Refusal> {
        let sides = self.any_of.iter().flat_map(|(_, sides)| sides);
        Ok(KeyTerms {
            eq: self.eq.iter().map(|c| eq_term(scope, &c.test)).collect::<Result<_, _>>()?,
            range: if self.has_range() || self.not_null { Some(self.range_term(scope)?) } else { None },
            types: self.def.parts.iter().map(|p| handle.def.columns[p.column].ty).collect(),
            unique: self.unique,
            any_of: sides.map(|side| side.terms(scope, handle)).collect::<Result<_, _>>()?,
        })
    }

    fn range_term(&self, scope: &Scope) -> Result<RangeTerm, Refusal> {
        let edge = |condition: Option<&Condition<'_>>, lower: bool| -> Result<Option<Edge>, Refusal> {
            let Some(condition) = condition else { return Ok(None) };
            let (value, inclusive) = match &condition.test {
                Test::Range { op, value } => (*value, matches!(op, CompareOp::Ge | CompareOp::Le)),
                Test::Between { low, high } => (if lower { *low } else { *high }, true),
                _ => return Ok(None),
            };
            Ok(Some(Edge { program: scope.compile(value)?, inclusive }))
        };
        let prefix = match self.prefix.map(|condition| &condition.test) {
            Some(Test::Like { pattern, escape }) => {
                Some(PrefixTerm { pattern: scope.compile(pattern)?, escape: *escape })
            }
            _ => None,
        };
        Ok(RangeTerm { lower: edge(self.lower, true)?, upper: edge(self.upper, false)?, prefix })
    }
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
