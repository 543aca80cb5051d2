//! The profile of a bed's emulated disks, as `forerun mount --profile` takes it.
//!
//! Written by `table` and `small`, so that a mount has the figures of the disk that `forerun
//! profile` would measure: switching costs and rates of the modelled device. Of several striped
//! disks it is that of one: the mount finds them, and sends each its part. A local disk has none.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use forerun_core::Profile;
use forerun_core::profile::SERVERS_MAX;
use forerun_sim::device;

use crate::bed::Bed;
use crate::failure::{At, Failure};
use crate::state;

/// The text of the profile; none of a local disk.
///
/// # Errors
/// `disks.device` is no device.
pub fn text(bed: &Bed) -> Result<Option<String>, Failure> {
    if bed.disks.is_local() {
        return Ok(None);
    }
    let device = device::parse(&bed.disks.device);
    let profile = device.map_err(|e| Failure::Usage(e.to_string()))?.profile();
    Ok(Some(write(&profile)))
}

/// The file of the profile in a state directory, if a mount gets one.
///
/// # Errors
/// It cannot be written.
pub(crate) fn file(bed: &Bed, folder: &Path, is_told: bool) -> Result<Option<PathBuf>, Failure> {
    let Some(text) = text(bed)?.filter(|_| is_told) else {
        return Ok(None);
    };
    let path = folder.join(state::PROFILE);
    fs::write(&path, text).at(&path)?;
    Ok(Some(path))
}

fn write(profile: &Profile) -> String {
    let mut text = Vec::new();
    let servers = profile.servers();
    if servers < SERVERS_MAX {
        let _ = writeln!(text, "servers = {servers}");
    }
    for (distance, cost) in profile.switching_points() {
        let (distance, cost) = (distance.0, cost.0);
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "[[switching]]\ndistance_bytes = {distance}\nswitching_ns = {cost}"
        );
    }
    for (location, rate) in profile.rate_points() {
        let location = location.0;
        let _ = writeln!(
            text,
            "[[rate]]\nlocation_bytes = {location}\nrate_bytes_per_second = {rate}"
        );
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    #[test]
    fn of_striped_disks_it_is_that_of_one() {
        let raid = bed::parse(include_str!("../beds/raid0.toml")).unwrap();
        let expected = "servers = 1\n[[switching]]\ndistance_bytes = 0\nswitching_ns = 8000000\n\
                        [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 80000000\n";
        assert_eq!(text(&raid).unwrap().unwrap(), expected);
    }

    #[test]
    fn a_local_disk_has_no_profile() {
        let local = bed::parse(include_str!("../beds/small_local.toml")).unwrap();
        assert_eq!(text(&local).unwrap(), None);
    }
}
