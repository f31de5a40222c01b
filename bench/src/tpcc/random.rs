//! The specification's random inputs (clause 2.1.6 and 4.3.2): NURand, last names, strings of letters and digits.

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

    fn next(&mut self) -> u64 {
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
        low + ((u128::from(self.next()) * u128::from(span)) >> 64) as i64
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

    /// A string with "ORIGINAL" in it for one of ten rows (I_DATA, S_DATA).
    pub fn data_with_original(&mut self) -> String {
        let mut data = self.alphanumeric(26, 50);
        if self.percent(10) {
            let at = self.uniform(0, data.len() as i64 - 8) as usize;
            data.replace_range(at..at + 8, "ORIGINAL");
        }
        data
    }
}

/// The constants C of NURand: one set for loading, one for running, apart as clause 2.1.6.1 wants.
#[derive(Clone, Copy)]
pub struct NuRand {
    last: i64,
    customer: i64,
    item: i64,
}

impl NuRand {
    /// For the population.
    pub fn load() -> NuRand {
        NuRand { last: 157, customer: 223, item: 3849 }
    }

    /// For the run: the distance of the constants for last names is in 65..=119 and neither 96 nor 112.
    pub fn run() -> NuRand {
        NuRand { last: 157 + 87, customer: 867, item: 5261 }
    }

    /// A customer number in `1..=count`.
    pub fn customer(&self, random: &mut Random, count: i64) -> i64 {
        nurand(random, 1023, self.customer, 1, count)
    }

    /// An item number in `1..=count`.
    pub fn item(&self, random: &mut Random, count: i64) -> i64 {
        nurand(random, 8191, self.item, 1, count)
    }

    /// A last name out of the first `names`.
    pub fn last_name(&self, random: &mut Random, names: i64) -> String {
        last_name(nurand(random, 255, self.last, 0, names - 1))
    }
}

fn nurand(random: &mut Random, a: i64, c: i64, low: i64, high: i64) -> i64 {
    ((random.uniform(0, a) | random.uniform(low, high)) + c) % (high - low + 1) + low
}

/// The last name of a number in `0..=999`.
pub fn last_name(number: i64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digit = |power: i64| SYLLABLES[(number / power % 10) as usize];
    [digit(100), digit(10), digit(1)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_the_specification_s() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn nurand_stays_in_range_and_is_not_uniform() {
        let mut random = Random::new(1);
        let mut seen = vec![0u32; 3001];
        for _ in 0..300_000 {
            seen[NuRand::run().customer(&mut random, 3000) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let most = seen.iter().max().copied().unwrap_or_default();
        assert!(most > 300, "the hottest customer is three times as hot as the mean");
    }

    #[test]
    fn permutations_hold_every_number_once() {
        let mut all = Random::new(7).permutation(100);
        all.sort_unstable();
        assert_eq!(all, (1..=100).collect::<Vec<_>>());
    }
}
