//! What a device costs, measured: transfer rate by location and switching cost by distance.
//!
//! Called by `forerun profile` with a file or block device opened for direct reads, and by tests
//! with a modelled one. The method is li04 section 3.1's, made robust:
//!
//! ```text
//! rate       at up to 9 locations: read 1 MiB pieces one behind the other, drop the first
//!            (it pays the switch), take the median time of a piece
//! switching  at distances 64 KiB, 256 KiB, .. to half the device, 25 pairs each: read 4 KiB at a
//!            random place, then 4 KiB that far away; the second one's time less its transfer is
//!            the cost; take the median of the pairs
//! servers    4 KiB at four random places, one by one and at once: one server if the latter
//!            gains less than twofold
//! ```
//!
//! Medians, because other users of the device make some reads slower and a cache in the device
//! makes a few faster. One request at a time, so the rate is that of one stream, and for a store
//! reached over a network the cost is the request's latency: what the competitive depth wants.
//! Every step has a deadline; all together end within two minutes unless a single read hangs.
//!
//! A file's offsets stand for places on its device: right for a large file that lies in few
//! pieces. It does not write.

mod direct;
mod rate;
mod servers;
mod switching;

use std::io;

use forerun_core::profile::{ProfileError, RATE_RANGE, SWITCHING_MAX};
use forerun_core::{Bytes, Nanos, Profile};

pub use direct::Direct;

/// Something to measure.
pub trait Subject {
    /// Its size.
    fn bytes(&self) -> Bytes;
    /// Reads `count` bytes at `offset`, both multiples of [`UNIT`], and says how long it took.
    ///
    /// # Errors
    /// Those of the read.
    fn read(&mut self, offset: u64, count: usize) -> io::Result<Nanos>;
    /// The same at several places at once; how long all took together.
    ///
    /// # Errors
    /// Those of one of the reads.
    fn read_together(&mut self, offsets: &[u64], count: usize) -> io::Result<Nanos>;
}

/// Direct reads begin and end at multiples of this: no block device has larger sectors.
pub const UNIT: u64 = 4096;

/// Fewest bytes that can be measured: four locations of four pieces, and three distances.
pub const BYTES_MIN: Bytes = Bytes(16 << 20);

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
    let mut rates = Vec::new();
    for location in rate::locations(subject.bytes()) {
        let rate = rate::at(subject, location)?;
        rates.push((
            Bytes(location),
            rate.clamp(*RATE_RANGE.start(), *RATE_RANGE.end()),
        ));
        step();
    }
    let rates_alone =
        Profile::new(vec![(Bytes(0), Nanos(0))], rates.clone()).map_err(MeasureError::Profile)?;
    let mut costs = Vec::new();
    let mut random = fastrand::Rng::new();
    for distance in switching::distances(subject.bytes()) {
        let cost = switching::over(subject, distance, &rates_alone, &mut random)?;
        costs.push((Bytes(distance), cost.min(SWITCHING_MAX)));
        step();
    }
    let one_server = servers::is_one(subject, &mut random)?;
    step();
    let profile = Profile::new(costs, rates);
    let profile = profile.and_then(|p| if one_server { p.with_servers(1) } else { Ok(p) });
    profile.map_err(MeasureError::Profile)
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
            // Every seventh read, somebody else's request was in the way.
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

        fn read_together(&mut self, offsets: &[u64], count: usize) -> io::Result<Nanos> {
            let times = offsets.iter().map(|at| self.read(*at, count));
            let sum: io::Result<u64> = times.map(|time| time.map(|t| t.0)).sum();
            Ok(Nanos(sum? * 7 / 10))
        }
    }

    /// Serves any number at once in the same time.
    struct Flash;

    impl Subject for Flash {
        fn bytes(&self) -> Bytes {
            Bytes(1 << 30)
        }

        fn read(&mut self, _: u64, count: usize) -> io::Result<Nanos> {
            Ok(Nanos(80_000 + count as u64))
        }

        fn read_together(&mut self, offsets: &[u64], count: usize) -> io::Result<Nanos> {
            self.read(offsets[0], count)
        }
    }

    #[test]
    fn a_device_that_serves_many_at_once_is_not_held_back() {
        let profile = measure(&mut Flash, &mut || {}).unwrap();
        assert_eq!(profile.servers(), forerun_core::profile::SERVERS_MAX);
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
            fn read_together(&mut self, offsets: &[u64], count: usize) -> io::Result<Nanos> {
                self.read(offsets[0], count)
            }

            fn read(&mut self, _: u64, _: usize) -> io::Result<Nanos> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        let message = measure(&mut Broken, &mut || ()).unwrap_err().to_string();
        assert_eq!(message, "read at byte 0: Input/output error (os error 5)");
    }
}
