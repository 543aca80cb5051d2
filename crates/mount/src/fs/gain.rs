//! Whether prefetching by the engine can gain anything over the kernel's own readahead.
//!
//! Asked by [`passthrough`](super::passthrough) for the device of a file. The engine wins by
//! fetching more at once than the kernel does, so that a switch of the device is paid for by a
//! longer transfer. How much that must be is the competitive depth of Li et al. 2004, section 2.1:
//!
//! ```text
//! depth = switching cost * transfer rate              8 ms *  80 MB/s = 640 kB     a disk
//!                                                    50 us * 1.5 GB/s =  75 kB     flash
//! ```
//!
//! The kernel's readahead of the source has half a window in flight behind its reader. Where that is
//! the depth or more, the device loses nothing by switching, and the engine can only add work: it
//! *cannot gain*. The rule holds for devices that
//!
//! - were measured: a device that is assumed (8 ms, 80 MB/s) or emulated may be anything;
//! - are local block storage: hardware with its own queue, or device-mapper and RAID on nothing
//!   else. Behind a loop device, a network block device or a file system without a device, the
//!   kernel's readahead does not see the real device.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use forerun_core::{Bytes, Profile};

use crate::lock;

/// How long a device's readahead is believed: it is set by hand or by udev, and reading it costs as much
/// as an open.
const BELIEVED: Duration = Duration::from_secs(1);

/// Devices on top of each other, most: as deep as the kernel's own stacks go.
const LEVELS_MAX: u8 = 8;

/// Time of a look at a device, and its readahead if it is local storage.
type Known = (Instant, Option<Bytes>);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Gain {
    readahead: Mutex<HashMap<(u32, u32), Known>>,
}

impl Gain {
    /// Whether prefetching from this device cannot gain. `measured` is its costs, if known.
    pub(super) fn cannot(&self, device: (u32, u32), measured: Option<&Profile>) -> bool {
        let Some(profile) = measured else {
            return false;
        };
        let readahead = self.readahead(device);
        readahead.is_some_and(|readahead| is_kept_busy(profile, readahead))
    }

    /// The kernel's readahead for a device of local storage; none for others.
    fn readahead(&self, device: (u32, u32)) -> Option<Bytes> {
        if let Some((at, known)) = lock(&self.readahead).get(&device)
            && at.elapsed() < BELIEVED
        {
            return *known;
        }
        let path = PathBuf::from(format!("/sys/dev/block/{}:{}", device.0, device.1));
        let path = fs::canonicalize(path).ok();
        let found = path.filter(|path| is_local(path, 0));
        let found = found.and_then(|path| readahead_of(&path));
        lock(&self.readahead).insert(device, (Instant::now(), found));
        found
    }
}

/// Whether half of a readahead window keeps such a device busy.
fn is_kept_busy(profile: &Profile, readahead: Bytes) -> bool {
    let dearest = profile.switching_points().iter().map(|(_, cost)| cost.0);
    let fastest = profile.rate_points().iter().map(|(_, rate)| *rate);
    let (Some(cost), Some(rate)) = (dearest.max(), fastest.max()) else {
        return false;
    };
    let depth = u128::from(cost) * u128::from(rate) / 1_000_000_000;
    depth <= u128::from(readahead.0 / 2)
}

/// A partition has the queue of its disk.
fn disk_of(device: &Path) -> Option<&Path> {
    match device.join("partition").exists() {
        true => device.parent(),
        false => Some(device),
    }
}

fn is_local(device: &Path, level: u8) -> bool {
    let Some(disk) = disk_of(device).filter(|_| level < LEVELS_MAX) else {
        return false;
    };
    if !disk.starts_with("/sys/devices/virtual") {
        return true;
    }
    if !disk.join("dm").exists() && !disk.join("md").exists() {
        return false;
    }
    let below = fs::read_dir(disk.join("slaves")).map(|below| {
        let below = below.map(|entry| fs::canonicalize(entry?.path()));
        below.map(|path| path.is_ok_and(|path| is_local(&path, level + 1)))
    });
    below.is_ok_and(|below| {
        let below: Vec<bool> = below.collect();
        !below.is_empty() && below.into_iter().all(|local| local)
    })
}

fn readahead_of(device: &Path) -> Option<Bytes> {
    let text = fs::read_to_string(disk_of(device)?.join("queue/read_ahead_kb")).ok()?;
    let kib: u64 = text.trim().parse().ok()?;
    Some(Bytes(kib << 10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::Nanos;

    fn profile(switching_ns: u64, rate: u64) -> Profile {
        Profile::constant(Nanos(switching_ns), rate).unwrap()
    }

    #[test]
    fn a_device_is_kept_busy_by_half_a_window_of_its_depth_and_no_less() {
        let flash = profile(50_000, 1_000_000_000);
        assert!(is_kept_busy(&flash, Bytes(100_000)));
        assert!(!is_kept_busy(&flash, Bytes(99_998)));
        assert!(!is_kept_busy(
            &profile(8_000_000, 80_000_000),
            Bytes(128 << 10)
        ));
    }

    #[test]
    fn the_dearest_switch_and_the_fastest_place_count() {
        let switching = vec![(Bytes(0), Nanos(0)), (Bytes(1 << 30), Nanos(4_000_000))];
        let rate = vec![(Bytes(0), 200_000_000), (Bytes(1 << 30), 100_000_000)];
        let disk = Profile::new(switching, rate).unwrap();
        assert!(!is_kept_busy(&disk, Bytes(1 << 20)));
        assert!(is_kept_busy(&disk, Bytes(1_600_000)));
    }

    #[test]
    fn a_device_that_was_not_measured_or_is_not_there_may_gain() {
        let gain = Gain::default();
        assert!(!gain.cannot((8, 0), None));
        assert!(!gain.cannot((0, 4_000), Some(&profile(1, 1_000_000_000))));
    }
}
