//! Placement of the blocks of a trace on disks.
//!
//! Each device, file or LUN of a trace is a *region*, a file of the engine's world whose blocks have
//! a number in it; the regions are laid over disks as the world lays files:
//!
//! ```text
//! block (dense) -> number in its region -> disk and place on it
//!
//! order     address  at its address or its number
//!           packed   touched blocks in the order of addresses, without the gaps between them
//!           dense    in the order of first use
//! regions   concatenated  region i on disk i modulo their number, one behind the other, a block between
//!           striped       block by block over all disks, each region from a row on, a row between
//! ```
//!
//! In the dense order every first use continues the one before: a method that prefetches by place
//! knows all cold misses (a random permutation of 100,000 blocks had one miss), and the time of a
//! disk is that of one sequential read. So it exists on request alone.
//!
//! Without a number of disks there are as many as regions, each on its own. More disks than regions
//! are striped over. Numbers are computed block by block for every run, so that no memory is needed
//! for each block, except 4 bytes where blocks are packed or where several regions are dense.

use forerun_core::{Bytes, DeviceId};

use super::recorded::Recorded;
use crate::device::needs::{Needs, Run};
use crate::hinted::Place;

/// Order of the blocks of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// At their address or number.
    #[default]
    Address,
    /// Touched blocks alone, in the order of addresses.
    Packed,
    /// In the order of first use.
    Dense,
}

/// Placement of several regions on fewer disks, or of any on more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Regions {
    /// One behind the other; on as many disks each has one of its own.
    Concatenated,
    /// Block by block over all disks.
    Striped,
}

/// Placement of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// In each region.
    pub order: Order,
    /// Of regions; if not told, concatenated on at most as many disks, else striped.
    pub regions: Option<Regions>,
}

impl Order {
    /// Its name on the command line and in rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Packed => "packed",
            Self::Dense => "dense",
        }
    }
}

impl Regions {
    /// Its name on the command line and in rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Concatenated => "concatenated",
            Self::Striped => "striped",
        }
    }
}

impl Layout {
    /// Where a trace's regions lie on so many disks.
    #[must_use]
    pub fn regions_of(self, recorded: &Recorded, disks: u16) -> Regions {
        self.regions
            .unwrap_or(match disks <= recorded.told().devices {
                true => Regions::Concatenated,
                false => Regions::Striped,
            })
    }
}

impl From<Order> for Layout {
    fn from(order: Order) -> Self {
        Self {
            order,
            regions: None,
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Placing<'a> {
    recorded: &'a Recorded,
    numbers: Numbers,
    regions: Regions,
    disks: u16,
    /// The length of each region, in blocks.
    lengths: Vec<u64>,
    /// Where each region begins: the block of its disk, or of the array.
    begins: Vec<u64>,
    block_bytes: u32,
}

#[derive(Debug)]
enum Numbers {
    /// The block's own.
    Own,
    /// The dense number, of a trace of one region.
    Dense,
    /// For each block.
    Each(Vec<u32>),
}

impl<'a> Placing<'a> {
    /// The blocks over a given number of disks.
    #[must_use]
    pub fn new(
        recorded: &'a Recorded,
        disks: Option<u16>,
        layout: Layout,
        block_bytes: u32,
    ) -> Self {
        let disks = recorded.disks(disks);
        let regions = layout.regions_of(recorded, disks);
        let numbers = match (layout.order, recorded.told().devices > 1) {
            (Order::Address, _) => Numbers::Own,
            (Order::Dense, false) => Numbers::Dense,
            (Order::Dense, true) => Numbers::Each(by_use(recorded)),
            (Order::Packed, _) => Numbers::Each(by_address(recorded)),
        };
        let mut placing = Self {
            recorded,
            numbers,
            regions,
            disks,
            lengths: vec![0; usize::from(recorded.told().devices.max(1))],
            begins: Vec::new(),
            block_bytes,
        };
        for block in 0..recorded.blocks().len() as u32 {
            let end = placing.number(block).saturating_add(1);
            let length = &mut placing.lengths[usize::from(recorded.blocks().space(block))];
            *length = (*length).max(end);
        }
        placing.begins = placing.begins();
        placing
    }

    /// Where each region begins, as the world lays out files.
    fn begins(&self) -> Vec<u64> {
        let disks = usize::from(self.disks);
        let (heads, unit) = match self.regions {
            Regions::Concatenated => (disks, 1),
            Regions::Striped => (1, u64::from(self.disks)),
        };
        let mut next = vec![0_u64; heads];
        let regions = self.lengths.iter().enumerate();
        let begins = regions.map(|(region, length)| {
            let next = &mut next[region % heads];
            let begin = *next;
            let units = length.div_ceil(unit).saturating_add(1);
            *next = begin.saturating_add(units.saturating_mul(unit));
            begin
        });
        begins.collect()
    }

    /// The number of a block in its region.
    #[must_use]
    pub fn number(&self, block: u32) -> u64 {
        match &self.numbers {
            Numbers::Own => {
                let id = self.recorded.blocks().ids().get(block as usize);
                id.copied().unwrap_or(0)
            }
            Numbers::Dense => block.into(),
            Numbers::Each(numbers) => numbers.get(block as usize).copied().unwrap_or(0).into(),
        }
    }

    /// The larger of its numbers in its region and on its disk: an engine's files are the regions, a
    /// hinted method's the disks.
    #[must_use]
    pub fn number_most(&self, block: u32) -> u64 {
        let on_disk = self.place(block).at.0 / u64::from(self.block_bytes);
        on_disk.max(self.number(block))
    }

    /// Whether the numbers of blocks are their addresses.
    #[must_use]
    pub fn is_by_address(&self) -> bool {
        matches!(self.numbers, Numbers::Own)
    }

    /// How regions lie on disks.
    #[must_use]
    pub fn regions(&self) -> Regions {
        self.regions
    }

    /// Location of a block.
    #[must_use]
    pub fn place(&self, block: u32) -> Place {
        let (number, bytes) = (self.number(block), u64::from(self.block_bytes));
        let region = self.recorded.blocks().space(block);
        let begin = self.begins.get(usize::from(region)).copied().unwrap_or(0);
        let number = begin.saturating_add(number);
        match self.regions {
            Regions::Striped => Place::striped(number, self.disks, bytes),
            Regions::Concatenated => Place {
                disk: DeviceId(region % self.disks),
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
        let mut runs = vec![Vec::new(); usize::from(self.disks)];
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

    /// The length of each region.
    #[must_use]
    pub fn files(&self) -> Vec<Bytes> {
        let bytes = |blocks: &u64| Bytes(blocks.saturating_mul(self.block_bytes.into()));
        self.lengths.iter().map(bytes).collect()
    }
}

/// The order of first use in each region, by block.
fn by_use(recorded: &Recorded) -> Vec<u32> {
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

/// The order of addresses in each region, by block.
fn by_address(recorded: &Recorded) -> Vec<u32> {
    let (blocks, ids) = (recorded.blocks(), recorded.blocks().ids());
    let mut sorted: Vec<u32> = (0..blocks.len() as u32).collect();
    sorted.sort_unstable_by_key(|block| (blocks.space(*block), ids[*block as usize]));
    let mut numbers = vec![0; sorted.len()];
    let (mut before, mut next) = (None, 0);
    for block in sorted {
        let space = blocks.space(block);
        next = if before == Some(space) { next + 1 } else { 0 };
        before = Some(space);
        numbers[block as usize] = next;
    }
    numbers
}
