//! A target on examples and on what mutation by seed makes of them: what tests run of the fuzzer's targets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[path = "../crates/engine/tests/common/random.rs"]
pub mod random;

use random::Random;

/// How many cases: `AVOCET_FUZZ_CASES`, or else so many.
pub fn cases(otherwise: u64) -> u64 {
    std::env::var("AVOCET_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
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

/// Puts the examples where the fuzzer begins: the folder of a target in `AVOCET_FUZZ_CORPUS`, if that is set.
pub fn keep(target: &str, examples: &[Vec<u8>]) {
    let Some(folder) = std::env::var_os("AVOCET_FUZZ_CORPUS") else { return };
    let folder = Path::new(&folder).join(target);
    std::fs::create_dir_all(&folder).expect("made");
    for (n, example) in examples.iter().enumerate() {
        std::fs::write(folder.join(format!("example-{n:04}")), example).expect("written");
    }
}

/// Runs a target on the examples and on so many mutated ones.
#[allow(dead_code, reason = "where there are thousands of examples, not all are run")]
pub fn fuzz(name: &str, target: fn(&[u8]), examples: &[Vec<u8>], cases: u64) {
    keep(name, examples);
    examples.iter().for_each(|example| target(example));
    fuzz_mutated(target, examples, cases);
}

/// Runs a target on so many mutated examples; the seed of one that panics is told.
pub fn fuzz_mutated(target: fn(&[u8]), examples: &[Vec<u8>], cases: u64) {
    for seed in 0..cases {
        let mut random = Random(seed);
        let mut bytes = examples[random.below(examples.len())].clone();
        let other = &examples[random.below(examples.len())];
        mutate(&mut bytes, other, &mut random);
        let run = AssertUnwindSafe(|| target(&bytes));
        assert!(catch_unwind(run).is_ok(), "seed {seed} panicked: {}", bytes.escape_ascii());
    }
}
