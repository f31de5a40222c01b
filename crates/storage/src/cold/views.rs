//! Building Arrow string views over one shared buffer.
//!
//! A view is 16 bytes: length, then the string itself if it has at most 12 bytes, else its first 4 bytes,
//! the number of the buffer, and the offset in it.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};

use super::types::ColdType;
use crate::error::{Result, StorageError};

const INLINE: usize = 12;

/// The view of `heap[start..start + len]`, in buffer 0.
#[inline(always)]
pub fn view(heap: &[u8], start: usize, len: usize) -> u128 {
    if len > INLINE {
        let prefix = &heap[start..start + 4];
        let prefix = u32::from_le_bytes(prefix.try_into().expect("four bytes were taken"));
        return len as u128 | u128::from(prefix) << 32 | (start as u128) << 96;
    }
    match heap[start..].first_chunk::<16>() {
        // The bytes past the string are masked off: cheaper than a copy of variable length.
        Some(block) => {
            let keep = (1u128 << (8 * len)) - 1;
            len as u128 | (u128::from_le_bytes(*block) & keep) << 32
        }
        None => {
            let mut raw = [0; 16];
            raw[4..4 + len].copy_from_slice(&heap[start..start + len]);
            len as u128 | u128::from_le_bytes(raw)
        }
    }
}

/// Fails unless the heap is UTF-8 and strings of these lengths, back to back, start at character boundaries.
pub fn check_utf8(heap: &[u8], lengths: impl IntoIterator<Item = usize>) -> Result<()> {
    let bad = || StorageError::corrupt("string column", "not UTF-8");
    let text = std::str::from_utf8(heap).map_err(|_| bad())?;
    if text.is_ascii() {
        return Ok(());
    }
    let mut at = 0;
    for len in lengths {
        at += len;
        if !text.is_char_boundary(at) {
            return Err(bad());
        }
    }
    Ok(())
}

/// An array of views made by [`view`] over `heap`.
///
/// # Safety
/// Every view was made by [`view`] over `heap` (or is 0), and if `ty` is text, every string is UTF-8.
#[allow(unsafe_code)]
pub unsafe fn view_array(
    ty: ColdType,
    views: Vec<u128>,
    heap: Buffer,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let views = ScalarBuffer::from(views);
    // SAFETY: the caller vouches for views and text.
    unsafe {
        match ty {
            ColdType::Utf8 => Arc::new(StringViewArray::new_unchecked(views, [heap], nulls)),
            _ => Arc::new(BinaryViewArray::new_unchecked(views, [heap], nulls)),
        }
    }
}
