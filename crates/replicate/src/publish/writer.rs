//! The thread that turns changes into events.
//!
//! A transaction goes to the file as it comes, however large it is: its GTID event, which says how long it is, is written over
//! once that is known. Readers are told of it when it is whole.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_base::Timestamp;
use avocet_base::env::DiskFile;
use avocet_engine::{CaptureError, ChangeSink, ChangeStream, Statement, TableHandle};
use avocet_types::{RowRef, TableDef};

use super::BinlogOptions;
use super::events::{GTID_LEN, GtidEvent};
use super::files::{Files, Mark, NO_FILE, RESET, Resumed, next_name};
use super::room::{Room, is_full};
use super::rows::{RowCoding, put_packed};
use crate::binlog::kind;

/// A row event that has as many bytes takes no more rows, as `binlog_row_event_max_size` has it.
const EVENT_BYTES: usize = 8 << 10;
/// So many bytes are written at a time.
const WRITE_BYTES: usize = 256 << 10;
/// So long the files may be ahead of what is known to be on disk.
const SYNC_EVERY: Duration = Duration::from_millis(200);
/// So long FLUSH BINARY LOGS may wait for a writer that has nothing to write.
const IDLE: Duration = Duration::from_millis(200);
/// Tables whose columns are kept as they are written.
const MOST_CODINGS: usize = 1024;

const STATEMENT_ENDS: u16 = 1;
/// Cascades are rows of the log already.
const NO_FOREIGN_KEY_CHECKS: u16 = 2;

pub(super) struct Writer {
    files: Arc<Files>,
    room: Room,
    file: Arc<dyn DiskFile>,
    /// Bytes of the file that were written; `out` follows.
    written: u64,
    out: Vec<u8>,
    /// What is behind the transactions that are whole.
    mark: Mark,
    /// Of the next transaction, in its file.
    sequence: u64,
    /// Where the running one began.
    start: u64,
    wall_us: i64,
    is_statement: bool,
    /// No commit is told in part.
    is_whole: bool,
    rows: Pending,
    codings: HashMap<u32, (Arc<TableDef>, Arc<RowCoding>)>,
    synced_at: Instant,
    is_synced: bool,
}

/// The rows of the event that is being filled.
#[derive(Default)]
struct Pending {
    table: Option<u32>,
    kind: u8,
    body: Vec<u8>,
}

impl Writer {
    pub fn open(options: BinlogOptions, env: avocet_base::Env) -> io::Result<Self> {
        let Resumed { files, open, is_rotated, mut mark, mut sequence } = Files::open(env, options)?;
        let is_new = open.is_none();
        let (file, written) = match open.filter(|_| !is_rotated) {
            Some(open) => open,
            None => {
                let now = seconds(files.env.clock.wall_us());
                // Whoever finds a file has to know what is before it; of a log that begins anew, the mark has said it.
                match is_new {
                    true if mark.file == RESET => {}
                    true => files.put_mark(&Mark { file: NO_FILE.into(), ..mark.clone() })?,
                    false => files.put_mark(&mark)?,
                }
                let (file, written) = files.begin_file(mark.number, now, mark.position)?;
                mark.file.clone_from(&files.state().current);
                (mark.position, sequence) = (written, 0);
                (file, written)
            }
        };
        files.put_mark(&mark)?;
        Ok(Self {
            files,
            room: Room::default(),
            file,
            written,
            out: Vec::new(),
            mark,
            sequence: sequence + 1,
            start: 0,
            wall_us: 0,
            is_statement: false,
            is_whole: true,
            rows: Pending::default(),
            codings: HashMap::new(),
            synced_at: Instant::now(),
            is_synced: true,
        })
    }

    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// The last transaction that is in the files.
    pub fn last_commit(&self) -> Timestamp {
        Timestamp(self.mark.ts)
    }

    /// Writes until the engine's log is closed.
    pub fn run(mut self, mut stream: ChangeStream) -> Result<(), CaptureError> {
        self.room = Room(Some(stream.stall()));
        let outcome = self.follow(&mut stream);
        self.files.end();
        outcome
    }

    fn follow(&mut self, stream: &mut ChangeStream) -> Result<(), CaptureError> {
        let mut has_told = false;
        loop {
            while stream.next(self)? {
                if self.out.len() >= WRITE_BYTES {
                    self.publish()?;
                    stream.show();
                }
                if self.synced_at.elapsed() >= SYNC_EVERY {
                    self.sync(stream)?;
                }
            }
            self.publish()?;
            stream.show();
            // Nothing is told at the moment that would begin with it.
            if self.is_whole && self.files.state().wants_next {
                self.rotate()?;
            }
            if self.is_whole
                && let Some(first) = self.files.begin_reset()
            {
                self.reset(first)?;
            }
            if !has_told && stream.passed_over() > 0 {
                has_told = true;
                let passed_over = stream.passed_over();
                tracing::warn!(
                    "{passed_over} transactions were committed without a binary log: it does not have them"
                );
            }
            let unsynced = self.synced_at.elapsed();
            if unsynced >= SYNC_EVERY {
                self.sync(stream)?;
            }
            let at_most = if self.is_synced { IDLE } else { SYNC_EVERY.saturating_sub(unsynced) };
            if stream.wait(at_most).is_err() {
                // The log is closed, and all of it was told.
                while stream.next(self)? {}
                self.publish()?;
                self.sync(stream)?;
                return Ok(());
            }
        }
    }

    /// All that was told is on disk when this returns, and the redo log need not have it any more.
    fn sync(&mut self, stream: &ChangeStream) -> io::Result<()> {
        self.publish()?;
        stream.show();
        if !self.is_synced {
            self.file.sync_data()?;
            self.put_mark(&self.mark)?;
            self.is_synced = true;
        }
        self.synced_at = Instant::now();
        stream.acknowledge();
        Ok(())
    }

    fn put_mark(&self, mark: &Mark) -> io::Result<()> {
        self.room.wait_for(|| self.files.put_mark(mark))
    }

    fn position(&self) -> u64 {
        self.written + self.out.len() as u64
    }

    fn write_out(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            let Self { room, file, out, written, .. } = &*self;
            let give_back = |error: &io::Error| {
                // What was written in part takes the room that purging needs.
                if is_full(error) {
                    let _ = file.set_size(*written);
                }
            };
            room.wait_for(|| file.write_at(out, *written).inspect_err(give_back))?;
            self.written += self.out.len() as u64;
            self.out.clear();
            self.is_synced = false;
        }
        Ok(())
    }

    /// Between transactions: readers may have those that are whole.
    fn publish(&mut self) -> io::Result<()> {
        if !self.out.is_empty() || self.files.state().end != self.mark.position {
            self.write_out()?;
            self.files.publish(self.mark.position, self.mark.number);
        }
        Ok(())
    }

    /// Ends the file, and begins the next. Readers have ROTATE when there is the file that it names.
    fn rotate(&mut self) -> io::Result<()> {
        let now = seconds(self.files.env.clock.wall_us());
        self.publish()?;
        let (at, next) = (self.position(), next_name(&self.mark.file));
        self.files.author.rotate(&mut self.out, now, at, &next, false);
        self.write_out()?;
        self.file.sync_data()?;
        // From here on the old file's transactions need not be looked for.
        self.mark.position = self.written;
        self.put_mark(&self.mark)?;
        let begin = || self.files.begin_file(self.mark.number, now, self.mark.position);
        let (file, written) = self.room.wait_for(begin)?;
        (self.file, self.written, self.sequence) = (file, written, 1);
        self.mark.file.clone_from(&self.files.state().current);
        self.mark.position = written;
        self.put_mark(&self.mark)?;
        self.is_synced = true;
        self.files.expire(now);
        Ok(())
    }

    /// All that was told by now is forgotten: the next transaction is the first, in a file of this number.
    fn reset(&mut self, first: u64) -> io::Result<()> {
        let now = seconds(self.files.env.clock.wall_us());
        self.publish()?;
        let mark = Mark { file: RESET.into(), position: first, ts: self.mark.ts, number: 0 };
        self.put_mark(&mark)?;
        let (file, written) = self.room.wait_for(|| self.files.begin_anew(first, now))?;
        (self.file, self.written, self.sequence) = (file, written, 1);
        self.mark = Mark { file: self.files.state().current.clone(), position: written, ..mark };
        self.put_mark(&self.mark)?;
        self.is_synced = true;
        self.files.end_reset();
        Ok(())
    }

    fn gtid(&self, transaction_bytes: u64) -> Vec<u8> {
        let mut event = Vec::with_capacity(GTID_LEN);
        let gtid = GtidEvent {
            is_statement: self.is_statement,
            uuid: self.files.origin.uuid,
            number: self.mark.number + 1,
            sequence: self.sequence,
            committed_us: self.wall_us.max(0) as u64,
            transaction_bytes,
        };
        self.files.author.gtid(&mut event, self.start, &gtid);
        event
    }

    fn begin_transaction(&mut self, wall_us: i64, is_statement: bool) -> io::Result<()> {
        let is_full = self.position() >= self.files.options.max_file_bytes;
        if self.is_whole && (is_full || self.files.state().wants_next) {
            self.rotate()?;
        }
        (self.start, self.wall_us, self.is_statement) = (self.position(), wall_us, is_statement);
        let gtid = self.gtid(0);
        self.out.extend_from_slice(&gtid);
        Ok(())
    }

    /// The transaction is whole; `ts` if its commit is.
    fn end_transaction(&mut self, ts: Option<Timestamp>) -> io::Result<()> {
        let gtid = self.gtid(self.position() - self.start);
        match self.start.checked_sub(self.written) {
            Some(at) => self.out[at as usize..at as usize + GTID_LEN].copy_from_slice(&gtid),
            None => {
                self.write_out()?;
                self.room.wait_for(|| self.file.write_at(&gtid, self.start))?;
            }
        }
        self.sequence += 1;
        self.mark.number += 1;
        self.mark.position = self.position();
        self.is_whole = ts.is_some();
        if let Some(ts) = ts {
            self.mark.ts = ts.0;
        }
        Ok(())
    }

    fn coding(&mut self, table: &TableHandle) -> Arc<RowCoding> {
        let id = table.id().0;
        if let Some((def, coding)) = self.codings.get(&id)
            && Arc::ptr_eq(def, &table.def)
        {
            return coding.clone();
        }
        if self.codings.len() >= MOST_CODINGS {
            self.codings.clear();
        }
        let coding = Arc::new(RowCoding::new(id.into(), &table.def));
        self.codings.insert(id, (table.def.clone(), coding.clone()));
        coding
    }

    /// Makes a place for a row in an event of a kind.
    fn row(&mut self, table: &TableHandle, kind: u8) -> io::Result<Arc<RowCoding>> {
        let coding = self.coding(table);
        let id = table.id().0;
        if self.rows.table != Some(id) {
            self.put_rows(STATEMENT_ENDS)?;
            let at = self.position();
            self.files.author.put(&mut self.out, kind::TABLE_MAP, seconds(self.wall_us), 0, at, &coding.map);
            self.rows.table = Some(id);
        } else if self.rows.kind != kind || self.rows.body.len() >= EVENT_BYTES {
            self.put_rows(0)?;
        }
        let body = &mut self.rows.body;
        if body.is_empty() {
            self.rows.kind = kind;
            body.extend_from_slice(&u64::from(id).to_le_bytes()[..6]);
            body.extend_from_slice(&[0, 0, 2, 0]);
            put_packed(body, coding.len() as u64);
            let images = if kind == kind::UPDATE_ROWS { 2 } else { 1 };
            body.resize(body.len() + images * coding.len().div_ceil(8), 0xff);
        }
        Ok(coding)
    }

    /// Ends the event that is being filled.
    fn put_rows(&mut self, flags: u16) -> io::Result<()> {
        if self.rows.body.is_empty() {
            return Ok(());
        }
        self.rows.body[6..8].copy_from_slice(&(flags | NO_FOREIGN_KEY_CHECKS).to_le_bytes());
        let at = self.position();
        let Self { files, rows, out, wall_us, .. } = self;
        files.author.put(out, rows.kind, seconds(*wall_us), 0, at, &rows.body);
        rows.body.clear();
        if self.out.len() >= WRITE_BYTES {
            self.write_out()?;
        }
        Ok(())
    }
}

fn seconds(micros: i64) -> u32 {
    micros.div_euclid(1_000_000) as u32
}

impl ChangeSink for Writer {
    fn wants(&self, ts: Timestamp) -> bool {
        ts.0 > self.mark.ts
    }

    fn begin(&mut self, wall_us: i64) -> io::Result<()> {
        self.begin_transaction(wall_us, false)?;
        let at = self.position();
        self.files.author.begin(&mut self.out, seconds(wall_us), at);
        self.rows.table = None;
        Ok(())
    }

    fn insert(&mut self, table: &TableHandle, row: RowRef<'_>) -> io::Result<()> {
        let coding = self.row(table, kind::WRITE_ROWS)?;
        coding.put(&row, &mut self.rows.body);
        Ok(())
    }

    fn update(&mut self, table: &TableHandle, before: RowRef<'_>, after: RowRef<'_>) -> io::Result<()> {
        let coding = self.row(table, kind::UPDATE_ROWS)?;
        coding.put(&before, &mut self.rows.body);
        coding.put(&after, &mut self.rows.body);
        Ok(())
    }

    fn delete(&mut self, table: &TableHandle, row: RowRef<'_>) -> io::Result<()> {
        let coding = self.row(table, kind::DELETE_ROWS)?;
        coding.put(&row, &mut self.rows.body);
        Ok(())
    }

    fn commit(&mut self, ts: Timestamp) -> io::Result<()> {
        self.put_rows(STATEMENT_ENDS)?;
        let at = self.position();
        self.files.author.xid(&mut self.out, seconds(self.wall_us), at, ts.0);
        self.end_transaction(Some(ts))
    }

    fn statement(&mut self, ts: Timestamp, statement: &Statement, is_all: bool) -> io::Result<()> {
        for (at, text) in statement.texts.iter().enumerate() {
            let is_last = is_all && at + 1 == statement.texts.len();
            let ts = is_last.then_some(ts);
            self.begin_transaction(statement.wall_us, true)?;
            let start = self.position();
            self.files.author.statement(&mut self.out, start, statement, text, ts.map(|ts| ts.0));
            self.end_transaction(ts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
