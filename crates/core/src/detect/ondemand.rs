//! On-demand readahead: Linux since 2.6.23, as its author describes it.
//!
//! One window `(start, size, async_size)` an open file, and the page cache as the second memory:
//! what the window does not know, a look at which blocks are cached tells. Asked at a miss or at
//! the lookahead mark only, in this order (wu10 section 4.3, Figure 6):
//!
//! 1. The block is where the window said the reader would come next, `start + size - async_size`
//!    or `start + size`: push the window forward and let it grow.
//! 2. A mark, but not of this window: another stream on the same open file. Its window is read
//!    off the cache: from here to the first missing block lies its old `async_size`.
//! 3. A miss that continues the last access, starts the file, or asks for more than the limit:
//!    a new window here. So does a miss inside the window, which means that blocks fetched ahead
//!    were lost (thrashing): start again where the loss begins.
//! 4. Any other miss is random: exactly what was asked for is fetched, the window stays.
//!
//! Sizes: the first window is the request rounded up to a power of two, times 4 when small, times
//! 2 when middling; from then on times 4 while small, times 2 later, up to the limit. With a
//! limit of 32 pages and reads of one page this gives wu10's Table 2: (0, 4, 3), (4, 8, 8),
//! (12, 16, 16).
//!
//! It does not see strides, backward reads, or hits.

use alloc::boxed::Box;

use super::{Access, Ahead, Cause, Detect, Window, initial_size, next_size};
use crate::spec::{Knows, Method, Spec};
use crate::units::Block;

pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "ondemand",
        summary: "windows that ramp up, triggered by misses and lookahead marks only",
        source: "wu10 section 4; Linux 2.6.23 and later",
        unfit: "strided and backward reads: it fetches exactly what they ask for, no more",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(OnDemand::default()),
};

#[derive(Debug, Default)]
struct OnDemand {
    window: Option<Window>,
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
    fn expected(&self, block: Block) -> Option<Window> {
        let window = self.window?;
        let end = window.start.0.checked_add(window.size)?;
        (block.0 != 0 && (block.0 == end - window.async_size || block.0 == end)).then_some(window)
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
    fn begin(&mut self, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        let size = initial_size(access.count, ahead.limit());
        let rest = size.saturating_sub(access.count);
        self.open(access.block, size, if rest > 0 { rest } else { size })
    }
}

impl Detect for OnDemand {
    fn trigger(&mut self, cause: Cause, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        if let Some(window) = self.expected(access.block) {
            let size = next_size(window.size, ahead.limit());
            let start = Block(window.start.0 + window.size);
            return self.open(start, size, ahead.async_size(size));
        }
        match cause {
            Cause::Mark => self.other_stream(access.block, ahead),
            Cause::Miss
                if access.is_sequential()
                    || access.count > ahead.limit()
                    || self.inside_window(access.block) =>
            {
                self.begin(access, ahead)
            }
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
