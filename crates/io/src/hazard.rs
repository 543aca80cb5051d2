//! Hazards: how a reader tells everybody that it is copying out of a frame.
//!
//! The hit path holds no lock, so between its lookup and the end of its copy the engine may give
//! the frame to another block. Reader and filler therefore shake hands:
//!
//! ```text
//! reader                              filler (after the engine vacated the frame)
//!   find block -> frame
//!   hazard := frame        (SeqCst)     word := other block       (SeqCst, by the engine)
//!   word still the block?  (SeqCst)     any hazard on the frame?  (SeqCst, until none)
//!   copy, hazard := none   (Release)    hand the frame to the device
//! ```
//!
//! In the one order of all four steps either the reader sees the changed word and does not copy,
//! or the filler sees the hazard and waits, at most as long as one block takes to copy.
//!
//! Slots stand in a fixed slab shared by all drivers of the process, one for each thread that
//! ever hit, given back when it ends. A thread that finds none takes the slow path.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use forerun_core::table::Frame;

use crate::arena::Run;

/// More threads than this reading at once take turns at the engine instead.
const SLOTS: usize = 256;

const NONE: u64 = u64::MAX;

/// One thread's hazard, alone on its pair of cache lines (processors fetch them in pairs).
#[repr(align(128))]
struct Slot {
    hazard: AtomicU64,
    taken: AtomicBool,
}

static SLAB: [Slot; SLOTS] = [const {
    Slot {
        hazard: AtomicU64::new(NONE),
        taken: AtomicBool::new(false),
    }
}; SLOTS];

/// Slots from here on were never taken, so fillers need not look at them.
static USED: AtomicUsize = AtomicUsize::new(0);

/// A thread's hold on its slot.
struct Claim(Option<&'static Slot>);

impl Claim {
    fn new() -> Self {
        let free = |slot: &Slot| {
            !slot.taken.load(Ordering::Relaxed) && !slot.taken.swap(true, Ordering::AcqRel)
        };
        let Some(index) = SLAB.iter().position(free) else {
            return Self(None);
        };
        // Before any hazard of this slot, so that a filler that does not count it yet has vacated
        // its frame before, and the reader sees that.
        USED.fetch_max(index + 1, Ordering::SeqCst);
        Self(Some(&SLAB[index]))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.hazard.store(NONE, Ordering::Release);
            slot.taken.store(false, Ordering::Release);
        }
    }
}

thread_local! {
    static CLAIM: Claim = Claim::new();
}

/// This thread's slot, good until the thread ends; none if all are taken.
#[derive(Clone, Copy)]
pub(crate) struct Announcer(&'static Slot);

/// The thread's announcer, if there is one to be had.
pub(crate) fn announcer() -> Option<Announcer> {
    CLAIM
        .try_with(|claim| claim.0.map(Announcer))
        .ok()
        .flatten()
}

/// A hazard on one frame, lifted when dropped.
pub(crate) struct Hazard(&'static Slot);

impl Announcer {
    /// Announces that this thread is about to copy out of `frame` of the arena named by `domain`.
    pub(crate) fn announce(self, domain: u32, frame: Frame) -> Hazard {
        self.0.hazard.store(name(domain, frame), Ordering::SeqCst);
        Hazard(self.0)
    }
}

impl Drop for Hazard {
    fn drop(&mut self) {
        self.0.hazard.store(NONE, Ordering::Release);
    }
}

fn name(domain: u32, frame: Frame) -> u64 {
    u64::from(domain) << 32 | u64::from(frame.0)
}

/// Returns once no thread copies out of these frames. The engine has taken their blocks out of the
/// table before, so no thread can begin to.
pub(crate) fn wait_until_clear(domain: u32, runs: &[Run]) {
    fence(Ordering::SeqCst);
    let used = USED.load(Ordering::SeqCst).min(SLOTS);
    let covered = |hazard: u64| {
        let covers = |run: &Run| {
            let first = name(domain, run.first);
            (first..first + u64::from(run.count)).contains(&hazard)
        };
        hazard != NONE && runs.iter().any(covers)
    };
    for slot in &SLAB[..used] {
        let mut looks = 0;
        while covered(slot.hazard.load(Ordering::SeqCst)) {
            looks += 1;
            give_way(looks);
        }
    }
}

/// Lets the holder of a hazard copy its one block. It may have lost its processor to us, and a
/// thread with real-time priority, as an emulated disk's is, gives way only by sleeping.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing can wake it: the other side must not pay"
)]
fn give_way(looks: u32) {
    if looks < 16 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_micros(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filler_waits_for_the_frame_and_only_for_it() {
        let run = |first, count| {
            let first = Frame(first);
            [Run { first, count }]
        };
        let (held, free) = (run(1, 1), run(2, 2));
        let hazard = announcer().unwrap().announce(u32::MAX - 1, Frame(1));
        wait_until_clear(u32::MAX - 1, &free);
        wait_until_clear(u32::MAX - 2, &held);
        let waited = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_until_clear(u32::MAX - 1, &held);
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
