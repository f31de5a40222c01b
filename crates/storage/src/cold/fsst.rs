//! FSST (Boncz, Neumann and Leis, PVLDB 13(11), 2020): strings as one-byte codes for up to 255 symbols of one
//! to eight bytes; code 255 escapes the byte after it. Any string decodes on its own.
//!
//! Symbols are trained and strings are compressed by the fsst crate; decoding is ours, since it must take
//! any bytes without a panic.

use avocet_base::codec::{Put, Reader};
use fsst::Compressor;

use crate::error::{Result, StorageError};

const ESCAPE: u8 = 255;

/// A symbol table for decoding.
#[derive(Clone)]
pub struct Symbols {
    /// Symbol bytes, lowest first.
    bytes: Box<[u64; 256]>,
    lens: Box<[u8; 256]>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}

/// Strings in compressed form, back to back.
pub struct Compressed {
    pub symbols: Vec<u8>,
    pub heap: Vec<u8>,
    /// End of each string in the heap.
    pub ends: Vec<u64>,
}

/// Trains a symbol table on the strings and compresses them.
pub fn compress(strings: &[&[u8]]) -> Compressed {
    let training: Vec<&[u8]> = strings.iter().copied().filter(|s| !s.is_empty()).collect();
    let compressor = Compressor::train(&training);
    let mut symbols = Vec::new();
    let (table, lens) = (compressor.symbol_table(), compressor.symbol_lengths());
    symbols.put_u8(table.len() as u8);
    symbols.extend_from_slice(lens);
    for (symbol, &len) in table.iter().zip(lens) {
        symbols.extend_from_slice(&symbol.to_u64().to_le_bytes()[..usize::from(len)]);
    }
    let (mut heap, mut ends) = (Vec::new(), Vec::new());
    compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(strings, &mut heap, &mut ends);
    Compressed { symbols, heap, ends }
}

impl Symbols {
    /// Reads the table that [`compress`] wrote.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        const WHAT: &str = "symbol table";
        let mut r = Reader::new(bytes);
        let count = usize::from(r.u8(WHAT)?);
        let lengths = r.take(count, WHAT)?;
        let mut symbols = Self { bytes: Box::new([0; 256]), lens: Box::new([1; 256]) };
        if count > usize::from(ESCAPE) {
            return Err(r.malformed(WHAT).into());
        }
        for (code, &len) in lengths.iter().enumerate() {
            if !(1..=8).contains(&len) {
                return Err(r.malformed(WHAT).into());
            }
            let mut symbol = [0; 8];
            symbol[..usize::from(len)].copy_from_slice(r.take(usize::from(len), WHAT)?);
            symbols.bytes[code] = u64::from_le_bytes(symbol);
            symbols.lens[code] = len;
        }
        r.finish(WHAT)?;
        Ok(symbols)
    }

    /// Decodes to the end of `out`; fails unless that is `expected` bytes.
    #[allow(unsafe_code)]
    pub fn decode(&self, codes: &[u8], expected: usize, out: &mut Vec<u8>) -> Result<()> {
        let bad = || StorageError::corrupt("compressed strings", "they do not decode to their length");
        // Room for one whole symbol past the end, so that symbols are written as eight bytes always.
        out.reserve(expected + 8);
        let start = out.len();
        let base = out.as_mut_ptr();
        let (mut at, mut i, end) = (start, 0, start + expected);
        while i < codes.len() {
            let code = codes[i];
            i += 1;
            if at >= end {
                return Err(bad());
            }
            let (symbol, len) = if code == ESCAPE {
                let &byte = codes.get(i).ok_or_else(bad)?;
                i += 1;
                (u64::from(byte), 1)
            } else {
                (self.bytes[usize::from(code)], usize::from(self.lens[usize::from(code)]))
            };
            // SAFETY: `at < end`, and `end + 8` bytes are reserved.
            unsafe { base.add(at).cast::<u64>().write_unaligned(symbol.to_le()) };
            at += len;
        }
        if at != end {
            return Err(bad());
        }
        // SAFETY: every byte up to `at` was written, since `at` moved by no more than each write.
        unsafe { out.set_len(at) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_one_by_one_and_in_bulk() {
        let strings: Vec<String> = (0..3000)
            .map(|i| format!("furiously special request №{i} — {}", i * i))
            .chain([String::new()])
            .collect();
        let refs: Vec<&[u8]> = strings.iter().map(|s| s.as_bytes()).collect();
        let packed = compress(&refs);
        let symbols = Symbols::parse(&packed.symbols).unwrap();
        let total = refs.iter().map(|s| s.len()).sum();
        assert!(packed.heap.len() * 2 < total);
        let mut all = Vec::new();
        symbols.decode(&packed.heap, total, &mut all).unwrap();
        assert_eq!(all, refs.concat());
        let mut from = 0;
        for (string, &end) in refs.iter().zip(&packed.ends) {
            let mut one = Vec::new();
            symbols.decode(&packed.heap[from..end as usize], string.len(), &mut one).unwrap();
            assert_eq!(&one, string);
            from = end as usize;
        }
    }

    #[test]
    fn any_codes_decode_or_fail() {
        let packed = compress(&[b"abcabcabcabc", b"abcabc"]);
        let symbols = Symbols::parse(&packed.symbols).unwrap();
        for expected in 0..20 {
            let _ = symbols.decode(&packed.heap, expected, &mut Vec::new());
            let _ = symbols.decode(&[ESCAPE], expected, &mut Vec::new());
        }
        assert!(symbols.decode(&[ESCAPE], 1, &mut Vec::new()).is_err());
        assert!(Symbols::parse(&[2, 1, 9, 0, 0]).is_err());
    }
}
