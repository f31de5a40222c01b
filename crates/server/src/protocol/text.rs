//! The cells of the text protocol.

use avocet_types::temporal::TimeZone;
use avocet_types::text::{member_text, write_text};
use avocet_types::{Datum, SqlType};

use super::PacketBuf;

/// Writes a cell of a text row; TIMESTAMPs in the time zone given.
#[inline]
pub fn cell(out: &mut PacketBuf, value: &Datum<'_>, ty: &SqlType, zone: TimeZone) {
    match value {
        Datum::Null => out.put_u8(0xFB),
        Datum::Str(text) => out.lenenc_bytes(text.as_bytes()),
        Datum::Bytes(document) if *ty == SqlType::Json => out.lenenc_bytes(json_text(document).as_bytes()),
        Datum::Bytes(bytes) => out.lenenc_bytes(bytes),
        Datum::UInt(v) if let Some(name) = member_text(*v, ty) => out.lenenc_bytes(name.as_bytes()),
        // No number and no moment has a text of more than 250 bytes.
        _ => out.lenenc_short(|buf| write_text(value, ty, zone, buf)),
    }
}

/// A document goes out as its text in both protocols.
pub(super) fn json_text(document: &[u8]) -> String {
    avocet_types::json::Node::new(document).text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_carry_their_length_and_null_has_none() {
        let mut out = PacketBuf::new();
        out.begin();
        for value in [Datum::Int(-17), Datum::Null, Datum::str("ab"), Datum::str("")] {
            cell(&mut out, &value, &SqlType::INT, TimeZone::UTC);
        }
        out.end();
        assert_eq!(&out.bytes()[4..], b"\x03-17\xFB\x02ab\x00");
    }

    #[test]
    fn timestamps_are_shown_in_the_sessions_time_zone() {
        let mut out = PacketBuf::new();
        out.begin();
        let zone = TimeZone::parse("+02:00").expect("a zone");
        cell(&mut out, &Datum::DateTime(0), &SqlType::Timestamp { fsp: 0 }, zone);
        cell(&mut out, &Datum::DateTime(0), &SqlType::DateTime { fsp: 0 }, zone);
        out.end();
        assert_eq!(&out.bytes()[4..], b"\x131970-01-01 02:00:00\x131970-01-01 00:00:00");
    }
}
