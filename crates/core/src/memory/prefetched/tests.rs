//! Tests of the prefetch cache, and the invariant that the engine's model test checks.

use alloc::vec::Vec;

use super::*;
use crate::plain::APART;
use crate::spec::Choice;
use crate::split::fixed;
use crate::stream::STREAMS_MAX;

impl Memory {
    /// Each block of the prefetch cache is abandoned or lies in a ranked stream, and every resident
    /// block is counted once.
    pub(crate) fn check(&self, streams: &[(ReaderId, FileId, Stream)]) {
        let (mut of_streams, mut resident) = (0, 0);
        for frame in (0..self.table.frames()).map(Frame) {
            let is_there = self.table.flags(frame) & (flag::FILLING | flag::VACANT) == 0;
            resident += u32::from(is_there && !self.is_held(frame));
            if !self.is_of_stream(frame) {
                continue;
            }
            of_streams += 1;
            let (file, block) = self.table.holds(frame);
            if self.is_by_arrival() {
                assert!(
                    self.prefetched.arrivals.has(file, block),
                    "{file:?} {block:?} is lost"
                );
                continue;
            }
            let has_it = |(_, of, s): &&(ReaderId, FileId, Stream)| {
                let ahead = s.tail - s.arrived()..s.tail;
                *of == file && s.rank.is_some() && ahead.contains(&block.0)
            };
            assert!(
                streams.iter().any(|s| has_it(&s)),
                "{file:?} {block:?} is lost"
            );
        }
        let counted = self.prefetched.of_streams;
        assert_eq!(
            counted, of_streams,
            "blocks of streams, as counted and as found"
        );
        let counted = self.reclaim.len() + self.prefetched.len();
        assert_eq!(
            counted,
            resident + self.dropped.len() as u32,
            "blocks to be given up, and resident ones"
        );
        let ranks: Vec<_> = (streams.iter())
            .filter_map(|(owner, _, s)| {
                let (owner, start) = (*owner, Block(s.start));
                Some((s.rank?, StreamId { owner, start }))
            })
            .collect();
        assert_eq!(ranks.len(), self.prefetched.ranked.len(), "ranked streams");
        assert!(ranks.iter().all(|r| self.prefetched.ranked.contains(r)));
    }
}

const FILE: FileId = FileId(0);

/// Half the memory for blocks fetched ahead; two readers of one file.
struct Rig {
    memory: Memory,
    streams: [Streams; 2],
    now: Nanos,
}

impl Rig {
    fn new(frames: u32) -> Self {
        Self::with("longest", 50, frames)
    }

    fn with(reclaim: &str, percent: u64, frames: u32) -> Self {
        let choice = Choice::parse("reclaim", APART, reclaim).unwrap();
        let memory = Memory::new(
            frames,
            4096,
            choice.build(),
            (fixed::METHOD.build)(&[percent]),
        );
        let streams = Default::default();
        let now = Nanos(0);
        Self {
            memory,
            streams,
            now,
        }
    }

    fn follow(&mut self, reader: usize) {
        let owner = ReaderId(reader as u32);
        self.memory.follow(owner, FILE, &mut self.streams[reader]);
    }

    /// A window of a reader arrives.
    fn fetch(&mut self, reader: usize, first: u32, count: u32) {
        let stream = self.streams[reader].at_or_begin(Block(first), self.now);
        stream.end = stream.end.max(u64::from(first + count));
        for block in (first..first + count).map(Block) {
            let frame = self.memory.take_free().unwrap();
            self.memory.table.insert(frame, FILE, block, flag::UNREAD);
            let is_ahead = self.streams[reader].arrive(block);
            self.memory.inserted(frame, is_ahead);
        }
        self.follow(reader);
    }

    fn read(&mut self, reader: usize, first: u32, count: u32) {
        for block in (first..first + count).map(Block) {
            let frame = self.memory.table.find(FILE, block).unwrap().frame;
            self.memory.used(frame);
            self.memory.touched(frame);
        }
        self.streams[reader].advance(Block(first), count, self.now);
        self.follow(reader);
    }

    fn close(&mut self, reader: usize) {
        self.streams[reader].clear();
        self.follow(reader);
    }

    /// The blocks of so many victims.
    fn victims(&mut self, count: usize) -> Vec<u32> {
        let mut blocks = Vec::new();
        while blocks.len() < count {
            let frame = match self.memory.victim(Nanos(0)).unwrap() {
                Victim::Frame(frame) => frame,
                Victim::Last(id) => {
                    let streams = &mut self.streams[id.owner.0 as usize];
                    let stream = *streams.begun_at(id.start).unwrap();
                    let last = self.memory.take_last(FILE, &stream);
                    streams.shorten(id.start, last.map(|(block, _)| block));
                    self.follow(id.owner.0 as usize);
                    last.unwrap().1
                }
            };
            blocks.push(self.memory.table.holds(frame).1.0);
            self.memory.table.remove(frame);
            self.memory.give_back(frame);
        }
        blocks
    }
}

#[test]
fn above_its_part_the_prefetch_cache_gives_up_the_last_blocks_of_its_longest_stream() {
    let mut rig = Rig::new(200);
    rig.fetch(0, 0, 60);
    rig.fetch(1, 1000, 50);
    let last = (50..60).rev();
    assert_eq!(rig.victims(10), last.collect::<Vec<_>>());
    assert_eq!(rig.memory.prefetched.len(), 100);
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
fn blocks_go_first_that_were_skipped_or_whose_stream_gave_way_to_newer_ones() {
    let mut rig = Rig::new(400);
    rig.fetch(0, 0, 4);
    rig.read(0, 2, 1);
    assert_eq!(rig.victims(2), [0, 1]);
    for stream in 1..=STREAMS_MAX as u32 {
        rig.fetch(0, stream * 100, 2);
    }
    assert_eq!(rig.victims(1), [3], "of the stream before the last 64");
}

#[test]
fn abandoned_blocks_that_a_window_covers_are_its_streams() {
    let mut rig = Rig::new(200);
    rig.fetch(0, 0, 6);
    rig.close(0);
    rig.fetch(1, 0, 0);
    for block in (0..4).map(Block) {
        rig.streams[1].at_mut(block).unwrap().end = 4;
        assert!(rig.streams[1].arrive(block));
        let frame = rig.memory.table.find(FILE, block).unwrap().frame;
        rig.memory.adopted(frame);
    }
    rig.follow(1);
    rig.read(1, 1, 1);
    // Block 0 was skipped and 1 was read; of the two that are left the last goes first.
    assert_eq!(rig.victims(6), [0, 4, 5, 1, 3, 2]);
}

#[test]
fn by_arrival_the_blocks_go_that_came_first_whoever_has_closed_his_file() {
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
    let frame = |rig: &Rig| rig.memory.table.find(FILE, Block(0)).unwrap().frame;
    let pinned = frame(&rig);
    rig.memory.pin(pinned);
    assert_eq!(rig.victims(2), [1, 2]);
    rig.memory.unpin(pinned);
    assert_eq!(rig.victims(2), [0, 3]);
}

#[test]
fn the_order_of_arrival_stays_small_if_nothing_is_ever_given_up() {
    let mut rig = Rig::with("fifo", 25, 4000);
    rig.fetch(0, 0, 1);
    for window in 1..2000 {
        let reader = window as usize % 2;
        rig.fetch(reader, window * 10, 1);
        rig.read(reader, window * 10, 1);
    }
    let bytes = rig.memory.prefetched.arrivals.bytes();
    assert!(bytes < 130 * 16, "{bytes} bytes for a single unread block");
    assert_eq!(rig.victims(1), [10]);
}

#[test]
fn the_coldest_stream_gives_up_its_last_blocks_however_short_it_is() {
    let mut rig = Rig::with("coldest", 25, 100);
    for (reader, first, now) in [(0, 0, 20), (1, 1000, 30)] {
        rig.now = Nanos(now);
        rig.fetch(reader, first, 20 + 10 * reader as u32);
    }
    assert_eq!(rig.victims(2), [19, 18]);
    rig.now = Nanos(40);
    rig.read(0, 0, 1);
    assert_eq!(rig.victims(2), [1029, 1028]);
}

#[test]
fn what_its_owner_will_not_read_goes_first_and_the_rest_as_without_hints() {
    let mut rig = Rig::with("furthest", 25, 100);
    rig.streams[0].announced.add(Block(0), 20);
    rig.streams[0].announced.end(true);
    for (reader, first, now) in [(1, 1000, 20), (0, 0, 30)] {
        rig.now = Nanos(now << 20);
        rig.fetch(reader, first, 30);
    }
    let unwanted = 20..30;
    assert_eq!(rig.victims(10), unwanted.collect::<Vec<_>>());
    assert_eq!(
        rig.victims(2),
        [1029, 1028],
        "the older stream, of an owner without hints"
    );
    rig.streams[0].owner_has_used(Nanos(2_000_000));
    rig.follow(0);
    assert_eq!(rig.victims(2), [19, 18], "by CPU time");
}

#[test]
fn the_stream_whose_owner_computed_most_since_its_access_goes_before_an_older_one() {
    let mut rig = Rig::with("coldest-cpu", 25, 100);
    for (reader, first, now) in [(0, 0, 20), (1, 1000, 30)] {
        rig.now = Nanos(now << 20);
        rig.fetch(reader, first, 30);
    }
    assert_eq!(rig.victims(1), [29], "without CPU times the older one");
    for (reader, ms) in [(0, 2), (1, 25), (1, 3)] {
        rig.streams[reader].owner_has_used(Nanos(ms * 1_000_000));
        rig.follow(reader);
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
