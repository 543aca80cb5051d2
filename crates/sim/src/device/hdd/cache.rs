//! The drive's cache: a few segments, each one run of sectors.
//!
//! The drive looks sectors up and records its reads; the drive also tracks the segment that the
//! heads are still filling. A segment holds the last sectors of its run up to its size; a new run
//! takes over the segment used longest ago. A write throws out the sectors it overlaps.

/// One run of sectors held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Segment {
    pub(super) first: u64,
    pub(super) end: u64,
    used: u64,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Cache {
    segments: Vec<Segment>,
    sectors: u64,
    clock: u64,
}

impl Cache {
    /// A cache of segments, each of a number of sectors; zero of either is no cache.
    pub(super) fn new(segments: usize, sectors: u64) -> Self {
        let segments = if sectors == 0 { 0 } else { segments };
        Self {
            segments: vec![Segment::default(); segments],
            sectors,
            clock: 0,
        }
    }

    pub(super) fn segment(&self, at: usize) -> Segment {
        self.segments[at]
    }

    /// The segment that holds the sector, or ends right before it.
    pub(super) fn reaches(&self, lbn: u64) -> Option<usize> {
        let reaching = |one: &Segment| one.first < one.end && one.first <= lbn && lbn <= one.end;
        let holding = |one: &Segment| one.first <= lbn && lbn < one.end;
        let held = self.segments.iter().position(holding);
        held.or_else(|| self.segments.iter().position(reaching))
    }

    /// Marks a segment as used.
    pub(super) fn touch(&mut self, at: usize) {
        self.clock += 1;
        self.segments[at].used = self.clock;
    }

    /// A segment for a run that begins at this sector: the one that ends there, or the one used
    /// longest ago, emptied.
    pub(super) fn begin(&mut self, lbn: u64) -> Option<usize> {
        let continued = |one: &Segment| one.first < one.end && one.end == lbn;
        let at = match self.segments.iter().position(continued) {
            Some(at) => at,
            None => {
                let used = |(_, one): &(usize, &Segment)| one.used;
                let (at, _) = self.segments.iter().enumerate().min_by_key(used)?;
                self.segments[at] = Segment {
                    first: lbn,
                    end: lbn,
                    used: 0,
                };
                at
            }
        };
        self.touch(at);
        Some(at)
    }

    /// The segment's run was read on to `end`.
    pub(super) fn extend(&mut self, at: usize, end: u64) {
        let segment = &mut self.segments[at];
        segment.end = segment.end.max(end);
        segment.first = segment.first.max(segment.end.saturating_sub(self.sectors));
    }

    /// Throws out every run that overlaps these sectors.
    pub(super) fn forget(&mut self, first: u64, end: u64) {
        for one in &mut self.segments {
            if one.first < end && first < one.end {
                *one = Segment::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_keeps_the_last_sectors_of_its_run() {
        let mut cache = Cache::new(2, 10);
        let at = cache.begin(100).unwrap();
        cache.extend(at, 125);
        assert_eq!(cache.reaches(114), None);
        assert_eq!(cache.reaches(115), Some(at));
        assert_eq!(cache.reaches(125), Some(at));
        assert_eq!(cache.reaches(126), None);
    }

    #[test]
    fn a_new_run_takes_the_segment_used_longest_ago_and_a_write_empties_one() {
        let mut cache = Cache::new(2, 10);
        for first in [100, 200] {
            let at = cache.begin(first).unwrap();
            cache.extend(at, first + 5);
        }
        cache.touch(cache.reaches(100).unwrap());
        let third = cache.begin(300).unwrap();
        cache.extend(third, 305);
        assert!(cache.reaches(200).is_none() && cache.reaches(100).is_some());
        cache.forget(104, 105);
        assert!(cache.reaches(100).is_none());
    }

    #[test]
    fn no_cache_holds_nothing() {
        assert_eq!(Cache::new(0, 10).begin(1), None);
        assert_eq!(Cache::new(3, 0).begin(1), None);
    }
}
