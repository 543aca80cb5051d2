//! Progressions: reads with equal distances, down through a file or with gaps, in windows.
//!
//! Sequential readahead gives nothing to a log read from its tail or to a column of a table. Seen
//! from the misses, both are progressions: reads of equal length, each as far from the one before.
//!
//! ```text
//! backward   116..132  100..116  84..100       two reads that touch: step 16, downward
//! strided    0..4  16..20  32..36              three equal distances: step 16, 12 blocks of gap
//! ```
//!
//! - *Dense*: a gap that costs less than a switch is read through, so the window is one run of
//!   blocks. It ramps up as a forward window does, and its mark is put on a block that will be
//!   read.
//! - *Sparse*: a wider gap is left out, and the window is a number of pieces: one, then twice as
//!   many, up to the device's servers. One server fetches each as it is asked for: a piece in
//!   between two reads of another stream that touch would cost a switch.
//!
//! An [account](super::account) keeps device time within 1.05 of the reads alone. Readers that take
//! turns in one open file are progressions side by side. All positions are along the direction.

use alloc::vec::Vec;

use super::account::Account;
use super::confirm::{Read, Recent, Shape};
use crate::detect::{Access, Ahead, Cause, Direction, Stride, Window, initial_size, next_size};
use crate::units::{Block, saturate};

/// Progressions kept, the most recently used ones: some readers in turn, and the columns of a
/// table.
const ACTIVE_MAX: usize = 4;

/// Most pieces of a sparse window: enough to keep a remote store busy.
const PIECES_MAX: u32 = 64;

/// Reads looked at to judge how much of a window was read.
const SAMPLES: u64 = 16;

/// The step is the average of so many reads at most: enough to know it to a thousandth of a block.
const READS_MAX: u64 = 1024;

/// Behind the last position.
const END: u64 = 1 << 32;

#[derive(Clone, Copy, Debug)]
struct Progression {
    shape: Shape,
    is_sparse: bool,
    /// Where its last known read begins.
    at: u64,
    /// How far its reads have come, and how many they were: the step on average.
    span: u64,
    reads: u64,
    /// Where the windows that lie one behind the other begin and end; a sparse one's next piece
    /// begins at the end.
    from: u64,
    end: u64,
    /// Blocks of the last window, or its pieces.
    size: u32,
    mark: Option<Block>,
}

impl Progression {
    /// Whether a read that missed is one of its own.
    fn expects(&self, read: Read) -> bool {
        let (begin, end) = read.along(self.shape.direction);
        let (step, len) = (u64::from(self.shape.step), end - begin);
        let Some(distance) = begin.checked_sub(self.at).filter(|d| *d > 0) else {
            return false;
        };
        let count = u64::from(self.shape.count);
        if self.is_sparse {
            let reach = u64::from(self.size.max(1)) * 2 + 1;
            self.fits(read) && distance / step <= reach
        } else {
            // Edges that are not aligned move by a block, and the average step follows them.
            let off = begin.abs_diff(self.read_at(self.reads_to(begin)));
            let is_in_phase = self.shape.gap() == 0 || off <= 1 + count / 2;
            len <= 2 * count + 1 && begin <= self.end + step + 1 && is_in_phase
        }
    }

    /// Whether a read is a piece apart.
    fn fits(&self, read: Read) -> bool {
        let (begin, end) = read.along(self.shape.direction);
        let distance = begin.abs_diff(self.at);
        end - begin == self.shape.count.into() && distance.is_multiple_of(self.shape.step.into())
    }

    /// Where the read so many behind the last known one should begin.
    fn read_at(&self, number: u64) -> u64 {
        self.at + number.saturating_mul(self.span) / self.reads
    }

    /// How many reads behind the last known one a position is, rounded.
    fn reads_to(&self, position: u64) -> u64 {
        let distance = position.saturating_sub(self.at);
        (distance.saturating_mul(self.reads) + self.span / 2) / self.span
    }

    /// Its reader has come to this read. How many it made since the last one known, by a sample.
    fn pass(&mut self, read: Read, ahead: &dyn Ahead) -> u64 {
        let (begin, _) = read.along(self.shape.direction);
        let made = self.reads_to(begin).max(1);
        let samples = made.min(SAMPLES);
        let middle = u64::from(self.shape.count / 2);
        let was_read = |i: &u64| {
            let at = self.read_at(i * made / samples) + middle;
            let block = self.shape.direction.block(at);
            block.is_some_and(|block| !ahead.unread(block))
        };
        let read = (0..samples).filter(was_read).count() as u64;
        self.span += begin.saturating_sub(self.at);
        self.reads += made;
        while self.reads > READS_MAX {
            (self.span, self.reads) = (self.span.div_ceil(2), self.reads.div_ceil(2));
        }
        self.at = begin;
        made * read / samples
    }

    /// A window of its own, from a position on; the mark stands at another.
    fn window(&self, from: u64, size: u64, mark: Option<u64>) -> Option<Window> {
        let Shape {
            direction,
            step,
            count,
        } = self.shape;
        let (step, per) = match self.is_sparse {
            true => (step, 1),
            false => (saturate(self.span), saturate(self.reads)),
        };
        let size = size.min(END.saturating_sub(from));
        let (first, read) = match direction {
            Direction::Forward => (from, self.at),
            Direction::Backward => (
                (from + size).checked_sub(1)?,
                self.at + u64::from(count.max(1)) - 1,
            ),
        };
        let async_size = mark.map_or(0, |mark| (from + size).saturating_sub(mark));
        // The read of a file's first blocks may be shorter.
        let stride = match direction.block(read) {
            Some(first) if self.shape.gap() > 0 => Some(Stride {
                first,
                step,
                per,
                count,
                is_read_through: !self.is_sparse,
            }),
            _ => None,
        };
        Some(Window {
            start: direction.block(first)?,
            size: u32::try_from(size).ok().filter(|size| *size > 0)?,
            async_size: u32::try_from(async_size).ok()?,
            direction,
            stride,
        })
    }

    /// The position of the mark in a window: where it is due, or else the nearest block that will
    /// be read, of those from `least` on.
    fn mark_at(&self, due: u64, least: u64, end: u64) -> Option<u64> {
        if self.shape.gap() == 0 {
            return (least..end).contains(&due).then_some(due);
        }
        // In the middle, which is read even if the read begins a block earlier or later.
        let middle = u64::from(self.shape.count / 2);
        let number = self.reads_to(due);
        let behind = [number + 1, number, number.saturating_sub(1)];
        let mut marks = behind
            .map(|number| self.read_at(number) + middle)
            .into_iter();
        marks.find(|at| (least..end).contains(at))
    }
}

/// Whether gaps are read through: they cost less than a switch. Where several pieces could be
/// fetched at once, it must also be a window of four reads that is fetched in one.
fn is_read_through(shape: Shape, ahead: &dyn Ahead) -> bool {
    let gap = shape.gap();
    let is_one_window = ahead.servers() == 1 || shape.step <= ahead.limit() / 4;
    gap == 0 || gap < ahead.switch(gap) && is_one_window
}

/// The progressions of one open file.
#[derive(Debug, Default)]
pub(super) struct Progressions {
    recent: Recent,
    /// The least recently used one first.
    active: Vec<Progression>,
    account: Account,
    /// Whether the last window was of the last one of these.
    is_last: bool,
}

impl Progressions {
    /// The window for a trigger that belongs to a progression, if there is to be one; `None` if it
    /// belongs to no progression.
    pub(super) fn goes_on(
        &mut self,
        cause: Cause,
        access: &Access,
        ahead: &dyn Ahead,
    ) -> Option<Option<Window>> {
        self.is_last = false;
        let read = Read::of(access);
        let expects = |p: &Progression| match cause {
            Cause::Mark => p.mark == Some(access.block),
            Cause::Miss => p.expects(read),
        };
        let at = self.active.iter().rposition(expects)?;
        let mut progression = self.active.remove(at);
        if progression.is_sparse && !progression.fits(read) {
            return Some(None);
        }
        let reads = progression.pass(read, ahead);
        let Shape { step, count, .. } = progression.shape;
        self.account
            .asked(reads, count.min(step), ahead.switch(step));
        if cause == Cause::Miss {
            self.recent.add(read);
        }
        Some(self.open(progression, cause, access, ahead))
    }

    /// A miss that nothing else was made of: it may confirm a progression.
    pub(super) fn begins(&mut self, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        self.is_last = false;
        let read = Read::of(access);
        let distance = self.recent.distance(read)?;
        // Behind blocks that are there it is sequential, or fills a hole that reordering left.
        let follows = |block: Block| block.0 > 0 && ahead.cached(Block(block.0 - 1));
        let is_cheap = |shape: Shape| is_read_through(shape, ahead);
        let shape = match follows(read.first()) {
            true => None,
            false => self.recent.confirm(read, is_cheap),
        };
        self.recent.add(read);
        let Some(shape) = shape else {
            self.account.read_alone(read.len(), ahead.switch(distance));
            return None;
        };
        let switch = ahead.switch(shape.step);
        self.account.open(switch, ahead.servers().min(PIECES_MAX));
        self.account.asked(1, shape.count.min(shape.step), switch);
        if self.active.len() == ACTIVE_MAX {
            self.active.remove(0);
        }
        let (begin, _) = read.along(shape.direction);
        let progression = Progression {
            shape,
            is_sparse: !is_read_through(shape, ahead),
            at: begin,
            span: shape.step.into(),
            reads: 1,
            from: begin,
            end: begin,
            size: 0,
            mark: None,
        };
        self.open(progression, Cause::Miss, access, ahead)
    }

    /// Whether a read begins where one of the last ones that missed has ended.
    pub(super) fn goes_on_from_recent(&self, access: &Access) -> bool {
        self.recent.has_end(Read::of(access).first())
    }

    /// A read that missed, and that another method takes care of.
    pub(super) fn seen(&mut self, access: &Access) {
        self.is_last = false;
        self.recent.add(Read::of(access));
    }

    fn open(
        &mut self,
        mut progression: Progression,
        cause: Cause,
        access: &Access,
        ahead: &dyn Ahead,
    ) -> Option<Window> {
        let own = match cause {
            Cause::Mark => 0,
            Cause::Miss => access.count,
        };
        progression.mark = None;
        let window = if progression.is_sparse {
            self.open_pieces(&mut progression, own, ahead)
        } else {
            self.open_run(&mut progression, own, access, ahead)
        };
        progression.mark = window.and_then(|window| window.mark());
        if window.is_none() && own > 0 {
            progression.size = 0;
        }
        self.active.push(progression);
        self.is_last = window.is_some();
        window
    }

    /// A window of one run, the blocks asked for included if they are missing.
    fn open_run(
        &mut self,
        progression: &mut Progression,
        own: u32,
        access: &Access,
        ahead: &dyn Ahead,
    ) -> Option<Window> {
        let Shape {
            direction,
            step,
            count,
        } = progression.shape;
        let (switch, limit) = (ahead.switch(step), ahead.limit());
        let is_first = progression.size == 0;
        let mut size = match is_first {
            true => initial_size(count.max(step).max(own), limit),
            false => next_size(progression.size, limit),
        };
        size = size.min(self.account.covers(switch)).min(limit);
        if direction == Direction::Backward {
            size = size.min(ahead.room());
        }
        let (begin, end) = Read::rest(access).along(direction);
        if own > 0 || progression.end < begin {
            // Its end may have been cut off, and the reader be past it.
            (progression.from, progression.end) = (begin, begin);
        }
        if size < own {
            (progression.from, progression.end) = (end, end);
            self.account.fetched(1, own, switch);
            return None;
        }
        let from = progression.end;
        let end = (from + u64::from(size)).min(END);
        let behind = match own > 0 && is_first && size > own {
            true => size - own,
            false => size,
        };
        let mark = progression.mark_at(end.saturating_sub(behind.into()), from, end);
        let window = progression.window(from, size.into(), mark)?;
        progression.end = end;
        progression.size = window.size;
        self.account.fetched(1, window.size, switch);
        Some(window)
    }

    /// A window of pieces, without the blocks asked for.
    fn open_pieces(
        &mut self,
        progression: &mut Progression,
        own: u32,
        ahead: &dyn Ahead,
    ) -> Option<Window> {
        let Shape {
            direction,
            step,
            count,
        } = progression.shape;
        let switch = ahead.switch(step);
        if own > 0 {
            self.account.fetched(1, own, switch);
            progression.end = progression.at + u64::from(step);
        }
        if ahead.servers() == 1 {
            return None;
        }
        let from = progression.end;
        let left = END.checked_sub(from + u64::from(count))? / u64::from(step) + 1;
        let number = (progression.size.saturating_mul(2).max(1))
            .min(ahead.servers().min(PIECES_MAX))
            .min(ahead.limit().min(ahead.room()) / count)
            .min(self.account.covers_pieces(count, switch))
            .min(saturate(left));
        let size = u64::from(number.checked_sub(1)?) * u64::from(step) + u64::from(count);
        // The first block, in the file, of the first piece, in the order of reading.
        let mark = match direction {
            Direction::Forward => from,
            Direction::Backward => from + u64::from(count) - 1,
        };
        let window = progression.window(from, size, Some(mark))?;
        progression.end = from + u64::from(number) * u64::from(step);
        progression.size = number;
        self.account.fetched(number, count, switch);
        Some(window)
    }

    /// The memory allowed only the pieces before a block. Whether the last window was one of these.
    pub(super) fn cut(&mut self, end: Block) -> bool {
        if !core::mem::take(&mut self.is_last) {
            return false;
        }
        if let Some(mut progression) = self.active.pop()
            && !progression.is_sparse
            && progression.shape.direction == Direction::Forward
        {
            progression.end = progression.end.min(end.0.into());
            progression.from = progression.from.min(progression.end);
            self.active.push(progression);
        }
        true
    }

    pub(super) fn inside_window(&self, block: Block) -> bool {
        self.active.iter().any(|p| {
            let at = u64::from(p.shape.direction.position(block));
            !p.is_sparse && p.from <= at && at < p.end
        })
    }
}
