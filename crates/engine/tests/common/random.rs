//! Random numbers by seed.
#![allow(dead_code, reason = "not every test binary uses all of it")]

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`; 0 if there is none.
    pub fn below<N: TryFrom<u64> + TryInto<u64>>(&mut self, n: N) -> N {
        let end = n.try_into().unwrap_or(0).max(1);
        let number = N::try_from(self.next() % end);
        number.unwrap_or_else(|_| unreachable!("it is below a number of the type"))
    }
}
