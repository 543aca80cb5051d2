//! On-demand readahead: Linux since 2.6.23, as its author describes it.
//!
//! One window `(start, size, async_size)` an open file, and the page cache as the second memory:
//! what the window does not know, a look at which blocks are cached tells. Asked at a miss or at
//! the lookahead mark only, in this order (wu10 section 4.3, Figure 6):
//!
//! 1. The block is where the window said the reader would come next, `start + size - async_size`
//!    or `start + size`: push the window forward and let it grow. With a density asked for, only
//!    if that much of the stretch before the block was read.
//! 2. A mark, but not of this window: another stream on the same open file. Its window is read
//!    off the cache: from here to the first missing block lies its old `async_size`.
//! 3. A miss that continues the last access, starts the file, or asks for more than the limit:
//!    a new window here. So does a miss inside the window (blocks fetched ahead were lost), and,
//!    with context, a miss behind more read blocks than it asks for: a stream among others.
//! 4. Any other miss is random: exactly what was asked for is fetched, the window stays.
//!
//! Sizes: first window and ramp as in `initial_size` and `next_size`. With a limit of 32 pages
//! and reads of one page this gives wu10's Table 2: (0, 4, 3), (4, 8, 8), (12, 16, 16).

use alloc::boxed::Box;

use super::{Access, Ahead, Cause, Detect, Window, initial_size, next_size};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::Block;

pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "ondemand",
        summary: "windows that ramp up, triggered by misses and lookahead marks only",
        source: "wu10 section 4; Linux 2.6.23 and later",
        unfit: "strided and backward reads: it fetches exactly what they ask for, no more",
        knows: Knows::Online,
        params: &[
            Param {
                name: "density_percent",
                summary: "part of a window that must have been read before the next one opens; 0 \
                          is Linux, where a stride that meets a window's end makes it grow",
                default: 0,
                min: 0,
                max: 100,
            },
            Param {
                name: "context",
                summary: "1: a miss behind more read blocks than it asks for begins a window (as \
                          Linux since 2.6.31), so streams in strict turn are found",
                default: 0,
                min: 0,
                max: 1,
            },
        ],
    },
    build: |values| {
        let (density_percent, context) = (values[0] as u32, values[1] == 1);
        Box::new(OnDemand {
            window: None,
            density_percent,
            context,
        })
    },
};

/// Blocks looked at to judge how much of a window was read: enough to tell a half from a quarter,
/// few enough to cost nothing beside the fetch that follows.
const SAMPLES: u32 = 16;

#[derive(Debug)]
struct OnDemand {
    window: Option<Window>,
    density_percent: u32,
    context: bool,
}

impl OnDemand {
    fn open(&mut self, start: Block, size: u32, async_size: u32) -> Option<Window> {
        let window = Window {
            start,
            size,
            async_size,
        };
        self.window = Some(window);
        Some(window)
    }

    /// Case 1.
    fn expected(&self, block: Block, ahead: &dyn Ahead) -> Option<Window> {
        let window = self.window?;
        let end = window.start.0.checked_add(window.size)?;
        let met = block.0 != 0 && (block.0 == end - window.async_size || block.0 == end);
        (met && self.was_read(window.size, block.0, ahead)).then_some(window)
    }

    /// Whether enough was read of the half window before `end`, judged by a sample. Half, because
    /// the window before was at least that long once the ramp doubles; blocks long gone count as
    /// read.
    fn was_read(&self, size: u32, end: u32, ahead: &dyn Ahead) -> bool {
        let start = end.saturating_sub((size / 2).max(1));
        let samples = (end - start).min(SAMPLES);
        if self.density_percent == 0 || samples == 0 {
            return true;
        }
        let spacing = u64::from(end - start) * 256 / u64::from(samples);
        let read = (0..samples)
            .map(|i| start + (u64::from(i) * spacing / 256) as u32)
            .filter(|&block| !ahead.unread(Block(block)))
            .count();
        read as u32 * 100 >= samples * self.density_percent
    }

    /// Case 2.
    fn other_stream(&mut self, marked: Block, ahead: &dyn Ahead) -> Option<Window> {
        let limit = ahead.limit();
        let missing = (1..=limit).find_map(|i| {
            marked
                .0
                .checked_add(i)
                .map(Block)
                .filter(|b| !ahead.cached(*b))
        })?;
        let size = next_size(missing.0 - marked.0, limit);
        self.open(missing, size, ahead.async_size(size))
    }

    /// Case 3.
    fn begins(&self, access: &Access, ahead: &dyn Ahead) -> bool {
        access.is_sequential()
            || access.count > ahead.limit()
            || self.inside_window(access.block)
            || (self.context && follows_its_own_past(access, ahead))
    }

    fn begin(&mut self, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        let size = initial_size(access.count, ahead.limit());
        let rest = size.saturating_sub(access.count);
        self.open(access.block, size, if rest > 0 { rest } else { size })
    }
}

/// Whether the blocks before a read were read, more of them than it asks for: one read that
/// happens to lie behind another, or to overlap it, is not enough.
fn follows_its_own_past(access: &Access, ahead: &dyn Ahead) -> bool {
    let asked = access.head.saturating_add(access.count);
    let begin = access.block.0.saturating_sub(access.head);
    let Some(first) = begin.checked_sub(asked.saturating_add(1)) else {
        return false;
    };
    (first..begin)
        .rev()
        .map(Block)
        .all(|b| ahead.cached(b) && !ahead.unread(b))
}

impl Detect for OnDemand {
    fn trigger(&mut self, cause: Cause, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        if let Some(window) = self.expected(access.block, ahead) {
            let size = next_size(window.size, ahead.limit());
            let start = Block(window.start.0 + window.size);
            return self.open(start, size, ahead.async_size(size));
        }
        match cause {
            Cause::Mark if self.inside_window(access.block) && self.density_percent > 0 => None,
            Cause::Mark => self.other_stream(access.block, ahead),
            Cause::Miss if self.begins(access, ahead) => self.begin(access, ahead),
            Cause::Miss => None,
        }
    }

    fn cut(&mut self, end: Block) {
        if let Some(window) = &mut self.window {
            window.size = window.size.min(end.0.saturating_sub(window.start.0));
            window.async_size = window.async_size.min(window.size);
        }
    }

    fn inside_window(&self, block: Block) -> bool {
        self.window.is_some_and(|w| {
            block >= w.start && u64::from(block.0) < u64::from(w.start.0) + u64::from(w.size)
        })
    }
}
