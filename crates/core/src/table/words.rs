//! The words of the resident table: which block each frame holds, and its flags.
//!
//! Changed by the table; read without a lock by any thread. The value such a
//! reader relies on is [`Words::still`]: asked after announcing the frame, it says that the frame
//! holds the block and that the thread that reuses the frame will see the announcement. So a frame is
//! given away and vacated with sequential consistency; everything else is acquire and release.
//!
//! Compiled a second time by `crates/io/tests/interleavings`, which tries this in every order.

use alloc::boxed::Box;

use super::{Frame, flag};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Block, FileId};

/// A word a frame: 24 bits of file, 32 bits of block, 8 flags.
#[derive(Debug)]
pub(crate) struct Words(Box<[AtomicU64]>);

/// A word.
#[inline]
pub(crate) const fn word(file: FileId, block: Block, flags: u8) -> u64 {
    ((file.0 as u64) << 40) | ((block.0 as u64) << 8) | flags as u64
}

impl Words {
    /// So many frames, all vacant.
    pub(crate) fn new(frames: u32) -> Self {
        let vacant = |_| AtomicU64::new(u64::from(flag::VACANT));
        Self((0..frames).map(vacant).collect())
    }

    /// How many frames there are.
    #[inline]
    pub(crate) fn frames(&self) -> u32 {
        self.0.len() as u32
    }

    /// The word of a frame.
    #[inline]
    pub(crate) fn now(&self, frame: Frame) -> u64 {
        self.0[frame.0 as usize].load(Ordering::Acquire)
    }

    /// Whether the frame holds this block, with its bytes. With sequential consistency, so that a
    /// hazard announced before cannot be overlooked by a thread that vacates the frame after.
    #[inline]
    pub(crate) fn still(&self, frame: Frame, file: FileId, block: Block) -> bool {
        let now = self.0[frame.0 as usize].load(Ordering::SeqCst);
        now & !0xff == word(file, block, 0) && now as u8 & (flag::FILLING | flag::VACANT) == 0
    }

    /// Takes the `ARMED` flag; true for the one caller that found it set.
    #[inline]
    pub(crate) fn disarm(&self, frame: Frame) -> bool {
        self.clear(frame, flag::ARMED) & flag::ARMED != 0
    }

    /// The block of a frame; meaningless if it is vacant. For the table, which changes the words.
    pub(crate) fn holds(&self, frame: Frame) -> (FileId, Block) {
        let word = self.0[frame.0 as usize].load(Ordering::Relaxed);
        (FileId((word >> 40) as u32), Block((word >> 8) as u32))
    }

    /// Sets flags.
    pub(crate) fn set(&self, frame: Frame, flags: u8) {
        self.0[frame.0 as usize].fetch_or(u64::from(flags), Ordering::AcqRel);
    }

    /// Clears flags; those that were set before.
    #[inline]
    pub(crate) fn clear(&self, frame: Frame, flags: u8) -> u8 {
        self.0[frame.0 as usize].fetch_and(!u64::from(flags), Ordering::AcqRel) as u8
    }

    /// Gives a vacant frame to a block.
    pub(crate) fn give(&self, frame: Frame, file: FileId, block: Block, flags: u8) {
        self.0[frame.0 as usize].store(word(file, block, flags), Ordering::SeqCst);
    }

    /// Takes the block out of a frame, `PINNED` kept.
    pub(crate) fn vacate(&self, frame: Frame) {
        let pinned = self.now(frame) as u8 & flag::PINNED;
        self.0[frame.0 as usize].store(u64::from(flag::VACANT | pinned), Ordering::SeqCst);
    }
}
