//! `status`: the existing parts of a bed, and the counters of its disks.
//!
//! Called by `main`. Looks at the list of resources made and at the export's `usage`; changes
//! nothing, and works on half a bed too, and while `table` is at work.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use forerun_emulated::disk::Meter;
use serde::{Deserialize, Serialize};

use crate::failure::{At, Failure};
use crate::plan::BedPaths;
use crate::state;

/// Counters of a disk since the delay was turned on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiskUsage {
    /// Requests that ended.
    pub requests: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Requests that did not continue where the one before ended.
    pub switches: u64,
    /// Time it worked.
    pub busy_ns: u64,
    /// How late answers were, added up.
    pub late_ns: u64,
    /// How late the latest was.
    pub late_max_ns: u64,
    /// Whether its thread has real-time priority.
    pub is_realtime: bool,
}

impl DiskUsage {
    /// Reads a meter.
    #[must_use]
    pub fn of(meter: &Meter) -> Self {
        Self {
            requests: meter.requests.load(Ordering::Relaxed),
            bytes: meter.bytes.load(Ordering::Relaxed),
            switches: meter.switches.load(Ordering::Relaxed),
            busy_ns: meter.busy_ns.load(Ordering::Relaxed),
            late_ns: meter.late_ns.load(Ordering::Relaxed),
            late_max_ns: meter.late_max_ns.load(Ordering::Relaxed),
            is_realtime: meter.is_realtime.load(Ordering::Relaxed),
        }
    }
}

/// Counters of the emulated disks of a bed; local ones count nothing.
///
/// # Errors
/// The export does not answer.
pub fn usage(place: &BedPaths) -> Result<Vec<DiskUsage>, Failure> {
    let Some(export) = &place.export else {
        return Ok(Vec::new());
    };
    let path = export.join("usage");
    let text = std::fs::read_to_string(&path).at(&path)?;
    serde_json::from_str(&text).at(&path)
}

/// The work of emulated disks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DiskWork {
    /// Requests that ended.
    pub requests: f64,
    /// Those that did not continue where the one before ended.
    pub switches: f64,
    /// Bytes asked for.
    pub bytes: f64,
    /// Time that they worked.
    pub busy_seconds: f64,
    /// How late answers were, added up.
    pub late_ns: f64,
}

impl DiskWork {
    /// The work of all disks between two looks at their counters; none of local ones, which count nothing.
    fn between(before: &[DiskUsage], after: &[DiskUsage]) -> Option<Self> {
        let sum = |of: fn(&DiskUsage) -> u64| {
            let sum = |disks: &[DiskUsage]| disks.iter().map(of).sum::<u64>();
            sum(after).saturating_sub(sum(before)) as f64
        };
        (!after.is_empty()).then(|| Self {
            requests: sum(|disk| disk.requests),
            switches: sum(|disk| disk.switches),
            bytes: sum(|disk| disk.bytes),
            busy_seconds: sum(|disk| disk.busy_ns) / 1e9,
            late_ns: sum(|disk| disk.late_ns),
        })
    }
}

/// Runs a load, and gives the work of the disks meanwhile, too.
///
/// # Errors
/// The load's; the export does not answer.
pub fn counted<T>(
    place: &BedPaths,
    load: impl FnOnce() -> Result<T, Failure>,
) -> Result<(T, Option<DiskWork>), Failure> {
    let before = usage(place)?;
    let done = load()?;
    Ok((done, DiskWork::between(&before, &usage(place)?)))
}

/// Prints the status of a bed.
///
/// # Errors
/// No bed there.
pub fn run(folder: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let bed = state::bed(folder)?;
    let place = BedPaths::of(folder, &bed.disks)?;
    let mut text = format!(
        "{} on {} x {}\n",
        bed.file_system.kind.name(),
        bed.disks.count,
        bed.disks.device
    );
    for thing in state::things(folder)? {
        let is = if thing.exists()? {
            "is there"
        } else {
            "is gone"
        };
        text += &format!("{is:8} {thing}\n");
    }
    match usage(&place) {
        Ok(disks) => {
            for (index, disk) in disks.iter().enumerate() {
                text += &format!(
                    "disk{index}: {} requests, {} switches, {} MB, busy {} ms, \
                     late {} us on average, {} us at most{}\n",
                    disk.requests,
                    disk.switches,
                    disk.bytes / 1_000_000,
                    disk.busy_ns / 1_000_000,
                    disk.late_ns / disk.requests.max(1) / 1_000,
                    disk.late_max_ns / 1_000,
                    if disk.is_realtime {
                        ""
                    } else {
                        ", no real-time priority"
                    },
                );
            }
        }
        Err(failure) => text += &format!("no daemon answers: {failure}\n"),
    }
    out.write_all(text.as_bytes()).at(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(requests: u64, switches: u64, bytes: u64, late_ns: u64) -> DiskUsage {
        DiskUsage {
            requests,
            bytes,
            switches,
            busy_ns: 1_000_000_000 * requests,
            late_ns,
            late_max_ns: 0,
            is_realtime: true,
        }
    }

    #[test]
    fn work_is_the_difference_over_all_disks_and_none_of_local_ones() {
        let before = [usage(10, 5, 1_000, 50), usage(0, 0, 0, 0)];
        let after = [usage(14, 8, 5_000, 90), usage(6, 2, 6_000, 10)];
        let expected = DiskWork {
            requests: 10.0,
            switches: 5.0,
            bytes: 10_000.0,
            busy_seconds: 10.0,
            late_ns: 50.0,
        };
        assert_eq!(DiskWork::between(&before, &after), Some(expected));
        assert_eq!(DiskWork::between(&[], &[]), None);
    }
}
