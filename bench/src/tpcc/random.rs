//! The specification's random inputs (clause 2.1.6 and 4.3.2): NURand, last names, data of a brand.

use crate::random::Random;

/// A string with "ORIGINAL" in it for one of ten rows (I_DATA, S_DATA).
pub fn data_with_original(random: &mut Random) -> String {
    let mut data = random.alphanumeric(26, 50);
    if random.percent(10) {
        let at = random.uniform(0, data.len() as i64 - 8) as usize;
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    data
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
}
