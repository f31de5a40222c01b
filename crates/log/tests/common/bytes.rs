//! Bytes for tests of compression; its unit tests use them, too.

/// Bytes in which there is nothing to compress.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}
