//! Hazards: a reader announces to all threads that it is copying out of a frame.
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
//! or the filler sees the hazard and waits as long as one block takes to copy; where the program's page
//! is not there, as long as that takes.
//!
//! Slots stand in a slab of fixed size, one for each thread, given back when it ends; the one of
//! this process stands in [`threads`](crate::threads). A thread that finds none takes the slow path.
//!
//! Compiled a second time by `tests/interleavings`, which tries this in every order.

use forerun_core::table::Frame;

use crate::arena::Run;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence, give_way};

/// The hazard of a thread that copies out of no frame.
pub(crate) const NONE: u64 = u64::MAX;

/// One thread's hazard, alone on its pair of cache lines (processors fetch them in pairs).
#[repr(align(128))]
pub(crate) struct Slot {
    pub(crate) hazard: AtomicU64,
    pub(crate) taken: AtomicBool,
}

/// The hazards of so many threads.
pub(crate) struct Slab<const SLOTS: usize> {
    pub(crate) slots: [Slot; SLOTS],
    /// Slots from here on were never taken, so fillers need not look at them.
    pub(crate) used: AtomicUsize,
}

impl<const SLOTS: usize> Slab<SLOTS> {
    /// A hold on a free slot.
    pub(crate) fn claim(&self) -> Claim<'_> {
        let free = |slot: &Slot| {
            !slot.taken.load(Ordering::Relaxed) && !slot.taken.swap(true, Ordering::AcqRel)
        };
        let Some(index) = self.slots.iter().position(free) else {
            return Claim(None);
        };
        // Before any hazard of this slot, so that a filler that does not count it yet has vacated
        // its frame before, and the reader sees that.
        self.used.fetch_max(index + 1, Ordering::SeqCst);
        Claim(Some(&self.slots[index]))
    }

    /// Returns once no thread copies out of these frames; false if one does still after so many looks.
    /// The engine has taken their blocks out of the table before, so no thread can begin to.
    pub(crate) fn wait_until_clear(&self, domain: u32, runs: &[Run], looks_max: u32) -> bool {
        let mut looks = 0;
        for slot in self.used() {
            while slot.is_within(domain, runs) {
                if looks == looks_max {
                    return false;
                }
                looks += 1;
                give_way(looks);
            }
        }
        true
    }

    /// Whether no thread copies out of these frames, for callers that must not wait. As above no
    /// thread can begin to.
    pub(crate) fn is_clear(&self, domain: u32, runs: &[Run]) -> bool {
        self.used().iter().all(|slot| !slot.is_within(domain, runs))
    }

    /// The slots that may have a hazard of before.
    fn used(&self) -> &[Slot] {
        fence(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst).min(SLOTS);
        &self.slots[..used]
    }
}

impl Slot {
    /// Whether its thread copies out of one of these frames.
    fn is_within(&self, domain: u32, runs: &[Run]) -> bool {
        let hazard = self.hazard.load(Ordering::SeqCst);
        let covers = |run: &Run| {
            let first = name(domain, run.first);
            (first..first + u64::from(run.count)).contains(&hazard)
        };
        hazard != NONE && runs.iter().any(covers)
    }
}

/// A thread's hold on its slot; none if all are taken.
pub(crate) struct Claim<'a>(Option<&'a Slot>);

impl<'a> Claim<'a> {
    /// The announcer of the thread, as long as it holds the slot.
    pub(crate) fn announcer(&self) -> Option<Announcer<'a>> {
        self.0.map(Announcer)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.hazard.store(NONE, Ordering::Release);
            slot.taken.store(false, Ordering::Release);
        }
    }
}

/// A thread's slot, good until the thread ends.
#[derive(Clone, Copy)]
pub(crate) struct Announcer<'a>(&'a Slot);

/// A hazard on one frame, lifted when dropped.
pub(crate) struct Hazard<'a>(&'a Slot);

impl<'a> Announcer<'a> {
    /// Announces that this thread is about to copy out of `frame` of the arena named by `domain`,
    /// and then looks whether it may: `still` asks [`Table::still`] whether the frame holds the
    /// block that was found in it. If so, it does until the hazard is dropped.
    ///
    /// [`Table::still`]: forerun_core::table::Table::still
    #[inline]
    pub(crate) fn hold(
        self,
        domain: u32,
        frame: Frame,
        still: impl FnOnce() -> bool,
    ) -> Option<Hazard<'a>> {
        self.0.hazard.store(name(domain, frame), Ordering::SeqCst);
        let hazard = Hazard(self.0);
        still().then_some(hazard)
    }
}

impl Drop for Hazard<'_> {
    fn drop(&mut self) {
        self.0.hazard.store(NONE, Ordering::Release);
    }
}

fn name(domain: u32, frame: Frame) -> u64 {
    u64::from(domain) << 32 | u64::from(frame.0)
}
