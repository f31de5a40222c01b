//! UCA 14.0.0 as MariaDB has it: `data/uca1400.bin`, which `data/uca1400.py` writes.
//!
//! The file is in parts, each behind its length: the table, told by its differences to that of 9.0.0, and then tailorings. The first is
//! the root's, the sequences of the Default Unicode Collation Element Table (Thai vowels before their consonants, `l·`); languages have
//! them as well, but for those that they weigh otherwise.

use std::sync::LazyLock;

use avocet_base::codec::{Malformed, Reader};

use super::coding::number;
use super::tables::{Cases, CharMap, mapping, section, tables, weights};

pub(super) struct Uca1400 {
    /// By level.
    pub weights: [CharMap; 3],
    /// Where they differ from those of UCA 9.0.0.
    pub cases: Cases,
}

const FILE: &[u8] = include_bytes!("../../data/uca1400.bin");

/// Tailorings in the file.
pub(super) const TAILORINGS: usize = 23;

pub(super) fn uca1400() -> &'static Uca1400 {
    static TABLE: LazyLock<Uca1400> =
        LazyLock::new(|| part(0).and_then(read).expect("the file was packed with this program"));
    &TABLE
}

/// What stands in the file for a tailoring.
pub(super) fn tailoring(number: u8) -> Result<Reader<'static>, Malformed> {
    part(1 + number)
}

fn part(wanted: u8) -> Result<Reader<'static>, Malformed> {
    let mut file = Reader::new(FILE);
    for _ in 0..wanted {
        let len = file.u32("length")?;
        file.take(len as usize, "part")?;
    }
    let len = file.u32("length")?;
    Ok(Reader::new(file.take(len as usize, "part")?))
}

fn read(mut from: Reader<'_>) -> Result<Uca1400, Malformed> {
    let mut table = Uca1400 { weights: Default::default(), cases: Cases::default() };
    let moves = [Moves::read(&mut from)?, Moves::read(&mut from)?, Moves::default()];
    for ((to, moves), before) in table.weights.iter_mut().zip(&moves).zip(&tables().uca9) {
        for (c, weights) in before.iter() {
            let moved: Vec<u16> = weights.iter().map(|weight| moves.apply(*weight)).collect();
            to.insert(c, &moved);
        }
    }
    section(&mut from, |c, from| {
        for level in &mut table.weights {
            level.insert(c, &weights(from)?);
        }
        Ok(())
    })?;
    for map in [&mut table.cases.upper, &mut table.cases.lower] {
        section(&mut from, |c, from| mapping(map, c, from))?;
    }
    from.finish("table of UCA 14.0.0")?;
    Ok(table)
}

/// Where weights of 9.0.0 are now: from each of these on, they are so much larger.
#[derive(Default)]
struct Moves(Vec<(u16, u16)>);

impl Moves {
    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (mut first, mut shift) = (0u16, 0u16);
        let moves = (0..number(from, "moves")?).map(|_| {
            first = first.wrapping_add(number(from, "weight")? as u16);
            let zigzag = number(from, "shift")? as u16;
            let change = zigzag >> 1;
            shift = shift.wrapping_add(if zigzag & 1 == 0 { change } else { change.wrapping_neg() });
            Ok((first, shift))
        });
        moves.collect::<Result<_, _>>().map(Self)
    }

    fn apply(&self, weight: u16) -> u16 {
        let at = self.0.partition_point(|(first, _)| *first <= weight);
        at.checked_sub(1).map_or(weight, |at| weight.wrapping_add(self.0[at].1))
    }
}
