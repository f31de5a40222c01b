//! Records that pass the log's checksums but say what no engine would write: recovery refuses them by name, or takes
//! what happens to make sense. It never panics, and never allocates without bound. And the targets of `fuzz/` for the
//! log, blocks and checkpoints, on mutated real ones.
//!
//! `AVOCET_FUZZ_CASES` says how many; the seed of a failing case is printed.

#[path = "../../../fuzz/targets/block.rs"]
mod block;
#[path = "../../../fuzz/targets/checkpoint.rs"]
mod checkpoint;
mod common;
#[path = "common/random.rs"]
mod random;
#[path = "../../../fuzz/targets/record.rs"]
mod record;

use std::path::Path;

use avocet_base::Lsn;
use avocet_base::env::Disk;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_log::{LogOptions, LogReader, LogWriter};
use avocet_types::{Datum, RowRef, SqlType};
use common::{create, insert, table};
use random::Random;

type Record = (u8, u64, Vec<u8>);

/// With a procedure `d.note(id, note)` that inserts rows, and changes them if they are there.
fn options(disk: &SimDisk) -> EngineOptions {
    let note = Procedure::new("d", "note", |call| {
        let t = table(call.txn.engine());
        match call.txn.insert(&t, call.arguments) {
            Err(EngineError::DuplicateKey { .. }) => {}
            other => return other.map(drop),
        }
        let mut key = Vec::new();
        assert!(
            t.indexes()[0].keys.encode_prefix(&call.arguments[..1], &mut key),
            "converted to the key's type"
        );
        let change = &mut |_: RowRef<'_>, to: &mut RowChange<'_>| to.set(1, &call.arguments[1]);
        let mut scratch = ReadScratch::default();
        call.txn.modify_unique(&t, &t.indexes()[0], &key, &mut scratch, change).map(drop)
    });
    let note = note.takes("id", SqlType::BIGINT).takes("note", typed::NewTable::text(200)).deterministic();
    EngineOptions { procedures: Procedures::default().with(note), ..common::options(disk) }
}

/// Records of every kind: definitions, rows, updates, deletes, blocks, segment changes, calls.
fn corpus() -> (SimDisk, Vec<Record>) {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    let t = table(&engine);
    for id in 0..20 {
        let mut txn = engine.begin(TxnOptions::default());
        let row = insert(&mut txn, &t, id).expect("inserted");
        if id % 3 == 0 {
            txn.update(&t, row, &[(1, Datum::str("changed"))]).expect("updated");
        }
        if id % 5 == 0 {
            txn.delete(&t, row).expect("deleted");
        }
        txn.commit().expect("logged").wait().expect("durable");
        if id == 12 {
            engine.freeze_all().expect("frozen");
        }
        if id > 14 {
            // Its arguments are shorter than what they make of the row.
            let arguments = [Datum::Int(id % 18 + 100), Datum::Str("n".repeat(id as usize).into())];
            engine.call("d", "note", &arguments).expect("called");
        }
    }
    engine.truncate_table("d", "t", true, std::time::Duration::from_secs(1)).expect("truncated");
    drop(engine);
    let mut reader = LogReader::open(disk.env(), Path::new("/data/log"), Lsn(0)).expect("readable");
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("whole") {
        records.push((record.kind, record.tag, record.payload.to_vec()));
    }
    assert!(records.len() > 20 && records.iter().any(|(kind, ..)| *kind == 4));
    (disk, records)
}

fn mutate(records: &mut [Record], random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(records.len());
        let other = records[random.below(records.len())].2.clone();
        let payload = &mut records[at].2;
        let place = random.below(payload.len() + 1);
        match random.below(7) {
            0 if place < payload.len() => payload[place] ^= 1 << random.below(8),
            1 if place < payload.len() => payload[place] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => payload.truncate(place),
            3 => payload.extend_from_slice(&other),
            4 => drop(payload.splice(place.., other.iter().copied().skip(place))),
            5 => payload.insert(place, random.next() as u8),
            _ => records[at].0 = 1 + random.below(4) as u8,
        }
    }
}

fn copy(from: &SimDisk, to: &SimDisk, dir: &Path) {
    to.create_dir_all(dir).expect("made");
    for name in from.list(dir).expect("listed") {
        let path = dir.join(name);
        match from.contents(&path) {
            Ok(bytes) => to.create(&path).expect("made").write_at(&bytes, 0).expect("written"),
            Err(_) => copy(from, to, &path),
        }
    }
}

/// The corpus' directory with these records as its log.
fn directory(corpus: &SimDisk, records: &[Record]) -> SimDisk {
    let disk = SimDisk::new();
    copy(corpus, &disk, Path::new("/data/store"));
    let marker = Path::new("/data/avocet");
    let bytes = corpus.contents(marker).expect("there");
    disk.create(marker).expect("made").write_at(&bytes, 0).expect("written");
    let mut log_options = LogOptions::new("/data/log");
    log_options.segment_size = 16 << 10;
    let log = LogWriter::open(disk.env(), log_options, Lsn(0)).expect("opened");
    for (n, (kind, _, payload)) in records.iter().enumerate() {
        log.append(*kind, n as u64 + 1, payload).expect("appended");
    }
    log.close().expect("closed");
    disk
}

#[test]
fn records_that_make_no_sense_are_refused() {
    let (disk, corpus) = corpus();
    Engine::open(options(&directory(&disk, &corpus))).expect("the corpus itself is sound");
    let mut refused = 0;
    let cases = cases();
    for seed in 0..cases {
        let mut records = corpus.clone();
        mutate(&mut records, &mut Random(seed));
        let open =
            std::panic::AssertUnwindSafe(|| Engine::open(options(&directory(&disk, &records))).map(drop));
        match std::panic::catch_unwind(open) {
            Err(_) => panic!("recovery panicked with seed {seed}"),
            Ok(Err(e)) => {
                // A block that was never written is no file.
                let is_named = matches!(e, EngineError::NotRegistered(_));
                assert!(
                    is_named || matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Io),
                    "seed {seed}: {e}"
                );
                refused += 1;
            }
            Ok(Ok(())) => {}
        }
    }
    assert!(refused > cases / 4, "only {refused} of {cases} were refused");
}

fn cases() -> u64 {
    std::env::var("AVOCET_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

fn mutate_bytes(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let place = random.below(bytes.len() + 1);
        let from = random.below(other.len() + 1);
        let some = other[from..].iter().copied().take(1 + random.below(40));
        match random.below(7) {
            0 if place < bytes.len() => bytes[place] ^= 1 << random.below(8),
            1 if place < bytes.len() => bytes[place] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 if random.below(4) == 0 => bytes.truncate(place),
            3 => drop(bytes.splice(place..place, some)),
            4 => drop(bytes.splice(place.., some)),
            5 => bytes.insert(place, random.next() as u8),
            _ => {
                let end = bytes.len().min(place + random.below(8));
                bytes.drain(place..end);
            }
        }
    }
}

/// A target takes the examples, and what mutation makes of them.
fn fuzz(target: fn(&[u8]), examples: &[Vec<u8>], cases: u64) {
    examples.iter().for_each(|example| target(example));
    for seed in 0..cases {
        let mut random = Random(seed);
        let mut bytes = examples[random.below(examples.len())].clone();
        let other = &examples[random.below(examples.len())];
        mutate_bytes(&mut bytes, other, &mut random);
        let run = std::panic::AssertUnwindSafe(|| target(&bytes));
        assert!(std::panic::catch_unwind(run).is_ok(), "seed {seed} panicked");
    }
}

#[test]
fn any_bytes_are_taken_for_a_log() {
    let (disk, records) = corpus();
    let mut payloads = vec![1];
    for (kind, _, payload) in &records {
        payloads.push(*kind);
        payloads.extend((payload.len() as u16).to_le_bytes());
        payloads.extend(payload);
    }
    let segments = disk.list(Path::new("/data/log")).expect("listed");
    let segment = segments.iter().find(|name| name.ends_with(".log")).expect("there is one");
    let bytes = disk.contents(&Path::new("/data/log").join(segment)).expect("there");
    let frames = [&[0][..], &bytes[4096..]].concat();
    fuzz(record::run, &[payloads, frames], cases() * 2);
}

#[test]
fn any_bytes_are_taken_for_a_block() {
    let (disk, _) = corpus();
    let blocks = Path::new("/data/store/blocks");
    let mut examples = Vec::new();
    for name in disk.list(blocks).expect("listed") {
        let object = disk.contents(&blocks.join(name)).expect("there");
        // docs/data_file.md: a head of 16 bytes, chunks, the footer, a trailer of 24 that begins with its length.
        let trailer = object.len() - 24;
        let len = u32::from_le_bytes(object[trailer..trailer + 4].try_into().expect("four bytes")) as usize;
        let (chunks, footer) = object[16..trailer].split_at(trailer - len - 16);
        let meta = avocet_storage::cold::BlockMeta::from_bytes(footer).expect("a footer");
        for column in &meta.columns {
            let chunk = &chunks[column.offset as usize..][..column.len as usize];
            examples.push([&(len as u16).to_le_bytes()[..], footer, chunk].concat());
        }
        examples.push(object);
    }
    assert!(examples.len() > 2);
    fuzz(block::run, &examples, cases() * 40);
}

#[test]
fn a_checkpoint_that_ends_early_is_refused() {
    let example = checkpoint::example();
    (0..=example.len()).for_each(|len| checkpoint::run(&example[..len]));
}

#[test]
fn any_bytes_are_taken_for_a_checkpoint() {
    fuzz(checkpoint::run, &[checkpoint::example()], cases() * 10);
}
