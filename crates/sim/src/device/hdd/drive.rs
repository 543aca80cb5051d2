//! Drive: serves one access after the other, with arm, platter, cache and readahead.
//!
//! [`Hdd`](super::Hdd) queues in front of it; validation drives it directly, because it also
//! writes. Readahead is worked out when the next access comes: what has passed under the head by
//! then is in the cache, and the arm is where it got to.
//!
//! ```text
//! read, cached   hit overhead | bus                                          | end
//! read           miss overhead | move | rotate | sectors ... (bus overlaps)  | end -> read on
//! write          overhead | bus -> (move | rotate | sectors)                 | end
//! ```
//!
//! Reading on stops at `readahead_bytes` beyond the last read, at the end of the surface, or when
//! another access needs the arm. A read that reaches into what is being read on waits for it
//! without moving. The bus of a miss overlaps the surface: it starts once enough sectors are off
//! and ends a sector after the last. Deliberately absent: reordering (that is
//! [`scheduler`](crate::scheduler)), reports before a write is on the surface, and reading a
//! track from the middle on.

use std::sync::Arc;

use forerun_core::Nanos;

use super::cache::Cache;
use super::drawing::{Arm, Drawing, Run};

/// What is asked of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The first sector.
    pub lbn: u64,
    /// How many.
    pub sectors: u64,
    /// Whether they are written.
    pub is_write: bool,
}

/// Reading on after a read.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    segment: usize,
    /// The next sector to be read.
    next: u64,
    /// When the heads are free to read it.
    at: u64,
    /// Where reading on stops.
    limit: u64,
}

/// A disk without a queue: arm, platter, cache, and what it reads on.
#[derive(Clone, Debug)]
pub struct Drive {
    drawing: Arc<Drawing>,
    arm: Arm,
    cache: Cache,
    ahead: Option<Ahead>,
}

impl Drive {
    /// A drive with its heads on the first track and nothing cached.
    #[must_use]
    pub fn new(drawing: Arc<Drawing>) -> Self {
        let cache = Cache::new(drawing.segments, drawing.segment_sectors);
        Self {
            drawing,
            arm: Arm::default(),
            cache,
            ahead: None,
        }
    }

    /// The parameters it works from.
    #[must_use]
    pub fn drawing(&self) -> &Drawing {
        &self.drawing
    }

    /// Serves an access that reaches the drive at `now`, when the one before has ended; when it
    /// ends. What lies past the last sector is left out; of nothing, the arm goes there.
    pub fn serve(&mut self, now: Nanos, access: Access) -> Nanos {
        let first = access.lbn.min(self.drawing.sectors());
        let end = first
            .saturating_add(access.sectors)
            .min(self.drawing.sectors());
        self.catch_up(now.0);
        Nanos(match access.is_write {
            _ if first == end => self.seek(now.0, first),
            true => self.write(now.0, first, end),
            false => self.read(now.0, first, end),
        })
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
        let ready = now.saturating_add(self.drawing.controller.read_miss);
        ready.saturating_add(movement)
    }

    /// Lets reading on run until `now`.
    fn catch_up(&mut self, now: u64) {
        let Some(mut ahead) = self.ahead else {
            return;
        };
        while ahead.next < ahead.limit && ahead.at < now {
            let mut arm = self.arm;
            let run = Run {
                most: ahead.limit - ahead.next,
                is_going_on: true,
                ..Run::reading(ahead.next, ahead.at)
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
        let controller = self.drawing.controller;
        let Some(at) = self.cache.reaches(first) else {
            return self.miss(now, first, end);
        };
        let ready = now.saturating_add(controller.read_hit);
        if end <= self.cache.segment(at).end {
            self.cache.touch(at);
            self.read_on(at, ready, end);
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
            controller.read_hit
        } else {
            controller.read_miss
        };
        // Heads that stopped at the limit start again when the command is understood; those
        // still reading have not stopped for it.
        let at = if ahead.next < ahead.limit {
            ahead.at
        } else {
            ahead.at.max(now.saturating_add(overhead))
        };
        let run = Run {
            is_going_on: true,
            ..Run::reading(ahead.next, at)
        };
        let (_, media) = self.surface(run, end, 0);
        self.keep(ahead.segment, end, media);
        self.bus_end(now.saturating_add(overhead), end - first, media)
    }

    fn miss(&mut self, now: u64, first: u64, end: u64) -> u64 {
        let controller = self.drawing.controller;
        self.ahead = None;
        let ready = now.saturating_add(controller.read_miss);
        // The drive cannot hold back more than a segment.
        let held = match self.drawing.segment_sectors {
            0 => end - first,
            most => most.min(end - first),
        };
        let wanted = (held * controller.read_bus_start).div_ceil(100);
        let (enough, media) = self.surface(Run::reading(first, ready), end, wanted);
        if let Some(segment) = self.cache.begin(first) {
            self.keep(segment, end, media);
        }
        self.bus_end(enough, end - first, media)
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

    /// Passes sectors under the head, up to `end`: when the first `wanted` had passed, and all.
    fn surface(&mut self, mut run: Run, end: u64, wanted: u64) -> (u64, u64) {
        let (first, mut enough) = (run.lbn, None);
        while run.lbn < end {
            run.most = end - run.lbn;
            let pass = self.drawing.pass(run, &mut self.arm);
            let before = run.lbn - first;
            if enough.is_none() && wanted <= before + pass.sectors {
                enough = Some(pass.after(wanted.saturating_sub(before)));
            }
            run.lbn += pass.sectors;
            run.at = pass.end();
            run.earliest = 0;
            run.is_going_on = true;
        }
        (enough.unwrap_or(run.at), run.at)
    }

    /// The segment now ends at `end`, and the heads go on from there.
    fn keep(&mut self, segment: usize, end: u64, at: u64) {
        self.cache.extend(segment, end);
        self.cache.touch(segment);
        self.ahead = Some(Ahead {
            segment,
            next: end,
            at,
            limit: self.limit(end),
        });
    }

    fn limit(&self, end: u64) -> u64 {
        let limit = end.saturating_add(self.drawing.readahead_sectors);
        limit.min(self.drawing.sectors())
    }

    /// After a hit that ended at `end`: the limit moves on. Heads that have nothing else to read
    /// turn to this segment.
    fn read_on(&mut self, segment: usize, now: u64, end: u64) {
        let limit = self.limit(end);
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
        self.ahead = None;
        self.cache.forget(first, end);
        let taking = now.saturating_add(controller.write);
        let sectors = end - first;
        let run = Run {
            earliest: taking.saturating_add(self.held_back(first, sectors)),
            is_write: true,
            ..Run::reading(first, taking)
        };
        let (_, media) = self.surface(run, end, 0);
        let taken = taking.saturating_add(self.drawing.host_gives(sectors));
        media.max(taken).saturating_add(controller.write_end)
    }

    /// How long after its first byte a write may go to the surface: once as much of it has come
    /// as the controller wants, and late enough that the surface does not overtake the bus.
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
