//! Contents of the files of a bed: blocks computed from a seed.
//!
//! Written by [`fill`](crate::fill), checked by [`read`](crate::read). A block of 4 KiB begins with
//! its *tag*, a word that depends on seed, file and place; all its other words follow from the tag.
//! So a reader can tell a block that is wrong, or in the wrong place, from the bytes alone, and the
//! [`store`](crate::store) keeps eight bytes for four thousand: beds larger than memory cost
//! nothing.
//!
//! The words are those of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): fast, and no two blocks
//! alike, so nothing below can compress or share them.

/// Bytes of a block: the file systems' block, and the kernel's page.
pub const BLOCK_BYTES: usize = 4096;

/// A block.
pub type Block = [u8; BLOCK_BYTES];

/// The increment of SplitMix64: 2^64 over the golden ratio.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Pseudo-random numbers: the same ones from the same seed.
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// Begins a sequence.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(GAMMA)))
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// One of `0..count`, and 0 of nothing.
    pub const fn below(&mut self, count: u64) -> u64 {
        // The remainder prefers small numbers by less than one in 2^40 for counts below 2^24.
        match count {
            0 => 0,
            _ => self.draw() % count,
        }
    }
}

/// The tag of block `index` of file `file`. Never 0, which stands for "no tag".
#[must_use]
pub const fn tag(seed: u64, file: u64, index: u64) -> u64 {
    let tag = mix(mix(mix(seed.wrapping_add(GAMMA)) ^ file).wrapping_add(GAMMA) ^ index);
    if tag == 0 { GAMMA } else { tag }
}

/// Writes the block of this tag.
pub fn expand(tag: u64, block: &mut [u8]) {
    let mut state = tag;
    for (number, word) in block.chunks_mut(8).enumerate() {
        let value = if number == 0 { tag } else { mix(state) };
        state = state.wrapping_add(GAMMA);
        let length = word.len();
        word.copy_from_slice(&value.to_le_bytes()[..length]);
    }
}

/// The tag of a block, if its words follow from it.
#[must_use]
pub fn recognize(block: &Block) -> Option<u64> {
    let tag = u64::from_le_bytes(*block.first_chunk()?);
    (tag != 0 && follows(tag, 0, block)).then_some(tag)
}

/// Whether these are the bytes of the tag's block from `skip` on.
#[must_use]
pub fn follows(tag: u64, skip: usize, bytes: &[u8]) -> bool {
    let mut expected = [0; BLOCK_BYTES];
    // The first words tell almost every foreign block without computing the rest.
    if skip == 0 && bytes.len() >= 16 {
        expand(tag, &mut expected[..16]);
        if expected[..16] != bytes[..16] {
            return false;
        }
    }
    expand(tag, &mut expected);
    expected.get(skip..skip.saturating_add(bytes.len())) == Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_recognized_and_a_changed_bit_is_not() {
        let mut block = [0; BLOCK_BYTES];
        expand(tag(7, 3, 11), &mut block);
        assert_eq!(recognize(&block), Some(tag(7, 3, 11)));
        assert!(follows(tag(7, 3, 11), 0, &block[..100]));
        assert!(follows(tag(7, 3, 11), 4_000, &block[4_000..]));
        block[BLOCK_BYTES - 1] ^= 1;
        assert_eq!(recognize(&block), None);
        assert!(!follows(tag(7, 3, 11), 4_000, &block[4_000..]));
        assert!(!follows(tag(7, 3, 11), 4_000, &block[..100]));
        assert_eq!(recognize(&[0; BLOCK_BYTES]), None);
    }

    #[test]
    fn a_seed_draws_its_own_numbers() {
        let numbers = |seed| {
            let mut draws = Draws::new(seed);
            [(); 40].map(|()| draws.below(10))
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert!((0..10).all(|number| numbers(1).contains(&number)));
        assert_eq!(Draws::new(1).below(0), 0);
    }

    #[test]
    fn seed_file_and_place_all_change_the_tag() {
        let tags = [
            tag(1, 1, 1),
            tag(2, 1, 1),
            tag(1, 2, 1),
            tag(1, 1, 2),
            tag(1, 0, 0),
        ];
        for (at, one) in tags.iter().enumerate() {
            assert!(!tags[..at].contains(one));
        }
    }
}
