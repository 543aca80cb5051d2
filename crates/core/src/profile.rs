//! Costs of a device: a switching cost by distance, and a transfer rate by location.
//!
//! Measured by `forerun profile` or given; read by the depth methods. Both maps are a few points
//! with straight lines between them, held flat beyond the ends, in integers. Li et al. 2004,
//! section 3.1 takes exactly these two maps from a disk: seek time by distance (its half revolution
//! is part of the switching cost here) and transfer rate by location. For an object store the
//! switching cost is the request latency and the rate that of one stream.

use alloc::vec::Vec;
use core::fmt;

use crate::kind::Kind;
use crate::spec::OutOfRange;
use crate::units::{Bytes, Nanos, scaled};

/// At most this many points in either map: enough for a seek curve within a few per cent, and a
/// bound on the memory that a profile file can claim.
pub const POINTS_MAX: usize = 64;

/// Slowest and fastest rate a profile may state, bytes per second: 1 kB/s and 1 TB/s.
pub const RATE_RANGE: core::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// Longest switching cost a profile may state: one minute.
pub const SWITCHING_MAX: Nanos = Nanos(60_000_000_000);

/// Most requests a profile may say a device works on at once, and the value where a profile
/// states none: the measure `given` then sends every request at once, `online` finds the number.
pub const SERVERS_MAX: u32 = 1024;

/// Switching cost by distance and transfer rate by location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    switching: Vec<(Bytes, Nanos)>,
    rate: Vec<(Bytes, u64)>,
    servers: u32,
    most: u32,
}

/// Why a profile was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProfileError {
    /// Positions do not increase strictly; the index of the offending point.
    Order(usize),
    /// Points of a map, a rate, a switching cost or servers outside their range.
    Range(OutOfRange),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(i) => write!(f, "point {i}: positions must increase from point to point"),
            Self::Range(range) => range.fmt(f),
        }
    }
}

impl core::error::Error for ProfileError {}

impl From<OutOfRange> for ProfileError {
    fn from(e: OutOfRange) -> Self {
        Self::Range(e)
    }
}

impl Profile {
    /// One switching cost whatever the distance, one rate everywhere.
    ///
    /// # Errors
    /// Values outside [`RATE_RANGE`] or above [`SWITCHING_MAX`].
    pub fn constant(switching: Nanos, bytes_per_second: u64) -> Result<Self, ProfileError> {
        Self::new(
            [(Bytes(0), switching)].into(),
            [(Bytes(0), bytes_per_second)].into(),
        )
    }

    /// A profile from its two maps: (distance, switching cost) and (location, bytes per second).
    ///
    /// # Errors
    /// Empty or oversized maps, positions that do not increase, values out of range.
    pub fn new(
        switching: Vec<(Bytes, Nanos)>,
        rate: Vec<(Bytes, u64)>,
    ) -> Result<Self, ProfileError> {
        check_order(&switching)?;
        check_order(&rate)?;
        for (_, cost) in &switching {
            OutOfRange::check("switching_ns", cost.0, 0..=SWITCHING_MAX.0)?;
        }
        for (_, rate) in &rate {
            OutOfRange::check("rate_bytes_per_second", *rate, RATE_RANGE)?;
        }
        Ok(Self {
            switching,
            rate,
            servers: SERVERS_MAX,
            most: u32::MAX,
        })
    }

    /// The same, for a device known to work on so many requests at once: 1 for a disk.
    ///
    /// # Errors
    /// Zero, or more than [`SERVERS_MAX`].
    pub fn with_servers(self, servers: u32) -> Result<Self, ProfileError> {
        OutOfRange::check("servers", servers.into(), 1..=SERVERS_MAX.into())?;
        Ok(Self { servers, ..self })
    }

    /// The same, for a device that shall never have more requests than that, whatever it can work
    /// on: at least one. It may be a server that never answers, so its requests leave an eighth of an engine's memory
    /// to others.
    #[must_use]
    pub fn with_most(self, most: u32) -> Self {
        let most = most.max(1);
        Self { most, ..self }
    }

    /// Most requests it shall ever have; unlimited if not given.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Which sort of device it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match (self.most, self.is_parallel()) {
            (u32::MAX, false) => Kind::Disk,
            (u32::MAX, true) => Kind::Array,
            (most, _) => Kind::Server { most },
        }
    }

    /// How many requests the device works on at once; [`SERVERS_MAX`] if not given.
    #[must_use]
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// Whether it is known to work on several requests at once.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        (2..SERVERS_MAX).contains(&self.servers)
    }

    /// How many requests it is given at most. One server gets two, so that it never runs idle.
    /// Several get four each: requests do not fall on servers evenly, and of n at m servers on the average
    /// n / (n + m - 1) of these work, four fifths or more. Unlimited if the number of servers is not given.
    #[must_use]
    pub fn queue_max(&self) -> u32 {
        let wanted = match self.servers {
            SERVERS_MAX => u32::MAX,
            1 => 2,
            servers => servers * 4,
        };
        wanted.min(self.most)
    }

    /// The (distance, switching cost) points.
    #[must_use]
    pub fn switching_points(&self) -> &[(Bytes, Nanos)] {
        &self.switching
    }

    /// The (location, bytes per second) points.
    #[must_use]
    pub fn rate_points(&self) -> &[(Bytes, u64)] {
        &self.rate
    }

    /// Cost of a switch over `distance`, paid before a transfer can start.
    #[must_use]
    pub fn switching(&self, distance: Bytes) -> Nanos {
        Nanos(interpolate(&self.switching, distance, |cost| cost.0))
    }

    /// How fast bytes come at `location`, in bytes per second.
    #[must_use]
    pub fn rate(&self, location: Bytes) -> u64 {
        interpolate(&self.rate, location, |rate| rate)
    }

    /// The competitive depth: bytes that the device could have transferred during one switch
    /// (Li et al. 2004, section 2.1). Fetching that much per switch keeps total device time
    /// within twice the offline optimum's.
    #[must_use]
    pub fn competitive_depth(&self, distance: Bytes, location: Bytes) -> Bytes {
        let switching = self.switching(distance).0;
        Bytes(scaled(switching, self.rate(location), 1_000_000_000))
    }
}

impl Default for Profile {
    /// The default for a device without measurements: 8 ms and 80 MB/s, a disk of 2010 or a busy
    /// network volume. It gives 640 KB, between the 540 KB of Li et al. 2004's drive and the 1 MiB
    /// its authors call aggressive.
    fn default() -> Self {
        Self {
            switching: [(Bytes(0), Nanos(8_000_000))].into(),
            rate: [(Bytes(0), 80_000_000)].into(),
            servers: SERVERS_MAX,
            most: u32::MAX,
        }
    }
}

fn check_order<T>(points: &[(Bytes, T)]) -> Result<(), ProfileError> {
    OutOfRange::check("points", points.len() as u64, 1..=POINTS_MAX as u64)?;
    match points.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
        Some(before) => Err(ProfileError::Order(before + 1)),
        None => Ok(()),
    }
}

/// The value at `x` on the line through the two neighbouring points.
fn interpolate<T: Copy>(points: &[(Bytes, T)], x: Bytes, value: impl Fn(T) -> u64) -> u64 {
    let after = points.partition_point(|(position, _)| *position <= x);
    if after == 0 {
        return points.first().map_or(0, |&(_, v)| value(v));
    }
    let (x0, y0) = (points[after - 1].0.0, value(points[after - 1].1));
    let Some(&(Bytes(x1), y1)) = points.get(after) else {
        return y0;
    };
    let y1 = value(y1);
    let part = i128::from(x.0 - x0) * (i128::from(y1) - i128::from(y0)) / i128::from(x1 - x0);
    (i128::from(y0) + part) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn the_drive_of_li04_gives_about_540_kb() {
        let drive = Profile::constant(Nanos(7_530_000 + 3_000_000), 51_300_000).unwrap();
        assert_eq!(drive.competitive_depth(Bytes(0), Bytes(0)), Bytes(540_189));
    }

    #[test]
    fn values_lie_on_lines_between_points_and_flat_beyond_them() {
        let p = Profile::new(
            vec![(Bytes(10), Nanos(100)), (Bytes(20), Nanos(300))],
            vec![(Bytes(0), 60_000_000), (Bytes(100), 40_000_000)],
        )
        .unwrap();
        assert_eq!(p.switching(Bytes(0)), Nanos(100));
        assert_eq!(p.switching(Bytes(15)), Nanos(200));
        assert_eq!(p.switching(Bytes(99)), Nanos(300));
        assert_eq!(p.rate(Bytes(50)), 50_000_000);
        assert_eq!(p.rate(Bytes(u64::MAX)), 40_000_000);
    }

    #[test]
    fn maps_that_make_no_sense_are_refused() {
        let ok = vec![(Bytes(0), 1_000_000)];
        let refused = |profile: Result<Profile, ProfileError>| profile.unwrap_err().to_string();
        assert_eq!(
            refused(Profile::new(vec![], ok.clone())),
            "points=0: must be a whole number from 1 to 64"
        );
        let twice = vec![(Bytes(5), Nanos(1)), (Bytes(5), Nanos(1))];
        assert_eq!(Profile::new(twice, ok), Err(ProfileError::Order(1)));
        let zero = refused(Profile::constant(Nanos(0), 0));
        assert!(zero.starts_with("rate_bytes_per_second=0: must be a whole number from 1000"));
    }
}
