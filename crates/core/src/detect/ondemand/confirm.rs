//! Confirmation: which of the last reads that missed make a progression with this one.
//!
//! Two reads that touch, the later one below, are backward reading, as two that touch upward are
//! sequential. Anything else takes three reads of equal length with equal distances, or two where
//! the distance is the one confirmed last: slices of an array begin again at each row. Where other
//! reads lie between, because several readers or columns take turns, it takes four: among 12 random
//! reads of a file of 1,000 places three are equally far apart one time in ten.
//!
//! ```text
//! columns at 0 and 40 of rows of 256:   0  40  256  296  512  552  768: 0, 256, 512, 768 are equally far
//! ```
//!
//! A gap that is read through may be off by a block, as edges that are not aligned make it; pieces
//! apart must fit exactly.

use alloc::vec::Vec;

use crate::detect::{Access, Direction};
use crate::units::Block;

/// Reads remembered: four readers in turn need three each before the one that confirms.
const RECENT_MAX: usize = 12;

/// An overlap with the read before is small up to this part of the read, and a block.
const OVERLAP_PART: u32 = 4;

/// Blocks of one read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Read {
    begin: u32,
    /// Behind its last block.
    end: u32,
}

impl Read {
    /// All of a read.
    pub(super) fn of(access: &Access) -> Self {
        Self {
            begin: access.block.0.saturating_sub(access.head),
            ..Self::rest(access)
        }
    }

    /// The rest still wanted of it.
    pub(super) fn rest(access: &Access) -> Self {
        Self {
            begin: access.block.0,
            end: access.block.0.saturating_add(access.count),
        }
    }

    pub(super) fn first(self) -> Block {
        Block(self.begin)
    }

    pub(super) fn len(self) -> u32 {
        self.end - self.begin
    }

    /// Where it begins and ends along a direction.
    pub(super) fn along(self, direction: Direction) -> (u64, u64) {
        direction.span(self.first(), self.len())
    }
}

/// Distance and length of the reads of a progression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) direction: Direction,
    /// From one read's begin to the next one's; at least 1.
    pub(super) step: u32,
    /// Blocks of a read; at least 1.
    pub(super) count: u32,
}

impl Shape {
    /// Blocks between two reads.
    pub(super) fn gap(self) -> u32 {
        self.step.saturating_sub(self.count)
    }

    /// The shape of which these are two reads, one after the other; none if they touch or overlap
    /// upward, which is sequential.
    fn of(before: Read, read: Read) -> Option<Self> {
        let (count, step) = (read.len(), before.begin.abs_diff(read.begin));
        let direction = match before.begin < read.begin {
            true => Direction::Forward,
            false => Direction::Backward,
        };
        let is_one = count.abs_diff(before.len()) <= 1 && count > 0 && step > 0;
        let is_sequential = direction == Direction::Forward && read.begin <= before.end;
        (is_one && !is_sequential).then_some(Self {
            direction,
            step,
            count,
        })
    }
}

/// The last reads that missed, the newest at the end.
#[derive(Debug, Default)]
pub(super) struct Recent {
    reads: Vec<Read>,
    /// The shape confirmed last.
    known: Option<Shape>,
}

impl Recent {
    pub(super) fn add(&mut self, read: Read) {
        if self.reads.last() == Some(&read) {
            return;
        }
        if self.reads.len() == RECENT_MAX {
            self.reads.remove(0);
        }
        self.reads.push(read);
    }

    /// Whether one of them ends before this block.
    pub(super) fn has_end(&self, block: Block) -> bool {
        self.reads.iter().any(|read| read.end == block.0)
    }

    /// How far a read is from the last one; none if it is that one, tried again.
    pub(super) fn distance(&self, read: Read) -> Option<u32> {
        match self.reads.last() {
            Some(last) if *last == read => None,
            Some(last) => Some(last.begin.abs_diff(read.begin)),
            None => Some(read.begin),
        }
    }

    /// The progression that this read confirms, if it does; `is_cheap` says of one whether its
    /// gaps are read through.
    pub(super) fn confirm(
        &mut self,
        read: Read,
        is_cheap: impl Fn(Shape) -> bool,
    ) -> Option<Shape> {
        let touches = self.reads.last().and_then(|last| touching(*last, read));
        let shape = touches.or_else(|| self.equally_far(read, is_cheap))?;
        self.known = Some(shape);
        Some(shape)
    }

    fn equally_far(&self, read: Read, is_cheap: impl Fn(Shape) -> bool) -> Option<Shape> {
        let shape_from = |at: usize| {
            let before = self.reads[at];
            let shape = Shape::of(before, read)?;
            let off = u32::from(is_cheap(shape));
            let fits = |other: Shape| {
                other.direction == shape.direction
                    && other.step.abs_diff(shape.step) <= off
                    && other.count.abs_diff(shape.count) <= off
            };
            // The read, of those before another, that is as far from it.
            let earlier = |at: usize| {
                let is_one =
                    |e: &usize| Shape::of(self.reads[*e], self.reads[at]).is_some_and(fits);
                (0..at).rev().find(is_one)
            };
            let is_known = || self.known.is_some_and(fits);
            let is_confirmed =
                at + 1 == self.reads.len() && (is_known() || at > 0 && earlier(at) == Some(at - 1));
            let is_among_others = || earlier(at).and_then(earlier).is_some();
            (is_confirmed || is_among_others()).then_some(shape)
        };
        (0..self.reads.len()).rev().find_map(shape_from)
    }
}

/// The shape of two reads that touch, the later one below.
fn touching(last: Read, read: Read) -> Option<Shape> {
    let overlap = read.end.checked_sub(last.begin)?;
    let small = (read.len() / OVERLAP_PART).max(1);
    let is_below = read.begin < last.begin && read.end <= last.end && overlap <= small;
    is_below.then(|| Shape {
        direction: Direction::Backward,
        step: last.begin - read.begin,
        count: read.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmed(reads: &[(u32, u32)]) -> Option<(Direction, u32, u32)> {
        let mut recent = Recent::default();
        let mut last = None;
        for &(begin, count) in reads {
            let end = begin + count;
            let read = Read { begin, end };
            last = recent.confirm(read, |shape| shape.gap() < 160);
            recent.add(read);
        }
        last.map(|shape| (shape.direction, shape.step, shape.count))
    }

    #[test]
    fn two_reads_that_touch_downward_are_backward_reading() {
        let backward = |step, count| Some((Direction::Backward, step, count));
        assert_eq!(confirmed(&[(100, 16), (84, 16)]), backward(16, 16));
        assert_eq!(confirmed(&[(100, 26), (75, 26)]), backward(25, 26));
        assert_eq!(confirmed(&[(100, 16), (88, 16)]), backward(12, 16));
        assert_eq!(confirmed(&[(100, 16), (83, 16)]), None);
        assert_eq!(confirmed(&[(100, 16), (92, 16)]), None);
        assert_eq!(confirmed(&[(100, 16), (116, 16)]), None);
    }

    #[test]
    fn three_equal_distances_are_a_stride_and_two_are_not() {
        let forward = |step, count| Some((Direction::Forward, step, count));
        assert_eq!(confirmed(&[(0, 4), (16, 4)]), None);
        assert_eq!(confirmed(&[(0, 4), (16, 4), (32, 4)]), forward(16, 4));
        assert_eq!(confirmed(&[(0, 4), (16, 4), (33, 4)]), forward(17, 4));
        assert_eq!(confirmed(&[(0, 4), (256, 4), (513, 4)]), None);
        assert_eq!(confirmed(&[(0, 4), (256, 4), (512, 5)]), None);
        assert_eq!(confirmed(&[(0, 4), (16, 4), (34, 4)]), None);
        assert_eq!(
            confirmed(&[(512, 4), (256, 4), (0, 4)]),
            Some((Direction::Backward, 256, 4))
        );
    }

    #[test]
    fn reads_between_are_passed_over_and_a_known_stride_needs_two() {
        let rows = [0, 256, 512, 768];
        let columns: Vec<_> = rows
            .iter()
            .flat_map(|row| [(*row, 4), (row + 40, 4)])
            .collect();
        assert_eq!(confirmed(&columns[..5]), None);
        assert_eq!(confirmed(&columns[..7]), Some((Direction::Forward, 256, 4)));
        let rows = [(0, 4), (16, 4), (32, 4), (9000, 4), (9016, 4)];
        assert_eq!(confirmed(&rows), Some((Direction::Forward, 16, 4)));
    }
}
