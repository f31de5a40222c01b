//! Random numbers for loading and running workloads: the same numbers for the same seed, everywhere.

/// xoshiro256++ seeded by SplitMix64: fast, and the same numbers for the same seed everywhere.
#[derive(Clone)]
pub struct Random([u64; 4]);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut state = seed;
        Random(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `low..=high`.
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high);
        let span = (high - low + 1) as u64;
        low + ((u128::from(self.bits()) * u128::from(span)) >> 64) as i64
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: i64) -> bool {
        self.uniform(1, 100) <= percent
    }

    /// Letters and digits, `low..=high` of them.
    pub fn alphanumeric(&mut self, low: i64, high: i64) -> String {
        const SET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let length = self.uniform(low, high);
        (0..length).map(|_| SET[self.uniform(0, 61) as usize] as char).collect()
    }

    /// `count` capital letters.
    pub fn letters(&mut self, count: i64) -> String {
        (0..count).map(|_| (b'A' + self.uniform(0, 25) as u8) as char).collect()
    }

    /// `count` digits.
    pub fn digits(&mut self, count: i64) -> String {
        (0..count).map(|_| (b'0' + self.uniform(0, 9) as u8) as char).collect()
    }

    /// `1..=count` in random order.
    pub fn permutation(&mut self, count: i64) -> Vec<i64> {
        let mut all: Vec<i64> = (1..=count).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, self.uniform(0, i as i64) as usize);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_stays_below_one_and_is_even() {
        let mut random = Random::new(3);
        let numbers: Vec<f64> = (0..100_000).map(|_| random.unit()).collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)));
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn permutations_hold_every_number_once() {
        let mut all = Random::new(7).permutation(100);
        all.sort_unstable();
        assert_eq!(all, (1..=100).collect::<Vec<_>>());
    }
}
