//! The one source of chance: splitmix64, from an explicit seed.
//!
//! Used by workloads, the fault wrapper and the tests; nothing in this crate draws a number any
//! other way, so a seed determines a run on every machine. The generator is Steele, Lea
//! and Flood's splitmix64 (OOPSLA 2014): 64 bits of state, full period, passes BigCrush. It is
//! not for secrets.

/// A stream of numbers decided by its seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent stream for part number `part` of the draws of `seed`.
    #[must_use]
    pub fn part(seed: u64, part: u64) -> Self {
        let mut source = Self(seed ^ part.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(source.number())
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0. The bias of the multiplication is below
    /// `bound / 2^64`, invisible for the bounds drawn here.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// A number below 2^`bits`, small ones as likely as large ones: the number of bits is drawn
    /// first. At most 63 bits.
    pub fn magnitude(&mut self, bits: u32) -> u64 {
        let drawn = self.between(0, u64::from(bits.min(63)));
        self.below(1 << drawn)
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One element of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len() as u64) as usize)
    }
}

/// The finaliser of splitmix64: every input bit reaches every output bit.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_first_numbers_of_seed_zero_come_out() {
        let mut random = Random::new(0);
        assert_eq!(random.number(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.number(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn bounds_are_kept() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert!((0..1000).all(|_| (3..=5).contains(&random.between(3, 5))));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick::<u8>(&[]), None);
    }
}
