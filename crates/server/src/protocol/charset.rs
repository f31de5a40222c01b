//! Text in the character sets of clients: read as `character_set_client` says, written as `character_set_results` does.
//!
//! Inside, text is UTF-8; a client that speaks it, as nearly all do, pays for nothing here.

use std::borrow::Cow;

use avocet_channel::ResultsCharset;
use avocet_types::collation::Charset;
use avocet_types::error::SqlError;
use avocet_types::expr::SqlMode;
use avocet_types::text::member_text;
use avocet_types::{Datum, SqlType};

use super::{sql_text, text};

/// A statement's text, or a name, as a client sent it. `None` is UTF-8; so is what comes as bytes. `mode`: whether a backslash in
/// a literal is one.
pub fn decode(raw: &[u8], client: Option<Charset>, mode: SqlMode) -> Result<Cow<'_, str>, SqlError> {
    let escapes = !mode.has(SqlMode::NO_BACKSLASH_ESCAPES);
    if let Some(charset) = client.filter(|charset| sql_text::may_end_in_backslash(*charset)) {
        return sql_text::decode_in(raw, charset, escapes).map(Cow::Owned);
    }
    match client.filter(|charset| *charset != Charset::Binary).and_then(|charset| charset.decode(raw).ok()) {
        Some(text) => Ok(Cow::Owned(text)),
        None => sql_text::decode(raw, escapes),
    }
}

/// A parameter that is text in the client's character set.
pub fn decode_param(raw: &[u8], client: Charset) -> Datum<'static> {
    match client.decode(raw) {
        Ok(text) => Datum::Str(Cow::Owned(text)),
        Err(_) => Datum::Bytes(Cow::Owned(raw.to_vec())),
    }
}

/// A name or a message as a client reads it; what its character set does not have is `?`.
pub fn encode(text: &str, results: ResultsCharset) -> Cow<'_, [u8]> {
    match results {
        ResultsCharset::Of(charset) if !is_same(text, charset) => Cow::Owned(charset.encode(text)),
        _ => Cow::Borrowed(text.as_bytes()),
    }
}

/// As [`encode`], in the character set of what the client sends.
pub fn encode_for(text: &str, client: Option<Charset>) -> Cow<'_, [u8]> {
    encode(text, client.map_or(ResultsCharset::Utf8mb4, ResultsCharset::Of))
}

/// The bytes of a cell, in both protocols, if the client's character set makes them other than they are in UTF-8.
pub fn cell(value: &Datum<'_>, ty: &SqlType, results: ResultsCharset) -> Option<Vec<u8>> {
    let charset = match results {
        ResultsCharset::Utf8mb4 => return None,
        ResultsCharset::Of(charset) => charset,
        ResultsCharset::Own | ResultsCharset::OwnAsBytes => ty.declared_collation()?.info().charset,
    };
    let text = match value {
        Datum::Str(text) => Cow::Borrowed(&**text),
        Datum::Bytes(document) if *ty == SqlType::Json => Cow::Owned(text::json_text(document)),
        Datum::UInt(v) => member_text(*v, ty)?,
        Datum::Decimal(v) if !charset.keeps_ascii() => Cow::Owned(v.to_string()),
        _ => return None,
    };
    (!is_same(&text, charset)).then(|| charset.encode(&text))
}

/// Whether a text has the same bytes in UTF-8.
fn is_same(text: &str, charset: Charset) -> bool {
    matches!(charset, Charset::Utf8mb4 | Charset::Binary) || (text.is_ascii() && charset.keeps_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_in_and_out_as_the_client_has_it() {
        let of = ResultsCharset::Of;
        assert_eq!(
            decode(b"SELECT '\xE4'", Some(Charset::Latin1), SqlMode::DEFAULT).expect("text"),
            "SELECT 'ä'"
        );
        assert_eq!(&*encode("ä€Ω", of(Charset::Latin1)), b"\xE4\x80?");
        assert_eq!(&*encode("ä", of(Charset::Ascii)), b"?");
        assert_eq!(&*encode("ä😀", of(Charset::Utf8mb3)), "ä?".as_bytes());
        assert_eq!(&*encode("ä😀", ResultsCharset::Utf8mb4), "ä😀".as_bytes());
        assert_eq!(&*encode("ä", ResultsCharset::Own), "ä".as_bytes());
        assert!(matches!(decode_param(b"\xE4", Charset::Latin1), Datum::Str(text) if text == "ä"));
        assert_eq!(cell(&Datum::Int(1), &SqlType::INT, of(Charset::Latin1)), None);
    }
}
