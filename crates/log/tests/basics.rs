//! The log on the real disk: write, read back, roll, recycle, reopen.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use avocet_base::{Env, Lsn};
use avocet_log::{
    Compression, Durability, Error, LogOptions, LogReader, LogWriter, MAX_KIND, Record, verify,
};

fn small(dir: &Path) -> LogOptions {
    LogOptions { segment_size: 16 << 10, compression: Compression::None, ..LogOptions::new(dir) }
}

/// Kind, tag, payload.
type Raw = (u8, u64, Vec<u8>);

/// Every record from `from`, and the end.
fn read(dir: &Path, from: Lsn) -> Result<(Vec<Raw>, Lsn), Error> {
    let mut reader = LogReader::open(Env::os(), dir, from)?;
    let mut records = Vec::new();
    while let Some(r) = reader.next_record()? {
        records.push((r.kind, r.tag, r.payload.to_vec()));
    }
    Ok((records, reader.end_lsn()))
}

#[test]
fn what_is_written_is_read_across_segments_and_reopens() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    let mut at = Lsn(0);
    for round in 0..4u64 {
        let writer = LogWriter::open(Env::os(), small(dir.path()), at).unwrap();
        for i in 0..50u64 {
            let record = ((i % 200) as u8, round * 1000 + i, vec![i as u8; (i as usize * 37) % 900]);
            let end = writer.append(record.0, record.1, &record.2).unwrap();
            if i % 10 == 0 {
                writer.wait_durable(end).unwrap();
                assert!(writer.durable_lsn() >= end);
            }
            expected.push(record);
        }
        writer.close().unwrap();
        assert!(matches!(writer.append(0, 0, b""), Err(Error::Closed)));
        let (records, end) = read(dir.path(), Lsn(0)).unwrap();
        assert_eq!(records, expected);
        at = end;
    }
    let report = verify(&Env::os(), dir.path()).unwrap();
    assert!(report.segments > 4, "{report:?}");
    assert_eq!((report.records, report.end, report.findings.len()), (200, at, 0));
}

/// Large records of some threads beside small ones of others, each as it was appended, and in each thread's order.
#[test]
fn large_records_are_framed_ahead_beside_small_ones() {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions { frame_ahead_from: 5_000, max_pending: 20_000, ..small(dir.path()) };
    let writer = LogWriter::open(Env::os(), options, Lsn(0)).unwrap();
    let payload = |thread: u64, n: u64| {
        let size = if thread < 2 { 3_000 * (n as usize % 12) } else { n as usize % 700 };
        vec![(thread * 50 + n) as u8; size]
    };
    std::thread::scope(|scope| {
        for thread in 0..5u64 {
            let writer = &writer;
            scope.spawn(move || {
                for n in 0..100 {
                    writer.append(thread as u8, n, &payload(thread, n)).unwrap();
                }
            });
        }
    });
    writer.close().unwrap();
    let (records, _) = read(dir.path(), Lsn(0)).unwrap();
    assert_eq!(records.len(), 500);
    for thread in 0..5 {
        let of_thread: Vec<_> = records.iter().filter(|r| u64::from(r.0) == thread).collect();
        assert_eq!(of_thread.len(), 100);
        for (n, record) in of_thread.into_iter().enumerate() {
            assert_eq!((record.1, &record.2), (n as u64, &payload(thread, n as u64)));
        }
    }
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let writer =
        LogWriter::open(Env::os(), LogOptions { max_pending: 4096, ..small(dir.path()) }, Lsn(0)).unwrap();
    let sizes = [10, 100_000, 20, 4000, 300_000, 0];
    for (tag, size) in sizes.into_iter().enumerate() {
        writer.append(MAX_KIND, tag as u64, &vec![tag as u8; size]).unwrap();
    }
    writer.close().unwrap();
    let (records, _) = read(dir.path(), Lsn(0)).unwrap();
    assert_eq!(records.iter().map(|r| r.2.len()).collect::<Vec<_>>(), sizes);
}

#[test]
fn the_callback_comes_before_the_waiters_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let told: Arc<Mutex<Vec<(Lsn, u64)>>> = Arc::default();
    let tell = told.clone();
    let options = small(dir.path()).on_durable(move |lsn, tag| tell.lock().unwrap().push((lsn, tag)));
    let writer = LogWriter::open(Env::os(), options, Lsn(0)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (writer, told) = (&writer, &told);
            scope.spawn(move || {
                for i in 0..30 {
                    let end = writer.append(1, thread * 100 + i, &[7; 100]).unwrap();
                    writer.wait_durable(end).unwrap();
                    assert!(told.lock().unwrap().last().unwrap().0 >= end);
                }
            });
        }
    });
    let told = told.lock().unwrap();
    assert!(told.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(told.last().unwrap().0, writer.durable_lsn());
    let stats = writer.stats();
    assert_eq!(stats.records, 120);
    assert_eq!(stats.groups, told.len() as u64);
}

#[test]
fn futures_wake_without_an_executor_of_ours() {
    use std::task::{Context, Poll, Waker};
    let dir = tempfile::tempdir().unwrap();
    let writer = LogWriter::open(Env::os(), small(dir.path()), Lsn(0)).unwrap();
    let end = writer.append(1, 1, b"x").unwrap();
    let mut future = std::pin::pin!(writer.durable(end));
    let mut cx = Context::from_waker(Waker::noop());
    let _ = future.as_mut().poll(&mut cx);
    writer.wait_durable(end).unwrap();
    assert!(matches!(future.as_mut().poll(&mut cx), Poll::Ready(Ok(()))));
    let mut never = std::pin::pin!(writer.durable(Lsn(1 << 40)));
    assert!(never.as_mut().poll(&mut cx).is_pending());
    writer.close().unwrap();
    assert!(matches!(never.as_mut().poll(&mut cx), Poll::Ready(Err(Error::Closed))));
}

#[test]
fn truncated_segments_are_recycled_and_their_old_records_stay_dead() {
    let dir = tempfile::tempdir().unwrap();
    let writer = LogWriter::open(Env::os(), small(dir.path()), Lsn(0)).unwrap();
    let mut kept = Lsn(0);
    for tag in 0..400u64 {
        let end = writer.append(1, tag, &[tag as u8; 500]).unwrap();
        if tag % 50 == 49 {
            writer.wait_durable(end).unwrap();
            writer.truncate_before(end).unwrap();
            kept = writer.first_lsn();
        }
    }
    writer.close().unwrap();
    assert!(kept > Lsn(0));
    let (records, _) = read(dir.path(), kept).unwrap();
    let last: Vec<u64> = records.iter().map(|r| r.1).collect();
    assert_eq!(last, (400 - last.len() as u64..400).collect::<Vec<_>>());
    assert!(matches!(read(dir.path(), Lsn(0)), Err(Error::MissingSegment { .. })));
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert!(files < 10, "{files} files");
}

#[test]
fn a_writer_starts_only_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let writer = LogWriter::open(Env::os(), small(dir.path()), Lsn(0)).unwrap();
    let first = writer.append(1, 1, b"one").unwrap();
    writer.append(1, 2, b"two").unwrap();
    writer.close().unwrap();
    for at in [Lsn(0), first, Lsn(1 << 20)] {
        let opened = LogWriter::open(Env::os(), small(dir.path()), at);
        assert!(matches!(opened, Err(Error::NotAtEnd { .. })), "{at}");
    }
    let beyond = LogReader::open(Env::os(), dir.path(), Lsn(1 << 12));
    assert!(matches!(beyond, Err(Error::EndsEarly { .. })));
}

#[test]
fn a_bounded_reader_follows_a_live_log() {
    let dir = tempfile::tempdir().unwrap();
    let writer = LogWriter::open(Env::os(), small(dir.path()), Lsn(0)).unwrap();
    let mut reader = LogReader::open_until(Env::os(), dir.path(), Lsn(0), Lsn(0)).unwrap();
    let mut seen = 0u64;
    for tag in 0..300u64 {
        writer.append(1, tag, &[tag as u8; 400]).unwrap();
        if tag % 7 == 0 {
            writer.flush().unwrap();
            reader.extend(writer.durable_lsn());
            while let Some(record) = reader.next_record().unwrap() {
                assert_eq!(record.tag, seen);
                seen += 1;
            }
            assert_eq!(seen, tag + 1);
        }
    }
}

/// Records that are alike take fewer bytes, and what they do not take is there for more records: a segment's file is used to
/// its end. Every record's start is a place to read from, also in the midst of what is compressed.
#[test]
fn compressed_segments_are_filled_and_read_from_anywhere() {
    for compression in [Compression::None, Compression::Lz4] {
        let dir = tempfile::tempdir().unwrap();
        let options = LogOptions { compression, segment_size: 256 << 10, ..LogOptions::new(dir.path()) };
        let writer = LogWriter::open(Env::os(), options, Lsn(0)).unwrap();
        let mut starts = vec![Lsn(0)];
        for tag in 0..4000u64 {
            let payload = format!("customer {tag} of district {} paid {} today", tag % 10, tag * 37 % 5000);
            starts.push(writer.append(1, tag, payload.repeat(4).as_bytes()).unwrap());
            if tag % 100 == 99 {
                writer.flush().unwrap();
            }
        }
        writer.close().unwrap();
        let stats = writer.stats();
        let report = verify(&Env::os(), dir.path()).unwrap();
        assert_eq!((report.records, report.findings.len()), (4000, 0));
        assert_eq!(stats.bytes, starts[4000].0);
        match compression {
            Compression::None => assert_eq!(stats.written_bytes, stats.bytes),
            Compression::Lz4 => assert!(stats.written_bytes * 3 < stats.bytes, "{stats:?}"),
        }
        let segments = stats.written_bytes.div_ceil(252 << 10) as usize;
        assert!(report.segments <= segments + 1, "{} segments for {stats:?}", report.segments);
        for n in (0..4000).step_by(371) {
            let (records, _) = read(dir.path(), starts[n]).unwrap();
            assert!(records.iter().map(|r| r.1).eq(n as u64..4000));
            let mut reader = LogReader::open_until(Env::os(), dir.path(), starts[n], starts[n + 5]).unwrap();
            let mut tags = Vec::new();
            while let Some(record) = reader.next_record().unwrap() {
                let n = record.tag as usize;
                assert_eq!((record.start, record.end), (starts[n], starts[n + 1]));
                tags.push(record.tag);
            }
            assert!(tags.into_iter().eq(n as u64..n as u64 + 5));
        }
        assert!(matches!(read(dir.path(), Lsn(starts[500].0 + 8)), Err(Error::NotAtEnd { .. })));
    }
}

/// Records that may wait gather; one that may not takes all of them along.
#[test]
fn groups_gather_as_long_as_all_may_wait() {
    let disk = avocet_base::env::SimDisk::new();
    let env = disk.env();
    let writer = LogWriter::open(env.clone(), LogOptions::new("/log"), Lsn(0)).unwrap();
    let gather = Durability::Group(Duration::from_secs(3600));
    for tag in 0..20 {
        writer.append_for(&Record::new(1, b"waits"), tag, gather).unwrap();
    }
    assert_eq!(writer.durable_lsn(), Lsn(0), "an hour has not passed");
    let end = writer.append(1, 20, b"does not").unwrap();
    writer.wait_durable(end).unwrap();
    assert_eq!((writer.stats().groups, writer.stats().records), (1, 21));
    // What gathers when the writer closes is written all the same.
    writer.append_for(&Record::new(1, b"waits"), 21, gather).unwrap();
    writer.close().unwrap();
    let mut reader = LogReader::open(env, Path::new("/log"), Lsn(0)).unwrap();
    let mut last = 0;
    while let Some(record) = reader.next_record().unwrap() {
        last = record.tag;
    }
    assert_eq!(last, 21);
}
