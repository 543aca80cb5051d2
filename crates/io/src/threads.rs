//! The threads of this process that take hits, and where each announces its [hazard](crate::hazard).
//!
//! One slab serves all drivers. A thread has a slot from its first hit until it ends.

use crate::arena::Run;
use crate::hazard::{Announcer, Claim, NONE, Slab, Slot};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize};

/// More threads than this reading at once take turns at the engine instead.
const SLOTS: usize = 256;

static SLAB: Slab<SLOTS> = Slab {
    slots: [const {
        Slot {
            hazard: AtomicU64::new(NONE),
            taken: AtomicBool::new(false),
        }
    }; SLOTS],
    used: AtomicUsize::new(0),
};

thread_local! {
    static CLAIM: Claim<'static> = SLAB.claim();
}

/// This thread's announcer, if there is one to be had.
#[inline]
pub(crate) fn announcer() -> Option<Announcer<'static>> {
    CLAIM.try_with(Claim::announcer).ok().flatten()
}

/// Returns once no thread copies out of these frames, whose blocks have left the table by now; false if
/// one does still after so many looks.
pub(crate) fn wait_until_clear(domain: u32, runs: &[Run], looks_max: u32) -> bool {
    SLAB.wait_until_clear(domain, runs, looks_max)
}

/// Whether no thread copies out of these frames, whose blocks have left the table by now.
pub(crate) fn is_clear(domain: u32, runs: &[Run]) -> bool {
    SLAB.is_clear(domain, runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::table::Frame;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_filler_waits_for_the_frame_and_only_for_it() {
        let run = |first, count| {
            let first = Frame(first);
            [Run { first, count }]
        };
        let (held, free) = (run(1, 1), run(2, 2));
        let announcer = announcer().unwrap();
        let hazard = announcer.hold(u32::MAX - 1, Frame(1), || true).unwrap();
        assert!(wait_until_clear(u32::MAX - 1, &free, 0));
        assert!(wait_until_clear(u32::MAX - 2, &held, 0));
        assert!(!wait_until_clear(u32::MAX - 1, &held, 2));
        let waited = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(wait_until_clear(u32::MAX - 1, &held, u32::MAX));
                waited.store(true, Ordering::SeqCst);
            });
            std::thread::yield_now();
            assert!(!waited.load(Ordering::SeqCst));
            drop(hazard);
        });
        assert!(waited.load(Ordering::SeqCst));
    }

    #[test]
    fn slots_come_back_when_threads_end() {
        for _ in 0..2 * SLOTS {
            std::thread::spawn(|| assert!(announcer().is_some()))
                .join()
                .unwrap();
        }
    }
}
