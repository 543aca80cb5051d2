//! Memory of the process beside the arena, taken from the system and given back to it directly.
//!
//! Used by the mount, whose whole daemon must stay within a bound. Large buffers of an allocator
//! come and go through its own pools, which keep pages for reasons of theirs; a [`Pages`] is a
//! mapping of its own, untouched until it is written and gone when it is dropped.
//!
//! It does not count anything: how many there may be is the caller's to decide.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// `PR_THP_DISABLE_EXCEPT_ADVISED`, Linux 6.18: leaves huge pages to programs that ask by `madvise`.
const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

/// Where the system says whether every mapping gets huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Gives memory that the allocator keeps for later back to the system, where it has a call for that.
pub fn give_back() {
    // SAFETY: the call frees pages that no allocation uses; no memory of ours is passed.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Zeroed memory, mapped page by page as it is first touched and unmapped when dropped.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its mapping as a box owns its memory.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives shared slices only.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps this much memory.
    ///
    /// # Errors
    /// Zero bytes, or no memory left.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { base, bytes })
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is ours, initialised with zeros by the kernel, and lives as long.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes this the one slice of it.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range is our mapping, and slices of it borrow from `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// From now on this process gets huge pages only where it asked for them, as the arena does. Where
/// the system gives them to every large mapping, one touched byte of a buffer takes 2 MiB.
///
/// Before Linux 6.18 that is all or nothing: then the arena does without as well, if the system
/// is set to give them to everyone.
pub fn huge_pages_only_where_asked() {
    let disable = |flags: libc::c_ulong| {
        let none: libc::c_ulong = 0;
        let yes: libc::c_ulong = 1;
        // SAFETY: numbers only; it concerns this process's own mappings.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, yes, flags, none, none) == 0 }
    };
    let everywhere = || std::fs::read_to_string(HUGE_PAGES).is_ok_and(|s| s.contains("[always]"));
    if !disable(EXCEPT_ADVISED) && everywhere() && !disable(0) {
        tracing::info!("huge pages stay on: the process takes more memory than it uses");
    }
}

/// Allocations from this size on are mappings of their own: they take the touched pages alone, and go
/// when they are freed. From the pools, buffers of 64 connections to a store, of 8 to 408 KiB each, took 38 to 55 MiB;
/// as mappings 22 to 26.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: libc::c_int = 64 << 10;

/// From now on large allocations of this process are mappings of their own.
///
/// glibc raises that limit to the size of any mapping it frees, up to 32 MiB. DeferredInput ones then come
/// from its pools, where zeroed memory may have to be written: a buffer of 16 MiB of which a page is
/// used takes all of them. Other allocators do as they do.
pub fn large_allocations_are_mappings() {
    #[cfg(target_env = "gnu")]
    // SAFETY: a number only; it holds for allocations to come.
    if unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES) } == 0 {
        tracing::info!("large allocations may take more memory than is used of them");
    }
}

/// From now on threads of this process share a few pools for small allocations. glibc reserves 64 MiB
/// of address space for each, and makes eight a processor: under `ulimit -v` that leaves too little.
pub fn few_arenas() {
    #[cfg(target_env = "gnu")]
    {
        const ARENAS: libc::c_int = 2;
        // SAFETY: a number only; it holds for threads to come.
        if unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) } == 0 {
            tracing::info!("allocations may take more address space than is used of it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_until_written_and_none_are_refused() {
        let mut pages = Pages::new(10_000).unwrap();
        assert!(pages.len() == 10_000 && pages.iter().all(|byte| *byte == 0));
        pages[9_999] = 7;
        assert_eq!(pages.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 7);
        assert!(Pages::new(0).is_err());
    }

    /// So many that a sixteenth of them is more than other tests of this process allocate meanwhile.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    const BUFFERS: usize = 1024;

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn buffers_of_connections_are_mappings_and_go_when_they_are_freed() {
        // SAFETY: it takes nothing, and gives numbers.
        let mapped = || unsafe { libc::mallinfo() }.hblkhd.unsigned_abs() as usize;
        large_allocations_are_mappings();
        for kib in [64, 128, 256, 408] {
            let (whole, before) = ((BUFFERS * kib) << 10, mapped());
            let buffers: Vec<Vec<u8>> = (0..BUFFERS)
                .map(|_| Vec::with_capacity(kib << 10))
                .collect();
            let taken = mapped().saturating_sub(before);
            assert!(
                taken >= whole - whole / 16,
                "{kib} KiB each: {taken} of {whole}"
            );
            drop(buffers);
            let left = mapped().saturating_sub(before);
            assert!(left <= whole / 16, "{kib} KiB each: {left} of {whole}");
        }
    }
}
