//! What becomes known once a commit is visible: to readers, waits, fronts and the source.
//!
//! Announcements come in the order of the commits, and nothing behind a commit is told before it. Once one of them is lost, nothing is
//! told any more: a place behind it would say that it is visible.

use std::sync::Arc;

use avocet_engine::Engine;

use crate::follow::{Announcement, Withholdings};
use crate::gtid::GtidSet;
use crate::status::{Status, VisiblePlace};

pub struct Announcer {
    pub engine: Arc<Engine>,
    pub status: Arc<Status>,
    pub withholdings: Arc<Withholdings>,
    pub on_visible: Box<dyn Fn(&GtidSet) + Send>,
    /// A commit did not become durable.
    pub has_lost: bool,
}

impl Announcer {
    pub fn tell(&mut self, announcement: Announcement) {
        if self.has_lost {
            return;
        }
        match announcement {
            Announcement::NoPlace => self.status.set_visible_place(None),
            Announcement::Place { source, place, acks } => {
                if let Some(acks) = acks {
                    acks.durable(&place);
                }
                self.status.set_visible_place(Some(VisiblePlace { source, place }));
            }
            Announcement::Commit { ticket, executed, committed_us, release, place, state, acks } => {
                let done = match &acks {
                    Some(_) => ticket.wait_synced(),
                    None => ticket.wait(),
                };
                if let Err(error) = done {
                    tracing::error!(%error, "a commit of the replication is not durable");
                    if let Some(acks) = acks {
                        acks.lose();
                    }
                    self.has_lost = true;
                    self.status.lose(format!("a commit of the replication is not durable: {error}"));
                    return;
                }
                if let Some(acks) = acks.filter(|_| state.is_whole()) {
                    acks.durable(&place);
                }
                self.withholdings.release(&self.engine, &release);
                self.status.set_tables(&state);
                (self.on_visible)(&executed);
                self.status.set_visible(executed, committed_us);
                // The first commit of a stream is before that has told any place.
                let source = state.source.clone();
                let visible = place.is_in_a_log().then_some(VisiblePlace { source, place });
                self.status.set_visible_place(visible);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use avocet_base::env::{DiskError, DiskOp, SimDisk};
    use avocet_engine::EngineOptions;

    use super::*;
    use crate::state::{LogPlace, State};
    use crate::status::Phase;

    #[test]
    fn nothing_is_told_behind_a_commit_that_is_lost() {
        let disk = SimDisk::default();
        let options = EngineOptions { env: disk.env(), background: false, ..EngineOptions::new("/data") };
        let engine = Engine::open(options).expect("it opens");
        let status = Arc::<Status>::default();
        let mut announcer = Announcer {
            engine: engine.clone(),
            status: status.clone(),
            withholdings: Arc::default(),
            on_visible: Box::new(|_| {}),
            has_lost: false,
        };
        status.set_phase(Phase::Following, None);
        let mut applier = engine.applier(1, 1);
        let state = State { source: "a".into(), ..State::default() };
        let place = |offset| LogPlace { file: "log.000001".into(), offset };
        let mut commit = |offset| Announcement::Commit {
            ticket: applier.publish(&state.encode(), 1).expect("it is committed"),
            executed: GtidSet::default(),
            committed_us: 1,
            release: Vec::new(),
            place: place(offset),
            state: Box::new(state.clone()),
            acks: None,
        };
        let mut cx = Context::from_waker(Waker::noop());
        announcer.tell(commit(100));
        assert_eq!(status.poll_visible("a", &place(100), &mut cx), Poll::Ready(Ok(())));
        disk.fail(DiskOp::Sync, 1, DiskError::Io);
        announcer.tell(commit(200));
        // The source is idle, and its heartbeats go on.
        announcer.tell(Announcement::Place { source: "a".into(), place: place(200), acks: None });
        assert!(matches!(status.poll_visible("a", &place(200), &mut cx), Poll::Ready(Err(_))));
        assert!(!status.wait_visible("a", &place(200), std::time::Duration::ZERO, &|| false));
        // Whoever follows goes on until it commits again.
        status.set_phase(Phase::Following, None);
        assert_eq!(status.snapshot().phase, Phase::Halted);
        assert!(status.snapshot().last_error.is_some_and(|error| error.contains("not durable")));
        status.set_phase(Phase::Stopped, None);
        assert_eq!(status.snapshot().phase, Phase::Stopped);
        status.begin();
        assert_eq!(status.snapshot().phase, Phase::Connecting);
    }
}
