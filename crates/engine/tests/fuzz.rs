//! Records that pass the log's checksums but say what no engine would write: recovery refuses them by name, or takes
//! what happens to make sense. It never panics, and never allocates without bound. And the targets of `fuzz/` for the
//! log, blocks and checkpoints, on mutated real ones.
//!
//! `AVOCET_FUZZ_CASES` says how many; the seed of a failing case is printed. With `AVOCET_FUZZ_CORPUS`, `fuzz/run` has the
//! examples from here.

#[path = "../../../fuzz/targets/block.rs"]
mod block;
#[path = "../../../fuzz/targets/checkpoint.rs"]
mod checkpoint;
#[path = "../../../fuzz/targets/record.rs"]
mod record;
#[path = "../../../fuzz/seeded.rs"]
mod seeded;

use std::path::Path;

use avocet_base::env::Disk;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_storage::cold::{BlockMeta, FORMAT_VERSION};
use record::history::{LOG, Record, corpus, options};
use seeded::fuzz;
use seeded::random::Random;

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

/// The corpus' directory with these records as its log.
fn directory(corpus: &SimDisk, records: &[Record]) -> SimDisk {
    record::history::directory(corpus, records.iter().map(|(kind, _, payload)| (*kind, &payload[..])))
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
    seeded::cases(150)
}

#[test]
fn any_bytes_are_taken_for_a_log() {
    let (disk, records) = corpus();
    let (mut payloads, mut sealed) = (vec![1], vec![2]);
    for (kind, tag, payload) in &records {
        let (tag, len) = ((*tag as u16).to_le_bytes(), (payload.len() as u16).to_le_bytes());
        payloads.push(*kind);
        payloads.extend(len);
        payloads.extend(payload);
        sealed.extend([*kind, 0, 0]);
        sealed.extend([tag, len].concat());
        sealed.extend(payload);
    }
    let segments = disk.list(Path::new(LOG)).expect("listed");
    let segment = segments.iter().find(|name| name.ends_with(".log")).expect("there is one");
    let bytes = disk.contents(&Path::new(LOG).join(segment)).expect("there");
    let frames = [&[0][..], &bytes[4096..]].concat();
    fuzz("record", record::run, &[payloads, sealed, frames], cases() * 2);
}

#[test]
fn any_bytes_are_taken_for_a_block() {
    let (disk, _) = corpus();
    let blocks = Path::new("/data/store/blocks");
    let mut examples = Vec::new();
    for name in disk.list(blocks).expect("listed") {
        let object = disk.contents(&blocks.join(name)).expect("there");
        // docs/data_file.md: a head of 16 bytes, chunks, the footer, which ends with the block's id, a trailer of 24 that begins with
        // its length.
        let trailer = object.len() - 24;
        let len = u32::from_le_bytes(object[trailer..trailer + 4].try_into().expect("four bytes")) as usize;
        let (chunks, footer) = object[16..trailer - 8].split_at(trailer - len - 16);
        let meta = BlockMeta::from_bytes(footer, FORMAT_VERSION).expect("a footer");
        for column in &meta.columns {
            let chunk = &chunks[column.offset as usize..][..column.len as usize];
            examples.push([&(len as u16).to_le_bytes()[..], footer, chunk].concat());
        }
        examples.push(object);
    }
    assert!(examples.len() > 2);
    fuzz("block", block::run, &examples, cases() * 40);
}

#[test]
fn a_checkpoint_that_ends_early_is_refused() {
    let example = checkpoint::example();
    (0..=example.len()).for_each(|len| checkpoint::run(&example[..len]));
}

#[test]
fn any_bytes_are_taken_for_a_checkpoint() {
    fuzz("checkpoint", checkpoint::run, &[checkpoint::example()], cases() * 10);
}
