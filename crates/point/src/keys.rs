//! Where in an index the rows are that a statement wants: key terms, evaluated at run time into key ranges.
//!
//! ```text
//!  index parts   │ 0      │ 1      │ 2       │ 3 │
//!  terms         │ = expr │ IN (…) │ range   │   │     → sorted, disjoint key ranges
//! ```
//!
//! Invariants:
//! 1. The ranges hold every row for which all terms are true. They hold no other row unless a term's value has no
//!    exact place in its column ([`Fit::Unknown`]) or the index has only a prefix of it: the plan then rechecks.
//! 2. Ranges ascend by key bytes and do not overlap, so that visiting them in order gives the index's order.

use std::collections::HashSet;
use std::ops::Bound;

use avocet_base::RowId;
use avocet_engine::{IndexHandle, KeyRange};
use avocet_types::expr::{EvalContext, EvalResult, RowProgram, RowSource};
use avocet_types::{Datum, SqlType};

use super::conditions::literal_prefix;
use super::domain::{Fit, fit};

/// What one of the first index columns equals.
#[derive(Debug)]
pub enum EqTerm {
    Value { program: RowProgram, null_safe: bool },
    List(Box<[RowProgram]>),
    IsNull,
}

/// The range of the column after those; never NULL.
#[derive(Debug, Default)]
pub struct RangeTerm {
    pub lower: Option<Edge>,
    pub upper: Option<Edge>,
    /// What the strings begin with.
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
    pub range: Option<RangeTerm>,
    /// Types of the columns that the terms are on, in order.
    pub types: Box<[SqlType]>,
    /// All columns of a unique index equal single values: one row at most, unless one of them is NULL.
    pub unique: bool,
    /// The sides of an OR: the rows of any of these, and the other terms are none.
    pub any_of: Box<[KeyTerms]>,
}

/// Memory for keys, to be used again and again.
#[derive(Default)]
pub struct Keys {
    /// The key of the single prefix that there mostly is.
    key: Vec<u8>,
    /// Several prefixes, once there was a list.
    many: Vec<Vec<u8>>,
    bounds: (Vec<u8>, Vec<u8>),
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
        let mut has_null = false;
        for (part, term) in self.eq.iter().enumerate() {
            match term {
                EqTerm::Value { program, null_safe } => {
                    let value = program.eval(row, params, ctx)?;
                    let value = match fit(value, &self.types[part]) {
                        Fit::Exact(value) => value,
                        Fit::Null if *null_safe => Datum::Null,
                        Fit::Unknown => return Ok(whole_prefixes(keys)),
                        _ => return Ok(Found::Nothing),
                    };
                    has_null |= value.is_null();
                    if !append(index, part, &value, keys) {
                        return Ok(Found::Nothing);
                    }
                }
                EqTerm::IsNull => {
                    has_null = true;
                    if !append(index, part, &Datum::Null, keys) {
                        return Ok(Found::Nothing);
                    }
                }
                EqTerm::List(list) => {
                    let mut parts: Vec<Vec<u8>> = Vec::with_capacity(list.len());
                    for program in list {
                        match fit(program.eval(row, params, ctx)?, &self.types[part]) {
                            Fit::Exact(value) => {
                                let mut bytes = Vec::new();
                                if index.keys.encode_parts(part, std::slice::from_ref(&value), &mut bytes) {
                                    parts.push(bytes);
                                }
                            }
                            Fit::Unknown => return Ok(whole_prefixes(keys)),
                            _ => {}
                        }
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
            Some(range) => self.locate_range(range, index, row, params, ctx, keys),
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

    fn locate_range<'a, R: RowSource<'a>>(
        &'a self,
        range: &'a RangeTerm,
        index: &IndexHandle,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        keys: &mut Keys,
    ) -> EvalResult<Found> {
        let part = self.eq.len();
        if let Some(prefix) = &range.prefix {
            let text = match prefix.pattern.eval(row, params, ctx)? {
                Datum::Null => return Ok(Found::Nothing),
                Datum::Str(pattern) => literal_prefix(&pattern, prefix.escape),
                // Bytes: any string may match.
                _ => return Ok(whole_prefixes(keys)),
            };
            let (lower, _) = &mut keys.bounds;
            lower.clear();
            if !index.keys.encode_string_prefix(part, &text, lower) {
                return Ok(whole_prefixes(keys));
            }
            let bytes = std::mem::take(lower);
            let found = multiply(keys, vec![bytes]);
            return Ok(if found { whole_prefixes(keys) } else { Found::Nothing });
        }
        let ty = &self.types[part];
        let side = |edge: &'a Option<Edge>, lower: bool| -> EvalResult<Side> {
            let Some(edge) = edge else { return Ok(Side::Open) };
            Ok(match fit(edge.program.eval(row, params, ctx)?, ty) {
                Fit::Exact(value) => Side::At(value.into_owned(), edge.inclusive),
                // All up to the smaller neighbour are below the value, all others above.
                Fit::Between(value) => Side::At(value.into_owned(), !lower),
                Fit::Below if lower => Side::Open,
                Fit::Above if !lower => Side::Open,
                Fit::Unknown => Side::Open,
                Fit::Null | Fit::Below | Fit::Above => Side::Empty,
            })
        };
        let (low, high) = (side(&range.lower, true)?, side(&range.upper, false)?);
        keys.span = span(&low, &high);
        let (mut lower, mut upper) = std::mem::take(&mut keys.bounds);
        let prefix = index.keys.is_prefix(part);
        let encoded = encode_side(index, part, low, prefix, &mut lower)
            .zip(encode_side(index, part, high, prefix, &mut upper));
        let Some((mut first, mut last)) = encoded else {
            keys.bounds = (lower, upper);
            return Ok(Found::Nothing);
        };
        if index.keys.is_descending(part) {
            std::mem::swap(&mut lower, &mut upper);
            std::mem::swap(&mut first, &mut last);
        }
        if keys.many.is_empty() {
            keys.many.push(std::mem::take(&mut keys.key));
        }
        for n in 0..keys.many.len() {
            if is_empty(&lower, first, &upper, last) {
                continue;
            }
            let base = keys.many[n].len();
            let at = keys.next_range();
            // The prefix with the one bound, and behind it the prefix with the other.
            let both = &mut keys.many[n];
            both.extend_from_slice(&lower);
            let middle = both.len();
            both.extend_from_within(..base);
            both.extend_from_slice(&upper);
            let (start, end) = both.split_at(middle);
            let bound = |key, inclusive| if inclusive { Bound::Included(key) } else { Bound::Excluded(key) };
            keys.ranges[at].set(bound(start, first), bound(end, last));
        }
        // The memory of the common single prefix goes back to where it came from.
        if keys.many.len() == 1 {
            keys.key = keys.many.pop().unwrap_or_default();
        }
        keys.bounds = (lower, upper);
        Ok(Found::Ranges)
    }
}

/// How many integers lie between two bounds.
fn span(low: &Side, high: &Side) -> Option<u64> {
    let integer = |side: &Side| match side {
        Side::At(Datum::Int(v), _) => Some(i128::from(*v)),
        Side::At(Datum::UInt(v), _) => Some(i128::from(*v)),
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

/// Writes one bound of a range; whether it is inclusive. `None` if nothing is in the range.
fn encode_side(index: &IndexHandle, part: usize, side: Side, prefix: bool, to: &mut Vec<u8>) -> Option<bool> {
    to.clear();
    match side {
        Side::Empty => None,
        Side::Open => {
            index.keys.encode_not_null(part, to);
            Some(true)
        }
        Side::At(value, inclusive) => {
            index.keys.encode_parts(part, std::slice::from_ref(&value), to).then_some(inclusive || prefix)
        }
    }
}

/// Appends a value to all prefixes; false if the column cannot hold it.
fn append(index: &IndexHandle, part: usize, value: &Datum<'_>, keys: &mut Keys) -> bool {
    let value = std::slice::from_ref(value);
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
