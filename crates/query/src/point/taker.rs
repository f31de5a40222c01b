//! What becomes of the rows that a query finds: grouped, projected, sorted out, put in order, and sent.

use std::collections::HashSet;
use std::ops::ControlFlow;

use avocet_types::compare::sort_order;
use avocet_types::expr::{EvalContext, EvalResult, RowSource};
use avocet_types::{Datum, Value};

use super::aggregate::{Groups, value_key};
use super::recycle;
use super::run::{count, passes};
use super::select::{Aggregation, Output, Select};
use crate::error::SqlError;
use crate::session::api::ResultSink;

/// What takes the rows that were found.
pub struct Taker<'t> {
    output: &'t Output,
    pub params: &'t [Datum<'t>],
    pub ctx: &'t EvalContext,
    sink: &'t mut dyn ResultSink,
    /// Rows of OFFSET still to be left out, and of LIMIT still to be sent.
    skip: u64,
    left: u64,
    first_only: bool,
    sent: u64,
    values: Vec<Datum<'static>>,
    key: Vec<u8>,
    seen: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    kept: Vec<Vec<Value>>,
    groups: Groups,
}

impl<'t> Taker<'t> {
    /// `memory` is for the values of a row.
    pub fn new(
        select: &'t Select,
        params: &'t [Datum<'t>],
        ctx: &'t EvalContext,
        memory: Vec<Datum<'static>>,
        sink: &'t mut dyn ResultSink,
    ) -> EvalResult<Self> {
        Ok(Self {
            output: &select.output,
            params,
            ctx,
            sink,
            skip: count(select.offset.as_ref(), params, ctx)?.unwrap_or(0),
            left: count(select.limit.as_ref(), params, ctx)?.unwrap_or(u64::MAX),
            first_only: select.first_only,
            sent: 0,
            values: memory,
            key: Vec::new(),
            seen: HashSet::default(),
            kept: Vec::new(),
            groups: Groups::new(select.output.aggregation.as_ref()),
        })
    }

    /// False for LIMIT 0.
    pub fn wants_rows(&self) -> bool {
        self.left > 0
    }
    /// How many rows it takes at most, as far as that is known before.
    pub fn most(&self) -> u64 {
        let output = self.output;
        match output.distinct || !output.order.is_empty() || output.aggregation.is_some() {
            true if self.first_only => 1,
            true => u64::MAX,
            false => self.skip.saturating_add(self.left),
        }
    }

    pub fn take<'a, R: RowSource<'a>>(&mut self, row: &R) -> Result<ControlFlow<()>, SqlError>
    where
        Self: 'a,
    {
        let output = self.output;
        if let Some(aggregation) = &output.aggregation {
            self.groups.add(aggregation, row, self.params, self.ctx)?;
            return Ok(if self.first_only { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        }
        let is_direct = !output.distinct && output.order.is_empty();
        if is_direct && self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        let mut values = recycle(std::mem::take(&mut self.values));
        for program in &output.programs {
            values.push(program.eval(row, self.params, self.ctx)?);
        }
        let flow = self.put(&values);
        self.values = recycle(values);
        flow
    }

    /// Takes a projected row.
    fn put(&mut self, values: &[Datum<'_>]) -> Result<ControlFlow<()>, SqlError> {
        let output = self.output;
        if output.distinct {
            self.key.clear();
            for (value, program) in values[..output.visible].iter().zip(&output.programs) {
                let collation = program.ty().collation().unwrap_or(avocet_types::Collation::BINARY);
                value_key(value, collation, &mut self.key);
            }
            if self.seen.contains(&self.key[..]) {
                return Ok(ControlFlow::Continue(()));
            }
            self.seen.insert(self.key.as_slice().into());
        }
        if !output.order.is_empty() {
            self.kept.push(values.iter().cloned().map(Datum::into_owned).collect());
            return Ok(ControlFlow::Continue(()));
        }
        self.send(&values[..output.visible])
    }

    fn send(&mut self, values: &[Datum<'_>]) -> Result<ControlFlow<()>, SqlError> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        self.sink.row(values)?;
        self.sent += 1;
        self.left -= 1;
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Sends what could not be sent before; gives the memory back.
    pub fn finish(mut self, memory: &mut Vec<Datum<'static>>) -> Result<u64, SqlError> {
        if let Some(aggregation) = &self.output.aggregation {
            self.finish_groups(aggregation)?;
        }
        let order = &self.output.order;
        if !order.is_empty() {
            let mut kept = std::mem::take(&mut self.kept);
            kept.sort_by(|a, b| {
                let orders = order.iter().map(|term| {
                    let order = sort_order(&a[term.program], &b[term.program], term.collation);
                    if term.descending { order.reverse() } else { order }
                });
                orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
            });
            for row in &kept {
                if self.send(&row[..self.output.visible])?.is_break() {
                    break;
                }
            }
        }
        *memory = self.values;
        Ok(self.sent)
    }

    fn finish_groups(&mut self, aggregation: &Aggregation) -> Result<(), SqlError> {
        let output = self.output;
        if self.left == 0 {
            return Ok(());
        }
        for group in std::mem::take(&mut self.groups).finish(aggregation) {
            let group = group?;
            let row = &group[..];
            if !passes(aggregation.having.as_ref(), &row, self.params, self.ctx)? {
                continue;
            }
            let mut values = Vec::with_capacity(output.programs.len());
            for program in &output.programs {
                values.push(program.eval(&row, self.params, self.ctx)?);
            }
            if self.put(&values)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
