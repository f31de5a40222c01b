//! TPC-C's terminals: the mix of the five transactions, step by step over any `TpccOps` or by calls of procedures, and the books of
//! what they committed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ops::{Cents, OrderKey, TpccOps};
use super::schema::Scale;
use super::transactions::{Inputs, Kind, Outcome, Transaction};
use crate::oltp::driver::{self, OpsError, Terminal};
use crate::value::now_micros;

pub use crate::oltp::driver::{Control, Plan, Watch, cpu_time};

/// What the client knows to be committed. A server that was killed must still have all of it.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct Books {
    pub orders: Vec<OrderKey>,
    pub delivered: Vec<OrderKey>,
    pub payments: u64,
    pub paid: Cents,
}

impl driver::Books for Books {
    fn add(&mut self, other: Books) {
        self.orders.extend(other.orders);
        self.delivered.extend(other.delivered);
        self.payments += other.payments;
        self.paid += other.paid;
    }
}

impl Books {
    fn record(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ordered(key) => self.orders.push(key),
            Outcome::Paid { amount, .. } => {
                self.payments += 1;
                self.paid += amount;
            }
            Outcome::Delivered(keys) => self.delivered.extend(keys),
            Outcome::RolledBack | Outcome::Read => {}
        }
    }
}

/// A run of TPC-C; latencies are by `Kind`.
pub type Run = driver::Run<Books>;

/// Whoever runs whole transactions: step by step, or by a call.
pub trait Runner {
    type Error: OpsError + Send;

    /// Runs a transaction once; it is acknowledged when this returns, or counted on to be before the run's end.
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Self::Error>;
    /// After a failed run.
    fn roll_back(&mut self) -> Result<(), Self::Error>;
}

impl<O: TpccOps<Error: Send>> Runner for O {
    type Error = O::Error;

    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, O::Error> {
        transaction.run(self)
    }

    fn roll_back(&mut self) -> Result<(), O::Error> {
        self.rollback()
    }
}

/// One terminal and its home warehouse.
pub struct TpccTerminal<R> {
    runner: R,
    inputs: Inputs,
    drawn: Option<Transaction>,
    books: Books,
}

impl<R: Runner> Terminal for TpccTerminal<R> {
    type Error = R::Error;
    type Books = Books;

    fn draw(&mut self) -> usize {
        let (kind, transaction) = self.inputs.draw(now_micros());
        self.drawn = Some(transaction);
        kind as usize
    }

    fn attempt(&mut self) -> Result<(), R::Error> {
        let outcome = self.runner.run(self.drawn.as_ref().expect("a transaction was drawn"))?;
        self.books.record(outcome);
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), R::Error> {
        self.runner.roll_back()
    }

    fn into_books(self) -> Books {
        self.books
    }
}

/// Terminals of a plan, one per `connect`, spread over the warehouses.
pub fn terminals<R, E>(
    plan: &Plan,
    scale: Scale,
    connect: impl Fn() -> Result<R, E>,
) -> Result<Vec<TpccTerminal<R>>, E> {
    (0..plan.terminals)
        .map(|number| {
            let home = number as i64 % scale.warehouses + 1;
            let inputs = Inputs::new(scale, home, plan.seed + number as u64);
            Ok(TpccTerminal { runner: connect()?, inputs, drawn: None, books: Books::default() })
        })
        .collect()
}

/// Runs terminals, one per `connect`, for the planned time; see [`driver::run`].
pub fn run<R, E>(
    plan: Plan,
    scale: Scale,
    control: &Control,
    connect: impl Fn() -> Result<R, E>,
    watch: impl FnMut(Duration) -> Watch,
) -> Result<(Run, Vec<R::Error>), E>
where
    R: Runner + Send,
{
    let terminals = terminals(&plan, scale, connect)?;
    Ok(driver::run(plan, Kind::ALL.len(), terminals, control, watch))
}
