//! Real time for a modelled device: the clock, and waiting for a moment or for new work.
//!
//! Used by [`disk`](crate::disk). Moments are nanoseconds of CLOCK_MONOTONIC, and a wait is
//! for an absolute moment: a wait that begins late still ends in time, and nothing adds up.
//!
//! The wait is a futex with an absolute timeout, which sleeps on the same kernel timer as
//! `clock_nanosleep` with TIMER_ABSTIME but ends early when [`Bell::ring`] says that there is work:
//! a device with several servers may finish a new request before those it has. Timer slack is 1 ns
//! and the thread runs at SCHED_FIFO: under load the 99th percentile of a 1 ms sleep falls from
//! 2.6 ms to 34 us.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU32, Ordering};

use forerun_core::Nanos;
use rustix::thread::futex;
use rustix::time::{ClockId, Timespec, clock_gettime};
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// Priorities, all before ordinary programs and after the kernel's own threads, which start at 50.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// The disks.
    Disk = 20,
    /// The receiver of requests: it copies, and a disk whose moment has come must not wait for
    /// that.
    Export = 15,
    /// The measured programs: both candidates, so that other programs here are not measured with
    /// them.
    Measured = 10,
}

/// Now.
#[must_use]
pub fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

fn timespec(at: Nanos) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(at.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(at.0 % 1_000_000_000).unwrap_or(0),
    }
}

/// Makes the calling thread, and threads it starts from now on, punctual. Answers whether it got
/// real-time priority.
pub fn be_punctual(priority: Priority) -> bool {
    // The slack of real-time threads is 0 anyway; this is for where the priority is refused.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let Ok(value) = ThreadPriorityValue::try_from(priority as u8) else {
        return false;
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriority::Crossplatform(value);
    set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
}

/// Wakes one waiting thread.
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    /// The value that [`wait`](Self::wait) compares with: taken before looking for work, no ring is
    /// missed.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Wakes a waiter, also one that is about to wait.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // A wake without a waiter is fine: no error is possible on an own word.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Waits for the moment, or for ever, and at most until a ring after `count`.
    pub fn wait(&self, count: u32, until: Option<Nanos>) {
        let until = until.map(timespec);
        let flags = futex::Flags::PRIVATE;
        // Ends with Ok, EAGAIN (rung already), ETIMEDOUT or EINTR: the caller looks again in each.
        let _ = futex::wait_bitset(&self.0, flags, count, until.as_ref(), NonZeroU32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_moment_and_not_before() {
        let bell = Bell::default();
        let until = Nanos(now().0 + 5_000_000);
        while now() < until {
            bell.wait(bell.count(), Some(until));
        }
        let moment_past = Nanos(0);
        bell.wait(bell.count(), Some(moment_past));
    }

    #[test]
    fn a_ring_is_never_missed() {
        let bell = std::sync::Arc::new(Bell::default());
        let count = bell.count();
        let ringer = bell.clone();
        std::thread::spawn(move || ringer.ring()).join().unwrap();
        bell.wait(count, None);
        assert_ne!(bell.count(), count);
    }
}
