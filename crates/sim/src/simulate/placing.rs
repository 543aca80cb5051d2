//! Placement of the blocks of a trace on disks.
//!
//! Computed block by block for every run of a trace, so that no memory is needed for each block:
//!
//! ```text
//! block (dense) -> number in the order that is laid out -> disk and place on it
//! ```
//!
//! Without a number of disks each of the trace's devices is a disk. With one, blocks are striped
//! over them one by one, the devices one behind the other: 16 files of a log are 16 regions. A block
//! lies at its address or its number.
//!
//! In the order of first use blocks lie on request, and where they have names alone: every first use then continues the one
//! before, and a method that prefetches by place knows all cold misses (a random permutation of
//! 100,000 blocks had one miss).

use forerun_core::{Bytes, DeviceId};

use super::recorded::Recorded;
use crate::device::needs::{Needs, Run};
use crate::hinted::Place;

/// Placement of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// At their number.
    Address,
    /// In the order of first use.
    Dense,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Placing<'a> {
    recorded: &'a Recorded,
    order: Order,
    disks: Option<u16>,
    block_bytes: u32,
}

#[derive(Debug)]
enum Order {
    /// By number.
    Number,
    /// By number, behind the devices before: where each begins.
    Regions(Vec<u64>),
    /// By first use.
    Use,
    /// By first use on its own device: for each block.
    UseOfDevice(Vec<u32>),
}

impl<'a> Placing<'a> {
    /// The blocks over a given number of disks.
    #[must_use]
    pub fn new(
        recorded: &'a Recorded,
        disks: Option<u16>,
        layout: Option<Layout>,
        block_bytes: u32,
    ) -> Self {
        let are_several = recorded.told().devices > 1;
        // A name has no other place.
        let layout = match recorded.told().has_names {
            true => Some(Layout::Dense),
            false => layout,
        };
        let order = match (layout, are_several, disks.is_some()) {
            (Some(Layout::Dense), true, false) => Order::UseOfDevice(by_device(recorded)),
            (Some(Layout::Dense), _, _) => Order::Use,
            (_, true, true) => Order::Regions(regions(recorded)),
            (_, _, _) => Order::Number,
        };
        Self {
            recorded,
            order,
            disks,
            block_bytes,
        }
    }

    /// The number of a block in the order that is laid out.
    #[must_use]
    pub fn number(&self, block: u32) -> u64 {
        let at = block as usize;
        match &self.order {
            Order::Number => self.id(at),
            Order::Regions(begins) => {
                let space = usize::from(self.recorded.blocks().space(block));
                let begin = begins.get(space).copied().unwrap_or(0);
                begin.saturating_add(self.id(at))
            }
            Order::Use => block.into(),
            Order::UseOfDevice(numbers) => numbers.get(at).copied().unwrap_or(0).into(),
        }
    }

    fn id(&self, at: usize) -> u64 {
        self.recorded.blocks().ids().get(at).copied().unwrap_or(0)
    }

    /// Where the numbers of a device begin, if blocks lie by their number, so that those of a request
    /// follow each other.
    #[must_use]
    pub fn begin(&self, device: u16) -> Option<u64> {
        match &self.order {
            Order::Number => Some(0),
            Order::Regions(begins) => begins.get(usize::from(device)).copied(),
            Order::Use | Order::UseOfDevice(_) => None,
        }
    }

    /// Location of a block.
    #[must_use]
    pub fn place(&self, block: u32) -> Place {
        let (number, bytes) = (self.number(block), u64::from(self.block_bytes));
        match self.disks {
            Some(disks) => Place::striped(number, disks, bytes),
            None => Place {
                disk: DeviceId(self.recorded.blocks().space(block)),
                at: Bytes(number.saturating_mul(bytes)),
            },
        }
    }

    /// Where it ends on its disk.
    #[must_use]
    pub fn end(&self, block: u32) -> u64 {
        let Bytes(at) = self.place(block).at;
        at.saturating_add(self.block_bytes.into())
    }

    /// The needs of each disk, each block in a request of its own if `is_by_block`.
    #[must_use]
    pub fn needs(&self, is_by_block: bool) -> Vec<Needs> {
        let disks = self.recorded.disks(self.disks);
        let mut runs = vec![Vec::new(); usize::from(disks)];
        for block in 0..self.recorded.blocks().len() as u32 {
            let Place { disk, at } = self.place(block);
            let bytes = Bytes(self.block_bytes.into());
            runs[usize::from(disk.0)].push(Run { at, bytes });
        }
        runs.into_iter()
            .map(|runs| {
                let requests = if is_by_block { runs.len() as u64 } else { 1 };
                Needs::new(runs, requests)
            })
            .collect()
    }

    /// The needs of an array for a file that holds all blocks in this order.
    #[must_use]
    pub fn file_needs(&self) -> Needs {
        let block = u64::from(self.block_bytes);
        let run = |number: u64| Run {
            at: Bytes(number.saturating_mul(block)),
            bytes: Bytes(block),
        };
        let blocks = 0..self.recorded.blocks().len() as u32;
        Needs::new(blocks.map(|block| run(self.number(block))).collect(), 1)
    }

    /// How many bytes a file has that holds all blocks in this order.
    #[must_use]
    pub fn file(&self) -> Bytes {
        let blocks = 0..self.recorded.blocks().len() as u32;
        let last = blocks.map(|block| self.number(block)).max().unwrap_or(0);
        Bytes(
            last.saturating_add(1)
                .saturating_mul(self.block_bytes.into()),
        )
    }
}

/// Where the region of each device begins: behind the last block of the one before.
fn regions(recorded: &Recorded) -> Vec<u64> {
    let blocks = recorded.blocks();
    let mut ends = vec![0_u64; usize::from(recorded.told().devices)];
    for (block, id) in (0..).zip(blocks.ids()) {
        let end = &mut ends[usize::from(blocks.space(block))];
        *end = (*end).max(id.saturating_add(1));
    }
    let mut next = 0_u64;
    let begins = ends.iter().map(|end| {
        let begin = next;
        next = next.saturating_add(*end);
        begin
    });
    begins.collect()
}

/// The order of first use on each device, by block.
fn by_device(recorded: &Recorded) -> Vec<u32> {
    let blocks = recorded.blocks();
    let mut next = vec![0; usize::from(recorded.told().devices)];
    (0..blocks.len() as u32)
        .map(|block| {
            let next = &mut next[usize::from(blocks.space(block))];
            *next += 1;
            *next - 1
        })
        .collect()
}
