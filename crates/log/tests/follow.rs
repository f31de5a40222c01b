//! Reading the log while it is written, and what holds it back for those who read it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use avocet_base::{Env, Lsn};
use avocet_log::{Compression, Error, LogFollower, LogOptions, LogWriter};

fn small(dir: &Path, compression: Compression) -> LogOptions {
    LogOptions { segment_size: 16 << 10, compression, compress_from: 0, ..LogOptions::new(dir) }
}

fn payload(n: u64) -> Vec<u8> {
    vec![n as u8; (n as usize * 37) % 900]
}

/// Reads what is durable; the number of the next record to come.
fn drain(follower: &mut LogFollower, mut next: u64) -> Result<u64, Error> {
    while let Some(record) = follower.next_record()? {
        assert_eq!((record.tag, record.payload), (next, &payload(next)[..]));
        next += 1;
    }
    Ok(next)
}

#[test]
fn a_follower_reads_every_record_in_order_while_segments_come_and_go() {
    for compression in [Compression::None, Compression::Lz4] {
        let dir = tempfile::tempdir().expect("a directory");
        let writer = LogWriter::open(Env::os(), small(dir.path(), compression), Lsn(0)).expect("opens");
        let mut follower = writer.follow(Lsn(0), u64::MAX).expect("follows");
        let done = AtomicBool::new(false);
        const RECORDS: u64 = 2_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..RECORDS {
                    let end = writer.append(1, n, &payload(n)).expect("appends");
                    if n % 7 == 0 {
                        writer.wait_durable(end).expect("durable");
                    }
                    if n % 50 == 0 {
                        writer.truncate_before(end).expect("truncates");
                    }
                }
                writer.flush().expect("flushes");
                done.store(true, Ordering::SeqCst);
            });
            let mut next = 0;
            while next < RECORDS {
                next = drain(&mut follower, next).expect("nothing is lost");
                follower.acknowledge(follower.position());
                if next < RECORDS {
                    follower.wait().expect("more comes");
                }
            }
        });
        assert!(done.into_inner());
        assert_eq!(follower.next_record().expect("no damage"), None);
        assert!(writer.first_lsn() > Lsn(0), "what was acknowledged is given up");
    }
}

/// Whoever has read a segment to its end may acknowledge it, and find it gone when the log goes on in the next one.
#[test]
fn a_segment_that_was_read_to_its_end_may_go_before_the_next_is_known() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = LogWriter::open(Env::os(), small(dir.path(), Compression::None), Lsn(0)).expect("opens");
    let mut follower = writer.follow(Lsn(0), u64::MAX).expect("follows");
    for n in 0..200 {
        writer.append(1, n, &payload(n)).expect("appends");
        writer.flush().expect("flushes");
        writer.truncate_before(writer.durable_lsn()).expect("truncates");
        assert_eq!(drain(&mut follower, n).expect("nothing is lost"), n + 1);
        follower.acknowledge(follower.position());
    }
    assert!(writer.first_lsn() > Lsn(0));
}

#[test]
fn what_is_not_acknowledged_stays_and_a_later_follower_reads_it_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = LogWriter::open(Env::os(), small(dir.path(), Compression::None), Lsn(0)).expect("opens");
    let mut follower = writer.follow(Lsn(0), u64::MAX).expect("follows");
    let append = |from: u64| (from..from + 200).for_each(|n| drop(writer.append(1, n, &payload(n))));
    append(0);
    writer.flush().expect("flushes");
    assert_eq!(drain(&mut follower, 0).expect("whole"), 200);
    let middle = follower.position();
    follower.acknowledge(middle);
    append(200);
    writer.flush().expect("flushes");
    writer.truncate_before(writer.durable_lsn()).expect("truncates");
    assert!(writer.first_lsn() <= middle);
    let mut again = writer.follow(middle, u64::MAX).expect("it is still there");
    assert_eq!(drain(&mut again, 200).expect("whole"), 400);
    drop((again, follower));
    writer.truncate_before(writer.durable_lsn()).expect("truncates");
    assert!(writer.first_lsn() > middle, "nobody holds it back");
    let gone = writer.follow(middle, u64::MAX).err();
    assert!(matches!(gone, Some(Error::MissingSegment { .. })), "{gone:?}");
    let ahead = writer.follow(Lsn(writer.durable_lsn().0 + 8), u64::MAX).err();
    assert!(matches!(ahead, Some(Error::EndsEarly { .. })), "{ahead:?}");
}

#[test]
fn a_slot_that_is_too_far_behind_is_lost_and_its_owner_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = LogWriter::open(Env::os(), small(dir.path(), Compression::None), Lsn(0)).expect("opens");
    let slot = writer.retain(Lsn(0), 40 << 10).expect("nothing is gone");
    let mut follower = writer.follow(Lsn(0), 100 << 10).expect("follows");
    let fill = |bytes: u64| {
        let end = writer.appended_lsn().0 + bytes;
        while writer.appended_lsn().0 < end {
            writer.append(1, 0, &[7; 500]).expect("appends");
        }
        writer.flush().expect("flushes");
        writer.truncate_before(writer.durable_lsn()).expect("truncates");
    };
    fill(30 << 10);
    assert_eq!((slot.position().expect("held"), writer.first_lsn()), (Lsn(0), Lsn(0)));
    assert!(follower.next_record().expect("held").is_some());
    fill(20 << 10);
    assert!(matches!(slot.position(), Err(Error::SlotLost { at: Lsn(0), most: 40_960, .. })));
    assert_eq!(writer.first_lsn(), Lsn(0), "the other one still holds it");
    fill(80 << 10);
    assert!(writer.first_lsn() > Lsn(0));
    let lost = follower.next_record().expect_err("it is given up");
    assert!(matches!(lost, Error::SlotLost { .. }), "{lost}");
}
