//! The suite of the reclaim methods: a small memory with readers that fetch ahead, read, skip,
//! close, pin and drop, and every victim looked at.
//!
//! The method is driven through the memory of an engine, so it gets the calls and events that it
//! would get there, and whether a victim is allowed is read off the table. In the end nothing is
//! pinned, and everything must be given up.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Broken, Random, Rule};
use crate::detect::Direction;
use crate::memory::Memory;
use crate::reclaim::{Event, Reclaim, Victim};
use crate::stream::Streams;
use crate::table::{Frame, flag};
use crate::units::{Block, Extent, FileId, Nanos, ReaderId};

/// Few, so that most things happen under pressure.
const FRAMES: u32 = 48;
/// Each with a file of its own.
const READERS: u64 = 4;
/// Things that happen in a run.
const STEPS: u64 = 600;
/// Runs of blocks that hints may name.
const HINTS: u32 = 8;

/// Checks the reclaim method that `make` builds.
///
/// # Errors
/// The first rule it breaks.
pub fn reclaim(make: &dyn Fn() -> Box<dyn Reclaim>, seed: u64) -> Result<(), Broken> {
    let run = |method| ReclaimRun::new(method, seed).all();
    let broken = |(rule, how)| Broken { rule, seed, how };
    let (first, second) = (run(make()).map_err(broken)?, run(make()).map_err(broken)?);
    if first != second {
        let how = "two equal runs have other victims".into();
        return Err(broken((Rule::Deterministic, how)));
    }
    Ok(())
}

type Checked<T> = Result<T, (Rule, String)>;

struct ReclaimRun {
    memory: Memory,
    random: Random,
    /// By reader: its streams, and the next block it reads.
    readers: Vec<(Streams, u32)>,
    in_flight: Vec<(ReaderId, Frame)>,
    pinned: Vec<Frame>,
    now: Nanos,
    victims: Vec<Frame>,
}

impl ReclaimRun {
    fn new(method: Box<dyn Reclaim>, seed: u64) -> Self {
        let mut memory = Memory::new(FRAMES, 4096, method);
        memory.begin_holding();
        let readers = (0..READERS).map(|_| (Streams::default(), 0));
        Self {
            memory,
            random: Random(seed),
            readers: readers.collect(),
            in_flight: Vec::new(),
            pinned: Vec::new(),
            now: Nanos(0),
            victims: Vec::new(),
        }
    }

    /// The victims of a whole run.
    fn all(mut self) -> Checked<Vec<Frame>> {
        for _ in 0..STEPS {
            self.now.0 += 1000;
            self.step()?;
            self.check_length()?;
        }
        for frame in core::mem::take(&mut self.pinned) {
            self.memory.unpin(frame);
        }
        self.arrive(usize::MAX);
        for frame in self.memory.end_holding() {
            self.memory.release(frame);
        }
        while self.give_up()? {
            self.check_length()?;
        }
        Ok(self.victims)
    }

    fn step(&mut self) -> Checked<()> {
        let reader = self.random.below(READERS) as usize;
        // Owners compute at their own pace, and their clocks may run backward.
        let time = Nanos(self.now.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
        let owner = Self::owner(reader);
        self.memory.tell(Event::CpuTime { owner, time });
        match self.random.below(17) {
            0..3 => self.fetch(reader)?,
            3..6 => {
                let count = self.random.below(8) as usize;
                self.arrive(count);
            }
            6..11 => self.read(reader),
            11 => self.readers[reader].1 += self.random.below(12) as u32,
            12 => self.pin()?,
            13 => self.unpin(),
            14 => drop(self.give_up()?),
            15 => self.hint(reader),
            _ => match self.random.below(4) {
                0 => self.drop_file(reader),
                1 => self.let_go(),
                _ => self.close(reader),
            },
        }
        Ok(())
    }

    fn file(reader: usize) -> FileId {
        FileId(reader as u32)
    }

    fn owner(reader: usize) -> ReaderId {
        ReaderId(reader as u32)
    }

    fn extent(reader: usize, first: u32, count: u32) -> Extent {
        Extent::new(Self::file(reader), Block(first), count)
    }

    /// A reader's streams have changed.
    fn moved(&mut self, reader: usize) {
        self.memory.tell(Event::Moved {
            owner: Self::owner(reader),
            file: Self::file(reader),
            streams: &self.readers[reader].0,
        });
    }

    /// A hint of blocks to come, or of some that do not, and now and then the end of a list.
    fn hint(&mut self, reader: usize) {
        let Some(has_room) = self.memory.takes_hint(HINTS) else {
            return;
        };
        let first = self.readers[reader].1 + self.random.below(8) as u32;
        let count = self.random.below(24) as u32;
        self.memory.tell(Event::Hint {
            owner: Self::owner(reader),
            extent: Self::extent(reader, first, count),
            more: count > 0 && self.random.one_in(2),
            has_room,
        });
    }

    /// A window from where the reader is: demanded, ahead, or held by a plan.
    fn fetch(&mut self, reader: usize) -> Checked<()> {
        let first = self.readers[reader].1;
        let count = 1 + self.random.below(12) as u32;
        let kind = self.random.below(8);
        if kind > 1 {
            let stream =
                self.readers[reader]
                    .0
                    .continued(Block(first), Direction::Forward, self.now);
            stream.windows_end = stream.windows_end.max(u64::from(first + count));
            self.moved(reader);
            let extent = Self::extent(reader, first, count);
            let owner = Self::owner(reader);
            self.memory.tell(Event::Missed(extent));
            self.memory.tell(Event::Window { owner, extent });
        }
        for block in (first..first + count).map(Block) {
            if self.memory.table.find(Self::file(reader), block).is_some() {
                continue;
            }
            let Some(frame) = self.obtain()? else { break };
            if kind == 0 {
                self.memory.hold(frame);
            }
            let flags = if kind == 1 { 0 } else { flag::UNREAD };
            let file = Self::file(reader);
            let table = &self.memory.table;
            table.insert(frame, file, block, flags | flag::FILLING);
            self.in_flight.push((Self::owner(reader), frame));
        }
        Ok(())
    }

    fn obtain(&mut self) -> Checked<Option<Frame>> {
        let free = self.memory.take_free();
        if free.is_none() && self.give_up()? {
            return Ok(self.memory.take_free());
        }
        Ok(free)
    }

    /// The oldest so many blocks in flight.
    fn arrive(&mut self, count: usize) {
        let count = count.min(self.in_flight.len());
        let arrived: Vec<_> = self.in_flight.drain(..count).collect();
        for (owner, frame) in arrived {
            self.memory.table.clear(frame, flag::FILLING);
            self.memory.table.set(frame, flag::ARMED);
            let owner = Some(owner);
            self.memory.tell_of(frame, Event::Inserted { frame, owner });
        }
    }

    fn read(&mut self, reader: usize) {
        let first = self.readers[reader].1;
        let mut next = first;
        for _ in 0..self.random.below(6) {
            let found = self.memory.table.find(Self::file(reader), Block(next));
            let Some(found) = found.filter(|f| f.flags & flag::FILLING == 0) else {
                break;
            };
            self.access(found.frame);
            next += 1;
        }
        let (streams, at) = &mut self.readers[reader];
        let stream = streams.advance(Block(first), next - first, self.now);
        // Now and then it reads the same again.
        *at = if self.random.below(4) == 0 {
            first
        } else {
            next
        };
        self.moved(reader);
        self.memory.tell(Event::Read {
            owner: Self::owner(reader),
            extent: Self::extent(reader, first, next - first),
            stream,
        });
    }

    /// Some resident block is being taken. Its reader may need frames before the access counts.
    fn pin(&mut self) -> Checked<()> {
        let frame = Frame(self.random.below(FRAMES.into()) as u32);
        if self.memory.table.flags(frame) & (flag::VACANT | flag::FILLING) != 0 {
            return Ok(());
        }
        self.memory.pin(frame);
        self.pinned.push(frame);
        for _ in 0..self.random.below(4) {
            self.give_up()?;
        }
        self.access(frame);
        Ok(())
    }

    fn access(&mut self, frame: Frame) {
        if self.memory.table.flags(frame) & flag::UNREAD != 0 {
            self.memory.used(frame);
        }
        self.memory.tell_of(frame, Event::Touched(frame));
    }

    fn unpin(&mut self) {
        if !self.pinned.is_empty() {
            let at = self.random.below(self.pinned.len() as u64) as usize;
            let frame = self.pinned.swap_remove(at);
            self.memory.unpin(frame);
        }
    }

    fn let_go(&mut self) {
        let frames = (0..FRAMES).map(Frame);
        let held = frames.filter(|frame| self.memory.is_held(*frame));
        for frame in held.collect::<Vec<_>>() {
            self.memory.release(frame);
        }
    }

    fn close(&mut self, reader: usize) {
        for frame in (0..FRAMES).map(Frame) {
            let flags = self.memory.table.flags(frame);
            let is_unread = flags & (flag::UNREAD | flag::FILLING) == flag::UNREAD;
            if is_unread && self.memory.table.holds(frame).0 == Self::file(reader) {
                self.memory.tell_of(frame, Event::Abandoned(frame));
            }
        }
        self.readers[reader].0.clear();
        self.moved(reader);
        self.memory.tell(Event::Closed(Self::owner(reader)));
        self.readers[reader].1 = 0;
    }

    fn drop_file(&mut self, reader: usize) {
        let table = self.memory.table.clone();
        let of_file = |frame: &Frame| {
            let there = table.flags(*frame) & (flag::VACANT | flag::FILLING) == 0;
            there && table.holds(*frame).0 == Self::file(reader)
        };
        let dropped: Vec<Frame> = (0..FRAMES).map(Frame).filter(of_file).collect();
        for &frame in &dropped {
            let is_in_order = self.memory.dropped(frame);
            table.remove(frame);
            self.memory.vacated(frame, is_in_order);
        }
        self.memory.sweep();
        self.readers[reader].0.clear();
        self.moved(reader);
        self.memory.tell(Event::Changed(Self::owner(reader)));
    }

    /// Asks for a victim and takes it. False if there was none.
    fn give_up(&mut self) -> Checked<bool> {
        let Some(frame) = self.victim()? else {
            let can_go = |frame: &Frame| self.can_be_had(*frame) && !self.is_pinned(*frame);
            return match (0..FRAMES).map(Frame).find(can_go) {
                Some(lost) => Err((Rule::NothingLost, format!("{lost:?} is no victim"))),
                None => Ok(false),
            };
        };
        if self.is_pinned(frame) {
            return Err((Rule::VictimUnpinned, format!("{frame:?}")));
        }
        self.victims.push(frame);
        self.memory.table.remove(frame);
        self.memory.give_back(frame);
        Ok(true)
    }

    fn victim(&mut self) -> Checked<Option<Frame>> {
        let Some(victim) = self.memory.victim(self.now) else {
            return Ok(None);
        };
        let frame = victim.frame();
        if !self.can_be_had(frame) {
            let flags = self.memory.table.flags(frame);
            let how = format!("{frame:?} with the flags {flags:#b}");
            return Err((Rule::VictimResident, how));
        }
        if let Victim::LastOf(id, _) = victim {
            let (file, block) = self.memory.table.holds(frame);
            let reader = id.owner.0 as usize;
            let began_before = |(streams, _): &(Streams, u32)| {
                let mut starts = streams.forward().map(|stream| stream.start);
                id.start <= block && starts.any(|start| start == id.start)
            };
            let has_it = self.readers.get(reader).is_some_and(began_before);
            if !has_it || file != Self::file(reader) {
                return Err((Rule::StreamKnown, format!("{id:?} and {block:?}")));
            }
            self.readers[reader].0.shorten(id.start, block);
            self.moved(reader);
        }
        Ok(Some(frame))
    }

    /// Whether a block is resident and held by reclaim alone.
    fn can_be_had(&self, frame: Frame) -> bool {
        let flags = self.memory.table.flags(frame);
        flags & (flag::VACANT | flag::FILLING) == 0 && !self.memory.is_held(frame)
    }

    fn is_pinned(&self, frame: Frame) -> bool {
        self.memory.table.flags(frame) & flag::PINNED != 0
    }

    /// The memory counts free frames, frames in its own order, and the method's.
    fn check_length(&self) -> Checked<()> {
        let frames = (0..FRAMES).map(Frame);
        let expected = frames.filter(|&frame| {
            let is_vacant = self.memory.table.flags(frame) & flag::VACANT != 0;
            self.can_be_had(frame) || is_vacant && !self.is_pinned(frame)
        });
        let (expected, counted) = (expected.count() as u32, self.memory.obtainable());
        if counted == expected {
            return Ok(());
        }
        let how = format!("{counted} frames can be had where {expected} are");
        Err((Rule::LengthHonest, how))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    use crate::reclaim::{Cache, LIST, Queue, StreamId};

    #[test]
    fn every_reclaim_method_conforms() {
        for method in LIST {
            let params = method.spec.params;
            for ends in 0..3 {
                let values = params.iter().map(|p| [p.default, p.min, p.max][ends]);
                let values: Vec<u64> = values.collect();
                for seed in 0..200 {
                    let result = reclaim(&|| method.of(&values), seed);
                    assert_eq!(result, Ok(()), "{}", method.spec.name);
                }
            }
        }
    }

    /// The defect of a [`Fifo`].
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Lie {
        None,
        Pinned,
        Twice,
        Length,
        Forgets,
        Stranger,
        TakesAny,
        Moody,
    }

    /// Blocks in the order of their arrival; and a lie.
    #[derive(Debug)]
    struct Fifo {
        queue: Queue,
        lie: Lie,
        calls: u32,
    }

    impl Reclaim for Fifo {
        fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
            let Event::Inserted { frame, .. } = event else {
                return;
            };
            self.calls += 1;
            if self.lie != Lie::Forgets || !self.calls.is_multiple_of(7) {
                self.queue.push(cache.links, frame);
            }
        }

        fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
            self.calls += 1;
            let (owner, start) = (ReaderId(1), Block(1 << 20));
            match self.lie {
                Lie::Stranger => {
                    let frame = self.queue.pop(cache.links)?;
                    return Some(Victim::LastOf(StreamId { owner, start }, frame));
                }
                Lie::TakesAny => return Some(Victim::Frame(Frame(self.calls % FRAMES))),
                Lie::Moody if self.calls.is_multiple_of(7) => {
                    let first = self.queue.pop(cache.links)?;
                    self.queue.push(cache.links, first);
                }
                _ => {}
            }
            for _ in 0..self.queue.len() {
                let frame = self.queue.pop(cache.links)?;
                let is_pinned = cache.table.flags(frame) & flag::PINNED != 0;
                if is_pinned && self.lie != Lie::Pinned {
                    self.queue.push(cache.links, frame);
                    continue;
                }
                if self.lie == Lie::Twice {
                    self.queue.push(cache.links, frame);
                }
                return Some(Victim::Frame(frame));
            }
            None
        }

        fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
            self.queue.sweep(cache.links, gone);
        }

        fn len(&self) -> u32 {
            self.queue.len() + u32::from(self.lie == Lie::Length)
        }
    }

    #[test]
    fn a_method_that_breaks_a_rule_is_found() {
        let built = Cell::new(0);
        let broken = |lie, seed| {
            let make = || -> Box<dyn Reclaim> {
                built.set(built.get() + 1);
                let (queue, calls) = (Queue::default(), built.get() % 2);
                Box::new(Fifo { queue, lie, calls })
            };
            reclaim(&make, seed).err().map(|broken| broken.rule)
        };
        let mut of_frames = Vec::new();
        for seed in 0..50 {
            assert_eq!(broken(Lie::None, seed), None, "seed {seed}");
            let found = |lie| broken(lie, seed).unwrap_or_else(|| panic!("{lie:?}, seed {seed}"));
            assert_eq!(found(Lie::Pinned), Rule::VictimUnpinned);
            assert_eq!(found(Lie::Stranger), Rule::StreamKnown);
            assert_eq!(found(Lie::Length), Rule::LengthHonest);
            assert_eq!(found(Lie::Forgets), Rule::LengthHonest);
            assert_eq!(found(Lie::Moody), Rule::Deterministic);
            // Which rule is broken first depends on the state of the frame that is named.
            of_frames.extend([found(Lie::TakesAny), found(Lie::Twice)]);
        }
        assert!(of_frames.contains(&Rule::VictimResident));
        assert!(!of_frames.contains(&Rule::Deterministic));
    }
}
