//! What a server's OK and EOF packets say of its session.

use super::{Malformed, Reader, StatusFlags};

/// Of an OK, or of what stands for an EOF under CLIENT_DEPRECATE_EOF. The packet may be cut behind the flags.
///
/// # Errors
/// It is shorter than that.
pub fn of_ok(packet: &[u8]) -> Result<StatusFlags, Malformed> {
    let mut reader = Reader::new(packet);
    reader.u8()?;
    // Rows that it concerns, and the last id.
    reader.lenenc_int()?;
    reader.lenenc_int()?;
    Ok(StatusFlags::from_bits_truncate(reader.u16()?))
}

/// Of an EOF.
///
/// # Errors
/// It is none.
pub fn of_eof(packet: &[u8]) -> Result<StatusFlags, Malformed> {
    let mut reader = Reader::new(packet);
    reader.u8()?;
    let _warnings = reader.u16()?;
    Ok(StatusFlags::from_bits_truncate(reader.u16()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stand_behind_numbers_of_any_length() {
        let open = StatusFlags::SERVER_STATUS_IN_TRANS;
        assert_eq!(of_ok(&[0, 1, 0xFC, 7, 7, 1, 0, 0, 0]), Ok(open));
        assert_eq!(of_eof(&[0xFE, 0, 0, 1, 0]), Ok(open));
        assert!(of_ok(&[0, 1, 2, 1]).is_err() && of_eof(&[0xFE]).is_err());
    }
}
