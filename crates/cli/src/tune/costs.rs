//! The costs of the device below a path, in the three figures that settings follow from.
//!
//! They come from `--profile`, or are [measured](crate::measure) as `forerun profile` does. Measured is the block device
//! that all reads of the file system pass, if it may be opened, because random places of it are as far apart as they
//! get; else the largest file below the path, which is on all devices of an array and needs no right.

use std::path::{Path, PathBuf};

use forerun_core::profile::SERVERS_MAX;
use forerun_core::{Bytes, Nanos, Profile};

use super::devices::Devices;
use crate::failure::Failure;
use crate::measure::{self, BYTES_MIN, Direct, Subject};
use crate::trial::files::Chosen;
use crate::{profile_file, progress};

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// From a read elsewhere to the first byte.
    pub switching: Nanos,
    /// Bytes per second from there on.
    pub rate: u64,
    /// Requests that it works on at once.
    pub servers: u32,
    /// The device that was measured, or the profile's file.
    pub from: PathBuf,
}

impl Costs {
    /// Bytes that are transferred in the time of a switch: the competitive depth of Li et al. 2004, section 2.1.
    #[must_use]
    pub fn depth(&self) -> Bytes {
        let bytes = u128::from(self.switching.0) * u128::from(self.rate) / 1_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    fn of(profile: &Profile, distance: Bytes, from: PathBuf) -> Self {
        let rates = profile.rate_points();
        let middle = rates.get(rates.len() / 2).map_or(0, |point| point.1);
        Self {
            switching: profile.switching(distance),
            rate: middle,
            // A profile that states no number is a disk's: such are written by hand.
            servers: match profile.servers() {
                SERVERS_MAX => 1,
                servers => servers,
            },
            from,
        }
    }

    /// Those of a profile's file.
    ///
    /// # Errors
    /// It holds none.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let profile = profile_file::load(path)?;
        // Measured distances end at half the device; random places are a third of it apart.
        let last = profile.switching_points().last();
        let distance = last.map_or(0, |(distance, _)| distance.0 / 3 * 2);
        Ok(Self::of(&profile, Bytes(distance), path.to_owned()))
    }

    /// Measures them, in 5 s on flash to half a minute on a disk.
    ///
    /// # Errors
    /// Neither a device nor a file can be read directly.
    pub fn measure(path: &Path, devices: &Devices) -> Result<Self, Failure> {
        let (mut subject, from) = subject(path, devices)?;
        let bar = progress::steps("measuring", measure::steps(subject.bytes()));
        let profile = measure::measure(&mut subject, &mut || bar.inc(1))
            .map_err(|e| Failure::broken(&from, e))?;
        bar.finish_and_clear();
        Ok(Self::of(&profile, Bytes(subject.bytes().0 / 3), from))
    }
}

/// The device, or the largest file.
fn subject(path: &Path, devices: &Devices) -> Result<(Direct, PathBuf), Failure> {
    if let Some(top) = &devices.top {
        let device = Path::new("/dev").join(top);
        if let Ok(subject) = Direct::open(&device) {
            return Ok((subject, device));
        }
    }
    let lacking = |why: &str| {
        let why = format!(
            "{why}: give --profile FILE, as forerun profile writes it, or be root to measure the device"
        );
        Failure::unusable(path, why)
    };
    let chosen = Chosen::of(path).map_err(|_| lacking("no file to measure is below it"))?;
    let largest = chosen.files.iter().max_by_key(|(_, bytes)| *bytes);
    let largest = largest.filter(|(_, bytes)| *bytes >= BYTES_MIN.0);
    let Some((name, _)) = largest else {
        return Err(lacking("no file of at least 16MiB is below it"));
    };
    let file = chosen.folder.join(name);
    Ok((Direct::open(&file)?, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_is_what_a_switch_costs_in_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.toml");
        let text = "[[switching]]\ndistance_bytes = 0\nswitching_ns = 8000000\n\
                    [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 80000000\n";
        std::fs::write(&path, text).unwrap();
        let costs = Costs::load(&path).unwrap();
        assert_eq!((costs.depth(), costs.servers), (Bytes(640_000), 1));
        std::fs::write(&path, format!("servers = 8\n{text}")).unwrap();
        assert_eq!(Costs::load(&path).unwrap().servers, 8);
    }

    #[test]
    fn the_switching_cost_is_that_of_random_places() {
        let profile = Profile::new(
            vec![(Bytes(0), Nanos(0)), (Bytes(600), Nanos(6_000))],
            vec![(Bytes(0), 300), (Bytes(1), 200), (Bytes(2), 100)]
                .into_iter()
                .map(|(b, r)| (b, r * 1000))
                .collect(),
        )
        .unwrap();
        let costs = Costs::of(&profile, Bytes(400), "x".into());
        assert_eq!((costs.switching, costs.rate), (Nanos(4_000), 200_000));
    }
}
