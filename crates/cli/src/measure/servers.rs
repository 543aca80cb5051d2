//! Does the device work on several requests at once?
//!
//! Called by `measure`. Small reads at four random places, one after the other, against as many at
//! once, in turns. A device that gains less than twofold has one server: a disk reorders what
//! waits and gains some, but it has one arm. What gains more is left open, because how many
//! servers a flash device or a store has nobody needs to know: it gets everything at once.

use std::time::{Duration, Instant};

use forerun_core::{Bytes, Nanos};

use super::{MeasureError, Subject, UNIT, median, timed};

/// Reads at once.
const TOGETHER: usize = 4;

/// What answers faster than a millisecond has no arm; and starting threads would blur the rest.
const ARM_MIN: Nanos = Nanos(TOGETHER as u64 * 1_000_000);

/// Turns: the medians of 15 are a few per cent from each other on a quiet device.
const TURNS: std::ops::RangeInclusive<u32> = 3..=15;

/// Fifteen turns of eight reads of 10 ms.
const DEADLINE: Duration = Duration::from_secs(2);

/// Whether it has one server.
pub(super) fn is_one(
    subject: &mut dyn Subject,
    random: &mut fastrand::Rng,
) -> Result<bool, MeasureError> {
    let begun = Instant::now();
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for turn in 0..*TURNS.end() {
        if turn >= *TURNS.start() && begun.elapsed() > DEADLINE {
            break;
        }
        let mut sum = 0;
        for place in places(subject.bytes(), random) {
            sum += timed(subject, place, UNIT)?.0;
        }
        alone.push(Nanos(sum));
        let places = places(subject.bytes(), random);
        let time = subject.read_together(&places, UNIT as usize);
        together.push(time.map_err(|error| {
            let offset = places[0];
            MeasureError::Read { offset, error }
        })?);
    }
    let alone = median(&mut alone);
    Ok(alone >= ARM_MIN && alone.0 < 2 * median(&mut together).0)
}

fn places(bytes: Bytes, random: &mut fastrand::Rng) -> [u64; TOGETHER] {
    let last = (bytes.0 / UNIT).saturating_sub(1);
    std::array::from_fn(|_| random.u64(0..=last) * UNIT)
}
