//! Tailorings: what the collation of a language changes in the table of its UCA version, read from `data/tailorings.bin`
//! when a collation is first used.
//!
//! Scripts that a language puts elsewhere (Cyrillic before Latin in `ru`) are ranges of weights in the file; here the
//! characters that have such weights are entries like the others, so that a look-up is two look-ups in tables at most.
//!
//! *Sequences* are the characters that weigh together: contractions (Czech `ch`), and in Japanese a mark with the kana
//! before it (`かー`). The longest that a text goes on with is taken.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use avocet_base::codec::{Malformed, Reader};

use super::coding::number;
use super::tables::{CharMap, TAILORINGS, read_uca520, tables, weights};
use super::uca1400::{self, uca1400};

/// Levels that a collation can have.
pub(super) const LEVELS: usize = 4;

#[derive(Default)]
pub(super) struct Tailoring {
    /// Weights of characters, by level.
    pub characters: [CharMap; LEVELS],
    /// Of implicit weights: the first half in the base table, and now.
    pub leads: Vec<(u16, u16)>,
    /// What a tertiary weight is now; empty if they stay.
    pub cases: Vec<u16>,
    sequences: Sequences,
}

/// Sequences by their first character, and of these the longer first.
#[derive(Default)]
struct Sequences {
    heads: Vec<(char, Range<usize>)>,
    all: Vec<Sequence>,
    weights: Vec<u16>,
    /// A bit for each character of ASCII that begins a sequence.
    ascii_heads: u128,
    /// All characters of sequences but those that stand only at the end.
    inner: HashSet<char>,
    members: HashSet<char>,
    /// Whether each sequence's primary weights begin with those of its first character.
    extend_heads: bool,
    /// Primary weights of characters that begin a sequence, and of those that come second.
    head_weights: HashSet<Vec<u16>>,
    second_weights: HashSet<Vec<u16>>,
}

struct Sequence {
    rest: String,
    levels: [Range<usize>; LEVELS],
}

impl Tailoring {
    /// By its number in the file.
    pub fn get(number: u8) -> &'static Self {
        static ALL: [OnceLock<Tailoring>; COUNT] = [const { OnceLock::new() }; COUNT];
        ALL[usize::from(number)].get_or_init(|| load(number).expect("the file was packed with this program"))
    }

    /// Weights of the sequence that `head` and the text behind it begin with, and how many bytes of that text it takes.
    #[inline]
    pub fn sequence(&self, head: char, rest: &str, level: usize) -> Option<(&[u16], usize)> {
        let Sequences { heads, all, weights, ascii_heads, .. } = &self.sequences;
        if head.is_ascii() && ascii_heads >> u32::from(head) & 1 == 0 {
            return None;
        }
        let at = heads.binary_search_by_key(&head, |(head, _)| *head).ok()?;
        let found = all[heads[at].1.clone()].iter().find(|s| rest.starts_with(&s.rest))?;
        Some((&weights[found.levels[level].clone()], found.rest.len()))
    }

    /// Whether the character is part of a sequence.
    pub fn is_member(&self, c: char) -> bool {
        self.sequences.members.contains(&c)
    }

    /// Whether the character has this primary weight in all texts of ASCII, and begins with it in all others: it may begin sequences,
    /// but these go on beyond ASCII, and no other has it.
    pub fn is_plain_in_ascii(&self, c: char, weight: u16) -> bool {
        let Sequences { heads, all, weights, .. } = &self.sequences;
        heads.iter().all(|(head, range)| {
            all[range.clone()].iter().all(|sequence| {
                let begins = *head == c
                    && !sequence.rest.starts_with(|second: char| second.is_ascii())
                    && weights[sequence.levels[0].clone()].first() == Some(&weight);
                (begins || *head != c) && !sequence.rest.contains(c)
            })
        })
    }

    /// The last place, at or before `at`, that is inside of no sequence of either text, whatever they go on with. Before `at`,
    /// characters of one text are as long as those of the other.
    pub fn boundary(&self, a: &str, b: &str, mut at: usize) -> usize {
        let inner = &self.sequences.inner;
        if !inner.is_empty() {
            while let (Some(c), Some(d)) = (a[..at].chars().next_back(), b[..at].chars().next_back())
                && (inner.contains(&c) || inner.contains(&d))
            {
                at -= c.len_utf8();
            }
        }
        at
    }

    /// How many bytes at the start of `text` weigh the same in all strings that begin with characters that are like `text`'s
    /// one by one: those before the first that such a string could have in a sequence. `weigh` tells the primary weights of a character.
    pub fn settled(&self, text: &str, weigh: impl Fn(char) -> Vec<u16>) -> usize {
        let sequences = &self.sequences;
        if sequences.all.is_empty() {
            return text.len();
        }
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if !sequences.head_weights.contains(&weigh(c)) {
                continue;
            }
            let could_follow =
                chars.peek().is_none_or(|(_, next)| sequences.second_weights.contains(&weigh(*next)));
            if could_follow {
                return if sequences.extend_heads { at + c.len_utf8() } else { at };
            }
        }
        text.len()
    }
}

/// Tailorings in the file, and how many of them are of UCA 4.0.0, with one level. Behind them are counted those of UCA 14.0.0.
const IN_FILE: u8 = 53;
const OF_400: u8 = 22;
const COUNT: usize = IN_FILE as usize + uca1400::TAILORINGS;
pub(super) const FIRST_OF_1400: u8 = IN_FILE;
/// The one that has a fourth level: kana are told apart there.
const JAPANESE_KS: u8 = 43;

fn load(wanted: u8) -> Result<Tailoring, Malformed> {
    if let Some(number) = wanted.checked_sub(FIRST_OF_1400) {
        let root = if number > 0 { sequences_of_root()? } else { Weighed::new() };
        return read(&mut uca1400::tailoring(number)?, 3, &uca1400().weights[0], root);
    }
    let mut file = Reader::new(TAILORINGS);
    read_uca520(&mut file)?;
    for _ in 0..wanted {
        let len = file.u32("length")?;
        file.take(len as usize, "tailoring")?;
    }
    let len = file.u32("length")?;
    let mut from = Reader::new(file.take(len as usize, "tailoring")?);
    let levels = match wanted {
        ..OF_400 => 1,
        JAPANESE_KS => 4,
        _ => 3,
    };
    let base = if levels == 1 { &tables().uca4 } else { &tables().uca9[0] };
    read(&mut from, levels, base, Weighed::new())
}

/// Sequences with their weights by level.
type Weighed = BTreeMap<Vec<char>, [Vec<u16>; LEVELS]>;

fn sequences_of_root() -> Result<Weighed, Malformed> {
    let mut from = uca1400::tailoring(0)?;
    // Ranges, leads, cases, runs, characters: there are none.
    for _ in 0..5 {
        number(&mut from, "nothing")?;
    }
    let mut root = Weighed::new();
    read_sequences(&mut from, 3, &mut root)?;
    Ok(root)
}

/// Reads a tailoring of the table of these primary weights; it has these sequences, too, unless it weighs them otherwise.
fn read(
    from: &mut Reader<'_>,
    levels: usize,
    base: &CharMap,
    mut sequences: Weighed,
) -> Result<Tailoring, Malformed> {
    let mut tailoring = Tailoring::default();
    let moves = (0..number(from, "ranges")?).map(|_| Move::read(from)).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..number(from, "leads")? {
        tailoring.leads.push((number(from, "lead")? as u16, number(from, "lead")? as u16));
    }
    if number(from, "cases")? == 1 {
        tailoring.cases =
            (0..32).map(|_| Ok(number(from, "case")? as u16)).collect::<Result<_, Malformed>>()?;
    }
    let primary = &tables().uca9[0];
    if !moves.is_empty() {
        for (c, weights) in primary.iter() {
            if weights.iter().any(|weight| moves.iter().any(|m| m.has(*weight))) {
                tailoring.characters[0].insert(c, &moved(weights, &moves));
            }
        }
    }
    if !tailoring.leads.is_empty() {
        // Some ideographs stand in the base table with the weights that are implicit for the others.
        for (c, weights) in primary.iter() {
            if let [lead, rest] = *weights
                && u32::from(rest) == c & 0x7fff | 0x8000
                && let Some((_, to)) = tailoring.leads.iter().find(|(from, _)| *from == lead)
            {
                tailoring.characters[0].insert(c, &[*to, rest]);
            }
        }
    }
    read_runs(from, &mut tailoring)?;
    let mut c = 0;
    for _ in 0..number(from, "characters")? {
        c += number(from, "code point")?;
        for map in &mut tailoring.characters[..levels] {
            map.insert(c, &weights(from)?);
        }
    }
    read_sequences(from, levels, &mut sequences)?;
    tailoring.sequences = Sequences::new(sequences);
    from.finish("tailoring")?;
    tailoring.sequences.index(|c| {
        let (own, c) = (&tailoring.characters[0], u32::from(c));
        own.get(c).or_else(|| base.get(c)).unwrap_or(&[]).to_vec()
    });
    Ok(tailoring)
}

/// A range of primary weights that begins elsewhere now.
struct Move {
    weights: std::ops::RangeInclusive<u16>,
    to: u16,
    /// A weight that is put before each of them, or 0.
    lead: u16,
}

impl Move {
    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let [first, last, to, lead] =
            [number(from, "first")?, number(from, "last")?, number(from, "to")?, number(from, "lead")?]
                .map(|n| n as u16);
        Ok(Self { weights: first..=last, to, lead })
    }

    fn has(&self, weight: u16) -> bool {
        self.weights.contains(&weight)
    }
}

fn moved(weights: &[u16], moves: &[Move]) -> Vec<u16> {
    let mut to = Vec::with_capacity(weights.len());
    // An implicit pair is no weight of the table: its halves stay.
    let mut weights = weights.iter();
    while let Some(&weight) = weights.next() {
        match moves.iter().find(|m| m.has(weight)) {
            _ if weight >= 0xfb00 => {
                to.push(weight);
                to.extend(weights.next());
            }
            Some(m) => {
                to.extend((m.lead != 0).then_some(m.lead));
                to.push(weight - m.weights.start() + m.to);
            }
            None => to.push(weight),
        }
    }
    to
}

/// Characters in a row that have one primary weight and the commonest other ones.
fn read_runs(from: &mut Reader<'_>, tailoring: &mut Tailoring) -> Result<(), Malformed> {
    let mut c = 0;
    for _ in 0..number(from, "runs")? {
        c += number(from, "code point")?;
        for _ in 0..number(from, "run")? {
            tailoring.characters[0].insert(c, &[from.u16("weight")?]);
            tailoring.characters[1].insert(c, &[0x20]);
            tailoring.characters[2].insert(c, &[2]);
            c += 1;
        }
    }
    Ok(())
}

fn read_sequences(from: &mut Reader<'_>, levels: usize, to: &mut Weighed) -> Result<(), Malformed> {
    for _ in 0..number(from, "sequences")? {
        let mut chars = Vec::new();
        for _ in 0..number(from, "length")? {
            let c = char::from_u32(number(from, "code point")?);
            chars.push(c.ok_or_else(|| from.malformed("code point"))?);
        }
        let mut by_level = [const { Vec::new() }; LEVELS];
        for level in &mut by_level[..levels] {
            *level = weights(from)?;
        }
        to.insert(chars, by_level);
    }
    Ok(())
}

impl Sequences {
    fn new(weighed: Weighed) -> Self {
        let mut sequences = Self::default();
        let mut all: Vec<(char, Sequence)> = Vec::with_capacity(weighed.len());
        for (chars, by_level) in weighed {
            let Some((head, rest)) = chars.split_first() else { continue };
            sequences.members.extend(&chars);
            sequences.inner.extend(&chars[..chars.len() - 1]);
            let levels = by_level.map(|weights| {
                let start = sequences.weights.len();
                sequences.weights.extend(weights);
                start..sequences.weights.len()
            });
            all.push((*head, Sequence { rest: rest.iter().collect(), levels }));
        }
        all.sort_by(|(a, x), (b, y)| a.cmp(b).then(y.rest.len().cmp(&x.rest.len())));
        for (head, sequence) in all {
            let at = sequences.all.len();
            match sequences.heads.last_mut() {
                Some((last, range)) if *last == head => range.end = at + 1,
                _ => sequences.heads.push((head, at..at + 1)),
            }
            sequences.all.push(sequence);
        }
        sequences
    }

    /// Fills what is derived from the weights of single characters.
    fn index(&mut self, primary: impl Fn(char) -> Vec<u16>) {
        self.extend_heads = true;
        for (head, range) in &self.heads {
            let weights = primary(*head);
            for sequence in &self.all[range.clone()] {
                self.extend_heads &= self.weights[sequence.levels[0].clone()].starts_with(&weights);
                self.second_weights.extend(sequence.rest.chars().next().map(&primary));
            }
            self.head_weights.insert(weights);
            if head.is_ascii() {
                self.ascii_heads |= 1 << u32::from(*head);
            }
        }
    }
}
