//! What becomes of the rows that a query finds: grouped, projected, sorted out, put in order, and sent.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Instant;

use avocet_channel::{LONGEST_DELAY, PlanColumns, ResultSink, write_some};
use avocet_types::compare::sort_order;
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalResult, RowSource};
use avocet_types::{Datum, Value};

use super::aggregate::Aggregation;
use super::aggregate::{Groups, value_key};
use super::bounds::{KEY_BYTES, bytes_of, bytes_of_large};
use super::run::{count, passes};
use super::select::{Output, Select, SortTerm};
use super::windows::Windows;
use super::{Run, recycle};

/// What takes the rows that were found.
pub struct Pipeline<'t> {
    output: &'t Output,
    /// To be announced before the first row.
    columns: Option<&'t PlanColumns>,
    pub run: Run<'t>,
    sink: &'t mut dyn ResultSink,
    /// Rows of OFFSET still to be left out, and of LIMIT still to be sent.
    skip: u64,
    left: u64,
    /// Rows come in the order of so many of its terms.
    presorted: usize,
    /// Rows beyond LIMIT are counted.
    counts_all: bool,
    /// Rows that LIMIT left out, if they are counted.
    beyond: u64,
    first_only: bool,
    sent: u64,
    delay: Delay,
    values: Vec<Datum<'static>>,
    key: Vec<u8>,
    seen: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    kept: Vec<Vec<Value>>,
    /// Of `seen`, `kept`, `groups` and `windowed`, in bytes.
    held: usize,
    groups: Groups,
    /// What is carried of the rows that window functions are over.
    windowed: Vec<Vec<Value>>,
}

/// How long rows have waited in the sink.
#[derive(Clone, Copy, Default)]
struct Delay {
    /// So many rows wait no more.
    passed_on: u64,
    /// When others were first found to wait.
    since: Option<Instant>,
}

impl<'t> Pipeline<'t> {
    /// `memory` is for the values of a row.
    pub fn new(
        select: &'t Select,
        columns: Option<&'t PlanColumns>,
        run: Run<'t>,
        memory: Vec<Datum<'static>>,
        sink: &'t mut dyn ResultSink,
    ) -> EvalResult<Self> {
        let Run { params, ctx, .. } = run;
        Ok(Self {
            output: &select.output,
            columns,
            run,
            sink,
            skip: count(select.offset.as_ref(), params, ctx)?.unwrap_or(0),
            left: count(select.limit.as_ref(), params, ctx)?.unwrap_or(u64::MAX),
            presorted: select.output.presorted,
            counts_all: select.counts_all,
            beyond: 0,
            first_only: select.first_only,
            sent: 0,
            delay: Delay::default(),
            values: memory,
            key: Vec::new(),
            seen: HashSet::default(),
            kept: Vec::new(),
            held: 0,
            groups: Groups::new(select.output.aggregation.as_ref(), ctx),
            windowed: Vec::new(),
        })
    }

    /// False for LIMIT 0, unless rows beyond it are counted.
    pub fn wants_rows(&self) -> bool {
        self.left > 0 || self.counts_all
    }

    /// How many rows it takes at most, as far as that is known before.
    pub fn most(&self) -> u64 {
        let output = self.output;
        let is_whole = output.aggregation.is_some() || output.windows.is_some();
        match output.distinct || !output.order.is_empty() || is_whole {
            true if self.first_only => 1,
            true => u64::MAX,
            false if self.counts_all => u64::MAX,
            false => self.skip.saturating_add(self.left),
        }
    }

    /// How many rows it takes at least, where they come in the order that is wanted.
    pub fn least(&self) -> u64 {
        let output = self.output;
        if self.groups_in_turn() {
            return self.wanted();
        }
        match !self.counts_all
            && output.aggregation.is_none()
            && output.windows.is_none()
            && self.presorted == output.order.len()
        {
            true => self.wanted(),
            false => self.most(),
        }
    }

    /// How many of those are still to come, as far as that is known.
    pub fn missing(&self) -> u64 {
        if self.groups_in_turn() {
            return self.wanted().saturating_sub(self.groups.count() as u64);
        }
        match self.output.order.is_empty() {
            true => self.skip.saturating_add(self.left),
            false => self.wanted().saturating_sub(self.kept.len() as u64),
        }
    }

    fn groups_in_turn(&self) -> bool {
        self.output.aggregation.as_ref().is_some_and(|aggregation| aggregation.in_turn)
    }

    /// Counts a row that is visited, whether it is taken or not.
    #[inline]
    pub fn visit(&mut self) -> Result<(), SqlError> {
        self.run.bounds.row()?;
        if self.run.bounds.has_looked() { self.send_early() } else { Ok(()) }
    }

    /// Rows that were sent do not wait for long for others to fill the sink.
    #[cold]
    fn send_early(&mut self) -> Result<(), SqlError> {
        if self.sent == self.delay.passed_on {
            return Ok(());
        }
        let since = *self.delay.since.get_or_insert_with(Instant::now);
        if since.elapsed() < LONGEST_DELAY {
            return Ok(());
        }
        self.delay = Delay { passed_on: self.sent, since: None };
        write_some(self.sink)
    }

    pub fn take<'a, R: RowSource<'a>>(&mut self, row: &R) -> Result<ControlFlow<()>, SqlError>
    where
        Self: 'a,
    {
        let output = self.output;
        if let Some(aggregation) = &output.aggregation {
            let most = if aggregation.in_turn { self.wanted() } else { u64::MAX };
            let Some(held) = self.groups.add(aggregation, row, self.run.params, self.run.ctx, most)? else {
                return Ok(ControlFlow::Break(()));
            };
            self.hold(held);
            return Ok(if self.first_only { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        }
        if let Some(windows) = &output.windows {
            self.take_for(windows, row)?;
            return Ok(ControlFlow::Continue(()));
        }
        let is_direct = !output.distinct && output.order.is_empty();
        if is_direct && self.leaves_out() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut values = recycle(std::mem::take(&mut self.values));
        let mut large = 0;
        for program in &output.programs {
            let value = program.eval(row, self.run.params, self.run.ctx)?;
            let bytes = bytes_of_large(&value);
            if bytes > 0 {
                self.run.bounds.hold_large(bytes)?;
                large += bytes;
            }
            values.push(value);
        }
        let flow = self.put(&values);
        self.run.bounds.let_go(large);
        self.values = recycle(values);
        flow
    }

    /// Takes a row for window functions.
    fn take_for<'a, R: RowSource<'a>>(&mut self, windows: &'a Windows, row: &R) -> Result<(), SqlError>
    where
        Self: 'a,
    {
        let Run { params, ctx, .. } = self.run;
        let mut values = Vec::with_capacity(windows.width());
        for program in &windows.carried {
            values.push(program.eval(row, params, ctx)?.into_owned());
        }
        self.hold(size_of::<Vec<Value>>() + values.iter().map(bytes_of).sum::<usize>());
        self.windowed.push(values);
        Ok(())
    }

    /// Takes a projected row.
    fn put(&mut self, values: &[Datum<'_>]) -> Result<ControlFlow<()>, SqlError> {
        let output = self.output;
        if output.distinct {
            self.key.clear();
            for (value, program) in values[..output.visible].iter().zip(&output.programs) {
                let collation = program.ty().order().unwrap_or(avocet_types::Collation::BINARY);
                value_key(value, collation, &mut self.key);
            }
            if self.seen.contains(&self.key[..]) {
                return Ok(ControlFlow::Continue(()));
            }
            self.seen.insert(self.key.as_slice().into());
            self.hold(KEY_BYTES + self.key.len());
        }
        if !output.order.is_empty() {
            if self.has_enough_before(values) {
                return Ok(ControlFlow::Break(()));
            }
            self.hold(size_of::<Vec<Value>>() + values.iter().map(bytes_of).sum::<usize>());
            self.kept.push(values.iter().cloned().map(Datum::into_owned).collect());
            let is_enough = self.presorted == output.order.len() && self.kept.len() as u64 >= self.wanted();
            let is_enough = is_enough && !self.counts_all;
            return Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        }
        self.send(&values[..output.visible])
    }

    /// Whether this row, and so all after it, come behind as many as are wanted: rows come in the order of the first terms.
    fn has_enough_before(&self, values: &[Datum<'_>]) -> bool {
        let presorted = &self.output.order[..self.presorted];
        if self.counts_all || presorted.is_empty() || (self.kept.len() as u64) < self.wanted() {
            return false;
        }
        let differs = |last: &Vec<Value>, term: &SortTerm| {
            sort_order(&last[term.program], &values[term.program], term.collation).is_ne()
        };
        self.kept.last().is_some_and(|last| presorted.iter().any(|term| differs(last, term)))
    }

    /// How many rows are wanted, those left out included.
    pub fn wanted(&self) -> u64 {
        self.skip.saturating_add(self.left)
    }

    /// From now on rows come in the wanted order.
    pub fn expect_in_order(&mut self) {
        self.presorted = self.output.order.len();
    }

    /// Forgets the rows that it has kept: they come again, in another order.
    pub fn begin_anew(&mut self) {
        self.presorted = self.output.presorted;
        self.kept.clear();
        self.seen.clear();
        self.run.bounds.let_go(std::mem::take(&mut self.held));
    }

    /// Whether the next row is one that OFFSET or LIMIT leaves out; it is counted then.
    #[inline]
    fn leaves_out(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            self.beyond += u64::from(self.counts_all);
            return true;
        }
        let is_beyond = self.left == 0;
        self.beyond += u64::from(is_beyond);
        is_beyond
    }

    fn send(&mut self, values: &[Datum<'_>]) -> Result<ControlFlow<()>, SqlError> {
        match self.leaves_out() {
            true => Ok(ControlFlow::Continue(())),
            false => self.send_wanted(values),
        }
    }

    fn send_wanted(&mut self, values: &[Datum<'_>]) -> Result<ControlFlow<()>, SqlError> {
        self.announce()?;
        self.sink.row(values)?;
        self.sent += 1;
        if self.sink.wants_flush() {
            self.delay = Delay { passed_on: self.sent, since: None };
            self.run.bounds.cancellation().flush_in_place(self.sink)?;
        }
        self.left -= 1;
        let is_last = self.left == 0 && !self.counts_all;
        Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Tells the sink of the columns, once.
    #[inline]
    fn announce(&mut self) -> Result<(), SqlError> {
        if let Some(columns) = self.columns.take() {
            self.run.bounds.note_sent();
            self.sink.plan_columns(columns, self.run.ctx.time_zone)?;
        }
        Ok(())
    }

    #[inline]
    fn hold(&mut self, bytes: usize) {
        if bytes > 0 {
            self.held += bytes;
            self.run.bounds.hold(bytes);
        }
    }

    /// Sends what could not be sent before; gives the memory back. Returns how many rows were sent, with those that were counted
    /// beyond its LIMIT, and how many bytes it held.
    pub fn finish(mut self, memory: &mut Vec<Datum<'static>>) -> Result<(u64, usize), SqlError> {
        if let Some(aggregation) = &self.output.aggregation {
            self.finish_groups(aggregation)?;
        }
        if let Some(windows) = &self.output.windows {
            self.finish_windows(windows)?;
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
            for row in kept {
                if self.send_kept(row)?.is_break() {
                    break;
                }
            }
        }
        self.announce()?;
        self.run.bounds.let_go(self.held);
        *memory = self.values;
        Ok((self.sent + self.beyond, self.held))
    }

    /// Sends a row that was kept, with what is computed of it now.
    fn send_kept(&mut self, mut row: Vec<Value>) -> Result<ControlFlow<()>, SqlError> {
        let Output { visible, late, .. } = self.output;
        if self.leaves_out() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut large = 0;
        for (at, program) in late {
            let value = program.eval(&&row[..], self.run.params, self.run.ctx)?.into_owned();
            let bytes = bytes_of_large(&value);
            if bytes > 0 {
                self.run.bounds.hold_large(bytes)?;
                large += bytes;
            }
            row[*at] = value;
        }
        let flow = self.send_wanted(&row[..*visible])?;
        self.run.bounds.let_go(large);
        if !late.is_empty() {
            // Computing takes its time, too: KILL and deadlines end it.
            self.run.bounds.row()?;
        }
        Ok(flow)
    }

    fn finish_groups(&mut self, aggregation: &Aggregation) -> Result<(), SqlError> {
        let output = self.output;
        if !self.wants_rows() {
            return Ok(());
        }
        for group in std::mem::take(&mut self.groups).finish(aggregation, self.run.ctx) {
            let group = group?;
            let row = &group[..];
            if !passes(aggregation.having.as_ref(), &row, self.run.params, self.run.ctx)? {
                continue;
            }
            if let Some(windows) = &output.windows {
                self.take_for(windows, &row)?;
            } else if self.project(&row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn finish_windows(&mut self, windows: &Windows) -> Result<(), SqlError> {
        if !self.wants_rows() {
            return Ok(());
        }
        let mut rows = std::mem::take(&mut self.windowed);
        self.held += windows.evaluate(&mut rows, self.run)?;
        for row in &rows {
            if self.project(&&row[..])?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Takes what the output's programs make of a row of groups or windows.
    fn project(&mut self, row: &&[Value]) -> Result<ControlFlow<()>, SqlError> {
        let output = self.output;
        let mut values = Vec::with_capacity(output.programs.len());
        for program in &output.programs {
            values.push(program.eval(row, self.run.params, self.run.ctx)?);
        }
        self.put(&values)
    }
}
