//! Numbers that look random and are the same in every run with the same seed.

/// `SplitMix64`: a counter through a mixer. Nothing here needs more.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`; 0 when `end` is 0. The bias of the remainder is far below what a figure can show.
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of a u32 fits")]
    pub const fn below(&mut self, end: u32) -> u32 {
        if end == 0 { 0 } else { (self.next() % end as u64) as u32 }
    }
}

/// Bits that depend on a seed and a number only, whatever was asked before.
pub const fn hash(seed: u64, number: u64) -> u64 {
    Random::new(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_gives_others() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.below(1000), random.below(1000), random.below(1000), random.below(1000)]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_eq!(Random::new(1).below(0), 0);
    }

    #[test]
    fn a_hundredth_of_the_hashes_is_about_a_hundredth() {
        let hits = (0..100_000).filter(|number| hash(3, *number).is_multiple_of(100)).count();
        assert!((900..1100).contains(&hits), "{hits}");
    }
}
