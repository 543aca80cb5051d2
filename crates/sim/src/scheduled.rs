//! A device by name with a scheduler in front of each of its disks.
//!
//! An array serves as many requests at once as it has disks, and a scheduler in front of all of it
//! would give it one at a time. So the scheduler goes where it has a meaning, in front of each
//! part that serves one:
//!
//! ```text
//! behind("array(disks=4):hp97560", "sstf")   =   array(disks=4):sstf:hp97560
//! ```
//!
//! A part that works on several requests at once (flash, an object store) has no order to choose,
//! and one that names a scheduler of its own has chosen: both are refused with their names.

use core::fmt;

use forerun_core::spec::{Choice, ChoiceError};

use crate::device::{Device, LIST, Model, array, instant, parse};
use crate::scheduler;
use crate::wrap::Queued;

/// The scheduler that is none: a device serves its requests in order of arrival by itself.
pub const NONE: &str = "fcfs";

/// Why a scheduler cannot stand in front of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BehindError {
    /// There is no such device or scheduler.
    Choice(ChoiceError),
    /// The device names this one.
    Own(String),
    /// The device works on so many requests at once.
    Servers(String, u32),
}

impl From<ChoiceError> for BehindError {
    fn from(error: ChoiceError) -> Self {
        Self::Choice(error)
    }
}

impl fmt::Display for BehindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(error) => error.fmt(f),
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

/// The scheduler that a device names, if it names one.
#[must_use]
pub fn own(text: &str) -> Option<&str> {
    let (around, inner) = text.split_once(':')?;
    if scheduler::parse(around).is_ok() {
        return Some(around);
    }
    own(inner)
}

/// Builds a device by name, with this scheduler in front of each of its disks.
///
/// # Errors
/// See [`BehindError`].
pub fn behind(text: &str, scheduler: &str) -> Result<Box<dyn Device>, BehindError> {
    let is_array = |part: &str| part.split('(').next() == Some(array::METHOD.spec.name);
    let (around, inner) = match text.split_once(':') {
        Some((around, inner)) if is_array(around) => (around, inner),
        Some((around, _)) => {
            // A device in front of another is refused by whoever reads names.
            parse(text)?;
            return Err(BehindError::Own(around.to_owned()));
        }
        None if is_array(text) => (text, array::LISTED_PART),
        None => return around(text, parse(text)?, scheduler),
    };
    let choice = Choice::parse("device", LIST, around)?;
    behind(inner, scheduler)?;
    // The same text gave a device just now.
    let part = || {
        let part = behind(inner, scheduler);
        part.unwrap_or_else(|_| Box::new(instant::Instant::default()))
    };
    Ok(array::Array::boxed(&choice.values, &part))
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
    around(name, model.build(), scheduler)
}

fn around(
    name: &str,
    device: Box<dyn Device>,
    scheduler: &str,
) -> Result<Box<dyn Device>, BehindError> {
    let order = scheduler::parse(scheduler)?;
    if scheduler == NONE {
        return Ok(device);
    }
    match device.servers() {
        0 | 1 => Ok(Box::new(Queued::new(order, device))),
        many => Err(BehindError::Servers(name.to_owned(), many)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Request;
    use forerun_core::{Bytes, Nanos};

    /// When these reads end, all asked for at once.
    fn ends(mut device: Box<dyn Device>) -> Vec<(u64, Nanos)> {
        for id in 0..40 {
            let (at, bytes) = (Bytes(id * 7_919 % 40 * 8_192), Bytes(8_192));
            device.submit(Nanos(0), Request { id, at, bytes });
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
