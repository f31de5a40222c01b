//! Bit flips, cuts and missing files at every place of a small log, compressed or not: either exactly a prefix that may end
//! in the last group, or an error; never wrong data, never a panic.

mod common;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use avocet_base::Lsn;
use avocet_base::checksum::crc32c;
use avocet_base::env::{Disk, SimDisk};
use avocet_log::{Durability, Error, ErrorKind, LogOptions, LogReader, LogWriter, Record, verify};
use common::bytes::noise;
use common::{DIR, OwnedRecord, open_writer, options, packing, read_all, read_into};
use proptest::prelude::*;

/// A log of three segments, and what is known of it.
struct Sample {
    disk: SimDisk,
    records: Vec<OwnedRecord>,
    /// Records in groups before the last one.
    before_last_group: usize,
    files: Vec<PathBuf>,
}

/// How a sample is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    Frames,
    /// Compressed to about two thirds.
    Packed,
}

fn sample(closed: bool) -> Sample {
    sample_as(As::Frames, closed)
}

fn sample_as(how: As, closed: bool) -> Sample {
    let disk = SimDisk::new();
    let ends: Arc<Mutex<Vec<Lsn>>> = Arc::default();
    let tell = ends.clone();
    let (options, count) = match how {
        As::Frames => (options(), 14u64),
        As::Packed => (packing(), 20),
    };
    let options = LogOptions { segment_size: 8 << 10, ..options };
    let options = options.on_durable(move |lsn, _| tell.lock().unwrap().push(lsn));
    let writer = open_writer(&disk, options, Lsn(0));
    let mut records = Vec::new();
    let mut record_ends = Vec::new();
    for tag in 0..count {
        let mut payload = vec![tag as u8 + 1; 600 + tag as usize];
        if how == As::Packed {
            payload[..400].copy_from_slice(&noise(400, tag));
        }
        // What a group holds, and so what it takes, is not to depend on how fast it is written.
        let record = Record::new(2, &payload);
        record_ends.push(writer.append_for(&record, tag, Durability::Group(A_DAY)).unwrap());
        records.push(OwnedRecord { kind: 2, tag, payload });
        if tag % 3 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.flush().unwrap();
    assert_eq!(writer.stats().written_bytes < writer.stats().bytes, how == As::Packed);
    if closed {
        writer.close().unwrap();
    }
    let disk = if closed { disk } else { disk.crash(0) };
    let last_group_start = ends.lock().unwrap().iter().rev().nth(1).copied().unwrap();
    let names = disk.list(Path::new(DIR)).unwrap();
    let files: Vec<PathBuf> =
        names.iter().filter(|n| n.ends_with(".log")).map(|n| Path::new(DIR).join(n)).collect();
    assert_eq!(files.len(), 3);
    let before_last_group = record_ends.iter().filter(|&&end| end <= last_group_start).count();
    Sample { disk, records, before_last_group, files }
}

const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// What may be lost without anyone being able to tell.
#[derive(Clone, Copy)]
enum Loss {
    Nothing,
    LastGroup,
    /// Whatever lies behind the damage: all of the log's end was overwritten.
    End,
}

impl Sample {
    /// Reads the log after damage, which may cost no more than `at_most` without an error.
    fn check(&self, at_most: Loss, what: &str) {
        let damaged = &self.disk;
        let mut found = Vec::new();
        let result = read_into(damaged, Lsn(0), &mut found);
        assert!(self.records.starts_with(&found), "{what}: wrong records");
        match result {
            Ok(_) => {
                let least = match at_most {
                    Loss::Nothing => self.records.len(),
                    Loss::LastGroup => self.before_last_group,
                    Loss::End => 0,
                };
                assert!(found.len() >= least, "{what}: records lost unnoticed");
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::Corrupt, "{what}: {e}"),
        }
        verify(&damaged.env(), Path::new(DIR)).unwrap();
    }

    fn used_bytes(&self, path: &Path) -> usize {
        let bytes = self.disk.contents(path).unwrap();
        bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1)
    }
}

#[test]
fn flipped_bits_anywhere() {
    for (how, closed) in [As::Frames, As::Packed].into_iter().flat_map(|how| [(how, false), (how, true)]) {
        let sample = sample_as(how, closed);
        for (n, path) in sample.files.iter().enumerate() {
            let bytes = sample.disk.contents(path).unwrap();
            for at in (0..56).chain(4096..bytes.len()) {
                let flip = |bytes: &mut Vec<u8>| bytes[at] ^= 1 << (at % 8);
                sample.disk.tamper(path, flip).unwrap();
                // The frame of the clean close carries nothing, so losing that is no loss.
                let earlier = n + 1 < sample.files.len();
                let at_most = if closed || earlier { Loss::Nothing } else { Loss::LastGroup };
                sample.check(at_most, &format!("{} byte {at}", path.display()));
                sample.disk.tamper(path, flip).unwrap();
            }
        }
    }
}

#[test]
fn files_cut_anywhere() {
    [As::Frames, As::Packed].into_iter().for_each(cut_files_anywhere);
}

fn cut_files_anywhere(how: As) {
    let sample = sample_as(how, false);
    let last = sample.files.len() - 1;
    for (n, path) in sample.files.iter().enumerate() {
        let whole = sample.disk.contents(path).unwrap();
        let used = sample.used_bytes(path);
        for len in (0..used + 10).chain([whole.len() - 1]).filter(|len| *len < 60 || *len > 4090) {
            sample.disk.tamper(path, |bytes| bytes.truncate(len)).unwrap();
            let mut found = Vec::new();
            let result = read_into(&sample.disk, Lsn(0), &mut found);
            assert!(sample.records.starts_with(&found));
            // Of a file before the newest one, what lies behind its last frame is not missed.
            assert!(result.is_err() || (n < last && len >= used), "{} cut to {len}", path.display());
            let report = verify(&sample.disk.env(), Path::new(DIR)).unwrap();
            assert!(
                !report.findings.is_empty() || (n < last && len >= used),
                "{} cut to {len}",
                path.display()
            );
        }
        sample.disk.tamper(path, |bytes| *bytes = whole).unwrap();
    }
}

/// Whoever knows that nothing is missing gives the file its length back, as the error says.
#[test]
fn a_log_cut_short_is_written_on_once_it_has_its_length() {
    let sample = sample(false);
    let mut length = 0;
    sample
        .disk
        .tamper(&sample.files[2], |bytes| {
            length = bytes.len();
            bytes.truncate(4096 + 700);
        })
        .unwrap();
    let error = read_into(&sample.disk, Lsn(0), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains(&format!("truncate -s {length}")), "{error}");
    sample.disk.tamper(&sample.files[2], |bytes| bytes.resize(length, 0)).unwrap();
    let mut found = Vec::new();
    let end = read_into(&sample.disk, Lsn(0), &mut found).unwrap();
    let writer = open_writer(&sample.disk, LogOptions { segment_size: 8 << 10, ..options() }, end);
    writer.append(2, 99, &[9; 2000]).unwrap();
    writer.close().unwrap();
    found.push(OwnedRecord { kind: 2, tag: 99, payload: vec![9; 2000] });
    let mut again = Vec::new();
    read_into(&sample.disk, Lsn(0), &mut again).unwrap();
    assert_eq!(again, found);
}

#[test]
fn missing_and_foreign_segments_are_errors() {
    for (how, n) in [(As::Frames, 0), (As::Frames, 1), (As::Packed, 0), (As::Packed, 1)] {
        let sample = sample_as(how, true);
        sample.disk.remove(&sample.files[n]).unwrap();
        let error = read_into(&sample.disk, Lsn(0), &mut Vec::new()).unwrap_err();
        assert!(matches!(error, Error::MissingSegment { .. }), "{error}");
    }
    let (ours, other) = (sample(true), sample(true));
    // The other log was made by the same steps at the same simulated time but for this reading of the clock.
    let foreign = SimDisk::new();
    let env = foreign.env();
    env.clock.wall_us();
    let writer = LogWriter::open(env, LogOptions { segment_size: 8 << 10, ..options() }, Lsn(0)).unwrap();
    for r in &other.records {
        writer.append(r.kind, r.tag, &r.payload).unwrap();
    }
    writer.close().unwrap();
    let bytes = foreign.contents(&ours.files[1]).unwrap();
    ours.disk.tamper(&ours.files[1], |b| *b = bytes).unwrap();
    let error = read_into(&ours.disk, Lsn(0), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("another log"), "{error}");
}

#[test]
fn damage_is_named_by_file_offset_and_lsn_and_verify_goes_on_behind_it() {
    let sample = sample(true);
    for path in &sample.files[..2] {
        sample.disk.tamper(path, |bytes| bytes[4096 + 50] ^= 1).unwrap();
    }
    let error = read_into(&sample.disk, Lsn(0), &mut Vec::new()).unwrap_err();
    let Error::Corrupt { path, offset, lsn, .. } = &error else { panic!("{error}") };
    assert_eq!((path, *offset, *lsn), (&sample.files[0], 4096, Lsn(0)));
    let report = verify(&sample.disk.env(), Path::new(DIR)).unwrap();
    assert_eq!(report.findings.len(), 2, "{report:?}");
    assert_eq!(report.records, sample.records.len() as u64 - 2);
    assert_eq!(report.segments, 3);
}

/// Behind damage of which nobody knows how many LSNs it had, reading finds the way back.
#[test]
fn verify_goes_on_behind_damage_to_compressed_records() {
    let sample = sample_as(As::Packed, true);
    for path in &sample.files[..2] {
        sample.disk.tamper(path, |bytes| bytes[4096 + 50] ^= 1).unwrap();
    }
    let report = verify(&sample.disk.env(), Path::new(DIR)).unwrap();
    assert_eq!(report.findings.len(), 2, "{report:?}");
    assert_eq!(report.segments, 3);
    // A group of up to three records is lost with each.
    let lost = sample.records.len() as u64 - report.records;
    assert!((2..=6).contains(&lost), "{report:?}");
    sample.disk.tamper(&sample.files[0], |bytes| bytes[4096 + 50] ^= 1).unwrap();
    sample.disk.tamper(&sample.files[1], |bytes| bytes[4096 + 50] ^= 1).unwrap();
    assert_eq!(verify(&sample.disk.env(), Path::new(DIR)).unwrap().end, report.end);
}

/// A frame that is whole, but of a kind to come: it is not taken for the log's end.
#[test]
fn what_a_later_version_wrote_is_refused() {
    for (kind, flags) in [(1, 2), (1, 1), (0xf1, 0), (0xf1, 3)] {
        let disk = SimDisk::new();
        let writer = open_writer(&disk, options(), Lsn(0));
        writer.wait_durable(writer.append(1, 1, b"known").unwrap()).unwrap();
        let disk = disk.crash(0);
        let path = Path::new(DIR).join("0000000000000000.log");
        disk.tamper(&path, |bytes| {
            let log_id: [u8; 8] = bytes[16..24].try_into().unwrap();
            let head = &mut bytes[4096..4096 + 32];
            (head[16], head[17]) = (kind, flags);
            let crc = crc32c(&[&log_id[..], &0u64.to_le_bytes(), &head[4..]].concat());
            head[..4].copy_from_slice(&crc.to_le_bytes());
        })
        .unwrap();
        let error = read_all(&disk, Lsn(0)).unwrap_err();
        assert!(error.to_string().contains("flags that this version does not know"), "{error}");
    }
}

/// A log of before there was compression: it is read, and written on; what is compressed goes to new segments.
#[test]
fn a_log_of_version_1_is_written_on() {
    let disk = SimDisk::new();
    let writer = open_writer(&disk, options(), Lsn(0));
    for tag in 0..30 {
        writer.append(1, tag, &[tag as u8; 600]).unwrap();
    }
    writer.close().unwrap();
    let names = disk.list(Path::new(DIR)).unwrap();
    let old: Vec<PathBuf> =
        names.iter().filter(|name| name.ends_with(".log")).map(|name| Path::new(DIR).join(name)).collect();
    assert_eq!(old.len(), 2);
    for path in &old {
        let version_1 = |bytes: &mut Vec<u8>| {
            bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
            let crc = crc32c(&bytes[16..48]);
            bytes[12..16].copy_from_slice(&crc.to_le_bytes());
            bytes[48..56].fill(0);
        };
        disk.tamper(path, version_1).unwrap();
    }
    let (records, end) = read_all(&disk, Lsn(0)).unwrap();
    assert_eq!(records.len(), 30);
    let writer = open_writer(&disk, packing(), end);
    for tag in 30..90 {
        writer.append(1, tag, &[tag as u8; 600]).unwrap();
        if tag % 6 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.close().unwrap();
    assert!(writer.stats().written_bytes < writer.stats().bytes);
    let (records, _) = read_all(&disk, Lsn(0)).unwrap();
    assert!(records.iter().map(|r| r.tag).eq(0..90));
    // Nothing is compressed in a file that says it is of version 1.
    let packed = |path: &PathBuf| {
        let bytes = disk.contents(path).unwrap();
        bytes[4096..].chunks(8).any(|eight| eight[..4] == [0xf1, 1, 0x0c, 0xa7])
    };
    assert!(!packed(&old[0]) && !packed(&old[1]));
    // A segment is missing between one of each version: the newer one knows which is before it.
    disk.remove(&old[1]).unwrap();
    assert!(matches!(read_all(&disk, Lsn(0)), Err(Error::MissingSegment { .. })));
}

#[test]
fn what_is_known_durable_is_missed_even_in_the_last_group() {
    [As::Frames, As::Packed].into_iter().for_each(miss_what_is_durable);
}

fn miss_what_is_durable(how: As) {
    let sample = sample_as(how, false);
    let mut found = Vec::new();
    let end = read_into(&sample.disk, Lsn(0), &mut found).unwrap();
    let last = &sample.files[2];
    let used = sample.used_bytes(last);
    sample.disk.tamper(last, |bytes| bytes[used - 20] ^= 1).unwrap();
    assert!(read_into(&sample.disk, Lsn(0), &mut Vec::new()).is_ok());
    let mut reader = LogReader::open_until(sample.disk.env(), Path::new(DIR), Lsn(0), end).unwrap();
    let error =
        std::iter::from_fn(|| reader.next_record().map(|r| r.map(|_| ())).transpose()).find_map(Result::err);
    assert_eq!(error.map(|e| e.kind()), Some(ErrorKind::Corrupt));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// Anything at all in a segment's frames, behind a header that is right.
    #[test]
    fn arbitrary_frames(
        noise in prop::collection::vec(any::<u8>(), 1..3000),
        at in 0usize..4000,
        file in 0usize..3,
        packed: bool,
    ) {
        let sample = sample_as(if packed { As::Packed } else { As::Frames }, true);
        sample.disk.tamper(&sample.files[file], |bytes| {
            let at = 4096 + at;
            let len = noise.len().min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&noise[..len]);
        }).unwrap();
        sample.check(if file == 2 { Loss::End } else { Loss::Nothing }, "noise");
    }
}

/// The search for proof goes over more than the reader has in memory at once.
#[test]
fn proof_is_found_far_behind_the_damage() {
    let disk = SimDisk::new();
    let options = LogOptions { segment_size: 4 << 20, prefill: false, max_pending: 4 << 20, ..options() };
    let writer = open_writer(&disk, options, Lsn(0));
    let first = writer.append(1, 1, &vec![1; 3 << 20]).unwrap();
    writer.wait_durable(first).unwrap();
    for size in 0..64 {
        writer.append(1, 2, &vec![2; size]).unwrap();
    }
    writer.flush().unwrap();
    let crashed = disk.crash(0);
    let path = Path::new(DIR).join("0000000000000000.log");
    crashed.tamper(&path, |bytes| bytes[4096 + (2 << 20)] ^= 1).unwrap();
    let error = read_into(&crashed, Lsn(0), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains(&format!("a later record at byte {}", 4096 + first.0)), "{error}");
}
