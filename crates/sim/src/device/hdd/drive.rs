//! Drive: serves one access after the other, with arm, platter, cache and readahead.
//!
//! [`Hdd`](super::Hdd) queues in front of it; validation drives it directly, because it also
//! writes. Readahead is computed when the next access comes: sectors that have passed under the
//! head by then are in the cache, and the arm is where it got to.
//!
//! ```text
//! read, cached   hit overhead | bus                                          | end
//! read           miss overhead | move | rotate | sectors ... (bus overlaps)  | end -> read on
//! write          overhead | bus -> (move | rotate | sectors)                 | end
//! write, cached  overhead | bus                                              | end -> destage
//! ```
//!
//! The length of the readahead is in [`readahead`](super::readahead), and [`destage`] writes the
//! blocks reported early. A read that overlaps the readahead under way waits for it without moving.
//! The bus of a miss overlaps the surface: it starts once enough sectors are off and ends a sector
//! after the last. Deliberately absent: reordering (that is [`scheduler`](crate::device::scheduler)).

mod destage;

use std::sync::Arc;

use forerun_core::Nanos;

use super::cache::Cache;
use super::controller::Before;
use super::drawing::{Arm, Drawing, SectorRun};
use super::readahead::Ahead;
use super::write_back::WriteBack;

/// A request to a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The first sector.
    pub lbn: u64,
    /// How many.
    pub sectors: u64,
    /// Whether they are written.
    pub is_write: bool,
}

/// Sectors that have passed under the head.
struct Passed {
    /// When as many had as the bus waits for.
    enough: u64,
    /// When all had.
    end: u64,
    /// How many at the end of them had before those at the front.
    early: u64,
}

/// A disk without a queue: arm, platter, cache, and readahead.
#[derive(Clone, Debug)]
pub struct Drive {
    drawing: Arc<Drawing>,
    arm: Arm,
    cache: Cache,
    ahead: Option<Ahead>,
    before: Before,
    dirty: WriteBack,
    /// Until then the heads write blocks that were reported before.
    writing_until: u64,
    /// When they last had read something.
    idle_from: u64,
}

impl Drive {
    /// A drive with its heads on the first track and nothing cached.
    #[must_use]
    pub fn new(drawing: Arc<Drawing>) -> Self {
        let cache = Cache::new(drawing.segments, drawing.segment_sectors);
        let dirty = WriteBack::new(drawing.write_segments, drawing.segment_sectors);
        Self {
            drawing,
            arm: Arm::default(),
            cache,
            ahead: None,
            before: Before::Read,
            dirty,
            writing_until: 0,
            idle_from: 0,
        }
    }

    /// The parameters it works from.
    #[must_use]
    pub fn drawing(&self) -> &Drawing {
        &self.drawing
    }

    /// Serves an access that reaches the drive at `now`, after the one before has ended, and
    /// returns its end. Sectors past the last are left out; an empty access moves the arm.
    pub fn serve(&mut self, now: Nanos, access: Access) -> Nanos {
        let first = access.lbn.min(self.drawing.sectors());
        let end = first
            .saturating_add(access.sectors)
            .min(self.drawing.sectors());
        self.catch_up(now.0);
        self.destage(now.0);
        let done = match access.is_write {
            _ if first == end => self.seek(now.0, first),
            true if self.dirty.takes(end - first) => self.write_back(now.0, first, end),
            true => self.write(now.0, first, end),
            false => self.read(now.0, first, end),
        };
        self.before = match access.is_write {
            true => Before::Write { end },
            false => Before::Read,
        };
        Nanos(done)
    }

    /// Takes the arm to the track of a sector.
    fn seek(&mut self, now: u64, lbn: u64) -> u64 {
        self.ahead = None;
        let lbn = lbn.min(self.drawing.sectors().saturating_sub(1));
        let spot = self.drawing.geometry.locate(lbn);
        let movement = self.drawing.movement(self.arm, &spot);
        self.arm = Arm {
            cylinder: spot.cylinder,
            head: spot.head,
        };
        let overhead = self.drawing.controller.read_miss.after(self.before);
        let ready = now.saturating_add(overhead).max(self.writing_until);
        ready.saturating_add(movement)
    }

    /// Lets reading on run until `now`.
    fn catch_up(&mut self, now: u64) {
        let Some(mut ahead) = self.ahead else {
            return;
        };
        while ahead.next < ahead.limit && ahead.at < now {
            let mut arm = self.arm;
            let run = SectorRun {
                most: ahead.limit - ahead.next,
                is_going_on: true,
                ..SectorRun::reading(ahead.next, ahead.at)
            };
            let pass = self.drawing.pass(run, &mut arm);
            let passed = pass.by(now);
            if passed == 0 {
                break;
            }
            self.arm = arm;
            ahead.next += passed;
            ahead.at = pass.after(passed);
            if passed < pass.sectors {
                break;
            }
        }
        self.cache.extend(ahead.segment, ahead.next);
        self.ahead = Some(ahead);
    }

    fn read(&mut self, now: u64, first: u64, end: u64) -> u64 {
        let overhead = self.drawing.controller.read_hit.after(self.before);
        let ready = now.saturating_add(overhead);
        if self.dirty.holds(first, end) {
            return self.bus_end(ready, end - first, 0);
        }
        let Some(at) = self.cache.reaches(first) else {
            return self.miss(now, first, end);
        };
        if end <= self.cache.segment(at).end {
            self.cache.touch(at);
            if self.drawing.readahead_after_hit {
                self.read_on(at, ready, first, end);
            }
            return self.bus_end(ready, end - first, 0);
        }
        match self.ahead {
            Some(ahead) if ahead.segment == at => self.join(now, first, end, ahead),
            _ => self.miss(now, first, end),
        }
    }

    /// A read whose sectors are partly cached, partly about to pass under the head.
    fn join(&mut self, now: u64, first: u64, end: u64, ahead: Ahead) -> u64 {
        let controller = self.drawing.controller;
        let is_cached = first < ahead.next;
        let overhead = if is_cached {
            controller.read_hit.after(self.before)
        } else {
            controller.read_miss.after(self.before)
        };
        // Heads that stopped at the limit start again when the command is understood; those
        // still reading have not stopped for it.
        let at = if ahead.next < ahead.limit {
            ahead.at
        } else {
            ahead.at.max(now.saturating_add(overhead))
        };
        let run = SectorRun {
            is_going_on: true,
            ..SectorRun::reading(ahead.next, at)
        };
        let passed = self.surface(run, end, 0);
        self.keep(ahead.segment, first, end, passed.end);
        self.bus_end(now.saturating_add(overhead), end - first, passed.end)
    }

    fn miss(&mut self, now: u64, first: u64, end: u64) -> u64 {
        let controller = self.drawing.controller;
        let yielded = self.yielded();
        self.ahead = None;
        let overhead = controller.read_miss.after(self.before);
        let ready = now.saturating_add(overhead).max(yielded);
        let ready = ready.max(self.heads_after(ready, first, end));
        // The drive cannot hold back more than a segment.
        let held = match self.drawing.segment_sectors {
            0 => end - first,
            most => most.min(end - first),
        };
        let wanted = (held * controller.read_bus_start).div_ceil(100);
        let run = SectorRun {
            is_any_order: self.drawing.zero_latency,
            ..SectorRun::reading(first, ready)
        };
        let passed = self.surface(run, end, wanted);
        if let Some(segment) = self.cache.begin(first) {
            self.keep(segment, first, end, passed.end);
        }
        // Sectors that were read before the last one wait for their turn on the bus.
        let waiting = self.drawing.host_takes(passed.early);
        let ended = self.bus_end(passed.enough, end - first, passed.end);
        let drained = self
            .drawing
            .host_takes(1)
            .saturating_add(controller.read_end);
        ended.max(passed.end.saturating_add(waiting).saturating_add(drained))
    }

    /// When the bus has passed `sectors` on, the last of which leaves the surface at `media`.
    fn bus_end(&self, start: u64, sectors: u64, media: u64) -> u64 {
        let streamed = start.saturating_add(self.drawing.host_takes(sectors));
        let last = match media {
            0 => 0,
            _ => media.saturating_add(self.drawing.host_takes(1)),
        };
        let end = streamed.max(last);
        end.saturating_add(self.drawing.controller.read_end)
    }

    /// When reading on ends that does not yield to a request.
    fn yielded(&mut self) -> u64 {
        let Some(ahead) = self.ahead else {
            return 0;
        };
        if self.drawing.readahead_yields || ahead.limit <= ahead.next {
            return 0;
        }
        self.catch_up(u64::MAX);
        self.ahead.map_or(0, |ahead| ahead.at)
    }

    /// Passes sectors under the head, up to `end`.
    fn surface(&mut self, mut run: SectorRun, end: u64, wanted: u64) -> Passed {
        let (first, mut enough, mut early) = (run.lbn, None, 0);
        while run.lbn < end {
            run.most = end - run.lbn;
            let pass = self.drawing.pass(run, &mut self.arm);
            let before = run.lbn - first;
            if enough.is_none() && wanted <= before + pass.sectors {
                enough = Some(pass.after(wanted.saturating_sub(before)));
            }
            early = pass.sectors - pass.front;
            run.lbn += pass.sectors;
            run.at = pass.end();
            run.earliest = 0;
            run.is_going_on = true;
        }
        Passed {
            enough: enough.unwrap_or(run.at),
            end: run.at,
            early,
        }
    }

    /// The segment now ends at `end`, and the heads go on from there, unless they have to write.
    fn keep(&mut self, segment: usize, first: u64, end: u64, at: u64) {
        self.cache.extend(segment, end);
        self.cache.touch(segment);
        self.idle_from = at;
        if !self.dirty.is_empty() {
            return;
        }
        self.ahead = Some(Ahead {
            segment,
            next: end,
            at,
            limit: self.limit(segment, first, end),
        });
    }

    fn limit(&self, segment: usize, first: u64, end: u64) -> u64 {
        let held = self.cache.segment(segment).first;
        self.drawing.readahead_limit(held, first, end)
    }

    /// After a hit that ended at `end`: the limit moves on. Heads that have nothing else to do
    /// turn to this segment.
    fn read_on(&mut self, segment: usize, now: u64, first: u64, end: u64) {
        if !self.dirty.is_empty() {
            return;
        }
        let limit = self.limit(segment, first, end);
        let held = self.cache.segment(segment).end;
        match &mut self.ahead {
            Some(ahead) if ahead.segment == segment => {
                if ahead.next >= ahead.limit {
                    ahead.at = ahead.at.max(now);
                }
                ahead.limit = ahead.limit.max(limit);
            }
            Some(ahead) if ahead.next < ahead.limit => {}
            ahead if held < limit => {
                *ahead = Some(Ahead {
                    segment,
                    next: held,
                    at: now,
                    limit,
                });
            }
            _ => {}
        }
    }

    fn write(&mut self, now: u64, first: u64, end: u64) -> u64 {
        let controller = self.drawing.controller;
        let yielded = self.yielded();
        self.ahead = None;
        self.cache.forget(first, end);
        let taking = now.saturating_add(controller.write(first, self.before));
        let taking = taking.max(yielded);
        let taking = taking.max(self.all_destaged(taking));
        let sectors = end - first;
        let run = SectorRun {
            earliest: taking.saturating_add(self.held_back(first, sectors)),
            is_write: true,
            ..SectorRun::reading(first, taking)
        };
        let media = self.surface(run, end, 0).end;
        let taken = taking.saturating_add(self.drawing.host_gives(sectors));
        media.max(taken).saturating_add(controller.write_end)
    }

    /// How long after its first byte a write may go to the surface: once as much of it has come
    /// as the controller requires, and late enough that the surface does not overtake the bus.
    fn held_back(&self, first: u64, sectors: u64) -> u64 {
        let drawing = &self.drawing;
        let wanted = (sectors * drawing.controller.write_media_start).div_ceil(100);
        let per_track = drawing.geometry.locate(first).per_track;
        let passing =
            (u128::from(sectors - 1) * u128::from(drawing.revolution)) / u128::from(per_track);
        let passing = u64::try_from(passing).unwrap_or(u64::MAX);
        let all = drawing.host_gives(sectors);
        drawing.host_gives(wanted).max(all.saturating_sub(passing))
    }
}
