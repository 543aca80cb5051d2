//! Split: which part of the memory may blocks fetched ahead keep?
//!
//! For reclaim methods that keep them apart ([`Reclaim::is_split`](crate::reclaim::Reclaim::is_split)),
//! which get the split method [once](crate::reclaim::Reclaim::begin); no other code asks it. Too small
//! a part loses blocks before their readers come, too large a one loses blocks that are read again. Li
//! and Shen 2005, section 3.2, count both as misses on blocks that were in memory not long ago, and
//! move the part to where their sum is least.
//!
//! ```text
//! victim    -> eviction history: file, block, whether it was unread
//! miss      -> found there?  missed(prefetch miss | cache miss)
//! victim    <- percent(now): a method moves its part here, when it moves it
//! ```
//!
//! A method hears the time when a frame is needed, so that it stands still while memory suffices.
//! There is none here: no method of this crate keeps blocks fetched ahead apart.

use crate::units::Nanos;

/// A miss on a block that was given up not long ago.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miss {
    /// The block was fetched ahead and given up before its reader came.
    Prefetch,
    /// The block had been read, and is read again.
    Cache,
}

/// Decides how the memory is split.
///
/// # Examples
/// Half of the memory for blocks fetched ahead, whatever is missed.
///
/// ```
/// use forerun_core::Nanos;
/// use forerun_core::split::Split;
///
/// #[derive(Debug)]
/// struct Half;
///
/// impl Split for Half {
///     fn percent(&mut self, _now: Nanos) -> u8 {
///         50
///     }
/// }
///
/// assert_eq!(Half.percent(Nanos(0)), 50);
/// ```
pub trait Split: core::fmt::Debug + Send {
    /// Whether misses are told. If so, an eviction history is kept; if not, they change nothing.
    fn learns(&self) -> bool {
        false
    }
    /// A block is missing that the eviction history knows.
    fn missed(&mut self, _miss: Miss) {}
    /// A frame is needed. The part of the frames, in per cent, that blocks fetched ahead may keep:
    /// from 1 to 99. Asked once more at the same time, it answers the same.
    fn percent(&mut self, now: Nanos) -> u8;
}
