//! Single methods, called as the engine calls them: the next window of a detector or a depth.
//!
//! A limit of 32 blocks is the 128 KiB of the kernel, for which Wu 2010 gives numbers. Nothing is
//! cached unless a test says so.

use core::cell::Cell;

use forerun_baselines::METHODS;
use forerun_core::depth::{DeviceFacts, StreamFacts};
use forerun_core::detect::{Access, Ahead, Cause, Detect, Window};
use forerun_core::spec::Choice;
use forerun_core::{Block, Bytes, Nanos, Profile};

/// The blocks before `cached_until` are cached; remembers the last one it was asked about.
#[derive(Default)]
struct Cache {
    cached_until: u32,
    looked_at: Cell<u32>,
}

impl Ahead for Cache {
    fn limit(&self) -> u32 {
        32
    }

    fn cached(&self, block: Block) -> bool {
        self.looked_at.set(self.looked_at.get().max(block.0));
        block.0 < self.cached_until
    }

    fn unread(&self, _: Block) -> bool {
        false
    }
}

fn detector(name: &str) -> Box<dyn Detect> {
    let choice = Choice::parse("detect", METHODS.detect, name).unwrap();
    choice.build()
}

/// A read of one block after another.
fn access(block: u32, previous: Option<u32>) -> Access {
    Access::new(Block(block), 1).with_previous(previous.map(Block))
}

fn sequential(block: u32) -> Access {
    access(block, block.checked_sub(1))
}

fn window(start: u32, size: u32, async_size: u32) -> Option<Window> {
    Some(Window::forward(Block(start), size, async_size))
}

/// Blocks fetched ahead were given up before their reader came: its window begins anew there,
/// small, at any position (Wu 2010, section 4.2). A miss elsewhere is random.
#[test]
fn ondemand_begins_anew_where_blocks_of_its_window_were_lost() {
    let (mut detect, cache) = (detector("ondemand"), Cache::default());
    let mut asked = |cause, access| detect.trigger(cause, &access, &cache);
    assert_eq!(asked(Cause::Miss, sequential(0)), window(0, 4, 3));
    assert_eq!(asked(Cause::Mark, sequential(1)), window(4, 8, 8));
    assert_eq!(asked(Cause::Mark, sequential(4)), window(12, 16, 16));
    assert_eq!(asked(Cause::Miss, access(500, Some(900))), None);
    assert_eq!(asked(Cause::Miss, access(20, Some(900))), window(20, 4, 3));
    // And grows from there as any.
    assert_eq!(asked(Cause::Mark, access(21, Some(20))), window(24, 8, 8));
}

/// Blocks of each window in turn, as a reader that reads block by block meets them.
fn two_windows(detect: &mut dyn Detect, cache: &Cache, blocks: core::ops::Range<u32>) -> Vec<u32> {
    let windows = blocks.filter_map(|block| detect.read(&sequential(block), cache));
    windows.map(|window| window.size).collect()
}

/// A loss takes two blocks off the next window, which is never below four; without one it doubles
/// (Wu 2010, section 5.3; `ra->size - 2` in Linux 2.6.22).
#[test]
fn linux_2_6_22_shrinks_its_window_by_two_blocks_for_a_loss() {
    let cache = Cache::default();
    let mut detect = detector("linux-2.6.22");
    assert_eq!(two_windows(&mut *detect, &cache, 0..13), [4, 8, 16, 32]);
    let lost = |detect: &mut dyn Detect, block| {
        let miss = detect.trigger(Cause::Miss, &sequential(block), &cache);
        assert_eq!(miss, window(block, 1, 0), "the lost block alone");
    };
    lost(&mut *detect, 20);
    assert_eq!(two_windows(&mut *detect, &cache, 20..29), [30]);
    lost(&mut *detect, 30);
    assert_eq!(two_windows(&mut *detect, &cache, 30..61), [28]);
    assert_eq!(two_windows(&mut *detect, &cache, 61..91), [32]);
    let mut small = detector("linux-2.6.22");
    assert_eq!(two_windows(&mut *small, &cache, 0..1), [4]);
    lost(&mut *small, 0);
    assert_eq!(two_windows(&mut *small, &cache, 1..2), [4]);
}

/// Windows of 4, 8, 16 and eight of 32 blocks, all cached, are the first that make 256 in a row:
/// then it takes the file for cached and does not look any more (Wu 2010, section 5.2).
#[test]
fn linux_2_6_22_stops_looking_after_256_cached_blocks_until_the_next_miss() {
    let mut detect = detector("linux-2.6.22");
    let cache = Cache {
        cached_until: 2000,
        ..Cache::default()
    };
    assert_eq!(two_windows(&mut *detect, &cache, 0..2000), [0; 0]);
    assert_eq!(cache.looked_at.get() + 1, 4 + 8 + 16 + 8 * 32);
    let miss = detect.trigger(Cause::Miss, &sequential(2000), &cache);
    assert_eq!(miss, None, "no window is left that it could be in");
    assert_eq!(two_windows(&mut *detect, &cache, 2000..2002), [4, 8]);
}

/// Depth D is 1 MB. Having consumed 100 MB it may fetch a quarter of that ahead, if it waits; if it
/// does not, more would be memory for nothing, and it keeps the window it has.
/// A stream whose reader asks for a page.
fn stream(consumed: u64, last_window: u64, waited: bool) -> StreamFacts {
    let mut stream = StreamFacts::default();
    stream.asked = Bytes(4096);
    stream.consumed = Bytes(consumed);
    stream.last_window = Bytes(last_window);
    stream.waited = waited;
    stream
}

#[test]
fn growing_grows_only_for_a_reader_that_waits() {
    let choice = Choice::parse("depth", METHODS.depth, "growing").unwrap();
    let depth = choice.build();
    let profile = Profile::constant(Nanos(10_000_000), 100_000_000).unwrap();
    let limit = |waited, last_window| {
        let stream = stream(100_000_000, last_window, waited);
        let device = DeviceFacts::new(&profile, Bytes(0), 1);
        depth.limit(&stream, &device).0
    };
    assert_eq!(limit(true, 1_000_000), 25_000_000);
    assert_eq!(limit(false, 1_000_000), 1_000_000);
    assert_eq!(limit(false, 7_000_000), 7_000_000);
    assert_eq!(limit(false, 0), 1_000_000);
}

/// D is 1 MB, and 16 servers are there.
#[test]
fn a_stream_has_windows_as_long_as_its_part_of_the_servers_could_have_together() {
    let depth = Choice::parse("depth", METHODS.depth, "growing")
        .unwrap()
        .build();
    let profile = Profile::constant(Nanos(10_000_000), 100_000_000).unwrap();
    let profile = profile.with_servers(16).unwrap().with_most(64);
    for (consumed, streams, waited, expected) in [
        (0, 1, true, 1_000_000),
        (3_000_000, 1, true, 3_000_000),
        (20_000_000, 1, true, 16_000_000),
        (20_000_000, 1, false, 5_000_000),
        (20_000_000, 2, true, 8_000_000),
        (20_000_000, 16, true, 5_000_000),
        (3_000_000, 100, true, 1_000_000),
    ] {
        let stream = stream(consumed, 5_000_000, waited);
        let device = DeviceFacts::new(&profile, Bytes(0), streams);
        let limit = depth.limit(&stream, &device).0;
        assert_eq!(limit, expected, "{consumed} consumed, {streams} streams");
    }
}
