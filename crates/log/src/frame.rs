//! The frame around a record: encoding, sealing by the log thread, decoding of any bytes.
//!
//! ```text
//!   0           4           8          12          16   17   18     20          24            32
//!   ├───────────┼───────────┼───────────┼───────────┼────┼────┼──────┼───────────┼─────────────┼─────────┬─────┐
//!   │ head crc  │payload crc│payload len│ group dist│kind│flag│ mark │ chain     │ tag         │ payload │ 0…7 │
//!   └───────────┴───────────┴───────────┴───────────┴────┴────┴──────┴───────────┴─────────────┴─────────┴─────┘
//! ```
//!
//! The head's CRC covers the log's id, the frame's own place and the head's other 28 bytes, so bytes that
//! were written for another place or another log are not a frame here. Appenders fill in what they know
//! (payload CRC, length, kind, tag); the log thread *seals*: it adds the distance to the group's start, the
//! chain (the head CRC of the frame before) and the head's CRC. That keeps the commit's critical section at a memcpy.
//! What is compressed are frames that are not sealed; the frame that carries them is (`packed.rs`).

use avocet_base::checksum::crc32c;

/// Bytes of a frame before its payload.
pub(crate) const HEAD: usize = 32;
/// Frames start at multiples of this.
pub(crate) const ALIGN: usize = 8;
/// The largest payload, in bytes.
pub const MAX_PAYLOAD: usize = 1 << 30;
/// The highest record kind that is the caller's; those above are the log's own.
pub const MAX_KIND: u8 = 0xef;
/// Kind of the frame that a clean close leaves: it carries nothing, but proves what is before it durable.
pub(crate) const KIND_CLOSED: u8 = 0xf0;
/// Kind of the frame that carries frames. Its tag is the LSN of the first of them.
pub(crate) const KIND_PACKED: u8 = 0xf1;
/// Flag of the frames of that kind, and of no others: what they carry is compressed with LZ4.
pub(crate) const FLAG_LZ4: u8 = 1;

const MARK: u16 = 0xa70c;

/// Where in a log's files a frame is: the start of its segment, plus the bytes for frames before it there. No two frames have
/// the same one. It is the frame's LSN unless frames before it in the segment are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Place(pub u64);

/// A record ready to be appended: its payload's CRC is computed here, outside the commit's critical section.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    kind: u8,
    flags: u8,
    payload_crc: u32,
    payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// # Panics
    /// If `kind` is over [`MAX_KIND`].
    pub fn new(kind: u8, payload: &'a [u8]) -> Self {
        assert!(kind <= MAX_KIND, "record kinds over {MAX_KIND:#x} are the log's own");
        Self { kind, flags: 0, payload_crc: crc32c(payload), payload }
    }

    pub(crate) fn closed() -> Record<'static> {
        Record { kind: KIND_CLOSED, flags: 0, payload_crc: crc32c(&[]), payload: &[] }
    }

    /// What carries compressed frames.
    pub(crate) fn packed(payload: &'a [u8]) -> Self {
        Self { kind: KIND_PACKED, flags: FLAG_LZ4, payload_crc: crc32c(payload), payload }
    }

    pub(crate) fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// Bytes that the record takes in the log.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(self.payload.len())
    }

    /// Appends the frame, yet unsealed.
    #[inline]
    pub(crate) fn put(&self, tag: u64, out: &mut Vec<u8>) {
        let mut head = [0u8; HEAD];
        head[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        head[8..12].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        head[16] = self.kind;
        head[17] = self.flags;
        head[18..20].copy_from_slice(&MARK.to_le_bytes());
        head[24..32].copy_from_slice(&tag.to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(self.payload);
        let padding = self.frame_len() - HEAD - self.payload.len();
        out.extend_from_slice(&[0u8; ALIGN][..padding]);
    }
}

/// Gives a frame that is not sealed its tag.
pub(crate) fn set_tag(frame: &mut [u8], tag: u64) {
    frame[24..HEAD].copy_from_slice(&tag.to_le_bytes());
}

/// Bytes of a frame with a payload of `payload_len`.
pub(crate) fn frame_len(payload_len: usize) -> usize {
    (HEAD + payload_len).next_multiple_of(ALIGN)
}

/// Completes the heads of the frames of a group, one group after the other.
pub(crate) struct Sealer {
    pub log_id: u64,
    /// Head CRC of the last frame sealed.
    pub chain: u32,
}

impl Sealer {
    /// Seals all of `frames`, whole unsealed frames of which the first is at `start`, as part of a group that begins
    /// there or before.
    pub fn seal(&mut self, frames: &mut [u8], start: Place, group_start: Place) {
        let before = start.0 - group_start.0;
        let mut at = 0;
        while at < frames.len() {
            let (head, _) = frames[at..].split_first_chunk_mut::<HEAD>().expect("a group holds whole frames");
            let distance = u32::try_from(before + at as u64).expect("a group has less than 4 GiB");
            head[12..16].copy_from_slice(&distance.to_le_bytes());
            head[20..24].copy_from_slice(&self.chain.to_le_bytes());
            self.chain = head_crc(self.log_id, Place(start.0 + at as u64), head);
            head[0..4].copy_from_slice(&self.chain.to_le_bytes());
            at += frame_len(u32_at(head, 8) as usize);
        }
    }
}

/// What a run of whole frames holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Content {
    pub records: u64,
    pub last_tag: u64,
}

impl Content {
    pub fn of(frames: &[u8]) -> Self {
        let mut content = Self::default();
        let mut rest = frames;
        while let Some(head) = rest.first_chunk::<HEAD>() {
            content = Self { records: content.records + 1, last_tag: u64_at(head, 24) };
            rest = &rest[frame_len(u32_at(head, 8) as usize)..];
        }
        content
    }
}

/// Bytes of the whole frame that `frames` begin with, all of which were put there by [`Record::put`].
pub(crate) fn first_len(frames: &[u8]) -> usize {
    let head = frames.first_chunk().expect("a group holds whole frames");
    frame_len(u32_at(head, 8) as usize)
}

/// A head whose CRC is right for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub crc: u32,
    pub payload_crc: u32,
    pub payload_len: usize,
    /// Where the frame's group begins: all before was durable when the frame was written.
    pub group_start: Place,
    pub kind: u8,
    pub flags: u8,
    pub chain: u32,
    pub tag: u64,
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Zeros, as never written.
    Unwritten,
    HeadCrc,
    /// Written by a version of this program that knows more.
    Flags,
    PayloadCrc,
    Padding,
    /// The frame is whole, but was not written after the one before it.
    Chain,
    /// The file or the segment ends within the frame.
    CutOff,
    /// What is compressed in it is not what its head says.
    Packed,
}

impl Flaw {
    pub fn text(self) -> &'static str {
        match self {
            Self::Unwritten => "nothing is written there",
            Self::HeadCrc => "the record's head has a wrong checksum",
            Self::Flags => "the record has flags that this version does not know",
            Self::PayloadCrc => "the record's payload has a wrong checksum",
            Self::Padding => "the record's padding is not zero",
            Self::Chain => "the record does not continue the one before it",
            Self::CutOff => "the record is cut off",
            Self::Packed => "what the record carries compressed is not what it says",
        }
    }
}

impl Head {
    /// Bytes of the whole frame.
    pub fn frame_len(&self) -> usize {
        frame_len(self.payload_len)
    }

    /// Whether it carries compressed frames.
    ///
    /// # Errors
    /// `Flags` if this version does not know what it is.
    pub fn is_packed(&self) -> Result<bool, Flaw> {
        match (self.kind, self.flags) {
            (KIND_PACKED, FLAG_LZ4) => Ok(true),
            (KIND_PACKED, _) => Err(Flaw::Flags),
            (_, 0) => Ok(false),
            _ => Err(Flaw::Flags),
        }
    }

    /// A head at `place` of the log.
    pub fn decode(log_id: u64, place: Place, head: &[u8; HEAD]) -> Result<Self, Flaw> {
        if head.iter().all(|&b| b == 0) {
            return Err(Flaw::Unwritten);
        }
        let found = Self::unsealed(head).ok_or(Flaw::HeadCrc)?;
        let group = u64::from(u32_at(head, 12));
        if group > place.0 || found.crc != head_crc(log_id, place, head) {
            return Err(Flaw::HeadCrc);
        }
        Ok(Self { group_start: Place(place.0 - group), ..found })
    }

    /// A head that may not be sealed: neither its group nor its CRC is known to be right.
    pub fn unsealed(head: &[u8; HEAD]) -> Option<Self> {
        let payload_len = u32_at(head, 8) as usize;
        let plausible = u16::from_le_bytes([head[18], head[19]]) == MARK && payload_len <= MAX_PAYLOAD;
        plausible.then(|| Self {
            crc: u32_at(head, 0),
            payload_crc: u32_at(head, 4),
            payload_len,
            group_start: Place(0),
            kind: head[16],
            flags: head[17],
            chain: u32_at(head, 20),
            tag: u64_at(head, 24),
        })
    }

    /// Checks what follows the head: payload and padding.
    pub fn check_body(&self, body: &[u8]) -> Result<(), Flaw> {
        let (payload, padding) = body.split_at(self.payload_len);
        if crc32c(payload) != self.payload_crc {
            return Err(Flaw::PayloadCrc);
        }
        if padding.iter().any(|&b| b != 0) { Err(Flaw::Padding) } else { Ok(()) }
    }
}

/// Where in `bytes`, which begin at a possible frame, the first possible head with the right mark is.
pub(crate) fn find_mark(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(HEAD)?;
    let mark = MARK.to_le_bytes();
    (0..=last).step_by(ALIGN).find(|at| bytes[at + 18..at + 20] == mark)
}

fn head_crc(log_id: u64, place: Place, head: &[u8; HEAD]) -> u32 {
    let mut covered = [0u8; 16 + HEAD - 4];
    covered[..8].copy_from_slice(&log_id.to_le_bytes());
    covered[8..16].copy_from_slice(&place.0.to_le_bytes());
    covered[16..].copy_from_slice(&head[4..]);
    crc32c(&covered)
}

fn u32_at(head: &[u8; HEAD], at: usize) -> u32 {
    u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn u64_at(head: &[u8; HEAD], at: usize) -> u64 {
    u64::from(u32_at(head, at)) | u64::from(u32_at(head, at + 4)) << 32
}

#[cfg(test)]
#[path = "frame/tests.rs"]
mod tests;
