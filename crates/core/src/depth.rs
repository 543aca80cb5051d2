//! Depth: how far to fetch ahead, in bytes, for this stream on this device.
//!
//! Second stage of the pipeline, asked by the engine whenever a detector may open a window. A
//! depth method is a function of facts and keeps no state, so one serves all streams. It knows
//! nothing of memory, beyond being told a stream's share; the engine cuts to it anyway.

pub mod competitive;
pub mod fixed;
pub mod growing;

use alloc::boxed::Box;

use crate::profile::Profile;
use crate::spec::Method;
use crate::units::Bytes;

/// The depth methods. One entry a method.
pub static LIST: &[Method<Box<dyn Depth>>] = &[fixed::METHOD, competitive::METHOD, growing::METHOD];

/// What is known of a stream when its next window is sized.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamFacts {
    /// Bytes its reader asks for now, and surely takes.
    pub asked: Bytes,
    /// Bytes the stream has consumed since it began.
    pub consumed: Bytes,
    /// Its last window.
    pub last_window: Bytes,
    /// Whether its reader had to wait since that window was decided.
    pub waited: bool,
    /// Where on the device the next window begins.
    pub location: Bytes,
}

/// What is known of the device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFacts<'a> {
    /// Its costs.
    pub profile: &'a Profile,
    /// Moving average of recent seek distances.
    pub distance: Bytes,
}

/// Longest window of a stream that has consumed nothing: 1 GiB, or so many competitive depths where
/// that is more. A stream may end at once; then all of it is wasted.
pub const NEW_MAX: Bytes = Bytes(1 << 30);
/// See [`NEW_MAX`]: with 64 depths to a switch 1.5 % of the device's time goes to switching.
pub const NEW_DEPTHS_MAX: u64 = 64;

/// Limits windows. The rules are checked by the suite `conformance` over every entry of [`LIST`].
///
/// The engine asks for each window anew, once a stream is known, and guarantees that `asked` is at
/// least a block and that location and profile are of the device on which the window will lie. It
/// cuts the answer to the stream's share of memory and to what is left of the device's slice.
pub trait Depth: core::fmt::Debug + Send {
    /// The longest window, in bytes. The engine rounds up to blocks.
    ///
    /// - It MUST depend on the arguments alone: one method serves all streams, in any order.
    /// - It MUST be at least `stream.asked`, so that a read never becomes several requests for the
    ///   method's sake. A constant limit is excepted (Linux's `read_ahead_kb` cuts longer reads).
    /// - It MUST NOT be zero.
    /// - It MUST be bounded: without anything consumed by [`NEW_MAX`], the asked bytes or
    ///   [`NEW_DEPTHS_MAX`] competitive depths, later also by the bytes consumed. At most half of
    ///   all bytes fetched then are wasted, whenever the run ends.
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes;
}
