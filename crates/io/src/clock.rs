//! The time a driver tells its engine.
//!
//! Asked by the [engine's lock holder](crate::engine_state) before each input, so the times in a
//! journal never go back. A logical clock makes two runs of one thread equal line for line; it
//! only counts, so nothing that waits can be built on it.

use std::time::Instant;

use forerun_core::Nanos;

/// Which time the engine is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// Nanoseconds since the driver was built.
    #[default]
    Monotonic,
    /// The number of inputs so far: for tests that compare journals.
    Logical,
}

/// A running clock.
#[derive(Debug)]
pub(crate) enum Ticker {
    Since(Instant),
    Count(u64),
}

impl Ticker {
    pub(crate) fn start(clock: Clock) -> Self {
        match clock {
            Clock::Monotonic => Self::Since(Instant::now()),
            Clock::Logical => Self::Count(0),
        }
    }

    pub(crate) fn now(&mut self) -> Nanos {
        match self {
            Self::Since(start) => nanos_since(*start),
            Self::Count(count) => {
                *count += 1;
                Nanos(*count)
            }
        }
    }
}

/// Nanoseconds since `start`; 584 years fit.
pub(crate) fn nanos_since(start: Instant) -> Nanos {
    Nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// A coarse clock, which is read without a system call and exact to a few milliseconds.
#[inline]
fn coarse(clock: libc::clockid_t) -> libc::timespec {
    let mut now = std::mem::MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `now` is writable for the call, which fills it: coarse clocks are there since Linux 2.6.32,
    // which is older than any kernel that this library runs on.
    unsafe {
        libc::clock_gettime(clock, now.as_mut_ptr());
        now.assume_init()
    }
}

/// Nanoseconds of the coarse monotonic clock.
#[inline]
pub(crate) fn coarse_nanos() -> u64 {
    let now = coarse(libc::CLOCK_MONOTONIC_COARSE);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whole seconds of the same clock, plus one.
pub(crate) fn coarse_seconds() -> u64 {
    coarse(libc::CLOCK_MONOTONIC_COARSE).tv_sec as u64 + 1
}

/// Whole seconds since the epoch, by the clock from which the kernel takes the times of files.
pub(crate) fn file_seconds() -> i64 {
    coarse(libc::CLOCK_REALTIME_COARSE).tv_sec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logical_clock_counts_and_a_real_one_does_not_go_back() {
        let mut logical = Ticker::start(Clock::Logical);
        assert_eq!((logical.now(), logical.now()), (Nanos(1), Nanos(2)));
        let mut real = Ticker::start(Clock::Monotonic);
        let first = real.now();
        assert!(real.now() >= first);
        assert!(coarse_seconds() > 0);
    }
}
