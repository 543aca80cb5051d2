//! The memory all blocks live in: one anonymous mapping, frame `f` at `f * block_bytes`.
//!
//! Made once by the driver; filled by backends through a [`Target`], read by the hit path and by
//! readers that were served. Nothing is touched before a block needs it, so memory that is not
//! used yet is not resident. Its first pages are small ones; [`pages_ahead`](crate::pages_ahead) makes
//! huge ones of them once they were used for a while. The mapping begins on a page, so frames are aligned to the smaller
//! of a page and a block, which direct I/O needs.
//!
//! A forked child does not have the mapping: it has none of the threads that use it, and the pages would be copied for it
//! one by one as the parent fills them again.
//!
//! It knows nothing of owners of frames: the engine's table and the hazards of the hit path do,
//! and every copy in or out states on which of the two it relies.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use forerun_core::table::Frame;

use crate::sync::Mutex;

/// The kernel places a mapping so that huge pages fit only if it is a multiple of them long. The
/// rest of the last one is never touched.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Size of a line of the processor's cache.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
/// Bytes called for ahead of a copy: 16 lines, about as many as a processor has on the way at once.
const CALLED_MAX: usize = 16 * LINE;

/// See the [module](self).
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    bytes: usize,
    mapped: usize,
    block_bytes: usize,
    frames: u32,
    /// The process that has the mapping.
    process: u32,
    /// Frames below this one were filled, as the engine takes unused ones in their order.
    used: AtomicU32,
    /// Whether huge pages are allowed; held while one is made.
    huge: Mutex<bool>,
    /// From this frame on its use is [told](Self::tell_when_used).
    told_from: AtomicU32,
    told: OnceLock<Thread>,
}

// SAFETY: the arena is an address range, not access to it. Every access goes through an unsafe
// function whose caller guarantees that no other thread uses those frames in a conflicting way.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps room for `frames` blocks.
    ///
    /// # Errors
    /// The address space or the commit limit does not allow it.
    pub fn new(frames: u32, block_bytes: u32) -> io::Result<Self> {
        let block_bytes = block_bytes as usize;
        let out_of_range = || io::Error::from_raw_os_error(libc::EINVAL);
        let bytes = (frames as usize)
            .checked_mul(block_bytes)
            .filter(|bytes| *bytes > 0)
            .ok_or_else(out_of_range)?;
        // A whole number of huge pages.
        let mapped = bytes
            .checked_next_multiple_of(HUGE_PAGE)
            .ok_or_else(out_of_range)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        let arena = Self {
            base,
            bytes,
            mapped,
            block_bytes,
            frames,
            process: std::process::id(),
            used: AtomicU32::new(0),
            huge: Mutex::new(true),
            told_from: AtomicU32::new(u32::MAX),
            told: OnceLock::new(),
        };
        let _ = arena.advise(0..arena.mapped, libc::MADV_NOHUGEPAGE);
        let _ = arena.advise(0..arena.mapped, libc::MADV_DONTFORK);
        Ok(arena)
    }

    /// Advice to the kernel about a range of the mapping, which leaves the bytes as they are. A
    /// refusal, given as the error's number, changes nothing.
    fn advise(&self, range: Range<usize>, advice: libc::c_int) -> Result<(), i32> {
        let range = range.start.min(self.mapped)..range.end.min(self.mapped);
        // SAFETY: the range lies in the mapping, and callers give advice that keeps its content.
        let refused = unsafe {
            let base = self.base().add(range.start).cast();
            libc::madvise(base, range.len(), advice) != 0
        };
        match refused {
            true => Err(io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO)),
            false => Ok(()),
        }
    }

    /// Whether there may be huge pages from now on; if not, single pages can be given back and filled
    /// again without the 2 MiB around them.
    pub(crate) fn allow_huge_pages(&self, are_allowed: bool) {
        let mut huge = self.huge.lock();
        *huge = are_allowed;
        if !are_allowed {
            let _ = self.advise(0..self.mapped, libc::MADV_NOHUGEPAGE);
        }
    }

    /// How many bytes were filled, from the first on.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst) as usize * self.block_bytes
    }

    /// Unparks the calling thread, always the same, when so many bytes are used; at once if they are.
    pub(crate) fn tell_when_used(&self, bytes: usize) {
        let thread = self.told.get_or_init(std::thread::current);
        let from = u32::try_from(bytes.div_ceil(self.block_bytes)).unwrap_or(u32::MAX);
        self.told_from.store(from, Ordering::SeqCst);
        if self.used.load(Ordering::SeqCst) >= from {
            thread.unpark();
        }
    }

    fn use_until(&self, frame: u32) {
        self.used.fetch_max(frame, Ordering::SeqCst);
        if frame >= self.told_from.load(Ordering::SeqCst)
            && self.told_from.swap(u32::MAX, Ordering::SeqCst) != u32::MAX
            && let Some(thread) = self.told.get()
        {
            thread.unpark();
        }
    }

    /// Whether a read that is first on memory from this byte on gets a huge page, where one is allowed.
    pub(crate) fn prefer_huge(&self, from: usize, are_wanted: bool) {
        let huge = self.huge.lock();
        let advice = match *huge && are_wanted {
            true => libc::MADV_HUGEPAGE,
            false => libc::MADV_NOHUGEPAGE,
        };
        // Of the last piece, as far as it is in use, a part would never be used.
        let end = self.bytes / HUGE_PAGE * HUGE_PAGE;
        if from < end {
            let _ = self.advise(from..end, advice);
        }
    }

    /// Has the kernel zero pages that are not in use yet, huge ones if wanted. False if that is not
    /// allowed, or refused.
    pub(crate) fn touch(&self, range: Range<usize>, hugely: bool) -> bool {
        // Held: while a limit is in force no page may come that was not asked for.
        let huge = self.huge.lock();
        if !*huge || range.end > self.bytes {
            return false;
        }
        if hugely {
            let _ = self.advise(range.clone(), libc::MADV_HUGEPAGE);
        }
        self.advise(range, libc::MADV_POPULATE_WRITE).is_ok()
    }

    /// Has the kernel move a piece's content into a huge page, while others read and write it. None
    /// if there may be none.
    pub(crate) fn make_huge(&self, piece: usize) -> Option<Result<(), i32>> {
        let range = piece * HUGE_PAGE..(piece + 1) * HUGE_PAGE;
        let huge = self.huge.lock();
        (*huge && range.end <= self.bytes).then(|| {
            self.advise(range.clone(), libc::MADV_HUGEPAGE)?;
            self.advise(range, libc::MADV_COLLAPSE)
        })
    }

    /// Gives the pages that lie in these frames as a whole back to the system. Whatever the frames
    /// held is gone: such a page reads as zeros until it is written. A refusal changes nothing, and a process without
    /// the mapping nothing either.
    ///
    /// # Safety
    /// No thread reads or writes these frames until this returns, and their old bytes are of no use.
    pub(crate) unsafe fn discard(&self, run: Run) {
        if !self.is_here() {
            return;
        }
        let frames = run.numbers();
        debug_assert!(frames.end <= self.frames);
        // SAFETY: no pointers are involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).unwrap_or(HUGE_PAGE);
        let bytes = |frame: u32| frame.min(self.frames) as usize * self.block_bytes;
        let first = bytes(frames.start).next_multiple_of(page);
        let end = bytes(frames.end) / page * page;
        if first < end {
            // SAFETY: the range lies in this process's mapping, inside frames that the caller answers for.
            unsafe {
                let base = self.base().add(first).cast();
                libc::madvise(base, end - first, libc::MADV_DONTNEED);
            }
        }
    }

    /// Whether this process has the mapping. In that of a forked child others may lie there.
    fn is_here(&self) -> bool {
        std::process::id() == self.process
    }

    /// Size of a frame.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The largest file whose blocks can be numbered.
    pub(crate) fn file_bytes_max(&self) -> u64 {
        u64::from(u32::MAX) * self.block_bytes as u64
    }

    /// Where the mapping begins.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Size of all frames together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where a frame begins. A frame that does not exist is taken modulo their number: the
    /// address stays inside the mapping whatever the caller computed.
    #[must_use]
    pub(crate) fn address(&self, frame: Frame) -> *mut u8 {
        debug_assert!(
            frame.0 < self.frames,
            "frame {} of {}",
            frame.0,
            self.frames
        );
        let frame = if frame.0 < self.frames {
            frame.0
        } else {
            frame.0 % self.frames
        };
        // SAFETY: `frame < frames`, so the offset lies inside the mapping.
        unsafe { self.base().add(frame as usize * self.block_bytes) }
    }

    /// Calls for bytes of a frame that will probably be copied out next. On random hits half the
    /// time goes into waiting for them, and this starts that wait before the frame is looked up,
    /// for the first [`CALLED_MAX`] bytes; by their end the processor has seen the run and goes on.
    #[inline]
    pub(crate) fn call_for(&self, frame: Frame, bytes: Range<usize>) {
        let bytes = bytes.start..bytes.end.min(bytes.start + CALLED_MAX);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let base = self.address(frame).cast_const().cast::<i8>();
            for line in bytes.step_by(LINE) {
                // SAFETY: a prefetch of any address has no effect but on the caches.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(base.wrapping_add(line)) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (frame, bytes);
    }

    /// Copies bytes of one frame, from byte `from` of it on, into `into`.
    ///
    /// # Safety
    /// The frame is not written until this returns: the caller holds a pin or a hazard on it.
    pub(crate) unsafe fn copy_out(&self, frame: Frame, from: usize, into: &mut [u8]) {
        debug_assert!(from + into.len() <= self.block_bytes);
        let count = into.len().min(self.block_bytes.saturating_sub(from));
        // SAFETY: the source lies inside one frame of the mapping and is not written (the
        // caller's promise); the destination is an exclusive borrow of other memory.
        unsafe {
            std::ptr::copy_nonoverlapping(self.address(frame).add(from), into.as_mut_ptr(), count);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        // SAFETY: the range is our mapping, and no pointer into it is left: targets
        // and readers keep the arena alive by an `Arc`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

/// Frames that lie side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first.
    pub first: Frame,
    /// How many.
    pub count: u32,
}

impl Run {
    /// The numbers of its frames.
    pub(crate) fn numbers(&self) -> Range<u32> {
        self.first.0..self.first.0 + self.count
    }

    /// Adds a frame to the last run, if it is the next one, or begins another.
    pub(crate) fn push(runs: &mut Vec<Self>, frame: Frame) {
        match runs.last_mut() {
            Some(run) if run.first.0 + run.count == frame.0 => run.count += 1,
            _ => runs.push(Self {
                first: frame,
                count: 1,
            }),
        }
    }
}

/// The frames a fetch fills, in the order of its blocks.
#[derive(Debug)]
pub struct Target {
    arena: Arc<Arena>,
    runs: Vec<Run>,
    /// Where the last [`fill`](Self::fill) ended.
    filled: usize,
}

impl Target {
    /// The frames to fill, neighbours joined.
    ///
    /// # Safety
    /// From the moment the target is handed to a backend until it is dropped no other thread reads or
    /// writes these frames, and no frame occurs twice. Frames outside the arena are left out.
    pub unsafe fn new(arena: Arc<Arena>, frames: impl IntoIterator<Item = Frame>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for frame in frames.into_iter().filter(|f| f.0 < arena.frames) {
            Run::push(&mut runs, frame);
        }
        let end = runs.iter().map(|run| run.numbers().end).max();
        arena.use_until(end.unwrap_or(0));
        // Where memory is in pieces there are hundreds of them in each of dozens of requests.
        runs.shrink_to_fit();
        let filled = 0;
        Self {
            arena,
            runs,
            filled,
        }
    }

    /// A target without frames, for a fetch that can only fail.
    #[must_use]
    pub fn empty(arena: Arc<Arena>) -> Self {
        Self {
            arena,
            runs: Vec::new(),
            filled: 0,
        }
    }

    /// The arena the frames lie in.
    #[must_use]
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The runs of frames.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Room in all frames together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(|r| r.count as usize).sum::<usize>() * self.arena.block_bytes
    }

    /// Puts the memory from byte `skip` on into `pieces`, at most `limit` of them.
    pub fn pieces(&self, skip: usize, limit: usize, pieces: &mut Vec<libc::iovec>) {
        pieces.clear();
        let mut skip = skip;
        for run in &self.runs {
            let bytes = run.count as usize * self.arena.block_bytes;
            if skip >= bytes {
                skip -= bytes;
                continue;
            }
            if pieces.len() == limit {
                return;
            }
            // SAFETY: `skip` is inside the run, and the run inside the mapping.
            let base = unsafe { self.arena.address(run.first).add(skip) };
            pieces.push(libc::iovec {
                iov_base: base.cast(),
                iov_len: bytes - skip,
            });
            skip = 0;
        }
    }

    /// Calls `fill` with each run's memory from byte `skip` on and the position of it in the
    /// target, until `end`.
    pub fn fill(&mut self, skip: usize, end: usize, mut fill: impl FnMut(usize, &mut [u8])) {
        let mut start = 0;
        for run in &self.runs {
            let bytes = run.count as usize * self.arena.block_bytes;
            let (from, to) = (skip.max(start), end.min(start + bytes));
            if from < to {
                // SAFETY: the range lies inside the run, no other thread uses its frames (the promise
                // of `new`), and `&mut self` makes this the one slice of them.
                let slice = unsafe {
                    let base = self.arena.address(run.first).add(from - start);
                    std::slice::from_raw_parts_mut(base, to - from)
                };
                fill(from, slice);
            }
            start += bytes;
        }
        self.filled = end.min(start);
    }

    /// Copies `bytes` to byte `from` on, at most up to `end`; how far it came.
    pub fn copy(&mut self, from: usize, end: usize, bytes: &[u8]) -> usize {
        let end = end.min(from.saturating_add(bytes.len()));
        self.fill(from, end, |at, memory| {
            memory.copy_from_slice(&bytes[at - from..][..memory.len()]);
        });
        end
    }

    /// How many bytes are there of one that is filled from its front to its end.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_and_pieces_begin_where_asked() {
        let arena = Arc::new(Arena::new(8, 512).unwrap());
        let frames = [3, 4, 5, 0, 7].map(Frame);
        // SAFETY: this arena is used here alone.
        let mut target = unsafe { Target::new(arena.clone(), frames) };
        assert_eq!(target.runs().len(), 3);
        assert_eq!(target.bytes(), 5 * 512);
        let mut pieces = Vec::new();
        target.pieces(600, 8, &mut pieces);
        assert_eq!(
            pieces.iter().map(|p| p.iov_len).collect::<Vec<_>>(),
            [936, 512, 512]
        );
        target.pieces(0, 2, &mut pieces);
        assert_eq!(pieces.len(), 2);
        let mut seen = Vec::new();
        target.fill(1000, 2000, |at, slice| seen.push((at, slice.len())));
        assert_eq!(seen, [(1000, 536), (1536, 464)]);
        let bytes: Vec<u8> = (0..100).collect();
        assert_eq!(target.copy(1500, 1590, &bytes), 1590);
        assert_eq!(target.copy(1590, 4096, &bytes[90..]), 1600);
        target.fill(1500, 1600, |at, slice| {
            assert_eq!(*slice, bytes[at - 1500..][..slice.len()]);
        });
    }

    #[test]
    fn a_forked_child_does_not_have_the_mapping() {
        let arena = Arena::new(8, 4096).unwrap();
        let base = arena.base() as usize;
        let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else {
            return crate::skipped::skipped("needs the flags of mappings");
        };
        // Neighbours of one kind are one entry.
        let is_ours = |line: &str| {
            let range = line.split_whitespace().next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(range.0)?..number(range.1)?).contains(&base))
        };
        let ours = maps.lines().skip_while(|line| is_ours(line) != Some(true));
        let flags = ours.into_iter().find(|line| line.starts_with("VmFlags:"));
        assert!(flags.unwrap().split_whitespace().any(|flag| flag == "dc"));
    }

    #[test]
    fn a_process_without_the_mapping_discards_nothing() {
        let run = Run {
            first: Frame(0),
            count: 8,
        };
        let mut arena = Arena::new(8, 65536).unwrap();
        let first = arena.base();
        let own = std::mem::replace(&mut arena.process, 0);
        // SAFETY: the arena is used by this thread alone, and its first byte lies in it.
        let kept = unsafe {
            first.write(1);
            arena.discard(run);
            first.read()
        };
        arena.process = own;
        // SAFETY: as above.
        let discarded = unsafe {
            arena.discard(run);
            first.read()
        };
        assert_eq!((kept, discarded), (1, 0));
    }

    #[test]
    fn a_mapping_without_size_is_refused() {
        assert!(Arena::new(0, 4096).is_err());
    }
}
