//! On-demand readahead: Linux since 2.6.23, as its author describes it.
//!
//! One window `(start, size, async_size)` an open file, and the page cache as the second memory:
//! the rest is derived from the set of cached blocks. Asked at a miss or at
//! the lookahead mark only, in this order (Wu 2010, section 4.3, Figure 6):
//!
//! 1. The block is where the window said the reader would come next, `start + size - async_size`
//!    or `start + size`: push the window forward and let it grow. With patterns, only
//!    if half of the stretch before the block was read.
//! 2. A mark, but not of this window: another stream on the same open file. Its window is read
//!    off the cache: from here to the first missing block lies its old `async_size`.
//! 3. A miss that continues the last access, starts the file, or asks for more than the limit:
//!    a new window here. So does a miss inside the window (blocks fetched ahead were lost), and,
//!    with context, a miss behind more read blocks than it asks for: a stream among others.
//! 4. Any other miss is random: exactly the demand is fetched, the window stays. With
//!    patterns, it may be the second of a stream [among] others, or one of a [progression],
//!    backward or with gaps: these have windows of their own, and a read that belongs to one is decided
//!    before all this.
//!
//! Sizes: first window and ramp as in `initial_size` and `next_size`. With a limit of 32 pages
//! and reads of one page this gives Wu 2010's Table 2: (0, 4, 3), (4, 8, 8), (12, 16, 16). With patterns, windows
//! grow twice as fast on a store that has several servers for the stream, while they are a small part of the memory.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

mod account;
mod among;
mod confirm;
mod progression;

use alloc::boxed::Box;

use self::among::Bets;
use self::progression::Progressions;
use super::{Access, Ahead, Cause, Detect, Window, initial_size, next_size};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::Block;

pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "ondemand",
        summary: "windows that ramp up, triggered by misses and lookahead marks only",
        source: "wu10 section 4; Linux 2.6.23 and later",
        unfit: "strided and backward reads without patterns: it fetches exactly the blocks they ask for",
        knows: Knows::Online,
        params: &[
            Param {
                name: "context",
                summary: "1: a miss behind more read blocks than it asks for begins a window (as \
                          Linux since 2.6.31), so streams in strict turn are found",
                default: 0,
                min: 0,
                max: 1,
            },
            Param {
                name: "patterns",
                summary: "1: backward and strided reads run in windows, too, and a window opens \
                          once half of the one before was read; 0 is Linux, where a stride that \
                          meets a window's end makes it grow",
                default: 0,
                min: 0,
                max: 1,
            },
        ],
    },
    build: |values| {
        Box::new(OnDemand {
            window: None,
            decided: 0,
            context: values.get("context") == 1,
            patterns: (values.get("patterns") == 1).then(Progressions::default),
            bets: Bets::default(),
            is_among: false,
            trust: TRUST_MAX,
        })
    },
};

/// Blocks looked at to judge how much of a window was read: enough to tell a half from a quarter,
/// few enough to cost nothing beside the fetch that follows.
const SAMPLES: u32 = 16;

/// With patterns, a window opens once so much of the one before was read.
const DENSITY_PERCENT: u32 = 50;

/// A stream whose reads come out of order has left less than a quarter of its window unread.
const SEQUENTIAL_PERCENT: u32 = 75;

/// Where much of a file is cached, random reads lie behind read blocks by chance, and a window that
/// begins there is a waste. The reader of a real stream comes to the next block; this many windows
/// may be opened without that. A smaller number would keep as many streams that begin
/// together from their first windows.
const TRUST_MAX: u32 = 32;

/// In several requests at once a window takes no longer, and each step of a ramp costs a round trip. As many times as
/// there are servers gains no more in the first 10 MB of a store of 30 ms; a stream of 512 KiB whose link is full then
/// takes a tenth longer.
const WIDE_TIMES: u32 = 2;
/// A window that grew twice as fast takes at most this part of the memory: it is lost once others begin there. In 6 MiB
/// 16 clients of a store that play at 1.5 MB/s wait for 0.54 s then, and 0.86 s without this.
const WIDE_PART: u32 = 16;

#[derive(Debug)]
struct OnDemand {
    window: Option<Window>,
    /// How long that was before it was shaped: the ramp goes on from there.
    decided: u32,
    context: bool,
    patterns: Option<Progressions>,
    /// First windows of streams among others, with patterns.
    bets: Bets,
    /// Whether the window is one of a stream among others.
    is_among: bool,
    /// How many more windows may begin by context alone before one of them is read on; with patterns.
    trust: u32,
}

impl OnDemand {
    fn open(&mut self, start: Block, size: u32, async_size: u32) -> Option<Window> {
        let window = Window::forward(start, size, async_size);
        self.window = Some(window);
        self.decided = size;
        Some(window)
    }

    /// Case 1.
    fn expected(&self, block: Block, ahead: &dyn Ahead) -> Option<Window> {
        let window = self.window?;
        let end = window.start.0.checked_add(window.size)?;
        let met = block.0 != 0 && (block.0 == end - window.async_size || block.0 == end);
        let is_read = || was_read(DENSITY_PERCENT, window.size, block.0, ahead);
        (met && (self.patterns.is_none() || is_read())).then_some(window)
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
        self.is_among =
            self.bets.is_used && among::has_memory(ahead) && ends_a_run(marked, limit / 2, ahead);
        if self.is_among {
            return self.open(missing, limit, limit.div_ceil(2));
        }
        let size = next_size(missing.0 - marked.0, limit);
        self.open(missing, size, size)
    }

    /// Case 3, but for context.
    fn begins(&self, access: &Access, ahead: &dyn Ahead) -> bool {
        access.is_sequential() || access.count > ahead.limit() || self.inside_own(access.block)
    }

    /// The second read of a stream among others.
    fn begin_among(&mut self, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        let limit = ahead.limit();
        let (size, behind) = among::first(access.count, limit);
        let is_next = |patterns: &Progressions| patterns.goes_on_from_recent(access);
        let begins =
            self.context && among::has_memory(ahead) && self.patterns.as_ref().is_some_and(is_next);
        if !begins || !self.bets.covers(size, limit) {
            return None;
        }
        let next = access.block.0.checked_add(access.count)?;
        self.bets.open(Block(next), size);
        self.is_among = true;
        self.open(access.block, size, behind)
    }

    /// Linux since 2.6.31 takes any run of read blocks for a stream; with patterns, only as long as
    /// streams come of it.
    fn begins_by_context(&mut self, access: &Access, ahead: &dyn Ahead) -> bool {
        if self.trust == 0 || !follows_its_own_past(access, ahead) {
            return false;
        }
        if self.patterns.is_some() {
            self.trust -= 1;
            self.bets
                .open(Block(access.block.0.saturating_add(access.count)), 0);
        }
        true
    }

    fn begin(&mut self, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        let size = initial_size(access.count, ahead.limit());
        let behind = match size.saturating_sub(access.count) {
            0 => size,
            rest => rest,
        };
        self.is_among = false;
        self.open(access.block, size, behind)
    }
}

/// Whether so much was read of the half window before `end`, judged by a sample. Half, because the window before was
/// at least that long once the ramp doubles; blocks long gone count as read.
fn was_read(percent: u32, size: u32, end: u32, ahead: &dyn Ahead) -> bool {
    let start = end.saturating_sub((size / 2).max(1));
    let samples = (end - start).min(SAMPLES);
    if samples == 0 {
        return true;
    }
    let spacing = u64::from(end - start) * 256 / u64::from(samples);
    let read = (0..samples)
        .map(|i| start + (u64::from(i) * spacing / 256) as u32)
        .filter(|&block| !ahead.unread(Block(block)))
        .count();
    read as u32 * 100 >= samples * percent
}

/// Whether so many blocks before this one were read and are there, judged by a sample.
fn ends_a_run(end: Block, blocks: u32, ahead: &dyn Ahead) -> bool {
    let samples = blocks.clamp(1, SAMPLES);
    let is_read = |block: u32| ahead.cached(Block(block)) && !ahead.unread(Block(block));
    (1..=samples).all(|i| {
        let distance = (u64::from(i) * u64::from(blocks) / u64::from(samples)).max(1);
        let block = u64::from(end.0).checked_sub(distance);
        block.is_some_and(|block| is_read(block as u32))
    })
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
        // A block that its own window expects, or has lost, is sequential.
        let is_own = cause == Cause::Miss
            && (self.expected(access.block, ahead).is_some() || self.inside_own(access.block));
        let patterns = self.patterns.as_mut().filter(|_| !is_own);
        if let Some(window) = patterns.and_then(|p| p.goes_on(cause, access, ahead)) {
            return window;
        }
        let is_near = self.is_near_own(access.block, ahead);
        self.trust = (self.trust + self.bets.settle(ahead)).min(TRUST_MAX);
        let window = self.forward(cause, access, ahead);
        if cause == Cause::Miss && window.is_none() {
            self.bets.read_alone(access.count, ahead.limit());
        }
        match (&mut self.patterns, cause) {
            (Some(patterns), Cause::Miss) if window.is_none() && !is_near => {
                patterns.begins(access, ahead)
            }
            (Some(patterns), Cause::Miss) => {
                patterns.seen(access);
                window
            }
            _ => window,
        }
    }

    fn cut(&mut self, end: Block) {
        if self.patterns.as_mut().is_some_and(|p| p.cut(end)) {
            return;
        }
        if let Some(window) = &mut self.window {
            window.size = window.size.min(end.0.saturating_sub(window.start.0));
            window.async_size = window.async_size.min(window.size);
            self.decided = self.decided.min(window.size);
        }
    }

    fn shaped(&mut self, end: Block) {
        if let Some(window) = &mut self.window {
            *window = window.shaped(end);
        }
    }

    fn inside_window(&self, block: Block) -> bool {
        let is_of_pattern = |p: &Progressions| p.inside_window(block);
        self.inside_own(block) || self.patterns.as_ref().is_some_and(is_of_pattern)
    }
}

impl OnDemand {
    /// The published rule.
    fn forward(&mut self, cause: Cause, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        if let Some(window) = self.expected(access.block, ahead) {
            let size = self.grown(ahead);
            let start = Block(window.start.0 + window.size);
            let behind = if self.is_among {
                size.div_ceil(2)
            } else {
                size
            };
            return self.open(start, size, behind);
        }
        match cause {
            Cause::Mark if self.patterns.is_some() && self.is_inside(access.block) => None,
            Cause::Mark => self.other_stream(access.block, ahead),
            Cause::Miss if self.begins(access, ahead) => self.begin(access, ahead),
            Cause::Miss => {
                let among = self.begin_among(access, ahead);
                match among.is_none() && self.context && self.begins_by_context(access, ahead) {
                    true => self.begin(access, ahead),
                    false => among,
                }
            }
        }
    }

    /// The size of the next window.
    fn grown(&self, ahead: &dyn Ahead) -> u32 {
        let wide = next_size(self.decided.saturating_mul(WIDE_TIMES), ahead.limit());
        let is_wide = self.patterns.is_some() && ahead.servers_a_stream() > 1;
        match is_wide && wide <= ahead.room() / WIDE_PART {
            true => wide,
            false => next_size(self.decided, ahead.limit()),
        }
    }

    /// Whether a mark that case 1 does not expect lies in its own window. The first block of a file is never
    /// expected: a mark there, set where a read is as long as the window, lets the next window open.
    fn is_inside(&self, block: Block) -> bool {
        block.0 != 0 && self.inside_own(block)
    }

    /// Whether a block is as near to the end of its own window as that is long: a read there is one
    /// of a sequential stream whose reads come out of order, rather than the begin of a pattern. One that skips
    /// every other block reads half of it.
    fn is_near_own(&self, block: Block, ahead: &dyn Ahead) -> bool {
        self.window.is_some_and(|w| {
            let end = w.start.0.saturating_add(w.size);
            block.0.abs_diff(end) <= w.size && was_read(SEQUENTIAL_PERCENT, w.size, end, ahead)
        })
    }

    fn inside_own(&self, block: Block) -> bool {
        self.window.is_some_and(|w| {
            block >= w.start && u64::from(block.0) < u64::from(w.start.0) + u64::from(w.size)
        })
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use super::*;

    /// A file of which a part was read and is there.
    struct Read(Range<u32>);

    /// A device that works on so many requests of one stream at once, a memory of so many blocks, and a file with
    /// nothing there.
    struct Servers(u32, u32);

    impl Ahead for Servers {
        fn limit(&self) -> u32 {
            1024
        }
        fn cached(&self, _: Block) -> bool {
            false
        }
        fn unread(&self, _: Block) -> bool {
            false
        }
        fn servers_a_stream(&self) -> u32 {
            self.0
        }
        fn room(&self) -> u32 {
            self.1
        }
    }

    impl Ahead for Read {
        fn limit(&self) -> u32 {
            32
        }
        fn cached(&self, block: Block) -> bool {
            self.0.contains(&block.0)
        }
        fn unread(&self, _: Block) -> bool {
            false
        }
    }

    /// The window that Linux opens, or with context: first block, size, blocks behind the mark.
    fn opens(
        context: u64,
        cause: Cause,
        access: &Access,
        read: Range<u32>,
    ) -> Option<(u32, u32, u32)> {
        let mut detect = METHOD.of(&[context, 0]);
        let window = detect.trigger(cause, access, &Read(read))?;
        Some((window.start.0, window.size, window.async_size))
    }

    #[test]
    fn windows_grow_twice_as_fast_where_the_stream_has_several_servers_and_memory_is_plenty() {
        for (servers, room, expected) in [
            (1, u32::MAX, [64, 128, 256]),
            (2, u32::MAX, [64, 256, 1024]),
            (8, 1024 * WIDE_PART, [64, 256, 1024]),
            (8, 1024 * WIDE_PART - 1, [64, 256, 512]),
            (8, 256 * WIDE_PART - 1, [64, 128, 256]),
        ] {
            let mut detect = METHOD.of(&[0, 1]);
            let mut next = 0;
            let sizes = expected.map(|_| {
                let access =
                    Access::new(Block(next), 16).with_previous(next.checked_sub(1).map(Block));
                let window = detect
                    .trigger(Cause::Miss, &access, &Servers(servers, room))
                    .unwrap();
                next = window.start.0 + window.size;
                window.size
            });
            assert_eq!(sizes, expected, "{servers} servers, {room} blocks");
        }
    }

    #[test]
    fn a_mark_of_another_stream_begins_a_window_at_the_first_missing_block() {
        let mark = Access::new(Block(10), 1);
        for (cached, expected) in [
            (0..13, (13, 6, 6)),
            (0..11, (11, 4, 4)),
            (0..30, (30, 32, 32)),
        ] {
            assert_eq!(opens(0, Cause::Mark, &mark, cached), Some(expected));
        }
        assert_eq!(
            opens(0, Cause::Mark, &mark, 0..60),
            None,
            "nothing is missing within the limit"
        );
    }

    #[test]
    fn a_read_elsewhere_begins_a_window_if_it_is_longer_than_the_limit_or_follows_more_than_it_asks_for()
     {
        for (context, count, read, expected) in [
            (0, 32, 0..0, None),
            (0, 33, 0..0, Some((100, 32, 32))),
            (1, 4, 95..100, Some((100, 8, 4))),
            (1, 4, 96..100, None),
            (0, 4, 95..100, None),
        ] {
            let access = Access::new(Block(100), count).with_previous(Some(Block(7)));
            let opened = opens(context, Cause::Miss, &access, read.clone());
            assert_eq!(opened, expected, "{context}, {count}, {read:?}");
        }
    }
}
