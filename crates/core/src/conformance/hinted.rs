//! The suite of the hinted methods: a reader in turn, disks that end fetches in any order,
//! failures.
//!
//! Plays the [planner](crate::hinted::planner) over a real board, and checks each pair before it is
//! started.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::hinted::policy::Policy;
use crate::hinted::{BlockNo, Board, Hint, Pair, Position};
use crate::units::{DeviceId, Nanos};

/// Events of one seed.
const EVENTS: u32 = 600;
/// References announced at once, at most.
const HINTS_MAX: u64 = 120;

/// Where the reader is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HintedReader {
    Away,
    Waits,
    Holds,
}

struct HintedRun<'a> {
    rules: Rules<'a>,
    random: Random,
    method: Box<dyn Policy>,
    board: Board,
    blocks: u32,
    /// Of ten blocks, how many lie on the first disk, whatever lies on the others.
    skew: u32,
    reader: HintedReader,
    in_flight: Vec<BlockNo>,
    /// In a reader's hands out of turn.
    kept: Vec<BlockNo>,
    pairs: Vec<Pair>,
}

/// Checks the hinted method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn hinted(make: &dyn Fn() -> Box<dyn Policy>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let first = HintedRun::new(make(), rules).finish()?;
    let again = HintedRun::new(make(), rules).finish()?;
    let how = || "two equal runs start other fetches".into();
    rules.check(Rule::Deterministic, first == again, how)
}

impl<'a> HintedRun<'a> {
    fn new(method: Box<dyn Policy>, rules: Rules<'a>) -> Self {
        let mut random = Random(rules.seed);
        let disks = 1 + random.below(4) as u16;
        let frames = 1 + random.magnitude(5) as u32;
        let blocks = 2 + random.below(3 * u64::from(frames) + 8) as u32;
        Self {
            rules,
            skew: random.below(10) as u32,
            random,
            method,
            board: Board::new(disks, frames),
            blocks,
            reader: HintedReader::Away,
            in_flight: Vec::new(),
            kept: Vec::new(),
            pairs: Vec::new(),
        }
    }

    fn finish(mut self) -> Result<Vec<Pair>, Broken> {
        for _ in 0..EVENTS {
            match self.random.below(8) {
                0 => self.announce(),
                1..=3 => self.end_fetch(),
                4 => self.keep(),
                _ => self.go_on(),
            }
            self.round()?;
        }
        Ok(self.pairs)
    }

    /// More references: in a row, or anywhere.
    fn announce(&mut self) {
        let (count, from) = (self.random.below(HINTS_MAX), self.random.number() as u32);
        let in_a_row = self.random.one_in(2);
        for at in 0..count as u32 {
            let number = match in_a_row {
                true => from.wrapping_add(at) % self.blocks,
                false => self.random.below(u64::from(self.blocks)) as u32,
            };
            let is_skewed = number * 7 % 10 < self.skew;
            let disk = if is_skewed {
                0
            } else {
                number % self.board.disk_count()
            };
            let (block, disk) = (BlockNo(number), DeviceId(disk as u16));
            self.board.hint(Hint { block, disk });
        }
        self.method.hinted();
    }

    /// One that is under way ends, one time in ten with nothing.
    fn end_fetch(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let at = self.random.below(self.in_flight.len() as u64) as usize;
        let block = self.in_flight.swap_remove(at);
        let is_awaited = self.reader == HintedReader::Waits && self.here() == Some(block);
        if self.random.one_in(10) {
            self.board.fail(block);
            if is_awaited {
                self.board.ask(block);
            }
            return;
        }
        let service = Nanos(self.random.magnitude(27));
        if let Some(disk) = self.board.arrive(block) {
            self.method.fetched(disk, service);
            self.method.arrived(&self.board, block);
        }
        if is_awaited {
            self.serve(block);
        }
    }

    /// A reader takes a resident block in hand, out of turn, or puts it down.
    fn keep(&mut self) {
        let block = BlockNo(self.random.below(u64::from(self.blocks)) as u32);
        let held = self.here().filter(|_| self.reader == HintedReader::Holds);
        if let Some(block) = self.kept.pop() {
            self.board.keep(block, held == Some(block));
        } else if self.board.is_resident(block) {
            self.board.keep(block, true);
            self.kept.push(block);
        }
    }

    /// The reader asks for its next block, or takes the one it has.
    fn go_on(&mut self) {
        let compute = Nanos(self.random.magnitude(24));
        match (self.reader, self.here()) {
            (HintedReader::Away, Some(block)) => {
                self.method.computed(compute);
                self.reader = HintedReader::Waits;
                self.board.ask(block);
                if self.board.is_resident(block) {
                    self.serve(block);
                }
            }
            (HintedReader::Holds, Some(block)) => {
                self.board.keep(block, self.kept.contains(&block));
                self.board.pass(block);
                self.reader = HintedReader::Away;
                self.method.taken(&self.board, block);
            }
            _ => {}
        }
    }

    /// The reader has its block in hand.
    fn serve(&mut self, block: BlockNo) {
        self.reader = HintedReader::Holds;
        self.board.keep(block, true);
    }

    fn here(&self) -> Option<BlockNo> {
        self.board.block_at(self.board.cursor())
    }

    /// Decisions, until the method has none.
    fn round(&mut self) -> Result<(), Broken> {
        self.method.begin(&self.board);
        while let Some(pair) = self.method.next(&self.board) {
            self.check_pair(pair)?;
            // Each start puts a frame to work, so that a round ends after as many as there are.
            if self.board.start(pair).is_none() {
                break;
            }
            if let Some(victim) = pair.evict {
                self.method.evicted(victim);
            }
            self.in_flight.push(pair.fetch);
            self.pairs.push(pair);
        }
        self.check_awaited()
    }

    fn check_pair(&self, pair: Pair) -> Result<(), Broken> {
        let Pair { fetch, evict } = pair;
        let board = &self.board;
        let is_known = board.disk_of(fetch).is_some();
        let is_absent = is_known && !board.is_resident(fetch) && !board.is_in_flight(fetch);
        let makes_sense = is_absent && board.next_use(fetch) != Position::NEVER;
        let how = || self.say("fetches a block that is not absent or not used", pair);
        self.rules.check(Rule::FetchMakesSense, makes_sense, how)?;
        let makes_sense = match evict {
            None => board.empty_frames() > 0,
            Some(victim) => board.may_go(victim),
        };
        let how = || self.say("gives up a block that it cannot", pair);
        self.rules.check(Rule::VictimMakesSense, makes_sense, how)?;
        let harmless = evict.is_none_or(|victim| board.next_use(victim) > board.next_use(fetch));
        let how = || self.say("gives up a block that is used sooner", pair);
        self.rules.check(Rule::NoHarm, harmless, how)
    }

    fn check_awaited(&self) -> Result<(), Broken> {
        let awaited = self.board.awaited().and_then(|at| self.board.block_at(at));
        let Some(block) = awaited else { return Ok(()) };
        let disk = self.board.disk_of(block).unwrap_or_default();
        let mut blocks = (0..self.board.blocks()).map(BlockNo);
        let room = self.board.empty_frames() > 0 || blocks.any(|block| self.board.may_go(block));
        let left_out = room && self.board.in_flight(disk) == 0;
        let pair = Pair {
            fetch: block,
            evict: None,
        };
        let how = || self.say("leaves out the block the reader waits for", pair);
        self.rules.check(Rule::AwaitedIsFetched, !left_out, how)
    }

    fn say(&self, what: &str, pair: Pair) -> String {
        let Pair { fetch, evict } = pair;
        let uses = evict.map(|victim| self.board.next_use(victim));
        format!(
            "{what}: block {fetch:?} used at {:?}, for {evict:?} used at {uses:?}, cursor {:?}, \
             {:?} frames of {} empty",
            self.board.next_use(fetch),
            self.board.cursor(),
            self.board.empty_frames(),
            self.board.capacity(),
        )
    }
}
