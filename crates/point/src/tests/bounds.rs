//! What ends a plan that runs too long or holds too much.

use std::time::Instant;

use avocet_channel::blocking::ROWS_IN_PLACE;
use avocet_channel::{Interrupt, Interruption};
use avocet_engine::MemoryBudget;

use super::super::bounds::{Bounds, FREE_BYTES, MOST_ROWS};
use super::*;

fn rows(bounds: &Bounds<'_>, count: usize) -> Result<(), SqlError> {
    (0..count).try_for_each(|_| bounds.row())
}

fn budget() -> Arc<MemoryBudget> {
    World::new(&[]).engine.memory().clone()
}

#[test]
fn an_interrupt_is_met_within_some_rows() {
    let (interrupt, memory) = (Interrupt::default(), budget());
    let bounds = Bounds::new(&interrupt, &memory, None).of_query(None);
    rows(&bounds, 10 * ROWS_IN_PLACE + 1).expect("nobody asks");
    interrupt.raise(Interruption::Statement);
    assert!(rows(&bounds, ROWS_IN_PLACE).unwrap_err().is(ErrorCode::QUERY_INTERRUPTED));
}

#[test]
fn a_deadline_is_met() {
    let (interrupt, memory) = (Interrupt::default(), budget());
    let bounds = Bounds::new(&interrupt, &memory, None).of_query(Some(Instant::now()));
    assert!(rows(&bounds, ROWS_IN_PLACE).unwrap_err().is(ErrorCode::QUERY_TIMEOUT));
}

#[test]
fn memory_is_taken_from_the_budget_and_given_back() {
    let (interrupt, memory) = (Interrupt::default(), budget());
    let bounds = Bounds::new(&interrupt, &memory, Some(1 << 20)).of_query(None);
    bounds.hold(FREE_BYTES);
    rows(&bounds, 1).expect("a little is free");
    assert_eq!(memory.in_use().queries, 0);
    bounds.hold(500_000);
    rows(&bounds, 1).expect("below the limit");
    assert!(memory.in_use().queries >= 500_000);
    bounds.let_go(500_000);
    bounds.hold(1 << 20);
    assert!(rows(&bounds, 1).unwrap_err().is(ErrorCode::OUT_OF_RESOURCES));
    assert!(!bounds.has_declined());
    drop(bounds);
    assert_eq!(memory.in_use().queries, 0);
}

#[test]
fn what_is_too_much_is_declined_until_something_was_sent() {
    let (interrupt, memory) = (Interrupt::default(), budget());
    let many = MOST_ROWS as usize + ROWS_IN_PLACE;
    let bounds = Bounds::new(&interrupt, &memory, None).of_query(None);
    bounds.allow_declining();
    assert!(rows(&bounds, many).is_err() && bounds.has_declined());
    let bounds = Bounds::new(&interrupt, &memory, None).of_query(None);
    bounds.allow_declining();
    bounds.forbid_declining();
    rows(&bounds, many).expect("it goes on");
}
