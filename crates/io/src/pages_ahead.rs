//! Pages of the arena: small ones just ahead of their first use, huge ones where memory stays in use.
//!
//! The first touch of memory costs as much as a fast disk: small pages come at 2,400 MB/s, one fault
//! each, in the way of the read that fills them. Huge pages come at 6,000 MB/s where the system has
//! warm ones, and save translation misses on random hits (15 % on 64 MiB of 4 KiB blocks); but a
//! virtual machine that reported its free memory to its host gets them back at 350 MB/s. The small
//! ones are never reported. A short run must neither wait for memory nor touch memory it will not use.
//!
//! So one thread goes ahead of the use by half of it, as readahead does of reads, with huge pages as
//! long as they come fast; frames that the reads themselves reach first get these, too, and small ones otherwise. Memory
//! in use after [`PATIENCE`], or when all of the arena is, becomes huge, from the front on: a device
//! gets a request of 1 MiB in one piece instead of 256. A virtual disk that takes 254 pieces at a time gave 1.3 to 2.4 GB/s in
//! small pages, whatever was in flight, and 3.4 to 3.8 in huge ones.
//!
//! ```text
//! frames used   |---------------------------->|  told: go on
//! pages         [huge][huge][small.......][ahead......]            not touched
//!                           ^ next: MADV_COLLAPSE, t; then a pause of 2 t
//! ```
//!
//! The pauses limit the latter to a third of a processor, whatever a page costs. A piece that a read is
//! filling right now is refused, and tried again; after [`ATTEMPTS`] it stays small. Where huge pages are switched off by the
//! administrator there are none, and under a limit of memory ([`Arena::allow_huge_pages`]) no page
//! comes that no read needs. Before Linux 6.1, which has no `MADV_COLLAPSE`, the kernel's own thread
//! makes huge pages in its time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::arena::{Arena, HUGE_PAGE};

/// Until so much is used pages come as they are needed: reads of small files end before.
const AHEAD_FROM: usize = 1 << 20;

/// Ahead of the use by half of it, the part of a window in what its stream has consumed and twice
/// that, but at least and at most this much: the latter is 15 ms of the fastest disks.
const AHEAD_RANGE: Range<usize> = HUGE_PAGE..32 << 20;

/// A huge page that took longer was not worth it: small ones take 0.8 ms for as many bytes, warm
/// huge ones 0.35, cold ones 6.
const WARM: Duration = Duration::from_micros(600);

/// Where they were not worth it, one in so many is tried again: the system may have got warm ones.
const TRIED_AGAIN: usize = 8;

/// A run that is shorter is not worth making huge pages of small ones: at a gigabyte a second it reads
/// more than the default memory in that time.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest time between two looks at an arena that is used no further.
const PATIENCE_MAX: Duration = Duration::from_secs(64);

/// Pauses are so many times as long as the work before.
const PAUSE: u32 = 2;

/// A piece is tried so often, so far apart: reads of a fast disk end in between.
const ATTEMPTS: u32 = 8;
const RETRY: Duration = Duration::from_millis(2);

/// The administrator's choice of programs that get huge pages.
const SWITCH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The thread that touches pages, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PagesAhead {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PagesAhead {
    /// Starts the thread. Without one, pages are small and come as they are needed.
    pub(crate) fn start(arena: &Arc<Arena>) -> Self {
        let switch = std::fs::read_to_string(SWITCH);
        let is_over = Arc::<AtomicBool>::default();
        let (arena, until) = (arena.clone(), is_over.clone());
        let work = move || {
            let are_huge = switch.is_ok_and(|switch| !switch.contains("[never]"));
            Pages::new(&arena, are_huge).serve(&until);
        };
        let thread = std::thread::Builder::new().name("forerun-pages".into());
        let thread = thread.spawn(work).ok();
        Self { is_over, thread }
    }
}

impl Drop for PagesAhead {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was reported by itself.
            let _ = thread.join();
        }
    }
}

/// The processor's time of this thread: that of others does not count, that of the host's does.
fn worked() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is ours for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// State of the thread.
struct Pages<'a> {
    arena: &'a Arena,
    /// Bytes from the front that it need not touch any more.
    touched: usize,
    /// Whether huge pages come fast.
    are_warm: bool,
    /// Whether a read gets one that is first on memory.
    are_preferred: bool,
    /// Whether there are any at all.
    are_huge: bool,
    /// The piece to make huge next, and how often it was tried.
    next: usize,
    attempts: u32,
    /// When, from the last piece on.
    pause: Duration,
    done: Instant,
}

impl<'a> Pages<'a> {
    fn new(arena: &'a Arena, are_huge: bool) -> Self {
        Self {
            arena,
            touched: 0,
            are_warm: are_huge,
            are_preferred: false,
            are_huge,
            next: 0,
            attempts: 0,
            pause: Duration::ZERO,
            done: Instant::now(),
        }
    }

    /// The life of the thread.
    fn serve(&mut self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            if self.go_ahead() {
                continue;
            }
            let is_patient = self.next == 0 && self.attempts == 0 && !self.is_full();
            let due = match is_patient {
                true => self.done + self.pause.max(PATIENCE),
                false => self.done + self.pause,
            };
            if self.are_huge && Instant::now() >= due {
                self.make_one_huge();
                continue;
            }
            match self.are_huge {
                true => std::thread::park_timeout(due.saturating_duration_since(Instant::now())),
                false => std::thread::park(),
            }
        }
    }

    /// Touches pages ahead of those used. False if it is far enough: it is told when it is not.
    fn go_ahead(&mut self) -> bool {
        let used = self.arena.used();
        let ahead = (used / 2).clamp(AHEAD_RANGE.start, AHEAD_RANGE.end);
        let goal = (used + ahead).next_multiple_of(HUGE_PAGE);
        let goal = goal.min(self.arena.bytes());
        self.touched = self.touched.max(used.next_multiple_of(HUGE_PAGE));
        if used >= AHEAD_FROM && self.touched < goal {
            let piece = self.touched..(self.touched / HUGE_PAGE + 1) * HUGE_PAGE;
            let piece = piece.start..piece.end.min(goal);
            let is_tried = self.are_warm || (piece.start / HUGE_PAGE).is_multiple_of(TRIED_AGAIN);
            let hugely = self.are_huge && is_tried && piece.len() == HUGE_PAGE;
            let begun = worked();
            if self.arena.touch(piece.clone(), hugely) {
                if hugely {
                    self.are_warm = worked() - begun <= WARM;
                    self.prefer_huge(piece.end);
                }
                self.touched = piece.end;
                return true;
            }
            // Under a limit the advice is gone.
            self.are_preferred = false;
        }
        match self.touched < self.arena.bytes() {
            true => {
                let enough = (self.touched - used) / 2;
                self.arena.tell_when_used(AHEAD_FROM.max(used + enough + 1));
            }
            // It is told when all of it is used: that memory stays in use then.
            false if !self.is_full() => self.arena.tell_when_used(self.arena.bytes()),
            false => self.arena.tell_when_used(usize::MAX),
        }
        false
    }

    /// Reads that are first on memory from here on get the kind of pages that this thread would make.
    fn prefer_huge(&mut self, from: usize) {
        if self.are_preferred != self.are_warm {
            self.are_preferred = self.are_warm;
            self.arena.prefer_huge(from, self.are_warm);
        }
    }

    /// Whether all of the arena is used: from here on its memory is used again and again.
    fn is_full(&self) -> bool {
        self.arena.used() / HUGE_PAGE >= self.arena.bytes() / HUGE_PAGE
    }

    fn make_one_huge(&mut self) {
        if self.next >= self.arena.used() / HUGE_PAGE {
            self.pause = (self.pause.max(PATIENCE) * 2).min(PATIENCE_MAX);
            self.done = Instant::now();
            return;
        }
        let begun = Instant::now();
        let made = self.arena.make_huge(self.next);
        self.done = Instant::now();
        match made {
            // Not now. Those there are may be taken apart meanwhile, so it begins again.
            None => (self.next, self.attempts, self.pause) = (0, 0, PATIENCE),
            Some(Err(libc::EAGAIN | libc::EBUSY)) if self.attempts + 1 < ATTEMPTS => {
                (self.attempts, self.pause) = (self.attempts + 1, RETRY);
            }
            Some(_) => {
                let took = self.done - begun;
                (self.next, self.attempts, self.pause) = (self.next + 1, 0, took * PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{HUGE_PAGE, Target};
    use crate::skipped::skipped;
    use forerun_core::table::Frame;
    use std::sync::{Mutex, PoisonError};

    const PIECES: usize = 4;
    const FRAMES: u32 = (PIECES * HUGE_PAGE / 4096) as u32;

    /// The system joins mappings side by side into one. Those of this lock's holder differ from all
    /// others of the process.
    static APART: Mutex<()> = Mutex::new(());

    fn apart() -> Arc<Arena> {
        let arena = Arc::new(Arena::new(FRAMES, 4096).unwrap());
        // SAFETY: advice about a mapping that is ours, which leaves its content.
        unsafe { libc::madvise(arena.base().cast(), arena.bytes(), libc::MADV_DONTDUMP) };
        arena
    }

    /// An arena whose first pieces are filled, and its target for them.
    fn filled(pieces: usize) -> (Arc<Arena>, Target) {
        let arena = apart();
        let target = fill(&arena, 0..(pieces * HUGE_PAGE / 4096) as u32);
        (arena, target)
    }

    /// Fills frames of an arena, as a read does.
    fn fill(arena: &Arc<Arena>, frames: Range<u32>) -> Target {
        // SAFETY: this arena is used here alone.
        let mut target = unsafe { Target::new(arena.clone(), frames.map(Frame)) };
        target.fill(0, usize::MAX, |at, slice| {
            for (page, bytes) in slice.chunks_mut(4096).enumerate() {
                bytes.fill(((at / 4096 + page) % 251) as u8);
            }
        });
        target
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
        let _apart = APART.lock().unwrap_or_else(PoisonError::into_inner);
        let (arena, mut target) = filled(2);
        assert_eq!(pages(&arena), (0, 2 * HUGE_PAGE / 1024));
        assert_eq!(arena.used(), 2 * HUGE_PAGE);
        match arena.make_huge(1) {
            Some(Ok(())) => assert_eq!(pages(&arena), (2048, 4096), "one of two, and no third"),
            refused => skipped(format!("no huge page to be had here: {refused:?}")),
        }
        target.fill(0, usize::MAX, |at, slice| {
            for (page, bytes) in slice.chunks(4096).enumerate() {
                let expected = ((at / 4096 + page) % 251) as u8;
                assert!(bytes.iter().all(|byte| *byte == expected));
            }
        });
    }

    #[test]
    fn pages_come_ahead_of_the_use_by_half_of_it_unless_there_is_a_limit() {
        let _apart = APART.lock().unwrap_or_else(PoisonError::into_inner);
        let (arena, _target) = filled(1);
        let mut ahead = Pages::new(&arena, false);
        arena.allow_huge_pages(false);
        assert!(!ahead.go_ahead(), "no page that nobody asked for");
        assert_eq!(pages(&arena), (0, 2048));
        arena.allow_huge_pages(true);
        while ahead.go_ahead() {}
        assert_eq!(pages(&arena), (0, 4096), "one piece more, the least");
    }

    #[test]
    fn a_read_that_is_first_gets_a_huge_page_while_they_come_fast_and_no_longer() {
        let _apart = APART.lock().unwrap_or_else(PoisonError::into_inner);
        let frames = (HUGE_PAGE / 4096) as u32;
        let (arena, _target) = filled(1);
        arena.prefer_huge(3 * HUGE_PAGE, true);
        let _probe = fill(&arena, 3 * frames..3 * frames + 1);
        if pages(&arena).0 == 0 {
            return skipped("a read that is first on memory gets no huge page here");
        }
        let mut ahead = Pages::new(&arena, true);
        ahead.prefer_huge(HUGE_PAGE);
        let _first = fill(&arena, frames..frames + 1);
        assert_eq!(pages(&arena), (4096, 6144), "one more, by the read alone");
        ahead.are_warm = false;
        ahead.prefer_huge(2 * HUGE_PAGE);
        let _second = fill(&arena, 2 * frames..2 * frames + 1);
        assert_eq!(pages(&arena), (4096, 6144 + 4), "and a small page");
    }

    #[test]
    fn a_small_file_touches_its_own_pages_only() {
        let _apart = APART.lock().unwrap_or_else(PoisonError::into_inner);
        let arena = apart();
        // SAFETY: this arena is used here alone.
        let _target = unsafe { Target::new(arena.clone(), (0..32).map(Frame)) };
        assert!(!Pages::new(&arena, true).go_ahead());
        assert_eq!(pages(&arena), (0, 0));
    }

    #[test]
    fn while_they_are_not_allowed_none_is_made() {
        let _apart = APART.lock().unwrap_or_else(PoisonError::into_inner);
        let (arena, _target) = filled(1);
        arena.allow_huge_pages(false);
        assert_eq!(arena.make_huge(0), None);
        arena.allow_huge_pages(true);
        assert!(arena.make_huge(0).is_some());
        assert_eq!(arena.make_huge(PIECES), None, "beyond the end");
    }

    #[test]
    fn the_thread_ends_with_its_driver_and_lets_go_of_the_memory() {
        let _apart = APART.lock().unwrap_or_else(PoisonError::into_inner);
        let (arena, target) = filled(1);
        drop(PagesAhead::start(&arena));
        drop(target);
        assert_eq!(Arc::strong_count(&arena), 1);
    }
}
