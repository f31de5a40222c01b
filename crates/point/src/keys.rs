//! Where in an index the rows are that a statement wants: key terms, evaluated at run time into key ranges.
//!
//! ```text
//!  index parts   │ 0      │ 1      │ 2       │ 3 │
//!  terms         │ = expr │ IN (…) │ range   │   │     → sorted, disjoint key ranges
//! ```
//!
//! Invariants:
//! 1. The ranges hold every row for which all terms are true. They hold no other row unless a term's value has no
//!    exact place in its column ([`Fit::Among`]) or the index has only a prefix of it: the plan then rechecks.
//! 2. Ranges ascend by key bytes and do not overlap, so that visiting them in order gives the index's order.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Bound;

use avocet_base::RowId;
use avocet_engine::{IndexHandle, KeyRange};
use avocet_sql::ranges::{Fit, fit, literal_prefix};
use avocet_types::compare::sort_order;
use avocet_types::expr::{EvalContext, EvalResult, RowProgram, RowSource};
use avocet_types::{Collation, Datum, SqlType};

/// What one of the first index columns equals.
#[derive(Debug)]
pub enum EqTerm {
    Value { program: RowProgram, null_safe: bool },
    List(Box<[RowProgram]>),
    IsNull,
}

/// The range of the column after those; never NULL. All that is said of it holds.
#[derive(Debug, Default)]
pub struct RangeTerm {
    pub lower: Box<[Edge]>,
    pub upper: Box<[Edge]>,
    /// Values that are left out.
    pub except: Box<[RowProgram]>,
    /// Lists each of which has the value. Of columns that equal something.
    pub only: Box<[Box<[RowProgram]>]>,
    /// What the strings begin with; then the others are not looked at, unless it begins with a wildcard.
    pub prefix: Option<PrefixTerm>,
}

/// A pattern of LIKE.
#[derive(Debug)]
pub struct PrefixTerm {
    pub pattern: RowProgram,
    pub escape: Option<char>,
}

#[derive(Debug)]
pub struct Edge {
    pub program: RowProgram,
    pub inclusive: bool,
}

/// The terms on one index.
#[derive(Debug, Default)]
pub struct KeyTerms {
    pub eq: Box<[EqTerm]>,
    /// What else is said of the columns that equal something, each by its place among them.
    pub also: Box<[(usize, RangeTerm)]>,
    pub range: Option<RangeTerm>,
    /// Types of the columns that the terms are on, in order.
    pub types: Box<[SqlType]>,
    /// All columns of a unique index equal single values: one row at most, unless one of them is NULL.
    pub unique: bool,
    /// The sides of an OR: the rows of any of these, and the other terms are none.
    pub any_of: Box<[KeyTerms]>,
    /// Several ORs: what the ranges of all of these have in common, and the other terms are none.
    pub all_of: Box<[KeyTerms]>,
}

impl RangeTerm {
    /// Whether it leads to some of the values. A pattern that begins with a wildcard does not.
    fn narrows(&self, params: &[Datum<'_>], ctx: &EvalContext) -> bool {
        let has_others = !(self.lower.is_empty() && self.upper.is_empty() && self.except.is_empty());
        match &self.prefix {
            Some(prefix) if !has_others && prefix.pattern.columns().is_empty() => {
                match prefix.pattern.eval_const(params, ctx) {
                    Ok(Datum::Str(pattern)) => {
                        literal_prefix(&pattern, prefix.escape) != (String::new(), false)
                    }
                    Ok(pattern) => pattern.is_null(),
                    Err(_) => true,
                }
            }
            _ => true,
        }
    }

    fn for_each_program(&self, visit: &mut dyn FnMut(&RowProgram)) {
        self.lower.iter().chain(&self.upper).for_each(|edge| visit(&edge.program));
        self.except.iter().chain(self.only.iter().flatten()).for_each(&mut *visit);
        self.prefix.iter().for_each(|prefix| visit(&prefix.pattern));
    }
}

impl KeyTerms {
    /// Whether they lead to some of the rows only.
    pub fn are_keys(&self, params: &[Datum<'_>], ctx: &EvalContext) -> bool {
        !self.eq.is_empty()
            || self.range.as_ref().is_some_and(|range| range.narrows(params, ctx))
            || !self.any_of.is_empty() && self.any_of.iter().all(|side| side.are_keys(params, ctx))
            || self.all_of.iter().any(|or| or.are_keys(params, ctx))
    }

    /// All programs that give the values of its keys.
    pub fn for_each_program(&self, visit: &mut dyn FnMut(&RowProgram)) {
        for term in &self.eq {
            match term {
                EqTerm::Value { program, .. } => visit(program),
                EqTerm::List(list) => list.iter().for_each(&mut *visit),
                EqTerm::IsNull => {}
            }
        }
        let ranges = self.also.iter().map(|(_, range)| range).chain(&self.range);
        ranges.for_each(|range| range.for_each_program(visit));
        self.any_of.iter().chain(&self.all_of).for_each(|terms| terms.for_each_program(visit));
    }
}

/// Memory for keys, to be used again and again.
#[derive(Default)]
pub struct Keys {
    /// The key of the single prefix that there mostly is.
    key: Vec<u8>,
    /// Several prefixes, once there was a list.
    many: Vec<Vec<u8>>,
    ends: Ends,
    ranges: Vec<KeyRange>,
    used: usize,
    /// How many integers the range holds, if it is one of integers.
    span: Option<u64>,
    /// Those of one side of an OR.
    side: Option<Box<Keys>>,
    /// Of each index of a union.
    pub parts: Vec<(Found, Keys)>,
    /// The rows of a union that were wanted when another index led to them.
    pub seen: HashSet<RowId, foldhash::fast::RandomState>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Nothing,
    /// At most one row: the key is [`Keys::key`].
    One,
    Ranges,
}

/// What one side of a range comes to.
enum Side {
    Open,
    At(Datum<'static>, bool),
    Empty,
}

/// The two ends of a range of one column, as key bytes.
#[derive(Default)]
struct Ends {
    lower: End,
    upper: End,
    /// Values between them that are left out, ascending.
    except: Vec<Vec<u8>>,
    /// Lists of values each of which has to have a value, ascending.
    only: Vec<Vec<Vec<u8>>>,
    scratch: Vec<u8>,
}

#[derive(Default)]
struct End {
    bytes: Vec<u8>,
    inclusive: bool,
    /// None: all values that are not NULL.
    value: Option<Datum<'static>>,
}

impl End {
    fn open(&mut self, index: &IndexHandle, part: usize) {
        self.bytes.clear();
        index.keys.encode_not_null(part, &mut self.bytes);
        self.inclusive = true;
        self.value = None;
    }

    /// Moves the end inwards, if the side lies there; false if nothing is left. `wanted`: how what lies inwards compares.
    fn narrow(
        &mut self,
        index: &IndexHandle,
        part: usize,
        side: Side,
        wanted: Ordering,
        scratch: &mut Vec<u8>,
    ) -> bool {
        let (value, inclusive) = match side {
            Side::Open => return true,
            Side::Empty => return false,
            Side::At(value, inclusive) => (value, inclusive || index.keys.is_prefix(part)),
        };
        scratch.clear();
        if !index.keys.encode_parts(part, std::slice::from_ref(&value), scratch) {
            return false;
        }
        let is_inwards = self.value.is_none()
            || match scratch.as_slice().cmp(&self.bytes) {
                Ordering::Equal => !inclusive,
                order => order == wanted,
            };
        if is_inwards {
            std::mem::swap(&mut self.bytes, scratch);
            (self.inclusive, self.value) = (inclusive, Some(value));
        }
        true
    }
}

impl Ends {
    /// Whether the column's value that has these bytes lies between the ends.
    fn admit(&self, bytes: &[u8]) -> bool {
        let is_above = match bytes.cmp(&self.lower.bytes) {
            Ordering::Less => false,
            Ordering::Equal => self.lower.inclusive,
            Ordering::Greater => true,
        };
        let is_below = bytes.starts_with(&self.upper.bytes) && self.upper.inclusive
            || bytes < self.upper.bytes.as_slice();
        let has = |list: &Vec<Vec<u8>>| list.binary_search_by(|value| value.as_slice().cmp(bytes)).is_ok();
        is_above && is_below && !has(&self.except) && self.only.iter().all(has)
    }
}

impl Keys {
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The range of the whole key that was found.
    pub fn whole_key(&self) -> &KeyRange {
        &self.ranges[0]
    }

    pub fn ranges(&self) -> &[KeyRange] {
        &self.ranges[..self.used]
    }

    /// How many values the range holds at most, if that is known.
    pub fn span(&self) -> Option<u64> {
        self.span
    }

    fn next_range(&mut self) -> usize {
        if self.used == self.ranges.len() {
            self.ranges.push(KeyRange::default());
        }
        self.used += 1;
        self.used - 1
    }
}

impl KeyTerms {
    /// Evaluates the terms for one row of the tables before.
    pub fn locate<'a, R: RowSource<'a>>(
        &'a self,
        index: &IndexHandle,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        keys: &mut Keys,
    ) -> EvalResult<Found> {
        keys.key.clear();
        keys.many.clear();
        keys.used = 0;
        keys.span = None;
        if !self.any_of.is_empty() {
            return self.locate_any(index, row, params, ctx, keys);
        }
        if !self.all_of.is_empty() {
            return self.locate_all(index, row, params, ctx, keys);
        }
        let mut has_null = false;
        for (part, term) in self.eq.iter().enumerate() {
            let is_limited = self.also.iter().any(|(of, _)| *of == part);
            if is_limited && !self.find_ends(part, index, row, params, ctx, &mut keys.ends)? {
                return Ok(Found::Nothing);
            }
            match term {
                EqTerm::Value { program, null_safe } => {
                    let value = program.eval(row, params, ctx)?;
                    let value = match fit(value, &self.types[part]) {
                        Fit::Exact(value) => value,
                        Fit::Null if *null_safe => Datum::Null,
                        Fit::Unknown => return Ok(whole_prefixes(keys)),
                        Fit::Among(low, high) => return Ok(among(index, part, (low, high), keys)),
                        _ => return Ok(Found::Nothing),
                    };
                    has_null |= value.is_null();
                    if !append(index, part, &value, is_limited, keys) {
                        return Ok(Found::Nothing);
                    }
                }
                EqTerm::IsNull => {
                    has_null = true;
                    if !append(index, part, &Datum::Null, is_limited, keys) {
                        return Ok(Found::Nothing);
                    }
                }
                EqTerm::List(list) => {
                    let mut parts: Vec<Vec<u8>> = Vec::with_capacity(list.len());
                    // From the least to the greatest of values that may equal several of the column's.
                    let mut several: Option<(Datum<'static>, Datum<'static>)> = None;
                    let mut others: Vec<Datum<'static>> = Vec::new();
                    for program in list {
                        let value = match fit(program.eval(row, params, ctx)?, &self.types[part]) {
                            Fit::Exact(value) => value,
                            Fit::Among(low, high) => {
                                let (low, high) = (low.into_owned(), high.into_owned());
                                several = Some(match several {
                                    None => (low, high),
                                    Some((least, most)) => (lesser(least, low), greater(most, high)),
                                });
                                continue;
                            }
                            Fit::Unknown => return Ok(whole_prefixes(keys)),
                            _ => continue,
                        };
                        let mut bytes = Vec::new();
                        let is_there =
                            index.keys.encode_parts(part, std::slice::from_ref(&value), &mut bytes);
                        if is_there && (!is_limited || keys.ends.admit(&bytes)) {
                            parts.push(bytes);
                            others.push(value.into_owned());
                        }
                    }
                    if let Some(several) = several {
                        let reach = others.into_iter().fold(several, |(least, most), value| {
                            (lesser(least, value.clone()), greater(most, value))
                        });
                        return Ok(among(index, part, reach, keys));
                    }
                    if !multiply(keys, parts) {
                        return Ok(Found::Nothing);
                    }
                }
            }
        }
        if self.unique && !has_null {
            let at = keys.next_range();
            keys.ranges[at].set(Bound::Included(&keys.key), Bound::Included(&keys.key));
            return Ok(Found::One);
        }
        match &self.range {
            None => Ok(whole_prefixes(keys)),
            Some(RangeTerm { prefix, .. }) => {
                if let Some(prefix) = prefix
                    && let Some(found) = self.locate_prefix(prefix, index, row, params, ctx, keys)?
                {
                    return Ok(found);
                }
                match self.find_ends(self.eq.len(), index, row, params, ctx, &mut keys.ends)? {
                    true => Ok(between(index, self.eq.len(), keys)),
                    false => Ok(Found::Nothing),
                }
            }
        }
    }

    /// The ranges of all sides of an OR, where they meet made one.
    fn locate_any<'a, R: RowSource<'a>>(
        &'a self,
        index: &IndexHandle,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        keys: &mut Keys,
    ) -> EvalResult<Found> {
        let mut side = keys.side.take().unwrap_or_default();
        keys.ranges.clear();
        for terms in &self.any_of {
            if terms.locate(index, row, params, ctx, &mut side)? != Found::Nothing {
                keys.ranges.extend_from_slice(side.ranges());
            }
        }
        keys.side = Some(side);
        KeyRange::unite(&mut keys.ranges);
        keys.used = keys.ranges.len();
        Ok(if keys.used == 0 { Found::Nothing } else { Found::Ranges })
    }

    /// What the ranges of several ORs have in common.
    fn locate_all<'a, R: RowSource<'a>>(
        &'a self,
        index: &IndexHandle,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        keys: &mut Keys,
    ) -> EvalResult<Found> {
        let mut side = keys.side.take().unwrap_or_default();
        keys.ranges.clear();
        for (n, terms) in self.all_of.iter().enumerate() {
            let found = terms.locate(index, row, params, ctx, &mut side)?;
            keys.ranges = match (found, n) {
                (Found::Nothing, _) => Vec::new(),
                (_, 0) => side.ranges().to_vec(),
                _ => KeyRange::intersection(&keys.ranges, side.ranges()),
            };
            if keys.ranges.is_empty() {
                break;
            }
        }
        keys.side = Some(side);
        keys.used = keys.ranges.len();
        Ok(if keys.used == 0 { Found::Nothing } else { Found::Ranges })
    }

    /// What begins as a pattern does; `None` if it begins with a wildcard.
    fn locate_prefix<'a, R: RowSource<'a>>(
        &'a self,
        prefix: &'a PrefixTerm,
        index: &IndexHandle,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        keys: &mut Keys,
    ) -> EvalResult<Option<Found>> {
        let part = self.eq.len();
        let (text, is_all) = match prefix.pattern.eval(row, params, ctx)? {
            Datum::Null => return Ok(Some(Found::Nothing)),
            Datum::Str(pattern) => literal_prefix(&pattern, prefix.escape),
            // Bytes: any string may match.
            _ => return Ok(None),
        };
        if text.is_empty() && !is_all {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        // Without a wildcard, what matches is equal as well, but for spaces at the end that a collation may pad.
        let found = match is_all && !text.ends_with(' ') {
            true => index.keys.encode_parts(part, &[Datum::str(&text)], &mut bytes),
            false => index.keys.encode_string_prefix(part, &text, &mut bytes),
        };
        if !found {
            return Ok(None);
        }
        Ok(Some(if multiply(keys, vec![bytes]) { whole_prefixes(keys) } else { Found::Nothing }))
    }

    /// Evaluates what is said of a part's range; false if nothing lies in it.
    fn find_ends<'a, R: RowSource<'a>>(
        &'a self,
        part: usize,
        index: &IndexHandle,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        ends: &mut Ends,
    ) -> EvalResult<bool> {
        let also = self.also.iter().filter(|(of, _)| *of == part).map(|(_, range)| range);
        let own = self.range.iter().filter(|_| part == self.eq.len());
        let ty = &self.types[part];
        let Ends { lower, upper, except, only, scratch } = ends;
        lower.open(index, part);
        upper.open(index, part);
        except.clear();
        only.clear();
        let (inwards, outwards) = match index.keys.is_descending(part) {
            false => (Ordering::Greater, Ordering::Less),
            true => (Ordering::Less, Ordering::Greater),
        };
        for range in also.chain(own) {
            for edge in &range.lower {
                let side = side_of(edge, true, ty, row, params, ctx)?;
                if !lower.narrow(index, part, side, inwards, scratch) {
                    return Ok(false);
                }
            }
            for edge in &range.upper {
                let side = side_of(edge, false, ty, row, params, ctx)?;
                if !upper.narrow(index, part, side, outwards, scratch) {
                    return Ok(false);
                }
            }
            for list in &range.only {
                only.extend(values_of(list, part, index, ty, row, params, ctx)?);
            }
            for program in &range.except {
                match fit(program.eval(row, params, ctx)?, ty) {
                    Fit::Null => return Ok(false),
                    // Of a part of a value it is not known whether the rest differs.
                    Fit::Exact(value) if !index.keys.is_prefix(part) => {
                        let mut bytes = Vec::new();
                        if index.keys.encode_parts(part, std::slice::from_ref(&value), &mut bytes) {
                            except.push(bytes);
                        }
                    }
                    _ => {}
                }
            }
        }
        if index.keys.is_descending(part) {
            std::mem::swap(lower, upper);
        }
        except.sort_unstable();
        except.dedup();
        Ok(true)
    }
}

/// The keys of the values of a list, ascending; `None` if one of them may equal several.
fn values_of<'a, R: RowSource<'a>>(
    list: &'a [RowProgram],
    part: usize,
    index: &IndexHandle,
    ty: &SqlType,
    row: &R,
    params: &'a [Datum<'a>],
    ctx: &EvalContext,
) -> EvalResult<Option<Vec<Vec<u8>>>> {
    let mut keys = Vec::with_capacity(list.len());
    for program in list {
        match fit(program.eval(row, params, ctx)?, ty) {
            Fit::Exact(value) => {
                let mut bytes = Vec::new();
                if index.keys.encode_parts(part, std::slice::from_ref(&value), &mut bytes) {
                    keys.push(bytes);
                }
            }
            Fit::Among(..) | Fit::Unknown => return Ok(None),
            _ => {}
        }
    }
    keys.sort_unstable();
    Ok(Some(keys))
}

fn side_of<'a, R: RowSource<'a>>(
    edge: &'a Edge,
    lower: bool,
    ty: &SqlType,
    row: &R,
    params: &'a [Datum<'a>],
    ctx: &EvalContext,
) -> EvalResult<Side> {
    Ok(match fit(edge.program.eval(row, params, ctx)?, ty) {
        Fit::Exact(value) => Side::At(value.into_owned(), edge.inclusive),
        // All up to the smaller neighbour are below the value, all others above.
        Fit::Between(value) => Side::At(value.into_owned(), !lower),
        Fit::Among(low, high) => Side::At(if lower { low } else { high }.into_owned(), true),
        Fit::Below if lower => Side::Open,
        Fit::Above if !lower => Side::Open,
        Fit::Unknown => Side::Open,
        Fit::Null | Fit::Below | Fit::Above => Side::Empty,
    })
}

fn lesser(a: Datum<'static>, b: Datum<'static>) -> Datum<'static> {
    if sort_order(&b, &a, Collation::BINARY).is_lt() { b } else { a }
}

fn greater(a: Datum<'static>, b: Datum<'static>) -> Datum<'static> {
    if sort_order(&b, &a, Collation::BINARY).is_gt() { b } else { a }
}

/// All from one value of a part to another, after the prefixes.
fn among(index: &IndexHandle, part: usize, (low, high): (Datum<'_>, Datum<'_>), keys: &mut Keys) -> Found {
    let Ends { lower, upper, except, scratch, .. } = &mut keys.ends;
    lower.open(index, part);
    upper.open(index, part);
    except.clear();
    let (low, high) = (Side::At(low.into_owned(), true), Side::At(high.into_owned(), true));
    let is_there = lower.narrow(index, part, low, Ordering::Greater, scratch)
        && upper.narrow(index, part, high, Ordering::Less, scratch);
    if !is_there {
        return Found::Nothing;
    }
    if index.keys.is_descending(part) {
        std::mem::swap(lower, upper);
    }
    between(index, part, keys)
}

/// The ranges between the two ends, after every prefix.
fn between(index: &IndexHandle, part: usize, keys: &mut Keys) -> Found {
    let mut ends = std::mem::take(&mut keys.ends);
    let is_descending = index.keys.is_descending(part);
    keys.span = match is_descending {
        true => span(&ends.upper, &ends.lower),
        false => span(&ends.lower, &ends.upper),
    };
    if keys.many.is_empty() {
        keys.many.push(std::mem::take(&mut keys.key));
    }
    let (first, last) = (ends.lower.inclusive, ends.upper.inclusive);
    for n in 0..keys.many.len() {
        let mut from = (ends.lower.bytes.as_slice(), first);
        let mut to = (ends.upper.bytes.as_slice(), last);
        for but in &ends.except {
            if but.as_slice() < from.0 || but.as_slice() > to.0 && !but.starts_with(to.0) {
                continue;
            }
            if but == from.0 {
                from.1 = false;
            } else if but == to.0 {
                to.1 = false;
            } else {
                push_range(n, from, (but, false), keys);
                from = (but, false);
            }
        }
        push_range(n, from, to, keys);
    }
    // The memory of the common single prefix goes back to where it came from.
    if keys.many.len() == 1 {
        keys.key = keys.many.pop().unwrap_or_default();
    }
    ends.except.clear();
    keys.ends = ends;
    if keys.used == 0 { Found::Nothing } else { Found::Ranges }
}

/// Adds what lies between two values of the part after a prefix.
fn push_range(prefix: usize, (lower, first): (&[u8], bool), (upper, last): (&[u8], bool), keys: &mut Keys) {
    if is_empty(lower, first, upper, last) {
        return;
    }
    let at = keys.next_range();
    // The prefix with the one bound, and behind it the prefix with the other.
    let both = &mut keys.many[prefix];
    let base = both.len();
    both.extend_from_slice(lower);
    let middle = both.len();
    both.extend_from_within(..base);
    both.extend_from_slice(upper);
    let (start, end) = both.split_at(middle);
    let bound = |key, inclusive| if inclusive { Bound::Included(key) } else { Bound::Excluded(key) };
    keys.ranges[at].set(bound(start, first), bound(end, last));
    both.truncate(base);
}

/// How many integers lie between two ends.
fn span(low: &End, high: &End) -> Option<u64> {
    let integer = |end: &End| match &end.value {
        Some(Datum::Int(v)) => Some(i128::from(*v)),
        Some(Datum::UInt(v)) => Some(i128::from(*v)),
        _ => None,
    };
    let count = integer(high)? - integer(low)? + 1;
    Some(u64::try_from(count.max(0)).unwrap_or(u64::MAX))
}

/// Whether nothing lies between two bounds. An open one is the beginning of the other.
fn is_empty(lower: &[u8], lower_inclusive: bool, upper: &[u8], upper_inclusive: bool) -> bool {
    if lower == upper {
        return !(lower_inclusive && upper_inclusive);
    }
    lower > upper && !lower.starts_with(upper)
}

/// Appends a value to all prefixes; false if the column cannot hold it, or if it is not within its limits.
fn append(index: &IndexHandle, part: usize, value: &Datum<'_>, is_limited: bool, keys: &mut Keys) -> bool {
    let value = std::slice::from_ref(value);
    if is_limited {
        let scratch = &mut keys.ends.scratch;
        scratch.clear();
        let mut bytes = std::mem::take(scratch);
        let is_admitted = index.keys.encode_parts(part, value, &mut bytes) && keys.ends.admit(&bytes);
        keys.ends.scratch = bytes;
        if !is_admitted {
            return false;
        }
    }
    if keys.many.is_empty() {
        return index.keys.encode_parts(part, value, &mut keys.key);
    }
    keys.many.iter_mut().all(|key| index.keys.encode_parts(part, value, key))
}

/// Continues every prefix by each of these; false if there are none.
fn multiply(keys: &mut Keys, mut parts: Vec<Vec<u8>>) -> bool {
    parts.sort_unstable();
    parts.dedup();
    if keys.many.is_empty() {
        keys.many.push(keys.key.clone());
    }
    let continued = keys.many.iter().flat_map(|key| parts.iter().map(move |part| [&key[..], part].concat()));
    keys.many = continued.collect();
    !keys.many.is_empty()
}

/// Everything that begins with the prefixes.
fn whole_prefixes(keys: &mut Keys) -> Found {
    let count = keys.many.len().max(1);
    for n in 0..count {
        let at = keys.next_range();
        let key = keys.many.get(n).unwrap_or(&keys.key);
        keys.ranges[at].set(Bound::Included(key), Bound::Included(key));
    }
    Found::Ranges
}
