//! Hinted prefetching in virtual time: hosts for the planner, inputs for them, and the optimum.
//!
//! A [`Reads`] is a reference string: block numbers, the computing time before each reference, and
//! the places of the blocks. It is fully known beforehand, as in Kimbrel et al. 1996, whose
//! sections stand in brackets:
//!
//! ```text
//! host      a planner over devices of any kind; compute, driver and stall time   (section 3)
//! unit      the same in the theory's clock: 1 for a hit, F for a fetch                (section 2.1)
//! optimum   the least any schedule can take in the unit model, by search
//! synth     50 passes over 2000 sequential blocks                                 (section 3.1)
//! stand_in  traces in place of the nine lost ones                                 (Table 3)
//! setup     parameters of a planner
//! constant  a disk that takes one time for everything, first come first served
//! ```

pub mod constant;
pub mod host;
pub mod ledger;
pub mod optimum;
mod setup;
pub mod stand_in;
pub mod synth;
pub mod unit;

use std::fmt;

use forerun_core::hinted::{BlockNo, Board, Hint, Position};
use forerun_core::{Bytes, DeviceId, Nanos};

pub use setup::Setup;

/// A reference string and where its blocks lie.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reads {
    /// The references, in order.
    pub references: Vec<Reference>,
    /// For each block, where it lies.
    pub places: Vec<Place>,
}

/// One read of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The block: an index into [`Reads::places`].
    pub block: BlockNo,
    /// Computing time of the reader on it, before the next one.
    pub compute: Nanos,
}

/// Location of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// On which disk.
    pub disk: DeviceId,
    /// Where on it.
    pub at: Bytes,
}

/// Size of a block in Kimbrel et al. 1996.
pub const BLOCK_BYTES: u64 = 8192;

impl Place {
    /// Block `number` of an array striped by one block (Kimbrel et al. 1996, section 3.2).
    #[must_use]
    pub fn striped(number: u64, disks: u16, block_bytes: u64) -> Self {
        let disks = u64::from(disks.max(1));
        Self {
            disk: DeviceId((number % disks) as u16),
            at: Bytes((number / disks).saturating_mul(block_bytes)),
        }
    }
}

impl Reads {
    /// The hints for the whole string. References to blocks without a place are left out by
    /// [`Reads::check`].
    #[must_use]
    pub fn hints(&self) -> Vec<Hint> {
        let hint = |reference: &Reference| self.hint(reference.block);
        self.references.iter().filter_map(hint).collect()
    }

    /// A block's facts for a planner.
    #[must_use]
    pub fn hint(&self, block: BlockNo) -> Option<Hint> {
        let place = self.places.get(block.0 as usize)?;
        Some(Hint {
            block,
            disk: place.disk,
        })
    }

    /// How many disks the blocks lie on.
    #[must_use]
    pub fn disks(&self) -> u16 {
        let last = self.places.iter().map(|place| place.disk.0).max();
        last.unwrap_or(0).saturating_add(1)
    }

    /// Whether every reference names a block that lies somewhere.
    #[must_use]
    pub fn check(&self) -> bool {
        let placed = |r: &Reference| (r.block.0 as usize) < self.places.len();
        self.references.iter().all(placed)
    }

    /// Whether a planner of this setup can hold all references.
    fn check_for(&self, setup: &Setup) -> Result<(), HostError> {
        if !self.check() {
            return Err(HostError::Unplaced);
        }
        if self.disks() > setup.disks {
            return Err(HostError::Disks(self.disks()));
        }
        let most = self.references.len().max(self.places.len());
        if most >= u32::MAX as usize {
            return Err(HostError::TooLong(self.references.len()));
        }
        Ok(())
    }
}

/// Why a run was not possible.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HostError {
    /// No disk, or more than a board has.
    DisksMax(u16),
    /// A cache of no blocks.
    NoCache,
    /// A reference to a block that lies nowhere.
    Unplaced,
    /// Blocks lie on this number of disks, more than the setup has.
    Disks(u16),
    /// This number of devices, fewer than disks.
    Devices(usize),
    /// So many references, or their blocks, are more than can be numbered.
    TooLong(usize),
    /// The reader waits at this place, and nothing is under way: a defect of the method.
    Stranded(Position),
    /// A time beyond those that a clock holds, 584 years.
    Time,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DisksMax(n) => write!(f, "disks={n}: must lie from 1 to {}", Board::DISKS_MAX),
            Self::NoCache => write!(f, "cache_blocks=0: must be at least 1"),
            Self::Unplaced => write!(f, "a reference to a block that lies nowhere"),
            Self::Disks(n) => write!(f, "blocks lie on {n} disks, more than there are"),
            Self::Devices(n) => write!(f, "{n} devices, fewer than there are disks"),
            Self::TooLong(n) => write!(f, "{n} references, more than can be numbered"),
            Self::Time => write!(
                f,
                "the run takes longer than 2^64 - 1 ns of virtual time, 584 years"
            ),
            Self::Stranded(at) => write!(f, "the reader waits for ever at reference {}", at.0),
        }
    }
}

impl std::error::Error for HostError {}

/// 1 for a call of a planner that makes no sense.
fn refused(accepted: Option<()>) -> u64 {
    u64::from(accepted.is_none())
}
