//! Character sets that are not Unicode: codes of characters, upper and lower case, and weights of their collations, read
//! from `data/charsets.bin` when a character set is first used. Texts are UTF-8 inside; codes are met where bytes come in
//! and go out, and where functions look at them.
//!
//! The tables are MySQL's own. Those of the WHATWG encodings, which libraries have, differ from them in most multi-byte sets
//! (`big5`, `sjis`, `ujis`, `euckr`) and in what has no character.

use std::collections::HashMap;
use std::sync::OnceLock;

use avocet_base::codec::{Malformed, Reader};

use super::charset::Charset;

/// Numbers by number: pages of 256 entries, each one more than the number, or 0.
#[derive(Default)]
struct Pages {
    index: Vec<u16>,
    entries: Vec<u32>,
}

impl Pages {
    fn insert(&mut self, at: u32, to: u32) {
        let page = (at >> 8) as usize;
        if self.index.len() <= page {
            self.index.resize(page + 1, 0);
        }
        if self.entries.is_empty() {
            self.entries = vec![0; 256];
        }
        if self.index[page] == 0 {
            self.index[page] = (self.entries.len() / 256) as u16;
            self.entries.resize(self.entries.len() + 256, 0);
        }
        self.entries[usize::from(self.index[page]) * 256 + (at & 255) as usize] = to + 1;
    }

    fn remove(&mut self, at: u32) {
        if self.get(at).is_some() {
            self.entries[usize::from(self.index[(at >> 8) as usize]) * 256 + (at & 255) as usize] = 0;
        }
    }

    #[inline]
    fn get(&self, at: u32) -> Option<u32> {
        let page = *self.index.get((at >> 8) as usize)?;
        self.entries[usize::from(page) * 256 + (at & 255) as usize].checked_sub(1)
    }
}

/// One character set.
#[derive(Default)]
pub(super) struct Coding {
    /// Characters by code: its bytes as a big-endian number.
    characters: Pages,
    codes: Pages,
    upper: HashMap<char, char>,
    lower: HashMap<char, char>,
    keeps_ascii_case: bool,
    /// By the id of a collation, what codes weigh that do not weigh as themselves.
    weights: Vec<(u16, HashMap<u32, Weights>)>,
}

/// Up to three bytes, left-aligned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weights {
    bytes: [u8; 3],
    len: u8,
}

impl Weights {
    pub fn new(number: u32, len: usize) -> Self {
        let mut bytes = [0; 3];
        bytes[..len].copy_from_slice(&number.to_be_bytes()[4 - len..]);
        Self { bytes, len: len as u8 }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// How many bytes a code has.
fn len_of(code: u32) -> usize {
    match code {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 3,
    }
}

impl Coding {
    /// That of a character set in the file, which `Charset` has in the same order.
    pub fn get(charset: Charset) -> &'static Self {
        static ALL: [OnceLock<Coding>; Charset::CODED] = [const { OnceLock::new() }; Charset::CODED];
        let position = charset.coded_position().expect("asked only for those");
        ALL[position].get_or_init(|| load(position).expect("the file was packed with this program"))
    }

    /// The character that a text of this character set begins with, and how many bytes it has; `None` if it is none.
    /// A byte that no character has is a question mark where characters have one byte.
    fn first(&self, bytes: &[u8], max_len: usize) -> Option<(char, usize)> {
        let mut code = 0;
        for (i, byte) in bytes.iter().take(max_len).enumerate() {
            code = code << 8 | u32::from(*byte);
            if let Some(c) = self.characters.get(code).and_then(char::from_u32)
                && len_of(code) == i + 1
            {
                return Some((c, i + 1));
            }
        }
        (max_len == 1 && !bytes.is_empty()).then_some(('?', 1))
    }

    pub fn has_byte(&self, byte: u8) -> bool {
        self.characters.get(byte.into()).and_then(char::from_u32).is_some()
    }

    /// The text that the bytes are, or where they are none.
    pub fn decode(&self, bytes: &[u8], max_len: usize) -> Result<String, usize> {
        let mut text = String::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let (c, len) = self.first(&bytes[at..], max_len).ok_or(at)?;
            text.push(c);
            at += len;
        }
        Ok(text)
    }

    pub fn code(&self, c: char) -> Option<u32> {
        self.codes.get(c.into())
    }

    /// The character that comes back from a character's code; `?` if it has none.
    pub fn kept(&self, c: char) -> char {
        let back = self.code(c).and_then(|code| self.characters.get(code)).and_then(char::from_u32);
        back.unwrap_or('?')
    }

    pub fn encode(&self, text: &str, to: &mut Vec<u8>) {
        for c in text.chars() {
            let code = self.code(c).unwrap_or(u32::from(b'?'));
            to.extend_from_slice(&code.to_be_bytes()[4 - len_of(code)..]);
        }
    }

    pub fn case(&self, c: char, upper: bool) -> char {
        let map = if upper { &self.upper } else { &self.lower };
        map.get(&c).copied().unwrap_or(c)
    }

    /// Whether the case of ASCII's letters, and of no others of its characters, changes as there.
    pub fn keeps_ascii_case(&self) -> bool {
        self.keeps_ascii_case
    }

    /// The characters with what they weigh in a collation; as their codes in `_bin` collations.
    pub fn weights(&self, collation: u16) -> impl Iterator<Item = (char, Weights)> {
        let own = self.weights.iter().find(|(id, _)| *id == collation).map(|(_, own)| own);
        let pages = self.codes.index.iter().enumerate().filter(|(_, page)| **page != 0);
        let points = pages.flat_map(|(high, _)| (0..256).map(move |low| (high as u32) << 8 | low));
        points.filter_map(move |point| {
            let (c, code) = (char::from_u32(point)?, self.codes.get(point)?);
            let own = own.and_then(|own| own.get(&code).copied());
            Some((c, own.unwrap_or_else(|| Weights::new(code, len_of(code)))))
        })
    }
}

fn load(position: usize) -> Result<Coding, Malformed> {
    let mut file = Reader::new(include_bytes!("../../data/charsets.bin"));
    for _ in 0..position {
        let len = file.u32("length")?;
        file.take(len as usize, "character set")?;
    }
    let len = file.u32("length")?;
    let mut from = Reader::new(file.take(len as usize, "character set")?);
    let coding = read(&mut from)?;
    from.finish("character set")?;
    Ok(coding)
}

fn read(from: &mut Reader<'_>) -> Result<Coding, Malformed> {
    let mut coding = Coding::default();
    let mut read = Vec::new();
    let (mut code, mut point) = (0, 0i32);
    for _ in 0..number(from, "runs")? {
        code += number(from, "code")?;
        for _ in 0..number(from, "run")? {
            let step = number(from, "code point")?;
            point += (step >> 1) as i32 ^ -((step & 1) as i32);
            read.push((code, point as u32));
            code += 1;
        }
    }
    // The first code of a character is its own.
    for (code, point) in read.into_iter().rev() {
        coding.characters.insert(code, point);
        coding.codes.insert(point, code);
    }
    pairs(from, |point, code| coding.codes.insert(point, code))?;
    pairs(from, |point, _| coding.codes.remove(point))?;
    for map in [&mut coding.upper, &mut coding.lower] {
        pairs(from, |c, to| map.extend(char::from_u32(c).zip(char::from_u32(to))))?;
    }
    coding.keeps_ascii_case = ('\0'..='\x7f').all(|c| {
        coding.case(c, true) == c.to_ascii_uppercase() && coding.case(c, false) == c.to_ascii_lowercase()
    });
    for _ in 0..number(from, "collations")? {
        let id = number(from, "id")? as u16;
        let mut own = HashMap::new();
        let mut code = 0;
        for _ in 0..number(from, "weights")? {
            code += number(from, "code")?;
            let len = number(from, "length")? as usize;
            if len > 3 {
                return Err(from.malformed("weights"));
            }
            own.insert(code, Weights::new(number(from, "weight")?, len));
        }
        coding.weights.push((id, own));
    }
    Ok(coding)
}

/// Pairs of numbers, the first of each from that of the pair before.
fn pairs(from: &mut Reader<'_>, mut take: impl FnMut(u32, u32)) -> Result<(), Malformed> {
    let mut first = 0;
    for _ in 0..number(from, "pairs")? {
        first += number(from, "code point")?;
        take(first, number(from, "pair")?);
    }
    Ok(())
}

pub(super) fn number(from: &mut Reader<'_>, what: &'static str) -> Result<u32, Malformed> {
    from.varint(what).map(|v| v as u32)
}
