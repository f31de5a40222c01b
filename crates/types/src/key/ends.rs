//! Where the parts of a key end: what two entries of an index have in common is counted in whole columns.

use super::{KeyLayout, KeyPart, compact};
use crate::collation::Collation;
use crate::row::Storage;

impl KeyLayout {
    /// The ends of the first `parts` parts of a key, in `ends`. `false` for what is no key of this layout, and for documents.
    #[must_use]
    pub fn ends(&self, key: &[u8], parts: usize, ends: &mut Vec<usize>) -> bool {
        ends.clear();
        let mut at = 0;
        for part in self.parts.iter().take(parts) {
            let Some(len) = key.get(at..).and_then(|rest| part.len_in(rest)) else { return false };
            at += len;
            ends.push(at);
        }
        at <= key.len()
    }
}

impl KeyPart {
    /// The length of this part at the beginning of a key.
    fn len_in(&self, key: &[u8]) -> Option<usize> {
        let flip = if self.descending { 0xff } else { 0 };
        let marker = usize::from(self.nullable);
        if self.nullable && key.first()? ^ flip == 0 {
            return Some(1);
        }
        let key = &key[marker..];
        let byte = |at: usize| key.get(at).map(|byte| byte ^ flip);
        let len = match self.storage {
            Storage::I8 | Storage::U8 => 1,
            Storage::I16
            | Storage::U16
            | Storage::I32
            | Storage::U32
            | Storage::I64
            | Storage::U64
            | Storage::Date
            | Storage::Dec64
            | Storage::Micros
            | Storage::Time => compact::len(byte(0)?),
            Storage::Dec128 => 16,
            Storage::Dec256 => 32,
            Storage::F32 => 4,
            Storage::F64 => 8,
            Storage::Str => self.collation.sort_key_len(&byte)?,
            Storage::Bytes if self.collation == Collation::JSON => return None,
            Storage::Bytes => crate::collation::bytes_key_len(&byte)?,
        };
        Some(marker + len)
    }
}
