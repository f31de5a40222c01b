//! Aggregates over the rows that a plan visits: all of them, or by groups.

mod accumulator;

use std::collections::HashMap;

use avocet_types::expr::{EvalContext, EvalResult, RowProgram, RowSource};
use avocet_types::{Collation, Datum, Decimal, Value, json};

use super::bounds::{KEY_BYTES, bytes_of};

pub use accumulator::{Accumulator, AggregatePlan, collation_of};

/// What stands after it is over the keys followed by the aggregates.
#[derive(Debug)]
pub struct Aggregation {
    pub keys: Box<[RowProgram]>,
    pub aggregates: Box<[AggregatePlan]>,
    pub having: Option<RowProgram>,
    /// There is a group for each number of first keys, too.
    pub rollup: bool,
    /// Groups come one after the other in the wanted order, so that no more are wanted than rows.
    pub in_turn: bool,
}

/// The groups that were met so far.
#[derive(Default)]
pub struct Groups {
    /// In the order in which they were met.
    groups: Vec<Group>,
    /// Where the group with these keys is.
    places: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    /// The row's key: first the values of GROUP BY, and where each ends.
    key: Vec<u8>,
    ends: Vec<usize>,
}

struct Group {
    keys: Vec<Value>,
    /// How many of the keys tell it from others: with ROLLUP, the others are NULL.
    level: usize,
    accumulators: Vec<Accumulator>,
}

/// The key of the group of all rows: a level, which no value's key begins with, and its number.
const LEVEL_OF_ALL: [u8; 2] = [u8::MAX, 0];

impl Groups {
    /// Without keys all rows are one group, even if there are none. So they are to ROLLUP.
    pub fn new(aggregation: Option<&Aggregation>, ctx: &EvalContext) -> Self {
        let mut groups = Self::default();
        if let Some(aggregation) = aggregation.filter(|of| of.keys.is_empty() || of.rollup) {
            let keys = vec![Datum::Null; aggregation.keys.len()];
            groups.groups.push(Group { keys, level: 0, accumulators: accumulators(aggregation, ctx) });
            groups.places.insert(LEVEL_OF_ALL.into(), 0);
        }
        groups
    }

    /// Adds a row to its group, with ROLLUP to one for each number of first keys; how many bytes more it holds. `None` if the row
    /// would be one of more than `most` groups.
    pub fn add<'a, R: RowSource<'a>>(
        &mut self,
        aggregation: &'a Aggregation,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        most: u64,
    ) -> EvalResult<Option<usize>> {
        let keys = aggregation.keys.len();
        self.key.clear();
        self.ends.clear();
        for program in &aggregation.keys {
            let value = program.eval(row, params, ctx)?;
            value_key(&value, collation_of(program.ty()), &mut self.key);
            self.ends.push(self.key.len());
        }
        let mut held = 0;
        let fewest = if aggregation.rollup { 0 } else { keys };
        for level in (fewest..=keys).rev() {
            let groups = self.groups.len();
            let at = match keys {
                0 => 0,
                _ => match self.place(level, aggregation, row, params, ctx, most)? {
                    Some(at) => at,
                    None => return Ok(None),
                },
            };
            let Group { keys, accumulators, .. } = &mut self.groups[at];
            if at == groups {
                held += KEY_BYTES + self.key.len() + keys.iter().map(bytes_of).sum::<usize>();
                held += size_of::<Group>() + accumulators.len() * size_of::<Accumulator>();
            }
            for (accumulator, plan) in accumulators.iter_mut().zip(&aggregation.aggregates) {
                held += accumulator.add(plan, row, params, ctx)?;
            }
        }
        Ok(Some(held))
    }

    /// The group of the row whose key is at hand, by so many of its keys; `None` if it is a new one, and there are as many as may be.
    fn place<'a, R: RowSource<'a>>(
        &mut self,
        level: usize,
        aggregation: &'a Aggregation,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        most: u64,
    ) -> EvalResult<Option<usize>> {
        // Fewer keys are told from more by their number, which no value's key begins with.
        self.key.truncate(level.checked_sub(1).map_or(0, |last| self.ends[last]));
        if level < aggregation.keys.len() {
            self.key.extend_from_slice(&[LEVEL_OF_ALL[0], level as u8]);
        }
        if let Some(at) = self.places.get(&self.key[..]) {
            return Ok(Some(*at));
        }
        if self.groups.len() as u64 >= most {
            return Ok(None);
        }
        let keys = aggregation.keys.iter().enumerate().map(|(at, program)| match at < level {
            true => Ok(program.eval(row, params, ctx)?.into_owned()),
            false => Ok(Datum::Null),
        });
        let keys = keys.collect::<EvalResult<_>>()?;
        self.groups.push(Group { keys, level, accumulators: accumulators(aggregation, ctx) });
        let at = self.groups.len() - 1;
        self.places.insert(self.key.as_slice().into(), at);
        Ok(Some(at))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Each group's keys and results.
    pub fn finish<'g>(
        self,
        aggregation: &'g Aggregation,
        ctx: &'g EvalContext,
    ) -> impl Iterator<Item = EvalResult<Vec<Value>>> + use<'g> {
        self.groups.into_iter().map(move |Group { keys: mut values, level, accumulators }| {
            for (mut accumulator, plan) in accumulators.into_iter().zip(&aggregation.aggregates) {
                values.push(accumulator.result(plan, level, ctx)?);
            }
            Ok(values)
        })
    }
}

fn accumulators(aggregation: &Aggregation, ctx: &EvalContext) -> Vec<Accumulator> {
    aggregation.aggregates.iter().map(|plan| Accumulator::new(plan, ctx)).collect()
}

/// Appends bytes that are equal for equal values of types that compare as they are, and for no others: signed and unsigned
/// integers are such, FLOAT and DOUBLE, and every type with itself.
pub fn value_key(value: &Datum<'_>, collation: Collation, key: &mut Vec<u8>) {
    key.push(match value {
        Datum::Null => 0,
        Datum::Int(..0) => 2,
        _ => 1,
    });
    match value {
        Datum::Null => {}
        Datum::Int(v) | Datum::DateTime(v) | Datum::Time(v) => key.extend_from_slice(&v.to_le_bytes()),
        Datum::UInt(v) => key.extend_from_slice(&v.to_le_bytes()),
        Datum::Float(v) => key.extend_from_slice(&(f64::from(*v) + 0.0).to_bits().to_le_bytes()),
        Datum::Double(v) => key.extend_from_slice(&(v + 0.0).to_bits().to_le_bytes()),
        Datum::Date(v) => key.extend_from_slice(&v.to_le_bytes()),
        // Whether a value has room for so many digits does not depend on the scale that it comes with.
        Datum::Decimal(v) => {
            let v = v.rescale(Decimal::MAX_SCALE).unwrap_or_else(|_| v.without_last_zeros());
            key.push(v.scale());
            key.extend_from_slice(&v.as_i256().to_le_bytes());
        }
        Datum::Str(s) => collation.sort_key(s, key),
        Datum::Bytes(b) if collation == Collation::JSON => json::sort_key(json::Node::new(b), key),
        Datum::Bytes(b) => {
            key.extend_from_slice(&(b.len() as u64).to_le_bytes());
            key.extend_from_slice(b);
        }
    }
}
