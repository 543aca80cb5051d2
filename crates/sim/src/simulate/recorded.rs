//! What is in a trace: its blocks, numbered in the order of first use, and its references if they
//! are kept.
//!
//! ```text
//! Request, Request, ..  ->  blocks numbered densely  ->  [references]  ->  Reads for a planner
//!                                                    \-> Placing: where each block lies
//! ```
//!
//! A request counts once for each block it touches. A method that must know what comes needs all
//! references in memory, 16 bytes each; one that does not is run from the trace itself, of which
//! only the blocks are kept: 14 to 19 bytes a block, two more where the trace has several devices.

use forerun_core::hinted::BlockNo;
use forerun_core::{Bytes, Nanos};

use super::placing::{Layout, Placing};
use super::requests::{Request, Requests, RequestsError, Told};
use crate::count::Numbering;
use crate::hinted::{Reads, Reference};

/// What a kept reference takes.
pub const REFERENCE_BYTES: u64 = 16;

/// What it takes besides in each run under way: the run's own copy (16), the planner's order and
/// links (8), and the hints on their way to it or the look ahead of the bound (8), which grow by
/// doubling; the memory program of the examples measures it.
pub const RUN_REFERENCE_BYTES: u64 = 48;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    blocks: Numbering,
    references: Vec<Reference>,
    requests: u64,
    read: u64,
    is_addressed: bool,
    told: Told,
}

impl Recorded {
    /// What is in a trace; its references are kept if so many at most may be.
    ///
    /// # Errors
    /// See [`RequestsError`].
    #[expect(
        clippy::while_let_on_iterator,
        reason = "it is asked what it was told after"
    )]
    pub fn of(mut requests: Requests<'_>, kept: Option<u64>) -> Result<Self, RequestsError> {
        let mut recorded = Self {
            is_addressed: true,
            ..Self::default()
        };
        while let Some(request) = requests.next() {
            recorded.add(&request?, kept)?;
        }
        recorded.told = requests.told();
        if recorded.requests == 0 {
            return Err(RequestsError::Nothing);
        }
        Ok(recorded)
    }

    fn add(&mut self, request: &Request, kept: Option<u64>) -> Result<(), RequestsError> {
        self.requests += 1;
        self.is_addressed &= request.is_addressed;
        // What is computed before a request is computed after the reference before it.
        if let Some(before) = self.references.last_mut() {
            before.compute = request.compute;
        }
        for block in request.blocks() {
            let number = self.blocks.number_in(request.device, block);
            let block = BlockNo(number.ok_or(RequestsError::Blocks)?);
            self.read += 1;
            let Some(most) = kept else {
                continue;
            };
            if self.read > most {
                return Err(RequestsError::Kept(most));
            }
            let compute = Nanos(0);
            self.references.push(Reference { block, compute });
        }
        Ok(())
    }

    /// What the trace told besides.
    #[must_use]
    pub fn told(&self) -> Told {
        self.told
    }

    /// Its blocks, numbered in the order of first use, each in the space of its device.
    #[must_use]
    pub fn blocks(&self) -> &Numbering {
        &self.blocks
    }

    /// The references, if they were kept.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// How many requests there are.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Whether every request says at which address it reads.
    #[must_use]
    pub fn is_addressed(&self) -> bool {
        self.is_addressed
    }

    /// The block of this number, of whichever device has it first.
    #[must_use]
    pub fn block(&self, number: u64) -> Option<BlockNo> {
        let at = self.blocks.ids().iter().position(|id| *id == number)?;
        u32::try_from(at).ok().map(BlockNo)
    }

    /// How many disks it lies on if there were so many wanted.
    #[must_use]
    pub fn disks(&self, wanted: Option<u16>) -> u16 {
        wanted.unwrap_or(self.told.devices).max(1)
    }

    /// The first block that ends beyond so many bytes of its disk: its device, its number there,
    /// and its end.
    #[must_use]
    pub fn beyond(&self, placing: &Placing<'_>, capacity: Bytes) -> Option<(u16, u64, u64)> {
        let all = (0..).zip(self.blocks.ids());
        all.map(|(block, id)| (block, *id, placing.end(block)))
            .find(|(_, _, end)| *end > capacity.0)
            .map(|(block, id, end)| (self.blocks.space(block), id, end))
    }

    /// The kept references for a planner.
    #[must_use]
    pub fn reads(&self, disks: Option<u16>, layout: Option<Layout>, block_bytes: u32) -> Reads {
        let placing = Placing::new(self, disks, layout, block_bytes);
        let blocks = 0..self.blocks.len() as u32;
        Reads {
            references: self.references.clone(),
            places: blocks.map(|block| placing.place(block)).collect(),
        }
    }
}
