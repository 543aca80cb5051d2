//! No reader copies out of a frame that was given to another block: the hazards of `hazard`, with
//! the words of the table they are checked against.

use forerun_core::units::{Block, FileId};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::arena::Run;
use crate::hazard::{NONE, Slab, Slot};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex};
use crate::words::Words;
use crate::{Frame, explore, flag};

const DOMAIN: u32 = 3;
const FRAME: Frame = Frame(1);
const FILE: FileId = FileId(5);
const OLD: Block = Block(7);
const NEW: Block = Block(8);

/// One frame that matters, with the number of its block for bytes.
struct Memory<const SLOTS: usize> {
    slab: Slab<SLOTS>,
    words: Words,
    bytes: UnsafeCell<u32>,
}

impl<const SLOTS: usize> Memory<SLOTS> {
    fn holding_old() -> Arc<Self> {
        let slot = |_| Slot {
            hazard: AtomicU64::new(NONE),
            taken: AtomicBool::new(false),
        };
        let words = Words::new(2);
        words.give(FRAME, FILE, OLD, 0);
        Arc::new(Self {
            slab: Slab {
                slots: std::array::from_fn(slot),
                used: AtomicUsize::new(0),
            },
            words,
            bytes: UnsafeCell::new(OLD.0),
        })
    }

    /// Reads a block as the hit path does, if it is here.
    fn hit(&self, block: Block) -> bool {
        let claim = self.slab.claim();
        let Some(announcer) = claim.announcer() else {
            return false;
        };
        let still = || self.words.still(FRAME, FILE, block);
        let Some(hazard) = announcer.hold(DOMAIN, FRAME, still) else {
            return false;
        };
        // SAFETY: loom checks at this very place that no thread writes meanwhile.
        self.bytes
            .with(|bytes| assert_eq!(unsafe { *bytes }, block.0));
        drop(hazard);
        true
    }

    /// Gives the frame to the new block, as the engine does.
    fn give_away(&self) {
        self.words.vacate(FRAME);
        self.words.give(FRAME, FILE, NEW, flag::FILLING);
    }

    /// Brings the new block's bytes, as a submitting thread and the device do.
    fn fill(&self) {
        let run = Run {
            first: FRAME,
            count: 1,
        };
        assert!(self.slab.wait_until_clear(DOMAIN, &[run], u32::MAX));
        // SAFETY: loom checks at this very place that no thread reads meanwhile.
        self.bytes.with_mut(|bytes| unsafe { *bytes = NEW.0 });
        self.words.clear(FRAME, flag::FILLING);
    }
}

fn read<const SLOTS: usize>(memory: &Arc<Memory<SLOTS>>, block: Block) -> thread::JoinHandle<bool> {
    let memory = memory.clone();
    thread::spawn(move || memory.hit(block))
}

#[test]
fn no_reader_copies_from_a_frame_that_was_given_away() {
    explore(move || {
        let memory = Memory::<2>::holding_old();
        let reader = read(&memory, OLD);
        memory.give_away();
        memory.fill();
        assert!(memory.hit(NEW));
        reader.join().unwrap();
        assert!(!memory.hit(OLD));
    });
}

/// Two readers of these blocks while the frame changes hands, with so many slots between them.
fn meet<const SLOTS: usize>(blocks: [Block; 2]) {
    explore(move || {
        let memory = Memory::<SLOTS>::holding_old();
        let readers = blocks.map(|block| read(&memory, block));
        memory.give_away();
        memory.fill();
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn two_readers_and_the_filler_never_meet() {
    meet::<2>([OLD, NEW]);
}

#[test]
fn readers_that_take_turns_at_one_slot_never_meet_the_filler() {
    meet::<1>([OLD, OLD]);
}

#[test]
fn who_hands_a_fetch_over_need_not_be_who_decided_it() {
    explore(move || {
        let memory = Memory::<2>::holding_old();
        let fetches = Arc::new(Mutex::new(0));
        let reader = read(&memory, OLD);
        let submitter = thread::spawn({
            let (memory, fetches) = (memory.clone(), fetches.clone());
            move || {
                if *fetches.lock() > 0 {
                    memory.fill();
                }
            }
        });
        memory.give_away();
        *fetches.lock() += 1;
        reader.join().unwrap();
        submitter.join().unwrap();
    });
}
