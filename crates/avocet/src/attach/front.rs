//! What the server's front asks of the replication: what is followed, and whether the data here is fresh enough.

use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_replicate::{Answer, Patterns, Probe, Status};
use avocet_server::{AskedEnd, Late, LogEnd, PeerAccount, Source, SourceTls, Wait};
use avocet_session::api::Freshness;
use mysql::Opts;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::replica::tls::Tls;

/// The source, as the front sees it.
pub struct FrontSource {
    host: String,
    port: u16,
    tls: SourceTls,
    peers: Vec<PeerAccount>,
    patterns: Patterns,
    status: Arc<Status>,
    pub probe: Arc<Probe>,
    /// All that had been committed at the source at this moment is visible here.
    fresh_as_of: Mutex<Option<Instant>>,
    /// This server has taken the source's place.
    replaced: watch::Sender<bool>,
}

impl FrontSource {
    pub fn new(
        opts: &Opts,
        tls: &Tls,
        peers: Vec<PeerAccount>,
        patterns: Patterns,
        status: Arc<Status>,
    ) -> Self {
        Self {
            host: opts.get_ip_or_hostname().into_owned(),
            port: opts.get_tcp_port(),
            tls: SourceTls {
                is_required: tls.is_required(),
                authorities: tls.verified_by().map(Path::to_owned),
            },
            peers,
            patterns,
            status,
            probe: Arc::default(),
            fresh_as_of: Mutex::new(None),
            replaced: watch::Sender::new(false),
        }
    }

    /// Clients are served by this server itself from now on.
    pub fn be_replaced(&self) {
        self.replaced.send_replace(true);
        self.probe.stop();
    }

    async fn ask(&self) -> Result<Answer, Late> {
        let answer = self.ask_once().await?;
        if !self.status.is_of_other(&answer.source) {
            return Ok(answer);
        }
        // Another server has the source's address: the stream or the connection of the probe still leads to the one before.
        self.probe.doubt();
        self.ask_once().await
    }

    async fn ask_once(&self) -> Result<Answer, Late> {
        let question = self.probe.ask();
        poll_fn(|cx| self.probe.poll_answer(question, cx)).await.map_err(Late::SourceGone)
    }

    /// Waits until all is visible that the source has committed by now.
    async fn catch_up(&self) -> Result<(), Late> {
        let answer = self.ask().await?;
        let visible = poll_fn(|cx| self.status.poll_visible(&answer.source, &answer.end, cx)).await;
        visible.map_err(|broken| Late::Broken(broken.0))?;
        let mut fresh = self.fresh_as_of.lock();
        *fresh = (*fresh).max(Some(answer.asked));
        Ok(())
    }
}

impl Source for FrontSource {
    fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    fn tls(&self) -> &SourceTls {
        &self.tls
    }

    fn uuid(&self) -> String {
        self.status.snapshot().source_uuid
    }

    fn peers(&self) -> &[PeerAccount] {
        &self.peers
    }

    fn end(&self) -> AskedEnd<'_> {
        Box::pin(async {
            let Answer { source, end, asked } = self.ask().await?;
            Ok(LogEnd { source: source.to_string(), file: end.file, offset: end.offset, asked })
        })
    }

    fn replaced(&self) -> watch::Receiver<bool> {
        self.replaced.subscribe()
    }

    fn why_not_followed(&self, database: &str, table: &str) -> Option<String> {
        if !self.patterns.has_table(database, table) {
            return Some("it is left out".into());
        }
        if database == "avocet" {
            return Some("a database of that name is Avocet's own".into());
        }
        self.status.why_not_followed(database, table)
    }

    fn fresh(&self, freshness: Freshness, has_written: bool, at_most: Duration) -> Wait<'_> {
        Box::pin(async move {
            if let Some(broken) = self.status.broken() {
                return Err(Late::Broken(broken.0));
            }
            let is_fresh = match freshness {
                Freshness::Any => true,
                // What is visible here never goes back.
                Freshness::Session => !has_written,
                Freshness::Bounded(bound) => self.fresh_as_of.lock().is_some_and(|at| at.elapsed() <= bound),
                Freshness::Latest => false,
            };
            if is_fresh {
                return Ok(());
            }
            tokio::time::timeout(at_most, self.catch_up()).await.unwrap_or(Err(Late::TimedOut))
        })
    }
}
