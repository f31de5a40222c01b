//! Power loss at every sync point: what was acknowledged is there, nothing is half there, and the log can be written on.

mod common;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use avocet_base::Lsn;
use avocet_base::env::SimDisk;
use avocet_log::{Durability, Error, LogOptions, LogWriter, Record, verify};
use common::bytes::noise;
use common::{DIR, OwnedRecord, open_writer, options, packing, read_all};
use proptest::prelude::*;

/// A step of a workload on one writer.
#[derive(Debug, Clone)]
enum Step {
    /// Appends a record of this size, to be synced.
    Append(usize),
    /// Appends one that need not be synced, or not at once.
    Lazily(usize, Durability),
    /// Waits until everything is durable.
    Flush,
    /// Gives up what is before the durable LSN.
    Truncate,
    /// Closes and opens again.
    Reopen,
}

/// What a run knows about the log that it wrote.
#[derive(Default)]
struct Told {
    /// Whether groups are compressed.
    packs: bool,
    /// Records by the LSN of their end, in order; of those at the end some may never have reached the disk.
    appended: Vec<(Lsn, OwnedRecord)>,
    /// The highest LSN that anyone was told to be durable.
    durable: Arc<AtomicU64>,
    truncated: Lsn,
    next_tag: u64,
}

impl Told {
    fn options(&self) -> LogOptions {
        let durable = self.durable.clone();
        let options = if self.packs { packing() } else { options() };
        options.on_durable(move |lsn, _| durable.store(lsn.0, SeqCst))
    }

    /// Runs steps until the end or the first error, which power loss excuses.
    fn run(&mut self, disk: &SimDisk, mut at: Lsn, steps: &[Step]) -> Result<(), Error> {
        let mut rest = steps;
        loop {
            let writer = LogWriter::open(disk.env(), self.options(), at)?;
            self.durable.fetch_max(at.0, SeqCst);
            let reopen = rest.iter().position(|step| matches!(step, Step::Reopen));
            let (now, later) = rest.split_at(reopen.unwrap_or(rest.len()));
            for step in now {
                self.step(&writer, step)?;
            }
            writer.close()?;
            at = writer.durable_lsn();
            match later.split_first() {
                Some((_, later)) => rest = later,
                None => return Ok(()),
            }
        }
    }

    fn step(&mut self, writer: &LogWriter, step: &Step) -> Result<(), Error> {
        match step {
            Step::Append(size) | Step::Lazily(size, _) => {
                let durability = match step {
                    Step::Lazily(_, durability) => *durability,
                    _ => Durability::Sync,
                };
                let tag = self.next_tag;
                self.next_tag += 1;
                let payload = payload(*size, tag);
                // An append that fails was refused or comes after the log stopped: it is in no file.
                let record = Record::new(tag as u8 % 200, &payload);
                let end = writer.append_for(&record, tag, durability)?;
                self.appended.push((end, OwnedRecord { kind: tag as u8 % 200, tag, payload }));
            }
            Step::Flush => writer.flush()?,
            Step::Truncate => {
                let durable = writer.durable_lsn();
                self.truncated = self.truncated.max(durable);
                writer.truncate_before(durable)?;
            }
            Step::Reopen => {}
        }
        Ok(())
    }

    /// Checks a disk after power loss, and forgets what was not on it; returns the end of the log.
    fn check(&mut self, disk: &SimDisk) -> Lsn {
        let durable = Lsn(self.durable.load(SeqCst));
        let (found, end) = read_all(disk, self.truncated).expect("power loss is no damage");
        assert!(end >= durable, "the log ends at {end}, but {durable} was acknowledged");
        self.appended.retain(|(lsn, _)| *lsn <= end);
        let expected: Vec<&OwnedRecord> =
            self.appended.iter().filter(|(lsn, _)| *lsn > self.truncated).map(|(_, r)| r).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        let report = verify(&disk.env(), Path::new(DIR)).unwrap();
        assert_eq!(report.findings, []);
        end
    }

    fn fork(&self) -> Self {
        Self {
            packs: self.packs,
            appended: self.appended.clone(),
            durable: Arc::new(AtomicU64::new(self.durable.load(SeqCst))),
            truncated: self.truncated,
            next_tag: self.next_tag,
        }
    }
}

/// Half of it can be compressed; of every fifth record nothing.
fn payload(size: usize, tag: u64) -> Vec<u8> {
    let alike = if tag % 5 == 4 { 0 } else { size / 2 };
    let mut payload: Vec<u8> = (0..alike).map(|i| (i as u64 * 7 + tag) as u8).collect();
    payload.extend(noise(size - alike, tag));
    payload
}

/// Runs `steps` up to sync point `cut`, where power is lost or, for every third of `seeds`, the process is killed.
/// Recovers each seed's disk, runs `steps` again with power loss at `second_cut`, and recovers once more. False if the first run ended before the cut.
fn crash_twice(steps: &[Step], packs: bool, cut: u64, second_cut: u64, seeds: Range<u64>) -> bool {
    let disk = SimDisk::new();
    disk.cut_at_sync(cut);
    let mut told = Told { packs, ..Told::default() };
    let ran = told.run(&disk, Lsn(0), steps);
    assert!(ran.is_ok() || disk.is_cut(), "{ran:?}");
    for seed in seeds {
        let mut told = told.fork();
        let after = if seed % 3 == 2 { disk.kill() } else { disk.crash(seed) };
        let end = told.check(&after);
        after.cut_at_sync(second_cut);
        let ran = told.run(&after, end, steps);
        assert!(ran.is_ok() || after.is_cut(), "{ran:?}");
        let again = after.crash(seed + 1);
        let end = told.check(&again);
        // And it can be written to the end.
        told.run(&again, end, &[Step::Append(40), Step::Flush]).unwrap();
        told.check(&again.crash(0));
    }
    disk.is_cut()
}

#[test]
fn power_loss_at_every_sync_point() {
    use Step::{Append, Flush, Lazily, Reopen, Truncate};
    let os = |size| Lazily(size, Durability::Os);
    let mut steps = Vec::new();
    for round in 0..6 {
        steps.extend([Append(100), Append(0), Flush, Append(700), Append(700), Append(700), Flush]);
        steps.extend([os(300), os(900), os(10), Append(60), os(500)]);
        steps.extend([Append(3000), Append(1), Append(9000)]);
        steps.extend([if round % 2 == 0 { Truncate } else { Reopen }, Append(500), Append(2000), Flush]);
    }
    for packs in [false, true] {
        let mut cut = 1;
        while crash_twice(&steps, packs, cut, cut % 11 + 1, 0..6) {
            cut += 1;
        }
        assert!(cut > 50, "the run has only {cut} sync points");
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        // Few sizes, so that new records often fall where torn ones were.
        8 => prop::sample::select(vec![0usize, 8, 200, 500, 500, 1000, 3000]).prop_map(Step::Append),
        6 => (
            prop::sample::select(vec![0usize, 200, 500, 1000, 3000]),
            prop::sample::select(vec![Durability::Os, Durability::Os, Durability::Group(Duration::from_millis(5))]),
        )
            .prop_map(|(size, durability)| Step::Lazily(size, durability)),
        3 => Just(Step::Flush),
        1 => Just(Step::Truncate),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn power_loss_at_random(
        steps in prop::collection::vec(step(), 1..60),
        packs: bool,
        cut in 1u64..60,
        second_cut in 1u64..40,
        seed in 0u64..1 << 40,
    ) {
        crash_twice(&steps, packs, cut, second_cut, seed..seed + 3);
    }
}

/// Frames that were written without a sync are one group with what follows them: loss of any of them is a torn tail.
#[test]
fn a_hole_in_what_was_written_without_a_sync_is_no_damage() {
    let disk = SimDisk::new();
    let writer = open_writer(&disk, options(), Lsn(0));
    writer.wait_durable(writer.append(1, 1, &[1; 600]).unwrap()).unwrap();
    let mut ends = Vec::new();
    for tag in 2..6 {
        let record = Record::new(1, &[7; 600]);
        let end = writer.append_for(&record, tag, Durability::Os).unwrap();
        // A write each.
        writer.wait_written(end).unwrap();
        ends.push(end);
    }
    assert!(writer.durable_lsn() < ends[0], "nobody asked for a sync");
    // All of it outlives the process.
    assert_eq!(read_all(&disk.kill(), Lsn(0)).unwrap().0.len(), 5);
    let torn = disk.crash(1);
    let hole = 4096 + ends[0].0 as usize..4096 + ends[1].0 as usize;
    torn.tamper(&Path::new(DIR).join("0000000000000000.log"), |bytes| bytes[hole].fill(0)).unwrap();
    let (records, tail) = read_all(&torn, Lsn(0)).unwrap();
    assert_eq!((records.len(), tail), (2, ends[0]));
    // One sync, asked for by whoever needs it, makes all of it durable, without another record.
    writer.flush().unwrap();
    assert_eq!(writer.durable_lsn(), ends[3]);
    assert_eq!(read_all(&disk.crash(0), Lsn(0)).unwrap().0.len(), 5);
}

/// The records of a group may reach the disk in any order. One that got there behind one that did not
/// must neither be taken for damage nor come back behind what is written in its place.
#[test]
fn a_record_behind_a_hole_in_the_last_group_stays_dead() {
    let disk = SimDisk::new();
    let gate = Arc::new(parking_lot::Mutex::new(()));
    let held = gate.lock();
    let wait = gate.clone();
    let writer = open_writer(&disk, options().on_durable(move |_, _| drop(wait.lock())), Lsn(0));
    // The log thread is held in the callback for the first record while the others gather.
    let first = writer.append(1, 1, &[1; 600]).unwrap();
    while disk.contents(&Path::new(DIR).join("0000000000000000.log")).unwrap()[4096] == 0 {
        std::thread::yield_now();
    }
    let second = writer.append(1, 2, &[2; 600]).unwrap();
    let third = writer.append(1, 3, &[3; 600]).unwrap();
    let end = writer.append(1, 4, &[4; 600]).unwrap();
    drop(held);
    writer.wait_durable(end).unwrap();
    let torn = disk.crash(0);
    drop(writer);
    let path = Path::new(DIR).join("0000000000000000.log");
    let hole = 4096 + second.0 as usize..4096 + third.0 as usize;
    torn.tamper(&path, |bytes| bytes[hole].fill(0)).unwrap();

    let (records, tail) = read_all(&torn, Lsn(0)).unwrap();
    assert_eq!((records.len(), tail), (2, second));
    assert!(first < second);
    let writer = open_writer(&torn, options(), tail);
    // They are erased on the disk itself, not merely told from new ones.
    let bytes = torn.crash(0).contents(&path).unwrap();
    assert!(bytes[4096 + tail.0 as usize..].iter().all(|&b| b == 0));
    writer.append(1, 30, &[30; 600]).unwrap();
    writer.close().unwrap();
    let (records, _) = read_all(&torn, Lsn(0)).unwrap();
    assert_eq!(records.iter().map(|r| r.tag).collect::<Vec<_>>(), [1, 2, 30]);
}
