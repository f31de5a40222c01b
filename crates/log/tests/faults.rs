//! Failing writes and syncs, and full disks.

mod common;

use avocet_base::Lsn;
use avocet_base::env::{DiskError, DiskOp, SimDisk};
use avocet_log::{Error, ErrorKind, LogOptions, LogWriter};
use common::{open_writer, options, packing, read_all};

#[test]
fn a_failed_write_or_sync_stops_the_writer_for_good() {
    for op in [DiskOp::Write, DiskOp::Sync] {
        let disk = SimDisk::new();
        // Without a segment made in advance, the next write and sync are the record's.
        disk.set_capacity(Some(20 << 10));
        let writer = open_writer(&disk, LogOptions { prefill: false, ..options() }, Lsn(0));
        let kept = writer.append(1, 1, b"kept").unwrap();
        writer.wait_durable(kept).unwrap();
        disk.fail(op, 1, DiskError::Io);
        let lost = writer.append(1, 2, b"lost").unwrap();
        let error = writer.wait_durable(lost).unwrap_err();
        assert!(matches!(error, Error::Stopped(_)) && error.kind() == ErrorKind::Io, "{error}");
        let syncs = disk.syncs();
        assert!(matches!(writer.append(1, 3, b"never"), Err(Error::Stopped(_))));
        assert!(writer.wait_durable(kept).is_ok(), "what is durable stays so");
        assert!(writer.close().is_err());
        assert_eq!(disk.syncs(), syncs, "a failed sync is never tried again");
        let (records, _) = read_all(&disk.crash(0), Lsn(0)).unwrap();
        assert_eq!(records.iter().map(|r| r.tag).collect::<Vec<_>>(), [1]);
    }
}

/// After a failed sync the cache still shows the group. Whoever opens the log next believes it, so it must
/// be made durable then, although the operating system holds it for written.
#[test]
fn a_group_whose_sync_failed_is_written_again_at_open() {
    let disk = SimDisk::new();
    let writer = open_writer(&disk, options(), Lsn(0));
    let first = writer.append(1, 1, b"one").unwrap();
    writer.wait_durable(first).unwrap();
    // However many syncs the segment maker is still to do, the group's fails.
    for n in 1..=20 {
        disk.fail(DiskOp::Sync, n, DiskError::Io);
    }
    let second = writer.append(1, 2, &[2; 3000]).unwrap();
    assert!(writer.wait_durable(second).is_err());
    assert_eq!(read_all(&disk.crash(1), Lsn(0)).unwrap().1, first, "the sync did lose it");
    let next = disk.kill();
    let (records, end) = read_all(&next, Lsn(0)).unwrap();
    assert_eq!((records.len(), end), (2, second));
    let _writer = open_writer(&next, options(), end);
    assert_eq!(read_all(&next.crash(0), Lsn(0)).unwrap(), (records, end));
}

#[test]
fn a_full_disk_refuses_records_and_loses_none_that_were_accepted() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(3 * (16 << 10) + 100));
    let writer = open_writer(&disk, options(), Lsn(0));
    let mut accepted = Vec::new();
    let refused = loop {
        let tag = accepted.len() as u64;
        match writer.append(1, tag, &[5; 1000]) {
            Ok(_) => accepted.push(tag),
            Err(e) => break e,
        }
    };
    assert!(!matches!(refused, Error::Stopped(_)));
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    writer.flush().unwrap();
    assert!(accepted.len() >= 3 * 11, "three segments were filled");
    let tags = |disk: &SimDisk, from| -> Vec<u64> {
        read_all(disk, from).unwrap().0.iter().map(|r| r.tag).collect()
    };
    assert_eq!(tags(&disk.crash(0), Lsn(0)), accepted);
    // Refused once more, then there is room: a checkpoint gave up the old segments.
    assert_eq!(writer.append(1, 77, &[5; 1000]).unwrap_err().kind(), ErrorKind::NoSpace);
    writer.truncate_before(writer.durable_lsn()).unwrap();
    let end = writer.append(1, 100, &[5; 1000]).unwrap();
    writer.wait_durable(end).unwrap();
    assert_eq!(tags(&disk.crash(0), writer.first_lsn()).last(), Some(&100));
}

/// Whether there is room is reckoned as if nothing were compressed; what is saved is room as soon as that is known.
#[test]
fn a_full_disk_takes_what_compression_makes_room_for() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(3 * (16 << 10) + 100));
    let writer = open_writer(&disk, packing(), Lsn(0));
    let mut accepted = 0u64;
    while accepted < 100 {
        match writer.append(1, accepted, &[5; 1000]) {
            Ok(_) => accepted += 1,
            Err(e) => assert_eq!(e.kind(), ErrorKind::NoSpace),
        }
        writer.flush().unwrap();
    }
    assert!(writer.stats().bytes > 100_000);
    let (records, _) = read_all(&disk.crash(0), Lsn(0)).unwrap();
    assert!(records.iter().map(|r| r.tag).eq(0..100));
}

#[test]
fn no_space_for_the_first_segment_is_told_at_open() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(1000));
    let error = LogWriter::open(disk.env(), options(), Lsn(0)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!(disk.used(), 0);
    disk.set_capacity(None);
    open_writer(&disk, options(), Lsn(0)).append(1, 1, b"x").unwrap();
}

#[test]
fn a_panic_in_the_callback_releases_the_waiters() {
    let disk = SimDisk::new();
    let writer = open_writer(&disk, options().on_durable(|_, _| panic!("on purpose")), Lsn(0));
    let end = writer.append(1, 1, b"x").unwrap();
    assert_eq!(writer.wait_durable(end).unwrap_err().kind(), ErrorKind::Internal);
    assert!(writer.append(1, 2, b"y").is_err());
    assert!(writer.close().is_err());
}
