//! Limits: whose limit of readahead an open file has, the device's, one of a watch, or one that its program asked for.

/// Longest window that is ever set, in pages: half a second of a fast disk, and memory of one reader.
pub const MOST_PAGES: u32 = 16 << 10;

/// Limits of the open files of a file system, in pages.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Those that were the device's own since the start.
    own: Vec<u32>,
    /// Those that were ever set.
    ours: Vec<u32>,
}

impl Limits {
    /// The device's own limit now.
    pub fn note_own(&mut self, pages: u32) {
        if !self.own.contains(&pages) {
            self.own.push(pages);
        }
    }

    /// A limit that is about to be set.
    pub fn note_ours(&mut self, pages: u32) {
        if !self.ours.contains(&pages) {
            self.ours.push(pages);
        }
    }

    /// Whether a limit of an open file is the device's or one of ours: no other is touched. Twice the device's is that of
    /// POSIX_FADV_SEQUENTIAL, which a program asked for.
    #[must_use]
    pub fn is_ours_or_own(&self, pages: u32) -> bool {
        self.own.contains(&pages) || self.ours.contains(&pages) && !self.is_doubled(pages)
    }

    /// The nearest limit that can be set and is not taken for a program's own, in whole pages of the kernel of so many of
    /// 4 KiB each: the kernel makes no other of it.
    #[must_use]
    pub fn settable(&self, pages: u32, page: u32) -> u32 {
        let pages = pages.min(MOST_PAGES) / page * page;
        pages + page * u32::from(self.is_doubled(pages))
    }

    fn is_doubled(&self, pages: u32) -> bool {
        self.own.iter().any(|own| own.saturating_mul(2) == pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_programs_are_told_from_the_devices_and_ours() {
        let mut limits = Limits::default();
        limits.note_own(32);
        limits.note_ours(1024);
        limits.note_ours(64);
        for (pages, is) in [
            (32, true),
            (1024, true),
            (64, false),
            (100, false),
            (0, false),
        ] {
            assert_eq!(limits.is_ours_or_own(pages), is, "{pages}");
        }
        assert_eq!(
            limits.settable(64, 1),
            65,
            "64 would be taken for FADV_SEQUENTIAL's"
        );
        assert_eq!(limits.settable(u32::MAX, 1), MOST_PAGES);
        limits.note_own(128);
        assert!(limits.is_ours_or_own(32) && limits.is_ours_or_own(128));
    }

    #[test]
    fn a_kernel_of_larger_pages_gets_limits_that_it_does_not_round() {
        let mut limits = Limits::default();
        limits.note_own(32);
        for (page, pages, settable) in [
            (16, 100, 96),
            (16, 70, 80),
            (4, 70, 68),
            (4, 66, 68),
            (16, u32::MAX, MOST_PAGES),
        ] {
            assert_eq!(limits.settable(pages, page), settable, "{pages} of {page}");
        }
    }
}
