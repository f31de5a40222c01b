//! YCSB's generators of skewed numbers.
//!
//! `Zipfian` is the algorithm of Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994), with
//! YCSB's constant 0.99: item 0 is the most popular one. `Scrambled` spreads the popular items over the whole range by
//! hashing, from a fixed Zipfian over ten billion items, so that which items are popular does not depend on how many there are.

use crate::random::Random;

const THETA: f64 = 0.99;
/// Items of the distribution that is scrambled, and its zeta, which takes too long to sum up here.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// The sum of `1 / i^theta` for `from < i <= to`.
fn zeta(from: u64, to: u64) -> f64 {
    (from + 1..=to).map(|i| (i as f64).powf(-THETA)).sum()
}

/// FNV-1a of a number's eight bytes, lowest first; YCSB's hash, without its sign.
pub fn fnv(number: u64) -> u64 {
    let hash = number.to_le_bytes().iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    (hash as i64).unsigned_abs()
}

/// Numbers below `items`, of which 0 is the most likely; `items` may grow.
#[derive(Clone)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    pub fn new(items: u64) -> Zipfian {
        Zipfian::with_zeta(items, zeta(0, items))
    }

    fn with_zeta(items: u64, zeta_n: f64) -> Zipfian {
        assert!(items > 0, "there is something to choose from");
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta(0, 2) / zeta_n);
        Zipfian { items, zeta: zeta_n, eta }
    }

    /// Numbers below a larger bound from now on; costs as much as there are more.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            *self = Zipfian::with_zeta(items, self.zeta + zeta(self.items, items));
        }
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        let u = random.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(THETA) {
            return 1;
        }
        let spread = (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        ((self.items as f64 * spread) as u64).min(self.items - 1)
    }
}

/// Numbers below a bound, skewed like a Zipfian, the popular ones anywhere.
#[derive(Clone)]
pub struct Scrambled(Zipfian);

impl Scrambled {
    pub fn new() -> Scrambled {
        Scrambled(Zipfian::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA))
    }

    pub fn draw(&self, random: &mut Random, items: u64) -> u64 {
        fnv(self.0.draw(random)) % items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of `items` comes in `draws`.
    fn counts(items: u64, draws: usize, mut draw: impl FnMut(&mut Random) -> u64) -> Vec<usize> {
        let mut random = Random::new(17);
        let mut counts = vec![0; items as usize];
        (0..draws).for_each(|_| counts[draw(&mut random) as usize] += 1);
        counts
    }

    #[test]
    fn the_first_items_come_as_often_as_zipf_says() {
        let (items, draws) = (1_000, 1_000_000);
        let zipf = Zipfian::new(items);
        let seen = counts(items, draws, |random| zipf.draw(random));
        // The first two are exact; behind them the algorithm approximates.
        for (item, tolerance) in [(0, 0.02), (1, 0.02), (9, 0.25), (99, 0.25)] {
            let wanted = ((item + 1) as f64).powf(-THETA) / zeta(0, items) * draws as f64;
            let off = (seen[item] as f64 - wanted).abs() / wanted;
            assert!(off < tolerance, "item {item}: {} instead of {wanted}", seen[item]);
        }
    }

    #[test]
    fn growing_is_as_starting_larger() {
        let mut grown = Zipfian::new(10);
        grown.grow(1_000);
        let fresh = Zipfian::new(1_000);
        assert!((grown.zeta - fresh.zeta).abs() < 1e-9 && (grown.eta - fresh.eta).abs() < 1e-9);
    }

    #[test]
    fn zeta_of_the_scrambled_distribution_is_what_it_sums_up_to() {
        // The tail of the sum by the integral between its bounds.
        let head = 1_000_000_u64;
        let integral = |from: f64, to: f64| (to.powf(1.0 - THETA) - from.powf(1.0 - THETA)) / (1.0 - THETA);
        let tail = integral(head as f64 + 0.5, SCRAMBLED_ITEMS as f64 + 0.5);
        assert!((zeta(0, head) + tail - SCRAMBLED_ZETA).abs() < 1e-6, "{}", zeta(0, head) + tail);
    }

    #[test]
    fn scrambling_keeps_the_skew_and_spreads_it() {
        let (items, draws) = (1_000, 200_000);
        let scrambled = Scrambled::new();
        let seen = counts(items, draws, |random| scrambled.draw(random, items));
        let most = (0..items as usize).max_by_key(|item| seen[*item]).expect("there are items");
        assert_eq!(most as u64, fnv(0) % items, "the most popular one is where its hash says");
        let share = seen[most] as f64 / draws as f64;
        assert!((share - 1.0 / SCRAMBLED_ZETA).abs() < 0.005, "{share}");
        assert!(seen.iter().filter(|n| **n > 0).count() > 990, "nearly all come at least once");
    }

    #[test]
    fn hashes_are_fnv_1a() {
        // Of eight zero bytes, which is FNV-1a's published value for them.
        assert_eq!(fnv(0), (0xA8C7_F832_281A_39C5_u64 as i64).unsigned_abs());
    }
}
