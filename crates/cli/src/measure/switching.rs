//! Switching cost over one distance: pairs of small reads that far apart.
//!
//! Called by `measure`. The first read of a pair puts the device at a random place, the second is
//! timed. Random places, so that neither read finds its block in a cache of the device; both
//! directions, because a file system's neighbours lie on both sides.

use std::time::{Duration, Instant};

use forerun_core::{Bytes, Nanos, Profile};

use super::{MeasureError, Subject, UNIT, median, timed};

/// The smallest distance that is a switch on every device: shorter ones fall into the piece that
/// drives and stores read ahead by themselves.
const DISTANCE_MIN: u64 = 64 << 10;

/// Four times as far from point to point: seek curves are smooth on a logarithmic scale.
const GROWTH: u64 = 4;

/// Pairs at a distance: the median of 25 is within a few per cent where costs spread evenly over
/// a revolution. Fewer if the deadline comes first.
const PAIRS: std::ops::RangeInclusive<u32> = 7..=25;

/// Fourteen distances, to 2 TiB, and nine rates stay below two minutes.
const DEADLINE: Duration = Duration::from_secs(6);

/// The distances to measure, in bytes between the end of one read and the start of the next.
pub(super) fn distances(bytes: Bytes) -> Vec<u64> {
    let longest = bytes.0 / 2 / UNIT * UNIT;
    let grown = std::iter::successors(Some(DISTANCE_MIN), |d| d.checked_mul(GROWTH));
    // The last one is half the subject: a step close to it would be redundant.
    grown
        .take_while(|d| *d <= longest / 2)
        .chain([longest])
        .collect()
}

/// The cost of a switch over a distance.
pub(super) fn over(
    subject: &mut dyn Subject,
    distance: u64,
    rates: &Profile,
    random: &mut fastrand::Rng,
) -> Result<Nanos, MeasureError> {
    let begun = Instant::now();
    let mut costs = Vec::new();
    for pair in 0..*PAIRS.end() {
        if pair >= *PAIRS.start() && begun.elapsed() > DEADLINE {
            break;
        }
        let (from, to) = places(subject.bytes(), distance, random);
        timed(subject, from, UNIT)?;
        let time = timed(subject, to, UNIT)?;
        let transfer = UNIT * 1_000_000_000 / rates.rate(Bytes(to)).max(1);
        costs.push(Nanos(time.0.saturating_sub(transfer)));
    }
    Ok(median(&mut costs))
}

/// A pair of reads, anywhere, in either direction. The distance is from the end of the first to
/// the start of the second: that is how far the device has to go.
fn places(bytes: Bytes, distance: u64, random: &mut fastrand::Rng) -> (u64, u64) {
    let span = UNIT + distance + UNIT;
    let low = random.u64(0..=bytes.0.saturating_sub(span) / UNIT) * UNIT;
    if random.bool() {
        (low, low + UNIT + distance)
    } else {
        (low + distance - UNIT, low)
    }
}
