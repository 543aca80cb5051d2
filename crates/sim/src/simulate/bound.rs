//! The least time that a run can take: what its result is measured against.
//!
//! In units, tiny instances are searched for the optimum. Otherwise it is a lower bound that no
//! schedule can go below, and that none need reach:
//!
//! ```text
//! devices   max(compute + driver of the fewest fetches, 3/4 of a disk's blocks at its best rate)
//! units     max(references + F if the first one is cold, F times a disk's cold blocks + 1)
//! ```
//!
//! The fewest fetches are those of optimal demand fetching; positioning is left out.

use forerun_core::Nanos;

use crate::count::{Future, optimal_misses};
use crate::device::{Device, transfer_time};
use crate::hinted::optimum::optimum;
use crate::hinted::unit::Instance;
use crate::hinted::{Reads, host::Host};

/// What the transfer bound leaves of the time at a profile's best rate. The profile of a disk counts
/// in the switches from track to track, a ninth of the time on an HP 97560 (8 of 72 sectors), which
/// a short run can do without: with all of it, a run of 5 MB came out at 0.986 of its bound. A
/// quarter less is below what any of the built-in disks can do.
const TRANSFER_PERCENT: u128 = 75;

/// A bound and what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The time, in nanoseconds or units.
    pub least: u64,
    /// `optimum`, or which lower bound.
    pub kind: &'static str,
}

/// What no hinted method can beat on these devices; the driver's share is left out for a host
/// whose driver may fetch many blocks for the price of one.
#[must_use]
pub fn on_devices(
    reads: &Reads,
    cache_blocks: u32,
    host: &Host,
    devices: &[Box<dyn Device>],
    by_block: bool,
) -> Bound {
    let compute = reads.references.iter().map(|r| r.compute.0);
    let compute = compute.fold(0, u64::saturating_add);
    let fewest = if by_block {
        let blocks = reads.references.iter().map(|r| r.block.0.into());
        optimal_misses(&Future::new(blocks), cache_blocks as usize)
    } else {
        0
    };
    let processor = compute.saturating_add(host.driver.0.saturating_mul(fewest));
    let blocks = per_disk(reads, |_| true);
    let transfers = devices.iter().zip(blocks).map(|(device, blocks)| {
        let rates = device.profile();
        let best = rates.rate_points().iter().map(|(_, rate)| *rate).max();
        let rate = best
            .unwrap_or(u64::MAX)
            .saturating_mul(device.servers().max(1).into());
        let bytes = forerun_core::Bytes(blocks.saturating_mul(host.block_bytes.0));
        let Nanos(time) = transfer_time(bytes, rate);
        u64::try_from(u128::from(time) * TRANSFER_PERCENT / 100).unwrap_or(u64::MAX)
    });
    let transfer = transfers.max().unwrap_or(0);
    let kind = match (processor >= transfer, by_block) {
        (true, true) => "compute + driver",
        (true, false) => "compute",
        (false, _) => "transfer",
    };
    Bound {
        least: processor.max(transfer),
        kind,
    }
}

/// What no schedule of an instance can beat.
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
    let fetched = per_disk(&instance.reads, is_cold);
    let fetched = fetched.into_iter().filter(|blocks| *blocks > 0);
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

/// How many of the blocks lie on each disk.
fn per_disk(reads: &Reads, counts: impl Fn(u32) -> bool) -> Vec<u64> {
    let mut blocks = vec![0; usize::from(reads.disks())];
    for (block, place) in (0..).zip(&reads.places) {
        blocks[usize::from(place.disk.0)] += u64::from(counts(block));
    }
    blocks
}
