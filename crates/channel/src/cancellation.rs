//! Waiting for the client that takes a statement's rows, and what ends such a wait.
//!
//! A sink holds about 64 KiB and the row that did not fit any more. What fits is written once, by the driver, after the
//! statement; what does not is written piece by piece as the sink fills, so the first rows leave early and a client that is
//! slow holds the executor up.
//!
//! Invariants:
//! 1. After each row, and between pieces of a batch, whoever produces them flushes a sink that is full.
//! 2. Whoever waits for a client holds no latch. Row locks and the snapshot stay: they are the transaction's.
//! 3. Every wait ends with KILL, with `max_execution_time`, and when the driver gives the client up (it is gone, or has taken
//!    nothing for `net_write_timeout`): the driver then raises the session's interrupt.
//!
//! What awaits its rows awaits its client, too. A compiled plan is a recursion over the engine's visits, which cannot be
//! left and entered again: it blocks, with the thread's other connections handed on as for a row lock
//! (`docs/decisions/0037-one-result-channel.md`).

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use avocet_types::error::{ErrorCode, SqlError};
use tokio::runtime::Handle;

use crate::blocking::{blocking, can_await};
use crate::{Interrupt, ResultSink};

/// A row waits no longer for others to fill the sink, while its statement looks for them.
pub const LONGEST_DELAY: Duration = Duration::from_millis(10);

/// What ends a statement before it is done.
#[derive(Clone, Copy)]
pub struct Cancellation<'c> {
    pub interrupt: &'c Interrupt,
    pub deadline: Option<Instant>,
}

impl<'c> Cancellation<'c> {
    /// Of a statement that begins now and may take so long.
    pub fn after(interrupt: &'c Interrupt, time: Option<Duration>) -> Self {
        Self { interrupt, deadline: time.and_then(|time| Instant::now().checked_add(time)) }
    }

    pub fn check(&self) -> Result<(), SqlError> {
        self.interrupt.check()?;
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(ErrorCode::QUERY_TIMEOUT.with(&[])),
            _ => Ok(()),
        }
    }

    /// Resolves to the error that the statement is to end with.
    async fn cancelled(&self) -> SqlError {
        let raised = async {
            self.interrupt.raised().await;
            ErrorCode::QUERY_INTERRUPTED.with(&[])
        };
        let Some(deadline) = self.deadline else { return raised.await };
        tokio::select! {
            biased;
            error = raised => error,
            () = tokio::time::sleep_until(deadline.into()) => ErrorCode::QUERY_TIMEOUT.with(&[]),
        }
    }

    /// What `work` comes to, unless the statement ends before.
    pub async fn unless_done<T>(
        &self,
        work: impl Future<Output = Result<T, SqlError>>,
    ) -> Result<T, SqlError> {
        // Where nobody drives timers, whoever works looks at the time.
        let timed = Cancellation { deadline: self.deadline.filter(|_| can_await()), ..*self };
        tokio::select! {
            biased;
            done = work => done,
            error = timed.cancelled() => Err(error),
        }
    }

    /// Waits until the receiver has taken all that the sink holds.
    pub async fn flush(&self, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        self.check()?;
        tokio::select! {
            biased;
            flushed = poll_fn(|cx| sink.poll_flush(cx)) => Ok(flushed?),
            error = self.cancelled() => Err(error),
        }
    }

    /// As [`Self::flush`], for code that cannot await: if the receiver does not keep up, the thread's other tasks are
    /// handed on.
    pub fn flush_in_place(&self, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        self.check()?;
        write_some(sink)?;
        // Where nobody else can drive the receiver, waiting for it would be for ever.
        if sink.wants_flush() && can_await() {
            blocking(|| Handle::current().block_on(self.flush(sink)))?;
        }
        Ok(())
    }

    /// Passes a batch on as fast as the receiver takes it.
    pub async fn send_batch(&self, batch: &RecordBatch, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let mut at = 0;
        while at < batch.num_rows() {
            at = sink.batch(batch, at)?;
            if sink.wants_flush() {
                self.flush(sink).await?;
                // It may have been ready at once: a piece is as much as the thread's other tasks had better wait for.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

/// Passes on what the receiver takes at once.
pub fn write_some(sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    // Nobody waits here: who does registers a waker of its own.
    match sink.poll_flush(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(flushed) => Ok(flushed?),
        Poll::Pending => Ok(()),
    }
}

#[cfg(test)]
mod tests;
