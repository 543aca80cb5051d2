//! The unit model: the theory's clock, exact (Kimbrel et al. 1996, section 2.1).
//!
//! A hit takes one time unit, a fetch F, fetches on one disk follow each other and those on
//! several run side by side. Time is whole units. At each of them, in this order:
//!
//! ```text
//! 1  a reference that began one unit ago is done, and the cursor moves
//! 2  fetches that began F ago arrive
//! 3  the reader asks for the block at the cursor, if it is not at work on one
//! 4  the planner decides; a fetch that starts evicts at once
//! 5  a block that is resident is referenced from now to the next unit, else one unit is stall
//! ```
//!
//! So a block is given up at the earliest when its reference is over, and a block that arrives at a
//! unit serves the reference that begins there. Elapsed time is references plus stall, as in the paper; Figure 1's
//! schedules cost 7 and 6.

use std::collections::VecDeque;

use forerun_core::Nanos;
use forerun_core::hinted::{BlockNo, Hint, Planner, Started};

use super::ledger::Ledger;
use super::{HostError, Reads, Setup, refused};

/// An instance of the theory's problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The references, and where blocks lie; compute times and places on disks are not looked at.
    pub reads: Reads,
    /// Blocks in the cache at the beginning.
    pub warm: Vec<BlockNo>,
    /// F.
    pub fetch_units: u64,
}

/// A fetch, as it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetch {
    /// When it began.
    pub at: u64,
    /// The cursor then.
    pub cursor: u32,
    /// The fetched block.
    pub block: BlockNo,
    /// The block given up for it.
    pub evict: Option<BlockNo>,
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitReport {
    /// Time from the first reference's request to the last one's end.
    pub elapsed_units: u64,
    /// Units in which no reference was served.
    pub stall_units: u64,
    /// Counters of references and fetches.
    pub ledger: Ledger,
    /// Calls that made no sense to the planner: none, or there is a defect.
    pub refused: u64,
    /// The schedule.
    pub fetches: Vec<Fetch>,
}

/// Runs an instance.
///
/// # Errors
/// A setup out of range, references without a place, or a method that leaves its reader waiting
/// for nothing.
pub fn run(setup: &Setup, instance: &Instance) -> Result<UnitReport, HostError> {
    instance.reads.check_for(setup)?;
    let warm = instance.warm.iter();
    let warm: Vec<_> = warm
        .filter_map(|block| instance.reads.hint(*block))
        .collect();
    let mut world = World {
        planner: setup.planner(&warm)?,
        fetch_units: instance.fetch_units.max(1),
        disks: vec![VecDeque::new(); usize::from(setup.disks)],
        now: 0,
        served: 0,
        fetches: Vec::new(),
        ledger: Ledger::default(),
        refused: 0,
        has_asked: false,
    };
    world.run(&instance.reads.hints())?;
    Ok(UnitReport {
        elapsed_units: world.now,
        stall_units: world.now - world.served,
        refused: world.refused,
        ledger: world.ledger,
        fetches: world.fetches,
    })
}

struct World {
    planner: Planner,
    fetch_units: u64,
    /// Fetches under way on each disk, by the time of their end.
    disks: Vec<VecDeque<(u64, BlockNo)>>,
    now: u64,
    served: u64,
    fetches: Vec<Fetch>,
    ledger: Ledger,
    refused: u64,
    /// The reader has asked for the block at the cursor.
    has_asked: bool,
}

impl World {
    fn run(&mut self, references: &[Hint]) -> Result<(), HostError> {
        for hint in references {
            self.refused += refused(self.planner.hint(*hint));
        }
        while self.served < references.len() as u64 {
            self.land();
            let block = references[self.served as usize].block;
            if !std::mem::replace(&mut self.has_asked, true) {
                let compute = Nanos(u64::from(self.served > 0));
                self.ledger.asked(self.planner.board(), block);
                self.refused += refused(self.planner.kept(block, true));
                self.refused += refused(self.planner.asked(block, compute));
            }
            self.listen();
            self.pass(block)?;
        }
        Ok(())
    }

    /// Fetches that end by now arrive.
    fn land(&mut self) {
        for disk in 0..self.disks.len() {
            while let Some((end, block)) = self.disks[disk].front().copied() {
                if end > self.now {
                    break;
                }
                self.disks[disk].pop_front();
                let service = Nanos(self.fetch_units);
                self.refused += refused(self.planner.fetched(block, service));
            }
        }
    }

    fn listen(&mut self) {
        while let Some(started) = self.planner.poll() {
            let Started { block, evict, .. } = started;
            self.ledger.started(block, evict, started.demand);
            let disk = self.planner.board().disk_of(block).unwrap_or_default();
            let queue = &mut self.disks[usize::from(disk.0)];
            let begin = queue.back().map_or(self.now, |(end, _)| *end);
            queue.push_back((begin + self.fetch_units, block));
            self.fetches.push(Fetch {
                at: self.now,
                cursor: self.planner.board().cursor().0,
                block,
                evict,
            });
        }
    }

    /// On to the next unit at which something can happen.
    fn pass(&mut self, block: BlockNo) -> Result<(), HostError> {
        if self.planner.board().is_resident(block) {
            self.now += 1;
            self.served += 1;
            self.has_asked = false;
            self.ledger.read(block);
            self.refused += refused(self.planner.passed(block, true));
            self.refused += refused(self.planner.kept(block, false));
            return Ok(());
        }
        let ends = self.disks.iter().filter_map(VecDeque::front);
        let end = ends.map(|(end, _)| *end).min();
        self.now = end.ok_or(HostError::Stranded(self.planner.board().cursor()))?;
        Ok(())
    }
}
