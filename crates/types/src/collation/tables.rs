//! Weights and case mappings of characters, as `data/collations.py` and `data/tailorings.py` pack them.
//!
//! A `CharMap` holds a run of numbers for each character that has one: pages of 256 characters, each entry
//! an offset and a length in one array. Characters without an entry have implicit weights (UTS #10, section 10.1.3).

use std::collections::HashMap;
use std::sync::LazyLock;

use avocet_base::codec::{Malformed, Reader};

use super::coding::number;

/// Runs of numbers by character.
#[derive(Default)]
pub(super) struct CharMap {
    /// Number of the page of each 256 characters; page 0 is empty.
    pages: Vec<u16>,
    /// Offset and length: `offset << 8 | length + 1`; 0 is no entry.
    entries: Vec<u32>,
    numbers: Vec<u16>,
}

impl CharMap {
    pub fn insert(&mut self, c: u32, numbers: &[u16]) {
        if self.pages.is_empty() {
            self.pages = vec![0; 0x1100];
            self.entries = vec![0; 256];
        }
        let page = &mut self.pages[(c >> 8) as usize];
        if *page == 0 {
            *page = (self.entries.len() / 256) as u16;
            self.entries.resize(self.entries.len() + 256, 0);
        }
        let entry = (self.numbers.len() as u32) << 8 | (numbers.len() as u32 + 1);
        self.entries[usize::from(*page) * 256 + (c & 255) as usize] = entry;
        self.numbers.extend_from_slice(numbers);
    }

    #[inline]
    pub fn get(&self, c: u32) -> Option<&[u16]> {
        let page = usize::from(*self.pages.get((c >> 8) as usize)?);
        let entry = self.entries[page * 256 + (c & 255) as usize];
        let (start, len) = ((entry >> 8) as usize, (entry & 255) as usize);
        (len > 0).then(|| &self.numbers[start..start + len - 1])
    }

    /// The characters that have an entry, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u16])> {
        let pages = self.pages.iter().enumerate().filter(|(_, page)| **page != 0);
        let points = pages.flat_map(|(high, _)| (0..256).map(move |low| (high as u32) << 8 | low));
        points.filter_map(|c| Some((c, self.get(c)?)))
    }
}

/// Case mappings of single characters.
#[derive(Default)]
pub(super) struct Cases {
    pub upper: HashMap<char, char>,
    pub lower: HashMap<char, char>,
}

impl Cases {
    pub fn map(&self, c: char, upper: bool) -> char {
        let map = if upper { &self.upper } else { &self.lower };
        map.get(&c).copied().unwrap_or(c)
    }
}

#[derive(Default)]
pub(super) struct Tables {
    /// UCA 9.0.0: weights that are not zero, by level.
    pub uca9: [CharMap; 3],
    /// UCA 4.0.0, primary weights.
    pub uca4: CharMap,
    /// general_ci.
    pub general: CharMap,
    pub cases_0900: Cases,
    pub cases_older: Cases,
}

pub(super) fn tables() -> &'static Tables {
    static TABLES: LazyLock<Tables> = LazyLock::new(|| {
        read(Reader::new(include_bytes!("../../data/collations.bin")))
            .expect("the file was packed with this program")
    });
    &TABLES
}

/// What UCA 5.2.0 has of its own.
#[derive(Default)]
pub(super) struct Uca520 {
    /// Primary weights.
    pub weights: CharMap,
    /// Where they differ from those of the older collations.
    pub cases: Cases,
}

/// `data/tailorings.bin`: UCA 5.2.0, then the tailorings.
pub(super) const TAILORINGS: &[u8] = include_bytes!("../../data/tailorings.bin");

pub(super) fn uca520() -> &'static Uca520 {
    static TABLE: LazyLock<Uca520> = LazyLock::new(|| {
        read_uca520(&mut Reader::new(TAILORINGS)).expect("the file was packed with this program")
    });
    &TABLE
}

pub(super) fn read_uca520(from: &mut Reader<'_>) -> Result<Uca520, Malformed> {
    let mut table = Uca520::default();
    section(from, |c, from| {
        table.weights.insert(c, &weights(from)?);
        Ok(())
    })?;
    for map in [&mut table.cases.upper, &mut table.cases.lower] {
        section(from, |c, from| mapping(map, c, from))?;
    }
    Ok(table)
}

/// MySQL takes only so many collation elements of a character.
const MAX_ELEMENTS: usize = 8;

fn read(mut from: Reader<'_>) -> Result<Tables, Malformed> {
    let mut tables = Tables::default();
    section(&mut from, |c, from| {
        let elements = number(from, "elements")?;
        let mut levels = [const { Vec::new() }; 3];
        for _ in 0..elements {
            for level in &mut levels {
                level.push(number(from, "weight")? as u16);
            }
        }
        for (map, mut weights) in tables.uca9.iter_mut().zip(levels) {
            weights.truncate(MAX_ELEMENTS);
            weights.retain(|w| *w != 0);
            map.insert(c, &weights);
        }
        Ok(())
    })?;
    section(&mut from, |c, from| {
        tables.uca4.insert(c, &weights(from)?);
        Ok(())
    })?;
    section(&mut from, |c, from| {
        tables.general.insert(c, &[number(from, "weight")? as u16]);
        Ok(())
    })?;
    for cases in [&mut tables.cases_0900, &mut tables.cases_older] {
        for map in [&mut cases.upper, &mut cases.lower] {
            section(&mut from, |c, from| mapping(map, c, from))?;
        }
    }
    from.finish("collations")?;
    Ok(tables)
}

pub(super) fn mapping(map: &mut HashMap<char, char>, c: u32, from: &mut Reader<'_>) -> Result<(), Malformed> {
    let to = number(from, "character")?;
    map.extend(char::from_u32(c).zip(char::from_u32(to)));
    Ok(())
}

/// A count and as many weights.
pub(super) fn weights(from: &mut Reader<'_>) -> Result<Vec<u16>, Malformed> {
    (0..number(from, "weights")?).map(|_| Ok(number(from, "weight")? as u16)).collect()
}

/// A count, and as many records, each behind its code point.
pub(super) fn section(
    from: &mut Reader<'_>,
    mut record: impl FnMut(u32, &mut Reader<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut c = 0;
    for _ in 0..from.u32("records")? {
        c += number(from, "code point")?;
        record(c, from)?;
    }
    Ok(())
}
