//! A device in front of the real ones, for experiments: a program brings it, the driver puts it in place.
//!
//! [`Lab::emulate`](crate::Lab) takes one. The engine is told the costs of the device, and its requests pass
//! through it on their way to the backend; the crate `forerun-emulated` has devices of the simulator in real time.

use std::sync::Arc;

use forerun_core::{Bytes, Nanos, Profile};

use crate::backend::{Backend, Sink};
use crate::error::Error;
use crate::wrap::Start;

/// A device that is not started yet.
pub trait Emulate: Send {
    /// Its costs.
    fn profile(&self) -> Profile;

    /// Starts it around a backend, reporting to the sink.
    ///
    /// # Errors
    /// The backend inside it cannot start.
    fn start(
        self: Box<Self>,
        sink: Arc<dyn Sink>,
        inner: Start<'_>,
    ) -> Result<Arc<dyn Emulated>, Error>;
}

/// A device at work.
pub trait Emulated: Backend {
    /// Its requests so far.
    fn used(&self) -> DeviceUse;
}

/// The requests of an emulated device, all devices together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceUse {
    /// Requests.
    pub requests: u64,
    /// Those that began where the one before ended.
    pub continued: u64,
    /// Bytes.
    pub bytes: Bytes,
    /// Time its servers worked, added up over servers.
    pub busy: Nanos,
}
