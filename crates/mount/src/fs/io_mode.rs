//! How the kernel reads a file that is open: through its page cache of the mount, or from the source
//! itself (FUSE passthrough).
//!
//! Problem: the kernel has one of the two for an inode, from its first open to its last release; an open
//! that answers the other one fails with `EIO`, and so does a second backing id for the same inode.
//!
//! Mechanism: the mode lies with the [node](super::nodes), beside the number of its opens, and under the
//! same lock. The first open sets it, others must enter it, and the last release ends it. The kernel
//! leaves its own mode before it sends the release, so ours never ends too early.
//!
//! ```text
//! opens 0 --enter(cached)-------> cached ------enter(passthrough)--> refused: enter cached
//!         --enter(passthrough 7)> passthrough 7 --enter(cached)----> refused: enter passthrough 7
//!                                               --enter(passthrough 9)--> 7; 9 is dropped
//! ```

/// See the [module](self). `B` is the kernel's name for a backing file: a backing id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum IoMode<B> {
    /// Bytes come from the daemon, and stay in the kernel's page cache of the mount.
    #[default]
    Cached,
    /// Bytes come from the source, by the kernel.
    Passthrough(B),
}

impl<B: Clone> IoMode<B> {
    /// One more open of a file that was open so often. The mode it has.
    ///
    /// # Errors
    /// The file is open in this other mode.
    pub fn enter(&mut self, opens: u32, wanted: &Self) -> Result<Self, Self> {
        if opens == 0 {
            *self = wanted.clone();
            return Ok(self.clone());
        }
        match (&*self, wanted) {
            (Self::Cached, Self::Cached) | (Self::Passthrough(_), Self::Passthrough(_)) => {
                Ok(self.clone())
            }
            (other, _) => Err(other.clone()),
        }
    }

    /// The backing id.
    pub fn backing(&self) -> Option<&B> {
        match self {
            Self::Cached => None,
            Self::Passthrough(backing) => Some(backing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::IoMode::{Cached, Passthrough};

    #[test]
    fn the_first_open_sets_the_mode_and_others_must_enter_it() {
        let mut mode = Cached;
        assert_eq!(mode.enter(0, &Passthrough(7)), Ok(Passthrough(7)));
        assert_eq!(mode.enter(1, &Cached), Err(Passthrough(7)));
        assert_eq!(mode.enter(1, &Passthrough(9)), Ok(Passthrough(7)));
        assert_eq!(mode.enter(0, &Cached), Ok(Cached));
        assert_eq!(mode.enter(1, &Passthrough(9)), Err(Cached));
        assert_eq!(mode.enter(2, &Cached), Ok(Cached));
        assert_eq!(mode.enter(0, &Passthrough(9)), Ok(Passthrough(9)));
        assert_eq!(mode.backing(), Some(&9));
    }
}
