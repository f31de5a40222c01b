//! Where a query runs that need not run on the source: here or on a peer, wherever there is less to do; and if it cannot, on the next
//! one, and at last on the source.

use std::sync::Arc;
use std::time::Instant;

use avocet_session::api::{Routing, SessionFactory, SqlSession};
use avocet_types::error::ErrorCode;

use super::Behind;
use super::choice::{Noted, Waited};
use super::peer::Tried;
use super::statement::{Job, is_asked_for};
use crate::connection::{Connection, Cut, Next};
use crate::front::Late;
use crate::front::peers::{Peer, Replica};
use crate::front::shape::Shape;
use crate::wire::WireError;

/// A statement on its way.
pub(super) struct Asked<'a> {
    pub job: Job,
    pub shape: &'a Shape,
    pub has_key: bool,
    pub began: Instant,
}

impl<F: SessionFactory> Connection<F> {
    /// Runs a query on the place with the least to do that can.
    pub(super) async fn run_on_replica(
        &mut self,
        behind: &mut Behind,
        asked: Asked<'_>,
        routing: &Routing,
        noted: Noted,
    ) -> Result<Next, WireError> {
        self.limit_writes(behind.view.settings.as_ref());
        let next = self.run_somewhere(behind, asked, routing, noted).await;
        self.limit_writes(None);
        next
    }

    async fn run_somewhere(
        &mut self,
        behind: &mut Behind,
        asked: Asked<'_>,
        routing: &Routing,
        mut noted: Noted,
    ) -> Result<Next, WireError> {
        let front = behind.front.clone();
        let mut late: Option<Late> = None;
        let mut failed = None;
        let mut is_refused = false;
        for place in front.peers.by_load() {
            let running = front.peers.begin(&place);
            let tried = match &place {
                Replica::Here => self.try_here(behind, &asked, routing, &mut noted).await?,
                Replica::Peer(peer) => {
                    let tried = self.try_peer(behind, &asked.job, peer, routing).await?;
                    match &tried {
                        Tried::Lost(why) => peer.failed(why),
                        Tried::Done(_) => peer.worked(),
                        _ => {}
                    }
                    tried
                }
            };
            drop(running);
            match tried {
                Tried::Done(next) => {
                    (behind.view.last_ran_here, behind.view.last_query_ran_here) = (true, true);
                    let peer = match place {
                        Replica::Here => None,
                        Replica::Peer(peer) => {
                            noted.why = format!("{}; on the peer {peer}", noted.why);
                            Some(peer)
                        }
                    };
                    (behind.last_peer, behind.last_query_peer) = (peer.clone(), peer);
                    self.note(behind, &asked.job, true, noted, asked.began);
                    return Ok(next);
                }
                Tried::Killed => {
                    self.reply_error(&ErrorCode::QUERY_INTERRUPTED.with(&[]));
                    return Ok(Next::Continue);
                }
                Tried::Gone => return Ok(Next::Close),
                Tried::Late(why) => late = Some(why),
                // The source may be able to, or gives the error that a client of MySQL expects.
                Tried::Refused(why) => {
                    (failed, is_refused) = (Some(why), true);
                    break;
                }
                Tried::Failed(why) | Tried::Lost(why) => failed = Some(why),
            }
        }
        noted.was_late = late.is_some();
        if let Some(late) = late.as_ref().filter(|_| routing.fails_when_late && !is_refused) {
            self.reply_error(&ErrorCode::UNKNOWN_ERROR.because(format!("Avocet: {late}")));
            return Ok(Next::Continue);
        }
        let late = late.map(|late| late.to_string()).filter(|_| !is_refused);
        if let Some(why) = late.or(failed) {
            noted.why = why;
        }
        noted.fell_back = true;
        let next = self.pass_job(behind, asked.job.clone(), &asked.shape.effects).await;
        self.note(behind, &asked.job, false, noted, asked.began);
        next
    }

    async fn try_here(
        &mut self,
        behind: &mut Behind,
        asked: &Asked<'_>,
        routing: &Routing,
        noted: &mut Noted,
    ) -> Result<Tried, WireError> {
        let began = Instant::now();
        let waited = self.wait_until_fresh(behind, routing).await;
        noted.waited = began.elapsed();
        match waited {
            Waited::Fresh => {}
            Waited::Killed => return Ok(Tried::Killed),
            Waited::ClientLost => return Ok(Tried::Gone),
            Waited::Late(late) => return Ok(Tried::Late(late)),
        }
        let ran = self.run_job(behind, &asked.job).await?;
        let why = match &ran.outcome {
            Ok(Err(error)) if !ran.has_sent && !is_asked_for(error.errno) => {
                let why = format!("it cannot run here: {}", error.message);
                if asked.has_key {
                    behind.front.costs.refuse(&behind.key, &why);
                }
                why
            }
            Err(Cut::Panicked) if !ran.has_sent => {
                self.session.recover();
                "it panicked here; see the log".into()
            }
            _ => return Ok(Tried::Done(self.conclude(ran.outcome))),
        };
        self.wire.out.clear();
        self.wire.out.set_sequence(1);
        Ok(Tried::Refused(why))
    }

    /// Runs a statement that asks for the warnings or the numbers of the one before, which ran on a peer.
    pub(super) async fn ask_last_peer(
        &mut self,
        behind: &mut Behind,
        job: &Job,
        peer: &Arc<Peer>,
    ) -> Result<Next, WireError> {
        if let Some(next) = self.ask_peer(behind, job, peer).await? {
            return Ok(next);
        }
        let message = format!("Avocet: the statement before ran on the peer {peer}, which is gone");
        self.reply_error(&ErrorCode::UNKNOWN_ERROR.because(message));
        Ok(Next::Continue)
    }
}
