//! A cursor over a packet's payload.

/// The bytes are not what the protocol allows at this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed packet")]
pub struct Malformed;

/// Reads a payload front to back.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer.
    pub fn lenenc_int(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            small @ 0..=0xFA => Ok(u64::from(small)),
            0xFC => Ok(u64::from(self.u16()?)),
            0xFD => {
                let [a, b, c] = self.array()?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xFE => self.u64(),
            // 0xFB is NULL and 0xFF the header of an error: neither is a number.
            _ => Err(Malformed),
        }
    }

    /// The next byte, which is left where it is.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// A string with its length before it.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.lenenc_int()?).map_err(|_| Malformed)?;
        self.bytes(len)
    }

    /// A string up to a zero byte, or to the payload's end: some clients leave the last zero byte out.
    pub fn nul_bytes(&mut self) -> &'a [u8] {
        match self.rest.iter().position(|&byte| byte == 0) {
            Some(end) => {
                let head = &self.rest[..end];
                self.rest = &self.rest[end + 1..];
                head
            }
            None => self.rest(),
        }
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PacketBuf;

    #[test]
    fn length_encoded_integers_survive_the_round_trip() {
        for value in [0, 1, 250, 251, 252, 0xFFFF, 0x1_0000, 0xFF_FFFF, 0x100_0000, u64::MAX] {
            let mut buf = PacketBuf::new();
            buf.begin();
            buf.lenenc_int(value);
            buf.end();
            assert_eq!(Reader::new(&buf.bytes()[4..]).lenenc_int(), Ok(value));
        }
    }

    #[test]
    fn short_input_is_malformed() {
        assert_eq!(Reader::new(&[]).u8(), Err(Malformed));
        assert_eq!(Reader::new(&[1]).u16(), Err(Malformed));
        assert_eq!(Reader::new(&[0xFD, 1, 2]).lenenc_int(), Err(Malformed));
        assert_eq!(Reader::new(&[0xFB]).lenenc_int(), Err(Malformed));
        assert_eq!(Reader::new(&[5, b'a']).lenenc_bytes(), Err(Malformed));
        assert_eq!(
            Reader::new(&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255]).lenenc_bytes(),
            Err(Malformed)
        );
    }

    #[test]
    fn the_last_string_may_lack_its_zero_byte() {
        let mut reader = Reader::new(b"root\0db");
        assert_eq!(reader.nul_bytes(), b"root");
        assert_eq!(reader.nul_bytes(), b"db");
        assert!(reader.is_empty());
    }
}
