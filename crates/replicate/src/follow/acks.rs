//! Whether a stream is to be semi-synchronous: if it is asked for, the source can, and every table that is followed is whole.

use std::sync::Arc;

use super::Follower;
use crate::error::Result;
use crate::semisync::{self, Acks};
use crate::source::Connection;
use crate::status::SemiSync;

impl Follower {
    /// Whom a stream that begins now tells what is durable, if it is to be semi-synchronous.
    pub(super) fn acks_of(&mut self, conn: &mut Connection) -> Result<Option<Arc<Acks>>> {
        if !self.semi_sync {
            return Ok(None);
        }
        self.run.can_be_acked = semisync::is_supported(conn)?;
        let why_not = match (self.run.can_be_acked, self.state.is_whole()) {
            (true, true) => {
                // The source takes what stands before the stream's beginning for acknowledged.
                self.engine.all_logged().wait_synced()?;
                return Ok(Some(Arc::default()));
            }
            (true, false) => "tables are being copied; it begins when they are whole",
            (false, _) => semisync::cure(self.flavor),
        };
        tracing::warn!("followed without semi-synchronous acknowledgements: {why_not}");
        self.status.set_semi_sync(SemiSync::Not(why_not.to_owned()));
        Ok(None)
    }

    /// Whether tables have become whole, or are not any more, so that the stream is to be of the other kind.
    pub(super) fn wants_other_stream(&self) -> bool {
        self.run.can_be_acked && self.run.acks.is_some() != self.state.is_whole()
    }
}
