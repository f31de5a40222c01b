//! Which statement the thread runs, for the records of the changes of definitions that it makes.

use std::cell::RefCell;

use avocet_base::Env;

use crate::redo::Statement;

thread_local! {
    static RUNNING: RefCell<Option<Statement>> = const { RefCell::new(None) };
}

/// Runs something as a part of a statement. The first change of a definition in it takes the statement along into the log.
pub fn run_as_statement<T>(statement: &mut Option<Statement>, run: impl FnOnce() -> T) -> T {
    /// Puts it back where it was, also when the thread unwinds.
    struct Exchange<'s>(&'s mut Option<Statement>);
    impl Exchange<'_> {
        fn swap(&mut self) {
            RUNNING.with_borrow_mut(|running| std::mem::swap(running, self.0));
        }
    }
    impl Drop for Exchange<'_> {
        fn drop(&mut self) {
            self.swap();
        }
    }
    let mut exchange = Exchange(statement);
    exchange.swap();
    run()
}

/// Changes the statement that the thread runs, if it is known.
pub fn change_statement(change: impl FnOnce(&mut Statement)) {
    RUNNING.with_borrow_mut(|running| running.as_mut().map(change));
}

/// Puts the statement behind the change that it makes.
pub(crate) fn take_statement(env: &Env, payload: &mut Vec<u8>) {
    let taken = RUNNING.with_borrow_mut(Option::take);
    if let Some(mut statement) = taken.filter(|statement| !statement.texts.is_empty()) {
        if statement.wall_us == 0 {
            statement.wall_us = env.clock.wall_us();
        }
        statement.encode(payload);
    }
}
