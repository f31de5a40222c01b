//! The buffer that replies are built in: packets one after another, ready to be written at once.
//!
//! ```text
//!   ┌────────────┬─────┬─────────┐┌────────────┬─────┬─────────┐
//!   │ length: u24│ seq │ payload ││ length: u24│ seq │ payload │ …
//!   └────────────┴─────┴─────────┘└────────────┴─────┴─────────┘
//!                                 ▲ start of the open packet
//! ```
//!
//! Invariants:
//! 1. Between `end` (or `abandon`) and `begin` the buffer holds whole packets only.
//! 2. A payload of 2^24−1 bytes or more is split when its packet ends; until then it is contiguous.

use super::MAX_PAYLOAD;

const HEADER: usize = 4;
const INITIAL: usize = 2 * 1024;
/// A buffer that grew past this for a large row is given back once that is written.
const KEEP_CAPACITY: usize = 256 * 1024;

#[derive(Debug, Default)]
pub struct PacketBuf {
    buf: Vec<u8>,
    /// So many bytes at the front have been written.
    written: usize,
    /// Where the open packet's header is.
    start: usize,
    /// The next packet's sequence id.
    sequence: u8,
}

impl PacketBuf {
    pub fn new() -> Self {
        Self { buf: Vec::with_capacity(INITIAL), written: 0, start: 0, sequence: 0 }
    }

    /// The id that the next packet gets.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buf[self.written..]
    }

    pub fn len(&self) -> usize {
        self.buf.len() - self.written
    }

    pub fn capacity(&self) -> usize {
        self.buf.capacity()
    }

    /// Gives memory back that grew past `kept`, if the buffer is empty.
    pub fn rest(&mut self, kept: usize) {
        if self.buf.capacity() > kept && self.is_empty() {
            self.buf = Vec::with_capacity(INITIAL);
            (self.written, self.start) = (0, 0);
        }
    }

    /// The open packet's payload so far.
    pub fn payload(&self) -> &[u8] {
        &self.buf[self.start + HEADER..]
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops `count` bytes from the front that have been written, between packets.
    pub fn consume(&mut self, count: usize) {
        self.written += count;
        if self.written == self.buf.len() {
            self.buf.clear();
            self.written = 0;
            if self.buf.capacity() > KEEP_CAPACITY {
                self.buf.shrink_to(KEEP_CAPACITY);
            }
        } else if self.written > self.buf.len() / 2 {
            // What is moved is less than what was written since it was moved last.
            self.buf.drain(..self.written);
            self.written = 0;
        }
    }

    /// Appends packets that somebody else has numbered.
    pub fn put_raw(&mut self, packets: &[u8]) {
        self.buf.extend_from_slice(packets);
    }

    /// Drops all that was not written.
    pub fn clear(&mut self) {
        self.buf.clear();
        (self.written, self.start) = (0, 0);
    }

    pub fn begin(&mut self) {
        self.start = self.buf.len();
        self.buf.extend_from_slice(&[0; HEADER]);
    }

    /// Length of the open packet's payload so far.
    pub fn payload_len(&self) -> usize {
        self.buf.len() - self.start - HEADER
    }

    /// Forgets the open packet.
    pub fn abandon(&mut self) {
        self.buf.truncate(self.start);
    }

    /// As [`Self::abandon`], and gives back the memory that it took.
    pub fn abandon_large(&mut self) {
        self.abandon();
        self.buf.shrink_to_fit();
    }

    pub fn end(&mut self) {
        let len = self.payload_len();
        if len >= MAX_PAYLOAD {
            return self.end_split(len);
        }
        self.put_header(self.start, len);
    }

    fn put_header(&mut self, at: usize, len: usize) {
        let [a, b, c, _] = (len as u32).to_le_bytes();
        self.buf[at..at + HEADER].copy_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Moves the payload apart to make room for a header after each 2^24−1 bytes.
    fn end_split(&mut self, len: usize) {
        let extra = len / MAX_PAYLOAD;
        let payload = self.start + HEADER;
        self.buf.resize(self.buf.len() + extra * HEADER, 0);
        for part in (1..=extra).rev() {
            let from = payload + part * MAX_PAYLOAD;
            let part_len = (len - part * MAX_PAYLOAD).min(MAX_PAYLOAD);
            self.buf.copy_within(from..from + part_len, from + part * HEADER);
        }
        for part in 0..=extra {
            let at = self.start + part * (MAX_PAYLOAD + HEADER);
            self.put_header(at, (len - part * MAX_PAYLOAD).min(MAX_PAYLOAD));
        }
    }

    /// Appends a whole packet.
    pub fn packet(&mut self, payload: &[u8]) {
        self.begin();
        self.put(payload);
        self.end();
    }

    /// Appends whole packets that were numbered from 0.
    pub fn put_packets(&mut self, packets: &[u8]) {
        let mut at = self.buf.len();
        self.buf.extend_from_slice(packets);
        let first = self.sequence;
        while let [a, b, c, id, ..] = &mut self.buf[at..] {
            *id = id.wrapping_add(first);
            self.sequence = id.wrapping_add(1);
            at += HEADER + u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        }
    }

    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    #[inline]
    pub fn put_u8(&mut self, value: u8) {
        self.buf.push(value);
    }

    pub fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    pub fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    #[inline]
    pub fn lenenc_int(&mut self, value: u64) {
        match value {
            0..=0xFA => self.put_u8(value as u8),
            0xFB..=0xFFFF => {
                self.put_u8(0xFC);
                self.put_u16(value as u16);
            }
            0x1_0000..=0xFF_FFFF => {
                self.put_u8(0xFD);
                self.put(&(value as u32).to_le_bytes()[..3]);
            }
            _ => {
                self.put_u8(0xFE);
                self.put_u64(value);
            }
        }
    }

    #[inline]
    pub fn lenenc_bytes(&mut self, bytes: &[u8]) {
        self.lenenc_int(bytes.len() as u64);
        self.put(bytes);
    }

    pub fn nul_bytes(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.put_u8(0);
    }

    /// Writes a short string whose length is known only afterwards: at most 250 bytes.
    #[inline]
    pub fn lenenc_short(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.buf.len();
        self.buf.push(0);
        write(&mut self.buf);
        let len = self.buf.len() - at - 1;
        assert!(len <= 0xFA, "a short string of {len} bytes");
        self.buf[at] = len as u8;
    }

    /// Reserves `len` zero bytes and returns their place for [`Self::patch`].
    pub fn zeros(&mut self, len: usize) -> usize {
        let at = self.buf.len();
        self.buf.resize(at + len, 0);
        at
    }

    /// Sets bits in a byte written before.
    #[inline]
    pub fn set_bits(&mut self, at: usize, bits: u8) {
        self.buf[at] |= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins the packets again, checking ids and lengths.
    fn join(mut bytes: &[u8], mut sequence: u8) -> Vec<u8> {
        let mut payload = Vec::new();
        loop {
            let (head, rest) = bytes.split_at(HEADER);
            let len = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            assert_eq!(head[3], sequence);
            sequence = sequence.wrapping_add(1);
            payload.extend_from_slice(&rest[..len]);
            bytes = &rest[len..];
            if len < MAX_PAYLOAD {
                assert!(bytes.is_empty());
                return payload;
            }
        }
    }

    #[test]
    fn large_payloads_are_split() {
        for len in
            [0, 5, MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD, 2 * MAX_PAYLOAD + 77]
        {
            let payload: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut buf = PacketBuf::new();
            buf.set_sequence(254);
            buf.packet(&payload);
            assert!(join(buf.bytes(), 254) == payload, "length {len}");
        }
    }

    #[test]
    fn packets_made_before_are_numbered_as_they_are_sent() {
        let (mut made, mut direct) = (PacketBuf::default(), PacketBuf::new());
        direct.set_sequence(254);
        for payload in [&b"one"[..], b"", b"three"] {
            made.packet(payload);
            direct.packet(payload);
        }
        let mut out = PacketBuf::new();
        out.set_sequence(254);
        out.put_packets(made.bytes());
        assert_eq!(out.bytes(), direct.bytes());
        assert_eq!(out.sequence(), direct.sequence());
    }

    #[test]
    fn an_abandoned_packet_leaves_no_trace() {
        let mut buf = PacketBuf::new();
        buf.packet(b"kept");
        let before = buf.bytes().to_vec();
        buf.begin();
        buf.put(b"dropped");
        buf.abandon();
        assert_eq!(buf.bytes(), before);
        assert_eq!(buf.sequence(), 1);
    }
}
