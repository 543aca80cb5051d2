//! Measure: costs of a device, and the number of requests it works on at a time.
//!
//! Depth is switching cost times transfer rate, and dispatch holds back requests beyond those a
//! device works on: both are wrong on a device without a profile. A method here estimates the two
//! from the requests that complete, as BBR estimates a network's bandwidth and delay (Cardwell et
//! al., ACM Queue 2016): their product is the amount to have in flight.
//!
//! ```text
//! goes out:   limit() -> most requests at a time        expected(distance, bytes) -> kept with the request
//! completes:  ended(sample) -> estimates move           profile() -> depth, slices
//! ```
//!
//! An estimate is state of the engine, moved by inputs alone; so a journal replays with it.

mod costs;
pub mod online;
mod probing;
mod servers;
mod single;
mod together;

use alloc::boxed::Box;

use crate::profile::Profile;
use crate::spec::Method;
use crate::units::{Bytes, Nanos};

/// The measure methods. One entry a method. A profile's figures as they are, the measure `given`, is in
/// `forerun-baselines`.
pub static LIST: &[Method<Box<dyn Measure>>] = &[online::METHOD];

/// A request that was carried out whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Sample {
    /// When it went to the device.
    pub sent: Nanos,
    /// When it completed.
    pub ended: Nanos,
    /// How far from the end of the request sent before it began; 0 if it continued that.
    pub distance: Bytes,
    /// The bytes transferred.
    pub bytes: Bytes,
    /// Requests the device had when it went out, itself included: at least 1.
    pub in_flight: u32,
    /// The same when it completed.
    pub left: u32,
    /// Whether those were as many as it is given.
    pub is_full: bool,
    /// The time [expected](Measure::expected) of all of those together.
    pub ahead: Nanos,
    /// Whether it came several times as late as it should, while others did not: its object may be why.
    pub is_late: bool,
}

/// Where the figures of a device come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Confidence {
    /// Requests the estimate of the costs rests on.
    pub samples: u64,
    /// Those of them that did not continue the one before: without any the switching cost is the profile's.
    pub switches: u64,
    /// Whether the number of servers was seen, not told.
    pub saw_servers: bool,
}

impl Confidence {
    /// Whether the costs are known well enough to give up prefetching for them: 32 requests, and
    /// some of them switches.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.samples >= 32 && self.switches >= 4
    }
}

/// Estimates one device. The rules are checked by the suite `conformance` over every entry of
/// [`LIST`].
///
/// # Examples
/// The profile as it was told, whatever requests take.
///
/// ```
/// use forerun_core::measure::{Confidence, Measure, Sample};
/// use forerun_core::{Bytes, Nanos, Profile};
///
/// #[derive(Debug, Default)]
/// struct Told(Profile);
///
/// impl Measure for Told {
///     fn told(&mut self, profile: &Profile) {
///         self.0 = profile.clone();
///     }
///     fn profile(&self) -> &Profile {
///         &self.0
///     }
///     fn limit(&self) -> u32 {
///         self.0.queue_max()
///     }
///     fn expected(&self, _distance: Bytes, _bytes: Bytes) -> Nanos {
///         Nanos(0)
///     }
///     fn ended(&mut self, _: &Sample) {}
///     fn lost(&mut self, _in_flight: u32) {}
///     fn give_up(&mut self) {}
///     fn confidence(&self) -> Confidence {
///         Confidence::default()
///     }
/// }
///
/// assert!(Told::default().limit() >= 1);
/// ```
pub trait Measure: core::fmt::Debug + Send {
    /// A profile was given: before the first request, or anew.
    fn told(&mut self, profile: &Profile);

    /// The costs as far as they are known, and how many requests the device works on at a time;
    /// [`SERVERS_MAX`](crate::profile::SERVERS_MAX) while that is unknown.
    fn profile(&self) -> &Profile;

    /// Most requests the device should have at a time; MUST be at least 1.
    fn limit(&self) -> u32;

    /// How long a request takes that the device works on alone; MUST NOT be less for more bytes.
    fn expected(&self, distance: Bytes, bytes: Bytes) -> Nanos;

    /// A request was carried out.
    ///
    /// It MUST depend on the profile and on the samples alone, and take any sample there can be:
    /// with no bytes, from times that stand still, go back or jump.
    fn ended(&mut self, sample: &Sample);

    /// A request ended without being carried out whole, so its time says nothing.
    fn lost(&mut self, in_flight: u32);

    /// The device answers nothing for long: no request waits any more for it to be measured.
    fn give_up(&mut self);

    /// Evidence for the figures.
    fn confidence(&self) -> Confidence;
}
