//! A trace's contents: its blocks, numbered in the order of first use, and its references if they
//! are kept.
//!
//! ```text
//! Request, Request, ..  ->  blocks numbered densely  ->  [references]  ->  Reads for a planner
//!                                                    \-> Placing: where each block lies
//! ```
//!
//! A request counts once for each block it touches. A method that must know future references needs
//! all of them in memory, 16 bytes each; any other is run from the trace itself, of which only the
//! blocks are kept: 14 to 19 bytes a block, two more where the trace has several devices.

use forerun_core::hinted::BlockNo;
use forerun_core::{Bytes, Nanos};

use super::opened::Opened;
use super::placing::{Layout, Placing};
use super::requests::{Request, Requests, RequestsError, Told};
use crate::count::Numbering;
use crate::hinted::{Reads, Reference};

/// How much memory there is for what is kept of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// All of it.
    pub bytes: u64,
    /// Whether references are kept, and not blocks alone.
    pub keeps: bool,
    /// How many runs at the same time have a copy of their own.
    pub runs: u64,
    /// Whether one of them plans all fetches in advance (reverse aggressive).
    pub plans: bool,
}

impl Room {
    /// Room without an end.
    pub const ENDLESS: Self = Self {
        bytes: u64::MAX,
        keeps: true,
        runs: 1,
        plans: false,
    };

    /// Bytes of a kept reference.
    const KEPT: u64 = 16;
    /// Its bytes in each run: a copy (16), the planner's order and links (8), and the hints on
    /// their way to it (8), which are gone when the run begins. The memory example measures 25.
    const RUN: u64 = 32;
    /// Further bytes of a planned fetch, of which there may be one a reference: 90 are measured
    /// beyond the rest, more where a list has just doubled.
    const PLANNED: u64 = 128;
    /// What a different block takes; 41 are measured with one run.
    pub const BLOCK: u64 = 64;

    /// Whether a given number of references to a given number of blocks fit.
    fn fits(self, references: u64, blocks: u64) -> bool {
        let planned = if self.plans { Self::PLANNED } else { 0 };
        let each = Self::KEPT + (Self::RUN + planned).saturating_mul(self.runs);
        let taken = each.saturating_mul(references);
        let blocks = blocks.saturating_mul(Self::BLOCK).saturating_mul(self.runs);
        taken.saturating_add(blocks) <= self.bytes && references < u64::from(u32::MAX) - 1
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    blocks: Numbering,
    references: Vec<Reference>,
    requests: u64,
    /// The files that its processes read.
    opened: Opened,
    told: Told,
}

impl Recorded {
    /// What is in a trace, in as much room as there is; without a room, its blocks alone, as many as
    /// there are.
    ///
    /// # Errors
    /// See [`RequestsError`].
    #[expect(
        clippy::while_let_on_iterator,
        reason = "the iterator is asked for its counts after the loop"
    )]
    pub fn of(mut requests: Requests<'_>, room: Option<Room>) -> Result<Self, RequestsError> {
        let mut recorded = Self::default();
        while let Some(request) = requests.next() {
            recorded.add(&request?, room)?;
        }
        recorded.told = requests.told();
        if recorded.requests == 0 {
            let writes = recorded.told.writes;
            return Err(RequestsError::Nothing { writes });
        }
        Ok(recorded)
    }

    fn add(&mut self, request: &Request, room: Option<Room>) -> Result<(), RequestsError> {
        self.requests += 1;
        self.opened.add(request.process as usize, request.device);
        // Computing before a request is computing after the reference before it.
        if let Some(before) = self.references.last_mut() {
            before.compute = request.compute;
        }
        let keeps = room.is_some_and(|room| room.keeps);
        for block in request.blocks() {
            let known = self.blocks.len();
            let number = self.blocks.number_in(request.device, block);
            let block = BlockNo(number.ok_or(RequestsError::Blocks)?);
            let (references, blocks) = (self.references.len() as u64, self.blocks.len() as u64);
            // What is known takes nothing more.
            let grows = keeps || self.blocks.len() > known;
            let fits = |room: Room| room.fits(references + u64::from(keeps), blocks);
            if grows && !room.is_none_or(fits) {
                let at = request.at;
                return Err(RequestsError::Kept {
                    references,
                    blocks,
                    at,
                });
            }
            if keeps {
                let compute = Nanos(0);
                self.references.push(Reference { block, compute });
            }
        }
        Ok(())
    }

    /// Other facts learned from the trace.
    #[must_use]
    pub fn told(&self) -> Told {
        self.told
    }

    /// The files that its processes read.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Its blocks, numbered in the order of first use, each in the space of its device.
    #[must_use]
    pub fn blocks(&self) -> &Numbering {
        &self.blocks
    }

    /// Frees the lookup of blocks by number, once all references are known.
    pub fn forget_lookup(&mut self) {
        self.blocks.forget_lookup();
    }

    /// The references, if they were kept.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The block of this number, of whichever device has it first.
    #[must_use]
    pub fn block(&self, number: u64) -> Option<BlockNo> {
        let at = self.blocks.ids().iter().position(|id| *id == number)?;
        u32::try_from(at).ok().map(BlockNo)
    }

    /// The number of disks: as many as wanted, else the number of devices in the trace.
    #[must_use]
    pub fn disks(&self, wanted: Option<u16>) -> u16 {
        wanted.unwrap_or(self.told.devices).max(1)
    }

    /// The first block that ends beyond a given number of bytes of its disk: its device, its number
    /// there, and its end.
    #[must_use]
    pub fn beyond(&self, placing: &Placing<'_>, capacity: Bytes) -> Option<(u16, u64, u64)> {
        let is_beyond = |block: &u32| placing.end(*block) > capacity.0;
        let block = self.numbered().find(is_beyond)?;
        let (device, number) = self.name(block);
        Some((device, number, placing.end(block)))
    }

    /// The first block whose number in its region, or on its disk, is beyond those of an engine's file:
    /// its device, and its number there.
    #[must_use]
    pub fn beyond_a_file(&self, placing: &Placing<'_>) -> Option<(u16, u64)> {
        let is_beyond = |block: &u32| placing.number_most(*block) >= u64::from(u32::MAX);
        self.numbered()
            .find(is_beyond)
            .map(|block| self.name(block))
    }

    /// Its blocks by their dense numbers.
    fn numbered(&self) -> impl Iterator<Item = u32> + use<> {
        // No more than 2^32 - 2 are numbered.
        0..self.blocks.len() as u32
    }

    /// The device of a block, and its number there.
    fn name(&self, block: u32) -> (u16, u64) {
        let id = self.blocks.ids().get(block as usize);
        (self.blocks.space(block), id.copied().unwrap_or_default())
    }

    /// The kept references for a planner.
    #[must_use]
    pub fn reads(&self, disks: Option<u16>, layout: Layout, block_bytes: u32) -> Reads {
        let placing = Placing::new(self, disks, layout, block_bytes);
        Reads {
            references: self.references.clone(),
            places: self.numbered().map(|block| placing.place(block)).collect(),
        }
    }
}
