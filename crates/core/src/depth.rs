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

/// Limits windows.
pub trait Depth: core::fmt::Debug + Send {
    /// The longest window, in bytes. The engine rounds up to blocks.
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes;
}
