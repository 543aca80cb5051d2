//! Page by page: the rule of Linux 2.6.0 to 2.6.10, which runs at every page that a read touches.
//!
//! An open file has a current window, at times one ahead of it, and the size of the next, which
//! grows while the reader stays inside:
//!
//! 1. The page of the last time: nothing. Readahead is off: nothing.
//! 2. The first read of an open file begins a current window of half the limit.
//! 3. In the current window, or just behind it: the next size grows by 2. Elsewhere it shrinks. It
//!    is at most the limit; at 0 readahead is off.
//! 4. Outside the current window: at the first page of the one ahead that becomes the current
//!    one, and no page is read yet. At any other page a current window begins there.
//! 5. Inside, without a window ahead: that is read, from the end of the current one on.
//! 6. A window of which every page is cached, or that the device's queue refuses: the next size is
//!    the one before this page, less 1.
//! 7. A page that is missing after all is read alone, and the next size is 3 less, but not below 4.
//!    While readahead is off, 4 such pages in a row turn it on, with windows of 4.
//!
//! A congested queue (7/8 of 128 requests, until 13/16) refuses windows, yet the state goes on as if
//! they were read, so their pages come by step 7. Shen, Zhong and Li (FAST 2005) corrected that.
//! [`linux_2_6_3`](crate::detect::linux_2_6_3) and [`linux_2_6_10`](crate::detect::linux_2_6_10) differ in `Version`.

use forerun_core::Block;
use forerun_core::detect::{Access, Ahead, Cause, Detect, Window};
use forerun_core::spec::Param;

/// No miss shrinks a window below this, and readahead that was off begins with it: 16 KiB.
const SIZE_MIN: u32 = 4;
/// Pages by which the next window grows for each page of the current one.
const HIT_STEP: u32 = 2;
/// And by which it shrinks for a page that was read ahead and is missing.
const LOSS_STEP: u32 = 3;

/// Whether windows are submitted to a congested queue.
pub(crate) const CORRECTED: Param = Param {
    name: "corrected",
    summary: "1: a congested queue takes windows, too, as corrected by Shen, Zhong and Li, FAST 2005; \
              0: as shipped",
    default: 0,
    min: 0,
    max: 1,
};

/// Rules in which the versions differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Step 2 at the file's first page alone.
    pub(crate) begins_at_start: bool,
    /// Step 3 for a page elsewhere: the next size from the last one.
    pub(crate) shrunk: fn(u32) -> u32,
    /// The size of windows at seeks, and whether there is one ahead, follow from the mean length of
    /// runs.
    pub(crate) has_average: bool,
    /// The sizes of Li et al. 2004 in the place of step 3's: so many pages at first and at a seek, then doubled.
    pub(crate) doubles_from: Option<u32>,
    /// A congested queue takes windows, too.
    pub(crate) is_corrected: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct RunOfPages {
    start: u32,
    size: u32,
    /// It was submitted, so that its pages are lost where they are missing.
    is_read: bool,
}

impl RunOfPages {
    fn end(self) -> u32 {
        self.start.saturating_add(self.size)
    }

    fn contains(self, page: u32) -> bool {
        page >= self.start && page < self.end()
    }
}

#[derive(Debug)]
pub(crate) struct Pages {
    version: Version,
    last: Option<u32>,
    /// The size of the next window; none while readahead is off.
    next: Option<u32>,
    current: RunOfPages,
    ahead: Option<RunOfPages>,
    /// Pages in a row up to the last one.
    run: u32,
    /// The mean length of runs.
    average: u32,
    /// While readahead is off: missing pages in a row, and the last of them.
    missed: (u32, Option<u32>),
    is_ahead_last: bool,
}

impl Pages {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            last: None,
            next: Some(0),
            current: RunOfPages::default(),
            ahead: None,
            run: 0,
            average: 0,
            missed: (0, None),
            is_ahead_last: false,
        }
    }

    /// The reader comes to a page: the window that is read.
    fn page(&mut self, page: u32, view: &dyn Ahead) -> Option<Window> {
        let limit = view.limit();
        let last = self.last.replace(page);
        if last == Some(page) {
            return None;
        }
        self.count(last, page, limit);
        let before = self.next?;
        if last.is_none() && (page == 0 || !self.version.begins_at_start) {
            let half = (limit / 2).max(1);
            let size = self.version.doubles_from.unwrap_or(half).min(limit);
            return self.begin(page, size, size, view);
        }
        let is_hit = page >= self.current.start && page <= self.current.end();
        self.next = Some(self.sized(before, is_hit).min(limit)).filter(|size| *size > 0);
        let size = self.next?;
        if !self.current.contains(page) {
            return match self.ahead.take() {
                Some(ahead) if ahead.start == page => {
                    self.current = ahead;
                    None
                }
                _ if self.version.has_average => {
                    self.begin(page, self.expected().clamp(1, limit), before, view)
                }
                _ => self.begin(page, size, before, view),
            };
        }
        let pipelines = !self.version.has_average || self.expected() > limit;
        if self.ahead.is_some() || !pipelines {
            return None;
        }
        let (ahead, window) = self.read_ahead(self.current.end(), size, before, view);
        self.ahead = Some(ahead);
        self.is_ahead_last = true;
        window
    }

    /// The length of runs, and their mean: at a jump the run before goes into it.
    fn count(&mut self, last: Option<u32>, page: u32, limit: u32) {
        match last {
            None => (self.run, self.average) = (1, limit / 2),
            Some(last) if last.checked_add(1) == Some(page) => {
                self.run = self.run.saturating_add(1).min(limit.saturating_mul(2));
            }
            Some(_) => {
                let more = u32::from(self.average < self.run);
                self.average = self.average.saturating_add(more).midpoint(self.run);
                self.run = 1;
            }
        }
    }

    /// The mean length of runs, as far as the present one does not show that it is longer.
    fn expected(&self) -> u32 {
        if self.run > self.average {
            self.average.saturating_add(1).midpoint(self.run)
        } else {
            self.average
        }
    }

    /// The next size after one more page.
    fn sized(&self, before: u32, is_hit: bool) -> u32 {
        match (self.version.doubles_from, is_hit) {
            (Some(_), true) => before,
            (Some(first), false) => first,
            (None, true) => before.saturating_add(HIT_STEP),
            (None, false) => (self.version.shrunk)(before),
        }
    }

    fn begin(&mut self, page: u32, size: u32, before: u32, view: &dyn Ahead) -> Option<Window> {
        self.next = Some(size);
        self.ahead = None;
        self.is_ahead_last = false;
        let (current, window) = self.read_ahead(page, size, before, view);
        self.current = current;
        window
    }

    /// Reads a window, unless it is cached or refused. `before` is the next size before this page.
    fn read_ahead(
        &mut self,
        start: u32,
        size: u32,
        before: u32,
        view: &dyn Ahead,
    ) -> (RunOfPages, Option<Window>) {
        let mut run = RunOfPages {
            start,
            size,
            is_read: true,
        };
        let is_refused = view.is_congested() && !self.version.is_corrected;
        let is_cached = (start..run.end()).all(|page| view.cached(Block(page)));
        if is_refused || is_cached {
            run.is_read = is_cached;
            self.next = Some(before.saturating_sub(1));
            return (run, None);
        }
        if self.version.doubles_from.is_some() {
            self.next = Some(size.saturating_mul(2));
        }
        (run, Some(Window::forward(start.into(), size, 0)))
    }

    /// A page is missing though readahead has passed it.
    fn missing(&mut self, page: u32) {
        if let Some(size) = self.next {
            self.next = Some(size.saturating_sub(LOSS_STEP).max(SIZE_MIN));
            return;
        }
        let (count, last) = self.missed;
        let goes_on = last.is_some_and(|last| last.checked_add(1) == Some(page));
        let count = if goes_on { count + 1 } else { 1 };
        self.missed = (count, Some(page));
        if count >= SIZE_MIN {
            self.next = Some(SIZE_MIN);
            self.missed = (0, None);
        }
    }
}

impl Detect for Pages {
    fn sees_every_read(&self) -> bool {
        true
    }

    fn sees_every_block(&self) -> bool {
        true
    }

    fn read(&mut self, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        self.page(access.block.0, ahead)
    }

    /// The missing page alone: nothing else of its read.
    fn trigger(&mut self, cause: Cause, access: &Access, _: &dyn Ahead) -> Option<Window> {
        if cause != Cause::Miss {
            return None;
        }
        self.missing(access.block.0);
        Some(Window::forward(access.block, 1, 0))
    }

    /// A window ends with its strip; one that the memory cuts is taken for whole.
    fn shaped(&mut self, end: Block) {
        let last = match &mut self.ahead {
            Some(ahead) if self.is_ahead_last => ahead,
            _ => &mut self.current,
        };
        if end.0 > last.start {
            last.size = end.0 - last.start;
        }
    }

    fn inside_window(&self, block: Block) -> bool {
        let runs = self.ahead.into_iter().chain([self.current]);
        runs.filter(|run| run.is_read)
            .any(|run| run.contains(block.0))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    /// A file in an empty cache, behind a queue.
    #[derive(Default)]
    struct Cache {
        limit: u32,
        pages: BTreeSet<u32>,
        is_congested: bool,
    }

    impl Cache {
        fn read(&mut self, page: u32, window: Window) -> (u32, u32, u32) {
            let (start, end) = (window.start.0, window.start.0 + window.size);
            self.pages.extend(start..end);
            (page, start, end)
        }
    }

    impl Ahead for Cache {
        fn limit(&self) -> u32 {
            self.limit
        }
        fn cached(&self, block: Block) -> bool {
            self.pages.contains(&block.0)
        }
        fn unread(&self, _: Block) -> bool {
            false
        }
        fn is_congested(&self) -> bool {
            self.is_congested
        }
    }

    /// A step of a reader, or of the machine around it.
    #[derive(Clone, Copy)]
    pub(crate) enum Step {
        /// It reads the pages from one up to another.
        Read(u32, u32),
        /// The queue is congested from here on, or is so no longer.
        Congested(bool),
        /// These pages are given up.
        Lost(u32, u32),
    }

    /// Windows as (page at which it is read, first page, page behind the last); a missing page that is
    /// read alone is one, too.
    pub(crate) fn windows(
        detect: &mut dyn Detect,
        limit: u32,
        steps: &[Step],
    ) -> Vec<(u32, u32, u32)> {
        let mut cache = Cache {
            limit,
            ..Cache::default()
        };
        let mut seen = Vec::new();
        for step in steps {
            let (from, to) = match *step {
                Step::Read(from, to) => (from, to),
                Step::Congested(is_congested) => {
                    cache.is_congested = is_congested;
                    continue;
                }
                Step::Lost(from, to) => {
                    cache.pages.retain(|page| !(from..to).contains(page));
                    continue;
                }
            };
            for page in from..to {
                let access = Access::new(Block(page), to - page);
                let window = detect.read(&access, &cache);
                seen.extend(window.map(|window| cache.read(page, window)));
                if !cache.pages.contains(&page) {
                    let window = detect.trigger(Cause::Miss, &access, &cache);
                    seen.extend(window.map(|window| cache.read(page, window)));
                }
            }
        }
        seen
    }

    /// Missing pages that are read one by one.
    pub(crate) fn alone(pages: core::ops::Range<u32>) -> Vec<(u32, u32, u32)> {
        pages.map(|page| (page, page, page + 1)).collect()
    }

    #[test]
    fn a_lost_page_takes_three_pages_off_the_next_size_down_to_four() {
        let mut pages = Pages::new(Version {
            begins_at_start: true,
            shrunk: |size| size,
            has_average: false,
            doubles_from: None,
            is_corrected: false,
        });
        pages.next = Some(16);
        let sizes = [13, 10, 7, 4, 4].map(|_| {
            pages.missing(0);
            pages.next
        });
        assert_eq!(sizes, [13, 10, 7, 4, 4].map(Some));
    }
}
