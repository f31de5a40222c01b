//! Commands that go to the source as they came, and replies that come back as they are.

use std::ops::Range;

use avocet_channel::Interruption;
use avocet_session::api::SessionFactory;
use avocet_types::error::ErrorCode;

use super::Behind;
use crate::connection::{Connection, Next};
use crate::front::effects::Effects;
use crate::front::framer::{Framer, Reply, Step};
use crate::protocol::StatusFlags;
use crate::wire::{Wire, WireError};

/// So much of a reply is gathered before it is written.
pub(super) const GATHERED: usize = 64 * 1024;

/// Moves what has come of a reply to the client's buffer.
pub(super) fn move_reply(framer: &mut Framer, from: &mut Wire, to: &mut Wire) -> Result<Step, WireError> {
    let unread = from.input.unread();
    let step = framer.look(unread)?;
    to.out.put_raw(&unread[..step.count()]);
    from.input.take(step.count());
    Ok(step)
}

impl<F: SessionFactory> Connection<F> {
    /// Passes a command on that has no reply.
    pub(super) async fn pass_without_reply(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
    ) -> Result<Next, WireError> {
        match behind.upstream.send(self.wire.input.slice(packet)).await {
            Ok(()) => Ok(Next::Continue),
            // Nothing can be said of it: the client awaits no reply.
            Err(_) => Ok(Next::Close),
        }
    }

    /// Passes a command on, and its reply back.
    pub(super) async fn pass(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
        reply: Reply,
        effects: &Effects,
    ) -> Result<Next, WireError> {
        let mut framer = Framer::new(reply, behind.upstream.deprecates_eof());
        let sent = behind.upstream.send(self.wire.input.slice(packet)).await;
        self.pass_reply(behind, sent, &mut framer, effects).await
    }

    /// Passes the reply back to a command that was sent.
    pub(super) async fn pass_reply(
        &mut self,
        behind: &mut Behind,
        sent: Result<(), WireError>,
        framer: &mut Framer,
        effects: &Effects,
    ) -> Result<Next, WireError> {
        behind.view.note(effects);
        // The transaction may be one that the same text begins.
        behind.view.level_has_changed |= effects.settings;
        if matches!(sent, Err(WireError::OutOfMemory)) {
            let message = "The server has no memory for so large a packet at the moment";
            self.reply_error(&ErrorCode::OUT_OF_RESOURCES.because(message));
            return Ok(Next::Continue);
        }
        if let Err(error) = sent {
            return Ok(self.lost_source(&error));
        }
        let mut has_passed = false;
        loop {
            let step = move_reply(framer, &mut behind.upstream.wire, &mut self.wire)?;
            has_passed |= step.count() > 0;
            match step {
                Step::Ended(_) => break,
                Step::File(_) => {
                    Box::pin(self.pass_file(behind, framer.sequence)).await?;
                    continue;
                }
                Step::More(_) => {}
            }
            if self.wire.out.len() >= GATHERED {
                self.wire.flush().await?;
            }
            let is_waiting = !self.wire.out.is_empty();
            tokio::select! {
                biased;
                read = behind.upstream.wire.more() => {
                    if let Err(error) = read {
                        // Half a reply cannot be ended properly.
                        return Ok(if has_passed { Next::Close } else { self.lost_source(&error) });
                    }
                }
                flushed = self.wire.flush(), if is_waiting => flushed?,
            }
        }
        behind.upstream.wire.rest_for_now();
        // An error alone says nothing of the transaction: it is as it was.
        if let Some(status) = framer.status {
            behind.upstream.status = status;
            behind.view.has_changed &= status.contains(StatusFlags::SERVER_STATUS_IN_TRANS);
        }
        let is_open = behind.upstream.status.contains(StatusFlags::SERVER_STATUS_IN_TRANS);
        behind.view.level_has_changed &= is_open;
        if let Some((thread, of_statement)) = effects.kills.filter(|_| !framer.failed)
            && let Some(interrupt) = behind.front.interrupt_of(thread)
        {
            interrupt.raise(if of_statement { Interruption::Statement } else { Interruption::Connection });
        }
        Ok(Next::Continue)
    }

    /// Passes the client's file on, packet by packet, to the empty one behind it. `sequence`: of the packet that asked for it.
    async fn pass_file(&mut self, behind: &mut Behind, sequence: u8) -> Result<(), WireError> {
        self.wire.flush().await?;
        self.wire.out.set_sequence(sequence.wrapping_add(1));
        behind.upstream.wire.out.set_sequence(sequence.wrapping_add(1));
        loop {
            let piece = self.wire.next().await?;
            let is_last = piece.is_empty();
            behind.upstream.wire.out.packet(piece);
            behind.upstream.wire.flush().await?;
            if is_last {
                return Ok(());
            }
        }
    }
}
