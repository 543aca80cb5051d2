//! The unit model: the theory's clock, exact (kimbrel96 section 2.1).
//!
//! A hit takes one time unit, a fetch F, fetches on one disk follow each other and those on
//! several run side by side. Time is whole units. At each of them, in this order:
//!
//! ```text
//! 1  a reference that began one unit ago is done, and the cursor moves
//! 2  fetches that began F ago arrive
//! 3  the reader asks for the block at the cursor, if it is not at work on one
//! 4  the planner decides; what it starts evicts at once
//! 5  a block that is resident is referenced from now to the next unit, else one unit is stall
//! ```
//!
//! So a block is given up at the earliest when its reference is over, and what arrives at a unit
//! serves the reference that begins there. Elapsed time is references plus stall, as in the
//! paper; Figure 1's schedules cost 7 and 6.

use std::collections::VecDeque;

use forerun_core::Nanos;
use forerun_core::hinted::{BlockNo, Hint, Input, Ledger, Output, Planner, Setup};

use super::{HostError, Reads};

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
    /// What was fetched.
    pub block: BlockNo,
    /// What was given up.
    pub evict: Option<BlockNo>,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitReport {
    /// Time from the first reference's request to the last one's end.
    pub elapsed_units: u64,
    /// Units in which no reference was served.
    pub stall_units: u64,
    /// The planner's counters.
    pub ledger: Ledger,
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
    let mut world = World {
        planner: Planner::new(setup)?,
        fetch_units: instance.fetch_units.max(1),
        disks: vec![VecDeque::new(); usize::from(setup.disks)],
        now: 0,
        served: 0,
        fetches: Vec::new(),
        reader: Reader::Arrives,
    };
    for block in &instance.warm {
        if let Some(hint) = instance.reads.hint(*block) {
            world.tell(Input::Cached(hint));
        }
    }
    world.run(instance.reads.hints())?;
    Ok(UnitReport {
        elapsed_units: world.now,
        stall_units: world.now - world.served,
        ledger: *world.planner.ledger(),
        fetches: world.fetches,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reader {
    /// It is about to ask.
    Arrives,
    /// It has asked and was not served yet.
    Waits,
    /// It works on its block until the next unit.
    Works,
    /// It lost its block and goes on without.
    Gone,
}

struct World {
    planner: Planner,
    fetch_units: u64,
    /// What is under way on each disk, by when it ends.
    disks: Vec<VecDeque<(u64, BlockNo)>>,
    now: u64,
    served: u64,
    fetches: Vec<Fetch>,
    reader: Reader,
}

impl World {
    fn run(&mut self, hints: Vec<Hint>) -> Result<(), HostError> {
        let references = hints.len() as u64;
        self.tell(Input::Hints(hints));
        while self.served < references {
            self.land();
            if self.reader == Reader::Arrives {
                self.reader = Reader::Waits;
                let compute = Nanos(u64::from(self.served > 0));
                self.tell(Input::Wanted { compute });
            }
            self.listen();
            self.pass()?;
        }
        Ok(())
    }

    /// What ends by now has arrived.
    fn land(&mut self) {
        for disk in 0..self.disks.len() {
            while let Some((end, block)) = self.disks[disk].front().copied() {
                if end > self.now {
                    break;
                }
                self.disks[disk].pop_front();
                let service = Nanos(self.fetch_units);
                self.tell(Input::Fetched { block, service });
            }
        }
    }

    fn listen(&mut self) {
        loop {
            match self.planner.poll() {
                Output::Idle => return,
                Output::Serve { .. } => self.reader = Reader::Works,
                Output::Lost { .. } => self.reader = Reader::Gone,
                Output::Fetch {
                    block, disk, evict, ..
                } => {
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
        }
    }

    /// On to the next unit at which something can happen.
    fn pass(&mut self) -> Result<(), HostError> {
        match self.reader {
            Reader::Works | Reader::Gone => {
                self.now += 1;
                self.served += 1;
                self.reader = Reader::Arrives;
                self.tell(Input::Taken);
            }
            Reader::Arrives | Reader::Waits => {
                let ends = self.disks.iter().filter_map(VecDeque::front);
                let Some(end) = ends.map(|(end, _)| *end).min() else {
                    return Err(HostError::Stranded(self.planner.board().cursor()));
                };
                self.now = end;
            }
        }
        Ok(())
    }

    fn tell(&mut self, input: Input) {
        self.planner.handle(Nanos(self.now), input);
    }
}
