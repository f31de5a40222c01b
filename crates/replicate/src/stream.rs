//! The source's binary log as it grows, from the GTIDs that are in force on: COM_BINLOG_DUMP_GTID, or COM_BINLOG_DUMP of a session that
//! has told a MariaDB where it stands; or from a place in it, of a source without GTIDs.
//!
//! Compressed transactions and events come apart here, and checksums are verified. A stream that is silent for longer than heartbeats
//! are apart has broken. A semi-synchronous one (`semisync`) notes which transactions the source waits for.

use std::sync::Arc;
use std::time::Duration;

use mysql::binlog::events::Event;
use mysql::prelude::Queryable;
use mysql::{BinlogRequest, BinlogStream, Conn, Opts, OptsBuilder};
use mysql_common::packets::{GnoInterval, Sid, Tag};
use mysql_common::proto::MySerialize;

use crate::binlog::{self, kind};
use crate::error::{ReplicateError, Result};
use crate::gtid::GtidSet;
use crate::inbox::{Closed, FromStream, Inbox};
use crate::semisync::{self, Acks, Link, NoLink};
use crate::source::Flavor;
use crate::state::LogPlace;
use crate::status::{SemiSync, Status};

/// A heartbeat comes when nothing else has for so long.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Silence of this length means that the connection is gone.
const SILENCE: Duration = Duration::from_secs(10);

/// Where a stream begins.
pub enum From {
    /// Behind these transactions.
    Gtids(GtidSet),
    /// At a place in the log, of a source that gives no identifiers.
    Place(LogPlace),
}

/// What is asked of whom.
pub struct Request {
    pub opts: Opts,
    pub flavor: Flavor,
    pub server_id: u32,
    pub from: From,
    /// Of a stream that is to be semi-synchronous.
    pub acks: Option<Arc<Acks>>,
}

/// Starts a thread that hands the stream's events on until it ends.
pub fn start(request: Request, status: Arc<Status>, inbox: Arc<Inbox>) {
    let stream = inbox.begin_stream();
    let spawned = std::thread::Builder::new().name("replica-stream".into()).spawn({
        let inbox = inbox.clone();
        move || {
            let followed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                follow(&request, stream, &status, &inbox)
            }));
            let error = match followed {
                Ok(Err(error)) => error,
                Ok(Ok(Closed)) => return,
                Err(_) => ReplicateError::damaged("an event cannot be read"),
            };
            // Nobody listens if the inbox is closed.
            let _ = inbox.push_event(stream, FromStream::Ended(error));
        }
    });
    if let Err(error) = spawned {
        let _ = inbox.push_event(stream, FromStream::Ended(ReplicateError::Refused(error.to_string())));
    }
}

fn sids(set: &GtidSet) -> Result<Vec<Sid<'static>>> {
    set.iter()
        .map(|(origin, intervals)| {
            let bounds = intervals.iter().map(|&(first, last)| GnoInterval::new(first, last + 1));
            let sid = Sid::new(origin.uuid).with_intervals(bounds.collect());
            if origin.tag.is_empty() {
                return Ok(sid);
            }
            let tag =
                Tag::new(origin.tag.clone()).map_err(|error| ReplicateError::Refused(error.to_string()))?;
            Ok(sid.with_tag(tag))
        })
        .collect()
}

/// What the stream's session is told before it begins.
fn preparations(request: &Request) -> Vec<String> {
    let period = HEARTBEAT.as_nanos();
    let mut statements = vec![
        format!("SET @master_heartbeat_period = {period}, @source_heartbeat_period = {period}"),
        "SET @master_binlog_checksum = 'ALL', @source_binlog_checksum = 'ALL'".into(),
    ];
    if let (Flavor::MariaDb, From::Gtids(set)) = (request.flavor, &request.from) {
        // It knows identifiers, and finds it an error if the source has not what comes next.
        statements.push("SET @mariadb_slave_capability = 4, @slave_gtid_strict_mode = 1".into());
        statements.push(format!("SET @slave_connect_state = '{set}'"));
    }
    statements
}

/// Where the stream is to begin; and the place up to which it is passed over, if the request has no room for that.
fn dump_request(request: &Request) -> Result<(BinlogRequest<'_>, Option<&LogPlace>)> {
    let dump = BinlogRequest::new(request.server_id);
    Ok(match (request.flavor, &request.from) {
        (Flavor::MySql, From::Gtids(set)) => (dump.with_use_gtid(true).with_sids(sids(set)?), None),
        (Flavor::MariaDb, From::Gtids(_)) => (dump, None),
        (_, From::Place(place)) => {
            let dump = dump.with_filename(place.file.as_bytes());
            match u32::try_from(place.offset) {
                Ok(offset) => (dump.with_pos(offset), None),
                Err(_) => (dump.with_pos(4u32), Some(place)),
            }
        }
    })
}

/// A stream, by the driver's connection or, if it is semi-synchronous, by one of our own.
enum Events {
    Driver(Box<BinlogStream>),
    Link(Box<Link>),
}

impl Events {
    /// The next event, and whether the source waits until that is durable here.
    fn next(&mut self) -> Result<(Event, bool)> {
        let next = match self {
            Self::Driver(stream) => stream.next().transpose().map_err(refusal)?.map(|event| (event, false)),
            Self::Link(link) => link.next().map_err(failure)?,
        };
        let ended = || mysql::Error::IoError(std::io::ErrorKind::UnexpectedEof.into());
        next.ok_or_else(|| ReplicateError::Source(ended()))
    }
}

fn failure(error: NoLink) -> ReplicateError {
    match error {
        NoLink::Failed(ReplicateError::Source(error)) => refusal(error),
        NoLink::Failed(error) => error,
        NoLink::Unsupported(why) => ReplicateError::Refused(why),
    }
}

fn begin(request: &Request, dump: &BinlogRequest<'_>, status: &Status) -> Result<Events> {
    if let Some(acks) = &request.acks {
        match begin_link(request, dump, acks) {
            Ok(link) => {
                tracing::info!("the source's commits wait until they are durable here");
                status.set_semi_sync(SemiSync::On);
                return Ok(Events::Link(Box::new(link)));
            }
            Err(NoLink::Unsupported(why)) => {
                tracing::warn!(why, "followed without semi-synchronous acknowledgements");
                status.set_semi_sync(SemiSync::Not(why));
            }
            Err(error) => return Err(failure(error)),
        }
    }
    let opts = OptsBuilder::from_opts(request.opts.clone()).read_timeout(Some(SILENCE));
    let mut conn = Conn::new(opts)?;
    for statement in preparations(request) {
        conn.query_drop(statement)?;
    }
    Ok(Events::Driver(Box::new(conn.get_binlog_stream(dump.clone())?)))
}

fn begin_link(request: &Request, dump: &BinlogRequest<'_>, acks: &Acks) -> Result<Link, NoLink> {
    let mut link = Link::connect(&request.opts, SILENCE)?;
    for statement in preparations(request) {
        link.run(&statement)?;
    }
    link.run(semisync::announcement(request.flavor))?;
    link.dump(dump, acks)?;
    Ok(link)
}

fn follow(request: &Request, stream: u64, status: &Status, inbox: &Inbox) -> Result<Closed> {
    let (dump, mut passed_over) = dump_request(request)?;
    let mut events = begin(request, &dump, status)?;
    let mut place = LogPlace::default();
    let note = |place: &LogPlace, is_awaited: bool| {
        if let Some(acks) = request.acks.as_ref().filter(|_| is_awaited) {
            acks.asked(place.clone());
        }
    };
    loop {
        let (event, is_awaited) = events.next()?;
        verify(&event)?;
        if let Some(until) = passed_over
            && !matches!(event.header().event_type_raw(), kind::ROTATE | kind::FORMAT_DESCRIPTION)
        {
            move_to(&mut place, event.header().log_pos());
            if until.reaches(&place) {
                note(&place, is_awaited);
                continue;
            }
            passed_over = None;
        }
        match hand_on(&event, &mut place, stream, inbox)? {
            Ok(()) => {}
            Err(Closed) => return Ok(Closed),
        }
        note(&place, is_awaited);
    }
}

/// What the source says when it cannot send what comes next.
fn refusal(error: mysql::Error) -> ReplicateError {
    match &error {
        mysql::Error::MySqlError(refused) if refused.code == 1236 => {
            let text = refused.message.clone();
            // The last two of a place in a log file: the file is gone, or another one has its name.
            let is_gone = text.contains("purged")
                || text.contains("Could not find first log file")
                || text.contains("from position > file size");
            match is_gone {
                true => ReplicateError::Purged(text),
                // As MySQL says it, and MariaDB.
                false
                    if text.contains("more GTIDs")
                        || text.contains("which is not in the master's binlog")
                        || text.contains("is missing the GTID") =>
                {
                    ReplicateError::Refused(format!(
                        "the source lacks transactions that are in force here ({text}): it was restored from a backup, or is another \
                     server; attach a new data directory to it"
                    ))
                }
                false => error.into(),
            }
        }
        _ => error.into(),
    }
}

fn verify(event: &Event) -> Result<()> {
    let Some(checksum) = event.checksum() else { return Ok(()) };
    let Ok(Some(algorithm)) = event.footer().get_checksum_alg() else { return Ok(()) };
    let is_described = event.header().event_type_raw() == kind::FORMAT_DESCRIPTION;
    if is_described || event.calc_checksum(algorithm) == u32::from_le_bytes(checksum) {
        return Ok(());
    }
    Err(ReplicateError::damaged("the checksum of an event is wrong"))
}

/// The body of an event that may have come before the log's description, which says whether there are checksums: a MariaDB's has one.
fn without_checksum(event: &Event) -> &[u8] {
    let data = event.data();
    let Some((body, checksum)) = data.split_last_chunk::<4>().filter(|_| event.checksum().is_none()) else {
        return data;
    };
    let mut header = Vec::new();
    event.header().serialize(&mut header);
    let mut crc = flate2::Crc::new();
    crc.update(&header);
    crc.update(body);
    if crc.sum() == u32::from_le_bytes(*checksum) { body } else { data }
}

fn hand_on(event: &Event, place: &mut LogPlace, stream: u64, inbox: &Inbox) -> Result<Result<(), Closed>> {
    let header = event.header();
    let event_kind = header.event_type_raw();
    let push = |event| inbox.push_event(stream, event);
    let moves = |place: &mut LogPlace| move_to(place, header.log_pos());
    match event_kind {
        kind::ROTATE => {
            let Some((offset, file)) = without_checksum(event).split_first_chunk() else {
                return Err(ReplicateError::damaged("a ROTATE event is cut"));
            };
            *place = LogPlace {
                file: String::from_utf8_lossy(file).into_owned(),
                offset: u64::from_le_bytes(*offset),
            };
            Ok(push(FromStream::Reached(place.clone())))
        }
        kind::HEARTBEAT | kind::HEARTBEAT_V2 => {
            moves(place);
            Ok(push(FromStream::Reached(place.clone())))
        }
        kind::GTID | kind::GTID_TAGGED => {
            let begins = binlog::begins(event)?;
            moves(place);
            Ok(push(FromStream::Transaction { begins, place: place.clone() }))
        }
        kind::ANONYMOUS_GTID => {
            let begins = binlog::begins_anonymous(event)?;
            moves(place);
            Ok(push(FromStream::Transaction { begins, place: place.clone() }))
        }
        kind::DOMAIN_GTID => {
            let begins = binlog::begins_in_domain(event.data(), header.server_id(), header.timestamp())?;
            moves(place);
            Ok(push(FromStream::Transaction { begins, place: place.clone() }))
        }
        kind::TRANSACTION_PAYLOAD => {
            let mut closed = Ok(());
            binlog::each_event(event.data(), &mut |kind, began, body| {
                if closed.is_ok() {
                    closed = push(FromStream::Event { kind, began, body });
                }
                Ok(())
            })?;
            moves(place);
            Ok(closed.and_then(|()| push(FromStream::Reached(place.clone()))))
        }
        _ => {
            let (event_kind, body) = binlog::decompressed(event_kind, event.data())?;
            let body = body.into_owned();
            let pushed = push(FromStream::Event { kind: event_kind, began: header.timestamp(), body });
            moves(place);
            // A new log file begins with what has been executed before it, and perhaps nothing comes behind that for long.
            let ends = matches!(
                event_kind,
                kind::XID
                    | kind::QUERY
                    | kind::XA_PREPARE
                    | kind::PREVIOUS_GTIDS
                    | kind::FORMAT_DESCRIPTION
                    | kind::GTID_LIST
                    | kind::BINLOG_CHECKPOINT
            );
            match ends && pushed.is_ok() {
                true => Ok(push(FromStream::Reached(place.clone()))),
                false => Ok(pushed),
            }
        }
    }
}

/// Moves on to the place that an event's header gives, of which it has the lower half; events that the source makes for the stream alone
/// have none.
fn move_to(place: &mut LogPlace, lower: u32) {
    if lower == 0 {
        return;
    }
    let (upper, was) = (place.offset >> 32, place.offset as u32);
    // Places go up. One that is lower by so much is beyond the end of what the header can say.
    let is_beyond = was.checked_sub(lower).is_some_and(|back| back > 1 << 31);
    place.offset = (upper + u64::from(is_beyond)) << 32 | u64::from(lower);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_on_beyond_what_a_header_can_say() {
        let mut place = LogPlace { file: "log.000001".into(), offset: 4 };
        for (lower, wanted) in [
            (1 << 20, 1 << 20),
            (0, 1 << 20),
            (u32::MAX - 5, u64::from(u32::MAX) - 5),
            (10, (1 << 32) + 10),
            (500, (1 << 32) + 500),
        ] {
            move_to(&mut place, lower);
            assert_eq!(place.offset, wanted);
        }
    }
}
