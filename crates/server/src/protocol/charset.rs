//! Text in the character sets of clients: read as `character_set_client` says, written as `character_set_results` does.
//!
//! Inside, text is UTF-8; a client that speaks it, as nearly all do, pays for nothing here. `None` is UTF-8 everywhere.

use std::borrow::Cow;

use avocet_types::Datum;
use avocet_types::collation::Charset;
use avocet_types::error::SqlError;

use super::sql_text;

/// A statement's text, or a name, as a client sent it.
pub fn decode(raw: &[u8], client: Option<Charset>) -> Result<Cow<'_, str>, SqlError> {
    match client.and_then(|charset| charset.decode(raw).ok()) {
        Some(text) => Ok(Cow::Owned(text)),
        None => sql_text::decode(raw),
    }
}

/// A parameter that is text in the client's character set.
pub fn decode_param(raw: &[u8], client: Charset) -> Datum<'static> {
    match client.decode(raw) {
        Ok(text) => Datum::Str(Cow::Owned(text)),
        Err(_) => Datum::Bytes(Cow::Owned(raw.to_vec())),
    }
}

/// Text as a client reads it; what its character set does not have is `?`.
pub fn encode(text: &str, results: Option<Charset>) -> Cow<'_, [u8]> {
    match results {
        Some(charset) if !(text.is_ascii() && charset.keeps_ascii()) => Cow::Owned(charset.encode(text)),
        _ => Cow::Borrowed(text.as_bytes()),
    }
}

/// As `encode`, for a value of a row; what is no text stays as it is.
pub fn encode_datum(value: Datum<'_>, results: Charset) -> Datum<'_> {
    match value {
        Datum::Str(text) if !(text.is_ascii() && results.keeps_ascii()) => {
            Datum::Bytes(Cow::Owned(results.encode(&text)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_in_and_out_as_the_client_has_it() {
        let latin1 = Some(Charset::Latin1);
        assert_eq!(decode(b"SELECT '\xE4'", latin1).expect("text"), "SELECT 'ä'");
        assert_eq!(&*encode("ä€Ω", latin1), b"\xE4\x80?");
        assert_eq!(&*encode("ä", Some(Charset::Ascii)), b"?");
        assert_eq!(&*encode("ä😀", Some(Charset::Utf8mb3)), "ä?".as_bytes());
        assert_eq!(&*encode("ä😀", None), "ä😀".as_bytes());
        assert!(matches!(decode_param(b"\xE4", Charset::Latin1), Datum::Str(text) if text == "ä"));
        assert!(matches!(encode_datum(Datum::Int(1), Charset::Latin1), Datum::Int(1)));
    }
}
