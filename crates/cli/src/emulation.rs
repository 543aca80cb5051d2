//! The device a user asks for with `--emulate switching=8ms,rate=80MB/s`.
//!
//! Parsed by `args`, handed to the throttle in real time and to the switching device in virtual
//! time. One switching cost whatever the distance, one rate everywhere; a measured profile goes to
//! `--profile` instead, which slows nothing down.

use std::fmt;
use std::str::FromStr;

use forerun_core::profile::ProfileError;
use forerun_core::{Nanos, Profile};

use crate::quantity::{self, QuantityError};

/// One server: a switch unless a request continues where the last one ended, then a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emulation {
    /// What a switch costs.
    pub switching: Nanos,
    /// What a transfer runs at.
    pub bytes_per_second: u64,
}

/// Why a device cannot be emulated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// Not a list of `name=value`.
    #[error("{0:?} is not of the form switching=8ms,rate=80MB/s")]
    Form(String),
    /// A cost there is not.
    #[error("no cost {0:?}: give switching and rate, as in switching=8ms,rate=80MB/s")]
    Unknown(String),
    /// One of the two was given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// One of the two is missing.
    #[error("{0} is missing: give both, as in switching=8ms,rate=80MB/s")]
    Missing(&'static str),
    /// A value that cannot be read.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// A value out of range.
    #[error("{0}")]
    Range(ProfileError),
}

impl Emulation {
    /// What the engine is told of such a device.
    #[must_use]
    pub fn profile(&self) -> Profile {
        // Checked when it was made, so the default is never taken.
        let profile = Profile::constant(self.switching, self.bytes_per_second);
        profile.and_then(|p| p.with_servers(1)).unwrap_or_default()
    }
}

impl Default for Emulation {
    /// The device of `Profile::default`: what is taken for one that nobody measured.
    fn default() -> Self {
        Self {
            switching: Nanos(8_000_000),
            bytes_per_second: 80_000_000,
        }
    }
}

impl FromStr for Emulation {
    type Err = EmulationError;

    fn from_str(text: &str) -> Result<Self, EmulationError> {
        let (mut switching, mut rate) = (None, None);
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| EmulationError::Form(text.to_owned()))?;
            match name.trim() {
                "switching" => {
                    set(
                        "switching",
                        &mut switching,
                        quantity::parse_duration(value)?,
                    )?;
                }
                "rate" => set("rate", &mut rate, quantity::parse_rate(value)?)?,
                other => return Err(EmulationError::Unknown(other.to_owned())),
            }
        }
        let switching = switching.ok_or(EmulationError::Missing("switching"))?;
        let bytes_per_second = rate.ok_or(EmulationError::Missing("rate"))?;
        Profile::constant(switching, bytes_per_second).map_err(EmulationError::Range)?;
        Ok(Self {
            switching,
            bytes_per_second,
        })
    }
}

fn set<T>(name: &'static str, slot: &mut Option<T>, value: T) -> Result<(), EmulationError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(EmulationError::Twice(name)),
    }
}

impl fmt::Display for Emulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = quantity::size(self.bytes_per_second.into());
        write!(
            f,
            "switching={},rate={rate}/s",
            quantity::duration(self.switching)
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_costs_are_wanted_once_and_in_range() {
        let read = |text: &str| text.parse::<Emulation>().map_err(|e| e.to_string());
        assert_eq!(read("switching=8ms,rate=80MB/s"), Ok(Emulation::default()));
        assert_eq!(read("rate=80MB, switching=8ms"), Ok(Emulation::default()));
        assert!(read("8ms").unwrap_err().contains("is not of the form"));
        assert_eq!(
            read("rate=1MB,rate=1MB").unwrap_err(),
            "rate is given twice"
        );
        assert!(
            read("switching=8ms")
                .unwrap_err()
                .starts_with("rate is missing")
        );
        assert!(
            read("seek=8ms,rate=1MB")
                .unwrap_err()
                .starts_with("no cost \"seek\"")
        );
        assert!(
            read("switching=8,rate=1MB")
                .unwrap_err()
                .contains("\"8\" has no unit")
        );
        assert!(
            read("switching=8ms,rate=1B")
                .unwrap_err()
                .contains("must lie from 1000")
        );
        assert!(
            read("switching=2min,rate=1MB")
                .unwrap_err()
                .contains("must lie from 0")
        );
    }

    #[test]
    fn the_default_costs_what_is_taken_for_a_device_nobody_measured() {
        assert_eq!(
            Emulation::default().profile(),
            Profile::default().with_servers(1).unwrap()
        );
    }

    proptest! {
        #[test]
        fn what_was_printed_is_read_back(
            switching in 0_u64..=60_000_000_000,
            bytes_per_second in 1_000_u64..=1_000_000_000_000,
        ) {
            let emulation = Emulation { switching: Nanos(switching), bytes_per_second };
            prop_assert_eq!(emulation.to_string().parse(), Ok(emulation));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|(switching|rate)[=,0-9a-zA-Z./]*") {
            let _ = text.parse::<Emulation>();
        }
    }
}
