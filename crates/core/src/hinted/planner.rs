//! The planner: what happens outside comes in, fetches and evictions come out.
//!
//! Drivers call [`Planner::handle`] for everything that happened by a point in time, in any
//! number, then [`Planner::poll`] until [`Output::Idle`]. What needs no decision (serving a
//! resident block) is answered first; decisions are made when nothing else is left to say:
//!
//! ```text
//! handle(Fetched) handle(Fetched)   poll -> Serve   handle(Taken)   poll -> Fetch, Fetch .. Idle
//!        two disks end at once            the reader goes on       both disks planned together
//! ```
//!
//! So two disks that become free at one instant share out the missing blocks (kimbrel96 section
//! 2.7), and a reader that takes its block at once has left it before the next victim is chosen.
//! Decisions follow every input, which is the *first opportunity* rule.
//!
//! A failed prefetch is counted, never shown, and not tried again for the same reference unless
//! the reader comes for it. A failed fetch that the reader waits for is shown.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use super::board::{Board, Pair};
use super::ledger::Ledger;
use super::policy::{self, Policy};
use super::protocol::{BlockNo, Input, Output};
use crate::spec::{Choice, ChoiceError};
use crate::units::Nanos;

/// What a planner is built from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The method, from [`policy::LIST`].
    pub policy: Choice,
    /// Number of disks, from 1 to [`Setup::DISKS_MAX`].
    pub disks: u16,
    /// K: blocks the cache holds, at least 1.
    pub cache_blocks: u32,
    /// Block numbers stay below this; memory is 16 bytes for each up to the largest mentioned.
    pub blocks_max: u32,
    /// References beyond this many are refused; memory is 8 bytes for each known, and a quarter
    /// of a byte more on every disk.
    pub hints_max: u32,
}

impl Setup {
    /// Most disks: each costs a set over the reference order.
    pub const DISKS_MAX: u16 = 1024;

    /// A policy by name, `name` or `name(param=value,..)`, with no limit but that of the numbers.
    ///
    /// # Errors
    /// There is no such policy or parameter, or a value is out of its range.
    pub fn of(policy: &str, disks: u16, cache_blocks: u32) -> Result<Self, ChoiceError> {
        Ok(Self {
            policy: Choice::parse("hinted", policy::LIST, policy)?,
            disks,
            cache_blocks,
            blocks_max: u32::MAX,
            hints_max: u32::MAX - 1,
        })
    }
}

/// Why a setup was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// No disk, or too many.
    Disks(u16),
    /// A cache of no blocks.
    NoCache,
    /// More hints than places can be numbered.
    Hints(u32),
    /// The policy is not one of the family.
    Policy(&'static str),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disks(n) => write!(f, "disks={n}: must lie from 1 to {}", Setup::DISKS_MAX),
            Self::NoCache => write!(f, "cache_blocks=0: must be at least 1"),
            Self::Hints(n) => write!(f, "hints_max={n}: must be below {}", u32::MAX),
            Self::Policy(name) => write!(f, "{name} is not a hinted method"),
        }
    }
}

impl core::error::Error for SetupError {}

/// See the [module](self).
#[derive(Debug)]
pub struct Planner {
    board: Board,
    policy: Box<dyn Policy>,
    reader: Reader,
    /// Blocks on their way or resident that were prefetched and not taken yet.
    unread: Vec<bool>,
    ledger: Ledger,
    out: VecDeque<Output>,
    /// Something happened since the last decision.
    stale: bool,
}

/// Where the reader is.
#[derive(Clone, Copy, Debug)]
enum Reader {
    /// It works on what it took.
    Away,
    /// It stands at the cursor since then.
    Waiting(Nanos),
    /// It was served and has the block in hand.
    Holding,
}

impl Planner {
    /// A fresh planner that knows no reference yet.
    ///
    /// # Errors
    /// A setup out of range.
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        if !(1..=Setup::DISKS_MAX).contains(&setup.disks) {
            return Err(SetupError::Disks(setup.disks));
        }
        if setup.cache_blocks == 0 {
            return Err(SetupError::NoCache);
        }
        if setup.hints_max == u32::MAX {
            return Err(SetupError::Hints(setup.hints_max));
        }
        let policy = setup.policy.build(policy::LIST);
        let policy = policy.ok_or(SetupError::Policy(setup.policy.spec.name))?;
        Ok(Self {
            board: Board::new(
                setup.disks,
                setup.cache_blocks,
                setup.blocks_max,
                setup.hints_max,
            ),
            policy,
            reader: Reader::Away,
            unread: Vec::new(),
            ledger: Ledger::default(),
            out: VecDeque::new(),
            stale: false,
        })
    }

    /// What it knows.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The counters, as of now.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Takes one input. `now` decides nothing; waiting is counted with it.
    pub fn handle(&mut self, now: Nanos, input: Input) {
        let accepted = match input {
            Input::Hints(hints) => self.learn(&hints),
            Input::Cached(hint) => self.board.cached(hint).map(|()| {
                self.policy.arrived(&self.board, hint.block);
            }),
            Input::Wanted { compute } => self.want(now, compute),
            Input::Taken => self.take(),
            Input::Fetched { block, service } => self.arrive(now, block, service),
            Input::Failed { block } => self.fail(block),
        };
        if accepted.is_none() {
            self.ledger.refused_inputs += 1;
        }
    }

    /// What to do next; [`Output::Idle`] once there is nothing left. Between two calls more may
    /// be handed in.
    pub fn poll(&mut self) -> Output {
        if self.out.is_empty() && self.stale {
            self.stale = false;
            self.plan();
        }
        self.out.pop_front().unwrap_or(Output::Idle)
    }

    /// Takes hints up to the first that is refused.
    fn learn(&mut self, hints: &[super::Hint]) -> Option<()> {
        let refused = hints.iter().any(|hint| self.board.hint(*hint).is_none());
        self.unread.resize(self.board.blocks() as usize, false);
        self.policy.hinted();
        self.stale = true;
        (!refused).then_some(())
    }

    fn want(&mut self, now: Nanos, compute: Nanos) -> Option<()> {
        let block = self.board.block_at(self.board.cursor())?;
        let Reader::Away = self.reader else {
            return None;
        };
        self.policy.computed(compute);
        self.ledger.reads += 1;
        self.reader = Reader::Waiting(now);
        if self.board.is_resident(block) {
            self.ledger.hits += 1;
            self.serve(now, block);
            return Some(());
        }
        if self.board.is_in_flight(block) {
            self.ledger.late_hits += 1;
        } else {
            self.ledger.misses += 1;
        }
        self.board.set_awaited(true);
        self.stale = true;
        Some(())
    }

    fn serve(&mut self, now: Nanos, block: BlockNo) {
        if let Reader::Waiting(since) = self.reader {
            let waited = self.ledger.waited.0.saturating_add(now.since(since).0);
            self.ledger.waited = Nanos(waited);
        }
        self.reader = Reader::Holding;
        self.board.set_awaited(false);
        let position = self.board.cursor();
        self.out.push_back(Output::Serve { position, block });
    }

    fn take(&mut self) -> Option<()> {
        let block = self.board.advance()?;
        self.reader = Reader::Away;
        if self.board.is_resident(block) {
            if self.forget_unread(block) {
                self.ledger.resident_unused -= 1;
                self.ledger.used += 1;
            }
            self.policy.taken(&self.board, block);
        }
        self.stale = true;
        Some(())
    }

    fn arrive(&mut self, now: Nanos, block: BlockNo, service: Nanos) -> Option<()> {
        let disk = self.board.arrive(block)?;
        self.policy.fetched(disk, service);
        self.policy.arrived(&self.board, block);
        if self.is_unread(block) {
            self.ledger.in_flight -= 1;
            self.ledger.resident_unused += 1;
        }
        self.stale = true;
        if self.is_awaited(block) {
            self.serve(now, block);
        }
        Some(())
    }

    fn fail(&mut self, block: BlockNo) -> Option<()> {
        if !self.board.is_in_flight(block) {
            return None;
        }
        let prefetched = self.forget_unread(block);
        let awaited = self.is_awaited(block);
        self.board.fail(block, !(prefetched && awaited))?;
        if prefetched {
            self.ledger.in_flight -= 1;
            self.ledger.failed += 1;
        } else if awaited {
            self.board.set_awaited(false);
            let position = self.board.cursor();
            self.out.push_back(Output::Lost { position, block });
        }
        self.stale = true;
        Some(())
    }

    /// Lets the policy start what it wants to start now. Each start puts one more frame to work,
    /// so this ends after K of them at the latest.
    fn plan(&mut self) {
        self.policy.begin(&self.board);
        while let Some(pair) = self.policy.next(&self.board) {
            if self.start(pair).is_none() {
                self.ledger.refused_pairs += 1;
                return;
            }
        }
    }

    fn start(&mut self, pair: Pair) -> Option<()> {
        let demand = self.is_awaited(pair.fetch);
        let disk = self.board.start(pair)?;
        self.ledger.fetches += 1;
        if let Some(victim) = pair.evict {
            if self.forget_unread(victim) {
                self.ledger.resident_unused -= 1;
                self.ledger.evicted_unused += 1;
            }
            self.policy.evicted(victim);
        }
        if demand {
            self.ledger.demand += 1;
        } else {
            self.ledger.prefetched += 1;
            self.ledger.in_flight += 1;
            if let Some(unread) = self.unread.get_mut(pair.fetch.0 as usize) {
                *unread = true;
            }
        }
        self.out.push_back(Output::Fetch {
            block: pair.fetch,
            disk,
            evict: pair.evict,
            demand,
        });
        Some(())
    }

    /// Whether the reader waits for this block.
    fn is_awaited(&self, block: BlockNo) -> bool {
        matches!(self.reader, Reader::Waiting(_))
            && self.board.block_at(self.board.cursor()) == Some(block)
    }

    fn is_unread(&self, block: BlockNo) -> bool {
        self.unread.get(block.0 as usize).copied().unwrap_or(false)
    }

    fn forget_unread(&mut self, block: BlockNo) -> bool {
        let unread = self.unread.get_mut(block.0 as usize);
        unread.is_some_and(core::mem::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hinted::{Hint, Position};
    use crate::units::DeviceId;
    use proptest::prelude::*;
    use std::format;

    fn block() -> impl Strategy<Value = BlockNo> {
        prop_oneof![9 => 0u32..12, 1 => prop::sample::select(&[40, u32::MAX][..])].prop_map(BlockNo)
    }

    /// Disk 9 does not exist, blocks from 40 on are refused, and a block may change its disk.
    fn hint() -> impl Strategy<Value = Hint> {
        (block(), 0u32..20).prop_map(|(block, odd)| Hint {
            block,
            disk: DeviceId(if odd == 0 { 9 } else { (block.0 % 3) as u16 }),
        })
    }

    fn input() -> impl Strategy<Value = Input> {
        let time = prop_oneof![Just(0), 0u64..10_000_000, Just(u64::MAX)].prop_map(Nanos);
        prop_oneof![
            2 => prop::collection::vec(hint(), 0..20).prop_map(Input::Hints),
            1 => hint().prop_map(Input::Cached),
            6 => time.clone().prop_map(|compute| Input::Wanted { compute }),
            6 => Just(Input::Taken),
            8 => (block(), time).prop_map(|(block, service)| Input::Fetched { block, service }),
            2 => block().prop_map(|block| Input::Failed { block }),
        ]
    }

    fn setup(policy: &str, cache_blocks: u32) -> Setup {
        Setup {
            blocks_max: 40,
            hints_max: 200,
            ..Setup::of(policy, 3, cache_blocks).unwrap()
        }
    }

    /// Frames in use, from the outside.
    #[derive(Default)]
    struct Frames {
        resident: std::collections::BTreeSet<BlockNo>,
        coming: std::collections::BTreeSet<BlockNo>,
    }

    impl Frames {
        fn see(&mut self, output: Output, capacity: usize) -> Result<(), TestCaseError> {
            match output {
                Output::Fetch { block, evict, .. } => {
                    if let Some(victim) = evict {
                        prop_assert!(self.resident.remove(&victim), "{victim:?} was not there");
                    }
                    prop_assert!(!self.resident.contains(&block), "{block:?} is there");
                    prop_assert!(self.coming.insert(block), "{block:?} is on its way");
                    prop_assert!(self.resident.len() + self.coming.len() <= capacity);
                }
                Output::Serve { block, .. } => prop_assert!(self.resident.contains(&block)),
                Output::Lost { block, .. } => prop_assert!(!self.resident.contains(&block)),
                Output::Idle => {}
            }
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn no_input_breaks_it(
            inputs in prop::collection::vec((input(), any::<bool>()), 1..200),
            cache_blocks in 1u32..8,
        ) {
            for method in policy::LIST {
                let mut planner = Planner::new(&setup(method.spec.name, cache_blocks)).unwrap();
                let mut frames = Frames::default();
                for (now, (input, drain)) in (0..).zip(&inputs) {
                    let refused = planner.ledger().refused_inputs;
                    planner.handle(Nanos(now), input.clone());
                    if planner.ledger().refused_inputs == refused {
                        match input {
                            Input::Cached(hint) => {
                                frames.resident.insert(hint.block);
                            }
                            Input::Fetched { block, .. } => {
                                frames.coming.remove(block);
                                frames.resident.insert(*block);
                            }
                            Input::Failed { block } => {
                                frames.coming.remove(block);
                            }
                            _ => {}
                        }
                    }
                    let ledger = *planner.ledger();
                    prop_assert!(ledger.adds_up(), "{}: {ledger:?}", method.spec.name);
                    // A served block is still there when the output is seen only if nothing was
                    // decided since, so outputs are drained at once or all the rest together.
                    while *drain || !planner.out.is_empty() {
                        match planner.poll() {
                            Output::Idle => break,
                            output => frames.see(output, cache_blocks as usize)?,
                        }
                    }
                }
                prop_assert_eq!(planner.ledger().refused_pairs, 0, "{}", method.spec.name);
            }
        }
    }

    fn hints(blocks: &[u32]) -> Input {
        let hint = |block: &u32| Hint {
            block: BlockNo(*block),
            disk: DeviceId(0),
        };
        Input::Hints(blocks.iter().map(hint).collect())
    }

    fn fetched(block: u32) -> Input {
        Input::Fetched {
            block: BlockNo(block),
            service: Nanos(1),
        }
    }

    const WANTED: Input = Input::Wanted { compute: Nanos(1) };

    #[test]
    fn a_failed_prefetch_is_tried_again_for_the_reader_and_only_then_shown() {
        let mut planner = Planner::new(&setup("aggressive", 2)).unwrap();
        let failed = Input::Failed { block: BlockNo(5) };
        let fetch = |demand| Output::Fetch {
            block: BlockNo(5),
            disk: DeviceId(0),
            evict: None,
            demand,
        };
        planner.handle(Nanos(0), hints(&[5]));
        assert_eq!(planner.poll(), fetch(false));
        planner.handle(Nanos(1), failed.clone());
        assert_eq!(planner.poll(), Output::Idle);
        planner.handle(Nanos(2), WANTED);
        assert_eq!(planner.poll(), fetch(true));
        planner.handle(Nanos(3), failed);
        let lost = Output::Lost {
            position: Position(0),
            block: BlockNo(5),
        };
        assert_eq!((planner.poll(), planner.poll()), (lost, Output::Idle));
        planner.handle(Nanos(4), Input::Taken);
        assert_eq!(planner.poll(), Output::Idle);
        assert_eq!(
            (planner.ledger().failed, planner.ledger().refused_inputs),
            (1, 0)
        );
    }

    #[test]
    fn a_reader_that_takes_at_once_has_left_its_block_before_the_next_victim_is_chosen() {
        let mut planner = Planner::new(&setup("aggressive", 1)).unwrap();
        planner.handle(Nanos(0), hints(&[0, 1]));
        planner.handle(Nanos(0), WANTED);
        let Output::Fetch {
            block: BlockNo(0), ..
        } = planner.poll()
        else {
            panic!("the first block is fetched")
        };
        planner.handle(Nanos(7), fetched(0));
        let Output::Serve { .. } = planner.poll() else {
            panic!("the reader is served before anything is decided")
        };
        planner.handle(Nanos(7), Input::Taken);
        let evicts_it = Output::Fetch {
            block: BlockNo(1),
            disk: DeviceId(0),
            evict: Some(BlockNo(0)),
            demand: false,
        };
        assert_eq!(planner.poll(), evicts_it);
        assert_eq!(planner.ledger().waited, Nanos(7));
    }

    #[test]
    fn setups_out_of_range_are_refused() {
        let good = setup("forestall", 4);
        let refused = |change: fn(&mut Setup)| {
            let mut setup = good.clone();
            change(&mut setup);
            Planner::new(&setup).map(|_| ())
        };
        assert_eq!(refused(|s| s.disks = 0), Err(SetupError::Disks(0)));
        assert_eq!(refused(|s| s.disks = 1025), Err(SetupError::Disks(1025)));
        assert_eq!(refused(|s| s.cache_blocks = 0), Err(SetupError::NoCache));
        assert_eq!(
            refused(|s| s.hints_max = u32::MAX),
            Err(SetupError::Hints(u32::MAX))
        );
        assert_eq!(
            format!("{}", SetupError::Disks(0)),
            "disks=0: must lie from 1 to 1024"
        );
    }
}
