//! Held frames: a bit for each frame that the plan holds, as long as anything is announced.
//!
//! Such a frame stands in no order of reclaim, and is no victim whatever its block. Before there is
//! a plan the bits take no memory, and all are clear.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::table::Frame;

#[derive(Debug, Default)]
pub(crate) struct Held(Box<[u64]>);

impl Held {
    /// Room for so many frames, all clear.
    pub(super) fn new(frames: u32) -> Self {
        let words = frames.div_ceil(u64::BITS) as usize;
        Self(alloc::vec![0; words].into_boxed_slice())
    }

    pub(super) fn bytes(&self) -> i64 {
        self.0.len() as i64 * 8
    }

    fn place(frame: Frame) -> (usize, u64) {
        ((frame.0 / u64::BITS) as usize, 1 << (frame.0 % u64::BITS))
    }

    pub(super) fn set(&mut self, frame: Frame) {
        let (at, bit) = Self::place(frame);
        if let Some(word) = self.0.get_mut(at) {
            *word |= bit;
        }
    }

    pub(super) fn clear(&mut self, frame: Frame) {
        let (at, bit) = Self::place(frame);
        if let Some(word) = self.0.get_mut(at) {
            *word &= !bit;
        }
    }

    pub(crate) fn has(&self, frame: Frame) -> bool {
        let (at, bit) = Self::place(frame);
        self.0.get(at).is_some_and(|word| word & bit != 0)
    }

    /// All of them, below so many frames.
    pub(super) fn frames(&self, frames: u32) -> Vec<Frame> {
        let all = (0..frames).map(Frame);
        all.filter(|frame| self.has(*frame)).collect()
    }
}
