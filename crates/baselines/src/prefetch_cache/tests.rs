//! Tests of the prefetch cache: the order of victims, and its invariant.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use forerun_core::conformance::stage::Stage;
use forerun_core::spec::Choice;

use super::*;
use crate::reclaim::{LIST, coldest, coldest_cpu, furthest, longest};

impl PrefetchCache {
    /// Each unread block is abandoned or lies in a ranked stream of its file, and every resident
    /// block is counted once.
    fn check(&self, stage: &Stage) {
        let frames = (0..stage.table.frames()).map(Frame);
        let is_there =
            |frame: &Frame| stage.table.flags(*frame) & (flag::FILLING | flag::VACANT) == 0;
        let resident: Vec<Frame> = frames.filter(is_there).collect();
        assert_eq!(self.len() as usize, resident.len(), "resident blocks");
        let is_of_stream = |flags: u8| flags & (flag::UNREAD | IN_A_QUEUE) == flag::UNREAD;
        let blocks: BTreeMap<u32, Frame> = resident
            .iter()
            .filter(|frame| is_of_stream(stage.table.flags(**frame)))
            .map(|frame| (block_of(stage, *frame), *frame))
            .collect();
        assert_eq!(self.of_streams as usize, blocks.len(), "blocks of streams");
        for block in blocks.into_keys().map(Block) {
            let is_found = match &self.order {
                Order::Arrival(arrivals) => arrivals.has(FILE, block),
                Order::Ranked(ranking) => ranking.has(FILE, block),
            };
            assert!(is_found, "{block:?} is lost");
        }
    }
}

/// The number of the block in a frame: a test's file has fewer than 10,000.
fn block_of(stage: &Stage, frame: Frame) -> u32 {
    let blocks = (0..10_000).map(Block);
    let mut found = blocks.filter(|block| {
        let found = stage.table.find(FILE, *block);
        found.is_some_and(|found| found.frame == frame)
    });
    found.next().expect("a block of the file").0
}

const FILE: FileId = FileId(0);

fn rank_of(method: &str) -> Box<dyn Rank> {
    match method {
        "longest" => Box::new(longest::Longest),
        "coldest" => Box::new(coldest::Coldest),
        "coldest-cpu" => Box::new(coldest_cpu::ColdestCpu),
        "furthest" => Box::new(furthest::Furthest),
        other => panic!("{other} ranks no streams"),
    }
}

/// Our rules, and with the paper's in one place each: `reclaims`, `ended_first` and `history_percent`.
const OURS: [u64; 3] = [0, 1, 8];
const RECLAIMS: [u64; 3] = [1, 1, 8];
const ENDED_AS_OTHERS: [u64; 3] = [0, 0, 8];

/// A part that stays, in per cent, and one that follows misses, in steps of 2 %.
const HALF: [u64; 2] = [50, 0];
const FOLLOWS: [u64; 2] = [1, 2];

/// Two readers of one file.
struct Rig {
    stage: Stage,
    method: PrefetchCache,
    free: Vec<Frame>,
}

impl Rig {
    /// Half the memory for blocks fetched ahead, and the longest stream first.
    fn new(frames: u32) -> Self {
        Self::with("longest", 50, frames)
    }

    fn with(method: &str, percent: u64, frames: u32) -> Self {
        Self::by(OURS, method, [percent, 0], frames)
    }

    fn by(rules: [u64; 3], method: &str, part: [u64; 2], frames: u32) -> Self {
        let order = match method {
            "fifo" => Order::Arrival(Arrivals::default()),
            _ => Order::Ranked(Ranking::new(rank_of(method))),
        };
        let values = [&rules[..], &part[..]].concat();
        let rules = Rules::of(&Values::new(Rules::PARAMS, &values));
        let mut method = PrefetchCache::of(order, rules);
        method.begin(frames);
        Self {
            stage: Stage::new(frames),
            method,
            free: (0..frames).rev().map(Frame).collect(),
        }
    }

    fn at(&mut self, now: u64) {
        self.stage.now = Nanos(now);
    }

    fn tell(&mut self, event: Event<'_>) {
        self.method.hear(&mut self.stage.cache(), event);
    }

    fn extent(first: u32, count: u32) -> Extent {
        Extent {
            file: FILE,
            first: Block(first),
            count,
        }
    }

    /// A window of a reader arrives.
    fn fetch(&mut self, reader: u32, first: u32, count: u32) {
        let (owner, extent) = (ReaderId(reader), Self::extent(first, count));
        self.stage.window(&mut self.method, owner, extent);
        for block in extent.blocks() {
            if self.stage.table.find(FILE, block).is_some() {
                continue;
            }
            let frame = self.free.pop().unwrap();
            self.stage.insert(frame, FILE, block, flag::UNREAD);
            let owner = Some(owner);
            let event = Event::Inserted { frame, owner };
            self.method.hear(&mut self.stage.cache(), event);
        }
        self.method.check(&self.stage);
    }

    fn read(&mut self, reader: u32, first: u32, count: u32) {
        let (owner, extent) = (ReaderId(reader), Self::extent(first, count));
        self.stage.read(&mut self.method, owner, extent);
        self.method.check(&self.stage);
    }

    fn close(&mut self, reader: u32) {
        self.stage.close(&mut self.method, ReaderId(reader));
        self.method.check(&self.stage);
    }

    /// The blocks of so many victims.
    fn victims(&mut self, count: usize) -> Vec<u32> {
        let mut blocks = Vec::new();
        while blocks.len() < count {
            let before: Vec<Frame> = self.resident();
            let (_, block) = self.stage.give_up(&mut self.method).unwrap();
            let after = self.resident();
            self.free
                .extend(before.iter().filter(|f| !after.contains(f)));
            blocks.push(block.0);
            self.method.check(&self.stage);
        }
        blocks
    }

    fn resident(&self) -> Vec<Frame> {
        let frames = (0..self.stage.table.frames()).map(Frame);
        let is_there = |frame: &Frame| self.stage.table.flags(*frame) & flag::VACANT == 0;
        frames.filter(is_there).collect()
    }

    fn frame(&self, block: u32) -> Frame {
        self.stage.table.find(FILE, Block(block)).unwrap().frame
    }
}

#[test]
fn above_its_part_the_prefetch_cache_gives_up_the_last_blocks_of_its_longest_stream() {
    let mut rig = Rig::new(200);
    rig.fetch(0, 0, 60);
    rig.fetch(1, 1000, 50);
    let last = (50..60).rev();
    assert_eq!(rig.victims(10), last.collect::<Vec<_>>());
    assert_eq!(rig.method.of_streams, 100);
}

#[test]
fn within_its_part_it_gives_up_nothing_while_there_is_a_block_that_was_read() {
    let mut rig = Rig::new(200);
    rig.fetch(0, 0, 60);
    rig.read(0, 0, 3);
    assert_eq!(rig.victims(4), [0, 1, 2, 59]);
}

#[test]
fn blocks_go_first_whose_reader_has_closed_the_file() {
    let mut rig = Rig::new(200);
    rig.fetch(0, 0, 120);
    rig.fetch(1, 1000, 3);
    rig.close(1);
    assert_eq!(rig.victims(4), [1000, 1001, 1002, 119]);
}

#[test]
fn by_the_papers_rule_blocks_of_a_closed_file_go_first_only_above_the_part() {
    for (rules, expected) in [
        (OURS, [1000, 1001, 1002, 0, 1, 2, 19]),
        (ENDED_AS_OTHERS, [0, 1, 2, 1000, 1001, 1002, 19]),
    ] {
        let mut rig = Rig::by(rules, "longest", HALF, 200);
        rig.fetch(0, 0, 20);
        rig.read(0, 0, 3);
        rig.fetch(1, 1000, 3);
        rig.close(1);
        assert_eq!(rig.victims(7), expected, "{rules:?}");
    }
    let mut rig = Rig::by(ENDED_AS_OTHERS, "longest", HALF, 200);
    rig.fetch(0, 0, 101);
    rig.read(0, 0, 1);
    rig.fetch(1, 1000, 3);
    rig.close(1);
    assert_eq!(
        rig.victims(4),
        [1000, 1001, 1002, 0],
        "103 where 100 may be"
    );
}

#[test]
fn by_the_papers_rule_blocks_above_the_part_go_behind_the_ordinary_cache_and_may_be_read_there() {
    for (method, above) in [("longest", [59, 58, 57, 56]), ("fifo", [3, 4, 5, 6])] {
        let mut rig = Rig::by(RECLAIMS, method, HALF, 200);
        rig.fetch(0, 0, 60);
        rig.read(0, 0, 3);
        rig.fetch(1, 1000, 47);
        // 104 where 100 may be: four move behind the three that were read.
        assert_eq!(rig.victims(1), [0], "{method}");
        assert_eq!((rig.method.of_streams, rig.method.ordinary.len()), (100, 6));
        let frame = rig.frame(above[0]);
        assert!(rig.stage.table.flags(frame) & flag::UNREAD != 0);
        rig.read(1, above[1], 1);
        let (read, rest) = (rig.victims(2), rig.victims(4));
        assert_eq!((read, rest), (vec![1, 2], above.to_vec()), "{method}");
    }
    // Those of a closed file move as well, and the first of those left goes.
    let mut rig = Rig::by(RECLAIMS, "longest", HALF, 200);
    rig.fetch(0, 0, 60);
    rig.read(0, 0, 3);
    rig.close(0);
    rig.fetch(1, 1000, 47);
    assert_eq!(rig.victims(2), [7, 8]);
    let mut rig = Rig::by(RECLAIMS, "longest", FOLLOWS, 2000);
    rig.fetch(0, 0, 40);
    assert_eq!(rig.victims(2), [39, 38]);
    rig.tell(Event::Missed(Rig::extent(38, 2)));
    assert_eq!(
        rig.method.part.misses, 2,
        "lost unread, as from the prefetch cache"
    );
}

#[test]
fn blocks_go_first_that_were_skipped_or_whose_stream_gave_way_to_newer_ones() {
    let mut rig = Rig::new(400);
    rig.fetch(0, 0, 4);
    rig.read(0, 2, 1);
    assert_eq!(rig.victims(2), [0, 1]);
    // An open file has 64 streams at most.
    for stream in 1..=64 {
        rig.fetch(0, stream * 100, 2);
    }
    assert_eq!(rig.victims(1), [3], "of the stream before the last 64");
}

#[test]
fn abandoned_blocks_that_a_window_covers_are_its_streams() {
    let mut rig = Rig::new(200);
    rig.fetch(0, 0, 6);
    rig.close(0);
    rig.fetch(1, 0, 4);
    rig.read(1, 1, 1);
    // Block 0 was skipped and 1 was read; of the two that are left the last goes first.
    assert_eq!(rig.victims(6), [0, 4, 5, 1, 3, 2]);
}

#[test]
fn by_arrival_the_blocks_go_that_came_first_also_of_a_file_that_was_closed() {
    let mut rig = Rig::with("fifo", 25, 400);
    rig.fetch(0, 0, 6);
    rig.fetch(1, 1000, 120);
    rig.fetch(0, 6, 4);
    rig.read(0, 0, 2);
    rig.close(1);
    // 128 unread ones where 100 may be.
    let first: Vec<_> = (2..6).chain(1000..1024).collect();
    assert_eq!(rig.victims(28), first);
    assert_eq!(
        rig.victims(3),
        [0, 1, 1024],
        "within its part blocks read go first"
    );
}

#[test]
fn a_pinned_block_keeps_its_place_in_the_order_of_arrival() {
    let mut rig = Rig::with("fifo", 1, 100);
    rig.fetch(0, 0, 5);
    let pinned = rig.frame(0);
    rig.stage.set(pinned, flag::PINNED);
    assert_eq!(rig.victims(2), [1, 2]);
    rig.stage.clear(pinned, flag::PINNED);
    assert_eq!(rig.victims(2), [0, 3]);
    let mut rig = Rig::with("fifo", 1, 100);
    rig.fetch(0, 0, 5);
    let pinned = [0, 1].map(|block| rig.frame(block));
    pinned
        .iter()
        .for_each(|frame| rig.stage.set(*frame, flag::PINNED));
    assert_eq!(rig.victims(1), [2]);
    pinned
        .iter()
        .for_each(|frame| rig.stage.clear(*frame, flag::PINNED));
    assert_eq!(rig.victims(3), [0, 1, 3]);
}

#[test]
fn the_order_of_arrival_stays_small_if_nothing_is_ever_given_up() {
    let mut rig = Rig::with("fifo", 25, 1000);
    rig.fetch(0, 0, 1);
    for window in 1..900 {
        let reader = window % 2;
        rig.fetch(reader, window * 10, 1);
        rig.read(reader, window * 10, 1);
    }
    let bytes = rig.method.bytes();
    assert!(bytes < 130 * 16, "{bytes} bytes for a single unread block");
    assert_eq!(rig.victims(1), [10]);
}

#[test]
fn the_coldest_stream_gives_up_its_last_blocks_however_short_it_is() {
    let mut rig = Rig::with("coldest", 25, 100);
    for (reader, first, now) in [(0, 0, 20), (1, 1000, 30)] {
        rig.at(now);
        rig.fetch(reader, first, 20 + 10 * reader);
    }
    assert_eq!(rig.victims(2), [19, 18]);
    rig.at(40);
    rig.read(0, 0, 1);
    assert_eq!(rig.victims(2), [1029, 1028]);
}

#[test]
fn blocks_that_their_owner_will_not_read_go_first_and_the_rest_as_without_hints() {
    let mut rig = Rig::with("furthest", 25, 100);
    let hint = |count, more| Event::Hint {
        owner: ReaderId(0),
        extent: Rig::extent(0, count),
        more,
        has_room: true,
    };
    assert_eq!(rig.method.takes_hint(1), Some(true));
    rig.tell(hint(20, true));
    assert_eq!(rig.method.takes_hint(1), Some(false), "one run is kept");
    rig.tell(hint(0, false));
    for (reader, first, now) in [(1, 1000, 20), (0, 0, 30)] {
        rig.at(now << 20);
        rig.fetch(reader, first, 30);
    }
    let unwanted = 20..30;
    assert_eq!(rig.victims(10), unwanted.collect::<Vec<_>>());
    assert_eq!(
        rig.victims(2),
        [1029, 1028],
        "the older stream, of an owner without hints"
    );
    let (owner, time) = (ReaderId(0), Nanos(2_000_000));
    rig.tell(Event::CpuTime { owner, time });
    assert_eq!(rig.victims(2), [19, 18], "by CPU time");
    rig.tell(Event::Changed(owner));
    assert_eq!(rig.method.takes_hint(1), Some(true), "the run is forgotten");
}

#[test]
fn the_stream_whose_owner_computed_most_since_its_access_goes_before_an_older_one() {
    let mut rig = Rig::with("coldest-cpu", 25, 100);
    for (reader, first, now) in [(0, 0, 20), (1, 1000, 30)] {
        rig.at(now << 20);
        rig.fetch(reader, first, 30);
    }
    assert_eq!(rig.victims(1), [29], "without CPU times the older one");
    for (reader, ms) in [(0, 5), (1, 25), (1, 3)] {
        let (owner, time) = (ReaderId(reader), Nanos(ms * 1_000_000));
        rig.tell(Event::CpuTime { owner, time });
    }
    assert_eq!(
        rig.victims(2),
        [1029, 1028],
        "its clock ran backward, and stood still"
    );
    rig.read(1, 1000, 1);
    assert_eq!(
        rig.victims(1),
        [28],
        "CPU time before its last access does not count"
    );
}

#[test]
fn a_miss_on_a_block_given_up_not_long_ago_counts_where_the_part_follows_misses() {
    let mut rig = Rig::by(OURS, "longest", FOLLOWS, 2000);
    rig.fetch(0, 0, 40);
    rig.read(0, 0, 2);
    assert_eq!(rig.victims(10)[0], 39);
    rig.tell(Event::Missed(Rig::extent(30, 2)));
    assert_eq!(rig.method.part.misses, 2, "both unread");
    rig.tell(Event::Missed(Rig::extent(0, 2)));
    assert_eq!(rig.method.part.misses, 2, "resident");
    rig.victims(20);
    rig.tell(Event::Missed(Rig::extent(0, 2)));
    assert_eq!(rig.method.part.misses, 4, "both read");
}

#[test]
fn the_history_has_an_entry_of_two_bytes_for_each_of_so_many_per_cent_of_the_frames() {
    for (history_percent, bytes) in [(0, 0), (8, 320), (40, 1600), (100, 4000)] {
        let rules = [0, 1, history_percent];
        let rig = Rig::by(rules, "longest", FOLLOWS, 2000);
        let history = rig.method.history.as_ref().unwrap();
        assert_eq!(history.bytes(), bytes, "{history_percent} %");
    }
}

#[test]
fn a_method_says_which_facts_it_uses() {
    let uses = |name: &str| {
        let method = Choice::parse("reclaim", LIST, name).unwrap().build();
        (method.uses_cpu_time(), method.takes_hint(1).is_some())
    };
    assert_eq!(uses("fifo"), (false, false));
    assert_eq!(uses("longest"), (false, false));
    assert_eq!(uses("coldest"), (false, false));
    assert_eq!(uses("coldest-cpu"), (true, false));
    assert_eq!(uses("furthest"), (true, true));
}
