//! Dispatch: which waiting fetch a device gets next.
//!
//! Asked by the [queues](crate::queues) whenever a device can take one more request. While it has as many as it can
//! work on, and one more so that it never runs idle, others wait: most of them undecided, so without memory. Detect,
//! depth and shape are asked for these *after* dispatch has chosen them. The number comes from the
//! [measure](crate::measure) of the device: from its [profile](crate::Profile::servers) or from completed requests.
//! A device without such a number has a slot for every fetch: each is decided and sent as it comes, and the device
//! orders them.
//!
//! A method sees where fetches lie and when they are due. It does not know readers, and it cannot hold a fetch back.
//!
//! Virtual finish time of fair queueing (Demers, Keshav and Shenker 1989, section 2): requests are due in the order
//! of `F = max(F, V) + n * w`, with V the device's work so far, w the work of this run and n the runs that share the
//! device. Work is counted in bytes; a switch counts as the bytes that could have been transferred meanwhile. Readers
//! thus share the device equally, in slices or page by page, and a reader that asks rarely precedes streams that just
//! had their slice. The `max` forgives lateness: idle time earns no claim.
//!
//! Example: 10 streams had a slice of 3 MB each since reader 7 read a page. Its account stands behind the work, so
//! its next read is due now, before all of them.

pub mod continuing;

use alloc::boxed::Box;

use crate::spec::Method;
use crate::units::Bytes;

/// The dispatch methods. One entry a method.
pub static LIST: &[Method<Box<dyn Dispatch>>] = &[continuing::METHOD];

/// Where a device stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Head {
    /// Where the last fetch handed to it ends, in bytes from the device's beginning.
    pub position: u64,
    /// Bytes handed to it since it last had to switch.
    pub run: Bytes,
    /// How long that run may get while others wait: the answer of [`Dispatch::slice`] at the switch, at most
    /// four times the answer now.
    pub slice: Bytes,
    /// Bytes the device could transfer during one switch.
    pub depth: Bytes,
}

/// A fetch that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Waiting {
    /// Where it begins, in bytes from the device's beginning.
    pub position: u64,
    /// The amount of the device's work at which it is due, in bytes: see the [module](self). 0 of a
    /// single read, the first of its reader or at random, which does not wait for a turn.
    pub due: u64,
    /// Whether it is a short read, the first or at random: a switch, and as much again at most.
    pub is_short: bool,
}

impl Waiting {
    /// A fetch at `position` that is due at `due` bytes of work.
    #[must_use]
    pub fn new(position: u64, due: u64) -> Self {
        Self {
            position,
            due,
            is_short: false,
        }
    }
}

/// No slice is longer than so many competitive depths: all others wait for its end.
pub const SLICE_MAX: u64 = 1024;

/// Chooses among waiting fetches. The rules are checked by the suite `conformance` over every entry
/// of [`LIST`].
///
/// The engine guarantees that a fetch is named to [`next`](Dispatch::next) until it is chosen,
/// always with the same position, and in the order of arrival.
///
/// # Examples
/// Shortest seek first would starve a distant stream; this one serves the request that is due
/// first.
///
/// ```
/// use forerun_core::Bytes;
/// use forerun_core::dispatch::{Dispatch, Head, Waiting};
///
/// #[derive(Debug)]
/// struct EarliestDue;
///
/// impl Dispatch for EarliestDue {
///     fn slice(&self, depth: Bytes, _second: Bytes, _runs: usize) -> Bytes {
///         depth
///     }
///     fn next(&self, _head: &Head, waiting: &mut dyn Iterator<Item = Waiting>) -> usize {
///         let due = waiting.enumerate().min_by_key(|(at, one)| (one.due, *at));
///         due.map_or(0, |(at, _)| at)
///     }
/// }
///
/// let head = Head::default();
/// let waiting = [(0, 90), (4096, 30), (8192, 30)].map(|(position, due)| Waiting::new(position, due));
/// assert_eq!(EarliestDue.next(&head, &mut waiting.into_iter()), 1);
/// ```
pub trait Dispatch: core::fmt::Debug + Send {
    /// How long a run may get that starts now. `depth` is the bytes the device could transfer
    /// during one switch, `second` during a second; `runs` is how many runs wait for it, the one
    /// that starts included.
    ///
    /// - It MUST be at least `depth`: less does not pay for the switch.
    /// - It MUST NOT be longer than [`SLICE_MAX`] depths, nor grow with `runs`.
    fn slice(&self, depth: Bytes, second: Bytes, runs: usize) -> Bytes;

    /// The index of the next fetch among the waiting ones, oldest first.
    ///
    /// - It MUST be an index of `waiting`, if that names anything; the engine takes the oldest for
    ///   one that does not exist.
    /// - It MUST depend on the arguments alone.
    /// - It MUST NOT starve a fetch: with n runs that always have another, each is chosen before
    ///   the device has worked for four rounds of n + 1 slices.
    fn next(&self, head: &Head, waiting: &mut dyn Iterator<Item = Waiting>) -> usize;
}
