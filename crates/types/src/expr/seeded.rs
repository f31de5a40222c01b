//! The numbers of RAND(seed).

/// MySQL's `my_rnd`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeededRandom {
    first: u64,
    second: u64,
}

impl SeededRandom {
    const MAX: u64 = 0x3FFF_FFFF;

    pub(crate) fn new(seed: i64) -> Self {
        let seed = seed as u32;
        Self {
            first: u64::from(seed.wrapping_mul(0x10001).wrapping_add(55_555_555)) % Self::MAX,
            second: u64::from(seed.wrapping_mul(0x1000_0001)) % Self::MAX,
        }
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.first = (self.first * 3 + self.second) % Self::MAX;
        self.second = (self.first + self.second + 33) % Self::MAX;
        self.first as f64 / Self::MAX as f64
    }
}
