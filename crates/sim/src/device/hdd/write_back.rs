//! Write-back cache: runs of written sectors that are reported before they are on the surface.
//!
//! A write is complete once it is in the cache. Its sectors are *dirty* until the heads have
//! written them (*destaging*), which begins when the heads have had nothing to do for a while. A
//! drive keeps few dirty runs, often one: a write that continues a run joins it, any other one
//! takes a run of its own, or waits until the oldest is on the surface.
//!
//! ```text
//! write A   overhead | bus |  complete
//!                            move, rotate, sectors of A ....... | A is on the surface
//! write B (elsewhere, one run)       overhead |   waits         | bus | complete
//! ```
//!
//! The arm is the drive's. This file keeps the runs and says which is next, and from when on;
//! the drive says when it was on the surface.

use std::collections::VecDeque;

/// One run of dirty sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dirty {
    pub(super) first: u64,
    pub(super) end: u64,
    /// The arm may set out for it then.
    pub(super) begin: u64,
    /// Its sectors may pass under the head from then on, since they have arrived.
    pub(super) earliest: u64,
    /// Whether it takes the place in the cache of the run before, which it continues.
    is_joined: bool,
    /// When it is on the surface, once the heads have begun.
    done: Option<u64>,
}

/// Runs in the order in which they go to the surface.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBack {
    runs: VecDeque<Dirty>,
    /// At most so many at a time; 0 is no write-back cache.
    runs_max: usize,
    /// Sectors of a run and of the runs that joined it, at most.
    sectors_max: u64,
}

impl WriteBack {
    pub(super) fn new(runs_max: usize, sectors_max: u64) -> Self {
        Self {
            runs: VecDeque::new(),
            runs_max,
            sectors_max,
        }
    }

    /// Whether a write of a given number of sectors is reported before it is on the surface.
    pub(super) fn takes(&self, sectors: u64) -> bool {
        self.runs_max > 0 && sectors <= self.sectors_max
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Drops the runs that are on the surface by `now`.
    pub(super) fn drop_done(&mut self, now: u64) {
        while let Some(done) = self.runs.front().and_then(|run| run.done) {
            if done > now {
                break;
            }
            self.runs.pop_front();
        }
        if let Some(run) = self.runs.front_mut() {
            run.is_joined = false;
        }
    }

    /// The next run for the heads.
    pub(super) fn next(&self) -> Option<Dirty> {
        self.runs.iter().find(|run| run.done.is_none()).copied()
    }

    /// The next run is on the surface at `at`.
    pub(super) fn wrote(&mut self, at: u64) {
        if let Some(run) = self.runs.iter_mut().find(|run| run.done.is_none()) {
            run.done = Some(at);
        }
    }

    /// When the oldest run is on the surface, if the heads have begun with it.
    pub(super) fn oldest_done(&self) -> Option<u64> {
        self.runs.front().and_then(|run| run.done)
    }

    /// Whether a write has a place now: it continues the last run, or a run is free.
    pub(super) fn has_place(&self, first: u64, end: u64) -> bool {
        let used = self.runs.iter().filter(|run| !run.is_joined).count();
        used < self.runs_max || self.joins(first, end)
    }

    fn joins(&self, first: u64, end: u64) -> bool {
        let Some(last) = self.runs.back() else {
            return false;
        };
        let joined = self
            .runs
            .iter()
            .rev()
            .take_while(|run| run.is_joined)
            .count();
        let begin = self.runs.get(self.runs.len() - 1 - joined);
        let begin = begin.map_or(last.first, |run| run.first);
        last.end == first && end - begin <= self.sectors_max
    }

    /// Takes a write in. One that lies in a run the heads have not begun is in it already.
    pub(super) fn add(&mut self, first: u64, end: u64, begin: u64, earliest: u64) {
        let is_held = |run: &Dirty| run.done.is_none() && run.first <= first && end <= run.end;
        if self.runs.iter().any(is_held) {
            return;
        }
        let is_joined = self.joins(first, end);
        self.runs.push_back(Dirty {
            first,
            end,
            begin,
            earliest,
            is_joined,
            done: None,
        });
    }

    /// Whether a run holds all of these sectors.
    pub(super) fn holds(&self, first: u64, end: u64) -> bool {
        self.runs
            .iter()
            .any(|run| run.first <= first && end <= run.end)
    }

    /// Whether a run that the heads have not begun holds one of these sectors.
    pub(super) fn overlaps(&self, first: u64, end: u64) -> bool {
        let overlapping = |run: &Dirty| run.done.is_none() && run.first < end && first < run.end;
        self.runs.iter().any(overlapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_continues_the_last_run_needs_no_place_of_its_own() {
        let mut runs = WriteBack::new(1, 10);
        assert!(runs.takes(10) && !runs.takes(11));
        assert!(runs.has_place(0, 4));
        runs.add(0, 4, 0, 0);
        assert!(runs.has_place(4, 10));
        assert!(!runs.has_place(4, 11), "longer than the cache holds");
        assert!(!runs.has_place(5, 6));
        runs.add(4, 10, 0, 0);
        assert!(runs.holds(4, 10) && !runs.holds(3, 5));
        runs.wrote(50);
        runs.drop_done(49);
        assert_eq!(runs.oldest_done(), Some(50));
        runs.drop_done(50);
        assert!(!runs.has_place(20, 21), "joined runs stay");
        runs.wrote(60);
        runs.drop_done(60);
        assert!(runs.is_empty() && runs.has_place(20, 21));
    }

    #[test]
    fn a_write_into_a_run_not_begun_is_in_it() {
        let mut runs = WriteBack::new(2, 10);
        runs.add(0, 4, 0, 0);
        runs.add(1, 3, 0, 0);
        assert!(runs.overlaps(3, 9) && !runs.overlaps(4, 9));
        runs.wrote(5);
        runs.drop_done(5);
        assert!(runs.is_empty());
    }
}
