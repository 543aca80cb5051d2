//! The number of requests at once that a device works on.
//!
//! Called by `measure`. Random reads with 1, 2, 4, .. of them at once, small ones and larger ones:
//! throughput grows up to the number of channels, arms or connections and stays there. The answer
//! is the smallest number that reaches [`ENOUGH_PERCENT`] of the best; of the two sizes the larger
//! answer, because too many at once cost a little and too few a lot.
//!
//! ```text
//! at once      1     2     4     8    16    32     flash with 8 channels
//! reads/s   12 k  24 k  47 k  94 k  95 k  95 k  -> 8, after two doublings that gained nothing
//! ```
//!
//! A disk reorders waiting requests and gains some by it, but it has one arm: a device that is slow
//! alone and never gains twofold has one server. A device that still gains at [`AT_ONCE_MAX`], as a
//! store over a network, counts as having so many.

use std::time::{Duration, Instant};

use forerun_core::profile::SERVERS_MAX;
use forerun_core::{Bytes, Nanos};

use super::{MeasureError, Subject, UNIT, median, together};

/// A block, and about the size of a read by programs that read files.
const SIZES: [u64; 2] = [UNIT, 128 << 10];

/// Below the number that stands for "unknown", and no more threads than that.
const AT_ONCE_MAX: u32 = SERVERS_MAX / 2;

/// Medians of five rounds are within a few per cent of each other: closer to the best is the best.
const ENOUGH_PERCENT: u64 = 95;

/// A device that answers faster than a millisecond has no arm.
const ARM_MIN: Nanos = Nanos(1_000_000);

/// Rounds at each number.
const ROUNDS: std::ops::RangeInclusive<u32> = 3..=5;

/// A round lasts about so long, because threads take some ten microseconds each to start.
const ROUND: Nanos = Nanos(20_000_000);

/// Reads of a thread in a round: two even where one takes as long, and at most as many as 20 ms
/// hold.
const READS: std::ops::RangeInclusive<u64> = 2..=256;

/// For each size. A disk whose queue helps a little up to the end takes all of it.
const DEADLINE: Duration = Duration::from_secs(10);

/// The number of servers.
pub(super) fn count(
    subject: &mut dyn Subject,
    random: &mut fastrand::Rng,
) -> Result<u32, MeasureError> {
    let mut most = 1;
    for size in SIZES {
        most = most.max(of_size(subject, size, random)?);
    }
    Ok(most)
}

fn of_size(
    subject: &mut dyn Subject,
    size: u64,
    random: &mut fastrand::Rng,
) -> Result<u32, MeasureError> {
    let begun = Instant::now();
    // The first reads also wake a device that slept.
    let alone = round(subject, size, *READS.start() * 4, 1, random)?;
    let each = (ROUND.0 / alone.max(1)).clamp(*READS.start(), *READS.end());
    // The time of a read by how many there are at once.
    let mut found: Vec<(u32, u64)> = Vec::new();
    let most = AT_ONCE_MAX.min(subject.at_once_max());
    let doubled = |n: &u32| (n * 2 <= most).then_some(n * 2);
    for at_once in std::iter::successors(Some(1), doubled) {
        let mut times = Vec::new();
        for turn in 0..*ROUNDS.end() {
            if turn >= *ROUNDS.start() && begun.elapsed() > DEADLINE {
                break;
            }
            let reads = each * u64::from(at_once);
            times.push(Nanos(round(subject, size, reads, at_once, random)?));
        }
        found.push((at_once, median(&mut times).0.max(1)));
        if !still_gains(&found) || begun.elapsed() > DEADLINE {
            break;
        }
    }
    Ok(smallest(&found))
}

/// Reads at random places; the time of one, on average.
fn round(
    subject: &mut dyn Subject,
    size: u64,
    reads: u64,
    at_once: u32,
    random: &mut fastrand::Rng,
) -> Result<u64, MeasureError> {
    let last = subject.bytes().0.saturating_sub(size) / UNIT;
    let places: Vec<_> = (0..reads).map(|_| random.u64(0..=last) * UNIT).collect();
    let time = together(subject, &places, Bytes(size), at_once)?;
    Ok((time.0 / reads.max(1)).max(1))
}

/// Whether one of the last two doublings gained anything.
fn still_gains(found: &[(u32, u64)]) -> bool {
    let best = |found: &[(u32, u64)]| found.iter().map(|(_, time)| *time).min();
    let Some(before) = found.len().checked_sub(2).and_then(|n| best(&found[..n])) else {
        return true;
    };
    best(found).is_some_and(|now| now * 100 < before * ENOUGH_PERCENT)
}

/// The smallest number that is as good as the best, from the times of a read.
fn smallest(found: &[(u32, u64)]) -> u32 {
    let best = found.iter().map(|(_, time)| *time).min().unwrap_or(1);
    let alone = found.first().map_or(1, |(_, time)| *time);
    if alone >= ARM_MIN.0 && alone < 2 * best {
        return 1;
    }
    let enough = found
        .iter()
        .find(|(_, time)| best * 100 >= time * ENOUGH_PERCENT);
    enough.map_or(1, |(at_once, _)| *at_once)
}
