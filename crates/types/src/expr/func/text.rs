//! Strings as functions handle them: bytes that are text or not. Text is counted in characters, byte strings in bytes.

use std::borrow::Cow;

use memchr::memmem;

use crate::datum::Datum;

/// The bytes of a string argument.
pub(crate) fn bytes<'x>(value: &'x Datum<'_>) -> &'x [u8] {
    match value {
        Datum::Str(s) => s.as_bytes(),
        Datum::Bytes(b) => b,
        _ => &[],
    }
}

/// A character string argument.
pub(crate) fn chars<'x>(value: &'x Datum<'_>) -> &'x str {
    match value {
        Datum::Str(s) => s,
        _ => "",
    }
}

pub(crate) fn is_text(value: &Datum<'_>) -> bool {
    matches!(value, Datum::Str(_))
}

/// Characters of text, bytes of a byte string.
pub(crate) fn length(value: &Datum<'_>) -> usize {
    match value {
        Datum::Str(s) => count_chars(s.as_bytes()),
        other => bytes(other).len(),
    }
}

/// Characters in valid UTF-8: bytes that do not continue one.
pub(crate) fn count_chars(text: &[u8]) -> usize {
    text.iter().filter(|b| (**b as i8) >= -0x40).count()
}

/// Where character `index` (from 0) begins, in bytes; the end if there are not so many.
pub(crate) fn offset(value: &Datum<'_>, index: usize) -> usize {
    match value {
        Datum::Str(s) if !s.is_ascii() => s.char_indices().nth(index).map_or(s.len(), |(at, _)| at),
        other => index.min(bytes(other).len()),
    }
}

/// A part of a string, borrowed if the string is.
pub(crate) fn slice<'a>(value: Datum<'a>, from: usize, to: usize) -> Datum<'a> {
    match value {
        Datum::Str(Cow::Borrowed(s)) => Datum::str(&s[from..to]),
        Datum::Str(Cow::Owned(mut s)) => {
            s.truncate(to);
            s.drain(..from);
            Datum::Str(Cow::Owned(s))
        }
        Datum::Bytes(Cow::Borrowed(b)) => Datum::bytes(&b[from..to]),
        Datum::Bytes(Cow::Owned(mut b)) => {
            b.truncate(to);
            b.drain(..from);
            Datum::Bytes(Cow::Owned(b))
        }
        other => other,
    }
}

/// A string of the same sort as the arguments were.
pub(crate) fn make<'a>(text: bool, bytes: Vec<u8>) -> Datum<'a> {
    match text {
        true => Datum::Str(Cow::Owned(String::from_utf8(bytes).expect("pieces cut at characters are text"))),
        false => Datum::Bytes(Cow::Owned(bytes)),
    }
}

/// A string made of ASCII characters.
pub(crate) fn string<'a>(text: impl Into<String>) -> Datum<'a> {
    Datum::Str(Cow::Owned(text.into()))
}

/// Text from a buffer that formatting wrote.
pub(crate) fn from_buffer<'a>(bytes: Vec<u8>) -> Datum<'a> {
    make(true, bytes)
}

/// The first place of `needle` in `haystack` from `from` on, in bytes. Takes time in proportion to their lengths, whatever repeats in them.
pub(crate) fn find(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    memmem::find(haystack.get(from..)?, needle).map(|at| from + at)
}

/// The last place of `needle` in `haystack` that ends at or before `to`, in bytes.
pub(crate) fn find_last(haystack: &[u8], needle: &[u8], to: usize) -> Option<usize> {
    memmem::rfind(haystack.get(..to)?, needle)
}
