//! Values in the binary protocol: the cells of a prepared statement's rows.
//!
//! ```text
//!   ┌────┬───────────────────────────┬─────────────────────────────┐
//!   │ 00 │ null bits, from bit 2     │ values that are not NULL …  │
//!   └────┴───────────────────────────┴─────────────────────────────┘
//! ```

use avocet_types::temporal::{Civil, Clock, TimeZone, ZERO_DATE, ZERO_DATETIME, date_of, time_of};
use avocet_types::text::{bit_bytes, member_text};
use avocet_types::{Datum, IntWidth, SqlType};

use super::PacketBuf;
use super::text::json_text;

/// Starts a row of `columns` cells and returns where its null bits are.
#[inline]
pub fn begin_row(out: &mut PacketBuf, columns: usize) -> usize {
    out.begin();
    out.put_u8(0);
    out.zeros((columns + 9) / 8)
}

/// Writes a cell in the format that its column's type was announced with. False, and nothing written, if the
/// value is not of that type: the client would misread all that follows. TIMESTAMPs go out in the time zone given.
#[inline]
#[must_use]
pub fn cell(
    out: &mut PacketBuf,
    nulls_at: usize,
    column: usize,
    value: &Datum<'_>,
    ty: &SqlType,
    zone: TimeZone,
) -> bool {
    match (value, ty) {
        (Datum::Null, _) => out.set_bits(nulls_at + (column + 2) / 8, 1 << ((column + 2) % 8)),
        (Datum::Int(v), ty) if ty.is_integer() => integer(out, *v as u64, ty),
        (Datum::UInt(v), ty) if ty.is_integer() => integer(out, *v, ty),
        (Datum::UInt(v), SqlType::Bit { len }) => out.lenenc_bytes(bit_bytes(&v.to_be_bytes(), *len)),
        (Datum::UInt(v), ty) => match member_text(*v, ty) {
            Some(name) => out.lenenc_bytes(name.as_bytes()),
            None => return false,
        },
        (Datum::Float(v), SqlType::Float(_)) => out.put(&v.to_le_bytes()),
        // As in texts, 0 for what is infinite or no number.
        (Datum::Double(v), SqlType::Double(_)) => {
            out.put(&if v.is_finite() { *v } else { 0.0 }.to_le_bytes());
        }
        (Datum::Decimal(v), SqlType::Decimal { .. }) => out.lenenc_short(|buf| v.write(buf)),
        (Datum::Str(text), ty) if ty.is_string() || ty.is_bytes() => out.lenenc_bytes(text.as_bytes()),
        (Datum::Bytes(document), SqlType::Json) => out.lenenc_bytes(json_text(document).as_bytes()),
        (Datum::Bytes(bytes), ty) if ty.is_string() || ty.is_bytes() => out.lenenc_bytes(bytes),
        (Datum::Date(days), SqlType::Date) => date(out, *days),
        (Datum::DateTime(micros), SqlType::DateTime { .. }) => datetime(out, *micros),
        (Datum::DateTime(micros), SqlType::Timestamp { .. }) => datetime(out, zone.to_local(*micros)),
        (Datum::Time(micros), SqlType::Time { .. }) => time(out, *micros),
        _ => return false,
    }
    true
}

fn integer(out: &mut PacketBuf, value: u64, ty: &SqlType) {
    match ty {
        SqlType::Bool | SqlType::Int { width: IntWidth::W8, .. } => out.put_u8(value as u8),
        SqlType::Year | SqlType::Int { width: IntWidth::W16, .. } => out.put_u16(value as u16),
        SqlType::Int { width: IntWidth::W24 | IntWidth::W32, .. } => out.put_u32(value as u32),
        _ => out.put_u64(value),
    }
}

fn put_date(out: &mut PacketBuf, days: i32) {
    let Civil { year, month, day } = Civil::from_days(days);
    out.put_u16(year as u16);
    out.put_u8(month as u8);
    out.put_u8(day as u8);
}

fn put_clock(out: &mut PacketBuf, clock: Clock) {
    out.put(&[clock.hour as u8, clock.minute as u8, clock.second as u8]);
}

/// The zero date has no bytes.
fn date(out: &mut PacketBuf, days: i32) {
    if days == ZERO_DATE {
        return out.put_u8(0);
    }
    out.put_u8(4);
    put_date(out, days);
}

fn datetime(out: &mut PacketBuf, micros: i64) {
    if micros == ZERO_DATETIME {
        return out.put_u8(0);
    }
    let clock = Clock::from_micros(time_of(micros));
    let len = match clock {
        Clock { hour: 0, minute: 0, second: 0, micro: 0 } => 4,
        Clock { micro: 0, .. } => 7,
        _ => 11,
    };
    out.put_u8(len);
    put_date(out, date_of(micros));
    if len > 4 {
        put_clock(out, clock);
    }
    if len > 7 {
        out.put_u32(clock.micro);
    }
}

fn time(out: &mut PacketBuf, micros: i64) {
    if micros == 0 {
        return out.put_u8(0);
    }
    let clock = Clock::from_micros(micros);
    out.put_u8(if clock.micro > 0 { 12 } else { 8 });
    out.put_u8(u8::from(micros < 0));
    out.put_u32(clock.hour / 24);
    put_clock(out, Clock { hour: clock.hour % 24, ..clock });
    if clock.micro > 0 {
        out.put_u32(clock.micro);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(Datum<'_>, SqlType)]) -> Vec<u8> {
        let mut out = PacketBuf::new();
        let nulls = begin_row(&mut out, cells.len());
        for (i, (value, ty)) in cells.iter().enumerate() {
            assert!(cell(&mut out, nulls, i, value, ty, TimeZone::UTC));
        }
        out.end();
        out.bytes()[4..].to_vec()
    }

    #[test]
    fn null_bits_start_at_bit_two() {
        let null = (Datum::Null, SqlType::BIGINT);
        let cells = vec![null; 7];
        assert_eq!(row(&cells), [0, 0b1111_1100, 0b0000_0001]);
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let mut out = PacketBuf::new();
        let nulls = begin_row(&mut out, 1);
        assert!(!cell(&mut out, nulls, 0, &Datum::Double(1.0), &SqlType::BIGINT, TimeZone::UTC));
        assert!(!cell(&mut out, nulls, 0, &Datum::Int(1), &SqlType::Date, TimeZone::UTC));
    }

    #[test]
    fn integers_take_their_types_width() {
        let tiny = SqlType::Int { width: IntWidth::W8, unsigned: false };
        assert_eq!(row(&[(Datum::Int(-1), tiny)]), [0, 0, 0xFF]);
        assert_eq!(row(&[(Datum::Int(-2), SqlType::INT)]), [0, 0, 0xFE, 0xFF, 0xFF, 0xFF]);
        assert_eq!(row(&[(Datum::UInt(2024), SqlType::Year)]), [0, 0, 0xE8, 0x07]);
    }

    #[test]
    fn temporals_leave_out_what_is_zero() {
        let ty = SqlType::DateTime { fsp: 6 };
        assert_eq!(row(&[(Datum::DateTime(0), ty)]), [0, 0, 4, 0xB2, 7, 1, 1]);
        assert_eq!(row(&[(Datum::DateTime(1_000_000), ty)]), [0, 0, 7, 0xB2, 7, 1, 1, 0, 0, 1]);
        assert_eq!(row(&[(Datum::DateTime(1), ty)]), [0, 0, 11, 0xB2, 7, 1, 1, 0, 0, 0, 1, 0, 0, 0]);
        let zero = Datum::DateTime(ZERO_DATETIME);
        let dates = [(Datum::Date(ZERO_DATE), SqlType::Date), (zero.clone(), ty)];
        assert_eq!(row(&dates), [0, 0, 0, 0]);
        assert_eq!(row(&[(zero, SqlType::Timestamp { fsp: 0 })]), [0, 0, 0]);
        let hour = Datum::DateTime(ZERO_DATETIME + 3_600_000_000);
        assert_eq!(row(&[(hour, ty)]), [0, 0, 7, 0, 0, 0, 0, 1, 0, 0]);
        let day = -(86_400 + 3_600) * 1_000_000;
        assert_eq!(row(&[(Datum::Time(day), SqlType::Time { fsp: 0 })]), [0, 0, 8, 1, 1, 0, 0, 0, 1, 0, 0]);
    }
}
