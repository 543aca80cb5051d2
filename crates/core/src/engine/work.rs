//! Work that a stage leaves behind instead of calling an earlier one, and the time of the input it belongs to.
//!
//! Stages call forward only. A completion lets a read go on, a device with a free slot lets a
//! want be decided: both lead back to the beginning. Such work is listed here, and
//! [`Engine::handle`](super::Engine::handle) takes it up in one loop:
//!
//! ```text
//! Completed -> complete: waiters ------------> reads      -> read.rs from its first missing block
//!              complete: the device ---------> devices    -> send.rs, next request
//! send: the next want has no memory ---------> granted    -> read.rs or window.rs, then send.rs
//! ```
//!
//! Granted requests go first, since their slot is empty until then; devices last, so that they
//! choose among all wants there are. Each entry is a few words on the heap: the depth of the
//! stack does not depend on how many there are.

use alloc::collections::VecDeque;

use crate::protocol::Output;
use crate::queues::Want;
use crate::units::{DeviceId, Nanos, ReadId};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Of the last input.
    pub(super) now: Nanos,
    /// Wants without memory whose device has a slot for them.
    pub(super) granted: VecDeque<(DeviceId, Want)>,
    /// Reads to try.
    pub(super) reads: VecDeque<ReadId>,
    /// Devices to dispatch to.
    pub(super) devices: VecDeque<DeviceId>,
    /// Outputs for the driver.
    pub(super) out: VecDeque<Output>,
}

impl Work {
    /// Whether a want of this device is to be decided.
    pub(super) fn has_granted(&self, device: DeviceId) -> bool {
        self.granted.iter().any(|(id, _)| *id == device)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.reads.is_empty() && self.devices.is_empty()
    }
}
