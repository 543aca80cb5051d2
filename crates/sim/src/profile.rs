//! Profiling: the two maps of a competitive depth, measured on a device in virtual time.
//!
//! `forerun profile` measures a real device, this a modelled one; a device's own
//! [`profile`](Device::profile) says the same from its parameters, and a test holds the two
//! together. Li et al. 2004, section 3.1, measures a drive this way.
//!
//! ```text
//! rate at a location     (large - small) / (time of the large read - time of the small one)
//! switching by distance  mean time of a small read so far from the last one, less its bytes
//! ```
//!
//! Each rate comes from two new devices in equal states, so that any time before the bytes
//! cancels. Switching is a mean over random places and times, because rotation is met by chance.
//! It asks nothing a user could not ask: reads, one at a time.

use forerun_core::profile::{RATE_RANGE, SWITCHING_MAX};
use forerun_core::{Bytes, Nanos, Profile};

use crate::device::{Device, Request, transfer_time};
use crate::random::Random;

/// The small read: a page.
const SMALL: u64 = 4096;
/// The large one: long enough that track switches average out.
const LARGE: u64 = 32 << 20;
/// Locations at which the rate is measured; a drive has about as many zones.
const LOCATIONS: u64 = 16;
/// Reads at each distance: the mean of so many half revolutions is good to 2 %.
const READS: u64 = 400;
/// The assumed size of a device that has no end.
const ENDLESS: u64 = 64 << 30;
/// Longest pause between two reads, longer than the slowest revolution of a disk.
const PAUSE_MAX: u64 = 50_000_000;

/// Measures the device that `make` builds, each time in the same state.
#[must_use]
pub fn measure(make: &dyn Fn() -> Box<dyn Device>) -> Profile {
    let capacity = make().capacity().map_or(ENDLESS, |end| end.0);
    let large = LARGE.min(capacity / 4).max(2 * SMALL);
    let room = capacity.saturating_sub(large);
    let rates: Vec<(Bytes, u64)> = (0..LOCATIONS)
        .map(|step| room / LOCATIONS * step + room / LOCATIONS / 2)
        .map(|at| (Bytes(at), rate(make, at, large)))
        .collect();
    let points = distances(capacity)
        .into_iter()
        .map(|distance| {
            let cost = switching(&mut *make(), distance, capacity, &rates);
            (Bytes(distance), cost)
        })
        .collect();
    let mut rates = rates;
    rates.dedup_by_key(|point| point.0);
    Profile::new(points, rates).unwrap_or_default()
}

/// Distances to measure at: close together where seek curves bend, which is near 0.
fn distances(capacity: u64) -> Vec<u64> {
    let mut distances = vec![capacity / 16 * 15, capacity / 16 * 12];
    let mut half = capacity / 2;
    while half > 1 << 17 && distances.len() < 32 {
        distances.extend([half, half / 4 * 3]);
        half /= 2;
    }
    distances.sort_unstable();
    distances.dedup();
    distances
}

/// Bytes a second at a location.
fn rate(make: &dyn Fn() -> Box<dyn Device>, at: u64, large: u64) -> u64 {
    let time = |bytes| respond(&mut *make(), Nanos(0), at, bytes);
    let longer = time(large).since(time(SMALL)).0.max(1);
    let rate = u128::from(large - SMALL) * 1_000_000_000 / u128::from(longer);
    let rate = u64::try_from(rate).unwrap_or(u64::MAX);
    rate.clamp(*RATE_RANGE.start(), *RATE_RANGE.end())
}

/// The mean cost of going so far.
fn switching(
    device: &mut dyn Device,
    distance: u64,
    capacity: u64,
    rates: &[(Bytes, u64)],
) -> Nanos {
    let mut random = Random::new(distance);
    let slowest = rates.iter().map(|(_, rate)| *rate).min().unwrap_or(1);
    let (mut now, mut sum) = (Nanos(0), 0u128);
    for _ in 0..READS {
        let low = random.below(capacity.saturating_sub(distance + SMALL)) / SMALL * SMALL;
        let high = low + distance / SMALL * SMALL;
        let (from, to) = if random.chance(500) {
            (low, high)
        } else {
            (high, low)
        };
        now = respond(device, now, from, SMALL);
        now = Nanos(now.0 + random.below(PAUSE_MAX));
        let end = respond(device, now, to, SMALL);
        sum += u128::from(end.since(now).0);
        now = Nanos(end.0 + random.below(PAUSE_MAX));
    }
    let mean = u64::try_from(sum / u128::from(READS)).unwrap_or(u64::MAX);
    let cost = mean.saturating_sub(transfer_time(Bytes(SMALL), slowest).0);
    Nanos(cost).min(SWITCHING_MAX)
}

/// Reads alone on the device; when it ends.
fn respond(device: &mut dyn Device, now: Nanos, at: u64, bytes: u64) -> Nanos {
    let (at, bytes) = (Bytes(at), Bytes(bytes));
    device.submit(now, Request::new(0, at, bytes));
    let (mut done, mut last) = (Vec::new(), now);
    while let Some(next) = device.next_event() {
        device.advance(next, &mut done);
        if let Some(end) = done.pop() {
            last = end.at;
        }
    }
    last
}
