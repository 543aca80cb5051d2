//! Devices by name, and the wrappers around them: arrays, and a scheduler in front of each disk.
//!
//! A name is a device with the wrappers around it, outermost first:
//!
//! ```text
//! array(disks=4) : cscan : hp97560          [array(disks=4), cscan] around hp97560
//! ```
//!
//! An array serves as many requests at once as it has disks, and a scheduler in front of all of it
//! would give it one at a time. So [`behind`] puts it where it has a meaning, in front of each
//! part that serves one:
//!
//! ```text
//! behind("array(disks=4):hp97560", "sstf")   =   array(disks=4):sstf:hp97560
//! ```
//!
//! A part that works on several requests at once (flash, an object store) has no order to choose,
//! and one that names a scheduler of its own has chosen: both are refused with their names.

use core::fmt;

use forerun_core::Bytes;
use forerun_core::spec::{Choice, ChoiceError};

use crate::device::scheduler;
use crate::device::{Built, Device, DeviceError, LIST, Model, array};
use crate::wrap::Queued;

/// The scheduler that is none: a device serves its requests in order of arrival by itself.
pub const NONE: &str = "fcfs";

/// Why a scheduler cannot stand in front of a device.
#[derive(Clone, PartialEq, Debug)]
pub enum BehindError {
    /// There is no such device or scheduler.
    Device(DeviceError),
    /// The device names this one.
    Own(String),
    /// The device works on this number of requests at once.
    Servers(String, u32),
}

impl<E: Into<DeviceError>> From<E> for BehindError {
    fn from(error: E) -> Self {
        Self::Device(error.into())
    }
}

impl fmt::Display for BehindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::Own(name) => write!(f, "the device names a scheduler of its own, {name}"),
            Self::Servers(device, servers) => write!(
                f,
                "{device} works on {servers} requests at once, so none waits to be put in order; \
                 {NONE} is accepted"
            ),
        }
    }
}

impl core::error::Error for BehindError {}

/// The wrappers around a device.
#[derive(Debug)]
enum Around<'a> {
    Array(Choice<Built>),
    Scheduler(&'a str),
}

/// A name, read.
#[derive(Debug)]
struct Named<'a> {
    /// Outermost first.
    around: Vec<Around<'a>>,
    /// The device inside: as it was written, and as it was understood.
    text: &'a str,
    part: Choice<Built>,
}

impl<'a> Named<'a> {
    fn read(text: &'a str) -> Result<Self, ChoiceError> {
        let is_array = |part: &str| part.split('(').next() == Some(array::METHOD.spec.name);
        let (mut around, mut text) = (Vec::new(), text);
        while let Some((outer, inner)) = text.split_once(':') {
            around.push(if is_array(outer) {
                Around::Array(Choice::parse("device", LIST, outer)?)
            } else {
                scheduler::parse(outer)?;
                Around::Scheduler(outer)
            });
            text = inner;
        }
        if is_array(text) {
            around.push(Around::Array(Choice::parse("device", LIST, text)?));
            text = array::LISTED_PART;
        }
        let part = Choice::parse("device", LIST, text)?;
        Ok(Self { around, text, part })
    }

    /// The outermost scheduler in it.
    fn own(&self) -> Option<&'a str> {
        self.around.iter().find_map(|around| match around {
            Around::Scheduler(name) => Some(*name),
            Around::Array(_) => None,
        })
    }

    /// The device inside, alone.
    fn part(&self) -> Built {
        self.part.build()
    }

    /// All of it, with this scheduler in front of each device inside.
    fn build(&self, scheduler: &str) -> Built {
        self.build_in(&self.around, scheduler)
    }

    fn build_in(&self, around: &[Around<'_>], front: &str) -> Built {
        match around {
            [] if front == NONE => self.part(),
            [] => queued(front, self.part()?),
            [Around::Array(array), inside @ ..] => {
                let of = |param| array.value(param).unwrap_or(1);
                let (disks, strip) = (of("disks"), Bytes(of("strip_bytes")));
                array::Array::boxed(disks, strip, &|| self.build_in(inside, front))
            }
            [Around::Scheduler(own), inside @ ..] => queued(own, self.build_in(inside, front)?),
        }
    }
}

fn queued(scheduler: &str, device: Box<dyn Device>) -> Built {
    Ok(Box::new(Queued::new(scheduler::parse(scheduler)?, device)))
}

/// Builds a device from `name` or `name(param=value,..)`, or one around another: an array of
/// it, or a [scheduler] in front of it, outermost first:
///
/// ```
/// let four = forerun_sim::device::parse("array(disks=4,strip_bytes=8192):cscan:hp97560")?;
/// assert_eq!(four.servers(), 4);
/// # Ok::<(), forerun_sim::device::DeviceError>(())
/// ```
///
/// # Errors
/// An unknown device or parameter, or a value out of its range.
pub fn parse(text: &str) -> Built {
    Named::read(text)?.build(NONE)
}

/// The scheduler that a device names, if it names one.
#[must_use]
pub fn own(text: &str) -> Option<&str> {
    Named::read(text).ok()?.own()
}

/// Builds a device by name, with this scheduler in front of each of its disks.
///
/// # Errors
/// See [`BehindError`].
pub fn behind(text: &str, scheduler: &str) -> Result<Box<dyn Device>, BehindError> {
    let named = Named::read(text)?;
    if let Some(own) = named.own() {
        return Err(BehindError::Own(own.to_owned()));
    }
    check(named.text, &*named.part()?, scheduler)?;
    Ok(named.build(scheduler)?)
}

/// Builds a device of a model, of this name, with a scheduler in front.
///
/// # Errors
/// See [`BehindError`].
pub fn model_behind(
    name: &str,
    model: &Model,
    scheduler: &str,
) -> Result<Box<dyn Device>, BehindError> {
    let device = model.build();
    check(name, &*device, scheduler)?;
    match scheduler {
        NONE => Ok(device),
        _ => Ok(queued(scheduler, device)?),
    }
}

/// Whether this scheduler has an order to choose on a device of this name.
fn check(name: &str, device: &dyn Device, scheduler: &str) -> Result<(), BehindError> {
    scheduler::parse(scheduler)?;
    match device.servers() {
        many @ 2.. if scheduler != NONE => Err(BehindError::Servers(name.to_owned(), many)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Request;
    use forerun_core::Nanos;

    /// When these reads end, all asked for at once.
    fn ends(mut device: Box<dyn Device>) -> Vec<(u64, Nanos)> {
        for id in 0..40 {
            let (at, bytes) = (Bytes(id * 7_919 % 40 * 8_192), Bytes(8_192));
            device.submit(Nanos(0), Request::new(id, at, bytes));
        }
        let mut done = Vec::new();
        while let Some(next) = device.next_event() {
            device.advance(next, &mut done);
        }
        let mut ends: Vec<_> = done.iter().map(|one| (one.id, one.at)).collect();
        ends.sort_unstable();
        ends
    }

    #[test]
    fn every_disk_of_an_array_gets_its_scheduler() {
        let one = |text: &str| ends(parse(text).unwrap());
        let two = |text: &str| ends(behind(text, "sstf").unwrap());
        let wanted = one("array(disks=3):sstf:hp97560");
        assert_eq!(two("array(disks=3):hp97560"), wanted);
        assert_eq!(two("array(disks=3)"), wanted);
        assert_ne!(one("array(disks=3):hp97560"), wanted);
        let nested = one("array(disks=2):array(disks=2):sstf:hp97560");
        assert_eq!(two("array(disks=2):array(disks=2):hp97560"), nested);
    }

    #[test]
    fn what_has_no_order_or_one_of_its_own_is_refused() {
        let refused = |text: &str| behind(text, "look").unwrap_err().to_string();
        assert!(refused("ssd").contains("8 requests at once"));
        assert!(refused("array(disks=2):object_store").contains("256 requests"));
        assert!(refused("array:sstf:hp97560").contains("sstf"));
        assert!(refused("array(disks=0):hp97560").contains("disks"));
        assert!(refused("ssd:ssd").contains("ssd"));
        assert!(behind("ssd", NONE).is_ok());
        assert_eq!(own("array(disks=2):sstf:hp97560"), Some("sstf"));
        assert_eq!(own("array(disks=2):hp97560"), None);
    }
}
