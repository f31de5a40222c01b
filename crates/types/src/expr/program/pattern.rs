//! LIKE patterns and searching for a text, under a collation or on bytes.

use std::cell::Cell;

use memchr::memmem;

use crate::collation::{Collation, LikePattern};
use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::func::text::bytes;
use crate::expr::program::reborrow;

/// After so many bytes were looked at, the statement is asked whether it goes on.
const LOOKS_PER_CHECK: usize = 1 << 20;

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
    ///
    /// # Errors
    /// If the statement ends while a long text is gone through.
    pub fn matches_datum(&self, value: &Datum<'_>, ctx: &EvalContext) -> EvalResult<Option<bool>> {
        let mut end = None;
        let goes_on = &mut || {
            end = ctx.check().err();
            end.is_none()
        };
        let matched = match (self, value) {
            (_, Datum::Null) => return Ok(None),
            (Self::Text(pattern), Datum::Str(text)) => pattern.matches_while(text, goes_on),
            (Self::Text(_), _) => return Ok(None),
            (Self::Bytes(pattern), value) => pattern.matches_while(bytes(value), goes_on),
        };
        end.map_or(Ok(matched), Err)
    }
}

/// So many patterns that are no constants are kept prepared on each thread, of so many bytes at most.
const KEPT: usize = 4;
const LONGEST_KEPT: usize = 256;

struct Kept {
    text: Datum<'static>,
    escape: Option<char>,
    collation: Option<Collation>,
    pattern: Pattern,
}

thread_local! {
    /// What was matched last, the latest at the end: a parameter is the same pattern for every row.
    static LAST: Cell<Vec<Kept>> = const { Cell::new(Vec::new()) };
}

/// Matches a value with a pattern that may be another one for each row.
pub(crate) fn matches_varying(
    text: &Datum<'_>,
    escape: Option<char>,
    collation: Option<Collation>,
    value: &Datum<'_>,
    ctx: &EvalContext,
) -> EvalResult<Option<bool>> {
    let wanted = bytes(text);
    if wanted.len() > LONGEST_KEPT {
        return Pattern::new(text, escape, collation).matches_datum(value, ctx);
    }
    // They are taken away meanwhile: a statement that gives its thread away in the middle finds none, and leaves its own.
    let mut kept = LAST.take();
    let is_wanted = |of: &Kept| {
        let same_kind =
            matches!((&of.text, text), (Datum::Str(_), Datum::Str(_)) | (Datum::Bytes(_), Datum::Bytes(_)));
        same_kind && of.escape == escape && of.collation == collation && bytes(&of.text) == wanted
    };
    let at = kept.iter().position(is_wanted).unwrap_or_else(|| {
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        let pattern = Pattern::new(text, escape, collation);
        kept.push(Kept { text: reborrow(text).into_owned(), escape, collation, pattern });
        kept.len() - 1
    });
    let matched = kept[at].pattern.matches_datum(value, ctx);
    LAST.set(kept);
    matched
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

    /// `goes_on` is asked now and then; there is no answer if it says no.
    fn matches_while(&self, text: &[u8], goes_on: &mut dyn FnMut() -> bool) -> Option<bool> {
        let (first, rest) = self.segments.split_first().expect("there is always one");
        if !first.stands_at(text) {
            return Some(false);
        }
        let text = &text[first.bytes.len()..];
        let Some((last, middle)) = rest.split_last() else { return Some(text.is_empty()) };
        let mut text = text;
        for segment in middle {
            let Some(at) = segment.find(text, goes_on)? else { return Some(false) };
            text = &text[at + segment.bytes.len()..];
        }
        let at = text.len().checked_sub(last.bytes.len());
        Some(at.is_some_and(|at| last.stands_at(&text[at..])))
    }
}

impl ByteSegment {
    fn stands_at(&self, text: &[u8]) -> bool {
        text.len() >= self.bytes.len() && self.same_at(text) == self.bytes.len()
    }

    /// How many bytes are as the segment has them.
    fn same_at(&self, text: &[u8]) -> usize {
        let is_same = |(wanted, byte): &(&Option<u8>, &u8)| wanted.is_none_or(|wanted| wanted == **byte);
        self.bytes.iter().zip(text).take_while(is_same).count()
    }

    /// No answer if `goes_on` says no: with `_` in it, a segment is looked for anew at each place.
    fn find(&self, text: &[u8], goes_on: &mut dyn FnMut() -> bool) -> Option<Option<usize>> {
        if let Some(literal) = &self.literal {
            return Some(memmem::find(text, literal));
        }
        let Some(last) = text.len().checked_sub(self.bytes.len()) else { return Some(None) };
        let mut looks = 0;
        for at in 0..=last {
            let same = self.same_at(&text[at..]);
            if same == self.bytes.len() {
                return Some(Some(at));
            }
            looks += same + 1;
            if looks >= LOOKS_PER_CHECK {
                looks = 0;
                if !goes_on() {
                    return None;
                }
            }
        }
        Some(None)
    }
}

/// The byte at which `needle` first stands in `haystack`, as the collation has it.
pub(crate) fn find_text(haystack: &str, needle: &str, collation: Option<Collation>) -> Option<usize> {
    match collation {
        Some(collation) => collation.find(haystack, needle, 0).map(|(from, _)| from),
        None => haystack.find(needle),
    }
}
