//! The resident table: which blocks are in memory, in which frame, and the reports of a hit.
//!
//! The engine owns it and is the only one that changes it, save one bit: any thread may look a
//! block up and take its `ARMED` flag. So plain hits need no lock and never enter the engine.
//!
//! ```text
//! index  [u32; N / 0.85]   8 bits of hash | 24 bits of frame, linear probing
//! words  [u64; N]          24 bits of file | 32 bits of block | 8 flags
//! links  [u24; N]          next frame in the queue this frame stands in, or the slot of the
//!                          request that fills it: never both
//! ```
//!
//! 15.7 bytes a block, 0.38 % at 4 KiB: below the 0.4 % of Li and Shen 2005, section 3.4, all
//! included. That is why the links are three bytes and single: queues give up their blocks at the
//! front only (see the design note 0002).
//!
//! A lookup that runs beside a change may miss a block that is there, because entries move; it
//! then takes the slow path, which is exact. It can never find a wrong block if the caller
//! checks [`Table::still`] after making its interest in the frame visible to the thread that reuses
//! frames (a hazard pointer in `forerun-io`).
//!
//! It does not hold data and does not know where frames lie in memory.

mod words;

use alloc::boxed::Box;
use alloc::vec;

use self::words::{Words, word};
use crate::sync::{AtomicU32, Ordering};
use crate::units::{Block, Bytes, FileId};

/// The place of one block in memory, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame(pub u32);

/// Result of a lookup: the frame and its flags at that moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where the block lies.
    pub frame: Frame,
    /// Its flags.
    pub flags: u8,
}

/// The flags of a resident block.
pub mod flag {
    /// In flight: the frame is reserved, its bytes have not arrived.
    pub const FILLING: u8 = 1;
    /// The next hit must be reported as a touch. The one flag that other threads change; the
    /// engine sets it and never reads it.
    pub const ARMED: u8 = 1 << 1;
    /// The lookahead mark (`PG_readahead`): a hit must enter the engine.
    pub const MARK: u8 = 1 << 2;
    /// Fetched ahead and not yet accessed.
    pub const UNREAD: u8 = 1 << 3;
    /// Accessed since it was last deactivated.
    pub const REFERENCED: u8 = 1 << 4;
    /// Accessed again: belongs to, or moves to, the active list.
    pub const ACTIVE: u8 = 1 << 5;
    /// A reader is taking its bytes: must not be given up.
    pub const PINNED: u8 = 1 << 6;
    /// Holds no block at all (free, or given up while pinned).
    pub const VACANT: u8 = 1 << 7;
}

const EMPTY: u32 = u32::MAX;
const FRAME_BITS: u32 = 24;
const FRAME_MASK: u32 = (1 << FRAME_BITS) - 1;
/// The link of a frame that has none.
pub const NO_LINK: u32 = FRAME_MASK;

/// Slots per 1000 frames. At 85 % full a linear probe takes about four steps to find a block and
/// 23 to find none; tighter would save little and cost much.
const SLOTS_PER_MILLE: u64 = 1176;

/// See the [module](self).
#[derive(Debug)]
pub struct Table {
    index: Box<[AtomicU32]>,
    words: Words,
}

/// The engine's half: links only it may touch.
#[derive(Debug)]
pub(crate) struct Links(Box<[[u8; 3]]>);

impl Links {
    pub(crate) fn new(frames: u32) -> Self {
        Self(vec![[0xff; 3]; frames as usize].into_boxed_slice())
    }

    pub(crate) fn get(&self, frame: Frame) -> u32 {
        let [a, b, c] = self.0[frame.0 as usize];
        u32::from_le_bytes([a, b, c, 0])
    }

    pub(crate) fn set(&mut self, frame: Frame, link: u32) {
        let [a, b, c, _] = link.to_le_bytes();
        self.0[frame.0 as usize] = [a, b, c];
    }
}

/// Multiplicative hashing with the odd constant nearest 2^64 / golden ratio, then a fold: blocks
/// of one file spread over the index, and the fold makes the low bits depend on all of them.
#[inline]
#[must_use]
pub const fn hash(file: FileId, block: Block) -> u64 {
    let key = word(file, block, 0) >> 8;
    let mixed = (key ^ (key >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

impl Table {
    /// Fewest frames an engine works with: 64, so that a few readers can each hold the block they
    /// copy and still have one window in flight.
    pub const FRAMES_MIN: u32 = 64;
    /// Most frames the 24-bit links can number.
    pub const FRAMES_MAX: u32 = NO_LINK - 1;
    /// Memory of an engine beside its frames when nothing is open: itself and the first entries
    /// of its maps. Readers, reads and requests are paid for with frames as they come.
    const FIXED_BYTES: u64 = 8 * 1024;

    /// An empty table for `frames` blocks.
    #[must_use]
    pub fn new(frames: u32) -> Self {
        let frames = frames.clamp(1, Self::FRAMES_MAX);
        Self {
            index: (0..Self::slots(frames))
                .map(|_| AtomicU32::new(EMPTY))
                .collect(),
            words: Words::new(frames),
        }
    }

    fn slots(frames: u32) -> u64 {
        u64::from(frames) * SLOTS_PER_MILLE / 1000 + 8
    }

    /// Memory that `frames` frames of this size take, bookkeeping included.
    #[must_use]
    pub fn memory_for(frames: u32, block_bytes: u32) -> Bytes {
        Bytes(u64::from(frames) * u64::from(block_bytes) + Self::bookkeeping(frames).0)
    }

    /// Bookkeeping that `frames` frames take.
    #[must_use]
    pub fn bookkeeping(frames: u32) -> Bytes {
        Bytes(Self::slots(frames) * 4 + u64::from(frames) * (8 + 3) + Self::FIXED_BYTES)
    }

    /// The most frames that fit `memory` with their bookkeeping.
    #[must_use]
    pub fn frames_in(memory: Bytes, block_bytes: u32) -> u32 {
        let fits = |frames: u32| Self::memory_for(frames, block_bytes) <= memory;
        let (mut low, mut high) = (0, Self::FRAMES_MAX);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle) {
                low = middle
            } else {
                high = middle - 1
            }
        }
        low
    }

    /// Number of frames.
    #[inline]
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.words.frames()
    }

    /// Looks a block up.
    #[inline]
    #[must_use]
    pub fn find(&self, file: FileId, block: Block) -> Option<Found> {
        let wanted = word(file, block, 0);
        let hash = hash(file, block);
        let tag = (hash as u32) & !FRAME_MASK;
        let mut slot = self.home(hash);
        for _ in 0..self.index.len() {
            let entry = self.index[slot].load(Ordering::Acquire);
            if entry == EMPTY {
                return None;
            }
            if entry & !FRAME_MASK == tag {
                let frame = Frame(entry & FRAME_MASK);
                // An index entry always names a frame of this table.
                let word = self.words.now(frame);
                if word & !0xff == wanted && word as u8 & flag::VACANT == 0 {
                    return Some(Found {
                        frame,
                        flags: word as u8,
                    });
                }
            }
            slot = self.behind(slot);
        }
        None
    }

    /// Whether the frame still holds this block, with its bytes. With sequential consistency, so
    /// that a hazard announced before cannot be overlooked by a thread that vacates the frame after.
    #[inline]
    #[must_use]
    pub fn still(&self, frame: Frame, file: FileId, block: Block) -> bool {
        self.words.still(frame, file, block)
    }

    /// The flags of a frame, whatever it holds.
    #[inline]
    #[must_use]
    pub fn flags(&self, frame: Frame) -> u8 {
        self.words.now(frame) as u8
    }

    /// Takes the `ARMED` flag of a frame; true for the one caller that found it set.
    #[inline]
    #[must_use]
    pub fn disarm(&self, frame: Frame) -> bool {
        self.words.disarm(frame)
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.index.len() as u128) >> 64) as usize
    }

    /// The next slot of a probe run.
    #[inline]
    fn behind(&self, slot: usize) -> usize {
        if slot + 1 == self.index.len() {
            0
        } else {
            slot + 1
        }
    }

    /// The block of a frame; meaningless if it is vacant.
    pub(crate) fn holds(&self, frame: Frame) -> (FileId, Block) {
        self.words.holds(frame)
    }

    pub(crate) fn set(&self, frame: Frame, flags: u8) {
        self.words.set(frame, flags);
    }

    pub(crate) fn clear(&self, frame: Frame, flags: u8) {
        self.words.clear(frame, flags);
    }

    /// Gives a vacant frame to a block that is not in the table.
    pub(crate) fn insert(&self, frame: Frame, file: FileId, block: Block, flags: u8) {
        self.words.give(frame, file, block, flags);
        let hash = hash(file, block);
        let mut slot = self.home(hash);
        while self.index[slot].load(Ordering::Relaxed) != EMPTY {
            slot = self.behind(slot);
        }
        let entry = (hash as u32 & !FRAME_MASK) | frame.0;
        self.index[slot].store(entry, Ordering::Release);
    }

    /// Takes the block out of the table. The frame is vacant from now on, `PINNED` kept.
    pub(crate) fn remove(&self, frame: Frame) {
        let (file, block) = self.holds(frame);
        self.words.vacate(frame);
        let mut slot = self.home(hash(file, block));
        loop {
            let entry = self.index[slot].load(Ordering::Relaxed);
            if entry == EMPTY {
                return;
            }
            if entry & FRAME_MASK == frame.0 {
                break;
            }
            slot = self.behind(slot);
        }
        self.close_gap(slot);
    }

    /// Moves later entries of the probe run back over the gap at `gap` (deletion without
    /// tombstones, so lookups stay short forever).
    fn close_gap(&self, mut gap: usize) {
        let length = self.index.len();
        let mut slot = gap;
        loop {
            slot = self.behind(slot);
            let entry = self.index[slot].load(Ordering::Relaxed);
            if entry == EMPTY {
                break;
            }
            let (file, block) = self.holds(Frame(entry & FRAME_MASK));
            let home = self.home(hash(file, block));
            let from_home = (slot + length - home) % length;
            let from_gap = (slot + length - gap) % length;
            if from_home >= from_gap {
                self.index[gap].store(entry, Ordering::Release);
                gap = slot;
            }
        }
        self.index[gap].store(EMPTY, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn finds_exactly_what_was_inserted_and_not_removed(
            steps in prop::collection::vec((any::<bool>(), 0..3u32, 0..60u32), 0..400)
        ) {
            let table = Table::new(40);
            let mut free: Vec<Frame> = (0..40).map(Frame).collect();
            let mut model = BTreeMap::new();
            for (add, file, block) in steps {
                let key = (FileId(file), Block(block));
                if add && !model.contains_key(&key) {
                    let Some(frame) = free.pop() else { continue };
                    table.insert(frame, key.0, key.1, flag::ARMED);
                    model.insert(key, frame);
                } else if !add && let Some(frame) = model.remove(&key) {
                    table.remove(frame);
                    free.push(frame);
                }
                for file in (0..3).map(FileId) {
                    for block in (0..60).map(Block) {
                        let found = table.find(file, block).map(|f| f.frame);
                        prop_assert_eq!(found, model.get(&(file, block)).copied());
                    }
                }
            }
        }
    }

    #[test]
    fn bookkeeping_stays_below_four_per_mille_of_4_kib_blocks() {
        for memory in [16 << 20, 256 << 20, 16 << 30] {
            let frames = Table::frames_in(Bytes(memory), 4096);
            let share = Table::bookkeeping(frames).0 as f64 / memory as f64;
            assert!(
                share <= if memory < 64 << 20 { 0.0044 } else { 0.004 },
                "{memory}: {share}"
            );
        }
    }
}
