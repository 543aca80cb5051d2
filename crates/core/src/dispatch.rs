//! Dispatch: which waiting fetch a device gets next.
//!
//! Fourth stage of the pipeline, asked by the engine whenever a device can take one more. Fetches
//! wait in the engine's queue while the device has as much as it can work on, and one more so that
//! it never runs idle; how much that is says its [profile](crate::Profile::servers). A device that
//! nobody described takes everything at once, and the order is its own.
//!
//! A method sees positions only. It does not know readers, and it cannot hold a fetch back.

pub mod continuing;
pub mod fifo;

use alloc::boxed::Box;

use crate::spec::Method;
use crate::units::Bytes;

/// The dispatch methods. One entry a method.
pub static LIST: &[Method<Box<dyn Dispatch>>] = &[fifo::METHOD, continuing::METHOD];

/// Where a device stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Where the last fetch handed to it ends.
    pub position: u64,
    /// Bytes handed to it since it last had to switch.
    pub run: Bytes,
    /// How long that run may get while others wait: what [`Dispatch::slice`] said at the switch.
    pub slice: Bytes,
}

/// Chooses among waiting fetches.
pub trait Dispatch: core::fmt::Debug + Send {
    /// Whether the order is worth more than early hand-over: fetches then wait in our queue, and
    /// windows go out in at least two pieces, so that a reader can ask for the next window while
    /// the last piece of this one is under way.
    fn holds_back(&self) -> bool;

    /// How long a run may get that starts now. `depth` is what the device could transfer during
    /// one switch; `runs` is how many runs wait for it, the one that starts included.
    fn slice(&self, depth: Bytes, runs: usize) -> Bytes;

    /// The index of the next fetch among the positions of the waiting ones, oldest first. An
    /// index that does not exist means the oldest.
    fn next(&self, head: &Head, waiting: &mut dyn Iterator<Item = u64>) -> usize;
}
