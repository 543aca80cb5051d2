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
///
/// # Examples
/// A device that takes no time, in front of a driver.
///
/// ```
/// use std::sync::Arc;
///
/// use forerun_core::{Bytes, Profile, preset};
/// use forerun_io::backend::{Backend, Request, Sink};
/// use forerun_io::emulate::{DeviceUse, Emulate, Emulated};
/// use forerun_io::wrap::Start;
/// use forerun_io::{Config, Driver, Error};
///
/// struct Free;
/// struct Passing(Arc<dyn Backend>);
///
/// impl Backend for Passing {
///     fn submit(&self, request: Box<Request>) {
///         self.0.submit(request);
///     }
///     fn stop(&self) {
///         self.0.stop();
///     }
/// }
///
/// impl Emulated for Passing {
///     fn used(&self) -> DeviceUse {
///         DeviceUse::default()
///     }
/// }
///
/// impl Emulate for Free {
///     fn profile(&self) -> Profile {
///         Profile::default()
///     }
///     fn start(self: Box<Self>, sink: Arc<dyn Sink>, inner: Start<'_>) -> Result<Arc<dyn Emulated>, Error> {
///         Ok(Arc::new(Passing(inner(sink)?)))
///     }
/// }
///
/// let mut config = Config::new(preset::default().settings(Bytes(16 << 20))?);
/// config.lab.emulate = Some(Box::new(Free));
/// let driver = Driver::new(config)?;
/// let reader = driver.open_generated(1, 0, 100_000)?;
/// assert_eq!(reader.read_at(&mut [0; 4096], 0)?, 4096);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

/// A device at work: the backend around the driver's own. [`Emulate`] has an example.
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
    /// How late requests were handed over, added up: the error of times measured on it.
    pub late: Nanos,
    /// How late the latest was.
    pub late_max: Nanos,
    /// Whether its threads have real-time priority: without it they are late where processors are busy.
    pub is_realtime: bool,
}
