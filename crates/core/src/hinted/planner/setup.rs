//! Parameters of a planner, and the reasons to refuse them.
//!
//! Filled in by drivers, checked when the [planner](super) is built: after that nothing of it can
//! be wrong.

use alloc::boxed::Box;
use core::fmt;

use crate::hinted::policy::Policy;
use crate::methods::Methods;
use crate::spec::{Choice, ChoiceError};

/// Parameters of a planner.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The method.
    pub policy: Choice<Box<dyn Policy>>,
    /// Number of disks, from 1 to [`Setup::DISKS_MAX`].
    pub disks: u16,
    /// K: blocks the cache holds, at least 1.
    pub cache_blocks: u32,
    /// Block numbers stay below this; memory is 16 bytes for each up to the largest mentioned.
    pub blocks_max: u32,
    /// References beyond this many, below `u32::MAX`, are refused; memory is 8 bytes for each
    /// known, and a quarter of a byte more on every disk.
    pub hints_max: u32,
}

impl Setup {
    /// Most disks: each costs a set over the reference order.
    pub const DISKS_MAX: u16 = 1024;

    /// A policy, with no limit but that of the numbers.
    #[must_use]
    pub fn new(policy: Choice<Box<dyn Policy>>, disks: u16, cache_blocks: u32) -> Self {
        Self {
            policy,
            disks,
            cache_blocks,
            blocks_max: u32::MAX,
            hints_max: u32::MAX - 1,
        }
    }

    /// A policy by name, `name` or `name(param=value,..)`, looked up in these lists.
    ///
    /// # Errors
    /// There is no such policy or parameter, or a value is out of its range.
    pub fn of(
        policy: &str,
        disks: u16,
        cache_blocks: u32,
        methods: &Methods,
    ) -> Result<Self, ChoiceError> {
        let policy = Choice::parse("hinted", methods.hinted, policy)?;
        Ok(Self::new(policy, disks, cache_blocks))
    }

    /// Refuses impossible parameters.
    ///
    /// # Errors
    /// A value out of range.
    pub fn check(&self) -> Result<(), SetupError> {
        if !(1..=Self::DISKS_MAX).contains(&self.disks) {
            return Err(SetupError::Disks(self.disks));
        }
        if self.cache_blocks == 0 {
            return Err(SetupError::NoCache);
        }
        if self.hints_max == u32::MAX {
            return Err(SetupError::Hints(self.hints_max));
        }
        Ok(())
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
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disks(n) => write!(f, "disks={n}: must lie from 1 to {}", Setup::DISKS_MAX),
            Self::NoCache => write!(f, "cache_blocks=0: must be at least 1"),
            Self::Hints(n) => write!(f, "hints_max={n}: must be below {}", u32::MAX),
        }
    }
}

impl core::error::Error for SetupError {}
