//! The rate of Linux readahead with each limit, in the simulator.
//!
//! The host is the preset `linux-2.6.24` (on-demand readahead of Wu 2010, and one LRU list) with its limit set to the
//! read-ahead; the device has the measured costs; each reader reads a file of its own from end to end.
//!
//! That host reads less ahead when memory is short. The kernel does not: it gives up pages that no program has read yet, and reads
//! them twice. So a rate is multiplied by the part of the windows that fits:
//!
//! ```text
//! fits = min(1, memory / 2 / (readers * 2 windows))      64 readers, 256 MiB:  1 MiB -> 1,  4 MiB -> 1/4
//! ```
//!
//! The other half of memory holds pages that were read already. On the emulated disk of 80 MB/s the kernel reads 20 MB/s with 64
//! readers and 4 MiB, by this rule 17 (docs/TUNE.md).
//!
//! Not simulated: schedulers of the kernel, copying, other programs, strips of an array. A gain from here is called
//! simulated wherever it is shown.

use std::sync::Mutex;
use std::thread;

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings};
use forerun_emulated::Emulation;
use forerun_sim::Scene;
use forerun_sim::workload::many_readers::ManyReaders;

use super::advice::{Cell, Grid};
use super::costs::Costs;
use super::{MOST_KIB, Setting};
use crate::composition::name_the_flag;
use crate::failure::Failure;

/// The host.
const PRESET: &str = "linux-2.6.24";

/// Bytes of a read, as of `cat` and `cp`.
const READ_BYTES: u64 = 128 << 10;

/// Windows of the largest limit that a reader reads: the first and the last are not like the others.
const WINDOWS: u64 = 8;

/// What all readers read in one run, at most; a reader reads two windows of the largest limit in any case.
const ALL_BYTES: u64 = 2 << 30;

/// The rate of each setting for each number of readers.
///
/// # Errors
/// A memory that is too small or too large, or costs that no device may have.
pub fn grid(
    costs: &Costs,
    settings: Vec<Setting>,
    readers: Vec<u32>,
    memory: Bytes,
    step: &(dyn Fn() + Sync),
) -> Result<Grid, Failure> {
    let cells = settings.len() * readers.len();
    let work = Mutex::new((0..cells).collect::<Vec<_>>());
    let done = Mutex::new(Vec::new());
    let next = || lock(&work).pop();
    let run = || {
        while let Some(cell) = next() {
            let (setting, readers) = (
                &settings[cell / readers.len()],
                readers[cell % readers.len()],
            );
            let rate = rate(costs, setting.read_ahead_kib, readers, memory);
            lock(&done).push((cell, rate));
            step();
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads.min(cells)).for_each(|_| drop(scope.spawn(run))));
    let mut done = std::mem::take(&mut *lock(&done));
    done.sort_by_key(|(cell, _)| *cell);
    let rates = done
        .into_iter()
        .map(|(_, rate)| rate)
        .collect::<Result<Vec<_>, _>>()?;
    let cell = |rate: &u64| Cell {
        rate: *rate as f64,
        slowest: None,
    };
    let rows = rates.chunks(readers.len().max(1));
    Ok(Grid {
        cells: rows.map(|row| row.iter().map(cell).collect()).collect(),
        settings,
        readers,
        noise: NOISE,
    })
}

/// Runs of the simulator repeat exactly; a real disk's rates differed by less than this from the simulated ones.
const NOISE: f64 = 0.02;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Bytes per second of all readers.
fn rate(costs: &Costs, read_ahead_kib: u64, readers: u32, memory: Bytes) -> Result<u64, Failure> {
    let largest = MOST_KIB << 10;
    let each = ALL_BYTES / u64::from(readers.max(1));
    let each = each.clamp(2 * largest, WINDOWS * largest);
    let all = Bytes(each * u64::from(readers));
    let settings = settings(read_ahead_kib, Bytes(memory.0.min(2 * all.0)))?;
    let refused =
        |e: &dyn std::fmt::Display| Failure::Usage(format!("{}: {e}", costs.from.display()));
    let device =
        Emulation::new(costs.switching, costs.rate, costs.servers).map_err(|e| refused(&e))?;
    let workload = ManyReaders {
        file_bytes: each,
        read_bytes: READ_BYTES,
        think_ns: 0,
        readers: readers as usize,
        shared: false,
    };
    let scene = Scene::new(settings, device.device(), &workload);
    let report = scene
        .run(&mut ())
        .map_err(|e| Failure::Run(format!("simulation: {e}")))?;
    let rate = report.throughput_bytes_per_second();
    Ok((rate as f64 * fits(read_ahead_kib, readers, memory)) as u64)
}

/// The part of two windows of each reader that half of the memory holds: one that is read, and one ahead of it.
fn fits(read_ahead_kib: u64, readers: u32, memory: Bytes) -> f64 {
    (memory.0 as f64 / 2.0 / windows(read_ahead_kib, readers).0.max(1) as f64).min(1.0)
}

/// Bytes of two windows of each reader.
#[must_use]
pub fn windows(read_ahead_kib: u64, readers: u32) -> Bytes {
    let each = read_ahead_kib.saturating_mul(2 << 10);
    Bytes(each.saturating_mul(u64::from(readers)))
}

/// Linux readahead with this limit.
fn settings(read_ahead_kib: u64, memory: Bytes) -> Result<Settings, Failure> {
    let preset = forerun_baselines::preset(PRESET).map_err(|e| Failure::Run(e.to_string()))?;
    let mut settings = preset.settings(memory).map_err(name_the_flag)?;
    let bytes = read_ahead_kib.saturating_mul(1024).max(4096);
    let depth = Choice::parse(
        "depth",
        METHODS.depth,
        &format!("fixed(depth_bytes={bytes})"),
    );
    settings.depth =
        depth.map_err(|e| Failure::Usage(format!("read-ahead of {read_ahead_kib} KiB: {e}")))?;
    settings.check().map_err(name_the_flag)?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use forerun_core::Nanos;

    use super::*;

    fn disk() -> Costs {
        Costs {
            switching: Nanos(8_000_000),
            rate: 80_000_000,
            servers: 1,
            from: "disk.toml".into(),
        }
    }

    fn of(memory: u64, readers: u32, kib: &[u64]) -> Vec<f64> {
        let settings = kib.iter().map(|kib| Setting {
            read_ahead_kib: *kib,
            scheduler: None,
        });
        let grid = grid(
            &disk(),
            settings.collect(),
            vec![readers],
            Bytes(memory),
            &|| (),
        )
        .unwrap();
        grid.cells.iter().map(|row| row[0].rate / 1e6).collect()
    }

    /// 128 KiB take 1.6 ms behind a switch of 8 ms, 1 MiB 13.1 ms: 1/6 and 0.62 of the rate.
    #[test]
    fn the_rates_are_those_of_a_switch_for_each_window() {
        let rates = of(256 << 20, 10, &[128, 1024]);
        let of_window = |bytes: f64| bytes / (0.008 + bytes / 80e6) / 1e6;
        assert!(rates[0] >= 0.9 * of_window(131_072.0), "{rates:?}");
        assert!(rates[0] <= 2.2 * of_window(131_072.0), "{rates:?}");
        assert!(
            rates[1] >= 0.9 * of_window(1_048_576.0) && rates[1] > 2.0 * rates[0],
            "{rates:?}"
        );
    }

    #[test]
    fn windows_that_do_not_fit_memory_cost_their_part_of_the_rate() {
        let part = |kib, readers| fits(kib, readers, Bytes(256 << 20));
        assert_eq!(
            [part(1024, 64), part(4096, 64), part(8192, 1)],
            [1.0, 0.25, 1.0]
        );
        let rates = of(64 << 20, 64, &[256, 8192]);
        assert!(rates[1] < rates[0] / 4.0, "{rates:?}");
        let enough = of(4 << 30, 64, &[8192]);
        assert!(enough[0] > rates[0], "{enough:?} {rates:?}");
    }

    #[test]
    fn a_memory_that_cannot_be_is_refused_with_its_range() {
        let setting = Setting {
            read_ahead_kib: 128,
            scheduler: None,
        };
        let refused = grid(&disk(), vec![setting], vec![1], Bytes(1000), &|| ());
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("--memory 1000B: must be at least"), "{why}");
    }
}
