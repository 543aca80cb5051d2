//! Tuning: the best constant read-ahead and scheduler of the device below a path.
//!
//! Linux reads every file of a device ahead by one constant, 128 KiB by default. On a disk with
//! several readers that is too little, and the right value depends on the device, the readers and the
//! memory. `forerun tune` finds it, and changes it if asked to; `forerun try --tuned` compares with it.
//!
//! ```text
//! place     PATH -> bdi and disks, through overlays (forerun_surface::below)
//! devices   the settings there
//! costs     the device's switching cost, rate and requests at once, measured or from a profile
//! simulated the rate of each setting by the number of readers: Linux readahead in the simulator
//! measured  the same on the real device, settings in turns
//! advice    one setting from either table;  memory: what the kernel can cache in
//! trying, applied: values before, and how they come back (forerun_surface::undo);  folder: where their records stand
//! ```
//!
//! Nothing here writes `/sys/block/*/queue/read_ahead_kb`: on kernels of about 6.11 to 6.18 that write freezes the queue
//! of the device. The file of the bdi (backing device information) has the same value and no such lock.

pub mod advice;
pub mod applied;
pub mod costs;
pub mod devices;
pub mod folder;
pub mod measured;
pub mod memory;
pub mod place;
pub mod report;
pub mod simulated;
pub mod trying;

/// The least read-ahead that is tried: the kernel's default.
pub const LEAST_KIB: u64 = 128;

/// The largest: beyond it 64 readers on a disk of 80 MB/s wait seven seconds for their turn.
pub const MOST_KIB: u64 = 8192;

/// Values that are tried, by doubling.
#[must_use]
pub fn ladder() -> Vec<u64> {
    std::iter::successors(Some(LEAST_KIB), |kib| Some(kib * 2))
        .take_while(|kib| *kib <= MOST_KIB)
        .collect()
}

/// A constant setting of a device.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Setting {
    /// Read-ahead in KiB.
    pub read_ahead_kib: u64,
    /// Scheduler; none where the device has none to choose.
    pub scheduler: Option<String>,
}
