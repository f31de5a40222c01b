use std::path::PathBuf;

use avocet_base::Env;
use avocet_base::env::SimDisk;
use avocet_base::env::sim::{DiskError, DiskOp, SimClock};

use super::super::events::{number_of, transaction_bytes_of};
use super::super::files::Events;
use super::super::{Base, DumpError, From, Kept, Log, Step};
use super::*;
use crate::gtid::GtidSet;

fn options(base: Base) -> BinlogOptions {
    BinlogOptions {
        folder: PathBuf::from("/data/binlog"),
        server_id: 7,
        version: "8.4.0-avocet".into(),
        max_file_bytes: 1 << 30,
        expire_seconds: 0,
        base,
    }
}

#[test]
fn a_log_that_begins_anew_does_so_wholly_or_not_at_all() {
    let before: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3".parse().expect("a set");
    let base = Base { executed: before.clone(), ts: Timestamp(77), lacks_some: true };
    let run = |disk: &SimDisk| -> io::Result<()> {
        let mut writer = Writer::open(options(base.clone()), disk.env())?;
        writer.rotate()?;
        writer.rotate()?;
        writer.mark.ts = 90;
        writer.reset(7)
    };
    let last_sync = {
        let disk = SimDisk::new();
        run(&disk).expect("a log that has begun anew");
        disk.syncs()
    };
    let mut seen = Vec::new();
    for cut in 1..=last_sync {
        let disk = SimDisk::new();
        disk.cut_at_sync(cut);
        let _ = run(&disk);
        let disk = disk.crash(0);
        // Whoever opens it again says what was before the old log.
        let writer = Writer::open(options(base.clone()), disk.env()).expect("a log");
        let files = writer.files();
        let is_new = files.executed().is_empty();
        match is_new {
            true => {
                assert_eq!((writer.mark.ts, writer.mark.number, writer.sequence), (90, 0, 1), "{cut}");
                assert_eq!(writer.mark.file, "binlog.000007");
                assert_eq!(files.list().len(), 1);
            }
            false => {
                assert_eq!((writer.mark.number, writer.sequence), (1, 1), "{cut}");
                assert!(files.executed().contains_all(&before));
            }
        }
        seen.push(is_new);
    }
    assert!(seen.is_sorted() && seen.contains(&true) && seen.contains(&false), "{seen:?}");
}

fn transaction(writer: &mut Writer, ts: u64) -> io::Result<()> {
    writer.begin(1_000_000)?;
    writer.commit(Timestamp(ts))?;
    writer.publish()
}

/// The kinds of events of each file, in order.
fn kinds(log: &Log) -> Vec<(String, Vec<&'static str>)> {
    let kinds = |file: &str| {
        let (mut all, mut events) = (Vec::new(), log.events(Some(file), 4).expect("a file"));
        while events.next(&mut all).expect("events") {}
        all.into_iter().map(|event| event.kind).collect()
    };
    log.files().into_iter().map(|file| (file.name.clone(), kinds(&file.name))).collect()
}

#[test]
fn nothing_follows_rotate_in_a_file_wherever_power_is_lost() {
    // FLUSH BINARY LOGS between two transactions, beside a replica; whether that had ROTATE.
    let run = |disk: &SimDisk| -> io::Result<bool> {
        let mut writer = Writer::open(options(Base::default()), disk.env())?;
        let mut dump = Log(writer.files().clone())
            .dump(From::Position("binlog.000001".into(), 4), false)
            .expect("a reader");
        let outcome = transaction(&mut writer, 5).and_then(|()| writer.rotate());
        let (mut had_rotate, mut event) = (false, Vec::new());
        while outcome.is_err() && dump.next(&mut event)? != Step::End {
            // The first one tells the place of the stream.
            had_rotate |= event[4] == kind::ROTATE && event[13..17] != [0; 4];
            event.clear();
        }
        outcome.map_or(Ok(had_rotate), |()| transaction(&mut writer, 6).map(|()| had_rotate))
    };
    let last_sync = {
        let disk = SimDisk::new();
        run(&disk).expect("a log of two files");
        disk.syncs()
    };
    for (cut, seed) in (1..=last_sync).flat_map(|cut| (0..8).map(move |seed| (cut, seed))) {
        let disk = SimDisk::new();
        disk.cut_at_sync(cut);
        let had_rotate = run(&disk).unwrap_or(false);
        let disk = disk.crash(seed);
        let at = format!("cut at sync {cut}, seed {seed}");
        let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
        let log = Log(writer.files().clone());
        assert!(
            !had_rotate || log.files().len() == 2,
            "{at}: a replica was sent to a file that is not there"
        );
        for ts in [5, 6, 7] {
            if writer.wants(Timestamp(ts)) {
                transaction(&mut writer, ts).expect("written");
            }
        }
        assert_eq!(writer.mark.number, 3, "{at}");
        let kinds = kinds(&log);
        let ends_in_rotate =
            |kinds: &[&str]| kinds.iter().position(|kind| *kind == "Rotate") == kinds.len().checked_sub(1);
        let (last, before) = kinds.split_last().expect("a file");
        assert!(before.iter().all(|(_, kinds)| ends_in_rotate(kinds)), "{at}: {kinds:?}");
        assert!(!last.1.contains(&"Rotate"), "{at}: {kinds:?}");
        let sequences = |kinds: &[&str]| kinds.iter().filter(|kind| **kind == "Gtid").count();
        assert_eq!(writer.sequence, sequences(&last.1) as u64 + 1, "{at}");
    }
}

#[test]
fn what_the_mark_says_is_on_disk_after_a_kill_and_a_loss_of_power() {
    let disk = SimDisk::new();
    let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
    transaction(&mut writer, 5).expect("written");
    let killed = disk.kill();
    let writer = Writer::open(options(Base::default()), killed.env()).expect("a log");
    assert_eq!(writer.mark.ts, 5);
    for seed in 0..8 {
        let lost = killed.crash(seed);
        let writer = Writer::open(options(Base::default()), lost.env()).expect("a log");
        assert_eq!(writer.mark.ts, 5);
    }
}

#[test]
fn a_file_that_is_read_is_not_purged() {
    let disk = SimDisk::new();
    let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
    let log = Log(writer.files().clone());
    let (file, readers) = ("binlog.000001".to_owned(), 1);
    let dump = log.dump(From::Position(file.clone(), 4), false).expect("a reader");
    writer.rotate().and_then(|()| writer.rotate()).expect("files");
    let purge_to = |name: &str| log.purge_to(name).map(|purged| purged.expect("files that can be deleted"));
    let names = || log.files().into_iter().map(|file| file.name).collect::<Vec<_>>();
    assert_eq!(purge_to("binlog.000003"), Some(Some(Kept::InUse { file, readers, purged: 0, of: 2 })));
    assert_eq!(names(), ["binlog.000001", "binlog.000002", "binlog.000003"]);
    assert_eq!(purge_to("binlog.000001"), Some(None));
    assert_eq!(purge_to("binlog.000004"), None);
    drop(dump);
    assert_eq!(purge_to("binlog.000002"), Some(None));
    let before = |seconds| log.purge_before(seconds).expect("files that can be deleted");
    assert_eq!(before(0), None, "none is as old");
    assert_eq!(names(), ["binlog.000002", "binlog.000003"]);
    assert_eq!(before(u64::from(u32::MAX)), Some(Kept::Active("binlog.000003".into())));
    assert_eq!(names(), ["binlog.000003"]);
}

#[test]
fn files_that_cannot_be_purged_stop_nobody() {
    let disk = SimDisk::new();
    let clock = Arc::new(SimClock::default());
    let env = || Env { disk: Arc::new(disk.clone()), clock: clock.clone() };
    let path = |number: u64| PathBuf::from(format!("/data/binlog/binlog.{number:06}"));
    let is_there = |number: u64| env().disk.exists(&path(number)).expect("readable");
    let options = BinlogOptions { expire_seconds: 1, ..options(Base::default()) };
    let mut writer = Writer::open(options.clone(), env()).expect("a log");
    writer.rotate().expect("a file");
    // Somebody has deleted one by hand.
    env().disk.remove(&path(1)).expect("removed");
    clock.advance(Duration::from_secs(3));
    writer.rotate().expect("a file");
    assert!(writer.files().list().iter().all(|file| file.name != "binlog.000001"));
    clock.advance(Duration::from_secs(3));
    // The disk does not let it go.
    disk.fail(DiskOp::Remove, 1, DiskError::Io);
    writer.rotate().expect("a file");
    assert_eq!(writer.files().list()[0].name, "binlog.000003");
    assert!(is_there(2) && is_there(3));
    clock.advance(Duration::from_secs(3));
    writer.rotate().and_then(|()| writer.rotate()).expect("files");
    // By a statement, that is told, and the others go.
    disk.fail(DiskOp::Remove, 1, DiskError::Io);
    let purged = Log(writer.files().clone()).purge_to("binlog.000006").expect("a file");
    assert!(purged.is_err_and(|error| error.to_string().starts_with("binlog.000004")));
    assert!(is_there(2) && is_there(4) && !is_there(3) && !is_there(5));
    // No index names them: they go when the log is opened.
    drop(writer);
    let writer = Writer::open(options, env()).expect("a log");
    assert_eq!(writer.files().list().len(), 1);
    assert!(!is_there(2) && !is_there(4) && is_there(6));
}

#[test]
fn a_reader_gets_no_gap_where_files_are_purged() {
    let disk = SimDisk::new();
    let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
    for ts in 5..8 {
        transaction(&mut writer, ts).and_then(|()| writer.rotate()).expect("a file");
    }
    let log = Log(writer.files().clone());
    let dump = |from| log.dump(from, false);
    let mut reader = dump(From::Gtids(GtidSet::default(), None)).expect("a reader");
    // As if it had not been known to be read.
    writer.files().state().files.drain(..2);
    let mut event = Vec::new();
    let end = loop {
        match reader.next(&mut event) {
            Ok(Step::End) => break None,
            Ok(_) => event.clear(),
            Err(error) => break Some(error.to_string()),
        }
    };
    assert_eq!(end.as_deref(), Some("binlog.000001 was purged while it was read"));
    let why = dump(From::Gtids(GtidSet::default(), None)).err().expect("it lacks what was purged");
    assert!(why.0.starts_with("Cannot replicate because the source purged required binary logs."), "{why}");
    let has = log.purged();
    assert!(dump(From::Gtids(has, None)).is_ok());
    assert!(dump(From::Position("binlog.000002".into(), 4)).is_err());
}

#[test]
fn a_reader_that_begins_beside_a_purge_has_all_or_is_refused() {
    for _ in 0..200 {
        let disk = SimDisk::new();
        let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
        for ts in 5..8 {
            transaction(&mut writer, ts).and_then(|()| writer.rotate()).expect("a file");
        }
        let log = Log(writer.files().clone());
        let purging = std::thread::spawn({
            let log = log.clone();
            move || log.purge_to("binlog.000004").expect("a file").map(drop)
        });
        if let Ok(mut reader) = log.dump(From::Gtids(GtidSet::default(), None), false) {
            let (mut transactions, mut event) = (0, Vec::new());
            while reader.next(&mut event).expect("events") != Step::End {
                transactions += u64::from(event[4] == kind::GTID);
                event.clear();
            }
            assert_eq!(transactions, 3);
        }
        purging.join().expect("no panic").expect("files that can be deleted");
    }
}

#[test]
fn a_reader_that_names_a_file_begins_there() {
    let disk = SimDisk::new();
    let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
    for ts in 5..8 {
        transaction(&mut writer, ts).and_then(|()| writer.rotate()).expect("a file");
    }
    transaction(&mut writer, 8).expect("written");
    let log = Log(writer.files().clone());
    let numbers = |has: &str, file: &str| {
        let has = has.replace("here", &log.server_uuid()).parse().expect("a set");
        let mut reader = log.dump(From::Gtids(has, Some((file.into(), 4))), false)?;
        let (mut numbers, mut event) = (Vec::new(), Vec::new());
        while reader.next(&mut event).expect("events") != Step::End {
            numbers.extend((event[4] == kind::GTID).then(|| number_of(&event).expect("a number").1));
            event.clear();
        }
        Ok::<_, DumpError>(numbers)
    };
    assert_eq!(numbers("", "binlog.000003"), Ok(vec![3, 4]));
    assert_eq!(numbers("here:1-3", "binlog.000002"), Ok(vec![4]));
    // What it has of what is not here yet is not looked at, as little as what is purged.
    assert_eq!(numbers("here:1-9", "binlog.000001"), Ok(Vec::new()));
    assert!(matches!(log.purge_to("binlog.000002"), Some(Ok(None))));
    assert_eq!(numbers("", "binlog.000002"), Ok(vec![2, 3, 4]));
    let lacks = DumpError("Could not find first log file name in binary log index file".into());
    assert_eq!(numbers("", "binlog.000001"), Err(lacks));
}

#[test]
fn every_transaction_says_how_long_it_is_wherever_power_is_lost() {
    for seed in 0..40 {
        let disk = SimDisk::new();
        let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
        transaction(&mut writer, 5).expect("written");
        // One that is large is in the file before it is whole.
        writer.begin(1_000_000).and_then(|()| writer.write_out()).expect("written");
        writer.file.sync_data().expect("synced");
        // So that the end is in another sector than the beginning.
        let rows = vec![0; 2000];
        let at = writer.position();
        writer.files.author.put(&mut writer.out, kind::WRITE_ROWS, 1, 0, at, &rows);
        writer.commit(Timestamp(6)).and_then(|()| writer.publish()).expect("written");
        let disk = disk.crash(seed);
        let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
        for ts in [5, 6, 7] {
            if writer.wants(Timestamp(ts)) {
                transaction(&mut writer, ts).expect("written");
            }
        }
        assert_eq!(writer.mark.number, 3, "seed {seed}");
        let mut events = Events::new(&*writer.file, 4, writer.written);
        let mut lengths = Vec::new();
        while let Some(event) = events.next().expect("read") {
            lengths.extend((event[4] == kind::GTID).then(|| transaction_bytes_of(event)));
        }
        assert_eq!(lengths.len(), 3, "seed {seed}");
        assert!(lengths.iter().all(|bytes| bytes.is_some_and(|bytes| bytes > 0)), "seed {seed}: {lengths:?}");
    }
}

#[test]
fn events_are_told_from_a_position_on() {
    let disk = SimDisk::new();
    let mut writer = Writer::open(options(Base::default()), disk.env()).expect("a log");
    writer.rotate().expect("a file");
    let log = Log(writer.files().clone());
    let told = |file: Option<&str>, from| {
        let mut all = Vec::new();
        let mut events = log.events(file, from)?;
        while events.next(&mut all)? {}
        Ok::<_, String>(all.into_iter().map(|event| (event.kind, event.position)).collect::<Vec<_>>())
    };
    let all = told(None, 0).expect("events");
    let [("Format_desc", 4), ("Previous_gtids", previous), ("Rotate", rotate)] = all[..] else {
        panic!("{all:?}")
    };
    let (all, one) = (Ok(all.clone()), "binlog.000001");
    for from in 0..=4 {
        assert_eq!(told(Some(one), from), all);
    }
    // Within a file's head, a position stands for the event behind it.
    for from in 5..=previous {
        assert_eq!(
            told(Some("/any/folder/binlog.000001"), from),
            Ok(all.clone().expect("events")[1..].to_vec())
        );
    }
    assert_eq!(told(Some(one), previous + 1), Ok(vec![("Rotate", rotate)]));
    assert_eq!(told(Some(one), rotate), Ok(vec![("Rotate", rotate)]));
    let invalid =
        |from| format!("Error reading Log_event at position {from}: Failed decoding event: Event invalid");
    assert_eq!(told(Some(one), rotate + 1), Err(invalid(rotate + 1)));
    for from in [1 << 20, i64::MAX as u64 - 1] {
        assert_eq!(told(Some(one), from), Ok(Vec::new()));
    }
    assert!(told(Some(one), i64::MAX as u64).is_err_and(|why| why.ends_with("I/O error reading log event")));
    assert_eq!(told(Some("binlog.000003"), 0), Err("Could not find target log".into()));
    assert_eq!(told(Some(""), 0), Err("Could not find target log".into()));
    // A file that was damaged since.
    let file = disk.env().disk.open(&options(Base::default()).folder.join(one), true).expect("a file");
    file.write_at(&[0xff], rotate + 20).expect("written");
    assert_eq!(told(Some(one), 0), Err(invalid(rotate)));
}

#[test]
fn a_log_begins_behind_what_another_server_has_done() {
    let before: GtidSet =
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5,3e11fa47-71ca-11e1-9e33-c80aa9429562:tag:1"
            .parse()
            .expect("a set");
    for lacks_some in [false, true] {
        let base = Base { executed: before.clone(), ts: Timestamp(77), lacks_some };
        let options = options(base);
        let last_sync = {
            let disk = SimDisk::new();
            Writer::open(options.clone(), disk.env()).expect("a log");
            disk.syncs()
        };
        // Power may be lost at each step of its beginning.
        for cut in 1..=last_sync {
            let disk = SimDisk::new();
            disk.cut_at_sync(cut);
            let _ = Writer::open(options.clone(), disk.env());
            let disk = disk.crash(0);
            // Whoever opens it again may know the beginning from the files alone.
            let has_files = disk.env().disk.exists(&options.folder.join("binlog.index")).unwrap_or(false);
            let again = if has_files {
                BinlogOptions { base: Base::default(), ..options.clone() }
            } else {
                options.clone()
            };
            let writer = Writer::open(again, disk.env()).expect("a log");
            assert_eq!(writer.mark.ts, 77, "cut at sync {cut}");
            assert_eq!(writer.mark.number, u64::from(lacks_some));
            let files = writer.files();
            assert!(files.executed().contains_all(&before));
            assert_eq!(files.executed(), files.purged());
            assert_eq!(files.executed() == before, !lacks_some);
            assert!(!writer.wants(Timestamp(77)) && writer.wants(Timestamp(78)));
        }
    }
}
