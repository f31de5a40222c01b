//! TPC-C's terminals: the mix of the five transactions over any `TpccOps`, and the books of what they committed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ops::{Cents, OrderKey, TpccOps};
use super::schema::Scale;
use super::transactions::{Inputs, Kind, Outcome, Transaction};
use crate::oltp::driver::{self, Terminal};
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

/// One terminal and its home warehouse.
pub struct TpccTerminal<O> {
    ops: O,
    inputs: Inputs,
    drawn: Option<Transaction>,
    books: Books,
}

impl<O: TpccOps<Error: Send>> Terminal for TpccTerminal<O> {
    type Error = O::Error;
    type Books = Books;

    fn draw(&mut self) -> usize {
        let (kind, transaction) = self.inputs.draw(now_micros());
        self.drawn = Some(transaction);
        kind as usize
    }

    fn attempt(&mut self) -> Result<(), O::Error> {
        let outcome = self.drawn.as_ref().expect("a transaction was drawn").run(&mut self.ops)?;
        self.books.record(outcome);
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), O::Error> {
        self.ops.rollback()
    }

    fn into_books(self) -> Books {
        self.books
    }
}

/// Terminals of a plan, one per `connect`, spread over the warehouses.
pub fn terminals<O, E>(
    plan: &Plan,
    scale: Scale,
    connect: impl Fn() -> Result<O, E>,
) -> Result<Vec<TpccTerminal<O>>, E> {
    (0..plan.terminals)
        .map(|number| {
            let home = number as i64 % scale.warehouses + 1;
            let inputs = Inputs::new(scale, home, plan.seed + number as u64);
            Ok(TpccTerminal { ops: connect()?, inputs, drawn: None, books: Books::default() })
        })
        .collect()
}

/// Runs terminals, one per `connect`, for the planned time; see [`driver::run`].
pub fn run<O, E>(
    plan: Plan,
    scale: Scale,
    control: &Control,
    connect: impl Fn() -> Result<O, E>,
    watch: impl FnMut(Duration) -> Watch,
) -> Result<(Run, Vec<O::Error>), E>
where
    O: TpccOps<Error: Send> + Send,
{
    let terminals = terminals(&plan, scale, connect)?;
    Ok(driver::run(plan, Kind::ALL.len(), terminals, control, watch))
}
