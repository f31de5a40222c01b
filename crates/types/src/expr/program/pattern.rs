//! LIKE patterns and searching for a text, under a collation or on bytes.

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

/// A pattern for byte strings: `_` is one byte.
#[derive(Debug)]
pub(crate) struct BytePattern {
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Byte(u8),
    AnyByte,
    AnyBytes,
}

impl BytePattern {
    fn new(pattern: &[u8], escape: Option<char>) -> Self {
        let escape = escape.and_then(|c| u8::try_from(c).ok());
        let mut steps = Vec::with_capacity(pattern.len());
        let mut rest = pattern.iter().copied();
        while let Some(byte) = rest.next() {
            steps.push(match byte {
                _ if Some(byte) == escape => Step::Byte(rest.next().unwrap_or(byte)),
                b'_' => Step::AnyByte,
                b'%' => Step::AnyBytes,
                byte => Step::Byte(byte),
            });
        }
        Self { steps }
    }

    /// Goes back to the last `%` only: what came before it has matched as early as it can.
    fn matches(&self, text: &[u8]) -> bool {
        let (mut step, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < text.len() {
            match self.steps.get(step) {
                Some(Step::AnyBytes) => {
                    retry = Some((step + 1, at));
                    step += 1;
                }
                Some(Step::AnyByte) => (step, at) = (step + 1, at + 1),
                Some(Step::Byte(byte)) if *byte == text[at] => (step, at) = (step + 1, at + 1),
                _ => match retry {
                    Some((after, from)) => {
                        (step, at) = (after, from + 1);
                        retry = Some((after, from + 1));
                    }
                    None => return false,
                },
            }
        }
        self.steps[step..].iter().all(|step| *step == Step::AnyBytes)
    }
}

/// The byte at which `needle` first stands in `haystack`, as the collation has it.
pub(crate) fn find_text(haystack: &str, needle: &str, collation: Option<Collation>) -> Option<usize> {
    match collation {
        Some(collation) => collation.find(haystack, needle, 0).map(|(from, _)| from),
        None => haystack.find(needle),
    }
}
