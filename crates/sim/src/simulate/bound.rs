//! The least time of a run: the bound that its result is compared with.
//!
//! In units, tiny instances are searched for the optimum. Otherwise it is a lower bound that no
//! schedule can go below, and that none need reach:
//!
//! ```text
//! devices   max(compute + driver of the fewest fetches, the least a disk takes for its blocks)
//! units     max(references + F if the first one is cold, F times a disk's cold blocks + 1)
//! ```
//!
//! The fewest fetches are those of optimal demand fetching, or one for each block where references
//! are not kept. The least time of a disk comes from its model: [`Device::least`].

use forerun_core::{Bytes, Nanos};

use super::placing::Placing;
use super::recorded::Recorded;
use crate::count::optimum::Uses;
use crate::device::Device;
use crate::device::needs::{Needs, Run};
use crate::hinted::host::Host;
use crate::hinted::optimum::optimum;
use crate::hinted::unit::Instance;
use crate::workload::Workload;
use crate::world::begins;

/// A bound and its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The time, in nanoseconds or units.
    pub least: u64,
    /// `optimum`, or which lower bound.
    pub kind: &'static str,
}

impl Bound {
    /// The larger of the processor's time and the devices' time.
    #[must_use]
    pub fn of(processor: u64, kind: &'static str, devices: Nanos) -> Self {
        if processor >= devices.0 {
            let least = processor;
            return Self { least, kind };
        }
        let (least, kind) = (devices.0, "transfer");
        Self { least, kind }
    }
}

/// A lower bound for methods that fetch block by block on these devices, one a disk, if this is
/// computed in all.
#[must_use]
pub fn by_block(
    recorded: &Recorded,
    placing: &Placing<'_>,
    cache_blocks: u32,
    host: &Host,
    compute: u64,
    devices: &[Box<dyn Device>],
) -> Bound {
    let (fewest, kind) = fewest_fetches(recorded, cache_blocks);
    let processor = compute.saturating_add(host.driver.0.saturating_mul(fewest));
    Bound::of(processor, kind, least_of(devices, &placing.needs()))
}

/// The least the fullest of these devices takes for its needs.
#[must_use]
pub fn least_of(devices: &[Box<dyn Device>], needs: &[Needs]) -> Nanos {
    let times = devices.iter().zip(needs);
    let times = times.map(|(device, needs)| device.least(needs));
    times.max().unwrap_or_default()
}

fn fewest_fetches(recorded: &Recorded, cache_blocks: u32) -> (u64, &'static str) {
    let (references, distinct) = (recorded.references(), recorded.blocks().len());
    if references.is_empty() {
        return (distinct as u64, "compute + driver of each block once");
    }
    let blocks = references.iter().map(|reference| reference.block.0);
    let misses = Uses::of(blocks.collect()).misses(cache_blocks.into());
    (misses, "compute + driver")
}

/// A lower bound for engines on devices that take at least so long, if one reader computes so long: an
/// engine may fetch many blocks for the price of one, so its driver costs nothing here.
#[must_use]
pub fn by_extent(compute_longest: u64, least: Nanos, readers: usize) -> Bound {
    let kind = match readers {
        0..=1 => "compute",
        _ => "compute of the longest reader",
    };
    Bound::of(compute_longest, kind, least)
}

/// The needs of a workload whose files lie on an array as the world lays them out: all blocks that
/// any of its readers takes a byte of, as far as their file goes.
#[must_use]
pub fn needs_of(workload: &dyn Workload, block_bytes: u32) -> Needs {
    let (block, sizes) = (u64::from(block_bytes.max(1)), workload.files());
    let begins = begins(&sizes, block, workload.is_packed());
    let mut needs = Needs::default();
    let files = workload.readers();
    let lies = |reader: usize| {
        let file = *files.get(reader)?;
        Some((sizes.get(file)?, begins.get(file)?))
    };
    for reader in 0..files.len() {
        let mut runs = Vec::new();
        for step in workload.steps(reader) {
            let Some((size, begin)) = lies(step.on.unwrap_or(reader)) else {
                continue;
            };
            let wanted = step.offset.0.saturating_add(step.take.0.min(step.bytes.0));
            let end = wanted.min(size.0).next_multiple_of(block).min(size.0);
            let first = step.offset.0 / block * block;
            runs.push(Run {
                at: Bytes(begin.saturating_add(first)),
                bytes: Bytes(end.saturating_sub(first)),
            });
            if runs.len() == RUNS_MAX {
                needs = needs.and(std::mem::take(&mut runs));
            }
        }
        needs = needs.and(runs);
    }
    needs
}

/// How many runs are collected before those that touch are made one: 16 MiB.
const RUNS_MAX: usize = 1 << 20;

/// A lower bound for every schedule of an instance.
#[must_use]
pub fn in_units(instance: &Instance, cache_blocks: u32) -> Bound {
    if let Some(least) = optimum(instance, cache_blocks).filter(|least| *least < u64::MAX) {
        let kind = "optimum";
        return Bound { least, kind };
    }
    let is_cold = |block: u32| !instance.warm.iter().any(|warm| warm.0 == block);
    let units = instance.fetch_units;
    let references = &instance.reads.references;
    let first = references.first().is_some_and(|r| is_cold(r.block.0));
    let served = references.len() as u64 + if first { units } else { 0 };
    let mut cold = vec![0u64; usize::from(instance.reads.disks())];
    for (block, place) in (0..).zip(&instance.reads.places) {
        cold[usize::from(place.disk.0)] += u64::from(is_cold(block));
    }
    let fetched = cold.into_iter().filter(|blocks| *blocks > 0);
    let longest = fetched.map(|blocks| blocks * units + 1).max().unwrap_or(0);
    Bound {
        least: served.max(longest),
        kind: if served >= longest {
            "references"
        } else {
            "fetches"
        },
    }
}
