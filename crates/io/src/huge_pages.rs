//! Huge pages for memory that stays in use.
//!
//! A huge page saves translation misses on random hits (some 15 % on 64 MiB of 4 KiB blocks), but it
//! is dear at first touch: 2 MiB are zeroed although the read overwrites them. Where the system has no
//! warm ones left it is dearer still. A virtual machine that reports free memory to its host gets huge
//! pages back at 350 MB/s and small ones, which were never reported, at 2,400 MB/s; a short run would
//! wait for memory longer than for its disk.
//!
//! So frames are filled into small pages first, by the reads themselves. After [`PATIENCE`] a thread
//! makes huge pages of the pieces that were filled, from the front on:
//!
//! ```text
//! frames used   |------------------------------->............   never touched
//! pieces        [huge][huge][huge][small][small]
//!                                  ^ next: MADV_COLLAPSE, t; then a pause of 9 t
//! ```
//!
//! The pauses limit it to a tenth of a processor, whatever a page costs. A piece that a read is
//! filling right now is refused, and tried again. Where huge pages are switched off, by the
//! administrator or for a while by [`Arena::allow_huge_pages`], there are none; before Linux 6.1,
//! which has no `MADV_COLLAPSE`, the kernel's own thread makes them in its time.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::sync::{Condvar, Mutex};

/// A run that is shorter ends with small pages: at a gigabyte a second it reads more than the
/// default memory in that time, and would have no use for huge ones.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest time between two looks at an arena that is used no further.
const PATIENCE_MAX: Duration = Duration::from_secs(64);

/// Pauses are so many times as long as the work before.
const PAUSE: u32 = 9;

/// A piece is tried so often, a tenth of a second apart: reads of a busy disk take less.
const ATTEMPTS: u32 = 4;

/// Where the administrator says who gets huge pages.
const SWITCH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The thread that makes them, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct HugePages {
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Ending {
    has_come: Mutex<bool>,
    coming: Condvar,
}

impl Ending {
    /// Waits so long; whether the end came meanwhile.
    fn comes_within(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        let mut has_come = self.has_come.lock();
        while !*has_come && Instant::now() < end {
            has_come = self.coming.wait_until(has_come, end);
        }
        *has_come
    }
}

impl HugePages {
    /// Starts the thread, unless huge pages are switched off. Without one pages stay small.
    pub(crate) fn start(arena: &Arc<Arena>) -> Option<Self> {
        let switch = std::fs::read_to_string(SWITCH).ok()?;
        if switch.contains("[never]") {
            return None;
        }
        let (arena, ending) = (arena.clone(), Arc::<Ending>::default());
        let until = ending.clone();
        let thread = std::thread::Builder::new().name("forerun-pages".into());
        let thread = thread.spawn(move || make(&arena, &until)).ok()?;
        Some(Self {
            ending,
            thread: Some(thread),
        })
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        *self.ending.has_come.lock() = true;
        self.ending.coming.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was reported by itself.
            let _ = thread.join();
        }
    }
}

/// The life of the thread.
fn make(arena: &Arena, ending: &Ending) {
    let (mut next, mut attempts, mut pause) = (0, 0, PATIENCE);
    while !ending.comes_within(pause) {
        if next >= arena.pieces_used() {
            pause = (pause.max(PATIENCE) * 2).min(PATIENCE_MAX);
            continue;
        }
        let begun = Instant::now();
        match arena.make_huge(next) {
            // Not now. Those there are may be taken apart meanwhile, so it begins again.
            None => (next, attempts, pause) = (0, 0, PATIENCE),
            Some(Err(libc::EAGAIN | libc::EBUSY)) if attempts + 1 < ATTEMPTS => {
                (attempts, pause) = (attempts + 1, PATIENCE / 10);
            }
            Some(_) => (next, attempts, pause) = (next + 1, 0, begun.elapsed() * PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{HUGE_PAGE, Target};
    use forerun_core::table::Frame;

    const PIECES: usize = 4;
    const FRAMES: u32 = (PIECES * HUGE_PAGE / 4096) as u32;

    /// An arena whose first pieces are filled, and its target for them.
    fn filled(pieces: usize) -> (Arc<Arena>, Target) {
        let arena = Arc::new(Arena::new(FRAMES, 4096).unwrap());
        let frames = (0..(pieces * HUGE_PAGE / 4096) as u32).map(Frame);
        // SAFETY: nobody else uses this arena.
        let mut target = unsafe { Target::new(arena.clone(), frames) };
        target.fill(0, usize::MAX, |at, slice| {
            for (page, bytes) in slice.chunks_mut(4096).enumerate() {
                bytes.fill(((at / 4096 + page) % 251) as u8);
            }
        });
        (arena, target)
    }

    /// Kilobytes of huge pages in an arena's mapping, and those resident at all.
    fn pages(arena: &Arena) -> (usize, usize) {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (base, end) = (arena.base() as usize, arena.base() as usize + arena.bytes());
        let (mut inside, mut huge, mut resident) = (false, 0, 0);
        for line in maps.lines() {
            let mut words = line.split_ascii_whitespace();
            let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            if let Some((from, _)) = first.split_once('-')
                && let Ok(from) = usize::from_str_radix(from, 16)
            {
                inside = (base..end).contains(&from);
            }
            let count = second.parse::<usize>().unwrap_or(0);
            match first {
                "AnonHugePages:" if inside => huge += count,
                "Rss:" if inside => resident += count,
                _ => {}
            }
        }
        (huge, resident)
    }

    #[test]
    fn the_first_pages_are_small_and_a_huge_one_keeps_what_was_there() {
        let (arena, mut target) = filled(2);
        assert_eq!(pages(&arena), (0, 2 * HUGE_PAGE / 1024));
        assert_eq!(arena.pieces_used(), 2);
        match arena.make_huge(1) {
            Some(Ok(())) => assert_eq!(pages(&arena), (2048, 4096), "one of two, and no third"),
            refused => eprintln!("NOT TESTED: no huge page to be had here: {refused:?}"),
        }
        target.fill(0, usize::MAX, |at, slice| {
            for (page, bytes) in slice.chunks(4096).enumerate() {
                let expected = ((at / 4096 + page) % 251) as u8;
                assert!(bytes.iter().all(|byte| *byte == expected));
            }
        });
    }

    #[test]
    fn while_they_are_not_allowed_none_is_made() {
        let (arena, _target) = filled(1);
        arena.allow_huge_pages(false);
        assert_eq!(arena.make_huge(0), None);
        arena.allow_huge_pages(true);
        assert!(arena.make_huge(0).is_some());
        assert_eq!(arena.make_huge(PIECES), None, "beyond the end");
    }

    #[test]
    fn the_thread_ends_with_its_driver_and_lets_go_of_the_memory() {
        let (arena, target) = filled(1);
        drop(HugePages::start(&arena));
        drop(target);
        assert_eq!(Arc::strong_count(&arena), 1);
    }
}
