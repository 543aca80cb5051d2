//! FUSE passthrough: which files the kernel reads from the source by itself.
//!
//! Problem: a byte that the source's page cache has, or that a fast device gives without help, costs a
//! request to the daemon, a copy and a second place in memory. Linux 6.9 reads such a file from the
//! source's own file instead, at its speed; for those with `CAP_SYS_ADMIN`, one mode for an inode
//! ([`io_mode`](super::io_mode)), one level deep.
//!
//! Mechanism, at each open by a program ([`opening`](super::opening)):
//!
//! | asked | not if |
//! | --- | --- |
//! | can it be? | `never`; no kernel or right for it; a file system that refused it, has a server or no direct reads |
//! | would it gain? (`auto`) | below [`BYTES_MIN`]; a device is emulated; neither in the page cache as a whole nor on a device that [cannot gain](super::gain) |
//!
//! A file is taken to be in the page cache as a whole if up to [`PLACES`] pages of it are, the first and
//! the last among them. A wrong guess costs time, not bytes: the kernel reads the rest from the device.
//!
//! An open file in passthrough has no reader in the engine, so no memory and nothing fetched ahead. Two
//! kinds of requests for bytes reach the daemon all the same, and give it one: `readahead(2)`, and reads of a
//! program that opened the file with `O_DIRECT`, which may be of any alignment on the mount.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use forerun_core::Profile;
use forerun_io::page_cache::pages_cached;
pub use forerun_surface::daemon::report::Mode;
use fuser::BackingId;
use rustix::io::Errno;

use super::beneath;
use super::gain::Gain;
use super::io_mode::IoMode;

/// Files below this are left to the daemon. Open, read, close of a file that both page caches have,
/// us, with and without passthrough: 4 KiB 14.3 and 13.3, 64 KiB 16.0 and 16.7, 256 KiB 26 and 27,
/// 4 MiB 235 and 366. Of a file that only the source's has, 64 KiB 26 and 177. Smaller files are
/// opened ahead in hundreds.
pub const BYTES_MIN: u64 = 64 << 10;

/// Pages of a file that are looked for in the page cache, most: 0.24 us each, and a file that is cached up
/// to its last sixteenth is not taken for a whole one.
const PLACES: u64 = 16;

/// One sample for this number of pages: so that a short file, which costs 16 us, costs half a
/// microsecond more.
const PAGES_EACH: u64 = 16;

const PAGE: u64 = 4096;

/// The kernel's backing file for passthrough.
pub type Backing = Arc<BackingId>;

/// Makes a file known to the kernel.
pub type Back<'a> = &'a dyn Fn(&File) -> io::Result<BackingId>;

/// A file whose mode is to be decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) file: &'a File,
    /// Whether its file system reads past the page cache.
    pub(super) direct: bool,
    pub(super) served: bool,
    pub(super) device: (u32, u32),
    pub(super) bytes: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Passthrough {
    mode: Mode,
    /// The kernel, or the rights of this process, have none.
    is_off: AtomicBool,
    /// Devices whose file system cannot be read by another one.
    refused: RwLock<HashSet<(u32, u32)>>,
    gain: Gain,
    opens: AtomicU64,
}

impl Passthrough {
    /// Files are opened in passthrough by this mode.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            is_off: AtomicBool::new(mode == Mode::Never),
            refused: RwLock::default(),
            gain: Gain::default(),
            opens: AtomicU64::new(0),
        }
    }

    /// The request.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether any file can be opened in passthrough, as far as is known.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        !self.is_off.load(Ordering::Relaxed)
    }

    /// Number of opens in passthrough.
    #[must_use]
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// No file is opened in passthrough from now on.
    pub fn end(&self, why: &str) {
        if !self.is_off.swap(true, Ordering::Relaxed) {
            tracing::info!("no FUSE passthrough: {why}");
        }
    }

    pub(super) fn count(&self) {
        self.opens.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a closed file is to be opened in passthrough. `measured` is its device's costs, if known.
    pub(super) fn wants(
        &self,
        candidate: &Candidate<'_>,
        emulated: bool,
        measured: &dyn Fn() -> Option<Profile>,
    ) -> bool {
        if !self.is_possible() || !candidate.direct || self.is_refused(candidate.device) {
            return false;
        }
        match self.mode {
            Mode::Never => false,
            Mode::Always => true,
            Mode::Auto => {
                let may_gain = candidate.bytes >= BYTES_MIN && !candidate.served && !emulated;
                may_gain
                    && (self.gain.cannot(candidate.device, measured().as_ref())
                        || is_cached(candidate.file, candidate.bytes))
            }
        }
    }

    /// Makes a file known to the kernel; none if that cannot be, which is remembered.
    pub(super) fn back(&self, candidate: &Candidate<'_>, back: Back<'_>) -> IoMode<Backing> {
        match back(candidate.file) {
            Ok(backing) => return IoMode::Passthrough(Arc::new(backing)),
            Err(error) => match beneath::errno(&error) {
                Errno::PERM => self.end("it needs CAP_SYS_ADMIN"),
                Errno::NOTTY => self.end("the kernel has none"),
                Errno::MFILE | Errno::NFILE | Errno::NOMEM => {}
                _ => self.refuse(candidate.device, &error),
            },
        }
        IoMode::Cached
    }

    fn is_refused(&self, device: (u32, u32)) -> bool {
        let refused = self.refused.read().unwrap_or_else(PoisonError::into_inner);
        refused.contains(&device)
    }

    fn refuse(&self, device: (u32, u32), why: &io::Error) {
        let mut refused = self.refused.write().unwrap_or_else(PoisonError::into_inner);
        if refused.insert(device) {
            let (major, minor) = device;
            tracing::info!("no FUSE passthrough of files on device {major}:{minor}: {why}");
        }
    }
}

/// Whether a file is in the page cache, as far as a few pages tell; false where the kernel does not.
fn is_cached(file: &File, bytes: u64) -> bool {
    let pages = bytes.div_ceil(PAGE);
    places(pages).all(|page| pages_cached(file.as_fd(), page * PAGE, PAGE) == Some(1))
}

/// The pages that stand for a file of so many: the last, the first, and others evenly between.
fn places(pages: u64) -> impl Iterator<Item = u64> {
    let last = pages.saturating_sub(1);
    let count = (pages / PAGES_EACH).clamp(2, PLACES).min(pages.max(1));
    // The end first: a file that is being read is cached from its beginning on.
    (0..count).rev().map(move |at| match count {
        1 => last,
        _ => {
            u64::try_from(u128::from(last) * u128::from(at) / u128::from(count - 1)).unwrap_or(last)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_page_are_among_those_that_stand_for_a_file() {
        let of = |pages| places(pages).collect::<Vec<u64>>();
        assert_eq!(of(1), [0]);
        assert_eq!(of(16), [15, 0]);
        assert_eq!(of(48), [47, 23, 0]);
        let many = of(1 << 28);
        assert_eq!(many.len() as u64, PLACES);
        assert_eq!((many[0], *many.last().unwrap()), ((1 << 28) - 1, 0));
        assert!(many.is_sorted_by(|a, b| a > b));
        assert_eq!(of(u64::MAX / PAGE)[0], u64::MAX / PAGE - 1);
    }

    #[test]
    fn a_file_just_written_is_cached_and_a_hole_is_not() {
        use std::os::unix::fs::FileExt;
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 1 << 20], 0).unwrap();
        if pages_cached(file.as_fd(), 0, PAGE).is_none() {
            return;
        }
        assert!(is_cached(&file, 1 << 20));
        file.set_len(2 << 20).unwrap();
        assert!(!is_cached(&file, 2 << 20));
    }

    #[test]
    fn each_mode_opens_what_it_says_until_there_is_none() {
        let file = tempfile::tempfile().unwrap();
        let tiny = Candidate {
            file: &file,
            direct: true,
            served: false,
            device: (0, 1),
            bytes: 1,
        };
        let wants = |mode| Passthrough::new(mode).wants(&tiny, false, &|| None);
        assert_eq!(
            [Mode::Auto, Mode::Always, Mode::Never].map(wants),
            [false, true, false]
        );
        let always = Passthrough::new(Mode::Always);
        always.refuse((0, 1), &Errno::LOOP.into());
        assert!(!always.wants(&tiny, false, &|| None));
        let other = Candidate {
            device: (0, 2),
            ..tiny
        };
        assert!(always.wants(&other, false, &|| None));
        always.end("tried");
        assert!(!always.wants(&other, false, &|| None) && !always.is_possible());
    }
}
