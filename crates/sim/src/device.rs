//! Devices: models of disks and other servers of requests, in virtual time.
//!
//! The world submits requests and advances the device to the time of its next event. A device keeps
//! its own queue, so it may reorder (schedulers) and serve several at once (arrays, flash, object
//! stores). Only the world moves time:
//!
//! ```text
//! submit(now, request) ... next_event() -> t ... advance(t, &mut done) -> completions
//! ```
//!
//! A new device is one file in `device/`, one `mod` line here and one entry in `PARTS`; it then
//! is in [`LIST`], and with it in `forerun list` and the conformance suite, with no other edit.
//! Wrappers around any device are in [`wrap`](crate::wrap). A device described by figures needs no
//! file in `device/` but a TOML file: see [`model`].
//!
//! A device moves no bytes and has no files, only positions on itself.

pub mod array;
pub mod hdd;
pub mod instant;
pub mod model;
pub mod needs;
pub mod object_store;
pub mod scheduler;
pub(crate) mod server;
pub mod ssd;
pub mod switching;

use core::fmt;

use forerun_core::profile::SERVERS_MAX;
use forerun_core::spec::{ChoiceError, Method};
use forerun_core::{Bytes, ErrorCode, Nanos, Profile};

use crate::device::needs::Needs;

/// The devices: one entry a kind, and all built-in models.
const PARTS: &[&[Method<Built>]] = &[
    &[
        instant::METHOD,
        switching::METHOD,
        hdd::METHOD,
        ssd::METHOD,
        object_store::METHOD,
        array::METHOD,
    ],
    model::LISTED,
];

/// The devices that have a name.
pub static LIST: &[Method<Built>] = &joined::<{ PARTS[0].len() + PARTS[1].len() }>(PARTS);

/// A device as its entry builds it.
pub type Built = Result<Box<dyn Device>, DeviceError>;

/// Why a device was not built.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no such device, parameter or scheduler, or a value is out of its range.
    Choice(ChoiceError),
    /// The built-in model of this name cannot be read: a defect of this crate.
    Model(&'static str, ModelError),
}

impl From<ChoiceError> for DeviceError {
    fn from(error: ChoiceError) -> Self {
        Self::Choice(error)
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(error) => error.fmt(f),
            Self::Model(name, error) => write!(f, "built-in model {name}: {error}"),
        }
    }
}

impl core::error::Error for DeviceError {}

/// Several lists as one. A `Method` is no `Copy` type, but its fields are.
const fn joined<const N: usize>(parts: &[&[Method<Built>]]) -> [Method<Built>; N] {
    let mut all = [const { instant::METHOD }; N];
    let (mut part, mut at, mut to) = (0, 0, 0);
    while part < parts.len() {
        if at == parts[part].len() {
            (part, at) = (part + 1, 0);
            continue;
        }
        let Method { spec, build } = parts[part][at];
        all[to] = Method { spec, build };
        (at, to) = (at + 1, to + 1);
    }
    all
}

/// One transfer asked of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The asker's name for it, not in use on this device.
    pub id: u64,
    /// Where on the device it begins.
    pub at: Bytes,
    /// How much to transfer; of nothing, the arm of a disk goes there.
    pub bytes: Bytes,
    /// The process that asks, as far as an operating system tells processes apart.
    pub process: Process,
}

/// A process of the host, to schedulers that distinguish processes; 0 if the request names none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Process(pub u32);

impl Request {
    /// A transfer for no process in particular.
    #[must_use]
    pub fn new(id: u64, at: Bytes, bytes: Bytes) -> Self {
        let process = Process::default();
        Self {
            id,
            at,
            bytes,
            process,
        }
    }

    /// The same, asked for by this process.
    #[must_use]
    pub fn by(self, process: Process) -> Self {
        Self { process, ..self }
    }

    /// The position after the last byte.
    #[must_use]
    pub fn end(&self) -> Bytes {
        Bytes(self.at.0.saturating_add(self.bytes.0))
    }
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything was transferred.
    Done,
    /// Only the first bytes were.
    Short {
        /// How many; fewer than were asked for.
        bytes: Bytes,
    },
    /// Nothing usable was.
    Failed {
        /// The device's error.
        error: ErrorCode,
    },
}

/// A request that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The request.
    pub id: u64,
    /// When it ended.
    pub at: Nanos,
    /// How.
    pub outcome: Outcome,
}

/// Counters of a device so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Requests accepted.
    pub requests: u64,
    /// Bytes asked of it.
    pub bytes: Bytes,
    /// Requests that did not continue where the one before ended.
    pub switches: u64,
    /// Time its servers worked, or will work on accepted requests, added up over servers.
    pub busy: Nanos,
}

impl Usage {
    /// Counts a request that was accepted; `switches` if it did not continue the one before.
    pub(crate) fn count(&mut self, request: &Request, switches: bool) {
        self.requests += 1;
        self.bytes.0 = self.bytes.0.saturating_add(request.bytes.0);
        self.switches += u64::from(switches);
    }
}

/// Something that serves requests in virtual time.
///
/// # Examples
/// One request at a time, 10 ms each.
///
/// ```
/// use forerun_core::{Bytes, Nanos, Profile};
/// use forerun_sim::device::{Completion, Device, Outcome, Request, Usage};
///
/// #[derive(Clone, Debug, Default)]
/// struct TenMs {
///     ends: Vec<Completion>,
///     usage: Usage,
/// }
///
/// impl Device for TenMs {
///     fn profile(&self) -> Profile {
///         Profile::default()
///     }
///     fn submit(&mut self, now: Nanos, request: Request) {
///         let begin = self.ends.last().map_or(now, |last| last.at.max(now));
///         let at = Nanos(begin.0 + 10_000_000);
///         self.usage.requests += 1;
///         self.usage.switches += 1;
///         self.usage.bytes.0 += request.bytes.0;
///         self.usage.busy.0 += 10_000_000;
///         self.ends.push(Completion { id: request.id, at, outcome: Outcome::Done });
///     }
///     fn next_event(&self) -> Option<Nanos> {
///         self.ends.first().map(|end| end.at)
///     }
///     fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
///         let ended = self.ends.iter().take_while(|end| end.at <= now).count();
///         done.extend(self.ends.drain(..ended));
///     }
///     fn usage(&self) -> Usage {
///         self.usage
///     }
/// }
///
/// forerun_sim::conformance::device(&|| Box::new(TenMs::default()), 1)?;
/// # Ok::<(), String>(())
/// ```
pub trait Device: core::fmt::Debug {
    /// The costs of this device for an engine; `forerun profile` would measure the same.
    fn profile(&self) -> Profile;

    /// Accepts a request. `now` never decreases from call to call, of this or of
    /// [`advance`](Device::advance).
    fn submit(&mut self, now: Nanos, request: Request);

    /// When to call [`advance`](Device::advance) next; `None` while there is nothing to wait for.
    fn next_event(&self) -> Option<Nanos>;

    /// Moves on to `now` and appends every request that has ended by then, in the order of time.
    /// Each request ends exactly once.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// The counters so far.
    fn usage(&self) -> Usage;

    /// Whether this process must sleep before it asks for more, as the queue in front of it is full. It refuses
    /// nothing.
    fn is_full_for(&self, _process: Process) -> bool {
        false
    }

    /// Whether the queue in front of it is congested, so that kernels refuse readahead. Its user tells the engine.
    fn is_congested(&self) -> bool {
        false
    }

    /// Number of requests it can work on at once: `busy` grows at most this much faster than time.
    fn servers(&self) -> u32 {
        1
    }

    /// Its size in bytes, if it has an end: reads beyond it fail.
    fn capacity(&self) -> Option<Bytes> {
        None
    }

    /// A lower bound on the time to deliver `needs`, from the first request's submission, for this
    /// device in its present state. Zero for an unknown bound.
    fn least(&self, _needs: &Needs) -> Nanos {
        Nanos(0)
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn profile(&self) -> Profile {
        (**self).profile()
    }
    fn submit(&mut self, now: Nanos, request: Request) {
        (**self).submit(now, request);
    }
    fn next_event(&self) -> Option<Nanos> {
        (**self).next_event()
    }
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        (**self).advance(now, done);
    }
    fn is_full_for(&self, process: Process) -> bool {
        (**self).is_full_for(process)
    }
    fn is_congested(&self) -> bool {
        (**self).is_congested()
    }
    fn usage(&self) -> Usage {
        (**self).usage()
    }
    fn servers(&self) -> u32 {
        (**self).servers()
    }
    fn capacity(&self) -> Option<Bytes> {
        (**self).capacity()
    }
    fn least(&self, needs: &Needs) -> Nanos {
        (**self).least(needs)
    }
}

/// So many servers, as a profile states them.
pub(crate) fn stated(servers: u32) -> u32 {
    servers.clamp(1, SERVERS_MAX - 1)
}

pub use model::{Model, ModelError, from_toml};

pub use crate::scheduled::parse;

/// The time `bytes` take at `rate` bytes per second, rounded up to a nanosecond.
#[must_use]
pub fn transfer_time(bytes: Bytes, rate: u64) -> Nanos {
    let nanos = (u128::from(bytes.0) * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_built_from_its_name_and_parameters() {
        let device = parse("switching(cost_ns=5000,rate_bytes_per_second=1000000)").unwrap();
        assert_eq!(
            device.profile(),
            Profile::constant(Nanos(5000), 1_000_000)
                .and_then(|p| p.with_servers(1))
                .unwrap()
        );
        assert!(parse("swiching").is_err());
        assert!(parse("switching(cost_ns=99999999999999)").is_err());
    }

    /// A model is in the list by its one entry, and an entry of the list is a device.
    #[test]
    fn every_listed_device_is_built_and_every_built_in_model_is_listed() {
        for method in LIST {
            let built = parse(method.spec.name);
            assert!(built.is_ok(), "{}", built.unwrap_err());
        }
        for (name, _) in model::BUILT_IN {
            assert!(
                LIST.iter().any(|method| method.spec.name == *name),
                "{name}"
            );
        }
        let mut names: Vec<_> = LIST.iter().map(|method| method.spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), LIST.len());
    }

    #[test]
    fn what_stands_around_a_device_is_named_before_it() {
        let array = parse("array(disks=3):hp97560").unwrap();
        let one = parse("hp97560").unwrap();
        assert_eq!(
            array.capacity().unwrap().0 / 3,
            one.capacity().unwrap().0 / 8192 * 8192
        );
        for wrong in [
            "array:",
            "array(disks=0):ssd",
            "array(disk=2):ssd",
            "ssd:ssd",
            ":ssd",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn transfer_time_rounds_up_and_never_overflows() {
        assert_eq!(transfer_time(Bytes(1), 3), Nanos(333_333_334));
        assert_eq!(transfer_time(Bytes(0), 0), Nanos(0));
        assert_eq!(transfer_time(Bytes(u64::MAX), 1), Nanos(u64::MAX));
    }
}
