//! Wrappers: devices around a device, each with one addition.
//!
//! Any wrapper fits around any device or wrapper, because a [`Wrapped`] is itself a [`Device`]. It
//! reports the profile and counters of the device inside; its [`Layer`] sees requests and
//! completions, and may hold them, order them or change an outcome. The costs of a request are left
//! to the device inside, and nothing ends sooner than there.
//!
//! ```text
//! submit -> layer -> device inside -> layer -> completions
//! ```
//!
//! A new wrapper is one file in `wrap/` with a layer, and one `mod` line here.

pub mod fault;
pub mod meter;
pub mod queued;

pub use fault::{Fault, Faults};
pub use meter::Meter;
pub use queued::Queued;

use forerun_core::{Bytes, Nanos, Profile};

use crate::device::needs::Needs;
use crate::device::{Completion, Device, Process, Request, Usage};

/// The changes of a wrapper to the device inside. Functions left out pass on to it; the contract
/// of each function is that of [`Device`].
///
/// # Examples
/// Counts the requests that pass.
///
/// ```
/// use forerun_core::{Bytes, Nanos};
/// use forerun_sim::device::instant::Instant;
/// use forerun_sim::device::{Device, Request};
/// use forerun_sim::wrap::{Layer, Wrapped};
///
/// #[derive(Debug, Default)]
/// struct Count(u64);
///
/// impl Layer for Count {
///     fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
///         self.0 += 1;
///         inner.submit(now, request);
///     }
/// }
///
/// let mut device = Wrapped::around(Count::default(), Instant::default());
/// device.submit(Nanos(0), Request::new(0, Bytes(0), Bytes(4096)));
/// assert_eq!(device.usage().requests, 1);
/// ```
pub trait Layer: core::fmt::Debug {
    /// A request comes in.
    fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
        inner.submit(now, request);
    }

    /// When it must be asked next.
    fn next_event<D: Device>(&self, inner: &D) -> Option<Nanos> {
        inner.next_event()
    }

    /// Requests go out.
    fn advance<D: Device>(&mut self, inner: &mut D, now: Nanos, done: &mut Vec<Completion>) {
        inner.advance(now, done);
    }

    /// Whether a process must sleep before it asks for more.
    fn is_full_for<D: Device>(&self, inner: &D, process: Process) -> bool {
        inner.is_full_for(process)
    }

    /// Whether the queue in front of the device is congested.
    fn is_congested<D: Device>(&self, inner: &D) -> bool {
        inner.is_congested()
    }

    /// Its counters, seen from outside.
    fn usage<D: Device>(&self, inner: &D) -> Usage {
        inner.usage()
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Wrapped<L, D> {
    layer: L,
    inner: D,
}

impl<L: Layer, D: Device> Wrapped<L, D> {
    /// A layer around a device.
    pub fn around(layer: L, inner: D) -> Self {
        Self { layer, inner }
    }
}

impl<L: Layer, D: Device> Device for Wrapped<L, D> {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.layer.submit(&mut self.inner, now, request);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.layer.next_event(&self.inner)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.layer.advance(&mut self.inner, now, done);
    }

    fn is_full_for(&self, process: Process) -> bool {
        self.layer.is_full_for(&self.inner, process)
    }

    fn is_congested(&self) -> bool {
        self.layer.is_congested(&self.inner)
    }

    fn usage(&self) -> Usage {
        self.layer.usage(&self.inner)
    }

    fn servers(&self) -> u32 {
        self.inner.servers()
    }

    fn capacity(&self) -> Option<Bytes> {
        self.inner.capacity()
    }

    /// A layer hastens nothing.
    fn least(&self, needs: &Needs) -> Nanos {
        self.inner.least(needs)
    }
}
