//! The device a user asks for with `--emulate switching=8ms,rate=80MB/s`, or with `,servers=8`
//! behind it; `,disks=4,strip=64KiB` makes an [array](crate::striping) of such devices.
//!
//! Parsed by `args`, run by `forerun-emulated` in real time and by [`bench::modelled`](crate::bench::modelled)
//! in virtual time. One switching cost at every
//! distance, one rate everywhere, which several servers share; a measured profile goes to
//! `--profile` instead, which slows nothing down.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use forerun_core::profile::{ProfileError, SERVERS_MAX};
use forerun_emulated::Emulation;

use crate::quantity::{self, QuantityError};
use crate::striping::{Parts, Striping, StripingError};

/// Emulated devices of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EmulatedStorage {
    /// One device.
    pub device: Emulation,
    /// So many of it make an array.
    pub array: Option<Striping>,
}

/// Servers that can be emulated: those a profile may state.
const SERVERS: RangeInclusive<u32> = 1..=SERVERS_MAX;

/// Slowest rate that several servers share: then each of them has a thousand bytes a second, the
/// least that a profile may state.
const SHARED_RATE_MIN: u64 = 1_000_000;

/// Why a device cannot be emulated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// Not a list of `name=value`.
    #[error("{0:?} is not of the form switching=8ms,rate=80MB/s[,servers=1][,disks=4,strip=64KiB]")]
    Form(String),
    /// A cost there is not.
    #[error(
        "no cost {0:?}: give switching, rate and servers, as in switching=8ms,rate=80MB/s,servers=1, and for an \
         array disks and strip"
    )]
    Unknown(String),
    /// One was given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// One that must be given is missing.
    #[error("{0} is missing: give at least switching and rate, as in switching=8ms,rate=80MB/s")]
    Missing(&'static str),
    /// A number of servers that cannot be read, or out of range.
    #[error(
        "servers={0}: must be a whole number from {min} to {max}",
        min = SERVERS.start(), max = SERVERS.end()
    )]
    Servers(String),
    /// Several servers with less than [`SHARED_RATE_MIN`].
    #[error("rate of {0} bytes/s: several servers share at least {SHARED_RATE_MIN}")]
    SharedRate(u64),
    /// An array there is not.
    #[error(transparent)]
    Striping(#[from] StripingError),
    /// A value that cannot be read.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// A value out of range.
    #[error("{0}")]
    Range(ProfileError),
}

impl FromStr for EmulatedStorage {
    type Err = EmulationError;

    fn from_str(text: &str) -> Result<Self, EmulationError> {
        let (mut switching, mut rate, mut servers) = (None, None, None);
        let mut array = Parts::default();
        for part in text.split(',') {
            if array.take(part)? {
                continue;
            }
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
                "servers" => set("servers", &mut servers, parse_servers(value)?)?,
                other => return Err(EmulationError::Unknown(other.to_owned())),
            }
        }
        let switching = switching.ok_or(EmulationError::Missing("switching"))?;
        let bytes_per_second = rate.ok_or(EmulationError::Missing("rate"))?;
        let servers = servers.unwrap_or(1);
        let device = Emulation::new(switching, bytes_per_second, servers);
        let device = device.map_err(EmulationError::Range)?;
        if servers > 1 && bytes_per_second < SHARED_RATE_MIN {
            return Err(EmulationError::SharedRate(bytes_per_second));
        }
        let array = array.finish()?;
        Ok(Self { device, array })
    }
}

fn parse_servers(text: &str) -> Result<u32, EmulationError> {
    let servers = text.trim().parse().ok();
    let servers = servers.filter(|servers| SERVERS.contains(servers));
    servers.ok_or_else(|| EmulationError::Servers(text.to_owned()))
}

fn set<T>(name: &'static str, slot: &mut Option<T>, value: T) -> Result<(), EmulationError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(EmulationError::Twice(name)),
    }
}

impl fmt::Display for EmulatedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = quantity::typed(self.device.bytes_per_second().into());
        let switching = quantity::duration(self.device.switching());
        write!(f, "switching={switching},rate={rate}/s")?;
        if self.device.servers() != 1 {
            write!(f, ",servers={}", self.device.servers())?;
        }
        self.array.map_or(Ok(()), |array| write!(f, ",{array}"))
    }
}

#[cfg(test)]
mod tests {
    use forerun_core::Nanos;
    use proptest::prelude::*;

    use super::*;

    fn disk() -> EmulatedStorage {
        EmulatedStorage {
            device: Emulation::new(Nanos(8_000_000), 80_000_000, 1).unwrap(),
            array: None,
        }
    }

    #[test]
    fn both_costs_are_wanted_once_and_in_range_and_servers_may_be_given() {
        let read = |text: &str| text.parse::<EmulatedStorage>().map_err(|e| e.to_string());
        assert_eq!(read("switching=8ms,rate=80MB/s"), Ok(disk()));
        assert_eq!(read("rate=80MB, switching=8ms"), Ok(disk()));
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
                .contains("must be a whole number from 1000")
        );
        let several = read("servers=8,switching=1ms,rate=300MB/s").unwrap();
        assert_eq!(several.device.servers(), 8);
        assert_eq!(several.to_string(), "switching=1ms,rate=300MB/s,servers=8");
        assert_eq!(read("switching=8ms,rate=80MB/s,servers=1"), Ok(disk()));
        for wrong in ["0", "1025", "-1", "1.5", "many", ""] {
            assert_eq!(
                read(&format!("switching=8ms,rate=80MB/s,servers={wrong}")).unwrap_err(),
                format!("servers={wrong}: must be a whole number from 1 to 1024")
            );
        }
        assert_eq!(
            read("switching=8ms,rate=999999B,servers=2").unwrap_err(),
            "rate of 999999 bytes/s: several servers share at least 1000000"
        );
        assert!(
            read("switching=2min,rate=1MB")
                .unwrap_err()
                .contains("must be a whole number from 0")
        );
    }

    proptest! {
        #[test]
        fn what_was_printed_is_read_back(
            switching in 0_u64..=60_000_000_000,
            bytes_per_second in 1_000_000_u64..=1_000_000_000_000,
            servers in SERVERS,
            array: bool,
        ) {
            let switching = Nanos(switching);
            let device = Emulation::new(switching, bytes_per_second, servers).unwrap();
            let array = array.then(|| "disks=4,strip=64KiB,raid5".parse().unwrap());
            let emulation = EmulatedStorage { device, array };
            prop_assert_eq!(emulation.to_string().parse(), Ok(emulation));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|(switching|rate|servers|strip|disks)[=,0-9a-zA-Z./]*") {
            let _ = text.parse::<EmulatedStorage>();
        }
    }
}
