//! Taking up a log where it ends, so that it can be written on.
//!
//! Three things may be left of the run before: remains of a torn group behind the end, which must not come
//! back to life behind new records; a last group that is in the operating system's cache but not on disk (the process
//! was killed before its sync, or the sync failed); a name that is not durable. So the rest of the last segment is
//! zeroed, its last group is written once more, and all of it is synced before the first append.

use avocet_base::env::DiskFile;
use avocet_base::{Env, Lsn};

use crate::error::{Error, Result};
use crate::frame::{Place, Sealer};
use crate::options::LogOptions;
use crate::pool::{Spare, Spares};
use crate::reader::LogReader;
use crate::segment::{HEADER_BLOCK, OpenSegment, SegmentHeader, list, offset_of};

const STEP: usize = 1 << 20;

/// What a writer needs to go on.
pub(crate) struct Resumed {
    /// The last segment, open for writing, and where the next frame goes.
    pub segment: OpenSegment,
    pub place: Place,
    pub sealer: Sealer,
    /// Whether the last frame says that the log was closed.
    pub closed: bool,
    /// Starts of all segments.
    pub segments: Vec<Lsn>,
    pub spares: Spares,
}

pub(crate) fn resume(env: &Env, options: &LogOptions, at: Lsn) -> Result<Resumed> {
    let dir = &options.dir;
    env.disk.create_dir_all(dir).map_err(Error::io("create", dir))?;
    let mut spares = Spares::adopt(env, dir, options.segment_size - HEADER_BLOCK)?;
    let segments = list(env, dir)?;
    let Some(&last) = segments.last() else {
        let (segment, sealer) = begin(env, options, at, &mut spares)?;
        let place = segment.first_place();
        return Ok(Resumed { segment, place, sealer, closed: false, segments: vec![at], spares });
    };
    let mut reader = LogReader::open(env.clone(), dir, last)?;
    while reader.next_record()?.is_some() {}
    if reader.end_lsn() != at {
        return Err(Error::NotAtEnd { dir: dir.clone(), end: reader.end_lsn(), at });
    }
    let segment = OpenSegment::open(env, dir, last, true)?;
    let sealer = Sealer { log_id: segment.header.log_id, chain: reader.chain() };
    let place = reader.place();
    rewrite(&segment, reader.last_group(), place)?;
    zero_from(&segment, place)?;
    segment.file.sync_data().map_err(Error::io("sync", &segment.path))?;
    env.disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
    Ok(Resumed { segment, place, sealer, closed: reader.ends_closed(), segments, spares })
}

/// Makes the first segment of a new log.
fn begin(env: &Env, options: &LogOptions, at: Lsn, spares: &mut Spares) -> Result<(OpenSegment, Sealer)> {
    let room = options.segment_size - HEADER_BLOCK;
    let spare = match spares.take(room) {
        Some(spare) => spare,
        None => Spare::create(env, &options.dir, spares.take_no(), room, options.prefill)?,
    };
    let sealer = Sealer { log_id: new_log_id(env), chain: 0 };
    let chain = sealer.chain;
    let header = SegmentHeader { log_id: sealer.log_id, start: at, room, chain, previous: Some(at) };
    Ok((spare.install(env, &options.dir, header)?, sealer))
}

/// A number that another log is unlikely to have.
fn new_log_id(env: &Env) -> u64 {
    let mut x = (env.clock.wall_us() as u64) ^ (env.clock.monotonic().as_nanos() as u64).rotate_left(40);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53u64] {
        x = (x ^ x >> 33).wrapping_mul(factor);
    }
    x ^ x >> 33
}

/// Writes the bytes from `from` to `to` once more, so that the next sync covers them even if an earlier one
/// failed and the cache holds them as clean.
fn rewrite(segment: &OpenSegment, from: Place, to: Place) -> Result<()> {
    let mut bytes = vec![0; (to.0 - from.0) as usize];
    let offset = offset_of(segment.header.start, from);
    segment.file.read_at(&mut bytes, offset).map_err(Error::io("read", &segment.path))?;
    segment.file.write_at(&bytes, offset).map_err(Error::io("write", &segment.path))
}

fn zero_from(segment: &OpenSegment, from: Place) -> Result<()> {
    let end = HEADER_BLOCK + segment.header.room;
    let file: &dyn DiskFile = &*segment.file;
    // A copy of it may have been made without the space for its zeros.
    file.allocate(end).map_err(Error::io("allocate", &segment.path))?;
    let zeros = vec![0; STEP];
    let mut found = vec![0; STEP];
    let mut offset = offset_of(segment.header.start, from);
    while offset < end {
        let step = (end - offset).min(STEP as u64) as usize;
        file.read_at(&mut found[..step], offset).map_err(Error::io("read", &segment.path))?;
        if found[..step] != zeros[..step] {
            file.write_at(&zeros[..step], offset).map_err(Error::io("write", &segment.path))?;
        }
        offset += step as u64;
    }
    Ok(())
}
