//! LIKE: a pattern is split at its `%` into segments of characters and `_`. The first must stand at the start of the
//! text, the last at its end, those between are looked for from left to right. Characters match by the collation,
//! one against one: `ss` is not LIKE `ß`, though it equals it.

use super::Collation;
use super::weights::Rules;

/// A pattern, made once and matched many times.
#[derive(Clone, Debug)]
pub struct LikePattern {
    collation: Collation,
    /// What stands between the `%`; never empty.
    segments: Vec<Segment>,
    /// The characters before the first wildcard.
    prefix: String,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    elements: Vec<Element>,
    /// The segment as a text, if it has no `_`.
    literal: Option<String>,
    /// Of a long text, how many of its characters are, at the end of its first 1, 2, 3 …, those that it begins with (Knuth, Morris, Pratt).
    borders: Vec<usize>,
}

/// Texts of more characters are looked for in one pass over what they are looked for in; with fewer, starting anew at each place is
/// faster, and bounded.
const FEW_CHARACTERS: usize = 16;

/// After so many characters were looked at, whoever matches is asked whether to go on: within milliseconds.
const LOOKS_PER_CHECK: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    One,
    Char(char),
}

impl LikePattern {
    /// `escape` makes a wildcard a plain character; MySQL's default is a backslash, `None` is `ESCAPE ''`.
    pub fn new(pattern: &str, escape: Option<char>, collation: Collation) -> Self {
        let mut segments = vec![Segment::default()];
        let (mut prefix, mut plain) = (String::new(), true);
        let mut chars = pattern.chars().peekable();
        while let Some(c) = chars.next() {
            let element = match c {
                _ if Some(c) == escape => Element::Char(chars.next().unwrap_or(c)),
                '%' => {
                    segments.push(Segment::default());
                    plain = false;
                    continue;
                }
                '_' => Element::One,
                _ => Element::Char(c),
            };
            match element {
                Element::Char(c) if plain => prefix.push(c),
                _ => plain = false,
            }
            segments.last_mut().expect("there is one from the start").elements.push(element);
        }
        for segment in &mut segments {
            segment.literal = segment
                .elements
                .iter()
                .map(|e| if let Element::Char(c) = e { Some(*c) } else { None })
                .collect();
            segment.prepare(collation.rules());
        }
        Self { collation, segments, prefix }
    }

    /// The characters that every matching text begins with, by the collation.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether there are no wildcards, so that the pattern matches itself alone.
    pub fn is_plain(&self) -> bool {
        self.segments.len() == 1 && self.segments[0].literal.is_some()
    }

    /// Whether the pattern is its prefix and one `%`.
    pub fn is_prefix_only(&self) -> bool {
        self.segments.len() == 2 && self.segments[0].literal.is_some() && self.segments[1].elements.is_empty()
    }

    pub fn matches(&self, text: &str) -> bool {
        self.matches_while(text, &mut || true).unwrap_or(false)
    }

    /// The same, for texts and patterns that may be long: `goes_on` is asked now and then, and there is no answer if it says no.
    pub fn matches_while(&self, text: &str, goes_on: &mut dyn FnMut() -> bool) -> Option<bool> {
        let rules = self.collation.rules();
        let (first, rest) = self.segments.split_first().expect("there is always one");
        let Some(mut at) = first.match_at(rules, text, 0) else { return Some(false) };
        let Some((last, middle)) = rest.split_last() else { return Some(at == text.len()) };
        for segment in middle {
            let Some((_, end)) = segment.find(rules, text, at, goes_on)? else { return Some(false) };
            at = end;
        }
        let Some(start) = last.start_at_end(text, at) else { return Some(false) };
        Some(last.match_at(rules, text, start).is_some())
    }
}

impl Segment {
    fn prepare(&mut self, rules: &'static Rules) {
        if !rules.is_table() || self.literal.is_none() || self.elements.len() <= FEW_CHARACTERS {
            return;
        }
        self.borders = Vec::with_capacity(self.elements.len());
        self.borders.push(0);
        for at in 1..self.elements.len() {
            let Element::Char(c) = self.elements[at] else { continue };
            let border = self.longer_border(rules, self.borders[at - 1], c);
            self.borders.push(border);
        }
    }

    /// How many characters of the segment stand at the end of a text that ended with `have` of them, and goes on with this one.
    fn longer_border(&self, rules: &'static Rules, mut have: usize, c: char) -> usize {
        loop {
            match self.elements.get(have) {
                Some(Element::Char(wanted)) if rules.same_char(c, *wanted) => return have + 1,
                _ if have == 0 => return 0,
                _ => have = self.borders[have - 1],
            }
        }
    }

    fn find_by_borders(&self, rules: &'static Rules, text: &str, from: usize) -> Option<(usize, usize)> {
        let count = self.elements.len();
        let mut have = 0;
        for (at, c) in text[from..].char_indices() {
            have = self.longer_border(rules, have, c);
            if have == count {
                let end = from + at + c.len_utf8();
                let start = text[..end].char_indices().rev().nth(count - 1)?.0;
                return Some((start, end));
            }
        }
        None
    }

    /// The end of the segment if it stands at byte `at`.
    fn match_at(&self, rules: &'static Rules, text: &str, at: usize) -> Option<usize> {
        self.match_counted(rules, text, at, &mut 0)
    }

    /// The same; adds how many characters it looked at.
    fn match_counted(
        &self,
        rules: &'static Rules,
        text: &str,
        mut at: usize,
        looks: &mut usize,
    ) -> Option<usize> {
        let bytes = text.as_bytes();
        for element in &self.elements {
            *looks += 1;
            let byte = *bytes.get(at)?;
            let (c, len) = if byte < 0x80 {
                (char::from(byte), 1)
            } else {
                let c = text[at..].chars().next()?;
                (c, c.len_utf8())
            };
            if let Element::Char(wanted) = *element
                && !rules.same_char(c, wanted)
            {
                return None;
            }
            at += len;
        }
        Some(at)
    }

    /// The first place from `at` on where the segment stands; no answer if `goes_on` says no.
    fn find(
        &self,
        rules: &'static Rules,
        text: &str,
        mut at: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Option<(usize, usize)>> {
        if let (false, Some(literal)) = (rules.is_table(), &self.literal) {
            let start = text[at..].find(literal.as_str());
            return Some(start.map(|start| (at + start, at + start + literal.len())));
        }
        if !self.borders.is_empty() {
            return Some(self.find_by_borders(rules, text, at));
        }
        // With `_` in it, a segment is looked for anew at each place, which takes its length times the text's.
        let mut looks = 0;
        loop {
            if let Some(end) = self.match_counted(rules, text, at, &mut looks) {
                return Some(Some((at, end)));
            }
            if looks >= LOOKS_PER_CHECK {
                looks = 0;
                if !goes_on() {
                    return None;
                }
            }
            let Some(c) = text[at..].chars().next() else { return Some(None) };
            at += c.len_utf8();
        }
    }

    /// Where the segment must begin to end with the text, if that is not before `from`.
    fn start_at_end(&self, text: &str, from: usize) -> Option<usize> {
        let count = self.elements.len();
        let start = match count.checked_sub(1) {
            None => text.len(),
            Some(_) if text.is_ascii() => text.len().checked_sub(count)?,
            Some(before) => text.char_indices().rev().nth(before)?.0,
        };
        (start >= from).then_some(start)
    }
}

impl Collation {
    /// The bytes of `text`, from byte `from` on, where `wanted` first stands.
    pub fn find(self, text: &str, wanted: &str, from: usize) -> Option<(usize, usize)> {
        let elements: Vec<_> = wanted.chars().map(Element::Char).collect();
        let mut segment = Segment { elements, literal: Some(wanted.to_owned()), borders: Vec::new() };
        segment.prepare(self.rules());
        segment.find(self.rules(), text, from, &mut || true).flatten()
    }
}
