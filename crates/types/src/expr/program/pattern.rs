//! LIKE patterns and searching for a text, under a collation or on bytes.

use memchr::memmem;

use crate::collation::{Collation, LikePattern};
use crate::datum::Datum;
use crate::expr::func::text::bytes;

/// A pattern ready to match.
#[derive(Debug)]
pub(crate) enum Pattern {
    Text(LikePattern),
    Bytes(BytePattern),
}

impl Pattern {
    pub fn new(pattern: &Datum<'_>, escape: Option<char>, collation: Option<Collation>) -> Self {
        match (pattern, collation) {
            (Datum::Str(text), Some(collation)) => Self::Text(LikePattern::new(text, escape, collation)),
            _ => Self::Bytes(BytePattern::new(bytes(pattern), escape)),
        }
    }

    /// `None` for NULL.
    pub fn matches_datum(&self, value: &Datum<'_>) -> Option<bool> {
        match (self, value) {
            (_, Datum::Null) => None,
            (Self::Text(pattern), Datum::Str(text)) => Some(pattern.matches(text)),
            (Self::Text(_), _) => None,
            (Self::Bytes(pattern), value) => Some(pattern.matches(bytes(value))),
        }
    }
}

/// A pattern for byte strings: `_` is one byte. As with texts, segments stand between the `%`.
#[derive(Debug)]
pub(crate) struct BytePattern {
    segments: Vec<ByteSegment>,
}

#[derive(Debug, Default)]
struct ByteSegment {
    /// `None` for `_`.
    bytes: Vec<Option<u8>>,
    /// The same, if there is no `_`.
    literal: Option<Vec<u8>>,
}

impl BytePattern {
    fn new(pattern: &[u8], escape: Option<char>) -> Self {
        let escape = escape.and_then(|c| u8::try_from(c).ok());
        let mut segments = vec![ByteSegment::default()];
        let mut rest = pattern.iter().copied();
        while let Some(byte) = rest.next() {
            let wanted = match byte {
                _ if Some(byte) == escape => Some(rest.next().unwrap_or(byte)),
                b'_' => None,
                b'%' => {
                    segments.push(ByteSegment::default());
                    continue;
                }
                byte => Some(byte),
            };
            segments.last_mut().expect("there is one from the start").bytes.push(wanted);
        }
        for segment in &mut segments {
            segment.literal = segment.bytes.iter().copied().collect();
        }
        Self { segments }
    }

    fn matches(&self, text: &[u8]) -> bool {
        let (first, rest) = self.segments.split_first().expect("there is always one");
        if !first.stands_at(text) {
            return false;
        }
        let text = &text[first.bytes.len()..];
        let Some((last, middle)) = rest.split_last() else { return text.is_empty() };
        let mut text = text;
        for segment in middle {
            let Some(at) = segment.find(text) else { return false };
            text = &text[at + segment.bytes.len()..];
        }
        text.len().checked_sub(last.bytes.len()).is_some_and(|at| last.stands_at(&text[at..]))
    }
}

impl ByteSegment {
    fn stands_at(&self, text: &[u8]) -> bool {
        text.len() >= self.bytes.len()
            && self.bytes.iter().zip(text).all(|(wanted, byte)| wanted.is_none_or(|wanted| wanted == *byte))
    }

    fn find(&self, text: &[u8]) -> Option<usize> {
        match &self.literal {
            Some(literal) => memmem::find(text, literal),
            None => (0..=text.len().checked_sub(self.bytes.len())?).find(|at| self.stands_at(&text[*at..])),
        }
    }
}

/// The byte at which `needle` first stands in `haystack`, as the collation has it.
pub(crate) fn find_text(haystack: &str, needle: &str, collation: Option<Collation>) -> Option<usize> {
    match collation {
        Some(collation) => collation.find(haystack, needle, 0).map(|(from, _)| from),
        None => haystack.find(needle),
    }
}
