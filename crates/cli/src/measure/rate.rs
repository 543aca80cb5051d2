//! Transfer rate at one location: pieces read one behind the other.
//!
//! Called by `measure`. Of a device with one server the first piece pays for getting there and is
//! dropped. The median of the others' times, not their sum, so that one interruption does not lower
//! the rate.
//!
//! A device with several servers gets several pieces at once, as a stream that is read ahead does:
//! one at a time, each waits for the latency of the one before, and a fast disk seemed to be half
//! as fast as it was. There it is the median of groups of pieces.

use std::time::{Duration, Instant};

use forerun_core::{Bytes, Nanos};

use super::{MeasureError, Subject, UNIT, median, timed, together};

/// Long enough that a request's fixed cost does not show.
const PIECE_BYTES: u64 = 1 << 20;

/// Outer and inner tracks of a disk differ twofold, smoothly: nine points show it.
const LOCATIONS_MAX: u64 = 9;

/// Pieces read at a location: the median settles well before, and a slow device is stopped by
/// the deadline.
const PIECES: std::ops::RangeInclusive<u64> = 4..=64;

/// 9 locations of 2.5 s leave most of two minutes to the switching costs.
const DEADLINE: Duration = Duration::from_millis(2_500);

/// Pieces of a stream at once: where four do not fill a device a stream of ours does not either.
const AT_ONCE_MAX: u32 = 4;

/// Pieces of a group for each at once: the last ones of a group find the device half idle.
const GROUP: usize = 4;

/// Where to measure: evenly spread, with room for the pieces behind each.
pub(super) fn locations(bytes: Bytes) -> Vec<u64> {
    let room = *PIECES.start() * PIECE_BYTES;
    let count = (bytes.0 / room).clamp(1, LOCATIONS_MAX);
    let last = bytes.0.saturating_sub(pieces(bytes, count) * PIECE_BYTES);
    let place = |i: u64| (u128::from(last) * u128::from(i) / u128::from((count - 1).max(1))) as u64;
    (0..count).map(|i| place(i) / UNIT * UNIT).collect()
}

fn pieces(bytes: Bytes, locations: u64) -> u64 {
    (bytes.0 / locations / PIECE_BYTES).clamp(*PIECES.start(), *PIECES.end())
}

/// Bytes per second at a location, of a device with a given number of servers.
pub(super) fn at(
    subject: &mut dyn Subject,
    location: u64,
    servers: u32,
) -> Result<u64, MeasureError> {
    match servers {
        1 => one_by_one(subject, location),
        _ => in_groups(subject, location, servers.min(AT_ONCE_MAX)),
    }
}

fn in_groups(subject: &mut dyn Subject, location: u64, at_once: u32) -> Result<u64, MeasureError> {
    let begun = Instant::now();
    let pieces = pieces(subject.bytes(), locations(subject.bytes()).len() as u64);
    let places: Vec<_> = (0..pieces).map(|i| location + i * PIECE_BYTES).collect();
    let mut times = Vec::new();
    for group in places.chunks(at_once as usize * GROUP) {
        if !times.is_empty() && begun.elapsed() > DEADLINE {
            break;
        }
        let time = together(subject, group, Bytes(PIECE_BYTES), at_once)?;
        times.push(Nanos(time.0 / group.len() as u64));
    }
    let Nanos(time) = median(&mut times);
    Ok(PIECE_BYTES * 1_000_000_000 / time.max(1))
}

fn one_by_one(subject: &mut dyn Subject, location: u64) -> Result<u64, MeasureError> {
    let begun = Instant::now();
    let mut times = Vec::new();
    let pieces = pieces(subject.bytes(), locations(subject.bytes()).len() as u64);
    for piece in 0..pieces {
        if piece >= *PIECES.start() && begun.elapsed() > DEADLINE {
            break;
        }
        let time = timed(subject, location + piece * PIECE_BYTES, PIECE_BYTES)?;
        if piece > 0 {
            times.push(time);
        }
    }
    let Nanos(time) = median(&mut times);
    Ok(PIECE_BYTES * 1_000_000_000 / time.max(1))
}
