//! A replica's connection: the events of the binary log, as they come, until one of both leaves.

use std::future::poll_fn;
use std::time::Duration;

use avocet_session::api::{DumpFrom, DumpStep, Dumping, SessionFactory, SqlSession};
use avocet_types::error::SqlError;
use tokio::time::Instant;

use super::{Connection, Next};
use crate::account::Account;
use crate::protocol::command::DumpFlags;
use crate::protocol::{StatusFlags, reply};
use crate::registry::Activity;
use crate::sink::FLUSH_AT;
use crate::wire::WireError;

/// So often a stream that waits looks whether the server stops.
const LOOK: Duration = Duration::from_millis(500);
/// A buffer of so many bytes is kept between events.
const KEPT_EVENT: usize = 256 << 10;

impl<F: SessionFactory> Connection<F> {
    /// Sends events. With `until_end`, what there is; else also what comes.
    pub(super) async fn dump(&mut self, from: DumpFrom, how: DumpFlags) -> Result<Next, WireError> {
        let until_end = how.until_end;
        self.begin(Activity::Dump, b"");
        let Dumping { mut dump, heartbeat, is_mariadb } = match self.session.begin_dump(from) {
            Ok(dumping) => dumping,
            Err(error) => {
                self.reply_error(&error);
                return Ok(Next::Continue);
            }
        };
        let mut event = Vec::new();
        // What is written goes by way of a buffer that is counted itself.
        let mut buffers = Account::new(self.shared.memory.clone());
        let mut told = Instant::now();
        loop {
            event.clear();
            event.shrink_to(KEPT_EVENT);
            event.push(0);
            let step = match dump.next(&mut event) {
                Ok(step) => step,
                Err(error) => {
                    let message = format!("the binary log cannot be read: {error}");
                    self.reply_error(&SqlError { errno: 1236, sqlstate: *b"HY000", message });
                    return Ok(Next::Continue);
                }
            };
            buffers.shrink(event.capacity() + dump.buffered());
            if !buffers.grow(event.capacity() + dump.buffered()) {
                let message =
                    "there is no memory for so large an event at the moment (--memory-limit)".into();
                self.reply_error(&SqlError { errno: 1236, sqlstate: *b"HY000", message });
                return Ok(Next::Continue);
            }
            if step == DumpStep::Event {
                self.wire.out.packet(&event);
                if self.wire.out.bytes().len() < FLUSH_AT {
                    continue;
                }
            }
            if !self.wire.out.bytes().is_empty() {
                told = Instant::now();
                tokio::select! {
                    biased;
                    _ = self.registration.interrupt.raised() => return Ok(Next::Close),
                    flushed = self.wire.flush() => flushed?,
                }
            }
            if step != DumpStep::End {
                if self.registration.interrupt.get().is_some() {
                    return Ok(Next::Close);
                }
                tokio::task::yield_now().await;
                continue;
            }
            if until_end {
                reply::end_of_rows(&mut self.wire.out, self.capabilities, 0, StatusFlags::empty());
                return Ok(Next::Continue);
            }
            if dump.has_ended() || self.shared.registry.is_stopping() {
                return Ok(Next::Close);
            }
            let left = heartbeat.map_or(LOOK, |period| period.saturating_sub(told.elapsed()));
            if left.is_zero() {
                let before = event.len();
                dump.heartbeat(how.heartbeats_in_full && !is_mariadb, &mut event);
                match event.len() > before {
                    true => self.wire.out.packet(&event),
                    false => told = Instant::now(),
                }
                continue;
            }
            tokio::select! {
                biased;
                _ = self.registration.interrupt.raised() => return Ok(Next::Close),
                () = poll_fn(|cx| dump.poll_more(cx)) => {}
                () = poll_fn(|cx| self.wire.line.lock().transport.poll_hangup(cx)) => return Ok(Next::Close),
                () = tokio::time::sleep(left.min(LOOK)) => {}
            }
        }
    }
}
