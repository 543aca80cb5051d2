//! The costs of a device, measured: transfer rate by location and switching cost by distance.
//!
//! Called by `forerun profile` with a file or block device opened for direct reads or an object of a store, and by
//! tests with a modelled one. The method is that of Li et al. 2004, section 3.1, made robust:
//!
//! ```text
//! servers    random reads of 4 and of 128 KiB with 1, 2, 4, .. of them at once: the smallest
//!            number beyond which throughput does not grow
//! rate       at up to 9 locations: read 1 MiB pieces one behind the other, up to 4 at once if the
//!            device serves several; take the median time of a piece
//! switching  at distances 64 KiB, 256 KiB, .. to half the device, 25 pairs each: read 4 KiB at a
//!            random place, then 4 KiB that far away; the second one's time less its transfer is
//!            the cost; take the median of the pairs
//! ```
//!
//! Medians, because other users of the device make some reads slower and a cache in the device
//! makes a few faster. For a store reached over a network the switching cost is the request's
//! latency, and the rate that of one stream as it is read ahead: the competitive depth needs these.
//! Every step has a deadline; all together end within two minutes unless a single read hangs.
//!
//! A file's offsets stand for places on its device: right for a large file that lies in few
//! pieces. It does not write.

mod direct;
mod rate;
pub mod read_ahead;
mod remote;
mod servers;
mod switching;
mod threads;

use std::io;
use std::path::Path;

use forerun_core::profile::{ProfileError, RATE_RANGE, SWITCHING_MAX};
use forerun_core::{Bytes, Nanos, Profile};

pub use direct::Direct;
pub use remote::Remote;

use crate::failure::Failure;
use crate::quantity::size;

/// Something to measure.
pub trait Subject {
    /// Its size.
    fn bytes(&self) -> Bytes;
    /// Reads `count` bytes at `offset`, both multiples of [`UNIT`], and returns the time.
    ///
    /// # Errors
    /// Errors of the read.
    fn read(&mut self, offset: u64, count: usize) -> io::Result<Nanos>;
    /// The same at several places in their order, so many at once; how long all took together.
    ///
    /// # Errors
    /// Errors of one of the reads.
    fn read_together(&mut self, offsets: &[u64], count: usize, at_once: u32) -> io::Result<Nanos>;
    /// Reads at once that it may be asked for.
    fn at_once_max(&self) -> u32 {
        u32::MAX
    }
}

/// Direct reads begin and end at multiples of this: no block device has larger sectors.
pub const UNIT: u64 = 4096;

/// Fewest bytes that can be measured: four locations of four pieces, and three distances.
pub const BYTES_MIN: Bytes = Bytes(16 << 20);

/// The part of a subject that is measured.
///
/// # Errors
/// It is smaller than [`BYTES_MIN`].
fn whole_units(path: &Path, found: Bytes) -> Result<Bytes, Failure> {
    let bytes = Bytes(found.0 / UNIT * UNIT);
    if bytes >= BYTES_MIN {
        return Ok(bytes);
    }
    let (found, wanted) = (size(found), size(BYTES_MIN));
    let why = format!("{found} are too few to measure: must be at least {wanted}");
    Err(Failure::unusable(path, why))
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A read failed.
    #[error("read at byte {offset}: {error}")]
    Read {
        /// Where.
        offset: u64,
        /// How.
        error: io::Error,
    },
    /// The values make no profile.
    #[error("{0}")]
    Profile(ProfileError),
}

/// How many steps [`measure`] will report for a subject of this size.
#[must_use]
pub fn steps(bytes: Bytes) -> u64 {
    (rate::locations(bytes).len() + switching::distances(bytes).len() + 1) as u64
}

/// Measures a subject of at least [`BYTES_MIN`]; calls `step` after each of its [`steps`].
///
/// # Errors
/// A read that failed.
pub fn measure(subject: &mut dyn Subject, step: &mut dyn FnMut()) -> Result<Profile, MeasureError> {
    let mut random = fastrand::Rng::new();
    let servers = servers::count(subject, &mut random)?;
    step();
    let mut rates = Vec::new();
    for location in rate::locations(subject.bytes()) {
        let rate = rate::at(subject, location, servers)?;
        rates.push((
            Bytes(location),
            rate.clamp(*RATE_RANGE.start(), *RATE_RANGE.end()),
        ));
        step();
    }
    let rates_alone =
        Profile::new(vec![(Bytes(0), Nanos(0))], rates.clone()).map_err(MeasureError::Profile)?;
    let mut costs = Vec::new();
    for distance in switching::distances(subject.bytes()) {
        let cost = switching::over(subject, distance, &rates_alone, &mut random)?;
        costs.push((Bytes(distance), cost.min(SWITCHING_MAX)));
        step();
    }
    let profile = Profile::new(costs, rates).and_then(|p| p.with_servers(servers));
    profile.map_err(MeasureError::Profile)
}

/// Reads of the subject so many at once, with the place of the first in their error.
fn together(
    subject: &mut dyn Subject,
    places: &[u64],
    size: Bytes,
    at_once: u32,
) -> Result<Nanos, MeasureError> {
    let time = subject.read_together(places, size.0 as usize, at_once);
    time.map_err(|error| {
        let offset = places.first().copied().unwrap_or_default();
        MeasureError::Read { offset, error }
    })
}

/// A read of the subject, with the place in its error.
fn timed(subject: &mut dyn Subject, offset: u64, count: u64) -> Result<Nanos, MeasureError> {
    subject
        .read(offset, count as usize)
        .map_err(|error| MeasureError::Read { offset, error })
}

/// The middle value; of two, the smaller.
fn median(values: &mut [Nanos]) -> Nanos {
    values.sort_unstable();
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk whose cost grows with distance and whose rate falls towards its end.
    struct Disk {
        bytes: u64,
        head: u64,
        reads: u64,
    }

    impl Disk {
        fn cost(distance: u64) -> u64 {
            if distance == 0 {
                0
            } else {
                3_000_000 + distance / 1_000
            }
        }

        fn rate(&self, offset: u64) -> u64 {
            100_000_000 - 40_000 * (offset / (self.bytes / 1_000))
        }
    }

    impl Subject for Disk {
        fn bytes(&self) -> Bytes {
            Bytes(self.bytes)
        }

        fn read(&mut self, offset: u64, count: usize) -> io::Result<Nanos> {
            let end = offset + count as u64;
            assert!(end <= self.bytes && offset.is_multiple_of(UNIT) && end.is_multiple_of(UNIT));
            self.reads += 1;
            let cost = Self::cost(self.head.abs_diff(offset));
            // Every seventh read, another program's request was in the way.
            let noise = if self.reads.is_multiple_of(7) {
                20_000_000
            } else {
                0
            };
            self.head = end;
            Ok(Nanos(
                cost + noise + count as u64 * 1_000_000_000 / self.rate(offset),
            ))
        }

        fn read_together(&mut self, at: &[u64], count: usize, at_once: u32) -> io::Result<Nanos> {
            let times = at.iter().map(|at| self.read(*at, count));
            let sum: io::Result<u64> = times.map(|time| time.map(|t| t.0)).sum();
            // The more wait, the shorter its ways, by a third at most.
            let order = 1000 - 333 * u64::from(at_once - 1) / u64::from(at_once);
            Ok(Nanos(sum? * order / 1000))
        }
    }

    /// Serves so many at once, each in the same time and a time for each byte.
    struct Servers {
        count: u32,
        latency: u64,
        rounds: u64,
    }

    impl Servers {
        fn of(count: u32, latency: u64) -> Self {
            let rounds = 0;
            Self {
                count,
                latency,
                rounds,
            }
        }
    }

    impl Subject for Servers {
        fn bytes(&self) -> Bytes {
            Bytes(1 << 30)
        }

        fn read(&mut self, _: u64, count: usize) -> io::Result<Nanos> {
            Ok(Nanos(self.latency + count as u64))
        }

        fn read_together(&mut self, at: &[u64], count: usize, at_once: u32) -> io::Result<Nanos> {
            let busy = u64::from(at_once.min(self.count));
            let time = (self.latency + count as u64) * (at.len() as u64).div_ceil(busy);
            // Another program has half of it in every third round, and 3 % come and go.
            self.rounds += 1;
            let others = if self.rounds.is_multiple_of(3) { 2 } else { 1 };
            Ok(Nanos(time * others * (97 + self.rounds * 7 % 6) / 100))
        }
    }

    #[test]
    fn as_many_servers_are_found_as_there_are() {
        for (name, count, latency) in [
            ("flash with 8 channels", 8, 80_000),
            ("flash with one queue", 1, 80_000),
            ("an array of 4 disks", 4, 8_000_000),
            ("an array of 32 disks", 32, 12_000_000),
            ("a store with 64 connections", 64, 30_000_000),
        ] {
            let profile = measure(&mut Servers::of(count, latency), &mut || {}).unwrap();
            assert_eq!(profile.servers(), count, "{name}");
        }
    }

    #[test]
    fn a_store_without_an_end_gets_a_number_that_is_known() {
        let profile = measure(&mut Servers::of(u32::MAX, 30_000_000), &mut || {}).unwrap();
        let servers = profile.servers();
        assert!((256..forerun_core::profile::SERVERS_MAX).contains(&servers));
    }

    #[test]
    fn the_rate_of_a_stream_is_that_of_several_requests_where_they_are_served() {
        // 80 us and 1 ns a byte: 1 MiB takes 1.13 ms alone, and four at once are four times as
        // fast.
        let profile = measure(&mut Servers::of(8, 80_000), &mut || {}).unwrap();
        let alone = (1u64 << 20) * 1_000_000_000 / (80_000 + (1 << 20));
        let rate = profile.rate(Bytes(0));
        assert!(rate.abs_diff(4 * alone) * 10 < 4 * alone, "{rate}");
    }

    #[test]
    fn a_modelled_disk_is_found_again_in_spite_of_noise() {
        let mut disk = Disk {
            bytes: 4 << 30,
            head: 0,
            reads: 0,
        };
        let mut done = 0;
        let profile = measure(&mut disk, &mut || done += 1).unwrap();
        assert_eq!(done, steps(disk.bytes()));
        assert_eq!(profile.servers(), 1, "it has one arm");
        for distance in [64 << 10, 1 << 20, 100 << 20, 2 << 30] {
            let (found, true_cost) = (profile.switching(Bytes(distance)).0, Disk::cost(distance));
            assert!(
                found.abs_diff(true_cost) * 50 < true_cost,
                "{distance}: {found} {true_cost}"
            );
        }
        for location in [0, 1 << 30, 3 << 30] {
            let (found, true_rate) = (profile.rate(Bytes(location)), disk.rate(location));
            assert!(
                found.abs_diff(true_rate) * 50 < true_rate,
                "{location}: {found} {true_rate}"
            );
        }
    }

    #[test]
    fn the_smallest_subject_and_the_largest_give_a_profile() {
        for bytes in [BYTES_MIN.0, (20 << 20) + 4096, 1 << 44] {
            let mut disk = Disk {
                bytes,
                head: 0,
                reads: 0,
            };
            let profile = measure(&mut disk, &mut || ()).unwrap();
            assert!(profile.rate_points().len() >= 4);
            assert!(profile.switching_points().len() >= 3);
        }
    }

    #[test]
    fn a_failed_read_is_named_by_its_place() {
        struct Broken;
        impl Subject for Broken {
            fn bytes(&self) -> Bytes {
                BYTES_MIN
            }
            fn read_together(&mut self, at: &[u64], count: usize, _: u32) -> io::Result<Nanos> {
                self.read(at[0], count)
            }

            fn read(&mut self, _: u64, _: usize) -> io::Result<Nanos> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        let message = measure(&mut Broken, &mut || ()).unwrap_err().to_string();
        assert!(
            message.ends_with("Input/output error (os error 5)"),
            "{message}"
        );
    }
}
