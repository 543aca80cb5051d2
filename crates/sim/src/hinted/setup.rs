//! Parameters of a planner, and the reasons to refuse them.

use forerun_core::hinted::policy::Policy;
use forerun_core::hinted::{Board, Hint, Planner};
use forerun_core::methods::Methods;
use forerun_core::spec::{Choice, ChoiceError};

use super::HostError;

/// Parameters of a planner.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The method.
    pub policy: Choice<Box<dyn Policy>>,
    /// Number of disks, from 1 to [`Board::DISKS_MAX`].
    pub disks: u16,
    /// K: blocks the cache holds, at least 1.
    pub cache_blocks: u32,
}

impl Setup {
    /// A policy over disks and a cache.
    #[must_use]
    pub fn new(policy: Choice<Box<dyn Policy>>, disks: u16, cache_blocks: u32) -> Self {
        Self {
            policy,
            disks,
            cache_blocks,
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
    pub fn check(&self) -> Result<(), HostError> {
        if !(1..=Board::DISKS_MAX).contains(&self.disks) {
            return Err(HostError::DisksMax(self.disks));
        }
        if self.cache_blocks == 0 {
            return Err(HostError::NoCache);
        }
        Ok(())
    }

    /// A planner with these parameters, and a cache in which these blocks are already.
    pub(super) fn planner(&self, warm: &[Hint]) -> Result<Planner, HostError> {
        self.check()?;
        let mut policy = self.policy.build();
        let mut board = Board::new(self.disks, self.cache_blocks);
        for hint in warm {
            if board.cached(*hint).is_some() {
                policy.arrived(&board, hint.block);
            }
        }
        Ok(Planner::new(policy, board))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_baselines::METHODS;

    #[test]
    fn setups_out_of_range_are_refused() {
        let refused = |disks, cache_blocks| {
            let setup = Setup::of("forestall", disks, cache_blocks, &METHODS).unwrap();
            setup.planner(&[]).map(|_| ())
        };
        assert_eq!(refused(1024, 1), Ok(()));
        assert_eq!(refused(0, 4), Err(HostError::DisksMax(0)));
        assert_eq!(refused(1025, 4), Err(HostError::DisksMax(1025)));
        assert_eq!(refused(3, 0), Err(HostError::NoCache));
        assert_eq!(
            HostError::DisksMax(0).to_string(),
            "disks=0: must lie from 1 to 1024"
        );
    }
}
