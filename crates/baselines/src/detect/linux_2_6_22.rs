//! Readahead of Linux 2.6.11 to 2.6.22, which papers call legacy: kept to be measured against.
//!
//! Two windows an open file, the current one and the one ahead, and a check of every single read:
//!
//! ```text
//!      current            ahead
//!   |===========|======================|
//!        ^ reader: when it enters ahead, ahead becomes current and a new one is fetched
//! ```
//!
//! - A read that does not continue the one before closes both windows; the ramp starts over.
//! - A miss inside a window means blocks were lost: the next window is two blocks smaller instead
//!   of larger, and the lost blocks come back one by one. That is its weakness under memory
//!   pressure (Wu 2010, section 5.3).
//! - After 256 blocks in a row that were cached already it stops, until the next miss.
//!
//! It must see every read, so the hit path stays closed under it.

use alloc::boxed::Box;

use forerun_core::Block;
use forerun_core::detect::{Access, Ahead, Cause, Detect, Window, initial_size, next_size};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "linux-2.6.22",
        summary: "two windows, sequentiality checked on every read",
        source: "wu10 sections 3.2 and 5; Linux 2.6.11 to 2.6.22",
        unfit: "interleaved streams, random reads in between, memory pressure",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(TwoWindows::default()),
};

/// Cached blocks in a row after which it takes the file for cached (Wu 2010, section 5.2).
const IN_CACHE_AFTER: u32 = 256;
/// How much smaller a window gets after a loss.
const LOSS_STEP: u32 = 2;
/// No window shrinks below this: one read of 16 KiB is the kernel's own floor.
const SIZE_MIN: u32 = 4;

#[derive(Clone, Copy, Debug)]
struct RunOfBlocks {
    start: u32,
    size: u32,
    /// How long it was before it was shaped: the ramp goes on from there.
    decided: u32,
}

impl RunOfBlocks {
    fn end(self) -> u32 {
        self.start.saturating_add(self.size)
    }

    fn contains(self, block: Block) -> bool {
        block.0 >= self.start && block.0 < self.end()
    }
}

#[derive(Debug, Default)]
struct TwoWindows {
    current: Option<RunOfBlocks>,
    ahead: Option<RunOfBlocks>,
    lost: bool,
    /// The last window was for a lost block, and is neither of the two.
    was_alone: bool,
    cached_in_row: u32,
    in_cache: bool,
}

impl TwoWindows {
    fn close(&mut self) {
        self.current = None;
        self.ahead = None;
    }

    /// Fetches a run, unless the file turns out to be cached.
    fn fetch(&mut self, run: RunOfBlocks, ahead: &dyn Ahead) -> Option<Window> {
        let all_cached = (run.start..run.end()).all(|b| ahead.cached(Block(b)));
        self.cached_in_row = if all_cached {
            self.cached_in_row.saturating_add(run.size)
        } else {
            0
        };
        if self.cached_in_row >= IN_CACHE_AFTER {
            self.in_cache = true;
            self.close();
        }
        self.was_alone = false;
        (!all_cached).then_some(Window::forward(run.start.into(), run.size, 0))
    }

    fn make_ahead(&mut self, current: RunOfBlocks, ahead: &dyn Ahead) -> Option<Window> {
        let limit = ahead.limit();
        let size = if core::mem::take(&mut self.lost) {
            current
                .decided
                .saturating_sub(LOSS_STEP)
                .max(SIZE_MIN)
                .min(limit)
        } else {
            next_size(current.decided, limit)
        };
        let run = RunOfBlocks {
            start: current.end(),
            size,
            decided: size,
        };
        self.ahead = Some(run);
        self.fetch(run, ahead)
    }
}

impl Detect for TwoWindows {
    fn sees_every_read(&self) -> bool {
        true
    }

    fn read(&mut self, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        if self.in_cache {
            return None;
        }
        if !access.is_sequential() {
            self.close();
            return None;
        }
        let Some(current) = self.current else {
            let size = initial_size(access.count, ahead.limit());
            let run = RunOfBlocks {
                start: access.block.0,
                size,
                decided: size,
            };
            self.current = Some(run);
            return self.fetch(run, ahead);
        };
        let last = access.block.0.saturating_add(access.count - 1);
        match self.ahead {
            None => {
                let opening = access.block.0 == current.start && access.count < ahead.limit();
                if opening {
                    None
                } else {
                    self.make_ahead(current, ahead)
                }
            }
            Some(next) if last >= next.start => {
                self.current = Some(next);
                self.make_ahead(next, ahead)
            }
            Some(_) => None,
        }
    }

    fn trigger(&mut self, cause: Cause, access: &Access, _: &dyn Ahead) -> Option<Window> {
        if cause != Cause::Miss {
            return None;
        }
        self.in_cache = false;
        self.cached_in_row = 0;
        self.inside_window(access.block).then(|| {
            (self.lost, self.was_alone) = (true, true);
            Window::forward(access.block, 1, 0)
        })
    }

    fn shaped(&mut self, end: Block) {
        let last = self.ahead.as_mut().or(self.current.as_mut());
        if let Some(last) = last.filter(|_| !self.was_alone) {
            last.size = end.0.saturating_sub(last.start);
        }
    }

    fn inside_window(&self, block: Block) -> bool {
        self.current.is_some_and(|run| run.contains(block))
            || self.ahead.is_some_and(|run| run.contains(block))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// A file of which all is cached, or nothing.
    struct File {
        limit: u32,
        is_cached: bool,
    }

    impl Ahead for File {
        fn limit(&self) -> u32 {
            self.limit
        }
        fn cached(&self, _: Block) -> bool {
            self.is_cached
        }
        fn unread(&self, _: Block) -> bool {
            false
        }
    }

    const FILE: File = File {
        limit: 32,
        is_cached: false,
    };

    /// Windows, as their first block and size, of reads: first block, blocks, and the block read before.
    fn windows(detect: &mut TwoWindows, reads: &[(u32, u32, Option<u32>)]) -> Vec<(u32, u32)> {
        let window = |(block, count, previous): &(u32, u32, Option<u32>)| {
            let access = Access::new(Block(*block), *count).with_previous(previous.map(Block));
            let window = detect.read(&access, &FILE)?;
            Some((window.start.0, window.size))
        };
        reads.iter().filter_map(window).collect()
    }

    const BEGIN: [(u32, u32, Option<u32>); 3] = [(0, 1, None), (1, 1, Some(0)), (4, 1, Some(3))];

    #[test]
    fn two_windows_are_kept_until_a_seek() {
        for (reads, expected) in [
            (&BEGIN[..], &[(0, 4), (4, 8), (12, 16)][..]),
            // The first read again opens no second window, unless it is as long as the longest one.
            (&[(0, 1, None), (0, 1, None)], &[(0, 4)]),
            (&[(0, 32, None), (0, 32, None)], &[(0, 32), (32, 32)]),
            // A seek closes both: the next two reads in a row begin anew.
            (
                &[
                    (0, 1, None),
                    (1, 1, Some(0)),
                    (100, 1, Some(1)),
                    (101, 1, Some(100)),
                ],
                &[(0, 4), (4, 8), (101, 4)],
            ),
        ] {
            assert_eq!(windows(&mut TwoWindows::default(), reads), expected);
        }
    }

    #[test]
    fn a_lost_page_takes_two_off_the_next_window_and_is_read_alone() {
        let mut detect = TwoWindows::default();
        assert_eq!(windows(&mut detect, &BEGIN[..2]), [(0, 4), (4, 8)]);
        let lost = Access::new(Block(5), 1);
        let alone = detect.trigger(Cause::Miss, &lost, &FILE);
        assert_eq!(alone, Some(Window::forward(Block(5), 1, 0)));
        detect.shaped(Block(6));
        assert!(detect.inside_window(Block(11)), "the window was not shaped");
        assert_eq!(windows(&mut detect, &BEGIN[2..]), [(12, 6)]);
    }

    #[test]
    fn after_256_cached_pages_in_a_row_the_file_is_taken_for_cached() {
        for (limit, is_closed) in [(256, true), (255, false)] {
            let file = File {
                limit,
                is_cached: true,
            };
            let mut detect = TwoWindows::default();
            let read = Access::new(Block(0), limit);
            assert_eq!(detect.read(&read, &file), None);
            assert_eq!(detect.inside_window(Block(0)), !is_closed, "{limit}");
        }
    }
}
