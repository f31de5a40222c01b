//! How far the source is ahead of what is visible here: asked there once in a second, on a connection of its own, so that it is known
//! also while nothing comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Opts, OptsBuilder};

use crate::error::Result;
use crate::source::{self, Connection};
use crate::state::LogPlace;
use crate::status::{Ahead, Status};

const EVERY: Duration = Duration::from_secs(1);
/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// A source that does not answer for so long is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends the thread when it is dropped, soon: nobody waits for a source that does not answer.
pub struct Watched(Arc<AtomicBool>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Notes in `status`, from now on, how far the source is ahead and how fast transactions come.
pub fn watch(opts: &Opts, status: Arc<Status>) -> std::io::Result<Watched> {
    let ended = Arc::<AtomicBool>::default();
    let watched = Watched(ended.clone());
    let opts: Opts = OptsBuilder::from_opts(opts.clone())
        .read_timeout(Some(PATIENCE))
        .write_timeout(Some(PATIENCE))
        .tcp_connect_timeout(Some(PATIENCE))
        .into();
    std::thread::Builder::new().name("replica-lag".into()).spawn(move || run(&opts, &status, &ended))?;
    Ok(watched)
}

fn run(opts: &Opts, status: &Status, ended: &AtomicBool) {
    let mut conn = None;
    let mut next = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        if Instant::now() < next {
            std::thread::sleep(LOOK);
            continue;
        }
        next = Instant::now() + EVERY;
        let ahead = ask(&mut conn, opts, status);
        if let Err(error) = &ahead {
            // The stream says what is wrong with the source.
            tracing::debug!(%error, "the source does not tell how far it is");
            conn = None;
        }
        if !ended.load(Ordering::Relaxed) {
            status.sample(ahead.ok());
        }
    }
}

fn ask(conn: &mut Option<(Connection, String)>, opts: &Opts, status: &Status) -> Result<Ahead> {
    let (conn, identity) = match conn {
        Some(known) => known,
        none => {
            let mut conn = source::connect(opts)?;
            let identity = source::identity(&mut conn)?;
            none.insert((conn, identity))
        }
    };
    // The place first: what is committed between the two is behind neither.
    let end = source::log_end(conn)?;
    let shown = status.snapshot();
    let transactions = match source::has_gtids(conn)? {
        true => Some(shown.executed.missing_of(&source::executed(conn)?)),
        false => None,
    };
    let bytes = match status.visible_place_of(identity) {
        Some(visible) => bytes_between(conn, &visible, &end)?,
        None => None,
    };
    Ok(Ahead { transactions, bytes, end })
}

/// Bytes of the source's log from one place to another; `None` if it has no file of that name any more.
fn bytes_between(conn: &mut Connection, from: &LogPlace, to: &LogPlace) -> Result<Option<u64>> {
    if from.reaches(to) {
        return Ok(Some(0));
    }
    if from.file == to.file {
        return Ok(Some(to.offset - from.offset));
    }
    let rows: Vec<mysql::Row> = conn.query("SHOW BINARY LOGS")?;
    let mut files = rows.into_iter().map(|mut row| {
        (
            row.take::<String, _>("Log_name").unwrap_or_default(),
            row.take::<u64, _>("File_size").unwrap_or_default(),
        )
    });
    let Some((_, size)) = files.find(|(name, _)| *name == from.file) else { return Ok(None) };
    let whole: u64 = files.take_while(|(name, _)| *name != to.file).map(|(_, size)| size).sum();
    Ok(Some(size.saturating_sub(from.offset) + whole + to.offset))
}
