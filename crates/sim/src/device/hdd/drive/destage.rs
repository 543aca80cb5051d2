//! Destaging: the drive writes blocks whose writes it reported before they were on the surface.
//!
//! Like readahead, it is computed when the next access comes. A run that the heads have begun
//! by then is finished first; the others wait, for an idle drive, for a write that needs their
//! place in the cache, or for a read (`destage_before_reads`). A read after a write therefore
//! takes longer by up to a seek, a rotation and the run:
//!
//! ```text
//! write A | complete            idle time | move, rotate, A ........ |
//! read B  (here: as without A)      (here: waits)              until here | move, rotate, B
//! ```

use super::super::drawing::SectorRun;
use super::super::write_back::Dirty;
use super::Drive;

impl Drive {
    /// Lets idle heads write until `now`; a run begun before is written to its end.
    pub(super) fn destage(&mut self, now: u64) {
        while let Some(run) = self.dirty.next() {
            if self.begin(&run) >= now {
                break;
            }
            self.put_down(run, u64::MAX);
        }
        self.dirty.drop_done(now);
    }

    /// When idle heads set out for a run.
    fn begin(&self, run: &Dirty) -> u64 {
        let idle_from = run.begin.max(self.idle_from);
        let begin = idle_from.saturating_add(self.drawing.destage_idle);
        begin.max(self.writing_until)
    }

    /// Writes one run, from `at` on even if the heads were not idle for long enough.
    fn put_down(&mut self, dirty: Dirty, at: u64) {
        let begin = self.begin(&dirty).min(at).max(self.writing_until);
        let run = SectorRun {
            earliest: dirty.earliest,
            is_write: true,
            ..SectorRun::reading(dirty.first, begin)
        };
        self.ahead = None;
        self.writing_until = self.surface(run, dirty.end, 0).end;
        self.dirty.wrote(self.writing_until);
    }

    /// When all runs are on the surface, if the heads turn to them at `at`.
    pub(super) fn all_destaged(&mut self, at: u64) -> u64 {
        while let Some(run) = self.dirty.next() {
            self.put_down(run, at);
        }
        self.writing_until
    }

    /// When the heads are free for a read that is `ready` for them. Runs that the read overlaps are
    /// written before.
    pub(super) fn heads_after(&mut self, ready: u64, first: u64, end: u64) -> u64 {
        if self.drawing.destage_before_reads || self.dirty.overlaps(first, end) {
            return self.all_destaged(ready);
        }
        // A destage that begins while the controller looks at the request is in its way too.
        self.destage(ready);
        self.writing_until
    }

    /// A write that is complete once it is in the cache.
    pub(super) fn write_back(&mut self, now: u64, first: u64, end: u64) -> u64 {
        let controller = self.drawing.controller;
        let yielded = self.yielded();
        let overhead = controller.write(first, self.before);
        let mut taking = now.saturating_add(overhead).max(yielded);
        while !self.dirty.has_place(first, end) {
            taking = taking.max(self.oldest_destaged(taking));
            self.dirty.drop_done(taking);
        }
        self.ahead = None;
        self.cache.forget(first, end);
        if self.drawing.keeps_written
            && let Some(segment) = self.cache.begin(first)
        {
            self.cache.extend(segment, end);
        }
        let sectors = end - first;
        let earliest = taking.saturating_add(self.held_back(first, sectors));
        self.dirty.add(first, end, taking, earliest);
        let taken = taking.saturating_add(self.drawing.host_gives(sectors));
        taken.saturating_add(controller.write_end)
    }

    /// When the oldest run is on the surface.
    fn oldest_destaged(&mut self, at: u64) -> u64 {
        if let Some(done) = self.dirty.oldest_done() {
            return done;
        }
        if let Some(run) = self.dirty.next() {
            self.put_down(run, at);
        }
        self.writing_until
    }
}
