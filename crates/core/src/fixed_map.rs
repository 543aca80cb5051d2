//! A hash map whose order is the same in every run.
//!
//! Used for sparse numbers of the engine (files, readers, reads). The keys are small numbers
//! from a trusted driver, so one multiplication is hash enough; there is no random state, and
//! still no code may depend on iteration order.

use core::hash::{BuildHasherDefault, Hasher};

/// The map.
pub(crate) type FixedMap<K, V> = hashbrown::HashMap<K, V, BuildHasherDefault<FixedHasher>>;

/// Multiplies by the odd constant nearest 2^64 / golden ratio and folds.
#[derive(Default, Clone, Copy)]
pub(crate) struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u16(&mut self, n: u16) {
        self.write_u64(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
