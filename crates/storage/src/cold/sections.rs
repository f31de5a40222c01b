//! The frame of a column chunk: a few byte sections, each aligned to 16 bytes so that it can be used in place.
//!
//! ```text
//!  ┌───────┬──────────────────┬─────┬───────────┬─────┬───────────┬─────┐
//!  │ k u32 │ k lengths (u32)  │ pad │ section 0 │ pad │ section 1 │ pad │ …
//!  └───────┴──────────────────┴─────┴───────────┴─────┴───────────┴─────┘
//! ```

use arrow::buffer::Buffer;
use avocet_base::codec::{Put, Reader};

use crate::error::{Result, StorageError};

/// Alignment of sections: that of the widest value (a 128-bit integer).
const ALIGN: usize = 16;

/// Puts sections together to a chunk.
pub fn join(sections: &[Vec<u8>]) -> Result<Vec<u8>> {
    let size: usize = sections.iter().map(|s| s.len() + ALIGN).sum();
    let mut chunk = Vec::with_capacity(size + (sections.len() + 1) * 4 + ALIGN);
    chunk.put_u32(sections.len() as u32);
    for section in sections {
        let len = u32::try_from(section.len())
            .map_err(|_| StorageError::Unsupported("a column of a block holds more than 4 GiB".into()))?;
        chunk.put_u32(len);
    }
    pad(&mut chunk);
    for section in sections {
        chunk.extend_from_slice(section);
        pad(&mut chunk);
    }
    Ok(chunk)
}

fn pad(chunk: &mut Vec<u8>) {
    chunk.resize(chunk.len().next_multiple_of(ALIGN), 0);
}

/// The sections of a chunk, in order.
pub struct Sections {
    sections: std::vec::IntoIter<Buffer>,
}

impl Sections {
    /// Splits a chunk, which starts at an address aligned for every section.
    pub fn split(chunk: &Buffer) -> Result<Self> {
        const WHAT: &str = "sections of a chunk";
        let mut r = Reader::new(chunk);
        let count = r.u32(WHAT)? as usize;
        if count > r.remaining() / 4 {
            return Err(r.malformed(WHAT).into());
        }
        let mut sections = Vec::with_capacity(count);
        let mut at = ((count + 1) * 4).next_multiple_of(ALIGN);
        for _ in 0..count {
            let len = r.u32(WHAT)? as usize;
            if at.checked_add(len).is_none_or(|end| end > chunk.len()) {
                return Err(r.malformed(WHAT).into());
            }
            sections.push(chunk.slice_with_length(at, len));
            at = (at + len).next_multiple_of(ALIGN);
        }
        Ok(Self { sections: sections.into_iter() })
    }

    pub fn next(&mut self, what: &str) -> Result<Buffer> {
        self.sections.next().ok_or_else(|| StorageError::corrupt(what, "a section is missing"))
    }

    pub fn finish(mut self) -> Result<()> {
        match self.sections.next() {
            None => Ok(()),
            Some(_) => Err(StorageError::corrupt("sections of a chunk", "one too many")),
        }
    }
}
